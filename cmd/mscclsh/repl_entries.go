package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/starlib"
)

// shellFile is the file that positions of the session's lines name. They are
// those that the session has when it is saved.
const shellFile = "session"

type entryKind uint8

const (
	entryStatement entryKind = iota
	entryOpen                // enters a program, which stays open
	entryClose               // leaves it
	entryScript              // a file of the language
	entryFile                // programs of another kind of file
)

// entry is a part of the session that was accepted.
type entry struct {
	kind   entryKind
	group  int
	line   int32 // its first in the session
	text   string
	indent string // of a statement within a program
	file   string
	args   map[string]string
	given  []string // as args, as they were typed

	programs []shellProgram // of entryFile
	tape     *starlib.Tape
	calls    []string // commands that it calls
	value    bool     // one expression with a value
	pure     bool     // one expression without a call: it changes nothing but _, and is no line of the script
	kept     bool     // it is one after all: _ is used
	opened   string   // the program's name
	touches  bool     // commands are about what it changed
}

// written reports whether an entry has lines in the session.
func (e *entry) written() bool { return e.kind != entryClose && e.kind != entryFile && !e.pure }

// newLive is an empty script with this shell around it.
func (s *Shell) newLive() *starlib.Live {
	o := starlib.LiveOptions{Calls: shellCalls(), Call: s.called}
	o.Library, o.MaxSteps, o.Host = algorithms.FS, uint64(s.set.MaxSteps), s.host()
	o.Print = func(_ diag.Pos, text string) { s.say("%s", text) }
	return starlib.NewLive(o)
}

// host answers what a statement asks of the tool, as it does for scripts. What it
// shows is a result here.
func (s *Shell) host() starlib.Host {
	ask := func() starlib.Host {
		h := &host{session: s.session(s.set), set: s.set}
		h.session.Err, h.session.errStyle = s.out, s.outStyle
		if s.quiet > 0 {
			h.session.Out, h.session.Err = devNull{}, devNull{}
		}
		return h.functions(s.ctx)
	}
	return starlib.Host{
		Topology: machine.Topology,
		Check:    func(p *starlib.Program) (bool, error) { return ask().Check(p) },
		Show:     func(p *starlib.Program, what string) error { return ask().Show(p, what) },
		Run:      func(p *starlib.Program, o starlib.RunOptions) (bool, error) { return ask().Run(p, o) },
	}
}

// accept runs an entry and keeps it, or leaves the session as it was.
func (s *Shell) accept(ctx context.Context, e entry) error {
	s.keepLast(e.text)
	e.group, e.line = s.group, int32(len(s.lines)+1)
	kept := len(s.lines)
	s.trying = &e
	defer func() { s.trying = nil }()
	if e.written() {
		s.lines = append(s.lines, textLines(e.text)...)
	}
	value, err := s.run(ctx, s.live, &e)
	if err != nil && e.written() {
		if again, ok := s.replace(ctx, &e, err); ok {
			return again
		}
	}
	if err != nil {
		err = s.suspect(err, e.text)
		s.told(ctx, err) // while the lines are still known
		s.lines = s.lines[:kept]
		if s.live.Spoiled() {
			s.restore(s.entries)
		}
		return &toldError{withCode(ctx, err)}
	}
	s.entries = append(s.entries, e)
	if e.pure {
		s.lines = s.lines[:kept]
	}
	if e.touches {
		s.changed()
	}
	switch {
	case s.valued != nil:
		s.valued(value)
	case value != "" && !s.mute:
		s.say("%s", value)
	}
	return nil
}

// keepLast makes the last expression a line of the script if a text needs its value.
func (s *Shell) keepLast(text string) {
	if !lastValue.MatchString(text) {
		return
	}
	for i := len(s.entries) - 1; i >= 0; i-- {
		e := &s.entries[i]
		if e.pure {
			e.kept = true
			s.restore(s.entries)
		}
		if e.value {
			return
		}
	}
}

// run runs an entry in a script. An entry that ran before has its tape.
func (s *Shell) run(ctx context.Context, l *starlib.Live, e *entry) (value string, err error) {
	s.ctx = ctx
	before, programs := opsOf(l), len(l.Programs())
	p := starlib.Piece{Line: e.line, Text: e.text, Indented: e.indent != "", Tape: e.tape, Silent: s.quiet > 0}
	var ran *starlib.Ran
	switch e.kind {
	case entryFile:
		e.touches = true
		return "", nil
	case entryClose:
		e.touches = true
		return "", l.Close()
	case entryOpen:
		p.Text += "    pass\n"
		ran, err = l.Open(ctx, p)
	case entryScript:
		p.File, p.Line, p.Args = e.file, 1, e.args
		ran, err = l.Exec(ctx, p)
	default:
		ran, err = l.Exec(ctx, p)
	}
	if err != nil {
		return "", err
	}
	e.tape, e.calls, e.value = ran.Tape, ran.Calls, ran.Value != ""
	e.pure = ran.Pure && !e.kept && !strings.Contains(e.text, "#")
	if o := l.Current(); o != nil && e.kind == entryOpen {
		e.opened = o.Name
	}
	e.touches = e.kind == entryScript || e.kind == entryOpen || opsOf(l) != before || len(l.Programs()) != programs
	return ran.Value, nil
}

func opsOf(l *starlib.Live) int {
	if o := l.Current(); o != nil {
		return o.Ops + 1
	}
	return 0
}

// closeProgram ends the open program.
func (s *Shell) closeProgram() error {
	s.split.block = false
	o := s.live.Current()
	if o == nil {
		return nil
	}
	return s.accept(context.Background(), entry{kind: entryClose})
}

// restore makes the session that of these entries, which ran well before.
func (s *Shell) restore(list []entry) {
	live, kept, err := s.replay(context.Background(), list)
	if err != nil {
		// What ran well before should run well again; if it doesn't, what does is kept.
		s.note("the session could not be restored whole: %d of its %d entries are left\n%v", len(kept), len(list), err)
	}
	s.become(live, kept)
}

// become takes over another script and its entries.
func (s *Shell) become(live *starlib.Live, list []entry) {
	s.live, s.entries = live, list
	s.lines = nil
	for i := range list {
		if list[i].written() {
			s.lines = append(s.lines, textLines(list[i].text)...)
		}
	}
	if s.live.Current() == nil {
		s.split.block = false
	}
	s.changed()
}

// replay runs entries in a new script, silently. It gives those that went well.
func (s *Shell) replay(ctx context.Context, list []entry) (*starlib.Live, []entry, error) {
	s.quiet++
	s.progress.begin("running the session again")
	defer func() {
		s.quiet--
		s.progress.begin("")
	}()
	live := s.newLive()
	var out []entry
	line := int32(1)
	for i := range list {
		e := list[i]
		e.line = line
		if _, err := s.run(ctx, live, &e); err != nil {
			if live.Spoiled() && len(out) < len(list) {
				live, out, _ = s.replay(ctx, out)
			}
			return live, out, err
		}
		if e.written() {
			line += int32(len(textLines(e.text)))
		}
		out = append(out, e)
	}
	return live, out, nil
}

// replace tries an open entry without the earlier program of the same name, if
// that is why it failed and nothing else needs the earlier one. ok says that it
// did what there is to do.
func (s *Shell) replace(ctx context.Context, e *entry, failed error) (error, bool) {
	m := diag.Messages(failed)
	if len(m) != 1 || m[0].Code != "program-name" {
		return nil, false
	}
	for from := len(s.entries) - 1; from >= 0; from-- {
		old := &s.entries[from]
		if old.kind != entryOpen && old.kind != entryScript {
			continue
		}
		to := from + 1
		if old.kind == entryOpen {
			for to < len(s.entries) && s.entries[to-1].kind != entryClose {
				to++
			}
		}
		rest := append(append([]entry(nil), s.entries[:from]...), s.entries[to:]...)
		live, kept, err := s.replay(context.Background(), rest)
		if err != nil {
			continue
		}
		lines := 0
		for i := range kept {
			if kept[i].written() {
				lines += len(textLines(kept[i].text))
			}
		}
		e.line = int32(lines + 1)
		if _, err := s.run(ctx, live, e); err != nil {
			continue
		}
		s.become(live, append(kept, *e))
		s.lines = append(s.lines[:lines], textLines(e.text)...)
		s.note("program %q takes the place of the earlier one of that name", e.opened)
		return nil, true
	}
	return nil, false
}

// undo takes back the last n groups of entries.
func (s *Shell) undo(n int) error {
	if len(s.entries) == 0 {
		return badCall("undo", "undo: there is nothing to take back")
	}
	keep := len(s.entries)
	for ; n > 0 && keep > 0; n-- {
		for keep > 1 && s.entries[keep-1].pure { // a look at a value
			keep--
		}
		group := s.entries[keep-1].group
		for keep > 0 && s.entries[keep-1].group == group {
			keep--
		}
	}
	gone := s.entries[keep:]
	block := s.split.block
	s.restore(s.entries[:keep:keep])
	s.split.block = block && s.live.Current() != nil
	for i := range gone {
		if gone[i].pure && len(gone) > 1 {
			continue
		}
		s.say("undone: %s", gone[i].summary())
	}
	return nil
}

// summary is an entry on one line.
func (e *entry) summary() string {
	switch e.kind {
	case entryClose:
		return "the end of the program"
	case entryScript, entryFile:
		return "load " + strings.Join(append([]string{e.file}, e.given...), " ")
	}
	lines := textLines(e.text)
	for i, line := range lines {
		if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
			if i+1 < len(lines) {
				text += " …"
			}
			return text
		}
	}
	return "a comment"
}

// changed forgets what was worked out about the program.
func (s *Shell) changed() {
	s.gen++
}

// note tells something that is neither a result nor an error.
func (s *Shell) note(format string, args ...any) {
	writeMessages(s.err, s.errStyle, diag.List{{Severity: diag.Info, Text: fmt.Sprintf(format, args...)}})
}

// textLines are the lines of a text without their ends.
func textLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
