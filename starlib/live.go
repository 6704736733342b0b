package starlib

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/trace"
)

// LiveOptions say how a script is written at a prompt. Of the Options, Source,
// Args and Frontend have no meaning here.
type LiveOptions struct {
	Options
	// Calls are further functions; they shadow the language's of the same name.
	Calls []string
	// Call carries out one of them. Arguments are spelled as on a command line,
	// keywords as --name, value.
	Call func(ctx context.Context, pos diag.Pos, name string, args []string) (bool, error)
}

// Live is a script that is still being written: pieces of it run one after
// another, as lines of one file. Functions see later changes of the globals that
// they use, and may use globals that don't exist yet, exactly as in a file. A
// program can be kept open between pieces.
//
// A piece that fails while it runs leaves a Live in no particular state (Spoiled
// tells); whoever wants to go on makes another one and runs the earlier pieces
// again, with their tapes.
type Live struct {
	in      *interp
	o       LiveOptions
	globals starlark.StringDict
	text    []byte          // of the session so far, for columns of earlier lines
	starts  []int           // of its lines
	wide    bool            // it is more than ASCII
	ctx     context.Context // of the piece that is running
	tape    *Tape
	play    bool // answers come from the tape
	at      int
	spoiled bool
	holds   *trace.Holds
	holding *program // that holds is about
}

// Tape holds what the host answered while a piece ran. A piece that is run again
// with its tape gets the same answers, without asking.
type Tape struct{ answers []bool }

// Piece is some lines of a script.
type Piece struct {
	File string // "" is the session itself
	Line int32  // the number of its first line, from 1
	Text string
	// Indented is text that is indented throughout.
	Indented bool
	Args     map[string]string // for param()
	Tape     *Tape             // of an earlier run; nil asks the host
	Silent   bool              // print() prints nothing
}

// Ran is what running a piece gave.
type Ran struct {
	Value string   // of a piece that is one expression; "" for none or None
	Pure  bool     // it is one expression that calls nothing
	Calls []string // those of LiveOptions.Calls that its text names
	Tape  *Tape
}

// sessionFile is what positions of a session's own lines say.
const sessionFile = "session"

// Names that no script can spell: globals are fields of one, the other enters
// what stays open.
const (
	sessionName = "<session>"
	openName    = "<open>"
	valueName   = "_"
)

// liveDialect binds what load() brings for all later pieces.
var liveDialect = func() syntax.FileOptions {
	d := dialect
	d.LoadBindsGlobally = true
	return d
}()

// NewLive starts a script without lines.
func NewLive(o LiveOptions) *Live {
	l := &Live{o: o, globals: starlark.StringDict{}, ctx: context.Background()}
	if o.File == "" {
		o.File = sessionFile
	}
	o.Host = l.host(o.Host)
	l.in = &interp{o: o.Options, script: &Script{}, modules: map[string]*module{}, params: map[string]*declared{},
		columns: map[string]*columns{}}
	l.in.predeclared = predeclare(l.in)
	l.in.predeclared[sessionName] = &session{l}
	l.in.predeclared[openName] = starlark.NewBuiltin("with", l.enter)
	for _, name := range o.Calls {
		l.in.predeclared[name] = starlark.NewBuiltin(name, l.call)
	}
	return l
}

// Spoiled reports whether a piece failed when it had begun to run.
func (l *Live) Spoiled() bool { return l.spoiled }

// Params are the parameters declared so far.
func (l *Live) Params() []Param { return l.in.script.Params }

// Programs are those that have ended, in the order of their ends.
func (l *Live) Programs() []Program { return l.in.script.Programs }

// Exec runs a piece.
func (l *Live) Exec(ctx context.Context, p Piece) (*Ran, error) {
	return l.run(ctx, p, func(f *syntax.File) error { return nil })
}

// Open runs a piece that is a with statement whose body is pass, and stays in
// the block.
func (l *Live) Open(ctx context.Context, p Piece) (*Ran, error) {
	return l.run(ctx, p, func(f *syntax.File) error {
		list, err := l.opened(f.Stmts, nil)
		f.Stmts = list
		return err
	})
}

// opened turns loops that stand for with into assignments that enter for good.
func (l *Live) opened(stmts []syntax.Stmt, out []syntax.Stmt) ([]syntax.Stmt, error) {
	for _, s := range stmts {
		loop, ok := s.(*syntax.ForStmt)
		enter, isWith := (*syntax.CallExpr)(nil), false
		if ok {
			if enter, isWith = loop.X.(*syntax.CallExpr); isWith {
				name, isName := enter.Fn.(*syntax.Ident)
				isWith = isName && name.Name == withName
			}
		}
		if !isWith {
			if b, ok := s.(*syntax.BranchStmt); ok && b.Token == syntax.PASS {
				continue
			}
			return nil, diag.Errorf(l.in.pos(syntax.Start(s)), "syntax", "open: got a statement, want a program, as in MSCCLProgram(...)")
		}
		enter.Fn.(*syntax.Ident).Name = openName
		if name, ok := loop.Vars.(*syntax.Ident); ok && name.Name == noName {
			out = append(out, &syntax.ExprStmt{X: enter})
		} else {
			out = append(out, &syntax.AssignStmt{OpPos: loop.For, Op: syntax.EQ, LHS: loop.Vars, RHS: enter})
		}
		var err error
		if out, err = l.opened(loop.Body, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// enter is what an opened with calls with its expression.
func (l *Live) enter(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	c, ok := args[0].(scope)
	if !ok {
		return nil, l.in.notScope(args[0])
	}
	if _, err := l.in.enter(c, l.in.pos(t.CallFrame(1).Pos)); err != nil {
		return nil, err
	}
	return c, nil
}

// Close leaves everything that Open entered.
func (l *Live) Close() error {
	l.in.startThread()
	if len(l.in.scopes) > 0 {
		l.in.scopes[0].Done()
	}
	if err := l.in.pending; err != nil {
		l.spoiled = true
		return err
	}
	return nil
}

// run runs a piece whose tree shape changed first.
func (l *Live) run(ctx context.Context, p Piece, shape func(*syntax.File) error) (ran *Ran, err error) {
	in := l.in
	defer func() {
		switch x := recover().(type) {
		case nil:
		case runtime.Error:
			l.spoiled = true
			if strings.HasPrefix(x.Error(), "runtime error: makeslice") {
				err = in.tooMuchMemory(in.here())
				break
			}
			err = in.defect(x)
		default:
			l.spoiled = true
			err = in.defect(x)
		}
	}()
	file := p.File
	if file == "" {
		file = sessionFile
	}
	f, err := l.parse(file, p)
	if err == nil {
		err = shape(f)
	}
	if err != nil {
		return nil, err
	}
	ran = &Ran{Tape: &Tape{}}
	command := l.isCommand(f)
	isValue := len(f.Stmts) == 1 && keepValue(f)
	ran.Pure = isValue && !callsAnything(f)
	if ran.Calls, err = l.resolve(f); err != nil {
		return nil, err
	}
	prog, err := starlark.FileProgram(f, in.predeclared.Has)
	if err != nil {
		return nil, in.diagnose(err)
	}
	if p.File != "" {
		in.modules[clean(file)] = &module{loading: true}
		defer delete(in.modules, clean(file))
	}
	if err := l.init(ctx, prog, p, ran); err != nil {
		l.spoiled = true
		return nil, err
	}
	if v := l.globals[valueName]; isValue && v != nil && v != starlark.None && !command {
		ran.Value = v.String()
	}
	return ran, nil
}

// init runs a compiled piece.
func (l *Live) init(ctx context.Context, prog *starlark.Program, p Piece, ran *Ran) error {
	in := l.in
	in.startThread()
	in.pending, in.overrun, in.o.Args = nil, false, p.Args
	if p.Silent {
		in.thread.Print = func(*starlark.Thread, string) {}
	}
	l.ctx, l.tape, l.play, l.at = ctx, ran.Tape, false, 0
	if p.Tape != nil {
		l.tape, l.play = p.Tape, true
		ran.Tape = p.Tape
	}
	stop := context.AfterFunc(ctx, func() { in.thread.Cancel("canceled") })
	defer stop()
	defer in.watchMemory()()
	_, err := prog.Init(in.thread, in.predeclared)
	if err != nil {
		err = in.diagnose(err)
	}
	if err == nil && in.pending != nil {
		err = positioned(in.pending, in.here())
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	return err
}

// parse reads a piece as lines of its file.
func (l *Live) parse(file string, p Piece) (*syntax.File, error) {
	text, before, line := p.Text, "", max(p.Line, 1)
	if p.Indented {
		before = "if True:\n"
		line--
	}
	delete(l.in.columns, file)
	whole := []byte(text)
	if p.File == "" {
		if l.keep(p); !l.wide {
			whole = nil
		} else {
			whole = l.text
		}
	}
	if c := newColumns(whole); c != nil {
		l.in.columns[file] = c
	}
	m, err := maskFrom(file, []byte(before+text), line)
	if err != nil {
		return nil, err
	}
	f, err := liveDialect.Parse(file, syntax.FilePortion{Content: m.text, FirstLine: line, FirstCol: 1}, 0)
	if err != nil {
		return nil, l.in.syntaxErrors(err, m)
	}
	if p.Indented {
		if outer, ok := f.Stmts[0].(*syntax.IfStmt); ok && len(f.Stmts) == 1 && outer.False == nil {
			f.Stmts = outer.True
		} else {
			return nil, diag.Errorf(l.in.pos(syntax.Start(f.Stmts[len(f.Stmts)-1])), "syntax", "got a line that isn't indented like the ones before it")
		}
	}
	return f, lower(f, m, l.in.pos)
}

// keep remembers the session's text up to a piece, for the columns of its lines.
func (l *Live) keep(p Piece) {
	at := max(int(p.Line)-1, 0)
	if at < len(l.starts) { // a piece that failed is given again
		l.text = l.text[:l.starts[at]]
		l.starts = l.starts[:at]
	}
	for len(l.starts) < at {
		l.starts = append(l.starts, len(l.text))
		l.text = append(l.text, '\n')
	}
	for line := range strings.Lines(p.Text) {
		l.starts = append(l.starts, len(l.text))
		l.text = append(l.text, line...)
	}
	if n := len(l.text); n > 0 && l.text[n-1] != '\n' {
		l.text = append(l.text, '\n')
	}
	l.wide = l.wide || utf8.RuneCountInString(p.Text) < len(p.Text)
}

// keepValue makes a lone expression leave its value where it is found.
func keepValue(f *syntax.File) bool {
	x, ok := f.Stmts[0].(*syntax.ExprStmt)
	if !ok {
		return false
	}
	if c, ok := x.X.(*syntax.CallExpr); ok {
		if fn, ok := c.Fn.(*syntax.Ident); ok && fn.Name == openName {
			return false
		}
	}
	start := syntax.Start(x)
	f.Stmts[0] = &syntax.AssignStmt{OpPos: start, Op: syntax.EQ, LHS: &syntax.Ident{NamePos: start, Name: valueName}, RHS: x.X}
	return true
}

// isCommand reports whether f is a call of one of LiveOptions.Calls, and no more: what
// it has to say, it says itself.
func (l *Live) isCommand(f *syntax.File) bool {
	if len(f.Stmts) != 1 {
		return false
	}
	x, ok := f.Stmts[0].(*syntax.ExprStmt)
	if !ok {
		return false
	}
	c, ok := x.X.(*syntax.CallExpr)
	if !ok {
		return false
	}
	fn, ok := c.Fn.(*syntax.Ident)
	return ok && slices.Contains(l.o.Calls, fn.Name) && !l.globals.Has(fn.Name)
}

// callsAnything reports whether running f calls a function. A comprehension runs
// through values of any kind, programs too.
func callsAnything(f *syntax.File) bool {
	found := false
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CallExpr, *syntax.Comprehension:
			found = true
		}
		return !found
	})
	return found
}

// host makes the host's answers part of the tape.
func (l *Live) host(h Host) Host {
	out := h
	if h.Check != nil {
		out.Check = func(d *Program) (bool, error) {
			return l.ask(func() (bool, error) { return h.Check(d) })
		}
	}
	if h.Show != nil {
		out.Show = func(d *Program, what string) error {
			_, err := l.ask(func() (bool, error) { return true, h.Show(d, what) })
			return err
		}
	}
	if h.Run != nil {
		out.Run = func(d *Program, o RunOptions) (bool, error) {
			return l.ask(func() (bool, error) { return h.Run(d, o) })
		}
	}
	return out
}

// ask gives the next answer of the tape, or asks and records it.
func (l *Live) ask(question func() (bool, error)) (bool, error) {
	if l.play && l.at < len(l.tape.answers) {
		l.at++
		return l.tape.answers[l.at-1], nil
	}
	ok, err := question()
	if err == nil && !l.play {
		l.tape.answers = append(l.tape.answers, ok)
	}
	return ok, err
}

// call carries out one of LiveOptions.Calls.
func (l *Live) call(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var list []string
	for _, a := range args {
		list = append(list, liveArg(a))
	}
	for _, kw := range kwargs {
		if kw[1] != starlark.None {
			list = append(list, "--"+strings.ReplaceAll(string(kw[0].(starlark.String)), "_", "-"), liveArg(kw[1]))
		}
	}
	pos := l.in.pos(t.CallFrame(1).Pos)
	ok, err := l.ask(func() (bool, error) { return l.o.Call(l.ctx, pos, b.Name(), list) })
	if err != nil {
		return nil, err
	}
	return starlark.Bool(ok), nil
}

// liveArg spells an argument; a function and a module are called by their names.
func liveArg(v starlark.Value) string {
	switch f := v.(type) {
	case starlark.Callable:
		return f.Name()
	case *starlarkstruct.Module:
		return f.Name
	}
	return spelled(v)
}

// session is the value whose fields are the globals.
type session struct{ l *Live }

var _ starlark.HasSetField = (*session)(nil)

func (s *session) String() string        { return sessionName }
func (s *session) Type() string          { return "session" }
func (s *session) Freeze()               {}
func (s *session) Truth() starlark.Bool  { return true }
func (s *session) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: session") }
func (s *session) AttrNames() []string   { return s.l.globals.Keys() }

func (s *session) Attr(name string) (starlark.Value, error) {
	if v := s.l.globals[name]; v != nil {
		return v, nil
	}
	m := diag.Errorf(diag.Pos{}, "undefined-name", "undefined: %s", name)
	if near := Nearest(name, s.l.Names()); near != "" {
		m.Suggest("did you mean %s?", near)
	}
	return nil, m
}

func (s *session) SetField(name string, v starlark.Value) error {
	s.l.globals[name] = v
	return nil
}

// Names are those that a line can use, sorted.
func (l *Live) Names() []string {
	names := append(l.in.names(), l.globals.Keys()...)
	names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "<") || n == valueName })
	slices.Sort(names)
	return slices.Compact(names)
}
