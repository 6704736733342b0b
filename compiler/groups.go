package compiler

import "github.com/mscclsh/mscclsh/ir"

// groups are instructions of a rank that native programs keep on one thread block, one
// behind the other, so that the runtimes can do them in one pass over the data:
//
//	sum       steps that add to one place one after another, and the sends of what
//	          stands there in the end
//	hand-out  sends of one place to several peers: read once, stored several times
//
// All members have one count, one instance and one channel of the script.
type groups struct {
	*state
	uses *defUse
	of   []int32 // by instruction: the first of its group, or None
	sum  []bool  // by instruction: it leaves something that a sum can go on from
	size []int32 // by first: members
}

// findGroups finds sums and hand-outs. The dependencies are known.
func (s *state) findGroups() *groups {
	n := len(s.fused.Instrs)
	g := &groups{state: s, uses: defUses(s.fused.Spec, s.fused.Instrs, make([]bool, n)), of: filled(n, ir.None),
		sum: make([]bool, n), size: make([]int32, n)}
	g.findSums()
	g.findHandOuts()
	for _, f := range g.of {
		if f != ir.None {
			g.size[f]++
		}
	}
	for i, f := range g.of {
		if f != ir.None && g.size[f] < 2 {
			g.of[i] = ir.None
		}
	}
	return g
}

func (g *groups) instr(i int32) *ir.Instr { return &g.fused.Instrs[i] }

// alike reports whether two instructions of one rank may be in one group.
func (g *groups) alike(i, j int32) bool {
	x, y := g.instr(i), g.instr(j)
	return x.Instance == y.Instance && x.Chan == y.Chan && x.Count == y.Count
}

// pushes reports whether send i is stored as it is where it arrives.
func (s *state) pushes(i int32) bool {
	return !s.fused.Instrs[s.fused.Instrs[i].SendTo].Kind.Reduces()
}

// findSums joins each step that adds to the one whose result it adds to, and sends of
// such a sum. With slots a sum may begin with a plain receive. With Direct it can't,
// because the sender stores that; and a send to one that reduces waits until that has
// been done elsewhere, and must not keep the sum's thread block.
func (g *groups) findSums() {
	continued := make([]bool, len(g.of))
	for i := range int32(len(g.of)) {
		in := g.instr(i)
		def := g.uses.srcDef[i]
		if in.Kind == ir.Reduce && (def == ir.None || !g.sum[def] || !g.alike(def, i)) {
			def = g.uses.dstDef[i]
		}
		on := def != ir.None && g.sum[def] && g.alike(def, i)
		switch {
		case in.Kind == ir.Send:
			if on && (!g.direct() || g.pushes(i)) {
				g.of[i] = g.of[def]
			}
		case in.Kind == ir.Reduce || in.Kind.Receives() && in.Kind.Reduces():
			if on && !continued[def] {
				continued[def] = true
				g.of[i] = g.of[def]
			} else if in.Kind.Receives() {
				g.of[i] = i
			}
			g.sum[i] = g.of[i] != ir.None && in.Kind.WritesDst()
		case in.Kind == ir.Recv && !g.direct():
			g.of[i], g.sum[i] = i, true
		}
	}
}

// findHandOuts joins sends of one value to several peers. With Direct it leaves out
// those that are read by the peer: they wait each for its own.
func (g *groups) findHandOuts() {
	type value struct {
		rank     ir.Rank
		src      ir.Place
		count    int32
		instance int32
		channel  int32
		made     int32 // by what, last
	}
	first := map[value]int32{}
	for i := range int32(len(g.of)) {
		in := g.instr(i)
		if in.Kind != ir.Send || g.of[i] != ir.None || g.direct() && !g.pushes(i) {
			continue
		}
		v := value{in.Rank, in.Src, in.Count, in.Instance, in.Chan, ir.None}
		for k, p := range g.edges.Of(i) {
			if g.edges.KindsOf(i)[k] == ir.DepTrue {
				v.made = max(v.made, p)
			}
		}
		if _, ok := first[v]; !ok {
			first[v] = i
		}
		g.of[i] = first[v]
	}
}

// level gives the receives of a group the level and the way to go of the last of
// them, and its sends those of the first; with then names the group. A group that
// something else depends on before that is left as it is.
func (g *groups) level(level, togo, with []int32) {
	type part struct {
		of    int32
		sends bool
	}
	partOf := func(i int32) part { return part{g.of[i], g.instr(i).Kind == ir.Send} }
	top, way := map[part]int32{}, map[part]int32{}
	for i, of := range g.of {
		if p := partOf(int32(i)); of != ir.None {
			top[p], way[p] = max(top[p], level[i]), max(way[p], togo[i])
		}
	}
	for v := range int32(len(g.of)) {
		for _, u := range g.edges.Of(v) {
			if g.of[u] != ir.None && partOf(u) != partOf(v) && level[v] <= top[partOf(u)] {
				delete(top, partOf(u))
			}
		}
	}
	for i, of := range g.of {
		p := partOf(int32(i))
		if l, ok := top[p]; ok && of != ir.None {
			level[i], togo[i], with[i] = l, way[p], of
		}
	}
}
