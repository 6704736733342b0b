package endtoend

import (
	"context"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/ir"
)

// inARow is two launches as one program: thread blocks go on with the second
// program's steps once all thread blocks of their own rank have ended the first,
// which is all that a stream orders. Connections and memory are shared. The two
// programs must have the same thread blocks with the same peers.
func inARow(p, q *ir.Program) *ir.Program {
	out := *p
	out.GPUs = make([]ir.GPU, len(p.GPUs))
	out.Deps = append(append([]ir.Dep(nil), p.Deps...), q.Deps...)
	for g := range p.GPUs {
		out.GPUs[g] = p.GPUs[g]
		out.GPUs[g].Scratch = max(p.GPUs[g].Scratch, q.GPUs[g].Scratch)
		out.GPUs[g].TBs = nil
		for t := range p.GPUs[g].TBs {
			tb := p.GPUs[g].TBs[t]
			steps := append([]ir.Step(nil), tb.Steps...)
			if len(steps) > 0 {
				steps[len(steps)-1].Post = true
			}
			for other := range p.GPUs[g].TBs { // the end of the launch
				if other != t && len(p.GPUs[g].TBs[other].Steps) > 0 {
					nop := ir.Step{Kind: ir.Nop, Src: ir.NoPlace, Dst: ir.NoPlace, Remote: ir.NoPlace,
						SendPeer: ir.None, RecvPeer: ir.None, Chan: tb.Chan, DepStart: int32(len(out.Deps)), DepEnd: int32(len(out.Deps) + 1)}
					out.Deps = append(out.Deps, ir.Dep{TB: int32(other), Step: int32(len(p.GPUs[g].TBs[other].Steps) - 1)})
					steps = append(steps, nop)
				}
			}
			for _, st := range q.GPUs[g].TBs[t].Steps {
				st.DepStart, st.DepEnd = st.DepStart+int32(len(p.Deps)), st.DepEnd+int32(len(p.Deps))
				for k := st.DepStart; k < st.DepEnd; k++ {
					d := &out.Deps[k]
					d.Step += secondStart(p, g, int(d.TB))
				}
				steps = append(steps, st)
			}
			tb.Steps = steps
			out.GPUs[g].TBs = append(out.GPUs[g].TBs, tb)
		}
	}
	return &out
}

// secondStart is the number of steps before the second launch in a thread block.
func secondStart(p *ir.Program, g, t int) int32 {
	n := len(p.GPUs[g].TBs[t].Steps)
	for other := range p.GPUs[g].TBs {
		if other != t && len(p.GPUs[g].TBs[other].Steps) > 0 {
			n++
		}
	}
	return int32(n)
}

// Launches of two-sided programs don't race or deadlock with one another, though
// a rank starts the next one while others are still in this one: every algorithm
// of the library, twice in a row. (That a connection carries as many messages as it
// takes is what makes it so, see docs/checker.md.)
func TestLaunchesInARow(t *testing.T) {
	eachVariant(t, func(t *testing.T, p *ir.Program) {
		r, err := checker.Check(context.Background(), inARow(p, p), checker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Messages {
			switch m.Code {
			case checker.CodeWrongResult, checker.CodeOrderDiffers: // in place, the second starts from other inputs
			default:
				t.Errorf("%v", m)
			}
		}
		once, err := checker.Check(context.Background(), p, checker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.MinSlots != once.MinSlots {
			t.Errorf("two launches need %d slots, one needs %d", r.MinSlots, once.MinSlots)
		}
	})
}

// The construction can fail: without the order that a stream gives, scratch and
// outputs of the two launches do race somewhere in the library.
func TestLaunchesWithoutAStreamRace(t *testing.T) {
	raced := false
	for _, name := range algorithms.ChunkRouting() {
		p := compiled(t, name)
		both := inARow(p, p)
		for g := range both.GPUs {
			for b := range both.GPUs[g].TBs {
				for s := range both.GPUs[g].TBs[b].Steps {
					if st := &both.GPUs[g].TBs[b].Steps[s]; st.Kind == ir.Nop && s >= len(p.GPUs[g].TBs[b].Steps) && s < int(secondStart(p, g, b)) {
						st.DepEnd = st.DepStart
					}
				}
			}
		}
		r, err := checker.Check(context.Background(), both, checker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		raced = raced || r.Has(checker.CodeRace)
	}
	if !raced {
		t.Error("no program races without the order of launches")
	}
}
