package lsp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// All mistakes of a text are found, each once, at its place: one a statement, and
// none that another one causes.
func TestSyntaxErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // line:column and a part of the text
	}{
		{"none", "with parallelize(2) as p:\n    x = 1\n", nil},
		{"two", "x = \ny = 1\nz = )\n", []string{"1:5 got newline", "3:5 unexpected ')'"}},
		{"open bracket", "f(1,\nx = 2\ny = +\n", []string{"3:1 got identifier, want ','", "3:6 got newline"}},
		{"open bracket before a def", "f(1, [\n    2\ndef g():\n    return 1\n", []string{"3:1 got def"}},
		{"open bracket at the end", "x = 1\nf(", []string{"2:2 got end of file"}},
		{"head", "def f(:\n    return 1\ny = )\n", []string{"1:7 got ':'", "3:5 unexpected ')'"}},
		{"with without a colon", "with parallelize(2)\n    x = 1\ny = )\n", []string{"1:20 want ':'", "3:5 unexpected ')'"}},
		{"no body", "if True:\nx = 1\ny = )\n", []string{"2:1 want indent", "3:5 unexpected ')'"}},
		{"no body at the end", "x = )\nfor i in [1]:\n", []string{"1:5 unexpected ')'", "2:13 want indent"}},
		{"indented for no reason", "x = 1\n    y = 2\nz = )\n", []string{"2:5 got indent", "3:5 unexpected ')'"}},
		{"else of a broken if", "if (:\n    x = 1\nelse:\n    x = 2\n", []string{"1:5 got ':'"}},
		{"a dot at the end", "if True:\n    x.\ny = 1\n", []string{"2:6 not an identifier"}},
		{"an open call at the end of a block", "if True:\n    f(\n", []string{"2:6 got outdent"}},
		{"unfinished string", "x = \"abc\ny = )\n", []string{"1:5 string", "2:5 unexpected ')'"}},
		{"unfinished long string", "x = 1\ny = \"\"\"abc\nz = 3\n", []string{"2:5 string"}},
		{"break out of a with", "for i in [1]:\n    with parallelize(2):\n        break\n", []string{"3:9 can't leave"}},
		{"names wait for the syntax", "x = nope\ny = )\n", []string{"2:5 unexpected ')'"}},
		{"names", "x = nope\ny = neither\n", []string{"1:5 undefined: nope", "2:5 undefined: neither"}},
		{"Python", "import os\nclass A:\n    x = 1\n", []string{"1:1 import", "2:1 class"}},
		{"columns are bytes", "x = \"\U0001F600\" + )\n", []string{"1:14 unexpected ')'"}},
	} {
		x := parse("a.star", newText(tt.text))
		var got []string
		for _, m := range x.errs {
			got = append(got, fmt.Sprintf("%d:%d %s", m.Pos.Line, m.Pos.Col, m.Text))
		}
		ok := len(got) == len(tt.want)
		for i := range min(len(got), len(tt.want)) {
			place, part, _ := strings.Cut(tt.want[i], " ")
			ok = ok && strings.HasPrefix(got[i], place+" ") && strings.Contains(got[i], part)
		}
		if !ok {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// What doesn't parse is left out; the rest is known, at its lines.
func TestRepair(t *testing.T) {
	for _, tt := range []struct {
		text  string
		names []string // global ones, with their lines
	}{
		{"a = 1\nb = (\nc = 3\n", []string{"a:1", "c:3"}},
		{"a = [\n    1,\n    2\nb = 2\r\nc = )\r\nd = 4\n", []string{"b:4", "d:6"}},
		{"def f(x:\n    y = x\n\nb = 1\n", []string{"f:1", "b:4"}},
		{"if x y:\n    a = 1\nelif z z:\n    b = 2\nelse nothing:\n    c = 3\nd = 4\n", []string{"a:2", "b:4", "c:6", "d:7"}},
		{"for i in:\n    a = 1\nwith:\n    b = 1\n", []string{"a:2", "b:4"}},
		{"a = '''\nb\n''' )\nc = 1\n", []string{"c:4"}},
		{"def f():\n", []string{"f:1"}},
		{"))))\n((((\n", nil},
	} {
		x := parse("a.star", newText(tt.text))
		if x.file == nil {
			t.Errorf("%q: nothing parses: %v", tt.text, x.errs)
			continue
		}
		var got []string
		for _, id := range x.globals() {
			got = append(got, fmt.Sprintf("%s:%d", id.Name, id.NamePos.Line))
		}
		if !slices.Equal(got, tt.names) {
			t.Errorf("%q: got %v, want %v", tt.text, got, tt.names)
		}
	}
}

// What is too much for an editor is told, not looked at.
func TestTooLarge(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"long", strings.Repeat("x = 1\n", maxDocument/6+1), "more than 262144 bytes"},
		{"deep", "x = " + strings.Repeat("(", 200_000), "more than 500 deep"},
		{"deep and closed", "x = " + strings.Repeat("[", 501) + strings.Repeat("]", 501), "more than 500 deep"},
	} {
		x := parse("a.star", newText(tt.text))
		if x.file != nil || len(x.errs) != 1 || !strings.Contains(x.errs[0].Text, tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, x.errs, tt.want)
		}
	}
	if x := parse("a.star", newText("x = "+strings.Repeat("[", 500)+strings.Repeat("]", 500)+"\n")); x.file == nil {
		t.Errorf("500 deep: got %v", x.errs)
	}
}

// While a text is broken beyond repair the names of the latest good one are known.
func TestLastGoodTree(t *testing.T) {
	c := start(t, Options{}, nil)
	c.initialize()
	c.open("a.star", "before = 1\n")
	c.diagnostics("a.star")
	broken := strings.Repeat("x = )\n", maxRepairs+1) // too many mistakes
	c.change("a.star", 2, "before = 1\n"+broken+"b")
	var list completionList
	if err := c.call("textDocument/completion", at("a.star", maxRepairs+2, 1), &list); err != nil || !slices.Contains(labels(list), "before") {
		t.Errorf("got %v %v, want before", labels(list), err)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// Any text is taken, and any place in it can be asked about.
func FuzzText(f *testing.F) {
	for _, s := range []string{prelude, lib, "with a as b, c: d.e(f = [g", "def f(*a, **k):\n\tlambda x: x.y\n", "x = \"\"\"\U0001F600\r\n\\", "load(\"lib.star\", a = \"\"",
		"[x for x in y if z]\n{a: b for c in d}\n", "if:\n elif:\n  else:\n", ")]}\n([{", "a.b.c(1)[2].d\n", "#\n\"", "é = ü.ö\n", "load(\"@algorithms/ring.star\", \"around\")\nx=y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		s := newServer(Options{ReadFile: readLib, Library: library})
		d := &document{uri: uri("a.star"), name: "/w/a.star"}
		d.set(newText(text))
		s.docs[d.uri] = d
		for i := 0; i <= len(text); i++ {
			q := query{tree: d.view(), doc: d, offset: i}
			s.hover(q)
			s.complete(q)
			s.definition(q)
			s.signatureHelp(q)
		}
		q := query{tree: d.view(), doc: d}
		s.symbols(q)
		s.folding(q)
		for _, m := range d.tree.errs {
			x := s.diagnostic(d, m)
			if x.Range.End.Line < x.Range.Start.Line || x.Range.Start.Line < 0 || x.Range.End.Line >= len(d.text.starts) {
				t.Errorf("%v: got the range %v", m, x.Range)
			}
		}
	})
}
