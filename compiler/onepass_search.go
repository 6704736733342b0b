package compiler

import "github.com/mscclsh/mscclsh/ir"

// ordered reports whether the script lets site a end before site b begins: of all that
// they touch both, as far as one of them writes it.
func (g *oneOrderGraph) ordered(a, b int32) bool {
	if g.spent > oneSearches {
		return false
	}
	x, y := g.op(a), g.op(b)
	first := g.space.accesses(nil, x.Kind, g.trace.Sources(x), g.trace.Destinations(x))
	second := g.space.accesses(nil, y.Kind, g.trace.Sources(y), g.trace.Destinations(y))
	common := false
	for i := range first {
		for k := range second {
			if p, q := &first[i], &second[k]; oneConflict(p, q) {
				common = true
				if !g.orderedAt(a, b, p, q) {
					return false
				}
			}
		}
	}
	return common || g.search(b, oneTarget{site: a, unit: ir.None})
}

// orderedAt is ordered for one access of each: the same way for all units, or unit
// by unit where it is packets that tell.
func (g *oneOrderGraph) orderedAt(a, b int32, p, q *oneAccess) bool {
	weak := !p.write && q.write
	if g.search(b, oneTarget{site: a, unit: ir.None, weak: weak}) {
		return true
	}
	if !weak || g.packet == nil || p.packets || q.packets {
		return false
	}
	all := g.stamp // whose search has marked what packets tell anybody before b
	for l := max(p.lo, q.lo); l < min(p.hi, q.hi); l++ {
		u := l - p.lo
		if int(u) < len(g.units) && g.units[u] == all {
			continue
		}
		if !g.searchUnit(b, l-q.lo, oneTarget{site: a, unit: u, weak: true}) {
			return false
		}
	}
	return true
}

// begin starts a search.
func (g *oneOrderGraph) begin(target oneTarget) {
	g.stamp++
	g.target, g.hit, g.queue = target, false, g.queue[:0]
}

// search goes back from site b.
func (g *oneOrderGraph) search(b int32, target oneTarget) bool {
	g.begin(target)
	s := g.sites[b]
	g.back(b)
	switch {
	case s.at == 0:
	case !oneMoves(g.op(b)):
		g.reach(s.block, s.at-1)
	default:
		// What stands before in the block is over, or b would be given a nop.
		g.data(b)
		for i := s.at - 1; i >= g.metBefore(b); i-- {
			g.back(g.blocks[s.block][i])
		}
	}
	return g.drain()
}

// searchUnit goes back from unit u of site b alone, which waits for its packets.
func (g *oneOrderGraph) searchUnit(b, u int32, target oneTarget) bool {
	g.begin(target)
	g.unit(b, u)
	return g.drain()
}

// data reaches what is over before a site that touches data.
func (g *oneOrderGraph) data(x int32) {
	if n := g.metBefore(x); n > 0 {
		g.reach(g.sites[x].block, n-1)
	}
}

// back goes from site x to sites that come before it, as far as that tells what is
// looked for.
func (g *oneOrderGraph) back(x int32) {
	for _, e := range g.before[x] {
		if g.target.weak || !oneRelaxed(g.op(x).Kind) && !oneRelaxed(g.op(e).Kind) {
			g.reach(g.sites[e].block, g.sites[e].at)
		}
	}
	for _, e := range g.added[x] {
		g.reach(g.sites[e].block, g.sites[e].at)
	}
}

// reach notes that the sites of a block up to number at are over.
func (g *oneOrderGraph) reach(block, at int32) {
	if t := g.sites[g.target.site]; block == t.block && at >= t.at {
		g.hit = true
	}
	if g.seen[block] != g.stamp {
		g.seen[block], g.reached[block] = g.stamp, 0
	}
	if g.reached[block] <= at {
		g.queue = append(g.queue, [2]int32{block, at})
	}
}

// drain follows all that is reached until the target is.
func (g *oneOrderGraph) drain() bool {
	for len(g.queue) > 0 && !g.hit {
		last := g.queue[len(g.queue)-1]
		g.queue = g.queue[:len(g.queue)-1]
		block, at := last[0], last[1]
		from := g.reached[block]
		g.reached[block] = max(from, at+1)
		for i := at; i >= from && !g.hit; i-- {
			g.spent++
			g.over(g.blocks[block][i])
		}
	}
	return g.hit
}

// over follows what site x, which is over, has waited for.
func (g *oneOrderGraph) over(x int32) {
	g.back(x)
	op := g.op(x)
	if !g.target.weak || g.packet == nil || !oneAwaits(op.Kind) {
		return
	}
	src := g.trace.Sources(op)
	if g.awaited(op, src) {
		g.hit = true
		return
	}
	for i := range src {
		lo, hi := g.space.of(src[i].Rank, &src[i])
		for l := lo; src[i].Packets && l < hi && !g.hit; l += 2 {
			g.spent++
			g.told(x, l, (l-lo)/2)
		}
	}
}

// awaited reports whether the unit that is looked for sends a packet to one of the places
// that op waits for. Mostly that is the way, and quicker to see than to follow.
func (g *oneOrderGraph) awaited(op *ir.TraceOp, src []ir.Operand) bool {
	target, r := g.op(g.target.site), op.Rank
	if g.target.unit == ir.None || target.Blocks.Len() > 1 {
		return false
	}
	dst := g.trace.Destinations(target)
	for k := range dst {
		at := dst[k].Index + g.target.unit
		if !dst[k].Packets || dst[k].Rank != r {
			continue
		}
		for i := range src {
			if s := &src[i]; s.Packets && at >= s.Index && at < s.Index+s.Size {
				if !g.inTurn(target, g.target.unit, op, at-s.Index) {
					return false
				}
				lo, _ := g.space.of(r, &dst[k])
				return g.packet[lo+2*g.target.unit] == g.target.site
			}
		}
	}
	return false
}

// unit follows the packets that unit u of site x waits for.
func (g *oneOrderGraph) unit(x, u int32) {
	op := g.op(x)
	if !oneAwaits(op.Kind) {
		return
	}
	src := g.trace.Sources(op)
	for i := range src {
		if lo, hi := g.space.of(src[i].Rank, &src[i]); src[i].Packets && lo+2*u < hi {
			g.told(x, lo+2*u, u)
		}
	}
}

// inTurn reports whether unit u of w has been written in the same turn as, or a later one
// than, the one in which unit v of x is read: loops work through units in order.
func (g *oneOrderGraph) inTurn(w *ir.TraceOp, u int32, x *ir.TraceOp, v int32) bool {
	return w.Loop == ir.None || g.alike(w.Loop, x.Loop) && u >= v
}

// told follows the packet at a location, which unit v of site x waits for, to the unit of the
// sites that wrote it, if there are any: those of x's part of a group, or of all parts
// if x waits for all of them.
func (g *oneOrderGraph) told(x, l, v int32) {
	w := g.packet[l]
	if w == ir.None || !g.inTurn(g.op(w), (l-g.packed[l])/2, g.op(x), v) {
		return
	}
	parts, mine := int32(g.op(w).Blocks.Len()), int32(g.op(x).Blocks.Len())
	switch {
	case parts <= 1:
		if g.asked[l] != g.stamp {
			g.asked[l] = g.stamp
			g.wrote(w, l)
		}
	case parts == mine:
		g.wrotePart(w+g.sites[x].part, l)
	case mine <= 1:
		for part := range parts {
			g.wrotePart(w+part, l)
		}
	}
}

// wrotePart is wrote for a part of a group, once.
func (g *oneOrderGraph) wrotePart(w, l int32) {
	key := [2]int32{w, l}
	if g.parts[key] != g.stamp {
		g.parts[key] = g.stamp
		g.wrote(w, l)
	}
}

// wrote follows the packet at a location to site w, which has written it.
func (g *oneOrderGraph) wrote(w, l int32) {
	u := (l - g.packed[l]) / 2
	if w == g.target.site {
		for int(u) >= len(g.units) {
			g.units = append(g.units, 0)
		}
		g.units[u] = g.stamp
		if u == g.target.unit {
			g.hit = true
			return
		}
	}
	g.unit(w, u)
	if g.visited[w] != g.stamp {
		g.visited[w] = g.stamp
		g.data(w)
	}
}
