package pyfront

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// tokenKind is what a token is.
type tokenKind uint8

const (
	endOfFile tokenKind = iota
	newline
	indent
	dedent
	name    // an identifier or a keyword, in text
	number  // in value: int64, *big.Int or float64
	quoted  // a string literal, in str
	operant // an operator or a bracket, in text
)

// token is one token of a script. line and col count from 1, col in runes, as
// Starlark's positions do.
type token struct {
	kind       tokenKind
	text       string
	value      any
	str        *stringToken
	line, col  int32
	start, end int // runes of the source
}

// stringToken is a string literal before its escapes are read.
type stringToken struct {
	raw, format bool
	from, to    int // the runes between the quotes
	line, col   int32
}

// fatal carries a message out of the scanner and the parser.
type fatal struct{ m *diag.Message }

// scanner cuts a part of a script into tokens.
type scanner struct {
	file      string
	src       []rune
	i, end    int // next rune, and where this scanner stops
	line, col int32

	depth   int   // open brackets
	indents []int // columns of the open blocks
	fresh   bool  // at the start of a line
	pending int   // dedents still to be given
	nested  bool  // inside a hole of an f-string: one expression, no lines
}

// decode reads a script as text.
func decode(file string, text []byte) ([]rune, *diag.Message) {
	if !utf8.Valid(text) {
		line, col, rest := int32(1), int32(1), text
		for len(rest) > 0 {
			r, n := utf8.DecodeRune(rest)
			if r == utf8.RuneError && n == 1 {
				break
			}
			rest, col = rest[n:], col+int32(n)
			if r == '\n' {
				line, col = line+1, 1
			}
		}
		return nil, diag.Errorf(diag.Pos{File: file, Line: line, Col: col}, "syntax", "syntax error: this is no UTF-8 text")
	}
	src := []rune(strings.TrimPrefix(string(text), "\ufeff"))
	return src, nil
}

func newScanner(file string, src []rune) *scanner {
	return &scanner{file: file, src: src, end: len(src), line: 1, col: 1, indents: []int{0}, fresh: true}
}

// at is the rune k after the next, 0 past the end.
func (s *scanner) at(k int) rune {
	if s.i+k < s.end {
		return s.src[s.i+k]
	}
	return 0
}

// skip passes n runes of one line.
func (s *scanner) skip(n int) { s.i, s.col = s.i+n, s.col+int32(n) }

// lineEnd passes one line end: LF, CR or CR LF.
func (s *scanner) lineEnd() {
	if s.at(0) == '\r' && s.at(1) == '\n' {
		s.i++
	}
	s.i++
	s.line, s.col = s.line+1, 1
}

// pos converts a place: diag counts bytes, the scanner runes.
func (s *scanner) pos(line, col int32) diag.Pos {
	return diag.Pos{File: s.file, Line: line, Col: byteColumn(s.src, line, col)}
}

// byteColumn counts the bytes before rune column col of a line.
func byteColumn(src []rune, line, col int32) int32 {
	at := int32(1)
	i := 0
	for ; at < line && i < len(src); i++ {
		if src[i] == '\n' || src[i] == '\r' && (i+1 == len(src) || src[i+1] != '\n') {
			at++
		}
	}
	bytes := int32(1)
	for k := int32(1); k < col; k++ {
		n := 1
		if i < len(src) && src[i] != '\n' {
			n = utf8.RuneLen(src[i])
			i++
		}
		bytes += int32(n)
	}
	return bytes
}

func (s *scanner) failf(line, col int32, format string, args ...any) {
	panic(fatal{diag.Errorf(s.pos(line, col), "syntax", "syntax error: "+format, args...)})
}

// next gives the next token.
func (s *scanner) next() token {
	if s.fresh && !s.nested {
		s.startLine()
	}
	if s.pending > 0 {
		s.pending--
		return s.tok(dedent, 0)
	}
	if s.pending < 0 {
		s.pending = 0
		return s.tok(indent, 0)
	}
	s.blanks()
	c := s.at(0)
	switch {
	case s.i >= s.end:
		return s.atEnd()
	case c == '\n' || c == '\r':
		t := s.tok(newline, 0)
		s.lineEnd()
		s.fresh = true
		return t
	case c == '"' || c == '\'':
		return s.quoted(0)
	case isNameStart(c):
		return s.word()
	case isDigit(c) || c == '.' && isDigit(s.at(1)):
		return s.number()
	}
	return s.operator()
}

// tok makes a token of the next n runes and passes them.
func (s *scanner) tok(kind tokenKind, n int) token {
	t := token{kind: kind, line: s.line, col: s.col, start: s.i, end: s.i + n, text: string(s.src[s.i : s.i+n])}
	s.skip(n)
	return t
}

// atEnd closes what is open at the end of the text.
func (s *scanner) atEnd() token {
	switch {
	case s.nested || s.depth > 0:
	case !s.fresh:
		s.fresh = true
		return s.tok(newline, 0)
	case len(s.indents) > 1:
		s.pending = len(s.indents) - 2
		s.indents = s.indents[:1]
		return s.tok(dedent, 0)
	}
	return s.tok(endOfFile, 0)
}

// startLine compares the next line's indentation with that of the open blocks.
// Lines without a token don't count.
func (s *scanner) startLine() {
	for {
		width := 0
		for s.at(0) == ' ' || s.at(0) == '\t' || s.at(0) == '\f' {
			if s.at(0) == '\t' {
				width |= 7
			}
			width++
			s.skip(1)
		}
		if s.at(0) == '#' {
			s.comment()
		}
		if c := s.at(0); s.i < s.end && (c == '\n' || c == '\r') {
			s.lineEnd()
			continue
		}
		if s.i < s.end {
			s.fresh = false
			s.indentTo(width)
		}
		return
	}
}

func (s *scanner) indentTo(width int) {
	top := len(s.indents) - 1
	if width > s.indents[top] {
		if top >= maxNesting {
			s.failf(s.line, s.col, "more than %d blocks are open", maxNesting)
		}
		s.indents = append(s.indents, width)
		s.pending = -1
		return
	}
	for ; s.indents[top] > width; top-- {
		s.pending++
	}
	if s.indents[top] != width {
		s.failf(s.line, s.col, "the indentation fits no block that is open")
	}
	s.indents = s.indents[:top+1]
}

func (s *scanner) comment() {
	for s.i < s.end && s.at(0) != '\n' && s.at(0) != '\r' {
		s.skip(1)
	}
}

// blanks passes what stands between two tokens.
func (s *scanner) blanks() {
	for s.i < s.end {
		switch c := s.at(0); {
		case c == ' ' || c == '\t' || c == '\f':
			s.skip(1)
		case c == '#' && !s.nested:
			s.comment()
		case (c == '\n' || c == '\r') && (s.depth > 0 || s.nested):
			s.lineEnd()
		case c == '\\' && (s.at(1) == '\n' || s.at(1) == '\r'):
			s.skip(1)
			s.lineEnd()
		default:
			return
		}
	}
}

func isNameStart(c rune) bool { return c == '_' || unicode.IsLetter(c) }
func isNamePart(c rune) bool {
	return isNameStart(c) || unicode.IsDigit(c) || unicode.Is(unicode.Mn, c)
}
func isDigit(c rune) bool { return '0' <= c && c <= '9' }

// word is a name, a keyword, or the prefix of a string.
func (s *scanner) word() token {
	n := 1
	for isNamePart(s.at(n)) {
		n++
	}
	if q := s.at(n); (q == '"' || q == '\'') && n <= 2 {
		switch strings.ToLower(string(s.src[s.i : s.i+n])) {
		case "r", "u", "f", "rf", "fr":
			return s.quoted(n)
		case "b", "br", "rb":
			panic(fatal{refusal(s.pos(s.line, s.col), "bytes literals", "a str does what scripts need")})
		}
	}
	return s.tok(name, n)
}

// quoted is a string literal whose quote stands after a prefix of n runes.
func (s *scanner) quoted(n int) token {
	t := token{kind: quoted, line: s.line, col: s.col, start: s.i}
	prefix := strings.ToLower(string(s.src[s.i : s.i+n]))
	q := s.at(n)
	width := 1
	if s.at(n+1) == q && s.at(n+2) == q {
		width = 3
	}
	s.skip(n + width)
	t.str = &stringToken{raw: strings.Contains(prefix, "r"), format: strings.Contains(prefix, "f"),
		from: s.i, line: s.line, col: s.col}
	for {
		c := s.at(0)
		switch {
		case s.i >= s.end || width == 1 && (c == '\n' || c == '\r'):
			s.failf(t.line, t.col, "the string that begins here doesn't end")
		case c == '\n' || c == '\r':
			s.lineEnd()
		case c == '\\':
			s.skip(1)
			if c := s.at(0); c == '\n' || c == '\r' {
				s.lineEnd()
			} else if s.i < s.end {
				s.skip(1)
			}
		case c == q && (width == 1 || s.at(1) == q && s.at(2) == q):
			t.str.to = s.i
			s.skip(width)
			t.end = s.i
			t.text = string(s.src[t.start:t.end])
			return t
		default:
			s.skip(1)
		}
	}
}

// number is an int or a float.
func (s *scanner) number() token {
	n := 0
	hex := s.at(0) == '0' && strings.ContainsRune("xXoObB", s.at(1)) && s.at(1) != 0
	for {
		c := s.at(n)
		switch {
		case isDigit(c) || c == '_' || unicode.IsLetter(c):
		case c == '.' && !hex:
		case (c == '+' || c == '-') && !hex && n > 0 && (s.at(n-1) == 'e' || s.at(n-1) == 'E'):
		default:
			return s.numberOf(n, hex)
		}
		n++
	}
}

func (s *scanner) numberOf(n int, prefixed bool) token {
	t := s.tok(number, n)
	bad := func() { s.failf(t.line, t.col, "%s is no number", t.text) }
	if strings.HasSuffix(strings.ToLower(t.text), "j") && !prefixed {
		panic(fatal{refusal(s.pos(t.line, t.col), "complex numbers", "")})
	}
	if strings.HasSuffix(t.text, "_") || strings.Contains(t.text, "__") || strings.Contains(t.text, "_.") || strings.Contains(t.text, "._") {
		bad()
	}
	text := strings.ReplaceAll(t.text, "_", "")
	if !prefixed && strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !strings.Contains(err.Error(), "range") || strings.Count(text, ".") > 1 {
			bad()
		}
		t.value = f
		return t
	}
	if !prefixed && len(text) > 1 && text[0] == '0' && strings.Trim(text, "0") != "" {
		bad()
	}
	x, ok := new(big.Int).SetString(strings.TrimLeft(text[:len(text)-1], "0")+text[len(text)-1:], 10)
	if prefixed {
		x, ok = new(big.Int).SetString(text, 0)
	}
	if !ok {
		bad()
	}
	if x.IsInt64() {
		t.value = x.Int64()
	} else {
		t.value = x
	}
	return t
}

// operators from the longest to the shortest.
var operators = [...][]string{
	{"**=", "//=", ">>=", "<<=", "..."},
	{"**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=", ":="},
	{"+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "="},
}

func (s *scanner) operator() token {
	for k, list := range operators {
		n := len(operators) - k
		if s.i+n > s.end {
			continue
		}
		text := string(s.src[s.i : s.i+n])
		for _, op := range list {
			if op != text {
				continue
			}
			switch op {
			case "(", "[", "{":
				if s.depth++; s.depth > maxNesting {
					s.failf(s.line, s.col, "more than %d brackets are open", maxNesting)
				}
			case ")", "]", "}":
				s.depth = max(s.depth-1, 0)
			}
			return s.tok(operant, n)
		}
	}
	if s.nested && s.at(0) == '!' {
		return s.tok(operant, 1)
	}
	s.failf(s.line, s.col, "got %s, which begins no token", quotedRune(s.at(0)))
	return token{}
}

func quotedRune(c rune) string {
	if unicode.IsPrint(c) {
		return fmt.Sprintf("'%c'", c)
	}
	return fmt.Sprintf("U+%04X", c)
}

// position is a token's place for the syntax tree.
func position(file *string, line, col int32) syntax.Position {
	return syntax.MakePosition(file, line, col)
}
