package compiler_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
)

// randomTrace writes random one-sided scripts, and keeps what memory holds after each
// operation if every rank does its own one after another: the script's meaning.
type randomTrace struct {
	*oneScript
	rng   *rand.Rand
	plain map[ir.Loc][]ir.Contribution
	free  int32 // the first chunk of scratch whose packets nobody has written
	chans map[[3]int32]int32
	ports bool
	owed  [][3]int32 // kind and ends of signals that nobody has waited for
}

const (
	randomChunks  = 4 // of inputs and outputs
	randomScratch = 3 // of scratch for plain data
	randomPackets = 24
)

func newRandomTrace(rng *rand.Rand, ports bool) *randomTrace {
	ranks := int32(2 + rng.IntN(2))
	custom := &ir.CustomSpec{}
	protocol := ir.Simple
	if rng.IntN(2) == 0 {
		protocol = ir.LL
	}
	coll := ir.NewCollective(ir.Custom, ranks, 1, rng.IntN(2) == 0)
	coll.Name, coll.Custom = "random", custom
	s := &randomTrace{ports: ports, oneScript: newScript(coll, protocol, 1), rng: rng, plain: map[ir.Loc][]ir.Contribution{},
		chans: map[[3]int32]int32{}, free: randomScratch}
	s.scratch(randomScratch + randomPackets)
	s.DoubleScratch = false // the other judge takes the half that the owner's launch is at
	for r := range ranks {
		custom.Input, custom.Output = append(custom.Input, randomChunks), append(custom.Output, randomChunks)
		for i := range int32(randomChunks) {
			s.plain[ir.Loc{Rank: ir.Rank(r), Buf: ir.Input, Index: i}] = []ir.Contribution{{Rank: ir.Rank(r), Index: i}}
		}
	}
	for _, kind := range []ir.ChannelKind{ir.ChannelMemory, ir.ChannelPort} {
		for r := range ranks {
			for _, q := range others(ranks, r) {
				s.chans[[3]int32{int32(kind), r, q}] = s.channel(kind, r, q)
			}
		}
	}
	return s
}

func (s *randomTrace) rank() int32 { return int32(s.rng.IntN(len(s.GPUs))) }

func (s *randomTrace) peer(r int32) int32 {
	list := others(int32(len(s.GPUs)), r)
	return list[s.rng.IntN(len(list))]
}

// source is some chunks of a rank that hold something, dest some that may be written.
func (s *randomTrace) source(r, size int32) (ir.Operand, bool) {
	for range 8 {
		buf := ir.BufferID(s.rng.IntN(3))
		a := at(r, buf, int32(s.rng.IntN(int(s.room(buf)))), size)
		if s.fits(&a) && !slices.ContainsFunc(s.locations(a), func(l ir.Loc) bool { return s.plain[l] == nil }) {
			return a, true
		}
	}
	return at(r, ir.Input, int32(s.rng.IntN(randomChunks-1)), size), true
}

func (s *randomTrace) dest(r, size int32) ir.Operand {
	buf := ir.BufferID(1 + s.rng.IntN(2))
	return at(r, buf, int32(s.rng.IntN(int(s.room(buf)-size+1))), size)
}

func (s *randomTrace) room(buf ir.BufferID) int32 {
	if buf == ir.FirstScratch {
		return randomScratch
	}
	return randomChunks
}

func (s *randomTrace) fits(a *ir.Operand) bool { return a.Index+a.Size <= s.room(a.Buf) }

// locations are the chunks of a; in place, input and output are one.
func (s *randomTrace) locations(a ir.Operand) []ir.Loc {
	var list []ir.Loc
	for i := range a.Size {
		list = append(list, ir.Loc{Rank: a.Rank, Buf: s.memoryOf(a.Buf), Index: a.Index + i})
	}
	return list
}

func (s *randomTrace) memoryOf(buf ir.BufferID) ir.BufferID {
	if s.Coll.InPlace && buf == ir.Output {
		return ir.Input
	}
	return buf
}

// set makes d hold the sum of what the sources hold.
func (s *randomTrace) set(d ir.Operand, src ...ir.Operand) {
	values := make([][]ir.Contribution, d.Size)
	for i := range values {
		for _, a := range src {
			values[i] = append(values[i], s.plain[s.locations(a)[i]]...)
		}
		slices.SortFunc(values[i], func(x, y ir.Contribution) int {
			return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Index, y.Index))
		})
	}
	for i, l := range s.locations(d) {
		s.plain[l] = values[i]
	}
}

// overlap reports whether one of the operands shares memory with another one.
func (s *randomTrace) overlapping(list ...ir.Operand) bool {
	for i := range list {
		for _, b := range list[:i] {
			if a := list[i]; a.Rank == b.Rank && s.memoryOf(a.Buf) == s.memoryOf(b.Buf) && a.Index < b.Index+b.Size && b.Index < a.Index+a.Size {
				return true
			}
		}
	}
	return false
}

// tell signals from r to q on a channel, mostly at once.
func (s *randomTrace) tell(kind ir.ChannelKind, r, q int32) {
	op := ir.OpSignal
	if kind == ir.ChannelMemory && s.rng.IntN(8) == 0 {
		op = ir.OpRelaxedSignal
	}
	s.via(op, r, s.chans[[3]int32{int32(kind), r, q}], anyBlock, ir.SyncBoth)
	s.owed = append(s.owed, [3]int32{int32(kind), r, q})
	if s.rng.IntN(4) > 0 {
		s.hear(len(s.owed) - 1)
	}
}

// hear waits for signal i of those that are owed, of its channel the first.
func (s *randomTrace) hear(i int) {
	o := s.owed[i]
	i = slices.Index(s.owed, o)
	s.owed = slices.Delete(s.owed, i, i+1)
	s.via(ir.OpWait, o[2], s.chans[[3]int32{o[0], o[2], o[1]}], anyBlock, ir.SyncBoth)
}

// step appends something random.
func (s *randomTrace) step() {
	r := s.rank()
	q, size := s.peer(r), int32(1+s.rng.IntN(2))
	if s.loop != ir.None {
		size = 1 // as many chunks as the loop is over, see wholeLoops
	}
	kind := ir.ChannelMemory
	if s.ports && s.rng.IntN(4) == 0 {
		kind = ir.ChannelPort
	}
	c := s.chans[[3]int32{int32(kind), r, q}]
	src, _ := s.source(r, size)
	d := s.dest(r, size)
	mayWrite := func(a ir.Operand) bool { return s.Coll.InPlace || a.Buf != ir.Input }
	switch n := s.rng.IntN(9); {
	case n == 0:
		if !s.overlapping(src, d) {
			s.local(ir.OpCopy, r, anyBlock, d, src)
			s.set(d, src)
		}
	case n == 1:
		if other, _ := s.source(r, size); !s.overlapping(src, other, d) && s.small(src, other) {
			s.local(ir.OpReduceLocal, r, anyBlock, d, src, other)
			s.set(d, src, other)
		}
	case n == 2:
		if other, _ := s.source(r, size); !s.overlapping(src, other) && mayWrite(src) && s.small(src, other) {
			sum := s.renamed(src)
			s.local(ir.OpReduceLocal, r, anyBlock, sum, src, other)
			s.set(sum, src, other)
		}
	case n <= 4:
		d = s.dest(q, size)
		s.via(ir.OpPut, r, c, anyBlock, ir.SyncNone, d, src)
		s.set(d, src)
		s.tell(kind, r, q)
		if kind == ir.ChannelPort && s.rng.IntN(2) == 0 {
			s.via(ir.OpFlush, r, c, anyBlock, ir.SyncBoth)
		}
	case n == 5:
		far, _ := s.source(q, size)
		s.via(ir.OpGet, r, s.chans[[3]int32{int32(ir.ChannelMemory), r, q}], anyBlock, ir.SyncNone, d, far)
		s.set(d, far)
		s.tell(ir.ChannelMemory, r, q)
	case n == 6:
		far, _ := s.source(q, size)
		if mayWrite(src) && s.small(src, far) {
			sum := s.renamed(src)
			s.via(ir.OpReadReduce, r, s.chans[[3]int32{int32(ir.ChannelMemory), r, q}], anyBlock, ir.SyncNone, sum, src, far)
			s.set(sum, src, far)
			s.tell(ir.ChannelMemory, r, q)
		}
	case n == 7:
		s.packets(r, q, size, src)
	default:
		if len(s.owed) > 0 {
			s.hear(s.rng.IntN(len(s.owed)))
		} else {
			s.tell(ir.ChannelMemory, r, q)
		}
	}
}

// renamed is the same place, in place maybe by its other name.
func (s *randomTrace) renamed(a ir.Operand) ir.Operand {
	if s.Coll.InPlace && a.Buf != ir.FirstScratch && s.rng.IntN(2) == 0 {
		a.Buf = ir.Input + ir.Output - a.Buf
	}
	return a
}

// packets sends something as packets, which the other rank uses at once.
func (s *randomTrace) packets(r, q, size int32, src ir.Operand) {
	if s.Protocol != ir.LL || s.free+size > randomScratch+randomPackets {
		return
	}
	slot := packed(q, s.free, size)
	s.free += size
	s.via(ir.OpPutPackets, r, s.chans[[3]int32{int32(ir.ChannelMemory), r, q}], anyBlock, ir.SyncNone, slot, src)
	d := s.dest(q, size)
	if own, _ := s.source(q, size); s.rng.IntN(2) == 0 && !s.overlapping(own, d) && s.small(own, src) {
		s.local(ir.OpReducePackets, q, anyBlock, d, own, slot)
		s.set(d, own, src)
		return
	}
	s.local(ir.OpUnpackPackets, q, anyBlock, d, slot)
	s.set(d, src)
}

// small keeps sums short.
func (s *randomTrace) small(list ...ir.Operand) bool {
	n := 0
	for _, a := range list {
		for _, l := range s.locations(a) {
			n = max(n, len(s.plain[l]))
		}
	}
	return n*len(list) <= 16
}

// meeting lets all ranks signal each other and wait.
func (s *randomTrace) meeting() {
	n := int32(len(s.GPUs))
	for r := range n {
		for _, q := range others(n, r) {
			s.via(ir.OpSignal, r, s.chans[[3]int32{int32(ir.ChannelMemory), r, q}], anyBlock, ir.SyncBoth)
		}
	}
	for r := range n {
		for _, q := range others(n, r) {
			s.via(ir.OpWait, r, s.chans[[3]int32{int32(ir.ChannelMemory), r, q}], anyBlock, ir.SyncBoth)
		}
	}
}

// hearAll waits for all signals: in a loop for those of the loop.
func (s *randomTrace) hearAll() {
	for len(s.owed) > 0 {
		s.hear(0)
	}
}

// finish demands what memory holds.
func (s *randomTrace) finish() *ir.OneTrace {
	for r := range s.GPUs {
		var row [][]ir.Contribution
		for i := range int32(randomChunks) {
			row = append(row, s.plain[ir.Loc{Rank: ir.Rank(r), Buf: s.memoryOf(ir.Output), Index: i}])
		}
		s.Coll.Custom.Expect = append(s.Coll.Custom.Expect, row)
	}
	return s.trace()
}

func random(rng *rand.Rand, ports bool) *ir.OneTrace {
	s := newRandomTrace(rng, ports)
	meet := rng.IntN(2) == 0 // launches begin and end with a meeting of all ranks
	if meet {
		s.meeting()
	}
	steps := 3 + rng.IntN(20)
	from, to := steps, steps // of a loop, in a script out of three
	if rng.IntN(3) == 0 {
		from = rng.IntN(steps)
		to = from + 1 + rng.IntN(steps-from)
	}
	for i := range steps {
		if i == from {
			s.hearAll()
			s.loop = int32(len(s.Loops))
			s.Loops = append(s.Loops, ir.TraceLoop{UnitBytes: 64, Chunks: 1})
		}
		if i == to {
			s.hearAll()
			s.loop = ir.None
		}
		s.step()
	}
	s.hearAll()
	s.loop = ir.None
	if meet {
		s.meeting()
	}
	return s.finish()
}

// inBlocks is t with its operations in thread blocks that block picks. Signals and
// waits of a channel have one block each, so that the first wait is for the first
// signal.
func inBlocks(t *ir.OneTrace, block func() int32) *ir.OneTrace {
	type queue struct {
		rank  ir.Rank
		kind  ir.TraceKind
		other int32
	}
	queues := map[queue]int32{}
	u := *t
	u.Ops, u.Blocks = slices.Clone(t.Ops), nil
	for i := range u.Ops {
		b, op := block(), &u.Ops[i]
		if op.Src.Len() == 0 {
			kind := op.Kind
			if kind == ir.TraceOf(ir.OpRelaxedSignal) {
				kind = ir.TraceOf(ir.OpSignal)
			}
			key := queue{op.Rank, kind, op.Ref}
			if q, ok := queues[key]; ok {
				b = q
			}
			queues[key] = b
		}
		u.Blocks = append(u.Blocks, b)
		u.Ops[i].Blocks = ir.Span{Start: int32(i), End: int32(i) + 1}
	}
	return &u
}

// wellOrdered reports whether the trace with one thread block a rank is right and has
// no races: whether its signals order what ranks do to each other's memory; and
// whether they do from launch to launch. What joins is judged for itself, too.
func wellOrdered(t *rapid.T, trace *ir.OneTrace) (ok, across bool) {
	ok, across = true, true
	for _, fusion := range []bool{false, true} {
		one := inBlocks(trace, func() int32 { return 0 })
		spec := *one.Spec
		spec.Fusion, one.Spec = fusion, &spec
		r := checkOne(t, compileOne(t, one, compiler.Options{Target: ir.TargetNative}))
		ok, across = ok && r.OK && r.Races == 0, across && r.RacesAcross == 0
	}
	return ok, across
}

// judgedToo reports whether the other judge, which knows memory channels, signals that
// aren't relaxed and no order by packets, finds no fault either.
func judgedToo(t *rapid.T, trace *ir.OneTrace, rng *rand.Rand) bool {
	for i := range trace.Ops {
		if op := &trace.Ops[i]; op.Via == ir.ChannelPort || op.Kind == ir.TraceOf(ir.OpRelaxedSignal) || op.Kind == ir.TraceOf(ir.OpPutPackets) {
			return false
		}
	}
	p := compileOne(t, inBlocks(trace, func() int32 { return 0 }), compiler.Options{Target: ir.TargetNative})
	return compiler.RunLaunches(p, rng, 1) == nil
}

// Scripts without thread blocks mean what they say one operation after another: the
// blocks that the compiler picks don't change that.
func TestRandomFree(t *testing.T) {
	ordered, launches, several, twice, loops := 0, 0, 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "script"), 1))
		trace := random(rng, true)
		ok, across := wellOrdered(rt, trace)
		if !ok {
			return
		}
		ordered++
		if across {
			launches++
		}
		loops += len(trace.Loops)
		too := len(trace.Loops) == 0 && judgedToo(rt, trace, rng)
		for _, target := range []ir.Target{ir.TargetNative, ir.TargetPlain} {
			p := compileOne(rt, trace, compiler.Options{Target: target})
			if len(p.OneSided.GPUs[0].Blocks) > 1 {
				several++
			}
			if r := checkOne(rt, p); !r.OK || r.Races > 0 || across && r.RacesAcross > 0 {
				rt.Fatalf("%s: %v\n%s\n%s", r.Summary(), r.Messages, traceText(rt, trace), programText(rt, p))
			}
			if !too {
				continue
			}
			twice++
			if err := compiler.RunLaunches(p, rng, 1); err != nil {
				rt.Fatalf("%v\n%s\n%s", err, traceText(rt, trace), programText(rt, p))
			}
		}
	})
	t.Logf("%d scripts in order, %d from launch to launch too, %d with a loop; %d programs with several thread blocks, %d judged twice", ordered, launches, loops, several, twice)
}

// Whatever thread blocks a script picks, operations of one rank that touch the same
// memory are in order, what ports carry out among them, without deadlock.
func TestRandomBlocks(t *testing.T) {
	semaphores := 0
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "script"), 1))
		one := random(rng, rng.IntN(2) == 0)
		if checkOne(rt, compileOne(rt, inBlocks(one, func() int32 { return 0 }), compiler.Options{Target: ir.TargetNative})).Has(checker.CodeDeadlock) {
			return
		}
		trace := inBlocks(one, func() int32 { return int32(rng.IntN(3)) })
		p := compileOne(rt, trace, compiler.Options{Target: ir.TargetNative})
		semaphores += len(p.OneSided.GPUs[0].Semaphores)
		for _, m := range checkOne(rt, p).Messages {
			own := m.Code == checker.CodeRace && len(m.Notes) == 2 && rankOf(m.Notes[0].Text) == rankOf(m.Notes[1].Text)
			if own || m.Code == checker.CodeDeadlock {
				rt.Fatalf("%v\n%s\n%s", m, traceText(rt, trace), programText(rt, p))
			}
		}
	})
	t.Logf("%d semaphores on rank 0", semaphores)
}

// rankOf is the rank in the name of an operation: "rank 1 tb 0 op 2 (put) reads it".
func rankOf(name string) string {
	rest, _ := strings.CutPrefix(name, "rank ")
	rank, _, _ := strings.Cut(rest, " ")
	return rank
}

// Compiling twice gives the same bytes, and the trace stays as it is.
func TestRandomTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "script"), 1))
		trace := random(rng, true)
		if rng.IntN(2) == 0 {
			trace = inBlocks(trace, func() int32 { return int32(rng.IntN(3)) })
		}
		trace.Instances = int32(1 + rng.IntN(2))
		before := traceText(rt, trace)
		first := programText(rt, compileOne(rt, trace, compiler.Options{}))
		if second := programText(rt, compileOne(rt, trace, compiler.Options{})); first != second {
			rt.Errorf("got\n%s\nthen\n%s", first, second)
		}
		if after := traceText(rt, trace); before != after {
			rt.Errorf("the trace was\n%s\nand is\n%s", before, after)
		}
	})
}
