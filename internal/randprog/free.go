package randprog

import "github.com/mscclsh/mscclsh/ir"

// free makes a program of arbitrary operations.
func (g *generator) free() {
	g.names = []string{"a", "b", "c"}[:g.IntN(4)]
	c := ir.NewCollective(ir.Custom, int32(g.between(1, g.o.MaxRanks)), 1, g.one(2))
	c.Name = "random"
	c.Custom = g.sizes(int(c.Ranks))
	g.spec.Coll = c
	g.spec.Topo = g.topology(c.Ranks)
	g.header("random")
	g.model = newModel(c, func() int { return len(g.names) })
	for range g.between(1, g.o.MaxOps) {
		if g.spec.Policy == ir.Auto {
			g.bracket()
		}
		g.step()
	}
	c.Custom.Expect = g.model.expect()
}

// sizes chooses how many chunks every rank has and which of them hold data.
func (g *generator) sizes(ranks int) *ir.CustomSpec {
	u := &ir.CustomSpec{Input: make([]int32, ranks), Output: make([]int32, ranks)}
	n := g.between(1, g.o.MaxChunks)
	even := !g.one(3)
	for r := range ranks {
		u.Input[r], u.Output[r] = int32(n), int32(n)
		if !even {
			u.Input[r], u.Output[r] = int32(g.IntN(n+1)), int32(g.IntN(n+1))
		}
	}
	u.Input[0] = max(u.Input[0], 1)
	if g.one(4) {
		u.Holds = make([][]bool, ranks)
		for r := range ranks {
			u.Holds[r] = make([]bool, u.Input[r])
			for i := range u.Holds[r] {
				u.Holds[r][i] = !g.one(3)
			}
		}
		u.Holds[0][0] = true
	}
	return u
}

// topology is fully connected, or a ring with random chords in either direction.
func (g *generator) topology(ranks int32) *ir.Topology {
	if ranks < 3 || !g.one(4) {
		return ir.FullyConnected(ranks)
	}
	t := ir.NewTopology("random", ranks)
	for x := range ir.Rank(ranks) {
		for y := range ir.Rank(ranks) {
			if x != y && (int32(x+1)%ranks == int32(y) || g.one(3)) {
				t.Link(x, y, 1)
			}
		}
	}
	return t
}

// step adds one operation if a few tries find a valid one.
func (g *generator) step() {
	for range 4 {
		src, kind := g.source()
		o := op{src: src, style: kind, reduce: g.one(2)}
		ok := false
		if o.reduce {
			o.dst, ok = g.operand(src)
		} else {
			ok = g.destination(&o)
		}
		if ok && g.allowed(o) {
			g.add(o)
			return
		}
	}
}

// source chooses what to read: often the result of the operation before, since
// chains of transfers are what compilers fuse.
func (g *generator) source() (span, style) {
	if g.last != nil && !g.one(2) {
		s := *g.last
		if s.count == 1 || !g.one(3) {
			return s, chained
		}
		cut := int32(g.IntN(int(s.count)))
		return span{s.rank, s.buf, s.index + cut, int32(g.between(1, int(s.count-cut)))}, plain
	}
	runs := g.model.runs()
	s := runs[g.IntN(len(runs))]
	cut := int32(g.IntN(int(s.count)))
	s.index, s.count = s.index+cut, int32(g.between(1, int(s.count-cut)))
	switch {
	case s.count > 1 && g.one(3):
		return s, grouped
	case g.model.holds(span{s.rank, s.buf, s.index, 2 * s.count}) && g.one(4):
		return s, halved
	}
	return s, plain
}

// operand chooses what a reduce adds src to.
func (g *generator) operand(src span) (span, bool) {
	var fit []span
	for _, s := range g.model.runs() {
		if s.count >= src.count {
			fit = append(fit, s)
		}
	}
	if len(fit) == 0 {
		return src, false
	}
	s := fit[g.IntN(len(fit))]
	s.index += int32(g.IntN(int(s.count - src.count + 1)))
	s.count = src.count
	from, to := g.model.cells(src), g.model.cells(s)
	for i := range to {
		if len(g.model.held[from[i]])+len(g.model.held[to[i]]) > g.o.MaxTerms {
			return s, false
		}
	}
	return s, true
}

// destination chooses where a copy goes, and whether to rely on the defaults.
func (g *generator) destination(o *op) bool {
	o.dst = span{ir.Rank(g.IntN(int(g.spec.Coll.Ranks))), ir.Output, 0, o.src.count}
	if g.one(4) {
		o.dst.buf, o.dst.index, o.short = o.src.buf, o.src.index, true
		return true
	}
	o.dst.buf = ir.Output - ir.BufferID(g.IntN(2))
	if len(g.names) > 0 && g.one(2) {
		o.dst.buf = scratch(g.IntN(len(g.names)))
	}
	room := g.model.len(o.dst.rank, o.dst.buf) - o.src.count
	if o.dst.buf >= ir.FirstScratch {
		end := g.model.len(o.dst.rank, o.dst.buf)
		if g.one(3) {
			// With the source's own name and place, "append" would read as the other default.
			o.dst.index, o.short = end, o.dst.buf != o.src.buf || end != o.src.index
			return true
		}
		room = end + 1 // may leave a hole
	}
	if room < 0 {
		return false
	}
	o.dst.index = int32(g.IntN(int(room) + 1))
	return true
}

// allowed applies the rules of the language and of collectives.
func (g *generator) allowed(o op) bool {
	if o.dst.buf == ir.Input && !g.spec.Coll.InPlace {
		return false
	}
	if o.dst.buf <= ir.Output && o.dst.index+o.dst.count > g.model.len(o.dst.rank, o.dst.buf) {
		return false
	}
	return g.spec.Topo.Linked(o.src.rank, o.dst.rank) && !g.model.overlap(o.src, o.dst)
}
