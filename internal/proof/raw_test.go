package proof

import (
	"math/rand/v2"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

const (
	rawChunks  = 3 // of input and of output
	rawScratch = 2
)

// rawProgram makes a tiny program out of whole transfers, so that most of what it
// makes ends, with places and waits at random. What one run of it computes is made
// the collective's demand, so that it is right unless the order matters.
type rawProgram struct {
	*rand.Rand
	d    *draft
	ends map[rawEnd]int // the thread block that owns an end of a connection
	tbs  int
}

type rawEnd struct {
	rank int
	conn connKey
}

func newRaw(rng *rand.Rand) *ir.Program { return newRawSteps(rng, false) }

// newRawSteps is newRaw; to meet means with exchanges, and what the program computes
// by protocol Direct.
func newRawSteps(rng *rand.Rand, meets bool) *ir.Program {
	g := &rawProgram{Rand: rng, ends: map[rawEnd]int{}, tbs: 1 + rng.IntN(3)}
	ranks := int32(2 + g.IntN(2))
	c := ir.NewCollective(ir.Custom, ranks, 1, g.IntN(2) == 0)
	c.Custom = &ir.CustomSpec{}
	p := &ir.Program{Spec: &ir.Spec{Name: "raw", Coll: c, Topo: ir.FullyConnected(ranks), Instances: 1}, GPUs: make([]ir.GPU, ranks),
		Transport: ir.Transport{Slots: 1 + g.Int32N(3), SlotBytes: 1 + g.Int64N(5)}}
	if g.IntN(2) == 0 {
		p.MinBytes = g.Int64N(10)
		p.MaxBytes = p.MinBytes + 1 + g.Int64N(12)
	}
	if g.IntN(20) == 0 {
		p.Topo = g.someLinks(ranks)
	}
	for r := range p.GPUs {
		c.Custom.Input = append(c.Custom.Input, rawChunks)
		c.Custom.Output = append(c.Custom.Output, rawChunks)
		c.Custom.Expect = append(c.Custom.Expect, make([][]ir.Contribution, rawChunks))
		p.GPUs[r] = ir.GPU{Input: rawChunks, Output: rawChunks, Scratch: rawScratch, TBs: make([]ir.ThreadBlock, g.tbs)}
		for t := range p.GPUs[r].TBs {
			p.GPUs[r].TBs[t] = ir.ThreadBlock{Send: ir.None, Recv: ir.None}
		}
	}
	trips := 0 // it has nothing else, if any
	if !meets {
		p.Protocol = ir.Protocol(g.IntN(int(ir.LL128) + 1))
		if trips = g.IntN(7) - 3; flagged(p) {
			trips = g.IntN(5) - 1
		}
	}
	g.d = newDraft(p)
	for range max(trips, 0) {
		g.trip()
	}
	for range 2 + g.IntN(6) {
		if trips > 0 {
			break
		}
		if g.IntN(4) == 0 {
			g.step(g.IntN(int(ranks)), g.IntN(g.tbs), ir.Step{Kind: ir.Copy + ir.StepKind(g.IntN(2)), Count: 1 + g.Int32N(2)})
			continue
		}
		if meets && g.IntN(3) == 0 {
			g.exchange()
			continue
		}
		if !meets && g.IntN(4) == 0 {
			g.trip()
			continue
		}
		g.transfer()
	}
	p = g.d.program()
	if meets {
		g.demandDirect(p)
	} else {
		g.demand(p)
	}
	return p
}

// someLinks is a topology in which each link is there or not.
func (g *rawProgram) someLinks(ranks int32) *ir.Topology {
	t := ir.NewTopology("some", ranks)
	for a := range ir.Rank(ranks) {
		for b := range ir.Rank(ranks) {
			if g.IntN(4) > 0 {
				t.Link(a, b, 1)
			}
		}
	}
	return t
}

// transfer appends a send and its receive, perhaps by way of ranks that pass the
// message on in one step.
func (g *rawProgram) transfer() {
	n := len(g.d.tbs)
	count, channel := 1+g.Int32N(3), g.Int32N(2)
	path := []int{g.IntN(n)}
	for len(path) < 2 || len(path) < 4 && g.IntN(5) < 2 {
		path = append(path, (path[len(path)-1]+1+g.IntN(n-1))%n)
	}
	conn := func(i int) connKey { return connKey{ir.Rank(path[i]), ir.Rank(path[i+1]), channel} }
	for i := 1; i < len(path)-1; i++ { // who passes on owns both ends
		in, out := rawEnd{path[i], conn(i - 1)}, rawEnd{path[i], conn(i)}
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
	owner := func(rank int, k connKey) int {
		if _, ok := g.ends[rawEnd{rank, k}]; !ok {
			g.ends[rawEnd{rank, k}] = g.IntN(g.tbs)
		}
		return g.ends[rawEnd{rank, k}]
	}
	last := len(path) - 1
	for i, r := range path {
		st := ir.Step{Count: count, Chan: channel}
		tb := 0
		switch {
		case i == 0:
			st.Kind, tb = ir.Send, owner(r, conn(0))
		case i == last:
			st.Kind, tb = []ir.StepKind{ir.Recv, ir.RecvReduceCopy}[g.IntN(2)], owner(r, conn(i-1))
		default:
			st.Kind = []ir.StepKind{ir.RecvCopySend, ir.RecvReduceSend, ir.RecvReduceCopySend}[g.IntN(3)]
			tb = owner(r, conn(i-1))
		}
		if i > 0 {
			st.RecvPeer = ir.Rank(path[i-1])
		}
		if i < last {
			st.SendPeer = ir.Rank(path[i+1])
		}
		g.step(r, tb, st)
	}
}

// step appends a step to a thread block. It may wait for any step there is.
func (g *rawProgram) step(rank, tb int, st ir.Step) {
	if !st.Kind.Sends() {
		st.SendPeer = ir.None
	}
	if !st.Kind.Receives() {
		st.RecvPeer = ir.None
	}
	if st.Kind.ReadsSrc() {
		st.Src = g.place(st.Count, false)
	}
	if st.Kind.WritesDst() {
		st.Dst = g.place(st.Count, true)
		if st.Kind.ReadsSrc() && st.Kind.Receives() && g.IntN(2) == 0 {
			st.Dst = st.Src
		}
	}
	waiting := draftStep{Step: st}
	if t := g.IntN(g.tbs); t != tb && g.IntN(5) < 3 {
		if other := g.d.tbs[rank][t].steps; len(other) > 0 {
			s := len(other) - 1 - g.IntN(min(2, len(other)))
			other[s].Post = true
			waiting.deps = []ir.Dep{{TB: int32(t), Step: int32(s)}}
		}
	}
	g.d.tbs[rank][tb].steps = append(g.d.tbs[rank][tb].steps, waiting)
}

func (g *rawProgram) place(count int32, write bool) ir.Place {
	buf := ir.BufferID(g.IntN(3))
	if write && buf == ir.Input && !g.d.p.Coll.InPlace && g.IntN(10) > 0 {
		buf = ir.Output
	}
	size := int32(rawChunks)
	if buf == ir.FirstScratch {
		size = rawScratch
	}
	if count > size {
		buf, size = ir.Output, rawChunks
	}
	return ir.Place{Buf: buf, Index: g.Int32N(size - count + 1)}
}

// demand makes what one run leaves in the outputs the collective's demand, where
// it is sums of inputs alone; now and then an output is left free.
func (g *rawProgram) demand(p *ir.Program) {
	if brokenRules(p) != 0 {
		return
	}
	m := newMachine(p, 1)
	v := newValues(m.cells)
	s := m.start()
	for moved := true; moved; {
		moved = false
		for _, l := range g.Perm(len(m.lines)) {
			if m.enabled(s, l, unlimited) {
				m.apply(s, l, v)
				moved = true
			}
		}
	}
	g.demandMemory(p, m, v, s.mem)
}

// demandMemory makes a memory the collective's demand.
func (g *rawProgram) demandMemory(p *ir.Program, m *machine, v *values, mem []int32) {
	initial := map[int32]ir.Contribution{}
	for r := range ir.Rank(p.Coll.Ranks) {
		for i := range int32(rawChunks) {
			initial[m.cell(r, ir.Place{Buf: ir.Input, Index: i})] = ir.Contribution{Rank: r, Index: i}
		}
	}
	for r := range p.GPUs {
		for i := range int32(rawChunks) {
			var want []ir.Contribution
			for _, l := range v.lists[mem[m.cell(ir.Rank(r), ir.Place{Buf: ir.Output, Index: i})]] {
				if w, ok := initial[l]; ok {
					want = append(want, w)
				} else {
					want = nil
					break
				}
			}
			if g.IntN(4) > 0 {
				p.Coll.Custom.Expect[r][i] = slices.Clip(want)
			}
		}
	}
}
