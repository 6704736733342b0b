package lsp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/starlib"
)

// completer collects items for one place.
type completer struct {
	s     *server
	x     *tree
	edit  span // what an item replaces
	items []completionItem
	seen  map[string]bool
}

// add adds an item unless there is one of its label. rank orders items, least first.
func (c *completer) add(rank int, item completionItem) {
	if c.seen[item.Label] {
		return
	}
	c.seen[item.Label] = true
	item.SortText = string(rune('0'+rank)) + item.Label
	text := item.Label
	if item.TextEdit != nil {
		text = item.TextEdit.NewText
	}
	item.TextEdit = &textEdit{c.edit, text}
	c.items = append(c.items, item)
}

// complete lists what may stand at a place.
func (s *server) complete(q query) any {
	x := q.tree
	c := &completer{s: s, x: x, seen: map[string]bool{}}
	if i := x.stringAt(q.offset); i >= 0 {
		if x.tokens[i].kind == stringToken {
			c.edit = x.text.span(min(x.tokens[i].inner(), q.offset), q.offset, s.enc)
			c.inString(i)
		}
		return c.list()
	}
	from := q.offset
	for from > 0 && isWord(x.text.s[from-1]) {
		from--
	}
	c.edit = x.text.span(from, q.offset, s.enc)
	if from < q.offset && x.text.s[from] >= '0' && x.text.s[from] <= '9' {
		return c.list()
	}
	last := x.before(from)
	if last >= 0 && x.tokens[last].text == "." {
		c.members(x.primary(last-1), from)
		return c.list()
	}
	if last >= 0 {
		switch x.tokens[last].text {
		case "def", "as", "for", "lambda": // a new name
			return c.list()
		}
	}
	around := x.callAround(last)
	if around != nil && around.name == "load" && around.receiver == "" {
		return c.list()
	}
	if around != nil && around.keyword == "" {
		c.keywords(around)
	}
	c.names(from)
	return c.list()
}

func (c *completer) list() completionList {
	sort.SliceStable(c.items, func(i, j int) bool { return c.items[i].SortText < c.items[j].SortText })
	if c.items == nil {
		c.items = []completionItem{}
	}
	return completionList{Items: c.items}
}

// members are what follows a dot. Where the type isn't known they are the methods of
// all types, each with the type that it is of.
func (c *completer) members(recv string, offset int) {
	l := c.s.lang
	typ := l.typeOfText(c.x, recv, offset)
	fields, methods, ok := l.members(typ)
	if ok {
		for _, f := range fields {
			c.add(1, completionItem{Label: f, Kind: itemField, Detail: l.fieldType(typ, f)})
		}
		for _, m := range methods {
			item := completionItem{Label: m, Kind: itemMethod}
			if sig := l.sigs[typ+"."+m]; sig != nil {
				item.Detail, item.Data = sig.Usage(), "sig:"+key(sig)
			}
			c.add(0, item)
		}
		return
	}
	if typ != "" { // a number, say
		return
	}
	for _, r := range l.receivers() {
		for i := range l.list {
			if sig := &l.list[i]; sig.Receiver == r {
				c.add(0, completionItem{Label: sig.Name, Kind: itemMethod, Detail: sig.Usage() + "  (if it is a " + r + ")", Data: "sig:" + key(sig)})
			}
		}
		for _, f := range starlib.Fields(r) {
			c.add(1, completionItem{Label: f, Kind: itemField, Detail: r + "." + f + "  (if it is a " + r + ")"})
		}
	}
}

// keywords are the arguments that a call may still get.
func (c *completer) keywords(around *call) {
	kw := func(name, detail, data string) {
		if around.given[name] {
			return
		}
		c.add(0, completionItem{Label: name + "=", Kind: itemVariable, Detail: detail, Data: data, FilterText: name,
			TextEdit: &textEdit{NewText: name + " = "}})
	}
	if sig := c.s.lang.signatureOf(c.x, around); sig != nil {
		for i, p := range sig.Params {
			if i < around.index {
				continue
			}
			kw(p.Name, p.Type, "param:"+key(sig)+":"+p.Name)
		}
		return
	}
	if around.receiver != "" {
		return
	}
	x, first := c.x, c.x.lookup(around.name, around.at)
	if first == nil {
		return
	}
	if list := x.source[first]; len(list) == 1 && list[0].load != nil {
		if other := c.s.load(x, list[0].load.ModuleName()); other != nil {
			x, first = other, other.global(list[0].from.Name)
		}
	}
	if def := x.def(first); def != nil {
		for i, p := range def.Params {
			if id := paramName(p); id != nil && i >= around.index {
				if _, variadic := p.(*syntax.UnaryExpr); !variadic {
					kw(id.Name, "of "+def.Name.Name, "")
				}
			}
		}
	}
}

// names are those in scope, those of the file, those of the language, and keywords.
func (c *completer) names(offset int) {
	l := c.s.lang
	for _, sc := range c.x.scopes(offset) {
		for _, id := range sc.names {
			c.local(1, id)
		}
	}
	for _, id := range c.x.names() {
		c.local(2, id)
	}
	for i := range l.list {
		if sig := &l.list[i]; sig.Receiver == "" {
			c.add(3, completionItem{Label: sig.Name, Kind: itemFunction, Detail: sig.Usage(), Data: "sig:" + sig.Name})
		}
	}
	for name := range l.modules {
		c.add(3, completionItem{Label: name, Kind: itemModule, Data: "name:" + name})
	}
	for _, name := range starlark.Universe.Keys() {
		c.add(4, completionItem{Label: name, Kind: itemFunction, Data: "name:" + name})
	}
	for _, w := range []string{"and", "break", "continue", "def", "elif", "else", "for", "if", "in", "lambda", "load", "not", "or",
		"pass", "return", "while", "with"} {
		c.add(5, completionItem{Label: w, Kind: itemKeyword})
	}
}

// local adds a name that the file binds.
func (c *completer) local(rank int, id *syntax.Ident) {
	item := completionItem{Label: id.Name, Kind: itemVariable, Detail: c.s.lang.boundType(c.x, id, 0)}
	if def := c.x.def(id); def != nil {
		item.Kind = itemFunction
		doc := c.s.markup(describeDef(c.x, def), c.s.caps.Capabilities.TextDocument.Completion.CompletionItem.DocumentationFormat)
		item.Documentation = &doc
	}
	c.add(rank, item)
}

// inString completes what a string names: a file, a name in one, a buffer, or one of
// the values that a parameter can have.
func (c *completer) inString(i int) {
	around := c.x.callAround(i - 1)
	if around == nil {
		return
	}
	if around.name == "load" && around.receiver == "" {
		if around.index == 0 && around.keyword == "" {
			c.loadable()
			return
		}
		c.exported(i)
		return
	}
	sig := c.s.lang.signatureOf(c.x, around)
	if sig == nil {
		return
	}
	p := around.param(sig)
	if p == "buffer" {
		for _, name := range append([]string{"input", "output"}, c.x.buffers(c.s.lang, i)...) {
			c.add(0, completionItem{Label: name, Kind: itemValue})
		}
	}
	for _, v := range c.s.o.Values[key(sig)+"."+p] {
		c.add(0, completionItem{Label: v, Kind: itemValue})
	}
}

// buffers are the strings that the file names buffers by, but for token i. Calls are
// told by their names alone: there may be many.
func (x *tree) buffers(l *language, i int) []string {
	var names []string
	seen := make(map[string]bool)
	for j, k := range x.tokens {
		if k.kind != stringToken || j == i || j == 0 || !k.closed() || seen[k.value()] {
			continue
		}
		around := x.callAround(j - 1)
		if around == nil {
			continue
		}
		if l.namesBuffer(around) {
			seen[k.value()] = true
			names = append(names, k.value())
		}
	}
	return names
}

// namesBuffer reports whether the argument of a call names a buffer, whichever type
// the call's receiver is of.
func (l *language) namesBuffer(c *call) bool {
	if c.receiver == "" {
		sig := l.sigs[c.name]
		return sig != nil && c.param(sig) == "buffer"
	}
	return slices.ContainsFunc(l.list, func(s starlib.Signature) bool {
		return s.Name == c.name && s.Receiver != "" && c.param(&s) == "buffer"
	})
}

// loadable are the library's scripts and those beside the document.
func (c *completer) loadable() {
	for _, name := range c.s.shippedNames() {
		c.add(1, completionItem{Label: starlib.LibraryPrefix + name, Kind: itemFile})
	}
	if strings.Contains(c.x.name, "://") || strings.HasPrefix(c.x.name, starlib.LibraryPrefix) {
		return
	}
	dir := filepath.Dir(c.x.name)
	entries, err := os.ReadDir(dir)
	if err != nil { // the document may not be on disk yet
		return
	}
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".star") && filepath.Join(dir, e.Name()) != c.x.name {
			c.add(0, completionItem{Label: e.Name(), Kind: itemFile})
		}
	}
}

// exported are the names of the file that a load names.
func (c *completer) exported(i int) {
	other := c.s.load(c.x, c.x.loadedBy(i))
	if other == nil {
		return
	}
	for _, id := range other.globals() {
		if strings.HasPrefix(id.Name, "_") {
			continue
		}
		kind := itemVariable
		if other.def(id) != nil {
			kind = itemFunction
		}
		doc := c.s.markup(c.s.describeLocal(other, id, 0), c.s.caps.Capabilities.TextDocument.Completion.CompletionItem.DocumentationFormat)
		c.add(0, completionItem{Label: id.Name, Kind: kind, Documentation: &doc})
	}
}

// resolveItem adds the documentation of an item that the client shows.
func (s *server) resolveItem(params json.RawMessage) (handler, error) {
	var item completionItem
	if err := unmarshal(params, &item); err != nil {
		return nil, err
	}
	return func(context.Context) (any, error) {
		text := ""
		kind, name, _ := strings.Cut(item.Data, ":")
		switch kind {
		case "sig":
			if sig := s.lang.sigs[name]; sig != nil {
				text = describe(sig)
			}
		case "name":
			text = s.describeGlobal(name)
		case "param":
			fn, param, _ := strings.Cut(name, ":")
			if sig := s.lang.sigs[fn]; sig != nil {
				for _, p := range sig.Params {
					if p.Name == param {
						text = describeParam(p)
					}
				}
			}
		}
		if text != "" {
			doc := s.markup(text, s.caps.Capabilities.TextDocument.Completion.CompletionItem.DocumentationFormat)
			item.Documentation = &doc
		}
		return item, nil
	}, nil
}

// signatureHelp shows the parameters of the call that is being written.
func (s *server) signatureHelp(q query) any {
	x := q.tree
	i := x.before(q.offset)
	if j := x.stringAt(q.offset); j >= 0 {
		i = j
	}
	c, sig := s.lang.known(x, i)
	if sig == nil {
		return nil
	}
	doc := s.markup(sig.Doc, nil)
	info := signatureInfo{Label: sig.Usage(), Documentation: &doc, Parameters: []parameterInfo{}}
	active := len(sig.Params)
	for n, p := range sig.Params {
		label := p.Name
		if p.Default != "" {
			label += "=" + p.Default
		}
		doc := s.markup(p.Help, nil)
		info.Parameters = append(info.Parameters, parameterInfo{label, &doc})
		if p.Name == c.param(sig) {
			active = n
		}
	}
	return signatureHelp{Signatures: []signatureInfo{info}, ActiveParameter: active}
}
