package starlib

import (
	"cmp"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// ref is a reference to chunks as a script holds it. reduce replaces the
// trace.Ref in it, so that the object a script reduced into stays the newest.
type ref struct {
	r trace.Ref
	p *program
}

var (
	_ starlark.HasAttrs   = (*ref)(nil)
	_ starlark.Comparable = (*ref)(nil)
)

// String is the call of chunk that gives the same reference.
func (r *ref) String() string {
	size := ""
	if r.r.Count != 1 {
		size = fmt.Sprintf(", %d", r.r.Count)
	}
	return fmt.Sprintf("chunk(%d, %s, %d%s)", r.r.Rank, r.p.bufferValue(r.r.Buf), r.r.Index, size)
}

func (r *ref) Type() string         { return "ref" }
func (r *ref) Freeze()              {}
func (r *ref) Truth() starlark.Bool { return true }

// Hash depends on the place alone: reduce changes nothing in it.
func (r *ref) Hash() (uint32, error) {
	h := uint32(2166136261)
	for _, x := range [...]int32{int32(r.r.Rank), int32(r.r.Buf), r.r.Index, r.r.Count} {
		h = (h ^ uint32(x)) * 16777619
	}
	return h, nil
}

// CompareSameType compares places: two references are equal when they refer to
// the same chunks of one program under the same names.
func (r *ref) CompareSameType(op syntax.Token, y starlark.Value, _ int) (bool, error) {
	o := y.(*ref)
	same := r.p == o.p && r.r.Rank == o.r.Rank && r.r.Buf == o.r.Buf && r.r.Index == o.r.Index && r.r.Count == o.r.Count
	switch op {
	case syntax.EQL:
		return same, nil
	case syntax.NEQ:
		return !same, nil
	}
	return false, fmt.Errorf("references have no order: %s has no meaning", op)
}

// Attr finds a field or a method. copy and reduce are pointer conversions, for
// speed; the other methods are bound when asked for.
func (r *ref) Attr(name string) (starlark.Value, error) {
	switch name {
	case "copy":
		return (*copyMethod)(r), nil
	case "reduce":
		return (*reduceMethod)(r), nil
	case "rank":
		return starlark.MakeInt(int(r.r.Rank)), nil
	case "buffer":
		return r.p.bufferValue(r.r.Buf), nil
	case "index":
		return starlark.MakeInt(int(r.r.Index)), nil
	case "size":
		return starlark.MakeInt(int(r.r.Count)), nil
	}
	m := method(r.p.in, r, refMethods, name)
	if fe := r.p.in.o.Frontend; fe != nil && m == nil && fe.Gone != nil {
		return nil, fe.Gone(name)
	}
	return m, nil
}

var refFields = []string{"rank", "buffer", "index", "size", "copy", "reduce"}

func (r *ref) AttrNames() []string { return attrNames(refMethods, refFields) }

// method is the method of that name, bound to its receiver, or nil.
func method(in *interp, recv starlark.Value, table []*signature, name string) starlark.Value {
	for _, s := range table {
		if s.name == name {
			return &builtin{in: in, sig: s, recv: recv}
		}
	}
	return nil
}

func attrNames(table []*signature, fields []string) []string {
	names := append([]string(nil), fields...)
	for _, s := range table {
		names = append(names, s.name)
	}
	return names
}

// use checks that r belongs to the program that is open.
func (r *ref) use(call string) error {
	if cur := r.p.in.cur; cur != r.p {
		return r.p.notOpen(call)
	}
	return nil
}

// copyMethod is ref.copy of a reference: the same pointer under another type, so
// that asking for the method allocates nothing.
type copyMethod ref

var _ starlark.Callable = (*copyMethod)(nil)

func (m *copyMethod) Name() string          { return "copy" }
func (m *copyMethod) String() string        { return "<built-in method copy of ref>" }
func (m *copyMethod) Type() string          { return "builtin_function_or_method" }
func (m *copyMethod) Freeze()               {}
func (m *copyMethod) Truth() starlark.Bool  { return true }
func (m *copyMethod) Hash() (uint32, error) { return (*ref)(m).Hash() }

// CallInternal traces dst := r.
func (m *copyMethod) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	r := (*ref)(m)
	var v values
	if err := copySig.bind(&v, args, kwargs); err != nil {
		return nil, err
	}
	if err := r.use("copy"); err != nil {
		return nil, err
	}
	buf := ir.BufferID(ir.None)
	if v.given(1) {
		var err error
		if buf, err = r.p.buffer(copySig, v[1]); err != nil {
			return nil, err
		}
	}
	index := int32(ir.None)
	if v.given(2) {
		if index = v.int32(2, 0); index < 0 && !(index == ir.None && r.p.in.o.Frontend != nil) {
			return nil, copySig.errorf("negative-index", "index: got %d, want 0 or more", index).
				Suggest("leave the index out for the default")
		}
	}
	h := trace.Hints{SendTB: v.int32(3, ir.None), RecvTB: v.int32(4, ir.None), Chan: v.int32(5, ir.None)}
	dst := ir.Rank(v.int32(0, 0))
	if r.p.in.o.Frontend != nil && r.p.hasRank(dst) {
		var err error
		if buf, index, err = r.p.target(r, dst, buf, index); err != nil {
			return nil, err
		}
		if dst == r.r.Rank && buf == r.r.Buf && index == r.r.Index {
			return r.p.copyOntoItself(r, t), nil
		}
	}
	got, err := r.p.b.Copy(r.r, dst, buf, index, h, r.p.pos(t))
	if err != nil {
		return nil, err
	}
	return &ref{got, r.p}, nil
}

// reduceMethod is ref.reduce of a reference, see copyMethod.
type reduceMethod ref

var _ starlark.Callable = (*reduceMethod)(nil)

func (m *reduceMethod) Name() string          { return "reduce" }
func (m *reduceMethod) String() string        { return "<built-in method reduce of ref>" }
func (m *reduceMethod) Type() string          { return "builtin_function_or_method" }
func (m *reduceMethod) Freeze()               {}
func (m *reduceMethod) Truth() starlark.Bool  { return true }
func (m *reduceMethod) Hash() (uint32, error) { return (*ref)(m).Hash() }

// CallInternal traces r += other and makes r the newest reference to the sum.
func (m *reduceMethod) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	r := (*ref)(m)
	var v values
	if err := reduceSig.bind(&v, args, kwargs); err != nil {
		if fe := r.p.in.o.Frontend; fe != nil && fe.Gone != nil && len(args) > 0 && args[0].Type() == "int" {
			return nil, cmp.Or(fe.Gone("reduce"), err)
		}
		return nil, err
	}
	other := v[0].(*ref)
	if err := r.use("reduce"); err != nil {
		return nil, err
	}
	if err := other.use("reduce"); err != nil {
		return nil, err
	}
	h := trace.Hints{SendTB: v.int32(1, ir.None), RecvTB: v.int32(2, ir.None), Chan: v.int32(3, ir.None)}
	got, err := r.p.b.Reduce(r.r, other.r, h, r.p.pos(t))
	if err != nil {
		return nil, err
	}
	r.r = got
	return r, nil
}

// chunkFunc is chunk: a type of its own, for speed.
type chunkFunc struct{ in *interp }

var _ starlark.Callable = (*chunkFunc)(nil)

func (f *chunkFunc) Name() string          { return "chunk" }
func (f *chunkFunc) String() string        { return "<built-in function chunk>" }
func (f *chunkFunc) Type() string          { return "builtin_function_or_method" }
func (f *chunkFunc) Freeze()               {}
func (f *chunkFunc) Truth() starlark.Bool  { return true }
func (f *chunkFunc) Hash() (uint32, error) { return starlark.String("chunk").Hash() }

// CallInternal refers to chunks of the open program.
func (f *chunkFunc) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v values
	if err := chunkSig.bind(&v, args, kwargs); err != nil {
		return nil, err
	}
	p, err := f.in.open("chunk")
	if err != nil {
		return nil, err
	}
	buf, err := p.buffer(chunkSig, v[1])
	if err != nil {
		return nil, err
	}
	if f.in.o.Frontend != nil {
		return f.chunkOrNone(p, &v, buf, p.pos(t))
	}
	r, err := p.b.Chunk(ir.Rank(v.int32(0, 0)), buf, v.int32(2, 0), v.int32(3, 1), p.pos(t))
	if err != nil {
		return nil, inWords(err, "chunk: count:", "chunk: size:", "a count of ", "a size of ")
	}
	return &ref{r, p}, nil
}
