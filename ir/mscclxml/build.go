package mscclxml

import (
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// build is a program whose steps are settled and whose collective may not be.
type build struct {
	c        *collector
	name     string
	protocol ir.Protocol
	ranks    int32
	chunks   int32 // nchunksperloop

	transport ir.Transport
	minBytes  int64
	maxBytes  int64 // inclusive, 0 is no limit

	gpus      []ir.GPU // without the sizes that follow from the collective
	deps      []ir.Dep
	positions []diag.Pos
	copies    [][]rawCopy // of a rank
	in, out   []int32     // i_chunks and o_chunks of a rank
	counts    []int32     // of an alltoallv

	dialect ir.Target // by whose words and sizes the file is written
	kinds   []ir.CollectiveKind
	modes   []bool // in place or not; candidates unless declared
	guessed bool   // the modes are candidates: take the first that holds, else the last
	root    ir.Rank
	peer    ir.Rank
}

// block is a thread block whose steps' dependencies are still those of the file.
type block struct {
	tb    ir.ThreadBlock
	waits []waiting // in the order of the steps
	posts []bool    // of a step: it says when it is over
	next  []int32   // of a step: the first from there on that posts; made when asked for
}

// waiting is a step's dependency as the file has it: an id and a number.
type waiting struct {
	step     int32 // in the block
	id, deps int32
	at       int32
}

func newBuild(c *collector) *build {
	return &build{c: c, positions: make([]diag.Pos, 1, c.steps+1), root: ir.None, peer: ir.None}
}

// pos makes a position for a step.
func (b *build) pos(at int32) ir.PosID {
	b.positions = append(b.positions, b.c.src.pos(at))
	return ir.PosID(len(b.positions) - 1)
}

// firstPost is the first step from s on that posts; None if there is none.
func (k *block) firstPost(s int32) int32 {
	if k.next == nil {
		k.next = make([]int32, len(k.posts)+1)
		k.next[len(k.posts)] = ir.None
		for i := len(k.posts) - 1; i >= 0; i-- {
			k.next[i] = k.next[i+1]
			if k.posts[i] {
				k.next[i] = int32(i)
			}
		}
	}
	if int(s) >= len(k.posts) {
		return ir.None
	}
	return k.next[s]
}

// link gives the steps of one rank their dependencies. A wait ends as soon as the
// thread block waited for has posted the step or a later one, so it is for the
// first from there on that posts. Steps post if one waits for them: what posts
// for no one says nothing.
func (b *build) link(rank ir.Rank, blocks []block, ids map[int32]int32) {
	used := make(map[ir.Dep]bool)
	for t := range blocks {
		k := &blocks[t]
		n := 0
		for s := range k.tb.Steps {
			st := &k.tb.Steps[s]
			st.DepStart = int32(len(b.deps))
			for ; n < len(k.waits) && k.waits[n].step == int32(s); n++ {
				if d, ok := b.resolve(rank, int32(t), blocks, ids, &k.waits[n]); ok {
					used[d] = true
					b.deps = append(b.deps, d)
				}
			}
			st.DepEnd = int32(len(b.deps))
		}
	}
	gpu := &b.gpus[rank]
	gpu.TBs = make([]ir.ThreadBlock, len(blocks))
	for t := range blocks {
		gpu.TBs[t] = blocks[t].tb
	}
	for d := range used { // order doesn't matter: flags are set
		gpu.TBs[d.TB].Steps[d.Step].Post = true
	}
	if len(blocks) == 1 && len(blocks[0].tb.Steps) == 0 && blocks[0].tb.Send == ir.None && blocks[0].tb.Recv == ir.None {
		gpu.TBs = nil // idle: the runtimes want a thread block to launch
	}
}

func (b *build) resolve(rank ir.Rank, t int32, blocks []block, ids map[int32]int32, w *waiting) (ir.Dep, bool) {
	c := b.c
	u, ok := ids[w.id]
	if !ok {
		code := CodeHang
		if c.o.Runtime == Plain {
			code = CodeInvalid
		}
		c.errorf(w.at, code, "waits for thread block %d, which rank %d doesn't have", w.id, rank)
		return ir.Dep{}, false
	}
	if c.o.Runtime == Plain {
		if w.deps < 0 {
			c.errorf(w.at, CodeValue, "waits for step %d of thread block %d, want a step", w.deps, w.id)
			return ir.Dep{}, false
		}
	}
	s := blocks[u].firstPost(max(w.deps, 0))
	switch {
	case s == ir.None:
		c.errorf(w.at, CodeHang, "waits for step %d of thread block %d, which has no step from there on with hasdep=\"1\": it never ends", w.deps, w.id).
			Suggest("set hasdep=\"1\" at the step waited for")
		return ir.Dep{}, false
	case u == t && s >= w.step:
		c.errorf(w.at, CodeHang, "waits for step %d of its own thread block, which comes no earlier: it never ends", w.deps)
		return ir.Dep{}, false
	case u == t: // posted before it is waited for
		return ir.Dep{}, false
	}
	return ir.Dep{TB: u, Step: s}, true
}

// ends refuses connections with two thread blocks at one end: the runtimes keep
// a connection's position in each of them. Owning an end is enough, as it is
// written back when the thread block ends.
func (b *build) ends(rank ir.Rank, raw []rawTB) {
	type end struct{ peer, ch int32 }
	sends, recvs := map[end]*rawTB{}, map[end]*rawTB{}
	claim := func(owners map[end]*rawTB, t *rawTB, peer int32, what string) (clash bool) {
		if peer == ir.None {
			return false
		}
		key := end{peer, t.ch}
		if first := owners[key]; first != nil {
			b.c.errorf(t.at, CodeInvalid, "rank %d: thread block %d is a second one that %s rank %d on channel %d",
				rank, t.id, what, peer, t.ch).Note(b.c.src.pos(first.at), "thread block %d is the first", first.id)
			return true
		}
		owners[key] = t
		return false
	}
	for i := range raw {
		if !claim(sends, &raw[i], raw[i].send, "sends to") {
			claim(recvs, &raw[i], raw[i].recv, "receives from")
		}
	}
}

// order sorts the ranks' elements, and the thread blocks in each, by id; what
// is there twice or not at all is an error.
func (b *build) order() {
	c := b.c
	d := &c.doc
	slices.SortStableFunc(d.gpus, func(x, y rawGPU) int { return int(x.id) - int(y.id) })
	for i := range d.gpus {
		g := &d.gpus[i]
		switch {
		case g.id < 0 || g.id >= b.ranks:
			c.errorf(g.at, CodeValue, "gpu %d, want 0 to %d: ngpus is %d", g.id, b.ranks-1, b.ranks)
		case i > 0 && d.gpus[i-1].id == g.id:
			c.errorf(g.at, CodeValue, "a second gpu %d", g.id).Note(c.src.pos(d.gpus[i-1].at), "the first one")
		}
		if c.stopped {
			return
		}
	}
	if c.failed() {
		return
	}
	if int(b.ranks) != len(d.gpus) {
		missing := int32(0)
		for missing < int32(len(d.gpus)) && d.gpus[missing].id == missing {
			missing++
		}
		c.errorf(d.at, CodeIncomplete, "ngpus is %d, but there is no gpu %d (%d elements)", b.ranks, missing, len(d.gpus))
		return
	}
	for i := range d.gpus {
		g := &d.gpus[i]
		slices.SortStableFunc(g.tbs, func(x, y rawTB) int { return int(x.id) - int(y.id) })
		for t := range g.tbs {
			if t > 0 && g.tbs[t-1].id == g.tbs[t].id {
				c.errorf(g.tbs[t].at, CodeValue, "gpu %d: a second thread block %d", g.id, g.tbs[t].id).
					Note(c.src.pos(g.tbs[t-1].at), "the first one")
			}
		}
	}
}

// place is an operand; offset -1 and unknown buffers are no place.
func place(buf ir.BufferID, off int32) ir.Place {
	if buf == ir.None || off < 0 {
		return ir.NoPlace
	}
	return ir.Place{Buf: buf, Index: off}
}

// makeStep is the step of a thread block without its dependencies.
func makeStep(r *rawStep, t *rawTB) ir.Step {
	s := ir.Step{Kind: r.kind, Count: r.cnt, Src: ir.NoPlace, Dst: ir.NoPlace, Remote: ir.NoPlace,
		SendPeer: ir.None, RecvPeer: ir.None, Chan: t.ch}
	src, dst := place(r.src, r.srcoff), place(r.dst, r.dstoff)
	if r.kind == ir.Nop {
		s.Count = 0
	}
	if r.kind.ReadsSrc() {
		s.Src = src
	}
	if r.kind.WritesDst() {
		s.Dst = dst
	}
	switch r.kind {
	case ir.Send, ir.RecvReduceSend:
		s.Remote = dst
	case ir.Recv:
		s.Remote = src
	}
	if r.kind.Sends() {
		s.SendPeer = ir.Rank(t.send)
	}
	if r.kind.Receives() {
		s.RecvPeer = ir.Rank(t.recv)
	}
	return s
}
