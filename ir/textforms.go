package ir

import (
	"io"
	"strconv"
)

// WriteText writes the program as text: a header, then one operation a line.
// ParseChunkDAG reads it back. d must be well formed: locations inside their
// buffers, as every builder in this module makes them; see Validate.
func (d *ChunkDAG) WriteText(w io.Writer) error {
	if err := d.Validate(); err != nil {
		return err
	}
	t := newTextWriter(w)
	t.spec(chunkDAGWord, d.Spec)
	words := allBufferWords(d.Spec)
	for i := range d.Ops {
		t.buf = strconv.AppendInt(t.buf, int64(i), 10)
		t.buf = append(t.buf, ' ')
		t.buf = appendChunkOp(t.buf, words, &d.Ops[i])
		t.buf = appendPos(t.buf, d.Spec, d.Ops[i].Pos)
		t.endLine()
	}
	return t.finish("chunk DAG")
}

// OpString is operation id in one line, without number and position:
// copy 0.i[3] -> 1.o[3] x1.
func (d *ChunkDAG) OpString(id OpID) string {
	return string(appendChunkOp(nil, bufferWords{spec: d.Spec}, &d.Ops[id]))
}

func appendChunkOp(dst []byte, words bufferWords, op *ChunkOp) []byte {
	dst = append(dst, op.Kind.String()...)
	dst = append(dst, ' ')
	dst = appendLoc(dst, words, op.Src)
	dst = append(dst, " -> "...)
	dst = appendLoc(dst, words, op.Dst)
	dst = append(dst, " x"...)
	dst = strconv.AppendInt(dst, int64(op.Count), 10)
	dst = appendOpt(dst, " ch ", op.Chan, None)
	dst = appendOpt(dst, " sendtb ", op.SendTB, None)
	dst = appendOpt(dst, " recvtb ", op.RecvTB, None)
	dst = appendOpt(dst, " parallel ", op.Parallel, 1)
	return appendOpt(dst, " instance ", op.Instance, 0)
}

// WriteText writes the instructions as text: a header, then one a line.
// ParseInstrDAG reads it back. d must be well formed; see Validate.
func (d *InstrDAG) WriteText(w io.Writer) error {
	if err := d.Validate(); err != nil {
		return err
	}
	t := newTextWriter(w)
	t.spec(instrDAGWord, d.Spec)
	words := allBufferWords(d.Spec)
	for i := range d.Instrs {
		t.buf = strconv.AppendInt(t.buf, int64(i), 10)
		t.buf = append(t.buf, ' ')
		t.buf = appendInstr(t.buf, words, &d.Instrs[i])
		t.buf = appendPos(t.buf, d.Spec, d.Instrs[i].Pos)
		t.endLine()
	}
	return t.finish("instruction DAG")
}

// InstrString is instruction id in one line, without number and position:
// rank 0 rrcs i[3] -> i[3] x1 from 9 to 15. The numbers after from and to are
// those of instructions.
func (d *InstrDAG) InstrString(id InstrID) string {
	return string(appendInstr(nil, bufferWords{spec: d.Spec}, &d.Instrs[id]))
}

func appendInstr(dst []byte, words bufferWords, in *Instr) []byte {
	dst = append(dst, "rank "...)
	dst = strconv.AppendInt(dst, int64(in.Rank), 10)
	dst = append(dst, ' ')
	dst = append(dst, in.Kind.String()...)
	dst = appendPlaces(dst, words, in.Src, in.Dst, in.Count)
	dst = appendOpt(dst, " from ", int32(in.RecvFrom), None)
	dst = appendOpt(dst, " to ", int32(in.SendTo), None)
	dst = appendOpt(dst, " ch ", in.Chan, None)
	dst = appendOpt(dst, " tb ", in.TB, None)
	dst = appendOpt(dst, " instance ", in.Instance, 0)
	return appendOpt(dst, " op ", int32(in.Op), None)
}

// appendPlaces writes what a step moves: [src] [-> dst] xcount.
func appendPlaces(dst []byte, words bufferWords, from, to Place, count int32) []byte {
	if from.Valid() {
		dst = append(dst, ' ')
		dst = appendPlace(dst, words, from)
	}
	if to.Valid() {
		dst = append(dst, " -> "...)
		dst = appendPlace(dst, words, to)
	}
	return appendOpt(dst, " x", count, 0)
}

// WriteText writes the program as text: a header, then a line for each GPU,
// thread block and step. ParseProgram reads it back, with Deps in the order of
// the steps that wait. p must be well formed; see Validate.
func (p *Program) WriteText(w io.Writer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	t := newTextWriter(w)
	t.spec(programWord, p.Spec)
	if p.OneSided == nil {
		t.num("transport slots ", int64(p.Transport.Slots))
		t.num(" bytes ", p.Transport.SlotBytes)
		t.endLine()
	}
	t.num("window min ", p.MinBytes)
	t.num(" max ", p.MaxBytes)
	t.endLine()
	if p.OneSided != nil {
		t.oneSidedHeader(p.OneSided)
	}
	words := stepWords()
	for g := range p.GPUs {
		gpu := &p.GPUs[g]
		t.num("gpu ", int64(g))
		t.num(" input=", int64(gpu.Input))
		t.num(" output=", int64(gpu.Output))
		t.num(" scratch=", int64(gpu.Scratch))
		t.endLine()
		if p.OneSided != nil {
			t.oneSidedGPU(p, Rank(g))
			continue
		}
		for b := range gpu.TBs {
			tb := &gpu.TBs[b]
			t.num("tb ", int64(b))
			t.num(" send=", int64(tb.Send))
			t.num(" recv=", int64(tb.Recv))
			t.num(" ch=", int64(tb.Chan))
			t.endLine()
			for s := range tb.Steps {
				t.num("  ", int64(s))
				t.buf = append(t.buf, ' ')
				t.buf = p.appendStep(t.buf, words, tb, &tb.Steps[s])
				t.buf = appendPos(t.buf, p.Spec, tb.Steps[s].Pos)
				t.endLine()
			}
		}
	}
	return t.finish("program")
}

// StepString is one step in one line, without number and position:
// rrcs i[3] -> i[3] x1 from 7 to 1 at i[3] wait 1:3 post. In a one-sided
// program it is the operation, without the body of a pipeline; see OpString.
func (p *Program) StepString(rank Rank, tb, step int32) string {
	if p.OneSided != nil {
		return p.OpString(rank, p.OneSided.GPUs[rank].Blocks[tb].Start+step)
	}
	b := &p.GPUs[rank].TBs[tb]
	return string(p.appendStep(nil, stepWords(), b, &b.Steps[step]))
}

func (p *Program) appendStep(dst []byte, words bufferWords, tb *ThreadBlock, s *Step) []byte {
	dst = append(dst, s.Kind.String()...)
	dst = appendPlaces(dst, words, s.Src, s.Dst, s.Count)
	dst = appendOpt(dst, " from ", int32(s.RecvPeer), None)
	dst = appendOpt(dst, " to ", int32(s.SendPeer), None)
	if s.Remote.Valid() {
		dst = append(dst, " at "...)
		dst = appendPlace(dst, words, s.Remote)
	}
	dst = appendOpt(dst, " ch ", s.Chan, tb.Chan)
	if s.DepStart < s.DepEnd {
		dst = append(dst, " wait"...)
		for _, d := range p.DepsOf(s) {
			dst = append(dst, ' ')
			dst = strconv.AppendInt(dst, int64(d.TB), 10)
			dst = append(dst, ':')
			dst = strconv.AppendInt(dst, int64(d.Step), 10)
		}
	}
	if s.Post {
		dst = append(dst, " post"...)
	}
	return dst
}
