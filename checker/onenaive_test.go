package checker

import (
	"fmt"

	"github.com/mscclsh/mscclsh/ir"
)

// oneNaive judges tiny one-sided programs by brute force: every interleaving for
// deadlocks, and a closure over a graph of threads for races. It shares nothing with
// the checker but the form of a program, and knows only what the random programs of
// onerandom_test.go have: memory and port channels between two ranks, no in-place
// aliasing but index by index, no groups, parts or pipelines. Launches of several sizes
// are judged size by size, on places of one unit of the alignment each.
type oneNaive struct {
	p     *ir.Program
	o     *ir.OneSided
	lines []oneLine
}

type oneLine struct {
	rank int
	ops  []*ir.Op
}

func newOneNaive(p *ir.Program) *oneNaive {
	n := &oneNaive{p: p, o: p.OneSided}
	for r := range n.o.GPUs {
		for _, span := range n.o.GPUs[r].Blocks {
			l := oneLine{rank: r}
			for i := span.Start; i < span.End; i++ {
				l.ops = append(l.ops, &n.o.Ops[i])
			}
			n.lines = append(n.lines, l)
		}
	}
	return n
}

// place names chunk j of an operand.
func (n *oneNaive) place(d *ir.Operand, j int32) string {
	buf := d.Buf
	if buf == ir.Output && n.p.Coll.InPlace {
		buf = ir.Input
	}
	return fmt.Sprintf("%d%c%d", d.Rank, "ios"[buf], d.Index+j)
}

// can reports whether line l can take its next step when each line has taken at[]
// steps, everything else following from that.
func (n *oneNaive) can(l int, at []int) bool {
	line := n.lines[l]
	if at[l] == len(line.ops) {
		return false
	}
	op := line.ops[at[l]]
	count := func(kind func(ir.OpKind) bool, rank int, ref int32) int {
		c := 0
		for k, other := range n.lines {
			for _, x := range other.ops[:at[k]] {
				for _, y := range n.o.RefsOf(x) {
					if other.rank == rank && kind(x.Kind) && y == ref {
						c++
					}
				}
			}
		}
		return c
	}
	is := func(kinds ...ir.OpKind) func(ir.OpKind) bool {
		return func(k ir.OpKind) bool {
			for _, x := range kinds {
				if x == k {
					return true
				}
			}
			return false
		}
	}
	for _, ref := range n.o.RefsOf(op) {
		switch op.Kind {
		case ir.OpWait, ir.OpRelaxedWait:
			c := n.o.GPUs[line.rank].Channels[ref]
			given := count(is(ir.OpSignal, ir.OpRelaxedSignal, ir.OpPutSignal), int(c.Peer), c.Pair)
			if given <= count(is(ir.OpWait, ir.OpRelaxedWait), line.rank, ref) {
				return false
			}
		case ir.OpSemaphoreAcquire:
			v := int(n.o.GPUs[line.rank].Semaphores[ref])
			if v+count(is(ir.OpSemaphoreRelease), line.rank, ref) <= count(is(ir.OpSemaphoreAcquire), line.rank, ref) {
				return false
			}
		case ir.OpBarrier:
			// The first to come passes the step "barrier" only with the other: both are
			// at their barrier of the same turn, or the other is beyond.
			mine := 0
			for _, x := range line.ops[:at[l]] {
				if x.Kind == ir.OpBarrier {
					mine++
				}
			}
			for k, other := range n.lines {
				if other.rank != line.rank || k == l {
					continue
				}
				theirs, here := 0, at[k] < len(other.ops) && other.ops[at[k]].Kind == ir.OpBarrier
				for _, x := range other.ops[:at[k]] {
					if x.Kind == ir.OpBarrier {
						theirs++
					}
				}
				if theirs < mine || theirs == mine && !here {
					return false
				}
			}
		}
	}
	if waitsForPackets(op.Kind) {
		for i := range n.o.Sources(op) {
			d := &n.o.Sources(op)[i]
			for j := range d.Size {
				if d.Packets && !n.written(n.place(d, j), at) {
					return false
				}
			}
		}
	}
	return true
}

func waitsForPackets(k ir.OpKind) bool { return k == ir.OpUnpackPackets || k == ir.OpReducePackets }

func (n *oneNaive) written(place string, at []int) bool {
	for k, other := range n.lines {
		for _, x := range other.ops[:at[k]] {
			for i := range n.o.Destinations(x) {
				d := &n.o.Destinations(x)[i]
				for j := range d.Size {
					if d.Packets && n.place(d, j) == place {
						return true
					}
				}
			}
		}
	}
	return false
}

// stuck reports whether some interleaving doesn't end.
func (n *oneNaive) stuck() bool {
	seen := map[string]bool{}
	todo := [][]int{make([]int, len(n.lines))}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[fmt.Sprint(at)] {
			continue
		}
		seen[fmt.Sprint(at)] = true
		moved, over := false, true
		for l := range n.lines {
			over = over && at[l] == len(n.lines[l].ops)
			if n.can(l, at) {
				moved = true
				next := append([]int(nil), at...)
				next[l]++
				todo = append(todo, next)
			}
		}
		if !moved && !over {
			return true
		}
	}
	return false
}
