package plan_test

import (
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
)

// TestAlikeSwitches: two switch channels of the same ranks on the same buffer stay
// two, whatever other channels stand between them, and are written as two. Instances
// of a program have one each.
func TestAlikeSwitches(t *testing.T) {
	const input = `{"channel_type": "switch", "buffer_type": "i", "rank_groups": [{"size": 2, "ranks": [0, 1]}]}`
	text := file(t, "two.json")
	if strings.Count(text, input) != 2 {
		t.Fatal("two.json has not one such channel a rank")
	}
	// Rank 0 has o, i and one more i; rank 1 i, one more i, and o.
	p := mustRead(t, strings.ReplaceAll(text, input, input+", "+input), false).Program
	var bufs []ir.BufferID
	for _, g := range p.OneSided.Groups {
		bufs = append(bufs, g.Buf)
	}
	if len(bufs) != 3 || bufs[0] != ir.Output || bufs[1] != ir.Input || bufs[2] != ir.Input {
		t.Fatalf("got groups on buffers %v, want output, input, input", bufs)
	}
	var out strings.Builder
	if _, err := plan.WriteAsWritten(&out, p); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), input); got != 4 {
		t.Errorf("%d such channels are written, want 2 for each of 2 ranks:\n%s", got, out.String())
	}
}
