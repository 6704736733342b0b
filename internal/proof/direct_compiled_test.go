package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/randprog"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

// compiledDirect compiles a random program for protocol Direct.
func compiledDirect(seed uint64) (*ir.Program, error) {
	rng := rand.New(rand.NewPCG(seed, 0x6e6174697665)) // any constant: a stream of its own
	d, err := randprog.Generate(rng, randprog.Options{MaxRanks: 4, MaxChunks: 4, MaxOps: 14, MaxInstances: 2, MaxTerms: 8, Direct: true})
	if err != nil {
		return nil, err
	}
	spec := *d.Spec
	spec.Protocol, d.Spec = ir.Direct, &spec
	o := compiler.Options{Target: ir.TargetNative}
	for _, pass := range compiler.Passes() {
		if !pass.Required && rng.IntN(8) == 0 {
			o.Disable = append(o.Disable, pass.Name)
		}
	}
	r, err := compiler.Compile(context.Background(), d, o)
	if err != nil {
		return nil, fmt.Errorf("compiling without %v: %w", o.Disable, err)
	}
	return r.Program, nil
}

// TestDirectCompiled demands that what the compiler makes of random programs holds
// without slots, by checker and judge, and runs.
func TestDirectCompiled(t *testing.T) {
	count := uint64(amount("MSCCLSH_PROGRAMS", 3000)) / 6
	refused, exchanges := 0, 0
	for seed := range count {
		p, err := compiledDirect(seed)
		if err != nil {
			if refused++; refused <= 3 {
				t.Logf("seed %d: %v", seed, err)
			}
			continue
		}
		v, err := agreeDirect(p, 2)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !v.right() {
			_, rep, _ := checked(p)
			t.Fatalf("seed %d: the compiled program is wrong: %v: %v\n%s", seed, v, rep.Messages, textOf(p))
		}
		if hasExchange(p) {
			exchanges++
		}
		o := cpu.Options{Bytes: 16 * int64(p.Coll.NumChunks()), DType: runtime.Int32, Exact: true}
		for _, o.Chaos = range []*cpu.Chaos{nil, {Seed: seed}} {
			rep, err := cpu.Run(context.Background(), p, o)
			if err != nil || !rep.Verified {
				t.Fatalf("seed %d: the checker holds, the run doesn't: %v %+v\n%s", seed, err, rep, textOf(p))
			}
		}
	}
	t.Logf("%d programs, %d refused, %d with an exchange", count, refused, exchanges)
	if refused > 0 {
		t.Errorf("%d of %d programs were refused", refused, count)
	}
}

// TestDirectLibrary compiles the library's algorithms for protocol Direct: they have
// to hold by both judges, and to run.
func TestDirectLibrary(t *testing.T) {
	programs := library(t, []string{ir.Simple.String()}, func(d *ir.ChunkDAG, i int) compiler.Options {
		spec := *d.Spec
		spec.Protocol, d.Spec = ir.Direct, &spec
		return compiler.Options{Target: ir.TargetNative}
	})
	exchanges := 0
	for _, s := range programs {
		if s.p.Count().Steps > 2000 {
			continue // the judge that runs takes its time
		}
		v, err := agreeDirect(s.p, 1)
		if err != nil || !v.right() {
			t.Errorf("%s: %v, %v", s.name, v, err)
			continue
		}
		if hasExchange(s.p) {
			exchanges++
		}
		o := cpu.Options{Bytes: 32 * int64(s.p.Coll.NumChunks()), DType: runtime.FP32, Exact: true}
		for _, o.Chaos = range []*cpu.Chaos{nil, {Seed: 1}} {
			if rep, err := cpu.Run(context.Background(), s.p, o); err != nil || !rep.Verified {
				t.Errorf("%s: the checker holds, the run doesn't: %v %+v", s.name, err, rep)
			}
		}
	}
	t.Logf("%d programs, %d with an exchange", len(programs), exchanges)
	if len(programs) < 50 || exchanges == 0 {
		t.Errorf("want 50 programs, and exchanges in some")
	}
}
