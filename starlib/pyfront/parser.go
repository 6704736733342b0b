package pyfront

import (
	"fmt"
	"strings"

	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// enclosing is what a break would leave.
type enclosing uint8

const (
	noLoop enclosing = iota
	loop
	withBlock
)

// parser makes Starlark's syntax tree of a script.
type parser struct {
	s    *scanner
	t    token   // the next one
	file *string // shared by all positions

	depth  int       // expressions within expressions
	in     enclosing // what a break would leave here
	temps  int       // variables that no script can name
	method *method   // the method whose own body this is, or nil
	attrs  attributes
	notes  *syntax.ListExpr // the annotated names of the class body that this is, or nil
}

// method is what super() needs to know.
type method struct{ class, self string }

// attributes are the names of a class body, by what they are called outside it.
// They are only known to expressions of the body itself, not in its functions.
type attributes map[string]string

// parse reads a script.
func parse(file string, text []byte) (f *syntax.File, err error) {
	defer func() {
		if x := recover(); x != nil {
			fail, ok := x.(fatal)
			if !ok {
				panic(x)
			}
			f, err = nil, fail.m
		}
	}()
	src, m := decode(file, text)
	if m != nil {
		return nil, m
	}
	p := &parser{s: newScanner(file, src), file: &file}
	p.advance()
	f = &syntax.File{Path: file}
	for p.t.kind != endOfFile {
		f.Stmts = append(f.Stmts, p.statement()...)
	}
	sameInStarlark(f)
	return f, nil
}

func (p *parser) advance() token {
	t := p.t
	p.t = p.s.next()
	return t
}

// pos is where the next token stands.
func (p *parser) pos() syntax.Position { return p.at(&p.t) }

func (p *parser) at(t *token) syntax.Position { return position(p.file, t.line, t.col) }

// is reports whether the next token is the keyword, operator or bracket text.
func (p *parser) is(text string) bool {
	return p.t.text == text && (p.t.kind == operant || p.t.kind == name && keywords[text])
}

// accept passes the next token if it is text.
func (p *parser) accept(text string) bool {
	if !p.is(text) {
		return false
	}
	p.advance()
	return true
}

// expect passes text, which must be the next token.
func (p *parser) expect(text string) syntax.Position {
	if !p.is(text) {
		p.unexpected("'" + text + "'")
	}
	return p.at(tokenOf(p.advance()))
}

func tokenOf(t token) *token { return &t }

// unexpected fails because the next token is not what is wanted.
func (p *parser) unexpected(want string) {
	if r, ok := refusedExpressions[p.t.text]; ok && p.t.kind == name {
		p.refuse(p.pos(), r[0], r[1])
	}
	if p.is(":=") {
		p.refuse(p.pos(), "assignment expressions (:=)", "assign on a line of its own")
	}
	p.s.failf(p.t.line, p.t.col, "got %s, want %s", p.t.describe(), want)
}

// describe is the token as an error names it.
func (t *token) describe() string {
	switch t.kind {
	case endOfFile:
		return "the end of the text"
	case newline:
		return "the end of the line"
	case indent:
		return "an indented line"
	case dedent:
		return "the end of the block"
	case quoted:
		return "a string"
	}
	return "'" + t.text + "'"
}

func (p *parser) refuse(pos syntax.Position, construct, instead string) {
	panic(fatal{refusal(p.diagPos(pos), construct, instead)})
}

func (p *parser) failAt(pos syntax.Position, format string, args ...any) *diag.Message {
	return diag.Errorf(p.diagPos(pos), "syntax", "syntax error: "+format, args...)
}

func (p *parser) diagPos(pos syntax.Position) diag.Pos {
	return diag.Pos{File: *p.file, Line: pos.Line, Col: byteColumn(p.s.src, pos.Line, pos.Col)}
}

// chain guards a loop that makes a tree one level deeper at each turn.
func (p *parser) chain(n int) {
	if n > maxChain {
		p.s.failf(p.t.line, p.t.col, "more than %d operators follow one another", maxChain)
	}
}

// name passes a name.
func (p *parser) name(what string) *syntax.Ident {
	if p.t.kind != name || keywords[p.t.text] {
		p.unexpected(what)
	}
	t := p.advance()
	return &syntax.Ident{NamePos: p.at(&t), Name: t.text}
}

// hidden is a name that no script can spell: a function of this package, or a
// variable of the lowering.
func hidden(pos syntax.Position, name string) *syntax.Ident {
	return &syntax.Ident{NamePos: pos, Name: "<" + name + ">"}
}

// call calls a function of this package.
func call(pos syntax.Position, name string, args ...syntax.Expr) *syntax.CallExpr {
	return &syntax.CallExpr{Fn: hidden(pos, name), Lparen: pos, Args: args, Rparen: pos}
}

func literal(pos syntax.Position, s string) *syntax.Literal {
	return &syntax.Literal{Token: syntax.STRING, TokenPos: pos, Raw: "''", Value: s}
}

// temp is a new variable.
func (p *parser) temp(pos syntax.Position) *syntax.Ident {
	p.temps++
	return hidden(pos, fmt.Sprintf("t%d", p.temps))
}

func assign(pos syntax.Position, to, x syntax.Expr) syntax.Stmt {
	return &syntax.AssignStmt{OpPos: pos, Op: syntax.EQ, LHS: to, RHS: x}
}

// target checks what stands before an = or between for and in.
func (p *parser) target(x syntax.Expr) syntax.Expr {
	bad := func(what string) { panic(fatal{p.failAt(syntax.Start(x), "can't assign to %s", what)}) }
	switch x := x.(type) {
	case *syntax.Ident:
		if keywords[x.Name] || strings.HasPrefix(x.Name, "<") {
			bad(x.Name)
		}
	case *syntax.DotExpr, *syntax.IndexExpr:
	case *syntax.ParenExpr:
		p.target(x.X)
	case *syntax.TupleExpr:
		for _, e := range x.List {
			p.target(e)
		}
	case *syntax.ListExpr:
		for _, e := range x.List {
			p.target(e)
		}
	case *syntax.SliceExpr:
		p.refuse(x.Lbrack, "assignment to a slice", "assign element by element")
	case *syntax.UnaryExpr:
		if x.Op == syntax.STAR {
			p.refuse(x.OpPos, "starred targets", "take the rest with a slice")
		}
		bad("an expression")
	case *syntax.CallExpr:
		bad("a call")
	case *syntax.Literal:
		bad("a literal")
	default:
		bad("an expression")
	}
	return x
}
