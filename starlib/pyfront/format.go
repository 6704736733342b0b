package pyfront

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// pyStr is v as Python's str shows it.
func pyStr(v starlark.Value) string {
	switch v := v.(type) {
	case starlark.String:
		return string(v)
	case *instance:
		if v.class.isEnum() {
			return v.memberName()
		}
	}
	return pyRepr(v)
}

// maxRepr bounds how deep pyRepr looks into lists: a list can hold itself.
const maxRepr = 50

// pyRepr is v as Python's repr shows it.
func pyRepr(v starlark.Value) string {
	var b strings.Builder
	writeRepr(&b, v, 0)
	return b.String()
}

func writeRepr(b *strings.Builder, v starlark.Value, depth int) {
	if depth > maxRepr {
		b.WriteString("...")
		return
	}
	list := func(open string, it starlark.Iterable, end string) {
		b.WriteString(open)
		first := true
		for x := range starlark.Elements(it) {
			if !first {
				b.WriteString(", ")
			}
			first = false
			writeRepr(b, x, depth+1)
		}
		b.WriteString(end)
	}
	switch v := v.(type) {
	case starlark.String:
		b.WriteString(quote(string(v)))
	case starlark.Float:
		b.WriteString(pyFloat(float64(v)))
	case *starlark.List:
		list("[", v, "]")
	case starlark.Tuple:
		if len(v) == 1 {
			list("(", v, ",)")
		} else {
			list("(", v, ")")
		}
	case *starlark.Set:
		if v.Len() == 0 {
			b.WriteString("set()")
		} else {
			list("{", ordered(v).(starlark.Iterable), "}")
		}
	case *starlark.Dict:
		b.WriteByte('{')
		for i, kv := range v.Items() {
			if i > 0 {
				b.WriteString(", ")
			}
			writeRepr(b, kv[0], depth+1)
			b.WriteString(": ")
			writeRepr(b, kv[1], depth+1)
		}
		b.WriteByte('}')
	default:
		b.WriteString(v.String())
	}
}

func quote(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	var b strings.Builder
	b.WriteByte(q)
	for _, c := range s {
		switch {
		case c == rune(q) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte(q)
	return b.String()
}

// pyFloat is the shortest text that reads back as f, in Python's form.
func pyFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func toStr(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value = starlark.String("")
	if err := starlark.UnpackPositionalArgs("str", args, kwargs, 0, &x); err != nil {
		return nil, err
	}
	return starlark.String(pyStr(x)), noPlan(x)
}

func toRepr(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	if err := starlark.UnpackPositionalArgs("repr", args, kwargs, 1, &x); err != nil {
		return nil, err
	}
	return starlark.String(pyRepr(x)), nil
}

// joined puts an f-string together.
func joined(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	var b strings.Builder
	for x := range starlark.Elements(args[0].(starlark.Iterable)) {
		if err := noPlan(x); err != nil {
			return nil, err
		}
		b.WriteString(pyStr(x))
	}
	return starlark.String(b.String()), nil
}

// formatHole is a hole of an f-string: value, conversion and specification.
func formatHole(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	s, err := formatted(args[0], pyStr(args[1]), pyStr(args[2]))
	return starlark.String(s), err
}

func formatCall(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	spec := ""
	if err := starlark.UnpackPositionalArgs("format", args, kwargs, 1, &x, &spec); err != nil {
		return nil, err
	}
	s, err := formatted(x, "", spec)
	return starlark.String(s), err
}

func formatted(v starlark.Value, conversion, spec string) (string, error) {
	if err := noPlan(v); err != nil {
		return "", err
	}
	switch conversion {
	case "r", "a":
		v = starlark.String(pyRepr(v))
	case "s":
		v = starlark.String(pyStr(v))
	}
	if spec == "" {
		return pyStr(v), nil
	}
	f, err := parseFormat(spec)
	if err != nil {
		return "", err
	}
	return f.apply(v)
}

// format is a format specification of Python's.
type format struct {
	fill      rune
	align     byte // '<', '>', '^', '=' or 0
	sign      byte // '+', ' ' or '-'
	alternate bool
	width     int
	comma     byte // ',' or '_', or 0
	precision int  // -1 for none
	verb      byte // 0 for none
	text      string
}

const maxWidth = 10_000

func parseFormat(spec string) (*format, error) {
	f := &format{fill: ' ', sign: '-', precision: -1, text: spec}
	rest := spec
	isAlign := func(s string) bool { return s != "" && strings.IndexByte("<>^=", s[0]) >= 0 }
	if c, n := utf8.DecodeRuneInString(rest); n > 0 && isAlign(rest[n:]) {
		f.fill, f.align, rest = c, rest[n], rest[n+1:]
	} else if isAlign(rest) {
		f.align, rest = rest[0], rest[1:]
	}
	if rest != "" && strings.IndexByte("+- ", rest[0]) >= 0 {
		f.sign, rest = rest[0], rest[1:]
	}
	f.alternate, rest = cut(rest, '#')
	var zero bool
	if zero, rest = cut(rest, '0'); zero && f.align == 0 {
		f.fill, f.align = '0', '='
	}
	f.width, rest = leadingInt(rest)
	if rest != "" && (rest[0] == ',' || rest[0] == '_') {
		f.comma, rest = rest[0], rest[1:]
	}
	if dot, after := cut(rest, '.'); dot {
		if after == "" || after[0] < '0' || after[0] > '9' {
			return nil, fmt.Errorf("format: got %s, want digits after the dot", quote(spec))
		}
		f.precision, rest = leadingInt(after)
	}
	if len(rest) == 1 {
		f.verb, rest = rest[0], ""
	}
	if rest != "" {
		return nil, fmt.Errorf("format: %s is no format specification", quote(spec))
	}
	if f.width > maxWidth || f.precision > maxWidth {
		return nil, fmt.Errorf("format: %s: want a width of %d at most", quote(spec), maxWidth)
	}
	return f, nil
}

func cut(s string, c byte) (bool, string) {
	if s != "" && s[0] == c {
		return true, s[1:]
	}
	return false, s
}

func leadingInt(s string) (int, string) {
	n := 0
	for s != "" && '0' <= s[0] && s[0] <= '9' {
		n = min(n*10+int(s[0]-'0'), maxWidth+1)
		s = s[1:]
	}
	return n, s
}

func (f *format) apply(v starlark.Value) (string, error) {
	switch x := v.(type) {
	case starlark.String:
		return f.str(string(x))
	case starlark.Bool:
		if f.verb == 0 || f.verb == 's' {
			return f.str(pyStr(x))
		}
		return f.integer(number01(x).BigInt())
	case starlark.Int:
		if strings.IndexByte("eEfFgG%", f.verb) >= 0 && f.verb != 0 {
			return f.float(float64(x.Float()))
		}
		return f.integer(x.BigInt())
	case starlark.Float:
		return f.float(float64(x))
	}
	return "", fmt.Errorf("format: %s doesn't fit %s", quote(f.text), v.Type())
}

func (f *format) misfit(typ string) error {
	return fmt.Errorf("format: %s doesn't fit %s", quote(f.text), typ)
}

func (f *format) str(s string) (string, error) {
	if f.verb != 0 && f.verb != 's' || f.align == '=' || f.comma != 0 || f.alternate || f.sign != '-' {
		return "", f.misfit("string")
	}
	if f.precision >= 0 && utf8.RuneCountInString(s) > f.precision {
		s = string([]rune(s)[:f.precision])
	}
	return f.pad("", s, '<'), nil
}

func (f *format) integer(n *big.Int) (string, error) {
	if f.precision >= 0 {
		return "", f.misfit("int")
	}
	base, prefix := 10, ""
	switch f.verb {
	case 0, 'd', 'n':
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x', 'X':
		base, prefix = 16, "0"+string(f.verb)
	case 'c':
		if !n.IsInt64() || n.Int64() < 0 || n.Int64() > 0x10FFFF {
			return "", f.misfit("int")
		}
		return f.pad("", string(rune(n.Int64())), '<'), nil
	default:
		return "", f.misfit("int")
	}
	digits := new(big.Int).Abs(n).Text(base)
	if f.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if !f.alternate {
		prefix = ""
	}
	every := 3
	if base != 10 {
		every = 4
		if f.comma == ',' {
			return "", f.misfit("int")
		}
	}
	return f.pad(f.signOf(n.Sign() < 0)+prefix, f.grouped(digits, every), '>'), nil
}

func (f *format) float(x float64) (string, error) {
	verb, precision := f.verb, f.precision
	minus := math.Signbit(x) && !math.IsNaN(x)
	if f.alternate {
		return "", f.misfit("float")
	}
	var digits string
	switch verb {
	case 0:
		digits = pyFloat(math.Abs(x))
		if precision >= 0 {
			digits = general(math.Abs(x), precision, true)
		}
	case 'g', 'G':
		if precision < 0 {
			precision = 6
		}
		digits = general(math.Abs(x), precision, false)
	case 'e', 'E', 'f', 'F', '%':
		if precision < 0 {
			precision = 6
		}
		letter := verb | 0x20
		if verb == '%' {
			x, letter = x*100, 'f'
		}
		digits = strconv.FormatFloat(math.Abs(x), letter, precision, 64)
		if verb == '%' {
			digits += "%"
		}
	default:
		return "", f.misfit("float")
	}
	if verb == 'E' || verb == 'G' || verb == 'F' {
		digits = strings.ToUpper(digits)
	} else {
		digits = strings.Replace(strings.ToLower(digits), "+inf", "inf", 1)
	}
	whole, rest := digits, ""
	if i := strings.IndexAny(digits, ".e%"); i >= 0 {
		whole, rest = digits[:i], digits[i:]
	}
	return f.pad(f.signOf(minus), f.grouped(whole, 3)+rest, '>'), nil
}

// general is Python's g with that many digits; point keeps one digit behind the
// point, as the format without a letter does.
func general(x float64, digits int, point bool) string {
	digits = max(digits, 1)
	exp := 0
	if x != 0 && !math.IsInf(x, 0) && !math.IsNaN(x) {
		_, e, _ := strings.Cut(strconv.FormatFloat(x, 'e', digits-1, 64), "e")
		exp, _ = strconv.Atoi(e) // FormatFloat always writes one
	}
	var s string
	if exp < -4 || exp >= digits || point && exp >= digits-1 {
		s = strconv.FormatFloat(x, 'e', digits-1, 64)
		mantissa, e, _ := strings.Cut(s, "e")
		if strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		return mantissa + "e" + e
	}
	s = strconv.FormatFloat(x, 'f', max(digits-1-exp, 0), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if point && !strings.Contains(s, ".") && s != "Inf" && s != "+Inf" && s != "NaN" {
		s += ".0"
	}
	return s
}

func (f *format) signOf(minus bool) string {
	switch {
	case minus:
		return "-"
	case f.sign == '-':
		return ""
	}
	return string(f.sign)
}

func (f *format) grouped(digits string, every int) string {
	if f.comma == 0 || digits != "" && (digits[0] < '0' || digits[0] > '9') && every == 3 {
		return digits
	}
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%every == 0 {
			b.WriteByte(f.comma)
		}
		b.WriteRune(c)
	}
	return b.String()
}

// pad fills up to the width; sign is what '=' puts before the fill.
func (f *format) pad(sign, body string, align byte) string {
	if f.align != 0 {
		align = f.align
	}
	missing := f.width - utf8.RuneCountInString(sign+body)
	if missing <= 0 {
		return sign + body
	}
	fill := func(n int) string { return strings.Repeat(string(f.fill), n) }
	switch align {
	case '<':
		return sign + body + fill(missing)
	case '^':
		return fill(missing/2) + sign + body + fill(missing-missing/2)
	case '=':
		return sign + fill(missing) + body
	}
	return fill(missing) + sign + body
}
