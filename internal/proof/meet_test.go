package proof

import (
	"math/rand/v2"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// hall is a program of protocol Direct as thread blocks that meet. It knows no order
// but what docs/direct.md says that a step waits for at this moment, and finds out
// the rest by running: in random order, a half of a chunk at a time; and with single
// moves held up for ever, to see what can happen meanwhile.
type hall struct {
	m     *machine // for its numbers of locations
	steps []guest
}

// guest is a step of some thread block.
type guest struct {
	st       *ir.Step
	before   int   // the step before it in its thread block, or none
	needs    []int // what it depends on
	from, to int   // whose message it gets, and who gets its own, or none
	sendOf   int   // the send of the exchange that it receives for, or none
	recvOf   int   // the receive of the exchange that it sends for, or none
	src, dst int32
	itself   bool
}

// phase is how far a step has come.
type phase uint8

const (
	away   phase = iota
	here         // arrived
	moving       // has begun to move
	there        // its part is done
	gone         // ended
)

func newHall(p *ir.Program) *hall {
	h := &hall{m: newMachine(p, 1)}
	sends, receives := map[connKey][]int{}, map[connKey][]int{}
	for r := range p.GPUs {
		rank := ir.Rank(r)
		var first []int
		for t := range p.GPUs[r].TBs {
			first = append(first, len(h.steps))
			steps := p.GPUs[r].TBs[t].Steps
			for s := range steps {
				st := &steps[s]
				g := guest{st: st, before: none, from: none, to: none, sendOf: none, recvOf: none, src: none, dst: none}
				id := len(h.steps)
				if s > 0 {
					g.before = id - 1
				}
				if st.Kind.ReadsSrc() {
					g.src = h.m.cell(rank, st.Src)
				}
				if st.Kind.WritesDst() {
					g.dst = h.m.cell(rank, st.Dst)
				}
				g.itself = st.Kind == ir.Copy && g.src == g.dst
				if st.Kind.Sends() {
					k := connKey{rank, st.SendPeer, st.Chan}
					sends[k] = append(sends[k], id)
				}
				if st.Kind.Receives() {
					k := connKey{st.RecvPeer, rank, st.Chan}
					receives[k] = append(receives[k], id)
				}
				if s > 0 && st.Kind == ir.Recv && steps[s-1].Kind == ir.Send && steps[s-1].SendPeer == st.RecvPeer && len(p.DepsOf(st)) == 0 {
					g.sendOf, h.steps[id-1].recvOf = id-1, id
				}
				h.steps = append(h.steps, g)
			}
		}
		for t := range p.GPUs[r].TBs {
			for s := range p.GPUs[r].TBs[t].Steps {
				g := &h.steps[first[t]+s]
				for _, d := range p.DepsOf(g.st) {
					g.needs = append(g.needs, first[d.TB]+int(d.Step))
				}
			}
		}
	}
	for k, list := range sends {
		for i, s := range list {
			h.steps[s].to, h.steps[receives[k][i]].from = receives[k][i], s
		}
	}
	return h
}

// reducing reports whether a step that receives reduces what it gets.
func reducing(k ir.StepKind) bool {
	return k == ir.RecvReduceCopy || k == ir.RecvReduceSend || k == ir.RecvReduceCopySend
}

// pulled reports whether the receiver fetches the message of step s.
func (h *hall) pulled(s int) bool {
	to := h.steps[s].to
	return to != none && reducing(h.steps[to].st.Kind)
}

func (h *hall) pushes(s int) bool { return h.steps[s].to != none && !h.pulled(s) }

func (h *hall) moves(s int) bool {
	k := h.steps[s].st.Kind
	return k == ir.Copy || k == ir.Reduce || reducing(k) || h.pushes(s)
}

// lost reports whether a message stands in memory nowhere.
func (h *hall) lost() bool {
	for s := range h.steps {
		if h.steps[s].st.Kind == ir.RecvReduceSend && h.pulled(s) {
			return true
		}
	}
	return false
}

// touches lists the first locations that step s reads and writes when it moves.
func (h *hall) touches(s int) (reads, writes []int32) {
	g := &h.steps[s]
	k := g.st.Kind
	if reducing(k) {
		x := &h.steps[g.from]
		if x.st.Kind == ir.Send {
			reads = append(reads, x.src)
		} else {
			reads = append(reads, x.dst)
		}
	}
	if k == ir.RecvCopySend {
		reads = append(reads, g.dst)
	} else {
		reads = append(reads, g.src)
	}
	if k == ir.Reduce {
		reads = append(reads, g.dst)
	}
	if g.dst != none && k != ir.RecvCopySend {
		writes = append(writes, g.dst)
	}
	if h.pushes(s) {
		writes = append(writes, h.steps[g.to].dst)
	}
	return reads, writes
}

// shifted reports whether a step reads and writes places that share some chunks but
// not all.
func (h *hall) shifted() bool {
	for s := range h.steps {
		if !h.moves(s) {
			continue
		}
		reads, writes := h.touches(s)
		for _, a := range reads {
			for _, b := range writes {
				if gap := max(a-b, b-a); gap > 0 && gap < h.steps[s].st.Count && (reducing(h.steps[s].st.Kind) || h.pushes(s)) {
					return true
				}
			}
		}
	}
	return false
}

// visit is a run in progress.
type visit struct {
	h    *hall
	at   []phase
	held int // a step whose move never ends, or none
}

func (h *hall) visit(held int) *visit {
	return &visit{h: h, at: make([]phase, len(h.steps)), held: held}
}

func (v *visit) is(s int, p phase) bool { return s == none || v.at[s] >= p }

// can reports whether step s can go on to its next phase.
func (v *visit) can(s int) bool {
	g := &v.h.steps[s]
	switch v.at[s] {
	case away:
		if g.sendOf != none {
			return v.at[g.sendOf] >= here
		}
		for _, n := range g.needs {
			if v.at[n] < gone {
				return false
			}
		}
		return v.is(g.before, gone) && (g.before == none || v.is(v.h.steps[g.before].sendOf, gone))
	case here:
		switch {
		case g.from != none && v.at[g.from] < there:
			return false // it isn't ready to be pulled, or not pushed yet
		case v.h.pushes(s):
			return v.at[g.to] >= here
		}
		return true
	case moving:
		return s != v.held
	case there:
		other := max(g.sendOf, g.recvOf)
		for _, x := range []int{s, other} {
			if !v.is(x, there) || x != none && v.h.pulled(x) && v.at[v.h.steps[x].to] < gone {
				return false
			}
		}
		return true
	}
	return false
}

// next moves step s on. One that moves nothing has no phase for it.
func (v *visit) next(s int) {
	if v.at[s]++; v.at[s] == moving && !v.h.moves(s) {
		v.at[s] = there
	}
}

// settle goes on until nobody can, and reports whether all are gone.
func (v *visit) settle() bool {
	all := false
	for moved := true; moved; {
		moved, all = false, true
		for s := range v.h.steps {
			for v.can(s) {
				v.next(s)
				moved = true
			}
			all = all && v.at[s] == gone
		}
	}
	return all
}

// rivals lists for each step those whose moves conflict with its own and can be
// under way at the same time.
func (h *hall) rivals() [][]int {
	begun := make([][]bool, len(h.steps)) // with the move of the first held up
	for s := range h.steps {
		begun[s] = make([]bool, len(h.steps))
		if !h.moves(s) {
			continue
		}
		v := h.visit(s)
		v.settle()
		for t := range h.steps {
			begun[s][t] = v.at[t] >= moving
		}
	}
	out := make([][]int, len(h.steps))
	for s := range h.steps {
		for t := range h.steps {
			if s != t && h.moves(s) && h.moves(t) && begun[s][t] && begun[t][s] && h.conflict(s, t) {
				out[s] = append(out[s], t)
			}
		}
	}
	return out
}

func (h *hall) conflict(s, t int) bool {
	meet := func(as, bs []int32) bool {
		for _, a := range as {
			for _, b := range bs {
				if a < b+h.steps[t].st.Count && b < a+h.steps[s].st.Count {
					return true
				}
			}
		}
		return false
	}
	sr, sw := h.touches(s)
	tr, tw := h.touches(t)
	if h.steps[s].itself {
		sw = nil
	}
	if h.steps[t].itself {
		tw = nil
	}
	return meet(sr, tw) || meet(sw, tr) || meet(sw, tw)
}

// walk runs all steps in an order drawn by rng, a half of a chunk at a time, and
// returns the memory of either half.
func (h *hall) walk(rng *rand.Rand, vals *values) [2][]int32 {
	var mem [2][]int32
	for i := range mem {
		mem[i] = make([]int32, h.m.cells)
		for c := range mem[i] {
			mem[i][c] = int32(c)
		}
	}
	v := h.visit(none)
	left := make([][]int, len(h.steps)) // of a move under way: what is still to be moved
	for {
		var can []int
		for s := range h.steps {
			if v.can(s) {
				can = append(can, s)
			}
		}
		if len(can) == 0 {
			return mem
		}
		s := can[rng.IntN(len(can))]
		if v.at[s] != moving {
			if v.next(s); v.at[s] == moving {
				left[s] = rng.Perm(2 * int(h.steps[s].st.Count))
			}
			continue
		}
		if n := len(left[s]); n > 0 {
			e := left[s][n-1]
			left[s] = left[s][:n-1]
			h.element(s, int32(e/2), mem[e%2], vals)
			continue
		}
		v.next(s)
	}
}

// element moves half of chunk j of step s.
func (h *hall) element(s int, j int32, mem []int32, vals *values) {
	reads, writes := h.touches(s)
	x := mem[reads[0]+j]
	for _, r := range reads[1:] {
		x = vals.sum(x, mem[r+j])
	}
	for _, w := range writes {
		mem[w+j] = x
	}
}

// observed runs all steps one by one with torn values, and reports whether
// something torn can be observed: a read that races with a write is torn, and of
// two writes that race the later one; a copy onto itself may undo a write.
func (h *hall) observed(rivals [][]int) bool {
	mem := make([]bool, h.m.cells)
	done := make([]bool, len(h.steps))
	covers := func(t int, places []int32, cell int32) bool {
		return slices.ContainsFunc(places, func(p int32) bool { return p <= cell && cell < p+h.steps[t].st.Count })
	}
	racing := func(s int, cell int32, isWrite bool) bool {
		return slices.ContainsFunc(rivals[s], func(t int) bool {
			_, writes := h.touches(t)
			if !covers(t, writes, cell) {
				return false
			}
			if h.steps[t].itself {
				return isWrite
			}
			return !isWrite || done[t]
		})
	}
	v := h.visit(none)
	for moved := true; moved; {
		moved = false
		for s := range h.steps {
			for v.can(s) {
				if v.at[s] == moving && !h.steps[s].itself {
					reads, writes := h.touches(s)
					for j := range h.steps[s].st.Count {
						torn := false
						for _, r := range reads {
							torn = torn || mem[r+j] || racing(s, r+j, false)
						}
						for _, w := range writes {
							mem[w+j] = torn || racing(s, w+j, true)
						}
					}
				}
				if v.at[s] == moving {
					done[s] = true
				}
				v.next(s)
				moved = true
			}
		}
	}
	for _, d := range h.m.demands() {
		if mem[d.cell] {
			return true
		}
	}
	return false
}

// decideDirect judges a program of protocol Direct.
func decideDirect(p *ir.Program, walks int) (verdict, error) {
	var out verdict
	if out.errors = brokenRules(p); out.errors != 0 {
		return out, nil
	}
	h := newHall(p)
	switch {
	case h.lost():
		out.errors = memoryless
		return out, nil
	case !h.visit(none).settle():
		out.errors = deadlock
		return out, nil
	case h.shifted():
		out.errors = overlap
		return out, nil
	}
	rivals := h.rivals()
	any := slices.ContainsFunc(rivals, func(list []int) bool { return len(list) > 0 })
	if any && h.observed(rivals) {
		out.errors |= race
	}
	out.deadRace = any && out.errors&race == 0
	vals, demands := newValues(h.m.cells), h.m.demands()
	rng := rand.New(rand.NewPCG(uint64(len(h.steps)), 0x6d656574)) // any constants
	results, ends := map[classes]bool{}, map[string]bool{}
	for range walks {
		mem := h.walk(rng, vals)
		for _, half := range mem {
			c := wrong(demands, vals, half)
			results[c] = true
			out.errors |= c
			ends[keyOf(half)] = true
		}
	}
	switch {
	case out.errors&race == 0 && len(results) > 1:
		return out, oracleError("no race can be observed, but results differ: %v", results)
	case !any && len(ends) > 1:
		return out, oracleError("there is no race, but memories differ in the end")
	}
	return out, nil
}
