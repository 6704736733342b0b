package pyfront

import (
	"go.starlark.net/syntax"
)

// statement reads one statement, or one line of simple ones.
func (p *parser) statement() []syntax.Stmt {
	if p.t.kind == indent {
		p.s.failf(p.t.line, p.t.col, "this line is indented, but no block begins before it")
	}
	if p.t.kind == newline {
		p.advance()
		return nil
	}
	if p.is("@") {
		p.refuse(p.pos(), "decorators", "call the function that would decorate")
	}
	if p.t.kind != name {
		return p.simpleLine()
	}
	if r, ok := refusedStatements[p.t.text]; ok {
		p.refuse(p.pos(), r[0], r[1])
	}
	switch p.t.text {
	case "if":
		return []syntax.Stmt{p.ifStmt(0)}
	case "for":
		return []syntax.Stmt{p.forStmt()}
	case "while":
		return []syntax.Stmt{p.whileStmt()}
	case "with":
		return []syntax.Stmt{p.withStmt()}
	case "def":
		return []syntax.Stmt{p.defStmt()}
	case "class":
		return p.classStmt()
	}
	return p.simpleLine()
}

// simpleLine reads statements up to the end of the line.
func (p *parser) simpleLine() []syntax.Stmt {
	var list []syntax.Stmt
	for {
		list = append(list, p.simple()...)
		if !p.accept(";") || p.t.kind == newline {
			break
		}
	}
	if p.t.kind != newline {
		p.unexpected("the end of the line")
	}
	p.advance()
	return list
}

// block reads the suite of a compound statement, whose breaks leave in.
func (p *parser) block(in enclosing) []syntax.Stmt {
	outer := p.in
	p.in = in
	defer func() { p.in = outer }()
	p.expect(":")
	if p.t.kind != newline {
		return p.filled(p.simpleLine(), p.pos())
	}
	p.advance()
	if p.t.kind != indent {
		p.unexpected("an indented block")
	}
	pos := p.pos()
	p.advance()
	var list []syntax.Stmt
	for p.t.kind != dedent {
		list = append(list, p.statement()...)
	}
	p.advance()
	return p.filled(list, pos)
}

// filled is the list with one statement at least, as the tree wants it.
func (p *parser) filled(list []syntax.Stmt, pos syntax.Position) []syntax.Stmt {
	if len(list) == 0 {
		return []syntax.Stmt{&syntax.BranchStmt{Token: syntax.PASS, TokenPos: pos}}
	}
	return list
}

func (p *parser) ifStmt(n int) syntax.Stmt {
	p.chain(n * (maxChain / 1000)) // each elif is a level of blocks
	s := &syntax.IfStmt{If: p.pos()}
	p.advance()
	s.Cond = p.test()
	s.True = p.block(p.in)
	s.ElsePos = p.pos()
	switch {
	case p.is("elif"):
		s.False = []syntax.Stmt{p.ifStmt(n + 1)}
	case p.accept("else"):
		s.False = p.block(p.in)
	}
	return s
}

func (p *parser) noElse(of string) {
	if p.is("else") {
		p.refuse(p.pos(), "else of a "+of+" loop", "set a variable before break and test it after the loop")
	}
}

func (p *parser) forStmt() syntax.Stmt {
	s := &syntax.ForStmt{For: p.pos()}
	p.advance()
	s.Vars = p.target(p.targets())
	p.expect("in")
	s.X = p.tests()
	s.Body = p.block(loop)
	p.noElse("for")
	return s
}

func (p *parser) whileStmt() syntax.Stmt {
	s := &syntax.WhileStmt{While: p.pos()}
	p.advance()
	s.Cond = p.test()
	s.Body = p.block(loop)
	p.noElse("while")
	return s
}

// withStmt lowers with to a loop over a value that yields once.
func (p *parser) withStmt() syntax.Stmt {
	pos := p.pos()
	p.advance()
	type item struct{ x, as syntax.Expr }
	var items []item
	for {
		it := item{x: p.test(), as: hidden(pos, "none")}
		if p.accept("as") {
			it.as = p.target(p.postfix())
		}
		items = append(items, it)
		if !p.accept(",") {
			break
		}
	}
	body := p.block(withBlock)
	for i := len(items) - 1; i >= 0; i-- {
		body = []syntax.Stmt{&syntax.ForStmt{For: pos, Vars: items[i].as, X: call(pos, "with", items[i].x), Body: body}}
	}
	return body[0]
}

func (p *parser) defStmt() *syntax.DefStmt {
	s := &syntax.DefStmt{Def: p.pos()}
	p.advance()
	s.Name = p.name("the function's name")
	s.Lparen = p.expect("(")
	s.Params = p.params(")", true)
	s.Rparen = p.expect(")")
	if p.accept("->") {
		p.test()
	}
	p.body(s)
	return s
}

// body reads a function's body, where nothing of the class around it is known.
func (p *parser) body(s *syntax.DefStmt) {
	attrs, outer := p.attrs, p.method
	p.attrs, p.method = nil, nil
	if outer != nil && outer.self == "" { // just entering a method
		outer.self = firstParam(s.Params)
		p.method = outer
	}
	s.Body = p.block(noLoop)
	p.attrs, p.method = attrs, outer
}

func firstParam(params []syntax.Expr) string {
	if len(params) > 0 {
		if id, ok := params[0].(*syntax.Ident); ok {
			return id.Name
		}
	}
	return "<none>"
}

// params reads parameters up to the closing token; annotations are for def only.
func (p *parser) params(closing string, annotated bool) []syntax.Expr {
	var list []syntax.Expr
	note := func() {
		if annotated && p.accept(":") {
			p.test()
		}
	}
	for !p.is(closing) {
		pos := p.pos()
		switch {
		case p.is("/"):
			p.refuse(pos, "positional-only parameters", "leave the / out")
		case p.accept("*"):
			star := &syntax.UnaryExpr{OpPos: pos, Op: syntax.STAR}
			if !p.is(",") {
				star.X = p.name("a parameter's name")
				note()
			}
			list = append(list, star)
		case p.accept("**"):
			list = append(list, &syntax.UnaryExpr{OpPos: pos, Op: syntax.STARSTAR, X: p.name("a parameter's name")})
			note()
		default:
			id := p.name("a parameter's name")
			note()
			var param syntax.Expr = id
			if eq := p.pos(); p.accept("=") {
				param = &syntax.BinaryExpr{X: id, OpPos: eq, Op: syntax.EQ, Y: p.test()}
			}
			list = append(list, param)
		}
		if !p.accept(",") {
			break
		}
	}
	return list
}

// classStmt lowers a class to its functions and a call that makes it:
//
//	class C(B):
//	    n = 1
//	    def f(self): ...
//
// becomes definitions of C.n and C.f, names that no script can spell, and
// C = <class>("C", (B,), [("n", C.n), ("f", C.f)]).
func (p *parser) classStmt() []syntax.Stmt {
	pos := p.pos()
	p.advance()
	id := p.name("the class's name")
	bases := &syntax.TupleExpr{Lparen: pos, Rparen: pos}
	if p.accept("(") {
		for !p.is(")") {
			if p.is("*") || p.is("**") {
				p.refuse(p.pos(), "classes with starred bases", "")
			}
			bases.List = append(bases.List, p.test())
			if p.is("=") {
				p.refuse(p.pos(), "metaclasses and other class arguments", "")
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
	}
	b := &classBody{p: p, name: id.Name, fields: &syntax.ListExpr{Lbrack: pos, Rbrack: pos}}
	attrs, outer := p.attrs, p.method
	p.attrs = attributes{}
	b.read()
	p.attrs, p.method = attrs, outer
	made := call(id.NamePos, "class", literal(id.NamePos, id.Name), bases, b.fields)
	return append(b.stmts, assign(pos, id, made))
}

// classBody is what the statements of a class become.
type classBody struct {
	p      *parser
	name   string
	stmts  []syntax.Stmt
	fields *syntax.ListExpr
}

func (b *classBody) read() {
	p := b.p
	p.expect(":")
	if p.t.kind != newline {
		b.line()
		return
	}
	p.advance()
	if p.t.kind != indent {
		p.unexpected("an indented block")
	}
	p.advance()
	for p.t.kind != dedent {
		if !p.is("def") {
			b.line()
			continue
		}
		p.method = &method{class: b.name}
		def := p.defStmt()
		b.field(def.Name)
		b.stmts = append(b.stmts, def)
	}
	p.advance()
}

// field gives the name of a class's body the name that it has outside.
func (b *classBody) field(id *syntax.Ident) {
	outside := b.name + "." + id.Name
	pair := &syntax.TupleExpr{Lparen: id.NamePos, Rparen: id.NamePos, List: []syntax.Expr{
		literal(id.NamePos, id.Name), &syntax.Ident{NamePos: id.NamePos, Name: outside}}}
	b.fields.List = append(b.fields.List, pair)
	b.p.attrs[id.Name] = outside
	id.Name = outside
}

// line reads the statements of one line of a class's body: assignments, strings
// and pass.
func (b *classBody) line() {
	p := b.p
	if p.t.kind == newline {
		p.advance()
		return
	}
	pos := p.pos()
	if p.is("@") {
		p.refuse(pos, "decorators", "call the function that would decorate")
	}
	what := p.t.text
	if p.t.kind == name && keywords[what] && what != "pass" {
		p.refuse(pos, what+" in the body of a class", "put it into __init__")
	}
	for _, s := range p.simpleLine() {
		switch s := s.(type) {
		case *syntax.AssignStmt:
			id, ok := s.LHS.(*syntax.Ident)
			if !ok || s.Op != syntax.EQ {
				p.refuse(pos, "assignments of this form in the body of a class", "put it into __init__")
			}
			b.field(id)
			b.stmts = append(b.stmts, s)
		case *syntax.BranchStmt:
		case *syntax.ExprStmt:
			if _, ok := s.X.(*syntax.Literal); !ok {
				p.refuse(pos, "expressions in the body of a class", "put it into __init__")
			}
		default:
			p.refuse(pos, "statements of this form in the body of a class", "put it into __init__")
		}
	}
}
