package compiler

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// planWriter writes down the blocks of a plan.
type planWriter struct {
	moves
	channel [][2]int32 // of a connection: at its sender, at its receiver
	out     *ir.OneSided
	loose   []move // since the threads of the block met last
	waited  bool   // and whether one of them has waited since
	// By connection and batch of the sender: its messages have their wait, or signal.
	expected, announced map[[2]int32]bool
}

// emit makes the program.
func (x *export) emit() (*ir.Program, error) {
	p := x.p
	low, high, err := x.window()
	if err != nil {
		return nil, err
	}
	spec := *p.Spec
	spec.Protocol = ir.Simple
	if x.packets {
		spec.Protocol = ir.LL
	}
	spec.Buffers = []ir.Buffer{p.Buffers[ir.Input], p.Buffers[ir.Output], {Name: "scratch", Chunks: slices.Clone(x.scratch)}}
	w := planWriter{moves: moves{export: x}, expected: map[[2]int32]bool{}, announced: map[[2]int32]bool{}}
	w.out = &ir.OneSided{Packets: x.packets, ThreadsPerBlock: planThreads, Alignment: planAlignment, DoubleScratch: x.packets,
		GPUs: make([]ir.OneSidedGPU, len(p.GPUs))}
	w.channels()
	var failed error
	out := &ir.Program{Spec: &spec, MinBytes: low, MaxBytes: high, GPUs: make([]ir.GPU, len(p.GPUs)), OneSided: w.out}
	for r := range p.GPUs {
		out.GPUs[r] = ir.GPU{Input: p.GPUs[r].Input, Output: p.GPUs[r].Output, Scratch: x.scratch[r]}
		w.out.GPUs[r].Semaphores = make([]int32, x.sems[r])
		for _, b := range x.blockOf[r] {
			if err := w.block(b); err != nil && failed == nil {
				failed = err
			}
		}
		if len(x.blockOf[r]) == 0 { // a kernel has to have a block
			at := int32(len(w.out.Ops))
			w.sync(0)
			w.out.GPUs[r].Blocks = []ir.Span{{Start: at, End: at + 1}}
		}
	}
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// channels gives the connections that need signals a channel: one for both
// directions between two blocks. Both ranks list them in the same order.
func (w *planWriter) channels() {
	type pair struct{ low, high, channel int32 }
	at := map[pair][2]int32{}
	open := func(rank, peer int32) int32 {
		g := &w.out.GPUs[rank]
		g.Channels = append(g.Channels, ir.SignalChannel{Kind: ir.ChannelMemory, Peer: ir.Rank(peer)})
		return int32(len(g.Channels) - 1)
	}
	for i, c := range w.conns {
		src, dst := &w.blocks[c.src], &w.blocks[c.dst]
		if w.packets && !slices.Contains(src.ended, int32(i)) {
			w.channel = append(w.channel, [2]int32{ir.None, ir.None})
			continue
		}
		k := pair{min(c.src, c.dst), max(c.src, c.dst), c.channel}
		ends, ok := at[k]
		if !ok {
			low, high := w.blocks[k.low].rank, w.blocks[k.high].rank
			ends = [2]int32{open(low, high), open(high, low)}
			at[k] = ends
		}
		if src.rank > dst.rank {
			ends[0], ends[1] = ends[1], ends[0]
		}
		w.channel = append(w.channel, ends)
	}
	w.out.PairChannels()
}

// block writes one block and checks it against the limits of the executor.
func (w *planWriter) block(b int32) error {
	k := &w.blocks[b]
	start := int32(len(w.out.Ops))
	w.loose, w.waited = w.loose[:0], false
	relaxed, strict := w.ready(k.ready, 1)
	w.refer(ir.OpRelaxedSignal, relaxed, k.pos)
	w.refer(ir.OpSignal, strict, k.pos)
	for _, t := range k.batches {
		at := len(w.out.Ops)
		w.batch(t)
		w.batches[t].ops = len(w.out.Ops) - at
	}
	relaxed, _ = w.ready(k.ended, 0)
	w.refer(ir.OpRelaxedWait, relaxed, k.pos)
	g := &w.out.GPUs[k.rank]
	span := ir.Span{Start: start, End: int32(len(w.out.Ops))}
	if span.Len() == 0 {
		w.sync(k.pos)
		span.End++
	}
	g.Blocks = append(g.Blocks, span)
	if span.Len() > planOps {
		return w.tooMany(k, "operations", planOps)
	}
	return w.limits(k, span)
}

// limits checks what a block refers to.
func (w *planWriter) limits(k *planBlock, span ir.Span) error {
	type buffer struct {
		rank ir.Rank
		buf  ir.BufferID
	}
	channels, buffers := map[int32]bool{}, map[buffer]bool{}
	for i := span.Start; i < span.End; i++ {
		op := &w.out.Ops[i]
		if op.Via == ir.ChannelMemory {
			for _, c := range w.out.RefsOf(op) {
				channels[c] = true
			}
		}
		for _, d := range w.out.Destinations(op) {
			if int32(d.Rank) != k.rank {
				buffers[buffer{d.Rank, d.Buf}] = true
			}
		}
	}
	switch {
	case len(channels) > planChannels:
		return w.tooMany(k, "channels", planChannels)
	case len(buffers) > planBuffers:
		return w.tooMany(k, "buffers of other ranks", planBuffers)
	}
	return nil
}

// ready lists the channels of connections at their sender (0) or receiver (1) by
// the signal that they need at the start of a launch.
func (w *planWriter) ready(conns []int32, end int) (relaxed, strict []int32) {
	for _, c := range conns {
		k := &w.conns[c]
		if w.contested[[2]int32{w.blocks[k.src].rank, w.blocks[k.dst].rank}] {
			strict = append(strict, w.channel[c][end])
		} else {
			relaxed = append(relaxed, w.channel[c][end])
		}
	}
	return relaxed, strict
}

// batch writes what one batch waits for, moves and signals.
func (w *planWriter) batch(b int32) {
	t := &w.batches[b]
	pos := w.nodes[t.nodes[0]].step.Pos
	var waits, signals []int32
	w.list = w.list[:0]
	for _, i := range t.nodes {
		n := &w.nodes[i]
		if !w.packets && n.recvFrom != ir.None {
			waits = w.expect(waits, n)
		}
		if !w.packets && n.sendTo != ir.None {
			signals = w.announce(signals, n)
		}
		w.lower(i)
	}
	slices.Sort(t.acquire)
	slices.Sort(t.release)
	w.waited = w.waited || len(t.acquire)+len(waits)+len(t.ready) > 0
	w.refer(ir.OpSemaphoreAcquire, t.acquire, pos)
	relaxed, strict := w.ready(t.ready, 0)
	w.refer(ir.OpRelaxedWait, relaxed, pos)
	w.refer(ir.OpWait, append(waits, strict...), pos)
	for i := range w.list {
		w.write(&w.list[i])
	}
	if len(signals)+len(t.release) > 0 {
		w.meet(pos)
		w.refer(ir.OpSignal, signals, pos)
		w.refer(ir.OpSemaphoreRelease, t.release, pos)
	}
}

// expect adds the channel that announces the message of n, unless the message
// was announced together with one that came before.
func (w *planWriter) expect(waits []int32, n *node) []int32 {
	from := &w.nodes[n.recvFrom]
	key := [2]int32{from.conn, from.batch}
	if w.expected[key] {
		return waits
	}
	w.expected[key] = true
	return append(waits, w.channel[from.conn][1])
}

// announce adds the channel for the messages that n's batch sends on n's
// connection, once for all of them.
func (w *planWriter) announce(signals []int32, n *node) []int32 {
	key := [2]int32{n.conn, n.batch}
	if w.announced[key] {
		return signals
	}
	w.announced[key] = true
	return append(signals, w.channel[n.conn][0])
}

// write writes m, after a meeting if it needs one.
func (w *planWriter) write(m *move) {
	if w.waited || slices.ContainsFunc(w.loose, func(l move) bool { return w.conflict(&l, m) }) {
		w.sync(m.pos)
	}
	w.loose = append(w.loose, *m)
	op := ir.Op{Kind: m.kind, Src: w.operands(m.src), Dst: w.operands(m.dst), Parts: 1, Pos: m.pos}
	if vias := m.kind.Vias(); len(vias) > 0 {
		op.Via = ir.ChannelMemory
	}
	w.out.Ops = append(w.out.Ops, op)
}

func (w *planWriter) operands(list []ir.Operand) ir.Span {
	at := int32(len(w.out.Operands))
	w.out.Operands = append(w.out.Operands, list...)
	return ir.Span{Start: at, End: int32(len(w.out.Operands))}
}

// meet lets the threads of the block meet if they have done anything since they
// last did.
func (w *planWriter) meet(pos ir.PosID) {
	if w.waited || len(w.loose) > 0 {
		w.sync(pos)
	}
}

func (w *planWriter) sync(pos ir.PosID) {
	w.out.Ops = append(w.out.Ops, ir.Op{Kind: ir.OpSync, Parts: 1, Pos: pos})
	w.loose, w.waited = w.loose[:0], false
}

// refer writes operations of one kind for channels or semaphores: each names
// one at most once, and not too many.
func (w *planWriter) refer(kind ir.OpKind, ids []int32, pos ir.PosID) {
	ids = slices.Sorted(slices.Values(ids))
	for len(ids) > 0 {
		at := int32(len(w.out.Refs))
		last, rest := int32(ir.None), ids[:0]
		for _, id := range ids {
			if id == last || len(w.out.Refs)-int(at) == planIDs {
				rest = append(rest, id)
				continue
			}
			last = id
			w.out.Refs = append(w.out.Refs, id)
		}
		ids = rest
		op := ir.Op{Kind: kind, Refs: ir.Span{Start: at, End: int32(len(w.out.Refs))}, Parts: 1, Pos: pos}
		if kind != ir.OpSemaphoreAcquire && kind != ir.OpSemaphoreRelease {
			op.Via = ir.ChannelMemory
		}
		w.out.Ops = append(w.out.Ops, op)
	}
}
