package compiler

import (
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// oneDepend finds pairs of operations of one rank that have to keep the order of the
// script: one writes what the other touches; or, where the compiler chooses thread
// blocks, one of them is a link in the chain of signals and packets that orders
// conflicting operations of different ranks (see onePublish).
//
// Only neighbors at each location are paired, a write with the reads since the last
// one or with that one: the order of all others follows. What waits for packets needs no
// order with what writes them.
func oneDepend(ctx context.Context, s *oneState) error {
	t := s.trace
	s.ours = make([]bool, len(t.Ops))
	free := false
	for i := range t.Ops {
		op := &t.Ops[i]
		s.ours[i] = op.Blocks.Len() == 0 && op.Kind != ir.TraceOf(ir.OpBarrier)
		free = free || s.ours[i]
	}
	if !free && (!t.AutoSync || !s.severalBlocks() && !s.carries()) {
		return nil
	}
	s.conflicts(free)
	s.shifted = s.shiftedLoops()
	if slices.Contains(s.shifted, true) {
		s.turns(s.shifted)
	}
	if free {
		return onePublish(ctx, s)
	}
	return nil
}

// severalBlocks reports whether some rank has more than one thread block.
func (s *oneState) severalBlocks() bool {
	first := filled(len(s.trace.GPUs), ir.None)
	for i := range s.trace.Ops {
		op := &s.trace.Ops[i]
		for _, b := range s.trace.BlocksOf(op) {
			if first[op.Rank] == ir.None {
				first[op.Rank] = b
			} else if first[op.Rank] != b {
				return true
			}
		}
	}
	return false
}

// opsOfRanks lists each rank's operations in order.
func opsOfRanks(t *ir.OneTrace) [][]int32 {
	n := make([]int, len(t.GPUs))
	for i := range t.Ops {
		n[t.Ops[i].Rank]++
	}
	list := make([][]int32, len(t.GPUs))
	for r := range list {
		list[r] = make([]int32, 0, n[r])
	}
	for i := range t.Ops {
		r := t.Ops[i].Rank
		list[r] = append(list[r], int32(i))
	}
	return list
}

// oneCells is who touched each location last: the last write, and the reads since.
type oneCells struct {
	stamp  []int32 // of a location: the user that the rest is of
	writer []int32 // an operation, or None
	packed []bool  // the write was of packets
	reader []int32 // a list in reads, or None
	reads  []readLink
	seen   []int32 // by operation: the one that it was last paired with, plus 1
}

type readLink struct{ op, next int32 }

func newOneCells(locations int32, ops int) *oneCells {
	return &oneCells{stamp: make([]int32, locations), writer: make([]int32, locations), packed: make([]bool, locations),
		reader: make([]int32, locations), seen: make([]int32, ops)}
}

// touch makes access x of operation v and calls pair for the operations that it
// has to come after, once each; raw tells that a value flows, war that the earlier one only
// read. user separates the histories of several users of the cells.
func (c *oneCells) touch(user, v int32, x *oneAccess, pair func(a int32, war bool)) {
	meet := func(a int32, war bool) {
		if a != v && c.seen[a] != v+1 {
			c.seen[a] = v + 1
			pair(a, war)
		}
	}
	for l := x.lo; l < x.hi; l++ {
		if c.stamp[l] != user {
			c.stamp[l], c.writer[l], c.packed[l], c.reader[l] = user, ir.None, false, ir.None
		}
		if !x.write {
			if w := c.writer[l]; w != ir.None && !(c.packed[l] && x.waits) {
				meet(w, false)
			}
			if n := c.reader[l]; n == ir.None || c.reads[n].op != v {
				c.reads = append(c.reads, readLink{v, n})
				c.reader[l] = int32(len(c.reads) - 1)
			}
			continue
		}
		chained := false
		for n := c.reader[l]; n != ir.None; n = c.reads[n].next {
			if a := c.reads[n].op; a != v {
				meet(a, true)
				chained = true
			}
		}
		if w := c.writer[l]; w != ir.None && !chained {
			meet(w, false)
		}
		c.writer[l], c.packed[l], c.reader[l] = v, x.packets, ir.None
	}
}

// conflicts pairs each rank's operations that touch one location. Where all thread
// blocks are given, only pairs of different ones matter, and of what ports still carry.
func (s *oneState) conflicts(free bool) {
	t := s.trace
	cells := newOneCells(s.space.size, len(t.Ops))
	s.flushes = map[int32]int32{}
	var list []oneAccess
	for r, ops := range opsOfRanks(t) {
		cells.reads = cells.reads[:0]
		loose := map[int32][]int32{}   // of a port channel: puts since its last flush
		queues := map[oneQueue]int32{} // the last operation of each
		for _, v := range ops {
			op := &t.Ops[v]
			list = s.space.accesses(list[:0], op.Kind, t.Sources(op), t.Destinations(op))
			for i := range list {
				cells.touch(int32(r)+1, v, &list[i], func(a int32, _ bool) {
					if free || s.apart(a, v) || oneCarried(&t.Ops[a]) {
						s.pairs = append(s.pairs, onePair{a: a, b: v})
					}
					if f, ok := s.flushes[a]; ok {
						s.pairs = append(s.pairs, onePair{a: f, b: v, chain: true})
					}
				})
			}
			if key := queueOf(op); free && key != noQueue {
				if a, ok := queues[key]; ok && (s.ours[a] || s.ours[v]) {
					s.pairs = append(s.pairs, onePair{a: a, b: v, chain: true, queue: true})
				}
				queues[key] = v
			}
			switch {
			case !free || op.Via != ir.ChannelPort:
			case op.Kind == ir.TraceOf(ir.OpFlush):
				for _, a := range loose[op.Ref] {
					s.pairs = append(s.pairs, onePair{a: a, b: v, chain: true})
					s.flushes[a] = v
				}
				loose[op.Ref] = nil
			case oneMoves(op) && op.Kind != ir.TraceOf(ir.OpPutSignalFlush):
				loose[op.Ref] = append(loose[op.Ref], v)
			}
		}
	}
}

// oneQueue is a channel or semaphore of a rank, and what is done to it. What counts up,
// and what takes, has to keep its order: the first wait is for the first signal.
type oneQueue struct {
	kind ir.OpKind
	ref  int32
}

var noQueue = oneQueue{ref: ir.None}

func queueOf(op *ir.TraceOp) oneQueue {
	switch {
	case oneSignals(op.Kind):
		return oneQueue{ir.OpSignal, op.Ref}
	case oneWaits(op.Kind):
		return oneQueue{ir.OpWait, op.Ref}
	case op.Kind == ir.TraceOf(ir.OpSemaphoreAcquire), op.Kind == ir.TraceOf(ir.OpSemaphoreRelease):
		return oneQueue{ir.OpKind(op.Kind), op.Ref}
	}
	return noQueue
}

// apart reports whether operations a and b, with thread blocks given, can touch one
// location in different thread blocks.
func (s *oneState) apart(a, b int32) bool {
	t := s.trace
	x, y := &t.Ops[a], &t.Ops[b]
	if !slices.Equal(t.BlocksOf(x), t.BlocksOf(y)) {
		return true
	}
	if x.Blocks.Len() < 2 {
		return false
	}
	// The slices of a group are the same where ranges are.
	first := s.space.accesses(nil, x.Kind, t.Sources(x), t.Destinations(x))
	for _, p := range s.space.accesses(nil, y.Kind, t.Sources(y), t.Destinations(y)) {
		for i := range first {
			q := &first[i]
			if p.overlaps(q) && (p.write || q.write) && (p.lo != q.lo || p.hi != q.hi || p.packets != q.packets) {
				return true
			}
		}
	}
	return false
}
