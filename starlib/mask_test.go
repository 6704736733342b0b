package starlib

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.starlark.net/syntax"
	"pgregory.net/rapid"

	"github.com/mscclsh/mscclsh/internal/diag"
)

func TestMask(t *testing.T) {
	for _, tc := range []struct{ src, want string }{
		{"with a:\n  b\n", "if ( a):\n  b\n"},
		{"with a : b\n", "if ( a ):b\n"},
		{"with a: b\n", "if ( a):b\n"},
		{"with a:\tb\n", "if ( a):b\n"},
		{"with a:# c\n", "if ( a):# c\n"},
		{"with a:", "if ( a):"},
		{"with a:\r\n  b\r\n", "if ( a):\r\n  b\r\n"},
		{"with(a): b", "if ((a)):b"},
		{"  with a as b, c as d:\n", "  if ( a or b, c or d):\n"},
		{"with a[x:y]: b", "if ( a[x:y]):b"},
		{"with {1: 2}: b", "if ( {1: 2}):b"},
		{"with f(lambda: 1): b", "if ( f(lambda: 1)):b"},
		{"with lambda: 1: b", "if ( lambda: 1):b"},
		{"with a \\\n as b: c", "if ( a \\\n or b):c"},
		{"with f(\n  # as:\n  1) as b: c", "if ( f(\n  # as:\n  1) or b):c"},
		{"with 'as:' as b: c", "if ( 'as:' or b):c"},
		{"with '''as:\n''' as b: c", "if ( '''as:\n''' or b):c"},
		{"with r'\\' as b: c' as d: e", "if ( r'\\' as b: c' or d):e"},
		{"x = 'with a:'\n", "x = 'with a:'\n"},
		{"'''\nwith a:\n'''\n", "'''\nwith a:\n'''\n"},
		{"# with a:\n", "# with a:\n"},
		{"f(\nwith a:\n)\n", "f(\nwith a:\n)\n"}, // inside brackets no statement begins
		{"x = 1 \\\nwith a:\n", "x = 1 \\\nwith a:\n"},
		{"within = a\nwith_ = b\nwith2: c\n", "within = a\nwith_ = b\nwith2: c\n"},
		{"x = a as b\n", "x = a as b\n"}, // not in a with: the parser's business
	} {
		m, err := mask("t.star", []byte(tc.src))
		if err != nil || string(m.text) != tc.want {
			t.Errorf("mask(%q)\n got %q, %v\nwant %q", tc.src, m.text, err, tc.want)
		}
	}
}

// Starlark's parser takes a zero byte for the end: what stands behind it would never
// be run, and nobody would know.
func TestMaskZeroByte(t *testing.T) {
	for src, want := range map[string]diag.Pos{
		"x = 1\x00y = 2\n":              {File: "t.star", Line: 1, Col: 6},
		"with a:\r\n  b\r\n\r\n \x00\n": {File: "t.star", Line: 4, Col: 2},
		"s = '\x00'\n":                  {File: "t.star", Line: 1, Col: 6},
		"# \x00":                        {File: "t.star", Line: 1, Col: 3},
	} {
		_, err := mask("t.star", []byte(src))
		if list := diag.Messages(err); len(list) != 1 || list[0].Pos != want || list[0].Code != "syntax" {
			t.Errorf("mask(%q): got %v, want an error at %v", src, err, want)
		}
	}
}

// TestMaskKeepsPositions: wherever a random program has a word, the masked one
// has that word, or the one that stands for it, at the same line and column.
func TestMaskKeepsPositions(t *testing.T) {
	words := rapid.SampledFrom([]string{"with", "as", "a", "é", ":", " ", " ", "\n", "\n", "(", ")", ",", "'", "\"\"\"", "#", "\\\n", "lambda", "\t", "\r\n", "pass", "[", "]"})
	rapid.Check(t, func(t *rapid.T) {
		var src []byte
		for _, w := range rapid.SliceOf(words).Draw(t, "words") {
			src = append(src, w...)
		}
		checkMask(t, src)
	})
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// checkMask checks what holds for every text.
func checkMask(t fataler, src []byte) {
	m, err := mask("t.star", src)
	if err != nil {
		if msgs := diag.Messages(err); len(msgs) != 1 || msgs[0].Pos.Line < 1 || msgs[0].Pos.Col < 1 {
			t.Fatalf("mask(%q): error without a position: %v", src, err)
		}
		return
	}
	if got, want := lineEnds(m.text), lineEnds(src); got != want {
		t.Fatalf("mask(%q) has %d line ends, want %d: %q", src, got, want, m.text)
	}
	if len(m.withs) == 0 && !bytes.Equal(m.text, src) {
		t.Fatalf("mask(%q) without a with changed it to %q", src, m.text)
	}
	oldLines, newLines := splitLines(src), splitLines(m.text)
	for i := range oldLines {
		old, now := oldLines[i], newLines[i]
		for col := 0; col < len(old) && col < len(now); col++ {
			if old[col] != now[col] && !bytes.ContainsRune([]byte("with as:"), rune(old[col])) && old[col] != '\t' && old[col] != '#' {
				// Only a comment right behind the colon may move, by one.
				if c := bytes.IndexByte(old, '#'); c < 0 || col < c {
					t.Fatalf("mask(%q): line %d column %d is %q, was %q: %q", src, i+1, col+1, now[col], old[col], m.text)
				}
			}
		}
	}
	for p := range m.withs {
		if line := newLines[p.line-1]; !bytes.Contains(line, []byte("if (")) {
			t.Fatalf("mask(%q): no if in line %d of %q", src, p.line, m.text)
		}
	}
}

func lineEnds(b []byte) int { return len(splitLines(b)) - 1 }

// FuzzMask feeds the masking and everything up to running with any text.
func FuzzMask(f *testing.F) {
	seedScripts(f)
	f.Add([]byte("with '''\\"))
	f.Add([]byte("with a) or (b: c"))
	f.Fuzz(func(t *testing.T, src []byte) {
		checkMask(t, src)
		m, err := mask("t.star", src)
		if err != nil {
			return
		}
		in := &interp{columns: map[string]*columns{}}
		if c := newColumns(src); c != nil {
			in.columns["t.star"] = c
		}
		tree, err := dialect.Parse("t.star", m.text, 0)
		if err != nil {
			for _, msg := range diag.Messages(in.syntaxErrors(err, m)) {
				if p := msg.Pos; p.Line < 1 || int(p.Line) > len(splitLines(src)) || p.Col < 1 {
					t.Fatalf("a syntax error at %v, outside of %q", p, src)
				}
			}
			return
		}
		if err := lower(tree, m, in.pos); err != nil {
			return
		}
		// No masked with is left behind as an if.
		syntax.Walk(tree, func(n syntax.Node) bool {
			if s, ok := n.(*syntax.IfStmt); ok && m.withs[at(s.If)] {
				t.Fatalf("a with at %v is still an if", s.If)
			}
			return true
		})
	})
}

// seedScripts adds every script of testdata.
func seedScripts(f *testing.F) {
	files, err := filepath.Glob("testdata/*.star")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
			f.Add(part)
		}
	}
}

// FuzzLoad runs any text: no crash inside, and every error has a code and a line.
func FuzzLoad(f *testing.F) {
	seedScripts(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		_, err := Load(context.Background(), Options{File: "t.star", Source: src, MaxSteps: 2000,
			ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist }})
		for _, m := range diag.Messages(err) {
			if m.Code == "" || m.Code == "internal" || m.Pos.File != "t.star" || m.Pos.Line < 1 {
				t.Fatalf("%q: code %q: %v", src, m.Code, m)
			}
		}
	})
}

func TestNearest(t *testing.T) {
	names := []string{"chunk", "copy", "reduce", "fully_connected", "ch", "sendtb", "recvtb"}
	for _, tc := range []struct{ name, want string }{
		{"chunck", "chunk"}, {"cpoy", "copy"}, {"Reduce", "reduce"}, {"fullyconnected", "fully_connected"},
		{"sendtp", "sendtb"}, {"hc", "ch"}, {"xyzzy", ""}, {"", ""}, {"q", ""},
	} {
		if got := Nearest(tc.name, names); got != tc.want {
			t.Errorf("Nearest(%q) = %q, want %q", tc.name, got, tc.want)
		}
	}
}
