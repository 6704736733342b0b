package proof

import (
	"github.com/mscclsh/mscclsh/ir"
)

// graph is a program as events and what must come before what: program order,
// dependencies, and messages from their send to their receive.
//
// A chunk of a step is one event, which comes after that of the chunk before. With LL
// and LL128 steps have more of them: a step begins and ends as a whole, and each of its
// chunks arrives if the step receives and leaves if it sends, in no order with the
// other chunks.
type graph struct {
	p     *ir.Program
	parts []part
	nodes []instant
	pred  [][]int32
	order []int32 // a topological order; shorter than nodes if there is a cycle
	reach []uint64
	words int
}

// part is one chunk of a step, or a whole nop.
type part struct {
	st       *ir.Step
	line     int32 // thread block, counted over all ranks
	from     int32 // the part that sends what this one receives, or none
	src, dst place // valid if the step has them
	// Its events: the step begins, what it receives is there, what it sends is on its
	// way, the step ends. Without a message that is the beginning and the end.
	begin, arrive, leave, end int32
}

// instant is an event: the parts parts[first:last] have theirs then.
type instant struct{ first, last int32 }

// place is a canonical location.
type place struct {
	rank  ir.Rank
	buf   ir.BufferID
	index int32
}

func newGraph(p *ir.Program) *graph {
	g := &graph{p: p}
	sends := map[connKey][]int32{}
	receives := map[connKey][]int32{}
	line := int32(0)
	for r := range p.GPUs {
		rank := ir.Rank(r)
		spans := make([][]span, len(p.GPUs[r].TBs))
		for t := range p.GPUs[r].TBs {
			steps := p.GPUs[r].TBs[t].Steps
			for s := range steps {
				st := &steps[s]
				first := int32(len(g.parts))
				for j := range max(st.Count, 1) {
					id := int32(len(g.parts))
					n := part{st: st, line: line, from: none}
					if st.Kind.ReadsSrc() {
						n.src = g.place(rank, st.Src, j)
					}
					if st.Kind.WritesDst() {
						n.dst = g.place(rank, st.Dst, j)
					}
					g.parts = append(g.parts, n)
					if st.Kind.Sends() {
						k := connKey{rank, st.SendPeer, st.Chan}
						sends[k] = append(sends[k], id)
					}
					if st.Kind.Receives() {
						k := connKey{st.RecvPeer, rank, st.Chan}
						receives[k] = append(receives[k], id)
					}
				}
				sp := g.step(first, flagged(p))
				if s > 0 {
					g.edge(spans[t][s-1].end, sp.begin)
				}
				spans[t] = append(spans[t], sp)
			}
			line++
		}
		for t := range spans {
			for s, sp := range spans[t] {
				for _, d := range p.DepsOf(&p.GPUs[r].TBs[t].Steps[s]) {
					g.edge(spans[d.TB][d.Step].end, sp.begin)
				}
			}
		}
	}
	for k, list := range receives {
		for i, id := range list {
			g.parts[id].from = sends[k][i]
			g.edge(g.parts[sends[k][i]].leave, g.parts[id].arrive)
		}
	}
	g.order = sortedBy(g.pred)
	return g
}

// span is where a step begins and ends.
type span struct{ begin, end int32 }

// step makes the events of a step, whose parts are those from first on.
func (g *graph) step(first int32, placewise bool) span {
	last := int32(len(g.parts))
	if !placewise {
		sp := span{begin: int32(len(g.nodes))}
		for id := first; id < last; id++ {
			v := g.event(id, id+1)
			if id > first {
				g.edge(v-1, v)
			}
			n := &g.parts[id]
			n.begin, n.arrive, n.leave, n.end = v, v, v, v
			sp.end = v
		}
		return sp
	}
	sp := span{begin: g.event(first, last), end: g.event(first, last)}
	g.edge(sp.begin, sp.end)
	for id := first; id < last; id++ {
		n := &g.parts[id]
		n.begin, n.arrive, n.leave, n.end = sp.begin, sp.begin, sp.end, sp.end
		if n.st.Kind.Receives() {
			n.arrive = g.event(id, id+1)
			g.edge(sp.begin, n.arrive)
			g.edge(n.arrive, sp.end)
		}
		if n.st.Kind.Sends() {
			n.leave = g.event(id, id+1)
			g.edge(sp.begin, n.leave)
			g.edge(n.leave, sp.end)
			if n.st.Kind.Receives() {
				g.edge(n.arrive, n.leave)
			}
		}
	}
	return sp
}

func (g *graph) event(first, last int32) int32 {
	g.nodes = append(g.nodes, instant{first, last})
	g.pred = append(g.pred, nil)
	return int32(len(g.nodes)) - 1
}

func (g *graph) edge(u, v int32) { g.pred[v] = append(g.pred[v], u) }

func (g *graph) place(r ir.Rank, pl ir.Place, j int32) place {
	buf, i := g.p.Coll.Canon(r, pl.Buf, pl.Index+j)
	return place{r, buf, i}
}

// sortedBy lists nodes so that all predecessors come first; those on a cycle or
// after one are left out.
func sortedBy(pred [][]int32) []int32 {
	open := make([]int, len(pred))
	after := make([][]int32, len(pred))
	var order []int32
	for v, list := range pred {
		open[v] = len(list)
		for _, u := range list {
			after[u] = append(after[u], int32(v))
		}
		if len(list) == 0 {
			order = append(order, int32(v))
		}
	}
	for i := 0; i < len(order); i++ {
		for _, v := range after[order[i]] {
			if open[v]--; open[v] == 0 {
				order = append(order, v)
			}
		}
	}
	return order
}

// close computes the full closure into memory that is handed from call to call.
func (g *graph) close(memory []uint64) []uint64 {
	g.words = (len(g.nodes) + 63) / 64
	if need := g.words * len(g.nodes); cap(memory) < need {
		memory = make([]uint64, need)
	} else {
		memory = memory[:need]
		clear(memory)
	}
	g.reach = memory
	for _, v := range g.order {
		row := g.row(v)
		for _, u := range g.pred[v] {
			for i, w := range g.row(u) {
				row[i] |= w
			}
			row[u/64] |= 1 << (u % 64)
		}
	}
	return memory
}

// row is the set of nodes that come before v.
func (g *graph) row(v int32) []uint64 { return g.reach[int(v)*g.words : (int(v)+1)*g.words] }

// comesBefore reports whether u is v or comes before it.
func (g *graph) comesBefore(u, v int32) bool { return u == v || g.row(v)[u/64]>>(u%64)&1 == 1 }

// hangs reports whether the program can't end with messages of k chunks and so
// many slots a connection. It can't iff the graph of messages has a cycle in which
// sending a message also waits until the one so many slots before it was taken. That
// holds for LL and LL128 too: a message keeps its place, so there is a cycle of
// messages iff there is one of the places of messages.
func hangs(p *ir.Program, k, slots int32) bool {
	var pred [][]int32
	sends, receives := map[connKey][]int32{}, map[connKey][]int32{}
	for r := range p.GPUs {
		first, last := map[ir.Dep]int32{}, map[ir.Dep]int32{}
		for t := range p.GPUs[r].TBs {
			for s := range p.GPUs[r].TBs[t].Steps {
				st := &p.GPUs[r].TBs[t].Steps[s]
				n := int32(1)
				if st.Kind.Sends() || st.Kind.Receives() {
					n = ir.Messages(st.Count, k)
				}
				first[ir.Dep{TB: int32(t), Step: int32(s)}] = int32(len(pred))
				for j := range n {
					id := int32(len(pred))
					pred = append(pred, nil)
					if s > 0 || j > 0 {
						pred[id] = append(pred[id], id-1)
					}
					if st.Kind.Sends() {
						key := connKey{ir.Rank(r), st.SendPeer, st.Chan}
						sends[key] = append(sends[key], id)
					}
					if st.Kind.Receives() {
						key := connKey{st.RecvPeer, ir.Rank(r), st.Chan}
						receives[key] = append(receives[key], id)
					}
				}
				last[ir.Dep{TB: int32(t), Step: int32(s)}] = int32(len(pred)) - 1
			}
		}
		for t := range p.GPUs[r].TBs {
			for s := range p.GPUs[r].TBs[t].Steps {
				id := first[ir.Dep{TB: int32(t), Step: int32(s)}]
				for _, d := range p.DepsOf(&p.GPUs[r].TBs[t].Steps[s]) {
					pred[id] = append(pred[id], last[d])
				}
			}
		}
	}
	for key, list := range sends {
		for i, id := range list {
			taken := receives[key][i]
			pred[taken] = append(pred[taken], id)
			if j := i - int(slots); j >= 0 {
				pred[id] = append(pred[id], receives[key][j])
			}
		}
	}
	return len(sortedBy(pred)) < len(pred)
}
