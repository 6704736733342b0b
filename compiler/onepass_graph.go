package compiler

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// oneSite is an operation in one thread block: part of n for a group of n.
type oneSite struct {
	op    int32
	part  int32
	block int32 // among all
	at    int32 // in the block
}

// oneOrderGraph answers which sites come before which, by the order of thread blocks
// and by what the script synchronizes: semaphores, barriers, signals and packets. A
// signal, a release and a barrier are taken to announce all of their block before
// them, as scripts that say where threads meet mean it; packets tell only of what is
// before the last meeting, and of their own units.
type oneOrderGraph struct {
	*oneState
	sites  []oneSite
	first  []int32 // of an operation: its first site
	blocks [][]int32
	found  map[[2]int32]int32 // rank, thread block: its number among blocks
	before [][]int32          // of a site: others that come before it, beside those of its block
	added  map[int32][]int32  // the same, by semaphores of the compiler's own
	packet []int32            // of a location: the first site of the operation that writes packets there; None: none, or several do
	packed []int32            // of a location: where the packets of that operation begin
	met    [][]int32          // of a block: by site, how many of its first are over at a meeting before it

	// Of a search.
	stamp   int32
	reached []int32            // of a block: sites known to be over
	seen    []int32            // of a block: the search that reached is of
	parts   map[[2]int32]int32 // of a part of a group and a location: the same
	visited []int32            // of a site: the search that has asked what its packets tell
	units   []int32            // of a unit of the target: the search in which packets told of it
	asked   []int32            // of a location: the search that has asked who wrote its packet
	queue   [][2]int32
	target  oneTarget
	hit     bool
	spent   int64

	touched *oneTouched
	list    []oneAccess
}

// oneTarget is what a search looks for: a site, and of its operands the unit that
// packets would have to tell of.
type oneTarget struct {
	site int32
	unit int32
	weak bool // it only read, so that relaxed signals and packets count
}

// oneSearches bounds the steps of all searches; what they don't find is given a
// semaphore of its own.
const oneSearches = 1 << 28

func newOneOrderGraph(s *oneState) *oneOrderGraph {
	t := s.trace
	g := &oneOrderGraph{oneState: s, first: make([]int32, len(t.Ops)), sites: make([]oneSite, 0, len(t.Ops)+len(t.Ops)/8), found: map[[2]int32]int32{}, added: map[int32][]int32{}, parts: map[[2]int32]int32{}}
	for v := range t.Ops {
		op := &t.Ops[v]
		g.first[v] = int32(len(g.sites))
		blocks := t.BlocksOf(op)
		if len(blocks) == 0 {
			blocks = s.allBlocks(op.Rank)
		}
		for part, b := range blocks {
			key := [2]int32{int32(op.Rank), b}
			n, ok := g.found[key]
			if !ok {
				n = int32(len(g.blocks))
				g.found[key] = n
				g.blocks = append(g.blocks, nil)
			}
			g.sites = append(g.sites, oneSite{int32(v), int32(part), n, int32(len(g.blocks[n]))})
			g.blocks[n] = append(g.blocks[n], int32(len(g.sites)-1))
		}
	}
	g.before = make([][]int32, len(g.sites))
	g.met = make([][]int32, len(g.blocks))
	g.reached, g.seen = make([]int32, len(g.blocks)), make([]int32, len(g.blocks))
	g.visited = make([]int32, len(g.sites))
	g.barriers()
	g.counts()
	g.packets()
	return g
}

// allBlocks are the thread blocks of a rank that operations name, ascending: those of
// a barrier that names none.
func (s *oneState) allBlocks(r ir.Rank) []int32 {
	if s.every == nil {
		s.every = make([][]int32, len(s.trace.GPUs))
		for i := range s.trace.Ops {
			op := &s.trace.Ops[i]
			s.every[op.Rank] = append(s.every[op.Rank], s.trace.BlocksOf(op)...)
		}
		for q := range s.every {
			slices.Sort(s.every[q])
			s.every[q] = slices.Compact(s.every[q])
		}
	}
	return s.every[r]
}

// sitesOf are the sites of operation v.
func (g *oneOrderGraph) sitesOf(v int32) (from, to int32) {
	if int(v)+1 < len(g.first) {
		return g.first[v], g.first[v+1]
	}
	return g.first[v], int32(len(g.sites))
}

func (g *oneOrderGraph) op(site int32) *ir.TraceOp { return &g.trace.Ops[g.sites[site].op] }

func (g *oneOrderGraph) barriers() {
	for v := range g.trace.Ops {
		if g.trace.Ops[v].Kind != ir.TraceOf(ir.OpBarrier) {
			continue
		}
		from, to := g.sitesOf(int32(v))
		for x := from; x < to; x++ {
			for y := from; y < to; y++ {
				if x != y {
					g.before[x] = append(g.before[x], y)
				}
			}
		}
	}
}

// oneCounter is a channel or semaphore: who gives and who takes, in order.
type oneCounter struct {
	initial      int32
	gives, takes []int32
}

// counts links what waits for signals or semaphores with what it must have waited for.
func (g *oneOrderGraph) counts() {
	t := g.trace
	var channels, semaphores [][]oneCounter
	for r := range t.GPUs {
		channels = append(channels, make([]oneCounter, len(t.GPUs[r].Channels)))
		list := make([]oneCounter, len(t.GPUs[r].Semaphores))
		for i := range list {
			list[i].initial = t.GPUs[r].Semaphores[i].Initial
		}
		semaphores = append(semaphores, list)
	}
	for x := range g.sites {
		op := g.op(int32(x))
		switch {
		case oneSignals(op.Kind):
			c := &channels[op.Rank][op.Ref]
			c.gives = append(c.gives, int32(x))
		case oneWaits(op.Kind):
			if ch := &t.GPUs[op.Rank].Channels[op.Ref]; ch.Pair != ir.None {
				c := &channels[ch.Peer][ch.Pair]
				c.takes = append(c.takes, int32(x))
			}
		case op.Kind == ir.TraceOf(ir.OpSemaphoreRelease):
			c := &semaphores[op.Rank][op.Ref]
			c.gives = append(c.gives, int32(x))
		case op.Kind == ir.TraceOf(ir.OpSemaphoreAcquire):
			c := &semaphores[op.Rank][op.Ref]
			c.takes = append(c.takes, int32(x))
		}
	}
	for r := range t.GPUs {
		for i := range channels[r] {
			g.count(&channels[r][i])
		}
		for i := range semaphores[r] {
			g.count(&semaphores[r][i])
		}
	}
}

// count links one. The k-th that a block takes needs a block's i-th only if all that
// the others give are fewer than k-i+1. In loops they may give turns ahead: what is used
// there links one giver alone, turn by turn.
func (g *oneOrderGraph) count(c *oneCounter) {
	givers, gives := g.byBlock(c.gives)
	takers, takes := g.byBlock(c.takes)
	looped := slices.ContainsFunc(c.gives, g.inLoop) || slices.ContainsFunc(c.takes, g.inLoop)
	for _, taker := range takers {
		for _, giver := range givers {
			list := gives[giver]
			earlier := c.initial + int32(len(c.gives)-len(list))
			switch {
			case looped && earlier == 0:
				g.countTurns(list, takes[taker])
			case !looped:
				for k, x := range takes[taker] {
					if i := int32(k) - earlier; i >= 0 && int(i) < len(list) {
						g.before[x] = append(g.before[x], list[i])
					}
				}
			}
		}
	}
}

// countTurns links what one block takes with what one block gives as long as both do so
// outside of loops, or equally often in each turn of loops that have as many turns. Where a
// turn takes more than the other one gives, each takes what was given in the same turn or a
// later one.
func (g *oneOrderGraph) countTurns(gives, takes []int32) {
	for len(gives) > 0 && len(takes) > 0 {
		y, x := g.op(gives[0]).Loop, g.op(takes[0]).Loop
		given, taken := g.ofLoop(gives), g.ofLoop(takes)
		if !g.alike(x, y) || taken < given {
			return
		}
		for i := range given {
			g.before[takes[i]] = append(g.before[takes[i]], gives[i])
		}
		if taken > given {
			return
		}
		gives, takes = gives[given:], takes[taken:]
	}
}

// ofLoop is how many of the first sites of a list are in the loop of the first one; 1
// outside of loops.
func (g *oneOrderGraph) ofLoop(list []int32) int {
	n, loop := 1, g.op(list[0]).Loop
	for loop != ir.None && n < len(list) && g.op(list[n]).Loop == loop {
		n++
	}
	return n
}

func (g *oneOrderGraph) inLoop(x int32) bool { return g.op(x).Loop != ir.None }

// alike reports whether two loops, or None, have as many turns as each other.
func (g *oneOrderGraph) alike(a, b int32) bool {
	if a == ir.None || b == ir.None {
		return a == b
	}
	x, y := &g.trace.Loops[a], &g.trace.Loops[b]
	return x.UnitBytes == y.UnitBytes && x.Chunks == y.Chunks
}

// byBlock sorts sites by their thread blocks, which come in the order of their first.
func (g *oneOrderGraph) byBlock(list []int32) (blocks []int32, of map[int32][]int32) {
	of = map[int32][]int32{}
	for _, x := range list {
		b := g.sites[x].block
		if of[b] == nil {
			blocks = append(blocks, b)
		}
		of[b] = append(of[b], x)
	}
	return blocks, of
}

func (g *oneOrderGraph) packets() {
	if g.trace.Protocol != ir.LL {
		return
	}
	g.packet, g.packed, g.asked = filled(int(g.space.size), ir.None), make([]int32, g.space.size), make([]int32, g.space.size)
	var list []oneAccess
	for x := range g.sites {
		op := g.op(int32(x))
		list = g.space.accesses(list[:0], op.Kind, nil, g.trace.Destinations(op))
		for _, a := range list {
			if !a.packets || op.Blocks.Len() > 1 && g.sites[x].part > 0 {
				continue
			}
			for l := a.lo; l < a.hi; l++ {
				if g.packed[l]++; g.packed[l] == 1 {
					g.packet[l] = int32(x)
				} else {
					g.packet[l] = ir.None
				}
			}
		}
	}
	for x := range g.sites {
		op := g.op(int32(x))
		list = g.space.accesses(list[:0], op.Kind, nil, g.trace.Destinations(op))
		for _, a := range list {
			for l := a.lo; a.packets && l < a.hi; l++ {
				g.packed[l] = a.lo
			}
		}
	}
}

// metBefore is how many of the first sites of x's block are surely over when x
// begins: there is a barrier or a nop between, one that the script asks for or one
// for conflicting operations.
func (g *oneOrderGraph) metBefore(x int32) int32 {
	b := g.sites[x].block
	if g.met[b] == nil {
		g.met[b] = g.meetings(b)
	}
	return g.met[b][g.sites[x].at]
}

// meetings is metBefore of every site of block b.
func (g *oneOrderGraph) meetings(b int32) []int32 {
	list := g.blocks[b]
	met := make([]int32, len(list))
	if g.touched == nil {
		g.touched = &oneTouched{stamp: make([]int32, g.space.size), last: make([][3]int32, g.space.size)}
	}
	for i, x := range list {
		op := g.op(x)
		if i > 0 {
			met[i] = met[i-1]
			if last := g.op(list[i-1]); meetsAround(op, ir.SyncBefore) || meetsAround(last, ir.SyncAfter) {
				met[i] = int32(i)
			}
		}
		g.list = g.space.accesses(g.list[:0], op.Kind, g.trace.Sources(op), g.trace.Destinations(op))
		for k := range g.list {
			met[i] = max(met[i], g.touched.conflict(b+1, &g.list[k]))
		}
		for k := range g.list {
			g.touched.add(b+1, &g.list[k], int32(i)+1)
		}
	}
	return met
}

// meetsAround reports whether the threads meet at an operation, or on one side of it.
func meetsAround(op *ir.TraceOp, side ir.DataSync) bool {
	return op.Kind == ir.TraceOf(ir.OpBarrier) || op.Kind == ir.TraceOf(ir.OpSync) || op.Sync&side != 0
}

// oneTouched is when one block touched each location last: wrote plain data, packets, or
// read.
type oneTouched struct {
	stamp []int32
	last  [][3]int32
}

// conflict is the last time that something conflicted with access a, or 0.
func (t *oneTouched) conflict(user int32, a *oneAccess) int32 {
	at := int32(0)
	for l := a.lo; l < a.hi; l++ {
		if t.stamp[l] != user {
			continue
		}
		at = max(at, t.last[l][0])
		if !a.waits {
			at = max(at, t.last[l][1])
		}
		if a.write {
			at = max(at, t.last[l][2])
		}
	}
	return at
}

func (t *oneTouched) add(user int32, a *oneAccess, at int32) {
	kind := 0
	switch {
	case !a.write:
		kind = 2
	case a.packets:
		kind = 1
	}
	for l := a.lo; l < a.hi; l++ {
		if t.stamp[l] != user {
			t.stamp[l], t.last[l] = user, [3]int32{}
		}
		t.last[l][kind] = at
	}
}

// oneConflict reports whether access b has to come after access a, of an earlier
// operation. What waits for packets needs no order with what writes them.
func oneConflict(a, b *oneAccess) bool {
	return (a.write || b.write) && a.overlaps(b) && !(a.write && a.packets && b.waits)
}
