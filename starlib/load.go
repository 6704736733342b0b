package starlib

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// LibraryPrefix begins the names of the library's scripts, in load() and as
// Options.File.
const LibraryPrefix = "@algorithms/"

// DefaultMaxSteps is the number of Starlark instructions that a script may run
// when Options sets no limit: some minutes of work.
const DefaultMaxSteps = 2_000_000_000

// Options say which script is run, and with what.
type Options struct {
	File     string                            // the script; positions show it, load() is relative to it
	Source   []byte                            // its text; nil reads File
	Args     map[string]string                 // values for param(name, ...), as on a command line
	Library  fs.FS                             // what "@algorithms/NAME.star" is read from; nil has no library
	ReadFile func(name string) ([]byte, error) // reads scripts; nil is os.ReadFile
	MaxSteps uint64                            // Starlark instructions; 0 is DefaultMaxSteps
	// MaxMemory is the live memory of the process, in bytes, at which the script is
	// stopped; 0 is DefaultMaxMemory.
	MaxMemory uint64
	Print     func(pos diag.Pos, text string) // receives print(...); nil discards it
	Host      Host
	Frontend  *Frontend // of another surface than Starlark; nil for Starlark
}

// Host is what a script may ask of the program around it. A nil function is
// answered with an error that says so.
type Host struct {
	// Topology describes a cluster by name, for topology(name, nodes).
	Topology func(name string, nodes int32) (*ir.Topology, error)
	// Check compiles and judges what has been traced, for Check().
	Check func(*Program) (bool, error)
	// Show draws or prints what has been traced, for show(what).
	Show func(p *Program, what string) error
	// Run compiles and executes what has been traced, for run(...), and reports
	// whether the result was right.
	Run func(*Program, RunOptions) (bool, error)
	// Algorithm takes entries of a table of algorithms, for algorithm(...).
	Algorithm func(Algorithm) error
}

// RunOptions are the arguments of run(...) in a script. Zero values were not
// given.
type RunOptions struct {
	Size       string // total, such as "64MiB"
	DType, Op  string
	Iterations int32
}

// Script is what running a script gave.
type Script struct {
	Doc      string    // the module's docstring, "" without one
	Params   []Param   // in the order of declaration
	Programs []Program // in the order they ended; empty when the script failed
}

// Program is one traced program.
type Program struct {
	Name      string
	DAG       *ir.ChunkDAG // nil of a one-sided program
	One       *ir.OneTrace // nil of any other
	WantXML   bool         // the script called XML()
	WantPlan  bool         // the script called JSON()
	WantCheck bool         // the script called Check()
	Pos       diag.Pos     // of the with that traced it

	traced *program
}

// Spec is the program's header, whichever level it is of.
func (p *Program) Spec() *ir.Spec {
	if p.One != nil {
		return p.One.Spec
	}
	return p.DAG.Spec
}

// Ops is the number of operations that were traced.
func (p *Program) Ops() int {
	if p.One != nil {
		return len(p.One.Ops)
	}
	return len(p.DAG.Ops)
}

// Param is one declared parameter, for flags and help.
type Param struct {
	Name, Help string
	Type       string   // int, float, bool or string
	Default    string   // as a command line would spell it
	Choices    []string // likewise; empty if anything goes
	Value      string   // likewise: what the script got
	Given      bool     // the command line had it
	Pos        diag.Pos // of the declaration

	// Of a front end's parameters only:
	Positional bool     // given by its place, not as a flag
	Required   bool     // must be given
	Spellings  []string // the flags, dashes included, if not --Name alone
}

// interp is one run of a script with everything it loads.
type interp struct {
	o           Options
	thread      *starlark.Thread
	predeclared starlark.StringDict
	script      *Script

	cur     *program        // the open program, or nil
	one     *oneProgram     // the open one-sided program, or nil
	plans   map[string]bool // what printing the value of JSON() would print
	scopes  []*onceIterator // entered and not left, outermost first
	loading int             // depth of load()
	modules map[string]*module
	params  map[string]*declared
	columns map[string]*columns // of files that are not plain ASCII
	spare   *call               // the memory of a call that has ended, or nil

	finished []*program    // of a front end, to be judged when their file has ended
	none     *diag.Message // why the latest chunk() was None

	pending  error       // from where an error could not be returned
	overrun  bool        // the step limit was reached
	overfull atomic.Bool // the memory limit was reached
}

// module is a loaded file.
type module struct {
	loading bool
	globals starlark.StringDict
	err     error
}

// dialect is Starlark with what a script needs to read like the paper's Python.
var dialect = syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// Load runs a script. The *Script is never nil and holds what was learned before
// an error, above all the parameters. Errors are diag.List or *diag.Message,
// except that a canceled ctx gives an error wrapping the context's.
func Load(ctx context.Context, o Options) (script *Script, err error) {
	in := &interp{o: o, script: &Script{}, modules: map[string]*module{}, params: map[string]*declared{},
		columns: map[string]*columns{}}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error:
			if strings.HasPrefix(p.Error(), "runtime error: makeslice") {
				err = in.tooMuchMemory(in.here())
				break
			}
			err = in.defect(p)
		default:
			err = in.defect(p)
		}
		if err != nil {
			in.script.Programs = nil
		}
		script = in.script
	}()
	if o.Frontend != nil {
		in.predeclared = o.Frontend.Names(&Env{in: in})
	} else {
		in.predeclared = predeclare(in)
	}
	in.startThread()
	stop := context.AfterFunc(ctx, func() { in.thread.Cancel("canceled") })
	defer stop()
	defer in.watchMemory()()

	text := o.Source
	if text == nil {
		if text, err = in.read(o.File); err != nil {
			return nil, diag.Errorf(diag.Pos{File: o.File}, "load", "can't read the script: %s", reason(err))
		}
	}
	in.modules[clean(o.File)] = &module{loading: true}
	_, err = in.exec(o.File, text)
	if err == nil && in.pending != nil { // a failed exit was the last thing that happened
		err = positioned(in.pending, diag.Pos{File: o.File})
	}
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("running %s: %w", o.File, context.Cause(ctx))
	}
	return nil, err
}

// defect is what is said of a panic: it is never the user's fault.
func (in *interp) defect(p any) error {
	return diag.Errorf(in.here(), "internal", "internal error: %v", p).
		Suggest("this is a bug of the language front end; please report it with the script")
}

func (in *interp) tooMuchMemory(pos diag.Pos) *diag.Message {
	return diag.Errorf(pos, "memory-limit", "the script asks for more memory than it may have").
		Suggest("a list, a string or a number grows without end here")
}

func (in *interp) startThread() {
	in.thread = &starlark.Thread{
		Name: in.o.File,
		Load: in.load,
		Print: func(t *starlark.Thread, text string) {
			if in.o.Print != nil && !in.plans[text] {
				in.o.Print(in.pos(t.CallFrame(1).Pos), text)
			}
		},
		OnMaxSteps: func(t *starlark.Thread) {
			in.overrun = true
			t.Cancel("too many steps")
		},
	}
	if in.o.MaxSteps == 0 {
		in.o.MaxSteps = DefaultMaxSteps
	}
	in.thread.SetMaxExecutionSteps(in.o.MaxSteps)
}

// withoutMark is a text without the mark that some editors begin UTF-8 with.
func withoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }

// exec runs one file to its end.
func (in *interp) exec(name string, text []byte) (starlark.StringDict, error) {
	text = withoutMark(text)
	if c := newColumns(text); c != nil {
		in.columns[name] = c
	}
	f, err := in.parse(name, text)
	if err != nil {
		return nil, err
	}
	prog, err := starlark.FileProgram(f, in.predeclared.Has)
	if err != nil {
		return nil, in.diagnose(err)
	}
	globals, err := prog.Init(in.thread, in.predeclared)
	if fe := in.o.Frontend; err != nil && !(fe != nil && fe.Ended != nil && fe.Ended()) {
		globals.Freeze()
		return nil, in.diagnose(err)
	}
	err = in.finish()
	globals.Freeze()
	return globals, err
}

// parse reads a file into a tree that Starlark's resolver takes.
func (in *interp) parse(name string, text []byte) (*syntax.File, error) {
	if fe := in.o.Frontend; fe != nil {
		f, err := fe.Parse(name, text)
		if err != nil {
			return nil, err
		}
		f.Options = &dialect
		in.script.Doc = docstring(f)
		return f, nil
	}
	m, err := mask(name, text)
	if err != nil {
		return nil, err
	}
	f, err := dialect.Parse(name, m.text, 0)
	if err != nil {
		return nil, in.syntaxErrors(err, m)
	}
	if in.loading == 0 {
		in.script.Doc = docstring(f)
	}
	return f, lower(f, m, in.pos)
}

// load answers load() in the same thread, so that limits and call stacks go on.
func (in *interp) load(t *starlark.Thread, name string) (starlark.StringDict, error) {
	file, err := in.resolve(t.CallFrame(0).Pos.Filename(), name)
	if err != nil {
		return nil, err
	}
	if m, ok := in.modules[file]; ok {
		if m.loading {
			return nil, diag.Errorf(diag.Pos{}, "load-cycle", "load: %s is being loaded already", name).
				Suggest("%s", in.cycle(file))
		}
		return m.globals, m.err
	}
	if open := in.openName(); open != "" {
		return nil, diag.Errorf(diag.Pos{}, "load", "load: %s is loaded inside program %s", name, open).
			Suggest("load before the with block")
	}
	text, err := in.read(file)
	if err != nil {
		return nil, diag.Errorf(diag.Pos{}, "load", "load: can't read %s: %s", file, reason(err))
	}
	m := &module{loading: true}
	in.modules[file] = m
	in.loading++
	m.globals, m.err = in.exec(file, text)
	in.loading--
	m.loading = false
	if m.err != nil {
		m.err = &loadError{m.err}
	}
	return m.globals, m.err
}

// loadError carries the finished diagnosis of a loaded file through the
// interpreter, which wraps it once more for every file on the way out.
type loadError struct{ err error }

func (e *loadError) Error() string { return e.err.Error() }
func (e *loadError) Unwrap() error { return e.err }

// resolve finds the file that from means by name.
func (in *interp) resolve(from, name string) (string, error) {
	asked := name
	bad := func(why string) (string, error) {
		return "", diag.Errorf(diag.Pos{}, "load", "load: %q %s", asked, why).
			Suggest("load(%q, ...) reads the library, load(\"other.star\", ...) a file beside the script", LibraryPrefix+"NAME.star")
	}
	switch {
	case name == "":
		return bad("names no file")
	case strings.HasPrefix(name, LibraryPrefix):
		name = path.Clean(name)
	case strings.HasPrefix(name, "@"):
		return bad("is in no known place")
	case strings.HasPrefix(from, LibraryPrefix):
		name = path.Join(path.Dir(from), name)
	case filepath.IsAbs(name):
		return filepath.Clean(name), nil
	default:
		return filepath.Join(filepath.Dir(from), name), nil
	}
	if !strings.HasPrefix(name, LibraryPrefix) {
		return bad("leaves the library")
	}
	return name, nil
}

func (in *interp) read(file string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(file, LibraryPrefix); ok {
		if in.o.Library == nil {
			return nil, errors.New("there is no library here")
		}
		return fs.ReadFile(in.o.Library, rest)
	}
	if in.o.ReadFile != nil {
		return in.o.ReadFile(file)
	}
	return os.ReadFile(file)
}

// cycle describes the chain of files being loaded that leads back to file.
func (in *interp) cycle(file string) string {
	var chain []string
	for _, fr := range in.thread.CallStack() {
		if f := fr.Pos.Filename(); fr.Name == "<toplevel>" && (len(chain) > 0 || f == file) {
			chain = append(chain, f)
		}
	}
	return strings.Join(append(chain, file), " loads ")
}

// docstring is the string that a file begins with.
func docstring(f *syntax.File) string {
	if len(f.Stmts) == 0 {
		return ""
	}
	if s, ok := f.Stmts[0].(*syntax.ExprStmt); ok {
		if l, ok := s.X.(*syntax.Literal); ok && l.Token == syntax.STRING {
			return strings.TrimSpace(l.Value.(string))
		}
	}
	return ""
}

// reason is an error without the operation and the path that it happened to,
// which the message around it says.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// clean is the one name under which load() knows a file.
func clean(file string) string {
	if strings.HasPrefix(file, LibraryPrefix) {
		return path.Clean(file)
	}
	return filepath.Clean(file)
}
