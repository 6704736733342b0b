package ir

import (
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// The words that open the text forms; docs/ir.md has the grammar.
const (
	chunkDAGWord = "chunkdag"
	instrDAGWord = "instrdag"
	programWord  = "program"
)

// flushAt is how many bytes a text writer gathers before it writes them.
const flushAt = 64 << 10

// textWriter gathers a text in buf and hands it on in large pieces. The first
// error sticks; everything after it is dropped.
type textWriter struct {
	w   io.Writer
	buf []byte
	err error
}

func newTextWriter(w io.Writer) *textWriter {
	return &textWriter{w: w, buf: make([]byte, 0, flushAt+4096)}
}

// endLine ends the line and writes what has gathered if that is enough.
func (t *textWriter) endLine() {
	t.buf = append(t.buf, '\n')
	if len(t.buf) >= flushAt {
		t.flush()
	}
}

func (t *textWriter) flush() {
	if t.err == nil && len(t.buf) > 0 {
		_, t.err = t.w.Write(t.buf)
	}
	t.buf = t.buf[:0]
}

func (t *textWriter) finish(what string) error {
	t.flush()
	if t.err != nil {
		return fmt.Errorf("writing the text of a %s: %w", what, t.err)
	}
	return nil
}

func (t *textWriter) str(s string) { t.buf = append(t.buf, s...) }

// num writes word, a space and n, each number of a line being named.
func (t *textWriter) num(word string, n int64) {
	t.buf = append(t.buf, word...)
	t.buf = strconv.AppendInt(t.buf, n, 10)
}

// runs writes a list of numbers as value*times, or value alone for one.
func (t *textWriter) runs(list []int32) {
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && list[j] == list[i] {
			j++
		}
		t.num(" ", int64(list[i]))
		if j-i > 1 {
			t.num("*", int64(j-i))
		}
		i = j
	}
}

// spec writes the header that the three forms share.
func (t *textWriter) spec(word string, s *Spec) {
	t.str(word)
	t.buf = append(t.buf, ' ')
	t.buf = strconv.AppendQuote(t.buf, s.Name)
	t.endLine()
	t.collective(s.Coll)
	t.topology(s.Topo)
	t.str("protocol " + s.Protocol.String())
	t.endLine()
	t.str("policy " + s.Policy.String())
	t.num(" instances ", int64(s.Instances))
	for _, f := range specFlags(s) {
		if *f.value {
			t.str(" " + f.word)
		}
	}
	t.endLine()
	for i := range s.Buffers {
		t.str("buffer ")
		t.buf = strconv.AppendQuote(t.buf, s.Buffers[i].Name)
		t.runs(s.Buffers[i].Chunks)
		t.endLine()
	}
}

type specFlag struct {
	word  string
	value *bool
}

// specFlags are the words of the policy line, for writer and parser alike.
func specFlags(s *Spec) [4]specFlag {
	return [...]specFlag{{"interleaved", &s.Interleaved}, {"fusion", &s.Fusion},
		{"dependence-nop", &s.DependenceNop}, {"check-xml", &s.CheckXML}}
}

func (t *textWriter) collective(c *Collective) {
	t.str("collective " + c.Kind.String())
	if c.Name != "" {
		t.str(" name ")
		t.buf = strconv.AppendQuote(t.buf, c.Name)
	}
	t.num(" ranks ", int64(c.Ranks))
	t.num(" factor ", int64(c.ChunkFactor))
	t.num(" split ", int64(c.Split))
	if c.Root != None {
		t.num(" root ", int64(c.Root))
	}
	if c.Peer != None {
		t.num(" peer ", int64(c.Peer))
	}
	if c.InPlace {
		t.str(" in-place")
	}
	if c.Kind == Custom && c.Custom.Open {
		t.str(" open")
	}
	t.endLine()
	if c.Kind == AllToAllV {
		for r := range int(c.Ranks) {
			t.num("counts ", int64(r))
			t.buf = append(t.buf, ':')
			t.runs(c.Counts[r*int(c.Ranks) : (r+1)*int(c.Ranks)])
			t.endLine()
		}
	}
	if c.Kind == Custom {
		t.custom(c.Custom)
	}
}

func (t *textWriter) custom(c *CustomSpec) {
	t.str("input")
	t.runs(c.Input)
	t.endLine()
	t.str("output")
	t.runs(c.Output)
	t.endLine()
	var bits []int32
	for r, row := range c.Holds {
		bits = bits[:0]
		for _, h := range row {
			bit := int32(0)
			if h {
				bit = 1
			}
			bits = append(bits, bit)
		}
		t.num("holds ", int64(r))
		t.buf = append(t.buf, ':')
		t.runs(bits)
		t.endLine()
	}
	for r, row := range c.Expect {
		for i, want := range row {
			if want == nil {
				continue // nothing is demanded
			}
			t.num("expect ", int64(r))
			t.num(" ", int64(i))
			t.buf = append(t.buf, ':')
			for _, w := range want {
				t.num(" ", int64(w.Rank))
				t.num(".", int64(w.Index))
			}
			t.endLine()
		}
	}
}

func (t *textWriter) topology(p *Topology) {
	if p == nil {
		t.str("topology none")
		t.endLine()
		return
	}
	t.str("topology ")
	t.buf = strconv.AppendQuote(t.buf, p.Name)
	t.num(" ranks ", int64(p.Ranks))
	if p.Bandwidth == nil {
		t.endLine()
		return
	}
	t.str(" links")
	t.endLine()
	n := int(p.Ranks)
	for src := range n {
		t.num("link ", int64(src))
		t.buf = append(t.buf, ':')
		for dst, gbps := range p.Bandwidth[src*n : (src+1)*n] {
			if gbps != 0 {
				t.num(" ", int64(dst))
				t.buf = append(t.buf, '=')
				t.buf = strconv.AppendFloat(t.buf, gbps, 'g', -1, 64)
			}
		}
		t.endLine()
	}
}

// appendPos writes the position of a node as " ; file:line:col", all three even
// where one is unknown, so that reading it back is exact. The zero Pos is left out.
func appendPos(dst []byte, s *Spec, id PosID) []byte {
	p := s.Pos(id)
	if !p.IsValid() {
		return dst
	}
	dst = append(dst, " ; "...)
	if barePosFile(p.File) {
		dst = append(dst, p.File...)
	} else {
		dst = strconv.AppendQuote(dst, p.File)
	}
	dst = append(dst, ':')
	dst = strconv.AppendInt(dst, int64(p.Line), 10)
	dst = append(dst, ':')
	return strconv.AppendInt(dst, int64(p.Col), 10)
}

// barePosFile reports whether a file name can stand in a line without quotes.
func barePosFile(name string) bool {
	if name == "" {
		return true
	}
	if name[0] == '"' || name[0] == ' ' || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// bufferWord is how a node names buffer b: i and o, the user's name where it is
// a plain word that nothing else means, or the quoted name.
func bufferWord(s *Spec, b BufferID) string {
	switch b {
	case Input:
		return "i"
	case Output:
		return "o"
	}
	name := s.BufferName(b)
	if bareBuffer(name) {
		return name
	}
	return strconv.Quote(name)
}

func bareBuffer(name string) bool {
	switch name {
	case "", "i", "o", "s", "input", "output":
		return false
	}
	for i := range len(name) {
		if !isWordByte(name[i]) || i == 0 && name[i] >= '0' && name[i] <= '9' {
			return false
		}
	}
	return true
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// bufferWords names buffers in nodes. All are resolved beforehand for writers of
// many nodes, each as it is asked for otherwise.
type bufferWords struct {
	spec *Spec
	all  []string
}

func allBufferWords(s *Spec) bufferWords {
	words := bufferWords{s, make([]string, max(len(s.Buffers), int(FirstScratch)))}
	for b := range words.all {
		words.all[b] = bufferWord(s, BufferID(b))
	}
	return words
}

// stepWords names the three buffers that a Program's steps know.
func stepWords() bufferWords { return bufferWords{nil, []string{"i", "o", "s"}} }

func (w bufferWords) of(b BufferID) string {
	switch {
	case b >= 0 && int(b) < len(w.all):
		return w.all[b]
	case b >= 0 && w.spec != nil:
		return bufferWord(w.spec, b)
	}
	return "?"
}

func appendPlace(dst []byte, words bufferWords, p Place) []byte {
	dst = append(dst, words.of(p.Buf)...)
	dst = append(dst, '[')
	dst = strconv.AppendInt(dst, int64(p.Index), 10)
	return append(dst, ']')
}

func appendLoc(dst []byte, words bufferWords, l Loc) []byte {
	dst = strconv.AppendInt(dst, int64(l.Rank), 10)
	dst = append(dst, '.')
	return appendPlace(dst, words, Place{l.Buf, l.Index})
}

// appendOpt writes word and n unless n is the default.
func appendOpt(dst []byte, word string, n, standard int32) []byte {
	if n == standard {
		return dst
	}
	dst = append(dst, word...)
	return strconv.AppendInt(dst, int64(n), 10)
}
