package proof

import (
	"math"

	"github.com/mscclsh/mscclsh/ir"
)

const (
	none      = -1
	unlimited = math.MaxInt32
)

// machine is a program as moves: each thread block is a line of them, and a move
// handles one message, or one chunk of a local step (see split for another way).
// Everything a move needs is worked out beforehand. The program's structure must be
// right.
type machine struct {
	p     *ir.Program
	lines [][]move
	cells int // canonical locations of all ranks
	base  []int32
	conns int
}

// move is one thing that a thread block does at once: it adds up what it reads and
// takes, and stores and sends that.
type move struct {
	rank     ir.Rank
	tb, step int32
	src, dst int32 // first canonical locations read and written, or none
	n        int32 // chunks
	in, out  int32 // connections, or none
	needs    []need
	adds     bool // reads the destination as well
	itself   bool // copies onto itself
	resumes  bool // goes on with what the line's last move came to, of one chunk
	keeps    bool // the line's next move does
}

// need is how far another line must have come.
type need struct{ line, moves int32 }

func newMachine(p *ir.Program, k int32) *machine {
	m := &machine{p: p}
	m.layout()
	first := make([]int32, len(p.GPUs)) // line of a rank's first thread block
	lines := int32(0)
	for r := range p.GPUs {
		first[r] = lines
		lines += int32(len(p.GPUs[r].TBs))
	}
	conns := map[connKey]int32{}
	conn := func(used bool, k connKey) int32 {
		if !used {
			return none
		}
		if _, ok := conns[k]; !ok {
			conns[k] = int32(len(conns))
		}
		return conns[k]
	}
	var ends [][]int32 // of a line: its moves when a step is over
	for r := range p.GPUs {
		rank := ir.Rank(r)
		for t := range p.GPUs[r].TBs {
			var line []move
			var over []int32
			for s := range p.GPUs[r].TBs[t].Steps {
				st := &p.GPUs[r].TBs[t].Steps[s]
				mv := move{rank: rank, adds: st.Kind.ReadsDst(), tb: int32(t), step: int32(s),
					in:  conn(st.Kind.Receives(), connKey{st.RecvPeer, rank, st.Chan}),
					out: conn(st.Kind.Sends(), connKey{rank, st.SendPeer, st.Chan})}
				size := k
				if mv.in == none && mv.out == none {
					size = 1
				}
				line = m.cut(line, mv, st, size)
				over = append(over, int32(len(line)))
			}
			m.lines = append(m.lines, line)
			ends = append(ends, over)
		}
	}
	m.conns = len(conns)
	for l := range m.lines {
		m.addNeeds(l, first, ends)
	}
	return m
}

// layout numbers the locations.
func (m *machine) layout() {
	for r := range m.p.GPUs {
		g := &m.p.GPUs[r]
		m.base = append(m.base, int32(m.cells))
		m.cells += int(g.Input + g.Output + g.Scratch)
	}
}

// cut appends the moves of a step, size chunks each.
func (m *machine) cut(line []move, mv move, st *ir.Step, size int32) []move {
	for at := int32(0); at < max(st.Count, 1); at += size {
		mv.src, mv.dst, mv.n = none, none, min(size, st.Count-at)
		if st.Kind.ReadsSrc() {
			mv.src = m.cell(mv.rank, st.Src) + at
		}
		if st.Kind.WritesDst() {
			mv.dst = m.cell(mv.rank, st.Dst) + at
		}
		mv.itself = st.Kind == ir.Copy && mv.src == mv.dst
		line = append(line, mv)
	}
	return line
}

// addNeeds lets the first move of every step wait for its dependencies.
func (m *machine) addNeeds(l int, first []int32, ends [][]int32) {
	for i := range m.lines[l] {
		mv := &m.lines[l][i]
		if i > 0 && m.lines[l][i-1].step == mv.step {
			continue
		}
		for _, d := range m.p.DepsOf(&m.p.GPUs[mv.rank].TBs[mv.tb].Steps[mv.step]) {
			o := first[mv.rank] + d.TB
			mv.needs = append(mv.needs, need{o, ends[o][d.Step]})
		}
	}
}

// cell numbers the canonical location of a place.
func (m *machine) cell(r ir.Rank, pl ir.Place) int32 {
	g := &m.p.GPUs[r]
	buf, i := m.p.Coll.Canon(r, pl.Buf, pl.Index)
	return m.base[r] + [...]int32{0, g.Input, g.Input + g.Output}[buf] + i
}

// total is the number of moves.
func (m *machine) total() int {
	n := 0
	for _, line := range m.lines {
		n += len(line)
	}
	return n
}

// reads and writes report whether a move touches a location in that way. A copy
// onto itself is for others a read: see conflict.
func (mv *move) reads(c int32) bool {
	return mv.src != none && mv.src <= c && c < mv.src+mv.n || mv.adds && mv.covers(c)
}

func (mv *move) writes(c int32) bool { return !mv.itself && mv.covers(c) }

func (mv *move) covers(c int32) bool { return mv.dst != none && mv.dst <= c && c < mv.dst+mv.n }

// touched calls f for every location that the move touches, some perhaps twice.
func (mv *move) touched(f func(c int32)) {
	for i := range mv.n {
		if mv.src != none {
			f(mv.src + i)
		}
		if mv.dst != none && mv.dst != mv.src {
			f(mv.dst + i)
		}
	}
}

// conflict reports whether two moves touch a location and one writes it. A copy
// onto itself changes nothing for readers, but may undo a write.
func conflict(a, b *move) bool {
	if a.rank != b.rank {
		return false
	}
	clash := false
	a.touched(func(c int32) {
		clash = clash || a.writes(c) && (b.reads(c) || b.writes(c)) || a.reads(c) && b.writes(c)
	})
	return clash
}

// state is how far a run has come.
type state struct {
	at   []int32   // of a line: moves made
	mem  []int32   // of a location: its value
	sent [][]int32 // of a connection: values sent, every message's chunks in turn
	took []int32   // of a connection: values taken
	put  []int32   // of a connection: messages sent
	got  []int32   // of a connection: messages taken
	held []int32   // of a line: what its next move goes on with, 0 if it doesn't
}

func (m *machine) start() *state {
	s := &state{at: make([]int32, len(m.lines)), mem: make([]int32, m.cells), sent: make([][]int32, m.conns),
		took: make([]int32, m.conns), put: make([]int32, m.conns), got: make([]int32, m.conns),
		held: make([]int32, len(m.lines))}
	for i := range s.mem {
		s.mem[i] = int32(i)
	}
	return s
}

// next is the move that a line comes to, nil at its end.
func (m *machine) next(s *state, l int) *move {
	if int(s.at[l]) == len(m.lines[l]) {
		return nil
	}
	return &m.lines[l][s.at[l]]
}

// enabled reports whether line l can move.
func (m *machine) enabled(s *state, l int, slots int32) bool {
	mv := m.next(s, l)
	if mv == nil || mv.in != none && s.put[mv.in] == s.got[mv.in] ||
		mv.out != none && s.put[mv.out]-s.got[mv.out] >= slots {
		return false
	}
	for _, n := range mv.needs {
		if s.at[n.line] < n.moves {
			return false
		}
	}
	return true
}

// step makes line l's next move, which must be enabled, on control alone.
func (m *machine) step(s *state, l int) {
	mv := m.next(s, l)
	if mv.in != none {
		s.got[mv.in]++
	}
	if mv.out != none {
		s.put[mv.out]++
	}
	s.at[l]++
}

// undoing is what a move replaced: the values of the locations written, and what
// the line held.
type undoing struct {
	old  []int32
	held int32
}

// apply makes it on values too, and returns what to undo.
func (m *machine) apply(s *state, l int, v *values) undoing {
	mv := m.next(s, l)
	u := undoing{held: s.held[l]}
	x := int32(none)
	add := func(y int32) {
		if x == none {
			x = y
		} else {
			x = v.sum(x, y)
		}
	}
	for i := range mv.n {
		if x = none; mv.resumes {
			x = s.held[l]
		}
		if mv.in != none {
			add(s.sent[mv.in][s.took[mv.in]])
			s.took[mv.in]++
		}
		if mv.src != none {
			add(s.mem[mv.src+i])
		}
		if mv.adds {
			add(s.mem[mv.dst+i])
		}
		if mv.out != none {
			s.sent[mv.out] = append(s.sent[mv.out], x)
		}
		if mv.dst != none {
			u.old = append(u.old, s.mem[mv.dst+i])
			s.mem[mv.dst+i] = x
		}
	}
	if s.held[l] = 0; mv.keeps {
		s.held[l] = x
	}
	m.step(s, l)
	return u
}

// undo takes line l's last move back.
func (m *machine) undo(s *state, l int, u undoing) {
	s.at[l]--
	mv := m.next(s, l)
	if mv.in != none {
		s.got[mv.in]--
		s.took[mv.in] -= mv.n
	}
	if mv.out != none {
		s.put[mv.out]--
		s.sent[mv.out] = s.sent[mv.out][:len(s.sent[mv.out])-int(mv.n)]
	}
	for i, x := range u.old {
		s.mem[mv.dst+int32(i)] = x
	}
	s.held[l] = u.held
}

// over reports whether every line is at its end.
func (m *machine) over(s *state) bool {
	for l := range m.lines {
		if int(s.at[l]) < len(m.lines[l]) {
			return false
		}
	}
	return true
}

// runs reports whether the program ends, by one schedule.
func (m *machine) runs(slots int32) bool {
	s := m.start()
	for moved := true; moved; {
		moved = false
		for l := range m.lines {
			for m.enabled(s, l, slots) {
				m.step(s, l)
				moved = true
			}
		}
	}
	return m.over(s)
}
