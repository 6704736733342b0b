package main

import (
	"context"
	"fmt"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
)

// passJudge judges what each pass made (--check-passes) and keeps the first
// verdict that is bad. A script that is itself wrong is so from the trace on and
// is left to the check of the final program.
type passJudge struct {
	bad  diag.List
	pass string
	err  error
}

// take judges one stage.
func (j *passJudge) take(ctx context.Context, st compiler.Stage) {
	if j.err != nil || j.pass != "" {
		return
	}
	rep, err := judgeStage(ctx, st)
	switch {
	case err != nil:
		j.err = err
	case !rep.OK:
		j.pass, j.bad = st.Pass, rep.Messages
	}
}

func judgeStage(ctx context.Context, st compiler.Stage) (*checker.Report, error) {
	switch {
	case st.Chunks != nil:
		return checker.CheckChunks(ctx, st.Chunks, checker.Options{})
	case st.Instrs != nil:
		return checker.CheckInstrs(ctx, st.Instrs, checker.Options{})
	}
	return checker.Check(ctx, st.Program, checker.Options{})
}

// verdict is nil unless a pass, and not the script, made something wrong.
func (j *passJudge) verdict() error {
	if j.err != nil {
		return fmt.Errorf("judging what the passes made: %w", j.err)
	}
	if j.pass == "" || j.pass == tracePass {
		return nil
	}
	return &codedError{exitMachine, fmt.Errorf("internal error in pass %s: what it made is wrong; please report it with the script\n%w", j.pass, j.bad)}
}

// tracePass is what --dump-after and --check-passes call the script itself.
const tracePass = "trace"
