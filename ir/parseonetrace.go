package ir

import (
	"io"
	"math"
)

// ParseOneTrace reads what OneTrace.WriteText wrote; see ParseChunkDAG.
func ParseOneTrace(r io.Reader, file string) (*OneTrace, error) {
	t := newTextReader(r, file)
	o := &OneTrace{}
	o.Spec = t.spec(oneTraceWord, func(key string) bool { return t.oneTraceLine(o, key) })
	t.buffers = map[string]BufferID{"s": FirstScratch}
	for t.next() {
		switch {
		case t.accept("group"):
			t.traceGroup(o)
		case t.accept("loop"):
			t.traceLoop(o)
		case t.accept("gpu"):
			t.traceGPU(o)
		case t.accept("channel"):
			if gpu := t.lastGPU(o); gpu != nil {
				gpu.Channels = append(gpu.Channels, TraceChannel{Kind: t.channelKind(), Peer: Rank(t.int32(0)), Pos: t.position()})
			}
		case t.accept("semaphore"):
			if gpu := t.lastGPU(o); gpu != nil {
				gpu.Semaphores = append(gpu.Semaphores, TraceSemaphore{Initial: t.int32(0), Pos: t.position()})
			}
		default:
			t.traceOp(o)
		}
	}
	if t.err == nil {
		o.PairChannels()
		t.failFile(o.Validate())
	}
	if t.err != nil {
		return nil, t.result()
	}
	o.Positions = t.list
	return o, nil
}

func (t *textReader) oneTraceLine(o *OneTrace, key string) bool {
	switch key {
	case "window":
		t.expect("min")
		o.MinBytes = t.int64(0, math.MaxInt64)
		t.expect("max")
		o.MaxBytes = t.int64(0, math.MaxInt64)
	case "one-sided":
		o.ThreadsPerBlock = t.number("threads", 1)
		o.Alignment = t.number("align", 1)
		for _, f := range traceFlags(o) {
			*f.value = t.accept(f.word)
		}
	default:
		return false
	}
	return true
}

// traceGroup reads buffer: rank rank ... and a position.
func (t *textReader) traceGroup(o *OneTrace) {
	var g TraceGroup
	switch name := string(t.word()); name {
	case "i":
		g.Buf = Input
	case "o":
		g.Buf = Output
	case "s":
		g.Buf = FirstScratch
	default:
		t.failf("got buffer %q, want i, o or s", name)
	}
	t.expect(":")
	for c := t.peek(); c >= '0' && c <= '9'; c = t.peek() {
		g.Ranks = append(g.Ranks, Rank(t.int32(0)))
	}
	g.Pos = t.position()
	o.Groups = append(o.Groups, g)
}

func (t *textReader) traceLoop(o *OneTrace) {
	var l TraceLoop
	t.expect("unit")
	l.UnitBytes = t.int64(1, 1<<62)
	l.Chunks = t.number("chunks", 1)
	l.Pos = t.position()
	o.Loops = append(o.Loops, l)
}

func (t *textReader) traceGPU(o *OneTrace) {
	t.id(len(o.GPUs))
	t.expect("scratch=")
	from := t.at
	gpu := TraceGPU{Scratch: t.int32(0)}
	t.hold(&t.chunks, from, int64(gpu.Scratch))
	t.end()
	o.GPUs = append(o.GPUs, gpu)
}

// lastGPU is the rank that the present line belongs to.
func (t *textReader) lastGPU(o *OneTrace) *TraceGPU {
	if len(o.GPUs) == 0 {
		t.failf("got %s, want a gpu first", t.rest())
		return nil
	}
	return &o.GPUs[len(o.GPUs)-1]
}

// traceOp reads one operation, whose operands it puts into the trace's tables.
func (t *textReader) traceOp(o *OneTrace) {
	t.id(len(o.Ops))
	op := TraceOp{Rank: Rank(t.number("rank", 0)), Kind: t.traceKind()}
	if len(op.Kind.Vias()) > 0 {
		op.Via = t.channelKind()
	}
	for r := ReduceSum; r <= ReduceProd; r++ {
		if t.accept(r.String()) {
			op.Reduce = r
		}
	}
	op.Ref = t.optional("on", 0, None)
	op.Src = t.traceOperands(o, op.Rank)
	op.Dst = Span{op.Src.End, op.Src.End}
	if t.accept("->") {
		op.Dst = t.traceOperands(o, op.Rank)
	}
	op.Blocks.Start = int32(len(o.Blocks))
	if t.accept("tb") {
		for c := t.peek(); c >= '0' && c <= '9'; c = t.peek() {
			o.Blocks = append(o.Blocks, t.int32(0))
		}
	}
	op.Blocks.End = int32(len(o.Blocks))
	if op.Kind.Syncs() {
		t.expect("sync")
		op.Sync = t.dataSync()
	}
	op.Loop = t.optional("loop", 0, None)
	op.Pos = t.position()
	o.Ops = append(o.Ops, op)
}

// traceOperands reads a list into the tables of the trace.
func (t *textReader) traceOperands(o *OneTrace, rank Rank) Span {
	tables := OneSided{Operands: o.Operands}
	s := t.operands(&tables, rank)
	o.Operands = tables.Operands
	return s
}

func (t *textReader) traceKind() TraceKind {
	name := string(t.word())
	if name == TraceGroupReduce.String() {
		return TraceGroupReduce
	}
	kind, err := ParseOpKind(name)
	if err != nil && t.err == nil {
		t.at -= len(name)
		t.failf("%v", err)
	}
	return TraceOf(kind)
}

func (t *textReader) dataSync() DataSync {
	for s := SyncNone; s <= SyncBoth; s++ {
		if t.accept(s.String()) {
			return s
		}
	}
	t.failf("got %s, want none, before, after or both", t.rest())
	return SyncNone
}
