package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// The exit codes of the command.
const (
	exitOK          = 0   // done
	exitWrong       = 1   // the program is wrong: an error in the script, a failed check, wrong results
	exitCall        = 2   // the call is wrong: a flag, a size, a file that isn't there
	exitMachine     = 3   // this machine can't: memory, disk, or a bug in mscclsh
	exitInterrupted = 130 // Ctrl-C, as shells count it
)

// codedError is an error that knows its exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// badCall is an error of whoever typed the command.
func badCall(code, format string, args ...any) error {
	return &codedError{exitCall, diag.Errorf(diag.Pos{}, code, format, args...)}
}

// badCallHint is badCall with advice.
func badCallHint(code, hint, format string, args ...any) error {
	m := diag.Errorf(diag.Pos{}, code, format, args...)
	m.Suggestion = hint
	return &codedError{exitCall, m}
}

// cannot is an error of the machine.
func cannot(format string, args ...any) error {
	return &codedError{exitMachine, fmt.Errorf(format, args...)}
}

// errReported ends the command with exitWrong after the report has said why.
var errReported = &codedError{exitWrong, errors.New("the program is wrong")}

// exitCode is the code for how a command ended.
func exitCode(err error) int {
	var coded *codedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitWrong
}
