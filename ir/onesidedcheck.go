package ir

import (
	"fmt"
	"math"
	"slices"
)

// validateOneSided checks the tables of a one-sided program: every operation has
// the shape of its kind and names channels, semaphores and groups that exist.
// Chunks out of bounds and what the operations do together are the checker's
// findings.
func (p *Program) validateOneSided() error {
	o := p.OneSided
	switch {
	case len(o.GPUs) != len(p.GPUs):
		return malformed("program: got the channels of %d GPUs, want %d", len(o.GPUs), len(p.GPUs))
	case o.Packets != (p.Protocol == LL) || p.Protocol > LL:
		return malformed("program: protocol %s and packets %t disagree", p.Protocol, o.Packets)
	case o.ThreadsPerBlock < 1 || o.Alignment < 1:
		return malformed("program: got %d threads a block and an alignment of %d bytes, want at least 1",
			o.ThreadsPerBlock, o.Alignment)
	case p.Transport != Transport{} || len(p.Deps) > 0:
		return malformed("program: a one-sided program has no connections with slots and no waits between steps")
	case max(len(o.Ops), len(o.Operands), len(o.Refs)) > math.MaxInt32:
		return malformed("program: it has too many operations")
	}
	for i := range o.Groups {
		if err := p.validateGroup(&o.Groups[i]); err != nil {
			return malformed("program: group %d: %w", i, err)
		}
	}
	if err := p.validateChannels(); err != nil {
		return err
	}
	at := int32(0)
	for g := range o.GPUs {
		if len(p.GPUs[g].TBs) > 0 {
			return malformed("program: gpu %d has two-sided thread blocks", g)
		}
		for b := range o.GPUs[g].Blocks {
			if err := p.validateBlock(Rank(g), o.GPUs[g].Blocks[b], &at); err != nil {
				return malformed("program: gpu %d tb %d %w", g, b, err)
			}
		}
	}
	if int(at) != len(o.Ops) {
		return malformed("program: %d of %d operations belong to no thread block", len(o.Ops)-int(at), len(o.Ops))
	}
	return nil
}

func (p *Program) validateGroup(g *SwitchGroup) error {
	if g.Buf < Input || g.Buf > FirstScratch {
		return fmt.Errorf("buffer %d is none of input, output and scratch", g.Buf)
	}
	if len(g.Ranks) == 0 {
		return fmt.Errorf("it has no ranks")
	}
	for i, r := range g.Ranks {
		if r < 0 || int32(r) >= p.Ranks() || i > 0 && r <= g.Ranks[i-1] {
			return fmt.Errorf("ranks %v are not ascending ranks of %d", g.Ranks, p.Ranks())
		}
	}
	return nil
}

func (p *Program) validateChannels() error {
	paired := OneSided{GPUs: make([]OneSidedGPU, len(p.GPUs))}
	for g := range p.OneSided.GPUs {
		paired.GPUs[g].Channels = slices.Clone(p.OneSided.GPUs[g].Channels)
	}
	paired.PairChannels()
	for g := range p.OneSided.GPUs {
		gpu := &p.OneSided.GPUs[g]
		for c, ch := range gpu.Channels {
			if ch.Kind != ChannelMemory && ch.Kind != ChannelPort {
				return malformed("program: gpu %d channel %d is of kind %s, want memory or port", g, c, ch.Kind)
			}
			if ch.Peer < 0 || int32(ch.Peer) >= p.Ranks() || int(ch.Peer) == g {
				return malformed("program: gpu %d channel %d goes to rank %d, want another one of %d", g, c, ch.Peer, p.Ranks())
			}
			if want := paired.GPUs[g].Channels[c].Pair; ch.Pair != want {
				return malformed("program: gpu %d channel %d is paired with channel %d of rank %d, want %d", g, c, ch.Pair, ch.Peer, want)
			}
		}
		for s, v := range gpu.Semaphores {
			if v < 0 {
				return malformed("program: gpu %d semaphore %d starts at %d", g, s, v)
			}
		}
	}
	return nil
}

// validateBlock checks a block whose operations, and the bodies of its
// pipelines, start at *at, and moves *at past them.
func (p *Program) validateBlock(rank Rank, s Span, at *int32) error {
	o := p.OneSided
	if s.Start != *at || s.End < s.Start || int(s.End) > len(o.Ops) {
		return fmt.Errorf("has operations %d to %d, want them to start at %d", s.Start, s.End, *at)
	}
	*at = s.End
	for i := s.Start; i < s.End; i++ {
		op := &o.Ops[i]
		if err := p.ValidateOp(rank, op); err != nil {
			return fmt.Errorf("operation %d: %w", i-s.Start, err)
		}
		if op.Kind != OpPipeline {
			continue
		}
		if op.Body.Start != *at || op.Body.End < op.Body.Start || int(op.Body.End) > len(o.Ops) {
			return fmt.Errorf("operation %d: its body is operations %d to %d, want them to start at %d",
				i-s.Start, op.Body.Start, op.Body.End, *at)
		}
		*at = op.Body.End
		for j := op.Body.Start; j < op.Body.End; j++ {
			inner := &o.Ops[j]
			if inner.Kind == OpPipeline {
				return fmt.Errorf("operation %d: a pipeline within a pipeline", i-s.Start)
			}
			if err := p.ValidateOp(rank, inner); err != nil {
				return fmt.Errorf("operation %d: operation %d: %w", i-s.Start, j-op.Body.Start, err)
			}
		}
	}
	return nil
}

// ValidateOp checks one operation of rank in a one-sided program whose
// channels, semaphores and groups are complete: it has the shape of its kind.
func (p *Program) ValidateOp(rank Rank, op *Op) error {
	o := p.OneSided
	if int(op.Kind) >= len(opShapes) || op.Via > ChannelSwitch || op.Reduce > ReduceProd {
		return fmt.Errorf("kind %d, channel %d or operator %d is unknown", op.Kind, op.Via, op.Reduce)
	}
	shape := &opShapes[op.Kind]
	for _, t := range [...]struct {
		span Span
		n    int
	}{{op.Src, len(o.Operands)}, {op.Dst, len(o.Operands)}, {op.Refs, len(o.Refs)}} {
		if t.span.Start < 0 || t.span.End < t.span.Start || int(t.span.End) > t.n {
			return fmt.Errorf("%s: entries %d to %d are not within %d", op.Kind, t.span.Start, t.span.End, t.n)
		}
	}
	via := op.Via == ChannelNone
	if shape.via != nil {
		via = slices.Contains(shape.via, op.Via)
	}
	switch {
	case !via:
		return fmt.Errorf("%s: got channel %s", op.Kind, op.Via)
	case op.Reduce != ReduceByRun && !op.Kind.Reduces():
		return fmt.Errorf("%s: it reduces nothing, got operator %s", op.Kind, op.Reduce)
	case op.Parts < 1 || op.Part < 0 || op.Part >= op.Parts || op.Kind == OpBarrier && op.Part != 0:
		return fmt.Errorf("%s: got part %d of %d", op.Kind, op.Part, op.Parts)
	case op.Kind != OpPipeline && (op.Body != Span{} || op.UnitBytes != 0 || op.UnitChunks != 0):
		return fmt.Errorf("%s: it is no pipeline, and has a body or a unit", op.Kind)
	case op.Kind == OpPipeline && (op.UnitBytes < 1 || op.UnitChunks < 1):
		return fmt.Errorf("pipeline: got a unit of %d bytes and %d chunks, want at least 1", op.UnitBytes, op.UnitChunks)
	}
	if err := p.validateOperands(rank, op); err != nil {
		return fmt.Errorf("%s: %w", op.Kind, err)
	}
	if err := p.validateRefs(rank, op, shape.refs); err != nil {
		return fmt.Errorf("%s: %w", op.Kind, err)
	}
	return nil
}

func (p *Program) validateOperands(rank Rank, op *Op) error {
	src, dst := p.OneSided.Sources(op), p.OneSided.Destinations(op)
	for side, list := range [...][]Operand{src, dst} {
		least, most := op.Kind.Operands(side == 1)
		if len(list) < least || (most > 0 || least == 0) && len(list) > most {
			return fmt.Errorf("got %d %s", len(list), sideNames[side])
		}
		for i := range list {
			where, packets := op.Kind.Operand(op.Via, side == 1, i)
			if err := p.validateOperand(rank, &list[i], where, packets); err != nil {
				return fmt.Errorf("%s %d: %w", sideNames[side], i, err)
			}
		}
	}
	if op.Kind.Pairs() && len(src) != len(dst) {
		return fmt.Errorf("got %d sources and %d destinations, want as many", len(src), len(dst))
	}
	for i := range dst {
		from := 0
		if op.Kind.Pairs() {
			from = i
		}
		if dst[i].Size != src[from].Size {
			return fmt.Errorf("got sizes %d and %d, want the same", src[from].Size, dst[i].Size)
		}
	}
	for i := range src {
		if !op.Kind.Pairs() && src[i].Size != src[0].Size {
			return fmt.Errorf("got sizes %d and %d, want the same", src[0].Size, src[i].Size)
		}
	}
	return nil
}

var sideNames = [...]string{"sources", "destinations"}

func (p *Program) validateOperand(rank Rank, a *Operand, where Where, packets bool) error {
	switch {
	case a.Buf < Input || a.Buf > FirstScratch:
		return fmt.Errorf("buffer %d is none of input, output and scratch", a.Buf)
	case a.Index < 0 || a.Size < 1:
		return fmt.Errorf("got index %d and size %d, want at least 0 and 1", a.Index, a.Size)
	case a.Packets != packets:
		return fmt.Errorf("got packets %t, want %t", a.Packets, packets)
	case packets && a.Buf != FirstScratch:
		return fmt.Errorf("packets are in scratch only")
	case packets && !p.OneSided.Packets:
		return fmt.Errorf("packets need protocol LL")
	}
	if where == WhereGroup {
		if a.Group < 0 || int(a.Group) >= len(p.OneSided.Groups) || a.Rank != None {
			return fmt.Errorf("got group %d and rank %d, want one of %d groups and no rank", a.Group, a.Rank, len(p.OneSided.Groups))
		}
		g := &p.OneSided.Groups[a.Group]
		if _, member := slices.BinarySearch(g.Ranks, rank); !member || g.Buf != a.Buf {
			return fmt.Errorf("group %d is not one of rank %d with this buffer", a.Group, rank)
		}
		return nil
	}
	if a.Group != None || a.Rank < 0 || int32(a.Rank) >= p.Ranks() || where == WhereLocal && a.Rank != rank {
		return fmt.Errorf("got group %d and rank %d, want a %s rank", a.Group, a.Rank, where)
	}
	return nil
}

func (p *Program) validateRefs(rank Rank, op *Op, use refUse) error {
	gpu, refs := &p.OneSided.GPUs[rank], p.OneSided.RefsOf(op)
	dst := p.OneSided.Destinations(op)
	least, most, n := 0, 0, 0
	switch {
	case use == refBarrier:
		least, most, n = 1, 1, math.MaxInt32
	case use == refSemaphores:
		least, most, n = 1, math.MaxInt32, len(gpu.Semaphores)
	case use == refChannels:
		least, most, n = 1, math.MaxInt32, len(gpu.Channels)
	case use == refPorts && op.Via == ChannelPort:
		least, most, n = len(dst), len(dst), len(gpu.Channels)
	}
	if len(refs) < least || len(refs) > most {
		return fmt.Errorf("got %d channels, semaphores or barriers", len(refs))
	}
	for i, r := range refs {
		if r < 0 || int(r) >= n {
			return fmt.Errorf("there is no channel, semaphore or barrier %d", r)
		}
		if use != refChannels && use != refPorts {
			continue
		}
		if ch := gpu.Channels[r]; ch.Kind != op.Via {
			return fmt.Errorf("channel %d is a %s channel", r, ch.Kind)
		} else if use == refPorts && ch.Peer != dst[i].Rank {
			return fmt.Errorf("channel %d goes to rank %d, the destination is on rank %d", r, ch.Peer, dst[i].Rank)
		}
	}
	return nil
}
