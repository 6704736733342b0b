package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// The past of a step is looked at up to maxPast steps back, and named if it is
// made of the ends of at most maxNamed thread blocks; otherwise it is counted.
const (
	maxPast  = 1 << 16
	maxNamed = 4
)

// witnessRace adds the shortest interleaving that shows a race: what has to have
// run for the later step, of those the checker's own run had, to come first. Steps
// that pass messages on while they come in may have the earlier step begun in their
// past; such a race has no witness of whole steps, but it has one of what they do: of
// their chunks, and with LL and LL128 of their reads and writes. It also says what wait would end the race: that of the later step for
// the earlier, which the checker's run proves harmless.
func witnessRace(m *model, msg *diag.Message, p *pair) {
	past, ok := m.past(p.b)
	switch {
	case ok && !past[p.a]:
		msg.Note(diag.Pos{}, "for example, %s, %s runs before %s begins", m.pastName(past), m.name(p.b), m.name(p.a))
	case ok && m.flagged:
		msg.Note(diag.Pos{}, "with %s a message orders only the chunk that it brings: %s", m.p.Protocol, m.loophole(p))
	case ok:
		msg.Note(diag.Pos{}, "messages of one chunk, as they are at large sizes, are passed on one by one: %s may come to its chunk %d after %s has come to its chunk %d",
			m.name(p.a), m.chunkAt(p.a, p.lo, p.aWrites), m.name(p.b), m.chunkAt(p.b, p.lo, p.bWrites))
	}
	msg.Suggest("let %s wait for %s", m.name(p.b), m.inRank(p.a))
}

// loophole says how two accesses come to happen the wrong way round although messages
// lead from one's step to the other's.
func (m *model) loophole(p *pair) string {
	a, b := &m.steps[p.a], &m.steps[p.b]
	switch {
	case a.endsLate(p.aWrites) && a.kind.Sends():
		return fmt.Sprintf("%s may write its chunk only after it has passed it on", m.name(p.a))
	case b.mate != ir.None && !b.beginsLate(p.bWrites):
		return fmt.Sprintf("%s may read its operand before its message has come", m.name(p.b))
	}
	return fmt.Sprintf("%s may send its chunk %d after %s has taken its chunk %d, as other threads move them", m.name(p.a),
		m.chunkAt(p.a, p.lo, p.aWrites), m.name(p.b), m.chunkAt(p.b, p.lo, p.bWrites))
}

// past is every step that comes before step s by program order, waits and
// messages; not ok if there are too many.
func (m *model) past(s int32) (past map[int32]bool, ok bool) {
	past = map[int32]bool{}
	stack := []int32{s}
	push := func(t int32) {
		if !past[t] {
			past[t] = true
			stack = append(stack, t)
		}
	}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		st := &m.steps[v]
		if v > m.tbs[st.tb].first {
			push(v - 1)
		}
		for _, d := range m.deps[st.depStart:st.depEnd] {
			push(d)
		}
		if st.mate != ir.None {
			push(st.mate)
		}
		if len(past) > maxPast {
			return nil, false
		}
	}
	return past, true
}

// pastName begins a sentence that goes on with what runs then.
func (m *model) pastName(past map[int32]bool) string {
	last := map[int32]int32{} // by thread block
	for s := range past {
		tb := m.steps[s].tb
		if l, ok := last[tb]; !ok || s > l {
			last[tb] = s
		}
	}
	steps := make([]int32, 0, len(last))
	for _, s := range last {
		steps = append(steps, s)
	}
	slices.SortFunc(steps, func(x, y int32) int { return cmp.Compare(x, y) })
	switch {
	case len(steps) == 0:
		return "with nothing done yet"
	case len(steps) > maxNamed:
		return fmt.Sprintf("after the %d steps that it needs", len(past))
	}
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = m.name(s)
	}
	return "after " + strings.Join(names, ", ")
}
