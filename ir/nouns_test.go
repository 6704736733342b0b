package ir_test

import (
	"math"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// One message carries K chunks of a slot's payload, at least 1 and at most 71.
func TestRegime(t *testing.T) {
	ll := ir.Transport{Slots: 8, SlotBytes: 32 << 10}
	for _, c := range []struct {
		bytes   int64
		nchunks int32
		want    int32
	}{
		{32 << 10, 1, 1},
		{32<<10 + 1, 1, 1}, // a chunk larger than a slot: one tile of it at a time
		{16 << 10, 1, 2},
		{16<<10 + 1, 1, 1},
		{8 * (16 << 10), 8, 2},
		{8*(16<<10) + 1, 8, 1}, // chunks are rounded up
		{1, 8, 71},
		{0, 8, 71},
		{math.MaxInt64, 8, 1},
		{math.MaxInt64, 1, 1},
	} {
		if got := ll.Regime(c.bytes, c.nchunks); got != c.want {
			t.Errorf("%d bytes in %d chunks: got K = %d, want %d", c.bytes, c.nchunks, got, c.want)
		}
	}
}

// MaxBytesFor is the last size of its regime: one byte more and K is smaller.
func TestMaxBytesFor(t *testing.T) {
	for _, tr := range []ir.Transport{{Slots: 2, SlotBytes: 2 << 20}, {Slots: 8, SlotBytes: 576000}, {Slots: 8, SlotBytes: 100}} {
		for _, n := range []int32{1, 3, 8, 1000} {
			for k := int32(2); k <= ir.MaxRegime; k++ {
				top := tr.MaxBytesFor(k, n)
				if tr.Regime(top, n) < k || tr.Regime(top+1, n) >= k {
					t.Errorf("slot of %d bytes, %d chunks, K = %d: %d bytes is not the last size", tr.SlotBytes, n, k, top)
				}
			}
		}
	}
	tiny := ir.Transport{Slots: 2, SlotBytes: 8}
	for _, c := range []struct {
		k    int32
		want int64
	}{{1, 0}, {8, 4}, {9, -1}, {72, -1}} {
		if got := tiny.MaxBytesFor(c.k, 4); got != c.want {
			t.Errorf("slot of 8 bytes, 4 chunks, K = %d: got %d, want %d", c.k, got, c.want)
		}
	}
}

func TestMessages(t *testing.T) {
	for _, c := range [][3]int32{{1, 1, 1}, {16, 1, 16}, {16, 4, 4}, {17, 4, 5}, {3, 71, 1}} {
		if got := ir.Messages(c[0], c[1]); got != c[2] {
			t.Errorf("count %d at K = %d: got %d messages, want %d", c[0], c[1], got, c[2])
		}
	}
}

// What each step does, in the runtimes' words: which operands it has.
func TestStepKinds(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  ir.StepKind
		flags string // s sends, r receives, i reads src, o writes dst, d reads dst, + reduces
	}{
		{"nop", ir.Nop, ""}, {"s", ir.Send, "si"}, {"r", ir.Recv, "ro"}, {"rcs", ir.RecvCopySend, "sro"},
		{"rrs", ir.RecvReduceSend, "sri+"}, {"rrc", ir.RecvReduceCopy, "rio+"}, {"rrcs", ir.RecvReduceCopySend, "srio+"},
		{"cpy", ir.Copy, "io"}, {"re", ir.Reduce, "iod+"},
	} {
		got := ""
		for _, f := range []struct {
			is   bool
			mark string
		}{{c.kind.Sends(), "s"}, {c.kind.Receives(), "r"}, {c.kind.ReadsSrc(), "i"}, {c.kind.WritesDst(), "o"}, {c.kind.ReadsDst(), "d"}, {c.kind.Reduces(), "+"}} {
			if f.is {
				got += f.mark
			}
		}
		if got != c.flags || c.kind.String() != c.name {
			t.Errorf("%s: got %q, want %s %q", c.kind, got, c.name, c.flags)
		}
		if k, err := ir.ParseStepKind(c.name); err != nil || k != c.kind {
			t.Errorf("%s: parsed as %v, %v", c.name, k, err)
		}
	}
}

func TestNamesRoundTrip(t *testing.T) {
	for p := ir.Simple; p <= ir.LL128; p++ {
		if got, err := ir.ParseProtocol(p.String()); err != nil || got != p {
			t.Errorf("%s: got %v, %v", p, got, err)
		}
	}
	for i, name := range ir.TargetNames() {
		if got, err := ir.ParseTarget(name); err != nil || int(got) != i || got.String() != name {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if _, err := ir.ParseProtocol("ll"); err == nil {
		t.Error("protocol ll: want an error, NCCL spells it LL")
	}
	if _, err := ir.ParseTarget(""); err == nil {
		t.Error("empty target: want an error")
	}
}

func TestTopologyLinks(t *testing.T) {
	p := ir.NewTopology("two of three", 3)
	p.Link(0, 1, 25)
	p.Link(0, 1, 25)
	for src := range ir.Rank(3) {
		for dst := range ir.Rank(3) {
			want := src == dst || src == 0 && dst == 1
			if p.Linked(src, dst) != want {
				t.Errorf("%d to %d: want linked %v", src, dst, want)
			}
			if full := ir.FullyConnected(3); !full.Linked(src, dst) {
				t.Errorf("fully connected: %d and %d are not linked", src, dst)
			}
		}
	}
	if p.Bandwidth[1] != 50 {
		t.Errorf("two links of 25 GB/s: got %g", p.Bandwidth[1])
	}
}

// handProgram has two ranks, three thread blocks, five steps (a nop among
// them) that wait for two others, on channels 0, 1 and 4.
func TestProgramCount(t *testing.T) {
	got := handProgram().Count()
	want := ir.Counts{Ranks: 2, TBs: 3, MaxTBs: 2, Channels: 5, Steps: 5, Nops: 1, Deps: 2}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPeers(t *testing.T) {
	d := handInstrs()
	for id, want := range [][2]ir.Rank{{1, ir.None}, {2, 0}, {ir.None, 1}, {ir.None, ir.None}} {
		if to, from := d.SendPeer(ir.InstrID(id)), d.RecvPeer(ir.InstrID(id)); to != want[0] || from != want[1] {
			t.Errorf("instruction %d: got to %d from %d, want %v", id, to, from, want)
		}
	}
}
