package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedBlock is an argument that names a thread block, with one comma.
var namedBlock = regexp.MustCompile(`, tb = \d+|tb = \d+, |tb = \d+`)

// The scripts of the guide to one-sided programs are right, in any number of
// launches, alone and as plans, and so they are if all thread blocks are left to
// the compiler.
func TestOneSidedGuide(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "onesided.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```python\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 3 {
		t.Fatalf("got %d scripts, want 3", len(blocks))
	}
	t.Chdir(t.TempDir())
	for _, m := range blocks {
		guided(t, m[1], "guide.star", "--size", "256KiB")
		guided(t, m[1], "--run", "--emit", "plan", "-o", "guide.json", "guide.star", "--size", "64KiB")
		guided(t, namedBlock.ReplaceAllString(m[1], ""), "guide.star", "--size", "64KiB")
	}
}

// guided carries out a call about guide.star, which has to go well.
func guided(t *testing.T, script string, args ...string) {
	t.Helper()
	if err := os.WriteFile("guide.star", []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	s := NewSession(&out, &said)
	if err := s.Exec(context.Background(), args); err != nil {
		t.Fatalf("%v\n%s%s%s", err, script, out.String(), said.String())
	}
	c := s.report.Check
	if c == nil || !c.Holds || !c.OneSided || c.Races > 0 || c.RacesAcross > 0 || s.report.Run == nil || s.report.Run.Wrong > 0 {
		t.Errorf("%v\n%s%s", args, script, out.String())
	}
}

// A one-sided program can be written line by line, looked at, stepped through and
// judged, open or closed.
func TestShellOneSided(t *testing.T) {
	x := newTalk(t)
	x.ok(`open CollectiveProgram("swap", AllGather(2, 1, True), 2)`)
	if got := x.s.Prompt(); got != "swap: 2 ranks, 0 ops> " {
		t.Errorf("the prompt is %q", got)
	}
	x.ok("ends = [MemoryChannel(1 - r, r) for r in range(2)]", "ends[0].signal(relaxed = True)")
	if got := x.bad("ends[0].put(Rank(0).get_input_buffer()[:], Rank(0).get_input_buffer()[:])"); !strings.Contains(got, "put: dst_chunk: got rank 0 input[0:1], want a chunk of rank 1, the channel's peer") {
		t.Errorf("got %q", got)
	}
	if got := x.s.Prompt(); got != "swap: 2 ranks, 1 op> " {
		t.Errorf("after an error the prompt is %q", got)
	}
	x.bad("close") // a signal without its wait
	x.ok("undo", "def send(r):\n    ends[r].signal(tb = 0, relaxed = True)\n    ends[r].wait(tb = 0, relaxed = True)\n"+
		"    ends[r].put(Rank(1 - r).get_output_buffer()[r:r + 1], Rank(r).get_input_buffer()[:], tb = 0)\n    ends[r].signal(tb = 0)\n    ends[r].wait(tb = 0)\n")
	x.ok("send(0)", "send(1)")
	x.want("program", "* swap: allgather on 2 ranks, 10 operations, from session:1:1, open\n")
	for _, text := range []string{"check", "schedule", "buffers 0", "instructions all", "instructions emit", "close", "run 4KiB", "step 2", "plan"} {
		x.ok(text)
	}
	if got := x.bad("dag"); !strings.Contains(got, `dag: program "swap" is one-sided: it has no operations on chunks`) {
		t.Errorf("got %q", got)
	}
	if got := x.bad("instructions"); !strings.Contains(got, "the program has none to draw") {
		t.Errorf("got %q", got)
	}
}
