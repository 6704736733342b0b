package pyfront

import "go.starlark.net/syntax"

// sameInStarlark puts Starlark's own == and != where they mean what Python's do and
// cost less than a call of <==> or <!=>: between integers. True equals 1 in Python
// alone, so that both sides have to be integers whatever the script is given. That
// is so of a variable that counts through ranges, and of what is computed of such.
func sameInStarlark(f *syntax.File) {
	all := scopes(nil, func(visit func(syntax.Node) bool) { syntax.Walk(f, visit) })
	for _, s := range all { // a range of the script's own may yield anything
		if _, own := s.bound["range"]; own {
			return
		}
	}
	for _, s := range all {
		s.settle()
		s.replace()
	}
}

// scope is a function of a file, or the file outside of them.
type scope struct {
	bound map[string][]syntax.Expr // what a variable is made of at each place that binds it; nil is anything
	equal []*syntax.ParenExpr      // comparisons for equality
}

// scopes are the scope whose body walk goes through, and those within it. Nothing in
// them can bind a variable of another one: there is no global and no nonlocal. A
// comprehension's variables count as those of the scope that it stands in, which
// can only be more careful; so does every name in the parameters.
func scopes(params []syntax.Expr, walk func(visit func(syntax.Node) bool)) []*scope {
	s := &scope{bound: map[string][]syntax.Expr{}}
	all := []*scope{s}
	for _, p := range params {
		syntax.Walk(p, func(n syntax.Node) bool {
			if id, ok := n.(*syntax.Ident); ok {
				s.bind(id, nil)
			}
			return true
		})
	}
	walk(func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DefStmt: // defaults, which are this scope's, stay as they are
			s.bind(n.Name, nil)
			all = append(all, scopes(n.Params, func(visit func(syntax.Node) bool) {
				for _, stmt := range n.Body {
					syntax.Walk(stmt, visit)
				}
			})...)
			return false
		case *syntax.LambdaExpr:
			all = append(all, scopes(n.Params, func(visit func(syntax.Node) bool) { syntax.Walk(n.Body, visit) })...)
			return false
		case *syntax.AssignStmt:
			s.assigned(n)
		case *syntax.ForStmt:
			s.bind(n.Vars, element(n.X))
		case *syntax.ForClause:
			s.bind(n.Vars, element(n.X))
		case *syntax.ParenExpr:
			if equality(n.X) != 0 {
				s.equal = append(s.equal, n)
			}
		}
		return true
	})
	return all
}

func (s *scope) assigned(a *syntax.AssignStmt) {
	if a.Op == syntax.EQ {
		s.bind(a.LHS, a.RHS)
		return
	}
	// x += y; the tokens of += and its like are in the order of + and its like.
	s.bind(a.LHS, &syntax.BinaryExpr{X: a.LHS, Op: a.Op - syntax.PLUS_EQ + syntax.PLUS, Y: a.RHS})
}

// bind notes that the variables of a target get x, or the elements of what x is.
func (s *scope) bind(target, x syntax.Expr) {
	switch t := target.(type) {
	case *syntax.Ident:
		s.bound[t.Name] = append(s.bound[t.Name], x)
	case *syntax.ParenExpr:
		s.bind(t.X, x)
	case *syntax.TupleExpr:
		for _, e := range t.List {
			s.bind(e, nil)
		}
	case *syntax.ListExpr:
		for _, e := range t.List {
			s.bind(e, nil)
		}
	}
}

// element is an expression for what a loop over x yields: an integer for a range,
// nil for anything.
func element(x syntax.Expr) syntax.Expr {
	if c := called(x, "<iter>"); c != nil {
		if r := called(c.Args[0], "range"); r != nil {
			return &syntax.Literal{Token: syntax.INT}
		}
	}
	return nil
}

// called is x if it calls the function of that name, else nil.
func called(x syntax.Expr, name string) *syntax.CallExpr {
	if c, ok := x.(*syntax.CallExpr); ok {
		if id, ok := c.Fn.(*syntax.Ident); ok && id.Name == name {
			return c
		}
	}
	return nil
}

// equality is the operator that x stands for, if it is a lowered == or !=, else 0.
func equality(x syntax.Expr) syntax.Token {
	switch {
	case called(x, "<==>") != nil:
		return syntax.EQL
	case called(x, "<!=>") != nil:
		return syntax.NEQ
	}
	return 0
}

// settle leaves of the variables those that are integers at every place that binds
// them. They are all taken for integers until one is not: a variable is bound
// before it is used, so that those left have their integers from elsewhere.
func (s *scope) settle() {
	for again := true; again; {
		again = false
		for name, list := range s.bound {
			for _, x := range list {
				if x == nil || !s.integer(x) {
					delete(s.bound, name)
					again = true
					break
				}
			}
		}
	}
}

// integer reports whether x is an integer whatever the script does.
func (s *scope) integer(x syntax.Expr) bool {
	switch x := x.(type) {
	case *syntax.Literal:
		return x.Token == syntax.INT
	case *syntax.Ident:
		_, ok := s.bound[x.Name]
		return ok
	case *syntax.ParenExpr:
		return s.integer(x.X)
	case *syntax.CondExpr:
		return s.integer(x.True) && s.integer(x.False)
	case *syntax.UnaryExpr:
		return (x.Op == syntax.MINUS || x.Op == syntax.PLUS || x.Op == syntax.TILDE) && s.integer(x.X)
	case *syntax.BinaryExpr:
		switch x.Op {
		case syntax.PLUS, syntax.MINUS, syntax.STAR, syntax.SLASHSLASH, syntax.PERCENT, syntax.AMP, syntax.PIPE, syntax.CIRCUMFLEX,
			syntax.LTLT, syntax.GTGT:
			return s.integer(x.X) && s.integer(x.Y)
		}
	}
	return false
}

func (s *scope) replace() {
	for _, e := range s.equal {
		c := e.X.(*syntax.CallExpr)
		if x, y := c.Args[0], c.Args[1]; s.integer(x) && s.integer(y) {
			e.X = &syntax.BinaryExpr{X: x, OpPos: c.Lparen, Op: equality(c), Y: y}
		}
	}
}
