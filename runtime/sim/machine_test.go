package sim_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/sim"
)

func newMachine(t testing.TB, p *ir.Program, o sim.Options) *sim.Machine {
	t.Helper()
	m, err := sim.New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// finish runs to the end, which has to be what the collective demands.
func finish(t testing.TB, m *sim.Machine) {
	t.Helper()
	stop, err := m.Run(context.Background(), sim.Until{})
	if err != nil || stop.Why != sim.WhyDone || !m.Done() || m.Stuck() {
		t.Fatalf("%v %+v %+v", err, stop, m.Blocked())
	}
}

func sameCells(t *testing.T, when string, m *sim.Machine, cells []int32, ready []uint64) {
	t.Helper()
	c, r := m.Cells()
	if !slices.Equal(c, cells) || !slices.Equal(r, ready) {
		t.Fatalf("%s: the state is another", when)
	}
}

// Every program of the library ends as its collective demands under any schedule; the
// way back leads to the state it began with, and forward again to the same end.
func TestLibrary(t *testing.T) {
	library(t, func(t *testing.T, p *ir.Program) {
		for seed := range uint64(4) {
			m := newMachine(t, p, sim.Options{Seed: seed})
			before, readyBefore := m.Cells()
			finish(t, m)
			demanded(t, m)
			if pr := m.Progress(); pr.Final != pr.Demanded || pr.Wrong != 0 || pr.Ended != pr.TBs || pr.StepsDone != pr.Steps {
				t.Fatalf("%+v", pr)
			}
			end, readyEnd := m.Cells()
			n := m.Moves()
			if err := m.At(context.Background(), 0); err != nil {
				t.Fatal(err)
			}
			sameCells(t, "back at the start", m, before, readyBefore)
			if err := m.At(context.Background(), n); err != nil {
				t.Fatal(err)
			}
			sameCells(t, "at the end again", m, end, readyEnd)
		}
	})
}

// At every point of a run going back and forth leads to the same states, and who can
// move is who could by a look at everybody.
func TestBackAndForth(t *testing.T) {
	library(t, func(t *testing.T, p *ir.Program) {
		m := newMachine(t, p, sim.Options{Seed: 7})
		rng := rand.New(rand.NewPCG(1, 2))
		cells, _ := m.Cells()
		states := [][]int32{cells}
		for range 600 {
			if rng.IntN(3) == 0 {
				n := m.Moves()
				mv, ok := m.Back()
				if ok != (n > 0) || ok && (mv.Number != n-1 || m.Moves() != n-1) {
					t.Fatalf("from %d back to %d by move %d", n, m.Moves(), mv.Number)
				}
			} else if _, ok := m.Step(); !ok {
				break
			}
			cells, ready := m.Cells()
			if n := m.Moves(); n < len(states) {
				if !slices.Equal(states[n], cells) {
					t.Fatalf("another state at move %d", n)
				}
			} else {
				states = append(states, cells)
			}
			if !slices.Equal(ready, m.Rescan()) {
				t.Fatalf("move %d: who can move is not up to date", m.Moves())
			}
		}
	})
}
