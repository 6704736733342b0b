package starlib_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
)

// inProgram puts lines into a program of 3 ranks on a line, each with 4 input
// and 12 output chunks. The first of them is line 3 of the script.
const inProgram = "# a program of 3 ranks on a line\n" +
	"with MSCCLProgram(\"p\", line(3), AllGather(3, 4, False)):\n"

// TestMisuse asserts whole messages of what the language itself finds; the
// meaning of operations is trace's, whose messages are tested there.
func TestMisuse(t *testing.T) {
	const (
		copyUsage   = "ref.copy(dst, buffer=None, index=None, sendtb=-1, recvtb=-1, ch=-1)"
		reduceUsage = "ref.reduce(other, sendtb=-1, recvtb=-1, ch=-1)"
		chunkUsage  = "chunk(rank, buffer, index, size=1)"
		hostAdvice  = "the tool that runs this script can't do it; mscclsh can"
	)
	for _, tc := range []struct{ src, want string }{
		// Arguments.
		{`    chunk(0, "input")`, "3:5: chunk: missing argument index\n    " + chunkUsage},
		{`    chunk()`, "3:5: chunk: missing argument rank\n    " + chunkUsage},
		{`    chunk(0, "input", 0, 1, 2)`, "3:5: chunk: got 5 positional arguments, want at most 4\n    " + chunkUsage},
		{`    chunk(0, "input", 0, rank = 1)`, "3:5: chunk: got two values for rank\n    " + chunkUsage},
		{`    chunk(0, "input", 0, sise = 1)`, "3:5: chunk: got unknown argument sise\n    did you mean size?"},
		{`    chunk(0, "input", 0).copy(1, chanel = 3, ch = 1)`, "3:26: copy: got unknown argument chanel\n    " + copyUsage},
		{`    chunk(0, "input", 0).copy(1, "output", 0, recvbt = 3)`, "3:26: copy: got unknown argument recvbt\n    did you mean recvtb?"},
		{`    chunk(0, "input", 0).copy(1, bufer = "x")`, "3:26: copy: got unknown argument bufer\n    did you mean buffer?"},
		{`    chunk("0", "input", 0)`, "3:5: chunk: rank: got string, want int"},
		{`    chunk(4 / 2, "input", 0)`, "3:5: chunk: rank: got float, want int\n    x // y divides integers"},
		{`    chunk(True, "input", 0)`, "3:5: chunk: rank: got bool, want int"},
		{`    chunk(None, "input", 0)`, "3:5: chunk: rank: got NoneType, want int"},
		{`    chunk(0, "input", 1 << 31)`, "3:5: chunk: index: got 2147483648, want an int of 32 bits"},
		{`    chunk(0, 7, 0)`, "3:5: chunk: buffer: got int, want string or tuple"},
		{`    chunk(0, "", 0)`, "3:5: chunk: buffer: got an empty string, want a name"},
		{`    chunk(0, "input", 0).copy(1, ["x"])`, "3:26: copy: buffer: got list, want string or tuple or None"},
		{`    chunk(0, "input", 0).reduce(1)`, "3:26: reduce: other: got int, want ref"},
		{`    chunk(0, "input", 0).reduce()`, "3:26: reduce: missing argument other\n    " + reduceUsage},
		{`    chunk(0, "input", 0).copy(1, "output", -1)`, "3:26: copy: index: got -1, want 0 or more\n    leave the index out for the default"},
		{`    chunk(0, "input", 0).copy(1, "output", index = -2)`, "3:26: copy: index: got -2, want 0 or more\n    leave the index out for the default"},
		{`    chunk(0, "input", 0).copy(1, ("a", 1)).copy(1, '("a", 1)')`, "3:44: copy: buffer: the string \"(\\\"a\\\", 1)\" and the tuple of the same spelling can't both name scratch"},
		{`    chunk(0, "input", 0).send(1)`, "3:26: ref has no .send field or method"},
		{`    chunk(0, "input", 0).coppy(1)`, "3:26: ref has no .coppy field or method (did you mean .copy?)"},
		{`    chunk(0, "input", 0) < chunk(0, "input", 1)`, "3:26: references have no order: < has no meaning"},
		// Names.
		{`    chunck(0, "input", 0)`, "3:5: undefined: chunck\n    did you mean chunk?"},
		{`    c = fully_conected(3)`, "3:9: undefined: fully_conected\n    did you mean fully_connected?"},
		{`    quux()`, "3:5: undefined: quux"},
		{`    simulate("dgx1")`, "3:5: simulate: simulating a machine is not part of this version"},
		{`    tune()`, "3:5: tune: searching for parameters is not part of this version"},
		{`    Collective(1, 2, True)`, "3:5: Collective: classes belong to Python scripts; in Starlark use collective(name, ranks, input, output, expect)"},
		{`    create_scratch(0, "x")`, "3:5: undefined: create_scratch\n    scratch is made by the first copy to it, under any name: c.copy(rank, \"name\", 0)"},
		// The trace's messages in the words of the language.
		{`    chunk(0, "input", 0, 0)`, "3:5: chunk: size: got 0, want 1 or more\n    leave out transfers of nothing"},
		{`    chunk(0, "input", 0, 5)`, "3:5: chunk: rank 0 input[0:5] is past the end: rank 0 has 4 input chunks\n    a size of 4 at most fits"},
		{`    chunk(0, "input", 0).reduce(chunk(1, "input", 0)).get_origin_rank()`,
			"3:55: get_origin_rank: rank 0 input[0] is a sum of 2 chunks\n    ask before it is reduced; print_chunk_info shows the parts of a sum"},
		{`    chunk(0, "input", 0).get_origin_index(1)`, "3:26: get_origin_index: index: got 1, want 0 to 0\n    the reference has 1 chunk"},
		{`    chunk(0, "input", 0).get_dst_rank(1)`, "3:26: get_dst_rank: index: got 1, want 0 to 0\n    the reference has 1 chunk"},
		// Names of programs.
		{"    pass\nwith MSCCLProgram(\"p\", line(2), SendRecv(2)):\n    pass",
			"4:1: MSCCLProgram: the script has a program \"p\" already\n    t.star:2:1: it began here\n    give each a name of its own: --program chooses by it"},
		// What only a Host can do.
		{`    Check()`, "3:5: Check: not available here\n    " + hostAdvice},
		{`    run(size = "1MiB")`, "3:5: run: not available here\n    " + hostAdvice},
		{`    show("dag")`, "3:5: show: not available here\n    " + hostAdvice},
		{`    topology("dgx1")`, "3:5: topology: not available here\n    " + hostAdvice},
		{`    nvlink_only()`, "3:5: nvlink_only: a script can't run nvidia-smi\n    name the machine, as in topology(\"dgx1\"), or list its links with Topology(name, links)"},
		// Parallelize.
		{`    parallelize(0)`, "3:5: parallelize: got 0, want 1 or more\n    parallelize(1) changes nothing"},
		// Routines.
		{`    allreduce_ring_inplace(4)`, "3:5: allreduce_ring_inplace: gpus: got 4, want 1 to 3"},
		{`    allgather_ring_inplace(2, gpu_offset = 2)`, "3:5: allgather_ring_inplace: gpu_offset: got 2, want 0 to 1"},
		// A function in between is named.
		{"    def hop(r):\n        return r.copy(\"x\")\n    hop(chunk(0, \"input\", 0))",
			"4:18: copy: dst: got string, want int\n    t.star:5:5: hop called from here"},
	} {
		wantError(t, inProgram+tc.src+"\n", "t.star:"+tc.want)
	}
}

func TestMisuseOutsideAProgram(t *testing.T) {
	const (
		none = "\n    call it inside: with MSCCLProgram(...):"
		mk   = `MSCCLProgram("p", line(2), SendRecv(2)`
	)
	for _, tc := range []struct{ src, want string }{
		{`chunk(0, "input", 0)`, "1:1: chunk: no program is open" + none},
		{`XML()`, "1:1: XML: no program is open" + none},
		{`Check()`, "1:1: Check: no program is open" + none},
		{`allreduce_ring_inplace(4)`, "1:1: allreduce_ring_inplace: no program is open" + none},
		{"with parallelize(2):\n    pass", "1:1: parallelize: no program is open" + none},
		// References outlive their program, but can't be used.
		{"with " + mk + "):\n    c = chunk(0, \"input\", 0)\nc.copy(1, \"output\", 0)",
			"3:3: copy: program \"p\", which the reference belongs to, has ended\n    t.star:1:1: \"p\" began here\n    move the call into the with block"},
		{"with " + mk + "):\n    c = chunk(0, \"input\", 0)\nwith MSCCLProgram(\"q\", line(2), SendRecv(2)):\n    c.copy(1, \"output\", 0)",
			"4:7: copy: the reference belongs to program \"p\", not to \"q\"\n    t.star:1:1: \"p\" began here\n    take it again with chunk(...)"},
		{"with " + mk + "):\n    c = chunk(0, \"input\", 0)\nprint(c.rank)\nc.get_origin_rank()",
			"4:3: get_origin_rank: program \"p\", which the reference belongs to, has ended\n    t.star:1:1: \"p\" began here\n    move the call into the with block"},
		// Programs.
		{mk + ", 0)", "1:1: MSCCLProgram: instances: got 0, want 1 or more"},
		{mk + ", 1, \"LL64\")", "1:1: MSCCLProgram: protocol: got \"LL64\", want Simple, LL, LL128, Direct or auto"},
		{mk + ", threadblock_policy = \"best\")", "1:1: MSCCLProgram: threadblock_policy: got \"best\", want ThreadblockPolicy.auto or ThreadblockPolicy.manual"},
		{`MSCCLProgram("p", line(3), SendRecv(2))`, "1:1: MSCCLProgram: the topology has 3 ranks, the collective 2"},
		{`MSCCLProgram("p", SendRecv(2), line(2))`, "1:1: MSCCLProgram: topo: got collective, want topology"},
		{`MSCCLProgram("p", line(2))`, "1:1: MSCCLProgram: missing argument collective\n    " +
			"MSCCLProgram(name, topo, collective, instances=None, protocol=None, threadblock_policy=ThreadblockPolicy.auto, " +
			"interleaved_replication=True, instr_fusion=True, check_xml=True, dependence_nop=False)"},
		{"param(\"instances\", \"two\")\n" + mk + ")", "2:1: MSCCLProgram: instances: the parameter of that name is string, want int\n    pass instances = ... explicitly"},
		{"param(\"protocol\", 128)\n" + mk + ")", "2:1: MSCCLProgram: protocol: the parameter of that name is int, want string\n    pass protocol = ... explicitly"},
		// Parameters.
		{`param("n")`, "1:1: param: missing argument default\n    param(name, default, help=\"\", choices=None)"},
		{`param("-n", 1)`, "1:1: param: name: got \"-n\", want letters, digits, '_' and '-', a letter first"},
		{`param("n", None)`, "1:1: param: n: got a default of type NoneType, want int, float, bool or string"},
		{`param("n", [1])`, "1:1: param: n: got a default of type list, want int, float, bool or string"},
		{`param("n", 1, "", [1, "2"])`, "1:1: param: n: got string among the choices, want int like the default"},
		{`param("n", 1, choices = [])`, "1:1: param: n: got no choices, want one at least"},
		{`param("n", 3, choices = [1, 2])`, "1:1: param: n: got 3, want one of 1, 2"},
		{"param(\"n\", 1)\nparam(\"n\", 1)", "2:1: param: n was declared already\n    t.star:1:1: declared here, of type int"},
		// Collectives and topologies.
		{`AllReduce(0, 1, True)`, "1:1: AllReduce: num_ranks: got 0, want 1 to 1048576"},
		{`AllReduce(2, 0, True)`, "1:1: AllReduce: chunk_factor: got 0, want 1 to 16777216"},
		{`AllReduce(2, 1, 1)`, "1:1: AllReduce: inplace: got int, want bool"},
		{`Broadcast(4, root = 4)`, "1:1: Broadcast: root: got 4, want a rank from 0 to 3"},
		{`AllReduce(4, root = 1)`, "1:1: AllReduce: got unknown argument root\n    AllReduce(num_ranks, chunk_factor=1, inplace=False)"},
		{`SendRecv(2, dst = 2)`, "1:1: SendRecv: dst: got 2, want a rank from 0 to 1"},
		{`AllToAllV(2, [[1, 1]])`, "1:1: AllToAllV: counts: got 1 rows, want 2"},
		{`AllToAllV(2, [[1, 1], [1]])`, "1:1: AllToAllV: counts[1]: got 1 numbers, want 2"},
		{`AllToAllV(2, [[1, 1], [1, -1]])`, "1:1: AllToAllV: counts[1][1]: got -1, want 0 to 16777216"},
		{`AllToAllV(2, [1, 1])`, "1:1: AllToAllV: counts: got int as row 0, want list"},
		{`collective("c", 2, 1, [1], lambda r, i: None)`, "1:1: collective: output: got 1 numbers, want 2"},
		{`collective("c", 2, lambda r: "x", 1, lambda r, i: None)`, "1:1: collective: input(0): got string, want int"},
		{`collective("c", 2, 1, 1, lambda r, i: (2, 0))`, "1:1: collective: expect(0, 0): got (2, 0), which is no input chunk"},
		{`collective("c", 2, 1, 1, lambda r, i: r)`, "1:1: collective: expect(0, 0): got int, want None, (rank, index) or a list of them"},
		{`collective("c", 2, 1, 1, lambda r, i: [])`, "1:1: collective: expect(0, 0): got an empty list, want None for anything"},
		{`collective("c", 2, 1, 1, lambda r, i: [0])`, "1:1: collective: expect(0, 0): got 0, want (rank, index)"},
		{`collective("c", 2, 1, 1, lambda r, i: (0, 0), holds = lambda r, i: r > 0)`, "1:1: collective: expect(0, 0): got (0, 0), which holds no data"},
		{"def e(r, i):\n    fail('no')\ncollective('c', 1, 1, 1, e)", "2:5: no\n    t.star:3:1: collective called from here"},
		{`ring(0)`, "1:1: ring: num_nodes: got 0, want 1 to 1048576"},
		{`ring(9000)`, "1:1: ring: num_nodes: got 9000, want at most 8192\n    fully_connected takes more"},
		{`distributed_fully_connected(dgx1(), 0, 1)`, "1:1: distributed_fully_connected: num_copies: got 0, want 1 to 1024"},
		{`distributed_fully_connected(dgx1(), 2, 0)`, "1:1: distributed_fully_connected: remote_bw: got 0, want more than 0"},
		{`Topology("t", [[0, 1], [1]])`, "1:1: Topology: links[1]: got 1 numbers, want 2"},
		{`Topology("t", [[0, -1], [1, 0]])`, "1:1: Topology: links[0][1]: got -1, want 0 or more"},
		{`ring(3).link(0, 3)`, "1:9: link: dst: got 3, want a rank from 0 to 2"},
		{`topology("box", 0)`, "1:1: topology: not available here\n    the tool that runs this script can't do it; mscclsh can"},
		// Starlark's own errors.
		{`1 + "x"`, "1:3: unknown binary op: int + string"},
		{`range("x")`, "1:1: range: for parameter 1: got string, want int"},
		{"x = 1\nx.y()", "2:3: int has no .y field or method"},
		{`fail("a", 1)`, "1:1: a 1"},
		{"def f(n):\n    return f(n - 1) if n else [][0]\nf(10)", "2:33: index 0 out of range: empty list\n" +
			strings.Repeat("    t.star:2:12: f called from here\n", 8) + "    and 3 more calls around it"},
		{`sum([1, "x"])`, "1:1: sum: unknown binary op: int + string"},
		{`math.log2(0)`, "1:6: log2: x: got 0, want more than 0"},
		{"def g(a):\n    pass\ng(1, 2)", "3:1: function g accepts 1 positional argument (2 given)\n    t.star:1:1: g is defined here"},
		{"def g(a):\n    pass\ndef h():\n    g()\nh()", "4:5: function g missing 1 argument (a)\n    t.star:1:1: g is defined here\n    t.star:5:1: h called from here"},
	} {
		wantError(t, tc.src+"\n", "t.star:"+tc.want)
	}
}

// TestSyntaxErrors: positions are where the token begins that doesn't fit, and
// what Python has and Starlark lacks gets advice.
func TestSyntaxErrors(t *testing.T) {
	const no = "\n    Starlark has no "
	for _, tc := range []struct{ src, want string }{
		{`class C:`, "1:1: syntax error: got class, want primary expression" + no + "class: struct(...) holds fields; collective(...) makes a collective"},
		{`from msccl import *`, "1:1: syntax error: got from, want primary expression" + no + "from: load(\"file.star\", \"name\") takes names from another script"},
		{`assert 1 == 1`, "1:8: syntax error: got int literal, want newline" + no + "assert: if ...: fail(...) does what assert does"},
		{"    x = 1", "1:5: syntax error: got indent, want primary expression" + "\n    no block begins before this line, so it can't be indented further"},
		{"x = 1\n  y = 2", "2:3: syntax error: got indent, want primary expression" + "\n    no block begins before this line, so it can't be indented further"},
		{`x = 2 ** 3`, "1:7: syntax error: got '**', want newline" + no + "**: 1 << n is 2 to the n; math.pow(x, y) is for floats"},
		{`x = 1 is None`, "1:7: syntax error: got is, want newline" + no + "is: == compares"},
		{`x = f"a{1}"`, "1:6: syntax error: got string literal, want newline"},
		{`x = "é" 'b\'' 2`, "1:10: syntax error: got string literal, want newline"},
		{`x = "é" '' 2`, "1:10: syntax error: got string literal, want newline"},
		{`x = "é" 2.5`, "1:10: syntax error: got float literal, want newline"},
		{`chunk(0, "input" 0)`, "1:18: syntax error: got int literal, want ','"},
		{`for i in range(3) print(i)`, "1:19: syntax error: got identifier, want ':'"},
		{"if x:\npass", "2:1: syntax error: got pass, want indent"},
		{"if x\n    pass", "1:5: syntax error: got newline, want ':'"},
		{"x = [1,\n", "3:1: syntax error: got end of file, want ']'"},
		{`x = 0 < 1 < 2`, "1:11: syntax error: < does not associate with < (use parens)"},
		{"x = \"a", "1:5: syntax error: unexpected newline in string"},
		{"print(a = 1, 2)", "1:14: positional argument may not follow named"},
	} {
		wantError(t, tc.src+"\n", "t.star:"+tc.want)
	}
}

func wantError(t *testing.T, src, want string) {
	t.Helper()
	s, err := starlib.Load(context.Background(), starlib.Options{File: "t.star", Source: []byte(src)})
	if err == nil || err.Error() != want {
		t.Errorf("%s\n got %v\nwant %s", src, err, want)
	}
	if err != nil && len(s.Programs) > 0 {
		t.Errorf("%s\na script that failed has programs", src)
	}
	for _, m := range diag.Messages(err) {
		if m.Code == "" || m.Severity != diag.Error {
			t.Errorf("%s\ncode %q, severity %v", src, m.Code, m.Severity)
		}
	}
}

// TestMisuseOfMeaning asserts that what trace finds arrives with its code and the
// position of the call.
func TestMisuseOfMeaning(t *testing.T) {
	for _, tc := range []struct{ src, want string }{
		{`    chunk(0, "input", 4)`, `3:5: chunk: `},
		{`    chunk(3, "input", 0)`, `3:5: chunk: `},
		{`    chunk(0, "input", -1)`, `3:5: chunk: `},
		{`    chunk(0, "output", 0)`, `3:5: chunk: `},
		{`    chunk(0, "tmp", 0)`, `3:5: chunk: `},
		{`    chunk(0, ("tmp", 1), 0)`, `3:5: chunk: `},
		{`    chunk(0, "input", 0, 0)`, `3:5: chunk: `},
		{`    chunk(0, "input", 0).copy(2, "output", 0)`, `3:26: copy: `},
		{`    chunk(0, "input", 0).copy(1, "output")`, `3:26: copy: `},
		{`    chunk(0, "input", 0).copy(1, index = 3)`, `3:26: copy: `},
		{`    chunk(0, "input", 0).copy(0)`, `3:26: copy: `},
		{`    chunk(0, "input", 0).copy(1, ch = -2)`, `3:26: copy: `},
		{`    chunk(0, "input", 0, 2).copy(0, "input", 1)`, `3:29: copy: `},
		{`    chunk(0, "input", 0).reduce(chunk(0, "input", 0))`, `3:26: reduce: `},
		{`    chunk(0, "input", 0).reduce(chunk(1, "input", 0, 2))`, `3:26: reduce: `},
		{`    chunk(0, "input", 0, 3).split(2)`, `3:29: split: `},
		{`    chunk(0, "input", 0).group(chunk(0, "input", 2))`, `3:26: group: `},
		{"    c = chunk(0, \"input\", 0)\n    chunk(1, \"input\", 0).copy(0, \"input\", 0)\n    c.copy(1, \"output\", 0)", `5:7: stale reference: `},
		{"    c = chunk(0, \"input\", 0).reduce(chunk(1, \"input\", 0))\n    c.get_origin_rank()", `4:7: get_origin`},
		{`    chunk(0, "input", 0, 2).get_dst_rank(2)`, `3:29: get_dst`},
	} {
		_, err := load(t, inProgram+tc.src+"\n", func(o *starlib.Options) { o.File = "t.star" })
		var m *diag.Message
		if !errors.As(err, &m) || !strings.HasPrefix(m.Error(), "t.star:"+tc.want) || m.Code == "" {
			t.Errorf("%s\n got %v\nwant t.star:%s...", tc.src, err, tc.want)
		}
	}
}

func TestHost(t *testing.T) {
	var asked []string
	var shot *ir.ChunkDAG
	host := starlib.Host{
		Topology: testTopology,
		Check: func(p *starlib.Program) (bool, error) {
			d := p.DAG
			asked = append(asked, "check")
			shot = d
			return len(d.Ops) == 1, nil
		},
		Show: func(_ *starlib.Program, what string) error { asked = append(asked, "show "+what); return nil },
		Run: func(_ *starlib.Program, o starlib.RunOptions) (bool, error) {
			asked = append(asked, "run "+o.Size+o.DType+o.Op)
			return true, nil
		},
	}
	s, err := load(t, `
with MSCCLProgram("p", topology("box"), SendRecv(4)) as p:
    c = chunk(0, "input", 0).copy(1, "output", 0)
    if not Check():
        fail("one operation")
    c.copy(1, "tmp", 0)
    if Check() or not run("1MiB", "fp32", op = "sum"):
        fail("two operations")
    show()
    show("dag")
    c.copy(2, "tmp", 0)
`, func(o *starlib.Options) { o.Host = host })
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(asked, ", "); got != "check, check, run 1MiBfp32sum, show program, show dag" {
		t.Errorf("asked: %s", got)
	}
	if len(shot.Ops) != 2 || len(s.Programs[0].DAG.Ops) != 3 || !s.Programs[0].WantCheck {
		t.Errorf("the snapshot has %d operations, the program %d", len(shot.Ops), len(s.Programs[0].DAG.Ops))
	}
}

func TestHostErrors(t *testing.T) {
	broken := starlib.Host{
		Topology: testTopology,
		Check: func(*starlib.Program) (bool, error) {
			return false, diag.Errorf(diag.Pos{File: "t.star", Line: 2, Col: 5}, "x", "no channel left").Suggest("use fewer")
		},
	}
	for _, tc := range []struct{ src, want string }{
		{inProgram + "    Check()", "t.star:2:5: no channel left\n    use fewer"},
		{`topology("bax")`, "t.star:1:1: topology: no machine is called bax"},
	} {
		_, err := load(t, tc.src, func(o *starlib.Options) { o.File, o.Host = "t.star", broken })
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s\n got %v\nwant %s", tc.src, err, tc.want)
		}
	}
}

// A bug in what surrounds the script is an error with a position, not a crash.
func TestPanicIsAnInternalError(t *testing.T) {
	_, err := load(t, inProgram+"    Check()", func(o *starlib.Options) {
		o.Host.Check = func(*starlib.Program) (bool, error) { panic("off by one") }
	})
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != "internal" || m.Text != "internal error: off by one" || m.Pos.File != "test.star" {
		t.Errorf("error %v", err)
	}
}
