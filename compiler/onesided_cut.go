package compiler

import "slices"

// cut cuts every block that got too long, and returns the parts; nil if there is
// none or it can't be cut.
func (x *export) cut() []int32 {
	parts, cuts := make([]int32, len(x.nodes)), 0
	if x.parts != nil {
		copy(parts, x.parts)
	}
	fresh := slices.Max(append(parts, 0)) + 1
	blocks := make([]int, len(x.p.GPUs))
	for b := range x.blocks {
		block := &x.blocks[b]
		n := x.pieces(block)
		if blocks[block.rank] += n; blocks[block.rank] > planBlocks {
			return nil
		}
		if n > 1 {
			x.divide(block, n, parts, fresh)
			cuts++
		}
	}
	if cuts == 0 {
		return nil
	}
	return parts
}

// pieces is into how many parts a block has to be cut: semaphores between them
// need some operations too.
func (x *export) pieces(block *planBlock) int {
	const room = planOps - 12
	total := 0
	for _, t := range block.batches {
		total += x.batches[t].ops
	}
	if total <= planOps {
		return 1
	}
	return (total + room - 1) / room
}

// divide gives the parts of a block after its first the numbers from fresh on.
// Every part has about as many operations as the others; a batch is cut only if it
// is the only one.
func (x *export) divide(block *planBlock, n int, parts []int32, fresh int32) {
	total := 0
	for _, t := range block.batches {
		total += x.batches[t].ops
	}
	done := 0
	for _, t := range block.batches {
		ops, nodes := x.batches[t].ops, x.batches[t].nodes
		for k, i := range nodes {
			at := done + ops/2
			if len(block.batches) == 1 {
				at = ops * k / len(nodes)
			}
			if part := min(at*n/total, n-1); part > 0 {
				parts[i] = fresh + int32(part) - 1
			}
		}
		done += ops
	}
}
