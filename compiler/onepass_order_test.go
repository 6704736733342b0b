package compiler_test

import (
	"errors"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

func TestOneOrder(t *testing.T) {
	runPassCases(t, []passCase{
		{name: "a semaphore between two blocks, for both pairs", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0
			rank 0 put memory on 0 s[0] x1 -> 1.s[0] x1 tb 1
			rank 0 copy i[1] x1 -> s[1] x1 tb 0
			rank 0 put memory on 0 s[1] x1 -> 1.s[1] x1 tb 1`,
			want: `tb 0
				copy i[0] x1 -> s[0] x1
				nop
				sem_release on 2
				copy i[1] x1 -> s[1] x1
				nop
				sem_release on 2
				tb 1
				sem_acquire on 2
				nop
				put memory s[0] x1 -> 1.s[0] x1
				sem_acquire on 2
				nop
				put memory s[1] x1 -> 1.s[1] x1`},
		{name: "no more than the last of a block", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0
			rank 0 copy i[1] x1 -> s[1] x1 tb 0
			rank 0 put memory on 0 s[0] x2 -> 1.s[0] x2 tb 1`,
			want: `tb 0
				copy i[0] x1 -> s[0] x1
				copy i[1] x1 -> s[1] x1
				nop
				sem_release on 2
				tb 1
				sem_acquire on 2
				nop
				put memory s[0] x2 -> 1.s[0] x2`},
		{name: "what others imply", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0
			rank 0 copy s[0] x1 -> s[1] x1 tb 1
			rank 0 re s[0] x1, s[1] x1 -> s[2] x1 tb 2`,
			want: `tb 0
				copy i[0] x1 -> s[0] x1
				nop
				sem_release on 2
				tb 1
				sem_acquire on 2
				nop
				copy s[0] x1 -> s[1] x1
				nop
				sem_release on 3
				tb 2
				sem_acquire on 3
				nop
				re s[0] x1, s[1] x1 -> s[2] x1`},
		{name: "the script's own semaphore", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0
			rank 0 sem_release on 0 tb 0 sync before
			rank 0 sem_acquire on 0 tb 1 sync after
			rank 0 copy s[0] x1 -> i[1] x1 tb 1`,
			want: `tb 0
				copy i[0] x1 -> s[0] x1
				nop
				sem_release on 0
				tb 1
				sem_acquire on 0
				nop
				copy s[0] x1 -> i[1] x1`},
		{name: "packets that another block writes further down", ops: `
			rank 0 upkt s[0] x1 packets -> i[1] x1 tb 0
			rank 0 cpkt i[0] x1 -> s[0] x1 packets tb 1`,
			want: `tb 0
				upkt s[0] x1 packets -> i[1] x1
				tb 1
				cpkt i[0] x1 -> s[0] x1 packets`},
		{name: "packets of a slot that is used twice", ops: `
			rank 0 cpkt i[0] x1 -> s[0] x1 packets tb 0
			rank 0 upkt s[0] x1 packets -> i[1] x1 tb 1
			rank 0 cpkt i[1] x1 -> s[0] x1 packets tb 0`,
			want: `tb 0
				cpkt i[0] x1 -> s[0] x1 packets
				sem_acquire on 2
				nop
				cpkt i[1] x1 -> s[0] x1 packets
				tb 1
				upkt s[0] x1 packets -> i[1] x1
				nop
				sem_release on 2`},
		{name: "the script's own order, the other way round", ops: `
			rank 0 sem_acquire on 0 tb 1 sync after
			rank 0 copy s[0] x1 -> i[1] x1 tb 1
			rank 0 copy i[0] x1 -> s[0] x1 tb 0
			rank 0 sem_release on 0 tb 0 sync before`,
			want: `tb 0
				copy i[0] x1 -> s[0] x1
				nop
				sem_release on 0
				tb 1
				sem_acquire on 0
				nop
				copy s[0] x1 -> i[1] x1`},
		{name: "by way of another rank", ops: `
			rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 signal memory on 0 tb 0 sync before
			rank 1 wait memory on 0 tb 0 sync none
			rank 1 signal memory on 1 tb 0 sync before
			rank 0 wait memory on 1 tb 1 sync after
			rank 0 copy s[0] x1 -> i[0] x1 tb 1`,
			want: `tb 0
				put memory i[0] x1 -> 1.s[0] x1
				nop
				signal memory on 0
				tb 1
				wait memory on 1
				nop
				copy s[0] x1 -> i[0] x1`},
		{name: "in loops of as many turns, by way of another rank", ops: `
			rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1 tb 0 loop 0
			rank 0 signal memory on 0 tb 0 sync before loop 0
			rank 0 wait memory on 1 tb 1 sync after loop 0
			rank 0 copy s[0] x1 -> i[0] x1 tb 1 loop 0
			rank 1 wait memory on 0 tb 0 sync none loop 1
			rank 1 signal memory on 1 tb 0 sync before loop 1`,
			want: `tb 0
				pipeline unit 64 chunks 1
				put memory i[0] x1 -> 1.s[0] x1
				nop
				signal memory on 0
				tb 1
				pipeline unit 64 chunks 1
				wait memory on 1
				nop
				copy s[0] x1 -> i[0] x1`},
		{name: "loops of other units order nothing", ops: `
			rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1 tb 0 loop 0
			rank 0 signal memory on 0 tb 0 sync before loop 0
			rank 0 wait memory on 1 tb 1 sync after loop 0
			rank 0 copy s[0] x1 -> i[0] x1 tb 1 loop 0
			rank 1 wait memory on 0 tb 0 sync none loop 2
			rank 1 signal memory on 1 tb 0 sync before loop 2`,
			want: `tb 0
				pipeline unit 64 chunks 1
				put memory i[0] x1 -> 1.s[0] x1
				nop
				sem_release on 2
				nop
				signal memory on 0
				tb 1
				pipeline unit 64 chunks 1
				wait memory on 1
				nop
				sem_acquire on 2
				nop
				copy s[0] x1 -> i[0] x1`},
		{name: "two that release once, outside of a loop", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0
			rank 0 sem_release on 0 tb 0 sync before
			rank 0 sem_release on 0 tb 2 sync none
			rank 0 sem_acquire on 0 tb 1 sync after
			rank 0 sem_acquire on 0 tb 1 sync after
			rank 0 copy s[0] x1 -> i[1] x1 tb 1`,
			want: `tb 0
				copy i[0] x1 -> s[0] x1
				nop
				sem_release on 0
				tb 1
				sem_acquire on 0
				nop
				sem_acquire on 0
				nop
				copy s[0] x1 -> i[1] x1
				tb 2
				sem_release on 0`},
		{name: "in a loop one of two may release for both, turns ahead", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0 loop 0
			rank 0 sem_release on 0 tb 0 sync before loop 0
			rank 0 sem_release on 0 tb 2 sync none loop 0
			rank 0 sem_acquire on 0 tb 1 sync after loop 0
			rank 0 sem_acquire on 0 tb 1 sync after loop 0
			rank 0 copy s[0] x1 -> i[1] x1 tb 1 loop 0`,
			want: `tb 0
				pipeline unit 64 chunks 1
				copy i[0] x1 -> s[0] x1
				nop
				sem_release on 2 0
				tb 1
				pipeline unit 64 chunks 1
				sem_acquire on 0
				nop
				sem_acquire on 0 2
				nop
				copy s[0] x1 -> i[1] x1
				tb 2
				pipeline unit 64 chunks 1
				sem_release on 0`},
		{name: "in a loop what is released twice a turn and taken once lags behind", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0 loop 0
			rank 0 sem_release on 0 tb 0 sync before loop 0
			rank 0 sem_release on 0 tb 0 sync none loop 0
			rank 0 sem_acquire on 0 tb 1 sync after loop 0
			rank 0 copy s[0] x1 -> i[1] x1 tb 1 loop 0`,
			want: `tb 0
				pipeline unit 64 chunks 1
				copy i[0] x1 -> s[0] x1
				nop
				sem_release on 2 0
				sem_release on 0
				tb 1
				pipeline unit 64 chunks 1
				sem_acquire on 0 2
				nop
				copy s[0] x1 -> i[1] x1`},
		{name: "by packets, unit by unit", ops: `
			rank 0 ppkt memory on 0 i[0] x2 -> 1.s[0] x2 packets tb 0
			rank 1 rppkt memory on 0 s[0] x2 packets -> 0.s[0] x2 packets tb 0
			rank 0 upkt s[0] x2 packets -> i[0] x2 tb 1`,
			want: "tb 0\n ppkt memory i[0] x2 -> 1.s[0] x2 packets\n tb 1\n upkt s[0] x2 packets -> i[0] x2"},
		{name: "packets of other units order nothing", ops: `
			rank 0 ppkt memory on 0 i[0] x2 -> 1.s[0] x2 packets tb 0
			rank 1 rppkt memory on 0 s[0] x2 packets -> 0.s[0] x2 packets tb 0
			rank 0 upkt s[0] x2 packets -> i[1] x2 tb 1`,
			want: `tb 0
				ppkt memory i[0] x2 -> 1.s[0] x2 packets
				nop
				sem_release on 2
				tb 1
				sem_acquire on 2
				nop
				upkt s[0] x2 packets -> i[1] x2`},
		{name: "parts of a group", ops: `
			rank 0 copy i[0] x2 -> s[0] x2 tb 0 1
			rank 0 copy s[0] x2 -> i[2] x2 tb 0 1`,
			want: `tb 0
				copy i[0] x2 -> s[0] x2 part 0 of 2
				nop
				copy s[0] x2 -> i[2] x2 part 0 of 2
				tb 1
				copy i[0] x2 -> s[0] x2 part 1 of 2
				nop
				copy s[0] x2 -> i[2] x2 part 1 of 2`},
		{name: "into and out of a loop", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0
			rank 0 copy i[3] x1 -> s[3] x1 tb 1 loop 0
			rank 0 copy s[0] x1 -> s[1] x1 tb 1 loop 0
			rank 0 copy s[1] x1 -> s[2] x1 tb 2 loop 0
			rank 0 copy s[2] x1 -> i[1] x1 tb 0`,
			want: `tb 0
				copy i[0] x1 -> s[0] x1
				nop
				sem_release on 2
				sem_acquire on 4
				nop
				copy s[2] x1 -> i[1] x1
				tb 1
				sem_acquire on 2
				nop
				pipeline unit 64 chunks 1
				copy i[3] x1 -> s[3] x1
				copy s[0] x1 -> s[1] x1
				nop
				sem_release on 3
				tb 2
				pipeline unit 64 chunks 1
				sem_acquire on 3
				nop
				copy s[1] x1 -> s[2] x1
				nop
				sem_release on 4`},
		{name: "turns that meet", ops: `
			rank 0 copy i[0] x2 -> s[0] x2 tb 0 loop 0
			rank 0 copy s[1] x2 -> i[2] x2 tb 1 loop 0`,
			want: `tb 0
				pipeline unit 64 chunks 1
				sem_acquire on 3
				nop
				copy i[0] x2 -> s[0] x2
				nop
				sem_release on 2
				tb 1
				pipeline unit 64 chunks 1
				sem_acquire on 2
				nop
				copy s[1] x2 -> i[2] x2
				nop
				sem_release on 3`},
		{name: "without auto_sync", change: []func(*ir.OneTrace){withoutAutoSync}, ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0
			rank 0 copy s[0] x1 -> i[1] x1 tb 1`,
			want: "tb 0\n copy i[0] x1 -> s[0] x1\n tb 1\n copy s[0] x1 -> i[1] x1"},
	})
}

func TestOneAssign(t *testing.T) {
	runPassCases(t, []passCase{
		{name: "a put, its signal, and what the other rank puts", ops: `
			rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1
			rank 0 signal memory on 0 sync before
			rank 1 put memory on 0 i[1] x1 -> 0.s[0] x1
			rank 1 signal memory on 0 sync before
			rank 0 wait memory on 0 sync after
			rank 0 re i[1] x1, s[0] x1 -> i[1] x1
			rank 1 wait memory on 0 sync after`,
			want: `tb 0
				put memory i[0] x1 -> 1.s[0] x1
				nop
				signal memory on 0
				wait memory on 0
				nop
				re i[1] x1, s[0] x1 -> i[1] x1`},
		{name: "behind the thread blocks of the script", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 1
			rank 0 put memory on 0 s[0] x1 -> 1.s[0] x1
			rank 0 copy i[1] x1 -> s[1] x1
			rank 0 re s[1] x1, i[2] x1 -> s[1] x1`,
			want: `tb 0
				tb 1
				copy i[0] x1 -> s[0] x1
				nop
				sem_release on 2
				tb 2
				sem_acquire on 2
				nop
				put memory s[0] x1 -> 1.s[0] x1
				tb 3
				copy i[1] x1 -> s[1] x1
				nop
				re s[1] x1, i[2] x1 -> s[1] x1`},
		{name: "even without auto_sync", change: []func(*ir.OneTrace){withoutAutoSync}, ops: `
			rank 0 copy i[0] x1 -> s[0] x1
			rank 0 copy s[0] x1 -> i[1] x1`,
			want: "tb 0\n copy i[0] x1 -> s[0] x1\n nop\n copy s[0] x1 -> i[1] x1"},
		{name: "a flush keeps its place", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1
			rank 0 flush port on 2 sync both
			rank 0 copy s[1] x1 -> i[0] x1`,
			want: `tb 0
				put port on 2 i[0] x1 -> 1.s[0] x1
				nop
				flush port on 2
				nop
				sem_release on 2
				tb 1
				sem_acquire on 2
				nop
				copy s[1] x1 -> i[0] x1`},
	})
}

// Where ranks can't run one operation after another, the trace has no meaning.
func TestOneAssignRefuses(t *testing.T) {
	_, err := compiler.CompileOneSided(t.Context(), pairTrace(t, `
		rank 0 wait memory on 0 sync both
		rank 0 signal memory on 0 sync both
		rank 1 wait memory on 0 sync both
		rank 1 signal memory on 0 sync both`), compiler.Options{})
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != "one-order" || len(m.Notes) != 1 || m.Suggestion == "" {
		t.Errorf("got %v, want that both wait, with advice", err)
	}
}
