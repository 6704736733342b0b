package starlib

import (
	"regexp"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// declared is a parameter and the value that the script got for it.
type declared struct {
	index int // in Script.Params
	value starlark.Value
}

// flagName is what a command line can spell after "--".
var flagName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// declareParam implements param(name, default, help, choices).
func declareParam(c *call) (starlark.Value, error) {
	name, def := c.v.string(0, ""), c.v[1]
	if !flagName.MatchString(name) {
		return nil, c.sig.errorf("bad-parameter", "name: got %q, want letters, digits, '_' and '-', a letter first", name)
	}
	p := Param{Name: name, Help: c.v.string(2, ""), Type: paramType(def), Pos: c.in.here()}
	if p.Type == "" {
		return nil, c.sig.errorf("bad-parameter", "%s: got a default of type %s, want int, float, bool or string", name, def.Type())
	}
	p.Default = spelled(def)
	p.Value = p.Default
	text, given := c.in.o.Args[name]
	p.Given = given

	choices, err := c.choices(name, def)
	if err != nil {
		return nil, err
	}
	for _, x := range choices {
		p.Choices = append(p.Choices, spelled(x))
	}
	if err := c.in.record(&p); err != nil {
		return nil, err
	}
	value := def
	if given {
		if value, err = parseParam(text, p.Type); err != nil {
			return nil, c.sig.errorf("bad-value", "%s: got %q, want %s", name, text, withArticle(p.Type))
		}
	}
	if err := c.chosen(name, value, choices); err != nil {
		return nil, err
	}
	c.in.script.Params[c.in.params[name].index].Value = spelled(value)
	c.in.params[name].value = value
	return value, nil
}

// record adds p to the script's parameters, unless the script has it already. A
// loaded file may repeat what another file declares with the same type; a file
// that declares a name twice is wrong.
func (in *interp) record(p *Param) error {
	old, ok := in.params[p.Name]
	if !ok {
		in.params[p.Name] = &declared{index: len(in.script.Params)}
		in.script.Params = append(in.script.Params, *p)
		return nil
	}
	first := &in.script.Params[old.index]
	if first.Pos.File == p.Pos.File || first.Type != p.Type {
		return diag.Errorf(p.Pos, "bad-parameter", "param: %s was declared already", p.Name).
			Note(first.Pos, "declared here, of type %s", first.Type)
	}
	return nil
}

// choices are the values that the parameter is limited to, nil for no limit.
func (c *call) choices(name string, def starlark.Value) ([]starlark.Value, error) {
	if !c.v.given(3) {
		return nil, nil
	}
	var list []starlark.Value
	for x := range starlark.Elements(c.v[3].(starlark.Iterable)) {
		if x.Type() != def.Type() {
			return nil, c.sig.errorf("bad-parameter", "%s: got %s among the choices, want %s like the default", name, x.Type(), def.Type())
		}
		list = append(list, x)
	}
	if len(list) == 0 {
		return nil, c.sig.errorf("bad-parameter", "%s: got no choices, want one at least", name)
	}
	return list, nil
}

// chosen checks that value is one of the choices.
func (c *call) chosen(name string, value starlark.Value, choices []starlark.Value) error {
	if choices == nil {
		return nil
	}
	var all []string
	for _, x := range choices {
		if same, err := starlark.Equal(x, value); err == nil && same {
			return nil
		}
		all = append(all, spelled(x))
	}
	m := c.sig.errorf("bad-value", "%s: got %s, want one of %s", name, spelled(value), strings.Join(all, ", "))
	if near := Nearest(spelled(value), all); near != "" && value.Type() == "string" {
		m.Suggest("did you mean %s?", near)
	}
	return m
}

// paramType is the type of a default that a command line can spell, or "".
func paramType(v starlark.Value) string {
	switch v.(type) {
	case starlark.Int, starlark.Float, starlark.Bool, starlark.String:
		return v.Type()
	}
	return ""
}

func withArticle(typ string) string {
	switch typ {
	case "int":
		return "an integer"
	case "float":
		return "a number"
	case "bool":
		return "true or false"
	}
	return "a string"
}

// parseParam reads a command line's spelling.
func parseParam(text, typ string) (starlark.Value, error) {
	switch typ {
	case "int":
		n, err := strconv.ParseInt(strings.TrimSpace(text), 0, 64)
		return starlark.MakeInt64(n), err
	case "float":
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		return starlark.Float(f), err
	case "bool":
		switch strings.ToLower(text) {
		case "yes", "on":
			return starlark.True, nil
		case "no", "off":
			return starlark.False, nil
		}
		b, err := strconv.ParseBool(strings.ToLower(text))
		return starlark.Bool(b), err
	}
	return starlark.String(text), nil
}

// spelled is v as a command line spells it.
func spelled(v starlark.Value) string {
	switch v := v.(type) {
	case starlark.String:
		return string(v)
	case starlark.Bool:
		return strconv.FormatBool(bool(v))
	}
	return v.String()
}

// paramInt is the value of an int parameter of the script, or def where the
// script has none of that name.
func (in *interp) paramInt(s *signature, name string, def int32) (int32, error) {
	d := in.params[name]
	if d == nil || d.value == nil {
		return def, nil
	}
	n, ok := d.value.(starlark.Int)
	if !ok {
		return 0, s.errorf("bad-parameter", "%s: the parameter of that name is %s, want int", name, d.value.Type()).
			Suggest("pass %s = ... explicitly", name)
	}
	x, err := starlark.AsInt32(n)
	if err != nil {
		return 0, s.errorf("bad-argument", "%s: got %s, want an int of 32 bits", name, n)
	}
	return int32(x), nil
}

// paramString is paramInt for a string.
func (in *interp) paramString(s *signature, name, def string) (string, error) {
	d := in.params[name]
	if d == nil || d.value == nil {
		return def, nil
	}
	str, ok := d.value.(starlark.String)
	if !ok {
		return "", s.errorf("bad-parameter", "%s: the parameter of that name is %s, want string", name, d.value.Type()).
			Suggest("pass %s = ... explicitly", name)
	}
	return string(str), nil
}
