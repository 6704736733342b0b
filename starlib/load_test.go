package starlib_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
)

// load runs a script that is a string.
func load(t *testing.T, src string, change ...func(*starlib.Options)) (*starlib.Script, error) {
	t.Helper()
	o := starlib.Options{File: "test.star", Source: []byte(src)}
	for _, f := range change {
		f(&o)
	}
	return starlib.Load(context.Background(), o)
}

func args(kv ...string) func(*starlib.Options) {
	return func(o *starlib.Options) {
		o.Args = map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			o.Args[kv[i]] = kv[i+1]
		}
	}
}

func files(kv ...string) func(*starlib.Options) {
	return func(o *starlib.Options) {
		o.ReadFile = func(name string) ([]byte, error) {
			for i := 0; i < len(kv); i += 2 {
				if kv[i] == name {
					return []byte(kv[i+1]), nil
				}
			}
			return nil, errors.New("file does not exist")
		}
	}
}

func library(kv ...string) func(*starlib.Options) {
	m := fstest.MapFS{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = &fstest.MapFile{Data: []byte(kv[i+1])}
	}
	return func(o *starlib.Options) { o.Library = m }
}

const ring = `"""Ring allreduce.

More words.
"""
ranks = param("ranks", 4, help = "number of GPUs")
protocol = param("protocol", "LL")
instances = param("instances", 2)

with MSCCLProgram("ring", fully_connected(ranks), AllReduce(ranks, ranks, inplace = True)) as p:
    for i in range(ranks):
        c = chunk((i + 1) % ranks, "input", i)
        for hop in range(2, ranks + 1):
            c = chunk((i + hop) % ranks, "input", i).reduce(c, ch = i % 2)
        for hop in range(1, ranks):
            c = c.copy((i + hop) % ranks, "input", i, ch = i % 2)
    XML()
`

func TestLoadRing(t *testing.T) {
	s, err := load(t, ring, args("ranks", "3"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "Ring allreduce.\n\nMore words."; s.Doc != want {
		t.Errorf("Doc = %q, want %q", s.Doc, want)
	}
	if len(s.Programs) != 1 {
		t.Fatalf("%d programs, want 1", len(s.Programs))
	}
	p := s.Programs[0]
	if p.Name != "ring" || !p.WantXML || p.WantCheck || p.Pos.String() != "test.star:9:1" {
		t.Errorf("program %q, XML %v, check %v, at %v", p.Name, p.WantXML, p.WantCheck, p.Pos)
	}
	d := p.DAG
	if d.Protocol != ir.LL || d.Instances != 2 || d.Policy != ir.Auto || !d.Fusion || !d.Interleaved || !d.CheckXML || d.DependenceNop {
		t.Errorf("spec %+v", d.Spec)
	}
	// Three ranks: every chunk is reduced twice and copied twice.
	if len(d.Ops) != 12 {
		t.Fatalf("%d operations, want 12", len(d.Ops))
	}
	first := ir.ChunkOp{Kind: ir.ChunkReduce, Src: ir.Loc{Rank: 1}, Dst: ir.Loc{Rank: 2}, Count: 1,
		Chan: 0, SendTB: ir.None, RecvTB: ir.None, Parallel: 1, Pos: d.Ops[0].Pos}
	if d.Ops[0] != first {
		t.Errorf("first operation %+v, want %+v", d.Ops[0], first)
	}
	// Positions are those of the names that are called.
	if at := d.Pos(d.Ops[0].Pos).String(); at != "test.star:13:54" {
		t.Errorf("reduce at %s", at)
	}
	if at := d.Pos(d.Ops[2].Pos).String(); at != "test.star:15:19" {
		t.Errorf("copy at %s", at)
	}
	for _, op := range d.Ops[4:8] {
		if op.Chan != 1 {
			t.Errorf("chunk 1 travels on channel %d, want 1", op.Chan)
		}
	}
}

func TestParamsAreKnownWhenTheScriptFails(t *testing.T) {
	s, err := load(t, `"doc"
n = param("ranks", 6, help = "GPUs")
if n & (n - 1):
    fail("ranks must be a power of two, not %d" % n)
`)
	if err == nil || err.Error() != "test.star:4:5: ranks must be a power of two, not 6" {
		t.Errorf("error %v", err)
	}
	if len(s.Params) != 1 || s.Params[0].Name != "ranks" || s.Params[0].Default != "6" || s.Doc != "doc" {
		t.Errorf("script %+v", s)
	}
}

func TestParamTypes(t *testing.T) {
	s, err := load(t, `
def check(got, want):
    if type(got) != type(want) or got != want:
        fail("got %r, want %r" % (got, want))

check(param("i", 1), 18)
check(param("f", 1.5), 2.0)
check(param("b", False), True)
check(param("s", "x"), "08")
check(param("d", 7, help = "untouched"), 7)
check(param("c", "LL", choices = ["LL", "Simple"]), "Simple")
`, args("i", "0x12", "f", "2", "b", "yes", "s", "08", "c", "Simple"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range s.Params {
		got = append(got, strings.Join([]string{p.Name, p.Type, p.Default, p.Value, strings.Join(p.Choices, "|")}, " "))
	}
	want := []string{"i int 1 18 ", "f float 1.5 2.0 ", "b bool false true ", "s string x 08 ", "d int 7 7 ", "c string LL Simple LL|Simple"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s.Params[4].Given || !s.Params[0].Given || s.Params[0].Pos.Line != 6 {
		t.Errorf("params %+v", s.Params)
	}
}

func TestWrongParamValues(t *testing.T) {
	for _, tc := range []struct{ decl, value, want string }{
		{`param("n", 1)`, "two", `test.star:1:1: param: n: got "two", want an integer`},
		{`param("n", 1)`, "1.5", `test.star:1:1: param: n: got "1.5", want an integer`},
		{`param("n", 1.0)`, "x", `test.star:1:1: param: n: got "x", want a number`},
		{`param("n", True)`, "maybe", `test.star:1:1: param: n: got "maybe", want true or false`},
		{`param("n", "LL", choices = ["LL", "LL128"])`, "LL12", "test.star:1:1: param: n: got LL12, want one of LL, LL128\n    did you mean LL128?"},
		{`param("n", 1, choices = [1, 2])`, "3", `test.star:1:1: param: n: got 3, want one of 1, 2`},
	} {
		if _, err := load(t, tc.decl, args("n", tc.value)); err == nil || err.Error() != tc.want {
			t.Errorf("%s with %q:\n got %v\nwant %s", tc.decl, tc.value, err, tc.want)
		}
	}
}

func TestSeveralProgramsInOrder(t *testing.T) {
	s, err := load(t, `
for n in [2, 3]:
    with MSCCLProgram("p%d" % n, line(n), SendRecv(n)):
        chunk(0, "input", 0).copy(1, "output", 0)
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Programs) != 2 || s.Programs[0].Name != "p2" || s.Programs[1].DAG.Coll.Ranks != 3 {
		t.Errorf("programs %+v", s.Programs)
	}
}

func TestLoadRelativeAndLibrary(t *testing.T) {
	s, err := load(t, `
load("sub/helper.star", "hop")
load("@algorithms/util.star", "double")
with MSCCLProgram("p", line(double(1)), SendRecv(2)):
    hop(1)
`, func(o *starlib.Options) { o.File = "dir/main.star" },
		files("dir/sub/helper.star", "load('../names.star', 'BUF')\ndef hop(r):\n    chunk(0, 'input', 0).copy(r, BUF, 0)\n",
			"dir/names.star", "BUF = 'output'\nload('@algorithms/util.star', 'double')\n"),
		library("util.star", "load('deep.star', _x2 = 'x2')\ndef double(x):\n    return _x2(x)\n", "deep.star", "def x2(x):\n    return 2 * x\n"))
	if err != nil {
		t.Fatal(err)
	}
	d := s.Programs[0].DAG
	if at := d.Pos(d.Ops[0].Pos).String(); len(d.Ops) != 1 || at != "dir/sub/helper.star:3:26" {
		t.Errorf("%d operations, the first at %s", len(d.Ops), at)
	}
}

func TestProgramsOfLoadedFilesAreNotTheScripts(t *testing.T) {
	lib := `
n = param("ranks", 2)
def body():
    chunk(0, "input", 0).copy(1, "output", 0)
def whole(name):
    with MSCCLProgram(name, line(n), SendRecv(n)):
        body()
whole("lib")
`
	s, err := load(t, `load("@algorithms/lib.star", "whole")
n = param("ranks", 5)
whole("mine")`, library("lib.star", lib))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Programs) != 1 || s.Programs[0].Name != "mine" || len(s.Params) != 1 {
		t.Errorf("script %+v", s)
	}
}

func TestLoadFailures(t *testing.T) {
	for _, tc := range []struct{ name, main, want string }{
		{"cycle", `load("a.star", "x")`, "b.star:1:1: load: a.star is being loaded already\n" +
			"    a.star:1:1: b.star loaded from here\n    test.star:1:1: a.star loaded from here\n    a.star loads b.star loads a.star"},
		{"itself", `load("test.star", "x")`, "test.star:1:1: load: test.star is being loaded already\n    test.star loads test.star"},
		{"missing", `load("nope.star", "x")`, "test.star:1:1: load: can't read nope.star: file does not exist"},
		{"missing in library", `load("@algorithms/nope.star", "x")`, "test.star:1:1: load: can't read @algorithms/nope.star: file does not exist"},
		{"leaves library", `load("@algorithms/../x.star", "x")`, "test.star:1:1: load: \"@algorithms/../x.star\" leaves the library\n" +
			"    load(\"@algorithms/NAME.star\", ...) reads the library, load(\"other.star\", ...) a file beside the script"},
		{"other place", `load("@web/x.star", "x")`, "test.star:1:1: load: \"@web/x.star\" is in no known place\n" +
			"    load(\"@algorithms/NAME.star\", ...) reads the library, load(\"other.star\", ...) a file beside the script"},
		{"wrong inside", `load("bad.star", "x")`, "bad.star:2:5: boom\n    bad.star:3:1: f called from here\n    test.star:1:1: bad.star loaded from here"},
		{"syntax inside", `load("syn.star", "x")`, "syn.star:1:5: syntax error: got end of file, want primary expression"},
		{"no such name", `load("names.star", "helpr")`, "test.star:1:1: load: name helpr not found in module names.star (did you mean helper?)"},
		{"private", `load("names.star", "_p")`, "test.star:1:21: load: names with leading underscores are not exported: _p"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(t, tc.main, library(), files("a.star", `load("b.star", "x")`, "b.star", `load("a.star", "x")`,
				"test.star", "", "bad.star", "def f():\n    fail('boom')\nf()", "syn.star", "x ==", "names.star", "helper = 1\n_p = 2\n"))
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// Some editors begin a file with a mark; it is no part of the script.
func TestMarkOfUTF8(t *testing.T) {
	const mark = "\ufeff"
	s, err := load(t, mark+"load('lib.star', 'x')\nprint(x)\ny", files("lib.star", mark+"x = 1\n"))
	m := diag.Messages(err)
	if len(m) != 1 || m[0].Code != "undefined-name" || m[0].Pos.Line != 3 {
		t.Errorf("got %v, %v, want only y to be unknown", s, err)
	}
	if f, list := starlib.Analyze("test.star", []byte(mark+"x = 1\n")); f == nil || len(list) > 0 {
		t.Errorf("got %v, %v", f, list)
	}
}

func TestMissingScript(t *testing.T) {
	_, err := starlib.Load(context.Background(), starlib.Options{File: "no/such.star"})
	if err == nil || err.Error() != "no/such.star: can't read the script: no such file or directory" {
		t.Errorf("error %v", err)
	}
}

func TestStepLimit(t *testing.T) {
	_, err := load(t, "while True:\n    pass\n", func(o *starlib.Options) { o.MaxSteps = 1000 })
	want := "test.star:1:1: the script ran for more than 1000 steps\n    raise the step limit (--max-steps) if it is meant to run that long"
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != "step-limit" || m.Pos.File != "test.star" || !strings.HasSuffix(err.Error(), strings.SplitN(want, " ", 2)[1]) {
		t.Errorf("error %v", err)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	_, err := starlib.Load(ctx, starlib.Options{File: "test.star", Source: []byte("print('go')\nwhile True:\n    pass\n"),
		Print: func(diag.Pos, string) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestPrint(t *testing.T) {
	var got []string
	_, err := load(t, "def f():\n  print('a', 1)\nf()\n", func(o *starlib.Options) {
		o.Print = func(p diag.Pos, s string) { got = append(got, p.String()+" "+s) }
	})
	if err != nil || strings.Join(got, "\n") != "test.star:2:3 a 1" {
		t.Errorf("printed %q, error %v", got, err)
	}
}
