package cuda

import (
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// Call is how NCCL is asked for what a program does.
type Call uint8

// Whole is NCCL's own collective; Composed is an allreduce made of two of them, a
// reduce-scatter and an allgather, the second on what the first has left.
const (
	Whole Call = iota
	Composed
)

// suffix follows the name of a mode.
func (c Call) suffix() string {
	if c == Composed {
		return " rs+ag"
	}
	return ""
}

// refuses says why a collective can't be called so, "" if it can.
func (c Call) refuses(coll *ir.Collective) string {
	if c == Composed && coll.Kind != ir.AllReduce {
		return "a reduce-scatter and an allgather make an allreduce, and this is " + coll.String()
	}
	return ""
}

// call enqueues one collective of all ranks. count is the number of elements as
// nccl-tests counts them.
func (v *Rival) call(c Call, ranks []ncclRank, count int64, op runtime.ReduceOp) error {
	if c == Whole {
		return v.nccl.call(v.coll, ranks, count, v.dtype, op)
	}
	n := int64(len(ranks))
	if count%n != 0 {
		return diag.Errorf(diag.Pos{}, "against", "%d elements are no whole number for each of %d ranks", count, n)
	}
	parts, whole := make([]ncclRank, n), make([]ncclRank, n)
	for r, k := range ranks {
		own := k.recv + uintptr(int64(r)*(count/n)*int64(v.dtype.Size()))
		parts[r] = ncclRank{k.comm, k.stream, k.send, own}
		whole[r] = ncclRank{k.comm, k.stream, own, k.recv}
	}
	scatter := ir.NewCollective(ir.ReduceScatter, int32(n), 1, true)
	if err := v.nccl.call(scatter, parts, count, v.dtype, op); err != nil {
		return err
	}
	return v.nccl.call(ir.NewCollective(ir.AllGather, int32(n), 1, true), whole, count, v.dtype, op)
}
