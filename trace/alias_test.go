package trace_test

import (
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// In place, input and output are views of one memory. For every collective: what
// is written under one name is read under the other, and makes references taken
// under the other stale.
func TestInPlaceAliases(t *testing.T) {
	custom := func() *ir.Collective {
		c := ir.NewCollective(ir.Custom, 3, 1, true)
		// In place a rank has the larger of the two; sizes differ on rank 1.
		c.Custom = &ir.CustomSpec{Input: []int32{2, 1, 2}, Output: []int32{2, 4, 2},
			Expect: [][][]ir.Contribution{make([][]ir.Contribution, 2), make([][]ir.Contribution, 4), make([][]ir.Contribution, 2)}}
		return c
	}
	for _, c := range []struct {
		name     string
		coll     *ir.Collective
		rank     ir.Rank
		in, out  int32 // the same memory
		inChunks int32 // of that rank
		outSize  int32
	}{
		{"allreduce", ir.NewCollective(ir.AllReduce, 3, 2, true), 1, 1, 1, 2, 2},
		{"allgather: the rank's part of the output", ir.NewCollective(ir.AllGather, 3, 2, true), 1, 1, 3, 2, 6},
		{"reduce_scatter: the rank's part of the input", ir.NewCollective(ir.ReduceScatter, 3, 2, true), 1, 3, 1, 6, 2},
		{"alltoall", ir.NewCollective(ir.AllToAll, 3, 2, true), 1, 4, 4, 6, 6},
		{"broadcast at the root", rooted(ir.Broadcast, 3, 2, 1, true), 1, 1, 1, 2, 2},
		{"broadcast elsewhere", rooted(ir.Broadcast, 3, 2, 0, true), 1, 1, 1, 2, 2},
		{"reduce at the root", rooted(ir.ReduceTo, 3, 2, 1, true), 1, 1, 1, 2, 2},
		{"reduce elsewhere", rooted(ir.ReduceTo, 3, 2, 0, true), 1, 1, 1, 2, 2},
		{"gather at the root", rooted(ir.Gather, 3, 2, 1, true), 1, 1, 3, 2, 6},
		{"scatter at the root", rooted(ir.Scatter, 3, 2, 1, true), 1, 3, 1, 6, 2},
		{"alltonext", ir.NewCollective(ir.AllToNext, 3, 2, true), 1, 1, 1, 2, 2},
		{"custom, beyond the input", custom(), 1, 3, 3, 4, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, c.coll, nil)
			if i, o := s.LenScratch(in, c.rank), s.LenScratch(out, c.rank); i != c.inChunks || o != c.outSize {
				t.Fatalf("sizes: got %d and %d, want %d and %d", i, o, c.inChunks, c.outSize)
			}
			// Something to write: the first chunk of the first rank that has one.
			from := ir.Rank(0)
			for len(s.Contributions(from, in, 0)) == 0 || from == c.rank && c.in == 0 {
				from++
			}
			value := s.Contributions(from, in, 0)
			src := s.chunk(from, in, 0, 1, 1)

			asOutput := s.copy(src, c.rank, out, c.out, 2)
			s.holds(c.rank, in, c.in, value)
			s.holds(c.rank, out, c.out, value)

			asInput := s.copy(src, c.rank, in, c.in, 3)
			if _, err := s.Copy(asOutput, from, s.Scratch("a"), 0, no, s.line(4)); err == nil {
				t.Error("a reference named output outlived a write to the input that it aliases")
			}
			s.copy(src, c.rank, out, c.out, 5)
			if _, err := s.Copy(asInput, from, s.Scratch("a"), 0, no, s.line(6)); err == nil {
				t.Error("a reference named input outlived a write to the output that it aliases")
			}
			// A neighbor is another location.
			if c.in > 0 && from != c.rank {
				near := s.copy(src, c.rank, in, c.in-1, 7)
				s.copy(src, c.rank, out, c.out, 8)
				s.copy(near, c.rank, s.Scratch("a"), none, 9)
			}
		})
	}
}

// Where nothing is shared, writing the output leaves the input alone.
func TestSeparateBuffers(t *testing.T) {
	for _, c := range []struct {
		name string
		coll *ir.Collective
		rank ir.Rank
	}{
		{"allreduce out of place", ir.NewCollective(ir.AllReduce, 3, 2, false), 1},
		{"allgather out of place", ir.NewCollective(ir.AllGather, 3, 2, false), 0},
		{"scatter out of place at the root", rooted(ir.Scatter, 3, 2, 0, false), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, c.coll, nil)
			old := s.chunk(c.rank, in, 1, 1, 1)
			s.copy(s.chunk(c.rank, in, 0, 1, 2), c.rank, out, 1, 3)
			s.holds(c.rank, in, 1, of(int32(c.rank), 1))
			s.holds(c.rank, out, 1, of(int32(c.rank), 0))
			s.copy(old, c.rank, out, 0, 4)
		})
	}
}

// In place, gather's and scatter's other ranks have one buffer only.
func TestNonRootsOfGatherAndScatter(t *testing.T) {
	s := newScript(t, rooted(ir.Gather, 3, 2, 0, true), nil)
	if i, o := s.LenScratch(in, 2), s.LenScratch(out, 2); i != 2 || o != 0 {
		t.Errorf("gather: got %d and %d chunks, want 2 and 0", i, o)
	}
	s.holds(2, in, 1, of(2, 1))
	s = newScript(t, rooted(ir.Scatter, 3, 2, 0, true), nil)
	if i, o := s.LenScratch(in, 2), s.LenScratch(out, 2); i != 0 || o != 2 {
		t.Errorf("scatter: got %d and %d chunks, want 0 and 2", i, o)
	}
	s.copy(s.chunk(0, in, 4, 2, 1), 2, out, 0, 2)
	s.holds(2, out, 1, of(0, 5))
}
