package compiler

import (
	"context"

	"github.com/mscclsh/mscclsh/ir"
)

// oneNode is an operation of one thread block. It stands for operations first to last
// of the trace. Nodes of one loop stand together.
type oneNode struct {
	kind        ir.TraceKind
	via         ir.ChannelKind
	reduce      ir.Reduction
	sync        ir.DataSync
	ours        bool
	met         bool // fuse: the threads meet before the operation that it goes on with
	part, parts int32
	loop        int32
	pos         ir.PosID
	src, dst    []ir.Operand // shared with the trace until something is added
	refs        []int32
	first, last int32
	after       int32 // a meeting has to be between the end of this one of the trace and the node, or None
}

// oneBlock is what one thread block does, in order.
type oneBlock []oneNode

// oneGather lists the operations of each thread block. Blocks that no operation names
// but that others' numbers skip are empty.
func oneGather(_ context.Context, s *oneState) error {
	t := s.trace
	s.every = nil
	counts := make([][]int32, len(t.GPUs))
	visit(s, func(v int32, op *ir.TraceOp, _, _, b int32) {
		for int(b) >= len(counts[op.Rank]) {
			counts[op.Rank] = append(counts[op.Rank], 0)
		}
		counts[op.Rank][b]++
	})
	s.ranks = make([][]oneBlock, len(t.GPUs))
	for r := range s.ranks {
		s.ranks[r] = make([]oneBlock, len(counts[r]))
		for b, n := range counts[r] {
			s.ranks[r][b] = make(oneBlock, 0, n)
		}
	}
	numbers := newBarrierNumbers(len(t.GPUs))
	refs := make([]int32, 0, len(t.Ops))
	visit(s, func(v int32, op *ir.TraceOp, part, parts, b int32) {
		n := oneNode{kind: op.Kind, via: op.Via, reduce: op.Reduce, sync: op.Sync, ours: s.ours[v], part: part, parts: parts,
			loop: op.Loop, pos: op.Pos, src: t.Operands[op.Src.Start:op.Src.End:op.Src.End],
			dst: t.Operands[op.Dst.Start:op.Dst.End:op.Dst.End], first: v, last: v, after: ir.None}
		if a, ok := s.meets[v]; ok {
			n.after = a
		}
		switch {
		case op.Kind == ir.TraceOf(ir.OpBarrier) && parts == 1:
			n.kind = ir.TraceOf(ir.OpSync)
		case op.Kind == ir.TraceOf(ir.OpBarrier):
			refs = append(refs, numbers.of(op.Rank, s.blocksOf(op)))
			n.part = 0
		case named(op):
			refs = append(refs, op.Ref)
		default:
			s.ranks[op.Rank][b] = s.cutTerms(s.ranks[op.Rank][b], &n)
			return
		}
		if n.kind != ir.TraceOf(ir.OpSync) {
			n.refs = refs[len(refs)-1 : len(refs) : len(refs)]
		}
		s.ranks[op.Rank][b] = append(s.ranks[op.Rank][b], n)
	})
	return nil
}

// cutTerms appends n to list: where it adds up more than an operation of MSCCL++'s
// executor has room for, as several that go on with the sum so far.
func (s *oneState) cutTerms(list oneBlock, n *oneNode) oneBlock {
	switch ir.OpKind(n.kind) {
	case ir.OpReduceLocal, ir.OpReducePackets, ir.OpReadReduce:
		f := fuser{space: s.space}
		for s.limited && len(n.src) > planOperands && !f.meetIn(n.src[1:], n.dst, false) {
			first := *n
			first.src = n.src[:planOperands:planOperands]
			list = append(list, first)
			n.src = append([]ir.Operand{n.dst[0]}, n.src[planOperands:]...)
			n.ours = true
		}
	}
	return append(list, *n)
}

// named reports whether the executor's operation names its channel or semaphore: not
// where data goes straight to a peer's memory.
func named(op *ir.TraceOp) bool {
	switch {
	case op.Ref == ir.None || op.Via == ir.ChannelSwitch:
		return false
	case op.Via == ir.ChannelMemory:
		return !oneMoves(op)
	}
	return true
}

// blocksOf are the thread blocks of op, all of its rank's for a barrier that names none.
func (s *oneState) blocksOf(op *ir.TraceOp) []int32 {
	if list := s.trace.BlocksOf(op); len(list) > 0 {
		return list
	}
	return s.allBlocks(op.Rank)
}

// visit calls do for every operation and each of its thread blocks.
func visit(s *oneState, do func(v int32, op *ir.TraceOp, part, parts, block int32)) {
	for v := range s.trace.Ops {
		op := &s.trace.Ops[v]
		blocks := s.blocksOf(op)
		for i, b := range blocks {
			do(int32(v), op, int32(i), int32(len(blocks)), b)
		}
	}
}

// barrierNumbers numbers each rank's barriers by the thread blocks that meet there, in
// the order of their first use.
type barrierNumbers struct {
	lists [][][]int32
}

func newBarrierNumbers(ranks int) *barrierNumbers {
	return &barrierNumbers{lists: make([][][]int32, ranks)}
}

func (n *barrierNumbers) of(r ir.Rank, blocks []int32) int32 {
	for i, list := range n.lists[r] {
		if len(list) == len(blocks) && &list[0] == &blocks[0] || equalBlocks(list, blocks) {
			return int32(i)
		}
	}
	n.lists[r] = append(n.lists[r], blocks)
	return int32(len(n.lists[r]) - 1)
}

// equalBlocks reports whether two barriers are of the same thread blocks, in whatever
// order they are named.
func equalBlocks(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	in := map[int32]bool{}
	for _, x := range a {
		in[x] = true
	}
	for _, x := range b {
		if !in[x] {
			return false
		}
	}
	return true
}
