package cuda

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// Run runs the program on real data and compares the result with the reference.
// Wrong data gives a Report with Verified false; what can't run, or hangs until the
// watchdog ends it, gives a *diag.Message. Sizes and memory are judged before any
// data moves. A context that is done ends the run between launches.
//
// Out of place, what is compared is what the last measured launch made of junk in
// the outputs; in place, where launches go on from each other's results, it is a
// launch before the measured ones.
//
// Codes of refusals: size, size-window, slots, threads, dtype, op, input, exact, verify, collective,
// program, bounds, bad-dependency, connection-owner, one-sided; memory and machine
// where this machine can't; of a failed run: deadlock, guard.
func (x *Program) Run(ctx context.Context, o Options) (*Report, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	if x.comm.dead {
		return nil, diag.Errorf(diag.Pos{}, "machine", "run: an earlier launch on this communicator was cut short")
	}
	r, err := x.newRunner(o)
	if err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

// runner is one call of Run.
type runner struct {
	*Program
	o         Options
	layout    *runtime.Layout
	inputs    *runtime.Inputs
	regime    int32
	prepared  cPrepared
	host      [][3][]byte // of each rank, its own buffers; scratch stays nil
	onDevice  bool        // values are made and checked there
	launches  int
	report    Report
	perLaunch []float64 // nanoseconds, of each repetition
}

func (x *Program) newRunner(o Options) (*runner, error) {
	p := x.flat.prog
	layout, err := runtime.NewLayout(p.Coll, o.DType, o.Bytes)
	if err != nil {
		return nil, err
	}
	if err := layout.CheckWindow(p); !o.AnySize && err != nil {
		return nil, err
	}
	if p.OneSided != nil {
		if err := x.flat.checkOneSize(layout, o.Bytes, o.Op); err != nil {
			return nil, err
		}
	} else if p.Protocol != ir.Direct && p.Transport.SlotBytes < int64(o.DType.Size()) {
		return nil, diag.Errorf(diag.Pos{}, "slots", "run: slots of %d bytes can't carry %v", p.Transport.SlotBytes, o.DType)
	}
	r := &runner{Program: x, o: o, layout: layout, launches: max(o.Launches, 1), regime: 1}
	if p.OneSided == nil {
		r.regime = p.Transport.Regime(layout.PaddedBytes(), layout.Chunks)
	}
	if _, err := runtime.NewCombine(o.DType, o.Op); err != nil {
		return nil, diag.Errorf(diag.Pos{}, "op", "run: %v", err)
	}
	if r.onDevice, err = o.onDevice(layout.Bytes()); err != nil {
		return nil, err
	}
	if err := r.checkSize(); err != nil || r.onDevice {
		return r, err
	}
	return r, r.onHost()
}

// onHost readies inputs and the host's memory for a comparison there.
func (r *runner) onHost() (err error) {
	r.onDevice = false
	if r.o.Inputs != nil {
		r.inputs, err = runtime.NewInputs(r.layout, r.o.Inputs)
	} else {
		r.inputs, err = runtime.Generate(r.layout, r.o.Op, r.o.Seed, r.o.Exact)
	}
	if err != nil || !r.looks() {
		return err
	}
	return r.checkHost()
}

// looks reports whether the host gets to see any values.
func (r *runner) looks() bool { return !r.onDevice && (!r.o.NoVerify || r.o.KeepOutputs) }

// own reports whether buffer b of a rank lies in no other, and its size in bytes.
func (r *runner) own(rank int, b ir.BufferID) (int64, bool) {
	at := 3*rank + int(b)
	return int64(r.flat.chunks[at]) * r.layout.ChunkBytes(), r.flat.baseBuf[at] == int32(b)
}

// checkSize refuses what no memory holds. Whether the devices have room the library
// finds out.
func (r *runner) checkSize() error {
	for at, n := range r.flat.chunks {
		if float64(n)*float64(r.layout.ChunkBytes()) > 1<<50 {
			return diag.Errorf(diag.Pos{}, "memory", "run: rank %d needs %d chunks of %s for its %s", at/3,
				n, runtime.FormatBytes(r.layout.ChunkBytes()), bufferNames[at%3])
		}
	}
	return nil
}

// checkHost refuses what this machine's own memory can't mirror.
func (r *runner) checkHost() error {
	need, chunk := 0.0, float64(r.layout.ChunkBytes())
	for rank := range r.comm.devices {
		for b := range ir.FirstScratch {
			if _, own := r.own(rank, b); own {
				need += float64(r.flat.chunks[3*rank+int(b)]) * chunk
			}
		}
	}
	if r.o.KeepOutputs {
		need *= 2
	}
	return runtime.CheckMemory(int64(min(need, 1<<60)), fmt.Sprintf("run: comparing %s on %d ranks",
		runtime.FormatBytes(r.layout.Bytes()), len(r.comm.devices)))
}

// prepareSize readies the program for the size; trace is 1 if steps are to note their
// times.
func (r *runner) prepareSize(trace int32) error {
	size := cSize{chunkBytes: r.layout.ChunkBytes(), regime: r.regime, dtype: int32(r.o.DType), op: int32(r.o.Op),
		threads: r.o.Threads, misalign: r.o.Misalign, trace: trace}
	lib := r.comm.lib
	r.turn++
	f := lib.call(func(e *byte, n int64) int32 { return lib.prepare(r.handle, &size, &r.prepared, e, n) })
	if f != nil && f.result == resultInvalid && r.o.Threads != 0 {
		// All else that the library could find invalid in a size has been checked here.
		return diag.Errorf(diag.Pos{}, "threads", "run: %s", f.text)
	}
	return r.failed(f, "preparing "+runtime.FormatBytes(r.layout.Bytes()))
}

func (r *runner) prepare() error {
	if err := r.prepareSize(0); err != nil {
		return err
	}
	if r.onDevice {
		if err := r.expectOnDevice(); err != nil {
			return err
		}
	}
	if !r.looks() {
		return nil
	}
	r.host = make([][3][]byte, len(r.comm.devices))
	for rank := range r.host {
		for b := range ir.FirstScratch {
			if n, own := r.own(rank, b); own {
				r.host[rank][b] = runtime.Alloc(n)
			}
		}
	}
	return nil
}

// run does it all, once prepared.
func (r *runner) run(ctx context.Context) (*Report, error) {
	inPlace := r.flat.prog.Coll.InPlace
	look := r.onDevice || r.looks()
	if look {
		if err := r.makeInputs(ctx); err != nil {
			return nil, err
		}
	}
	if look && inPlace {
		if _, err := r.launch(1, false); err != nil {
			return nil, err
		}
		if err := r.judge(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.measure(ctx); err != nil {
		return nil, err
	}
	if look && !inPlace {
		if err := r.judge(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.checkGuards(); err != nil {
		return nil, err
	}
	r.describe()
	if r.o.Events {
		if err := r.record(); err != nil {
			return nil, err
		}
	}
	return &r.report, nil
}

// launch runs n launches, or one replay of the graph that holds them, and returns
// how long they took together, in nanoseconds.
func (r *runner) launch(n int, graph bool) (float64, error) {
	lib, ns := r.comm.lib, 0.0
	f := lib.call(func(e *byte, size int64) int32 {
		if graph {
			return lib.replay(r.handle, 1, &ns, e, size)
		}
		return lib.run(r.handle, int32(n), &ns, e, size)
	})
	return ns, r.failed(f, "running")
}

// measure repeats.
func (r *runner) measure(ctx context.Context) error {
	lib := r.comm.lib
	if r.o.Graph {
		f := lib.call(func(e *byte, size int64) int32 { return lib.capture(r.handle, int32(r.launches), e, size) })
		if f != nil {
			return r.failed(f, "capturing a graph")
		}
	}
	return r.repeat(ctx)
}

// repeat launches, or replays what was captured, and notes the times.
func (r *runner) repeat(ctx context.Context) error {
	total := r.o.Warmup + max(r.o.Repetitions, 1)
	for i := range total {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("run: %w", err)
		}
		ns, err := r.launch(r.launches, r.o.Graph)
		if err != nil {
			return err
		}
		if i >= r.o.Warmup {
			r.perLaunch = append(r.perLaunch, ns/float64(r.launches))
		}
		r.tell("run", float64(i+1)/float64(total))
	}
	return nil
}

func (r *runner) tell(phase string, done float64) {
	if r.o.Progress != nil {
		r.o.Progress(phase, done)
	}
}

// makeInputs gives every rank its inputs where they are checked.
func (r *runner) makeInputs(ctx context.Context) error {
	if r.onDevice {
		return r.generate(r.o.Seed)
	}
	return r.fill(ctx)
}

// judge compares the results, if asked to, on the device or else with the reference.
func (r *runner) judge(ctx context.Context) error {
	if r.onDevice {
		r.tell("verify", 0)
		return r.judgeOnDevice()
	}
	if err := r.fetch(); err != nil {
		return err
	}
	r.collect()
	if r.o.NoVerify {
		return nil
	}
	ref := runtime.NewReference(r.inputs, r.o.Op)
	r.tell("verify", 0)
	v, err := ref.Verify(ctx, r.view(ir.Output), nil)
	if err != nil {
		return err
	}
	r.add(v)
	if !r.flat.prog.Coll.InPlace {
		if v, err = ref.VerifyInputs(ctx, r.view(ir.Input), nil); err != nil {
			return err
		}
		r.add(v)
	}
	r.report.Verified = r.report.Wrong == 0
	return nil
}

func (r *runner) add(v *runtime.Verdict) {
	sum := &r.report.Verdict
	sum.Elements += v.Elements
	sum.Wrong += v.Wrong
	sum.Unbounded += v.Unbounded
	sum.MaxError = max(sum.MaxError, v.MaxError)
	sum.MaxBound = max(sum.MaxBound, v.MaxBound)
	sum.Mismatches = append(sum.Mismatches, v.Mismatches...)
}

// checkGuards makes sure that no byte beside a buffer was written.
func (r *runner) checkGuards() error {
	lib := r.comm.lib
	f := lib.call(func(e *byte, size int64) int32 { return lib.guards(r.handle, e, size) })
	if f == nil {
		return nil
	}
	if f.result == resultDevice || f.result == resultDead {
		return r.failed(f, "looking at guard bytes")
	}
	return diag.Errorf(diag.Pos{}, "guard", "run: memory beside a buffer was written: %s", f.text)
}

// describe fills in what is known of the run as a whole.
func (r *runner) describe() {
	rep := &r.report
	rep.Bytes, rep.PaddedBytes, rep.Regime = r.layout.Bytes(), r.layout.PaddedBytes(), r.regime
	rep.TileBytes = r.prepared.tileBytes
	rep.Tiles, rep.Threads, rep.Registers = r.prepared.tiles, r.prepared.threads, r.prepared.registers
	rep.Needed, rep.Resident = r.prepared.blocksNeeded, r.prepared.blocksResident
	if r.flat.one != nil {
		rep.Moved = r.flat.moved(r.layout.ChunkBytes())
	} else {
		var chunks int64
		rep.Messages, chunks = r.flat.traffic(r.regime, rep.Tiles)
		rep.Moved = chunks * r.layout.ChunkBytes()
	}
	rep.Launches = r.launches
	sorted := slices.Sorted(slices.Values(r.perLaunch))
	median := sorted[len(sorted)/2]
	if len(sorted)%2 == 0 {
		median = (median + sorted[len(sorted)/2-1]) / 2
	}
	rep.Nanoseconds = r.perLaunch
	rep.Min, rep.Median = time.Duration(math.Round(sorted[0])), time.Duration(math.Round(median))
	rep.AlgBW, rep.BusBW = runtime.Bandwidth(r.flat.prog.Coll, rep.Bytes, rep.Median)
}
