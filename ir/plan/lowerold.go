package plan

import (
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// The original dialect: a channel joins a pair of buffers, so operations name
// channels and offsets where later ones name remote buffers, and the names of
// some operations differ.
var oldKinds = map[string]ir.OpKind{
	"nop": ir.OpSync, "barrier": ir.OpBarrier, "signal": ir.OpSignal, "wait": ir.OpWait, "flush": ir.OpFlush,
	"put": ir.OpPut, "pws": ir.OpPutSignal, "pwsf": ir.OpPutSignalFlush, "get": ir.OpGet, "copy": ir.OpCopy,
	"re": ir.OpReduceLocal, "rs": ir.OpReduceSend, "rrc": ir.OpReadReduce, "rrcs": ir.OpReadReduceSend,
	"tpkt": ir.OpCopyToPackets, "cpkt": ir.OpUnpackPackets, "ppkt": ir.OpPutPackets, "rppkt": ir.OpReadPutPackets,
	"rpkt": ir.OpReducePackets, "rspkt": ir.OpReduceSendPackets, "glres": ir.OpGroupReduceStore,
}

// keys lists a rank's channels by kind and pair of buffers, in the order of
// their declaration. Switch channels are listed by their groups.
func (r *reader) keys(g int32) {
	t := &r.tables[g]
	t.byKey = map[oldKey][]int32{}
	next := t.base
	for i := range r.raw.gpus[g].channels {
		c := &r.raw.gpus[g].channels[i]
		key := oldKey{c.kind, c.src, c.dst}
		if c.kind == ir.ChannelSwitch {
			key = oldKey{c.kind, c.buf, c.buf}
			for range c.groups {
				t.byKey[key] = append(t.byKey[key], t.groups[next[c.kind]])
				next[c.kind]++
			}
			continue
		}
		for range c.peers {
			t.byKey[key] = append(t.byKey[key], next[c.kind])
			next[c.kind]++
		}
	}
}

// oldLists resolves the channels of a thread block.
func (r *reader) oldLists(g int32, b *rawBlock) *blockTables {
	bt := &blockTables{byKey: map[oldKey][]int32{}}
	for i := range b.channels {
		c := &b.channels[i]
		key := oldKey{c.kind, c.src, c.dst}
		list := r.tables[g].byKey[key]
		for _, id := range c.ids {
			if int(id) >= len(list) {
				r.failf(c.pos, "plan-value", "rank %d has no %s channel %d from %s to %s", g, c.kind, id, bufferWords[c.src], bufferWords[c.dst])
				return bt
			}
			bt.byKey[key] = append(bt.byKey[key], list[id])
		}
	}
	return bt
}

// oldOps makes an operation of the original dialect, or several where one has
// no counterpart.
func (l *lowering) oldOps(raw *rawOp) []ir.Op {
	kind, ok := oldKinds[raw.name]
	if !ok {
		l.unknown(raw)
		return nil
	}
	o := raw.old
	if o == nil {
		o = &oldOp{}
	}
	op := ir.Op{Kind: kind, Parts: 1}
	if len(kind.Vias()) > 0 {
		op.Via = raw.via
	}
	none := int32(len(l.one.Refs))
	op.Refs = ir.Span{Start: none, End: none}
	var src, dst []ir.Operand
	switch kind {
	case ir.OpSync:
		l.oldWaits(raw, o)
	case ir.OpBarrier:
		l.opRefs(&op, raw)
	case ir.OpSignal, ir.OpFlush:
		op.Refs = l.refs(l.oldChannels(raw, o.out, o.outIDs)...)
	case ir.OpWait:
		op.Refs = l.refs(l.oldChannels(raw, o.in, o.inIDs)...)
	case ir.OpReadPutPackets:
		return l.oldReadPut(raw, o, op)
	default:
		src, dst = l.oldOperands(raw, o, &op)
	}
	if l.err != nil {
		return nil
	}
	if least, _ := kind.Operands(true); least > 0 && op.Via == ir.ChannelPort {
		op.Refs = l.refs(l.oldChannels(raw, o.out, o.outIDs)...)
	}
	return []ir.Op{l.finish(op, raw, src, dst)}
}

func (l *lowering) finish(op ir.Op, raw *rawOp, src, dst []ir.Operand) ir.Op {
	for i := range src {
		_, src[i].Packets = op.Kind.Operand(op.Via, false, i)
	}
	for i := range dst {
		_, dst[i].Packets = op.Kind.Operand(op.Via, true, i)
	}
	op.Src, op.Dst = l.operands(src...), l.operands(dst...)
	op.Pos = l.pos(raw.pos)
	return op
}

// oldWaits tells of a nop that names other thread blocks: no executor waits for them.
func (l *lowering) oldWaits(raw *rawOp, o *oldOp) {
	self := int32(len(l.one.GPUs[l.rank].Blocks))
	for _, b := range o.otherBlocks {
		if b != self {
			l.once(diag.Warningf(raw.pos, "plan-nop", "the nop names thread block %d, and executors wait for no other thread block there", b).
				Suggest("a barrier makes thread blocks wait for one another"))
		}
	}
}

// oldOperands are the operands of everything that moves data.
func (l *lowering) oldOperands(raw *rawOp, o *oldOp, op *ir.Op) (src, dst []ir.Operand) {
	need := func(ok bool, key string) {
		if !ok {
			l.failf(raw.pos, "plan-value", "%s: it has no %q", raw.name, key)
		}
	}
	need(o.count > 0, "cnt")
	local := func(p oldPlace) ir.Operand {
		return ir.Operand{Rank: l.rank, Group: ir.None, Buf: p.buf, Index: p.off, Size: o.count}
	}
	locals := func(list []oldPlace) (out []ir.Operand) {
		for _, p := range list {
			out = append(out, local(p))
		}
		return out
	}
	switch op.Kind {
	case ir.OpPut, ir.OpPutSignal, ir.OpPutSignalFlush, ir.OpPutPackets:
		need(o.haveOut, "o_buff")
		srcs := o.srcs
		if len(srcs) == 0 && o.haveSrc { // v0.5.0: one source for all destinations
			srcs = slices.Repeat([]oldPlace{o.src}, len(o.outIDs))
		}
		for _, p := range srcs {
			if p.buf != o.out.src {
				l.failf(raw.pos, "plan-value", "%s: the source is in %s, the channel starts in %s", raw.name, bufferWords[p.buf], bufferWords[o.out.src])
			}
		}
		return locals(srcs), l.oldRemotes(raw, o, o.out, o.outIDs)
	case ir.OpGet:
		need(o.haveIn, "i_buff")
		return l.oldRemotes(raw, o, o.in, o.inIDs), locals(o.dsts)
	}
	need(o.haveSrc, "srcoff")
	need(o.haveDst, "dstoff")
	src, dst = []ir.Operand{local(o.src)}, []ir.Operand{local(o.dst)}
	switch op.Kind {
	case ir.OpReduceLocal, ir.OpReducePackets:
		src = append(src, locals(o.srcs)...)
	case ir.OpReduceSend, ir.OpReduceSendPackets:
		src = append(src, locals(o.srcs)...)
		dst = append(dst, l.oldRemotes(raw, o, o.out, o.outIDs)...)
	case ir.OpReadReduce, ir.OpReadReduceSend:
		src = append(src, l.oldRemotes(raw, o, o.in, o.inIDs)...)
		if op.Kind == ir.OpReadReduceSend {
			dst = append(dst, l.oldRemotes(raw, o, o.out, o.outIDs)...)
		}
	case ir.OpGroupReduceStore:
		need(len(o.inIDs) == 1, "i_cids")
		need(len(o.outIDs) == 1, "o_cids")
		if l.err == nil {
			src[0] = l.oldGroup(raw, src[0], o.inIDs[0].id)
			dst[0] = l.oldGroup(raw, dst[0], o.outIDs[0].id)
		}
	}
	return src, dst
}

// oldGroup moves an operand to the group of switch channel id of its buffer.
func (l *lowering) oldGroup(raw *rawOp, a ir.Operand, id int32) ir.Operand {
	key := oldKey{ir.ChannelSwitch, a.Buf, a.Buf}
	a.Group = l.pick(raw.pos, "switch channel", l.t.byKey[key], id)
	a.Rank = ir.None
	return a
}

// oldChannels are the channels of ir that an operation names.
func (l *lowering) oldChannels(raw *rawOp, key oldKey, ids []oldRef) []int32 {
	key.kind = raw.via
	out := make([]int32, len(ids))
	for i, c := range ids {
		out[i] = l.pick(raw.pos, raw.via.String()+" channel", l.t.byKey[key], c.id)
	}
	return out
}

// oldRemotes are the places at the other ends of channels.
func (l *lowering) oldRemotes(raw *rawOp, o *oldOp, key oldKey, ids []oldRef) []ir.Operand {
	if raw.via != ir.ChannelMemory && raw.via != ir.ChannelPort {
		l.failf(raw.pos, "plan-value", "%s: got channel type %s, want memory or port", raw.name, raw.via)
		return nil
	}
	channels := l.oldChannels(raw, key, ids)
	if l.err != nil {
		return nil
	}
	out := make([]ir.Operand, len(ids))
	for i, c := range channels {
		out[i] = ir.Operand{Rank: l.one.GPUs[l.rank].Channels[c].Peer, Group: ir.None, Buf: key.dst, Index: ids[i].off, Size: o.count}
	}
	return out
}

// oldReadPut makes one operation for each source that a rppkt has: now it has
// one, for any number of destinations.
func (l *lowering) oldReadPut(raw *rawOp, o *oldOp, op ir.Op) (ops []ir.Op) {
	dst := l.oldRemotes(raw, o, o.out, o.outIDs)
	channels := l.oldChannels(raw, o.out, o.outIDs)
	if l.err != nil {
		return nil
	}
	if len(o.srcs) != len(dst) || o.count == 0 {
		l.failf(raw.pos, "plan-value", "rppkt: got %d sources, %d destinations and %d chunks", len(o.srcs), len(dst), o.count)
		return nil
	}
	for i := 0; i < len(dst); {
		k := i + 1
		for k < len(dst) && o.srcs[k] == o.srcs[i] {
			k++
		}
		one := op
		if op.Via == ir.ChannelPort {
			one.Refs = l.refs(channels[i:k]...)
		}
		src := ir.Operand{Rank: l.rank, Group: ir.None, Buf: o.srcs[i].buf, Index: o.srcs[i].off, Size: o.count}
		ops = append(ops, l.finish(one, raw, []ir.Operand{src}, dst[i:k]))
		i = k
	}
	return ops
}
