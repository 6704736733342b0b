package compiler_test

import (
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
)

// Rank 1 tells at its end that its scratch may be written again. Rank 0 writes s[0] alone, but
// in a launch of chunks three times as large that is where s[2] was: the signal comes
// behind the copy from there too, which shares no thread block with it.
func TestOneSizes(t *testing.T) {
	trace := pairTrace(t, `
		rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1
		rank 0 signal memory on 0 sync both
		rank 1 copy i[0] x1 -> s[2] x1
		rank 1 copy s[2] x1 -> o[1] x1
		rank 1 wait memory on 0 sync after
		rank 1 copy s[0] x1 -> o[2] x1
		rank 1 signal memory on 0 sync both
		rank 0 wait memory on 0 sync both`, func(t *ir.OneTrace) { t.Protocol = ir.Simple })
	trace.Coll = ir.NewCollective(ir.Custom, 2, 1, false)
	trace.Coll.Name = "sizes"
	trace.Coll.Custom = &ir.CustomSpec{Input: []int32{4, 4}, Output: []int32{4, 4}, Expect: [][][]ir.Contribution{
		make([][]ir.Contribution, 4), {nil, {{Rank: 1, Index: 0}}, {{Rank: 0, Index: 0}}, nil}}}
	p := compileOne(t, trace, compiler.Options{Target: ir.TargetNative})
	wantBlocks(t, p, 1, `tb 0
		copy i[0] x1 -> s[2] x1
		nop
		copy s[2] x1 -> o[1] x1
		nop
		sem_release on 2
		tb 1
		wait memory on 0
		nop
		copy s[0] x1 -> o[2] x1
		sem_acquire on 2
		nop
		signal memory on 0
		nop`)
	if r := checkOne(t, p); !r.OK || r.Races+r.RacesAcross > 0 {
		t.Errorf("%s: %v", r.Summary(), r.Messages)
	}
}
