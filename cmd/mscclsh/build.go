package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
	"github.com/mscclsh/mscclsh/viz"
)

// compile makes a program of a trace and reports on it.
func (s *Session) compile(ctx context.Context, d *ir.ChunkDAG) error {
	if s.recall(d) {
		return nil
	}
	s.begin("compiling " + d.Name)
	dumps := newDumps(s.Set.DumpAfter)
	opt := s.compileOptions()
	if len(dumps) > 0 {
		opt.Observe = func(st compiler.Stage) { dumps.take(st) }
		dumps.take(compiler.Stage{Pass: "trace", Chunks: d})
	}
	res, err := compiler.Compile(ctx, d, opt)
	if dumpErr := dumps.write(s.Err, s.Set.DumpAfter); dumpErr != nil && err == nil {
		return dumpErr
	}
	if err != nil {
		return compileError(err)
	}
	s.program = res.Program
	s.report.Program = programPart(res.Program, d.Name)
	s.report.Compiled = s.compiledPart(res)
	if s.Set.TimePass {
		s.timePasses(res.Times)
	}
	return nil
}

// compileError tells a defect of the compiler from a program it refuses.
func compileError(err error) error {
	for _, m := range diag.Messages(err) {
		if m.Code != "" || m.Pos.IsValid() {
			return err
		}
	}
	if strings.Contains(err.Error(), "internal error") {
		return &codedError{exitMachine, err}
	}
	return err
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

func (s *Session) compiledPart(res *compiler.Result) *CompiledPart {
	c := countedPart(res.Program)
	c.Target = s.Set.Target.String()
	c.ChunkOperations = res.Stats.ChunkOps
	c.StepsBefore = res.Stats.StepsBefore
	c.Steps = res.Stats.StepsAfter
	c.DependenciesFound = res.Stats.DepsBefore
	c.Dependencies = res.Stats.DepsAfter
	c.Notes = jsonMessages(res.Notes)
	if s.Set.TimePass {
		for _, t := range res.Times {
			c.Passes = append(c.Passes, PassPart{t.Pass, t.Duration.Nanoseconds()})
		}
	}
	return c
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

// check judges the program and reports the verdict.
func (s *Session) check(ctx context.Context) error {
	if s.report.Check != nil { // the script's own Check() has judged it
		return nil
	}
	s.begin("checking " + s.program.Name)
	rep, err := checker.Check(ctx, s.program, checker.Options{MinBytes: s.Set.MinBytes, MaxBytes: s.Set.MaxBytes})
	if err != nil {
		return err
	}
	s.report.Check = &CheckPart{Holds: rep.OK, Regimes: rep.Regimes, MinSlots: rep.MinSlots,
		OrderDiffers: rep.OrderDiffers, Messages: jsonMessages(rep.Messages)}
	if !rep.OK || !s.Set.Quiet {
		s.begin("")
		writeMessages(s.Err, s.errStyle, spoken(rep.Messages))
	}
	return nil
}

// spoken leaves out what the report says anyway.
func spoken(list diag.List) diag.List {
	return slices.DeleteFunc(slices.Clone(list), func(m *diag.Message) bool { return m.Severity == diag.Info })
}

// emitsToOut reports whether standard output belongs to an emitted program.
func (s *Session) emitsToOut() bool { return s.Set.Emit != "" && s.Set.toStdout() }

// emit writes the program in the form asked for.
func (s *Session) emit() error {
	s.begin("writing " + s.program.Name)
	write := func(w io.Writer) error {
		switch s.Set.Emit {
		case "xml":
			return mscclxml.Write(w, s.program, s.Set.Target)
		case "dot":
			return viz.DOTProgram(w, s.program)
		}
		return s.program.WriteText(w)
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
