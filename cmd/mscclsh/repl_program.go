package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
)

// shellProgram is a program that commands can be about: one that was traced, by
// the session or by a Python script, or one that was read.
type shellProgram struct {
	name   string
	from   string // where it comes from, for people
	open   bool
	traced *starlib.Program
	read   *ir.Program
	im     *imported
}

// programs are those that commands can be about, the latest last.
func (s *Shell) programs() ([]shellProgram, error) {
	var live []shellProgram
	for _, p := range s.live.Programs() {
		live = append(live, shellProgram{name: p.Name, from: p.Pos.String(), traced: &p})
	}
	if o := s.live.Current(); o != nil {
		p, err := o.Program()
		if err != nil {
			return nil, err
		}
		live = append(live, shellProgram{name: o.Name, from: o.Pos.String(), open: true, traced: p})
	}
	var read []shellProgram
	latest := false // a file is the latest
	for i := range s.entries {
		if e := &s.entries[i]; e.kind == entryFile {
			read, latest = append(read, e.programs...), true
		} else if e.touches {
			latest = false
		}
	}
	if latest {
		return append(live, read...), nil
	}
	return append(read, live...), nil
}

// subject is the program that commands are about: the one chosen, else the open
// one, else the latest.
func (s *Shell) subject() (*shellProgram, error) {
	list, err := s.programs()
	if err != nil {
		return nil, err
	}
	for i := len(list) - 1; i >= 0; i-- {
		if s.chosen == "" || list[i].name == s.chosen {
			return &list[i], nil
		}
	}
	if s.chosen != "" && len(list) > 0 {
		s.note("program %q is no more; this is about the latest", s.chosen)
		s.chosen = ""
		return &list[len(list)-1], nil
	}
	return nil, badCallHint("no-program", "open MSCCLProgram(\"name\", fully_connected(4), AllReduce(4, 1, True)) begins one, load FILE reads one",
		"there is no program yet")
}

// make compiles the program, or takes the one that was read, into a session.
func (s *Shell) make(ctx context.Context, c *Session, p *shellProgram) error {
	if p.traced == nil {
		c.report.Read = readPart(p.im)
		q := *p.read
		retarget(&q, c.Set)
		c.take(&q, p.from)
		return nil
	}
	if d := p.traced.DAG; d != nil {
		if err := c.startAuto(d, 0); err != nil {
			return err
		}
	}
	return c.compileProgram(ctx, p.traced)
}

// final is the compiled program alone.
func (s *Shell) final(ctx context.Context, set *Settings) (*ir.Program, error) {
	p, err := s.subject()
	if err != nil {
		return nil, err
	}
	c := s.session(set)
	c.Set.Quiet = true
	if err := c.guard(func() error { return s.make(ctx, c, p) }); err != nil {
		return nil, err
	}
	c.begin("")
	return c.program, nil
}

// traced is the program as it was written, which one that was read doesn't have.
func (s *Shell) traced(command string) (*starlib.Program, error) {
	p, err := s.subject()
	if err != nil {
		return nil, err
	}
	if p.traced == nil {
		return nil, badCallHint("no-trace", "schedule shows what it does", "%s: program %q was read from a file, which has no operations on chunks", command, p.name)
	}
	if p.traced.DAG == nil {
		return nil, badCallHint("no-trace", "schedule shows what it does", "%s: program %q is one-sided: it has no operations on chunks", command, p.name)
	}
	return p.traced, nil
}

func shellCheck(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	p, err := s.subject()
	if err != nil {
		return false, err
	}
	return s.judged(ctx, call.set, func(c *Session) error {
		c.judgeOnly = true
		if err := s.make(ctx, c, p); err != nil {
			return err
		}
		return c.deliver(ctx, false)
	})
}

// backendArgs takes where to run and the size out of the arguments of run.
func backendArgs(call *invocation) error {
	for _, a := range call.args {
		if slices.Contains(backends, a) {
			call.set.Backend = a
			continue
		}
		if err := findFlag(flagTable(), "size").set(call.set, a); err != nil || a == "" || a[0] < '0' || a[0] > '9' {
			return badCallHint("bad-argument", didYouMean(a, backends, ""), "%s: got %q, want cpu, cuda or a size such as 64MiB", call.name, a)
		}
	}
	return call.set.validate()
}

func shellRun(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	if err := backendArgs(call); err != nil {
		return false, err
	}
	p, err := s.subject()
	if err != nil {
		return false, err
	}
	return s.judged(ctx, call.set, func(c *Session) error {
		if err := s.make(ctx, c, p); err != nil {
			return err
		}
		return c.deliver(ctx, true)
	})
}

func shellBench(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	for _, a := range call.args {
		if err := oneOfWords("bench", a, backends); err != nil {
			return false, err
		}
		call.set.Backend = a
	}
	p, err := s.subject()
	if err != nil {
		return false, err
	}
	return s.judged(ctx, call.set, func(c *Session) error {
		c.benching = true
		if slices.Contains(c.Set.Against, againstPhases) {
			return badCall("flag-unused", "--against phases: the programs of a script are compared by mscclsh bench")
		}
		for _, f := range []func() error{c.Set.validate, c.checkBench} {
			if err := f(); err != nil {
				return err
			}
		}
		if err := s.make(ctx, c, p); err != nil {
			return err
		}
		return c.deliver(ctx, true)
	})
}

// shellEmit writes the program in a form, to a file if one is named.
func shellEmit(form string) func(context.Context, *Shell, *invocation) (bool, error) {
	return func(ctx context.Context, s *Shell, call *invocation) (bool, error) {
		if len(call.args) > 0 {
			call.set.File = call.args[0]
		}
		p, err := s.subject()
		if err != nil {
			return false, err
		}
		defer s.exact()()
		return s.judged(ctx, call.set, func(c *Session) error {
			c.Set.Emit = form
			if err := c.Set.validate(); err != nil {
				return err
			}
			if err := s.make(ctx, c, p); err != nil {
				return err
			}
			return c.deliver(ctx, false)
		})
	}
}

// shellProgramCommand lists the programs, or chooses one.
func shellProgramCommand(_ context.Context, s *Shell, call *invocation) (bool, error) {
	list, err := s.programs()
	if err != nil {
		return false, err
	}
	if len(call.args) > 0 {
		names := make([]string, len(list))
		for i := range list {
			names[i] = list[i].name
		}
		if len(list) == 0 {
			return false, badCall("no-program", "program: there is none yet")
		}
		if err := oneOfWords("program", call.args[0], names); err != nil {
			return false, err
		}
		s.chosen = call.args[0]
		s.changed()
	}
	now, err := s.subject()
	if err != nil {
		return false, err
	}
	for i := range list {
		p := &list[i]
		mark := " "
		if p.name == now.name && p.from == now.from {
			mark = "*"
		}
		s.say("%s %s", mark, p.about())
	}
	return true, nil
}

// about is a program on one line.
func (p *shellProgram) about() string {
	state := ""
	if p.open {
		state = ", open"
	}
	coll, ops := (*ir.Collective)(nil), ""
	if p.traced != nil {
		coll, ops = p.traced.Spec().Coll, plural(int64(p.traced.Ops()), "operation")
	} else {
		coll, ops = p.read.Coll, plural(int64(p.read.Count().Steps), "step")
	}
	return fmt.Sprintf("%s: %s on %s, %s, from %s%s", printable(p.name), coll, plural(int64(coll.Ranks), "rank"), ops, p.from, state)
}

// shellOpen begins a program that stays open until close.
func shellOpen(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	expr := strings.TrimSuffix(strings.TrimSpace(call.line), ":")
	if expr == "" {
		return false, badCallHint("missing-argument", `open MSCCLProgram("name", fully_connected(4), AllReduce(4, 1, True))`, "open: an argument is missing")
	}
	if o := s.live.Current(); o != nil {
		m := diag.Errorf(diag.Pos{}, "nested-program", "open: program %q is open already", o.Name).Note(o.Pos, "it began here")
		m.Suggestion = "close ends it"
		return false, &codedError{exitCall, m}
	}
	if err := s.accept(ctx, entry{kind: entryOpen, text: "with " + expr + ":\n"}); err != nil {
		return false, err
	}
	s.split.block = false
	return true, nil
}

func shellClose(_ context.Context, s *Shell, _ *invocation) (bool, error) {
	o := s.live.Current()
	if o == nil {
		return false, badCall("no-program", "close: no program is open")
	}
	if err := s.closeProgram(); err != nil {
		return false, err
	}
	if o.Known && o.Right < o.Demanded {
		s.note("program %q ends with %d of its %d outputs right", o.Name, o.Right, o.Demanded)
	}
	return true, nil
}
