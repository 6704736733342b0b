package proof

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// exploration is what the explorer says of a program.
type exploration struct {
	verdict
	complete bool // every interleaving that matters was tried
	differs  bool // interleavings end with different memories
	sampled  bool // more positions with real slots than were visited: one schedule decided
	moves    int  // of the program, 0 if its structure is wrong
	// safeRegime is the least number of chunks in a message with which the program
	// runs with its own slots, 0 if there is none.
	safeRegime int32
}

// effort bounds an exploration.
type effort struct{ runs, positions int }

// explore judges a small program by running it in every way that matters. What a
// race decides is found by tearing: a racing read gives a torn value, and of two
// racing writes the later leaves one. A race is an error iff a torn value can be
// observed; in which order things happen then makes no difference.
func explore(p *ir.Program, most effort) (exploration, error) {
	e := exploration{complete: true}
	if e.errors = brokenRules(p); e.errors != 0 {
		return e, nil
	}
	m := finest(p)
	e.moves = m.total()
	if newMachine(p, 1).runs(unlimited) != m.runs(unlimited) {
		return e, oracleError("whole messages end: %v, their places don't", !m.runs(unlimited))
	}
	v := newValues(m.cells)
	x := newSearch(m, v, most.runs)
	x.visit(0)
	e.complete, e.differs = x.complete(), len(x.ends) > 1
	if x.stuck > 0 {
		if e.errors = deadlock; x.stuck != x.runs {
			return e, oracleError("%d of %d runs get stuck with endless slots", x.stuck, x.runs)
		}
		return e, nil
	}
	if err := e.slots(p, most.positions); err != nil {
		return e, err
	}
	t := tear(m)
	if len(t.rival) > 0 != x.races {
		return e, oracleError("%d racing moves by clocks, but meeting in a run: %v", len(t.rival), x.races)
	}
	demands := m.demands()
	for _, d := range demands {
		if t.mem[d.cell] {
			e.errors |= race
		}
	}
	e.deadRace = x.races && e.errors&race == 0
	results := map[classes]bool{}
	for _, mem := range x.ends {
		c := wrong(demands, v, mem)
		results[c] = true
		e.errors |= c
	}
	if e.errors&race == 0 && len(results) > 1 {
		return e, oracleError("no race can be observed, but results differ: %v", results)
	}
	return e, nil
}

// slots finds out about deadlocks for want of slots, at every regime.
func (e *exploration) slots(p *ir.Program, positions int) error {
	e.minSlots = 1
	for _, k := range regimes(p) {
		m := newMachine(p, k)
		for !m.runs(e.minSlots) {
			e.minSlots++
		}
		runs := m.runs(p.Transport.Slots)
		switch {
		case !runs:
			e.errors |= deadlock
			if e.safeRegime > 0 {
				return oracleError("%d chunks in a message run, %d don't", e.safeRegime, k)
			}
		case e.safeRegime == 0:
			e.safeRegime = k
		}
		stuck, complete := stuckSomewhere(m, p.Transport.Slots, positions)
		e.sampled = e.sampled || !complete
		if complete && stuck == runs || stuck && runs {
			return oracleError("with %d slots one schedule ends: %v, another gets stuck: %v", p.Transport.Slots, runs, stuck)
		}
	}
	return nil
}

// safeMaxBytes is the largest size of the window at which the program runs, by
// trying them all: 0 if it runs at every one, -1 if at none.
func safeMaxBytes(p *ir.Program) int64 {
	n := max(p.Coll.NumChunks(), 1)
	most := p.MaxBytes
	if most == 0 {
		most = 2 * p.Transport.SlotBytes * int64(n) // beyond, nothing changes
	}
	runs := map[int32]bool{}
	safe, all := int64(-1), true
	for size := min(max(p.MinBytes, 1), most); size <= most; size++ {
		k := p.Transport.Regime(size, n)
		if _, known := runs[k]; !known {
			runs[k] = newMachine(p, k).runs(p.Transport.Slots)
		}
		if runs[k] {
			safe = size
		} else {
			all = false
		}
	}
	if all {
		return 0
	}
	return safe
}

// torn is a run with torn values, and the moves that each move races with.
type torn struct {
	m     *machine
	rival map[event][]event
	mem   []bool // of a location: whether a race can decide what it holds
}

// tear runs the program once with clocks of synchronization alone, finds all
// pairs of conflicting moves in no order, and runs it again with torn values.
func tear(m *machine) *torn {
	t := &torn{m: m, rival: map[event][]event{}, mem: make([]bool, m.cells)}
	var order []event
	var clocks []clock
	of := make([][]clock, len(m.lines))
	mail := make([][]clock, m.conns)
	s := m.start()
	for moved := true; moved; {
		moved = false
		for l := range m.lines {
			if !m.enabled(s, l, unlimited) {
				continue
			}
			moved = true
			mv := m.next(s, l)
			c := make(clock, len(m.lines))
			if s.at[l] > 0 {
				c.join(of[l][s.at[l]-1])
			}
			if mv.in != none {
				c.join(mail[mv.in][s.got[mv.in]])
			}
			for _, n := range mv.needs {
				c.join(of[n.line][n.moves-1])
			}
			c[l] = s.at[l] + 1
			of[l] = append(of[l], c)
			if mv.out != none {
				mail[mv.out] = append(mail[mv.out], c)
			}
			e := event{line: int32(l), move: s.at[l]}
			for i, f := range order {
				if !c.knows(f) && !clocks[i].knows(e) && conflict(m.at(f), mv) {
					t.rival[f], t.rival[e] = append(t.rival[f], e), append(t.rival[e], f)
				}
			}
			order, clocks = append(order, e), append(clocks, c)
			m.step(s, l)
		}
	}
	if len(t.rival) > 0 {
		t.run(order)
	}
	return t
}

func (m *machine) at(e event) *move { return &m.lines[e.line][e.move] }

// run goes through the moves in an order they can happen in.
func (t *torn) run(order []event) {
	mail := make([][]bool, t.m.conns)
	held := make([]bool, len(t.m.lines))
	done := map[event]bool{}
	for _, e := range order {
		done[e] = true
		mv := t.m.at(e)
		if mv.itself {
			continue // changes nothing, unless a write comes meanwhile
		}
		for i := range mv.n {
			value := mv.resumes && held[e.line]
			if mv.in != none {
				value = value || mail[mv.in][0]
				mail[mv.in] = mail[mv.in][1:]
			}
			if mv.src != none {
				value = value || t.mem[mv.src+i] || t.readRaces(e, mv.src+i)
			}
			if mv.adds {
				value = value || t.mem[mv.dst+i] || t.readRaces(e, mv.dst+i)
			}
			if mv.out != none {
				mail[mv.out] = append(mail[mv.out], value)
			}
			if mv.dst != none {
				t.mem[mv.dst+i] = value || t.writeRaces(e, mv.dst+i, done)
			}
			held[e.line] = value
		}
	}
}

// readRaces reports whether a rival writes what e reads.
func (t *torn) readRaces(e event, cell int32) bool {
	return slices.ContainsFunc(t.rival[e], func(f event) bool { return t.m.at(f).writes(cell) })
}

// writeRaces reports whether a rival has written already what e writes. A copy onto
// itself may undo a write whether it begins or ends before it: all who read what e
// wrote are in no order with the copy either.
func (t *torn) writeRaces(e event, cell int32, done map[event]bool) bool {
	return slices.ContainsFunc(t.rival[e], func(f event) bool {
		mv := t.m.at(f)
		return done[f] && mv.writes(cell) || mv.itself && mv.covers(cell)
	})
}
