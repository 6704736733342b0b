package compiler

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// onePublish runs the trace with each rank doing its operations one after another,
// which is what it means where thread blocks are left out, and follows what each rank
// knows to be done on the others. Where an operation touches what another rank has
// touched before, one chain of signals and waits told it so. Each rank on the way
// has to keep its part of the chain in order: what is announced before the signal, the
// wait before the signal that passes it on, the last wait before what relies on it. These
// are the pairs.
//
// It is run for as many launches as touch all memory twice, so that what keeps a next
// launch off is found too: a launch ends on a rank when its operations have, and the next
// one begins. Events are operations of launches: event launch*n + v is operation v of n.
//
// Two more things touch a rank's memory: before the launch its caller, and after it the
// caller again. So what goes to another rank's memory follows the first that the rank
// hears of the other's launch, and what it did there has to be known at the end of that one.
//
// Relaxed signals and packets tell of reads alone, and that a launch has begun: a later
// write may follow them, but nothing that needs a value. What nothing orders is left to
// the checker to report.
type publisher struct {
	*oneState
	ops      [][]int32 // of each rank
	n        int32     // operations
	launches int32
	at       []int32   // of each rank: events that are done
	place    []int32   // of an operation: its number on its rank in a launch
	strong   [][]int32 // of each rank, by rank: operations that are known to be done
	weak     [][]int32 // the same, known by what publishes nothing too
	arrivals [][]arrival
	sent     [][]announcement // of a channel: signals not yet waited for
	firstOf  []int32          // of a rank: its first channel among all
	tokens   [][]int32        // of a rank's semaphores
	packets  []int32          // of a location: the event that wrote packets there, or None
	told     map[int32]announcement
	left     [][]leftover      // of a half and a rank: who was last in its scratch, in the launch that had the half before
	loose    map[int32][]int32 // of a port channel: what it carries that no signal is behind yet
	carried  map[int32]int32   // of an operation by a port: the first signal behind it on its channel
	cells    *oneCells
	known    map[[2]int32]bool
}

// announcement is what a signal or packet tells: the knowledge of the rank that sends
// it. The number of its own operations that are done is that of op.
type announcement struct {
	op           int32
	strong, weak []int32
}

// arrival is what a rank knew after an operation that waited.
type arrival struct {
	op, from     int32
	strong, weak []int32
}

func onePublish(ctx context.Context, s *oneState) error {
	t := s.trace
	launches := int32(2)
	if t.DoubleScratch {
		launches = 3
	}
	size := s.space.size * (launches - 1)
	p := &publisher{oneState: s, ops: opsOfRanks(t), n: int32(len(t.Ops)), launches: launches, at: make([]int32, len(t.GPUs)), place: make([]int32, len(t.Ops)),
		arrivals: make([][]arrival, len(t.GPUs)), left: make([][]leftover, 2*len(t.GPUs)), told: map[int32]announcement{}, loose: map[int32][]int32{}, carried: map[int32]int32{}, known: map[[2]int32]bool{},
		cells: newOneCells(size, len(t.Ops)*int(launches)), packets: filled(int(size), ir.None)}
	channels := int32(0)
	for r := range t.GPUs {
		p.firstOf = append(p.firstOf, channels)
		channels += int32(len(t.GPUs[r].Channels))
		p.strong = append(p.strong, make([]int32, len(t.GPUs)))
		p.weak = append(p.weak, make([]int32, len(t.GPUs)))
		tokens := make([]int32, len(t.GPUs[r].Semaphores))
		for i := range tokens {
			tokens[i] = t.GPUs[r].Semaphores[i].Initial
		}
		p.tokens = append(p.tokens, tokens)
		for i, v := range p.ops[r] {
			p.place[v] = int32(i)
		}
	}
	s.from = map[int32]ir.Rank{}
	for _, pair := range s.pairs {
		p.known[[2]int32{pair.a, pair.b}] = true
	}
	p.sent = make([][]announcement, channels)
	for launch := range launches {
		for moved := true; moved; {
			moved = false
			for r := range t.GPUs {
				if err := ctx.Err(); err != nil {
					return fmt.Errorf("compiling %s: %w", t.Name, context.Cause(ctx))
				}
				moved = p.advance(ir.Rank(r), launch+1) || moved
			}
		}
		if err := p.stuck(); launch == 0 && err != nil {
			return err // a later launch shows itself in the check
		}
		p.leave(launch)
	}
	p.ends()
	slices.SortFunc(s.pairs, func(x, y onePair) int {
		if x.b != y.b {
			return int(x.b) - int(y.b)
		}
		return int(x.a) - int(y.a)
	})
	return nil
}

// advance runs rank r until it has to wait or has done so many launches, and reports
// whether it did anything.
func (p *publisher) advance(r ir.Rank, launches int32) bool {
	start := p.at[r]
	size := int32(len(p.ops[r]))
	for p.at[r] < size*launches {
		e := p.at[r]/size*p.n + p.ops[r][p.at[r]%size]
		if !p.ready(e) {
			break
		}
		p.do(e)
		p.at[r]++
	}
	return p.at[r] > start
}

// op is the operation of an event, when its number on its rank, counted over launches.
func (p *publisher) op(e int32) *ir.TraceOp { return &p.trace.Ops[e%p.n] }
func (p *publisher) when(e int32) int32 {
	return e/p.n*int32(len(p.ops[p.op(e).Rank])) + p.place[e%p.n]
}

// where appends what an operand touches in the launch of event e: of double scratch, one
// half.
func (p *publisher) where(list []oneAccess, e int32, a *ir.Operand, x oneAccess) []oneAccess {
	from := len(list)
	list = p.space.access(list, a, x)
	if p.trace.DoubleScratch && a.Buf == ir.FirstScratch && e/p.n%2 == 1 {
		for i := from; i < len(list); i++ {
			list[i].lo, list[i].hi = list[i].lo+p.space.size, list[i].hi+p.space.size
		}
	}
	return list
}

func (p *publisher) ready(e int32) bool {
	op := p.op(e)
	switch {
	case oneWaits(op.Kind):
		c, ok := p.inbound(op)
		return ok && len(p.sent[c]) > 0
	case op.Kind == ir.TraceOf(ir.OpSemaphoreAcquire):
		return p.tokens[op.Rank][op.Ref] > 0
	case oneAwaits(op.Kind):
		for _, a := range p.trace.Sources(op) {
			for _, x := range p.where(nil, e, &a, oneAccess{}) {
				for l := x.lo; a.Packets && l < x.hi; l++ {
					if w := p.packets[l]; w == ir.None || w/p.n != e/p.n {
						return false
					}
				}
			}
		}
	}
	return true
}

// inbound is the channel, among all, whose signals arrive at op's; false if it has
// no other end.
func (p *publisher) inbound(op *ir.TraceOp) (int32, bool) {
	c := &p.trace.GPUs[op.Rank].Channels[op.Ref]
	return p.firstOf[c.Peer] + c.Pair, c.Pair != ir.None
}

func (p *publisher) do(v int32) {
	op := p.op(v)
	r := op.Rank
	switch {
	case oneWaits(op.Kind):
		c, _ := p.inbound(op)
		note := p.sent[c][0]
		p.sent[c] = p.sent[c][1:]
		if oneRelaxed(op.Kind) {
			note.strong = nil
		}
		p.learn(v, note)
	case op.Kind == ir.TraceOf(ir.OpSemaphoreAcquire):
		p.tokens[r][op.Ref]--
	case op.Kind == ir.TraceOf(ir.OpSemaphoreRelease):
		p.tokens[r][op.Ref]++
	}
	if oneMoves(op) {
		p.move(v, op)
	}
	if op.Via == ir.ChannelPort {
		p.carry(v, op)
	}
	if oneSignals(op.Kind) {
		note := announcement{op: v, strong: p.strong[r], weak: p.weak[r]}
		if oneRelaxed(op.Kind) {
			note.strong = nil
		}
		c := p.firstOf[r] + op.Ref
		p.sent[c] = append(p.sent[c], note)
	}
}

// carry notes which signal of a port channel comes behind what the port carries.
func (p *publisher) carry(v int32, op *ir.TraceOp) {
	c := p.firstOf[op.Rank] + op.Ref
	if oneMoves(op) {
		p.loose[c] = append(p.loose[c], v)
	}
	if oneSignals(op.Kind) {
		for _, a := range p.loose[c] {
			p.carried[a] = v
		}
		delete(p.loose, c)
	}
}

// move reads, then writes.
func (p *publisher) move(v int32, op *ir.TraceOp) {
	var list []oneAccess
	for _, a := range p.trace.Sources(op) {
		list = p.where(list, v, &a, oneAccess{packets: a.Packets, waits: a.Packets && oneAwaits(op.Kind)})
	}
	for _, a := range p.trace.Destinations(op) {
		list = p.where(list, v, &a, oneAccess{packets: a.Packets, write: true})
	}
	last := int32(ir.None)
	for i := range list {
		for l := list[i].lo; list[i].waits && l < list[i].hi; l++ {
			if w := p.packets[l]; w != last && p.op(w).Rank != op.Rank {
				if _, ok := p.from[v%p.n]; !ok {
					p.from[v%p.n] = p.op(w).Rank
				}
				last = w
				p.learn(v, p.told[w])
			}
		}
	}
	p.begun(v, op)
	for i := range list {
		x := &list[i]
		p.enter(v, x)
		p.cells.touch(1, v, x, func(a int32, war bool) { p.ordered(a, v, war) })
		for l := x.lo; x.write && l < x.hi; l++ {
			p.packets[l] = ir.None
			if x.packets {
				p.packets[l] = v
				p.told[v] = announcement{op: v, weak: p.weak[op.Rank]}
			}
		}
	}
}

// learn joins what a note tells into what v's rank knows. Clocks are shared and never
// changed.
func (p *publisher) learn(v int32, n announcement) {
	r, from := p.op(v).Rank, p.op(n.op).Rank
	done := p.when(n.op) + 1
	if n.strong != nil {
		p.strong[r] = joinClock(p.strong[r], n.strong, from, done)
	}
	p.weak[r] = joinClock(p.weak[r], n.weak, from, done)
	p.arrivals[r] = append(p.arrivals[r], arrival{op: v, from: n.op, strong: p.strong[r], weak: p.weak[r]})
}

// joinClock is the maximum of clocks a and b, and of done at rank from.
func joinClock(a, b []int32, from ir.Rank, done int32) []int32 {
	more := done > a[from]
	for i, n := range b {
		more = more || n > a[i]
	}
	if !more {
		return a
	}
	c := slices.Clone(a)
	for i, n := range b {
		c[i] = max(c[i], n)
	}
	c[from] = max(c[from], done)
	return c
}

// ordered pairs the links of the chain by which the rank of b knows that a is done.
func (p *publisher) ordered(a, b int32, war bool) {
	p.knows(a, p.op(b).Rank, b, war)
}

// knows pairs the links of the chain by which rank r knows, at operation b or (None) at its
// end, that a is done; a reads if war is true.
func (p *publisher) knows(a int32, r ir.Rank, b int32, war bool) {
	q := p.op(a).Rank
	if q == r && b != ir.None && a/p.n != b/p.n && p.op(a).Via != ir.ChannelPort {
		return // launches of one rank follow each other
	}
	if p.op(a).Via == ir.ChannelPort {
		f, ok := p.flushes[a%p.n]
		f += a / p.n * p.n
		if ok && (q == r && b != ir.None && p.when(f) < p.when(b) || q != r && p.strong[r][q] > p.when(f)) {
			a = f
		} else if p.heard(a, r, b, war) {
			return
		}
	}
	need := p.when(a) + 1
	switch {
	case q == r:
	case p.strong[r][q] >= need:
		p.chain(a, q, r, b, func(x *arrival) bool { return x.strong[q] >= need })
	case war && p.weak[r][q] >= need:
		p.chain(a, q, r, b, func(x *arrival) bool { return x.weak[q] >= need })
	}
}

// heard pairs the links of the way that what a port carried is known by, to its own rank
// too: the signal behind it on its channel, and who has waited for that.
func (p *publisher) heard(a int32, r ir.Rank, b int32, war bool) bool {
	signal, ok := p.carried[a]
	if !ok {
		return false
	}
	op := p.op(a)
	peer := p.trace.GPUs[op.Rank].Channels[op.Ref].Peer
	for i := range p.arrivals[peer] {
		x := &p.arrivals[peer][i]
		switch {
		case x.from != signal:
			continue
		case r == peer:
			p.demand(x.op, b)
		case p.strong[r][peer] > p.when(x.op) || war && p.weak[r][peer] > p.when(x.op):
			p.knows(x.op, r, b, war)
		default:
			return false
		}
		p.demand(a, signal)
		return true
	}
	return false
}

// begun pairs the links of the chains by which v's rank knows that launches of others, whose
// plain memory it touches, have begun.
func (p *publisher) begun(v int32, op *ir.TraceOp) {
	r := op.Rank
	for _, list := range [...][]ir.Operand{p.trace.Sources(op), p.trace.Destinations(op)} {
		for _, a := range list {
			ranks := []ir.Rank{a.Rank}
			if a.Group != ir.None {
				ranks = p.trace.Groups[a.Group].Ranks
			}
			for _, q := range ranks {
				if q != r && !a.Packets && p.weak[r][q] > 0 {
					p.chain(ir.None, q, r, v, func(x *arrival) bool { return x.weak[q] > 0 })
				}
			}
		}
	}
}

// ends pairs the links of the chains by which each rank knows at its end what others have
// done to its memory, or at least that they have done it.
func (p *publisher) ends() {
	seen := make([]ir.Rank, int(p.n*p.launches))
	for r := range p.trace.GPUs {
		rank, end := ir.Rank(r), p.space.size
		if r+1 < len(p.space.first) {
			end = p.space.first[r+1]
		}
		ask := func(a int32) {
			if seen[a] != rank+1 {
				seen[a] = rank + 1
				p.knows(a, rank, ir.None, true)
			}
		}
		for half := range p.launches - 1 {
			for l := p.space.first[r] + half*p.space.size; l < end+half*p.space.size; l++ {
				if p.cells.stamp[l] != 1 {
					continue
				}
				if w := p.cells.writer[l]; w != ir.None {
					ask(w)
				}
				for n := p.cells.reader[l]; n != ir.None; n = p.cells.reads[n].next {
					ask(p.cells.reads[n].op)
				}
			}
		}
	}
}

// chain goes from b of rank r back to a of rank q, each time by the first arrival that told of
// a. Without b it begins at the end of r, without a it ends at the beginning of q.
func (p *publisher) chain(a int32, q, r ir.Rank, b int32, tells func(*arrival) bool) {
	for r != q {
		list := p.arrivals[r]
		n := sort.Search(len(list), func(i int) bool { return tells(&list[i]) })
		p.demand(list[n].op, b)
		b = list[n].from
		r = p.op(b).Rank
	}
	p.demand(a, b)
}

func (p *publisher) demand(a, b int32) {
	if a == b || a == ir.None || b == ir.None || a/p.n != b/p.n {
		return // nothing, or of launches, which follow each other
	}
	a, b = a%p.n, b%p.n
	key := [2]int32{a, b}
	if p.known[key] || !p.ours[a] && !p.ours[b] {
		return
	}
	p.known[key] = true
	p.pairs = append(p.pairs, onePair{a: a, b: b, chain: true})
}

// stuck refuses a trace whose ranks can't each run in one order.
func (p *publisher) stuck() error {
	for r := range p.ops {
		if int(p.at[r]) >= len(p.ops[r]) {
			continue
		}
		op := &p.trace.Ops[p.ops[r][p.at[r]]]
		what := "for packets that nobody has written"
		switch {
		case oneWaits(op.Kind):
			what = fmt.Sprintf("for a signal of rank %d that doesn't come", p.trace.GPUs[r].Channels[op.Ref].Peer)
		case op.Kind == ir.TraceOf(ir.OpSemaphoreAcquire):
			what = fmt.Sprintf("for semaphore %d, which nobody has released", op.Ref)
		}
		m := diag.Errorf(p.trace.Pos(op.Pos), "one-order",
			"rank %d: %s waits %s while every rank runs its operations one after another, which is what they mean where thread blocks are left out", r, op.Kind, what)
		for q := range p.ops {
			if q != r && int(p.at[q]) < len(p.ops[q]) {
				other := &p.trace.Ops[p.ops[q][p.at[q]]]
				m.Note(p.trace.Pos(other.Pos), "rank %d waits at %s", q, other.Kind)
				break
			}
		}
		return m.Suggest("let signals, releases and packets come before what waits for them, or give every operation its thread block")
	}
	return nil
}
