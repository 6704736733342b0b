package plan_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
)

// A thread block of 65 operations is one more than MSCCL++'s executor has room for:
// such a plan is for other runtimes, and refused otherwise. What no plan can say is
// refused in both cases.
func TestWriteWide(t *testing.T) {
	p := writable(t)
	o := p.OneSided
	last := len(o.GPUs) - 1
	block := &o.GPUs[last].Blocks[len(o.GPUs[last].Blocks)-1]
	if int(block.End) != len(o.Ops) {
		t.Fatal("the last thread block ends with a loop")
	}
	nops := slices.Repeat([]ir.Op{{Kind: ir.OpSync, Parts: 1}}, 65-block.Len())
	o.Ops = append(o.Ops, nops...)
	block.End = int32(len(o.Ops))
	var b bytes.Buffer
	err := plan.Write(&b, p)
	if list := diag.Messages(err); len(list) != 1 || list[0].Code != "plan-limit" || b.Len() > 0 {
		t.Errorf("got %v and %d bytes, want the limit alone", err, b.Len())
	}
	if err := plan.WriteWide(&b, p); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b.Bytes(), []byte(`"nop"`)); n < len(nops) {
		t.Errorf("got %d nops, want at least %d", n, len(nops))
	}
	o.Ops[block.End-1] = ir.Op{Kind: ir.OpFlush, Via: ir.ChannelPort, Parts: 1}
	if err := plan.WriteWide(&b, p); err == nil {
		t.Error("a flush without a channel is written")
	}
}
