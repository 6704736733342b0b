package compiler_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/randprog"
	"github.com/mscclsh/mscclsh/ir"
)

// shuffled is d with its operations in another order that keeps every
// dependency, which therefore means the same.
func shuffled(d *ir.ChunkDAG, rng *rand.Rand) *ir.ChunkDAG {
	e := d.Edges()
	wants := make([]int, len(d.Ops))
	succ := make([][]int, len(d.Ops))
	var ready []int
	for v := range d.Ops {
		wants[v] = len(e.Of(int32(v)))
		for _, p := range e.Of(int32(v)) {
			succ[p] = append(succ[p], v)
		}
		if wants[v] == 0 {
			ready = append(ready, v)
		}
	}
	out := &ir.ChunkDAG{Spec: d.Spec}
	for len(ready) > 0 {
		k := rng.IntN(len(ready))
		v := ready[k]
		ready[k] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		out.Ops = append(out.Ops, d.Ops[v])
		for _, w := range succ[v] {
			if wants[w]--; wants[w] == 0 {
				ready = append(ready, w)
			}
		}
	}
	return out
}

// No pass leans on the order of nodes: shuffled as written, and again between
// replication and what follows, a program keeps its meaning.
func TestShuffledNodesMeanTheSame(t *testing.T) {
	for seed := range uint64(programs(500)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		d, err := randprog.Generate(rng, randprog.Options{Direct: true})
		if err != nil {
			t.Fatal(err)
		}
		o := options(rng, d.Protocol)
		if err := compileAndJudge(shuffled(d, rng), o, rng); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		replicated := replicatedForm(t, d)
		o.Observe = nil
		if err := compileAndJudge(shuffled(replicated, rng), o, rng); err != nil {
			t.Fatalf("seed %d, after replication: %v", seed, err)
		}
	}
}

// replicatedForm is what the replicate pass makes of d, as a program of its own.
func replicatedForm(t *testing.T, d *ir.ChunkDAG) *ir.ChunkDAG {
	var r *ir.ChunkDAG
	_, err := compiler.Compile(context.Background(), d, compiler.Options{Target: ir.TargetNative, Observe: func(s compiler.Stage) {
		if s.Pass == "replicate" {
			r = s.Chunks
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	spec := *r.Spec
	spec.Instances = 1
	return &ir.ChunkDAG{Spec: &spec, Ops: r.Ops}
}

// Every pass shows exactly one form and is timed, in the order of the table.
func TestDumpShowsEveryPassOnce(t *testing.T) {
	d, err := randprog.Generate(rand.New(rand.NewPCG(3, 3)), randprog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	r, err := compiler.Compile(context.Background(), d, compiler.Options{Observe: func(s compiler.Stage) {
		seen[s.Pass]++
		forms := 0
		for _, there := range []bool{s.Chunks != nil, s.Instrs != nil, s.Program != nil} {
			if there {
				forms++
			}
		}
		if forms != 1 {
			t.Errorf("pass %s shows %d forms, want 1", s.Pass, forms)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range compiler.Passes() {
		if seen[p.Name] == 0 {
			t.Errorf("pass %s was not shown", p.Name)
		}
		if r.Times[i].Pass != p.Name {
			t.Errorf("time %d is of %s, want %s", i, r.Times[i].Pass, p.Name)
		}
	}
}
