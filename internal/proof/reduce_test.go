package proof

import (
	"math/bits"
	"slices"
)

// search explores every interleaving that can make a difference, message by
// message with endless slots: dynamic partial-order reduction (Flanagan and
// Godefroid, POPL 2005) with sleep sets. Moves of two thread blocks that both can
// be made depend on one another only if they conflict in memory: taking a message
// commutes with adding one, and posting with whatever else. So a program without
// races is run once, and one with races once for every order of its conflicts.
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

// node is a state on the way: sets of lines as bits.
type node struct{ enabled, todo uint64 }

// clock counts the moves of every line that came before.
type clock []int32

func (c clock) join(d clock) {
	for i, x := range d {
		c[i] = max(c[i], x)
	}
}

func (c clock) knows(e event) bool { return c[e.line] > e.move }

// maxLines is how many thread blocks a set of lines holds; see source.small.
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
	n := &node{enabled: enabled, todo: awake & -awake}
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
	old := x.m.apply(x.s, l, x.v)

	x.visit(asleep)

	x.m.undo(x.s, l, old)
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
// far, that this one should have been tried there first; and joins their clocks,
// as in this run they do come before.
func (x *search) meet(mv *move, c clock, e event) {
	var met []event
	mv.touched(func(cell int32) {
		if w := x.writer[cell]; w.line != none && w.line != e.line {
			met = append(met, w)
		}
		if mv.writes(cell) {
			for _, r := range x.reader[cell] {
				if r.line != e.line {
					met = append(met, r)
				}
			}
		}
	})
	known := slices.Clone(c)
	for _, f := range met {
		if known.knows(f) {
			continue
		}
		x.races = true
		if n := x.path[f.depth]; n.enabled>>e.line&1 == 1 {
			n.todo |= 1 << e.line
		} else {
			n.todo |= n.enabled
		}
		c.join(x.clocks[f.line][f.move])
	}
}
