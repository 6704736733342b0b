package cpu

import (
	"context"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

func newDirect(coll *ir.Collective) *builder {
	b := newBuilder(coll, 0, 0)
	b.p.Protocol = ir.Direct
	return b
}

func on(channel int32, s ir.Step) ir.Step {
	s.Chan = channel
	return s
}

// twoShots is an allreduce of two ranks: each reduces its part, which it pulls from
// its peer, and pushes the sum back, where an exchange takes it.
func twoShots(inPlace bool) *builder {
	b := newDirect(ir.NewCollective(ir.AllReduce, 2, 2, inPlace))
	for r := range ir.Rank(2) {
		own, other := int32(r), int32(1-r)
		// Channel r carries what belongs to rank r, either way.
		b.add(r, 0, on(own, fused(ir.RecvReduceCopySend, 1-r, 1-r, in(own), out(own), 1))).
			add(r, 1, on(other, send(1-r, in(other), 1))).
			add(r, 1, on(other, recv(1-r, out(other), 1)))
	}
	return b
}

// directRing is an allgather with a block for either direction.
func directRing(n int32) *builder {
	b := newDirect(ir.NewCollective(ir.AllGather, n, 1, true))
	for r := range n {
		next, prev := ir.Rank((r+1)%n), ir.Rank((r+n-1)%n)
		b.add(ir.Rank(r), 0, send(next, out(r), 1))
		for hop := int32(1); hop < n-1; hop++ {
			b.add(ir.Rank(r), 0, send(next, out((r-hop+n)%n), 1), tb(1, hop-1))
		}
		for hop := int32(1); hop < n; hop++ {
			b.add(ir.Rank(r), 1, recv(prev, out((r-hop+n)%n), 1)).post(ir.Rank(r), 1)
		}
	}
	return b
}

// chain is a reduction along three ranks to the last one; kind is what the middle
// one does.
func chain(middle, last ir.StepKind) *builder {
	b := newDirect(rooted(ir.ReduceTo, 3, 1, 2, ir.None, true))
	b.add(0, 0, send(1, in(0), 1)).add(1, 0, fused(middle, 0, 2, in(0), in(0), 1))
	if last == ir.RecvReduceCopy {
		return b.add(2, 0, fused(last, 1, ir.None, in(0), in(0), 1))
	}
	return b.scratch(1).add(2, 0, recv(1, scr(0), 1)).add(2, 0, local(ir.Reduce, scr(0), in(0), 1))
}

// broadcastChain passes a chunk on by pushes, and the last but one is pulled from.
func broadcastChain() *builder {
	return newDirect(rooted(ir.Broadcast, 4, 1, 0, ir.None, true)).
		add(0, 0, send(1, in(0), 1)).
		add(1, 0, fused(ir.RecvCopySend, 0, 2, ir.NoPlace, in(0), 1)).
		add(2, 0, fused(ir.RecvCopySend, 1, 3, ir.NoPlace, in(0), 1)).
		add(3, 0, recv(2, in(0), 1))
}

// TestDirect runs hand-made programs of every kind of step, in order and in orders
// drawn by seeds.
func TestDirect(t *testing.T) {
	oneStep := newDirect(ir.NewCollective(ir.AllReduce, 2, 1, false))
	for r := range ir.Rank(2) {
		oneStep.add(r, 0, send(1-r, in(0), 1)).add(r, 1, fused(ir.RecvReduceCopy, 1-r, ir.None, in(0), out(0), 1))
	}
	pulledRCS := newDirect(rooted(ir.ReduceTo, 3, 1, 2, ir.None, true)).scratch(1).
		add(0, 0, send(1, in(0), 1)).
		add(1, 0, fused(ir.RecvCopySend, 0, 2, ir.NoPlace, scr(0), 1)).
		add(1, 1, on(1, send(2, in(0), 1))).
		add(2, 0, fused(ir.RecvReduceCopy, 1, ir.None, in(0), in(0), 1)).
		add(2, 0, on(1, fused(ir.RecvReduceCopy, 1, ir.None, in(0), in(0), 1)))
	for _, c := range []struct {
		name     string
		b        *builder
		messages int64
	}{
		{"two shots in place", twoShots(true), 4},
		{"two shots out of place", twoShots(false), 4},
		{"one step", oneStep, 2},
		{"ring", directRing(5), 20},
		{"rrs", chain(ir.RecvReduceSend, ir.Recv), 2},
		{"rrcs that pushes", chain(ir.RecvReduceCopySend, ir.Recv), 2},
		{"rrcs that is pulled from", chain(ir.RecvReduceCopySend, ir.RecvReduceCopy), 2},
		{"rcs", broadcastChain(), 3},
		{"rcs that is pulled from", pulledRCS, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, dtype := range []runtime.DType{runtime.FP32, runtime.Int8} {
				for _, bytes := range []int64{40, 64 << 10} {
					o := Options{Bytes: bytes, DType: dtype, Exact: true, Iterations: 5}
					rep := mustRun(t, c.b.p, o)
					if rep.Messages != c.messages || rep.Tiles != 1 || rep.Regime != 0 {
						t.Errorf("got %d messages, %d tiles, regime %d, want %d, 1, 0", rep.Messages, rep.Tiles, rep.Regime, c.messages)
					}
					for seed := range uint64(8) {
						o.Iterations, o.Chaos = 2, &Chaos{Seed: seed, Slots: 3}
						mustRun(t, c.b.p, o)
					}
				}
			}
		})
	}
}

// Bytes that a run moves between ranks: 2 ranks, 2 messages each of half the size.
func TestDirectReport(t *testing.T) {
	rep := mustRun(t, twoShots(true).p, Options{Bytes: 4096, DType: runtime.FP32, Exact: true, Events: true})
	if rep.Moved != 2*4096 || rep.Connections != 4 {
		t.Errorf("got %d bytes on %d connections, want 8192 on 4", rep.Moved, rep.Connections)
	}
	if len(rep.Events) != 6 {
		t.Errorf("got %d events, want 6", len(rep.Events))
	}
}

// What a rendezvous can't do, in whole sentences.
func TestDirectRefusals(t *testing.T) {
	checkGoroutines(t)
	sendsFirst := newDirect(ir.NewCollective(ir.AllReduce, 2, 1, false))
	for r := range ir.Rank(2) {
		sendsFirst.add(r, 0, send(1-r, in(0), 1)).add(r, 0, fused(ir.RecvReduceCopy, 1-r, ir.None, in(0), out(0), 1))
	}
	held := newDirect(ir.NewCollective(ir.AllReduce, 2, 2, true))
	for r := range ir.Rank(2) {
		held.add(r, 0, send(1-r, in(0), 1)).add(r, 0, base(ir.Nop, 0)).add(r, 0, recv(1-r, in(1), 1))
	}
	slots := twoShots(true)
	slots.p.Transport = ir.Transport{Slots: 2, SlotBytes: 64}
	for _, c := range []struct {
		name string
		b    *builder
		want string
	}{
		{"sends first", sendsFirst, `run: deadlock: every thread block that is not done waits, 2 of 2 (no slots: protocol Direct)
    rank 0 thread block 0 step 0 (s) waits for rank 1 thread block 0 step 1 (rrc) to end (it is at step 0)
    rank 1 thread block 0 step 0 (s) waits for rank 0 thread block 0 step 1 (rrc) to end (it is at step 0)`},
		{"no exchange", held, `run: deadlock: every thread block that is not done waits, 2 of 2 (no slots: protocol Direct)
    rank 0 thread block 0 step 0 (s) waits for rank 1 thread block 0 step 2 (r) to arrive (it is at step 0)
    rank 1 thread block 0 step 0 (s) waits for rank 0 thread block 0 step 2 (r) to arrive (it is at step 0)`},
		{"no memory", chain(ir.RecvReduceSend, ir.RecvReduceCopy),
			`run: rank 2 thread block 0 step 0 (rrc): the message from rank 1 on channel 0 is a sum that stands in no memory`},
		{"unequal counts", newDirect(ir.NewCollective(ir.AllReduce, 2, 2, true)).add(0, 0, send(1, in(0), 2)).add(1, 0, recv(0, in(0), 1)),
			`run: rank 1 thread block 0 step 0 (r): the message from rank 0 on channel 0 has 2 chunks, want 1`},
		{"nobody receives", newDirect(ir.NewCollective(ir.AllReduce, 2, 2, true)).add(0, 0, send(1, in(0), 2)).add(1, 0, base(ir.Nop, 0)),
			`run: rank 0 sends 1 messages to rank 1 on channel 0, which receives 0`},
		{"slots", slots, `run: protocol Direct has no slots, got 2 of 64 bytes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, chaos := range []*Chaos{nil, {Seed: 1}} {
				_, err := Run(context.Background(), c.b.p, Options{Bytes: 64, DType: runtime.FP32, Exact: true, Chaos: chaos})
				if err == nil || err.Error() != c.want {
					t.Errorf("got  %v\nwant %s", err, c.want)
				}
			}
		})
	}
}

// A race of Direct alone: both ranks push into what the other one is still to send.
func TestDirectChaosShowsRaces(t *testing.T) {
	b := newDirect(ir.NewCollective(ir.AllToAll, 2, 1, true))
	for r := range ir.Rank(2) {
		b.add(r, 0, send(1-r, in(int32(1-r)), 1)).add(r, 0, recv(1-r, in(int32(1-r)), 1))
	}
	wrong := 0
	for seed := range uint64(50) {
		rep, err := Run(context.Background(), b.p, Options{Bytes: 64, DType: runtime.Int32, Exact: true, Chaos: &Chaos{Seed: seed}})
		if err != nil {
			t.Fatal(err)
		}
		if !rep.Verified {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("no order of events shows the race")
	}
}
