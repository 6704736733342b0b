package compiler

import (
	"cmp"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// manualTB is what the script's hints say of one thread block, gathered from
// all instructions that name it.
type manualTB struct {
	rank              ir.Rank
	hint, instance    int32
	send, recv        ir.Rank
	sendAt, recvAt    int32 // instruction that set the peer
	group             int32 // union-find parent: thread blocks that must share a channel
	channel, chanFrom int32 // of the group's root; None if open
}

type tbKey struct {
	rank           ir.Rank
	hint, instance int32
}

// connEnd names an end of a connection: the sender's or the receiver's.
type connEnd struct {
	src, dst          ir.Rank
	instance, channel int32
	sender            bool
}

// manual honors sendtb, recvtb and ch, or says what stands in the way: a thread
// block has one peer to send to, one to receive from and one channel, and a
// connection end has one thread block. A thread block without any ch gets the
// lowest channel that collides with no other.
func (f *channelFinder) manual() error {
	var m []manualTB
	byKey := map[tbKey]int32{}
	for i := range f.fused.Instrs {
		in := &f.fused.Instrs[i]
		if in.TB == ir.None {
			continue
		}
		key := tbKey{in.Rank, in.TB, in.Instance}
		t, ok := byKey[key]
		if !ok {
			t = int32(len(m))
			byKey[key] = t
			m = append(m, manualTB{rank: in.Rank, hint: in.TB, instance: in.Instance, send: ir.None, recv: ir.None,
				group: t, channel: ir.None, chanFrom: ir.None})
		}
		f.tbOf[i] = t
		if err := f.setPeers(&m[t], int32(i)); err != nil {
			return err
		}
	}
	if err := f.groupManual(m); err != nil {
		return err
	}
	if err := f.ownManual(m); err != nil {
		return err
	}
	for t := range m {
		f.tbs = append(f.tbs, threadBlock{rank: m[t].rank, send: m[t].send, recv: m[t].recv, instance: m[t].instance,
			channel: max(m[rootOf(m, int32(t))].channel, 0), hint: m[t].hint})
	}
	for i := range f.fused.Instrs {
		if t := f.tbOf[i]; t != ir.None {
			f.want[i] = m[rootOf(m, t)].channel
		}
	}
	return nil
}

func (f *channelFinder) setPeers(t *manualTB, i int32) error {
	if to := f.fused.SendPeer(ir.InstrID(i)); to != ir.None {
		if t.send != ir.None && t.send != to {
			return f.twoPeers(t, "send to", t.send, t.sendAt, to, i)
		}
		t.send, t.sendAt = to, i
	}
	if from := f.fused.RecvPeer(ir.InstrID(i)); from != ir.None {
		if t.recv != ir.None && t.recv != from {
			return f.twoPeers(t, "receive from", t.recv, t.recvAt, from, i)
		}
		t.recv, t.recvAt = from, i
	}
	return nil
}

func (f *channelFinder) twoPeers(t *manualTB, what string, a ir.Rank, ai int32, b ir.Rank, bi int32) error {
	return diag.Errorf(f.posOf(bi), "threadblock-peers", "thread block %d of rank %d would %s ranks %d and %d", t.hint, t.rank, what, a, b).
		Note(f.posOf(ai), "rank %d is here", a).
		Suggest("a thread block has one peer for each direction; use another sendtb or recvtb for one of them")
}

func (f *channelFinder) posOf(i int32) diag.Pos { return f.fused.Pos(f.fused.Instrs[i].Pos) }

// groupManual unites the thread blocks at both ends of every message and gives
// each group the channel that its messages ask for.
func (f *channelFinder) groupManual(m []manualTB) error {
	for i := range f.fused.Instrs {
		if to := f.fused.Instrs[i].SendTo; to != ir.None && f.tbOf[i] != ir.None && f.tbOf[to] != ir.None {
			a, b := rootOf(m, f.tbOf[i]), rootOf(m, f.tbOf[to])
			m[max(a, b)].group = min(a, b)
		}
	}
	for i := range f.fused.Instrs {
		in := &f.fused.Instrs[i]
		if f.tbOf[i] == ir.None || in.Chan == ir.None || in.SendTo == ir.None && in.RecvFrom == ir.None {
			continue
		}
		g := &m[rootOf(m, f.tbOf[i])]
		if g.channel != ir.None && g.channel != in.Chan {
			return diag.Errorf(f.posOf(int32(i)), "threadblock-channel",
				"thread block %d of rank %d would use channels %d and %d", in.TB, in.Rank, g.channel, in.Chan).
				Note(f.posOf(g.chanFrom), "channel %d is here", g.channel).
				Suggest("a thread block has one channel, and so have those it exchanges messages with; use another sendtb or recvtb for one of them")
		}
		g.channel, g.chanFrom = in.Chan, int32(i)
	}
	return nil
}

func rootOf(m []manualTB, t int32) int32 {
	for m[t].group != t {
		m[t].group = m[m[t].group].group
		t = m[t].group
	}
	return t
}

// ownManual gives groups without a channel the lowest free one and refuses two
// thread blocks on one end of a connection.
func (f *channelFinder) ownManual(m []manualTB) error {
	ends := make([][]int32, len(m)) // thread blocks of each root
	for t := range m {
		r := rootOf(m, int32(t))
		ends[r] = append(ends[r], int32(t))
	}
	owner := map[connEnd]int32{}
	for _, open := range []bool{false, true} {
		for r := range m {
			if len(ends[r]) == 0 || (m[r].channel == ir.None) != open {
				continue
			}
			if open {
				m[r].channel = 0
				for f.clash(m, owner, ends[r], m[r].channel) != nil {
					m[r].channel++
				}
			}
			if err := f.clash(m, owner, ends[r], m[r].channel); err != nil {
				return err
			}
			for _, t := range ends[r] {
				for _, e := range m[t].ends(m[r].channel) {
					owner[e] = t
				}
			}
		}
	}
	return nil
}

// ends lists the connection ends that the thread block owns on channel c.
func (t *manualTB) ends(c int32) []connEnd {
	var e []connEnd
	if t.send != ir.None {
		e = append(e, connEnd{t.rank, t.send, t.instance, c, true})
	}
	if t.recv != ir.None {
		e = append(e, connEnd{t.recv, t.rank, t.instance, c, false})
	}
	return e
}

// clash explains the first connection end that a group would share on channel
// c, with others or among its own thread blocks.
func (f *channelFinder) clash(m []manualTB, owner map[connEnd]int32, group []int32, c int32) error {
	own := map[connEnd]int32{}
	for _, t := range group {
		for _, e := range m[t].ends(c) {
			other, taken := owner[e]
			if !taken {
				other, taken = own[e]
			}
			if taken {
				return f.sharedEnd(m, e, other, t)
			}
			own[e] = t
		}
	}
	return nil
}

func (f *channelFinder) sharedEnd(m []manualTB, e connEnd, a, b int32) error {
	if cmp.Compare(m[a].hint, m[b].hint) > 0 {
		a, b = b, a
	}
	what, peer, at := "send to", e.dst, [2]int32{m[a].sendAt, m[b].sendAt}
	if !e.sender {
		what, peer, at = "receive from", e.src, [2]int32{m[a].recvAt, m[b].recvAt}
	}
	return diag.Errorf(f.posOf(at[1]), "connection-owner", "thread blocks %d and %d of rank %d both %s rank %d on channel %d",
		m[a].hint, m[b].hint, m[a].rank, what, peer, e.channel).
		Note(f.posOf(at[0]), "thread block %d is here", m[a].hint).
		Suggest("a connection end belongs to one thread block; give one of them another ch")
}
