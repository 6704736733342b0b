package compiler

import (
	"context"

	"github.com/mscclsh/mscclsh/ir"
)

// oneDataSync turns what the script says about meetings around signals, waits,
// flushes and semaphores into nops: one between two operations is enough, and none
// is needed next to a barrier. At the border of a loop the meeting within the loop
// counts for both sides.
func oneDataSync(_ context.Context, s *oneState) error {
	for r := range s.ranks {
		for b := range s.ranks[r] {
			s.ranks[r][b] = dataSync(s.ranks[r][b])
		}
	}
	return nil
}

// nopFor is a meeting next to node n.
func nopFor(n *oneNode) oneNode {
	return oneNode{kind: ir.TraceOf(ir.OpSync), parts: 1, loop: n.loop, pos: n.pos, ours: n.ours, first: n.first, last: n.last, after: ir.None}
}

func isNop(n *oneNode) bool { return n.kind == ir.TraceOf(ir.OpSync) }

// meets reports whether the threads of a block meet in an operation.
func meets(n *oneNode) bool { return isNop(n) || n.kind == ir.TraceOf(ir.OpBarrier) }

func dataSync(list oneBlock) oneBlock {
	if !syncs(list) {
		return list
	}
	out := make(oneBlock, 0, len(list)+len(list)/2)
	for i := range list {
		n := list[i]
		before := n.sync&ir.SyncBefore != 0 || isNop(&n)
		after := n.sync&ir.SyncAfter != 0
		n.sync = ir.SyncNone
		if before {
			out = wantNop(out, &n)
		}
		if isNop(&n) {
			continue
		}
		if n.kind == ir.TraceOf(ir.OpBarrier) && len(out) > 0 && isNop(&out[len(out)-1]) && out[len(out)-1].loop == n.loop {
			out = out[:len(out)-1]
		}
		out = append(out, n)
		if after {
			out = wantNop(out, &n)
		}
	}
	return out
}

// syncs reports whether there is anything to do.
func syncs(list oneBlock) bool {
	for i := range list {
		if list[i].sync != ir.SyncNone || meets(&list[i]) {
			return true
		}
	}
	return false
}

// wantNop makes the threads meet at the end of out, in the loop of n.
func wantNop(out oneBlock, n *oneNode) oneBlock {
	if len(out) > 0 && meets(&out[len(out)-1]) {
		last := &out[len(out)-1]
		switch {
		case last.loop == n.loop || n.loop == ir.None:
			return out
		case isNop(last) && last.loop == ir.None: // the loop begins with one
			out = out[:len(out)-1]
		}
	}
	return append(out, nopFor(n))
}
