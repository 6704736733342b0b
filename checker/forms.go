package checker

import (
	"context"

	"github.com/mscclsh/mscclsh/ir"
)

// CheckChunks judges a program as written: whether its operations, one after
// another, compute the collective.
func CheckChunks(ctx context.Context, d *ir.ChunkDAG, o Options) (*Report, error) {
	return Check(ctx, chunksInOrder(d), o)
}

// CheckInstrs judges a program as instructions: whether running them in the order
// in which they stand computes the collective.
func CheckInstrs(ctx context.Context, d *ir.InstrDAG, o Options) (*Report, error) {
	return Check(ctx, instrsInOrder(d), o)
}

// enough is a depth at which no connection of a form is ever full: what a form
// means does not depend on slots.
const enough = maxSlots

// inOrder builds the program that runs a form in its order: one thread block a
// rank, so that nothing races, and messages on a channel for every flow, so that none
// waits behind another.
type inOrder struct {
	p       *ir.Program
	scratch [][]int32 // by buffer and rank: where a named scratch buffer begins
}

func newInOrder(s *ir.Spec) *inOrder {
	if s.Protocol >= ir.Direct { // nor does it depend on a rendezvous
		slots := *s
		slots.Protocol, s = ir.Simple, &slots
	}
	b := &inOrder{p: &ir.Program{Spec: s, Transport: ir.Transport{Slots: enough, SlotBytes: 1}, GPUs: make([]ir.GPU, s.Ranks())}}
	b.scratch = make([][]int32, len(s.Buffers))
	for r := range b.p.GPUs {
		g := &b.p.GPUs[r]
		g.Input, g.Output = s.Coll.InputChunks(ir.Rank(r)), s.Coll.OutputChunks(ir.Rank(r))
		g.TBs = []ir.ThreadBlock{{Send: ir.None, Recv: ir.None}}
		for k := ir.FirstScratch; int(k) < len(s.Buffers); k++ {
			b.scratch[k] = append(b.scratch[k], g.Scratch)
			g.Scratch += s.Buffers[k].Chunks[r]
		}
	}
	return b
}

func (b *inOrder) place(r ir.Rank, p ir.Place) ir.Place {
	if p.Buf < ir.FirstScratch {
		return p
	}
	return ir.Place{Buf: ir.FirstScratch, Index: b.scratch[p.Buf][r] + p.Index}
}

// step adds a step to a rank's thread block.
func (b *inOrder) step(r ir.Rank, s ir.Step) {
	s.Src, s.Dst, s.Remote = b.place(r, s.Src), b.place(r, s.Dst), ir.NoPlace
	tb := &b.p.GPUs[r].TBs[0]
	tb.Steps = append(tb.Steps, s)
}

func chunksInOrder(d *ir.ChunkDAG) *ir.Program {
	b := newInOrder(d.Spec)
	for i := range d.Ops {
		op := &d.Ops[i]
		src, dst := ir.Place{Buf: op.Src.Buf, Index: op.Src.Index}, ir.Place{Buf: op.Dst.Buf, Index: op.Dst.Index}
		st := ir.Step{Src: src, Dst: dst, Count: op.Count, SendPeer: ir.None, RecvPeer: ir.None, Pos: op.Pos}
		if !op.Remote() {
			st.Kind = ir.Copy
			if op.Kind == ir.ChunkReduce {
				st.Kind = ir.Reduce
			}
			b.step(op.Dst.Rank, st)
			continue
		}
		send, recv := st, st
		send.Kind, send.Dst, send.SendPeer = ir.Send, ir.NoPlace, op.Dst.Rank
		recv.Kind, recv.Src, recv.RecvPeer = ir.Recv, ir.NoPlace, op.Src.Rank
		if op.Kind == ir.ChunkReduce {
			recv.Kind, recv.Src = ir.RecvReduceCopy, dst
		}
		b.step(op.Src.Rank, send)
		b.step(op.Dst.Rank, recv)
	}
	return b.p
}

func instrsInOrder(d *ir.InstrDAG) *ir.Program {
	b := newInOrder(d.Spec)
	flow := make([]int32, len(d.Instrs))
	flows := int32(0)
	for i := range d.Instrs {
		in := &d.Instrs[i]
		switch {
		case in.RecvFrom != ir.None:
			flow[i] = flow[in.RecvFrom]
		case in.SendTo != ir.None:
			flow[i] = flows
			flows++
		}
		b.step(in.Rank, ir.Step{Kind: in.Kind, Src: in.Src, Dst: in.Dst, Count: in.Count, Chan: flow[i], Pos: in.Pos,
			SendPeer: d.SendPeer(ir.InstrID(i)), RecvPeer: d.RecvPeer(ir.InstrID(i))})
	}
	return b.p
}
