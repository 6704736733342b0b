package compiler

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// planConn is a connection of the two-sided program, between two blocks.
type planConn struct{ src, dst, channel int32 }

// planBlock is a thread block of the plan.
type planBlock struct {
	rank    int32
	column  int32 // number on its rank
	batches []int32
	pos     ir.PosID
	ready   []int32 // connections whose sender waits for this kernel to begin
	ended   []int32 // connections whose receiver's kernel has to have begun before this one ends
}

// match pairs the k-th send of each connection with its k-th receive.
func (x *export) match() error {
	type ends struct{ sends, recvs []int32 }
	conns := map[connKey]*ends{}
	at := func(k connKey) *ends {
		c := conns[k]
		if c == nil {
			c = &ends{}
			conns[k] = c
		}
		return c
	}
	for i := range x.nodes {
		n := &x.nodes[i]
		if n.step.Kind.Sends() {
			c := at(connKey{ir.Rank(n.rank), n.step.SendPeer, n.step.Chan})
			c.sends = append(c.sends, int32(i))
		}
		if n.step.Kind.Receives() {
			c := at(connKey{n.step.RecvPeer, ir.Rank(n.rank), n.step.Chan})
			c.recvs = append(c.recvs, int32(i))
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(conns), connKey.compare) {
		c := conns[k]
		if len(c.sends) != len(c.recvs) {
			return diag.Errorf(diag.Pos{}, "plan-connection", "the connection from rank %d to rank %d on channel %d has %d sends and %d receives",
				k.src, k.dst, k.channel, len(c.sends), len(c.recvs)).Suggest("check the program first")
		}
		for m, s := range c.sends {
			r := c.recvs[m]
			a, b := &x.nodes[s], &x.nodes[r]
			switch {
			case a.tb != x.nodes[c.sends[0]].tb || b.tb != x.nodes[c.recvs[0]].tb:
				return diag.Errorf(x.p.Pos(a.step.Pos), "plan-connection", "the connection from rank %d to rank %d on channel %d has several thread blocks at one end", k.src, k.dst, k.channel)
			case a.step.Count != b.step.Count:
				return diag.Errorf(x.p.Pos(a.step.Pos), "plan-connection", "message %d from rank %d to rank %d on channel %d is sent with %d chunks and received with %d",
					m, k.src, k.dst, k.channel, a.step.Count, b.step.Count).Suggest("check the program first")
			}
			a.sendTo, b.recvFrom = r, s
		}
	}
	x.connect()
	return nil
}

// connect lists the connections between blocks.
func (x *export) connect() {
	number := map[planConn]int32{}
	for i := range x.nodes {
		n := &x.nodes[i]
		if n.sendTo == ir.None {
			continue
		}
		c := planConn{n.block, x.nodes[n.sendTo].block, n.step.Chan}
		k, ok := number[c]
		if !ok {
			k = int32(len(x.conns))
			number[c] = k
			x.conns = append(x.conns, c)
		}
		n.conn = k
	}
}

// each calls f for what node i comes after: the step before it, steps of other
// thread blocks, the sender of its message.
func (x *export) each(i int32, f func(int32)) {
	n := &x.nodes[i]
	if n.before != ir.None {
		f(n.before)
	}
	for _, d := range n.deps {
		f(d)
	}
	if n.recvFrom != ir.None {
		f(n.recvFrom)
	}
}

// sort finds an order in which the steps can run, one after another.
func (x *export) sort() error {
	succ := make([][]int32, len(x.nodes))
	wants := make([]int32, len(x.nodes))
	for i := range x.nodes {
		x.each(int32(i), func(d int32) {
			succ[d] = append(succ[d], int32(i))
			wants[i]++
		})
	}
	x.topo = make([]int32, 0, len(x.nodes))
	for i, w := range wants {
		if w == 0 {
			x.topo = append(x.topo, int32(i))
		}
	}
	for k := 0; k < len(x.topo); k++ {
		for _, s := range succ[x.topo[k]] {
			if wants[s]--; wants[s] == 0 {
				x.topo = append(x.topo, s)
			}
		}
	}
	if len(x.topo) == len(x.nodes) {
		return nil
	}
	for i, w := range wants {
		if w > 0 {
			n := &x.nodes[i]
			return diag.Errorf(x.p.Pos(n.step.Pos), "plan-deadlock", "rank %d thread block %d can't get past step %d (%s)", n.rank, n.tb, n.at, n.step.Kind).
				Suggest("check the program first")
		}
	}
	return nil
}

// hazards replaces the waits of the two-sided program, where packets carry the
// messages: some of those it left out are implied by messages, which packets
// don't do.
func (x *export) hazards() error {
	if !x.packets {
		return nil
	}
	h := ir.NewHazards(x.p.Spec)
	for k, i := range x.topo {
		n := &x.nodes[i]
		h.Begin(int32(k))
		x.accesses(n, func(l ir.Loc, write bool) {
			if write {
				h.Write(l, 1)
			} else {
				h.Read(l, 1)
			}
		})
		h.End()
	}
	e := h.Edges()
	for k, i := range x.topo {
		n := &x.nodes[i]
		n.deps = nil
		for _, d := range e.Of(int32(k)) {
			if x.nodes[x.topo[d]].tb != n.tb {
				n.deps = append(n.deps, x.topo[d])
			}
		}
	}
	return nil
}

// accesses calls f for every chunk that the step touches, reads first.
func (x *export) accesses(n *node, f func(l ir.Loc, write bool)) {
	s := n.step
	touch := func(p ir.Place, write bool) {
		for c := range s.Count {
			b, i := x.p.Coll.Canon(ir.Rank(n.rank), p.Buf, p.Index+c)
			f(ir.Loc{Rank: ir.Rank(n.rank), Buf: b, Index: i}, write)
		}
	}
	if s.Kind.ReadsSrc() {
		touch(s.Src, false)
	}
	if s.Kind.ReadsDst() {
		touch(s.Dst, false)
	}
	if s.Kind.WritesDst() {
		touch(s.Dst, true)
	}
}

// levels counts blocks passed on the longest way to each step.
func (x *export) levels() error {
	for _, i := range x.topo {
		n := &x.nodes[i]
		x.each(i, func(d int32) {
			l := x.nodes[d].level
			if x.nodes[d].block != n.block {
				l++
			}
			n.level = max(n.level, l)
		})
	}
	x.order = slices.Clone(x.topo)
	slices.SortStableFunc(x.order, func(a, b int32) int { return cmp.Compare(x.nodes[a].level, x.nodes[b].level) })
	return nil
}

// batch is the steps of one block on one level.
type batch struct {
	block, level     int32
	number           int32 // in its block
	nodes            []int32
	from             []int32 // batches of other ranks whose messages it takes
	deps             []int32 // batches of other blocks of the rank that it acquires
	acquire, release []int32 // semaphores
	ops              int     // written
	ready            []int32 // connections whose receiver has to have begun
}

// batch groups the steps. No operation of a plan covers more than coverage of them.
func (x *export) batch() error {
	const coverage = 2 * planOperands
	count := make([]int32, len(x.blocks))
	latest := filled(len(x.blocks), ir.None)
	for _, i := range x.order {
		n := &x.nodes[i]
		if count[n.block]++; count[n.block] > coverage*planOps*planBlocks {
			return x.tooMany(&x.blocks[n.block], "operations", planOps)
		}
		b := latest[n.block]
		if b == ir.None || x.batches[b].level != n.level {
			b = int32(len(x.batches))
			latest[n.block] = b
			block := &x.blocks[n.block]
			x.batches = append(x.batches, batch{block: n.block, level: n.level, number: int32(len(block.batches))})
			block.batches = append(block.batches, b)
		}
		n.batch = b
		x.batches[b].nodes = append(x.batches[b].nodes, i)
		if n.recvFrom != ir.None {
			from := x.nodes[n.recvFrom].batch
			if s := &x.batches[b]; !slices.Contains(s.from, from) {
				s.from = append(s.from, from)
			}
		}
	}
	return nil
}

func (x *export) tooMany(b *planBlock, what string, limit int) error {
	return diag.Errorf(x.p.Pos(b.pos), planLimit, "block %d of rank %d has more %s than MSCCL++'s executor holds, %d", b.column, b.rank, what, limit).
		Suggest("use fewer ranks, fewer chunks, or more instances or channels")
}

// semaphores turns waits for other blocks of the rank into semaphores, one for
// each pair of blocks: the k-th release of one is for the k-th acquire of the
// other. Waits that order, or other waits, imply are left out.
func (x *export) semaphores() error {
	x.sems = make([]int32, len(x.p.GPUs))
	x.clock = make([][]int32, len(x.batches))
	sem := map[[2]int32]int32{}
	for b := range x.batches {
		t := &x.batches[b]
		block := &x.blocks[t.block]
		row := make([]int32, len(x.blockOf[block.rank]))
		if t.number > 0 {
			copy(row, x.clock[block.batches[t.number-1]])
		}
		for _, d := range x.waitsOf(t) {
			from := &x.batches[d]
			if row[x.blocks[from.block].column] > from.number {
				continue
			}
			key := [2]int32{from.block, t.block}
			s, ok := sem[key]
			if !ok {
				s = x.sems[block.rank]
				x.sems[block.rank]++
				sem[key] = s
			}
			t.deps, t.acquire, from.release = append(t.deps, d), append(t.acquire, s), append(from.release, s)
			for c, n := range x.clock[d] {
				row[c] = max(row[c], n)
			}
		}
		row[block.column] = t.number + 1
		x.clock[b] = row
	}
	return nil
}

// waitsOf lists the batches of other blocks that t's steps wait for, latest first.
func (x *export) waitsOf(t *batch) []int32 {
	var on []int32
	wait := func(d int32) {
		if x.nodes[d].block != t.block {
			on = append(on, x.nodes[d].batch)
		}
	}
	for _, i := range t.nodes {
		n := &x.nodes[i]
		for _, d := range n.deps {
			wait(d)
		}
		if n.before != ir.None { // in another part of the block
			wait(n.before)
		}
	}
	slices.Sort(on)
	slices.Reverse(on)
	return slices.Compact(on)
}

// previous is the batch before b in its block, or None.
func (x *export) previous(b int32) int32 {
	t := &x.batches[b]
	if t.number == 0 {
		return ir.None
	}
	return x.blocks[t.block].batches[t.number-1]
}
