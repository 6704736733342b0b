package compiler

import (
	"context"

	"github.com/mscclsh/mscclsh/ir"
)

// oneMeet lets the threads of a block meet between two operations of which one writes
// what the other touches, whatever they touch: plain data, packets, memory of
// other ranks, places of a switch group. A meeting stands just before the operation that
// needs it, which makes them as few as can be. Without auto_sync that is done only
// where the compiler chose the thread block.
//
// The end of a loop's body meets its beginning too, where they share memory at
// different places of their ranges: at the same places, turns work on different bytes.
func oneMeet(_ context.Context, s *oneState) error {
	var m *nopper
	for r := range s.ranks {
		for b, list := range s.ranks[r] {
			if !s.mayMeet(list) {
				continue
			}
			if m == nil {
				m = newNopper(s)
			}
			s.ranks[r][b] = m.block(list)
		}
	}
	return nil
}

// mayMeet reports whether anything in a thread block can ask for a meeting.
func (s *oneState) mayMeet(list oneBlock) bool {
	if s.trace.AutoSync {
		return true
	}
	for i := range list {
		if list[i].ours || list[i].after != ir.None {
			return true
		}
	}
	return false
}

func newNopper(s *oneState) *nopper {
	m := &nopper{oneState: s, whole: newOneMarks(s.space.size)}
	if len(s.trace.Loops) > 0 {
		m.body = newOneMarks(s.space.size)
	}
	return m
}

// oneMarks remembers what was touched since the threads met last.
type oneMarks struct {
	now                   int32
	plain, packets, reads []int32 // of a location: the meeting since which it was written, or read
}

func newOneMarks(n int32) *oneMarks {
	return &oneMarks{now: 1, plain: make([]int32, n), packets: make([]int32, n), reads: make([]int32, n)}
}

// nopper goes through thread blocks.
type nopper struct {
	*oneState
	whole, body *oneMarks
	list        []oneAccess
	since       int32 // the last operation of the trace before the meeting
}

// conflicts reports whether n touches what was touched since the last meeting.
func (m *nopper) conflicts(marks *oneMarks, n *oneNode) bool {
	if len(n.src)+len(n.dst) == 0 || !m.trace.AutoSync && !n.ours {
		return false
	}
	m.list = m.space.accesses(m.list[:0], n.kind, n.src, n.dst)
	for i := range m.list {
		a := &m.list[i]
		for l := a.lo; l < a.hi; l++ {
			switch {
			case marks.plain[l] == marks.now, !a.waits && marks.packets[l] == marks.now, a.write && marks.reads[l] == marks.now:
				return true
			}
		}
	}
	return false
}

func (m *nopper) mark(marks *oneMarks, n *oneNode) {
	if len(n.src)+len(n.dst) == 0 {
		return
	}
	m.list = m.space.accesses(m.list[:0], n.kind, n.src, n.dst)
	for i := range m.list {
		a := &m.list[i]
		at := marks.plain
		switch {
		case !a.write:
			at = marks.reads
		case a.packets:
			at = marks.packets
		}
		for l := a.lo; l < a.hi; l++ {
			at[l] = marks.now
		}
	}
}

// block inserts meetings into one thread block.
func (m *nopper) block(list oneBlock) oneBlock {
	var out oneBlock
	m.whole.now++
	m.since = ir.None
	for i := 0; i < len(list); {
		n := &list[i]
		if n.loop != ir.None {
			end := i
			for end < len(list) && list[end].loop == n.loop {
				end++
			}
			out = m.loop(out, list[:i], list[i:end])
			i = end
			continue
		}
		switch {
		case meets(n):
			m.met(i, list)
		case m.conflicts(m.whole, n) || m.late(n):
			out = insertNop(out, list[:i], n)
			m.met(i, list)
		}
		m.mark(m.whole, n)
		if out != nil {
			out = append(out, *n)
		}
		i++
	}
	if out == nil {
		return list
	}
	return out
}

// met notes a meeting before node i.
func (m *nopper) met(i int, list oneBlock) {
	m.whole.now++
	if i > 0 {
		m.since = list[i-1].last
	}
}

// late reports whether n has to come after a meeting that wasn't yet.
func (m *nopper) late(n *oneNode) bool { return n.after != ir.None && n.after > m.since }

// insertNop adds a meeting before n; out is nil as long as it would be a copy of done.
func insertNop(out, done oneBlock, n *oneNode) oneBlock {
	if out == nil {
		out = append(make(oneBlock, 0, len(done)*2+1), done...)
	}
	return append(out, nopFor(n))
}

// loop handles the body of a pipeline, done being what stands before it.
func (m *nopper) loop(out, done, body oneBlock) oneBlock {
	if out == nil {
		out = append(make(oneBlock, 0, len(done)*2+len(body)), done...)
	}
	body = m.bodyMeetings(body)
	head, tail := headAndTail(body)
	for i := range body[:head] {
		if m.conflicts(m.whole, &body[i]) || m.late(&body[i]) && m.outside(&body[i], body) {
			nop := nopFor(&body[i])
			nop.loop = ir.None
			out = append(out, nop)
			m.whole.now++
			break
		}
	}
	if head < len(body) {
		m.whole.now++
	}
	for i := tail; i < len(body); i++ {
		m.mark(m.whole, &body[i])
	}
	if head < len(body) && tail > 0 {
		m.since = body[tail-1].last
	}
	return append(out, body...)
}

// outside reports whether what n has to meet after stands before the loop.
func (m *nopper) outside(n *oneNode, body oneBlock) bool { return n.after < body[0].first }

// headAndTail are where the first meeting of a body stands, and what follows the last
// one; without any, its length and 0.
func headAndTail(body oneBlock) (head, tail int) {
	head = len(body)
	for i := range body {
		if meets(&body[i]) {
			head = min(head, i)
			tail = i + 1
		}
	}
	return head, tail
}

// bodyMeetings inserts the meetings that a body needs by itself, turn after turn.
func (m *nopper) bodyMeetings(body oneBlock) oneBlock {
	out := make(oneBlock, 0, 2*len(body)+1)
	m.body.now++
	since := int32(ir.None)
	for i := range body {
		n := &body[i]
		late := n.after != ir.None && n.after > since && n.after >= body[0].first
		switch {
		case meets(n):
			m.body.now++
		case m.conflicts(m.body, n) || late:
			out = append(out, nopFor(n))
			m.body.now++
		default:
			m.mark(m.body, n)
			out = append(out, *n)
			continue
		}
		if i > 0 {
			since = body[i-1].last
		}
		m.mark(m.body, n)
		out = append(out, *n)
	}
	if head, tail := headAndTail(out); m.wraps(out[tail:], out[:head]) {
		out = append(out, nopFor(&out[len(out)-1]))
	}
	return out
}

// wraps reports whether the end of one turn conflicts with the beginning of the next.
// Ranges that begin at one place don't: each turn works on bytes of its own there.
func (m *nopper) wraps(tail, head oneBlock) bool {
	var late, early []oneAccess
	for i := range tail {
		late = m.space.accesses(late, tail[i].kind, tail[i].src, tail[i].dst)
	}
	for i := range head {
		if m.trace.AutoSync || head[i].ours {
			early = m.space.accesses(early, head[i].kind, head[i].src, head[i].dst)
		}
	}
	for i := range late {
		for k := range early {
			if a, b := &late[i], &early[k]; oneConflict(a, b) && (a.lo != b.lo || a.packets != b.packets) {
				return true
			}
		}
	}
	return false
}
