package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/starlib"
)

// shellLoad makes a file part of the session.
func shellLoad(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	return s.load(ctx, call.args[0], call.args[1:], call.set)
}

func (s *Shell) load(ctx context.Context, file string, args []string, set *Settings) (bool, error) {
	if help, _ := cutHelp(args); help {
		c := s.session(set)
		src, err := c.open(ctx, file)
		if err == nil {
			_, err = c.trace(ctx, src, args)
		}
		c.begin("")
		return err == nil, err
	}
	e, err := s.readEntry(ctx, file, args, set)
	if err != nil {
		return false, err
	}
	if err := s.closeProgram(); err != nil {
		return false, err
	}
	s.entries = slices.DeleteFunc(s.entries, func(old entry) bool { return old.kind == entryFile && old.file == file })
	before := s.entries
	if at := slices.IndexFunc(s.entries, func(old entry) bool { return old.kind == entryScript && old.file == file }); at >= 0 && e.kind == entryScript {
		// What it declared would be declared twice: the new one takes the old one's place.
		e.group = s.group
		s.trying = &e
		defer func() { s.trying = nil }()
		if err := s.again(ctx, at, e); err != nil {
			return false, withCode(ctx, err)
		}
		s.chosen = s.lastOf(file)
	} else {
		if err := s.accept(ctx, e); err != nil {
			return false, err
		}
		s.chosen = ""
	}
	if err := s.checkArgs(file, args); err != nil {
		s.restore(before)
		return false, err
	}
	return true, s.announce()
}

// lastOf is the last program that a file made, "" if it made none.
func (s *Shell) lastOf(file string) string {
	name := ""
	for _, p := range s.live.Programs() {
		if p.Pos.File == file {
			name = p.Name
		}
	}
	return name
}

// readEntry reads a file as an entry that has still to run.
func (s *Shell) readEntry(ctx context.Context, file string, args []string, set *Settings) (entry, error) {
	c := s.session(set)
	defer c.begin("")
	src, err := c.open(ctx, file)
	if err != nil {
		return entry{}, err
	}
	e := entry{kind: entryFile, file: file, given: args}
	f := formatOf(src)
	switch {
	case f != nil && f.read != nil:
		im, err := readProgram(ctx, f, src, c.Set)
		if err != nil {
			return e, err
		}
		if len(args) > 0 {
			return e, badCallHint("unexpected-argument", "only a script has parameters", "load: unexpected argument %q", args[0])
		}
		for _, p := range slices.Backward(im.programs) { // the first is the usual one: commands are about the latest
			e.programs = append(e.programs, shellProgram{name: p.Name, from: file, read: p, im: im})
		}
	case f != nil && f.Name == "python":
		programs, err := c.trace(ctx, src, args)
		if err != nil {
			return e, err
		}
		for _, p := range programs {
			e.programs = append(e.programs, shellProgram{name: p.Name, from: p.Pos.String(), traced: p})
		}
	default:
		tool := flagTable()
		list, err := splitScriptArgs(args, tool)
		if err != nil {
			return e, err
		}
		if err := c.missing(ctx, src, list); err != nil {
			return e, err
		}
		e.kind, e.text = entryScript, strings.TrimSuffix(strings.TrimPrefix(string(src.data), "\ufeff"), "\n")+"\n"
		if e.args, err = scriptValues(list, tool); err != nil {
			return e, err
		}
	}
	return e, nil
}

// missing finds parameters that were given no value. Only the script knows which
// ones need one.
func (s *Session) missing(ctx context.Context, src source, list []scriptArg) error {
	if !slices.ContainsFunc(list, func(a scriptArg) bool { return a.bare }) {
		return nil
	}
	quiet := &Session{Out: devNull{}, Err: devNull{}, Set: s.Set}
	script, err := quiet.params(ctx, src)
	if err != nil && len(script.Params) == 0 {
		return nil // what is wrong with it will be said when it is loaded
	}
	kinds := make(map[string]string)
	for _, p := range script.Params {
		kinds[p.Name] = p.Type
	}
	return missingValue(list, kinds)
}

// checkArgs finds arguments of a script that it has no parameters for.
func (s *Shell) checkArgs(file string, args []string) error {
	tool := flagTable()
	list, err := splitScriptArgs(args, tool)
	if err != nil || len(list) == 0 {
		return err
	}
	var names []string
	kinds := make(map[string]string)
	for _, p := range s.live.Params() {
		names, kinds[p.Name] = append(names, p.Name), p.Type
	}
	if err := missingValue(list, kinds); err != nil {
		return err
	}
	for i := range list {
		if a := &list[i]; a.tool || !slices.Contains(names, a.name) {
			if findFlag(tool, a.name) != nil {
				return badCallHint("unknown-flag", "settings --"+a.name+" sets it for all commands", "%s: %s is a flag of the tool, not a parameter of the script", file, a.flag())
			}
			return unknownFlag(a, tool, names)
		}
	}
	return nil
}

// announce tells what commands are about from now on.
func (s *Shell) announce() error {
	p, err := s.subject()
	if err != nil { // a file that makes no program
		return nil
	}
	s.say("%s", p.about())
	return nil
}

// watched is a file that is loaded again whenever it is saved.
type watched struct {
	file string
	args []string
	seen time.Time
	size int64
}

func shellAutoload(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	switch {
	case len(call.args) == 0 && s.watch == nil:
		s.say("no file is loaded when it is saved")
		return true, nil
	case len(call.args) == 0:
		s.say("%s is loaded whenever it is saved", strings.Join(append([]string{s.watch.file}, s.watch.args...), " "))
		return true, nil
	case call.args[0] == "off":
		s.watch = nil
		return true, nil
	case strings.HasPrefix(call.args[0], "@"):
		return false, badCall("bad-argument", "autoload: scripts of the library don't change")
	}
	w := &watched{file: call.args[0], args: call.args[1:]}
	w.look()
	ok, err := s.load(ctx, w.file, w.args, call.set)
	if err == nil {
		s.watch = w
	}
	return ok, err
}

// look reports whether the file is another than it was.
func (w *watched) look() bool {
	st, err := os.Stat(w.file)
	if err != nil || st.ModTime().Equal(w.seen) && st.Size() == w.size {
		return false // an editor may take a file away for a moment
	}
	w.seen, w.size = st.ModTime(), st.Size()
	return true
}

// poll loads the watched file again if it was saved. The session's own lines run
// again on top of it; where they can't, the session stays as it was.
func (s *Shell) poll(ctx context.Context) error {
	w := s.watch
	if w == nil || !w.look() {
		return nil
	}
	e, err := s.readEntry(ctx, w.file, w.args, s.set)
	if err != nil {
		return err
	}
	list := s.entries
	at := slices.IndexFunc(list, func(x entry) bool { return x.file == w.file })
	if at < 0 {
		s.watch = nil // undone meanwhile
		return nil
	}
	if list[at].text == e.text && e.kind == entryScript {
		return nil
	}
	e.group = list[at].group
	s.trying = &e
	defer func() { s.trying = nil }()
	if err := s.again(ctx, at, e); err != nil {
		s.note("%s was saved, and is not taken:", w.file)
		s.told(ctx, err)
		return &toldError{err}
	}
	if s.chosen != "" {
		s.chosen = s.lastOf(w.file)
	}
	s.note("%s was saved, and loaded again", w.file)
	return s.announce()
}

// again puts an entry in the place of entry i, and runs what follows on top of it.
func (s *Shell) again(ctx context.Context, i int, e entry) error {
	list := slices.Clone(s.entries)
	list[i] = e
	for j := i; j < len(list); j++ {
		list[j].tape = nil
	}
	live, kept, err := s.replay(ctx, list)
	if err != nil {
		return err
	}
	block := s.split.block
	s.become(live, kept)
	s.split.block = block && s.live.Current() != nil
	return nil
}

// lastValue finds uses of the value of the expression before.
var lastValue = regexp.MustCompile(`(^|[^\w.])_($|\W)`)

// script is the session as a script, and what of it is left out. What calls run is left
// out where the script can't: the language has a run too, which takes less, and only
// within a program.
func (s *Shell) script(canRun bool) (text string, left []string) {
	var b strings.Builder
	body, block := 0, false
	end := func() {
		if block && body == 0 {
			b.WriteString("    pass\n")
		}
		block = false
	}
	for i := range s.entries {
		e := &s.entries[i]
		if e.kind != entryStatement || e.indent == "" {
			end()
		}
		switch e.kind {
		case entryOpen:
			b.WriteString(e.text)
			block, body = true, 0
		case entryScript:
			b.WriteString(e.text)
		case entryFile:
			left = append(left, "load "+e.file)
		case entryStatement:
			if slices.ContainsFunc(e.calls, func(c string) bool { return !canRun || !starlib.Documented(c) }) {
				left = append(left, e.summary())
				for _, line := range textLines(e.text) {
					b.WriteString(strings.TrimRight("# "+line, " ") + "\n")
				}
				continue
			}
			if e.pure {
				continue // looked at, and no more
			}
			body++
			b.WriteString(s.keptValue(i))
		}
	}
	end()
	return b.String(), left
}

// keptValue is the text of entry i; a value that the next ones call _ gets that
// name.
func (s *Shell) keptValue(i int) string {
	e := &s.entries[i]
	if !e.value || !slices.ContainsFunc(s.entries[i+1:], func(x entry) bool { return lastValue.MatchString(x.text) }) {
		return e.text
	}
	lines := strings.SplitAfter(e.text, "\n")
	for j, line := range lines {
		if text := strings.TrimLeft(line, " \t"); strings.TrimSpace(text) != "" && text[0] != '#' {
			lines[j] = line[:len(line)-len(text)] + "_ = " + text
			break
		}
	}
	return strings.Join(lines, "")
}

func shellScript(_ context.Context, s *Shell, _ *invocation) (bool, error) {
	text, left := s.script(true)
	done := s.exact()
	fmt.Fprint(s.out, text)
	done()
	s.leftOut(left)
	return true, nil
}

func (s *Shell) leftOut(left []string) {
	for _, what := range left {
		s.note("left out, as only the shell understands it: %s", what)
	}
}

// shellSave writes the session as a script, when that makes the same programs.
func shellSave(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	file := call.args[0]
	if f := formatOfName(file); f == nil || f.Name != "star" {
		return false, badCallHint("bad-argument", "xml, plan and dag write other forms of the program", "save: got %q, want a name that ends in .star", file)
	}
	text, left := s.script(true)
	given := make(map[string]string)
	flags := ""
	for i := range s.entries {
		for k, v := range s.entries[i].args {
			given[k] = v
		}
		if e := &s.entries[i]; len(e.given) > 0 && e.kind == entryScript {
			flags += " " + strings.Join(e.given, " ")
		}
	}
	failed, err := s.sameAgain(ctx, file, text, given)
	if failed {
		if less, more := s.script(false); less != text {
			if _, again := s.sameAgain(ctx, file, less, given); again == nil {
				text, left, failed, err = less, more, false, nil
			}
		}
	}
	s.leftOut(left) // which may be why it fails
	if failed {
		s.note("save: as a script the session would fail:")
	}
	if err != nil {
		return false, err
	}
	err = writeFile(file, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
	if err != nil {
		return false, err
	}
	s.say("%s to %s", plural(int64(len(textLines(text))), "line"), file)
	if flags != "" {
		s.note("run it with the parameters of this session: mscclsh %s%s", file, flags)
	}
	return true, nil
}

// sameAgain runs a text as the script it is to become, and compares its programs
// with the session's. failed says that the script did, and not the comparison.
func (s *Shell) sameAgain(ctx context.Context, file, text string, given map[string]string) (failed bool, err error) {
	yes := func(*starlib.Program) (bool, error) { return true, nil }
	script, err := starlib.Load(ctx, starlib.Options{File: file, Source: []byte(text), Args: given, Library: algorithms.FS,
		MaxSteps: uint64(s.set.MaxSteps), Host: starlib.Host{Topology: machine.Topology, Check: yes,
			Show: func(*starlib.Program, string) error { return nil },
			Run:  func(*starlib.Program, starlib.RunOptions) (bool, error) { return true, nil }}})
	if err != nil {
		return true, err
	}
	var have []shellProgram
	all, err := s.programs()
	if err != nil {
		return false, err
	}
	for _, p := range all {
		if p.traced != nil && !slices.ContainsFunc(s.entries, func(e entry) bool {
			return slices.ContainsFunc(e.programs, func(q shellProgram) bool { return q.traced == p.traced })
		}) {
			have = append(have, p)
		}
	}
	if len(have) != len(script.Programs) {
		return false, diag.Errorf(diag.Pos{}, "save", "save: as a script the session would make %s, not %d", plural(int64(len(script.Programs)), "program"), len(have))
	}
	for i := range have {
		if !samePrograms(have[i].traced, &script.Programs[i]) {
			return false, diag.Errorf(script.Programs[i].Pos, "save", "save: as a script the session would make another program %q", have[i].name)
		}
	}
	return false, nil
}

// samePrograms reports whether two programs have the same operations, wherever
// they stand in their scripts.
func samePrograms(a, b *starlib.Program) bool {
	if a.One == nil || b.One == nil {
		return a.One == nil && b.One == nil && sameWork(a.DAG, b.DAG)
	}
	var texts [2]strings.Builder
	for i, t := range []*ir.OneTrace{a.One, b.One} {
		bare := *t
		spec := *t.Spec
		spec.Positions = nil
		bare.Spec = &spec
		if bare.WriteText(&texts[i]) != nil {
			return false
		}
	}
	return texts[0].String() == texts[1].String()
}

// sameWork reports whether two traces have the same operations, wherever they stand
// in their scripts.
func sameWork(a, b *ir.ChunkDAG) bool {
	bare := func(d *ir.ChunkDAG) []ir.ChunkOp {
		ops := slices.Clone(d.Ops)
		for i := range ops {
			ops[i].Pos = 0
		}
		return ops
	}
	return a.Name == b.Name && a.Coll.String() == b.Coll.String() && a.Topo.Name == b.Topo.Name && a.Protocol == b.Protocol &&
		a.Instances == b.Instances && len(a.Buffers) == len(b.Buffers) && slices.Equal(bare(a), bare(b))
}
