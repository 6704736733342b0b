package checker

import (
	"cmp"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// frontier judges launches that follow one another with any two sizes of the window.
//
// Where chunk i lies depends on the size, so that a place of one launch may meet any
// other place of the same memory in the next, and which pairs may is for onesizes.go to
// say. What happens before what doesn't depend on sizes but for shapes, which are run in
// all orders. So each access of a launch is compared with those of the launch before in
// the same memory: a rank's input, its output, its scratch, or one half of a scratch in
// two, then with the launch before that one. The halves lie apart, whatever the sizes.
//
// Only the frontier of a launch counts. Within a launch that has no races the accesses of
// a location follow each other up to reads beside reads, and who comes after the last
// ones comes after all; so of the launch before these are the last write and the reads
// behind it, and of the launch after it the reads before the first write and that write.
// With a race within a launch pairs of sizes are not judged.
//
// Launches further apart need no look. Let x be of launch L, y the same access as z in
// launch L+1 with the size that z has in launch L+2. Where x meets z it meets y, so y
// comes after x, and all that a rank does in a launch comes before what it does in the
// next: y before z. With two halves the same holds for every other launch.
//
// Packets are told by their flag alone, which is the number of the launch. Flags of
// other launches lie where flags do, whatever the sizes, and are other numbers. But plain
// data that was written there may be any number: it must not be where packets are awaited
// that nothing else tells to be there.
type frontier struct {
	sizes sizeRange
	ends  [][memories]memoryEnd // of a rank's memories, as the last launch there left them
	comps []epochs              // of a component, while a memory is summed up
	memo  map[pathKey]bool
}

// The memories of a rank; of scratch in one piece the first half is all.
const (
	inputMemory = iota
	outputMemory
	scratchMemory
	otherHalf
	memories
)

// usedUnit is one unit of a use.
type usedUnit struct{ use, unit int32 }

// spanned is units lo to hi-1 of a use.
type spanned struct{ use, lo, hi int32 }

// memoryEnd is what the last launch that had a memory leaves there.
type memoryEnd struct {
	writes  []spanned // last writes that nobody has read
	reads   []spanned // reads since the last write
	written []spanned // all last writes
	plain   []spanned // those of plain data
	latest  []epochs
}

// epochs are the latest epochs of a component of the clocks: see use. -1 is none.
type epochs struct{ comp, write, read, written int32 }

func newFrontier(h *history) *frontier {
	f := &frontier{sizes: h.m.sizes, ends: make([][memories]memoryEnd, len(h.m.ranks)), comps: make([]epochs, h.comps), memo: map[pathKey]bool{}}
	for i := range f.comps {
		f.comps[i] = epochs{int32(i), -1, -1, -1}
	}
	return f
}

// on reports whether there are two sizes to judge.
func (f *frontier) on() bool { return f != nil && f.sizes.least < f.sizes.most }

// slot is the launch to whose size a use belongs. A caller reads the outputs of the one
// that is over, and writes the inputs of the next.
func (h *history) slot(u *use) int32 {
	in := &h.insts[u.inst]
	if in.op == ir.None && u.write {
		return in.launch + 1
	}
	return in.launch
}

// modelOf is the model of the launch of a use.
func (h *history) modelOf(u *use) *oneModel {
	return h.models[min(int(h.slot(u)), len(h.models)-1)]
}

// memory is where a location is: a rank's memory, in launch slot.
func (m *oneModel) memory(loc, slot int32) (ir.Rank, int) {
	r := m.rankOf(loc)
	ri := &m.ranks[r]
	switch i := loc - ri.base; {
	case i < ri.input:
		return r, inputMemory
	case i < ri.input+ri.output:
		return r, outputMemory
	case m.o.DoubleScratch && slot%2 != 0:
		return r, otherHalf
	}
	return r, scratchMemory
}

// first notes an access that comes before all writes of its launch to the location, or
// is the first of them.
func (h *history) first(c, a, loc int32) {
	if !h.frontier.on() {
		return
	}
	u := &h.uses[a]
	slot := h.slot(u)
	if w := h.writer[c]; slot == 0 || w != ir.None && h.slot(&h.uses[w]) >= slot {
		return
	}
	in := &h.insts[u.inst]
	in.firsts = append(in.firsts, usedUnit{a, u.unit(loc)})
}

// close takes down what a launch leaves in the memories of a rank, when its caller has
// read the outputs.
func (f *frontier) close(h *history, r ir.Rank) {
	if !f.on() {
		return
	}
	ri, k := &h.m.ranks[r], h.launch
	for from := ri.base; from < ri.base+ri.input+ri.output+ri.extra; {
		_, memory := h.m.memory(from, k)
		size := [...]int32{ri.input, ri.output, ri.extra, ri.extra}[memory]
		f.ends[r][memory] = f.end(h, from, from+size)
		from += size
	}
}

// end is what the present launch leaves in locations from to to-1.
func (f *frontier) end(h *history, from, to int32) memoryEnd {
	var writes, reads, written, plain []usedUnit
	k := h.launch
	for loc := from; loc < to; loc++ {
		c := h.cell(loc)
		alone := true
		for n := h.reader[c]; n != ir.None; n = h.reads[n].next {
			u := &h.uses[h.reads[n].step]
			if h.slot(u) != k {
				break
			}
			alone = false
			reads = append(reads, usedUnit{h.reads[n].step, u.unit(loc)})
		}
		w := h.writer[c]
		if w == ir.None || h.slot(&h.uses[w]) != k {
			continue
		}
		u := usedUnit{w, h.uses[w].unit(loc)}
		if written = append(written, u); alone {
			writes = append(writes, u)
		}
		if h.m.packets && !h.uses[w].packets {
			plain = append(plain, u)
		}
	}
	e := memoryEnd{writes: spans(writes), reads: spans(reads), written: spans(written), plain: spans(plain)}
	f.latest(h, &e)
	return e
}

// spans sorts units and joins neighbors.
func spans(list []usedUnit) []spanned {
	slices.SortFunc(list, func(a, b usedUnit) int {
		return cmp.Or(cmp.Compare(a.use, b.use), cmp.Compare(a.unit, b.unit))
	})
	var out []spanned
	for _, u := range list {
		if n := len(out) - 1; n >= 0 && out[n].use == u.use && u.unit <= out[n].hi {
			out[n].hi = max(out[n].hi, u.unit+1)
			continue
		}
		out = append(out, spanned{u.use, u.unit, u.unit + 1})
	}
	return out
}

// latest fills in the latest epochs of a memory's components, ascending.
func (f *frontier) latest(h *history, e *memoryEnd) {
	var seen []int32
	note := func(list []spanned, epoch func(*epochs) *int32) {
		for _, s := range list {
			u := &h.uses[s.use]
			t := &f.comps[u.comp]
			if t.write < 0 && t.read < 0 && t.written < 0 {
				seen = append(seen, u.comp)
			}
			x := epoch(t)
			*x = max(*x, u.epoch)
		}
	}
	note(e.writes, func(t *epochs) *int32 { return &t.write })
	note(e.reads, func(t *epochs) *int32 { return &t.read })
	note(e.written, func(t *epochs) *int32 { return &t.written })
	slices.Sort(seen)
	for _, c := range seen {
		e.latest = append(e.latest, f.comps[c])
		f.comps[c] = epochs{c, -1, -1, -1}
	}
}

// judge compares an instance, whose accesses have been made but which is not over yet,
// with what the launch before left.
func (f *frontier) judge(h *history, id int32) {
	if !f.on() {
		return
	}
	in := &h.insts[id]
	for _, y := range spans(in.firsts) {
		r, memory := h.m.memory(h.uses[y.use].place.start, h.slot(&h.uses[y.use]))
		if e := &f.ends[r][memory]; !f.allOver(h, &h.uses[y.use], e) {
			f.compare(h, e, y)
		}
	}
	for _, y := range spans(in.flagged) {
		r, memory := h.m.memory(h.uses[y.use].place.start, in.launch)
		for _, x := range f.ends[r][memory].plain {
			f.meet(h, x, y, true)
		}
	}
	in.firsts, in.flagged = nil, nil
}

// allOver reports whether the clock of y alone says that all that y could meet is over.
func (f *frontier) allOver(h *history, y *use, e *memoryEnd) bool {
	in := &h.insts[y.inst]
	strong, weak := h.clockOf(in, false), h.clockOf(in, true)
	over := func(comp, epoch int32, clock []int32) bool {
		switch {
		case epoch < 0:
		case comp == y.comp && (epoch < y.epoch || int(comp) >= len(h.blocks)):
		case comp == in.block && epoch < in.seg:
		case int(comp) >= len(h.m.blocks) && int(comp) < len(h.blocks): // a caller
			return weak[comp] > epoch
		default:
			return clock[comp] > epoch
		}
		return true
	}
	for i := range e.latest {
		t := &e.latest[i]
		if y.write && !(over(t.comp, t.write, strong) && over(t.comp, t.read, weak)) || !y.write && !over(t.comp, t.written, strong) {
			return false
		}
	}
	return true
}

// compare looks at all pairs of y and what a memory's end has.
func (f *frontier) compare(h *history, e *memoryEnd, y spanned) {
	lists := [][]spanned{e.written}
	if h.uses[y.use].write {
		lists = [][]spanned{e.writes, e.reads}
	}
	for _, list := range lists {
		for _, x := range list {
			a, b := &h.uses[x.use], &h.uses[y.use]
			if a.inst != b.inst && !h.known(a, b, h.weakly(a, b)) {
				f.meet(h, x, y, false)
			}
		}
	}
}

// meet looks for two sizes at which x and y, in no order that clocks show, meet. Plain
// says that no order helps.
func (f *frontier) meet(h *history, x, y spanned, plain bool) {
	a, b := &h.uses[x.use], &h.uses[y.use]
	key := keyOf(h, a, b)
	if h.races.sized[key] || !f.sizes.mayMeet(h.ground(x), h.ground(y)) {
		return
	}
	for u := x.lo; u < x.hi; u++ {
		ux := spanned{x.use, u, u + 1}
		for v := y.lo; v < y.hi; v++ {
			uy := spanned{y.use, v, v + 1}
			alike := plain || !h.throughUnits(b) // all units of y come after the same
			if alike {
				uy = y
			}
			if plain || !h.weakly(a, b) || !f.path(h, ux, uy) {
				w, ok := f.sizes.meet(h.ground(ux), h.ground(uy))
				if ok {
					h.races.addSized(h, key, ux, uy, w, plain)
					return
				}
			}
			if alike {
				break
			}
		}
	}
}

// throughUnits reports whether what is known to a unit of b depends on the unit.
func (h *history) throughUnits(b *use) bool {
	in := &h.insts[b.inst]
	return len(in.reads) > 0 && !in.async
}

// pathKey is a unit, and what it is asked of: a segment of a block, or a unit of a use
// there.
type pathKey struct {
	usedUnit
	block, seg int32
	of         usedUnit
}

// path reports whether a weak path leads from a unit to another.
func (f *frontier) path(h *history, x, y spanned) bool {
	a, b := &h.uses[x.use], &h.uses[y.use]
	in := &h.insts[b.inst]
	key := pathKey{usedUnit{x.use, x.lo}, in.block, in.seg, usedUnit{ir.None, ir.None}}
	if h.throughUnits(b) || in.async {
		// Most often what the block did before is enough, which all of its units share.
		start := key
		start.of.unit = 0
		ok, known := f.memo[start]
		if !known {
			ok = h.reachesStart(a, unitNode{a.inst, a.lane, x.lo}, pnode{in.block, in.seg})
			f.memo[start] = ok
		}
		if ok {
			return true
		}
		key.of = usedUnit{y.use, y.lo}
	}
	ok, known := f.memo[key]
	if !known {
		ok = h.reaches(a, unitNode{a.inst, a.lane, x.lo}, unitNode{b.inst, b.lane, y.lo})
		f.memo[key] = ok
	}
	return ok
}

// cover notes what packets of a value are written over: plain data, or other packets of the
// same launch, which have the same flag. What somebody has read is out of the way, as who
// awaits the next packets does so in a later launch.
func (h *history) cover(c, a, value int32) {
	if h.frontier == nil || h.under == nil {
		return
	}
	before := h.value[c]
	h.value[c] = value
	if !h.uses[a].packets {
		return
	}
	switch w := h.writer[c]; {
	case w == ir.None:
		h.under[c] = ir.None
	case !h.uses[w].packets:
		h.under[c] = w
	case h.slot(&h.uses[w]) == h.slot(&h.uses[a]):
		if before != value {
			h.under[c] = w
		}
	case h.reader[c] != ir.None:
		h.under[c] = ir.None
	}
}

// trust notes that access a awaits the packet at loc, which w wrote, and that nothing but
// its flag tells when it is there.
func (h *history) trust(w, a, loc int32) {
	if h.frontier == nil {
		return
	}
	x, y := &h.uses[w], &h.uses[a]
	ix, iy := &h.insts[x.inst], &h.insts[y.inst]
	sameThread := ix.block == iy.block && ix.seg == iy.seg && ix.class == iy.class && x.place == y.place
	if !opRules[h.m.o.Ops[iy.op].Kind].blocks || !x.packets || sameThread || h.known(x, y, false) {
		return
	}
	if h.frontier.on() {
		iy.flagged = append(iy.flagged, usedUnit{a, y.unit(loc)})
	}
	for _, l := range [...]int32{loc, loc + 1} {
		if v := h.under[h.cell(l)]; v != ir.None {
			h.races.add(h, &h.uses[v], y, l, true)
		}
	}
}
