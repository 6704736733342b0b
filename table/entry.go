package table

import (
	"fmt"
	"math"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// OpenEnd is the MaxBytes of an entry without an upper end.
const OpenEnd = math.MaxInt64

// Memory is what an entry demands of buffers (MSCCLSH_ANY_MEMORY, MSCCLSH_WINDOWS).
type Memory int32

// AnyMemory takes all buffers; Windows wants both in windows that were registered
// collectively.
const (
	AnyMemory Memory = iota
	Windows
)

// String is "any" or "windows".
func (m Memory) String() string {
	if m == Windows {
		return "windows"
	}
	return "any"
}

// DTypes is a set of data types: bit d is runtime.DType d.
type DTypes uint32

// AllDTypes has every data type.
func AllDTypes() DTypes { return 1<<len(runtime.DTypeNames()) - 1 }

// Has reports whether d is in the set.
func (s DTypes) Has(d runtime.DType) bool { return s>>d&1 != 0 }

// String lists the names, "all" if every type is there.
func (s DTypes) String() string { return listSet(uint32(s), runtime.DTypeNames()) }

// Ops is a set of reductions: bit o is runtime.ReduceOp o. Collectives that reduce
// nothing have NoOps.
type Ops uint32

// NoOps are the operations of a collective that reduces nothing: any, as none is used.
const NoOps Ops = math.MaxUint32

// AllOps has every reduction.
func AllOps() Ops { return 1<<len(runtime.ReduceOpNames()) - 1 }

// Has reports whether o is in the set.
func (s Ops) Has(o runtime.ReduceOp) bool { return s>>o&1 != 0 }

// String lists the names, "all" if every reduction is there, "-" where none is used.
func (s Ops) String() string {
	if s == NoOps {
		return "-"
	}
	return listSet(uint32(s), runtime.ReduceOpNames())
}

func listSet(set uint32, names []string) string {
	if set == 1<<len(names)-1 {
		return "all"
	}
	var have []string
	for i, n := range names {
		if set>>i&1 != 0 {
			have = append(have, n)
		}
	}
	return strings.Join(have, ",")
}

// Entry says which calls its programs serve.
type Entry struct {
	Name       string // unique in the table
	Source     string // FILE:LINE of the table's source
	Collective Collective
	Ranks      int32
	Nodes      int32
	Root       int32 // the only one that matches; None: not rooted, or any
	Priority   int32
	MinBytes   int64 // of a call, inclusive
	MaxBytes   int64 // inclusive; OpenEnd: no upper end
	Multiple   int64 // the call's count must be a multiple of it
	Unit       int32 // so must the bytes of a chunk be, count / Multiple elements: 1 with sends and receives
	Alignment  int64 // of both buffers, bytes
	DTypes     DTypes
	Ops        Ops
	Memory     Memory
	Threads    int32 // of a thread block; 0 is the runtime's choice
	MaxBlocks  int32 // thread blocks of the rank that has most
	InPlace    int32 // index of the program for calls in place, or None
	OutOfPlace int32 // likewise for calls out of place
	Mixable    bool  // ranks that call in place and ranks that don't may meet: of a one-sided program, in it alone
}

// Place is "both", "in" or "out": which programs the entry has.
func (e *Entry) Place() string {
	switch {
	case e.InPlace == ir.None:
		return "out"
	case e.OutOfPlace == ir.None:
		return "in"
	}
	return "both"
}

// Range is the entry's sizes as a source would write them, such as "1KiB..32KiB",
// "1KiB..<32KiB" (without the upper end) or "4KiB..".
func (e *Entry) Range() string {
	from, to := "", ""
	if e.MinBytes > 0 {
		from = FormatSize(e.MinBytes)
	}
	switch {
	case e.MaxBytes == OpenEnd:
	case e.MaxBytes%1024 == 1023:
		to = "<" + FormatSize(e.MaxBytes+1)
	default:
		to = FormatSize(e.MaxBytes)
	}
	return from + ".." + to
}

// FormatSize writes bytes exactly, in the largest binary unit that divides them.
func FormatSize(n int64) string {
	units := []string{"", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for n > 0 && n%1024 == 0 && i+1 < len(units) {
		i, n = i+1, n/1024
	}
	return fmt.Sprintf("%d%s", n, units[i])
}

// Program is one compiled program of a table.
type Program struct {
	Title         string // name, collective and parameters, for people
	Tables        cuda.Tables
	One           *cuda.OneTables // nil: it sends and receives
	Ranks         int32
	Protocol      ir.Protocol
	Slots         int32
	SlotBytes     int64
	CountChunks   int64 // chunks that a call's count is cut into
	ScratchChunks int64 // of the rank that has most; of a one-sided program, with what packets and halves take
	MaxRegime     int64 // chunks that a message carries at most
}

// Steps counts the steps of all ranks, or the operations.
func (p *Program) Steps() int {
	if p.One != nil {
		return len(p.One.Ops) / cuda.OpWords
	}
	return len(p.Tables.Steps) / cuda.StepWords
}

// Table is a table of algorithms: entries in the order in which they are tried.
type Table struct {
	MadeBy   string // the version of mscclsh
	ABI      uint32 // of the programs
	Entries  []Entry
	Programs []Program
}
