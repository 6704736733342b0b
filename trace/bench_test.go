package trace_test

import (
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// BenchmarkRing traces a ring allreduce of 128 ranks as a script's front end
// does: each operation takes a reference and interns two positions. The rate
// counts pairs of Chunk and Reduce or Chunk and Copy.
func BenchmarkRing(b *testing.B) {
	const n = 128
	at := [4]diag.Pos{}
	for i := range at {
		at[i] = diag.Pos{File: "allreduce_ring.star", Line: 10 + int32(i), Col: 13}
	}
	ops := 0
	b.ReportAllocs()
	for b.Loop() {
		t, err := trace.New(ir.Spec{Coll: ir.NewCollective(ir.AllReduce, n, n, true), Topo: ir.FullyConnected(n), Instances: 1})
		if err != nil {
			b.Fatal(err)
		}
		for i := range int32(n) {
			c, err := t.Chunk(ir.Rank((i+1)%n), ir.Input, i, 1, t.Pos(at[0]))
			if err != nil {
				b.Fatal(err)
			}
			for hop := int32(2); hop <= n; hop++ {
				d, err := t.Chunk(ir.Rank((i+hop)%n), ir.Input, i, 1, t.Pos(at[0]))
				if err != nil {
					b.Fatal(err)
				}
				if c, err = t.Reduce(d, c, trace.NoHints, t.Pos(at[1])); err != nil {
					b.Fatal(err)
				}
			}
			for hop := int32(1); hop < n; hop++ {
				c, err := t.Chunk(ir.Rank((i+hop-1)%n), ir.Input, i, 1, t.Pos(at[2]))
				if err != nil {
					b.Fatal(err)
				}
				if _, err = t.Copy(c, ir.Rank((i+hop)%n), ir.Input, i, trace.NoHints, t.Pos(at[3])); err != nil {
					b.Fatal(err)
				}
			}
		}
		d, err := t.Finish()
		if err != nil {
			b.Fatal(err)
		}
		ops += len(d.Ops)
	}
	b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
}
