package checker

import (
	"context"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// ring is an in-place allreduce around a ring of n ranks with n chunks, fused,
// one thread block a rank: 2n-1 steps each.
func ring(n int32) *ir.Program {
	p := &ir.Program{
		Spec:      &ir.Spec{Name: "ring", Coll: ir.NewCollective(ir.AllReduce, n, n, true)},
		Transport: ir.Transport{Slots: 2, SlotBytes: 2 << 20},
		GPUs:      make([]ir.GPU, n),
	}
	for r := range n {
		tb := ir.ThreadBlock{Send: ir.Rank((r + 1) % n), Recv: ir.Rank((r + n - 1) % n)}
		add := func(kind ir.StepKind, chunk int32) {
			st := newStep(kind, &tb)
			at := ir.Place{Buf: ir.Input, Index: chunk}
			if kind.ReadsSrc() {
				st.Src = at
			}
			if kind.WritesDst() {
				st.Dst = at
			}
			tb.Steps = append(tb.Steps, st)
		}
		for k := range 2*n - 1 {
			chunk := (r - k + 2*n) % n
			switch {
			case k == 0:
				add(ir.Send, chunk)
			case k < n-1:
				add(ir.RecvReduceSend, chunk)
			case k == n-1:
				add(ir.RecvReduceCopySend, chunk)
			case k < 2*n-2:
				add(ir.RecvCopySend, chunk)
			default:
				add(ir.Recv, chunk)
			}
		}
		p.GPUs[r] = ir.GPU{Input: n, Output: n, TBs: []ir.ThreadBlock{tb}}
	}
	return p
}

// splitRing is the ring with separate thread blocks for sending and receiving,
// and dependencies only from a receive to the send of what it received; that the
// last receive of a chunk comes after its first send is known through the other
// ranks alone.
func splitRing(n int32) *ir.Program {
	p := ring(n)
	for r := range p.GPUs {
		g := &p.GPUs[r]
		old := g.TBs[0]
		send := ir.ThreadBlock{Send: old.Send, Recv: ir.None}
		recv := ir.ThreadBlock{Send: ir.None, Recv: old.Recv}
		for i, st := range old.Steps {
			in := newStep(ir.Recv, &recv)
			in.Src, in.Dst, in.Post = st.Src, ir.Place{Buf: ir.Input, Index: max(st.Src.Index, st.Dst.Index)}, true
			if i > 0 {
				if st.Kind.Reduces() {
					in.Kind = ir.RecvReduceCopy
				}
				recv.Steps = append(recv.Steps, in)
			}
			if i < len(old.Steps)-1 {
				out := newStep(ir.Send, &send)
				out.Src = in.Dst
				if out.DepStart = int32(len(p.Deps)); i > 0 {
					p.Deps = append(p.Deps, ir.Dep{TB: 1, Step: int32(i - 1)})
				}
				out.DepEnd = int32(len(p.Deps))
				send.Steps = append(send.Steps, out)
			}
		}
		g.TBs = []ir.ThreadBlock{send, recv}
	}
	return p
}

// allPairs is the direct allreduce: every rank sends chunk j to rank j, reduces
// what arrives, and sends the sum to all. A thread block a peer, and one more
// that adds up.
func allPairs(n int32) *ir.Program {
	p := &ir.Program{
		Spec:      &ir.Spec{Name: "allpairs", Coll: ir.NewCollective(ir.AllReduce, n, n, true)},
		Transport: ir.Transport{Slots: 8, SlotBytes: 32 << 10},
		GPUs:      make([]ir.GPU, n),
	}
	for r := range n {
		g := &p.GPUs[r]
		*g = ir.GPU{Input: n, Output: n, Scratch: n}
		sum := ir.ThreadBlock{Send: ir.None, Recv: ir.None}
		for peer := range n {
			if peer == r {
				continue
			}
			tb := ir.ThreadBlock{Send: ir.Rank(peer), Recv: ir.Rank(peer)}
			t := int32(len(g.TBs))
			out, in := newStep(ir.Send, &tb), newStep(ir.Recv, &tb)
			out.Src = ir.Place{Buf: ir.Input, Index: peer}
			in.Dst, in.Post = ir.Place{Buf: ir.FirstScratch, Index: peer}, true
			share, take := newStep(ir.Send, &tb), newStep(ir.Recv, &tb)
			share.Src, take.Dst = ir.Place{Buf: ir.Input, Index: r}, ir.Place{Buf: ir.Input, Index: peer}
			share.DepStart = int32(len(p.Deps))
			p.Deps = append(p.Deps, ir.Dep{TB: n - 1, Step: n - 2})
			share.DepEnd = int32(len(p.Deps))
			add := newStep(ir.Reduce, &sum)
			add.Src, add.Dst, add.Post = in.Dst, share.Src, true
			add.DepStart = int32(len(p.Deps))
			p.Deps = append(p.Deps, ir.Dep{TB: t, Step: 1})
			add.DepEnd = int32(len(p.Deps))
			tb.Steps = []ir.Step{out, in, share, take}
			sum.Steps = append(sum.Steps, add)
			g.TBs = append(g.TBs, tb)
		}
		g.TBs = append(g.TBs, sum)
	}
	return p
}

func TestKnownPrograms(t *testing.T) {
	for _, n := range []int32{2, 3, 4, 8} {
		for name, p := range map[string]*ir.Program{"ring": ring(n), "split ring": splitRing(n), "all pairs": allPairs(n)} {
			for _, p.Protocol = range []ir.Protocol{ir.Simple, ir.LL} {
				if rep := check(t, p); !rep.OK || len(rep.Messages) > 0 {
					t.Errorf("%s of %d, %v: %v", name, n, p.Protocol, rep.Messages)
				}
			}
		}
	}
}

// withFlags makes a program one of protocol LL.
func withFlags(p *ir.Program) *ir.Program {
	p.Protocol = ir.LL
	return p
}

func benchmark(b *testing.B, p *ir.Program) {
	b.ReportAllocs()
	for b.Loop() {
		rep, err := Check(context.Background(), p, Options{})
		if err != nil || !rep.OK {
			b.Fatal(err, rep.Messages)
		}
	}
	b.ReportMetric(float64(p.Count().Steps), "steps")
}

func BenchmarkRing1024(b *testing.B)      { benchmark(b, ring(1024)) }
func BenchmarkSplitRing1024(b *testing.B) { benchmark(b, splitRing(1024)) }
func BenchmarkSplitRing256(b *testing.B)  { benchmark(b, splitRing(256)) }

// With LL the same pairs are to be ordered, by fewer edges.
func BenchmarkSplitRing1024LL(b *testing.B) { benchmark(b, withFlags(splitRing(1024))) }
func BenchmarkAllPairs256LL(b *testing.B)   { benchmark(b, withFlags(allPairs(256))) }
func BenchmarkAllPairs64(b *testing.B)      { benchmark(b, allPairs(64)) }
func BenchmarkAllPairs256(b *testing.B)     { benchmark(b, allPairs(256)) }
