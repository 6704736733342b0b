package cpu

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// checkGoroutines fails if more goroutines are left than there were before.
func checkGoroutines(t *testing.T) {
	before := goruntime.NumGoroutine()
	t.Cleanup(func() {
		for range 200 {
			if goruntime.NumGoroutine() <= before {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Errorf("%d goroutines before, %d after", before, goruntime.NumGoroutine())
	})
}

// exchange sends count chunks in one step before receiving as many, on both ranks.
func exchange(count, slots int32, slotBytes int64) *builder {
	b := newBuilder(ir.NewCollective(ir.AllReduce, 2, count, false), slots, slotBytes)
	for r := range ir.Rank(2) {
		b.add(r, 0, send(1-r, in(0), count)).
			add(r, 0, fused(ir.RecvReduceCopy, 1-r, ir.None, in(0), out(0), count))
	}
	b.p.Positions = []diag.Pos{{}, {File: "x.star", Line: 7, Col: 3}}
	b.p.GPUs[0].TBs[0].Steps[0].Pos = 1
	return b
}

// TestDeadlocks asserts the whole message of every way to wait for ever.
func TestDeadlocks(t *testing.T) {
	checkGoroutines(t)
	crossed := newBuilder(ir.NewCollective(ir.AllReduce, 2, 1, true), 2, 64)
	for r := range ir.Rank(2) {
		crossed.add(r, 0, fused(ir.RecvReduceCopy, 1-r, ir.None, in(0), in(0), 1)).add(r, 0, send(1-r, in(0), 1))
	}
	nobody := newBuilder(ir.NewCollective(ir.AllReduce, 2, 1, true), 2, 64).
		add(0, 0, recv(1, in(0), 1)).add(1, 0, base(ir.Nop, 0))
	silent := newBuilder(ir.NewCollective(ir.AllReduce, 1, 1, true), 2, 64).
		add(0, 0, base(ir.Nop, 0)).add(0, 1, base(ir.Nop, 0), tb(0, 0))
	cycle := newBuilder(ir.NewCollective(ir.AllReduce, 1, 1, true), 2, 64).
		add(0, 0, base(ir.Nop, 0), tb(1, 0)).post(0, 0).add(0, 1, base(ir.Nop, 0), tb(0, 0)).post(0, 1)
	for _, c := range []struct {
		name string
		b    *builder
		want string
	}{
		// 16 bytes a chunk, so one a message: 4 messages, 3 slots.
		{"full connections", exchange(4, 3, 16), `run: deadlock: every thread block that is not done waits, 2 of 2 (slots per connection: 3, chunks per message: 1)
    x.star:7:3: rank 0 thread block 0 step 0 (s) waits for a free slot to rank 1 on channel 0 (all 3 are full; its receiver, thread block 0, is at step 0)
    rank 1 thread block 0 step 0 (s) waits for a free slot to rank 0 on channel 0 (all 3 are full; its receiver, thread block 0, is at step 0)`},
		{"empty connections", crossed, `run: deadlock: every thread block that is not done waits, 2 of 2 (slots per connection: 2, chunks per message: 1)
    rank 0 thread block 0 step 0 (rrc) waits for a message from rank 1 on channel 0 (the connection is empty; its sender, thread block 0, is at step 0)
    rank 1 thread block 0 step 0 (rrc) waits for a message from rank 0 on channel 0 (the connection is empty; its sender, thread block 0, is at step 0)`},
		{"no sender", nobody, `run: deadlock: every thread block that is not done waits, 1 of 2 (slots per connection: 2, chunks per message: 1)
    rank 0 thread block 0 step 0 (r) waits for a message from rank 1 on channel 0 (the connection is empty, and no thread block is its sender)`},
		{"a step that never posts", silent, `run: deadlock: every thread block that is not done waits, 1 of 2 (slots per connection: 2, chunks per message: 1)
    rank 0 thread block 1 step 0 (nop) waits for thread block 0 step 0, but neither that step nor a later one posts`},
		{"semaphores in a circle", cycle, `run: deadlock: every thread block that is not done waits, 2 of 2 (slots per connection: 2, chunks per message: 1)
    rank 0 thread block 0 step 0 (nop) waits for thread block 1 step 0
    rank 0 thread block 1 step 0 (nop) waits for thread block 0 step 0`},
	} {
		_, err := Run(context.Background(), c.b.p, Options{Bytes: 64, Exact: true})
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != "deadlock" || err.Error() != c.want {
			t.Errorf("%s: got %v\nwant %s", c.name, err, c.want)
		}
	}
}

// TestDeadlockDependsOnSlotsAndSize: 4 chunks fit 4 slots one by one, and 2 slots
// two by two.
func TestDeadlockDependsOnSlotsAndSize(t *testing.T) {
	for _, c := range []struct {
		slots     int32
		slotBytes int64
		ok        bool
	}{{4, 16, true}, {3, 16, false}, {2, 32, true}, {1, 32, false}, {1, 64, true}, {2, 24, false}, {4, 8, true}, {3, 8, false}} {
		for range 20 { // whatever the scheduling
			rep, err := Run(context.Background(), exchange(4, c.slots, c.slotBytes).p, Options{Bytes: 64, Exact: true})
			if (err == nil) != c.ok || c.ok && !rep.Verified {
				t.Fatalf("%+v: %v", c, err)
			}
		}
	}
}

// TestFusedStepHoldsItsSlot: a forwarder keeps its input slot while its output is
// full, so that with one slot everywhere the sender's second message stays out.
func TestFusedStepHoldsItsSlot(t *testing.T) {
	coll := rooted(ir.Broadcast, 3, 2, 0, ir.None, true)
	build := func(slots int32) *ir.Program {
		b := newBuilder(coll, slots, 16)
		// Rank 0 sends two chunks and then wants an answer from rank 2; rank 2 answers
		// before it takes the second chunk, but after rank 0 says so on channel 1.
		b.add(0, 0, send(1, in(0), 1)).add(0, 0, send(1, in(1), 1))
		done := send(2, in(0), 1)
		done.Chan = 1
		b.add(0, 0, done)
		b.add(1, 0, fused(ir.RecvCopySend, 0, 2, ir.NoPlace, in(0), 1)).
			add(1, 0, fused(ir.RecvCopySend, 0, 2, ir.NoPlace, in(1), 1))
		go1 := recv(0, in(0), 1)
		go1.Chan = 1
		b.add(2, 0, go1).add(2, 0, recv(1, in(0), 1)).add(2, 0, recv(1, in(1), 1))
		return b.p
	}
	// One slot: chunk 0 sits in 1->2, chunk 1 in 0->1 held by the forwarder: rank 0 is
	// done with both sends and can say so. That is the limit: it runs.
	if _, err := Run(context.Background(), build(1), Options{Bytes: 32, Exact: true}); err != nil {
		t.Errorf("two chunks: %v", err)
	}
	// A third chunk has no place, since the second's slot is held, not freed.
	b := newBuilder(rooted(ir.Broadcast, 3, 3, 0, ir.None, true), 1, 16)
	for i := range int32(3) {
		b.add(0, 0, send(1, in(i), 1)).add(1, 0, fused(ir.RecvCopySend, 0, 2, ir.NoPlace, in(i), 1))
	}
	done, start := send(2, in(0), 1), recv(0, in(0), 1)
	done.Chan, start.Chan = 1, 1
	b.add(0, 0, done).add(2, 0, start)
	for i := range int32(3) {
		b.add(2, 0, recv(1, in(i), 1))
	}
	_, err := Run(context.Background(), b.p, Options{Bytes: 48, Exact: true})
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != "deadlock" {
		t.Errorf("three chunks: got %v, want a deadlock", err)
	}
	b.p.Transport.Slots = 2
	if _, err := Run(context.Background(), b.p, Options{Bytes: 48, Exact: true}); err != nil {
		t.Errorf("three chunks, two slots: %v", err)
	}
}

func TestManyWaitersAreCut(t *testing.T) {
	checkGoroutines(t)
	b := newBuilder(ir.NewCollective(ir.AllReduce, 30, 1, true), 2, 64)
	for r := range ir.Rank(30) {
		b.add(r, 0, recv((r+1)%30, in(0), 1)).add(r, 0, send((r+29)%30, in(0), 1))
	}
	_, err := Run(context.Background(), b.p, Options{Bytes: 4, Exact: true})
	var m *diag.Message
	if !errors.As(err, &m) || len(m.Notes) != 21 || m.Notes[20].Text != "and 10 more" {
		t.Errorf("got %v", err)
	}
}

func TestCountMismatches(t *testing.T) {
	coll := rooted(ir.SendRecv, 2, 2, 0, 1, false)
	for _, c := range []struct {
		b    *builder
		want string
	}{
		{newBuilder(coll, 2, 64).add(0, 0, send(1, in(0), 2)).add(1, 0, recv(0, out(0), 1)).add(1, 0, recv(0, out(1), 1)),
			"run: rank 1 thread block 0 step 0 (r): the message from rank 0 on channel 0 has 16 bytes, want 8"},
		{newBuilder(coll, 2, 64).add(0, 0, send(1, in(0), 1)).add(0, 0, send(1, in(1), 1)).add(1, 0, recv(0, out(0), 1)),
			"run: 1 messages from rank 0 to rank 1 on channel 0 were sent but never received"},
	} {
		_, err := Run(context.Background(), c.b.p, Options{Bytes: 16, Exact: true})
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != "count-mismatch" || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestInterrupt: a run that would take hours ends soon after its context, says who
// waited, and leaves no goroutine.
func TestInterrupt(t *testing.T) {
	checkGoroutines(t)
	p := ringAllReduce(16, 1, ir.Transport{Slots: 2, SlotBytes: 64})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	_, err := Run(ctx, p, Options{Bytes: 1 << 20, Iterations: 1 << 30, NoVerify: true, Exact: true})
	var m *diag.Message
	var i *Interrupted
	if !errors.Is(err, context.Canceled) || !errors.As(err, &i) || !errors.As(err, &m) || m.Code != "interrupted" {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	if _, err := Run(ctx, p, Options{Bytes: 1 << 20}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: got %v", err)
	}
}

func TestNoLeaksAfterSuccess(t *testing.T) {
	checkGoroutines(t)
	mustRun(t, ringAllReduce(8, 2, ir.Transport{Slots: 3, SlotBytes: 64}), Options{Bytes: 4096, Exact: true, Iterations: 5})
}
