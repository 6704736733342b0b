package table

import (
	"fmt"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
)

// Collective is a collective as the file numbers it (MSCCLSH_ALLREDUCE and so on).
type Collective int32

// The collectives of NCCL's interface.
const (
	AllReduce Collective = iota
	AllGather
	ReduceScatter
	Broadcast
	Reduce
	AllToAll
	Gather
	Scatter
	SendRecv
	collectives // how many
)

// collectiveInfo describes a collective once for everything that asks about it.
type collectiveInfo struct {
	name     string
	kind     ir.CollectiveKind
	blocks   bool // the larger buffer has a block of the call's count for each rank
	reduces  bool
	wholeMem bool // in place, input and output are one memory, index by index
}

var collectiveTable = [collectives]collectiveInfo{
	AllReduce:     {"allreduce", ir.AllReduce, false, true, true},
	AllGather:     {"allgather", ir.AllGather, true, false, false},
	ReduceScatter: {"reducescatter", ir.ReduceScatter, true, true, false},
	Broadcast:     {"broadcast", ir.Broadcast, false, false, true},
	Reduce:        {"reduce", ir.ReduceTo, false, true, true},
	AllToAll:      {"alltoall", ir.AllToAll, true, false, true},
	Gather:        {"gather", ir.Gather, true, false, false},
	Scatter:       {"scatter", ir.Scatter, true, false, false},
	SendRecv:      {"sendrecv", ir.SendRecv, false, false, false},
}

// Collectives lists all of them in the order of the file.
func Collectives() []Collective {
	list := make([]Collective, collectives)
	for i := range list {
		list[i] = Collective(i)
	}
	return list
}

// CollectiveNames lists their names, for help texts.
func CollectiveNames() []string {
	names := make([]string, collectives)
	for i := range names {
		names[i] = collectiveTable[i].name
	}
	return names
}

// ParseCollective reads a name as the table spells it; reduce_scatter, all_reduce and the
// like mean the same.
func ParseCollective(s string) (Collective, error) {
	bare := strings.ReplaceAll(strings.ToLower(s), "_", "")
	for i := range collectiveTable {
		if collectiveTable[i].name == bare {
			return Collective(i), nil
		}
	}
	return 0, fmt.Errorf("collective: got %q, want one of %s", s, strings.Join(CollectiveNames(), ", "))
}

// OfKind is the table's collective for one of the language; false for those that NCCL's
// interface has no call for.
func OfKind(k ir.CollectiveKind) (Collective, bool) {
	for i := range collectiveTable {
		if collectiveTable[i].kind == k {
			return Collective(i), true
		}
	}
	return 0, false
}

func (c Collective) valid() bool { return c >= 0 && c < collectives }

// String is the collective's name.
func (c Collective) String() string {
	if c.valid() {
		return collectiveTable[c].name
	}
	return fmt.Sprintf("Collective(%d)", int32(c))
}

// Kind is the language's collective.
func (c Collective) Kind() ir.CollectiveKind { return collectiveTable[c].kind }

// Rooted reports whether calls have a root; of sendrecv it is the rank that sends.
func (c Collective) Rooted() bool { return c.Kind().Rooted() || c == SendRecv }

// Reduces reports whether calls have an operation.
func (c Collective) Reduces() bool { return collectiveTable[c].reduces }

// Blocks is how many times a call's count its larger buffer holds: the number of ranks
// where every rank has a block of its own, else 1.
func (c Collective) Blocks(ranks int32) int64 {
	if collectiveTable[c].blocks {
		return int64(ranks)
	}
	return 1
}

// Bytes is the size of a call of count elements of size bytes each: the larger of one
// rank's input and output. A size that no memory holds is math.MaxInt64.
func (c Collective) Bytes(count int64, size int, ranks int32) int64 {
	return product(product(count, int64(size)), c.Blocks(ranks))
}
