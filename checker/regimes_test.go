package checker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// exchange lets two ranks send count steps of size chunks each to the other
// before either receives, in one thread block.
func exchange(t *testing.T, chunks int32, steps, size int) *ir.Program {
	sends := strings.Repeat(fmt.Sprintf("s i0 x%d;", size), steps)
	recvs := strings.Repeat(fmt.Sprintf("r o0 x%d;", size), steps)
	return program(t, demand(t, 2, chunks, chunks, false), "0 >1 <1: "+sends+recvs+"\n1 >0 <0: "+sends+recvs)
}

func TestSlots(t *testing.T) {
	const MiB = 1 << 20
	simple := ir.Transport{Slots: 2, SlotBytes: 2 * MiB}
	ll := ir.Transport{Slots: 8, SlotBytes: 32 << 10}
	tests := []struct {
		name     string
		p        *ir.Program
		t        ir.Transport
		min, max int64
		ok       bool
		minSlots int32
		regimes  []int32
		advice   string
	}{
		{"ten sends before ten receives, 8 slots", exchange(t, 1, 10, 1), ll, 0, 0, false, 10, []int32{1},
			"it needs 10 slots a connection"},
		{"eight fit", exchange(t, 1, 8, 1), ll, 0, 0, true, 8, []int32{1}, ""},
		// 64 chunks, 8 of them in a step: chunks of up to 512 KiB go four to a
		// slot, so that a step is two messages; of 1 MiB two to a slot and four.
		{"a count of 8, any size", exchange(t, 64, 1, 8), simple, 0, 0, false, 8, []int32{1, 2, 3, 4, 8},
			"it needs 8 slots a connection, or sizes up to 33554432 bytes"},
		{"a count of 8, 32 MiB", exchange(t, 64, 1, 8), simple, 0, 32 * MiB, true, 2, []int32{4, 8}, ""},
		{"a count of 8, a byte more", exchange(t, 64, 1, 8), simple, 0, 32*MiB + 1, false, 3, []int32{3, 4, 8},
			"it needs 3 slots a connection, or sizes up to 33554432 bytes"},
		{"a count of 8, 64 MiB", exchange(t, 64, 1, 8), simple, 64 * MiB, 64 * MiB, false, 4, []int32{2},
			"it needs 4 slots a connection"},
		{"a ring needs two", ring(4), simple, 0, 0, true, 2, []int32{1}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.p.Transport, test.p.MinBytes, test.p.MaxBytes = test.t, test.min, test.max
			rep := check(t, test.p)
			if rep.OK != test.ok || rep.MinSlots != test.minSlots || !slices.Equal(rep.Regimes, test.regimes) {
				t.Errorf("got OK %v, MinSlots %d, regimes %v; want %v, %d, %v\n%v", rep.OK, rep.MinSlots, rep.Regimes,
					test.ok, test.minSlots, test.regimes, rep.Messages)
			}
			if !test.ok && rep.Messages[0].Suggestion != test.advice {
				t.Errorf("got advice %q, want %q", rep.Messages[0].Suggestion, test.advice)
			}
		})
	}
}

func TestOptionsOverrideTheWindow(t *testing.T) {
	p := exchange(t, 64, 1, 8)
	p.Transport = ir.Transport{Slots: 2, SlotBytes: 2 << 20}
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{}, CodeDeadlock},
		{Options{MaxBytes: 32 << 20}, ""},
		{Options{MinBytes: 64 << 20}, CodeDeadlock},
		{Options{MinBytes: 2, MaxBytes: 1}, CodeProgram},
	} {
		rep, err := Check(context.Background(), p, test.o)
		if err != nil || codes(rep) != test.want {
			t.Errorf("%+v: got %q, want %q (%v)", test.o, codes(rep), test.want, err)
		}
	}
}

// TestClocksInLittleMemory compares the ways that order can be found: local
// clocks, and exact ones with all columns at once or one at a time.
func TestClocksInLittleMemory(t *testing.T) {
	ctx := context.Background()
	compared := 0
	for seed := range uint64(800) {
		p := randomProgram(seed)
		p.Protocol = ir.Protocol(seed % 2) // Simple and LL
		m, err := newModel(ctx, p, &findings{limit: 1})
		if err != nil || m == nil {
			continue
		}
		order, err := checkDeadlock(ctx, m, Options{}, &Report{}, &findings{limit: 1})
		if err != nil || order == nil || len(order) == 0 {
			continue
		}
		var want []pair
		for i, limits := range [][2]int{{maxClocks, maxClocks}, {maxClocks, 1}, {-1, maxClocks}, {-1, 3 * len(order)}} {
			d := newDetector(m, order)
			if d == nil {
				break
			}
			d.clocks.limit = limits[0]
			tree := newForest(m, order)
			for r := range m.ranks {
				d.rank(r)
			}
			h := newHappensBefore(m, order)
			h.limit = limits[1]
			got, err := h.unordered(ctx, d.pairs)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range got {
				if tree.orders(&p) {
					t.Fatalf("seed %d: the forest orders %v", seed, p)
				}
			}
			slices.SortFunc(got, func(x, y pair) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
			if i == 0 {
				want = got
			} else if !slices.Equal(got, want) {
				t.Fatalf("seed %d, limits %v: got %v, want %v", seed, limits, got, want)
			}
			compared += len(got)
		}
	}
	if compared == 0 {
		t.Error("nothing compared")
	}
}
