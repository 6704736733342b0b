package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib"
)

// Script is the main job: trace a script's program, compile it, check it, and
// emit it or run it. args are the script and what stands after it.
func (s *Session) Script(ctx context.Context, args []string) error {
	return s.finish(ctx, s.guard(func() error {
		prog, err := s.trace(ctx, args[0], args[1:])
		if err != nil || prog == nil {
			return err
		}
		if err := s.compile(ctx, prog.DAG); err != nil {
			return err
		}
		s.report.Program.Source = prog.Pos.String()
		if err := s.check(ctx); err != nil || s.report.failed() {
			return err
		}
		if s.Set.Emit != "" {
			if err := s.emit(); err != nil {
				return err
			}
		}
		if s.Set.Emit == "" && !prog.WantXML || s.Set.Run {
			return s.run(ctx)
		}
		return nil
	}))
}

// trace runs the script and chooses the program. It returns nil without an error
// when only help was asked for.
func (s *Session) trace(ctx context.Context, file string, rest []string) (*starlib.Program, error) {
	if err := s.Set.validate(); err != nil {
		return nil, err
	}
	tool := flagTable()
	help, rest := cutHelp(rest)
	args, err := splitScriptArgs(rest, tool)
	if err != nil {
		return nil, err
	}
	values, err := scriptValues(args, tool)
	if err != nil {
		return nil, err
	}
	script, err := s.load(ctx, file, args, values)
	if help && ctx.Err() == nil {
		return nil, s.scriptHelp(file, script, err)
	}
	if err != nil {
		return nil, s.loadError(args, script, err)
	}
	var params []string
	for _, p := range script.Params {
		params = append(params, p.Name)
	}
	if err := applyToolArgs(s.Set, args, tool, params); err != nil {
		return nil, err
	}
	if err := s.Set.validate(); err != nil {
		return nil, err
	}
	prog, err := chooseProgram(script.Programs, s.Set.Program, file)
	if err != nil {
		return nil, err
	}
	return prog, s.settle(prog)
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

// load runs the script file.
func (s *Session) load(ctx context.Context, file string, args []scriptArg, values map[string]string) (*starlib.Script, error) {
	s.begin("running " + file)
	if strings.HasSuffix(file, ".py") {
		return &starlib.Script{}, badCallHint("python", "rename it to .star: most scripts need no other change",
			"%s: Python scripts can't be run yet", file)
	}
	source, err := readScript(file)
	if err != nil {
		return &starlib.Script{}, scriptNotFound(file, err)
	}
	h := &host{session: s, set: s.hostSettings(source, args)}
	return starlib.Load(ctx, starlib.Options{File: file, Source: source, Args: values, Library: algorithms.FS,
		MaxSteps: uint64(h.set.MaxSteps), Host: h.functions(ctx),
		Print: func(_ diag.Pos, text string) { s.say(text) }})
}

func readScript(file string) ([]byte, error) {
	if name, ok := strings.CutPrefix(file, starlib.LibraryPrefix); ok {
		source, err := fs.ReadFile(algorithms.FS, name)
		if err != nil {
			return nil, badCall("no-file", "%s: no such script in the library", file)
		}
		return source, nil
	}
	if strings.HasPrefix(file, "@") {
		return nil, badCall("no-file", "%s: no such script in the library", file)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, readError(file, err)
	}
	return source, nil
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
		}
	}
	return err
}

// chooseProgram finds the program that the call is about.
func chooseProgram(programs []starlib.Program, name, file string) (*starlib.Program, error) {
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
			Suggest("a program is what stands in a block: with MSCCLProgram(...):")
	case len(found) == 0:
		return nil, badCallHint("no-program", didYouMean(name, names, ""),
			"--program: got %q, want %s", name, orList(names))
	case len(found) > 1 && name == "":
		return nil, badCall("several-programs", "%s makes %d programs: choose one with --program %s",
			file, len(programs), strings.Join(names, ", --program "))
	case len(found) > 1:
		return nil, badCallHint("several-programs", "give them different names",
			"%s makes %d programs of the name %q", file, len(found), name)
	}
	return found[0], nil
}

// settle decides what depends on the program: whether it is emitted, and whether
// the mode asked for is the one it declares.
func (s *Session) settle(prog *starlib.Program) error {
	if prog.WantXML && s.Set.Emit == "" {
		if s.Set.JSON {
			s.warn(diag.Warningf(prog.Pos, "no-xml", "XML() writes nothing: --json has standard output; use -o FILE for the XML"))
		} else {
			s.Set.Emit = "xml"
		}
	}
	inPlace := prog.DAG.Coll.InPlace
	if s.Set.InPlace && !inPlace || s.Set.OutOfPlace && inPlace {
		return badCallHint("mode", "a script with a parameter inplace takes --inplace "+fmt.Sprint(!inPlace),
			"--%s: program %q declares %s only", modeFlag(!inPlace), prog.Name, modeName(inPlace))
	}
	return nil
}

func modeFlag(inPlace bool) string {
	if inPlace {
		return "in-place"
	}
	return "out-of-place"
}
