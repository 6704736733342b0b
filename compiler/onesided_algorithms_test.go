package compiler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
	"github.com/mscclsh/mscclsh/starlib"
)

// script loads an algorithm of the library.
func script(name string, args map[string]string) (*starlib.Script, error) {
	return starlib.Load(context.Background(), starlib.Options{File: starlib.LibraryPrefix + name + ".star",
		Library: algorithms.FS, Args: args, Host: starlib.Host{Topology: machine.Topology}})
}

// program compiles an algorithm with those of the arguments that it knows;
// it is skipped if it knows the arguments and doesn't take them.
func program(t *testing.T, name string, ranks int, args map[string]string) *ir.Program {
	t.Helper()
	s, err := script(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{}
	for _, p := range s.Params {
		switch p.Name {
		case "ranks":
			given["ranks"] = strconv.Itoa(ranks)
		case "nodes":
			given["nodes"] = strconv.Itoa(1 + (ranks+1)%2)
		case "gpus":
			given["gpus"] = strconv.Itoa(ranks / (1 + (ranks+1)%2))
		default:
			if v, ok := args[p.Name]; ok {
				given[p.Name] = v
			}
		}
	}
	if s, err = script(name, given); err != nil {
		t.Skip(err)
	}
	r, err := compiler.Compile(context.Background(), s.Programs[0].DAG, compiler.Options{Target: ir.TargetPlain})
	if err != nil {
		t.Fatal(err)
	}
	return r.Program
}

// export makes a plan and looks at it in every way: its form, several launches
// under several schedules, the checker, a run on data; all of that again for what
// comes back from a file; and a second export is the same.
func export(p *ir.Program, o compiler.OneSidedOptions, seed uint64) (*ir.Program, error) {
	q, notes, err := compiler.OneSided(context.Background(), p, o)
	if err != nil {
		return nil, err
	}
	oneSize := forOneSize(notes)
	for n := range uint64(2) {
		if err := compiler.RunLaunches(q, rand.New(rand.NewPCG(seed, n)), 4); err != nil {
			return q, fmt.Errorf("schedule %d: %v", n, err)
		}
	}
	again, _, err := compiler.OneSided(context.Background(), p, o)
	if err != nil {
		return q, err
	}
	var a, b bytes.Buffer
	if err := errors.Join(q.WriteText(&a), again.WriteText(&b)); err != nil {
		return q, fmt.Errorf("writing: %v", err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		return q, fmt.Errorf("two exports differ")
	}
	if err := checkAndRun(q, oneSize); err != nil {
		return q, err
	}
	return q, throughFile(q, oneSize)
}

// forOneSize reports whether a plan is told to be right for launches of one size alone.
func forOneSize(notes diag.List) bool {
	return slices.ContainsFunc(notes, func(m *diag.Message) bool { return m.Code == "plan-plain-scratch" })
}

// checkAndRun demands that q is right from launch to launch: of any sizes, or of one where
// it is known not to be.
func checkAndRun(q *ir.Program, oneSize bool) error {
	var sizes checker.Options
	if oneSize {
		chunks := int64(max(q.Coll.NumChunks(), 1)) * 16
		sizes.MinBytes = (q.MinBytes + chunks - 1) / chunks * chunks
		sizes.MaxBytes = sizes.MinBytes
	}
	r, err := checker.Check(context.Background(), q, sizes)
	if err != nil {
		return fmt.Errorf("checking: %v", err)
	}
	if !r.OK || r.Races+r.RacesAcross > 0 {
		return fmt.Errorf("the check finds %d races, %d across launches:\n%v", r.Races, r.RacesAcross, r.Messages)
	}
	if q.Coll.NumChunks() == 0 {
		return nil
	}
	run, err := cpu.Run(context.Background(), q, cpu.Options{Bytes: q.MinBytes, DType: runtime.FP32, Op: runtime.Sum,
		Iterations: 2, Seed: 1, Exact: true})
	if err != nil {
		return fmt.Errorf("running: %v", err)
	}
	if !run.Verified {
		return fmt.Errorf("%d elements are wrong: %v", run.Wrong, run.Mismatches)
	}
	return nil
}

// throughFile does the same with what a file makes of the plan. Files hold the
// collectives of MSCCL++ only; that is all they may refuse.
func throughFile(q *ir.Program, oneSize bool) error {
	var b bytes.Buffer
	err := plan.Write(&b, q)
	if err != nil {
		switch q.Coll.Kind {
		case ir.AllReduce, ir.AllGather, ir.ReduceScatter, ir.AllToAll, ir.Broadcast:
			return fmt.Errorf("writing: %v", err)
		case ir.Custom:
			if q.Coll.Name == "sendrecv" {
				return fmt.Errorf("writing: %v", err)
			}
		}
		return nil
	}
	back, err := plan.Read(&b, plan.Options{File: "plan.json"})
	if err != nil {
		return fmt.Errorf("reading back: %v", err)
	}
	return checkAndRun(back.Program, oneSize)
}

// TestAlgorithmsExport: every algorithm becomes a plan that does the same, with
// its thread blocks joined or kept.
func TestAlgorithmsExport(t *testing.T) {
	for k, name := range algorithms.ChunkRouting() {
		for _, ranks := range []int{1, 2, 3, 4, 8, 16} {
			for n, protocol := range []string{"Simple", "LL", "LL128"} {
				instances, inPlace, keep := 1+(k+n+ranks)%2, (k+ranks/2)%2 == 0, (k+n)%3 == 0
				id := fmt.Sprintf("%s,ranks=%d,%s,instances=%d,inplace=%t,keep=%t", name, ranks, protocol, instances, inPlace, keep)
				t.Run(id, func(t *testing.T) {
					p := program(t, name, ranks, map[string]string{"protocol": protocol,
						"instances": strconv.Itoa(instances), "inplace": strconv.FormatBool(inPlace)})
					if _, err := export(p, compiler.OneSidedOptions{KeepBlocks: keep}, uint64(k)); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}
