package sim

import "github.com/mscclsh/mscclsh/ir"

// direct are the rules of protocol Direct. A thread block stands at a step, or at the
// two of an exchange, and its stage says what of it has happened. What moves no bytes
// happens as soon as it may, with the move before it, except arrivals: those are moves,
// and a step can wait long after its own.
type direct struct{ *Machine }

// The stages of a step, bits of a cell.
const (
	arrived = 1 << iota
	parted  // the own part is done
	parted2 // and that of the second step of an exchange
)

func (m direct) prepare() error {
	if err := m.flatten(); err != nil {
		return err
	}
	return m.start(0)
}

// lasts is the number of steps that t stands at.
func (m direct) lasts(id int32) int32 {
	if m.steps[id].exchange {
		return 2
	}
	return 1
}

// bits are what is known of a step: its thread block may stand at it, at the one before
// it in an exchange, after or before it.
func (m direct) bits(id int32) (bits int32, over bool) {
	t := m.steps[id].tb
	switch at := m.at(t); {
	case at > id:
		return arrived | parted, true
	case at == id:
		return m.cells[m.stage+t] & (arrived | parted), false
	case at == id-1 && m.steps[at].exchange:
		b := m.cells[m.stage+t]
		return b&arrived | b&parted2/parted2*parted, false
	}
	return 0, false
}

func (m direct) has(id, bit int32) bool { b, _ := m.bits(id); return b&bit != 0 }
func (m direct) over(id int32) bool     { _, over := m.bits(id); return over }

// pulled reports whether a step sends and the receiver reads its memory.
func (m direct) pulled(s *step) bool { return s.to != ir.None && m.steps[s.to].kind.Pulls() }

// pushes reports whether a step sends and writes into the receiver's memory.
func (m direct) pushes(s *step) bool { return s.to != ir.None && !m.pulled(s) }

// moves reports whether the own part of a step is to move bytes.
func (m direct) moves(s *step) bool { return s.kind.Pulls() || m.pushes(s) }

// partWaits is what the own part of a step still waits for: a step of the other side,
// and what of it; None if nothing.
func (m direct) partWaits(s *step) (int32, WaitKind) {
	if s.mate != ir.None && !m.has(s.mate, parted) {
		if !m.has(s.mate, arrived) {
			return s.mate, WaitArrival
		}
		return s.mate, WaitBytes
	}
	if m.pushes(s) && !m.has(s.to, arrived) {
		return s.to, WaitArrival
	}
	return ir.None, 0
}

// pending is the first step at id whose own part is to come and may: one that moves
// bytes if moving, else one that doesn't. None if there is none.
func (m direct) pending(t, id int32, moving bool) int32 {
	for i := range m.lasts(id) {
		s := &m.steps[id+i]
		if m.has(id+i, parted) || m.moves(s) != moving {
			continue
		}
		if x, _ := m.partWaits(s); x == ir.None {
			return id + i
		}
	}
	return ir.None
}

// endWaits is whom the end of what stands at id still waits for: a step here whose own
// part is to come, or one elsewhere that reads memory of this one.
func (m direct) endWaits(id int32) int32 {
	for i := range m.lasts(id) {
		if !m.has(id+i, parted) {
			return id + i
		}
	}
	for i := range m.lasts(id) {
		if s := &m.steps[id+i]; m.pulled(s) && !m.over(s.to) {
			return s.to
		}
	}
	return ir.None
}

func (m direct) can(t int32) bool {
	id := m.at(t)
	if m.cells[m.stage+t] == 0 {
		return m.missing(&m.steps[id]) == ir.None
	}
	return m.pending(t, id, true) != ir.None || m.pending(t, id, false) != ir.None || m.endWaits(id) == ir.None
}

func (m direct) action(t int32) action {
	id := m.at(t)
	first := m.tbs[t].first
	if m.cells[m.stage+t] == 0 {
		a := action{step: id - first, kind: MoveArrive, begins: m.lasts(id)}
		if !m.steps[id].communicates() {
			a.kind = MoveWhole
		}
		return a
	}
	if x := m.pending(t, id, true); x != ir.None {
		return action{step: x - first, kind: MoveTransfer}
	}
	return action{step: id - first, kind: MoveEnd}
}

func (m direct) move(t int32) {
	id := m.at(t)
	if s := &m.steps[id]; !s.communicates() {
		for j := range s.count {
			m.set(s.dst+j, m.compute(s, j, 0))
		}
		m.set(m.next+t, id+1)
		return
	}
	if m.cells[m.stage+t] == 0 {
		m.set(m.stage+t, arrived)
	} else if x := m.pending(t, id, true); x != ir.None {
		m.transfer(&m.steps[x])
		m.part(t, x)
	}
	for x := m.pending(t, id, false); x != ir.None; x = m.pending(t, id, false) {
		m.part(t, x)
	}
	if m.endWaits(id) == ir.None {
		m.set(m.stage+t, 0)
		m.set(m.next+t, id+m.lasts(id))
	}
}

// part notes that the own part of a step is done.
func (m direct) part(t, id int32) {
	bit := int32(parted)
	if id != m.at(t) {
		bit = parted2
	}
	m.set(m.stage+t, m.cells[m.stage+t]|bit)
}

// memory is the cell of chunk 0 of what a step offers to be read.
func (s *step) memory() int32 {
	if s.kind == ir.Send {
		return s.src
	}
	return s.dst
}

// transfer moves the bytes of a step: it reads each chunk everywhere before it writes
// it anywhere.
func (m direct) transfer(s *step) {
	from, to := int32(ir.None), int32(ir.None)
	if s.kind.Pulls() {
		from = m.steps[s.mate].memory()
	}
	if m.pushes(s) {
		to = m.steps[s.to].dst
	}
	for j := range s.count {
		if from == ir.None { // what it has, or has got
			m.set(to+j, copied(m.cells[s.memory()+j]))
			continue
		}
		v := m.values.add(m.cells[from+j], m.cells[s.src+j])
		if s.dst != ir.None {
			m.set(s.dst+j, v)
		}
		if to != ir.None {
			m.set(to+j, v)
		}
	}
}

func (m direct) concerned(t int32, f func(int32)) {
	id := m.at(t)
	for i := range m.lasts(id) {
		s := &m.steps[id+i]
		if s.mate != ir.None {
			f(m.steps[s.mate].tb)
		}
		if s.to != ir.None {
			f(m.steps[s.to].tb)
		}
		for _, w := range m.waiters[s.waiting:s.waitingTo] {
			f(w)
		}
	}
}

func (m direct) wait(t int32) Wait {
	id := m.at(t)
	if m.cells[m.stage+t] == 0 {
		d := m.missing(&m.steps[id])
		return m.waitFor(t, WaitStep, d, "tb %d step %d (%v)", m.tbs[m.steps[d].tb].tb, d-m.tbs[m.steps[d].tb].first, m.steps[d].kind)
	}
	for i := range m.lasts(id) {
		s := &m.steps[id+i]
		if m.has(id+i, parted) {
			continue
		}
		x, kind := m.partWaits(s)
		if kind == WaitArrival {
			return m.waitFor(t, kind, x, "%s to arrive", m.name(x))
		}
		return m.waitFor(t, kind, x, "the bytes of %s", m.name(x))
	}
	x := m.endWaits(id)
	return m.waitFor(t, WaitEnd, x, "%s to end, which reads what this one offers", m.name(x))
}
