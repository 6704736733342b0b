package pyfront

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// defaultDict is collections.defaultdict: a dict that makes what it lacks.
type defaultDict struct {
	*starlark.Dict
	r       *run
	factory starlark.Value // None makes nothing
}

var (
	_ starlark.HasSetKey       = (*defaultDict)(nil)
	_ starlark.IterableMapping = (*defaultDict)(nil)
)

func (r *run) newDefaultDict(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	d := &defaultDict{r: r, factory: starlark.None}
	if len(args) > 0 {
		d.factory, args = args[0], args[1:]
		if _, ok := d.factory.(starlark.Callable); !ok && d.factory != starlark.None {
			return nil, fmt.Errorf("defaultdict: got %s, want a function that makes what is missing", d.factory.Type())
		}
	}
	made, err := starlark.Call(r.env.Thread(), starlark.Universe["dict"], args, kwargs)
	if err != nil {
		return nil, err
	}
	d.Dict = made.(*starlark.Dict)
	return d, nil
}

func (d *defaultDict) String() string {
	return "defaultdict(" + pyRepr(d.factory) + ", " + pyRepr(d.Dict) + ")"
}
func (d *defaultDict) Type() string { return "defaultdict" }

// Get is d[k]: what is missing is made and kept.
func (d *defaultDict) Get(k starlark.Value) (starlark.Value, bool, error) {
	v, found, err := d.Dict.Get(k)
	if found || err != nil || d.factory == starlark.None {
		return v, found, err
	}
	var none starlark.Tuple
	if b, ok := d.factory.(*starlark.Builtin); ok && (b.Name() == "int" || b.Name() == "float") {
		none = starlark.Tuple{starlark.MakeInt(0)} // Starlark's want an argument
	}
	if v, err = starlark.Call(d.r.env.Thread(), d.factory, none, nil); err != nil {
		return nil, false, err
	}
	return v, true, d.SetKey(k, v)
}

// Attr is a method: those of dicts, which make nothing.
func (d *defaultDict) Attr(name string) (starlark.Value, error) { return d.Dict.Attr(name) }

// CompareSameType compares what both hold.
func (d *defaultDict) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	other, ok := y.(*defaultDict)
	if !ok { // a script's class of that name
		return op == syntax.NEQ, nil
	}
	return d.Dict.CompareSameType(op, other.Dict, depth)
}

// plain is the dict that a defaultdict is when nobody asks it for elements.
func plain(v starlark.Value) starlark.Value {
	if d, ok := v.(*defaultDict); ok {
		return d.Dict
	}
	return v
}

// contained is "in".
func contained(negated bool) native {
	return func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		op := syntax.IN
		if negated {
			op = syntax.NOT_IN
		}
		return starlark.Binary(op, args[0], plain(args[1]))
	}
}
