package ir

// oneSidedHeader reads the line that makes a program one-sided.
func (t *textReader) oneSidedHeader(p *Program) {
	o := &OneSided{} // Packets follows from the protocol, which may come later
	o.ThreadsPerBlock = t.number("threads", 1)
	o.Alignment = t.number("align", 1)
	for _, f := range oneSidedFlags(o) {
		*f.value = t.accept(f.word)
	}
	p.OneSided = o
}

// group reads buffer: rank rank ...
func (t *textReader) group(p *Program) {
	if p.OneSided == nil {
		t.failf("a group before the line %q", "one-sided")
		return
	}
	var g SwitchGroup
	name := string(t.word())
	switch name {
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
	for t.peek() != 0 {
		g.Ranks = append(g.Ranks, Rank(t.int32(0)))
	}
	p.OneSided.Groups = append(p.OneSided.Groups, g)
}

// oneSidedLine reads a line of a rank: its channels, its semaphores, or a thread
// block with all its operations.
func (t *textReader) oneSidedLine(p *Program) {
	o := p.OneSided
	if len(o.GPUs) == 0 || len(o.GPUs) != len(p.GPUs) {
		t.failf("got %s, want a gpu first", t.rest())
		return
	}
	gpu := &o.GPUs[len(o.GPUs)-1]
	switch {
	case t.accept("channels"):
		kind := t.channelKind()
		for t.peek() != 0 {
			gpu.Channels = append(gpu.Channels, SignalChannel{Kind: kind, Peer: Rank(t.int32(0)), Pair: None})
		}
	case t.accept("semaphores"):
		gpu.Semaphores = append(gpu.Semaphores, t.runs(0, 1, maxRanks)...)
	case t.accept("tb"):
		t.id(len(gpu.Blocks))
		t.end()
		gpu.Blocks = append(gpu.Blocks, t.block(o, Rank(len(o.GPUs)-1)))
	default:
		t.failf("got %s, want channels, semaphores, a tb or a gpu", t.rest())
	}
}

// channelKind reads memory, port or switch.
func (t *textReader) channelKind() ChannelKind {
	for k := ChannelMemory; k <= ChannelSwitch; k++ {
		if t.accept(k.String()) {
			return k
		}
	}
	t.failf("got %s, want memory, port or switch", t.rest())
	return ChannelNone
}

// block reads operations up to a line that is none, and puts the bodies of
// pipelines behind them.
func (t *textReader) block(o *OneSided, rank Rank) Span {
	span := Span{Start: int32(len(o.Ops))}
	var bodies [][]Op
	n := 0
	for t.next() {
		if c := t.peek(); c < '0' || c > '9' {
			t.again = true
			break
		}
		op := t.op(o, rank, n)
		if op.Kind == OpPipeline {
			bodies = append(bodies, t.body(o, rank))
		}
		o.Ops = append(o.Ops, op)
		n++
	}
	span.End = int32(len(o.Ops))
	for i, b := span.Start, 0; i < span.End; i++ {
		if o.Ops[i].Kind == OpPipeline && b < len(bodies) {
			o.Ops[i].Body = Span{int32(len(o.Ops)), int32(len(o.Ops) + len(bodies[b]))}
			o.Ops = append(o.Ops, bodies[b]...)
			b++
		}
	}
	return span
}

// body reads the operations of a pipeline up to the closing brace.
func (t *textReader) body(o *OneSided, rank Rank) []Op {
	var body []Op
	for t.next() {
		if t.accept("}") {
			t.end()
			return body
		}
		op := t.op(o, rank, len(body))
		if op.Kind == OpPipeline {
			t.failf("a pipeline within a pipeline")
		}
		body = append(body, op)
	}
	t.failf("the pipeline does not end")
	return body
}

// op reads operation number n of its list, without the body of a pipeline.
func (t *textReader) op(o *OneSided, rank Rank, n int) Op {
	t.id(n)
	op := Op{Parts: 1}
	name := t.word()
	kind, err := ParseOpKind(string(name))
	if err != nil && t.err == nil {
		t.at -= len(name)
		t.failf("%v", err)
	}
	op.Kind = kind
	if len(kind.Vias()) > 0 {
		op.Via = t.channelKind()
	}
	for r := ReduceSum; r <= ReduceProd; r++ {
		if t.accept(r.String()) {
			op.Reduce = r
		}
	}
	op.Refs.Start = int32(len(o.Refs))
	if t.accept("on") {
		for c := t.peek(); c >= '0' && c <= '9'; c = t.peek() {
			o.Refs = append(o.Refs, t.int32(0))
		}
	}
	op.Refs.End = int32(len(o.Refs))
	op.Src = t.operands(o, rank)
	op.Dst = Span{op.Src.End, op.Src.End}
	if t.accept("->") {
		op.Dst = t.operands(o, rank)
	}
	if op.Kind == OpBarrier {
		op.Parts = t.number("of", 1)
	} else if t.accept("part") {
		op.Part = t.int32(0)
		op.Parts = t.number("of", 1)
	}
	if op.Kind == OpPipeline {
		t.expect("unit")
		op.UnitBytes = t.int64(1, 1<<62)
		op.UnitChunks = t.number("chunks", 1)
		t.expect("{")
	}
	op.Pos = t.position()
	return op
}

// operands reads a list as appendOperands wrote it; none if none follows.
func (t *textReader) operands(o *OneSided, rank Rank) Span {
	s := Span{Start: int32(len(o.Operands))}
	for more := false; ; more = true {
		a, ok := t.operand(rank)
		if !ok && more {
			t.failf("got %s, want an operand after the comma", t.rest())
		}
		if !ok {
			break
		}
		o.Operands = append(o.Operands, a)
		if !t.accept(",") {
			break
		}
	}
	s.End = int32(len(o.Operands))
	return s
}

func (t *textReader) operand(rank Rank) (Operand, bool) {
	a := Operand{Rank: rank, Group: None}
	switch c := t.peek(); {
	case t.accept("group"):
		a.Rank, a.Group = None, t.int32(0)
		t.expect(".")
	case c >= '0' && c <= '9':
		a.Rank = Rank(t.int32(0))
		t.expect(".")
	case !t.placeNext():
		return a, false
	}
	place := t.place()
	a.Buf, a.Index = place.Buf, place.Index
	a.Size = t.count()
	a.Packets = t.accept("packets")
	return a, true
}
