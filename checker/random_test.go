package checker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

const (
	randomChunks  = 3 // of input and of output
	randomScratch = 2
)

// randomizer builds a tiny program out of whole transfers, so that most of what
// it makes ends, and then may damage it.
type randomizer struct {
	*rand.Rand
	p    *ir.Program
	ends map[string]int // of "rank src>dst#chan": the thread block that owns that end
	tbs  int
}

func randomProgram(seed uint64) *ir.Program {
	g := &randomizer{Rand: rand.New(rand.NewPCG(seed, 1)), ends: map[string]int{}}
	ranks := int32(2 + g.IntN(2))
	g.tbs = 1 + g.IntN(3)
	c := ir.NewCollective(ir.Custom, ranks, 1, g.IntN(2) == 0)
	c.Custom = &ir.CustomSpec{}
	g.p = &ir.Program{Spec: &ir.Spec{Coll: c}, GPUs: make([]ir.GPU, ranks),
		Transport: ir.Transport{Slots: int32(1 + g.IntN(3)), SlotBytes: int64(1 + g.IntN(5))}}
	if g.IntN(2) == 0 {
		g.p.MinBytes = int64(g.IntN(10))
		g.p.MaxBytes = g.p.MinBytes + int64(1+g.IntN(12))
	}
	for r := range g.p.GPUs {
		c.Custom.Input = append(c.Custom.Input, randomChunks)
		c.Custom.Output = append(c.Custom.Output, randomChunks)
		c.Custom.Expect = append(c.Custom.Expect, make([][]ir.Contribution, randomChunks))
		tbs := make([]ir.ThreadBlock, g.tbs)
		for t := range tbs {
			tbs[t] = ir.ThreadBlock{Send: ir.None, Recv: ir.None}
		}
		g.p.GPUs[r] = ir.GPU{Input: randomChunks, Output: randomChunks, Scratch: randomScratch, TBs: tbs}
	}
	for range 2 + g.IntN(4) {
		g.transfer()
	}
	if g.IntN(4) == 0 {
		g.damage()
	}
	return g.p
}

func (g *randomizer) place(count int32, write bool) ir.Place {
	buf := ir.BufferID(g.IntN(3))
	if write && buf == ir.Input && !g.p.Coll.InPlace && g.IntN(10) > 0 {
		buf = ir.Output
	}
	size := int32(randomChunks)
	if buf == ir.FirstScratch {
		size = randomScratch
	}
	if count > size {
		buf, size = ir.Output, randomChunks
	}
	return ir.Place{Buf: buf, Index: g.Int32N(size - count + 1)}
}

// step appends a step to a thread block. It may wait for any step there is.
func (g *randomizer) step(rank, tb int, st ir.Step) {
	gpu := &g.p.GPUs[rank]
	st.DepStart = int32(len(g.p.Deps))
	if t := g.IntN(len(gpu.TBs)); t != tb && len(gpu.TBs[t].Steps) > 0 && g.IntN(5) < 3 {
		s := len(gpu.TBs[t].Steps) - 1 - g.IntN(min(2, len(gpu.TBs[t].Steps)))
		gpu.TBs[t].Steps[s].Post = true
		g.p.Deps = append(g.p.Deps, ir.Dep{TB: int32(t), Step: int32(s)})
	}
	st.DepEnd = int32(len(g.p.Deps))
	if st.Kind.ReadsSrc() {
		st.Src = g.place(st.Count, false)
	}
	if st.Kind.WritesDst() {
		st.Dst = g.place(st.Count, true)
		if st.Kind.ReadsSrc() && g.IntN(2) == 0 && st.Kind.Receives() {
			st.Dst = st.Src
		}
	}
	gpu.TBs[tb].Steps = append(gpu.TBs[tb].Steps, st)
}

func (g *randomizer) owner(rank int, conn string) int {
	key := fmt.Sprint(rank, " ", conn)
	if _, ok := g.ends[key]; !ok {
		g.ends[key] = g.IntN(g.tbs)
	}
	return g.ends[key]
}

// transfer appends one local step, or one send with its receive, perhaps by way
// of a rank that forwards it in one step.
func (g *randomizer) transfer() {
	n := len(g.p.GPUs)
	none := &ir.ThreadBlock{Send: ir.None, Recv: ir.None}
	count := 1 + g.Int32N(3)
	a := g.IntN(n)
	if g.IntN(4) == 0 {
		st := newStep(ir.Copy+ir.StepKind(g.IntN(2)), none)
		st.Count = min(count, 2)
		g.step(a, g.IntN(g.tbs), st)
		return
	}
	path := []int{a, (a + 1 + g.IntN(n-1)) % n}
	for len(path) < 4 && g.IntN(5) < 2 {
		path = append(path, (path[len(path)-1]+1+g.IntN(n-1))%n)
	}
	channel := int32(g.IntN(2))
	conn := func(i int) string { return fmt.Sprintf("%d>%d#%d", path[i], path[i+1], channel) }
	for i := 1; i < len(path)-1; i++ { // one thread block must own both ends
		in, out := fmt.Sprint(path[i], " ", conn(i-1)), fmt.Sprint(path[i], " ", conn(i))
		x, okX := g.ends[in]
		y, okY := g.ends[out]
		switch {
		case okX && okY && x != y:
			path = path[:i+1]
		case okX:
			g.ends[out] = x
		case okY:
			g.ends[in] = y
		default:
			g.ends[in] = g.IntN(g.tbs)
			g.ends[out] = g.ends[in]
		}
	}
	for i, r := range path {
		tb := ir.ThreadBlock{Send: ir.None, Recv: ir.None, Chan: channel}
		var kind ir.StepKind
		var owner int
		switch {
		case i == 0:
			kind, owner = ir.Send, g.owner(r, conn(0))
		case i == len(path)-1:
			kind, owner = []ir.StepKind{ir.Recv, ir.RecvReduceCopy}[g.IntN(2)], g.owner(r, conn(i-1))
		default:
			kind = []ir.StepKind{ir.RecvCopySend, ir.RecvReduceSend, ir.RecvReduceCopySend}[g.IntN(3)]
			owner = g.owner(r, conn(i-1))
		}
		if i > 0 {
			tb.Recv = ir.Rank(path[i-1])
		}
		if i < len(path)-1 {
			tb.Send = ir.Rank(path[i+1])
		}
		st := newStep(kind, &tb)
		st.Count = count
		g.step(r, owner, st)
	}
}

// damage swaps two neighboring steps somewhere.
func (g *randomizer) damage() {
	tbs := g.p.GPUs[g.IntN(len(g.p.GPUs))].TBs
	if s := tbs[g.IntN(len(tbs))].Steps; len(s) > 1 {
		i := g.IntN(len(s) - 1)
		s[i], s[i+1] = s[i+1], s[i]
		s[i].Post, s[i+1].Post = s[i+1].Post, s[i].Post
	}
}

// TestMutantsOfARing drops each dependency of a ring with separate thread blocks
// in turn: every one is needed.
func TestMutantsOfARing(t *testing.T) {
	for i := range splitRing(4).Deps {
		p := splitRing(4)
		for r := range p.GPUs {
			for tb := range p.GPUs[r].TBs {
				for s := range p.GPUs[r].TBs[tb].Steps {
					if st := &p.GPUs[r].TBs[tb].Steps[s]; st.DepStart == int32(i) && st.DepEnd > st.DepStart {
						st.DepEnd = st.DepStart
					}
				}
			}
		}
		rep, err := Check(context.Background(), p, Options{})
		if err != nil || rep.OK {
			t.Errorf("dependency %d dropped: accepted (%v)", i, err)
		}
	}
}
