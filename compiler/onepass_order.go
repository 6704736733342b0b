package compiler

import (
	"cmp"
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// oneOrder gives semaphores to pairs of operations in different thread blocks of a rank
// that have to keep the script's order, and that nothing in the script orders. Pairs
// of an operation are tried latest first, and each counts for those after it, so that none
// gets a semaphore that others imply. Two blocks share one for each loop, since the first
// release is for the first acquire.
//
// Where the script orders two operations the other way round, by waiting, that is
// what it means.
func oneOrder(ctx context.Context, s *oneState) error {
	if len(s.pairs) == 0 {
		return nil
	}
	s.every = nil
	graph := newOneOrderGraph(s)
	o := &orderer{oneOrderGraph: graph, ports: newPorter(graph), ids: map[[4]int32]int32{}, backs: map[[3]int32]int32{}}
	slices.SortFunc(s.pairs, func(x, y onePair) int { return cmp.Or(cmp.Compare(x.b, y.b), cmp.Compare(y.a, x.a)) })
	s.meets = map[int32]int32{}
	for i, p := range s.pairs {
		if i&0xff == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.ours[p.a] || s.ours[p.b] || s.trace.AutoSync && !p.chain {
			o.pair(p)
		}
	}
	if len(o.edges)+len(o.ports.made)+len(o.ports.raised) > 0 {
		o.insert()
	}
	return nil
}

// oneEdge is a pair of sites that gets a semaphore; back means that b of one turn of
// their loop comes before a of the next, not a before b.
type oneEdge struct {
	a, b      int32
	semaphore int32
	back      bool
}

type orderer struct {
	*oneOrderGraph
	ports *porter
	edges []oneEdge
	ids   map[[4]int32]int32 // two blocks, loop, direction: their semaphore
	backs map[[3]int32]int32 // two blocks, loop: the edge from turn to turn
	made  []ir.TraceSemaphore
	of    []ir.Rank // of a semaphore made: its rank
}

// pair orders two operations, in all of their thread blocks.
func (o *orderer) pair(p onePair) {
	aligned := o.aligned(p)
	a0, a1 := o.sitesOf(p.a)
	b0, b1 := o.sitesOf(p.b)
	for a := a0; a < a1; a++ {
		for b := b0; b < b1; b++ {
			switch {
			case aligned && o.sites[a].part != o.sites[b].part:
			case o.sites[a].block == o.sites[b].block:
				if p.chain && !p.queue {
					o.mustMeet(p)
				}
				o.carried(a, b, p)
			case !p.chain && o.answers(b, a), o.ordered(b, a):
			default:
				if !o.ordered(a, b) {
					o.edge(a, b, p)
				}
				if o.meetsTurns(p) {
					o.turn(a, b, o.trace.Ops[p.a].Loop)
				}
				o.carried(a, b, p)
			}
		}
	}
}

// meetsTurns reports whether one turn of the loop that both operations are in meets another.
func (o *orderer) meetsTurns(p onePair) bool {
	loop := o.trace.Ops[p.a].Loop
	return loop != ir.None && loop == o.trace.Ops[p.b].Loop && !p.chain && o.shifted(p)
}

// carried lets site b come after what a port carries for site a, from turn to turn too.
func (o *orderer) carried(a, b int32, p onePair) {
	x, y := oneCarried(o.op(a)), oneCarried(o.op(b))
	if p.chain || !x && !y || o.ports.queued(a, b) {
		return
	}
	turns := o.meetsTurns(p)
	if turns && y {
		o.ports.turn(b)
	}
	switch {
	case turns && x:
		o.ports.turn(a)
	case x:
		o.ports.over(a, b)
	}
}

// answers reports whether site b alone writes packets that site a waits for. Then b comes
// first wherever it is written, and a semaphore for b to wait at would be a deadlock.
func (o *orderer) answers(b, a int32) bool {
	if o.packet == nil {
		return false
	}
	x, y := o.op(a), o.op(b)
	if !oneAwaits(x.Kind) {
		return false
	}
	writes := o.space.accesses(nil, y.Kind, nil, o.trace.Destinations(y))
	for _, p := range o.space.accesses(nil, x.Kind, o.trace.Sources(x), nil) {
		for i := range writes {
			q := &writes[i]
			for l := max(p.lo, q.lo); p.waits && q.packets && l < min(p.hi, q.hi); l++ {
				if w := o.packet[l]; w != ir.None && o.sites[w].op == o.sites[b].op {
					return true
				}
			}
		}
	}
	return false
}

// aligned reports whether the parts of two operations of groups are the same parts of
// the same memory.
func (o *orderer) aligned(p onePair) bool {
	x, y := &o.trace.Ops[p.a], &o.trace.Ops[p.b]
	return !p.chain && x.Blocks.Len() == y.Blocks.Len() && x.Blocks.Len() > 1 && !o.shifted(p)
}

// shifted reports whether two operations conflict in ranges that are not the same.
func (o *orderer) shifted(p onePair) bool {
	x, y := &o.trace.Ops[p.a], &o.trace.Ops[p.b]
	first := o.space.accesses(nil, x.Kind, o.trace.Sources(x), o.trace.Destinations(x))
	for _, q := range o.space.accesses(nil, y.Kind, o.trace.Sources(y), o.trace.Destinations(y)) {
		for i := range first {
			if f := &first[i]; oneConflict(f, &q) && (f.lo != q.lo || f.hi != q.hi || f.packets != q.packets) {
				return true
			}
		}
	}
	return false
}

// mustMeet lets the threads of a block meet between two links of a chain.
func (o *orderer) mustMeet(p onePair) {
	if m, ok := o.meets[p.b]; !ok || p.a > m {
		o.meets[p.b] = p.a
	}
}

func (o *orderer) edge(a, b int32, p onePair) {
	x, y := &o.trace.Ops[p.a], &o.trace.Ops[p.b]
	loop := int32(ir.None)
	if x.Loop == y.Loop {
		loop = x.Loop
	}
	key := [4]int32{o.sites[a].block, o.sites[b].block, loop, 0}
	o.edges = append(o.edges, oneEdge{a: a, b: b, semaphore: o.semaphore(x, key, 0)})
	o.added[b] = append(o.added[b], a)
}

// turn lets the first of one block's sites wait for the last of another one's in the turn
// before, of those that conflict there.
func (o *orderer) turn(a, b, loop int32) {
	key := [3]int32{o.sites[a].block, o.sites[b].block, loop}
	n, ok := o.backs[key]
	if !ok {
		o.backs[key] = int32(len(o.edges))
		number := o.semaphore(o.op(a), [4]int32{key[0], key[1], loop, 1}, 1)
		o.edges = append(o.edges, oneEdge{a: a, b: b, semaphore: number, back: true})
		return
	}
	e := &o.edges[n]
	if o.sites[a].at < o.sites[e.a].at {
		e.a = a
	}
	if o.sites[b].at > o.sites[e.b].at {
		e.b = b
	}
}

func (o *orderer) semaphore(op *ir.TraceOp, key [4]int32, initial int32) int32 {
	id, ok := o.ids[key]
	if !ok {
		id = int32(len(o.made))
		o.ids[key] = id
		o.made = append(o.made, ir.TraceSemaphore{Initial: initial, Pos: op.Pos})
		o.of = append(o.of, op.Rank)
	}
	return id
}

// insert writes the trace anew, with releases and acquires. Those for an operation of
// a loop that the other one is not in stand outside of it.
func (o *orderer) insert() {
	t := *o.trace
	number := make([]int32, len(o.made)) // among its rank's
	t.GPUs = slices.Clone(t.GPUs)
	for i, sem := range o.made {
		gpu := &t.GPUs[o.of[i]]
		number[i] = int32(len(gpu.Semaphores))
		gpu.Semaphores = append(slices.Clip(gpu.Semaphores), sem)
	}
	t.Blocks = slices.Clip(t.Blocks)
	ahead, behind := make([][]ir.TraceOp, len(t.Ops)), make([][]ir.TraceOp, len(t.Ops))
	add := func(list [][]ir.TraceOp, at int32, kind ir.OpKind, site, semaphore int32, inside bool) {
		op := o.op(site)
		n := ir.TraceOp{Kind: ir.TraceOf(kind), Sync: ir.SyncAfter, Rank: op.Rank, Ref: number[semaphore], Loop: ir.None, Pos: op.Pos,
			Blocks: ir.Span{Start: int32(len(t.Blocks)), End: int32(len(t.Blocks)) + 1}}
		if kind == ir.OpSemaphoreRelease {
			n.Sync = ir.SyncBefore
		}
		if inside {
			n.Loop = op.Loop
		}
		t.Blocks = append(t.Blocks, o.blockID(site))
		if kind == ir.OpSemaphoreRelease == inside { // what is in a loop stays next to it
			list[at] = slices.Insert(list[at], 0, n)
		} else {
			list[at] = append(list[at], n)
		}
	}
	begin, end := loopEnds(o.trace)
	for _, e := range o.edges {
		x, y := o.op(e.a), o.op(e.b)
		from, to, inside := o.sites[e.a].op, o.sites[e.b].op, x.Loop == y.Loop
		if !inside && x.Loop != ir.None {
			from = end[x.Loop]
		}
		if !inside && y.Loop != ir.None {
			to = begin[y.Loop]
		}
		if e.back {
			add(ahead, from, ir.OpSemaphoreAcquire, e.a, e.semaphore, inside)
			add(behind, to, ir.OpSemaphoreRelease, e.b, e.semaphore, inside)
			continue
		}
		add(behind, from, ir.OpSemaphoreRelease, e.a, e.semaphore, inside)
		add(ahead, to, ir.OpSemaphoreAcquire, e.b, e.semaphore, inside)
	}
	o.ports.write(&t, ahead, behind)
	o.rewrite(&t, ahead, behind)
}

// blockID is the number of a site's thread block on its rank.
func (g *oneOrderGraph) blockID(site int32) int32 {
	op, part := g.op(site), g.sites[site].part
	if blocks := g.trace.BlocksOf(op); len(blocks) > 0 {
		return blocks[part]
	}
	return g.allBlocks(op.Rank)[part]
}

// loopEnds are the first and last operation of each loop.
func loopEnds(t *ir.OneTrace) (begin, end []int32) {
	begin, end = filled(len(t.Loops), ir.None), filled(len(t.Loops), ir.None)
	for i := range t.Ops {
		if l := t.Ops[i].Loop; l != ir.None {
			if begin[l] == ir.None {
				begin[l] = int32(i)
			}
			end[l] = int32(i)
		}
	}
	return begin, end
}

// rewrite puts operations between those of the trace. What counts operations follows.
func (o *orderer) rewrite(t *ir.OneTrace, ahead, behind [][]ir.TraceOp) {
	var ops []ir.TraceOp
	var ours []bool
	number := make([]int32, len(t.Ops))
	for i := range t.Ops {
		for _, n := range ahead[i] {
			ops, ours = append(ops, n), append(ours, true)
		}
		number[i] = int32(len(ops))
		ops, ours = append(ops, t.Ops[i]), append(ours, o.ours[i])
		for _, n := range behind[i] {
			ops, ours = append(ops, n), append(ours, true)
		}
	}
	meets := map[int32]int32{}
	for b, a := range o.meets {
		meets[number[b]] = number[a]
	}
	t.Ops = ops
	o.oneState.trace, o.oneState.ours, o.oneState.meets = t, ours, meets
}
