package compiler

import (
	"github.com/mscclsh/mscclsh/ir"
)

// oneSpace numbers the memory of all ranks: every chunk is one location, what is
// one chunk under two names has one. In scratch of a program with packets a chunk is
// two locations, of which plain data of chunk i fills location i and its packets
// locations 2i and 2i+1: packets take twice the memory of their data.
type oneSpace struct {
	t     *ir.OneTrace
	first []int32    // of a rank: its first location
	base  [][3]int32 // of a rank: where its input, output and scratch begin
	size  int32
}

func newOneSpace(t *ir.OneTrace) *oneSpace {
	s := &oneSpace{t: t}
	for r := range t.GPUs {
		rank := ir.Rank(r)
		in, out, scratch := t.Coll.InputChunks(rank), t.Coll.OutputChunks(rank), t.GPUs[r].Scratch
		own := [3]int32{s.size, s.size + in, s.size + in + out}
		base := own
		for _, b := range [...]ir.BufferID{ir.Input, ir.Output} {
			buf, index := t.Coll.Canon(rank, b, 0)
			base[b] = own[buf] + index
		}
		s.first, s.base = append(s.first, s.size), append(s.base, base)
		if t.Protocol == ir.LL {
			scratch *= 2
		}
		s.size = own[2] + scratch
	}
	return s
}

// oneAccess is what an operation reads or writes: locations lo to hi-1, on part
// Part of Parts of each operand that it stands for.
type oneAccess struct {
	lo, hi  int32
	write   bool
	packets bool
	waits   bool // reads packets, waiting for each
}

// overlaps reports whether a and b touch a location both.
func (a *oneAccess) overlaps(b *oneAccess) bool { return a.lo < b.hi && b.lo < a.hi }

// of is where operand a of rank r is.
func (s *oneSpace) of(r ir.Rank, a *ir.Operand) (lo, hi int32) {
	lo = s.base[r][a.Buf] + a.Index
	if a.Packets {
		return lo + a.Index, lo + a.Index + 2*a.Size
	}
	return lo, lo + a.Size
}

// same reports whether a and b are one place of one rank, by whatever names.
func (s *oneSpace) same(a, b *ir.Operand) bool {
	if *a == *b {
		return true
	}
	if a.Rank != b.Rank || a.Group != ir.None || b.Group != ir.None || a.Size != b.Size || a.Packets != b.Packets {
		return false
	}
	x, _ := s.of(a.Rank, a)
	y, _ := s.of(b.Rank, b)
	return x == y
}

// accesses appends what an operation touches, sources first.
func (s *oneSpace) accesses(list []oneAccess, kind ir.TraceKind, src, dst []ir.Operand) []oneAccess {
	waits := oneAwaits(kind)
	for i := range src {
		list = s.access(list, &src[i], oneAccess{packets: src[i].Packets, waits: waits && src[i].Packets})
	}
	for i := range dst {
		list = s.access(list, &dst[i], oneAccess{packets: dst[i].Packets, write: true})
	}
	return list
}

func (s *oneSpace) access(list []oneAccess, a *ir.Operand, x oneAccess) []oneAccess {
	if a.Group == ir.None {
		x.lo, x.hi = s.of(a.Rank, a)
		return append(list, x)
	}
	for _, r := range s.t.Groups[a.Group].Ranks {
		x.lo, x.hi = s.of(r, a)
		list = append(list, x)
	}
	return list
}

// oneAwaits reports whether an operation waits for the packets that it reads.
func oneAwaits(k ir.TraceKind) bool {
	switch ir.OpKind(k) {
	case ir.OpUnpackPackets, ir.OpReadPutPackets, ir.OpReducePackets, ir.OpReduceSendPackets,
		ir.OpReduceCopyPackets, ir.OpReduceCopySendPackets, ir.OpGroupStorePackets:
		return true
	}
	return false
}

// oneSignals and oneWaits report whether an operation counts up at the other end of
// its channel, or waits for that.
func oneSignals(k ir.TraceKind) bool {
	switch ir.OpKind(k) {
	case ir.OpSignal, ir.OpRelaxedSignal, ir.OpPutSignal, ir.OpPutSignalFlush:
		return true
	}
	return false
}

func oneWaits(k ir.TraceKind) bool {
	return k == ir.TraceOf(ir.OpWait) || k == ir.TraceOf(ir.OpRelaxedWait)
}

func oneRelaxed(k ir.TraceKind) bool {
	return k == ir.TraceOf(ir.OpRelaxedSignal) || k == ir.TraceOf(ir.OpRelaxedWait)
}

// oneMoves reports whether an operation touches data.
func oneMoves(op *ir.TraceOp) bool { return op.Src.Len() > 0 }
