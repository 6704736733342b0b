package sim

import (
	"math/bits"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Machine is a program at some point of its execution.
//
// All that changes is in cells: what the locations hold, then of every thread block
// its next step and how far that step is, then what the kind of program needs. A
// move is a list of cells and what was in them before; going back and forth swaps
// the two. ready follows from cells, and is kept up to date for the thread blocks that
// a move can concern.
type Machine struct {
	p     *ir.Program
	k     int32 // chunks in a message; math.MaxInt32 without slots
	slots int32
	seed  uint64
	rules rules
	ranks []rankPlace
	nLocs int32
	tbs   []block
	steps []step
	conns []conn
	deps  []int32

	waiters []int32 // thread blocks that wait for a step
	values  *values
	judged  map[judgment]bool

	cells []int32
	next  int32 // cell of the first thread block's next step
	stage int32 // cell of how far that is

	history
	ready  []uint64 // a bit a thread block
	nReady int
	around []int32 // thread blocks that the move under way concerns
}

// rules are what a kind of program does.
type rules interface {
	// prepare lays out the cells beyond those that all programs have.
	prepare() error
	// can reports whether a thread block that has not ended can move.
	can(t int32) bool
	// action says what move a thread block that can move makes.
	action(t int32) action
	// move makes it.
	move(t int32)
	// concerned calls f for all thread blocks that the move of t, which stands before
	// it, may let move, or keep from it when it is taken back.
	concerned(t int32, f func(int32))
	// wait says why a thread block that has not ended can't move.
	wait(t int32) Wait
}

// action is a move to be made: what of which step, or of which operation.
type action struct {
	step    int32 // as At counts
	kind    MoveKind
	message int32
	begins  int32 // steps from this one on that begin with it: 0, 1, or 2 for an exchange
}

// New makes a machine that stands before the first move of p.
func New(p *ir.Program, o Options) (*Machine, error) {
	m := &Machine{p: p, seed: o.Seed, judged: map[judgment]bool{}}
	if err := m.frame(); err != nil {
		return nil, err
	}
	if err := m.conditions(o); err != nil {
		return nil, err
	}
	m.values = newValues(p.Coll)
	switch {
	case p.OneSided != nil:
		m.rules = &oneSided{Machine: m, bytes: o.Bytes}
	case p.Direct():
		m.rules = direct{m}
	default:
		m.rules = slotted{m}
	}
	if err := m.rules.prepare(); err != nil {
		return nil, err
	}
	m.ready = make([]uint64, (len(m.tbs)+63)/64)
	for t := range m.tbs {
		m.refresh(int32(t))
	}
	return m, nil
}

// conditions settles the chunks in a message and the slots.
func (m *Machine) conditions(o Options) error {
	t := m.p.Transport
	refuse := func(format string, args ...any) error { return bad(diag.Pos{}, "options", format, args...) }
	switch {
	case o.Regime < 0 || o.Bytes < 0 || o.Slots < 0:
		return refuse("got %d chunks a message, %d bytes and %d slots, want 0 or more", o.Regime, o.Bytes, o.Slots)
	case m.p.OneSided != nil && (o.Regime > 0 || o.Slots > 0):
		return refuse("a one-sided program has no messages and no slots")
	case m.p.OneSided != nil:
		return nil
	case m.p.Direct() && (o.Regime > 0 || o.Slots > 0):
		return refuse("with protocol Direct a message is of any size, and there are no slots")
	case m.p.Direct():
		if t != (ir.Transport{}) {
			return bad(diag.Pos{}, "bad-program", "protocol Direct has no slots, got %d of %d bytes", t.Slots, t.SlotBytes)
		}
		m.k = t.Regime(o.Bytes, m.p.Coll.NumChunks())
		return nil
	case o.Regime > ir.MaxRegime:
		return refuse("got %d chunks a message, want at most %d", o.Regime, ir.MaxRegime)
	case o.Regime > 0 && o.Bytes > 0:
		return refuse("got both a size and the chunks of a message, which follow from it").(*diag.Message).Suggest("give one of them")
	case t.Slots < 1 || t.SlotBytes < 1:
		return bad(diag.Pos{}, "bad-program", "the transport has %d slots of %d bytes, want 1 or more of both", t.Slots, t.SlotBytes)
	}
	m.slots = t.Slots
	if o.Slots > 0 {
		m.slots = o.Slots
	}
	switch n := m.p.Coll.NumChunks(); {
	case o.Regime > 0:
		m.k = o.Regime
	case o.Bytes > 0:
		m.k = t.Regime(o.Bytes, n)
	case m.p.MaxBytes > 0:
		m.k = t.Regime(m.p.MaxBytes, n)
	default:
		m.k = 1
	}
	return nil
}

// start makes the cells that all programs have, and fills the inputs; more are for
// the kind of program.
func (m *Machine) start(more int64) error {
	m.next = m.nLocs
	m.stage = m.next + int32(len(m.tbs))
	total := int64(m.nLocs) + 2*int64(len(m.tbs)) + more
	if total > maxCells {
		return bad(diag.Pos{}, "too-large", "the program needs %d places for chunks, messages and counters, of at most %d", total, maxCells)
	}
	m.cells = make([]int32, total)
	for r := range ir.Rank(m.p.Coll.Ranks) {
		for i := range m.p.Coll.InputChunks(r) {
			if m.p.Coll.Holds(r, i) {
				m.cells[m.loc(r, ir.Input, i)] = m.values.leaf(r, i)
			}
		}
	}
	for t := range m.tbs {
		m.cells[m.next+int32(t)] = m.tbs[t].first
	}
	return nil
}

// Program is the program.
func (m *Machine) Program() *ir.Program { return m.p }

// Regime is the number of chunks in a message; 0 where there are no slots.
func (m *Machine) Regime() int32 {
	if m.slots == 0 {
		return 0
	}
	return m.k
}

// Depth is the number of messages that a connection holds; 0 where there are no slots.
func (m *Machine) Depth() int32 { return m.slots }

// at is the step that thread block t stands at, its end when it has ended.
func (m *Machine) at(t int32) int32 { return m.cells[m.next+t] }

func (m *Machine) ended(t int32) bool { return m.at(t) == m.tbs[t].end }

// refresh finds out whether thread block t can move.
func (m *Machine) refresh(t int32) {
	can := !m.ended(t) && m.rules.can(t)
	word, bit := &m.ready[t/64], uint64(1)<<(t%64)
	if is := *word&bit != 0; is != can {
		*word ^= bit
		if can {
			m.nReady++
		} else {
			m.nReady--
		}
	}
}

func (m *Machine) isReady(t int32) bool { return m.ready[t/64]>>(t%64)&1 != 0 }

// following is the first thread block from t on, around the end, that can move.
// There must be one.
func (m *Machine) following(t int32) int32 {
	w := int(t / 64)
	if rest := m.ready[w] >> (t % 64); rest != 0 {
		return t + int32(bits.TrailingZeros64(rest))
	}
	for {
		if w++; w == len(m.ready) {
			w = 0
		}
		if m.ready[w] != 0 {
			return int32(w*64 + bits.TrailingZeros64(m.ready[w]))
		}
	}
}

// nth is the n-th thread block that can move, from 0.
func (m *Machine) nth(n int) int32 {
	for w, word := range m.ready {
		if k := bits.OnesCount64(word); n >= k {
			n -= k
			continue
		}
		for ; n > 0; n-- {
			word &= word - 1
		}
		return int32(w*64 + bits.TrailingZeros64(word))
	}
	return ir.None
}

// find is the number of a thread block, None if there is none.
func (m *Machine) find(r ir.Rank, tb int32) int32 {
	if r < 0 || int(r) >= len(m.ranks) || tb < 0 || tb >= m.ranks[r].endTB-m.ranks[r].firstTB {
		return ir.None
	}
	return m.ranks[r].firstTB + tb
}

// Done reports whether every thread block has ended.
func (m *Machine) Done() bool {
	if m.nReady > 0 {
		return false
	}
	for t := range m.tbs {
		if !m.ended(int32(t)) {
			return false
		}
	}
	return true
}

// Stuck reports whether nothing can move though not every thread block has ended.
func (m *Machine) Stuck() bool { return m.nReady == 0 && !m.Done() }
