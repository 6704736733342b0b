package lsp

import (
	"fmt"
	"strings"

	"go.starlark.net/syntax"
)

// maxShown is how many lines of a statement are shown.
const maxShown = 8

// hover says what stands at a place, and what the code of a finding there means.
func (s *server) hover(q query) any {
	x := q.tree
	i := x.tokenAt(q.offset)
	if i < 0 || x.tokens[i].kind == commentToken {
		return nil
	}
	k := x.tokens[i]
	text := ""
	switch {
	case k.kind == stringToken:
		text = s.hoverString(x, i)
	case k.kind != wordToken:
	case i > 0 && x.tokens[i-1].text == ".":
		text = s.hoverMember(x, i)
	case i+1 < len(x.tokens) && x.tokens[i+1].text == "=" && !x.isEqual(i+1) && x.callAround(i) != nil:
		text = s.hoverKeyword(x, i)
	default:
		text = s.hoverName(x, k)
	}
	if meaning := s.meaning(q, k.from); meaning != "" {
		text = strings.TrimPrefix(text+"\n\n---\n\n"+meaning, "\n\n---\n\n")
	}
	if text == "" {
		return nil
	}
	return hoverResult{s.markup(text, s.caps.Capabilities.TextDocument.Hover.ContentFormat), x.text.span(k.from, k.to, s.enc)}
}

// meaning explains what was found at an offset.
func (s *server) meaning(q query, offset int) string {
	if s.o.Explain == nil {
		return ""
	}
	at := q.tree.text.position(offset, s.enc)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range q.doc.found {
		if f.at == at {
			if text := s.o.Explain(f.code); text != "" {
				return text
			}
		}
	}
	return ""
}

// markup is text in the format that the client reads.
func (s *server) markup(text string, formats []string) markup {
	for _, f := range formats {
		if f == "markdown" {
			return markup{"markdown", text}
		}
		if f == "plaintext" {
			break
		}
	}
	if len(formats) == 0 {
		return markup{"markdown", text}
	}
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "```") {
			lines = append(lines, strings.ReplaceAll(line, "`", ""))
		}
	}
	return markup{"plaintext", strings.TrimSpace(strings.Join(lines, "\n"))}
}

// hoverMember is about what stands behind a dot.
func (s *server) hoverMember(x *tree, i int) string {
	name := x.tokens[i].text
	recv := ""
	if i >= 2 {
		recv = x.primary(i - 2)
	}
	typ := s.lang.typeOfText(x, recv, x.tokens[i].from)
	if sig := s.lang.method(typ, name); sig != nil {
		text := describe(sig)
		if typ == "" {
			text += "\n\n(if it is a " + sig.Receiver + ": its type isn't known here)"
		}
		return text
	}
	fields, methods, ok := s.lang.members(typ)
	if !ok {
		return ""
	}
	for _, f := range append(fields, methods...) {
		if f != name {
			continue
		}
		usage := typ + "." + name
		if t := s.lang.fieldType(typ, name); t != "" {
			usage += ": " + t
		}
		return code(usage)
	}
	return ""
}

// hoverKeyword is about the name of an argument.
func (s *server) hoverKeyword(x *tree, i int) string {
	c := x.callAround(i)
	if sig := s.lang.signatureOf(x, c); sig != nil {
		for _, p := range sig.Params {
			if p.Name == x.tokens[i].text {
				return describeParam(p)
			}
		}
		return ""
	}
	if first := x.lookup(c.name, c.at); first != nil && c.receiver == "" {
		return s.describeLocal(x, first, 0)
	}
	return ""
}

// hoverName is about a name that stands for itself.
func (s *server) hoverName(x *tree, k token) string {
	if first := x.lookup(k.text, k.from); first != nil {
		return s.describeLocal(x, first, 0)
	}
	switch k.text {
	case "with":
		return code("with MSCCLProgram(...) as NAME:\nwith parallelize(n):") + "\n\nEnters a program or a `parallelize(n)` and leaves it at the end of the block."
	case "load":
		return code(`load("FILE.star", "name", other = "name")`) + "\n\nTakes names from a file beside this one, or from `\"@algorithms/NAME.star\"` of the library."
	}
	return s.describeGlobal(k.text)
}

// describeGlobal is about a name that every script sees.
func (s *server) describeGlobal(name string) string {
	if sig := s.lang.sigs[name]; sig != nil && sig.Receiver == "" {
		return describe(sig)
	}
	if members, ok := s.lang.modules[name]; ok {
		if len(members) == 0 {
			return code(name+"(**fields)") + "\n\nA value with the fields that are given."
		}
		return code(name) + "\n\nHas `" + strings.Join(members, "`, `") + "`."
	}
	return s.lang.plain[name]
}

// describeLocal is about a name that the file binds: a function with its
// documentation, or where the value comes from.
func (s *server) describeLocal(x *tree, first *syntax.Ident, depth int) string {
	list := x.source[first]
	if len(list) == 0 || depth > maxInfer {
		return ""
	}
	o := list[0]
	switch {
	case o.def != nil:
		return describeDef(x, o.def)
	case o.param != nil:
		text := code("parameter " + first.Name + " of " + o.param.Name.Name)
		if t := s.lang.boundType(x, first, 0); t != "" {
			text += "\n\nCalled with: `" + t + "`."
		}
		return text
	case o.load != nil:
		text := ""
		if other := s.load(x, o.load.ModuleName()); other != nil {
			if there := other.global(o.from.Name); there != nil {
				text = s.describeLocal(other, there, depth+1)
			}
		}
		return strings.TrimSpace(text + fmt.Sprintf("\n\nFrom `%s`.", o.load.ModuleName()))
	}
	text := code(x.statementAt(x.at(first.NamePos)))
	if t := s.lang.boundType(x, first, 0); t != "" {
		text += "\n\nType: `" + t + "`."
	}
	if doc := x.commentAbove(x.at(first.NamePos)); doc != "" {
		text += "\n\n" + doc
	}
	return text
}

// describeDef is a function's head and its documentation: its docstring, or the
// comment above it.
func describeDef(x *tree, def *syntax.DefStmt) string {
	from := x.at(def.Def)
	text := code(strings.TrimSuffix(x.statementAt(from), ":"))
	doc := ""
	if e, ok := def.Body[0].(*syntax.ExprStmt); ok {
		if lit, ok := e.X.(*syntax.Literal); ok && lit.Token == syntax.STRING {
			doc, _ = lit.Value.(string)
		}
	}
	if doc == "" {
		doc = x.commentAbove(from)
	}
	if doc != "" {
		text += "\n\n" + dedent(doc)
	}
	return text
}

// statementAt is the text of the statement at an offset, cut off if it is long.
func (x *tree) statementAt(offset int) string {
	text := ""
	for _, st := range x.stmts {
		if x.tokens[st.first].from > offset {
			break
		}
		text = x.text.s[x.tokens[st.first].from:x.tokens[st.last].to]
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if len(lines) > maxShown {
		lines = append(lines[:maxShown], "...")
	}
	return strings.Join(lines, "\n")
}

// commentAbove is the comment on the lines right above that of an offset.
func (x *tree) commentAbove(offset int) string {
	var lines []string
	for n := x.text.lineOf(offset) - 1; n >= 0; n-- {
		line := strings.TrimSpace(x.text.line(n))
		if !strings.HasPrefix(line, "#") {
			break
		}
		lines = append([]string{strings.TrimSpace(strings.TrimLeft(line, "#"))}, lines...)
	}
	return strings.Join(lines, "\n")
}

// dedent takes the indentation that all lines but the first share from them.
func dedent(doc string) string {
	lines := strings.Split(strings.TrimSpace(doc), "\n")
	least := -1
	for _, line := range lines[1:] {
		if n := len(line) - len(strings.TrimLeft(line, " \t")); strings.TrimSpace(line) != "" && (least < 0 || n < least) {
			least = n
		}
	}
	for i := range lines[1:] {
		lines[i+1] = lines[i+1][min(max(least, 0), len(lines[i+1])):]
	}
	return strings.Join(lines, "\n")
}

// hoverString is about the file of a load, and what is loaded from it.
func (s *server) hoverString(x *tree, i int) string {
	c := x.callAround(i - 1)
	if c == nil || c.name != "load" || c.receiver != "" {
		return ""
	}
	name := x.tokens[i].value()
	if c.index == 0 && c.keyword == "" {
		if other := s.load(x, name); other != nil && other.file != nil {
			return strings.TrimSpace("`" + name + "`\n\n" + docOf(other))
		}
		return ""
	}
	if other := s.load(x, x.loadedBy(i)); other != nil {
		if there := other.global(name); there != nil {
			return s.describeLocal(other, there, 0)
		}
	}
	return ""
}

// loadedBy is the file that the load statement which token i is in names.
func (x *tree) loadedBy(i int) string {
	for j := x.begin(i); j < i; j++ {
		if x.tokens[j].kind == stringToken {
			return x.tokens[j].value()
		}
	}
	return ""
}

// docOf is the string that a file begins with.
func docOf(x *tree) string {
	if x.file == nil || len(x.file.Stmts) == 0 {
		return ""
	}
	if e, ok := x.file.Stmts[0].(*syntax.ExprStmt); ok {
		if lit, ok := e.X.(*syntax.Literal); ok && lit.Token == syntax.STRING {
			text, _ := lit.Value.(string)
			return strings.TrimSpace(text)
		}
	}
	return ""
}
