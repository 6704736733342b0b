package pyfront

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// percent is text % values.
func percent(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	f := &percentFormat{rest: pyStr(args[0]), values: starlark.Tuple{args[1]}}
	switch v := args[1].(type) {
	case starlark.Tuple:
		f.values = v
	case *starlark.Dict:
		f.dict = v
	}
	if err := f.run(); err != nil {
		return nil, err
	}
	if f.used < len(f.values) && f.dict == nil {
		return nil, fmt.Errorf("%%: got %d values, want %d", len(f.values), f.used)
	}
	return starlark.String(f.out.String()), nil
}

type percentFormat struct {
	rest   string
	values starlark.Tuple
	dict   *starlark.Dict
	used   int
	out    strings.Builder
}

func (f *percentFormat) run() error {
	for {
		before, after, found := strings.Cut(f.rest, "%")
		f.out.WriteString(before)
		if !found {
			return nil
		}
		f.rest = after
		if err := f.one(); err != nil {
			return err
		}
	}
}

// one formats the conversion behind a percent sign.
func (f *percentFormat) one() error {
	var v starlark.Value
	if key, after, ok := strings.Cut(f.rest, ")"); ok && strings.HasPrefix(key, "(") {
		f.rest = after
		if f.dict == nil {
			return fmt.Errorf("%%: %%(%s) wants a dict", key[1:])
		}
		x, found, err := f.dict.Get(starlark.String(key[1:]))
		if err != nil || !found {
			return fmt.Errorf("%%: the dict has no key %s", quote(key[1:]))
		}
		v = x
	}
	n := len(f.rest) - len(strings.TrimLeft(f.rest, "+- #0123456789."))
	flags := f.rest[:n]
	f.rest = f.rest[n:]
	if f.rest == "" {
		return fmt.Errorf("%%: the text ends in the middle of a conversion")
	}
	verb := f.rest[0]
	f.rest = f.rest[1:]
	if verb == '%' {
		f.out.WriteByte('%')
		return nil
	}
	if v == nil {
		if f.used >= len(f.values) {
			return fmt.Errorf("%%: got %d values, want more", len(f.values))
		}
		v = f.values[f.used]
		f.used++
	}
	s, err := percentValue(flags, verb, v)
	f.out.WriteString(s)
	return err
}

// percentValue formats one value by turning the conversion into a format
// specification.
func percentValue(flags string, verb byte, v starlark.Value) (string, error) {
	spec := &format{fill: ' ', sign: '-', align: '>', precision: -1, verb: verb, text: "%" + flags + string(verb)}
	rest := strings.TrimLeft(flags, "+- #0")
	for _, c := range flags[:len(flags)-len(rest)] {
		switch c {
		case '+', ' ':
			if spec.sign != '+' {
				spec.sign = byte(c)
			}
		case '-':
			spec.align, spec.fill = '<', ' '
		case '0':
			if spec.align != '<' {
				spec.align, spec.fill = '=', '0'
			}
		case '#':
			spec.alternate = true
		}
	}
	width, precision, dot := strings.Cut(rest, ".")
	var err error
	if width != "" {
		if spec.width, err = strconv.Atoi(width); err != nil || spec.width > maxWidth {
			return "", fmt.Errorf("%%: %s: a bad width", spec.text)
		}
	}
	if dot {
		if spec.precision, _ = leadingInt(precision); spec.precision > maxWidth {
			return "", fmt.Errorf("%%: %s: a bad precision", spec.text)
		}
	}
	switch verb {
	case 's', 'r', 'a':
		if err := noPlan(v); err != nil {
			return "", err
		}
		text := pyStr(v)
		if verb != 's' {
			text = pyRepr(v)
		}
		plain := &format{fill: ' ', sign: '-', align: spec.align, width: spec.width, precision: spec.precision, text: spec.text}
		if plain.align == '=' {
			plain.align = '>'
		}
		return plain.str(text)
	case 'd', 'i', 'u':
		spec.verb = 'd'
		if x, ok := v.(starlark.Float); ok {
			n, err := starlark.NumberToInt(x)
			if err != nil {
				return "", err
			}
			v = n
		}
	case 'c':
		if s, ok := v.(starlark.String); ok && utf8.RuneCountInString(string(s)) == 1 {
			return spec.pad("", string(s), '>'), nil
		}
	case 'o', 'x', 'X', 'e', 'E', 'f', 'F', 'g', 'G':
	default:
		return "", fmt.Errorf("%%: %s is no conversion", spec.text)
	}
	if !isNumber(v) {
		if b, ok := v.(starlark.Bool); ok {
			v = number01(b)
		} else {
			return "", fmt.Errorf("%%: %s: got %s, want a number", spec.text, v.Type())
		}
	}
	return spec.apply(v)
}

// stringMethod is a method of strings that Starlark lacks or has less of.
func stringMethod(s, name string) native {
	pad := func(f *format) native {
		return func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			fill := " "
			if err := starlark.UnpackPositionalArgs(name, args, kwargs, 1, &f.width, &fill); err != nil {
				return nil, err
			}
			if utf8.RuneCountInString(fill) != 1 || f.width > maxWidth {
				return nil, fmt.Errorf("%s: want one character to fill with and a width of %d at most", name, maxWidth)
			}
			if f.align != '=' {
				f.fill = []rune(fill)[0]
			}
			return starlark.String(f.pad("", s, f.align)), nil
		}
	}
	switch name {
	case "ljust":
		return pad(&format{align: '<'})
	case "rjust":
		return pad(&format{align: '>'})
	case "center":
		return pad(&format{align: '^'})
	case "zfill":
		return func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			f := &format{fill: '0', align: '='}
			if err := starlark.UnpackPositionalArgs(name, args, kwargs, 1, &f.width); err != nil {
				return nil, err
			}
			f.width = min(f.width, maxWidth)
			if s != "" && (s[0] == '-' || s[0] == '+') {
				return starlark.String(f.pad(s[:1], s[1:], '=')), nil
			}
			return starlark.String(f.pad("", s, '=')), nil
		}
	case "format":
		return func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			t := &template{rest: s, args: args, kwargs: kwargs}
			err := t.run()
			return starlark.String(t.out.String()), err
		}
	}
	return nil
}

// template is the text of str.format.
type template struct {
	rest   string
	args   starlark.Tuple
	kwargs []starlark.Tuple
	next   int
	out    strings.Builder
}

func (t *template) run() error {
	for t.rest != "" {
		i := strings.IndexAny(t.rest, "{}")
		if i < 0 {
			t.out.WriteString(t.rest)
			return nil
		}
		t.out.WriteString(t.rest[:i])
		t.rest = t.rest[i:]
		if len(t.rest) > 1 && t.rest[1] == t.rest[0] {
			t.out.WriteByte(t.rest[0])
			t.rest = t.rest[2:]
			continue
		}
		end := strings.IndexByte(t.rest, '}')
		if t.rest[0] == '}' || end < 0 {
			return fmt.Errorf("format: a single '%c'; write '%c%c'", t.rest[0], t.rest[0], t.rest[0])
		}
		hole := t.rest[1:end]
		t.rest = t.rest[end+1:]
		if strings.Contains(hole, "{") {
			return fmt.Errorf("format: a hole within the hole '{%s}' is beyond what is done here", hole)
		}
		if err := t.hole(hole); err != nil {
			return err
		}
	}
	return nil
}

func (t *template) hole(hole string) error {
	field, spec, _ := strings.Cut(hole, ":")
	field, conversion, _ := strings.Cut(field, "!")
	v, err := t.value(field)
	if err != nil {
		return err
	}
	s, err := formatted(v, conversion, spec)
	t.out.WriteString(s)
	return err
}

// value finds what a hole names: the next argument, one by number, or by keyword.
func (t *template) value(field string) (starlark.Value, error) {
	if field == "" {
		t.next++
		field = strconv.Itoa(t.next - 1)
	}
	if n, err := strconv.Atoi(field); err == nil {
		if n < 0 || n >= len(t.args) {
			return nil, fmt.Errorf("format: got %d arguments, want one more for {%s}", len(t.args), field)
		}
		return t.args[n], nil
	}
	for _, kw := range t.kwargs {
		if string(kw[0].(starlark.String)) == field {
			return kw[1], nil
		}
	}
	if strings.ContainsAny(field, ".[") {
		return nil, fmt.Errorf("format: fields and elements, as in {%s}, are beyond what is done here", field)
	}
	return nil, fmt.Errorf("format: no argument is called %s", field)
}
