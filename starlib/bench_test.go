package starlib_test

import (
	"context"
	"testing"

	"github.com/mscclsh/mscclsh/starlib"
)

// benchmarkTrace runs a script that does 2 chunk operations (chunk and copy) an
// iteration and reports how many a second that is. The goal is 1.0 million
// copies with keyword arguments on one core.
func benchmarkTrace(b *testing.B, body string) {
	const n = 100_000
	src := []byte(`
with MSCCLProgram("bench", fully_connected(8), AllToAll(8, 16, False)):
    def trace():
        for i in range(` + "100000" + `):
            r = i & 7
            s = i & 127
            ` + body + `
    trace()
`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := starlib.Load(context.Background(), starlib.Options{File: "bench.star", Source: src}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(b.N), "ns/chunk-op")
}

func BenchmarkTraceKeywords(b *testing.B) {
	benchmarkTrace(b, `chunk(r, "input", s).copy((r + 1) % 8, "output", s, ch = 0, sendtb = 0, recvtb = 0)`)
}

func BenchmarkTracePositional(b *testing.B) {
	benchmarkTrace(b, `chunk(r, "input", s).copy((r + 1) % 8, "output", s)`)
}

func BenchmarkTraceScratch(b *testing.B) {
	benchmarkTrace(b, `chunk(r, "input", s).copy((r + 1) % 8, "tmp", s, ch = 0)`)
}

func BenchmarkTraceReduce(b *testing.B) {
	benchmarkTrace(b, `chunk(r, "output", s).reduce(chunk((r + 1) % 8, "input", s), ch = 0) if i > 1023 else chunk(r, "input", s).copy(r, "output", s)`)
}
