package compiler

import (
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// fuse joins a receive and a send of exactly what it brought (paper, section
// 5.2): r and s become rcs, rrc and s become rrcs, or rrs where the local result
// is never read again. The joined instruction stands at the receive; its send
// moves up to it, which no dependency forbids because a send waits for nothing
// but the value it sends.
//
// All of the range must match: source of the send and destination of the
// receive, slot for slot, and nothing may have touched a slot in between.
// Unlike msccl-tools, the place on the peer plays no part.
//
// Of several sends of one value the one with the longest way to go is joined;
// among equals the one back to where the value came from, because a pair of ranks
// can then keep one thread block at each end. For native targets a sum with several
// sends stays apart from all of them: see blockMaker.
func fuse(_ context.Context, s *state) error {
	if !s.base.Fusion || s.taken.allJoin || !s.limits.FusedSteps {
		return nil
	}
	f := &fusion{s, slices.Clone(s.fused.Instrs), make([]bool, len(s.fused.Instrs))}
	d := defUses(f.base.Spec, f.ins, f.dropped)
	best, sends := filled(len(f.ins), ir.None), make([]int32, len(f.ins))
	var togo []int32
	for y := range int32(len(f.ins)) {
		x := d.srcDef[y]
		if x == ir.None || !f.joinable(x, y) {
			continue
		}
		sends[x]++
		if best[x] == ir.None {
			best[x] = y
			continue
		}
		if togo == nil {
			togo = wayToGo(s.fused, s.fused.Edges())
		}
		if togo[y] > togo[best[x]] || togo[y] == togo[best[x]] && f.back(x, y) && !f.back(x, best[x]) {
			best[x] = y
		}
	}
	for x := range int32(len(f.ins)) {
		if best[x] != ir.None && !(f.native() && sends[x] > 1 && f.ins[x].Kind.Reduces()) {
			f.join(d, x, best[x])
		}
	}
	slots := s.slotOf
	f.finishOver(slots)
	return nil
}

func (f *fusion) joinable(x, y int32) bool {
	r, w := &f.ins[x], &f.ins[y]
	switch {
	case w.Kind != ir.Send, r.Kind != ir.Recv && r.Kind != ir.RecvReduceCopy:
		return false
	case f.taken.send[f.slotOf[x]], r.Instance != w.Instance:
		return false
	case r.Chan != w.Chan && r.Chan != ir.None && w.Chan != ir.None:
		return false
	}
	if f.direct() && !f.movesAtOnce(r, w) {
		return false
	}
	return f.base.Policy != ir.Manual || r.TB == w.TB
}

// movesAtOnce reports whether receive r joined with send w would be one move of
// protocol Direct: read what is sent to r, add, store where w's receiver wants it.
// Where nothing is added, or the receiver adds in its turn, joining gains nothing.
func (f *fusion) movesAtOnce(r, w *ir.Instr) bool {
	return r.Kind == ir.RecvReduceCopy && f.ins[w.SendTo].Kind == ir.Recv
}

// back reports whether send y goes to the rank that receive x comes from.
func (f *fusion) back(x, y int32) bool {
	return f.ins[f.ins[y].SendTo].Rank == f.ins[f.ins[x].RecvFrom].Rank
}

func (f *fusion) join(d *defUse, x, y int32) {
	r, w := &f.ins[x], &f.ins[y]
	switch {
	case r.Kind == ir.Recv:
		r.Kind = ir.RecvCopySend
	case d.uses[x] == 1 && !d.live[x] && !f.addsOn(d, x):
		r.Kind = ir.RecvReduceSend
		r.Dst = ir.NoPlace
	default:
		r.Kind = ir.RecvReduceCopySend
	}
	if r.Chan == ir.None {
		r.Chan = w.Chan
	}
	r.SendTo = w.SendTo
	f.ins[w.SendTo].RecvFrom = ir.InstrID(x)
	f.dropped[y] = true
}

// addsOn reports whether receive x adds to what another receive has just left: in
// native programs one pass does both, if x leaves the sum where it was.
func (f *fusion) addsOn(d *defUse, x int32) bool {
	from := d.srcDef[x]
	if !f.native() || from == ir.None {
		return false
	}
	k := f.ins[from].Kind
	return k == ir.RecvReduceCopy || k == ir.Recv && !f.direct()
}

// finishOver is finish for instructions that are themselves what is left of
// the lowered ones.
func (f *fusion) finishOver(slots []int32) {
	f.finish()
	for i, at := range f.slotOf {
		f.slotOf[i] = slots[at]
	}
}

// wayToGo is the number of instructions on the longest path from each
// instruction to the end, itself not counted.
func wayToGo(d *ir.InstrDAG, e *ir.Edges) []int32 {
	togo := make([]int32, len(d.Instrs))
	for v := int32(len(togo)) - 1; v >= 0; v-- {
		for _, u := range e.Of(v) {
			togo[u] = max(togo[u], togo[v]+1)
		}
	}
	return togo
}
