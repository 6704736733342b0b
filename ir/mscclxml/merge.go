package mscclxml

import "github.com/mscclsh/mscclsh/ir"

// maxMerged is the number of consecutive reduces that every runtime and protocol
// can merge: their table of sources has 17 entries, of which Simple uses one more.
const maxMerged = 15

// merging follows the runtimes' merging of reduces within one thread block. A
// "re" that waits for nothing and has the destination and the source buffer of
// the one before joins it, unless that one posts. The runtimes look at neither
// the counts (the last wins) nor at overlaps, and their check of the group's
// length counts all of the thread block's reduces once. Where joining would
// change what the steps mean, posting ends the group: it is harmless otherwise.
type merging struct {
	coll   *ir.Collective
	rank   ir.Rank
	length int // steps in the present group, the present step included
}

// mustEnd reports whether step s of steps must post to keep the next one out of
// its group. Calls must come in order.
func (m *merging) mustEnd(steps []ir.Step, s int) bool {
	if steps[s].Kind != ir.Reduce {
		m.length = 0
		return false
	}
	m.length++
	if s+1 == len(steps) || steps[s].Post || !joins(&steps[s], &steps[s+1]) {
		m.length = 0
		return false
	}
	if m.length == maxMerged || steps[s].Count != steps[s+1].Count || m.overlaps(&steps[s+1]) || m.overlaps(&steps[s]) {
		m.length = 0
		return true
	}
	return false
}

// joins is the runtimes' rule for merging b into a.
func joins(a, b *ir.Step) bool {
	return b.Kind == ir.Reduce && b.DepStart == b.DepEnd && a.Dst == b.Dst && a.Src.Buf == b.Src.Buf
}

// overlaps reports whether a reduce reads as its source chunks that it, and so
// every step of its group, writes; in place by whatever name.
func (m *merging) overlaps(s *ir.Step) bool {
	srcBuf, src := m.coll.Canon(m.rank, s.Src.Buf, s.Src.Index)
	dstBuf, dst := m.coll.Canon(m.rank, s.Dst.Buf, s.Dst.Index)
	return srcBuf == dstBuf && src < dst+s.Count && dst < src+s.Count
}
