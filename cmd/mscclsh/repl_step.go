package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/sim"
)

// stepper is the compiled program, stopped somewhere.
type stepper struct {
	m      *sim.Machine
	gen    int       // of the session when it was compiled
	set    *Settings // what it was compiled with
	breaks []sim.Break
}

// machine is the program stopped where the last command left it, or at its start
// when it has changed since, or is asked for with other flags. A command without
// flags goes on with those of the one before.
func (s *Shell) machine(ctx context.Context, set *Settings) (*stepper, error) {
	if x := s.stepper; x != nil && x.m != nil && x.gen == s.gen {
		if reflect.DeepEqual(set, s.set) || reflect.DeepEqual(set, x.set) {
			return x, nil
		}
	}
	p, err := s.final(ctx, set)
	if err != nil {
		return nil, err
	}
	m, err := sim.New(p, sim.Options{Bytes: max(set.Size, 0)})
	if err != nil {
		return nil, err
	}
	if s.stepper == nil {
		s.stepper = &stepper{}
	} else if s.stepper.m != nil && s.stepper.m.Moves() > 0 {
		if s.stepper.gen == s.gen {
			s.note("it is compiled with other flags: stepping begins anew")
		} else {
			s.note("the program has changed: stepping begins anew")
		}
	}
	s.stepper.m, s.stepper.gen, s.stepper.set = m, s.gen, set
	return s.stepper, nil
}

// place tells where the machine stands.
func (s *Shell) place(x *stepper) {
	p := x.m.Progress()
	text := fmt.Sprintf("%s made, %s of %s steps done, %s of %s places as demanded", plural(int64(p.Moves), "move"),
		grouped(int64(p.StepsDone)), grouped(int64(p.Steps)), grouped(int64(p.Final)), grouped(int64(p.Demanded)))
	if p.Wrong > 0 {
		text += fmt.Sprintf(", %s wrong", grouped(int64(p.Wrong)))
	}
	switch {
	case x.m.Done():
		text += "; every thread block has ended"
	case x.m.Stuck():
		text += "; nothing can move"
	}
	s.say("%s", text)
}

// count reads the number of moves of a command, 1 if there is none.
func count(call *invocation) (int, error) {
	if len(call.args) == 0 {
		return 1, nil
	}
	n, err := strconv.Atoi(call.args[0])
	if err != nil || n < 1 {
		return 0, badCall("bad-argument", "%s: got %q, want a number of moves", call.name, call.args[0])
	}
	return n, nil
}

// maxMovesTold is how many moves are printed one by one.
const maxMovesTold = 20

func shellStep(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	x, err := s.machine(ctx, call.set)
	if err != nil {
		return false, err
	}
	if len(call.args) > 0 && strings.Contains(call.args[0], ":") {
		return s.stepBlock(x, call)
	}
	n, err := count(call)
	if err != nil {
		return false, err
	}
	for i := range n {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		mv, ok := x.m.Step()
		if !ok {
			break
		}
		if n <= maxMovesTold || i == n-1 {
			if err := x.m.WriteMove(s.out, mv, s.width); err != nil {
				return false, err
			}
		}
	}
	return s.stopped(x)
}

// stepBlock moves one thread block, which is named by its rank and number.
func (s *Shell) stepBlock(x *stepper, call *invocation) (bool, error) {
	b, err := sim.ParseBreak(call.args[0])
	if err != nil || b.Rank == sim.None || b.TB == sim.None {
		return false, badCall("bad-argument", "step: got %q, want a number of moves or rank:tb", call.args[0])
	}
	mv, err := x.m.StepThread(b.Rank, b.TB)
	if err != nil {
		return false, err
	}
	if err := x.m.WriteMove(s.out, mv, s.width); err != nil {
		return false, err
	}
	return s.stopped(x)
}

// stopped tells where the machine stands, and in a deadlock who waits for whom.
func (s *Shell) stopped(x *stepper) (bool, error) {
	s.place(x)
	if x.m.Stuck() {
		return true, x.m.WriteBlocked(s.out, s.width)
	}
	return true, nil
}

func shellBack(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	x, err := s.machine(ctx, call.set)
	if err != nil {
		return false, err
	}
	switch {
	case len(call.args) > 0 && call.args[0] == "start":
		if err := x.m.At(ctx, 0); err != nil {
			return false, err
		}
		return s.stopped(x)
	case len(call.args) > 0 && strings.Contains(call.args[0], ":"):
		return s.runUntil(ctx, x, call, true)
	}
	n, err := count(call)
	if err != nil {
		return false, err
	}
	for i := range n {
		mv, ok := x.m.Back()
		if !ok {
			break
		}
		if n <= maxMovesTold || i == n-1 {
			s.say("back before #%d: %s", mv.Number, x.m.Program().StepString(mv.At.Rank, mv.At.TB, mv.At.Step))
		}
	}
	return s.stopped(x)
}

func shellUntil(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	x, err := s.machine(ctx, call.set)
	if err != nil {
		return false, err
	}
	return s.runUntil(ctx, x, call, false)
}

// runUntil runs forwards or backwards to the place that is named, a breakpoint, or
// the end.
func (s *Shell) runUntil(ctx context.Context, x *stepper, call *invocation, back bool) (bool, error) {
	u := sim.Until{Breaks: slices.Clone(x.breaks)}
	for _, a := range call.args {
		if err := s.untilWord(x, &u, a); err != nil {
			return false, err
		}
	}
	run := x.m.Run
	if back {
		run = x.m.RunBack
	}
	stop, err := run(ctx, u)
	if err != nil {
		return false, err
	}
	switch stop.Why {
	case sim.WhyBreak:
		s.say("stopped before %s: %s", stop.At, x.m.Program().StepString(stop.At.Rank, stop.At.TB, stop.At.Step))
	case sim.WhyChanged:
		s.say("stopped: %s", s.location(x, stop.Loc))
	case sim.WhyFinal:
		s.say("stopped: %s, as demanded", s.location(x, stop.Loc))
	case sim.WhyDone, sim.WhyStuck, sim.WhyMoves, sim.WhyWhen:
	}
	return s.stopped(x)
}

// location is a place with what it holds.
func (s *Shell) location(x *stepper, l ir.Loc) string {
	c, err := x.m.Content(l)
	if err != nil {
		return fmt.Sprintf("rank %d %s[%d]", l.Rank, bufferWord(l.Buf), l.Index)
	}
	return fmt.Sprintf("rank %d %s[%d] holds %s", l.Rank, bufferWord(l.Buf), l.Index, c)
}

// bufferWord is the name of a compiled program's buffer.
func bufferWord(b ir.BufferID) string {
	return [...]string{"input", "output", "scratch"}[min(b, ir.FirstScratch)]
}

// untilWord reads one word of until: the end, a move, a breakpoint, or a place that
// is to change or, with = behind it, to hold what is demanded.
func (s *Shell) untilWord(x *stepper, u *sim.Until, word string) error {
	switch {
	case word == "end":
		u.Breaks = nil
		return nil
	case word == "done":
		return nil
	case strings.Contains(word, "["):
		l, err := s.parseLoc(x, strings.TrimSuffix(word, "="))
		if err != nil {
			return err
		}
		if strings.HasSuffix(word, "=") {
			u.Finals = append(u.Finals, l)
		} else {
			u.Changes = append(u.Changes, l)
		}
		return nil
	}
	if n, err := strconv.Atoi(word); err == nil && n > 0 {
		u.Moves = n
		return nil
	}
	b, err := s.parseBreak(x, word)
	u.Breaks = append(u.Breaks, b)
	return err
}

func (s *Shell) parseBreak(x *stepper, word string) (sim.Break, error) {
	b, err := sim.ParseBreak(word)
	if err != nil {
		return b, badCallHint("bad-argument", "2:0:5 is rank 2, thread block 0, step 5; 2 or 2:* is all of rank 2", "%s", err)
	}
	if err := x.m.Check(b); err != nil {
		return b, &codedError{exitCall, err}
	}
	return b, nil
}

// parseLoc reads rank:buffer[index].
func (s *Shell) parseLoc(x *stepper, word string) (ir.Loc, error) {
	bad := badCallHint("bad-argument", "2:output[5] is chunk 5 of rank 2's output", "got %q, want rank:buffer[index]", word)
	rank, rest, ok := strings.Cut(word, ":")
	name, index, ok2 := strings.Cut(strings.TrimSuffix(rest, "]"), "[")
	r, err1 := strconv.ParseInt(rank, 10, 32)
	i, err2 := strconv.ParseInt(index, 10, 32)
	b := slices.Index([]string{"input", "output", "scratch"}, name)
	if !ok || !ok2 || err1 != nil || err2 != nil || b < 0 {
		return ir.Loc{}, bad
	}
	l := ir.Loc{Rank: ir.Rank(r), Buf: ir.BufferID(b), Index: int32(i)}
	if _, err := x.m.Content(l); err != nil {
		return l, &codedError{exitCall, err}
	}
	return l, nil
}

func shellBreak(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	if len(call.args) == 0 {
		if s.stepper == nil || len(s.stepper.breaks) == 0 {
			s.say("there are no breakpoints")
			return true, nil
		}
		for _, b := range s.stepper.breaks {
			s.say("%s", b)
		}
		return true, nil
	}
	if call.args[0] == "clear" {
		if s.stepper != nil {
			s.stepper.breaks = nil
		}
		return true, nil
	}
	x, err := s.machine(ctx, call.set)
	if err != nil {
		return false, err
	}
	for _, a := range call.args {
		b, err := s.parseBreak(x, a)
		if err != nil {
			return false, err
		}
		if !slices.Contains(x.breaks, b) {
			x.breaks = append(x.breaks, b)
		}
	}
	return true, nil
}

// shellDisplay prints buffers as they are where the machine stands.
func shellDisplay(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	x, err := s.machine(ctx, call.set)
	if err != nil {
		return false, err
	}
	p := x.m.Program()
	if len(call.args) == 1 && strings.Contains(call.args[0], "[") {
		l, err := s.parseLoc(x, call.args[0])
		if err != nil {
			return false, err
		}
		s.say("%s", s.location(x, l))
		return true, nil
	}
	buffer := ""
	call.args = slices.DeleteFunc(call.args, func(a string) bool {
		if slices.Contains([]string{"input", "output", "scratch"}, a) {
			buffer = a
			return true
		}
		return false
	})
	if len(call.args) > 1 {
		return false, oneOfWords("display", call.args[1], []string{"input", "output", "scratch"})
	}
	ranks, err := ranksOf(call, p.Ranks())
	if err != nil {
		return false, err
	}
	for _, r := range ranks {
		if buffer == "" {
			if err := x.m.WriteBuffers(s.out, r, s.width); err != nil {
				return false, err
			}
			continue
		}
		list, err := x.m.Buffer(r, ir.BufferID(slices.Index([]string{"input", "output", "scratch"}, buffer)))
		if err != nil {
			return false, err
		}
		if len(list) == 0 {
			continue
		}
		s.say("rank %d %s", r, buffer)
		var cells []string
		for i, c := range list {
			cells = append(cells, fmt.Sprintf("%d%c %s", i, c.Mark.Symbol(), c))
		}
		writeGrid(s.out, cells, s.width)
	}
	return true, nil
}

// machineWriter is a command that prints something of the machine.
func machineWriter(write func(x *stepper, s *Shell, r ir.Rank) error) func(context.Context, *Shell, *invocation) (bool, error) {
	return func(ctx context.Context, s *Shell, call *invocation) (bool, error) {
		x, err := s.machine(ctx, call.set)
		if err != nil {
			return false, err
		}
		r := ir.Rank(sim.None)
		if len(call.args) > 0 {
			n, err := rankArg(call.name, call.args[0], x.m.Program().Ranks())
			if err != nil {
				return false, err
			}
			r = ir.Rank(n)
		}
		if err := write(x, s, r); err != nil {
			return false, err
		}
		return true, nil
	}
}

// writeWhere, writeSlots and writeBlocked are for machineWriter.
func writeWhere(x *stepper, s *Shell, r ir.Rank) error {
	s.place(x)
	return x.m.WriteWhere(s.out, r, s.width)
}

func writeSlots(x *stepper, s *Shell, _ ir.Rank) error { return x.m.WriteSlots(s.out, s.width) }

func writeBlocked(x *stepper, s *Shell, _ ir.Rank) error { return x.m.WriteBlocked(s.out, s.width) }
