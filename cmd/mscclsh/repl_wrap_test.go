package main

import (
	"strings"
	"testing"
)

func TestFitLine(t *testing.T) {
	long := strings.Repeat("word ", 12) + "end" // 63 columns
	for _, c := range []struct {
		line  string
		width int
		want  string
	}{
		{"short", 40, "short"},
		{long, 63, long},
		{long, 60, strings.Repeat("word ", 11) + "word\n    end"},
		{"  " + long, 40, "  " + strings.TrimSuffix(strings.Repeat("word ", 7), " ") + "\n      " + strings.Repeat("word ", 5) + "end"},
		{"\x1b[1mbold\x1b[0m " + strings.Repeat("x", 35), 40, "\x1b[1mbold\x1b[0m " + strings.Repeat("x", 35)},
		{"  check     " + long, 60, "  check     " + strings.TrimSuffix(strings.Repeat("word ", 9), " ") + "\n" + strings.Repeat(" ", 12) + "word word word end"},
		{strings.Repeat(" ", 20) + "a   b" + strings.Repeat(" ", 20) + "c", 40, strings.Repeat(" ", 14) + "a   b" + strings.Repeat(" ", 20) + "c"},
		{"a   b" + strings.Repeat(" ", 40) + "c", 40, "a   b" + strings.Repeat(" ", 40) + "c"},
		{strings.Repeat("x", 50), 40, strings.Repeat("x", 50)},
		{"    \x1b[2m    a   b" + strings.Repeat(" ", 30) + "c\x1b[0m", 40, "\x1b[2m    a   b" + strings.Repeat(" ", 30) + "c\x1b[0m"},
		// A label of a report makes no table of its line.
		{"  check     " + long, 44, "  check     " + strings.TrimSuffix(strings.Repeat("word ", 6), " ") + "\n" + strings.Repeat(" ", 12) + strings.TrimSuffix(strings.Repeat("word ", 6), " ") + "\n" + strings.Repeat(" ", 12) + "end"},
		{"  refused   by " + long, 70, "  refused   by " + strings.TrimSuffix(strings.Repeat("word ", 11), " ") + "\n" + strings.Repeat(" ", 12) + "word end"},
		{"  check     a   b" + strings.Repeat(" ", 40) + "c", 40, "  check     a   b" + strings.Repeat(" ", 40) + "c"},
		{long, 10, long}, // too narrow for anything to help
	} {
		if got := fitLine(c.line, c.width); got != c.want {
			t.Errorf("%q in %d:\n got %q\nwant %q", c.line, c.width, got, c.want)
		}
	}
}

// Lines come out whole, in whatever pieces they are written.
func TestWrapper(t *testing.T) {
	var b strings.Builder
	x := &wrapper{w: &b, width: 40}
	for _, piece := range []string{"one", " two\nthr", "ee\n", "rest"} {
		if n, err := x.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if b.String() != "one two\nthree\n" {
		t.Errorf("got %q", b.String())
	}
	x.Flush()
	x.exact = true
	if _, err := x.Write([]byte(strings.Repeat("y ", 40))); err != nil {
		t.Fatal(err)
	}
	if want := "one two\nthree\nrest" + strings.Repeat("y ", 40); b.String() != want {
		t.Errorf("got %q", b.String())
	}
}
