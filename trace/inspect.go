package trace

import (
	"fmt"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Contributions is the multiset of input chunks now summed at a location, sorted
// by rank and index; nil if it holds nothing or doesn't exist. A location sums
// at most about a million of them.
func (b *Builder) Contributions(rank ir.Rank, buf ir.BufferID, index int32) []ir.Contribution {
	if index < 0 || index >= b.LenScratch(buf, rank) {
		return nil
	}
	buf, index = b.spec.Coll.Canon(rank, buf, index)
	return b.mem.values.expand(b.mem.cells[buf][rank][index].value)
}

// one gives the value of the i-th chunk of r.
func (b *Builder) one(call string, r Ref, i int32, pos ir.PosID) (valueID, *diag.Message) {
	_, cells, m := b.use(call, r, pos)
	switch {
	case m != nil:
		return empty, m
	case i < 0 || i >= r.Count:
		return empty, b.errorf(pos, "bad-index", "%s: index: got %d, want 0 to %d", call, i, r.Count-1).
			Suggest("the reference has %s", plural(r.Count, "chunk"))
	}
	return cells[i].value, nil
}

// Origin is the input chunk that the i-th chunk of r is. A chunk that is a sum
// has no single origin: an error.
func (b *Builder) Origin(r Ref, i int32, pos ir.PosID) (ir.Contribution, error) {
	c, m := b.origin("get_origin", r, i, pos)
	if m != nil {
		return c, m
	}
	return c, nil
}

func (b *Builder) origin(call string, r Ref, i int32, pos ir.PosID) (ir.Contribution, *diag.Message) {
	v, m := b.one(call, r, i, pos)
	if m != nil {
		return ir.Contribution{Rank: ir.None, Index: ir.None}, m
	}
	if n := b.mem.values.terms(v); n > 1 {
		return ir.Contribution{Rank: ir.None, Index: ir.None}, b.errorf(pos, "sum-has-no-origin", "%s: %s is a sum of %d chunks",
			call, b.place(r.Rank, r.Buf, r.Index+i, 1), n).
			Suggest("ask before it is reduced; print_chunk_info shows the parts of a sum")
	}
	return b.mem.values.contribution(v), nil
}

// Destination is where the collective wants the i-th chunk of r: the rank and
// the index in its output. The rank is ir.None where the chunk goes to every
// rank, and both are where the collective doesn't say. A sum is an error.
func (b *Builder) Destination(r Ref, i int32, pos ir.PosID) (ir.Rank, int32, error) {
	from, m := b.origin("get_dst", r, i, pos)
	if m != nil {
		return ir.None, ir.None, m
	}
	rank, index := destination(b.spec.Coll, from)
	return rank, index, nil
}

// destination follows msccl-tools where that has the collective.
func destination(c *ir.Collective, from ir.Contribution) (ir.Rank, int32) {
	f := c.ChunkFactor * c.Split
	switch c.Kind {
	case ir.AllReduce, ir.Broadcast:
		return ir.None, from.Index
	case ir.AllGather:
		return ir.None, int32(from.Rank)*f + from.Index
	case ir.ReduceScatter, ir.Scatter:
		return ir.Rank(from.Index / f), from.Index % f
	case ir.AllToAll:
		return ir.Rank(from.Index / f), int32(from.Rank)*f + from.Index%f
	case ir.ReduceTo:
		return c.Root, from.Index
	case ir.Gather:
		return c.Root, int32(from.Rank)*f + from.Index
	case ir.SendRecv:
		return c.Peer, from.Index
	case ir.AllToNext:
		if int32(from.Rank) < c.Ranks-1 {
			return from.Rank + 1, from.Index
		}
	case ir.AllToAllV:
		return destinationV(c, from)
	}
	return ir.None, ir.None
}

// destinationV: inputs are ordered by destination, outputs by source.
func destinationV(c *ir.Collective, from ir.Contribution) (ir.Rank, int32) {
	i := from.Index
	for dst := range c.Ranks {
		n := c.Counts[int32(from.Rank)*c.Ranks+dst] * c.Split
		if i >= n {
			i -= n
			continue
		}
		for src := range int32(from.Rank) {
			i += c.Counts[src*c.Ranks+dst] * c.Split
		}
		return ir.Rank(dst), i
	}
	return ir.None, ir.None
}

// shown is how many terms of a sum Describe lists.
const shown = 16

// Describe says in one line what the i-th chunk of r holds.
func (b *Builder) Describe(r Ref, i int32, pos ir.PosID) (string, error) {
	v, m := b.one("print_chunk_info", r, i, pos)
	if m != nil {
		return "", m
	}
	terms := b.mem.values.expand(v)
	var s strings.Builder
	s.WriteString(b.place(r.Rank, r.Buf, r.Index+i, 1))
	s.WriteString(" holds ")
	for k, t := range terms {
		if k == shown {
			fmt.Fprintf(&s, " + %d more", len(terms)-shown)
			break
		}
		if k > 0 {
			s.WriteString(" + ")
		}
		s.WriteString(b.place(t.Rank, ir.Input, t.Index, 1))
	}
	if len(terms) == 1 {
		if rank, index := destination(b.spec.Coll, terms[0]); rank != ir.None {
			fmt.Fprintf(&s, ", wanted at %s", b.place(rank, ir.Output, index, 1))
		}
	}
	return s.String(), nil
}
