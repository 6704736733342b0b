package sim

import (
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Where is where all thread blocks stand, by rank and number.
func (m *Machine) Where() []Position {
	out := make([]Position, len(m.tbs))
	for t := range out {
		out[t] = m.position(int32(t))
	}
	return out
}

// WhereIs is where one thread block stands.
func (m *Machine) WhereIs(r ir.Rank, tb int32) (Position, error) {
	t := m.find(r, tb)
	if t == ir.None {
		return Position{}, bad(diag.Pos{}, "no-thread-block", "there is no thread block %d of rank %d", tb, r)
	}
	return m.position(t), nil
}

func (m *Machine) position(t int32) Position {
	b := &m.tbs[t]
	p := Position{At: At{b.rank, b.tb, m.steps32(t)}, Steps: m.steps32(t), Status: Ended, SendPeer: ir.None, RecvPeer: ir.None}
	if m.ended(t) {
		return p
	}
	p.Status = Ready
	if !m.isReady(t) {
		w := m.rules.wait(t)
		p.Status, p.Wait = Waiting, &w
	}
	if o, ok := m.rules.(*oneSided); ok {
		o.describe(t, &p)
		return p
	}
	id := m.at(t)
	st := m.irStep(id)
	p.At.Step = id - b.first
	p.Text, p.Pos = m.p.StepString(b.rank, b.tb, p.At.Step), m.p.Pos(st.Pos)
	p.SendPeer, p.RecvPeer = st.SendPeer, st.RecvPeer
	switch {
	case m.p.Direct():
		p.Arrived = m.cells[m.stage+t] != 0
	case m.steps[id].communicates():
		p.Message, p.Messages = m.cells[m.stage+t], ir.Messages(st.Count, m.k)
	}
	return p
}

// Blocked is every thread block that waits, and for what, by rank and number.
func (m *Machine) Blocked() []Wait {
	var out []Wait
	for t := range m.tbs {
		if !m.ended(int32(t)) && !m.isReady(int32(t)) {
			out = append(out, m.rules.wait(int32(t)))
		}
	}
	return out
}

// Cycle is a circle of thread blocks that wait for one another, each for the next and
// the last for the first, beginning with the lowest; nil if there is none. Such a
// circle never moves again, even while others still can. In a one-sided program, where
// several may do what one waits for, there is none before nothing can move.
func (m *Machine) Cycle() []Wait {
	if m.p.OneSided != nil && m.nReady > 0 {
		return nil
	}
	const unseen, open, closed = 0, 1, 2
	state := make([]uint8, len(m.tbs))
	for t := range m.tbs {
		var path []int32
		at := int32(t)
		for at != ir.None && state[at] == unseen && !m.ended(at) && !m.isReady(at) {
			state[at] = open
			path = append(path, at)
			w := m.rules.wait(at)
			if at = ir.None; !w.None {
				at = m.find(w.For.Rank, w.For.TB)
			}
		}
		if at != ir.None && state[at] == open {
			return m.circle(path[slices.Index(path, at):])
		}
		for _, x := range path {
			state[x] = closed
		}
	}
	return nil
}

func (m *Machine) circle(tbs []int32) []Wait {
	first := slices.Index(tbs, slices.Min(tbs))
	var out []Wait
	for i := range tbs {
		out = append(out, m.rules.wait(tbs[(first+i)%len(tbs)]))
	}
	return out
}

// Slots are the messages that were sent and not taken, by connection in the order of
// source, destination and channel.
func (m *Machine) Slots() []Slot {
	var out []Slot
	if m.slots == 0 {
		return nil
	}
	order := make([]int32, len(m.conns))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return compareConns(m.conns[a].name, m.conns[b].name) })
	for _, k := range order {
		c := &m.conns[k]
		for n := m.cells[m.takenCell(k)]; n < m.cells[m.sentCell(k)]; n++ {
			from := m.stepOf(c.sends, n, (*step).firstOut)
			to := m.steps[from].to
			s := Slot{Conn: c.name, Number: n, Depth: m.slots, From: m.place(c.sender, from), To: m.place(c.receiver, to)}
			first := (n - m.steps[from].outFirst) * m.k
			for j := range min(m.k, m.steps[from].count-first) {
				s.Chunks = append(s.Chunks, m.content(m.cells[c.slot(n)+j]))
			}
			out = append(out, s)
		}
	}
	return out
}

func compareConns(a, b Conn) int {
	for _, d := range [...]int{int(a.Src) - int(b.Src), int(a.Dst) - int(b.Dst), int(a.Chan) - int(b.Chan)} {
		if d != 0 {
			return d
		}
	}
	return 0
}

// Signals are the signals that were given and not waited for, and the semaphores that
// are not 0, of a one-sided program.
func (m *Machine) Signals() []Signal {
	if o, ok := m.rules.(*oneSided); ok {
		return o.signals()
	}
	return nil
}
