package checker

import "github.com/mscclsh/mscclsh/ir"

// inst is one step of one launch that touches data, or a caller's turn.
type inst struct {
	block, seg  int32
	op          int32 // None: a caller
	step        int32 // of the block's
	launch      int32 // of a caller, the one that is over; -1 before the first
	begun, over int32 // when
	async       bool  // by a port channel
	class       threadClass
	reads       []packetRead
	// Of one that writes packets: what its block knew. Of one by a port channel:
	// what its thread knew.
	told knowledge
	// Of one that is not over, for the frontier: which accesses are the first of their
	// launch, and which packets nothing but their flags tell to be there.
	firsts, flagged []usedUnit
}

// packetRead is where the packets came from that a lane of an instance waited for, by unit.
type packetRead struct {
	lane int32
	from []unitNode
}

// threadClass says which thread does which element: operations of one class on the
// same range give the same element to the same thread.
type threadClass uint8

const (
	plainThreads  threadClass = iota // 16 bytes each
	packetThreads                    // the data of one packet each
	switchThreads
	noThreads // a port, a caller
)

func classOf(op *ir.Op) threadClass {
	switch {
	case onPort(op):
		return noThreads
	case op.Via == ir.ChannelSwitch || op.Kind >= ir.OpGroupStore && op.Kind <= ir.OpGroupReduceStore:
		return switchThreads
	case op.Kind >= ir.OpCopyToPackets && op.Kind <= ir.OpReduceCopySendPackets:
		return packetThreads
	}
	return plainThreads
}

// use is one place that an instance reads or writes. It is over for who knows
// entry comp to be more than epoch.
type use struct {
	inst        int32
	place       stretch
	write       bool
	packets     bool
	operand     int32 // of OneSided.Operands; None: a caller
	lane        int32 // of the instance
	comp, epoch int32
}

// continues reports whether loc is right after the place of a, an access of the
// same instance and kind.
func (a *use) continues(inst int32, write bool, loc int32) bool {
	return a.inst == inst && a.write == write && a.place.start+a.place.n == loc
}

// unit is which unit of its instance touches a location.
func (a *use) unit(loc int32) int32 { return (loc - a.place.start) / a.place.step }

func (a *use) node(loc int32) unitNode { return unitNode{a.inst, a.lane, a.unit(loc)} }

// start begins an instance; its accesses follow unit by unit.
func (h *history) start(b, step int32, op *ir.Op, lanes []lane) int32 {
	if h == nil {
		return ir.None
	}
	h.clock++
	p := &h.blocks[b]
	id := int32(len(h.insts))
	in := inst{block: b, seg: p.seg, op: h.m.blocks[b].steps[step].op, step: step, launch: h.launch, begun: h.clock,
		class: classOf(op), async: onPort(op)}
	sends := in.async
	for i := range lanes {
		l := &lanes[i]
		l.firstAccess, l.firstRead = int32(len(h.uses)), int32(len(in.reads))
		comp, epoch := b, p.seg
		if in.async {
			c := h.m.rank[h.m.blocks[b].rank].firstChan + h.m.o.RefsOf(op)[i]
			comp, epoch = h.push(b, c)
		}
		for k := range l.reads {
			h.uses = append(h.uses, use{id, l.reads[k], false, l.packets[k], l.readOf[k], int32(i), comp, epoch})
			if l.packets[k] {
				from := make([]unitNode, l.reads[k].n)
				for u := range from {
					from[u].inst = ir.None
				}
				in.reads = append(in.reads, packetRead{int32(i), from})
			}
		}
		for k := range l.writes {
			h.uses = append(h.uses, use{id, l.writes[k], true, l.sends[k], l.writeOf[k], int32(i), comp, epoch})
			sends = sends || l.sends[k]
		}
	}
	if sends {
		j := int32(ir.None)
		if in.async && len(lanes) == 1 {
			j = 0
		}
		in.told = h.tell(b, j, ir.None)
	}
	h.insts = append(h.insts, in)
	p.insts = append(p.insts, id)
	return id
}

// push notes a put by b on port channel c: its entry of the clocks and its number.
func (h *history) push(b, c int32) (comp, epoch int32) {
	ch := &h.m.chans[c]
	n := ch.push
	for ch.pushers[n-ch.push].block != b {
		n++
	}
	h.pushes[n] = append(h.pushes[n], h.blocks[b].seg)
	return int32(len(h.blocks)) + n, int32(len(h.pushes[n]) - 1)
}

// finish ends an instance. What it learned from packets all threads know when they
// meet.
func (h *history) finish(id int32) {
	if h == nil {
		return
	}
	h.clock++
	h.frontier.judge(h, id)
	in := &h.insts[id]
	in.over = h.clock
	last := int32(ir.None)
	for k := range in.reads {
		for _, w := range in.reads[k].from {
			if w.inst != ir.None && w.inst != last {
				last = w.inst
				h.learn(in.block, allThreads, knowledge{weak: h.insts[w.inst].told.weak})
			}
		}
	}
}

// touch makes the accesses of one unit of an instance: reads, then writes of a value.
func (h *history) touch(id int32, u int32, l *lane, value int32) {
	if h == nil {
		return
	}
	h.clock++
	at, rd := l.firstAccess, l.firstRead
	for k := range l.reads {
		loc := l.reads[k].at(u)
		if l.packets[k] {
			if w := h.writer[h.cell(loc)]; w != ir.None {
				h.insts[id].reads[rd].from[u] = h.uses[w].node(loc)
				h.trust(w, at, loc)
			}
			rd++
			h.read(at, loc+1)
		}
		h.read(at, loc)
		at++
	}
	for k := range l.writes {
		loc := l.writes[k].at(u)
		h.write(at, loc, value)
		if l.sends[k] {
			h.write(at, loc+1, value)
		}
		at++
	}
}

// callerBegins begins a caller's turn between two launches, or before the first.
func (h *history) callerBegins(c int32) int32 {
	h.clock++
	p := &h.blocks[c]
	id := int32(len(h.insts))
	h.insts = append(h.insts, inst{block: c, seg: p.seg, op: ir.None, launch: h.launch, begun: h.clock, over: h.clock, class: noThreads})
	p.insts = append(p.insts, id)
	return id
}

// callerReads lets a caller read the outputs of the launch that is over.
func (h *history) callerReads(id int32, rank ir.Rank) {
	var want []ir.Contribution
	for i := range h.m.ranks[rank].output {
		var demanded bool
		if want, demanded = h.m.p.Coll.Expect(want[:0], rank, i); demanded {
			h.callerTouches(id, h.m.loc(rank, ir.Place{Buf: ir.Output, Index: i}), false)
		}
	}
}

// callerWrites lets a caller write the inputs of the next launch.
func (h *history) callerWrites(id int32, rank ir.Rank) {
	for i := range h.m.ranks[rank].input {
		if h.m.p.Coll.Holds(rank, i) {
			h.callerTouches(id, h.m.loc(rank, ir.Place{Buf: ir.Input, Index: i}), true)
		}
	}
}

func (h *history) callerTouches(id, loc int32, write bool) {
	in := &h.insts[id]
	last := len(h.uses) - 1
	if last >= 0 && h.uses[last].continues(id, write, loc) {
		h.uses[last].place.n++
	} else {
		h.uses = append(h.uses, use{id, stretch{loc, 1, 1}, write, false, ir.None, 0, in.block, in.seg})
		last++
	}
	if write {
		h.write(int32(last), loc, ir.None)
	} else {
		h.read(int32(last), loc)
	}
}

// cell is where the history of a location is kept: of double scratch, each half has
// its own.
func (h *history) cell(loc int32) int32 {
	if !h.m.o.DoubleScratch || h.launch%2 == 0 {
		return loc
	}
	if _, buf, _ := h.m.place(loc); buf == "scratch" {
		return loc + h.m.nLocs
	}
	return loc
}

// read asks whether the last write came before.
func (h *history) read(a, loc int32) {
	c := h.cell(loc)
	if h.racy != nil {
		h.compare(c, a, loc)
		return
	}
	if w := h.writer[c]; w != ir.None {
		h.ask(w, a, loc)
	}
	h.first(c, a, loc)
	in := &h.insts[h.uses[a].inst]
	if n := h.reader[c]; n != ir.None {
		// A read after a meeting stands for one of the same block before it.
		old := &h.uses[h.reads[n].step]
		if prev := &h.insts[old.inst]; prev.block == in.block && !prev.async && prev.seg < in.seg {
			h.reads[n].step = a
			return
		}
	}
	h.reads = append(h.reads, readCell{a, h.reader[c]})
	h.reader[c] = int32(len(h.reads) - 1)
}

// write asks for order with the reads since the last write; with that write itself
// only if there are none: who comes after a read comes after the write that it saw.
// If all these pairs are in order, then by transitivity all others are.
func (h *history) write(a, loc, value int32) {
	c := h.cell(loc)
	if h.racy != nil {
		h.compare(c, a, loc)
		h.writer[c] = a
		return
	}
	h.first(c, a, loc)
	h.cover(c, a, value)
	chained := false
	for n := h.reader[c]; n != ir.None; n = h.reads[n].next {
		chained = h.ask(h.reads[n].step, a, loc) || chained
	}
	if w := h.writer[c]; w != ir.None && !chained {
		h.ask(w, a, loc)
	}
	h.writer[c], h.reader[c] = a, ir.None
}

// ask marks a location where access x didn't come before access y in every order of
// events.
func (h *history) ask(x, y, loc int32) bool {
	a, b := &h.uses[x], &h.uses[y]
	ok := h.inOrder(a, b, loc)
	if !ok {
		h.found[h.cell(loc)] = true
	}
	return ok
}

// past is one access of a location that has a race, and which of the earlier ones
// came before it: directly, or before one that did.
type past struct {
	use    int32
	before []bool
}

// compare looks at all pairs of accesses of a location that has a race.
func (h *history) compare(c, a, loc int32) {
	if !h.racy[c] {
		return
	}
	list := h.pasts[c]
	now := past{a, make([]bool, len(list))}
	for i := len(list) - 1; i >= 0; i-- {
		x, y := &h.uses[list[i].use], &h.uses[a]
		if now.before[i] || !x.write && !y.write || !h.inOrder(x, y, loc) {
			continue
		}
		now.before[i] = true
		for k, before := range list[i].before {
			now.before[k] = now.before[k] || before
		}
	}
	for i := range list {
		if x, y := &h.uses[list[i].use], &h.uses[a]; !now.before[i] && (x.write || y.write) {
			h.races.add(h, x, y, loc, false)
		}
	}
	h.pasts[c] = append(list, now)
}

func (h *history) inOrder(a, b *use, loc int32) bool {
	ia, ib := &h.insts[a.inst], &h.insts[b.inst]
	switch {
	case a.inst == b.inst: // one thread does a unit, in order
		return ia.op == ir.None || a.unit(loc) == b.unit(loc)
	case a.write && a.packets && !b.write && b.packets && ia.launch == ib.launch && ib.op != ir.None &&
		opRules[h.m.o.Ops[ib.op].Kind].blocks:
		return true // it waits for exactly this
	}
	weak := h.weakly(a, b)
	if h.known(a, b, weak) || ia.block == ib.block && ia.seg == ib.seg && ia.class == ib.class && ia.class != noThreads && a.place == b.place {
		return true
	}
	return weak && h.reaches(a, a.node(loc), b.node(loc))
}

// weakly reports whether weak knowledge of a is enough for b: of a read before a write,
// and of what a caller wrote, as memory is there for everybody once a launch has begun.
func (h *history) weakly(a, b *use) bool {
	return !a.write && b.write || h.insts[a.inst].op == ir.None
}

// known reports whether the clock of b's block says that a is over.
func (h *history) known(a, b *use, weak bool) bool {
	ia, ib := &h.insts[a.inst], &h.insts[b.inst]
	switch clock := h.clockOf(ib, weak); {
	case a.comp == b.comp && ia.block == ib.block && (a.epoch < b.epoch || ia.async):
		return true
	case a.comp == ib.block && a.epoch < ib.seg || clock[a.comp] > a.epoch:
		return true
	}
	return false
}

// clockOf is what is known when an instance begins that is not over.
func (h *history) clockOf(in *inst, weak bool) []int32 {
	k := &h.blocks[in.block].knowledge
	if in.async {
		k = &in.told
	}
	if weak {
		return k.weak
	}
	return k.strong
}
