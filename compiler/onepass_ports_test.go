package compiler_test

import (
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
)

func allOfTwo(t *ir.OneTrace) { t.Loops[0].Chunks = 2 }

func TestOnePorts(t *testing.T) {
	runPassCases(t, []passCase{
		{name: "the source is overwritten", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 copy i[1] x1 -> i[2] x1 tb 0
			rank 0 copy s[1] x1 -> i[0] x1 tb 0`,
			want: `tb 0
				put port on 2 i[0] x1 -> 1.s[0] x1
				copy i[1] x1 -> i[2] x1
				nop
				flush port on 2
				nop
				copy s[1] x1 -> i[0] x1`},
		{name: "a read of the source needs nothing", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 copy i[0] x1 -> s[1] x1 tb 0`,
			want: "tb 0\n put port on 2 i[0] x1 -> 1.s[0] x1\n copy i[0] x1 -> s[1] x1"},
		{name: "what has been put is read back", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 get memory on 0 1.s[0] x1 -> s[1] x1 tb 0`,
			want: `tb 0
				put port on 2 i[0] x1 -> 1.s[0] x1
				nop
				flush port on 2
				nop
				get memory 1.s[0] x1 -> s[1] x1`},
		{name: "a signal behind it flushes nothing", ops: `
			rank 0 pws port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 copy s[1] x1 -> i[0] x1 tb 0`,
			want: `tb 0
				pws port on 2 i[0] x1 -> 1.s[0] x1
				nop
				flush port on 2
				nop
				copy s[1] x1 -> i[0] x1`},
		{name: "a signal behind it that was heard, and told of", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 signal port on 2 tb 0 sync none
			rank 1 wait port on 2 tb 0 sync none
			rank 1 rlxsignal memory on 0 tb 0 sync none
			rank 0 rlxwait memory on 0 tb 0 sync after
			rank 0 copy s[1] x1 -> i[0] x1 tb 0`,
			want: `tb 0
				put port on 2 i[0] x1 -> 1.s[0] x1
				signal port on 2
				rlxwait memory on 0
				nop
				copy s[1] x1 -> i[0] x1`},
		{name: "a relaxed signal tells of reads alone", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 signal port on 2 tb 0 sync none
			rank 1 wait port on 2 tb 0 sync none
			rank 1 rlxsignal memory on 0 tb 0 sync none
			rank 0 rlxwait memory on 0 tb 0 sync after
			rank 0 get memory on 0 1.s[0] x1 -> i[0] x1 tb 0`,
			want: `tb 0
				put port on 2 i[0] x1 -> 1.s[0] x1
				signal port on 2
				rlxwait memory on 0
				nop
				flush port on 2
				nop
				get memory 1.s[0] x1 -> i[0] x1`},
		{name: "a signal of another channel", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 signal port on 3 tb 0 sync none
			rank 1 wait port on 3 tb 0 sync none
			rank 1 signal memory on 0 tb 0 sync none
			rank 0 wait memory on 0 tb 0 sync after
			rank 0 copy s[1] x1 -> i[0] x1 tb 0`,
			want: `tb 0
				put port on 2 i[0] x1 -> 1.s[0] x1
				signal port on 3
				wait memory on 0
				nop
				flush port on 2
				nop
				copy s[1] x1 -> i[0] x1`},
		{name: "the script's flush", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 flush port on 2 tb 0 sync both
			rank 0 copy s[1] x1 -> i[0] x1 tb 0`,
			want: `tb 0
				put port on 2 i[0] x1 -> 1.s[0] x1
				nop
				flush port on 2
				nop
				copy s[1] x1 -> i[0] x1`},
		{name: "the script's flush of another channel, and one before", ops: `
			rank 0 flush port on 2 tb 0 sync none
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 flush port on 3 tb 0 sync both
			rank 0 copy s[1] x1 -> i[0] x1 tb 0`,
			want: `tb 0
				flush port on 2
				put port on 2 i[0] x1 -> 1.s[0] x1
				nop
				flush port on 3 2
				nop
				copy s[1] x1 -> i[0] x1`},
		{name: "one flush for all that was put", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 put port on 2 i[1] x1 -> 1.s[1] x1 tb 0
			rank 0 copy s[1] x1 -> i[0] x1 tb 0
			rank 0 copy s[2] x1 -> i[1] x1 tb 0`,
			want: `tb 0
				put port on 2 2 i[0] x1, i[1] x1 -> 1.s[0] x1, 1.s[1] x1
				nop
				flush port on 2
				nop
				copy s[1] x1 -> i[0] x1
				copy s[2] x1 -> i[1] x1`},
		{name: "to one place by one channel, and by another", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 put port on 2 i[1] x1 -> 1.s[0] x1 tb 0
			rank 0 put port on 3 i[2] x1 -> 1.s[0] x1 tb 0`,
			want: `tb 0
				put port on 2 i[0] x1 -> 1.s[0] x1
				nop
				put port on 2 i[1] x1 -> 1.s[0] x1
				nop
				flush port on 2
				nop
				put port on 3 i[2] x1 -> 1.s[0] x1`},
		{name: "in another thread block, behind a semaphore", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 copy s[1] x1 -> i[0] x1 tb 1`,
			want: `tb 0
				put port on 2 i[0] x1 -> 1.s[0] x1
				nop
				sem_release on 2
				tb 1
				sem_acquire on 2
				nop
				flush port on 2
				nop
				copy s[1] x1 -> i[0] x1`},
		{name: "in a loop, turn by turn", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0 loop 0
			rank 0 copy s[1] x1 -> i[0] x1 tb 0 loop 0`,
			want: `tb 0
				pipeline unit 64 chunks 1
				put port on 2 i[0] x1 -> 1.s[0] x1
				nop
				flush port on 2
				nop
				copy s[1] x1 -> i[0] x1`},
		{name: "before a loop", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 copy s[1] x1 -> i[0] x1 tb 0 loop 0`,
			want: `tb 0
				put port on 2 i[0] x1 -> 1.s[0] x1
				nop
				flush port on 2
				nop
				pipeline unit 64 chunks 1
				copy s[1] x1 -> i[0] x1`},
		{name: "in a loop whose turns meet", change: []func(*ir.OneTrace){allOfTwo}, ops: `
			rank 0 put port on 2 i[0] x2 -> 1.s[0] x2 tb 0 loop 0
			rank 0 copy s[4] x2 -> i[1] x2 tb 0 loop 0`,
			want: `tb 0
				pipeline unit 64 chunks 2
				put port on 2 i[0] x2 -> 1.s[0] x2
				nop
				flush port on 2
				nop
				copy s[4] x2 -> i[1] x2
				nop`},
		{name: "without auto_sync", change: []func(*ir.OneTrace){withoutAutoSync}, ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 copy s[1] x1 -> i[0] x1 tb 0`,
			want: "tb 0\n put port on 2 i[0] x1 -> 1.s[0] x1\n copy s[1] x1 -> i[0] x1"},
	})
}

// MSCCL++'s executor has no flush but that of pwsf.
func TestOnePortsInPlans(t *testing.T) {
	trace := pairTrace(t, `
		rank 0 pws port on 2 i[0] x1 -> 1.s[0] x1 tb 0
		rank 0 pws port on 3 i[1] x1 -> 1.s[1] x1 tb 0
		rank 0 copy s[1] x1 -> i[0] x1 tb 0`)
	p := compileOne(t, trace, compiler.Options{Target: ir.TargetPlain})
	wantBlocks(t, p, 0, `tb 0
		pwsf port on 2 i[0] x1 -> 1.s[0] x1
		pws port on 3 i[1] x1 -> 1.s[1] x1
		nop
		copy s[1] x1 -> i[0] x1`)
	if got := trace.Ops[0].Kind; got != ir.TraceOf(ir.OpPutSignal) {
		t.Errorf("compiling has changed the trace: operation 0 is %s now", got)
	}
}
