package cpu

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

const (
	benchRanks = 8
	benchBytes = 64 << 20
	benchMoved = 2 * (benchRanks - 1) * benchBytes // over all connections
)

var benchTransports = []struct {
	proto ir.Protocol
	ir.Transport
}{
	{ir.Simple, ir.TargetMSCCL.Transport(ir.Simple)},
	{ir.LL, ir.TargetMSCCL.Transport(ir.LL)},
	{ir.LL128, ir.TargetMSCCL.Transport(ir.LL128)},
}

// BenchmarkRing moves 896 MiB over the connections of an 8-rank ring allreduce of
// 64 MiB fp32 a run, and copies as much with as many goroutines right after it.
// x-copy is the ratio of the two rates; at least 0.5 is wanted.
func BenchmarkRing(b *testing.B) {
	for _, t := range benchTransports {
		b.Run(t.proto.String(), func(b *testing.B) {
			p := ringAllReduce(benchRanks, 1, t.Transport)
			var ring, plain time.Duration
			b.SetBytes(benchMoved)
			for b.Loop() {
				rep, err := Run(context.Background(), p, Options{Bytes: benchBytes, Iterations: 12, Warmup: 1, NoVerify: true, Exact: true})
				if err != nil {
					b.Fatal(err)
				}
				if rep.Moved != benchMoved {
					b.Fatalf("moved %d bytes, want %d", rep.Moved, int64(benchMoved))
				}
				ring += rep.Min
				plain += copyOnce()
			}
			b.ReportMetric(benchMoved*float64(b.N)/float64(ring.Nanoseconds()), "ring-GB/s")
			b.ReportMetric(benchMoved*float64(b.N)/float64(plain.Nanoseconds()), "copy-GB/s")
			b.ReportMetric(float64(plain)/float64(ring), "x-copy")
		})
	}
}

// BenchmarkCopy is the yardstick alone.
func BenchmarkCopy(b *testing.B) {
	b.SetBytes(benchMoved)
	var took time.Duration
	for b.Loop() {
		took += copyOnce()
	}
	b.ReportMetric(benchMoved*float64(b.N)/float64(took.Nanoseconds()), "copy-GB/s")
}

// copyOnce copies benchMoved bytes from one buffer to another, both of the
// benchmark's size, with one goroutine a rank, and returns the best of twelve.
func copyOnce() time.Duration {
	var from, to [benchRanks][]byte
	for r := range from {
		from[r], to[r] = runtime.Alloc(benchBytes), runtime.Alloc(benchBytes)
		for i := 0; i < benchBytes; i += 4096 {
			from[r][i], to[r][i] = 1, 1
		}
	}
	best := time.Duration(1<<63 - 1)
	for range 12 {
		begin := time.Now()
		var wg sync.WaitGroup
		for r := range benchRanks {
			wg.Go(func() {
				const each = benchMoved / benchRanks
				for at := 0; at < each; at += 2 << 20 {
					off := at % benchBytes
					copy(to[r][off:off+2<<20], from[r][off:off+2<<20])
				}
			})
		}
		wg.Wait()
		best = min(best, time.Since(begin))
	}
	return best
}

// BenchmarkSmall is a ring of 64 ranks and 1 KiB: handing over, not moving.
func BenchmarkSmall(b *testing.B) {
	p := ringAllReduce(64, 1, ir.Transport{Slots: 8, SlotBytes: 32 << 10})
	rep, err := Run(context.Background(), p, Options{Bytes: 1024, Iterations: b.N, NoVerify: true, Exact: true})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(rep.Median.Nanoseconds())/float64(rep.Messages), "ns/message")
}
