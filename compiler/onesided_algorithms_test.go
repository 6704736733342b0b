package compiler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
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

// export makes a plan and checks its form, what it does in several launches under
// several schedules, and that a second one is the same to the byte.
func export(p *ir.Program, o compiler.OneSidedOptions, seed uint64) (*ir.Program, error) {
	q, _, err := compiler.OneSided(context.Background(), p, o)
	if err != nil {
		return nil, err
	}
	if err := q.Validate(); err != nil {
		return q, fmt.Errorf("malformed: %v", err)
	}
	for n := range uint64(3) {
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
	return q, throughFile(q)
}

// TestAlgorithmsExport: every algorithm becomes a plan that does the same, in
// every launch, or is refused for a limit of plans.
func TestAlgorithmsExport(t *testing.T) {
	for _, name := range algorithms.Names() {
		for _, ranks := range []int{1, 2, 3, 4, 8} {
			for _, protocol := range []string{"Simple", "LL"} {
				for k, instances := range []string{"1", "2"} {
					for _, mode := range []string{"true", "false"} {
						id := fmt.Sprintf("%s,ranks=%d,%s,instances=%s,inplace=%s", name, ranks, protocol, instances, mode)
						t.Run(id, func(t *testing.T) {
							args := map[string]string{"protocol": protocol, "instances": instances, "inplace": mode}
							p := program(t, name, ranks, args)
							for _, keep := range []bool{false, true} {
								q, err := export(p, compiler.OneSidedOptions{KeepBlocks: keep}, uint64(k))
								var m *diag.Message
								var l diag.List
								if errors.As(err, &l) {
									m = l[0]
								} else {
									errors.As(err, &m)
								}
								if m != nil && strings.HasPrefix(m.Code, "plan-") {
									t.Log(m.Text)
									continue
								}
								if err != nil {
									if q != nil && testing.Verbose() && ranks <= 4 {
										var b bytes.Buffer
										_ = q.WriteText(&b)
										t.Log(b.String())
									}
									t.Fatal(err)
								}
							}
						})
					}
				}
			}
		}
	}
}

// throughFile writes a plan, reads it back, and checks and runs what it got.
func throughFile(q *ir.Program) error {
	var b bytes.Buffer
	if err := plan.Write(&b, q); err != nil {
		return err
	}
	back, err := plan.Read(&b, plan.Options{File: "plan.json"})
	if err != nil {
		return fmt.Errorf("reading back: %v", err)
	}
	r, err := checker.Check(context.Background(), back.Program, checker.Options{})
	if err != nil {
		return fmt.Errorf("checking: %v", err)
	}
	if !r.OK || r.Races+r.RacesAcross > 0 {
		return fmt.Errorf("the check finds %d races, %d across launches:\n%v", r.Races, r.RacesAcross, r.Messages)
	}
	run, err := cpu.Run(context.Background(), back.Program, cpu.Options{
		Bytes: 16 * int64(q.Coll.NumChunks()), DType: runtime.FP32, Op: runtime.Sum, Seed: 1, Exact: true})
	if err != nil {
		return fmt.Errorf("running: %v", err)
	}
	if !run.Verified {
		return fmt.Errorf("%d elements are wrong: %v", run.Wrong, run.Mismatches)
	}
	return nil
}
