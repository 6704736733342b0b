package compiler

import (
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// connection is one FIFO: from a rank to a rank on a channel of an instance.
// Channels are numbered within their instance until threadblocks makes them
// global, so that each instance keeps its own.
type connection struct {
	src, dst ir.Rank
	instance int32
	channel  int32
	// A fused step ties the connection it receives from to the one it sends on:
	// both belong to one thread block. from is what the sender's end is tied to,
	// to what the receiver's end is tied to; None if free.
	from, to int32
	// sendTB and recvTB are the thread blocks a manual program gave the ends to.
	sendTB, recvTB int32
	messages       []message
	maxCount       int32
}

// message is the k-th of a connection: the instructions at both ends.
type message struct{ send, recv int32 }

// maxChannels bounds the numbers that ch may name; no runtime has as many.
const maxChannels = 1024

// channelFinder gives flows channels. A flow is a maximal chain of fused
// instructions, from a plain send to a plain receive: as a thread block has one
// channel, so has a flow.
//
// All messages of a connection must stand in one order at both ends. Which one,
// the order pass decides; if the one it prefers crosses messages, channels are
// assigned anew so that the order of the instructions crosses none (strict). That
// is then a run in which no receive waits for a message behind another.
type channelFinder struct {
	*state
	index   map[uint64]int32 // connection by key
	want    []int32          // channel asked for an instruction, or None
	limit   int32            // channels of an instance
	retract bool             // something was taken back: fuse again
}

func assignChannels(_ context.Context, s *state) error {
	n := len(s.fused.Instrs)
	f := &channelFinder{state: s, index: map[uint64]int32{}}
	s.conns = s.conns[:0]
	s.sendBy, s.recvBy = filled(n, ir.None), filled(n, ir.None)
	f.limit = f.channelsPerInstance()
	f.want = make([]int32, n)
	for i := range f.want {
		if f.want[i] = s.fused.Instrs[i].Chan; f.want[i] >= maxChannels {
			return diag.Errorf(f.posOf(int32(i)), "channel-range", "ch: got %d, want less than %d", f.want[i], maxChannels)
		}
	}
	s.tbs, s.tbOf = nil, filled(n, ir.None)
	if s.blocksFirst() { // threadblocks does it
		f.hintUnread()
		return nil
	}
	if s.fused.Policy == ir.Manual {
		if err := f.manual(); err != nil {
			return err
		}
	} else {
		f.hintUnread()
	}
	var flow []int32
	for i := range s.fused.Instrs {
		if in := &s.fused.Instrs[i]; in.SendTo == ir.None || in.RecvFrom != ir.None {
			continue
		}
		flow = s.flowFrom(flow[:0], int32(i))
		if err := f.assign(flow); err != nil {
			return err
		}
	}
	if f.retract {
		return &retry{"forward"}
	}
	return nil
}

// channelsPerInstance shares the target's channels among instances. Plain has
// no limit, but connections cost thread blocks, so it is held to NCCL's 32 too.
func (f *channelFinder) channelsPerInstance() int32 {
	instances := int32(1)
	for i := range f.fused.Instrs {
		instances = max(instances, f.fused.Instrs[i].Instance+1)
	}
	total := f.limits.Channels
	if total == 0 {
		total = 32
	}
	return max(total/instances, 1)
}

// flowFrom appends the instructions of the flow that starts at head.
func (s *state) flowFrom(flow []int32, head int32) []int32 {
	flow = append(flow, head)
	for i := s.fused.Instrs[head].SendTo; i != ir.None; i = s.fused.Instrs[i].SendTo {
		flow = append(flow, int32(i))
	}
	return flow
}

// assign puts a flow on the lowest channel that holds it. Where none does, the
// channel with the fewest obstacles decides which fusions are taken back.
func (f *channelFinder) assign(flow []int32) error {
	asked, ok := f.asked(flow)
	if !ok {
		return nil
	}
	first, last := int32(0), f.limit
	if asked != ir.None {
		first, last = asked, asked+1
	}
	var fewest []int32
	for c := first; c < last; c++ {
		bad := f.obstacles(flow, c)
		if len(bad) == 0 {
			f.use(flow, c)
			return nil
		}
		if fewest == nil || len(bad) < len(fewest) {
			fewest = bad
		}
	}
	took := false
	for _, i := range fewest {
		took = f.takeBack(i) || took
	}
	if !took && !f.retract { // else what is in the way goes with the next round
		return f.refuse(flow, asked)
	}
	return nil
}

// asked is the channel that the script wants for the flow. Two different ones
// can't be joined: the fusion between them is taken back and ok is false.
func (f *channelFinder) asked(flow []int32) (channel int32, ok bool) {
	channel = ir.None
	for _, i := range flow {
		c := f.want[i]
		if c == ir.None || c == channel {
			continue
		}
		if channel != ir.None {
			f.takeBack(i)
			return ir.None, false
		}
		channel = c
	}
	return channel, true
}

// canTakeBack reports whether instruction i is where and what it is because of
// a fusion that has not been taken back yet.
func (s *state) canTakeBack(i int32) bool {
	slot := s.slotOf[i]
	in := &s.fused.Instrs[i]
	if in.Kind.Sends() && in.Kind.Receives() {
		return !s.taken.send[slot]
	}
	return in.Kind.Receives() && s.base.Instrs[slot].RecvFrom == ir.None && !s.taken.delay[slot]
}

// takeBack undoes what made instruction i what it is, and reports whether there
// was anything to undo.
func (f *channelFinder) takeBack(i int32) bool {
	if !f.canTakeBack(i) {
		return false
	}
	f.withdraw(i)
	f.retract = true
	return true
}

// withdraw keeps what made instruction i what it is from being done again.
func (s *state) withdraw(i int32) {
	if s.fused.Instrs[i].Kind.Sends() {
		s.taken.send[s.slotOf[i]] = true
	} else {
		s.taken.delay[s.slotOf[i]] = true
	}
}

// obstacles lists the instructions of the flow that channel c can't hold:
// fused ones whose connections are tied otherwise, and the ends of messages that
// would overtake others.
func (f *channelFinder) obstacles(flow []int32, c int32) []int32 {
	var bad []int32
	in := int32(ir.None)
	for k, i := range flow {
		out := int32(ir.None)
		tied := false
		if k+1 < len(flow) {
			out = f.find(i, c)
			if out != ir.None && f.taken.strict {
				bad = f.overtakes(bad, out, message{i, flow[k+1]})
			}
		}
		if k > 0 && out != ir.None && f.conns[out].from != ir.None && f.conns[out].from != in {
			tied = true
		}
		if k > 0 && k+1 < len(flow) && in != ir.None && f.conns[in].to != ir.None && f.conns[in].to != out {
			tied = true
		}
		if tied || f.foreign(i, in, out) {
			bad = append(bad, i)
		}
		in = out
	}
	return bad
}

// foreign reports whether an end of a connection belongs to another thread
// block than the one the script gives to instruction i.
func (f *channelFinder) foreign(i, in, out int32) bool {
	tb := f.tbOf[i]
	return in != ir.None && f.conns[in].recvTB != tb && (f.conns[in].recvTB != ir.None || tb != ir.None) ||
		out != ir.None && f.conns[out].sendTB != tb && (f.conns[out].sendTB != ir.None || tb != ir.None)
}

// overtakes appends to bad what should be taken back if m would be sent and
// received in another order than a message of the connection: the send that
// moved up or the receive that moved down, of m if it has one, else of the other.
func (f *channelFinder) overtakes(bad []int32, conn int32, m message) []int32 {
	ms := f.conns[conn].messages
	at := f.position(ms, m)
	if at > 0 && ms[at-1].recv > m.recv {
		bad = append(bad, f.culprit(m, ms[at-1]))
	}
	if at < len(ms) && ms[at].recv < m.recv {
		bad = append(bad, f.culprit(m, ms[at]))
	}
	return bad
}

func (f *channelFinder) culprit(m, other message) int32 {
	for _, i := range [...]int32{m.send, m.recv, other.send} {
		if f.canTakeBack(i) {
			return i
		}
	}
	return other.recv
}

func (f *channelFinder) position(ms []message, m message) int {
	if n := len(ms); n == 0 || ms[n-1].send < m.send {
		return n
	}
	at, _ := slices.BinarySearchFunc(ms, m, func(a, b message) int { return int(a.send) - int(b.send) })
	return at
}

// use puts the flow on channel c.
func (f *channelFinder) use(flow []int32, c int32) {
	in := int32(ir.None)
	for k, i := range flow[:len(flow)-1] {
		m := message{i, flow[k+1]}
		out := f.open(m, c)
		if in != ir.None && !f.tie(in, out) { // the flow itself passes here twice, differently
			f.takeBack(i)
			return
		}
		conn := &f.conns[out]
		conn.messages = slices.Insert(conn.messages, f.position(conn.messages, m), m)
		conn.maxCount = max(conn.maxCount, f.fused.Instrs[i].Count)
		f.sendBy[i], f.recvBy[m.recv] = out, out
		in = out
	}
}

// tie makes two connections share the thread block between them, if they can.
func (f *channelFinder) tie(in, out int32) bool {
	a, b := &f.conns[in], &f.conns[out]
	if a.to != ir.None && a.to != out || b.from != ir.None && b.from != in {
		return false
	}
	a.to, b.from = out, in
	return true
}

// key names the connection that instruction i sends on: 20 bits for each rank,
// 14 for the instance, 10 for the channel.
func (f *channelFinder) key(i, c int32) uint64 {
	in := &f.fused.Instrs[i]
	return uint64(in.Rank)<<44 | uint64(f.fused.Instrs[in.SendTo].Rank)<<24 | uint64(in.Instance)<<10 | uint64(c)
}

func (f *channelFinder) find(i, c int32) int32 {
	if k, ok := f.index[f.key(i, c)]; ok {
		return k
	}
	return ir.None
}

// open finds or makes the connection of m on channel c. A new one belongs to
// the thread blocks that the script gives its first message, if it gives any.
func (f *channelFinder) open(m message, c int32) int32 {
	if k := f.find(m.send, c); k != ir.None {
		return k
	}
	in := &f.fused.Instrs[m.send]
	f.conns = append(f.conns, connection{src: in.Rank, dst: f.fused.Instrs[m.recv].Rank, instance: in.Instance,
		channel: c, from: ir.None, to: ir.None, sendTB: f.tbOf[m.send], recvTB: f.tbOf[m.recv]})
	k := int32(len(f.conns) - 1)
	f.index[f.key(m.send, c)] = k
	return k
}

// refuse explains why a flow that has nothing to take back found no channel.
// Without fusion a message stands next to its receive, so only a thread block
// that the script assigned can be in the way.
func (f *channelFinder) refuse(flow []int32, asked int32) error {
	in := &f.fused.Instrs[flow[0]]
	to := f.fused.Instrs[in.SendTo].Rank
	if asked == ir.None {
		return diag.Errorf(f.fused.Pos(in.Pos), "no-channel",
			"no channel of %d is free from rank %d to rank %d: thread blocks assigned by hand own them all", f.limit, in.Rank, to).
			Suggest("give this operation a sendtb and recvtb too")
	}
	return diag.Errorf(f.fused.Pos(in.Pos), "connection-owner",
		"channel %d from rank %d to rank %d belongs to a thread block assigned by hand, which this operation does not name", asked, in.Rank, to).
		Suggest("give it the same sendtb and recvtb, or another ch")
}

// hintUnread says once that thread blocks are only read under the manual policy.
func (f *channelFinder) hintUnread() {
	for i := range f.fused.Instrs {
		if in := &f.fused.Instrs[i]; in.TB != ir.None {
			f.note((&diag.Message{Pos: f.fused.Pos(in.Pos), Severity: diag.Info, Code: "threadblock-unread",
				Text: "sendtb and recvtb are not read: the program's threadblock_policy is auto"}).
				Suggest("pass threadblock_policy = ThreadblockPolicy.manual to have them honored"))
			return
		}
	}
}

// filled is a slice of n times v.
func filled(n int, v int32) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = v
	}
	return s
}
