package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mscclsh/mscclsh/ir"
)

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// op makes an operation of the current dialect; false for one that Literal drops.
func (l *lowering) op(raw *rawOp) (ir.Op, bool) {
	kind, err := ir.ParseOpKind(raw.name)
	if err != nil {
		l.unknown(raw)
		return ir.Op{}, false
	}
	op := ir.Op{Kind: kind, Reduce: raw.reduce, Part: raw.part, Parts: raw.parts, UnitBytes: raw.unit, UnitChunks: raw.chunks}
	if vias := kind.Vias(); len(vias) > 0 {
		op.Via = raw.via
		if !slices.Contains(vias, op.Via) {
			l.failf(raw.pos, "plan-value", "%s: got channel type %s, want %s", kind, op.Via, vias[0])
			return op, false
		}
	}
	if !kind.Reduces() {
		op.Reduce = ir.ReduceByRun
	}
	if l.o.Literal && kind == ir.OpFlush {
		l.once(infof(raw.pos, "plan-literal-flush", "flush does nothing in MSCCL++'s executor and is left out"))
		return op, false
	}
	l.opRefs(&op, raw)
	src, dst := l.side(&op, raw, raw.src, false), l.side(&op, raw, raw.dst, true)
	if l.err != nil {
		return op, false
	}
	if kind == ir.OpReadPutPackets && allSame(src) {
		src = src[:1]
	}
	if l.o.Literal {
		l.literal(&op, raw, src, dst)
	}
	op.Src, op.Dst = l.operands(src...), l.operands(dst...)
	op.Pos = l.pos(raw.pos)
	return op, true
}

// unknown refuses an operation that no executor runs.
func (l *lowering) unknown(raw *rawOp) {
	l.failf(raw.pos, "plan-op", "MSCCL++'s executor has no operation %q", raw.name)
	if raw.name == "glre" && l.err != nil {
		l.err.Suggestion = "its compiler writes glre for a switch reduce without a broadcast after it; the two together are glres"
	}
}

// opRefs fills in channels, semaphores, the barrier and the unit of a pipeline.
func (l *lowering) opRefs(op *ir.Op, raw *rawOp) {
	none := int32(len(l.one.Refs))
	op.Refs = ir.Span{Start: none, End: none}
	least, _ := op.Kind.Operands(true)
	switch {
	case op.Kind == ir.OpBarrier:
		if raw.barrier == ir.None || raw.blocks == 0 {
			l.failf(raw.pos, "plan-value", "barrier: it needs barrier_id and num_threadblocks")
			return
		}
		op.Refs, op.Part, op.Parts = l.refs(raw.barrier), 0, raw.blocks
	case op.Kind == ir.OpSemaphoreAcquire || op.Kind == ir.OpSemaphoreRelease:
		op.Refs = l.refs(raw.semaphores...)
	case op.Kind == ir.OpPipeline:
		if raw.unit == 0 {
			l.failf(raw.pos, "plan-value", "pipeline: it has no %q", "iter_context")
		}
	case op.Kind == ir.OpSync:
	case op.Via == ir.ChannelPort || op.Via == ir.ChannelMemory && least == 0:
		ids := make([]int32, len(raw.ids))
		for i, id := range raw.ids {
			ids[i] = l.pick(raw.pos, op.Via.String()+" channel", l.t.channels[op.Via], id)
		}
		op.Refs = l.refs(ids...)
	}
}

// side makes the sources or the destinations of an operation.
func (l *lowering) side(op *ir.Op, raw *rawOp, list []rawBuf, destination bool) []ir.Operand {
	out := make([]ir.Operand, len(list))
	for i := range list {
		b := &list[i]
		where, packets := op.Kind.Operand(op.Via, destination, i)
		if b.where != where && where != ir.WhereNowhere {
			l.failf(b.pos, "plan-value", "%s: got a %s buffer, want a %s one", op.Kind, b.where, where)
			return out
		}
		a := ir.Operand{Rank: l.rank, Group: ir.None, Buf: b.buf, Index: b.index, Size: b.size, Packets: packets}
		switch where {
		case ir.WhereRemote:
			list := l.t.remotes[op.Via]
			if int(b.id) >= len(list) {
				l.failf(b.pos, "plan-value", "the thread block has no remote buffer %d via %s channels", b.id, op.Via)
				return out
			}
			a.Rank, a.Buf = ir.Rank(list[b.id].rank), list[b.id].buf
		case ir.WhereGroup:
			a.Group = l.pick(b.pos, "switch channel", l.t.channels[ir.ChannelSwitch], b.id)
			if l.err != nil {
				return out
			}
			a.Rank, a.Buf = ir.None, l.one.Groups[a.Group].Buf
		}
		out[i] = a
	}
	return out
}

func allSame(list []ir.Operand) bool {
	for _, a := range list {
		if a != list[0] {
			return false
		}
	}
	return len(list) > 1
}

// literal changes an operation to what the executor makes of it.
func (l *lowering) literal(op *ir.Op, raw *rawOp, src, dst []ir.Operand) {
	differs := func(code, format string, args ...any) {
		l.once(infof(raw.pos, code, "%s", fmt.Sprintf(format, args...)))
	}
	if op.Kind.Reduces() {
		if op.Reduce > ir.ReduceSum {
			differs("plan-literal-reduce", "reduce_op %s is never read by MSCCL++'s executor: it sums", op.Reduce)
		}
		op.Reduce = ir.ReduceSum
	}
	switch {
	case op.Kind == ir.OpGet && len(src) == len(dst):
		for i := range src {
			if src[i].Index != dst[i].Index {
				differs("plan-literal-get", "get: MSCCL++'s executor swaps the two indices")
			}
			src[i].Index, dst[i].Index = dst[i].Index, src[i].Index
		}
	case (op.Kind == ir.OpPut || op.Kind == ir.OpPutPackets) && op.Via == ir.ChannelMemory:
		for i := range src {
			if src[i].Buf != src[0].Buf {
				differs("plan-literal-put", "%s: MSCCL++'s executor takes every source from the buffer of the first", op.Kind)
			}
			src[i].Buf = src[0].Buf
		}
	}
}
