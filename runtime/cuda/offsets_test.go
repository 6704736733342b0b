package cuda

import (
	"maps"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// Rank 0 sends to rank 1, which sends to rank 2, which sends to rank 0. All is done at
// time 100 to 200 of a clock that all share; the devices' own go by skew from it.
func TestOffsets(t *testing.T) {
	send := func(to int32) cStep { return cStep{kind: int32(ir.Send), sendPeer: to, recvPeer: ir.None} }
	recv := func(from int32) cStep { return cStep{kind: int32(ir.Recv), sendPeer: ir.None, recvPeer: from} }
	f := &flat{tbs: []int32{1, 1, 1}, perTB: []int32{2, 2, 2},
		steps: []cStep{send(1), recv(2), recv(0), send(2), recv(1), send(0)}}
	at := [][4]int64{{100, 110, 110, 200}, {90, 130, 130, 140}, {80, 160, 160, 170}} // of each rank: two steps
	for _, c := range []struct {
		name    string
		devices []int32
		skew    [3]int64
		want    map[int32]int64
	}{
		{"one clock", []int32{7, 7, 7}, [3]int64{}, map[int32]int64{7: 0}},
		{"clocks that fit", []int32{0, 1, 2}, [3]int64{0, -20, -20}, map[int32]int64{0: 0, 1: 0, 2: 0}},
		// Rank 1's receive ends at 30: at 100, when rank 0 begins, at the earliest.
		{"a late clock", []int32{0, 1, 1}, [3]int64{0, -100, -100}, map[int32]int64{0: 0, 1: 70}},
		// Then rank 1 sends at 130-100+70 = 100 to rank 2, whose receive ended at -40.
		{"two of them", []int32{0, 1, 2}, [3]int64{0, -100, -200}, map[int32]int64{0: 0, 1: 70, 2: 140}},
		// Rank 2's clock is ahead: its send at 660 is received by rank 0 at 200.
		{"an early clock", []int32{0, 1, 2}, [3]int64{0, 0, 500}, map[int32]int64{0: 460, 1: 430, 2: 0}},
	} {
		var events []cEvent
		for r := range int32(3) {
			for s := range int32(2) {
				events = append(events, cEvent{begin: at[r][2*s] + c.skew[r], end: at[r][2*s+1] + c.skew[r], rank: r, step: s})
			}
		}
		if got := f.offsets(c.devices, events); !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
