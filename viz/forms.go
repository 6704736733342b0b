package viz

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
)

// Chunks pictures the operations of d with their dependencies, each in the lane of
// the rank that it writes.
func Chunks(d *ir.ChunkDAG) (*Picture, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	p := newForm(StageChunks, d.Spec, len(d.Ops), "operation")
	m, moved := formMemory(d.Spec), int64(0)
	for i := range d.Ops {
		moved += int64(d.Ops[i].Count)
	}
	var vs, old []int32
	for i := range d.Ops {
		op := &d.Ops[i]
		n := Node{Kind: KindCopy, Lane: int32(op.Dst.Rank), ID: int32(i), Pos: d.Pos(op.Pos)}
		if op.Kind == ir.ChunkReduce {
			n.Kind = KindReduce
		}
		if moved <= maxMoved {
			vs = m.get(vs[:0], op.Src.Rank, ir.Place{Buf: op.Src.Buf, Index: op.Src.Index}, op.Count)
			to := ir.Place{Buf: op.Dst.Buf, Index: op.Dst.Index}
			if op.Kind == ir.ChunkReduce {
				old = m.get(old[:0], op.Dst.Rank, to, op.Count)
				m.add(vs, old)
			}
			m.set(op.Dst.Rank, to, vs)
			n.Moved = p.moves(vs)
		}
		p.Nodes = append(p.Nodes, n)
	}
	if moved <= maxMoved {
		p.Values = m.values
	}
	p.depend(d.Edges())
	p.label = func(i int32) string {
		op := &d.Ops[i]
		word := "copy "
		if op.Kind == ir.ChunkReduce {
			word = "add "
		}
		return word + strconv.Itoa(int(op.Src.Rank)) + "." + place(d.Spec, ir.Place{Buf: op.Src.Buf, Index: op.Src.Index}, op.Count)
	}
	p.text = func(i int32) string { return d.OpString(ir.OpID(i)) }
	p.Order = p.Order[:0]
	for i := range p.Nodes {
		p.Order = append(p.Order, int32(i)) // as the script ran
	}
	return p, nil
}

// Instructions pictures d with its dependencies and messages; stage says whether
// it is what it was before or after fusion.
func Instructions(d *ir.InstrDAG, stage Stage) (*Picture, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	p := newForm(stage, d.Spec, len(d.Instrs), "instruction")
	moved := int64(0)
	for i := range d.Instrs {
		moved += int64(d.Instrs[i].Count)
	}
	x := newStepper(formMemory(d.Spec), moved)
	sent := make([][]int32, len(d.Instrs))
	for i := range d.Instrs {
		in := &d.Instrs[i]
		n := Node{Kind: kindOf(in.Kind), Lane: int32(in.Rank), ID: int32(i), Pos: d.Pos(in.Pos)}
		if x != nil {
			var got []int32
			if in.RecvFrom != ir.None {
				got = sent[in.RecvFrom]
				sent[in.RecvFrom] = nil
			}
			vs := x.step(in.Kind, in.Rank, in.Src, in.Dst, in.Count, got)
			if in.SendTo != ir.None {
				sent[i] = append([]int32(nil), vs...)
			}
			n.Moved = p.moves(vs)
		}
		p.Nodes = append(p.Nodes, n)
	}
	p.Values = x.values()
	p.depend(d.Edges())
	p.label = func(i int32) string {
		in := &d.Instrs[i]
		return stepLabel(d.Spec, in.Kind, in.Src, in.Dst, in.Count, d.RecvPeer(ir.InstrID(i)), d.SendPeer(ir.InstrID(i)))
	}
	p.text = func(i int32) string { return instrText(d, ir.InstrID(i)) }
	return p, nil
}

// newForm is a picture with a lane a rank and no nodes yet.
func newForm(stage Stage, s *ir.Spec, nodes int, what string) *Picture {
	p := &Picture{Stage: stage, Name: s.Name, Ranks: s.Ranks(), Nodes: make([]Node, 0, nodes)}
	p.About = about(s) + ", " + plural(nodes, what)
	for r := range ir.Rank(s.Ranks()) {
		p.Lanes = append(p.Lanes, Lane{Rank: r, Block: ir.None, Rows: 1})
	}
	return p
}

// about is what the stages of a program have in common.
func about(s *ir.Spec) string {
	where := "out of place"
	if s.Coll.InPlace {
		where = "in place"
	}
	return fmt.Sprintf("%s %s, %s, %s", s.Coll, where, plural(int(s.Ranks()), "rank"), s.Protocol)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// depend makes edges of dependencies and places the nodes.
func (p *Picture) depend(e *ir.Edges) {
	for v := range int32(len(p.Nodes)) {
		why := e.KindsOf(v)
		for i, u := range e.Of(v) {
			kind := EdgeTrue
			switch why[i] {
			case ir.DepComm:
				kind = EdgeMessage
			case ir.DepAnti, ir.DepOutput:
				kind = EdgeFalse
			}
			p.Edges = append(p.Edges, Edge{Kind: kind, From: u, To: v})
		}
	}
	p.levels()
	p.inLanes()
}

// moves keeps the values that a node moves, without those that aren't known.
func (p *Picture) moves(vs []int32) ir.Span {
	s := ir.Span{Start: int32(len(p.Moved))}
	for _, v := range vs {
		if v != 0 {
			p.Moved = append(p.Moved, v)
		}
	}
	s.End = int32(len(p.Moved))
	return s
}

// stepper runs two-sided steps on values; nil where there are too many.
type stepper struct {
	*memory
	vs, more []int32
}

func newStepper(m *memory, moved int64) *stepper {
	if moved > maxMoved {
		return nil
	}
	return &stepper{memory: m}
}

func (x *stepper) values() *Values {
	if x == nil {
		return nil
	}
	return x.memory.values
}

// step runs one step with the message that it got, and returns what it moves:
// what it sends, or else what it writes.
func (x *stepper) step(k ir.StepKind, r ir.Rank, src, dst ir.Place, count int32, got []int32) []int32 {
	switch {
	case k == ir.Nop:
		return nil
	case k.Receives():
		x.vs = append(x.vs[:0], got...)
		if k.ReadsSrc() {
			x.more = x.get(x.more[:0], r, src, count)
			x.add(x.vs, x.more)
		}
	default:
		x.vs = x.get(x.vs[:0], r, src, count)
		if k.ReadsDst() {
			x.more = x.get(x.more[:0], r, dst, count)
			x.add(x.vs, x.more)
		}
	}
	if k.WritesDst() {
		x.set(r, dst, x.vs)
	}
	return x.vs
}

func kindOf(k ir.StepKind) Kind {
	switch {
	case k == ir.Nop:
		return KindSync
	case k.Reduces():
		return KindReduce
	case k == ir.Copy:
		return KindCopy
	case k == ir.Send:
		return KindSend
	case k.Sends():
		return KindRelay
	}
	return KindReceive
}

// instrText is an instruction as the text form has it, without its rank, which the
// lane says, and with the ranks of those that it exchanges messages with: the text
// form has only their numbers, which look like ranks here.
func instrText(d *ir.InstrDAG, id ir.InstrID) string {
	in := &d.Instrs[id]
	text := strings.TrimPrefix(d.InstrString(id), "rank "+strconv.Itoa(int(in.Rank))+" ")
	for _, end := range []struct {
		word string
		of   ir.InstrID
	}{{" from ", in.RecvFrom}, {" to ", in.SendTo}} {
		if end.of >= 0 && int(end.of) < len(d.Instrs) {
			number := end.word + strconv.Itoa(int(end.of))
			if i := strings.LastIndex(text, number) + len(number); i >= len(number) { // names of buffers stand before it
				text = text[:i] + " (rank " + strconv.Itoa(int(d.Instrs[end.of].Rank)) + ")" + text[i:]
			}
		}
	}
	return text
}

// place is where count chunks begin, in a few letters: i[3], or i[3]x2.
func place(s *ir.Spec, at ir.Place, count int32) string {
	name := "s"
	switch {
	case at.Buf == ir.Input:
		name = "i"
	case at.Buf == ir.Output:
		name = "o"
	case s != nil:
		name = s.BufferName(at.Buf)
	}
	return counted(name+"["+strconv.Itoa(int(at.Index))+"]", count)
}

func counted(what string, count int32) string {
	if count == 1 {
		return what
	}
	return what + "×" + strconv.Itoa(int(count))
}

// stepLabel is a step in a few letters: what it does, to what, whence and where to.
// A Program's buffers have no names: s is nil.
func stepLabel(s *ir.Spec, k ir.StepKind, src, dst ir.Place, count int32, from, to ir.Rank) string {
	text := k.String()
	switch {
	case k.WritesDst():
		text += " " + place(s, dst, count)
	case k.ReadsSrc():
		text += " " + place(s, src, count)
	}
	if from != ir.None {
		text += " ←" + strconv.Itoa(int(from))
	}
	if to != ir.None {
		text += " →" + strconv.Itoa(int(to))
	}
	return text
}
