package checker

import (
	"context"
	"slices"
	"sort"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// execution is the program run on symbolic values in one order of its steps. In
// a program without races every order gives the same values.
type execution struct {
	m      *model
	v      *values
	now    []int32 // of a location: its value
	writer []int32 // of a location: the step that wrote it last, or None
	sent   []int32 // of a chunk touched by a sending step: the value sent
	input  []int32 // of a location: the input index whose data it held first, or None
	one    *oneRun // of a one-sided program, whose writers and chunks have other names; else nil
}

func checkResult(ctx context.Context, m *model, order []int32, rep *Report, f *findings) error {
	e := newExecution(m)
	e.sent = make([]int32, m.touched)
	for i, s := range order {
		if i&0xffff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e.run(s)
	}
	e.sent = nil
	return e.judge(ctx, rep, f)
}

// newExecution is the state before the first step.
func newExecution(m *model) *execution {
	e := &execution{m: m, v: newValues(m.nLocs), now: make([]int32, m.nLocs), writer: make([]int32, m.nLocs)}
	for i := range e.now {
		e.now[i], e.writer[i] = int32(i), ir.None
	}
	return e
}

// judge compares what the run left behind with the collective's demands.
func (e *execution) judge(ctx context.Context, rep *Report, f *findings) error {
	e.holds()
	j := &judgment{e: e, f: f}
	if err := j.outputs(ctx); err != nil {
		return err
	}
	j.inputs()
	if rep.OrderDiffers = j.orderDiffers; j.orderDiffers {
		j.tellOrder()
	}
	return nil
}

// tellOrder says that ranks add in different orders.
func (j *judgment) tellOrder() {
	if j.f.admit(CodeOrderDiffers) {
		j.f.add(&diag.Message{Severity: diag.Info, Code: CodeOrderDiffers,
			Text:       "ranks add up the same element in different orders, so that floating-point results may differ between ranks",
			Suggestion: "let one rank reduce each chunk and hand the result out"})
	}
}

// run applies one step, chunk by chunk.
func (e *execution) run(id int32) {
	s := &e.m.steps[id]
	for j := range s.count {
		var v int32
		if s.mate != ir.None {
			v = e.sent[e.m.steps[s.mate].off+j]
		}
		switch s.kind {
		case ir.Send, ir.Copy:
			v = e.now[s.src+j]
		case ir.RecvReduceSend, ir.RecvReduceCopy, ir.RecvReduceCopySend:
			v = e.v.sum(v, e.now[s.src+j])
		case ir.Reduce:
			v = e.v.sum(e.now[s.src+j], e.now[s.dst+j])
		}
		if s.dst != ir.None {
			e.now[s.dst+j], e.writer[s.dst+j] = v, id
		}
		if s.sendConn != ir.None {
			e.sent[s.off+j] = v
		}
	}
}

// holds fills in which locations held data at the start.
func (e *execution) holds() {
	e.input = make([]int32, e.m.nLocs)
	for i := range e.input {
		e.input[i] = ir.None
	}
	c := e.m.p.Coll
	for r := range e.m.ranks {
		rank := ir.Rank(r)
		n := e.m.ranks[r].input
		if c.Kind != ir.Custom { // a prefix holds data
			n = int32(sort.Search(int(n), func(i int) bool { return !c.Holds(rank, int32(i)) }))
		}
		for i := range n {
			if c.Kind != ir.Custom || c.Holds(rank, i) {
				e.input[e.m.loc(rank, ir.Place{Buf: ir.Input, Index: i})] = i
			}
		}
	}
}

// judgment compares an execution with the postcondition.
type judgment struct {
	e            *execution
	f            *findings
	orderDiffers bool

	want   []ir.Contribution
	target []int32 // leaves wanted, ascending, with repeats
	leaves []int32
	times  []uint64
}

// outputs compares every output of every rank. An allreduce wants the same of
// every rank, so each distinct value is judged once an index.
func (j *judgment) outputs(ctx context.Context) error {
	m := j.e.m
	if m.p.Coll.Kind != ir.AllReduce {
		for r := range m.ranks {
			if err := ctx.Err(); err != nil {
				return err
			}
			for i := range m.ranks[r].output {
				if j.expect(ir.Rank(r), i) {
					j.output(ir.Rank(r), i, j.holds(j.at(ir.Rank(r), i)))
				}
			}
		}
		return nil
	}
	verdicts := map[int32]bool{}
	for i := range m.ranks[0].output {
		if err := ctx.Err(); err != nil {
			return err
		}
		j.expect(0, i)
		clear(verdicts)
		for r := range m.ranks {
			x := j.at(ir.Rank(r), i)
			ok, known := verdicts[x]
			if !known {
				ok = j.holds(x)
				verdicts[x] = ok
			}
			j.output(ir.Rank(r), i, ok)
		}
		right := 0 // distinct trees over what is wanted
		for _, ok := range verdicts {
			if ok {
				right++
			}
		}
		j.orderDiffers = j.orderDiffers || right > 1
	}
	return nil
}

// at is the value of output i of rank r.
func (j *judgment) at(r ir.Rank, i int32) int32 {
	return j.e.now[j.e.m.loc(r, ir.Place{Buf: ir.Output, Index: i})]
}

// expect sets what output i of rank r must hold; false if nothing in particular.
func (j *judgment) expect(r ir.Rank, i int32) bool {
	var demanded bool
	j.want, demanded = j.e.m.p.Coll.Expect(j.want[:0], r, i)
	j.target = j.target[:0]
	for _, w := range j.want {
		j.target = append(j.target, j.e.m.loc(w.Rank, ir.Place{Buf: ir.Input, Index: w.Index}))
	}
	if !slices.IsSorted(j.target) {
		slices.Sort(j.target)
	}
	return demanded
}

// holds reports whether value x is the multiset expected. What is expected holds
// data, so junk never matches.
func (j *judgment) holds(x int32) bool {
	if x < j.e.v.leaves {
		return len(j.target) == 1 && j.target[0] == x
	}
	j.leaves, j.times = j.e.v.expand(x, j.leaves[:0], j.times[:0])
	k := 0
	for i, l := range j.leaves {
		n := uint64(0)
		for k < len(j.target) && j.target[k] == l {
			n, k = n+1, k+1
		}
		if n != j.times[i] {
			return false
		}
	}
	return k == len(j.target)
}

func (j *judgment) output(r ir.Rank, i int32, ok bool) {
	if ok || !j.f.admit(CodeWrongResult) {
		return
	}
	pl := ir.Place{Buf: ir.Output, Index: i}
	msg := j.found(r, pl, CodeWrongResult)
	wanted := make([]term, 0, len(j.want))
	for k, t := range j.target {
		if k > 0 && t == j.target[k-1] {
			wanted[len(wanted)-1].times++
			continue
		}
		wanted = append(wanted, j.termOf(t, 1))
	}
	msg.Text += ", want " + renderTerms(wanted)
	j.f.add(msg)
}

// inputs checks that an out-of-place program leaves its inputs alone.
func (j *judgment) inputs() {
	m := j.e.m
	if m.p.Coll.InPlace {
		return
	}
	for r := range m.ranks {
		for i := range m.ranks[r].input {
			pl := ir.Place{Buf: ir.Input, Index: i}
			if l := m.loc(ir.Rank(r), pl); j.e.now[l] != l && j.f.admit(CodeInputClobbered) {
				msg := j.found(ir.Rank(r), pl, CodeInputClobbered)
				msg.Text += ", but out of place an input must be left alone"
				j.f.add(msg)
			}
		}
	}
}

// found is a message that says what a place holds in the end, and why.
func (j *judgment) found(r ir.Rank, pl ir.Place, code string) *diag.Message {
	m := j.e.m
	l := m.loc(r, pl)
	msg := diag.Errorf(diag.Pos{}, code, "rank %d %s holds %s", r, j.chunkName(bufferName(pl.Buf), pl.Index), j.render(j.e.now[l]))
	if w := j.e.writer[l]; w != ir.None {
		pos, name := j.e.writerName(w)
		msg.Pos = pos
		msg.Note(pos, "last written by %s", name)
	} else {
		msg.Note(diag.Pos{}, "no step writes it")
	}
	return msg
}

// writerName is where writer w stands and what it is called.
func (e *execution) writerName(w int32) (diag.Pos, string) {
	if e.one == nil {
		return e.m.pos(w), e.m.name(w)
	}
	st := e.one.step(w)
	return e.one.m.stepPos(st), e.one.m.stepName(st)
}

// chunkName names one chunk, or the part of one that a one-sided program's chunk is.
func (j *judgment) chunkName(buf string, i int32) string {
	if j.e.one == nil {
		return rangeName(buf, i, int64(i)+1)
	}
	return j.e.one.m.partName(buf, i)
}

func (j *judgment) render(x int32) string {
	leaves, times := j.e.v.expand(x, nil, nil)
	terms := make([]term, len(leaves))
	for i, l := range leaves {
		terms[i] = j.termOf(l, times[i])
	}
	return renderTerms(terms)
}

// termOf names the first content of a location.
func (j *judgment) termOf(l int32, times uint64) term {
	r, buf, i := j.e.m.place(l)
	t := term{rank: r, times: times}
	if k := j.e.input[l]; k != ir.None {
		t.name = j.chunkName("input", k)
	} else {
		t.name, t.junk = "uninitialized "+j.chunkName(buf, i), true
	}
	return t
}
