package lsp

import "go.starlark.net/syntax"

// definition is where what stands at a place is bound: in this file, or in one that
// it loads.
func (s *server) definition(q query) any {
	x := q.tree
	i := x.tokenAt(q.offset)
	if i < 0 {
		return nil
	}
	k := x.tokens[i]
	switch {
	case k.kind == stringToken:
		return s.defineString(x, i)
	case k.kind != wordToken, i > 0 && x.tokens[i-1].text == ".":
		return nil
	case i+1 < len(x.tokens) && x.tokens[i+1].text == "=" && !x.isEqual(i+1):
		if c := x.callAround(i); c != nil && c.name != "load" {
			return s.defineParam(x, c, k.text)
		}
	}
	first := x.lookup(k.text, k.from)
	if first == nil {
		return nil
	}
	return s.defined(x, first)
}

// defined is where a name of a file was bound first, in the file that it was loaded
// from if it was.
func (s *server) defined(x *tree, first *syntax.Ident) any {
	for depth := 0; depth < maxInfer; depth++ {
		list := x.source[first]
		if len(list) == 0 || list[0].load == nil {
			break
		}
		other := s.load(x, list[0].load.ModuleName())
		if other == nil {
			break
		}
		there := other.global(list[0].from.Name)
		if there == nil {
			break
		}
		x, first = other, there
	}
	from := x.at(first.NamePos)
	return s.locationOf(x, from, from+len(first.Name))
}

// defineParam is the parameter of a function of the file that a keyword names.
func (s *server) defineParam(x *tree, c *call, name string) any {
	first := x.lookup(c.name, c.at)
	if first == nil || c.receiver != "" {
		return nil
	}
	def := x.def(first)
	if def == nil {
		return nil
	}
	for _, p := range def.Params {
		if id := paramName(p); id != nil && id.Name == name {
			from := x.at(id.NamePos)
			return s.locationOf(x, from, from+len(name))
		}
	}
	return nil
}

// defineString is the file that a load names, or what it loads from it.
func (s *server) defineString(x *tree, i int) any {
	c := x.callAround(i - 1)
	if c == nil || c.name != "load" || c.receiver != "" {
		return nil
	}
	if c.index == 0 && c.keyword == "" {
		if other := s.load(x, x.tokens[i].value()); other != nil {
			return s.locationOf(other, 0, 0)
		}
		return nil
	}
	if other := s.load(x, x.loadedBy(i)); other != nil {
		if there := other.global(x.tokens[i].value()); there != nil {
			return s.defined(other, there)
		}
	}
	return nil
}

// locationOf is a place in a file for the client, nil where it can't be shown.
func (s *server) locationOf(x *tree, from, to int) any {
	uri := s.uriOf(x.name)
	if uri == "" {
		return nil
	}
	return location{uri, x.text.span(from, to, s.enc)}
}
