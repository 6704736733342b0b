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
	here := l.local(n, s.Src)
	var message, remote ir.Operand
	if n.recvFrom != ir.None {
		message = l.arrival(i)
	}
	if n.sendTo != ir.None {
		remote = l.arrival(n.sendTo)
	}
	put, forward, sum := ir.OpPut, ir.OpPut, ir.OpReduceLocal
	if l.packets {
		put, forward, sum = ir.OpPutPackets, ir.OpReadPutPackets, ir.OpReducePackets
	}
	switch s.Kind {
	case ir.Send:
		l.relay(i, put, forward, remote)
	case ir.Recv:
		l.receive(i, message)
	case ir.RecvCopySend:
		l.move(s, forward, remote, message)
		l.receive(i, message)
	case ir.RecvReduceSend:
		kept := message
		if l.packets {
			kept = l.local(n, l.temp[i])
		}
		l.move(s, sum, kept, l.terms(kept, here, message)...)
		l.move(s, put, remote, kept)
	case ir.RecvReduceCopy, ir.RecvReduceCopySend:
		dst := l.local(n, s.Dst)
		l.move(s, sum, dst, here, message)
		if s.Kind.Sends() {
			l.move(s, put, remote, dst)
		}
	case ir.Copy:
		if s.Src != s.Dst {
			l.relay(i, ir.OpCopy, ir.OpUnpackPackets, l.local(n, s.Dst))
		}
	case ir.Reduce:
		l.relay(i, ir.OpReduceLocal, ir.OpReducePackets, l.local(n, s.Dst))
	}
}

func (l *moves) move(s *ir.Step, kind ir.OpKind, dst ir.Operand, src ...ir.Operand) {
	l.add(move{kind: kind, src: src, dst: []ir.Operand{dst}, pos: s.Pos})
}

func (l *moves) local(n *node, p ir.Place) ir.Operand {
	return ir.Operand{Rank: ir.Rank(n.rank), Group: ir.None, Buf: p.Buf, Index: p.Index, Size: n.step.Count}
}

// receive adds the way of a message to its destination, if it has one left.
func (l *moves) receive(i int32, message ir.Operand) {
	n := &l.nodes[i]
	switch {
	case !l.packets && !l.direct[i]:
		l.move(n.step, ir.OpCopy, l.local(n, n.step.Dst), message)
	case l.packets && l.unpack[i]:
		l.move(n.step, ir.OpUnpackPackets, l.local(n, n.step.Dst), message)
	}
}

// relay adds the moves of node i from its source to dst, piece by piece: of kind
// plain, or packed for a source of packets. Of a local reduce dst is a term too.
func (l *moves) relay(i int32, plain, packed ir.OpKind, dst ir.Operand) {
	n := &l.nodes[i]
	list := []piece{{0, n.step.Count, ir.None, 0}}
	if l.packets && l.reads[i] != nil {
		list = l.reads[i]
	}
	for _, p := range list {
		kind, src, to := plain, l.local(n, n.step.Src), dst
		src.Index += p.start
		if p.from != ir.None {
			kind, src = packed, l.arrival(p.from)
			src.Index += p.at
		}
		to.Index += p.start
		src.Size, to.Size = p.count, p.count
		if n.step.Kind == ir.Reduce {
			l.move(n.step, kind, to, to, src)
		} else {
			l.move(n.step, kind, to, src)
		}
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
