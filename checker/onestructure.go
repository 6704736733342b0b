package checker

import (
	"fmt"
	"math"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// opRule is what an operation's operands must look like.
type opRule struct {
	minSrc, minDst int
	pairs          bool // d := s, pair by pair; else every d := op(all s)
	reduces        bool
	blocks         bool // reads packets, waiting for each
}

// rules by ir.OpKind; an operation without sources and destinations has none.
var opRules = [ir.OpPipeline + 1]opRule{
	ir.OpPut:                   {1, 1, true, false, false},
	ir.OpPutSignal:             {1, 1, true, false, false},
	ir.OpPutSignalFlush:        {1, 1, true, false, false},
	ir.OpGet:                   {1, 1, true, false, false},
	ir.OpCopy:                  {1, 1, true, false, false},
	ir.OpReduceLocal:           {1, 1, false, true, false},
	ir.OpReduceSend:            {1, 1, false, true, false},
	ir.OpReadReduce:            {1, 1, false, true, false},
	ir.OpReadReduceSend:        {1, 1, false, true, false},
	ir.OpCopyToPackets:         {1, 1, true, false, false},
	ir.OpUnpackPackets:         {1, 1, true, false, true},
	ir.OpPutPackets:            {1, 1, true, false, false},
	ir.OpReadPutPackets:        {1, 1, true, false, true},
	ir.OpReducePackets:         {1, 1, false, true, true},
	ir.OpReduceSendPackets:     {1, 1, false, true, true},
	ir.OpReduceCopyPackets:     {1, 2, false, true, true},
	ir.OpReduceCopySendPackets: {1, 2, false, true, true},
	ir.OpGroupStore:            {1, 1, true, false, false},
	ir.OpGroupStorePackets:     {1, 1, true, false, true},
	ir.OpGroupReduceStore:      {1, 1, false, true, false},
}

func reduces(k ir.OpKind) bool { return opRules[k].reduces }

// moves reports whether an operation touches data at all.
func moves(k ir.OpKind) bool { return opRules[k].minDst > 0 }

// oneStructure is the pass over all operations of a one-sided program.
type oneStructure struct {
	p    *ir.Program
	o    *ir.OneSided
	f    *findings
	rank ir.Rank
	tb   int32
	seen []bool // of an operation: some thread block has it
}

// validOneSided checks that nothing in p is out of range and that channels,
// semaphores and barriers fit; findings say what does not.
func validOneSided(p *ir.Program, f *findings) bool {
	bad := func(format string, args ...any) bool {
		f.errorf(diag.Pos{}, CodeProgram, format, args...)
		return false
	}
	switch {
	case p.Spec == nil || p.Coll == nil:
		return bad("the program doesn't say which collective it computes")
	case !validCollective(p.Coll, f):
		return false
	case int64(len(p.GPUs)) != int64(p.Coll.Ranks) || len(p.OneSided.GPUs) != len(p.GPUs):
		return bad("the program has %s, its collective %d", plural(len(p.OneSided.GPUs), "rank"), p.Coll.Ranks)
	case p.OneSided.Alignment < 1:
		return bad("the alignment is %d bytes, want 1 or more", p.OneSided.Alignment)
	case p.MinBytes < 0 || p.MaxBytes < 0 || p.MaxBytes > 0 && p.MaxBytes < p.MinBytes:
		return bad("the size window from %d to %d bytes is empty", p.MinBytes, p.MaxBytes)
	}
	s := &oneStructure{p: p, o: p.OneSided, f: f, seen: make([]bool, len(p.OneSided.Ops))}
	for r := range p.GPUs {
		s.gpu(ir.Rank(r))
	}
	if i := slices.Index(s.seen, false); i >= 0 && !f.hasErrors() {
		f.errorf(p.Pos(p.OneSided.Ops[i].Pos), CodeProgram, "operation %d is in no thread block", i)
	}
	return !f.hasErrors()
}

func (s *oneStructure) gpu(r ir.Rank) {
	s.rank = r
	g, own := &s.p.GPUs[r], &s.o.GPUs[r]
	sizes := structure{p: s.p, f: s.f}
	sizes.size(r, "input", g.Input, s.p.Coll.InputChunks(r))
	sizes.size(r, "output", g.Output, s.p.Coll.OutputChunks(r))
	if g.Scratch < 0 || g.Scratch > maxLocations {
		s.f.errorf(diag.Pos{}, CodeProgram, "rank %d has %d scratch chunks, want 0 to %d", r, g.Scratch, maxLocations)
	}
	for c := range own.Channels {
		s.channel(int32(c), &own.Channels[c])
	}
	barriers := map[int32]int32{}
	for t, b := range own.Blocks {
		s.tb = int32(t)
		if !within(b, len(s.o.Ops)) {
			s.f.errorf(diag.Pos{}, CodeProgram, "rank %d tb %d: operations %d to %d of %d", r, t, b.Start, b.End, len(s.o.Ops))
			continue
		}
		for i := b.Start; i < b.End; i++ {
			s.op(i, nil, barriers)
		}
	}
}

func within(sp ir.Span, n int) bool { return sp.Start >= 0 && sp.Start <= sp.End && int(sp.End) <= n }

func (s *oneStructure) channel(i int32, c *ir.SignalChannel) {
	bad := func(format string, args ...any) {
		s.f.errorf(diag.Pos{}, CodeProgram, "rank %d channel %d: %s", s.rank, i, fmt.Sprintf(format, args...))
	}
	if c.Kind != ir.ChannelMemory && c.Kind != ir.ChannelPort {
		bad("the kind is %d, want memory or port", c.Kind)
		return
	}
	if c.Peer < 0 || int(c.Peer) >= len(s.o.GPUs) {
		bad("the peer is rank %d, want 0 to %d", c.Peer, len(s.o.GPUs)-1)
		return
	}
	if c.Pair == ir.None {
		return
	}
	theirs := s.o.GPUs[c.Peer].Channels
	if c.Pair < 0 || int(c.Pair) >= len(theirs) {
		bad("its other end is channel %d of rank %d, which has %d", c.Pair, c.Peer, len(theirs))
		return
	}
	if d := &theirs[c.Pair]; d.Kind != c.Kind || d.Peer != s.rank || d.Pair != i {
		bad("its other end, channel %d of rank %d, isn't paired with it", c.Pair, c.Peer)
	}
}

// at names an operation in messages.
func (s *oneStructure) bad(op *ir.Op, code, format string, args ...any) bool {
	s.f.errorf(s.p.Pos(op.Pos), code, "rank %d tb %d (%s): %s", s.rank, s.tb, op.Kind, fmt.Sprintf(format, args...))
	return false
}

// op checks one operation, of a pipeline's body if outer is not nil.
func (s *oneStructure) op(i int32, outer *ir.Op, barriers map[int32]int32) {
	op := &s.o.Ops[i]
	s.seen[i] = true
	switch {
	case op.Kind > ir.OpPipeline:
		s.bad(op, CodeStep, "unknown operation")
		return
	case !within(op.Src, len(s.o.Operands)) || !within(op.Dst, len(s.o.Operands)) || !within(op.Refs, len(s.o.Refs)):
		s.bad(op, CodeStep, "operands or references outside of the program's")
		return
	case op.Parts < 1 || op.Kind != ir.OpBarrier && (op.Part < 0 || op.Part >= op.Parts):
		s.bad(op, CodeStep, "part %d of %d", op.Part, op.Parts)
		return
	case op.Refs.Len() > 64:
		s.bad(op, CodeTooLarge, "%d references, the checker holds up to 64", op.Refs.Len())
		return
	case op.Kind == ir.OpPipeline:
		s.pipeline(op, outer, barriers)
		return
	}
	s.refs(op, barriers)
	if moves(op.Kind) {
		s.operands(op, outer, opRules[op.Kind])
	} else if op.Src.Len()+op.Dst.Len() > 0 {
		s.bad(op, CodeStep, "it has operands, but moves nothing")
	}
}

func (s *oneStructure) pipeline(op, outer *ir.Op, barriers map[int32]int32) {
	switch {
	case outer != nil:
		s.bad(op, CodeStep, "a pipeline within a pipeline")
	case !within(op.Body, len(s.o.Ops)):
		s.bad(op, CodeStep, "the body is operations %d to %d of %d", op.Body.Start, op.Body.End, len(s.o.Ops))
	case op.UnitBytes < 1 || op.UnitChunks < 1:
		s.bad(op, CodeStep, "units of %d bytes of %d chunks, want 1 or more of both", op.UnitBytes, op.UnitChunks)
	default:
		for i := op.Body.Start; i < op.Body.End; i++ {
			s.op(i, op, barriers)
		}
	}
}

// refs checks channels, semaphores and barriers.
func (s *oneStructure) refs(op *ir.Op, barriers map[int32]int32) {
	own := &s.o.GPUs[s.rank]
	refs := s.o.Refs[op.Refs.Start:op.Refs.End]
	switch op.Kind {
	case ir.OpBarrier:
		if len(refs) != 1 {
			s.bad(op, CodeStep, "%d barriers, want 1", len(refs))
		} else if n, ok := barriers[refs[0]]; ok && n != op.Parts {
			s.bad(op, CodeStep, "barrier %d is for %d thread blocks here and for %d elsewhere", refs[0], op.Parts, n)
		} else {
			barriers[refs[0]] = op.Parts
		}
	case ir.OpSemaphoreAcquire, ir.OpSemaphoreRelease:
		for _, x := range refs {
			if x < 0 || int(x) >= len(own.Semaphores) {
				s.bad(op, CodeStep, "semaphore %d, but the rank has %d", x, len(own.Semaphores))
			}
		}
	default:
		for _, x := range refs {
			s.channelRef(op, x)
		}
		if n := op.Dst.Len(); onPort(op) && len(refs) != n {
			s.bad(op, CodeStep, "%s for %s, want one each", plural(len(refs), "channel"), plural(n, "destination"))
		}
	}
}

func (s *oneStructure) channelRef(op *ir.Op, x int32) {
	own := &s.o.GPUs[s.rank]
	if x < 0 || int(x) >= len(own.Channels) {
		s.bad(op, CodeStep, "channel %d, but the rank has %d", x, len(own.Channels))
		return
	}
	c := &own.Channels[x]
	port := op.Kind == ir.OpFlush || op.Kind == ir.OpPutSignal || op.Kind == ir.OpPutSignalFlush
	switch {
	case port && c.Kind != ir.ChannelPort || op.Via != ir.ChannelNone && op.Via != c.Kind:
		s.bad(op, CodeStep, "channel %d is a %s channel", x, c.Kind)
	case c.Pair == ir.None && (signals(op.Kind) || waits(op.Kind)):
		s.bad(op, CodeStep, "channel %d to rank %d has no other end: that rank opens fewer %s channels to rank %d",
			x, c.Peer, c.Kind, s.rank)
	}
}

// onPort reports whether the operation moves data by a port channel.
func onPort(op *ir.Op) bool {
	return moves(op.Kind) && op.Via == ir.ChannelPort
}

func signals(k ir.OpKind) bool {
	switch k {
	case ir.OpSignal, ir.OpRelaxedSignal, ir.OpPutSignal, ir.OpPutSignalFlush:
		return true
	}
	return false
}

func waits(k ir.OpKind) bool { return k == ir.OpWait || k == ir.OpRelaxedWait }

// operands checks number, bounds and sizes.
func (s *oneStructure) operands(op, outer *ir.Op, rule opRule) {
	src, dst := s.o.Operands[op.Src.Start:op.Src.End], s.o.Operands[op.Dst.Start:op.Dst.End]
	if len(src) < rule.minSrc || len(dst) < rule.minDst ||
		rule.pairs && len(src) != len(dst) && len(src) != 1 {
		s.bad(op, CodeStep, "%s and %s", plural(len(src), "source"), plural(len(dst), "destination"))
		return
	}
	if (op.Kind == ir.OpPutSignal || op.Kind == ir.OpPutSignalFlush) && op.Via != ir.ChannelPort {
		s.bad(op, CodeStep, "it signals on the channel that it puts by, so that has to be a port channel")
	}
	ok := true
	for i := range src {
		if rule.pairs && src[i].Group != ir.None {
			ok = s.bad(op, CodeStep, "the source is at all ranks of a group")
		}
		ok = s.operand(op, outer, "source", &src[i]) && ok
	}
	for i := range dst {
		ok = s.operand(op, outer, "destination", &dst[i]) && ok
	}
	if !ok {
		return
	}
	for i := range dst {
		want := &src[0]
		if rule.pairs && i < len(src) {
			want = &src[i]
		}
		if dst[i].Size != want.Size {
			s.bad(op, CodeStep, "destination %d has %s, its source %d", i, plural(int(dst[i].Size), "chunk"), want.Size)
		}
	}
	for i := range src {
		if !rule.pairs && src[i].Size != src[0].Size {
			s.bad(op, CodeStep, "source %d has %s, the first %d", i, plural(int(src[i].Size), "chunk"), src[0].Size)
		}
	}
}

func (s *oneStructure) operand(op, outer *ir.Op, what string, d *ir.Operand) bool {
	switch {
	case d.Group != ir.None && (d.Group < 0 || int(d.Group) >= len(s.o.Groups)):
		return s.bad(op, CodeBounds, "the %s is in group %d of %d", what, d.Group, len(s.o.Groups))
	case d.Group == ir.None && (d.Rank < 0 || int(d.Rank) >= len(s.p.GPUs)):
		return s.bad(op, CodeBounds, "the %s is at rank %d, want 0 to %d", what, d.Rank, len(s.p.GPUs)-1)
	case d.Buf < 0 || d.Buf > ir.FirstScratch:
		return s.bad(op, CodeBounds, "the %s is in buffer %d, want input, output or scratch", what, d.Buf)
	case d.Size < 1 || d.Index < 0:
		return s.bad(op, CodeBounds, "the %s is %d chunks from %d on", what, d.Size, d.Index)
	case d.Packets && !s.o.Packets:
		return s.bad(op, CodeStep, "the %s is packets, but the program's protocol has none", what)
	case d.Packets && d.Buf != ir.FirstScratch:
		return s.bad(op, CodeStep, "the %s is packets in the %s, want them in scratch", what, bufferName(d.Buf))
	case outer != nil && d.Size < outer.UnitChunks:
		return s.bad(op, CodeStep, "the %s is %s in a pipeline over %d, so that it runs out before the pipeline does",
			what, plural(int(d.Size), "chunk"), outer.UnitChunks)
	}
	if d.Group == ir.None {
		return s.inBounds(op, what, d, d.Rank)
	}
	if len(s.o.Groups[d.Group].Ranks) == 0 {
		return s.bad(op, CodeBounds, "the %s is in group %d, which has no ranks", what, d.Group)
	}
	for _, r := range s.o.Groups[d.Group].Ranks {
		if r < 0 || int(r) >= len(s.p.GPUs) {
			return s.bad(op, CodeBounds, "group %d has rank %d, want 0 to %d", d.Group, r, len(s.p.GPUs)-1)
		}
		if !s.inBounds(op, what, d, r) {
			return false
		}
	}
	return true
}

func (s *oneStructure) inBounds(op *ir.Op, what string, d *ir.Operand, r ir.Rank) bool {
	g := &s.p.GPUs[r]
	size := [...]int32{g.Input, g.Output, g.Scratch}[d.Buf]
	if end := int64(d.Index) + int64(d.Size); end > int64(size) || end > math.MaxInt32 {
		return s.bad(op, CodeBounds, "the %s %s of rank %d lies outside the %s of %d", what,
			rangeName(bufferName(d.Buf), d.Index, end), r, bufferName(d.Buf), size)
	}
	return true
}
