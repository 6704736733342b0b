package cpu

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// The stages of a step of protocol Direct, in order.
const (
	arrived = 1 + iota // others may touch its memory if the rules say so
	parted             // its own part is done: what it offers to be read is there
	ended
	stages // above all of them
)

// meeting is what a step has to do with other ranks.
type meeting struct {
	from, to  peer // whose message it gets, and who gets its own
	pushes    bool // it writes into the memory of to
	exchanges bool // with the step after it
	stage     atomic.Int32
}

// peer is a step of another rank; w is nil where there is none.
type peer struct {
	w    *worker
	step int32
}

func (p peer) of() *step { return &p.w.steps[p.step] }

// meet finds the k-th receive of every connection for its k-th send.
func (pl *plan) meet() error {
	sends, receives := map[*conn][]peer{}, map[*conn][]peer{}
	for _, w := range pl.workers {
		w.meetings = make([]meeting, len(w.steps))
		for i := range w.steps {
			w.meetings[i].exchanges = pl.prog.GPUs[w.rank].TBs[w.tb].Exchanges(int32(i))
			if c := w.steps[i].out; c != nil {
				sends[c] = append(sends[c], peer{w, int32(i)})
			}
			if c := w.steps[i].in; c != nil {
				receives[c] = append(receives[c], peer{w, int32(i)})
			}
		}
	}
	for _, c := range pl.conns {
		if err := pl.pair(c, sends[c], receives[c]); err != nil {
			return err
		}
	}
	return nil
}

func (pl *plan) pair(c *conn, sends, receives []peer) error {
	if len(sends) != len(receives) {
		return diag.Errorf(diag.Pos{}, "count-mismatch", "run: rank %d sends %d messages to rank %d on channel %d, which receives %d",
			c.key.src, len(sends), c.key.dst, c.key.channel, len(receives))
	}
	for i, s := range sends {
		r := receives[i]
		st := &pl.prog.GPUs[r.w.rank].TBs[r.w.tb].Steps[r.step]
		bad := func(code, format string, args ...any) error {
			return diag.Errorf(pl.prog.Pos(st.Pos), code, "run: rank %d thread block %d step %d (%v): %s",
				r.w.rank, r.w.tb, r.step, st.Kind, fmt.Sprintf(format, args...))
		}
		switch {
		case s.of().count != r.of().count:
			return bad("count-mismatch", "the message from rank %d on channel %d has %d chunks, want %d",
				c.key.src, c.key.channel, s.of().count, r.of().count)
		case s.of().kind == ir.RecvReduceSend && st.Kind.Pulls():
			return bad("no-memory", "the message from rank %d on channel %d is a sum that stands in no memory", c.key.src, c.key.channel)
		}
		m := &s.w.meetings[s.step]
		m.to, m.pushes = r, !st.Kind.Pulls()
		r.w.meetings[r.step].from = s
	}
	return nil
}

// runDirect runs the steps of a program of protocol Direct.
func (w *worker) runDirect(e *engine) {
	for i := int32(0); int(i) < len(w.steps); i++ {
		last := i
		if w.meetings[i].exchanges {
			last++
		}
		var begin time.Time
		if e.events {
			begin = time.Now()
		}
		if !w.depend(e, i) {
			return
		}
		for s := i; s <= last; s++ {
			w.reach(e, s, arrived)
		}
		for s := i; s <= last; s++ {
			if !w.part(e, s) {
				return
			}
		}
		for s := i; s <= last; s++ {
			if !w.finish(e, s) {
				return
			}
		}
		for s := i; s <= last; s++ {
			w.reach(e, s, ended)
			if e.events {
				w.events = append(w.events, ir.Event{Rank: w.rank, TB: w.tb, Step: s,
					Begin: begin.Sub(e.start).Nanoseconds(), End: time.Since(e.start).Nanoseconds()})
			}
		}
		for s := i; s <= last; s++ {
			if w.steps[s].post {
				w.post(e, int64(s)+1)
			}
		}
		i = last
	}
}

// depend waits for what step i depends on.
func (w *worker) depend(e *engine, i int32) bool {
	if e.stopped.Load() {
		return false
	}
	for _, g := range w.steps[i].goals {
		goal := int64(g.step) + 1
		if g.of.posted.Load() < goal && !e.await(w, wait{kind: waitStep, step: i, of: g.of, goal: goal}) {
			return false
		}
	}
	return true
}

// reach raises the stage of step i and wakes who waits for it.
func (w *worker) reach(e *engine, i, stage int32) {
	w.meetings[i].stage.Store(stage)
	if w.sleepers.Load() > 0 {
		e.rouseSleepers(w)
	}
}

// awaitPeer waits until a step of another rank has come to a stage.
func (w *worker) awaitPeer(e *engine, i int32, p peer, stage int32) bool {
	c := wait{kind: waitPeer, step: i, of: p.w, goal: int64(p.step)*stages + int64(stage)}
	return c.ready() || e.await(w, c)
}

// part does step i's own part when all whose memory it touches have arrived: moves
// bytes if that is up to it, or waits until they are there.
func (w *worker) part(e *engine, i int32) bool {
	m, st := &w.meetings[i], &w.steps[i]
	if m.from.w != nil && !w.awaitPeer(e, i, m.from, parted) {
		return false
	}
	if m.pushes && !w.awaitPeer(e, i, m.to, arrived) {
		return false
	}
	local := st.kind == ir.Copy || st.kind == ir.Reduce
	if (local || m.pushes || st.kind.Pulls()) && !w.transfer(e, i) {
		return false
	}
	w.reach(e, i, parted)
	return true
}

// finish waits for the end of who pulls from step i, and counts messages.
func (w *worker) finish(e *engine, i int32) bool {
	m, st := &w.meetings[i], &w.steps[i]
	if m.to.w != nil {
		if !m.pushes && !w.awaitPeer(e, i, m.to, ended) {
			return false
		}
		st.out.sent.Add(1)
		st.out.moved += int64(st.count) * e.layout.ChunkBytes()
	}
	if st.in != nil {
		st.in.taken.Add(1)
	}
	return true
}

// transfer moves the bytes of step i, from where they are to where they belong.
func (w *worker) transfer(e *engine, i int32) bool {
	m, st := &w.meetings[i], &w.steps[i]
	n := int64(st.count) * e.layout.ChunkBytes()
	var in, out, src, dst []byte
	if st.kind.Pulls() {
		at := m.from.of().src
		if m.from.of().kind != ir.Send {
			at = m.from.of().dst
		}
		in = m.from.w.memory[at:][:n]
	}
	if m.pushes {
		out = m.to.w.memory[m.to.of().dst:][:n]
	}
	if st.kind.ReadsSrc() {
		src = w.memory[st.src:][:n]
	}
	if st.kind.WritesDst() {
		dst = w.memory[st.dst:][:n]
	}
	kind := st.kind
	switch {
	case kind == ir.RecvCopySend: // what it has received was written there
		kind, src, dst = ir.Send, dst, nil
	case kind == ir.RecvReduceCopySend && !m.pushes:
		kind = ir.RecvReduceCopy
	}
	cut := n
	if e.chaos != nil {
		size := int64(e.layout.DType.Size())
		cut = n / 2 / size * size
	}
	for _, part := range [2][2]int64{{0, cut}, {cut, n}} {
		if part[0] == part[1] {
			continue
		}
		if !e.turn(w) {
			return false
		}
		w.compute(e, kind, cutOut(in, part), cutOut(out, part), cutOut(src, part), cutOut(dst, part))
	}
	return true
}

// cutOut is a part of some memory, nil if there is none.
func cutOut(memory []byte, part [2]int64) []byte {
	if memory == nil {
		return nil
	}
	return memory[part[0]:part[1]]
}

// describePeer names the step of another rank that is waited for.
func (c *wait) describePeer() string {
	step := c.goal / stages
	what := [stages]string{arrived: "to arrive", parted: "to have its bytes", ended: "to end"}[c.goal%stages]
	s := fmt.Sprintf("rank %d thread block %d step %d (%v) %s", c.of.rank, c.of.tb, step, c.of.steps[step].kind, what)
	if c.of.waits.kind != running && int64(c.of.waits.step) != step {
		s += fmt.Sprintf(" (it is at step %d)", c.of.waits.step)
	}
	return s
}
