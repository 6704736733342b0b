package pyfront_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

const imports = "from msccl.language import *\nfrom msccl.topologies import *\nfrom msccl.language.collectives import *\n"

// in puts lines into a program of n ranks; its lines begin at line 5.
func in(collective string, n int, lines ...string) string {
	return imports + fmt.Sprintf("with MSCCLProgram('p', fully_connected(%d), %s, 1):\n    ", n, collective) +
		strings.Join(lines, "\n    ") + "\n"
}

// ops writes the operations of a program: dst < src, or dst += src for a reduce.
func ops(d *ir.ChunkDAG) string {
	var list []string
	for _, op := range d.Ops {
		sign := " < "
		if op.Kind == ir.ChunkReduce {
			sign = " += "
		}
		at := func(l ir.Loc) string {
			return fmt.Sprintf("%d.%s[%d:%d]", l.Rank, d.BufferName(l.Buf), l.Index, l.Index+op.Count)
		}
		list = append(list, at(op.Dst)+sign+at(op.Src))
	}
	return strings.Join(list, ", ")
}

// Locations are named as msccl-tools names them.
func TestNamesOfLocations(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"a string names scratch, whatever it says", in("AllReduce(2, 2, False)", 2,
			"chunk(0, Buffer.input, 0).copy(1, 'input')", "chunk(1, 'input', 0).copy(0, 'output')"),
			"1.input[0:1] < 0.input[0:1], 0.output[0:1] < 1.input[0:1]"},
		{"any value that can be a key names scratch", in("AllReduce(2, 2, False)", 2,
			"chunk(0, Buffer.input, 0).copy(1, (0, 1))", "chunk(0, Buffer.input, 0).copy(1, 7)", "chunk(0, Buffer.input, 1).copy(1, Buffer.scratch)"),
			"1.(0, 1)[0:1] < 0.input[0:1], 1.7[0:1] < 0.input[0:1], 1.scratch[0:1] < 0.input[1:2]"},
		{"scratch without an index is appended to, as with -1", in("AllReduce(2, 2, False)", 2,
			"chunk(0, Buffer.input, 0).copy(1, 's')", "chunk(0, Buffer.input, 0, 2).copy(1, 's', -1)"),
			"1.s[0:1] < 0.input[0:1], 1.s[1:3] < 0.input[0:2]"},
		{"without buffer and index, a copy keeps them", in("AllReduce(2, 2, True)", 2,
			"chunk(0, Buffer.output, 1).copy(1)"), "1.input[1:2] < 0.input[1:2]"},
		{"in place, an allgather's input is where it stands in the output", in("AllGather(2, 1, True)", 2,
			"chunk(1, Buffer.input, 0).copy(0)"), "0.output[1:2] < 1.output[1:2]"},
		{"and a copy's destination is named on behalf of the source first", in("AllGather(2, 1, True)", 2,
			"chunk(1, Buffer.input, 0).copy(0, Buffer.input, 0)"), "0.output[1:2] < 1.output[1:2]"},
		{"in place, a reduce-scatter's output is part of the input", in("ReduceScatter(2, 1, True)", 2,
			"chunk(0, Buffer.input, 1).copy(1, 's')", "c = chunk(1, Buffer.output, 0)", "c.reduce(chunk(1, 's', 0))", "assert c.buffer is Buffer.input and c.index == 1"),
			"1.s[0:1] < 0.input[1:2], 1.input[1:2] += 1.s[0:1]"},
		{"chunk of nothing is None", in("AllGather(2, 1, False)", 2,
			"assert chunk(0, Buffer.output, 0) is None", "if chunk(0, Buffer.output, 1) == None: chunk(0, Buffer.input, 0).copy(1, Buffer.output, 0)"),
			"1.output[0:1] < 0.input[0:1]"},
		{"a copy onto itself is None", in("AllReduce(2, 2, True)", 2,
			"assert chunk(0, Buffer.input, 0).copy(0, Buffer.output, 0) is None"), ""},
		{"the ready-made routines", "from msccl.language.routines import *\n" + in("AllReduce(2, 2, True)", 2, "allreduce_ring_inplace(2)"),
			"1.input[0:1] += 0.input[0:1], 0.input[0:1] < 1.input[0:1], 0.input[1:2] += 1.input[1:2], 1.input[1:2] < 0.input[1:2]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := load(t, c.source)
			if got.err != "" {
				t.Fatal(got.err)
			}
			if text := ops(got.script.Programs[0].DAG); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

func TestMisuseOfPrograms(t *testing.T) {
	ar := "AllReduce(2, 2, False)"
	for _, c := range []struct{ source, want string }{
		{in(ar, 2, "c = chunk(0, Buffer.output, 1)", "c.copy(1, Buffer.output, 0)"),
			"6:7: NoneType has no .copy field or method\n    script.py:5:9: None came from here: chunk: rank 0 output[1] holds nothing"},
		{in(ar, 2, "c = chunk(0, Buffer.input, 1)", "c.reduce(chunk(1, Buffer.output, 0))"),
			"6:7: reduce: other: got NoneType, want ref\n    script.py:6:14: None came from here: chunk: rank 1 output[0] holds nothing"},
		{in("AllReduce(2, 2, True)", 2, "c = chunk(0, Buffer.input, 0).copy(0, Buffer.output, 0)", "c.rank"),
			"6:7: NoneType has no .rank field or method\n    script.py:5:35: None came from here: copy: chunk(0, Buffer.input, 0) is copied onto itself"},
		{in(ar, 2, "chunk(0, Buffer.input, 0).send(1, Buffer.output, 0)"),
			"5:31: send: msccl-tools has no such method any more\n    c.send(rank, buffer, index, ...) is c.copy(rank, buffer, index, ...) now"},
		{in(ar, 2, "chunk(0, Buffer.input, 0).reduce(1, Buffer.input, 0)"),
			"5:31: reduce: other: got int, want ref\n    c.reduce(rank, buffer, index, ...) is chunk(rank, buffer, index).reduce(c, ...) now"},
		{in(ar, 2, "c = chunk(0, Buffer.input, 0)", "c.copy(1, Buffer.output, 1)", "chunk(1, Buffer.input, 1).copy(0, Buffer.input, 0)", "c.copy(1, 's')"),
			"8:7: stale reference: rank 0 input[0] was overwritten by the copy at script.py:7:31\n" +
				"    the reference was taken at script.py:5:9; take it again with chunk(0, Buffer.input, 0)"},
		{in(ar, 2, "chunk(0, 'scratch', 0)"), "5:5: chunk: rank 0 \"scratch\" ends at 0, got index 0"},
		{in(ar, 2, "chunk(0, [1], 0)"), "5:5: got list, want Buffer.input, Buffer.output or a scratch buffer's name"},
		{in(ar, 2, "chunk(0, Buffer.input, 0).copy(1, Buffer.output)"),
			"5:31: copy: buffer output without an index\n    give the index too, as in copy(1, Buffer.output, 0); only scratch can be appended to"},
		{imports + "MSCCLProgram('p', fully_connected(2), AllReduce(2, 1, True))",
			"4:1: MSCCLProgram: missing argument instances\n    MSCCLProgram(name, topo, collective, instances, ...)"},
		{imports + "chunk(0, Buffer.input, 0)", "4:1: chunk: no program is open\n    call it inside: with MSCCLProgram(...):"},
		{imports + "with 3: pass", "4:1: with: got int, want a program or parallelize(n)"},
		{in(ar, 2, "for i in range(2):", "    with 1: break"), "6:17: break that leaves a with block: beyond the Python that scripts may use here\n" +
			"    put the block into a function and return from it, or test a variable after the block"},
		{in("3", 2, "pass"), "4:6: MSCCLProgram: collective: got int, want collective"},
	} {
		if got := load(t, c.source).err; got != "script.py:"+c.want {
			t.Errorf("%s\n got %s\nwant script.py:%s", c.source, got, c.want)
		}
	}
}

// What a script traces is the program between with and the end of its block,
// even when a function returns from inside.
func TestProgramsEndWithTheirBlock(t *testing.T) {
	got := load(t, imports+`
def two(n):
    for k in range(n):
        with MSCCLProgram(f'p{k}', fully_connected(2), AllGather(2, 1, True), 1, protocol='LL', threadblock_policy=ThreadblockPolicy.manual) as p:
            chunk(0, Buffer.input, 0).copy(1, Buffer.output, 0, sendtb=1, recvtb=2, ch=3)
            if k == 1:
                return 'returned'
            XML()
            Check()

print(two(5))
`)
	if got.err != "" || got.out != "returned\n" {
		t.Fatalf("got %q, error %s", got.out, got.err)
	}
	var have []string
	for _, p := range got.script.Programs {
		op := p.DAG.Ops[0]
		have = append(have, fmt.Sprint(p.Name, p.WantXML, p.WantCheck, p.Pos, p.DAG.Protocol, p.DAG.Policy, op.SendTB, op.RecvTB, op.Chan, p.DAG.Pos(op.Pos)))
	}
	want := "p0 true true script.py:7:9 LL manual 1 2 3 script.py:8:39|p1 false false script.py:7:9 LL manual 1 2 3 script.py:8:39"
	if text := strings.Join(have, "|"); strings.ReplaceAll(text, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}
