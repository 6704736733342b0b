package starlib

import (
	"fmt"
	"math"
	"strings"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// kind is what values a parameter takes.
type kind uint8

const (
	anyValue      kind = iota
	intValue           // an integer of 32 bits
	numberValue        // an integer or a float
	boolValue          // True or False
	stringValue        //
	refValue           // a reference to chunks
	bufferValue        // a string or a tuple
	topologyValue      //
	collectiveVal      //
	functionValue      //
	listValue          // anything that can be iterated over
	sizesValue         // an integer, a list of them, or a function of the rank
	longValue          // an integer of any size
	rootValue          // an integer of 32 bits, or a bool
	chunkKind          // a chunk of a one-sided program
	groupKind          // a thread block group
	syncKind           // one of SyncType
	specValue          // what AlgoSpec returned
	operatorValue      // one of ReduceOperationType, or None
)

var kindNames = [...]string{"any value", "int", "int or float", "bool", "string", "ref", "string or tuple",
	"topology", "collective", "function", "list", "int, list or function", "int", "int or bool", "Chunk", "ThreadBlockGroup", "SyncType",
	"AlgoSpec", "string or None"}

// param is one parameter. def is its default as a script would write it; "" is
// a parameter that must be given. Where def is None, None may be passed.
type param struct {
	name string
	kind kind
	def  string
	help string
}

// signature describes one function (recv "") or one method of recv. Everything
// that users read about it comes from here.
type signature struct {
	recv    string
	name    string
	params  []param // those without a default come first
	result  string  // the type of the result; "" is None
	doc     string  // what it does; the first line is the summary
	example string  // Starlark, "" for none
	raw     bool    // takes its arguments unbound, see call.args
	fn      func(*call) (starlark.Value, error)
}

// maxParams is the most parameters that a signature has.
const maxParams = 17

// values are the bound arguments, in the order of the parameters; nil is one
// that was not given.
type values [maxParams]starlark.Value

// call is one call of a bound signature. The next call takes its memory: nothing
// that outlives the call may hold it.
type call struct {
	in     *interp
	sig    *signature
	recv   starlark.Value // of a method
	v      values
	block  [1]int32       // room for the thread block of an operation
	args   starlark.Tuple // of a raw signature
	kwargs []starlark.Tuple
}

// bind sorts the arguments of a call into v.
func (s *signature) bind(v *values, args starlark.Tuple, kwargs []starlark.Tuple) error {
	if len(args) > len(s.params) {
		return s.errorf("too-many-arguments", "got %d positional arguments, want at most %d", len(args), len(s.params)).
			Suggest("%s", s.usage())
	}
	for i, a := range args {
		if err := s.set(v, i, a); err != nil {
			return err
		}
	}
	for _, kw := range kwargs {
		name := string(kw[0].(starlark.String))
		i := s.index(name)
		switch {
		case i < 0:
			return s.unknown(name)
		case v[i] != nil:
			return s.errorf("bad-argument", "got two values for %s", name).Suggest("%s", s.usage())
		}
		if err := s.set(v, i, kw[1]); err != nil {
			return err
		}
	}
	for i := range s.params {
		if s.params[i].def != "" {
			break
		}
		if v[i] == nil {
			return s.errorf("missing-argument", "missing argument %s", s.params[i].name).Suggest("%s", s.usage())
		}
	}
	return nil
}

func (s *signature) index(name string) int {
	for i := range s.params {
		if s.params[i].name == name {
			return i
		}
	}
	return -1
}

func (s *signature) unknown(name string) error {
	m := s.errorf("unknown-argument", "got unknown argument %s", name)
	names := make([]string, len(s.params))
	for i := range s.params {
		names[i] = s.params[i].name
	}
	if near := Nearest(name, names); near != "" {
		return m.Suggest("did you mean %s?", near)
	}
	return m.Suggest("%s", s.usage())
}

// set checks that a fits parameter i and stores it.
func (s *signature) set(v *values, i int, a starlark.Value) error {
	p := &s.params[i]
	v[i] = a
	if a == starlark.None {
		if p.def == "None" || p.kind == anyValue || p.kind == operatorValue {
			return nil
		}
		return s.mismatch(p, a)
	}
	ok := true
	switch p.kind {
	case intValue, rootValue:
		n, isInt := a.(starlark.Int)
		if _, isBool := a.(starlark.Bool); isBool && p.kind == rootValue {
			return nil
		}
		if !isInt {
			return s.mismatch(p, a)
		}
		if x, fits := n.Int64(); !fits || x < math.MinInt32 || x > math.MaxInt32 {
			return s.errorf("bad-argument", "%s: got %s, want an int of 32 bits", p.name, n)
		}
	case refValue:
		_, ok = a.(*ref)
	case bufferValue: // what names a buffer is for the program to say
	default:
		ok = fits(p.kind, a)
	}
	if !ok {
		return s.mismatch(p, a)
	}
	return nil
}

// fits is the part of set that is not worth inlining.
func fits(k kind, a starlark.Value) bool {
	ok := true
	switch k {
	case numberValue:
		switch a.(type) {
		case starlark.Int, starlark.Float:
		default:
			ok = false
		}
	case boolValue:
		_, ok = a.(starlark.Bool)
	case stringValue, operatorValue:
		_, ok = a.(starlark.String)
	case topologyValue:
		_, ok = a.(*topology)
	case collectiveVal:
		_, ok = a.(*collective)
	case functionValue:
		_, ok = a.(starlark.Callable)
	case listValue:
		_, ok = a.(starlark.Iterable)
	case longValue:
		_, ok = a.(starlark.Int)
	case chunkKind:
		_, ok = a.(*chunkValue)
	case groupKind:
		_, ok = a.(*blockGroup)
	case syncKind:
		_, ok = a.(syncType)
	case specValue:
		_, ok = a.(*algoSpec)
	case sizesValue:
		switch a.(type) {
		case starlark.Int, starlark.Iterable, starlark.Callable:
		default:
			ok = false
		}
	}
	return ok
}

func (s *signature) mismatch(p *param, a starlark.Value) error {
	want := kindNames[p.kind]
	if p.def == "None" {
		want += " or None"
	}
	m := s.errorf("bad-argument", "%s: got %s, want %s", p.name, a.Type(), want)
	if _, isFloat := a.(starlark.Float); isFloat && p.kind == intValue {
		m.Suggest("x // y divides integers")
	}
	return m
}

// errorf makes an error that starts with the function's name. Its position is
// that of the call, filled in where the error leaves the interpreter.
func (s *signature) errorf(code, format string, args ...any) *diag.Message {
	return diag.Errorf(diag.Pos{}, code, "%s: %s", s.name, fmt.Sprintf(format, args...))
}

// usage is the signature as a script's author reads it.
func (s *signature) usage() string {
	var b strings.Builder
	if s.recv != "" {
		b.WriteString(s.recv + ".")
	}
	b.WriteString(s.name + "(")
	for i := range s.params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s.params[i].name)
		if d := s.params[i].def; d != "" {
			b.WriteString("=" + d)
		}
	}
	b.WriteString(")")
	return b.String()
}

// given reports whether argument i was passed, and not as None.
func (v *values) given(i int) bool { return v[i] != nil && v[i] != starlark.None }

// int32 is argument i, or def. bind has checked the range.
func (v *values) int32(i int, def int32) int32 {
	if !v.given(i) {
		return def
	}
	n, _ := v[i].(starlark.Int).Int64()
	return int32(n)
}

func (v *values) string(i int, def string) string {
	if !v.given(i) {
		return def
	}
	return string(v[i].(starlark.String))
}

func (v *values) bool(i int, def bool) bool {
	if !v.given(i) {
		return def
	}
	return bool(v[i].(starlark.Bool))
}

// number is argument i as a float.
func (v *values) number(i int, def float64) float64 {
	if !v.given(i) {
		return def
	}
	f, _ := starlark.AsFloat(v[i])
	return f
}

// builtin is a function of the table as a Starlark value, bound to the run that
// it belongs to and, for a method, to its receiver.
type builtin struct {
	in   *interp
	sig  *signature
	recv starlark.Value
}

var _ starlark.Callable = (*builtin)(nil)

func (b *builtin) Name() string          { return b.sig.name }
func (b *builtin) String() string        { return fmt.Sprintf("<built-in function %s>", b.sig.name) }
func (b *builtin) Type() string          { return "builtin_function_or_method" }
func (b *builtin) Freeze()               {}
func (b *builtin) Truth() starlark.Bool  { return true }
func (b *builtin) Hash() (uint32, error) { return starlark.String(b.sig.name).Hash() }

// CallInternal binds the arguments and calls the implementation.
func (b *builtin) CallInternal(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	c := b.in.takeCall()
	c.in, c.sig, c.recv = b.in, b.sig, b.recv
	if b.sig.raw {
		c.args, c.kwargs = args, kwargs
	} else if err := b.sig.bind(&c.v, args, kwargs); err != nil {
		return nil, err
	}
	result, err := b.sig.fn(c)
	b.in.giveCall(c)
	return result, err
}

// takeCall is an empty call. A script makes them by the hundred thousand, most of
// them one after another, so that the memory of one serves for all; a call that
// failed or made others is left to the collector.
func (in *interp) takeCall() *call {
	if in == nil || in.spare == nil {
		return new(call)
	}
	c := in.spare
	in.spare = nil
	return c
}

// giveCall ends a call that was taken.
func (in *interp) giveCall(c *call) {
	if in == nil {
		return
	}
	clear(c.v[:len(c.sig.params)])
	c.recv, c.args, c.kwargs = nil, nil, nil
	in.spare = c
}
