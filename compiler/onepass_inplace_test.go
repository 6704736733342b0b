package compiler_test

import (
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
)

func outOfPlace(t *ir.OneTrace) { t.Coll.InPlace = false }

// In place, input and output are one memory of two names: what joins by one name joins by
// the other, and what may not doesn't.
func TestOneFuseInPlace(t *testing.T) {
	runPassCases(t, []passCase{
		{name: "puts from one buffer by both its names", ops: `
			rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 put memory on 0 o[1] x1 -> 1.s[1] x1 tb 0
			rank 0 put memory on 0 o[0] x1 -> 1.s[2] x1 tb 0`,
			want: "tb 0\n put memory i[0] x1, i[1] x1, i[0] x1 -> 1.s[0] x1, 1.s[1] x1, 1.s[2] x1"},
		{name: "puts from two buffers out of place", change: []func(*ir.OneTrace){outOfPlace}, ops: `
			rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 put memory on 0 o[1] x1 -> 1.s[1] x1 tb 0`,
			want: "tb 0\n put memory i[0] x1 -> 1.s[0] x1\n put memory o[1] x1 -> 1.s[1] x1"},
		{name: "puts to one place by both its names", ops: `
			rank 0 put memory on 0 i[0] x1 -> 1.o[2] x1 tb 0
			rank 0 put memory on 0 i[1] x1 -> 1.i[2] x1 tb 0`,
			want: "tb 0\n put memory i[0] x1 -> 1.o[2] x1\n nop\n put memory i[1] x1 -> 1.i[2] x1"},
		{name: "gets into one buffer by both its names", ops: `
			rank 0 get memory on 0 1.i[0] x1 -> o[0] x1 tb 0
			rank 0 get memory on 0 1.i[1] x1 -> i[1] x1 tb 0`,
			want: "tb 0\n get memory 1.i[0] x1, 1.i[1] x1 -> i[0] x1, i[1] x1"},
		{name: "a sum by both its names", ops: `
			rank 0 re i[0] x1, s[0] x1 -> o[0] x1 tb 0
			rank 0 re o[0] x1, s[1] x1 -> i[0] x1 tb 0
			rank 0 re i[0] x1, s[2] x1 -> i[0] x1 tb 0`,
			want: "tb 0\n re i[0] x1, s[0] x1, s[1] x1, s[2] x1 -> o[0] x1"},
		{name: "a sum and its own place by the other name", ops: `
			rank 0 re i[0] x1, s[0] x1 -> i[0] x1 tb 0
			rank 0 re i[0] x1, o[0] x1 -> i[0] x1 tb 0`,
			want: "tb 0\n re i[0] x1, s[0] x1 -> i[0] x1\n nop\n re i[0] x1, o[0] x1 -> i[0] x1"},
		{name: "a sum by both its names, out of place", change: []func(*ir.OneTrace){outOfPlace}, ops: `
			rank 0 re i[0] x1, s[0] x1 -> o[0] x1 tb 0
			rank 0 re o[0] x1, s[1] x1 -> i[0] x1 tb 0`,
			want: "tb 0\n re i[0] x1, s[0] x1 -> o[0] x1\n nop\n re o[0] x1, s[1] x1 -> i[0] x1"},
		{name: "a sum sent on by both its names, to where it was read", ops: `
			rank 0 rre memory on 0 i[0] x1, 1.i[0] x1 -> i[0] x1 tb 0
			rank 0 put memory on 0 o[0] x1 -> 1.o[0] x1 tb 0`,
			want: "tb 0\n rres memory i[0] x1, 1.i[0] x1 -> i[0] x1, 1.o[0] x1"},
		{name: "a sum sent on to where another one was read", ops: `
			rank 0 rre memory on 0 i[0] x1, 1.i[1] x1 -> i[0] x1 tb 0
			rank 0 put memory on 0 i[0] x1 -> 1.o[0] x1 tb 0
			rank 0 put memory on 1 o[0] x1 -> 1.i[0] x1 tb 0`,
			want: `tb 0
				rres memory i[0] x1, 1.i[1] x1 -> i[0] x1, 1.o[0] x1
				nop
				put memory o[0] x1 -> 1.i[0] x1`},
		{name: "a sum of packets sent on by both its names", ops: `
			rank 0 repkt i[0] x1, s[0] x1 packets -> o[0] x1 tb 0
			rank 0 ppkt memory on 0 i[0] x1 -> 1.s[1] x1 packets tb 0`,
			want: "tb 0\n respkt memory i[0] x1, s[0] x1 packets -> o[0] x1, 1.s[1] x1 packets"},
	})
}

// In place, an allgather's input is the rank's part of the output, and a
// reduce-scatter's output that of the input, under other indices.
func TestOneFuseInPlaceElsewhere(t *testing.T) {
	for _, c := range []struct {
		collective string
		ops, want  string // of rank 1
	}{
		{"allgather", `
			0 rank 1 put memory on 0 i[0] x1 -> 0.s[0] x1 tb 0
			1 rank 1 put memory on 0 o[1] x1 -> 0.s[1] x1 tb 0`,
			"tb 0\n put memory o[2] x1, o[1] x1 -> 0.s[0] x1, 0.s[1] x1"},
		{"allgather", `
			0 rank 1 re i[0] x1, s[0] x1 -> o[2] x1 tb 0
			1 rank 1 re o[2] x1, s[1] x1 -> i[0] x1 tb 0`,
			"tb 0\n re i[0] x1, s[0] x1, s[1] x1 -> o[2] x1"},
		// The executor has one index for both sides of a get.
		{"allgather", `
			0 rank 1 get memory on 0 0.i[0] x1 -> i[0] x1 tb 0
			1 rank 1 get memory on 0 0.o[1] x1 -> o[1] x1 tb 0`,
			"tb 0\n get memory 0.i[0] x1 -> i[0] x1\n get memory 0.o[1] x1 -> o[1] x1"},
		{"reduce_scatter", `
			0 rank 1 rre memory on 0 i[2] x2, 0.i[2] x2 -> o[0] x2 tb 0
			1 rank 1 put memory on 0 i[2] x2 -> 0.s[0] x2 tb 0`,
			"tb 0\n rres memory i[2] x2, 0.i[2] x2 -> o[0] x2, 0.s[0] x2"},
		{"reduce_scatter", `
			0 rank 1 put memory on 0 i[0] x1 -> 0.o[0] x1 tb 0
			1 rank 1 put memory on 0 i[1] x1 -> 0.i[0] x1 tb 0`,
			"tb 0\n put memory i[0] x1 -> 0.o[0] x1\n nop\n put memory i[1] x1 -> 0.i[0] x1"},
	} {
		text := `onetrace "elsewhere"
collective ` + c.collective + ` ranks 2 factor 2 split 1 in-place
topology none
protocol Simple
policy auto instances 1 interleaved fusion
window min 0 max 0
one-sided threads 32 align 16 auto-sync
gpu 0 scratch=2
channel memory 1
gpu 1 scratch=2
channel memory 0
`
		for line := range strings.Lines(strings.TrimSpace(c.ops)) {
			text += strings.TrimSpace(line) + "\n"
		}
		trace, err := ir.ParseOneTrace(strings.NewReader(text), "elsewhere")
		if err != nil {
			t.Fatal(err)
		}
		wantBlocks(t, compileOne(t, trace, compiler.Options{Target: ir.TargetNative}), 1, c.want)
	}
}
