package trace_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// of lists contributions as rank, index, rank, index, ...
func of(pairs ...int32) []ir.Contribution {
	var list []ir.Contribution
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, ir.Contribution{Rank: ir.Rank(pairs[i]), Index: pairs[i+1]})
	}
	return list
}

func (s script) holds(rank ir.Rank, buf ir.BufferID, index int32, want []ir.Contribution) {
	s.t.Helper()
	if got := s.Contributions(rank, buf, index); !slices.Equal(got, want) {
		s.t.Errorf("rank %d %s[%d]: got %v, want %v", rank, s.Spec().BufferName(buf), index, got, want)
	}
}

func TestCopyMovesTheWholeRange(t *testing.T) {
	s := newScript(t, allreduce(2, 4, false), nil)
	r := s.copy(s.chunk(0, in, 1, 3, 1), 1, out, 0, 2)
	if r.Rank != 1 || r.Buf != out || r.Index != 0 || r.Count != 3 {
		t.Errorf("result: got %+v", r)
	}
	s.holds(1, out, 0, of(0, 1))
	s.holds(1, out, 1, of(0, 2))
	s.holds(1, out, 2, of(0, 3))
	s.holds(1, out, 3, nil)
	s.holds(0, in, 1, of(0, 1))
}

func TestReduceKeepsEveryContribution(t *testing.T) {
	s := newScript(t, allreduce(3, 2, true), nil)
	c := s.reduce(s.chunk(2, in, 0, 2, 1), s.chunk(0, in, 0, 2, 2), 3)
	c = s.reduce(c, s.chunk(1, in, 0, 2, 4), 5)
	s.holds(2, in, 0, of(0, 0, 1, 0, 2, 0))
	s.holds(2, in, 1, of(0, 1, 1, 1, 2, 1))
	// What is added twice counts twice.
	s.reduce(c, s.chunk(0, in, 0, 2, 6), 7)
	s.holds(2, in, 0, of(0, 0, 0, 0, 1, 0, 2, 0))
	s.holds(0, in, 0, of(0, 0))
}

func TestReduceAcrossIndices(t *testing.T) {
	s := newScript(t, allreduce(2, 4, true), nil)
	s.reduce(s.chunk(1, in, 2, 2, 1), s.chunk(0, in, 0, 2, 2), 3)
	s.holds(1, in, 2, of(0, 0, 1, 2))
	s.holds(1, in, 3, of(0, 1, 1, 3))
}

func TestNewestReferences(t *testing.T) {
	s := newScript(t, allreduce(3, 4, true), nil)
	a := s.chunk(0, in, 0, 2, 1)
	// Being read makes nothing stale, and neither does a write beside it.
	s.copy(a, 1, in, 0, 2)
	s.copy(s.chunk(0, in, 3, 1, 3), 0, in, 2, 4)
	s.copy(a, 2, in, 0, 5)
	// The result of a reduce is newest, and so are its parts and groups of them.
	a = s.reduce(a, s.chunk(1, in, 2, 2, 6), 7)
	parts, err := s.Split(a, 2, s.line(8))
	if err != nil {
		t.Fatal(err)
	}
	a = s.must(s.Group(parts[1], parts[0], s.line(9)))
	if a.Index != 0 || a.Count != 2 {
		t.Errorf("group: got index %d count %d, want 0 and 2", a.Index, a.Count)
	}
	s.copy(a, 2, in, 2, 10)
	s.holds(2, in, 3, of(0, 1, 1, 3))
}

func TestDefaultsOfCopy(t *testing.T) {
	s := newScript(t, ir.NewCollective(ir.AllGather, 3, 2, true), nil)
	// Without a place: the place as named, read with the destination's mapping.
	// Input 1 of rank 0 is its output 1, of rank 2 its output 5.
	r := s.copy(s.chunk(0, in, 1, 1, 1), 2, none, none, 2)
	if r.Buf != in || r.Index != 1 {
		t.Errorf("named: got buffer %d index %d, want input 1", r.Buf, r.Index)
	}
	s.holds(2, out, 5, of(0, 1))
	s.holds(2, out, 1, nil)
	// Scratch without an index is appended to, after holes too.
	a := s.Scratch("a")
	s.copy(s.chunk(0, in, 0, 1, 3), 1, a, 2, 4)
	r = s.copy(s.chunk(0, in, 0, 2, 5), 1, a, none, 6)
	if r.Index != 3 || s.LenScratch(a, 1) != 5 || s.LenScratch(a, 0) != 0 {
		t.Errorf("append: got index %d, lengths %d and %d, want 3, 5 and 0", r.Index, s.LenScratch(a, 1), s.LenScratch(a, 0))
	}
	s.holds(1, a, 1, nil)
	s.holds(1, a, 4, of(0, 1))
	// From scratch without a place: the same scratch.
	r = s.copy(r, 2, none, none, 7)
	if r.Buf != a || r.Index != 3 || s.LenScratch(a, 2) != 5 {
		t.Errorf("scratch to scratch: got buffer %d index %d length %d", r.Buf, r.Index, s.LenScratch(a, 2))
	}
}

// A scratch buffer that grows while it is copied from keeps what was read.
func TestAppendFromItself(t *testing.T) {
	s := newScript(t, allreduce(1, 2, true), nil)
	a := s.Scratch("a")
	c := s.copy(s.chunk(0, in, 0, 2, 1), 0, a, 0, 2)
	for i := range int32(6) {
		c = s.copy(c, 0, a, none, 3)
		s.holds(0, a, 2*i+2, of(0, 0))
		s.holds(0, a, 2*i+3, of(0, 1))
	}
}

func TestGroupOfTwoNames(t *testing.T) {
	s := newScript(t, ir.NewCollective(ir.AllGather, 2, 1, true), nil)
	s.copy(s.chunk(1, in, 0, 1, 1), 0, out, 1, 2)
	// Rank 0's input 0 is its output 0, the neighbor of output 1.
	r := s.must(s.Group(s.chunk(0, out, 1, 1, 3), s.chunk(0, in, 0, 1, 4), s.line(5)))
	if r.Buf != out || r.Index != 0 || r.Count != 2 {
		t.Errorf("got buffer %d index %d count %d, want output 0 and 2", r.Buf, r.Index, r.Count)
	}
}

func TestWhatIsRecorded(t *testing.T) {
	s := newScript(t, ir.NewCollective(ir.ReduceScatter, 2, 2, true), nil)
	a := s.Scratch("a")
	if s.Scratch("b") != a+1 || s.Scratch("a") != a {
		t.Fatal("scratch ids: want one a name, in order of first use")
	}
	h := trace.Hints{SendTB: 1, RecvTB: 2, Chan: 3}
	// Output 1 of rank 1 is its input 3.
	c := s.must(s.Copy(s.chunk(1, out, 1, 1, 1), 0, a, 4, h, s.line(2)))
	if err := s.Parallelize(2, s.line(3)); err != nil {
		t.Fatal(err)
	}
	if err := s.Parallelize(3, s.line(3)); err != nil {
		t.Fatal(err)
	}
	s.reduce(s.chunk(0, in, 0, 1, 4), c, 5)
	s.EndParallelize()
	s.copy(c, 1, none, none, 6)
	s.EndParallelize()
	s.copy(c, 1, none, none, 6)
	d, err := s.Finish()
	if err != nil {
		t.Fatal(err)
	}
	loc := func(r ir.Rank, b ir.BufferID, i int32) ir.Loc { return ir.Loc{Rank: r, Buf: b, Index: i} }
	op := func(k ir.ChunkKind, src, dst ir.Loc, parallel int32, line int32) ir.ChunkOp {
		return ir.ChunkOp{Kind: k, Src: src, Dst: dst, Count: 1, Chan: none, SendTB: none, RecvTB: none,
			Parallel: parallel, Pos: s.line(line)}
	}
	want := []ir.ChunkOp{
		{Kind: ir.ChunkCopy, Src: loc(1, in, 3), Dst: loc(0, a, 4), Count: 1, Chan: 3, SendTB: 1, RecvTB: 2, Parallel: 1, Pos: s.line(2)},
		op(ir.ChunkReduce, loc(0, a, 4), loc(0, in, 0), 6, 5),
		op(ir.ChunkCopy, loc(0, a, 4), loc(1, a, 4), 2, 6),
		op(ir.ChunkCopy, loc(0, a, 4), loc(1, a, 4), 1, 6),
	}
	if !reflect.DeepEqual(d.Ops, want) {
		t.Errorf("operations:\ngot  %+v\nwant %+v", d.Ops, want)
	}
	buffers := []ir.Buffer{
		{Name: "input", Chunks: []int32{4, 4}}, {Name: "output", Chunks: []int32{2, 2}},
		{Name: "a", Chunks: []int32{5, 5}}, {Name: "b", Chunks: []int32{0, 0}},
	}
	if !reflect.DeepEqual(d.Buffers, buffers) {
		t.Errorf("buffers: got %+v, want %+v", d.Buffers, buffers)
	}
	positions := len(d.Positions)
	s.line(77)
	s.Scratch("late")
	if len(d.Positions) != positions || len(d.Buffers) != 4 {
		t.Error("a finished program changes with its builder")
	}
	s.holds(1, a, 4, of(1, 3))
}

// A refused call leaves the program as it was, so that a front end can go on.
func TestRefusedCallsLeaveNothing(t *testing.T) {
	s := newScript(t, allreduce(3, 2, true), line(3))
	a := s.Scratch("a")
	c := s.chunk(0, in, 0, 2, 1)
	refuse := func(_ trace.Ref, err error) {
		t.Helper()
		if err == nil {
			t.Fatal("want an error")
		}
	}
	refuse(s.Copy(c, 2, a, none, no, s.line(2)))
	refuse(s.Copy(c, 1, a, 5, trace.Hints{SendTB: -5}, s.line(3)))
	refuse(s.Reduce(s.chunk(2, in, 0, 2, 4), c, no, s.line(5)))
	if s.Ops() != 0 || s.LenScratch(a, 1) != 0 || s.LenScratch(a, 2) != 0 {
		t.Errorf("got %d operations, scratch of %d and %d chunks, want none", s.Ops(), s.LenScratch(a, 1), s.LenScratch(a, 2))
	}
	s.holds(2, in, 0, of(2, 0))
	s.copy(c, 1, a, none, 6)
}

func TestPositionsAreInterned(t *testing.T) {
	s := newScript(t, allreduce(2, 1, true), nil)
	p := func(line, col int32) diag.Pos { return diag.Pos{File: "algo.star", Line: line, Col: col} }
	if got := s.Pos(diag.Pos{}); got != 0 {
		t.Errorf("no position: got id %d, want 0", got)
	}
	ids := map[ir.PosID]diag.Pos{}
	for range 2 {
		for line := range int32(40) {
			for col := range int32(40) { // far more than any cache holds
				ids[s.Pos(p(line+1, col+1))] = p(line+1, col+1)
			}
		}
	}
	if len(ids) != 1600 || len(s.Spec().Positions) != 1601 {
		t.Errorf("got %d ids and %d positions, want 1600 and 1601", len(ids), len(s.Spec().Positions))
	}
	for id, pos := range ids {
		if s.Spec().Pos(id) != pos {
			t.Fatalf("id %d: got %v, want %v", id, s.Spec().Pos(id), pos)
		}
	}
}

func TestOriginAndDestination(t *testing.T) {
	v := ir.NewCollective(ir.AllToAllV, 3, 1, false)
	v.Counts = []int32{1, 0, 2, 0, 1, 1, 3, 0, 0}
	sr := rooted(ir.SendRecv, 3, 2, 0, false)
	sr.Peer = 2
	for _, c := range []struct {
		name        string
		coll        *ir.Collective
		rank        ir.Rank
		index       int32
		dst         ir.Rank
		dstIndex    int32
		description string
	}{
		// msccl-tools: to every rank (-1), at the index.
		{"allreduce", allreduce(3, 2, true), 1, 1, none, 1, "rank 1 input[1] holds rank 1 input[1]"},
		{"allgather", ir.NewCollective(ir.AllGather, 3, 2, true), 1, 1, none, 3, "rank 1 input[1] holds rank 1 input[1]"},
		// Input 5 is the second chunk for rank 2; it lands in rank 1's part there.
		{"alltoall", ir.NewCollective(ir.AllToAll, 3, 2, false), 1, 5, 2, 3,
			"rank 1 input[5] holds rank 1 input[5], wanted at rank 2 output[3]"},
		{"reduce_scatter", ir.NewCollective(ir.ReduceScatter, 3, 2, false), 1, 5, 2, 1,
			"rank 1 input[5] holds rank 1 input[5], wanted at rank 2 output[1]"},
		{"broadcast", rooted(ir.Broadcast, 3, 2, 1, false), 1, 1, none, 1, "rank 1 input[1] holds rank 1 input[1]"},
		{"reduce", rooted(ir.ReduceTo, 3, 2, 1, false), 0, 1, 1, 1,
			"rank 0 input[1] holds rank 0 input[1], wanted at rank 1 output[1]"},
		{"gather", rooted(ir.Gather, 3, 2, 0, false), 2, 1, 0, 5,
			"rank 2 input[1] holds rank 2 input[1], wanted at rank 0 output[5]"},
		{"scatter", rooted(ir.Scatter, 3, 2, 0, false), 0, 3, 1, 1,
			"rank 0 input[3] holds rank 0 input[3], wanted at rank 1 output[1]"},
		{"sendrecv", sr, 0, 1, 2, 1, "rank 0 input[1] holds rank 0 input[1], wanted at rank 2 output[1]"},
		{"alltonext", ir.NewCollective(ir.AllToNext, 3, 2, false), 1, 1, 2, 1,
			"rank 1 input[1] holds rank 1 input[1], wanted at rank 2 output[1]"},
		{"alltonext, the last rank", ir.NewCollective(ir.AllToNext, 3, 2, false), 2, 1, none, none,
			"rank 2 input[1] holds rank 2 input[1]"},
		// Rank 1 sends 0, 1, 1 chunks: its input 1 is for rank 2, which has 2 from rank 0 before it.
		{"alltoallv", v, 1, 1, 2, 2, "rank 1 input[1] holds rank 1 input[1], wanted at rank 2 output[2]"},
		// Rank 2 sends 3, 0, 0: its input 2 is for rank 0, which has 1 from rank 0 and 0 from rank 1.
		{"alltoallv, several for one rank", v, 2, 2, 0, 3, "rank 2 input[2] holds rank 2 input[2], wanted at rank 0 output[3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, c.coll, nil)
			r := s.chunk(c.rank, in, c.index, 1, 1)
			o, err := s.Origin(r, 0, 0)
			if want := (ir.Contribution{Rank: c.rank, Index: c.index}); err != nil || o != want {
				t.Errorf("origin: got %v, %v, want %v", o, err, want)
			}
			rank, index, err := s.Destination(r, 0, 0)
			if err != nil || rank != c.dst || index != c.dstIndex {
				t.Errorf("destination: got %d, %d, %v, want %d, %d", rank, index, err, c.dst, c.dstIndex)
			}
			if got, err := s.Describe(r, 0, 0); err != nil || got != c.description {
				t.Errorf("description: got %q, %v, want %q", got, err, c.description)
			}
		})
	}
}

func TestDescribeSums(t *testing.T) {
	s := newScript(t, allreduce(18, 1, true), nil)
	c := s.chunk(3, in, 0, 1, 1)
	for r := range ir.Rank(18) {
		if r == 2 {
			got, err := s.Describe(c, 0, 0)
			want := "rank 3 input[0] holds rank 0 input[0] + rank 1 input[0] + rank 3 input[0]"
			if err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
		if r != 3 {
			c = s.reduce(c, s.chunk(r, in, 0, 1, 2), 3)
		}
	}
	want := "rank 3 input[0] holds rank 0 input[0]"
	for _, r := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"} {
		want += " + rank " + r + " input[0]"
	}
	if got, err := s.Describe(c, 0, 0); err != nil || got != want+" + 2 more" {
		t.Errorf("got %q, %v, want %q", got, err, want+" + 2 more")
	}
}

func TestContributionsOfNowhere(t *testing.T) {
	s := newScript(t, allreduce(2, 1, true), nil)
	s.Scratch("a")
	for _, l := range []ir.Loc{{Rank: 2}, {Rank: -1}, {Buf: 3}, {Buf: -1}, {Index: 1}, {Index: -1}, {Buf: 2}} {
		s.holds(l.Rank, l.Buf, l.Index, nil)
	}
}

// The fields of a reference are open; one that was changed is judged as it is.
func TestChangedReferences(t *testing.T) {
	s := newScript(t, allreduce(2, 4, false), nil)
	r := s.chunk(0, in, 0, 2, 1)
	r.Index = 3
	_, err := s.Copy(r, 1, out, 0, no, s.line(2))
	expect(t, err, "past-end", "algo.star:2:5: copy: rank 0 input[3:5] is past the end: rank 0 has 4 input chunks\n"+
		"    with a count of 2, indices 0 to 2 fit")
	r.Buf, r.Index = out, 0
	_, err = s.Copy(r, 1, out, 0, no, s.line(3))
	expect(t, err, "empty-location", "algo.star:3:5: copy: rank 0 output[0] holds nothing\n    copy a chunk there first")
}

// A snapshot holds what was traced before it and nothing of what comes after.
func TestSnapshotIsApart(t *testing.T) {
	b, err := trace.New(ir.Spec{Name: "s", Coll: ir.NewCollective(ir.AllReduce, 2, 2, true), Topo: ir.FullyConnected(2), Instances: 1, Interleaved: true})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := b.Chunk(0, ir.Input, 0, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Copy(ref, 1, b.Scratch("x"), 0, trace.NoHints, 0); err != nil {
		t.Fatal(err)
	}
	d, err := b.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Copy(ref, 1, b.Scratch("x"), 5, trace.NoHints, 0); err != nil {
		t.Fatal(err)
	}
	if len(d.Ops) != 1 || d.Buffers[ir.FirstScratch].Chunks[1] != 1 {
		t.Errorf("got %d operations and %d scratch chunks, want 1 and 1", len(d.Ops), d.Buffers[ir.FirstScratch].Chunks[1])
	}
	if _, err := b.Finish(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Snapshot(); err == nil {
		t.Error("a finished builder gave a snapshot")
	}
}
