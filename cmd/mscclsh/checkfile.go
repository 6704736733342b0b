package main

import (
	"bytes"
	"context"
	"os"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
)

// CheckFile compiles and checks a script, or checks a program in its text form.
func (s *Session) CheckFile(ctx context.Context, args []string) error {
	return s.finish(ctx, s.guard(func() error {
		if isScript(args[0]) {
			prog, err := s.trace(ctx, args[0], args[1:])
			if err != nil || prog == nil {
				return err
			}
			s.Set.Emit = "" // an XML() in the script writes nothing here
			if err := s.compile(ctx, prog.DAG); err != nil {
				return err
			}
			return s.check(ctx)
		}
		if err := s.read(args[0], args[1:]); err != nil {
			return err
		}
		return s.check(ctx)
	}))
}

// isScript tells a script by its name.
func isScript(file string) bool {
	return strings.HasPrefix(file, "@") || strings.HasSuffix(file, ".star") || strings.HasSuffix(file, ".py")
}

// read takes in a program written with --emit text. Other connections than those
// it was compiled for can be tried on it.
func (s *Session) read(file string, rest []string) error {
	if len(rest) > 0 {
		tool := flagTable()
		args, err := splitScriptArgs(rest, tool)
		if err != nil {
			return err
		}
		if err := applyToolArgs(s.Set, args, tool, nil); err != nil {
			return err
		}
	}
	if err := s.Set.validate(); err != nil {
		return err
	}
	if strings.HasSuffix(file, ".xml") {
		return badCallHint("xml", "write the program with --emit text and check that", "%s: XML can't be read yet", file)
	}
	s.begin("reading " + file)
	text, err := os.ReadFile(file)
	if err != nil {
		return scriptNotFound(file, readError(file, err))
	}
	p, err := ir.ParseProgram(bytes.NewReader(text), file)
	if err != nil {
		return err
	}
	if s.Set.Slots > 0 {
		p.Transport.Slots = s.Set.Slots
	}
	if s.Set.SlotBytes > 0 {
		p.Transport.SlotBytes = s.Set.SlotBytes
	}
	s.program = p
	s.report.Program = programPart(p, file)
	s.report.Compiled = countedPart(p)
	return nil
}
