package checker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
)

// event is one thread's part of an operation in one launch.
type event struct {
	line, launch, seg int // line -1-r: the caller of rank r
	op                *ir.Op
	async, packets    bool
	reads, writes     []event0
	awaits            map[string]int // of packets: the events that write what it waits for
}

// event0 is a chunk of an operand, and the range that it is part of.
type event0 struct {
	at      string
	of      string
	packets bool
	operand ir.Operand // of this one chunk
	later   bool       // of the launch after the event's: what a caller writes
}

// units names where a chunk lies if chunks have so many units of the alignment.
func (n *oneNaive) units(e *event0, launch, size int) []string {
	buf := e.operand.Buf
	if buf == ir.Output && n.p.Coll.InPlace {
		buf = ir.Input
	}
	half := 0
	if buf == ir.FirstScratch && n.o.DoubleScratch {
		half = launch % 2
	}
	times := 1
	if e.packets {
		times = 2
	}
	var out []string
	for i := range size * times {
		out = append(out, fmt.Sprintf("%d%c%d.%d", e.operand.Rank, "ios"[buf], half, int(e.operand.Index)*size*times+i))
	}
	return out
}

type oneGraph struct {
	n              *oneNaive // of the present launch
	events         []event
	strong, weak   [][2]int
	signals, waits map[string][]signalNode
	writers        map[string]int // of a packet of the launch
	asyncs         map[string][]push
	ports          []portNode
}

// push is a put handed to a port, and the put itself.
type push struct{ line, pushed, done int }

// portNode is a signal or a flush: what is handed to the port before event after is
// done before event over.
type portNode struct {
	channel           string
	line, after, over int
}

type signalNode struct {
	node    int
	relaxed bool
}

func (g *oneGraph) node(e event) int {
	g.events = append(g.events, e)
	return len(g.events) - 1
}

func (g *oneGraph) order(a, b int) { g.strong = append(g.strong, [2]int{a, b}) }

// races builds the graph of the launches and looks for conflicts without order: within a
// launch, and across, where chunks have from least to most units.
func (n *oneNaive) races(launches, least, most int) (within, across bool) {
	g := newOneGraph(slices.Repeat([]*oneNaive{n}, launches))
	strong, weak := closure(len(g.events), g.strong), closure(len(g.events), g.strong, g.weak)
	for a := least; a <= most; a++ {
		for b := least; b <= most; b++ {
			// Scratch of the first launch meets that of the last one, other memory of the
			// first that of the second.
			sizes := slices.Repeat([]int{b}, launches+1)
			sizes[0] = a
			w, x := g.judge(sizes, strong, weak)
			within, across = within || w, across || x
		}
	}
	return within, across
}

// newOneGraph is the graph of a launch of each of the programs, which have the same
// thread blocks.
func newOneGraph(programs []*oneNaive) *oneGraph {
	g := &oneGraph{signals: map[string][]signalNode{}, waits: map[string][]signalNode{}, asyncs: map[string][]push{}}
	last := map[int]int{} // of a line: where it met last
	launches := len(programs)
	for launch := range launches + 1 {
		g.n = programs[min(launch, launches-1)]
		g.callers(programs[max(launch-1, 0)], launch, last, launch == 0)
		if launch == launches {
			break
		}
		g.writers = map[string]int{}
		at := make([]int, len(g.n.lines))
		ends := make([]lineState, len(g.n.lines))
		for l := range ends {
			ends[l] = lineState{met: last[l], threads: map[int]int{}}
		}
		barriers := map[int][]int{}
		for moved := true; moved; {
			moved = false
			for l := range g.n.lines {
				if g.n.can(l, at) {
					moved = true
					g.step(l, launch, g.n.lines[l].ops[at[l]], &ends[l], barriers)
					at[l]++
				}
			}
		}
		for l := range ends {
			last[l] = g.meet(l, launch, &ends[l])
		}
	}
	g.match()
	for known := -1; known != len(g.strong); {
		known = len(g.strong)
		g.byPorts()
	}
	return g
}

type lineState struct {
	met, seg int
	since    []int
	threads  map[int]int // the last synchronizing event of thread j since the meeting
}

func (g *oneGraph) meet(l, launch int, s *lineState) int {
	m := g.node(event{line: l, launch: launch})
	g.order(s.met, m)
	for _, e := range s.since {
		g.order(e, m)
	}
	s.met, s.since, s.threads = m, nil, map[int]int{}
	s.seg++
	return m
}

// callers puts what happens between a launch of a program and the next.
func (g *oneGraph) callers(before *oneNaive, launch int, last map[int]int, first bool) {
	for r := range g.n.o.GPUs {
		c := event{line: -1 - r, launch: launch - 1}
		old, coll := before.p.Coll, g.n.p.Coll
		for i := range old.OutputChunks(ir.Rank(r)) {
			if _, wanted := old.Expect(nil, ir.Rank(r), i); wanted && !first {
				d := ir.Operand{Rank: ir.Rank(r), Buf: ir.Output, Index: i}
				c.reads = append(c.reads, event0{at: g.n.place(&d, 0), operand: d})
			}
		}
		for i := range coll.InputChunks(ir.Rank(r)) {
			d := ir.Operand{Rank: ir.Rank(r), Buf: ir.Input, Index: i}
			c.writes = append(c.writes, event0{at: g.n.place(&d, 0), operand: d, later: true})
		}
		id := g.node(c)
		for l, line := range g.n.lines {
			if line.rank == r {
				if !first {
					g.order(last[l], id)
				}
				last[l] = id
			}
		}
	}
}

func (g *oneGraph) step(l, launch int, op *ir.Op, s *lineState, barriers map[int][]int) {
	n := g.n
	rank := n.lines[l].rank
	sync := func(j int) int {
		id := g.node(event{line: l, launch: launch, op: op})
		g.order(s.met, id)
		if e, ok := s.threads[j]; ok {
			g.order(e, id)
		}
		s.threads[j] = id
		s.since = append(s.since, id)
		return id
	}
	refs := n.o.RefsOf(op)
	switch op.Kind {
	case ir.OpSync:
		g.meet(l, launch, s)
		return
	case ir.OpBarrier:
		m := g.meet(l, launch, s)
		barriers[rank] = append(barriers[rank], m)
		// Two lines: the second to come closes the pair both ways.
		if list := barriers[rank]; len(list)%2 == 0 {
			a, b := list[len(list)-2], list[len(list)-1]
			g.order(a, b)
			g.order(b, a)
		}
		return
	case ir.OpSignal, ir.OpRelaxedSignal, ir.OpWait, ir.OpRelaxedWait, ir.OpFlush, ir.OpSemaphoreAcquire, ir.OpSemaphoreRelease:
		for j, ref := range refs {
			g.syncNode(l, rank, op, ref, sync(j))
		}
		return
	}
	g.data(l, rank, launch, op, s)
}

func (g *oneGraph) syncNode(l, rank int, op *ir.Op, ref int32, id int) {
	key := fmt.Sprintf("c%d.%d", rank, ref)
	relaxed := op.Kind == ir.OpRelaxedSignal || op.Kind == ir.OpRelaxedWait
	switch op.Kind {
	case ir.OpSemaphoreAcquire:
		g.waits["s"+key] = append(g.waits["s"+key], signalNode{id, false})
	case ir.OpSemaphoreRelease:
		g.signals["s"+key] = append(g.signals["s"+key], signalNode{id, false})
	case ir.OpWait, ir.OpRelaxedWait:
		c := g.n.o.GPUs[rank].Channels[ref]
		from := fmt.Sprintf("c%d.%d", c.Peer, c.Pair)
		g.waits[from] = append(g.waits[from], signalNode{id, relaxed})
	case ir.OpFlush:
		flushed := g.node(event{line: l, op: op})
		g.order(flushed, id)
		g.ports = append(g.ports, portNode{key, l, id, flushed})
		return
	default:
		// What a port was given comes before the signal arrives, not before the block
		// goes on.
		arrives := g.node(event{line: l, op: op})
		g.order(id, arrives)
		g.ports = append(g.ports, portNode{key, l, id, arrives})
		g.signals[key] = append(g.signals[key], signalNode{arrives, relaxed})
	}
}

func (g *oneGraph) data(l, rank, launch int, op *ir.Op, s *lineState) {
	n := g.n
	src, dst := n.o.Sources(op), n.o.Destinations(op)
	async := op.Via == ir.ChannelPort
	packets := op.Kind >= ir.OpCopyToPackets
	name := func(d *ir.Operand, j int32) event0 {
		one := *d
		one.Index, one.Size = d.Index+j, 1
		return event0{at: n.place(d, j), of: fmt.Sprint(n.place(d, 0), d.Size), packets: d.Packets, operand: one}
	}
	for j := range dst[0].Size {
		e := event{line: l, launch: launch, seg: s.seg, op: op, async: async, packets: packets, awaits: map[string]int{}}
		for i := range src {
			e.reads = append(e.reads, name(&src[i], j))
		}
		for i := range dst {
			e.writes = append(e.writes, name(&dst[i], j))
		}
		id := g.node(e)
		if !async {
			g.order(s.met, id)
		}
		for i := range src {
			if w, ok := g.writers[n.place(&src[i], j)]; ok && src[i].Packets {
				g.weak = append(g.weak, [2]int{w, id})
				g.events[id].awaits[n.place(&src[i], j)] = w
			}
		}
		for i := range dst {
			if dst[i].Packets {
				g.writers[n.place(&dst[i], j)] = id
			}
		}
		if !async {
			s.since = append(s.since, id)
			continue
		}
		key := fmt.Sprintf("c%d.%d", rank, n.o.RefsOf(op)[0])
		pushed := g.node(event{line: l, launch: launch, op: op})
		g.order(s.met, pushed)
		g.order(pushed, id)
		if t, ok := s.threads[0]; ok {
			g.order(t, pushed)
		}
		s.since = append(s.since, pushed)
		for _, a := range g.asyncs[key] {
			if x := &g.events[a.done]; a.line == l && (x.op != op || x.launch != launch) {
				g.order(a.done, id)
			}
		}
		g.asyncs[key] = append(g.asyncs[key], push{l, pushed, id})
	}
}

// byPorts orders puts before the signals and flushes that come after their pushes.
func (g *oneGraph) byPorts() {
	strong := closure(len(g.events), g.strong)
	for _, p := range g.ports {
		for _, a := range g.asyncs[p.channel] {
			if before := strong[a.pushed][p.after] || a.line == p.line && a.pushed < p.after; before && !strong[a.done][p.over] {
				g.order(a.done, p.over)
				strong[a.done][p.over] = true
			}
		}
	}
}

// match joins the k-th signal with the k-th wait.
func (g *oneGraph) match() {
	for key, waits := range g.waits {
		skip := 0
		if strings.HasPrefix(key, "s") {
			var rank, sem int
			fmt.Sscanf(key, "sc%d.%d", &rank, &sem)
			skip = int(g.n.o.GPUs[rank].Semaphores[sem])
		}
		for k, w := range waits {
			if k < skip || k-skip >= len(g.signals[key]) {
				continue
			}
			sig := g.signals[key][k-skip]
			edge := [2]int{sig.node, w.node}
			if sig.relaxed || w.relaxed {
				g.weak = append(g.weak, edge)
			} else {
				g.strong = append(g.strong, edge)
			}
		}
	}
}

// closure says of each two of n nodes whether the edges lead from one to the other.
func closure(n int, edges ...[][2]int) [][]bool {
	words := (n + 63) / 64
	rows := make([]uint64, n*words)
	row := func(i int) []uint64 { return rows[i*words : (i+1)*words] }
	for _, list := range edges {
		for _, e := range list {
			row(e[0])[e[1]/64] |= 1 << (e[1] % 64)
		}
	}
	for k := range n {
		for i := range n {
			if row(i)[k/64]>>(k%64)&1 != 0 {
				for w, x := range row(k) {
					row(i)[w] |= x
				}
			}
		}
	}
	before := make([][]bool, n)
	for i := range before {
		before[i] = make([]bool, n)
		for j := range before[i] {
			before[i][j] = row(i)[j/64]>>(j%64)&1 != 0
		}
	}
	return before
}

type touch struct {
	node int
	event0
	write bool
}

// judge orders the accesses of each place by what orders two of them directly, and by
// that again, in launches of the sizes.
func (g *oneGraph) judge(sizes []int, strong, weak [][]bool) (within, across bool) {
	places := map[string][]touch{}
	for id, e := range g.events {
		for write, list := range [][]event0{e.reads, e.writes} {
			for _, x := range list {
				launch := e.launch
				if x.later {
					launch++
				}
				for _, at := range g.n.units(&x, launch, sizes[launch]) {
					places[at] = append(places[at], touch{id, x, write == 1})
				}
			}
		}
	}
	for _, list := range places {
		var edges [][2]int
		for i, a := range list {
			for j, b := range list {
				if i != j && (a.write || b.write) && g.before(a, b, strong, weak) {
					edges = append(edges, [2]int{i, j})
				}
			}
		}
		order := closure(len(list), edges)
		for i, a := range list {
			for j, b := range list[:i] {
				if (a.write || b.write) && !order[i][j] && !order[j][i] {
					x, y := &g.events[a.node], &g.events[b.node]
					if x.launch != y.launch || x.line < 0 || y.line < 0 {
						across = true
					} else {
						within = true
					}
				}
			}
		}
		across = across || g.stale(list, order, strong)
	}
	return within, across
}

// stale reports whether somebody awaits packets where an earlier launch may have left
// plain data that no packets of that launch came over.
func (g *oneGraph) stale(list []touch, order, strong [][]bool) bool {
	gap := 1
	if g.n.o.DoubleScratch {
		gap = 2
	}
	for _, b := range list {
		y := &g.events[b.node]
		w, awaited := y.awaits[b.at]
		if !awaited || b.write || !b.packets || strong[w][b.node] || g.sameThread(w, b) {
			continue
		}
		for i, a := range list {
			if x := &g.events[a.node]; !a.write || a.packets || x.line < 0 || x.launch != y.launch-gap {
				continue
			}
			over := false
			for j, c := range list {
				over = over || c.write && c.packets && g.events[c.node].launch == y.launch-gap && order[i][j]
			}
			if !over {
				return true
			}
		}
	}
	return false
}

// sameThread reports whether the thread that awaits packet b wrote it before.
func (g *oneGraph) sameThread(w int, b touch) bool {
	x, y := &g.events[w], &g.events[b.node]
	if x.line != y.line || x.launch != y.launch || x.seg != y.seg || x.packets != y.packets || w > b.node {
		return false
	}
	for _, e := range x.writes {
		if e.at == b.at && e.of == b.of {
			return true
		}
	}
	return false
}

func (g *oneGraph) before(a, b touch, strong, weak [][]bool) bool {
	x, y := &g.events[a.node], &g.events[b.node]
	switch {
	case a.node == b.node:
		return !a.write && b.write
	case strong[a.node][b.node]:
		return true
	case weak[a.node][b.node] && (!a.write && b.write || x.line < 0):
		return true
	case a.write && a.packets && !b.write && b.packets && x.launch == y.launch && waitsForPackets(y.op.Kind):
		return true
	}
	return x.line >= 0 && x.line == y.line && x.launch == y.launch && x.seg == y.seg && !x.async && !y.async &&
		x.packets == y.packets && a.of == b.of && a.node < b.node
}
