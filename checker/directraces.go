package checker

import (
	"cmp"
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// races requires that transfers which touch a chunk, one of them writing it, come
// one after the other, wherever the chunk is and whoever moves it. Transfers are
// visited in an order that they can happen in; which pairs to ask about, and which
// of the races matter, is as in checkRaces.
func (d *rendezvous) races(ctx context.Context, f *findings) error {
	s := newSweeper(d)
	for t := range d.moves {
		if t&0xffff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		s.transfer(int32(t))
	}
	racy, err := d.unordered(ctx, s.pairs)
	if err != nil || len(racy) == 0 {
		return err
	}
	l := d.findLive()
	bad, dead := classify(racy, l.harmful)
	if len(dead) > 0 {
		all, complete := s.allPairs(dead)
		if !complete {
			tooManyPairs(f, d.m.pos(d.moves[dead[0].b].step))
		} else if racy, err = d.unordered(ctx, all); err != nil {
			return err
		} else {
			more, _ := classify(racy, l.harmful)
			bad = append(bad, more...)
		}
	}
	d.reportRaces(f, bad, diag.Error)
	d.reportRaces(f, dead, diag.Warning)
	return nil
}

// sweeper finds the pairs of transfers that no rank's own order decides. In a pair
// a and b are transfers, a first.
type sweeper struct {
	d      *rendezvous
	clocks *rankClocks
	writer []int32 // of a location: last transfer that wrote it, or None
	reader []int32 // of a location: the last of the reads since, or None
	reads  []readCell
	pairs  []pair
	fresh  map[pairKey]int32 // the pairs of the current transfer
}

func newSweeper(d *rendezvous) *sweeper {
	n := d.m.nLocs
	s := &sweeper{d: d, clocks: newRankClocks(d, maxClocks), writer: make([]int32, n), reader: make([]int32, n), fresh: map[pairKey]int32{}}
	for i := range n {
		s.writer[i], s.reader[i] = ir.None, ir.None
	}
	return s
}

// ontoItself is step.ontoItself of the step that moves.
func (d *rendezvous) ontoItself(t *transfer) bool { return d.m.steps[t.step].ontoItself() }

func (s *sweeper) transfer(id int32) {
	t := &s.d.moves[id]
	clear(s.fresh)
	for _, l := range t.reads {
		if l == ir.None {
			continue
		}
		for j := range t.count {
			s.read(id, l+j)
		}
	}
	if s.d.ontoItself(t) {
		return
	}
	for _, l := range t.writes {
		if l == ir.None {
			continue
		}
		for j := range t.count {
			s.write(id, l+j)
		}
	}
}

func (s *sweeper) read(id, loc int32) {
	if w := s.writer[loc]; w != ir.None {
		s.ask(w, true, id, false, loc)
	}
	// A later read by the same thread block stands for the earlier ones.
	if c := s.reader[loc]; c != ir.None && s.tb(s.reads[c].step) == s.tb(id) {
		s.reads[c].step = id
		return
	}
	s.reads = append(s.reads, readCell{id, s.reader[loc]})
	s.reader[loc] = int32(len(s.reads) - 1)
}

func (s *sweeper) tb(id int32) int32 { return s.d.m.steps[s.d.moves[id].step].tb }

func (s *sweeper) write(id, loc int32) {
	if w := s.writer[loc]; w != ir.None {
		s.ask(w, true, id, true, loc)
	}
	for c := s.reader[loc]; c != ir.None; c = s.reads[c].next {
		s.ask(s.reads[c].step, false, id, true, loc)
	}
	s.writer[loc], s.reader[loc] = id, ir.None
}

// ask notes the pair unless ranks' own edges order it. A transfer reads an element
// everywhere before it writes it, so it is never in its own way.
func (s *sweeper) ask(a int32, aWrites bool, b int32, bWrites bool, loc int32) {
	if a != b && !s.clocks.ordered(&s.d.moves[a], &s.d.moves[b]) {
		s.note(a, aWrites, b, bWrites, loc)
	}
}

func (s *sweeper) note(a int32, aWrites bool, b int32, bWrites bool, loc int32) {
	key := pairKey{a, aWrites, bWrites}
	if n, ok := s.fresh[key]; ok && s.pairs[n].hi == loc {
		s.pairs[n].hi++
		return
	}
	s.fresh[key] = int32(len(s.pairs))
	s.pairs = append(s.pairs, pair{a: a, b: b, lo: loc, hi: loc + 1, aWrites: aWrites, bWrites: bWrites})
}

// allPairs lists every conflicting pair at the locations of the given races;
// complete is false if there are too many.
func (s *sweeper) allPairs(races []pair) (pairs []pair, complete bool) {
	wanted := map[int32]bool{}
	for _, p := range races {
		for l := p.lo; l < p.hi; l++ {
			wanted[l] = true
		}
	}
	seen := map[int32][]access{}
	visit := func(id, l int32, write bool) {
		for _, e := range seen[l] {
			if (e.write || write) && s.tb(e.step) != s.tb(id) {
				s.note(e.step, e.write, id, write, l)
			}
		}
		seen[l] = append(seen[l], access{id, write})
	}
	s.pairs = nil
	for id := range s.d.moves {
		t := &s.d.moves[id]
		clear(s.fresh)
		for write, places := range [2][2]int32{t.reads, t.writes} {
			if write == 1 && s.d.ontoItself(t) {
				continue
			}
			for _, l := range places {
				for j := range t.count {
					if l != ir.None && wanted[l+j] {
						visit(int32(id), l+j, write == 1)
					}
				}
			}
		}
		if len(s.pairs) > maxPairs {
			return nil, false
		}
	}
	return s.pairs, true
}

// directLive is liveness of transfers.
type directLive struct {
	d   *rendezvous
	off []int64 // of a transfer: the number of its first chunk
	// Of a chunk: whether its value can be observed at all, and by way of each of the
	// places it is written to.
	value  []bool
	stored [2][]bool
}

// findLive goes through the run backward.
func (d *rendezvous) findLive() *directLive {
	l := &directLive{d: d, off: make([]int64, len(d.moves))}
	total := int64(0)
	for i := range d.moves {
		l.off[i] = total
		total += int64(d.moves[i].count)
	}
	l.value, l.stored = make([]bool, total), [2][]bool{make([]bool, total), make([]bool, total)}
	now := make([]bool, d.m.nLocs)
	(&liveness{m: d.m}).observable(now)
	for i, t := range slices.Backward(d.moves) {
		for j := t.count - 1; j >= 0; j-- {
			c := l.off[i] + int64(j)
			for k, at := range t.writes {
				if at != ir.None {
					l.stored[k][c] = now[at+j]
					l.value[c] = l.value[c] || now[at+j]
					now[at+j] = false
				}
			}
			for _, at := range t.reads {
				if at != ir.None && l.value[c] {
					now[at+j] = true
				}
			}
		}
	}
	return l
}

// harmful is liveness.harmful of transfers.
func (l *directLive) harmful(p *pair) bool {
	aUndoes, bUndoes := l.d.ontoItself(&l.d.moves[p.a]), l.d.ontoItself(&l.d.moves[p.b])
	for loc := p.lo; loc < p.hi; loc++ {
		var matters bool
		switch {
		case bUndoes:
			matters = l.storedAt(p.a, loc)
		case p.bWrites && (p.aWrites || aUndoes):
			matters = l.storedAt(p.b, loc)
		case p.bWrites:
			matters = l.readAt(p.a, loc)
		default:
			matters = l.readAt(p.b, loc)
		}
		if matters {
			return true
		}
	}
	return false
}

// storedAt reports whether what transfer t wrote to a location is observed.
func (l *directLive) storedAt(t, loc int32) bool {
	return l.each(t, loc, l.d.moves[t].writes, func(k int, c int64) bool { return l.stored[k][c] })
}

// readAt reports whether a value that transfer t made of a location is observed.
func (l *directLive) readAt(t, loc int32) bool {
	return l.each(t, loc, l.d.moves[t].reads, func(_ int, c int64) bool { return l.value[c] })
}

// each asks about the chunk of each place with which t touches a location.
func (l *directLive) each(t, loc int32, places [2]int32, matters func(place int, chunk int64) bool) bool {
	for k, at := range places {
		if j := loc - at; at != ir.None && j >= 0 && j < l.d.moves[t].count && matters(k, l.off[t]+int64(j)) {
			return true
		}
	}
	return false
}

// reportRaces reports each pair of transfers once, in the order of the second.
func (d *rendezvous) reportRaces(f *findings, races []pair, severity diag.Severity) {
	slices.SortStableFunc(races, func(x, y pair) int {
		return cmp.Or(cmp.Compare(x.b, y.b), cmp.Compare(x.a, y.a))
	})
	for i, p := range races {
		if i > 0 && races[i-1].a == p.a && races[i-1].b == p.b || !f.admit(CodeRace) {
			continue
		}
		r, buf, at := d.m.place(p.lo)
		a, b := d.moves[p.a].step, d.moves[p.b].step
		msg := errorAt(d.m, b, CodeRace, "rank %d %s: %s %s it and %s %s it, in no order", r,
			rangeName(buf, at, int64(at)+int64(p.hi-p.lo)), d.m.name(a), verb(p.aWrites), d.m.name(b), verb(p.bWrites))
		if msg.Severity = severity; severity == diag.Warning {
			msg.Text += ", but what it decides reaches no output"
		}
		d.noteAccess(msg, p.a, p.lo, p.aWrites)
		d.noteAccess(msg, p.b, p.lo, p.bWrites)
		d.witnessRace(msg, &p)
		f.add(msg)
	}
}

// noteAccess says how a transfer comes to touch a place: in a step's own name, or
// on behalf of the step whose place it is.
func (d *rendezvous) noteAccess(msg *diag.Message, id, loc int32, writes bool) {
	t := &d.moves[id]
	name := d.m.name(t.step)
	if of := t.party(loc, writes); of != t.step {
		msg.Note(d.m.pos(of), "%s %s the memory of %s", name, verb(writes), d.m.name(of))
		return
	}
	msg.Note(d.m.pos(t.step), "%s %s", name, verb(writes))
}
