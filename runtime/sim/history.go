package sim

import (
	"context"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// history is the moves that were made or taken back, and where the machine stands
// among them.
type history struct {
	moves   []made
	changes []change
	now     int // moves made
	changed int // changes of these
}

// made is a move: whose, and how many cells it changed.
type made struct {
	tb, changes int32
}

// change is a cell, and what was in it before the move if the move is made, or what
// is in it after the move if the move is taken back.
type change struct {
	cell, value int32
}

// set changes a cell as part of the move under way.
func (m *Machine) set(cell, value int32) {
	old := m.cells[cell]
	if old == value {
		return
	}
	m.changes = append(m.changes, change{cell, old})
	m.cells[cell] = value
}

// Moves is the number of moves made.
func (m *Machine) Moves() int { return m.now }

// Recorded is the number of moves that are known: those made and those taken back.
func (m *Machine) Recorded() int { return len(m.moves) }

// pick is whose move is next: as it was the first time, or by the schedule. It is
// None when nothing can move.
func (m *Machine) pick() int32 {
	switch {
	case m.now < len(m.moves):
		return m.moves[m.now].tb
	case m.nReady == 0:
		return ir.None
	case m.seed != 0:
		return m.nth(int(mix(m.seed, uint64(m.now)) % uint64(m.nReady)))
	case m.now == 0 || int(m.moves[m.now-1].tb)+1 == len(m.tbs):
		return m.following(0)
	}
	return m.following(m.moves[m.now-1].tb + 1)
}

// mix is a number drawn by a seed for a move (splitmix64): it depends on nothing
// else, so that going back and forth changes no draw.
func mix(seed, n uint64) uint64 {
	z := seed*0xd1342543de82ef95 + n*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// advance makes the move of thread block t, which can move.
func (m *Machine) advance(t int32) {
	m.surround(t)
	if m.now < len(m.moves) && m.moves[m.now].tb == t {
		m.redo()
	} else {
		m.moves, m.changes = m.moves[:m.now], m.changes[:m.changed]
		m.rules.move(t)
		m.moves = append(m.moves, made{t, int32(len(m.changes) - m.changed)})
		m.changed = len(m.changes)
	}
	m.now++
	m.settle()
}

// redo makes a move again that was taken back.
func (m *Machine) redo() {
	n := int(m.moves[m.now].changes)
	for i := m.changed; i < m.changed+n; i++ {
		c := &m.changes[i]
		m.cells[c.cell], c.value = c.value, m.cells[c.cell]
	}
	m.changed += n
}

// undo takes the last move back.
func (m *Machine) undo() int32 {
	m.now--
	n := int(m.moves[m.now].changes)
	for i := m.changed - 1; i >= m.changed-n; i-- {
		c := &m.changes[i]
		m.cells[c.cell], c.value = c.value, m.cells[c.cell]
	}
	m.changed -= n
	t := m.moves[m.now].tb
	m.surround(t)
	m.settle()
	return t
}

// surround notes whom the move of t concerns, which stands before it.
func (m *Machine) surround(t int32) {
	m.around = append(m.around[:0], t)
	m.rules.concerned(t, func(u int32) {
		if u != ir.None {
			m.around = append(m.around, u)
		}
	})
}

func (m *Machine) settle() {
	for _, t := range m.around {
		m.refresh(t)
	}
}

// Step makes one move of the schedule, or the one that was taken back; false when
// nothing can move.
func (m *Machine) Step() (Move, bool) {
	t := m.pick()
	if t == ir.None {
		return Move{}, false
	}
	return m.describedMove(t), true
}

// StepThread makes one move of a thread block. It is an error if that one has ended
// or has to wait; the message says for what.
func (m *Machine) StepThread(r ir.Rank, tb int32) (Move, error) {
	t := m.find(r, tb)
	switch {
	case t == ir.None:
		return Move{}, bad(diag.Pos{}, "no-thread-block", "there is no thread block %d of rank %d", tb, r)
	case m.ended(t):
		return Move{}, bad(diag.Pos{}, "ended", "rank %d tb %d has ended", r, tb)
	case !m.isReady(t):
		w := m.rules.wait(t)
		return Move{}, bad(m.position(t).Pos, "waits", "%s waits for %s", w.Who, w.Text)
	}
	return m.describedMove(t), nil
}

// describedMove makes a move and tells what it was.
func (m *Machine) describedMove(t int32) Move {
	mv := m.announce(t)
	before := m.at(t)
	m.advance(t)
	mv.Ends = m.at(t) != before
	mv.Writes = m.writes(m.changes[m.changed-int(m.moves[m.now-1].changes):m.changed], false)
	return mv
}

// announce is the move that t is about to make, without what it writes.
func (m *Machine) announce(t int32) Move {
	a := m.rules.action(t)
	b := &m.tbs[t]
	return Move{Number: m.now, At: At{b.rank, b.tb, a.step}, Kind: a.kind, Message: a.message}
}

// Back takes the last move back and tells what it had been; false at the start.
func (m *Machine) Back() (Move, bool) {
	if m.now == 0 {
		return Move{}, false
	}
	t := m.moves[m.now-1].tb
	after := m.at(t)
	m.undo()
	mv := m.announce(t)
	mv.Ends = m.at(t) != after
	mv.Writes = m.writes(m.changes[m.changed:m.changed+int(m.moves[m.now].changes)], true)
	return mv, true
}

// Last is the move made last; false at the start.
func (m *Machine) Last() (Move, bool) {
	mv, ok := m.Back()
	if ok {
		m.advance(m.moves[m.now].tb)
	}
	return mv, ok
}

// At goes to where n moves are made, from before or after. It is an error if nothing
// can move before; the machine then stands there.
func (m *Machine) At(ctx context.Context, n int) error {
	if n < 0 {
		return bad(diag.Pos{}, "no-move", "there is no move %d", n)
	}
	for i := 0; m.now != n; i++ {
		if i&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if m.now > n {
			m.undo()
			continue
		}
		t := m.pick()
		if t == ir.None {
			return bad(diag.Pos{}, "no-move", "there is no move %d: %s after %d", n, m.endWord(), m.now)
		}
		m.advance(t)
	}
	return nil
}

func (m *Machine) endWord() string {
	if m.Done() {
		return "the program has ended"
	}
	return "nothing can move"
}
