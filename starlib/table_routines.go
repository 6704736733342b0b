package starlib

import (
	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

var ringParams = []param{
	{"gpus", intValue, "", "how many ranks the ring has"},
	{"gpu_offset", intValue, "0", "its first rank"},
	{"index_offset", intValue, "0", "the chunk of its first rank"},
	{"ch", intValue, "0", "channel"},
}

var routineFuncs = []*signature{
	{
		name: "allgather_ring_inplace", params: ringParams,
		doc: "An in-place ring allgather: rank `gpu_offset + k` hands its input 0 around, into output `index_offset + k` of every rank.",
		fn:  func(c *call) (starlark.Value, error) { return starlark.None, c.rings(allGatherRing) },
	},
	{
		name: "allreduce_ring_inplace", params: ringParams,
		doc: "An in-place ring allreduce: input `index_offset + k` travels the ring once to be summed and once to be handed out, starting at rank `gpu_offset + k`.",
		fn:  func(c *call) (starlark.Value, error) { return starlark.None, c.rings(allReduceRing) },
	},
}

// ringArgs say which ring a chunk travels: rank(k) is the k-th after the first.
type ringArgs struct {
	p           *program
	gpus, first int32
	index       int32
	start       int32 // where the chunk starts, from 0
	h           trace.Hints
	pos         ir.PosID
}

func (a *ringArgs) rank(k int32) ir.Rank { return ir.Rank(a.first + (a.start+k)%a.gpus) }

// rings runs one routine for the chunk of every rank of the ring.
func (c *call) rings(one func(*ringArgs) error) error {
	p, err := c.in.open(c.sig.name)
	if err != nil {
		return err
	}
	gpus, offset := c.v.int32(0, 0), c.v.int32(1, 0)
	if gpus < 1 || gpus > p.spec.Coll.Ranks {
		return c.sig.errorf("bad-argument", "gpus: got %d, want 1 to %d", gpus, p.spec.Coll.Ranks)
	}
	if offset < 0 || offset > p.spec.Coll.Ranks-gpus {
		return c.sig.errorf("bad-argument", "gpu_offset: got %d, want 0 to %d", offset, p.spec.Coll.Ranks-gpus)
	}
	h := trace.NoHints
	h.Chan = c.v.int32(3, 0)
	for k := range gpus {
		a := &ringArgs{p: p, gpus: gpus, first: offset, index: c.v.int32(2, 0) + k, start: k, h: h, pos: p.pos(c.in.thread)}
		if err := one(a); err != nil {
			return err
		}
	}
	return nil
}

func allGatherRing(a *ringArgs) error {
	r, err := a.p.b.Chunk(a.rank(0), ir.Input, 0, 1, a.pos)
	for k := int32(1); k < a.gpus && err == nil; k++ {
		r, err = a.p.b.Copy(r, a.rank(k), ir.Output, a.index, a.h, a.pos)
	}
	return err
}

func allReduceRing(a *ringArgs) error {
	sum, err := a.p.b.Chunk(a.rank(0), ir.Input, a.index, 1, a.pos)
	for k := int32(1); k < a.gpus && err == nil; k++ {
		var next trace.Ref
		if next, err = a.p.b.Chunk(a.rank(k), ir.Input, a.index, 1, a.pos); err == nil {
			sum, err = a.p.b.Reduce(next, sum, a.h, a.pos)
		}
	}
	for k := int32(0); k < a.gpus-1 && err == nil; k++ {
		sum, err = a.p.b.Copy(sum, a.rank(k), ir.Input, a.index, a.h, a.pos)
	}
	return err
}
