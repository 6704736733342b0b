package checker

import (
	"cmp"
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// checkRaces requires that conflicting accesses (one writes) of different thread
// blocks of a rank to a canonical location are ordered by happens-before: program
// order, dependencies, and messages from their send to their receive. Finite
// slots order nothing here, since a transport may have more of them.
//
// Accesses are visited in an order that extends happens-before. It is enough to
// ask of each write whether it comes after the write before it and the reads
// since, and of each read whether it comes after the last write: if all these
// pairs are ordered, all others are by transitivity.
//
// A race is an error if it can change what can be observed, else a warning: see
// harmful. The warning breaks the transitivity, so locations with such a race are
// looked at again, every conflicting pair of them.
func checkRaces(ctx context.Context, m *model, order []int32, f *findings) error {
	d := newDetector(m, order)
	if d == nil {
		return nil
	}
	for r := range m.ranks {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.rank(r)
	}
	if len(d.pairs) == 0 {
		return nil
	}
	tree := newForest(m, order)
	d.pairs = slices.DeleteFunc(d.pairs, func(p pair) bool { return tree.orders(&p) })
	h := newHappensBefore(m, order)
	racy, err := h.unordered(ctx, d.pairs)
	if err != nil || len(racy) == 0 {
		return err
	}
	l := findLive(m, order)
	bad, dead := classify(racy, l.harmful)
	if len(dead) > 0 {
		all, complete := d.allPairs(dead)
		if !complete {
			tooManyPairs(f, m.pos(dead[0].b))
		} else if racy, err = h.unordered(ctx, all); err != nil {
			return err
		} else {
			more, _ := classify(racy, l.harmful)
			bad = append(bad, more...)
		}
	}
	reportRaces(m, h.pos, f, bad, diag.Error)
	reportRaces(m, h.pos, f, dead, diag.Warning)
	return nil
}

// pair is two conflicting accesses to locations [lo, hi) by steps of different
// thread blocks of one rank; a comes first in the order they were visited.
type pair struct {
	a, b             int32
	lo, hi           int32
	aWrites, bWrites bool
	// shifted says that b touches the location with an earlier chunk than a does, or
	// with LL and LL128 another one, so that messages alone, which travel chunk by
	// chunk, don't order them.
	shifted bool
}

// detector finds the pairs that a rank's own thread blocks don't order.
type detector struct {
	m      *model
	byRank [][]int32 // the steps of each rank in order
	clocks *localClocks
	writer []int32 // of a location of the current rank: last write, or None
	reader []int32 // of a location: the last of the reads since, or None
	reads  []readCell
	pairs  []pair
	fresh  map[pairKey]int32 // the pairs of the current step
}

type readCell struct{ step, next int32 }

type pairKey struct {
	a                int32
	aWrites, bWrites bool
}

// newDetector is nil if no rank has two thread blocks.
func newDetector(m *model, order []int32) *detector {
	most, concurrent := int32(0), false
	for r := range m.ranks {
		ri := &m.ranks[r]
		most = max(most, ri.input+ri.output+ri.extra)
		concurrent = concurrent || ri.endTB-ri.firstTB > 1
	}
	if !concurrent {
		return nil
	}
	d := &detector{m: m, writer: make([]int32, most), reader: make([]int32, most),
		fresh: map[pairKey]int32{}, byRank: splitByRank(m, order), clocks: newLocalClocks(m)}
	return d
}

func splitByRank(m *model, order []int32) [][]int32 {
	counts := make([]int, len(m.ranks))
	for _, s := range order {
		counts[m.tbs[m.steps[s].tb].rank]++
	}
	all := make([]int32, len(order))
	out := make([][]int32, len(m.ranks))
	for r, n := range counts {
		out[r], all = all[:0:n], all[n:]
	}
	for _, s := range order {
		r := m.tbs[m.steps[s].tb].rank
		out[r] = append(out[r], s)
	}
	return out
}

// rank visits the accesses of rank r.
func (d *detector) rank(r int) {
	ri := &d.m.ranks[r]
	if ri.endTB-ri.firstTB < 2 {
		return
	}
	size := ri.input + ri.output + ri.extra
	for i := range size {
		d.writer[i], d.reader[i] = ir.None, ir.None
	}
	d.reads = d.reads[:0]
	d.clocks.begin(ri, d.byRank[r])
	for _, id := range d.byRank[r] {
		s := &d.m.steps[id]
		d.clocks.enter(id)
		if len(d.fresh) > 0 {
			clear(d.fresh)
		}
		if s.src != ir.None {
			for l := s.src; l < s.src+s.count; l++ {
				d.read(id, l, l-ri.base)
			}
		}
		if s.dst != ir.None && !s.ontoItself() {
			for l := s.dst; l < s.dst+s.count; l++ {
				if s.kind.ReadsDst() {
					d.read(id, l, l-ri.base)
				}
				d.write(id, l, l-ri.base)
			}
		}
		d.clocks.leave(id)
	}
}

// ontoItself reports whether the step copies chunks onto themselves, as copies
// from input to output in programs for both modes do in place. For those who read
// the chunks nothing changes, so it only reads: a write it might undo still has to
// be ordered with it.
func (s *step) ontoItself() bool { return s.kind == ir.Copy && s.src == s.dst }

func (d *detector) read(id, loc, i int32) {
	if w := d.writer[i]; w != ir.None {
		d.ask(w, true, id, false, loc)
	}
	// A later read of the same thread block stands for the earlier ones.
	if c := d.reader[i]; c != ir.None && d.m.steps[d.reads[c].step].tb == d.m.steps[id].tb {
		d.reads[c].step = id
		return
	}
	d.reads = append(d.reads, readCell{id, d.reader[i]})
	d.reader[i] = int32(len(d.reads) - 1)
}

func (d *detector) write(id, loc, i int32) {
	if w := d.writer[i]; w != ir.None {
		d.ask(w, true, id, true, loc)
	}
	for c := d.reader[i]; c != ir.None; c = d.reads[c].next {
		d.ask(d.reads[c].step, false, id, true, loc)
	}
	d.writer[i], d.reader[i] = id, ir.None
}

// ask notes the pair unless the rank's own edges order it.
func (d *detector) ask(a int32, aWrites bool, b int32, bWrites bool, loc int32) {
	if d.m.steps[a].tb == d.m.steps[b].tb || d.clocks.after(b, a) {
		return
	}
	d.note(a, aWrites, b, bWrites, loc)
}

func (d *detector) note(a int32, aWrites bool, b int32, bWrites bool, loc int32) {
	key := pairKey{a, aWrites, bWrites}
	if n, ok := d.fresh[key]; ok && d.pairs[n].hi == loc {
		d.pairs[n].hi++
		return
	}
	d.fresh[key] = int32(len(d.pairs))
	d.pairs = append(d.pairs, pair{a: a, b: b, lo: loc, hi: loc + 1, aWrites: aWrites, bWrites: bWrites,
		shifted: d.m.unaligned(d.m.chunkAt(a, loc, aWrites), d.m.chunkAt(b, loc, bWrites))})
}

// chunkAt is which of its chunks step s touches a location with.
func (m *model) chunkAt(id, loc int32, write bool) int32 {
	s := &m.steps[id]
	if !write && s.src != ir.None && loc >= s.src && loc < s.src+s.count {
		return loc - s.src
	}
	return loc - s.dst
}

// maxPairs bounds the pairs that a second look at dead races may take.
const maxPairs = 1 << 22

// allPairs lists every conflicting pair at the locations of the given races;
// complete is false if there are too many.
func (d *detector) allPairs(races []pair) (pairs []pair, complete bool) {
	dead := map[int32]bool{}
	ranks := map[ir.Rank]bool{}
	for _, p := range races {
		for l := p.lo; l < p.hi; l++ {
			dead[l] = true
		}
		ranks[d.m.tbs[d.m.steps[p.a].tb].rank] = true
	}
	d.pairs = nil
	for r := range d.m.ranks {
		if ranks[ir.Rank(r)] && !d.allOfRank(r, dead) {
			return nil, false
		}
	}
	return d.pairs, true
}

// tooManyPairs says that the second look was not taken.
func tooManyPairs(f *findings, pos diag.Pos) {
	f.errorf(pos, CodeTooLarge, "a race that reaches no output is in memory that more than %d pairs of steps share: "+
		"whether another race there reaches one is not decided", maxPairs)
}

type access struct {
	step  int32
	write bool
}

func (d *detector) allOfRank(r int, wanted map[int32]bool) bool {
	seen := map[int32][]access{}
	visit := func(id, l int32, write bool) {
		for _, e := range seen[l] {
			if (e.write || write) && d.m.steps[e.step].tb != d.m.steps[id].tb {
				d.note(e.step, e.write, id, write, l)
			}
		}
		seen[l] = append(seen[l], access{id, write})
	}
	for _, id := range d.byRank[r] {
		s := &d.m.steps[id]
		clear(d.fresh)
		for j := range s.count {
			if s.src != ir.None && wanted[s.src+j] {
				visit(id, s.src+j, false)
			}
			if s.dst != ir.None && !s.ontoItself() && wanted[s.dst+j] {
				if s.kind.ReadsDst() {
					visit(id, s.dst+j, false)
				}
				visit(id, s.dst+j, true)
			}
		}
		if len(d.pairs) > maxPairs {
			return false
		}
	}
	return true
}

// reportRaces reports each pair of steps once, in the order of the steps.
func reportRaces(m *model, pos []int32, f *findings, races []pair, severity diag.Severity) {
	slices.SortStableFunc(races, func(x, y pair) int {
		return cmp.Or(cmp.Compare(pos[x.b], pos[y.b]), cmp.Compare(pos[x.a], pos[y.a]))
	})
	for i, p := range races {
		if i > 0 && races[i-1].a == p.a && races[i-1].b == p.b || !f.admit(CodeRace) {
			continue
		}
		r, buf, at := m.place(p.lo)
		msg := diag.Errorf(m.pos(p.b), CodeRace, "rank %d %s: %s %s it and %s %s it, in no order", r,
			rangeName(buf, at, int64(at)+int64(p.hi-p.lo)), m.inRank(p.a), verb(p.aWrites), m.inRank(p.b), verb(p.bWrites))
		if msg.Severity = severity; severity == diag.Warning {
			msg.Text += ", but what it decides reaches no output"
		}
		msg.Note(m.pos(p.a), "%s %s", m.name(p.a), verb(p.aWrites))
		msg.Note(m.pos(p.b), "%s %s", m.name(p.b), verb(p.bWrites))
		witnessRace(m, msg, &p)
		f.add(msg)
	}
}

func verb(writes bool) string {
	if writes {
		return "writes"
	}
	return "reads"
}
