package compiler

import (
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// Programs of protocol Direct get thread blocks first and connections after: a thread
// block may have several peers, and a connection is whatever one thread block sends to
// another. Which steps of a rank, an instance and a channel of the script share a
// thread block follows from what they do for one another:
//
//	sum       a group (groups.go)
//	exchange  a send and a receive from the same peer that can be with it
//	hand-out  a group
//	send      what else goes to a peer
//	receive   what else comes from a peer to be stored
//
// Those of one kind with the same peers share one.
type blockMaker struct {
	*groups
	role  []role // by instruction
	peers map[int32]string
	tb    map[blockKey]int32
}

type role uint8

const (
	roleSum role = iota
	roleExchange
	roleHandOut
	roleSend
	roleReceive
	roleLocal
)

// blockKey names a thread block.
type blockKey struct {
	rank     ir.Rank
	instance int32
	channel  int32
	role     role
	peers    string
}

// blocksFirst reports whether thread blocks are made by blockMaker.
func (s *state) blocksFirst() bool {
	return s.direct() && s.manyPeers()
}

// makeBlocks gives every instruction a thread block and every message a
// connection. The order of the units is known.
func (s *state) makeBlocks() error {
	n := len(s.fused.Instrs)
	b := &blockMaker{groups: s.groups, role: make([]role, n), peers: map[int32]string{}, tb: map[blockKey]int32{}}
	s.mate = filled(n, ir.None)
	b.setRoles()
	b.findExchanges()
	b.setHandOuts()
	b.namePeers()
	s.tbs, s.tbOf = nil, filled(n, ir.None)
	for _, i := range s.exec {
		if b.role[i] != roleLocal {
			s.tbOf[i] = b.block(i, b.role[i], b.peers[b.shares(i)])
		} else {
			s.tbOf[i] = b.local(i)
		}
	}
	return s.connect()
}

// setRoles says what every instruction is but for exchanges and hand-outs.
func (b *blockMaker) setRoles() {
	for i := range int32(len(b.role)) {
		in, of := b.instr(i), b.of[i]
		inSum := of != ir.None && b.instr(of).Kind != ir.Send
		switch {
		case inSum, in.Kind.Receives() && in.Kind.Reduces():
			b.role[i] = roleSum
		case in.Kind == ir.Send:
			b.role[i] = roleSend
		case in.Kind.Receives():
			b.role[i] = roleReceive
		default:
			b.role[i] = roleLocal
		}
	}
}

// setHandOuts is for groups of sends of which several are left.
func (b *blockMaker) setHandOuts() {
	left := map[int32]int{}
	for i, of := range b.of {
		if b.role[i] == roleSend && of != ir.None {
			left[of]++
		}
	}
	for i, of := range b.of {
		if b.role[i] == roleSend && left[of] > 1 {
			b.role[i] = roleHandOut
		}
	}
}

// findExchanges pairs sends to a peer with receives from it, the next one either
// way, where both may come when the earlier of them does in the order of the units.
// Between the two there is then no other pair of the thread block, so that the order
// stays one in which each unit finds its steps at the head of their thread blocks.
func (b *blockMaker) findExchanges() {
	type end struct {
		rank, peer ir.Rank
		instance   int32
		channel    int32
	}
	sends, recvs := map[end]int32{}, map[end]int32{} // the newest without a partner
	for _, i := range b.exec {
		in := b.instr(i)
		at := end{in.Rank, ir.None, in.Instance, in.Chan}
		send, recv, ok := i, i, false
		switch b.role[i] {
		case roleSend:
			at.peer = b.fused.SendPeer(ir.InstrID(i))
			if recv, ok = recvs[at]; b.returned(i) != ir.None {
				recv, ok = b.returned(i), true
			}
			sends[at] = i
		case roleReceive:
			at.peer = b.fused.RecvPeer(ir.InstrID(i))
			send, ok = sends[at]
			recvs[at] = i
		}
		if !ok || !b.exchanges(send, recv) {
			continue
		}
		delete(sends, at)
		delete(recvs, at)
		b.role[send], b.role[recv] = roleExchange, roleExchange
		b.mate[send], b.mate[recv] = recv, send
	}
	b.bringTogether()
}

// exchanges reports whether send and recv, of one rank and peer, may arrive
// together when the earlier of them is due, and count as done when both are. What
// they depend on must be done by then and what depends on them must come after,
// with one exception: recv may overwrite what send reads if the peer stores into it
// no earlier than it has read that.
func (s *state) exchanges(send, recv int32) bool {
	if s.returned(send) == recv {
		return true
	}
	due, done := min(s.when[send], s.when[recv]), max(s.when[send], s.when[recv])
	for _, i := range [...]int32{send, recv} {
		for _, d := range s.edges.Of(i) {
			switch {
			case s.fused.Instrs[d].Rank != s.fused.Instrs[i].Rank: // its message
			case d == send:
				if !s.follows(int32(s.fused.Instrs[recv].RecvFrom), int32(s.fused.Instrs[send].SendTo)) {
					return false
				}
			case s.done(d) >= due:
				return false
			}
		}
		for _, v := range s.neededBy[i] {
			if v != recv && s.due(v) <= done {
				return false
			}
		}
	}
	return true
}

// due is where instruction i comes in the order of the units, and done where it has
// ended.
func (s *state) due(i int32) int32 {
	if m := s.mate[i]; m != ir.None {
		return min(s.when[i], s.when[m])
	}
	return s.when[i]
}

func (s *state) done(i int32) int32 {
	if m := s.mate[i]; m != ir.None {
		return max(s.when[i], s.when[m])
	}
	return s.when[i]
}

// bringTogether makes the receive of every exchange follow its send in exec, where
// the earlier of both was.
func (s *state) bringTogether() {
	exec := make([]int32, 0, len(s.exec))
	for _, i := range s.exec {
		mate := s.mate[i]
		switch {
		case mate == ir.None:
			exec = append(exec, i)
		case s.at[i] > s.at[mate]: // stands there already
		case s.fused.Instrs[i].Kind == ir.Recv:
			exec = append(exec, mate, i)
		default:
			exec = append(exec, i, mate)
		}
	}
	s.exec = exec
	for k, i := range exec {
		s.at[i] = int32(k)
	}
}

// returned is the receive of what the step that gets send i sends back, or None:
// one move of data does both.
func (s *state) returned(i int32) int32 {
	if back := s.fused.Instrs[s.fused.Instrs[i].SendTo].SendTo; back != ir.None && s.fused.Instrs[back].Rank == s.fused.Instrs[i].Rank {
		return int32(back)
	}
	return ir.None
}

// follows reports whether instruction i depends on instruction first of its rank,
// along dependencies on that rank, or is the same.
func (s *state) follows(i, first int32) bool {
	rank := s.fused.Instrs[first].Rank
	stack, seen := []int32{i}, map[int32]bool{i: true}
	for len(stack) > 0 && len(seen) < searchLimit {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v == first {
			return true
		}
		for _, p := range s.edges.Of(v) {
			if s.fused.Instrs[p].Rank == rank && s.at[p] >= s.at[first] && !seen[p] {
				seen[p] = true
				stack = append(stack, p)
			}
		}
	}
	return false
}

// namePeers lists the peers of those that share a thread block, those received from
// first.
func (b *blockMaker) namePeers() {
	from, to := map[int32][]ir.Rank{}, map[int32][]ir.Rank{}
	for i := range int32(len(b.role)) {
		f := b.shares(i)
		if p := b.fused.RecvPeer(ir.InstrID(i)); p != ir.None && !slices.Contains(from[f], p) {
			from[f] = append(from[f], p)
		}
		if p := b.fused.SendPeer(ir.InstrID(i)); p != ir.None && !slices.Contains(to[f], p) {
			to[f] = append(to[f], p)
		}
	}
	for i := range int32(len(b.role)) {
		if b.shares(i) == i {
			slices.Sort(from[i])
			slices.Sort(to[i])
			b.peers[i] = fmt.Sprint(from[i], to[i])
		}
	}
}

// shares is the first of those that i shares its thread block with in any case.
func (b *blockMaker) shares(i int32) int32 {
	switch b.role[i] {
	case roleExchange:
		return min(i, b.mate[i])
	case roleSum, roleHandOut:
		if b.of[i] != ir.None {
			return b.of[i]
		}
	}
	return i
}

// block is the thread block of that kind and those peers.
func (b *blockMaker) block(i int32, kind role, peers string) int32 {
	if kind == roleExchange && b.instr(i).Kind == ir.Recv {
		i = b.mate[i]
	}
	in := b.instr(i)
	key := blockKey{in.Rank, in.Instance, in.Chan, kind, peers}
	if t, ok := b.tb[key]; ok {
		return t
	}
	b.tbs = append(b.tbs, threadBlock{rank: in.Rank, send: ir.None, recv: ir.None, instance: in.Instance, hint: ir.None, role: kind})
	t := int32(len(b.tbs) - 1)
	b.tb[key] = t
	return t
}

// local places a local instruction: behind the last one that it waits for, unless
// that would stand between an exchange and the next.
func (b *blockMaker) local(i int32) int32 {
	last := int32(ir.None)
	for _, p := range b.edges.Of(i) {
		if last == ir.None || b.at[p] > b.at[last] {
			last = p
		}
	}
	if last != ir.None && b.role[last] != roleExchange && b.instr(last).Instance == b.instr(i).Instance {
		return b.tbOf[last]
	}
	return b.block(i, roleLocal, "")
}
