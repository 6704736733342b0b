package ir

import "gonum.org/v1/gonum/graph"

// Graph presents the operations and their dependencies (Edges) to gonum: node
// ids are OpIDs, an edge leads from what must run first to what waits for it.
// Build it once: it computes the edges.
func (d *ChunkDAG) Graph() graph.Directed { return d.Edges().Graph() }

// Graph presents the instructions, their dependencies and messages to gonum;
// node ids are InstrIDs. See ChunkDAG.Graph.
func (d *InstrDAG) Graph() graph.Directed { return d.Edges().Graph() }

// Graph presents e to gonum, with successors indexed beside the predecessors.
func (e *Edges) Graph() graph.Directed {
	n := len(e.Start) - 1
	g := &digraph{pred: e, start: make([]int32, n+1), succ: make([]int32, len(e.Pred))}
	for _, p := range e.Pred {
		g.start[p+1]++
	}
	for v := range n {
		g.start[v+1] += g.start[v]
	}
	fill := append([]int32(nil), g.start[:n]...)
	for v := range int32(n) {
		for _, p := range e.Of(v) {
			g.succ[fill[p]] = v
			fill[p]++
		}
	}
	return g
}

// digraph is Edges with both directions; it implements graph.Directed.
type digraph struct {
	pred  *Edges
	start []int32 // successors of v are succ[start[v]:start[v+1]], ascending
	succ  []int32
}

// node and edge are gonum's values for a dense id and a pair of them.
type (
	node int64
	edge struct{ from, to node }
)

func (v node) ID() int64                { return int64(v) }
func (e edge) From() graph.Node         { return e.from }
func (e edge) To() graph.Node           { return e.to }
func (e edge) ReversedEdge() graph.Edge { return edge{e.to, e.from} }

func (g *digraph) has(id int64) bool { return id >= 0 && id < int64(len(g.start)-1) }

// Node returns the node, or nil if there is none of that id.
func (g *digraph) Node(id int64) graph.Node {
	if !g.has(id) {
		return nil
	}
	return node(id)
}

// Nodes returns all nodes in ascending order.
func (g *digraph) Nodes() graph.Nodes { return &nodes{count: len(g.start) - 1, at: -1} }

// From returns the nodes that wait for id, in ascending order.
func (g *digraph) From(id int64) graph.Nodes {
	if !g.has(id) {
		return graph.Empty
	}
	return listed(g.succ[g.start[id]:g.start[id+1]])
}

// To returns the nodes that id waits for, in ascending order.
func (g *digraph) To(id int64) graph.Nodes {
	if !g.has(id) {
		return graph.Empty
	}
	return listed(g.pred.Of(int32(id)))
}

// HasEdgeFromTo reports whether v waits for u.
func (g *digraph) HasEdgeFromTo(u, v int64) bool {
	if !g.has(u) || !g.has(v) {
		return false
	}
	list := g.pred.Of(int32(v))
	low, high := 0, len(list)
	for low < high {
		if mid := (low + high) / 2; int64(list[mid]) < u {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low < len(list) && int64(list[low]) == u
}

// HasEdgeBetween reports whether one of x and y waits for the other.
func (g *digraph) HasEdgeBetween(x, y int64) bool {
	return g.HasEdgeFromTo(x, y) || g.HasEdgeFromTo(y, x)
}

// Edge returns the edge from u to v, or nil.
func (g *digraph) Edge(u, v int64) graph.Edge {
	if !g.HasEdgeFromTo(u, v) {
		return nil
	}
	return edge{node(u), node(v)}
}

// nodes iterates over ids, or over 0 to count-1 where there is no list.
type nodes struct {
	ids   []int32
	count int
	at    int
}

func listed(ids []int32) graph.Nodes {
	if len(ids) == 0 {
		return graph.Empty
	}
	return &nodes{ids: ids, count: len(ids), at: -1}
}

// Next advances, and reports whether there is a node.
func (n *nodes) Next() bool {
	if n.at < n.count {
		n.at++
	}
	return n.at < n.count
}

// Len is the number of nodes still to come.
func (n *nodes) Len() int { return max(n.count-n.at-1, 0) }

// Reset starts again.
func (n *nodes) Reset() { n.at = -1 }

// Node is the present node, nil before the first Next and after the last.
func (n *nodes) Node() graph.Node {
	switch {
	case n.at < 0 || n.at >= n.count:
		return nil
	case n.ids != nil:
		return node(n.ids[n.at])
	}
	return node(n.at)
}
