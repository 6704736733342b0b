package starlib

import (
	"errors"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// Analyze parses a script and resolves its names, and runs nothing. The tree is
// what Load would run: with statements are loops (With tells them apart), and the
// parenthesis of a call and the dot of a field stand where the name stands. It is
// nil where the text doesn't parse, and resolved as far as can be where names are
// wrong.
func Analyze(file string, text []byte) (*syntax.File, diag.List) {
	in := &interp{o: Options{File: file}, columns: map[string]*columns{}, script: &Script{}}
	in.predeclared = predeclare(in)
	text = withoutMark(text)
	if c := newColumns(text); c != nil {
		in.columns[file] = c
	}
	f, err := in.parse(file, text)
	if f == nil {
		return nil, diag.Messages(err)
	}
	list := diag.Messages(err)
	err = resolve.File(f, in.predeclared.Has, starlark.Universe.Has)
	var names resolve.ErrorList
	if errors.As(err, &names) {
		list = append(list, diag.Messages(in.nameErrors(names))...)
	}
	return f, list
}

// With takes apart a loop that stands for one item of a with statement: what it
// enters, and the name it gives to it, nil without one.
func With(s syntax.Stmt) (x syntax.Expr, name *syntax.Ident, ok bool) {
	loop, isLoop := s.(*syntax.ForStmt)
	if !isLoop {
		return nil, nil, false
	}
	enter, isCall := loop.X.(*syntax.CallExpr)
	if !isCall || len(enter.Args) != 1 {
		return nil, nil, false
	}
	if fn, isName := enter.Fn.(*syntax.Ident); !isName || fn.Name != withName {
		return nil, nil, false
	}
	if id, isName := loop.Vars.(*syntax.Ident); isName && id.Name != noName {
		name = id
	}
	return enter.Args[0], name, true
}

// ResolveLoad finds the file that load(name) means in the file from: a path, or a
// name that begins with LibraryPrefix.
func ResolveLoad(from, name string) (string, error) { return (&interp{}).resolve(from, name) }

// Fields are the fields, without methods, that values of a type of the signature
// table have.
func Fields(typ string) []string {
	switch typ {
	case "ref":
		return []string{"rank", "buffer", "index", "size"}
	case "program":
		return programFields
	case "collective":
		return collectiveFields
	case "CollectiveProgram":
		return headerFields
	case "AlgoSpec":
		return specFields
	case "Rank", "Semaphore":
		return oneRankFields
	case "Buffer":
		return memoryFields
	case "Chunk":
		return chunkFields
	case "MemoryChannel", "PortChannel":
		return channelFields
	case "ThreadBlockGroup":
		return groupFields
	case "topology":
		return []string{"name", "links"}
	}
	return nil
}

// Modules are the names that every script sees beside the functions of the table:
// each with what stands behind its dot, nil for a function.
func Modules() map[string][]string {
	out := map[string][]string{}
	for name, v := range predeclare(&interp{}) {
		switch v := v.(type) {
		case *builtin, *chunkFunc:
		case starlark.HasAttrs:
			out[name] = v.AttrNames()
		default:
			if name != withName {
				out[name] = nil
			}
		}
	}
	return out
}
