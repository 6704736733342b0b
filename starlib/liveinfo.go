package starlib

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// OpenProgram is a program that is being written.
type OpenProgram struct {
	Name  string
	Ranks int32
	Ops   int
	Pos   diag.Pos
	// Right of the Demanded outputs hold what they must, if Known: of a very large
	// collective it isn't.
	Right, Demanded int
	Known           bool

	p   *program
	one *oneProgram
}

// Current is the open program, or nil.
func (l *Live) Current() *OpenProgram {
	if one := l.in.one; one != nil {
		return &OpenProgram{Name: one.h.name, Ranks: one.h.ranks, Ops: one.b.Ops(), Pos: one.opened, one: one}
	}
	p := l.in.cur
	if p == nil {
		return nil
	}
	if l.holding != p {
		l.holding, l.holds = p, p.b.Holds()
	}
	o := &OpenProgram{Name: p.spec.Name, Ranks: p.coll.c.Ranks, Ops: p.traced(), Pos: p.opened, p: p}
	o.Right, o.Demanded, o.Known = l.holds.Count()
	return o
}

// Program is what has been traced so far, as a program that has ended would be.
func (o *OpenProgram) Program() (*Program, error) {
	if o.one != nil {
		return o.one.soFar(), nil
	}
	return o.p.soFar()
}

// Contents is what a place holds after the operations traced so far: the inputs
// that are summed there, nil for nothing.
func (p *Program) Contents(rank ir.Rank, buf ir.BufferID, index int32) []ir.Contribution {
	if p.traced == nil || p.traced.b == nil {
		return nil
	}
	return p.traced.b.Contributions(rank, buf, index)
}

// Value is what a dotted name stands for, such as "c" or "p.topo": its type and
// its text. Nothing is called to find out.
func (l *Live) Value(name string) (typ, text string, ok bool) {
	v := l.value(name)
	if v == nil {
		return "", "", false
	}
	return v.Type(), v.String(), true
}

// Attrs are the fields and methods of what a dotted name stands for.
func (l *Live) Attrs(name string) []string {
	v, ok := l.value(name).(starlark.HasAttrs)
	if !ok {
		return nil
	}
	return v.AttrNames()
}

func (l *Live) value(name string) starlark.Value {
	first, rest, _ := strings.Cut(name, ".")
	v := l.globals[first]
	for _, d := range []starlark.StringDict{l.in.predeclared, starlark.Universe} {
		if v == nil {
			v = d[first]
		}
	}
	for v != nil && rest != "" {
		first, rest, _ = strings.Cut(rest, ".")
		has, ok := v.(starlark.HasAttrs)
		if !ok {
			return nil
		}
		v, _ = has.Attr(first) // an unknown name is nil, like one with an error
	}
	return v
}

// Defined reports whether the session itself has bound a name.
func (l *Live) Defined(name string) bool { return l.globals[name] != nil }

// Globals are the names that the session has bound, sorted.
func (l *Live) Globals() []string {
	return slices.DeleteFunc(l.globals.Keys(), func(n string) bool { return n == valueName })
}

// Buffers are the names of the open program's buffers that are strings.
func (l *Live) Buffers() []string {
	names := []string{"input", "output"}
	if p := l.in.cur; p != nil {
		for _, v := range p.values {
			if s, ok := v.(starlark.String); ok && !slices.Contains(names, string(s)) {
				names = append(names, string(s))
			}
		}
	}
	return names
}

// CallOf is the name and the arguments of a text that is one call with literals
// only, such as run("cpu", size = "1MiB"), spelled as on a command line.
func CallOf(text string) (name string, args []string, ok bool) {
	x, err := dialect.ParseExpr(sessionFile, text, 0)
	if err != nil {
		return "", nil, false
	}
	call, isCall := x.(*syntax.CallExpr)
	if !isCall {
		return "", nil, false
	}
	fn, isName := call.Fn.(*syntax.Ident)
	if !isName {
		return "", nil, false
	}
	for _, a := range call.Args {
		if kw, isKeyword := a.(*syntax.BinaryExpr); isKeyword && kw.Op == syntax.EQ {
			key, isName := kw.X.(*syntax.Ident)
			v, isLiteral := literal(kw.Y)
			if !isName || !isLiteral {
				return "", nil, false
			}
			if v != nil {
				args = append(args, "--"+strings.ReplaceAll(key.Name, "_", "-"), *v)
			}
			continue
		}
		v, isLiteral := literal(a)
		if !isLiteral || v == nil {
			return "", nil, false
		}
		args = append(args, *v)
	}
	return fn.Name, args, true
}

// literal is the spelling of a literal; nil is None.
func literal(x syntax.Expr) (*string, bool) {
	text := ""
	switch x := x.(type) {
	case *syntax.Literal:
		text = x.Raw
		if s, ok := x.Value.(string); ok {
			text = s
		}
	case *syntax.Ident:
		switch x.Name {
		case "None":
			return nil, true
		case "True", "False":
			text = strings.ToLower(x.Name)
		default:
			text = x.Name
			return &text, Documented(x.Name)
		}
	case *syntax.UnaryExpr:
		inner, ok := literal(x.X)
		if !ok || inner == nil || x.Op != syntax.MINUS {
			return nil, false
		}
		text = "-" + *inner
	default:
		return nil, false
	}
	return &text, true
}

// Documented reports whether the language has a function of that name.
func Documented(name string) bool {
	return slices.ContainsFunc(Signatures(), func(s Signature) bool { return s.Receiver == "" && s.Name == name })
}
