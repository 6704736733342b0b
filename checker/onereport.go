package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// raceSet collects races over launches and shapes, each pair of operations once, and
// each operation once with every caller. Of several between the same two the first that
// is lost counts: what is an error must not hide behind what is only a warning.
//
// Races that only launches of two sizes have are kept apart, and told where launches of
// one size have none between the same two.
type raceSet struct {
	seen       map[raceKey]int // the place in found
	found      []race
	sized      map[raceKey]bool
	sizedFound []race
	spent      bool // a search was given up
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
	// byPort says that a is a port's doing.
	byPort bool
	// stale says that b awaits packets where a has left what may pass for them.
	stale bool
	sizes [2]int64 // of the launches of a and b, in bytes, where they have to differ
	apart int32    // how many launches lie between them, and one
}

func newRaceSet() *raceSet { return &raceSet{seen: map[raceKey]int{}, sized: map[raceKey]bool{}} }

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

// add notes a race at loc: of two without order, or of packets that are stale.
func (s *raceSet) add(h *history, a, b *use, loc int32, stale bool) {
	if h.search.spent >= maxSpent {
		s.spent = true
	}
	key := keyOf(h, a, b)
	n, again := s.seen[key]
	if again && (s.found[n].lost || !mayLose(h, a, b)) {
		return
	}
	r := race{racePair: key.racePair, place: h.m.chunkName(loc, a.packets || b.packets), aWrites: a.write, bWrites: b.write,
		lost: h.loses(a, b, loc), byPort: h.insts[a.inst].async, stale: stale}
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

// addSized notes a race of units x of one launch with units y of a later one, of other
// sizes.
func (s *raceSet) addSized(h *history, key raceKey, x, y spanned, w witness, stale bool) {
	a, b := &h.uses[x.use], &h.uses[y.use]
	m := h.modelOf(a)
	r := race{racePair: key.racePair, aWrites: a.write, bWrites: b.write, byPort: h.insts[a.inst].async, stale: stale, apart: h.slot(b) - h.slot(a),
		sizes:  [2]int64{m.sizes.bytes(w.first), m.sizes.bytes(w.second)},
		aPlace: m.wholeName(a.place.at(x.lo), a.packets), bPlace: h.modelOf(b).wholeName(b.place.at(y.lo), b.packets)}
	r.aName, r.aPos = h.nameOf(a)
	r.bName, r.bPos = h.nameOf(b)
	s.sized[key] = true
	s.sizedFound = append(s.sizedFound, r)
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
	return weak[a.comp] <= a.epoch && !h.reaches(a, a.node(loc), b.node(loc))
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
func (s *raceSet) report(rep *Report, f *findings, last *oneModel) {
	demanded := last.demands()
	if !slices.ContainsFunc(s.found, func(r race) bool { return !r.across }) {
		s.found = append(s.found, s.onlySized()...)
	}
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
	if *last.sizes.spent && f.admit(CodeUndecided) {
		f.add(diag.Warningf(diag.Pos{}, CodeUndecided,
			"the searches for two sizes at which places meet took too long: launches of two sizes may have races that are not told").
			Suggest("narrow the sizes that the program is for"))
	}
	if s.spent && f.admit(CodeUndecided) {
		f.add(diag.Warningf(diag.Pos{}, CodeUndecided,
			"the searches for an order took too long: some of the races may be none"))
	}
}

// onlySized lists the races that launches of one size don't have.
func (s *raceSet) onlySized() []race {
	same := map[racePair]bool{}
	for i := range s.found {
		same[s.found[i].racePair] = true
	}
	return slices.DeleteFunc(slices.Clone(s.sizedFound), func(r race) bool { return same[r.racePair] })
}

func (r *race) message(code string) *diag.Message {
	if r.sizes[0] > 0 {
		return r.sizedMessage(code)
	}
	pos := r.bPos
	if !pos.IsValid() {
		pos = r.aPos
	}
	m := diag.Warningf(pos, code, "%s: %s %s it and %s %s it, in no order", r.place,
		r.aName, verb(r.aWrites), r.bName, verb(r.bWrites))
	switch {
	case r.stale:
		m.Text = fmt.Sprintf("%s: %s awaits packets there while it may still hold what %s %s before, which may pass for them", r.place, r.bName, r.aName, verb(r.aWrites))
		m.Suggest("let what is awaited be told by a signal, or keep it where nothing else is written")
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
	if r.byPort && !r.stale {
		m.Suggest(portsFlush)
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

// sizedMessage is of launches of two sizes.
func (r *race) sizedMessage(code string) *diag.Message {
	pos, later := r.bPos, "the next one"
	if !pos.IsValid() {
		pos = r.aPos
	}
	if r.apart > 1 {
		later = "the next but one"
	}
	still := "may still " + strip(verb(r.aWrites))
	if r.a == ir.None {
		still = verb(r.aWrites)
	}
	m := diag.Warningf(pos, code, "%s: when a launch of %d bytes is followed by one of %d bytes, %s of %s %s it as its %s while %s of the first %s it",
		r.aPlace, r.sizes[0], r.sizes[1], r.bName, later, verb(r.bWrites), r.bPlace, r.aName, still)
	if r.apart > 1 {
		m.Text = strings.Replace(m.Text, "is followed by one of", "is followed by any and then one of", 1)
	}
	if r.stale {
		m.Text = fmt.Sprintf("%s: when a launch of %d bytes comes before one of %d bytes, the plain data that %s writes there may pass for packets that %s awaits as %s",
			r.aPlace, r.sizes[0], r.sizes[1], r.aName, r.bName, r.bPlace)
		m.Suggest("keep plain data elsewhere than in scratch with packets, or let the program be for one size (min_message_size and max_message_size)")
	} else {
		m.Suggest("let these ranks meet at the start or the end of a launch, or let the program be for one size (min_message_size and max_message_size)")
	}
	if r.byPort && !r.stale {
		m.Suggest(portsFlush)
	}
	m.Note(r.aPos, "%s %s %s in a launch of %d bytes", r.aName, verb(r.aWrites), r.aPlace, r.sizes[0])
	m.Note(r.bPos, "%s %s %s in one of %d bytes", r.bName, verb(r.bWrites), r.bPlace, r.sizes[1])
	return m
}

// portsFlush helps where a port may still carry out what it was given.
const portsFlush = "flush the port channel in between, or wait for what answers a signal behind the put"

// packetsRoom helps where plain data and packets meet in scratch.
const packetsRoom = "packets of chunk i fill the scratch of plain chunks 2i and 2i + 1: let plain data be in the first buffers that a rank makes, and packets behind"

func strip(verb string) string { return verb[:len(verb)-1] }

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
