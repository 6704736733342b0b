package pyfront

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// decorator is one @ line, its value in a variable of the lowering.
type decorator struct {
	pos syntax.Position
	fn  *syntax.Ident
}

// decorators reads the @ lines in front of a def or a class. What they name is
// computed first, as in Python, so that
//
//	@d
//	def f(): ...
//
// becomes t = d, the def, and f = t(f).
func (p *parser) decorators() ([]syntax.Stmt, []decorator) {
	var stmts []syntax.Stmt
	var list []decorator
	for p.is("@") {
		p.chain(len(list) * (maxChain / maxDepth))
		p.advance()
		pos := p.pos()
		d := decorator{pos, p.temp(pos)}
		stmts = append(stmts, assign(pos, d.fn, p.test()))
		list = append(list, d)
		if p.t.kind != newline {
			p.unexpected("the end of the line")
		}
		p.advance()
	}
	return stmts, list
}

// apply is what is left to do once the def or class stands: the lowest decorator
// comes first.
func apply(list []decorator, name *syntax.Ident) []syntax.Stmt {
	var stmts []syntax.Stmt
	for i := len(list) - 1; i >= 0; i-- {
		use := func(id *syntax.Ident) *syntax.Ident { return &syntax.Ident{NamePos: list[i].pos, Name: id.Name} }
		pos := list[i].pos
		stmts = append(stmts, assign(pos, use(name), &syntax.CallExpr{Fn: use(list[i].fn), Lparen: pos,
			Args: []syntax.Expr{use(name)}, Rparen: pos}))
	}
	return stmts
}

// decorated reads a decorated def or class.
func (p *parser) decorated() []syntax.Stmt {
	stmts, list := p.decorators()
	switch {
	case p.is("def"):
		def := p.defStmt()
		return append(append(stmts, def), apply(list, def.Name)...)
	case p.is("class"):
		made := p.classStmt()
		id := made[len(made)-1].(*syntax.AssignStmt).LHS.(*syntax.Ident)
		return append(append(stmts, made...), apply(list, id)...)
	}
	p.unexpected("def or class")
	return nil
}

// staticMethod is what @staticmethod makes: a function that gets no object.
type staticMethod struct{ starlark.Value }

// ofClass is what @classmethod makes: a function that gets the class.
type ofClass struct{ starlark.Callable }

// property is what @property makes: a field that a method computes.
type property struct {
	starlark.Callable
	r *run
}

func (p property) Attr(name string) (starlark.Value, error) {
	return nil, errorf("python", "property.%s: beyond the Python that scripts may use here", name).
		Suggest("write a method that sets the field")
}

func (p property) AttrNames() []string { return nil }

// wrapper makes one of the three of a function.
func wrapper(name string, wrap func(starlark.Callable) starlark.Value) native {
	return func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var fn starlark.Callable
		if err := starlark.UnpackPositionalArgs(name, args, kwargs, 1, &fn); err != nil {
			return nil, err
		}
		return wrap(fn), nil
	}
}

// wrappers are the decorators that every script has.
func (r *run) wrappers() map[string]native {
	return map[string]native{
		"staticmethod": wrapper("staticmethod", func(f starlark.Callable) starlark.Value { return staticMethod{f} }),
		"classmethod":  wrapper("classmethod", func(f starlark.Callable) starlark.Value { return ofClass{f} }),
		"property":     wrapper("property", func(f starlark.Callable) starlark.Value { return property{f, r} }),
	}
}

// boundTo is what a value found in class c is when it is taken from the class.
func boundTo(c *class, v starlark.Value) starlark.Value {
	switch f := v.(type) {
	case staticMethod:
		return f.Value
	case ofClass:
		return &bound{c, f.Callable}
	}
	return v
}

// read is the field of an object that v, found in its class, stands for.
func (x *instance) read(v starlark.Value) (starlark.Value, error) {
	if p, ok := v.(property); ok {
		return starlark.Call(p.r.env.Thread(), p.Callable, starlark.Tuple{x}, nil)
	}
	return bind(x, v), nil
}

// writable says why a field can't be set, or nil.
func (x *instance) writable(name string) error {
	if _, ok := x.class.find(name).(property); ok {
		return fmt.Errorf("can't set %s: it is a property of %s", name, x.class.name)
	}
	if x.class.data != nil && x.class.data.frozen && x.made {
		return fmt.Errorf("can't set %s: %s is a frozen dataclass", name, x.class.name)
	}
	return nil
}
