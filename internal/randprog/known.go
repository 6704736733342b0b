package randprog

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// kinds are the collectives that known makes, simplest first.
var kinds = [...]ir.CollectiveKind{ir.Broadcast, ir.AllReduce, ir.AllGather, ir.ReduceScatter, ir.AllToAll,
	ir.ReduceTo, ir.Gather, ir.Scatter, ir.AllToNext, ir.SendRecv, ir.AllToAllV}

// known makes a program that implements one of msccl's collectives: inputs are
// moved aside where they could be overwritten, then every output is combined
// from them over a random tree, over random ranks.
func (g *generator) known() {
	g.names = []string{"stage", "x", "y"}
	c := g.collective()
	g.spec.Coll, g.spec.Topo = c, ir.FullyConnected(c.Ranks)
	g.header("random_" + c.Kind.String())
	g.model = newModel(c, func() int { return len(g.names) })
	g.reserved = map[span]int32{}
	homes := g.stage()
	for _, t := range g.targets(homes) {
		if g.spec.Policy == ir.Auto {
			g.bracket()
		}
		g.combine(t.terms, t.to, homes)
	}
}

func (g *generator) collective() *ir.Collective {
	kind := kinds[g.IntN(len(kinds))]
	ranks := int32(g.between(1, min(g.o.MaxRanks, 4)))
	c := ir.NewCollective(kind, ranks, int32(g.between(1, 2)), false)
	switch {
	case kind.Rooted():
		c.Root = ir.Rank(g.IntN(int(ranks)))
	case kind == ir.SendRecv:
		c.Root = ir.Rank(g.IntN(int(ranks)))
		c.Peer = ir.Rank((int32(c.Root) + 1) % ranks)
	case kind == ir.AllToAllV:
		c.Counts = make([]int32, ranks*ranks)
		for i := range c.Counts {
			c.Counts[i] = int32(g.IntN(3))
		}
		c.Counts[0] = max(c.Counts[0], 1)
	}
	c.InPlace = kind != ir.SendRecv && kind != ir.AllToAllV && g.one(2)
	return c
}

// stage copies inputs to scratch, always in place and sometimes out of place, in
// pieces, and says where every input chunk can be read from then on.
func (g *generator) stage() map[ir.Contribution]span {
	homes := map[ir.Contribution]span{}
	for r := range ir.Rank(g.spec.Coll.Ranks) {
		aside := g.spec.Coll.InPlace || g.one(2)
		for _, run := range g.model.runs() {
			if run.rank != r || run.buf != ir.Input {
				continue
			}
			for run.count > 0 {
				piece := run
				piece.count = int32(g.between(1, int(run.count)))
				home := piece
				if aside {
					home = g.fresh(r, 0, piece.count)
					g.add(op{src: piece, dst: home, short: g.one(2)})
				}
				for i := range piece.count {
					homes[ir.Contribution{Rank: r, Index: piece.index + i}] = span{home.rank, home.buf, home.index + i, 1}
				}
				run.index, run.count = run.index+piece.count, run.count-piece.count
			}
		}
	}
	return homes
}

// fresh is a place in a scratch buffer, at rank r mostly, that nobody else gets.
func (g *generator) fresh(r ir.Rank, name int, count int32) span {
	if g.one(4) {
		r = ir.Rank(g.IntN(int(g.spec.Coll.Ranks)))
	}
	at := span{rank: r, buf: scratch(name)}
	s := span{r, at.buf, g.reserved[at], count}
	g.reserved[at] += count
	return s
}

// target is a range of outputs and the terms of its first chunk; the terms of
// the k-th chunk lie k further in their homes.
type target struct {
	to    span
	terms []ir.Contribution
}

// targets lists the demanded outputs as ranges, shuffled.
func (g *generator) targets(homes map[ir.Contribution]span) []target {
	var list []target
	c := g.spec.Coll
	for r := range ir.Rank(c.Ranks) {
		for i := range c.OutputChunks(r) {
			terms, demanded := c.Expect(nil, r, i)
			if !demanded {
				continue
			}
			if n := len(list); n > 0 && list[n-1].follows(r, i, terms, homes) && !g.one(3) {
				list[n-1].to.count++
				continue
			}
			list = append(list, target{span{r, ir.Output, i, 1}, terms})
		}
	}
	for i := len(list) - 1; i > 0; i-- {
		k := i - g.IntN(i+1)
		list[i], list[k] = list[k], list[i]
	}
	return list
}

// follows reports whether output i of rank r continues t, term by term.
func (t *target) follows(r ir.Rank, i int32, terms []ir.Contribution, homes map[ir.Contribution]span) bool {
	if t.to.rank != r || t.to.index+t.to.count != i || len(terms) != len(t.terms) {
		return false
	}
	for k := range terms {
		first := homes[t.terms[k]]
		first.index += t.to.count
		if homes[terms[k]] != first {
			return false
		}
	}
	return true
}

// combine makes the sum of terms at a place that nothing there needs any more.
func (g *generator) combine(terms []ir.Contribution, to span, homes map[ir.Contribution]span) {
	if len(terms) == 1 {
		from := homes[terms[0]]
		from.count = to.count
		kind := plain
		if g.one(4) {
			hop := g.fresh(ir.Rank(g.IntN(int(g.spec.Coll.Ranks))), g.between(1, 2), to.count)
			g.add(op{src: from, dst: hop})
			from, kind = hop, chained
		}
		g.add(op{src: from, dst: to, style: kind})
		return
	}
	terms = slices.Clone(terms)
	for i := len(terms) - 1; i > 0; i-- {
		k := i - g.IntN(i+1)
		terms[i], terms[k] = terms[k], terms[i]
	}
	cut := len(terms) - g.between(1, len(terms)-1)
	g.combine(terms[:cut], to, homes)
	rest := terms[cut:]
	part := homes[rest[0]]
	part.count = to.count
	if len(rest) > 1 || g.one(3) {
		part = g.fresh(to.rank, g.between(1, 2), to.count)
		g.combine(rest, part, homes)
	}
	g.add(op{reduce: true, src: part, dst: to})
}
