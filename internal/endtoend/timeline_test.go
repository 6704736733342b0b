package endtoend

import (
	"context"
	"io"
	"math"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	rt "github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
	"github.com/mscclsh/mscclsh/viz"
)

// Of every algorithm of the library each step of each tile is recorded once, in the
// order of its thread block, none ends before it begins, and the timeline has them
// all. So it is for the plans made of them.
func TestTimelinesOfTheLibrary(t *testing.T) {
	for _, name := range algorithms.ChunkRouting() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compiled(t, name)
			steps := func(rank ir.Rank, tb int32) []int32 {
				var list []int32
				for s := range p.GPUs[rank].TBs[tb].Steps {
					list = append(list, int32(s))
				}
				return list
			}
			// Two tiles: a slot holds half a chunk.
			checkTimeline(t, p, 2*chaosSlot*int64(p.Coll.NumChunks()), steps)
			plan, _, err := compiler.OneSided(context.Background(), p, compiler.OneSidedOptions{})
			if err != nil {
				return // not everything can be a plan
			}
			ops := func(rank ir.Rank, tb int32) []int32 {
				var list []int32
				span := plan.OneSided.GPUs[rank].Blocks[tb]
				for i := span.Start; i < span.End; i++ {
					if plan.OneSided.Ops[i].Kind == ir.OpPipeline {
						return nil // how often it turns depends on the size
					}
					list = append(list, i)
				}
				return list
			}
			checkTimeline(t, plan, 64*int64(p.Coll.NumChunks()), ops)
		})
	}
}

// checkTimeline runs p and compares what it records with the steps of its thread
// blocks, where they are known.
func checkTimeline(t *testing.T, p *ir.Program, bytes int64, steps func(rank ir.Rank, tb int32) []int32) {
	t.Helper()
	rep, err := cpu.Run(context.Background(), p, cpu.Options{Bytes: bytes, DType: rt.FP32, Seed: 1, AnySize: true, Events: true})
	if err != nil {
		t.Fatal(err)
	}
	type block struct {
		rank ir.Rank
		tb   int32
	}
	of := map[block][]ir.Event{}
	first := int64(math.MaxInt64)
	for i, e := range rep.Events {
		first = min(first, e.Begin)
		b := block{e.Rank, e.TB}
		if e.Begin < 0 || e.End < e.Begin {
			t.Fatalf("event %d: %+v", i, e)
		}
		of[b] = append(of[b], e)
	}
	if len(rep.Events) > 0 && first != 0 {
		t.Errorf("the first step begins at %d ns, want 0", first)
	}
	for rank := range p.GPUs {
		blocks := len(p.GPUs[rank].TBs)
		if p.OneSided != nil {
			blocks = len(p.OneSided.GPUs[rank].Blocks)
		}
		for tb := range int32(blocks) {
			want, got := steps(ir.Rank(rank), tb), of[block{ir.Rank(rank), tb}]
			if want == nil {
				continue
			}
			tiles := rep.Tiles
			if p.OneSided != nil {
				tiles = 1
			}
			if int64(len(got)) != int64(len(want))*tiles {
				t.Fatalf("rank %d thread block %d: %d events, want %d steps in %d tiles", rank, tb, len(got), len(want), tiles)
			}
			for i, e := range got {
				if e.Step != want[i%len(want)] || int(e.Tile) != i/len(want) || i > 0 && e.Begin < got[i-1].Begin {
					t.Fatalf("rank %d thread block %d: event %d is %+v, after %+v", rank, tb, i, e, got[max(i-1, 0)])
				}
			}
		}
	}
	if err := viz.Timeline(io.Discard, p, rep.Events, nil); err != nil {
		t.Error(err)
	}
}
