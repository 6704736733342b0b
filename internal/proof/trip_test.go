package proof

import (
	"github.com/mscclsh/mscclsh/ir"
)

// trip appends a message that comes back: from one thread block of a rank by way of
// others to another thread block of the same rank, which then touches what the first
// one did, or what lies next to it, mostly without a wait. Whether the messages order
// the two depends on the kinds of the steps, on the places and on the protocol.
func (g *rawProgram) trip() {
	if g.tbs < 2 {
		g.transfer()
		return
	}
	n := len(g.d.tbs)
	home := g.IntN(n)
	path := []int{home}
	for len(path) < 2 || len(path) < n && g.IntN(2) == 0 { // no rank twice
		path = append(path, (path[len(path)-1]+1)%n)
	}
	path = append(path, home)
	count := 1 + max(g.Int32N(3), g.Int32N(3))
	first := g.IntN(g.tbs)
	last := (first + 1 + g.IntN(g.tbs-1)) % g.tbs
	channel := g.Int32N(2)
	var hops []hop
	for i := range path[1:] {
		if i > 0 && g.IntN(3) == 0 {
			channel = g.Int32N(3)
		}
		hops = append(hops, hop{connKey{ir.Rank(path[i]), ir.Rank(path[i+1]), channel}, g.IntN(g.tbs), g.IntN(g.tbs)})
	}
	hops[0].from, hops[len(hops)-1].to = first, last
	for i := range hops {
		h := &hops[i]
		if i > 0 && (g.IntN(4) > 0 || h.channel == hops[i-1].channel) {
			h.from = hops[i-1].to
		}
		h.from, h.to = g.own(h.from, true, h.connKey), g.own(h.to, false, h.connKey)
	}
	lead := ir.Step{Kind: ir.Send, Count: count, SendPeer: hops[0].dst, Chan: hops[0].channel}
	if g.IntN(2) == 0 {
		g.leadIn(&lead, hops[0])
	}
	led := g.appended(home, hops[0].from, lead)
	at := led.Src
	if led.Kind == ir.RecvCopySend || led.Kind == ir.RecvReduceCopySend && g.IntN(2) == 0 {
		at = led.Dst
	}
	for i := range hops[1:] {
		g.passOn(hops[i], hops[i+1], count)
	}
	g.tail(hops[len(hops)-1], at, count)
}

// hop is a message's way from a rank to the next, with the thread blocks at its ends.
type hop struct {
	connKey
	from, to int
}

// own is the thread block that has an end of a connection: the one that has it already,
// or else tb.
func (g *rawProgram) own(tb int, sender bool, k connKey) int {
	end := rawEnd{int(k.dst), k}
	if sender {
		end.rank = int(k.src)
	}
	if _, ok := g.ends[end]; !ok {
		g.ends[end] = tb
	}
	return g.ends[end]
}

// appended is a step that was appended, mostly without a wait.
func (g *rawProgram) appended(rank, tb int, st ir.Step) *draftStep {
	g.step(rank, tb, st)
	steps := g.d.tbs[rank][tb].steps
	if last := &steps[len(steps)-1]; g.IntN(8) > 0 {
		last.deps = nil
	}
	return &steps[len(steps)-1]
}

// leadIn makes the step that a trip begins with one that receives, and appends the
// send of what it receives, if its thread block can have it.
func (g *rawProgram) leadIn(lead *ir.Step, out hop) {
	from := (int(out.src) + 1 + g.IntN(len(g.d.tbs)-1)) % len(g.d.tbs)
	k := connKey{ir.Rank(from), out.src, out.channel}
	if g.own(out.from, false, k) != out.from {
		return
	}
	g.appended(from, g.own(g.IntN(g.tbs), true, k), ir.Step{Kind: ir.Send, Count: lead.Count, SendPeer: k.dst, Chan: k.channel})
	lead.Kind = []ir.StepKind{ir.RecvCopySend, ir.RecvReduceSend, ir.RecvReduceCopySend}[g.IntN(3)]
	lead.RecvPeer = k.src
}

// passOn appends what a rank on the way does: a step that takes and sends on, or one
// that takes and one that sends, perhaps on another thread block.
func (g *rawProgram) passOn(in, out hop, count int32) {
	rank := int(in.dst)
	if in.to == out.from && in.channel == out.channel && g.IntN(4) > 0 {
		kind := []ir.StepKind{ir.RecvCopySend, ir.RecvReduceSend, ir.RecvReduceCopySend}[g.IntN(3)]
		g.appended(rank, in.to, ir.Step{Kind: kind, Count: count, Chan: in.channel, RecvPeer: in.src, SendPeer: out.dst})
		return
	}
	taken := g.appended(rank, in.to, ir.Step{Kind: ir.Recv, Count: count, Chan: in.channel, RecvPeer: in.src})
	taken.Post = true
	dep := ir.Dep{TB: int32(in.to), Step: int32(len(g.d.tbs[rank][in.to].steps) - 1)}
	dst := taken.Dst
	sent := g.appended(rank, out.from, ir.Step{Kind: ir.Send, Count: count, Chan: out.channel, SendPeer: out.dst})
	sent.Src = dst
	if in.to != out.from && g.IntN(4) > 0 {
		sent.deps = []ir.Dep{dep}
	}
}

// tail appends what a trip ends with: taking the message, there or elsewhere, and then
// perhaps a step that touches what the trip began with.
func (g *rawProgram) tail(in hop, at ir.Place, count int32) {
	rank := int(in.dst)
	kind := []ir.StepKind{ir.Recv, ir.Recv, ir.RecvReduceCopy}[g.IntN(3)]
	taken := g.appended(rank, in.to, ir.Step{Kind: kind, Count: count, Chan: in.channel, RecvPeer: in.src})
	at = g.near(at, count)
	if g.IntN(3) > 0 {
		if taken.Dst = at; kind == ir.RecvReduceCopy && g.IntN(4) > 0 {
			taken.Src = at
		}
		return
	}
	last := g.appended(rank, in.to, ir.Step{Kind: ir.Copy + ir.StepKind(g.IntN(2)), Count: count})
	if g.IntN(2) == 0 {
		last.Src = at
	} else {
		last.Dst = at
	}
}

// near is a place, or the one before or after it.
func (g *rawProgram) near(at ir.Place, count int32) ir.Place {
	size := int32(rawChunks)
	if at.Buf == ir.FirstScratch {
		size = rawScratch
	}
	at.Index = min(max(at.Index+g.Int32N(3)-1, 0), size-count)
	return at
}
