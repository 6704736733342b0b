package main

import (
	"context"
	"fmt"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

// Without --size a program runs on defaultSize, or less so that all ranks
// together have at most defaultTotal; both in bytes.
const (
	defaultSize  = 16 << 20
	defaultTotal = 512 << 20
)

// run executes the program, or measures it, where the settings say.
func (s *Session) run(ctx context.Context) error {
	switch {
	case s.benching:
		return s.bench(ctx)
	case s.Set.onCUDA():
		return s.runCUDA(ctx)
	}
	return s.runCPU(ctx)
}

// runCPU executes the program on this CPU and reports on it.
func (s *Session) runCPU(ctx context.Context) error {
	p := s.program
	s.begin("running " + p.Name)
	opt := cpu.Options{DType: s.Set.DType, Op: s.Set.Op, Iterations: s.Set.Iterations, Seed: s.Set.Seed, Chaos: s.Set.Chaos,
		Exact: s.Set.Data == dataExact, NoVerify: p.OneSided != nil && !demanded(p), KeepOutputs: s.Set.Output != "",
		Events: s.Set.Trace != "",
		Progress: func(x cpu.Progress) {
			s.progress.at(fmt.Sprintf("%s %d/%d %3.0f%% ", x.Phase, x.Iteration+1, x.Total, 100*x.Done))
		}}
	var err error
	if opt.Bytes, opt.Inputs, err = s.inputs(ctx, p); err != nil {
		return runError(err)
	}
	rep, err := cpu.Run(ctx, p, opt)
	if err != nil {
		return runError(err)
	}
	s.report.Run = s.runPart(p, rep)
	if s.Set.Output != "" {
		s.begin("writing outputs")
		if err := runtime.WriteOutputs(s.Set.Output, s.Set.DType, rep.Outputs); err != nil {
			return badCall("output", "writing the outputs: %v", err)
		}
	}
	s.tellWrong(rep.Mismatches, rep.Wrong)
	return s.writeTimeline(p, backendCPU, rep.Bytes, rep.Events)
}

// tellWrong prints wrong elements, if there are any.
func (s *Session) tellWrong(list []runtime.Mismatch, wrong int64) {
	if wrong > 0 {
		s.begin("")
		writeMessages(s.Err, s.errStyle, mismatches(list, wrong))
	}
}

// inputs are the files of --input, if any, and the size to run on.
func (s *Session) inputs(ctx context.Context, p *ir.Program) (int64, [][]byte, error) {
	if s.Set.Input == "" {
		if s.Set.Size != ir.None {
			return s.Set.Size, nil, nil
		}
		return ordinarySize(p, s.Set.DType), nil, nil
	}
	var data [][]byte
	err := interruptible(ctx, func() (err error) {
		data, err = runtime.ReadInputs(s.Set.Input, p.Coll, s.Set.DType)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	n, err := runtime.SizeOf(p.Coll, s.Set.DType, data)
	if err == nil && s.Set.Size != ir.None && s.Set.Size != n {
		return 0, nil, badCall("size", "--size %s: the inputs have %s", formatSize(s.Set.Size), formatSize(n))
	}
	return n, data, err
}

// ordinarySize is what a program runs on when nothing is said: as much as is
// quick, within the sizes that it is safe for and without padding if it can be.
func ordinarySize(p *ir.Program, d runtime.DType) int64 {
	n := usualSize(p.Coll)
	unit := int64(max(p.Coll.NumChunks(), 1)) * int64(d.Size())
	if p.OneSided != nil { // every chunk has to be a multiple of the alignment
		unit = int64(max(p.Coll.NumChunks(), 1)) * int64(max(p.OneSided.Alignment, int32(d.Size())))
		n = max(n/unit, 1) * unit
	}
	if p.MaxBytes > 0 && n > p.MaxBytes {
		n = max(p.MaxBytes/unit, 1) * unit
	}
	if n < p.MinBytes {
		n = (p.MinBytes + unit - 1) / unit * unit
	}
	return n
}

func (s *Session) runPart(p *ir.Program, rep *cpu.Report) *RunPart {
	x := &RunPart{Bytes: rep.Bytes, Elements: rep.Bytes / int64(s.Set.DType.Size()), DType: s.Set.DType.String(),
		Op: s.Set.Op.String(), Root: int32(p.Coll.Root), Iterations: len(rep.Times), MinNS: rep.Min.Nanoseconds(),
		MedianNS: rep.Median.Nanoseconds(), AlgBW: rep.AlgBW, BusBW: rep.BusBW, Moved: rep.Moved,
		MoveRate: rep.MoveRate, Verified: rep.Verified, Compared: rep.Compared, Wrong: rep.Wrong,
		Unbounded: rep.Unbounded, MaxError: rep.MaxError, MaxBound: rep.MaxBound,
		Mismatches: rep.Mismatches}
	if x.Mismatches == nil {
		x.Mismatches = []runtime.Mismatch{}
	}
	return x
}

// mismatches are the wrong elements that the report names.
func mismatches(wrong []runtime.Mismatch, count int64) diag.List {
	var list diag.List
	for _, m := range wrong {
		list = append(list, diag.Errorf(diag.Pos{}, "wrong-result", "%s", m))
	}
	if more := count - int64(len(wrong)); more > 0 && len(list) > 0 {
		list[len(list)-1].Note(diag.Pos{}, "and %s more", plural(more, "wrong element"))
	}
	return list
}

// runError gives a refused or failed run its exit code.
func runError(err error) error {
	for _, m := range diag.Messages(err) {
		switch m.Code {
		case "size", "size-window", "dtype", "op", "input", "exact", "verify", "slots", "file":
			return &codedError{exitCall, err}
		case "memory":
			return &codedError{exitMachine, err}
		}
	}
	return err
}
