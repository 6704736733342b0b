package starlib_test

import (
	"context"
	"testing"

	"github.com/mscclsh/mscclsh/starlib"
)

// BenchmarkOneSided traces 200,000 puts with slices of buffers.
func BenchmarkOneSided(b *testing.B) {
	const n = 200_000
	src := []byte(`
with CollectiveProgram("bench", AllToAll(8, 16, False), 8):
    def trace():
        ends = {(a, b): MemoryChannel(b, a) for a in range(8) for b in range(8) if a != b}
        inputs = [Rank(r).get_input_buffer() for r in range(8)]
        outputs = [Rank(r).get_output_buffer() for r in range(8)]
        for i in range(200000):
            r = i & 7
            p = (i + 1) & 7
            s = i & 127
            ends[r, p].put(outputs[p][s : s + 1], inputs[r][s : s + 1], tb = r)
    trace()
`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := starlib.Load(context.Background(), starlib.Options{File: "bench.star", Source: src}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(b.N), "ns/put")
}
