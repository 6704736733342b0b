package checker

import (
	"context"
	"fmt"
	"math"
	"sort"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// maxSlots bounds the search for a depth that would do.
const maxSlots = 1 << 20

// checkDeadlock judges every size regime with the slots there are, and finds the
// least that would do. It returns an order of all steps that respects program
// order, dependencies and messages; nil if there is none.
func checkDeadlock(ctx context.Context, m *model, o Options, rep *Report, f *findings) ([]int32, error) {
	if emptyWindow(m.p, o, f) {
		return nil, nil
	}
	w := newWindow(m.p, o)
	rep.Regimes, rep.SafeMaxBytes = m.regimes(&w), -1
	s := newSimulation(m)

	// With no limit on depth a step can be taken as one message: a cycle of
	// messages would lead through a cycle of steps and the other way round.
	s.record = true
	s.order = make([]int32, 0, len(m.steps))
	ok, err := s.run(ctx, max(m.maxCount, 1), math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if !ok {
		reportDeadlock(s, f, "deadlock whatever the number of slots", "")
		return nil, nil
	}
	order := s.order
	s.record, s.order = false, nil

	slots, leastK := m.p.Transport.Slots, rep.Regimes[0]
	if ok, err = s.run(ctx, leastK, slots); err != nil {
		return nil, err
	}
	known := slots
	if ok {
		rep.SafeRegime, rep.SafeMaxBytes = leastK, 0
	} else {
		known = 0
	}
	if rep.MinSlots, err = minSlots(ctx, s, leastK, slots, known); err != nil {
		return nil, err
	}
	if known == 0 {
		return order, explainDeadlock(ctx, s, &w, rep, f)
	}
	return order, nil
}

// minSlots is the least depth that does at regime k; good is one that does, or 0
// if only a larger one than slots can.
func minSlots(ctx context.Context, s *simulation, k, slots, good int32) (int32, error) {
	low := int32(0) // does not do
	if good == 0 {
		low = slots
		if low >= maxSlots {
			return 0, nil
		}
		for good = low; ; {
			good = min(2*good, maxSlots)
			ok, err := s.run(ctx, k, good)
			if err != nil {
				return 0, err
			}
			if ok {
				break
			}
			if low = good; good == maxSlots {
				return 0, nil
			}
		}
	}
	for low+1 < good {
		mid := low + (good-low)/2
		if mid > low+1 && low == 0 && good > 4 {
			mid = min(mid, 4) // most programs need few
		}
		ok, err := s.run(ctx, k, mid)
		switch {
		case err != nil:
			return 0, err
		case ok:
			good = mid
		default:
			low = mid
		}
	}
	if good > maxSlots {
		good = 0
	}
	return good, nil
}

// explainDeadlock reports the deadlock at the least regime and what would help.
func explainDeadlock(ctx context.Context, s *simulation, w *window, rep *Report, f *findings) error {
	slots := w.t.Slots
	var failed error
	safe := sort.Search(len(rep.Regimes), func(i int) bool {
		ok, err := s.run(ctx, rep.Regimes[i], slots)
		if err != nil {
			failed = err
		}
		return ok
	})
	if failed != nil {
		return failed
	}
	advice := ""
	if rep.MinSlots > 0 {
		advice = fmt.Sprintf("it needs %s a connection", plural(int(rep.MinSlots), "slot"))
	}
	if safe < len(rep.Regimes) {
		rep.SafeRegime = rep.Regimes[safe]
		if b := w.t.MaxBytesFor(rep.Regimes[safe], w.numChunks); b > 0 {
			rep.SafeMaxBytes = b
			if advice != "" {
				advice += ", or "
			}
			advice += fmt.Sprintf("sizes up to %d bytes", b)
		}
	}
	k := rep.Regimes[0]
	if _, err := s.run(ctx, k, slots); err != nil {
		return err
	}
	reportDeadlock(s, f, fmt.Sprintf("deadlock with %s a connection and %s in a message",
		plural(int(slots), "slot"), plural(int(k), "chunk")), advice)
	return nil
}

// maxCycle is how many thread blocks of a cycle are spelled out.
const maxCycle = 12

// reportDeadlock names the cycle in which a stuck simulation stands. Every
// thread block that stands waits for another that stands: one at its end has
// posted, sent and taken all it ever will.
func reportDeadlock(s *simulation, f *findings, what, advice string) {
	if !f.admit(CodeDeadlock) {
		return
	}
	at := int32(0)
	for s.next[at] == s.m.tbs[at].end {
		at++
	}
	visited := make([]bool, len(s.m.tbs))
	for !visited[at] {
		visited[at] = true
		at = s.waitsFor(at)
	}
	var cycle []int32
	for t := at; len(cycle) == 0 || t != at; t = s.waitsFor(t) {
		cycle = append(cycle, t)
	}
	m := s.m
	msg := diag.Errorf(m.pos(s.next[at]), CodeDeadlock, "%s: a cycle of %s, each waiting for the next",
		what, plural(len(cycle), "thread block"))
	for i, t := range cycle {
		if i == maxCycle {
			msg.Note(diag.Pos{}, "and %d more", len(cycle)-i)
			break
		}
		msg.Note(m.pos(s.next[t]), "%s waits for %s", m.name(s.next[t]), s.reason(t))
	}
	msg.Suggestion = advice
	f.add(msg)
}

// waitsFor is the thread block that t waits for.
func (s *simulation) waitsFor(t int32) int32 {
	st := s.at(t)
	switch s.wait[t] {
	case forInput:
		return s.m.conns[st.recvConn].sender
	case forSlot:
		return s.m.conns[st.sendConn].receiver
	}
	return s.m.steps[s.pending(st)].tb
}

// pending is the dependency that a step waits for.
func (s *simulation) pending(st *step) int32 {
	for _, d := range s.m.deps[st.depStart:st.depEnd] {
		if s.next[s.m.steps[d].tb] <= d {
			return d
		}
	}
	return ir.None // not reached while the thread block waits for a step
}

func (s *simulation) reason(t int32) string {
	st := s.at(t)
	m := s.m
	nth := ""
	if n := messages(st.count, s.k); n > 1 {
		nth = fmt.Sprintf(" for its message %d of %d", s.message[t]+1, n)
	}
	peer := s.waitsFor(t)
	switch s.wait[t] {
	case forInput:
		return fmt.Sprintf("a message on the %s%s, while the sender is at %s",
			&m.conns[st.recvConn], nth, m.name(s.next[peer]))
	case forSlot:
		return fmt.Sprintf("a free slot on the %s%s, while the receiver is at %s",
			&m.conns[st.sendConn], nth, m.name(s.next[peer]))
	}
	d := s.pending(st)
	if s.next[peer] == d {
		return m.inRank(d)
	}
	return fmt.Sprintf("%s, while that thread block is at %s", m.inRank(d), m.name(s.next[peer]))
}
