package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// compile makes a program of a trace and reports on it.
// pos is where the program began, for messages that know no better.
func (s *Session) compile(ctx context.Context, d *ir.ChunkDAG, pos diag.Pos) error {
	if s.drawing == nil && s.recall(d) {
		s.report.Program.Source = pos.String()
		return nil
	}
	s.begin("compiling " + d.Name)
	dumps := newDumps(s.Set.DumpAfter)
	opt, err := s.compileOptions(d)
	if err != nil {
		return err
	}
	var passes passJudge
	observe := func(st compiler.Stage) {
		dumps.take(st)
		if s.drawing != nil {
			s.drawing.keep(st)
		}
		if s.Set.CheckPass {
			passes.take(ctx, st)
		}
	}
	if len(dumps) > 0 || s.Set.CheckPass || s.drawing != nil {
		opt.Observe = observe
		observe(compiler.Stage{Pass: tracePass, Chunks: d})
	}
	res, err := compiler.Compile(ctx, d, opt)
	if err == nil {
		err = passes.verdict()
	}
	if dumpErr := dumps.write(s.Err, s.Set.DumpAfter); dumpErr != nil && err == nil {
		return dumpErr
	}
	if err != nil {
		return compileError(err, pos)
	}
	if err := s.Set.checkSlots(res.Program); err != nil {
		return err
	}
	s.program, s.from = res.Program, pos
	s.report.Program = programPart(res.Program, pos.String())
	s.report.Compiled = s.compiledPart(res, opt.Target)
	s.warnOfTarget(opt.Target)
	if s.Set.TimePass {
		s.timePasses(res.Times)
	}
	return nil
}

// compileError tells a defect of the compiler from a program it refuses. What is
// wrong with a program as a whole is said where it began.
func compileError(err error, pos diag.Pos) error {
	if err == nil {
		return nil
	}
	list := slices.Clone(diag.Messages(err))
	known := slices.ContainsFunc(list, func(m *diag.Message) bool { return m.Code != "" || m.Pos.IsValid() })
	switch {
	case !known && strings.Contains(err.Error(), "internal error"):
		return &codedError{exitMachine, err}
	case !known: // canceled, say
		return err
	}
	for i, m := range list {
		if !m.Pos.IsValid() {
			at := *m
			at.Pos = pos
			list[i] = &at
		}
	}
	return list
}

func programPart(p *ir.Program, source string) *ProgramPart {
	part := &ProgramPart{Name: p.Name, Source: source, Collective: p.Coll.String(), Ranks: p.Ranks(),
		Chunks: p.Coll.NumChunks(), Instances: p.Instances, Protocol: p.Protocol.String(), InPlace: p.Coll.InPlace}
	if p.Topo != nil {
		part.Topology = p.Topo.Name
	}
	return part
}

// countedPart is what can be counted in any program.
func countedPart(p *ir.Program) *CompiledPart {
	n := p.Count()
	c := &CompiledPart{ThreadBlocks: n.TBs, MaxThreadBlocks: n.MaxTBs, Channels: n.Channels,
		Steps: n.Steps - n.Nops, Nops: n.Nops, Dependencies: n.Deps, MinBytes: p.MinBytes, MaxBytes: p.MaxBytes,
		Slots: p.Transport.Slots, SlotBytes: p.Transport.SlotBytes, Notes: []jsonMessage{}}
	for i := range p.GPUs {
		c.ScratchChunks += int64(p.GPUs[i].Scratch)
		c.MaxScratchChunks = max(c.MaxScratchChunks, p.GPUs[i].Scratch)
	}
	return c
}

func (s *Session) compiledPart(res *compiler.Result, target ir.Target) *CompiledPart {
	c := countedPart(res.Program)
	c.Target = target.String()
	c.ChunkOperations = res.Stats.ChunkOps
	c.StepsBefore = res.Stats.StepsBefore
	c.Steps = res.Stats.StepsAfter
	c.DependenciesFound = res.Stats.DepsBefore
	c.Dependencies = res.Stats.DepsAfter
	c.list = res.Notes
	c.Notes = jsonMessages(res.Notes)
	if s.Set.TimePass {
		for _, t := range res.Times {
			c.Passes = append(c.Passes, PassPart{t.Pass, t.Duration.Nanoseconds()})
		}
	}
	return c
}

// warnOfTarget says if the target can't load the program: it can be run here all
// the same. When it is written the writer refuses it.
func (s *Session) warnOfTarget(target ir.Target) {
	if s.Set.Emit == "xml" || target == ir.TargetNative {
		return
	}
	c := s.report.Compiled
	for _, m := range diag.Messages(mscclxml.Refuse(s.program, target)) {
		w := *m
		w.Severity = diag.Warning
		w.Text = c.Target + " can't load it: " + strings.TrimPrefix(m.Text, "target "+c.Target+": ")
		c.note(&w)
	}
}

// note adds a note that isn't the compiler's own.
func (c *CompiledPart) note(m *diag.Message) {
	c.list = append(slices.Clip(c.list), m) // not into what the compiler still has
	c.Notes = append(c.Notes, jsonMessages(diag.List{m})...)
}

// timePasses prints the passes' times for a person.
func (s *Session) timePasses(times []compiler.PassTime) {
	var all time.Duration
	for _, t := range times {
		all += t.Duration
	}
	for _, t := range times {
		s.say(fmt.Sprintf("%-14s %10.3f ms %5.1f%%", t.Pass, float64(t.Duration)/1e6, 100*float64(t.Duration)/max(1, float64(all))))
	}
	s.say(fmt.Sprintf("%-14s %10.3f ms", "all passes", float64(all)/1e6))
}

// dumps keeps the latest text of every stage that is to be dumped: a pass that
// runs again replaces what it made before.
type dumps map[string]*bytes.Buffer

func newDumps(passes []string) dumps {
	d := make(dumps)
	for _, p := range passes {
		d[p] = nil
	}
	return d
}

// take renders a stage at once: later passes may change it.
func (d dumps) take(st compiler.Stage) {
	if _, wanted := d[st.Pass]; !wanted {
		return
	}
	buf := &bytes.Buffer{}
	var err error
	switch {
	case st.Chunks != nil:
		err = st.Chunks.WriteText(buf)
	case st.Trace != nil:
		err = st.Trace.WriteText(buf)
	case st.Instrs != nil:
		err = st.Instrs.WriteText(buf)
	case st.Program != nil:
		err = st.Program.WriteText(buf)
	}
	if err != nil {
		fmt.Fprintf(buf, "# %v\n", err)
	}
	d[st.Pass] = buf
}

// write prints the dumps in the order of the pipeline.
func (d dumps) write(w io.Writer, asked []string) error {
	for _, name := range append([]string{"trace"}, passNames()...) {
		if !slices.Contains(asked, name) {
			continue
		}
		buf := d[name]
		if buf == nil {
			fmt.Fprintf(w, "# %s did not run\n", name)
			continue
		}
		if _, err := fmt.Fprintf(w, "# after %s\n%s", name, buf.Bytes()); err != nil {
			return cannot("writing the dump: %w", err)
		}
	}
	return nil
}
