package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib"
	"github.com/mscclsh/mscclsh/starlib/pyfront"
)

// tracePython runs a script for msccl-tools or MSCCL++. What stands behind it belongs to the
// script's own argument parser; what that doesn't know may be the tool's. It
// returns nil without an error if only help was asked for.
func (s *Session) tracePython(ctx context.Context, src source, rest []string) (*starlib.Script, error) {
	words := &toolWords{tool: flagTable()}
	set := *s.Set
	set.WritesXML = callsXML.Match(src.data)
	h := &host{session: s, set: &set}
	o := pyfront.Options{Options: s.loadOptions(ctx, src, h), Argv: rest}
	o.Tool = func(w []string) int {
		n := words.take(w)
		if n > 0 {
			// Check() in the script is to know of it; a wrong value is reported below.
			_ = setToolFlag(&set, findFlag(words.tool, words.last().name), words.last())
		}
		return n
	}
	script, err := pyfront.Load(ctx, o)
	switch {
	case words.err != nil:
		return nil, words.err
	case err != nil:
		return nil, s.pythonError(src.file, script, err)
	}
	s.asWritten = slices.ContainsFunc(script.Programs, func(p starlib.Program) bool { return p.One != nil })
	return script, applyToolArgs(s.Set, words.args, words.tool, nil)
}

// pythonError sorts out whose fault a failed script is, and answers --help.
func (s *Session) pythonError(file string, script *starlib.Script, err error) error {
	for _, m := range diag.Messages(err) {
		switch m.Code {
		case "help":
			s.begin("")
			_, err := fmt.Fprintf(s.Out, "%s\n\nThe tool's flags (mscclsh --help) are accepted too;"+
				" one that the script hides is --tool.NAME.\n", pyfront.Usage(file, script.Params))
			return err
		case "internal":
			return &codedError{exitMachine, err}
		case "bad-value", "bad-call":
			return &codedError{exitCall, err}
		case "step-limit":
			return stepLimit(m)
		}
	}
	return err
}

// toolWords takes the tool's flags out of a script's words.
type toolWords struct {
	tool []toolFlag
	args []scriptArg
	err  error
}

// take says how many of the words, which begin with a flag that the script doesn't
// know, are the tool's: 0, 1 or, with a value, 2.
func (t *toolWords) take(words []string) int {
	a, attached, err := oneScriptArg(words[0], t.tool)
	if err != nil || findFlag(t.tool, a.name) == nil {
		if err == nil && a.tool && t.err == nil {
			t.err = unknownFlag(&a, t.tool, nil)
		}
		return 0
	}
	n := 1
	switch {
	case attached:
	case takesValue(t.tool, a.name) && len(words) > 1:
		a.value = words[1]
		n = 2
	default:
		a.bare = true
	}
	t.args = append(t.args, a)
	return n
}

// last is the argument that was taken last.
func (t *toolWords) last() *scriptArg { return &t.args[len(t.args)-1] }

// params runs a script for its parameters alone.
func (s *Session) params(ctx context.Context, src source) (*starlib.Script, error) {
	if f := formatOfName(src.file); f == nil || f.Name != "python" {
		return s.load(ctx, src, nil, nil)
	}
	script, err := pyfront.Load(ctx, pyfront.Options{Options: s.loadOptions(ctx, src, &host{session: s, set: s.Set}),
		Argv: []string{"--help"}})
	if err == nil && len(script.Params) == 0 {
		err = errors.New("no parameters")
	}
	return script, err
}
