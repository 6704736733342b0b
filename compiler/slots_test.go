package compiler

import (
	"context"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// Programs that hang msccl's runtime when steps are put in the order of the
// script, because a connection holds 2 messages (Simple) or 8 (LL, LL128).
var exchanges = []struct {
	name  string
	proto ir.Protocol
	write func(s *script)
	note  string // code of the note that says what was done, "" for none
}{
	{"ten sends, then ten receives, in one thread block by hand", ir.LL, func(s *script) {
		s.d.Policy = ir.Manual
		for r := range ir.Rank(2) {
			for i := range int32(10) {
				hints(s.copy(in(r, i), out(1-r, i), 1), 0, 0, 0)
			}
		}
	}, ""},
	{"nine early sends whose receives need what comes through the same thread block", ir.LL, func(s *script) {
		for i := range int32(9) {
			s.copy(in(0, i), tmp(0, 1, i), 1)
		}
		s.copy(in(1, 0), tmp(0, 0, 0), 1)
		s.copy(tmp(0, 0, 0), tmp(1, 1, 0), 1)
		for i := range int32(9) {
			s.reduce(tmp(0, 1, i), tmp(1, 1, 0), 1)
			s.copy(tmp(0, 1, i), out(1, i), 1)
		}
	}, ""},
	{"an exchange of eight chunks at once, automatic", ir.Simple, func(s *script) {
		s.copy(in(0, 0), out(1, 0), 8)
		s.copy(in(1, 0), out(0, 0), 8)
	}, "threadblocks-apart"},
	{"an exchange of eight chunks at once in one thread block by hand", ir.Simple, func(s *script) {
		s.d.Policy = ir.Manual
		hints(s.copy(in(0, 0), out(1, 0), 8), 0, 0, 0)
		hints(s.copy(in(1, 0), out(0, 0), 8), 0, 0, 0)
	}, "reordered"},
	{"eight chunks there and back through one thread block by hand", ir.Simple, func(s *script) {
		s.d.Policy = ir.Manual
		hints(s.copy(in(0, 0), tmp(0, 1, 0), 8), 0, 0, 0)
		hints(s.copy(tmp(0, 1, 0), out(0, 0), 8), 0, 0, 0)
	}, "count-split"},
}

func TestSlotsAreEnough(t *testing.T) {
	for _, c := range exchanges {
		t.Run(c.name, func(t *testing.T) {
			coll := custom(t, 2, 10).d.Coll
			coll.InPlace = false
			s := newScript(t, coll, c.proto, "a", "b")
			c.write(s)
			r := s.compile(Options{})
			if err := verify(s.d, r.Program, newRand(), 50); err != nil {
				t.Fatal(err)
			}
			var codes []string
			for _, n := range r.Notes {
				codes = append(codes, n.Code)
			}
			if got := strings.Join(codes, " "); got != c.note {
				t.Errorf("notes: got %q, want %q\n%v", got, c.note, r.Notes)
			}
		})
	}
}

// With splitting switched off the sizes are limited instead: eight chunks in two
// slots need four in a message, so a chunk may be a quarter of 2 MiB and the ten
// chunks of the buffer together 5 MiB.
func TestWindowIsNarrowedLast(t *testing.T) {
	coll := custom(t, 2, 10).d.Coll
	coll.InPlace = false
	s := newScript(t, coll, ir.Simple, "a", "b")
	exchanges[4].write(s)
	r := s.compile(Options{Disable: []string{"split"}})
	if want := int64(10 * (2 << 20) / 4); r.Program.MaxBytes != want {
		t.Errorf("got a window up to %d bytes, want %d", r.Program.MaxBytes, want)
	}
	if len(r.Notes) != 1 || r.Notes[0].Code != "window-narrowed" {
		t.Errorf("got notes %v, want window-narrowed", r.Notes)
	}
	if err := verify(s.d, r.Program, newRand(), 50); err != nil {
		t.Fatal(err)
	}
}

// A ring into which every rank puts three chunks before it receives any fills
// all slots of a Simple connection; one has to stay free for the ring to turn.
func TestFullRingTurns(t *testing.T) {
	const n, each = 4, 3
	s := newScript(t, ir.NewCollective(ir.AllGather, n, each, true), ir.Simple)
	for r := range ir.Rank(n) {
		for c := range int32(each) {
			for hop := ir.Rank(0); hop < n-1; hop++ {
				i := int32(r)*each + c
				s.copy(out((r+hop)%n, i), out((r+hop+1)%n, i), 1)
			}
		}
	}
	for _, slots := range []int32{1, 2, 8} {
		p := s.compile(Options{Slots: slots}).Program
		if err := verify(s.d, p, newRand(), 50); err != nil {
			t.Errorf("%d slots: %v", slots, err)
		}
	}
}

// Fifty chunks each way between all pairs of four ranks, in every protocol.
func TestAllToAllSharesThreadBlocks(t *testing.T) {
	for _, n := range []int32{2, 3, 5, 8} {
		s := newScript(t, ir.NewCollective(ir.AllToAll, n, 1, false), ir.Simple)
		for a := range ir.Rank(n) {
			for b := range ir.Rank(n) {
				s.copy(in(a, int32(b)), out(b, int32(a)), 1)
			}
		}
		r := s.compile(Options{})
		if c := r.Program.Count(); c.MaxTBs != int(n-1) {
			t.Errorf("%d ranks: got %d thread blocks, want %d", n, c.MaxTBs, n-1)
		}
		if err := verify(s.d, r.Program, newRand(), 20); err != nil {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
}

// Counts over a target's limit are cut; plain has none.
func TestCountLimit(t *testing.T) {
	s := newScript(t, ir.NewCollective(ir.SendRecv, 2, 200, false), ir.LL)
	s.d.Coll.Root, s.d.Coll.Peer = 0, 1
	s.d.Buffers[0].Chunks, s.d.Buffers[1].Chunks = []int32{200, 0}, []int32{0, 200}
	s.copy(in(0, 0), out(1, 0), 200)
	for target, steps := range map[ir.Target]int{ir.TargetMSCCL: 6, ir.TargetPlain: 2} {
		r := s.compile(Options{Target: target})
		if c := r.Program.Count(); c.Steps != steps {
			t.Errorf("%v: got %d steps, want %d", target, c.Steps, steps)
		}
	}
}

func TestRCCLHasNoFusedSteps(t *testing.T) {
	s := ring(t, 4, ir.LL)
	p := s.compile(Options{Target: ir.TargetRCCL}).Program
	for g := range p.GPUs {
		for _, tb := range p.GPUs[g].TBs {
			for _, st := range tb.Steps {
				switch st.Kind {
				case ir.Send, ir.Recv, ir.Copy, ir.Reduce, ir.Nop:
				default:
					t.Fatalf("rank %d has a step %s", g, st.Kind)
				}
			}
		}
		// One landing chunk a thread block is enough: it is dead after its reduce.
		if p.GPUs[g].Scratch > 1 {
			t.Errorf("rank %d: got %d scratch chunks, want 1", g, p.GPUs[g].Scratch)
		}
	}
	if err := verify(s.d, p, newRand(), 20); err != nil {
		t.Error(err)
	}
}

func TestReplicationPolicies(t *testing.T) {
	kinds := []ir.CollectiveKind{ir.AllReduce, ir.AllGather, ir.AllToAll, ir.ReduceScatter}
	for _, kind := range kinds {
		for _, interleaved := range []bool{true, false} {
			s := newScript(t, ir.NewCollective(kind, 2, 2, false), ir.LL)
			s.d.Instances, s.d.Interleaved = 3, interleaved
			write(s, kind)
			p := s.compile(Options{}).Program
			m, err := runProgram(p, newRand(), 8, 1)
			if err != nil {
				t.Fatal(err)
			}
			for r := range ir.Rank(2) {
				for i := range p.Coll.OutputChunks(r) {
					exp := sum{}
					list, _ := p.Coll.Expect(nil, r, i)
					for _, c := range list {
						exp[c]++
					}
					if got := m.at[ir.Loc{Rank: r, Buf: ir.Output, Index: i}]; got.String() != exp.String() {
						t.Errorf("%s, interleaved %t: rank %d output[%d]: got %v, want %v", kind, interleaved, r, i, got, exp)
					}
				}
			}
		}
	}
}

// write implements a collective of 2 ranks and chunk factor 2 with operations
// of mixed counts.
func write(s *script, kind ir.CollectiveKind) {
	for r := range ir.Rank(2) {
		q := 1 - r
		switch kind {
		case ir.AllReduce:
			s.copy(in(r, 0), out(r, 0), 2)
			s.reduce(out(r, 0), in(q, 0), 1)
			s.reduce(out(r, 1), in(q, 1), 1)
		case ir.AllGather:
			s.copy(in(r, 0), out(r, 2*int32(r)), 2)
			s.copy(out(r, 2*int32(r)), out(q, 2*int32(r)), 1)
			s.copy(in(r, 1), out(q, 2*int32(r)+1), 1)
		case ir.AllToAll:
			s.copy(in(r, 2*int32(r)), out(r, 2*int32(r)), 2)
			s.copy(in(r, 2*int32(q)), out(q, 2*int32(r)), 1)
			s.copy(in(r, 2*int32(q)+1), out(q, 2*int32(r)+1), 1)
		case ir.ReduceScatter:
			s.copy(in(r, 2*int32(r)), out(r, 0), 2)
			s.reduce(out(r, 0), in(q, 2*int32(r)), 2)
		}
	}
}

func TestBlockedReplicationIsRefusedWhereItWouldMoveChunks(t *testing.T) {
	s := custom(t, 2, 2)
	s.d.Instances, s.d.Interleaved = 2, false
	s.copy(in(0, 0), in(1, 0), 1)
	_, err := Compile(context.Background(), s.d, Options{})
	const want = `program "test": interleaved_replication=False would renumber the chunks of collective test, whose places have a meaning
    leave interleaved_replication at True`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Disable: []string{"fuze"}}, `no pass is called "fuze"; the passes are canonical, replicate, split, lower, forward, fuse, channels, threadblocks, order, synchronize, reduce, scratch, emit`},
		{Options{Disable: []string{"order"}}, `pass order can't be left out; those that can are canonical, split, forward, fuse, reduce`},
		{Options{MinBytes: 5, MaxBytes: 4}, `size window: got 5 to 4 bytes, want 0 <= min <= max`},
	} {
		_, err := Compile(context.Background(), ring(t, 2, ir.LL).d, c.o)
		if err == nil || err.Error() != c.want {
			t.Errorf("%+v: got %v, want %s", c.o, err, c.want)
		}
	}
}

// Channel numbers have a limit, and the largest one works.
func TestChannelRange(t *testing.T) {
	s := custom(t, 2, 2)
	hints(s.copy(in(0, 0), in(1, 0), 1), ir.None, ir.None, 1023)
	if got := s.compile(Options{Target: ir.TargetPlain}).Program.GPUs[0].TBs[0].Chan; got != 1023 {
		t.Errorf("got channel %d, want 1023", got)
	}
	hints(s.copy(in(0, 1), in(1, 1), 1), ir.None, ir.None, 1024)
	_, err := Compile(context.Background(), s.d, Options{})
	if want := "test.star:2:1: ch: got 1024, want less than 1024"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
