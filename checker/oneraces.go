package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// inst is one step of one launch that touches data, or a caller's turn.
type inst struct {
	block, seg  int32
	op          int32 // None: a caller
	launch      int32
	begun, over int32 // when
	async       bool  // by a port channel
	class       threadClass
	reads       []packetRead
	// Of one that writes packets: what its block knew. Of one by a port channel:
	// what its thread knew.
	told knowledge
}

// packetRead is where the packets came from that an instance waited for, by unit.
type packetRead struct{ from []unitNode }

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
	comp, epoch int32
}

// continues reports whether loc is right after the place of a, an access of the
// same instance and kind.
func (a *use) continues(inst int32, write bool, loc int32) bool {
	return a.inst == inst && a.write == write && a.place.start+a.place.n == loc
}

// unit is which unit of its instance touches a location.
func (a *use) unit(loc int32) int32 { return (loc - a.place.start) / a.place.step }

// start begins an instance; its accesses follow unit by unit.
func (h *history) start(b, step int32, op *ir.Op, lanes []lane) int32 {
	if h == nil {
		return ir.None
	}
	h.clock++
	p := &h.blocks[b]
	id := int32(len(h.insts))
	in := inst{block: b, seg: p.seg, op: h.m.blocks[b].steps[step].op, launch: h.launch, begun: h.clock,
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
			h.uses = append(h.uses, use{id, l.reads[k], false, l.packets[k], comp, epoch})
			if l.packets[k] {
				from := make([]unitNode, l.reads[k].n)
				for u := range from {
					from[u].inst = ir.None
				}
				in.reads = append(in.reads, packetRead{from})
			}
		}
		for k := range l.writes {
			h.uses = append(h.uses, use{id, l.writes[k], true, l.sends[k], comp, epoch})
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

// touch makes the accesses of one unit of an instance: reads, then writes.
func (h *history) touch(id int32, u int32, l *lane) {
	if h == nil {
		return
	}
	h.clock++
	at, rd := l.firstAccess, l.firstRead
	for k := range l.reads {
		loc := l.reads[k].at(u)
		if l.packets[k] {
			if w := h.writer[h.cell(loc)]; w != ir.None {
				h.insts[id].reads[rd].from[u] = unitNode{h.uses[w].inst, h.uses[w].unit(loc)}
			}
			rd++
			h.read(at, loc+1)
		}
		h.read(at, loc)
		at++
	}
	for k := range l.writes {
		loc := l.writes[k].at(u)
		h.write(at, loc)
		if l.sends[k] {
			h.write(at, loc+1)
		}
		at++
	}
}

// callerTouches lets the caller of rank r read the outputs of the launch that is
// over, if one is, and write the inputs of the next.
func (h *history) callerTouches(r int, b int32, reads bool) {
	m, p := h.m, &h.blocks[b]
	h.clock++
	id := int32(len(h.insts))
	h.insts = append(h.insts, inst{block: b, seg: p.seg, op: ir.None, launch: h.launch, begun: h.clock, over: h.clock, class: noThreads})
	p.insts = append(p.insts, id)
	rank := ir.Rank(r)
	touch := func(loc int32, write bool) {
		last := len(h.uses) - 1
		if last >= 0 && h.uses[last].continues(id, write, loc) {
			h.uses[last].place.n++
		} else {
			h.uses = append(h.uses, use{id, stretch{loc, 1, 1}, write, false, b, p.seg})
			last++
		}
		if write {
			h.write(int32(last), loc)
		} else {
			h.read(int32(last), loc)
		}
	}
	var want []ir.Contribution
	if reads {
		for i := range m.ranks[r].output {
			var demanded bool
			if want, demanded = m.p.Coll.Expect(want[:0], rank, i); demanded {
				touch(m.loc(rank, ir.Place{Buf: ir.Output, Index: i}), false)
			}
		}
	}
	for i := range m.ranks[r].input {
		if m.p.Coll.Holds(rank, i) {
			touch(m.loc(rank, ir.Place{Buf: ir.Input, Index: i}), true)
		}
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
func (h *history) write(a, loc int32) {
	c := h.cell(loc)
	if h.racy != nil {
		h.compare(c, a, loc)
		h.writer[c] = a
		return
	}
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
			h.races.add(h, x, y, loc)
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
	// Memory that a caller wrote is there for everybody once the launch has begun.
	weak := !a.write && b.write || ia.op == ir.None
	k := &h.blocks[ib.block].knowledge
	if ib.async {
		k = &ib.told
	}
	clock := k.strong
	if weak {
		clock = k.weak
	}
	switch {
	case a.comp == b.comp && ia.block == ib.block && (a.epoch < b.epoch || ia.async):
		return true
	case a.comp == ib.block && a.epoch < ib.seg || clock[a.comp] > a.epoch:
		return true
	case ia.block == ib.block && ia.seg == ib.seg && ia.class == ib.class && ia.class != noThreads && a.place == b.place:
		return true
	}
	return weak && h.reaches(a, unitNode{a.inst, a.unit(loc)}, unitNode{b.inst, b.unit(loc)})
}

// raceSet collects races over launches and shapes, each pair of operations once, and
// each operation once with every caller. Of several between the same two the first that
// is lost counts: what is an error must not hide behind what is only a warning.
type raceSet struct {
	seen  map[raceKey]int // the place in found
	found []race
	spent bool // a search was given up
}

// raceKey tells races apart.
type raceKey struct {
	racePair
	caller int32 // among history's blocks, or None
}

// racePair is two operations, or None for a caller; across launches the one of the
// earlier launch comes first.
type racePair struct {
	a, b   int32
	across bool
}

type race struct {
	racePair
	place            string
	aWrites, bWrites bool
	aName, bName     string
	aPos, bPos       diag.Pos
	// lost says that not even relaxed signals order a write before the caller that
	// reads it: nothing keeps the launch of that rank from ending first.
	lost bool
	// mixed says that one has plain data where the other has packets; places name both.
	mixed          bool
	aPlace, bPlace string
}

func newRaceSet() *raceSet { return &raceSet{seen: map[raceKey]int{}} }

func keyOf(h *history, a, b *use) raceKey {
	k := raceKey{racePair: pairOf(h, a, b), caller: ir.None}
	for _, u := range [...]*use{a, b} {
		if in := &h.insts[u.inst]; in.op == ir.None {
			k.caller = in.block
		}
	}
	return k
}

func pairOf(h *history, a, b *use) racePair {
	ia, ib := &h.insts[a.inst], &h.insts[b.inst]
	if ia.launch == ib.launch && ia.op != ir.None && ib.op != ir.None {
		return racePair{min(ia.op, ib.op), max(ia.op, ib.op), false}
	}
	return racePair{ia.op, ib.op, true}
}

func (s *raceSet) add(h *history, a, b *use, loc int32) {
	if h.search.spent >= maxSpent {
		s.spent = true
	}
	key := keyOf(h, a, b)
	n, again := s.seen[key]
	if again && (s.found[n].lost || !mayLose(h, a, b)) {
		return
	}
	r := race{racePair: key.racePair, place: h.m.chunkName(loc, a.packets || b.packets), aWrites: a.write, bWrites: b.write,
		lost: h.loses(a, b, loc)}
	if r.mixed = a.packets != b.packets && h.insts[a.inst].op != ir.None && h.insts[b.inst].op != ir.None; r.mixed {
		r.aPlace, r.bPlace = h.dataName(a, loc), h.dataName(b, loc)
	}
	r.aName, r.aPos = h.nameOf(a)
	r.bName, r.bPos = h.nameOf(b)
	switch {
	case !again:
		s.seen[key] = len(s.found)
		s.found = append(s.found, r)
	case r.lost:
		s.found[n] = r
	}
}

// mayLose reports whether b is a caller's reading of what a writes.
func mayLose(h *history, a, b *use) bool {
	return h.insts[b.inst].op == ir.None && a.write && !b.write
}

// loses reports whether nothing keeps the launch of b, a caller, from ending before a
// has written what b reads.
func (h *history) loses(a, b *use, loc int32) bool {
	if !mayLose(h, a, b) {
		return false
	}
	weak := h.blocks[h.insts[b.inst].block].knowledge.weak
	return weak[a.comp] <= a.epoch && !h.reaches(a, unitNode{a.inst, a.unit(loc)}, unitNode{b.inst, b.unit(loc)})
}

// dataName says what a has at a location: plain data, or packets.
func (h *history) dataName(a *use, loc int32) string {
	what := "plain data, "
	if a.packets {
		what = "packets, "
	}
	return what + h.m.chunkName(loc, a.packets)
}

func (h *history) nameOf(a *use) (string, diag.Pos) {
	in := &h.insts[a.inst]
	if in.op == ir.None {
		return fmt.Sprintf("the caller of rank %d", int(in.block)-len(h.m.blocks)), diag.Pos{}
	}
	return h.m.opName(in.op), h.m.p.Pos(h.m.o.Ops[in.op].Pos)
}

// report turns races into messages, those within a launch first. Where outputs
// are demanded, a race within a launch is an error, and so is a write that the caller
// may read before it is there; a race with the next launch is a warning, since it
// depends on what the caller does in between.
func (s *raceSet) report(rep *Report, f *findings, demanded bool) {
	slices.SortStableFunc(s.found, func(x, y race) int {
		return cmp.Or(cmp.Compare(b2i(x.across), b2i(y.across)), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	for i := range s.found {
		r := &s.found[i]
		code := CodeRace
		if r.across {
			code = CodeRaceAcross
			rep.RacesAcross++
		} else {
			rep.Races++
		}
		if f.admit(code) {
			m := r.message(code)
			if demanded && (!r.across || r.lost) {
				m.Severity = diag.Error
			}
			f.add(m)
		}
	}
	if s.spent && f.admit(CodeUndecided) {
		f.add(diag.Warningf(diag.Pos{}, CodeUndecided,
			"the searches for an order took too long: some of the races may be none"))
	}
}

func (r *race) message(code string) *diag.Message {
	pos := r.bPos
	if !pos.IsValid() {
		pos = r.aPos
	}
	m := diag.Warningf(pos, code, "%s: %s %s it and %s %s it, in no order", r.place,
		r.aName, verb(r.aWrites), r.bName, verb(r.bWrites))
	switch {
	case !r.across:
		m.Suggest("order them: a nop within a thread block, a signal (not a relaxed one) and a wait, or a semaphore, between two")
	case r.a == ir.None:
		m.Text = r.place + ": " + r.bName + " " + verb(r.bWrites) + " it, perhaps before that rank's launch has begun, while " +
			r.aName + " may still write it"
		if r.bWrites {
			m.Text = r.place + ": " + r.bName + " writes it, perhaps before that rank's launch has begun, while " + r.aName + " may still use it"
		}
		m.Suggest("let the rank that owns it signal first")
	case r.b == ir.None:
		m.Text = r.place + ": " + r.aName + " may still " + strip(verb(r.aWrites)) + " it when the launch of that rank is over and " +
			r.bName + " " + verb(r.bWrites) + " it"
		m.Suggest("let the rank that owns it wait for that before it ends, by signals that are not relaxed")
	default:
		m.Text = r.place + ": " + r.bName + " of the next launch " + verb(r.bWrites) + " it while " +
			r.aName + " of this one may still " + strip(verb(r.aWrites)) + " it"
		m.Suggest("let these ranks meet at the start or the end of a launch")
	}
	aWhat, bWhat := "", ""
	if r.mixed {
		aWhat, bWhat = " "+r.aPlace, " "+r.bPlace
		m.Suggest(packetsRoom)
	}
	m.Note(r.aPos, "%s %s%s", r.aName, verb(r.aWrites), aWhat)
	m.Note(r.bPos, "%s %s%s", r.bName, verb(r.bWrites), bWhat)
	return m
}

// packetsRoom helps where plain data and packets meet in scratch.
const packetsRoom = "packets of chunk i fill the scratch of plain chunks 2i and 2i + 1: let plain data be in the first buffers that a rank makes, and packets behind"

func strip(verb string) string { return verb[:len(verb)-1] }

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
