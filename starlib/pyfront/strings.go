package pyfront

import (
	"strconv"
	"strings"

	"go.starlark.net/syntax"
)

// strings reads adjacent string literals as one.
func (p *parser) strings() syntax.Expr {
	pos := p.pos()
	parts := &pieces{pos: pos}
	for n := 0; p.t.kind == quoted; n++ {
		p.chain(n)
		t := p.advance()
		if t.str.format {
			p.formatted(parts, &t)
			continue
		}
		sub := p.sub(t.str)
		var text strings.Builder
		for sub.i < sub.end {
			p.char(sub, &text, t.str.raw)
		}
		parts.text(text.String())
	}
	return parts.expr()
}

// pieces are what an f-string is put together from.
type pieces struct {
	pos  syntax.Position
	list []syntax.Expr
}

// text adds literal text, to that before it if there is any.
func (l *pieces) text(s string) {
	if n := len(l.list); n > 0 {
		if lit, ok := l.list[n-1].(*syntax.Literal); ok {
			lit.Value = lit.Value.(string) + s
			return
		}
	}
	if s != "" || len(l.list) == 0 {
		l.list = append(l.list, literal(l.pos, s))
	}
}

func (l *pieces) expr() syntax.Expr {
	if len(l.list) == 0 {
		return literal(l.pos, "")
	}
	if lit, ok := l.list[0].(*syntax.Literal); ok && len(l.list) == 1 {
		return lit
	}
	// Calls have a limited number of arguments, lists don't.
	return call(l.pos, "str", &syntax.ListExpr{Lbrack: l.pos, List: l.list, Rbrack: l.pos})
}

// sub scans the inside of a string.
func (p *parser) sub(t *stringToken) *scanner {
	return &scanner{file: p.s.file, src: p.s.src, i: t.from, end: t.to, line: t.line, col: t.col, nested: true}
}

// char reads one character of a string, or one escape.
func (p *parser) char(s *scanner, out *strings.Builder, raw bool) {
	c := s.at(0)
	switch {
	case c == '\n' || c == '\r':
		out.WriteByte('\n')
		s.lineEnd()
	case c == '\\' && !raw:
		p.escape(s, out)
	default:
		out.WriteRune(c)
		s.skip(1)
	}
}

var escapes = map[rune]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"",
	'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v"}

func (p *parser) escape(s *scanner, out *strings.Builder) {
	line, col := s.line, s.col
	s.skip(1)
	c := s.at(0)
	if text, ok := escapes[c]; ok {
		out.WriteString(text)
		s.skip(1)
		return
	}
	switch c {
	case '\n', '\r':
		s.lineEnd()
	case 'x', 'u', 'U':
		n := map[rune]int{'x': 2, 'u': 4, 'U': 8}[c]
		s.skip(1)
		p.codePoint(s, out, n, 16, line, col)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n := 1
		for n < 3 && '0' <= s.at(n) && s.at(n) <= '7' {
			n++
		}
		p.codePoint(s, out, n, 8, line, col)
	case 'N':
		p.refuse(position(p.file, line, col), "escapes of named characters", "write the character itself")
	default: // Python keeps the backslash of what is no escape
		out.WriteByte('\\')
	}
}

func (p *parser) codePoint(s *scanner, out *strings.Builder, digits, base int, line, col int32) {
	if s.i+digits > s.end {
		s.failf(line, col, "this escape needs %d digits", digits)
	}
	v, err := strconv.ParseUint(string(s.src[s.i:s.i+digits]), base, 32)
	if err != nil || v > 0x10FFFF || v >= 0xD800 && v < 0xE000 {
		s.failf(line, col, "this escape names no character")
	}
	out.WriteRune(rune(v))
	s.skip(digits)
}

// formatted reads an f-string: its text, and its holes as expressions at their
// own places.
func (p *parser) formatted(parts *pieces, t *token) {
	if p.depth++; p.depth > maxDepth {
		p.s.failf(t.line, t.col, "expressions are nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	p.template(parts, p.sub(t.str), t.str.raw, false)
}

// template reads text with holes. In a format specification it ends before the
// closing brace.
func (p *parser) template(parts *pieces, s *scanner, raw, spec bool) {
	var text strings.Builder
	for s.i < s.end {
		switch c := s.at(0); {
		case (c == '{' || c == '}') && s.at(1) == c && !spec:
			text.WriteRune(c)
			s.skip(2)
		case c == '{':
			parts.text(text.String())
			text.Reset()
			p.hole(parts, s, raw, spec)
		case c == '}' && spec:
			parts.text(text.String())
			return
		case c == '}':
			s.failf(s.line, s.col, "a single '}' in an f-string; write '}}'")
		default:
			p.char(s, &text, raw)
		}
	}
	parts.text(text.String())
}

// hole reads {expression!conversion:specification}.
func (p *parser) hole(parts *pieces, s *scanner, raw, inSpec bool) {
	outer, next := p.s, p.t
	defer func() { p.s, p.t = outer, next }()
	pos := position(p.file, s.line, s.col)
	s.skip(1)
	p.s = s
	p.advance()
	x := p.unstarred(p.tests())
	if p.is("=") {
		p.refuse(p.pos(), "= in an f-string", "write the name as text")
	}
	conversion := ""
	if p.is("!") {
		p.advance()
		if p.t.kind != name || p.t.text != "r" && p.t.text != "s" && p.t.text != "a" {
			p.unexpected("r, s or a")
		}
		conversion = p.advance().text
	}
	var spec syntax.Expr = literal(pos, "")
	switch {
	case p.is(":"): // the scanner stands right behind it
		if inSpec {
			p.refuse(p.pos(), "format specifications within format specifications", "")
		}
		inner := &pieces{pos: pos}
		p.template(inner, s, raw, true)
		spec = inner.expr()
		if s.at(0) != '}' {
			s.failf(pos.Line, pos.Col, "this '{' is not closed")
		}
		s.skip(1)
	case p.is("}"):
	default:
		p.unexpected("'}'")
	}
	parts.list = append(parts.list, call(pos, "format", x, literal(pos, conversion), spec))
}
