package ir_test

import (
	"slices"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/topo"
	"pgregory.net/rapid"
)

// ids drains an iterator, checking what it says about its length on the way.
func ids(t *rapid.T, it graph.Nodes) []int64 {
	var list []int64
	for left := it.Len(); it.Next(); left-- {
		if it.Len() != left-1 {
			t.Fatalf("Len is %d, want %d", it.Len(), left-1)
		}
		list = append(list, it.Node().ID())
	}
	if it.Next() || it.Len() != 0 || it.Node() != nil {
		t.Fatal("an iterator at its end gives something")
	}
	return list
}

// The graph shows exactly the edges, in both directions, and gonum sorts it.
func checkGraph(t *rapid.T, g graph.Directed, e *ir.Edges) {
	n := len(e.Start) - 1
	from := make([][]int64, n)
	for v := range n {
		var want []int64
		for _, p := range e.Of(int32(v)) {
			want = append(want, int64(p))
			from[p] = append(from[p], int64(v))
		}
		if got := ids(t, g.To(int64(v))); !slices.Equal(got, want) {
			t.Fatalf("To(%d): got %v, want %v", v, got, want)
		}
	}
	for v := range int64(n) {
		if got := ids(t, g.From(v)); !slices.Equal(got, from[v]) {
			t.Fatalf("From(%d): got %v, want %v", v, got, from[v])
		}
		for u := range int64(n) {
			has := slices.Contains(from[u], v)
			edge := g.Edge(u, v)
			if g.HasEdgeFromTo(u, v) != has || (edge != nil) != has || g.HasEdgeBetween(v, u) != (has || slices.Contains(from[v], u)) {
				t.Fatalf("edge %d to %d: want %v", u, v, has)
			}
			if has && (edge.From().ID() != u || edge.To().ID() != v || edge.ReversedEdge().From().ID() != v) {
				t.Fatalf("edge %d to %d: got %v", u, v, edge)
			}
		}
	}
	if got := ids(t, g.Nodes()); len(got) != n {
		t.Fatalf("got %d nodes, want %d", len(got), n)
	}
	for _, id := range []int64{-1, int64(n)} {
		if g.Node(id) != nil || g.From(id).Next() || g.To(id).Next() || g.HasEdgeFromTo(id, 0) || g.Edge(0, id) != nil {
			t.Fatalf("node %d exists", id)
		}
	}
	order, err := topo.Sort(g)
	if err != nil {
		t.Fatal(err)
	}
	at := make([]int, n)
	for i, v := range order {
		at[v.ID()] = i
	}
	for v := range n {
		for _, p := range e.Of(int32(v)) {
			if at[p] >= at[v] {
				t.Fatalf("%d is sorted before %d, which it waits for", v, p)
			}
		}
	}
}

func TestGraphs(t *testing.T) {
	t.Run("chunkdag", rapid.MakeCheck(func(t *rapid.T) {
		d := drawChunkDAG(t)
		checkGraph(t, d.Graph(), d.Edges())
	}))
	t.Run("instrdag", rapid.MakeCheck(func(t *rapid.T) {
		d := drawInstrDAG(t)
		checkGraph(t, d.Graph(), d.Edges())
	}))
}

func TestGraphIteratorResets(t *testing.T) {
	it := ringDAG(3).Graph().Nodes()
	for it.Next() {
	}
	it.Reset()
	if it.Node() != nil || it.Len() != 12 || !it.Next() || it.Node().ID() != 0 {
		t.Error("after Reset the iterator does not start again")
	}
}
