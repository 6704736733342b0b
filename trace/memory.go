package trace

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// Limits that keep one wrong number in a script from taking the machine's
// memory: chunks of one scratch buffer on one rank, input and output chunks of a
// program, and contributions summed at one location.
const (
	maxScratch = 1 << 24
	maxChunks  = 1 << 28
	maxTerms   = 1 << 20
)

// cell is what one location holds and which operation (from 1) put it there; the
// initial content was put there by operation 0.
type cell struct {
	value  valueID
	writer int32
}

// memory is the content of every canonical location. An input or output that is
// only an alias has no cells of its own.
type memory struct {
	cells  [][][]cell // by buffer, rank, index
	values arena
}

func newMemory(s *ir.Spec) memory {
	c := s.Coll
	m := memory{cells: make([][][]cell, ir.FirstScratch)}
	m.values.base = make([]int32, c.Ranks+1)
	for buf := range m.cells {
		m.cells[buf] = make([][]cell, c.Ranks)
		for r, n := range s.Buffers[buf].Chunks {
			if own, _ := c.Canon(ir.Rank(r), ir.BufferID(buf), 0); int(own) == buf {
				m.cells[buf][r] = make([]cell, n)
			}
		}
	}
	for r := range ir.Rank(c.Ranks) {
		n := c.InputChunks(r)
		m.values.base[r+1] = m.values.base[r] + n
		for i := range n {
			if c.Holds(r, i) {
				buf, at := c.Canon(r, ir.Input, i)
				m.cells[buf][r][at].value = m.values.leaf(r, i)
			}
		}
	}
	return m
}

// held gives the cells of a range, and the offset of the first chunk in it that
// holds nothing, or -1. Without the whole range there are no cells.
func (m *memory) held(l ir.Loc, count int32) ([]cell, int32) {
	all := m.cells[l.Buf][l.Rank]
	have := int32(len(all))
	if l.Index >= have {
		return nil, 0
	}
	cells := all[l.Index:min(l.Index+count, have)]
	for i := range cells {
		if cells[i].value == empty {
			return nil, int32(i)
		}
	}
	if short := int32(len(cells)); short < count {
		return nil, short
	}
	return cells, -1
}

// room gives the cells of a range about to be written, growing scratch to hold it.
func (m *memory) room(s *ir.Spec, l ir.Loc, count int32) []cell {
	all := m.cells[l.Buf][l.Rank]
	if missing := int(l.Index+count) - len(all); missing > 0 {
		// The cells between length and capacity have never been used: still zero.
		all = slices.Grow(all, missing)[:l.Index+count]
		m.cells[l.Buf][l.Rank] = all
		s.Buffers[l.Buf].Chunks[l.Rank] = l.Index + count
	}
	return all[l.Index : l.Index+count]
}

// valueID names a symbolic value. Leaves come first, in order of rank and index
// of the input chunk they stand for; sums follow in order of creation.
type valueID int32

// empty is the value of a location that holds nothing.
const empty valueID = 0

// sum is a value of two operands.
type sum struct {
	a, b  valueID
	terms int32 // contributions in it, with repeats
}

type arena struct {
	base []int32 // base[r] leaves belong to ranks before r; the last entry counts all
	sums []sum
}

func (a *arena) leaves() valueID { return valueID(a.base[len(a.base)-1]) }

func (a *arena) leaf(r ir.Rank, i int32) valueID { return valueID(a.base[r] + i + 1) }

// contribution is the input chunk that a leaf stands for.
func (a *arena) contribution(leaf valueID) ir.Contribution {
	at := int32(leaf) - 1
	// The rank after the last one that starts at or before at; empty inputs share a start.
	r, _ := slices.BinarySearch(a.base, at+1)
	return ir.Contribution{Rank: ir.Rank(r - 1), Index: at - a.base[r-1]}
}

func (a *arena) terms(v valueID) int32 {
	if v <= a.leaves() {
		return 1
	}
	return a.sums[v-a.leaves()-1].terms
}

// addAll makes the sums d[i]+s[i] and returns the first one's id; the others
// follow. When one of them would have too many terms nothing is made and its
// offset is returned instead, else -1.
func (a *arena) addAll(d, s []cell) (first valueID, tooMany int) {
	start := len(a.sums)
	if start+len(d) > cap(a.sums) {
		a.sums = slices.Grow(a.sums, grown(start+len(d)))
	}
	for i := range d {
		n := a.terms(d[i].value) + a.terms(s[i].value)
		if n > maxTerms {
			a.sums = a.sums[:start]
			return 0, i
		}
		a.sums = append(a.sums, sum{d[i].value, s[i].value, n})
	}
	return a.leaves() + valueID(start) + 1, -1
}

// expand is the sorted multiset of contributions in v.
func (a *arena) expand(v valueID) []ir.Contribution {
	if v == empty {
		return nil
	}
	out := make([]ir.Contribution, 0, a.terms(v))
	for todo := []valueID{v}; len(todo) > 0; {
		v = todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if v <= a.leaves() {
			out = append(out, a.contribution(v))
			continue
		}
		s := a.sums[v-a.leaves()-1]
		todo = append(todo, s.a, s.b)
	}
	slices.SortFunc(out, func(x, y ir.Contribution) int {
		if x.Rank != y.Rank {
			return int(x.Rank) - int(y.Rank)
		}
		return int(x.Index) - int(y.Index)
	})
	return out
}
