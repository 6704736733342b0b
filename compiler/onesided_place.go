package compiler

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// place decides where messages and sums that are only passed on are kept.
func (x *export) place() error {
	n := len(x.nodes)
	x.direct, x.landing, x.temp = make([]bool, n), filled(n, ir.None), make([]ir.Place, n)
	x.scratch, x.plain = make([]int32, len(x.p.GPUs)), make([]int32, len(x.p.GPUs))
	if x.packets {
		x.findRelays()
		x.placeSums()
	} else {
		for r := range x.p.GPUs {
			x.plain[r] = x.p.GPUs[r].Scratch
		}
		x.findDirect()
	}
	copy(x.scratch, x.plain)
	for _, i := range x.order {
		if v := &x.nodes[i]; v.recvFrom != ir.None && !x.direct[i] {
			x.landing[i] = x.scratch[v.rank]
			x.scratch[v.rank] += v.step.Count
		}
	}
	if !x.packets {
		x.findContested()
	} else { // the executor finds a peer's second half by the size of its own
		most := slices.Max(x.scratch)
		for r := range x.scratch {
			x.scratch[r] = most
		}
	}
	return nil
}

// findContested finds the pairs of ranks of which the first writes where others
// write too, in the memory of the second: between launches their order has to be
// published, for which a relaxed signal is not enough. In scratch, places of one size
// are other places of another one: a write that nobody reads is in the way of all.
func (x *export) findContested() {
	const several = -2
	writer := map[ir.Loc]int32{}
	for i := range x.nodes {
		x.writes(int32(i), func(l ir.Loc, by int32) {
			if w, ok := writer[l]; ok && w != by {
				by = several
			}
			writer[l] = by
		})
	}
	x.contested = map[[2]int32]bool{}
	unread := x.unread()
	for i := range x.nodes {
		x.writes(int32(i), func(l ir.Loc, by int32) {
			rank := int32(l.Rank)
			left := l.Buf == ir.FirstScratch && slices.ContainsFunc(unread[rank], func(w int32) bool { return w != by })
			if (writer[l] == several || left) && by != rank {
				x.contested[[2]int32{by, rank}] = true
			}
		})
	}
}

// unread lists, for the scratch of each rank, the ranks that write there what nobody
// reads: dead copies, and sums that are only sent on, by the operation that makes them.
func (x *export) unread() [][]int32 {
	type write struct{ by, node int32 }
	left := map[ir.Loc]write{}
	for _, i := range x.order {
		n := &x.nodes[i]
		by := n.rank
		if x.direct[i] {
			by = x.nodes[n.recvFrom].rank
		}
		x.accesses(n, func(l ir.Loc, writes bool) {
			w, ok := left[l]
			switch {
			case writes && l.Buf == ir.FirstScratch:
				left[l] = write{by, i}
			case ok && !(n.step.Kind == ir.Send && x.nodes[w.node].step.Kind.Reduces() && x.nodes[w.node].batch == n.batch):
				delete(left, l)
			}
		})
		for c := range n.step.Count { // a message that has landed is read at once
			if x.landing[i] != ir.None && n.step.Kind == ir.RecvReduceSend {
				left[x.loc(n.rank, ir.Place{Buf: ir.FirstScratch, Index: x.landing[i]}, c)] = write{by, i}
			}
		}
	}
	ranks := make([][]int32, len(x.p.GPUs))
	for l, w := range left {
		if !slices.Contains(ranks[l.Rank], w.by) {
			ranks[l.Rank] = append(ranks[l.Rank], w.by)
		}
	}
	return ranks
}

// writes calls f for every chunk of its rank that node i, or the message it
// receives, writes, and by which rank.
func (x *export) writes(i int32, f func(l ir.Loc, by int32)) {
	n := &x.nodes[i]
	if !x.direct[i] {
		x.accesses(n, func(l ir.Loc, write bool) {
			if write {
				f(l, n.rank)
			}
		})
	}
	if n.recvFrom == ir.None {
		return
	}
	at := n.step.Dst
	if !x.direct[i] {
		at = ir.Place{Buf: ir.FirstScratch, Index: x.landing[i]}
	}
	for c := range n.step.Count {
		l := x.loc(n.rank, at, c)
		f(l, x.nodes[n.recvFrom].rank)
		if n.step.Kind == ir.RecvReduceSend { // adds up where the message is
			f(l, n.rank)
		}
	}
}

// usage is who wrote a location last and who has read it since.
type usage struct {
	writer  int32
	readers []int32
}

// findDirect finds the messages that can be put where they are to go: what
// touched that place before has to be over, for all the sender knows.
func (x *export) findDirect() {
	used := map[ir.Loc]*usage{}
	at := func(l ir.Loc) *usage {
		u := used[l]
		if u == nil {
			u = &usage{writer: ir.None}
			used[l] = u
		}
		return u
	}
	q := newBatchQuery(x)
	for _, i := range x.order {
		n := &x.nodes[i]
		if k := n.step.Kind; k == ir.Recv || k == ir.RecvCopySend {
			free := true
			x.accesses(n, func(l ir.Loc, _ bool) {
				u := at(l)
				free = free && q.over(u.writer, n.recvFrom)
				for _, d := range u.readers {
					free = free && q.over(d, n.recvFrom)
				}
			})
			x.direct[i] = free
		}
		x.accesses(n, func(l ir.Loc, write bool) {
			u := at(l)
			if write {
				u.writer, u.readers = i, nil
			} else if !slices.Contains(u.readers, i) {
				u.readers = append(u.readers, i)
			}
		})
	}
}

// batchQuery answers whether a batch is over when another begins. A search
// backwards visits at most batchSearchLimit batches; what it can't settle counts
// as not over, which costs a copy and nothing else.
type batchQuery struct {
	*export
	epoch int32
	when  []int32 // by batch: epoch in which it was visited
	stack []int32
	known map[[2]int32]bool
}

const batchSearchLimit = 2048

func newBatchQuery(x *export) *batchQuery {
	return &batchQuery{export: x, when: make([]int32, len(x.batches)), known: map[[2]int32]bool{}}
}

// over reports whether node d, if there is one, is over when node s of another
// rank moves its data.
func (q *batchQuery) over(d, s int32) bool {
	if d == ir.None {
		return true
	}
	goal, b := q.nodes[d].batch, q.nodes[s].batch
	key := [2]int32{goal, b}
	answer, ok := q.known[key]
	if !ok {
		answer = q.search(goal, b)
		q.known[key] = answer
	}
	return answer
}

func (q *batchQuery) search(goal, b int32) bool {
	q.epoch++
	q.stack = append(q.stack[:0], b)
	to := &q.batches[goal]
	for visited := 0; len(q.stack) > 0 && visited < batchSearchLimit; visited++ {
		v := q.stack[len(q.stack)-1]
		q.stack = q.stack[:len(q.stack)-1]
		t := &q.batches[v]
		if t.block == to.block && t.number >= to.number {
			return true
		}
		q.visit(q.previous(v), to.level)
		for _, d := range t.deps {
			q.visit(d, to.level)
		}
		for _, d := range t.from {
			q.visit(d, to.level)
		}
	}
	return false
}

// visit puts a batch on the stack, unless it is too early to lead to the goal.
func (q *batchQuery) visit(b, level int32) {
	if b == ir.None || q.batches[b].level < level || q.when[b] == q.epoch {
		return
	}
	q.when[b] = q.epoch
	q.stack = append(q.stack, b)
}

// placeSums gives every sum that is passed on without being kept a place for
// plain data, since packets can't be added up in place.
func (x *export) placeSums() {
	touched := map[ir.Loc][]touch{}
	for k, i := range x.order {
		x.accesses(&x.nodes[i], func(l ir.Loc, write bool) {
			touched[l] = append(touched[l], touch{int32(k), write})
		})
	}
	for k, i := range x.order {
		n := &x.nodes[i]
		if n.step.Kind != ir.RecvReduceSend {
			continue
		}
		p, ok := x.freePlace(touched, int32(k), n)
		if !ok {
			p = ir.Place{Buf: ir.FirstScratch, Index: x.plain[n.rank]}
			x.plain[n.rank] += n.step.Count
		}
		x.temp[i] = p
		for c := range n.step.Count {
			l := x.loc(n.rank, p, c)
			at, _ := slices.BinarySearchFunc(touched[l], int32(k)+1, func(t touch, k int32) int { return int(t.order - k) })
			touched[l] = slices.Insert(touched[l], at, touch{int32(k), true})
		}
	}
}

// touch is an access to a location by the node at a position of export.order.
type touch struct {
	order int32
	write bool
}

func (x *export) loc(rank int32, p ir.Place, c int32) ir.Loc {
	b, i := x.p.Coll.Canon(ir.Rank(rank), p.Buf, p.Index+c)
	return ir.Loc{Rank: ir.Rank(rank), Buf: b, Index: i}
}

// freePlace looks for a place that nobody misses: the operand itself, the same
// index of the output, then anywhere in output, input and scratch. It has no part of
// the operand in another order, which would be overwritten before it is read.
func (x *export) freePlace(touched map[ir.Loc][]touch, k int32, n *node) (ir.Place, bool) {
	operand := x.loc(n.rank, n.step.Src, 0)
	free := func(p ir.Place) bool {
		first := x.loc(n.rank, p, 0)
		if d := first.Index - operand.Index; first.Buf == operand.Buf && d != 0 && -n.step.Count < d && d < n.step.Count {
			return false
		}
		for c := range n.step.Count {
			if l := x.loc(n.rank, p, c); !x.dead(touched[l], l, k) {
				return false
			}
		}
		return true
	}
	g := &x.p.GPUs[n.rank]
	if free(n.step.Src) {
		return n.step.Src, true
	}
	for _, b := range []struct {
		buf    ir.BufferID
		chunks int32
	}{{ir.Output, g.Output}, {ir.Input, g.Input}, {ir.FirstScratch, x.plain[n.rank]}} {
		p := ir.Place{Buf: b.buf, Index: n.step.Src.Index}
		if p.Index+n.step.Count <= b.chunks && free(p) {
			return p, true
		}
		for p.Index = 0; p.Index+n.step.Count <= b.chunks; p.Index++ {
			if free(p) {
				return p, true
			}
		}
	}
	return ir.NoPlace, false
}

// dead reports whether location l holds nothing of use while the node at
// position k of the order runs: all its other users are over or come after, and
// the first of those overwrites it, or else nobody looks at it any more.
func (x *export) dead(users []touch, l ir.Loc, k int32) bool {
	next := int32(ir.None)
	for _, u := range users {
		switch {
		case u.order == k:
		case u.order < k:
			if !x.ordered(x.order[u.order], x.order[k]) {
				return false
			}
		case next == ir.None && !u.write || !x.ordered(x.order[k], x.order[u.order]):
			return false
		case next == ir.None:
			next = u.order
		case u.order != next && !x.ordered(x.order[next], x.order[u.order]):
			return false
		}
	}
	return next != ir.None || !x.p.Coll.Observable(l.Rank, l.Buf, l.Index)
}

// ordered reports whether a comes before b, of the same rank, by the order of
// blocks and by semaphores.
func (x *export) ordered(a, b int32) bool {
	u, v := &x.nodes[a], &x.nodes[b]
	if u.block == v.block {
		return true // positions in export.order decide
	}
	return x.clock[v.batch][x.blocks[u.block].column] > x.batches[u.batch].number
}
