package main

import (
	"context"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// autoPrograms are what a trace of protocol auto becomes at different sizes.
type autoPrograms struct {
	trace *ir.ChunkDAG
	made  map[ir.Protocol]*ir.Program // by what auto stands for
}

// startAuto is called before a trace is compiled, for a size if one is given: bench
// compiles for its first size first.
func (s *Session) startAuto(d *ir.ChunkDAG, size int64) error {
	s.auto, s.size = nil, size
	if !s.benching || d.Protocol != ir.AutoProtocol {
		return nil
	}
	sizes, err := s.Set.benchSizes()
	if err != nil {
		return err
	}
	s.auto, s.size = &autoPrograms{d, map[ir.Protocol]*ir.Program{}}, sizes[0]
	return nil
}

// programAt is the program that bench measures at a size: the one there is, or with
// protocol auto the one for that size, compiled and checked when it is first asked
// for.
func (s *Session) programAt(ctx context.Context, bytes int64) (*ir.Program, error) {
	a := s.auto
	if a == nil {
		return s.program, nil
	}
	stands := compiler.ProtocolFor(a.trace.Coll, bytes)
	if len(a.made) == 0 { // what was compiled first, for s.size
		a.made[compiler.ProtocolFor(a.trace.Coll, s.size)] = s.program
	}
	if p := a.made[stands]; p != nil {
		return p, nil
	}
	s.begin("compiling " + a.trace.Name + " for " + formatSize(bytes))
	s.size = bytes
	opt, err := s.compileOptions(a.trace)
	if err != nil {
		return nil, err
	}
	res, err := compiler.Compile(ctx, a.trace, opt)
	if err != nil {
		return nil, compileError(err, s.from)
	}
	_, rep, err := s.judge(ctx, res.Program)
	if err != nil {
		return nil, err
	}
	if !rep.OK {
		s.tellFindings(rep)
		return nil, &codedError{exitWrong, diag.Errorf(s.from, "check", "the program for %s, of protocol %s, is wrong", formatSize(bytes), res.Program.Protocol)}
	}
	a.made[stands] = res.Program
	return res.Program, nil
}

// nameProtocol says in a row what auto stood for.
func (s *Session) nameProtocol(row *BenchRow, p *ir.Program) {
	if s.auto != nil {
		row.Protocol = p.Protocol.String()
	}
}
