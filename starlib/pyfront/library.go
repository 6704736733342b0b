package pyfront

import (
	"fmt"
	"path"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// ofPython is a member of one of Python's own modules that have no file of their
// own here, or nil. What yields lazily there is a list here.
func (r *run) ofPython(module, name string) starlark.Value {
	switch module + "." + name {
	case "collections.OrderedDict":
		return starlark.Universe["dict"]
	case "collections.defaultdict":
		return r.function(name, r.newDefaultDict)
	case "dataclasses.dataclass":
		return r.function(name, r.dataclass)
	case "dataclasses.field":
		return r.function(name, newField)
	case "enum.Enum":
		return enumBase
	case "enum.auto":
		return r.function(name, func(starlark.Tuple, []starlark.Tuple) (starlark.Value, error) { return autoValue{}, nil })
	case "functools.partial":
		return r.function(name, r.partial)
	case "functools.reduce":
		return r.function(name, r.reduced)
	case "functools.wraps":
		return r.function(name, func(starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			return r.function("wraps", func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
				var fn starlark.Value
				return fn, starlark.UnpackPositionalArgs("wraps", args, kwargs, 1, &fn)
			}), nil
		})
	case "os.sep":
		return starlark.String("/")
	}
	if fn := itertools[name]; module == "itertools" {
		if name == "accumulate" {
			return r.function(name, r.accumulate)
		}
		return r.function(name, fn)
	}
	if fn := pathFunctions[name]; module == "os.path" {
		return r.function(name, fn)
	}
	return nil
}

// pathFunctions are those of os.path that ask no file system.
var pathFunctions = map[string]native{
	"basename": onPath(func(p string) starlark.Value { _, base := splitPath(p); return starlark.String(base) }),
	"dirname":  onPath(func(p string) starlark.Value { dir, _ := splitPath(p); return starlark.String(dir) }),
	"split": onPath(func(p string) starlark.Value {
		dir, base := splitPath(p)
		return starlark.Tuple{starlark.String(dir), starlark.String(base)}
	}),
	"splitext": onPath(func(p string) starlark.Value {
		ext := path.Ext(p)
		if _, base := splitPath(p); strings.TrimLeft(strings.TrimSuffix(base, ext), ".") == "" { // .bashrc has none
			ext = ""
		}
		return starlark.Tuple{starlark.String(strings.TrimSuffix(p, ext)), starlark.String(ext)}
	}),
	"join": func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		all := ""
		for i, a := range args {
			s, ok := starlark.AsString(a)
			switch {
			case !ok:
				return nil, fmt.Errorf("join: got %s, want string", a.Type())
			case i == 0 || strings.HasPrefix(s, "/"):
				all = s
			case all == "" || strings.HasSuffix(all, "/"):
				all += s
			default:
				all += "/" + s
			}
		}
		return starlark.String(all), nil
	},
}

// splitPath cuts before the last name.
func splitPath(p string) (dir, base string) {
	i := strings.LastIndexByte(p, '/') + 1
	dir, base = p[:i], p[i:]
	if trimmed := strings.TrimRight(dir, "/"); trimmed != "" {
		dir = trimmed
	}
	return dir, base
}

func onPath(fn func(string) starlark.Value) native {
	return func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var p string
		if err := starlark.UnpackPositionalArgs("os.path", args, kwargs, 1, &p); err != nil {
			return nil, err
		}
		return fn(p), nil
	}
}

// partial is functools.partial.
func (r *run) partial(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("partial: got no function")
	}
	fn, first := args[0], args[1:]
	return r.function("partial", func(more starlark.Tuple, named []starlark.Tuple) (starlark.Value, error) {
		given := map[starlark.Value]bool{}
		for _, kw := range named {
			given[kw[0]] = true
		}
		all := named
		for _, kw := range kwargs {
			if !given[kw[0]] {
				all = append(all, kw)
			}
		}
		return starlark.Call(r.env.Thread(), fn, append(append(starlark.Tuple{}, first...), more...), all)
	}), nil
}

// reduced is functools.reduce.
func (r *run) reduced(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var fn starlark.Callable
	var list starlark.Iterable
	var total starlark.Value
	if err := starlark.UnpackPositionalArgs("reduce", args, kwargs, 2, &fn, &list, &total); err != nil {
		return nil, err
	}
	for v := range starlark.Elements(ordered(list).(starlark.Iterable)) {
		if total == nil {
			total = v
			continue
		}
		var err error
		if total, err = starlark.Call(r.env.Thread(), fn, starlark.Tuple{total, v}, nil); err != nil {
			return nil, err
		}
	}
	if total == nil {
		return nil, fmt.Errorf("reduce: got an empty list and no start")
	}
	return total, nil
}

// accumulate is itertools.accumulate.
func (r *run) accumulate(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var list starlark.Iterable
	var fn, start starlark.Value = starlark.None, starlark.None
	if err := starlark.UnpackArgs("accumulate", args, kwargs, "iterable", &list, "func?", &fn, "initial?", &start); err != nil {
		return nil, err
	}
	var sums []starlark.Value
	if start != starlark.None {
		sums = append(sums, start)
	}
	for v := range starlark.Elements(ordered(list).(starlark.Iterable)) {
		if len(sums) > 0 {
			var err error
			last := sums[len(sums)-1]
			if fn == starlark.None {
				v, err = starlark.Binary(syntax.PLUS, last, v)
			} else {
				v, err = starlark.Call(r.env.Thread(), fn, starlark.Tuple{last, v}, nil)
			}
			if err != nil {
				return nil, err
			}
		}
		sums = append(sums, v)
	}
	return starlark.NewList(sums), nil
}
