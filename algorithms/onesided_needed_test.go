package algorithms_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/ir"
)

// TestOneSidedNeeded: no algorithm has a handshake too many. Without the k-th signal
// and the k-th wait of every rank the check finds something, be it in the next launch
// alone, or in one of another size; and so it does for packets without a double scratch.
func TestOneSidedNeeded(t *testing.T) {
	for _, name := range algorithms.OneSided() {
		for _, mode := range []string{"true", "false"} {
			args := map[string]string{"instances": "1"}
			for _, p := range load(t, name, nil).Params {
				switch p.Name {
				case "ranks":
					args["ranks"] = "3"
				case "nodes":
					args["nodes"], args["gpus"] = "2", "3"
				case "inplace":
					args["inplace"] = mode
				}
			}
			t.Run(name+","+caseName(args), func(t *testing.T) {
				p := compileOne(t, name, args, ir.TargetNative)
				handshakes := pairs(p.OneSided, 0)
				for k := range handshakes {
					what := fmt.Sprintf("handshake %d of %d", k+1, handshakes)
					needed(t, name, what, without(p, k))
				}
				if p.OneSided.DoubleScratch {
					single := *p
					one := *p.OneSided
					one.DoubleScratch = false
					single.OneSided = &one
					needed(t, name, "double scratch", &single)
				} else if handshakes < 2 {
					t.Errorf("got %d handshakes, want two at least", handshakes)
				}
			})
		}
	}
}

// needed checks a program without something that it needs.
func needed(t *testing.T, name, what string, p *ir.Program) {
	t.Helper()
	report, err := checker.Check(context.Background(), p, checker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.OK && report.Races+report.RacesAcross == 0 {
		t.Errorf("%s: without %s nothing is found", name, what)
	}
}

// pairs counts the operations of a rank that signal; as many wait.
func pairs(o *ir.OneSided, r ir.Rank) int {
	n := 0
	for b := range o.GPUs[r].Blocks {
		for _, op := range flat(o, r, int32(b)) {
			if strings.HasSuffix(op.Kind.String(), "signal") {
				n++
			}
		}
	}
	return n
}

// without is a program without the k-th signal and the k-th wait of each rank, in
// whose place threads meet.
func without(p *ir.Program, k int) *ir.Program {
	q, o := *p, *p.OneSided
	o.Ops = slices.Clone(o.Ops)
	q.OneSided = &o
	for g := range o.GPUs {
		seen := map[string]int{}
		for b := range o.GPUs[g].Blocks {
			for _, op := range flat(&o, ir.Rank(g), int32(b)) {
				for _, kind := range []string{"signal", "wait"} {
					if !strings.HasSuffix(op.Kind.String(), kind) {
						continue
					}
					if seen[kind] == k {
						*op = ir.Op{Kind: ir.OpSync, Parts: 1, Pos: op.Pos}
					}
					seen[kind]++
				}
			}
		}
	}
	return &q
}
