package proof

import (
	"github.com/mscclsh/mscclsh/ir"
)

// flagged reports whether messages carry their own flags, so that one tells of itself
// alone: LL and LL128. A place of a step is one of its chunks there; each is sent and
// taken by threads of its own, and a thread block's threads meet only between steps.
func flagged(p *ir.Program) bool { return p.Protocol == ir.LL || p.Protocol == ir.LL128 }

// finest is the machine with the smallest moves that there are, on which values and
// races are looked for.
func finest(p *ir.Program) *machine {
	if flagged(p) {
		return newSplit(p)
	}
	return newMachine(p, 1)
}

// newSplit takes the steps of a program of LL or LL128 apart: every place that a
// thread block's steps have is a line, with a queue of its own in each connection, and
// a step at a place is up to three moves: reading an operand, which doesn't wait for
// the message; taking the message, adding and passing on; and then storing, which
// nobody who gets the message waits for. Where a step doesn't receive, or doesn't
// send, nothing can come between some of these, and they are one move. All lines of a
// thread block meet between steps, and who depends on a step waits for all of its
// lines.
//
// Whether a program ends needs no splitting. A cycle of messages is one of places and
// the other way round: a message keeps its place, so a cycle of messages alone is one
// of a single place, and from the first chunk of a step messages lead as far as from
// any other. With slots that run out the thread blocks of all protocols wait alike, by
// whole messages.
func newSplit(p *ir.Program) *machine {
	m := &machine{p: p}
	m.layout()
	x := splitter{machine: m, conns: map[placedConn]int32{}}
	for r := range p.GPUs {
		var blocks []block
		for t := range p.GPUs[r].TBs {
			blocks = append(blocks, x.block(ir.Rank(r), int32(t)))
		}
		for _, b := range blocks {
			x.meetings(blocks, b)
		}
	}
	m.conns = len(x.conns)
	return m
}

type splitter struct {
	*machine
	conns map[placedConn]int32
}

// placedConn is what a connection moves at one place of its steps: matching steps have
// the same count, so the n-th sent at a place is the n-th taken there.
type placedConn struct {
	connKey
	place int32
}

// block is a thread block as lines.
type block struct {
	steps       []ir.Step
	first, last int32 // its lines, the last one excluded
	// begin and end are, of a step, the moves that each line has when it begins and
	// when it ends.
	begin, end [][]int32
}

func (x *splitter) block(rank ir.Rank, t int32) block {
	steps := x.p.GPUs[rank].TBs[t].Steps
	width := int32(1)
	for s := range steps {
		width = max(width, steps[s].Count)
	}
	b := block{steps: steps, first: int32(len(x.lines))}
	x.lines = append(x.lines, make([][]move, width)...)
	b.last = int32(len(x.lines))
	for s := range steps {
		b.begin = append(b.begin, x.made(b))
		for j := range max(steps[s].Count, 1) {
			l := b.first + j
			for _, mv := range x.at(rank, &steps[s], j) {
				mv.tb, mv.step = t, int32(s)
				x.lines[l] = append(x.lines[l], mv)
			}
		}
		b.end = append(b.end, x.made(b))
	}
	return b
}

// made counts the moves of a thread block's lines so far.
func (x *splitter) made(b block) []int32 {
	var out []int32
	for _, line := range x.lines[b.first:b.last] {
		out = append(out, int32(len(line)))
	}
	return out
}

// at is a step at one place.
func (x *splitter) at(rank ir.Rank, st *ir.Step, j int32) []move {
	idle := move{rank: rank, src: none, dst: none, in: none, out: none, n: min(st.Count, 1)}
	read, pass, store := idle, idle, idle
	receives, sends := st.Kind.Receives(), st.Kind.Sends()
	if receives {
		pass.in = x.conn(connKey{st.RecvPeer, rank, st.Chan}, j)
	}
	if sends {
		pass.out = x.conn(connKey{rank, st.SendPeer, st.Chan}, j)
	}
	var moves []move
	if st.Kind.ReadsSrc() {
		src := x.cell(rank, st.Src) + j
		if receives {
			read.src, read.keeps, pass.resumes = src, true, true
			moves = append(moves, read)
		} else {
			pass.src = src
		}
	}
	pass.adds = st.Kind.ReadsDst()
	if !st.Kind.WritesDst() {
		return append(moves, pass)
	}
	dst := x.cell(rank, st.Dst) + j
	if !sends {
		pass.dst, pass.itself = dst, st.Kind == ir.Copy && pass.src == dst
		return append(moves, pass)
	}
	pass.keeps, store.resumes, store.dst = true, true, dst
	return append(moves, pass, store)
}

func (x *splitter) conn(k connKey, place int32) int32 {
	at := placedConn{k, place}
	if _, ok := x.conns[at]; !ok {
		x.conns[at] = int32(len(x.conns))
	}
	return x.conns[at]
}

// meetings lets a step begin at every place when the step before is done at all of
// them, and so are the steps that it depends on.
func (x *splitter) meetings(blocks []block, b block) {
	for s := range b.steps {
		var needs []need
		wait := func(first int32, moves []int32) {
			for i, n := range moves {
				if n > 0 {
					needs = append(needs, need{first + int32(i), n})
				}
			}
		}
		wait(b.first, b.begin[s])
		for _, d := range x.p.DepsOf(&b.steps[s]) {
			wait(blocks[d.TB].first, blocks[d.TB].end[d.Step])
		}
		for j := range max(b.steps[s].Count, 1) {
			x.lines[b.first+j][b.begin[s][j]].needs = needs
		}
	}
}
