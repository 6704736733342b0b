package compiler_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
)

// loopsByRank is t with what loops repeat sorted by rank, as scripts write it that handle
// one rank after another; with own, each rank has a loop of its own in place of one of all.
// All of them mean the same.
func loopsByRank(t *ir.OneTrace, own bool) *ir.OneTrace {
	u := *t
	u.Ops, u.Loops = slices.Clone(t.Ops), nil
	for from := 0; from < len(u.Ops); {
		loop, to := u.Ops[from].Loop, from+1
		for to < len(u.Ops) && u.Ops[to].Loop == loop {
			to++
		}
		body := u.Ops[from:to]
		from = to
		if loop == ir.None {
			continue
		}
		slices.SortStableFunc(body, func(x, y ir.TraceOp) int { return cmp.Compare(x.Rank, y.Rank) })
		for i := range body {
			if i == 0 || own && body[i].Rank != body[i-1].Rank {
				u.Loops = append(u.Loops, t.Loops[loop])
			}
			body[i].Loop = int32(len(u.Loops) - 1)
		}
	}
	return &u
}

// Whether the ranks share a loop or each has its own, turns go together: what the script
// orders by way of other ranks needs no semaphore.
func TestRandomLoops(t *testing.T) {
	loops, semaphores := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "script"), 1))
		one := random(rng, false)
		trace := inBlocks(one, func() int32 { return int32(rng.IntN(3)) })
		p := compileOne(rt, loopsByRank(trace, false), compiler.Options{Target: ir.TargetNative})
		q := compileOne(rt, loopsByRank(trace, true), compiler.Options{Target: ir.TargetNative})
		if x, y := programText(rt, p), programText(rt, q); x != y {
			rt.Fatalf("%s\none loop:\n%s\na loop for each rank:\n%s", traceText(rt, trace), x, y)
		}
		loops += len(trace.Loops)
		semaphores += len(p.OneSided.GPUs[0].Semaphores)
	})
	t.Logf("%d loops, %d semaphores on rank 0", loops, semaphores)
}
