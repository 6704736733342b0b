package viz

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/mscclsh/mscclsh/ir"
)

// dotStyles are how edges look for Graphviz: values and waits solid, reuse of a
// location dashed, messages colored, the order within a thread block dotted.
var dotStyles = [edgeKinds]string{
	EdgeTrue:       "",
	EdgeFalse:      ` [style=dashed, color=gray50]`,
	EdgeMessage:    ` [color="#1f6feb", penwidth=2]`,
	EdgeWait:       ` [color="#b35900"]`,
	EdgeOrder:      ` [style=dotted, arrowhead=none]`,
	EdgeConnection: ` [color="#1f6feb", penwidth=2]`,
	EdgeLink:       ` [style=dashed, color=gray50]`,
}

// WriteDOT writes p for Graphviz: a box a rank, in it a box a thread block where
// the picture has them.
func WriteDOT(w io.Writer, p *Picture) error {
	g := &dot{bufio.NewWriterSize(w, 64<<10), p}
	fmt.Fprintf(g.out, "digraph %s {\n  rankdir=LR;\n  node [shape=box, fontname=monospace];\n", strconv.Quote(p.Name))
	nodes := make([][]int32, len(p.Lanes))
	for v := range p.Nodes {
		l := p.Nodes[v].Lane
		nodes[l] = append(nodes[l], int32(v))
	}
	for l := 0; l < len(p.Lanes); {
		l = g.rank(l, nodes)
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		style := dotStyles[e.Kind]
		if e.Note != "" {
			style = fmt.Sprintf(" [label=%s, %s", strconv.Quote(e.Note), style[2:])
		}
		fmt.Fprintf(g.out, "  n%d -> n%d%s;\n", e.From, e.To, style)
	}
	g.out.WriteString("}\n")
	if err := g.out.Flush(); err != nil {
		return fmt.Errorf("writing DOT: %w", err)
	}
	return nil
}

// dot writes a graph; the error of the writer stays in out until its end.
type dot struct {
	out *bufio.Writer
	pic *Picture
}

// rank writes the lanes of one rank from lane l on, and returns the lane after them.
func (g *dot) rank(l int, nodes [][]int32) int {
	r := g.pic.Lanes[l].Rank
	label := fmt.Sprintf("rank %d", r)
	if g.pic.Sizes != nil {
		label += ": " + g.pic.Sizes[r]
	}
	g.begin("  ", fmt.Sprintf("rank%d", r), label)
	for ; l < len(g.pic.Lanes) && g.pic.Lanes[l].Rank == r; l++ {
		lane := &g.pic.Lanes[l]
		if lane.Block == ir.None {
			g.nodes("    ", nodes[l])
			continue
		}
		label := fmt.Sprintf("tb %d", lane.Block)
		if lane.About != "" {
			label += ", " + lane.About
		}
		g.begin("    ", fmt.Sprintf("rank%d_tb%d", r, lane.Block), label)
		g.nodes("      ", nodes[l])
		fmt.Fprintf(g.out, "    }\n")
	}
	fmt.Fprintf(g.out, "  }\n")
	return l
}

func (g *dot) begin(indent, id, label string) {
	fmt.Fprintf(g.out, "%ssubgraph cluster_%s {\n%s  label=%s;\n", indent, id, indent, strconv.Quote(label))
}

func (g *dot) nodes(indent string, list []int32) {
	for _, v := range list {
		label := g.pic.text(v)
		if g.pic.Stage != StageTopology {
			label = strconv.Itoa(int(g.pic.Nodes[v].ID)) + " " + label
		}
		fmt.Fprintf(g.out, "%sn%d [label=%s, tooltip=%s];\n", indent, v, strconv.Quote(label), strconv.Quote(g.pic.Nodes[v].Pos.String()))
	}
}
