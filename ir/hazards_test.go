package ir_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"pgregory.net/rapid"
)

// edges writes them as "3: 0 true, 2 anti" a node, nodes without any left out.
func edges(e *ir.Edges) string {
	var lines []string
	for v := range int32(len(e.Start) - 1) {
		var deps []string
		for i, p := range e.Of(v) {
			deps = append(deps, fmt.Sprintf("%d %s", p, e.KindsOf(v)[i]))
		}
		if deps != nil {
			lines = append(lines, fmt.Sprintf("%d: %s", v, strings.Join(deps, ", ")))
		}
	}
	return strings.Join(lines, "; ")
}

// Each program is on two ranks with four chunks of input and output.
func TestChunkEdges(t *testing.T) {
	const header = `chunkdag "p"
collective allreduce ranks 2 factor 4 split 1
topology none
protocol LL
policy auto instances 1
buffer "input" 4*2
buffer "output" 4*2
`
	for _, c := range []struct{ name, ops, want string }{
		{"independent", "0 copy 0.i[0] -> 1.o[0] x1\n1 copy 0.i[1] -> 1.o[1] x1", ""},
		{"read after write", "0 copy 0.i[0] -> 1.o[0] x1\n1 copy 1.o[0] -> 0.o[0] x1", "1: 0 true"},
		{"write after read", "0 copy 0.i[0] -> 1.o[0] x1\n1 copy 1.i[0] -> 0.i[0] x1", "1: 0 anti"},
		{"write after write", "0 copy 0.i[0] -> 1.o[0] x1\n1 copy 0.i[1] -> 1.o[0] x1", "1: 0 output"},
		{"readers between hide the writer", "0 copy 0.i[0] -> 1.o[0] x1\n1 copy 1.o[0] -> 0.o[0] x1\n2 copy 1.o[0] -> 0.o[1] x1\n3 copy 0.i[1] -> 1.o[0] x1",
			"1: 0 true; 2: 0 true; 3: 1 anti, 2 anti"},
		{"a reduce reads its destination", "0 copy 0.i[0] -> 1.o[0] x1\n1 reduce 0.i[1] -> 1.o[0] x1\n2 reduce 0.i[2] -> 1.o[0] x1", "1: 0 true; 2: 1 true"},
		{"part of a range", "0 copy 0.i[0] -> 1.o[0] x1\n1 copy 0.i[1] -> 1.o[3] x1\n2 copy 1.o[0] -> 0.o[0] x4", "2: 0 true, 1 true"},
		{"the strongest reason wins", "0 reduce 1.i[0] -> 0.i[0] x1\n1 reduce 1.i[1] -> 0.i[0] x1", "1: 0 true"},
		{"true beats anti", "0 copy 0.i[0] -> 0.o[0] x1\n1 copy 0.o[0] -> 0.i[0] x1", "1: 0 true"},
		{"a swap through the same node", "0 copy 0.i[0] -> 0.i[1] x1\n1 copy 0.i[1] -> 0.i[0] x1\n2 copy 0.i[2] -> 0.i[1] x1", "1: 0 true; 2: 1 anti"},
		{"a write forgets older readers", "0 copy 0.i[0] -> 0.o[0] x1\n1 copy 0.i[1] -> 0.i[0] x1\n2 copy 0.i[2] -> 0.i[0] x1", "1: 0 anti; 2: 1 output"},
		{"ranks do not mix", "0 copy 0.i[0] -> 0.o[0] x1\n1 copy 1.i[0] -> 1.o[0] x1", ""},
	} {
		d := must(ir.ParseChunkDAG(strings.NewReader(header+c.ops), "x"))
		if got := edges(d.Edges()); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestInstrEdges(t *testing.T) {
	if got, want := edges(handInstrs().Edges()), "1: 0 comm; 2: 1 comm"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	d := handInstrs()
	d.Instrs[3].Dst = place(ir.Input, 1) // over what instruction 0 sends
	if got, want := edges(d.Edges()), "1: 0 comm; 2: 1 comm; 3: 0 anti"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Against the definition, location by location: v reads what u wrote exactly if
// u is the last writer before v of a location that v reads. Two operations that
// touch a location in common, one of them writing, are ordered, if only through
// others; and operations that don't have no edge.
func TestEdgesKeepExactlyTheConflicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawChunkDAG(t)
		n := len(d.Ops)
		e := d.Edges()
		before := make([][]bool, n) // before[v][u]: a path of edges from u to v
		for v := range n {
			before[v] = make([]bool, n)
			if !slices.IsSorted(e.Of(int32(v))) {
				t.Fatalf("predecessors of %d are not ascending: %v", v, e.Of(int32(v)))
			}
			kinds := map[int]ir.DepKind{}
			for i, p := range e.Of(int32(v)) {
				kinds[int(p)] = e.KindsOf(int32(v))[i]
				before[v][p] = true
				for u := range p {
					before[v][u] = before[v][u] || before[p][u]
				}
			}
			for u := range v {
				kind, has := kinds[u]
				if value := readsFrom(d, u, v); value != (has && kind == ir.DepTrue) {
					t.Fatalf("%d to %d: got edge %v of kind %s, but whether it moves a value is %v", u, v, has, kind, value)
				}
				if c := conflict(&d.Ops[u], &d.Ops[v]); has && !c || c && !before[v][u] {
					t.Fatalf("%d to %d: conflict %v, edge %v, ordered %v", u, v, c, has, before[v][u])
				}
			}
		}
	})
}

func reads(o *ir.ChunkOp, l ir.Loc) bool {
	return overlap(o.Src, o.Count, l, 1) || o.Kind == ir.ChunkReduce && overlap(o.Dst, o.Count, l, 1)
}

// readsFrom reports whether v reads a location that u wrote last.
func readsFrom(d *ir.ChunkDAG, u, v int) bool {
	for k := range d.Ops[u].Count {
		l := d.Ops[u].Dst
		l.Index += k
		last := true
		for w := u + 1; w < v; w++ {
			last = last && !overlap(d.Ops[w].Dst, d.Ops[w].Count, l, 1)
		}
		if last && reads(&d.Ops[v], l) {
			return true
		}
	}
	return false
}

// conflict reports whether u and v touch a location in common, one writing it.
func conflict(u, v *ir.ChunkOp) bool {
	return overlap(u.Dst, u.Count, v.Dst, v.Count) || overlap(u.Dst, u.Count, v.Src, v.Count) || overlap(u.Src, u.Count, v.Dst, v.Count)
}

func overlap(a ir.Loc, n int32, b ir.Loc, m int32) bool {
	return a.Rank == b.Rank && a.Buf == b.Buf && a.Index < b.Index+m && b.Index < a.Index+n
}
