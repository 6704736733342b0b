package checker

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// direct is program with protocol Direct.
func direct(t testing.TB, c *ir.Collective, text string) *ir.Program {
	t.Helper()
	p := program(t, c, text)
	p.Protocol, p.Transport = ir.Direct, ir.Transport{}
	return p
}

// Every rule of docs/direct.md as programs; the verdicts are made by hand.
func TestDirect(t *testing.T) {
	two := inPlace(ir.AllReduce, 2, 2)
	ring := inPlace(ir.AllGather, 3, 1)
	swap := demand(t, 2, 1, 1, true, "0 o0 = 1.0", "1 o0 = 0.0")
	chain := demand(t, 3, 1, 1, true, "1 o0 = 0.0+1.0", "2 o0 = 0.0+1.0+2.0")
	tests := []struct {
		name string
		coll *ir.Collective
		text string
		want string // codes
	}{
		// Rule 1: when steps arrive.
		{"a ring with one thread block a rank", ring, `
0 >1 <2: s o0; r o2; s o2; r o1
1 >2 <0: s o1; r o0; s o0; r o2
2 >0 <1: s o2; r o1; s o1; r o0`, CodeDeadlock},
		{"a ring with a block for either direction", ring, `
0 >1: s o0; s o2 @1.0
0 <2: r o2 !; r o1
1 >2: s o1; s o0 @1.0
1 <0: r o0 !; r o2
2 >0: s o2; s o1 @1.0
2 <1: r o1 !; r o0`, ""},
		{"an exchange", demand(t, 2, 1, 2, false, "0 o0 = 1.0", "1 o0 = 0.0"), `
0 >1 <1: s i0; r o0
1 >0 <0: s i0; r o0`, ""},
		{"no exchange: the receive comes first", demand(t, 2, 1, 2, false, "0 o0 = 1.0", "1 o0 = 0.0"), `
0 >1 <1: r o0; s i0
1 >0 <0: r o0; s i0`, CodeDeadlock},
		{"an exchange with who receives first", demand(t, 2, 1, 2, false, "0 o0 = 1.0", "1 o0 = 0.0"), `
0 >1 <1: s i0; r o0
1 >0 <0: r o0; s i0`, ""},
		{"no exchange: something between", demand(t, 2, 1, 2, false, "0 o0 = 1.0", "1 o0 = 0.0"), `
0 >1 <1: s i0; nop; r o0
1 >0 <0: s i0; nop; r o0`, CodeDeadlock},
		{"no exchange: the receive waits for something", demand(t, 2, 1, 2, false, "0 o0 = 1.0", "1 o0 = 0.0"), `
0 >1 <1: s i0; r o0 @1.0
0: nop !
1 >0 <0: s i0; r o0 @1.0
1: nop !`, CodeDeadlock},
		{"no exchange: the receive reduces", inPlace(ir.AllReduce, 2, 1), `
0 >1 <1: s i0; rrc i0
1 >0 <0: s i0; rrc i0`, CodeDeadlock},
		{"two exchanges in a row", demand(t, 2, 2, 2, false, "0 o1 = 1.1", "1 o0 = 0.0"), `
0 >1 <1: s i0; r o0; s i1; r o1
1 >0 <0: s i0; r o0; s i1; r o1`, ""},
		{"what follows an exchange waits for its send", demand(t, 2, 2, 1, true, "0 o0 = 0.1", "1 o0 = 0.0"), `
0 >1 <1: s i0; r s0; cpy i1 i0
1 >0: s i0 !
1 <0: r s0 !
1: cpy s0 i0 @0.0 @1.0`, ""},
		{"so does what depends on its receive", demand(t, 2, 2, 1, true, "0 o0 = 0.1", "1 o0 = 0.0"), `
0 >1 <1: s i0; r s0 !
0: cpy i1 i0 @0.1
1 >0: s i0 !
1 <0: r s0 !
1: cpy s0 i0 @0.0 @1.0`, ""},
		{"and what depends on its send waits for the receive", demand(t, 2, 2, 1, true, "0 o0 = 1.0"), `
0 >1 <1: s i1 !; r s0
0: cpy s0 i0 @0.0
1 >0: s i0
1 <0: r s0`, ""},

		// Rule 2: who moves the bytes.
		{"a sum in registers into a step that reduces", demand(t, 3, 1, 1, true, "2 o0 = 0.0+1.0+2.0"),
			"0 >1: s i0\n1 >2 <0: rrs i0\n2 <1: rrc i0", CodeNoMemory},
		{"a sum in registers that is stored", demand(t, 3, 1, 1, true, "1 o0 = 1.0", "2 o0 = 0.0+1.0"),
			"0 >1: s i0\n1 >2 <0: rrs i0\n2 <1: r i0", ""},
		{"a stored sum that is pulled", chain, "0 >1: s i0\n1 >2 <0: rrcs i0\n2 <1: rrc i0", ""},
		{"a chain of pushes", demand(t, 3, 1, 1, true, "1 o0 = 0.0", "2 o0 = 0.0"),
			"0 >1: s i0\n1 >2 <0: rcs i0\n2 <1: r i0", ""},
		{"a pushed message that is pulled on", demand(t, 3, 1, 1, true, "1 o0 = 0.0", "2 o0 = 0.0+2.0"),
			"0 >1: s i0\n1 >2 <0: rcs i0\n2 <1: rrc i0", ""},
		{"what passes on is stored first, and matters", demand(t, 3, 1, 1, false, "2 o0 = 0.0"),
			"0 >1: s i0\n1: cpy i0 s0\n1 >2 <0: rcs s0\n2 <1: r o0", CodeRace},

		// Rule 3: what a transfer waits for, and that it reads before it writes.
		{"two shots, in place", two, `
0 >1 <1 #1: rrcs i0
0 >1 <1: s i1; r i1
1 >0 <0: rrcs i1
1 >0 <0 #1: s i0; r i0`, ""},
		{"two shots, out of place", outOfPlace(ir.AllReduce, 2, 2), `
0 >1 <1 #1: rrcs i0 o0
0 >1 <1: s i1; r o1
1 >0 <0: rrcs i1 o1
1 >0 <0 #1: s i0; r o0`, ""},
		{"two shots without the exchange", two, `
0 >1 <1 #1: rrcs i0
0 >1 <1: s i1; nop; r i1
1 >0 <0: rrcs i1
1 >0 <0 #1: s i0; nop; r i0`, CodeDeadlock},
		{"two shots, the receive first", two, `
0 >1 <1 #1: rrcs i0
0 >1 <1: r i1; s i1
1 >0 <0: rrcs i1
1 >0 <0 #1: r i0; s i0`, CodeDeadlock},
		{"places pulled from and pushed to that overlap", demand(t, 2, 3, 3, true),
			"0 >1 <1: rrcs i0 x2\n1 >0 <0: s i0 x2; r i1 x2", CodeOverlap},
		{"the same place of a peer", demand(t, 2, 3, 3, true, "1 o0 = 0.0+1.0", "1 o1 = 0.1+1.1"),
			"0 >1 <1: rrcs i0 x2\n1 >0 <0: s i0 x2; r i0 x2", ""},
		{"places beside each other", demand(t, 2, 4, 4, true, "1 o2 = 0.0+1.0", "1 o3 = 0.1+1.1"),
			"0 >1 <1: rrcs i0 x2\n1 >0 <0: s i0 x2; r i2 x2", ""},

		// Rule 4: when steps end, and what is ordered by it.
		{"both sides of an exchange move at once", swap, "0 >1 <1: s i0; r i0\n1 >0 <0: s i0; r i0", CodeRace},
		{"an exchange by way of scratch", swap, "0 >1 <1: s i0; r s0; cpy s0 i0\n1 >0 <0: s i0; r s0; cpy s0 i0", ""},
		{"a source overwritten before it is pulled", demand(t, 2, 2, 2, true, "1 o0 = 0.0+1.0"),
			"0 >1: s i0\n0: cpy i1 i0\n1 <0: rrc i0", CodeRace},
		{"a source overwritten when it was pulled", demand(t, 2, 2, 2, true, "1 o0 = 0.0+1.0"),
			"0 >1: s i0 !\n0: cpy i1 i0 @0.0\n1 <0: rrc i0", ""},
		{"two that pull from each other what they overwrite", inPlace(ir.AllReduce, 2, 1),
			"0 >1: s i0\n0 <1: rrc i0\n1 >0: s i0\n1 <0: rrc i0", CodeRace},
		{"out of place they overwrite nothing", outOfPlace(ir.AllReduce, 2, 1),
			"0 >1: s i0\n0 <1: rrc i0 o0\n1 >0: s i0\n1 <0: rrc i0 o0", ""},
		{"a rank that has not arrived is left alone", demand(t, 2, 1, 1, true, "1 o0 = 0.0"),
			"0 >1: s i0\n1 <0: cpy i0 s0; r i0", ""},
		{"another thread block of it is in the way", demand(t, 2, 1, 1, true, "1 o0 = 0.0"),
			"0 >1: s i0\n1 <0: r i0\n1: cpy i0 i0", CodeRace},
		{"order through another rank", swap, `
0 >1: s i0
0 <1: r i0
1 >0: s s0 @1.1
1 <0: cpy i0 s0; r i0 !`, ""},
		{"no order through another rank", swap, `
0 >1: s i0
0 <1: r i0
1 >0: s s0 @1.0
1 <0: cpy i0 s0 !; r i0`, CodeRace},
		// Rank 2 pulls from rank 1 what rank 1 overwrites when its step has ended.
		{"a stored sum is left alone until it was pulled", demand(t, 3, 2, 2, true, "1 o0 = 1.1", "2 o0 = 0.0+1.0+2.0"),
			"0 >1: s i0\n1 >2 <0: rrcs i0; cpy i1 i0\n2 <1: rrc i0", ""},
		// Rank 0's send ends when rank 2 has pulled, which waits for rank 0.
		{"who is pulled from waits for the end of who pulls", demand(t, 3, 1, 1, true), `
0 >1: s i0 !
0 >2 #1: s i0 @0.0
1 >2 <0: rrcs i0
2 <0 #1: r s0 !
2 <1: rrc i0 @0.0`, CodeDeadlock},

		// Results, and races that reach no output.
		{"a wrong result", inPlace(ir.AllReduce, 2, 1), "0 >1: s i0\n1 <0: rrc i0", CodeWrongResult},
		{"an input written by a peer", outOfPlace(ir.AllReduce, 2, 1),
			"0 >1: s i0\n0 <1: rrc i0 o0 !\n1 >0: s i0 !\n1 <0: rrc i0 o0 !\n0 >1 #1: s i0 @1.0\n1 <0 #1: r i0 @0.0 @1.0", CodeInputClobbered},
		{"a race that reaches no output", outOfPlace(ir.AllReduce, 1, 1),
			"0: cpy i0 s0; cpy i0 o0\n0: cpy s0 s1", "warning:" + CodeRace},
		{"a dead race hides a live one", demand(t, 1, 2, 1, false, "0 o0 = 0.0"),
			"0: cpy i1 s0\n0: cpy i1 s0; nop !\n0: cpy i0 s0 @1.1; cpy s0 o0", "race warning:" + CodeRace},
		{"a copy onto itself may undo a push", demand(t, 2, 1, 1, true, "1 o0 = 0.0"),
			"0 >1: s i0\n1: cpy o0 o0\n1 <0: r o0", CodeRace},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rep := check(t, direct(t, test.coll, test.text))
			got := codes(rep)
			if rep.Has(CodeRace) && !strings.Contains(test.want, CodeWrongResult) { // what a race decides is wrong or not
				got = strings.TrimPrefix(got, CodeWrongResult+" ")
			}
			if got != test.want {
				t.Errorf("got %q, want %q\n%v", got, test.want, rep.Messages)
			}
			wantOK := test.want == "" || strings.HasPrefix(test.want, "warning:")
			wantSafe := int64(0)
			if slices.Contains([]string{CodeDeadlock, CodeNoMemory}, test.want) {
				wantSafe = -1
			}
			if rep.OK != wantOK || rep.MinSlots != 0 || len(rep.Regimes) != 0 || rep.SafeMaxBytes != wantSafe || !rep.Direct {
				t.Errorf("got %+v", rep)
			}
		})
	}
}

func TestDirectMessages(t *testing.T) {
	tests := []struct {
		name string
		coll *ir.Collective
		text string
		want string
	}{
		{"deadlock", inPlace(ir.AllGather, 3, 1), `
0 >1 <2: s o0; r o2; s o2; r o1
1 >2 <0: s o1; r o0; s o0; r o2
2 >0 <1: s o2; r o1; s o1; r o0`, `p:1:1: deadlock without slots (protocol Direct): a cycle of 3 steps, each waiting for the next
    p:1:1: rank 0 tb 0 step 0 (s) waits for rank 1 tb 0 step 1 (r) to arrive, after tb 0 step 0 (s)
    p:2:1: rank 1 tb 0 step 0 (s) waits for rank 2 tb 0 step 1 (r) to arrive, after tb 0 step 0 (s)
    p:3:1: rank 2 tb 0 step 0 (s) waits for rank 0 tb 0 step 1 (r) to arrive, after tb 0 step 0 (s)
    let sends and receives run in separate thread blocks, or put a receive that waits for nothing right behind a send to the same rank`},
		{"pull", inPlace(ir.AllReduce, 2, 1), "0 >1 <1: s i0; rrc i0\n1 >0 <0: s i0; rrc i0", `p:1:1: deadlock without slots (protocol Direct): a cycle of 2 steps, each waiting for the next
    p:1:1: rank 0 tb 0 step 0 (s) waits for rank 1 tb 0 step 1 (rrc) to end, after tb 0 step 0 (s)
    p:2:1: rank 1 tb 0 step 0 (s) waits for rank 0 tb 0 step 1 (rrc) to end, after tb 0 step 0 (s)
    let sends and receives run in separate thread blocks, or put a receive that waits for nothing right behind a send to the same rank`},
		{"race", demand(t, 2, 1, 1, true, "0 o0 = 1.0", "1 o0 = 0.0"), "0 >1 <1: s i0; r i0\n1 >0 <0: s i0; r i0",
			`p:2:1: rank 1 input[0]: rank 0 tb 0 step 0 (s) writes it and rank 1 tb 0 step 0 (s) reads it, in no order
    p:2:2: rank 0 tb 0 step 0 (s) writes the memory of rank 1 tb 0 step 1 (r)
    p:2:1: rank 1 tb 0 step 0 (s) reads
    for example, with nothing done yet, rank 1 tb 0 step 0 (s) moves its bytes before rank 0 tb 0 step 0 (s) has moved its own`},
		{"no memory", demand(t, 3, 1, 1, true), "0 >1: s i0\n1 >2 <0: rrs i0\n2 <1: rrc i0",
			`p:2:1: rank 1 tb 0 step 0 (rrs) keeps its sum in registers and rank 2 tb 0 step 0 (rrc) reduces, so that the message stands in no memory
    p:3:1: rank 2 tb 0 step 0 (rrc) would read it
    store the sum (rrcs), or receive it (r) before it is reduced`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rep := check(t, direct(t, test.coll, test.text))
			if n := len(rep.Messages); n == 0 || rep.Messages[n-1].Error() != test.want {
				t.Errorf("got %v\nwant %s", rep.Messages, test.want)
			}
		})
	}
}

// The frame: Direct has no slots, and nothing else has none.
func TestDirectTransport(t *testing.T) {
	coll := outOfPlace(ir.AllReduce, 1, 1)
	p := direct(t, coll, "0: cpy i0 o0")
	p.Transport = ir.Transport{Slots: 2, SlotBytes: 64}
	if got := codes(check(t, p)); got != CodeProgram {
		t.Errorf("with slots: got %q", got)
	}
	p = program(t, coll, "0: cpy i0 o0")
	p.Transport = ir.Transport{}
	if got := codes(check(t, p)); got != CodeProgram {
		t.Errorf("Simple without slots: got %q", got)
	}
	p = direct(t, coll, "0: cpy i0 o0")
	p.MinBytes, p.MaxBytes = 8, 4
	if got := codes(check(t, p)); got != CodeProgram {
		t.Errorf("empty window: got %q", got)
	}
	if got, want := check(t, direct(t, coll, "0: cpy i0 o0")).Summary(), "the check holds: results, no races, no deadlock with 0 slots (Direct)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a form means does not depend on its protocol: these operations would need a
// rendezvous that one thread block a rank can't have.
func TestDirectForms(t *testing.T) {
	coll := outOfPlace(ir.AllToAll, 2, 1)
	d := &ir.ChunkDAG{Spec: &ir.Spec{Name: "f", Coll: coll, Protocol: ir.Direct, Instances: 1,
		Buffers: []ir.Buffer{{Name: "input", Chunks: []int32{2, 2}}, {Name: "output", Chunks: []int32{2, 2}}}}}
	for src := range ir.Rank(2) {
		for dst := range ir.Rank(2) {
			d.Ops = append(d.Ops, ir.ChunkOp{Src: ir.Loc{Rank: src, Buf: ir.Input, Index: int32(dst)},
				Dst: ir.Loc{Rank: dst, Buf: ir.Output, Index: int32(src)}, Count: 1, Chan: ir.None, SendTB: ir.None, RecvTB: ir.None, Parallel: 1})
		}
	}
	rep, err := CheckChunks(context.Background(), d, Options{})
	if err != nil || !rep.OK || rep.Direct {
		t.Errorf("got %+v, %v", rep, err)
	}
	if d.Protocol != ir.Direct {
		t.Error("the form was changed")
	}
}
