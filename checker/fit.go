package checker

import (
	"fmt"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// CodeFit is for programs that are right but that a GPU can't run.
const CodeFit = "does-not-fit"

// Device is a GPU as far as residency goes: SMs is its number of
// multiprocessors, on each of which one thread block of a collective's kernel is
// sure to have room (NCCL and MSCCL launch 512 to 640 threads of up to 96
// registers, which leaves no room that can be counted on for a second).
type Device struct {
	Name string
	SMs  int32
}

// Fit reports whether all thread blocks of every rank can be resident at once.
// They have to be: they wait for one another by spinning, so that one which has not
// been started keeps the others waiting for ever, and no runtime asks before it
// launches. ranksPerDevice is the number of ranks that share a GPU, 1 or more.
func Fit(p *ir.Program, d Device, ranksPerDevice int32) diag.List {
	var list diag.List
	more := 0
	for first := 0; first < len(p.GPUs); first += int(max(ranksPerDevice, 1)) {
		need := 0
		last := min(first+int(max(ranksPerDevice, 1)), len(p.GPUs))
		for r := first; r < last; r++ {
			need += blocksOf(p, r)
		}
		if need <= int(d.SMs) {
			continue
		}
		if len(list) == 10 {
			more++
			continue
		}
		who := fmt.Sprintf("rank %d needs", first)
		if last-first > 1 {
			who = fmt.Sprintf("ranks %d to %d together need", first, last-1)
		}
		m := diag.Errorf(diag.Pos{}, CodeFit, "%s %d thread blocks at once, of which %s runs %d for sure", who, need, d.Name, d.SMs)
		list = append(list, m.Suggest("use fewer instances or channels, or more GPUs"))
	}
	if more > 0 {
		list[len(list)-1].Note(diag.Pos{}, "and %d more like this", more)
	}
	return list
}

func blocksOf(p *ir.Program, r int) int {
	if p.OneSided != nil {
		return len(p.OneSided.GPUs[r].Blocks)
	}
	return len(p.GPUs[r].TBs)
}
