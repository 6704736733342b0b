package compiler_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
)

// oneScript writes a trace the way that a one-sided script does, operation by operation.
type oneScript struct {
	*ir.OneTrace
	loop int32
}

func newScript(coll *ir.Collective, protocol ir.Protocol, instances int32) *oneScript {
	t := &ir.OneTrace{AutoSync: true, ThreadsPerBlock: 1024, Alignment: 16, DoubleScratch: protocol == ir.LL,
		GPUs: make([]ir.TraceGPU, coll.Ranks)}
	t.Spec = &ir.Spec{Name: "script", Coll: coll, Protocol: protocol, Instances: instances, Interleaved: true, Fusion: true}
	return &oneScript{OneTrace: t, loop: ir.None}
}

// scratch gives every rank n chunks.
func (s *oneScript) scratch(n int32) {
	for r := range s.GPUs {
		s.GPUs[r].Scratch = n
	}
}

// memory opens a memory channel of rank r to a peer, and returns its number.
func (s *oneScript) memory(r, peer int32) int32 { return s.channel(ir.ChannelMemory, r, peer) }

func (s *oneScript) channel(kind ir.ChannelKind, r, peer int32) int32 {
	g := &s.GPUs[r]
	g.Channels = append(g.Channels, ir.TraceChannel{Kind: kind, Peer: ir.Rank(peer), Pair: ir.None})
	return int32(len(g.Channels) - 1)
}

func (s *oneScript) semaphore(r, initial int32) int32 {
	g := &s.GPUs[r]
	g.Semaphores = append(g.Semaphores, ir.TraceSemaphore{Initial: initial})
	return int32(len(g.Semaphores) - 1)
}

// at is chunks of a rank; packed has their packets.
func at(r int32, buf ir.BufferID, index, size int32) ir.Operand {
	return ir.Operand{Rank: ir.Rank(r), Group: ir.None, Buf: buf, Index: index, Size: size}
}

func packed(r, index, size int32) ir.Operand {
	a := at(r, ir.FirstScratch, index, size)
	a.Packets = true
	return a
}

// anyBlock leaves the thread block to the compiler.
const anyBlock = ir.None

// add appends an operation of rank r.
func (s *oneScript) add(op ir.TraceOp, tbs []int32, dst []ir.Operand, src ...ir.Operand) {
	op.Src = ir.Span{Start: int32(len(s.Operands)), End: int32(len(s.Operands) + len(src))}
	s.Operands = append(s.Operands, src...)
	op.Dst = ir.Span{Start: op.Src.End, End: op.Src.End + int32(len(dst))}
	s.Operands = append(s.Operands, dst...)
	op.Blocks.Start = int32(len(s.Blocks))
	for _, b := range tbs {
		if b != anyBlock {
			s.Blocks = append(s.Blocks, b)
		}
	}
	op.Blocks.End = int32(len(s.Blocks))
	op.Loop = s.loop
	op.Pos = 0
	s.Ops = append(s.Ops, op)
}

// via is an operation on channel c of rank r.
func (s *oneScript) via(kind ir.OpKind, r, c, tb int32, sync ir.DataSync, operands ...ir.Operand) {
	op := ir.TraceOp{Kind: ir.TraceOf(kind), Via: s.GPUs[r].Channels[c].Kind, Rank: ir.Rank(r), Ref: c, Sync: sync}
	if len(operands) == 0 {
		s.add(op, []int32{tb}, nil)
		return
	}
	s.add(op, []int32{tb}, operands[:1], operands[1:]...)
}

// local is an operation of rank r alone: destination, then sources.
func (s *oneScript) local(kind ir.OpKind, r, tb int32, dst ir.Operand, src ...ir.Operand) {
	s.add(ir.TraceOp{Kind: ir.TraceOf(kind), Rank: ir.Rank(r), Ref: ir.None}, []int32{tb}, []ir.Operand{dst}, src...)
}

func (s *oneScript) sem(kind ir.OpKind, r, number, tb int32, sync ir.DataSync) {
	s.add(ir.TraceOp{Kind: ir.TraceOf(kind), Rank: ir.Rank(r), Ref: number, Sync: sync}, []int32{tb}, nil)
}

// trace is the finished trace.
func (s *oneScript) trace() *ir.OneTrace {
	s.PairChannels()
	return s.OneTrace
}

// tester is what testing.TB and rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// compileOne compiles a trace and checks the form of what comes out.
func compileOne(t tester, trace *ir.OneTrace, o compiler.Options) *ir.Program {
	t.Helper()
	p, err := compiler.CompileOneSided(context.Background(), trace, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatalf("%v\n%s", err, programText(t, p))
	}
	return p
}

func checkOne(t tester, p *ir.Program) *checker.Report {
	t.Helper()
	r, err := checker.Check(context.Background(), p, checker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// holds fails unless p is right, and has no races.
func holds(t tester, p *ir.Program) {
	t.Helper()
	if r := checkOne(t, p); !r.OK || r.Races+r.RacesAcross > 0 {
		t.Errorf("%s: %v\n%s", r.Summary(), r.Messages, programText(t, p))
	}
}

func traceText(t tester, trace *ir.OneTrace) string {
	t.Helper()
	var b bytes.Buffer
	if err := trace.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func programText(t tester, p *ir.Program) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// blockText lists the operations of a rank's thread blocks, a line each: "tb number".
func blockText(p *ir.Program, rank ir.Rank) string {
	var b strings.Builder
	o := p.OneSided
	for tb, span := range o.GPUs[rank].Blocks {
		fmt.Fprintf(&b, "tb %d\n", tb)
		for i := span.Start; i < span.End; i++ {
			fmt.Fprintf(&b, "  %s\n", p.OpString(rank, i))
			for j := o.Ops[i].Body.Start; j < o.Ops[i].Body.End; j++ {
				fmt.Fprintf(&b, "    %s\n", p.OpString(rank, j))
			}
		}
	}
	return b.String()
}

// wantBlocks compares the thread blocks of a rank with what they should be, lines of
// which indentation means nothing.
func wantBlocks(t tester, p *ir.Program, rank ir.Rank, want string) {
	t.Helper()
	trim := func(s string) string {
		var lines []string
		for _, l := range strings.Split(s, "\n") {
			if l = strings.TrimSpace(l); l != "" {
				lines = append(lines, l)
			}
		}
		return strings.Join(lines, "\n")
	}
	if got := trim(blockText(p, rank)); got != trim(want) {
		t.Errorf("rank %d: got\n%s\nwant\n%s", rank, got, trim(want))
	}
}

// anywhere is t without its thread blocks.
func anywhere(t *ir.OneTrace) *ir.OneTrace {
	u := *t
	u.Ops = slices.Clone(t.Ops)
	for i := range u.Ops {
		u.Ops[i].Blocks = ir.Span{}
	}
	return &u
}

// others are the ranks but r.
func others(n, r int32) []int32 {
	var list []int32
	for q := range n {
		if q != r {
			list = append(list, q)
		}
	}
	return list
}

// allreducePackets is an allreduce by packets among n ranks: each rank sends its part of
// the input to the rank that adds it up, which sends the sum to all. Thread block t
// adds chunk t of the rank's part. free leaves thread blocks out.
func allreducePackets(n int32, free bool) *ir.OneTrace {
	s := newScript(ir.NewCollective(ir.AllReduce, n, n*n, true), ir.LL, 1)
	s.scratch(2 * (n - 1) * n)
	tb := func(b int32) int32 {
		if free {
			return anyBlock
		}
		return b
	}
	slot := func(from, to int32) int32 {
		if from < to {
			return from
		}
		return from - 1
	}
	channel := map[[2]int32]int32{}
	for r := range n {
		for _, q := range others(n, r) {
			channel[[2]int32{r, q}] = s.memory(r, q)
		}
	}
	for r := range n {
		for _, q := range others(n, r) {
			s.via(ir.OpPutPackets, r, channel[[2]int32{r, q}], tb(slot(q, r)), ir.SyncNone,
				packed(q, slot(r, q)*n, n), at(r, ir.Input, q*n, n))
		}
	}
	for r := range n {
		for i := range n {
			own := at(r, ir.Input, r*n+i, 1)
			src := []ir.Operand{own}
			for _, q := range others(n, r) {
				src = append(src, packed(r, slot(q, r)*n+i, 1))
			}
			s.local(ir.OpReducePackets, r, tb(i), own, src...)
			for _, q := range others(n, r) {
				s.via(ir.OpPutPackets, r, channel[[2]int32{r, q}], tb(i), ir.SyncNone, packed(q, n*(n-1)+slot(r, q)*n+i, 1), own)
			}
		}
	}
	for r := range n {
		for _, q := range others(n, r) {
			s.local(ir.OpUnpackPackets, r, tb(q), at(r, ir.Input, q*n, n), packed(r, n*(n-1)+slot(q, r)*n, n))
		}
	}
	return s.trace()
}

// alltoallRing is an in-place alltoall among n ranks in two thread blocks: one puts to
// one rank after another, the other copies what has arrived.
func alltoallRing(n, instances int32) *ir.OneTrace {
	s := newScript(ir.NewCollective(ir.AllToAll, n, 1, true), ir.Simple, instances)
	s.scratch(n - 1)
	type end = [2]int32
	data, meet, sem := map[end]int32{}, map[end]int32{}, map[end]int32{}
	for r := range n {
		for _, q := range others(n, r) {
			data[end{r, q}], meet[end{r, q}], sem[end{r, q}] = s.memory(r, q), s.memory(r, q), s.semaphore(r, 0)
		}
	}
	for r := range n {
		for _, q := range others(n, r) {
			s.via(ir.OpRelaxedSignal, r, meet[end{r, q}], 0, ir.SyncBoth)
		}
		for _, q := range others(n, r) {
			s.via(ir.OpRelaxedWait, r, meet[end{r, q}], 0, ir.SyncAfter)
		}
	}
	for r := range n {
		for k := int32(1); k < n; k++ {
			q := (r + k) % n
			slot := r
			if r > q {
				slot--
			}
			s.via(ir.OpPut, r, data[end{r, q}], 0, ir.SyncNone, at(q, ir.FirstScratch, slot, 1), at(r, ir.Input, q, 1))
			s.via(ir.OpSignal, r, data[end{r, q}], 0, ir.SyncBefore)
			s.sem(ir.OpSemaphoreRelease, r, sem[end{r, q}], 0, ir.SyncBoth)
		}
	}
	for r := range n {
		for k := int32(1); k < n; k++ {
			q := (r - k + n) % n
			slot := q
			if q > r {
				slot--
			}
			s.sem(ir.OpSemaphoreAcquire, r, sem[end{r, q}], 1, ir.SyncBoth)
			s.via(ir.OpWait, r, data[end{r, q}], 1, ir.SyncAfter)
			s.local(ir.OpCopy, r, 1, at(r, ir.Input, q, 1), at(r, ir.FirstScratch, slot, 1))
		}
	}
	return s.trace()
}
