package viz_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/viz"
)

// What waits for a slot that never gets free is marked too, and what waits for a
// message that nobody sends; the order of what runs fits the slots.
func TestStuckForSlots(t *testing.T) {
	text := "program " + header + `transport slots %d bytes 32768
window min 0 max 0
gpu 0 input=4 output=1 scratch=0
tb 0 send=1 recv=1 ch=0
0 s i[0] x1 to 1
1 s i[1] x1 to 1
2 s i[2] x1 to 1
3 r -> o[0] x1 from 1
gpu 1 input=4 output=1 scratch=0
tb 0 send=0 recv=0 ch=0
0 s i[0] x1 to 0
1 s i[1] x1 to 0
2 r -> o[0] x1 from 0
gpu 2 input=2 output=1 scratch=0
tb 0 send=-1 recv=1 ch=0
0 r -> o[0] x1 from 1
`
	for slots, want := range map[int][]int32{
		1: {0, 4},
		2: {0, 1, 4, 5, 6, 2, 3},
		3: {0, 1, 2, 4, 5, 6, 3},
	} {
		pic, err := viz.Schedule(parsed(t, ir.ParseProgram, fmt.Sprintf(text, slots)))
		if err != nil {
			t.Fatal(err)
		}
		order := slices.Clone(pic.Order)
		for v := range pic.Nodes {
			if got := slices.Contains(order, int32(v)); got == pic.Nodes[v].Stuck {
				t.Errorf("%d slots: step %d is in the order: %v, and stuck: %v", slots, v, got, pic.Nodes[v].Stuck)
			}
		}
		before := func(a, b int32) bool { return slices.Index(order, a) < slices.Index(order, b) }
		if slots == 2 && !before(6, 2) {
			t.Errorf("%v: the third send comes before the slot that it needs is free", order)
		}
		slices.Sort(order)
		slices.Sort(want)
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("%d slots: %s", slots, diff)
		}
	}
}
