package cpu

import (
	"math/bits"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// step is an ir.Step with everything resolved.
type step struct {
	kind    ir.StepKind
	post    bool
	count   int32
	in, out *conn
	src     int64 // byte offset in the rank's memory of the range's first chunk
	dst     int64
	goals   []goal
}

// goal is a step of another thread block that must have been posted.
type goal struct {
	of   *worker
	step int32
}

// rankMemory is where a rank's buffers lie in its memory; in place, input and
// output overlap as the collective says.
type rankMemory struct {
	base   [3]int64 // byte offset of input, output and scratch
	chunks [3]int32
	size   int64
	bytes  []byte
}

// plan is a program bound to a size: memory laid out, connections found, steps
// resolved. Nothing is allocated for data before allocate.
type plan struct {
	prog    *ir.Program
	layout  *runtime.Layout
	regime  int32
	tile    int64 // bytes of a chunk that one turn of the outer loop moves
	tiles   int64
	ranks   []rankMemory
	workers []*worker
	conns   []*conn
	one     *oneSided // nil for a program of steps
}

type connKey struct {
	src, dst ir.Rank
	channel  int32
}

// newPlan checks all that execution relies on and resolves the steps.
func newPlan(p *ir.Program, l *runtime.Layout) (*plan, error) {
	size := int64(l.DType.Size())
	t := p.Transport
	switch {
	case len(p.GPUs) != int(p.Coll.Ranks):
		return nil, diag.Errorf(diag.Pos{}, "program", "run: the program has %d GPUs, its collective %d ranks",
			len(p.GPUs), p.Coll.Ranks)
	case p.Direct():
		if t != (ir.Transport{}) {
			return nil, diag.Errorf(diag.Pos{}, "slots", "run: protocol Direct has no slots, got %d of %d bytes", t.Slots, t.SlotBytes)
		}
	case t.Slots < 1 || t.SlotBytes < size:
		return nil, diag.Errorf(diag.Pos{}, "slots", "run: %d slots of %d bytes can't carry %v",
			t.Slots, t.SlotBytes, l.DType)
	}
	pl := &plan{prog: p, layout: l, regime: t.Regime(l.PaddedBytes(), l.Chunks)}
	pl.tile = l.ChunkBytes()
	if !p.Direct() {
		pl.tile = min(t.SlotBytes/size*size, pl.tile)
	}
	if pl.tile > 0 {
		pl.tiles = (l.ChunkBytes() + pl.tile - 1) / pl.tile
	}
	pl.ranks = make([]rankMemory, len(p.GPUs))
	for r := range pl.ranks {
		if err := pl.placeRank(ir.Rank(r)); err != nil {
			return nil, err
		}
	}
	if err := pl.resolve(); err != nil || !p.Direct() {
		return pl, err
	}
	return pl, pl.meet()
}

// placeRank lays a rank's buffers out.
func (pl *plan) placeRank(r ir.Rank) error {
	m, coll, chunk := &pl.ranks[r], pl.prog.Coll, pl.layout.ChunkBytes()
	m.chunks = [3]int32{coll.InputChunks(r), coll.OutputChunks(r), pl.prog.GPUs[r].Scratch}
	if m.chunks[2] < 0 {
		return diag.Errorf(diag.Pos{}, "program", "run: rank %d has %d chunks of scratch", r, m.chunks[2])
	}
	var region [3]int64
	for b := range ir.BufferID(3) {
		if canon, _ := coll.Canon(r, b, 0); canon == b {
			size := uint64(m.chunks[b])
			if pl.one != nil {
				m.size = (m.size + 15) &^ 15
				if b == ir.FirstScratch && pl.prog.OneSided.Packets {
					size *= 2
				}
			}
			region[b] = m.size
			hi, lo := bits.Mul64(uint64(chunk), size)
			if hi != 0 || lo > 1<<60 {
				return diag.Errorf(diag.Pos{}, "memory", "run: rank %d needs %d chunks of %s for its %s",
					r, m.chunks[b], runtime.FormatBytes(chunk), bufferNames[b])
			}
			m.size += int64(lo)
		}
	}
	for b := range ir.BufferID(3) {
		canon, index := coll.Canon(r, b, 0)
		m.base[b] = region[canon] + int64(index)*chunk
	}
	return nil
}

var bufferNames = [3]string{"input", "output", "scratch"}

// chunk is the memory of chunk i of buffer b.
func (m *rankMemory) chunk(b ir.BufferID, i int32, size int64) []byte {
	at := m.base[b] + int64(i)*size
	return m.bytes[at : at+size]
}

// resolve makes workers and connections.
func (pl *plan) resolve() error {
	p := pl.prog
	workers := make([][]*worker, len(p.GPUs))
	for r := range p.GPUs {
		workers[r] = make([]*worker, len(p.GPUs[r].TBs))
		for t := range workers[r] {
			w := &worker{rank: ir.Rank(r), tb: int32(t), wake: make(chan struct{}, 1)}
			w.steps = make([]step, len(p.GPUs[r].TBs[t].Steps))
			workers[r][t] = w
			pl.workers = append(pl.workers, w)
		}
	}
	conns := map[connKey]*conn{}
	for r := range p.GPUs {
		for t := range p.GPUs[r].TBs {
			for s := range p.GPUs[r].TBs[t].Steps {
				if err := pl.resolveStep(workers, conns, workers[r][t], int32(s)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (pl *plan) resolveStep(workers [][]*worker, conns map[connKey]*conn, w *worker, i int32) error {
	from := &pl.prog.GPUs[w.rank].TBs[w.tb].Steps[i]
	bad := func(code, format string, args ...any) error {
		return diag.Errorf(pl.prog.Pos(from.Pos), code, "run: rank %d thread block %d step %d (%v): "+format,
			append([]any{w.rank, w.tb, i, from.Kind}, args...)...)
	}
	st := &w.steps[i]
	*st = step{kind: from.Kind, post: from.Post, count: from.Count}
	if from.Kind > ir.Reduce {
		return bad("program", "not a known kind of step")
	}
	if from.Kind == ir.Nop {
		st.count = 0
	} else if from.Count < 1 {
		return bad("program", "a count of %d chunks", from.Count)
	}
	m := &pl.ranks[w.rank]
	place := func(what string, at ir.Place) (int64, error) {
		if at.Buf < 0 || at.Buf > ir.FirstScratch || at.Index < 0 ||
			int64(at.Index)+int64(from.Count) > int64(m.chunks[at.Buf]) {
			have := int32(0)
			name := "no buffer"
			if at.Buf >= 0 && at.Buf <= ir.FirstScratch {
				have, name = m.chunks[at.Buf], bufferNames[at.Buf]
			}
			return 0, bad("bounds", "%s is %s[%d:%d], which has %d chunks",
				what, name, at.Index, int64(at.Index)+int64(from.Count), have)
		}
		return m.base[at.Buf] + int64(at.Index)*pl.layout.ChunkBytes(), nil
	}
	var err error
	if from.Kind.ReadsSrc() {
		if st.src, err = place("source", from.Src); err != nil {
			return err
		}
	}
	if from.Kind.WritesDst() {
		if st.dst, err = place("destination", from.Dst); err != nil {
			return err
		}
	}
	deps, n := pl.prog.Deps, int32(len(pl.prog.Deps))
	if from.DepStart < 0 || from.DepEnd < from.DepStart || from.DepEnd > n {
		return bad("bad-dependency", "dependencies %d:%d of %d", from.DepStart, from.DepEnd, n)
	}
	for _, d := range deps[from.DepStart:from.DepEnd] {
		tbs := workers[w.rank]
		if d.TB < 0 || int(d.TB) >= len(tbs) || d.Step < 0 || int(d.Step) >= len(tbs[d.TB].steps) {
			return bad("bad-dependency", "waits for thread block %d step %d, which does not exist", d.TB, d.Step)
		}
		st.goals = append(st.goals, goal{tbs[d.TB], d.Step})
	}
	return pl.connect(conns, w, st, from, bad)
}

// connect finds or makes the connections of a step; each end has one owner.
func (pl *plan) connect(conns map[connKey]*conn, w *worker, st *step, from *ir.Step,
	bad func(code, format string, args ...any) error) error {
	get := func(src, dst ir.Rank) (*conn, error) {
		n := ir.Rank(pl.prog.Coll.Ranks)
		if src < 0 || src >= n || dst < 0 || dst >= n || src == dst || from.Chan < 0 {
			return nil, bad("program", "no connection goes from rank %d to rank %d on channel %d", src, dst, from.Chan)
		}
		key := connKey{src, dst, from.Chan}
		c := conns[key]
		if c == nil {
			c = &conn{key: key}
			conns[key] = c
			pl.conns = append(pl.conns, c)
		}
		return c, nil
	}
	own := func(owner **worker, what string, c *conn) error {
		if *owner != nil && *owner != w {
			return bad("connection-owner", "thread block %d already %s on channel %d from rank %d to rank %d",
				(*owner).tb, what, c.key.channel, c.key.src, c.key.dst)
		}
		*owner = w
		return nil
	}
	chunks := min(pl.regime, st.count)
	messages := pl.tiles * int64(ir.Messages(st.count, pl.regime))
	if from.Kind.Sends() {
		c, err := get(w.rank, from.SendPeer)
		if err != nil {
			return err
		}
		if err := own(&c.sender, "sends", c); err != nil {
			return err
		}
		c.messages += messages
		c.chunks = max(c.chunks, chunks)
		st.out = c
	}
	if from.Kind.Receives() {
		c, err := get(from.RecvPeer, w.rank)
		if err != nil {
			return err
		}
		if err := own(&c.receiver, "receives", c); err != nil {
			return err
		}
		st.in = c
	}
	return nil
}

// need is the memory in bytes that allocate takes.
func (pl *plan) need() int64 {
	total := uint64(0)
	add := func(a, b int64) {
		hi, lo := bits.Mul64(uint64(a), uint64(b))
		if sum := total + lo; hi == 0 && sum >= total && sum < 1<<62 {
			total = sum
		} else {
			total = 1 << 62
		}
	}
	for r := range pl.ranks {
		add(pl.ranks[r].size, 1)
	}
	for _, c := range pl.conns {
		if !pl.prog.Direct() {
			add(pl.slots(c), pl.stride(c))
		}
	}
	return int64(total)
}

// slots is the depth of c's ring. More slots than messages can't be told from as
// many.
func (pl *plan) slots(c *conn) int64 {
	return max(min(int64(pl.prog.Transport.Slots), c.messages), 1)
}

// stride is the distance of c's slots: its largest message, in whole cache lines.
func (pl *plan) stride(c *conn) int64 {
	return (int64(c.chunks)*pl.tile + 63) / 64 * 64
}

func (pl *plan) allocate() {
	for r := range pl.ranks {
		pl.ranks[r].bytes = runtime.Alloc(pl.ranks[r].size)
	}
	for _, w := range pl.workers {
		w.memory = pl.ranks[w.rank].bytes
	}
	for _, c := range pl.conns {
		if pl.prog.Direct() {
			continue
		}
		c.allocate(pl.slots(c), pl.stride(c))
	}
}
