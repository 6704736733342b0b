package starlib_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
)

// traced runs a script of one program and writes its operations one a line:
// kind, source, destination, count, then what was asked for.
func traced(t *testing.T, src string) (*ir.ChunkDAG, []string) {
	t.Helper()
	s, err := load(t, src)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Programs) != 1 {
		t.Fatalf("%d programs, want 1", len(s.Programs))
	}
	d := s.Programs[0].DAG
	var ops []string
	for _, op := range d.Ops {
		text := fmt.Sprintf("%s %d.%s[%d] %d.%s[%d] x%d", op.Kind, op.Src.Rank, d.BufferName(op.Src.Buf), op.Src.Index,
			op.Dst.Rank, d.BufferName(op.Dst.Buf), op.Dst.Index, op.Count)
		if op.SendTB != ir.None || op.RecvTB != ir.None || op.Chan != ir.None {
			text += fmt.Sprintf(" tb %d,%d ch %d", op.SendTB, op.RecvTB, op.Chan)
		}
		if op.Parallel != 1 {
			text += fmt.Sprintf(" parallel %d", op.Parallel)
		}
		ops = append(ops, text)
	}
	return d, ops
}

// TestTracedOperations derives what is recorded by hand.
func TestTracedOperations(t *testing.T) {
	for _, tc := range []struct {
		name, src string
		want      []string
	}{
		{"hints by position and by name", `
with MSCCLProgram("p", fully_connected(2), AllReduce(2, 3, True), threadblock_policy = ThreadblockPolicy.manual):
    c = chunk(0, "input", 1, 2).copy(1, "x", 4, 5, 6, 7)
    chunk(1, "input", 0, size = 2).reduce(c, ch = 1, sendtb = 2, recvtb = 3)
    chunk(1, "input", 0, 2).reduce(c, 4)
`, []string{
			"copy 0.input[1] 1.x[4] x2 tb 5,6 ch 7",
			"reduce 1.x[4] 1.input[0] x2 tb 2,3 ch 1",
			"reduce 1.x[4] 1.input[0] x2 tb 4,-1 ch -1",
		}},
		{"in place, output is input", `
with MSCCLProgram("p", fully_connected(2), AllReduce(2, 1, True)):
    c = chunk(0, Buffer.output, 0).reduce(chunk(1, Buffer.input, 0))
    c.copy(1)
`, []string{"reduce 1.input[0] 0.input[0] x1", "copy 0.input[0] 1.input[0] x1"}},
		{"in-place allgather without a buffer goes to the destination's own input", `
with MSCCLProgram("p", fully_connected(3), AllGather(3, 2, True)):
    chunk(2, "input", 1).copy(1, "tmp", 0).copy(0, "input", 1)
    chunk(2, "input", 0).copy(1)
`, []string{"copy 2.output[5] 1.tmp[0] x1", "copy 1.tmp[0] 0.output[1] x1", "copy 2.output[4] 1.output[2] x1"}},
		{"parallelize nests", `
with MSCCLProgram("p", fully_connected(2), AllReduce(2, 1, True)):
    c = chunk(0, "input", 0)
    with parallelize(2):
        c.copy(1, "a")
        with parallelize(3):
            c.copy(1, "a")
        c.copy(1, "a")
    c.copy(1, "a")
`, []string{"copy 0.input[0] 1.a[0] x1 parallel 2", "copy 0.input[0] 1.a[1] x1 parallel 6",
			"copy 0.input[0] 1.a[2] x1 parallel 2", "copy 0.input[0] 1.a[3] x1"}},
		{"return leaves parallelize", `
def f(c):
    with parallelize(2):
        return c.copy(1, "a")
with MSCCLProgram("p", fully_connected(2), AllReduce(2, 1, True)):
    f(chunk(0, "input", 0)).copy(0, "a")
`, []string{"copy 0.input[0] 1.a[0] x1 parallel 2", "copy 1.a[0] 0.a[0] x1"}},
		{"allreduce ring of two ranks", `
with MSCCLProgram("p", fully_connected(3), AllReduce(3, 4, True)):
    allreduce_ring_inplace(2, gpu_offset = 1, index_offset = 2, ch = 5)
`, []string{
			"reduce 1.input[2] 2.input[2] x1 tb -1,-1 ch 5", "copy 2.input[2] 1.input[2] x1 tb -1,-1 ch 5",
			"reduce 2.input[3] 1.input[3] x1 tb -1,-1 ch 5", "copy 1.input[3] 2.input[3] x1 tb -1,-1 ch 5",
		}},
		{"allgather ring of three ranks honors ch", `
with MSCCLProgram("p", fully_connected(3), AllGather(3, 1, True)):
    allgather_ring_inplace(3, ch = 1)
`, []string{
			"copy 0.output[0] 1.output[0] x1 tb -1,-1 ch 1", "copy 1.output[0] 2.output[0] x1 tb -1,-1 ch 1",
			"copy 1.output[1] 2.output[1] x1 tb -1,-1 ch 1", "copy 2.output[1] 0.output[1] x1 tb -1,-1 ch 1",
			"copy 2.output[2] 0.output[2] x1 tb -1,-1 ch 1", "copy 0.output[2] 1.output[2] x1 tb -1,-1 ch 1",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, got := traced(t, tc.src); !slices.Equal(got, tc.want) {
				t.Errorf("got\n%q\nwant\n%q", got, tc.want)
			}
		})
	}
}

// Every argument of MSCCLProgram reaches the program's header.
func TestProgramArguments(t *testing.T) {
	d, _ := traced(t, `
with MSCCLProgram("all", ring(3), Gather(3, 2, True, root = 1), 4, "LL128", ThreadblockPolicy.manual, False, False, False, True):
    pass
`)
	if d.Name != "all" || d.Topo.Name != "ring" || d.Instances != 4 || d.Protocol != ir.LL128 || d.Policy != ir.Manual ||
		d.Interleaved || d.Fusion || d.CheckXML || !d.DependenceNop {
		t.Errorf("spec %+v", d.Spec)
	}
	c := d.Coll
	if c.Kind != ir.Gather || c.Ranks != 3 || c.ChunkFactor != 2 || !c.InPlace || c.Root != 1 || c.Split != 1 {
		t.Errorf("collective %+v", c)
	}
}

// Explicit arguments win over parameters of the same name.
func TestExplicitInstancesAndProtocol(t *testing.T) {
	d, _ := traced(t, `
param("instances", 2)
param("protocol", "LL")
with MSCCLProgram("p", ring(3), AllReduce(3, 1, True), 4, protocol = "Simple"):
    pass
`)
	if d.Instances != 4 || d.Protocol != ir.Simple {
		t.Errorf("instances %d, protocol %v", d.Instances, d.Protocol)
	}
}

func TestCustomCollective(t *testing.T) {
	d, _ := traced(t, `
def expect(rank, index):
    if rank == 0:
        return None
    return [(2, 0), (0, 1), (0, index)] if rank == 1 else (1, 0)
c = collective("odd", 3, input = [2, 1, 1], output = lambda r: r, expect = expect, holds = lambda r, i: r != 1 or i == 0)
with MSCCLProgram("p", fully_connected(3), c):
    pass
`)
	c := d.Coll
	if c.String() != "odd" || c.InputChunks(0) != 2 || c.OutputChunks(0) != 0 || c.OutputChunks(2) != 2 {
		t.Errorf("collective %+v", c)
	}
	// A multiset, sorted; the same chunk may be wanted twice.
	got, ok := c.Expect(nil, 1, 0)
	if want := []ir.Contribution{{Rank: 0, Index: 0}, {Rank: 0, Index: 1}, {Rank: 2, Index: 0}}; !ok || !slices.Equal(got, want) {
		t.Errorf("expect(1, 0) = %v, %v", got, ok)
	}
	if got, ok := c.Expect(nil, 2, 1); !ok || !slices.Equal(got, []ir.Contribution{{Rank: 1, Index: 0}}) {
		t.Errorf("expect(2, 1) = %v, %v", got, ok)
	}
	if !c.Holds(1, 0) || c.Holds(1, 1) {
		t.Error("holds is not what the script says")
	}
}

// The same script gives the same program.
func TestDeterministic(t *testing.T) {
	first, ops := traced(t, ring)
	for range 5 {
		again, same := traced(t, ring)
		if !slices.Equal(ops, same) || !slices.Equal(first.Positions, again.Positions) {
			t.Fatal("two runs of one script differ")
		}
	}
}

// Two scripts at once don't see each other.
func TestConcurrentLoads(t *testing.T) {
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s, err := load(t, ring, args("ranks", fmt.Sprint(i+1)))
			if err != nil || len(s.Programs) != 1 || s.Programs[0].DAG.Ranks() != int32(i+1) {
				t.Errorf("script %+v, error %v", s, err)
			}
		})
	}
}

// A script may be read by many: its signatures are all complete.
func TestSignaturesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range starlib.Signatures() {
		key := s.Receiver + "." + s.Name
		if seen[key] {
			t.Errorf("%s is described twice", key)
		}
		seen[key] = true
		if s.Doc == "" {
			t.Errorf("%s has no description", key)
		}
		optional := false
		for _, p := range s.Params {
			if p.Help == "" {
				t.Errorf("%s: %s has no help", key, p.Name)
			}
			if p.Default == "" && optional {
				t.Errorf("%s: %s has no default behind one that has", key, p.Name)
			}
			optional = p.Default != ""
		}
	}
}

// reduce_op names an operator, or takes that of the run by None; nothing else, and no
// other argument takes None for it.
func TestReductionsOfOneSidedPrograms(t *testing.T) {
	const src = `
with CollectiveProgram("p", AllReduce(2, 1, True), 2, protocol = "LL"):
    mine, peer = Rank(0).get_input_buffer(), Rank(1).get_input_buffer()
    there, back = MemoryChannel(1, 0), MemoryChannel(0, 1)
    switch = SwitchChannel([0, 1], BufferType.input).at_rank(0)
    Rank(0).reduce(mine[0:1], [mine[1:2]]OP)
    there.reduce(mine[0:1], [peer[0:1]]OP)
    switch.reduce(0, 1, mine[0:1]OP)
    switch.broadcast(mine[0:1], 0, 1)
`
	for _, c := range []struct {
		op   string
		want ir.Reduction
		err  string
	}{
		{"", ir.ReduceSum, ""},
		{", reduce_op = ReduceOperationType.max", ir.ReduceMax, ""},
		{", reduce_op = None", ir.ReduceByRun, ""},
		{", reduce_op = 3", 0, "reduce_op: got int, want string or None"},
		{`, reduce_op = "avg"`, 0, `reduce_op: got "avg", want one of ReduceOperationType`},
	} {
		res, err := load(t, strings.ReplaceAll(src, "OP)", c.op+")"))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: got %v, want %q", c.op, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.op, err)
			continue
		}
		n := 0
		for i := range res.Programs[0].One.Ops {
			if op := &res.Programs[0].One.Ops[i]; op.Kind.Reduces() {
				if n++; op.Reduce != c.want {
					t.Errorf("%q: operation %d reduces by %v, want %v", c.op, i, op.Reduce, c.want)
				}
			}
		}
		if n != 3 {
			t.Errorf("%q: got %d reductions, want 3", c.op, n)
		}
	}
}
