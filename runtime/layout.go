package runtime

import (
	"math/bits"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Layout says how a user's elements lie in the chunks of a collective.
//
// The unit is the segment: a run of chunks within which chunks may be renumbered
// alike everywhere without changing what the collective means
// (ir.Collective.Segment); where the collective has none, one declared chunk.
// A user's buffer is a whole number of segments of SegElems elements each. In
// memory a segment takes SegChunks chunks of ChunkElems elements; where SegElems
// does not divide, its last chunks are partly or wholly padding, so that the
// order of a user's elements is kept and every chunk has the same size, as the
// runtimes want it. Nobody sees the padding but the program.
type Layout struct {
	DType      DType
	Chunks     int32 // chunks of the whole buffer, msccl's nchunksperloop
	SegChunks  int32 // chunks of a segment
	SegElems   int64 // real elements of a segment
	ChunkElems int64 // elements of a chunk in memory, padding included
	coll       *ir.Collective
}

// NewLayout lays out nBytes, counted as nccl-tests does, of type d. The size
// must be whole elements. Where the whole buffer is several segments (the blocks
// of allgather, alltoall and their kin, the chunks of a user's collective) each
// gets the same number of elements, rounded down as nccl-tests does, but at least
// one unless nBytes is 0; Bytes tells what came out.
func NewLayout(c *ir.Collective, d DType, nBytes int64) (*Layout, error) {
	if err := validCollective(c); err != nil {
		return nil, err
	}
	if !d.valid() {
		return nil, diag.Errorf(diag.Pos{}, "dtype", "run: data type %d is not known", d)
	}
	size := int64(d.Size())
	if nBytes < 0 || nBytes%size != 0 {
		return nil, diag.Errorf(diag.Pos{}, "size",
			"run: %d bytes are no whole number of %v elements of %d bytes", nBytes, d, size).
			Suggest("take a multiple of %d", size)
	}
	l := &Layout{DType: d, Chunks: c.NumChunks(), SegChunks: c.Segment(), coll: c}
	if l.SegChunks == 0 {
		l.SegChunks = c.Split
	}
	if l.Chunks == 0 || nBytes == 0 {
		return l, nil
	}
	l.SegElems = max(nBytes/size/int64(l.segments()), 1)
	l.ChunkElems = (l.SegElems + int64(l.SegChunks) - 1) / int64(l.SegChunks)
	return l, nil
}

// validCollective refuses what would make the collective's methods panic.
func validCollective(c *ir.Collective) error {
	bad := func(format string, args ...any) error {
		return diag.Errorf(diag.Pos{}, "collective", "run: "+format, args...)
	}
	if c == nil {
		return bad("the program has no collective")
	}
	n := c.Ranks
	if n < 1 || c.Split < 1 || c.Kind > ir.Custom {
		return bad("collective %v with %d ranks and split %d is not valid", c.Kind, n, c.Split)
	}
	total := int64(c.Split)
	switch c.Kind {
	case ir.Custom:
		most, err := validCustom(c)
		if err != nil {
			return err
		}
		total *= most
	case ir.AllToAllV:
		if len(c.Counts) != int(n)*int(n) {
			return bad("alltoallv of %d ranks has %d counts, want %d", n, len(c.Counts), int(n)*int(n))
		}
		all := int64(0)
		for _, k := range c.Counts {
			if k < 0 {
				return bad("alltoallv has the negative count %d", k)
			}
			all += int64(k)
		}
		total *= all
	default:
		if c.ChunkFactor < 1 {
			return bad("collective %v has chunk factor %d", c, c.ChunkFactor)
		}
		// Three factors of up to 2^31 don't fit; two do.
		if total *= int64(c.ChunkFactor); total <= 1<<31 {
			total *= int64(n)
		}
	}
	if total >= 1<<31 {
		return bad("collective %v has more than 2^31 chunks", c)
	}
	rooted := c.Kind.Rooted() || c.Kind == ir.SendRecv
	if rooted && (c.Root < 0 || int32(c.Root) >= n) ||
		c.Kind == ir.SendRecv && (c.Peer < 0 || int32(c.Peer) >= n) {
		return bad("collective %v has root %d and peer %d among %d ranks", c, c.Root, c.Peer, n)
	}
	return nil
}

// validCustom checks a user's collective and returns its longest buffer, in
// declared chunks.
func validCustom(c *ir.Collective) (int64, error) {
	s, n := c.Custom, int(c.Ranks)
	if s == nil || len(s.Input) != n || len(s.Output) != n || len(s.Expect) != n ||
		s.Holds != nil && len(s.Holds) != n {
		return 0, diag.Errorf(diag.Pos{}, "collective", "run: collective %v does not describe all of its %d ranks", c, n)
	}
	most := int64(0)
	for r := range n {
		if s.Input[r] < 0 || s.Output[r] < 0 || int(s.Output[r]) > len(s.Expect[r]) ||
			s.Holds != nil && int(s.Input[r]) > len(s.Holds[r]) {
			return 0, diag.Errorf(diag.Pos{}, "collective", "run: collective %v does not describe all chunks of rank %d", c, r)
		}
		most = max(most, int64(s.Input[r]), int64(s.Output[r]))
	}
	for r := range n {
		for i, want := range s.Expect[r] {
			for _, w := range want {
				if w.Rank < 0 || int(w.Rank) >= n || w.Index < 0 || w.Index >= s.Input[w.Rank] ||
					s.Holds != nil && !s.Holds[w.Rank][w.Index] {
					return 0, diag.Errorf(diag.Pos{}, "collective",
						"run: collective %v expects input %d of rank %d in output %d of rank %d, but nothing is there",
						c, w.Index, w.Rank, i, r)
				}
			}
		}
	}
	return most, nil
}

func (l *Layout) segments() int32 { return max(l.Chunks/l.SegChunks, 1) }

// ChunkBytes is the size of a chunk in memory, padding included.
func (l *Layout) ChunkBytes() int64 { return l.ChunkElems * int64(l.DType.Size()) }

// Bytes is the size that is really run, counted as nccl-tests does.
func (l *Layout) Bytes() int64 {
	if l.Chunks == 0 {
		return 0
	}
	return int64(l.segments()) * l.SegElems * int64(l.DType.Size())
}

// PaddedBytes is the size that the program moves, padding included; regimes and
// size windows follow from it.
func (l *Layout) PaddedBytes() int64 {
	hi, lo := bits.Mul64(uint64(l.ChunkBytes()), uint64(l.Chunks))
	if hi != 0 || lo > 1<<62 {
		return 1 << 62
	}
	return int64(lo)
}

// Real is the part of chunk i that holds a user's elements: the index of the
// first in the user's buffer, and how many there are (fewer than ChunkElems where
// the chunk has padding).
func (l *Layout) Real(i int32) (first, count int64) {
	seg, j := int64(i/l.SegChunks), int64(i%l.SegChunks)
	from := min(j*l.ChunkElems, l.SegElems)
	return seg*l.SegElems + from, min((j+1)*l.ChunkElems, l.SegElems) - from
}

// InputElems is the number of elements of rank r's input: up to the last segment
// that holds data before the collective.
func (l *Layout) InputElems(r ir.Rank) int64 {
	n := l.coll.InputChunks(r)
	for n > 0 && !l.coll.Holds(r, n-1) {
		n--
	}
	return int64((n+l.SegChunks-1)/l.SegChunks) * l.SegElems
}

// OutputElems is the number of elements of rank r's output: up to the last
// segment of which the collective demands something.
func (l *Layout) OutputElems(r ir.Rank) int64 {
	var want []ir.Contribution
	for n := l.coll.OutputChunks(r); n > 0; n-- {
		if _, demanded := l.coll.Expect(want[:0], r, n-1); demanded {
			return int64((n+l.SegChunks-1)/l.SegChunks) * l.SegElems
		}
	}
	return 0
}

// SizeOf is the size, as nccl-tests counts it, for which the given inputs (one a
// rank, in bytes) are whole. Inputs that fit no size are refused by NewInputs.
func SizeOf(c *ir.Collective, d DType, inputs [][]byte) (int64, error) {
	// With one element a chunk the layout counts in chunks.
	if err := validCollective(c); err != nil {
		return 0, err
	}
	l, err := NewLayout(c, d, int64(c.NumChunks())*int64(d.Size()))
	if err != nil {
		return 0, err
	}
	for r, in := range inputs {
		if r >= int(c.Ranks) {
			break
		}
		if n := l.InputElems(ir.Rank(r)) / max(l.SegElems, 1); n > 0 {
			return int64(len(in)) / n * int64(l.segments()), nil
		}
	}
	return 0, nil
}
