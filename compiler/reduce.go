package compiler

import (
	"context"

	"github.com/mscclsh/mscclsh/ir"
)

// reduceWaits drops waits that program order, other waits and messages imply.
//
// First, rank by rank, with a clock for every step that says how far each other
// thread block of the rank is known to be: exact for what stays on the rank.
// Then what is left is looked for backwards through messages, in the order of
// the run so that every wait met is one that stays. That search visits at most
// searchLimit steps for a wait; a wait it can't settle stays, which costs time
// and nothing else.
func reduceWaits(_ context.Context, s *state) error {
	c := s.newClocks()
	for r, tbs := range s.tbsByRank() {
		if len(tbs) < 2 {
			continue
		}
		c.run(ir.Rank(r), tbs, func(i int32, k int, known bool) {
			_, gone := s.waits.of(i)
			gone[k] = known
		})
	}
	implied := newQuery(s).implied
	if s.direct() { // where a sender may come later than its receiver
		implied = newMeeting(s).implied
	}
	for _, i := range s.exec {
		on, gone := s.waits.of(i)
		for k := range on {
			if !gone[k] && implied(i, k) {
				gone[k] = true
			}
		}
	}
	s.stats.DepsAfter = 0
	for _, g := range s.waits.gone {
		if !g {
			s.stats.DepsAfter++
		}
	}
	return nil
}

// tbsByRank lists the thread blocks of each rank.
func (s *state) tbsByRank() [][]int32 {
	of := make([][]int32, s.fused.Ranks())
	for t := range s.tbs {
		of[s.tbs[t].rank] = append(of[s.tbs[t].rank], int32(t))
	}
	return of
}

// clocks says, for every step of one rank, how many steps of each of the rank's
// thread blocks are known to be done when it is. One is used for rank after rank.
type clocks struct {
	*state
	column []int32 // of a thread block of this rank
	row    []int32 // first row of a thread block of this rank
	width  int
	rows   []int32
}

func (s *state) newClocks() *clocks {
	return &clocks{state: s, column: make([]int32, len(s.tbs)), row: make([]int32, len(s.tbs))}
}

// of is the row of step k of thread block t.
func (c *clocks) of(t, k int32) []int32 {
	at := int(c.row[t]+k) * c.width
	return c.rows[at : at+c.width]
}

// run fills the clocks of rank r, step by step in the order of the run. seen, if
// given, is called for every wait, latest first, with whether it was known
// already. Without it, waits that are gone are passed over: they taught nothing.
func (c *clocks) run(r ir.Rank, tbs []int32, seen func(i int32, k int, known bool)) {
	c.width = len(tbs)
	total := int32(0)
	for k, t := range tbs {
		c.column[t], c.row[t] = int32(k), total
		total += int32(len(c.steps[t]))
	}
	if size := int(total) * c.width; size > cap(c.rows) {
		c.rows = make([]int32, size)
	} else {
		c.rows = c.rows[:size]
	}
	for _, i := range c.state.ofRank[r] {
		t, k := c.tbOf[i], c.stepOf[i]
		row := c.of(t, k)
		if k > 0 {
			copy(row, c.of(t, k-1))
		} else {
			clear(row)
		}
		on, gone := c.waits.of(i)
		for w, p := range on {
			known := row[c.column[c.tbOf[p]]] > c.stepOf[p]
			if seen != nil {
				seen(i, w, known)
			}
			if known || seen == nil && gone[w] {
				continue
			}
			for x, n := range c.of(c.tbOf[p], c.stepOf[p]) {
				row[x] = max(row[x], n)
			}
		}
		row[c.column[t]] = k + 1
	}
}

// searchLimit bounds one backward search, in moments visited.
const searchLimit = 512

// query answers whether the end of a step is reached backwards from the start
// of another without the one wait in question.
//
// A step has two moments. Its start comes after the end of the step before it
// in its thread block, after the end of every step that it waits for, and after
// the start of the step that sends to it; its end comes after its start and after
// the end of the step that sends to it. Start and end must be told apart because
// messages of one step are passed on while others are still to come. With a
// single chunk, what overlaps is the same chunk at both ends, part by part in the
// same order, so the sender's end counts.
//
// With LL and LL128 a message tells of itself alone: each of its parts is sent and taken
// by a thread of its own, whatever the other threads of the thread block have done, and
// what was written to memory before need not be there. What holds is that a part that
// was read was sent after that, and that what came of it arrives later still, at the same
// place of a message. So only waits for sends are dropped, for a place to have been read
// before it is overwritten, and only along messages of one chunk. Who overwrites must read
// nothing: an operand is read when the step begins, before its message has come.
type query struct {
	*state
	epoch int32
	seen  [][2]int32 // by instruction: epoch in which its start and end were visited
	stack []moment
}

// moment is the start (0) or the end (1) of an instruction's step.
type moment struct{ of, end int32 }

func newQuery(s *state) *query {
	return &query{state: s, seen: make([][2]int32, len(s.exec))}
}

// implied reports whether wait k of instruction i follows from everything else.
func (q *query) implied(i int32, k int) bool {
	on, _ := q.waits.of(i)
	goal := on[k]
	if q.flagged() && !q.onlyRead(i, goal) {
		return false
	}
	q.epoch++
	q.stack = q.stack[:0]
	q.before(moment{i, 0}, goal, k)
	for visited := 0; len(q.stack) > 0 && visited < searchLimit; visited++ {
		v := q.stack[len(q.stack)-1]
		q.stack = q.stack[:len(q.stack)-1]
		if q.tbOf[v.of] == q.tbOf[goal] && q.time(v) >= q.time(moment{goal, 1}) {
			return true
		}
		q.before(v, goal, ir.None)
	}
	return false
}

// onlyRead reports whether step i of one chunk, which reads nothing, waits for the thread
// block of goal for nothing but sends of one chunk.
func (q *query) onlyRead(i, goal int32) bool {
	for _, p := range q.edges.Of(i) {
		if q.tbOf[p] == q.tbOf[goal] && (q.fused.Instrs[p].Kind != ir.Send || q.fused.Instrs[p].Count != 1) {
			return false
		}
	}
	return q.fused.Instrs[i].Count == 1 && !q.fused.Instrs[i].Kind.ReadsSrc() && !q.fused.Instrs[i].Kind.ReadsDst()
}

// time orders the moments of one thread block.
func (q *query) time(m moment) int32 { return 2*q.stepOf[m.of] + m.end }

// before visits what comes right before m, leaving out its wait number skip.
func (q *query) before(m moment, goal int32, skip int) {
	from := int32(q.fused.Instrs[m.of].RecvFrom)
	if q.flagged() && q.fused.Instrs[m.of].Count != 1 {
		from = ir.None
	}
	if m.end == 1 {
		q.visit(moment{m.of, 0}, goal)
		if from != ir.None {
			q.visit(moment{from, 1}, goal)
		}
		return
	}
	if n := q.stepOf[m.of]; n > 0 {
		q.visit(moment{q.steps[q.tbOf[m.of]][n-1], 1}, goal)
	}
	if from != ir.None {
		whole := int32(0)
		if q.fused.Instrs[from].Count == 1 {
			whole = 1
		}
		q.visit(moment{from, whole}, goal)
	}
	on, gone := q.waits.of(m.of)
	for w, p := range on {
		if w != skip && !gone[w] {
			q.visit(moment{p, 1}, goal)
		}
	}
}

// visit puts m on the stack unless its step ran before the goal, from which the
// goal can't be reached, or it has been there.
func (q *query) visit(m moment, goal int32) {
	if q.at[m.of] < q.at[goal] || q.seen[m.of][m.end] == q.epoch {
		return
	}
	q.seen[m.of][m.end] = q.epoch
	q.stack = append(q.stack, m)
}
