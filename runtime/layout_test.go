package runtime

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/ir"
)

func rooted(k ir.CollectiveKind, n, f int32, root, peer ir.Rank) *ir.Collective {
	c := ir.NewCollective(k, n, f, false)
	c.Root, c.Peer = root, peer
	return c
}

func uneven() *ir.Collective {
	c := ir.NewCollective(ir.AllToAllV, 3, 1, false)
	c.Counts = []int32{1, 2, 0, 0, 1, 3, 2, 0, 1} // rows send 3, 4, 3; columns receive 3, 3, 4
	return c
}

// swap is a user's collective on two ranks: each gets the sum of both first
// chunks, and the other's second chunk; rank 1 has no third.
func swap() *ir.Collective {
	c := ir.NewCollective(ir.Custom, 2, 1, false)
	c.Name = "swap"
	sum := []ir.Contribution{{Rank: 0, Index: 0}, {Rank: 1, Index: 0}}
	c.Custom = &ir.CustomSpec{Input: []int32{3, 2}, Output: []int32{2, 3},
		Expect: [][][]ir.Contribution{{sum, {{Rank: 1, Index: 1}}}, {sum, {{Rank: 0, Index: 1}}, nil}}}
	return c
}

func TestLayout(t *testing.T) {
	allreduce := ir.NewCollective(ir.AllReduce, 4, 4, true)
	for _, c := range []struct {
		name                string
		coll                *ir.Collective
		d                   DType
		bytes               int64
		ran, padded         int64
		in, out             int64 // elements of rank 0
		chunk               int32
		first, count, elems int64 // Real(chunk), ChunkElems
	}{
		{"divides", allreduce, FP32, 64, 64, 64, 16, 16, 3, 12, 4, 4},
		{"does not divide", allreduce, FP32, 40, 40, 48, 10, 10, 3, 9, 1, 3},
		{"last chunk all padding", allreduce, FP32, 36, 36, 48, 9, 9, 3, 9, 0, 3},
		{"one element", allreduce, FP64, 8, 8, 32, 1, 1, 0, 0, 1, 1},
		{"nothing", allreduce, FP32, 0, 0, 0, 0, 0, 2, 0, 0, 0},
		// 4 blocks of 2 chunks: 100 bytes are 25 elements, 6 a block, 3 a chunk.
		{"allgather", ir.NewCollective(ir.AllGather, 4, 2, false), FP32, 100, 96, 96, 6, 24, 3, 9, 3, 3},
		// 7 elements a block in chunks of 4: chunk 3 is the last of block 1.
		{"allgather, padded", ir.NewCollective(ir.AllGather, 4, 2, false), FP32, 112, 112, 128, 7, 28, 3, 11, 3, 4},
		{"allgather, at least one", ir.NewCollective(ir.AllGather, 4, 1, false), Int8, 1, 4, 4, 1, 4, 3, 3, 1, 1},
		{"reduce_scatter", ir.NewCollective(ir.ReduceScatter, 4, 2, false), FP32, 112, 112, 128, 28, 7, 3, 11, 3, 4},
		{"alltoall", ir.NewCollective(ir.AllToAll, 3, 1, false), FP16, 60, 60, 60, 30, 30, 1, 10, 10, 10},
		{"broadcast", rooted(ir.Broadcast, 3, 2, 1, ir.None), FP32, 20, 20, 24, 0, 5, 1, 3, 2, 3},
		{"gather", rooted(ir.Gather, 3, 2, 0, ir.None), FP32, 60, 60, 72, 5, 15, 3, 8, 2, 3},
		{"alltonext", ir.NewCollective(ir.AllToNext, 3, 2, false), FP32, 20, 20, 24, 5, 0, 1, 3, 2, 3},
		{"sendrecv", rooted(ir.SendRecv, 3, 2, 0, 2), FP32, 20, 20, 24, 5, 0, 1, 3, 2, 3},
		{"alltoallv", uneven(), FP32, 64, 64, 64, 12, 12, 2, 8, 4, 4},
		{"alltoallv, cut in two", uneven().Refine(2), FP32, 60, 48, 64, 9, 9, 3, 5, 1, 2},
		{"custom", swap(), FP32, 48, 48, 48, 12, 8, 1, 4, 4, 4},
	} {
		l, err := NewLayout(c.coll, c.d, c.bytes)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		first, count := l.Real(c.chunk)
		got := [...]int64{l.Bytes(), l.PaddedBytes(), l.InputElems(0), l.OutputElems(0), first, count, l.ChunkElems}
		want := [...]int64{c.ran, c.padded, c.in, c.out, c.first, c.count, c.elems}
		if got != want {
			t.Errorf("%s: got %v, want %v", c.name, got, want)
		}
	}
}

// TestRealCoversEveryElement: the real parts of the chunks are the user's buffer,
// in order, once.
func TestRealCoversEveryElement(t *testing.T) {
	for _, coll := range []*ir.Collective{ir.NewCollective(ir.AllReduce, 5, 5, true), ir.NewCollective(ir.AllGather, 3, 4, false),
		uneven().Refine(3), swap().Refine(2)} {
		for n := range int64(70) {
			l, err := NewLayout(coll, Int8, n)
			if err != nil {
				t.Fatal(err)
			}
			next := int64(0)
			for i := range l.Chunks {
				first, count := l.Real(i)
				if count < 0 || count > l.ChunkElems || count > 0 && first != next {
					t.Fatalf("%v of %d bytes: chunk %d is %d+%d, want it to begin at %d", coll, n, i, first, count, next)
				}
				next += count
			}
			if next != l.Bytes() || n > 0 && next == 0 {
				t.Fatalf("%v: chunks cover %d of %d elements", coll, next, l.Bytes())
			}
		}
	}
}

func TestLayoutRefuses(t *testing.T) {
	hole := swap()
	hole.Custom.Holds = [][]bool{{true, false, true}, {true, true}}
	huge := ir.NewCollective(ir.AllGather, 1<<16, 1<<16, false)
	for _, c := range []struct {
		coll  *ir.Collective
		bytes int64
		want  string
	}{
		{ir.NewCollective(ir.AllReduce, 2, 2, true), 10, "run: 10 bytes are no whole number of fp32 elements of 4 bytes\n    take a multiple of 4"},
		{ir.NewCollective(ir.AllReduce, 2, 2, true), -4, "run: -4 bytes are no whole number"},
		{nil, 4, "run: the program has no collective"},
		{ir.NewCollective(ir.AllReduce, 0, 2, true), 4, "0 ranks"},
		{ir.NewCollective(ir.AllReduce, 2, 0, true), 4, "chunk factor 0"},
		{ir.NewCollective(ir.Broadcast, 2, 1, true), 4, "root -1"},
		{ir.NewCollective(ir.AllToAllV, 2, 1, true), 4, "0 counts, want 4"},
		{ir.NewCollective(ir.Custom, 2, 1, true), 4, "does not describe all"},
		{huge, 4, "more than 2^31 chunks"},
		{hole, 4, "run: collective swap expects input 1 of rank 0 in output 1 of rank 1, but nothing is there"},
	} {
		_, err := NewLayout(c.coll, FP32, c.bytes)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %d bytes: got %v, want %s", c.coll, c.bytes, err, c.want)
		}
	}
}

func TestSizeOf(t *testing.T) {
	for _, c := range []struct {
		coll *ir.Collective
		rank int
		in   int // bytes of that rank's input
		want int64
	}{
		{ir.NewCollective(ir.AllReduce, 4, 4, true), 0, 40, 40},
		{ir.NewCollective(ir.AllGather, 4, 2, false), 0, 28, 112},
		{ir.NewCollective(ir.ReduceScatter, 4, 2, false), 0, 112, 112},
		{rooted(ir.Broadcast, 3, 2, 1, ir.None), 1, 20, 20},
		{uneven(), 0, 48, 64},
	} {
		inputs := make([][]byte, c.coll.Ranks)
		inputs[c.rank] = make([]byte, c.in)
		got, err := SizeOf(c.coll, FP32, inputs)
		if err != nil || got != c.want {
			t.Errorf("%v: got %d, %v, want %d", c.coll, got, err, c.want)
		}
	}
}

func TestBandwidth(t *testing.T) {
	for _, c := range []struct {
		kind     ir.CollectiveKind
		n        int32
		alg, bus float64
	}{{ir.AllReduce, 8, 2, 3.5}, {ir.AllGather, 8, 2, 1.75}, {ir.ReduceScatter, 4, 2, 1.5}, {ir.AllToAll, 2, 2, 1},
		{ir.Broadcast, 8, 2, 2}, {ir.ReduceTo, 8, 2, 2}, {ir.SendRecv, 8, 2, 2}, {ir.AllReduce, 1, 2, 0}} {
		alg, bus := Bandwidth(ir.NewCollective(c.kind, c.n, 1, true), 2e9, time.Second)
		if alg != c.alg || bus != c.bus {
			t.Errorf("%v of %d ranks: got %v, %v, want %v, %v", c.kind, c.n, alg, bus, c.alg, c.bus)
		}
	}
	if a, b := Bandwidth(ir.NewCollective(ir.AllReduce, 2, 1, true), 5, 0); a != 0 || b != 0 {
		t.Error("no time must give no rate")
	}
}

func TestExactBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1028: "1028 B", 1536: "1536 B",
		64 << 20: "64 MiB", 1<<20 + 1024: "1025 KiB", 1 << 62: "4 EiB", math.MaxInt64: "9223372036854775807 B"} {
		if got := ExactBytes(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 64 << 20: "64 MiB", 5 << 30: "5 GiB"} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
