package sim

import (
	"math"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// maxCells bounds the memory of a machine: locations, slots and counters.
const maxCells = 1 << 28

// step is an ir.Step with numbers in place of names, across all ranks. Numbers of
// connections and steps are None where there are none.
type step struct {
	kind               ir.StepKind
	exchange           bool // Direct: with the step after it
	src, dst           int32
	count              int32
	tb                 int32
	in, out            int32 // connections
	inFirst, outFirst  int32 // number of its first message there
	mate               int32 // of a receive: the send that belongs to it
	to                 int32 // of a send: the receive that belongs to it
	depStart, depEnd   int32 // of Machine.deps
	waiting, waitingTo int32 // of Machine.waiters: thread blocks that wait for it
}

// block is a thread block: of steps[first:end], or of a one-sided program's virtual
// operations first to end.
type block struct {
	rank       ir.Rank
	tb         int32
	first, end int32
}

// rankPlace says where the locations and thread blocks of a rank begin.
type rankPlace struct {
	base           int32 // input, output, scratch
	sizes          [3]int32
	firstTB, endTB int32
}

// conn is a connection; sends and receives are its steps in order.
type conn struct {
	name             Conn
	sender, receiver int32 // thread blocks
	sends, receives  []int32
	messages         int32
	depth, width     int32 // of its ring: messages, and chunks in each
	ring             int32 // cell of its first slot
}

func bad(pos diag.Pos, code, format string, args ...any) *diag.Message {
	return diag.Errorf(pos, code, "stepping: "+format, args...)
}

// frame checks what stands around the steps, and lays out the ranks' memory.
func (m *Machine) frame() error {
	p := m.p
	if p == nil || p.Spec == nil || p.Coll == nil {
		return bad(diag.Pos{}, "bad-program", "the program doesn't say which collective it computes")
	}
	if err := p.Validate(); err != nil {
		return err
	}
	cells := int32(0)
	for r := range p.GPUs {
		g := &p.GPUs[r]
		in, out := p.Coll.InputChunks(ir.Rank(r)), p.Coll.OutputChunks(ir.Rank(r))
		if g.Input != in || g.Output != out {
			return bad(diag.Pos{}, "bad-program", "rank %d declares %d input and %d output chunks, %s has %d and %d there",
				r, g.Input, g.Output, p.Coll, in, out)
		}
		m.ranks = append(m.ranks, rankPlace{base: cells, sizes: [3]int32{in, out, g.Scratch}})
		if total := int64(cells) + int64(in) + int64(out) + int64(g.Scratch); total > maxCells {
			return bad(diag.Pos{}, "too-large", "the program's buffers have more than %d chunks", maxCells)
		}
		cells += in + out + g.Scratch
	}
	m.nLocs = cells
	return nil
}

// loc is the cell of a location under its canonical name.
func (m *Machine) loc(r ir.Rank, buf ir.BufferID, index int32) int32 {
	buf, index = m.p.Coll.Canon(r, buf, index)
	p := &m.ranks[r]
	for b := range buf {
		index += p.sizes[b]
	}
	return p.base + index
}

// nameOf is the canonical name of a location's cell.
func (m *Machine) nameOf(cell int32) ir.Loc {
	low, high := 0, len(m.ranks) // the last rank whose base is not above
	for high-low > 1 {
		if mid := (low + high) / 2; m.ranks[mid].base <= cell {
			low = mid
		} else {
			high = mid
		}
	}
	p := &m.ranks[low]
	cell -= p.base
	b := ir.Input
	for b < ir.FirstScratch && cell >= p.sizes[b] {
		cell -= p.sizes[b]
		b++
	}
	return ir.Loc{Rank: ir.Rank(low), Buf: b, Index: cell}
}

// flatten numbers thread blocks, steps and connections of a program of steps.
func (m *Machine) flatten() error {
	f := &flattener{m: m, conns: map[Conn]int32{}}
	for r := range m.p.GPUs {
		m.ranks[r].firstTB = int32(len(m.tbs))
		for t := range m.p.GPUs[r].TBs {
			tb := &m.p.GPUs[r].TBs[t]
			b := block{rank: ir.Rank(r), tb: int32(t), first: int32(len(m.steps))}
			for s := range tb.Steps {
				if err := f.step(ir.Rank(r), int32(t), int32(s), &tb.Steps[s]); err != nil {
					return err
				}
			}
			b.end = int32(len(m.steps))
			m.tbs = append(m.tbs, b)
		}
		m.ranks[r].endTB = int32(len(m.tbs))
	}
	f.depend()
	for c := range m.conns {
		if err := f.pair(int32(c)); err != nil {
			return err
		}
	}
	return nil
}

type flattener struct {
	m     *Machine
	conns map[Conn]int32
}

// step checks one step on its own and appends it.
func (f *flattener) step(r ir.Rank, t, i int32, st *ir.Step) error {
	m := f.m
	wrong := func(code, format string, args ...any) error {
		return bad(m.p.Pos(st.Pos), code, "rank %d tb %d step %d (%v): "+format, append([]any{r, t, i, st.Kind}, args...)...)
	}
	if len(m.steps) == math.MaxInt32/4 {
		return wrong("too-large", "more than %d steps", math.MaxInt32/4)
	}
	if st.Kind == ir.Nop && st.Count != 0 || st.Kind != ir.Nop && st.Count < 1 {
		return wrong("bad-step", "a count of %d chunks", st.Count)
	}
	s := step{kind: st.Kind, count: st.Count, tb: int32(len(m.tbs)), src: ir.None, dst: ir.None,
		in: ir.None, out: ir.None, mate: ir.None, to: ir.None}
	s.exchange = m.p.Direct() && m.p.GPUs[r].TBs[t].Exchanges(i)
	place := func(what string, at ir.Place, cell *int32) error {
		if at.Buf < 0 || at.Index < 0 || int64(at.Index)+int64(st.Count) > int64(m.ranks[r].sizes[at.Buf]) {
			return wrong("bounds", "the %s lies outside of the rank's buffers", what)
		}
		*cell = m.loc(r, at.Buf, at.Index)
		return nil
	}
	if st.Kind.ReadsSrc() {
		if err := place("source", st.Src, &s.src); err != nil {
			return err
		}
	}
	if st.Kind.WritesDst() {
		if err := place("destination", st.Dst, &s.dst); err != nil {
			return err
		}
	}
	if err := f.waits(r, t, i, st, wrong); err != nil {
		return err
	}
	if err := f.connect(r, st, &s, wrong); err != nil {
		return err
	}
	m.steps = append(m.steps, s)
	return nil
}

// waits checks that what a step depends on exists, posts and isn't to come.
func (f *flattener) waits(r ir.Rank, t, i int32, st *ir.Step, wrong func(code, format string, args ...any) error) error {
	tbs := f.m.p.GPUs[r].TBs
	for _, d := range f.m.p.DepsOf(st) {
		switch {
		case d.TB < 0 || int(d.TB) >= len(tbs) || d.Step < 0 || int(d.Step) >= len(tbs[d.TB].Steps):
			return wrong("bad-dependency", "waits for tb %d step %d, which doesn't exist", d.TB, d.Step)
		case d.TB == t && d.Step >= i:
			return wrong("bad-dependency", "waits for step %d of its own thread block, which comes no earlier", d.Step)
		case !tbs[d.TB].Steps[d.Step].Post:
			return wrong("bad-dependency", "waits for tb %d step %d, which doesn't post", d.TB, d.Step)
		}
	}
	return nil
}

// connect finds or makes the connections of a step; each end has one owner.
func (f *flattener) connect(r ir.Rank, st *ir.Step, s *step, wrong func(code, format string, args ...any) error) error {
	m := f.m
	id := int32(len(m.steps))
	end := func(src, dst ir.Rank, own func(*conn) (owner *int32, list *[]int32)) (int32, error) {
		n := ir.Rank(m.p.Coll.Ranks)
		if src < 0 || src >= n || dst < 0 || dst >= n || src == dst || st.Chan < 0 {
			return 0, wrong("bad-step", "no connection goes from rank %d to rank %d on channel %d", src, dst, st.Chan)
		}
		name := Conn{src, dst, st.Chan}
		k, ok := f.conns[name]
		if !ok {
			k = int32(len(m.conns))
			f.conns[name] = k
			m.conns = append(m.conns, conn{name: name, sender: ir.None, receiver: ir.None})
		}
		owner, list := own(&m.conns[k])
		if *owner != ir.None && *owner != s.tb {
			return 0, wrong("connection-owner", "this end of connection %s belongs to tb %d already", name, m.tbs[*owner].tb)
		}
		*owner = s.tb
		*list = append(*list, id)
		return k, nil
	}
	var err error
	if st.Kind.Sends() {
		if s.out, err = end(r, st.SendPeer, func(c *conn) (*int32, *[]int32) { return &c.sender, &c.sends }); err != nil {
			return err
		}
	}
	if st.Kind.Receives() {
		s.in, err = end(st.RecvPeer, r, func(c *conn) (*int32, *[]int32) { return &c.receiver, &c.receives })
	}
	return err
}

// depend numbers dependencies, and lists for every step who waits for it.
func (f *flattener) depend() {
	m := f.m
	for id := range m.steps {
		s := &m.steps[id]
		s.depStart = int32(len(m.deps))
		first := m.ranks[m.tbs[s.tb].rank].firstTB
		for _, d := range m.p.DepsOf(m.irStep(int32(id))) {
			if x := m.tbs[first+d.TB].first + d.Step; m.steps[x].tb != s.tb {
				m.deps = append(m.deps, x)
				m.steps[x].waitingTo++
			}
		}
		s.depEnd = int32(len(m.deps))
	}
	at := int32(0)
	for id := range m.steps {
		s := &m.steps[id]
		s.waiting = at
		at += s.waitingTo
		s.waitingTo = s.waiting
	}
	m.waiters = make([]int32, at)
	for id := range m.steps {
		s := &m.steps[id]
		for _, x := range m.deps[s.depStart:s.depEnd] {
			m.waiters[m.steps[x].waitingTo] = s.tb
			m.steps[x].waitingTo++
		}
	}
}

// pair gives every receive of a connection its send.
func (f *flattener) pair(id int32) error {
	m := f.m
	c := &m.conns[id]
	if len(c.sends) != len(c.receives) {
		at := append(append([]int32(nil), c.sends...), c.receives...)[0]
		return bad(m.posOf(at), "count-mismatch", "connection %s has %d sends and %d receives", c.name, len(c.sends), len(c.receives))
	}
	messages := int64(0)
	for i, x := range c.sends {
		send, recv := &m.steps[x], &m.steps[c.receives[i]]
		switch {
		case send.count != recv.count:
			return bad(m.posOf(c.receives[i]), "count-mismatch", "%s receives %d chunks, of which %s sends %d",
				m.name(c.receives[i]), recv.count, m.name(x), send.count)
		case m.p.Direct() && send.kind == ir.RecvReduceSend && recv.kind.Pulls():
			return bad(m.posOf(x), "no-memory", "%s keeps its sum in registers and %s reduces, so that the message stands in no memory",
				m.name(x), m.name(c.receives[i])).Suggest("store the sum (rrcs), or receive it (r) before it is reduced")
		}
		recv.mate, send.to = x, c.receives[i]
		send.outFirst, recv.inFirst = int32(messages), int32(messages)
		if messages += int64(ir.Messages(send.count, max(m.k, 1))); messages > math.MaxInt32 {
			return bad(m.posOf(x), "too-large", "connection %s has more than %d messages", c.name, math.MaxInt32)
		}
		c.width = max(c.width, min(send.count, m.k))
	}
	c.messages = int32(messages)
	c.depth = min(m.slots, c.messages)
	return nil
}

// irStep is the step of the program that a number stands for.
func (m *Machine) irStep(id int32) *ir.Step {
	b := &m.tbs[m.steps[id].tb]
	return &m.p.GPUs[b.rank].TBs[b.tb].Steps[id-b.first]
}

func (m *Machine) posOf(id int32) diag.Pos { return m.p.Pos(m.irStep(id).Pos) }

// name is how messages call a step.
func (m *Machine) name(id int32) string {
	st := m.irStep(id)
	b := &m.tbs[m.steps[id].tb]
	return At{b.rank, b.tb, id - b.first}.String() + " (" + st.Kind.String() + ")"
}
