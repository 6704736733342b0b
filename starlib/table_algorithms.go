package starlib

import (
	"strings"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// Algorithm is one call of algorithm(...): what a table of algorithms is to have for
// some numbers of ranks and some roots. What wasn't given is zero.
type Algorithm struct {
	Pos          diag.Pos
	Script       string         // as load() finds it: a file, or of the library
	Args         []AlgorithmArg // the script's own parameters, in the order of the call
	Ranks        []int32        // one entry each; nil: as the script says
	Bytes        string         // a range, "a..b"
	BytesPerRank string         // likewise
	Roots        []int32        // one entry each; nil: all
	InPlace      string         // "true", "false", or "" for both
	DTypes, Ops  []string       // nil: all
	Priority     int32
	Threads      int32
	Nodes        int32  // 0: 1
	Memory       string // "any", "windows", or "" for what the protocol wants
	Name         string
}

// AlgorithmArg is a parameter of the script and its value as a command line spells it.
type AlgorithmArg struct{ Name, Value string }

// The parameters of algorithm(...) in their order.
const (
	algScript = iota
	algRanks
	algBytes
	algBytesPerRank
	algRoots
	algInPlace
	algDTypes
	algOps
	algPriority
	algMemory
	algThreads
	algHosts
	algName
)

var algorithmFuncs = []*signature{{
	name: "algorithm",
	raw:  true, // all other arguments are the script's
	params: []param{
		{"script", stringValue, "", "the script that makes the program: `\"@algorithms/NAME.star\"`, or a file beside this one"},
		{"ranks", anyValue, "None", "a number of ranks or a list of them, an entry each; the script gets each as its parameter `ranks`"},
		{"bytes", stringValue, "None", "the sizes of calls, `\"from..to\"`, both included: `\"1KiB..32KiB\"`, `\"4MiB..\"`, `\"..64KiB\"`; `\"1KiB..<32KiB\"` is without the upper end; the larger of a rank's input and output counts"},
		{"bytes_per_rank", stringValue, "None", "the same by the bytes of NCCL's count: a rank's block where each has one"},
		{"roots", anyValue, "\"all\"", "a root or a list of them, an entry each; `\"all\"` for every rank"},
		{"inplace", anyValue, "\"both\"", "`True`, `False`, or `\"both\"`: a program for each where the script has that parameter"},
		{"dtypes", anyValue, "None", "a data type or a list of them; None for all"},
		{"ops", anyValue, "None", "a reduction or a list of them; None for all"},
		{"priority", intValue, "0", "of several entries that match a call the one with the highest is taken"},
		{"memory", stringValue, "None", "`\"any\"`, or `\"windows\"` for buffers that were registered collectively, which protocol Direct needs"},
		{"threads", intValue, "0", "threads of a thread block; 0 is the runtime's choice"},
		{"hosts", intValue, "1", "on how many hosts the ranks are"},
		{"name", stringValue, "None", "the entry's name; of several entries the number of ranks and the root follow it"},
	},
	doc: "Puts a program into a table of algorithms, for the calls of a range of sizes.\n" +
		"`mscclsh table build` runs such files. Any further argument is a parameter of the script. Outside of a table's source it isn't available.",
	example: "algorithm(\"@algorithms/allreduce_one_step.star\", ranks = [2, 4], bytes = \"1KiB..32KiB\", protocol = \"LL\", instances = 2)",
	fn:      declareAlgorithm,
}}

// declareAlgorithm implements algorithm(...).
func declareAlgorithm(c *call) (starlark.Value, error) {
	if c.in.o.Host.Algorithm == nil {
		return nil, c.sig.errorf("not-available", "not available here").Suggest("mscclsh table build runs files that call it")
	}
	if c.in.cur != nil {
		return nil, c.sig.errorf("not-available", "called inside program %q", c.in.cur.spec.Name).
			Suggest("a table's source names scripts; it makes no programs itself")
	}
	a := Algorithm{Pos: c.in.here()}
	if err := c.scriptArgs(&a); err != nil {
		return nil, err
	}
	if err := c.entryArgs(&a); err != nil {
		return nil, err
	}
	var err error
	if a.Script, err = c.in.resolve(a.Pos.File, c.v.string(algScript, "")); err != nil {
		return nil, err
	}
	if err := c.in.o.Host.Algorithm(a); err != nil {
		return nil, err
	}
	return starlark.None, nil
}

// scriptArgs takes the script's arguments out, and binds the rest.
func (c *call) scriptArgs(a *Algorithm) error {
	var own []starlark.Tuple
	for _, kw := range c.kwargs {
		name := string(kw[0].(starlark.String))
		switch {
		case c.sig.index(name) >= 0:
			own = append(own, kw)
		case paramType(kw[1]) == "":
			return c.sig.errorf("bad-argument", "%s: got %s, want int, float, bool or string, as parameters of scripts are", name, kw[1].Type())
		default:
			a.Args = append(a.Args, AlgorithmArg{name, spelled(kw[1])})
		}
	}
	return c.sig.bind(&c.v, c.args, own)
}

// entryArgs reads what says which calls the entry is for.
func (c *call) entryArgs(a *Algorithm) (err error) {
	a.Bytes, a.BytesPerRank = c.v.string(algBytes, ""), c.v.string(algBytesPerRank, "")
	a.Priority, a.Threads, a.Nodes = c.v.int32(algPriority, 0), c.v.int32(algThreads, 0), c.v.int32(algHosts, 1)
	a.Memory, a.Name = c.v.string(algMemory, ""), c.v.string(algName, "")
	if a.Ranks, err = c.numbers(algRanks, 1); err != nil {
		return err
	}
	if s, isString := c.v[algRoots].(starlark.String); !isString || s != "all" {
		if a.Roots, err = c.numbers(algRoots, 0); err != nil {
			return err
		}
	}
	if a.DTypes, err = c.strings(algDTypes); err != nil {
		return err
	}
	if a.Ops, err = c.strings(algOps); err != nil {
		return err
	}
	switch v := c.v[algInPlace].(type) {
	case nil:
	case starlark.Bool:
		a.InPlace = spelled(v)
	default:
		if s, isString := v.(starlark.String); !isString || s != "both" {
			return c.sig.errorf("bad-argument", "inplace: got %s, want True, False or \"both\"", v)
		}
	}
	return nil
}

// numbers is an argument that is an int of at least least, or a list of such.
func (c *call) numbers(i int, least int32) ([]int32, error) {
	name := c.sig.params[i].name
	one := func(v starlark.Value) (int32, error) {
		n, isInt := v.(starlark.Int)
		if !isInt {
			return 0, c.sig.errorf("bad-argument", "%s: got %s, want an int or a list of them", name, v.Type())
		}
		x, err := starlark.AsInt32(n)
		if err != nil {
			return 0, c.sig.errorf("bad-argument", "%s: got %s, want an int of 32 bits", name, n)
		}
		if int32(x) < least {
			return 0, c.sig.errorf("bad-argument", "%s: got %s, want %d or more", name, n, least)
		}
		return int32(x), nil
	}
	return listOf(c, i, one)
}

// strings is an argument that is a string or a list of them.
func (c *call) strings(i int) ([]string, error) {
	return listOf(c, i, func(v starlark.Value) (string, error) {
		s, isString := v.(starlark.String)
		if !isString || strings.TrimSpace(string(s)) == "" {
			return "", c.sig.errorf("bad-argument", "%s: got %s, want a string or a list of them", c.sig.params[i].name, v)
		}
		return string(s), nil
	})
}

// listOf reads an argument that is one value or a list, nil if it wasn't given.
func listOf[T comparable](c *call, i int, one func(starlark.Value) (T, error)) ([]T, error) {
	if !c.v.given(i) {
		return nil, nil
	}
	list, isList := c.v[i].(starlark.Iterable)
	if !isList {
		x, err := one(c.v[i])
		return []T{x}, err
	}
	var out []T
	for v := range starlark.Elements(list) {
		x, err := one(v)
		if err != nil {
			return nil, err
		}
		for _, y := range out {
			if x == y {
				return nil, c.sig.errorf("bad-argument", "%s: got %s twice", c.sig.params[i].name, v)
			}
		}
		out = append(out, x)
	}
	if len(out) == 0 {
		return nil, c.sig.errorf("bad-argument", "%s: got an empty list", c.sig.params[i].name)
	}
	return out, nil
}
