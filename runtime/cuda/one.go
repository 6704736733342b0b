package cuda

import (
	"fmt"
	goruntime "runtime"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// The structures of mscclsh_cuda.h that hold one-sided programs.
type (
	cOp struct {
		unitBytes          int64
		unitChunks         int32
		kind, via, reduce  int32
		srcStart, srcEnd   int32
		dstStart, dstEnd   int32
		refStart, refEnd   int32
		part, parts        int32
		bodyStart, bodyEnd int32
	}
	cOperand struct {
		rank, buf, index, size int32
		packets, _             int32
	}
	cChannel struct{ kind, peer, pair, _ int32 }
	cSpan    struct{ start, end int32 }

	cOneProgram struct {
		tbs                              *int32
		blocks                           *cSpan
		nChannels                        *int32
		channels                         *cChannel
		nSemaphores, semaphores          *int32
		ops                              *cOp
		operands                         *cOperand
		refs                             *int32
		chunks, baseBuf, baseChunk       *int32
		divides                          *cDivide
		nOps, nOperands, nRefs, nDivides int64
		packets, doubleScratch           int32
		alignment, threads               int32
	}
)

// packetData divides the data of packets: no smaller ones are known here, bytes.
const packetData = 4

// oneFlat is a one-sided program in the tables that the library reads.
type oneFlat struct {
	blocks      []cSpan
	nChannels   []int32 // of each rank
	channels    []cChannel
	nSemaphores []int32 // of each rank
	semaphores  []int32
	ops         []cOp
	operands    []cOperand
}

// flattenOne checks all that execution relies on and makes the tables.
func flattenOne(p *ir.Program) (*flat, error) {
	if err := p.Validate(); err != nil {
		return nil, diag.Errorf(diag.Pos{}, "program", "run: %v", err)
	}
	o := p.OneSided
	if o.Packets && o.Alignment%packetData != 0 {
		return nil, diag.Errorf(diag.Pos{}, "program", "run: packets carry %d bytes each, which an alignment of %d bytes doesn't divide into",
			packetData, o.Alignment)
	}
	f := &flat{prog: p, one: &oneFlat{}}
	for r := range o.GPUs {
		if err := f.place(ir.Rank(r)); err != nil {
			return nil, err
		}
		f.divide(ir.Rank(r))
		f.addGPU(&o.GPUs[r])
	}
	for i := range o.Operands {
		a := &o.Operands[i]
		x := cOperand{rank: int32(a.Rank), buf: int32(a.Buf), index: a.Index, size: a.Size}
		if a.Packets {
			x.packets = 1
		}
		f.one.operands = append(f.one.operands, x)
	}
	for i := range o.Ops {
		f.addOp(&o.Ops[i])
	}
	return f, f.checkOps()
}

func (f *flat) addGPU(g *ir.OneSidedGPU) {
	one := f.one
	f.tbs = append(f.tbs, int32(len(g.Blocks)))
	for _, b := range g.Blocks {
		one.blocks = append(one.blocks, cSpan{b.Start, b.End})
	}
	one.nChannels = append(one.nChannels, int32(len(g.Channels)))
	for _, c := range g.Channels {
		one.channels = append(one.channels, cChannel{kind: int32(c.Kind), peer: int32(c.Peer), pair: c.Pair})
	}
	one.nSemaphores = append(one.nSemaphores, int32(len(g.Semaphores)))
	one.semaphores = append(one.semaphores, g.Semaphores...)
}

func (f *flat) addOp(op *ir.Op) {
	f.one.ops = append(f.one.ops, cOp{unitBytes: op.UnitBytes, unitChunks: op.UnitChunks, kind: int32(op.Kind), via: int32(op.Via),
		reduce: int32(op.Reduce), srcStart: op.Src.Start, srcEnd: op.Src.End, dstStart: op.Dst.Start, dstEnd: op.Dst.End,
		refStart: op.Refs.Start, refEnd: op.Refs.End, part: op.Part, parts: op.Parts, bodyStart: op.Body.Start, bodyEnd: op.Body.End})
}

// oneAt is an operation, and who does it.
type oneAt struct {
	rank   ir.Rank
	tb     int32
	index  int32  // of OneSided.Ops
	number string // as listings have it
	op     *ir.Op
	turns  *ir.Op // the pipeline that it is in, or nil
}

// eachOp calls do for every operation, by rank and thread block, until it fails. Bodies
// follow their pipelines.
func (f *flat) eachOp(do func(at *oneAt) error) error {
	o := f.prog.OneSided
	for r := range o.GPUs {
		for t, s := range o.GPUs[r].Blocks {
			for i := s.Start; i < s.End; i++ {
				op := &o.Ops[i]
				at := &oneAt{rank: ir.Rank(r), tb: int32(t), index: i, number: fmt.Sprint(i - s.Start), op: op}
				if err := do(at); err != nil {
					return err
				}
				for k := op.Body.Start; k < op.Body.End; k++ {
					inner := &oneAt{rank: at.rank, tb: at.tb, index: k, number: fmt.Sprintf("%s.%d", at.number, k-op.Body.Start),
						op: &o.Ops[k], turns: op}
					if err := do(inner); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// checkOps refuses operations that no library here can do.
func (f *flat) checkOps() error {
	o := f.prog.OneSided
	parts := map[[2]int32]int32{} // of a rank's barrier
	return f.eachOp(func(at *oneAt) error {
		op := at.op
		bad := func(code, format string, args ...any) *diag.Message {
			return diag.Errorf(f.prog.Pos(op.Pos), code, "run: rank %d thread block %d op %s (%v): "+format,
				append([]any{at.rank, at.tb, at.number, op.Kind}, args...)...)
		}
		if op.Via == ir.ChannelSwitch {
			return bad("one-sided", "switch channels need multicast between GPUs, which is left alone here").
				Suggest("run it with --backend cpu, which emulates them")
		}
		for _, list := range [][]ir.Operand{o.Sources(op), o.Destinations(op)} {
			for _, a := range list {
				if have := f.chunks[3*int(a.Rank)+int(a.Buf)]; int64(a.Index)+int64(a.Size) > int64(have) {
					return bad("bounds", "%s[%d:%d] of rank %d, which has %d chunks", bufferNames[a.Buf], a.Index,
						int64(a.Index)+int64(a.Size), a.Rank, have)
				}
			}
		}
		for _, ref := range o.RefsOf(op) {
			switch op.Kind {
			case ir.OpBarrier:
				key := [2]int32{int32(at.rank), ref}
				if n, known := parts[key]; known && n != op.Parts {
					return bad("program", "barrier %d is for %d thread blocks here and for %d elsewhere", ref, op.Parts, n)
				}
				parts[key] = op.Parts
			case ir.OpSignal, ir.OpRelaxedSignal, ir.OpPutSignal, ir.OpPutSignalFlush, ir.OpWait, ir.OpRelaxedWait:
				if c := o.GPUs[at.rank].Channels[ref]; c.Pair < 0 {
					return bad("program", "channel %d to rank %d has no other end", ref, c.Peer)
				}
			}
		}
		return nil
	})
}

// loadOne loads a one-sided program.
func (c *Comm) loadOne(f *flat, x *Program) *failure {
	var pins goruntime.Pinner
	defer pins.Unpin()
	o, one := f.prog.OneSided, f.one
	t := cOneProgram{tbs: pinned(&pins, f.tbs), blocks: pinned(&pins, one.blocks), nChannels: pinned(&pins, one.nChannels),
		channels: pinned(&pins, one.channels), nSemaphores: pinned(&pins, one.nSemaphores), semaphores: pinned(&pins, one.semaphores),
		ops: pinned(&pins, one.ops), operands: pinned(&pins, one.operands), refs: pinned(&pins, o.Refs),
		chunks: pinned(&pins, f.chunks), baseBuf: pinned(&pins, f.baseBuf), baseChunk: pinned(&pins, f.baseChunk),
		divides: pinned(&pins, f.divides), nOps: int64(len(one.ops)), nOperands: int64(len(one.operands)),
		nRefs: int64(len(o.Refs)), nDivides: int64(len(f.divides)), alignment: o.Alignment, threads: o.ThreadsPerBlock}
	if o.Packets {
		t.packets = 1
	}
	if o.DoubleScratch {
		t.doubleScratch = 1
	}
	return c.lib.call(func(e *byte, size int64) int32 { return c.lib.oneLoad(c.handle, &t, &x.handle, e, size) })
}

// checkOneSize refuses sizes, types and reductions that a one-sided program can't be run
// with: every chunk has to be a whole number of units of its alignment, which elements
// are not cut by, and a reduction that it fixes is the run's.
func (f *flat) checkOneSize(l *runtime.Layout, nBytes int64, op runtime.ReduceOp) error {
	o, size := f.prog.OneSided, int64(l.DType.Size())
	align := int64(o.Alignment)
	if align%size != 0 && l.Chunks > 0 {
		return diag.Errorf(diag.Pos{}, "dtype", "run: ranges are cut at multiples of %d bytes, within %v elements of %d", align, l.DType, size)
	}
	if unit := align * int64(l.Chunks); unit > 0 && (nBytes%unit != 0 || nBytes != l.PaddedBytes()) {
		return diag.Errorf(diag.Pos{}, "size", "run: %d bytes can't be cut into %d chunks that are multiples of %d bytes",
			nBytes, l.Chunks, align).Suggest("take a multiple of %d", unit)
	}
	return f.eachOp(func(at *oneAt) error {
		bad := func(code, format string, args ...any) *diag.Message {
			return diag.Errorf(f.prog.Pos(at.op.Pos), code, "run: rank %d thread block %d op %s (%v): "+format,
				append([]any{at.rank, at.tb, at.number, at.op.Kind}, args...)...)
		}
		unit := at.op.UnitBytes
		if at.op.Kind == ir.OpPipeline && (unit%size != 0 || o.Packets && unit%packetData != 0) {
			return bad("dtype", "units of %d bytes cut %v elements of %d", unit, l.DType, size)
		}
		fix, ok := fixedReductions[at.op.Reduce]
		if !ok || fix == op || fix == runtime.Sum && op == runtime.Avg {
			return nil
		}
		if k := f.prog.Coll.Kind; k == ir.AllReduce || k == ir.ReduceScatter || k == ir.ReduceTo {
			return bad("op", "the program reduces by %v, whatever the run asks for", fix).Suggest("take %v", fix)
		}
		return nil
	})
}

// turnsOf is how often an operation runs in a launch.
func (at *oneAt) turnsOf(chunk int64) int64 {
	if at.turns == nil {
		return 1
	}
	return (int64(at.turns.UnitChunks)*chunk + at.turns.UnitBytes - 1) / at.turns.UnitBytes
}

// moved is the payload that a launch moves between ranks, in bytes.
func (f *flat) moved(chunk int64) (bytes int64) {
	o := f.prog.OneSided
	_ = f.eachOp(func(at *oneAt) error {
		for _, list := range [][]ir.Operand{o.Sources(at.op), o.Destinations(at.op)} {
			for _, a := range list {
				if a.Rank == at.rank {
					continue
				}
				n := cutBytes(int64(a.Size)*chunk, int64(o.Alignment), int64(at.op.Part), int64(at.op.Parts))
				if at.turns != nil {
					n = min(n, at.turnsOf(chunk)*at.turns.UnitBytes)
				}
				bytes += n
			}
		}
		return nil
	})
	return bytes
}

// cutBytes is the length of part k of n bytes in p parts, all multiples of a unit; the
// first ones take the remainder.
func cutBytes(n, unit, k, p int64) int64 {
	q, rest := n/unit/p, n/unit%p
	if k < rest {
		q++
	}
	return q * unit
}

// signals joins the k-th operation that signals on a channel with the k-th that waits
// there, of channels that one thread block signals on and one waits for, outside of
// pipelines.
func (f *flat) signals() [][2]stepOf {
	type end struct{ rank, channel int32 }
	o := f.prog.OneSided
	given, taken := map[end][]stepOf{}, map[end][]stepOf{}
	var order []end
	_ = f.eachOp(func(at *oneAt) error {
		for _, ref := range o.RefsOf(at.op) {
			step := stepOf{rank: int32(at.rank), tb: at.tb, step: at.index}
			if at.turns != nil {
				step.tile = -1 // of several turns
			}
			switch at.op.Kind {
			case ir.OpSignal, ir.OpRelaxedSignal, ir.OpPutSignal, ir.OpPutSignalFlush:
				c := o.GPUs[at.rank].Channels[ref]
				to := end{int32(c.Peer), c.Pair}
				if given[to] == nil {
					order = append(order, to)
				}
				given[to] = append(given[to], step)
			case ir.OpWait, ir.OpRelaxedWait:
				to := end{int32(at.rank), ref}
				taken[to] = append(taken[to], step)
			}
		}
		return nil
	})
	var out [][2]stepOf
	for _, to := range order {
		from, by := given[to], taken[to]
		for i := range min(len(from), len(by)) {
			if from[i].tb != from[0].tb || by[i].tb != by[0].tb || from[i].tile < 0 || by[i].tile < 0 {
				break
			}
			out = append(out, [2]stepOf{from[i], by[i]})
		}
	}
	return out
}

// opAt finds an operation by its index.
func (f *flat) opAt(rank, tb, index int32) (found *oneAt) {
	_ = f.eachOp(func(at *oneAt) error {
		if int32(at.rank) == rank && at.tb == tb && at.index == index {
			found = at
		}
		return nil
	})
	return found
}
