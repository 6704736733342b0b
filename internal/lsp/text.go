package lsp

import (
	"strings"
	"unicode/utf8"
)

// encoding is the unit in which a client counts within a line.
type encoding uint8

const (
	utf16 encoding = iota // what every client knows
	utf8Units
)

func (e encoding) String() string {
	if e == utf8Units {
		return "utf-8"
	}
	return "utf-16"
}

// width is how many units a character takes.
func (e encoding) width(r rune, size int) int {
	switch {
	case e == utf8Units:
		return size
	case r > 0xffff:
		return 2
	}
	return 1
}

// text is the immutable content of a document with its lines, which end in LF, CR
// or both, for the protocol as for Starlark. Offsets are bytes, from 0.
type text struct {
	s      string
	starts []int // offset of each line
}

func newText(s string) *text {
	t := &text{s: s, starts: []int{0}}
	for i := 0; i < len(s); i++ {
		if s[i] == '\n' || s[i] == '\r' && (i+1 == len(s) || s[i+1] != '\n') {
			t.starts = append(t.starts, i+1)
		}
	}
	return t
}

// line is line n, counted from 0, without its end.
func (t *text) line(n int) string {
	if n < 0 || n >= len(t.starts) {
		return ""
	}
	end := len(t.s)
	if n+1 < len(t.starts) {
		end = t.starts[n+1]
	}
	return strings.TrimRight(t.s[t.starts[n]:end], "\r\n")
}

// offset is where a position is; one that is past the end of its line or of the
// text is the end, and one within a character is the character's start.
func (t *text) offset(p position, e encoding) int {
	if p.Line < 0 {
		return 0
	}
	if p.Line >= len(t.starts) {
		return len(t.s)
	}
	line, units := t.line(p.Line), 0
	for i, r := range line {
		_, size := utf8.DecodeRuneInString(line[i:])
		if units += e.width(r, size); units > p.Character {
			return t.starts[p.Line] + i
		}
	}
	return t.starts[p.Line] + len(line)
}

// lineOf is the line of an offset, from 0.
func (t *text) lineOf(offset int) int {
	lo, hi := 0, len(t.starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; t.starts[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// position is the reverse of offset.
func (t *text) position(offset int, e encoding) position {
	offset = max(0, min(offset, len(t.s)))
	p := position{Line: t.lineOf(offset)}
	for i := t.starts[p.Line]; i < offset; {
		r, size := utf8.DecodeRuneInString(t.s[i:])
		p.Character += e.width(r, size)
		i += size
	}
	return p
}

func (t *text) span(from, to int, e encoding) span {
	return span{t.position(from, e), t.position(to, e)}
}

// place is the offset of a line and a column that count from 1, the column in
// bytes, as package diag has it.
func (t *text) place(line, col int32) int {
	if line < 1 {
		return 0
	}
	if int(line) > len(t.starts) {
		return len(t.s)
	}
	return t.starts[line-1] + min(max(int(col)-1, 0), len(t.line(int(line)-1)))
}

// runePlace is place for a column in characters, as Starlark's parser has it.
func (t *text) runePlace(line, col int32) int {
	text, bytes := t.line(int(line)-1), 0
	for range col - 1 {
		if bytes >= len(text) {
			break
		}
		_, n := utf8.DecodeRuneInString(text[bytes:])
		bytes += n
	}
	return t.place(line, int32(bytes)+1)
}

// apply makes the text that a change leaves.
func (t *text) apply(c change, e encoding) *text {
	if c.Range == nil {
		return newText(c.Text)
	}
	from, to := t.offset(c.Range.Start, e), t.offset(c.Range.End, e)
	if to < from {
		from, to = to, from
	}
	return newText(t.s[:from] + c.Text + t.s[to:])
}
