package lsp

import (
	"testing"
	"unicode/utf8"
)

// The grin takes 4 bytes of UTF-8 and 2 units of UTF-16, é takes 2 and 1.
const grin = "a = \"\U0001F600é\"\r\nb\rc\n"

func TestPositions(t *testing.T) {
	x := newText(grin)
	for _, tt := range []struct {
		at     position
		enc    encoding
		offset int
	}{
		{position{0, 0}, utf16, 0},
		{position{0, 5}, utf16, 5},     // before the grin
		{position{0, 6}, utf16, 5},     // within it
		{position{0, 7}, utf16, 9},     // behind it
		{position{0, 8}, utf16, 11},    // behind é
		{position{0, 9}, utf16, 12},    // the line's end
		{position{0, 99}, utf16, 12},   // past it
		{position{0, 9}, utf8Units, 9}, // behind the grin
		{position{0, 7}, utf8Units, 5}, // within it
		{position{0, 11}, utf8Units, 11},
		{position{1, 0}, utf16, 14},
		{position{1, 1}, utf16, 15},
		{position{2, 0}, utf16, 16}, // after a lone CR
		{position{3, 0}, utf16, 18}, // after the last LF
		{position{4, 0}, utf16, 18}, // past the text
		{position{-1, 0}, utf16, 0},
	} {
		if got := x.offset(tt.at, tt.enc); got != tt.offset {
			t.Errorf("%s %v: got offset %d, want %d", tt.enc, tt.at, got, tt.offset)
		}
	}
	for _, tt := range []struct {
		offset int
		enc    encoding
		want   position
	}{
		{9, utf16, position{0, 7}}, {11, utf16, position{0, 8}}, {9, utf8Units, position{0, 9}}, {14, utf16, position{1, 0}},
		{16, utf16, position{2, 0}}, {18, utf16, position{3, 0}}, {99, utf16, position{3, 0}}, {-1, utf16, position{}},
	} {
		if got := x.position(tt.offset, tt.enc); got != tt.want {
			t.Errorf("%s offset %d: got %v, want %v", tt.enc, tt.offset, got, tt.want)
		}
	}
}

// Columns of diag count bytes, those of Starlark's parser characters.
func TestPlaces(t *testing.T) {
	x := newText(grin)
	for _, tt := range []struct {
		line, col   int32
		bytes, rune int
	}{{1, 1, 0, 0}, {1, 6, 5, 5}, {1, 7, 6, 9}, {1, 8, 7, 11}, {2, 1, 14, 14}, {0, 0, 0, 0}, {9, 1, 18, 18}, {2, 50, 15, 15}} {
		if got := x.place(tt.line, tt.col); got != tt.bytes {
			t.Errorf("place %d:%d: got %d, want %d", tt.line, tt.col, got, tt.bytes)
		}
		if got := x.runePlace(tt.line, tt.col); got != tt.rune {
			t.Errorf("runePlace %d:%d: got %d, want %d", tt.line, tt.col, got, tt.rune)
		}
	}
}

func TestApply(t *testing.T) {
	at := func(l, c, m, d int) *span { return &span{position{l, c}, position{m, d}} }
	for _, tt := range []struct {
		name, old string
		c         change
		enc       encoding
		want      string
	}{
		{"all", "a\nb", change{nil, "c"}, utf16, "c"},
		{"insert", "a\nb", change{at(1, 0, 1, 0), "x"}, utf16, "a\nxb"},
		{"delete a line", "a\nb\nc", change{at(0, 1, 1, 1), ""}, utf16, "a\nc"},
		{"behind a grin", "\U0001F600b", change{at(0, 2, 0, 3), "c"}, utf16, "\U0001F600c"},
		{"behind a grin in bytes", "\U0001F600b", change{at(0, 4, 0, 5), "c"}, utf8Units, "\U0001F600c"},
		{"the grin", "x\U0001F600y", change{at(0, 1, 0, 3), ""}, utf16, "xy"},
		{"at the end", "a", change{at(0, 1, 0, 1), "\nb"}, utf16, "a\nb"},
		{"past the end", "a", change{at(7, 3, 9, 9), "b"}, utf16, "ab"},
		{"backwards", "abc", change{at(0, 2, 0, 1), ""}, utf16, "ac"},
		{"CR LF", "a\r\nb\r\n", change{at(1, 0, 1, 1), "xy"}, utf16, "a\r\nxy\r\n"},
	} {
		if got := newText(tt.old).apply(tt.c, tt.enc).s; got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Every offset at which a character begins has a position of its own.
func FuzzPositions(f *testing.F) {
	f.Add(grin)
	f.Add("\r\r\n\n\xff\U0001F600")
	f.Fuzz(func(t *testing.T, s string) {
		x := newText(s)
		for i := 0; i <= len(s); {
			n := x.lineOf(i)
			if i <= x.starts[n]+len(x.line(n)) { // not within a line's end
				for _, e := range []encoding{utf16, utf8Units} {
					if got := x.offset(x.position(i, e), e); got != i {
						t.Fatalf("%s: offset %d of %q comes back as %d", e, i, s, got)
					}
				}
			}
			_, size := utf8.DecodeRuneInString(s[i:])
			i += max(size, 1)
		}
	})
}
