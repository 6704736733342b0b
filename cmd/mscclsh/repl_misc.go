package main

import (
	"context"
	"strconv"
	"strings"
	"time"
)

func shellUndo(_ context.Context, s *Shell, call *invocation) (bool, error) {
	n := 1
	if len(call.args) > 0 {
		var err error
		if n, err = strconv.Atoi(call.args[0]); err != nil || n < 1 {
			return false, badCall("bad-argument", "undo: got %q, want a number from 1 on", call.args[0])
		}
	}
	if err := s.undo(n); err != nil {
		return false, err
	}
	return true, nil
}

func shellReset(_ context.Context, s *Shell, _ *invocation) (bool, error) {
	s.become(s.newLive(), nil)
	s.stepper, s.watch, s.chosen = nil, nil, ""
	return true, nil
}

func shellQuit(_ context.Context, s *Shell, _ *invocation) (bool, error) {
	s.quit = true
	return true, nil
}

// shellSettings makes flags those of all commands that follow.
func shellSettings(_ context.Context, s *Shell, call *invocation) (bool, error) {
	switch {
	case len(call.args) > 0 && call.args[0] == "clear":
		*s.set = *newSettings()
		s.given = nil
	case len(call.args) > 0:
		return false, badCallHint("bad-argument", "a flag begins with --", "settings: got %q, want flags or clear", call.args[0])
	case call.line == "":
		if len(s.given) == 0 {
			s.say("no flags are set")
		}
		for _, g := range s.given {
			s.say("%s", g)
		}
		return true, nil
	default:
		*s.set = *call.set
		s.given = append(s.given, call.line)
	}
	s.changed()
	return true, nil
}

// shellTime carries out what stands after it and tells how long that took.
func shellTime(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	if call.line == "" {
		return false, badCall("missing-argument", "time: an argument is missing")
	}
	u := unit{kind: unitStatement, text: call.line + "\n", inside: make([]bool, 1+strings.Count(call.line, "\n"))}
	if s.isCommand(call.line) {
		u.kind = unitCommand
	}
	begin := time.Now()
	err := s.unit(ctx, u)
	s.note("that took %s", time.Since(begin).Round(10*time.Microsecond))
	return err == nil, err
}
