package pyfront

import (
	"strings"

	"go.starlark.net/syntax"
)

// simple reads a statement that fits a line.
func (p *parser) simple() []syntax.Stmt {
	pos := p.pos()
	if p.t.kind == name {
		if r, ok := refusedStatements[p.t.text]; ok {
			p.refuse(pos, r[0], r[1])
		}
		switch p.t.text {
		case "pass":
			p.advance()
			return []syntax.Stmt{&syntax.BranchStmt{Token: syntax.PASS, TokenPos: pos}}
		case "break", "continue":
			return []syntax.Stmt{p.branch()}
		case "return":
			p.advance()
			s := &syntax.ReturnStmt{Return: pos}
			if p.t.kind != newline && !p.is(";") {
				s.Result = p.tests()
			}
			return []syntax.Stmt{s}
		case "assert":
			return []syntax.Stmt{p.assert()}
		case "raise":
			return []syntax.Stmt{p.raise()}
		case "del":
			return p.del()
		case "import":
			return p.importStmt()
		case "from":
			return p.fromStmt()
		}
	}
	return p.exprStmt()
}

func (p *parser) branch() syntax.Stmt {
	t := p.advance()
	s := &syntax.BranchStmt{Token: syntax.BREAK, TokenPos: p.at(&t)}
	if t.text == "continue" {
		s.Token = syntax.CONTINUE
	}
	switch p.in {
	case noLoop:
		p.s.failf(t.line, t.col, "%s stands outside a loop", t.text)
	case withBlock:
		p.refuse(s.TokenPos, t.text+" that leaves a with block",
			"put the block into a function and return from it, or test a variable after the block")
	}
	return s
}

// assert lowers "assert x, why" to "if not x: <assert>(why)".
func (p *parser) assert() syntax.Stmt {
	pos := p.pos()
	p.advance()
	cond := p.test()
	fail := call(pos, "assert")
	if p.accept(",") {
		fail.Args = append(fail.Args, p.test())
	}
	return &syntax.IfStmt{If: pos, Cond: &syntax.UnaryExpr{OpPos: pos, Op: syntax.NOT, X: cond},
		True: []syntax.Stmt{&syntax.ExprStmt{X: fail}}}
}

// raise lowers "raise E(why)" to "<raise>('E', why)": nothing can catch it.
func (p *parser) raise() syntax.Stmt {
	pos := p.pos()
	p.advance()
	if p.t.kind == newline || p.is(";") {
		p.refuse(pos, "raise without an exception", "")
	}
	x := p.test()
	if p.is("from") {
		p.refuse(p.pos(), "raise ... from", "leave the from out")
	}
	var args []syntax.Expr
	if c, ok := x.(*syntax.CallExpr); ok {
		x, args = c.Fn, c.Args
	}
	if dot, ok := x.(*syntax.DotExpr); ok {
		x = dot.Name
	}
	id, ok := x.(*syntax.Ident)
	if !ok || strings.HasPrefix(id.Name, "<") {
		p.refuse(pos, "raise of an expression", "raise ValueError(\"...\")")
	}
	fail := call(pos, "raise", append([]syntax.Expr{literal(pos, id.Name)}, args...)...)
	return &syntax.ExprStmt{X: fail}
}

// del lowers "del x[k]" to "<del>(x, k)".
func (p *parser) del() []syntax.Stmt {
	pos := p.pos()
	p.advance()
	x := p.tests()
	list := []syntax.Expr{x}
	if t, ok := x.(*syntax.TupleExpr); ok {
		list = t.List
	}
	var stmts []syntax.Stmt
	for _, x := range list {
		index, ok := x.(*syntax.IndexExpr)
		if !ok {
			p.refuse(pos, "del of anything but an element", "del x[i] removes an element; a variable needs no del")
		}
		stmts = append(stmts, &syntax.ExprStmt{X: call(pos, "del", index.X, index.Y)})
	}
	return stmts
}

// augmented are the operators that change their left side.
var augmented = map[string]syntax.Token{
	"+=": syntax.PLUS_EQ, "-=": syntax.MINUS_EQ, "*=": syntax.STAR_EQ, "/=": syntax.SLASH_EQ, "//=": syntax.SLASHSLASH_EQ,
	"%=": syntax.PERCENT_EQ, "&=": syntax.AMP_EQ, "|=": syntax.PIPE_EQ, "^=": syntax.CIRCUMFLEX_EQ,
	"<<=": syntax.LTLT_EQ, ">>=": syntax.GTGT_EQ,
}

// exprStmt reads an expression or an assignment of any kind.
func (p *parser) exprStmt() []syntax.Stmt {
	x := p.tests()
	pos := p.pos()
	if op, ok := augmented[p.t.text]; ok && p.t.kind == operant {
		p.advance()
		return []syntax.Stmt{&syntax.AssignStmt{OpPos: pos, Op: op, LHS: p.target(x), RHS: p.tests()}}
	}
	switch {
	case p.accept("**="):
		id, ok := x.(*syntax.Ident)
		if !ok {
			p.refuse(pos, "**= of anything but a variable", "write x = x ** y")
		}
		p.target(x)
		again := &syntax.Ident{NamePos: id.NamePos, Name: id.Name}
		return []syntax.Stmt{assign(pos, id, call(pos, "pow", again, p.tests()))}
	case p.is("@="):
		p.refuse(pos, "matrix multiplication (@=)", "")
	case p.accept(":"): // an annotation
		p.target(x)
		p.test()
		if id, ok := x.(*syntax.Ident); ok && p.notes != nil {
			p.notes.List = append(p.notes.List, literal(id.NamePos, id.Name))
		}
		if pos := p.pos(); p.accept("=") {
			return []syntax.Stmt{assign(pos, x, p.tests())}
		}
		return nil
	case p.is("="):
		return p.assignments(x)
	}
	return []syntax.Stmt{&syntax.ExprStmt{X: x}}
}

// assignments reads a = b = value: the value is computed once, then assigned
// from left to right.
func (p *parser) assignments(first syntax.Expr) []syntax.Stmt {
	list := []syntax.Expr{first}
	var places []syntax.Position
	for p.is("=") {
		p.chain(len(list))
		places = append(places, p.pos())
		p.advance()
		list = append(list, p.tests())
	}
	targets, value := list[:len(list)-1], list[len(list)-1]
	for _, t := range targets {
		p.target(t)
	}
	if len(targets) == 1 {
		return []syntax.Stmt{assign(places[0], first, value)}
	}
	v := p.temp(places[0])
	stmts := []syntax.Stmt{assign(places[0], v, value)}
	for i, t := range targets {
		stmts = append(stmts, assign(places[i], t, &syntax.Ident{NamePos: places[i], Name: v.Name}))
	}
	return stmts
}

// importStmt lowers "import a.b as c" to "c = <import>('a.b')".
func (p *parser) importStmt() []syntax.Stmt {
	p.advance()
	var stmts []syntax.Stmt
	for {
		pos := p.pos()
		path := p.modulePath(pos)
		top, _, _ := strings.Cut(path, ".")
		to := &syntax.Ident{NamePos: pos, Name: top}
		if p.accept("as") {
			to, top = p.name("a name"), path
		}
		stmts = append(stmts, assign(pos, to, call(pos, "import", literal(pos, top))))
		if !p.accept(",") {
			return stmts
		}
	}
}

// modulePath reads the name of a module that exists here.
func (p *parser) modulePath(pos syntax.Position) string {
	if p.is(".") || p.is("...") {
		p.refuse(pos, "relative imports", "")
	}
	path := p.name("a module's name").Name
	for p.accept(".") {
		path += "." + p.name("a module's name").Name
	}
	if path != "__future__" && !knownModule(path) {
		m := refusal(p.diagPos(pos), "module "+path, "")
		if near := nearestModule(path); near != "" {
			m.Suggest("did you mean %s?", near)
		} else if inMSCCLPP(path) {
			m.Suggest("scripts can import mscclpp.language and its modules channel, collectives, general, loop, program, rank, thread_block_group, utils")
		} else {
			m.Suggest("scripts can import %s", strings.Join(topModules(), ", "))
		}
		panic(fatal{m})
	}
	return path
}

// fromStmt lowers "from m import a as b" to "b = <from>('m', 'a')".
func (p *parser) fromStmt() []syntax.Stmt {
	p.advance()
	path := p.modulePath(p.pos())
	p.expect("import")
	if pos := p.pos(); p.accept("*") {
		return p.fromAll(pos, path)
	}
	paren := p.accept("(")
	var stmts []syntax.Stmt
	for {
		id := p.name("a name")
		pos, from := id.NamePos, id.Name
		if p.accept("as") {
			id = p.name("a name")
		}
		switch {
		case path == "__future__":
		case !exports(path, from):
			panic(fatal{unknownImport(p.diagPos(pos), path, from)})
		default:
			stmts = append(stmts, assign(pos, id, call(pos, "from", literal(pos, path), literal(pos, from))))
		}
		if !p.accept(",") || paren && p.is(")") {
			break
		}
	}
	if paren {
		p.expect(")")
	}
	return stmts
}

// fromAll binds every name of a module.
func (p *parser) fromAll(pos syntax.Position, path string) []syntax.Stmt {
	to := &syntax.TupleExpr{Lparen: pos, Rparen: pos}
	c := call(pos, "from*", literal(pos, path))
	for _, n := range moduleNames(path) {
		to.List = append(to.List, &syntax.Ident{NamePos: pos, Name: n})
	}
	if len(to.List) == 0 {
		return nil
	}
	return []syntax.Stmt{assign(pos, to, c)}
}
