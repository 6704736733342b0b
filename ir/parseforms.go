package ir

import (
	"io"
	"math"
)

// ParseChunkDAG reads what ChunkDAG.WriteText wrote. Positions are numbered in
// the order of their first use. Errors are *diag.Message with the place in file,
// a name for messages only.
func ParseChunkDAG(r io.Reader, file string) (*ChunkDAG, error) {
	t := newTextReader(r, file)
	d := &ChunkDAG{Spec: t.spec(chunkDAGWord, noLines)}
	t.dagBuffers(d.Spec)
	for t.next() {
		t.id(len(d.Ops))
		op := t.chunkOp()
		if t.err == nil {
			t.fail(d.validateOp(&op))
		}
		d.Ops = append(d.Ops, op)
	}
	if t.err != nil {
		return nil, t.result()
	}
	d.Positions = t.list
	return d, nil
}

// noLines is for forms whose header has no lines of its own.
func noLines(string) bool { return false }

// dagBuffers checks the buffers of a form whose nodes name them.
func (t *textReader) dagBuffers(s *Spec) {
	if t.err == nil {
		t.failFile(s.validate(true))
	}
}

// id reads the number that starts a node's line.
func (t *textReader) id(want int) { t.int64(int64(want), int64(want)) }

func (t *textReader) loc() Loc {
	rank := Rank(t.int32(0))
	t.expect(".")
	p := t.place()
	return Loc{rank, p.Buf, p.Index}
}

func (t *textReader) chunkOp() ChunkOp {
	var op ChunkOp
	if t.accept(ChunkReduce.String()) {
		op.Kind = ChunkReduce
	} else {
		t.expect(ChunkCopy.String())
	}
	op.Src = t.loc()
	t.expect("->")
	op.Dst = t.loc()
	op.Count = t.count()
	op.Chan = t.optional("ch", 0, None)
	op.SendTB = t.optional("sendtb", 0, None)
	op.RecvTB = t.optional("recvtb", 0, None)
	op.Parallel = t.optional("parallel", 1, 1)
	op.Instance = t.optional("instance", 0, 0)
	op.Pos = t.position()
	return op
}

// ParseInstrDAG reads what InstrDAG.WriteText wrote; see ParseChunkDAG.
func ParseInstrDAG(r io.Reader, file string) (*InstrDAG, error) {
	t := newTextReader(r, file)
	d := &InstrDAG{Spec: t.spec(instrDAGWord, noLines)}
	t.dagBuffers(d.Spec)
	for t.next() {
		t.id(len(d.Instrs))
		d.Instrs = append(d.Instrs, t.instr())
	}
	if t.err == nil {
		t.failFile(d.Validate())
	}
	if t.err != nil {
		return nil, t.result()
	}
	d.Positions = t.list
	return d, nil
}

func (t *textReader) instr() Instr {
	var in Instr
	in.Rank = Rank(t.number("rank", 0))
	in.Kind = t.stepKind()
	in.Src, in.Dst, in.Count = t.places()
	in.RecvFrom = InstrID(t.optional("from", 0, None))
	in.SendTo = InstrID(t.optional("to", 0, None))
	in.Chan = t.optional("ch", 0, None)
	in.TB = t.optional("tb", 0, None)
	in.Instance = t.optional("instance", 0, 0)
	in.Op = OpID(t.optional("op", 0, None))
	in.Pos = t.position()
	return in
}

// ParseProgram reads what Program.WriteText wrote; see ParseChunkDAG. Deps are
// in the order of the steps that wait.
func ParseProgram(r io.Reader, file string) (*Program, error) {
	return parseProgram(newTextReader(r, file))
}

// ParseProgramHere is ParseProgram for programs that people write: a step without a
// position is where it stands in the file.
func ParseProgramHere(r io.Reader, file string) (*Program, error) {
	t := newTextReader(r, file)
	t.here = true
	return parseProgram(t)
}

func parseProgram(t *textReader) (*Program, error) {
	p := &Program{}
	p.Spec = t.spec(programWord, func(key string) bool { return t.programLine(p, key) })
	// Steps call the one scratch buffer of a rank s, whatever the header names.
	t.buffers = map[string]BufferID{"s": FirstScratch}
	for t.next() {
		switch {
		case t.accept("gpu"):
			t.gpu(p)
		case p.OneSided != nil:
			t.oneSidedLine(p)
		case t.accept("tb"):
			t.threadBlock(p)
		default:
			t.step(p)
		}
	}
	if t.err == nil && p.OneSided != nil {
		p.OneSided.Packets = p.Protocol == LL
		p.OneSided.PairChannels()
	}
	if t.err == nil {
		t.failFile(p.Validate())
	}
	if t.err != nil {
		return nil, t.result()
	}
	p.Positions = t.list
	return p, nil
}

func (t *textReader) programLine(p *Program, key string) bool {
	switch key {
	case "transport":
		p.Transport.Slots = t.number("slots", 0)
		t.expect("bytes")
		p.Transport.SlotBytes = t.int64(0, math.MaxInt64)
	case "window":
		t.expect("min")
		p.MinBytes = t.int64(0, math.MaxInt64)
		t.expect("max")
		p.MaxBytes = t.int64(0, math.MaxInt64)
	case "one-sided":
		t.oneSidedHeader(p)
	case "group":
		t.group(p)
	default:
		return false
	}
	return true
}

func (t *textReader) gpu(p *Program) {
	t.id(len(p.GPUs))
	var g GPU
	for _, b := range [...]struct {
		word   string
		chunks *int32
	}{{"input=", &g.Input}, {"output=", &g.Output}, {"scratch=", &g.Scratch}} {
		t.expect(b.word)
		from := t.at
		*b.chunks = t.int32(0)
		t.hold(&t.chunks, from, int64(*b.chunks))
	}
	t.end()
	p.GPUs = append(p.GPUs, g)
	if p.OneSided != nil {
		p.OneSided.GPUs = append(p.OneSided.GPUs, OneSidedGPU{})
	}
}

func (t *textReader) threadBlock(p *Program) {
	if len(p.GPUs) == 0 {
		t.failf("a thread block before the first gpu")
		return
	}
	g := &p.GPUs[len(p.GPUs)-1]
	t.id(len(g.TBs))
	var b ThreadBlock
	b.Send = Rank(t.number("send=", math.MinInt32))
	b.Recv = Rank(t.number("recv=", math.MinInt32))
	b.Chan = t.number("ch=", math.MinInt32)
	t.end()
	g.TBs = append(g.TBs, b)
}

func (t *textReader) step(p *Program) {
	var b *ThreadBlock
	if n := len(p.GPUs); n > 0 && len(p.GPUs[n-1].TBs) > 0 {
		tbs := p.GPUs[n-1].TBs
		b = &tbs[len(tbs)-1]
	} else {
		t.failf("got %s, want a gpu and a tb before the first step", t.rest())
		return
	}
	t.id(len(b.Steps))
	s := Step{Remote: NoPlace}
	s.Kind = t.stepKind()
	s.Src, s.Dst, s.Count = t.places()
	s.RecvPeer = Rank(t.optional("from", math.MinInt32, None))
	s.SendPeer = Rank(t.optional("to", math.MinInt32, None))
	if t.accept("at") {
		s.Remote = t.place()
	}
	s.Chan = t.optional("ch", math.MinInt32, b.Chan)
	s.DepStart = int32(len(p.Deps))
	if t.accept("wait") {
		t.deps(p)
	}
	s.DepEnd = int32(len(p.Deps))
	s.Post = t.accept("post")
	s.Pos = t.position()
	b.Steps = append(b.Steps, s)
}

func (t *textReader) deps(p *Program) {
	for {
		tb := t.any32()
		t.expect(":")
		p.Deps = append(p.Deps, Dep{TB: tb, Step: t.any32()})
		if c := t.peek(); t.err != nil || c != '-' && (c < '0' || c > '9') {
			return
		}
	}
}
