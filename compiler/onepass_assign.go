package compiler

import (
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// oneBlockOps bounds how many operations of a script the compiler puts in one thread
// block where they have to fit MSCCL++'s executor: its 64 hold a meeting before and
// after each of them.
const oneBlockOps = (planOps - 1) / 3

// assigner puts operations without a thread block into classes, and classes into
// blocks. It adds nothing to thread blocks that the script fills.
type assigner struct {
	*oneState
	class []int32     // union-find by operation
	count []int32     // by root: operations
	peers [][]ir.Rank // by root
	preds [][]int32   // by operation: what has to come before, on its rank
	succs []int32     // by operation: the first that has to come after, or None
}

// oneAssign gives thread blocks to the operations that have none. What adds to a sum, sends it on
// or is local stands behind what it builds on, in one block, so that they are in order,
// and may be joined; a signal stands behind what it announces, a wait before what it is
// for, a local operation before what is first to use it. The rest goes by peer: what one
// rank exchanges with another shares a block, and blocks of different peers run beside
// each other.
func oneAssign(_ context.Context, s *oneState) error {
	if !slices.Contains(s.ours, true) {
		return nil
	}
	t := s.trace
	a := &assigner{oneState: s, class: make([]int32, len(t.Ops)), count: make([]int32, len(t.Ops)),
		peers: make([][]ir.Rank, len(t.Ops)), preds: make([][]int32, len(t.Ops)), succs: filled(len(t.Ops), ir.None)}
	for v := range t.Ops {
		a.class[v], a.count[v] = int32(v), 1
		if peer := a.peer(int32(v)); peer != ir.None {
			a.peers[v] = []ir.Rank{peer}
		}
	}
	for _, p := range s.pairs {
		if p.queue {
			a.merge(p.a, p.b)
			continue
		}
		a.preds[p.b] = append(a.preds[p.b], p.a)
		if n := a.succs[p.a]; n == ir.None || p.b < n {
			a.succs[p.a] = p.b
		}
	}
	whole := s.wholeLoops()
	for _, ops := range opsOfRanks(t) {
		for i, v := range ops {
			if s.ours[v] {
				a.join(ops, i)
			}
			if loop := t.Ops[v].Loop; loop != ir.None && whole[loop] && i > 0 && t.Ops[ops[i-1]].Loop == loop {
				a.merge(ops[i-1], v)
			}
		}
	}
	a.place()
	return nil
}

// peer is the rank that v exchanges something with, or None.
func (a *assigner) peer(v int32) ir.Rank {
	op := &a.trace.Ops[v]
	if op.Via == ir.ChannelMemory || op.Via == ir.ChannelPort {
		return a.trace.GPUs[op.Rank].Channels[op.Ref].Peer
	}
	return ir.None
}

// join puts operation i of a rank's into the class of another one, if it belongs there.
func (a *assigner) join(ops []int32, i int) {
	v := ops[i]
	op := &a.trace.Ops[v]
	switch {
	case oneMoves(op):
		u := a.latest(v, func(u int32) bool { return a.flows(u, v) && a.near(u, v) })
		if u == ir.None && a.peer(v) == ir.None && len(a.preds[v]) == 0 {
			u = a.succs[v]
		}
		a.unite(u, v)
	case oneSignals(op.Kind) || op.Kind == ir.TraceOf(ir.OpFlush):
		a.unite(a.latest(v, func(int32) bool { return true }), v)
	case oneWaits(op.Kind):
		a.unite(v, a.succs[v])
	case op.Kind == ir.TraceOf(ir.OpSemaphoreAcquire):
		if i+1 < len(ops) {
			a.unite(v, ops[i+1])
		}
	case i > 0: // release, nop
		a.unite(ops[i-1], v)
	}
}

// latest is the last of the operations before v that fits, or None.
func (a *assigner) latest(v int32, fits func(int32) bool) int32 {
	best := int32(ir.None)
	for _, u := range a.preds[v] {
		if u > best && a.ours[u] && fits(u) {
			best = u
		}
	}
	return best
}

// near reports whether v, which uses what u makes, belongs to it even so if that keeps it from
// running beside others: it is local, exchanges with the same peer, or sends on or adds to
// a sum, which one operation can do.
func (a *assigner) near(u, v int32) bool {
	return a.peer(v) == ir.None || a.peer(u) == a.peer(v) || a.trace.Ops[u].Kind.Reduces()
}

// flows reports whether v touches what u has written.
func (a *assigner) flows(u, v int32) bool {
	t := a.trace
	x, y := &t.Ops[u], &t.Ops[v]
	first := a.space.accesses(nil, x.Kind, nil, t.Destinations(x))
	for _, q := range a.space.accesses(nil, y.Kind, t.Sources(y), t.Destinations(y)) {
		for i := range first {
			if q.overlaps(&first[i]) {
				return true
			}
		}
	}
	return false
}

func (a *assigner) root(v int32) int32 {
	for a.class[v] != v {
		a.class[v] = a.class[a.class[v]]
		v = a.class[v]
	}
	return v
}

// unite joins the classes of u and v, unless they grow too large.
func (a *assigner) unite(u, v int32) {
	if u == ir.None || v == ir.None || !a.ours[u] || !a.ours[v] {
		return
	}
	u, v = a.root(u), a.root(v)
	if u != v && (!a.limited || a.count[u]+a.count[v] <= oneBlockOps && len(a.peersOf(u, v)) <= planChannels) {
		a.merge(u, v)
	}
}

// merge joins them however large they are: who waits on one channel is one thread block,
// so that its first wait is for the first signal.
func (a *assigner) merge(u, v int32) {
	if !a.ours[u] || !a.ours[v] {
		return
	}
	u, v = a.root(u), a.root(v)
	if u == v {
		return
	}
	if u > v {
		u, v = v, u
	}
	a.peers[u] = a.peersOf(u, v)
	a.class[v], a.peers[v] = u, nil
	a.count[u] += a.count[v]
}

// peersOf are the ranks that two classes together exchange something with, ascending.
func (a *assigner) peersOf(u, v int32) []ir.Rank {
	all := append(slices.Clone(a.peers[u]), a.peers[v]...)
	slices.Sort(all)
	return slices.Compact(all)
}

// place numbers the classes of each rank behind the thread blocks of the script: one
// block a class, or a key where classes have the same one and fit.
func (a *assigner) place() {
	t := *a.trace
	t.Ops = append([]ir.TraceOp(nil), t.Ops...)
	t.Blocks = append([]int32(nil), t.Blocks...)
	for _, ops := range opsOfRanks(&t) {
		next := int32(0)
		for _, v := range ops {
			for _, b := range t.BlocksOf(&t.Ops[v]) {
				next = max(next, b+1)
			}
		}
		key := a.keys(ops)
		block := map[int32]int32{} // of a class
		type home struct{ block, count int32 }
		homes := map[ir.Rank]*home{} // of a key
		for _, v := range ops {
			if !a.ours[v] {
				continue
			}
			root := a.root(v)
			b, known := block[root]
			if h := homes[key[root]]; !known && h != nil && !(a.limited && h.count+a.count[root] > oneBlockOps) {
				b, known = h.block, true
				h.count += a.count[root]
			}
			if !known {
				b = next
				next++
				homes[key[root]] = &home{b, a.count[root]}
			}
			block[root] = b
			t.Ops[v].Blocks = ir.Span{Start: int32(len(t.Blocks)), End: int32(len(t.Blocks)) + 1}
			t.Blocks = append(t.Blocks, b)
		}
	}
	a.oneState.trace = &t
}

// keys is what each class of a rank goes by: the peer of its first operation by a
// channel, or the rank that its packets come from, or None.
func (a *assigner) keys(ops []int32) map[int32]ir.Rank {
	key := map[int32]ir.Rank{}
	for pass := range 2 {
		for _, v := range ops {
			root := a.root(v)
			if k, known := key[root]; known && k != ir.None || !a.ours[v] {
				continue
			}
			key[root] = a.peer(v)
			if from, ok := a.from[v]; ok && pass == 1 && key[root] == ir.None {
				key[root] = from
			}
		}
	}
	return key
}
