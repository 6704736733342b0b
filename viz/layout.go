package viz

import (
	"cmp"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// laneHeight is how many nodes of one depth stand below one another in a rank's
// lane before they go on beside: otherwise an exchange of all with all is one
// column.
const laneHeight = 8

// levels gives every node its depth, and says in what order nodes can run: by
// depth, then by number. Nodes on a cycle, and those after them, are stuck.
func (p *Picture) levels() {
	n := len(p.Nodes)
	ends, begins := p.adjacent(true), p.adjacent(false)
	left := make([]int32, n)
	var ready []int32
	for v := range n {
		left[v] = int32(len(ends.of(int32(v))))
		if left[v] == 0 {
			ready = append(ready, int32(v))
		}
	}
	for i := 0; i < len(ready); i++ {
		v := ready[i]
		for _, e := range begins.of(v) {
			u := p.Edges[e].To
			p.Nodes[u].Depth = max(p.Nodes[u].Depth, p.Nodes[v].Depth+1)
			if left[u]--; left[u] == 0 {
				ready = append(ready, u)
			}
		}
	}
	slices.SortFunc(ready, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.Nodes[a].Depth, p.Nodes[b].Depth), cmp.Compare(a, b))
	})
	p.Order = ready
	for v := range n {
		p.Nodes[v].Stuck = left[v] > 0
	}
}

// within takes the room of connections into the order: more are pairs of nodes of
// which the first has to run before the second can, because it makes room for what
// that one sends. Depths, and with them the places of nodes, stay.
func (p *Picture) within(more [][2]int32) {
	if len(more) == 0 {
		return
	}
	n := len(p.Nodes)
	ends, begins := p.adjacent(true), p.adjacent(false)
	freed := make(map[int32][]int32, len(more))
	left, turn := make([]int32, n), make([]int32, n)
	for v := range n {
		left[v] = int32(len(ends.of(int32(v))))
	}
	for _, m := range more {
		freed[m[0]] = append(freed[m[0]], m[1])
		left[m[1]]++
	}
	var ready []int32
	for v := range n {
		if left[v] == 0 {
			ready = append(ready, int32(v))
		}
	}
	for i := 0; i < len(ready); i++ {
		v := ready[i]
		after := func(u int32) {
			turn[u] = max(turn[u], turn[v]+1)
			if left[u]--; left[u] == 0 {
				ready = append(ready, u)
			}
		}
		for _, e := range begins.of(v) {
			after(p.Edges[e].To)
		}
		for _, u := range freed[v] {
			after(u)
		}
	}
	slices.SortFunc(ready, func(a, b int32) int { return cmp.Or(cmp.Compare(turn[a], turn[b]), cmp.Compare(a, b)) })
	p.Order = ready
	for v := range n {
		p.Nodes[v].Stuck = left[v] > 0
	}
}

// alongLanes gives the steps of a thread block, which stand in order, columns by
// their depth. Stuck ones follow what stands before them.
func (p *Picture) alongLanes() {
	last := make([]int32, len(p.Lanes))
	for i := range last {
		last[i] = ir.None
		p.Lanes[i].Rows = 1
	}
	for v := range p.Nodes {
		n := &p.Nodes[v]
		n.Col = max(n.Depth, last[n.Lane]+1)
		last[n.Lane] = n.Col
		p.Cols = max(p.Cols, n.Col+1)
	}
}

// inLanes gives nodes, which have depths, rows and columns in the lanes of their
// ranks. A node stands on the row of one that it depends on where that is free.
// Nodes of one depth share columns that nodes of no other depth have.
func (p *Picture) inLanes() {
	order := make([]int32, len(p.Nodes))
	for v := range order {
		order[v] = int32(v)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &p.Nodes[a], &p.Nodes[b]
		return cmp.Or(cmp.Compare(x.Depth, y.Depth), cmp.Compare(x.Lane, y.Lane), cmp.Compare(a, b))
	})
	ends := p.adjacent(true)
	col := int32(0)
	for i := 0; i < len(order); {
		width := int32(1)
		j := i
		for depth := p.Nodes[order[i]].Depth; j < len(order) && p.Nodes[order[j]].Depth == depth; {
			k := j
			for lane := p.Nodes[order[j]].Lane; k < len(order) && p.Nodes[order[k]].Depth == depth && p.Nodes[order[k]].Lane == lane; k++ {
			}
			width = max(width, p.fillLane(order[j:k], col, ends))
			j = k
		}
		col += width
		i = j
	}
	p.Cols = col
	for v := range p.Nodes {
		l := &p.Lanes[p.Nodes[v].Lane]
		l.Rows = max(l.Rows, p.Nodes[v].Row+1)
	}
}

// fillLane places the nodes of one lane and depth from column col on, and returns
// how many columns they take.
func (p *Picture) fillLane(nodes []int32, col int32, ends *adjacency) int32 {
	var taken [laneHeight]bool
	var rest []int32
	for _, v := range nodes {
		if row := p.rowBefore(v, ends); row != ir.None && !taken[row] {
			taken[row] = true
			p.Nodes[v].Row, p.Nodes[v].Col = row, col
		} else {
			rest = append(rest, v)
		}
	}
	at := int32(0)
	for _, v := range rest {
		for at < laneHeight && taken[at] {
			at++
		}
		p.Nodes[v].Row, p.Nodes[v].Col = at%laneHeight, col+at/laneHeight
		at++
	}
	return max(at-1, 0)/laneHeight + 1
}

// rowBefore is the row of the first node in v's lane that v depends on.
func (p *Picture) rowBefore(v int32, ends *adjacency) int32 {
	for _, e := range ends.of(v) {
		if u := &p.Nodes[p.Edges[e].From]; p.Edges[e].Kind != EdgeFalse && u.Lane == p.Nodes[v].Lane && u.Depth < p.Nodes[v].Depth {
			return u.Row
		}
	}
	return ir.None
}
