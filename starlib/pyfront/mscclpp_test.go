package pyfront_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// oneImports are the first lines of MSCCL++'s own scripts; a script behind them
// begins at line 8.
const oneImports = `import argparse
from mscclpp.language.channel import *
from mscclpp.language.rank import *
from mscclpp.language.general import *
from mscclpp.language.program import *
from mscclpp.language.collectives import *
from mscclpp.language.loop import *
`

// oneIn puts lines into a program of two ranks; they begin at line 9.
func oneIn(lines ...string) string {
	return oneImports + "with CollectiveProgram('p', TestCollective(2, 4, 4), 2, protocol='LL') as prog:\n    " + strings.Join(lines, "\n    ") + "\n"
}

// traced writes what a program does as the text of its operations.
func traced(t *testing.T, one *ir.OneTrace) string {
	t.Helper()
	var b strings.Builder
	if err := one.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	var ops []string
	for line := range strings.Lines(b.String()) {
		if first, rest, _ := strings.Cut(strings.TrimSpace(line), " "); first != "" && strings.Trim(first, "0123456789") == "" {
			op, _, _ := strings.Cut(rest, " @")
			ops = append(ops, op)
		}
	}
	return strings.Join(ops, "; ")
}

// The names that MSCCL++'s modules bring are the language's own; what a script
// asks of them is what it gets from MSCCL++.
func TestNamesOfMSCCLPP(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"print(isinstance(AllGather(2, 1, True), AllGather), isinstance(AllGather(2, 1, True), AllReduce), isinstance(AllReduce(2, 1, True), Collective))", "True False True"},
		{"print(isinstance(SendRecv(2, 1, False), SendRecv), isinstance(TestCollective(2, 1, 1), TestCollective), isinstance(3, Collective))", "True True False"},
		{"c = AllReduce(num_ranks=4, chunk_factor=2, inplace=True)\nprint(c.num_ranks, c.chunk_factor, c.inplace, c.name)", "4 2 True allreduce"},
		{"s = AlgoSpec('n', AllReduce(4, 1, True), 4, 4, True, 1, 'LL', tags={'default': 1})\nprint(isinstance(s, AlgoSpec), s.world_size, s.tags, s.max_message_size == 2**64 - 1)", "True 4 {'default': 1} True"},
		{"import mscclpp\ns = mscclpp.AlgoSpec('n', AllReduce(4, 1, True), 4, 4, True, 1, 'LL')\nprint(s.name)", "n"},
		{"from mscclpp.language import *\nprint(JSON is not None, Rank is not None, LoopIterationContext is not None, CollectiveProgram('n', AllReduce(2, 1, True), 2).name)", "True True True n"},
		{"print(CollectiveProgram(None, AllReduce(2, 1, True), 2).name, AlgoSpec(collective=AllReduce(2, 1, True), name=None, nranks_per_node=2, world_size=2, in_place=True, instances=1, protocol='LL').name)", "script script"},
		{"from mscclpp.language import AlgoSpec, ReplicationPolicy\nimport mscclpp.language.program as p\nprint(p.CollectiveProgram('n', p.AllReduce(2, 1, True), 2).name)", "n"},
		{"with CollectiveProgram('p', AllReduce(2, 1, True), 2) as a:\n    print(get_program().name, get_program().num_ranks, isinstance(a, CollectiveProgram))", "p 2 True"},
		{"with CollectiveProgram('p', AllReduce(2, 1, True), 2):\n    b = Rank(1).get_input_buffer()\n    c = b[1:2]\n    print(c.rank, c.index, c.size, c.buffer == BufferType.input, isinstance(c, Chunk))", "1 1 1 True True"},
		{"with CollectiveProgram('p', AllReduce(2, 1, True), 2):\n    ch = PortChannel(1, 0)\n    print(isinstance(ch, PortChannel), isinstance(ch, MemoryChannel), ch.dst_rank, ch.src_rank)\n    PortChannel(0, 1)", "True False 1 0"},
		{"g = ThreadBlockGroup(tb_list=[3, 4])\nprint(g.numtb(), g.get_internal_id(4), g.tb_list)", "2 1 [3, 4]"},
		{"print(SyncType.before | SyncType.after == SyncType.both, SyncType.both & SyncType.after == SyncType.after)", "True True"},
	} {
		got := load(t, oneImports+c.source)
		if got.err != "" || strings.TrimSuffix(got.out, "\n") != c.want {
			t.Errorf("%s\n got %q, error %s\nwant %q", c.source, got.out, got.err, c.want)
		}
	}
}

// A program is its block, whichever way the plan is asked for.
func TestPlansAreAskedFor(t *testing.T) {
	const copying = "Rank(0).copy(Rank(0).get_output_buffer()[0:1], Rank(0).get_input_buffer()[0:1], tb=0)"
	const want = "copy i[0] x1 -> o[0] x1"
	for _, source := range []string{
		oneIn(copying, "print(JSON())"),
		oneIn(copying, "JSON()"),
		oneIn(copying) + "print(prog.to_json())",
		oneIn(copying) + "text = prog.to_json(indent=None)\nprint(text)",
		oneImports + "def make():\n    with CollectiveProgram('p', TestCollective(1, 1, 1), 1) as prog:\n        " + copying + "\n    return prog\nprint(make().to_json())",
		oneImports + "def make():\n    with CollectiveProgram('p', TestCollective(1, 1, 1), 1) as prog:\n        " + copying + "\n        return prog\nmake().to_json()",
	} {
		got := load(t, source)
		if got.err != "" || got.out != "" || len(got.script.Programs) != 1 || got.script.Programs[0].One == nil {
			t.Errorf("%s\ngot %q, error %s", source, got.out, got.err)
			continue
		}
		p := got.script.Programs[0]
		if text := traced(t, p.One); !p.WantPlan || !strings.Contains(text, want) {
			t.Errorf("%s\nplan asked for: %v, traced %s", source, p.WantPlan, text)
		}
	}
	if got := load(t, oneIn(copying)); got.err != "" || got.script.Programs[0].WantPlan {
		t.Errorf("nobody asks for a plan: error %s", got.err)
	}
}

// Loops and programs are entered in one with statement, one after the other.
func TestSeveralContextsInOneWith(t *testing.T) {
	got := load(t, oneImports+`
with CollectiveProgram("p", TestCollective(1, 1, 1), 1) as prog, LoopIterationContext(unit=64, num_chunks=1) as loop:
    Rank(0).copy(prog.num_ranks and Rank(0).get_output_buffer()[0:1], Rank(0).get_input_buffer()[:], tb=0)
`)
	if got.err != "" {
		t.Fatal(got.err)
	}
	one := got.script.Programs[0].One
	if len(one.Loops) != 1 || one.Ops[0].Loop != 0 || one.Loops[0].UnitBytes != 64 {
		t.Errorf("got %d loops and %s", len(one.Loops), traced(t, one))
	}
}

// What a script does wrong stands where it is wrong.
func TestMisuseOfMSCCLPP(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{oneIn("x = f'{JSON()}'"), "9:11: the text of a plan: beyond the Python that scripts may use here\n    print(JSON()) writes the plan by itself; -o FILE puts it into a file"},
		{oneIn("x = str(JSON())"), "9:9: the text of a plan: beyond the Python that scripts may use here\n    print(JSON()) writes the plan by itself; -o FILE puts it into a file"},
		{oneIn("print('plan:', JSON())"), "9:5: the text of a plan: beyond the Python that scripts may use here\n    print(JSON()) writes the plan by itself; -o FILE puts it into a file"},
		{oneIn("x = '%s' % JSON()"), "9:14: the text of a plan: beyond the Python that scripts may use here\n    print(JSON()) writes the plan by itself; -o FILE puts it into a file"},
		{oneImports + "print(JSON())", "8:7: JSON: no program is open\n    call it inside: with CollectiveProgram(...):"},
		{oneImports + "get_program()", "8:1: get_program: no program is open\n    call it inside: with CollectiveProgram(...):"},
		{oneImports + "Collective(2, 1, True)", "8:1: Collective: beyond the Python that scripts may use here\n    MSCCL++'s executor runs no collectives of scripts"},
		{oneImports + "isinstance(3, JSON)", "8:1: isinstance: got builtin_function_or_method, want a class"},
	} {
		if got := load(t, c.source).err; got != "script.py:"+c.want {
			t.Errorf("%s\n got %s\nwant script.py:%s", c.source, got, c.want)
		}
	}
}

// Signals and waits have to be as many between two ranks, as in MSCCL++; that
// they are on each channel is for the checker to say.
func TestChannelsOfMSCCLPP(t *testing.T) {
	crossed := func(wait int) string {
		return oneIn("a, b = [MemoryChannel(1, 0), MemoryChannel(1, 0)], [MemoryChannel(0, 1), MemoryChannel(0, 1)]",
			"a[0].signal(tb=0)", fmt.Sprintf("b[%d].wait(tb=0)", wait))
	}
	for _, wait := range []int{0, 1} {
		if got := load(t, crossed(wait)); got.err != "" {
			t.Errorf("wait on channel %d: %s", wait, got.err)
		}
	}
	got := load(t, strings.Replace(crossed(0), "b[0].wait(tb=0)", "pass", 1)).err
	if !strings.HasPrefix(got, "script.py:10:10: signal: rank 0 signals rank 1 once on a memory channel, which waits never") {
		t.Errorf("a signal without a wait: %s", got)
	}
}
