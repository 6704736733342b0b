package ir_test

import (
	"math"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// Without slots a step is one message, whatever its count and the size.
func TestDirectTransport(t *testing.T) {
	var direct ir.Transport
	for name, got := range map[string]ir.Transport{"msccl": ir.TargetMSCCL.Transport(ir.Direct), "rccl": ir.TargetRCCL.Transport(ir.Direct),
		"native": ir.TargetNative.Transport(ir.Direct)} {
		if got != direct {
			t.Errorf("%s: got %+v, want no slots", name, got)
		}
	}
	for _, size := range []int64{0, 1, 1 << 20, math.MaxInt64} {
		k := direct.Regime(size, 4)
		for _, count := range []int32{1, 71, 72, math.MaxInt32} {
			if n := ir.Messages(count, k); n != 1 {
				t.Errorf("%d bytes, %d chunks: got %d messages, want 1", size, count, n)
			}
		}
	}
	if got := direct.MaxBytesFor(100, 4); got != 0 {
		t.Errorf("MaxBytesFor: got %d, want 0, no limit", got)
	}
	for _, c := range []struct{ count, k, want int32 }{{0, 2, 0}, {1, 2, 1}, {2, 2, 1}, {3, 2, 2}, {math.MaxInt32, 2, 1 << 30}} {
		if got := ir.Messages(c.count, c.k); got != c.want {
			t.Errorf("Messages(%d, %d): got %d, want %d", c.count, c.k, got, c.want)
		}
	}
}

func TestExchanges(t *testing.T) {
	send := ir.Step{Kind: ir.Send, SendPeer: 1, RecvPeer: ir.None}
	recv := ir.Step{Kind: ir.Recv, SendPeer: ir.None, RecvPeer: 1}
	other, waits, reduces := recv, recv, recv
	other.RecvPeer = 2
	waits.DepEnd = 1
	reduces.Kind = ir.RecvReduceCopy
	for _, c := range []struct {
		name  string
		steps []ir.Step
		want  bool
	}{
		{"a send and a receive", []ir.Step{send, recv}, true},
		{"a receive from another rank", []ir.Step{send, other}, false},
		{"a receive that waits", []ir.Step{send, waits}, false},
		{"a receive that reduces", []ir.Step{send, reduces}, false},
		{"the other way round", []ir.Step{recv, send}, false},
		{"something between", []ir.Step{send, {Kind: ir.Nop}, recv}, false},
		{"nothing after it", []ir.Step{send}, false},
	} {
		if got := (&ir.ThreadBlock{Steps: c.steps}).Exchanges(0); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if (&ir.ThreadBlock{Steps: []ir.Step{send, recv}}).Exchanges(-1) {
		t.Error("step -1 exchanges")
	}
}
