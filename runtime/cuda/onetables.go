package cuda

import (
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// The words (int32) that one element of a one-sided program's tables has: mscclsh_span,
// mscclsh_channel, mscclsh_op and mscclsh_operand of mscclsh_cuda.h.
const (
	SpanWords    = 2
	ChannelWords = 4
	OpWords      = 16
	OperandWords = 6
)

// OneTables are what a one-sided program has beside Tables, of which it leaves StepsPerTB,
// Steps and Deps empty: the arrays of mscclsh_one_program, word by word, low words first.
type OneTables struct {
	Blocks        []int32 // SpanWords each, of rank 0's first thread block, its second, ...
	NChannels     []int32 // of each rank
	Channels      []int32 // ChannelWords each
	NSemaphores   []int32 // of each rank
	Semaphores    []int32 // the values that every launch begins with
	Ops           []int32 // OpWords each
	Operands      []int32 // OperandWords each
	Refs          []int32
	Packets       bool  // scratch holds packets and takes twice the bytes
	DoubleScratch bool  // it has two halves that launches alternate between
	Alignment     int32 // bytes: ranges are cut at multiples of it
	Threads       int32 // of a thread block where nothing else is said
}

// ScratchTimes is how many bytes of scratch a byte of its chunks takes.
func (o *OneTables) ScratchTimes() int64 {
	times := int64(1)
	if o.Packets {
		times *= 2
	}
	if o.DoubleScratch {
		times *= 2
	}
	return times
}

// FlattenOne makes the tables of a one-sided program. It refuses what Comm.Load would refuse.
func FlattenOne(p *ir.Program) (*Tables, *OneTables, error) {
	if p == nil || p.Spec == nil || p.OneSided == nil {
		return nil, nil, diag.Errorf(diag.Pos{}, "program", "run: there is no one-sided program")
	}
	f, err := flattenOne(p)
	if err != nil {
		return nil, nil, err
	}
	s := p.OneSided
	o := &OneTables{NChannels: f.one.nChannels, NSemaphores: f.one.nSemaphores, Semaphores: f.one.semaphores, Refs: s.Refs,
		Packets: s.Packets, DoubleScratch: s.DoubleScratch, Alignment: s.Alignment, Threads: s.ThreadsPerBlock}
	for _, b := range f.one.blocks {
		o.Blocks = append(o.Blocks, b.start, b.end)
	}
	for _, c := range f.one.channels {
		o.Channels = append(o.Channels, c.kind, c.peer, c.pair, 0)
	}
	for _, x := range f.one.operands {
		o.Operands = append(o.Operands, x.rank, x.buf, x.index, x.size, x.packets, 0)
	}
	for i := range f.one.ops {
		x := &f.one.ops[i]
		o.Ops = append(o.Ops, int32(uint32(x.unitBytes)), int32(x.unitBytes>>32), x.unitChunks, x.kind, x.via, x.reduce,
			x.srcStart, x.srcEnd, x.dstStart, x.dstEnd, x.refStart, x.refEnd, x.part, x.parts, x.bodyStart, x.bodyEnd)
	}
	return &Tables{TBs: f.tbs, Chunks: f.chunks, BaseBuf: f.baseBuf, BaseChunk: f.baseChunk, Divides: asWords(f.divides)}, o, nil
}

// OneSided is the program that the tables say, without places in a script. tbs counts the
// thread blocks of each rank. The tables must add up (Sound); whether they make sense is for
// ir.Program.Validate to say.
func (o *OneTables) OneSided(tbs []int32) *ir.OneSided {
	s := &ir.OneSided{Packets: o.Packets, DoubleScratch: o.DoubleScratch, Alignment: o.Alignment, ThreadsPerBlock: o.Threads, Refs: o.Refs}
	block, channel, semaphore := 0, 0, 0
	for r, n := range tbs {
		var g ir.OneSidedGPU
		for range n {
			g.Blocks = append(g.Blocks, ir.Span{Start: o.Blocks[block], End: o.Blocks[block+1]})
			block += SpanWords
		}
		for range o.NChannels[r] {
			w := o.Channels[channel:]
			g.Channels = append(g.Channels, ir.SignalChannel{Kind: ir.ChannelKind(w[0]), Peer: ir.Rank(w[1]), Pair: w[2]})
			channel += ChannelWords
		}
		n := int(o.NSemaphores[r])
		g.Semaphores = append(g.Semaphores, o.Semaphores[semaphore:semaphore+n]...)
		semaphore += n
		s.GPUs = append(s.GPUs, g)
	}
	for i := 0; i < len(o.Operands); i += OperandWords {
		w := o.Operands[i:]
		s.Operands = append(s.Operands, ir.Operand{Rank: ir.Rank(w[0]), Group: ir.None, Buf: ir.BufferID(w[1]), Index: w[2], Size: w[3], Packets: w[4] != 0})
	}
	for i := 0; i < len(o.Ops); i += OpWords {
		w := o.Ops[i:]
		s.Ops = append(s.Ops, ir.Op{Kind: ir.OpKind(w[3]), Via: ir.ChannelKind(w[4]), Reduce: ir.Reduction(w[5]),
			Src: ir.Span{Start: w[6], End: w[7]}, Dst: ir.Span{Start: w[8], End: w[9]}, Refs: ir.Span{Start: w[10], End: w[11]},
			Part: w[12], Parts: w[13], Body: ir.Span{Start: w[14], End: w[15]}, UnitBytes: o.unitBytes(i / OpWords), UnitChunks: w[2]})
	}
	return s
}

// unitBytes is that of operation i.
func (o *OneTables) unitBytes(i int) int64 {
	w := o.Ops[i*OpWords:]
	return int64(w[1])<<32 | int64(uint32(w[0]))
}

// Reaches reports whether a one-sided program touches the input or the output of another
// rank than the one whose thread block does it.
func Reaches(p *ir.Program) bool {
	o := p.OneSided
	for r := range o.GPUs {
		reaches := func(op *ir.Op) bool {
			for _, list := range [][]ir.Operand{o.Sources(op), o.Destinations(op)} {
				for i := range list {
					if x := &list[i]; x.Buf < ir.FirstScratch && (x.Group != ir.None || int(x.Rank) != r) {
						return true
					}
				}
			}
			return false
		}
		for _, s := range o.GPUs[r].Blocks {
			for i := s.Start; i < s.End; i++ {
				op := &o.Ops[i]
				if reaches(op) {
					return true
				}
				for k := op.Body.Start; k < op.Body.End; k++ {
					if reaches(&o.Ops[k]) {
						return true
					}
				}
			}
		}
	}
	return false
}

// Runs reports whether a one-sided program can be run with a data type, whatever the size:
// nothing that it is cut at cuts elements.
func Runs(o *ir.OneSided, d runtime.DType) bool {
	size := int64(d.Size())
	if int64(o.Alignment)%size != 0 {
		return false
	}
	for i := range o.Ops {
		if o.Ops[i].Kind == ir.OpPipeline && o.Ops[i].UnitBytes%size != 0 {
			return false
		}
	}
	return true
}

// Reduces reports whether a one-sided program reduces by an operation where that is the
// run's: what it fixes must be the same, a sum being what averages are made of.
func Reduces(o *ir.OneSided, op runtime.ReduceOp) bool {
	for i := range o.Ops {
		fix, fixed := fixedReductions[o.Ops[i].Reduce]
		if fixed && reducing(o.Ops[i].Kind) && fix != op && !(fix == runtime.Sum && op == runtime.Avg) {
			return false
		}
	}
	return true
}

// fixedReductions are those that a program can fix.
var fixedReductions = map[ir.Reduction]runtime.ReduceOp{ir.ReduceSum: runtime.Sum, ir.ReduceMin: runtime.Min, ir.ReduceMax: runtime.Max,
	ir.ReduceProd: runtime.Prod}

// reducing reports whether operations of a kind reduce.
func reducing(k ir.OpKind) bool {
	switch k {
	case ir.OpReduceLocal, ir.OpReduceSend, ir.OpReadReduce, ir.OpReadReduceSend, ir.OpReducePackets, ir.OpReduceSendPackets,
		ir.OpReduceCopyPackets, ir.OpReduceCopySendPackets, ir.OpGroupReduceStore:
		return true
	}
	return false
}
