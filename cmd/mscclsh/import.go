package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// file does with a program that was read all that is done with a compiled one.
// Only flags of the tool may follow it.
func (s *Session) file(ctx context.Context, f *format, src source, rest []string) error {
	help, rest := cutHelp(rest)
	if help {
		writeHelp(s.Out, &commandTable()[0])
		return nil
	}
	tool := s.toolFlags()
	args, err := splitScriptArgs(rest, tool)
	if err != nil {
		return err
	}
	if err := applyToolArgs(s.Set, args, tool, nil); err != nil {
		return err
	}
	if err := s.Set.validate(); err != nil {
		return err
	}
	if err := s.fits(f); err != nil {
		return err
	}
	im, err := readProgram(ctx, f, src, s.Set)
	if err != nil {
		return err
	}
	programs, err := s.modes(im)
	if err != nil {
		return err
	}
	run := !s.judgeOnly && (s.Set.Emit == "" || s.Set.Run)
	return s.each(len(programs), func(i int) error {
		s.report.Read = readPart(im)
		s.take(programs[i], src.file)
		return s.deliver(ctx, run)
	})
}

// each does the same with several programs and puts their reports together. The
// first error ends it, with the report on that program.
func (s *Session) each(n int, do func(i int) error) error {
	var reports []Report
	for i := range n {
		s.report = Report{}
		if err := do(i); err != nil {
			return err
		}
		reports = append(reports, s.report)
	}
	s.report = reports[0]
	s.report.More = reports[1:]
	return nil
}

// fits refuses flags that mean nothing for this call.
func (s *Session) fits(f *format) error {
	if s.drawing == nil && s.judgeOnly {
		if err := s.Set.judgesOnly(); err != nil {
			return err
		}
	} else if err := s.Set.runs(); err != nil {
		return err
	}
	if err := s.checkBench(); err != nil {
		return err
	}
	if err := s.checkDraw(); err != nil {
		return err
	}
	if err := s.checkKernel(); err != nil {
		return err
	}
	if err := s.Set.checkTrace(s.benching); err != nil {
		return err
	}
	return s.Set.fits(f)
}

// readProgram reads a file and gives a program without a name that of the file.
func readProgram(ctx context.Context, f *format, src source, set *Settings) (*imported, error) {
	im, err := f.read(ctx, src, set)
	if err != nil {
		return nil, err
	}
	im.format = f
	for i, p := range im.programs {
		if err := set.checkSlots(p); err != nil {
			return nil, err
		}
		if target := set.fileTarget(); set.DirectAsSimple && target != ir.TargetNative {
			p = mscclxml.AsSimple(p, target)
			im.programs[i] = p
		}
		if p.Name == "" {
			base := filepath.Base(src.file)
			p.Name = strings.TrimSuffix(base, filepath.Ext(base))
		}
		retarget(p, set)
	}
	return im, nil
}

// retarget gives a program other connections than those it was read with: the ones
// asked for, or those of the runtime that --target names.
func retarget(p *ir.Program, set *Settings) {
	if p.OneSided != nil {
		return
	}
	if set.Targeted && set.Target.Limits().Count > 0 { // a runtime's, not a tool's
		p.Transport = set.Target.Transport(p.Protocol)
	}
	if p.Direct() {
		return
	}
	if set.Slots > 0 {
		p.Transport.Slots = set.Slots
	}
	if set.SlotBytes > 0 {
		p.Transport.SlotBytes = set.SlotBytes
	}
}

// modes are the programs of a file that the call is about: all it declares, the
// one asked for, or, where a file is written that holds one, the first.
func (s *Session) modes(im *imported) ([]*ir.Program, error) {
	all := im.programs
	var out []*ir.Program
	for _, p := range all {
		if s.Set.InPlace && !p.Coll.InPlace || s.Set.OutOfPlace && p.Coll.InPlace {
			continue
		}
		out = append(out, p)
	}
	switch {
	case len(out) == 0:
		return nil, badCall("mode", "--%s: program %q declares %s only", modeFlag(s.Set.InPlace), all[0].Name, modeName(!s.Set.InPlace))
	case len(out) > 1 && (s.drawing != nil || s.Set.Emit != "" || s.Set.Output != "" || s.Set.Trace != ""):
		s.warn(diag.Warningf(diag.Pos{}, "mode", "the file declares two modes; this is the one in place").
			Suggest("--out-of-place is the other one"))
		out = out[:1]
	}
	return out, nil
}

// take makes p the session's program.
func (s *Session) take(p *ir.Program, file string) {
	s.program, s.from = p, diag.Pos{}
	s.report.Program = programPart(p, file)
	s.report.Compiled = countedPart(p)
}

func readPart(im *imported) *ReadPart {
	r := &ReadPart{Format: im.format.Name, Rules: im.rules, Notes: jsonMessages(im.notes), list: im.notes}
	for _, name := range im.runtimes {
		taken := true
		for _, f := range im.refusals {
			if f.Runtime.String() == name {
				taken = false
				r.Refusals = append(r.Refusals, RefusalPart{name, f.Reason, f.Pos.Line, f.Pos.Col})
			}
		}
		if taken {
			r.Runtimes = append(r.Runtimes, name)
		}
	}
	return r
}

func modeFlag(inPlace bool) string {
	if inPlace {
		return "in-place"
	}
	return "out-of-place"
}
