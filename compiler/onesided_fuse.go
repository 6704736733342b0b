package compiler

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// move is an operation of a plan that moves data, before it is written down.
type move struct {
	kind     ir.OpKind
	src, dst []ir.Operand
	pos      ir.PosID
}

// moves are the operations of a batch, joined as the executor likes them.
type moves struct {
	*export
	list []move
}

// add appends m, or joins it with an earlier one that it can be moved up to.
func (l *moves) add(m move) {
	for i := len(l.list) - 1; i >= 0; i-- {
		if l.join(&l.list[i], &m) {
			return
		}
		if l.conflict(&l.list[i], &m) {
			break
		}
	}
	l.list = append(l.list, m)
}

// join makes b part of a, if one operation can do both: puts from one buffer,
// packets passed on to several ranks, sums of several terms, sums sent on.
func (l *moves) join(a, b *move) bool {
	size := a.dst[0].Size
	if size != b.dst[0].Size {
		return false
	}
	switch {
	case a.kind == b.kind && (a.kind == ir.OpPut || a.kind == ir.OpPutPackets):
		if a.src[0].Buf != b.src[0].Buf || len(a.src)+len(b.src) > planOperands || l.conflict(a, b) {
			return false
		}
		a.src = append(a.src, b.src...)
	case a.kind == ir.OpReadPutPackets && b.kind == a.kind:
		if a.src[0] != b.src[0] || len(a.dst)+len(b.dst) > planOperands {
			return false
		}
	case a.kind == b.kind && (a.kind == ir.OpReduceLocal || a.kind == ir.OpReducePackets):
		if a.dst[0] != b.dst[0] || b.src[0] != a.dst[0] || len(a.src)+len(b.src)-1 > planOperands || l.overlapAny(b.src[1:], a.dst) {
			return false
		}
		a.src = append(a.src, b.src[1:]...)
		return true
	case (a.kind == ir.OpReduceLocal || a.kind == ir.OpReduceSend) && b.kind == ir.OpPut:
		if len(b.src) > 1 || b.src[0] != a.dst[0] || len(a.dst) == planOperands {
			return false
		}
		a.kind = ir.OpReduceSend
	case (a.kind == ir.OpReducePackets || a.kind == ir.OpReduceSendPackets) && b.kind == ir.OpPutPackets:
		if len(b.src) > 1 || b.src[0] != a.dst[0] || len(a.dst) == planOperands {
			return false
		}
		a.kind = ir.OpReduceSendPackets
	default:
		return false
	}
	a.dst = append(a.dst, b.dst...)
	return true
}

// conflict reports whether b has to run after a: one of them writes what the
// other touches.
func (l *moves) conflict(a, b *move) bool {
	return l.overlapAny(a.dst, b.dst) || l.overlapAny(a.dst, b.src) || l.overlapAny(a.src, b.dst)
}

func (l *moves) overlapAny(a, b []ir.Operand) bool {
	return slices.ContainsFunc(a, func(p ir.Operand) bool {
		return slices.ContainsFunc(b, func(q ir.Operand) bool { return l.overlap(p, q) })
	})
}

func (l *moves) overlap(p, q ir.Operand) bool {
	if p.Rank != q.Rank {
		return false
	}
	pb, pi := l.p.Coll.Canon(p.Rank, p.Buf, p.Index)
	qb, qi := l.p.Coll.Canon(q.Rank, q.Buf, q.Index)
	return pb == qb && pi < qi+q.Size && qi < pi+p.Size
}

// lower adds what node i does to the moves of its batch.
func (l *moves) lower(i int32) {
	n := &l.nodes[i]
	s := n.step
	rank := ir.Rank(n.rank)
	local := func(p ir.Place) ir.Operand {
		return ir.Operand{Rank: rank, Group: ir.None, Buf: p.Buf, Index: p.Index, Size: s.Count}
	}
	move1 := func(kind ir.OpKind, dst ir.Operand, src ...ir.Operand) {
		l.add(move{kind: kind, src: src, dst: []ir.Operand{dst}, pos: s.Pos})
	}
	put, forward, receive, sum := ir.OpPut, ir.OpPut, ir.OpCopy, ir.OpReduceLocal
	if l.packets {
		put, forward, receive, sum = ir.OpPutPackets, ir.OpReadPutPackets, ir.OpUnpackPackets, ir.OpReducePackets
	}
	var message, remote ir.Operand
	if n.recvFrom != ir.None {
		message = l.arrival(i)
	}
	if n.sendTo != ir.None {
		remote = l.arrival(n.sendTo)
	}
	switch s.Kind {
	case ir.Send:
		move1(put, remote, local(s.Src))
	case ir.Recv:
		if !l.direct[i] {
			move1(receive, local(s.Dst), message)
		}
	case ir.RecvCopySend:
		move1(forward, remote, message)
		if !l.direct[i] {
			move1(receive, local(s.Dst), message)
		}
	case ir.RecvReduceSend:
		kept := message
		if l.packets {
			kept = local(l.temp[i])
		}
		move1(sum, kept, l.terms(kept, local(s.Src), message)...)
		move1(put, remote, kept)
	case ir.RecvReduceCopy, ir.RecvReduceCopySend:
		move1(sum, local(s.Dst), local(s.Src), message)
		if s.Kind.Sends() {
			move1(put, remote, local(s.Dst))
		}
	case ir.Copy:
		if s.Src != s.Dst {
			move1(ir.OpCopy, local(s.Dst), local(s.Src))
		}
	case ir.Reduce:
		move1(ir.OpReduceLocal, local(s.Dst), local(s.Dst), local(s.Src))
	}
}

// terms puts the destination first if it is one of the two terms.
func (l *moves) terms(dst, a, b ir.Operand) []ir.Operand {
	if b == dst {
		return []ir.Operand{b, a}
	}
	return []ir.Operand{a, b}
}

// arrival is where the message that node i receives arrives.
func (l *moves) arrival(i int32) ir.Operand {
	n := &l.nodes[i]
	o := ir.Operand{Rank: ir.Rank(n.rank), Group: ir.None, Buf: n.step.Dst.Buf, Index: n.step.Dst.Index, Size: n.step.Count}
	if !l.direct[i] {
		o.Buf, o.Index, o.Packets = ir.FirstScratch, l.landing[i], l.packets
	}
	return o
}
