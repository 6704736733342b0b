package compiler_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/randprog"
)

// Random programs become plans that do the same, launch after launch, whatever
// they were compiled for; what is refused names a limit.
func TestRandomProgramsExport(t *testing.T) {
	refused := 0
	for seed := range uint64(programs(300)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		d, err := randprog.Generate(rng, randprog.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		o := options(rng)
		r, err := compiler.Compile(context.Background(), d, o)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		_, err = export(r.Program, compiler.OneSidedOptions{KeepBlocks: rng.IntN(2) == 0}, seed)
		var m *diag.Message
		if errors.As(err, &m) && m.Code == "plan-limit" {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("seed %d, %s, %s, options %+v: %v", seed, d.Coll, d.Protocol, o, err)
		}
	}
	t.Logf("%d refused", refused)
}
