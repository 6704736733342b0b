package compiler

import (
	"context"

	"github.com/mscclsh/mscclsh/ir"
)

// waitTable holds, for every instruction, the instructions of other thread
// blocks of its rank that it waits for, latest first.
type waitTable struct {
	start []int32
	on    []int32
	gone  []bool // beside on: implied by something else
}

func (w *waitTable) of(i int32) (on []int32, gone []bool) {
	a, b := w.start[i], w.start[i+1]
	return w.on[a:b], w.gone[a:b]
}

// synchronize lists the steps of every thread block and turns dependencies
// between thread blocks of a rank into waits: for each other thread block, the
// latest of its steps that has to be done.
func synchronize(_ context.Context, s *state) error {
	s.steps = make([][]int32, len(s.tbs))
	s.stepOf = make([]int32, len(s.exec))
	s.ofRank = make([][]int32, s.fused.Ranks())
	for _, i := range s.exec {
		t, r := s.tbOf[i], s.fused.Instrs[i].Rank
		s.stepOf[i] = int32(len(s.steps[t]))
		s.steps[t] = append(s.steps[t], i)
		s.ofRank[r] = append(s.ofRank[r], i)
	}
	w := waitTable{start: make([]int32, 1, len(s.exec)+1)}
	for i := range int32(len(s.exec)) {
		begin := len(w.on)
		for _, j := range s.arrivesWith(i) {
			for k, p := range s.edges.Of(j) {
				if s.edges.KindsOf(j)[k] == ir.DepComm || s.tbOf[p] == s.tbOf[i] || s.fused.Instrs[p].Rank != s.fused.Instrs[i].Rank {
					continue
				}
				w.on = s.keepLatest(w.on, begin, p)
			}
		}
		sortByRun(w.on[begin:], s.at)
		w.start = append(w.start, int32(len(w.on)))
	}
	w.gone = make([]bool, len(w.on))
	s.waits = w
	s.stats.DepsBefore, s.stats.DepsAfter = len(w.on), len(w.on)
	return nil
}

// arrivesWith lists the instructions whose dependencies i waits for: its own, and in
// an exchange the send waits for both.
func (s *state) arrivesWith(i int32) []int32 {
	switch {
	case !s.direct() || s.mate[i] == ir.None:
		return []int32{i}
	case s.fused.Instrs[i].Kind == ir.Recv:
		return nil
	}
	return []int32{i, s.mate[i]}
}

// keepLatest adds p to the waits from begin on, one a thread block.
func (s *state) keepLatest(on []int32, begin int, p int32) []int32 {
	for k := begin; k < len(on); k++ {
		if s.tbOf[on[k]] == s.tbOf[p] {
			if s.stepOf[p] > s.stepOf[on[k]] {
				on[k] = p
			}
			return on
		}
	}
	return append(on, p)
}

// sortByRun sorts a few instructions latest first.
func sortByRun(on, at []int32) {
	for k := 1; k < len(on); k++ {
		for j := k; j > 0 && at[on[j]] > at[on[j-1]]; j-- {
			on[j], on[j-1] = on[j-1], on[j]
		}
	}
}
