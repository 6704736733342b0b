package compiler_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
)

// twoShot is an allreduce in place that copies nothing: ranks tell each other that
// they are ready, each adds up its chunk from where it is, and puts the sum there.
func twoShot(n, instances int32) *ir.OneTrace {
	s := newScript(ir.NewCollective(ir.AllReduce, n, n, true), ir.Simple, instances)
	for r := range n {
		for _, q := range others(n, r) {
			s.memory(r, q)
		}
	}
	channel := func(r, q int32) int32 { return int32(slices.Index(others(n, r), q)) }
	for r := range n {
		for _, relaxed := range []bool{true, false} {
			signal, wait := ir.OpSignal, ir.OpWait
			if relaxed {
				signal, wait = ir.OpRelaxedSignal, ir.OpRelaxedWait
			}
			own := at(r, ir.Input, r, 1)
			for _, q := range others(n, r) {
				if !relaxed {
					s.via(ir.OpReadReduce, r, channel(r, q), 0, ir.SyncNone, own, own, at(q, ir.Input, r, 1))
				}
			}
			for _, q := range others(n, r) {
				if !relaxed {
					s.via(ir.OpPut, r, channel(r, q), 0, ir.SyncNone, at(q, ir.Input, r, 1), own)
				}
			}
			for _, q := range others(n, r) {
				s.via(signal, r, channel(r, q), 0, ir.SyncBefore)
			}
			for _, q := range others(n, r) {
				s.via(wait, r, channel(r, q), 0, ir.SyncAfter)
			}
		}
	}
	return s.trace()
}

// pipelined is an allgather among two ranks in three thread blocks: one copies into
// scratch, one puts that to the other rank's, one copies what arrives there into place.
func pipelined() *ir.OneTrace {
	s := newScript(ir.NewCollective(ir.AllGather, 2, 1, false), ir.Simple, 1)
	s.scratch(2)
	s.Loops = []ir.TraceLoop{{UnitBytes: 64, Chunks: 1}}
	for r := range int32(2) {
		q := 1 - r
		ready, data, sem := s.memory(r, q), s.memory(r, q), s.semaphore(r, 0)
		s.loop = ir.None
		s.local(ir.OpCopy, r, 0, at(r, ir.Output, r, 1), at(r, ir.Input, 0, 1))
		s.via(ir.OpRelaxedSignal, r, ready, 1, ir.SyncBefore)
		s.via(ir.OpRelaxedWait, r, ready, 1, ir.SyncAfter)
		if r == 1 {
			s.Loops = append(s.Loops, s.Loops[0])
		}
		s.loop = r
		s.local(ir.OpCopy, r, 0, at(r, ir.FirstScratch, r, 1), at(r, ir.Input, 0, 1))
		s.sem(ir.OpSemaphoreRelease, r, sem, 0, ir.SyncBefore)
		s.sem(ir.OpSemaphoreAcquire, r, sem, 1, ir.SyncAfter)
		s.via(ir.OpPut, r, data, 1, ir.SyncNone, at(q, ir.FirstScratch, r, 1), at(r, ir.FirstScratch, r, 1))
		s.via(ir.OpSignal, r, data, 1, ir.SyncBefore)
		s.via(ir.OpWait, r, data, 2, ir.SyncAfter)
		s.local(ir.OpCopy, r, 2, at(r, ir.Output, q, 1), at(r, ir.FirstScratch, q, 1))
	}
	return s.trace()
}

// withoutOp is p without operation i, and, of operations with several channels or
// semaphores, without number ref of them alone.
func withoutOp(p *ir.Program, i int32, ref int) *ir.Program {
	q, o := *p, *p.OneSided
	o.GPUs = slices.Clone(o.GPUs)
	o.Ops = slices.Clone(o.Ops)
	q.OneSided = &o
	if op := &o.Ops[i]; op.Refs.Len() > 1 {
		refs := slices.Clone(o.RefsOf(op))
		refs = slices.Delete(refs, ref, ref+1)
		op.Refs = ir.Span{Start: int32(len(o.Refs)), End: int32(len(o.Refs) + len(refs))}
		o.Refs = append(slices.Clone(o.Refs), refs...)
		return &q
	}
	o.Ops = slices.Delete(o.Ops, int(i), int(i)+1)
	shift := func(s *ir.Span) {
		if s.Start > i {
			s.Start--
		}
		if s.End > i {
			s.End--
		}
	}
	for g := range o.GPUs {
		o.GPUs[g].Blocks = slices.Clone(o.GPUs[g].Blocks)
		for b := range o.GPUs[g].Blocks {
			shift(&o.GPUs[g].Blocks[b])
		}
	}
	for k := range o.Ops {
		if o.Ops[k].Kind == ir.OpPipeline {
			shift(&o.Ops[k].Body)
		}
	}
	return &q
}

// needless reports whether nothing that stands between the meetings before and after
// nop i needs it: no data that conflicts, unless packets order it, nothing done before it that
// is announced after it, nothing waited for before it that is relied on after it.
func needless(p *ir.Program, i int32) bool {
	for r := range p.GPUs {
		for b := range p.OneSided.GPUs[r].Blocks {
			if list := unrolled(p, ir.Rank(r), int32(b)); slices.Contains(list, i) {
				return needlessIn(p, list, i)
			}
		}
	}
	return false
}

// unrolled are the operations of a block, bodies of pipelines twice.
func unrolled(p *ir.Program, r ir.Rank, b int32) []int32 {
	var list []int32
	span := p.OneSided.GPUs[r].Blocks[b]
	for k := span.Start; k < span.End; k++ {
		op := &p.OneSided.Ops[k]
		if op.Kind != ir.OpPipeline {
			list = append(list, k)
			continue
		}
		for range 2 {
			for j := op.Body.Start; j < op.Body.End; j++ {
				list = append(list, j)
			}
		}
	}
	return list
}

func needlessIn(p *ir.Program, list []int32, nop int32) bool {
	meets := func(k int32) bool {
		kind := p.OneSided.Ops[k].Kind
		return kind == ir.OpSync || kind == ir.OpBarrier
	}
	for at, k := range list {
		if k != nop {
			continue
		}
		for x := at - 1; x >= 0 && !meets(list[x]); x-- {
			for y := at + 1; y < len(list) && !meets(list[y]); y++ {
				if needs(p, list[x], list[y]) {
					return false
				}
			}
		}
	}
	return true
}

// byPackets reports whether unit u of operation x sends a packet that unit v of operation y
// waits for, straight or by way of other operations that pass it on.
func byPackets(p *ir.Program, x, u, y, v int32) bool {
	o := p.OneSided
	type unit struct{ op, unit int32 }
	seen := map[unit]bool{}
	todo := []unit{{x, u}}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		for _, d := range o.Destinations(&o.Ops[at.op]) {
			for k := range o.Ops {
				for _, s := range o.Sources(&o.Ops[k]) {
					next := unit{int32(k), d.Index + at.unit - s.Index}
					if !d.Packets || !s.Packets || d.Rank != s.Rank || next.unit < 0 || next.unit >= s.Size || seen[next] {
						continue
					}
					if seen[next] = true; next == (unit{y, v}) {
						return true
					}
					todo = append(todo, next)
				}
			}
		}
	}
	return false
}

// packetsOrder reports whether packets order every write of operation y after the read of
// operation x from the same chunk.
func packetsOrder(p *ir.Program, x, y int32) bool {
	o := p.OneSided
	for _, s := range o.Sources(&o.Ops[x]) {
		for _, d := range o.Destinations(&o.Ops[y]) {
			for c := max(s.Index, d.Index); s.Rank == d.Rank && s.Buf == d.Buf && c < min(s.Index+s.Size, d.Index+d.Size); c++ {
				if !byPackets(p, x, c-s.Index, y, c-d.Index) {
					return false
				}
			}
		}
	}
	for _, d := range o.Destinations(&o.Ops[x]) {
		for _, e := range append(slices.Clone(o.Sources(&o.Ops[y])), o.Destinations(&o.Ops[y])...) {
			if d.Rank == e.Rank && d.Buf == e.Buf && d.Index < e.Index+e.Size && e.Index < d.Index+d.Size {
				return false
			}
		}
	}
	return true
}

// needs reports whether a meeting between operations x and y of a block does anything.
func needs(p *ir.Program, x, y int32) bool {
	o := p.OneSided
	a, b := &o.Ops[x], &o.Ops[y]
	takes := func(k ir.OpKind) bool {
		return k == ir.OpWait || k == ir.OpRelaxedWait || k == ir.OpSemaphoreAcquire
	}
	if a.Src.Len() == 0 || b.Src.Len() == 0 {
		return (a.Src.Len() > 0 || takes(a.Kind)) && !takes(b.Kind)
	}
	for _, w := range [2][2][]ir.Operand{{o.Destinations(a), append(slices.Clone(o.Sources(b)), o.Destinations(b)...)},
		{o.Destinations(b), append(slices.Clone(o.Sources(a)), o.Destinations(a)...)}} {
		for _, d := range w[0] {
			for _, e := range w[1] {
				if d.Rank == e.Rank && d.Buf == e.Buf && d.Index < e.Index+e.Size && e.Index < d.Index+d.Size {
					return !packetsOrder(p, x, y)
				}
			}
		}
	}
	return false
}

// TestOneMutants takes one nop, signal, wait, acquire or release out of programs, each in
// turn: the check has to notice, or the nop to be needless, or the other judge to find
// no fault with it in many orders of three launches.
func TestOneMutants(t *testing.T) {
	type score struct{ all, caught, needless, same int }
	scores := map[ir.OpKind]*score{}
	for _, trace := range []*ir.OneTrace{allreducePackets(2, false), allreducePackets(3, true), alltoallRing(2, 2), alltoallRing(3, 1),
		twoShot(2, 1), twoShot(3, 2), pipelined()} {
		p := compileOne(t, trace, compiler.Options{Target: ir.TargetNative})
		base := checkOne(t, p)
		if !base.OK || base.Races > 0 {
			t.Fatalf("%v\n%s", base.Messages, programText(t, p))
		}
		for i := range int32(len(p.OneSided.Ops)) {
			op := &p.OneSided.Ops[i]
			if op.Src.Len() > 0 || op.Kind == ir.OpPipeline {
				continue
			}
			s := scores[op.Kind]
			if s == nil {
				s = &score{}
				scores[op.Kind] = s
			}
			for ref := range max(1, op.Refs.Len()) {
				q := withoutOp(p, i, ref)
				if err := q.Validate(); err != nil {
					t.Fatal(err)
				}
				s.all++
				rep := checkOne(t, q)
				switch {
				case !rep.OK || rep.Races+rep.RacesAcross > base.Races+base.RacesAcross || len(rep.Messages) > len(base.Messages):
					s.caught++
				case op.Kind == ir.OpSync && needless(p, i):
					s.needless++
				case len(trace.Loops) == 0 && innocent(q):
					s.same++
				default:
					t.Errorf("%s: operation %d (%s) is missing, and nobody notices:\n%s", trace.Coll, i, op.Kind, programText(t, p))
				}
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(scores)) {
		s := scores[kind]
		t.Logf("%-12s %3d: %3d caught, %3d needless, %3d the same for the other judge", kind, s.all, s.caught, s.needless, s.same)
	}
}

// innocent reports whether the other judge accepts p in many orders.
func innocent(p *ir.Program) bool {
	for seed := range uint64(100) {
		if compiler.RunLaunches(p, rand.New(rand.NewPCG(seed, 2)), 3) != nil {
			return false
		}
	}
	return true
}
