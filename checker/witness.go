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
// past; such a race has no witness of whole steps. It also says what wait would end
// the race: that of the later step for the earlier, which the checker's run proves
// harmless.
func witnessRace(m *model, msg *diag.Message, a, b int32) {
	if past, ok := m.past(b); ok && !past[a] {
		msg.Note(diag.Pos{}, "for example, %s, %s runs before %s begins", m.pastName(past), m.name(b), m.name(a))
	}
	msg.Suggest("let %s wait for %s", m.name(b), m.inRank(a))
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
