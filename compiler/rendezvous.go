package compiler

import (
	"cmp"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Protocol Direct has no slots: a message is a rendezvous of its two ends, so
// what has to be ordered is not instructions but units. A unit is a flow, or a
// local instruction. Fusion keeps flows so short that one move of data makes a
// flow: a send, then perhaps one step that reduces and sends on, then a receive.
//
// If the units have an order in which each comes after all that its parts depend
// on, then thread blocks that keep that order can't deadlock, however steps are
// given to them: the first unit that has not run finds all its steps at the head of
// their thread blocks. As written, without fusion, there is such an order; where
// what forward and fuse did leaves none, it is taken back.
//
// A part may depend on another part of its unit in one case: the last one, a
// receive, overwrites what the first one, a send on the same rank, hands out. One
// step moves both, element by element, if the two are an exchange (docs/direct.md).
type unitOrder struct {
	*state
	unit  []int32 // by instruction: the first of its flow
	level []int32 // by unit: longest path to it
	togo  []int32 // by unit: longest path from it
	wants []int32 // by unit: predecessors not yet done
	succ  [][]int32
}

func newUnitOrder(s *state) *unitOrder {
	n := len(s.fused.Instrs)
	return &unitOrder{state: s, unit: make([]int32, n), level: make([]int32, n), togo: make([]int32, n),
		wants: make([]int32, n), succ: make([][]int32, n)}
}

// orderUnits finds the order, into state.exec and state.at.
func (s *state) orderUnits() error {
	n := len(s.fused.Instrs)
	o := newUnitOrder(s)
	s.edges = s.fused.Edges()
	for i := range int32(n) {
		o.unit[i] = i
		if from := s.fused.Instrs[i].RecvFrom; from != ir.None {
			o.unit[i] = o.unit[from]
		}
	}
	ok := o.contract()
	order := o.topological()
	if !ok || len(order) < o.units() {
		if !ok || o.takeBackCycles() {
			return &retry{"forward"}
		}
		return diag.Errorf(diag.Pos{}, "no-order",
			"internal error in pass order of program %q: its messages have no order without slots; please report it with the script", s.source.Name)
	}
	o.rank(order)
	if s.blocksFirst() {
		s.groups = s.findGroups()
		order = o.together(order)
	}
	s.exec, s.at, s.when = make([]int32, 0, n), make([]int32, n), make([]int32, n)
	for k, u := range order {
		from := len(s.exec)
		s.exec = s.flowFrom(s.exec, u)
		for _, i := range s.exec[from:] {
			s.when[i] = int32(k)
		}
	}
	for k, i := range s.exec {
		s.at[i] = int32(k)
	}
	s.neededBy = make([][]int32, n)
	for v := range int32(n) {
		for _, p := range s.edges.Of(v) {
			if s.fused.Instrs[p].Rank == s.fused.Instrs[v].Rank {
				s.neededBy[p] = append(s.neededBy[p], v)
			}
		}
	}
	return nil
}

// contract joins dependencies of parts to those of units; ok is false if it took
// back a fusion that can't stand.
func (o *unitOrder) contract() (ok bool) {
	ok = true
	for v := range int32(len(o.unit)) {
		for k, p := range o.edges.Of(v) {
			u, w := o.unit[p], o.unit[v]
			switch {
			case u != w:
				o.succ[u] = append(o.succ[u], w)
				o.wants[w]++
			case o.edges.KindsOf(v)[k] == ir.DepComm:
			case !o.fits(p, v): // its middle part is a fusion, else no part would share a rank with another
				o.withdraw(int32(o.fused.Instrs[p].SendTo))
				ok = false
			}
		}
	}
	return ok
}

// fits reports whether send p and receive v, ends of one flow on one rank, can be
// an exchange: of the very same place, on one thread block.
func (o *unitOrder) fits(p, v int32) bool {
	a, b := &o.fused.Instrs[p], &o.fused.Instrs[v]
	return a.Src == b.Dst && (o.fused.Policy != ir.Manual || a.TB == b.TB && a.TB != ir.None)
}

func (o *unitOrder) units() int {
	n := 0
	for i, u := range o.unit {
		if int32(i) == u {
			n++
		}
	}
	return n
}

// topological orders the units that no cycle is in the way of.
func (o *unitOrder) topological() []int32 {
	var order []int32
	wants := slices.Clone(o.wants)
	for i, u := range o.unit {
		if int32(i) == u && wants[u] == 0 {
			order = append(order, u)
		}
	}
	for k := 0; k < len(order); k++ {
		for _, w := range o.succ[order[k]] {
			if wants[w]--; wants[w] == 0 {
				order = append(order, w)
			}
		}
	}
	return order
}

// rank sorts units that are in a topological order by the longest path to each, then
// from it, then as written.
func (o *unitOrder) rank(order []int32) {
	for _, u := range order {
		for _, w := range o.succ[u] {
			o.level[w] = max(o.level[w], o.level[u]+1)
		}
	}
	for _, u := range slices.Backward(order) {
		for _, w := range o.succ[u] {
			o.togo[u] = max(o.togo[u], o.togo[w]+1)
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(o.level[a], o.level[b]), cmp.Compare(o.togo[b], o.togo[a]), cmp.Compare(a, b))
	})
}

// together is order with the units of a group's receives side by side, and those of its
// sends, if they can be: the parts of all groups must have an order themselves.
func (o *unitOrder) together(order []int32) []int32 {
	n := len(o.unit)
	place := make([]int32, n)
	for k, u := range order {
		place[u] = int32(k)
	}
	set := newSets(n)
	type part struct {
		of    int32
		sends bool
	}
	first := map[part]int32{}
	for i, of := range o.groups.of {
		if of == ir.None {
			continue
		}
		p := part{of, o.fused.Instrs[i].Kind == ir.Send}
		if u, ok := first[p]; ok {
			set.join(u, o.unit[i])
		} else {
			first[p] = o.unit[i]
		}
	}
	m := newUnitOrder(o.state)
	members := make([][]int32, n)
	for i, u := range o.unit {
		m.unit[i] = set.root(u)
		if int32(i) != u {
			continue
		}
		r := m.unit[i]
		members[r] = append(members[r], u)
		for _, w := range o.succ[u] {
			if v := set.root(w); v != r {
				m.succ[r] = append(m.succ[r], v)
				m.wants[v]++
			}
		}
	}
	sets := m.topological()
	if len(sets) < m.units() {
		return order
	}
	m.rank(sets)
	out := make([]int32, 0, len(order))
	for _, r := range sets {
		slices.SortFunc(members[r], func(a, b int32) int { return cmp.Compare(place[a], place[b]) })
		out = append(out, members[r]...)
	}
	return out
}

// takeBackCycles undoes one thing in each set of units that wait for one another:
// a fusion if there is one, since it costs less to do without, else a receive that
// forward moved. It reports whether it found anything.
func (o *unitOrder) takeBackCycles() bool {
	took := false
	for _, group := range o.cycles() {
		best := int32(ir.None)
		for _, u := range group {
			for i := u; i != ir.None; i = int32(o.fused.Instrs[i].SendTo) {
				if o.canTakeBack(i) && (best == ir.None || o.fused.Instrs[i].Kind.Sends() && !o.fused.Instrs[best].Kind.Sends()) {
					best = i
				}
			}
		}
		if best != ir.None {
			o.withdraw(best)
			took = true
		}
	}
	return took
}

// cycles are the strongly connected sets of more than one unit, by Tarjan's
// algorithm without recursion; the units of each ascend.
func (o *unitOrder) cycles() [][]int32 {
	n := len(o.unit)
	index, low, on := filled(n, ir.None), make([]int32, n), make([]bool, n)
	next := make([]int32, n) // successor to look at
	var stack, path []int32
	var found [][]int32
	count := int32(0)
	for root, u := range o.unit {
		if int32(root) != u || index[root] != ir.None {
			continue
		}
		path = append(path[:0], u)
		for len(path) > 0 {
			v := path[len(path)-1]
			if index[v] == ir.None {
				index[v], low[v], on[v] = count, count, true
				count++
				stack = append(stack, v)
			}
			if k := next[v]; int(k) < len(o.succ[v]) {
				next[v]++
				if w := o.succ[v][k]; index[w] == ir.None {
					path = append(path, w)
				} else if on[w] {
					low[v] = min(low[v], index[w])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				up := path[len(path)-1]
				low[up] = min(low[up], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			at := len(stack) - 1
			for stack[at] != v {
				at--
			}
			group := slices.Clone(stack[at:])
			stack = stack[:at]
			for _, w := range group {
				on[w] = false
			}
			if len(group) > 1 {
				slices.Sort(group)
				found = append(found, group)
			}
		}
	}
	return found
}

// placeLocals is the order pass of protocol Direct, whose order is that of the
// units: what is left to do where the script assigns thread blocks is to place the
// local instructions that it leaves open, and to find the exchanges.
func (s *state) placeLocals() error {
	if s.blocksFirst() {
		return nil
	}
	n := len(s.exec)
	s.mate = filled(n, ir.None)
	before := filled(len(s.tbs), ir.None) // latest instruction of a thread block
	for _, i := range s.exec {
		if s.tbOf[i] == ir.None {
			s.tbOf[i] = s.openBlock(i)
			before = append(before, filled(len(s.tbs)-len(before), ir.None)...)
		}
		t := s.tbOf[i]
		if p := before[t]; p != ir.None && s.looksExchanged(p, i) && s.exchanges(p, i) {
			s.mate[p], s.mate[i] = i, p
		}
		before[t] = i
	}
	return nil
}

// looksExchanged reports whether p directly followed by i in a thread block is
// an exchange if i waits for nothing.
func (s *state) looksExchanged(p, i int32) bool {
	return s.fused.Instrs[p].Kind == ir.Send && s.fused.Instrs[i].Kind == ir.Recv &&
		s.fused.SendPeer(ir.InstrID(p)) == s.fused.RecvPeer(ir.InstrID(i))
}

// openBlock is the thread block of a local instruction that the script gives none:
// one of the compiler's own on that rank.
func (s *state) openBlock(i int32) int32 {
	in := &s.fused.Instrs[i]
	for t := range s.tbs {
		if tb := &s.tbs[t]; tb.rank == in.Rank && tb.instance == in.Instance && tb.hint == ir.None && tb.send == ir.None && tb.recv == ir.None {
			return int32(t)
		}
	}
	s.tbs = append(s.tbs, threadBlock{rank: in.Rank, send: ir.None, recv: ir.None, instance: in.Instance, hint: ir.None})
	return int32(len(s.tbs) - 1)
}
