package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// wantKind says what is demanded of a location.
type wantKind uint8

const (
	wantNothing wantKind = iota
	wantInput            // what it held at first
	wantOutput           // what the collective demands of an output
)

// demand is what is demanded of the location of a cell, by its canonical name; index is
// that of the input or output.
func (m *Machine) demand(l ir.Loc) (kind wantKind, index int32) {
	c := m.p.Coll
	if buf, index := c.Canon(l.Rank, l.Buf, l.Index); buf != l.Buf || index != l.Index {
		return wantNothing, 0 // no memory of its own
	}
	if !c.Observable(l.Rank, l.Buf, l.Index) {
		return wantNothing, 0
	}
	if l.Buf == ir.Input && !c.InPlace {
		return wantInput, l.Index
	}
	if c.Kind == ir.Custom && c.Custom.Open {
		return wantNothing, 0
	}
	if l.Buf == ir.Output {
		return wantOutput, l.Index
	}
	// In place an output has an input's name: where output 0 is says how far apart.
	_, first := c.Canon(l.Rank, ir.Output, 0)
	return wantOutput, l.Index - first
}

// judgment is a question that was answered: whether a value is what is demanded of an
// output. rank is None where all ranks have the same demands.
type judgment struct {
	value int32
	rank  ir.Rank
	index int32
}

// asDemanded reports whether a location of which something is demanded holds it.
func (m *Machine) asDemanded(l ir.Loc, kind wantKind, index, value int32) bool {
	if kind == wantInput {
		if !m.p.Coll.Holds(l.Rank, index) {
			return value == valueEmpty
		}
		return value == m.values.leaf(l.Rank, index)
	}
	if value < 0 {
		for _, r := range m.values.mixed[-value-1] {
			if !m.asDemanded(l, kind, index, r.value) {
				return false
			}
		}
		return true
	}
	if value < valueFirst || m.values.size(value) != m.terms(l.Rank, index) {
		return false
	}
	j := judgment{value, l.Rank, index}
	if k := m.p.Coll.Kind; k == ir.AllReduce || k == ir.ReduceTo {
		j.rank = ir.None
	}
	good, known := m.judged[j]
	if !known {
		want, _ := m.p.Coll.Expect(nil, l.Rank, index)
		good = m.values.is(value, want)
		m.judged[j] = good
	}
	return good
}

// terms is the number of contributions that an output has to hold.
func (m *Machine) terms(r ir.Rank, index int32) uint32 {
	switch c := m.p.Coll; c.Kind {
	case ir.AllReduce, ir.ReduceScatter, ir.ReduceTo:
		return uint32(c.Ranks)
	case ir.Custom:
		return uint32(len(c.Custom.Expect[r][index/c.Split]))
	}
	return 1
}

// final reports whether something is demanded of a location, and whether it is there.
func (m *Machine) final(cell int32) (demanded, good bool) {
	l := m.nameOf(cell)
	kind, index := m.demand(l)
	if kind == wantNothing {
		return false, false
	}
	return true, m.asDemanded(l, kind, index, m.cells[cell])
}

// mark marks the content of a location; written says that something is still to be
// written there.
func (m *Machine) mark(cell int32, written bool) Mark {
	demanded, good := m.final(cell)
	switch {
	case !demanded:
		return Free
	case good:
		return Final
	case written:
		return Pending
	}
	return Wrong
}

// content is a value as others see it.
func (m *Machine) content(value int32) Content {
	switch {
	case value < 0:
		return m.mixture(m.values.mixed[-value-1])
	case value == valueEmpty:
		return Content{State: Empty}
	case value == valueJunk:
		return Content{State: Junk}
	}
	return Content{State: Sum, Terms: m.values.list(value)}
}

// mixture is the content of a chunk in parts. Parts that were added up in other orders
// hold the same.
func (m *Machine) mixture(runs []run) Content {
	var parts []Part
	from := int64(0)
	for _, r := range runs {
		c := m.content(r.value)
		if n := len(parts); n > 0 && same(parts[n-1].Content, c) {
			parts[n-1].To = r.to
		} else {
			parts = append(parts, Part{from, r.to, c})
		}
		from = r.to
	}
	if len(parts) == 1 {
		return parts[0].Content
	}
	return Content{State: Mixed, Parts: parts}
}

// same compares contents without their marks.
func same(a, b Content) bool {
	return a.State == b.State && slices.Equal(a.Terms, b.Terms) &&
		slices.EqualFunc(a.Parts, b.Parts, func(x, y Part) bool {
			return x.From == y.From && x.To == y.To && same(x.Content, y.Content)
		})
}

// cellOf is the cell of a location that someone asks for.
func (m *Machine) cellOf(l ir.Loc) (int32, error) {
	if l.Rank < 0 || int(l.Rank) >= len(m.ranks) || l.Buf < 0 || l.Buf > ir.FirstScratch ||
		l.Index < 0 || l.Index >= m.ranks[l.Rank].sizes[l.Buf] {
		return 0, bad(diag.Pos{}, "no-location", "there is no %s", locName(l))
	}
	return m.loc(l.Rank, l.Buf, l.Index), nil
}

func locName(l ir.Loc) string {
	return fmt.Sprintf("%d.%s[%d]", l.Rank, bufferWord(l.Buf), l.Index)
}

func bufferWord(b ir.BufferID) string {
	if b < 0 || b > ir.FirstScratch {
		return "?"
	}
	return [...]string{"i", "o", "s"}[b]
}

// Content is what a location holds.
func (m *Machine) Content(l ir.Loc) (Content, error) {
	cell, err := m.cellOf(l)
	if err != nil {
		return Content{}, err
	}
	c := m.content(m.cells[cell])
	c.Mark = m.markNow(cell)
	return c, nil
}

// Buffer is what a buffer of a rank holds, by index. In place, input and output show
// the same memory.
func (m *Machine) Buffer(r ir.Rank, b ir.BufferID) ([]Content, error) {
	if r < 0 || int(r) >= len(m.ranks) || b < 0 || b > ir.FirstScratch {
		return nil, bad(diag.Pos{}, "no-location", "there is no buffer %d of rank %d", b, r)
	}
	out := make([]Content, m.ranks[r].sizes[b])
	written := m.written(r)
	for i := range out {
		cell := m.loc(r, b, int32(i))
		out[i] = m.content(m.cells[cell])
		out[i].Mark = m.mark(cell, written[cell-m.ranks[r].base])
	}
	return out, nil
}

// Progress counts what is done.
func (m *Machine) Progress() Progress {
	p := Progress{Moves: m.now, TBs: len(m.tbs)}
	for r := range m.ranks {
		var written []bool
		for i := m.ranks[r].base; i < m.ranks[r].base+m.ranks[r].sizes[0]+m.ranks[r].sizes[1]; i++ {
			demanded, good := m.final(i)
			if !demanded {
				continue
			}
			p.Demanded++
			if good {
				p.Final++
				continue
			}
			if written == nil {
				written = m.written(ir.Rank(r))
			}
			if !written[i-m.ranks[r].base] {
				p.Wrong++
			}
		}
	}
	for t := range m.tbs {
		b := &m.tbs[t]
		p.Steps += int(b.end - b.first)
		p.StepsDone += int(m.at(int32(t)) - b.first)
		if m.ended(int32(t)) {
			p.Ended++
		}
	}
	return p
}

// toCome calls f for every run of cells of a rank into which steps that have not ended
// write, until f says that it is enough.
func (m *Machine) toCome(r ir.Rank, f func(first, count int32) (enough bool)) {
	if o, ok := m.rules.(*oneSided); ok {
		o.toCome(r, f)
		return
	}
	for t := m.ranks[r].firstTB; t < m.ranks[r].endTB; t++ {
		for id := m.at(t); id < m.tbs[t].end; id++ {
			if s := &m.steps[id]; s.dst != ir.None && f(s.dst, s.count) {
				return
			}
		}
	}
}

// written reports of every cell of a rank, from its first one on, whether something is
// still to be written there.
func (m *Machine) written(r ir.Rank) []bool {
	p := &m.ranks[r]
	n := p.sizes[0] + p.sizes[1] + p.sizes[2]
	steps := make([]int32, n+1) // where runs begin, less those that end
	m.toCome(r, func(first, count int32) bool {
		steps[first-p.base]++
		steps[first-p.base+count]--
		return false
	})
	out := make([]bool, n)
	open := int32(0)
	for i := range out {
		open += steps[i]
		out[i] = open > 0
	}
	return out
}

// markNow is the mark of one location.
func (m *Machine) markNow(cell int32) Mark {
	k := m.mark(cell, true)
	if k != Pending {
		return k
	}
	k = Wrong
	m.toCome(m.nameOf(cell).Rank, func(first, count int32) bool {
		if cell >= first && cell < first+count {
			k = Pending
		}
		return k == Pending
	})
	return k
}

// writes tells what a move changed in memory, from its changes: of each location
// what was there before its first change, and what is there after the last one. back
// says that the changes are those of a move that was taken back.
func (m *Machine) writes(changes []change, back bool) []Written {
	type pair struct{ cell, old, now int32 }
	var list []pair
	found := map[int32]bool{}
	for i := range changes {
		c := changes[i]
		if c.cell >= m.nLocs {
			continue
		}
		if found[c.cell] {
			for j := range list {
				if list[j].cell == c.cell && back {
					list[j].now = c.value // the last one holds what was there after the move
				}
			}
			continue
		}
		found[c.cell] = true
		p := pair{c.cell, c.value, m.cells[c.cell]}
		if back {
			p.old, p.now = p.now, p.old
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b pair) int { return int(a.cell) - int(b.cell) })
	var out []Written
	for _, p := range list {
		l := m.nameOf(p.cell)
		w := Written{Loc: l, Before: m.content(p.old), Now: m.content(p.now)}
		if !back {
			w.Now.Mark = m.markNow(p.cell)
		} else {
			w.Before.Mark = m.markNow(p.cell)
		}
		out = append(out, w)
	}
	return out
}

// String is the content in short: 0.0+1.0, sum of 0..7 [3], junk, or - for what is empty.
func (c Content) String() string {
	switch c.State {
	case Empty:
		return "-"
	case Junk:
		return "junk"
	case Mixed:
		var parts []string
		for _, p := range c.Parts {
			parts = append(parts, fmt.Sprintf("%d:%d %s", p.From, p.To, p.Content))
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	if len(c.Terms) <= 4 {
		var parts []string
		for _, t := range c.Terms {
			parts = append(parts, fmt.Sprintf("%d.%d%s", t.Rank, t.Index, times(t.Times)))
		}
		return strings.Join(parts, "+")
	}
	return "sum of " + groups(c.Terms)
}

func times(n uint64) string {
	switch {
	case n == 1:
		return ""
	case n == tooMany:
		return "xmany"
	}
	return "x" + strconv.FormatUint(n, 10)
}

// groups joins terms of one index and count: 0..3,5 [3] + 6..7 [4]. Terms that fall
// into many groups are counted.
func groups(terms []Term) string {
	type key struct {
		index int32
		times uint64
	}
	ranks := map[key][]int32{}
	var order []key
	for _, t := range terms {
		k := key{t.Index, t.Times}
		if ranks[k] == nil {
			order = append(order, k)
		}
		ranks[k] = append(ranks[k], int32(t.Rank))
	}
	if len(order) > 4 {
		last := terms[len(terms)-1]
		return fmt.Sprintf("%d chunks, %d.%d to %d.%d", len(terms), terms[0].Rank, terms[0].Index, last.Rank, last.Index)
	}
	var parts []string
	for _, k := range order {
		parts = append(parts, fmt.Sprintf("%s [%d]%s", runs(ranks[k]), k.index, times(k.times)))
	}
	return strings.Join(parts, " + ")
}

// runs writes ascending numbers: 0..3,5.
func runs(list []int32) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, fmt.Sprint(list[i]))
		case 1:
			parts = append(parts, fmt.Sprint(list[i]), fmt.Sprint(list[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d..%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
