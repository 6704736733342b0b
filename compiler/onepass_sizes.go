package compiler

import (
	"sort"

	"github.com/mscclsh/mscclsh/ir"
)

// Launches of different sizes have the same chunks of scratch at different places: what is
// first in the scratch of a rank comes after all that were last there, wherever. (Inputs
// and outputs are the caller's, who comes between.)

// leftover is what one rank did last in some scratch in a launch: events that no other of
// that launch comes after at some place.
type leftover struct {
	rank        ir.Rank
	launch      int32
	wrote, read []int32
}

type leftoverKey struct {
	event int32
	wrote bool
}

// leave notes who was last in each rank's scratch when a launch is over.
func (p *publisher) leave(launch int32) {
	half := int32(0)
	if p.trace.DoubleScratch {
		half = launch % 2
	}
	for r := range p.trace.GPUs {
		seen, of := map[leftoverKey]bool{}, map[ir.Rank]int{}
		var list []leftover
		add := func(e int32, wrote bool) {
			key := leftoverKey{e, wrote}
			if e/p.n != launch || seen[key] {
				return
			}
			seen[key] = true
			q := p.op(e).Rank
			i, ok := of[q]
			if !ok {
				i = len(list)
				of[q], list = i, append(list, leftover{rank: q, launch: launch})
			}
			if wrote {
				list[i].wrote = append(list[i].wrote, e)
			} else {
				list[i].read = append(list[i].read, e)
			}
		}
		from, to := p.scratch(r)
		for l := from + half*p.space.size; l < to+half*p.space.size; l++ {
			if p.cells.stamp[l] != 1 {
				continue
			}
			for n := p.cells.reader[l]; n != ir.None; n = p.cells.reads[n].next {
				add(p.cells.reads[n].op, false)
			}
			if w := p.cells.writer[l]; w != ir.None && p.cells.reader[l] == ir.None {
				add(w, true)
			}
		}
		p.left[half*int32(len(p.trace.GPUs))+int32(r)] = list
	}
}

// scratch is where the scratch of rank r is in the first half.
func (p *publisher) scratch(r int) (from, to int32) {
	to = p.space.size
	if r+1 < len(p.space.first) {
		to = p.space.first[r+1]
	}
	return p.space.base[r][ir.FirstScratch], to
}

// enter pairs the links of the chains by which event v, if it is the first of its launch at
// some place of a rank's scratch, comes after all that were last there.
func (p *publisher) enter(v int32, x *oneAccess) {
	half, lo := int32(0), x.lo
	if lo >= p.space.size {
		half, lo = 1, lo-p.space.size
	}
	r := sort.Search(len(p.space.first), func(i int) bool { return p.space.first[i] > lo }) - 1
	list := p.left[half*int32(len(p.trace.GPUs))+int32(r)]
	if from, _ := p.scratch(r); lo < from || len(list) == 0 || !p.first(v, x) {
		return
	}
	for i := range list {
		if list[i].rank != p.op(v).Rank {
			p.follow(v, x, &list[i])
		}
	}
}

// follow lets event v come after what one rank has left: told by a later launch of that rank, which
// begins when all of that is over, or else by what came after each event in the launch itself.
func (p *publisher) follow(v int32, x *oneAccess, left *leftover) {
	r, q := p.op(v).Rank, left.rank
	over := (left.launch + 1) * int32(len(p.ops[q]))
	wrote, read := left.wrote, left.read
	if !x.write {
		read = nil
	}
	switch {
	case p.strong[r][q] > over && len(wrote)+len(read) > 0:
		p.chain(ir.None, q, r, v, func(a *arrival) bool { return a.strong[q] > over })
		wrote, read = p.carriedOut(wrote), p.carriedOut(read)
	case p.weak[r][q] > over && len(read) > 0:
		p.chain(ir.None, q, r, v, func(a *arrival) bool { return a.weak[q] > over })
		read = p.carriedOut(read)
	}
	for _, a := range wrote {
		p.ordered(a, v, false)
	}
	for _, a := range read {
		p.ordered(a, v, true)
	}
}

// carriedOut are those of events that a port carries out: they may outlast their launch.
func (p *publisher) carriedOut(events []int32) []int32 {
	var list []int32
	for _, e := range events {
		if oneCarried(p.op(e)) {
			list = append(list, e)
		}
	}
	return list
}

// first reports whether v is the first event of its launch somewhere in x.
func (p *publisher) first(v int32, x *oneAccess) bool {
	launch, c := v/p.n, p.cells
	for l := x.lo; l < x.hi; l++ {
		w, n := c.writer[l], c.reader[l]
		if c.stamp[l] != 1 || (w == ir.None || w/p.n < launch) && (n == ir.None || c.reads[n].op/p.n < launch) {
			return true
		}
	}
	return false
}
