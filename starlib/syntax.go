package starlib

import (
	"bytes"
	"errors"
	"strings"

	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// syntaxErrors is what the parser has to say about a masked text.
func (in *interp) syntaxErrors(err error, m *masked) error {
	var e syntax.Error
	if !errors.As(err, &e) {
		return diag.Errorf(diag.Pos{File: in.o.File}, "syntax", "%s", err)
	}
	if m.inHead(at(e.Pos)) { // the parenthesis there is the masking's
		e.Msg = strings.Replace(e.Msg, "want ')'", "want ':'", 1)
	}
	got, want := expected(e.Msg)
	lines, before := splitLines(m.text), m.line-1
	e.Pos.Line -= before
	if got != "" && want != "primary expression" {
		e.Pos.Line, e.Pos.Col = tokenStart(lines, e.Pos.Line, e.Pos.Col, got)
	}
	a := advice(lines, e.Pos.Line, got)
	e.Pos.Line += before
	text := strings.TrimPrefix(e.Msg, "syntax error ")
	msg := diag.Errorf(in.pos(e.Pos), "syntax", "syntax error: %s", text)
	if a != "" {
		msg.Suggest("%s", a)
	}
	return msg
}

// expected takes "got X, want Y" apart, and finds X in "X does not associate with
// Y"; X is "" for other messages.
func expected(msg string) (got, want string) {
	if op, _, ok := strings.Cut(msg, " does not associate with "); ok {
		return op, ""
	}
	rest, ok := strings.CutPrefix(msg, "got ")
	if !ok {
		return "", ""
	}
	if i := strings.LastIndex(rest, ", want "); i >= 0 {
		return strings.Trim(rest[:i], "'"), rest[i+len(", want "):]
	}
	return "", ""
}

// tokenStart finds where the token begins that ends before the given place: the
// parser reports most unexpected tokens where they end. Lines and columns count
// from 1, columns in runes.
func tokenStart(lines [][]byte, line, col int32, got string) (int32, int32) {
	if line < 1 || int(line) > len(lines) {
		return line, col
	}
	if got == "newline" && col == 1 && line > 1 {
		return line - 1, int32(len([]rune(string(lines[line-2])))) + 1
	}
	text := []rune(string(lines[line-1]))
	end := int(col) - 1
	if end < 1 || end > len(text) {
		return line, col
	}
	start := end
	switch {
	case got == "string literal":
		quote := text[end-1]
		for start = end - 2; start >= 0 && (text[start] != quote || start > 0 && text[start-1] == '\\'); start-- {
		}
		if start < 0 || end-start == 2 && start > 0 && text[start-1] == quote {
			return line, col // it began on another line, or in three quotes
		}
	case got == "identifier" || strings.HasSuffix(got, " literal") || syntaxWord(got):
		for start > 0 && (isWordRune(text[start-1]) || got == "float literal" && text[start-1] == '.') {
			start--
		}
	case strings.HasSuffix(string(text[:end]), got):
		start = end - len([]rune(got))
	}
	return line, int32(start) + 1
}

func syntaxWord(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !isWordRune(r) }) < 0
}

func isWordRune(r rune) bool { return r > 127 || isWordByte(byte(r)) }

// instead says what a script does where Python has the word.
var instead = map[string]string{
	"assert": "if ...: fail(...) does what assert does",
	"class":  "struct(...) holds fields; collective(...) makes a collective",
	"del":    "dict.pop and list.pop remove entries",
	"from":   "load(\"file.star\", \"name\") takes names from another script",
	"global": "a function returns what it computes",
	"import": "the language's names need no import; load(\"file.star\", \"name\") takes those of another script",
	"is":     "== compares",
	"raise":  "fail(...) ends the script",
	"try":    "a script can't catch errors",
	"yield":  "a function returns a list",
	"**":     "1 << n is 2 to the n; math.pow(x, y) is for floats",
}

// advice is what to do about a construct of Python's that Starlark lacks.
func advice(lines [][]byte, line int32, got string) string {
	if a, ok := instead[got]; ok {
		return "Starlark has no " + got + ": " + a
	}
	if got == "indent" {
		return "no block begins before this line, so it can't be indented further"
	}
	if line >= 1 && int(line) <= len(lines) {
		first, _, _ := bytes.Cut(bytes.TrimSpace(lines[line-1]), []byte(" "))
		if string(first) == "assert" {
			return "Starlark has no assert: " + instead["assert"]
		}
	}
	return ""
}

// splitLines splits at every kind of line end that Starlark knows.
func splitLines(text []byte) [][]byte {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	return bytes.Split(text, []byte("\n"))
}
