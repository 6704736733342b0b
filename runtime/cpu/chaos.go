package cpu

import (
	"math/rand/v2"
)

// Chaos makes a run take its turns one thread block at a time, drawn by a seed:
// the same seed gives the same interleaving, message by message, and with LL and LL128
// part by part, and another seed another one. A program that is free of races gives the same bits under all.
type Chaos struct {
	Seed uint64
	// Slots is the depth of every connection instead of the program's; 0 keeps it.
	// Protocol Direct has none.
	Slots int32
}

// baton is held by the one worker that may run. It lives under engine.mu.
type baton struct {
	rng    *rand.Rand
	done   []bool // by worker: has finished
	number map[*worker]int
	holder *worker
	list   []*worker // of candidates, kept for its memory
}

func newBaton(seed uint64, workers []*worker) *baton {
	b := &baton{rng: rand.New(rand.NewPCG(seed, 0x6368616f73)), done: make([]bool, len(workers)), number: make(map[*worker]int, len(workers))}
	for i, w := range workers {
		b.number[w] = i
	}
	return b
}

// draw picks the worker that goes on: any that neither is done nor waits for
// something that has not happened. It is nil if there is none.
func (b *baton) draw(workers []*worker) *worker {
	b.list = b.list[:0]
	for i, w := range workers {
		if !b.done[i] && (w.waits.kind == running || w.waits.ready()) {
			b.list = append(b.list, w)
		}
	}
	if len(b.list) == 0 {
		b.holder = nil
		return nil
	}
	b.holder = b.list[b.rng.IntN(len(b.list))]
	return b.holder
}

// pick draws one of n things for the holder to do.
func (b *baton) pick(n int) int { return b.rng.IntN(n) }

// begin hands out the first turn.
func (e *engine) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handOn(nil)
}

// handOn draws the next holder and wakes it, unless that is w, who has the baton
// now. If nobody can go on, the run ends as a deadlock; e.mu is held.
func (e *engine) handOn(w *worker) {
	next := e.chaos.draw(e.workers)
	switch {
	case next != nil && next != w:
		next.wake <- struct{}{}
	case next == nil && e.live > 0 && !e.stopped.Load():
		e.stop(e.deadlock())
	}
}

// turn lets others go first, as the seed has it; it reports false when the
// engine has stopped. Without chaos it does nothing.
func (e *engine) turn(w *worker) bool {
	if e.chaos == nil {
		return true
	}
	return e.takeTurn(w, wait{})
}

// takeTurn gives the baton away until it comes back, which it does only once c
// holds.
func (e *engine) takeTurn(w *worker, c wait) bool {
	e.mu.Lock()
	if e.stopped.Load() {
		e.mu.Unlock()
		return false
	}
	w.waits = c
	e.handOn(w)
	mine := e.chaos.holder == w && !e.stopped.Load()
	e.mu.Unlock()
	if !mine {
		<-w.wake
	}
	e.mu.Lock()
	w.waits = wait{}
	e.mu.Unlock()
	return !e.stopped.Load()
}

// leaveChaos takes a finished worker out of the draw; e.mu is held.
func (e *engine) leaveChaos(w *worker) {
	e.chaos.done[e.chaos.number[w]] = true
	if !e.stopped.Load() {
		e.handOn(w)
	}
}

// stopChaos wakes everybody who waits for the baton; e.mu is held. The buffer of
// one in each wake channel takes what nobody receives any more.
func (e *engine) stopChaos() {
	for _, w := range e.workers {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}
