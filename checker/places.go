package checker

import "github.com/mscclsh/mscclsh/ir"

// With LL and LL128 a message has no end at which its sender posts it and its receiver
// takes it: flags travel with the data, a word or a line at a time, and each thread
// sends and takes its own. So a step's chunks are in no order, and at each of them
// there are up to four events:
//
//	begins -> arrives -> is sent -> ends
//
// of which all chunks of the step share the first and the last. A step ends before
// those begin that come after it in program order or wait for it, and what is sent
// arrives at the same chunk of the step that takes it. Nothing else is in order. In
// particular
//
//   - operands are read after the step begins, before or after what is to be added to
//     them arrives (NCCL's primitives load them first), and before the sum is sent;
//   - the destination is written after the message has arrived and before the step
//     ends, before or after the chunk is sent on.
//
// NCCL 2.12 to 2.28, prims_ll.h and prims_ll128.h: LLGenericOp and recvReduceSendCopy.

// endsLate reports whether the access of a step, a write or a read, may last until the
// step ends; else it is over when the chunk is sent.
func (s *step) endsLate(write bool) bool { return write || !s.kind.Sends() }

// beginsLate reports whether the access begins only when the step's message has arrived.
func (s *step) beginsLate(write bool) bool { return write && s.mate != ir.None }

// orderedPlaces decides a pair with LL and LL128: whether the first access has come to
// its last event when the second one comes to its first.
func (c *columns) orderedPlaces(p *pair) bool {
	m := c.h.m
	late := m.steps[p.a].endsLate(p.aWrites)
	mark := m.sentMark(p.a)
	if late {
		mark = m.overMark(p.a)
	}
	if c.known(p.b, p.a, mark) {
		return true
	}
	if !m.steps[p.b].beginsLate(p.bWrites) {
		return false
	}
	// What else has happened when the message arrives is what had happened when it was
	// sent: a beginning of some step before that, and all that was known then, or the
	// same chunk of a itself, with nothing but messages in between.
	mate := m.steps[p.b].mate
	switch {
	case late: // so a is not the sender itself, which is on another rank
		return c.knows(mate, p.a, mark)
	case m.passedOn(p.a, p.b):
		return !p.shifted || c.knownOnTheWay(p, mark)
	}
	return c.knows(mate, p.a, mark)
}

// unaligned reports whether messages alone don't order chunk i of one step before
// chunk j of another.
func (m *model) unaligned(i, j int32) bool {
	if m.flagged {
		return i != j
	}
	return i > j
}

// ordersPlaces is forest.orders with LL and LL128. The forest's paths lead from a
// step's messages, or its end, to those of another, or to its end.
func (f *forest) ordersPlaces(p *pair) bool {
	m := f.m
	from, to := p.a, p.b
	if m.steps[from].endsLate(p.aWrites) || p.shifted {
		from++ // begins when a is over
	}
	if st := &m.steps[to]; st.mate != ir.None && !st.beginsLate(p.bWrites) {
		if to--; to < m.tbs[st.tb].first {
			return false
		}
	}
	for a := from; a < min(p.a+nearby, m.tbs[m.steps[p.a].tb].end); a++ {
		if f.holds(a, to) {
			return true
		}
	}
	return false
}
