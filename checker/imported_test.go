package checker

import (
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Of a collective whose postcondition isn't known every output matters: a race
// that decides what one holds is an error, and nothing else is demanded.
func TestOpenCollective(t *testing.T) {
	coll := ir.NewCollective(ir.Custom, 2, 1, true)
	coll.Name = "mine"
	coll.Custom = &ir.CustomSpec{Input: []int32{1, 1}, Output: []int32{1, 1}, Expect: [][][]ir.Contribution{{nil}, {nil}}}
	// Rank 1 sends its chunk and overwrites it, in no order.
	const text = "0 >1 <1: s i0; r i0\n1 >0: s i0\n1 <0: r i0"
	for _, open := range []bool{false, true} {
		coll.Custom.Open = open
		rep := check(t, program(t, coll, text))
		if len(rep.Messages) != 1 || rep.Messages[0].Code != CodeRace {
			t.Fatalf("open %v: got %v, want one race", open, rep.Messages)
		}
		if got := rep.Messages[0].Severity == diag.Error; got != open || rep.OK == open {
			t.Errorf("open %v: got severity %v", open, rep.Messages[0].Severity)
		}
	}
}

// Two ranks that send each other 8 chunks before they receive: with 2 slots that
// runs while a message holds 4 chunks, so while a chunk is a quarter of a slot.
func TestSafeWindow(t *testing.T) {
	p := program(t, inPlace(ir.AllGather, 2, 8), "0 >1 <1: s o0 x8; r o8 x8\n1 >0 <0: s o8 x8; r o0 x8")
	p.Transport = ir.Transport{Slots: 2, SlotBytes: 4096}
	rep := check(t, p)
	if rep.SafeRegime != 4 || rep.SafeMaxBytes != 16*1024 || rep.MinSlots != 8 {
		t.Errorf("got regime %d, %d bytes, %d slots, want 4, 16384 and 8", rep.SafeRegime, rep.SafeMaxBytes, rep.MinSlots)
	}
	p.MaxBytes = 16 * 1024
	if rep := check(t, p); rep.SafeRegime != 4 || rep.SafeMaxBytes != 0 || !rep.OK {
		t.Errorf("within the window: got regime %d, %d bytes, %v", rep.SafeRegime, rep.SafeMaxBytes, rep.Messages)
	}
	p = program(t, inPlace(ir.AllGather, 2, 1), "0 >1 <1: r o1; s o0\n1 >0 <0: r o0; s o1")
	if rep := check(t, p); rep.SafeRegime != 0 || rep.SafeMaxBytes != -1 {
		t.Errorf("deadlock at any depth: got regime %d, %d bytes", rep.SafeRegime, rep.SafeMaxBytes)
	}
}
