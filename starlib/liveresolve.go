package starlib

import (
	"errors"
	"reflect"
	"slices"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// Starlark gives every file globals of its own, so that a function would keep
// the values that they had when its piece ran. In a Live the globals are fields
// of one value instead: resolve finds out which names are global, and rewrites
// them.

// resolve makes fields of the globals that f uses or binds, and lists the calls
// that it names. A name that a function uses may be bound later.
func (l *Live) resolve(f *syntax.File) ([]string, error) {
	inside := insideFunctions(f)
	err := resolve.REPLChunk(f, l.globals.Has, l.in.predeclared.Has, starlark.Universe.Has)
	var names resolve.ErrorList
	if errors.As(err, &names) {
		names = slices.DeleteFunc(names, func(e resolve.Error) bool { return inside[e.Pos] && isUndefined(e) })
		if len(names) > 0 {
			return nil, l.nameErrors(names)
		}
	} else if err != nil {
		return nil, l.in.diagnose(err)
	}
	calls := l.called(f)
	f.Stmts = globalBinds(f.Stmts)
	rewriteGlobals(reflect.ValueOf(f))
	return calls, nil
}

func isUndefined(e resolve.Error) bool {
	return len(e.Msg) > len("undefined: ") && e.Msg[:len("undefined: ")] == "undefined: "
}

// nameErrors are those of the language, with the session's names to choose from.
func (l *Live) nameErrors(names resolve.ErrorList) error {
	err := l.in.nameErrors(names)
	for i, m := range diag.Messages(err) {
		if m.Code == "undefined-name" {
			name := m.Text[len("undefined: "):]
			if near := Nearest(name, l.Names()); near != "" && i < len(names) {
				m.Suggest("did you mean %s?", near)
			}
		}
	}
	return err
}

// insideFunctions are the places of the names used in bodies of functions.
func insideFunctions(f *syntax.File) map[syntax.Position]bool {
	places := map[syntax.Position]bool{}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch fn := n.(type) {
		case *syntax.DefStmt:
			for _, s := range fn.Body {
				namesIn(s, places)
			}
		case *syntax.LambdaExpr:
			namesIn(fn.Body, places)
		}
		return true
	})
	return places
}

func namesIn(n syntax.Node, places map[syntax.Position]bool) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok {
			places[id.NamePos] = true
		}
		return true
	})
}

// called are the names among LiveOptions.Calls that f uses.
func (l *Live) called(f *syntax.File) []string {
	var names []string
	syntax.Walk(f, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok && scopeOf(id) == resolve.Predeclared && slices.Contains(l.o.Calls, id.Name) {
			names = append(names, id.Name)
		}
		return true
	})
	slices.Sort(names)
	return slices.Compact(names)
}

func scopeOf(id *syntax.Ident) resolve.Scope {
	if b, ok := id.Binding.(*resolve.Binding); ok {
		return b.Scope
	}
	return resolve.Local // names of fields and keywords
}

func isGlobal(id *syntax.Ident) bool {
	s := scopeOf(id)
	return s == resolve.Global || s == resolve.Undefined
}

// field is the session's field of that name.
func field(id *syntax.Ident) *syntax.DotExpr {
	return &syntax.DotExpr{X: &syntax.Ident{NamePos: id.NamePos, Name: sessionName}, Dot: id.NamePos, NamePos: id.NamePos,
		Name: &syntax.Ident{NamePos: id.NamePos, Name: id.Name}}
}

// globalBinds adds an assignment after every def and load of global names: these
// can't bind a field themselves.
func globalBinds(stmts []syntax.Stmt) []syntax.Stmt {
	var out []syntax.Stmt
	bind := func(id *syntax.Ident) {
		if isGlobal(id) {
			out = append(out, &syntax.AssignStmt{OpPos: id.NamePos, Op: syntax.EQ, LHS: field(id),
				RHS: &syntax.ParenExpr{Lparen: id.NamePos, Rparen: id.NamePos, X: &syntax.Ident{NamePos: id.NamePos, Name: id.Name}}})
		}
	}
	for _, s := range stmts {
		out = append(out, s)
		switch s := s.(type) {
		case *syntax.DefStmt:
			bind(s.Name)
		case *syntax.LoadStmt:
			for _, id := range s.To {
				bind(id)
			}
		case *syntax.IfStmt:
			s.True, s.False = globalBinds(s.True), globalBinds(s.False)
		case *syntax.ForStmt:
			s.Body = globalBinds(s.Body)
		case *syntax.WhileStmt:
			s.Body = globalBinds(s.Body)
		}
	}
	return out
}

var exprType = reflect.TypeFor[syntax.Expr]()

// rewriteGlobals puts the field in place of every global name below v. Names that
// are no expressions (of fields, parameters and defs) are held by pointers of
// another type, so they stay.
func rewriteGlobals(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct {
			for i := range v.Elem().NumField() {
				if fieldType := v.Elem().Type().Field(i); fieldType.IsExported() && fieldType.Type.Kind() != reflect.Pointer {
					rewriteGlobals(v.Elem().Field(i))
				}
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			rewriteGlobals(v.Index(i))
		}
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		if v.Type() == exprType {
			if id, ok := v.Interface().(*syntax.Ident); ok {
				if id.Binding != nil && isGlobal(id) {
					v.Set(reflect.ValueOf(field(id)))
				}
				return
			}
		}
		if _, ok := v.Interface().(syntax.Node); ok {
			rewriteGlobals(v.Elem())
		}
	}
}
