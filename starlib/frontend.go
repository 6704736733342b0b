package starlib

import (
	"errors"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Frontend is what another surface of the language changes. With one, locations
// are named as msccl-tools names them: a reference has the name that its memory
// is known by in place, chunk() of a place that holds nothing is None, and so is
// a copy onto itself.
type Frontend struct {
	// Parse reads a file. Errors are *diag.Message or diag.List.
	Parse func(file string, text []byte) (*syntax.File, error)
	// Names makes the names that every file sees, in place of the language's own.
	Names func(*Env) starlark.StringDict
	// Buffer tells what v names: ir.Input, ir.Output, or ir.FirstScratch for the
	// scratch buffer of that name.
	Buffer func(v starlark.Value) (ir.BufferID, string, error)
	// InOut are the values that name input and output.
	InOut [2]starlark.Value
	// ProgramAttr finds further fields of a program; nil for none.
	ProgramAttr func(t *Trace, name string) starlark.Value
	// Gone explains a method of references that is no more, or that was called in a
	// form that is no more; nil leaves the language's own error.
	Gone func(method string) error
	// Advice puts advice into the words of the surface; nil leaves it.
	Advice func(string) string
	// Ended reports whether the script ended itself, well, by failing a call.
	Ended func() bool
	// Finish is called when a file has ended without an error.
	Finish func() error
}

// Env is one run of a script, as a front end sees it.
type Env struct {
	in    *interp
	names starlark.StringDict // the language's own, once they were asked for
}

// Builtin is the language's own function or module of that name.
func (e *Env) Builtin(name string) starlark.Value {
	if e.names == nil {
		e.names = predeclare(e.in)
	}
	return e.names[name]
}

// EnterWith is the function that a with statement, lowered to a loop, calls with
// its expression.
func (e *Env) EnterWith() starlark.Value { return e.Builtin(withName) }

// Thread runs the script.
func (e *Env) Thread() *starlark.Thread { return e.in.thread }

// Here is where the script is executing.
func (e *Env) Here() diag.Pos { return e.in.here() }

// Pos converts a position of the syntax tree.
func (e *Env) Pos(p syntax.Position) diag.Pos { return e.in.pos(p) }

// Print prints as the script's print does.
func (e *Env) Print(pos diag.Pos, text string) {
	if e.in.o.Print != nil {
		e.in.o.Print(pos, text)
	}
}

// Declare records a parameter of the script, in the order of calls.
func (e *Env) Declare(p Param) { e.in.script.Params = append(e.in.script.Params, p) }

// Declared are the parameters recorded so far, to be changed in place.
func (e *Env) Declared() []Param { return e.in.script.Params }

// Open is the open program, or nil.
func (e *Env) Open() *Trace {
	if e.in.cur == nil {
		return nil
	}
	return &Trace{e.in.cur}
}

// OpenOneSided is the open one-sided program as a script holds it, or nil.
func (e *Env) OpenOneSided() starlark.Value {
	if e.in.one == nil {
		return nil
	}
	return e.in.one
}

// Diagnose turns an error of calling one of the script's functions into messages,
// as those of the running script are; pos is for those that have no position.
func (e *Env) Diagnose(err error, pos diag.Pos) error { return positioned(e.in.diagnose(err), pos) }

// Trace is one program and what it has traced so far.
type Trace struct{ p *program }

// Same reports whether both are the same program.
func (t *Trace) Same(o *Trace) bool { return o != nil && t.p == o.p }

// Name is the program's.
func (t *Trace) Name() string { return t.p.spec.Name }

// Ranks is the number of ranks.
func (t *Trace) Ranks() int32 { return t.p.coll.c.Ranks }

// Opened is where the program's with stands.
func (t *Trace) Opened() diag.Pos { return t.p.opened }

// Value is the program as a script holds it.
func (t *Trace) Value() starlark.Value { return t.p }

// Ops is the number of operations traced so far.
func (t *Trace) Ops() int { return t.p.traced() }

// WantCheck records that the script called Check().
func (t *Trace) WantCheck() { t.p.wantCheck = true }

// Buffers are the values that name the program's buffers, input and output first.
func (t *Trace) Buffers() []starlark.Value { return t.p.values }

// Len is how many chunks the buffer that v names has on a rank, and whether the
// program has that buffer.
func (t *Trace) Len(rank ir.Rank, v starlark.Value) (int32, bool) {
	id, ok := t.p.lookup(v)
	if !ok || t.p.b == nil {
		return 0, false
	}
	return t.p.b.LenScratch(id, rank), true
}

// Contributions is what a place holds now: the inputs that are summed there, nil
// for nothing.
func (t *Trace) Contributions(rank ir.Rank, v starlark.Value, index int32) []ir.Contribution {
	id, ok := t.p.lookup(v)
	if !ok || t.p.b == nil {
		return nil
	}
	return t.p.b.Contributions(rank, id, index)
}

// CollectiveHooks are what a front end knows of a collective of its own.
type CollectiveHooks struct {
	// Self is the collective as the script holds it.
	Self starlark.Value
	// Place renames a location, as get_buffer_index does; nil keeps names.
	Place func(rank ir.Rank, buf starlark.Value, index int32) (starlark.Value, int32, error)
	// Origin is what the script calls an input chunk.
	Origin func(ir.Contribution) Origin
	// Finish judges the traced program when its file has ended, and gives the
	// collective that the compiled program has to compute.
	Finish func(t *Trace) (*ir.Collective, error)
}

// Origin is msccl-tools' name of a chunk: where it started and where it is
// wanted, -1 for no particular place.
type Origin struct {
	Rank, Index       int32
	DstRank, DstIndex int32
}

// NewCollective makes a collective that MSCCLProgram takes.
func NewCollective(c *ir.Collective, h *CollectiveHooks) starlark.Value {
	return &collective{c: c, hooks: h}
}

// IsPlan reports whether v is what JSON() returns: a plan, whose text the tool
// writes once the script has ended.
func IsPlan(v starlark.Value) bool {
	_, ok := v.(planText)
	return ok
}

// CollectiveOf is the collective that v is, or nil.
func CollectiveOf(v starlark.Value) *ir.Collective {
	if x, ok := v.(*collective); ok {
		return x.c
	}
	return nil
}

// CollectiveHooksOf are the hooks of the program's collective, nil for one of
// the language's own.
func (t *Trace) CollectiveHooksOf() *CollectiveHooks { return t.p.coll.hooks }

// place gives the name under which msccl-tools keeps a location.
func (p *program) place(rank ir.Rank, buf ir.BufferID, index int32) (ir.BufferID, int32, error) {
	if h := p.coll.hooks; h != nil && h.Place != nil {
		v, i, err := h.Place(rank, p.bufferValue(buf), index)
		if err != nil {
			return 0, 0, err
		}
		id, err := p.buffer(chunkSig, v)
		return id, i, err
	}
	if p.coll.c.Kind == ir.AllToAll || p.coll.hooks != nil || rank < 0 || int32(rank) >= p.coll.c.Ranks {
		return buf, index, nil
	}
	buf, index = p.coll.c.Canon(rank, buf, index)
	return buf, index, nil
}

// target is where a copy goes. msccl-tools asks the collective twice for the name
// of the place, first on behalf of the source.
func (p *program) target(src *ref, dst ir.Rank, buf ir.BufferID, index int32) (ir.BufferID, int32, error) {
	switch {
	case buf == ir.None && index == ir.None:
		buf, index = src.r.Buf, src.r.Index
	case buf >= ir.FirstScratch && index == ir.None:
		index = p.b.LenScratch(buf, dst)
	case buf == ir.None || index == ir.None:
		return buf, index, nil // an error that the trace explains
	}
	buf, index, err := p.place(src.r.Rank, buf, index)
	if err != nil {
		return 0, 0, err
	}
	return p.place(dst, buf, index)
}

// chunkOrNone is chunk() of msccl-tools: None for a place that holds nothing.
func (f *chunkFunc) chunkOrNone(p *program, v *values, buf ir.BufferID, pos ir.PosID) (starlark.Value, error) {
	rank, index := ir.Rank(v.int32(0, 0)), v.int32(2, 0)
	if buf >= ir.FirstScratch && index >= 0 && index >= p.b.LenScratch(buf, rank) && p.hasRank(rank) {
		return nil, chunkSig.errorf("out-of-range", "rank %d %s ends at %d, got index %d", rank, p.bufferValue(buf),
			p.b.LenScratch(buf, rank), index)
	}
	buf, index, err := p.place(rank, buf, index)
	if err != nil {
		return nil, err
	}
	r, err := p.b.Chunk(rank, buf, index, v.int32(3, 1), pos)
	if err == nil {
		return &ref{r, p}, nil
	}
	var m *diag.Message
	if errors.As(err, &m) && m.Code == "empty-location" && p.b.Contributions(rank, buf, index) == nil {
		f.in.none = m
		return starlark.None, nil
	}
	return nil, inWords(err, "chunk: count:", "chunk: size:", "a count of ", "a size of ")
}

func (p *program) hasRank(r ir.Rank) bool { return r >= 0 && int32(r) < p.coll.c.Ranks }

// translate puts an error into the words of a front end, and says where a None
// came from that a script took for a reference.
func (in *interp) translate(m *diag.Message) {
	if fe := in.o.Frontend; fe != nil && fe.Advice != nil {
		m.Suggestion = fe.Advice(m.Suggestion)
	}
	if in.none == nil || !strings.Contains(m.Text, "NoneType") {
		return
	}
	m.Note(in.none.Pos, "None came from here: %s", in.none.Text)
}

// copyOntoItself is None, as in msccl-tools, and is remembered as such.
func (p *program) copyOntoItself(r *ref, t *starlark.Thread) starlark.Value {
	p.in.none = diag.Errorf(p.in.pos(t.CallFrame(1).Pos), "self-copy", "copy: %s is copied onto itself", r)
	return starlark.None
}

// lookup finds the buffer that v names, without making one.
func (p *program) lookup(v starlark.Value) (ir.BufferID, bool) {
	for id, x := range p.values {
		if same, err := starlark.Equal(x, v); err == nil && same {
			return ir.BufferID(id), true
		}
	}
	return 0, false
}

// traced is the number of operations so far, also of a program that has ended.
func (p *program) traced() int {
	if p.dag != nil {
		return len(p.dag.Ops)
	}
	if p.b == nil {
		return 0
	}
	return p.b.Ops()
}

// finish lets the collectives of a front end judge the programs of a file that
// has ended without an error.
func (in *interp) finish() error {
	for _, p := range in.finished {
		h := p.coll.hooks
		if h == nil || h.Finish == nil {
			continue
		}
		c, err := h.Finish(&Trace{p})
		if err != nil {
			return positioned(err, p.opened)
		}
		p.dag.Coll = c
	}
	in.finished = nil
	if fe := in.o.Frontend; fe != nil && fe.Finish != nil {
		return fe.Finish()
	}
	return nil
}
