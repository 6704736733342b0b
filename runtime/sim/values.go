package sim

import (
	"math"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// The first values; after them come the contributions, one a chunk of input that
// holds data, and then sums.
const (
	valueEmpty = iota
	valueJunk
	valueFirst
)

// tooMany is where counts stay: no collective demands so many.
const tooMany = math.MaxUint64 / 2

// values gives a number to everything that a location can hold. Equal numbers mean
// equal contents made in the same way, so a location is one number and a change of it
// two. Values are never forgotten: what is reached again after going back has its old
// number.
//
// A number from 0 on is a value of a whole chunk. A negative one says that the parts
// of a chunk differ: number v is mixed[-v-1].
type values struct {
	base  []int32 // of a rank: the number of its first contribution
	sums  []addends
	terms []uint32 // of each sum: how many contributions, saturating
	bySum map[addends]int32

	mixed   [][]run
	byMixed map[string]int32
}

// addends are the two values of a sum, the smaller number first.
type addends struct {
	a, b int32
}

// run is a part of a chunk, up to a byte.
type run struct {
	to    int64
	value int32 // not negative
}

func newValues(c *ir.Collective) *values {
	v := &values{bySum: map[addends]int32{}, byMixed: map[string]int32{}}
	n := int32(valueFirst)
	for r := range ir.Rank(c.Ranks) {
		v.base = append(v.base, n)
		n += c.InputChunks(r)
	}
	v.base = append(v.base, n)
	return v
}

// leaf is the value of a contribution.
func (v *values) leaf(r ir.Rank, index int32) int32 { return v.base[r] + index }

// firstSum is the number of the first sum.
func (v *values) firstSum() int32 { return v.base[len(v.base)-1] }

// add is a+b of two whole values: junk if one of them is no sum.
func (v *values) add(a, b int32) int32 {
	if a < valueFirst || b < valueFirst {
		return valueJunk
	}
	key := addends{min(a, b), max(a, b)}
	if n, ok := v.bySum[key]; ok {
		return n
	}
	n := v.firstSum() + int32(len(v.sums))
	v.sums = append(v.sums, key)
	v.terms = append(v.terms, uint32(min(uint64(v.size(a))+uint64(v.size(b)), math.MaxUint32)))
	v.bySum[key] = n
	return n
}

// size is the number of contributions in a whole value.
func (v *values) size(x int32) uint32 {
	switch first := v.firstSum(); {
	case x < valueFirst:
		return 0
	case x < first:
		return 1
	default:
		return v.terms[x-first]
	}
}

// copied is what a copy of a whole value holds.
func copied(a int32) int32 {
	if a == valueEmpty {
		return valueJunk
	}
	return a
}

// list is the contributions of a whole value, by rank and index.
func (v *values) list(x int32) []Term {
	if x < valueFirst {
		return nil
	}
	// Operands have smaller numbers than their sum: going down, each value's count is
	// complete when it is handed on.
	order := v.below(x)
	times := make(map[int32]uint64, len(order))
	times[x] = 1
	var out []Term
	for i := len(order) - 1; i >= 0; i-- {
		y := order[i]
		n := times[y]
		if y < v.firstSum() {
			r, index := v.source(y)
			out = append(out, Term{ir.Contribution{Rank: r, Index: index}, n})
			continue
		}
		s := v.sums[y-v.firstSum()]
		times[s.a] = min(times[s.a]+n, tooMany)
		times[s.b] = min(times[s.b]+n, tooMany)
	}
	slices.Reverse(out)
	return out
}

// below lists x and all that it is made of, once each, by number.
func (v *values) below(x int32) []int32 {
	seen := map[int32]bool{x: true}
	order := []int32{x}
	for i := 0; i < len(order); i++ {
		if order[i] < v.firstSum() {
			continue
		}
		s := v.sums[order[i]-v.firstSum()]
		for _, y := range [...]int32{s.a, s.b} {
			if !seen[y] {
				seen[y] = true
				order = append(order, y)
			}
		}
	}
	slices.Sort(order)
	return order
}

// source is the contribution that a value below the sums is.
func (v *values) source(x int32) (ir.Rank, int32) {
	r, found := slices.BinarySearch(v.base, x)
	if !found {
		r--
	}
	for v.base[r+1] == v.base[r] { // ranks without input
		r++
	}
	return ir.Rank(r), x - v.base[r]
}

// is reports whether a whole value is the sum of just these contributions.
func (v *values) is(x int32, want []ir.Contribution) bool {
	if int(v.size(x)) != len(want) || len(want) == 0 {
		return false
	}
	at := 0
	want = slices.Clone(want)
	slices.SortFunc(want, compareContributions)
	for _, t := range v.list(x) {
		for range t.Times {
			if at == len(want) || want[at] != t.Contribution {
				return false
			}
			at++
		}
	}
	return at == len(want)
}

func compareContributions(a, b ir.Contribution) int {
	if a.Rank != b.Rank {
		return int(a.Rank) - int(b.Rank)
	}
	return int(a.Index) - int(b.Index)
}
