package compiler

import (
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// forward lets values skip scratch, slot by slot and only where the scratch
// value dies with its single use:
//
//	cpy a -> t; use t        use a                (nobody wrote a in between)
//	r -> t; cpy t -> b       r -> b               at the place of the copy
//	r -> t; re b += t        rrc b := recv + b    at the place of the reduce
//	r -> d; re d += a        rrc d := recv + a    at the place of the reduce
//
// A receive that moved later can cross other messages of its connection; the
// channels pass takes such a move back.
func forward(_ context.Context, s *state) error {
	f := s.startFusion()
	if s.base.Fusion && !s.taken.allJoin && f.hasLocal() {
		for range maxForwardRounds {
			if !f.forwardOnce() {
				break
			}
		}
	}
	f.finish()
	return nil
}

// hasLocal reports whether there is any local instruction: without one nothing
// can be forwarded, and rings of thousands of ranks are spared a walk.
func (f *fusion) hasLocal() bool {
	return slices.ContainsFunc(f.ins, func(in ir.Instr) bool { return in.Kind == ir.Copy || in.Kind == ir.Reduce })
}

// maxForwardRounds bounds chains of scratch buffers: each round removes one
// buffer of every chain, and longer chains are left as they are.
const maxForwardRounds = 8

func forwardOff(s *state) error {
	s.startFusion().finish()
	return nil
}

// fusion edits a copy of the lowered instructions in place; dropped ones are
// squeezed out at the end.
type fusion struct {
	*state
	ins     []ir.Instr
	dropped []bool
}

func (s *state) startFusion() *fusion {
	return &fusion{s, slices.Clone(s.base.Instrs), make([]bool, len(s.base.Instrs))}
}

func (f *fusion) forwardOnce() bool {
	d := defUses(f.base.Spec, f.ins, f.dropped)
	touched := make([]bool, len(f.ins))
	changed := false
	for i := range int32(len(f.ins)) {
		if f.dropped[i] {
			continue
		}
		def, from := d.srcDef[i], forwardSource
		if f.ins[i].Kind == ir.Reduce && !f.dies(d, def) {
			def, from = d.dstDef[i], forwardDest
		}
		if def == ir.None || touched[def] || touched[i] || d.uses[def] != 1 {
			continue
		}
		if from(f, d, def, i) {
			touched[def], touched[i] = true, true
			f.dropped[def] = true
			changed = true
		}
	}
	return changed
}

// dies reports whether def wrote scratch that one instruction reads and nobody
// needs later.
func (f *fusion) dies(d *defUse, def int32) bool {
	return def != ir.None && f.ins[def].Dst.Buf >= ir.FirstScratch && d.uses[def] == 1
}

// forwardSource lets use read, or be, what def would have put into scratch.
func forwardSource(f *fusion, d *defUse, def, use int32) bool {
	if !f.dies(d, def) {
		return false
	}
	x, u := &f.ins[def], &f.ins[use]
	switch {
	case x.Kind == ir.Copy && d.skips[use] && !overlaps(u, x.Src):
		u.Src = x.Src
		return true
	case x.Kind == ir.Recv && u.Kind == ir.Copy && f.mayDelay(x, u, use):
		f.receiveAt(x, use, ir.Recv, ir.NoPlace)
		return true
	case x.Kind == ir.Recv && u.Kind == ir.Reduce && f.recvReduce() && f.mayDelay(x, u, use):
		f.receiveAt(x, use, ir.RecvReduceCopy, u.Dst)
		return true
	}
	return false
}

// forwardDest handles a reduce onto what was just received.
func forwardDest(f *fusion, d *defUse, def, use int32) bool {
	x, u := &f.ins[def], &f.ins[use]
	if x.Kind != ir.Recv || u.Kind != ir.Reduce || !f.recvReduce() || !f.mayDelay(x, u, use) {
		return false
	}
	f.receiveAt(x, use, ir.RecvReduceCopy, u.Src)
	return true
}

// overlaps reports whether reading p instead would make u read what it writes.
func overlaps(u *ir.Instr, p ir.Place) bool {
	return u.Kind.WritesDst() && u.Dst.Buf == p.Buf && u.Dst.Index < p.Index+u.Count && p.Index < u.Dst.Index+u.Count
}

// mayDelay reports whether receive x can run where u stands: not taken back
// before, and in the manual policy on the same thread block.
func (f *fusion) mayDelay(x, u *ir.Instr, use int32) bool {
	return !f.taken.delay[use] && (f.base.Policy != ir.Manual || x.TB == u.TB)
}

// receiveAt puts receive x in the place of the local instruction at slot use.
func (f *fusion) receiveAt(x *ir.Instr, use int32, kind ir.StepKind, src ir.Place) {
	u := &f.ins[use]
	u.Kind, u.Src = kind, src
	u.RecvFrom, u.Chan, u.TB, u.Instance = x.RecvFrom, x.Chan, x.TB, x.Instance
	f.ins[x.RecvFrom].SendTo = ir.InstrID(use)
}

// finish squeezes out what was dropped and renumbers.
func (f *fusion) finish() {
	number := make([]ir.InstrID, len(f.ins))
	out := &ir.InstrDAG{Spec: f.base.Spec, Instrs: make([]ir.Instr, 0, len(f.ins))}
	f.slotOf = make([]int32, 0, len(f.ins))
	for i := range f.ins {
		number[i] = ir.InstrID(len(out.Instrs))
		if !f.dropped[i] {
			out.Instrs = append(out.Instrs, f.ins[i])
			f.slotOf = append(f.slotOf, int32(i))
		}
	}
	for i := range out.Instrs {
		in := &out.Instrs[i]
		if in.SendTo != ir.None {
			in.SendTo = number[in.SendTo]
		}
		if in.RecvFrom != ir.None {
			in.RecvFrom = number[in.RecvFrom]
		}
	}
	f.fused = out
}
