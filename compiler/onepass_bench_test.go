package compiler_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
)

// BenchmarkOneSidedCompile compiles programs of many ranks and writes their plans.
func BenchmarkOneSidedCompile(b *testing.B) {
	for _, c := range []struct {
		name  string
		trace func(n int32) *ir.OneTrace
	}{
		{"allreduce_pkt", func(n int32) *ir.OneTrace { return allreducePackets(n, false) }},
		{"allreduce_pkt_free", func(n int32) *ir.OneTrace { return allreducePackets(n, true) }},
		{"alltoall_ring_inst16", func(n int32) *ir.OneTrace { return alltoallRing(n, 16) }},
	} {
		for _, n := range []int32{16, 32, 64} {
			b.Run(fmt.Sprintf("%s/ranks=%d", c.name, n), func(b *testing.B) {
				t := c.trace(n)
				b.ReportAllocs()
				start := userSeconds(b)
				for b.Loop() {
					var size counter
					if err := plan.WriteWide(&size, compileFast(b, t)); err != nil {
						b.Fatal(err)
					}
					b.SetBytes(int64(size))
				}
				b.ReportMetric((userSeconds(b)-start)/float64(b.N), "user-s/op")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(t.Ops)), "ns/op-traced")
			})
		}
	}
}

func compileFast(b *testing.B, t *ir.OneTrace) *ir.Program {
	p, err := compiler.CompileOneSided(b.Context(), t, compiler.Options{Target: ir.TargetNative})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// userSeconds is the processor time that this process has taken, all its threads
// together: unlike the wall's clock it is the same on a busy machine.
func userSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec) + float64(u.Utime.Usec)/1e6
}

// counter counts bytes.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
