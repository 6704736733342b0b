package ir_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"pgregory.net/rapid"
)

// ops builds the tables of a one-sided program for tests.
type ops struct{ *ir.Program }

func newOps(ranks int32, protocol ir.Protocol) ops {
	s := *ringDAG(ranks).Spec
	s.Protocol, s.Topo, s.Buffers = protocol, nil, nil
	p := &ir.Program{Spec: &s, GPUs: make([]ir.GPU, ranks), MaxBytes: 1 << 20,
		OneSided: &ir.OneSided{Packets: protocol == ir.LL, ThreadsPerBlock: 1024, Alignment: 16, GPUs: make([]ir.OneSidedGPU, ranks)}}
	for g := range p.GPUs {
		p.GPUs[g] = ir.GPU{Input: ranks, Output: ranks, Scratch: 2}
	}
	return ops{p}
}

func (o ops) span(list ...ir.Operand) ir.Span {
	from := int32(len(o.OneSided.Operands))
	o.OneSided.Operands = append(o.OneSided.Operands, list...)
	return ir.Span{Start: from, End: int32(len(o.OneSided.Operands))}
}

func (o ops) refs(list ...int32) ir.Span {
	from := int32(len(o.OneSided.Refs))
	o.OneSided.Refs = append(o.OneSided.Refs, list...)
	return ir.Span{Start: from, End: int32(len(o.OneSided.Refs))}
}

// block appends a thread block of rank.
func (o ops) block(rank ir.Rank, list ...ir.Op) {
	from := int32(len(o.OneSided.Ops))
	o.OneSided.Ops = append(o.OneSided.Ops, list...)
	gpu := &o.OneSided.GPUs[rank]
	gpu.Blocks = append(gpu.Blocks, ir.Span{Start: from, End: int32(len(o.OneSided.Ops))})
}

func at(rank ir.Rank, b ir.BufferID, index, size int32) ir.Operand {
	return ir.Operand{Rank: rank, Group: ir.None, Buf: b, Index: index, Size: size}
}

func packets(rank ir.Rank, index, size int32) ir.Operand {
	a := at(rank, ir.FirstScratch, index, size)
	a.Packets = true
	return a
}

// handOneSided has a bit of everything: signals, packets, a group, semaphores, a
// barrier and a pipeline.
func handOneSided() *ir.Program {
	o := newOps(2, ir.LL)
	s := o.OneSided
	s.DoubleScratch = true
	s.Groups = []ir.SwitchGroup{{Buf: ir.Input, Ranks: []ir.Rank{0, 1}}}
	s.GPUs[0].Channels = []ir.SignalChannel{{Kind: ir.ChannelMemory, Peer: 1}, {Kind: ir.ChannelPort, Peer: 1}, {Kind: ir.ChannelPort, Peer: 1}}
	s.GPUs[1].Channels = []ir.SignalChannel{{Kind: ir.ChannelPort, Peer: 0}, {Kind: ir.ChannelMemory, Peer: 0}}
	s.GPUs[0].Semaphores = []int32{0, 0, 3}
	s.PairChannels()
	group := ir.Operand{Rank: ir.None, Group: 0, Buf: ir.Input, Index: 1, Size: 1}
	sync := ir.Op{Kind: ir.OpSync, Parts: 1}
	o.block(0,
		ir.Op{Kind: ir.OpPut, Via: ir.ChannelPort, Src: o.span(at(0, ir.Input, 0, 1)), Dst: o.span(at(1, ir.Input, 0, 1)), Refs: o.refs(2), Parts: 1, Pos: 1},
		sync,
		ir.Op{Kind: ir.OpSignal, Via: ir.ChannelMemory, Refs: o.refs(0), Parts: 1},
		ir.Op{Kind: ir.OpReduceSendPackets, Via: ir.ChannelMemory, Reduce: ir.ReduceMax, Parts: 1, Pos: 2,
			Src: o.span(at(0, ir.Input, 1, 1), packets(0, 0, 1)), Dst: o.span(at(0, ir.Input, 1, 1), packets(1, 1, 1))},
		ir.Op{Kind: ir.OpBarrier, Refs: o.refs(3), Parts: 2})
	o.block(0,
		ir.Op{Kind: ir.OpPipeline, UnitBytes: 65536, UnitChunks: 1, Parts: 1, Body: ir.Span{Start: 7, End: 9}},
		ir.Op{Kind: ir.OpBarrier, Refs: o.refs(3), Parts: 2})
	s.Ops = append(s.Ops,
		ir.Op{Kind: ir.OpSemaphoreAcquire, Refs: o.refs(0, 2), Parts: 1},
		ir.Op{Kind: ir.OpGroupReduceStore, Via: ir.ChannelSwitch, Src: o.span(group), Dst: o.span(group), Parts: 1})
	o.block(1)
	o.block(1, ir.Op{Kind: ir.OpCopy, Src: o.span(at(1, ir.Input, 0, 2)), Dst: o.span(at(1, ir.Output, 0, 2)), Part: 1, Parts: 4})
	return o.Program
}

// By hand from the rule: the k-th channel of a kind pairs with the k-th back.
func TestPairChannels(t *testing.T) {
	p := handOneSided()
	got := [][]ir.SignalChannel{p.OneSided.GPUs[0].Channels, p.OneSided.GPUs[1].Channels}
	want := [][]ir.SignalChannel{
		{{Kind: ir.ChannelMemory, Peer: 1, Pair: 1}, {Kind: ir.ChannelPort, Peer: 1, Pair: 0}, {Kind: ir.ChannelPort, Peer: 1, Pair: ir.None}},
		{{Kind: ir.ChannelPort, Peer: 0, Pair: 1}, {Kind: ir.ChannelMemory, Peer: 0, Pair: 0}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOneSidedCountsAndStrings(t *testing.T) {
	p := handOneSided()
	want := ir.Counts{Ranks: 2, TBs: 4, MaxTBs: 2, Channels: 3, Steps: 10, Nops: 1}
	if got := p.Count(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, c := range []struct{ got, want string }{
		{p.StepString(0, 0, 0), "put port on 2 i[0] x1 -> 1.i[0] x1"},
		{p.StepString(0, 0, 3), "respkt memory max i[1] x1, s[0] x1 packets -> i[1] x1, 1.s[1] x1 packets"},
		{p.StepString(0, 0, 4), "barrier on 3 of 2"},
		{p.StepString(0, 1, 0), "pipeline unit 65536 chunks 1"},
		{p.OpString(0, 7), "sem_acquire on 0 2"},
		{p.OpString(0, 8), "glres switch group 0.i[1] x1 -> group 0.i[1] x1"},
		{p.StepString(1, 1, 0), "copy i[0] x2 -> o[0] x2 part 1 of 4"},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

// Each change makes the program above malformed, and the message says how.
func TestOneSidedValidate(t *testing.T) {
	for _, c := range []struct {
		change func(p *ir.Program, o *ir.OneSided)
		want   string
	}{
		{func(p *ir.Program, _ *ir.OneSided) { p.Protocol = ir.Simple }, "protocol Simple and packets true disagree"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Alignment = 0 }, "an alignment of 0 bytes"},
		{func(p *ir.Program, _ *ir.OneSided) { p.Transport.Slots = 1 }, "no connections with slots"},
		{func(_ *ir.Program, o *ir.OneSided) { o.GPUs = o.GPUs[:1] }, "the channels of 1 GPUs, want 2"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Groups[0].Ranks = []ir.Rank{1, 0} }, "group 0: ranks [1 0] are not ascending"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Groups[0].Buf = ir.Output }, "glres: sources 0: group 0 is not one of rank 0 with this buffer"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Groups[0].Ranks = []ir.Rank{1} }, "group 0 is not one of rank 0"},
		{func(_ *ir.Program, o *ir.OneSided) { o.GPUs[0].Channels[2].Pair = 0 }, "channel 2 is paired with channel 0 of rank 1, want -1"},
		{func(_ *ir.Program, o *ir.OneSided) { o.GPUs[0].Channels[0].Peer = 0 }, "channel 0 goes to rank 0"},
		{func(_ *ir.Program, o *ir.OneSided) { o.GPUs[0].Channels[0].Kind = ir.ChannelSwitch }, "kind switch"},
		{func(_ *ir.Program, o *ir.OneSided) { o.GPUs[0].Semaphores[2] = -1 }, "semaphore 2 starts at -1"},
		{func(_ *ir.Program, o *ir.OneSided) { o.GPUs[0].Blocks[0].End = 4 }, "want them to start at 4"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops = append(o.Ops, o.Ops[1]) }, "1 of 11 operations belong to no thread block"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops[5].Body = ir.Span{Start: 6, End: 8} }, "its body is operations 6 to 8, want them to start at 7"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops[5].UnitBytes = 0 }, "a unit of 0 bytes"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops[7] = o.Ops[5] }, "a pipeline within a pipeline"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops[0].Kind = 99 }, "kind 99"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops[0].Via = ir.ChannelMemory }, "put: got 1 channels, semaphores or barriers"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops[0].Via = ir.ChannelSwitch }, "put: got channel switch"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops[0].Parts = 0 }, "part 0 of 0"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops[0].Reduce = ir.ReduceSum }, "it reduces nothing"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops[0].Dst.End = 99 }, "are not within"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops[0].Dst = ir.Span{} }, "put: got 0 destinations"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Operands[0].Size = 2 }, "got sizes 2 and 1"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Operands[0].Index = -1 }, "index -1"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Operands[0].Rank = 1 }, "rank 1, want a local rank"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Operands[0].Buf = 3 }, "buffer 3"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Operands[1].Rank = 0 }, "channel 2 goes to rank 1, the destination is on rank 0"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Operands[1].Rank = 2 }, "rank 2, want a remote rank"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Operands[3].Packets = false }, "respkt: sources 1: got packets false, want true"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Operands[3].Buf = ir.Input }, "packets are in scratch only"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Refs[0] = 3 }, "put: there is no channel, semaphore or barrier 3"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Refs[0] = 0 }, "channel 0 is a memory channel"},
		{func(_ *ir.Program, o *ir.OneSided) { o.Ops[2].Refs = ir.Span{} }, "signal: got 0 channels"},
	} {
		p := handOneSided()
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(p, p.OneSided)
		err := p.Validate()
		var m *diag.Message
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &m) {
			t.Errorf("got %v\nwant ... %s", err, c.want)
		}
	}
}

func TestParseOneSidedErrors(t *testing.T) {
	was := text(t, handOneSided())
	for _, c := range []struct{ old, new, want string }{
		{"one-sided threads 1024 align 16 double-scratch\n", "", `f:7:6: a group before the line "one-sided"`},
		{"align 16", "align 0", "want a number from 1"},
		{"group i: 0 1", "group t: 0 1", `got buffer "t", want i, o or s`},
		{"channels memory 1", "channels optic 1", `got "optic", want memory, port or switch`},
		{"signal memory on 0", "signal on 0", `got "on", want memory, port or switch`},
		{"0 put port", "0 putt port", `operation: unknown name "putt"`},
		{"  }\n", "", `got "1", want 2`},
		{"  }\n  1 barrier on 3 of 2\ngpu 1 input=2 output=2 scratch=2\nchannels port 0\nchannels memory 0\ntb 0\ntb 1\n  0 copy i[0] x2 -> o[0] x2 part 1 of 4\n", "", "the pipeline does not end"},
		{"0 sem_acquire on 0 2", "0 pipeline unit 1 chunks 1 {", "a pipeline within a pipeline"},
		{"-> 1.i[0] x1", "-> 1.i[0] x1, ", "want an operand after the comma"},
		{"tb 1\n", "tb 1 send=1 recv=1 ch=0\n", `got "send=1", want the end of the line`},
		{"unit 65536 chunks 1 {", "unit 65536 chunks 1", `want "{"`},
	} {
		if !strings.Contains(was, c.old) {
			t.Fatalf("%q is not in\n%s", c.old, was)
		}
		_, err := ir.ParseProgram(strings.NewReader(strings.Replace(was, c.old, c.new, 1)), "f")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: got %v\nwant ... %s", c.new, c.old, err, c.want)
		}
	}
}

// drawOneSided draws a well-formed program of any shape.
func drawOneSided(t *rapid.T) *ir.Program {
	p := &ir.Program{Spec: drawSpec(t), MinBytes: rapid.Int64Range(0, 1<<40).Draw(t, "min"), MaxBytes: rapid.Int64Range(0, 1<<40).Draw(t, "max")}
	p.Protocol, p.Buffers = rapid.SampledFrom([]ir.Protocol{ir.Simple, ir.LL}).Draw(t, "protocol"), nil
	n := p.Coll.Ranks
	o := &ir.OneSided{Packets: p.Protocol == ir.LL, ThreadsPerBlock: rapid.Int32Range(1, 1024).Draw(t, "threads"), Alignment: rapid.Int32Range(1, 64).Draw(t, "align"),
		DoubleScratch: rapid.Bool().Draw(t, "double"), ReuseResources: rapid.Bool().Draw(t, "reuse"), GPUs: make([]ir.OneSidedGPU, n)}
	p.OneSided = o
	small := rapid.Int32Range(0, 9)
	var all []ir.Rank
	for g := range n {
		all = append(all, ir.Rank(g))
		p.GPUs = append(p.GPUs, ir.GPU{Input: small.Draw(t, "in"), Output: small.Draw(t, "out"), Scratch: small.Draw(t, "scratch")})
		for range rapid.IntRange(0, 4).Draw(t, "channels") {
			if n > 1 {
				peer := (g + rapid.Int32Range(1, n-1).Draw(t, "hop")) % n
				kind := rapid.SampledFrom([]ir.ChannelKind{ir.ChannelMemory, ir.ChannelPort}).Draw(t, "kind")
				o.GPUs[g].Channels = append(o.GPUs[g].Channels, ir.SignalChannel{Kind: kind, Peer: ir.Rank(peer)})
			}
		}
		if k := rapid.IntRange(0, 3).Draw(t, "semaphores"); k > 0 {
			o.GPUs[g].Semaphores = rapid.SliceOfN(small, k, k).Draw(t, "initial")
		}
	}
	for b := range rapid.IntRange(0, 3).Draw(t, "groups") {
		o.Groups = append(o.Groups, ir.SwitchGroup{Buf: ir.BufferID(b), Ranks: all})
	}
	o.PairChannels()
	for g := range o.GPUs {
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			drawBlock(t, p, ir.Rank(g))
		}
	}
	return p
}

func drawBlock(t *rapid.T, p *ir.Program, rank ir.Rank) {
	o := p.OneSided
	span := ir.Span{Start: int32(len(o.Ops))}
	var bodies [][]ir.Op
	for range rapid.IntRange(0, 4).Draw(t, "ops") {
		op := drawOp(t, p, rank)
		if op.Kind == ir.OpPipeline {
			var body []ir.Op
			for range rapid.IntRange(0, 2).Draw(t, "body") {
				inner := drawOp(t, p, rank)
				if inner.Kind == ir.OpPipeline {
					inner.Kind, inner.UnitBytes, inner.UnitChunks = ir.OpSync, 0, 0
				}
				body = append(body, inner)
			}
			bodies = append(bodies, body)
		}
		o.Ops = append(o.Ops, op)
	}
	span.End = int32(len(o.Ops))
	for i := span.Start; i < span.End; i++ {
		if o.Ops[i].Kind == ir.OpPipeline {
			o.Ops[i].Body = ir.Span{Start: int32(len(o.Ops)), End: int32(len(o.Ops) + len(bodies[0]))}
			o.Ops, bodies = append(o.Ops, bodies[0]...), bodies[1:]
		}
	}
	o.GPUs[rank].Blocks = append(o.GPUs[rank].Blocks, span)
}

// drawOp draws an operation of rank; one that needs what the rank lacks becomes
// a sync.
func drawOp(t *rapid.T, p *ir.Program, rank ir.Rank) ir.Op {
	o := p.OneSided
	gpu := &o.GPUs[rank]
	op := ir.Op{Kind: ir.OpKind(rapid.IntRange(0, int(ir.OpPipeline)).Draw(t, "op")), Parts: rapid.Int32Range(1, 3).Draw(t, "parts"), Pos: drawPos(t, p.Spec)}
	sync := ir.Op{Kind: ir.OpSync, Parts: 1, Pos: op.Pos}
	noRefs := int32(len(o.Refs))
	op.Refs, op.Src, op.Dst = ir.Span{Start: noRefs, End: noRefs}, ir.Span{Start: int32(len(o.Operands)), End: int32(len(o.Operands))}, ir.Span{Start: int32(len(o.Operands)), End: int32(len(o.Operands))}
	sync.Refs, sync.Src, sync.Dst = op.Refs, op.Src, op.Dst
	if vias := op.Kind.Vias(); len(vias) > 0 {
		op.Via = rapid.SampledFrom(vias).Draw(t, "via")
	}
	var mine []int32 // channels of this kind
	for c, ch := range gpu.Channels {
		if ch.Kind == op.Via {
			mine = append(mine, int32(c))
		}
	}
	nsrc, ndst := drawCounts(t, op.Kind)
	_, srcPackets := op.Kind.Operand(op.Via, false, nsrc-1)
	_, dstPackets := op.Kind.Operand(op.Via, true, ndst-1)
	switch {
	case (srcPackets || dstPackets) && !o.Packets, op.Via == ir.ChannelSwitch && len(o.Groups) < 3:
		return sync
	case (op.Via == ir.ChannelMemory || op.Via == ir.ChannelPort) && len(mine) == 0:
		return sync
	case (op.Kind == ir.OpSemaphoreAcquire || op.Kind == ir.OpSemaphoreRelease) && len(gpu.Semaphores) == 0:
		return sync
	}
	peers := make([]ir.Rank, ndst) // via ports each destination is the peer of a channel
	switch {
	case op.Kind == ir.OpBarrier:
		o.Refs = append(o.Refs, rapid.Int32Range(0, 20).Draw(t, "barrier"))
	case op.Kind == ir.OpSemaphoreAcquire || op.Kind == ir.OpSemaphoreRelease:
		o.Refs = append(o.Refs, rapid.SliceOfN(rapid.Int32Range(0, int32(len(gpu.Semaphores)-1)), 1, 3).Draw(t, "semaphore")...)
	case len(mine) > 0 && nsrc == 0:
		o.Refs = append(o.Refs, rapid.SliceOfN(rapid.SampledFrom(mine), 1, 3).Draw(t, "channel")...)
	case op.Via == ir.ChannelPort:
		for i := range peers {
			c := rapid.SampledFrom(mine).Draw(t, "port")
			o.Refs = append(o.Refs, c)
			peers[i] = gpu.Channels[c].Peer
		}
	default:
		for i := range peers {
			peers[i] = ir.Rank(rapid.Int32Range(0, p.Coll.Ranks-1).Draw(t, "peer"))
		}
	}
	op.Refs.End = int32(len(o.Refs))
	size := rapid.Int32Range(1, 4).Draw(t, "size")
	op.Src.End = drawOperands(t, o, rank, op, false, nsrc, size, nil)
	op.Dst.Start = op.Src.End
	op.Dst.End = drawOperands(t, o, rank, op, true, ndst, size, peers)
	if op.Kind == ir.OpPipeline {
		op.UnitBytes, op.UnitChunks = rapid.Int64Range(1, 1<<40).Draw(t, "unit"), rapid.Int32Range(1, 4).Draw(t, "chunks")
	}
	if op.Kind != ir.OpBarrier {
		op.Part = rapid.Int32Range(0, op.Parts-1).Draw(t, "part")
	}
	if op.Kind.Reduces() {
		op.Reduce = ir.Reduction(rapid.IntRange(0, int(ir.ReduceProd)).Draw(t, "reduce"))
	}
	return op
}

func drawCounts(t *rapid.T, k ir.OpKind) (nsrc, ndst int) {
	draw := func(dst bool) int {
		least, most := k.Operands(dst)
		if most == 0 && least > 0 {
			most = 3
		}
		return rapid.IntRange(least, most).Draw(t, "count")
	}
	nsrc, ndst = draw(false), draw(true)
	if k.Pairs() {
		ndst = nsrc
	}
	return nsrc, ndst
}

func drawOperands(t *rapid.T, o *ir.OneSided, rank ir.Rank, op ir.Op, dst bool, n int, size int32, peers []ir.Rank) int32 {
	for i := range n {
		where, packets := op.Kind.Operand(op.Via, dst, i)
		a := ir.Operand{Rank: rank, Group: ir.None, Buf: ir.BufferID(rapid.IntRange(0, 2).Draw(t, "buf")),
			Index: rapid.Int32Range(0, 50).Draw(t, "index"), Size: size, Packets: packets}
		if packets {
			a.Buf = ir.FirstScratch
		}
		switch {
		case where == ir.WhereGroup:
			a.Rank, a.Group = ir.None, int32(a.Buf)
		case where == ir.WhereRemote && peers != nil:
			a.Rank = peers[i]
		case where == ir.WhereRemote:
			a.Rank = ir.Rank(rapid.Int32Range(0, int32(len(o.GPUs)-1)).Draw(t, "rank"))
		}
		o.Operands = append(o.Operands, a)
	}
	return int32(len(o.Operands))
}

// What Operand says of each kind, spelled out for those whose name doesn't.
func TestOperandShapes(t *testing.T) {
	for _, c := range []struct {
		kind ir.OpKind
		via  ir.ChannelKind
		want string
	}{
		{ir.OpPut, ir.ChannelMemory, "1+ local local -> remote remote"},
		{ir.OpGet, ir.ChannelMemory, "1+ remote remote -> local local"},
		{ir.OpReduceSend, ir.ChannelMemory, "1+ local local -> local remote"},
		{ir.OpReadReduce, ir.ChannelMemory, "1+ local remote -> local nowhere"},
		{ir.OpPutPackets, ir.ChannelMemory, "1+ local local -> remote* remote*"},
		{ir.OpPutPackets, ir.ChannelPort, "1+ local* local* -> remote* remote*"},
		{ir.OpReadPutPackets, ir.ChannelPort, "1 local* nowhere -> remote* remote*"},
		{ir.OpReducePackets, ir.ChannelNone, "1+ local local* -> local nowhere"},
		{ir.OpReduceCopySendPackets, ir.ChannelMemory, "1+ local local* -> local local*"},
		{ir.OpCopyToPackets, ir.ChannelNone, "1 local nowhere -> local* nowhere"},
		{ir.OpUnpackPackets, ir.ChannelNone, "1 local* nowhere -> local nowhere"},
		{ir.OpGroupStorePackets, ir.ChannelSwitch, "1 local* nowhere -> group* nowhere"},
		{ir.OpSync, ir.ChannelNone, "0 nowhere nowhere -> nowhere nowhere"},
	} {
		word := func(dst bool, i int) string {
			w, packets := c.kind.Operand(c.via, dst, i)
			if packets {
				return w.String() + "*"
			}
			return w.String()
		}
		least, most := c.kind.Operands(false)
		count := fmt.Sprint(least)
		if least != most {
			count += "+"
		}
		got := fmt.Sprintf("%s %s %s -> %s %s", count, word(false, 0), word(false, 1), word(true, 0), word(true, 1))
		if got != c.want {
			t.Errorf("%s via %s: got %s, want %s", c.kind, c.via, got, c.want)
		}
	}
}
