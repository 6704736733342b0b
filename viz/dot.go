package viz

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/mscclsh/mscclsh/ir"
)

// How edges look, in every graph: values and waits solid, reuse of a location
// dashed, messages colored, the order within a thread block dotted.
const (
	messageStyle = ` [color="#1f6feb", penwidth=2]`
	falseStyle   = ` [style=dashed, color=gray50]`
	orderStyle   = ` [style=dotted, arrowhead=none]`
)

// DOTChunks writes the operations of d and their dependencies for Graphviz. An
// operation is drawn at the rank that it writes.
func DOTChunks(w io.Writer, d *ir.ChunkDAG) error {
	if err := d.Validate(); err != nil {
		return err
	}
	g := open(w, d.Spec)
	byRank := make([][]int32, d.Ranks())
	for i := range d.Ops {
		r := d.Ops[i].Dst.Rank
		byRank[r] = append(byRank[r], int32(i))
	}
	for r, ids := range byRank {
		g.begin("  ", fmt.Sprintf("rank%d", r), fmt.Sprintf("rank %d", r))
		for _, i := range ids {
			g.node("    ", "n"+strconv.Itoa(int(i)), d.OpString(ir.OpID(i)), d.Pos(d.Ops[i].Pos).String())
		}
		g.end("  ")
	}
	g.edges(d.Edges())
	return g.close()
}

// DOTInstrs writes the instructions of d, their dependencies and messages for
// Graphviz.
func DOTInstrs(w io.Writer, d *ir.InstrDAG) error {
	if err := d.Validate(); err != nil {
		return err
	}
	g := open(w, d.Spec)
	byRank := make([][]int32, d.Ranks())
	for i := range d.Instrs {
		r := d.Instrs[i].Rank
		byRank[r] = append(byRank[r], int32(i))
	}
	for r, ids := range byRank {
		g.begin("  ", fmt.Sprintf("rank%d", r), fmt.Sprintf("rank %d", r))
		for _, i := range ids {
			label := fmt.Sprintf("%d %s", i, d.InstrString(ir.InstrID(i)))
			g.node("    ", "n"+strconv.Itoa(int(i)), label, d.Pos(d.Instrs[i].Pos).String())
		}
		g.end("  ")
	}
	g.edges(d.Edges())
	return g.close()
}

// DOTProgram writes the steps of p for Graphviz: a box a rank, in it a box a
// thread block; what steps wait for, and the messages of each connection, the
// k-th sent joined to the k-th received.
func DOTProgram(w io.Writer, p *ir.Program) error {
	if err := p.Validate(); err != nil {
		return err
	}
	g := open(w, p.Spec)
	for r := range p.GPUs {
		gpu := &p.GPUs[r]
		g.begin("  ", fmt.Sprintf("rank%d", r), fmt.Sprintf("rank %d: input %d, output %d, scratch %d", r, gpu.Input, gpu.Output, gpu.Scratch))
		for b := range gpu.TBs {
			g.threadBlock(p, ir.Rank(r), int32(b))
		}
		g.end("  ")
	}
	for r := range p.GPUs {
		for b := range p.GPUs[r].TBs {
			g.waits(p, ir.Rank(r), int32(b))
		}
	}
	for _, m := range messages(p) {
		g.edge("  ", m.from.id(), m.to.id(), messageStyle)
	}
	return g.close()
}

// stepAt is the place of one step.
type stepAt struct {
	rank     ir.Rank
	tb, step int32
}

func (s stepAt) id() string { return fmt.Sprintf("s%d_%d_%d", s.rank, s.tb, s.step) }

type message struct{ from, to stepAt }

// messages joins sends to receives: on each connection, a source, a destination
// and a channel, in the order in which steps stand. A step without a partner has
// none. Receives come in order of rank, thread block and step.
func messages(p *ir.Program) []message {
	type connection struct {
		from, to ir.Rank
		channel  int32
	}
	sent := map[connection][]stepAt{}
	each(p, func(at stepAt, s *ir.Step) {
		if s.Kind.Sends() {
			c := connection{at.rank, s.SendPeer, s.Chan}
			sent[c] = append(sent[c], at)
		}
	})
	var list []message
	each(p, func(at stepAt, s *ir.Step) {
		c := connection{s.RecvPeer, at.rank, s.Chan}
		if queue := sent[c]; s.Kind.Receives() && len(queue) > 0 {
			list = append(list, message{queue[0], at})
			sent[c] = queue[1:]
		}
	})
	return list
}

// each calls f for every step, by rank, thread block and step.
func each(p *ir.Program, f func(at stepAt, s *ir.Step)) {
	for r := range p.GPUs {
		for b := range p.GPUs[r].TBs {
			steps := p.GPUs[r].TBs[b].Steps
			for s := range steps {
				f(stepAt{ir.Rank(r), int32(b), int32(s)}, &steps[s])
			}
		}
	}
}

// dot writes a graph; the error of the writer stays in out until close.
type dot struct{ out *bufio.Writer }

func open(w io.Writer, s *ir.Spec) *dot {
	g := &dot{bufio.NewWriterSize(w, 64<<10)}
	fmt.Fprintf(g.out, "digraph %s {\n  rankdir=LR;\n  node [shape=box, fontname=monospace];\n", strconv.Quote(s.Name))
	return g
}

func (g *dot) begin(indent, id, label string) {
	fmt.Fprintf(g.out, "%ssubgraph cluster_%s {\n%s  label=%s;\n", indent, id, indent, strconv.Quote(label))
}

func (g *dot) end(indent string) { fmt.Fprintf(g.out, "%s}\n", indent) }

func (g *dot) node(indent, id, label, pos string) {
	fmt.Fprintf(g.out, "%s%s [label=%s, tooltip=%s];\n", indent, id, strconv.Quote(label), strconv.Quote(pos))
}

func (g *dot) edge(indent, from, to, style string) {
	fmt.Fprintf(g.out, "%s%s -> %s%s;\n", indent, from, to, style)
}

// edges draws dependencies between nodes that are called n and their number.
func (g *dot) edges(e *ir.Edges) {
	for v := range int32(len(e.Start) - 1) {
		kinds := e.KindsOf(v)
		for i, u := range e.Of(v) {
			style := ""
			switch kinds[i] {
			case ir.DepComm:
				style = messageStyle
			case ir.DepAnti, ir.DepOutput:
				style = falseStyle
			}
			g.edge("  ", fmt.Sprintf("n%d", u), fmt.Sprintf("n%d", v), style)
		}
	}
}

func (g *dot) threadBlock(p *ir.Program, r ir.Rank, b int32) {
	tb := &p.GPUs[r].TBs[b]
	label := fmt.Sprintf("tb %d, ch %d", b, tb.Chan)
	if tb.Recv != ir.None {
		label += fmt.Sprintf(", from %d", tb.Recv)
	}
	if tb.Send != ir.None {
		label += fmt.Sprintf(", to %d", tb.Send)
	}
	g.begin("    ", fmt.Sprintf("rank%d_tb%d", r, b), label)
	for s := range tb.Steps {
		at := stepAt{r, b, int32(s)}
		text := fmt.Sprintf("%d %s", s, p.StepString(r, b, int32(s)))
		g.node("      ", at.id(), text, p.Pos(tb.Steps[s].Pos).String())
	}
	g.end("    ")
	for s := 1; s < len(tb.Steps); s++ {
		g.edge("    ", stepAt{r, b, int32(s - 1)}.id(), stepAt{r, b, int32(s)}.id(), orderStyle)
	}
}

// waits draws what the steps of a thread block wait for. Dependencies that name
// no step, as broken imports have, are left out.
func (g *dot) waits(p *ir.Program, r ir.Rank, b int32) {
	gpu := &p.GPUs[r]
	for s := range gpu.TBs[b].Steps {
		for _, d := range p.DepsOf(&gpu.TBs[b].Steps[s]) {
			if d.TB < 0 || int(d.TB) >= len(gpu.TBs) || d.Step < 0 || int(d.Step) >= len(gpu.TBs[d.TB].Steps) {
				continue
			}
			g.edge("  ", stepAt{r, d.TB, d.Step}.id(), stepAt{r, b, int32(s)}.id(), "")
		}
	}
}

func (g *dot) close() error {
	g.out.WriteString("}\n")
	if err := g.out.Flush(); err != nil {
		return fmt.Errorf("writing DOT: %w", err)
	}
	return nil
}
