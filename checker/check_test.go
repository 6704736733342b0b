package checker

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// ring2 is an allreduce of two ranks and two chunks, each reduced at one rank.
const ring2 = `
0 >1 <1: s i0; rrcs i1; r i0
1 >0 <0: s i1; rrcs i0; r i1`

func TestVerdicts(t *testing.T) {
	sendrecv := ir.NewCollective(ir.SendRecv, 2, 1, false)
	sendrecv.Root, sendrecv.Peer = 0, 1
	broadcast := outOfPlace(ir.Broadcast, 3, 1)
	broadcast.Root = 1
	gather := inPlace(ir.Gather, 2, 2)
	gather.Root = 1
	scatter := inPlace(ir.Scatter, 2, 1)
	scatter.Root = 0
	reduce := outOfPlace(ir.ReduceTo, 2, 1)
	reduce.Root = 1
	uneven := outOfPlace(ir.AllToAllV, 2, 1)
	uneven.Counts = []int32{1, 2, 0, 1}

	tests := []struct {
		name string
		coll *ir.Collective
		text string
		want string // codes
	}{
		{"ring allreduce", inPlace(ir.AllReduce, 2, 2), ring2, ""},
		{"one rank, in place, nothing to do", inPlace(ir.AllReduce, 1, 2), "0: ", ""},
		{"one rank out of place copies", outOfPlace(ir.AllReduce, 1, 2), "0: cpy i0 o0 x2", ""},
		{"allgather, out of place", outOfPlace(ir.AllGather, 2, 1),
			"0 >1 <1: s i0; r o1\n0: cpy i0 o0\n1 >0 <0: s i0; r o0\n1: cpy i0 o1", ""},
		{"allgather, in place, input named as output", inPlace(ir.AllGather, 2, 1),
			"0 >1 <1: s i0; r o1\n1 >0 <0: s o1; r o0", ""},
		{"reduce_scatter in place keeps the sum in the input", inPlace(ir.ReduceScatter, 2, 1),
			"0 >1 <1: s i1; rrc i0 o0\n1 >0 <0: s i0; rrc i1", ""},
		{"alltoall", outOfPlace(ir.AllToAll, 2, 1),
			"0 >1 <1: s i1; r o1\n0: cpy i0 o0\n1 >0 <0: s i0; r o0\n1: cpy i1 o1", ""},
		{"sendrecv", sendrecv, "0 >1: s i0\n1 <0: r o0", ""},
		{"broadcast", broadcast, "1 >0: cpy i0 o0; s i0\n0 >2 <1: rcs o0\n2 <0: r o0", ""},
		{"gather, in place at the root", gather, "0 >1: s i0 x2\n1 <0: r o0 x2", ""},
		{"scatter, in place at the root", scatter, "0 >1: s i1\n1 <0: r o0", ""},
		{"reduce to a root", reduce, "0 >1: s i0\n1 <0: rrc i0 o0", ""},
		{"alltonext asks nothing of rank 0", outOfPlace(ir.AllToNext, 2, 1), "0 >1: s i0\n1 <0: r o0", ""},
		{"alltoallv with a zero count", uneven, "0 >1: cpy i0 o0; s i1 x2\n1 <0: r o0 x2; cpy i0 o2", ""},
		{"refined collective", inPlace(ir.AllReduce, 2, 1).Refine(2), ring2, ""},

		{"a copy onto itself changes nothing for readers", inPlace(ir.AllGather, 2, 1),
			"0 >1 <1: s o0; r o1\n0: cpy i0 o0\n1 >0 <0: s o1; r o0", ""},
		{"a copy onto itself may undo a write", inPlace(ir.AllReduce, 2, 1),
			"0 >1 <1: s i0; rrc i0\n0: cpy i0 o0\n1 >0 <0: s i0; rrc i0", CodeRace},

		{"a copy onto itself may undo a write that is made later", demand(t, 2, 1, 1, true, "1 o0 = 0.0"),
			"0 >1: s i0\n1: cpy o0 o0\n1 <0: r o0", CodeRace},
		{"a copy onto itself may undo a write before it is read", demand(t, 2, 1, 2, true, "1 o1 = 0.0"),
			"0 >1: s i0\n1 <0: r s0; cpy s0 o1; cpy i0 s0\n1: cpy s0 s0", "race warning:race"},

		{"an output nobody writes", outOfPlace(ir.AllReduce, 1, 2), "0: cpy i0 o0", CodeWrongResult},
		{"junk scratch reaches an output", outOfPlace(ir.AllReduce, 1, 1), "0: cpy s0 o0", CodeWrongResult},
		{"a contribution twice", demand(t, 2, 1, 1, true, "0 o0 = 0.0+1.0"),
			"1 >0: s i0; s i0\n0 <1: rrc i0; rrc i0", CodeWrongResult},
		{"a contribution twice, as wanted", demand(t, 2, 1, 1, true, "0 o0 = 0.0+1.0+1.0"),
			"1 >0: s i0; s i0\n0 <1: rrc i0; rrc i0", ""},
		{"rrs leaves its local operand", demand(t, 3, 1, 1, true, "1 o0 = 1.0", "2 o0 = 0.0+1.0"),
			"0 >1: s i0\n1 >2 <0: rrs i0\n2 <1: r i0", ""},
		{"input overwritten out of place", outOfPlace(ir.AllReduce, 2, 1),
			"0 >1 <1: s i0; rrc i0; cpy i0 o0\n1 >0 <0: s i0; rrc i0 o0", CodeInputClobbered},
		{"input overwritten and restored", outOfPlace(ir.AllReduce, 1, 1),
			"0: cpy i0 s0; cpy s1 i0; cpy s0 i0; cpy i0 o0", ""},
		{"ranks add in different orders", inPlace(ir.AllReduce, 3, 1), `
0 >1 <1: cpy i0 s0 !; s s0; rrc i0 !
0 >2 <2: s s0 @0.0; rrc i0 @0.2
1 >0 <0: cpy i0 s0 !; s s0; rrc i0 !
1 >2 <2: s s0 @0.0; rrc i0 @0.2
2 >0 <0: cpy i0 s0 !; s s0; rrc i0 !
2 >1 <1: s s0 @0.0; rrc i0 @0.2`, "info:" + CodeOrderDiffers},

		{"two thread blocks race", outOfPlace(ir.AllReduce, 1, 1), "0: cpy i0 s0\n0: cpy s0 o0", CodeRace},
		{"the same with a dependency", outOfPlace(ir.AllReduce, 1, 1), "0: cpy i0 s0 !\n0: cpy s0 o0 @0.0", ""},
		{"aliases race in place", inPlace(ir.AllToAll, 2, 1),
			"0 >1: s i1\n0 <1: r o1\n1 >0: s o0\n1 <0: r i0", CodeRace},
		{"order through another rank", demand(t, 2, 1, 1, true, "0 o0 = 1.0", "1 o0 = 0.0"), `
0 >1: s i0
0 <1: r i0
1 >0: s s0 @1.1
1 <0: cpy i0 s0; r i0 !`, ""},
		// The chunk that is sent second comes back as the first of its message.
		{"messages alone order chunk by chunk", demand(t, 2, 3, 3, true, "0 o1 = 0.0", "0 o2 = 0.1"), `
0 >1: s i0 x2 !
0 <1: r i1 x2
0 >1 #1: s i0 @0.0
1 >0 <0: rcs s0 x2
1 <0 #1: r s2 !`, CodeRace},
		{"unless the message is held up until all is sent", demand(t, 2, 3, 3, true, "0 o1 = 0.0", "0 o2 = 0.1"), `
0 >1: s i0 x2 !
0 <1: r i1 x2
0 >1 #1: s i0 @0.0
1 >0 <0: rcs s0 x2 @1.0
1 <0 #1: r s2 !`, ""},
		{"a dead race is a warning", outOfPlace(ir.AllReduce, 1, 1),
			"0: cpy i0 s0; cpy i0 o0\n0: cpy s0 s1", "warning:" + CodeRace},
		{"two writers of a reduction's operand race", demand(t, 1, 2, 1, false, "0 o0 = 0.0+0.1"),
			"0: cpy i0 s0 !\n0: cpy i0 s0 !\n0: re i1 s0 @0.0 @1.0; cpy s0 o0", CodeRace},
		{"what a forwarding step stores needn't matter", demand(t, 3, 1, 1, false, "2 o0 = 0.0"),
			"0 >1: s i0\n1: cpy i0 s0\n1 >2 <0: rcs s0\n2 <1: r o0", "warning:" + CodeRace},
		{"a dead race hides a live one", demand(t, 1, 2, 1, false, "0 o0 = 0.0"),
			"0: cpy i1 s0\n0: cpy i1 s0; nop !\n0: cpy i0 s0 @1.1; cpy s0 o0", "race warning:" + CodeRace},
		{"a semaphore covers what came before it", outOfPlace(ir.AllReduce, 1, 1),
			"0: cpy i0 s0; nop !\n0: nop @0.1; cpy s0 o0", ""},
		{"semaphores are transitive", outOfPlace(ir.AllReduce, 1, 1),
			"0: cpy i0 s0 !\n0: nop ! @0.0\n0: cpy s0 o0 @1.0", ""},

		{"both ends receive first", inPlace(ir.AllReduce, 2, 1), "0 >1 <1: r i0; s i0\n1 >0 <0: r i0; s i0", CodeDeadlock},
		{"semaphores in a circle", outOfPlace(ir.AllReduce, 1, 1),
			"0: nop @1.1; cpy i0 o0 !\n0: nop @0.1; nop !", CodeDeadlock},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rep := check(t, program(t, test.coll, test.text))
			if got := codes(rep); got != test.want {
				t.Errorf("got %q, want %q\n%v", got, test.want, rep.Messages)
			}
			if wantOK := test.want == "" || strings.HasPrefix(test.want, "warning:") || strings.HasPrefix(test.want, "info:"); rep.OK != wantOK {
				t.Errorf("OK is %v, want %v", rep.OK, wantOK)
			}
		})
	}
}

// The final symptom of each miscompile of msccl-tools, as a program.
func TestMiscompiles(t *testing.T) {
	tests := []struct {
		name string
		coll *ir.Collective
		text string
		want string
	}{
		// 0 copies 2 chunks to 1.in[0:2], 1 copies its in[1:3] to 2.in[0:2]; fused
		// into rcs, 1 forwards in[0:2].
		{"B1: rcs sends other chunks than the copy named", demand(t, 3, 3, 3, true, "2 o0 = 0.1", "2 o1 = 1.2"),
			"0 >1: s i0 x2\n1 >2 <0: rcs i0 x2\n2 <1: r i0 x2", CodeWrongResult},
		{"B1 done right", demand(t, 3, 3, 3, true, "2 o0 = 0.1", "2 o1 = 1.2"),
			"0 >1: s i0 x2\n1 >2 <0: r i0 x2; s i1 x2\n2 <1: r i0 x2", ""},
		// Between receiving and forwarding, 1 reduces its in[2] into the second chunk.
		{"B2: rcs forwards before the update", demand(t, 3, 3, 3, true, "2 o0 = 0.0", "2 o1 = 0.1+1.2"),
			"0 >1: s i0 x2\n1 >2 <0: rcs i0 x2; re i2 i1\n2 <1: r i0 x2", CodeWrongResult},
		// 1 reduces two chunks and forwards both; only chunk 0 is overwritten later.
		{"B3: rrs drops a slot that is still read", demand(t, 3, 2, 2, true, "1 o0 = 2.0", "1 o1 = 0.1+1.1"),
			"0 >1: s i0 x2\n1 >2 <0: rrs i0 x2\n2 >1 <1: r i0 x2; s s0\n2: nop\n1 <2: r i0", CodeWrongResult},
		{"B4: fused scratch lands in the remote rank's layout", demand(t, 3, 1, 1, true, "1 o0 = 1.0", "2 o0 = 0.0"),
			"0 >1: s i0\n1 >2 <0: rcs s0\n1: cpy i0 s0 !; cpy s0 i0\n2 <1: r s0; cpy s0 i0", CodeRace},
		{"B5: the sender's offset as the local operand", demand(t, 2, 2, 2, true, "1 o1 = 0.0+1.1"),
			"0 >1: s i0\n1 <0: rrc i0 i1", CodeWrongResult},
		{"B6: a program without steps", demand(t, 2, 2, 2, true, "0 o0 = 0.0+0.1"), "0: \n1: ", CodeWrongResult},
		{"B7: a second owner of a receive connection", demand(t, 3, 2, 2, true, "1 o0 = 0.0", "2 o0 = 0.1"),
			"0 >1: s i0; s i1\n1 <0: r i0\n1 >2 <0: rcs i1\n2 <1: r i0", CodeConnectionOwner},
		// The receive of a ping-pong moved to another channel than its send.
		{"B8: a fused pair torn apart", demand(t, 2, 1, 1, true, "1 o0 = 0.0"),
			"0 >1 <1: s i0; r i0\n1 >0 <0 #1: rcs i0", CodeCountMismatch},
		{"B8: sends and receives cross-matched", demand(t, 2, 2, 2, true, "1 o0 = 0.0", "1 o1 = 0.1"),
			"0 >1 <1: s i0; r s0; s i1; r s1\n1 >0 <0: r i1; r i0; s i0; s i1", CodeDeadlock},
		{"B9: a channel reset to 0", demand(t, 2, 2, 2, true, "1 o0 = 0.0", "1 o1 = 0.1"),
			"0 >1: s i0; s i1\n1 <0: r i0\n1 <0 #1: r i1", CodeCountMismatch},
		{"B10: two thread blocks send on one connection", demand(t, 2, 2, 2, true, "1 o0 = 0.0", "1 o1 = 0.1"),
			"0 >1: s i0\n0 >1: s i1\n1 <0: r i0; r i1", CodeConnectionOwner},
		{"B10: their counts can't be told apart either", demand(t, 2, 2, 2, true),
			"0 >1: s i0 x2; s i1\n1 <0: r i0\n1 <0: r i0 x2", CodeConnectionOwner},
		// An allgather's count-2 step interleaved for two instances: the instances
		// touch each other's chunks without waiting.
		{"B11: interleaved instances with mixed counts", outOfPlace(ir.AllGather, 2, 2), `
0 >1: s i0 x2
0: cpy i0 o0 x2
1 <0: r o0 x2
1 >0: s i0
1 >0 #1: s i1
1: cpy i0 o2 x2
0 <1: r o2
0 <1 #1: r o2 x1`, CodeWrongResult + " " + CodeRace},
		{"B12: batched instances place chunks wrongly", outOfPlace(ir.AllGather, 2, 2),
			"0 >1 <1: cpy i0 o0; cpy i1 o2; s i0 x2; r o1; r o3\n1 >0 <0: cpy i0 o1; cpy i1 o3; s i0; s i1; r o0 x2", CodeWrongResult},
		{"B13: a dependency hoisted above what it waits on", demand(t, 1, 2, 2, true, "0 o0 = 0.0+0.1"),
			"0: nop @1.0; re i1 i0 !; re s0 s1\n0: cpy i0 s1 @0.1 !", CodeDeadlock},
		{"B14: ten sends before ten receives", demand(t, 2, 10, 10, true, "0 o0 = 1.0"), `
0 >1 <1: s i0; s i1; s i2; s i3; r i0; r i1; r i2; r i3
1 >0 <0: s i0; s i1; s i2; s i3; r i0; r i1; r i2; r i3`, CodeDeadlock},
		{"B14: a counted exchange in one thread block", demand(t, 2, 4, 4, false), `
0 >1 <1: s i0 x4; r o0 x4
1 >0 <0: s i0 x4; r o0 x4`, CodeDeadlock},
		{"B15: an overlapping local copy", inPlace(ir.AllReduce, 1, 3), "0: cpy i0 i1 x2", CodeOverlap},
		{"B15: a shifted reduce of an array with itself", inPlace(ir.AllReduce, 1, 3), "0: re i1 i0 x2", CodeOverlap},
		{"B17: a negative offset", demand(t, 2, 1, 1, false), "0 >1: s i0\n1 <0: r o-1", CodeBounds},
		{"B17: an offset past the end by its count", demand(t, 2, 2, 2, false), "0 >1: s i1 x2\n1 <0: r o0 x2", CodeBounds},
		{"B20: an input destroyed out of place", outOfPlace(ir.AllReduce, 2, 1),
			"0 >1 <1: s i0; rrc i0; cpy i0 o0\n1 >0 <0: s i0; rrc i0; cpy i0 o0", CodeInputClobbered},
		{"B24: in place with separate lists in mind", ir.NewCollective(ir.AllToNext, 3, 1, true),
			"0 >1: s i0\n1 >2: s i0\n1 <0: r o0\n2 <1: r o0", CodeRace},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rep := check(t, program(t, test.coll, test.text))
			if got := codes(rep); got != test.want {
				t.Errorf("got %q, want %q\n%v", got, test.want, rep.Messages)
			}
		})
	}
	t.Run("B18: sizes by use", func(t *testing.T) {
		p := program(t, inPlace(ir.AllToAll, 2, 1), "0 >1 <1: s i1; r i1\n1 >0 <0: s i0; r i0")
		p.GPUs[0].Input = 1
		if got := codes(check(t, p)); got != CodeProgram {
			t.Errorf("got %q, want %q", got, CodeProgram)
		}
	})
}

func TestStructure(t *testing.T) {
	tests := []struct {
		name   string
		change func(p *ir.Program)
		code   string
		text   string // of the first message
	}{
		{"no GPUs", func(p *ir.Program) { p.GPUs = nil }, CodeProgram, "the program has 0 ranks, its collective 2"},
		{"no spec", func(p *ir.Program) { p.Spec = nil }, CodeProgram, "the program doesn't say which collective it computes"},
		{"no slots", func(p *ir.Program) { p.Transport.Slots = 0 }, CodeProgram,
			"the transport has 0 slots of 64 bytes, want 1 or more of both"},
		{"window", func(p *ir.Program) { p.MinBytes, p.MaxBytes = 5, 4 }, CodeProgram, "the size window from 5 to 4 bytes is empty"},
		{"ranks", func(p *ir.Program) { p.Coll.Ranks = -1 }, CodeProgram, "the program has 2 ranks, its collective -1"},
		{"split", func(p *ir.Program) { p.Coll.Split = 0 }, CodeProgram, "the collective's chunks are split in 0, want 1 or more"},
		{"kind", func(p *ir.Program) { p.Coll.Kind = 99 }, CodeProgram, "unknown collective CollectiveKind(99)"},
		{"huge", func(p *ir.Program) { p.Coll.ChunkFactor = math.MaxInt32 }, CodeTooLarge,
			"the collective has 4294967294 chunks, the checker holds up to 67108864"},
		{"counts", func(p *ir.Program) { p.Coll.Kind = ir.AllToAllV }, CodeProgram, "alltoallv: got 0 counts, want 4"},
		{"custom", func(p *ir.Program) { p.Coll.Kind = ir.Custom }, CodeProgram, "custom: a custom collective without a description"},
		{"custom ranks", custom(func(u *ir.CustomSpec) { u.Input = u.Input[:1] }), CodeProgram,
			"custom: the description isn't for 2 ranks"},
		{"custom sizes", custom(func(u *ir.CustomSpec) { u.Output[1] = -1 }), CodeProgram,
			"custom: rank 1 has 2 input and -1 output chunks, want 0 or more"},
		{"custom lengths", custom(func(u *ir.CustomSpec) { u.Expect[1] = nil }), CodeProgram,
			"custom: the description of rank 1 doesn't fit its 2 input and 2 output chunks"},
		{"custom wants too much", custom(func(u *ir.CustomSpec) { u.Expect[1][0] = []ir.Contribution{{Rank: 0, Index: 2}} }), CodeProgram,
			"custom: rank 1 output[0] wants input[2] of rank 0, which doesn't exist"},
		{"custom wants nothing that is there", custom(func(u *ir.CustomSpec) {
			u.Holds = [][]bool{{true, false}, {true, true}}
			u.Expect[1][0] = []ir.Contribution{{Rank: 0, Index: 1}}
		}), CodeProgram, "custom: rank 1 output[0] wants input[1] of rank 0, which holds no data"},
		{"root", func(p *ir.Program) { p.Coll.Kind, p.Coll.Root = ir.Gather, 2 }, CodeProgram,
			"gather: the root is rank 2, want 0 to 1"},
		{"peer", func(p *ir.Program) { p.Coll.Kind, p.Coll.Root, p.Coll.Peer = ir.SendRecv, 0, -1 }, CodeProgram,
			"sendrecv: got ranks 0 and -1, want 0 to 1"},
		{"negative count", func(p *ir.Program) { p.Coll.Kind, p.Coll.Counts = ir.AllToAllV, []int32{0, 1, -1, 0} }, CodeProgram,
			"alltoallv: got a count of -1, want 0 or more"},
		{"topology", func(p *ir.Program) { p.Topo = ir.NewTopology("other", 3) }, CodeProgram, "the topology isn't for 2 ranks"},
		{"too many dependencies", func(p *ir.Program) {
			p.Deps = make([]ir.Dep, 1<<20)
			p.GPUs[0].TBs[0].Steps[0].Post = true
			for range 300 {
				st := newStep(ir.Nop, &p.GPUs[0].TBs[0])
				st.DepEnd = 1 << 20
				p.GPUs[0].TBs[0].Steps = append(p.GPUs[0].TBs[0].Steps, st)
			}
		}, CodeTooLarge, "the program has 314572800 dependencies, the checker holds up to 268435456"},
		{"scratch", func(p *ir.Program) { p.GPUs[1].Scratch = -3 }, CodeProgram, "rank 1 has -3 scratch chunks, want 0 or more"},
		{"declared peer", func(p *ir.Program) { p.GPUs[0].TBs[0].Send = 2 }, CodeProgram,
			"rank 0 tb 0: the peer is rank 2, want another rank up to 1"},
		{"step kind", func(p *ir.Program) { step0(p).Kind = 77 }, CodeStep, "rank 0 tb 0 step 0 (StepKind(77)): unknown kind of step"},
		{"count 0", func(p *ir.Program) { step0(p).Count = 0 }, CodeStep, "rank 0 tb 0 step 0 (s): the count is 0, want 1 or more"},
		{"count of nop", func(p *ir.Program) { step0(p).Kind = ir.Nop }, CodeStep, "rank 0 tb 0 step 0 (nop): a nop has count 1, want 0"},
		{"self", func(p *ir.Program) { step0(p).SendPeer = 0 }, CodeStep,
			"rank 0 tb 0 step 0 (s): the send peer is rank 0, want another rank up to 1"},
		{"peer of a copy", func(p *ir.Program) { step0(p).Kind = ir.Copy; step0(p).Dst = step0(p).Src }, CodeStep,
			"rank 0 tb 0 step 0 (cpy): the send peer is rank 1, but a cpy doesn't send"},
		{"channel", func(p *ir.Program) { step0(p).Chan = -1 }, CodeStep, "rank 0 tb 0 step 0 (s): the channel is -1, want 0 or more"},
		{"buffer", func(p *ir.Program) { step0(p).Src.Buf = 3 }, CodeBounds,
			"rank 0 tb 0 step 0 (s): the source is in buffer 3, want input, output or scratch"},
		{"bounds", func(p *ir.Program) { step0(p).Count = math.MaxInt32; step0(p).Src.Index = 1 }, CodeBounds,
			"rank 0 tb 0 step 0 (s): the source input[1:2147483648] lies outside the input of 2"},
		{"dep range", func(p *ir.Program) { step0(p).DepEnd = 1 }, CodeDependency,
			"rank 0 tb 0 step 0 (s): the dependencies are numbers 0 to 1 of 0"},
		{"dep tb", func(p *ir.Program) { depend(p, 1, 0) }, CodeDependency,
			"rank 0 tb 0 step 0 (s): waits for tb 1, but the rank has 1 thread block"},
		{"dep step", func(p *ir.Program) { depend(p, 0, -1) }, CodeDependency,
			"rank 0 tb 0 step 0 (s): waits for tb 0 step -1, but that thread block has 3 steps"},
		{"dep on itself", func(p *ir.Program) { depend(p, 0, 0) }, CodeDependency,
			"rank 0 tb 0 step 0 (s): waits for step 0 of its own thread block, which comes no earlier"},
		{"dep without post", func(p *ir.Program) {
			p.GPUs[0].TBs = append(p.GPUs[0].TBs, ir.ThreadBlock{Send: ir.None, Recv: ir.None,
				Steps: []ir.Step{newStep(ir.Nop, &ir.ThreadBlock{})}})
			depend(p, 1, 0)
		}, CodeDependency, "rank 0 tb 0 step 0 (s): waits for tb 1 step 0, which doesn't post"},
		{"no link", func(p *ir.Program) {
			p.Topo = ir.NewTopology("one way", 2)
			p.Topo.Link(1, 0, 1)
		}, CodeNoLink, "rank 0 tb 0 step 0 (s): the topology has no link from rank 0 to rank 1"},
		{"counts differ", func(p *ir.Program) {
			step0(p).Count = 2
		}, CodeCountMismatch, "connection 0 -> 1 on channel 0: step 0 of it sends 2 chunks, but is received as 1"},
		{"a receive too many", func(p *ir.Program) {
			p.GPUs[0].TBs[0].Steps = p.GPUs[0].TBs[0].Steps[1:]
		}, CodeCountMismatch, "connection 0 -> 1 on channel 0: 1 send, 2 receives"},
		{"a send too many", func(p *ir.Program) {
			p.GPUs[0].TBs[0].Steps = p.GPUs[0].TBs[0].Steps[:2]
		}, CodeCountMismatch, "connection 1 -> 0 on channel 0: 2 sends, 1 receive"},
		{"an idle owner", func(p *ir.Program) {
			p.GPUs[0].TBs = append(p.GPUs[0].TBs, ir.ThreadBlock{Send: 1, Recv: ir.None})
		}, CodeConnectionOwner, "rank 0: tb 1 sends on the connection 0 -> 1 on channel 0, which belongs to tb 0 already"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := program(t, inPlace(ir.AllReduce, 2, 2), ring2)
			test.change(p)
			rep := check(t, p)
			if rep.OK || len(rep.Messages) == 0 {
				t.Fatal("accepted")
			}
			if m := rep.Messages[0]; m.Code != test.code || m.Text != test.text {
				t.Errorf("got %s: %s\nwant %s: %s", m.Code, m.Text, test.code, test.text)
			}
		})
	}
	if rep := check(t, nil); rep.OK {
		t.Error("no program at all: accepted")
	}
}

// custom makes the program's collective a user's own and then changes that.
func custom(change func(*ir.CustomSpec)) func(*ir.Program) {
	return func(p *ir.Program) {
		p.Coll.Kind = ir.Custom
		p.Coll.Custom = &ir.CustomSpec{Input: []int32{2, 2}, Output: []int32{2, 2},
			Expect: [][][]ir.Contribution{make([][]ir.Contribution, 2), make([][]ir.Contribution, 2)}}
		change(p.Coll.Custom)
	}
}

func step0(p *ir.Program) *ir.Step { return &p.GPUs[0].TBs[0].Steps[0] }

func depend(p *ir.Program, tb, s int32) {
	p.Deps = []ir.Dep{{TB: tb, Step: s}}
	step0(p).DepStart, step0(p).DepEnd = 0, 1
}

func TestMessages(t *testing.T) {
	tests := []struct {
		name string
		coll *ir.Collective
		text string
		want string
	}{
		{"a rank is missing", inPlace(ir.AllReduce, 4, 1), `
0 >1: s i0
1 >2 <0: rrs i0
2 <1: rrc i0`, `
rank 0 output[0] holds input[0] of rank 0, want the sum of input[0] from ranks 0-3
    no step writes it
rank 1 output[0] holds input[0] of rank 1, want the sum of input[0] from ranks 0-3
    no step writes it
p:3:1: rank 2 output[0] holds the sum of input[0] from ranks 0-2, want the sum of input[0] from ranks 0-3
    p:3:1: last written by rank 2 tb 0 step 0 (rrc)
rank 3 output[0] holds input[0] of rank 3, want the sum of input[0] from ranks 0-3
    no step writes it`},
		{"junk and repeats", demand(t, 2, 2, 1, false, "0 o0 = 0.1+1.0+1.0"), `
0 <1: cpy i0 s0; re s1 s0; re i0 s0; cpy i1 o0; rrc s0 o0
1 >0: s i0`, `
p:1:5: rank 0 output[0] holds the sum of input[0] of rank 1, 2 x input[0] of rank 0 and uninitialized scratch[1] of rank 0, want the sum of input[1] of rank 0 and 2 x input[0] of rank 1
    p:1:5: last written by rank 0 tb 0 step 4 (rrc)`},
		{"a rank without the input", &ir.Collective{Kind: ir.Broadcast, Ranks: 2, ChunkFactor: 1, Split: 1, InPlace: true},
			"0: ", `
rank 1 output[0] holds uninitialized input[0] of rank 1, want input[0] of rank 0
    no step writes it`},
		{"clobbered", outOfPlace(ir.AllReduce, 1, 2), "0: cpy i0 o0 x2; cpy i1 i0", `
p:1:2: rank 0 input[0] holds input[1] of rank 0, but out of place an input must be left alone
    p:1:2: last written by rank 0 tb 0 step 1 (cpy)`},
		{"race", demand(t, 1, 2, 2, true, "0 o1 = 0.1"), "0: cpy i0 s0 x2\n0: cpy s0 i0 x2", `
p:2:1: rank 0 scratch[0:2]: tb 0 step 0 (cpy) writes it and tb 1 step 0 (cpy) reads it, in no order
    p:1:1: rank 0 tb 0 step 0 (cpy) writes
    p:2:1: rank 0 tb 1 step 0 (cpy) reads
    for example, with nothing done yet, rank 0 tb 1 step 0 (cpy) runs before rank 0 tb 0 step 0 (cpy) begins
    let rank 0 tb 1 step 0 (cpy) wait for tb 0 step 0 (cpy)`},
		{"dead race", demand(t, 1, 2, 2, true), "0: cpy i0 s0 x2\n0: cpy i1 s0", `
p:2:1: warning: rank 0 scratch[0]: tb 0 step 0 (cpy) writes it and tb 1 step 0 (cpy) writes it, in no order, but what it decides reaches no output
    p:1:1: rank 0 tb 0 step 0 (cpy) writes
    p:2:1: rank 0 tb 1 step 0 (cpy) writes
    for example, with nothing done yet, rank 0 tb 1 step 0 (cpy) runs before rank 0 tb 0 step 0 (cpy) begins
    let rank 0 tb 1 step 0 (cpy) wait for tb 0 step 0 (cpy)`},
		{"deadlock by slots", demand(t, 2, 3, 3, false), `
0 >1 <1: s i0 x3; r o0 x3
1 >0 <0: s i0 x3; r o0 x3`, `
p:1:1: deadlock with 2 slots a connection and 1 chunk in a message: a cycle of 2 thread blocks, each waiting for the next
    p:1:1: rank 0 tb 0 step 0 (s) waits for a free slot on the connection 0 -> 1 on channel 0 for its message 3 of 3, while the receiver is at rank 1 tb 0 step 0 (s)
    p:2:1: rank 1 tb 0 step 0 (s) waits for a free slot on the connection 1 -> 0 on channel 0 for its message 3 of 3, while the receiver is at rank 0 tb 0 step 0 (s)
    it needs 3 slots a connection, or sizes up to 96 bytes`},
		{"deadlock by order", demand(t, 2, 1, 1, false), `
0 <1: r o0 !
0 >1: s i0 @0.0
1 <0: r o0; nop !
1 >0: nop @0.1; s i0`, `
p:1:1: deadlock whatever the number of slots: a cycle of 4 thread blocks, each waiting for the next
    p:1:1: rank 0 tb 0 step 0 (r) waits for a message on the connection 1 -> 0 on channel 0, while the sender is at rank 1 tb 1 step 0 (nop)
    p:4:1: rank 1 tb 1 step 0 (nop) waits for tb 0 step 1 (nop), while that thread block is at rank 1 tb 0 step 0 (r)
    p:3:1: rank 1 tb 0 step 0 (r) waits for a message on the connection 0 -> 1 on channel 0, while the sender is at rank 0 tb 1 step 0 (s)
    p:2:1: rank 0 tb 1 step 0 (s) waits for tb 0 step 0 (r)`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := check(t, program(t, test.coll, test.text)).Messages.Error()
			if want := strings.TrimSpace(test.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestMessagesAreLimited(t *testing.T) {
	p := program(t, inPlace(ir.AllReduce, 2, 40), "0: ")
	rep, err := Check(context.Background(), p, Options{MaxMessages: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Messages) != 3 {
		t.Fatalf("got %d messages, want 3", len(rep.Messages))
	}
	notes := rep.Messages[2].Notes
	if got := notes[len(notes)-1].Text; got != "and 77 more like this" {
		t.Errorf("got %q", got)
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	rep, err := Check(ctx, program(t, inPlace(ir.AllReduce, 2, 2), ring2), Options{})
	if rep != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", rep, err)
	}
}

// TestTooManyHarmlessRaces: what is not looked at is neither called an error of the
// program nor passed over.
func TestTooManyHarmlessRaces(t *testing.T) {
	p := program(t, outOfPlace(ir.AllReduce, 1, 1), "0: cpy i0 o0"+strings.Repeat("\n0: cpy i0 s0", 2900))
	for _, protocol := range []ir.Protocol{ir.Simple, ir.Direct} {
		if p.Protocol = protocol; protocol == ir.Direct {
			p.Transport = ir.Transport{}
		}
		if got, want := codes(check(t, p)), CodeTooLarge+" warning:"+CodeRace; got != want {
			t.Errorf("%v: got %q, want %q", protocol, got, want)
		}
	}
}

func TestReport(t *testing.T) {
	good := check(t, program(t, inPlace(ir.AllReduce, 2, 2), ring2))
	if good.Err() != nil || good.Has(CodeRace) ||
		good.Summary() != "the check holds: results, 1 size regime, no races, no deadlock with 2 slots or more" {
		t.Errorf("good: %v, %q", good.Err(), good.Summary())
	}
	harmless := check(t, program(t, outOfPlace(ir.AllReduce, 1, 1), "0: cpy i0 o0\n0: cpy i0 s0\n0: cpy i0 s0"))
	if !harmless.OK || harmless.Summary() != "the check holds: results, 1 size regime, no races that reach an output, no deadlock with 1 slot or more" {
		t.Errorf("harmless: %v, %q", harmless.Err(), harmless.Summary())
	}
	bad := check(t, program(t, inPlace(ir.AllReduce, 2, 1), "0: "))
	var list diag.List
	if !errors.As(bad.Err(), &list) || !bad.Has(CodeWrongResult) || bad.Summary() != "the check failed: 2 errors" {
		t.Errorf("bad: %v, %q", bad.Err(), bad.Summary())
	}
}
