package checker

import (
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// witnessRace adds the shortest interleaving that shows a race of transfers: what has
// to be moved for the later one, of those the checker's own run had, to be over before
// the earlier one is. It also says what wait on the rank that owns the memory would end
// the race, unless the program could then not end.
func (d *rendezvous) witnessRace(msg *diag.Message, p *pair) {
	m := d.m
	a, b := &d.moves[p.a], &d.moves[p.b]
	if past, ok := d.past(b.step*events + part); ok {
		moved := map[int32]bool{}
		for v := range past {
			if v%events == part && d.moving(v/events) {
				moved[v/events] = true
			}
		}
		msg.Note(diag.Pos{}, "for example, %s, %s moves its bytes before %s has moved its own", m.pastName(moved), m.name(b.step), m.name(a.step))
	}
	x, y := a.party(p.lo, p.aWrites), b.party(p.lo, p.bWrites)
	if y > m.tbs[m.steps[y].tb].first && d.exchanges(y-1) { // it arrives when its send does
		y--
	}
	if m.steps[x].tb == m.steps[y].tb {
		return
	}
	if past, ok := d.past(x*events + ending); ok && !past[y*events+arrival] {
		msg.Suggest("let %s wait for %s", m.name(y), m.inRank(x))
	}
}

// party is the step whose place at a location the transfer touches: the step that
// moves, or one that lets it into its memory.
func (t *transfer) party(loc int32, write bool) int32 {
	of, at := t.from, t.reads[1]
	if write {
		of, at = t.to, t.writes[1]
	}
	if of != ir.None && at <= loc && loc < at+t.count {
		return of
	}
	return t.step
}

// past is every event that comes before event v; not ok if there are too many.
func (d *rendezvous) past(v int32) (past map[int32]bool, ok bool) {
	past = map[int32]bool{}
	for stack := []int32{v}; len(stack) > 0; {
		u := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, w := range d.pred[d.start[u]:d.start[u+1]] {
			if !past[w] {
				past[w] = true
				stack = append(stack, w)
			}
		}
		if len(past) > maxPast {
			return nil, false
		}
	}
	return past, true
}
