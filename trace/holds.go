package trace

import "github.com/mscclsh/mscclsh/ir"

// Holds tells, while a program is being traced, how many of the outputs that its
// collective demands hold what they must. It is made for looking often: a sum is
// looked at once, and an output costs one comparison.
//
// Values are compared by a number of 64 bits that is drawn for every input chunk
// and added up over sums, so that two different sums are taken for equal once in
// 2^64 times. Verdicts that count are the checker's.
type Holds struct {
	b      *Builder
	want   []wanted
	values []uint64 // of sums, as far as they have been looked at
	known  bool
}

// wanted is one demanded output.
type wanted struct {
	loc ir.Loc
	sum uint64
}

// maxWanted bounds the work of learning what a collective demands, in
// contributions: a fraction of a second.
const maxWanted = 1 << 23

// Holds prepares to look at what b traces.
func (b *Builder) Holds() *Holds {
	h := &Holds{b: b, known: true}
	c := b.spec.Coll
	var list []ir.Contribution
	work := 0
	for r := range ir.Rank(c.Ranks) {
		for i := range c.OutputChunks(r) {
			var demanded bool
			if list, demanded = c.Expect(list[:0], r, i); !demanded {
				continue
			}
			w := wanted{loc: ir.Loc{Rank: r}}
			w.loc.Buf, w.loc.Index = c.Canon(r, ir.Output, i)
			for _, x := range list {
				w.sum += chunkNumber(x)
			}
			h.want = append(h.want, w)
			if work += len(list) + 1; work > maxWanted {
				return &Holds{b: b}
			}
		}
	}
	return h
}

// Count is how many outputs hold what they must, of how many that are demanded.
// known is false for a collective too large to ask of in passing.
func (h *Holds) Count() (right, demanded int, known bool) {
	if !h.known {
		return 0, 0, false
	}
	a := &h.b.mem.values
	for i := len(h.values); i < len(a.sums); i++ {
		h.values = append(h.values, h.number(a.sums[i].a)+h.number(a.sums[i].b))
	}
	for _, w := range h.want {
		v := h.b.mem.cells[w.loc.Buf][w.loc.Rank][w.loc.Index].value
		if v != empty && h.number(v) == w.sum {
			right++
		}
	}
	return right, len(h.want), true
}

func (h *Holds) number(v valueID) uint64 {
	a := &h.b.mem.values
	if v <= a.leaves() {
		return chunkNumber(a.contribution(v))
	}
	return h.values[v-a.leaves()-1]
}

// chunkNumber is the number of an input chunk (splitmix64).
func chunkNumber(c ir.Contribution) uint64 {
	x := (uint64(uint32(c.Rank))<<32 | uint64(uint32(c.Index))) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
