package main

import (
	"bufio"
	"context"
	"io"
	"slices"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
)

// deliver does with a program, compiled or read, what the call asks for: judges
// it, writes it, runs it. A program that is wrong is neither written nor run.
func (s *Session) deliver(ctx context.Context, run bool) error {
	if s.drawing != nil {
		return s.draw(ctx)
	}
	if err := s.check(ctx); err != nil || s.wrong() {
		return err
	}
	if s.Set.Emit == "plan" && s.program.OneSided == nil {
		if err := s.export(ctx); err != nil || s.wrong() {
			return err
		}
	}
	if s.Set.Emit != "" {
		if err := s.emit(); err != nil {
			return err
		}
	}
	if run {
		return s.run(ctx)
	}
	return nil
}

// check judges the program and reports the verdict.
func (s *Session) check(ctx context.Context) error {
	if s.report.Check != nil { // the script's own Check() has judged it
		return nil
	}
	s.begin("checking " + s.program.Name)
	part, rep, err := s.judge(ctx, s.program)
	if err != nil {
		return err
	}
	part.advise = s.report.Read == nil && !s.Set.Canonical && s.program.OneSided == nil
	s.report.Check = part
	s.tellFindings(rep)
	if c := s.report.Compiled; s.Set.Canonical && rep.OrderDiffers && s.report.Read == nil {
		c.note(diag.Warningf(s.from, "order-differs", "--canonical-order: ranks still add in different orders"))
	}
	return nil
}

// judge is the checker's verdict on p.
func (s *Session) judge(ctx context.Context, p *ir.Program) (*CheckPart, *checker.Report, error) {
	rep, err := checker.Check(ctx, p, checker.Options{MinBytes: s.Set.MinBytes, MaxBytes: s.Set.MaxBytes})
	if err != nil {
		return nil, nil, err
	}
	s.fit(p, rep)
	for _, m := range rep.Messages {
		if !m.Pos.IsValid() { // nothing of the script did it: say where the program began
			m.Pos = s.from
		}
	}
	return &CheckPart{Holds: rep.OK, Regimes: rep.Regimes, MinSlots: rep.MinSlots, SafeRegime: rep.SafeRegime,
		SafeMaxBytes: rep.SafeMaxBytes, OrderDiffers: rep.OrderDiffers, OneSided: rep.OneSided, Direct: rep.Direct, Demanded: demanded(p),
		Races: rep.Races, RacesAcross: rep.RacesAcross, GPU: s.Set.GPU.Name, GPURanks: min(s.Set.RanksPerGPU, p.Ranks()), Messages: jsonMessages(rep.Messages),
		list: rep.Messages}, rep, nil
}

// fit adds to the report whether the GPU that was named, if one was, runs all
// thread blocks. Of a program that contradicts itself nothing more is asked.
func (s *Session) fit(p *ir.Program, rep *checker.Report) {
	if s.Set.GPU.Name == "" || rep.Has(checker.CodeProgram) {
		return
	}
	rep.Messages = append(rep.Messages, checker.Fit(p, s.Set.GPU, max(s.Set.RanksPerGPU, 1))...)
	rep.OK = !rep.Messages.HasErrors()
}

func (s *Session) tellFindings(rep *checker.Report) {
	if !rep.OK || !s.Set.Quiet {
		s.begin("")
		writeMessages(s.Err, s.errStyle, spoken(rep.Messages))
	}
}

// demanded reports whether the collective wants anything of the outputs: one to
// try operations with doesn't.
func demanded(p *ir.Program) bool {
	if p.Coll.Kind != ir.Custom {
		return true
	}
	return slices.ContainsFunc(p.Coll.Custom.Expect, func(rank [][]ir.Contribution) bool {
		return slices.ContainsFunc(rank, func(want []ir.Contribution) bool { return want != nil })
	})
}

// maxWarnings is how many warnings of one kind are printed; --json has all.
const maxWarnings = 3

// spoken leaves out what the report says anyway, and warnings after the first few
// of a kind.
func spoken(list diag.List) diag.List {
	count := make(map[string]int)
	return slices.DeleteFunc(slices.Clone(list), func(m *diag.Message) bool {
		if m.Severity == diag.Warning {
			count[m.Code]++
		}
		return m.Severity == diag.Info || m.Severity == diag.Warning && count[m.Code] > maxWarnings
	})
}

// export makes a one-sided program of a two-sided one and judges it once more: it
// is another program, and it is the one that will run.
func (s *Session) export(ctx context.Context) error {
	s.begin("exporting " + s.program.Name)
	p, notes, err := compiler.OneSided(ctx, s.program, compiler.OneSidedOptions{})
	if err != nil {
		return compileError(err, s.from)
	}
	n := p.Count()
	part := &ExportedPart{ThreadBlocks: n.TBs, MaxThreadBlocks: n.MaxTBs, Channels: n.Channels, Operations: n.Steps,
		MinBytes: p.MinBytes, MaxBytes: p.MaxBytes, Notes: jsonMessages(notes), list: notes}
	s.begin("checking the plan of " + p.Name)
	check, rep, err := s.judge(ctx, p)
	if err != nil {
		return err
	}
	check.advise = s.report.Read == nil && !s.Set.Canonical
	part.Check = check
	s.report.Exported = part
	s.tellFindings(rep)
	s.program = p
	return nil
}

// emitsToOut reports whether standard output belongs to an emitted program.
func (s *Session) emitsToOut() bool { return s.Set.Emit != "" && s.Set.toStdout() }

// writeForm writes the program in form f. A script of MSCCL++'s gets the plan that
// its own compiler makes, with warnings of what the executor does otherwise.
func (s *Session) writeForm(w io.Writer, f *format) error {
	if !s.asWritten || f.Name != "plan" {
		return f.write(w, s.program, s.Set)
	}
	notes, err := plan.WriteAsWritten(w, s.program)
	for _, m := range notes {
		if !m.Pos.IsValid() {
			m.Pos = s.from
		}
		s.warn(m)
	}
	return err
}

// emit writes the program in the form asked for.
func (s *Session) emit() error {
	s.begin("writing " + s.program.Name)
	f := findFormat(s.Set.Emit)
	if err := f.refuseSide(s.program); err != nil {
		return err
	}
	if s.input != "" && !s.Set.toStdout() && overwrites(s.Set.File, s.input) {
		return badCall("output", "writing %s: that is the file which the program comes from", s.Set.File)
	}
	write := func(w io.Writer) error {
		err := s.writeForm(w, f)
		if err != nil && diag.Messages(err)[0].Code == "" {
			return cannot("writing the %s: %w", s.Set.Emit, err)
		}
		return compileError(err, s.from)
	}
	if s.Set.toStdout() {
		s.begin("") // no progress line between the lines of the result
		buf := bufio.NewWriterSize(s.Out, 1<<20)
		if err := write(buf); err != nil {
			return err
		}
		if err := buf.Flush(); err != nil {
			return cannot("writing the %s: %w", s.Set.Emit, err)
		}
		return nil
	}
	if err := writeFile(s.Set.File, write); err != nil {
		return err
	}
	s.report.Emitted = &EmittedPart{Form: s.Set.Emit, File: s.Set.File}
	return nil
}
