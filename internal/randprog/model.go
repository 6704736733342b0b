package randprog

import (
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// cell is one chunk of physical memory. For an in-place collective, memory 0 of
// a rank is the one memory that input and output share.
type cell struct {
	rank   ir.Rank
	memory int
	index  int32
}

// model is what a program does, as plainly as it can be said.
type model struct {
	coll    *ir.Collective
	names   func() int // how many scratch buffers there are
	held    map[cell][]ir.Contribution
	written map[cell]bool
	length  map[cell]int32 // of scratch, by rank and memory; index is 0
}

func newModel(c *ir.Collective, names func() int) *model {
	m := &model{coll: c, names: names, held: map[cell][]ir.Contribution{},
		written: map[cell]bool{}, length: map[cell]int32{}}
	for r := range ir.Rank(c.Ranks) {
		for i := range c.InputChunks(r) {
			if c.Holds(r, i) {
				m.held[m.cell(r, ir.Input, i)] = []ir.Contribution{{Rank: r, Index: i}}
			}
		}
	}
	return m
}

// cell says where a named location lies. In place, allgather's and gather's
// input is the rank's own part of the output, reduce-scatter's and scatter's
// output the rank's own part of the input, and elsewhere both begin together.
func (m *model) cell(r ir.Rank, buf ir.BufferID, index int32) cell {
	if !m.coll.InPlace || buf > ir.Output {
		return cell{r, int(buf), index}
	}
	part := int32(0)
	own := int32(r) * m.coll.ChunkFactor
	switch k := m.coll.Kind; {
	case k == ir.AllGather && buf == ir.Input, k == ir.ReduceScatter && buf == ir.Output:
		part = own
	case (k == ir.Gather || k == ir.Scatter) && r != m.coll.Root:
		return cell{r, int(buf), index}
	case k == ir.Gather && buf == ir.Input, k == ir.Scatter && buf == ir.Output:
		part = own
	}
	return cell{r, 0, index + part}
}

// len is the length of a buffer as named.
func (m *model) len(r ir.Rank, buf ir.BufferID) int32 {
	switch buf {
	case ir.Input:
		return m.coll.InputChunks(r)
	case ir.Output:
		return m.coll.OutputChunks(r)
	}
	return m.length[cell{r, int(buf), 0}]
}

// cells lists the memory of a span.
func (m *model) cells(s span) []cell {
	list := make([]cell, s.count)
	for i := range list {
		list[i] = m.cell(s.rank, s.buf, s.index+int32(i))
	}
	return list
}

// holds reports whether every chunk of s lies inside its buffer and holds something.
func (m *model) holds(s span) bool {
	if s.index < 0 || s.index+s.count > m.len(s.rank, s.buf) {
		return false
	}
	for _, c := range m.cells(s) {
		if len(m.held[c]) == 0 {
			return false
		}
	}
	return true
}

func (m *model) overlap(x, y span) bool {
	for _, c := range m.cells(x) {
		if slices.Contains(m.cells(y), c) {
			return true
		}
	}
	return false
}

// apply does an operation.
func (m *model) apply(o op) {
	from := m.cells(o.src)
	for i, to := range m.cells(o.dst) {
		value := slices.Clone(m.held[from[i]])
		if o.reduce {
			value = append(value, m.held[to]...)
			slices.SortFunc(value, compare)
		}
		m.held[to], m.written[to] = value, true
	}
	if o.dst.buf >= ir.FirstScratch {
		at := cell{o.dst.rank, int(o.dst.buf), 0}
		m.length[at] = max(m.length[at], o.dst.index+o.dst.count)
	}
}

func compare(x, y ir.Contribution) int {
	if x.Rank != y.Rank {
		return int(x.Rank - y.Rank)
	}
	return int(x.Index - y.Index)
}

// expect is the postcondition that demands everything outputs now hold. Chunks
// of a custom collective are the declared ones, so its Split is 1.
func (m *model) expect() [][][]ir.Contribution {
	want := make([][][]ir.Contribution, m.coll.Ranks)
	for r := range want {
		want[r] = make([][]ir.Contribution, m.coll.Custom.Output[r])
		for i := range want[r] {
			want[r][i] = m.held[m.cell(ir.Rank(r), ir.Output, int32(i))]
		}
	}
	return want
}

// runs lists the longest held ranges of every buffer, in order.
func (m *model) runs() []span {
	var list []span
	for r := range ir.Rank(m.coll.Ranks) {
		for buf := range scratch(m.names()) {
			open := false
			for i := range m.len(r, buf) {
				held := len(m.held[m.cell(r, buf, i)]) > 0
				switch {
				case held && open:
					list[len(list)-1].count++
				case held:
					list = append(list, span{r, buf, i, 1})
				}
				open = held
			}
		}
	}
	return list
}

// agrees compares every location with what a Builder says of it.
func (m *model) agrees(b *trace.Builder) error {
	for r := range ir.Rank(m.coll.Ranks) {
		for buf := range scratch(m.names()) {
			if got, want := b.LenScratch(buf, r), m.len(r, buf); got != want {
				return fmt.Errorf("rank %d buffer %d: trace has %d chunks, the model %d", r, buf, got, want)
			}
			for i := range m.len(r, buf) {
				got, want := b.Contributions(r, buf, i), m.held[m.cell(r, buf, i)]
				if !slices.Equal(got, want) {
					return fmt.Errorf("rank %d buffer %d index %d: trace holds %v, the model %v", r, buf, i, got, want)
				}
			}
		}
	}
	return nil
}
