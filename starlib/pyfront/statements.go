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
		return p.decorated()
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
		s := p.forStmt()
		return p.elseOf(s, s.For, &s.Body)
	case "while":
		s := p.whileStmt()
		return p.elseOf(s, s.While, &s.Body)
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

// elseOf reads the else of a loop, if there is one. It becomes a block behind the
// loop that runs if no break has set a variable.
func (p *parser) elseOf(loop syntax.Stmt, pos syntax.Position, body *[]syntax.Stmt) []syntax.Stmt {
	at := p.pos()
	if !p.accept("else") {
		return []syntax.Stmt{loop}
	}
	left := p.temp(pos)
	flag := func(pos syntax.Position) *syntax.Ident { return &syntax.Ident{NamePos: pos, Name: left.Name} }
	set := func(pos syntax.Position, v string) syntax.Stmt {
		return assign(pos, flag(pos), &syntax.Ident{NamePos: pos, Name: v})
	}
	*body = beforeBreaks(*body, func(pos syntax.Position) syntax.Stmt { return set(pos, "True") })
	otherwise := &syntax.IfStmt{If: at, Cond: &syntax.UnaryExpr{OpPos: at, Op: syntax.NOT, X: flag(at)}, True: p.block(p.in)}
	return []syntax.Stmt{set(pos, "False"), loop, otherwise}
}

// beforeBreaks puts a statement before every break that leaves the loop whose
// body list is.
func beforeBreaks(list []syntax.Stmt, make func(syntax.Position) syntax.Stmt) []syntax.Stmt {
	var out []syntax.Stmt
	for _, s := range list {
		switch s := s.(type) {
		case *syntax.BranchStmt:
			if s.Token == syntax.BREAK {
				out = append(out, make(s.TokenPos))
			}
		case *syntax.IfStmt:
			s.True = beforeBreaks(s.True, make)
			if s.False != nil {
				s.False = beforeBreaks(s.False, make)
			}
		}
		out = append(out, s)
	}
	return out
}

func (p *parser) forStmt() *syntax.ForStmt {
	s := &syntax.ForStmt{For: p.pos()}
	p.advance()
	s.Vars = p.target(p.targets())
	in := p.expect("in")
	s.X = call(in, "iter", p.tests())
	s.Body = p.block(loop)
	return s
}

func (p *parser) whileStmt() *syntax.WhileStmt {
	s := &syntax.WhileStmt{While: p.pos()}
	p.advance()
	s.Cond = p.test()
	s.Body = p.block(loop)
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
	attrs, outer, notes := p.attrs, p.method, p.notes
	p.attrs, p.method, p.notes = nil, nil, nil
	if outer != nil && outer.self == "" { // just entering a method
		outer.self = firstParam(s.Params)
		p.method = outer
	}
	s.Body = p.block(noLoop)
	p.attrs, p.method, p.notes = attrs, outer, notes
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
// C = <class>("C", (B,), [("n", C.n), ("f", C.f)], []), the last for fields with an
// annotation.
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
	attrs, outer, notes := p.attrs, p.method, p.notes
	p.attrs, p.notes = attributes{}, &syntax.ListExpr{Lbrack: pos, Rbrack: pos}
	b.read()
	made := call(id.NamePos, "class", literal(id.NamePos, id.Name), bases, b.fields, p.notes)
	p.attrs, p.method, p.notes = attrs, outer, notes
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
		if !p.is("def") && !p.is("@") {
			b.line()
			continue
		}
		first, list := p.decorators()
		if !p.is("def") {
			p.unexpected("def")
		}
		p.method = &method{class: b.name}
		def := p.defStmt()
		b.field(def.Name)
		b.stmts = append(append(append(b.stmts, first...), def), apply(list, def.Name)...)
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
