package ir_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// coll makes a collective of 3 ranks with 2 chunks, root 1 and peer 2.
func coll(kind ir.CollectiveKind, inPlace bool) *ir.Collective {
	c := ir.NewCollective(kind, 3, 2, inPlace)
	if kind.Rooted() || kind == ir.SendRecv {
		c.Root = 1
	}
	if kind == ir.SendRecv {
		c.Peer = 2
	}
	if kind == ir.AllToAllV {
		c.Counts = []int32{
			1, 0, 2, // from rank 0
			0, 1, 1, // from rank 1
			2, 0, 0, // from rank 2
		}
	}
	if kind == ir.Custom { // rank 0's two chunks to rank 1 in reverse, and their sum to rank 2
		c.Name = "mine"
		c.Custom = &ir.CustomSpec{Input: []int32{2, 0, 1}, Output: []int32{0, 2, 2},
			Holds: [][]bool{{true, true}, {}, {false}},
			Expect: [][][]ir.Contribution{{}, {{{Rank: 0, Index: 1}}, {{Rank: 0, Index: 0}}},
				{{{Rank: 0, Index: 0}, {Rank: 0, Index: 1}}, nil}}}
	}
	return c
}

// sizesOf is the physical lengths of the ranks, input then output.
func sizesOf(c *ir.Collective) string {
	var in, out []string
	for r := range ir.Rank(c.Ranks) {
		in = append(in, fmt.Sprint(c.InputChunks(r)))
		out = append(out, fmt.Sprint(c.OutputChunks(r)))
	}
	return strings.Join(in, " ") + " | " + strings.Join(out, " ")
}

// expectOf is what the outputs of rank r must hold: a digit pair for each
// contribution, + between them, * for anything.
func expectOf(c *ir.Collective, r ir.Rank) string {
	var list []string
	for i := range c.OutputChunks(r) {
		want, demanded := c.Expect(nil, r, i)
		var sum []string
		for _, w := range want {
			sum = append(sum, fmt.Sprintf("%d%d", w.Rank, w.Index))
		}
		if text := strings.Join(sum, "+"); demanded {
			list = append(list, text)
		} else {
			list = append(list, "*"+text)
		}
	}
	return strings.Join(list, " ")
}

// The sizes and postconditions of the collectives as MPI and NCCL define them,
// 3 ranks of 2 chunks, written out by hand: 21 is rank 2's chunk 1.
func TestCollectives(t *testing.T) {
	for _, c := range []struct {
		kind           ir.CollectiveKind
		sizes, inPlace string // inPlace "" where it is the same
		nchunks        int32
		segment        int32
		expect         [3]string
	}{
		{ir.AllReduce, "2 2 2 | 2 2 2", "", 2, 2, [3]string{"00+10+20 01+11+21", "00+10+20 01+11+21", "00+10+20 01+11+21"}},
		{ir.AllGather, "2 2 2 | 6 6 6", "", 6, 2, [3]string{"00 01 10 11 20 21", "00 01 10 11 20 21", "00 01 10 11 20 21"}},
		{ir.ReduceScatter, "6 6 6 | 2 2 2", "", 6, 2, [3]string{"00+10+20 01+11+21", "02+12+22 03+13+23", "04+14+24 05+15+25"}},
		{ir.AllToAll, "6 6 6 | 6 6 6", "", 6, 2, [3]string{"00 01 10 11 20 21", "02 03 12 13 22 23", "04 05 14 15 24 25"}},
		{ir.Broadcast, "0 2 0 | 2 2 2", "2 2 2 | 2 2 2", 2, 2, [3]string{"10 11", "10 11", "10 11"}},
		{ir.ReduceTo, "2 2 2 | 0 2 0", "2 2 2 | 2 2 2", 2, 2, [3]string{"", "00+10+20 01+11+21", ""}},
		{ir.Gather, "2 2 2 | 0 6 0", "", 6, 2, [3]string{"", "00 01 10 11 20 21", ""}},
		{ir.Scatter, "0 6 0 | 2 2 2", "", 6, 2, [3]string{"10 11", "12 13", "14 15"}},
		{ir.AllToNext, "2 2 2 | 2 2 2", "", 2, 2, [3]string{"* *", "00 01", "10 11"}},
		{ir.SendRecv, "0 2 0 | 0 0 2", "", 2, 2, [3]string{"", "", "10 11"}},
		{ir.AllToAllV, "3 2 2 | 3 1 3", "", 3, 0, [3]string{"00 20 21", "10", "01 02 11"}},
		{ir.Custom, "2 0 1 | 0 2 2", "2 2 2 | 2 2 2", 2, 0, [3]string{"", "01 00", "00+01 *"}},
	} {
		out, in := coll(c.kind, false), coll(c.kind, true)
		if got := sizesOf(out); got != c.sizes {
			t.Errorf("%s: sizes: got %s, want %s", out, got, c.sizes)
		}
		want := c.inPlace
		if want == "" {
			want = c.sizes
		}
		if got := sizesOf(in); got != want {
			t.Errorf("%s in place: sizes: got %s, want %s", in, got, want)
		}
		for r := range ir.Rank(3) {
			if got := expectOf(out, r); got != c.expect[r] {
				t.Errorf("%s rank %d: got %s, want %s", out, r, got, c.expect[r])
			}
		}
		if out.NumChunks() != c.nchunks || out.Segment() != c.segment {
			t.Errorf("%s: got %d chunks in segments of %d, want %d and %d", out, out.NumChunks(), out.Segment(), c.nchunks, c.segment)
		}
		if err := out.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// In place, the memory of a rank is one: both names of a location give one
// canonical name. Written out for rank 1 of 3 with 2 chunks, root 1.
func TestCanon(t *testing.T) {
	at := func(b ir.BufferID, i int32) string { return fmt.Sprintf("%c%d", "ios"[b], i) }
	for _, c := range []struct {
		kind  ir.CollectiveKind
		rank  ir.Rank
		names string // "from=to", in place
	}{
		{ir.AllReduce, 1, "i1=i1 o1=i1"},
		{ir.AllToAll, 1, "i5=i5 o5=i5"},
		{ir.AllToNext, 1, "i1=i1 o1=i1"},
		{ir.Broadcast, 1, "i1=i1 o1=i1"},
		{ir.ReduceTo, 0, "i1=i1 o1=i1"},
		{ir.Custom, 1, "i1=i1 o1=i1"},
		{ir.AllGather, 1, "i0=o2 i1=o3 o0=o0 o3=o3"},
		{ir.AllGather, 0, "i0=o0 o5=o5"},
		{ir.ReduceScatter, 2, "o0=i4 o1=i5 i0=i0"},
		{ir.Gather, 1, "i1=o3 o3=o3"},
		{ir.Gather, 2, "i1=i1"},
		{ir.Scatter, 1, "o1=i3 i3=i3"},
		{ir.Scatter, 2, "o1=o1"},
		{ir.SendRecv, 1, "i1=i1"},
		{ir.SendRecv, 2, "o1=o1"},
		{ir.AllToAllV, 0, "i1=i1 o1=o1"},
		{ir.AllReduce, 1, "s1=s1"},
	} {
		in, out := coll(c.kind, true), coll(c.kind, false)
		for _, pair := range strings.Fields(c.names) {
			from, to, _ := strings.Cut(pair, "=")
			buf, index := ir.BufferID(strings.IndexByte("ios", from[0])), int32(from[1]-'0')
			if b, i := in.Canon(c.rank, buf, index); at(b, i) != to {
				t.Errorf("%s in place, rank %d: %s is %s, want %s", in, c.rank, from, at(b, i), to)
			}
			if b, i := out.Canon(c.rank, buf, index); at(b, i) != from {
				t.Errorf("%s out of place, rank %d: %s is %s, want itself", out, c.rank, from, at(b, i))
			}
		}
	}
}

// Which final contents matter: outputs of which something is demanded, and out
// of place every input.
func TestObservable(t *testing.T) {
	for _, c := range []struct {
		kind     ir.CollectiveKind
		inPlace  bool
		rank     ir.Rank
		yes, not string
	}{
		{ir.AllReduce, false, 0, "i0 i1 o0 o1", "s0"},
		{ir.AllReduce, true, 0, "i0 i1", "s0"},
		{ir.AllGather, true, 0, "o0 o5", "i0"},
		{ir.ReduceScatter, false, 2, "i0 i5 o0 o1", ""},
		{ir.ReduceScatter, true, 2, "i4 i5", "i0 i3"},
		{ir.ReduceScatter, true, 0, "i0 i1", "i2 i5"},
		{ir.AllToAll, true, 2, "i0 i5", ""},
		{ir.Broadcast, true, 0, "i0 i1", ""},
		{ir.ReduceTo, false, 0, "i0", "o0"},
		{ir.ReduceTo, true, 0, "", "i0 i1"},
		{ir.ReduceTo, true, 1, "i0 i1", ""},
		{ir.Gather, true, 1, "o0 o5", ""},
		{ir.Gather, true, 0, "", "i0"},
		{ir.Scatter, true, 1, "i2 i3", "i0 i4"},
		{ir.Scatter, true, 0, "o0 o1", "i0"},
		{ir.AllToNext, false, 0, "i0", "o0 o1"},
		{ir.AllToNext, true, 0, "", "i0"},
		{ir.AllToNext, true, 1, "i0 i1", ""},
		{ir.SendRecv, true, 1, "", "i0"},
		{ir.SendRecv, false, 2, "o0 o1", ""},
		{ir.AllToAllV, true, 1, "o0", "i0"},
		{ir.Custom, false, 2, "i0 o0", "o1"},
		{ir.Custom, true, 0, "", "i0 i1"},
		{ir.Custom, true, 2, "i0", "i1"},
	} {
		k := coll(c.kind, c.inPlace)
		for want, list := range map[bool]string{true: c.yes, false: c.not} {
			for _, at := range strings.Fields(list) {
				buf, index := ir.BufferID(strings.IndexByte("ios", at[0])), int32(at[1]-'0')
				if k.Observable(c.rank, buf, index) != want {
					t.Errorf("%s in place %v, rank %d: %s: want observable %v", k, c.inPlace, c.rank, at, want)
				}
			}
		}
	}
}

// Refining cuts every chunk in two: chunk 3 of a contribution becomes 6 and 7.
func TestRefine(t *testing.T) {
	for _, c := range []struct {
		kind  ir.CollectiveKind
		sizes string
		rank  ir.Rank
		want  string
	}{
		{ir.ReduceScatter, "12 12 12 | 4 4 4", 1, "04+14+24 05+15+25 06+16+26 07+17+27"},
		{ir.AllToAll, "12 12 12 | 12 12 12", 0, "00 01 02 03 10 11 12 13 20 21 22 23"},
		{ir.AllToAllV, "6 4 4 | 6 2 6", 2, "02 03 04 05 12 13"},
		{ir.Custom, "4 0 2 | 0 4 4", 1, "02 03 00 01"},
	} {
		whole := coll(c.kind, false)
		half := whole.Refine(2)
		if got := sizesOf(half); got != c.sizes || whole.Split != 1 {
			t.Errorf("%s: sizes: got %s, want %s", half, got, c.sizes)
		}
		if got := expectOf(half, c.rank); got != c.want {
			t.Errorf("%s rank %d: got %s, want %s", half, c.rank, got, c.want)
		}
	}
	half := coll(ir.Custom, false).Refine(2)
	for i, want := range []bool{true, true, true, true, false} {
		if half.Holds(0, int32(i)) != want {
			t.Errorf("custom, refined: input %d of rank 0: want holds %v", i, want)
		}
	}
	if half.Holds(2, 0) || half.Holds(2, 1) || half.Holds(1, 0) {
		t.Error("custom, refined: inputs without data hold some")
	}
}

func TestHoldsIsAboutTheInputAlone(t *testing.T) {
	// In place, a broadcast's other ranks have the memory but no data in it.
	c := coll(ir.Broadcast, true)
	if c.Holds(0, 0) || !c.Holds(1, 1) || c.Holds(1, 2) || c.Holds(1, -1) {
		t.Error("broadcast in place: want data in the root's two chunks alone")
	}
}

func TestCollectiveNames(t *testing.T) {
	for k := ir.AllReduce; k <= ir.Custom; k++ {
		if got, err := ir.ParseCollectiveKind(k.String()); err != nil || got != k {
			t.Errorf("%s: got %v, %v", k, got, err)
		}
	}
	if _, err := ir.ParseCollectiveKind("reducescatter"); err == nil {
		t.Error("reducescatter is the other runtimes' spelling, want an error")
	}
	if got := coll(ir.Custom, false).String(); got != "mine" {
		t.Errorf("a user's collective: got %q", got)
	}
}

func TestCollectiveValidate(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*ir.Collective)
		kind  ir.CollectiveKind
	}{
		{"no ranks", func(c *ir.Collective) { c.Ranks = 0 }, ir.AllReduce},
		{"no chunks", func(c *ir.Collective) { c.ChunkFactor = 0 }, ir.AllReduce},
		{"no split", func(c *ir.Collective) { c.Split = 0 }, ir.AllReduce},
		{"sizes that overflow", func(c *ir.Collective) { c.ChunkFactor, c.Split = 1<<16, 1<<15 }, ir.AllGather},
		{"root past the end", func(c *ir.Collective) { c.Root = 3 }, ir.Gather},
		{"no peer", func(c *ir.Collective) { c.Peer = ir.None }, ir.SendRecv},
		{"no counts", func(c *ir.Collective) { c.Counts = nil }, ir.AllToAllV},
		{"counts of another size", func(c *ir.Collective) { c.Counts = c.Counts[:8] }, ir.AllToAllV},
		{"a negative count", func(c *ir.Collective) { c.Counts[0] = -1 }, ir.AllToAllV},
		{"counts where none belong", func(c *ir.Collective) { c.Counts = []int32{1} }, ir.AllReduce},
		{"no custom part", func(c *ir.Collective) { c.Custom = nil }, ir.Custom},
		{"sizes of two ranks", func(c *ir.Collective) { c.Custom.Input = c.Custom.Input[:2] }, ir.Custom},
		{"conditions of two ranks", func(c *ir.Collective) { c.Custom.Expect = c.Custom.Expect[:2] }, ir.Custom},
		{"too few conditions", func(c *ir.Collective) { c.Custom.Expect[1] = nil }, ir.Custom},
		{"an input that is not there", func(c *ir.Collective) { c.Custom.Expect[1][0][0].Index = 2 }, ir.Custom},
		{"a rank that is not there", func(c *ir.Collective) { c.Custom.Expect[1][0][0].Rank = 3 }, ir.Custom},
	} {
		k := coll(c.kind, false)
		if err := k.Validate(); err != nil {
			t.Fatal(err)
		}
		c.spoil(k)
		if k.Validate() == nil {
			t.Errorf("%s: want an error", c.name)
		}
	}
}
