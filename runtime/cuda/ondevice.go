package cuda

import (
	goruntime "runtime"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// onDevice reports whether values of so many bytes are checked on the device, and
// refuses what can't be but is asked for.
func (o *Options) onDevice(bytes int64) (bool, error) {
	can := o.Exact && o.Inputs == nil && !o.KeepOutputs && !o.NoVerify
	switch o.Verify {
	case VerifyOnHost:
		return false, nil
	case VerifyOnDevice:
		if !can {
			return false, diag.Errorf(diag.Pos{}, "verify",
				"run: values are checked on the device with exact data that is made there, and stay there").
				Suggest("take exact data and no files, or check on the host")
		}
		return true, nil
	}
	return can && bytes > verifyOnHost, nil
}

// expectOnDevice tells the library what to make and to check. Where the data type has
// no exact results of the program, values go to the host after all, unless that is
// ruled out.
func (r *runner) expectOnDevice() error {
	e := expect(r.flat.prog.Coll)
	var pins goruntime.Pinner
	defer pins.Unpin()
	t := cExpectation{held: pinned(&pins, e.held), results: pinned(&pins, e.results), parts: pinned(&pins, e.parts),
		nHeld: int64(len(e.held)), nResults: int64(len(e.results)), nParts: int64(len(e.parts)),
		dtype: int32(r.o.DType), op: int32(r.o.Op)}
	lib := r.comm.lib
	f := lib.call(func(err *byte, size int64) int32 { return lib.expect(r.handle, &t, err, size) })
	switch {
	case f == nil:
		return nil
	case f.result != resultRefused:
		return r.failed(f, "preparing to check values")
	case r.o.Verify == VerifyAuto:
		return r.onHost()
	}
	return diag.Errorf(diag.Pos{}, "verify", "run: checking %v of %v on the device: %s", r.o.Op, r.o.DType, f.text).
		Suggest("take a wider data type, or check on the host")
}

// generate enqueues making inputs from a seed, and junk everywhere else.
func (r *runner) generate(seed uint64) error {
	lib := r.comm.lib
	return r.failed(lib.call(func(e *byte, size int64) int32 { return lib.generate(r.handle, seed, e, size) }), "making inputs")
}

// verify enqueues comparing results with what a seed's inputs make.
func (r *runner) verify(seed uint64) error {
	lib := r.comm.lib
	return r.failed(lib.call(func(e *byte, size int64) int32 { return lib.verify(r.handle, seed, e, size) }), "comparing")
}

// verdict waits for the comparisons since the last verdict and tells what they found.
func (r *runner) verdict() (*cVerdict, error) {
	lib, v := r.comm.lib, &cVerdict{}
	f := lib.call(func(e *byte, size int64) int32 { return lib.verdict(r.handle, v, e, size) })
	return v, r.failed(f, "comparing")
}

// judgeOnDevice compares all results.
func (r *runner) judgeOnDevice() error {
	if err := r.verify(r.o.Seed); err != nil {
		return err
	}
	v, err := r.verdict()
	if err != nil {
		return err
	}
	rep := &r.report
	rep.Elements, rep.Wrong = v.compared, v.wrong
	if v.wrong > 0 {
		rep.Mismatches = append(rep.Mismatches, v.mismatch(r.layout))
	}
	rep.Verified = v.wrong == 0
	return nil
}
