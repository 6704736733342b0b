package pyfront

import (
	"go.starlark.net/syntax"
)

// tests reads one expression, or several with commas as a tuple.
func (p *parser) tests() syntax.Expr {
	x := p.list(p.starred)
	t, ok := x.(*syntax.TupleExpr)
	if !ok || t.Lparen.IsValid() {
		t = &syntax.TupleExpr{List: []syntax.Expr{x}}
	}
	for _, e := range t.List {
		u, ok := e.(*syntax.UnaryExpr)
		switch {
		case !ok || u.Op != syntax.STAR:
			continue
		case p.is("="):
			p.refuse(u.OpPos, "starred targets", "take the rest with a slice")
		case x != syntax.Expr(t):
			p.unstarred(u)
		}
		pos := syntax.Start(t.List[0])
		return call(pos, "tuple", p.spliced(&syntax.ListExpr{Lbrack: pos, List: t.List, Rbrack: pos}))
	}
	return x
}

// targets reads what stands between for and in: the in must not be read as an
// operator.
func (p *parser) targets() syntax.Expr {
	return p.list(func() syntax.Expr { return p.binary(bitwise) })
}

func (p *parser) list(one func() syntax.Expr) syntax.Expr {
	first := one()
	if !p.is(",") {
		return first
	}
	t := &syntax.TupleExpr{List: []syntax.Expr{first}}
	for p.accept(",") {
		if p.endsList() {
			break
		}
		t.List = append(t.List, one())
	}
	return t
}

// endsList reports whether no expression can follow a comma here.
func (p *parser) endsList() bool {
	if p.t.kind == operant {
		switch p.t.text {
		case ")", "]", "}", "=", ":", ";":
			return true
		}
		_, ok := augmented[p.t.text]
		return ok
	}
	return p.t.kind == newline || p.t.kind == endOfFile || p.is("in")
}

// starred reads an expression that may have a star, which is for calls and, in
// Python, for more than can be done here.
func (p *parser) starred() syntax.Expr {
	if pos := p.pos(); p.accept("*") {
		return &syntax.UnaryExpr{OpPos: pos, Op: syntax.STAR, X: p.binary(bitwise)}
	}
	return p.test()
}

func (p *parser) unstarred(x syntax.Expr) syntax.Expr {
	if u, ok := x.(*syntax.UnaryExpr); ok && u.Op == syntax.STAR {
		p.refuse(u.OpPos, "starred expressions", "add the lists with +")
	}
	return x
}

// test reads an expression without commas.
func (p *parser) test() syntax.Expr {
	if p.depth++; p.depth > maxDepth {
		p.s.failf(p.t.line, p.t.col, "expressions are nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	if p.is("lambda") {
		return p.lambda()
	}
	x := p.or()
	if pos := p.pos(); p.accept("if") {
		c := &syntax.CondExpr{If: pos, True: x, Cond: p.or()}
		c.ElsePos = p.expect("else")
		c.False = p.test()
		return c
	}
	if p.is(":=") {
		p.unexpected("")
	}
	return x
}

func (p *parser) lambda() syntax.Expr {
	l := &syntax.LambdaExpr{Lambda: p.pos()}
	p.advance()
	l.Params = p.params(":", false)
	p.expect(":")
	attrs := p.attrs
	p.attrs = nil
	l.Body = p.test()
	p.attrs = attrs
	return l
}

func (p *parser) or() syntax.Expr  { return p.logical("or", syntax.OR, p.and) }
func (p *parser) and() syntax.Expr { return p.logical("and", syntax.AND, p.not) }

func (p *parser) logical(word string, op syntax.Token, operand func() syntax.Expr) syntax.Expr {
	x := operand()
	for n := 0; p.is(word); n++ {
		p.chain(n)
		pos := p.pos()
		p.advance()
		x = &syntax.BinaryExpr{X: x, OpPos: pos, Op: op, Y: operand()}
	}
	return x
}

func (p *parser) not() syntax.Expr {
	var nots []syntax.Position
	for p.is("not") {
		p.chain(len(nots) * (maxChain / maxDepth))
		nots = append(nots, p.pos())
		p.advance()
	}
	x := p.comparison()
	for i := len(nots) - 1; i >= 0; i-- {
		x = &syntax.UnaryExpr{OpPos: nots[i], Op: syntax.NOT, X: x}
	}
	return x
}

// comparer is a comparison operator; call is the function that does it where
// Starlark has none or means something else.
type comparer struct {
	pos  syntax.Position
	op   syntax.Token
	call string
}

// comparer passes a comparison operator, if that is next.
func (p *parser) comparer() (comparer, bool) {
	c := comparer{pos: p.pos()}
	switch p.t.text {
	case "<":
		c.op = syntax.LT
	case ">":
		c.op = syntax.GT
	case "<=":
		c.op = syntax.LE
	case ">=":
		c.op = syntax.GE
	case "==":
		c.call = "=="
	case "!=":
		c.call = "!="
	case "in", "is":
		c.call = p.t.text
	case "not":
		c.call = "not in"
	default:
		return c, false
	}
	if p.t.kind != operant && p.t.kind != name {
		return c, false
	}
	p.advance()
	switch {
	case c.call == "not in":
		p.expect("in")
	case c.call == "is" && p.accept("not"):
		c.call = "is not"
	}
	return c, true
}

// compare is x and y compared: == and != in parentheses, in which sameInStarlark may
// put something else.
func (c comparer) compare(x, y syntax.Expr) syntax.Expr {
	switch c.call {
	case "":
	case "==", "!=":
		return &syntax.ParenExpr{Lparen: c.pos, X: call(c.pos, c.call, x, y), Rparen: c.pos}
	default:
		return call(c.pos, c.call, x, y)
	}
	return &syntax.BinaryExpr{X: x, OpPos: c.pos, Op: c.op, Y: y}
}

// comparison reads a < b, and a < b < c as a < b and b < c with b computed once.
func (p *parser) comparison() syntax.Expr {
	x := p.binary(bitwise)
	op, ok := p.comparer()
	if !ok {
		return x
	}
	y := p.binary(bitwise)
	return p.compared(x, op, y, 1)
}

// compared is x op y and what follows y in the chain.
func (p *parser) compared(x syntax.Expr, op comparer, y syntax.Expr, n int) syntax.Expr {
	p.chain(n * (maxChain / maxDepth))
	next, ok := p.comparer()
	if !ok {
		return op.compare(x, y)
	}
	z := p.binary(bitwise)
	if again := simpleCopy(y); again != nil {
		return &syntax.BinaryExpr{X: op.compare(x, y), OpPos: next.pos, Op: syntax.AND, Y: p.compared(again, next, z, n+1)}
	}
	// (lambda left, middle: left op middle and middle next z)(x, y)
	left, middle := p.temp(op.pos), p.temp(next.pos)
	use := func(id *syntax.Ident) *syntax.Ident { return &syntax.Ident{NamePos: id.NamePos, Name: id.Name} }
	body := &syntax.BinaryExpr{X: op.compare(use(left), use(middle)), OpPos: next.pos, Op: syntax.AND,
		Y: p.compared(use(middle), next, z, n+1)}
	fn := &syntax.LambdaExpr{Lambda: op.pos, Params: []syntax.Expr{left, middle}, Body: body}
	return &syntax.CallExpr{Fn: fn, Lparen: op.pos, Args: []syntax.Expr{x, y}, Rparen: op.pos}
}

// simpleCopy is a second x, if computing x twice is as good as once, else nil.
func simpleCopy(x syntax.Expr) syntax.Expr {
	switch x := x.(type) {
	case *syntax.Ident:
		return &syntax.Ident{NamePos: x.NamePos, Name: x.Name}
	case *syntax.Literal:
		c := *x
		return &c
	}
	return nil
}

// Levels of the binary operators, loosest first.
const bitwise = 0

var levels = [...]map[string]syntax.Token{
	{"|": syntax.PIPE},
	{"^": syntax.CIRCUMFLEX},
	{"&": syntax.AMP},
	{"<<": syntax.LTLT, ">>": syntax.GTGT},
	{"+": syntax.PLUS, "-": syntax.MINUS},
	{"*": syntax.STAR, "/": syntax.SLASH, "//": syntax.SLASHSLASH, "%": syntax.PERCENT},
}

func (p *parser) binary(level int) syntax.Expr {
	if level == len(levels) {
		return p.factor()
	}
	x := p.binary(level + 1)
	for n := 0; p.t.kind == operant; n++ {
		op, ok := levels[level][p.t.text]
		if !ok {
			if p.is("@") && level == len(levels)-1 {
				p.refuse(p.pos(), "matrix multiplication (@)", "")
			}
			break
		}
		p.chain(n)
		pos := p.pos()
		p.advance()
		y := p.binary(level + 1)
		if op == syntax.PERCENT && isText(x) {
			x = call(pos, "%", x, y)
			continue
		}
		x = &syntax.BinaryExpr{X: x, OpPos: pos, Op: op, Y: y}
	}
	return x
}

// isText reports whether x is a string whatever the script does.
func isText(x syntax.Expr) bool {
	switch x := x.(type) {
	case *syntax.Literal:
		return x.Token == syntax.STRING
	case *syntax.ParenExpr:
		return isText(x.X)
	case *syntax.CallExpr:
		id, ok := x.Fn.(*syntax.Ident)
		return ok && id.Name == "<str>"
	}
	return false
}

var signs = map[string]syntax.Token{"-": syntax.MINUS, "+": syntax.PLUS, "~": syntax.TILDE}

func (p *parser) factor() syntax.Expr {
	if op, ok := signs[p.t.text]; ok && p.t.kind == operant {
		if p.depth++; p.depth > maxDepth {
			p.s.failf(p.t.line, p.t.col, "expressions are nested more than %d deep", maxDepth)
		}
		defer func() { p.depth-- }()
		pos := p.pos()
		p.advance()
		return &syntax.UnaryExpr{OpPos: pos, Op: op, X: p.factor()}
	}
	x := p.postfix()
	if pos := p.pos(); p.accept("**") {
		if p.depth++; p.depth > maxDepth {
			p.s.failf(p.t.line, p.t.col, "expressions are nested more than %d deep", maxDepth)
		}
		defer func() { p.depth-- }()
		return call(pos, "pow", x, p.factor())
	}
	return x
}
