package checker

import "github.com/mscclsh/mscclsh/ir"

// liveness says what of a run can be observed: which values end in an output of
// which something is demanded, or in an input that must be left alone.
type liveness struct {
	m *model
	// Of a chunk touched by a step: whether the value it makes can be observed at
	// all, and whether by way of the location it writes.
	value, stored []bool
}

// findLive goes through a run backward.
func findLive(m *model, order []int32) *liveness {
	l := &liveness{m: m, value: make([]bool, m.touched), stored: make([]bool, m.touched)}
	now := make([]bool, m.nLocs) // whether a location's content is observed later
	l.observable(now)
	for i := len(order) - 1; i >= 0; i-- {
		s := &m.steps[order[i]]
		for j := s.count - 1; j >= 0; j-- {
			c := s.off + j
			if s.dst != ir.None {
				l.stored[c] = now[s.dst+j]
				now[s.dst+j] = false
			}
			// A later receive has left its mark in value if what is sent matters.
			if l.value[c] = l.value[c] || l.stored[c]; !l.value[c] {
				continue
			}
			if s.src != ir.None {
				now[s.src+j] = true
			}
			if s.kind.ReadsDst() {
				now[s.dst+j] = true
			}
			if s.mate != ir.None {
				l.value[m.steps[s.mate].off+j] = true
			}
		}
	}
	return l
}

// observable marks the locations whose final content matters.
func (l *liveness) observable(now []bool) {
	m := l.m
	c := m.p.Coll
	var want []ir.Contribution
	for r := range m.ranks {
		rank := ir.Rank(r)
		for i := range m.ranks[r].output {
			demanded := c.Kind == ir.AllReduce || c.Kind == ir.Custom && c.Custom.Open
			if !demanded {
				want, demanded = c.Expect(want[:0], rank, i)
			}
			if demanded {
				now[m.loc(rank, ir.Place{Buf: ir.Output, Index: i})] = true
			}
		}
		for i := range m.ranks[r].input {
			if !c.InPlace {
				now[m.loc(rank, ir.Place{Buf: ir.Input, Index: i})] = true
			}
		}
	}
}

// classify splits races into those that can change what is observed and others.
func classify(races []pair, harmful func(*pair) bool) (bad, dead []pair) {
	for _, p := range races {
		if harmful(&p) {
			bad = append(bad, p)
		} else {
			dead = append(dead, p)
		}
	}
	return bad, dead
}

// harmful reports whether a race matters. A read and a write: if the value read
// can be observed. Two writes: if what the later one stored can be observed; if
// only the earlier's can, through a read between them, then that read is
// unordered with the later write too, and reported for itself.
//
// A copy onto itself that races with a write is asked about as a read, but what it
// can do is undo the write: that matters if what the write stored can be observed,
// whichever of them comes first in the order.
func (l *liveness) harmful(p *pair) bool {
	aUndoes, bUndoes := l.m.steps[p.a].ontoItself(), l.m.steps[p.b].ontoItself()
	for loc := p.lo; loc < p.hi; loc++ {
		var matters bool
		switch {
		case bUndoes:
			matters = l.stored[l.chunk(p.a, loc, true)]
		case p.bWrites && (p.aWrites || aUndoes):
			matters = l.stored[l.chunk(p.b, loc, true)]
		case p.bWrites:
			matters = l.value[l.chunk(p.a, loc, false)]
		default:
			matters = l.value[l.chunk(p.b, loc, false)]
		}
		if matters {
			return true
		}
	}
	return false
}

func (l *liveness) chunk(id, loc int32, write bool) int32 {
	return l.m.steps[id].off + l.m.chunkAt(id, loc, write)
}
