package endtoend

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
	"github.com/mscclsh/mscclsh/starlib"
)

// BenchmarkOneSidedScript makes plans of one-sided scripts: it runs the script,
// compiles what it said and writes the plan. Scripts of MSCCL++ are measured beside
// the project's own where MSCCLSH_MSCCLPP names a checkout.
func BenchmarkOneSidedScript(b *testing.B) {
	b.Run("star", func(b *testing.B) {
		for _, name := range []string{"allreduce_pkt", "alltoall_ring"} {
			measureScript(b, name, func(ranks int) (*ir.OneTrace, error) {
				s, err := starlib.Load(b.Context(), starlib.Options{File: filepath.Join("testdata", "onesided", name+".star"),
					Args: map[string]string{"ranks": strconv.Itoa(ranks)}})
				if err != nil {
					return nil, err
				}
				return s.Programs[0].One, nil
			})
		}
	})
	b.Run("py", func(b *testing.B) {
		dir := checkout(b)
		for _, script := range []string{"allreduce_pkt", "alltoall/alltoall_ring"} {
			measureScript(b, filepath.Base(script), func(ranks int) (*ir.OneTrace, error) {
				return traceScript(dir, languageTests+"/single_node/"+script+".py", []string{"--name", "mine", "--num_gpus", strconv.Itoa(ranks)})
			})
		}
	})
}

func measureScript(b *testing.B, name string, trace func(ranks int) (*ir.OneTrace, error)) {
	for _, ranks := range []int{16, 64} {
		b.Run(fmt.Sprintf("%s/ranks=%d", name, ranks), func(b *testing.B) {
			b.ReportAllocs()
			var tracing, compiling, writing float64
			for b.Loop() {
				start := userSeconds(b)
				t, err := trace(ranks)
				if err != nil {
					b.Fatal(err)
				}
				traced := userSeconds(b)
				p, err := compiler.CompileOneSided(context.Background(), t, compiler.Options{Target: ir.TargetNative})
				if err != nil {
					b.Fatal(err)
				}
				compiled := userSeconds(b)
				var size counter
				if err := plan.WriteWide(&size, p); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(size))
				tracing += traced - start
				compiling += compiled - traced
				writing += userSeconds(b) - compiled
			}
			n := float64(b.N)
			b.ReportMetric(tracing/n, "user-s/trace")
			b.ReportMetric(compiling/n, "user-s/compile")
			b.ReportMetric(writing/n, "user-s/write")
			b.ReportMetric((tracing+compiling+writing)/n, "user-s/op")
		})
	}
}

// userSeconds is the processor time that this process has taken, all its threads
// together, in seconds.
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
