package checker

import (
	"fmt"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
)

// oneNaive judges tiny one-sided programs by brute force: every interleaving for
// deadlocks, and a closure over a graph of threads for races. It shares nothing with
// the checker but the form of a program, and knows only what the random programs of
// onerandom_test.go have: memory and port channels between two ranks, no in-place
// aliasing but index by index, no groups, parts or pipelines.
type oneNaive struct {
	p     *ir.Program
	o     *ir.OneSided
	lines []oneLine
}

type oneLine struct {
	rank int
	ops  []*ir.Op
}

func newOneNaive(p *ir.Program) *oneNaive {
	n := &oneNaive{p: p, o: p.OneSided}
	for r := range n.o.GPUs {
		for _, span := range n.o.GPUs[r].Blocks {
			l := oneLine{rank: r}
			for i := span.Start; i < span.End; i++ {
				l.ops = append(l.ops, &n.o.Ops[i])
			}
			n.lines = append(n.lines, l)
		}
	}
	return n
}

// place names chunk j of an operand.
func (n *oneNaive) place(d *ir.Operand, j int32) string {
	buf := d.Buf
	if buf == ir.Output && n.p.Coll.InPlace {
		buf = ir.Input
	}
	return fmt.Sprintf("%d%c%d", d.Rank, "ios"[buf], d.Index+j)
}

// can reports whether line l can take its next step when each line has taken at[]
// steps, everything else following from that.
func (n *oneNaive) can(l int, at []int) bool {
	line := n.lines[l]
	if at[l] == len(line.ops) {
		return false
	}
	op := line.ops[at[l]]
	count := func(kind func(ir.OpKind) bool, rank int, ref int32) int {
		c := 0
		for k, other := range n.lines {
			for _, x := range other.ops[:at[k]] {
				for _, y := range n.o.RefsOf(x) {
					if other.rank == rank && kind(x.Kind) && y == ref {
						c++
					}
				}
			}
		}
		return c
	}
	is := func(kinds ...ir.OpKind) func(ir.OpKind) bool {
		return func(k ir.OpKind) bool {
			for _, x := range kinds {
				if x == k {
					return true
				}
			}
			return false
		}
	}
	for _, ref := range n.o.RefsOf(op) {
		switch op.Kind {
		case ir.OpWait, ir.OpRelaxedWait:
			c := n.o.GPUs[line.rank].Channels[ref]
			given := count(is(ir.OpSignal, ir.OpRelaxedSignal, ir.OpPutSignal), int(c.Peer), c.Pair)
			if given <= count(is(ir.OpWait, ir.OpRelaxedWait), line.rank, ref) {
				return false
			}
		case ir.OpSemaphoreAcquire:
			v := int(n.o.GPUs[line.rank].Semaphores[ref])
			if v+count(is(ir.OpSemaphoreRelease), line.rank, ref) <= count(is(ir.OpSemaphoreAcquire), line.rank, ref) {
				return false
			}
		case ir.OpBarrier:
			// The first to come passes the step "barrier" only with the other: both are
			// at their barrier of the same turn, or the other is beyond.
			mine := 0
			for _, x := range line.ops[:at[l]] {
				if x.Kind == ir.OpBarrier {
					mine++
				}
			}
			for k, other := range n.lines {
				if other.rank != line.rank || k == l {
					continue
				}
				theirs, here := 0, at[k] < len(other.ops) && other.ops[at[k]].Kind == ir.OpBarrier
				for _, x := range other.ops[:at[k]] {
					if x.Kind == ir.OpBarrier {
						theirs++
					}
				}
				if theirs < mine || theirs == mine && !here {
					return false
				}
			}
		}
	}
	if waitsForPackets(op.Kind) {
		for i := range n.o.Sources(op) {
			d := &n.o.Sources(op)[i]
			for j := range d.Size {
				if d.Packets && !n.written(n.place(d, j), at) {
					return false
				}
			}
		}
	}
	return true
}

func waitsForPackets(k ir.OpKind) bool { return k == ir.OpUnpackPackets || k == ir.OpReducePackets }

func (n *oneNaive) written(place string, at []int) bool {
	for k, other := range n.lines {
		for _, x := range other.ops[:at[k]] {
			for i := range n.o.Destinations(x) {
				d := &n.o.Destinations(x)[i]
				for j := range d.Size {
					if d.Packets && n.place(d, j) == place {
						return true
					}
				}
			}
		}
	}
	return false
}

// stuck reports whether some interleaving doesn't end.
func (n *oneNaive) stuck() bool {
	seen := map[string]bool{}
	todo := [][]int{make([]int, len(n.lines))}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[fmt.Sprint(at)] {
			continue
		}
		seen[fmt.Sprint(at)] = true
		moved, over := false, true
		for l := range n.lines {
			over = over && at[l] == len(n.lines[l].ops)
			if n.can(l, at) {
				moved = true
				next := append([]int(nil), at...)
				next[l]++
				todo = append(todo, next)
			}
		}
		if !moved && !over {
			return true
		}
	}
	return false
}

// event is one thread's part of an operation in one launch.
type event struct {
	line, launch, seg int // line -1-r: the caller of rank r
	op                *ir.Op
	async, packets    bool
	reads, writes     []event0
}

// event0 is a place, and the range that it is part of.
type event0 struct {
	at      string
	of      string
	packets bool
}

type oneGraph struct {
	n              *oneNaive
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

// races builds the graph of the launches and looks for conflicts without order:
// within a launch, and across.
func (n *oneNaive) races(launches int) (within, across bool) {
	g := &oneGraph{n: n, signals: map[string][]signalNode{}, waits: map[string][]signalNode{}, asyncs: map[string][]push{}}
	last := map[int]int{} // of a line: where it met last
	for launch := range launches + 1 {
		g.callers(launch, last, launch == 0)
		if launch == launches {
			break
		}
		g.writers = map[string]int{}
		at := make([]int, len(n.lines))
		ends := make([]lineState, len(n.lines))
		for l := range ends {
			ends[l] = lineState{met: last[l], threads: map[int]int{}}
		}
		barriers := map[int][]int{}
		for moved := true; moved; {
			moved = false
			for l := range n.lines {
				if n.can(l, at) {
					moved = true
					g.step(l, launch, n.lines[l].ops[at[l]], &ends[l], barriers)
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
	return g.judge()
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

// callers puts what happens between launches.
func (g *oneGraph) callers(launch int, last map[int]int, first bool) {
	for r := range g.n.o.GPUs {
		c := event{line: -1 - r, launch: launch}
		coll := g.n.p.Coll
		for i := range coll.OutputChunks(ir.Rank(r)) {
			if _, wanted := coll.Expect(nil, ir.Rank(r), i); wanted && !first {
				d := ir.Operand{Rank: ir.Rank(r), Buf: ir.Output, Index: i}
				c.reads = append(c.reads, event0{at: g.n.place(&d, 0)})
			}
		}
		for i := range coll.InputChunks(ir.Rank(r)) {
			d := ir.Operand{Rank: ir.Rank(r), Buf: ir.Input, Index: i}
			c.writes = append(c.writes, event0{at: g.n.place(&d, 0)})
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
		return event0{n.place(d, j), fmt.Sprint(n.place(d, 0), d.Size), d.Packets}
	}
	for j := range dst[0].Size {
		e := event{line: l, launch: launch, seg: s.seg, op: op, async: async, packets: packets}
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

func closure(n int, edges ...[][2]int) [][]bool {
	before := make([][]bool, n)
	for i := range before {
		before[i] = make([]bool, n)
	}
	for _, list := range edges {
		for _, e := range list {
			before[e[0]][e[1]] = true
		}
	}
	for k := range n {
		for i := range n {
			if before[i][k] {
				for j := range n {
					before[i][j] = before[i][j] || before[k][j]
				}
			}
		}
	}
	return before
}

type touch struct {
	node int
	event0
	write bool
}

// judge orders the accesses of each place by what orders two of them directly,
// and by that again.
func (g *oneGraph) judge() (within, across bool) {
	strong := closure(len(g.events), g.strong)
	weak := closure(len(g.events), g.strong, g.weak)
	places := map[string][]touch{}
	for id, e := range g.events {
		for _, x := range e.reads {
			places[x.at] = append(places[x.at], touch{id, x, false})
		}
		for _, x := range e.writes {
			places[x.at] = append(places[x.at], touch{id, x, true})
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
	}
	return within, across
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
