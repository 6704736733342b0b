package cpu_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/handed"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

// TestHandedPlans runs plans of others, small and in turns of their pipelines. Those
// that the checker finds right and without races within a launch deliver the right
// values.
func TestHandedPlans(t *testing.T) {
	folder := handed.Plans(t)
	index, err := os.ReadFile(filepath.Join(folder, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(index)), "\n") {
		row := strings.Split(line, "\t")
		if i == 0 || len(row) < 6 {
			continue
		}
		switch want, _, _ := strings.Cut(row[5], " "); want {
		case "HANG", "LIMIT": // the checker's business
			continue
		}
		f, err := os.Open(filepath.Join(folder, row[0]))
		if err != nil {
			t.Fatal(err)
		}
		in, err := plan.Read(f, plan.Options{File: row[0]})
		f.Close()
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		p := in.Program
		verdict, err := checker.Check(context.Background(), p, checker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if cpu.RaceDetector && verdict.Races > 0 {
			continue // it would find them too
		}
		sure := verdict.OK && verdict.Races == 0 && row[5] != "n/a"
		unit := int64(p.Coll.NumChunks()) * int64(p.OneSided.Alignment)
		sizes := []int64{unit, 5 * unit, 3 << 20}
		if cpu.RaceDetector {
			sizes = sizes[:2]
		}
		for _, size := range sizes {
			if unit > 0 {
				size = max(size/unit*unit, (p.MinBytes+unit-1)/unit*unit)
			} else if size > 0 {
				continue // it has no data
			}
			if p.MaxBytes > 0 {
				size = min(size, p.MaxBytes/unit*unit)
			}
			begin := time.Now()
			rep, err := cpu.Run(context.Background(), p, cpu.Options{Bytes: size, DType: runtime.FP32, Exact: true})
			if err != nil {
				t.Errorf("%s, %d bytes: %v", row[0], size, err)
				break
			}
			if sure && !rep.Verified {
				t.Errorf("%s, %d bytes: %v", row[0], size, rep.Mismatches)
				break
			}
			if took := time.Since(begin); took > time.Second {
				t.Logf("%s, %d bytes: %v", row[0], size, took)
			}
		}
	}
}

// TestPlansWithoutAnOperation takes operations out of plans of others, one at a time:
// what the checker still finds right and without races within a launch gives the
// right values in every order, and what it finds to deadlock does.
func TestPlansWithoutAnOperation(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(handed.Plans(t), "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	right, wrong := 0, 0
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		in, err := plan.Read(f, plan.Options{File: filepath.Base(name)})
		f.Close()
		if err != nil || in.Program.Coll.Kind == ir.Custom || in.Program.Coll.Ranks > 4 {
			continue
		}
		p := in.Program
		size := int64(p.Coll.NumChunks()) * int64(p.OneSided.Alignment) * 3
		for i := 0; i < len(p.OneSided.Ops); i += 1 + len(p.OneSided.Ops)/40 {
			old := p.OneSided.Ops[i]
			if old.Kind == ir.OpPipeline {
				continue
			}
			p.OneSided.Ops[i] = ir.Op{Kind: ir.OpFlush, Parts: 1, Pos: old.Pos} // of nothing
			verdict, err := checker.Check(context.Background(), p, checker.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if verdict.Has(checker.CodeDeadlock) && !cpu.RaceDetector { // it may race on the way there
				_, err := cpu.Run(context.Background(), p, cpu.Options{Bytes: size, Exact: true, AnySize: true})
				if m := (*diag.Message)(nil); !errors.As(err, &m) || m.Code != "deadlock" {
					t.Fatalf("%s without operation %d (%v): %v, want a deadlock", name, i, old.Kind, err)
				}
			}
			if wrong++; verdict.OK && verdict.Races == 0 {
				right++
				for seed := range uint64(4) {
					rep, err := cpu.Run(context.Background(), p, cpu.Options{Bytes: size, Exact: true, AnySize: true, Chaos: &cpu.Chaos{Seed: seed}})
					if err != nil || !rep.Verified {
						t.Fatalf("%s without operation %d (%v), seed %d: %v %+v", name, i, old.Kind, seed, err, rep)
					}
				}
			}
			p.OneSided.Ops[i] = old
		}
	}
	t.Logf("%d of %d are still right", right, wrong)
}
