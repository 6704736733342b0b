package checker

import (
	"context"
	"math"

	"github.com/mscclsh/mscclsh/ir"
)

// rendezvous is a program of protocol Direct as events and what must come before
// each; docs/direct.md has the rules. Step s has three events: it arrives, its own
// part is done, and it ends. The own part of a step that moves bytes is moving
// them; of another one it is that the memory it offers is ready.
type rendezvous struct {
	m     *model
	to    []int32 // of a step that sends: the step that receives it, else None
	start []int32 // event v comes after pred[start[v]:start[v+1]]
	pred  []int32
	order []int32 // all events, each after what it comes after
	moves []transfer
	at    []int32 // of a step: its transfer, or None
}

// The events of step s are s*events + one of these.
const (
	arrival = iota
	part
	ending
	events
)

// transfer is what one step moves, in one go: chunk by chunk it reads from one or
// two places, and then writes to one or two. Unused places are None. Besides the
// step itself its places belong to the steps from and to.
type transfer struct {
	step          int32
	from, to      int32 // the step pulled from, the step pushed to, or None
	reads, writes [2]int32
	count         int32
}

// judgeDirect is judge for a program without slots whose structure is right.
func judgeDirect(ctx context.Context, m *model, rep *Report, f *findings) error {
	rep.Direct, rep.Regimes, rep.SafeMaxBytes = true, []int32{}, -1
	if n := len(m.steps); n > math.MaxInt32/(3*events) {
		f.errorf(m.pos(0), CodeTooLarge, "the program has %d steps, the checker holds up to %d with protocol Direct", n, math.MaxInt32/(3*events))
		return nil
	}
	d := newRendezvous(m)
	if d.memoryless(f); f.any() {
		return nil
	}
	d.connect()
	cycle, err := d.sort(ctx)
	if err != nil {
		return err
	}
	if cycle != nil {
		d.reportDeadlock(f, cycle)
		return nil
	}
	rep.SafeMaxBytes = 0
	d.list()
	if d.overlaps(f); f.any() {
		return nil
	}
	if err := d.results(ctx, rep, f); err != nil {
		return err
	}
	return d.races(ctx, f)
}

func newRendezvous(m *model) *rendezvous {
	d := &rendezvous{m: m, to: make([]int32, len(m.steps)), at: make([]int32, len(m.steps))}
	for s := range m.steps {
		d.to[s], d.at[s] = ir.None, ir.None
	}
	for s := range m.steps {
		if mate := m.steps[s].mate; mate != ir.None {
			d.to[mate] = int32(s)
		}
	}
	return d
}

// memoryless finds messages that stand in memory at neither end: the sender keeps
// its sum in registers, and the receiver wants to read it somewhere.
func (d *rendezvous) memoryless(f *findings) {
	for s := range d.m.steps {
		to := d.to[s]
		if d.m.steps[s].kind != ir.RecvReduceSend || to == ir.None || !d.pulled(int32(s)) || !f.admit(CodeNoMemory) {
			continue
		}
		msg := errorAt(d.m, int32(s), CodeNoMemory, "%s keeps its sum in registers and %s reduces, so that the message stands in no memory",
			d.m.name(int32(s)), d.m.name(to))
		msg.Note(d.m.pos(to), "%s would read it", d.m.name(to))
		f.add(msg.Suggest("store the sum (rrcs), or receive it (r) before it is reduced"))
	}
}

// pulled reports whether step s sends and the receiver reads its memory.
func (d *rendezvous) pulled(s int32) bool {
	return d.to[s] != ir.None && d.m.steps[d.to[s]].kind.Pulls()
}

// pushes reports whether step s sends and writes into the receiver's memory.
func (d *rendezvous) pushes(s int32) bool { return d.to[s] != ir.None && !d.pulled(s) }

// moving reports whether step s moves bytes itself.
func (d *rendezvous) moving(s int32) bool {
	k := d.m.steps[s].kind
	return k.Pulls() || k == ir.Copy || k == ir.Reduce || d.pushes(s)
}

// exchanges reports whether step s is the send of an exchange.
func (d *rendezvous) exchanges(s int32) bool {
	b := d.m.tbs[d.m.steps[s].tb]
	tb := &d.m.p.GPUs[b.rank].TBs[d.m.steps[s].tb-d.m.ranks[b.rank].firstTB]
	return tb.Exchanges(s - b.first)
}

// partner is the other step of an exchange that s belongs to, or None.
func (d *rendezvous) partner(s int32) int32 {
	switch {
	case d.exchanges(s):
		return s + 1
	case s > d.m.tbs[d.m.steps[s].tb].first && d.exchanges(s-1):
		return s - 1
	}
	return ir.None
}

// connect lists what every event comes after.
func (d *rendezvous) connect() {
	d.start = make([]int32, 0, len(d.m.steps)*events+1)
	for s := range int32(len(d.m.steps)) {
		mate := d.partner(s)
		d.event()
		d.connectArrival(s, mate)
		d.event()
		d.connectPart(s)
		d.event()
		d.connectEnding(s, mate)
	}
	d.event()
}

func (d *rendezvous) event() { d.start = append(d.start, int32(len(d.pred))) }

func (d *rendezvous) after(s, event int32) { d.pred = append(d.pred, s*events+event) }

// connectArrival: a step arrives when the one before it has ended and what it
// depends on; the receive of an exchange when its send does.
func (d *rendezvous) connectArrival(s, mate int32) {
	st := &d.m.steps[s]
	switch {
	case mate == s-1 && mate != ir.None:
		d.after(mate, arrival)
		return
	case s > d.m.tbs[st.tb].first:
		d.after(s-1, ending)
	}
	for _, x := range d.m.deps[st.depStart:st.depEnd] {
		d.after(x, ending)
	}
}

// connectPart: who moves waits until all whose memory it touches have arrived, and
// what it reads there is ready. Into who doesn't, bytes may be moved by others.
func (d *rendezvous) connectPart(s int32) {
	st := &d.m.steps[s]
	d.after(s, arrival)
	if st.mate != ir.None {
		d.after(st.mate, part)
	}
	if d.pushes(s) {
		d.after(d.to[s], arrival)
	}
}

// connectEnding: a step ends when its own part is done, and when who pulls from it
// ends. The two steps of an exchange end together.
func (d *rendezvous) connectEnding(s, mate int32) {
	d.after(s, part)
	if d.pulled(s) {
		d.after(d.to[s], ending)
	}
	switch mate {
	case ir.None:
	case s + 1:
		d.after(mate, part)
	default:
		d.after(mate, ending)
	}
}

// memory is where the message of step s stands for who pulls it.
func (d *rendezvous) memory(s int32) int32 {
	if st := &d.m.steps[s]; st.kind != ir.Send {
		return st.dst
	}
	return d.m.steps[s].src
}

// list makes the transfers, in the order of the events.
func (d *rendezvous) list() {
	for _, v := range d.order {
		s := v / events
		if v%events != part || !d.moving(s) {
			continue
		}
		st := &d.m.steps[s]
		t := transfer{step: s, from: ir.None, to: ir.None, count: st.count,
			reads: [2]int32{st.src, ir.None}, writes: [2]int32{st.dst, ir.None}}
		if st.kind.Pulls() {
			t.from, t.reads[1] = st.mate, d.memory(st.mate)
		}
		if st.kind.ReadsDst() {
			t.reads[1] = st.dst
		}
		if d.pushes(s) {
			t.to, t.writes[1] = d.to[s], d.m.steps[d.to[s]].dst
			if !st.kind.Reduces() { // it reads and does not write its own memory
				t.reads[0], t.writes[0] = d.memory(s), ir.None
			}
		}
		d.at[s] = int32(len(d.moves))
		d.moves = append(d.moves, t)
	}
}

// overlaps refuses steps that pull from and push into places of one peer that
// share some chunks but not all: a chunk may be overwritten before it is read.
func (d *rendezvous) overlaps(f *findings) {
	for i := range d.moves {
		t := &d.moves[i]
		if t.from == ir.None || t.to == ir.None || t.reads[1] == t.writes[1] {
			continue
		}
		if a, b := t.reads[1], t.writes[1]; a >= b+t.count || b >= a+t.count || !f.admit(CodeOverlap) {
			continue
		}
		r, buf, x := d.m.place(t.reads[1])
		_, buf2, y := d.m.place(t.writes[1])
		f.add(errorAt(d.m, t.step, CodeOverlap, "%s reads %s of rank %d and writes %s there, which overlap", d.m.name(t.step),
			rangeName(buf, x, int64(x)+int64(t.count)), r, rangeName(buf2, y, int64(y)+int64(t.count))))
	}
}

// results runs the transfers on symbolic values and judges what they leave.
func (d *rendezvous) results(ctx context.Context, rep *Report, f *findings) error {
	e := newExecution(d.m)
	for i := range d.moves {
		if i&0xffff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		t := &d.moves[i]
		for j := range t.count {
			v := int32(ir.None)
			for _, l := range t.reads {
				switch {
				case l == ir.None:
				case v == ir.None:
					v = e.now[l+j]
				default:
					v = e.v.sum(v, e.now[l+j])
				}
			}
			for _, l := range t.writes {
				if l != ir.None {
					e.now[l+j], e.writer[l+j] = v, t.step
				}
			}
		}
	}
	return e.judge(ctx, rep, f)
}
