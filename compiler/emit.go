package compiler

import (
	"cmp"
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// emit writes the program: thread blocks numbered (by hand: by hint and
// instance; else by channel, send and receive peer, as msccl-tools does), a nop in
// front of a step for every wait after its first, and the sizes that follow from
// the collective.
func emit(_ context.Context, s *state) error {
	s.out = s.program()
	c := s.out.Count()
	s.stats.Nops = c.Nops
	s.stats.StepsAfter = c.Steps - c.Nops
	return nil
}

// emitter builds a Program from what the passes have so far; before waits are
// reduced or scratch is laid out it shows the program as it then is.
type emitter struct {
	*state
	out      *ir.Program
	channels int32   // of an instance
	number   []int32 // thread block: index on its rank
	hoisted  map[int32][]int32
	placed   []int32 // instruction: index of its step, nops counted
	posts    []bool
}

func (s *state) program() *ir.Program {
	n := len(s.fused.Instrs)
	e := emitter{state: s, number: filled(len(s.tbs), ir.None), placed: make([]int32, n), posts: make([]bool, n)}
	spec := *s.fused.Spec
	spec.Buffers = []ir.Buffer{s.fused.Buffers[ir.Input], s.fused.Buffers[ir.Output], {Name: "scratch", Chunks: make([]int32, s.fused.Ranks())}}
	e.out = &ir.Program{Spec: &spec, Transport: s.transport, MinBytes: s.opt.MinBytes, MaxBytes: s.opt.MaxBytes,
		GPUs: make([]ir.GPU, s.fused.Ranks())}
	if s.taken.window > 0 {
		limit := s.transport.MaxBytesFor(s.regime, spec.Coll.NumChunks())
		if e.out.MaxBytes == 0 || limit < e.out.MaxBytes {
			e.out.MaxBytes = limit
		}
	}
	for t := range s.tbs {
		e.channels = max(e.channels, s.tbs[t].channel+1)
	}
	byRank := s.tbsByRank()
	e.countSteps()
	for r := range e.out.GPUs {
		g := &e.out.GPUs[r]
		g.Input, g.Output = spec.Buffers[ir.Input].Chunks[r], spec.Buffers[ir.Output].Chunks[r]
		g.Scratch = e.scratchSize(r)
		spec.Buffers[ir.FirstScratch].Chunks[r] = g.Scratch
		used := e.arrange(byRank[r])
		g.TBs = make([]ir.ThreadBlock, 0, len(used))
		for k, t := range used {
			e.number[t] = int32(k)
		}
		for _, t := range used {
			g.TBs = append(g.TBs, e.threadBlock(t))
		}
	}
	return e.out
}

// arrange drops thread blocks without steps and sorts the others.
func (e *emitter) arrange(tbs []int32) []int32 {
	used := make([]int32, 0, len(tbs))
	for _, t := range tbs {
		if len(e.steps[t]) > 0 {
			used = append(used, t)
		}
	}
	slices.SortStableFunc(used, func(a, b int32) int {
		x, y := &e.tbs[a], &e.tbs[b]
		byHand := cmp.Or(cmp.Compare(x.hint, y.hint), cmp.Compare(x.instance, y.instance))
		switch {
		case x.hint != ir.None && y.hint != ir.None:
			return byHand
		case (x.hint != ir.None) != (y.hint != ir.None):
			return -cmp.Compare(x.hint, y.hint)
		}
		if e.blocksFirst() {
			return cmp.Or(cmp.Compare(x.instance, y.instance), cmp.Compare(x.role, y.role))
		}
		return cmp.Or(cmp.Compare(e.channelOf(x), e.channelOf(y)), cmp.Compare(x.send, y.send), cmp.Compare(x.recv, y.recv))
	})
	return used
}

// channelOf makes the channel of an instance global.
func (e *emitter) channelOf(t *threadBlock) int32 { return t.instance*e.channels + t.channel }

// countSteps finds which waits stand before which step, and so where every
// step ends up, and which steps are waited for.
func (e *emitter) countSteps() {
	e.hoisted = map[int32][]int32{}
	for t := range e.steps {
		if e.base.DependenceNop {
			e.hoist(e.steps[t])
		}
		at, before := int32(0), int32(ir.None)
		for _, i := range e.steps[t] {
			at += e.nopsBefore(before, i)
			e.placed[i] = at
			at++
			before = i
		}
	}
	for i := range e.placed {
		for _, p := range e.waitsOf(int32(i)) {
			e.posts[p] = true
		}
	}
}

// nopsBefore is the number of nops between two steps of a thread block: where a
// step can wait for one thing only, one for each of the others; and one that keeps
// a send and a receive from being taken for an exchange.
func (e *emitter) nopsBefore(p, i int32) int32 {
	waits := int32(len(e.waitsOf(i)))
	switch {
	case e.direct() && p != ir.None && waits == 0 && e.mate[i] == ir.None && e.looksExchanged(p, i):
		return 1
	case e.native():
		return 0
	}
	return max(waits-1, 0)
}

// waitsOf lists what instruction i waits for, earliest first.
func (e *emitter) waitsOf(i int32) []int32 {
	if w, ok := e.hoisted[i]; ok {
		return w
	}
	on, gone := e.waits.of(i)
	var w []int32
	for k := len(on) - 1; k >= 0; k-- {
		if !gone[k] {
			w = append(w, on[k])
		}
	}
	return w
}

// hoist is msccl-tools' dependence_nop: waits of later local reduces move in
// front of the first of a run of them, so that the runtime can do the run in one
// pass. Only a wait whose step ran before that first one may move: the run of the
// order pass stays possible then. (msccl-tools moves all of them and can deadlock.)
func (e *emitter) hoist(steps []int32) {
	for a := 0; a < len(steps); {
		if e.fused.Instrs[steps[a]].Kind != ir.Reduce {
			a++
			continue
		}
		b := a + 1
		for b < len(steps) && e.fusable(steps[b-1], steps[b]) {
			b++
		}
		first := e.waitsOf(steps[a])
		for _, i := range steps[a+1 : b] {
			var stay []int32
			for _, p := range e.waitsOf(i) {
				if e.ranBefore(p, steps[a]) {
					first = e.merge(first, p)
				} else {
					stay = append(stay, p)
				}
			}
			e.hoisted[i] = stay
		}
		e.hoisted[steps[a]] = first
		a = b
	}
}

// ranBefore reports whether instruction p had ended in the run of the order pass when
// i began.
func (s *state) ranBefore(p, i int32) bool {
	if s.direct() {
		return s.done(p) < s.due(i)
	}
	return s.at[p] < s.at[i]
}

// fusable reports whether msccl's runtime would do reduces a and b in one pass:
// same destination, same source buffer.
func (e *emitter) fusable(a, b int32) bool {
	x, y := &e.fused.Instrs[a], &e.fused.Instrs[b]
	return y.Kind == ir.Reduce && x.Dst == y.Dst && x.Src.Buf == y.Src.Buf && x.Count == y.Count
}

// merge adds a wait to a list that has at most one for each thread block.
func (e *emitter) merge(list []int32, p int32) []int32 {
	for k, q := range list {
		if e.tbOf[q] == e.tbOf[p] {
			if e.stepOf[p] > e.stepOf[q] {
				list[k] = p
			}
			return list
		}
	}
	return append(list, p)
}

func (e *emitter) threadBlock(t int32) ir.ThreadBlock {
	tb := &e.tbs[t]
	out := ir.ThreadBlock{Send: tb.send, Recv: tb.recv, Chan: e.channelOf(tb), Steps: make([]ir.Step, 0, len(e.steps[t]))}
	if e.manyPeers() {
		e.declare(&out, e.steps[t])
	}
	before := int32(ir.None)
	for _, i := range e.steps[t] {
		in := &e.fused.Instrs[i]
		w := e.waitsOf(i)
		nops := int(e.nopsBefore(before, i))
		for k := range nops {
			nop := ir.Step{Kind: ir.Nop, Src: ir.NoPlace, Dst: ir.NoPlace, Remote: ir.NoPlace,
				SendPeer: ir.None, RecvPeer: ir.None, Chan: out.Chan, Pos: in.Pos}
			e.wait(&nop, w[min(k+1, len(w)):min(k+2, len(w))])
			out.Steps = append(out.Steps, nop)
		}
		if nops > 0 {
			w = w[:min(1, len(w))]
		}
		st := ir.Step{Kind: in.Kind, Post: e.posts[i], Src: e.place(in.Rank, in.Src), Dst: e.place(in.Rank, in.Dst), Remote: e.remote(in),
			Count: in.Count, SendPeer: e.fused.SendPeer(ir.InstrID(i)), RecvPeer: e.fused.RecvPeer(ir.InstrID(i)), Chan: e.channelAt(i, out.Chan), Pos: in.Pos}
		e.wait(&st, w)
		out.Steps = append(out.Steps, st)
		before = i
	}
	return out
}

// declare says which peers and channel a thread block has, if it has one of each.
func (e *emitter) declare(out *ir.ThreadBlock, steps []int32) {
	out.Send, out.Recv, out.Chan = ir.None, ir.None, ir.None
	for _, i := range steps {
		if out.Chan = e.channelAt(i, ir.None); out.Chan != ir.None {
			break
		}
	}
	if out.Chan == ir.None {
		out.Chan = 0
		return
	}
	if k := e.onlyOne(steps, e.sendBy, out.Chan); k != ir.None {
		out.Send = e.conns[k].dst
	}
	if k := e.onlyOne(steps, e.recvBy, out.Chan); k != ir.None {
		out.Recv = e.conns[k].src
	}
}

// onlyOne is the connection of the steps among by, if there is one and it is on
// that channel, else None.
func (e *emitter) onlyOne(steps, by []int32, channel int32) int32 {
	only := int32(ir.None)
	for _, i := range steps {
		switch k := by[i]; {
		case k == ir.None || k == only:
		case only != ir.None || e.channelOn(k) != channel:
			return ir.None
		default:
			only = k
		}
	}
	return only
}

// channelAt is the channel of instruction i, or that of its thread block where
// those have one.
func (e *emitter) channelAt(i, ofBlock int32) int32 {
	k := e.sendBy[i]
	if k == ir.None {
		k = e.recvBy[i]
	}
	if k == ir.None || !e.manyPeers() {
		return ofBlock
	}
	return e.channelOn(k)
}

// channelOn is the channel of connection k among those of all instances.
func (e *emitter) channelOn(k int32) int32 {
	if e.blocksFirst() {
		return e.conns[k].channel
	}
	return e.conns[k].instance*e.channels + e.conns[k].channel
}

func (e *emitter) wait(s *ir.Step, on []int32) {
	s.DepStart = int32(len(e.out.Deps))
	for _, p := range on {
		e.out.Deps = append(e.out.Deps, ir.Dep{TB: e.number[e.tbOf[p]], Step: e.placed[p]})
	}
	s.DepEnd = int32(len(e.out.Deps))
}

// place is p in the program's buffers.
func (e *emitter) place(r ir.Rank, p ir.Place) ir.Place {
	if p.Buf < ir.FirstScratch {
		return p
	}
	if len(e.places) > 0 {
		return ir.Place{Buf: ir.FirstScratch, Index: e.places[r].offset[p.Buf-ir.FirstScratch][p.Index]}
	}
	for b := ir.FirstScratch; b < p.Buf; b++ { // not laid out yet: buffer after buffer
		p.Index += e.fused.Buffers[b].Chunks[r]
	}
	return ir.Place{Buf: ir.FirstScratch, Index: p.Index}
}

// remote is the place at the other end: where the peer puts what is sent, or
// where what is received came from.
func (e *emitter) remote(in *ir.Instr) ir.Place {
	if in.SendTo != ir.None {
		peer := &e.fused.Instrs[in.SendTo]
		if !peer.Kind.WritesDst() { // it only passes a sum on: name its operand
			return e.place(peer.Rank, peer.Src)
		}
		return e.place(peer.Rank, peer.Dst)
	}
	if in.RecvFrom != ir.None {
		peer := &e.fused.Instrs[in.RecvFrom]
		if peer.Kind == ir.RecvCopySend {
			return e.place(peer.Rank, peer.Dst)
		}
		return e.place(peer.Rank, peer.Src)
	}
	return ir.NoPlace
}

func (e *emitter) scratchSize(r int) int32 {
	if len(e.places) > 0 {
		return e.places[r].size
	}
	n := int32(0)
	for _, b := range e.fused.Buffers[ir.FirstScratch:] {
		n += b.Chunks[r]
	}
	return n
}
