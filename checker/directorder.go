package checker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// sort lists all events in an order that they can happen in. If there is none it
// returns a cycle, each event of which comes after the next: what one schedule
// can't end no other can, since nobody chooses.
func (d *rendezvous) sort(ctx context.Context) (cycle []int32, err error) {
	n := len(d.start) - 1
	const fresh, open, done = 0, 1, 2
	state := make([]uint8, n)
	next := slices.Clone(d.start[:n]) // of an event: the first in pred not looked at
	d.order = make([]int32, 0, n)
	var path []int32
	for root := range int32(n) {
		if root&0xffff == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if state[root] != fresh {
			continue
		}
		state[root] = open
		path = append(path[:0], root)
		for len(path) > 0 {
			v := path[len(path)-1]
			if next[v] == d.start[v+1] {
				state[v] = done
				d.order = append(d.order, v)
				path = path[:len(path)-1]
				continue
			}
			u := d.pred[next[v]]
			next[v]++
			switch state[u] {
			case fresh:
				state[u] = open
				path = append(path, u)
			case open:
				return path[slices.Index(path, u):], nil
			}
		}
	}
	return nil, nil
}

// stay is a stretch of a cycle within one thread block: others wait for an event of
// step in, and step out waits for the next stretch.
type stay struct{ tb, in, inEvent, out int32 }

// reportDeadlock tells a cycle of events as thread blocks that wait.
func (d *rendezvous) reportDeadlock(f *findings, cycle []int32) {
	if !f.admit(CodeDeadlock) {
		return
	}
	m := d.m
	var stays []stay
	for i := range cycle {
		prev := cycle[(i+len(cycle)-1)%len(cycle)]
		s, tb := cycle[i]/events, m.steps[cycle[i]/events].tb
		if m.steps[prev/events].tb != tb || len(stays) == 0 {
			stays = append(stays, stay{tb: tb, in: s, inEvent: cycle[i] % events})
		}
		stays[len(stays)-1].out = s
	}
	// The cycle may begin in the middle of a stretch.
	if last := stays[len(stays)-1]; len(stays) > 1 && last.tb == stays[0].tb {
		stays[0].in, stays[0].inEvent = last.in, last.inEvent
		stays = stays[:len(stays)-1]
	}
	first := 0
	for i := range stays {
		if cmp.Compare(stays[i].out, stays[first].out) < 0 {
			first = i
		}
	}
	stays = append(stays[first:], stays[:first]...)
	msg := errorAt(m, stays[0].out, CodeDeadlock, "deadlock without slots (protocol Direct): a cycle of %s, each waiting for the next",
		plural(len(stays), "step"))
	for i := range stays {
		if i == maxCycle {
			msg.Note(diag.Pos{}, "and %d more", len(stays)-i)
			break
		}
		msg.Note(m.pos(stays[i].out), "%s waits for %s", m.name(stays[i].out), d.reason(&stays[(i+1)%len(stays)]))
	}
	f.add(msg.Suggest("let sends and receives run in separate thread blocks, or put a receive that waits for nothing right behind a send to the same rank"))
}

// reason names what a step waits for: an event in the next stretch of the cycle,
// and what that stands behind.
func (d *rendezvous) reason(to *stay) string {
	what := "to end"
	switch st := &d.m.steps[to.in]; {
	case to.inEvent == arrival, to.inEvent == part && st.kind == ir.Send && d.pulled(to.in):
		what = "to arrive"
	case to.inEvent == part:
		what = "to move its bytes"
		if !d.moving(to.in) {
			what = "to receive"
		}
	}
	if to.in == to.out {
		return fmt.Sprintf("%s %s", d.m.name(to.in), what)
	}
	return fmt.Sprintf("%s %s, after %s", d.m.name(to.in), what, d.m.inRank(to.out))
}

// rankClocks says of every step which steps of other thread blocks of its rank have
// ended when it arrives, as far as program order and dependencies tell.
type rankClocks struct {
	d    *rendezvous
	slab []int32
	row  []int32 // of a step: where its row begins in slab, or None
}

// newRankClocks goes through the steps as they arrive. Rows are shared by steps of
// one thread block until one waits; when they fill memory the rest know nothing.
func newRankClocks(d *rendezvous, limit int) *rankClocks {
	m := d.m
	c := &rankClocks{d: d, row: make([]int32, len(m.steps))}
	for _, v := range d.order {
		if v%events != arrival {
			continue
		}
		s := v / events
		st := &m.steps[s]
		c.row[s] = ir.None
		if s > m.tbs[st.tb].first {
			c.row[s] = c.row[s-1]
		}
		ri := &m.ranks[m.tbs[st.tb].rank]
		width := int(ri.endTB - ri.firstTB)
		if st.depStart == st.depEnd || len(c.slab)+width > limit {
			continue
		}
		at := int32(len(c.slab))
		if c.row[s] != ir.None {
			c.slab = append(c.slab, c.slab[c.row[s]:int(c.row[s])+width]...)
		} else {
			c.slab = append(c.slab, make([]int32, width)...)
		}
		mine := c.slab[at : int(at)+width]
		for _, x := range m.deps[st.depStart:st.depEnd] {
			if c.row[x] != ir.None {
				join(mine, c.slab[c.row[x]:int(c.row[x])+width])
			}
			u := m.steps[x].tb
			over := x - m.tbs[u].first + 1
			if d.exchanges(x) { // the receive ends with it
				over++
			}
			mine[u-ri.firstTB] = max(mine[u-ri.firstTB], over)
		}
		c.row[s] = at
	}
	return c
}

// before reports whether step a surely ends before step b of its rank arrives.
func (c *rankClocks) before(a, b int32) bool {
	m := c.d.m
	ta, tb := m.steps[a].tb, m.steps[b].tb
	if ta == tb {
		return a < b && c.d.partner(a) != b
	}
	if c.row[b] == ir.None {
		return false
	}
	r := m.tbs[ta].rank
	return c.slab[c.row[b]+ta-m.ranks[r].firstTB] > a-m.tbs[ta].first
}

// ordered reports whether transfer a surely is over before transfer b begins: by
// the thread block that moves both, or by a rank that takes part in both.
func (c *rankClocks) ordered(a, b *transfer) bool {
	m := c.d.m
	if m.steps[a.step].tb == m.steps[b.step].tb {
		return a.step < b.step
	}
	for _, p := range [...]int32{a.step, a.from, a.to} {
		for _, q := range [...]int32{b.step, b.from, b.to} {
			if p != ir.None && q != ir.None && m.tbs[m.steps[p].tb].rank == m.tbs[m.steps[q].tb].rank && c.before(p, q) {
				return true
			}
		}
	}
	return false
}

// unordered returns the pairs of transfers of which the first is not over when the
// second begins, exactly. It carries clocks along the order of events: how far the
// transfers of certain thread blocks are. Those are the thread blocks of the first
// transfers, as many at a time as memory allows; the transfers of one are in order.
func (d *rendezvous) unordered(ctx context.Context, pairs []pair) ([]pair, error) {
	column := map[int32]int32{} // by thread block
	for i := range pairs {
		tb := d.m.steps[d.moves[pairs[i].a].step].tb
		if _, ok := column[tb]; !ok {
			column[tb] = int32(len(column))
		}
	}
	width := int32(min(max(maxClocks/max(len(d.order), 1), 1), len(column)))
	var out []pair
	for from := int32(0); int(from) < len(column); from += width {
		rows, err := d.sweep(ctx, column, from, width)
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			a, b := d.moves[p.a].step, d.moves[p.b].step
			k := column[d.m.steps[a].tb] - from
			if k < 0 || k >= width {
				continue
			}
			if rows[int64(b*events+part)*int64(width)+int64(k)] <= a-d.m.tbs[d.m.steps[a].tb].first {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// sweep makes the clocks of width columns from one on, a row an event: how far a
// thread block's transfers are that come before the event, or are it.
func (d *rendezvous) sweep(ctx context.Context, column map[int32]int32, from, width int32) ([]int32, error) {
	rows := make([]int32, int64(len(d.order))*int64(width))
	row := func(v int32) []int32 { return rows[int64(v)*int64(width):][:width] }
	for i, v := range d.order {
		if i&0xfff == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		mine := row(v)
		for _, u := range d.pred[d.start[v]:d.start[v+1]] {
			join(mine, row(u))
		}
		s := v / events
		if v%events != part || !d.moving(s) {
			continue
		}
		tb := d.m.steps[s].tb
		if k, ok := column[tb]; ok && k >= from && k < from+width {
			mine[k-from] = s - d.m.tbs[tb].first + 1
		}
	}
	return rows, nil
}
