package sim

import (
	"fmt"

	"github.com/mscclsh/mscclsh/ir"
)

// bit is what an operation does to bytes from to to of one chunk: it adds up what is
// in the cells of reads and stores it in those of writes.
type bit struct {
	reads, writes []source
	from, to      int64
	raw           bool // as it is, empty packets too
}

// source is a cell; of packets a reader waits for what is empty.
type source struct {
	cell    int32
	packets bool
}

// bits cuts an operation, as far as a turn of a pipeline goes, at chunks.
func (m *oneSided) bits(op *ir.Op, turn int32, unit int64) []bit {
	o := m.p.OneSided
	src, dst := o.Sources(op), o.Destinations(op)
	if len(src) == 0 || len(dst) == 0 {
		return nil
	}
	if reduces(op.Kind) {
		return m.lane(nil, op, src, dst, turn, unit)
	}
	var out []bit
	for i := range dst {
		j := min(i, len(src)-1)
		out = m.lane(out, op, src[j:j+1], dst[i:i+1], turn, unit)
	}
	return out
}

func reduces(k ir.OpKind) bool {
	switch k {
	case ir.OpReduceLocal, ir.OpReduceSend, ir.OpReadReduce, ir.OpReadReduceSend, ir.OpReducePackets,
		ir.OpReduceSendPackets, ir.OpReduceCopyPackets, ir.OpReduceCopySendPackets, ir.OpGroupReduceStore:
		return true
	}
	return false
}

// lane appends the bits of one assignment.
func (m *oneSided) lane(out []bit, op *ir.Op, src, dst []ir.Operand, turn int32, unit int64) []bit {
	skip, n := slice(int64(src[0].Size)*m.size, int64(m.p.OneSided.Alignment), int64(op.Part), int64(max(op.Parts, 1)))
	from, to := int64(0), n
	if unit >= 0 {
		from = min(int64(turn)*unit, n)
		to = min(from+unit, n)
	}
	for from, to = from+skip, to+skip; from < to; {
		chunk := from / m.size
		end := min(to, (chunk+1)*m.size)
		b := bit{from: from - chunk*m.size, to: end - chunk*m.size,
			raw: op.Kind == ir.OpPutPackets && src[0].Packets}
		for i := range src {
			b.reads = m.sources(b.reads, &src[i], int32(chunk))
		}
		for i := range dst {
			b.writes = m.sources(b.writes, &dst[i], int32(chunk))
		}
		out = append(out, b)
		from = end
	}
	return out
}

func (m *oneSided) sources(list []source, a *ir.Operand, chunk int32) []source {
	for _, r := range m.ranksOf(a) {
		list = append(list, source{m.loc(r, a.Buf, a.Index+chunk), a.Packets})
	}
	return list
}

// slice is part k of n bytes in p parts, all multiples of a unit; the first ones take
// the remainder.
func slice(n, unit, k, p int64) (from, length int64) {
	each, rest := n/unit/p, n/unit%p
	from, length = k*each+min(k, rest), each
	if k < rest {
		length++
	}
	return from * unit, length * unit
}

// mostBits is the largest number of bits of an operation of t that waits for packets.
func (m *oneSided) mostBits(t int32) (int64, error) {
	o := m.p.OneSided
	most := int64(0)
	b := &m.tbs[t]
	span := o.GPUs[b.rank].Blocks[b.tb]
	for i := span.Start; i < span.Start+m.count(t); i++ {
		op := &o.Ops[i]
		if op.Kind == ir.OpPipeline || !m.awaitsPackets(op) {
			continue
		}
		n := int64(0)
		for range o.Destinations(op) {
			n += int64(o.Sources(op)[0].Size) + 1
		}
		if most = max(most, n); most > maxCells {
			return 0, bad(m.p.Pos(op.Pos), "too-large", "an operation on more than %d chunks", maxCells)
		}
	}
	return most, nil
}

func (m *oneSided) awaitsPackets(op *ir.Op) bool {
	for _, a := range m.p.OneSided.Sources(op) {
		if a.Packets && op.Kind != ir.OpPutPackets {
			return true
		}
	}
	return false
}

// there reports whether all packets that a bit reads are written.
func (m *oneSided) there(b *bit) bool {
	for _, s := range b.reads {
		if s.packets && !b.raw && !m.values.complete(m.cells[s.cell], b.from, b.to, m.size) {
			return false
		}
	}
	return true
}

// refs is the number of things that an operation waits for one by one.
func (m *oneSided) refs(op *ir.Op) int32 {
	if takes(op.Kind) || op.Kind == ir.OpSemaphoreAcquire {
		return int32(op.Refs.Len())
	}
	return 0
}

// available reports whether the k-th signal or semaphore of an operation is there, and
// its cell: of a signal that of those taken, of a semaphore its value.
func (m *oneSided) available(t int32, op *ir.Op, k int32) (cell int32, there bool) {
	r := m.tbs[t].rank
	n := m.p.OneSided.RefsOf(op)[k]
	if op.Kind == ir.OpSemaphoreAcquire {
		cell = m.semCell + m.sem[r] + n
		return cell, m.cells[cell] > 0
	}
	c := &m.p.OneSided.GPUs[r].Channels[n]
	cell = m.givenCell(c.Peer, c.Pair) + 1
	return cell, m.cells[cell-1] > m.cells[cell]
}

func (m *oneSided) can(t int32) bool {
	op, turn, unit := m.current(t)
	stage := m.cells[m.stage+t]
	if stage < m.refs(op) {
		_, there := m.available(t, op, stage)
		return there
	}
	if op.Kind == ir.OpBarrier {
		return stage == 0 || m.met(t, op)
	}
	if !m.awaitsPackets(op) {
		return true
	}
	bits := m.bits(op, turn, unit)
	for i := range bits {
		if m.cells[m.blocks[t].bits+int32(i)] == 0 && m.there(&bits[i]) {
			return true
		}
	}
	return len(bits) == 0
}

func (m *oneSided) meeting(t int32, op *ir.Op) *meeting {
	return m.barrier[[2]int32{int32(m.tbs[t].rank), m.p.OneSided.RefsOf(op)[0]}]
}

// met reports whether all that t waits for at a barrier have arrived.
func (m *oneSided) met(t int32, op *ir.Op) bool {
	return m.cells[m.meeting(t, op).cell] >= m.cells[m.blocks[t].goal]
}

func (m *oneSided) action(t int32) action {
	a := action{step: m.stepNumber(t, m.at(t)), kind: MoveWhole}
	op, turn, unit := m.current(t)
	fresh := m.cells[m.stage+t] == 0
	if m.awaitsPackets(op) {
		bits := m.bits(op, turn, unit)
		for i := range bits {
			if m.cells[m.blocks[t].bits+int32(i)] != 0 {
				fresh = false
			} else if !m.there(&bits[i]) {
				a.kind = MovePart
			}
		}
	}
	if fresh {
		a.begins = 1
	}
	return a
}

func (m *oneSided) move(t int32) {
	op, turn, unit := m.current(t)
	stage := m.cells[m.stage+t]
	for ; stage < m.refs(op); stage++ {
		cell, there := m.available(t, op, stage)
		if !there {
			m.set(m.stage+t, stage)
			return
		}
		if op.Kind == ir.OpSemaphoreAcquire {
			m.set(cell, m.cells[cell]-1)
		} else {
			m.set(cell, m.cells[cell]+1)
		}
	}
	if op.Kind == ir.OpBarrier && stage == 0 {
		b := m.meeting(t, op)
		n := m.cells[b.cell] + 1
		m.set(b.cell, n)
		m.set(m.blocks[t].goal, (n+b.parts-1)/b.parts*b.parts)
		if !m.met(t, op) {
			m.set(m.stage+t, 1)
			return
		}
	}
	if !m.data(t, op, turn, unit) {
		m.set(m.stage+t, stage)
		return
	}
	m.give(t, op)
	m.set(m.stage+t, 0)
	m.set(m.next+t, m.at(t)+1)
}

// data does what can be done to data, and reports whether that is all.
func (m *oneSided) data(t int32, op *ir.Op, turn int32, unit int64) bool {
	bits := m.bits(op, turn, unit)
	waits := m.awaitsPackets(op)
	all := true
	for i := range bits {
		b := &bits[i]
		done := m.blocks[t].bits + int32(i)
		if waits && m.cells[done] != 0 {
			continue
		}
		if waits && !m.there(b) {
			all = false
			continue
		}
		m.apply(b)
		if waits {
			m.set(done, 1)
		}
	}
	if all && waits {
		for i := range bits {
			m.set(m.blocks[t].bits+int32(i), 0)
		}
	}
	return all
}

func (m *oneSided) apply(b *bit) {
	v := m.cells[b.reads[0].cell]
	for _, s := range b.reads[1:] {
		v = m.values.addParts(v, m.cells[s.cell], m.size)
	}
	if !b.raw && len(b.reads) == 1 {
		v = m.values.copiedParts(v)
	}
	for _, w := range b.writes {
		m.set(w.cell, m.values.replace(m.cells[w.cell], v, b.from, b.to, m.size))
	}
}

// give signals and releases.
func (m *oneSided) give(t int32, op *ir.Op) {
	r := m.tbs[t].rank
	for _, n := range m.p.OneSided.RefsOf(op) {
		switch {
		case gives(op.Kind):
			cell := m.givenCell(r, n)
			m.set(cell, m.cells[cell]+1)
		case op.Kind == ir.OpSemaphoreRelease:
			cell := m.semCell + m.sem[r] + n
			m.set(cell, m.cells[cell]+1)
		}
	}
}

// concerned are the thread blocks of all ranks that an operation reaches.
func (m *oneSided) concerned(t int32, f func(int32)) {
	op, _, _ := m.current(t)
	o := m.p.OneSided
	own := m.tbs[t].rank
	all := func(r ir.Rank) {
		for u := m.ranks[r].firstTB; u < m.ranks[r].endTB; u++ {
			f(u)
		}
	}
	all(own)
	if gives(op.Kind) {
		for _, n := range o.RefsOf(op) {
			all(o.GPUs[own].Channels[n].Peer)
		}
	}
	for _, a := range o.Destinations(op) {
		if !a.Packets {
			continue
		}
		for _, r := range m.ranksOf(&a) {
			if r != own {
				all(r)
			}
		}
	}
}

func (m *oneSided) wait(t int32) Wait {
	op, turn, unit := m.current(t)
	o := m.p.OneSided
	stage := m.cells[m.stage+t]
	r := m.tbs[t].rank
	switch {
	case stage < m.refs(op) && op.Kind == ir.OpSemaphoreAcquire:
		n := o.RefsOf(op)[stage]
		return m.expect(t, WaitSemaphore, fmt.Sprintf("semaphore %d, which is 0", n), r, func(x *ir.Op) bool {
			return x.Kind == ir.OpSemaphoreRelease && has(o.RefsOf(x), n)
		})
	case stage < m.refs(op):
		c := &o.GPUs[r].Channels[o.RefsOf(op)[stage]]
		given := m.cells[m.givenCell(c.Peer, c.Pair)]
		return m.expect(t, WaitSignal, fmt.Sprintf("signal %d of rank %d on its channel %d", given+1, c.Peer, c.Pair), c.Peer,
			func(x *ir.Op) bool { return gives(x.Kind) && has(o.RefsOf(x), c.Pair) })
	case op.Kind == ir.OpBarrier:
		n := o.RefsOf(op)[0]
		missing := m.cells[m.blocks[t].goal] - m.cells[m.meeting(t, op).cell]
		return m.expect(t, WaitBarrier, fmt.Sprintf("%d more at barrier %d", missing, n), r, func(x *ir.Op) bool {
			return x.Kind == ir.OpBarrier && has(o.RefsOf(x), n)
		})
	}
	bits := m.bits(op, turn, unit)
	cell := int32(ir.None)
	for i := range bits {
		if m.cells[m.blocks[t].bits+int32(i)] != 0 {
			continue
		}
		for _, s := range bits[i].reads {
			if s.packets && cell == ir.None && !m.values.complete(m.cells[s.cell], bits[i].from, bits[i].to, m.size) {
				cell = s.cell
			}
		}
	}
	return m.expect(t, WaitPacket, "the packets of "+locName(m.nameOf(cell)), ir.None, func(x *ir.Op) bool {
		for _, a := range o.Destinations(x) {
			for _, q := range m.ranksOf(&a) {
				if first := m.loc(q, a.Buf, a.Index); cell >= first && cell < first+a.Size {
					return true
				}
			}
		}
		return false
	})
}

func has(list []int32, n int32) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}

// expect is a Wait of t for the first operation to come, of a rank or of any, that
// does what it takes.
func (m *oneSided) expect(t int32, kind WaitKind, text string, r ir.Rank, does func(op *ir.Op) bool) Wait {
	w := Wait{Who: m.placeOf(t, m.at(t)), Kind: kind, Text: text}
	for u := range int32(len(m.tbs)) {
		if r != ir.None && m.tbs[u].rank != r {
			continue
		}
		for s := m.at(u); s < m.tbs[u].end; s++ {
			i, _, _ := m.opAt(u, s)
			over := s == m.at(u) && (u == t || kind == WaitBarrier && m.cells[m.stage+u] > 0) // has arrived
			if over || !does(&m.p.OneSided.Ops[i]) {
				continue
			}
			w.For, w.Of = m.placeOf(u, s), m.placeOf(u, m.at(u))
			w.Text += fmt.Sprintf(", to come from %s", m.stepName(w.For))
			return w
		}
	}
	w.None = true
	w.Text += ", which nobody will give"
	return w
}
