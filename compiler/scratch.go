package compiler

import (
	"cmp"
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// scratchMap places the scratch buffers of one rank in its one scratch memory.
type scratchMap struct {
	// offset[buffer-FirstScratch][index] is the place of a chunk; None where
	// nothing touches it.
	offset [][]int32
	size   int32
}

// block is a run of scratch chunks that steps use together: a maximal set of
// ranges, in one buffer, that overlap or are used by one step.
type block struct {
	buf, lo, hi int32 // buffer-FirstScratch; indices [lo, hi)
	uses        []int32
	at          int32
}

// region is a run of scratch memory and the last uses of what it held, one a
// thread block.
type region struct {
	off, size int32
	last      []int32
}

// maxRegions bounds how many regions are considered for one block.
const maxRegions = 64

// layOutScratch places scratch rank by rank. Only chunks that a step touches
// take room, and a block takes over a region whose every use is known to be done
// by the waits that are there: reuse never adds a wait.
func layOutScratch(_ context.Context, s *state) error {
	s.places = make([]scratchMap, s.fused.Ranks())
	byRank := s.tbsByRank()
	c := s.newClocks()
	for r := range s.places {
		m := &s.places[r]
		blocks := s.blocksOf(ir.Rank(r), byRank[r], m)
		if len(blocks) == 0 {
			continue
		}
		if len(blocks) > 1 {
			c.run(ir.Rank(r), byRank[r], nil)
		}
		var free []region
		for b := range blocks {
			free = c.put(&blocks[b], free, m)
			for i := blocks[b].lo; i < blocks[b].hi; i++ {
				m.offset[blocks[b].buf][i] = blocks[b].at + i - blocks[b].lo
			}
		}
	}
	return nil
}

// blocksOf finds the blocks of a rank in the order of their first use.
func (s *state) blocksOf(r ir.Rank, tbs []int32, m *scratchMap) []block {
	buffers := s.fused.Buffers[ir.FirstScratch:]
	m.offset = make([][]int32, len(buffers))
	joined := make([][]bool, len(buffers)) // index i belongs with i+1
	touched := make([][]bool, len(buffers))
	for b := range buffers {
		n := buffers[b].Chunks[r]
		m.offset[b], joined[b], touched[b] = filled(int(n), ir.None), make([]bool, n), make([]bool, n)
	}
	each := func(do func(i int32, p ir.Place)) {
		for _, t := range tbs {
			for _, i := range s.steps[t] {
				in := &s.fused.Instrs[i]
				if in.Kind.ReadsSrc() && in.Src.Buf >= ir.FirstScratch {
					do(i, in.Src)
				}
				if (in.Kind.WritesDst() || in.Kind.ReadsDst()) && in.Dst.Buf >= ir.FirstScratch {
					do(i, in.Dst)
				}
			}
		}
	}
	each(func(i int32, p ir.Place) {
		b := p.Buf - ir.FirstScratch
		for k := p.Index; k < p.Index+s.fused.Instrs[i].Count; k++ {
			touched[b][k] = true
			if k+1 < p.Index+s.fused.Instrs[i].Count {
				joined[b][k] = true
			}
		}
	})
	var blocks []block
	of := make([][]int32, len(buffers))
	for b := range buffers {
		of[b] = filled(len(touched[b]), ir.None)
		for k := range touched[b] {
			if !touched[b][k] {
				continue
			}
			if k == 0 || !joined[b][k-1] {
				blocks = append(blocks, block{buf: int32(b), lo: int32(k)})
			}
			of[b][k] = int32(len(blocks) - 1)
			blocks[len(blocks)-1].hi = int32(k) + 1
		}
	}
	each(func(i int32, p ir.Place) {
		b := &blocks[of[p.Buf-ir.FirstScratch][p.Index]]
		b.uses = append(b.uses, i)
	})
	first := func(b block) int32 {
		at := s.at[b.uses[0]]
		for _, i := range b.uses {
			at = min(at, s.at[i])
		}
		return at
	}
	slices.SortStableFunc(blocks, func(a, b block) int { return cmp.Compare(first(a), first(b)) })
	return blocks
}

// put places b in the smallest region that fits and is known to be free, or at
// the end of the rank's scratch.
func (c *clocks) put(b *block, free []region, m *scratchMap) []region {
	firsts, lasts := c.extremes(b.uses)
	size, best := b.hi-b.lo, -1
	for k := max(0, len(free)-maxRegions); k < len(free); k++ {
		if free[k].size >= size && (best < 0 || free[k].size < free[best].size) && c.over(free[k].last, firsts) {
			best = k
		}
	}
	if best < 0 {
		b.at = m.size
		m.size += size
		return append(free, region{b.at, size, lasts})
	}
	b.at = free[best].off
	rest := free[best]
	free[best] = region{b.at, size, lasts}
	if rest.size > size {
		free = append(free, region{rest.off + size, rest.size - size, rest.last})
	}
	return free
}

// extremes are the first and the last use in every thread block.
func (s *state) extremes(uses []int32) (firsts, lasts []int32) {
	keep := func(list []int32, i, sign int32) []int32 {
		for k, j := range list {
			if s.tbOf[j] == s.tbOf[i] {
				if sign*s.stepOf[i] > sign*s.stepOf[j] {
					list[k] = i
				}
				return list
			}
		}
		return append(list, i)
	}
	for _, i := range uses {
		firsts, lasts = keep(firsts, i, -1), keep(lasts, i, 1)
	}
	return firsts, lasts
}

// over reports whether every one of last is known to be done when any of first
// starts.
func (c *clocks) over(last, first []int32) bool {
	for _, f := range first {
		for _, l := range last {
			done := c.of(c.tbOf[f], c.stepOf[f])[c.column[c.tbOf[l]]]
			if c.tbOf[f] == c.tbOf[l] {
				done = c.stepOf[f] // its own earlier steps, not itself
				if c.exchangedRecv(f) {
					done-- // nor the send that it arrives with
				}
			}
			if done <= c.stepOf[l] {
				return false
			}
		}
	}
	return true
}

// exchangedRecv reports whether f is the receive of an exchange.
func (s *state) exchangedRecv(f int32) bool {
	return s.direct() && s.mate[f] != ir.None && s.fused.Instrs[f].Kind == ir.Recv
}
