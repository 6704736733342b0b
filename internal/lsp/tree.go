package lsp

import (
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib"
)

// Limits of what is looked at; beyond them a document has no diagnostics but one
// that says so. The parser's stack grows with the depth of brackets.
const (
	maxDocument = 256 << 10 // bytes
	maxDepth    = 500       // brackets within one another
	maxRepairs  = 40        // statements left out of a text that doesn't parse
	fewRepairs  = 5         // of a long one
	longText    = 64 << 10
)

// tree is what is known of a text. It never changes once it is made.
type tree struct {
	name   string // of the file
	text   *text
	tokens []token
	stmts  []statement
	// file is the syntax tree of the text, without the statements that don't parse.
	// It is nil where nothing can be made of the text.
	file *syntax.File
	// errs are all syntax errors, or, of a text without any, all names that are wrong.
	errs   diag.List
	idents map[int]*syntax.Ident // by offset
	source map[*syntax.Ident][]origin
	calls  map[*syntax.Ident][]*syntax.CallExpr // of the file's own functions
	defs   []*syntax.DefStmt                    // in order, nested ones too
	loads  []*syntax.LoadStmt
}

// origin is one way in which a name gets its value.
type origin struct {
	x     syntax.Expr // the value, nil for the others
	elem  bool        // the value is an element of x
	index int         // the value is the part of x with that number, -1 for all of it
	def   *syntax.DefStmt
	param *syntax.DefStmt // a parameter of it, number index
	load  *syntax.LoadStmt
	from  *syntax.Ident // what load calls it
}

// parse makes a tree of any text.
func parse(name string, t *text) *tree {
	x := &tree{name: name, text: t, idents: map[int]*syntax.Ident{}, source: map[*syntax.Ident][]origin{},
		calls: map[*syntax.Ident][]*syntax.CallExpr{}}
	if len(t.s) > maxDocument {
		x.errs = diag.List{tooLarge(name, "the document has more than %d bytes", maxDocument)}
		return x
	}
	x.tokens = lex(t.s)
	x.stmts = statements(t, x.tokens)
	if depth(x.tokens) > maxDepth {
		x.errs = diag.List{tooLarge(name, "brackets stand more than %d deep within one another", maxDepth)}
		return x
	}
	x.file, x.errs = x.repaired()
	if x.file != nil {
		x.index()
	}
	return x
}

func tooLarge(name, format string, args ...any) *diag.Message {
	m := diag.Errorf(diag.Pos{File: name, Line: 1}, "too-large", format, args...)
	m.Severity = diag.Warning
	return m.Suggest("mscclsh check judges it without an editor")
}

func depth(tokens []token) int {
	deepest, at := 0, 0
	for _, k := range tokens {
		switch {
		case k.kind != punctToken:
		case strings.ContainsAny(k.text, "([{"):
			at++
			deepest = max(deepest, at)
		case strings.ContainsAny(k.text, ")]}"):
			at = max(0, at-1)
		}
	}
	return deepest
}

// What a repair has made of a statement.
const (
	asWritten = iota
	withBody  // pass stands behind its colon
	stoodIn   // another head stands in its place
	leftOut
)

// repaired parses the text; while it doesn't parse, the statement at fault is left
// out, or has something stand in for it.
func (x *tree) repaired() (*syntax.File, diag.List) {
	var errs diag.List
	done := make(map[int]int)
	limit := maxRepairs
	if len(x.text.s) > longText {
		limit = fewRepairs
	}
	for range limit {
		f, found := starlib.Analyze(x.name, []byte(x.write(done)))
		if f != nil {
			for _, m := range found {
				if len(done) == 0 || m.Code == "syntax" {
					errs = append(errs, m)
				}
			}
			return f, errs
		}
		if len(found) == 0 {
			break
		}
		m := x.unfinished(found[0])
		at, how := x.fault(m, done)
		// A statement that was left out leaves a head without a body, or a body without
		// a head.
		cascade := strings.Contains(m.Text, "dent")
		if strings.Contains(m.Text, "want indent") {
			cascade = cascade && done[at+1] != asWritten
		} else {
			cascade = cascade && done[at-1] != asWritten
		}
		if at < 0 || !cascade && done[at] == asWritten {
			errs = append(errs, m)
		}
		if at < 0 {
			break
		}
		done[at] = how
	}
	return nil, errs
}

// unfinished moves an error about what ends too early to where it ends: the parser
// sees it only where the next line begins.
func (x *tree) unfinished(m *diag.Message) *diag.Message {
	if !strings.Contains(m.Text, "got outdent") && !strings.Contains(m.Text, "got end of file") && !strings.Contains(m.Text, "not an identifier") {
		return m
	}
	i := x.before(x.text.place(m.Pos.Line, m.Pos.Col))
	if i < 0 {
		return m
	}
	moved := *m
	p := x.text.position(x.tokens[i].from, utf8Units)
	moved.Pos.Line, moved.Pos.Col = int32(p.Line)+1, int32(p.Character)+1
	return &moved
}

// fault finds the statement that is to blame for an error, and what to do with it;
// -1 where nothing helps.
func (x *tree) fault(m *diag.Message, done map[int]int) (at, how int) {
	offset := x.text.place(m.Pos.Line, m.Pos.Col)
	at = -1
	for i, s := range x.stmts {
		if x.tokens[s.first].from > offset {
			break
		}
		at = i
	}
	if strings.Contains(m.Text, "want indent") {
		for i := at; i >= 0; i-- {
			if done[i] != leftOut && x.tokens[x.stmts[i].last].text == ":" && x.tokens[x.stmts[i].first].from < offset {
				if done[i] == asWritten || done[i] == stoodIn {
					return i, withBody
				}
				break
			}
		}
	}
	for i := at; i >= 0; i-- { // a bracket that was not closed is the cause of what follows
		if x.stmts[i].open > 0 && done[i] == asWritten {
			return i, x.substitute(i)
		}
	}
	for ; at >= 0; at-- {
		switch done[at] {
		case asWritten:
			return at, x.substitute(at)
		case stoodIn, withBody:
			return at, leftOut
		}
	}
	return -1, 0
}

// substitute is what becomes of statement i: the head of a block keeps its block.
func (x *tree) substitute(i int) int {
	if i+1 < len(x.stmts) && x.indent(i+1) > x.indent(i) {
		return stoodIn
	}
	return leftOut
}

// indent is the column of a statement, in bytes from 0.
func (x *tree) indent(i int) int {
	from := x.tokens[x.stmts[i].first].from
	return from - x.text.starts[x.text.lineOf(from)]
}

// write is the text with the repairs. Lines stay where they are.
func (x *tree) write(done map[int]int) string {
	if len(done) == 0 {
		return x.text.s
	}
	var b strings.Builder
	at := 0
	for i, s := range x.stmts {
		how := done[i]
		if how == asWritten {
			continue
		}
		from, to := x.tokens[s.first].from, x.tokens[s.last].to
		old := x.text.s[from:to]
		b.WriteString(x.text.s[at:from])
		at = to
		switch how {
		case withBody:
			b.WriteString(old + " pass")
			continue
		case stoodIn:
			b.WriteString(x.standIn(s))
		}
		for range strings.Count(strings.ReplaceAll(old, "\r\n", "\n"), "\n") + strings.Count(strings.ReplaceAll(old, "\r\n", ""), "\r") {
			b.WriteByte('\n')
		}
	}
	b.WriteString(x.text.s[at:])
	return b.String()
}

// standIn is a head that a block can follow.
func (x *tree) standIn(s statement) string {
	switch first := x.tokens[s.first].text; first {
	case "def":
		name := "_"
		if s.last > s.first && isName(x.tokens[s.first+1].text) {
			name = x.tokens[s.first+1].text
		}
		return "def " + name + "(*_):"
	case "elif":
		return "elif True:"
	case "else":
		return "else:"
	}
	return "if True:"
}

// at is the offset of a place in the syntax tree.
func (x *tree) at(p syntax.Position) int { return x.text.runePlace(p.Line, p.Col) }

// index finds what is said of every name.
func (x *tree) index() {
	syntax.Walk(x.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Ident:
			if n.Binding != nil {
				x.idents[x.at(n.NamePos)] = n
			}
		case *syntax.DefStmt:
			x.defs = append(x.defs, n)
			x.bind(n.Name, origin{def: n, index: -1})
			for i, p := range n.Params {
				if id := paramName(p); id != nil {
					x.bind(id, origin{param: n, index: i})
				}
			}
		case *syntax.AssignStmt:
			if n.Op == syntax.EQ {
				x.assign(n.LHS, origin{x: n.RHS, index: -1})
			}
		case *syntax.ForStmt:
			if entered, name, ok := starlib.With(n); ok {
				if name != nil {
					x.bind(name, origin{x: entered, index: -1})
				}
				break
			}
			x.assign(n.Vars, origin{x: n.X, elem: true, index: -1})
		case *syntax.Comprehension:
			for _, c := range n.Clauses {
				if f, ok := c.(*syntax.ForClause); ok {
					x.assign(f.Vars, origin{x: f.X, elem: true, index: -1})
				}
			}
		case *syntax.LoadStmt:
			x.loads = append(x.loads, n)
			for i := range n.To {
				x.bind(n.To[i], origin{load: n, from: n.From[i], index: -1})
			}
		case *syntax.CallExpr:
			if id, ok := n.Fn.(*syntax.Ident); ok {
				if first := firstOf(id); first != nil {
					x.calls[first] = append(x.calls[first], n)
				}
			}
		}
		return true
	})
}

// assign binds the names of a left side.
func (x *tree) assign(lhs syntax.Expr, o origin) {
	switch lhs := lhs.(type) {
	case *syntax.Ident:
		x.bind(lhs, o)
	case *syntax.ParenExpr:
		x.assign(lhs.X, o)
	case *syntax.TupleExpr:
		x.unpack(lhs.List, o)
	case *syntax.ListExpr:
		x.unpack(lhs.List, o)
	}
}

func (x *tree) unpack(list []syntax.Expr, o origin) {
	if o.index >= 0 { // a tuple within a tuple: more than is worth knowing
		return
	}
	for i, e := range list {
		o.index = i
		x.assign(e, o)
	}
}

func (x *tree) bind(id *syntax.Ident, o origin) {
	first := firstOf(id)
	if first == nil {
		first = id
	}
	x.source[first] = append(x.source[first], o)
}

// firstOf is where a name of the file is bound first, nil for other names.
func firstOf(id *syntax.Ident) *syntax.Ident {
	if b, ok := id.Binding.(*resolve.Binding); ok {
		return b.First
	}
	return nil
}

func paramName(p syntax.Expr) *syntax.Ident {
	switch p := p.(type) {
	case *syntax.Ident:
		return p
	case *syntax.BinaryExpr:
		id, _ := p.X.(*syntax.Ident)
		return id
	case *syntax.UnaryExpr:
		id, _ := p.X.(*syntax.Ident)
		return id
	}
	return nil
}
