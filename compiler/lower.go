package compiler

import (
	"context"

	"github.com/mscclsh/mscclsh/ir"
)

// lower turns every operation into instructions, in program order: a remote
// copy into s and r, a remote reduce into s and rrc, local ones into cpy and re.
// A target without fused steps gets r into a scratch buffer of its own and re.
//
// The send stands right before its receive. That is the witness that the
// program can run at all, whatever thread blocks it is given and with a single
// slot: operation after operation, each send meeting its receive.
func lower(_ context.Context, s *state) error {
	d := s.chunks
	spec := d.Spec
	unfused := !s.recvReduce()
	landing := ir.BufferID(len(spec.Buffers))
	var landed []int32
	if unfused {
		landed = make([]int32, spec.Ranks())
	}
	out := &ir.InstrDAG{Spec: spec, Instrs: make([]ir.Instr, 0, 2*len(d.Ops))}
	for i := range d.Ops {
		op := &d.Ops[i]
		in := ir.Instr{Count: op.Count, SendTo: ir.None, RecvFrom: ir.None, Chan: op.Chan,
			Instance: op.Instance, Op: ir.OpID(i), Pos: op.Pos, Src: ir.NoPlace, Dst: ir.NoPlace}
		src, dst := ir.Place{Buf: op.Src.Buf, Index: op.Src.Index}, ir.Place{Buf: op.Dst.Buf, Index: op.Dst.Index}
		if !op.Remote() {
			out.Instrs = append(out.Instrs, localInstr(in, op, src, dst))
			continue
		}
		at := ir.InstrID(len(out.Instrs))
		send, recv := in, in
		send.Kind, send.Rank, send.Src, send.TB, send.SendTo = ir.Send, op.Src.Rank, src, op.SendTB, at+1
		recv.Kind, recv.Rank, recv.Dst, recv.TB, recv.RecvFrom = ir.Recv, op.Dst.Rank, dst, op.RecvTB, at
		switch {
		case op.Kind == ir.ChunkReduce && !unfused:
			recv.Kind, recv.Src = ir.RecvReduceCopy, dst
			out.Instrs = append(out.Instrs, send, recv)
		case op.Kind == ir.ChunkReduce:
			recv.Dst = ir.Place{Buf: landing, Index: landed[op.Dst.Rank]}
			landed[op.Dst.Rank] += op.Count
			sum := in
			sum.Kind, sum.Rank, sum.TB, sum.Src, sum.Dst = ir.Reduce, op.Dst.Rank, op.RecvTB, recv.Dst, dst
			out.Instrs = append(out.Instrs, send, recv, sum)
		default:
			out.Instrs = append(out.Instrs, send, recv)
		}
	}
	if unfused {
		withLanding := *spec
		withLanding.Buffers = append(append([]ir.Buffer(nil), spec.Buffers...), ir.Buffer{Name: "received", Chunks: landed})
		out.Spec = &withLanding
	}
	s.base = out
	s.stats.StepsBefore = len(out.Instrs)
	s.taken.send = make([]bool, len(out.Instrs))
	s.taken.delay = make([]bool, len(out.Instrs))
	return nil
}

func localInstr(in ir.Instr, op *ir.ChunkOp, src, dst ir.Place) ir.Instr {
	in.Kind, in.Rank, in.Src, in.Dst, in.TB = ir.Copy, op.Dst.Rank, src, dst, op.SendTB
	if op.Kind == ir.ChunkReduce {
		in.Kind = ir.Reduce
	}
	return in
}
