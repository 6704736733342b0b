package pyfront

import (
	"math/big"

	"go.starlark.net/syntax"
)

// postfix reads a primary expression with its calls, fields and subscripts.
func (p *parser) postfix() syntax.Expr {
	x := p.primary()
	for n := 0; ; n++ {
		p.chain(n * (maxChain / 1000))
		switch {
		case p.is("("):
			x = p.callOf(x)
		case p.is("["):
			x = p.subscript(x)
		case p.is("."):
			p.advance()
			id := p.name("a field's name")
			x = &syntax.DotExpr{X: x, Dot: id.NamePos, NamePos: id.NamePos, Name: id}
		default:
			return x
		}
	}
}

// extraMethods are the methods of Python's lists, dicts and strings that
// Starlark's lack, or do otherwise.
var extraMethods = map[string]bool{"copy": true, "sort": true, "reverse": true, "count": true, "format": true,
	"pop": true, "zfill": true, "ljust": true, "rjust": true, "center": true}

// callOf reads the arguments of a call of fn. Its position is the name's, which
// is what errors and instructions show.
func (p *parser) callOf(fn syntax.Expr) syntax.Expr {
	c := &syntax.CallExpr{Fn: fn, Lparen: p.pos()}
	p.advance()
	c.Args = p.args()
	c.Rparen = p.expect(")")
	switch f := fn.(type) {
	case *syntax.Ident:
		c.Lparen = f.NamePos
		if f.Name == "super" && len(c.Args) == 0 && p.method != nil {
			c.Args = []syntax.Expr{&syntax.Ident{NamePos: f.NamePos, Name: p.method.class},
				&syntax.Ident{NamePos: f.NamePos, Name: p.method.self}}
		}
	case *syntax.DotExpr:
		c.Lparen = f.NamePos
		if extraMethods[f.Name.Name] && !(f.Name.Name == "copy" && len(c.Args) > 0) {
			c.Fn = call(f.NamePos, "method", f.X, literal(f.NamePos, f.Name.Name))
		}
	}
	return c
}

func (p *parser) args() []syntax.Expr {
	var list []syntax.Expr
	for !p.is(")") {
		pos := p.pos()
		switch {
		case p.accept("**"):
			list = append(list, &syntax.UnaryExpr{OpPos: pos, Op: syntax.STARSTAR, X: p.test()})
		default:
			x := p.starred()
			switch eq := p.pos(); {
			case p.is("for"):
				list = append(list, p.comprehension(pos, x, false))
				p.unstarred(x)
				if len(list) > 1 || !p.is(")") {
					p.s.failf(pos.Line, pos.Col, "a generator beside other arguments needs parentheses")
				}
				return list
			case p.is("="):
				id, ok := x.(*syntax.Ident)
				if !ok {
					p.s.failf(p.t.line, p.t.col, "want a parameter's name before the =")
				}
				p.advance()
				list = append(list, &syntax.BinaryExpr{X: id, OpPos: eq, Op: syntax.EQ, Y: p.test()})
			default:
				list = append(list, x)
			}
		}
		if !p.accept(",") {
			break
		}
	}
	return list
}

// subscript reads x[i], x[i, j] or x[lo:hi:step].
func (p *parser) subscript(x syntax.Expr) syntax.Expr {
	open := p.pos()
	p.advance()
	var parts [3]syntax.Expr
	n := 0
	for {
		if !p.is(":") && !p.is("]") {
			parts[n] = p.tests()
			if n > 0 || p.is(":") {
				p.unstarred(parts[n])
			}
		}
		if n == 2 || !p.accept(":") {
			break
		}
		n++
	}
	end := p.expect("]")
	if n > 0 {
		return &syntax.SliceExpr{X: x, Lbrack: open, Lo: parts[0], Hi: parts[1], Step: parts[2], Rbrack: end}
	}
	if parts[0] == nil {
		p.s.failf(end.Line, end.Col, "got ']', want an index")
	}
	return &syntax.IndexExpr{X: x, Lbrack: open, Y: p.unstarred(parts[0]), Rbrack: end}
}

// primary reads a name, a literal or something in brackets.
func (p *parser) primary() syntax.Expr {
	pos := p.pos()
	switch {
	case p.t.kind == quoted:
		return p.strings()
	case p.t.kind == number:
		return p.numberLiteral()
	case p.is("("):
		return p.parens()
	case p.is("["):
		return p.brackets()
	case p.is("{"):
		return p.braces()
	case p.is("..."):
		p.refuse(pos, "... as a value", "pass does nothing")
	case p.t.kind == name && (p.t.text == "True" || p.t.text == "False" || p.t.text == "None"):
		t := p.advance()
		return &syntax.Ident{NamePos: pos, Name: t.text}
	}
	id := p.name("an expression")
	if outside, ok := p.attrs[id.Name]; ok {
		id.Name = outside
	}
	return id
}

func (p *parser) numberLiteral() syntax.Expr {
	t := p.advance()
	l := &syntax.Literal{Token: syntax.INT, TokenPos: p.at(&t), Raw: t.text, Value: t.value}
	switch v := t.value.(type) {
	case float64:
		l.Token = syntax.FLOAT
	case *big.Int:
		l.Value = v
	}
	return l
}

func (p *parser) parens() syntax.Expr {
	open := p.pos()
	p.advance()
	if p.is(")") {
		return &syntax.TupleExpr{Lparen: open, Rparen: p.expect(")")}
	}
	if p.is("yield") {
		p.unexpected("")
	}
	x := p.tests()
	if p.is("for") {
		x = p.comprehension(open, p.unstarred(x), false)
	}
	end := p.expect(")")
	if t, ok := x.(*syntax.TupleExpr); ok && !t.Lparen.IsValid() {
		t.Lparen, t.Rparen = open, end
		return t
	}
	return &syntax.ParenExpr{Lparen: open, X: p.unstarred(x), Rparen: end}
}

func (p *parser) brackets() syntax.Expr {
	open := p.pos()
	p.advance()
	l := &syntax.ListExpr{Lbrack: open}
	for !p.is("]") {
		x := p.starred()
		if p.is("for") && len(l.List) == 0 {
			c := p.comprehension(open, p.unstarred(x), false)
			p.expect("]")
			return c
		}
		l.List = append(l.List, x)
		if !p.accept(",") {
			break
		}
	}
	l.Rbrack = p.expect("]")
	return p.spliced(l)
}

// spliced is a list with starred elements as a sum of lists: [1, *x, 2] is
// [1] + <list>(x) + [2].
func (p *parser) spliced(l *syntax.ListExpr) syntax.Expr {
	var sum syntax.Expr
	add := func(pos syntax.Position, x syntax.Expr) {
		if sum != nil {
			x = &syntax.BinaryExpr{X: sum, OpPos: pos, Op: syntax.PLUS, Y: x}
		}
		sum = x
	}
	first, starred := 0, 0
	run := func(end int, pos syntax.Position) {
		if first < end {
			add(pos, &syntax.ListExpr{Lbrack: l.Lbrack, List: l.List[first:end], Rbrack: l.Rbrack})
		}
		first = end + 1
	}
	for i, x := range l.List {
		if u, ok := x.(*syntax.UnaryExpr); ok && u.Op == syntax.STAR {
			p.chain(starred * (maxChain / maxDepth))
			starred++
			run(i, u.OpPos)
			add(u.OpPos, call(u.OpPos, "list", u.X))
		}
	}
	if starred == 0 {
		return l
	}
	run(len(l.List), l.Rbrack)
	return sum
}

// braces reads a dict or a set.
func (p *parser) braces() syntax.Expr {
	open := p.pos()
	p.advance()
	if p.is("}") {
		return &syntax.DictExpr{Lbrace: open, Rbrace: p.expect("}")}
	}
	var dict, set []syntax.Expr
	var sum syntax.Expr // of what stands before the entries in dict, where ** brings others in
	for n := 0; !p.is("}"); {
		if pos := p.pos(); len(set) == 0 && p.accept("**") {
			n++
			p.chain(n * (maxChain / maxDepth))
			sum = union(pos, sum, dict, call(pos, "dict", p.binary(bitwise)))
			dict = nil
			if !p.accept(",") {
				break
			}
			continue
		}
		x := p.starred()
		if colon := p.pos(); len(set) == 0 && p.accept(":") {
			dict = append(dict, &syntax.DictEntry{Key: p.unstarred(x), Colon: colon, Value: p.test()})
		} else {
			set = append(set, x)
		}
		if len(dict) > 0 && len(set) > 0 || sum != nil && len(set) > 0 {
			p.unexpected("':'")
		}
		if p.is("for") && len(dict)+len(set) == 1 && sum == nil {
			return p.braceComprehension(open, dict, set)
		}
		if !p.accept(",") {
			break
		}
	}
	end := p.expect("}")
	switch {
	case set != nil:
		return call(open, "set", p.spliced(&syntax.ListExpr{Lbrack: open, List: set, Rbrack: end}))
	case sum != nil && dict == nil:
		return sum
	case sum != nil:
		return union(end, sum, nil, &syntax.DictExpr{Lbrace: open, List: dict, Rbrace: end})
	}
	return &syntax.DictExpr{Lbrace: open, List: dict, Rbrace: end}
}

// union is sum | {entries} | more, without what is nil.
func union(pos syntax.Position, sum syntax.Expr, entries []syntax.Expr, more syntax.Expr) syntax.Expr {
	for _, x := range []syntax.Expr{&syntax.DictExpr{Lbrace: pos, List: entries, Rbrace: pos}, more} {
		if d, ok := x.(*syntax.DictExpr); ok && len(d.List) == 0 {
			continue
		}
		if sum != nil {
			x = &syntax.BinaryExpr{X: sum, OpPos: pos, Op: syntax.PIPE, Y: x}
		}
		sum = x
	}
	return sum
}

func (p *parser) braceComprehension(open syntax.Position, dict, set []syntax.Expr) syntax.Expr {
	var c syntax.Expr
	if dict != nil {
		c = p.comprehension(open, dict[0], true)
	} else {
		c = call(open, "set", p.comprehension(open, p.unstarred(set[0]), false))
	}
	p.expect("}")
	return c
}

// comprehension reads the clauses behind the body of one. A generator is read as
// a list: what it yields is the same.
func (p *parser) comprehension(open syntax.Position, body syntax.Expr, curly bool) syntax.Expr {
	c := &syntax.Comprehension{Curly: curly, Lbrack: open, Body: body}
	for n := 0; ; n++ {
		p.chain(n * (maxChain / maxDepth))
		pos := p.pos()
		switch {
		case p.is("async"):
			p.refuse(pos, "async", "")
		case p.accept("for"):
			f := &syntax.ForClause{For: pos, Vars: p.target(p.targets())}
			f.In = p.expect("in")
			f.X = call(f.In, "iter", p.or())
			c.Clauses = append(c.Clauses, f)
		case p.accept("if"):
			c.Clauses = append(c.Clauses, &syntax.IfClause{If: pos, Cond: p.or()})
		default:
			c.Rbrack = pos
			return c
		}
	}
}
