package cpu

import (
	"sync/atomic"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// oneSided is what a one-sided program has in place of connections.
type oneSided struct {
	signals    [][]*counter // of a rank's channel: the signals that it has given
	semaphores [][]*counter
	barriers   map[[2]int32]*barrier
	packets    []*spot // of a rank: who waits for packets in its scratch
	launch     uint32  // flag of the packets of this run
	ops        int64   // that a run does
	done       atomic.Int64
}

// spot is where workers sleep until something changes.
type spot struct {
	sleepers atomic.Int32 // len(sleeping), to be read without the lock
	sleeping []*worker    // under engine.mu
}

// counter counts signals, or is a semaphore's value.
type counter struct {
	spot
	value   atomic.Int64
	taken   int64 // signals: by the one thread block that waits for them
	initial int64
}

// barrier is one barrier of a rank.
type barrier struct {
	spot
	parts   int64
	arrived atomic.Int64 // since the start of the run
}

// oneOp is an ir.Op with everything resolved.
type oneOp struct {
	kind  ir.OpKind
	index int32 // of OneSided.Ops
	lanes []oneLane
	fold  *runtime.Combine // of a reducing operation

	give, take []*counter
	barrier    *barrier

	// A pipeline:
	body  []oneOp
	unit  int64 // bytes
	turns int64
}

// oneLane is one d... := op(s...) of an operation on n bytes.
type oneLane struct {
	n      int64
	skip   int64 // bytes of the operand before this part of it
	reads  []area
	writes []area
}

// area is where a range of data begins in the memory of a rank. Packets take twice
// the bytes of their data.
type area struct {
	rank    ir.Rank
	at      int64
	packets bool
}

// newOnePlan checks all that execution relies on and resolves the operations.
func newOnePlan(p *ir.Program, l *runtime.Layout, op runtime.ReduceOp) (*plan, error) {
	o := p.OneSided
	bad := func(code, format string, args ...any) error {
		return diag.Errorf(diag.Pos{}, code, "run: "+format, args...)
	}
	align := int64(o.Alignment)
	switch {
	case len(p.GPUs) != int(p.Coll.Ranks) || len(o.GPUs) != len(p.GPUs):
		return nil, bad("program", "the program has %d GPUs, its collective %d ranks", len(o.GPUs), p.Coll.Ranks)
	case align < 1:
		return nil, bad("program", "an alignment of %d bytes", align)
	case o.Packets && align%packetData != 0:
		return nil, bad("program", "packets carry %d bytes each, which an alignment of %d bytes doesn't divide into", packetData, align)
	case align%int64(l.DType.Size()) != 0 && l.Chunks > 0:
		return nil, bad("dtype", "ranges are cut at multiples of %d bytes, within %v elements of %d", align, l.DType, l.DType.Size())
	}
	pl := &plan{prog: p, layout: l, regime: 1, tile: l.ChunkBytes(), tiles: 1,
		one: &oneSided{barriers: map[[2]int32]*barrier{}}}
	pl.ranks = make([]rankMemory, len(p.GPUs))
	for r := range pl.ranks {
		if err := pl.placeRank(ir.Rank(r)); err != nil {
			return nil, err
		}
	}
	return pl, pl.resolveOneSided(op)
}

// checkOneSize refuses sizes that a one-sided program can't cut: every chunk has to
// be a whole number of units of its alignment.
func checkOneSize(p *ir.Program, l *runtime.Layout, nBytes int64) error {
	unit := int64(p.OneSided.Alignment) * int64(l.Chunks)
	if unit < 1 || nBytes%unit == 0 && nBytes == l.PaddedBytes() {
		return nil
	}
	return diag.Errorf(diag.Pos{}, "size", "run: %d bytes can't be cut into %d chunks that are multiples of %d bytes",
		nBytes, l.Chunks, p.OneSided.Alignment).Suggest("take a multiple of %d", unit)
}

// resolveOneSided makes workers, counters and operations.
func (pl *plan) resolveOneSided(op runtime.ReduceOp) error {
	o := pl.prog.OneSided
	for r := range o.GPUs {
		g := &o.GPUs[r]
		var signals, semaphores []*counter
		for range g.Channels {
			signals = append(signals, &counter{})
		}
		for _, v := range g.Semaphores {
			semaphores = append(semaphores, &counter{initial: int64(v)})
		}
		pl.one.signals = append(pl.one.signals, signals)
		pl.one.semaphores = append(pl.one.semaphores, semaphores)
		pl.one.packets = append(pl.one.packets, &spot{})
	}
	for r := range o.GPUs {
		for t, span := range o.GPUs[r].Blocks {
			b := &binder{plan: pl, op: op, w: &worker{rank: ir.Rank(r), tb: int32(t), wake: make(chan struct{}, 1)}}
			ops, err := b.ops(span, false)
			if err != nil {
				return err
			}
			b.w.ops = ops
			pl.workers = append(pl.workers, b.w)
		}
	}
	return nil
}

// binder resolves the operations of one worker.
type binder struct {
	*plan
	op runtime.ReduceOp
	w  *worker
}

func (b *binder) bad(op *ir.Op, code, format string, args ...any) error {
	return diag.Errorf(b.prog.Pos(op.Pos), code, "run: rank %d thread block %d (%v): "+format,
		append([]any{b.w.rank, b.w.tb, op.Kind}, args...)...)
}

func within(s ir.Span, n int) bool { return s.Start >= 0 && s.Start <= s.End && int(s.End) <= n }

func (b *binder) ops(span ir.Span, inner bool) ([]oneOp, error) {
	o := b.prog.OneSided
	if !within(span, len(o.Ops)) {
		return nil, diag.Errorf(diag.Pos{}, "program", "run: rank %d thread block %d has operations %d to %d of %d",
			b.w.rank, b.w.tb, span.Start, span.End, len(o.Ops))
	}
	out := make([]oneOp, 0, span.Len())
	for i := span.Start; i < span.End; i++ {
		op := &o.Ops[i]
		switch {
		case op.Kind > ir.OpPipeline:
			return nil, b.bad(op, "program", "not a known operation")
		case op.Parts < 1 || op.Kind != ir.OpBarrier && (op.Part < 0 || op.Part >= op.Parts):
			return nil, b.bad(op, "program", "part %d of %d", op.Part, op.Parts)
		case !within(op.Src, len(o.Operands)) || !within(op.Dst, len(o.Operands)) || !within(op.Refs, len(o.Refs)):
			return nil, b.bad(op, "program", "operands or references that don't exist")
		}
		x := oneOp{kind: op.Kind, index: i}
		var err error
		switch {
		case op.Kind == ir.OpPipeline:
			err = b.pipeline(&x, op, inner)
		default:
			if err = b.refs(&x, op); err == nil {
				err = b.data(&x, op)
			}
			b.one.ops++
		}
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

func (b *binder) pipeline(x *oneOp, op *ir.Op, inner bool) error {
	size := int64(b.layout.DType.Size())
	switch {
	case inner:
		return b.bad(op, "program", "a pipeline within a pipeline")
	case op.UnitBytes < 1 || op.UnitChunks < 1:
		return b.bad(op, "program", "units of %d bytes of %d chunks", op.UnitBytes, op.UnitChunks)
	case op.UnitBytes%size != 0 || b.prog.OneSided.Packets && op.UnitBytes%packetData != 0:
		return b.bad(op, "dtype", "units of %d bytes cut %v elements of %d", op.UnitBytes, b.layout.DType, size)
	}
	var err error
	before := b.one.ops
	x.body, err = b.ops(op.Body, true)
	x.unit = op.UnitBytes
	x.turns = (int64(op.UnitChunks)*b.layout.ChunkBytes() + x.unit - 1) / x.unit
	b.one.ops = before + (b.one.ops-before)*x.turns
	return err
}

// refs finds counters and barriers.
func (b *binder) refs(x *oneOp, op *ir.Op) error {
	o := b.prog.OneSided
	own := &o.GPUs[b.w.rank]
	for _, n := range o.RefsOf(op) {
		switch op.Kind {
		case ir.OpBarrier:
			key := [2]int32{int32(b.w.rank), n}
			if b.one.barriers[key] == nil {
				b.one.barriers[key] = &barrier{parts: int64(op.Parts)}
			}
			if x.barrier = b.one.barriers[key]; x.barrier.parts != int64(op.Parts) {
				return b.bad(op, "program", "barrier %d is for %d thread blocks here and for %d elsewhere", n, op.Parts, x.barrier.parts)
			}
		case ir.OpSemaphoreAcquire, ir.OpSemaphoreRelease:
			if n < 0 || int(n) >= len(own.Semaphores) {
				return b.bad(op, "program", "semaphore %d of %d", n, len(own.Semaphores))
			}
			if c := b.one.semaphores[b.w.rank][n]; op.Kind == ir.OpSemaphoreAcquire {
				x.take = append(x.take, c)
			} else {
				x.give = append(x.give, c)
			}
		default:
			if n < 0 || int(n) >= len(own.Channels) {
				return b.bad(op, "program", "channel %d of %d", n, len(own.Channels))
			}
			if err := b.channel(x, op, n); err != nil {
				return err
			}
		}
	}
	if op.Kind == ir.OpBarrier && x.barrier == nil {
		return b.bad(op, "program", "a barrier without a number")
	}
	return nil
}

func (b *binder) channel(x *oneOp, op *ir.Op, n int32) error {
	c := &b.prog.OneSided.GPUs[b.w.rank].Channels[n]
	gives, takes := false, false
	switch op.Kind {
	case ir.OpSignal, ir.OpRelaxedSignal, ir.OpPutSignal, ir.OpPutSignalFlush:
		gives = true
	case ir.OpWait, ir.OpRelaxedWait:
		takes = true
	}
	if !gives && !takes {
		return nil
	}
	if c.Peer < 0 || int(c.Peer) >= len(b.one.signals) || c.Pair < 0 || int(c.Pair) >= len(b.one.signals[c.Peer]) {
		return b.bad(op, "program", "channel %d to rank %d has no other end", n, c.Peer)
	}
	if gives {
		x.give = append(x.give, b.one.signals[b.w.rank][n])
		return nil
	}
	s := b.one.signals[c.Peer][c.Pair]
	x.take = append(x.take, s)
	return nil
}

// data resolves operands and the reduction.
func (b *binder) data(x *oneOp, op *ir.Op) error {
	o := b.prog.OneSided
	src, dst := o.Sources(op), o.Destinations(op)
	if len(src) == 0 && len(dst) == 0 {
		return nil
	}
	if least, _ := op.Kind.Operands(true); least == 0 || len(src) == 0 || len(dst) == 0 {
		return b.bad(op, "program", "%d sources and %d destinations", len(src), len(dst))
	}
	if !reduces(op.Kind) {
		if len(src) != len(dst) && len(src) != 1 {
			return b.bad(op, "program", "%d sources and %d destinations", len(src), len(dst))
		}
		for i := range dst {
			var l oneLane
			if err := b.lane(&l, op, src[min(i, len(src)-1):][:1], dst[i:i+1]); err != nil {
				return err
			}
			if len(l.reads) != 1 {
				return b.bad(op, "program", "a source at %d ranks", len(l.reads))
			}
			x.lanes = append(x.lanes, l)
		}
		return nil
	}
	var l oneLane
	if err := b.lane(&l, op, src, dst); err != nil {
		return err
	}
	if k := op.Kind; k >= ir.OpReducePackets && k <= ir.OpReduceCopySendPackets && len(l.reads) > 1 {
		// The executor adds up the packets and then its own.
		l.reads = append(append([]area(nil), l.reads[1:]...), l.reads[0])
	}
	x.lanes = []oneLane{l}
	return b.reduction(x, op)
}

func reduces(k ir.OpKind) bool {
	switch k {
	case ir.OpReduceLocal, ir.OpReduceSend, ir.OpReadReduce, ir.OpReadReduceSend, ir.OpReducePackets,
		ir.OpReduceSendPackets, ir.OpReduceCopyPackets, ir.OpReduceCopySendPackets, ir.OpGroupReduceStore:
		return true
	}
	return false
}

// reduction picks the operator: the run's, unless the program fixes one.
func (b *binder) reduction(x *oneOp, op *ir.Op) error {
	fixed := map[ir.Reduction]runtime.ReduceOp{ir.ReduceSum: runtime.Sum, ir.ReduceMin: runtime.Min,
		ir.ReduceMax: runtime.Max, ir.ReduceProd: runtime.Prod}
	use := b.op
	if f, ok := fixed[op.Reduce]; ok && !(f == runtime.Sum && use == runtime.Avg) {
		if k := b.prog.Coll.Kind; f != use && (k == ir.AllReduce || k == ir.ReduceScatter || k == ir.ReduceTo) {
			return b.bad(op, "op", "the program reduces by %v, whatever the run asks for", f).(*diag.Message).Suggest("take %v", f)
		}
		use = f
	}
	var err error
	if x.fold, err = runtime.NewCombine(b.layout.DType, use); err != nil {
		return b.bad(op, "op", "%v", err)
	}
	return nil
}

// lane resolves the operands of one assignment.
func (b *binder) lane(l *oneLane, op *ir.Op, src, dst []ir.Operand) error {
	for i := range src {
		if src[i].Size != src[0].Size {
			return b.bad(op, "program", "sources of %d and %d chunks", src[0].Size, src[i].Size)
		}
		if err := b.operand(&l.reads, l, op, &src[i]); err != nil {
			return err
		}
	}
	for i := range dst {
		if dst[i].Size != src[0].Size {
			return b.bad(op, "program", "a source of %d chunks and a destination of %d", src[0].Size, dst[i].Size)
		}
		if err := b.operand(&l.writes, l, op, &dst[i]); err != nil {
			return err
		}
	}
	return nil
}

// operand appends the areas of an operand: one, or one a rank of its group.
func (b *binder) operand(list *[]area, l *oneLane, op *ir.Op, d *ir.Operand) error {
	o := b.prog.OneSided
	ranks := []ir.Rank{d.Rank}
	if d.Group != ir.None {
		if d.Group < 0 || int(d.Group) >= len(o.Groups) {
			return b.bad(op, "program", "group %d of %d", d.Group, len(o.Groups))
		}
		ranks = o.Groups[d.Group].Ranks
	}
	if d.Buf < 0 || d.Buf > ir.FirstScratch || d.Packets && (d.Buf != ir.FirstScratch || !o.Packets) {
		return b.bad(op, "program", "an operand in buffer %d (packets: %v)", d.Buf, d.Packets)
	}
	chunk := b.layout.ChunkBytes()
	l.skip, l.n = cut(int64(d.Size)*chunk, int64(o.Alignment), int64(op.Part), int64(op.Parts))
	for _, r := range ranks {
		if r < 0 || int(r) >= len(b.ranks) {
			return b.bad(op, "program", "an operand at rank %d of %d", r, len(b.ranks))
		}
		m := &b.ranks[r]
		if end := int64(d.Index) + int64(d.Size); d.Index < 0 || d.Size < 1 || end > int64(m.chunks[d.Buf]) {
			return b.bad(op, "bounds", "%s[%d:%d] of rank %d, which has %d chunks", bufferNames[d.Buf], d.Index, end, r, m.chunks[d.Buf])
		}
		at := int64(d.Index)*chunk + l.skip
		if d.Packets {
			at *= 2
		}
		*list = append(*list, area{rank: r, at: m.base[d.Buf] + at, packets: d.Packets})
	}
	return nil
}

// cut is part k of n bytes in p parts, all multiples of a unit; the first ones take
// the remainder.
func cut(n, unit, k, p int64) (off, length int64) {
	q, rest := n/unit/p, n/unit%p
	off, length = k*q+min(k, rest), q
	if k < rest {
		length++
	}
	return off * unit, length * unit
}
