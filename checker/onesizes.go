package checker

import (
	"math"
	"math/bits"

	"github.com/mscclsh/mscclsh/ir"
)

// sizeRange is the sizes that a program runs at, by the bytes of a chunk: from least to
// most times unit. A run refuses other sizes.
type sizeRange struct {
	least, most int64
	unit        int64 // bytes: the alignment
	chunks      int64 // of the collective
	spent       *bool // a search was given up
}

// newSizeRange takes sizes from the window, up to where places no longer fit 62 bits.
func newSizeRange(p *ir.Program, w window) sizeRange {
	s := sizeRange{unit: int64(p.OneSided.Alignment), chunks: int64(w.numChunks), spent: new(bool)}
	places := int64(1)
	for r := range p.GPUs {
		g := &p.GPUs[r]
		places = max(places, int64(g.Input)+1, int64(g.Output)+1, 2*int64(g.Scratch)+2)
	}
	total := max(s.unit*s.chunks, 1)
	s.least = 1
	if w.minBytes > 0 {
		s.least = (w.minBytes-1)/total + 1
	}
	s.most = math.MaxInt64 / 2 / places / max(s.unit, 1) / max(s.chunks, 1)
	if w.most > 0 {
		s.most = min(s.most, w.most/total)
	}
	return s
}

// bytes is the size of which chunks have k units.
func (s sizeRange) bytes(k int64) int64 { return k * s.unit * s.chunks }

// sizesOf is the range of sizes of which a shape is an image: as many turns of each
// pipeline, where there are fewer than three; and no empty part, or chunks of as many units.
func (s sizeRange) sizesOf(p *ir.Program, sh shape) (least, most int64) {
	least, most = s.least, s.most
	full := int64(fullUnits(p))
	switch {
	case sh.bytesPerUnit == 0 && int64(sh.units) < full:
		return max(least, int64(sh.units)), min(most, int64(sh.units))
	case sh.bytesPerUnit == 0:
		return max(least, full), most
	}
	for i := range p.OneSided.Ops {
		if op := &p.OneSided.Ops[i]; op.Kind == ir.OpPipeline {
			_, n := sh.turns(op)
			same := func(k int64) int64 { return min(s.turns(op, k), 3) - min(n, 3) }
			least = s.search(least, most, func(k int64) bool { return same(k) >= 0 })
			most = s.search(least, most, func(k int64) bool { return same(k) > 0 }) - 1
		}
	}
	return least, most
}

// only leaves out shapes of which there is no size, unless that is all of them.
func (s sizeRange) only(p *ir.Program, all []shape) []shape {
	var out []shape
	for _, sh := range all {
		if least, most := s.sizesOf(p, sh); least <= most {
			out = append(out, sh)
		}
	}
	if out == nil {
		return all
	}
	return out
}

// turns is how many turns a pipeline takes when chunks have k units.
func (s sizeRange) turns(op *ir.Op, k int64) int64 {
	hi, lo := bits.Mul64(uint64(op.UnitChunks), uint64(k*s.unit))
	if hi != 0 || lo > math.MaxInt64/2 {
		return math.MaxInt64 / 2 / op.UnitBytes
	}
	return turns(int64(lo), op.UnitBytes)
}

// search is the first k from least to most for which ok holds, or most+1. From there on
// it has to hold.
func (s sizeRange) search(least, most int64, ok func(k int64) bool) int64 {
	if least > most {
		return most + 1
	}
	for low, high := least, most+1; ; {
		if low == high {
			return low
		}
		if mid := low + (high-low)/2; ok(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
}

// ground is a place of a rank's memory whose bytes follow from the size of a chunk. Its
// ends never move down when the chunk grows.
type ground struct {
	sizes       sizeRange
	least, most int64 // chunks have so many units of it
	// By location: from start to end, per of which are a chunk.
	start, end, per int64
	// Of an operation that is cut: its operand, in turn of turns, and which units of so
	// many it is.
	op           *ir.Op
	loop         *ir.Op
	operand      *ir.Operand
	turn, turns  int64
	lo, hi, many int64
}

// ground is where units of a use lie.
func (h *history) ground(x spanned) ground {
	u := &h.uses[x.use]
	m, in := h.modelOf(u), &h.insts[u.inst]
	g := ground{sizes: m.sizes, least: m.least, most: m.most, per: int64(m.shape.units)}
	ri := &m.ranks[m.rankOf(u.place.start)]
	base := ri.base
	switch off := u.place.start - base; {
	case off >= ri.input+ri.output:
		base += ri.input + ri.output
	case off >= ri.input:
		base += ri.input
	}
	g.start = int64(u.place.at(x.lo) - base)
	g.end = int64(u.place.at(x.hi-1)-base) + int64(u.place.step)
	if in.op == ir.None {
		return g
	}
	st := &m.blocks[in.block].steps[in.step]
	if op := &m.o.Ops[in.op]; op.Parts > 1 || st.loop != ir.None {
		g.op, g.operand = op, &m.o.Operands[u.operand]
		g.lo, g.hi, g.many = int64(x.lo), int64(x.hi), int64(u.place.n)
		if st.loop != ir.None {
			g.loop, g.turn = &m.o.Ops[st.loop], int64(st.turn)
			_, g.turns = m.shape.turns(g.loop)
		}
	}
	return g
}

// at is the bytes of the place, from lo to hi-1, when chunks have k units: of several
// turns that one stands for, all of them; of some of an operation's units, rounded to
// whole units of the alignment. It is empty if hi <= lo.
func (g *ground) at(k int64) (lo, hi int64) {
	chunk := k * g.sizes.unit
	if g.op == nil {
		return scaled(g.start, chunk, g.per, false), scaled(g.end, chunk, g.per, true)
	}
	d := g.operand
	off, n := cutUnits(int64(d.Size)*k, int64(g.op.Part), int64(g.op.Parts))
	off, n = (int64(d.Index)*k+off)*g.sizes.unit, n*g.sizes.unit
	from, to := int64(0), n
	if g.loop != nil {
		first, last := g.turn, g.turn
		if all := g.sizes.turns(g.loop, k); g.turns >= 3 && all > 3 {
			switch {
			case g.turn == g.turns-1:
				first, last = all-1, all-1
			case g.turn > 0: // any in between
				first, last = 1, all-2
			}
		}
		from, to = min(first*g.loop.UnitBytes, n), min((last+1)*g.loop.UnitBytes, n)
	}
	if g.hi-g.lo < g.many {
		n, round := to-from, g.sizes.unit
		from, to = from+scaled(g.lo, n, g.many, false)/round*round, min(to, from+(scaled(g.hi, n, g.many, true)+round-1)/round*round)
	}
	lo, hi = off+from, off+to
	if d.Packets {
		lo, hi = 2*lo, 2*hi
	}
	return lo, hi
}

// scaled is n*size/per, rounded down or up, as far as 63 bits.
func scaled(n, size, per int64, up bool) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(size))
	if hi >= uint64(per) {
		return math.MaxInt64
	}
	q, rest := bits.Div64(hi, lo, uint64(per))
	if up && rest > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64))
}

// cutUnits is part k of n units in p parts; the first ones take the remainder.
func cutUnits(n, k, p int64) (off, length int64) {
	q, rest := n/p, n%p
	off, length = k*q+min(k, rest), q
	if k < rest {
		length++
	}
	return off, length
}

// others is the range of sizes at which y may meet bytes from lo to hi-1.
func (g *ground) others(lo, hi int64) (least, most int64) {
	least = g.sizes.search(g.least, g.most, func(k int64) bool { _, end := g.at(k); return end > lo })
	most = g.sizes.search(least, g.most, func(k int64) bool { start, _ := g.at(k); return start >= hi }) - 1
	return least, most
}

// witness is two sizes, by the units of a chunk, at which places of two launches meet.
type witness struct{ first, second int64 }

// mayMeet is a quick look that never misses.
func (s sizeRange) mayMeet(x, y ground) bool {
	if x.least > x.most {
		return false
	}
	lo, _ := x.at(x.least)
	_, hi := x.at(x.most)
	least, most := y.others(lo, hi)
	return least <= most
}

// maxHalvings bounds the search of meet.
const maxHalvings = 1 << 14

// meet looks for two different sizes at which x, of one launch, and y, of a later one,
// have bytes in common: first small and round ones, then any. As the ends of both only
// move up with the size, a range of x's sizes in which no size of y fits is left out as
// a whole, and others are halved, down to single sizes.
func (s sizeRange) meet(x, y ground) (witness, bool) {
	for k := int64(1); k <= x.most && k > 0; k *= 2 {
		if w, ok := meetAt(&x, &y, max(k, x.least)); ok {
			return w, true
		}
	}
	todo := [][2]int64{{x.least, x.most}}
	for n := 0; len(todo) > 0; n++ {
		if n > maxHalvings {
			*s.spent = true
			return witness{}, false
		}
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at[0] > at[1] {
			continue
		}
		lo, _ := x.at(at[0])
		_, hi := x.at(at[1])
		if least, most := y.others(lo, hi); least > most {
			continue
		}
		for _, k := range at {
			if w, ok := meetAt(&x, &y, k); ok {
				return w, true
			}
		}
		if at[1]-at[0] > 1 { // its ends have been looked at
			mid := at[0] + (at[1]-at[0])/2
			todo = append(todo, [2]int64{mid + 1, at[1]}, [2]int64{at[0], mid})
		}
	}
	return witness{}, false
}

// meetAt looks for a size of y, other than x's, with which it meets x of size k: a round
// one if there is one.
func meetAt(x, y *ground, k int64) (witness, bool) {
	lo, hi := x.at(k)
	if k < x.least || k > x.most || lo >= hi {
		return witness{}, false
	}
	least, most := y.others(lo, hi)
	try := func(n int64) bool {
		if n < least || n > most || n == k {
			return false
		}
		start, end := y.at(n)
		return start < end && start < hi && lo < end
	}
	for n := int64(1); n <= most && n > 0; n *= 2 {
		if try(n) {
			return witness{k, n}, true
		}
	}
	for _, n := range [...]int64{least, most, least + 1, most - 1} {
		if try(n) {
			return witness{k, n}, true
		}
	}
	return witness{}, false
}
