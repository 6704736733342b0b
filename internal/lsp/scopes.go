package lsp

import (
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"
)

// scope is a function, or a comprehension, that an offset is in.
type scope struct {
	def   *syntax.DefStmt // nil for a comprehension or a lambda
	names []*syntax.Ident // that it binds
}

// scopes are those around an offset, innermost first.
func (x *tree) scopes(offset int) []scope {
	var list []scope
	if x.file == nil {
		return nil
	}
	syntax.Walk(x.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DefStmt:
			if x.inside(n, offset) {
				s := scope{def: n}
				if fn, ok := n.Function.(*resolve.Function); ok {
					s.names = firsts(fn.Locals)
				}
				list = append([]scope{s}, list...)
			}
		case *syntax.LambdaExpr:
			if fn, ok := n.Function.(*resolve.Function); ok && x.spans(n, offset) {
				list = append([]scope{{names: firsts(fn.Locals)}}, list...)
			}
		case *syntax.Comprehension:
			if x.spans(n, offset) {
				var s scope
				for _, c := range n.Clauses {
					if f, ok := c.(*syntax.ForClause); ok {
						syntax.Walk(f.Vars, func(v syntax.Node) bool {
							if id, ok := v.(*syntax.Ident); ok && firstOf(id) != nil {
								s.names = append(s.names, firstOf(id))
							}
							return true
						})
					}
				}
				list = append([]scope{s}, list...)
			}
		}
		return true
	})
	return list
}

func firsts(list []*resolve.Binding) []*syntax.Ident {
	var out []*syntax.Ident
	for _, b := range list {
		if b.First != nil && isName(b.First.Name) { // a with without a name binds one that can't be spelled
			out = append(out, b.First)
		}
	}
	return out
}

func (x *tree) spans(n syntax.Node, offset int) bool {
	from, to := n.Span()
	return x.at(from) <= offset && offset <= x.at(to)
}

// inside reports whether an offset is in a function, the blank lines at its end
// included if they are indented.
func (x *tree) inside(def *syntax.DefStmt, offset int) bool {
	from, to := def.Span()
	start, end := x.at(from), x.at(to)
	if offset <= start || offset <= end {
		return offset > start
	}
	col := start - x.text.starts[x.text.lineOf(start)]
	for i, s := range x.stmts {
		if at := x.tokens[s.first].from; at > end && at <= offset && x.indent(i) <= col {
			return false
		}
	}
	n := x.text.lineOf(offset)
	line := x.text.line(n)
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	if indent == len(line) {
		indent = offset - x.text.starts[n]
	}
	return indent > col
}

// lookup finds where the name that is used at an offset is bound; nil for a name
// that the file doesn't bind.
func (x *tree) lookup(name string, offset int) *syntax.Ident {
	if id := x.idents[offset]; id != nil && id.Name == name {
		return firstOf(id)
	}
	for _, s := range x.scopes(offset) {
		for _, id := range s.names {
			if id.Name == name {
				return id
			}
		}
	}
	return named(x.names(), name)
}

// global is where the file binds a name of its own.
func (x *tree) global(name string) *syntax.Ident { return named(x.globals(), name) }

func named(list []*syntax.Ident, name string) *syntax.Ident {
	for _, id := range list {
		if id.Name == name {
			return id
		}
	}
	return nil
}

// names are those that all of the file sees: its own and those that it loads.
func (x *tree) names() []*syntax.Ident {
	list := x.globals()
	for _, l := range x.loads {
		for _, id := range l.To {
			if first := firstOf(id); first != nil {
				list = append(list, first)
			}
		}
	}
	return list
}

// globals are the names that the file binds, and that others can load.
func (x *tree) globals() []*syntax.Ident {
	if x.file == nil {
		return nil
	}
	m, ok := x.file.Module.(*resolve.Module)
	if !ok {
		return nil
	}
	return firsts(m.Globals)
}

// def is the function that a name stands for, if all it ever is is one.
func (x *tree) def(first *syntax.Ident) *syntax.DefStmt {
	if list := x.source[first]; len(list) == 1 {
		return list[0].def
	}
	return nil
}
