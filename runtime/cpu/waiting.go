package cpu

import (
	"context"
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// maxNotes is the number of waiting thread blocks that a message lists.
const maxNotes = 20

// Interrupted is the error of a run that its context ended. Its message lists who
// waited for what at that moment.
type Interrupted struct {
	Message *diag.Message
	Cause   error
}

// Error renders the message.
func (i *Interrupted) Error() string { return i.Message.Error() }

// Unwrap gives both the message and the context's error.
func (i *Interrupted) Unwrap() []error { return []error{i.Message, i.Cause} }

// interrupt ends the run because ctx is done.
func (e *engine) interrupt(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped.Load() {
		return
	}
	m := diag.Errorf(diag.Pos{}, "interrupted", "run: interrupted (%v): %d of %d thread blocks were not done, %d of them waiting",
		context.Cause(ctx), e.live, len(e.workers), e.parked)
	e.stop(&Interrupted{e.listWaiting(m), ctx.Err()})
}

// deadlock is the message for a run in which everybody waits; e.mu is held.
func (e *engine) deadlock() error {
	if e.one != nil {
		return e.listWaiting(diag.Errorf(diag.Pos{}, "deadlock",
			"run: deadlock: every thread block that is not done waits, %d of %d", e.live, len(e.workers)))
	}
	if e.prog.Direct() {
		return e.listWaiting(diag.Errorf(diag.Pos{}, "deadlock",
			"run: deadlock: every thread block that is not done waits, %d of %d (no slots: protocol Direct)", e.live, len(e.workers)))
	}
	m := diag.Errorf(diag.Pos{}, "deadlock",
		"run: deadlock: every thread block that is not done waits, %d of %d (slots per connection: %d, chunks per message: %d)",
		e.live, len(e.workers), e.prog.Transport.Slots, e.regime)
	return e.listWaiting(m)
}

// listWaiting notes what each parked worker waits for, by rank and thread block.
func (e *engine) listWaiting(m *diag.Message) *diag.Message {
	more := 0
	for _, w := range e.workers {
		if w.waits.kind == running {
			continue
		}
		if len(m.Notes) == maxNotes {
			more++
			continue
		}
		if e.one != nil {
			op := &e.prog.OneSided.Ops[w.waits.step]
			m.Note(e.prog.Pos(op.Pos), "rank %d thread block %d op %s (%v) waits for %s", w.rank, w.tb,
				w.opNumber(e), op.Kind, w.waits.describeOne(e, w))
			continue
		}
		st := &e.prog.GPUs[w.rank].TBs[w.tb].Steps[w.waits.step]
		m.Note(e.prog.Pos(st.Pos), "rank %d thread block %d step %d (%v)%s waits for %s",
			w.rank, w.tb, w.waits.step, st.Kind, e.tileName(w.waits.tile), w.waits.describe(e))
	}
	if more > 0 {
		m.Note(diag.Pos{}, "and %d more", more)
	}
	return m
}

func (e *engine) tileName(tile int64) string {
	if e.tiles <= 1 {
		return ""
	}
	return fmt.Sprintf(" of tile %d", tile)
}

// describe names the condition and the state of whoever could fulfill it.
func (c *wait) describe(e *engine) string {
	switch c.kind {
	case waitMessage, waitFlag:
		return fmt.Sprintf("a message from rank %d on channel %d (the connection is empty%s)",
			c.conn.key.src, c.conn.key.channel, c.conn.sender.state("sender"))
	case waitSlot:
		return fmt.Sprintf("a free slot to rank %d on channel %d (all %d are full%s)",
			c.conn.key.dst, c.conn.key.channel, c.conn.slots, c.conn.receiver.state("receiver"))
	case waitPeer:
		return c.describePeer()
	}
	n := int64(len(c.of.steps))
	step := (c.goal - 1) % n
	s := fmt.Sprintf("thread block %d step %d", c.of.tb, step)
	for i := step; i < n; i++ {
		if c.of.steps[i].post {
			return s
		}
	}
	return s + ", but neither that step nor a later one posts"
}

// opNumber is the number of the operation that w stands at, as listings have it.
func (w *worker) opNumber(e *engine) string {
	o := e.prog.OneSided
	span := o.GPUs[w.rank].Blocks[w.tb]
	i := w.waits.step
	if i >= span.Start && i < span.End {
		return fmt.Sprint(i - span.Start)
	}
	for j := span.Start; j < span.End; j++ {
		if b := o.Ops[j].Body; o.Ops[j].Kind == ir.OpPipeline && i >= b.Start && i < b.End {
			return fmt.Sprintf("%d.%d in turn %d", j-span.Start, i-b.Start, w.turn+1)
		}
	}
	return "?"
}

// describeOne is describe for a one-sided program.
func (c *wait) describeOne(e *engine, w *worker) string {
	switch c.kind {
	case waitSignal:
		for r := range e.one.signals {
			for n, s := range e.one.signals[r] {
				if s == c.count {
					return fmt.Sprintf("signal %d of rank %d on its channel %d (it has given %d)", c.goal, r, n, s.value.Load())
				}
			}
		}
	case waitSemaphore:
		return fmt.Sprintf("semaphore %d, which is %d", slices.Index(e.one.semaphores[w.rank], c.count), c.count.value.Load())
	case waitBarrier:
		return fmt.Sprintf("%d more at its barrier for %d", c.goal-c.barrier.arrived.Load(), c.barrier.parts)
	}
	return "a packet in its scratch"
}

// state tells what the other end of a connection is doing.
func (w *worker) state(role string) string {
	switch {
	case w == nil:
		return fmt.Sprintf(", and no thread block is its %s", role)
	case w.waits.kind == running:
		return fmt.Sprintf("; its %s is thread block %d", role, w.tb)
	}
	return fmt.Sprintf("; its %s, thread block %d, is at step %d", role, w.tb, w.waits.step)
}

// wrongSize is the message for two ends of a connection that disagree.
func (e *engine) wrongSize(w *worker, i int32, c *conn, got, want int64) error {
	st := &e.prog.GPUs[w.rank].TBs[w.tb].Steps[i]
	return diag.Errorf(e.prog.Pos(st.Pos), "count-mismatch",
		"run: rank %d thread block %d step %d (%v): the message from rank %d on channel %d has %d bytes, want %d",
		w.rank, w.tb, i, st.Kind, c.key.src, c.key.channel, got, want)
}

// leftovers refuses a run that ended with messages nobody took.
func (e *engine) leftovers() error {
	for _, c := range e.conns {
		if n := c.sent.Load() - c.taken.Load(); n != 0 {
			return diag.Errorf(diag.Pos{}, "count-mismatch",
				"run: %d messages from rank %d to rank %d on channel %d were sent but never received",
				n, c.key.src, c.key.dst, c.key.channel)
		}
	}
	return nil
}
