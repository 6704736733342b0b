package starlib

import (
	"fmt"
	"math"
	"slices"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/ir"
)

const oneDoc = "MSCCL++'s level: a program says what every rank puts, gets, signals and waits for, with MSCCL++'s own names, arguments and " +
	"defaults. Thread blocks may be left out (`tb`): they are then assigned, and what they do is ordered, by the compiler. " +
	"`Buffer.input` and `BufferType.input` are one name, and so for output; `BufferType.scratch` is the third. " +
	"`SyncType` has `none`, `before`, `after` and `both`, which combine with `|`, `&` and `^`; `ReduceOperationType` has `sum`, `min` and `max`; " +
	"`ReplicationPolicy` has `interleaved` and `none`. See docs/onesided.md."

var oneCollectiveParam = param{"collective", collectiveVal, "", "what the program computes; an AllReduce has `num_ranks * chunk_factor` chunks at this level"}

// oneHeaderParams are those that CollectiveProgram and AlgoSpec share.
func oneHeaderParams(instances, protocol param) []param {
	return []param{
		instances, protocol,
		{"instr_fusion", boolValue, "True", "whether neighboring operations of a thread block are joined"},
		{"auto_sync", boolValue, "True", "whether the compiler orders conflicting accesses that nothing orders"},
		{"replication_policy", stringValue, "ReplicationPolicy.interleaved", "how instances share the chunks: `ReplicationPolicy.interleaved`, or `.none` for all of them on all chunks"},
		{"reuse_resources", boolValue, "False", "whether one scratch serves many plans"},
		{"num_threads_per_block", intValue, "1024", "threads of a thread block"},
		{"use_double_scratch_buffer", boolValue, "False", "whether launches alternate between two halves of scratch"},
		{"buffer_alignment", intValue, "16", "bytes of which sizes and offsets are multiples"},
		{"min_message_size", longValue, "0", "smallest size in bytes that the program is for"},
		{"max_message_size", longValue, "2^64-1", "largest size in bytes; 2^64-1 is no limit"},
	}
}

var collectiveProgramSig = &signature{
	name: "CollectiveProgram",
	params: append([]param{
		{"name", stringValue, "", "the program's name"},
		oneCollectiveParam,
		{"num_ranks", intValue, "", "how many ranks: the collective's"},
	}, oneHeaderParams(
		param{"instances", intValue, "None", "how many times the program runs side by side, each instance on its share of the data; " +
			"without it the value of `param(\"instances\", ...)`, else 1"},
		param{"protocol", stringValue, "None", "`\"Simple\"`, or `\"LL\"` for packets in scratch; without it the value of `param(\"protocol\", ...)`, else Simple"})...),
	result: "CollectiveProgram",
	doc: "A one-sided program, traced by the `with` block that enters it.\n" +
		"Fields: those of its parameters. `CollectiveProgram.from_spec(spec)` makes one of an `AlgoSpec`.",
	example: "with CollectiveProgram(\"exchange\", AllGather(2, 1, False), 2):\n" +
		"    for r in range(2):\n" +
		"        ch = MemoryChannel(1 - r, r)\n" +
		"        mine = Rank(r).get_input_buffer()[:]\n" +
		"        Rank(r).copy(Rank(r).get_output_buffer()[r : r + 1], mine)\n" +
		"        ch.signal(relaxed = True)\n" +
		"        ch.wait(relaxed = True)\n" +
		"        ch.put(Rank(1 - r).get_output_buffer()[r : r + 1], mine)\n" +
		"        ch.signal()\n" +
		"        ch.wait()",
	fn: func(c *call) (starlark.Value, error) {
		h, err := c.header("num_ranks")
		if err != nil {
			return nil, err
		}
		return &oneProgram{in: c.in, h: *h, created: c.in.here(), kept: -1}, nil
	},
}

var fromSpecSig = &signature{
	recv: "CollectiveProgram", name: "from_spec",
	params:  []param{{"spec", specValue, "", "what `AlgoSpec` returned"}},
	result:  "CollectiveProgram",
	doc:     "A one-sided program of a specification. It is called on `CollectiveProgram` itself.",
	example: "prog = CollectiveProgram.from_spec(AlgoSpec(\"mine\", AllReduce(2, 1, True), 2, 2, True, 1, \"LL\"))",
	fn: func(c *call) (starlark.Value, error) {
		return &oneProgram{in: c.in, h: c.v[0].(*algoSpec).h, created: c.in.here(), kept: -1}, nil
	},
}

var toJSONSig = &signature{
	recv: "CollectiveProgram", name: "to_json",
	params: []param{{"indent", anyValue, "2", "taken, and of no effect: plans have one form"}},
	result: "plan",
	doc:    "Says that the program is wanted as a plan, as `JSON()` does of the open one. It may have ended.",
	fn:     func(c *call) (starlark.Value, error) { return c.recv.(*oneProgram).toJSON(), nil },
}

// oneProgramMethods are those of a program; from_spec is one of the function too.
var oneProgramMethods = []*signature{fromSpecSig, toJSONSig}

var oneFuncs = []*signature{
	collectiveProgramSig,
	fromSpecSig,
	{
		name: "AlgoSpec",
		params: append(append([]param{
			{"name", stringValue, "", "the program's name"},
			oneCollectiveParam,
			{"nranks_per_node", intValue, "", "ranks of one node"},
			{"world_size", intValue, "", "how many ranks: the collective's"},
			{"in_place", boolValue, "", "whether input and output are one memory: the collective's"},
		}, oneHeaderParams(
			param{"instances", intValue, "", "how many times the program runs side by side"},
			param{"protocol", stringValue, "", "`\"Simple\"` or `\"LL\"`"})...),
			param{"tags", anyValue, "{}", "kept, and not looked at"}),
		result:  "AlgoSpec",
		doc:     "What a one-sided program is made of, as one value.\nFields: those of its parameters.",
		example: "spec = AlgoSpec(\"mine\", AllReduce(8, 1, True), 8, 8, True, 1, \"LL\", max_message_size = 2 << 20)",
		fn:      newAlgoSpec,
	},
	{
		name:   "JSON",
		result: "plan",
		doc: "Says that the open program, of either level, is wanted as an MSCCL++ execution plan.\nThe tool writes it when the script has ended, " +
			"whether the script prints what this returns or not.",
		example: "print(JSON())",
		fn:      func(c *call) (starlark.Value, error) { return c.in.json(c.sig.name) },
	},
	toJSONSig,
	{
		name: "LoopIterationContext",
		params: []param{
			{"unit", longValue, "", "how many bytes a turn works on"},
			{"num_chunks", intValue, "", "of how many chunks, from the start of every range"},
		},
		result: "LoopIterationContext",
		doc: "A context value: the operations of its `with` block are repeated on one unit of their ranges after another.\n" +
			"Each thread block repeats its own. Loops don't nest.",
		example: "with LoopIterationContext(unit = 65536, num_chunks = 1):\n    Rank(0).copy(Rank(0).get_output_buffer()[:], Rank(0).get_input_buffer()[:])",
		fn: func(c *call) (starlark.Value, error) {
			p, err := c.in.openOne(c.sig.name)
			if err != nil {
				return nil, err
			}
			unit, err := c.long("unit")
			if err != nil {
				return nil, err
			}
			return &loopContext{p, unit, c.v.int32(1, 1)}, nil
		},
	},
}

// testCollectiveSig stands among the collectives.
var testCollectiveSig = &signature{
	name: "TestCollective",
	params: []param{
		{"num_ranks", intValue, "", "how many ranks"},
		{"input_size", intValue, "", "input chunks of every rank"},
		{"output_size", intValue, "", "output chunks of every rank"},
	},
	result: "collective",
	doc:    "A collective to try operations with: nothing is demanded of its outputs.",
	fn: func(c *call) (starlark.Value, error) {
		ranks, err := c.ranks(0)
		if err != nil {
			return nil, err
		}
		x := &collective{c: openCollective("test", ranks)}
		for i, side := range [...][]int32{x.c.Custom.Input, x.c.Custom.Output} {
			n, err := c.count(c.sig.params[i+1].name, c.v[i+1])
			if err != nil {
				return nil, err
			}
			for r := range side {
				side[r] = n
			}
		}
		x.demandNothing()
		return x, nil
	},
}

// openCollective is a collective of one's own with a name that plans know.
func openCollective(name string, ranks int32) *ir.Collective {
	c := ir.NewCollective(ir.Custom, ranks, 1, false)
	c.Name = name
	c.Custom = &ir.CustomSpec{Input: make([]int32, ranks), Output: make([]int32, ranks)}
	return c
}

// demandNothing makes room for a postcondition that is none.
func (x *collective) demandNothing() {
	u := x.c.Custom
	u.Expect = make([][][]ir.Contribution, len(u.Output))
	for r, n := range u.Output {
		u.Expect[r] = make([][]ir.Contribution, n)
	}
}

// algoSpec is what AlgoSpec returns.
type algoSpec struct {
	h       oneHeader
	perNode int32
	tags    starlark.Value
}

var _ starlark.HasAttrs = (*algoSpec)(nil)

func (s *algoSpec) String() string        { return fmt.Sprintf("AlgoSpec(%q)", s.h.name) }
func (s *algoSpec) Type() string          { return "AlgoSpec" }
func (s *algoSpec) Freeze()               {}
func (s *algoSpec) Truth() starlark.Bool  { return true }
func (s *algoSpec) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: AlgoSpec") }

// specFields are those of the parameters of AlgoSpec.
var specFields = append(slices.DeleteFunc(slices.Clone(headerFields), func(n string) bool { return n == "num_ranks" }),
	"nranks_per_node", "world_size", "in_place", "tags")

// AttrNames are those of the parameters.
func (s *algoSpec) AttrNames() []string { return specFields }

// Attr finds a field.
func (s *algoSpec) Attr(name string) (starlark.Value, error) {
	switch name {
	case "nranks_per_node":
		return starlark.MakeInt(int(s.perNode)), nil
	case "world_size":
		return starlark.MakeInt(int(s.h.ranks)), nil
	case "in_place":
		return starlark.Bool(s.h.coll.c.InPlace), nil
	case "tags":
		return s.tags, nil
	case "num_ranks":
		return nil, nil
	}
	return s.h.attr(name), nil
}

func newAlgoSpec(c *call) (starlark.Value, error) {
	h, err := c.header("world_size")
	if err != nil {
		return nil, err
	}
	s := &algoSpec{h: *h, perNode: c.v.int32(2, 1), tags: c.v[c.sig.index("tags")]}
	if s.perNode < 1 || h.ranks%s.perNode != 0 {
		return nil, c.sig.errorf("bad-argument", "nranks_per_node: got %d, want a divisor of world_size, which is %d", s.perNode, h.ranks)
	}
	if in := c.v.bool(4, false); in != h.coll.c.InPlace {
		return nil, c.sig.errorf("bad-argument", "in_place: got %s, the collective says %s", starlark.Bool(in), starlark.Bool(h.coll.c.InPlace))
	}
	if s.tags == nil {
		s.tags = starlark.NewDict(0)
	}
	return s, nil
}

// header reads the arguments that CollectiveProgram and AlgoSpec share; ranks is
// what they call the number of ranks.
func (c *call) header(ranks string) (*oneHeader, error) {
	at := c.sig.index
	h := &oneHeader{name: c.v.string(0, ""), coll: c.v[1].(*collective), ranks: c.v.int32(at(ranks), 0),
		fusion: c.v.bool(at("instr_fusion"), true), autoSync: c.v.bool(at("auto_sync"), true),
		reuse: c.v.bool(at("reuse_resources"), false), double: c.v.bool(at("use_double_scratch_buffer"), false),
		threads: int64(c.v.int32(at("num_threads_per_block"), 1024)), alignment: int64(c.v.int32(at("buffer_alignment"), 16))}
	if h.ranks != h.coll.c.Ranks {
		return nil, c.sig.errorf("rank-mismatch", "%s: got %d, the collective has %d ranks", ranks, h.ranks, h.coll.c.Ranks)
	}
	var err error
	if h.instances, err = c.instances(at("instances")); err != nil {
		return nil, err
	}
	if h.protocol, err = c.oneProtocol(at("protocol")); err != nil {
		return nil, err
	}
	switch s := c.v.string(at("replication_policy"), "interleaved"); s {
	case "interleaved":
		h.interleaved = true
	case "none":
	default:
		return nil, c.sig.errorf("bad-argument", "replication_policy: got %q, want ReplicationPolicy.interleaved or ReplicationPolicy.none", s)
	}
	if h.minBytes, err = c.long("min_message_size"); err != nil {
		return nil, err
	}
	h.maxBytes, err = c.long("max_message_size")
	return h, err
}

// oneProtocol is the argument, or what the script's parameter says.
func (c *call) oneProtocol(i int) (ir.Protocol, error) {
	p, err := c.protocol(i)
	if err != nil || p != ir.Simple && p != ir.LL {
		return 0, c.sig.errorf("bad-argument", "protocol: got %q, want Simple or LL", c.v.string(i, p.String()))
	}
	return p, nil
}

// long is the argument of that name as a number from 0 of 64 bits; without one,
// or for what is beyond them, 0.
func (c *call) long(name string) (int64, error) {
	i := c.sig.index(name)
	if !c.v.given(i) {
		return 0, nil
	}
	n := c.v[i].(starlark.Int)
	switch x, fits := n.Int64(); {
	case n.Sign() < 0:
		return 0, c.sig.errorf("bad-argument", "%s: got %s, want 0 or more", name, n)
	case fits:
		return x, nil
	}
	if u, fits := n.Uint64(); name == "max_message_size" && fits && u == math.MaxUint64 {
		return 0, nil // no limit
	}
	return 0, c.sig.errorf("bad-argument", "%s: got %s, want less than 2^63", name, n)
}

// planText is what JSON returns: the tool writes the plan, so that printing it
// prints nothing.
type planText struct{ name string }

func (t planText) String() string        { return fmt.Sprintf("<plan of %q>", t.name) }
func (t planText) Type() string          { return "plan" }
func (t planText) Freeze()               {}
func (t planText) Truth() starlark.Bool  { return true }
func (t planText) Hash() (uint32, error) { return starlark.String(t.name).Hash() }

// json notes that the open program, of either level, is wanted as a plan.
func (in *interp) json(call string) (starlark.Value, error) {
	if in.cur != nil {
		in.cur.wantPlan = true
		return in.plan(in.cur.spec.Name), nil
	}
	p, err := in.openOne(call)
	if err != nil {
		return nil, err
	}
	return p.toJSON(), nil
}

// toJSON notes that p is wanted as a plan.
func (p *oneProgram) toJSON() starlark.Value {
	p.wantPlan = true
	if p.kept >= 0 && p.kept < len(p.in.script.Programs) {
		p.in.script.Programs[p.kept].WantPlan = true
	}
	return p.in.plan(p.h.name)
}

// plan is a plan to be printed.
func (in *interp) plan(name string) starlark.Value {
	t := planText{name}
	if in.plans == nil {
		in.plans = map[string]bool{}
	}
	in.plans[t.String()] = true
	return t
}
