package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
	"github.com/mscclsh/mscclsh/starlib"
)

// What bench can measure beside.
const (
	againstNCCL     = "nccl"
	againstComposed = "nccl-composed"
	againstPhases   = "phases"
)

var opponents = []string{againstNCCL, againstComposed, againstPhases}

func againstFlag() toolFlag {
	return toolFlag{Name: "against", Arg: "LIST", Values: opponents,
		Help: "bench: measure beside, in the same process on the same GPUs: nccl (NCCL's collective, in its default mode and with symmetric windows; NVLS is off), nccl-composed (an allreduce of NCCL's reduce-scatter and allgather), phases (the script's further programs, a launch each, instead of the first)",
		set: func(s *Settings, v string) error {
			s.Against = nil
			for name := range strings.SplitSeq(v, ",") {
				if !slices.Contains(opponents, name) {
					return fmt.Errorf("against: got %q, want %s, or several with commas between", name, orList(opponents))
				}
				if !slices.Contains(s.Against, name) {
					s.Against = append(s.Against, name)
				}
			}
			return nil
		}}
}

// against reports whether bench measures an opponent.
func (s *Settings) against(name string) bool { return slices.Contains(s.Against, name) }

// checkAgainst refuses what can't be compared.
func (s *Settings) checkAgainst() error {
	list := strings.Join(s.Against, ",")
	switch {
	case list != "" && !s.onCUDA():
		return badCallHint("flag-unused", "add --backend cuda", "--against %s is for GPUs; this runs on the CPU", list)
	case s.against(againstPhases) && !s.Graph:
		return badCallHint("flag-unused", "add --graph", "--against phases: launches of several programs are measured in graphs only")
	}
	return nil
}

// takePhases compiles and judges all programs but the first, for --against phases, and
// returns the first; without it, all.
func (s *Session) takePhases(ctx context.Context, programs []*starlib.Program) ([]*starlib.Program, error) {
	if !s.Set.against(againstPhases) {
		return programs, nil
	}
	if len(programs) < 2 {
		return nil, badCallHint("phases", "let the script make one for the whole, then one for each phase, in their order",
			"--against phases: there is one program, %q, and none for its phases", programs[0].Name)
	}
	for _, p := range programs[1:] {
		s.report = Report{}
		if err := s.compileProgram(ctx, p); err != nil {
			return nil, err
		}
		part, rep, err := s.judge(ctx, s.program)
		if err != nil {
			return nil, err
		}
		if !part.Holds {
			s.tellFindings(rep)
			return nil, &codedError{exitWrong, diag.Errorf(p.Pos, "phases", "--against phases: program %q is wrong", p.Name)}
		}
		s.phases = append(s.phases, s.program)
	}
	return programs[:1], nil
}

// opponentsOf are what a program is measured against.
type opponentsOf struct {
	rival  *cuda.Rival // nil without
	phases []*cuda.Program
}

// openOpponents readies those that the call names, for sizes of up to most bytes.
func (s *Session) openOpponents(ctx context.Context, p *ir.Program, b *BenchPart, g *gpus, most int64) (*opponentsOf, error) {
	var calls []cuda.Call
	if s.Set.against(againstNCCL) {
		calls = append(calls, cuda.Whole)
	}
	if s.Set.against(againstComposed) {
		calls = append(calls, cuda.Composed)
	}
	o := &opponentsOf{}
	var names []string
	if len(calls) > 0 {
		s.begin("opening NCCL")
		nccl, err := cuda.OpenNCCL(ncclPaths(ctx))
		if err != nil {
			return nil, cudaError(err)
		}
		names = append(names, nccl.String())
		if o.rival, err = nccl.NewRival(p.Coll, g.numbers, most, s.Set.DType, calls...); err != nil {
			return nil, cudaError(err)
		}
		b.Against = o.rival.Modes()
	}
	for _, p := range s.phases {
		x, err := g.comm.Load(p)
		if err != nil {
			return nil, errors.Join(cudaError(err), o.close())
		}
		o.phases = append(o.phases, x)
	}
	if o.phases != nil {
		b.Against = append(b.Against, againstPhases)
		names = append(names, plural(int64(len(o.phases)), "phase")+", a launch each")
	}
	b.Opponent = strings.Join(names, "; ")
	return o, nil
}

// close ends the opponents' part; the program's own goes on.
func (o *opponentsOf) close() error {
	var errs []error
	if o.rival != nil {
		o.rival.Close()
	}
	for _, x := range o.phases {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

// benchOpponents adds their times to a row.
func (s *Session) benchOpponents(ctx context.Context, o *opponentsOf, p *ir.Program, g *gpus, b *BenchPart, row *BenchRow) error {
	if o.rival != nil {
		if err := s.benchRival(o.rival, p, b, row); err != nil {
			return err
		}
	}
	if o.phases != nil {
		return s.benchPhases(ctx, o.phases, g, b, row)
	}
	return nil
}

// benchRival adds NCCL's times.
func (s *Session) benchRival(rival *cuda.Rival, p *ir.Program, b *BenchPart, row *BenchRow) error {
	layout, err := runtime.NewLayout(p.Coll, s.Set.DType, row.Bytes)
	if err != nil {
		return err
	}
	for mode, name := range rival.Modes() {
		s.begin("measuring " + name + " at " + formatSize(row.Bytes))
		times, err := rival.Time(mode, layout, s.Set.Op, cuda.Timing{Repetitions: b.Repetitions, Warmup: b.Warmup,
			Launches: row.Launches, Graph: s.Set.Graph})
		part := AgainstPart{}
		switch {
		case err == nil:
			part.take(times, row)
		case cuda.CannotCompare(err):
			part.Why = diag.Messages(err)[0].Text
		default:
			return err
		}
		row.Against = append(row.Against, part)
	}
	return nil
}

// benchPhases adds the phases' times.
func (s *Session) benchPhases(ctx context.Context, phases []*cuda.Program, g *gpus, b *BenchPart, row *BenchRow) error {
	s.begin("measuring phases at " + formatSize(row.Bytes))
	opt := s.cudaOptions()
	opt.Bytes, opt.Repetitions, opt.Warmup, opt.Launches = row.Bytes, b.Repetitions, b.Warmup, row.Launches
	rep, err := g.program.RunPhases(ctx, phases, opt)
	part := AgainstPart{}
	switch {
	case err == nil:
		part.take(rep.Nanoseconds, row)
		part.Wrong = rep.Wrong
		s.tellWrong(rep.Mismatches, rep.Wrong)
	case outside(err), hasCode(err, "phases"):
		part.Why = strings.TrimPrefix(diag.Messages(err)[0].Text, "run: ")
	default:
		return err
	}
	row.Against = append(row.Against, part)
	return nil
}

// take makes figures of an opponent's times, nanoseconds of each repetition.
func (a *AgainstPart) take(times []float64, row *BenchRow) {
	a.MedianNS, _, _ = spread(times)
	if row.MedianNS > 0 {
		a.Ratio = a.MedianNS / row.MedianNS
	}
}
