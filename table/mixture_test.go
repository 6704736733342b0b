package table_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// mixture runs a program of its own on every rank, message by message, with one chunk in a
// message and as many messages in flight as a connection has slots, thread blocks in a
// random order. It is a machine of the test's own, on integers.
type mixture struct {
	progs []*ir.Program // of each rank
	mem   []map[ir.Place]int64
	at    [][][2]int32 // of each rank's thread blocks: the step that is due, and its message
	wires map[[3]int32][]int64
}

// holds is the number that input i of rank r holds; sums of them tell what was added.
func holds(r ir.Rank, i int32) int64 { return int64(i+1)<<20 + 1<<(2*r) }

func newMixture(progs []*ir.Program) *mixture {
	m := &mixture{progs: progs, wires: map[[3]int32][]int64{}}
	for r, p := range progs {
		mem := map[ir.Place]int64{}
		for i := range p.Coll.InputChunks(ir.Rank(r)) {
			if p.Coll.Holds(ir.Rank(r), i) {
				mem[m.place(r, ir.Place{Buf: ir.Input, Index: i})] = holds(ir.Rank(r), i)
			}
		}
		m.mem = append(m.mem, mem)
		m.at = append(m.at, make([][2]int32, len(p.GPUs[r].TBs)))
	}
	return m
}

func (m *mixture) place(r int, p ir.Place) ir.Place {
	buf, i := m.progs[r].Coll.Canon(ir.Rank(r), p.Buf, p.Index)
	return ir.Place{Buf: buf, Index: i}
}

// turn does one message of a thread block, if it can; done says that it has ended.
func (m *mixture) turn(r, b int) (moved, done bool) {
	p, at := m.progs[r], &m.at[r][b]
	steps := p.GPUs[r].TBs[b].Steps
	if int(at[0]) == len(steps) {
		return false, true
	}
	s := &steps[at[0]]
	for _, d := range p.DepsOf(s) {
		if m.at[r][d.TB][0] <= d.Step {
			return false, false
		}
	}
	in, out := [3]int32{int32(s.RecvPeer), int32(r), s.Chan}, [3]int32{int32(r), int32(s.SendPeer), s.Chan}
	if s.Kind.Receives() && len(m.wires[in]) == 0 || s.Kind.Sends() && len(m.wires[out]) == int(p.Transport.Slots) {
		return false, false
	}
	if s.Count > 0 {
		var v int64
		if s.Kind.Receives() {
			v, m.wires[in] = m.wires[in][0], m.wires[in][1:]
		}
		src, dst := ir.Place{Buf: s.Src.Buf, Index: s.Src.Index + at[1]}, ir.Place{Buf: s.Dst.Buf, Index: s.Dst.Index + at[1]}
		if s.Kind.ReadsSrc() {
			v += m.mem[r][m.place(r, src)]
		}
		if s.Kind == ir.Reduce {
			v += m.mem[r][m.place(r, dst)]
		}
		if s.Kind.WritesDst() {
			m.mem[r][m.place(r, dst)] = v
		}
		if s.Kind.Sends() {
			m.wires[out] = append(m.wires[out], v)
		}
		at[1]++
	}
	if at[1] >= s.Count {
		*at = [2]int32{at[0] + 1, 0}
	}
	return true, false
}

// run takes turns in a random order until all have ended, and compares the outputs with
// what the collective demands.
func (m *mixture) run(rnd *rand.Rand) error {
	var blocks [][2]int
	for r := range m.at {
		for b := range m.at[r] {
			blocks = append(blocks, [2]int{r, b})
		}
	}
	for idle := 0; ; {
		ended := 0
		rnd.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
		idle++
		for _, x := range blocks {
			moved, done := m.turn(x[0], x[1])
			if moved {
				idle = 0
			}
			if done {
				ended++
			}
		}
		if ended == len(blocks) {
			break
		}
		if idle > 1 {
			return fmt.Errorf("deadlock")
		}
	}
	for r, p := range m.progs {
		for i := range p.Coll.OutputChunks(ir.Rank(r)) {
			parts, demanded := p.Coll.Expect(nil, ir.Rank(r), i)
			want := int64(0)
			for _, c := range parts {
				want += holds(c.Rank, c.Index)
			}
			if got := m.mem[r][m.place(r, ir.Place{Buf: ir.Output, Index: i})]; demanded && got != want {
				return fmt.Errorf("rank %d output %d is %x, want %x", r, i, got, want)
			}
		}
	}
	return nil
}

// What Build calls mixable may be mixed: whichever ranks call in place, all get what they
// should, and none waits for ever.
func TestMixturesRun(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	mixed := 0
	for _, script := range []string{"allreduce_one_step", "allreduce_allpairs", "allreduce_ring", "allreduce_binomial_tree", "allgather_direct",
		"allgather_ring", "reduce_scatter_direct", "reduce_scatter_ring", "alltoall_direct", "broadcast_tree", "reduce_tree", "gather_tree", "scatter_tree"} {
		for _, ranks := range []string{"2", "3", "5"} {
			r := recipe(t, "e", "both", script, "ranks", ranks, "instances", "2", "protocol", "LL128")
			out, in := r.OutOfPlace, r.InPlace
			if x := made(t, r); !x.Entries[0].Mixable {
				continue
			}
			mixed++
			for range 20 {
				progs := make([]*ir.Program, len(out.GPUs))
				for i := range progs {
					if progs[i] = out; rnd.Intn(2) == 0 {
						progs[i] = in
					}
				}
				if err := newMixture(progs).run(rnd); err != nil {
					t.Errorf("%s on %s ranks: %v", script, ranks, err)
				}
			}
		}
	}
	if mixed < 25 {
		t.Errorf("only %d of 39 pairs of programs can be mixed", mixed)
	}
}
