package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// ParseBreak reads a breakpoint as users write it: rank:tb:step, each a number or *,
// with those at the end left out standing for *.
func ParseBreak(text string) (Break, error) {
	b := Break{None, None, None}
	words := strings.Split(text, ":")
	if len(words) > 3 {
		return b, fmt.Errorf("breakpoint: got %q, want rank:tb:step", text)
	}
	for i, w := range words {
		if w == "*" {
			continue
		}
		n, err := strconv.ParseInt(w, 10, 32)
		if err != nil || n < 0 {
			return b, fmt.Errorf("breakpoint: got %q in %q, want a number or *", w, text)
		}
		switch i {
		case 0:
			b.Rank = ir.Rank(n)
		case 1:
			b.TB = int32(n)
		default:
			b.Step = int32(n)
		}
	}
	return b, nil
}

// String is the breakpoint as ParseBreak reads it.
func (b Break) String() string {
	word := func(n int32) string {
		if n == None {
			return "*"
		}
		return strconv.Itoa(int(n))
	}
	return word(int32(b.Rank)) + ":" + word(b.TB) + ":" + word(b.Step)
}

func (b Break) matches(a At) bool {
	return (b.Rank == None || b.Rank == a.Rank) && (b.TB == None || b.TB == a.TB) && (b.Step == None || b.Step == a.Step)
}

// Check is an error for a breakpoint at which the program never comes by, because it
// has no such rank, thread block or step.
func (m *Machine) Check(b Break) error {
	for t := range m.tbs {
		x := &m.tbs[t]
		if b.matches(At{x.rank, x.tb, b.Step}) && (b.Step == None || b.Step < m.steps32(int32(t))) {
			return nil
		}
	}
	return bad(diag.Pos{}, "no-step", "the program has no step %s", b)
}

// steps32 is the number of steps of thread block t, as At counts.
func (m *Machine) steps32(t int32) int32 {
	if o, ok := m.rules.(*oneSided); ok {
		return o.count(t)
	}
	return m.tbs[t].end - m.tbs[t].first
}

// runner is a run under way: its conditions as cells.
type runner struct {
	m       *Machine
	u       Until
	changes []int32
	before  []int32 // of changes
	finals  []int32
}

func (m *Machine) newRunner(u Until) (*runner, error) {
	r := &runner{m: m, u: u}
	for _, b := range u.Breaks {
		if err := m.Check(b); err != nil {
			return nil, err
		}
	}
	for _, l := range u.Changes {
		cell, err := m.cellOf(l)
		if err != nil {
			return nil, err
		}
		r.changes = append(r.changes, cell)
		r.before = append(r.before, m.cells[cell])
	}
	for _, l := range u.Finals {
		cell, err := m.cellOf(l)
		if err != nil {
			return nil, err
		}
		if demanded, _ := m.final(cell); !demanded {
			return nil, bad(diag.Pos{}, "no-demand", "nothing is demanded of %s, so it has no final value", locName(l))
		}
		r.finals = append(r.finals, cell)
	}
	return r, nil
}

// atBreak is the first breakpoint among the steps that the move of t begins.
func (r *runner) atBreak(t int32) (At, bool) {
	if len(r.u.Breaks) == 0 {
		return At{}, false
	}
	a := r.m.rules.action(t)
	b := &r.m.tbs[t]
	for i := range a.begins {
		at := At{b.rank, b.tb, a.step + i}
		for _, x := range r.u.Breaks {
			if x.matches(at) {
				return at, true
			}
		}
	}
	return At{}, false
}

// changed is the first watched location that holds something else than at first.
func (r *runner) changed() (ir.Loc, bool) {
	for i, cell := range r.changes {
		if now := r.m.cells[cell]; now != r.before[i] && !same(r.m.content(now), r.m.content(r.before[i])) {
			return r.u.Changes[i], true
		}
	}
	return ir.Loc{}, false
}

func (r *runner) final() (ir.Loc, bool) {
	for i, cell := range r.finals {
		if _, good := r.m.final(cell); good {
			return r.u.Finals[i], true
		}
	}
	return ir.Loc{}, false
}

// after judges a machine that has just made its n-th move of this run, or taken it
// back.
func (r *runner) after(mv *Move, n int) (Stop, bool) {
	if l, ok := r.changed(); ok {
		return Stop{Why: WhyChanged, Loc: l}, true
	}
	if r.u.When != nil && r.u.When(r.m, mv) {
		return Stop{Why: WhyWhen}, true
	}
	return Stop{Why: WhyMoves}, r.u.Moves > 0 && n >= r.u.Moves
}

// Run makes moves until one of the conditions holds, everything has ended or nothing
// can move. A breakpoint at which the machine stands already doesn't hold it up; a
// location that is final already does. When ctx is done the machine stands where it
// came to.
func (m *Machine) Run(ctx context.Context, u Until) (Stop, error) {
	r, err := m.newRunner(u)
	if err != nil {
		return Stop{}, err
	}
	for n := 0; ; n++ {
		if n&0xfff == 0 && ctx.Err() != nil {
			return Stop{}, ctx.Err()
		}
		if l, ok := r.final(); ok {
			return Stop{Why: WhyFinal, Loc: l}, nil
		}
		t := m.pick()
		if t == ir.None {
			if m.Done() {
				return Stop{Why: WhyDone}, nil
			}
			return Stop{Why: WhyStuck}, nil
		}
		if at, ok := r.atBreak(t); ok && n > 0 {
			return Stop{Why: WhyBreak, At: at}, nil
		}
		var mv Move
		if u.When != nil {
			mv = m.announce(t)
		}
		before := m.at(t)
		m.advance(t)
		mv.Ends = m.at(t) != before
		if s, ok := r.after(&mv, n+1); ok {
			return s, nil
		}
	}
}

// RunBack takes moves back until one of the conditions holds or the start is reached. At
// a breakpoint it stops before the first move of the step.
func (m *Machine) RunBack(ctx context.Context, u Until) (Stop, error) {
	r, err := m.newRunner(u)
	if err != nil {
		return Stop{}, err
	}
	for n := 0; m.now > 0; n++ {
		if n&0xfff == 0 && ctx.Err() != nil {
			return Stop{}, ctx.Err()
		}
		after := m.at(m.moves[m.now-1].tb)
		t := m.undo()
		if at, ok := r.atBreak(t); ok {
			return Stop{Why: WhyBreak, At: at}, nil
		}
		var mv Move
		if u.When != nil {
			mv = m.announce(t)
		}
		mv.Ends = m.at(t) != after
		if s, ok := r.after(&mv, n+1); ok {
			return s, nil
		}
	}
	return Stop{Why: WhyDone}, nil
}
