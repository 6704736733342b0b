package compiler

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// connect makes a connection of every pair of thread blocks with messages between
// them, and gives it the lowest channel that no other of the same ranks has.
func (s *state) connect() error {
	n := len(s.fused.Instrs)
	s.conns, s.sendBy, s.recvBy = nil, filled(n, ir.None), filled(n, ir.None)
	index := map[[2]int32]int32{}
	for _, i := range s.exec {
		in := &s.fused.Instrs[i]
		if in.SendTo == ir.None {
			continue
		}
		to := int32(in.SendTo)
		key := [2]int32{s.tbOf[i], s.tbOf[to]}
		k, ok := index[key]
		if !ok {
			k = int32(len(s.conns))
			index[key] = k
			s.conns = append(s.conns, connection{src: in.Rank, dst: s.fused.Instrs[to].Rank, instance: in.Instance,
				channel: ir.None, from: ir.None, to: ir.None, sendTB: ir.None, recvTB: ir.None})
		}
		c := &s.conns[k]
		c.messages = append(c.messages, message{i, to})
		c.maxCount = max(c.maxCount, in.Count)
		s.sendBy[i], s.recvBy[to] = k, k
	}
	t := newTies(s.conns)
	took := false
	for i := range int32(n) {
		if in, out := s.recvBy[i], s.sendBy[i]; in != ir.None && out != ir.None && !t.tie(in, out) {
			s.withdraw(i)
			took = true
		}
	}
	if took {
		return &retry{"forward"}
	}
	t.number()
	return nil
}

// ties are sets of connections that have one channel, because a step receives from
// one and sends on the other.
type ties struct {
	conns   []connection
	set     sets
	members [][]int32 // of a set
}

func newTies(conns []connection) *ties {
	t := &ties{conns: conns, set: newSets(len(conns)), members: make([][]int32, len(conns))}
	for k := range conns {
		t.members[k] = []int32{int32(k)}
	}
	return t
}

// tie joins the sets of two connections. It can't if two of the same ranks would
// then have one channel.
func (t *ties) tie(a, b int32) bool {
	a, b = t.set.root(a), t.set.root(b)
	if a == b {
		return true
	}
	a, b = min(a, b), max(a, b)
	for _, x := range t.members[a] {
		for _, y := range t.members[b] {
			if t.conns[x].src == t.conns[y].src && t.conns[x].dst == t.conns[y].dst {
				return false
			}
		}
	}
	t.set.join(a, b)
	t.members[a] = append(t.members[a], t.members[b]...)
	t.members[b] = nil
	return true
}

// number gives the sets their channels, instance after instance.
func (t *ties) number() {
	order := make([]int32, len(t.conns))
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return int(t.conns[a].instance) - int(t.conns[b].instance) })
	taken := map[connEnd]bool{}
	of := func(k, channel int32) connEnd {
		return connEnd{src: t.conns[k].src, dst: t.conns[k].dst, channel: channel}
	}
	for _, r := range order {
		c := int32(0)
		for slices.ContainsFunc(t.members[r], func(k int32) bool { return taken[of(k, c)] }) {
			c++
		}
		for _, k := range t.members[r] {
			t.conns[k].channel = c
			taken[of(k, c)] = true
		}
	}
}
