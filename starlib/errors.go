package starlib

import (
	"errors"
	"strings"
	"unicode/utf8"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// maxCallNotes is how many callers an error names; deep recursion has thousands.
const maxCallNotes = 8

// fail keeps an error that can't be returned from where it happened and stops
// the thread before its next instruction. The first error counts.
func (in *interp) fail(err error) {
	if err == nil || in.pending != nil {
		return
	}
	in.pending = err
	in.thread.Cancel("failed")
}

// open is the open program, or an error in the name of the call that needs one.
func (in *interp) open(call string) (*program, error) {
	if one := in.one; one != nil {
		return nil, diag.Errorf(diag.Pos{}, "wrong-level", "%s: program %q is one-sided", call, one.h.name).
			Note(one.opened, "%q begins here", one.h.name).
			Suggest("%s is for programs that route chunks, inside: with MSCCLProgram(...):", call)
	}
	if in.cur == nil {
		return nil, diag.Errorf(diag.Pos{}, "no-program", "%s: no program is open", call).
			Suggest("call it inside: with MSCCLProgram(...):")
	}
	return in.cur, nil
}

// here is where the script is executing.
func (in *interp) here() diag.Pos {
	if in.thread != nil {
		for d := range in.thread.CallStackDepth() {
			if p := in.thread.DebugFrame(d).Position(); p.Line > 0 {
				return in.pos(p)
			}
		}
	}
	return diag.Pos{File: in.o.File}
}

// pos converts a position: Starlark counts runes, diag bytes.
func (in *interp) pos(p syntax.Position) diag.Pos {
	d := diag.Pos{File: p.Filename(), Line: p.Line, Col: p.Col}
	if len(in.columns) > 0 {
		if c := in.columns[d.File]; c != nil {
			d.Col = c.byteColumn(d.Line, d.Col)
		}
	}
	return d
}

// columns converts columns of a file that is not plain ASCII.
type columns struct{ lines [][]byte }

// newColumns is nil for plain ASCII, where there is nothing to convert.
func newColumns(text []byte) *columns {
	if utf8.RuneCount(text) == len(text) {
		return nil
	}
	return &columns{splitLines(text)}
}

func (c *columns) byteColumn(line, col int32) int32 {
	if line < 1 || int(line) > len(c.lines) {
		return col
	}
	rest := c.lines[line-1]
	bytesBefore := int32(0)
	for range col - 1 {
		if len(rest) == 0 {
			bytesBefore++
			continue
		}
		_, n := utf8.DecodeRune(rest)
		rest, bytesBefore = rest[n:], bytesBefore+int32(n)
	}
	return bytesBefore + 1
}

// inWords puts a message of the trace into the words of the language, which
// differ in the names of arguments and calls. pairs are as for strings.NewReplacer.
func inWords(err error, pairs ...string) error {
	var m *diag.Message
	if !errors.As(err, &m) {
		return err
	}
	r := strings.NewReplacer(pairs...)
	c := *m
	c.Text, c.Suggestion = r.Replace(m.Text), r.Replace(m.Suggestion)
	return &c
}

// positioned gives an error of a single message the position pos if it has none.
func positioned(err error, pos diag.Pos) error {
	var m *diag.Message
	if errors.As(err, &m) && !m.Pos.IsValid() {
		c := *m
		c.Pos = pos
		return &c
	}
	return err
}

// diagnose turns any error of parsing, resolving or running into messages.
func (in *interp) diagnose(err error) error {
	var (
		done  *loadError
		names resolve.ErrorList
		eval  *starlark.EvalError
	)
	switch {
	case errors.As(err, &done):
		return done.err
	case errors.As(err, &names):
		return in.nameErrors(names)
	case errors.As(err, &eval):
		return in.evalError(eval)
	}
	return diag.Errorf(in.here(), "script-error", "%s", err)
}

// nameErrors are those found before anything runs. Starlark's own advice knows
// nothing of predeclared names.
func (in *interp) nameErrors(list resolve.ErrorList) error {
	var out diag.List
	names, meant := in.names(), map[string]string{} // a name can be wrong many times
	for _, e := range list {
		m := diag.Errorf(in.pos(e.Pos), "script-error", "%s", e.Msg)
		if name, ok := strings.CutPrefix(e.Msg, "undefined: "); ok {
			m.Code = "undefined-name"
			name, hint, _ := strings.Cut(name, " ")
			m.Text = "undefined: " + name
			near, known := meant[name]
			if !known {
				near = Nearest(name, names)
				meant[name] = near
			}
			if name == "create_scratch" { // msccl-tools had it once
				m.Suggest("scratch is made by the first copy to it, under any name: c.copy(rank, \"name\", 0)")
			} else if near != "" {
				m.Suggest("did you mean %s?", near)
			} else if hint != "" {
				m.Suggest("%s", strings.Trim(hint, "()"))
			}
		}
		out = append(out, m)
	}
	return out
}

// names are those that every script sees.
func (in *interp) names() []string {
	var names []string
	for _, d := range []starlark.StringDict{in.predeclared, starlark.Universe} {
		for _, n := range d.Keys() {
			if n != withName {
				names = append(names, n)
			}
		}
	}
	return names
}

// evalError gives an error of a running script its position and its callers.
func (in *interp) evalError(e *starlark.EvalError) error {
	stack := e.CallStack
	top := inScript(stack, len(stack)-1)
	pos := diag.Pos{File: in.o.File}
	if top >= 0 {
		pos = in.pos(stack[top].Pos)
	}
	msgs := in.causes(e)
	if top > 0 && strings.HasPrefix(e.Msg, "function "+stack[top].Name+" ") && len(msgs) == 1 {
		// Wrong arguments for a script's own function: the call is at fault.
		msgs[0].Note(pos, "%s is defined here", stack[top].Name)
		top = inScript(stack, top-1)
		pos = in.pos(stack[top].Pos)
	}
	for i, m := range msgs {
		c := *m
		c.Notes = append([]diag.Note(nil), m.Notes...)
		if !c.Pos.IsValid() {
			c.Pos = pos
		}
		msgs[i] = &c
	}
	if len(msgs) == 0 {
		return diag.Errorf(pos, "script-error", "%s", e.Msg)
	}
	in.translate(msgs[0])
	in.callers(msgs[0], stack[:top+1])
	if len(msgs) == 1 {
		return msgs[0]
	}
	return msgs
}

// inScript is the innermost call from top outwards that a script makes: built-in
// functions have no line.
func inScript(stack starlark.CallStack, top int) int {
	for top > 0 && stack[top].Pos.Line == 0 {
		top--
	}
	return top
}

// causes are the messages without what the call stack adds.
func (in *interp) causes(e *starlark.EvalError) diag.List {
	var m *diag.Message
	var l diag.List
	cause := e.Unwrap()
	if in.pending != nil && strings.HasPrefix(e.Msg, "Starlark computation cancelled") {
		cause = in.pending
	}
	switch {
	case in.overfull.Load():
		m = in.tooMuchMemory(diag.Pos{})
	case in.overrun:
		m = diag.Errorf(diag.Pos{}, "step-limit", "the script ran for more than %d steps", in.o.MaxSteps).
			Suggest("raise the step limit (--max-steps) if it is meant to run that long")
	case errors.As(cause, &l):
		return append(diag.List(nil), l...)
	case errors.As(cause, &m):
	default:
		text, failed := strings.CutPrefix(e.Msg, "fail: ")
		m = diag.Errorf(diag.Pos{}, "script-error", "%s", text)
		if failed {
			m.Code = "fail"
		}
	}
	return diag.List{m}
}

// callers adds a note for each function that was being called, innermost first.
func (in *interp) callers(m *diag.Message, stack starlark.CallStack) {
	for i := len(stack) - 2; i >= 0; i-- {
		called, from := stack[i+1].Name, stack[i].Pos
		if from.Line == 0 {
			continue
		}
		if len(stack)-2-i >= maxCallNotes {
			m.Note(diag.Pos{}, "and %d more calls around it", i+1)
			return
		}
		if called == "<toplevel>" {
			m.Note(in.pos(from), "%s loaded from here", stack[i+1].Pos.Filename())
		} else {
			m.Note(in.pos(from), "%s called from here", called)
		}
	}
}
