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
	for _, tbs := range s.tbsByRank() {
		s.reduceOnRank(tbs)
	}
	q := newQuery(s)
	for _, i := range s.exec {
		on, gone := s.waits.of(i)
		for k := range on {
			if !gone[k] && q.implied(i, k) {
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

// reduceOnRank drops waits that program order and waits on one rank imply.
func (s *state) reduceOnRank(tbs []int32) {
	if len(tbs) < 2 {
		return
	}
	s.clocksOfRank(tbs, func(i int32, k int, known bool) {
		_, gone := s.waits.of(i)
		gone[k] = known
	})
}

// clocks says, for every step of one rank, how many steps of each of the rank's
// thread blocks are known to be done when it is.
type clocks struct {
	local map[int32]int32 // thread block to column
	width int32
	row   map[int32]int32 // thread block to its first row
	rows  []int32
}

// at is the number of steps of thread block t known to be done when step k of
// thread block of is.
func (c *clocks) at(of, k, t int32) int32 {
	return c.rows[(c.row[of]+k)*c.width+c.local[t]]
}

// clocksOfRank runs the rank's steps in the order of the run. seen is called
// for every wait, latest first, with whether it was known already; a wait that
// is gone teaches nothing new.
func (s *state) clocksOfRank(tbs []int32, seen func(i int32, k int, known bool)) *clocks {
	c := &clocks{local: map[int32]int32{}, width: int32(len(tbs)), row: map[int32]int32{}}
	total := int32(0)
	for k, t := range tbs {
		c.local[t] = int32(k)
		c.row[t] = total
		total += int32(len(s.steps[t]))
	}
	c.rows = make([]int32, int(total)*int(c.width))
	next := make([]int32, len(tbs))
	for range total {
		t := s.earliest(tbs, next)
		k := next[c.local[t]]
		next[c.local[t]]++
		i := s.steps[t][k]
		row := c.rows[(c.row[t]+k)*c.width : (c.row[t]+k+1)*c.width]
		if k > 0 {
			copy(row, c.rows[(c.row[t]+k-1)*c.width:])
		}
		on, gone := s.waits.of(i)
		for w, p := range on {
			known := row[c.local[s.tbOf[p]]] > s.stepOf[p]
			if seen != nil {
				seen(i, w, known)
			} else if gone[w] {
				continue
			}
			if known {
				continue
			}
			from := c.rows[(c.row[s.tbOf[p]]+s.stepOf[p])*c.width:]
			for x := range row {
				row[x] = max(row[x], from[x])
			}
		}
		row[c.local[t]] = k + 1
	}
	return c
}

// earliest is the thread block whose next step comes first in the run.
func (s *state) earliest(tbs, next []int32) int32 {
	best, at := int32(ir.None), int32(0)
	for k, t := range tbs {
		if int(next[k]) == len(s.steps[t]) {
			continue
		}
		if a := s.at[s.steps[t][next[k]]]; best == ir.None || a < at {
			best, at = t, a
		}
	}
	return best
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
type query struct {
	*state
	epoch int32
	seen  []int32 // by thread block: 1 + latest moment visited in this epoch
	when  []int32 // by thread block: epoch of seen
	stack []moment
}

// moment is the start (0) or the end (1) of an instruction's step.
type moment struct{ of, end int32 }

func newQuery(s *state) *query {
	return &query{state: s, seen: make([]int32, len(s.tbs)), when: make([]int32, len(s.tbs))}
}

// implied reports whether wait k of instruction i follows from everything else.
func (q *query) implied(i int32, k int) bool {
	on, _ := q.waits.of(i)
	goal := on[k]
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

// time orders the moments of one thread block.
func (q *query) time(m moment) int32 { return 2*q.stepOf[m.of] + m.end }

// before visits what comes right before m, leaving out its wait number skip.
func (q *query) before(m moment, goal int32, skip int) {
	from := int32(q.fused.Instrs[m.of].RecvFrom)
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

// visit puts m on the stack unless its step ran before the goal or a later
// moment of its thread block has been visited, from which m is reached anyway.
func (q *query) visit(m moment, goal int32) {
	t := q.tbOf[m.of]
	if q.at[m.of] < q.at[goal] || q.when[t] == q.epoch && q.seen[t] > q.time(m) {
		return
	}
	q.when[t], q.seen[t] = q.epoch, q.time(m)+1
	q.stack = append(q.stack, m)
}
