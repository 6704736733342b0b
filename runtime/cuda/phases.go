package cuda

import (
	"context"
	"fmt"
	goruntime "runtime"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// RunPhases measures what the phases do when they are launched one after another, in
// place of the program, on the same buffers: how much it gains from being one program.
// The outcome is compared, as that of Run is, with what the program has to do. All of
// them must be in place and of this program's communicator, and sizes without padding.
//
// A repetition is one replay of a graph of o.Launches launches of each phase, whatever
// o.Graph says; KeepOutputs, Misalign and Events are for Run. Codes of refusals are
// those of Run, and phases.
func (x *Program) RunPhases(ctx context.Context, phases []*Program, o Options) (rep *Report, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	if x.comm.dead {
		return nil, diag.Errorf(diag.Pos{}, "machine", "run: an earlier launch on this communicator was cut short")
	}
	o.Graph, o.KeepOutputs, o.Misalign, o.Events = true, false, 0, false
	r, err := x.newRunner(o)
	if err != nil {
		return nil, err
	}
	all := []*runner{r}
	for _, p := range phases {
		po := o
		po.NoVerify, po.Verify = true, VerifyOnHost
		pr, err := p.newRunner(po)
		if err != nil {
			return nil, err
		}
		all = append(all, pr)
	}
	for _, pr := range all {
		if err := pr.fits(r); err != nil {
			return nil, err
		}
	}
	memory, err := r.share(all)
	defer func() {
		if bad := r.unshare(all, memory); err == nil && bad != nil {
			rep, err = nil, bad
		}
	}()
	if err == nil {
		err = r.runPhases(ctx, all[1:])
	}
	if err != nil {
		return nil, err
	}
	r.describe()
	return &r.report, nil
}

// single is the buffer that holds a rank's input and output both, NoBuffer if each has
// its own.
func (r *runner) single(rank int) ir.BufferID {
	_, input := r.own(rank, ir.Input)
	_, output := r.own(rank, ir.Output)
	switch {
	case input && !output:
		return ir.Input
	case output && !input:
		return ir.Output
	}
	return ir.NoPlace.Buf
}

// fits refuses a program that can't take the place of a part of another one.
func (r *runner) fits(whole *runner) error {
	bad := func(format string, args ...any) error {
		return diag.Errorf(diag.Pos{}, "phases", "run: program %q: %s", r.flat.prog.Name, fmt.Sprintf(format, args...))
	}
	if r.comm != whole.comm {
		return bad("it is of another communicator")
	}
	if r.layout.PaddedBytes() != r.o.Bytes {
		return bad("%s are no whole elements for each of its %d chunks", runtime.ExactBytes(r.o.Bytes), r.layout.Chunks)
	}
	for rank := range r.comm.devices {
		b := r.single(rank)
		if b == ir.NoPlace.Buf {
			return bad("input and output of rank %d are two buffers, want one: in place", rank)
		}
		n, _ := r.own(rank, b)
		if want, _ := whole.own(rank, whole.single(rank)); n != want {
			return bad("the buffer of rank %d has %s, that of the whole %s", rank, runtime.ExactBytes(n), runtime.ExactBytes(want))
		}
	}
	return nil
}

// share gives all programs the same memory and readies them for the size. It returns
// the memory even when it fails.
func (r *runner) share(all []*runner) ([]uintptr, error) {
	lib := r.comm.lib
	memory := make([]uintptr, len(r.comm.devices))
	for rank := range memory {
		n, _ := r.own(rank, r.single(rank))
		f := lib.call(func(e *byte, size int64) int32 {
			return lib.alloc(r.comm.handle, int32(rank), n, &memory[rank], e, size)
		})
		if f != nil {
			return memory, r.failed(f, "allocating "+runtime.FormatBytes(n))
		}
		for _, p := range all {
			if err := p.attach(rank, memory[rank], n); err != nil {
				return memory, err
			}
		}
	}
	for i, p := range all {
		ready := p.prepare
		if i > 0 {
			ready = func() error { return p.prepareSize(0) }
		}
		if err := ready(); err != nil {
			return memory, err
		}
	}
	return memory, nil
}

func (r *runner) attach(rank int, memory uintptr, n int64) error {
	lib := r.comm.lib
	return r.failed(lib.call(func(e *byte, size int64) int32 {
		return lib.attach(r.handle, int32(rank), int32(r.single(rank)), memory, n, e, size)
	}), "sharing memory")
}

// unshare takes the memory back; the first failure counts.
func (r *runner) unshare(all []*runner, memory []uintptr) (err error) {
	lib := r.comm.lib
	for rank, m := range memory {
		if m == 0 {
			continue
		}
		for _, p := range all {
			if bad := p.attach(rank, 0, 0); err == nil {
				err = bad
			}
		}
		f := lib.call(func(e *byte, size int64) int32 { return lib.release(r.comm.handle, int32(rank), m, e, size) })
		if bad := r.failed(f, "freeing memory"); err == nil {
			err = bad
		}
	}
	return err
}

// runPhases launches the phases once each and compares, then measures.
func (r *runner) runPhases(ctx context.Context, phases []*runner) error {
	lib := r.comm.lib
	look := r.onDevice || r.looks()
	if look {
		if err := r.makeInputs(ctx); err != nil {
			return err
		}
	}
	for _, p := range phases {
		f := lib.call(func(e *byte, size int64) int32 { return lib.enqueue(p.handle, 1, e, size) })
		if f != nil {
			return p.failed(f, "starting")
		}
	}
	f := lib.call(func(e *byte, size int64) int32 { return lib.sync(r.comm.handle, e, size) })
	if f != nil {
		return phases[0].failed(f, "running")
	}
	if look {
		if err := r.judge(ctx); err != nil {
			return err
		}
	}
	var pins goruntime.Pinner
	defer pins.Unpin()
	handles := make([]uintptr, len(phases))
	for i, p := range phases {
		handles[i] = p.handle
	}
	first := pinned(&pins, handles)
	f = lib.call(func(e *byte, size int64) int32 {
		return lib.captureMany(first, int32(len(handles)), int32(r.launches), e, size)
	})
	if f != nil {
		return phases[0].failed(f, "capturing a graph")
	}
	if err := phases[0].repeat(ctx); err != nil {
		return err
	}
	r.perLaunch = phases[0].perLaunch
	return nil
}
