package cpu

import (
	"context"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// Run executes p on real data and compares the result with the reference. A
// program that delivers wrong data gives a Report with Verified false; what can't
// run, deadlocks or loses messages gives an error, a *diag.Message (inside an
// *Interrupted if ctx ended the run). Sizes, bounds and memory are judged before
// any data moves. All goroutines have ended when Run returns.
//
// Of a one-sided program the size must be cut into whole units of its alignment.
//
// Codes of refusals: size, size-window, memory, slots, dtype, op, input, exact,
// collective, program, bounds, bad-dependency, connection-owner; of failed runs:
// deadlock, count-mismatch, interrupted.
func Run(ctx context.Context, p *ir.Program, o Options) (*Report, error) {
	if p == nil || p.Spec == nil {
		return nil, diag.Errorf(diag.Pos{}, "program", "run: there is no program")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	layout, err := runtime.NewLayout(p.Coll, o.DType, o.Bytes)
	if err != nil {
		return nil, err
	}
	if err := layout.CheckWindow(p); !o.AnySize && err != nil {
		return nil, err
	}
	if o.Chaos != nil && o.Chaos.Slots > 0 && !p.Direct() {
		deeper := *p
		deeper.Transport.Slots = o.Chaos.Slots
		p = &deeper
	}
	var pl *plan
	if p.OneSided != nil {
		if err := checkOneSize(p, layout, o.Bytes); err != nil {
			return nil, err
		}
		pl, err = newOnePlan(p, layout, o.Op)
	} else {
		pl, err = newPlan(p, layout)
	}
	if err != nil {
		return nil, err
	}
	r := &runner{engine: engine{plan: pl}, o: o, total: o.Warmup + max(o.Iterations, 1)}
	if r.combine, err = runtime.NewCombine(o.DType, o.Op); err != nil {
		return nil, diag.Errorf(diag.Pos{}, "op", "run: %v", err)
	}
	if o.Inputs != nil {
		r.inputs, err = runtime.NewInputs(layout, o.Inputs)
	} else {
		r.inputs, err = runtime.Generate(layout, o.Op, o.Seed, o.Exact)
	}
	if err != nil {
		return nil, err
	}
	need := pl.need()
	if o.KeepOutputs {
		for rank := range ir.Rank(p.Coll.Ranks) {
			need += layout.OutputElems(rank) * int64(o.DType.Size())
		}
	}
	if err := runtime.CheckMemory(need, fmt.Sprintf("run: %s on %d ranks", runtime.FormatBytes(layout.Bytes()), p.Coll.Ranks)); err != nil {
		return nil, err
	}
	pl.allocate()
	return r.run(ctx)
}

// runner repeats runs of an engine and reports on them.
type runner struct {
	engine
	o      Options
	inputs *runtime.Inputs
	total  int

	progressMu sync.Mutex
}

func (r *runner) run(ctx context.Context) (*Report, error) {
	defer context.AfterFunc(ctx, func() { r.interrupt(ctx) })()
	rep := &Report{Bytes: r.layout.Bytes(), PaddedBytes: r.layout.PaddedBytes(), Regime: r.regime, Tiles: r.tiles,
		Workers: len(r.workers), Connections: len(r.conns)}
	if r.prog.Direct() {
		rep.Regime = 0
	}
	for i := range r.total {
		// In place every run needs its inputs back, unless nobody looks at the
		// result; out of place a last run on junk outputs shows that it did the
		// work itself.
		if i == 0 || !r.o.NoVerify && (i == r.total-1 || r.prog.Coll.InPlace) {
			r.fill()
		}
		r.events = r.o.Events && i == r.total-1
		stop := r.watch(i)
		begin := time.Now()
		if r.o.Chaos != nil {
			r.chaos = newBaton(r.o.Chaos.Seed+uint64(i), r.workers)
		}
		err := r.engine.run()
		if err == nil && r.o.Op == runtime.Avg {
			r.divide()
		}
		took := time.Since(begin)
		stop()
		if err != nil {
			return nil, err
		}
		if i >= r.o.Warmup {
			rep.Times = append(rep.Times, took)
		}
	}
	r.measure(rep)
	if !r.o.NoVerify {
		if err := r.verify(ctx, rep); err != nil {
			return nil, err
		}
	}
	r.collect(rep)
	return rep, nil
}

// eachRank calls f for every rank, on all processors.
func (r *runner) eachRank(f func(rank ir.Rank)) {
	n := len(r.ranks)
	step := max(min(goruntime.GOMAXPROCS(0), n), 1)
	var wg sync.WaitGroup
	for first := range step {
		wg.Go(func() {
			for k := first; k < n && !r.stopped.Load(); k += step {
				f(ir.Rank(k))
			}
		})
	}
	wg.Wait()
}

// junk fills memory that the program has not been given: as fp32 about -2.7e7, in
// no type a number that small inputs could sum to.
const junk = 0xcb

// fill gives every rank its inputs, and junk everywhere else.
func (r *runner) fill() {
	size := int64(r.layout.DType.Size())
	r.eachRank(func(rank ir.Rank) {
		m := &r.ranks[rank]
		if len(m.bytes) == 0 {
			return
		}
		m.bytes[0] = junk
		for n := 1; n < len(m.bytes); n *= 2 {
			copy(m.bytes[n:], m.bytes[:n])
		}
		for i := range m.chunks[ir.Input] {
			if first, n := r.layout.Real(i); n > 0 && r.prog.Coll.Holds(rank, i) {
				r.inputs.Fill(m.chunk(ir.Input, i, r.layout.ChunkBytes())[:n*size], rank, first)
			}
		}
	})
}

// divide is the end of Avg: once for every output of several contributions.
func (r *runner) divide() {
	chunk := r.layout.ChunkBytes()
	r.eachRank(func(rank ir.Rank) {
		m := &r.ranks[rank]
		var want []ir.Contribution
		for i := range m.chunks[ir.Output] {
			if want, _ = r.prog.Coll.Expect(want[:0], rank, i); len(want) > 1 {
				runtime.Divide(r.layout.DType, m.chunk(ir.Output, i, chunk), int64(len(want)))
			}
		}
	})
}

// measure puts times and rates into the report.
func (r *runner) measure(rep *Report) {
	for _, c := range r.conns {
		rep.Messages += c.sent.Load()
		rep.Moved += c.moved
	}
	for _, w := range r.workers {
		rep.Messages += w.signals
		rep.Moved += w.moved
	}
	if r.one != nil {
		for _, c := range r.one.signals {
			rep.Connections += len(c)
		}
	}
	sorted := slices.Sorted(slices.Values(rep.Times))
	rep.Min, rep.Median = sorted[0], sorted[len(sorted)/2]
	if len(sorted)%2 == 0 {
		rep.Median = (rep.Median + sorted[len(sorted)/2-1]) / 2
	}
	rep.AlgBW, rep.BusBW = runtime.Bandwidth(r.prog.Coll, rep.Bytes, rep.Median)
	if rep.Median > 0 {
		rep.MoveRate = float64(rep.Moved) / float64(rep.Median.Nanoseconds())
	}
}

// verify compares outputs and, out of place, inputs.
func (r *runner) verify(ctx context.Context, rep *Report) error {
	ref := runtime.NewReference(r.inputs, r.o.Op)
	view := func(b ir.BufferID) runtime.View {
		return func(rank ir.Rank, i int32) []byte {
			return r.ranks[rank].chunk(b, i, r.layout.ChunkBytes())
		}
	}
	progress := func(done float64) {
		r.report(Progress{Phase: "verify", Iteration: r.total - 1, Total: r.total, Done: done})
	}
	if r.o.Progress == nil {
		progress = nil
	}
	verdict, err := ref.Verify(ctx, view(ir.Output), progress)
	if err != nil {
		return err
	}
	r.add(rep, verdict)
	if !r.prog.Coll.InPlace {
		if verdict, err = ref.VerifyInputs(ctx, view(ir.Input), nil); err != nil {
			return err
		}
		r.add(rep, verdict)
	}
	rep.Verified = rep.Wrong == 0
	return nil
}

func (r *runner) add(rep *Report, v *runtime.Verdict) {
	rep.Compared += v.Elements
	rep.Wrong += v.Wrong
	rep.Unbounded += v.Unbounded
	rep.MaxError = max(rep.MaxError, v.MaxError)
	rep.MaxBound = max(rep.MaxBound, v.MaxBound)
	rep.Mismatches = append(rep.Mismatches, v.Mismatches...)
}

// collect puts outputs and events into the report, if asked for.
func (r *runner) collect(rep *Report) {
	for _, w := range r.workers {
		rep.Events = append(rep.Events, w.events...)
	}
	fromFirst(rep.Events)
	if !r.o.KeepOutputs {
		return
	}
	size := int64(r.layout.DType.Size())
	rep.Outputs = make([][]byte, len(r.ranks))
	r.eachRank(func(rank ir.Rank) {
		out := runtime.Alloc(r.layout.OutputElems(rank) * size)
		rep.Outputs[rank] = out
		for i := range r.ranks[rank].chunks[ir.Output] {
			first, n := r.layout.Real(i)
			if first*size < int64(len(out)) {
				copy(out[first*size:], r.ranks[rank].chunk(ir.Output, i, r.layout.ChunkBytes())[:n*size])
			}
		}
	})
}

// fromFirst lets the clock of all events begin with the first of them.
func fromFirst(events []ir.Event) {
	first := int64(math.MaxInt64)
	for i := range events {
		first = min(first, events[i].Begin)
	}
	for i := range events {
		events[i].Begin -= first
		events[i].End -= first
	}
}

// report hands progress on, from one goroutine at a time.
func (r *runner) report(p Progress) {
	r.progressMu.Lock()
	defer r.progressMu.Unlock()
	r.o.Progress(p)
}

// watch reports progress of run i ten times a second until the returned function
// is called.
func (r *runner) watch(i int) (stop func()) {
	if r.o.Progress == nil {
		return func() {}
	}
	total := int64(0)
	for _, c := range r.conns {
		total += c.messages
	}
	if r.one != nil {
		total = r.one.ops
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				sent := int64(0)
				for _, c := range r.conns {
					sent += c.sent.Load()
				}
				if r.one != nil {
					sent = r.one.done.Load()
				}
				r.report(Progress{Phase: "run", Iteration: i, Total: r.total, Done: float64(sent) / float64(max(total, 1))})
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}
