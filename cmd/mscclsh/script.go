package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
)

// Run is the main job, with a script or with a program that was written before.
// args are the file and what stands after it.
func (s *Session) Run(ctx context.Context, args []string) error {
	return s.finish(ctx, s.guard(func() error {
		src, err := s.open(ctx, args[0])
		if err != nil {
			return err
		}
		if f := formatOf(src); f != nil && f.read != nil {
			return s.file(ctx, f, src, args[1:])
		}
		return s.script(ctx, src, args[1:])
	}))
}

// open reads the file that the call is about.
func (s *Session) open(ctx context.Context, file string) (source, error) {
	s.begin("reading " + file)
	data, err := readScript(ctx, file)
	if err != nil {
		return source{}, scriptNotFound(file, err)
	}
	s.input = file
	if s.drawing != nil {
		s.drawing.source = data
	}
	return source{file, data}, nil
}

// script traces a script's program, compiles it, checks it, and emits it or runs
// it. Of a Python script all programs are meant, as they are in msccl-tools.
func (s *Session) script(ctx context.Context, src source, rest []string) error {
	programs, err := s.trace(ctx, src, rest)
	if err != nil || len(programs) == 0 {
		return err
	}
	if programs, err = s.takePhases(ctx, programs); err != nil {
		return err
	}
	emit := s.Set.Emit
	tasks := s.tasks(programs)
	return s.each(len(tasks), func(i int) error {
		prog := tasks[i].prog
		s.Set.Emit = emit
		if err := s.settle(prog); err != nil {
			return err
		}
		if prog.DAG != nil {
			if err := s.startAuto(prog.DAG, tasks[i].size); err != nil {
				return err
			}
		}
		if err := s.compileProgram(ctx, prog); err != nil {
			return err
		}
		asks := (prog.WantXML || prog.WantPlan) && !s.benching // who measures wants no file
		return s.deliver(ctx, !s.judgeOnly && (s.Set.Emit == "" && !asks || s.Set.Run))
	})
}

// task is a program to compile: what a trace is for a size, 0 where any will do.
type task struct {
	prog *starlib.Program
	size int64
}

// tasks are all that is to be compiled of the programs: who judges only wants all of
// what protocol auto stands for.
func (s *Session) tasks(programs []*starlib.Program) []task {
	var out []task
	for _, p := range programs {
		if !s.judgeOnly || p.Spec().Protocol != ir.AutoProtocol {
			out = append(out, task{prog: p})
			continue
		}
		for _, size := range compiler.AutoSizes(p.Spec().Coll) {
			out = append(out, task{p, size})
		}
	}
	return out
}

// trace runs the script and chooses the programs. It returns none without an error
// when only help was asked for.
func (s *Session) trace(ctx context.Context, src source, rest []string) ([]*starlib.Program, error) {
	if err := s.Set.validate(); err != nil {
		return nil, err
	}
	f := formatOfName(src.file)
	python := f != nil && f.Name == "python"
	run := s.traceStarlark
	if python {
		run = s.tracePython
	}
	script, err := run(ctx, src, rest)
	if err != nil || script == nil {
		return nil, err
	}
	if err := s.Set.validate(); err != nil {
		return nil, err
	}
	if err := s.fits(findFormat("star")); err != nil {
		return nil, err
	}
	found, err := choosePrograms(script.Programs, s.Set.Program, src.file)
	if err == nil && len(found) > 1 && !s.Set.against(againstPhases) && (!python || s.drawing != nil || s.Set.File != "" && !s.Set.toStdout() || s.Set.Output != "" || s.Set.Trace != "") {
		return nil, severalPrograms(found, src.file)
	}
	return found, err
}

// severalPrograms asks for one of them. A Python script's may have one name.
func severalPrograms(found []*starlib.Program, file string) error {
	var names []string
	for _, p := range found {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	if len(names) < len(found) {
		return badCallHint("several-programs", "give them different names: --program chooses by them",
			"%s makes %d programs, and a file holds one", file, len(found))
	}
	return badCall("several-programs", "%s makes %d programs: choose one with --program %s",
		file, len(found), strings.Join(names, ", --program "))
}

// traceStarlark runs a script of this project's language; nil without an error if
// only help was asked for.
func (s *Session) traceStarlark(ctx context.Context, src source, rest []string) (*starlib.Script, error) {
	tool := s.toolFlags()
	help, rest := cutHelp(rest)
	args, err := splitScriptArgs(rest, tool)
	if err != nil {
		return nil, err
	}
	values, err := scriptValues(args, tool)
	if err != nil {
		return nil, err
	}
	script, err := s.load(ctx, src, args, values)
	if help && ctx.Err() == nil {
		return nil, s.scriptHelp(src.file, script, err)
	}
	if err != nil {
		return nil, s.loadError(args, script, err)
	}
	var params []string
	for _, p := range script.Params {
		params = append(params, p.Name)
	}
	return script, applyToolArgs(s.Set, args, tool, params)
}

// cutHelp takes --help and -h out of the arguments.
func cutHelp(args []string) (bool, []string) {
	var rest []string
	for _, a := range args {
		if a != "--help" && a != "-h" {
			rest = append(rest, a)
		}
	}
	return len(rest) < len(args), rest
}

// load runs the script.
func (s *Session) load(ctx context.Context, src source, args []scriptArg, values map[string]string) (*starlib.Script, error) {
	h := &host{session: s, set: s.hostSettings(src.data, args)}
	o := s.loadOptions(ctx, src, h)
	o.Args = values
	return starlib.Load(ctx, o)
}

// loadOptions are those of scripts in any language.
func (s *Session) loadOptions(ctx context.Context, src source, h *host) starlib.Options {
	s.begin("running " + src.file)
	return starlib.Options{File: src.file, Source: src.data, Library: algorithms.FS,
		MaxSteps: uint64(h.set.MaxSteps), Host: h.functions(ctx),
		Print: func(_ diag.Pos, text string) { s.say(text) }}
}

func readScript(ctx context.Context, file string) ([]byte, error) {
	if name, ok := strings.CutPrefix(file, starlib.LibraryPrefix); ok {
		source, err := fs.ReadFile(algorithms.FS, name)
		if err != nil {
			return nil, badCall("no-file", "%s: no such script in the library", file)
		}
		return source, nil
	}
	if source, ok, err := readTutorial(file); ok {
		return source, err
	}
	if strings.HasPrefix(file, "@") {
		return nil, badCall("no-file", "%s: no such script in the library", file)
	}
	return readInput(ctx, file)
}

// scriptNotFound adds what the missing script's name was probably meant to be: a
// script of the library or a command.
func scriptNotFound(file string, err error) error {
	var m *diag.Message
	if !errors.As(err, &m) {
		return err
	}
	var names []string
	for _, c := range commandTable()[1:] {
		names = append(names, c.Name)
	}
	base := strings.TrimSuffix(strings.TrimPrefix(file, starlib.LibraryPrefix), ".star")
	for _, n := range algorithms.Names() {
		if base == n {
			m.Suggest("the library has one of that name: %s%s.star", starlib.LibraryPrefix, n)
			return err
		}
	}
	switch {
	case strings.HasPrefix(file, "@"):
		m.Suggestion = didYouMean(file, libraryFiles(), "")
		if m.Suggestion == "" {
			m.Suggestion = "mscclsh algorithms lists the library"
		}
	case !strings.Contains(file, "."):
		m.Suggestion = didYouMean(file, names, "the command ")
	}
	return err
}

// libraryFiles are the library's scripts as a command line calls them.
func libraryFiles() []string {
	names := algorithms.Names()
	for i, n := range names {
		names[i] = starlib.LibraryPrefix + n + ".star"
	}
	return names
}

// loadError sorts out whose fault a failed script is: a param that was given no
// value or a wrong one is a wrong call, everything else the script's.
func (s *Session) loadError(args []scriptArg, script *starlib.Script, err error) error {
	kinds := make(map[string]string)
	for _, p := range script.Params {
		kinds[p.Name] = p.Type
	}
	if missing := missingValue(args, kinds); missing != nil {
		return missing
	}
	var coded *codedError
	if errors.As(err, &coded) {
		return err
	}
	for _, m := range diag.Messages(err) {
		switch m.Code {
		case "internal":
			return &codedError{exitMachine, err}
		case "bad-value":
			return &codedError{exitCall, err}
		case "step-limit":
			return stepLimit(m)
		}
	}
	return err
}

// stepLimit names the flag that raises it.
func stepLimit(m *diag.Message) error {
	c := *m
	return c.Suggest("--max-steps N sets another limit")
}

// choosePrograms finds the programs that the call is about.
func choosePrograms(programs []starlib.Program, name, file string) ([]*starlib.Program, error) {
	var names []string
	var found []*starlib.Program
	for i := range programs {
		names = append(names, programs[i].Name)
		if name == "" || programs[i].Name == name {
			found = append(found, &programs[i])
		}
	}
	switch {
	case len(programs) == 0:
		return nil, diag.Errorf(diag.Pos{File: file}, "no-program", "the script makes no program").
			Suggest("a program is what stands in a block: with MSCCLProgram(...): or with CollectiveProgram(...):")
	case len(found) == 0:
		return nil, badCallHint("no-program", didYouMean(name, names, ""),
			"--program: got %q, want %s", name, orList(names))
	}
	return found, nil
}

// settle decides what depends on the program: whether it is emitted, and whether
// the mode asked for is the one it declares.
func (s *Session) settle(prog *starlib.Program) error {
	if prog.WantXML && s.Set.Emit == "" && !s.judgeOnly && !s.benching {
		if s.Set.JSON {
			s.warn(diag.Warningf(prog.Pos, "no-xml", "XML() writes nothing: --json has standard output; use -o FILE for the XML"))
		} else {
			s.Set.Emit = "xml"
		}
	}
	if prog.WantPlan && s.Set.Emit == "" && !s.judgeOnly && !s.benching {
		if s.Set.JSON {
			s.warn(diag.Warningf(prog.Pos, "no-plan", "JSON() writes nothing: --json has standard output; use -o FILE for the plan"))
		} else {
			s.Set.Emit = "plan"
		}
	}
	if err := s.Set.checkForm(); err != nil {
		return err
	}
	inPlace := prog.Spec().Coll.InPlace
	if s.Set.InPlace && !inPlace || s.Set.OutOfPlace && inPlace {
		return badCallHint("mode", "a script with a parameter inplace takes --inplace "+fmt.Sprint(!inPlace),
			"--%s: program %q declares %s only", modeFlag(!inPlace), prog.Name, modeName(inPlace))
	}
	return nil
}
