package starlib

import (
	"cmp"
	_ "embed"
	"fmt"
	"strings"
)

// Signature describes one function or method to readers and to completion.
type Signature struct {
	Receiver string // the type that it is a method of, "" for a function
	Name     string
	Params   []SignatureParam
	Result   string // the type of the result, "" for none
	Doc      string // the first line is a summary
	Example  string // Starlark, "" for none
}

// SignatureParam is one parameter. Default is as a script would write it, "" for
// one that must be given.
type SignatureParam struct{ Name, Type, Default, Help string }

// Usage is the call with its parameters and their defaults.
func (s *Signature) Usage() string {
	var params []string
	for _, p := range s.Params {
		if p.Default != "" {
			params = append(params, p.Name+"="+p.Default)
		} else {
			params = append(params, p.Name)
		}
	}
	name := s.Name
	if s.Receiver != "" {
		name = s.Receiver + "." + name
	}
	return name + "(" + strings.Join(params, ", ") + ")"
}

// Signatures lists every function and method of the language in the order of the
// reference.
func Signatures() []Signature {
	var list []Signature
	for _, g := range table() {
		for _, s := range g.sigs {
			list = append(list, s.public())
		}
	}
	return list
}

func (s *signature) public() Signature {
	out := Signature{Receiver: s.recv, Name: s.name, Result: s.result, Doc: s.doc, Example: s.example}
	if s.example == "" {
		key := strings.TrimPrefix(s.recv+"."+s.name, ".")
		out.Example = cmp.Or(examples[key], oneExamples[key])
	}
	for _, p := range s.params {
		typ := kindNames[p.kind]
		if p.def == "None" && p.kind != anyValue {
			typ += " or None"
		}
		out.Params = append(out.Params, SignatureParam{p.name, typ, p.def, p.help})
	}
	return out
}

//go:embed intro.md
var intro string

// Reference is the language reference in Markdown: docs/language.md.
func Reference() string {
	var b strings.Builder
	b.WriteString("<!-- Generated from the signature table of package starlib; `mscclsh doc language` prints it. -->\n\n")
	b.WriteString(intro)
	for _, g := range table() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", g.title, g.doc)
		for _, s := range g.sigs {
			p := s.public()
			p.write(&b)
		}
	}
	return b.String()
}

func (s *Signature) write(b *strings.Builder) {
	name := s.Name
	if s.Receiver != "" {
		name = s.Receiver + "." + name
	}
	fmt.Fprintf(b, "\n### %s\n\n```\n%s", name, s.Usage())
	if s.Result != "" {
		fmt.Fprintf(b, " -> %s", s.Result)
	}
	b.WriteString("\n```\n\n")
	b.WriteString(strings.ReplaceAll(s.Doc, "\n", " ") + "\n")
	if len(s.Params) > 0 {
		b.WriteString("\n")
	}
	for _, p := range s.Params {
		fmt.Fprintf(b, "- `%s` (%s", p.Name, p.Type)
		if p.Default != "" {
			fmt.Fprintf(b, ", default `%s`", p.Default)
		}
		fmt.Fprintf(b, "): %s\n", p.Help)
	}
	if s.Example != "" {
		fmt.Fprintf(b, "\n```python\n%s\n```\n", s.Example)
	}
}
