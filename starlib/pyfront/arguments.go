package pyfront

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// parsing is one call of parse_args.
type parsing struct {
	p        *parserValue
	out      *namespace
	open     []*argument // positional ones still to come
	words    []string    // that stand together and at no flag
	rest     []string    // flags that nobody knows
	seen     map[*argument]bool
	numbers  bool // some flag looks like a negative number
	fromLine bool // the words are the command line's
}

// isFlag reports whether a word starts like a flag; a negative number doesn't.
func isFlag(s string) bool {
	return len(s) > 1 && s[0] == '-' && !isNegative(s)
}

func isNegative(s string) bool {
	digits := strings.TrimLeft(s[1:], "0123456789")
	return s[0] == '-' && len(s) > 1 && (digits == "" || digits[0] == '.' && strings.Trim(digits[1:], "0123456789") == "")
}

// parse is parse_args: the words are the script's own arguments, or a list.
func (p *parserValue) parse(args starlark.Tuple, kwargs []starlark.Tuple) (*namespace, []string, error) {
	var list, into starlark.Value = starlark.None, starlark.None
	if err := starlark.UnpackArgs("parse_args", args, kwargs, "args?", &list, "namespace?", &into); err != nil {
		return nil, nil, err
	}
	s := &parsing{p: p, out: &namespace{fields: starlark.StringDict{}}, seen: map[*argument]bool{}}
	if n, ok := into.(*namespace); ok {
		s.out = n
	}
	for _, a := range p.args {
		if a.positional() {
			s.open = append(s.open, a)
		}
		for _, f := range a.flags {
			s.numbers = s.numbers || isNegative(f)
		}
	}
	words := p.r.o.Argv
	if it, ok := list.(starlark.Iterable); ok {
		words = nil
		for v := range starlark.Elements(it) {
			words = append(words, pyStr(v))
		}
	} else {
		s.fromLine, p.r.parsed = true, true
	}
	if err := s.run(words); err != nil {
		return nil, nil, err
	}
	return s.out, s.rest, nil
}

func (s *parsing) run(words []string) error {
	for _, a := range s.p.args {
		s.out.set(a.dest, a.def)
	}
	for _, dest := range s.p.order {
		if _, ok := s.out.fields[dest]; !ok {
			s.out.set(dest, s.p.defaults[dest])
		}
	}
	for len(words) > 0 {
		n, err := s.word(words)
		if err != nil {
			return err
		}
		words = words[n:]
	}
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.missing(); err != nil {
		return err
	}
	return s.settle()
}

// looksLikeFlag is isFlag where the parser may have flags such as -1.
func (s *parsing) looksLikeFlag(w string) bool {
	return isFlag(w) || s.numbers && len(w) > 1 && w[0] == '-'
}

// word reads the first of words, and how many belong to it.
func (s *parsing) word(words []string) (int, error) {
	w := words[0]
	if w == "--" {
		s.words = append(s.words, words[1:]...)
		return len(words), nil
	}
	if !s.looksLikeFlag(w) {
		s.words = append(s.words, w)
		return 1, nil
	}
	a, spelled, value, attached, err := s.flag(w)
	switch {
	case err != nil:
		return 0, err
	case a != nil:
		if err := s.flush0(); err != nil {
			return 0, err
		}
		return s.take(a, spelled, value, attached, words)
	case w == "-h" || w == "--help":
		s.p.r.failed = diag.Errorf(diag.Pos{File: s.p.r.o.File}, "help", "%s", Usage(s.p.r.o.File, s.p.r.env.Declared()))
		return 0, s.p.r.failed
	}
	if s.fromLine {
		if n := s.p.r.tool(words); n > 0 {
			return n, nil
		}
	}
	if err := s.flush0(); err != nil {
		return 0, err
	}
	s.rest = append(s.rest, w)
	return 1, nil
}

// flush0 is flush in front of a flag, where no words stand for nothing.
func (s *parsing) flush0() error {
	if len(s.words) == 0 {
		return nil
	}
	return s.flush()
}

// flag finds what a word that starts like a flag means: a flag, one with its
// value attached, or an abbreviation. spelled is the flag in full.
func (s *parsing) flag(w string) (a *argument, spelled, value string, attached bool, err error) {
	name, value, attached := strings.Cut(w, "=")
	var near []*argument
	var full []string
	for _, a := range s.p.args {
		for _, f := range a.flags {
			switch {
			case f == w:
				return a, f, "", false, nil
			case f == name && attached:
				return a, f, value, true, nil
			case s.p.prefixes && strings.HasPrefix(name, "--") && strings.HasPrefix(f, name):
				near, full = append(near, a), append(full, f)
			}
		}
	}
	if len(near) == 1 {
		return near[0], full[0], value, attached, nil
	}
	if len(near) > 1 {
		return nil, "", "", false, s.p.wrong("bad-call", "ambiguous option: %s could match %s", name, strings.Join(full, ", "))
	}
	if !strings.HasPrefix(w, "--") { // -n8
		for _, a := range s.p.args {
			for _, f := range a.flags {
				if len(f) == 2 && strings.HasPrefix(w, f) && a.takesValue() {
					return a, f, strings.TrimPrefix(w[2:], "="), true, nil
				}
			}
		}
	}
	return nil, "", "", false, nil
}

// take does what a flag says; words begin with it.
func (s *parsing) take(a *argument, spelled, value string, attached bool, words []string) (int, error) {
	s.seen[a] = true
	if !a.takesValue() {
		if attached {
			return 0, s.p.wrong("bad-call", "argument %s: ignored explicit argument %s", a.name(), quote(value))
		}
		switch a.action {
		case "count":
			n, _ := s.out.fields[a.dest].(starlark.Int) // None counts from 0
			s.out.set(a.dest, n.Add(starlark.MakeInt(1)))
		case bothWays:
			s.out.set(a.dest, starlark.Bool(!strings.HasPrefix(spelled, "--no-")))
		default:
			s.out.set(a.dest, a.constant)
		}
		return 1, nil
	}
	n := 1
	var got []string
	if attached {
		got = []string{value}
	} else {
		limit := a.most()
		for n < len(words) && len(got) < limit && !s.looksLikeFlag(words[n]) {
			got = append(got, words[n])
			n++
		}
	}
	if err := s.short(a, len(got)); err != nil {
		return 0, err
	}
	return n, s.store(a, got)
}

// most and least are how many words the argument takes.
func (a *argument) most() int {
	switch a.nargs {
	case "", "?":
		return 1
	case "*", "+":
		return 1 << 30
	}
	return a.count
}

func (a *argument) least() int {
	switch a.nargs {
	case "?", "*":
		return 0
	case "", "+":
		return 1
	}
	return a.count
}

func (s *parsing) short(a *argument, got int) error {
	if got >= a.least() {
		return nil
	}
	want := "one argument"
	switch {
	case a.nargs == "+":
		want = "at least one argument"
	case a.count > 1:
		want = fmt.Sprintf("%d arguments", a.count)
	}
	return s.p.wrong("bad-call", "argument %s: expected %s", a.name(), want)
}

// flush shares the words that stand together out among the positional arguments
// that are still to come, as argparse does: among as many of them as can have
// enough, from left to right, each as many words as leave enough for the others.
func (s *parsing) flush() error {
	n, least := 0, 0
	for n < len(s.open) && least+s.open[n].least() <= len(s.words) {
		least += s.open[n].least()
		n++
	}
	for _, a := range s.open[:n] {
		least -= a.least()
		k := min(a.most(), len(s.words)-least)
		if err := s.positional(a, s.words[:k]); err != nil {
			return err
		}
		s.words = s.words[k:]
	}
	s.open = s.open[n:]
	s.rest = append(s.rest, s.words...)
	s.words = nil
	return nil
}

func (s *parsing) positional(a *argument, words []string) error {
	s.seen[a] = true
	switch {
	case len(words) > 0:
		return s.store(a, words)
	case a.nargs == "*" && a.def == starlark.None:
		s.out.set(a.dest, starlark.NewList(nil))
	case a.nargs == "?" || a.nargs == "*":
		delete(s.seen, a) // the default stands, and may still need its type
	}
	return nil
}

// missing checks that nothing required is left out.
func (s *parsing) missing() error {
	var list []string
	for _, a := range s.p.args {
		if a.required && !s.seen[a] {
			list = append(list, a.name())
		}
	}
	if len(list) > 0 {
		return s.p.wrong("bad-call", "the following arguments are required: %s", strings.Join(list, ", "))
	}
	return nil
}

func (p *parserValue) unrecognized(rest []string) error {
	err := p.wrong("bad-call", "unrecognized arguments: %s", strings.Join(rest, " "))
	var flags []string
	for _, a := range p.args {
		flags = append(flags, a.flags...)
	}
	name, _, _ := strings.Cut(rest[0], "=")
	if near := nearest(name, flags); near != "" {
		err.(*diag.Message).Suggest("did you mean %s?", near)
	}
	return err
}

// store converts words and puts them where the argument keeps them.
func (s *parsing) store(a *argument, words []string) error {
	values := make([]starlark.Value, len(words))
	for i, w := range words {
		var err error
		if values[i], err = s.convert(a, w); err != nil {
			return err
		}
	}
	var v starlark.Value
	switch {
	case a.nargs == "" || a.nargs == "?" && len(values) == 1:
		v = values[0]
	case a.nargs == "?":
		v = a.constant
	default:
		v = starlark.NewList(values)
	}
	if a.action == "append" {
		old, _ := s.out.fields[a.dest].(*starlark.List) // None for the first
		var list []starlark.Value
		if old != nil {
			for x := range starlark.Elements(old) {
				list = append(list, x)
			}
		}
		v = starlark.NewList(append(list, v))
	}
	s.out.set(a.dest, v)
	p := &s.p.r.env.Declared()[a.index]
	p.Value, p.Given = pyStr(v), s.fromLine
	return nil
}

// convert is one word as the argument's type, checked against its choices.
func (s *parsing) convert(a *argument, word string) (starlark.Value, error) {
	var v starlark.Value = starlark.String(word)
	if a.conv != nil {
		arg := v
		if b, ok := a.conv.(*starlark.Builtin); ok && (b.Name() == "int" || b.Name() == "float") {
			arg = starlark.String(strings.ReplaceAll(strings.TrimSpace(word), "_", ""))
		}
		var err error
		if v, err = starlark.Call(s.p.r.env.Thread(), a.conv, starlark.Tuple{arg}, nil); err != nil {
			return nil, s.p.wrong("bad-value", "argument %s: invalid %s value: %s", a.name(), typeName(a.conv), quote(word))
		}
	}
	if a.choices == nil {
		return v, nil
	}
	var all []string
	for _, c := range a.choices {
		if same, err := starlark.Equal(c, v); err == nil && same {
			return v, nil
		}
		all = append(all, pyRepr(c))
	}
	return nil, s.p.wrong("bad-value", "argument %s: invalid choice: %s (choose from %s)", a.name(), pyRepr(v), strings.Join(all, ", "))
}

func typeName(conv starlark.Value) string {
	if c, ok := conv.(starlark.Callable); ok {
		if c.Name() == "lambda" {
			return "<lambda>"
		}
		return c.Name()
	}
	return conv.Type()
}

// settle converts defaults that are strings, as argparse does for arguments that
// were not given.
func (s *parsing) settle() error {
	for _, a := range s.p.args {
		text, ok := a.def.(starlark.String)
		if !ok || s.seen[a] || a.conv == nil || !a.takesValue() {
			continue
		}
		v, err := starlark.Call(s.p.r.env.Thread(), a.conv, starlark.Tuple{text}, nil)
		if err != nil {
			return s.p.wrong("bad-value", "argument %s: invalid %s value: %s", a.name(), typeName(a.conv), quote(string(text)))
		}
		s.out.set(a.dest, v)
	}
	return nil
}
