package plan

import (
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// maxCustom bounds the postcondition of a collective that is spelled out chunk
// by chunk, as ir does.
const maxCustom = 1 << 21

// collective finds what the plan has to compute. Sizes in chunks are those of
// MSCCL++: n is the number of ranks, an in-place plan may leave out its output.
//
//	allreduce c, c      allgather c, n*c      reducescatter n*c, c
//	alltoall n*c, n*c   broadcast c, c
//
// sendrecv, test and all other names are collectives of their own.
func (r *reader) collective() *ir.Collective {
	n := int32(len(r.raw.gpus))
	in, out, same := r.sizes()
	var kind ir.CollectiveKind
	var factor, wantIn, wantOut int64
	c, k := int64(in), int64(n)
	switch r.raw.collective {
	case "allreduce":
		kind, factor, wantIn, wantOut = ir.AllReduce, c, c, c
	case "broadcast":
		kind, factor, wantIn, wantOut = ir.Broadcast, c, c, c
	case "allgather":
		kind, factor, wantIn, wantOut = ir.AllGather, c, c, k*c
	case "reducescatter", "reduce_scatter":
		kind, factor, wantIn, wantOut = ir.ReduceScatter, c/k, c, c/k
	case "alltoall":
		kind, factor, wantIn, wantOut = ir.AllToAll, c/k, c, c
	default:
		return r.custom()
	}
	if kind == ir.Broadcast && r.raw.root == ir.None {
		r.notes = append(r.notes, diag.Warningf(r.raw.pos, "plan-collective", "broadcast: the plan doesn't say its root").
			Suggest("nothing is demanded of its result; add a key \"root\""))
		return r.custom()
	}
	whole := kind != ir.ReduceScatter && kind != ir.AllToAll || c%k == 0
	fits := int64(out) == wantOut || out == 0 && r.raw.inPlace
	if !same || factor < 1 || !whole || !fits || wantIn > 1<<30 || wantOut > 1<<30 {
		r.failf(r.raw.pos, "plan-value", "%s on %d ranks: got %s input and %s output chunks a rank",
			r.raw.collective, n, r.sizeWord(true), r.sizeWord(false))
		return nil
	}
	if int64(out) != wantOut {
		r.notes = append(r.notes, infof(r.raw.pos, "plan-output", "output_chunks is 0 in place, taken as %d", wantOut))
	}
	coll := ir.NewCollective(kind, n, int32(factor), r.raw.inPlace)
	if kind == ir.Broadcast {
		coll.Root = ir.Rank(r.raw.root)
		if r.raw.root >= n {
			r.failf(r.raw.pos, "plan-value", "root %d is not one of %d ranks", r.raw.root, n)
		}
	}
	return coll
}

// sizes are those of the first rank, and whether all have the same.
func (r *reader) sizes() (in, out int32, same bool) {
	first := &r.raw.gpus[0]
	same = true
	for g := range r.raw.gpus {
		same = same && r.raw.gpus[g].in == first.in && r.raw.gpus[g].out == first.out
	}
	return first.in, first.out, same
}

// sizeWord is the number of chunks that all ranks have, or "several numbers of".
func (r *reader) sizeWord(input bool) any {
	size := func(g int) int32 {
		if input {
			return r.raw.gpus[g].in
		}
		return r.raw.gpus[g].out
	}
	for g := range r.raw.gpus {
		if size(g) != size(0) {
			return "several numbers of"
		}
	}
	return itoa(size(0))
}

// custom is a collective by its name alone. What sendrecv demands is found out
// once the operations are known.
func (r *reader) custom() *ir.Collective {
	n := len(r.raw.gpus)
	c := ir.NewCollective(ir.Custom, int32(n), 1, r.raw.inPlace)
	c.Name = r.raw.collective
	c.Custom = &ir.CustomSpec{Input: make([]int32, n), Output: make([]int32, n), Expect: make([][][]ir.Contribution, n)}
	total := int64(0)
	for g := range n {
		in, out := r.raw.gpus[g].in, r.raw.gpus[g].out
		if r.raw.inPlace { // one memory
			in, out = max(in, out), max(in, out)
		}
		c.Custom.Input[g], c.Custom.Output[g] = in, out
		total += int64(in) + int64(out)
	}
	if total > maxCustom {
		r.failf(r.raw.pos, "plan-value", "%s: %d chunks in all inputs and outputs, want at most %d", c, total, maxCustom)
		return nil
	}
	for g := range n {
		c.Custom.Expect[g] = make([][]ir.Contribution, c.Custom.Output[g])
	}
	if c.Name != "test" && c.Name != "sendrecv" && c.Name != "broadcast" {
		r.notes = append(r.notes, diag.Warningf(r.raw.pos, "plan-collective", "collective %q has no known meaning", c.Name).
			Suggest("nothing is demanded of its result"))
	}
	return c
}

// inferSources finds what sendrecv means in this plan.
func (r *reader) inferSources() {
	r.notes = append(r.notes, inferSources(r.p, r.raw.pos, func(g int) diag.Pos { return r.raw.gpus[g].pos }, false)...)
}

// InferSources finds what sendrecv means in p, and leaves any other program alone:
// its collective doesn't say who sends to whom. If the input of one rank alone can
// flow into a rank's output, that is what the output must hold from now on. What it
// shares with other programs stays as it is. The notes are about outputs that stay
// without a demand.
func InferSources(p *ir.Program) diag.List {
	if p.OneSided == nil || p.Coll.Kind != ir.Custom || p.Coll.Name != "sendrecv" {
		return nil
	}
	spec, coll, custom := *p.Spec, *p.Coll, *p.Coll.Custom
	custom.Expect = make([][][]ir.Contribution, len(custom.Output))
	for g, n := range custom.Output {
		custom.Expect[g] = make([][]ir.Contribution, n)
	}
	coll.Custom, spec.Coll, p.Spec = &custom, &coll, &spec
	return inferSources(p, diag.Pos{}, func(int) diag.Pos { return diag.Pos{} }, true)
}

// inferSources sets the postcondition of a sendrecv by what can flow where; pos is
// the plan's position, and at those of its ranks. A script means all ranks to get
// something.
func inferSources(p *ir.Program, pos diag.Pos, at func(int) diag.Pos, script bool) (notes diag.List) {
	c := p.Coll
	if c.InPlace {
		return append(notes, diag.Warningf(pos, "plan-sendrecv", "sendrecv in place: who sends to whom is unknown").
			Suggest("nothing is demanded of its result"))
	}
	sources := flow(p)
	for g, src := range sources {
		switch {
		case c.Custom.Output[g] == 0 || src == nobody && !script:
			continue
		case src == nobody:
			notes = append(notes, diag.Warningf(at(g), "plan-sendrecv", "sendrecv: no input can reach the output of rank %d", g).
				Suggest("nothing is demanded of it"))
			continue
		case src == several:
			notes = append(notes, diag.Warningf(at(g), "plan-sendrecv",
				"sendrecv: data of several ranks can reach the output of rank %d", g).Suggest("nothing is demanded of it"))
			continue
		}
		for i := range min(c.Custom.Output[g], c.Custom.Input[src]) {
			c.Custom.Expect[g][i] = []ir.Contribution{{Rank: ir.Rank(src), Index: i}}
		}
	}
	return notes
}

// What flow finds instead of a rank.
const (
	nobody  = -1
	several = -2
)

// flow finds for each rank whose input can reach its output, through whatever
// buffers and in whatever order: one rank, nobody or several.
func flow(p *ir.Program) []int32 {
	g := newFlowGraph(p)
	for i := range p.OneSided.Ops {
		g.op(&p.OneSided.Ops[i])
	}
	edges := g.edges
	value := make([]int32, len(edges))
	var work []int32
	for v := range value {
		value[v] = nobody
		if v < g.groups && v%bufferKinds == int(ir.Input) {
			value[v] = int32(v / bufferKinds)
			work = append(work, int32(v))
		}
	}
	for len(work) > 0 { // a node changes twice at most
		v := work[len(work)-1]
		work = work[:len(work)-1]
		for _, w := range edges[v] {
			was := value[w]
			switch {
			case was == nobody:
				value[w] = value[v]
			case was != value[v]:
				value[w] = several
			}
			if value[w] != was {
				work = append(work, w)
			}
		}
	}
	out := make([]int32, len(p.GPUs))
	for r := range out {
		out[r] = value[r*bufferKinds+int(ir.Output)]
	}
	return out
}

// flowGraph joins buffers of ranks along which data can move. Groups and
// operations with several operands are nodes too, so that edges stay as many as
// operands.
type flowGraph struct {
	o      *ir.OneSided
	groups int // number of the first group's node: two for each, read and written
	edges  [][]int32
}

const bufferKinds = int(ir.FirstScratch) + 1

func newFlowGraph(p *ir.Program) *flowGraph {
	n := len(p.GPUs) * bufferKinds
	g := &flowGraph{o: p.OneSided, groups: n, edges: make([][]int32, n+2*len(p.OneSided.Groups), n+2*len(p.OneSided.Groups)+len(p.OneSided.Ops))}
	for i := range g.o.Groups {
		grp := &g.o.Groups[i]
		for _, r := range grp.Ranks {
			member := int32(int(r)*bufferKinds + int(grp.Buf))
			g.edges[member] = append(g.edges[member], int32(n+2*i))
			g.edges[n+2*i+1] = append(g.edges[n+2*i+1], member)
		}
	}
	return g
}

// node is what an operand is read from, or written to.
func (g *flowGraph) node(a ir.Operand, written bool) int32 {
	switch {
	case a.Group == ir.None:
		return int32(int(a.Rank)*bufferKinds + int(a.Buf))
	case written:
		return int32(g.groups + 2*int(a.Group) + 1)
	}
	return int32(g.groups + 2*int(a.Group))
}

func (g *flowGraph) op(op *ir.Op) {
	src, dst := g.o.Sources(op), g.o.Destinations(op)
	if op.Kind.Pairs() {
		for i := range src {
			from := g.node(src[i], false)
			g.edges[from] = append(g.edges[from], g.node(dst[i], true))
		}
		return
	}
	self := int32(len(g.edges))
	var to []int32
	for i := range dst {
		to = append(to, g.node(dst[i], true))
	}
	g.edges = append(g.edges, to)
	for i := range src {
		from := g.node(src[i], false)
		g.edges[from] = append(g.edges[from], self)
	}
}
