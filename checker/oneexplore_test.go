package checker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// oneExplorer runs launches of a small one-sided program in every order of its
// operations, and knows of nothing but positions: which accesses have been made when. It
// has no clocks and no graph. A thread block does one thing after another, so what a real
// block's threads do apart is not seen; where they meet between any two operations nothing
// is missed.
type oneExplorer struct {
	n       *oneNaive
	todo    [][]act // of each line: all launches
	ends    [][]int // of each line and launch: where it ends in todo
	made    []oneTouch
	callers [][]int             // of each rank and boundary: its accesses
	late    map[[2]int]bool     // access 0 can come when access 1 has not
	seen    map[string]struct{} // states
}

// act is one thing that a line does: a chunk of an operation, a signal, a wait.
type act struct {
	launch int
	op     *ir.Op
	chunk  int32
	ref    int32
	access []int // what it touches
}

// oneTouch is one chunk that is read or written, in a launch.
type oneTouch struct {
	event0
	launch int
	write  bool
	caller bool
}

// exploring is a state. Whatever can be waited for follows from what has been done.
type exploring struct {
	at     []int
	bound  []int             // of a rank: its caller's turns
	queues map[string]string // of a port channel: what it was given and has not done
	done   []bool            // accesses
	given  map[string]int    // signals that have arrived, releases
	taken  map[string]int
	sent   map[string]bool // packets of a launch
}

func newOneExplorer(p *ir.Program, launches int) *oneExplorer {
	x := &oneExplorer{n: newOneNaive(p), late: map[[2]int]bool{}, seen: map[string]struct{}{}}
	for _, line := range x.n.lines {
		var todo []act
		var ends []int
		for launch := range launches {
			for _, op := range line.ops {
				todo = append(todo, x.acts(op, launch)...)
			}
			ends = append(ends, len(todo))
		}
		x.todo, x.ends = append(x.todo, todo), append(x.ends, ends)
	}
	for r := range x.n.o.GPUs {
		for k := range launches {
			x.callers = append(x.callers, x.turn(ir.Rank(r), k))
		}
	}
	return x
}

func (x *oneExplorer) add(d *ir.Operand, chunk int32, launch int, write, caller bool) int {
	one := *d
	one.Index, one.Size = d.Index+chunk, 1
	x.made = append(x.made, oneTouch{event0{at: x.n.place(d, chunk), packets: d.Packets, operand: one}, launch, write, caller})
	return len(x.made) - 1
}

func (x *oneExplorer) acts(op *ir.Op, launch int) []act {
	var out []act
	if len(x.n.o.Destinations(op)) == 0 {
		if op.Kind == ir.OpSync {
			return nil
		}
		for _, ref := range x.n.o.RefsOf(op) {
			out = append(out, act{launch: launch, op: op, ref: ref})
		}
		return out
	}
	for j := range x.n.o.Destinations(op)[0].Size {
		a := act{launch: launch, op: op, chunk: j}
		if op.Via == ir.ChannelPort {
			a.ref = x.n.o.RefsOf(op)[0]
		}
		for i := range x.n.o.Sources(op) {
			a.access = append(a.access, x.add(&x.n.o.Sources(op)[i], j, launch, false, false))
		}
		for i := range x.n.o.Destinations(op) {
			a.access = append(a.access, x.add(&x.n.o.Destinations(op)[i], j, launch, true, false))
		}
		out = append(out, a)
	}
	return out
}

// turn is what the caller of a rank does after launch k.
func (x *oneExplorer) turn(r ir.Rank, k int) []int {
	var out []int
	coll := x.n.p.Coll
	for i := range coll.OutputChunks(r) {
		if _, wanted := coll.Expect(nil, r, i); wanted {
			out = append(out, x.add(&ir.Operand{Rank: r, Buf: ir.Output, Index: i}, 0, k, false, true))
		}
	}
	for i := range coll.InputChunks(r) {
		out = append(out, x.add(&ir.Operand{Rank: r, Buf: ir.Input, Index: i}, 0, k+1, true, true))
	}
	return out
}

// races reports whether two accesses of one place, one of them a write, come in either
// order, where chunks have from least to most units. False for both if it gave up.
func (x *oneExplorer) races(least, most int) (found, decided bool) {
	s := exploring{at: make([]int, len(x.todo)), bound: make([]int, len(x.n.o.GPUs)), queues: map[string]string{},
		done: make([]bool, len(x.made)), given: map[string]int{}, taken: map[string]int{}, sent: map[string]bool{}}
	if !x.visit(s) {
		return false, false
	}
	for i := range x.made {
		for j := range i {
			a, b := &x.made[i], &x.made[j]
			if (a.write || b.write) && x.late[[2]int{i, j}] && x.late[[2]int{j, i}] && x.touch(a, b, least, most) {
				return true, true
			}
		}
	}
	return false, true
}

func (x *oneExplorer) touch(a, b *oneTouch, least, most int) bool {
	for m := least; m <= most; m++ {
		for k := least; k <= most; k++ {
			if a.launch == b.launch && m != k {
				continue
			}
			for _, p := range x.n.units(&a.event0, a.launch, m) {
				for _, q := range x.n.units(&b.event0, b.launch, k) {
					if p == q {
						return true
					}
				}
			}
		}
	}
	return false
}

const maxExplored = 30_000

func (x *oneExplorer) visit(first exploring) bool {
	todo := []exploring{first}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		key := fmt.Sprint(s.at, s.bound, s.queues)
		if _, again := x.seen[key]; again {
			continue
		}
		x.seen[key] = struct{}{}
		if len(x.seen) > maxExplored {
			return false
		}
		x.note(&s)
		for l := range x.todo {
			if x.can(&s, l) {
				next := s.clone()
				x.do(&next, l)
				todo = append(todo, next)
			}
		}
		for q, list := range s.queues {
			if list != "" {
				next := s.clone()
				x.carry(&next, q)
				todo = append(todo, next)
			}
		}
		for r := range s.bound {
			if x.over(&s, r) {
				next := s.clone()
				for _, a := range x.callers[r*len(x.ends[0])+next.bound[r]] {
					next.done[a] = true
				}
				next.bound[r]++
				todo = append(todo, next)
			}
		}
	}
	return true
}

func (x *oneExplorer) note(s *exploring) {
	for i, d := range s.done {
		for j, e := range s.done {
			if d && !e {
				x.late[[2]int{i, j}] = true
			}
		}
	}
}

func (s *exploring) clone() exploring {
	c := exploring{at: append([]int(nil), s.at...), bound: append([]int(nil), s.bound...), done: append([]bool(nil), s.done...),
		queues: map[string]string{}, given: map[string]int{}, taken: map[string]int{}, sent: map[string]bool{}}
	for k, v := range s.queues {
		c.queues[k] = v
	}
	for k, v := range s.given {
		c.given[k] = v
	}
	for k, v := range s.taken {
		c.taken[k] = v
	}
	for k, v := range s.sent {
		c.sent[k] = v
	}
	return c
}

// over reports whether all lines of a rank are at the end of the launch that the rank's
// caller waits for.
func (x *oneExplorer) over(s *exploring, r int) bool {
	if s.bound[r] == len(x.ends[0]) {
		return false
	}
	for l, line := range x.n.lines {
		if line.rank == r && s.at[l] < x.ends[l][s.bound[r]] {
			return false
		}
	}
	return true
}

func (x *oneExplorer) next(s *exploring, l int) *act {
	r := x.n.lines[l].rank
	if s.bound[r] == len(x.ends[l]) || s.at[l] == x.ends[l][s.bound[r]] {
		return nil
	}
	return &x.todo[l][s.at[l]]
}

func (x *oneExplorer) can(s *exploring, l int) bool {
	a := x.next(s, l)
	if a == nil {
		return false
	}
	r := x.n.lines[l].rank
	switch a.op.Kind {
	case ir.OpWait, ir.OpRelaxedWait:
		c := x.n.o.GPUs[r].Channels[a.ref]
		key := fmt.Sprint("c", c.Peer, c.Pair)
		return s.given[key] > s.taken[key]
	case ir.OpSemaphoreAcquire:
		key := fmt.Sprint("s", r, a.ref)
		return s.given[key]+int(x.n.o.GPUs[r].Semaphores[a.ref]) > s.taken[key]
	case ir.OpFlush:
		return s.queues[fmt.Sprint(r, " ", a.ref)] == ""
	case ir.OpBarrier:
		return x.meets(s, l)
	}
	for _, i := range a.access {
		if e := &x.made[i]; e.packets && !e.write && waitsForPackets(a.op.Kind) && !s.sent[fmt.Sprint(a.launch, e.at)] {
			return false
		}
	}
	return true
}

// meets reports whether the other line of the rank stands at its barrier of the same turn,
// or is beyond.
func (x *oneExplorer) meets(s *exploring, l int) bool {
	turn := func(k int) (n int, here bool) {
		for _, a := range x.todo[k][:s.at[k]] {
			n += b2i(a.op.Kind == ir.OpBarrier)
		}
		a := x.next(s, k)
		return n, a != nil && a.op.Kind == ir.OpBarrier
	}
	mine, _ := turn(l)
	for k, line := range x.n.lines {
		if k != l && line.rank == x.n.lines[l].rank {
			if n, here := turn(k); n < mine || n == mine && !here {
				return false
			}
		}
	}
	return true
}

func (x *oneExplorer) do(s *exploring, l int) {
	a := *x.next(s, l)
	r := x.n.lines[l].rank
	s.at[l]++
	port := a.op.Via == ir.ChannelPort && a.op.Kind != ir.OpWait
	switch a.op.Kind {
	case ir.OpWait, ir.OpRelaxedWait:
		c := x.n.o.GPUs[r].Channels[a.ref]
		s.taken[fmt.Sprint("c", c.Peer, c.Pair)]++
		return
	case ir.OpSemaphoreAcquire:
		s.taken[fmt.Sprint("s", r, a.ref)]++
		return
	case ir.OpSemaphoreRelease:
		s.given[fmt.Sprint("s", r, a.ref)]++
		return
	case ir.OpFlush, ir.OpBarrier:
		return
	}
	if port { // what it is given, a queue does
		s.queues[fmt.Sprint(r, " ", a.ref)] += fmt.Sprintf("%d.%d ", l, s.at[l]-1)
		return
	}
	x.finish(s, r, &a)
}

// carry does what a port has had for longest.
func (x *oneExplorer) carry(s *exploring, queue string) {
	head, rest, _ := strings.Cut(s.queues[queue], " ")
	if s.queues[queue] = rest; rest == "" {
		delete(s.queues, queue)
	}
	var l, at int
	fmt.Sscanf(head, "%d.%d", &l, &at)
	x.finish(s, x.n.lines[l].rank, &x.todo[l][at])
}

func (x *oneExplorer) finish(s *exploring, r int, a *act) {
	if len(a.access) == 0 {
		s.given[fmt.Sprint("c", r, a.ref)]++
	}
	for _, i := range a.access {
		s.done[i] = true
		if e := &x.made[i]; e.write && e.packets {
			s.sent[fmt.Sprint(a.launch, e.at)] = true
		}
	}
}

// TestOneSidedAgreesWithAllOrders: what comes in either order in some run is told as a
// race, in launches of one size and of two. Where threads meet between any two operations,
// and all that is waited for publishes what was done before, nothing else is.
func TestOneSidedAgreesWithAllOrders(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(*programsOneSided / 4) {
		rng := rand.New(rand.NewPCG(seed, 11))
		coll := demand(t, 2, 2, 2, rng.IntN(2) == 0)
		draw := randomOneSided
		if seed%4 > 0 {
			draw = randomMeetings
		}
		flags, text := draw(rng)
		strict := seed%4 > 1 && !strings.Contains(flags, "LL")
		if strict {
			text = meetingOften(strings.ReplaceAll(text, "rlx", ""))
		}
		p := oneSided(t, coll, flags, text)
		least, most := randomSizes(rng)
		p.MinBytes, p.MaxBytes = int64(32*least), int64(32*most)
		rep := check(t, p)
		if rep.Has(CodeUndecided) || rep.Has(CodeDeadlock) {
			continue
		}
		launches := 2
		if p.OneSided.DoubleScratch {
			launches = 3
		}
		raced, decided := newOneExplorer(p, launches).races(least, most)
		told := rep.Races+rep.RacesAcross > 0
		if !decided {
			seen["given up"]++
			continue
		}
		if raced && !told || strict && raced != told {
			t.Fatalf("seed %d, sizes %d to %d, strict %v: a race %v, told %v\n%s\n%s\n%v", seed, least, most, strict, raced, told, flags, text, rep.Messages)
		}
		sizes := false
		for _, m := range rep.Messages {
			sizes = sizes || strings.Contains(m.Text, "when a launch of")
		}
		seen[fmt.Sprint("strict ", strict, " race ", raced, " sizes ", sizes)]++
	}
	t.Log(seen)
	for _, class := range []string{"strict true race true sizes true", "strict true race true sizes false", "strict true race false sizes false"} {
		if seen[class] < *programsOneSided/500 {
			t.Errorf("only %d programs of class %q", seen[class], class)
		}
	}
}

// meetingOften lets threads meet around every operation.
func meetingOften(text string) string {
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		b.WriteString(line + "\n")
		switch word, _, _ := strings.Cut(line, " "); word {
		case "", "gpu", "channels", "semaphores":
		default:
			b.WriteString("nop\n")
		}
	}
	return b.String()
}
