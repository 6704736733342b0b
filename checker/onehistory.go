package checker

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// history follows happens-before through launches of a one-sided program.
//
// A thread block is many threads. What they do to data is in order only across a
// nop or a barrier, where they meet; so what a thread block does between two
// meetings is one segment, and the unit of knowledge is "block b has met for the
// n-th time, so that its segments before n are over". Knowledge travels from a
// signal to a wait and from a release to an acquire, as far as the thread that gives
// has it: its block's at the last meeting, and what it has itself waited for since.
// It becomes the whole block's at the next meeting.
//
// There are two kinds. Strong knowledge orders everything. Weak knowledge travels
// by relaxed signals too, and by packets: they order a later write after an earlier
// read, which needs no memory to be published, and nothing else. Packets carry what
// the one thread knows that wrote them, unit by unit; what doesn't show in the
// blocks' clocks is searched for in the graph of units: see onesearch.go.
//
// A put by a port channel is done by a host some time later. It is over for who
// knows a later signal on its channel, or a later flush.
//
// Between launches each rank has a caller, who reads its outputs and then writes its
// inputs. A launch ends on a rank when its thread blocks do, and waits for nothing
// else: not for other ranks, nor for what ports still carry.
//
// Launches are of one size, and meet where they touch the same location; and of any two
// sizes of the window, see onefrontier.go. With a list of different models there is no
// location that two launches share, and only the latter is asked.
//
// All methods do nothing on a nil history.
type history struct {
	m      *oneModel   // of the present launch
	models []*oneModel // of all launches
	races  *raceSet
	comps  int
	blocks []person  // thread blocks, then one caller a rank
	pushes [][]int32 // of one who puts by a port channel: the segment of each put
	given  []ledger  // channels, then semaphores
	launch int32     // -1 before the first one
	clock  int32     // counts everything that happens

	insts []inst
	uses  []use
	*oneCells
	reads    []readCell
	search   search
	frontier *frontier  // nil in a second pass
	turns    *turnFacts // of this run
	facts    *turnFacts // of runs before, or nil

	// A first pass finds the locations that have a race, a second one, that looks at
	// nothing else, all races there.
	found map[int32]bool
	racy  map[int32]bool
	pasts map[int32][]past
}

// knowledge is what has met how often, as one thread or block knows it.
type knowledge struct {
	strong, weak []int32 // shared once handed on: joins copy
	from         []pnode // what else it comes from, for the search
}

// person is a thread block or a caller.
type person struct {
	knowledge
	seg     int32
	threads []knowledge // of thread j: what it alone knows since the last meeting
	insts   []int32
	// Of segment s: where its instances begin, when it ended, and what its threads
	// learned in it.
	firstInst []int32
	ended     []int32
	learned   [][]pnode
}

// allThreads stands for the threads of a block that are no particular one.
const allThreads = 64

// pnode is a block at the start of a segment.
type pnode struct{ block, seg int32 }

// note is what one signal or release carries.
type note struct {
	knowledge
	block   int32
	nth     int32 // of the block's on a shared channel or semaphore, from 1 on
	relaxed bool
}

// oneCells is what is known of each location: of all launches of one shape, or of one
// launch.
type oneCells struct {
	writer []int32 // the last use that wrote, or None
	reader []int32 // the reads since, a list in reads
	// Where there are packets: what they were written over that could pass for them,
	// or None; and the value that was written last.
	under, value []int32
}

func newOneCells(m *oneModel) *oneCells {
	n := m.nLocs
	if m.o.DoubleScratch {
		n *= 2
	}
	c := &oneCells{writer: nones(n), reader: nones(n)}
	if m.packets {
		c.under, c.value = nones(n), nones(n)
	}
	return c
}

func nones(n int32) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = ir.None
	}
	return list
}

// ledger holds the notes of a channel or semaphore that nobody has taken yet, or all
// of them where several give or take.
type ledger struct {
	*oneCount // of the present launch
	notes     []note
	took      int32
	// Where several give or take: what each block gives in the launches so far, this one
	// included; and their order.
	made         map[int32]int32
	gives, takes *turnOrder
	facts        *turnOrder // of the gives of runs before, or nil
	others       []int32    // of each note: how many others may come before it, in the launches so far
}

func (l *ledger) shared() bool { return len(l.givers) > 1 || len(l.takers) > 1 }

// newHistory is for launches of the models in turn. The models differ in their shapes
// alone.
func newHistory(models []*oneModel, races *raceSet, racy map[int32]bool) *history {
	m := models[0]
	nb, pushers := len(m.blocks), int32(0)
	for _, m := range models {
		pushers = m.numberPushers()
	}
	h := &history{m: m, models: models, races: races, comps: nb + len(m.ranks) + int(pushers), pushes: make([][]int32, pushers),
		launch: -1, oneCells: newOneCells(m), found: map[int32]bool{}, racy: racy, pasts: map[int32][]past{}}
	h.blocks = make([]person, nb+len(m.ranks))
	for b := range h.blocks {
		p := &h.blocks[b]
		p.strong, p.weak = make([]int32, h.comps), make([]int32, h.comps)
		p.firstInst = []int32{0}
		p.learned = [][]pnode{nil}
	}
	h.given, h.turns = make([]ledger, len(m.chans)+len(m.sems)), newTurnFacts(m)
	if racy == nil {
		h.frontier = newFrontier(h)
	}
	return h
}

// launches is how many launches touch all memory twice: with two halves of scratch
// the third meets the first.
func (m *oneModel) launches() int {
	if m.o.DoubleScratch {
		return 3
	}
	return 2
}

func (h *history) caller(r int) int32 { return int32(len(h.m.blocks) + r) }

// boundary ends a launch, if there was one, and begins the next, if there is one.
func (h *history) boundary() {
	this, cells := h.m, h.oneCells
	next, nextCells := this, cells
	if n := int(h.launch) + 1; n > 0 && n < len(h.models) && h.models[n] != this {
		next, nextCells = h.models[n], newOneCells(h.models[n])
	}
	for r := range this.ranks {
		c := h.caller(r)
		own := &this.rank[r]
		all := []int32{c}
		for b := own.firstBlock; b < own.endBlock; b++ {
			all = append(all, b)
		}
		h.barrier(all)
		id := h.callerBegins(c)
		h.m, h.oneCells = this, cells
		if h.launch >= 0 {
			h.callerReads(id, ir.Rank(r))
			h.frontier.judge(h, id)
			h.frontier.close(h, ir.Rank(r))
		}
		h.m, h.oneCells = next, nextCells
		h.callerWrites(id, ir.Rank(r))
		h.frontier.judge(h, id)
		h.barrier(all)
	}
	h.m, h.oneCells = next, nextCells
	h.launch++
	h.enter()
}

// enter tells the ledgers what the launch that begins gives.
func (h *history) enter() {
	for i := range h.given {
		l := &h.given[i]
		if n := i - len(h.m.chans); n >= 0 {
			l.oneCount = &h.m.sems[n]
		} else {
			l.oneCount = &h.m.chans[i].oneCount
		}
		if !l.shared() {
			continue
		}
		if l.made == nil {
			l.made = map[int32]int32{}
		}
		l.gives, l.takes = &h.turns.gives[i], &h.turns.takes[i]
		if h.facts != nil {
			l.facts = &h.facts.gives[i]
		}
		for _, g := range l.givers {
			l.made[g.block] += g.n
		}
		l.count()
	}
}

// meet ends b's segment: all its threads know what each of them learned.
func (h *history) meet(b int32) {
	if h == nil {
		return
	}
	p := &h.blocks[b]
	h.clock++
	for i := range p.threads {
		t := &p.threads[i]
		if t.strong != nil {
			p.strong = joined(p.strong, t.strong)
		}
		if t.weak != nil {
			p.weak = joined(p.weak, t.weak)
		}
		*t = knowledge{}
	}
	p.seg++
	p.ended = append(p.ended, h.clock)
	p.firstInst = append(p.firstInst, int32(len(p.insts)))
	p.learned = append(p.learned, nil)
}

// joined is the maximum of two clocks. Either may be shared, so that a third is made
// unless one of them is it.
func joined(a, b []int32) []int32 {
	if len(a) == 0 || len(b) == 0 || &a[0] == &b[0] {
		return a
	}
	more, less := false, false
	for i, v := range b {
		more, less = more || v > a[i], less || v < a[i]
	}
	switch {
	case !more:
		return a
	case !less:
		return b
	}
	c := slices.Clone(a)
	for i, v := range b {
		c[i] = max(c[i], v)
	}
	return c
}

// with is clock a with entry i raised to v.
func with(a []int32, i int, v int32) []int32 {
	if a[i] >= v {
		return a
	}
	c := slices.Clone(a)
	c[i] = v
	return c
}

// tell is what thread j of b hands on, on port channel c if that is not None.
func (h *history) tell(b, j, c int32) knowledge {
	p := &h.blocks[b]
	// The block's own entry is only filled in where it is handed on.
	k := knowledge{strong: with(p.strong, int(b), p.seg), weak: with(p.weak, int(b), p.seg),
		from: []pnode{{b, p.seg}}}
	p.strong, p.weak = k.strong, k.weak
	if j >= 0 && int(j) < len(p.threads) && p.threads[j].weak != nil {
		t := &p.threads[j]
		if t.strong != nil {
			k.strong = joined(k.strong, t.strong)
		}
		k.weak = joined(k.weak, t.weak)
		k.from = append(k.from, t.from...)
	}
	return h.arrived(k, b, c)
}

// arrived adds to what b hands on, by channel c, the puts that a port carries out
// before that: b's own, and others' that were made before as far as k knows.
func (h *history) arrived(k knowledge, b, c int32) knowledge {
	if c == ir.None {
		return k
	}
	ch := &h.m.chans[c]
	for i, p := range ch.pushers {
		n := ch.push + int32(i)
		made := int32(len(h.pushes[n]))
		for p.block != b && made > 0 && h.pushes[n][made-1] >= k.strong[p.block] {
			made--
		}
		at := len(h.blocks) + int(n)
		k.strong, k.weak = with(k.strong, at, made), with(k.weak, at, made)
	}
	return k
}

// learn gives thread j of b knowledge.
func (h *history) learn(b, j int32, k knowledge) {
	p := &h.blocks[b]
	for len(p.threads) <= int(j) {
		p.threads = append(p.threads, knowledge{})
	}
	t := &p.threads[j]
	if k.strong != nil {
		if t.strong == nil {
			t.strong = k.strong
		} else {
			t.strong = joined(t.strong, k.strong)
		}
	}
	if t.weak == nil {
		t.weak = k.weak
	} else {
		t.weak = joined(t.weak, k.weak)
	}
	t.from = append(t.from, k.from...)
	p.learned[p.seg] = append(p.learned[p.seg], k.from...)
}

func (h *history) signal(b, j, c int32, relaxed bool) {
	if h == nil {
		return
	}
	h.clock++
	h.give(&h.given[c], note{knowledge: h.tell(b, j, c), block: b, relaxed: relaxed})
}

func (h *history) release(b, j, s int32) {
	if h == nil {
		return
	}
	h.clock++
	h.give(&h.given[len(h.m.chans)+int(s)], note{knowledge: h.tell(b, j, ir.None), block: b})
}

func (h *history) give(l *ledger, n note) {
	if l.shared() {
		n.nth = l.gives.note(n.block, h.blocks[n.block].seg, n.weak).nth
		l.others = append(l.others, l.facts.others(n.block, n.nth, l.made))
	}
	if n.relaxed {
		n.strong = nil
	}
	l.notes = append(l.notes, n)
}

func (h *history) wait(b, j, c int32, relaxed bool) {
	if h != nil {
		h.take(&h.given[c], b, j, relaxed)
	}
}

func (h *history) acquire(b, j, s int32) {
	if h != nil {
		h.take(&h.given[len(h.m.chans)+int(s)], b, j, false)
	}
}

// take learns from what must have been given before a taker gets this far.
func (h *history) take(l *ledger, b, j int32, relaxed bool) {
	h.clock++
	l.took++
	hand := func(n *note) {
		k := n.knowledge
		if relaxed {
			k.strong = nil
		}
		h.learn(b, j, k)
	}
	if !l.shared() {
		// One giver and one taker: the k-th taken is the k-th given. Earlier ones were
		// learned from when they were taken, but perhaps by another thread.
		if n := l.took - l.initial; n >= 1 && int(n) <= len(l.notes) {
			hand(&l.notes[n-1])
			l.notes[n-1] = note{}
		}
		return
	}
	turn := l.takes.note(b, h.blocks[b].seg, h.tell(b, j, ir.None).weak)
	need := turn.nth - l.initial
	for _, n := range turn.before {
		need += n
	}
	for i := range l.notes {
		if need > l.others[i] {
			hand(&l.notes[i])
		}
	}
}

// count fills in others, of notes of launches before too: more have been made since.
func (l *ledger) count() {
	for i := range l.notes {
		l.others[i] = l.facts.others(l.notes[i].block, l.notes[i].nth, l.made)
	}
}

// flush tells thread j of b that what channel c was given has arrived.
func (h *history) flush(b, j, c int32) {
	if h == nil {
		return
	}
	k := h.arrived(h.tell(b, j, ir.None), b, c)
	k.from = nil
	h.learn(b, j, k)
}

// barrier lets blocks meet, each with its own threads and all with each other.
func (h *history) barrier(list []int32) {
	if h == nil {
		return
	}
	var all knowledge
	for _, b := range list {
		h.meet(b)
		k := h.tell(b, ir.None, ir.None)
		if all.strong == nil {
			all = knowledge{strong: slices.Clone(k.strong), weak: slices.Clone(k.weak)}
		}
		for i := range k.strong {
			all.strong[i], all.weak[i] = max(all.strong[i], k.strong[i]), max(all.weak[i], k.weak[i])
		}
		all.from = append(all.from, k.from...)
	}
	if len(list) == 1 {
		return
	}
	for _, b := range list {
		h.learn(b, 0, all)
		h.meet(b)
	}
}
