package compiler

import (
	"context"
	"math"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// oneFuse joins neighbors of a thread block that one operation of the executor can do,
// and that mean the same as one. The kinds that join are MSCCL++'s; see
// docs/onepasses.md for what it joins and this doesn't.
func oneFuse(_ context.Context, s *oneState) error {
	wide := &fuser{space: s.space, operands: math.MaxInt32, ids: math.MaxInt32, semaphores: math.MaxInt32}
	if len(s.trace.Groups) > 0 {
		wide.read = scratchRead(s)
	}
	f := wide
	if s.limited {
		f = &fuser{space: s.space, operands: planOperands, ids: planIDs, semaphores: planSemaphores, read: wide.read}
		if !s.trace.AutoSync {
			f.wide = wide
		}
	}
	for r := range s.ranks {
		for b := range s.ranks[r] {
			s.ranks[r][b] = f.block(s.ranks[r][b])
		}
	}
	return nil
}

// planSemaphores is how many semaphores MSCCL++'s executor has room for in an operation.
const planSemaphores = 16

// fuser joins nodes within the limits of an operation.
type fuser struct {
	space                     *oneSpace
	operands, ids, semaphores int
	read                      []bool // of a location: an operation that reads plain data names it
	wide                      *fuser // without limits, or nil where threads meet between conflicting operations anyway
}

func (f *fuser) block(list oneBlock) oneBlock {
	out := list[:0]
	for i := range list {
		if n := len(out); n > 0 && out[n-1].loop == list[i].loop && list[i].after < out[n-1].first && f.join(&out[n-1], &list[i]) {
			a := &out[n-1]
			a.last, a.after, a.ours = list[i].last, max(a.after, list[i].after), a.ours || list[i].ours
			continue
		} else if n > 0 && f.wide != nil && out[n-1].loop == list[i].loop {
			// What is two operations only for the executor's limits has to be in order
			// like one.
			a, b := out[n-1], list[i]
			list[i].ours = list[i].ours || f.wide.join(&a, &b)
		}
		out = append(out, list[i])
	}
	return out
}

// join makes b part of a, if that means the same.
func (f *fuser) join(a, b *oneNode) bool {
	if a.part != b.part || a.parts != b.parts {
		return false
	}
	if a.kind == b.kind {
		return f.same(a, b)
	}
	if ir.OpKind(b.kind) == ir.OpPut || a.kind == ir.TraceGroupReduce {
		return f.sendOn(a, b)
	}
	return f.sendOnPackets(a, b)
}

// same joins two operations of one kind.
func (f *fuser) same(a, b *oneNode) bool {
	if a.via != b.via || a.reduce != b.reduce {
		return false
	}
	switch ir.OpKind(a.kind) {
	case ir.OpSync:
		return true
	case ir.OpSignal, ir.OpWait, ir.OpRelaxedSignal, ir.OpRelaxedWait, ir.OpFlush:
		return f.joinRefs(a, b, f.ids)
	case ir.OpSemaphoreAcquire, ir.OpSemaphoreRelease:
		return f.joinRefs(a, b, f.semaphores)
	case ir.OpPut, ir.OpPutPackets, ir.OpPutSignal, ir.OpPutSignalFlush, ir.OpGet:
		return f.joinMoves(a, b)
	case ir.OpReadPutPackets:
		// One pass over the packets, written to several places.
		if !f.space.same(&a.src[0], &b.src[0]) || f.full(a.dst, 1) || len(a.refs)+len(b.refs) > f.ids || f.meetIn(a.dst, b.dst, false) {
			return false
		}
		a.dst, a.refs = append(a.dst, b.dst...), append(a.refs, b.refs...)
		return true
	case ir.OpReduceLocal, ir.OpReducePackets, ir.OpReadReduce:
		return f.joinTerms(a, b)
	}
	return false
}

// joinRefs joins signals, waits, flushes, acquires or releases of different channels or
// semaphores: one thread does each. Nothing is between them that they could order, so
// that the threads meet around all of them even where one operation can't hold them.
func (f *fuser) joinRefs(a, b *oneNode, most int) bool {
	if slices.ContainsFunc(b.refs, func(x int32) bool { return slices.Contains(a.refs, x) }) {
		return false
	}
	if len(a.refs)+len(b.refs) > most {
		both := a.sync | b.sync
		a.sync, b.sync = both&ir.SyncBefore, both&ir.SyncAfter
		if b.met = a.met || a.sync != ir.SyncNone; a.met {
			a.sync = ir.SyncNone
		}
		return false
	}
	a.refs = append(a.refs, b.refs...)
	if a.sync |= b.sync; a.met {
		a.sync &^= ir.SyncBefore
	}
	return true
}

// joinMoves joins puts or gets of one size: one after another on all threads via
// memory, where they have to use one local buffer, be it by another name in place, and
// may not touch the same memory; beside each other via ports, where a signal tells of one
// put alone, so that each needs a channel of its own.
func (f *fuser) joinMoves(a, b *oneNode) bool {
	mine, other := localOperands(a), localOperands(b)
	one := (*mine)[0].Buf == (*other)[0].Buf
	renamed := !one && f.oneBuffer(a.kind, *mine, *other)
	switch {
	case a.src[0].Size != b.src[0].Size || f.full(a.src, len(b.src)) || len(a.refs)+len(b.refs) > f.ids:
		return false
	case a.via == ir.ChannelMemory && !one && !renamed:
		return false
	case ir.OpKind(a.kind) == ir.OpPutSignal || ir.OpKind(a.kind) == ir.OpPutSignalFlush:
		if slices.ContainsFunc(b.refs, func(x int32) bool { return slices.Contains(a.refs, x) }) {
			return false
		}
	}
	if f.meetIn(a.dst, b.dst, false) || f.meetIn(a.dst, b.src, false) || f.meetIn(a.src, b.dst, false) {
		return false
	}
	if renamed && a.via == ir.ChannelMemory {
		*mine, *other = f.canonical(*mine), f.canonical(*other)
	}
	a.src, a.dst, a.refs = append(a.src, b.src...), append(a.dst, b.dst...), append(a.refs, b.refs...)
	return true
}

// localOperands are the operands of a put or get on its own rank.
func localOperands(n *oneNode) *[]ir.Operand {
	if ir.OpKind(n.kind) == ir.OpGet {
		return &n.dst
	}
	return &n.src
}

// oneBuffer reports whether places of two lists are in one buffer under their canonical names.
// Those of a get have to keep their indices, since MSCCL++'s executor has one for both sides.
func (f *fuser) oneBuffer(kind ir.TraceKind, a, b []ir.Operand) bool {
	coll := f.space.t.Coll
	first, _ := coll.Canon(a[0].Rank, a[0].Buf, a[0].Index)
	for _, list := range [...][]ir.Operand{a, b} {
		for i := range list {
			buf, index := coll.Canon(list[i].Rank, list[i].Buf, list[i].Index)
			if buf != first || ir.OpKind(kind) == ir.OpGet && index != list[i].Index {
				return false
			}
		}
	}
	return true
}

// canonical is a copy of places under their canonical names.
func (f *fuser) canonical(list []ir.Operand) []ir.Operand {
	list = slices.Clone(list)
	for i := range list {
		a := &list[i]
		a.Buf, a.Index = f.space.t.Coll.Canon(a.Rank, a.Buf, a.Index)
	}
	return list
}

// joinTerms joins d := op(s, x) and d := op(d, y) to d := op(s, x, y). Of
// d := op(s, x) and d := op(s, y) the first is overwritten, so that is no sum of
// both unless s is d.
func (f *fuser) joinTerms(a, b *oneNode) bool {
	sum := &a.dst[0]
	if !f.space.same(&b.src[0], sum) || !f.space.same(&b.dst[0], sum) || f.full(a.src, len(b.src)-1) || f.meetIn(b.src[1:], a.dst, false) {
		return false
	}
	a.src = append(a.src, b.src[1:]...)
	return true
}

// sendOn joins a reduction and what puts its result to another rank, or stores it at all
// ranks of a group.
func (f *fuser) sendOn(a, b *oneNode) bool {
	if a.kind == ir.TraceGroupReduce {
		return f.storeOn(a, b)
	}
	kind := ir.OpReduceSend
	switch ir.OpKind(a.kind) {
	case ir.OpReduceLocal, ir.OpReduceSend:
	case ir.OpReadReduce, ir.OpReadReduceSend:
		kind = ir.OpReadReduceSend
	default:
		return false
	}
	// A place may be read for the sum and written with it, by the same thread.
	if b.via != ir.ChannelMemory || !f.space.same(&b.src[0], &a.dst[0]) || f.full(a.dst, 1) || f.meetIn(a.dst, b.dst, false) || f.meetIn(a.src, b.dst, true) {
		return false
	}
	a.kind, a.via = ir.TraceOf(kind), ir.ChannelMemory
	a.dst = append(a.dst, b.dst...)
	return true
}

// sendOnPackets joins a reduction of packets and what sends or keeps its result as
// packets.
func (f *fuser) sendOnPackets(a, b *oneNode) bool {
	var from *ir.Operand
	kind := ir.OpReduceCopySendPackets
	switch ir.OpKind(a.kind) {
	case ir.OpReducePackets, ir.OpReduceSendPackets:
		kind, from = ir.OpReduceSendPackets, &a.dst[0]
		if ir.OpKind(b.kind) == ir.OpCopyToPackets && ir.OpKind(a.kind) == ir.OpReducePackets {
			kind = ir.OpReduceCopyPackets
		} else if ir.OpKind(b.kind) != ir.OpPutPackets {
			return false
		}
	case ir.OpReduceCopyPackets, ir.OpReduceCopySendPackets:
		switch ir.OpKind(b.kind) {
		case ir.OpPutPackets:
			from = &a.dst[0]
		case ir.OpReadPutPackets:
			from = &a.dst[1]
		default:
			return false
		}
	default:
		return false
	}
	if b.via == ir.ChannelPort || !f.space.same(&b.src[0], from) || len(b.src) > 1 || f.full(a.dst, len(b.dst)) ||
		f.meetIn(a.dst, b.dst, false) || f.meetIn(a.src, b.dst, false) {
		return false
	}
	a.kind, a.dst = ir.TraceOf(kind), append(a.dst, b.dst...)
	if kind != ir.OpReduceCopyPackets {
		a.via = ir.ChannelMemory
	}
	return true
}

// storeOn joins the load of a sum from a group and the store of it to the group. The joined
// operation keeps the sum nowhere else: that has to be where the store puts it
// anyway, or scratch that nobody reads. What it loads has to be where it stores, or apart:
// between the two that it stands for, all was loaded before anything was stored.
func (f *fuser) storeOn(a, b *oneNode) bool {
	if ir.OpKind(b.kind) != ir.OpGroupStore || !f.space.same(&b.src[0], &a.dst[0]) || b.dst[0].Group != a.src[0].Group {
		return false
	}
	if from, to := &a.src[0], &b.dst[0]; from.Index != to.Index && from.Index < to.Index+to.Size && to.Index < from.Index+from.Size {
		return false
	}
	kept := f.space.access(nil, &a.dst[0], oneAccess{})[0]
	covered := slices.Contains(f.space.access(nil, &b.dst[0], oneAccess{}), kept)
	if !covered && (a.dst[0].Buf != ir.FirstScratch || slices.Contains(f.read[kept.lo:kept.hi], true)) {
		return false
	}
	a.kind, a.dst = ir.TraceOf(ir.OpGroupReduceStore), b.dst
	return true
}

// full reports whether a list has no room for n more.
func (f *fuser) full(list []ir.Operand, n int) bool { return len(list)+n > f.operands }

// meetIn reports whether an operand of one list overlaps one of another; with same, those
// that are the very same don't count.
func (f *fuser) meetIn(a, b []ir.Operand, same bool) bool {
	for i := range b {
		lo, hi := f.space.of(b[i].Rank, &b[i])
		for k := range a {
			if a[k].Rank != b[i].Rank || same && f.space.same(&a[k], &b[i]) {
				continue
			}
			if l, h := f.space.of(a[k].Rank, &a[k]); l < hi && lo < h {
				return true
			}
		}
	}
	return false
}

// scratchRead marks what operations read, other than the stores that pass on a sum of
// a group.
func scratchRead(s *oneState) []bool {
	read := make([]bool, s.space.size)
	for r := range s.ranks {
		for _, list := range s.ranks[r] {
			for i := range list {
				n := &list[i]
				if i > 0 && list[i-1].kind == ir.TraceGroupReduce && ir.OpKind(n.kind) == ir.OpGroupStore && n.src[0] == list[i-1].dst[0] {
					continue
				}
				for _, x := range s.space.accesses(nil, n.kind, n.src, nil) {
					for l := x.lo; l < x.hi; l++ {
						read[l] = true
					}
				}
			}
		}
	}
	return read
}

// lostSum refuses a sum of a group that isn't stored to the group at once.
func lostSum(s *oneState, n *oneNode) error {
	return diag.Errorf(s.trace.Pos(n.pos), "group-reduce",
		"the sum of switch group %d is not stored back to the group: no executor loads a sum without storing it", n.src[0].Group).
		Suggest("broadcast the same chunks on the same switch channel next, with fusion on, and use the result where that puts it")
}
