package cpu

import (
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mscclsh/mscclsh/runtime"
)

// waitKind is what a parked worker waits for.
type waitKind uint8

const (
	running       waitKind = iota
	waitMessage            // a message on an empty connection
	waitSlot               // a slot of a full connection
	waitStep               // a step of another thread block
	waitSignal             // a signal on a channel
	waitSemaphore          // a semaphore above 0
	waitBarrier            // the others at a barrier
	waitPacket             // one of some packets
	waitPeer               // a step of protocol Direct, of a thread block of any rank
	waitFlag               // one of some flags of a message, in chaos mode
)

// wait is one condition, and where in the program it stands.
type wait struct {
	kind waitKind
	step int32
	tile int64
	conn *conn
	of   *worker // waitStep, waitPeer
	goal int64   // waitStep: value of of.posted; waitPeer: the step times stages, plus its stage; waitSignal, waitBarrier: of the count; waitPacket: the flag

	missing []*bool // waitFlag

	// Of a one-sided program, where step is an index of OneSided.Ops:
	spot    *spot
	count   *counter
	barrier *barrier
	packets []*uint64
}

// ready reports whether the condition holds. It stays true once it is: only the
// waiting worker itself could undo it, or another one that takes from the same
// semaphore.
func (c *wait) ready() bool {
	switch c.kind {
	case waitMessage:
		return c.conn.hasMessage()
	case waitSlot:
		return c.conn.hasSlot()
	case waitStep:
		return c.of.posted.Load() >= c.goal
	case waitPeer:
		return c.of.meetings[c.goal/stages].stage.Load() >= int32(c.goal%stages)
	case waitFlag:
		return slices.ContainsFunc(c.missing, func(f *bool) bool { return *f })
	case waitSignal:
		return c.count.value.Load() >= c.goal
	case waitSemaphore:
		return c.count.value.Load() > 0
	case waitBarrier:
		return c.barrier.arrived.Load() >= c.goal
	case waitPacket:
		for _, p := range c.packets {
			if packetFlag(p) == uint32(c.goal) {
				return true
			}
		}
		return false
	}
	return true
}

// spins is how often a worker yields before it parks: a partner that runs on
// another processor is usually done by then, and with more workers than
// processors the others get their turn at once.
const spins = 4

// engine is one run of a plan.
type engine struct {
	*plan
	combine *runtime.Combine
	events  bool
	start   time.Time
	chaos   *baton // of a run in chaos mode, or nil

	stopped atomic.Bool // set once, with err

	mu     sync.Mutex
	live   int // workers that are not done
	parked int // of those, parked with nobody about to wake them
	err    error
}

// run executes the program once.
func (e *engine) run() error {
	for _, c := range e.conns {
		c.reset()
	}
	if e.one != nil {
		e.one.reset()
	}
	for _, w := range e.workers {
		w.posted.Store(0)
		for i := range w.meetings {
			w.meetings[i].stage.Store(0)
		}
		w.events = w.events[:0]
	}
	e.mu.Lock()
	e.live = len(e.workers)
	e.mu.Unlock()
	e.start = time.Now()
	var wg sync.WaitGroup
	for _, w := range e.workers {
		wg.Go(func() {
			if e.chaos != nil {
				<-w.wake
			}
			w.run(e)
			e.leave(w)
		})
	}
	if e.chaos != nil {
		e.begin()
	}
	wg.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	return e.leftovers()
}

// leave takes a finished worker out of the count; the rest may then be stuck.
func (e *engine) leave(w *worker) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.live--
	if e.chaos != nil {
		e.leaveChaos(w)
		return
	}
	e.checkStuck()
}

// checkStuck ends the run if every worker that is left is parked.
func (e *engine) checkStuck() {
	if e.live > 0 && e.parked == e.live && !e.stopped.Load() {
		e.stop(e.deadlock())
	}
}

// await blocks w until c holds; it reports false if the engine stopped first.
func (e *engine) await(w *worker, c wait) bool {
	if e.chaos != nil {
		return e.takeTurn(w, c)
	}
	for range spins {
		goruntime.Gosched()
		if c.ready() {
			return true
		}
	}
	e.mu.Lock()
	if e.stopped.Load() {
		e.mu.Unlock()
		return false
	}
	// Registering comes before the last look: whoever makes the condition true
	// afterwards finds w registered.
	w.waits = c
	w.register()
	if c.ready() {
		w.unregister()
		w.waits = wait{}
		e.mu.Unlock()
		return true
	}
	e.parked++
	e.checkStuck()
	e.mu.Unlock()
	<-w.wake
	return !e.stopped.Load()
}

func (w *worker) register() {
	switch c := &w.waits; c.kind {
	case waitMessage:
		c.conn.waitingReceiver.Store(w)
	case waitSlot:
		c.conn.waitingSender.Store(w)
	case waitStep, waitPeer:
		c.of.sleeping = append(c.of.sleeping, w)
		c.of.sleepers.Add(1)
	default:
		c.spot.sleeping = append(c.spot.sleeping, w)
		c.spot.sleepers.Add(1)
	}
}

func (w *worker) unregister() {
	switch c := &w.waits; c.kind {
	case waitMessage:
		c.conn.waitingReceiver.Store(nil)
	case waitSlot:
		c.conn.waitingSender.Store(nil)
	case waitStep, waitPeer:
		i := slices.Index(c.of.sleeping, w)
		c.of.sleeping = slices.Delete(c.of.sleeping, i, i+1)
		c.of.sleepers.Add(-1)
	default:
		i := slices.Index(c.spot.sleeping, w)
		c.spot.sleeping = slices.Delete(c.spot.sleeping, i, i+1)
		c.spot.sleepers.Add(-1)
	}
}

// rouse wakes p if it is parked and its condition holds.
func (e *engine) rouse(p *worker) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rouseLocked(p)
}

func (e *engine) rouseLocked(p *worker) {
	if e.chaos != nil {
		return // the baton finds out by itself
	}
	if p.waits.kind != running && p.waits.ready() {
		e.release(p)
	}
}

// release lets a parked worker go on.
func (e *engine) release(p *worker) {
	p.unregister()
	p.waits = wait{}
	e.parked--
	p.wake <- struct{}{}
}

// rouseSleepers wakes those whose step w has posted.
func (e *engine) rouseSleepers(w *worker) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := len(w.sleeping) - 1; i >= 0; i-- {
		e.rouseLocked(w.sleeping[i])
	}
}

// fail ends the run with err, unless it has ended already.
func (e *engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopped.Load() {
		e.stop(err)
	}
}

// stop makes every worker return; e.mu is held.
func (e *engine) stop(err error) {
	e.err = err
	e.stopped.Store(true)
	if e.chaos != nil {
		e.stopChaos()
		return
	}
	for _, w := range e.workers {
		if w.waits.kind != running {
			e.release(w)
		}
	}
}
