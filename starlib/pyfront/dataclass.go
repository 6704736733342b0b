package pyfront

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// dataFields are what @dataclass knows of a class: its annotated fields, those of
// the base first.
type dataFields struct {
	names  []string
	frozen bool
	eq     bool
	order  bool
}

// dataField is what dataclasses.field() returns.
type dataField struct {
	def     starlark.Value // or nil
	factory starlark.Value // or nil
}

func (f *dataField) String() string        { return "Field()" }
func (f *dataField) Type() string          { return "Field" }
func (f *dataField) Freeze()               {}
func (f *dataField) Truth() starlark.Bool  { return true }
func (f *dataField) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: Field") }

// newField is dataclasses.field.
func newField(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	f := &dataField{}
	if len(args) > 0 {
		return nil, fmt.Errorf("field: got %d positional arguments, want none", len(args))
	}
	for _, kw := range kwargs {
		switch name := string(kw[0].(starlark.String)); name {
		case "default":
			f.def = kw[1]
		case "default_factory":
			f.factory = kw[1]
		default:
			return nil, errorf("python", "field: %s: beyond the Python that scripts may use here", name)
		}
	}
	return f, nil
}

// dataclass is @dataclass and @dataclass(frozen=True).
func (r *run) dataclass(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	d := dataFields{eq: true}
	for _, kw := range kwargs {
		on := bool(kw[1].Truth())
		switch name := string(kw[0].(starlark.String)); name {
		case "frozen":
			d.frozen = on
		case "eq":
			d.eq = on
		case "order":
			d.order = on
		case "repr", "unsafe_hash", "slots":
		default:
			return nil, errorf("python", "dataclass: %s: beyond the Python that scripts may use here", name)
		}
	}
	if len(args) == 0 {
		return r.function("dataclass", func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return r.makeData(args, kwargs, d)
		}), nil
	}
	return r.makeData(args, nil, d)
}

// makeData gives a class the constructor that its fields ask for.
func (r *run) makeData(args starlark.Tuple, kwargs []starlark.Tuple, d dataFields) (starlark.Value, error) {
	var v starlark.Value
	if err := starlark.UnpackPositionalArgs("dataclass", args, kwargs, 1, &v); err != nil {
		return nil, err
	}
	c, ok := v.(*class)
	if !ok || c.ids == nil {
		return nil, fmt.Errorf("dataclass: got %s, want a class", v.Type())
	}
	if base := c.base.data; base != nil {
		d.names = slices.Clone(base.names)
	}
	for _, name := range c.annotated {
		if !slices.Contains(d.names, name) {
			d.names = append(d.names, name)
		}
	}
	c.data = &d
	if _, own := c.fields["__init__"]; own {
		return c, nil
	}
	optional := false
	for _, name := range d.names {
		has := c.hasDefault(name)
		if optional && !has {
			return nil, fmt.Errorf("class %s: field %s without a default follows one with a default", c.name, name)
		}
		optional = has
	}
	c.fields["__init__"] = nativeMethod(c.name+".__init__", func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return starlark.None, r.fill(c, args[0].(*instance), args[1:], kwargs)
	})
	return c, nil
}

func (c *class) hasDefault(name string) bool {
	v := c.find(name)
	f, ok := v.(*dataField)
	return v != nil && (!ok || f.def != nil || f.factory != nil)
}

// fill sets the fields of a new object of a dataclass.
func (r *run) fill(c *class, x *instance, args starlark.Tuple, kwargs []starlark.Tuple) error {
	if len(args) > len(c.data.names) {
		return fmt.Errorf("%s: got %d arguments, want at most %d", c.name, len(args), len(c.data.names))
	}
	for i, v := range args {
		x.fields[c.data.names[i]] = v
	}
	for _, kw := range kwargs {
		name := string(kw[0].(starlark.String))
		if !slices.Contains(c.data.names, name) {
			return fmt.Errorf("%s: got unknown argument %s", c.name, name)
		}
		if _, twice := x.fields[name]; twice {
			return fmt.Errorf("%s: got two values for %s", c.name, name)
		}
		x.fields[name] = kw[1]
	}
	for _, name := range c.data.names {
		if _, given := x.fields[name]; given {
			continue
		}
		if !c.hasDefault(name) {
			return fmt.Errorf("%s: missing argument %s", c.name, name)
		}
		v := c.find(name)
		if f, ok := v.(*dataField); ok {
			if v = f.def; v == nil {
				var err error
				if v, err = starlark.Call(r.env.Thread(), f.factory, nil, nil); err != nil {
					return err
				}
			}
		}
		x.fields[name] = v
	}
	if post := c.find("__post_init__"); post != nil {
		_, err := starlark.Call(r.env.Thread(), bind(x, post), nil, nil)
		return err
	}
	return nil
}

// values are the fields of an object of a dataclass in order.
func (x *instance) values() starlark.Tuple {
	var list starlark.Tuple
	for _, name := range x.class.data.names {
		v := x.fields[name]
		if v == nil {
			v = starlark.None
		}
		list = append(list, v)
	}
	return list
}

// shown is an object of a dataclass as Python shows it.
func (x *instance) shown() string {
	var parts []string
	for i, v := range x.values() {
		parts = append(parts, x.class.data.names[i]+"="+pyRepr(v))
	}
	return x.class.name + "(" + strings.Join(parts, ", ") + ")"
}

// CompareSameType compares the fields of dataclasses; other objects are equal to
// themselves alone.
func (x *instance) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	other, ok := y.(*instance)
	if !ok { // a class that is called like a built-in type
		return op == syntax.NEQ, nil
	}
	if d := x.class.data; d != nil && x.class == other.class && (d.eq && (op == syntax.EQL || op == syntax.NEQ) || d.order) {
		return starlark.CompareDepth(op, x.values(), other.values(), depth-1)
	}
	switch op {
	case syntax.EQL:
		return x == other, nil
	case syntax.NEQ:
		return x != other, nil
	}
	return false, fmt.Errorf("objects of %s can't be compared by %s", x.class.name, op)
}
