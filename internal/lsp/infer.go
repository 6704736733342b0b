package lsp

import (
	"strings"

	"go.starlark.net/syntax"
)

// maxInfer bounds how far a type is followed.
const maxInfer = 12

const listOf = "list of "

// infer is the type of an expression that stands at an offset, in the words of the
// signature table; "" is unknown.
func (l *language) infer(x *tree, e syntax.Expr, offset, depth int) string {
	if depth > maxInfer {
		return ""
	}
	depth++
	switch e := e.(type) {
	case *syntax.Literal:
		switch e.Token {
		case syntax.INT:
			return "int"
		case syntax.FLOAT:
			return "float"
		case syntax.STRING:
			return "string"
		}
	case *syntax.ParenExpr:
		return l.infer(x, e.X, offset, depth)
	case *syntax.Ident:
		return l.nameType(x, e, offset, depth)
	case *syntax.CallExpr:
		return l.callType(x, e, offset, depth)
	case *syntax.DotExpr:
		return l.fieldType(l.infer(x, e.X, offset, depth), e.Name.Name)
	case *syntax.IndexExpr:
		return element(l.infer(x, e.X, offset, depth))
	case *syntax.SliceExpr:
		typ := l.infer(x, e.X, offset, depth)
		if typ == "Buffer" { // of a one-sided program
			return "Chunk"
		}
		return typ
	case *syntax.ListExpr:
		if len(e.List) == 0 {
			return "list"
		}
		return listType(l.infer(x, e.List[0], offset, depth))
	case *syntax.Comprehension:
		if e.Curly {
			return "dict"
		}
		return listType(l.infer(x, e.Body, offset, depth))
	case *syntax.DictExpr:
		return "dict"
	case *syntax.CondExpr:
		if t := l.infer(x, e.True, offset, depth); t != "" {
			return t
		}
		return l.infer(x, e.False, offset, depth)
	case *syntax.BinaryExpr:
		if e.Op == syntax.PLUS || e.Op == syntax.OR {
			return l.infer(x, e.X, offset, depth)
		}
	}
	return ""
}

func listType(elem string) string {
	if elem == "" {
		return "list"
	}
	return listOf + elem
}

// element is the type of a list's elements.
func element(typ string) string {
	elem, _ := strings.CutPrefix(typ, listOf)
	if elem == typ {
		return ""
	}
	return elem
}

func (l *language) nameType(x *tree, id *syntax.Ident, offset, depth int) string {
	first := firstOf(id)
	if first == nil {
		first = x.lookup(id.Name, offset)
	}
	if first != nil {
		return l.boundType(x, first, depth)
	}
	if id.Name == "True" || id.Name == "False" {
		return "bool"
	}
	if _, ok := l.modules[id.Name]; ok {
		return id.Name
	}
	return ""
}

// boundType is the type of a name that the file binds: that of the first of its
// values whose type is known.
func (l *language) boundType(x *tree, first *syntax.Ident, depth int) string {
	if depth > maxInfer {
		return ""
	}
	for _, o := range x.source[first] {
		if t := l.originType(x, o, depth+1); t != "" {
			return t
		}
	}
	return ""
}

func (l *language) originType(x *tree, o origin, depth int) string {
	switch {
	case o.def != nil:
		return "function"
	case o.param != nil:
		return l.paramType(x, o.param, o.index, depth)
	case o.x == nil:
		return ""
	}
	offset := x.at(syntax.Start(o.x))
	if o.index >= 0 {
		if part := partOf(o.x, o.index); part != nil && !o.elem {
			return l.infer(x, part, offset, depth)
		}
	}
	t := l.infer(x, o.x, offset, depth)
	if o.elem {
		t = element(t)
	}
	if o.index >= 0 {
		t = element(t)
	}
	return t
}

// partOf is the part of a tuple or list that is written out.
func partOf(e syntax.Expr, i int) syntax.Expr {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return partOf(e.X, i)
	case *syntax.TupleExpr:
		if i < len(e.List) {
			return e.List[i]
		}
	case *syntax.ListExpr:
		if i < len(e.List) {
			return e.List[i]
		}
	}
	return nil
}

// paramType is the type of what a function of the file is called with.
func (l *language) paramType(x *tree, def *syntax.DefStmt, i, depth int) string {
	id := paramName(def.Params[i])
	if id == nil {
		return ""
	}
	if _, variadic := def.Params[i].(*syntax.UnaryExpr); variadic {
		return ""
	}
	for _, call := range x.calls[firstOf(def.Name)] {
		for j, a := range call.Args {
			kw, isKeyword := a.(*syntax.BinaryExpr)
			isKeyword = isKeyword && kw.Op == syntax.EQ
			arg := a
			if isKeyword {
				name, ok := kw.X.(*syntax.Ident)
				if !ok || name.Name != id.Name {
					continue
				}
				arg = kw.Y
			} else if j != i {
				continue
			}
			if t := l.infer(x, arg, x.at(syntax.Start(arg)), depth+1); t != "" {
				return t
			}
		}
	}
	if d, ok := def.Params[i].(*syntax.BinaryExpr); ok {
		return l.infer(x, d.Y, x.at(syntax.Start(d.Y)), depth+1)
	}
	return ""
}

func (l *language) callType(x *tree, call *syntax.CallExpr, offset, depth int) string {
	switch fn := call.Fn.(type) {
	case *syntax.Ident:
		first := firstOf(fn)
		if first == nil {
			first = x.lookup(fn.Name, offset)
		}
		if first != nil {
			if def := x.def(first); def != nil {
				return l.returnType(x, def, depth)
			}
			return ""
		}
		switch fn.Name {
		case "range":
			return listOf + "int"
		case "reversed", "sorted", "list":
			if len(call.Args) == 1 {
				return l.infer(x, call.Args[0], offset, depth)
			}
		case "len", "int", "abs":
			return "int"
		case "str":
			return "string"
		case "param":
			if len(call.Args) > 1 {
				return l.infer(x, call.Args[1], offset, depth)
			}
		}
		if s := l.sigs[fn.Name]; s != nil {
			return s.Result
		}
	case *syntax.DotExpr:
		if s := l.method(l.infer(x, fn.X, offset, depth), fn.Name.Name); s != nil {
			return s.Result
		}
	}
	return ""
}

// returnType is the type of the first return whose type is known.
func (l *language) returnType(x *tree, def *syntax.DefStmt, depth int) string {
	typ := ""
	for _, s := range def.Body {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.DefStmt, *syntax.LambdaExpr:
				return false
			case *syntax.ReturnStmt:
				if typ == "" && n.Result != nil {
					typ = l.infer(x, n.Result, x.at(syntax.Start(n.Result)), depth+1)
				}
			}
			return typ == ""
		})
	}
	return typ
}

func (l *language) fieldType(recv, name string) string {
	switch recv + "." + name {
	case "program.topo":
		return "topology"
	case "program.collective":
		return "collective"
	case "program.name", "program.protocol", "collective.name", "topology.name", "Buffer.input", "Buffer.output":
		return "string"
	case "CollectiveProgram.collective":
		return "collective"
	case "CollectiveProgram.name", "CollectiveProgram.protocol":
		return "string"
	case "topology.links":
		return listOf + listOf + "float"
	case "ref.rank", "ref.index", "ref.size", "program.num_ranks", "program.instances", "Chunk.rank", "Chunk.index", "Chunk.size", "collective.num_ranks", "collective.chunk_factor":
		return "int"
	case "collective.inplace":
		return "bool"
	}
	return ""
}
