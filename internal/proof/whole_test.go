package proof

import "slices"

// whole is what an unreduced search finds: every state that can be reached, one
// by one.
type whole struct {
	ends     map[string][]int32
	stuck    int
	adjacent bool // in some state two moves that conflict can both be made
	complete bool
}

// exploreAll visits every state of values and positions with that many slots a
// connection, up to a limit.
func exploreAll(m *machine, v *values, slots int32, limit int) whole {
	w := whole{ends: map[string][]int32{}, complete: true}
	seen := map[string]bool{}
	s := m.start()
	var visit func()
	visit = func() {
		key := keyOf(append([][]int32{s.at, s.mem, s.held}, s.sent...)...)
		if seen[key] || !w.complete {
			return
		}
		seen[key] = true
		w.complete = len(seen) < limit
		var can []int
		for l := range m.lines {
			if m.enabled(s, l, slots) {
				can = append(can, l)
			}
		}
		if len(can) == 0 {
			if w.ends[keyOf(s.mem)] = append([]int32(nil), s.mem...); !m.over(s) {
				w.stuck++
			}
			return
		}
		for i, l := range can {
			for _, o := range can[:i] {
				w.adjacent = w.adjacent || conflict(m.next(s, l), m.next(s, o))
			}
		}
		for _, l := range can {
			u := m.apply(s, l, v)
			visit()
			m.undo(s, l, u)
		}
	}
	visit()
	return w
}

// stuckSomewhere visits every position that can be reached with that many slots,
// up to a limit, and reports whether one is a dead end. Values don't matter here.
func stuckSomewhere(m *machine, slots int32, limit int) (stuck, complete bool) {
	seen := map[string]bool{}
	s := m.start()
	todo := []*state{{at: s.at, put: s.put, got: s.got}}
	seen[keyOf(s.at)] = true // positions say how many messages came and went
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		moved := false
		for l := range m.lines {
			if !m.enabled(p, l, slots) {
				continue
			}
			moved = true
			p.at[l]++
			key := keyOf(p.at)
			p.at[l]--
			if !seen[key] {
				seen[key] = true
				next := &state{at: slices.Clone(p.at), put: slices.Clone(p.put), got: slices.Clone(p.got)}
				m.step(next, l)
				todo = append(todo, next)
			}
		}
		if stuck = stuck || !moved && !m.over(p); len(seen) > limit {
			return stuck, false
		}
	}
	return stuck, true
}
