package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib"
)

// shellCommand is one row of the table that dispatch, help, completion and
// docs/shell.md of the shell are made from.
type shellCommand struct {
	Name     string
	Alias    string // one more name, or ""
	Args     string // as shown after the name
	Short    string // one line
	Long     string // paragraphs; "" if Short says it all
	Examples []string
	Flags    []string // names of the tool's flags it takes
	MinArgs  int
	MaxArgs  int // -1 is any number
	Rest     bool
	Alone    bool // changes the session, so that no statement can contain it
	Complete func(s *Shell) []string
	Files    bool // arguments are names of files
	Run      func(ctx context.Context, s *Shell, c *invocation) (bool, error)
}

// invocation is one call of a command.
type invocation struct {
	name string
	args []string
	line string // what stood after the name, for commands that take it whole
	set  *Settings
}

// usage is the command's shape.
func (c *shellCommand) usage() string {
	return strings.TrimSpace(c.Name + " " + c.Args)
}

// callable reports whether the command is a function of the language too. Words of
// Starlark can't be names, and calls of its own functions stay what they are.
func (c *shellCommand) callable() bool {
	return !slices.Contains([]string{"load", "break", "open", "time"}, c.Name)
}

// findShellCommand finds a command by either name.
func findShellCommand(name string) *shellCommand {
	table := shellCommandTable()
	for i := range table {
		if c := &table[i]; name != "" && (c.Name == name || c.Alias == name) {
			return c
		}
	}
	return nil
}

// shellCalls are the commands that are functions of the language.
func shellCalls() []string {
	var names []string
	for _, c := range shellCommandTable() {
		if c.callable() {
			names = append(names, c.Name)
		}
	}
	return names
}

// isCommand reports whether a line is a command and not a statement: it begins
// with a command's name, which the session hasn't given to something else, and
// goes on with nothing, a flag or a word. A colon before the name and a question
// mark say so in any case.
func (s *Shell) isCommand(line string) bool {
	if line[0] == ':' || line[0] == '?' || strings.HasSuffix(line, "?") && !strings.Contains(line, "#") {
		return true
	}
	name := firstWord(line)
	c := findShellCommand(name)
	if c == nil || s.live != nil && s.live.Defined(name) {
		return false
	}
	rest := line[len(name):]
	switch {
	case strings.TrimSpace(rest) == "" || c.Rest && rest[0] == '(':
		return true
	case rest[0] != ' ' && rest[0] != '\t':
		return false
	}
	rest = strings.TrimSpace(rest)
	if word := firstWord(rest); slices.Contains([]string{"in", "not", "and", "or", "if", "is"}, word) && word != rest {
		return false
	}
	return isNameByte(rest[0]) || strings.ContainsRune(`"'@/.~*`, rune(rest[0])) ||
		rest[0] == '-' && len(rest) > 1 && rest[1] != ' ' || name == "time" && rest[0] == '[' || name == "help" || c.Rest && rest[0] == '('
}

// command carries out a line that is one.
func (s *Shell) command(ctx context.Context, line string) error {
	if line[0] == '?' || strings.HasSuffix(line, "?") && line[0] != ':' {
		return s.invoke(ctx, "help", strings.Fields(strings.Trim(line, "? ")))
	}
	line = strings.TrimSpace(strings.TrimPrefix(line, ":"))
	name := firstWord(line)
	if findShellCommand(name) == nil {
		hint := didYouMean(name, shellNames(), "")
		if hint == "" {
			hint = "help lists the commands"
		}
		return badCallHint("no-command", hint, "%q is no command", line)
	}
	rest := strings.TrimSpace(line[len(name):])
	if c := findShellCommand(name); c.Rest {
		if _, args, ok := starlib.CallOf("_" + line); ok && line[len(name)] == '(' && len(args) == 1 {
			rest = args[0]
		}
		return s.carryOut(ctx, c, &invocation{name: c.Name, line: rest})
	}
	args, err := splitWords(rest)
	if err != nil {
		return err
	}
	return s.invoke(ctx, name, args)
}

// goesOn reports whether a command's line is read on while brackets are open.
func goesOn(line string) bool {
	c := findShellCommand(firstWord(strings.TrimPrefix(line, ":")))
	return c != nil && c.Rest
}

// shellNames are all names of commands.
func shellNames() []string {
	var names []string
	for _, c := range shellCommandTable() {
		names = append(names, c.Name)
	}
	return names
}

// called is what a statement that calls a command does.
func (s *Shell) called(ctx context.Context, pos diag.Pos, name string, args []string) (bool, error) {
	c := findShellCommand(name)
	if c.Alone {
		return false, diag.Errorf(pos, "command", "%s: it changes the session, so it must stand on a line by itself", name)
	}
	if s.quiet > 0 {
		return true, nil
	}
	return s.tryOut(ctx, c, &invocation{name: c.Name, args: args})
}

// invoke carries out a command with its arguments.
func (s *Shell) invoke(ctx context.Context, name string, args []string) error {
	c := findShellCommand(name)
	return s.carryOut(ctx, c, &invocation{name: c.Name, args: args, line: strings.Join(args, " ")})
}

// carryOut is tryOut at the prompt, where a program that is wrong is an error.
func (s *Shell) carryOut(ctx context.Context, c *shellCommand, call *invocation) error {
	ok, err := s.tryOut(ctx, c, call)
	if err == nil && !ok {
		err = errReported
	}
	return err
}

// tryOut runs a command. It is false where what the command judges is wrong.
func (s *Shell) tryOut(ctx context.Context, c *shellCommand, call *invocation) (bool, error) {
	set := *s.set
	call.set = &set
	if !c.Rest {
		rest, err := c.takeFlags(call.args, &set)
		if err != nil {
			return false, err
		}
		call.args = rest
		// Where to run may be said by a word, after flags that need it.
		for _, a := range rest {
			if slices.Contains(c.Flags, "backend") && slices.Contains(backends, a) {
				set.Backend = a
			}
		}
		if err := set.validate(); err != nil {
			return false, err
		}
		switch {
		case len(rest) < c.MinArgs:
			return false, badCallHint("missing-argument", "usage: "+c.usage(), "%s: an argument is missing", c.Name)
		case c.MaxArgs >= 0 && len(rest) > c.MaxArgs:
			return false, badCallHint("unexpected-argument", "usage: "+c.usage(), "%s: unexpected argument %q", c.Name, rest[c.MaxArgs])
		}
	}
	ok, err := c.Run(ctx, s, call)
	if errors.Is(err, errReported) {
		return false, nil
	}
	return ok && err == nil, err
}

// takeFlags takes the command's flags out of its arguments.
func (c *shellCommand) takeFlags(args []string, set *Settings) ([]string, error) {
	if c.Flags == nil {
		return args, nil
	}
	tool := flagTable()
	var rest []string
	for i := 0; i < len(args); i++ {
		if !isFlag(args[i]) {
			rest = append(rest, args[i])
			continue
		}
		a, attached, err := oneScriptArg(args[i], tool)
		if err != nil {
			return nil, err
		}
		f := findFlag(tool, a.name)
		if f == nil || !slices.Contains(c.Flags, a.name) {
			hint := didYouMean(a.name, c.Flags, "--")
			if hint == "" {
				hint = "help " + c.Name + " lists its flags"
			}
			return nil, badCallHint("unknown-flag", hint, "%s: unknown flag %s", c.Name, args[i])
		}
		value := a.value
		switch {
		case attached:
		case !f.takesValue():
			value = "true"
			if i+1 < len(args) && (args[i+1] == "true" || args[i+1] == "false") { // of a call with keywords
				i++
				value = args[i]
			}
		case i+1 == len(args):
			return nil, badCall("flag-value", "--%s needs a value: --%s %s", f.Name, f.Name, f.Arg)
		default:
			i++
			value = args[i]
		}
		if err := f.set(set, value); err != nil {
			return nil, badCall("flag-value", "--%s: %s", f.Name, strings.TrimPrefix(err.Error(), f.Name+": "))
		}
	}
	return rest, nil
}

// splitWords cuts a line into words at blanks; quotes keep blanks together.
func splitWords(line string) ([]string, error) {
	var words []string
	var b strings.Builder
	quote, begun := rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(c)
		case c == '"' || c == '\'':
			quote, begun = c, true
		case c == ' ' || c == '\t':
			if begun {
				words = append(words, b.String())
			}
			b.Reset()
			begun = false
		default:
			b.WriteRune(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil, badCall("quote", "%c is not closed", quote)
	}
	if begun {
		words = append(words, b.String())
	}
	return words, nil
}

// judged does what a command of the tool does with a program, and prints the same
// report.
func (s *Shell) judged(ctx context.Context, set *Settings, do func(c *Session) error) (bool, error) {
	c := s.session(set)
	err := c.guard(func() error { return do(c) })
	if err != nil && !errors.Is(err, errReported) {
		c.begin("")
		if c.report.Program != nil && exitCode(err) <= exitWrong && ctx.Err() == nil && !set.JSON {
			s.tell(ctx, err)
			c.report.writeHuman(s.out, s.outStyle)
			return false, &toldError{err}
		}
		return false, err
	}
	err = c.finish(ctx, err)
	if errors.Is(err, errReported) {
		return false, nil
	}
	if err != nil {
		err = &toldError{err}
	}
	return err == nil, err
}

// oneOfWords refuses a word that isn't in a list.
func oneOfWords(command, got string, want []string) error {
	if slices.Contains(want, got) {
		return nil
	}
	return badCallHint("bad-argument", didYouMean(got, want, ""), "%s: got %q, want %s", command, got, orList(want))
}

// rankArg reads a rank of a program.
func rankArg(command, text string, ranks int32) (int32, error) {
	var n int32
	if _, err := fmt.Sscanf(text+"\n", "%d\n", &n); err != nil || n < 0 || n >= ranks {
		return 0, badCall("bad-argument", "%s: got rank %q, want 0 to %d", command, text, ranks-1)
	}
	return n, nil
}
