package checker

import (
	"fmt"
	"math"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// oneModel is a one-sided program on refined chunks: locations, channels,
// semaphores and barriers are numbered across all ranks, and pipelines are unrolled.
type oneModel struct {
	*model // the refined collective and where its locations are
	o      *ir.OneSided
	shape  shape
	sizes  sizeRange
	// The sizes that the shape is an image of.
	least, most int64

	blocks []oneBlock
	rank   []oneRank

	chans    []oneChannel
	sems     []oneCount
	barriers []oneBarrier
	// packets says that scratch has two locations a unit, since a packet fills twice
	// the memory of its data.
	packets bool
}

// oneRank is where a rank's things begin in the lists of all ranks.
type oneRank struct{ firstBlock, endBlock, firstChan, firstSem int32 }

// oneBlock is one thread block: what it does in a launch.
type oneBlock struct {
	rank  ir.Rank
	index int32 // of the rank's thread blocks
	steps []oneStep
}

// oneStep is an operation, or one turn of an operation in a pipeline.
type oneStep struct {
	op   int32 // of OneSided.Ops
	turn int32
	unit int32 // units of a turn; 0 outside of pipelines
	loop int32 // the pipeline that it is in, of OneSided.Ops, or None
	ref  int32 // barrier: its number among all
}

// oneCount says who gives to and takes from a channel or a semaphore, and how
// often in a launch.
type oneCount struct {
	givers, takers []tally
	initial        int32
	// All orders of events have gives, and takes, in one order: see oneshare.go.
	givesFixed, takesFixed bool
}

type tally struct{ block, n int32 }

func (c *oneCount) count(list *[]tally, block int32) {
	if n := len(*list); n > 0 && (*list)[n-1].block == block {
		(*list)[n-1].n++
		return
	}
	*list = append(*list, tally{block, 1})
}

func total(list []tally) int32 {
	n := int32(0)
	for _, t := range list {
		n += t.n
	}
	return n
}

// oneChannel is one direction of a channel, named by its sending end.
type oneChannel struct {
	oneCount
	rank   ir.Rank
	number int32
	*ir.SignalChannel
	pushers []tally // who puts by it, a port channel
	push    int32   // of the first of them among all pushers of all channels
}

// oneBarrier is one barrier of a rank.
type oneBarrier struct {
	rank   ir.Rank
	number int32
	parts  int32
	blocks []tally
}

// maxOneBlocks bounds the thread blocks of all ranks: what each knows of each takes 8
// bytes a pair, 1 GiB in all.
const maxOneBlocks = 11_585

// newOneModel flattens a program whose structure is right; nil, with a finding, if
// it is too large.
func newOneModel(p *ir.Program, s shape, sizes sizeRange, f *findings) *oneModel {
	spec := *p.Spec
	spec.Coll = p.Coll.Refine(s.units)
	refined := *p
	refined.Spec = &spec
	m := &oneModel{model: &model{p: &refined}, o: p.OneSided, shape: s, sizes: sizes, packets: p.OneSided.Packets}
	m.least, m.most = sizes.sizesOf(p, s)
	if !m.locate(p.Coll, f) {
		return nil
	}
	m.rank = make([]oneRank, len(p.GPUs))
	for r := range m.rank {
		g := &m.o.GPUs[r]
		m.rank[r] = oneRank{int32(len(m.blocks)), 0, int32(len(m.chans)), int32(len(m.sems))}
		for i := range g.Channels {
			m.chans = append(m.chans, oneChannel{rank: ir.Rank(r), number: int32(i), SignalChannel: &g.Channels[i]})
		}
		for _, v := range g.Semaphores {
			m.sems = append(m.sems, oneCount{initial: v})
		}
		for t := range g.Blocks {
			if g.Blocks[t].Len() == 0 { // a number that a script leaves out
				continue
			}
			m.blocks = append(m.blocks, oneBlock{rank: ir.Rank(r), index: int32(t)})
		}
		m.rank[r].endBlock = int32(len(m.blocks))
	}
	if n := int64(len(m.blocks)); n > maxOneBlocks {
		f.errorf(diag.Pos{}, CodeTooLarge, "the program has %d thread blocks with operations, the checker holds up to %d of puts and signals", n, maxOneBlocks)
		return nil
	}
	steps := int64(0)
	for b := range m.blocks {
		if steps += m.unroll(int32(b)); steps > maxTouched/8 {
			f.errorf(diag.Pos{}, CodeTooLarge, "the program has more than %d operations with its pipelines unrolled", steps)
			return nil
		}
	}
	m.tally()
	return m
}

// locate numbers the locations; coll is the collective before it is refined, whose
// sizes don't overflow.
func (m *oneModel) locate(coll *ir.Collective, f *findings) bool {
	units, at := int64(m.shape.units), int64(0)
	m.ranks = make([]rankInfo, len(m.p.GPUs))
	for r := range m.ranks {
		in, out := int64(coll.InputChunks(ir.Rank(r)))*units, int64(coll.OutputChunks(ir.Rank(r)))*units
		extra := int64(m.p.GPUs[r].Scratch) * units
		if m.packets {
			extra *= 2
		}
		if at+in+out+extra > maxLocations {
			f.errorf(diag.Pos{}, CodeTooLarge, "the program's buffers have more than %d chunks and parts of chunks", maxLocations)
			return false
		}
		m.ranks[r] = rankInfo{base: int32(at), input: int32(in), output: int32(out), extra: int32(extra)}
		at += in + out + extra
	}
	m.nLocs = int32(at)
	return true
}

// unroll fills in the steps of block b and returns their number.
func (m *oneModel) unroll(b int32) int64 {
	blk := &m.blocks[b]
	span := m.o.GPUs[blk.rank].Blocks[blk.index]
	for i := span.Start; i < span.End; i++ {
		op := &m.o.Ops[i]
		if op.Kind != ir.OpPipeline {
			blk.steps = append(blk.steps, oneStep{op: i, loop: ir.None, ref: ir.None})
			continue
		}
		unit, n := m.shape.turns(op)
		for turn := range n {
			for j := op.Body.Start; j < op.Body.End; j++ {
				blk.steps = append(blk.steps, oneStep{op: j, turn: int32(turn), unit: int32(min(unit, math.MaxInt32)), loop: i, ref: ir.None})
			}
			if len(blk.steps) > maxTouched/8 {
				return maxTouched
			}
		}
	}
	return int64(len(blk.steps))
}

// tally counts who uses channels, semaphores and barriers.
func (m *oneModel) tally() {
	barriers := map[[2]int32]int32{}
	for b := range m.blocks {
		blk := &m.blocks[b]
		own := &m.rank[blk.rank]
		for i := range blk.steps {
			st := &blk.steps[i]
			op := &m.o.Ops[st.op]
			for _, x := range m.o.RefsOf(op) {
				switch {
				case op.Kind == ir.OpBarrier:
					key := [2]int32{int32(blk.rank), x}
					n, ok := barriers[key]
					if !ok {
						n = int32(len(m.barriers))
						barriers[key] = n
						m.barriers = append(m.barriers, oneBarrier{rank: blk.rank, number: x, parts: op.Parts})
					}
					st.ref = n
					(&oneCount{}).count(&m.barriers[n].blocks, int32(b))
				case op.Kind == ir.OpSemaphoreAcquire:
					s := &m.sems[own.firstSem+x]
					s.count(&s.takers, int32(b))
				case op.Kind == ir.OpSemaphoreRelease:
					s := &m.sems[own.firstSem+x]
					s.count(&s.givers, int32(b))
				case signals(op.Kind):
					c := &m.chans[own.firstChan+x]
					c.count(&c.givers, int32(b))
					if onPort(op) {
						c.count(&c.pushers, int32(b))
					}
				case onPort(op):
					c := &m.chans[own.firstChan+x]
					c.count(&c.pushers, int32(b))
				case waits(op.Kind):
					c := &m.chans[m.inbound(blk.rank, x)]
					c.count(&c.takers, int32(b))
				}
			}
		}
	}
}

// numberPushers numbers those who put by ports, and returns how many there are.
func (m *oneModel) numberPushers() int32 {
	n := int32(0)
	for i := range m.chans {
		m.chans[i].push = n
		n += int32(len(m.chans[i].pushers))
	}
	return n
}

// inbound is the channel of the peer whose signals arrive at channel x of rank r.
func (m *oneModel) inbound(r ir.Rank, x int32) int32 {
	c := &m.o.GPUs[r].Channels[x]
	return m.rank[c.Peer].firstChan + c.Pair
}

// stretch is a run of locations: unit i of an operand at start+i*step, and of
// packets the location after it too.
type stretch struct {
	start, n, step int32
}

// at is the location of unit i.
func (s stretch) at(i int32) int32 { return s.start + i*s.step }

// lane is one d... := op(s...) of an operation; all have the same number of units.
type lane struct {
	n     int32
	reads []stretch
	// packets says of each read that it waits for packets.
	packets []bool
	writes  []stretch
	sends   []bool // of each write: it writes packets
	// Of each read and each write: the operand that it stands for, of OneSided.Operands.
	readOf, writeOf []int32
	// Of history: its accesses, reads first, and its reads of packets.
	firstAccess, firstRead int32
}

// lanes resolves the operands of a step.
func (m *oneModel) lanes(st *oneStep) []lane {
	op := &m.o.Ops[st.op]
	if !moves(op.Kind) {
		return nil
	}
	src, dst := int32(op.Src.Len()), int32(op.Dst.Len())
	if !opRules[op.Kind].pairs {
		var l lane
		for i := range src {
			m.extend(&l.reads, &l.packets, &l.readOf, st, op.Src.Start+i)
		}
		if opRules[op.Kind].blocks && len(l.reads) > 1 {
			// The executor adds up the packets and then its own.
			l.reads = append(l.reads[1:], l.reads[0])
			l.packets = append(l.packets[1:], l.packets[0])
			l.readOf = append(l.readOf[1:], l.readOf[0])
		}
		for i := range dst {
			m.extend(&l.writes, &l.sends, &l.writeOf, st, op.Dst.Start+i)
		}
		l.n = l.reads[0].n
		return []lane{l}
	}
	out := make([]lane, dst)
	for i := range dst {
		l := &out[i]
		m.extend(&l.reads, &l.packets, &l.readOf, st, op.Src.Start+min(i, src-1))
		m.extend(&l.writes, &l.sends, &l.writeOf, st, op.Dst.Start+i)
		l.n = l.reads[0].n
	}
	return out
}

// extend appends the places of operand number x: one, or one a rank of its group.
func (m *oneModel) extend(list *[]stretch, packets *[]bool, of *[]int32, st *oneStep, x int32) {
	op, d := &m.o.Ops[st.op], &m.o.Operands[x]
	off, n := slice(d.Size*m.shape.units, op.Part, op.Parts)
	if st.unit > 0 {
		skip := min(int64(st.turn)*int64(st.unit), int64(n))
		off, n = off+int32(skip), min(n-int32(skip), st.unit)
	}
	add := func(r ir.Rank) {
		s := stretch{start: m.loc(r, ir.Place{Buf: d.Buf, Index: d.Index*m.shape.units + off}), n: n, step: 1}
		if d.Packets {
			ri := &m.ranks[r]
			s.start = ri.base + ri.input + ri.output + 2*(d.Index*m.shape.units+off)
			s.step = 2
		}
		*list = append(*list, s)
		*packets = append(*packets, d.Packets)
		*of = append(*of, x)
	}
	if d.Group == ir.None {
		add(d.Rank)
		return
	}
	for _, r := range m.o.Groups[d.Group].Ranks {
		add(r)
	}
}

// slice is part k of n units in p parts; the first ones take the remainder.
func slice(n, k, p int32) (off, length int32) {
	q, rest := n/p, n%p
	off, length = k*q+min(k, rest), q
	if k < rest {
		length++
	}
	return off, length
}

// chunkName names a location by its rank and whole chunk: as part of a packet, or as
// plain data, which in scratch with packets has another number.
func (m *oneModel) chunkName(loc int32, packets bool) string {
	r, buf, i := m.place(loc)
	if m.packets && buf == "scratch" && !packets {
		return fmt.Sprintf("rank %d %s", r, m.unitName(buf, i))
	}
	return fmt.Sprintf("rank %d %s", r, m.partName(buf, i))
}

// partName names refined chunk i of a buffer; of a scratch of packets i counts
// both of a packet's locations.
func (m *oneModel) partName(buf string, i int32) string {
	if m.packets && buf == "scratch" {
		i /= 2
	}
	return m.unitName(buf, i)
}

// wholeName names the whole chunk that a location is part of.
func (m *oneModel) wholeName(loc int32, packets bool) string {
	r, buf, i := m.place(loc)
	if packets {
		i /= 2
	}
	return fmt.Sprintf("rank %d %s[%d]", r, buf, i/m.shape.units)
}

func (m *oneModel) unitName(buf string, i int32) string {
	if m.shape.units == 1 {
		return fmt.Sprintf("%s[%d]", buf, i)
	}
	return fmt.Sprintf("%s[%d] (part %d of %d)", buf, i/m.shape.units, i%m.shape.units+1, m.shape.units)
}

func (m *oneModel) stepPos(st *oneStep) diag.Pos { return m.p.Pos(m.o.Ops[st.op].Pos) }

// stepName is how messages call a step.
func (m *oneModel) stepName(st *oneStep) string {
	s := m.opName(st.op)
	if st.unit > 0 {
		s += fmt.Sprintf(" in turn %d", st.turn+1)
	}
	return s
}

// opName finds the thread block and the number of operation i there. Operations of
// a pipeline's body are numbered within it.
func (m *oneModel) opName(i int32) string {
	kind := m.o.Ops[i].Kind
	for r := range m.o.GPUs {
		for t, span := range m.o.GPUs[r].Blocks {
			if i >= span.Start && i < span.End {
				return fmt.Sprintf("rank %d tb %d op %d (%s)", r, t, i-span.Start, kind)
			}
			for j := span.Start; j < span.End; j++ {
				if op := &m.o.Ops[j]; op.Kind == ir.OpPipeline && i >= op.Body.Start && i < op.Body.End {
					return fmt.Sprintf("rank %d tb %d op %d.%d (%s)", r, t, j-span.Start, i-op.Body.Start, kind)
				}
			}
		}
	}
	return fmt.Sprintf("operation %d (%s)", i, kind)
}
