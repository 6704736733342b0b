package endtoend

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/randprog"
	"github.com/mscclsh/mscclsh/ir"
)

// judgeStage judges what a pass made, whatever form it has.
func judgeStage(s compiler.Stage) (*checker.Report, error) {
	switch {
	case s.Chunks != nil:
		return checker.CheckChunks(context.Background(), s.Chunks, checker.Options{})
	case s.Instrs != nil:
		return checker.CheckInstrs(context.Background(), s.Instrs, checker.Options{})
	}
	return checker.Check(context.Background(), s.Program, checker.Options{})
}

// What every pass makes of a random program still computes its collective: a
// defect shows at the pass that has it.
func TestEveryPassKeepsTheResult(t *testing.T) {
	for seed := range setting("MSCCLSH_PROGRAMS", 300) {
		rng := rand.New(rand.NewPCG(seed, 9))
		d, err := randprog.Generate(rng, randprog.Options{Direct: true})
		if err != nil {
			t.Fatal(err)
		}
		written, err := checker.CheckChunks(context.Background(), d, checker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !written.OK { // such as an in-place program that the library calls wrong
			t.Fatalf("seed %d: the program as written: %v", seed, written.Messages)
		}
		o := randomOptions(rng, d.Protocol)
		o.Observe = func(s compiler.Stage) {
			r, err := judgeStage(s)
			if err != nil {
				t.Fatal(err)
			}
			if !r.OK {
				t.Fatalf("seed %d, after pass %s: %v", seed, s.Pass, r.Messages)
			}
		}
		if _, err := compiler.Compile(context.Background(), d, o); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// A form that is wrong is called so, at the line of the operation.
func TestFormsCanBeWrong(t *testing.T) {
	d, err := randprog.Generate(rand.New(rand.NewPCG(1, 9)), randprog.Options{Family: randprog.Known})
	if err != nil {
		t.Fatal(err)
	}
	short := &ir.ChunkDAG{Spec: d.Spec, Ops: d.Ops[:len(d.Ops)-1]}
	r, err := checker.CheckChunks(context.Background(), short, checker.Options{})
	if err != nil || r.OK || !r.Has(checker.CodeWrongResult) {
		t.Errorf("without its last operation: got %v, %v, want a wrong result", r, err)
	}
	_, err = compiler.Compile(context.Background(), short, compiler.Options{Observe: func(s compiler.Stage) {
		if r, err := judgeStage(s); err != nil || r.OK {
			t.Errorf("pass %s of a wrong program: got %v, %v, want a wrong result", s.Pass, r, err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
}
