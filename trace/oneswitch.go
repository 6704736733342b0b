package trace

import (
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// AtRank checks that a rank is one of a switch channel's.
func (b *One) AtRank(group int32, r ir.Rank, pos ir.PosID) error {
	if g := &b.t.Groups[group]; !slices.Contains(g.Ranks, r) {
		return b.errorf(pos, "bad-rank", "at_rank: rank %d is not one of the channel's %v", r, g.Ranks).
			Note(b.spec.Pos(g.Pos), "the channel is made here")
	}
	return nil
}

// span is the place of a switch operation on every rank of its group.
func (b *One) span(call string, group, offset, size int32, pos ir.PosID) (side, *diag.Message) {
	g := &b.t.Groups[group]
	if offset < 0 {
		return side{}, b.errorf(pos, "negative-index", "%s: buffer_offset: got %d, want 0 or more", call, offset)
	}
	if size < 1 {
		return side{}, b.errorf(pos, "bad-argument", "%s: size: got %d chunks, want 1 or more", call, size)
	}
	for _, r := range g.Ranks {
		if n := b.t.Chunks(r, g.Buf); int64(offset)+int64(size) > int64(n) {
			m := b.errorf(pos, "out-of-range", "%s: chunks %d to %d are not within the %d of %s", call, offset, int64(offset)+int64(size), n,
				onePlace(r, g.Buf))
			if g.Buf == ir.FirstScratch {
				m.Suggest("offsets count all scratch of a rank; Buffer(%d, n) makes more", r)
			}
			return side{}, m
		}
	}
	return side{chunk: OneChunk{Buf: g.Buf, Index: offset, Size: size}, group: group}, nil
}

// local checks the local operand of a switch operation of rank r.
func (b *One) local(call, what string, c OneChunk, r ir.Rank, size int32, pos ir.PosID) *diag.Message {
	if m := b.where(call, what, c, r, "where the operation is", pos); m != nil {
		return m
	}
	if c.Size != size {
		return b.errorf(pos, "size-mismatch", "%s: %s: got %d chunks (%s), want size = %d", call, what, c.Size, c, size)
	}
	return b.looped(call, c, pos)
}

// SwitchReduce records dst := the values of one place on every rank of the
// group, combined.
func (b *One) SwitchReduce(group int32, r ir.Rank, offset, size int32, dst OneChunk, op ir.Reduction, blocks []int32, pos ir.PosID) error {
	const call = "reduce"
	from, m := b.span(call, group, offset, size, pos)
	if err := first(b.start(call, blocks, pos), m, b.local(call, "dst_chunk", dst, r, size, pos)); err != nil {
		return err
	}
	b.record(ir.TraceOp{Kind: ir.TraceGroupReduce, Via: ir.ChannelSwitch, Reduce: op, Rank: r, Ref: group, Pos: pos},
		[]side{from}, []side{plain(dst)}, blocks)
	return nil
}

// SwitchBroadcast records that one place on every rank of the group becomes src:
// OpGroupStore, or OpGroupStorePackets for packets.
func (b *One) SwitchBroadcast(kind ir.OpKind, group int32, r ir.Rank, src OneChunk, offset, size int32, blocks []int32, pos ir.PosID) error {
	call, packets := "broadcast", kind == ir.OpGroupStorePackets
	if packets {
		call = "broadcast_packets"
	}
	to, m := b.span(call, group, offset, size, pos)
	if err := first(b.start(call, blocks, pos), m, b.local(call, "src_chunk", src, r, size, pos)); err != nil {
		return err
	}
	from := plain(src)
	if packets {
		whole := OneChunk{r, b.t.Groups[group].Buf, offset, size}
		if err := first(b.packets(call, "src_chunk", src, pos), b.packets(call, "the channel's buffer", whole, pos)); err != nil {
			return err
		}
		from.packets, to.packets = true, true
	}
	b.record(ir.TraceOp{Kind: ir.TraceOf(kind), Via: ir.ChannelSwitch, Rank: r, Ref: group, Pos: pos}, []side{from}, []side{to}, blocks)
	return nil
}
