package pyfront

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib"
)

// argparse is a member of the module argparse.
func (r *run) argparse(name string) starlark.Value {
	switch name {
	case "ArgumentParser":
		return r.function(name, r.newParser)
	case "Namespace":
		return r.function(name, func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if len(args) > 0 {
				return nil, fmt.Errorf("argparse.Namespace: got %d positional arguments, want none", len(args))
			}
			n := &namespace{fields: starlark.StringDict{}}
			for _, kw := range kwargs {
				n.set(string(kw[0].(starlark.String)), kw[1])
			}
			return n, nil
		})
	}
	if name == optionalAction.name {
		return optionalAction
	}
	return starlark.String(name) // a formatter of help, of which there is one
}

// optionalAction is argparse.BooleanOptionalAction: --flag is True, --no-flag is
// False.
var optionalAction = &class{name: "BooleanOptionalAction", base: objectClass}

// parserValue is an ArgumentParser.
type parserValue struct {
	r        *run
	prefixes bool // flags may be abbreviated
	args     []*argument
	defaults starlark.StringDict // of set_defaults
	order    []string
}

var _ starlark.HasAttrs = (*parserValue)(nil)

func (p *parserValue) String() string        { return "ArgumentParser()" }
func (p *parserValue) Type() string          { return "ArgumentParser" }
func (p *parserValue) Freeze()               {}
func (p *parserValue) Truth() starlark.Bool  { return true }
func (p *parserValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: ArgumentParser") }

// newParser makes an ArgumentParser. What only concerns its help text is taken
// and left aside: the tool writes help for all scripts alike.
func (r *run) newParser(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	p := &parserValue{r: r, prefixes: true, defaults: starlark.StringDict{}}
	if len(args) > 3 {
		return nil, fmt.Errorf("ArgumentParser: got %d positional arguments, want prog, usage and description", len(args))
	}
	for _, kw := range kwargs {
		switch name := string(kw[0].(starlark.String)); name {
		case "prog", "usage", "description", "epilog", "formatter_class", "add_help", "exit_on_error":
		case "allow_abbrev":
			p.prefixes = bool(kw[1].Truth())
		default:
			return nil, errorf("python", "ArgumentParser: %s: beyond the Python that scripts may use here", name)
		}
	}
	return p, nil
}

var parserMethods = []string{"add_argument", "add_argument_group", "error", "parse_args", "parse_known_args", "print_help", "print_usage", "set_defaults"}

func (p *parserValue) AttrNames() []string { return parserMethods }

func (p *parserValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "add_argument":
		return p.r.function(name, p.add), nil
	case "add_argument_group":
		return p.r.function(name, func(starlark.Tuple, []starlark.Tuple) (starlark.Value, error) { return p, nil }), nil
	case "parse_args":
		return p.r.function(name, func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			n, rest, err := p.parse(args, kwargs)
			if err == nil && len(rest) > 0 {
				err = p.unrecognized(rest)
			}
			return n, err
		}), nil
	case "parse_known_args":
		return p.r.function(name, func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			n, rest, err := p.parse(args, kwargs)
			if err != nil {
				return nil, err
			}
			list := make([]starlark.Value, len(rest))
			for i, s := range rest {
				list[i] = starlark.String(s)
			}
			return starlark.Tuple{n, starlark.NewList(list)}, nil
		}), nil
	case "set_defaults":
		return p.r.function(name, func(_ starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			for _, kw := range kwargs {
				p.setDefault(string(kw[0].(starlark.String)), kw[1])
			}
			return starlark.None, nil
		}), nil
	case "error":
		return p.r.function(name, func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var text string
			if err := starlark.UnpackArgs("error", args, kwargs, "message", &text); err != nil {
				return nil, err
			}
			return nil, p.wrong("bad-call", "%s", text)
		}), nil
	case "print_help", "print_usage":
		return p.r.function(name, func(starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			p.r.env.Print(p.r.env.Here(), Usage(p.r.o.File, p.r.env.Declared()))
			return starlark.None, nil
		}), nil
	case "add_mutually_exclusive_group", "add_subparsers", "register", "convert_arg_line_to_args":
		return nil, errorf("python", "ArgumentParser.%s: beyond the Python that scripts may use here", name)
	}
	return nil, nil
}

func (p *parserValue) setDefault(dest string, v starlark.Value) {
	if _, ok := p.defaults[dest]; !ok {
		p.order = append(p.order, dest)
	}
	p.defaults[dest] = v
	for _, a := range p.args {
		if a.dest == dest {
			a.def = v
		}
	}
}

// wrong makes the error of a wrong call and ends the script with it.
func (p *parserValue) wrong(code, format string, args ...any) error {
	m := diag.Errorf(diag.Pos{File: p.r.o.File}, code, format, args...)
	p.r.failed = m.Suggest("%s", usageLine(p.r.o.File, p.r.env.Declared()))
	return p.r.failed
}

// argument is one that a parser knows.
type argument struct {
	dest     string
	flags    []string // with dashes; none for a positional
	action   string
	nargs    string // "", "?", "*", "+" or a number
	count    int    // of a number
	constant starlark.Value
	def      starlark.Value
	conv     starlark.Value // of type=, or nil
	choices  []starlark.Value
	required bool
	index    int // in Script.Params
}

func (a *argument) positional() bool { return len(a.flags) == 0 }

// bothWays is the action of flags that have a --no- form.
const bothWays = "BooleanOptionalAction"

// opposite is the --no- form of a flag.
func opposite(flag string) string { return "--no-" + strings.TrimPrefix(flag, "--") }

// withOpposites adds the --no- form of every long flag behind it.
func (a *argument) withOpposites() {
	var all []string
	for _, f := range a.flags {
		all = append(all, f)
		if strings.HasPrefix(f, "--") {
			all = append(all, opposite(f))
		}
	}
	a.flags = all
}

// takesValue reports whether words may follow the flag.
func (a *argument) takesValue() bool { return a.action == "store" || a.action == "append" }

// name is what errors call it.
func (a *argument) name() string {
	if a.positional() {
		return a.dest
	}
	return strings.Join(a.flags, "/")
}

// add is add_argument.
func (p *parserValue) add(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := &argument{action: "store", def: starlark.None, constant: starlark.None}
	var names []string
	for _, v := range args {
		s, ok := starlark.AsString(v)
		if !ok || s == "" {
			return nil, fmt.Errorf("add_argument: got %s, want a name", pyRepr(v))
		}
		names = append(names, s)
	}
	help, err := a.options(kwargs)
	if err != nil {
		return nil, err
	}
	if err := a.named(names); err != nil {
		return nil, err
	}
	if err := a.complete(kwargs); err != nil {
		return nil, err
	}
	if v, ok := p.defaults[a.dest]; ok {
		a.def = v
	}
	for _, old := range p.args {
		for _, f := range old.flags {
			for _, g := range a.flags {
				if f == g {
					return nil, fmt.Errorf("add_argument: %s was declared already", g)
				}
			}
		}
	}
	a.index = len(p.r.env.Declared())
	p.args = append(p.args, a)
	p.r.env.Declare(p.param(a, help))
	return starlark.None, nil
}

// named sorts out flags and destination.
func (a *argument) named(names []string) error {
	for _, n := range names {
		if n[0] == '-' {
			a.flags = append(a.flags, n)
		}
	}
	switch {
	case len(a.flags) != 0 && len(a.flags) != len(names) || len(names) > 1 && len(a.flags) == 0:
		return fmt.Errorf("add_argument: got %s, want one name, or flags that begin with a dash", strings.Join(names, ", "))
	case len(names) == 0 && a.dest == "":
		return fmt.Errorf("add_argument: got no name")
	case len(a.flags) == 0:
		if len(names) == 1 && a.dest != "" {
			return fmt.Errorf("add_argument: dest: a positional argument has its name already")
		}
		if len(names) == 1 {
			a.dest = names[0]
		}
	case a.dest == "":
		long := a.flags[0]
		for _, f := range a.flags {
			if strings.HasPrefix(f, "--") {
				long = f
				break
			}
		}
		a.dest = strings.ReplaceAll(strings.TrimLeft(long, "-"), "-", "_")
	}
	if a.dest == "" {
		return fmt.Errorf("add_argument: got %s, which names nothing", strings.Join(names, ", "))
	}
	return nil
}

// options reads the keyword arguments of add_argument.
func (a *argument) options(kwargs []starlark.Tuple) (help string, err error) {
	for _, kw := range kwargs {
		name, v := string(kw[0].(starlark.String)), kw[1]
		switch name {
		case "help":
			help = pyStr(v)
		case "metavar":
		case "dest":
			a.dest = pyStr(v)
		case "default":
			a.def = v
		case "const":
			a.constant = v
		case "required":
			a.required = bool(v.Truth())
		case "type":
			if v != starlark.None {
				a.conv = v
			}
		case "action":
			a.action = pyStr(v)
			if v == starlark.Value(optionalAction) {
				a.action = bothWays
			}
		case "nargs":
			if v != starlark.None {
				a.nargs = pyStr(v)
			}
		case "choices":
			it, ok := v.(starlark.Iterable)
			if !ok {
				return "", fmt.Errorf("add_argument: choices: got %s, want a list", v.Type())
			}
			for x := range starlark.Elements(it) {
				a.choices = append(a.choices, x)
			}
		default:
			return "", fmt.Errorf("add_argument: got unknown argument %s", name)
		}
	}
	return help, nil
}

// complete checks what the options say together.
func (a *argument) complete(kwargs []starlark.Tuple) error {
	given := map[string]bool{}
	for _, kw := range kwargs {
		given[string(kw[0].(starlark.String))] = true
	}
	if a.conv != nil {
		if _, ok := a.conv.(starlark.Callable); !ok {
			return fmt.Errorf("add_argument: type: got %s, want a type or a function", a.conv.Type())
		}
	}
	switch a.nargs {
	case "", "?", "*", "+":
	default:
		n, rest := leadingInt(a.nargs)
		if rest != "" || n < 1 || n > maxWidth {
			return errorf("python", "add_argument: nargs=%s: beyond the Python that scripts may use here", pyRepr(starlark.String(a.nargs)))
		}
		a.count = n
	}
	switch a.action {
	case "store", "append":
	case "store_true", "store_false":
		a.constant = starlark.Bool(a.action == "store_true")
		if !given["default"] {
			a.def = starlark.Bool(a.action != "store_true")
		}
	case "store_const", "count":
	case bothWays:
		if a.positional() {
			return fmt.Errorf("add_argument: %s is for flags", a.action)
		}
		a.withOpposites()
	default:
		return errorf("python", "add_argument: action=%s: beyond the Python that scripts may use here", pyRepr(starlark.String(a.action)))
	}
	switch {
	case !a.takesValue() && (a.nargs != "" || a.conv != nil || a.choices != nil):
		return fmt.Errorf("add_argument: a %s takes no value: nargs, type and choices don't fit", a.action)
	case a.positional() && given["required"]:
		return fmt.Errorf("add_argument: required: a positional argument is required anyway")
	}
	if a.positional() {
		a.required = a.nargs != "?" && a.nargs != "*"
	}
	return nil
}

// param is the argument as the tool's help shows it.
func (p *parserValue) param(a *argument, help string) starlib.Param {
	out := starlib.Param{Name: a.dest, Type: "string", Pos: p.r.env.Here(),
		Positional: a.positional(), Required: a.required, Spellings: a.flags}
	if a.conv != nil {
		if b, ok := a.conv.(*starlark.Builtin); ok && (b.Name() == "int" || b.Name() == "float") {
			out.Type = b.Name()
		}
	}
	if !a.takesValue() {
		out.Type = "bool"
	}
	if a.def != starlark.None {
		out.Default = pyStr(a.def)
		out.Value = out.Default
	}
	for _, c := range a.choices {
		out.Choices = append(out.Choices, pyStr(c))
	}
	help = strings.ReplaceAll(help, "%(default)s", pyStr(a.def))
	out.Help = strings.ReplaceAll(help, "%%", "%")
	return out
}

// namespace is what parse_args returns.
type namespace struct {
	fields starlark.StringDict
	order  []string
}

var (
	_ starlark.HasSetField = (*namespace)(nil)
)

func (n *namespace) String() string {
	parts := make([]string, len(n.order))
	for i, name := range n.order {
		parts[i] = name + "=" + pyRepr(n.fields[name])
	}
	return "Namespace(" + strings.Join(parts, ", ") + ")"
}
func (n *namespace) Type() string          { return "Namespace" }
func (n *namespace) Freeze()               {}
func (n *namespace) Truth() starlark.Bool  { return true }
func (n *namespace) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: Namespace") }
func (n *namespace) AttrNames() []string   { return n.fields.Keys() }

func (n *namespace) Attr(name string) (starlark.Value, error) {
	if v, ok := n.fields[name]; ok {
		return v, nil
	}
	m := errorf("python", "the arguments have no %s", name)
	if near := nearest(name, n.order); near != "" {
		m.Suggest("did you mean %s?", near)
	}
	return nil, m
}

// SetField sets a field, as scripts do with computed defaults.
func (n *namespace) SetField(name string, v starlark.Value) error {
	n.set(name, v)
	return nil
}

func (n *namespace) set(name string, v starlark.Value) {
	if _, ok := n.fields[name]; !ok {
		n.order = append(n.order, name)
	}
	n.fields[name] = v
}
