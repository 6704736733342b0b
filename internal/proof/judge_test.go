package proof

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// judge decides programs of any size. It may be used again, which saves memory.
type judge struct{ memory []uint64 }

// judgment is what the judge says of a program.
type judgment struct {
	verdict
	orderDiffers bool // an allreduce adds up an element in different orders
}

func (j *judge) decide(p *ir.Program) judgment {
	var out judgment
	if out.errors = brokenRules(p); out.errors != 0 {
		return out
	}
	g := newGraph(p)
	if len(g.order) < len(g.nodes) {
		out.errors = deadlock
		return out
	}
	for _, k := range fewestMessages(p) {
		out.minSlots = max(out.minSlots, 1)
		for int(out.minSlots) <= len(g.parts) && hangs(p, k, out.minSlots) {
			out.minSlots++ // as many as there are messages would do
		}
		if out.minSlots > p.Transport.Slots {
			out.errors |= deadlock
		}
	}
	j.memory = g.close(j.memory)
	r := newSymbolic(g, racingParts(g))
	r.run()
	r.compare(&out)
	return out
}

// fewestMessages lists the regimes that differ in some step's messages: those from
// the largest count on are all alike.
func fewestMessages(p *ir.Program) []int32 {
	most := int32(1)
	for r := range p.GPUs {
		for t := range p.GPUs[r].TBs {
			for _, st := range p.GPUs[r].TBs[t].Steps {
				most = max(most, st.Count)
			}
		}
	}
	all := regimes(p)
	return slices.DeleteFunc(all, func(k int32) bool { return k > most && k != all[0] })
}

// touch is how a part touches a location, and between which events.
type touch struct {
	part        int32
	after, upTo int32
	write       bool
	itself      bool // a copy onto itself: no write, but it may undo one
}

// racing says which accesses race so that what they read or store may be torn, by
// part and location.
type racing struct {
	any           bool
	reads, writes map[touchAt]bool
}

type touchAt struct {
	part int32
	at   place
}

// ontoItself reports whether a part is a copy of a location onto itself.
func (n *part) ontoItself() bool { return n.st.Kind == ir.Copy && n.src == n.dst }

// read is what reading by a part stands between: it may come before the message that
// the part receives, but not after what it sends.
func (g *graph) read(id int32) touch {
	n := &g.parts[id]
	return touch{part: id, after: n.begin, upTo: n.leave, itself: n.ontoItself()}
}

// written is what writing by a part stands between: it may come after what it sends.
func (g *graph) written(id int32) touch {
	n := &g.parts[id]
	return touch{part: id, after: n.arrive, upTo: n.end, write: true}
}

// racingParts asks the closure about all pairs of accesses to every location. They are
// listed in the order of the symbolic run, in which a part reads when it begins and
// writes when it ends.
func racingParts(g *graph) racing {
	touches := map[place][]touch{}
	for _, v := range g.order {
		for id := g.nodes[v].first; id < g.nodes[v].last; id++ {
			n := &g.parts[id]
			kind := n.st.Kind
			if n.begin == v && kind.ReadsSrc() {
				touches[n.src] = append(touches[n.src], g.read(id))
			}
			if n.begin == v && kind.ReadsDst() {
				touches[n.dst] = append(touches[n.dst], g.read(id))
			}
			if n.end == v && kind.WritesDst() && !n.ontoItself() {
				touches[n.dst] = append(touches[n.dst], g.written(id))
			}
		}
	}
	out := racing{reads: map[touchAt]bool{}, writes: map[touchAt]bool{}}
	for at, list := range touches {
		for i, b := range list {
			for _, a := range list[:i] {
				if !a.write && !b.write || g.parts[a.part].line == g.parts[b.part].line ||
					g.comesBefore(a.upTo, b.after) || g.comesBefore(b.upTo, a.after) {
					continue
				}
				out.note(at, a, b)
			}
		}
	}
	return out
}

// note adds a pair that races, a first in the symbolic run. A read is torn, and
// of two writes the later; a copy onto itself tears a write whichever comes first.
func (r *racing) note(at place, a, b touch) {
	r.any = true
	switch {
	case a.itself:
		r.writes[touchAt{b.part, at}] = true
	case b.itself:
		r.writes[touchAt{a.part, at}] = true
	case a.write && b.write:
		r.writes[touchAt{b.part, at}] = true
	case a.write:
		r.reads[touchAt{b.part, at}] = true
	default:
		r.reads[touchAt{a.part, at}] = true
	}
}

// symbolic is one run, in the graph's order, on trees of sums. A part reads when it
// begins, sends when it has to and writes when it ends: one of the orders there are,
// and which one makes no difference unless there is a race.
type symbolic struct {
	g      *graph
	races  racing
	leaves map[place]int32 // tree of what a location held at first
	trees  [][2]int32      // operands, the smaller first; none for a leaf
	ids    map[[2]int32]int32
	terms  [][]term // of a tree: the leaves summed, ascending; made when asked for
	now    map[place]content
	src    []content // of a part: what it read
	passed []content // of a part: what it computed
}

// term is a leaf and how often it is summed, up to tooOften.
type term struct{ leaf, times int32 }

const tooOften = 1 << 29

// content is a tree, and whether a race may have torn it.
type content struct {
	tree int32
	torn bool
}

func newSymbolic(g *graph, races racing) *symbolic {
	return &symbolic{g: g, races: races, leaves: map[place]int32{}, ids: map[[2]int32]int32{},
		now: map[place]content{},
		src: make([]content, len(g.parts)), passed: make([]content, len(g.parts))}
}

func (r *symbolic) leaf(at place) int32 {
	id, ok := r.leaves[at]
	if !ok {
		id = int32(len(r.trees))
		r.leaves[at] = id
		r.trees = append(r.trees, [2]int32{none, none})
		r.terms = append(r.terms, []term{{id, 1}})
	}
	return id
}

func (r *symbolic) add(a, b content) content {
	key := [2]int32{min(a.tree, b.tree), max(a.tree, b.tree)}
	id, ok := r.ids[key]
	if !ok {
		id = int32(len(r.trees))
		r.ids[key] = id
		r.trees = append(r.trees, key)
		r.terms = append(r.terms, nil)
	}
	return content{id, a.torn || b.torn}
}

func (r *symbolic) load(at place) content {
	if c, ok := r.now[at]; ok {
		return c
	}
	return content{r.leaf(at), false}
}

// read is load by a part, torn if another writes meanwhile.
func (r *symbolic) read(id int32, at place) content {
	c := r.load(at)
	c.torn = c.torn || r.races.reads[touchAt{id, at}]
	return c
}

func (r *symbolic) run() {
	for _, v := range r.g.order {
		for id := r.g.nodes[v].first; id < r.g.nodes[v].last; id++ {
			n := &r.g.parts[id]
			if n.st.Kind == ir.Nop || n.ontoItself() {
				continue // changes nothing, unless a write comes meanwhile
			}
			if n.begin == v {
				r.begin(id, n)
			}
			if n.leave == v { // the end if it doesn't send
				r.compute(id, n)
			}
			if n.end == v && n.st.Kind.WritesDst() {
				out := r.passed[id]
				out.torn = out.torn || r.races.writes[touchAt{id, n.dst}]
				r.now[n.dst] = out
			}
		}
	}
}

// begin reads what a part adds up, apart from what it receives.
func (r *symbolic) begin(id int32, n *part) {
	if n.st.Kind.ReadsSrc() {
		r.src[id] = r.read(id, n.src)
	}
	if n.st.Kind.ReadsDst() {
		r.src[id] = r.add(r.src[id], r.read(id, n.dst))
	}
}

// compute adds what a part receives.
func (r *symbolic) compute(id int32, n *part) {
	switch {
	case n.from == none:
		r.passed[id] = r.src[id]
	case n.st.Kind.ReadsSrc():
		r.passed[id] = r.add(r.passed[n.from], r.src[id])
	default:
		r.passed[id] = r.passed[n.from]
	}
}

// sum is the leaves of a tree.
func (r *symbolic) sum(tree int32) []term {
	if r.terms[tree] != nil {
		return r.terms[tree]
	}
	a, b := r.sum(r.trees[tree][0]), r.sum(r.trees[tree][1])
	var list []term
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].leaf < b[0].leaf:
			list, a = append(list, a[0]), a[1:]
		case len(a) == 0 || b[0].leaf < a[0].leaf:
			list, b = append(list, b[0]), b[1:]
		default:
			list = append(list, term{a[0].leaf, min(a[0].times+b[0].times, tooOften)})
			a, b = a[1:], b[1:]
		}
	}
	r.terms[tree] = list
	return list
}

// compare judges what the run left behind.
func (r *symbolic) compare(out *judgment) {
	c := r.g.p.Coll
	for rank := range ir.Rank(c.Ranks) {
		for i := range c.OutputChunks(rank) {
			want, demanded := c.Expect(nil, rank, i)
			open := !demanded && c.Kind == ir.Custom && c.Custom.Open
			if !demanded && !open {
				continue
			}
			got := r.load(r.g.place(rank, ir.Place{Buf: ir.Output, Index: i}, 0))
			if got.torn {
				out.errors |= race
			}
			if !open && !r.isSum(got.tree, want) {
				out.errors |= wrongResult
			}
		}
		for i := range c.InputChunks(rank) {
			at := place{rank, ir.Input, i}
			if got := r.load(at); !c.InPlace {
				if got.torn {
					out.errors |= race
				}
				if got.tree != r.leaf(at) {
					out.errors |= clobbered
				}
			}
		}
	}
	out.deadRace = r.races.any && out.errors&race == 0
	if c.Kind == ir.AllReduce {
		out.orderDiffers = r.orderDiffers()
	}
}

func (r *symbolic) isSum(tree int32, want []ir.Contribution) bool {
	list := r.sum(tree)
	total := int32(0)
	for _, t := range list {
		total = min(total+t.times, tooOften)
	}
	if int(total) != len(want) {
		return false
	}
	wanted := map[int32]int32{}
	for _, w := range want {
		wanted[r.leaf(r.g.place(w.Rank, ir.Place{Buf: ir.Input, Index: w.Index}, 0))]++
	}
	for _, t := range list {
		if wanted[t.leaf] != t.times {
			return false
		}
	}
	return true
}

// orderDiffers reports whether two ranks have the right sum in different trees.
func (r *symbolic) orderDiffers() bool {
	c := r.g.p.Coll
	for i := range c.OutputChunks(0) {
		seen := int32(none)
		for rank := range ir.Rank(c.Ranks) {
			want, _ := c.Expect(nil, rank, i)
			tree := r.load(r.g.place(rank, ir.Place{Buf: ir.Output, Index: i}, 0)).tree
			if !r.isSum(tree, want) {
				continue
			}
			if seen != none && seen != tree {
				return true
			}
			seen = tree
		}
	}
	return false
}
