package compiler

import (
	"context"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// splitCounts cuts operations whose count the target can't hold, and, once the
// order pass has asked for it, those that need more slots than a connection has.
// Both ends of a message are cut alike because the operation is.
func splitCounts(_ context.Context, s *state) error {
	limit := s.limits.Count
	if s.taken.split {
		if fit := s.easyMessages() * s.regime; limit == 0 || fit < limit {
			limit = fit
		}
	}
	if limit == 0 {
		return nil
	}
	var first *ir.ChunkOp
	cut := 0
	d := s.chunks
	for i := range d.Ops {
		if s.tooLong(&d.Ops[i], limit) {
			cut++
			if first == nil {
				first = &d.Ops[i]
			}
		}
	}
	if cut == 0 {
		return nil
	}
	out := &ir.ChunkDAG{Spec: d.Spec, Ops: make([]ir.ChunkOp, 0, len(d.Ops)+cut)}
	for i := range d.Ops {
		op := d.Ops[i]
		if !s.tooLong(&op, limit) {
			out.Ops = append(out.Ops, op)
			continue
		}
		for op.Count > 0 {
			p := op
			p.Count = min(op.Count, limit)
			out.Ops = append(out.Ops, p)
			op.Src.Index += p.Count
			op.Dst.Index += p.Count
			op.Count -= p.Count
		}
	}
	s.note(&diag.Message{Pos: d.Pos(first.Pos), Severity: diag.Info, Code: "count-split",
		Text: plural(cut, "operation") + " cut into runs of at most " + plural(int(limit), "chunk") + ", which is what a step can hold"})
	s.chunks = out
	s.stats.Replicated = len(out.Ops)
	return nil
}

// easyMessages is half the slots: two steps can then be in flight on a
// connection, so that a chain of fused steps keeps moving.
func (s *state) easyMessages() int32 { return max(s.transport.Slots/2, 1) }

// tooLong reports whether the operation must be cut to limit: anything over the
// target's own limit, and for slots only what crosses ranks.
func (s *state) tooLong(op *ir.ChunkOp, limit int32) bool {
	if op.Count <= limit {
		return false
	}
	return op.Remote() || s.limits.Count > 0 && op.Count > s.limits.Count
}
