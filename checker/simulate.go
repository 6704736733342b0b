package checker

import (
	"context"

	"github.com/mscclsh/mscclsh/ir"
)

// simulation runs a program message by message on connections of finite depth.
//
// A step of count c moves ceil(c/K) messages. A step waits for its dependencies
// before its first message and posts after its last. A message that is received
// and sent on takes its input slot and its output slot at once: it holds the
// former until it gets the latter.
//
// One schedule decides. Thread blocks are sequential and block on one thing at a
// time, a connection has one reader and one writer, and nobody can ask whether a
// message is there: a Kahn network with bounded buffers. Such a network is
// confluent (a thread block that can proceed stays able to until it does), so all
// schedules end in the same state.
type simulation struct {
	m     *model
	k     int32 // chunks in a message
	slots int32

	next    []int32   // of a thread block: the step it is at
	message []int32   // of a thread block: messages of that step already moved
	wait    []waiting // of a thread block
	sent    []int32   // messages of a connection
	taken   []int32
	waiters []int32 // of a step: first thread block that waits for it
	after   []int32 // of a thread block: next one waiting for the same step
	queue   []int32 // ring of thread blocks that can proceed: queued from head on
	head    int
	queued  int
	order   []int32 // steps in the order they ended, if asked for
	record  bool
	done    int
}

// waiting is why a thread block stands still.
type waiting uint8

const (
	running  waiting = iota
	forStep          // for a step of another thread block
	forInput         // for a message
	forSlot          // for a free slot
)

func newSimulation(m *model) *simulation {
	return &simulation{
		m:       m,
		next:    make([]int32, len(m.tbs)),
		message: make([]int32, len(m.tbs)),
		wait:    make([]waiting, len(m.tbs)),
		sent:    make([]int32, len(m.conns)),
		taken:   make([]int32, len(m.conns)),
		waiters: make([]int32, len(m.steps)),
		after:   make([]int32, len(m.tbs)),
	}
}

// run simulates from the start and reports whether every step ended.
func (s *simulation) run(ctx context.Context, k, slots int32) (bool, error) {
	s.k, s.slots, s.done = k, slots, 0
	clear(s.message)
	clear(s.wait)
	clear(s.sent)
	clear(s.taken)
	for i := range s.waiters {
		s.waiters[i] = ir.None
	}
	s.queue = s.queue[:0]
	for t := range s.m.tbs {
		s.next[t] = s.m.tbs[t].first
		s.queue = append(s.queue, int32(t))
	}
	// The queue is a ring of exactly one place a thread block: a thread block is
	// queued at the start or when it stops waiting, so never twice.
	s.head, s.queued = 0, len(s.queue)
	for turns := 0; s.queued > 0; turns++ {
		if turns&0xfff == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		t := s.queue[s.head]
		s.queued--
		if s.head++; s.head == len(s.queue) {
			s.head = 0
		}
		s.advance(t)
	}
	return s.done == len(s.m.steps), nil
}

func (s *simulation) wake(t int32) {
	s.wait[t] = running
	at := s.head + s.queued
	if at >= len(s.queue) {
		at -= len(s.queue)
	}
	s.queue[at] = t
	s.queued++
}

// advance runs thread block t until it has to wait.
func (s *simulation) advance(t int32) {
	end := s.m.tbs[t].end
	for s.next[t] < end {
		id := s.next[t]
		st := &s.m.steps[id]
		if s.message[t] == 0 && st.depStart != st.depEnd && s.blocked(t, st) {
			return
		}
		if !s.move(t, st) {
			return
		}
		s.next[t]++
		s.message[t] = 0
		s.done++
		if s.record {
			s.order = append(s.order, id)
		}
		for w := s.waiters[id]; w != ir.None; w = s.after[w] {
			s.wake(w)
		}
	}
}

// blocked makes t wait for the first dependency that isn't done, if any.
func (s *simulation) blocked(t int32, st *step) bool {
	for _, d := range s.m.deps[st.depStart:st.depEnd] {
		if s.next[s.m.steps[d].tb] <= d {
			s.wait[t] = forStep
			s.after[t], s.waiters[d] = s.waiters[d], t
			return true
		}
	}
	return false
}

// move moves the remaining messages of a step; false if it has to wait.
func (s *simulation) move(t int32, st *step) bool {
	in, out := st.recvConn, st.sendConn
	if in == ir.None && out == ir.None {
		return true
	}
	for n := messages(st.count, s.k); s.message[t] < n; s.message[t]++ {
		if in != ir.None && s.sent[in] == s.taken[in] {
			s.wait[t] = forInput
			return false
		}
		if out != ir.None && s.sent[out]-s.taken[out] >= s.slots {
			s.wait[t] = forSlot
			return false
		}
		if in != ir.None {
			s.taken[in]++
			if p := s.m.conns[in].sender; s.wait[p] == forSlot && s.at(p).sendConn == in {
				s.wake(p)
			}
		}
		if out != ir.None {
			s.sent[out]++
			if p := s.m.conns[out].receiver; s.wait[p] == forInput && s.at(p).recvConn == out {
				s.wake(p)
			}
		}
	}
	return true
}

// at is the step that thread block t stands at; it must not be at its end.
func (s *simulation) at(t int32) *step { return &s.m.steps[s.next[t]] }

// messages is ceil(count/k) without overflow.
func messages(count, k int32) int32 {
	if count <= k {
		return 1
	}
	return (count-1)/k + 1
}
