package viz

import (
	"fmt"

	"github.com/mscclsh/mscclsh/ir"
)

// Schedule pictures the steps of p on thread blocks, what they wait for, and the
// messages of each connection, the k-th sent joined to the k-th received. Of a
// one-sided program it shows operations, and joins signals to waits and what was
// written to a peer to who reads it there. Programs that are wrong can be
// pictured too: what never runs is marked, with the slots that connections have and
// a message a step.
func Schedule(p *ir.Program) (*Picture, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if p.OneSided != nil {
		return oneSided(p), nil
	}
	s := newSchedule(p)
	s.follow()
	return s.pic, nil
}

// schedule is a picture of a two-sided program in the making.
type schedule struct {
	prog  *ir.Program
	pic   *Picture
	first [][]int32 // node of the first step of a rank's thread block
	at    []stepAt
}

// stepAt is the place of one step.
type stepAt struct {
	rank     ir.Rank
	tb, step int32
}

func newSchedule(p *ir.Program) *schedule {
	s := &schedule{prog: p}
	n := p.Count()
	s.pic = &Picture{Stage: StageSchedule, Name: p.Name, Ranks: p.Ranks(), Nodes: make([]Node, 0, n.Steps)}
	s.pic.About = about(p.Spec) + ", " + plural(n.Steps, "step") + " on " + plural(n.TBs, "thread block")
	s.pic.Sizes = sizes(p)
	for r := range p.GPUs {
		s.first = append(s.first, make([]int32, len(p.GPUs[r].TBs)))
		for b := range p.GPUs[r].TBs {
			s.first[r][b] = int32(len(s.pic.Nodes))
			s.block(ir.Rank(r), int32(b))
		}
		for b := range p.GPUs[r].TBs {
			s.waits(ir.Rank(r), int32(b))
		}
	}
	messages, room := s.messages()
	for _, m := range messages {
		s.pic.Edges = append(s.pic.Edges, Edge{Kind: EdgeMessage, From: m[0], To: m[1]})
	}
	s.pic.levels()
	s.pic.within(room)
	s.pic.alongLanes()
	s.pic.label = func(i int32) string {
		a := s.at[i]
		st := &p.GPUs[a.rank].TBs[a.tb].Steps[a.step]
		return stepLabel(nil, st.Kind, st.Src, st.Dst, st.Count, st.RecvPeer, st.SendPeer)
	}
	s.pic.text = func(i int32) string {
		a := s.at[i]
		return p.StepString(a.rank, a.tb, a.step)
	}
	return s
}

// sizes are those of each rank's buffers, in chunks.
func sizes(p *ir.Program) []string {
	var list []string
	for i := range p.GPUs {
		g := &p.GPUs[i]
		list = append(list, fmt.Sprintf("input %d, output %d, scratch %d", g.Input, g.Output, g.Scratch))
	}
	return list
}

// block adds the lane of a thread block and its steps, joined in their order.
func (s *schedule) block(r ir.Rank, b int32) {
	tb := &s.prog.GPUs[r].TBs[b]
	lane := Lane{Rank: r, Block: b, About: fmt.Sprintf("ch %d", tb.Chan)}
	if tb.Recv != ir.None {
		lane.About += fmt.Sprintf(" ←%d", tb.Recv)
	}
	if tb.Send != ir.None {
		lane.About += fmt.Sprintf(" →%d", tb.Send)
	}
	s.pic.Lanes = append(s.pic.Lanes, lane)
	for i := range tb.Steps {
		v := int32(len(s.pic.Nodes))
		s.at = append(s.at, stepAt{r, b, int32(i)})
		s.pic.Nodes = append(s.pic.Nodes, Node{Kind: kindOf(tb.Steps[i].Kind), Lane: int32(len(s.pic.Lanes) - 1), ID: int32(i), Pos: s.prog.Pos(tb.Steps[i].Pos)})
		if i > 0 {
			s.pic.Edges = append(s.pic.Edges, Edge{Kind: EdgeOrder, From: v - 1, To: v})
		}
	}
}

// waits joins the steps of a thread block to what they wait for. Waits that name no
// step, as broken imports have, are left out.
func (s *schedule) waits(r ir.Rank, b int32) {
	gpu := &s.prog.GPUs[r]
	tb := &gpu.TBs[b]
	for i := range tb.Steps {
		for _, d := range s.prog.DepsOf(&tb.Steps[i]) {
			if d.TB < 0 || int(d.TB) >= len(gpu.TBs) || d.Step < 0 || int(d.Step) >= len(gpu.TBs[d.TB].Steps) {
				continue
			}
			s.pic.Edges = append(s.pic.Edges, Edge{Kind: EdgeWait, From: s.node(r, d.TB, d.Step), To: s.node(r, b, int32(i))})
		}
	}
}

// node is the number of a step.
func (s *schedule) node(r ir.Rank, tb, step int32) int32 { return s.first[r][tb] + step }

// messages joins sends to receives, by the numbers of their nodes: on each
// connection, a source, a destination and a channel, in the order in which steps
// stand. A step without a partner has none. room joins each receive to the send that
// needs the slot which it empties, and to itself what waits for a message or a slot
// that never comes.
func (s *schedule) messages() (list, room [][2]int32) {
	type connection struct {
		from, to ir.Rank
		channel  int32
	}
	sent := map[connection][]int32{}
	for v, a := range s.at {
		st := &s.prog.GPUs[a.rank].TBs[a.tb].Steps[a.step]
		if st.Kind.Sends() {
			c := connection{a.rank, st.SendPeer, st.Chan}
			sent[c] = append(sent[c], int32(v))
		}
	}
	slots := int(s.prog.Transport.Slots) // 0: messages need none
	for v, a := range s.at {
		st := &s.prog.GPUs[a.rank].TBs[a.tb].Steps[a.step]
		c := connection{st.RecvPeer, a.rank, st.Chan}
		queue := sent[c]
		switch {
		case !st.Kind.Receives():
			continue
		case len(queue) == 0:
			room = append(room, [2]int32{int32(v), int32(v)})
			continue
		case slots > 0 && len(queue) > slots:
			room = append(room, [2]int32{int32(v), queue[slots]})
		}
		list = append(list, [2]int32{queue[0], int32(v)})
		sent[c] = queue[1:]
	}
	for _, queue := range sent {
		for i, v := range queue {
			if slots > 0 && i >= slots {
				room = append(room, [2]int32{v, v})
			}
		}
	}
	return list, room
}

// follow finds out what each step moves, by running them in order.
func (s *schedule) follow() {
	moved := int64(0)
	for _, a := range s.at {
		moved += int64(s.prog.GPUs[a.rank].TBs[a.tb].Steps[a.step].Count)
	}
	x := newStepper(programMemory(s.prog), moved)
	if x == nil {
		return
	}
	from := make([]int32, len(s.at))
	for i := range from {
		from[i] = ir.None
	}
	for _, e := range s.pic.Edges {
		if e.Kind == EdgeMessage {
			from[e.To] = e.From
		}
	}
	sent := make([][]int32, len(s.at))
	for _, v := range s.pic.Order {
		a := s.at[v]
		st := &s.prog.GPUs[a.rank].TBs[a.tb].Steps[a.step]
		var got []int32
		if u := from[v]; u != ir.None {
			got, sent[u] = sent[u], nil
		}
		vs := x.step(st.Kind, a.rank, st.Src, st.Dst, st.Count, got)
		if st.Kind.Sends() {
			sent[v] = append([]int32(nil), vs...)
		}
		s.pic.Nodes[v].Moved = s.pic.moves(vs)
	}
	s.pic.Values = x.values()
}
