package compiler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

var forNative = Options{Target: ir.TargetNative}

// shape is a rank's thread blocks, a line each: kind, places, peers and waits of every
// step.
func shape(p *ir.Program, r ir.Rank) []string {
	place := func(p ir.Place) string { return fmt.Sprintf("%c%d", "ios"[p.Buf], p.Index) }
	var lines []string
	for _, tb := range p.GPUs[r].TBs {
		var steps []string
		for i := range tb.Steps {
			st := &tb.Steps[i]
			s := st.Kind.String()
			if st.Kind.ReadsSrc() {
				s += " " + place(st.Src)
			}
			if st.Kind.WritesDst() {
				s += ">" + place(st.Dst)
			}
			if st.Kind.Receives() {
				s += fmt.Sprintf(" from %d", st.RecvPeer)
			}
			if st.Kind.Sends() {
				s += fmt.Sprintf(" to %d", st.SendPeer)
			}
			for _, d := range p.DepsOf(st) {
				s += fmt.Sprintf(" wait %d:%d", d.TB, d.Step)
			}
			steps = append(steps, s)
		}
		lines = append(lines, strings.Join(steps, ", "))
	}
	return lines
}

func wantShape(t *testing.T, p *ir.Program, r ir.Rank, want ...string) {
	t.Helper()
	if got := shape(p, r); !slices.Equal(got, want) {
		t.Errorf("rank %d: got\n%s\nwant\n%s", r, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// allPairs is the two-step allreduce: rank r adds up everyone's part r and hands
// the sum to everyone. Out of place the first part comes to where the sum will be.
func allPairs(t *testing.T, n int32, proto ir.Protocol, inPlace bool) *script {
	s := newScript(t, ir.NewCollective(ir.AllReduce, n, n, inPlace), proto, "parts")
	for r := range n {
		for k := int32(1); k < n; k++ {
			if theirs := in(ir.Rank((r+k)%n), r); k == 1 && !inPlace {
				s.copy(theirs, out(ir.Rank(r), r), 1)
			} else {
				s.copy(theirs, tmp(0, ir.Rank(r), k-1), 1)
			}
		}
	}
	for r := range n {
		sum := out(ir.Rank(r), r)
		if !inPlace {
			s.reduce(sum, in(ir.Rank(r), r), 1)
		}
		for k := int32(1); k < n; k++ {
			if inPlace || k > 1 {
				s.reduce(sum, tmp(0, ir.Rank(r), k-1), 1)
			}
		}
		for k := int32(1); k < n; k++ {
			s.copy(sum, out(ir.Rank((r+k)%n), r), 1)
		}
	}
	return s
}

// On two ranks one step pulls, adds, stores and pushes, and the other thread block
// hands out and takes back in one exchange.
func TestDirectAllPairsOnTwoRanks(t *testing.T) {
	p := allPairs(t, 2, ir.Direct, true).compile(forNative).Program
	wantShape(t, p, 0, "rrcs i0>i0 from 1 to 1", "s i1 to 1, r>i1 from 1")
	wantShape(t, p, 1, "rrcs i1>i1 from 0 to 0", "s i0 to 0, r>i0 from 0")
	p = allPairs(t, 2, ir.Direct, false).compile(forNative).Program
	wantShape(t, p, 0, "rrcs i0>o0 from 1 to 1", "s i1 to 1, r>o1 from 1")
	wantShape(t, p, 1, "rrcs i1>o1 from 0 to 0", "s i0 to 0, r>o0 from 0")
	if p.Transport != (ir.Transport{}) {
		t.Errorf("got %v, want no slots", p.Transport)
	}
}

// On more, all receives of the sum stand side by side, then all sends of it.
func TestDirectAllPairsOnThreeRanks(t *testing.T) {
	p := allPairs(t, 3, ir.Direct, true).compile(forNative).Program
	wantShape(t, p, 0, "rrc i0>i0 from 1, rrc i0>i0 from 2, s i0 to 1, s i0 to 2", "s i1 to 1, r>i1 from 1", "s i2 to 2, r>i2 from 2")
}

// With slots one thread block does it all: what nobody waits for first.
func TestAllPairsInOneThreadBlock(t *testing.T) {
	for _, proto := range []ir.Protocol{ir.LL, ir.LL128, ir.Simple} {
		p := allPairs(t, 3, proto, true).compile(forNative).Program
		wantShape(t, p, 0, "s i2 to 2, s i1 to 1, rrc i0>i0 from 1, rrc i0>i0 from 2, s i0 to 1, s i0 to 2, r>i1 from 1, r>i2 from 2")
	}
	p := allPairs(t, 2, ir.LL, true).compile(forNative).Program
	wantShape(t, p, 0, "s i1 to 1, rrcs i0>i0 from 1 to 1, r>i1 from 1")
	p = allPairs(t, 3, ir.LL, true).compile(Options{}).Program // XML has one peer a thread block
	wantShape(t, p, 0, "s i1 to 1, rrc i0>i0 from 1, s i0 to 1 wait 1:1, r>i1 from 1", "s i2 to 2, rrcs i0>i0 from 2 to 2 wait 0:1, r>i2 from 2")
}

// A thread block may send one place to several ranks, and add up what it gets from
// several; a sum may begin with a plain receive, and go through a local step.
func TestOneStepInOneThreadBlock(t *testing.T) {
	s := newScript(t, ir.NewCollective(ir.AllReduce, 3, 1, false), ir.LL, "parts")
	for p := range ir.Rank(3) {
		for k := ir.Rank(1); k < 3; k++ {
			if r := (p + k) % 3; p == 0 || p == 1 && r == 0 {
				s.copy(in(p, 0), out(r, 0), 1)
			} else {
				s.copy(in(p, 0), tmp(0, r, int32(p)), 1)
			}
		}
	}
	s.reduce(out(0, 0), in(0, 0), 1)
	s.reduce(out(0, 0), tmp(0, 0, 2), 1)
	s.reduce(out(1, 0), in(1, 0), 1)
	s.reduce(out(1, 0), tmp(0, 1, 2), 1)
	s.reduce(out(2, 0), tmp(0, 2, 1), 1)
	s.reduce(out(2, 0), in(2, 0), 1)
	p := s.compile(forNative).Program
	wantShape(t, p, 0, "s i0 to 1, s i0 to 2, rrc i0>o0 from 1, rrc o0>o0 from 2")
	wantShape(t, p, 2, "s i0 to 0, s i0 to 1, r>o0 from 0, rrc o0>o0 from 1, re i0>o0")
}

// A step that adds to what the one before has left stores the sum too, so that one
// pass does both; where nothing is before it, it only passes it on.
func TestLastOfASumStores(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{forNative, "r>s0 from 1, rrc s0>s0 from 2, rrcs s0>s0 from 3 to 1"},
		{Options{Disable: []string{"fuse"}, Target: ir.TargetNative}, "r>s0 from 1, rrc s0>s0 from 2, rrc s0>s0 from 3, s s0 to 1"},
	} {
		s := custom(t, 4, 1, "sum")
		s.copy(in(1, 0), tmp(0, 0, 0), 1)
		s.reduce(tmp(0, 0, 0), in(2, 0), 1)
		s.reduce(tmp(0, 0, 0), in(3, 0), 1)
		s.copy(tmp(0, 0, 0), out(1, 0), 1)
		wantShape(t, s.compile(c.o).Program, 0, c.want)
	}
	s := custom(t, 3, 1)
	s.reduce(in(0, 0), in(1, 0), 1)
	s.copy(in(0, 0), out(2, 0), 1)
	s.copy(in(2, 0), in(0, 0), 1)
	wantShape(t, s.compile(forNative).Program, 0, "r>i0 from 2", "rrs i0 from 1 to 2")
}

// The steps of one sum stand side by side, though another sum is as far.
func TestSumsStandTogether(t *testing.T) {
	for _, proto := range []ir.Protocol{ir.LL, ir.Direct} {
		s := custom(t, 3, 2)
		s.d.Protocol = proto
		for _, from := range []ir.Rank{1, 2} {
			for i := range int32(2) {
				s.reduce(in(0, i), in(from, i), 1)
			}
		}
		p := s.compile(forNative).Program
		wantShape(t, p, 0, "rrc i0>i0 from 1, rrc i0>i0 from 2, rrc i1>i1 from 1, rrc i1>i1 from 2")
	}
}

// Without slots a ring needs its sends and receives on separate thread blocks, and
// those that reduce on another than those that are written to.
func TestDirectRing(t *testing.T) {
	p := ring(t, 3, ir.Direct).compile(forNative).Program
	wantShape(t, p, 0,
		"rrc i1>i1 from 2",
		"rrcs i0>i0 from 2 to 1",
		"s i2 to 1, s i1 to 1 wait 0:0, s i2 to 1 wait 3:0",
		"r>i2 from 2, r>i1 from 2")
}

// Both ranks' send and receive are one exchange, whichever comes first as written.
func TestDirectAllGather(t *testing.T) {
	s := newScript(t, ir.NewCollective(ir.AllGather, 2, 1, true), ir.Direct)
	s.copy(in(0, 0), out(1, 0), 1)
	s.copy(in(1, 0), out(0, 1), 1)
	p := s.compile(forNative).Program
	wantShape(t, p, 0, "s o0 to 1, r>o1 from 1")
	wantShape(t, p, 1, "s o1 to 0, r>o0 from 0")
}

// A rank that gets its place overwritten while the peer reads it stages what comes:
// without slots two ranks can't swap in place.
func TestDirectSwapInPlace(t *testing.T) {
	s := newScript(t, ir.NewCollective(ir.AllToAll, 2, 1, true), ir.Direct, "staged")
	s.copy(in(0, 1), tmp(0, 1, 0), 1)
	s.copy(in(1, 0), in(0, 1), 1)
	s.copy(tmp(0, 1, 0), in(1, 0), 1)
	p := s.compile(forNative).Program
	wantShape(t, p, 0, "s i1 to 1", "r>i1 from 1 wait 0:0")
	wantShape(t, p, 1, "s i0 to 0, r>s0 from 0", "cpy s0>i0 wait 0:1")
	p = allToAllSwap(t).compile(Options{Target: ir.TargetNative}).Program // slots stage it
	wantShape(t, p, 1, "s i0 to 0, r>i0 from 0")
}

func allToAllSwap(t *testing.T) *script {
	s := newScript(t, ir.NewCollective(ir.AllToAll, 2, 1, true), ir.LL, "staged")
	s.copy(in(0, 1), tmp(0, 1, 0), 1)
	s.copy(in(1, 0), in(0, 1), 1)
	s.copy(tmp(0, 1, 0), in(1, 0), 1)
	return s
}

// Native steps wait for several others; XML has a nop for each but one.
func TestNativeStepsWaitForSeveral(t *testing.T) {
	s := custom(t, 4, 4)
	for r := range ir.Rank(3) {
		s.copy(in(r, 0), in(3, int32(r)), 1)
	}
	s.copy(in(3, 0), out(0, 0), 3)
	wantShape(t, s.compile(forNative).Program, 3, "r>i1 from 1", "r>i2 from 2", "r>i0 from 0, s i0 to 0 wait 0:0 wait 1:0")
	// msccl has 2 slots, so that a send of 3 chunks gets a thread block of its own.
	wantShape(t, s.compile(Options{}).Program, 3, "r>i0 from 0", "r>i1 from 1", "r>i2 from 2", "nop wait 1:0, nop wait 2:0, s i0 to 0 wait 0:0")
}

// Where the script gives a send and a receive one thread block, they are no exchange
// if the peer may write before it has read: a nop keeps them apart.
func TestDirectKeepsApart(t *testing.T) {
	s := custom(t, 2, 2)
	s.d.Protocol, s.d.Policy = ir.Direct, ir.Manual
	hints(s.copy(in(0, 0), out(1, 0), 1), 0, 0, ir.None)
	hints(s.copy(in(1, 1), in(0, 0), 1), 1, 0, ir.None)
	p := s.compile(forNative).Program
	wantShape(t, p, 0, "s i0 to 1, nop, r>i0 from 1")
	hints(s.copy(in(0, 1), out(1, 1), 1), 0, 0, ir.None)
	if err := verify(s.d, s.compile(forNative).Program, newRand(), 50); err != nil {
		t.Error(err)
	}
}

// Protocols that a target doesn't have are refused with what to write instead.
func TestProtocolsOfTargets(t *testing.T) {
	for _, target := range []ir.Target{ir.TargetMSCCL, ir.TargetRCCL, ir.TargetPlain, ir.TargetAstra} {
		for _, proto := range []ir.Protocol{ir.Direct, ir.AutoProtocol} {
			_, err := Compile(context.Background(), allPairs(t, 2, proto, true).d, Options{Target: target})
			var m *diag.Message
			if !errors.As(err, &m) || m.Code != "protocol-target" || m.Suggestion == "" ||
				!strings.Contains(m.Text, "protocol "+proto.String()+" is for target native") || !strings.Contains(m.Text, target.String()) {
				t.Errorf("%v %v: got %v", target, proto, err)
			}
		}
		r := allPairs(t, 2, ir.Direct, true).compile(Options{Target: target, DirectAsSimple: true})
		if r.Program.Protocol != ir.Simple || r.Program.Transport != target.Transport(ir.Simple) || len(r.Notes) == 0 || r.Notes[0].Code != "direct-as-simple" {
			t.Errorf("%v: got %v, %v, %v", target, r.Program.Protocol, r.Program.Transport, r.Notes)
		}
	}
}

// Protocol auto goes by the bytes of a chunk: here a half of the size.
// TestAutoSizes: a size for each protocol, in order, whatever the number of chunks.
func TestAutoSizes(t *testing.T) {
	for _, ranks := range []int32{1, 2, 7} {
		c := ir.NewCollective(ir.AllGather, ranks, 3, false)
		var got []ir.Protocol
		for _, size := range AutoSizes(c) {
			got = append(got, ProtocolFor(c, size))
		}
		if want := []ir.Protocol{ir.LL, ir.LL128, ir.Direct}; !slices.Equal(got, want) {
			t.Errorf("%d ranks: got %v, want %v", ranks, got, want)
		}
	}
}

func TestAutoProtocol(t *testing.T) {
	for _, c := range []struct {
		size int64
		want ir.Protocol
		why  string
	}{
		{0, ir.LL, "protocol LL, chosen for 0 B: chunks of 0 B are at most 1 KiB"},
		{2 << 10, ir.LL, "protocol LL, chosen for 2 KiB: chunks of 1 KiB are at most 1 KiB"},
		{2<<10 + 1, ir.LL128, "protocol LL128, chosen for 2049 B: chunks of 1025 B are at most 512 KiB"},
		{1 << 20, ir.LL128, "protocol LL128, chosen for 1 MiB: chunks of 512 KiB are at most 512 KiB"},
		{1<<20 + 2, ir.Direct, "protocol Direct, chosen for 1048578 B: chunks of 524289 B are more than 512 KiB"},
		{1 << 50, ir.Direct, "protocol Direct, chosen for 1024 TiB: chunks of 512 TiB are more than 512 KiB"},
	} {
		s := allPairs(t, 2, ir.AutoProtocol, true)
		r := s.compile(Options{Target: ir.TargetNative, Size: c.size})
		if r.Program.Protocol != c.want || r.Notes[0].Text != c.why {
			t.Errorf("%d bytes: got %s, %q, want %s, %q", c.size, r.Program.Protocol, r.Notes[0].Text, c.want, c.why)
		}
		if got := ProtocolFor(s.d.Coll, c.size); got != c.want {
			t.Errorf("%d bytes: ProtocolFor says %s, want %s", c.size, got, c.want)
		}
		if s.d.Protocol != ir.AutoProtocol {
			t.Error("the trace was changed")
		}
	}
}
