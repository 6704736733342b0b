package checker

import (
	"context"
	"math/rand/v2"

	"github.com/mscclsh/mscclsh/ir"
)

// oneRun executes launches of a one-sided program in one order. Waits, semaphores
// with one taker, barriers for all who use them and packets only ever become ready,
// and who goes first at one of them changes nothing for the others; so one order
// decides whether the program ends. For the others see schedules.
//
// A thread block is taken as sequential: what runs only because its threads drift
// apart counts as a deadlock. Of an operation that waits for packets, though, each
// unit goes on as soon as its own packets are there, as its threads do.
type oneRun struct {
	m      *oneModel
	h      *history // nil: values only
	values *values
	now    []int32 // of a location: its value
	writer []int32 // of a location: who wrote it last, an index of wrote, or None
	valid  []bool  // of a location where a packet begins: the launch has written it
	held   []bool  // of such a location: what lies there is half data and half flags, of whatever launch

	blocks  []progress
	given   []int32 // of a channel: signals so far
	taken   []int32
	tokens  []int32   // of a semaphore: its value
	arrived [][]int32 // of a barrier: who waits there
	wrote   []stepRef

	queue   []int32 // blocks that may go on
	queued  []bool
	rng     *rand.Rand // nil: first in, first out
	reverse bool
	waiting map[spot][]int32
}

// progress is where a thread block stands.
type progress struct {
	at    int32
	lanes []lane   // of the current step, once begun
	left  []unitAt // its units that have not run
	begun bool
	took  uint64 // semaphores of the current step that have been taken
	there bool   // at its barrier
	inst  int32  // of history
	token int32  // of wrote
}

type unitAt struct{ lane, unit int32 }

type stepRef struct{ block, step int32 }

// spot is what a blocked thread block waits at.
type spot struct {
	kind spotKind
	n    int32
}

type spotKind uint8

const (
	atChannel spotKind = iota
	atSemaphore
	atBarrier
	atPacket
)

// newOneRun prepares the n-th schedule.
func newOneRun(m *oneModel, n int) *oneRun {
	r := &oneRun{
		m: m, values: newValues(m.nLocs), now: make([]int32, m.nLocs), writer: make([]int32, m.nLocs),
		given: make([]int32, len(m.chans)), taken: make([]int32, len(m.chans)),
		tokens: make([]int32, len(m.sems)), arrived: make([][]int32, len(m.barriers)),
		waiting: map[spot][]int32{},
	}
	for i := range r.now {
		r.now[i], r.writer[i] = int32(i), ir.None
	}
	for i := range r.tokens {
		r.tokens[i] = m.sems[i].initial
	}
	if m.packets {
		r.valid, r.held = make([]bool, m.nLocs), make([]bool, m.nLocs)
	}
	if r.reverse = n == 1; n > 1 {
		r.rng = rand.New(rand.NewPCG(uint64(n), 0))
	}
	return r
}

// enter makes the launches that follow those of m, which is as the model before up to its
// shape. Memory is of other places then, so that its values don't matter any more.
func (r *oneRun) enter(m *oneModel) {
	if m == r.m {
		return
	}
	r.m = m
	r.values, r.now, r.writer = newValues(m.nLocs), make([]int32, m.nLocs), make([]int32, m.nLocs)
	for i := range r.now {
		r.now[i], r.writer[i] = int32(i), ir.None
	}
	if m.packets {
		r.valid, r.held = make([]bool, m.nLocs), make([]bool, m.nLocs)
	}
}

// launch runs every thread block to its end; false if that can't be.
func (r *oneRun) launch(ctx context.Context) (bool, error) {
	r.blocks = make([]progress, len(r.m.blocks))
	r.queued = make([]bool, len(r.m.blocks))
	r.queue = r.queue[:0]
	for i := range r.valid {
		r.valid[i] = false
	}
	for b := range r.blocks {
		if r.reverse {
			b = len(r.blocks) - 1 - b
		}
		r.enqueue(int32(b))
	}
	for n := 0; len(r.queue) > 0; n++ {
		if n&0xff == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		b := r.next()
		r.queued[b] = false
		r.advance(b)
	}
	for b := range r.blocks {
		if !r.done(int32(b)) {
			return false, nil
		}
	}
	return true, nil
}

// step is the step that writer w was.
func (r *oneRun) step(w int32) *oneStep {
	at := r.wrote[w]
	return &r.m.blocks[at.block].steps[at.step]
}

func (r *oneRun) done(b int32) bool { return int(r.blocks[b].at) == len(r.m.blocks[b].steps) }

func (r *oneRun) enqueue(b int32) {
	if !r.queued[b] {
		r.queued[b] = true
		r.queue = append(r.queue, b)
	}
}

func (r *oneRun) next() int32 {
	i := 0
	if r.reverse {
		i = len(r.queue) - 1
	} else if r.rng != nil {
		i = r.rng.IntN(len(r.queue))
	}
	b := r.queue[i]
	if i == 0 {
		r.queue = r.queue[1:]
	} else {
		r.queue = append(r.queue[:i], r.queue[i+1:]...)
	}
	return b
}

// advance runs block b until it is done or has to wait. Under a random schedule it
// gives way after every step.
func (r *oneRun) advance(b int32) {
	for !r.done(b) {
		if at, ok := r.try(b); !ok {
			r.waiting[at] = append(r.waiting[at], b)
			return
		}
		p := &r.blocks[b]
		*p = progress{at: p.at + 1}
		if r.rng != nil && !r.done(b) {
			r.enqueue(b)
			return
		}
	}
}

// wake lets those go on who wait at a spot.
func (r *oneRun) wake(at spot) {
	list, ok := r.waiting[at]
	if !ok {
		return
	}
	delete(r.waiting, at)
	for _, b := range list {
		r.enqueue(b)
	}
}

// try runs the current step of b, or says what it waits at.
func (r *oneRun) try(b int32) (spot, bool) {
	p := &r.blocks[b]
	blk := &r.m.blocks[b]
	st := &blk.steps[p.at]
	op := &r.m.o.Ops[st.op]
	refs := r.m.o.RefsOf(op)
	own := &r.m.rank[blk.rank]
	switch op.Kind {
	case ir.OpSync:
		r.h.meet(b)
	case ir.OpBarrier:
		return r.barrier(b, p, st)
	case ir.OpSignal, ir.OpRelaxedSignal:
		for j, x := range refs {
			r.signal(b, int32(j), own.firstChan+x, op.Kind == ir.OpRelaxedSignal)
		}
	case ir.OpWait, ir.OpRelaxedWait:
		return r.await(b, blk.rank, refs, op.Kind == ir.OpRelaxedWait)
	case ir.OpFlush:
		for j, x := range refs {
			r.h.flush(b, int32(j), own.firstChan+x)
		}
	case ir.OpSemaphoreRelease:
		for j, x := range refs {
			s := own.firstSem + x
			r.tokens[s]++
			r.h.release(b, int32(j), s)
			r.wake(spot{atSemaphore, s})
		}
	case ir.OpSemaphoreAcquire:
		for j, x := range refs {
			s := own.firstSem + x
			switch {
			case p.took&(1<<j) != 0:
			case r.tokens[s] <= 0:
				return spot{atSemaphore, s}, false
			default:
				p.took |= 1 << j
				r.tokens[s]--
				r.h.acquire(b, int32(j), s)
			}
		}
	default:
		return r.data(b, p, st, op)
	}
	return spot{}, true
}

func (r *oneRun) signal(b, thread, c int32, relaxed bool) {
	r.given[c]++
	r.h.signal(b, thread, c, relaxed)
	r.wake(spot{atChannel, c})
}

func (r *oneRun) await(b int32, rank ir.Rank, refs []int32, relaxed bool) (spot, bool) {
	// A reference that stands twice waits for two signals.
	for j, x := range refs {
		c := r.m.inbound(rank, x)
		n := int32(1)
		for _, y := range refs[:j] {
			if y == x {
				n++
			}
		}
		if r.given[c]-r.taken[c] < n {
			return spot{atChannel, c}, false
		}
	}
	for j, x := range refs {
		c := r.m.inbound(rank, x)
		r.taken[c]++
		r.h.wait(b, int32(j), c, relaxed)
	}
	return spot{}, true
}

// barrier arrives once, and lets all go when the last one arrives.
func (r *oneRun) barrier(b int32, p *progress, st *oneStep) (spot, bool) {
	if p.there { // woken by the last one
		return spot{}, true
	}
	p.there = true
	n := st.ref
	r.arrived[n] = append(r.arrived[n], b)
	if len(r.arrived[n]) < int(r.m.barriers[n].parts) {
		return spot{atBarrier, n}, false
	}
	r.h.barrier(r.arrived[n])
	r.arrived[n] = r.arrived[n][:0]
	r.wake(spot{atBarrier, n})
	return spot{}, true
}

// data runs as many units of a step as can, and signals if it is a put with signal.
func (r *oneRun) data(b int32, p *progress, st *oneStep, op *ir.Op) (spot, bool) {
	if !p.begun {
		p.begun = true
		p.lanes = r.m.lanes(st)
		for l := range p.lanes {
			for u := range p.lanes[l].n {
				p.left = append(p.left, unitAt{int32(l), u})
			}
		}
		p.inst = r.h.start(b, p.at, op, p.lanes)
		p.token = int32(len(r.wrote))
		r.wrote = append(r.wrote, stepRef{b, p.at})
	}
	missing := int32(ir.None)
	keep := p.left[:0]
	for _, u := range p.left {
		l := &p.lanes[u.lane]
		if at := r.packetMissing(op, l, u.unit); at != ir.None {
			if keep = append(keep, u); missing == ir.None {
				missing = at
			}
			continue
		}
		r.unit(p, l, u)
	}
	if p.left = keep; missing != ir.None {
		return spot{atPacket, missing}, false
	}
	r.h.finish(p.inst)
	if op.Kind == ir.OpPutSignal || op.Kind == ir.OpPutSignalFlush {
		for j, x := range r.m.o.RefsOf(op) {
			c := r.m.rank[r.m.blocks[b].rank].firstChan + x
			r.signal(b, int32(j), c, false)
			if op.Kind == ir.OpPutSignalFlush {
				r.h.flush(b, int32(j), c)
			}
		}
	}
	return spot{}, true
}

// packetMissing is the packet that unit u of l waits for, or None.
func (r *oneRun) packetMissing(op *ir.Op, l *lane, u int32) int32 {
	if !opRules[op.Kind].blocks {
		return ir.None
	}
	for i := range l.reads {
		if at := l.reads[i].at(u); l.packets[i] && !r.valid[at] {
			return at
		}
	}
	return ir.None
}

// unit is d... := op(s...) for one unit.
func (r *oneRun) unit(p *progress, l *lane, u unitAt) {
	v, whole := int32(ir.None), true
	for i := range l.reads {
		at := l.reads[i].at(u.unit)
		x := r.now[at]
		switch {
		case l.packets[i]:
			whole = whole && r.valid[at]
		case r.held != nil && r.held[at]:
			x = at // no data
		}
		if v == ir.None {
			v = x
		} else {
			v = r.values.sum(v, x)
		}
	}
	r.h.touch(p.inst, u.unit, l, v)
	for i := range l.writes {
		at := l.writes[i].at(u.unit)
		r.now[at], r.writer[at] = v, p.token
		if l.sends[i] {
			r.now[at+1], r.writer[at+1] = at+1, p.token // half data, half flags, as at itself
			r.held[at] = true
			if r.valid[at] = whole; whole {
				r.wake(spot{atPacket, at})
			}
		} else if r.valid != nil {
			r.spoil(at)
		}
	}
}

// spoil forgets the packet that a plain write hit.
func (r *oneRun) spoil(at int32) {
	if _, buf, i := r.m.place(at); buf == "scratch" {
		r.valid[at-i%2] = false
		r.held[at] = false
	}
}
