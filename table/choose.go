package table

import (
	"math"
	"math/bits"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// NCCL is what is chosen where no entry matches.
const NCCL = "nccl"

// Reason is why an entry is not chosen for a call, in the words that the library prints
// too (docs/table.md). The order of the constants is the order in which they are looked
// for: of several the first is given.
type Reason string

// The reasons.
const (
	NoReason     Reason = "" // it is chosen
	ByCollective Reason = "collective"
	ByRanks      Reason = "ranks"
	ByNodes      Reason = "nodes"
	ByDType      Reason = "dtype"
	ByOp         Reason = "op"
	ByRoot       Reason = "root"
	ByPlace      Reason = "place"
	ByBytes      Reason = "bytes"
	ByMultiple   Reason = "multiple"
	ByMemory     Reason = "memory"
	ByCTAs       Reason = "ctas"
	ByScratch    Reason = "scratch"
	ByUnloaded   Reason = "unloaded" // here of sendrecv alone, which the library never loads
	ByPriority   Reason = "lower priority"
)

// Reasons lists them in their order.
func Reasons() []Reason {
	return []Reason{ByCollective, ByRanks, ByNodes, ByDType, ByOp, ByRoot, ByPlace, ByBytes, ByMultiple, ByMemory, ByCTAs, ByScratch, ByUnloaded, ByPriority}
}

// Query is a call of NCCL's interface, as far as the choice depends on it.
type Query struct {
	Collective Collective
	Count      int64 // NCCL's argument, elements
	DType      runtime.DType
	Op         runtime.ReduceOp // of no meaning where nothing is reduced
	Root       int32            // None where there is none; of sendrecv the rank that sends
	Ranks      int32
	Nodes      int32
	InPlace    bool
	Registered bool  // both buffers lie in windows that were registered collectively
	MaxCTAs    int32 // thread blocks that the communicator allows; 0: any number
	Scratch    int64 // bytes that a rank may use; negative: any number
	Alignment  int64 // of registered buffers, bytes; 0: any that is wanted
}

// Bytes is the size of the call.
func (q *Query) Bytes() int64 { return q.Collective.Bytes(q.Count, q.DType.Size(), q.Ranks) }

// Choose finds the entry for a call: the first that matches, nil for NCCL. reasons[i]
// says why entry i is not chosen; that of the chosen one is NoReason.
func (t *Table) Choose(q Query) (chosen *Entry, reasons []Reason) {
	reasons = make([]Reason, len(t.Entries))
	for i := range t.Entries {
		e := &t.Entries[i]
		reasons[i] = t.refuse(e, &q)
		if reasons[i] != NoReason {
			continue
		}
		if chosen != nil {
			reasons[i] = ByPriority
			continue
		}
		chosen = e
	}
	return chosen, reasons
}

// refuse is the first reason for which an entry doesn't match a call.
func (t *Table) refuse(e *Entry, q *Query) Reason {
	bytes := q.Bytes()
	switch {
	case e.Collective != q.Collective:
		return ByCollective
	case e.Ranks != q.Ranks:
		return ByRanks
	case e.Nodes != q.Nodes:
		return ByNodes
	case !e.DTypes.Has(q.DType):
		return ByDType
	case e.Collective.Reduces() && (!e.Ops.Has(q.Op) || overflows(q.DType, q.Op)):
		return ByOp
	case e.Root != ir.None && e.Root != q.Root:
		return ByRoot
	case e.Memory == Windows && (q.InPlace && e.InPlace == ir.None || !q.InPlace && e.OutOfPlace == ir.None):
		return ByPlace
	case q.Count < 1 || bytes < e.MinBytes || bytes > e.MaxBytes:
		return ByBytes
	case q.Count%e.Multiple != 0 || product(q.Count/e.Multiple, int64(q.DType.Size()))%int64(e.Unit) != 0:
		return ByMultiple
	case e.Memory == Windows && (!q.Registered || q.Collective.Rooted() || q.Alignment > 0 && q.Alignment < e.Alignment):
		return ByMemory
	case q.MaxCTAs > 0 && e.MaxBlocks > q.MaxCTAs:
		return ByCTAs
	case q.Scratch >= 0 && t.ScratchOf(e, q.Count, q.DType) > q.Scratch:
		return ByScratch
	case e.Collective == SendRecv:
		return ByUnloaded
	}
	return NoReason
}

// narrow are the data types whose sums may overflow where an average doesn't.
const narrow DTypes = 1<<runtime.FP16 | 1<<runtime.FP8E4M3 | 1<<runtime.FP8E5M2

// overflows reports whether a call is left to NCCL because programs add up before they
// divide, and NCCL divides first.
func overflows(d runtime.DType, o runtime.ReduceOp) bool { return o == runtime.Avg && narrow.Has(d) }

// ScratchOf is the scratch that an entry takes for a call of count elements, bytes of the
// rank that needs most, whatever the place of that call: ranks that call otherwise must
// decide alike. It is what the programs take or what copies take, if that is more.
func (t *Table) ScratchOf(e *Entry, count int64, d runtime.DType) int64 {
	need := product(count, e.stagedBlocks())
	for _, i := range []int32{e.InPlace, e.OutOfPlace} {
		if i != ir.None {
			p := &t.Programs[i]
			need = max(need, product(p.ScratchChunks, count/p.CountChunks))
		}
	}
	return product(need, int64(d.Size()))
}

// stagedBlocks is how many times a call's count the memory holds that a rank needs at
// most to bring the buffers into the form of the entry's only program: those of any call,
// as no rank sees whether another needs it.
func (e *Entry) stagedBlocks() int64 {
	switch {
	case e.Memory == Windows || e.Mixable:
		return 0
	case e.OutOfPlace != ir.None && e.Collective != AllToAll: // the smaller of input and output
		return 1
	}
	return e.Collective.Blocks(e.Ranks)
}

// product is a*b of numbers that are not negative; what is too large is math.MaxInt64.
func product(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}
