package compiler

import "github.com/mscclsh/mscclsh/ir"

// meeting answers for protocol Direct what query answers for slots: whether a step is
// reached backwards from another without the one wait in question.
//
// Memory is touched when the bytes of a unit move, so what a step waits for has to have
// moved before its own do. It has if it comes before the arrival of any of those that
// move them together: a receive need not wait for what its sender has behind it. Only the
// send of an exchange has to wait itself, because its arrival is that of the receive.
//
// A step arrives after the steps before it in its thread block and all that it waits
// for have ended; the receive of an exchange with its send. A step ends after its bytes
// have moved, and they move after all parts of the unit have arrived. All of that goes
// forward in the order of the units, an arrival standing where an exchange is due and an
// end where it is done, so the search goes no further back than the unit it looks for.
//
// Only waits for sends are dropped so, that is for a place to have been read before it is
// overwritten. What was written is told of by a wait of one thread block for the
// other, not by way of other ranks: those say that they have read, not what was written.
type meeting struct {
	*state
	epoch int32
	seen  [][2]int32 // by instruction: epoch in which its arrival and end were visited
	stack []moment
}

func newMeeting(s *state) *meeting {
	return &meeting{state: s, seen: make([][2]int32, len(s.exec))}
}

// implied reports whether wait k of instruction i follows from everything else.
func (q *meeting) implied(i int32, k int) bool {
	on, _ := q.waits.of(i)
	goal := on[k]
	for _, j := range q.arrivesWith(i) {
		for _, p := range q.edges.Of(j) {
			if q.tbOf[p] == q.tbOf[goal] && q.fused.Instrs[p].Kind != ir.Send {
				return false
			}
		}
	}
	q.epoch++
	q.stack = q.stack[:0]
	q.beforeArrival(i, goal, k)
	if q.mate[i] == ir.None {
		q.arrivals(i, goal)
	}
	for visited := 0; len(q.stack) > 0 && visited < searchLimit; visited++ {
		v := q.stack[len(q.stack)-1]
		q.stack = q.stack[:len(q.stack)-1]
		if q.reached(v, goal) {
			return true
		}
		if v.end == 0 {
			q.beforeArrival(v.of, goal, ir.None)
			continue
		}
		q.visit(moment{v.of, 0}, goal)
		q.arrivals(v.of, goal)
	}
	return false
}

// arrivals visits the arrivals of the other parts of i's unit.
func (q *meeting) arrivals(i, goal int32) {
	head := i
	for q.fused.Instrs[head].RecvFrom != ir.None {
		head = int32(q.fused.Instrs[head].RecvFrom)
	}
	for j := head; j != ir.None; j = int32(q.fused.Instrs[j].SendTo) {
		if j != i {
			q.visit(moment{j, 0}, goal)
		}
	}
}

// reached reports whether the goal's bytes have moved at moment v: a part of its unit
// has ended, or a later step of its thread block has arrived, other than the second of
// an exchange that the goal begins.
func (q *meeting) reached(v moment, goal int32) bool {
	return v.end == 1 && q.when[v.of] == q.when[goal] ||
		q.tbOf[v.of] == q.tbOf[goal] && q.stepOf[v.of] > q.stepOf[goal] && q.mate[v.of] != goal
}

func (q *meeting) beforeArrival(i, goal int32, skip int) {
	if q.exchangedRecv(i) {
		q.visit(moment{q.mate[i], 0}, goal)
		return
	}
	if n := q.stepOf[i]; n > 0 {
		p := q.steps[q.tbOf[i]][n-1]
		q.visit(moment{p, 1}, goal)
		if m := q.mate[p]; m != ir.None {
			q.visit(moment{m, 1}, goal)
		}
	}
	on, gone := q.waits.of(i)
	for w, p := range on {
		if w != skip && !gone[w] {
			q.visit(moment{p, 1}, goal)
		}
	}
}

// visit puts m on the stack unless it comes before the goal's unit or has been there.
func (q *meeting) visit(m moment, goal int32) {
	at := q.due(m.of)
	if m.end == 1 {
		at = q.done(m.of)
	}
	if at < q.when[goal] || q.seen[m.of][m.end] == q.epoch {
		return
	}
	q.seen[m.of][m.end] = q.epoch
	q.stack = append(q.stack, m)
}
