// Package diag holds what the compiler says to its user as values: a position,
// a severity, a code, a sentence, notes at other positions and advice.
//
// Nothing here prints. Message.Error gives the plain text that every tool of
// this module shows; colour and terminals belong to cmd/mscclsh.
//
// diag imports nothing of this module.
package diag

import (
	"errors"
	"fmt"
	"strings"
)

// Pos is a place in a source file. Line and Col count from 1; Col counts
// bytes, as Go's tools do. The zero Pos means "nowhere in particular".
type Pos struct {
	File string
	Line int32
	Col  int32
}

// IsValid reports whether p names a file or a line.
func (p Pos) IsValid() bool { return p.File != "" || p.Line > 0 }

// String is file:line:col, leaving out what is unknown.
func (p Pos) String() string {
	switch {
	case !p.IsValid():
		return "-"
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Severity orders messages; Error makes a program wrong.
type Severity uint8

// The severities, from harmless to fatal.
const (
	Info Severity = iota
	Warning
	Error
)

// String is the word printed before a message's text; Error has none, as in
// Go's own tools.
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	}
	return "error"
}

// Note is one more place that explains a Message. Pos may be invalid.
type Note struct {
	Pos  Pos
	Text string
}

// Message is one finding. Text says what is wrong in one sentence without a
// full stop; Suggestion says what would be right, and may name a position.
type Message struct {
	Pos        Pos
	Severity   Severity
	Code       string // stable, kebab-case: "stale-reference"
	Text       string
	Notes      []Note
	Suggestion string
}

// Error renders the message as plain text: the position and what is wrong on
// the first line, each note and then the suggestion indented on lines of their
// own. It makes *Message an error.
func (m *Message) Error() string {
	var b strings.Builder
	if m.Pos.IsValid() {
		b.WriteString(m.Pos.String())
		b.WriteString(": ")
	}
	if m.Severity != Error {
		b.WriteString(m.Severity.String())
		b.WriteString(": ")
	}
	b.WriteString(m.Text)
	for _, n := range m.Notes {
		b.WriteString("\n    ")
		if n.Pos.IsValid() {
			b.WriteString(n.Pos.String())
			b.WriteString(": ")
		}
		b.WriteString(n.Text)
	}
	if m.Suggestion != "" {
		b.WriteString("\n    ")
		b.WriteString(m.Suggestion)
	}
	return b.String()
}

// Errorf makes an error message with a formatted text.
func Errorf(pos Pos, code, format string, args ...any) *Message {
	return &Message{Pos: pos, Severity: Error, Code: code, Text: fmt.Sprintf(format, args...)}
}

// Warningf makes a warning with a formatted text.
func Warningf(pos Pos, code, format string, args ...any) *Message {
	return &Message{Pos: pos, Severity: Warning, Code: code, Text: fmt.Sprintf(format, args...)}
}

// Suggest sets the advice and returns m, so that calls chain.
func (m *Message) Suggest(format string, args ...any) *Message {
	m.Suggestion = fmt.Sprintf(format, args...)
	return m
}

// Note adds a note and returns m, so that calls chain.
func (m *Message) Note(pos Pos, format string, args ...any) *Message {
	m.Notes = append(m.Notes, Note{Pos: pos, Text: fmt.Sprintf(format, args...)})
	return m
}

// List is several messages as one error, in the order they were found.
type List []*Message

// Error renders all messages, one after another.
func (l List) Error() string {
	parts := make([]string, len(l))
	for i, m := range l {
		parts[i] = m.Error()
	}
	return strings.Join(parts, "\n")
}

// HasErrors reports whether any message is an Error.
func (l List) HasErrors() bool {
	for _, m := range l {
		if m.Severity == Error {
			return true
		}
	}
	return false
}

// Messages takes the messages out of an error: a *Message, a List, or any
// error wrapping one of them. Other errors give one message without a position.
func Messages(err error) List {
	if err == nil {
		return nil
	}
	var l List
	if errors.As(err, &l) {
		return l
	}
	var m *Message
	if errors.As(err, &m) {
		return List{m}
	}
	return List{{Severity: Error, Text: err.Error()}}
}
