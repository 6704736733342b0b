package plan

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// maxDepth is how deeply arrays and objects may be nested. Plans need 8.
const maxDepth = 64

// scanner reads JSON from memory in one pass, value by value as its caller asks
// for them, and knows the line and column of each. Its first error sticks:
// methods then return zero values, so callers look at err once.
type scanner struct {
	data  []byte
	at    int
	line  int32
	bol   int // offset at which the line begins
	depth int
	file  string
	err   *diag.Message
}

func newScanner(data []byte, file string) *scanner {
	return &scanner{data: bytes.TrimPrefix(data, []byte("\ufeff")), line: 1, file: file}
}

// pos is the place of the next byte. Raw line breaks are in no JSON token, so
// spaces alone move it from line to line.
func (s *scanner) pos() diag.Pos {
	s.spaces()
	return diag.Pos{File: s.file, Line: s.line, Col: clamp32(s.at - s.bol + 1)}
}

func clamp32(n int) int32 { return int32(min(n, math.MaxInt32)) }

func (s *scanner) spaces() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case '\n':
			s.line++
			s.bol = s.at + 1
		case ' ', '\t', '\r':
		default:
			return
		}
		s.at++
	}
}

func (s *scanner) failf(code, format string, args ...any) {
	if s.err == nil {
		s.err = diag.Errorf(s.pos(), code, format, args...)
	}
}

func (s *scanner) failAt(pos diag.Pos, code, format string, args ...any) {
	if s.err == nil {
		s.err = diag.Errorf(pos, code, format, args...)
	}
}

// peek is the next byte after spaces, 0 at the end and after an error.
func (s *scanner) peek() byte {
	s.spaces()
	if s.err != nil || s.at >= len(s.data) {
		return 0
	}
	return s.data[s.at]
}

// got describes what comes next, for messages.
func (s *scanner) got() string {
	s.spaces()
	if s.at >= len(s.data) {
		return "the end of the file"
	}
	end := s.at + 1
	for end < len(s.data) && end < s.at+20 && isToken(s.data[end-1]) && isToken(s.data[end]) {
		end++
	}
	switch s.data[s.at] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	}
	return strconv.Quote(string(s.data[s.at:end]))
}

func isToken(c byte) bool {
	return c == '-' || c == '+' || c == '.' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (s *scanner) expect(c byte, want string) bool {
	if s.peek() != c {
		s.failf("plan-syntax", "got %s, want %s", s.got(), want)
		return false
	}
	s.at++
	return true
}

// object reads an object. Field is called with each key and must read its value,
// or report false for a key that means nothing here. A key that means something
// must not come twice.
func (s *scanner) object(what string, field func(key string) bool) {
	if !s.expect('{', what) || !s.enter() {
		return
	}
	var seen []string
	for more := s.peek() != '}'; more && s.err == nil; more = s.peek() == ',' && s.step() {
		pos := s.pos()
		key := s.str("a key")
		if !s.expect(':', "a colon") {
			return
		}
		if !field(key) {
			s.skip()
			continue
		}
		for _, k := range seen {
			if k == key {
				s.failAt(pos, "plan-syntax", "second %q in one object", key)
			}
		}
		seen = append(seen, key)
	}
	s.leave('}')
}

// array reads a list. Elem is called before each element and must read it.
func (s *scanner) array(what string, elem func()) {
	if !s.expect('[', what) || !s.enter() {
		return
	}
	for more := s.peek() != ']'; more && s.err == nil; more = s.peek() == ',' && s.step() {
		elem()
	}
	s.leave(']')
}

func (s *scanner) step() bool {
	s.at++
	return true
}

func (s *scanner) enter() bool {
	s.depth++
	if s.depth > maxDepth {
		s.failf("plan-syntax", "nested more than %d deep", maxDepth)
	}
	return s.err == nil
}

func (s *scanner) leave(c byte) {
	s.depth--
	s.expect(c, "a comma or "+strconv.Quote(string(c)))
}

// str reads a string.
func (s *scanner) str(what string) string {
	if s.peek() != '"' {
		s.failf("plan-syntax", "got %s, want %s", s.got(), what)
		return ""
	}
	end := s.at + 1
	for escaped := false; ; end++ {
		if end >= len(s.data) || s.data[end] < ' ' {
			s.failf("plan-syntax", "the string does not end")
			return ""
		}
		if !escaped && s.data[end] == '"' {
			break
		}
		escaped = !escaped && s.data[end] == '\\'
	}
	raw := s.data[s.at+1 : end]
	text, ok := string(raw), true
	if bytes.IndexByte(raw, '\\') >= 0 {
		text, ok = unescape(raw)
	}
	if !ok || !utf8.ValidString(text) {
		s.failf("plan-syntax", "the string is malformed")
		return ""
	}
	s.at = end + 1
	return text
}

// unescape resolves JSON's escapes; half a surrogate pair becomes U+FFFD.
func unescape(raw []byte) (string, bool) {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++ // str ends no string on a backslash
		if k := bytes.IndexByte([]byte(`"\/bfnrt`), raw[i]); k >= 0 {
			out = append(out, "\"\\/\b\f\n\r\t"[k])
			continue
		}
		r, ok := hex4(raw[i:])
		if !ok {
			return "", false
		}
		i += 4
		if low, ok := surrogate(r, raw[i+1:]); ok {
			r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
			i += 6
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out), true
}

// hex4 reads u and four digits.
func hex4(b []byte) (rune, bool) {
	if len(b) < 5 || b[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[1:5]), 16, 32)
	return rune(n), err == nil
}

func surrogate(high rune, rest []byte) (rune, bool) {
	if high < 0xd800 || high > 0xdbff || len(rest) < 6 || rest[0] != '\\' {
		return 0, false
	}
	low, ok := hex4(rest[1:])
	return low, ok && low >= 0xdc00 && low <= 0xdfff
}

// number reads an integer from low to high.
func (s *scanner) number(low, high uint64) uint64 {
	s.spaces()
	from := s.at
	end := from
	for end < len(s.data) && isToken(s.data[end]) {
		end++
	}
	text := s.data[from:end]
	if s.err != nil {
		return 0
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n < low || n > high || len(text) > 1 && (text[0] == '0' || text[0] == '+') {
		s.failf("plan-value", "got %s, want a number from %d to %d", s.got(), low, high)
		return 0
	}
	s.at = end
	return n
}

// count reads an int32 of at least low.
func (s *scanner) count(low int32) int32 { return int32(s.number(uint64(low), math.MaxInt32)) }

// counts reads a list of int32.
func (s *scanner) counts(what string) []int32 {
	var list []int32
	s.array(what, func() { list = append(list, s.count(0)) })
	return list
}

// bool reads true or false.
func (s *scanner) bool() bool {
	switch {
	case s.err == nil && s.word("true"):
		return true
	case s.err == nil && s.word("false"):
	default:
		s.failf("plan-value", "got %s, want true or false", s.got())
	}
	return false
}

func (s *scanner) word(w string) bool {
	s.spaces()
	if !bytes.HasPrefix(s.data[s.at:], []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}

// oneOf reads one of the words of a table and returns its index.
func (s *scanner) oneOf(what string, words []string) int {
	pos := s.pos()
	w := s.str(what)
	for i, k := range words {
		if k == w && k != "" {
			return i
		}
	}
	s.failAt(pos, "plan-value", "got %q, want %s", w, what)
	return 0
}

// skip reads any value and forgets it.
func (s *scanner) skip() {
	switch c := s.peek(); {
	case c == '{':
		s.object("an object", func(string) bool { return false })
	case c == '[':
		s.array("a list", s.skip)
	case c == '"':
		s.str("a string")
	case s.err == nil && (s.word("true") || s.word("false") || s.word("null")):
	default:
		s.float()
	}
}

// float reads any JSON number and forgets it.
func (s *scanner) float() {
	end := s.at
	digits := func() bool {
		from := end
		for end < len(s.data) && s.data[end] >= '0' && s.data[end] <= '9' {
			end++
		}
		return end > from
	}
	next := func(set string) bool {
		if end < len(s.data) && bytes.IndexByte([]byte(set), s.data[end]) >= 0 {
			end++
			return true
		}
		return false
	}
	next("-")
	ok := next("0") || digits()
	if ok && next(".") {
		ok = digits()
	}
	if ok && next("eE") {
		next("+-")
		ok = digits()
	}
	if !ok || end < len(s.data) && isToken(s.data[end]) {
		s.failf("plan-syntax", "got %s, want a value", s.got())
		return
	}
	s.at = end
}

// finish checks that nothing follows.
func (s *scanner) finish() {
	if s.peek() != 0 || s.err == nil && s.at < len(s.data) {
		s.failf("plan-syntax", "got %s after the plan, want the end of the file", s.got())
	}
}
