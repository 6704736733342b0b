package starlib

import (
	"math"
	"slices"

	starlarkjson "go.starlark.net/lib/json"
	starlarkmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/ir"
)

// group is a chapter of the language reference.
type group struct {
	title string
	doc   string
	sigs  []*signature
}

// table describes every function and method of the language, in the order of
// the reference.
func table() []group {
	return []group{
		{"Programs", "A program is traced by the operations inside its `with` block. One program is open at a time.", programFuncs},
		{"Chunks", "A location is (rank, buffer, index). `Buffer.input` and `Buffer.output` are the strings \"input\" and " +
			"\"output\"; any other string or tuple names scratch, which is made where it is first used.", []*signature{chunkSig}},
		{"References", "What `chunk`, `copy` and `reduce` return. Fields: `rank`, `buffer`, `index`, `size`. " +
			"References are equal when they name the same chunks of one program.",
			append([]*signature{copySig, reduceSig}, refMethods...)},
		{"Collectives", "What a program has to compute: which chunks every rank has before, and which it must have after. " +
			"Fields: `name`, `num_ranks`, `chunk_factor`, `inplace`.", collectiveFuncs},
		{"Topologies", "Which ranks are linked. Fields and methods below; `name` is a field, `links[dst][src]` another.",
			append(append([]*signature(nil), topologyFuncs...), topologyMethods...)},
		{"One-sided programs", oneDoc, oneFuncs},
		{"Parts of one-sided programs", "What the operations of a one-sided program are done with. All of it belongs to the program that is open when it is made.",
			onePartFuncs},
		{"One-sided operations", "What ranks, channels and semaphores do, in the order in which it is written, thread block by thread block.",
			slices.Concat(rankMethods, memoryChannelMethods, portChannelMethods, switchChannelMethods, switchRankMethods, semaphoreMethods, blockGroupMethods)},
		{"Routines", "Ready-made parts of programs.", routineFuncs},
		{"Parameters", "Every `param` becomes a flag of the command line.", paramFuncs},
		{"Asking the tool", "What a script can do that the command line can do too. Inside a program, these look at what has been traced so far.",
			hostFuncs},
		{"Tables of algorithms", "What the source of a table for the NCCL library is made of; docs/table.md.", algorithmFuncs},
		{"Helpers", "What Python has and Starlark lacks.", helperFuncs},
	}
}

var helperFuncs = []*signature{{
	name: "sum",
	params: []param{
		{"list", listValue, "", "what to add"},
		{"start", anyValue, "0", "what to add it to"},
	},
	result:  "any value",
	doc:     "The sum of a list.",
	example: "chunks = sum([1, 0, 2])",
	fn: func(c *call) (starlark.Value, error) {
		total := c.v[1]
		if total == nil {
			total = starlark.MakeInt(0)
		}
		for x := range starlark.Elements(c.v[0].(starlark.Iterable)) {
			var err error
			if total, err = starlark.Binary(syntax.PLUS, total, x); err != nil {
				return nil, c.sig.errorf("bad-argument", "%s", err)
			}
		}
		return total, nil
	},
}}

// predeclare makes the names that every script sees.
func predeclare(in *interp) starlark.StringDict {
	d := starlark.StringDict{
		"ThreadblockPolicy": starlarkstruct.FromStringDict(starlark.String("ThreadblockPolicy"), starlark.StringDict{
			"auto": starlark.String("auto"), "manual": starlark.String("manual")}),
		"math":   mathModule,
		"json":   starlarkjson.Module,
		"struct": starlark.NewBuiltin("struct", starlarkstruct.Make),
		withName: starlark.NewBuiltin("with", in.enterWith),
	}
	for _, g := range table() {
		for _, s := range g.sigs {
			if s.recv == "" {
				d[s.name] = &builtin{in: in, sig: s}
			}
		}
	}
	d["chunk"] = &chunkFunc{in}
	predeclareOne(in, d)
	return d
}

// notScope is the error of a with of something else.
func (in *interp) notScope(v starlark.Value) error {
	want := "a program or parallelize(n)"
	if in.one != nil {
		want = "LoopIterationContext(unit, num_chunks)"
	}
	return (&signature{name: "with"}).errorf("bad-argument", "got %s, want %s", v.Type(), want)
}

// predeclareOne adds the names of one-sided programs that are no plain functions.
func predeclareOne(in *interp, d starlark.StringDict) {
	enum := func(name string, values ...string) {
		fields := starlark.StringDict{}
		for _, v := range values {
			fields[v] = starlark.String(v)
		}
		d[name] = starlarkstruct.FromStringDict(starlark.String(name), fields)
	}
	enum("BufferType", bufferNames[:]...)
	enum("ReduceOperationType", "sum", "min", "max")
	enum("ReplicationPolicy", "interleaved", "none")
	sides := starlark.StringDict{}
	for s := ir.SyncNone; s <= ir.SyncBoth; s++ {
		sides[s.String()] = syncType(s)
	}
	d["SyncType"] = starlarkstruct.FromStringDict(starlark.String("SyncType"), sides)
	d["Buffer"] = &constructor{*d["Buffer"].(*builtin), starlark.StringDict{"input": starlark.String("input"), "output": starlark.String("output")}}
	d["CollectiveProgram"] = &constructor{*d["CollectiveProgram"].(*builtin),
		starlark.StringDict{"from_spec": &builtin{in: in, sig: fromSpecSig}}}
}

// enterWith is what a with statement calls with its expression.
func (in *interp) enterWith(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	c, ok := args[0].(scope)
	if !ok {
		return nil, in.notScope(args[0])
	}
	it, err := in.enter(c, in.pos(t.CallFrame(1).Pos))
	if err != nil {
		return nil, err
	}
	return &entered{it}, nil
}

// mathModule is Starlark's math with the logarithms that scripts of collectives
// are full of; log2 is exact for powers of two.
var mathModule = func() *starlarkstruct.Module {
	members := starlark.StringDict{}
	for _, name := range starlarkmath.Module.Members.Keys() {
		members[name] = starlarkmath.Module.Members[name]
	}
	for name, f := range map[string]func(float64) float64{"log2": math.Log2, "log10": math.Log10} {
		members[name] = logarithm(name, f)
	}
	m := &starlarkstruct.Module{Name: "math", Members: members}
	m.Freeze()
	return m
}()

func logarithm(name string, f func(float64) float64) *starlark.Builtin {
	s := &signature{name: name, params: []param{{name: "x", kind: numberValue}}}
	return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
		var v values
		if err := s.bind(&v, args, kw); err != nil {
			return nil, err
		}
		x := v.number(0, 0)
		if !(x > 0) {
			return nil, s.errorf("bad-argument", "x: got %s, want more than 0", v[0])
		}
		return starlark.Float(f(x)), nil
	})
}
