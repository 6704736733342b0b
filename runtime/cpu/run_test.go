package cpu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"pgregory.net/rapid"
)

func rooted(k ir.CollectiveKind, n, f int32, root, peer ir.Rank, inPlace bool) *ir.Collective {
	c := ir.NewCollective(k, n, f, inPlace)
	c.Root, c.Peer = root, peer
	return c
}

func bytesOf(v ...int8) []byte {
	b := make([]byte, len(v))
	for i, x := range v {
		b[i] = byte(x)
	}
	return b
}

// mustRun runs p and fails the test unless the result is right.
func mustRun(t testing.TB, p *ir.Program, o Options) *Report {
	t.Helper()
	rep, err := Run(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if !rep.Verified {
		t.Fatalf("%d of %d elements are wrong, first %v", rep.Wrong, rep.Compared, rep.Mismatches)
	}
	return rep
}

// TestStepKinds runs every kind of step in the smallest program that needs it and
// compares outputs that were computed by hand.
func TestStepKinds(t *testing.T) {
	const big = 1 << 20
	for _, c := range []struct {
		name string
		b    *builder
		in   [][]byte
		want [][]byte
	}{
		{"s and r", newBuilder(rooted(ir.SendRecv, 2, 2, 0, 1, false), 2, big).
			add(0, 0, send(1, in(0), 2)).add(1, 0, recv(0, out(0), 2)),
			[][]byte{bytesOf(1, 2, 3, 4), nil}, [][]byte{nil, bytesOf(1, 2, 3, 4)}},
		{"rcs", newBuilder(rooted(ir.Broadcast, 3, 1, 0, ir.None, false), 2, big).
			add(0, 0, send(1, in(0), 1)).add(0, 0, local(ir.Copy, in(0), out(0), 1)).
			add(1, 0, fused(ir.RecvCopySend, 0, 2, ir.NoPlace, out(0), 1)).
			add(2, 0, recv(1, out(0), 1)),
			[][]byte{bytesOf(5, 6), nil, nil}, [][]byte{bytesOf(5, 6), bytesOf(5, 6), bytesOf(5, 6)}},
		{"rrs and rrc", newBuilder(rooted(ir.ReduceTo, 3, 1, 2, ir.None, false), 2, big).
			add(0, 0, send(1, in(0), 1)).
			add(1, 0, fused(ir.RecvReduceSend, 0, 2, in(0), ir.NoPlace, 1)).
			add(2, 0, fused(ir.RecvReduceCopy, 1, ir.None, in(0), out(0), 1)),
			[][]byte{bytesOf(1, 2), bytesOf(10, 20), bytesOf(100, 50)}, [][]byte{nil, nil, bytesOf(111, 72)}},
		{"rrcs", newBuilder(ir.NewCollective(ir.AllReduce, 2, 1, false), 2, big).
			add(0, 0, send(1, in(0), 1)).add(0, 0, recv(1, out(0), 1)).
			add(1, 0, fused(ir.RecvReduceCopySend, 0, 0, in(0), out(0), 1)),
			[][]byte{bytesOf(1, 2), bytesOf(10, 20)}, [][]byte{bytesOf(11, 22), bytesOf(11, 22)}},
		{"cpy, re and scratch", newBuilder(ir.NewCollective(ir.AllReduce, 2, 1, false), 2, big).scratch(1).
			add(0, 0, send(1, in(0), 1)).add(0, 0, recv(1, scr(0), 1)).
			add(0, 0, local(ir.Copy, in(0), out(0), 1)).add(0, 0, local(ir.Reduce, scr(0), out(0), 1)).
			add(1, 0, send(0, in(0), 1)).add(1, 0, recv(0, scr(0), 1)).
			add(1, 0, local(ir.Copy, in(0), out(0), 1)).add(1, 0, local(ir.Reduce, scr(0), out(0), 1)),
			[][]byte{bytesOf(1, 2), bytesOf(10, 20)}, [][]byte{bytesOf(11, 22), bytesOf(11, 22)}},
		// Thread block 1 must wait, through a nop, for what thread block 0 received,
		// and thread block 2 for a later step than the one it names.
		{"nop and waits", newBuilder(rooted(ir.ReduceTo, 2, 2, 0, ir.None, false), 2, big).scratch(2).
			add(1, 0, send(0, in(0), 2)).
			add(0, 0, recv(1, scr(0), 2)).post(0, 0).
			add(0, 1, base(ir.Nop, 0), tb(0, 0)).
			add(0, 1, local(ir.Copy, scr(0), out(0), 2)).add(0, 1, base(ir.Nop, 0)).post(0, 1).
			add(0, 2, local(ir.Reduce, in(0), out(0), 2), tb(1, 1), tb(0, 0)),
			[][]byte{bytesOf(1, 2, 3, 4), bytesOf(10, 20, 30, 40)}, [][]byte{bytesOf(11, 22, 33, 44), nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := int64(0)
			for _, b := range c.in {
				n = max(n, int64(len(b)))
			}
			rep := mustRun(t, c.b.p, Options{Bytes: n, DType: runtime.Int8, Inputs: c.in, KeepOutputs: true, Iterations: 3})
			for r, want := range c.want {
				if !bytes.Equal(rep.Outputs[r], want) {
					t.Errorf("rank %d: got %v, want %v", r, rep.Outputs[r], want)
				}
			}
		})
	}
}

// TestInPlaceAliases: in place, a rank's part of the whole is at its own place.
func TestInPlaceAliases(t *testing.T) {
	gather := newBuilder(ir.NewCollective(ir.AllGather, 2, 1, true), 2, 64)
	scatter := newBuilder(ir.NewCollective(ir.ReduceScatter, 2, 1, true), 2, 64)
	toRoot := newBuilder(rooted(ir.Gather, 2, 1, 1, ir.None, true), 2, 64)
	fromRoot := newBuilder(rooted(ir.Scatter, 2, 1, 1, ir.None, true), 2, 64)
	for r := range ir.Rank(2) {
		peer := 1 - r
		// The own part is already where it belongs.
		gather.add(r, 0, send(peer, in(0), 1)).add(r, 0, recv(peer, out(int32(peer)), 1))
		// output[0] is input[r].
		scatter.add(r, 0, send(peer, in(int32(peer)), 1)).add(r, 0, fused(ir.RecvReduceCopy, peer, ir.None, out(0), out(0), 1))
	}
	toRoot.add(0, 0, send(1, in(0), 1)).add(1, 0, recv(0, out(0), 1))
	fromRoot.add(1, 0, send(0, in(0), 1)).add(0, 0, recv(1, out(0), 1))
	for _, b := range []*builder{gather, scatter, toRoot, fromRoot} {
		// Two blocks of whole elements of two bytes, at least one element each.
		for asked, ran := range map[int64]int64{0: 0, 2: 4, 4: 4, 60: 60, 62: 60, 2000: 2000} {
			rep := mustRun(t, b.p, Options{Bytes: asked, DType: runtime.FP16, Exact: true, KeepOutputs: true})
			if rep.Bytes != ran {
				t.Errorf("%v: ran %d bytes of %d, want %d", b.p.Coll, rep.Bytes, asked, ran)
			}
		}
	}
}

// TestRing is the property that the rest stands on: any ring, size, type,
// reduction, slots and tiles give the right result, and move 2(n-1) times the
// size over the connections.
func TestRing(t *testing.T) {
	types := len(runtime.DTypeNames())
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Int32Range(1, 9).Draw(rt, "ranks")
		split := rapid.Int32Range(1, 5).Draw(rt, "split")
		tr := ir.Transport{Slots: rapid.Int32Range(1, 8).Draw(rt, "slots"), SlotBytes: rapid.Int64Range(8, 200).Draw(rt, "slot bytes")}
		d := runtime.DType(rapid.IntRange(0, types-1).Draw(rt, "dtype"))
		elems := rapid.Int64Range(0, 3000).Draw(rt, "elements")
		if n > 1 && elems > 0 { // every rank sends a step's messages before it takes any, and holds one more
			l, err := runtime.NewLayout(ir.NewCollective(ir.AllReduce, n, n*split, true), d, elems*int64(d.Size()))
			if err != nil {
				rt.Fatal(err)
			}
			if k := tr.Regime(l.PaddedBytes(), l.Chunks); ir.Messages(split, k) >= tr.Slots {
				tr.Slots = ir.Messages(split, k) + 1
			}
		}
		rep, err := Run(context.Background(), ringAllReduce(n, split, tr), Options{Bytes: elems * int64(d.Size()), DType: d,
			Op: runtime.ReduceOp(rapid.IntRange(0, 4).Draw(rt, "op")), Exact: rapid.Bool().Draw(rt, "exact"),
			Seed: rapid.Uint64().Draw(rt, "seed"), Iterations: rapid.IntRange(1, 3).Draw(rt, "iterations")})
		if err != nil {
			rt.Fatal(err)
		}
		if !rep.Verified || rep.Compared != int64(n)*elems {
			rt.Fatalf("%d wrong of %d, want %d: %v", rep.Wrong, rep.Compared, int64(n)*elems, rep.Mismatches)
		}
		if want := 2 * int64(n-1) * rep.PaddedBytes; rep.Moved != want {
			rt.Fatalf("moved %d bytes, want %d", rep.Moved, want)
		}
	})
}

// TestMessages: a step of 5 chunks of 16 bytes takes ceil(5/K) messages where K
// chunks fit a slot, and one a tile where a chunk exceeds it.
func TestMessages(t *testing.T) {
	for _, c := range []struct {
		slotBytes, messages, tiles int64
		regime                     int32
	}{{80, 1, 1, 5}, {79, 2, 1, 4}, {50, 2, 1, 3}, {32, 3, 1, 2}, {31, 5, 1, 1}, {16, 5, 1, 1}, {15, 10, 2, 1}, {7, 20, 4, 1}, {4, 20, 4, 1}, {1 << 20, 1, 1, 71}} {
		b := newBuilder(rooted(ir.SendRecv, 2, 5, 0, 1, false), 3, c.slotBytes).
			add(0, 0, send(1, in(0), 5)).add(1, 0, recv(0, out(0), 5))
		rep := mustRun(t, b.p, Options{Bytes: 80, Exact: true})
		if rep.Messages != c.messages || rep.Tiles != c.tiles || rep.Regime != c.regime || rep.Moved != 80 {
			t.Errorf("slots of %d bytes: got %d messages, %d tiles, K %d, %d bytes; want %+v",
				c.slotBytes, rep.Messages, rep.Tiles, rep.Regime, rep.Moved, c)
		}
	}
}

// TestPaddingKeepsOrder: 7 elements in 3 chunks of 3 come out as they went in.
func TestPaddingKeepsOrder(t *testing.T) {
	b := newBuilder(rooted(ir.SendRecv, 2, 3, 0, 1, false), 2, 64).
		add(0, 0, send(1, in(0), 3)).add(1, 0, recv(0, out(0), 3))
	data := bytesOf(1, 2, 3, 4, 5, 6, 7)
	rep := mustRun(t, b.p, Options{Bytes: 7, DType: runtime.Int8, Inputs: [][]byte{data, nil}, KeepOutputs: true})
	if !bytes.Equal(rep.Outputs[1], data) || len(rep.Outputs[0]) != 0 || rep.PaddedBytes != 9 {
		t.Errorf("got %v, padded %d", rep.Outputs, rep.PaddedBytes)
	}
}

// TestAvgDividesOnce: where sums wrap or round, dividing at any other point gives
// other numbers.
func TestAvgDividesOnce(t *testing.T) {
	p := ringAllReduce(3, 1, ir.Transport{Slots: 2, SlotBytes: 64})
	// 7+8+9 = 24, 24/3 = 8, while 7/3+8/3+9/3 = 7; 100+100+100 wraps to 44, 44/3 = 14;
	// -1-1-2 = -4, -4/3 = -1 (truncated).
	rep := mustRun(t, p, Options{Bytes: 3, DType: runtime.Int8, Op: runtime.Avg, KeepOutputs: true, Iterations: 2,
		Inputs: [][]byte{bytesOf(7, 100, -1), bytesOf(8, 100, -1), bytesOf(9, 100, -2)}})
	for r, got := range rep.Outputs {
		if want := bytesOf(8, 14, -1); !bytes.Equal(got, want) {
			t.Errorf("rank %d: got %v, want %v", r, got, want)
		}
	}
}

// TestWrongPrograms run to their end and are told apart from right ones.
func TestWrongPrograms(t *testing.T) {
	exchange := func(dst ir.Place) *builder { // rank 0 lacks the reduction
		return newBuilder(ir.NewCollective(ir.AllReduce, 2, 1, false), 2, 64).scratch(1).
			add(0, 0, send(1, in(0), 1)).add(0, 0, recv(1, dst, 1)).
			add(1, 0, send(0, in(0), 1)).add(1, 0, fused(ir.RecvReduceCopy, 0, ir.None, in(0), out(0), 1))
	}
	in8 := [][]byte{bytesOf(1), bytesOf(2)}
	for _, c := range []struct {
		name string
		b    *builder
		want []string
	}{
		{"a missing reduction", exchange(out(0)), []string{"rank 0 output element 0 (chunk 0): expected 3, found 2"}},
		{"an output never written", exchange(scr(0)), []string{"rank 0 output element 0 (chunk 0): expected 3, found -53"}},
		{"an overwritten input", exchange(in(0)), []string{"rank 0 output element 0 (chunk 0): expected 3, found -53",
			"rank 0 input element 0 (chunk 0): expected 1, found 2"}},
		{"uninitialized scratch", exchange(out(0)).add(0, 0, local(ir.Copy, scr(0), out(0), 1)).
			add(0, 0, local(ir.Reduce, in(0), out(0), 1)), []string{"rank 0 output element 0 (chunk 0): expected 3, found -52"}},
	} {
		rep, err := Run(context.Background(), c.b.p, Options{Bytes: 1, DType: runtime.Int8, Inputs: in8})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, m := range rep.Mismatches {
			got = append(got, m.String())
		}
		if rep.Verified || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestRefusals: what can't run is refused before any data moves, with a code.
func TestRefusals(t *testing.T) {
	pair := func() *builder { return newBuilder(ir.NewCollective(ir.AllReduce, 2, 2, true), 2, 64) }
	chain := pair().add(0, 0, send(1, in(0), 1)).add(1, 0, recv(0, in(0), 1))
	window := pair()
	window.p.MinBytes, window.p.MaxBytes = 16, 32
	open := pair()
	open.p.MinBytes = 16
	noRanks := pair()
	noRanks.p.GPUs = noRanks.p.GPUs[:1]
	badDeps := pair().add(0, 0, base(ir.Nop, 0))
	badDeps.p.GPUs[0].TBs[0].Steps[0].DepEnd = 5
	bigScratch := pair().scratch(1 << 30)
	for _, c := range []struct {
		b    *builder
		o    Options
		code string
		want string
	}{
		{pair(), Options{Bytes: 3}, "size", "3 bytes are no whole number of fp32 elements of 4 bytes"},
		{pair(), Options{Bytes: 8, DType: 99}, "dtype", "data type 99 is not known"},
		{pair(), Options{Bytes: 8, Op: 99}, "op", "ReduceOp(99) of fp32 is not known"},
		{pair(), Options{Bytes: 8, Inputs: [][]byte{{}}}, "input", "inputs of 1 ranks, want 2"},
		{window, Options{Bytes: 8}, "size-window", "8 bytes (8 with padding) are outside of the program's sizes, 16 to 32 bytes"},
		{window, Options{Bytes: 36}, "size-window", "36 bytes (40 with padding) are outside"},
		{open, Options{Bytes: 8}, "size-window", "8 bytes (8 with padding) are outside of the program's sizes, 16 bytes and up"},
		{noRanks, Options{Bytes: 8}, "program", "the program has 1 GPUs, its collective 2 ranks"},
		{pair(), Options{Bytes: 1 << 50}, "memory", "run: 1 PiB on 2 ranks needs 2 PiB of memory, "},
		{bigScratch, Options{Bytes: 1 << 40}, "memory", "1073741824 chunks of 512 GiB for its scratch"},
		{newBuilder(pair().p.Coll, 0, 64), Options{Bytes: 8}, "slots", "0 slots of 64 bytes can't carry fp32"},
		{newBuilder(pair().p.Coll, 2, 3), Options{Bytes: 8}, "slots", "2 slots of 3 bytes can't carry fp32"},
		{pair().add(0, 0, send(1, in(2), 1)), Options{Bytes: 8}, "bounds", "rank 0 thread block 0 step 0 (s): source is input[2:3], which has 2 chunks"},
		{pair().add(0, 0, send(1, in(1), 2)), Options{Bytes: 8}, "bounds", "source is input[1:3], which has 2 chunks"},
		{pair().add(0, 0, send(1, in(1), 1<<31-1)), Options{Bytes: 8}, "bounds", "source is input[1:2147483648]"},
		{pair().add(0, 0, recv(1, scr(0), 1)), Options{Bytes: 8}, "bounds", "destination is scratch[0:1], which has 0 chunks"},
		{pair().add(0, 0, send(1, ir.Place{Buf: 7}, 1)), Options{Bytes: 8}, "bounds", "source is no buffer[0:1]"},
		{pair().add(0, 0, send(1, in(-1), 1)), Options{Bytes: 8}, "bounds", "source is input[-1:0]"},
		{pair().add(0, 0, send(0, in(0), 1)), Options{Bytes: 8}, "program", "no connection goes from rank 0 to rank 0 on channel 0"},
		{pair().add(0, 0, send(2, in(0), 1)), Options{Bytes: 8}, "program", "no connection goes from rank 0 to rank 2"},
		{pair().add(0, 0, send(1, in(0), 0)), Options{Bytes: 8}, "program", "a count of 0 chunks"},
		{pair().add(0, 0, base(99, 1)), Options{Bytes: 8}, "program", "not a known kind of step"},
		{pair().add(0, 0, base(ir.Nop, 0), tb(1, 0)), Options{Bytes: 8}, "bad-dependency", "waits for thread block 1 step 0, which does not exist"},
		{badDeps, Options{Bytes: 8}, "bad-dependency", "dependencies 0:5 of 0"},
		{chain.add(0, 1, send(1, in(0), 1)), Options{Bytes: 8}, "connection-owner", "rank 0 thread block 1 step 0 (s): thread block 0 already sends on channel 0 from rank 0 to rank 1"},
	} {
		_, err := Run(context.Background(), c.b.p, c.o)
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s: %s", err, c.code, c.want)
		}
	}
	if _, err := Run(context.Background(), nil, Options{}); err == nil {
		t.Error("no program must be an error")
	}
	if _, err := Run(context.Background(), window.p, Options{Bytes: 8, AnySize: true}); err != nil {
		t.Errorf("AnySize: %v", err)
	}
}

// TestHostilePrograms: whatever the steps say, Run returns.
func TestHostilePrograms(t *testing.T) {
	if raceDetector {
		t.Skip("most random programs race on their data")
	}
	rapid.Check(t, func(rt *rapid.T) {
		colls := []*ir.Collective{ir.NewCollective(ir.AllReduce, 2, 2, true), ir.NewCollective(ir.AllGather, 2, 1, false),
			ir.NewCollective(ir.ReduceScatter, 2, 1, true), rooted(ir.Gather, 2, 1, 0, ir.None, true)}
		b := newBuilder(rapid.SampledFrom(colls).Draw(rt, "collective"), rapid.Int32Range(1, 3).Draw(rt, "slots"), 8).
			scratch(rapid.Int32Range(0, 2).Draw(rt, "scratch"))
		n := rapid.IntRange(0, 8).Draw(rt, "steps")
		place := func() ir.Place {
			return ir.Place{Buf: ir.BufferID(rapid.Int32Range(-1, 2).Draw(rt, "buffer")), Index: rapid.Int32Range(0, 1).Draw(rt, "index")}
		}
		for range n {
			r := ir.Rank(rapid.Int32Range(0, 1).Draw(rt, "rank"))
			s := ir.Step{Kind: ir.StepKind(rapid.IntRange(0, 8).Draw(rt, "kind")), Post: rapid.Bool().Draw(rt, "post"),
				Src: place(), Dst: place(), Count: rapid.Int32Range(0, 2).Draw(rt, "count"), SendPeer: 1 - r, RecvPeer: 1 - r,
				Chan: rapid.Int32Range(0, 1).Draw(rt, "chan")}
			var deps []ir.Dep
			if rapid.Bool().Draw(rt, "dep") {
				deps = append(deps, tb(rapid.Int32Range(0, 1).Draw(rt, "dep tb"), rapid.Int32Range(0, 3).Draw(rt, "dep step")))
			}
			b.add(r, rapid.IntRange(0, 1).Draw(rt, "tb"), s, deps...)
		}
		if _, err := Run(context.Background(), b.p, Options{Bytes: 32, Exact: true, Iterations: 2}); err != nil {
			var m *diag.Message
			if !errors.As(err, &m) || m.Code == "" {
				rt.Fatalf("no message with a code: %v", err)
			}
		}
	})
}

func TestReportFigures(t *testing.T) {
	p := ringAllReduce(4, 1, ir.Transport{Slots: 2, SlotBytes: 64})
	rep := mustRun(t, p, Options{Bytes: 1 << 10, Exact: true, Iterations: 4, Warmup: 2, Events: true})
	if len(rep.Times) != 4 || rep.Min <= 0 || rep.Median < rep.Min || rep.Workers != 4 || rep.Connections != 4 {
		t.Errorf("got %+v", rep)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-12*want }
	if want := float64(1<<10) / float64(rep.Median.Nanoseconds()); !near(rep.AlgBW, want) || !near(rep.BusBW, want*1.5) || !near(rep.MoveRate, want*6) {
		t.Errorf("got algbw %v, busbw %v, move %v of %v", rep.AlgBW, rep.BusBW, rep.MoveRate, want)
	}
	// 256 bytes a chunk, 64 a tile: 4 ranks of 6+1 steps, 4 tiles.
	if want := 4 * 7 * 4; len(rep.Events) != want {
		t.Errorf("got %d events, want %d", len(rep.Events), want)
	}
	if first := slices.MinFunc(rep.Events, func(a, b ir.Event) int { return cmp.Compare(a.Begin, b.Begin) }); first.Begin != 0 {
		t.Errorf("the first step begins at %d ns, want 0", first.Begin)
	}
	for i, e := range rep.Events {
		if e.End < e.Begin || i > 0 && e.Rank == rep.Events[i-1].Rank && e.Begin < rep.Events[i-1].End {
			t.Fatalf("event %d: %+v after %+v", i, e, rep.Events[max(i-1, 0)])
		}
	}
}

func TestProgress(t *testing.T) {
	p := ringAllReduce(2, 1, ir.Transport{Slots: 2, SlotBytes: 1 << 10})
	phases := map[string]int{}
	rep := mustRun(t, p, Options{Bytes: 8 << 20, DType: runtime.FP16, Exact: true, Iterations: 2, Progress: func(p Progress) {
		phases[p.Phase]++
		if p.Done < 0 || p.Done > 1 || p.Total != 2 || p.Iteration > 1 {
			t.Errorf("got %+v", p)
		}
	}})
	if phases["verify"] == 0 || len(rep.Times) != 2 {
		t.Errorf("got %v", phases)
	}
}
