package cuda

import (
	"errors"
	"unsafe"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// Bound is a program that is prepared for a size and whose values are made and checked
// on the devices, for callers that mix launches of several programs as they like. What
// Generate, Enqueue and Verify start runs in the order of the calls, on each device
// and over all programs of the communicator; none of them waits. Preparing the program
// anew (Bind, Program.Run) ends it.
type Bound struct {
	r    *runner
	turn int // Program.turn when it was made
}

// Bind prepares the program for o's size, data type and reduction, its threads and
// misalignment; the rest of o is Run's alone. Refusals are those of Run.
func (x *Program) Bind(o Options) (*Bound, error) {
	r, err := x.newRunner(Options{Bytes: o.Bytes, DType: o.DType, Op: o.Op, Threads: o.Threads, Misalign: o.Misalign,
		AnySize: o.AnySize, Exact: true, Verify: VerifyOnDevice})
	if err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	return &Bound{r: r, turn: x.turn}, nil
}

// usable refuses to go on with a program that was prepared anew.
func (b *Bound) usable() error {
	if b.turn != b.r.turn {
		return errors.New("run: the program was prepared anew since it was bound")
	}
	return nil
}

// do calls f unless the program was prepared anew.
func (b *Bound) do(doing string, f func(l *Library, e *byte, size int64) int32) error {
	if err := b.usable(); err != nil {
		return err
	}
	lib := b.r.comm.lib
	return b.r.failed(lib.call(func(e *byte, size int64) int32 { return f(lib, e, size) }), doing)
}

// Generate starts to make inputs from a seed, and junk in all other memory.
func (b *Bound) Generate(seed uint64) error {
	if err := b.usable(); err != nil {
		return err
	}
	return b.r.generate(seed)
}

// Enqueue starts so many launches.
func (b *Bound) Enqueue(launches int) error {
	return b.do("running", func(l *Library, e *byte, size int64) int32 {
		return l.enqueue(b.r.handle, int32(launches), e, size)
	})
}

// Verify starts to compare all results with what a seed's inputs make.
func (b *Bound) Verify(seed uint64) error {
	if err := b.usable(); err != nil {
		return err
	}
	return b.r.verify(seed)
}

// Verdict waits for all that was started, and tells what the calls of Verify since the
// last verdict found: the number of wrong elements, and the first of them.
func (b *Bound) Verdict() (*runtime.Verdict, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	v, err := b.r.verdict()
	if err != nil {
		return nil, err
	}
	out := &runtime.Verdict{Elements: v.compared, Wrong: v.wrong}
	if v.wrong > 0 {
		out.Mismatches = []runtime.Mismatch{v.mismatch(b.r.layout)}
	}
	return out, nil
}

// Capture records so many launches into a graph, Replay runs the graph so often and
// waits.
func (b *Bound) Capture(launches int) error {
	return b.do("capturing a graph", func(l *Library, e *byte, size int64) int32 {
		return l.capture(b.r.handle, int32(launches), e, size)
	})
}

// Replay runs the graph so often and waits; it returns the time in nanoseconds.
func (b *Bound) Replay(replays int) (ns float64, err error) {
	err = b.do("running", func(l *Library, e *byte, size int64) int32 {
		return l.replay(b.r.handle, int32(replays), &ns, e, size)
	})
	return ns, err
}

// CheckGuards waits, and fails (code guard) if a byte beside a buffer was written.
func (b *Bound) CheckGuards() error {
	if err := b.usable(); err != nil {
		return err
	}
	return b.r.checkGuards()
}

// Read waits, and copies memory of a rank's input, output or scratch, from a byte on.
func (b *Bound) Read(to []byte, r ir.Rank, buf ir.BufferID, from int64) error {
	return b.do("reading", func(l *Library, e *byte, size int64) int32 {
		return l.download(b.r.handle, int32(r), int32(buf), from, unsafe.SliceData(to), int64(len(to)), e, size)
	})
}

// Write waits, and overwrites such memory.
func (b *Bound) Write(data []byte, r ir.Rank, buf ir.BufferID, to int64) error {
	return b.do("writing", func(l *Library, e *byte, size int64) int32 {
		return l.upload(b.r.handle, int32(r), int32(buf), to, unsafe.SliceData(data), int64(len(data)), e, size)
	})
}

// Layout is how elements lie in memory.
func (b *Bound) Layout() *runtime.Layout { return b.r.layout }
