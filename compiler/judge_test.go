package compiler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
)

// This file judges compiled programs by running them: one message at a time,
// thread blocks picked at random, connections with as many slots as the program
// says, values as multisets of contributions. Its only link to the compiler is
// the meaning of ir.Program.

// sum is a multiset of contributions; nil is junk.
type sum map[ir.Contribution]int

func plus(a, b sum) sum {
	if a == nil || b == nil {
		return nil
	}
	c := maps.Clone(a)
	for k, n := range b {
		c[k] += n
	}
	return c
}

func (s sum) String() string {
	if s == nil {
		return "junk"
	}
	var parts []string
	for k, n := range s {
		parts = append(parts, fmt.Sprintf("%d.i[%d]x%d", k.Rank, k.Index, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, "+")
}

// memory is the canonical memory of all ranks.
type memory struct {
	coll *ir.Collective
	at   map[ir.Loc]sum
}

func newMemory(coll *ir.Collective) *memory {
	m := &memory{coll, map[ir.Loc]sum{}}
	for r := range ir.Rank(coll.Ranks) {
		for i := range coll.InputChunks(r) {
			if coll.Holds(r, i) {
				m.at[m.loc(r, ir.Place{Buf: ir.Input, Index: i})] = sum{{Rank: r, Index: i}: 1}
			}
		}
	}
	return m
}

func (m *memory) loc(r ir.Rank, p ir.Place) ir.Loc {
	b, i := m.coll.Canon(r, p.Buf, p.Index)
	return ir.Loc{Rank: r, Buf: b, Index: i}
}

// meaning is the memory after the operations have run one after another.
func meaning(d *ir.ChunkDAG) *memory {
	m := newMemory(d.Coll)
	for _, op := range d.Ops {
		for k := range op.Count {
			src, dst := op.Src, op.Dst
			src.Index += k
			dst.Index += k
			if op.Kind == ir.ChunkReduce {
				m.at[dst] = plus(m.at[dst], m.at[src])
			} else {
				m.at[dst] = m.at[src]
			}
		}
	}
	return m
}

// fifoKey names a connection of a program.
type fifoKey struct {
	src, dst ir.Rank
	channel  int32
}

// worker is a thread block that is being run.
type worker struct {
	rank      ir.Rank
	tb        *ir.ThreadBlock
	id        int32
	step      int
	chunk     int32 // chunks of the step that are done
	finished  int   // steps finished
	beganStep bool
}

type judge struct {
	p       *ir.Program
	m       *memory
	slots   int
	k       int32 // chunks in a message
	fifos   map[fifoKey][][]sum
	workers [][]*worker
}

// runProgram runs p with regime k in an order drawn from rng and returns the
// memory, or who is stuck.
func runProgram(p *ir.Program, rng *rand.Rand, slots int, k int32) (*memory, error) {
	j := &judge{p: p, m: newMemory(p.Coll), slots: slots, k: k, fifos: map[fifoKey][][]sum{}}
	var all []*worker
	for g := range p.GPUs {
		var ws []*worker
		for t := range p.GPUs[g].TBs {
			w := &worker{rank: ir.Rank(g), tb: &p.GPUs[g].TBs[t], id: int32(t)}
			ws, all = append(ws, w), append(all, w)
		}
		j.workers = append(j.workers, ws)
	}
	for {
		// A random worker runs for a random while, so that schedules differ much.
		moved := false
		for _, n := range rng.Perm(len(all)) {
			for range 1 + rng.IntN(6) {
				if !j.advance(all[n]) {
					break
				}
				moved = true
			}
			if moved && rng.IntN(3) == 0 {
				break
			}
		}
		if moved {
			continue
		}
		for _, w := range all {
			if w.step < len(w.tb.Steps) {
				return nil, fmt.Errorf("rank %d thread block %d waits at step %d (%s)", w.rank, w.id, w.step, w.tb.Steps[w.step].Kind)
			}
		}
		return j.m, nil
	}
}

// advance moves one message of w's current step, if it can.
func (j *judge) advance(w *worker) bool {
	if w.step == len(w.tb.Steps) {
		return false
	}
	s := &w.tb.Steps[w.step]
	if !w.beganStep {
		for _, d := range j.p.DepsOf(s) {
			if j.workers[w.rank][d.TB].finished <= int(d.Step) {
				return false
			}
			if !j.p.GPUs[w.rank].TBs[d.TB].Steps[d.Step].Post {
				return false
			}
		}
		w.beganStep = true
	}
	if s.Count > 0 {
		n := min(j.k, s.Count-w.chunk)
		in, out := fifoKey{s.RecvPeer, w.rank, s.Chan}, fifoKey{w.rank, s.SendPeer, s.Chan}
		if s.Kind.Receives() && len(j.fifos[in]) == 0 || s.Kind.Sends() && len(j.fifos[out]) >= j.slots {
			return false
		}
		var message, sent []sum
		if s.Kind.Receives() {
			message, j.fifos[in] = j.fifos[in][0], j.fifos[in][1:]
			if len(message) != int(n) {
				panic("messages of different counts")
			}
		}
		for c := range n {
			var v sum
			if message != nil {
				v = message[c]
			}
			sent = append(sent, j.chunk(w.rank, s, w.chunk+c, v))
		}
		if s.Kind.Sends() {
			j.fifos[out] = append(j.fifos[out], sent)
		}
		if w.chunk += n; w.chunk < s.Count {
			return true
		}
	}
	w.step++
	w.finished, w.chunk, w.beganStep = w.step, 0, false
	return true
}

// chunk does one chunk of a step and returns what it would send.
func (j *judge) chunk(r ir.Rank, s *ir.Step, c int32, received sum) sum {
	at := func(p ir.Place) ir.Loc { return j.m.loc(r, ir.Place{Buf: p.Buf, Index: p.Index + c}) }
	var v sum
	switch s.Kind {
	case ir.Send, ir.Copy:
		v = j.m.at[at(s.Src)]
	case ir.Recv, ir.RecvCopySend:
		v = received
	case ir.RecvReduceSend, ir.RecvReduceCopy, ir.RecvReduceCopySend:
		v = plus(received, j.m.at[at(s.Src)])
	case ir.Reduce:
		v = plus(j.m.at[at(s.Src)], j.m.at[at(s.Dst)])
	}
	if s.Kind.WritesDst() {
		j.m.at[at(s.Dst)] = v
	}
	return v
}

// verify runs p many times with random schedules, in every regime up to its
// largest count, and compares with the meaning of d wherever that can be seen.
func verify(d *ir.ChunkDAG, p *ir.Program, rng *rand.Rand, runs int) error {
	want := meaning(refined(d, p))
	largest := int32(1)
	for g := range p.GPUs {
		for _, tb := range p.GPUs[g].TBs {
			for _, s := range tb.Steps {
				largest = max(largest, s.Count)
			}
		}
	}
	for n := range runs {
		k := int32(1)
		if n%2 == 1 {
			k = 1 + rng.Int32N(largest)
		}
		if p.MaxBytes > 0 {
			k = max(k, p.Transport.Regime(p.MaxBytes, p.Coll.NumChunks()))
		}
		var got *memory
		var err error
		if p.Direct() {
			got, err = runDirect(p, rng)
		} else {
			got, err = runProgram(p, rng, int(p.Transport.Slots), k)
		}
		if err != nil {
			return fmt.Errorf("regime %d: %w", k, err)
		}
		for r := range ir.Rank(p.Coll.Ranks) {
			for _, b := range []ir.BufferID{ir.Input, ir.Output} {
				for i := range p.Buffers[b].Chunks[r] {
					l := got.loc(r, ir.Place{Buf: b, Index: i})
					if p.Coll.Observable(r, l.Buf, l.Index) && got.at[l].String() != want.at[l].String() {
						return fmt.Errorf("regime %d: rank %d %s[%d]: got %v, want %v", k, r, p.BufferName(b), i, got.at[l], want.at[l])
					}
				}
			}
		}
	}
	return nil
}

// refined is d with its chunks cut as finely as p's, operations unchanged in
// meaning: what blocked or interleaved replication must be equal to on the
// collective's own buffers.
func refined(d *ir.ChunkDAG, p *ir.Program) *ir.ChunkDAG {
	f := p.Coll.Split / d.Coll.Split
	if f == 1 {
		return d
	}
	spec := *d.Spec
	spec.Coll = d.Coll.Refine(f)
	out := &ir.ChunkDAG{Spec: &spec}
	for _, op := range d.Ops {
		op.Src.Index *= f
		op.Dst.Index *= f
		op.Count *= f
		out.Ops = append(out.Ops, op)
	}
	return out
}

// newRand is a source of schedules that is the same in every run of a test.
func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
