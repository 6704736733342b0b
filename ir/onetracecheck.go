package ir

import (
	"fmt"
	"math"
	"slices"
)

// MaxThreadBlocks bounds the thread block ids that a OneTrace can name.
const MaxThreadBlocks = 1 << 16

// groupReduceShape is what TraceGroupReduce has, which is no executor's.
var groupReduceShape = opShape{via: viaSwitch, src: group1, dst: local1}

func (k TraceKind) shape() *opShape {
	if k == TraceGroupReduce {
		return &groupReduceShape
	}
	if int(k) < len(opShapes) && OpKind(k) != OpPipeline {
		return &opShapes[k]
	}
	return nil
}

// Vias are the kinds of channel that the operation can use; none for a local
// one. The slice is shared: don't change it.
func (k TraceKind) Vias() []ChannelKind {
	if s := k.shape(); s != nil {
		return s.via
	}
	return nil
}

// Reduces reports whether the operation combines values.
func (k TraceKind) Reduces() bool {
	op, ok := k.Op()
	return k == TraceGroupReduce || ok && op.Reduces()
}

// Syncs reports whether the operation says where the threads of its block meet
// around it.
func (k TraceKind) Syncs() bool {
	switch OpKind(k) {
	case OpSignal, OpWait, OpRelaxedSignal, OpRelaxedWait, OpFlush, OpSemaphoreAcquire, OpSemaphoreRelease:
		return true
	}
	return false
}

// Chunks is how many chunks buffer b of rank r has in t.
func (t *OneTrace) Chunks(r Rank, b BufferID) int32 {
	switch b {
	case Input:
		return t.Coll.InputChunks(r)
	case Output:
		return t.Coll.OutputChunks(r)
	case FirstScratch:
		return t.GPUs[r].Scratch
	}
	return 0
}

// Validate reports whether t is well formed: every operation has the shape of
// its kind, works on chunks that exist, and names channels, groups, semaphores
// and loops that exist. Whether they are what the program needs is the checker's
// business.
func (t *OneTrace) Validate() error {
	if err := t.validateHeader(); err != nil {
		return err
	}
	if err := t.validateTables(); err != nil {
		return err
	}
	loop := int32(None)
	for i := range t.Ops {
		op := &t.Ops[i]
		if err := t.validateOp(op); err != nil {
			return malformed("operation %d: %w", i, err)
		}
		if op.Loop != None && op.Loop < loop {
			return malformed("operation %d: loop %d has begun before loop %d", i, op.Loop, loop)
		}
		if op.Loop != None && op.Loop == loop && t.Ops[i-1].Loop != loop {
			return malformed("operation %d: the operations of loop %d don't stand together", i, loop)
		}
		loop = max(loop, op.Loop)
	}
	return nil
}

func (t *OneTrace) validateHeader() error {
	if t.Spec == nil || t.Coll == nil {
		return malformed("a one-sided trace needs a collective")
	}
	if err := t.Spec.validate(false); err != nil {
		return err
	}
	switch {
	case t.Protocol != Simple && t.Protocol != LL:
		return malformed("protocol %s: a one-sided program has Simple or LL", t.Protocol)
	case t.ThreadsPerBlock < 1 || t.Alignment < 1:
		return malformed("got %d threads a block and an alignment of %d bytes, want at least 1", t.ThreadsPerBlock, t.Alignment)
	case t.MinBytes < 0 || t.MaxBytes < 0 || t.MaxBytes > 0 && t.MaxBytes < t.MinBytes:
		return malformed("sizes from %d to %d are no window", t.MinBytes, t.MaxBytes)
	case len(t.GPUs) != int(t.Ranks()):
		return malformed("got %d ranks, want %d", len(t.GPUs), t.Ranks())
	case max(len(t.Ops), len(t.Operands), len(t.Blocks)) > math.MaxInt32:
		return malformed("it has too many operations")
	}
	return nil
}

func (t *OneTrace) validateTables() error {
	for i := range t.Groups {
		g := &t.Groups[i]
		p := Program{Spec: t.Spec}
		if err := p.validateGroup(&g.SwitchGroup); err != nil {
			return malformed("group %d: %w", i, err)
		}
	}
	for i, l := range t.Loops {
		if l.UnitBytes < 1 || l.Chunks < 1 {
			return malformed("loop %d: got a unit of %d bytes and %d chunks, want at least 1", i, l.UnitBytes, l.Chunks)
		}
	}
	chunks := int64(0)
	for g := range t.GPUs {
		gpu := &t.GPUs[g]
		if chunks += int64(gpu.Scratch); gpu.Scratch < 0 || chunks > MaxLocations {
			return malformed("gpu %d: got %d chunks of scratch, %d up to here", g, gpu.Scratch, chunks)
		}
		for c, ch := range gpu.Channels {
			if ch.Kind != ChannelMemory && ch.Kind != ChannelPort || ch.Peer < 0 || int32(ch.Peer) >= t.Ranks() || int(ch.Peer) == g {
				return malformed("gpu %d channel %d: got kind %s and peer %d, want memory or port to another rank of %d",
					g, c, ch.Kind, ch.Peer, t.Ranks())
			}
		}
		for s, sem := range gpu.Semaphores {
			if sem.Initial < 0 {
				return malformed("gpu %d semaphore %d starts at %d", g, s, sem.Initial)
			}
		}
	}
	return nil
}

func (t *OneTrace) validateOp(op *TraceOp) error {
	shape := op.Kind.shape()
	switch {
	case shape == nil || op.Via > ChannelSwitch || op.Reduce > ReduceProd || op.Sync > SyncBoth:
		return fmt.Errorf("kind %d, channel %d, operator %d or sync %d is unknown", op.Kind, op.Via, op.Reduce, op.Sync)
	case op.Rank < 0 || int32(op.Rank) >= t.Ranks():
		return fmt.Errorf("rank %d is not one of %d", op.Rank, t.Ranks())
	case shape.via == nil && op.Via != ChannelNone || shape.via != nil && !slices.Contains(shape.via, op.Via):
		return fmt.Errorf("%s: got channel %s", op.Kind, op.Via)
	case op.Reduce != ReduceByRun && !op.Kind.Reduces():
		return fmt.Errorf("%s: it reduces nothing, got operator %s", op.Kind, op.Reduce)
	case op.Sync != SyncNone && !op.Kind.Syncs():
		return fmt.Errorf("%s: got sync %s, want none", op.Kind, op.Sync)
	case op.Loop != None && (op.Loop < 0 || int(op.Loop) >= len(t.Loops)):
		return fmt.Errorf("there is no loop %d", op.Loop)
	}
	for _, s := range [...]struct {
		span Span
		n    int
	}{{op.Src, len(t.Operands)}, {op.Dst, len(t.Operands)}, {op.Blocks, len(t.Blocks)}} {
		if s.span.Start < 0 || s.span.End < s.span.Start || int(s.span.End) > s.n {
			return fmt.Errorf("%s: entries %d to %d are not within %d", op.Kind, s.span.Start, s.span.End, s.n)
		}
	}
	if err := t.validateBlocks(op); err != nil {
		return fmt.Errorf("%s: %w", op.Kind, err)
	}
	if err := t.validateRef(op, shape); err != nil {
		return fmt.Errorf("%s: %w", op.Kind, err)
	}
	if err := t.validateSides(op, shape); err != nil {
		return fmt.Errorf("%s: %w", op.Kind, err)
	}
	return nil
}

func (t *OneTrace) validateBlocks(op *TraceOp) error {
	blocks := t.BlocksOf(op)
	sorted := blocks
	if len(blocks) > 1 {
		sorted = slices.Sorted(slices.Values(blocks))
	}
	for i, b := range sorted {
		if b < 0 || b >= MaxThreadBlocks {
			return fmt.Errorf("got thread block %d, want 0 to %d", b, MaxThreadBlocks-1)
		}
		if i > 0 && b == sorted[i-1] {
			return fmt.Errorf("thread block %d is named twice", b)
		}
	}
	moves := op.Src.Len() > 0
	if len(blocks) > 1 && !moves && op.Kind != TraceOf(OpBarrier) {
		return fmt.Errorf("got %d thread blocks, want one", len(blocks))
	}
	return nil
}

func (t *OneTrace) validateRef(op *TraceOp, shape *opShape) error {
	gpu := &t.GPUs[op.Rank]
	switch {
	case shape.refs == refSemaphores:
		if op.Ref < 0 || int(op.Ref) >= len(gpu.Semaphores) {
			return fmt.Errorf("there is no semaphore %d", op.Ref)
		}
	case op.Via == ChannelSwitch:
		if op.Ref < 0 || int(op.Ref) >= len(t.Groups) {
			return fmt.Errorf("there is no group %d", op.Ref)
		}
		if !slices.Contains(t.Groups[op.Ref].Ranks, op.Rank) {
			return fmt.Errorf("rank %d is not in group %d", op.Rank, op.Ref)
		}
	case op.Via != ChannelNone:
		if op.Ref < 0 || int(op.Ref) >= len(gpu.Channels) {
			return fmt.Errorf("there is no channel %d", op.Ref)
		}
		if kind := gpu.Channels[op.Ref].Kind; kind != op.Via {
			return fmt.Errorf("channel %d is a %s channel", op.Ref, kind)
		}
	case op.Ref != None:
		return fmt.Errorf("it has no channel, got %d", op.Ref)
	}
	return nil
}

// validateSides checks the operands of op. Of several destinations a traced
// operation has only the first.
func (t *OneTrace) validateSides(op *TraceOp, shape *opShape) error {
	src, dst := t.Sources(op), t.Destinations(op)
	if shape.pairs && len(src) > 1 || len(dst) > 1 {
		return fmt.Errorf("got %d sources and %d destinations, want one move", len(src), len(dst))
	}
	for side, list := range [...][]Operand{src, dst} {
		s := &shape.src
		if side == 1 {
			s = &shape.dst
		}
		if len(list) < s.min || (s.max > 0 || s.min == 0) && len(list) > s.max {
			return fmt.Errorf("got %d %s", len(list), sideNames[side])
		}
		for i := range list {
			at := min(i, len(s.at)-1)
			packets := s.packets[at] || s.packetsByPut && op.Via == ChannelPort
			if err := t.validateOperand(op, &list[i], s.at[at], packets); err != nil {
				return fmt.Errorf("%s %d: %w", sideNames[side], i, err)
			}
			if list[i].Size != src[0].Size {
				return fmt.Errorf("got sizes %d and %d, want the same", src[0].Size, list[i].Size)
			}
		}
	}
	return nil
}

func (t *OneTrace) validateOperand(op *TraceOp, a *Operand, where Where, packets bool) error {
	switch {
	case a.Buf < Input || a.Buf > FirstScratch:
		return fmt.Errorf("buffer %d is none of input, output and scratch", a.Buf)
	case a.Index < 0 || a.Size < 1:
		return fmt.Errorf("got index %d and size %d, want at least 0 and 1", a.Index, a.Size)
	case a.Packets != packets:
		return fmt.Errorf("got packets %t, want %t", a.Packets, packets)
	case packets && (a.Buf != FirstScratch || t.Protocol != LL):
		return fmt.Errorf("packets are in scratch only, and need protocol LL")
	}
	ranks := []Rank{a.Rank}
	if where == WhereGroup {
		if a.Group != op.Ref || a.Rank != None || a.Buf != t.Groups[op.Ref].Buf {
			return fmt.Errorf("got group %d, rank %d and buffer %d, want those of group %d", a.Group, a.Rank, a.Buf, op.Ref)
		}
		ranks = t.Groups[op.Ref].Ranks
	} else if a.Group != None || !t.rankFits(op, a.Rank, where) {
		return fmt.Errorf("got group %d and rank %d, want a %s rank", a.Group, a.Rank, where)
	}
	for _, r := range ranks {
		if n := t.Chunks(r, a.Buf); int64(a.Index)+int64(a.Size) > int64(n) {
			return fmt.Errorf("chunks %d to %d are not within the %d of rank %d", a.Index, int64(a.Index)+int64(a.Size), n, r)
		}
	}
	return nil
}

// rankFits reports whether an operand of that kind may be on rank r: the
// operation's own, or the peer of its channel.
func (t *OneTrace) rankFits(op *TraceOp, r Rank, where Where) bool {
	if where == WhereLocal {
		return r == op.Rank
	}
	return where == WhereRemote && r == t.GPUs[op.Rank].Channels[op.Ref].Peer
}
