package checker

import (
	"cmp"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Shapes of a few turns stand for all sizes as long as what pipelines take from a
// channel or semaphore, pipelines of as many turns give. Where they don't, how much is left
// depends on the size, and is counted here.

// unevenUnits bounds the sizes that are counted, in units of a chunk: more than any memory.
const unevenUnits = 1 << 36

// pace is how often pipelines turn: all of one pace have as many turns.
type pace struct {
	unit   int64
	chunks int32
}

// account is what a launch does to a channel or semaphore.
type account struct {
	initial int64
	outside int64          // given and taken outside of pipelines
	net     map[pace]int64 // given and taken in each turn; where that isn't 0
	taker   int32          // an operation that takes in a pipeline, or None
}

// uneven reports channels and semaphores from which a launch of some size takes more than
// there is, and those of which it isn't known; what runs have shown is not said again.
func (m *oneModel) uneven(s sizeRange, f *findings) {
	if f.has(CodeDeadlock) || !slices.ContainsFunc(m.o.Ops, func(op ir.Op) bool { return op.Kind == ir.OpPipeline }) {
		return
	}
	chans, sems := m.accounts()
	for i := range chans {
		m.unevenAt(&chans[i], m.channelName(int32(i)), s, f)
	}
	for i := range sems {
		m.unevenAt(&sems[i], m.semName(int32(i)), s, f)
	}
}

func (m *oneModel) accounts() (chans, sems []account) {
	chans, sems = make([]account, len(m.chans)), make([]account, len(m.sems))
	for i := range sems {
		sems[i].initial = int64(m.sems[i].initial)
	}
	for r := range m.o.GPUs {
		for _, b := range m.o.GPUs[r].Blocks {
			for i := b.Start; i < b.End; i++ {
				op := &m.o.Ops[i]
				if op.Kind != ir.OpPipeline {
					m.book(chans, sems, ir.Rank(r), i, pace{})
					continue
				}
				for k := op.Body.Start; k < op.Body.End; k++ {
					m.book(chans, sems, ir.Rank(r), k, pace{op.UnitBytes, op.UnitChunks})
				}
			}
		}
	}
	return chans, sems
}

// book counts operation i of rank r, in a pipeline of pace p or outside of all.
func (m *oneModel) book(chans, sems []account, r ir.Rank, i int32, p pace) {
	op := &m.o.Ops[i]
	for _, x := range m.o.RefsOf(op) {
		var a *account
		n := int64(1)
		switch {
		case signals(op.Kind):
			a = &chans[m.rank[r].firstChan+x]
		case op.Kind == ir.OpWait || op.Kind == ir.OpRelaxedWait:
			if m.o.GPUs[r].Channels[x].Pair == ir.None {
				continue
			}
			a, n = &chans[m.inbound(r, x)], -1
		case op.Kind == ir.OpSemaphoreRelease:
			a = &sems[m.rank[r].firstSem+x]
		case op.Kind == ir.OpSemaphoreAcquire:
			a, n = &sems[m.rank[r].firstSem+x], -1
		default:
			return
		}
		if p.chunks == 0 {
			a.outside += n
			continue
		}
		if a.net == nil {
			a.net, a.taker = map[pace]int64{}, ir.None
		}
		if a.net[p] += n; a.net[p] == 0 {
			delete(a.net, p)
		}
		if n < 0 && a.taker == ir.None {
			a.taker = i
		}
	}
}

// unevenAt reports one channel or semaphore.
func (m *oneModel) unevenAt(a *account, name string, s sizeRange, f *findings) {
	paces := make([]pace, 0, len(a.net))
	most := int64(0) // what may be taken more than given, at any size
	for p, n := range a.net {
		paces = append(paces, p)
		most = max(most, -n)
	}
	slices.SortFunc(paces, func(x, y pace) int { return cmp.Or(cmp.Compare(x.unit, y.unit), cmp.Compare(x.chunks, y.chunks)) })
	s.most = min(s.most, unevenUnits)
	if most == 0 || s.least > s.most {
		return
	}
	// What there is when chunks have k units of the alignment, if all is given in time.
	left := func(k int64) int64 {
		n := a.initial + a.outside
		for _, p := range paces {
			n += a.net[p] * s.turns(&ir.Op{UnitBytes: p.unit, UnitChunks: p.chunks}, k)
		}
		return n
	}
	pos := m.p.Pos(m.o.Ops[a.taker].Pos)
	const advice = "let pipelines of as many turns give what a pipeline takes"
	switch k := s.search(s.least, s.most, func(k int64) bool { return left(k) < 0 }); {
	case left(s.most) < 0 && (len(paces) == 1 || left(k) < 0):
		if f.admit(CodeDeadlock) {
			f.add(diag.Errorf(pos, CodeDeadlock, "%s: pipelines take more of it in their turns than is given, so that a message of %d bytes never ends", name, s.bytes(k)).
				Suggest(advice))
		}
	case f.has(CodeLeftover) && left(s.most) >= a.outside:
	case len(paces) > 1 || left(s.most) < a.outside: // what is given outside may come too late
		if f.admit(CodeUndecided) {
			f.add(diag.Warningf(pos, CodeUndecided, "%s: how much of it pipelines give and take depends on the size, and not all sizes were tried", name).
				Suggest(advice))
		}
	}
}
