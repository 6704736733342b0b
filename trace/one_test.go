package trace_test

import (
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// one begins a program of n ranks, an allgather of two chunks a rank.
func one(t *testing.T, n int32, protocol ir.Protocol) *trace.One {
	t.Helper()
	return oneWith(t, n, protocol, trace.OneOptions{ThreadsPerBlock: 1024, Alignment: 16})
}

func oneWith(t *testing.T, n int32, protocol ir.Protocol, o trace.OneOptions) *trace.One {
	t.Helper()
	b, err := trace.NewOne(ir.Spec{Name: "p", Coll: ir.NewCollective(ir.AllGather, n, 2, false), Protocol: protocol, Instances: 1, Fusion: true}, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func atLine(b *trace.One, n int32) ir.PosID { return b.Pos(diag.Pos{File: "p.star", Line: n, Col: 1}) }

// must stops the test at an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// ends makes both ends of a channel between ranks 0 and 1.
func ends(t *testing.T, b *trace.One, kind ir.ChannelKind) (there, back trace.OneChannel) {
	t.Helper()
	return must(b.Channel(kind, 1, 0, atLine(b, 100)))(t), must(b.Channel(kind, 0, 1, atLine(b, 101)))(t)
}

func slice(t *testing.T, b *trace.One, r ir.Rank, buf ir.BufferID, start, stop int64) trace.OneChunk {
	t.Helper()
	return must(b.Slice(b.Buffer(r, buf), start, stop, 0))(t)
}

// A program is the operations as they were recorded, in that order, with their
// thread blocks and positions.
func TestOneRecords(t *testing.T) {
	b := one(t, 2, ir.LL)
	first, second := must(b.Scratch(1, 2, 0))(t), must(b.Scratch(1, 4, 0))(t)
	if first.Offset != 0 || second.Offset != 2 || second.Size != 4 {
		t.Errorf("scratch of rank 1 is at %d and %d, want 0 and 2: one behind the other", first.Offset, second.Offset)
	}
	there, back := ends(t, b, ir.ChannelMemory)
	packets := must(b.Slice(second, 1, 3, 0))(t)
	ready := must(b.Semaphore(1, 0, 0))(t)
	in, out := slice(t, b, 0, ir.Input, 0, 2), slice(t, b, 1, ir.Output, 0, 2)
	for _, err := range []error{
		b.Move(ir.OpPutPackets, there, packets, in, []int32{4, 5}, atLine(b, 1)),
		b.Copy(ir.OpUnpackPackets, 1, out, packets, nil, atLine(b, 2)),
		b.SemaphoreOp(ir.OpSemaphoreRelease, ready, []int32{1}, ir.SyncBefore, atLine(b, 3)),
		b.Sync(ir.OpRelaxedSignal, back, nil, ir.SyncBoth, atLine(b, 4)),
		b.Loop(4096, 2, atLine(b, 5)),
		b.Copy(ir.OpCopy, 1, out, slice(t, b, 1, ir.Input, 0, 2), []int32{0}, atLine(b, 6)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b.EndLoop()
	if err := b.Sync(ir.OpWait, there, nil, ir.SyncNone, atLine(b, 7)); err != nil {
		t.Fatal(err)
	}
	tr, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"rank 0 ppkt memory on 0 i[0] x2 -> 1.s[3] x2 packets tb 4 5",
		"rank 1 upkt s[3] x2 packets -> o[0] x2",
		"rank 1 sem_release on 0 tb 1 sync before",
		"rank 1 rlxsignal memory on 0 sync both",
		"rank 1 copy i[0] x2 -> o[0] x2 tb 0 loop 0",
		"rank 0 wait memory on 0 sync none",
	}
	for i := range want {
		if got := tr.OpString(int32(i)); got != want[i] {
			t.Errorf("operation %d is %q, want %q", i, got, want[i])
		}
	}
	if len(tr.Ops) != len(want) || tr.GPUs[1].Scratch != 6 || tr.Pos(tr.Ops[4].Pos).Line != 6 {
		t.Errorf("got %d operations, %d chunks of scratch, operation 4 at %v", len(tr.Ops), tr.GPUs[1].Scratch, tr.Pos(tr.Ops[4].Pos))
	}
	if err := tr.Validate(); err != nil {
		t.Errorf("the trace is malformed: %v", err)
	}
	if _, err := b.Channel(ir.ChannelMemory, 1, 0, 0); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("a channel after the end: got %v", err)
	}
}

// A refused call leaves the program as it was.
func TestOneRefusedCallsChangeNothing(t *testing.T) {
	b := one(t, 2, ir.Simple)
	there, _ := ends(t, b, ir.ChannelMemory)
	was := text(t, b)
	in := slice(t, b, 0, ir.Input, 0, 2)
	for name, err := range map[string]error{
		"wrong rank": b.Move(ir.OpPut, there, in, in, nil, 0),
		"blocks":     b.Copy(ir.OpCopy, 0, slice(t, b, 0, ir.Output, 0, 2), in, []int32{-1}, 0),
		"packets":    b.Copy(ir.OpCopyToPackets, 0, slice(t, b, 0, ir.Output, 0, 2), in, nil, 0),
		"loop":       b.Loop(0, 1, 0),
	} {
		if err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
	if got := text(t, b); got != was {
		t.Errorf("the program was\n%sand is\n%s", was, got)
	}
}

func text(t *testing.T, b *trace.One) string {
	t.Helper()
	var s strings.Builder
	if err := b.Snapshot().WriteText(&s); err != nil {
		t.Fatal(err)
	}
	return s.String()
}

// A snapshot shares nothing with the program that goes on.
func TestOneSnapshot(t *testing.T) {
	b := one(t, 2, ir.Simple)
	there, _ := ends(t, b, ir.ChannelMemory)
	if err := b.Sync(ir.OpSignal, there, []int32{0}, ir.SyncBoth, atLine(b, 1)); err != nil {
		t.Fatal(err)
	}
	shot := b.Snapshot()
	if err := b.Sync(ir.OpSignal, there, []int32{1}, ir.SyncBoth, atLine(b, 2)); err != nil {
		t.Fatal(err)
	}
	if len(shot.Ops) != 1 || len(shot.Blocks) != 1 || b.Ops() != 2 {
		t.Errorf("the snapshot has %d operations, the program %d, want 1 and 2", len(shot.Ops), b.Ops())
	}
	if err := b.Complete(); err == nil {
		t.Error("two signals without a wait are no complete program")
	}
}

// In place, input and output are one memory: copying a part of it onto another
// that overlaps is refused under any names, onto itself it isn't.
func TestOneOverlap(t *testing.T) {
	coll := ir.NewCollective(ir.AllGather, 2, 2, true) // input i of rank r is output 2r+i
	b, err := trace.NewOne(ir.Spec{Name: "p", Coll: coll, Instances: 1}, trace.OneOptions{ThreadsPerBlock: 1, Alignment: 1})
	if err != nil {
		t.Fatal(err)
	}
	in := slice(t, b, 1, ir.Input, 0, 2)
	if err := b.Copy(ir.OpCopy, 1, slice(t, b, 1, ir.Output, 1, 3), in, nil, 0); err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("output[1:3] := input[0:2], which is output[2:4]: got %v", err)
	}
	if err := b.Copy(ir.OpCopy, 1, slice(t, b, 1, ir.Output, 2, 4), in, nil, 0); err != nil {
		t.Errorf("a copy onto itself: got %v", err)
	}
	if err := b.Copy(ir.OpCopy, 0, slice(t, b, 0, ir.Output, 2, 4), slice(t, b, 0, ir.Input, 0, 2), nil, 0); err != nil {
		t.Errorf("a copy of neighbors: got %v", err)
	}
}

// Loosely, as for MSCCL++'s own scripts, channels that carry only data need no
// other end, and a switch may reduce without broadcasting; signals still need
// their waits.
func TestOneLoose(t *testing.T) {
	loose := trace.OneOptions{ThreadsPerBlock: 1, Alignment: 1, Loose: true}
	build := func(o trace.OneOptions) *trace.One {
		b := oneWith(t, 2, ir.Simple, o)
		ch := must(b.Channel(ir.ChannelPort, 1, 0, atLine(b, 1)))(t)
		g := must(b.Switch([]ir.Rank{1, 0}, ir.Output, atLine(b, 2)))(t)
		if err := b.Sync(ir.OpFlush, ch, nil, ir.SyncBoth, atLine(b, 3)); err != nil {
			t.Fatal(err)
		}
		if err := b.SwitchReduce(g, 0, 0, 2, slice(t, b, 0, ir.Output, 0, 2), ir.ReduceSum, nil, atLine(b, 4)); err != nil {
			t.Fatal(err)
		}
		return b
	}
	if _, err := build(loose).Finish(); err != nil {
		t.Errorf("loosely: got %v", err)
	}
	_, err := build(trace.OneOptions{ThreadsPerBlock: 1, Alignment: 1}).Finish()
	var lines []int32
	for _, m := range diag.Messages(err) {
		lines = append(lines, m.Pos.Line)
	}
	if len(lines) != 2 || lines[0] != 1 || lines[1] != 4 {
		t.Errorf("strictly: got errors at lines %v, want 1 (the channel) and 4 (the reduction): %v", lines, err)
	}
	b := build(loose)
	ch := must(b.Channel(ir.ChannelMemory, 1, 0, atLine(b, 5)))(t)
	if err := b.Sync(ir.OpSignal, ch, nil, ir.SyncBoth, atLine(b, 6)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Finish(); err == nil || diag.Messages(err)[0].Code != "unpaired-channel" {
		t.Errorf("a signal to nobody: got %v", err)
	}
}

// Of many findings of one kind the first are told, and how many there are.
func TestOneManyFindings(t *testing.T) {
	b := one(t, 2, ir.Simple)
	for i := range int32(20) {
		must(b.Channel(ir.ChannelMemory, 1, 0, atLine(b, i+1)))(t)
	}
	_, err := b.Finish()
	list := diag.Messages(err)
	if len(list) != 9 || list[7].Pos.Line != 8 || list[8].Text != "program: there are 20 channels without another end in all" {
		t.Errorf("got %d messages, the last %v", len(list), list[len(list)-1])
	}
	if got, want := list[2].Text, "MemoryChannel(1, 0): the 3rd memory channel from rank 0 to rank 1 has no other end: rank 1 has none back"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOneRefusesHeaders(t *testing.T) {
	good := trace.OneOptions{ThreadsPerBlock: 1024, Alignment: 16}
	for _, tc := range []struct {
		change func(*ir.Spec, *trace.OneOptions)
		want   string
	}{
		{func(s *ir.Spec, _ *trace.OneOptions) { s.Coll = nil }, "no collective"},
		{func(s *ir.Spec, _ *trace.OneOptions) { s.Protocol = ir.Direct }, "protocol: got Direct, want Simple or LL"},
		{func(s *ir.Spec, _ *trace.OneOptions) { s.Instances = 0 }, "instances: got 0"},
		{func(_ *ir.Spec, o *trace.OneOptions) { o.ThreadsPerBlock = 1025 }, "num_threads_per_block: got 1025, want 1 to 1024"},
		{func(_ *ir.Spec, o *trace.OneOptions) { o.Alignment = 0 }, "buffer_alignment: got 0"},
		{func(_ *ir.Spec, o *trace.OneOptions) { o.MinBytes, o.MaxBytes = 2, 1 }, "message sizes: got 2 to 1 bytes"},
	} {
		spec, o := ir.Spec{Name: "p", Coll: ir.NewCollective(ir.AllGather, 2, 1, false), Instances: 1}, good
		tc.change(&spec, &o)
		if _, err := trace.NewOne(spec, o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}
