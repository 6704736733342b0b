package pyfront

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// class is a class: one that a script defines, or one of msccl-tools'.
type class struct {
	name   string
	base   *class // nil for object alone
	fields starlark.StringDict
	make   native // makes a value of a class that is not a script's; nil for instances
	is     func(starlark.Value) bool
	ids    *uint32 // of the objects of a script's classes
	final  string  // why no class can be based on it, "" for a general advice

	annotated []string    // fields with an annotation, in order
	data      *dataFields // of a dataclass
	members   []*instance // of an Enum, in order
	frozen    bool
}

var (
	_ starlark.HasSetField = (*class)(nil)
	_ starlark.Callable    = (*class)(nil)
)

func (c *class) Name() string          { return c.name }
func (c *class) String() string        { return "<class '" + c.name + "'>" }
func (c *class) Type() string          { return "type" }
func (c *class) Freeze()               { c.frozen = true }
func (c *class) Truth() starlark.Bool  { return true }
func (c *class) Hash() (uint32, error) { return starlark.String(c.name).Hash() }
func (c *class) AttrNames() []string   { return c.fields.Keys() }

// find looks a name up in the class and its bases.
func (c *class) find(name string) starlark.Value {
	for ; c != nil; c = c.base {
		if v, ok := c.fields[name]; ok {
			return v
		}
	}
	return nil
}

// within reports whether c is base or derived from it.
func (c *class) within(base *class) bool {
	for ; c != nil; c = c.base {
		if c == base {
			return true
		}
	}
	return base == objectClass
}

func (c *class) Attr(name string) (starlark.Value, error) {
	if name == "__name__" {
		return starlark.String(c.name), nil
	}
	if v := c.find(name); v != nil {
		return boundTo(c, v), nil
	}
	return nil, fmt.Errorf("class %s has no %s", c.name, name)
}

func (c *class) SetField(name string, v starlark.Value) error {
	if c.frozen || c.ids == nil || c.members != nil {
		return fmt.Errorf("can't set %s of class %s", name, c.name)
	}
	c.fields[name] = v
	return nil
}

// CallInternal makes an instance.
func (c *class) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if c.make != nil {
		return c.make(args, kwargs)
	}
	if c.isEnum() {
		return c.member(args, kwargs)
	}
	if c.ids == nil {
		return nil, fmt.Errorf("%s can't be made by itself; derive a class from it", c.name)
	}
	*c.ids++
	x := &instance{class: c, id: *c.ids, fields: starlark.StringDict{}}
	init := bind(x, c.find("__init__"))
	got, err := starlark.Call(t, init, args, kwargs)
	if err == nil && got != starlark.None {
		err = fmt.Errorf("%s.__init__ returned %s, want None", c.name, got.Type())
	}
	x.made = true
	return x, err
}

// instance is an object of a script's class.
type instance struct {
	class  *class
	id     uint32 // from 1, in the order of making
	fields starlark.StringDict
	made   bool // __init__ has returned
	frozen bool
}

var (
	_ starlark.HasSetField = (*instance)(nil)
	_ starlark.Comparable  = (*instance)(nil)
)

func (x *instance) String() string {
	switch {
	case x.class.data != nil:
		return x.shown()
	case x.class.isEnum():
		return fmt.Sprintf("<%s: %s>", x.memberName(), pyRepr(x.fields["value"]))
	}
	return fmt.Sprintf("<%s object %d>", x.class.name, x.id)
}
func (x *instance) Type() string         { return x.class.name }
func (x *instance) Truth() starlark.Bool { return true }

// Hash goes by the fields of a frozen dataclass, which never change.
func (x *instance) Hash() (uint32, error) {
	if d := x.class.data; d != nil && d.eq {
		if !d.frozen {
			return 0, fmt.Errorf("unhashable type: %s", x.class.name)
		}
		return x.values().Hash()
	}
	return x.id, nil
}
func (x *instance) Freeze() {
	if !x.frozen {
		x.frozen = true
		x.fields.Freeze()
	}
}

func (x *instance) AttrNames() []string {
	names := x.fields.Keys()
	for c := x.class; c != nil; c = c.base {
		names = append(names, c.fields.Keys()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (x *instance) Attr(name string) (starlark.Value, error) {
	if v, ok := x.fields[name]; ok {
		return v, nil
	}
	if name == "__class__" {
		return x.class, nil
	}
	if v := x.class.find(name); v != nil {
		return x.read(v)
	}
	return nil, nil
}

func (x *instance) SetField(name string, v starlark.Value) error {
	if x.frozen {
		return fmt.Errorf("can't set %s: the script has ended", name)
	}
	if x.class.isEnum() {
		return fmt.Errorf("can't set %s: members of an Enum don't change", name)
	}
	if err := x.writable(name); err != nil {
		return err
	}
	x.fields[name] = v
	return nil
}

// classMethod is a built-in function of a class: called on an instance, it gets the
// instance first.
type classMethod struct{ *starlark.Builtin }

// bind makes a method of a function that was found in the class of x.
func bind(x *instance, v starlark.Value) starlark.Value {
	switch f := v.(type) {
	case *starlark.Function:
		return &bound{x, f}
	case classMethod:
		return &bound{x, f}
	}
	return boundTo(x.class, v)
}

// bound is a method together with its object.
type bound struct {
	self starlark.Value // an object, or for class methods the class
	fn   starlark.Callable
}

func (b *bound) Name() string          { return b.fn.Name() }
func (b *bound) String() string        { return fmt.Sprintf("<bound method %s>", b.fn.Name()) }
func (b *bound) Type() string          { return "method" }
func (b *bound) Freeze()               { b.self.Freeze() }
func (b *bound) Truth() starlark.Bool  { return true }
func (b *bound) Hash() (uint32, error) { return b.self.Hash() }

// CallInternal calls the function with the object first.
func (b *bound) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return starlark.Call(t, b.fn, append(starlark.Tuple{b.self}, args...), kwargs)
}

// objectClass is what classes without a base derive from.
var objectClass = &class{name: "object", fields: starlark.StringDict{
	"__init__": nativeMethod("object.__init__", func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if len(args) != 1 || len(kwargs) > 0 {
			return nil, fmt.Errorf("object.__init__: got %d arguments, want none", len(args)+len(kwargs)-1)
		}
		return starlark.None, nil
	}),
}, is: func(starlark.Value) bool { return true }}

func nativeMethod(name string, fn native) classMethod {
	return classMethod{starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return fn(args, kwargs)
	})}
}

// newClass is what a class statement calls: name, bases, and pairs of names and
// values.
func (r *run) newClass(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	c := &class{name: pyStr(args[0]), base: objectClass, fields: starlark.StringDict{}, ids: &r.ids}
	bases := args[1].(starlark.Tuple)
	if len(bases) > 1 {
		return nil, errorf("python", "class %s: several bases are beyond the Python that scripts may use here", c.name)
	}
	for _, b := range bases {
		base, ok := b.(*class)
		if !ok || base.make != nil {
			m := errorf("python", "class %s: a class can't be based on %s here", c.name, pyStr(b))
			if ok {
				m.Text = fmt.Sprintf("class %s: a class can't be based on %s here", c.name, base.name)
			}
			if ok && base.final != "" {
				return nil, m.Suggest("%s", base.final)
			}
			return nil, m.Suggest("base it on Collective, and write out what differs")
		}
		c.base = base
	}
	for pair := range starlark.Elements(args[2].(starlark.Iterable)) {
		p := pair.(starlark.Tuple)
		field := pyStr(p[0])
		if strings.HasPrefix(field, "__") && strings.HasSuffix(field, "__") && !slices.Contains(knownDunders, field) {
			return nil, errorf("python", "class %s: %s: beyond the Python that scripts may use here", c.name, field).
				Suggest("give the method an ordinary name and call it")
		}
		c.fields[field] = p[1]
	}
	for name := range starlark.Elements(args[3].(starlark.Iterable)) {
		c.annotated = append(c.annotated, pyStr(name))
	}
	if c.isEnum() {
		return c, c.enumerate(args[2].(starlark.Iterable))
	}
	return c, nil
}

// knownDunders are the special names that a class may give a meaning.
var knownDunders = []string{"__init__", "__doc__", "__post_init__"}

// super is what super() in a method returns: the object, seen as one of the
// class's base.
type super struct {
	above *class
	self  *instance
}

var _ starlark.HasAttrs = (*super)(nil)

func (s *super) String() string        { return "<super of " + s.self.String() + ">" }
func (s *super) Type() string          { return "super" }
func (s *super) Freeze()               {}
func (s *super) Truth() starlark.Bool  { return true }
func (s *super) Hash() (uint32, error) { return s.self.Hash() }
func (s *super) AttrNames() []string   { return s.above.fields.Keys() }

func (s *super) Attr(name string) (starlark.Value, error) {
	if v := s.above.find(name); v != nil {
		return s.self.read(v)
	}
	return nil, fmt.Errorf("class %s has no %s", s.above.name, name)
}

func newSuper(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 2 || len(kwargs) > 0 {
		return nil, errorf("python", "super: call it without arguments, in a method itself")
	}
	c, ok := args[0].(*class)
	x, ok2 := args[1].(*instance)
	if !ok || !ok2 || !x.class.within(c) {
		return nil, errorf("python", "super: got %s and %s, want a class and an object of it", args[0].Type(), args[1].Type())
	}
	return &super{c.base, x}, nil
}

// isinstance knows scripts' classes, msccl-tools' and Python's own types.
func (r *run) isinstance(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, of starlark.Value
	if err := starlark.UnpackPositionalArgs("isinstance", args, kwargs, 2, &x, &of); err != nil {
		return nil, err
	}
	list := starlark.Tuple{of}
	if t, ok := of.(starlark.Tuple); ok {
		list = t
	}
	for _, c := range list {
		switch c := c.(type) {
		case *class:
			if y, ok := x.(*instance); ok && y.class.within(c) || c.is != nil && c.is(x) {
				return starlark.True, nil
			}
		case *starlark.Builtin:
			kind := r.pyType(x)
			if kind == c.Name() || kind == "bool" && c.Name() == "int" {
				return starlark.True, nil
			}
		case starlark.Callable:
			if !slices.Contains(oneTypeNames, c.Name()) {
				return nil, fmt.Errorf("isinstance: got %s, want a class", c.Type())
			}
			if x.Type() == c.Name() {
				return starlark.True, nil
			}
		default:
			return nil, fmt.Errorf("isinstance: got %s, want a class", c.Type())
		}
	}
	return starlark.False, nil
}

// pyType is the name of a built-in value's type in Python.
func (r *run) pyType(x starlark.Value) string {
	switch x.(type) {
	case starlark.String:
		return "str"
	case starlark.NoneType, starlark.Bool, starlark.Int, starlark.Float, starlark.Tuple, *starlark.List, *starlark.Dict, *starlark.Set:
		return x.Type()
	}
	return ""
}

// typeOf is type(x): the class, or the function of a built-in type's name.
func (r *run) typeOf(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	if err := starlark.UnpackPositionalArgs("type", args, kwargs, 1, &x); err != nil {
		return nil, err
	}
	switch v := x.(type) {
	case *instance:
		return v.class, nil
	case *chunkValue:
		return chunkClass, nil
	case *sumValue:
		return sumClass, nil
	case starlark.String:
		return r.strType, nil
	}
	if f, ok := r.types[r.pyType(x)]; ok {
		return f, nil
	}
	if f, ok := starlark.Universe[r.pyType(x)]; ok {
		return f, nil
	}
	return nil, errorf("python", "type: %s has no type that a script can name here", x.Type())
}
