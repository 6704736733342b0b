package checker

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// maxClocks bounds the entries of all clocks held at a time (4 bytes each).
const maxClocks = 1 << 26

// localClocks order the steps of one rank by what the rank itself says: program
// order and dependencies. A clock has an entry a thread block: how many of its
// steps are over. Clocks are shared until one changes.
type localClocks struct {
	m     *model
	first int32 // thread block with entry 0
	width int
	slab  []int32 // the rows
	row   []int32 // of a thread block: its row, None while it has waited for no one
	left  []int32 // of a step: the row when it ended
	limit int     // entries of all rows together
	off   bool    // too big: nothing is ordered here, so everything is asked elsewhere
}

func newLocalClocks(m *model) *localClocks {
	return &localClocks{m: m, limit: maxClocks, left: make([]int32, len(m.steps))}
}

// begin starts over for the rank with the given steps.
func (c *localClocks) begin(ri *rankInfo, steps []int32) {
	c.first, c.width = ri.firstTB, int(ri.endTB-ri.firstTB)
	c.slab, c.row = c.slab[:0], c.row[:0]
	for range c.width {
		c.row = append(c.row, ir.None)
	}
	waits := 0
	for _, s := range steps {
		if st := &c.m.steps[s]; st.depStart != st.depEnd {
			waits++
		}
	}
	c.off = waits*c.width > c.limit
}

// at is row n; a nil row knows nothing.
func (c *localClocks) at(n int32) []int32 {
	if n == ir.None {
		return nil
	}
	return c.slab[int(n)*c.width : (int(n)+1)*c.width]
}

// enter lets step id wait for its dependencies.
func (c *localClocks) enter(id int32) {
	st := &c.m.steps[id]
	if c.off {
		return
	}
	t := st.tb - c.first
	changed := false
	for _, d := range c.m.deps[st.depStart:st.depEnd] {
		if c.after(id, d) {
			continue
		}
		if !changed {
			changed = true
			next := int32(len(c.slab) / c.width)
			old := c.at(c.row[t])
			c.slab = append(c.slab, make([]int32, c.width)...)
			copy(c.at(next), old)
			c.row[t] = next
		}
		mine := c.at(c.row[t])
		for i, v := range c.at(c.left[d]) {
			mine[i] = max(mine[i], v)
		}
		u := c.m.steps[d].tb
		mine[u-c.first] = max(mine[u-c.first], d-c.m.tbs[u].first+1)
	}
}

// leave ends step id.
func (c *localClocks) leave(id int32) {
	if !c.off {
		c.left[id] = c.row[c.m.steps[id].tb-c.first]
	}
}

// after reports whether the thread block of step id, which is at id, has waited
// for step a of another thread block.
func (c *localClocks) after(id, a int32) bool {
	if c.off {
		return false
	}
	row := c.at(c.row[c.m.steps[id].tb-c.first])
	u := c.m.steps[a].tb
	return row != nil && row[u-c.first] > a-c.m.tbs[u].first
}

// happensBefore answers exactly, messages included, for the pairs that a rank
// alone doesn't order.
//
// With protocol Simple a step is over when its last message is; another begins with
// its first. Program order and dependencies lead from an end to a beginning. Messages
// lead from each chunk of a send to the same chunk of its receive. So a path from a to
// b with at least one edge of the former kinds orders all of a before all of b, and a
// path of messages alone orders chunk i of a before chunk j of b iff i <= j: a message
// holds consecutive chunks, how many depends on the size.
//
// With LL and LL128 flags travel with the data, and each thread sends and takes what is
// its own (places.go): chunks of one message are in no order, and a message tells
// neither that all of its send is over nor what else the send did to the chunk.
type happensBefore struct {
	m     *model
	order []int32
	pos   []int32 // of a step: where it stands in order
	limit int     // entries of all clocks held at a time
}

func newHappensBefore(m *model, order []int32) *happensBefore {
	h := &happensBefore{m: m, order: order, limit: maxClocks, pos: make([]int32, len(m.steps))}
	for i, s := range order {
		h.pos[s] = int32(i)
	}
	return h
}

// unordered returns the pairs whose second step does not come after their first.
// It carries clocks along the order: for every step, how far certain thread blocks
// are when it is over, as a mark. Those are the thread blocks of the first steps, as
// many at a time as memory allows.
func (h *happensBefore) unordered(ctx context.Context, pairs []pair) ([]pair, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	column := make([]int32, len(h.m.tbs)) // by first step: its position, then its column
	for i := range column {
		column[i] = math.MaxInt32
	}
	var tbs []int32
	for _, p := range pairs {
		t := h.m.steps[p.a].tb
		if column[t] == math.MaxInt32 {
			tbs = append(tbs, t)
		}
		column[t] = min(column[t], h.pos[p.a])
	}
	slices.SortFunc(tbs, func(x, y int32) int {
		return cmp.Or(cmp.Compare(column[x], column[y]), cmp.Compare(x, y))
	})
	for i, t := range tbs {
		column[t] = int32(i)
	}
	sorted := slices.Clone(pairs)
	slices.SortStableFunc(sorted, func(x, y pair) int {
		return cmp.Compare(column[h.m.steps[x.a].tb], column[h.m.steps[y.a].tb])
	})
	width := min(max(h.limit/len(h.order), 1), len(tbs))
	c := &columns{h: h, column: column, width: width}
	var out []pair
	for from := 0; from < len(tbs); from += width {
		n := 0
		for n < len(sorted) && int(column[h.m.steps[sorted[n].a].tb]) < from+width {
			n++
		}
		var err error
		if out, err = c.block(ctx, int32(from), sorted[:n], out); err != nil {
			return nil, err
		}
		sorted = sorted[n:]
	}
	return out, nil
}

// sentMark and overMark are what a clock says of step a and its thread block: all of
// a's messages are on their way, as all are who took them in part know; or it is over.
// Each step's marks are after those of the step before it.
func (m *model) overMark(a int32) int32 { return 2 * (a - m.tbs[m.steps[a].tb].first + 1) }
func (m *model) sentMark(a int32) int32 { return m.overMark(a) - 1 }

// columns are the clocks of some thread blocks along a stretch of the order.
type columns struct {
	h      *happensBefore
	column []int32
	width  int
	from   int32 // first column held
	start  int32 // first position held
	rows   []int32
}

// block decides pairs whose first steps lie in width columns from one on, and
// appends those that are unordered.
func (c *columns) block(ctx context.Context, from int32, pairs, out []pair) ([]pair, error) {
	h := c.h
	c.from, c.start = from, math.MaxInt32
	end := int32(0)
	for i := range pairs {
		c.start = min(c.start, h.pos[pairs[i].a])
		end = max(end, h.pos[pairs[i].b])
	}
	size := int(end-c.start+1) * c.width
	if cap(c.rows) < size {
		c.rows = make([]int32, size)
	}
	c.rows = c.rows[:size]
	for at := c.start; at <= end; at++ {
		if at&0xfff == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c.fill(h.order[at], at)
	}
	for _, p := range pairs {
		if !c.ordered(&p) {
			out = append(out, p)
		}
	}
	return out, nil
}

// row is the clock when step s is over; nil before the stretch. What is left
// out there is older than every first step that is asked about.
func (c *columns) row(s int32) []int32 {
	at := c.h.pos[s] - c.start
	if at < 0 {
		return nil
	}
	return c.rows[int(at)*c.width : (int(at)+1)*c.width]
}

func (c *columns) fill(id, at int32) {
	m := c.h.m
	s := &m.steps[id]
	row := c.row(id)
	n := 0
	if id > m.tbs[s.tb].first {
		n = copy(row, c.row(id-1))
	}
	clear(row[n:])
	for _, d := range m.deps[s.depStart:s.depEnd] {
		join(row, c.row(d))
	}
	if s.mate != ir.None {
		c.take(row, s.mate)
	}
	if k := c.column[s.tb] - c.from; k >= 0 && int(k) < c.width {
		row[k] = m.overMark(id)
	}
}

// take joins what the message of a send tells: with flags not that the send is over.
func (c *columns) take(row []int32, mate int32) {
	k := c.column[c.h.m.steps[mate].tb] - c.from
	if !c.h.m.flagged || k < 0 || int(k) >= c.width {
		join(row, c.row(mate))
		return
	}
	known := row[k]
	join(row, c.row(mate))
	row[k] = max(known, min(row[k], c.h.m.sentMark(mate)))
}

func join(row, other []int32) {
	if len(other) == 0 {
		return
	}
	row = row[:len(other)]
	for i, v := range other {
		if v > row[i] {
			row[i] = v
		}
	}
}

// over reports whether a is over when s is.
func (c *columns) over(a, s int32) bool { return c.knows(s, a, c.h.m.overMark(a)) }

// knows reports whether a's thread block has come as far as a mark when s is over.
func (c *columns) knows(s, a, mark int32) bool {
	row := c.row(s)
	return row != nil && row[c.column[c.h.m.steps[a].tb]-c.from] >= mark
}

// known reports whether a's thread block has come as far as a mark when s begins.
func (c *columns) known(s, a, mark int32) bool {
	m := c.h.m
	st := &m.steps[s]
	if s > m.tbs[st.tb].first && c.knows(s-1, a, mark) {
		return true
	}
	for _, d := range m.deps[st.depStart:st.depEnd] {
		if c.knows(d, a, mark) {
			return true
		}
	}
	return false
}

func (c *columns) ordered(p *pair) bool {
	if c.h.m.flagged {
		return c.orderedPlaces(p)
	}
	if !c.over(p.a, p.b) {
		return false
	}
	// Only messages may lead from a to b. If then chunks don't line up, one of the
	// steps that pass the message on must begin after a is over.
	return !p.shifted || !c.h.m.passedOn(p.a, p.b) || c.knownOnTheWay(p, c.h.m.overMark(p.a))
}

// passedOn reports whether b, or who sends to it what it has just taken, and so on,
// takes what a sends.
func (m *model) passedOn(a, b int32) bool {
	for b != a && m.steps[b].mate != ir.None {
		b = m.steps[b].mate
	}
	return a == b
}

// knownOnTheWay reports whether one of the steps that pass on what a sends, b the last
// of them, begins when a's thread block has come as far as a mark.
func (c *columns) knownOnTheWay(p *pair, mark int32) bool {
	for y := p.b; y != p.a; y = c.h.m.steps[y].mate {
		if c.known(y, p.a, mark) {
			return true
		}
	}
	return false
}
