package viz

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// View is how nodes are placed.
type View uint8

// The views.
const (
	Lanes  View = iota // a lane a rank or thread block, columns with time
	Layers             // by depth alone, near to what they are joined to
)

// Sizes of what is drawn, in pixels. The page's script has the same ones.
const (
	charWidth  = 6.7 // of the labels' font
	nodeHeight = 18.0
	rowHeight  = 26.0
	laneGap    = 6.0
	colGap     = 26.0
	gutter     = 128.0 // for the names of lanes, at least
	topMargin  = 46.0  // for the title
	timeWidth  = 1400.0
	maxLabel   = 24 // letters of a label
	rankRadius = 17.0
	nameLeft   = 12.0 // where names of lanes begin
)

// box is where a node is drawn.
type box struct{ x, y, w, h float64 }

// geometry places a picture's nodes.
type geometry struct {
	boxes         []box
	tops          []float64 // of lanes, and the end of the last
	width, height float64
}

// newGeometry places nodes in a view; the topology and runs have only one.
func newGeometry(p *Picture, view View) *geometry {
	g := &geometry{boxes: make([]box, len(p.Nodes))}
	switch {
	case p.Stage == StageTopology:
		g.circle(p)
	case p.Stage == StageTimeline:
		g.lanes(p)
		g.byTime(p)
	case view == Layers:
		g.layers(p)
	default:
		g.lanes(p)
		w, left := p.nodeWidth(Lanes), p.gutter()
		for v := range p.Nodes {
			n := &p.Nodes[v]
			g.boxes[v] = box{left + float64(n.Col)*(w+colGap), g.tops[n.Lane] + float64(n.Row)*rowHeight + (rowHeight-nodeHeight)/2, w, nodeHeight}
		}
		g.width = left + float64(p.Cols)*(w+colGap)
	}
	return g
}

// labelIn is what is written in node v: without lanes, its rank too.
func (p *Picture) labelIn(view View, v int32) string {
	text := p.label(v)
	if view == Layers && p.Stage != StageTopology && p.Stage != StageTimeline {
		text = strconv.Itoa(int(p.Lanes[p.Nodes[v].Lane].Rank)) + ": " + text
	}
	return short(text, maxLabel)
}

// nodeWidth fits the longest label.
func (p *Picture) nodeWidth(view View) float64 {
	longest := 4
	for v := range p.Nodes {
		longest = max(longest, utf8.RuneCountInString(p.labelIn(view, int32(v))))
	}
	return math.Ceil(float64(longest)*charWidth + 10)
}

// gutter has room for the longest name of a lane.
func (p *Picture) gutter() float64 {
	longest := 0
	for i := range p.Lanes {
		longest = max(longest, utf8.RuneCountInString(p.Lanes[i].title()))
	}
	return max(gutter, math.Ceil(nameLeft+charWidth*float64(longest)+8))
}

// title is a lane's name with what there is to say of it.
func (l *Lane) title() string {
	if l.About == "" {
		return l.Name()
	}
	return l.Name() + "  " + l.About
}

// lanes finds where lanes begin. Those of different ranks stand a little apart.
func (g *geometry) lanes(p *Picture) {
	y := topMargin
	for i := range p.Lanes {
		if i > 0 && p.Lanes[i].Rank != p.Lanes[i-1].Rank {
			y += laneGap
		}
		g.tops = append(g.tops, y)
		y += float64(max(p.Lanes[i].Rows, 1)) * rowHeight
	}
	g.tops = append(g.tops, y)
	g.height = y
}

func (g *geometry) byTime(p *Picture) {
	scale, left := timeWidth/float64(max(p.Span, 1)), p.gutter()
	for v := range p.Nodes {
		n := &p.Nodes[v]
		g.boxes[v] = box{left + float64(n.Begin)*scale, g.tops[n.Lane] + float64(n.Row)*rowHeight + (rowHeight-nodeHeight)/2,
			max(float64(n.End-n.Begin)*scale, 1), nodeHeight}
	}
	g.width = left + timeWidth
}

func (g *geometry) layers(p *Picture) {
	w := p.nodeWidth(Layers)
	for v, at := range p.layers() {
		b := box{20 + float64(p.Nodes[v].Depth)*(w+2*colGap), topMargin + float64(at)/spread*rowHeight, w, nodeHeight}
		g.boxes[v] = b
		g.width, g.height = max(g.width, b.x+w), max(g.height, b.y+rowHeight)
	}
}

// circle places ranks around one, from the top on.
func (g *geometry) circle(p *Picture) {
	n := float64(max(len(p.Nodes), 1))
	radius := max(150, n*rankRadius*2.6/(2*math.Pi))
	for v := range p.Nodes {
		a := 2*math.Pi*float64(v)/n - math.Pi/2
		x, y := radius*math.Cos(a), radius*math.Sin(a)
		g.boxes[v] = box{radius + 60 + x - rankRadius, topMargin + radius + 30 + y - rankRadius, 2 * rankRadius, 2 * rankRadius}
	}
	g.width, g.height = 2*radius+120, topMargin+2*radius+60
}
