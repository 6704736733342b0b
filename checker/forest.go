package checker

import "github.com/mscclsh/mscclsh/ir"

// forest keeps one incoming edge of happens-before for every step: its message if
// it receives one, else its last dependency, else the step before it. That is the
// way data usually takes, so most pairs that are ordered through other ranks are
// ordered in the forest already, where asking costs nothing. A no proves nothing.
type forest struct {
	m *model
	// The subtree of step s has the numbers first[s] to first[s]+size[s]-1.
	first, size []int32
}

func newForest(m *model, order []int32) *forest {
	f := &forest{m: m, first: make([]int32, len(m.steps)), size: make([]int32, len(m.steps))}
	for i := len(order) - 1; i >= 0; i-- {
		s := order[i]
		f.size[s]++
		if p := m.mainCause(s); p != ir.None {
			f.size[p] += f.size[s]
		}
	}
	next := make([]int32, len(m.steps)) // first free number in the subtree of a step
	roots := int32(0)
	for _, s := range order {
		at := &roots
		if p := m.mainCause(s); p != ir.None {
			at = &next[p]
		}
		f.first[s] = *at
		*at += f.size[s]
		next[s] = f.first[s] + 1
	}
	return f
}

// mainCause is the one step kept of those that step s comes directly after.
func (m *model) mainCause(s int32) int32 {
	st := &m.steps[s]
	switch {
	case st.mate != ir.None:
		return st.mate
	case st.depEnd > st.depStart:
		return m.deps[st.depEnd-1]
	case s > m.tbs[st.tb].first:
		return s - 1
	}
	return ir.None
}

// nearby is how many steps after a the forest is asked about: what a thread block
// read it often sends a step or two later.
const nearby = 3

// orders reports whether all of a surely comes before all of b.
func (f *forest) orders(p *pair) bool {
	if f.m.flagged {
		return f.ordersPlaces(p)
	}
	if p.shifted { // the path could be one of messages alone
		return false
	}
	for a := p.a; a < min(p.a+nearby, f.m.tbs[f.m.steps[p.a].tb].end); a++ {
		if f.holds(a, p.b) {
			return true
		}
	}
	return false
}

// holds reports whether b is in the subtree of a.
func (f *forest) holds(a, b int32) bool {
	return f.first[a] <= f.first[b] && f.first[b] < f.first[a]+f.size[a]
}
