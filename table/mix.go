package table

import (
	"cmp"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// mixable reports whether some ranks may run program a while others run b, and all get
// what either gives, bit for bit, without a deadlock.
//
// It is enough that (1) on every connection both send the same messages in the same
// order: as many chunks, made of the same inputs added up in the same order; (2) every
// rank's steps that send or receive are the same ones and wait for one another alike,
// so that every argument about the order of the whole (slots, deadlocks) that holds for
// one holds for the mixture; (3) the outputs are made alike. What is local may differ:
// where things lie, copies, steps that only keep house.
func mixable(a, b *ir.Program) bool {
	if a.Transport != b.Transport || a.Protocol != b.Protocol || len(a.GPUs) != len(b.GPUs) {
		return false
	}
	terms := terms{}
	x, okA := trace(a, terms)
	y, okB := trace(b, terms)
	if !okA || !okB || len(x.sent) != len(y.sent) {
		return false
	}
	for k, messages := range x.sent {
		if !slices.EqualFunc(messages, y.sent[k], slices.Equal) {
			return false
		}
	}
	for r := range a.GPUs {
		if !slices.Equal(x.outputs(ir.Rank(r)), y.outputs(ir.Rank(r))) || !sameTalk(a, b, r) {
			return false
		}
	}
	return true
}

// connection is one direction between two ranks on a channel.
type connection struct {
	src, dst ir.Rank
	channel  int32
}

// terms gives a number to every sum of inputs by how it was made: an input of a rank, or
// two terms in either order, as an addition gives the same bits both ways.
type terms map[[3]int32]int32

func (t terms) input(r ir.Rank, i int32) int32 { return t.number([3]int32{-1, int32(r), i}) }

func (t terms) sum(a, b int32) int32 { return t.number([3]int32{-2, min(a, b), max(a, b)}) }

func (t terms) number(key [3]int32) int32 {
	n, known := t[key]
	if !known {
		n = int32(len(t)) + 1 // 0 is what nobody wrote
		t[key] = n
	}
	return n
}

// tracer runs a program on terms, with as many slots as it likes: what a program without
// races computes doesn't depend on the order of its steps.
type tracer struct {
	prog  *ir.Program
	terms terms
	mem   []map[ir.Place]int32     // of each rank, by canonical place
	next  [][]int32                // of each thread block: the step that is due
	sent  map[connection][][]int32 // all messages: the terms of their chunks
	taken map[connection]int       // how many of them were received
}

// trace runs p to its end; false if it doesn't get there.
func trace(p *ir.Program, t terms) (*tracer, bool) {
	x := &tracer{prog: p, terms: t, sent: map[connection][][]int32{}, taken: map[connection]int{}}
	for r := range p.GPUs {
		mem := map[ir.Place]int32{}
		for i := range p.Coll.InputChunks(ir.Rank(r)) {
			if p.Coll.Holds(ir.Rank(r), i) {
				buf, at := p.Coll.Canon(ir.Rank(r), ir.Input, i)
				mem[ir.Place{Buf: buf, Index: at}] = t.input(ir.Rank(r), i)
			}
		}
		x.mem = append(x.mem, mem)
		x.next = append(x.next, make([]int32, len(p.GPUs[r].TBs)))
	}
	for moved := true; moved; {
		moved = false
		for r := range p.GPUs {
			for b := range p.GPUs[r].TBs {
				for x.step(ir.Rank(r), b) {
					moved = true
				}
			}
		}
	}
	for r := range x.next {
		for b, n := range x.next[r] {
			if int(n) < len(p.GPUs[r].TBs[b].Steps) {
				return x, false
			}
		}
	}
	return x, true
}

// step runs the step that is due on a thread block, if what it waits for has happened.
func (x *tracer) step(r ir.Rank, b int) bool {
	steps := x.prog.GPUs[r].TBs[b].Steps
	n := x.next[r][b]
	if int(n) >= len(steps) {
		return false
	}
	s := &steps[n]
	for _, d := range x.prog.DepsOf(s) {
		if x.next[r][d.TB] <= d.Step {
			return false
		}
	}
	var arrived []int32
	if s.Kind.Receives() {
		c := connection{s.RecvPeer, r, s.Chan}
		k := x.taken[c]
		if k >= len(x.sent[c]) {
			return false
		}
		arrived = x.sent[c][k]
		if len(arrived) != int(s.Count) {
			return false
		}
		x.taken[c] = k + 1
	}
	x.move(r, s, arrived)
	x.next[r][b]++
	return true
}

// move does what a step does, chunk by chunk.
func (x *tracer) move(r ir.Rank, s *ir.Step, arrived []int32) {
	var out []int32
	for j := range s.Count {
		var v int32
		if arrived != nil {
			v = arrived[j]
		}
		src, dst := x.at(r, s.Src, j), x.at(r, s.Dst, j)
		switch s.Kind {
		case ir.Send, ir.Copy:
			v = x.mem[r][src]
		case ir.RecvReduceSend, ir.RecvReduceCopy, ir.RecvReduceCopySend:
			v = x.terms.sum(v, x.mem[r][src])
		case ir.Reduce:
			v = x.terms.sum(x.mem[r][src], x.mem[r][dst])
		}
		if s.Kind.WritesDst() {
			x.mem[r][dst] = v
		}
		out = append(out, v)
	}
	if s.Kind.Sends() {
		c := connection{r, s.SendPeer, s.Chan}
		x.sent[c] = append(x.sent[c], out)
	}
}

// at is the canonical place of chunk j of a run.
func (x *tracer) at(r ir.Rank, p ir.Place, j int32) ir.Place {
	if !p.Valid() {
		return p
	}
	buf, index := x.prog.Coll.Canon(r, p.Buf, p.Index+j)
	return ir.Place{Buf: buf, Index: index}
}

// outputs are the terms of what a rank ends with, where something is demanded.
func (x *tracer) outputs(r ir.Rank) []int32 {
	var list []int32
	var want []ir.Contribution
	for i := range x.prog.Coll.OutputChunks(r) {
		if _, demanded := x.prog.Coll.Expect(want[:0], r, i); demanded {
			list = append(list, x.mem[r][x.at(r, ir.Place{Buf: ir.Output, Index: i}, 0)])
		}
	}
	return list
}

// talk is a step that sends or receives: which message of which connections, and which
// of the rank's other such steps must be done before it.
type talk struct {
	send, recv connection
	sendNo     int // the how manyth message of the connection
	recvNo     int
	count      int32
	after      []int // indexes in the rank's list, ascending
}

// sameTalk reports whether rank r sends and receives alike in both programs.
func sameTalk(a, b *ir.Program, r int) bool {
	return slices.EqualFunc(talks(a, r), talks(b, r), func(x, y talk) bool {
		return x.send == y.send && x.recv == y.recv && x.sendNo == y.sendNo && x.recvNo == y.recvNo && x.count == y.count &&
			slices.Equal(x.after, y.after)
	})
}

// talks lists a rank's steps that send or receive, ordered by what they send and receive.
func talks(p *ir.Program, r int) []talk {
	tbs := p.GPUs[r].TBs
	nobody := connection{ir.None, ir.None, ir.None}
	var list []talk
	id := map[ir.Dep]int{} // in the order of the program
	counts := map[connection]int{}
	for b := range tbs {
		for i := range tbs[b].Steps {
			s := &tbs[b].Steps[i]
			if !s.Kind.Sends() && !s.Kind.Receives() {
				continue
			}
			t := talk{send: nobody, recv: nobody, count: s.Count}
			if s.Kind.Sends() {
				t.send = connection{ir.Rank(r), s.SendPeer, s.Chan}
				t.sendNo = counts[t.send]
				counts[t.send]++
			}
			if s.Kind.Receives() {
				t.recv = connection{s.RecvPeer, ir.Rank(r), s.Chan}
				t.recvNo = counts[t.recv]
				counts[t.recv]++
			}
			id[ir.Dep{TB: int32(b), Step: int32(i)}] = len(list)
			list = append(list, t)
		}
	}
	return sorted(list, waits(p, r, id, len(list)))
}

// sorted brings steps into an order that doesn't depend on thread blocks, and fills in
// what each comes after.
func sorted(list []talk, before [][]bool) []talk {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	byEnds := func(x, y connection) int {
		return cmp.Or(cmp.Compare(x.src, y.src), cmp.Compare(x.dst, y.dst), cmp.Compare(x.channel, y.channel))
	}
	slices.SortFunc(order, func(i, j int) int {
		x, y := &list[i], &list[j]
		return cmp.Or(byEnds(x.send, y.send), cmp.Compare(x.sendNo, y.sendNo), byEnds(x.recv, y.recv), cmp.Compare(x.recvNo, y.recvNo))
	})
	place := make([]int, len(list))
	for at, i := range order {
		place[i] = at
	}
	out := make([]talk, len(list))
	for at, i := range order {
		out[at] = list[i]
		for j, b := range before[i] {
			if b {
				out[at].after = append(out[at].after, place[j])
			}
		}
		slices.Sort(out[at].after)
	}
	return out
}

// waits finds which talking steps of a rank must be done before which, through steps
// that don't talk too.
func waits(p *ir.Program, r int, id map[ir.Dep]int, n int) [][]bool {
	tbs := p.GPUs[r].TBs
	done := make([][][]bool, len(tbs)) // of each step: the talking ones that are done when it is
	for b := range tbs {
		done[b] = make([][]bool, len(tbs[b].Steps))
	}
	var visit func(b, i int32) []bool
	visit = func(b, i int32) []bool {
		if done[b][i] != nil {
			return done[b][i]
		}
		set := make([]bool, n)
		done[b][i] = set // a program that was judged has no cycles
		join := func(b, i int32) {
			for k, x := range visit(b, i) {
				set[k] = set[k] || x
			}
		}
		if i > 0 {
			join(b, i-1)
		}
		for _, d := range p.DepsOf(&tbs[b].Steps[i]) {
			join(d.TB, d.Step)
		}
		if k, talks := id[ir.Dep{TB: b, Step: i}]; talks {
			set[k] = true
		}
		return set
	}
	out := make([][]bool, n)
	for at, k := range id {
		set := slices.Clone(visit(at.TB, at.Step))
		set[k] = false
		out[k] = set
	}
	return out
}
