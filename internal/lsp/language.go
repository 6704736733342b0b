package lsp

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/starlib"
)

// language is what scripts can call, from the signature table.
type language struct {
	list    []starlib.Signature
	sigs    map[string]*starlib.Signature // by "name" and "receiver.name"
	modules map[string][]string           // names with what stands behind their dots
	plain   map[string]string             // Starlark's own functions: usage and what they do
}

func newLanguage() *language {
	l := &language{list: starlib.Signatures(), sigs: map[string]*starlib.Signature{}, modules: starlib.Modules(), plain: universe()}
	for i := range l.list {
		l.sigs[key(&l.list[i])] = &l.list[i]
	}
	return l
}

func key(s *starlib.Signature) string {
	if s.Receiver == "" {
		return s.Name
	}
	return s.Receiver + "." + s.Name
}

// method is the method of a type; where the type isn't known, the method of that
// name if there is one alone.
func (l *language) method(typ, name string) *starlib.Signature {
	if typ != "" {
		return l.sigs[typ+"."+name]
	}
	var found *starlib.Signature
	for i := range l.list {
		if s := &l.list[i]; s.Receiver != "" && s.Name == name {
			if found != nil {
				return nil
			}
			found = s
		}
	}
	return found
}

// members are what may follow the dot of a value of a type: fields first. ok is
// false where the type is unknown.
func (l *language) members(typ string) (fields, methods []string, ok bool) {
	fields = starlib.Fields(typ)
	for i := range l.list {
		if l.list[i].Receiver == typ && typ != "" {
			methods = append(methods, l.list[i].Name)
		}
	}
	if m, isModule := l.modules[typ]; isModule { // a type may have the name of the function that makes it
		fields = append(slices.DeleteFunc(slices.Clone(m), func(f string) bool { return slices.Contains(methods, f) }), fields...)
		return fields, methods, true
	}
	base, _, _ := strings.Cut(typ, " ")
	var sample interface{ AttrNames() []string }
	switch base {
	case "string":
		sample = starlark.String("")
	case "list":
		sample = starlark.NewList(nil)
	case "dict":
		sample = starlark.NewDict(0)
	}
	if sample != nil {
		return nil, sample.AttrNames(), true
	}
	return fields, methods, len(fields)+len(methods) > 0
}

// receivers are the types that have methods, in the order of the table.
func (l *language) receivers() []string {
	var list []string
	for i := range l.list {
		if r := l.list[i].Receiver; r != "" && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// describe is a signature in Markdown: the call, what it does, its parameters, and
// an example.
func describe(s *starlib.Signature) string {
	var b strings.Builder
	usage := s.Usage()
	if s.Result != "" {
		usage += " -> " + s.Result
	}
	fmt.Fprintf(&b, "```python\n%s\n```\n\n%s\n", usage, s.Doc)
	if len(s.Params) > 0 {
		b.WriteByte('\n')
	}
	for _, p := range s.Params {
		b.WriteString("- " + describeParam(p) + "\n")
	}
	if s.Example != "" {
		fmt.Fprintf(&b, "\n```python\n%s\n```\n", s.Example)
	}
	return strings.TrimSpace(b.String())
}

func describeParam(p starlib.SignatureParam) string {
	typ := p.Type
	if p.Default != "" {
		typ += fmt.Sprintf(", default `%s`", p.Default)
	}
	return fmt.Sprintf("`%s` (%s): %s", p.Name, typ, p.Help)
}

// code is a block of Starlark in Markdown; editors know Python's colors.
func code(s string) string { return "```python\n" + s + "\n```" }

// universe describes Starlark's own functions, each with its usage and, behind a
// line end, what it does.
func universe() map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(universeText), "\n") {
		usage, doc, _ := strings.Cut(line, " | ")
		name, _, _ := strings.Cut(usage, "(")
		out[name] = code(usage) + "\n\n" + doc
	}
	return out
}

// Universe is how one of Starlark's own functions is called, and what it does.
func Universe(name string) (usage, doc string, ok bool) {
	for _, line := range strings.Split(strings.TrimSpace(universeText), "\n") {
		usage, doc, _ = strings.Cut(line, " | ")
		if word, _, _ := strings.Cut(usage, "("); word == name {
			return usage, doc, true
		}
	}
	return "", "", false
}

const universeText = `
None | The value of what has none.
True | Not False.
False | Not True.
abs(x) | The absolute value of a number.
all(x) | Whether all elements are true.
any(x) | Whether any element is true.
bool(x=False) | Whether a value is true.
bytes(x) | A string or a list of numbers as bytes.
chr(i) | The character with a code point.
dict(pairs=[], **kwargs) | A dict of pairs and keywords.
dir(x) | The names of a value's fields and methods.
enumerate(x, start=0) | Pairs of a number and an element.
fail(*args, sep=" ") | Ends the script with an error.
float(x=0.0) | A number, or a string that spells one, as a float.
getattr(x, name, default) | The field or method of a name.
hasattr(x, name) | Whether a value has a field or method of a name.
hash(x) | A number for a string.
int(x, base) | A number, or a string that spells one, as an int; floats are cut off.
len(x) | How many elements a string, list, tuple, set or dict has.
list(x=[]) | The elements as a new list.
max(*args, key=None) | The largest argument, or the largest element of the only one.
min(*args, key=None) | The least argument, or the least element of the only one.
ord(s) | The code point of a character.
print(*args, sep=" ") | Prints a line, though not in an editor.
range(start, stop, step=1) | The ints from start, 0 if it isn't given, up to stop, which isn't among them.
repr(x) | A value as a script would write it.
reversed(x) | The elements backwards.
set(x=[]) | The elements as a set.
sorted(x, key=None, reverse=False) | The elements in order, as a new list.
str(x) | A value as text.
tuple(x=()) | The elements as a tuple.
type(x) | The name of a value's type.
zip(*args) | Tuples of the first elements of all arguments, of the second ones, and so on.
`
