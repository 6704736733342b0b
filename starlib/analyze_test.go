package starlib

import (
	"slices"
	"testing"

	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// All wrong names are found, at their columns in bytes.
func TestAnalyzeFindsAllNames(t *testing.T) {
	f, list := Analyze("x.star", []byte("a = 'é' + nope\nwith parallelize(2) as p:\n    chunk(0, wrong, p)\n"))
	if f == nil || len(list) != 2 {
		t.Fatalf("got %v, want a tree and 2 errors", list)
	}
	for i, want := range []string{"x.star:1:12", "x.star:3:14"} {
		if got := list[i].Pos.String(); got != want {
			t.Errorf("error %d: got %s, want %s", i, got, want)
		}
	}
	if f, list := Analyze("x.star", []byte("a = (\n")); f != nil || len(list) != 1 || list[0].Code != "syntax" {
		t.Errorf("got %v, want no tree and a syntax error", list)
	}
}

func TestWith(t *testing.T) {
	f, list := Analyze("x.star", []byte("with parallelize(2) as p, parallelize(3):\n    pass\nfor i in [1]:\n    pass\n"))
	if len(list) > 0 {
		t.Fatal(list)
	}
	x, name, ok := With(f.Stmts[0])
	if call, isCall := x.(*syntax.CallExpr); !ok || !isCall || call.Fn.(*syntax.Ident).Name != "parallelize" || name == nil || name.Name != "p" {
		t.Errorf("first item: got %v %v %v", x, name, ok)
	}
	inner := f.Stmts[0].(*syntax.ForStmt).Body[0]
	if _, name, ok := With(inner); !ok || name != nil {
		t.Errorf("second item: got %v %v, want a with without a name", name, ok)
	}
	if _, _, ok := With(f.Stmts[1]); ok {
		t.Error("a loop is no with")
	}
}

// Fields and the methods of the table are all that values have.
func TestFieldsAreThose(t *testing.T) {
	in := &interp{}
	values := map[string]interface{ AttrNames() []string }{
		"ref": &ref{trace.Ref{}, &program{in: in}}, "program": &program{in: in},
		"collective": &collective{}, "topology": &topology{in, ir.NewTopology("t", 1)},
		"CollectiveProgram": &oneProgram{}, "AlgoSpec": &algoSpec{}, "Buffer": &memoryValue{}, "Chunk": &chunkValue{}, "ThreadBlockGroup": &blockGroup{},
		"Rank": &oneValue{methods: rankMethods, fields: oneRankFields}, "Semaphore": &oneValue{methods: semaphoreMethods, fields: oneRankFields},
		"MemoryChannel": &oneValue{methods: memoryChannelMethods, fields: channelFields},
		"PortChannel":   &oneValue{methods: portChannelMethods, fields: channelFields},
		"SwitchChannel": &oneValue{methods: switchChannelMethods},
	}
	for typ, v := range values {
		want := slices.Clone(Fields(typ))
		for _, s := range Signatures() {
			if s.Receiver == typ {
				want = append(want, s.Name)
			}
		}
		got := slices.Clone(v.AttrNames())
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: Fields and methods are %v, values have %v", typ, want, got)
		}
	}
}

func TestModules(t *testing.T) {
	m := Modules()
	if !slices.Equal(m["Buffer"], []string{"input", "output"}) || !slices.Contains(m["math"], "log2") || m["struct"] != nil {
		t.Errorf("got %v", m)
	}
	if _, ok := m["struct"]; !ok || len(m) != 10 {
		t.Errorf("got %d names, want Buffer, BufferType, CollectiveProgram, ReduceOperationType, ReplicationPolicy, SyncType, ThreadblockPolicy, math, json and struct", len(m))
	}
}
