package mscclxml

import (
	"math"
	"sort"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// source is a file's text with its lines.
type source struct {
	text  string
	file  string
	lines []int32 // where each line begins
}

func newSource(text, file string) *source {
	s := &source{text: text, file: file, lines: make([]int32, 1, strings.Count(text, "\n")+1)}
	for at := 0; ; {
		n := strings.IndexByte(text[at:], '\n')
		if n < 0 {
			return s
		}
		at += n + 1
		s.lines = append(s.lines, int32(at))
	}
}

// pos is the position of an offset.
func (s *source) pos(at int32) diag.Pos {
	line := sort.Search(len(s.lines), func(i int) bool { return s.lines[i] > at }) // 1 is the first
	col := at - s.lines[line-1] + 1
	return diag.Pos{File: s.file, Line: int32(min(line, math.MaxInt32)), Col: col}
}

// attribute is one attribute of an element; at is the offset of its name.
type attribute struct {
	key, value string
	at         int32
}

// attributes are those of one element, in the file's order.
type attributes []attribute

// find is the first attribute of a name.
func (a attributes) find(key string) (attribute, bool) {
	for i := range a {
		if a[i].key == key {
			return a[i], true
		}
	}
	return attribute{}, false
}

// get is the value of an attribute, "" if it isn't there.
func (a attributes) get(key string) string {
	v, _ := a.find(key)
	return v.value
}

func (a attributes) has(key string) bool {
	_, ok := a.find(key)
	return ok
}

// strtol is C's, with base 0: leading blanks, a sign, 0x and 0 as prefixes of
// base 16 and 8, and an end at the first character that doesn't fit. Values
// beyond int64 are its ends.
func strtol(s string) int64 {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	neg := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg, s = s[0] == '-', s[1:]
	}
	base := uint64(10)
	switch {
	case len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' && digit(s[2]) < 16:
		base, s = 16, s[2:]
	case s != "" && s[0] == '0':
		base = 8
	}
	n, limit := uint64(0), uint64(math.MaxInt64)
	if neg {
		limit++
	}
	for i := 0; i < len(s) && digit(s[i]) < base; i++ {
		if d := digit(s[i]); n > (limit-d)/base {
			n = limit
		} else {
			n = n*base + d
		}
	}
	if neg {
		return int64(-n)
	}
	return int64(n)
}

func digit(c byte) uint64 {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		return uint64(c|0x20-'a') + 10
	}
	return 99
}

// decimal is a whole number as people write it, in 64 bits.
func decimal(s string) (int64, bool) {
	neg := strings.HasPrefix(s, "-")
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 19 {
		return 0, false
	}
	n := uint64(0)
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		n = n*10 + uint64(digits[i]-'0')
	}
	if n > math.MaxInt64 {
		return 0, false
	}
	if neg {
		return -int64(n), true
	}
	return int64(n), true
}
