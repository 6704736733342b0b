package compiler

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// Each case is a program that msccl-tools miscompiles, in our own words, with
// what the program must leave behind worked out by hand: "rank input[index]" to
// the contributions there. The names say what goes wrong there.
var miscompiles = []struct {
	name  string
	write func(t *testing.T) *script
	want  map[place]string
}{
	{
		name: "a send of other chunks than were received is joined with the receive",
		write: func(t *testing.T) *script {
			s := custom(t, 3, 3)
			s.copy(in(0, 0), in(1, 0), 2)
			s.copy(in(1, 1), in(2, 0), 2) // one received, one of rank 1's own
			return s
		},
		want: map[place]string{in(2, 0): "0.1", in(2, 1): "1.2", in(1, 0): "0.0"},
	},
	{
		name: "a send jumps over an update of part of what was received",
		write: func(t *testing.T) *script {
			s := custom(t, 3, 3)
			s.copy(in(0, 0), in(1, 0), 2)
			s.reduce(in(1, 1), in(1, 2), 1)
			s.copy(in(1, 0), in(2, 0), 2)
			return s
		},
		want: map[place]string{in(2, 0): "0.0", in(2, 1): "0.1+1.2", in(1, 1): "0.1+1.2"},
	},
	{
		name: "a sum is dropped because a later receive overwrites a part of it",
		write: func(t *testing.T) *script {
			s := custom(t, 3, 2)
			s.reduce(in(1, 0), in(0, 0), 2)
			s.copy(in(1, 0), in(2, 0), 2)
			s.copy(in(0, 1), in(1, 1), 1)
			return s
		},
		want: map[place]string{in(1, 0): "0.0+1.0", in(1, 1): "0.1", in(2, 0): "0.0+1.0", in(2, 1): "0.1+1.1"},
	},
	{
		name: "a joined step takes its place from the next rank's scratch",
		write: func(t *testing.T) *script {
			s := custom(t, 3, 2, "a", "b")
			s.copy(in(1, 0), tmp(0, 1, 0), 1) // rank 1 has a and b, rank 2 only b
			s.copy(in(0, 1), tmp(1, 1, 0), 1)
			s.copy(tmp(1, 1, 0), tmp(1, 2, 0), 1)
			s.copy(tmp(0, 1, 0), in(1, 1), 1)
			s.copy(tmp(1, 2, 0), in(2, 0), 1)
			s.copy(tmp(1, 1, 0), in(1, 0), 1)
			return s
		},
		want: map[place]string{in(1, 1): "1.0", in(2, 0): "0.1", in(1, 0): "0.1"},
	},
	{
		name: "a remote reduce reads its operand at the sender's index",
		write: func(t *testing.T) *script {
			s := custom(t, 2, 2)
			s.reduce(in(1, 1), in(0, 0), 1)
			return s
		},
		want: map[place]string{in(1, 0): "1.0", in(1, 1): "0.0+1.1"},
	},
	{
		name: "a local reduce of two inputs is never scheduled",
		write: func(t *testing.T) *script {
			s := custom(t, 2, 2)
			s.reduce(in(0, 0), in(0, 1), 1)
			s.copy(in(0, 0), in(1, 0), 1)
			return s
		},
		want: map[place]string{in(0, 0): "0.0+0.1", in(1, 0): "0.0+0.1"},
	},
	{
		name: "two thread blocks come to own one connection",
		write: func(t *testing.T) *script {
			s := custom(t, 3, 4)
			s.copy(in(1, 0), in(2, 0), 1)
			s.copy(in(0, 1), in(1, 1), 1)
			s.copy(in(0, 2), in(1, 2), 1)
			s.copy(in(1, 2), in(2, 2), 1)
			return s
		},
		want: map[place]string{in(2, 0): "1.0", in(1, 1): "0.1", in(1, 2): "0.2", in(2, 2): "0.2"},
	},
	{
		name: "a chunk that goes to and fro is torn apart by channel repair",
		write: func(t *testing.T) *script {
			s := custom(t, 2, 3)
			s.copy(in(0, 0), in(1, 0), 1)
			s.copy(in(1, 0), in(0, 1), 1)
			s.copy(in(0, 1), in(1, 1), 1)
			s.copy(in(1, 2), in(0, 2), 1)
			s.copy(in(0, 2), in(1, 2), 1)
			return s
		},
		want: map[place]string{in(1, 0): "0.0", in(0, 1): "0.0", in(1, 1): "0.0", in(0, 2): "1.2", in(1, 2): "1.2"},
	},
	{
		name: "a reduce of two chunks after one of them arrived alone",
		write: func(t *testing.T) *script {
			s := custom(t, 3, 2)
			s.copy(in(0, 0), in(1, 0), 1)
			s.reduce(in(2, 0), in(1, 0), 2)
			s.copy(in(2, 0), in(0, 0), 2)
			return s
		},
		want: map[place]string{in(2, 0): "0.0+2.0", in(2, 1): "1.1+2.1", in(0, 1): "1.1+2.1"},
	},
}

// custom is a program of n ranks with c chunks each, in place, everything
// demanded of it. The judge then looks at every chunk.
func custom(t *testing.T, n, c int32, scratch ...string) *script {
	coll := ir.NewCollective(ir.AllToNext, n, c, true)
	coll.Kind, coll.Name, coll.Custom = ir.Custom, "test", &ir.CustomSpec{}
	for range n {
		coll.Custom.Input = append(coll.Custom.Input, c)
		coll.Custom.Output = append(coll.Custom.Output, c)
		want := make([][]ir.Contribution, c)
		for i := range want {
			want[i] = []ir.Contribution{} // something, whatever it is
		}
		coll.Custom.Expect = append(coll.Custom.Expect, want)
	}
	return newScript(t, coll, ir.Simple, scratch...)
}

func TestWhatUpstreamMiscompiles(t *testing.T) {
	for _, c := range miscompiles {
		t.Run(c.name, func(t *testing.T) {
			s := c.write(t)
			for p, want := range c.want {
				if got := short(meaning(s.d).at[ir.Loc{Rank: p.rank, Buf: p.buf, Index: p.index}]); got != want {
					t.Fatalf("the case itself: rank %d [%d]: got %s, want %s", p.rank, p.index, got, want)
				}
			}
			for target := range ir.Target(len(ir.TargetNames())) {
				rng := rand.New(rand.NewPCG(1, uint64(target)))
				for range 20 {
					p := s.compile(Options{Target: target}).Program
					m, err := runProgram(p, rng, int(p.Transport.Slots), 1)
					if err != nil {
						t.Fatalf("%v: %v", target, err)
					}
					for at, want := range c.want {
						if got := short(m.at[m.loc(at.rank, ir.Place{Buf: at.buf, Index: at.index})]); got != want {
							t.Errorf("%v: rank %d [%d]: got %s, want %s", target, at.rank, at.index, got, want)
						}
					}
				}
			}
		})
	}
}

// short is a sum of single contributions, as "0.1+2.3".
func short(s sum) string {
	return strings.NewReplacer("i[", "", "]x1", "").Replace(s.String())
}

// Manual thread blocks: an operation that names no channel keeps its thread
// block's (msccl-tools resets it to 0).
func TestManualChannelStays(t *testing.T) {
	s := custom(t, 2, 2)
	s.d.Policy = ir.Manual
	hints(s.copy(in(0, 0), in(1, 0), 1), 0, 0, 1)
	hints(s.copy(in(0, 1), in(1, 1), 1), 0, 0, ir.None)
	p := s.compile(Options{}).Program
	for g := range p.GPUs {
		for _, st := range p.GPUs[g].TBs[0].Steps {
			if st.Chan != 1 {
				t.Errorf("rank %d: got channel %d, want 1", g, st.Chan)
			}
		}
	}
}

func TestManualRefusals(t *testing.T) {
	cases := []struct {
		name  string
		write func(s *script)
		want  string
	}{
		{"two thread blocks on one connection", func(s *script) {
			hints(s.copy(in(0, 0), in(1, 0), 1), 0, 0, 0)
			hints(s.copy(in(0, 1), in(1, 1), 1), 1, 1, 0)
		}, `test.star:2:1: thread blocks 0 and 1 of rank 0 both send to rank 1 on channel 0
    test.star:1:1: thread block 0 is here
    a connection end belongs to one thread block; give one of them another ch`},
		{"two peers", func(s *script) {
			hints(s.copy(in(0, 0), in(1, 0), 1), 0, 0, 0)
			hints(s.copy(in(0, 1), in(2, 1), 1), 0, 0, 0)
		}, `test.star:2:1: thread block 0 of rank 0 would send to ranks 1 and 2
    test.star:1:1: rank 1 is here
    a thread block has one peer for each direction; use another sendtb or recvtb for one of them`},
		{"two channels", func(s *script) {
			hints(s.copy(in(0, 0), in(1, 0), 1), 0, 0, 0)
			hints(s.copy(in(0, 1), in(1, 1), 1), 0, 0, 2)
		}, `test.star:2:1: thread block 0 of rank 0 would use channels 0 and 2
    test.star:1:1: channel 0 is here
    a thread block has one channel, and so have those it exchanges messages with; use another sendtb or recvtb for one of them`},
		{"an unassigned operation on an assigned channel", func(s *script) {
			hints(s.copy(in(0, 0), in(1, 0), 1), 0, 0, 0)
			hints(s.copy(in(0, 1), in(1, 1), 1), ir.None, ir.None, 0)
		}, `test.star:2:1: channel 0 from rank 0 to rank 1 belongs to a thread block assigned by hand, which this operation does not name
    give it the same sendtb and recvtb, or another ch`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := custom(t, 3, 2)
			s.d.Policy = ir.Manual
			c.write(s)
			_, err := Compile(context.Background(), s.d, Options{})
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// A thread block without any channel gets the lowest that collides with none.
func TestManualFreeChannel(t *testing.T) {
	s := custom(t, 2, 2)
	s.d.Policy = ir.Manual
	hints(s.copy(in(0, 0), in(1, 0), 1), 0, 0, 0)
	hints(s.copy(in(0, 1), in(1, 1), 1), 1, 1, ir.None)
	p := s.compile(Options{}).Program
	if got := p.GPUs[0].TBs[1].Chan; got != 1 {
		t.Errorf("got channel %d, want 1", got)
	}
}

// 54 shuffles of pairs of chunks between two ranks took msccl-tools 26 s, four
// and a half times more for each further layer; 1,100 local copies in a row
// overflowed its stack. Both are linear here; a test of 60 layers and 20,000 copies
// would never end if they were not.
func TestLongChainsAreLinear(t *testing.T) {
	s := custom(t, 2, 4)
	for layer := range int32(60) {
		for c := int32(0); c < 4; c += 2 {
			s.copy(in(ir.Rank(layer%2), c), in(ir.Rank(1-layer%2), (c+layer)%3), 2)
		}
	}
	s.compile(Options{Target: ir.TargetPlain})
	s = custom(t, 1, 1, "a", "b")
	s.copy(in(0, 0), tmp(0, 0, 0), 1)
	for i := range int32(20000) {
		s.copy(tmp(ir.BufferID(i%2), 0, 0), tmp(ir.BufferID(1-i%2), 0, 0), 1)
	}
	s.compile(Options{Target: ir.TargetPlain})
}
