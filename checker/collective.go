package checker

import (
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// maxLocations bounds the chunks of all buffers of all ranks, and maxTouched the
// chunks that all steps touch: each about 1.5 GB of the checker's memory.
const (
	maxLocations = 1 << 26
	maxTouched   = 1 << 28
)

// validCollective checks that the methods of c may be called at all: nothing in
// it is negative, missing or out of range.
func validCollective(c *ir.Collective, f *findings) bool {
	bad := func(format string, args ...any) bool {
		f.errorf(diag.Pos{}, CodeProgram, format, args...)
		return false
	}
	inRange := func(r ir.Rank) bool { return r >= 0 && int32(r) < c.Ranks }
	switch {
	case c.Ranks < 1:
		return bad("the collective has %d ranks, want 1 or more", c.Ranks)
	case c.Kind > ir.Custom:
		return bad("unknown collective %s", c.Kind)
	case c.Split < 1:
		return bad("the collective's chunks are split in %d, want 1 or more", c.Split)
	case c.Kind.Rooted() && !inRange(c.Root):
		return bad("%s: the root is rank %d, want 0 to %d", c, c.Root, c.Ranks-1)
	case c.Kind == ir.SendRecv && !(inRange(c.Root) && inRange(c.Peer)):
		return bad("sendrecv: got ranks %d and %d, want 0 to %d", c.Root, c.Peer, c.Ranks-1)
	case c.Kind == ir.AllToAllV:
		return validCounts(c, f, bad)
	case c.Kind == ir.Custom:
		return validCustom(c, f, bad)
	case c.ChunkFactor < 1:
		return bad("the collective's chunk factor is %d, want 1 or more", c.ChunkFactor)
	}
	if total := float64(c.Ranks) * float64(c.ChunkFactor) * float64(c.Split); total > maxLocations {
		return tooManyChunks(f, total)
	}
	return true
}

// tooManyChunks refuses a collective for its size, total in chunks.
func tooManyChunks(f *findings, total float64) bool {
	f.errorf(diag.Pos{}, CodeTooLarge, "the collective has %.0f chunks, the checker holds up to %d", total, maxLocations)
	return false
}

func validCounts(c *ir.Collective, f *findings, bad func(string, ...any) bool) bool {
	if n := int64(c.Ranks); int64(len(c.Counts)) != n*n {
		return bad("alltoallv: got %d counts, want %d", len(c.Counts), n*n)
	}
	total := int64(0)
	for _, k := range c.Counts {
		if k < 0 {
			return bad("alltoallv: got a count of %d, want 0 or more", k)
		}
		total += int64(k)
	}
	if float64(total)*float64(c.Split) > maxLocations {
		return tooManyChunks(f, float64(total))
	}
	return true
}

func validCustom(c *ir.Collective, f *findings, bad func(string, ...any) bool) bool {
	u, n := c.Custom, int(c.Ranks)
	switch {
	case u == nil:
		return bad("%s: a custom collective without a description", c)
	case len(u.Input) != n || len(u.Output) != n || len(u.Expect) != n || u.Holds != nil && len(u.Holds) != n:
		return bad("%s: the description isn't for %d ranks", c, n)
	}
	total := int64(0)
	for r := range n {
		in, out := u.Input[r], u.Output[r]
		switch {
		case in < 0 || out < 0:
			return bad("%s: rank %d has %d input and %d output chunks, want 0 or more", c, r, in, out)
		case len(u.Expect[r]) != int(out) || u.Holds != nil && len(u.Holds[r]) != int(in):
			return bad("%s: the description of rank %d doesn't fit its %d input and %d output chunks", c, r, in, out)
		}
		total += int64(in) + int64(out)
	}
	if float64(total)*float64(c.Split) > maxLocations {
		return tooManyChunks(f, float64(total))
	}
	for r := range u.Expect {
		for i, list := range u.Expect[r] {
			for _, w := range list {
				if w.Rank < 0 || int(w.Rank) >= n || w.Index < 0 || w.Index >= u.Input[w.Rank] {
					return bad("%s: rank %d output[%d] wants input[%d] of rank %d, which doesn't exist",
						c, r, i, w.Index, w.Rank)
				}
				if u.Holds != nil && !u.Holds[w.Rank][w.Index] {
					return bad("%s: rank %d output[%d] wants input[%d] of rank %d, which holds no data",
						c, r, i, w.Index, w.Rank)
				}
			}
		}
	}
	return true
}
