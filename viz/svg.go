package viz

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The outline of a large picture has at most so many rows and columns.
const (
	outlineRows   = 64
	outlinePhases = 48
	phaseWidth    = 26.0
	titleWidth    = 8.0 // of a letter of the title
)

// WriteSVG writes p in a view. Of a picture of more nodes than a person can follow
// it writes the outline, ranks by phases.
func WriteSVG(w io.Writer, p *Picture, view View) error {
	s := &svg{out: bufio.NewWriterSize(w, 64<<10), pic: p}
	if len(p.Nodes) > outlined {
		s.outline(newOutline(p, outlineRows, outlinePhases))
	} else {
		s.picture(newGeometry(p, view), view)
	}
	s.out.WriteString("</svg>\n")
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("writing SVG: %w", err)
	}
	return nil
}

// svg writes a drawing; the error of the writer stays in out until its end.
type svg struct {
	out   *bufio.Writer
	pic   *Picture
	notes []string // to be written above what is drawn
}

// num is a length with at most one digit after the point.
func num(x float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
}

// escape makes a text one of XML, which has no room for most control characters,
// however they are written.
func escape(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r != '\n' && (r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text))
}

func (s *svg) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// open begins a drawing with its title.
func (s *svg) open(width, height float64) {
	title := s.pic.Name + ": " + s.pic.Stage.String()
	width = math.Ceil(max(width+20, 420, charWidth*float64(len(s.pic.About))+30, titleWidth*float64(utf8.RuneCountInString(title))+30))
	s.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="11">`+"\n",
		num(width), num(height), num(width), num(height))
	s.printf("<title>%s</title>\n<style>\n%s</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n", escape(title), css())
	s.printf(`<text x="12" y="18" class="title">%s</text><text x="12" y="34" class="about">%s</text>`+"\n", escape(title), escape(s.pic.About))
}

func (s *svg) picture(g *geometry, view View) {
	legendTop := g.height + 12
	s.open(max(g.width, s.legendWidth()), legendTop+46)
	s.out.WriteString("<defs>\n")
	_, edges := s.pic.kindsUsed()
	for _, k := range edges {
		if k != EdgeOrder && k != EdgeLink {
			s.printf(`<marker id="m%d" class="e%d" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0L8,4L0,8z"/></marker>`+"\n", k, k)
		}
	}
	s.out.WriteString("</defs>\n")
	if len(g.tops) > 0 {
		s.lanes(g)
	}
	for i := range s.pic.Edges {
		e := &s.pic.Edges[i]
		if e.Kind == EdgeOrder && view == Lanes {
			continue // the lane says it
		}
		s.edge(e, g)
	}
	for v := range s.pic.Nodes {
		s.node(int32(v), g.boxes[v], view)
	}
	for _, text := range s.notes {
		s.out.WriteString(text)
	}
	s.legend(legendTop, view)
}

// lanes draws the lanes behind the nodes, shaded by turns of ranks.
func (s *svg) lanes(g *geometry) {
	shade := false
	for i := range s.pic.Lanes {
		l := &s.pic.Lanes[i]
		height := float64(max(l.Rows, 1)) * rowHeight
		first := i == 0 || s.pic.Lanes[i-1].Rank != l.Rank
		if first {
			shade = !shade
		}
		class := "lane"
		if shade {
			class = "lane odd"
		}
		s.printf(`<rect class="%s" x="4" y="%s" width="%s" height="%s"/>`, class, num(g.tops[i]), num(g.width+4), num(height))
		s.printf(`<text class="name" x="12" y="%s">%s</text>`+"\n", num(g.tops[i]+17), escape(l.title()))
	}
}

// edge draws an arrow: a line where it is short, a bow between ranks of a circle
// or nodes in one column.
func (s *svg) edge(e *Edge, g *geometry) {
	from, to := g.boxes[e.From], g.boxes[e.To]
	var path string
	if s.pic.Stage == StageTopology {
		path = bow(from, to)
	} else {
		path = arrow(from, to, s.pic.Stage == StageTimeline, e.Kind == EdgeMessage)
	}
	marker := ""
	if e.Kind != EdgeOrder && e.Kind != EdgeLink {
		marker = fmt.Sprintf(` marker-end="url(#m%d)"`, e.Kind)
	}
	s.printf(`<path class="e%d" d="%s"%s`, e.Kind, path, marker)
	if s.pic.Stage != StageTopology {
		s.out.WriteString("/>\n")
		return
	}
	if e.Count > 1 {
		s.printf(` style="stroke-width:%s"`, num(thickness(e.Count)))
	}
	source, target := s.pic.Nodes[e.From].ID, s.pic.Nodes[e.To].ID
	s.printf(`><title>%d → %d: %s</title></path>`+"\n", source, target, escape(e.Note))
	if len(s.pic.Edges) <= labeledEdges && e.Kind == EdgeConnection {
		x, y := bowLabel(from, to)
		s.notes = append(s.notes, fmt.Sprintf(`<text class="note" x="%s" y="%s" text-anchor="middle" font-size="9">%d</text>`+"\n", num(x), num(y+3), e.Count))
	}
}

// labeledEdges is the number of connections up to which each has the number of its
// messages beside it.
const labeledEdges = 32

// thickness of a connection grows with its messages.
func thickness(count int32) float64 { return 1.3 + min(3, math.Log2(float64(count))/4) }

// arrow leads from the right of a box to the left of another. In a run a message
// leads from where its sender begins to where its receiver ends, a wait from what
// ends to what waited for it.
func arrow(from, to box, run, message bool) string {
	x1, y1 := from.x+from.w, from.y+from.h/2
	x2, y2 := to.x, to.y+to.h/2
	if run {
		if message {
			x1, x2 = from.x, to.x+to.w
		}
		y1, y2 = from.y+from.h, to.y
		if to.y < from.y {
			y1, y2 = from.y, to.y+to.h
		}
		return fmt.Sprintf("M%s,%sL%s,%s", num(x1), num(y1), num(max(x1, x2)), num(y2))
	}
	lean := max(14, min((x2-x1)/2, 60))
	return fmt.Sprintf("M%s,%sC%s,%s %s,%s %s,%s", num(x1), num(y1), num(x1+lean), num(y1), num(x2-lean), num(y2), num(x2), num(y2))
}

// bow is a curve from circle to circle, bent to one side, so that both directions
// can be told apart.
func bow(from, to box) string {
	x1, y1 := from.x+from.w/2, from.y+from.h/2
	x2, y2 := to.x+to.w/2, to.y+to.h/2
	cx, cy := bend(x1, y1, x2, y2)
	trim := func(x, y, r float64) (float64, float64) { // out of the circle, toward the bend
		d := max(math.Hypot(cx-x, cy-y), 1)
		return x + (cx-x)*r/d, y + (cy-y)*r/d
	}
	x1, y1 = trim(x1, y1, rankRadius)
	x2, y2 = trim(x2, y2, rankRadius+1)
	return fmt.Sprintf("M%s,%sQ%s,%s %s,%s", num(x1), num(y1), num(cx), num(cy), num(x2), num(y2))
}

// bend is the point that a bow leans to.
func bend(x1, y1, x2, y2 float64) (x, y float64) {
	return (x1+x2)/2 - (y2-y1)*0.12, (y1+y2)/2 + (x2-x1)*0.12
}

// bowLabel is where the text of a bow stands: nearer to where it begins, so that
// bows through the middle don't have theirs in one place.
func bowLabel(from, to box) (x, y float64) {
	x1, y1 := from.x+from.w/2, from.y+from.h/2
	x2, y2 := to.x+to.w/2, to.y+to.h/2
	cx, cy := bend(x1, y1, x2, y2)
	const t = 0.3
	return (1-t)*(1-t)*x1 + 2*t*(1-t)*cx + t*t*x2, (1-t)*(1-t)*y1 + 2*t*(1-t)*cy + t*t*y2
}

func (s *svg) node(v int32, b box, view View) {
	n := &s.pic.Nodes[v]
	class := fmt.Sprintf("k%d", n.Kind)
	if n.Stuck {
		class += " stuck"
	}
	label := s.pic.labelIn(view, v)
	s.printf(`<g class="%s"><title>%s</title>`, class, escape(s.tip(v)))
	if s.pic.Stage == StageTopology {
		s.printf(`<circle cx="%s" cy="%s" r="%s"/><text x="%s" y="%s" text-anchor="middle">%s</text></g>`+"\n",
			num(b.x+b.w/2), num(b.y+b.h/2), num(rankRadius), num(b.x+b.w/2), num(b.y+b.h/2+4), escape(label))
		return
	}
	s.printf(`<rect x="%s" y="%s" width="%s" height="%s" rx="3"/>`, num(b.x), num(b.y), num(b.w), num(b.h))
	if room := int((b.w - 6) / charWidth); room >= 3 || len(label) <= room {
		s.printf(`<text x="%s" y="%s">%s</text>`, num(b.x+5), num(b.y+13), escape(short(label, room)))
	}
	s.out.WriteString("</g>\n")
}

// tip is what a node says when one points at it.
func (s *svg) tip(v int32) string {
	text := s.pic.text(v)
	if s.pic.Stage != StageTopology {
		text = s.pic.Lanes[s.pic.Nodes[v].Lane].Name() + ", " + strconv.Itoa(int(s.pic.Nodes[v].ID)) + ": " + text
	}
	if pos := s.pic.Nodes[v].Pos; pos.IsValid() {
		text += "\n" + pos.String()
	}
	return text
}

// short cuts a text to n letters.
func short(text string, n int) string {
	if r := []rune(text); len(r) > n && n > 0 {
		return string(r[:n-1]) + "…"
	}
	return text
}

// legendWidth is the room that the legend takes.
func (s *svg) legendWidth() float64 {
	nodes, edges := s.pic.kindsUsed()
	a, b := 12.0, 12.0
	for _, k := range nodes {
		a += 34 + charWidth*float64(len(kindNames[k]))
	}
	for _, k := range edges {
		b += 50 + charWidth*float64(len(s.edgeName(k)))
	}
	return max(a, b)
}

// legend explains the kinds that there are.
func (s *svg) legend(y float64, view View) {
	nodes, edges := s.pic.kindsUsed()
	x := 12.0
	for _, k := range nodes {
		if k == KindRank {
			continue
		}
		s.printf(`<g class="k%d"><rect x="%s" y="%s" width="16" height="12" rx="2"/></g><text class="about" x="%s" y="%s">%s</text>`+"\n",
			k, num(x), num(y), num(x+21), num(y+10), kindNames[k])
		x += 34 + charWidth*float64(len(kindNames[k]))
	}
	x = 12
	for _, k := range edges {
		if k == EdgeOrder && view == Lanes {
			continue
		}
		s.printf(`<path class="e%d" d="M%s,%sh30"/><text class="about" x="%s" y="%s">%s</text>`+"\n",
			k, num(x), num(y+26), num(x+35), num(y+30), s.edgeName(k))
		x += 50 + charWidth*float64(len(s.edgeName(k)))
	}
}

// edgeName is what the legend calls an edge.
func (s *svg) edgeName(k EdgeKind) string {
	if k == EdgeConnection && len(s.notes) > 0 {
		return "connection, with the number of its messages"
	}
	return edgeNames[k]
}

// outline draws counts by rank and phase.
func (s *svg) outline(o *outline) {
	right := gutter + float64(o.phases)*phaseWidth
	bottom := topMargin + float64(o.ranks)*rowHeight
	s.open(max(right, s.legendWidth()), bottom+62)
	most := int32(1)
	for row := range o.ranks {
		for phase := range o.phases {
			n, _ := o.cell(row, phase)
			most = max(most, n)
		}
	}
	for row := range o.ranks {
		y := topMargin + float64(row)*rowHeight
		s.printf(`<text class="name" x="12" y="%s">%s</text>`+"\n", num(y+17), o.rowName(row, int(s.pic.Ranks)))
		for phase := range o.phases {
			n, kind := o.cell(row, phase)
			if n == 0 {
				continue
			}
			x := gutter + float64(phase)*phaseWidth
			s.printf(`<g class="k%d" opacity="%s"><title>%s</title><rect x="%s" y="%s" width="%s" height="%s"/></g>`, kind,
				strconv.FormatFloat(0.25+0.75*float64(n)/float64(most), 'f', 2, 64),
				plural(int(n), "step")+", most of them: "+kindNames[kind], num(x), num(y+2), num(phaseWidth-2), num(rowHeight-4))
			s.printf(`<text class="about" x="%s" y="%s" text-anchor="middle" font-size="9">%s</text>`+"\n", num(x+phaseWidth/2-1), num(y+17), thousands(n))
		}
	}
	s.printf(`<text class="about" x="12" y="%s">%s: an outline, ranks by phases of %s; the page (HTML) has each one</text>`+"\n",
		num(bottom+16), plural(len(s.pic.Nodes), "node"), s.phaseName(o))
	s.legend(bottom+28, Lanes)
}

func (s *svg) phaseName(o *outline) string {
	if s.pic.Stage == StageTimeline {
		return duration(o.perPhase)
	}
	return plural(int(o.perPhase), "column")
}

// rowName is the rank, or the ranks, of a row.
func (o *outline) rowName(row, ranks int) string {
	if o.perRow == 1 {
		return "rank " + strconv.Itoa(row)
	}
	return fmt.Sprintf("ranks %d-%d", row*o.perRow, min((row+1)*o.perRow, ranks)-1)
}

// thousands is a count in at most four letters.
func thousands(n int32) string {
	switch {
	case n >= 1_000_000:
		return strconv.Itoa(int(n/1_000_000)) + "M"
	case n >= 1_000:
		return strconv.Itoa(int(n/1_000)) + "k"
	}
	return strconv.Itoa(int(n))
}
