package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/jupyter"
	"github.com/mscclsh/mscclsh/viz"
)

// aside is where a shell's output goes that isn't text on its writers.
type aside struct {
	drawn    func(p *viz.Picture, text string) error // takes what commands draw; nil if it is printed
	failures io.Writer                               // takes errors; nil if they are printed
	valued   func(value string)                      // takes each statement's value, "" for none; nil if it is printed
}

// errorWriter is where errors are told.
func (s *Shell) errorWriter() io.Writer {
	if s.failures != nil {
		return s.failures
	}
	return s.err
}

// kernelEngine is the shell as the engine of a kernel.
type kernelEngine struct{ shell *Shell }

var _ jupyter.Engine = (*kernelEngine)(nil)

func newKernelEngine() *kernelEngine { return &kernelEngine{NewShell(io.Discard, io.Discard)} }

// Execute runs a cell. The session is the same from cell to cell, and a block that
// a cell leaves open is gone on with by the next one if that is indented.
func (e *kernelEngine) Execute(ctx context.Context, code string, out jupyter.Output) jupyter.Result {
	s := e.shell
	var told strings.Builder
	s.out, s.plain, s.err = out.Stdout(), out.Stdout(), out.Stderr()
	s.aside = aside{failures: &told, drawn: func(p *viz.Picture, text string) error {
		var svg strings.Builder
		if err := viz.WriteSVG(&svg, p, viz.Lanes); err != nil {
			return err
		}
		out.Display(map[string]string{"text/plain": text, "image/svg+xml": svg.String()})
		return nil
	}}
	defer func() {
		s.out, s.plain, s.err, s.aside = io.Discard, io.Discard, io.Discard, aside{}
		s.Forget()
		s.split.skipping = false // the rest of a block that failed was in this cell
	}()
	var value string
	statements := 0
	s.valued = func(v string) {
		statements++
		if value = v; s.split.block && statements > 1 {
			value = "" // in a block values are looked at one by one, or not at all
		}
	}
	var r jupyter.Result
	if err := s.guarded(func() error { return s.cell(ctx, code, func() { value = "" }) }); err != nil {
		value, r.Err = "", cellError(ctx, err, told.String())
	}
	r.Value, r.Quit = value, s.Quit()
	s.quit = false
	return r
}

// commandMark makes a command of a line, in notebooks and in scripts that are
// notebooks.
var commandMark = regexp.MustCompile(`^(?:# )?%([A-Za-z?].*)$`)

// cell runs the text of a cell: statements together, each command by itself, so
// that one that fails doesn't take back what stands before it. commanding is called
// before each command.
func (s *Shell) cell(ctx context.Context, code string, commanding func()) error {
	code = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(code)
	var part []string
	var lex lexer
	carryOut := func() error {
		text := strings.Join(part, "\n")
		part, lex = nil, lexer{}
		if text == "" {
			return nil
		}
		return s.Exec(ctx, text)
	}
	command := false // part is one that goes on
	for _, line := range strings.Split(code, "\n") {
		if !lex.open() {
			if m := commandMark.FindStringSubmatch(line); m != nil {
				line = ":" + m[1]
			}
			if text := strings.TrimSpace(line); text != "" && width(line) == 0 && s.isCommand(text) {
				if err := carryOut(); err != nil {
					return err
				}
				if command = s.isCommand(text); command { // which what came before it may have changed
					commanding()
				}
			}
		}
		part = append(part, line)
		if !command || goesOn(line) || len(part) > 1 {
			lex.line(line)
		}
		if command && !lex.open() {
			if err := carryOut(); err != nil {
				return err
			}
			command = false
		}
	}
	return carryOut()
}

// cellError is an error as clients want it; told is what the shell said of it.
func cellError(ctx context.Context, err error, told string) *jupyter.CellError {
	c := &jupyter.CellError{Name: "Error", Value: err.Error()}
	switch list := diag.Messages(err); {
	case ctx.Err() != nil:
		c.Name, c.Value = "Interrupted", "the session is as it was before"
	case errors.Is(err, errReported): // the report says why
		c.Name, c.Value = "wrong", "the program is wrong"
	case len(list) > 0:
		head := *list[0]
		head.Notes, head.Suggestion = nil, ""
		c.Value = head.Error()
		if head.Code != "" {
			c.Name = head.Code
		}
	}
	if told == "" {
		told = c.Value
	}
	c.Trace = strings.Split(strings.TrimRight(told, "\n"), "\n")
	return c
}

// Evaluate is the value of a name. Nothing is called to find out, so that asking
// leaves the session as it is.
func (e *kernelEngine) Evaluate(expr string) (string, error) {
	_, text, ok := e.shell.live.Value(strings.TrimSpace(expr))
	if !ok {
		return "", fmt.Errorf("got %q, want a name that the session knows", expr)
	}
	return text, nil
}

// Complete proposes what may stand in place of the word before the cursor.
func (e *kernelEngine) Complete(code string, cursor int) (candidates []string, start int) {
	before := code[:cursor]
	start = cursor
	_ = e.shell.guarded(func() error { // a defect there costs the proposals, not the kernel
		line := before[strings.LastIndexByte(before, '\n')+1:]
		word, list := e.shell.Complete(strings.TrimPrefix(line, "%"))
		candidates, start = list, cursor-len(word)
		return nil
	})
	return candidates, start
}

// Inspect is help on the name at the cursor, or on the function whose call is open
// there.
func (e *kernelEngine) Inspect(code string, cursor int) string {
	from, to := cursor, cursor
	for from > 0 && (isNameByte(code[from-1]) || code[from-1] == '.') {
		from--
	}
	for to < len(code) && isNameByte(code[to]) {
		to++
	}
	call, _ := openCall(code[strings.LastIndexByte(code[:cursor], '\n')+1 : cursor])
	for _, name := range []string{code[from:to], lastPart(code[from:to]), call, lastPart(call)} {
		if text := e.help(name); text != "" {
			return text
		}
	}
	return ""
}

// help is what the shell's help says of a name, "" for nothing.
func (e *kernelEngine) help(name string) string {
	s := e.shell
	var text strings.Builder
	if strings.Trim(name, ".") == "" {
		return ""
	}
	out := s.out
	s.out = &text
	defer func() { s.out = out }()
	err := s.guarded(func() error {
		_, err := shellHelp(context.Background(), s, &invocation{name: "help", args: []string{name}})
		return err
	})
	if err != nil {
		return ""
	}
	return text.String()
}

// IsComplete reports whether a cell ends where a statement does. A block ends with
// an empty line, as it does where lines are typed.
func (e *kernelEngine) IsComplete(code string) (complete bool, indent string) {
	s := e.shell
	trial := *s
	trial.split = splitter{typed: true, isCommand: s.isCommand, goesOn: goesOn, open: s.split.open, block: s.split.block}
	for _, line := range strings.Split(code, "\n") {
		for _, u := range trial.split.feed(line) {
			trial.split.block = trial.split.block || u.kind == unitHead // as carrying it out does
		}
	}
	switch {
	case trial.split.pending():
		return false, trial.Indent()
	case trial.split.block && !s.split.block:
		return false, trial.blockStart(code)
	}
	return true, ""
}

// blockStart is what the next line of a block begins with whose lines so far, if it
// has any, stand in a text.
func (s *Shell) blockStart(text string) string {
	last := text[strings.LastIndexByte(strings.TrimRight(text, "\n"), '\n')+1:]
	if indent := last[:len(last)-len(strings.TrimLeft(last, " \t"))]; indent != "" {
		return indent
	}
	return "    "
}
