package starlib

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/ir"
)

var programFuncs = []*signature{
	{
		name: "MSCCLProgram",
		params: []param{
			{"name", stringValue, "", "the program's name"},
			{"topo", topologyValue, "", "which ranks are linked"},
			{"collective", collectiveVal, "", "what the program computes"},
			{"instances", intValue, "None", "how many times the program runs side by side, each instance on its share of every chunk; " +
				"without it the value of `param(\"instances\", ...)`, else 1"},
			{"protocol", stringValue, "None", "`\"Simple\"`, `\"LL\"`, `\"LL128\"`, `\"Direct\"` or `\"auto\"`; without it the value of `param(\"protocol\", ...)`, else Simple"},
			{"threadblock_policy", stringValue, "ThreadblockPolicy.auto", "`ThreadblockPolicy.manual` takes `sendtb` and `recvtb` of the operations"},
			{"interleaved_replication", boolValue, "True", "whether instances interleave their shares of the chunks, or take blocks"},
			{"instr_fusion", boolValue, "True", "whether receives and sends are fused into one instruction"},
			{"check_xml", boolValue, "True", "whether the compiled program is checked"},
			{"dependence_nop", boolValue, "False", "whether dependencies of local reduces are put into nops of their own"},
		},
		result: "program",
		doc: "A program, traced by the `with` block that enters it.\n" +
			"Fields: `name`, `topo`, `collective`, `num_ranks`, `instances`, `protocol`.",
		example: "with MSCCLProgram(\"hello\", fully_connected(2), AllGather(2, 1, False)):\n" +
			"    for r in range(2):\n" +
			"        for dst in range(2):\n" +
			"            chunk(r, \"input\", 0).copy(dst, \"output\", r)",
		fn: newProgram,
	},
	{
		name:   "parallelize",
		params: []param{{"n", intValue, "", "in how many parts, 1 or more"}},
		result: "parallel",
		doc: "A context value: every operation of its `with` block is cut into n that run side by side on channels of their own.\n" +
			"Blocks nest; their factors multiply.",
		example: "with parallelize(4):\n    chunk(0, \"input\", 0).copy(1, \"output\", 0)",
		fn:      newParallel,
	},
}

func newProgram(c *call) (starlark.Value, error) {
	p := &program{in: c.in, topo: c.v[1].(*topology), coll: c.v[2].(*collective), created: c.in.here()}
	instances, err := c.instances(3)
	if err != nil {
		return nil, err
	}
	protocol, err := c.protocol(4)
	if err != nil {
		return nil, err
	}
	policy := ir.Auto
	switch s := c.v.string(5, "auto"); s {
	case "auto":
	case "manual":
		policy = ir.Manual
	default:
		return nil, c.sig.errorf("bad-argument", "threadblock_policy: got %q, want ThreadblockPolicy.auto or ThreadblockPolicy.manual", s)
	}
	p.spec = ir.Spec{
		Name: c.v.string(0, ""), Coll: p.coll.c, Topo: p.topo.t, Protocol: protocol,
		Policy: policy, Instances: instances,
		Interleaved: c.v.bool(6, true), Fusion: c.v.bool(7, true),
		CheckXML: c.v.bool(8, true), DependenceNop: c.v.bool(9, false),
	}
	if p.topo.t.Ranks != p.coll.c.Ranks {
		return nil, c.sig.errorf("rank-mismatch", "the topology has %d ranks, the collective %d", p.topo.t.Ranks, p.coll.c.Ranks)
	}
	return p, nil
}

// instances is argument i, else the script's parameter of that name, else 1.
func (c *call) instances(i int) (int32, error) {
	n := c.v.int32(i, 1)
	if !c.v.given(i) {
		var err error
		if n, err = c.in.paramInt(c.sig, "instances", 1); err != nil {
			return 0, err
		}
	}
	if n < 1 {
		return 0, c.sig.errorf("bad-argument", "instances: got %d, want 1 or more", n)
	}
	return n, nil
}

// protocol is argument i, else the script's parameter of that name, else Simple.
func (c *call) protocol(i int) (ir.Protocol, error) {
	s := c.v.string(i, "Simple")
	if !c.v.given(i) {
		var err error
		if s, err = c.in.paramString(c.sig, "protocol", s); err != nil {
			return 0, err
		}
	}
	if s == ir.AutoProtocol.String() {
		return ir.AutoProtocol, nil
	}
	p, err := ir.ParseProtocol(s)
	if err != nil {
		return 0, c.sig.errorf("bad-argument", "protocol: got %q, want Simple, LL, LL128, Direct or auto", s)
	}
	return p, nil
}

func newParallel(c *call) (starlark.Value, error) {
	n := c.v.int32(0, 1)
	if n < 1 {
		return nil, c.sig.errorf("bad-factor", "got %d, want 1 or more", n).Suggest("parallelize(1) changes nothing")
	}
	return &parallel{c.in, n}, nil
}

var paramFuncs = []*signature{{
	name: "param",
	params: []param{
		{"name", stringValue, "", "letters, digits, '_' and '-'; the flag is `--name`"},
		{"default", anyValue, "", "the value without the flag; its type (int, float, bool or string) is that of the parameter"},
		{"help", stringValue, "\"\"", "what `--help` says"},
		{"choices", listValue, "None", "the values allowed"},
	},
	result:  "int, float, bool or string",
	doc:     "Declares a parameter and returns its value.",
	example: "ranks = param(\"ranks\", 8, help = \"number of GPUs\")",
	fn:      declareParam,
}}

var hostFuncs = []*signature{
	{
		name: "XML", doc: "Says that the program is wanted as XML.\nThe tool writes it when the script has ended.",
		fn: func(c *call) (starlark.Value, error) {
			if p := c.in.one; p != nil {
				return nil, c.sig.errorf("wrong-level", "program %q is one-sided, which MSCCL XML has no words for", p.h.name).
					Suggest("JSON() asks for its plan")
			}
			p, err := c.in.open(c.sig.name)
			if err != nil {
				return nil, err
			}
			p.wantXML = true
			return starlark.None, nil
		},
	},
	{
		name: "Check", result: "bool",
		doc: "Compiles what has been traced so far and judges it: whether it computes the collective.\n" +
			"A failed check fails the whole run.",
		fn: checkNow,
	},
	{
		name:   "show",
		params: []param{{"what", stringValue, "\"program\"", "a form of the program that the tool can draw"}},
		doc:    "Shows what has been traced so far.",
		fn:     showNow,
	},
	{
		name: "run",
		params: []param{
			{"size", stringValue, "None", "total size, such as `\"64MiB\"`"},
			{"dtype", stringValue, "None", "data type, such as `\"fp32\"`"},
			{"op", stringValue, "None", "reduction, such as `\"sum\"`"},
			{"iterations", intValue, "None", "how often"},
		},
		result: "bool",
		doc:    "Compiles what has been traced so far and runs it on data; True if the result is right.",
		fn:     runNow,
	},
	reserved("simulate", "simulating a machine is not part of this version"),
	reserved("tune", "searching for parameters is not part of this version"),
	reserved("Collective", "classes belong to Python scripts; in Starlark use collective(name, ranks, input, output, expect)"),
}

// reserved is a name kept for later, which says so.
func reserved(name, why string) *signature {
	return &signature{name: name, raw: true, doc: "Reserved: " + why + ".",
		fn: func(c *call) (starlark.Value, error) { return nil, c.sig.errorf("reserved-name", "%s", why) }}
}

// snapshot is what the open program has traced so far, as a program that has
// ended would be.
func (c *call) snapshot(available bool) (*Program, error) {
	if one := c.in.one; one != nil {
		if !available {
			return nil, c.unavailable()
		}
		if err := one.b.Complete(); err != nil {
			return nil, inList(err, one.opened)
		}
		return one.soFar(), nil
	}
	p, err := c.in.open(c.sig.name)
	if err != nil {
		return nil, err
	}
	if !available {
		return nil, c.unavailable()
	}
	prog, err := p.soFar()
	if err != nil {
		return nil, fmt.Errorf("%s: taking what was traced so far: %w", c.sig.name, err)
	}
	return prog, nil
}

func (c *call) unavailable() error {
	return c.sig.errorf("not-available", "not available here").
		Suggest("the tool that runs this script can't do it; mscclsh can")
}

func checkNow(c *call) (starlark.Value, error) {
	if p := c.in.cur; p != nil {
		p.wantCheck = true
	}
	if p := c.in.one; p != nil {
		p.wantCheck = true
	}
	d, err := c.snapshot(c.in.o.Host.Check != nil)
	if err != nil {
		return nil, err
	}
	ok, err := c.in.o.Host.Check(d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.sig.name, err)
	}
	return starlark.Bool(ok), nil
}

func showNow(c *call) (starlark.Value, error) {
	d, err := c.snapshot(c.in.o.Host.Show != nil)
	if err != nil {
		return nil, err
	}
	if err := c.in.o.Host.Show(d, c.v.string(0, "program")); err != nil {
		return nil, fmt.Errorf("%s: %w", c.sig.name, err)
	}
	return starlark.None, nil
}

func runNow(c *call) (starlark.Value, error) {
	d, err := c.snapshot(c.in.o.Host.Run != nil)
	if err != nil {
		return nil, err
	}
	ok, err := c.in.o.Host.Run(d, RunOptions{Size: c.v.string(0, ""), DType: c.v.string(1, ""),
		Op: c.v.string(2, ""), Iterations: c.v.int32(3, 0)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.sig.name, err)
	}
	return starlark.Bool(ok), nil
}
