package checker

import (
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// flatten numbers everything. It relies on a structure that has been checked.
func (s *structure) flatten() *model {
	p := s.p
	m := &model{
		p:       p,
		steps:   make([]step, 0, s.steps),
		tbs:     make([]block, 0, s.tbs),
		ranks:   make([]rankInfo, len(p.GPUs)),
		deps:    make([]int32, 0, s.deps),
		flagged: p.Protocol == ir.LL || p.Protocol == ir.LL128,
	}
	for r := range p.GPUs {
		g := &p.GPUs[r]
		m.ranks[r] = rankInfo{firstTB: int32(len(m.tbs)), base: m.nLocs,
			input: g.Input, output: g.Output, extra: s.scratch[r]}
		m.nLocs += g.Input + g.Output + s.scratch[r]
		for t := range g.TBs {
			first := int32(len(m.steps))
			tb := int32(len(m.tbs))
			for i := range g.TBs[t].Steps {
				m.add(ir.Rank(r), tb, &g.TBs[t].Steps[i])
			}
			m.tbs = append(m.tbs, block{rank: ir.Rank(r), first: first, end: int32(len(m.steps))})
		}
		m.ranks[r].endTB = int32(len(m.tbs))
	}
	m.addDeps()
	return m
}

func (m *model) add(r ir.Rank, tb int32, st *ir.Step) {
	s := step{kind: st.Kind, count: st.Count, off: m.touched, tb: tb, src: ir.None, dst: ir.None,
		sendConn: ir.None, recvConn: ir.None, mate: ir.None}
	if st.Kind.ReadsSrc() {
		s.src = m.loc(r, st.Src)
	}
	if st.Kind.WritesDst() {
		s.dst = m.loc(r, st.Dst)
	}
	m.touched += st.Count
	m.maxCount = max(m.maxCount, st.Count)
	m.steps = append(m.steps, s)
}

// addDeps numbers the dependencies on other thread blocks; those on the own one
// are program order.
func (m *model) addDeps() {
	for id := range m.steps {
		s := &m.steps[id]
		first := m.ranks[m.tbs[s.tb].rank].firstTB
		s.depStart = int32(len(m.deps))
		for _, d := range m.p.DepsOf(m.irStep(int32(id))) {
			if first+d.TB != s.tb {
				m.deps = append(m.deps, m.tbs[first+d.TB].first+d.Step)
			}
		}
		s.depEnd = int32(len(m.deps))
	}
}

type connKey struct {
	src, dst ir.Rank
	channel  int32
}

// claimed is an end of a connection and a thread block that wanted it in vain.
type claimed struct {
	conn, tb int32
	verb     string
}

// connector gives connections their numbers and owners.
type connector struct {
	m     *model
	f     *findings
	ids   map[connKey]int32
	clash []bool           // of a connection: two owners at one end
	told  map[claimed]bool // ends that were reported as taken
}

// connect finds the connections, their owners and which send belongs to which
// receive.
func (m *model) connect(f *findings) {
	c := &connector{m: m, f: f, ids: map[connKey]int32{}}
	for tb := range m.tbs {
		c.block(int32(tb))
	}
	c.pair()
}

// block claims what one thread block uses, and what it declares: the runtimes
// keep a connection's position in the thread block, so even an owner that never
// sends writes a stale position back.
func (c *connector) block(tb int32) {
	b := c.m.tbs[tb]
	t := tb - c.m.ranks[b.rank].firstTB
	decl := &c.m.p.GPUs[b.rank].TBs[t]
	if decl.Send != ir.None {
		c.send(tb, c.id(connKey{b.rank, decl.Send, decl.Chan}), ir.None)
	}
	if decl.Recv != ir.None {
		c.recv(tb, c.id(connKey{decl.Recv, b.rank, decl.Chan}), ir.None)
	}
	var lastSend, lastRecv connKey // most thread blocks have one of each
	sendID, recvID := int32(ir.None), int32(ir.None)
	for i := range decl.Steps {
		st := &decl.Steps[i]
		s := &c.m.steps[b.first+int32(i)]
		if st.Kind.Sends() {
			if k := (connKey{b.rank, st.SendPeer, st.Chan}); sendID == ir.None || k != lastSend {
				lastSend, sendID = k, c.id(k)
				c.send(tb, sendID, b.first+int32(i))
			}
			s.sendConn = sendID
			c.m.conns[sendID].sends++
		}
		if st.Kind.Receives() {
			if k := (connKey{st.RecvPeer, b.rank, st.Chan}); recvID == ir.None || k != lastRecv {
				lastRecv, recvID = k, c.id(k)
				c.recv(tb, recvID, b.first+int32(i))
			}
			s.recvConn = recvID
			c.m.conns[recvID].recvs++
		}
	}
}

func (c *connector) id(k connKey) int32 {
	id, ok := c.ids[k]
	if !ok {
		id = int32(len(c.m.conns))
		c.ids[k] = id
		c.m.conns = append(c.m.conns, conn{src: k.src, dst: k.dst, channel: k.channel,
			sender: ir.None, receiver: ir.None})
		c.clash = append(c.clash, false)
	}
	return id
}

func (c *connector) send(tb, id, at int32) {
	c.claim(tb, id, at, "sends on", &c.m.conns[id].sender)
}

func (c *connector) recv(tb, id, at int32) {
	c.claim(tb, id, at, "receives on", &c.m.conns[id].receiver)
}

func (c *connector) claim(tb, id, at int32, verb string, owner *int32) {
	if *owner == ir.None || *owner == tb {
		*owner = tb
		return
	}
	c.clash[id] = true
	// A thread block that declares an end and uses it claims it more than once.
	told := claimed{id, tb, verb}
	if c.told[told] {
		return
	}
	if c.told == nil {
		c.told = map[claimed]bool{}
	}
	c.told[told] = true
	if !c.f.admit(CodeConnectionOwner) {
		return
	}
	m := c.m
	b := m.tbs[tb]
	var pos diag.Pos
	if at != ir.None {
		pos = m.pos(at)
	}
	first := m.ranks[b.rank].firstTB
	c.f.add(diag.Errorf(pos, CodeConnectionOwner, "rank %d: tb %d %s the %s, which belongs to tb %d already",
		b.rank, tb-first, verb, &m.conns[id], *owner-first).
		Suggest("give one of them another channel, or do both in one thread block"))
}

// pair gives every receive its send: the k-th of both ends of a connection.
func (c *connector) pair() {
	m := c.m
	total := int32(0)
	for i := range m.conns {
		m.conns[i].firstSend = total
		total += m.conns[i].sends
	}
	sends := make([]int32, total)
	seen := make([]int32, len(m.conns))
	for id := range m.steps {
		if k := m.steps[id].sendConn; k != ir.None {
			sends[m.conns[k].firstSend+seen[k]] = int32(id)
			seen[k]++
		}
	}
	clear(seen)
	for id := range m.steps {
		s := &m.steps[id]
		k := s.recvConn
		if k == ir.None || seen[k] == ir.None || c.clash[k] {
			continue
		}
		if seen[k] >= m.conns[k].sends {
			continue // the numbers differ: reported below
		}
		s.mate = sends[m.conns[k].firstSend+seen[k]]
		seen[k]++
		if m.steps[s.mate].count != s.count {
			c.mismatch(s.mate, int32(id), seen[k]-1)
			seen[k] = ir.None
		}
	}
	for k := range m.conns {
		if n := &m.conns[k]; n.sends != n.recvs && !c.clash[k] && seen[k] != ir.None {
			c.unbalanced(n, sends)
		}
	}
}

func (c *connector) mismatch(send, recv, nth int32) {
	if !c.f.admit(CodeCountMismatch) {
		return
	}
	m := c.m
	c.f.add(diag.Errorf(m.pos(recv), CodeCountMismatch, "%s: step %d of it sends %s, but is received as %d",
		&m.conns[m.steps[send].sendConn], nth, plural(int(m.steps[send].count), "chunk"), m.steps[recv].count).
		Note(m.pos(send), "sent by %s", m.name(send)).
		Note(m.pos(recv), "received by %s", m.name(recv)).
		Suggest("both ends must use the same sequence of counts, since a message holds as many chunks as fit"))
}

func (c *connector) unbalanced(n *conn, sends []int32) {
	if !c.f.admit(CodeCountMismatch) {
		return
	}
	m := c.m
	msg := diag.Errorf(diag.Pos{}, CodeCountMismatch, "%s: %s, %s", n,
		plural(int(n.sends), "send"), plural(int(n.recvs), "receive"))
	if n.sends > n.recvs {
		extra := sends[n.firstSend+n.recvs]
		msg.Pos = m.pos(extra)
		msg.Note(m.pos(extra), "%s is received by no one", m.name(extra))
	} else if s := c.firstUnpaired(n); s != ir.None {
		msg.Pos = m.pos(s)
		msg.Note(m.pos(s), "%s receives what no one sends", m.name(s))
	}
	c.f.add(msg)
}

// firstUnpaired is the first receive on n that found no send.
func (c *connector) firstUnpaired(n *conn) int32 {
	b := c.m.tbs[n.receiver]
	for s := b.first; s < b.end; s++ {
		if k := c.m.steps[s].recvConn; k != ir.None && &c.m.conns[k] == n && c.m.steps[s].mate == ir.None {
			return s
		}
	}
	return ir.None
}
