package lsp

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.starlark.net/starlark"
)

// lib is what the tests' scripts load.
const lib = `"""Steps that others use."""

# Sends a chunk on.
# It may be sent twice.
def hop(c, to, ch = 0):
    return c.copy(to, "input", 0, ch = ch)

def _private():
    pass

WIDTH = 4
`

// prelude stands before the text of most cases.
const prelude = `load("lib.star", "hop", width = "WIDTH")
ranks = param("ranks", 8, help = "number of GPUs")

def send(c, to, times = 1):
    """Sends c.

    As often as is said.
    """
    for unused in range(times):
        c = c.copy(to, "tmp", 0)
    return c

with MSCCLProgram("p", fully_connected(ranks), AllReduce(ranks, 1)) as prog:
    c = chunk(0, "input", 0)
    parts = c.split(2)
    send(c, 1)
`

var library = fstest.MapFS{
	"ring.star": {Data: []byte("\"\"\"A ring.\"\"\"\n\ndef around(n):\n    return n\n")},
	"tree.star": {Data: []byte("x = 1\n")},
}

func readLib(name string) ([]byte, error) {
	if name == "/w/lib.star" {
		return []byte(lib), nil
	}
	return nil, fs.ErrNotExist
}

// place takes the mark "|" out of a text and gives its position.
func place(t *testing.T, text string) (string, position) {
	t.Helper()
	before, after, ok := strings.Cut(text, "|")
	if !ok {
		t.Fatalf("no mark in %q", text)
	}
	return before + after, position{strings.Count(before, "\n"), len(before) - strings.LastIndex(before, "\n") - 1}
}

// ask opens a text with a mark and asks about the place of the mark.
func ask(t *testing.T, method, text string, result any) {
	t.Helper()
	c := start(t, Options{ReadFile: readLib, Library: library, LibraryDir: filepath.Join(t.TempDir(), "lib"),
		Values: map[string][]string{"MSCCLProgram.protocol": {"Simple", "LL"}, "topology.name": {"hgx_h100"}}}, nil)
	c.initialize()
	text, p := place(t, text)
	c.open("a.star", text)
	if err := c.call("textDocument/"+method, at("a.star", p.Line, p.Character), result); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

func TestHover(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"builtin", prelude + "ch|unk(0, \"input\", 0)\n", []string{"chunk(rank, buffer, index, size=1) -> ref", "All of them must hold something", "`rank` (int): the rank", `c = chunk(0, "input", 2, size = 4)`}},
		{"end of a word", prelude + "chunk|(0)\n", []string{"chunk(rank,"}},
		{"method of a call", prelude + "chunk(0, \"input\", 0).co|py(1)\n", []string{"ref.copy(dst,"}},
		{"method of a method's result", prelude + "c.copy(1).re|duce(c)\n", []string{"ref.reduce(other,"}},
		{"method of an element", prelude + "parts[0].gro|up(parts[1])\n", []string{"ref.group(other)"}},
		{"method of a loop's variable", prelude + "for x in parts:\n    x.spl|it(2)\n", []string{"ref.split(num)"}},
		{"method of a comprehension's variable", prelude + "y = [x.spl|it(2) for x in parts]\n", []string{"ref.split(num)"}},
		{"method of an unpacked name", prelude + "a, b = c.split(2)\nb.gr|oup(a)\n", []string{"ref.group(other)"}},
		{"method of a function's result", prelude + "send(c, 2).spl|it(2)\n", []string{"ref.split(num)"}},
		{"method of a parameter", prelude + "def f(z):\n    z.spl|it(1)\nf(c)\n", []string{"ref.split(num)"}},
		{"topology of a program", prelude + "prog.topo.lin|k(0, 1)\n", []string{"topology.link(src, dst)"}},
		{"field", prelude + "prog.num_r|anks\n", []string{"program.num_ranks: int"}},
		{"a method that one type has, of anything", "def f(z):\n    z.get_dst_r|ank()\n", []string{"ref.get_dst_rank(index=0)", "isn't known"}},
		{"keyword", prelude + "c.copy(1, buf|fer = \"x\")\n", []string{"`buffer` (string or tuple or None, default `None`): where to"}},
		{"keyword of a local function", prelude + "send(c, 1, tim|es = 3)\n", []string{"def send(c, to, times = 1)"}},
		{"local function", prelude + "se|nd(c, 1)\n", []string{"def send(c, to, times = 1)\n```\n\nSends c.\n\nAs often as is said."}},
		{"loaded function", prelude + "ho|p(c, 1)\n", []string{"def hop(c, to, ch = 0)", "Sends a chunk on.\nIt may be sent twice.", "From `lib.star`"}},
		{"loaded under another name", prelude + "wi|dth\n", []string{"WIDTH = 4", "From `lib.star`"}},
		{"parameter of the script", prelude + "ran|ks\n", []string{`ranks = param("ranks", 8, help = "number of GPUs")`, "Type: `int`"}},
		{"parameter of a function", strings.Replace(prelude, "c = c.copy(to,", "c = c|.copy(to,", 1), []string{"parameter c of send", "`ref`"}},
		{"name of a with", prelude + "pr|og\n", []string{`with MSCCLProgram("p"`, "Type: `program`"}},
		{"with", "wi|th parallelize(2):\n    pass\n", []string{"with parallelize(n)"}},
		{"Starlark's own", "x = enum|erate([])\n", []string{"enumerate(x, start=0)", "Pairs"}},
		{"module", "ma|th.log2(2)\n", []string{"`log2`"}},
		{"module's field", "Buffer.in|put\n", []string{"Buffer.input: string"}},
		{"file of a load", "load(\"lib|.star\", \"hop\")\n", []string{"Steps that others use."}},
		{"name of a load", "load(\"lib.star\", \"h|op\")\n", []string{"def hop(c, to, ch = 0)"}},
		{"script of the library", "load(\"@algorithms/ring|.star\", \"around\")\n", []string{"A ring."}},
		{"in a text that doesn't parse", prelude + "x = chunk(0, \"input\"\nc.sp|lit(\n", []string{"ref.split(num)"}},
		{"comment above a variable", "# How many.\ncount = 3\nprint(cou|nt)\n", []string{"count = 3", "How many."}},
	} {
		var h *hoverResult
		ask(t, "hover", tt.text, &h)
		if h == nil {
			t.Errorf("%s: got nothing", tt.name)
			continue
		}
		for _, w := range tt.want {
			if !strings.Contains(h.Contents.Value, w) {
				t.Errorf("%s: got %q, want it to hold %q", tt.name, h.Contents.Value, w)
			}
		}
	}
	for _, text := range []string{"|", "x = 1 # chu|nk\n", "x = \"chu|nk\"\n", "y = 4|2\n", "z = 1\nz.co|py()\n"} {
		var h *hoverResult
		if ask(t, "hover", text, &h); h != nil {
			t.Errorf("%q: got %+v, want nothing", text, h)
		}
	}
}

func labels(list completionList) []string {
	var out []string
	for _, i := range list.Items {
		out = append(out, i.Label)
	}
	return out
}

func TestCompletion(t *testing.T) {
	for _, tt := range []struct {
		name, text    string
		want, without []string
	}{
		{"names", prelude + "x = |", []string{"chunk", "send", "hop", "width", "ranks", "prog", "math", "len", "if"}, []string{"unused", "_private", "<none>"}},
		{"names in a function", strings.Replace(prelude, "c = c.copy(to", "|c = c.copy(to", 1), []string{"to", "times", "unused", "ranks"}, nil},
		{"on an indented blank line of a function", "def f(inside):\n    x = inside\n    |\n\ny = 1\n", []string{"inside", "y"}, nil},
		{"outside of the function", "def f(inside):\n    x = inside\n\n|\ny = 1\n", []string{"f", "y"}, []string{"inside"}},
		{"methods", prelude + "c.|", []string{"copy", "reduce", "split", "rank", "size"}, []string{"nodes", "chunk"}},
		{"methods, some letters in", prelude + "c.co|", []string{"copy"}, nil},
		{"methods of a call", prelude + "chunk(0, \"input\", f(1)[0]).|", []string{"copy"}, []string{"nodes"}},
		{"methods over a line end", prelude + "x = (chunk(0, \"input\", 0)\n    .|copy(1))\n", []string{"copy"}, []string{"nodes"}},
		{"a program's fields", prelude + "prog.|", []string{"topo", "num_ranks"}, []string{"copy"}},
		{"a collective's fields", prelude + "prog.collective.|", []string{"chunk_factor"}, []string{"topo"}},
		{"what a rank does", "r = Rank(0)\nr.|", []string{"get_input_buffer", "copy_packets", "barrier", "rank"}, []string{"put", "split"}},
		{"what a channel does", "ch = MemoryChannel(1, 0)\nch.|", []string{"put", "signal", "dst_rank"}, []string{"flush", "copy"}},
		{"a channel of another kind", "PortChannel(1, 0).|", []string{"flush", "put_with_signal"}, []string{"get"}},
		{"a switch at a rank", "SwitchChannel([0, 1], \"input\").at_rank(0).|", []string{"reduce", "broadcast"}, []string{"at_rank"}},
		{"a slice of a buffer is a chunk", "Rank(0).get_input_buffer()[0:1].|", []string{"index", "size"}, []string{"buffer_type"}},
		{"the program by its with", "with CollectiveProgram(\"p\", AllReduce(2), 2) as p:\n    p.|", []string{"to_json", "num_ranks"}, []string{"topo"}},
		{"sides", "SyncType.|", []string{"none", "before", "after", "both"}, nil},
		{"a constructor's own", "CollectiveProgram.|", []string{"from_spec"}, nil},
		{"strings have methods", "\"a\".|", []string{"join", "startswith"}, []string{"copy"}},
		{"a module", "math.|", []string{"log2", "ceil"}, []string{"copy"}},
		{"numbers have none", "x = 1\nx.|", nil, []string{"copy"}},
		{"of what isn't known, all", "def f(z):\n    z.|", []string{"copy", "nodes"}, nil},
		{"keywords", prelude + "c.copy(1, |)", []string{"buffer=", "index=", "ch="}, []string{"dst="}},
		{"keywords that are not given yet", prelude + "c.copy(1, buffer = \"x\", |, index = 2)", []string{"ch="}, []string{"buffer=", "index="}},
		{"keywords behind keywords", prelude + "c.copy(1, ch = 2, index = 0, |)", []string{"buffer="}, []string{"dst=", "ch="}},
		{"keywords of an open call", prelude + "x = chunk(0, \"input\", |\ny = 3\n", []string{"index=", "size="}, []string{"rank="}},
		{"keywords of a local function", prelude + "send(c, |)", []string{"to=", "times="}, nil},
		{"keywords of a loaded function", prelude + "hop(c, |)", []string{"to=", "ch="}, nil},
		{"values of a keyword", prelude + "send(c, to = |)", []string{"ranks"}, []string{"times="}},
		{"no keywords in a list", prelude + "c.copy([|])", []string{"ranks"}, []string{"dst="}},
		{"buffers", prelude + "chunk(0, \"|\", 0)", []string{"input", "output", "tmp"}, []string{"chunk", "p"}},
		{"buffers by keyword", prelude + "c.copy(1, index = 0, buffer = \"t|", []string{"tmp"}, nil},
		{"no buffers elsewhere", prelude + "param(\"|\", 0)", nil, []string{"input"}},
		{"protocols", "MSCCLProgram(\"p\", t, c, protocol = \"|\")", []string{"Simple", "LL"}, []string{"input"}},
		{"machines", "topology(\"|\")", []string{"hgx_h100"}, nil},
		{"files", "load(\"|\", \"x\")", []string{"@algorithms/ring.star", "@algorithms/tree.star"}, nil},
		{"names of a file", "load(\"lib.star\", \"|\")", []string{"hop", "WIDTH"}, []string{"_private", "input"}},
		{"names of a file under another", "load(\"lib.star\", x = \"|\")", []string{"hop"}, nil},
		{"no names in a load", "load(\"lib.star\", |)", nil, []string{"chunk"}},
		{"comments", "x = 1 # c|", nil, []string{"chunk"}},
		{"numbers", "x = 12|", nil, []string{"chunk"}},
		{"new names", "def |", nil, []string{"chunk"}},
		{"parameters of a def", "def f(a, |", []string{"chunk"}, []string{"a="}},
		{"while the text is broken", prelude + "def g(:\n    x = [\nc.|\n", []string{"copy"}, []string{"nodes"}},
	} {
		var list completionList
		ask(t, "completion", tt.text, &list)
		got := labels(list)
		for _, w := range tt.want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: got %v, want %s", tt.name, got, w)
			}
		}
		for _, w := range tt.without {
			if slices.Contains(got, w) {
				t.Errorf("%s: got %v, want no %s", tt.name, got, w)
			}
		}
		if tt.want == nil && len(got) > 0 {
			t.Errorf("%s: got %v, want nothing", tt.name, got)
		}
	}
}

// An item replaces the word before it, arguments come first, and what it is is told
// when it is asked.
func TestCompletionItems(t *testing.T) {
	c := start(t, Options{}, nil)
	c.initialize()
	c.open("a.star", "def f(z):\n    z.co\nchunk(0, \"inp\")\nchunk(0, si)\n")
	item := func(line, character int, label string) completionItem {
		var list completionList
		if err := c.call("textDocument/completion", at("a.star", line, character), &list); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list.Items, func(i completionItem) bool { return i.Label == label })
		if i < 0 {
			t.Fatalf("got %v, want %s", labels(list), label)
		}
		return list.Items[i]
	}
	for _, tt := range []struct {
		line, character int
		label, detail   string
		edit            textEdit
		doc             string
	}{
		{1, 8, "copy", "(if it is a ref)", textEdit{span{position{1, 6}, position{1, 8}}, "copy"}, "Copies the chunks"},
		{2, 13, "input", "", textEdit{span{position{2, 10}, position{2, 13}}, "input"}, ""},
		{3, 11, "size=", "int", textEdit{span{position{3, 9}, position{3, 11}}, "size = "}, "how many consecutive chunks"},
		{3, 11, "chunk", "chunk(rank, buffer, index, size=1)", textEdit{span{position{3, 9}, position{3, 11}}, "chunk"}, "A reference to chunks"},
		{3, 11, "len", "", textEdit{span{position{3, 9}, position{3, 11}}, "len"}, "How many elements"},
		{3, 11, "Buffer", "", textEdit{span{position{3, 9}, position{3, 11}}, "Buffer"}, "Scratch of a rank"},
		{3, 11, "BufferType", "", textEdit{span{position{3, 9}, position{3, 11}}, "BufferType"}, "`scratch`"},
	} {
		i := item(tt.line, tt.character, tt.label)
		if i.TextEdit == nil || *i.TextEdit != tt.edit || !strings.Contains(i.Detail, tt.detail) {
			t.Errorf("%s: got %+v with %+v, want %+v", tt.label, i, i.TextEdit, tt.edit)
		}
		var full completionItem
		if err := c.call("completionItem/resolve", i, &full); err != nil {
			t.Fatal(err)
		}
		if doc := ""; full.Documentation != nil {
			doc = full.Documentation.Value
			if !strings.Contains(doc, tt.doc) {
				t.Errorf("%s: resolves to %q, want %q", tt.label, doc, tt.doc)
			}
		} else if tt.doc != "" {
			t.Errorf("%s: resolves to nothing, want %q", tt.label, tt.doc)
		}
	}
	if a, b := item(3, 11, "size="), item(3, 11, "chunk"); a.SortText >= b.SortText {
		t.Errorf("size= sorts as %q, chunk as %q", a.SortText, b.SortText)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// Files beside the document can be loaded, itself apart.
func TestCompletionOfFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.star", "b.star", "c.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := start(t, Options{}, nil)
	c.initialize()
	at := map[string]any{"textDocument": map[string]any{"uri": "file://" + dir + "/a.star", "version": 1, "text": "load(\""},
		"position": position{0, 6}}
	c.notify("textDocument/didOpen", at)
	var list completionList
	if err := c.call("textDocument/completion", at, &list); err != nil || !slices.Equal(labels(list), []string{"b.star"}) {
		t.Errorf("got %v %v, want b.star", labels(list), err)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

func TestDefinition(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		file       string
		at         position // -1 for none
	}{
		{"function", prelude + "se|nd(c, 1)\n", "a.star", position{3, 4}},
		{"from within itself", "def f(n):\n    return f|(n)\n", "a.star", position{0, 4}},
		{"parameter", strings.Replace(prelude, "copy(to", "copy(t|o", 1), "a.star", position{3, 12}},
		{"keyword", prelude + "send(c, 1, ti|mes = 2)\n", "a.star", position{3, 16}},
		{"name of a with", prelude + "prog|.topo\n", "a.star", position{12, 71}},
		{"a shadowed name", "x = 1\ndef f():\n    x = 2\n    print(|x)\n", "a.star", position{2, 4}},
		{"the name that it shadows", "x = 1\ndef f():\n    x = 2\nprint(|x)\n", "a.star", position{0, 0}},
		{"in a comprehension", "x = 1\ny = [|x for x in range(3)]\n", "a.star", position{1, 11}},
		{"behind it", "x = 1\ny = [x for x in range(3)] + |x\n", "a.star", position{0, 0}},
		{"in a lambda", "x = 1\nf = lambda x: |x\n", "a.star", position{1, 11}},
		{"loaded function", prelude + "ho|p(c, 1)\n", "lib.star", position{4, 4}},
		{"loaded under another name", prelude + "wid|th\n", "lib.star", position{10, 0}},
		{"in the load", "load(\"lib.star\", \"ho|p\")\n", "lib.star", position{4, 4}},
		{"the file", "load(\"li|b.star\", \"hop\")\n", "lib.star", position{0, 0}},
		{"builtin", "chu|nk(0)\n", "", position{}},
		{"method", prelude + "c.co|py(1)\n", "", position{}},
		{"unknown", "no|pe\n", "", position{}},
		{"string", "x = \"prog|\"\n", "", position{}},
		{"in a broken text", "def f():\n    pass\nx = (\nf|()\n", "a.star", position{0, 4}},
	} {
		var l *location
		ask(t, "definition", tt.text, &l)
		switch {
		case tt.file == "" && l != nil:
			t.Errorf("%s: got %+v, want nothing", tt.name, l)
		case tt.file != "" && (l == nil || l.URI != uri(tt.file) || l.Range.Start != tt.at):
			t.Errorf("%s: got %+v, want %s %v", tt.name, l, tt.file, tt.at)
		}
	}
}

// A script of the library is a file when an editor wants to see it, and known for
// what it is when the editor opens it.
func TestLibraryFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder", "lib")
	c := start(t, Options{Library: library, LibraryDir: dir}, nil)
	c.initialize()
	c.open("a.star", "load(\"@algorithms/ring.star\", \"around\")\naround(1)\n")
	var l *location
	if err := c.call("textDocument/definition", at("a.star", 1, 2), &l); err != nil || l == nil {
		t.Fatalf("got %v %v", l, err)
	}
	file := c.s.fileOf(l.URI)
	if file != "@algorithms/ring.star" || l.Range.Start != (position{2, 4}) || !strings.Contains(l.URI, "/a%20folder/lib/ring.star") {
		t.Errorf("got %+v, which is %s", l, file)
	}
	for name, f := range library {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != string(f.Data) {
			t.Errorf("%s: got %q %v", name, got, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(library) {
		t.Errorf("got %d files %v, want %d", len(entries), err, len(library))
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

func TestSignatureHelp(t *testing.T) {
	for _, tt := range []struct {
		text, label string
		active      int
	}{
		{"chunk(|", "chunk(rank, buffer, index, size=1)", 0},
		{"chunk(0, |", "chunk(rank, buffer, index, size=1)", 1},
		{"chunk(0, \"in|put\")", "chunk(rank, buffer, index, size=1)", 1},
		{"chunk(0, f(1, 2), [3, 4], |)", "chunk(rank, buffer, index, size=1)", 3},
		{"chunk(0, size = |)", "chunk(rank, buffer, index, size=1)", 3},
		{"chunk(0, 1, 2, 3, |)", "chunk(rank, buffer, index, size=1)", 4}, // there is no fifth
		{"chunk(0, \"input\", 0).split(|)", "ref.split(num)", 0},
		{"chunk(fully_connected(|))", "fully_connected(num_nodes)", 0},
		{"chunk(0, \"a\", (1 + |", "chunk(rank, buffer, index, size=1)", 2},
		{"chunk(0, \"a\", len([x, |", "chunk(rank, buffer, index, size=1)", 2},
		{"x == chunk(0 == 0, |", "chunk(rank, buffer, index, size=1)", 1},
	} {
		var h *signatureHelp
		ask(t, "signatureHelp", tt.text, &h)
		if h == nil || h.Signatures[0].Label != tt.label || h.ActiveParameter != tt.active {
			t.Errorf("%s: got %+v, want %s, parameter %d", tt.text, h, tt.label, tt.active)
		}
	}
	for _, text := range []string{"|chunk(0)", "chunk(0)|", "len(|)", "(|)", "def chunk(|):\n    pass\n"} {
		var h *signatureHelp
		if ask(t, "signatureHelp", text, &h); h != nil {
			t.Errorf("%s: got %+v, want nothing", text, h)
		}
	}
}

func TestSymbols(t *testing.T) {
	var list []documentSymbol
	ask(t, "documentSymbol", "|"+prelude, &list)
	got, err := json.Marshal(brief(list))
	if err != nil {
		t.Fatal(err)
	}
	// ranks is a parameter, send a function with a variable, p a program.
	want := `["ranks:14@1-1","send(c, to, times = 1):12@3-10",["c:13@9-9"],"p MSCCLProgram:2@12-15",["c:13@13-13","parts:13@14-14"]]`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// brief is name, detail, kind and lines of symbols, with their children behind them.
func brief(list []documentSymbol) []any {
	var out []any
	for _, s := range list {
		sep := " "
		if strings.HasPrefix(s.Detail, "(") || s.Detail == "" {
			sep = ""
		}
		out = append(out, fmt.Sprintf("%s%s%s:%d@%d-%d", s.Name, sep, s.Detail, s.Kind, s.Range.Start.Line, s.Range.End.Line))
		if len(s.Children) > 0 {
			out = append(out, brief(s.Children))
		}
	}
	return out
}

func TestFolding(t *testing.T) {
	var list []foldingRange
	ask(t, "foldingRange", "|\"\"\"Doc.\n\nMore.\n\"\"\"\nx = [\n    1,\n]\nwith f():\n    for i in x:\n        pass\n\n    y = 1\nz = 1\n", &list)
	want := []foldingRange{{0, 3, "comment"}, {4, 6, ""}, {7, 11, ""}, {8, 9, ""}}
	if !slices.Equal(list, want) {
		t.Errorf("got %v, want %v", list, want)
	}
}

// All of Starlark's own functions are described.
func TestUniverse(t *testing.T) {
	texts := universe()
	for _, name := range starlark.Universe.Keys() {
		if texts[name] == "" {
			t.Errorf("%s is not described", name)
		}
		delete(texts, name)
	}
	for name := range texts {
		t.Errorf("%s is described and isn't there", name)
	}
}

// A finding is explained where it stands, behind what stands there.
func TestHoverExplains(t *testing.T) {
	c := start(t, Options{Judge: echo, Explain: func(code string) string { return "the meaning of " + code }}, nil)
	c.initialize()
	c.open("a.star", "chunk = 1\nother = 2\n")
	c.diagnostics("a.star") // at the first word
	var h *hoverResult
	if err := c.call("textDocument/hover", at("a.star", 0, 2), &h); err != nil || h == nil ||
		!strings.Contains(h.Contents.Value, "chunk = 1") || !strings.HasSuffix(h.Contents.Value, "\n\n---\n\nthe meaning of echo") {
		t.Errorf("got %+v %v", h, err)
	}
	if err := c.call("textDocument/hover", at("a.star", 1, 2), &h); err != nil || h == nil || strings.Contains(h.Contents.Value, "meaning") {
		t.Errorf("elsewhere: got %+v %v", h, err)
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}
