package mscclxml

import (
	"cmp"
	"slices"
	"sort"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// copyRun is a run of copy elements: count chunks of input to output.
type copyRun struct {
	in, out, count int32
	at             int32
}

// runCopies makes steps of the copy elements that SCCL's programs have: a thread
// block of its own copies before any other touches what it writes. In place
// most of them copy chunks onto themselves, and nothing is left to do.
func (b *build) runCopies(p *ir.Program) bool {
	var runs [][]copyRun
	some, given := false, false
	for r := range p.GPUs {
		list, ok := b.copyRuns(p, ir.Rank(r))
		if !ok {
			return false
		}
		runs = append(runs, list)
		some = some || len(list) > 0
		given = given || len(b.copies[r]) > 0
	}
	if given {
		text := "copy elements: they copy chunks onto themselves here, nothing is left to do"
		if some {
			text = "copy elements: they run as steps, before anything that touches what they write"
		}
		b.noteOnce(text)
	}
	if !some {
		return true
	}
	x := &inserter{b: b, p: p, old: p.Deps}
	p.Deps = make([]ir.Dep, 0, len(p.Deps)+len(runs))
	for r := range p.GPUs {
		x.rank(ir.Rank(r), runs[r])
	}
	p.Positions = b.positions
	return true
}

func (b *build) noteOnce(text string) {
	for _, n := range b.c.notes {
		if n.Text == text {
			return
		}
	}
	b.c.note(diag.Info, b.c.doc.at, CodeNote, "%s", text)
}

// copyRuns are the copies of a rank that change something.
func (b *build) copyRuns(p *ir.Program, r ir.Rank) ([]copyRun, bool) {
	g := &p.GPUs[r]
	var runs []copyRun
	for _, c := range b.copies[r] {
		if c.in >= g.Input || c.out >= g.Output {
			b.c.errorf(c.at, CodeInvalid, "gpu %d: copy of input %d to output %d: %s has %d and %d chunks there", r, c.in, c.out, p.Coll, g.Input, g.Output)
			return nil, false
		}
		fromBuf, from := p.Coll.Canon(r, ir.Input, c.in)
		toBuf, to := p.Coll.Canon(r, ir.Output, c.out)
		if fromBuf == toBuf && from == to {
			continue
		}
		if n := len(runs) - 1; n >= 0 && runs[n].in+runs[n].count == c.in && runs[n].out+runs[n].count == c.out && fromBuf != toBuf {
			runs[n].count++
			continue
		}
		runs = append(runs, copyRun{in: c.in, out: c.out, count: 1, at: c.at})
	}
	return runs, true
}

// inserter rebuilds a program with copies.
type inserter struct {
	b   *build
	p   *ir.Program
	old []ir.Dep
}

// rank adds the copies of one rank. A thread block that has to wait for them does
// so at its first step, in a nop of its own if that step waits already.
func (x *inserter) rank(r ir.Rank, runs []copyRun) {
	g := &x.p.GPUs[r]
	var written, read []span
	for _, c := range runs {
		to, o := x.p.Coll.Canon(r, ir.Output, c.out)
		from, i := x.p.Coll.Canon(r, ir.Input, c.in)
		written, read = append(written, span{to, o, o + c.count}), append(read, span{from, i, i + c.count})
	}
	intoSpans, fromSpans := newSpans(written), newSpans(read)
	shift := make([]int32, len(g.TBs))
	waits := make([]bool, len(g.TBs))
	tbs := make([]ir.ThreadBlock, len(g.TBs))
	for t := range g.TBs {
		tbs[t] = g.TBs[t]
		waits[t] = len(runs) > 0 && x.touches(r, &tbs[t], intoSpans, fromSpans)
		if waits[t] && tbs[t].Steps[0].DepStart < tbs[t].Steps[0].DepEnd {
			shift[t] = 1
		}
	}
	done := ir.Dep{TB: int32(len(tbs)), Step: int32(len(runs) - 1)}
	for t := range tbs {
		steps := make([]ir.Step, 0, len(tbs[t].Steps)+1)
		if shift[t] == 1 {
			steps = append(steps, ir.Step{Kind: ir.Nop, Src: ir.NoPlace, Dst: ir.NoPlace, Remote: ir.NoPlace, SendPeer: ir.None,
				RecvPeer: ir.None, Chan: tbs[t].Chan, DepStart: int32(len(x.p.Deps)), DepEnd: int32(len(x.p.Deps) + 1), Pos: tbs[t].Steps[0].Pos})
			x.p.Deps = append(x.p.Deps, done)
		}
		for s := range tbs[t].Steps {
			st := tbs[t].Steps[s]
			list := x.old[st.DepStart:st.DepEnd]
			st.DepStart = int32(len(x.p.Deps))
			if s == 0 && waits[t] && shift[t] == 0 {
				x.p.Deps = append(x.p.Deps, done)
			}
			for _, d := range list {
				x.p.Deps = append(x.p.Deps, ir.Dep{TB: d.TB, Step: d.Step + shift[d.TB]})
			}
			st.DepEnd = int32(len(x.p.Deps))
			steps = append(steps, st)
		}
		tbs[t].Steps = steps
	}
	if len(runs) > 0 {
		tbs = append(tbs, x.block(runs, waits))
	}
	g.TBs = tbs
}

// block is the thread block that copies.
func (x *inserter) block(runs []copyRun, waits []bool) ir.ThreadBlock {
	tb := ir.ThreadBlock{Send: ir.None, Recv: ir.None}
	for _, c := range runs {
		n := int32(len(x.p.Deps))
		tb.Steps = append(tb.Steps, ir.Step{Kind: ir.Copy, Src: ir.Place{Buf: ir.Input, Index: c.in}, Dst: ir.Place{Buf: ir.Output, Index: c.out},
			Remote: ir.NoPlace, Count: c.count, SendPeer: ir.None, RecvPeer: ir.None, DepStart: n, DepEnd: n, Pos: x.b.pos(c.at)})
	}
	for _, w := range waits {
		if w {
			tb.Steps[len(tb.Steps)-1].Post = true
		}
	}
	return tb
}

// touches reports whether a thread block uses what copies write, or writes what
// they read.
func (x *inserter) touches(r ir.Rank, tb *ir.ThreadBlock, written, read spans) bool {
	hits := func(at ir.Place, count int32, in spans) bool {
		buf, i := x.p.Coll.Canon(r, at.Buf, at.Index)
		return in.overlap(span{buf, i, i + count})
	}
	for s := range tb.Steps {
		st := &tb.Steps[s]
		switch {
		case st.Kind.ReadsSrc() && hits(st.Src, st.Count, written),
			st.Kind.WritesDst() && (hits(st.Dst, st.Count, written) || hits(st.Dst, st.Count, read)):
			return true
		}
	}
	return false
}

// span is the chunks [lo, hi) of a buffer; spans are sorted and apart.
type (
	span struct {
		buf    ir.BufferID
		lo, hi int32
	}
	spans []span
)

func newSpans(list []span) spans {
	slices.SortFunc(list, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.buf, b.buf), cmp.Compare(a.lo, b.lo))
	})
	out := list[:0]
	for _, s := range list {
		if n := len(out) - 1; n >= 0 && out[n].buf == s.buf && s.lo <= out[n].hi {
			out[n].hi = max(out[n].hi, s.hi)
			continue
		}
		out = append(out, s)
	}
	return out
}

func (l spans) overlap(s span) bool {
	i := sort.Search(len(l), func(i int) bool {
		return l[i].buf > s.buf || l[i].buf == s.buf && l[i].hi > s.lo
	})
	return i < len(l) && l[i].buf == s.buf && l[i].lo < s.hi
}
