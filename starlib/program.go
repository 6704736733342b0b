package starlib

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// scope is a value that a with statement enters and leaves.
type scope interface {
	starlark.Iterable
	enter(pos diag.Pos) error
	exit() error
}

// program is what MSCCLProgram returns. It is traced once, while it is open.
type program struct {
	in      *interp
	spec    ir.Spec
	topo    *topology
	coll    *collective
	created diag.Pos

	b         *trace.Builder // nil before the program is entered
	opened    diag.Pos
	wantXML   bool
	wantPlan  bool
	wantCheck bool
	dag       *ir.ChunkDAG // once it has ended

	buffers map[string]starlark.Value // scratch by the name that the Builder knows
	values  []starlark.Value          // what the script calls each buffer, by id
	recent  recentBuffer
}

// recentBuffer remembers the last string that named scratch: loops name the same
// one over and over.
type recentBuffer struct {
	name string
	id   ir.BufferID
}

var (
	_ scope             = (*program)(nil)
	_ starlark.HasAttrs = (*program)(nil)
)

func (p *program) String() string        { return fmt.Sprintf("MSCCLProgram(%q)", p.spec.Name) }
func (p *program) Type() string          { return "program" }
func (p *program) Freeze()               {}
func (p *program) Truth() starlark.Bool  { return true }
func (p *program) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: program") }

var programFields = []string{"name", "topo", "collective", "num_ranks", "instances", "protocol"}

func (p *program) AttrNames() []string { return programFields }

func (p *program) Attr(name string) (starlark.Value, error) {
	switch name {
	case "name":
		return starlark.String(p.spec.Name), nil
	case "topo":
		return p.topo, nil
	case "collective":
		if p.coll.hooks != nil {
			return p.coll.hooks.Self, nil
		}
		return p.coll, nil
	case "num_ranks":
		return starlark.MakeInt(int(p.spec.Coll.Ranks)), nil
	case "instances":
		return starlark.MakeInt(int(p.spec.Instances)), nil
	case "protocol":
		return starlark.String(p.spec.Protocol.String()), nil
	}
	if fe := p.in.o.Frontend; fe != nil && fe.ProgramAttr != nil {
		return fe.ProgramAttr(&Trace{p}, name), nil
	}
	return nil, nil
}

// Iterate enters the program, so that a plain for does what with does.
func (p *program) Iterate() starlark.Iterator { return p.in.iterate(p) }

func (p *program) enter(pos diag.Pos) error {
	if err := p.in.mayBegin("MSCCLProgram", p.spec.Name, p.b != nil, p.opened, pos); err != nil {
		return err
	}
	b, err := trace.New(p.spec)
	if err != nil {
		return positioned(err, p.created)
	}
	p.b, p.opened = b, pos
	p.buffers = map[string]starlark.Value{}
	p.values = []starlark.Value{starlark.String("input"), starlark.String("output")}
	p.recent.name = "input" // never names scratch
	if fe := p.in.o.Frontend; fe != nil {
		p.values = append([]starlark.Value(nil), fe.InOut[:]...)
	}
	p.in.cur = p
	return nil
}

// soFar is what has been traced so far, as a program that has ended would be.
func (p *program) soFar() (*Program, error) {
	d, err := p.b.Snapshot()
	if err != nil {
		return nil, err
	}
	return &Program{Name: p.spec.Name, DAG: d, WantXML: p.wantXML, WantPlan: p.wantPlan, WantCheck: p.wantCheck,
		Pos: p.opened, traced: p}, nil
}

func (p *program) exit() error {
	p.in.cur = nil
	dag, err := p.b.Finish()
	if err != nil {
		return positioned(err, p.opened)
	}
	p.dag = dag
	if p.in.o.Frontend != nil {
		p.in.finished = append(p.in.finished, p)
	}
	if p.in.loading == 0 {
		p.in.script.Programs = append(p.in.script.Programs, Program{Name: p.spec.Name, DAG: dag,
			WantXML: p.wantXML, WantPlan: p.wantPlan, WantCheck: p.wantCheck, Pos: p.opened, traced: p})
	}
	return nil
}

// pos is the position of the call that is being made, interned.
func (p *program) pos(t *starlark.Thread) ir.PosID { return p.b.Pos(p.in.pos(t.CallFrame(1).Pos)) }

// buffer finds the buffer that a script calls v: "input", "output", or scratch
// named by any other string or by a tuple.
func (p *program) buffer(s *signature, v starlark.Value) (ir.BufferID, error) {
	if fe := p.in.o.Frontend; fe != nil {
		id, name, err := fe.Buffer(v)
		if err != nil || id < ir.FirstScratch {
			return id, err
		}
		return p.scratch(s, name, v)
	}
	str, ok := v.(starlark.String)
	if !ok {
		if _, ok := v.(starlark.Tuple); !ok {
			return 0, s.mismatch(&s.params[s.index("buffer")], v)
		}
		return p.scratch(s, v.String(), v)
	}
	switch name := string(str); name {
	case "input":
		return ir.Input, nil
	case "output":
		return ir.Output, nil
	case p.recent.name:
		return p.recent.id, nil
	default:
		id, err := p.scratch(s, name, v)
		if err == nil {
			p.recent = recentBuffer{name, id}
		}
		return id, err
	}
}

// scratch finds or makes the scratch buffer whose name is written name. A string
// that reads like a tuple in use is refused: the program could not tell them
// apart once it is written down.
func (p *program) scratch(s *signature, name string, v starlark.Value) (ir.BufferID, error) {
	if name == "" {
		return 0, s.errorf("bad-argument", "buffer: got an empty string, want a name")
	}
	known, ok := p.buffers[name]
	if ok && known.Type() != v.Type() {
		return 0, s.errorf("bad-argument", "buffer: the %s %s and the %s of the same spelling can't both name scratch",
			v.Type(), v, known.Type())
	}
	id := p.b.Scratch(name)
	if !ok {
		p.buffers[name] = v
		p.values = append(p.values, v)
	}
	return id, nil
}

// bufferValue is what the script calls buffer id.
func (p *program) bufferValue(id ir.BufferID) starlark.Value {
	if int(id) < len(p.values) {
		return p.values[id]
	}
	return starlark.String("?")
}

// notOpen explains why p can't be added to.
func (p *program) notOpen(call string) error {
	if cur := p.in.cur; cur != nil {
		return diag.Errorf(diag.Pos{}, "foreign-reference", "%s: the reference belongs to program %q, not to %q",
			call, p.spec.Name, cur.spec.Name).
			Note(p.opened, "%q began here", p.spec.Name).
			Suggest("take it again with chunk(...)")
	}
	return diag.Errorf(diag.Pos{}, "program-ended", "%s: program %q, which the reference belongs to, has ended", call, p.spec.Name).
		Note(p.opened, "%q began here", p.spec.Name).
		Suggest("move the call into the with block")
}

// parallel is what parallelize(n) returns.
type parallel struct {
	in *interp
	n  int32
}

var _ scope = (*parallel)(nil)

func (p *parallel) String() string             { return fmt.Sprintf("parallelize(%d)", p.n) }
func (p *parallel) Type() string               { return "parallel" }
func (p *parallel) Freeze()                    {}
func (p *parallel) Truth() starlark.Bool       { return true }
func (p *parallel) Hash() (uint32, error)      { return uint32(p.n), nil }
func (p *parallel) Iterate() starlark.Iterator { return p.in.iterate(p) }

func (p *parallel) enter(pos diag.Pos) error {
	cur, err := p.in.open("parallelize")
	if err != nil {
		return positioned(err, pos)
	}
	return cur.b.Parallelize(p.n, cur.b.Pos(pos))
}

func (p *parallel) exit() error {
	p.in.cur.b.EndParallelize()
	return nil
}

// entered is a scope that with has entered: it yields the scope once, and the end
// of the iteration leaves it.
type entered struct{ it *onceIterator }

func (e *entered) String() string             { return "<with>" }
func (e *entered) Type() string               { return "with" }
func (e *entered) Freeze()                    {}
func (e *entered) Truth() starlark.Bool       { return true }
func (e *entered) Hash() (uint32, error)      { return 0, fmt.Errorf("unhashable type: with") }
func (e *entered) Iterate() starlark.Iterator { return e.it }

// onceIterator yields its scope once. The interpreter calls Done however the
// body ends: at its end, by return, or by an error.
type onceIterator struct {
	in   *interp
	s    scope // nil where entering failed
	gone bool
}

func (it *onceIterator) Next(p *starlark.Value) bool {
	if it.gone || it.s == nil {
		return false
	}
	it.gone = true
	*p = it.s
	return true
}

// Done leaves the scope, and before it those that were entered inside it:
// where several end at once the interpreter begins with the outermost.
func (it *onceIterator) Done() {
	at := slices.Index(it.in.scopes, it)
	if at < 0 {
		return
	}
	inner := slices.Clone(it.in.scopes[at:])
	it.in.scopes = it.in.scopes[:at]
	for _, x := range slices.Backward(inner) {
		it.in.fail(x.s.exit())
	}
}

// enter enters s at pos.
func (in *interp) enter(s scope, pos diag.Pos) (*onceIterator, error) {
	if err := s.enter(pos); err != nil {
		return nil, err
	}
	it := &onceIterator{in: in, s: s}
	in.scopes = append(in.scopes, it)
	return it, nil
}

// iterate enters s for a plain for. An iterator can't return an error, so a
// failure stops the thread before its next instruction.
func (in *interp) iterate(s scope) starlark.Iterator {
	it, err := in.enter(s, in.pos(in.thread.CallFrame(0).Pos))
	if err != nil {
		in.fail(err)
		return &onceIterator{in: in}
	}
	return it
}
