package compiler

import (
	"slices"
	"strconv"

	"github.com/mscclsh/mscclsh/ir"
)

// run is the run of order.go: which instructions are done, what is in flight.
type run struct {
	*state
	mode int
	rank []int32 // precedence

	wants  []int32 // dependencies and messages an instruction still waits for
	succ   []int32 // successors of v: succ[succAt[v]:succAt[v+1]]
	succAt []int32
	// Messages of a connection go in one order, by precedence (eager) or as they
	// come (bubble). nextSend and nextRecv chain the instructions at each end; both
	// count among wants.
	nextSend, nextRecv []int32
	lastRecv           []int32 // by connection: receive of the newest message in flight, or None (bubble)

	heap     ranked // ready instructions (serial: heads of ready flows)
	inFlight []int32
	parked   [][]int32 // by connection: sends that wait for a slot
	head     []int32   // first instruction of the flow
	missing  []int32   // by flow head: others of the flow that wait for more than their message
	waiting  []bool    // by flow head: ready, but its flow can't run together yet
	running  int32     // head of the flow that runs together now, or None
	exec     []int32
	load     []int32 // steps a thread block has
	ofRank   [][]int32
	met      int32   // an instruction that ran together with its flow, or None
	mark     []int32 // by thread block: epoch in which apart saw it
	epoch    int32
	flow     []int32
}

// newRun prepares a run; nil says that the channels must be assigned anew, see
// precedence.
func newRun(s *state) *run {
	n := len(s.fused.Instrs)
	r := &run{state: s, mode: s.taken.reorder, met: ir.None, running: ir.None,
		wants: make([]int32, n), nextSend: filled(n, ir.None), nextRecv: filled(n, ir.None),
		inFlight: make([]int32, len(s.conns)), parked: make([][]int32, len(s.conns)), lastRecv: filled(len(s.conns), ir.None),
		head: make([]int32, n), missing: make([]int32, n), waiting: make([]bool, n), exec: make([]int32, 0, n),
		ofRank: make([][]int32, s.fused.Ranks()), load: make([]int32, len(s.tbs)), mark: make([]int32, len(s.tbs))}
	if r.rank = s.precedence(); r.rank == nil {
		return nil
	}
	r.heap.rank = r.rank
	for i := range n {
		in := &s.fused.Instrs[i]
		r.head[i] = int32(i)
		if in.RecvFrom != ir.None {
			r.head[i] = r.head[in.RecvFrom]
		}
		r.wants[i] = int32(len(s.edges.Of(int32(i))))
		if s.sendBy[i] == ir.None && s.recvBy[i] == ir.None && (s.fused.Policy == ir.Auto || in.TB == ir.None) {
			s.tbOf[i] = ir.None // local: placed anew in every run
		}
	}
	r.link()
	if r.mode == eager {
		r.chainMessages()
	}
	for i := range n {
		if r.head[i] != int32(i) && r.wants[i] > 1 {
			r.missing[r.head[i]]++
		}
	}
	for t := range s.tbs {
		r.ofRank[s.tbs[t].rank] = append(r.ofRank[s.tbs[t].rank], int32(t))
	}
	return r
}

// link turns predecessors into successors.
func (r *run) link() {
	n := len(r.wants)
	r.succAt = make([]int32, n+1)
	for _, p := range r.edges.Pred {
		r.succAt[p+1]++
	}
	for i := range n {
		r.succAt[i+1] += r.succAt[i]
	}
	r.succ = make([]int32, len(r.edges.Pred))
	fill := slices.Clone(r.succAt[:n])
	for v := range int32(n) {
		for _, p := range r.edges.Of(v) {
			r.succ[fill[p]] = v
			fill[p]++
		}
	}
}

// chainMessages orders the messages of every connection by precedence.
func (r *run) chainMessages() {
	for k := range r.conns {
		ms := r.conns[k].messages // precedence has sorted them
		for j := 1; j < len(ms); j++ {
			r.nextSend[ms[j-1].send] = ms[j].send
			r.nextRecv[ms[j-1].recv] = ms[j].recv
			r.wants[ms[j].send]++
			r.wants[ms[j].recv]++
		}
	}
}

// all runs everything and reports whether it got to the end.
func (r *run) all() bool {
	if r.mode == serial {
		return r.allSerial()
	}
	for i := range int32(len(r.wants)) {
		if r.wants[i] == 0 {
			r.heap.push(i)
		}
	}
	for len(r.heap.items) > 0 {
		i := r.heap.pop()
		c := r.sendBy[i]
		if c == ir.None {
			r.do(i)
			continue
		}
		m := r.messages(r.fused.Instrs[i].Count)
		switch {
		case m > r.transport.Slots:
			r.waiting[i] = !r.together(i)
		case r.inFlight[c]+m > r.room(i, m):
			r.parked[c] = append(r.parked[c], i)
		default:
			r.do(i)
		}
	}
	return len(r.exec) == len(r.wants)
}

// room is the number of slots that instruction i may fill, its m included.
func (r *run) room(i, m int32) int32 {
	in := &r.fused.Instrs[i]
	if r.mode == bubble && in.RecvFrom == ir.None && r.fused.Instrs[in.SendTo].SendTo != ir.None {
		return max(r.transport.Slots-1, m)
	}
	return r.transport.Slots
}

// do runs instruction i: moves its messages, lets others go on.
func (r *run) do(i int32) {
	in := &r.fused.Instrs[i]
	if r.tbOf[i] == ir.None {
		r.tbOf[i] = r.place(i)
	}
	r.load[r.tbOf[i]]++
	r.exec = append(r.exec, i)
	m := r.messages(in.Count)
	if c := r.sendBy[i]; c != ir.None {
		r.inFlight[c] += m
		r.queue(c, int32(in.SendTo))
	}
	if c := r.recvBy[i]; c != ir.None {
		r.inFlight[c] -= m
		if r.lastRecv[c] == i {
			r.lastRecv[c] = ir.None
		}
		for _, p := range r.parked[c] {
			r.heap.push(p)
		}
		r.parked[c] = r.parked[c][:0]
	}
	for _, v := range r.succ[r.succAt[i]:r.succAt[i+1]] {
		r.satisfy(v)
	}
	if v := r.nextSend[i]; v != ir.None {
		r.satisfy(v)
	}
	if v := r.nextRecv[i]; v != ir.None {
		r.satisfy(v)
	}
}

// queue puts a message behind those in flight on its connection, in the mode in
// which they go as they come: its receive waits for the receive of the one before.
func (r *run) queue(c, recv int32) {
	if r.mode != bubble {
		return
	}
	if last := r.lastRecv[c]; last != ir.None {
		r.nextRecv[last] = recv
		r.wants[recv]++
	}
	r.lastRecv[c] = recv
}

// satisfy tells v that one thing it waits for has happened.
func (r *run) satisfy(v int32) {
	r.wants[v]--
	if r.mode == serial {
		return
	}
	h := r.head[v]
	switch {
	case r.wants[v] == 0 && (h != r.running || v == h):
		r.heap.push(v)
	case r.wants[v] == 1 && v != h:
		if r.missing[h]--; r.missing[h] == 0 && r.waiting[h] {
			r.waiting[h] = false
			r.heap.push(h)
		}
	}
}

// together runs a flow from its head to its end as one, if all of it is ready
// and every instruction has a thread block of its own.
func (r *run) together(head int32) bool {
	if r.missing[head] > 0 {
		return false
	}
	r.flow = r.flowFrom(r.flow[:0], head)
	if !r.apart(r.flow) {
		return false
	}
	for _, i := range r.flow[:len(r.flow)-1] {
		if c := r.sendBy[i]; r.inFlight[c] > 0 { // again when it has drained
			r.parked[c] = append(r.parked[c], head)
			return false
		}
	}
	r.running = head
	for _, i := range r.flow {
		r.do(i)
	}
	r.running = ir.None
	if r.met == ir.None {
		r.met = head
	}
	return true
}

// meets reports whether a flow whose outside dependencies are done can run
// together: nothing in it may wait for another part of it to end.
func (r *run) meets(flow []int32) bool {
	for _, i := range flow[1:] {
		if r.wants[i] > 1 {
			return false
		}
	}
	return r.apart(flow)
}

// apart reports whether the instructions of a flow are on as many thread
// blocks, so that they can be active together.
func (r *run) apart(flow []int32) bool {
	r.epoch++
	for _, i := range flow {
		if r.mark[r.tbOf[i]] == r.epoch {
			return false
		}
		r.mark[r.tbOf[i]] = r.epoch
	}
	return true
}

// place picks the thread block of a local instruction: that of the latest
// instruction it waits for, so that it needs one wait less; without one, the
// least loaded of its instance, then of its rank; a rank without any gets one.
func (r *run) place(i int32) int32 {
	in := &r.fused.Instrs[i]
	best := int32(ir.None)
	for _, p := range r.edges.Of(i) {
		if best == ir.None || r.rank[p] > r.rank[best] {
			best = p
		}
	}
	if best != ir.None && r.ours(r.tbOf[best]) {
		return r.tbOf[best]
	}
	best = ir.None
	for _, t := range r.ofRank[in.Rank] {
		if !r.ours(t) {
			continue
		}
		mine, theirs := r.tbs[t].instance == in.Instance, best != ir.None && r.tbs[best].instance == in.Instance
		if best == ir.None || mine && !theirs || mine == theirs && r.load[t] < r.load[best] {
			best = t
		}
	}
	if best == ir.None {
		r.tbs = append(r.tbs, threadBlock{rank: in.Rank, send: ir.None, recv: ir.None, instance: in.Instance, hint: ir.None})
		best = int32(len(r.tbs) - 1)
		r.ofRank[in.Rank] = append(r.ofRank[in.Rank], best)
		r.load = append(r.load, 0)
		r.mark = append(r.mark, 0)
	}
	return best
}

// ours reports whether the compiler may add to thread block t: not to one that
// the script filled by hand.
func (r *run) ours(t int32) bool { return r.tbs[t].hint == ir.None }

// allSerial runs whole flows one after another, the one with the first rank
// next. A flow is ready when all that its instructions wait for outside of it
// is done.
func (r *run) allSerial() bool {
	n := int32(len(r.wants))
	open := make([]int32, n) // by head: dependencies from outside the flow
	for v := range n {
		for _, p := range r.edges.Of(v) {
			if r.head[p] != r.head[v] {
				open[r.head[v]]++
			}
		}
	}
	for v := range n {
		if r.head[v] == v && open[v] == 0 {
			r.heap.push(v)
		}
	}
	for len(r.heap.items) > 0 {
		head := r.heap.pop()
		r.flow = r.flowFrom(r.flow[:0], head)
		flow := r.flow
		if len(flow) > 1 && r.messages(r.fused.Instrs[head].Count) > r.transport.Slots && !r.meets(flow) {
			continue
		}
		for _, i := range flow {
			r.do(i)
		}
		for _, i := range flow {
			for _, v := range r.succ[r.succAt[i]:r.succAt[i+1]] {
				if h := r.head[v]; h != head {
					if open[h]--; open[h] == 0 {
						r.heap.push(h)
					}
				}
			}
		}
	}
	return len(r.exec) == len(r.wants)
}

// ranked is a binary heap of instructions, least rank first.
type ranked struct {
	rank  []int32
	items []int32
}

func (h *ranked) push(i int32) {
	h.items = append(h.items, i)
	k := len(h.items) - 1
	for k > 0 {
		up := (k - 1) / 2
		if h.rank[h.items[up]] <= h.rank[i] {
			break
		}
		h.items[k] = h.items[up]
		k = up
	}
	h.items[k] = i
}

func (h *ranked) pop() int32 {
	top := h.items[0]
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	n := len(h.items)
	if n == 0 {
		return top
	}
	k := 0
	for {
		child := 2*k + 1
		if child >= n {
			break
		}
		if child+1 < n && h.rank[h.items[child+1]] < h.rank[h.items[child]] {
			child++
		}
		if h.rank[h.items[child]] >= h.rank[last] {
			break
		}
		h.items[k] = h.items[child]
		k = child
	}
	h.items[k] = last
	return top
}

func itoa(n int) string { return strconv.Itoa(n) }
