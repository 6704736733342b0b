package lsp

import (
	"strings"

	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/starlib"
)

// symbols are the functions, programs, parameters and variables of a document.
func (s *server) symbols(q query) any {
	list := []documentSymbol{}
	if q.tree.file != nil {
		list = append(list, s.symbolsOf(q.tree, q.tree.file.Stmts, map[*syntax.Ident]bool{})...)
	}
	if s.caps.Capabilities.TextDocument.DocumentSymbol.Hierarchical {
		return list
	}
	return flat([]symbolInformation{}, q.doc.uri, list)
}

func flat(out []symbolInformation, uri string, list []documentSymbol) []symbolInformation {
	for _, d := range list {
		out = append(out, symbolInformation{d.Name, d.Kind, location{uri, d.Range}})
		out = flat(out, uri, d.Children)
	}
	return out
}

func (s *server) symbolsOf(x *tree, stmts []syntax.Stmt, seen map[*syntax.Ident]bool) []documentSymbol {
	var list []documentSymbol
	for _, st := range stmts {
		switch st := st.(type) {
		case *syntax.DefStmt:
			d := s.symbol(x, st, st.Name, symbolFunction)
			d.Detail = strings.TrimSuffix(strings.TrimPrefix(x.statementAt(x.at(st.Def)), "def "+st.Name.Name), ":")
			d.Children = s.symbolsOf(x, st.Body, seen)
			list = append(list, d)
		case *syntax.AssignStmt:
			id, ok := st.LHS.(*syntax.Ident)
			if !ok || seen[firstOf(id)] || st.Op != syntax.EQ {
				break
			}
			seen[firstOf(id)] = true
			kind := symbolVariable
			if isCallOf(st.RHS, "param") {
				kind = symbolConstant
			}
			list = append(list, s.symbol(x, st, id, kind))
		case *syntax.ForStmt:
			entered, _, isWith := starlib.With(st)
			inner := s.symbolsOf(x, st.Body, seen)
			if !isWith || !isCallOf(entered, "MSCCLProgram") {
				list = append(list, inner...)
				break
			}
			call, _ := entered.(*syntax.CallExpr)
			fn, _ := call.Fn.(*syntax.Ident)
			d := s.symbol(x, st, fn, symbolModule)
			d.Children = inner
			if len(call.Args) > 0 {
				if lit, ok := call.Args[0].(*syntax.Literal); ok && lit.Token == syntax.STRING {
					d.Detail = d.Name
					d.Name, _ = lit.Value.(string)
				}
			}
			if d.Name == "" { // the protocol wants a name
				d.Name = "MSCCLProgram"
			}
			list = append(list, d)
		case *syntax.IfStmt:
			list = append(list, s.symbolsOf(x, st.True, seen)...)
			list = append(list, s.symbolsOf(x, st.False, seen)...)
		case *syntax.WhileStmt:
			list = append(list, s.symbolsOf(x, st.Body, seen)...)
		}
	}
	return list
}

func isCallOf(e syntax.Expr, name string) bool {
	call, ok := e.(*syntax.CallExpr)
	if !ok {
		return false
	}
	fn, ok := call.Fn.(*syntax.Ident)
	return ok && fn.Name == name
}

func (s *server) symbol(x *tree, n syntax.Node, id *syntax.Ident, kind int) documentSymbol {
	from, to := x.extent(n)
	at := x.at(id.NamePos)
	to = max(to, at+len(id.Name)) // the one has to hold the other
	return documentSymbol{Name: id.Name, Kind: kind, Range: x.text.span(from, to, s.enc),
		SelectionRange: x.text.span(at, at+len(id.Name), s.enc)}
}

// extent is where a statement begins and ends. That of a call ends where its
// parenthesis does, which the tree knows.
func (x *tree) extent(n syntax.Node) (from, to int) {
	start, end := n.Span()
	return x.at(start), x.at(end)
}

// folding are the blocks of a document, and strings and brackets of several lines.
func (s *server) folding(q query) any {
	x, list := q.tree, []foldingRange{}
	for i, st := range x.stmts {
		end := i
		for end+1 < len(x.stmts) && x.indent(end+1) > x.indent(i) {
			end++
		}
		r := foldingRange{StartLine: x.text.lineOf(x.tokens[st.first].from), EndLine: x.text.lineOf(x.tokens[x.stmts[end].last].to - 1)}
		if x.tokens[st.first].kind == stringToken && st.first == st.last {
			r.Kind = "comment"
		}
		if r.EndLine > r.StartLine {
			list = append(list, r)
		}
	}
	return list
}
