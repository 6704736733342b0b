package proof

import (
	"math/bits"
	"slices"
)

// search explores every interleaving that can make a difference, message by
// message with endless slots: dynamic partial-order reduction (Flanagan and
// Godefroid, POPL 2005) with sleep sets. Moves of two lines that both can be made
// depend on one another only if they conflict in memory: taking a message
// commutes with adding one, and posting with whatever else. So a program without
// races is run once, and one with races once for every order of its conflicts.
//
// Where a race is tried the other way round follows the source sets of Abdulla,
// Aronis, Jonsson and Sagonas (POPL 2014). Simply trying the later of the two moves
// first is not enough together with sleep sets: it may be asleep there, and then
// nothing would be tried.
type search struct {
	m *machine
	s *state
	v *values

	path   []*node            // the states on the way here
	clocks [][]clock          // of a line's moves made: what came before each
	mail   [][]clock          // of a connection's messages
	writer []event            // of a location: its last write
	reader [][]event          // of a location: reads since
	ends   map[string][]int32 // the different memories at the end
	stuck  int                // runs that stop before the end
	races  bool               // conflicting moves in no order

	limit, runs int
}

// event is a move made.
type event struct{ line, move, depth int32 }

// node is a state on the way: lines to be tried there, as bits, and the move made.
type node struct {
	todo uint64
	made event
}

// clock counts the moves of every line that came before.
type clock []int32

func (c clock) join(d clock) {
	for i, x := range d {
		c[i] = max(c[i], x)
	}
}

func (c clock) knows(e event) bool { return c[e.line] > e.move }

// maxLines is how many a set of lines holds; see source.small.
const maxLines = 64

func newSearch(m *machine, v *values, limit int) *search {
	x := &search{m: m, v: v, limit: limit, s: m.start(), clocks: make([][]clock, len(m.lines)),
		mail: make([][]clock, m.conns), writer: make([]event, m.cells), reader: make([][]event, m.cells),
		ends: map[string][]int32{}}
	for i := range x.writer {
		x.writer[i].line = none
	}
	return x
}

// complete reports whether the limit was not reached.
func (x *search) complete() bool { return x.runs < x.limit }

func (x *search) visit(sleep uint64) {
	if !x.complete() {
		return
	}
	enabled := uint64(0)
	for l := range x.m.lines {
		if x.m.enabled(x.s, l, unlimited) {
			enabled |= 1 << l
		}
	}
	if enabled == 0 {
		x.runs++
		if x.ends[keyOf(x.s.mem)] = slices.Clone(x.s.mem); !x.m.over(x.s) {
			x.stuck++
		}
		return
	}
	awake := enabled &^ sleep
	n := &node{todo: awake & -awake}
	x.path = append(x.path, n)
	for done := uint64(0); ; {
		todo := n.todo &^ done &^ sleep
		if todo == 0 {
			break
		}
		l := bits.TrailingZeros64(todo)
		asleep := x.stillAsleep(sleep, l)
		x.play(l, asleep)
		done |= 1 << l
		sleep |= 1 << l
	}
	x.path = x.path[:len(x.path)-1]
}

// stillAsleep are the lines that line l's move doesn't wake.
func (x *search) stillAsleep(sleep uint64, l int) uint64 {
	mv := x.m.next(x.s, l)
	for set := sleep; set != 0; set &= set - 1 {
		if r := bits.TrailingZeros64(set); conflict(mv, x.m.next(x.s, r)) {
			sleep &^= 1 << r
		}
	}
	return sleep
}

// play makes line l's move, visits what follows and takes it back.
func (x *search) play(l int, asleep uint64) {
	mv := x.m.next(x.s, l)
	c := x.before(l, mv)
	e := event{int32(l), x.s.at[l], int32(len(x.path) - 1)}
	x.path[e.depth].made = e
	x.meet(mv, c, e)
	c[l] = e.move + 1
	x.clocks[l] = append(x.clocks[l][:e.move], c)
	if mv.out != none {
		x.mail[mv.out] = append(x.mail[mv.out], c)
	}
	type mark struct {
		cell   int32
		writer event
		reader []event
	}
	var marks []mark
	mv.touched(func(cell int32) {
		marks = append(marks, mark{cell, x.writer[cell], x.reader[cell]})
		if mv.writes(cell) {
			x.writer[cell], x.reader[cell] = e, nil
		} else {
			x.reader[cell] = append(slices.Clip(x.reader[cell]), e)
		}
	})
	u := x.m.apply(x.s, l, x.v)

	x.visit(asleep)

	x.m.undo(x.s, l, u)
	for _, k := range slices.Backward(marks) {
		x.writer[k.cell], x.reader[k.cell] = k.writer, k.reader
	}
	if mv.out != none {
		x.mail[mv.out] = x.mail[mv.out][:len(x.mail[mv.out])-1]
	}
}

// before is what has to have come before line l's next move, conflicts apart.
func (x *search) before(l int, mv *move) clock {
	c := make(clock, len(x.m.lines))
	if n := x.s.at[l]; n > 0 {
		c.join(x.clocks[l][n-1])
	}
	if mv.in != none {
		c.join(x.mail[mv.in][x.s.got[mv.in]])
	}
	for _, n := range mv.needs {
		if n.moves > 0 {
			c.join(x.clocks[n.line][n.moves-1])
		}
	}
	return c
}

// meet notes for every earlier move that conflicts with this one, in no order so
// far, that the two should be tried the other way round; and joins their clocks, as in
// this run they do come before.
func (x *search) meet(mv *move, c clock, e event) {
	var met []event
	mv.touched(func(cell int32) {
		if w := x.writer[cell]; w.line != none && w.line != e.line && !c.knows(w) {
			met = append(met, w)
		}
		if mv.writes(cell) {
			for _, r := range x.reader[cell] {
				if r.line != e.line && !c.knows(r) {
					met = append(met, r)
				}
			}
		}
	})
	for _, f := range met {
		x.races = true
		c.join(x.clocks[f.line][f.move])
	}
	for _, f := range met {
		x.turn(f, c, e)
	}
}

// turn sees to it that where f was made something is tried that leads to e before f:
// one of the moves that can come first among those since f which don't come after it.
// If one of them was tried before the way here, it led there.
func (x *search) turn(f event, c clock, e event) {
	var others []event
	first := uint64(0)
	add := func(g event, before clock) {
		if !slices.ContainsFunc(others, before.knows) {
			first |= 1 << g.line
		}
		others = append(others, g)
	}
	for _, n := range x.path[f.depth+1 : e.depth] {
		if before := x.clocks[n.made.line][n.made.move]; !before.knows(f) {
			add(n.made, before)
		}
	}
	add(e, c)
	if n := x.path[f.depth]; n.todo&first == 0 {
		n.todo |= first & -first
	}
}
