package pyfront_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// shift is a script's own collective: rank r's input ends in the output of the
// rank after it, if there is one.
const shift = imports + `
class Shift(Collective):
    def __init__(self, num_ranks, chunk_factor, inplace, by=1):
        Collective.__init__(self, num_ranks, chunk_factor, inplace)
        self.by = by

    def init_buffers(self):
        buffers = []
        for r in range(self.num_ranks):
            inputs = [None] * self.chunk_factor
            if r + self.by < self.num_ranks:
                inputs = [Chunk(r, c, r + self.by, c) for c in range(self.chunk_factor)]
            buffers.append({Buffer.input: inputs, Buffer.output: [None] * self.chunk_factor})
        return buffers

    def check(self, prog):
        correct = True
        for r in range(self.by, self.num_ranks):
            for c in range(self.chunk_factor):
                chunk = prog.buffers[r][Buffer.output][c]
                if chunk is None or chunk != Chunk(r - self.by, c):
                    print(f'rank {r} chunk {c} holds {chunk}')
                    correct = False
        return correct

def program(ranks, chunks, inplace, order):
    with MSCCLProgram('shift', fully_connected(ranks), Shift(ranks, chunks, inplace), 1):
        for r in order:
            c = chunk(r, Buffer.input, 0, chunks)
            c.copy(r + 1, Buffer.output, c.get_dst_index())
        Check()
`

// expected writes what every output chunk must hold.
func expected(c *ir.Collective) string {
	var ranks []string
	for r := range ir.Rank(c.Ranks) {
		var list []string
		for i := range c.OutputChunks(r) {
			want, ok := c.Expect(nil, r, i)
			text := "-"
			if ok {
				text = ""
				for _, w := range want {
					text += fmt.Sprintf("(%d,%d)", w.Rank, w.Index)
				}
			}
			list = append(list, text)
		}
		ranks = append(ranks, strings.Join(list, " "))
	}
	return strings.Join(ranks, " | ")
}

func TestOwnCollective(t *testing.T) {
	got := load(t, shift+"program(3, 2, False, [0, 1])")
	if got.err != "" || got.out != "" {
		t.Fatalf("got %q, error %s", got.out, got.err)
	}
	p := got.script.Programs[0]
	c := p.DAG.Coll
	if c.Kind != ir.Custom || c.String() != "Shift" || c.InPlace || !p.WantCheck {
		t.Errorf("got kind %s called %s, in place %v, check wanted %v", c.Kind, c, c.InPlace, p.WantCheck)
	}
	if c.Holds(0, 1) != true || c.Holds(2, 0) != false {
		t.Errorf("rank 0 has input %v, rank 2 has %v, want true and false", c.Holds(0, 1), c.Holds(2, 0))
	}
	if text, want := expected(c), "- - | (0,0) (0,1) | (1,0) (1,1)"; text != want {
		t.Errorf("expected outputs: got %s, want %s", text, want)
	}
}

// In place, input and output are one memory: forwarding in the wrong order hands
// on what was just received, and the script's own check finds it.
func TestInPlaceIsOneMemory(t *testing.T) {
	got := load(t, shift+"program(3, 1, True, [1, 0])")
	if got.err != "" {
		t.Fatal(got.err)
	}
	if text, want := expected(got.script.Programs[0].DAG.Coll), "- | (0,0) | (1,0)"; text != want {
		t.Errorf("expected outputs: got %s, want %s", text, want)
	}

	got = load(t, shift+"program(3, 1, True, [0, 1])")
	if want := "rank 2 chunk 0 holds Chunk(origin_rank=0, origin_index=0, dst_rank=1, dst_index=0)\n"; got.out != want {
		t.Errorf("printed %q, want %q", got.out, want)
	}
	want := `script.py:34:9: program "shift" does not compute its collective: Shift.check returned False
    script.py:30:10: the program is made here
    the collective is declared in place: input and output are one memory, so that a write to output[i] changes input[i]`
	if got.err != want {
		t.Errorf("got %s\nwant %s", got.err, want)
	}
}

// ownGather lays the input into the output, as msccl-tools' own in-place
// allgather does.
const ownGather = imports + `
class Gather(Collective):
    def __init__(self, n):
        super().__init__(n, 1, True)
        self.name = 'own-gather'

    def init_buffers(self):
        ranks = []
        for r in range(self.num_ranks):
            out = [None] * self.num_ranks
            out[r] = Chunk(r, 0, -1, r)
            ranks.append({Buffer.input: [out[r]], Buffer.output: out})
        return ranks

    def check(self, prog):
        for r in range(self.num_ranks):
            for q, c in enumerate(prog.buffers[r][Buffer.output]):
                if c is None or c.origin_rank != q or c.origin_index != 0:
                    return False
        return len(prog.buffers[0][Buffer.input]) == 1 and prog.collective.name == 'own-gather'

    def get_buffer_index(self, rank, buffer, index):
        if buffer == Buffer.input:
            return Buffer.output, rank + index
        return buffer, index

with MSCCLProgram('g', fully_connected(3), Gather(3), 1):
    for r in range(3):
        c = chunk(r, Buffer.input, 0)
        assert c.get_origin_rank() == r and c.get_origin_index() == 0 and c.get_dst_rank() == -1 and c.get_dst_index() == r
        for q in range(3):
            if q != r:
                c.copy(q, Buffer.output, r)
`

func TestOwnLayout(t *testing.T) {
	got := load(t, ownGather)
	if got.err != "" {
		t.Fatal(got.err)
	}
	d := got.script.Programs[0].DAG
	// The compiled program's inputs are places in memory: chunk r of rank r.
	if text, want := expected(d.Coll), "- (1,1) (2,2) | (0,0) - (2,2) | (0,0) (1,1) -"; text != want {
		t.Errorf("expected outputs: got %s, want %s", text, want)
	}
	if d.Coll.String() != "own-gather" || !d.Coll.Holds(1, 1) || d.Coll.Holds(1, 0) {
		t.Errorf("%s: rank 1 holds 0: %v, 1: %v; want false and true", d.Coll, d.Coll.Holds(1, 0), d.Coll.Holds(1, 1))
	}
}

const ownSum = imports + `
class Sum(Collective):
    def init_buffers(self):
        return [{Buffer.input: [Chunk(r, 0)], Buffer.output: [None]} for r in range(self.num_ranks)]

    def check(self, prog):
        want = ReduceChunk(-1, [])
        for r in range(self.num_ranks):
            want = want.reduce(-1, Chunk(r, 0))
        have = prog.buffers[0][Buffer.output][0]
        print(type(have) is ReduceChunk, have, len(have.chunks))
        return have == want

with MSCCLProgram('sum', fully_connected(2), Sum(2, 1, False), 1) as p:
    c = chunk(1, Buffer.input, 0).copy(0, Buffer.output, 0)
    c = c.reduce(chunk(0, Buffer.input, 0))
    print(p.check(), len(p.buffers), p.num_ranks, [list(b) for b in p.buffers][0])
`

// Sums are ReduceChunks, equal when they add up the same chunks.
func TestOwnCollectiveOfSums(t *testing.T) {
	got := load(t, ownSum)
	if got.err != "" {
		t.Fatal(got.err)
	}
	sum := "ReduceChunk(creation_rank=0, chunks=[Chunk(origin_rank=0, origin_index=0, dst_rank=-1, dst_index=-1), " +
		"Chunk(origin_rank=1, origin_index=0, dst_rank=-1, dst_index=-1)])"
	if want := "True " + sum + " 2\nTrue 2 2 [Buffer.input, Buffer.output]\n"; got.out != want {
		t.Errorf("got %s\nwant %s", got.out, want)
	}
	if text, want := expected(got.script.Programs[0].DAG.Coll), "(0,0)(1,0) | -"; text != want {
		t.Errorf("expected outputs: got %s, want %s", text, want)
	}
}

// A wrong program is refused although the script never calls Check().
func TestOwnCheckAlwaysCounts(t *testing.T) {
	got := load(t, strings.Replace(shift, "        Check()\n", "", 1)+"program(3, 1, False, [0])")
	want := "script.py:30:5: program \"shift\" does not compute its collective: Shift.check returned False\n    script.py:30:10: the program is made here"
	if got.err != want || got.out != "rank 2 chunk 0 holds None\n" || len(got.script.Programs) > 0 {
		t.Errorf("got %q and %s\nwant %s", got.out, got.err, want)
	}
}

func TestMisuseOfCollectives(t *testing.T) {
	class := func(body, inplace string) string {
		return imports + "class C(Collective):\n    " + body + "\nwith MSCCLProgram('p', fully_connected(1), C(1, 1, " + inplace + "), 1): pass"
	}
	const advice = "\n    it returns a list with a dict for every rank: {Buffer.input: [...], Buffer.output: [...]}"
	for _, c := range []struct{ source, want string }{
		{class("pass", "False"), "6:6: C.init_buffers: got NoneType, want a list" + advice},
		{class("def init_buffers(self): return []", "False"), "6:6: C.init_buffers: got no ranks" + advice},
		{class("def init_buffers(self): return [1]", "False"), "6:6: C.init_buffers: got int for rank 0, want a dict" + advice},
		{class("def init_buffers(self): return [{'x': []}]", "False"), "6:6: C.init_buffers: rank 0 starts with a buffer 'x', want Buffer.input and Buffer.output only" + advice},
		{class("def init_buffers(self): return [{Buffer.input: [3]}]", "False"), "6:6: C.init_buffers: rank 0 holds int at index 0, want Chunk(...) or None" + advice},
		{class("def init_buffers(self): return [{Buffer.output: [Chunk(0, 0)]}]", "False"),
			"6:6: C.init_buffers: the output of rank 0 holds a chunk at the start, at index 0, but the collective is not in place" + advice},
		{class("def init_buffers(self): return [{Buffer.input: [Chunk(0, 0)], Buffer.output: [Chunk(0, 1)]}]", "True"),
			"6:6: C.init_buffers: in place, input and output are one memory, but rank 0 has different chunks at index 0 of the two" + advice},
		{class("def init_buffers(self): return [{Buffer.input: [Chunk(0, 0)]}] * 2", "True"), "6:6: MSCCLProgram: the topology has 1 ranks, the collective 2"},
		{class("def init_buffers(self): return 1 // 0", "False"), "5:38: floored division by zero\n    script.py:6:6: MSCCLProgram called from here"},
		{class("def __init__(self, a, b, c): pass", "False"), "6:6: MSCCLProgram: the C has no inplace\n    call Collective.__init__(self, num_ranks, chunk_factor, inplace) in its __init__"},
		{imports + "class C: pass\nwith MSCCLProgram('p', fully_connected(1), C(), 1): pass",
			"5:6: MSCCLProgram: collective: class C is not derived from Collective\n    class C(Collective):"},
		{imports + "class C(AllReduce): pass", "4:7: class C: a class can't be based on <built-in function AllReduce> here\n    base it on Collective, and write out what differs"},
	} {
		if got := load(t, c.source).err; got != "script.py:"+c.want {
			t.Errorf("%s\n got %s\nwant script.py:%s", c.source, got, c.want)
		}
	}
}
