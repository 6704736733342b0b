package ir

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// maxLine is the longest line, in bytes, that the text forms may have.
const maxLine = 4 << 20

// textReader hands out the lines of a text form and reads words from them. Its
// first error sticks: every method after it returns a zero value, so that a
// caller reads a whole line and looks at err once.
type textReader struct {
	file  string
	sc    *bufio.Scanner
	line  []byte
	num   int32 // number of line, from 1
	at    int   // bytes of line read
	again bool  // next hands out the present line once more
	err   *diag.Message

	buffers map[string]BufferID // scratch buffers by name
	files   map[string]string   // one string for each file name of positions
	here    bool                // a record without a position is where it was read
	pos     map[diag.Pos]PosID
	list    []diag.Pos
	lengths int   // numbers that runs have expanded to so far
	listed  int64 // chunks of the buffers in the header so far
	chunks  int64 // chunks of the GPUs so far
}

func newTextReader(r io.Reader, file string) *textReader {
	t := &textReader{file: file, sc: bufio.NewScanner(r), buffers: map[string]BufferID{},
		files: map[string]string{}, pos: map[diag.Pos]PosID{{}: 0}, list: []diag.Pos{{}}}
	t.sc.Buffer(make([]byte, 0, 64<<10), maxLine)
	return t
}

// next goes to the next line that is neither empty nor a comment. It reports
// false at the end and after an error.
func (t *textReader) next() bool {
	if t.err != nil {
		return false
	}
	if t.again {
		t.again, t.at = false, 0
		t.spaces()
		return true
	}
	for t.sc.Scan() {
		t.line = bytes.TrimRight(t.sc.Bytes(), " \t\r")
		t.num, t.at = t.num+1, 0
		t.spaces()
		if t.at < len(t.line) && t.line[t.at] != '#' {
			return true
		}
	}
	if err := t.sc.Err(); errors.Is(err, bufio.ErrTooLong) {
		t.num, t.at = t.num+1, 0
		t.failf("the line is longer than %d bytes", maxLine)
	} else if err != nil {
		t.failf("reading: %v", err)
	}
	return false
}

// failf records an error at the present place, unless there is one already.
func (t *textReader) failf(format string, args ...any) {
	if t.err == nil {
		pos := diag.Pos{File: t.file, Line: t.num, Col: int32(t.at) + 1}
		t.err = diag.Errorf(pos, "ir-syntax", format, args...)
	}
}

// fail takes over an error about the present line.
func (t *textReader) fail(err error) { t.failAt(diag.Pos{File: t.file, Line: t.num}, err) }

// failFile takes over an error about the file as a whole; it names the node.
func (t *textReader) failFile(err error) { t.failAt(diag.Pos{File: t.file}, err) }

func (t *textReader) failAt(pos diag.Pos, err error) {
	if err != nil && t.err == nil {
		t.err = diag.Errorf(pos, "ir-malformed", "%s", err.Error())
	}
}

// result turns the sticky error into an error, which must not be a typed nil.
func (t *textReader) result() error {
	if t.err != nil {
		return t.err
	}
	return nil
}

func (t *textReader) spaces() {
	for t.at < len(t.line) && (t.line[t.at] == ' ' || t.line[t.at] == '\t') {
		t.at++
	}
}

// rest is what is left of the line, for messages: cut short, and never empty.
func (t *textReader) rest() string {
	rest := t.line[min(t.at, len(t.line)):]
	if len(rest) == 0 {
		return "the end of the line"
	}
	if i := bytes.IndexByte(rest, ' '); i > 0 {
		rest = rest[:i]
	}
	return strconv.Quote(string(rest[:min(len(rest), 40)]))
}

// peek is the next byte after spaces, 0 at the end of the line.
func (t *textReader) peek() byte {
	t.spaces()
	if t.err != nil || t.at >= len(t.line) {
		return 0
	}
	return t.line[t.at]
}

// word reads letters, digits, '_' and '-'. The result is valid until the next
// line is read.
func (t *textReader) word() []byte {
	t.spaces()
	from := t.at
	for t.err == nil && t.at < len(t.line) && (isWordByte(t.line[t.at]) || t.line[t.at] == '-') {
		t.at++
	}
	return t.line[from:t.at]
}

// accept reads token if it is next, as a whole word where it is one.
func (t *textReader) accept(token string) bool {
	t.spaces()
	if t.err != nil || !bytes.HasPrefix(t.line[t.at:], []byte(token)) {
		return false
	}
	end := t.at + len(token)
	if isWordByte(token[len(token)-1]) && end < len(t.line) && (isWordByte(t.line[end]) || t.line[end] == '-') {
		return false
	}
	t.at = end
	return true
}

func (t *textReader) expect(token string) {
	if t.err == nil && !t.accept(token) {
		t.failf("got %s, want %q", t.rest(), token)
	}
}

// end checks that nothing is left of the line.
func (t *textReader) end() {
	if t.peek() != 0 {
		t.failf("got %s, want the end of the line", t.rest())
	}
}

// int64 reads a number from low to high.
func (t *textReader) int64(low, high int64) int64 {
	t.spaces()
	from := t.at
	if t.err != nil {
		return 0
	}
	if t.at < len(t.line) && t.line[t.at] == '-' {
		t.at++
	}
	for t.at < len(t.line) && t.line[t.at] >= '0' && t.line[t.at] <= '9' {
		t.at++
	}
	text := t.line[from:t.at]
	n, err := parseInt(text)
	if err != nil || n < low || n > high {
		t.at = from
		if low == high {
			t.failf("got %s, want %d", t.rest(), low)
		}
		t.failf("got %s, want a number from %d to %d", t.rest(), low, high)
		return 0
	}
	return n
}

// parseInt is strconv.ParseInt without the conversion to a string for the short
// numbers that files are full of.
func parseInt(text []byte) (int64, error) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return strconv.ParseInt(string(text), 10, 64)
	}
	n := int64(0)
	for _, c := range digits {
		n = 10*n + int64(c-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, nil
}

// int32 reads a number from low to the largest int32.
func (t *textReader) int32(low int32) int32 { return int32(t.int64(int64(low), math.MaxInt32)) }

// any32 reads any int32.
func (t *textReader) any32() int32 { return t.int32(math.MinInt32) }

// hold adds so many chunks, declared at byte from of the line, to a total that is
// bounded.
func (t *textReader) hold(total *int64, from int, chunks int64) {
	if *total += chunks; t.err == nil && *total > MaxLocations {
		t.at = from
		t.failf("%d chunks in all buffers up to here, want at most %d", *total, MaxLocations)
	}
}

// number reads token and a number of at least low.
func (t *textReader) number(token string, low int32) int32 {
	t.expect(token)
	return t.int32(low)
}

// optional reads token and a number if token is next; standard if not.
func (t *textReader) optional(token string, low, standard int32) int32 {
	if !t.accept(token) {
		return standard
	}
	return t.int32(low)
}

// quoted reads a quoted string.
func (t *textReader) quoted() string {
	if t.peek() != '"' {
		t.failf("got %s, want a quoted string", t.rest())
		return ""
	}
	prefix, err := strconv.QuotedPrefix(string(t.line[t.at:]))
	if err != nil {
		t.failf("the quoted string does not end")
		return ""
	}
	text, err := strconv.Unquote(prefix)
	if err != nil {
		t.failf("the quoted string is malformed")
		return ""
	}
	t.at += len(prefix)
	return text
}

// runs reads value*times lists up to the end of the line: at least min values
// and at most max.
func (t *textReader) runs(low int32, atLeast, atMost int) []int32 {
	list := []int32{}
	for t.peek() != 0 {
		value, times := t.int32(low), int32(1)
		if t.accept("*") {
			times = t.int32(1)
		}
		t.lengths += int(times)
		if t.err == nil && (len(list)+int(times) > atMost || t.lengths > MaxLocations/8) {
			t.failf("the list has more than %d numbers", atMost)
		}
		if t.err != nil {
			return nil
		}
		for range times {
			list = append(list, value)
		}
	}
	if len(list) < atLeast {
		t.failf("got %d numbers, want %d", len(list), atLeast)
	}
	return list
}

// position reads " ; file:line:col" at the end of a line, and the end.
func (t *textReader) position() PosID {
	if t.peek() == 0 {
		return t.ownPosition()
	}
	t.expect(";")
	if t.at < len(t.line) && t.line[t.at] == ' ' {
		t.at++
	}
	if t.err != nil {
		return 0
	}
	var p diag.Pos
	if t.peek() == '"' {
		p.File = t.quoted()
	} else {
		name := t.line[t.at:]
		for range 2 {
			if i := bytes.LastIndexByte(name, ':'); i >= 0 {
				name = name[:i]
			}
		}
		p.File = t.fileName(name)
		t.at += len(name)
	}
	t.expect(":")
	p.Line = t.int32(0)
	t.expect(":")
	p.Col = t.int32(0)
	t.end()
	return t.intern(p)
}

// ownPosition is where the line's record begins, if that is to count.
func (t *textReader) ownPosition() PosID {
	if !t.here || t.err != nil {
		return 0
	}
	indent := len(t.line) - len(bytes.TrimLeft(t.line, " \t"))
	t.list = append(t.list, diag.Pos{File: t.file, Line: t.num, Col: int32(indent) + 1})
	return PosID(len(t.list) - 1)
}

func (t *textReader) fileName(name []byte) string {
	if s, ok := t.files[string(name)]; ok {
		return s
	}
	s := string(name)
	t.files[s] = s
	return s
}

func (t *textReader) intern(p diag.Pos) PosID {
	if t.err != nil {
		return 0
	}
	if !p.IsValid() {
		return 0
	}
	id, ok := t.pos[p]
	if !ok {
		id = PosID(len(t.list))
		t.list = append(t.list, p)
		t.pos[p] = id
	}
	return id
}

// place reads buffer[index]; index may be any number.
func (t *textReader) place() Place {
	var p Place
	if t.peek() == '"' {
		p.Buf = t.scratch(t.quoted())
	} else {
		from := t.at
		for t.at < len(t.line) && isWordByte(t.line[t.at]) {
			t.at++
		}
		switch name := t.line[from:t.at]; {
		case len(name) == 1 && name[0] == 'i':
			p.Buf = Input
		case len(name) == 1 && name[0] == 'o':
			p.Buf = Output
		case t.err == nil:
			p.Buf = t.scratch(string(name))
		}
	}
	t.expect("[")
	p.Index = t.any32()
	t.expect("]")
	return p
}

// placeNext reports whether a place follows: a quoted name, or a word directly
// before a bracket.
func (t *textReader) placeNext() bool {
	if t.peek() == '"' {
		return true
	}
	i := t.at
	for i < len(t.line) && isWordByte(t.line[i]) {
		i++
	}
	return i > t.at && i < len(t.line) && t.line[i] == '['
}

func (t *textReader) scratch(name string) BufferID {
	b, ok := t.buffers[name]
	if !ok {
		t.failf("unknown buffer %q", name)
	}
	return b
}

// places reads [src] [-> dst] [xcount].
func (t *textReader) places() (src, dst Place, count int32) {
	src, dst = NoPlace, NoPlace
	if t.placeNext() {
		src = t.place()
	}
	if t.accept("->") {
		dst = t.place()
	}
	return src, dst, t.count()
}

// count reads xcount; 0 without one.
func (t *textReader) count() int32 {
	if t.peek() != 'x' {
		return 0
	}
	t.at++
	return t.any32()
}

func (t *textReader) stepKind() StepKind {
	name := t.word()
	for i, n := range stepNames {
		if string(name) == n {
			return StepKind(i)
		}
	}
	if t.err == nil {
		t.at -= len(name)
		_, err := ParseStepKind(string(name))
		t.failf("%v", err)
	}
	return 0
}
