package compiler

import (
	"cmp"
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// The order pass runs the program once in the mind, step by step, with the
// slots that connections will really have; every thread block keeps the order
// in which its steps ran. That run is the proof that the program can't
// deadlock: thread blocks and bounded connections form a Kahn network, in which
// what can finish under one schedule finishes under all.
//
// A step runs whole or not at all: a send when all of its messages find free
// slots, a receive when all of its messages are there, a fused step when both
// hold. A step of more messages than there are slots runs together with the
// rest of its flow, each on its own thread block, passing messages on.
//
// Such a run can get stuck, so there is a ladder, each rung with less
// concurrency than the one before:
//
//	eager    by depth, then by the longest way to go, then as written; for native
//	         targets first with groups kept together, then without
//	bubble   messages go as they come, and a flow enters a connection only if a
//	         slot stays free behind it
//	split    counts are cut to half the slots, and the ladder starts again
//	window   with split switched off: fewer sizes, so that more chunks fit a message
//	serial   one flow at a time; needs no slots beyond the first
//	unfused  every message meets its receive at once, in the order of the script
//
// The last one always succeeds: see lower.
const (
	eager = iota
	bubble
	serial
	exhausted
)

func order(ctx context.Context, s *state) error {
	if s.direct() {
		return s.placeLocals()
	}
	s.edges = s.fused.Edges()
	for ; s.taken.reorder < exhausted; s.taken.reorder++ {
		if s.taken.reorder == serial {
			if err := s.fewerSlots(); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		r := newRun(s)
		if r == nil && s.taken.strict {
			return diag.Errorf(diag.Pos{}, "no-order", "internal error in pass order of program %q: messages cross in the script's own order; please report it with the script", s.source.Name)
		}
		if r == nil {
			s.taken.strict = true
			return &retry{"channels"}
		}
		if r.all() {
			s.exec = r.exec
			s.at = make([]int32, len(s.exec))
			for k, i := range s.exec {
				s.at[i] = int32(k)
			}
			s.tellOrder(r)
			return nil
		}
		if s.taken.reorder == eager && s.groups != nil && !s.taken.scatter {
			s.taken.scatter = true
			s.taken.reorder--
		}
	}
	return s.stuck()
}

// fewerSlots asks for what lets steps need fewer slots, if there are steps that
// fill more than half of a connection and it has not been done: their counts
// split, or else the sizes limited.
func (s *state) fewerSlots() error {
	longest, _ := s.longest()
	switch {
	case s.messages(longest) <= s.easyMessages() || s.taken.allJoin:
		return nil
	case !s.disabled["split"] && !s.taken.split:
		s.taken.split, s.taken.reorder = true, eager
		return &retry{"replicate"}
	case s.disabled["split"] && s.transport.MaxBytesFor(s.regime+1, s.fused.Coll.NumChunks()) > 0:
		s.regime++
		s.taken.window, s.taken.reorder = s.regime, eager
		return &retry{"channels"}
	}
	return nil
}

// stuck gives up fusion after all orders failed. Then the serial order is that
// of lower, which needs a single slot.
func (s *state) stuck() error {
	_, pos := s.longest()
	if s.taken.allJoin {
		return diag.Errorf(pos, "no-order", "internal error in pass order of program %q: no order of its steps can run; please report it with the script", s.source.Name)
	}
	s.taken.allJoin, s.taken.window, s.taken.reorder = true, 0, eager
	s.setRegime()
	s.note(&diag.Message{Pos: pos, Severity: diag.Info, Code: "fusion-off",
		Text: "no steps are fused: with " + plural(int(s.transport.Slots), "slot") + " a connection no order of fused steps can run"})
	return &retry{"forward"}
}

// longest is the largest count that crosses ranks, and where it is.
func (s *state) longest() (int32, diag.Pos) {
	count, pos := int32(0), diag.Pos{}
	for i := range s.fused.Instrs {
		if in := &s.fused.Instrs[i]; in.SendTo != ir.None && in.Count > count {
			count, pos = in.Count, s.fused.Pos(in.Pos)
		}
	}
	return count, pos
}

// tellOrder notes what the run had to do to fit the slots.
func (s *state) tellOrder(r *run) {
	if r.met != ir.None && !s.noted("threadblocks-apart") {
		in := &s.fused.Instrs[r.met]
		s.note(&diag.Message{Pos: s.fused.Pos(in.Pos), Severity: diag.Info, Code: "reordered",
			Text: "steps of " + plural(int(in.Count), "chunk") + " need more than " + plural(int(s.transport.Slots), "slot") +
				": thread blocks are ordered so that sender and receiver are there together"})
	}
	if s.taken.reorder == serial {
		s.note(&diag.Message{Severity: diag.Info, Code: "serial-order",
			Text: "flows run one after another: with " + plural(int(s.transport.Slots), "slot") + " a connection nothing more concurrent can run"})
	}
	if s.taken.window > 0 {
		s.note(&diag.Message{Severity: diag.Info, Code: "window-narrowed",
			Text: "sizes are limited so that a message holds " + plural(int(s.taken.window), "chunk") + ", because counts may not be split"})
	}
}

// precedence ranks instructions for the eager run: by level, then the longest
// way to go, then the script. Along every connection it must put messages in
// one order at both ends; connections where it does not keep the script's order.
// It is nil if the script's order crosses messages there too. Groups stay together if
// that crosses nothing.
func (s *state) precedence() []int32 {
	if s.groups != nil && !s.taken.scatter {
		if rank := s.precedenceOf(s.groups); rank != nil {
			return rank
		}
	}
	return s.precedenceOf(nil)
}

func (s *state) precedenceOf(g *groups) []int32 {
	n := len(s.fused.Instrs)
	held := make([]bool, len(s.conns))
	level := make([]int32, n)
	togo := wayToGo(s.fused, s.edges)
	for round := 0; ; round++ {
		s.levels(level, held)
		rank := ranking(level, togo, g)
		crossed, ok := s.holdCrossed(rank, held)
		if !ok {
			return nil
		}
		if !crossed {
			return rank
		}
		if round == maxHoldRounds && s.taken.strict {
			for k := range held {
				held[k] = true
			}
		}
	}
}

// maxHoldRounds bounds how often precedence looks for single connections to
// hold before it holds all of them.
const maxHoldRounds = 4

// levels is the longest path to each instruction, along dependencies and, on
// the held connections, from message to message in the script's order.
func (s *state) levels(level []int32, held []bool) {
	lastSend, lastRecv := filled(len(s.conns), 0), filled(len(s.conns), 0)
	for i := range level {
		l := int32(0)
		for _, p := range s.edges.Of(int32(i)) {
			l = max(l, level[p]+1)
		}
		in, out := s.recvBy[i], s.sendBy[i]
		if in != ir.None && held[in] {
			l = max(l, lastRecv[in])
		}
		if out != ir.None && held[out] {
			l = max(l, lastSend[out])
		}
		level[i] = l
		if in != ir.None {
			lastRecv[in] = l + 1
		}
		if out != ir.None {
			lastSend[out] = l + 1
		}
	}
}

// ranking turns levels and ways to go into positions, without ties; what is grouped
// has one level and one way to go.
func ranking(level, togo []int32, g *groups) []int32 {
	n := len(level)
	ids, with := make([]int32, n), make([]int32, n)
	for i := range ids {
		ids[i], with[i] = int32(i), int32(i)
	}
	if g != nil {
		level, togo = slices.Clone(level), slices.Clone(togo)
		g.level(level, togo, with)
	}
	slices.SortFunc(ids, func(a, b int32) int {
		return cmp.Or(cmp.Compare(level[a], level[b]), cmp.Compare(togo[b], togo[a]), cmp.Compare(with[a], with[b]), cmp.Compare(a, b))
	})
	rank := make([]int32, n)
	for k, i := range ids {
		rank[i] = int32(k)
	}
	return rank
}

// holdCrossed sorts the messages of every connection by rank and marks the
// connections on which the receives then stand in another order than the sends.
// ok is false if marking one is of no use because the script's order crosses
// messages as well.
func (s *state) holdCrossed(rank []int32, held []bool) (crossed, ok bool) {
	bySend := func(a, b message) int { return int(rank[a.send]) - int(rank[b.send]) }
	for k := range s.conns {
		ms := s.conns[k].messages
		if !slices.IsSortedFunc(ms, bySend) {
			slices.SortFunc(ms, bySend)
		}
		for j := 1; j < len(ms); j++ {
			if rank[ms[j-1].recv] < rank[ms[j].recv] {
				continue
			}
			if held[k] || !asWritten(ms) {
				return true, false
			}
			held[k], crossed = true, true
			break
		}
	}
	return crossed, true
}

// asWritten reports whether the script's order, which is that of the numbers,
// puts the messages in one order at both ends.
func asWritten(ms []message) bool {
	ms = slices.Clone(ms)
	slices.SortFunc(ms, func(a, b message) int { return int(a.send) - int(b.send) })
	return slices.IsSortedFunc(ms, func(a, b message) int { return int(a.recv) - int(b.recv) })
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return itoa(n) + " " + noun + "s"
}
