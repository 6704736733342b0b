package compiler

import (
	"github.com/mscclsh/mscclsh/ir"
)

// shiftedLoops finds loops of which one turn meets others: operations, of whatever rank,
// that touch memory at different places of their ranges, so that what one does in a
// turn the other does in another one. In all other loops each turn works on bytes of
// its own, and order within a turn is enough.
func (s *oneState) shiftedLoops() []bool {
	t := s.trace
	shifted := make([]bool, len(t.Loops))
	if len(t.Loops) == 0 {
		return shifted
	}
	type first struct {
		loop, lo       int32
		packets, wrote bool
	}
	cells := make([]first, s.space.size)
	var list []oneAccess
	for i := range t.Ops {
		op := &t.Ops[i]
		if op.Loop == ir.None || shifted[op.Loop] {
			continue
		}
		list = s.space.accesses(list[:0], op.Kind, t.Sources(op), t.Destinations(op))
		for k := range list {
			a := &list[k]
			for l := a.lo; l < a.hi; l++ {
				c := &cells[l]
				if c.loop != op.Loop+1 {
					*c = first{op.Loop + 1, a.lo, a.packets, a.write}
					continue
				}
				differs := c.lo != a.lo || c.packets != a.packets
				shifted[op.Loop] = shifted[op.Loop] || differs && (c.wrote || a.write)
				c.wrote = c.wrote || a.write
			}
		}
	}
	return shifted
}

// wholeLoops finds loops whose operations on a rank stay in one thread block if the
// compiler chooses it: those in which something may be in order only because one turn
// follows another. In all others every operation works on one chunk, a part of it a
// turn, and on no part twice, so that nothing else is touched in a later turn that wasn't in
// the first. (Where an operation on several chunks comes to the later ones in later turns, and
// only signals of the turns before order it with something outside of the loop, that order is
// not found here; the checker says so.)
func (s *oneState) wholeLoops() []bool {
	t := s.trace
	whole := append([]bool(nil), s.shifted...)
	for i := range t.Loops {
		whole[i] = whole[i] || t.Loops[i].Chunks > 1
	}
	for i := range t.Ops {
		op := &t.Ops[i]
		for _, list := range [...][]ir.Operand{t.Sources(op), t.Destinations(op)} {
			for _, a := range list {
				if op.Loop != ir.None && a.Size > 1 {
					whole[op.Loop] = true
				}
			}
		}
	}
	return whole
}

// oneLoopOps bounds how many operations of a rank in a loop are compared all with all.
const oneLoopOps = 1024

// turns pairs all conflicting operations of one rank in a loop whose turns meet: from turn
// to turn, order between neighbors doesn't make one between others.
func (s *oneState) turns(shifted []bool) {
	t := s.trace
	known := map[onePair]bool{}
	for _, p := range s.pairs {
		known[p] = true
	}
	for _, ops := range opsOfRanks(t) {
		for from := 0; from < len(ops); {
			loop, to := t.Ops[ops[from]].Loop, from+1
			for to < len(ops) && t.Ops[ops[to]].Loop == loop {
				to++
			}
			if loop != ir.None && shifted[loop] && to-from <= oneLoopOps {
				s.allPairs(ops[from:to], known)
			}
			from = to
		}
	}
}

func (s *oneState) allPairs(ops []int32, known map[onePair]bool) {
	t := s.trace
	lists := make([][]oneAccess, len(ops))
	for i, v := range ops {
		op := &t.Ops[v]
		lists[i] = s.space.accesses(nil, op.Kind, t.Sources(op), t.Destinations(op))
	}
	for i := range ops {
		for k := range i {
			p := onePair{a: ops[k], b: ops[i]}
			if !known[p] && anyConflict(lists[k], lists[i]) &&
				(s.apart(p.a, p.b) || oneCarried(&t.Ops[p.a]) || oneCarried(&t.Ops[p.b])) {
				s.pairs = append(s.pairs, p)
			}
		}
	}
}

func anyConflict(a, b []oneAccess) bool {
	for i := range a {
		for k := range b {
			if oneConflict(&a[i], &b[k]) {
				return true
			}
		}
	}
	return false
}
