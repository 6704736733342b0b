package lsp

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
)

type judge = func(ctx context.Context, file string, text []byte, read func(string) ([]byte, error)) diag.List

// untilCanceled is a judge that says when it begins and ends when it is told to.
func untilCanceled(began chan<- struct{}) judge {
	return func(ctx context.Context, file string, _ []byte, _ func(string) ([]byte, error)) diag.List {
		began <- struct{}{}
		<-ctx.Done()
		return diag.List{diag.Errorf(diag.Pos{File: file, Line: 1, Col: 1}, "stale", "stale")}
	}
}

// echo is a judge whose finding is the text.
func echo(_ context.Context, file string, text []byte, _ func(string) ([]byte, error)) diag.List {
	return diag.List{diag.Errorf(diag.Pos{File: file, Line: 1, Col: 1}, "echo", "%s", text)}
}

// Every shape of a message arrives: severities, notes here and elsewhere, advice.
func TestDiagnosticShapes(t *testing.T) {
	text := "first = 1\n    # the second line\nlast = first\n"
	files := func(name string) ([]byte, error) {
		if name == "/w/lib.star" {
			return []byte("def hop(c):\n    return c.copy(9)\n"), nil
		}
		return nil, fs.ErrNotExist
	}
	here := diag.Pos{File: "/w/a.star", Line: 3, Col: 8}
	lib := diag.Pos{File: "/w/lib.star", Line: 2, Col: 14}
	list := diag.List{
		diag.Errorf(here, "one", "plain").Suggest("do better"),
		diag.Warningf(diag.Pos{File: "/w/a.star", Line: 2}, "two", "whole line").Note(diag.Pos{File: "/w/a.star", Line: 1, Col: 1}, "see here").
			Note(diag.Pos{}, "nowhere").Note(lib, "and there").Note(diag.Pos{File: "/w/gone.star", Line: 1, Col: 1}, "lost"),
		{Severity: diag.Info, Code: "info", Text: "nobody asked", Pos: here},
		diag.Errorf(lib, "four", "bad rank").Note(here, "hop called from here"),
		diag.Errorf(diag.Pos{}, "five", "nowhere"),
		diag.Errorf(diag.Pos{}, "five", "nowhere"), // said twice
		diag.Errorf(diag.Pos{File: "/w/a.star", Line: 99, Col: 9}, "six", "past the end"),
		diag.Errorf(lib, "seven", "no way there"),
		diag.Errorf(here, "eight", "overwritten at /w/a.star:1:1").Suggest("see /w/a.star:2:5, not /w/b.star:3:1"),
	}
	c := start(t, Options{ReadFile: files, Link: func(code string) string { return "x:" + code },
		Judge: func(context.Context, string, []byte, func(string) ([]byte, error)) diag.List { return list }}, nil)
	c.initialize()
	c.open("a.star", text)
	p := c.diagnostics("a.star")
	if p.Version == nil || *p.Version != 1 || p.URI != uri("a.star") {
		t.Errorf("got version %v of %s", p.Version, p.URI)
	}
	want := []struct {
		code, message string
		severity      int
		at            span
		related       []string
	}{
		{"one", "plain\ndo better", 1, span{position{2, 7}, position{2, 12}}, nil},
		{"two", "whole line\nnowhere\nlost (/w/gone.star:1:1)", 2, span{position{1, 4}, position{1, 21}}, []string{"see here", "and there"}},
		{"four", "/w/lib.star:2:14: bad rank", 1, span{position{2, 7}, position{2, 12}}, []string{"bad rank", "hop called from here"}},
		{"five", "nowhere", 1, span{position{0, 0}, position{0, 9}}, nil},
		{"six", "past the end", 1, span{position{3, 0}, position{3, 0}}, nil},
		{"seven", "/w/lib.star:2:14: no way there", 1, span{position{0, 0}, position{0, 9}}, []string{"no way there"}},
		{"eight", "overwritten at line 1\nsee line 2, not /w/b.star:3:1", 1, span{position{2, 7}, position{2, 12}}, []string{"line 1", "line 2"}},
	}
	if len(p.Diagnostics) != len(want) {
		t.Fatalf("got %d diagnostics, want %d: %+v", len(p.Diagnostics), len(want), p.Diagnostics)
	}
	for i, w := range want {
		d := p.Diagnostics[i]
		if d.Code != w.code || d.Message != w.message || d.Severity != w.severity || d.Range != w.at || d.Source != "mscclsh" ||
			d.CodeDescription == nil || d.CodeDescription.Href != "x:"+w.code {
			t.Errorf("%s: got %+v, want %+v", w.code, d, w)
		}
		for j, r := range d.RelatedInformation {
			if j >= len(w.related) || r.Message != w.related[j] {
				t.Errorf("%s: got related %+v, want %q", w.code, d.RelatedInformation, w.related)
			}
		}
		if len(d.RelatedInformation) != len(w.related) {
			t.Errorf("%s: got %d related places, want %d", w.code, len(d.RelatedInformation), len(w.related))
		}
	}
	if got := p.Diagnostics[2].RelatedInformation[0].Location; got != (location{uri("lib.star"), span{position{1, 13}, position{1, 17}}}) {
		t.Errorf("the place in the other file: got %+v", got)
	}
}

// A newer edit ends the judgment of the older text, which is never told.
func TestNewerEditsCancel(t *testing.T) {
	began := make(chan struct{})
	first := true
	c := start(t, Options{Judge: func(ctx context.Context, file string, text []byte, read func(string) ([]byte, error)) diag.List {
		if first { // one judgment runs at a time
			first = false
			return untilCanceled(began)(ctx, file, text, read)
		}
		return echo(ctx, file, text, read)
	}}, nil)
	c.initialize()
	c.open("a.star", "x = 1\n")
	<-began
	c.change("a.star", 2, "x = 2\n")
	p := c.diagnostics("a.star")
	if len(p.Diagnostics) != 1 || p.Diagnostics[0].Message != "x = 2\n" || *p.Version != 2 {
		t.Errorf("got %+v", p)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// While one types nothing is judged.
func TestDebounce(t *testing.T) {
	c := start(t, Options{Judge: echo, Debounce: 300 * time.Millisecond}, nil)
	c.initialize()
	c.open("a.star", "x = 0\n")
	for i := range 20 {
		c.change("a.star", i+2, strings.Repeat("x = 1\n", i+1))
	}
	p := c.diagnostics("a.star")
	if *p.Version != 21 {
		t.Errorf("got version %d first, want 21", *p.Version)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
	select {
	case p := <-c.channel(uri("a.star")):
		t.Errorf("got %+v besides", p)
	default:
	}
}

// A judgment that takes too long is given up, and says so; one that doesn't end
// when it is told to is left behind, and after some of them none is begun.
func TestTimeLimit(t *testing.T) {
	began := make(chan struct{}, 100)
	c := start(t, Options{Judge: untilCanceled(began), TimeLimit: 20 * time.Millisecond}, nil)
	c.initialize()
	c.open("a.star", "x = 1\n")
	p := c.diagnostics("a.star")
	if len(p.Diagnostics) != 1 || p.Diagnostics[0].Severity != severityInformation || !strings.Contains(p.Diagnostics[0].Message, "more than 20ms") {
		t.Errorf("got %+v", p.Diagnostics)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

func TestJudgmentsThatDontEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for judgments to be given up")
	}
	release := make(chan struct{})
	c := start(t, Options{TimeLimit: time.Millisecond,
		Judge: func(context.Context, string, []byte, func(string) ([]byte, error)) diag.List {
			<-release
			return nil
		}}, nil)
	c.initialize()
	for i := range maxStuck {
		c.open("a.star", strings.Repeat("x = 1\n", i+1))
		if p := c.diagnostics("a.star"); len(p.Diagnostics) != 1 || !strings.Contains(p.Diagnostics[0].Message, "takes more than 1ms") {
			t.Errorf("got %+v", p.Diagnostics)
		}
	}
	c.open("a.star", "y = 1\n")
	if p := c.diagnostics("a.star"); len(p.Diagnostics) != 1 || !strings.Contains(p.Diagnostics[0].Message, "don't end") {
		t.Errorf("got %+v", p.Diagnostics)
	}
	close(release)
	for i := 0; ; i++ { // judged again once they have ended
		c.open("a.star", strings.Repeat("z = 1\n", i+1))
		if p := c.diagnostics("a.star"); len(p.Diagnostics) == 0 {
			break
		} else if i > 100 {
			t.Fatalf("got %+v", p.Diagnostics)
		}
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

func TestJudgePanics(t *testing.T) {
	c := start(t, Options{Judge: func(context.Context, string, []byte, func(string) ([]byte, error)) diag.List { panic("oops") }}, nil)
	c.initialize()
	c.open("a.star", "x = 1\n")
	p := c.diagnostics("a.star")
	if len(p.Diagnostics) != 1 || p.Diagnostics[0].Code != "internal" || !strings.Contains(p.Diagnostics[0].Message, "please report") {
		t.Errorf("got %+v", p.Diagnostics)
	}
	if !strings.Contains(c.log.String(), "oops") {
		t.Errorf("the log says %q", c.log)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// A script is judged with the loaded file as the editor has it, and again when that
// changes, is closed, or changes on disk.
func TestLoadedFiles(t *testing.T) {
	disk := "def f():\n    return 1\n"
	c := start(t, Options{ReadFile: func(name string) ([]byte, error) {
		if name == "/w/lib.star" {
			return []byte(disk), nil
		}
		return nil, errors.New("no such file")
	}}, nil)
	c.initialize()
	c.open("main.star", "load(\"lib.star\", \"f\")\nx = f() + 1\n")
	if p := c.diagnostics("main.star"); len(p.Diagnostics) != 0 {
		t.Errorf("at first: got %+v", p.Diagnostics)
	}
	c.open("lib.star", "def f():\n    return nope\n")
	c.diagnostics("lib.star")
	p := c.diagnostics("main.star")
	if len(p.Diagnostics) != 1 || p.Diagnostics[0].Range.Start != (position{0, 5}) || !strings.Contains(p.Diagnostics[0].Message, "/w/lib.star:2:12: undefined: nope") {
		t.Errorf("with a mistake in lib.star: got %+v", p.Diagnostics)
	}
	c.change("lib.star", 2, "def f():\n    return 'text'\n")
	c.diagnostics("lib.star")
	p = c.diagnostics("main.star")
	if len(p.Diagnostics) != 1 || p.Diagnostics[0].Range.Start.Line != 1 || !strings.Contains(p.Diagnostics[0].Message, "unknown binary op") {
		t.Errorf("with another type: got %+v", p.Diagnostics)
	}
	c.notify("textDocument/didClose", at("lib.star", 0, 0))
	if p := c.diagnostics("main.star"); len(p.Diagnostics) != 0 {
		t.Errorf("with the file on disk: got %+v", p.Diagnostics)
	}
	if p := c.diagnostics("lib.star"); len(p.Diagnostics) != 0 {
		t.Errorf("the closed file: got %+v", p.Diagnostics)
	}
	disk = "def f():\n    return wrong\n"
	c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{map[string]any{"uri": uri("lib.star"), "type": 2}}})
	if p := c.diagnostics("main.star"); len(p.Diagnostics) != 1 {
		t.Errorf("after a change on disk: got %+v", p.Diagnostics)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// Documents that are nothing of ours are left alone, and get empty answers.
func TestForeignDocuments(t *testing.T) {
	c := start(t, Options{Judge: echo}, nil)
	c.initialize()
	c.open("a.py", "import os\n")
	c.open("notes.txt", "program it yourself\n")
	c.open("b.txt", "# a comment\nprogram \"b\"\n")
	if p := c.diagnostics("b.txt"); len(p.Diagnostics) != 1 {
		t.Errorf("a program in its text form: got %+v", p.Diagnostics)
	}
	for _, name := range []string{"a.py", "notes.txt", "b.txt"} {
		for _, method := range []string{"hover", "completion", "definition", "documentSymbol", "foldingRange", "signatureHelp"} {
			m := c.wait(c.begin("textDocument/"+method, at(name, 0, 3)))
			if m.Error != nil || string(m.Result) != "null" {
				t.Errorf("%s of %s: got %s %v, want null", method, name, m.Result, m.Error)
			}
		}
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a.py", "notes.txt"} {
		select {
		case p := <-c.channel(uri(name)):
			t.Errorf("%s: got %+v, want nothing", name, p)
		default:
		}
	}
}

func TestIncrementalChanges(t *testing.T) {
	c := start(t, Options{Judge: echo}, nil)
	c.initialize()
	c.open("a.star", "x = \"\U0001F600\"\ny = 2\n")
	c.diagnostics("a.star")
	edit := func(l, ch, m, d int, text string) map[string]any {
		return map[string]any{"range": span{position{l, ch}, position{m, d}}, "text": text}
	}
	c.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": uri("a.star"), "version": 2},
		"contentChanges": []any{edit(0, 7, 0, 7, "!"), edit(1, 0, 1, 1, "zed"), edit(1, 6, 1, 7, "x\nw = 4")}})
	p := c.diagnostics("a.star")
	if want := "x = \"\U0001F600!\"\nzed = x\nw = 4\n"; len(p.Diagnostics) != 1 || p.Diagnostics[0].Message != want {
		t.Errorf("got %+v, want %q", p.Diagnostics, want)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// A document of nothing but mistakes is answered all the same, with the first of them.
func TestManyMistakes(t *testing.T) {
	for _, line := range []string{"wrong + wronger\n", "x = )\n", "f(\n", "if x:\n", "chunk(0, \"a\", 0).copy(1, \"b\")\n"} {
		c := start(t, Options{}, nil)
		c.initialize()
		text := strings.Repeat(line, maxDocument/len(line)-1)
		before := time.Now()
		c.open("a.star", text)
		p := c.diagnostics("a.star")
		var list completionList
		if err := c.call("textDocument/completion", at("a.star", 1, 3), &list); err != nil {
			t.Error(err)
		}
		if err := c.call("textDocument/completion", at("a.star", 1, 10), &list); err != nil {
			t.Error(err)
		}
		if d := time.Since(before); d > 10*time.Second {
			t.Errorf("%q: took %s", line, d)
		}
		if n := len(p.Diagnostics); n == 0 || n > maxDiagnostics {
			t.Errorf("%q: got %d diagnostics", line, n)
		}
		if err := c.end(); err != nil {
			t.Error(err)
		}
	}
}

func TestKindOf(t *testing.T) {
	for _, tt := range []struct {
		name, language, text string
		want                 documentKind
	}{
		{"/w/a.star", "python", "", script},
		{"/w/A.STAR", "", "", script},
		{"/w/a.py", "starlark", "", foreign},
		{"/w/BUILD", "starlark", "", foreign},
		{"/w/a.bzl", "starlark", "", foreign},
		{"untitled:Untitled-1", "starlark", "", script},
		{"untitled:Untitled-1", "python", "", foreign},
		{"/w/p.txt", "", "\ufeff# one\n\nprogram \"x\"\n", program},
		{"/w/p.txt", "", "program x\n", foreign},
		{"/w/p.xml", "", "<algo>", foreign},
	} {
		if got := kindOf(tt.name, tt.language, tt.text); got != tt.want {
			t.Errorf("%s %s: got %d, want %d", tt.name, tt.language, got, tt.want)
		}
	}
}
