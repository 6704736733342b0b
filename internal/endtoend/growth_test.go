package endtoend

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/starlib"
)

// growing are library algorithms at sizes that double.
var growing = []struct {
	name  string
	param string
	fixed map[string]string
	sizes []int
}{
	{"allreduce_ring", "ranks", nil, []int{64, 128, 256, 512}},
	{"allreduce_allpairs", "ranks", nil, []int{16, 32, 64, 128}},
	{"allreduce_halving_doubling", "ranks", nil, []int{32, 64, 128, 256}},
	{"alltoall_direct", "ranks", nil, []int{32, 64, 128, 256}},
	{"alltoall_two_step", "nodes", map[string]string{"gpus": "8"}, []int{4, 8, 16, 32}},
	{"allreduce_hierarchical", "nodes", map[string]string{"gpus": "8"}, []int{4, 8, 16, 32}},
}

// BenchmarkGrowth compiles and checks programs of doubling sizes and reports,
// beside the time, nanoseconds a step and a step's logarithm (base 2): a column that
// stays level is growth as n log n.
func BenchmarkGrowth(b *testing.B) {
	for _, g := range growing {
		for _, n := range g.sizes {
			args := map[string]string{g.param: strconv.Itoa(n)}
			for k, v := range g.fixed {
				args[k] = v
			}
			s, err := starlib.Load(context.Background(), starlib.Options{File: starlib.LibraryPrefix + g.name + ".star",
				Library: algorithms.FS, Args: args, Host: starlib.Host{Topology: machine.Topology}})
			if err != nil {
				b.Fatal(err)
			}
			var p *ir.Program
			name := fmt.Sprintf("%s/%d", g.name, n)
			b.Run(name+"/compile", func(b *testing.B) {
				for b.Loop() {
					r, err := compiler.Compile(context.Background(), s.Programs[0].DAG, compiler.Options{Target: ir.TargetPlain})
					if err != nil {
						b.Fatal(err)
					}
					p = r.Program
				}
				perStep(b, p)
			})
			if p == nil {
				continue
			}
			b.Run(name+"/check", func(b *testing.B) {
				for b.Loop() {
					if r, err := checker.Check(context.Background(), p, checker.Options{}); err != nil || !r.OK {
						b.Fatal(err)
					}
				}
				perStep(b, p)
			})
		}
	}
}

func perStep(b *testing.B, p *ir.Program) {
	steps := float64(p.Count().Steps)
	b.ReportMetric(steps, "steps")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/steps/math.Log2(steps), "ns/(step*log2)")
}
