package cuda

import (
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// flat is a validated program in the tables that the library reads.
type flat struct {
	prog      *ir.Program
	tbs       []int32 // of each rank
	perTB     []int32 // steps of each thread block
	steps     []cStep
	deps      []cDep
	chunks    []int32 // [rank*3+buffer]
	baseBuf   []int32 // likewise: the buffer that it lies in
	baseChunk []int32 // and where it begins there
	divides   []cDivide
	conns     map[connKey]*conn
	one       *oneFlat // of a one-sided program, in place of steps, deps and conns
}

// connKey names a connection.
type connKey struct {
	src, dst ir.Rank
	channel  int32
}

// conn has one thread block that sends and one that receives, None until known.
type conn struct {
	sender, receiver int32
}

var bufferNames = [3]string{"input", "output", "scratch"}

// What the library takes, as runtime/cuda/lib/src has it.
const (
	MaxThreads   = 512     // of a thread block
	MaxSlots     = 1 << 20 // of a connection
	MaxSlotBytes = 1 << 32 // of a slot's payload
)

// flattenAny is flatten for programs of either kind.
func flattenAny(p *ir.Program) (*flat, error) {
	if p.OneSided != nil {
		return flattenOne(p)
	}
	return flatten(p)
}

// flatten checks all that execution relies on and makes the tables.
func flatten(p *ir.Program) (*flat, error) {
	switch {
	case p.OneSided != nil:
		return nil, diag.Errorf(diag.Pos{}, "one-sided",
			"run: these tables hold programs of sends and receives, and this is one of puts and signals")
	case len(p.GPUs) != int(p.Coll.Ranks):
		return nil, diag.Errorf(diag.Pos{}, "program", "run: the program has %d GPUs, its collective %d ranks",
			len(p.GPUs), p.Coll.Ranks)
	case p.Protocol != ir.Direct && (p.Transport.Slots < 1 || p.Transport.SlotBytes < 1):
		return nil, diag.Errorf(diag.Pos{}, "slots", "run: %d slots of %d bytes carry nothing",
			p.Transport.Slots, p.Transport.SlotBytes)
	case p.Protocol != ir.Direct && (p.Transport.Slots > MaxSlots || p.Transport.SlotBytes > MaxSlotBytes):
		return nil, diag.Errorf(diag.Pos{}, "slots", "run: %d slots of %d bytes: GPUs take at most %d of at most %d bytes",
			p.Transport.Slots, p.Transport.SlotBytes, MaxSlots, int64(MaxSlotBytes))
	}
	f := &flat{prog: p, conns: map[connKey]*conn{}}
	for r := range p.GPUs {
		if err := f.place(ir.Rank(r)); err != nil {
			return nil, err
		}
		f.divide(ir.Rank(r))
		f.tbs = append(f.tbs, int32(len(p.GPUs[r].TBs)))
		for t := range p.GPUs[r].TBs {
			steps := p.GPUs[r].TBs[t].Steps
			f.perTB = append(f.perTB, int32(len(steps)))
			for s := range steps {
				at := where{flat: f, rank: ir.Rank(r), tb: int32(t), index: int32(s), from: &steps[s]}
				if err := at.add(); err != nil {
					return nil, err
				}
			}
		}
	}
	return f, nil
}

// place notes the sizes of a rank's buffers and which lie in which.
func (f *flat) place(r ir.Rank) error {
	coll := f.prog.Coll
	sizes := [3]int32{coll.InputChunks(r), coll.OutputChunks(r), f.prog.GPUs[r].Scratch}
	if sizes[2] < 0 {
		return diag.Errorf(diag.Pos{}, "program", "run: rank %d has %d chunks of scratch", r, sizes[2])
	}
	for b := range ir.BufferID(3) {
		canon, index := coll.Canon(r, b, 0)
		f.chunks = append(f.chunks, sizes[b])
		f.baseBuf = append(f.baseBuf, int32(canon))
		f.baseChunk = append(f.baseChunk, index)
	}
	return nil
}

// divide lists what Avg divides on a rank: every output of several contributions,
// by their number, neighbors together.
func (f *flat) divide(r ir.Rank) {
	coll, first := f.prog.Coll, len(f.divides)
	var want []ir.Contribution
	for i := range coll.OutputChunks(r) {
		if want, _ = coll.Expect(want[:0], r, i); len(want) < 2 {
			continue
		}
		if n := len(f.divides); n > first {
			d := &f.divides[n-1]
			if d.chunk+d.count == i && int(d.divisor) == len(want) {
				d.count++
				continue
			}
		}
		f.divides = append(f.divides, cDivide{int32(r), i, 1, int32(len(want))})
	}
}

// where is a step on its way into the tables, and who to name if it is refused.
type where struct {
	flat  *flat
	rank  ir.Rank
	tb    int32
	index int32
	from  *ir.Step
}

func (w *where) bad(code, format string, args ...any) error {
	return diag.Errorf(w.flat.prog.Pos(w.from.Pos), code, "run: rank %d thread block %d step %d (%v): "+format,
		append([]any{w.rank, w.tb, w.index, w.from.Kind}, args...)...)
}

// add checks the step and appends it to the tables.
func (w *where) add() error {
	from := w.from
	st := cStep{kind: int32(from.Kind), count: from.Count, sendPeer: ir.None, recvPeer: ir.None, channel: from.Chan}
	switch {
	case from.Kind > ir.Reduce:
		return w.bad("program", "not a known kind of step")
	case from.Kind == ir.Nop:
		st.count, st.channel = 0, 0
	case st.count < 1:
		return w.bad("program", "a count of %d chunks", st.count)
	}
	if from.Post {
		st.post = 1
	}
	if from.Kind.ReadsSrc() {
		if err := w.bounds("source", from.Src); err != nil {
			return err
		}
		st.srcBuf, st.srcChunk = int32(from.Src.Buf), from.Src.Index
	}
	if from.Kind.WritesDst() {
		if err := w.bounds("destination", from.Dst); err != nil {
			return err
		}
		st.dstBuf, st.dstChunk = int32(from.Dst.Buf), from.Dst.Index
	}
	if err := w.connect(&st); err != nil {
		return err
	}
	if err := w.wait(&st); err != nil {
		return err
	}
	w.flat.steps = append(w.flat.steps, st)
	return nil
}

// bounds refuses places that the rank's buffers don't have.
func (w *where) bounds(what string, at ir.Place) error {
	name, have := "no buffer", int32(0)
	if at.Buf >= 0 && at.Buf <= ir.FirstScratch {
		name, have = bufferNames[at.Buf], w.flat.chunks[3*int32(w.rank)+int32(at.Buf)]
	}
	if end := int64(at.Index) + int64(w.from.Count); at.Index < 0 || end > int64(have) {
		return w.bad("bounds", "%s is %s[%d:%d], which has %d chunks", what, name, at.Index, end, have)
	}
	return nil
}

// wait adds what the step waits for. A step that doesn't post stands for the next
// one of its thread block that does.
func (w *where) wait(st *cStep) error {
	p, f := w.flat.prog, w.from
	if f.DepStart < 0 || f.DepEnd < f.DepStart || int(f.DepEnd) > len(p.Deps) {
		return w.bad("bad-dependency", "dependencies %d:%d of %d", f.DepStart, f.DepEnd, len(p.Deps))
	}
	tbs := p.GPUs[w.rank].TBs
	st.depStart = int32(len(w.flat.deps))
	for _, d := range p.DepsOf(f) {
		if d.TB < 0 || int(d.TB) >= len(tbs) || d.Step < 0 || int(d.Step) >= len(tbs[d.TB].Steps) {
			return w.bad("bad-dependency", "waits for thread block %d step %d, which does not exist", d.TB, d.Step)
		}
		steps := tbs[d.TB].Steps
		s := d.Step
		for int(s) < len(steps) && !steps[s].Post {
			s++
		}
		if int(s) == len(steps) {
			return w.bad("bad-dependency", "waits for thread block %d step %d, which is never posted", d.TB, d.Step)
		}
		w.flat.deps = append(w.flat.deps, cDep{d.TB, s})
	}
	st.depEnd = int32(len(w.flat.deps))
	return nil
}

// connect checks the step's connections; each end has one owner.
func (w *where) connect(st *cStep) error {
	if w.from.Kind.Sends() {
		c, err := w.conn(w.rank, w.from.SendPeer)
		if err == nil {
			err = w.own(&c.sender, "sends", w.rank, w.from.SendPeer)
		}
		if err != nil {
			return err
		}
		st.sendPeer = int32(w.from.SendPeer)
	}
	if w.from.Kind.Receives() {
		c, err := w.conn(w.from.RecvPeer, w.rank)
		if err == nil {
			err = w.own(&c.receiver, "receives", w.from.RecvPeer, w.rank)
		}
		if err != nil {
			return err
		}
		st.recvPeer = int32(w.from.RecvPeer)
	}
	return nil
}

func (w *where) conn(src, dst ir.Rank) (*conn, error) {
	n := ir.Rank(w.flat.prog.Coll.Ranks)
	if src < 0 || src >= n || dst < 0 || dst >= n || src == dst || w.from.Chan < 0 {
		return nil, w.bad("program", "no connection goes from rank %d to rank %d on channel %d", src, dst, w.from.Chan)
	}
	key := connKey{src, dst, w.from.Chan}
	c := w.flat.conns[key]
	if c == nil {
		c = &conn{ir.None, ir.None}
		w.flat.conns[key] = c
	}
	return c, nil
}

func (w *where) own(owner *int32, what string, src, dst ir.Rank) error {
	if *owner != ir.None && *owner != w.tb {
		return w.bad("connection-owner", "thread block %d already %s on channel %d from rank %d to rank %d",
			*owner, what, w.from.Chan, src, dst)
	}
	*owner = w.tb
	return nil
}

// traffic is what a run sends over connections: messages in all tiles, and chunks.
func (f *flat) traffic(regime int32, tiles int64) (messages, chunks int64) {
	for i := range f.steps {
		if st := &f.steps[i]; ir.StepKind(st.kind).Sends() {
			messages += tiles * int64(ir.Messages(st.count, regime))
			chunks += int64(st.count)
		}
	}
	return messages, chunks
}

// deviceOf maps n ranks onto devices in blocks; devices beyond the ranks stay idle.
func deviceOf(n int, devices []int32) []int32 {
	out := make([]int32, n)
	used := min(n, len(devices))
	for r := range out {
		out[r] = devices[r*used/n]
	}
	return out
}

// Validate refuses programs that Comm.Load would refuse, without a GPU.
func Validate(p *ir.Program) error {
	if p == nil || p.Spec == nil {
		return diag.Errorf(diag.Pos{}, "program", "run: there is no program")
	}
	_, err := flattenAny(p)
	return err
}
