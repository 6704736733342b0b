package main

import (
	"fmt"
	"strings"
	"testing"
)

// cut runs lines through a splitter and shows the units: s statement, c command,
// h head, x close, then what is pending.
func cut(typed bool, lines ...string) string {
	open := false
	p := &splitter{typed: typed, open: func() bool { return open },
		isCommand: func(line string) bool { return firstWord(line) == "check" && !strings.Contains(line, "(") }}
	var parts []string
	take := func(units []unit) {
		for _, u := range units {
			parts = append(parts, string("schx"[u.kind])+strings.ReplaceAll(strings.TrimSuffix(u.text, "\n"), "\n", "|"))
			switch u.kind {
			case unitHead:
				p.block, open = true, true
			case unitClose:
				open = false
			}
		}
	}
	for _, l := range lines {
		take(p.feed(l))
	}
	if p.pending() {
		parts = append(parts, "+"+strings.Join(p.lines, "|"))
	}
	return strings.Join(parts, " ; ")
}

func TestSplitter(t *testing.T) {
	for i, c := range []struct {
		typed bool
		lines string // with | between
		want  string
	}{
		{true, "x = 1", "sx = 1"},
		{true, "f(1,|  2)", "sf(1,|  2)"},
		{true, "f(1,||  2)", "sf(1,||  2)"},
		{true, "f([1,", "+f([1,"},
		{true, `s = """a|b`, `+s = """a|b`},
		{true, `s = """a||b"""|y`, `ss = """a||b""" ; sy`},
		{true, `s = '''"""'''|y`, `ss = '''"""''' ; sy`},
		{true, `s = "it's (" # (|y`, `ss = "it's (" # ( ; sy`},
		{true, `s = "a\"(|y`, `ss = "a\"( ; sy`},
		{true, `x = 1 + \|2`, `sx = 1 + \|2`},
		{true, "def f():|  return 1", "+def f():|  return 1"},
		{true, "def f():|  return 1|", "sdef f():|  return 1"},
		{true, "def f():|  return 1||x", "sdef f():|  return 1 ; sx"},
		{true, "def f():|  return 1|x", "sdef f():|  return 1 ; sx"},
		{false, "def f():|  a||  b|x", "sdef f():|  a||  b ; sx"},
		{true, "if a:|  b|else:|  c|", "sif a:|  b|else:|  c"},
		{true, "for i in x: f(i)|", "sfor i in x: f(i)"},
		{true, "||x", "sx"},
		{true, "# c|x", "s# c|x"},
		{false, "|# c||x", "s|# c||x"},
		{false, "def f():|  a|# c|x", "sdef f():|  a ; s# c|x"},
		{true, "check|check --slots 2|check()", "ccheck ; ccheck --slots 2 ; scheck()"},
		{true, "def f():|  check", "+def f():|  check"},
		{true, "with P() as p:|  a|  b|", "hwith P() as p: ; s  a ; s  b ; x"},
		{true, "with P():|  a|x", "hwith P(): ; s  a ; x ; sx"},
		{true, "with P():|  a|check|  b|", "hwith P(): ; s  a ; ccheck ; s  b ; x"},
		{false, "with P():|  a||  b|# c|x", "hwith P(): ; s  a ; s|  b ; x ; s# c|x"},
		{true, "with P(|  1):|  a|", "hwith P(|  1): ; s  a ; x"},
		{true, "with P(): a|", "swith P(): a"},
		{true, "with P():|  for i in x:|    a|    b|  c", "hwith P(): ; s  for i in x:|    a|    b ; s  c"},
		{true, "with P():|  with parallelize(2):|    a||  c", "hwith P(): ; s  with parallelize(2):|    a ; s  c"},
		{false, "with P():\r|\ta\r|\tb\r|x\r", "hwith P(): ; s\ta ; s\tb ; x ; sx"},
		{true, "if x:|  with P():|    a|", "sif x:|  with P():|    a"},
	} {
		if got := cut(c.typed, strings.Split(c.lines, "|")...); got != c.want {
			t.Errorf("%d: %s\n got %s\nwant %s", i, c.lines, got, c.want)
		}
	}
}

// After a head that failed the lines of its block are dropped.
func TestSplitterSkips(t *testing.T) {
	p := &splitter{open: func() bool { return false }, isCommand: func(string) bool { return false }}
	p.skipping = true
	var got []string
	for _, l := range []string{"  a", "  if b:", "    c", "", "x"} {
		for _, u := range p.feed(l) {
			got = append(got, fmt.Sprint(u.kind, strings.TrimSpace(u.text)))
		}
	}
	if len(got) != 1 || got[0] != "0 x" && got[0] != "0x" {
		t.Errorf("got %q", got)
	}
}

func TestWidth(t *testing.T) {
	for line, want := range map[string]int{"": 0, "x": 0, "  x": 2, "\tx": 8, "  \tx": 8, "\t x": 9, "        \tx": 16} {
		if got := width(line); got != want {
			t.Errorf("width(%q): got %d, want %d", line, got, want)
		}
	}
}
