package viz

import "github.com/mscclsh/mscclsh/ir"

// OfRank is the part of p that a rank sees: its own nodes, and those at the other
// end of what joins them to others.
func (p *Picture) OfRank(r ir.Rank) *Picture {
	keep := make([]bool, len(p.Nodes))
	own := func(v int32) bool { return p.Lanes[p.Nodes[v].Lane].Rank == r }
	for v := range p.Nodes {
		keep[v] = own(int32(v))
	}
	for i := range p.Edges {
		if e := &p.Edges[i]; own(e.From) || own(e.To) {
			keep[e.From], keep[e.To] = true, true
		}
	}
	return p.only(keep, own)
}

// only is the part of p with the nodes to keep, and edges that a rank of own has to
// do with. Lanes without nodes go, empty columns too.
func (p *Picture) only(keep []bool, own func(v int32) bool) *Picture {
	q := *p
	q.Nodes, q.Edges, q.Order, q.Lanes, q.Cols = nil, nil, nil, nil, 0
	number := make([]int32, len(p.Nodes)) // of a node that stays
	old := []int32{}
	for v := range p.Nodes {
		number[v] = ir.None
		if keep[v] {
			number[v] = int32(len(old))
			old = append(old, int32(v))
			q.Nodes = append(q.Nodes, p.Nodes[v])
		}
	}
	for _, e := range p.Edges {
		if keep[e.From] && keep[e.To] && (own(e.From) || own(e.To)) {
			e.From, e.To = number[e.From], number[e.To]
			q.Edges = append(q.Edges, e)
		}
	}
	for _, v := range p.Order {
		if keep[v] {
			q.Order = append(q.Order, number[v])
		}
	}
	q.label = func(i int32) string { return p.label(old[i]) }
	q.text = func(i int32) string { return p.text(old[i]) }
	q.close(p)
	return &q
}

// close numbers lanes and columns anew after nodes were left out.
func (p *Picture) close(before *Picture) {
	inColumns := p.Stage != StageTopology && p.Stage != StageTimeline
	lanes, cols := make([]int32, len(before.Lanes)), make([]int32, before.Cols)
	for i := range p.Nodes {
		lanes[p.Nodes[i].Lane] = 1
		if inColumns {
			cols[p.Nodes[i].Col] = 1
		}
	}
	for l, used := range lanes {
		if used > 0 {
			p.Lanes = append(p.Lanes, before.Lanes[l])
			lanes[l] = int32(len(p.Lanes) - 1)
		}
	}
	for c, used := range cols {
		cols[c] = p.Cols
		p.Cols += used
	}
	if !inColumns {
		p.Cols = before.Cols
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		n.Lane = lanes[n.Lane]
		if inColumns {
			n.Col = cols[n.Col]
		}
	}
}
