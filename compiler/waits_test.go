package compiler

import (
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// Waits by hand. Each program's thread blocks follow from its peers, so that
// which waits are needed can be said without running the compiler.
func TestWaitsThatOthersImplyAreDropped(t *testing.T) {
	cases := []struct {
		name   string
		write  func(t *testing.T) *script
		before int // waits that hazards alone ask for
		after  int
	}{
		{
			// Rank 1 receives from 0 on one thread block and sends to 2 on another.
			// Nothing is fused: what is sent is not what came.
			name: "one wait that is needed",
			write: func(t *testing.T) *script {
				s := custom(t, 3, 2)
				s.copy(in(0, 0), in(1, 0), 1)
				s.copy(in(1, 0), in(2, 0), 2)
				return s
			},
			before: 1, after: 1,
		},
		{
			// Rank 1 receives two chunks from 0 one after the other on one thread
			// block; the send of both to 2 waits for the second alone.
			name: "an earlier step of the same thread block",
			write: func(t *testing.T) *script {
				s := custom(t, 3, 2)
				s.copy(in(0, 0), in(1, 0), 1)
				s.copy(in(0, 1), in(1, 1), 1)
				s.copy(in(1, 0), in(2, 0), 2)
				return s
			},
			before: 1, after: 1,
		},
		{
			// 1.i[0:2] goes to 2 and comes back as a sum to 1 on the thread block of
			// the pair 1-2; the receive from 0 that overwrites it waits for that block's
			// send, and the answer from 2 (same thread block, later) is then known.
			name: "a message there and back",
			write: func(t *testing.T) *script {
				s := custom(t, 3, 4)
				hints(s.copy(in(1, 0), in(2, 0), 1), ir.None, ir.None, 0) // 1 sends i[0] to 2
				hints(s.copy(in(2, 0), in(0, 3), 1), ir.None, ir.None, 1) // 2 passes it to 0
				hints(s.copy(in(0, 3), in(1, 0), 1), ir.None, ir.None, 2) // 0 sends it back over i[0]
				return s
			},
			// The last receive overwrites what the first send read, on another
			// thread block; it can only have come after it. On rank 2 and 0 the value
			// goes from the receiving thread block to the sending one: two waits.
			before: 3, after: 2,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := c.write(t).compile(Options{})
			if r.Stats.DepsBefore != c.before || r.Stats.DepsAfter != c.after {
				t.Errorf("got %d waits of %d, want %d of %d", r.Stats.DepsAfter, r.Stats.DepsBefore, c.after, c.before)
			}
		})
	}
}

// dependence_nop puts the waits of a run of local reduces in front of the first,
// but never one for a step that itself comes after that first reduce (msccl-tools
// moves that one too, and the program hangs).
func TestDependenceNopNeverHangs(t *testing.T) {
	s := custom(t, 2, 6, "a")
	s.d.DependenceNop = true
	s.copy(in(1, 0), tmp(0, 0, 0), 1)
	s.reduce(in(0, 1), tmp(0, 0, 0), 1)
	s.copy(in(0, 1), in(1, 1), 1) // needs the first reduce
	s.copy(in(1, 1), tmp(0, 0, 1), 1)
	s.reduce(in(0, 1), tmp(0, 0, 1), 1) // needs what came back
	for _, disable := range [][]string{nil, {"forward"}, {"forward", "fuse"}} {
		p := s.compile(Options{Disable: disable}).Program
		if err := verify(s.d, p, newRand(), 50); err != nil {
			t.Errorf("without %v: %v", disable, err)
		}
	}
}

// Scratch is as large as what lives at once: three rounds through a buffer of
// their own each, every one starting from what the one before sent back, need one.
func TestScratchIsReusedWhenDead(t *testing.T) {
	s := custom(t, 2, 4, "a", "b", "c")
	for n := range ir.BufferID(3) {
		s.copy(in(0, 0), tmp(n, 1, 5), 1) // index 5: the hole below takes no room
		s.reduce(tmp(n, 1, 5), in(1, 0), 1)
		s.copy(tmp(n, 1, 5), in(0, 0), 1)
	}
	p := s.compile(Options{Disable: []string{"forward", "fuse"}}).Program
	if got := p.GPUs[1].Scratch; got != 1 {
		t.Errorf("got %d scratch chunks, want 1", got)
	}
	if err := verify(s.d, p, newRand(), 50); err != nil {
		t.Error(err)
	}
}
