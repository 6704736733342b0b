package compiler

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// What a port channel is given is carried out some time later, and still reads and writes
// memory while its thread block goes on. It is over for who comes after a flush of the channel, or
// after the wait that heard a later signal on it. Where neither comes between a put by a
// port and an operation of its rank that touches the same memory, the compiler flushes.

// oneCarried reports whether a port carries out what op moves after op is over.
func oneCarried(op *ir.TraceOp) bool {
	return op.Via == ir.ChannelPort && oneMoves(op) && op.Kind != ir.TraceOf(ir.OpPutSignalFlush)
}

// carries reports whether some operation of the trace is carried out by a port.
func (s *oneState) carries() bool {
	return slices.ContainsFunc(s.trace.Ops, func(op ir.TraceOp) bool { return oneCarried(&op) })
}

// oneFlush is a flush of the compiler's: of what a port channel has been given, in the
// thread block of site and before it, or behind it in a loop whose turns meet.
type oneFlush struct {
	site, channel int32
	pos           ir.PosID // of the put
	behind        bool
	ahead         bool // of the loop that site is in
}

// porter finds out where flushes are missing.
type porter struct {
	*oneOrderGraph
	heard   map[int32][]int32 // of a site that signals by a port: the waits that need it
	signals map[int32][]int32 // of a port channel, among all: sites that signal on it
	flushes map[int32][]int32 // the same: sites that flush it
	firstOf []int32           // of a rank: its first channel among all
	made    []oneFlush
	raised  map[int32]bool // operations that put and signal, and are to flush, too
}

func newPorter(g *oneOrderGraph) *porter {
	p := &porter{oneOrderGraph: g, heard: map[int32][]int32{}, signals: map[int32][]int32{}, flushes: map[int32][]int32{}, raised: map[int32]bool{}}
	channels := int32(0)
	for r := range g.trace.GPUs {
		p.firstOf = append(p.firstOf, channels)
		channels += int32(len(g.trace.GPUs[r].Channels))
	}
	for x := range g.sites {
		op := g.op(int32(x))
		if op.Via != ir.ChannelPort {
			continue
		}
		c := p.channel(op)
		if oneSignals(op.Kind) {
			p.signals[c] = append(p.signals[c], int32(x))
		}
		if op.Kind == ir.TraceOf(ir.OpFlush) || op.Kind == ir.TraceOf(ir.OpPutSignalFlush) {
			p.flushes[c] = append(p.flushes[c], int32(x))
		}
		if oneWaits(op.Kind) {
			for _, e := range g.before[x] {
				p.heard[e] = append(p.heard[e], int32(x))
			}
		}
	}
	return p
}

// channel is the channel of op among all.
func (p *porter) channel(op *ir.TraceOp) int32 { return p.firstOf[op.Rank] + op.Ref }

// queued reports whether sites a and b touch memory in order because one thread block gives both
// to one port channel.
func (p *porter) queued(a, b int32) bool {
	x, y := p.op(a), p.op(b)
	return p.sites[a].block == p.sites[b].block && x.Via == ir.ChannelPort && y.Via == ir.ChannelPort && x.Ref == y.Ref && oneMoves(y)
}

// over makes sure that site b, which touches what a port carries for site a, comes after that
// is done.
func (p *porter) over(a, b int32) {
	x, y := p.op(a), p.op(b)
	if p.raised[p.sites[a].op] || p.queued(a, b) || p.known(a, b) {
		return
	}
	if p.limited && x.Kind == ir.TraceOf(ir.OpPutSignal) {
		p.raised[p.sites[a].op] = true // the flush that MSCCL++'s executor has
		return
	}
	ahead := y.Loop != ir.None && x.Loop != y.Loop && p.follows(a, b)
	p.made = append(p.made, oneFlush{site: b, channel: x.Ref, pos: x.Pos, ahead: ahead})
}

// turn makes sure that what a port carries for site a is done when a's turn is over.
func (p *porter) turn(a int32) {
	x := p.op(a)
	f := oneFlush{site: a, channel: x.Ref, pos: x.Pos, behind: true}
	if !slices.Contains(p.made, f) {
		p.made = append(p.made, f)
	}
}

// known reports whether site b comes after a flush, or after the wait that heard a signal,
// behind what a port carries for site a.
func (p *porter) known(a, b int32) bool {
	c := p.channel(p.op(a))
	for _, f := range p.made {
		switch at := f.site; {
		case p.firstOf[p.op(at).Rank]+f.channel != c:
		case f.behind && at == a, !f.behind && p.behind(a, at) && (at == b || p.behind(at, b)):
			return true
		}
	}
	for _, f := range p.flushes[c] {
		if p.behind(a, f) && p.search(b, oneTarget{site: f, unit: ir.None}) {
			return true
		}
	}
	weak := p.onlyReads(a, b)
	for _, s := range p.signals[c] {
		if s != a && !p.follows(a, s) {
			continue
		}
		for _, w := range p.heard[s] {
			if p.search(b, oneTarget{site: w, unit: ir.None, weak: weak}) {
				return true
			}
		}
	}
	return false
}

// follows reports whether site b comes after site a in one thread block.
func (p *porter) follows(a, b int32) bool {
	x, y := p.sites[a], p.sites[b]
	return x.block == y.block && x.at < y.at
}

// behind reports whether site b comes after site a has begun, which gives it to its port, or has
// waited for what is ahead of it.
func (p *porter) behind(a, b int32) bool {
	return p.follows(a, b) || p.search(b, oneTarget{site: a, unit: ir.None})
}

// onlyReads reports whether what sites a and b touch both is only read by a.
func (p *porter) onlyReads(a, b int32) bool {
	x, y := p.op(a), p.op(b)
	writes := p.space.accesses(nil, x.Kind, nil, p.trace.Destinations(x))
	return !anyConflict(writes, p.space.accesses(nil, y.Kind, p.trace.Sources(y), p.trace.Destinations(y)))
}

// write puts flushes into lists of what comes ahead of and behind operations, and lets
// operations that put and signal flush, too.
func (p *porter) write(t *ir.OneTrace, ahead, behind [][]ir.TraceOp) {
	begin, _ := loopEnds(p.trace)
	for _, f := range p.made {
		op, at := p.op(f.site), p.sites[f.site].op
		n := ir.TraceOp{Kind: ir.TraceOf(ir.OpFlush), Via: ir.ChannelPort, Sync: ir.SyncBoth, Rank: op.Rank, Ref: f.channel, Loop: op.Loop, Pos: f.pos,
			Blocks: ir.Span{Start: int32(len(t.Blocks)), End: int32(len(t.Blocks)) + 1}}
		t.Blocks = append(t.Blocks, p.blockID(f.site))
		if f.behind {
			behind[at] = slices.Insert(behind[at], 0, n)
			continue
		}
		if f.ahead {
			n.Loop = ir.None
			ahead[begin[op.Loop]] = slices.Insert(ahead[begin[op.Loop]], 0, n)
			continue
		}
		ahead[at] = append(ahead[at], n)
	}
	if len(p.raised) > 0 {
		t.Ops = slices.Clone(t.Ops)
	}
	for v := range p.raised {
		t.Ops[v].Kind = ir.TraceOf(ir.OpPutSignalFlush)
	}
}
