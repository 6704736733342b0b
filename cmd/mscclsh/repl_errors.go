package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// toldError is an error that has been printed already.
type toldError struct{ err error }

func (e *toldError) Error() string { return e.err.Error() }
func (e *toldError) Unwrap() error { return e.err }

// withCode gives an error of a statement its exit code, as a script's have.
func withCode(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &codedError{exitInterrupted, err}
	}
	for _, m := range diag.Messages(err) {
		switch m.Code {
		case "internal":
			return &codedError{exitMachine, err}
		case "bad-value":
			return &codedError{exitCall, err}
		}
	}
	return err
}

// tell prints an error, unless that has happened.
func (s *Shell) tell(ctx context.Context, err error) {
	var told *toldError
	if !errors.As(err, &told) && !errors.Is(err, errReported) {
		s.told(ctx, err)
	}
}

// told prints an error with the line that it is about and a caret below the place.
func (s *Shell) told(ctx context.Context, err error) {
	s.progress.begin("")
	w := s.errorWriter()
	if ctx.Err() != nil {
		fmt.Fprintln(w, s.errStyle.bad.Render("interrupted")+": the session is as it was before")
		return
	}
	for _, m := range diag.Messages(err) {
		first, rest, _ := strings.Cut(m.Error(), "\n")
		head := *m
		head.Notes, head.Suggestion = nil, ""
		if first != head.Error() { // a text of several lines
			writeMessages(w, s.errStyle, diag.List{m})
			continue
		}
		writeMessages(w, s.errStyle, diag.List{&head})
		s.caret(w, m.Pos)
		if rest != "" {
			fmt.Fprintln(w, rest)
		}
	}
}

// caret prints the line of a position and points at the column.
func (s *Shell) caret(w io.Writer, p diag.Pos) {
	line, ok := s.source(p)
	if !ok || p.Col < 1 {
		return
	}
	defer s.exact()()
	at := min(int(p.Col)-1, len(line))
	if _, narrow := s.out.(*wrapper); narrow {
		line, at = around(line, at, s.width-4)
	}
	var pad strings.Builder
	for _, c := range line[:at] {
		if c == '\t' {
			pad.WriteByte('\t')
		} else {
			pad.WriteString(strings.Repeat(" ", lipgloss.Width(string(c))))
		}
	}
	fmt.Fprintf(w, "    %s\n    %s%s\n", line, pad.String(), s.errStyle.bad.Render("^"))
}

// around is the part of a line around a byte of it that fits into a width, and where
// the byte is in it.
func around(line string, at, width int) (string, int) {
	if lipgloss.Width(line) <= width {
		return line, at
	}
	before, after := []rune(line[:at]), []rune(line[at:])
	if keep := width / 2; len(before) > keep {
		before = append([]rune("..."), before[len(before)-keep+3:]...)
	}
	if keep := width - len(before); len(after) > keep {
		after = append(after[:keep-3:keep-3], []rune("...")...)
	}
	return string(before) + string(after), len(string(before))
}

// exact lets lines out as they are until what it returns is called.
func (s *Shell) exact() func() {
	var list []*wrapper
	for _, w := range []io.Writer{s.out, s.err} {
		if x, ok := w.(*wrapper); ok && !x.exact {
			x.exact = true
			list = append(list, x)
		}
	}
	return func() {
		for _, x := range list {
			x.exact = false
		}
	}
}

// source is the line that a position names, if it is the session's or of a script
// that it loaded.
func (s *Shell) source(p diag.Pos) (string, bool) {
	lines := []string(nil)
	if p.File == shellFile {
		lines = s.lines
	}
	for i := range s.entries {
		if e := &s.entries[i]; e.kind == entryScript && e.file == p.File {
			lines = textLines(e.text)
		}
	}
	if s.trying != nil && s.trying.kind == entryScript && s.trying.file == p.File {
		lines = textLines(s.trying.text)
	}
	if p.Line < 1 || int(p.Line) > len(lines) {
		return "", false
	}
	return lines[p.Line-1], true
}
