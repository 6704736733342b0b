package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// Solutions written in other ways are right, and what only looks like one is not.
func TestOtherSolutions(t *testing.T) {
	rails := `
nodes, gpus = 2, 4
total = nodes * gpus
def linked(a, b):
    return a != b and (a // gpus == b // gpus or a % gpus == b % gpus)
rails = Topology("rails", [[1 if linked(src, dst) else 0 for src in range(total)] for dst in range(total)])
`
	for name, c := range map[string]struct{ lesson, script, want string }{
		"one hop of two": {"5", `
with MSCCLProgram("bridge", line(4), Broadcast(4, 1, inplace = True)):
    c = chunk(0, "input", 0).copy(1, "output", 0)
    with parallelize(4):
        c = c.copy(2, "output", 0)
    c.copy(3, "output", 0)
`, "it has 1 channel from rank 2 to rank 3, at least 4 are wanted"},
		"channels by hand": {"5", `
with MSCCLProgram("far", line(4), Broadcast(4, 4, inplace = True)):
    chunk(0, "input", 0, 4).copy(1, "output", 0)
    for i in range(4):
        chunk(1, "output", i).copy(2, "output", i, ch = i).copy(3, "output", i, ch = i)
`, "solved"},
		"eight pieces": {"5", `
with MSCCLProgram("far", line(4), Broadcast(4, 2, inplace = True)):
    c = chunk(0, "input", 0, 2).copy(1, "output", 0)
    with parallelize(4):
        c.copy(2, "output", 0).copy(3, "output", 0)
`, "solved"},
		"every rail for every chunk": {"7", rails + `
with MSCCLProgram("gather", rails, AllGather(total, 1, inplace = True)):
    for rank in range(total):
        here = chunk(rank, "input", 0)
        here.copy((rank + gpus) % total, "output", rank)
        for k in range(1, gpus):
            there = here.copy(rank // gpus * gpus + (rank + k) % gpus, "output", rank)
            there.copy((there.rank + gpus) % total, "output", rank)
`, "it has 4 chunks over the busiest link, at most 2 are allowed"},
		"in two instances": {"7", rails + `
with MSCCLProgram("gather", rails, AllGather(total, 1, inplace = True), instances = 2):
    for rank in range(total):
        here = chunk(rank, "input", 0)
        across = here.copy((rank + gpus) % total, "output", rank)
        for start in [across, here]:
            for k in range(1, gpus):
                start.copy(start.rank // gpus * gpus + (start.rank + k) % gpus, "output", rank)
`, "solved"},
		"two channels": {"8", `
with MSCCLProgram("ring", ring(4), AllReduce(4, 4, inplace = True)):
    for i in range(4):
        c = chunk((i + 1) % 4, "input", i)
        for hop in range(2, 5):
            c = chunk((i + hop) % 4, "input", i).reduce(c, ch = i % 2)
        for hop in range(1, 4):
            c = c.copy((i + hop) % 4, "output", i, ch = i % 2)
`, "solved"},
		"one message, two instances": {"11", `
with MSCCLProgram("quick", fully_connected(4), AllReduce(4, 1, inplace = True), instances = 2):
    for r in range(4):
        for s in range(4):
            if s != r:
                chunk(s, "input", 0).copy(r, "from%d" % s, 0)
    for r in range(4):
        for s in range(4):
            if s != r:
                chunk(r, "input", 0).reduce(chunk(r, "from%d" % s, 0))
`, "solved"},
	} {
		file := filepath.Join(t.TempDir(), "mine.star")
		if err := os.WriteFile(file, []byte(c.script), 0o644); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		sh := NewShell(&out, &out)
		if err := sh.Exec(context.Background(), "tutorial "+c.lesson); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		_ = sh.Exec(context.Background(), "judge "+file) // what it says is compared
		if !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), ": solved") != (c.want == "solved") {
			t.Errorf("%s: got\n%s\nwant %q", name, out.String(), c.want)
		}
	}
}

// A ring that does one thing after another needs one slot too, but it isn't what the
// lesson about slots asks for.
func TestSlotsBySettings(t *testing.T) {
	var out bytes.Buffer
	sh := NewShell(&out, &out)
	for _, line := range []string{"tutorial 8", "settings --slots 1", `with MSCCLProgram("ring", ring(4), AllReduce(4, 4, inplace = True)):
    for i in range(4):
        c = chunk((i + 1) % 4, "input", i)
        for hop in range(2, 5):
            c = chunk((i + hop) % 4, "input", i).reduce(c)
        for hop in range(1, 4):
            c = c.copy((i + hop) % 4, "output", i)
`, ""} {
		if err := sh.Exec(context.Background(), line); err != nil {
			t.Fatal(err)
		}
	}
	out.Reset()
	_ = sh.Exec(context.Background(), "judge") // what it says is compared
	if got := out.String(); strings.Contains(got, ": solved") || !strings.Contains(got, "messages one after the other, at most 6 are allowed") {
		t.Errorf("got\n%s", got)
	}
}

// The load of a link is counted in chunks of the exercise, however they are cut.
func TestPieces(t *testing.T) {
	one, six := ir.NewCollective(ir.AllReduce, 2, 1, false), ir.NewCollective(ir.AllReduce, 2, 6, false)
	four := ir.NewCollective(ir.AllReduce, 2, 4, false)
	for _, c := range []struct {
		fine, coarse *ir.Collective
		want         int32
	}{{six, one, 6}, {one, six, 0}, {six, four, 0}, {four, four, 1}} {
		if got := piecesOf(c.fine, c.coarse); got != c.want {
			t.Errorf("%s in %s: got %d pieces, want %d", c.fine, c.coarse, got, c.want)
		}
	}
}
