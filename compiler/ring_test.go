package compiler

import (
	"context"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// The ring of n ranks, by hand: every rank has one thread block; of the 2n-1
// visits that each of the n chunks pays, rank r starts one flow (s), ends one (r),
// completes one sum (rrcs), passes n-2 partial sums on (rrs) and hands n-2 on (rcs).
func TestRingIsOneThreadBlockOfFusedSteps(t *testing.T) {
	for _, n := range []int32{2, 3, 4, 8} {
		r := ring(t, n, ir.LL).compile(Options{})
		c := r.Program.Count()
		if c.MaxTBs != 1 || c.Channels != 1 || c.Deps != 0 || c.Steps != int(n*(2*n-1)) {
			t.Errorf("ring of %d: got %+v, want 1 thread block a rank, 1 channel, %d steps, no waits", n, c, n*(2*n-1))
		}
		for g := range r.Program.GPUs {
			kinds := map[ir.StepKind]int32{}
			for _, s := range r.Program.GPUs[g].TBs[0].Steps {
				kinds[s.Kind]++
			}
			want := map[ir.StepKind]int32{ir.Send: 1, ir.Recv: 1, ir.RecvReduceCopySend: 1}
			if n > 2 {
				want[ir.RecvReduceSend], want[ir.RecvCopySend] = n-2, n-2
			}
			for k, w := range want {
				if kinds[k] != w {
					t.Errorf("ring of %d, rank %d: got %d %s, want %d", n, g, kinds[k], k, w)
				}
			}
		}
		if r.Stats.StepsBefore != int(2*n*(2*n-2)) {
			t.Errorf("ring of %d: got %d instructions before fusion, want %d", n, r.Stats.StepsBefore, 2*n*(2*n-2))
		}
	}
}

func BenchmarkRing(b *testing.B) {
	for _, n := range []int32{128, 1024} {
		b.Run(itoa(int(n)), func(b *testing.B) {
			s := ring(&testing.T{}, n, ir.Simple)
			b.ResetTimer()
			for b.Loop() {
				r, err := Compile(context.Background(), s.d, Options{Target: ir.TargetPlain})
				if err != nil {
					b.Fatal(err)
				}
				for _, t := range r.Times {
					b.ReportMetric(t.Duration.Seconds(), t.Pass+"-s")
				}
			}
		})
	}
}
