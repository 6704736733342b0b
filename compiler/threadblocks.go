package compiler

import (
	"context"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// threadBlock is one thread block: at most one peer to send to and one to
// receive from, which is the rule of MSCCL's XML. Native ones may have more, and
// their peers stand on the connections alone.
type threadBlock struct {
	rank       ir.Rank
	send, recv ir.Rank
	instance   int32
	channel    int32 // within the instance
	hint       int32 // the script's number, None for the compiler's own
	role       role  // of those that blockMaker makes
}

// assignThreadBlocks gives every connection end its thread block. Ends that a
// fused step ties share one. A sender's end and a receiver's end of the same
// pair of ranks share one too, so that an all-to-all needs n-1 thread blocks
// and not twice as many, unless a step on them needs more slots than there are:
// sharing would then make the two directions take turns.
func assignThreadBlocks(_ context.Context, s *state) error {
	if s.direct() {
		if err := s.orderUnits(); err != nil {
			return err
		}
	}
	if s.blocksFirst() {
		return s.makeBlocks()
	}
	sendTB, recvTB := filled(len(s.conns), ir.None), filled(len(s.conns), ir.None)
	reverse := map[connEnd]int32{}
	for k := range s.conns {
		c := &s.conns[k]
		sendTB[k], recvTB[k] = c.sendTB, c.recvTB
		reverse[connEnd{c.src, c.dst, c.instance, c.channel, false}] = int32(k)
	}
	for k := range s.conns {
		c := &s.conns[k]
		if sendTB[k] != ir.None {
			continue
		}
		partner := c.from
		if partner == ir.None {
			partner = s.pairOf(reverse, int32(k))
		}
		tb := s.newTB(c.src, c)
		s.tbs[tb].send = c.dst
		sendTB[k] = tb
		if partner != ir.None && recvTB[partner] == ir.None {
			s.tbs[tb].recv = s.conns[partner].src
			recvTB[partner] = tb
		}
	}
	for k := range s.conns {
		if c := &s.conns[k]; recvTB[k] == ir.None {
			tb := s.newTB(c.dst, c)
			s.tbs[tb].recv = c.src
			recvTB[k] = tb
		}
	}
	for i := range s.fused.Instrs {
		switch {
		case s.sendBy[i] != ir.None:
			s.tbOf[i] = sendTB[s.sendBy[i]]
		case s.recvBy[i] != ir.None:
			s.tbOf[i] = recvTB[s.recvBy[i]]
		}
	}
	if s.manyPeers() && !s.direct() {
		s.edges = s.fused.Edges()
		s.groups = s.findGroups()
		s.mergeBlocks()
	}
	return nil
}

// manyPeers reports whether a thread block may have several peers, each of its
// steps a channel of its own.
func (s *state) manyPeers() bool { return s.native() && s.fused.Policy != ir.Manual }

// mergeBlocks makes one thread block of those that the steps of a group are on, so
// that the runtimes can do them in one pass. A step of more messages than there are
// slots stays where it is: it must run together with its peers.
func (s *state) mergeBlocks() {
	recvs, sends := map[int32]int{}, map[int32]int{}
	for i, of := range s.groups.of {
		if s.fused.Instrs[i].Kind == ir.Send {
			sends[of]++
		} else {
			recvs[of]++
		}
	}
	set := newSets(len(s.tbs))
	for i, of := range s.groups.of {
		if of == ir.None || sends[of] < 2 && recvs[of] < 2 || s.tbOf[i] == ir.None || s.tbOf[of] == ir.None ||
			s.messages(s.fused.Instrs[i].Count) > s.transport.Slots {
			continue
		}
		set.join(s.tbOf[i], s.tbOf[of])
	}
	for i, t := range s.tbOf {
		if t != ir.None {
			s.tbOf[i] = set.root(t)
		}
	}
}

func (s *state) newTB(rank ir.Rank, c *connection) int32 {
	s.tbs = append(s.tbs, threadBlock{rank: rank, send: ir.None, recv: ir.None, instance: c.instance, channel: c.channel, hint: ir.None})
	return int32(len(s.tbs) - 1)
}

// pairOf is the connection back from k's destination whose receiving end may
// share a thread block with k's sending end, or None.
func (s *state) pairOf(reverse map[connEnd]int32, k int32) int32 {
	c := &s.conns[k]
	back, ok := reverse[connEnd{c.dst, c.src, c.instance, c.channel, false}]
	if !ok || s.conns[back].to != ir.None || s.conns[back].recvTB != ir.None {
		return ir.None
	}
	if s.direct() { // they would take turns
		return ir.None
	}
	longest := max(c.maxCount, s.conns[back].maxCount)
	if s.messages(longest) > s.transport.Slots {
		pos := s.fused.Pos(s.fused.Instrs[c.messages[0].send].Pos)
		s.note(&diag.Message{Pos: pos, Severity: diag.Info, Code: "threadblocks-apart",
			Text: "sends and receives of a pair of ranks have separate thread blocks: a step of " + plural(int(longest), "chunk") +
				" needs more than " + plural(int(s.transport.Slots), "slot") + ", and in one thread block the two directions would take turns"})
		return ir.None
	}
	return back
}
