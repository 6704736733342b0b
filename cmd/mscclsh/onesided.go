package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
	"github.com/mscclsh/mscclsh/starlib"
)

// compileProgram makes a program of what a script traced, of either level.
func (s *Session) compileProgram(ctx context.Context, p *starlib.Program) error {
	if p.One != nil {
		return s.compileOneSided(ctx, p.One, p.Pos)
	}
	return s.compile(ctx, p.DAG, p.Pos)
}

// compileOneSided is compile for a one-sided trace.
func (s *Session) compileOneSided(ctx context.Context, t *ir.OneTrace, pos diag.Pos) error {
	if err := s.Set.checkOneSided(); err != nil {
		return err
	}
	if v := s.checked; s.drawing == nil && v != nil && v.one != nil && v.key == s.oneSidedKey(t.Protocol) && sameOneTrace(v.one, t) {
		s.reuse(v)
		s.from, s.report.Program.Source = pos, pos.String()
		return nil
	}
	s.begin("compiling " + t.Name)
	dumps := newDumps(s.Set.DumpAfter)
	opt := compiler.Options{Target: s.oneSidedTarget(t.Protocol), Disable: s.Set.Disable}
	if len(dumps) > 0 {
		opt.Observe = dumps.take
		dumps.take(compiler.Stage{Pass: tracePass, Trace: t})
	}
	p, err := compiler.CompileOneSided(ctx, t, opt)
	if dumpErr := dumps.write(s.Err, s.Set.DumpAfter); dumpErr != nil && err == nil {
		return dumpErr
	}
	if err != nil {
		return compileError(err, pos)
	}
	notes := plan.InferSources(p)
	s.program, s.from = p, pos
	s.report.Program = programPart(p, pos.String())
	s.report.Compiled = countedPart(p)
	c := s.report.Compiled
	c.Target, c.OneSided = opt.Target.String(), true
	c.ChunkOperations, c.StepsBefore = len(t.Ops), len(t.Ops)
	for _, m := range notes {
		c.note(m)
	}
	return nil
}

// oneSidedTarget is native for what runs here. Everything else is judged, or
// written, as what fits into MSCCL++'s executor.
func (s *Session) oneSidedTarget(p ir.Protocol) ir.Target {
	if s.target(p) == ir.TargetNative {
		return ir.TargetNative
	}
	return ir.TargetPlain
}

// checkOneSided refuses flags that mean nothing for a one-sided program.
func (s *Settings) checkOneSided() error {
	for _, f := range [...]struct {
		name  string
		given bool
	}{{"slots", s.Slots > 0}, {"slot-bytes", s.SlotBytes > 0}, {"canonical-order", s.Canonical}, {"direct-as-simple", s.DirectAsSimple},
		{"check-passes", s.CheckPass}, {"time-passes", s.TimePass}} {
		if f.given {
			return badCall("flag-unused", "--%s: it is about programs that send and receive, and this one puts and signals", f.name)
		}
	}
	if s.Targeted && s.Target != ir.TargetNative && s.Target != ir.TargetPlain {
		return badCallHint("flag-unused", "--target native makes operations of any size, --target plain such as fit into a plan",
			"--target %s: it runs MSCCL XML, which has no words for a one-sided program", s.Target)
	}
	return nil
}

// checkTraced asks what Check() of a script asks.
func (h *host) checkTraced(ctx context.Context, p *starlib.Program) (bool, error) {
	if p.One == nil {
		return h.check(ctx, p.DAG)
	}
	c := h.child()
	if err := c.compileOneSided(ctx, p.One, p.Pos); err != nil {
		return false, err
	}
	if err := c.check(ctx); err != nil {
		return false, err
	}
	h.session.checked = &verdict{one: p.One, key: c.oneSidedKey(p.One.Protocol), program: c.program, report: c.report}
	if c.wrong() {
		h.session.failed = true
	}
	return !c.wrong(), nil
}

// oneSidedKey tells apart settings with which a one-sided trace compiles or is
// judged differently.
func (s *Session) oneSidedKey(p ir.Protocol) string {
	return fmt.Sprint(s.oneSidedTarget(p), s.Set.MinBytes, s.Set.MaxBytes, s.Set.Disable, s.Set.DumpAfter, s.Set.Strict, s.Set.GPU, s.Set.RanksPerGPU)
}

// sameOneTrace reports whether b is what a was taken from, with nothing added.
func sameOneTrace(a, b *ir.OneTrace) bool {
	if a.Coll != b.Coll { // the collective is the program's own
		return false
	}
	for g := range a.GPUs {
		if a.GPUs[g].Scratch != b.GPUs[g].Scratch || len(a.GPUs[g].Channels) != len(b.GPUs[g].Channels) ||
			len(a.GPUs[g].Semaphores) != len(b.GPUs[g].Semaphores) {
			return false
		}
	}
	return len(a.Groups) == len(b.Groups) && len(a.Loops) == len(b.Loops) &&
		slices.Equal(a.Ops, b.Ops) && slices.Equal(a.Operands, b.Operands) && slices.Equal(a.Blocks, b.Blocks)
}

// showOneSided is show(what) of a one-sided program.
func (h *host) showOneSided(ctx context.Context, p *starlib.Program, what string) error {
	c := h.child()
	switch what {
	case "chunks":
		return p.One.WriteText(c.Err)
	case "program", "report", "plan":
	default:
		return fmt.Errorf("got %q, want chunks, program, report or plan: program %q is one-sided", what, p.Name)
	}
	c.Set.DumpAfter = nil
	if what == "plan" {
		c.Set.Emit, c.Set.File = what, ""
	}
	if err := c.compileOneSided(ctx, p.One, p.Pos); err != nil {
		return err
	}
	switch what {
	case "plan":
		return c.emit()
	case "report":
		if err := c.check(ctx); err != nil {
			return err
		}
		c.report.writeHuman(c.Err, c.errStyle)
		return nil
	}
	return c.program.WriteText(c.Err)
}
