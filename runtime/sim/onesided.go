package sim

import (
	"math"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// oneSided are the rules of programs that reach into other ranks' memory. A thread
// block's steps are virtual: its operations, with those of a pipeline as often as the
// pipeline turns. Its stage counts what an operation has waited for. After the thread
// blocks come the signals given and taken of every channel, the semaphores, the
// barriers, and for every thread block which bits of its operation are done.
//
// A chunk can be cut into parts for several thread blocks: values.mixed has what such
// a chunk holds. All chunks are equally large and all ranges begin at chunks, so a
// byte keeps its place within the chunk wherever it goes.
type oneSided struct {
	*Machine
	bytes int64
	size  int64 // bytes of a chunk

	blocks  []oneBlock
	channel []int32 // of a rank: the number of its first channel, over all ranks
	sem     []int32 // of a rank: its first semaphore
	barrier map[[2]int32]*meeting

	signalCell, semCell int32
}

// meeting is a barrier of a rank.
type meeting struct {
	cell  int32 // thread blocks that have arrived
	parts int32
}

// oneBlock is a thread block's operations in order.
type oneBlock struct {
	parts []stretch
	goal  int32 // cell: how many have to arrive at the barrier it is at
	bits  int32 // cell of the first bit of an operation
}

// stretch is an operation outside of pipelines, or a pipeline: len ops, turns times.
type stretch struct {
	first  int32 // virtual step
	op     int32
	length int32
	turns  int32
	unit   int64 // bytes of a turn; -1 outside of pipelines
}

func (m *oneSided) prepare() error {
	if err := m.chooseSize(); err != nil {
		return err
	}
	o := m.p.OneSided
	nChannels, nSems := int32(0), int32(0)
	for r := range o.GPUs {
		m.channel = append(m.channel, nChannels)
		m.sem = append(m.sem, nSems)
		nChannels += int32(len(o.GPUs[r].Channels))
		nSems += int32(len(o.GPUs[r].Semaphores))
	}
	m.barrier = map[[2]int32]*meeting{}
	if err := m.layOut(); err != nil {
		return err
	}
	at := m.nLocs + 2*int32(len(m.tbs))
	first := at
	m.signalCell = at
	m.semCell = at + 2*nChannels
	at = m.semCell + nSems
	for _, b := range m.sortedBarriers() {
		b.cell = at
		at++
	}
	for t := range m.blocks {
		n, err := m.mostBits(int32(t))
		if err != nil {
			return err
		}
		m.blocks[t].goal, m.blocks[t].bits = at, at+1
		if int64(at)+1+n > maxCells {
			return bad(diag.Pos{}, "too-large", "the operations work on more than %d chunks", maxCells)
		}
		at += 1 + int32(n)
	}
	if err := m.start(int64(at - first)); err != nil {
		return err
	}
	for r := range o.GPUs {
		for k, v := range o.GPUs[r].Semaphores {
			m.cells[m.semCell+m.sem[r]+int32(k)] = v
		}
	}
	return nil
}

func (m *oneSided) sortedBarriers() []*meeting {
	var keys [][2]int32
	for k := range m.barrier {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	var out []*meeting
	for _, k := range keys {
		out = append(out, m.barrier[k])
	}
	return out
}

// chooseSize settles the bytes of a chunk: those asked for, or else the smallest of
// the window that all parts cut evenly.
func (m *oneSided) chooseSize() error {
	o, n := m.p.OneSided, int64(max(m.p.Coll.NumChunks(), 1))
	align := int64(o.Alignment)
	if m.bytes > 0 {
		if m.bytes%(n*align) != 0 {
			return bad(diag.Pos{}, "size", "%d bytes can't be cut into %d chunks that are multiples of %d bytes", m.bytes, n, align).
				Suggest("take a multiple of %d", n*align)
		}
		m.size = m.bytes / n
		return nil
	}
	units := int64(1)
	for i := range o.Ops {
		if op := &o.Ops[i]; op.Kind != ir.OpBarrier {
			if u := lcm(units, int64(max(op.Parts, 1))); u <= 1<<16 {
				units = u
			}
		}
	}
	m.size = align * units
	if least := (m.p.MinBytes + n - 1) / n; m.size < least {
		m.size = (least + align - 1) / align * align
	}
	if m.p.MaxBytes > 0 && m.size*n > m.p.MaxBytes {
		m.size = max(m.p.MaxBytes/n/align*align, align)
	}
	return nil
}

func lcm(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// layOut numbers the virtual steps, and finds the barriers.
func (m *oneSided) layOut() error {
	o := m.p.OneSided
	total := int64(0)
	for r := range o.GPUs {
		m.ranks[r].firstTB = int32(len(m.tbs))
		for t, span := range o.GPUs[r].Blocks {
			first := total
			var b oneBlock
			for i := span.Start; i < span.End; i++ {
				op := &o.Ops[i]
				s := stretch{first: int32(total), op: i, length: 1, turns: 1, unit: -1}
				if op.Kind == ir.OpPipeline {
					s.op, s.length, s.unit = op.Body.Start, int32(op.Body.Len()), op.UnitBytes
					turns := (int64(op.UnitChunks)*m.size-1)/op.UnitBytes + 1
					s.turns = int32(min(turns, math.MaxInt32))
				}
				if total += int64(s.length) * int64(s.turns); total > math.MaxInt32/2 {
					return bad(m.p.Pos(op.Pos), "too-large", "the pipelines turn too often: more than %d operations", math.MaxInt32/2)
				}
				if s.length > 0 {
					b.parts = append(b.parts, s)
				}
				for j := s.op; j < s.op+s.length; j++ {
					if err := m.checkOp(ir.Rank(r), int32(t), &o.Ops[j]); err != nil {
						return err
					}
				}
			}
			m.blocks = append(m.blocks, b)
			m.tbs = append(m.tbs, block{ir.Rank(r), int32(t), int32(first), int32(total)})
		}
		m.ranks[r].endTB = int32(len(m.tbs))
	}
	return m.checkScratch()
}

// checkOp refuses what can't be run at all.
func (m *oneSided) checkOp(r ir.Rank, t int32, op *ir.Op) error {
	o := m.p.OneSided
	wrong := func(code, format string, args ...any) error {
		return bad(m.p.Pos(op.Pos), code, "rank %d tb %d (%v): "+format, append([]any{r, t, op.Kind}, args...)...)
	}
	for _, list := range [...][]ir.Operand{o.Sources(op), o.Destinations(op)} {
		for i := range list {
			for _, q := range m.ranksOf(&list[i]) {
				a := &list[i]
				if a.Index < 0 || int64(a.Index)+int64(a.Size) > int64(m.ranks[q].sizes[a.Buf]) {
					return wrong("bounds", "%s[%d:%d] of rank %d, which has %d chunks", bufferWord(a.Buf), a.Index, a.Index+a.Size, q, m.ranks[q].sizes[a.Buf])
				}
			}
		}
	}
	if op.Kind == ir.OpBarrier {
		key := [2]int32{int32(r), o.RefsOf(op)[0]}
		if m.barrier[key] == nil {
			m.barrier[key] = &meeting{parts: op.Parts}
		}
		if m.barrier[key].parts != op.Parts {
			return wrong("bad-program", "barrier %d is for %d thread blocks here and for %d elsewhere", key[1], op.Parts, m.barrier[key].parts)
		}
	}
	if gives(op.Kind) || takes(op.Kind) {
		for _, n := range o.RefsOf(op) {
			if c := &o.GPUs[r].Channels[n]; c.Pair == ir.None && takes(op.Kind) {
				return wrong("bad-program", "channel %d to rank %d has no other end", n, c.Peer)
			}
		}
	}
	return nil
}

// checkScratch refuses ranks whose scratch holds packets in one operation and plain
// data in another: the two lie differently in the same memory.
func (m *oneSided) checkScratch() error {
	o := m.p.OneSided
	seen := make([][2]bool, len(m.ranks))
	for i := range o.Ops {
		op := &o.Ops[i]
		for _, a := range append(slices.Clone(o.Sources(op)), o.Destinations(op)...) {
			if a.Buf != ir.FirstScratch {
				continue
			}
			for _, r := range m.ranksOf(&a) {
				k := 0
				if a.Packets {
					k = 1
				}
				if seen[r][k] = true; seen[r][1-k] {
					return bad(m.p.Pos(op.Pos), "mixed-scratch", "scratch of rank %d holds packets in one operation and plain data in another, which can't be followed", r)
				}
			}
		}
	}
	return nil
}

// ranksOf are the ranks of an operand.
func (m *oneSided) ranksOf(a *ir.Operand) []ir.Rank {
	if a.Group != ir.None {
		return m.p.OneSided.Groups[a.Group].Ranks
	}
	return []ir.Rank{a.Rank}
}

func gives(k ir.OpKind) bool {
	return k == ir.OpSignal || k == ir.OpRelaxedSignal || k == ir.OpPutSignal || k == ir.OpPutSignalFlush
}

func takes(k ir.OpKind) bool { return k == ir.OpWait || k == ir.OpRelaxedWait }

// now is the operation at a virtual step of t, and the turn of its pipeline.
func (m *oneSided) opAt(t, step int32) (op int32, turn int32, unit int64) {
	parts := m.blocks[t].parts
	i, found := slices.BinarySearchFunc(parts, step, func(s stretch, at int32) int { return int(s.first) - int(at) })
	if !found {
		i--
	}
	s := &parts[i]
	return s.op + (step-s.first)%s.length, (step - s.first) / s.length, s.unit
}

// current is the operation that t stands at.
func (m *oneSided) current(t int32) (op *ir.Op, turn int32, unit int64) {
	i, turn, unit := m.opAt(t, m.at(t))
	return &m.p.OneSided.Ops[i], turn, unit
}

// count is the number of steps of t as At counts: operations and bodies.
func (m *oneSided) count(t int32) int32 {
	b := &m.tbs[t]
	span := m.p.OneSided.GPUs[b.rank].Blocks[b.tb]
	n := int32(span.Len())
	for i := span.Start; i < span.End; i++ {
		n += int32(m.p.OneSided.Ops[i].Body.Len())
	}
	return n
}

// stepNumber is the operation at a virtual step, as At counts.
func (m *oneSided) stepNumber(t, step int32) int32 {
	op, _, _ := m.opAt(t, step)
	b := &m.tbs[t]
	return op - m.p.OneSided.GPUs[b.rank].Blocks[b.tb].Start
}

// describe fills in where t stands.
func (m *oneSided) describe(t int32, p *Position) {
	op, turn, unit := m.current(t)
	p.At.Step = m.stepNumber(t, m.at(t))
	p.Text, p.Pos = m.p.StepString(p.At.Rank, p.At.TB, p.At.Step), m.p.Pos(op.Pos)
	if unit >= 0 {
		p.Message = turn
		for _, s := range m.blocks[t].parts {
			if m.at(t) >= s.first && m.at(t) < s.first+s.length*s.turns {
				p.Messages = s.turns
			}
		}
	}
}

// place is a virtual step as At counts.
func (m *oneSided) placeOf(t, step int32) At {
	b := &m.tbs[t]
	if step == b.end {
		return At{b.rank, b.tb, ir.None}
	}
	return At{b.rank, b.tb, m.stepNumber(t, step)}
}

// toCome is Machine.toCome of operations, which write to other ranks too.
func (m *oneSided) toCome(r ir.Rank, f func(first, count int32) bool) {
	o := m.p.OneSided
	for t := range m.tbs {
		seen := map[int32]bool{} // of a pipeline
		for s := m.at(int32(t)); s < m.tbs[t].end; s++ {
			i, _, unit := m.opAt(int32(t), s)
			if unit >= 0 && seen[i] {
				continue
			}
			seen[i] = true
			for _, a := range o.Destinations(&o.Ops[i]) {
				for _, q := range m.ranksOf(&a) {
					if q == r && f(m.loc(q, a.Buf, a.Index), a.Size) {
						return
					}
				}
			}
		}
	}
}

func (m *oneSided) signals() []Signal {
	var out []Signal
	o := m.p.OneSided
	for r := range o.GPUs {
		for c, ch := range o.GPUs[r].Channels {
			cell := m.givenCell(ir.Rank(r), int32(c))
			if n := m.cells[cell] - m.cells[cell+1]; n > 0 {
				out = append(out, Signal{Rank: ir.Rank(r), Number: int32(c), Peer: ch.Peer, Count: n})
			}
		}
		for k := range o.GPUs[r].Semaphores {
			if n := m.cells[m.semCell+m.sem[r]+int32(k)]; n > 0 {
				out = append(out, Signal{Rank: ir.Rank(r), Semaphore: true, Number: int32(k), Peer: ir.None, Count: n})
			}
		}
	}
	return out
}

// givenCell counts the signals that a rank has given on a channel; the cell after it
// counts those that the other end has taken.
func (m *oneSided) givenCell(r ir.Rank, c int32) int32 { return m.signalCell + 2*(m.channel[r]+c) }
