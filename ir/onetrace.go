package ir

import "fmt"

// TraceKind is what an operation of a OneTrace does. Those that an executor has
// too are OpKinds of the same number; the others are declared here.
type TraceKind uint8

// TraceGroupReduce loads one place of every rank of a switch group and combines
// the values: glre, which no executor runs by itself. Compiling joins it with
// the group store of its result.
const TraceGroupReduce = TraceKind(OpPipeline) + 1

// TraceOf is the traced operation that is k.
func TraceOf(k OpKind) TraceKind { return TraceKind(k) }

// Op is the executor's operation that k is; false for one that is only traced.
func (k TraceKind) Op() (OpKind, bool) { return OpKind(k), int(k) < len(opNames) }

// String is MSCCL++'s name of the operation.
func (k TraceKind) String() string {
	if op, ok := k.Op(); ok {
		return op.String()
	}
	if k == TraceGroupReduce {
		return "glre"
	}
	return fmt.Sprintf("TraceKind(%d)", k)
}

// DataSync says where the threads of a block meet around an operation: bits, so
// that values combine.
type DataSync uint8

// MSCCL++'s SyncType.
const (
	SyncNone   DataSync = 0
	SyncBefore DataSync = 1
	SyncAfter  DataSync = 2
	SyncBoth   DataSync = SyncBefore | SyncAfter
)

// String is MSCCL++'s name: none, before, after or both.
func (s DataSync) String() string { return [...]string{"none", "before", "after", "both"}[s&SyncBoth] }

// TraceOp is one operation of a one-sided program as it is written, before
// anything is fused, replicated or synchronized.
//
// Operands have the shape that OpKind.Operand tells, with one destination: what
// goes to several peers is several operations. TraceGroupReduce reads a group
// and writes a local place.
type TraceOp struct {
	Kind   TraceKind
	Via    ChannelKind
	Reduce Reduction
	Sync   DataSync // of signals, waits, flushes and semaphores; SyncNone otherwise
	Rank   Rank     // the rank that does it
	Src    Span     // of OneTrace.Operands
	Dst    Span
	// Ref is the channel (index of TraceGPU.Channels) of an operation by memory
	// or port channel, the switch group (index of OneTrace.Groups) of one by
	// switch, the semaphore (index of TraceGPU.Semaphores) of an acquire or
	// release, None for all others.
	Ref int32
	// Blocks is a span of OneTrace.Blocks, the thread blocks of Rank that the
	// script names: none where the compiler has to choose, one, or several, of
	// which the i-th of n works on slice i of n of every range. Those of a barrier
	// meet; a barrier with none is one of all thread blocks of the rank.
	Blocks Span
	Loop   int32 // of OneTrace.Loops, or None outside
	Pos    PosID
}

// TraceChannel is one end of a pairwise channel, as it was constructed.
type TraceChannel struct {
	Kind ChannelKind // memory or port
	Peer Rank
	Pair int32 // index among the peer's channels; see PairChannels
	Pos  PosID
}

// TraceSemaphore counts between thread blocks of a rank.
type TraceSemaphore struct {
	Initial int32
	Pos     PosID
}

// TraceGroup is a switch channel.
type TraceGroup struct {
	SwitchGroup
	Pos PosID
}

// TraceLoop repeats operations on one unit of bytes after another of a number
// of chunks. The operations of a loop stand together; each thread block that has
// some repeats its own.
type TraceLoop struct {
	UnitBytes int64
	Chunks    int32
	Pos       PosID
}

// TraceGPU is what one rank of a OneTrace has.
type TraceGPU struct {
	Scratch    int32 // chunks, as large as those of the input
	Channels   []TraceChannel
	Semaphores []TraceSemaphore
}

// OneTrace is a one-sided program as written: operations in program order. The
// meaning is that of every thread block of every rank doing its own in that
// order. What different thread blocks do is ordered by signals, waits, packets,
// semaphores and barriers, and by the compiler where thread blocks were left to
// it or AutoSync is on.
//
// Of the Spec, Protocol is Simple or LL; Instances, Interleaved (the replication
// policy) and Fusion are what the program asks for. Its chunks are those before
// replication: Coll is not refined. Buffers are not used, and scratch of a rank
// is one buffer, FirstScratch.
type OneTrace struct {
	*Spec
	AutoSync        bool  // order conflicting accesses that nothing orders
	DoubleScratch   bool  // launches alternate between two halves of scratch
	ReuseResources  bool  // one scratch for many plans
	ThreadsPerBlock int32 // threads
	Alignment       int32 // bytes
	MinBytes        int64 // message size that the program is for, inclusive
	MaxBytes        int64 // inclusive; 0 is no limit

	GPUs     []TraceGPU
	Groups   []TraceGroup // ranks ascending
	Loops    []TraceLoop
	Ops      []TraceOp
	Operands []Operand
	Blocks   []int32
}

// Sources and Destinations are the operands of op, BlocksOf its thread blocks.
// The slices are shared: don't change them.
func (t *OneTrace) Sources(op *TraceOp) []Operand { return t.Operands[op.Src.Start:op.Src.End] }

// Destinations are what op writes; see Sources.
func (t *OneTrace) Destinations(op *TraceOp) []Operand { return t.Operands[op.Dst.Start:op.Dst.End] }

// BlocksOf are the thread blocks that op names; see Sources.
func (t *OneTrace) BlocksOf(op *TraceOp) []int32 { return t.Blocks[op.Blocks.Start:op.Blocks.End] }

// PairChannels sets every channel's Pair: the k-th channel of one kind from a to
// b pairs with the k-th of that kind from b to a; None where there is none.
func (t *OneTrace) PairChannels() {
	o := OneSided{GPUs: make([]OneSidedGPU, len(t.GPUs))}
	for g := range t.GPUs {
		for _, c := range t.GPUs[g].Channels {
			o.GPUs[g].Channels = append(o.GPUs[g].Channels, SignalChannel{Kind: c.Kind, Peer: c.Peer})
		}
	}
	o.PairChannels()
	for g := range t.GPUs {
		for c := range t.GPUs[g].Channels {
			t.GPUs[g].Channels[c].Pair = o.GPUs[g].Channels[c].Pair
		}
	}
}
