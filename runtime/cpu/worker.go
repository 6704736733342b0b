package cpu

import (
	"sync/atomic"
	"time"

	"github.com/mscclsh/mscclsh/ir"
)

// worker is one thread block.
type worker struct {
	rank   ir.Rank
	tb     int32
	steps  []step
	memory []byte // its rank's
	wake   chan struct{}

	posted   atomic.Int64 // tile*len(steps) + step + 1 of the last step posted
	sleepers atomic.Int32 // len(sleeping), to be read without the lock
	events   []ir.Event

	meetings []meeting // of each step, with protocol Direct

	// Of a one-sided program:
	ops     []oneOp
	turn    int32 // of the pipeline
	todo    []bit
	buffers [2][]byte
	moved   int64 // bytes read and written at other ranks in this run
	signals int64 // given in this run

	// Under engine.mu:
	sleeping []*worker // wait for a step of this one
	waits    wait      // what it is parked for; what.kind is running otherwise
}

// piece is the number of bytes that a step with two destinations handles at a
// time, so that the second one reads from the nearest cache.
const piece = 16 << 10

// slotPiece is the number of bytes copied to a slot at a time: the runtime's copy
// of a megabyte or more bypasses the caches, from which the receiver is about to
// read.
const slotPiece = 64 << 10

// run executes all tiles. It returns early when the engine stops.
func (w *worker) run(e *engine) {
	if e.one != nil {
		w.runOps(e)
		return
	}
	if w.meetings != nil {
		w.runDirect(e)
		return
	}
	chunk := e.layout.ChunkBytes()
	for tile := range e.tiles {
		at := tile * e.tile
		bytes := min(e.tile, chunk-at)
		if e.stopped.Load() {
			return
		}
		for i := range w.steps {
			st := &w.steps[i]
			var begin time.Time
			if e.events {
				begin = time.Now()
			}
			for _, g := range st.goals {
				goal := tile*int64(len(g.of.steps)) + int64(g.step) + 1
				if g.of.posted.Load() < goal && !e.await(w, wait{kind: waitStep, step: int32(i), tile: tile, of: g.of, goal: goal}) {
					return
				}
			}
			for c := int32(0); c < st.count; c += e.regime {
				off := int64(c)*chunk + at
				n := bytes * int64(min(e.regime, st.count-c))
				if !w.message(e, st, int32(i), tile, off, n) {
					return
				}
			}
			if st.post {
				w.post(e, tile*int64(len(w.steps))+int64(i)+1)
			}
			if e.events {
				w.events = append(w.events, ir.Event{Rank: w.rank, TB: w.tb, Step: int32(i), Tile: int32(tile),
					Begin: begin.Sub(e.start).Nanoseconds(), End: time.Since(e.start).Nanoseconds()})
			}
		}
	}
}

// message does one message's worth of a step: n bytes, off bytes into the step's
// places. It reports false when the engine has stopped.
func (w *worker) message(e *engine, st *step, i int32, tile, off, n int64) bool {
	if e.chaos != nil && (st.in != nil || st.out != nil) && e.flagged() {
		return w.flaggedMessage(e, st, i, tile, off, n)
	}
	if e.stopped.Load() || !e.turn(w) {
		return false
	}
	var in, out, src, dst []byte
	if c := st.in; c != nil {
		k := c.taken.Load()
		if k >= c.fullUntil {
			if c.fullUntil = c.sent.Load(); k >= c.fullUntil {
				if !e.await(w, wait{kind: waitMessage, step: i, tile: tile, conn: c}) {
					return false
				}
				c.fullUntil = c.sent.Load()
			}
		}
		if got := c.size[k%c.slots]; got != n {
			e.fail(e.wrongSize(w, i, c, got, n))
			return false
		}
		in = c.slot(k)[:n]
	}
	if c := st.out; c != nil {
		k := c.sent.Load()
		if k >= c.freeUntil {
			if c.freeUntil = c.taken.Load() + c.slots; k >= c.freeUntil {
				if !e.await(w, wait{kind: waitSlot, step: i, tile: tile, conn: c}) {
					return false
				}
				c.freeUntil = c.taken.Load() + c.slots
			}
		}
		out = c.slot(k)[:n]
		c.size[k%c.slots] = n
		c.moved += n
	}
	if st.kind.ReadsSrc() {
		src = w.memory[st.src+off:][:n]
	}
	if st.kind.WritesDst() {
		dst = w.memory[st.dst+off:][:n]
	}
	w.compute(e, st.kind, in, out, src, dst)
	if c := st.out; c != nil {
		c.sent.Add(1)
		if p := c.waitingReceiver.Load(); p != nil {
			e.rouse(p)
		}
	}
	if c := st.in; c != nil {
		c.taken.Add(1)
		if p := c.waitingSender.Load(); p != nil {
			e.rouse(p)
		}
	}
	return true
}

// compute moves and combines the bytes of one message.
func (w *worker) compute(e *engine, kind ir.StepKind, in, out, src, dst []byte) {
	switch kind {
	case ir.Send:
		for len(src) > 0 {
			n := min(slotPiece, len(src))
			copy(out[:n], src[:n])
			out, src = out[n:], src[n:]
		}
	case ir.Recv:
		copy(dst, in)
	case ir.Copy:
		// In place a chunk may be copied onto itself while others read it.
		if len(src) > 0 && &src[0] != &dst[0] {
			copy(dst, src)
		}
	case ir.RecvReduceSend:
		e.combine.Into(out, in, src)
	case ir.RecvReduceCopy:
		e.combine.Into(dst, in, src)
	case ir.Reduce:
		e.combine.Into(dst, src, dst)
	case ir.RecvCopySend:
		for len(in) > 0 {
			n := min(piece, len(in))
			copy(dst[:n], in[:n])
			copy(out[:n], in[:n])
			in, out, dst = in[n:], out[n:], dst[n:]
		}
	case ir.RecvReduceCopySend:
		for len(in) > 0 {
			n := min(piece, len(in))
			e.combine.Into(out[:n], in[:n], src[:n])
			copy(dst[:n], out[:n])
			in, out, src, dst = in[n:], out[n:], src[n:], dst[n:]
		}
	}
}

// post publishes a step and wakes whoever waits for it.
func (w *worker) post(e *engine, done int64) {
	w.posted.Store(done)
	if w.sleepers.Load() > 0 {
		e.rouseSleepers(w)
	}
}
