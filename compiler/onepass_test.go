package compiler_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// pairHead is the beginning of a trace of two ranks, which hold 4 chunks each, in one
// place, and 8 of scratch. Each has channels 0 and 1 by memory and 2 and 3 by ports to
// the other one, semaphores 0 and 1, and with it switch group 0 over input. Loops 0 and
// 1 are alike, loop 2 has other units.
const pairHead = `onetrace "pair"
collective allreduce ranks 2 factor 4 split 1 in-place
topology none
protocol LL
policy auto instances 1 interleaved fusion
window min 0 max 0
one-sided threads 32 align 16 auto-sync
group i: 0 1
loop unit 64 chunks 1
loop unit 64 chunks 1
loop unit 128 chunks 1
gpu 0 scratch=8
channel memory 1
channel memory 1
channel port 1
channel port 1
semaphore 0
semaphore 0
gpu 1 scratch=8
channel memory 0
channel memory 0
channel port 0
channel port 0
semaphore 0
semaphore 0
`

// pairTrace is a trace of operations, a line each.
func pairTrace(t testing.TB, ops string, change ...func(*ir.OneTrace)) *ir.OneTrace {
	t.Helper()
	var b strings.Builder
	b.WriteString(pairHead)
	n := 0
	for _, line := range strings.Split(ops, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(&b, "%d %s\n", n, line)
			n++
		}
	}
	trace, err := ir.ParseOneTrace(strings.NewReader(b.String()), "pair")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(trace)
	}
	return trace
}

func withoutAutoSync(t *ir.OneTrace) { t.AutoSync = false }
func withoutFusion(t *ir.OneTrace)   { t.Fusion = false }

// passCase is operations of rank 0, and the thread blocks that they become.
type passCase struct {
	name, ops, want string
	change          []func(*ir.OneTrace)
}

func runPassCases(t *testing.T, cases []passCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := compileOne(t, pairTrace(t, c.ops, c.change...), compiler.Options{Target: ir.TargetNative})
			wantBlocks(t, p, 0, c.want)
		})
	}
}

func TestOneFuse(t *testing.T) {
	runPassCases(t, []passCase{
		{name: "signals of different channels", ops: `
			rank 0 signal memory on 0 tb 0 sync both
			rank 0 signal memory on 1 tb 0 sync both`,
			want: "tb 0\n nop\n signal memory on 0 1\n nop"},
		{name: "signals of one channel count twice", ops: `
			rank 0 signal memory on 0 tb 0 sync both
			rank 0 signal memory on 0 tb 0 sync both`,
			want: "tb 0\n nop\n signal memory on 0\n nop\n signal memory on 0\n nop"},
		{name: "relaxed and not", ops: `
			rank 0 signal memory on 0 tb 0 sync none
			rank 0 rlxsignal memory on 1 tb 0 sync none`,
			want: "tb 0\n signal memory on 0\n rlxsignal memory on 1"},
		{name: "waits, semaphores, flushes", ops: `
			rank 0 wait memory on 0 tb 0 sync none
			rank 0 wait memory on 1 tb 0 sync after
			rank 0 sem_acquire on 0 tb 0 sync none
			rank 0 sem_acquire on 1 tb 0 sync none
			rank 0 flush port on 2 tb 0 sync none
			rank 0 flush port on 3 tb 0 sync none`,
			want: "tb 0\n wait memory on 0 1\n nop\n sem_acquire on 0 1\n flush port on 2 3"},
		{name: "puts of one size from one buffer", ops: `
			rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 put memory on 0 i[1] x1 -> 1.s[1] x1 tb 0
			rank 0 put memory on 0 i[2] x2 -> 1.s[2] x2 tb 0
			rank 0 put memory on 0 s[0] x2 -> 1.s[4] x2 tb 0`,
			want: `tb 0
				put memory i[0] x1, i[1] x1 -> 1.s[0] x1, 1.s[1] x1
				put memory i[2] x2 -> 1.s[2] x2
				put memory s[0] x2 -> 1.s[4] x2`},
		{name: "puts to one place", ops: `
			rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 put memory on 0 i[1] x1 -> 1.s[0] x1 tb 0`,
			want: "tb 0\n put memory i[0] x1 -> 1.s[0] x1\n nop\n put memory i[1] x1 -> 1.s[0] x1"},
		{name: "puts by ports take any buffer, and signal for themselves", ops: `
			rank 0 put port on 2 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 put port on 2 s[1] x1 -> 1.s[1] x1 tb 0
			rank 0 pws port on 2 i[2] x1 -> 1.s[2] x1 tb 0
			rank 0 pws port on 3 i[3] x1 -> 1.s[3] x1 tb 0
			rank 0 pws port on 3 i[3] x1 -> 1.s[4] x1 tb 0`,
			want: `tb 0
				put port on 2 2 i[0] x1, s[1] x1 -> 1.s[0] x1, 1.s[1] x1
				pws port on 2 3 i[2] x1, i[3] x1 -> 1.s[2] x1, 1.s[3] x1
				pws port on 3 i[3] x1 -> 1.s[4] x1`},
		{name: "sums that go on", ops: `
			rank 0 re i[0] x1, s[0] x1 -> i[0] x1 tb 0
			rank 0 re i[0] x1, s[1] x1 -> i[0] x1 tb 0
			rank 0 put memory on 0 i[0] x1 -> 1.i[0] x1 tb 0`,
			want: "tb 0\n res memory i[0] x1, s[0] x1, s[1] x1 -> i[0] x1, 1.i[0] x1"},
		{name: "a sum that begins elsewhere and goes on", ops: `
			rank 0 re i[0] x1, s[0] x1 -> s[4] x1 tb 0
			rank 0 re s[4] x1, i[1] x1 -> s[4] x1 tb 0`,
			want: "tb 0\n re i[0] x1, s[0] x1, i[1] x1 -> s[4] x1"},
		{name: "a sum that overwrites another", ops: `
			rank 0 re i[0] x1, s[0] x1 -> i[1] x1 tb 0
			rank 0 re i[0] x1, s[1] x1 -> i[1] x1 tb 0`,
			want: "tb 0\n re i[0] x1, s[0] x1 -> i[1] x1\n nop\n re i[0] x1, s[1] x1 -> i[1] x1"},
		{name: "sums of different operators", ops: `
			rank 0 re max i[0] x1, s[0] x1 -> i[0] x1 tb 0
			rank 0 re min i[0] x1, s[1] x1 -> i[0] x1 tb 0`,
			want: "tb 0\n re max i[0] x1, s[0] x1 -> i[0] x1\n nop\n re min i[0] x1, s[1] x1 -> i[0] x1"},
		{name: "read, add and send where it was read", ops: `
			rank 0 rre memory on 0 i[0] x1, 1.i[0] x1 -> i[0] x1 tb 0
			rank 0 put memory on 0 i[0] x1 -> 1.i[0] x1 tb 0`,
			want: "tb 0\n rres memory i[0] x1, 1.i[0] x1 -> i[0] x1, 1.i[0] x1"},
		{name: "a sum that is sent to a part of what it was read from", ops: `
			rank 0 rre memory on 0 i[0] x2, 1.i[0] x2 -> i[0] x2 tb 0
			rank 0 put memory on 0 i[0] x2 -> 1.i[1] x2 tb 0`,
			want: "tb 0\n rre memory i[0] x2, 1.i[0] x2 -> i[0] x2\n nop\n put memory i[0] x2 -> 1.i[1] x2"},
		{name: "a sum by a port", ops: `
			rank 0 re i[0] x1, s[0] x1 -> i[0] x1 tb 0
			rank 0 put port on 2 i[0] x1 -> 1.i[0] x1 tb 0`,
			want: "tb 0\n re i[0] x1, s[0] x1 -> i[0] x1\n nop\n put port on 2 i[0] x1 -> 1.i[0] x1"},
		{name: "sums of packets, kept and sent", ops: `
			rank 0 repkt i[0] x1, s[0] x1 packets -> i[0] x1 tb 0
			rank 0 cpkt i[0] x1 -> s[2] x1 packets tb 0
			rank 0 rppkt memory on 0 s[2] x1 packets -> 1.s[3] x1 packets tb 0
			rank 0 ppkt memory on 0 i[0] x1 -> 1.s[1] x1 packets tb 0`,
			want: "tb 0\n recspkt memory i[0] x1, s[0] x1 packets -> i[0] x1, s[2] x1 packets, 1.s[3] x1 packets, 1.s[1] x1 packets"},
		{name: "packets passed on", ops: `
			rank 0 rppkt memory on 0 s[0] x1 packets -> 1.s[1] x1 packets tb 0
			rank 0 rppkt memory on 0 s[0] x1 packets -> 1.s[2] x1 packets tb 0
			rank 0 rppkt memory on 0 s[1] x1 packets -> 1.s[3] x1 packets tb 0`,
			want: `tb 0
				rppkt memory s[0] x1 packets -> 1.s[1] x1 packets, 1.s[2] x1 packets
				rppkt memory s[1] x1 packets -> 1.s[3] x1 packets`},
		{name: "a sum of a group", ops: `
			rank 0 glre switch on 0 group 0.i[0] x1 -> i[0] x1 tb 0
			rank 0 gstore switch on 0 i[0] x1 -> group 0.i[0] x1 tb 0`,
			want: "tb 0\n glres switch group 0.i[0] x1 -> group 0.i[0] x1"},
		{name: "a sum of a group by way of scratch", ops: `
			rank 0 glre switch on 0 group 0.i[0] x1 -> s[0] x1 tb 0
			rank 0 gstore switch on 0 s[0] x1 -> group 0.i[1] x1 tb 0`,
			want: "tb 0\n glres switch group 0.i[0] x1 -> group 0.i[1] x1"},
		{name: "not across a meeting", ops: `
			rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 barrier tb 0
			rank 0 put memory on 0 i[1] x1 -> 1.s[1] x1 tb 0`,
			want: "tb 0\n put memory i[0] x1 -> 1.s[0] x1\n nop\n put memory i[1] x1 -> 1.s[1] x1"},
		{name: "not between parts of a group", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0 1
			rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 put memory on 0 i[1] x1 -> 1.s[1] x1 tb 0 1`,
			want: `tb 0
				copy i[0] x1 -> s[0] x1 part 0 of 2
				put memory i[0] x1 -> 1.s[0] x1
				put memory i[1] x1 -> 1.s[1] x1 part 0 of 2
				tb 1
				copy i[0] x1 -> s[0] x1 part 1 of 2
				put memory i[1] x1 -> 1.s[1] x1 part 1 of 2`},
		{name: "switched off", change: []func(*ir.OneTrace){withoutFusion}, ops: `
			rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1 tb 0
			rank 0 put memory on 0 i[1] x1 -> 1.s[1] x1 tb 0`,
			want: "tb 0\n put memory i[0] x1 -> 1.s[0] x1\n put memory i[1] x1 -> 1.s[1] x1"},
	})
}

// A sum of a group that isn't stored, is needed where the store doesn't put it, or
// would be stored over what other threads still load, is refused.
func TestOneFuseLosesNoSum(t *testing.T) {
	for _, ops := range []string{
		"rank 0 glre switch on 0 group 0.i[0] x1 -> i[0] x1 tb 0",
		"rank 0 glre switch on 0 group 0.i[0] x1 -> s[0] x1 tb 0\nrank 0 gstore switch on 0 s[0] x1 -> group 0.i[1] x1 tb 0\nrank 0 copy s[0] x1 -> i[3] x1 tb 0",
		"rank 0 glre switch on 0 group 0.i[0] x1 -> i[2] x1 tb 0\nrank 0 gstore switch on 0 i[2] x1 -> group 0.i[1] x1 tb 0",
		"rank 0 glre switch on 0 group 0.i[0] x2 -> s[0] x2 tb 0\nrank 0 gstore switch on 0 s[0] x2 -> group 0.i[1] x2 tb 0",
	} {
		_, err := compiler.CompileOneSided(t.Context(), pairTrace(t, ops), compiler.Options{})
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != "group-reduce" {
			t.Errorf("%s: got %v, want an error about the sum of a group", ops, err)
		}
	}
}

func TestOneDataSync(t *testing.T) {
	runPassCases(t, []passCase{
		{name: "one meeting between two", ops: `
			rank 0 wait memory on 0 tb 0 sync after
			rank 0 signal memory on 0 tb 0 sync before`,
			want: "tb 0\n wait memory on 0\n nop\n signal memory on 0"},
		{name: "a barrier is a meeting on both sides", ops: `
			rank 0 wait memory on 0 tb 0 sync both
			rank 0 barrier tb 0 1
			rank 0 signal memory on 0 tb 0 sync both
			rank 0 barrier tb 0 1
			rank 0 barrier tb 1 0`,
			want: `tb 0
				nop
				wait memory on 0
				barrier on 0 of 2
				signal memory on 0
				barrier on 0 of 2
				barrier on 0 of 2
				tb 1
				barrier on 0 of 2
				barrier on 0 of 2
				barrier on 0 of 2`},
		{name: "a barrier of all thread blocks", ops: `
			rank 0 barrier
			rank 0 wait memory on 0 tb 2 sync none
			rank 0 wait memory on 1 tb 0 sync none`,
			want: "tb 0\n barrier on 0 of 2\n wait memory on 1\n tb 1\n tb 2\n barrier on 0 of 2\n wait memory on 0"},
		{name: "a loop that begins and ends with a meeting", ops: `
			rank 0 wait memory on 0 tb 0 sync after
			rank 0 wait memory on 1 tb 0 sync both loop 0
			rank 0 signal memory on 0 tb 0 sync before`,
			want: `tb 0
				wait memory on 0
				pipeline unit 64 chunks 1
				nop
				wait memory on 1
				nop
				signal memory on 0`},
	})
}

func TestOneMeet(t *testing.T) {
	runPassCases(t, []passCase{
		{name: "what was written is read", ops: `
			rank 0 copy i[0] x2 -> s[0] x2 tb 0
			rank 0 copy i[2] x1 -> s[2] x1 tb 0
			rank 0 put memory on 0 s[1] x2 -> 1.s[0] x2 tb 0`,
			want: "tb 0\n copy i[0] x2 -> s[0] x2\n copy i[2] x1 -> s[2] x1\n nop\n put memory s[1] x2 -> 1.s[0] x2"},
		{name: "one meeting for two conflicts", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0
			rank 0 copy i[1] x1 -> s[1] x1 tb 0
			rank 0 copy s[1] x1 -> i[2] x1 tb 0
			rank 0 copy s[0] x1 -> i[3] x1 tb 0`,
			want: "tb 0\n copy i[0] x1 -> s[0] x1\n copy i[1] x1 -> s[1] x1\n nop\n copy s[1] x1 -> i[2] x1\n copy s[0] x1 -> i[3] x1"},
		{name: "input and output in one place", ops: `
			rank 0 copy s[0] x1 -> o[1] x1 tb 0
			rank 0 put memory on 0 i[1] x1 -> 1.s[0] x1 tb 0`,
			want: "tb 0\n copy s[0] x1 -> o[1] x1\n nop\n put memory i[1] x1 -> 1.s[0] x1"},
		{name: "packets wait for themselves", ops: `
			rank 0 cpkt i[0] x1 -> s[0] x1 packets tb 0
			rank 0 upkt s[0] x1 packets -> i[1] x1 tb 0`,
			want: "tb 0\n cpkt i[0] x1 -> s[0] x1 packets\n upkt s[0] x1 packets -> i[1] x1"},
		{name: "packets over plain data", ops: `
			rank 0 copy s[2] x1 -> i[0] x1 tb 0
			rank 0 cpkt i[1] x1 -> s[1] x1 packets tb 0`, // locations 2 and 3
			want: "tb 0\n copy s[2] x1 -> i[0] x1\n nop\n cpkt i[1] x1 -> s[1] x1 packets"},
		{name: "places of a group", ops: `
			rank 0 copy s[0] x1 -> i[0] x1 tb 0
			rank 0 glre switch on 0 group 0.i[0] x1 -> i[0] x1 tb 0
			rank 0 gstore switch on 0 i[0] x1 -> group 0.i[0] x1 tb 0`,
			want: "tb 0\n copy s[0] x1 -> i[0] x1\n nop\n glres switch group 0.i[0] x1 -> group 0.i[0] x1"},
		{name: "without auto_sync", change: []func(*ir.OneTrace){withoutAutoSync}, ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0
			rank 0 copy s[0] x1 -> i[1] x1 tb 0`,
			want: "tb 0\n copy i[0] x1 -> s[0] x1\n copy s[0] x1 -> i[1] x1"},
		{name: "turns on the same range", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0 loop 0
			rank 0 copy s[0] x1 -> i[1] x1 tb 0 loop 0`,
			want: "tb 0\n pipeline unit 64 chunks 1\n copy i[0] x1 -> s[0] x1\n nop\n copy s[0] x1 -> i[1] x1"},
		{name: "turns that meet", ops: `
			rank 0 copy i[0] x2 -> s[0] x2 tb 0 loop 0
			rank 0 copy s[1] x2 -> i[2] x2 tb 0 loop 0`,
			want: "tb 0\n pipeline unit 64 chunks 1\n copy i[0] x2 -> s[0] x2\n nop\n copy s[1] x2 -> i[2] x2\n nop"},
		{name: "before and after a loop", ops: `
			rank 0 copy i[0] x1 -> s[0] x1 tb 0
			rank 0 copy i[1] x1 -> s[1] x1 tb 0 loop 0
			rank 0 copy s[0] x1 -> i[2] x1 tb 0 loop 0
			rank 0 copy i[2] x1 -> i[3] x1 tb 0`,
			want: `tb 0
				copy i[0] x1 -> s[0] x1
				nop
				pipeline unit 64 chunks 1
				copy i[1] x1 -> s[1] x1
				copy s[0] x1 -> i[2] x1
				nop
				copy i[2] x1 -> i[3] x1`},
	})
}

func TestOneReplicate(t *testing.T) {
	ops := `
		rank 0 repkt i[1] x1, s[1] x1 packets -> i[1] x1 tb 0
		rank 0 cpkt i[1] x1 -> s[3] x1 packets tb 0
		rank 0 signal memory on 1 tb 0 sync none
		rank 0 barrier tb 0 1
		rank 0 sem_release on 1 tb 1 sync none
		rank 0 copy i[0] x2 -> s[6] x2 tb 1`
	for _, c := range []struct {
		name        string
		interleaved bool
		want        string
	}{
		{"interleaved", true, `tb 0
			recpkt i[2] x1, s[2] x1 packets -> i[2] x1, s[6] x1 packets
			signal memory on 2
			barrier on 0 of 2
			tb 1
			recpkt i[3] x1, s[3] x1 packets -> i[3] x1, s[7] x1 packets
			signal memory on 3
			barrier on 1 of 2
			tb 2
			barrier on 0 of 2
			sem_release on 2
			copy i[0] x2 -> s[12] x2
			tb 3
			barrier on 1 of 2
			sem_release on 3
			copy i[2] x2 -> s[14] x2`},
		{"none", false, `tb 0
			recpkt i[1] x1, s[1] x1 packets -> i[1] x1, s[3] x1 packets
			signal memory on 2
			barrier on 0 of 2
			tb 1
			recpkt i[5] x1, s[9] x1 packets -> i[5] x1, s[11] x1 packets
			signal memory on 3
			barrier on 1 of 2
			tb 2
			barrier on 0 of 2
			sem_release on 2
			copy i[0] x2 -> s[6] x2
			tb 3
			barrier on 1 of 2
			sem_release on 3
			copy i[4] x2 -> s[14] x2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := compileOne(t, pairTrace(t, ops, func(o *ir.OneTrace) { o.Instances, o.Interleaved = 2, c.interleaved }), compiler.Options{})
			wantBlocks(t, p, 0, c.want)
			gpu, sizes := &p.OneSided.GPUs[0], p.GPUs[0]
			if sizes.Input != 8 || sizes.Output != 8 || sizes.Scratch != 16 || len(gpu.Channels) != 8 || len(gpu.Semaphores) != 4 || len(p.OneSided.Groups) != 2 {
				t.Errorf("got sizes %v, %d channels, %d semaphores, %d groups", sizes, len(gpu.Channels), len(gpu.Semaphores), len(p.OneSided.Groups))
			}
			if pair := gpu.Channels[3].Pair; pair != 3 {
				t.Errorf("channel 3: got pair %d, want 3", pair)
			}
		})
	}
}

// Within the executor's limits: 8 channels, 10 operands an operation, and no meeting
// between parts of what would be one.
func TestOneLimits(t *testing.T) {
	s := newScript(ir.NewCollective(ir.AllReduce, 12, 12, true), ir.LL, 1)
	s.AutoSync = false
	s.scratch(24)
	for r := range int32(12) {
		for _, q := range others(12, r) {
			s.memory(r, q)
		}
	}
	own := at(0, ir.Input, 0, 1)
	terms := []ir.Operand{own}
	for i := range int32(11) {
		s.via(ir.OpRelaxedSignal, 0, i, 0, ir.SyncBoth)
		terms = append(terms, packed(0, i, 1))
	}
	s.local(ir.OpReducePackets, 0, 0, own, terms...)
	for i := range int32(11) {
		s.via(ir.OpPutPackets, 0, i, 0, ir.SyncNone, packed(i+1, 12, 1), own)
	}
	list := func(format string, from, to int) string {
		var words []string
		for i := from; i < to; i++ {
			words = append(words, fmt.Sprintf(format, i))
		}
		return strings.Join(words, ", ")
	}
	p := compileOne(t, s.trace(), compiler.Options{})
	wantBlocks(t, p, 0, `tb 0
		nop
		rlxsignal memory on 0 1 2 3 4 5 6 7
		rlxsignal memory on 8 9 10
		nop
		repkt i[0] x1, `+list("s[%d] x1 packets", 0, 9)+` -> i[0] x1
		nop
		respkt memory i[0] x1, s[9] x1 packets, s[10] x1 packets -> i[0] x1, `+list("%d.s[12] x1 packets", 1, 10)+`
		nop
		ppkt memory i[0] x1, i[0] x1 -> 10.s[12] x1 packets, 11.s[12] x1 packets`)
}

// Programs of the kinds that scripts are for, whole: right, without races, and every
// pass is seen in order.
func TestOneWhole(t *testing.T) {
	for _, n := range []int32{2, 3, 5} {
		for _, free := range []bool{false, true} {
			holds(t, compileOne(t, allreducePackets(n, free), compiler.Options{Target: ir.TargetNative}))
		}
		holds(t, compileOne(t, alltoallRing(n, 1), compiler.Options{Target: ir.TargetNative}))
		holds(t, compileOne(t, alltoallRing(n, 3), compiler.Options{}))
	}
	for _, trace := range []*ir.OneTrace{twoShot(3, 1), twoShot(3, 2), pipelined(), alltoallRing(3, 1)} {
		holds(t, compileOne(t, trace, compiler.Options{}))
		p := compileOne(t, anywhere(trace), compiler.Options{})
		holds(t, p)
		if err := checkAndRun(p, false); err != nil {
			t.Errorf("%v\n%s", err, programText(t, p))
		}
	}
	var seen []string
	compileOne(t, allreducePackets(2, true), compiler.Options{Observe: func(s compiler.Stage) {
		seen = append(seen, s.Pass)
		if s.Trace != nil && s.Trace.Validate() != nil || s.Program != nil && s.Program.Validate() != nil || (s.Trace == nil) == (s.Program == nil) {
			t.Errorf("pass %s shows nothing that is well formed", s.Pass)
		}
	}})
	if !slices.Equal(seen, []string{"assign", "order", "emit", "replicate"}) {
		t.Errorf("got passes %v", seen)
	}
}

func TestOneDisable(t *testing.T) {
	for _, c := range []struct{ pass, want string }{{"fuse", ""}, {"meet", ""}, {"order", ""},
		{"emit", "pass emit can't be left out; those that can are order, fuse, meet"},
		{"split", "no pass is called \"split\"; the passes of a one-sided program are depend, assign, order, gather, fuse, datasync, meet, emit, replicate"}} {
		_, err := compiler.CompileOneSided(t.Context(), allreducePackets(2, false), compiler.Options{Disable: []string{c.pass}})
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && got != c.want {
			t.Errorf("without %s: got %v, want %q", c.pass, err, c.want)
		}
	}
}

// More chunks than the compiler holds are refused before anything is made.
func TestOneTooLarge(t *testing.T) {
	s := newScript(ir.NewCollective(ir.AllReduce, 64, 1<<22, false), ir.Simple, 1)
	_, err := compiler.CompileOneSided(t.Context(), s.trace(), compiler.Options{})
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != "too-many-chunks" {
		t.Errorf("got %v, want that there are too many chunks", err)
	}
	s = newScript(ir.NewCollective(ir.AllReduce, 2, 1, false), ir.Simple, 1<<20)
	_, err = compiler.CompileOneSided(t.Context(), s.trace(), compiler.Options{})
	if !errors.As(err, &m) || m.Code != "too-many-instances" || m.Suggestion == "" {
		t.Errorf("got %v, want that there are too many instances", err)
	}
}
