package proof

import (
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// values are multisets of what locations held at first. Equal numbers mean equal
// multisets, and below the number of locations x is the multiset of x alone.
type values struct {
	lists [][]int32 // ascending
	ids   map[string]int32
	sums  map[[2]int32]int32
}

func newValues(cells int) *values {
	v := &values{ids: map[string]int32{}, sums: map[[2]int32]int32{}}
	for i := range int32(cells) {
		v.id([]int32{i})
	}
	return v
}

func (v *values) id(list []int32) int32 {
	key := keyOf(list)
	id, ok := v.ids[key]
	if !ok {
		id = int32(len(v.lists))
		v.ids[key] = id
		v.lists = append(v.lists, list)
	}
	return id
}

func (v *values) sum(a, b int32) int32 {
	key := [2]int32{min(a, b), max(a, b)}
	id, ok := v.sums[key]
	if !ok {
		list := slices.Concat(v.lists[a], v.lists[b])
		slices.Sort(list)
		id = v.id(list)
		v.sums[key] = id
	}
	return id
}

// keyOf is a list as a string, for use as a key.
func keyOf(lists ...[]int32) string {
	size := 0
	for _, list := range lists {
		size += 4*len(list) + 4
	}
	b := make([]byte, 0, size)
	for _, list := range lists {
		for _, x := range list {
			b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
		}
		b = append(b, 0xff, 0xff, 0xff, 0xff) // no list holds -1
	}
	return string(b)
}

// demand is what a location must hold in the end.
type demand struct {
	cell  int32
	want  []int32 // initial locations, ascending
	input bool    // an input to be left alone, not an output
	open  bool    // only that no race decides it
}

// demands lists what the collective demands.
func (m *machine) demands() []demand {
	var out []demand
	c := m.p.Coll
	for r := range m.p.GPUs {
		rank := ir.Rank(r)
		for i := range m.p.GPUs[r].Output {
			d := demand{cell: m.cell(rank, ir.Place{Buf: ir.Output, Index: i})}
			list, demanded := c.Expect(nil, rank, i)
			if !demanded {
				if c.Kind != ir.Custom || !c.Custom.Open {
					continue
				}
				d.open = true
			}
			for _, w := range list {
				d.want = append(d.want, m.cell(w.Rank, ir.Place{Buf: ir.Input, Index: w.Index}))
			}
			slices.Sort(d.want)
			out = append(out, d)
		}
		for i := range m.p.GPUs[r].Input {
			if !c.InPlace {
				l := m.cell(rank, ir.Place{Buf: ir.Input, Index: i})
				out = append(out, demand{cell: l, want: []int32{l}, input: true})
			}
		}
	}
	return out
}

// wrong is what is wrong with a final memory.
func wrong(demands []demand, v *values, mem []int32) classes {
	var c classes
	for _, d := range demands {
		switch {
		case d.open || slices.Equal(v.lists[mem[d.cell]], d.want):
		case d.input:
			c |= clobbered
		default:
			c |= wrongResult
		}
	}
	return c
}

// oracleError says that the judges here contradict themselves.
func oracleError(format string, args ...any) error {
	return fmt.Errorf("the oracle contradicts itself: "+format, args...)
}
