package mscclxml

import "github.com/mscclsh/mscclsh/ir"

// maxFused is how many reduces the kernels can merge into one: their table of
// sources has 17 entries, of which Simple uses one for the destination.
func maxFused(p ir.Protocol) int {
	if p == ir.Simple {
		return maxMerged
	}
	return maxMerged + 1
}

// lowering makes the transfers of one thread block as the parsers do.
//
// A nop's dependency waits with those of the next transfer, which must have one
// of its own; a nop without one is nothing, not even a number; what is left at
// the end is lost. A reduce that waits for nothing and has the destination and
// source buffer of the one before joins it, unless that one posts, and no nop
// between them prevents it: the nop's dependency goes to the transfer after. The
// last count of such a group is that of all. The number under which a transfer
// posts is that of its last nop or reduce, if those are written out one by one
// as here, so that steps stand where the runtime counts them.
type lowering struct {
	b       *build
	t       *rawTB
	k       *block
	pending []waiting // of nops
	group   int       // the first step of the present group of reduces
	size    int       // reduces in it; 0 is none that another could join
	total   int       // reduces so far
	last    *rawStep  // the reduce before
	rank    int32
}

// nopChain refuses what the parsers refuse while they lower.
func (b *build) nopChain(rank int32, t *rawTB) {
	(&lowering{b: b, t: t, rank: rank}).run()
}

// lowerTB lowers one thread block.
func (b *build) lowerTB(rank ir.Rank, t *rawTB, k *block) {
	k.tb = ir.ThreadBlock{Send: ir.Rank(t.send), Recv: ir.Rank(t.recv), Chan: t.ch}
	(&lowering{b: b, t: t, k: k, rank: int32(rank)}).run()
}

// run goes through the steps; without a block it makes none.
func (l *lowering) run() {
	t := l.t
	for s := range t.steps {
		r := &t.steps[s]
		if r.kind == ir.Nop {
			if r.depid >= 0 {
				l.pending = append(l.pending, waiting{id: r.depid, deps: r.deps, at: r.at})
			}
			continue
		}
		if r.kind == ir.Reduce && l.joins(r) {
			if l.k != nil {
				l.join(r)
			}
			l.last = r
			l.count(r, l.size+1)
			continue
		}
		if !l.transfer(r) {
			l.b.c.refuse(r.at, "nop chain", "gpu %d thread block %d step %d: after a nop it waits for nothing itself", l.rank, t.id, r.s)
			return
		}
		l.fusable(r)
	}
}

func (l *lowering) joins(r *rawStep) bool {
	return l.size > 0 && r.depid == ir.None && l.last.dst == r.dst && l.last.dstoff == r.dstoff && l.last.src == r.src
}

// transfer adds a step that begins a transfer, with those that wait for its
// other dependencies before it.
func (l *lowering) transfer(r *rawStep) bool {
	if r.depid >= 0 {
		l.pending = append(l.pending, waiting{id: r.depid, deps: r.deps, at: r.at})
	} else if len(l.pending) > 0 {
		return false
	}
	if l.k == nil {
		l.pending = l.pending[:0]
		return true
	}
	for i, w := range l.pending {
		w.step = int32(len(l.k.tb.Steps))
		l.k.waits = append(l.k.waits, w)
		if i < len(l.pending)-1 {
			nop := makeStep(&rawStep{kind: ir.Nop}, l.t)
			nop.Pos = l.b.pos(w.at)
			l.add(nop, false)
		}
	}
	l.pending = l.pending[:0]
	l.group = len(l.k.tb.Steps)
	l.addRaw(r)
	l.operands(r)
	return true
}

func (l *lowering) add(s ir.Step, posts bool) {
	l.k.tb.Steps = append(l.k.tb.Steps, s)
	l.k.posts = append(l.k.posts, posts)
}

func (l *lowering) addRaw(r *rawStep) {
	s := makeStep(r, l.t)
	s.Pos = l.b.pos(r.at)
	l.add(s, r.hasdep == 1)
}

// fusable notes whether the step begins a group of reduces.
func (l *lowering) fusable(r *rawStep) {
	l.size = 0
	if r.kind != ir.Reduce {
		return
	}
	l.last = r
	l.count(r, 1)
}

// count ends the group where the parsers do: at a reduce that posts, and at the
// sixteenth of the thread block.
func (l *lowering) count(r *rawStep, size int) {
	l.total++
	l.size = size
	if r.hasdep == 1 || l.total == maxMerged+1 {
		l.size = 0
	}
}

// join merges a reduce into the group.
func (l *lowering) join(r *rawStep) {
	c := l.b.c
	l.addRaw(r)
	l.operands(r)
	steps := l.k.tb.Steps[l.group:]
	l.k.posts[len(l.k.posts)-2] = false
	for i := range steps {
		steps[i].Count = r.cnt
	}
	if len(steps) > maxFused(l.b.protocol) {
		c.errorf(r.at, CodeUndefined, "gpu %d thread block %d step %d: more than %d reduces are merged, which is more than the kernel has room for",
			l.rank, l.t.id, r.s, maxFused(l.b.protocol))
	}
	for i := range steps {
		if s := &steps[i]; s.Src.Buf == s.Dst.Buf && s.Src.Index < s.Dst.Index+s.Count && s.Dst.Index < s.Src.Index+s.Count {
			c.errorf(r.at, CodeUndefined, "gpu %d thread block %d step %d: merged reduces read what they write", l.rank, l.t.id, r.s)
			break
		}
	}
}

// operands refuses what the parsers let pass and no kernel can do.
func (l *lowering) operands(r *rawStep) {
	bad := func(format string, args ...any) { l.b.c.errorf(r.at, CodeUndefined, format, args...) }
	switch {
	case r.cnt == 0:
		bad("%s: cnt 0", r.kind)
	case r.kind.ReadsSrc() && r.srcoff < 0:
		bad("%s: source offset %d", r.kind, r.srcoff)
	case r.kind.WritesDst() && r.dstoff < 0:
		bad("%s: destination offset %d", r.kind, r.dstoff)
	}
}
