package table

import (
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// An allreduce of two ranks and two chunks by hand: thread block 0 sends both chunks,
// thread block 1 adds what arrives. change may make another program of it.
func handmade(change func(p *ir.Program)) *ir.Program {
	coll := ir.NewCollective(ir.AllReduce, 2, 2, false)
	p := &ir.Program{Spec: &ir.Spec{Name: "hand", Coll: coll, Topo: ir.FullyConnected(2), Protocol: ir.LL},
		Transport: ir.Transport{Slots: 8, SlotBytes: 4096}}
	for r := range ir.Rank(2) {
		peer := 1 - r
		p.GPUs = append(p.GPUs, ir.GPU{Input: 2, Output: 2, Scratch: 2, TBs: []ir.ThreadBlock{
			{Steps: []ir.Step{sending(peer, 0, 1), sending(peer, 1, 1)}},
			{Steps: []ir.Step{adding(peer, 0), adding(peer, 1)}},
		}})
	}
	change(p)
	return p
}

func input(i int32) ir.Place   { return ir.Place{Buf: ir.Input, Index: i} }
func output(i int32) ir.Place  { return ir.Place{Buf: ir.Output, Index: i} }
func scratch(i int32) ir.Place { return ir.Place{Buf: ir.FirstScratch, Index: i} }

func sending(to ir.Rank, chunk, count int32) ir.Step {
	return ir.Step{Kind: ir.Send, Src: input(chunk), Dst: ir.NoPlace, Count: count, SendPeer: to, RecvPeer: ir.None}
}

func adding(from ir.Rank, chunk int32) ir.Step {
	return ir.Step{Kind: ir.RecvReduceCopy, Src: input(chunk), Dst: output(chunk), Count: 1, SendPeer: ir.None, RecvPeer: from}
}

func local(kind ir.StepKind, src, dst ir.Place) ir.Step {
	return ir.Step{Kind: kind, Src: src, Dst: dst, Count: 1, SendPeer: ir.None, RecvPeer: ir.None}
}

// each changes both ranks alike.
func each(change func(g *ir.GPU, peer ir.Rank)) func(*ir.Program) {
	return func(p *ir.Program) {
		for r := range p.GPUs {
			change(&p.GPUs[r], ir.Rank(1-r))
		}
	}
}

// waiting makes a step wait for another one.
func waiting(p *ir.Program, s *ir.Step, on ir.Dep) {
	s.DepStart = int32(len(p.Deps))
	p.Deps = append(p.Deps, on)
	s.DepEnd = int32(len(p.Deps))
}

// Ranks may mix programs that differ in local things alone.
func TestMixableByHand(t *testing.T) {
	plain := handmade(func(*ir.Program) {})
	for _, c := range []struct {
		name   string
		change func(*ir.Program)
		want   bool
	}{
		{"the same", func(*ir.Program) {}, true},
		{"a copy beside", each(func(g *ir.GPU, _ ir.Rank) {
			g.TBs = append(g.TBs, ir.ThreadBlock{Steps: []ir.Step{local(ir.Copy, input(0), scratch(0))}})
		}), true},
		{"what arrives is put down and added later", each(func(g *ir.GPU, peer ir.Rank) {
			g.TBs[1].Steps = nil
			for i := range int32(2) {
				g.TBs[1].Steps = append(g.TBs[1].Steps, ir.Step{Kind: ir.Recv, Src: ir.NoPlace, Dst: output(i), Count: 1, SendPeer: ir.None, RecvPeer: peer},
					local(ir.Reduce, input(i), output(i)))
			}
		}), true},
		{"a send from a copy of its chunk", each(func(g *ir.GPU, peer ir.Rank) {
			g.TBs[0].Steps = append([]ir.Step{local(ir.Copy, input(0), scratch(1))}, g.TBs[0].Steps...)
			g.TBs[0].Steps[1].Src = scratch(1)
		}), true},
		{"chunks in the other order", each(func(g *ir.GPU, peer ir.Rank) {
			for b := range g.TBs {
				s := g.TBs[b].Steps
				s[0], s[1] = s[1], s[0]
			}
		}), false},
		{"one message of both", each(func(g *ir.GPU, peer ir.Rank) {
			for b := range g.TBs {
				g.TBs[b].Steps = g.TBs[b].Steps[:1]
				g.TBs[b].Steps[0].Count = 2
			}
		}), false},
		{"another channel", each(func(g *ir.GPU, peer ir.Rank) {
			for b := range g.TBs {
				for i := range g.TBs[b].Steps {
					g.TBs[b].Steps[i].Chan = 1
				}
			}
		}), false},
		{"a send that waits for a receive", func(p *ir.Program) {
			waiting(p, &p.GPUs[0].TBs[0].Steps[1], ir.Dep{TB: 1, Step: 0})
		}, false},
		{"a send that waits for a copy of what was received", func(p *ir.Program) {
			g := &p.GPUs[0]
			g.TBs = append(g.TBs, ir.ThreadBlock{Steps: []ir.Step{local(ir.Copy, output(0), scratch(0))}})
			waiting(p, &g.TBs[2].Steps[0], ir.Dep{TB: 1, Step: 0})
			waiting(p, &g.TBs[0].Steps[1], ir.Dep{TB: 2, Step: 0})
		}, false},
		{"receives on two thread blocks", each(func(g *ir.GPU, peer ir.Rank) {
			g.TBs = append(g.TBs, ir.ThreadBlock{Steps: g.TBs[1].Steps[1:]})
			g.TBs[1].Steps = g.TBs[1].Steps[:1]
		}), false},
		{"other slots", func(p *ir.Program) { p.Transport.Slots = 4 }, false},
		{"an output that is no sum", func(p *ir.Program) {
			s := &p.GPUs[1].TBs[1].Steps[1]
			s.Kind, s.Src = ir.Recv, ir.NoPlace
		}, false},
		{"a program that doesn't end", func(p *ir.Program) {
			waiting(p, &p.GPUs[0].TBs[0].Steps[0], ir.Dep{TB: 1, Step: 1})
			waiting(p, &p.GPUs[1].TBs[0].Steps[0], ir.Dep{TB: 1, Step: 1})
		}, false},
	} {
		if got := mixable(plain, handmade(c.change)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if got := mixable(handmade(c.change), plain); got != c.want {
			t.Errorf("%s, the other way round: got %v, want %v", c.name, got, c.want)
		}
	}
}

// The order of a sum is part of it: (a+b)+c and a+(b+c) may differ in the last bits, and
// ranks that made them differently would disagree.
func TestSumsAreOrdered(t *testing.T) {
	x := terms{}
	a, b, c := x.input(0, 0), x.input(1, 0), x.input(2, 0)
	if x.sum(a, b) != x.sum(b, a) {
		t.Error("a+b and b+a are not the same")
	}
	if x.sum(x.sum(a, b), c) == x.sum(a, x.sum(b, c)) {
		t.Error("(a+b)+c and a+(b+c) are the same")
	}
}
