package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib"
)

// Shell is a session at a prompt: text in, text out. Statements become lines of a
// script, which grows; commands ask about its program. It has no terminal:
// whoever drives it hands it writers, whole texts (Exec) or lines (Line).
//
// What was accepted is kept as entries. A statement that fails, or is
// interrupted, leaves the session as it was: where it had begun to run, the
// entries are run again without it, silently.
type Shell struct {
	out, err           io.Writer
	plain              io.Writer // out itself, where lines are wrapped on the way
	outStyle, errStyle style
	progress           *progress
	set                *Settings // of all commands
	width              int       // of lines, where there is a choice
	ascii              bool      // the terminal shows no other characters

	live    *starlib.Live
	entries []entry
	group   int // of the entries of one input; undo takes a group
	grouped bool
	split   splitter

	lines   []string // of the session, accepted or being tried
	gen     int      // counts changes of what commands are about
	chosen  string   // the program that commands are about, "" for the latest
	given   []string // flags of set, as they were typed
	stepper *stepper
	watch   *watched
	first   error  // the first error, which gives the exit code
	trying  *entry // that is being accepted
	quit    bool
	lessonState
	aside
	quiet int             // > 0 while entries run again
	ctx   context.Context // of the statement that is running
}

// NewShell starts a session without a program that writes to out and err.
func NewShell(out, err io.Writer) *Shell {
	s := &Shell{out: out, err: err, plain: out, outStyle: newStyle(out), errStyle: newStyle(err), progress: newProgress(err),
		set: newSettings(), width: 80}
	s.split = splitter{isCommand: s.isCommand, goesOn: goesOn, open: func() bool { return s.live.Current() != nil }}
	s.ctx = context.Background()
	s.live = s.newLive()
	return s
}

// Close takes the progress line away.
func (s *Shell) Close() { s.progress.end() }

// Typed says that lines come from somebody who types them: an empty line ends a
// block.
func (s *Shell) Typed() { s.split.typed = true }

// Quit reports whether the session has been ended by a command.
func (s *Shell) Quit() bool { return s.quit }

// Pending reports whether a statement has begun that needs further lines.
func (s *Shell) Pending() bool { return s.split.pending() }

// Forget drops a statement that was begun.
func (s *Shell) Forget() { s.split.reset() }

// Line takes one line, and carries out what it completes. The error has been told
// already.
func (s *Shell) Line(ctx context.Context, line string) error {
	if s.turnsPage(line) {
		return s.guide.next(ctx)
	}
	return s.units(ctx, s.split.feed(line))
}

// End carries out what the lines so far have begun, and ends the block of a with.
func (s *Shell) End(ctx context.Context) error {
	units := s.split.flush()
	return s.units(ctx, append(units, s.split.close()...))
}

// Exec carries out a text of any number of lines: a statement, a command or a
// whole script, with any kind of line ends. It is accepted as a whole or not at
// all, and undone as a whole.
func (s *Shell) Exec(ctx context.Context, text string) error {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) == 1 {
		err := s.Line(ctx, lines[0])
		if err == nil && !s.split.typed {
			err = s.units(ctx, s.split.flush())
		}
		return err
	}
	typed, before, block := s.split.typed, len(s.entries), s.split.block
	s.split.typed = false
	defer func() { s.split.typed, s.grouped = typed, false }()
	s.group++
	s.grouped = true
	for i := range len(lines) + 1 {
		var units []unit
		if i < len(lines) {
			units = s.split.feed(lines[i])
		} else {
			units = s.split.flush()
		}
		if err := s.units(ctx, units); err != nil {
			s.split.reset()
			s.split.skipping = false
			if len(s.entries) > before {
				s.restore(s.entries[:before])
			}
			s.split.block = block
			return err
		}
	}
	return nil
}

// units carries out units, and gives the first error. One error doesn't keep the
// line that ended a statement from being carried out, but ends a whole text. A block
// that a line ended goes on if the line fails: it may have been a slip.
func (s *Shell) units(ctx context.Context, units []unit) error {
	var first error
	closed, open := false, 0
	for _, u := range units {
		if s.quit {
			break
		}
		if !s.grouped && !closed {
			s.group++
		}
		if u.kind == unitClose {
			closed, open = true, len(s.entries)
		}
		err := s.guarded(func() error { return s.unit(ctx, u) })
		if err == nil {
			continue
		}
		s.tell(ctx, err)
		if s.first == nil {
			s.first = err
		}
		switch {
		case closed && !errors.Is(err, errReported):
			s.restore(s.entries[:min(open, len(s.entries))])
			s.split.block = s.live.Current() != nil
		case u.kind == unitHead:
			s.split.skipping = true
		}
		if first == nil {
			first = err
		}
		if s.grouped {
			break
		}
	}
	return first
}

func (s *Shell) unit(ctx context.Context, u unit) error {
	if err := s.poll(ctx); err != nil {
		s.tell(ctx, err)
	}
	body := strings.Join(strings.SplitAfter(u.text, "\n")[u.prefix:], "")
	switch u.kind {
	case unitClose:
		return s.closeProgram()
	case unitHead:
		if err := s.accept(ctx, entry{kind: entryOpen, text: u.text}); err != nil {
			return err
		}
		s.split.block = true
		return nil
	case unitCommand:
		return s.command(ctx, strings.TrimSpace(body))
	}
	if name, args, ok := callOf(strings.TrimSpace(body)); ok && s.isCall(name) {
		return s.invoke(ctx, name, args)
	}
	return s.statement(ctx, u)
}

// statement accepts a statement of the script.
func (s *Shell) statement(ctx context.Context, u unit) error {
	e := entry{kind: entryStatement, text: u.text}
	if s.live.Current() != nil {
		switch {
		case !s.split.block:
			e.text = indented(u)
			e.indent = "    "
		default:
			e.indent = blanks(u.text, u.prefix)
			if want := s.blockIndent(); want != "" && want != e.indent {
				return diag.Errorf(diag.Pos{File: shellFile, Line: int32(len(s.lines) + u.prefix + 1), Col: int32(len(e.indent) + 1)}, "syntax",
					"got %s of indentation, want %d as in the lines before", plural(int64(width(e.indent)), "column"), width(want))
			}
		}
	}
	return s.accept(ctx, e)
}

// suspect adds to an error of a line which command was probably meant.
func (s *Shell) suspect(err error, text string) error {
	list := diag.Messages(err)
	words := strings.Fields(text)
	if len(list) != 1 || len(words) == 0 || firstWord(words[0]) != words[0] {
		return err
	}
	m := *list[0]
	near := didYouMean(words[0], shellNames(), "the command ")
	switch {
	case m.Code == "undefined-name" && len(words) == 1 && near != "":
		m.Suggestion = near
	case m.Code != "syntax" || m.Suggestion != "" || len(words) < 2 || !isNameByte(words[1][0]) && !strings.ContainsRune(`"'@-`, rune(words[1][0])):
		return err
	case near != "":
		m.Suggestion = near
	case !slices.Contains(s.live.Names(), words[0]) && !slices.Contains(keywords, words[0]):
		m.Suggestion = fmt.Sprintf("help lists the commands; %s is none", words[0])
	}
	return &m
}

// blockIndent is how the statements of the open program's block are indented, ""
// if there is none yet.
func (s *Shell) blockIndent() string {
	for i := len(s.entries) - 1; i >= 0; i-- {
		switch e := &s.entries[i]; e.kind {
		case entryStatement:
			return e.indent
		case entryOpen, entryClose:
			return ""
		}
	}
	return ""
}

// blanks are those that a statement begins with.
func blanks(text string, prefix int) string {
	line := strings.SplitAfter(text, "\n")[prefix]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// indented is a statement as it stands in a block, whose lines are moved right as
// a whole but for those that begin within a string.
func indented(u unit) string {
	own := blanks(u.text, u.prefix)
	lines := strings.SplitAfter(strings.TrimSuffix(u.text, "\n"), "\n")
	for i, line := range lines {
		if !u.inside[i] && strings.TrimSpace(line) != "" {
			lines[i] = "    " + strings.TrimPrefix(line, own)
		}
	}
	return strings.Join(lines, "") + "\n"
}

// callOf is a text that is one call with literals. load and break are words of
// Starlark, which has no calls of these names.
func callOf(text string) (string, []string, bool) {
	for _, word := range []string{"load", "break"} {
		if strings.HasPrefix(text, word+"(") {
			name, args, ok := starlib.CallOf("_" + text)
			return strings.TrimPrefix(name, "_"), args, ok && len(args) < 2 // more are names to load
		}
	}
	return starlib.CallOf(text)
}

// isCall reports whether a call of that name is a command's. What the session has
// defined comes first.
func (s *Shell) isCall(name string) bool {
	c := findShellCommand(name)
	return c != nil && !s.live.Defined(name) && (c.callable() || name == "load" || name == "break" || name == c.Alias)
}

// guarded makes an error of a panic.
func (s *Shell) guarded(do func() error) error {
	c := s.session(s.set)
	c.phase = "carrying out a line of the shell"
	return c.guard(do)
}

// session carries out one command: same writers, own report.
func (s *Shell) session(set *Settings) *Session {
	copied := *set
	return &Session{Out: s.out, Err: s.err, Set: &copied, outStyle: s.outStyle, errStyle: s.errStyle, progress: s.progress}
}

// say prints a line of a result.
func (s *Shell) say(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}

// Prompt is what stands before the next line: the open program with its ranks,
// its operations, and how many of the outputs that are demanded are right.
func (s *Shell) Prompt() string {
	if s.split.pending() {
		return "... "
	}
	o := s.live.Current()
	if o == nil {
		return "mscclsh> "
	}
	name := []rune(printable(o.Name))
	if len(name) > 20 {
		name = append(name[:17], []rune("...")...)
	}
	return fmt.Sprintf("%s: %s, %s%s> ", string(name), plural(int64(o.Ranks), "rank"), plural(int64(o.Ops), "op"), holdsText(o))
}

func holdsText(o *starlib.OpenProgram) string {
	switch {
	case !o.Known || o.Demanded == 0:
		return ""
	case o.Right == o.Demanded:
		return ", holds"
	}
	return fmt.Sprintf(", %s/%s right", grouped(int64(o.Right)), grouped(int64(o.Demanded)))
}

// ExitCode is that of the first error.
func (s *Shell) ExitCode() int { return exitCode(s.first) }

// Indent is what the next line will most likely begin with.
func (s *Shell) Indent() string {
	p := &s.split
	if p.pending() {
		if !p.compound || p.lex.open() {
			return ""
		}
		last := p.lines[len(p.lines)-1]
		indent := last[:len(last)-len(strings.TrimLeft(last, " \t"))]
		if p.lex.last == ':' {
			indent += "    "
		}
		return indent
	}
	if p.block {
		if indent := s.blockIndent(); indent != "" {
			return indent
		}
		return "    "
	}
	return ""
}
