package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pieces hands out its strings one by one, as a terminal does.
type pieces struct{ list []string }

func (p *pieces) Close() error { return nil }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.list) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.list[0])
	if p.list[0] = p.list[0][n:]; p.list[0] == "" {
		p.list = p.list[1:]
	}
	return n, nil
}

func TestKeyFilter(t *testing.T) {
	long := strings.Repeat("x = 1\n", 200)
	for _, c := range []struct{ in, want string }{
		{"abc", "abc"},
		{"\x1b[1~a\x1b[4~", "\x1b[Ha\x1b[F"},
		{"\x1b[7~\x1b[8~", "\x1b[H\x1b[F"},
		{"\x1b[H\x1b[F\x1bOH\x1b[A\x1b[3~", "\x1b[H\x1b[F\x1bOH\x1b[A\x1b[3~"},
		{"\x1b[1;5D\x1b[1;5C\x1b[1;3C", "\x1bb\x1bf\x1bf"},
		{"a\x1b[5~b\x1b[6~c\x1b[2~d", "abcd"},
		{"\x1bb\x1b\x1b[1~", "\x1bb\x1b\x1b[H"},
		{"é\x1b[1~⏎", "é\x1b[H⏎"},
		{"\x1b[200~one\x1b[201~\r", "one\r"},
		{"\x1b[200~def f():\r\n\treturn 1\r\rx\n\n\x1b[201~", "def f():\uf10a\uf109return 1\uf10a\uf10ax"},
		{"\x1b[200~a\x1b[1~b\x03c\x7f\x1b[201~", "a[1~bc"},
		{"\x1b[200~\x1b[201~z", "z"},
		{"\x1b[200~" + long + "\x1b[201~\r", "[paste 1 of 200 lines]\r"},
	} {
		for size := 1; size <= 7; size++ { // however the terminal cuts it
			var list []string
			for rest := c.in; rest != ""; {
				n := min(size, len(rest))
				list, rest = append(list, rest[:n]), rest[n:]
			}
			got, err := io.ReadAll(newKeyFilter(&pieces{list}))
			if err != nil || string(got) != c.want {
				t.Errorf("%q by %d: got %q, %v, want %q", c.in, size, got, err, c.want)
			}
		}
	}
}

// A line stands for what was pasted into it.
func TestUnfold(t *testing.T) {
	long := strings.Repeat("y = 2\n", 200)
	k := newKeyFilter(&pieces{[]string{"\x1b[200~" + long + "\x1b[201~"}})
	if _, err := io.ReadAll(k); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"x = 1":                              "x = 1",
		foldLine("a\n\tb"):                   "a\n\tb",
		"[paste 1 of 200 lines]":             strings.TrimSuffix(long, "\n"),
		"[paste 2 of 200 lines]":             "[paste 2 of 200 lines]",
		"# ⏎ is no line end":                 "# ⏎ is no line end",
		"[1]" + string(lineBreak) + "[x][0]": "[1]\n[x][0]",
	} {
		if got := k.unfold(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	for _, want := range []string{"a⏎⇥b", "a| b"} {
		if got := string(k.Paint([]rune(foldLine("a\n\tb")), 0)); got != want {
			t.Errorf("painted: got %q, want %q", got, want)
		}
		k.ascii = true
	}
}

// A history is kept in a file, and in nothing else that has a name.
func TestHistoryFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "below", "history")
	// The first makes the folder that the last one names.
	for _, c := range [][2]string{{file, file}, {"", ""}, {os.DevNull, ""}, {filepath.Dir(file), ""}} {
		t.Setenv("MSCCLSH_HISTORY", c[0])
		if got := historyFile(); got != c[1] {
			t.Errorf("%q: got %q, want %q", c[0], got, c[1])
		}
	}
}
