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
	ByPriority   Reason = "lower priority"
)

// Reasons lists them in their order.
func Reasons() []Reason {
	return []Reason{ByCollective, ByRanks, ByNodes, ByDType, ByOp, ByRoot, ByPlace, ByBytes, ByMultiple, ByMemory, ByCTAs, ByScratch, ByPriority}
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
	case e.Collective.Reduces() && !e.Ops.Has(q.Op):
		return ByOp
	case e.Root != ir.None && e.Root != q.Root:
		return ByRoot
	case e.Memory == Windows && (q.InPlace && e.InPlace == ir.None || !q.InPlace && e.OutOfPlace == ir.None):
		return ByPlace
	case q.Count < 1 || bytes < e.MinBytes || bytes > e.MaxBytes:
		return ByBytes
	case q.Count%e.Multiple != 0:
		return ByMultiple
	case e.Memory == Windows && (!q.Registered || q.Alignment > 0 && q.Alignment < e.Alignment):
		return ByMemory
	case q.MaxCTAs > 0 && e.MaxBlocks > q.MaxCTAs:
		return ByCTAs
	case q.Scratch >= 0 && max(t.ScratchOf(e, q.Count, q.DType), e.Staging(q)) > q.Scratch:
		return ByScratch
	}
	return NoReason
}

// ScratchOf is the scratch that an entry takes for a call, bytes of the rank that needs
// most, whatever the place of that call: ranks that call otherwise must decide alike.
func (t *Table) ScratchOf(e *Entry, count int64, d runtime.DType) int64 {
	need := int64(0)
	for _, i := range []int32{e.InPlace, e.OutOfPlace} {
		if i != ir.None {
			p := &t.Programs[i]
			need = max(need, product(product(p.ScratchChunks, count/p.CountChunks), int64(d.Size())))
		}
	}
	return need
}

// Staging is the most memory that a rank needs to bring a call's buffers into the form of
// the entry's only program, bytes: for any call, as no rank sees whether another needs it.
func (e *Entry) Staging(q *Query) int64 {
	switch {
	case e.Memory == Windows || e.Mixable:
		return 0
	case e.OutOfPlace != ir.None: // the smaller of input and output
		return product(product(q.Count, int64(q.DType.Size())), q.blocksBoth())
	}
	return q.Bytes()
}

// blocksBoth is how many times the count the smaller of input and output holds.
func (q *Query) blocksBoth() int64 {
	if q.Collective == AllToAll {
		return int64(q.Ranks)
	}
	return 1
}

// product is a*b of numbers that are not negative; what is too large is math.MaxInt64.
func product(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}
