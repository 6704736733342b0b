package compiler_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/randprog"
	"github.com/mscclsh/mscclsh/ir"
)

// programs is how many random programs a property test tries: MSCCLSH_PROGRAMS,
// else n.
func programs(n int) int {
	if v, err := strconv.Atoi(os.Getenv("MSCCLSH_PROGRAMS")); err == nil {
		return v
	}
	return n
}

// options draws compile options for a program: every target that has its protocol,
// small slot counts, size windows.
func options(rng *rand.Rand, p ir.Protocol) compiler.Options {
	o := compiler.Options{Target: ir.Target(rng.IntN(len(ir.TargetNames()))), CanonicalOrder: rng.IntN(4) == 0}
	if p == ir.Direct {
		o.Target = ir.TargetNative
	}
	if rng.IntN(3) == 0 {
		o.Slots = 1 + rng.Int32N(3)
	}
	if rng.IntN(4) == 0 {
		o.MaxBytes = 1 << rng.IntN(30)
	}
	for _, p := range compiler.Passes() {
		if !p.Required && rng.IntN(8) == 0 {
			o.Disable = append(o.Disable, p.Name)
		}
	}
	return o
}

// Random programs mean the same after compilation, under every schedule tried,
// in every regime of their sizes, and never hang; and compiling one twice gives
// the same text.
func TestRandomProgramsKeepTheirMeaning(t *testing.T) {
	for seed := range uint64(programs(2000)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d, err := randprog.Generate(rng, randprog.Options{Direct: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		o := options(rng, d.Protocol)
		if err := compileAndJudge(d, o, rng); err != nil {
			t.Fatalf("seed %d, %s, options %+v: %v", seed, d.Coll, o, err)
		}
	}
}

func compileAndJudge(d *ir.ChunkDAG, o compiler.Options, rng *rand.Rand) error {
	r, err := compiler.Compile(context.Background(), d, o)
	if err != nil {
		return err
	}
	if err := compiler.Verify(d, r.Program, rng, 6); err != nil {
		return err
	}
	again, err := compiler.Compile(context.Background(), d, o)
	if err != nil {
		return err
	}
	var a, b bytes.Buffer
	if err := r.Program.WriteText(&a); err != nil {
		return err
	}
	if err := again.Program.WriteText(&b); err != nil {
		return err
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		return fmt.Errorf("two compilations differ")
	}
	return nil
}
