package sim_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/randprog"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/sim"
)

// randomProgram is what the compiler makes of a random program; nil if it can't.
func randomProgram(t testing.TB, src randprog.Source) *ir.Program {
	d, err := randprog.Generate(src, randprog.Options{MaxRanks: 4, MaxOps: 12, Direct: true})
	if err != nil {
		t.Fatal(err)
	}
	o := compiler.Options{Slots: int32(1 + src.IntN(3)), SlotBytes: 4 << src.IntN(3), Target: ir.TargetNative}
	if d.Protocol == ir.Direct {
		o.Slots, o.SlotBytes = 0, 0
	}
	if src.IntN(2) == 0 {
		o.MaxBytes = 16 << src.IntN(4)
	}
	r, err := compiler.Compile(context.Background(), d, o)
	if err != nil {
		return nil
	}
	return r.Program
}

// Random programs, random thread blocks: whatever the order, the end is what the
// collective demands, and the way back is the way there.
func TestRandomPrograms(t *testing.T) {
	ran, tried := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		src := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "program"), 1))
		p := randomProgram(t, src)
		tried++
		if p == nil {
			return
		}
		ran++
		m := newMachine(t, p, sim.Options{})
		first, _ := m.Cells()
		for !m.Done() {
			var free []sim.At
			for _, w := range m.Where() {
				if w.Status == sim.Ready {
					free = append(free, w.At)
				}
			}
			if len(free) == 0 {
				rt.Fatalf("stuck: %+v", m.Blocked())
			}
			at := free[src.IntN(len(free))]
			if _, err := m.StepThread(at.Rank, at.TB); err != nil {
				rt.Fatal(err)
			}
			if _, ready := m.Cells(); !slices.Equal(ready, m.Rescan()) {
				rt.Fatal("who can move is not up to date")
			}
		}
		demanded(t, m)
		inputsKept(t, m)
		last, _ := m.Cells()
		n := m.Moves()
		for m.Moves() > 0 {
			mv, _ := m.Back()
			for _, w := range mv.Writes {
				if c, err := m.Content(w.Loc); err != nil || c.String() != w.Before.String() {
					rt.Fatalf("%v holds %v, but move %d says %v", w.Loc, c, mv.Number, w.Before)
				}
			}
		}
		if now, _ := m.Cells(); !slices.Equal(now, first) {
			rt.Fatal("another state at the start")
		}
		for m.Moves() < n {
			mv, _ := m.Step()
			for _, w := range mv.Writes {
				if c, err := m.Content(w.Loc); err != nil || c.String() != w.Now.String() || c.Mark != w.Now.Mark {
					rt.Fatalf("%v holds %v, but move %d says %v", w.Loc, c, mv.Number, w.Now)
				}
			}
		}
		if now, _ := m.Cells(); !slices.Equal(now, last) {
			rt.Fatal("another state at the end")
		}
	})
	if 2*ran < tried {
		t.Errorf("only %d of %d programs compile", ran, tried)
	}
}

// inputsKept demands the inputs of a program that is out of place as they were.
func inputsKept(t *testing.T, m *sim.Machine) {
	t.Helper()
	c := m.Program().Coll
	for r := range ir.Rank(c.Ranks) {
		in, err := m.Buffer(r, ir.Input)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in {
			if !c.InPlace && c.Holds(r, int32(i)) && !holds(in[i], []ir.Contribution{{Rank: r, Index: int32(i)}}) {
				t.Fatalf("rank %d input %d holds %v", r, i, in[i])
			}
		}
	}
}

// With as few slots as one, programs end right or get stuck for good: every schedule
// then stands in the same place, and some circle is shown.
func TestStuckAlike(t *testing.T) {
	stuck := 0
	for seed := range uint64(400) {
		src := rand.New(rand.NewPCG(seed, 3))
		p := randomProgram(t, src)
		if p == nil || p.Direct() {
			continue
		}
		var steps []int32
		for s := range uint64(5) {
			m := newMachine(t, p, sim.Options{Slots: 1, Regime: 1, Seed: s})
			stop, err := m.Run(context.Background(), sim.Until{})
			if err != nil {
				t.Fatal(err)
			}
			if stop.Why == sim.WhyDone {
				demanded(t, m)
			} else if stuck++; m.Cycle() == nil {
				t.Fatalf("seed %d: stuck without a circle: %+v", seed, m.Blocked())
			}
			var at []int32
			for _, w := range m.Where() {
				at = append(at, w.At.Step, w.Message)
			}
			if s > 0 && !slices.Equal(at, steps) {
				t.Fatalf("seed %d: schedule %d ends elsewhere", seed, s)
			}
			steps = at
		}
	}
	if stuck < 10 {
		t.Errorf("only %d runs got stuck", stuck)
	}
}

// Whatever is wrong with a program, it is refused or runs until nothing can move.
func TestEdited(t *testing.T) {
	refused, ran := 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p := randomProgram(t, rng)
		if p == nil {
			continue
		}
		edit(rng, p)
		m, err := sim.New(p, sim.Options{Seed: seed})
		if err != nil {
			refused++
			continue
		}
		ran++
		if _, err := m.Run(context.Background(), sim.Until{}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		m.Cycle()
		m.Blocked()
		if p := m.Progress(); p.Final+p.Wrong > p.Demanded || m.Done() && p.Final+p.Wrong != p.Demanded {
			t.Fatalf("seed %d: %+v", seed, p)
		}
	}
	if refused < 100 || ran < 100 {
		t.Errorf("%d are refused and %d run", refused, ran)
	}
}

// edit changes one field of one step.
func edit(rng *rand.Rand, p *ir.Program) {
	var steps []*ir.Step
	for r := range p.GPUs {
		for b := range p.GPUs[r].TBs {
			for s := range p.GPUs[r].TBs[b].Steps {
				steps = append(steps, &p.GPUs[r].TBs[b].Steps[s])
			}
		}
	}
	if len(steps) == 0 {
		return
	}
	st := steps[rng.IntN(len(steps))]
	n := rng.Int32N(8) - 2
	switch rng.IntN(9) {
	case 0:
		st.Kind = ir.StepKind(rng.IntN(10))
	case 1:
		st.Count = n
	case 2:
		st.Src.Index = n
	case 3:
		st.Dst.Index = n
	case 4:
		st.Src.Buf = ir.BufferID(n)
	case 5:
		st.SendPeer = ir.Rank(n)
	case 6:
		st.RecvPeer = ir.Rank(n)
	case 7:
		st.Chan = n
	default:
		st.DepEnd = st.DepStart
	}
}

// Programs that are no programs are refused.
func TestRefused(t *testing.T) {
	good := func() *ir.Program { return parse(t, simple3, sendFirst) }
	step := func(p *ir.Program, r, s int) *ir.Step { return &p.GPUs[r].TBs[0].Steps[s] }
	for _, c := range []struct {
		name, want string
		edit       func(p *ir.Program)
		o          sim.Options
	}{
		{"bounds", "stepping: rank 0 tb 0 step 0 (s): the source lies outside of the rank's buffers", func(p *ir.Program) { step(p, 0, 0).Src.Index = 1 }, sim.Options{}},
		{"counts", "hand.star:7:5: stepping: rank 0 tb 0 step 1 (r) receives 3 chunks, of which rank 1 tb 0 step 0 (s) sends 2", func(p *ir.Program) { step(p, 1, 0).Count = 2 }, sim.Options{}},
		{"balance", "stepping: connection 0 -> 1 ch 0 has 1 sends and 0 receives", func(p *ir.Program) {
			step(p, 1, 1).Kind, step(p, 1, 1).RecvPeer, step(p, 1, 1).Src = ir.Copy, -1, ir.Place{}
		}, sim.Options{}},
		{"sizes", "stepping: rank 0 declares 2 input and 3 output chunks, allreduce has 3 and 3 there", func(p *ir.Program) { p.GPUs[0].Input = 2 }, sim.Options{}},
		{"slots", "stepping: the transport has 0 slots of 4096 bytes, want 1 or more of both", func(p *ir.Program) { p.Transport.Slots = 0 }, sim.Options{}},
		{"both", "stepping: got both a size and the chunks of a message, which follow from it\n    give one of them", func(*ir.Program) {}, sim.Options{Bytes: 1, Regime: 1}},
		{"regime", "stepping: got 72 chunks a message, want at most 71", func(*ir.Program) {}, sim.Options{Regime: 72}},
		{"wait", "stepping: rank 0 tb 0 step 0 (s): waits for step 2 of its own thread block, which comes no earlier",
			func(p *ir.Program) { p.Deps = []ir.Dep{{TB: 0, Step: 2}}; step(p, 0, 0).DepEnd = 1 }, sim.Options{}},
		{"peer", "stepping: rank 0 tb 0 step 0 (s): no connection goes from rank 0 to rank 2 on channel 0", func(p *ir.Program) { step(p, 0, 0).SendPeer = 2 }, sim.Options{}},
	} {
		p := good()
		c.edit(p)
		if _, err := sim.New(p, c.o); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := sim.New(nil, sim.Options{}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("no program: %v", err)
	}
}
