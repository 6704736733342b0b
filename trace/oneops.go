package trace

import (
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// oneCall is the name of the call that records an operation.
func oneCall(kind ir.OpKind) string {
	switch kind {
	case ir.OpCopyToPackets:
		return "copy_packets"
	case ir.OpUnpackPackets:
		return "unpack_packets"
	case ir.OpSignal, ir.OpRelaxedSignal:
		return "signal"
	case ir.OpWait, ir.OpRelaxedWait:
		return "wait"
	case ir.OpPutSignal:
		return "put_with_signal"
	case ir.OpPutSignalFlush:
		return "put_with_signal_and_flush"
	case ir.OpPutPackets:
		return "put_packets"
	case ir.OpReadPutPackets:
		return "read_put_packets"
	case ir.OpSemaphoreAcquire:
		return "acquire"
	case ir.OpSemaphoreRelease:
		return "release"
	}
	return kind.String() // copy, flush, put and get are called as they are in a plan
}

// side is one operand on its way into the tables.
type side struct {
	chunk   OneChunk
	group   int32 // a switch group, or None
	packets bool
}

func plain(c OneChunk) side  { return side{c, ir.None, false} }
func packet(c OneChunk) side { return side{c, ir.None, true} }

// record appends an operation whose operands and blocks are checked.
func (b *One) record(op ir.TraceOp, src, dst []side, blocks []int32) {
	op.Src, op.Dst = b.operands(src), b.operands(dst)
	op.Blocks.Start = int32(len(b.t.Blocks))
	b.t.Blocks = append(room(b.t.Blocks, len(blocks)), blocks...)
	op.Blocks.End = int32(len(b.t.Blocks))
	op.Loop = b.loop
	b.t.Ops = append(room(b.t.Ops, 1), op)
}

// room is list with room for n more, see grown. Memory that make has from the system
// is there when it is first written to; append would write to all of it.
func room[T any](list []T, n int) []T {
	if cap(list)-len(list) >= n {
		return list
	}
	longer := make([]T, len(list), len(list)+max(n, grown(len(list))))
	copy(longer, list)
	return longer
}

func (b *One) operands(list []side) ir.Span {
	s := ir.Span{Start: int32(len(b.t.Operands))}
	b.t.Operands = room(b.t.Operands, len(list))
	for i := range list {
		c := &list[i].chunk
		o := ir.Operand{Rank: c.Rank, Group: list[i].group, Buf: c.Buf, Index: c.Index, Size: c.Size, Packets: list[i].packets}
		if o.Group != ir.None {
			o.Rank = ir.None
		}
		b.t.Operands = append(b.t.Operands, o)
	}
	s.End = int32(len(b.t.Operands))
	return s
}

// start checks what every operation shares: that the program goes on, and the
// thread blocks.
func (b *One) start(call string, blocks []int32, pos ir.PosID) *diag.Message {
	if m := b.ended(call, pos); m != nil {
		return m
	}
	for i, t := range blocks {
		if t < 0 || t >= ir.MaxThreadBlocks {
			return b.errorf(pos, "bad-thread-block", "%s: got thread block %d, want 0 to %d", call, t, ir.MaxThreadBlocks-1).
				Suggest("leave it out, and the compiler chooses one")
		}
		if len(blocks) <= listed && slices.Contains(blocks[:i], t) {
			return b.errorf(pos, "bad-thread-block", "%s: got thread block %d twice", call, t)
		}
	}
	return nil
}

// where checks that c is on rank r; what names the argument, whose says of whom
// the rank is.
func (b *One) where(call, what string, c OneChunk, r ir.Rank, whose string, pos ir.PosID) *diag.Message {
	if c.Rank != r {
		return b.errorf(pos, "wrong-rank", "%s: %s: got %s, want a chunk of rank %d, %s", call, what, c, r, whose)
	}
	return nil
}

func (b *One) sizes(call, what string, c, want OneChunk, pos ir.PosID) *diag.Message {
	if c.Size != want.Size {
		return b.errorf(pos, "size-mismatch", "%s: %s: got %d chunks (%s), want %d like %s", call, what, c.Size, c, want.Size, want)
	}
	return nil
}

// packets checks that c can hold packets.
func (b *One) packets(call, what string, c OneChunk, pos ir.PosID) *diag.Message {
	if b.spec.Protocol != ir.LL {
		return b.errorf(pos, "no-packets", "%s: protocol %s has no packets", call, b.spec.Protocol).
			Suggest("make the program with protocol = \"LL\"")
	}
	if c.Buf != ir.FirstScratch {
		return b.errorf(pos, "no-packets", "%s: %s: got %s, want scratch: packets are twice as large as their data", call, what, c).
			Suggest("Buffer(%d, %d) makes scratch", c.Rank, c.Size)
	}
	return nil
}

// looped checks an operation on chunks inside a loop: a turn works on a part of
// every range, and a range with fewer chunks than the loop would be left.
func (b *One) looped(call string, c OneChunk, pos ir.PosID) *diag.Message {
	if b.loop == ir.None {
		return nil
	}
	l := &b.t.Loops[b.loop]
	if c.Size < l.Chunks {
		return b.errorf(pos, "size-mismatch", "%s: got %s in a loop over %d chunks", call, c, l.Chunks).
			Note(b.spec.Pos(l.Pos), "the loop begins here").
			Suggest("a loop of num_chunks = %d covers %d of every range", c.Size, c.Size)
	}
	return nil
}

// apart checks that dst doesn't overlap src in part: threads work on all of it
// at once. The very same place is fine.
func (b *One) apart(call string, dst, src OneChunk, pos ir.PosID) *diag.Message {
	d, i := b.spec.Coll.Canon(dst.Rank, dst.Buf, dst.Index)
	s, j := b.spec.Coll.Canon(src.Rank, src.Buf, src.Index)
	if dst.Rank != src.Rank || d != s || i == j || i+dst.Size <= j || j+src.Size <= i {
		return nil
	}
	m := b.errorf(pos, "overlap", "%s: %s and %s overlap", call, dst, src)
	if dst.Buf != src.Buf {
		m.Suggest("in place, input and output are one memory")
	}
	return m
}

// first is the first error of a list.
func first(list ...*diag.Message) error {
	for _, m := range list {
		if m != nil {
			return m
		}
	}
	return nil
}

// Copy records a local copy on rank r: OpCopy, OpCopyToPackets or
// OpUnpackPackets.
func (b *One) Copy(kind ir.OpKind, r ir.Rank, dst, src OneChunk, blocks []int32, pos ir.PosID) error {
	call := oneCall(kind)
	from, to := plain(src), plain(dst)
	var m *diag.Message
	switch kind {
	case ir.OpCopyToPackets:
		to, m = packet(dst), b.packets(call, "dst_chunk", dst, pos)
	case ir.OpUnpackPackets:
		from, m = packet(src), b.packets(call, "src_chunk", src, pos)
	}
	const own = "whose operation this is"
	if err := first(b.start(call, blocks, pos), b.where(call, "dst_chunk", dst, r, own, pos), b.where(call, "src_chunk", src, r, own, pos),
		b.sizes(call, "src_chunk", src, dst, pos), m, b.apart(call, dst, src, pos), b.looped(call, dst, pos)); err != nil {
		return err
	}
	b.record(ir.TraceOp{Kind: ir.TraceOf(kind), Rank: r, Ref: ir.None, Pos: pos}, []side{from}, []side{to}, blocks)
	return nil
}

// Reduce records a local reduction on rank r, dst := src op others..., which are
// packets or plain data.
func (b *One) Reduce(r ir.Rank, dst, src OneChunk, others []OneChunk, op ir.Reduction, packets bool, blocks []int32, pos ir.PosID) error {
	const call, own = "reduce", "whose operation this is"
	kind, list := ir.OpReduceLocal, append(b.list[:0], plain(src))
	if err := first(b.start(call, blocks, pos), b.where(call, "src_chunk", src, r, own, pos), b.where(call, "dst_chunk", dst, r, own, pos),
		b.sizes(call, "dst_chunk", dst, src, pos), b.apart(call, dst, src, pos), b.looped(call, dst, pos)); err != nil {
		return err
	}
	if len(others) == 0 {
		return b.errorf(pos, "bad-argument", "reduce: other_chunks: got an empty list, want what is to be combined with src_chunk")
	}
	for _, o := range others {
		err := first(b.where(call, "other_chunks", o, r, own, pos), b.sizes(call, "other_chunks", o, src, pos))
		if err == nil && packets {
			err = first(b.packets(call, "other_chunks", o, pos))
		} else if err == nil {
			err = first(b.apart(call, dst, o, pos))
		}
		if err != nil {
			return err
		}
		list = append(list, side{o, ir.None, packets})
	}
	b.list = list
	if packets {
		kind = ir.OpReducePackets
	}
	b.record(ir.TraceOp{Kind: ir.TraceOf(kind), Reduce: op, Rank: r, Ref: ir.None, Pos: pos}, list, []side{plain(dst)}, blocks)
	return nil
}

// Barrier records that the blocks of rank r meet; none stands for all of them.
func (b *One) Barrier(r ir.Rank, blocks []int32, pos ir.PosID) error {
	if err := first(b.start("barrier", blocks, pos)); err != nil {
		return err
	}
	kind := ir.OpBarrier
	if len(blocks) == 1 {
		kind = ir.OpSync
	}
	b.record(ir.TraceOp{Kind: ir.TraceOf(kind), Rank: r, Ref: ir.None, Pos: pos}, nil, nil, blocks)
	return nil
}

// Sync records an operation without data: OpSignal, OpRelaxedSignal, OpWait,
// OpRelaxedWait, or OpFlush on a channel.
func (b *One) Sync(kind ir.OpKind, ch OneChannel, blocks []int32, sync ir.DataSync, pos ir.PosID) error {
	call := oneCall(kind)
	if err := first(b.start(call, blocks, pos)); err != nil {
		return err
	}
	b.record(ir.TraceOp{Kind: ir.TraceOf(kind), Via: ch.Kind, Sync: sync, Rank: ch.Src, Ref: ch.Ref, Pos: pos}, nil, nil, blocks)
	return nil
}

// SemaphoreOp records OpSemaphoreAcquire or OpSemaphoreRelease on a semaphore.
func (b *One) SemaphoreOp(kind ir.OpKind, s OneSemaphore, blocks []int32, sync ir.DataSync, pos ir.PosID) error {
	call := oneCall(kind)
	if err := first(b.start(call, blocks, pos)); err != nil {
		return err
	}
	b.record(ir.TraceOp{Kind: ir.TraceOf(kind), Sync: sync, Rank: s.Rank, Ref: s.Ref, Pos: pos}, nil, nil, blocks)
	return nil
}

// Move records a move by a channel: OpPut, OpPutSignal, OpPutSignalFlush,
// OpPutPackets, OpReadPutPackets or OpGet. Packets that a port channel puts are
// packets before already: it copies bytes as they are.
func (b *One) Move(kind ir.OpKind, ch OneChannel, dst, src OneChunk, blocks []int32, pos ir.PosID) error {
	call := oneCall(kind)
	source, target := ch.Src, ch.Dst
	sourceIs, targetIs := "the channel's own", "the channel's peer"
	if kind == ir.OpGet {
		source, target, sourceIs, targetIs = target, source, targetIs, sourceIs
	}
	from, to := plain(src), plain(dst)
	var packets error
	switch kind {
	case ir.OpPutPackets, ir.OpReadPutPackets:
		to, packets = packet(dst), first(b.packets(call, "dst_chunk", dst, pos))
		if kind == ir.OpReadPutPackets || ch.Kind == ir.ChannelPort {
			from = packet(src)
			if packets == nil {
				packets = b.sourcePackets(call, kind, src, pos)
			}
		}
	}
	if err := first(b.start(call, blocks, pos), b.where(call, "src_chunk", src, source, sourceIs, pos), b.where(call, "dst_chunk", dst, target, targetIs, pos),
		b.sizes(call, "src_chunk", src, dst, pos)); err != nil {
		return err
	}
	if packets != nil {
		return packets
	}
	if err := first(b.looped(call, dst, pos)); err != nil {
		return err
	}
	b.record(ir.TraceOp{Kind: ir.TraceOf(kind), Via: ch.Kind, Rank: ch.Src, Ref: ch.Ref, Pos: pos}, []side{from}, []side{to}, blocks)
	return nil
}

// sourcePackets checks a source that has to hold packets already.
func (b *One) sourcePackets(call string, kind ir.OpKind, src OneChunk, pos ir.PosID) error {
	m := b.packets(call, "src_chunk", src, pos)
	if m == nil {
		return nil
	}
	if kind == ir.OpPutPackets {
		m.Text = call + ": src_chunk: a port channel copies bytes as they are, so " + src.String() + " would have to hold packets already"
		m.Suggestion = "copy_packets makes packets of plain data, in scratch"
	}
	return m
}

// ReadReduce records dst := src op remotes..., which are read from the channel's
// peer.
func (b *One) ReadReduce(ch OneChannel, dst, src OneChunk, remotes []OneChunk, op ir.Reduction, blocks []int32, pos ir.PosID) error {
	const call = "reduce"
	if err := first(b.start(call, blocks, pos), b.where(call, "local_src_chunk", src, ch.Src, "the channel's own", pos),
		b.where(call, "local_dst_chunk", dst, ch.Src, "the channel's own", pos), b.sizes(call, "local_dst_chunk", dst, src, pos),
		b.apart(call, dst, src, pos), b.looped(call, dst, pos)); err != nil {
		return err
	}
	if len(remotes) == 0 {
		return b.errorf(pos, "bad-argument", "reduce: remote_src_chunks: got an empty list, want chunks of rank %d", ch.Dst)
	}
	list := append(b.list[:0], plain(src))
	for _, r := range remotes {
		if err := first(b.where(call, "remote_src_chunks", r, ch.Dst, "the channel's peer", pos),
			b.sizes(call, "remote_src_chunks", r, src, pos)); err != nil {
			return err
		}
		list = append(list, plain(r))
	}
	b.list = list
	b.record(ir.TraceOp{Kind: ir.TraceOf(ir.OpReadReduce), Via: ch.Kind, Reduce: op, Rank: ch.Src, Ref: ch.Ref, Pos: pos},
		list, []side{plain(dst)}, blocks)
	return nil
}
