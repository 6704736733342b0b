package table

import (
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// scratchTimes is how many bytes of scratch a byte of its chunks takes.
func (p *Program) scratchTimes() int64 {
	if p.One == nil {
		return 1
	}
	return p.One.ScratchTimes()
}

// unit is what the bytes of a chunk must be a multiple of.
func (p *Program) unit() int32 {
	if p.One == nil {
		return 1
	}
	return p.One.Alignment
}

// one reads what a one-sided program has beside the rest.
func (r *reader) one(p *Program, at uint64, tbs int64) error {
	data, err := r.array(at, 1, oneBytes)
	if err != nil {
		return fmt.Errorf("its operations: %v", err)
	}
	var c cOne
	r.structure(data, &c)
	o := &cuda.OneTables{Packets: c.Packets == 1, DoubleScratch: c.DoubleScratch == 1, Alignment: c.Alignment, Threads: c.Threads}
	switch {
	case c.Packets != 0 && c.Packets != 1 || c.DoubleScratch != 0 && c.DoubleScratch != 1:
		return fmt.Errorf("packets %d and halves of scratch %d are neither yes nor no", c.Packets, c.DoubleScratch)
	case o.Packets != (p.Protocol == ir.LL) || p.Protocol > ir.LL:
		return fmt.Errorf("protocol %v and packets %t disagree", p.Protocol, o.Packets)
	case c.Alignment < 1 || c.Threads < 1 || c.Threads > maxOneThreads:
		return fmt.Errorf("ranges cut at multiples of %d bytes, by blocks of %d threads", c.Alignment, c.Threads)
	}
	ranks := int64(p.Ranks)
	counts := [8]int64{tbs, ranks, c.AllChannels, ranks, c.AllSemaphores, c.NOps, c.NOperands, c.NRefs}
	sizes := [8]int64{int64(cuda.SpanWords), 1, int64(cuda.ChannelWords), 1, 1, int64(cuda.OpWords), int64(cuda.OperandWords), 1}
	for i, to := range oneArrays(o) {
		if *to, err = r.words(c.Tables[i], counts[i], sizes[i]); err != nil {
			return fmt.Errorf("table %d of its operations: %v", i, err)
		}
	}
	p.One = o
	return p.soundOne(c.AllChannels, c.AllSemaphores)
}

// maxOneThreads bounds the threads that a block of a one-sided program asks for.
const maxOneThreads = 1 << 16

// soundOne checks that the tables add up, and that nothing in them leads out of them: with
// that they are a program, whose sense is judged where it is loaded or looked at.
func (p *Program) soundOne(channels, semaphores int64) error {
	o := p.One
	for _, x := range []struct {
		what string
		of   []int32
		want int64
	}{{"channels", o.NChannels, channels}, {"semaphores", o.NSemaphores, semaphores}} {
		have := int64(0)
		for _, n := range x.of {
			if n < 0 {
				return fmt.Errorf("a rank has %d %s", n, x.what)
			}
			have += int64(n)
		}
		if have != x.want {
			return fmt.Errorf("%d %s, its ranks have %d", x.want, x.what, have)
		}
	}
	for i := 0; i < len(o.Channels); i += cuda.ChannelWords {
		if w := o.Channels[i:]; uint32(w[0]) > uint32(ir.ChannelPort) || uint32(w[1]) >= uint32(p.Ranks) || w[3] != 0 {
			return fmt.Errorf("channel %d goes to rank %d and is of kind %d", i/cuda.ChannelWords, w[1], w[0])
		}
	}
	ops := int32(len(o.Ops) / cuda.OpWords)
	for i := 0; i < len(o.Blocks); i += cuda.SpanWords {
		if !within(o.Blocks[i], o.Blocks[i+1], ops) {
			return fmt.Errorf("thread block %d has operations %d to %d of %d", i/cuda.SpanWords, o.Blocks[i], o.Blocks[i+1], ops)
		}
	}
	for i := 0; i < len(o.Operands); i += cuda.OperandWords {
		w := o.Operands[i:]
		if uint32(w[0]) >= uint32(p.Ranks) || uint32(w[1]) > uint32(ir.FirstScratch) || w[2] < 0 || w[3] < 1 || uint32(w[4]) > 1 || w[5] != 0 {
			return fmt.Errorf("operand %d is chunks %d of buffer %d of rank %d from %d on", i/cuda.OperandWords, w[3], w[1], w[0], w[2])
		}
	}
	return p.soundOps(ops)
}

// within reports whether start:end is a run of n things.
func within(start, end, n int32) bool { return start >= 0 && start <= end && end <= n }

// soundOps checks operations.
func (p *Program) soundOps(ops int32) error {
	o := p.One
	operands, refs := int32(len(o.Operands)/cuda.OperandWords), int32(len(o.Refs))
	for i := range int(ops) {
		w := o.Ops[i*cuda.OpWords:]
		switch {
		case uint32(w[3]) > uint32(ir.OpPipeline) || uint32(w[4]) > uint32(ir.ChannelSwitch) || uint32(w[5]) > uint32(ir.ReduceProd):
			return fmt.Errorf("operation %d is of kind %d via %d with reduction %d", i, w[3], w[4], w[5])
		case !within(w[6], w[7], operands) || !within(w[8], w[9], operands) || !within(w[10], w[11], refs) || !within(w[14], w[15], ops):
			return fmt.Errorf("operation %d has operands, references or operations that don't exist", i)
		case ir.ChannelKind(w[4]) == ir.ChannelSwitch:
			return fmt.Errorf("operation %d goes via a switch, which needs multicast between GPUs", i)
		}
	}
	return nil
}

// fitsOne checks an entry against a one-sided program.
func (e *Entry) fitsOne(p *Program) error {
	o := p.One.OneSided(p.Tables.TBs)
	reaches := cuda.Reaches(&ir.Program{OneSided: o})
	switch {
	case reaches != (e.Memory == Windows):
		return fmt.Errorf("memory %v with a program of which touching peers' buffers is %t", e.Memory, reaches)
	case e.Mixable && e.InPlace != e.OutOfPlace:
		return fmt.Errorf("it mixes two one-sided programs, which can't meet")
	case e.InPlace == e.OutOfPlace && !e.Mixable:
		return fmt.Errorf("one program is for both places, and they don't mix")
	case e.Mixable && writesInput(o):
		return fmt.Errorf("its program for both places overwrites inputs")
	}
	if bad := e.DTypes &^ dtypesOf(o); bad != 0 {
		return fmt.Errorf("data types %v, which its program cuts", bad)
	}
	if bad := e.Ops &^ opsOf(o); e.Collective.Reduces() && bad != 0 {
		return fmt.Errorf("operations %v, and its program has others", bad)
	}
	return nil
}

// dtypesOf are the data types that a one-sided program can be run with.
func dtypesOf(o *ir.OneSided) (s DTypes) {
	for d := range runtime.DType(len(runtime.DTypeNames())) {
		if cuda.Runs(o, d) {
			s |= 1 << d
		}
	}
	return s
}

// opsOf are the reductions that a one-sided program can be run with.
func opsOf(o *ir.OneSided) (s Ops) {
	for x := range runtime.ReduceOp(len(runtime.ReduceOpNames())) {
		if cuda.Reduces(o, x) {
			s |= 1 << x
		}
	}
	return s
}

// ForBothPlaces reports whether a one-sided program may serve calls in place and others by
// itself, if it holds with either: other ranks touch nothing of a rank but its scratch, and
// it writes no input.
func ForBothPlaces(p *ir.Program) bool { return !cuda.Reaches(p) && !writesInput(p.OneSided) }

// writesInput reports whether a program writes what it names as a rank's input.
func writesInput(o *ir.OneSided) bool {
	return slices.ContainsFunc(o.Ops, func(op ir.Op) bool {
		return slices.ContainsFunc(o.Destinations(&op), func(x ir.Operand) bool { return x.Buf == ir.Input })
	})
}

// sparesOne is sparesInputs for a one-sided program: what it writes of inputs' memory, at
// whatever rank, is what that rank hands back.
func sparesOne(p *ir.Program) bool {
	outputs := make([]map[ir.Place]bool, len(p.GPUs))
	for r := range outputs {
		outputs[r] = demanded(p, ir.Rank(r))
	}
	o := p.OneSided
	for i := range o.Ops {
		for _, x := range o.Destinations(&o.Ops[i]) {
			if x.Group != ir.None || x.Buf >= ir.FirstScratch {
				continue
			}
			for k := range x.Size {
				if buf, at := p.Coll.Canon(x.Rank, x.Buf, x.Index+k); !outputs[x.Rank][ir.Place{Buf: buf, Index: at}] {
					return false
				}
			}
		}
	}
	return true
}
