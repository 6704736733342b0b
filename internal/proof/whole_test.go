package proof

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
		key := keyOf(append([][]int32{s.at, s.mem}, s.sent...)...)
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
			old := m.apply(s, l, v)
			visit()
			m.undo(s, l, old)
		}
	}
	visit()
	return w
}

// stuckSomewhere visits every position that can be reached with that many slots,
// up to a limit, and reports whether one is a dead end. Values don't matter here.
func stuckSomewhere(m *machine, slots int32, limit int) (stuck, complete bool) {
	seen := map[string]bool{}
	type position struct{ at, put, got []int32 }
	clone := func(s *state) position {
		return position{append([]int32(nil), s.at...), append([]int32(nil), s.put...), append([]int32(nil), s.got...)}
	}
	s := m.start()
	todo := []position{clone(s)}
	seen[keyOf(s.at)] = true // positions say how many messages came and went
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		moved := false
		for l := range m.lines {
			s.at, s.put, s.got = p.at, p.put, p.got
			if !m.enabled(s, l, slots) {
				continue
			}
			moved = true
			next := clone(s)
			s.at, s.put, s.got = next.at, next.put, next.got
			m.step(s, l)
			if key := keyOf(next.at); !seen[key] {
				seen[key] = true
				todo = append(todo, next)
			}
		}
		s.at, s.put, s.got = p.at, p.put, p.got
		if stuck = stuck || !moved && !m.over(s); len(seen) > limit {
			return stuck, false
		}
	}
	return stuck, true
}
