package starlib

import (
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// Names that no script can spell. withName enters a context value and noName
// receives a value that a with statement does not name.
const (
	withName = "<with>"
	noName   = "<none>"
)

// enclosing is what a break would leave.
type enclosing uint8

const (
	noLoop enclosing = iota
	loop
	withBlock
)

// lowerer rewrites the syntax tree of one file.
type lowerer struct {
	m    *masked
	pos  func(syntax.Position) diag.Pos
	used map[place]bool // the masked "as" that were found where they may stand
	errs diag.List
}

// lower turns the masked with statements of f into loops over a value that
// yields once, whose exit is the end of the iteration, and moves the position
// of every call from its parenthesis, and of every field from its dot, to the
// name: that is the position errors and instructions show.
func lower(f *syntax.File, m *masked, pos func(syntax.Position) diag.Pos) error {
	l := &lowerer{m: m, pos: pos, used: map[place]bool{}}
	if len(m.withs) > 0 {
		f.Stmts = l.stmts(f.Stmts, noLoop)
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			switch fn := n.Fn.(type) {
			case *syntax.Ident:
				n.Lparen = fn.NamePos
			case *syntax.DotExpr:
				n.Lparen = fn.Name.NamePos
			}
		case *syntax.DotExpr:
			n.Dot = n.Name.NamePos
		}
		return true
	})
	if len(l.errs) > 0 {
		return l.errs
	}
	return nil
}

func (l *lowerer) errorf(p syntax.Position, format string, args ...any) *diag.Message {
	m := diag.Errorf(l.pos(p), "syntax", format, args...)
	l.errs = append(l.errs, m)
	return m
}

func (l *lowerer) stmts(list []syntax.Stmt, in enclosing) []syntax.Stmt {
	for i, s := range list {
		list[i] = l.stmt(s, in)
	}
	return list
}

func (l *lowerer) stmt(s syntax.Stmt, in enclosing) syntax.Stmt {
	switch s := s.(type) {
	case *syntax.DefStmt:
		s.Body = l.stmts(s.Body, noLoop)
	case *syntax.ForStmt:
		s.Body = l.stmts(s.Body, loop)
	case *syntax.WhileStmt:
		s.Body = l.stmts(s.Body, loop)
	case *syntax.IfStmt:
		if l.m.withs[at(s.If)] {
			return l.with(s)
		}
		s.True = l.stmts(s.True, in)
		s.False = l.stmts(s.False, in)
	case *syntax.BranchStmt:
		if in == withBlock && s.Token != syntax.PASS {
			l.errorf(s.TokenPos, "%s: can't leave a with block", s.Token).
				Suggest("put the block into a function and return from it, or test a variable after the block")
		}
	}
	return s
}

// with makes a loop of a masked with statement, one for each of its items.
func (l *lowerer) with(s *syntax.IfStmt) syntax.Stmt {
	if s.False != nil {
		l.errorf(s.ElsePos, "with: a with block has no else")
	}
	body := l.stmts(s.True, withBlock)
	items := l.items(s)
	for i := len(items) - 1; i >= 0; i-- {
		body = []syntax.Stmt{l.item(s.If, items[i], body)}
	}
	return body[0]
}

// items are the expressions between with and colon.
func (l *lowerer) items(s *syntax.IfStmt) []syntax.Expr {
	paren, ok := s.Cond.(*syntax.ParenExpr)
	if !ok {
		l.errorf(s.If, "with: got no expression, want a program or parallelize(n)")
		return []syntax.Expr{s.Cond}
	}
	// The masking put parentheses around the whole; a list within them that has
	// none of its own is a list of items.
	if tuple, ok := paren.X.(*syntax.TupleExpr); ok && len(tuple.List) > 0 {
		return tuple.List
	}
	return []syntax.Expr{paren.X}
}

func (l *lowerer) item(pos syntax.Position, x syntax.Expr, body []syntax.Stmt) syntax.Stmt {
	vars := &syntax.Ident{NamePos: pos, Name: noName}
	if or, ok := x.(*syntax.BinaryExpr); ok && l.m.as[at(or.OpPos)] {
		l.used[at(or.OpPos)] = true
		x = or.X
		if name, ok := or.Y.(*syntax.Ident); ok {
			vars = name
		} else {
			l.errorf(syntax.Start(or.Y), "with: want a name after as")
		}
	}
	l.strayAs(x)
	_, end := x.Span()
	enter := &syntax.CallExpr{Fn: &syntax.Ident{NamePos: pos, Name: withName}, Lparen: pos,
		Args: []syntax.Expr{x}, Rparen: end}
	return &syntax.ForStmt{For: pos, Vars: vars, X: enter, Body: body}
}

// strayAs refuses an "as" that binds to a part of the expression only, as in
// "with a if b else c as d".
func (l *lowerer) strayAs(x syntax.Expr) {
	syntax.Walk(x, func(n syntax.Node) bool {
		if or, ok := n.(*syntax.BinaryExpr); ok && l.m.as[at(or.OpPos)] && !l.used[at(or.OpPos)] {
			l.errorf(or.OpPos, "with: as must follow the whole expression").
				Suggest("put parentheses around the expression before as")
		}
		return true
	})
}

func at(p syntax.Position) place { return place{p.Line, p.Col} }
