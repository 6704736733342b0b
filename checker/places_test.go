package checker

import (
	"context"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// TestFlags: what messages order with LL and LL128, where each thread sends and takes
// its own packets, and with Simple, where a message is posted as a whole. Worked out by
// hand. %k stands for the step by which rank 1 passes back what it has got.
func TestFlags(t *testing.T) {
	const passed, kept = "1 >0 <0: rcs s0 x%k", "1 >0 <0: r s0 x%k; s s0 x%k"
	own := demand(t, 2, 1, 1, true, "0 o0 = 0.0")
	tests := []struct {
		name          string
		coll          *ir.Collective
		chunks        string
		text, back    string
		simple, flags string // codes
		note          string
	}{
		{"what was read and sent comes back over it", own, "1", `
0 >1: s i0
0 <1: r i0`, passed, "", "", ""},
		{"as an earlier chunk of the message", demand(t, 2, 3, 3, true, "0 o1 = 0.0", "0 o2 = 0.1"), "2", `
0 >1: s i0 x2
0 <1: r i1 x2`, passed, CodeRace, CodeRace,
			"rank 0 tb 0 step 0 (s) may send its chunk 1 after rank 0 tb 1 step 0 (r) has taken its chunk 0, as other threads move them"},
		{"as a later chunk of the message", demand(t, 2, 3, 3, true, "0 o0 = 0.1", "0 o1 = 0.2"), "2", `
0 >1: s i1 x2
0 <1: r i0 x2`, passed, "", CodeRace,
			"rank 0 tb 0 step 0 (s) may send its chunk 0 after rank 0 tb 1 step 0 (r) has taken its chunk 1, as other threads move them"},
		{"as an earlier chunk, held up until all was sent", demand(t, 2, 3, 3, true, "0 o1 = 0.0", "0 o2 = 0.1"), "2", `
0 >1: s i0 x2 !
0 <1: r i1 x2
0 >1 #1: s i0 @0.0
1 <0 #1: r s2 !`, "1 >0 <0: rcs s0 x%k @0.0", "", "", ""},
		{"as another chunk, but all had to be there first", demand(t, 2, 3, 3, true, "0 o1 = 0.0", "0 o2 = 0.1"), "2", `
0 >1: s i0 x2
0 <1: r i1 x2`, kept, "", "", ""},
		{"what was written and sent is read when it has come back", demand(t, 3, 1, 1, false, "0 o0 = 2.0"), "1", `
2 >0: s i0
0 >1 <2: rcs s0
0 <1: r s1; cpy s0 o0`, passed, "", CodeRace,
			"rank 0 tb 0 step 0 (rcs) may write its chunk only after it has passed it on"},
		{"the same, all of which had to be there first", demand(t, 3, 1, 1, false, "0 o0 = 2.0"), "1", `
2 >0: s i0
0 >1 <2: rcs s0
0 <1: r s1; cpy s0 o0`, kept, "", CodeRace,
			"rank 0 tb 0 step 0 (rcs) may write its chunk only after it has passed it on"},
		{"the same, with a step between", demand(t, 3, 1, 1, false, "0 o0 = 2.0"), "1", `
2 >0: s i0
0 >1 <2: r s0; s s0
0 <1: r s1; cpy s0 o0`, passed, "", "", ""},
		{"an operand that was written before it was sent", demand(t, 2, 1, 1, false, "0 o0 = 0.0+0.0"), "1", `
0 >1: cpy i0 s0; s s0
0 <1: rrc s0 o0`, passed, "", CodeRace,
			"rank 0 tb 1 step 0 (rrc) may read its operand before its message has come"},
		{"an operand that is read after another message", demand(t, 2, 1, 1, false, "0 o0 = 0.0+0.0"), "1", `
0 >1: cpy i0 s0; s s0; s s0
0 <1: r s1; rrc s0 o0`, "1 >0 <0: rcs s0; rcs s0", "", "", ""},
		{"a destination that was written before it was sent", demand(t, 2, 1, 1, false, "0 o0 = 0.0"), "1", `
0 >1: cpy i0 s0; s s0
0 <1: r s0; cpy s0 o0`, passed, "", "", ""},
		{"an operand that was added and sent is overwritten", demand(t, 3, 1, 1, false, "0 o0 = 0.0+2.0"), "1", `
2 >0: s i0
0 >1 <2: cpy i0 s0; rrs s0
0 <1: r s0; cpy s0 o0`, passed, "", "", ""},
		{"a sum that was stored and sent is overwritten", demand(t, 3, 1, 1, false, "0 o0 = 0.0+2.0"), "1", `
2 >0: s i0
0 >1 <2: cpy i0 s0; rrcs s0
0 <1: r s0; cpy s0 o0`, passed, "", CodeRace,
			"rank 0 tb 0 step 1 (rrcs) may write its chunk only after it has passed it on"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := test.text + "\n" + strings.ReplaceAll(test.back, "%k", test.chunks)
			for _, protocol := range []ir.Protocol{ir.Simple, ir.LL, ir.LL128} {
				p := program(t, test.coll, text)
				p.Protocol = protocol
				rep := check(t, p)
				want := test.flags
				if protocol == ir.Simple {
					want = test.simple
				}
				if got := codes(rep); got != want {
					t.Errorf("%v: got %q, want %q: %v", protocol, got, want, rep.Messages)
				}
				if protocol == ir.Simple || test.note == "" {
					continue
				}
				note := "with " + protocol.String() + " a message orders only the chunk that it brings: " + test.note
				if all := rep.Err(); all == nil || !strings.Contains(all.Error(), note) {
					t.Errorf("got %v\nwant a note %q", all, note)
				}
			}
		})
	}
}

// TestFlagsOrderLess: what races with Simple races with LL as well, the reverse isn't so.
func TestFlagsOrderLess(t *testing.T) {
	more := 0
	for seed := range uint64(3000) {
		racy := map[ir.Protocol]bool{}
		for _, protocol := range []ir.Protocol{ir.Simple, ir.LL, ir.LL128} {
			p := randomProgram(seed)
			p.Protocol = protocol
			rep, err := Check(context.Background(), p, Options{})
			if err != nil {
				t.Fatal(err)
			}
			racy[protocol] = strings.Contains(codes(rep), CodeRace)
		}
		if racy[ir.Simple] && !racy[ir.LL] || racy[ir.LL] != racy[ir.LL128] {
			t.Errorf("seed %d: races: %v", seed, racy)
		}
		if racy[ir.LL] && !racy[ir.Simple] {
			more++
		}
	}
	if more < 20 {
		t.Errorf("only %d programs race with LL alone", more)
	}
	t.Logf("%d programs race with LL alone", more)
}
