package ir

import "fmt"

// OpKind is what a one-sided operation does: MSCCL++'s executor operations
// (microsoft/mscclpp include/mscclpp/execution_kernel.hpp), a closed set.
type OpKind uint8

// The one-sided operations. Names and operands are those of docs/formats.md,
// "MSCCL++ plans"; s is Src, d is Dst, in the order of the operand lists.
const (
	OpSync                  OpKind = iota // nop: the threads of the block meet
	OpBarrier                             // barrier: Parts blocks of the rank meet at barrier Refs[0]
	OpSignal                              // signal: count up at the peers of Refs, publishing what came before
	OpWait                                // wait: until the peers of Refs have signaled once more
	OpRelaxedSignal                       // rlxsignal: count up, publishing nothing
	OpRelaxedWait                         // rlxwait
	OpFlush                               // flush: until what port channels Refs were given has arrived
	OpPut                                 // put: remote d := s, pair by pair
	OpPutSignal                           // pws: put, then signal on the same channel
	OpPutSignalFlush                      // pwsf
	OpGet                                 // get: d := remote s, pair by pair
	OpCopy                                // copy: d := s, local
	OpReduceLocal                         // re: d0 := op(s0, s1, ...), all local
	OpReduceSend                          // res: re, and the result to remote d1, d2, ...
	OpReadReduce                          // rre: d0 := op(local s0, remote s1, ...)
	OpReadReduceSend                      // rres: rre, and the result to remote d1, ...
	OpCopyToPackets                       // cpkt: local packets d := s
	OpUnpackPackets                       // upkt: d := local packets s, waiting for each
	OpPutPackets                          // ppkt: remote packets d := s, pair by pair
	OpReadPutPackets                      // rppkt: remote packets d... := local packets s, waiting for each
	OpReducePackets                       // repkt: d0 := op(s0, packets s1, ...), waiting for each
	OpReduceSendPackets                   // respkt: repkt, and the result as packets to remote d1, ...
	OpReduceCopyPackets                   // recpkt: repkt, and the result as local packets to d1
	OpReduceCopySendPackets               // recspkt: recpkt, and the result as packets to remote d2, ...
	OpGroupStore                          // gstore: d of every rank of the group := s
	OpGroupStorePackets                   // gstorepkt: gstore of local packets s
	OpGroupReduceStore                    // glres: d of every rank of the group := op(s of every rank)
	OpSemaphoreAcquire                    // sem_acquire: take one from each semaphore of Refs
	OpSemaphoreRelease                    // sem_release: give one to each semaphore of Refs
	OpPipeline                            // pipeline: Body, over and over, on one unit of bytes after another
)

var opNames = [...]string{"nop", "barrier", "signal", "wait", "rlxsignal", "rlxwait", "flush", "put", "pws", "pwsf", "get",
	"copy", "re", "res", "rre", "rres", "cpkt", "upkt", "ppkt", "rppkt", "repkt", "respkt", "recpkt", "recspkt",
	"gstore", "gstorepkt", "glres", "sem_acquire", "sem_release", "pipeline"}

// String is MSCCL++'s name of the operation in a plan.
func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return fmt.Sprintf("OpKind(%d)", k)
}

// ParseOpKind reads MSCCL++'s name of an operation.
func ParseOpKind(s string) (OpKind, error) {
	for i, n := range opNames {
		if s == n {
			return OpKind(i), nil
		}
	}
	return 0, fmt.Errorf("operation: unknown name %q", s)
}

// ChannelKind is how a one-sided channel reaches its peer.
type ChannelKind uint8

// MSCCL++'s channels.
const (
	ChannelNone   ChannelKind = iota
	ChannelMemory             // loads and stores on the peer's memory
	ChannelPort               // a copy engine or a NIC, driven by the host
	ChannelSwitch             // multicast through a switch
)

// String is MSCCL++'s name: memory, port, switch, or none.
func (k ChannelKind) String() string {
	return [...]string{"none", "memory", "port", "switch"}[k]
}

// Span is a run of one of OneSided's tables.
type Span struct{ Start, End int32 }

// Len is the number of entries.
func (s Span) Len() int { return int(s.End - s.Start) }

// Operand is a range of chunks that a one-sided operation reads or writes: of
// rank Rank (the own one for local operands), or at the same place on all ranks of
// switch group Group.
type Operand struct {
	Rank        Rank  // None with a Group
	Group       int32 // index of OneSided.Groups, or None
	Buf         BufferID
	Index, Size int32 // chunks; of packets: the chunks of data they carry
	Packets     bool  // data and flags interleaved, in packet scratch
}

// Reduction names the operator of a reducing operation.
type Reduction uint8

// ReduceByRun takes the operator of the run; the others are fixed by the plan.
const (
	ReduceByRun Reduction = iota
	ReduceSum
	ReduceMin
	ReduceMax
	ReduceProd
)

// String is the operator's name in a plan, "" for ReduceByRun.
func (r Reduction) String() string { return [...]string{"", "sum", "min", "max", "prod"}[r] }

// Op is one one-sided operation of a thread block. Its operands have the shape
// that OpKind.Operand tells, sources and destinations are of one size, pair by
// pair or all alike, and everything counts from 0.
type Op struct {
	Kind     OpKind
	Via      ChannelKind
	Reduce   Reduction
	Src, Dst Span // of OneSided.Operands
	// Refs is a span of OneSided.Refs: channels of the rank (index of
	// OneSidedGPU.Channels), semaphores (index of OneSidedGPU.Semaphores), or the
	// barrier's number. An operation that moves data has a channel for each
	// destination via ports, and none otherwise.
	Refs Span
	// Part of Parts: the operation works on slice Part of its ranges, cut into
	// Parts (a thread block group); 0 of 1 for all of it. Of a barrier, Parts is the
	// number of thread blocks that meet.
	Part, Parts int32
	// A pipeline runs Body (of OneSided.Ops) on UnitBytes after UnitBytes of
	// UnitChunks chunks. It holds no pipeline.
	Body       Span
	UnitBytes  int64
	UnitChunks int32
	Pos        PosID
}

// SignalChannel is one end of a pairwise channel. The k-th memory channel of a
// to b pairs with the k-th of b to a, and so for port channels.
type SignalChannel struct {
	Kind ChannelKind
	Peer Rank
	Pair int32 // index of the other end among the peer's channels, None if there is none
}

// SwitchGroup is a multicast group over one buffer.
type SwitchGroup struct {
	Buf   BufferID
	Ranks []Rank
}

// OneSidedGPU is what one rank has beside its thread blocks.
//
// The operations of a block stand together, followed by the bodies of its
// pipelines in order, and so on block by block and rank by rank.
type OneSidedGPU struct {
	Channels   []SignalChannel
	Semaphores []int32 // initial values
	Blocks     []Span  // operations of each thread block, of OneSided.Ops
}

// OneSided is the one-sided part of a Program: instead of steps its thread
// blocks have operations, which name the memory they touch and synchronize by
// hand. A Program has either.
//
// Chunk i of a buffer of n chunks and b bytes starts at byte
// a*(i*(b/a/n) + min(i, b/a mod n)), a being Alignment: sizes are multiples of
// a, and the first chunks take the remainder (MSCCL++'s calcOffset). Scratch has
// the chunk size of the input; packets double offsets and sizes there.
type OneSided struct {
	Packets         bool // protocol LL: scratch holds packets; equals the Spec's
	ThreadsPerBlock int32
	Alignment       int32 // bytes
	DoubleScratch   bool  // launches alternate between two halves of scratch
	ReuseResources  bool  // one scratch for many plans
	GPUs            []OneSidedGPU
	Groups          []SwitchGroup // ranks ascending
	Ops             []Op
	Operands        []Operand
	Refs            []int32
}

// Sources and Destinations are the operands of op, RefsOf its channels,
// semaphores or barrier, BodyOf what a pipeline repeats. The slices are shared:
// don't change them.
func (o *OneSided) Sources(op *Op) []Operand { return o.Operands[op.Src.Start:op.Src.End] }

// Destinations are what op writes; see Sources.
func (o *OneSided) Destinations(op *Op) []Operand { return o.Operands[op.Dst.Start:op.Dst.End] }

// RefsOf are the channels, semaphores or the barrier of op; see Sources.
func (o *OneSided) RefsOf(op *Op) []int32 { return o.Refs[op.Refs.Start:op.Refs.End] }

// BodyOf is what a pipeline repeats; see Sources.
func (o *OneSided) BodyOf(op *Op) []Op { return o.Ops[op.Body.Start:op.Body.End] }

// BlockOps are the operations of one thread block without those in pipelines;
// see Sources.
func (o *OneSided) BlockOps(rank Rank, tb int32) []Op {
	s := o.GPUs[rank].Blocks[tb]
	return o.Ops[s.Start:s.End]
}

// PairChannels sets every channel's Pair: the k-th channel of one kind from a to
// b pairs with the k-th of that kind from b to a.
func (o *OneSided) PairChannels() {
	type end struct {
		kind       ChannelKind
		self, peer Rank
	}
	ends := map[end][]int32{}
	for g := range o.GPUs {
		for c, ch := range o.GPUs[g].Channels {
			e := end{ch.Kind, Rank(g), ch.Peer}
			ends[e] = append(ends[e], int32(c))
		}
	}
	for g := range o.GPUs {
		seen := map[end]int{}
		for c := range o.GPUs[g].Channels {
			ch := &o.GPUs[g].Channels[c]
			e := end{ch.Kind, Rank(g), ch.Peer}
			other := ends[end{ch.Kind, ch.Peer, Rank(g)}]
			ch.Pair = None
			if k := seen[e]; k < len(other) {
				ch.Pair = other[k]
			}
			seen[e]++
		}
	}
}

func (o *OneSided) count(c *Counts) {
	for g := range o.GPUs {
		c.TBs += len(o.GPUs[g].Blocks)
		c.MaxTBs = max(c.MaxTBs, len(o.GPUs[g].Blocks))
	}
	c.Steps = len(o.Ops)
	for i := range o.Ops {
		if o.Ops[i].Kind == OpSync {
			c.Nops++
		}
	}
}
