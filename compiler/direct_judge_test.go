package compiler

import (
	"fmt"
	"math/rand/v2"

	"github.com/mscclsh/mscclsh/ir"
)

// This file runs programs of protocol Direct by the rules of docs/direct.md, with
// thread blocks, chunks, and the halves of a move (read, write) in random order. Its only
// link to the compiler is the meaning of ir.Program.

// meeter is a step of a running program.
type meeter struct {
	rank    ir.Rank
	tb, at  int32
	step    *ir.Step
	from    *meeter // what sends to it
	to      *meeter // what it sends to
	arrived bool
	ended   bool

	// Of a step that moves: chunks in an order of their own, each read before it is
	// written.
	moves   bool
	order   []int
	holding []sum // what was read, by chunk
	read    int   // chunks read
	written int
}

type rendezvousJudge struct {
	p   *ir.Program
	m   *memory
	tbs [][][]*meeter // by rank and thread block
	all []*meeter
	now [][]int // by rank and thread block: the step it is at
}

// runDirect runs p in an order drawn from rng and returns the memory, or who is stuck.
func runDirect(p *ir.Program, rng *rand.Rand) (*memory, error) {
	j := &rendezvousJudge{p: p, m: newMemory(p.Coll)}
	if err := j.connect(rng); err != nil {
		return nil, err
	}
	for {
		moved := false
		for _, k := range rng.Perm(len(j.all)) {
			for range 1 + rng.IntN(4) {
				if !j.advance(j.all[k]) {
					break
				}
				moved = true
			}
		}
		if moved {
			continue
		}
		for _, s := range j.all {
			if !s.ended {
				return nil, fmt.Errorf("rank %d thread block %d waits at step %d (%s)", s.rank, s.tb, s.at, s.step.Kind)
			}
		}
		return j.m, nil
	}
}

// connect pairs the k-th send of every connection with its k-th receive.
func (j *rendezvousJudge) connect(rng *rand.Rand) error {
	sends, recvs := map[fifoKey][]*meeter{}, map[fifoKey][]*meeter{}
	for r := range j.p.GPUs {
		var tbs [][]*meeter
		for t := range j.p.GPUs[r].TBs {
			var steps []*meeter
			for i := range j.p.GPUs[r].TBs[t].Steps {
				st := &j.p.GPUs[r].TBs[t].Steps[i]
				s := &meeter{rank: ir.Rank(r), tb: int32(t), at: int32(i), step: st,
					order: rng.Perm(int(st.Count)), holding: make([]sum, st.Count)}
				if st.Kind.Sends() {
					key := fifoKey{s.rank, st.SendPeer, st.Chan}
					sends[key] = append(sends[key], s)
				}
				if st.Kind.Receives() {
					key := fifoKey{st.RecvPeer, s.rank, st.Chan}
					recvs[key] = append(recvs[key], s)
				}
				steps, j.all = append(steps, s), append(j.all, s)
			}
			tbs = append(tbs, steps)
		}
		j.tbs = append(j.tbs, tbs)
		j.now = append(j.now, make([]int, len(tbs)))
	}
	for key, from := range sends {
		if len(from) != len(recvs[key]) {
			return fmt.Errorf("connection %v: %d sends, %d receives", key, len(from), len(recvs[key]))
		}
		for k, s := range from {
			s.to, recvs[key][k].from = recvs[key][k], s
		}
	}
	for _, s := range j.all {
		k := s.step.Kind
		if k == ir.RecvCopySend || s.from != nil && s.from.step.Kind != ir.Send && k.Reduces() {
			return fmt.Errorf("rank %d thread block %d step %d: a compiled program has no such message", s.rank, s.tb, s.at)
		}
		s.moves = k.Receives() && k.Reduces() || k == ir.Copy || k == ir.Reduce || k == ir.Send && !s.to.step.Kind.Reduces()
	}
	return nil
}

// pair is the other half of an exchange, or nil.
func (j *rendezvousJudge) pair(s *meeter) *meeter {
	steps := j.tbs[s.rank][s.tb]
	is := func(a, b *meeter) bool {
		return a.step.Kind == ir.Send && b.step.Kind == ir.Recv && a.step.SendPeer == b.step.RecvPeer && b.step.DepStart == b.step.DepEnd
	}
	if int(s.at)+1 < len(steps) && is(s, steps[s.at+1]) {
		return steps[s.at+1]
	}
	if s.at > 0 && is(steps[s.at-1], s) {
		return steps[s.at-1]
	}
	return nil
}

// advance does one thing of a step: it arrives, a chunk is read or written, or it ends.
func (j *rendezvousJudge) advance(s *meeter) bool {
	switch {
	case s.ended:
		return false
	case !s.arrived:
		return j.arrive(s)
	case s.moves && s.written < len(s.order):
		return j.move(s)
	case s.from != nil && s.from.moves && s.from.written < len(s.from.order),
		s.to != nil && s.to.moves && s.to.written < len(s.to.order):
		return false
	}
	s.ended = true
	return true
}

func (j *rendezvousJudge) arrive(s *meeter) bool {
	first := s
	if p := j.pair(s); p != nil && p.at < s.at {
		first = p
	}
	for _, before := range j.tbs[s.rank][s.tb][:first.at] {
		if !before.ended {
			return false
		}
	}
	for _, d := range j.p.DepsOf(first.step) {
		on := j.tbs[s.rank][d.TB][d.Step]
		if p := j.pair(on); !on.ended || p != nil && !p.ended || !on.step.Post {
			return false
		}
	}
	s.arrived = true
	return true
}

// move reads one chunk, or writes one that was read, if all are there.
func (j *rendezvousJudge) move(s *meeter) bool {
	if s.from != nil && !s.from.arrived || s.to != nil && !s.to.arrived {
		return false
	}
	if s.read < len(s.order) && s.read < s.written+2 { // at most two chunks on the way
		j.read(s, s.order[s.read])
		s.read++
		return true
	}
	j.write(s, s.order[s.written])
	s.written++
	return true
}

func (j *rendezvousJudge) read(s *meeter, c int) {
	at := func(r ir.Rank, p ir.Place) sum {
		return j.m.at[j.m.loc(r, ir.Place{Buf: p.Buf, Index: p.Index + int32(c)})]
	}
	v := at(s.rank, s.step.Src)
	switch {
	case s.from != nil:
		v = plus(v, at(s.from.rank, s.from.step.Src))
	case s.step.Kind == ir.Reduce:
		v = plus(v, at(s.rank, s.step.Dst))
	}
	s.holding[c] = v
}

func (j *rendezvousJudge) write(s *meeter, c int) {
	put := func(r ir.Rank, p ir.Place) {
		j.m.at[j.m.loc(r, ir.Place{Buf: p.Buf, Index: p.Index + int32(c)})] = s.holding[c]
	}
	if s.step.Kind.WritesDst() {
		put(s.rank, s.step.Dst)
	}
	if s.to != nil {
		put(s.to.rank, s.to.step.Dst)
	}
}
