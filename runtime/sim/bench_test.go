package sim_test

import (
	"context"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/sim"
)

// benchmarks are programs of several kinds, by name.
var benchmarks = []struct {
	name, algorithm string
	args            map[string]string
}{
	{"ring64", "allreduce_ring", map[string]string{"ranks": "64", "protocol": "Simple"}},
	{"allpairs32", "allreduce_allpairs", map[string]string{"ranks": "32", "protocol": "LL"}},
	{"direct32", "allreduce_allpairs", map[string]string{"ranks": "32", "protocol": "Direct"}},
	{"ring256", "allreduce_ring", map[string]string{"ranks": "256", "protocol": "LL128"}},
}

func each(b *testing.B, bench func(b *testing.B, p *ir.Program)) {
	for _, c := range benchmarks {
		b.Run(c.name, func(b *testing.B) {
			p := compile(b, c.algorithm, c.args, compiler.Options{Target: ir.TargetNative})
			if p == nil {
				b.Fatal("it doesn't compile")
			}
			bench(b, p)
		})
	}
}

func report(b *testing.B, moves int) {
	b.ReportMetric(float64(moves)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mmoves/s")
}

// From the start to the end for the first time.
func BenchmarkForward(b *testing.B) {
	each(b, func(b *testing.B, p *ir.Program) {
		var m *sim.Machine
		for b.Loop() {
			b.StopTimer()
			m = newMachine(b, p, sim.Options{})
			b.StartTimer()
			finish(b, m)
		}
		report(b, m.Moves())
		b.ReportMetric(float64(m.LogBytes())/float64(m.Moves()), "B/move")
	})
}

// To the start and to the end again.
func BenchmarkBackAndForth(b *testing.B) {
	each(b, func(b *testing.B, p *ir.Program) {
		m := newMachine(b, p, sim.Options{Seed: 1})
		finish(b, m)
		n := m.Moves()
		for b.Loop() {
			for _, to := range []int{0, n} {
				if err := m.At(context.Background(), to); err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b, 2*n)
	})
}

// A look at all outputs.
func BenchmarkProgress(b *testing.B) {
	each(b, func(b *testing.B, p *ir.Program) {
		m := newMachine(b, p, sim.Options{})
		finish(b, m)
		for b.Loop() {
			if pr := m.Progress(); pr.Final != pr.Demanded {
				b.Fatal(pr)
			}
		}
	})
}
