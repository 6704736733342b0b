package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
)

// shellEntry is the shell in the table of the command line.
func shellEntry() command {
	return command{
		Name:  "shell",
		Args:  "[FILE [--parameter value ...]]",
		Short: "Write a program line by line, look at every stage of it, step through it; also without any argument",
		Long: `At a terminal there is a prompt, with completion, history and a live view of the program that is being written.
Otherwise lines are read from standard input, and the exit code is that of the first error. FILE is loaded first.

help at the prompt lists what can be typed; docs/shell.md has it all.`,
		Examples: []string{
			"mscclsh",
			"mscclsh shell @algorithms/allreduce_ring.star --ranks 4",
			"echo 'schedule 0' | mscclsh shell ring.xml",
		},
		MaxArgs: -1,
		Script:  true,
		Run: func(ctx context.Context, s *Session, args []string) error {
			return s.shell(ctx, os.Stdin, args)
		},
	}
}

// shell reads lines from in until they end.
func (s *Session) shell(ctx context.Context, in *os.File, args []string) error {
	sh := NewShell(s.Out, s.Err)
	sh.progress.end()
	sh.progress = s.progress
	if isatty.IsTerminal(in.Fd()) {
		if out, ok := s.Out.(*os.File); ok && isatty.IsTerminal(out.Fd()) {
			return s.atTerminal(context.WithoutCancel(ctx), sh, in, out, args)
		}
	}
	if len(args) > 0 {
		s.told = true
		if err := sh.start(ctx, args); err != nil {
			return err
		}
	}
	empty, err := sh.read(ctx, in)
	switch {
	case err != nil:
		return err
	case empty && len(args) == 0: // nobody there: as if nothing had been asked for
		writeShortHelp(s.Err)
		s.told = true
		return errNothing
	}
	s.told = true
	return sh.first
}

// errNothing ends a call without arguments and without input.
var errNothing = &codedError{exitCall, errors.New("nothing to do")}

// start loads the file that the call names.
func (s *Shell) start(ctx context.Context, args []string) error {
	s.group++
	err := s.guarded(func() error {
		_, err := s.load(ctx, args[0], args[1:], s.set)
		return err
	})
	if err != nil {
		s.tell(ctx, err)
		if s.first == nil {
			s.first = err
		}
	}
	return err
}

// read carries out lines until they end, the session is quit, or ctx is done. What
// goes wrong has been told, and the first error is kept.
func (s *Shell) read(ctx context.Context, in io.Reader) (empty bool, err error) {
	lines := make(chan string)
	failed := make(chan error, 1)
	done := make(chan struct{})
	defer close(done)
	go func() {
		defer close(lines)
		r := bufio.NewReaderSize(in, 1<<16)
		for {
			line, err := r.ReadString('\n')
			if line != "" || err == nil {
				select {
				case lines <- strings.TrimSuffix(line, "\n"):
				case <-done:
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					failed <- err
				}
				return
			}
		}
	}()
	empty = true
	for !s.quit {
		select {
		case line, more := <-lines:
			if !more {
				select {
				case err := <-failed:
					return false, cannot("reading standard input: %w", err)
				default:
				}
				_ = s.End(ctx) // told, and kept as the first error
				return empty, nil
			}
			if empty {
				line = strings.TrimPrefix(line, "\ufeff") // as some editors begin a file
			}
			empty = false
			_ = s.Line(ctx, line) // likewise
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			if s.first == nil {
				s.first = &codedError{exitInterrupted, errors.New("interrupted")}
			}
			return false, nil
		}
	}
	return false, nil
}
