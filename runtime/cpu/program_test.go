package cpu

import (
	"github.com/mscclsh/mscclsh/ir"
)

// Builders of programs by hand. A builder keeps one thread block a rank unless
// told otherwise.
type builder struct{ p *ir.Program }

func newBuilder(coll *ir.Collective, slots int32, slotBytes int64) *builder {
	p := &ir.Program{Spec: &ir.Spec{Name: "test", Coll: coll, Instances: 1},
		Transport: ir.Transport{Slots: slots, SlotBytes: slotBytes}, GPUs: make([]ir.GPU, coll.Ranks)}
	for r := range p.GPUs {
		p.GPUs[r].Input = coll.InputChunks(ir.Rank(r))
		p.GPUs[r].Output = coll.OutputChunks(ir.Rank(r))
	}
	return &builder{p}
}

func (b *builder) scratch(chunks int32) *builder {
	for r := range b.p.GPUs {
		b.p.GPUs[r].Scratch = chunks
	}
	return b
}

func in(i int32) ir.Place  { return ir.Place{Buf: ir.Input, Index: i} }
func out(i int32) ir.Place { return ir.Place{Buf: ir.Output, Index: i} }
func scr(i int32) ir.Place { return ir.Place{Buf: ir.FirstScratch, Index: i} }
func tb(t, s int32) ir.Dep { return ir.Dep{TB: t, Step: s} }
func base(k ir.StepKind, n int32) ir.Step {
	return ir.Step{Kind: k, Count: n, Src: ir.NoPlace, Dst: ir.NoPlace, Remote: ir.NoPlace,
		SendPeer: ir.None, RecvPeer: ir.None}
}

func send(to ir.Rank, src ir.Place, n int32) ir.Step {
	s := base(ir.Send, n)
	s.SendPeer, s.Src = to, src
	return s
}

func recv(from ir.Rank, dst ir.Place, n int32) ir.Step {
	s := base(ir.Recv, n)
	s.RecvPeer, s.Dst = from, dst
	return s
}

// fused is rcs, rrs, rrc or rrcs with the peers that it needs.
func fused(k ir.StepKind, from, to ir.Rank, src, dst ir.Place, n int32) ir.Step {
	s := base(k, n)
	s.RecvPeer = from
	if k.Sends() {
		s.SendPeer = to
	}
	if k.ReadsSrc() {
		s.Src = src
	}
	if k.WritesDst() {
		s.Dst = dst
	}
	return s
}

func local(k ir.StepKind, src, dst ir.Place, n int32) ir.Step {
	s := base(k, n)
	s.Src, s.Dst = src, dst
	return s
}

// add appends a step to thread block t of rank r, which waits for deps.
func (b *builder) add(r ir.Rank, t int, s ir.Step, deps ...ir.Dep) *builder {
	g := &b.p.GPUs[r]
	for len(g.TBs) <= t {
		g.TBs = append(g.TBs, ir.ThreadBlock{Send: ir.None, Recv: ir.None})
	}
	s.DepStart = int32(len(b.p.Deps))
	b.p.Deps = append(b.p.Deps, deps...)
	s.DepEnd = int32(len(b.p.Deps))
	g.TBs[t].Steps = append(g.TBs[t].Steps, s)
	return b
}

// post makes the last step of the thread block one that others may wait for.
func (b *builder) post(r ir.Rank, t int) *builder {
	steps := b.p.GPUs[r].TBs[t].Steps
	steps[len(steps)-1].Post = true
	return b
}

// ringAllReduce is the fused ring, in place: n chunks, one thread block a rank.
func ringAllReduce(n, split int32, t ir.Transport) *ir.Program {
	coll := ir.NewCollective(ir.AllReduce, n, n, true).Refine(split)
	b := newBuilder(coll, t.Slots, t.SlotBytes)
	for r := range ir.Rank(n) {
		if n == 1 {
			b.add(r, 0, base(ir.Nop, 0))
			continue
		}
		next, prev := (r+1)%ir.Rank(n), (r+ir.Rank(n)-1)%ir.Rank(n)
		at := func(hop int32) ir.Place { return in((int32(r) - hop + 2*n) % n * split) }
		b.add(r, 0, send(next, at(0), split))
		for hop := int32(1); hop < n-1; hop++ {
			b.add(r, 0, fused(ir.RecvReduceSend, prev, next, at(hop), ir.NoPlace, split))
		}
		b.add(r, 0, fused(ir.RecvReduceCopySend, prev, next, at(n-1), at(n-1), split))
		for hop := int32(0); hop < n-2; hop++ {
			b.add(r, 0, fused(ir.RecvCopySend, prev, next, ir.NoPlace, at(hop), split))
		}
		b.add(r, 0, recv(prev, at(n-2), split))
	}
	return b.p
}
