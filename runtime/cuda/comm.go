package cuda

import (
	"fmt"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// CommOptions say how a communicator is made.
type CommOptions struct {
	Devices  []int32       // GPUs to use; nil is GPU 0
	Watchdog time.Duration // longest that a thread block may wait; 0 is 10 s

	// FlagModulus, if not 0, is where message flags begin anew: a power of two from
	// 16 on, for tests.
	FlagModulus int32
}

// Comm holds ranks on devices. It is used from one goroutine at a time.
type Comm struct {
	lib     *Library
	handle  uintptr
	devices []int32 // of each rank
	dead    bool    // a launch was cut short
}

// NewComm makes a communicator of so many ranks.
func (l *Library) NewComm(ranks int32, o CommOptions) (*Comm, error) {
	have, err := l.Devices()
	if err != nil {
		return nil, err
	}
	devices := o.Devices
	if len(devices) == 0 {
		devices = []int32{0}
	}
	for _, d := range devices {
		if d < 0 || int(d) >= len(have) {
			return nil, diag.Errorf(diag.Pos{}, "device", "--devices: there is no GPU %d, this machine has %d", d, len(have))
		}
	}
	c := &Comm{lib: l, devices: deviceOf(int(ranks), devices)}
	var pins goruntime.Pinner
	defer pins.Unpin()
	opt := cCommOptions{devices: pinned(&pins, c.devices), ranks: ranks, flagModulus: o.FlagModulus,
		watchdogNanoseconds: o.Watchdog.Nanoseconds()}
	f := l.call(func(e *byte, size int64) int32 { return l.create(&opt, &c.handle, e, size) })
	if f != nil {
		return nil, f.err("making a communicator")
	}
	return c, nil
}

// pinned is the address of a slice's first element. Of an empty one it is an address
// too, which nobody reads from: the library takes none for a table that is missing.
func pinned[T any](pins *goruntime.Pinner, s []T) *T {
	if len(s) == 0 {
		s = make([]T, 1)
	}
	pins.Pin(&s[0])
	return &s[0]
}

// Devices are the GPUs in use, each once, in the order of the ranks.
func (c *Comm) Devices() []int32 { return slices.Compact(slices.Clone(c.devices)) }

// Close frees the communicator; its programs must be closed.
func (c *Comm) Close() error {
	f := c.lib.call(func(e *byte, size int64) int32 { return c.lib.destroy(c.handle, e, size) })
	c.handle = 0
	if c.dead {
		return nil // what stopped it has been told
	}
	return f.err("closing the communicator")
}

// Program is a program loaded into a communicator.
type Program struct {
	comm   *Comm
	flat   *flat
	handle uintptr
	turn   int // how often it was prepared
}

// Load validates a program and loads it.
func (c *Comm) Load(p *ir.Program) (*Program, error) {
	if p == nil || p.Spec == nil {
		return nil, diag.Errorf(diag.Pos{}, "program", "run: there is no program")
	}
	if int(p.Coll.Ranks) != len(c.devices) {
		return nil, diag.Errorf(diag.Pos{}, "program", "run: the program has %d ranks, the communicator %d", p.Coll.Ranks, len(c.devices))
	}
	f, err := flattenAny(p)
	if err != nil {
		return nil, err
	}
	x := &Program{comm: c, flat: f}
	load := c.loadTwo
	if f.one != nil {
		load = c.loadOne
	}
	if bad := load(f, x); bad != nil {
		return nil, bad.err("loading the program")
	}
	return x, nil
}

// loadTwo loads a two-sided program.
func (c *Comm) loadTwo(f *flat, x *Program) *failure {
	var pins goruntime.Pinner
	defer pins.Unpin()
	p := f.prog
	t := cProgram{tbs: pinned(&pins, f.tbs), stepsPerTB: pinned(&pins, f.perTB), steps: pinned(&pins, f.steps),
		deps: pinned(&pins, f.deps), chunks: pinned(&pins, f.chunks), baseBuf: pinned(&pins, f.baseBuf),
		baseChunk: pinned(&pins, f.baseChunk), divides: pinned(&pins, f.divides),
		nDeps: int64(len(f.deps)), nDivides: int64(len(f.divides)), slotBytes: p.Transport.SlotBytes,
		slots: p.Transport.Slots, protocol: int32(p.Protocol)}
	return c.lib.call(func(e *byte, size int64) int32 { return c.lib.load(c.handle, &t, &x.handle, e, size) })
}

// Comm is the communicator that the program is loaded into.
func (x *Program) Comm() *Comm { return x.comm }

// Close frees the program.
func (x *Program) Close() error {
	f := x.comm.lib.call(func(e *byte, size int64) int32 { return x.comm.lib.unload(x.handle, e, size) })
	x.handle = 0
	if x.comm.dead {
		return nil
	}
	return f.err("unloading the program")
}

// failed makes an error of a failed launch; one that hung tells who waited.
func (x *Program) failed(f *failure, doing string) error {
	if f == nil {
		return nil
	}
	x.comm.dead = x.comm.dead || f.result == resultStuck || f.result == resultDead || f.result == resultDevice
	err := f.err(doing)
	m, isMessage := err.(*diag.Message)
	if f.result != resultStuck || !isMessage {
		return err
	}
	x.tellWaits(m)
	return m
}

// maxWaits is how many waiting thread blocks are named.
const maxWaits = 8

// tellWaits adds to m who waits for what, those whose time ran out first.
func (x *Program) tellWaits(m *diag.Message) {
	waits := make([]cWait, maxWaits)
	var have int64
	c := x.comm
	if c.lib.call(func(e *byte, size int64) int32 { return c.lib.waits(c.handle, &waits[0], maxWaits, &have, e, size) }) != nil {
		return
	}
	for i := range waits[:min(have, maxWaits)] {
		w := &waits[i]
		pos, place := x.placeOf(w)
		if i == 0 {
			m.Pos = pos
		}
		m.Note(pos, "rank %d thread block %d %s waits for %s%s", w.rank, w.tb, place, w.what(), w.counts())
	}
	if have > maxWaits {
		m.Note(diag.Pos{}, "and %d more thread blocks", have-maxWaits)
	}
	if x.flat.one != nil {
		m.Suggest("mscclsh check tells whether the program ends, and whether launches in a row meet (race-across)")
	}
}

// placeOf is where a thread block waits: the line, and the step or operation in words.
func (x *Program) placeOf(w *cWait) (diag.Pos, string) {
	if x.flat.one != nil {
		at := x.flat.opAt(w.rank, w.tb, w.step)
		switch {
		case at == nil:
			return diag.Pos{}, ""
		case at.turns != nil:
			return x.flat.prog.Pos(at.op.Pos), fmt.Sprintf("op %s in turn %d (%v)", at.number, w.tile+1, at.op.Kind)
		}
		return x.flat.prog.Pos(at.op.Pos), fmt.Sprintf("op %s (%v)", at.number, at.op.Kind)
	}
	pos := diag.Pos{}
	if st := x.stepAt(w); st != nil {
		pos = x.flat.prog.Pos(st.Pos)
	}
	return pos, fmt.Sprintf("step %d (tile %d)", w.step, w.tile)
}

func (x *Program) stepAt(w *cWait) *ir.Step {
	gpus := x.flat.prog.GPUs
	if w.rank < 0 || int(w.rank) >= len(gpus) || w.tb < 0 || int(w.tb) >= len(gpus[w.rank].TBs) {
		return nil
	}
	if steps := gpus[w.rank].TBs[w.tb].Steps; w.step >= 0 && int(w.step) < len(steps) {
		return &steps[w.step]
	}
	return nil
}

// what says what a thread block waited for.
func (w *cWait) what() string {
	switch w.waitsFor {
	case 1:
		return fmt.Sprintf("thread block %d", w.peer)
	case 2:
		return fmt.Sprintf("a message from rank %d on channel %d", w.peer, w.channel)
	case 3:
		return fmt.Sprintf("a free slot towards rank %d on channel %d", w.peer, w.channel)
	case 4:
		return fmt.Sprintf("rank %d to take or fetch what is sent on channel %d", w.peer, w.channel)
	case 5:
		return fmt.Sprintf("a signal of rank %d on its channel %d", w.peer, w.channel)
	case 6:
		return fmt.Sprintf("semaphore %d", w.channel)
	case 7:
		return fmt.Sprintf("the other thread blocks at barrier %d", w.channel)
	case 8:
		return "a packet in its scratch"
	case 9:
		return fmt.Sprintf("what a port copies to rank %d on channel %d", w.peer, w.channel)
	}
	return "the end of the launch"
}

// counts are the numbers that it compared, and whether its own time ran out.
func (w *cWait) counts() string {
	text := fmt.Sprintf(" (number %d, there is %d", w.want, w.have)
	if w.timedOut == 0 {
		text += "; it was told to leave"
	}
	return text + ")"
}
