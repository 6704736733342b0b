package trace_test

import (
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// A ring of three: each sum wanders once around, then is handed out twice. The
// counts after each operation are by hand.
func TestHoldsWhileTracing(t *testing.T) {
	b, err := trace.New(ir.Spec{Name: "ring", Coll: ir.NewCollective(ir.AllReduce, 3, 1, true), Topo: ir.FullyConnected(3), Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	h := b.Holds()
	check := func(when string, want int) {
		t.Helper()
		if right, demanded, known := h.Count(); right != want || demanded != 3 || !known {
			t.Fatalf("%s: got %d of %d, %v, want %d of 3", when, right, demanded, known, want)
		}
	}
	check("at first", 0)
	chunk := func(r ir.Rank) trace.Ref {
		x, err := b.Chunk(r, ir.Input, 0, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	c, err := b.Reduce(chunk(1), chunk(0), trace.NoHints, 0)
	if err != nil {
		t.Fatal(err)
	}
	check("two of three summed", 0)
	if c, err = b.Reduce(chunk(2), c, trace.NoHints, 0); err != nil {
		t.Fatal(err)
	}
	check("all summed", 1)
	if c, err = b.Copy(c, 0, ir.Input, 0, trace.NoHints, 0); err != nil {
		t.Fatal(err)
	}
	check("one copy", 2)
	if _, err = b.Copy(c, 1, ir.Output, 0, trace.NoHints, 0); err != nil {
		t.Fatal(err)
	}
	check("both copies", 3)
	if _, err = b.Reduce(chunk(1), chunk(0), trace.NoHints, 0); err != nil {
		t.Fatal(err)
	}
	check("one too many", 2)
}

// A collective that demands nothing holds without anything done.
func TestHoldsNothingDemanded(t *testing.T) {
	coll := &ir.Collective{Kind: ir.Custom, Ranks: 2, ChunkFactor: 1, Split: 1, Root: ir.None, Custom: &ir.CustomSpec{
		Input: []int32{1, 1}, Output: []int32{1, 1}, Expect: [][][]ir.Contribution{{nil}, {nil}}}}
	b, err := trace.New(ir.Spec{Name: "free", Coll: coll, Topo: ir.FullyConnected(2), Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	if right, demanded, known := b.Holds().Count(); right != 0 || demanded != 0 || !known {
		t.Fatalf("got %d of %d, %v", right, demanded, known)
	}
}
