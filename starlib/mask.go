package starlib

import (
	"bytes"
	"unicode/utf8"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// Starlark has no with statement. mask turns
//
//	with A as x, B:
//
// into the text
//
//	if ( A or x, B):
//
// which Starlark's parser accepts and which keeps every token in its line and
// column: "with" and "if (" are equally long, so are "as" and "or", and the
// closing parenthesis takes the place of the colon, which moves into the blank
// after it. lower then recognizes these ifs by their position and turns them
// into what with means.

// place is a line and a column, both from 1; the column counts runes, as
// Starlark's parser does.
type place struct{ line, col int32 }

// masked is a script whose with statements have been made parseable.
type masked struct {
	text  []byte
	line  int32          // of the first line of text in its file, from 1
	withs map[place]bool // where a masked with stands
	as    map[place]bool // where a masked as stands
	heads []head         // in order
}

// head is the text between a with and its colon.
type head struct{ from, to place }

// inHead reports whether p is in the head of a with, its colon included.
func (m *masked) inHead(p place) bool {
	for _, h := range m.heads {
		if !p.before(h.from) && !h.to.before(p) {
			return true
		}
	}
	return false
}

func (p place) before(q place) bool { return p.line < q.line || p.line == q.line && p.col < q.col }

// masker reads a script token by token, as far as finding with needs it.
type masker struct {
	file      string
	src       []byte
	out       []byte // what src[:i] became
	i         int    // next byte of src
	line      int32
	lineStart int

	depth      int  // open brackets
	lineBegins bool // only blanks so far on this logical line
	inHeader   bool // between a with and its colon
	header     place
	lambdas    int      // lambdas of the header whose colon is still to come
	last       diag.Pos // behind the last token of the header

	m masked
}

// mask makes the with statements of src parseable. The result has as many lines
// as src, and every token is where it was.
func mask(file string, src []byte) (*masked, error) { return maskFrom(file, src, 1) }

// maskFrom is mask for a part of a file that begins with the given line.
func maskFrom(file string, src []byte, line int32) (*masked, error) {
	k := &masker{file: file, src: src, line: line, lineBegins: true,
		m: masked{line: line, withs: map[place]bool{}, as: map[place]bool{}}}
	if i := bytes.IndexByte(src, 0); i >= 0 {
		return nil, k.zeroByte(i)
	}
	if !bytes.Contains(src, []byte("with")) {
		k.m.text = src
		return &k.m, nil
	}
	k.out = make([]byte, 0, len(src)+16)
	for k.i < len(k.src) {
		if err := k.token(); err != nil {
			return nil, err
		}
	}
	if k.inHeader {
		return nil, k.wantColon()
	}
	k.m.text = k.out
	return &k.m, nil
}

// token consumes one token, one blank or one line end.
func (k *masker) token() error {
	c := k.src[k.i]
	switch {
	case c == '\n' || c == '\r':
		if k.inHeader && k.depth == 0 {
			return k.wantColon()
		}
		k.newline()
		k.lineBegins = k.depth == 0
		return nil
	case c == ' ' || c == '\t':
		k.take(1)
		return nil
	case c == '#':
		for k.i < len(k.src) && !isLineEnd(k.src[k.i]) {
			k.take(1)
		}
		return nil
	case c == '\\' && k.i+1 < len(k.src) && isLineEnd(k.src[k.i+1]):
		k.take(1)
		k.newline()
		return nil
	}
	begins := k.lineBegins
	k.lineBegins = false
	defer func() { k.last = k.pos() }()
	switch {
	case c == '"' || c == '\'':
		k.quoted(c)
	case isWordByte(c):
		k.word(begins)
	case c == '(' || c == '[' || c == '{':
		k.depth++
		k.take(1)
	case c == ')' || c == ']' || c == '}':
		k.depth = max(k.depth-1, 0)
		k.take(1)
	case c == ':' && k.inHeader && k.depth == 0:
		return k.colon()
	default:
		k.take(1)
	}
	return nil
}

// word consumes an identifier, keyword or number.
func (k *masker) word(begins bool) {
	n := 1
	for k.i+n < len(k.src) && isWordByte(k.src[k.i+n]) {
		n++
	}
	switch w := string(k.src[k.i : k.i+n]); {
	case w == "with" && begins && k.depth == 0:
		k.inHeader, k.header, k.lambdas = true, k.here(), 0
		k.m.withs[k.header] = true
		k.put("if (", n)
	case w == "as" && k.inHeader && k.depth == 0:
		k.m.as[k.here()] = true
		k.put("or", n)
	default:
		if w == "lambda" && k.inHeader && k.depth == 0 {
			k.lambdas++
		}
		k.take(n)
	}
}

// colon ends the header of a with, unless it belongs to a lambda there.
func (k *masker) colon() error {
	if k.lambdas > 0 {
		k.lambdas--
		k.take(1)
		return nil
	}
	k.inHeader = false
	k.m.heads = append(k.m.heads, head{k.header, k.here()})
	if k.i+1 == len(k.src) || isLineEnd(k.src[k.i+1]) || k.src[k.i+1] == '#' {
		k.put("):", 1) // only a comment can follow, so that nothing moves
		return nil
	}
	if c := k.src[k.i+1]; c != ' ' && c != '\t' {
		return diag.Errorf(k.pos(), "syntax", "with: got %q after the colon, want a blank or a new line", rune(c))
	}
	k.put("):", 2)
	return nil
}

// quoted consumes a string literal; c is its quote.
func (k *masker) quoted(c byte) {
	triple := bytes.HasPrefix(k.src[k.i:], []byte{c, c, c})
	if triple {
		k.take(3)
	} else {
		k.take(1)
	}
	for k.i < len(k.src) {
		switch b := k.src[k.i]; {
		case b == '\\' && k.i+1 < len(k.src):
			k.take(1)
			if isLineEnd(k.src[k.i]) {
				k.newline()
			} else {
				k.take(1)
			}
		case isLineEnd(b):
			if !triple {
				return // an unterminated string: the parser will say so
			}
			k.newline()
		case triple && bytes.HasPrefix(k.src[k.i:], []byte{c, c, c}):
			k.take(3)
			return
		case !triple && b == c:
			k.take(1)
			return
		default:
			k.take(1)
		}
	}
}

// newline consumes one line end: LF, CR or CR LF, as Starlark's scanner does.
func (k *masker) newline() {
	n := 1
	if k.src[k.i] == '\r' && k.i+1 < len(k.src) && k.src[k.i+1] == '\n' {
		n = 2
	}
	k.take(n)
	k.line++
	k.lineStart = k.i
}

// take copies n bytes.
func (k *masker) take(n int) {
	k.out = append(k.out, k.src[k.i:k.i+n]...)
	k.i += n
}

// put writes s in place of n bytes.
func (k *masker) put(s string, n int) {
	k.out = append(k.out, s...)
	k.i += n
}

func (k *masker) here() place {
	return place{k.line, int32(utf8.RuneCount(k.src[k.lineStart:k.i])) + 1}
}

func (k *masker) pos() diag.Pos {
	return diag.Pos{File: k.file, Line: k.line, Col: int32(k.i-k.lineStart) + 1}
}

func (k *masker) wantColon() error {
	return diag.Errorf(k.last, "syntax", "with: got the end of the line, want ':'")
}

// zeroByte refuses the text from byte i on, which Starlark's parser would take for
// the end of the script.
func (k *masker) zeroByte(i int) error {
	for k.i < i {
		if isLineEnd(k.src[k.i]) {
			k.newline()
		} else {
			k.i++
		}
	}
	return diag.Errorf(k.pos(), "syntax", "syntax error: got a zero byte, which no script has").
		Suggest("the file was cut short, or is in another encoding than UTF-8")
}

func isLineEnd(c byte) bool { return c == '\n' || c == '\r' }

func isWordByte(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c >= utf8.RuneSelf
}
