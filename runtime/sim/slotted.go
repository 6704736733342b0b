package sim

import (
	"fmt"

	"github.com/mscclsh/mscclsh/ir"
)

// slotted are the rules of Simple, LL and LL128. After the thread blocks come, for
// every connection, the messages sent and taken, and then the slots, each with as
// many chunks as the connection's largest message has. A taken message stays in its
// slot until another one overwrites it.
type slotted struct{ *Machine }

func (m slotted) prepare() error {
	if err := m.flatten(); err != nil {
		return err
	}
	more := 2 * int64(len(m.conns))
	at := int64(m.nLocs) + 2*int64(len(m.tbs)) + more
	for i := range m.conns {
		c := &m.conns[i]
		c.ring = int32(min(at, maxCells))
		at += int64(c.depth) * int64(c.width)
		more += int64(c.depth) * int64(c.width)
	}
	return m.start(more)
}

func (m *Machine) sentCell(c int32) int32  { return m.stage + int32(len(m.tbs)) + 2*c }
func (m *Machine) takenCell(c int32) int32 { return m.sentCell(c) + 1 }

// slot is the cell of chunk 0 of message n of a connection.
func (c *conn) slot(n int32) int32 { return c.ring + n%c.depth*c.width }

// moved is the number of messages of its step that t has moved.
func (m slotted) moved(t int32) int32 { return m.cells[m.stage+t] }

func (m slotted) can(t int32) bool {
	s := &m.steps[m.at(t)]
	if m.moved(t) == 0 && m.missing(s) != ir.None {
		return false
	}
	if c := s.in; c != ir.None && m.cells[m.sentCell(c)] == m.cells[m.takenCell(c)] {
		return false
	}
	return s.out == ir.None || !m.full(s.out)
}

func (m slotted) full(c int32) bool {
	return m.cells[m.sentCell(c)]-m.cells[m.takenCell(c)] >= m.conns[c].depth
}

// missing is the first step that s depends on and that has not ended, or None.
func (m *Machine) missing(s *step) int32 {
	for _, d := range m.deps[s.depStart:s.depEnd] {
		if m.at(m.steps[d].tb) <= d {
			return d
		}
	}
	return ir.None
}

// communicates reports whether a step is done message by message.
func (s *step) communicates() bool { return s.in != ir.None || s.out != ir.None }

func (m slotted) action(t int32) action {
	id, n := m.at(t), m.moved(t)
	a := action{step: id - m.tbs[t].first, message: n, begins: 1}
	if n > 0 {
		a.begins = 0
	}
	if m.steps[id].communicates() {
		a.kind = MoveMessage
	}
	return a
}

func (m slotted) move(t int32) {
	id := m.at(t)
	s := &m.steps[id]
	n := m.moved(t)
	from, to := int32(0), s.count
	if s.communicates() {
		from = n * m.k
		to = from + min(m.k, s.count-from)
	}
	in, out := int32(0), int32(0)
	if c := s.in; c != ir.None {
		taken := m.cells[m.takenCell(c)]
		in = m.conns[c].slot(taken)
		m.set(m.takenCell(c), taken+1)
	}
	if c := s.out; c != ir.None {
		sent := m.cells[m.sentCell(c)]
		out = m.conns[c].slot(sent)
		m.set(m.sentCell(c), sent+1)
	}
	for j := from; j < to; j++ {
		v := m.compute(s, j, in+j-from)
		if s.dst != ir.None {
			m.set(s.dst+j, v)
		}
		if s.out != ir.None {
			m.set(out+j-from, v)
		}
	}
	if to < s.count {
		m.set(m.stage+t, n+1)
		return
	}
	m.set(m.stage+t, 0)
	m.set(m.next+t, id+1)
}

// compute is what a step makes of chunk j of its places and of what it receives,
// which stands in a cell.
func (m *Machine) compute(s *step, j, in int32) int32 {
	switch s.kind {
	case ir.Send, ir.Copy:
		if s.src == s.dst {
			return m.cells[s.src+j] // a copy onto itself changes nothing
		}
		return copied(m.cells[s.src+j])
	case ir.Recv, ir.RecvCopySend:
		return copied(m.cells[in])
	case ir.Reduce:
		return m.values.add(m.cells[s.src+j], m.cells[s.dst+j])
	}
	return m.values.add(m.cells[in], m.cells[s.src+j])
}

func (m slotted) concerned(t int32, f func(int32)) {
	id := m.at(t)
	s := &m.steps[id]
	if s.in != ir.None {
		f(m.conns[s.in].sender)
	}
	if s.out != ir.None {
		f(m.conns[s.out].receiver)
	}
	for _, w := range m.waiters[s.waiting:s.waitingTo] {
		f(w)
	}
}

func (m slotted) wait(t int32) Wait {
	id := m.at(t)
	s := &m.steps[id]
	if m.moved(t) == 0 {
		if d := m.missing(s); d != ir.None {
			return m.waitFor(t, WaitStep, d, "tb %d step %d (%v)", m.tbs[m.steps[d].tb].tb, d-m.tbs[m.steps[d].tb].first, m.steps[d].kind)
		}
	}
	if c := s.in; c != ir.None && m.cells[m.sentCell(c)] == m.cells[m.takenCell(c)] {
		n := m.cells[m.takenCell(c)]
		x := m.stepOf(m.conns[c].sends, n, (*step).firstOut)
		return m.waitFor(t, WaitMessage, x, "message %d of %d on %s, to be sent by %s",
			n+1, m.conns[c].messages, m.conns[c].name, m.name(x))
	}
	c := s.out
	n := m.cells[m.takenCell(c)]
	x := m.stepOf(m.conns[c].receives, n, (*step).firstIn)
	return m.waitFor(t, WaitSlot, x, "a free slot on %s (%s), to be emptied by %s", m.conns[c].name, full(m.conns[c].depth), m.name(x))
}

func full(depth int32) string {
	if depth == 1 {
		return "1 is full"
	}
	return fmt.Sprintf("all %d are full", depth)
}

func (s *step) firstIn() int32  { return s.inFirst }
func (s *step) firstOut() int32 { return s.outFirst }

// stepOf is the step of one end of a connection that message n belongs to.
func (m *Machine) stepOf(list []int32, n int32, first func(*step) int32) int32 {
	low, high := 0, len(list)
	for high-low > 1 {
		if mid := (low + high) / 2; first(&m.steps[list[mid]]) <= n {
			low = mid
		} else {
			high = mid
		}
	}
	return list[low]
}

// waitFor is a Wait of thread block t for a step.
func (m *Machine) waitFor(t int32, kind WaitKind, x int32, format string, args ...any) Wait {
	u := m.steps[x].tb
	return Wait{Who: m.place(t, m.at(t)), Kind: kind, For: m.place(u, x), Of: m.place(u, m.at(u)), Text: fmt.Sprintf(format, args...)}
}

// place is a step of thread block t; its end has Step None.
func (m *Machine) place(t, id int32) At {
	b := &m.tbs[t]
	if id == b.end {
		return At{b.rank, b.tb, ir.None}
	}
	return At{b.rank, b.tb, id - b.first}
}
