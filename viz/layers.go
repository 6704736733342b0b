package viz

import (
	"cmp"
	"slices"
)

// sweeps is how often the order within layers goes by the neighbors' in the layers
// before and after.
const sweeps = 6

// spread is the finest difference between places in a layer: rows are given in this
// many parts.
const spread = 4

// layers places nodes by depth alone: the layer of a node is its depth, and within
// layers nodes are near what they are joined to. It returns the place of each node
// within its layer, in parts of a row of which each node takes spread. It is the
// usual way of drawing graphs in layers, without bends: layers by the longest path,
// order by the mean of the neighbors, places by least squares.
func (p *Picture) layers() []int32 {
	depth := int32(0)
	for v := range p.Nodes {
		depth = max(depth, p.Nodes[v].Depth)
	}
	l := &layering{pic: p, ends: p.adjacent(true), begins: p.adjacent(false), at: make([]float64, len(p.Nodes)),
		layer: make([][]int32, depth+1)}
	for v := range p.Nodes {
		d := p.Nodes[v].Depth
		l.at[v] = float64(len(l.layer[d]))
		l.layer[d] = append(l.layer[d], int32(v))
	}
	for i := range sweeps {
		forth := i%2 == 0
		for d := range l.layer {
			if !forth {
				d = len(l.layer) - 1 - d
			}
			l.arrange(l.layer[d], forth)
		}
	}
	for i := range sweeps {
		for d := range l.layer {
			if i%2 == 1 {
				d = len(l.layer) - 1 - d
			}
			l.place(l.layer[d])
		}
	}
	return l.rounded()
}

type layering struct {
	pic          *Picture
	ends, begins *adjacency
	layer        [][]int32 // nodes from the first place on
	at           []float64
}

// neighbors calls f for the place of each node that v is joined to, before it or
// after it.
func (l *layering) neighbors(v int32, before bool, f func(at float64)) {
	list := l.begins
	if before {
		list = l.ends
	}
	for _, e := range list.of(v) {
		u := l.pic.Edges[e].To
		if before {
			u = l.pic.Edges[e].From
		}
		f(l.at[u])
	}
}

// arrange orders a layer by the mean of the neighbors on one side; without any, a
// node keeps its place.
func (l *layering) arrange(layer []int32, before bool) {
	want := make(map[int32]float64, len(layer))
	for _, v := range layer {
		sum, n := 0.0, 0
		l.neighbors(v, before, func(at float64) { sum, n = sum+at, n+1 })
		want[v] = l.at[v]
		if n > 0 {
			want[v] = sum / float64(n)
		}
	}
	slices.SortStableFunc(layer, func(a, b int32) int { return cmp.Or(cmp.Compare(want[a], want[b]), cmp.Compare(a, b)) })
	for i, v := range layer {
		l.at[v] = float64(i)
	}
}

// place moves the nodes of a layer as near to the mean of their neighbors as their
// order and the room of each allow: least squares with the order kept, by joining
// neighbors that would overlap into blocks.
func (l *layering) place(layer []int32) {
	type block struct {
		sum float64 // of what its nodes want, each less its number
		n   int
	}
	var blocks []block
	for i, v := range layer {
		sum, n := 0.0, 0
		add := func(at float64) { sum, n = sum+at, n+1 }
		l.neighbors(v, true, add)
		l.neighbors(v, false, add)
		want := l.at[v]
		if n > 0 {
			want = sum / float64(n)
		}
		blocks = append(blocks, block{want - float64(i), 1})
		for k := len(blocks) - 1; k > 0 && blocks[k-1].sum*float64(blocks[k].n) > blocks[k].sum*float64(blocks[k-1].n); k-- {
			blocks[k-1].sum += blocks[k].sum
			blocks[k-1].n += blocks[k].n
			blocks = blocks[:k]
		}
	}
	i := 0
	for _, b := range blocks {
		for range b.n {
			l.at[layer[i]] = b.sum/float64(b.n) + float64(i)
			i++
		}
	}
}

// rounded are the places from 0 on, in parts of a row. Nodes of a layer stay a row
// apart.
func (l *layering) rounded() []int32 {
	least := 0.0
	if len(l.at) > 0 {
		least = slices.Min(l.at)
	}
	out := make([]int32, len(l.at))
	for _, layer := range l.layer {
		last := int32(-spread)
		for _, v := range layer {
			last = max(int32((l.at[v]-least)*spread+0.5), last+spread)
			out[v] = last
		}
	}
	return out
}
