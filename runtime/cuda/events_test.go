package cuda_test

import (
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// Every step of every tile is recorded once, and those of a thread block in their
// order; nothing is received before somebody begins to send it.
func TestEvents(t *testing.T) {
	lib := library(t)
	for _, c := range []struct {
		name  string
		args  map[string]string
		bytes int64
	}{
		{"allreduce_ring", map[string]string{"ranks": "3", "protocol": "Simple"}, 12 << 10},
		{"allreduce_allpairs", map[string]string{"ranks": "2", "protocol": "LL128", "instances": "2"}, 1 << 20},
		{"alltoall_direct", map[string]string{"ranks": "3", "protocol": "LL"}, 3 << 10},
		{"allgather_ring", map[string]string{"ranks": "2", "protocol": "Direct"}, 1 << 10},
	} {
		p := script(t, c.name, c.args, compiler.Options{})
		x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0, 1}})
		if r := right(t, x, cuda.Options{Bytes: c.bytes}); r.Events != nil {
			t.Errorf("%s: %d events that nobody asked for", c.name, len(r.Events))
		}
		r := right(t, x, cuda.Options{Bytes: c.bytes, Events: true})
		seen, first := map[ir.Event]int{}, r.Events[0].Begin
		last := map[[2]int32]ir.Event{}
		for _, e := range r.Events {
			first = min(first, e.Begin)
			block := [2]int32{int32(e.Rank), e.TB}
			if before, is := last[block]; e.End < e.Begin || is && (e.Begin < before.Begin || e.End < before.End) {
				t.Fatalf("%s: %+v after %+v", c.name, e, before)
			}
			last[block] = e
			seen[ir.Event{Rank: e.Rank, TB: e.TB, Step: e.Step, Tile: e.Tile}]++
		}
		if first != 0 {
			t.Errorf("%s: the first step begins at %d", c.name, first)
		}
		want := 0
		for rank := range p.GPUs {
			for tb := range p.GPUs[rank].TBs {
				for step := range p.GPUs[rank].TBs[tb].Steps {
					for tile := range int32(r.Tiles) {
						want++
						if n := seen[ir.Event{Rank: ir.Rank(rank), TB: int32(tb), Step: int32(step), Tile: tile}]; n != 1 {
							t.Errorf("%s: rank %d thread block %d step %d tile %d is recorded %d times", c.name, rank, tb, step, tile, n)
						}
					}
				}
			}
		}
		if want != len(r.Events) {
			t.Errorf("%s: %d events, want %d", c.name, len(r.Events), want)
		}
	}
}
