package pyfront

import (
	"fmt"
	"math/big"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib"
)

// native is a function that scripts can call.
type native func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)

func (r *run) function(name string, fn native) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return fn(args, kwargs)
	})
}

// errorf makes an error of a call; its position is the call's.
func errorf(code, format string, args ...any) *diag.Message {
	return diag.Errorf(diag.Pos{}, code, format, args...)
}

// names makes what every script sees: Python's own functions where Starlark has
// none or others, and the functions that statements are lowered to.
func (r *run) names(env *starlib.Env) starlark.StringDict {
	r.env = env
	r.chunk = env.Builtin("chunk")
	d := starlark.StringDict{
		"__name__": starlark.String("__main__"),
		"__file__": starlark.String(r.o.File),
		"object":   objectClass,
		"sum":      env.Builtin("sum"),
		"<with>":   env.EnterWith(),
		"<set>":    starlark.Universe["set"],
		"<dict>":   starlark.Universe["dict"],
	}
	for name, fn := range map[string]native{
		"print": r.print, "str": toStr, "repr": toRepr, "round": round, "pow": power, "divmod": divmod,
		"isinstance": r.isinstance, "type": r.typeOf, "map": r.mapped, "filter": r.filtered, "super": newSuper,
		"exit": r.sysExit, "quit": r.sysExit, "format": formatCall, "hex": inBase("0x", 16), "oct": inBase("0o", 8),
		"bin": inBase("0b", 2), "callable": callable,
		"<class>": r.newClass, "<str>": joined, "<format>": formatHole, "<%>": percent, "<pow>": power,
		"<iter>": iterated, "<in>": contained(false), "<not in>": contained(true), "<==>": compared(false), "<!=>": compared(true), "<is>": identical(false), "<is not>": identical(true),
		"<assert>": assertFailed, "<raise>": raised, "<del>": deleted, "<import>": r.imported, "<from>": r.from,
		"<from*>": r.fromAll, "<method>": r.method,
	} {
		d[name] = r.function(strings.Trim(name, "<>"), fn)
	}
	for name, fn := range r.wrappers() {
		d[name] = r.function(name, fn)
	}
	for _, name := range []string{"list", "tuple", "enumerate", "zip", "reversed"} {
		d[name] = r.function(name, r.inOrder(name))
	}
	d["<list>"], d["<tuple>"] = d["list"], d["tuple"]
	r.types = starlark.StringDict{"list": d["list"], "tuple": d["tuple"]}
	r.strType = d["str"].(*starlark.Builtin)
	return d
}

func (r *run) imported(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return &module{r, string(args[0].(starlark.String))}, nil
}

func (r *run) from(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	m := &module{r, string(args[0].(starlark.String))}
	return m.Attr(string(args[1].(starlark.String)))
}

func (r *run) fromAll(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	path := string(args[0].(starlark.String))
	var all starlark.Tuple
	for _, n := range moduleNames(path) {
		all = append(all, r.member(path, n))
	}
	return all, nil
}

// print writes to the script's output, wherever file says.
func (r *run) print(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	sep, end := starlark.Value(starlark.None), starlark.Value(starlark.None)
	var file, flush starlark.Value
	if err := starlark.UnpackArgs("print", nil, kwargs, "sep?", &sep, "end?", &end, "file?", &file, "flush?", &flush); err != nil {
		return nil, err
	}
	if len(args) == 1 && starlib.IsPlan(args[0]) {
		return starlark.None, nil // the tool writes it
	}
	if err := noPlan(args...); err != nil {
		return nil, err
	}
	between, last := " ", "\n"
	if s, ok := starlark.AsString(sep); ok {
		between = s
	}
	if s, ok := starlark.AsString(end); ok {
		last = s
	}
	var parts []string
	for _, a := range args {
		parts = append(parts, pyStr(a))
	}
	text := r.line + strings.Join(parts, between) + last
	r.line = ""
	if whole, ok := strings.CutSuffix(text, "\n"); ok {
		r.env.Print(r.env.Here(), whole)
	} else {
		r.line = text
	}
	return starlark.None, nil
}

// noPlan refuses plans among values that become text: there is none yet.
func noPlan(list ...starlark.Value) error {
	for _, v := range list {
		if starlib.IsPlan(v) {
			return errorf("python", "the text of a plan: beyond the Python that scripts may use here").
				Suggest("print(JSON()) writes the plan by itself; -o FILE puts it into a file")
		}
	}
	return nil
}

func assertFailed(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return nil, errorf("assert", "the assertion failed")
	}
	return nil, errorf("assert", "the assertion failed: %s", pyStr(args[0]))
}

func raised(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	text := pyStr(args[0])
	var parts []string
	for _, a := range args[1:] {
		parts = append(parts, pyStr(a))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return nil, errorf("raise", "%s", text)
}

// compared is == or !=. As in Python, and not in Starlark, True equals 1.
func compared(negated bool) native {
	return func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		x, y := plain(args[0]), plain(args[1])
		if b, ok := x.(starlark.Bool); ok && isNumber(y) {
			x = number01(b)
		} else if b, ok := y.(starlark.Bool); ok && isNumber(x) {
			y = number01(b)
		}
		same, err := starlark.Equal(x, y)
		return starlark.Bool(same != negated), err
	}
}

func isNumber(v starlark.Value) bool {
	switch v.(type) {
	case starlark.Int, starlark.Float:
		return true
	}
	return false
}

func number01(b starlark.Bool) starlark.Int {
	if b {
		return starlark.MakeInt(1)
	}
	return starlark.MakeInt(0)
}

// identical is "is". Values that Python may or may not keep once (numbers,
// strings, tuples) are identical when they are equal and of one type.
func identical(negated bool) native {
	return func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		x, y := args[0], args[1]
		same := false
		switch x.(type) {
		case starlark.Int, starlark.Float, starlark.String, starlark.Tuple, starlark.Bytes, starlark.Bool, starlark.NoneType:
			if x.Type() == y.Type() {
				var err error
				if same, err = starlark.Equal(x, y); err != nil {
					return nil, err
				}
			}
		default:
			if _, isTuple := y.(starlark.Tuple); !isTuple {
				same = x == y
			}
		}
		return starlark.Bool(same != negated), nil
	}
}

func deleted(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	switch x := plain(args[0]).(type) {
	case *starlark.Dict:
		_, found, err := x.Delete(args[1])
		if err == nil && !found {
			err = fmt.Errorf("del: the dict has no key %s", pyRepr(args[1]))
		}
		return starlark.None, err
	case *starlark.List:
		pop, err := x.Attr("pop")
		if err != nil {
			return nil, err
		}
		_, err = starlark.Call(&starlark.Thread{}, pop, starlark.Tuple{args[1]}, nil)
		return starlark.None, err
	}
	return nil, fmt.Errorf("del: got %s, want list or dict", args[0].Type())
}

// power is x ** y.
func power(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, y starlark.Value
	var m starlark.Value = starlark.None
	if err := starlark.UnpackPositionalArgs("pow", args, kwargs, 2, &x, &y, &m); err != nil {
		return nil, err
	}
	a, isInt := x.(starlark.Int)
	b, isInt2 := y.(starlark.Int)
	if !isNumber(x) || !isNumber(y) {
		return nil, fmt.Errorf("pow: got %s and %s, want numbers", x.Type(), y.Type())
	}
	if isInt && isInt2 && b.Sign() >= 0 {
		n, fits := b.Int64()
		if bits := int64(a.BigInt().BitLen()); !fits || bits > 1 && n*bits > 1<<20 {
			return nil, fmt.Errorf("pow: the result is too large")
		}
		var mod *big.Int
		if mi, ok := m.(starlark.Int); ok {
			if mi.Sign() <= 0 {
				return nil, fmt.Errorf("pow: got %s, want a positive modulus", mi)
			}
			mod = mi.BigInt()
		}
		return starlark.MakeBigInt(new(big.Int).Exp(a.BigInt(), b.BigInt(), mod)), nil
	}
	if m != starlark.None {
		return nil, fmt.Errorf("pow: a modulus is for integers that are not negative")
	}
	return floatPower(x, y)
}

// method is x.name for the methods that Starlark's values lack.
func (r *run) method(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	x, name := args[0], string(args[1].(starlark.String))
	var fn native
	switch x := x.(type) {
	case *starlark.List:
		fn = r.listMethod(x, name)
	case *starlark.Dict:
		if name == "copy" {
			fn = func(starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
				d := starlark.NewDict(x.Len())
				for _, kv := range x.Items() {
					if err := d.SetKey(kv[0], kv[1]); err != nil {
						return nil, err
					}
				}
				return d, nil
			}
		}
	case *starlark.Set:
		fn = setMethod(x, name)
	case starlark.String:
		fn = stringMethod(string(x), name)
	}
	if fn != nil {
		return r.function(name, fn), nil
	}
	attrs, ok := x.(starlark.HasAttrs)
	if ok {
		v, err := attrs.Attr(name)
		if v != nil || err != nil {
			return v, err
		}
	}
	return nil, fmt.Errorf("%s has no .%s field or method", x.Type(), name)
}

func (r *run) listMethod(x *starlark.List, name string) native {
	elems := func() []starlark.Value {
		var list []starlark.Value
		for v := range starlark.Elements(x) {
			list = append(list, v)
		}
		return list
	}
	replace := func(list []starlark.Value) error {
		for i, v := range list {
			if err := x.SetIndex(i, v); err != nil {
				return err
			}
		}
		return nil
	}
	switch name {
	case "copy":
		return func(starlark.Tuple, []starlark.Tuple) (starlark.Value, error) { return starlark.NewList(elems()), nil }
	case "count":
		return func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var want starlark.Value
			if err := starlark.UnpackPositionalArgs(name, args, kwargs, 1, &want); err != nil {
				return nil, err
			}
			n := 0
			for _, v := range elems() {
				same, err := starlark.Equal(v, want)
				if err != nil {
					return nil, err
				}
				if same {
					n++
				}
			}
			return starlark.MakeInt(n), nil
		}
	case "reverse":
		return func(starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			list := elems()
			for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
				list[i], list[j] = list[j], list[i]
			}
			return starlark.None, replace(list)
		}
	case "sort":
		return func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if len(args) > 0 {
				return nil, fmt.Errorf("sort: got %d positional arguments, want none", len(args))
			}
			sorted, err := starlark.Call(r.env.Thread(), starlark.Universe["sorted"], starlark.Tuple{x}, kwargs)
			if err != nil {
				return nil, err
			}
			var list []starlark.Value
			for v := range starlark.Elements(sorted.(starlark.Iterable)) {
				list = append(list, v)
			}
			return starlark.None, replace(list)
		}
	}
	return nil
}

func (r *run) mapped(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("map: got %d arguments, want a function and a list", len(args))
	}
	it, ok := ordered(args[1]).(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("map: got %s, want a list", args[1].Type())
	}
	var list []starlark.Value
	for v := range starlark.Elements(it) {
		y, err := starlark.Call(r.env.Thread(), args[0], starlark.Tuple{v}, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, y)
	}
	return starlark.NewList(list), nil
}

func (r *run) filtered(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("filter: got %d arguments, want a function and a list", len(args))
	}
	it, ok := ordered(args[1]).(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("filter: got %s, want a list", args[1].Type())
	}
	var list []starlark.Value
	for v := range starlark.Elements(it) {
		keep := v
		if args[0] != starlark.None {
			var err error
			if keep, err = starlark.Call(r.env.Thread(), args[0], starlark.Tuple{v}, nil); err != nil {
				return nil, err
			}
		}
		if keep.Truth() {
			list = append(list, v)
		}
	}
	return starlark.NewList(list), nil
}

func callable(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	if err := starlark.UnpackPositionalArgs("callable", args, kwargs, 1, &x); err != nil {
		return nil, err
	}
	_, ok := x.(starlark.Callable)
	return starlark.Bool(ok), nil
}

func divmod(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, y starlark.Value
	if err := starlark.UnpackPositionalArgs("divmod", args, kwargs, 2, &x, &y); err != nil {
		return nil, err
	}
	q, err := starlark.Binary(syntax.SLASHSLASH, x, y)
	if err != nil {
		return nil, err
	}
	m, err := starlark.Binary(syntax.PERCENT, x, y)
	return starlark.Tuple{q, m}, err
}
