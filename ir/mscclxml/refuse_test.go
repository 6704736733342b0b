package mscclxml_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

const allreduce2 = "allreduce ranks 2 factor 4 split 1 in-place"

// gpu0 is a body whose rank 0 has the given thread blocks and rank 1 none.
func gpu0(scratch int, tbs string) string {
	return fmt.Sprintf("gpu 0 input=4 output=4 scratch=%d\n%sgpu 1 input=4 output=4 scratch=0\n", scratch, tbs)
}

// refused writes p and wants an error that begins with want, and no byte; an
// empty want means that p is written.
func refused(t *testing.T, name string, p *ir.Program, target ir.Target, want string) {
	t.Helper()
	var b bytes.Buffer
	err := mscclxml.Write(&b, p, target)
	if want == "" {
		if err != nil {
			t.Errorf("%s for %s: %v", name, target, err)
		}
		return
	}
	var m *diag.Message
	if !errors.As(err, &m) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s for %s: got %v\nwant %s", name, target, err, want)
	} else if m.Suggestion == "" {
		t.Errorf("%s for %s: %v: no suggestion", name, target, err)
	}
	if b.Len() > 0 {
		t.Errorf("%s for %s: refused after %d bytes", name, target, b.Len())
	}
}

func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// Each limit at its last allowed value and one over it.
func TestLimits(t *testing.T) {
	tb := "tb %d send=-1 recv=-1 ch=0\n"
	copies := func(n int) string {
		return gpu0(1, "tb 0 send=-1 recv=-1 ch=0\n"+lines(n, "%d cpy i[0] -> s[0] x1\n"))
	}
	for _, c := range []struct {
		name    string
		fits    string // body at the limit
		over    string // body one over it
		targets []ir.Target
		want    string
	}{
		{"steps", copies(256), copies(257), []ir.Target{ir.TargetMSCCL},
			"rank 0 thread block 0: target msccl allows 256 steps in one thread block, nops included, got 257"},
		{"steps", copies(64), copies(65), []ir.Target{ir.TargetExecutor},
			"rank 0 thread block 0: target executor allows 64 steps in one thread block, nops included, got 65"},
		{"steps", copies(64), copies(65), []ir.Target{ir.TargetRCCL},
			"rank 0 thread block 0: target rccl allows 64 steps in one thread block, nops included, got 65"},
		{"thread blocks", gpu0(0, lines(216, tb)), gpu0(0, lines(217, tb)), []ir.Target{ir.TargetMSCCL},
			"rank 0: target msccl allows 216 thread blocks, got 217"},
		{"thread blocks", gpu0(0, lines(1024, tb)), gpu0(0, lines(1025, tb)), []ir.Target{ir.TargetExecutor},
			"rank 0: target executor allows 1024 thread blocks, got 1025"},
		{"thread blocks", gpu0(0, lines(64, tb)), gpu0(0, lines(65, tb)), []ir.Target{ir.TargetRCCL},
			"rank 0: target rccl allows 64 thread blocks, got 65"},
		{"channels", gpu0(0, "tb 0 send=1 recv=1 ch=31\n"), gpu0(0, "tb 0 send=1 recv=1 ch=32\n"), []ir.Target{ir.TargetMSCCL},
			"rank 0 thread block 0: target msccl allows 32 channels, got 33"},
		{"channels", gpu0(0, "tb 0 send=1 recv=1 ch=127\n"), gpu0(0, "tb 0 send=1 recv=1 ch=128\n"), []ir.Target{ir.TargetRCCL},
			"rank 0 thread block 0: target rccl allows 128 channels, got 129"},
		{"count", gpu0(71, "tb 0 send=1 recv=-1 ch=0\n0 s s[0] x71 to 1\n"), gpu0(72, "tb 0 send=1 recv=-1 ch=0\n0 s s[0] x72 to 1\n"),
			[]ir.Target{ir.TargetMSCCL}, "rank 0 thread block 0 step 0: target msccl allows 71 chunks in one step, got 72"},
		{"peers of a channel", gpu0(0, lines(32, "tb %d send=1 recv=-1 ch=0\n")), gpu0(0, lines(33, "tb %d send=1 recv=-1 ch=0\n")),
			[]ir.Target{ir.TargetMSCCL, ir.TargetExecutor}, "rank 0 thread block 32: target "},
		{"offsets", gpu0(32768, "tb 0 send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[32767] x1\n"), gpu0(32769, "tb 0 send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[32768] x1\n"),
			[]ir.Target{ir.TargetMSCCL, ir.TargetExecutor, ir.TargetRCCL}, "rank 0 thread block 0 step 0: target "},
		{"the thread block waited for", gpu0(1, lines(128, "tb %d send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[0] x1 post\n")+"tb 128 send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[0] x1 wait 127:0\n"),
			gpu0(1, lines(129, "tb %d send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[0] x1 post\n")+"tb 129 send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[0] x1 wait 128:0\n"),
			[]ir.Target{ir.TargetMSCCL}, "rank 0 thread block 129 step 0: target msccl allows 127 as the thread block that a step waits for, got 128"},
		// 1 algo, 2 gpus and 64 thread blocks of 63 steps are 4,099 nodes; a table
		// of 4,096 holds 4,095, since its reader wants to see one more tag.
		{"XML nodes", gpu0(1, nodes(4095)), gpu0(1, nodes(4096)), []ir.Target{ir.TargetMSCCL},
			"rank 0: target msccl allows 4095 XML nodes, got 4096 (the algo, every gpu, and this rank's thread blocks and steps)"},
	} {
		for _, target := range c.targets {
			refused(t, c.name, program(t, allreduce2, c.fits), target, "")
			refused(t, c.name, program(t, allreduce2, c.over), target, c.want)
		}
		refused(t, c.name, program(t, allreduce2, c.over), ir.TargetPlain, "")
	}
}

// nodes is thread blocks whose XML, with algo and two gpus, has n nodes.
func nodes(n int) string {
	var b strings.Builder
	n -= 3
	for tb := 0; n > 0; tb++ {
		steps := min(n-1, 200)
		fmt.Fprintf(&b, "tb %d send=-1 recv=-1 ch=0\n%s", tb, lines(steps, "%d cpy i[0] -> s[0] x1\n"))
		n -= 1 + steps
	}
	return b.String()
}

func TestRanksLimit(t *testing.T) {
	for _, c := range []struct {
		n    int
		want string
	}{{1024, ""}, {1025, `program "p": target msccl allows 1024 ranks, got 1025 (children of one XML node)`}} {
		p := program(t, fmt.Sprintf("allreduce ranks %d factor 1 split 1", c.n), lines(c.n, "gpu %d input=1 output=1 scratch=0\n"))
		refused(t, "ranks", p, ir.TargetMSCCL, c.want)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name   string
		target ir.Target
		want   string
	}{
		{"ring 8×2", ir.TargetMSCCL, ""},
		{strings.Repeat("n", 63), ir.TargetMSCCL, ""},
		{strings.Repeat("n", 64), ir.TargetMSCCL, "program name"},
		{strings.Repeat("n", 255), ir.TargetExecutor, ""},
		{strings.Repeat("n", 256), ir.TargetRCCL, "program name"},
		{strings.Repeat("n", 1000), ir.TargetPlain, ""},
		{"", ir.TargetMSCCL, ""},
		{`a"b`, ir.TargetPlain, `program name "a\"b": the runtimes' XML readers know no escapes, so it can't hold '"'`},
		{"a<b", ir.TargetPlain, "program name"}, {"a>b", ir.TargetPlain, "program name"}, {"a&b", ir.TargetPlain, "program name"},
		{"a\nb", ir.TargetPlain, "program name"}, {"a\tb", ir.TargetPlain, "program name"}, {"a\x00b", ir.TargetPlain, "program name"},
		{"a\xffb", ir.TargetPlain, `program name "a\xffb": it is not UTF-8`},
	} {
		p := program(t, allreduce2, gpu0(0, ""))
		p.Name = c.name
		refused(t, "name", p, c.target, c.want)
	}
	p := program(t, "alltoall ranks 1 factor 1 split 1", "gpu 0 input=1 output=1 scratch=0\n")
	p.Name = "2D"
	refused(t, "name", p, ir.TargetMSCCL, `program name "2D": msccl runs an alltoall of this name by a path of its own`)
	refused(t, "name", p, ir.TargetExecutor, "")
}

// The runtimes' rules for nops, and what no compiler should make.
func TestRefusals(t *testing.T) {
	const at = "rank 0 thread block 0 step 0: "
	post := "tb 1 send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[0] x1 post\n1 cpy i[0] -> s[1] x1\n2 nop wait 0:0\n"
	for _, c := range []struct {
		name   string
		tbs    string
		target ir.Target
		want   string
	}{
		{"a run of nops before a waiting step", "tb 0 send=-1 recv=-1 ch=0\n0 nop wait 1:0\n1 nop wait 1:0\n2 cpy i[0] -> s[0] x1 wait 1:0\ntb 1 send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[0] x1 post\n", ir.TargetMSCCL, ""},
		{"a nop before a step that waits for nothing", "tb 0 send=-1 recv=-1 ch=0\n0 nop wait 1:0\n1 cpy i[0] -> s[0] x1\n" + post, ir.TargetMSCCL, at + "the step after a nop must wait for something itself"},
		{"a nop that waits for nothing", "tb 0 send=-1 recv=-1 ch=0\n0 nop\n1 cpy i[0] -> s[0] x1\n", ir.TargetExecutor, at + "a nop that waits for nothing is not counted by the runtimes"},
		{"a nop that waits for nothing", "tb 0 send=-1 recv=-1 ch=0\n0 nop\n1 cpy i[0] -> s[0] x1\n", ir.TargetPlain, ""},
		{"a nop at the end", "tb 0 send=-1 recv=-1 ch=0\n0 nop wait 1:0\n" + post, ir.TargetRCCL, at + "a nop at the end is dropped by the runtimes"},
		{"a nop that posts", "tb 0 send=-1 recv=-1 ch=0\n0 nop wait 1:0 post\n" + post, ir.TargetPlain, at + "a nop posts nothing"},
		{"two dependencies", "tb 0 send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[0] x1 wait 1:0 1:0\n" + post, ir.TargetPlain, at + "it waits for 2 steps, an XML step can name one"},
		{"waiting for a step that posts nothing", "tb 0 send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[0] x1 wait 1:1\n" + post, ir.TargetPlain, at + "it waits for step 1 of thread block 1, a cpy that posts nothing"},
		{"waiting for a nop", "tb 0 send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[0] x1 wait 1:2\n" + post, ir.TargetPlain, at + "it waits for step 2 of thread block 1, a nop that posts nothing"},
		{"waiting for itself", "tb 0 send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[0] x1 wait 0:0 post\n", ir.TargetPlain, at + "it waits for step 0 of thread block 0, which is not one of another"},
		{"waiting for a step that is not there", "tb 0 send=-1 recv=-1 ch=0\n0 cpy i[0] -> s[0] x1 wait 1:3\n" + post, ir.TargetPlain, at + "it waits for step 3 of thread block 1, which is not one of another"},
		{"fused steps", "tb 0 send=1 recv=1 ch=0\n0 rrcs i[0] -> i[0] x1 from 1 to 1\n", ir.TargetRCCL, at + "target rccl: its runtime runs no rrcs steps"},
		{"fused steps", "tb 0 send=1 recv=1 ch=0\n0 rcs -> i[0] x1 from 1 to 1\n", ir.TargetRCCL, at + "target rccl: its runtime runs no rcs steps"},
		{"plain receive", "tb 0 send=1 recv=1 ch=0\n0 r -> i[0] x1 from 1\n1 re i[1] -> i[0] x1\n", ir.TargetRCCL, ""},
		{"another peer", "tb 0 send=-1 recv=1 ch=0\n0 s i[0] x1 to 1\n", ir.TargetPlain, at + "it sends to rank 1, its thread block to -1"},
		{"another peer", "tb 0 send=1 recv=-1 ch=0\n0 r -> i[0] x1 from 1\n", ir.TargetPlain, at + "it receives from rank 1, its thread block from -1"},
		{"another channel", "tb 0 send=1 recv=1 ch=0\n0 s i[0] x1 to 1 ch 1\n", ir.TargetPlain, at + "it uses channel 1, its thread block 0"},
		{"local work on no channel", "tb 0 send=-1 recv=-1 ch=-1\n0 cpy i[0] -> s[0] x1\n", ir.TargetMSCCL, ""},
		{"itself as peer", "tb 0 send=0 recv=1 ch=0\n", ir.TargetPlain, "rank 0 thread block 0: rank 0 is no peer"},
		{"a peer past the end", "tb 0 send=1 recv=2 ch=0\n", ir.TargetPlain, "rank 0 thread block 0: rank 2 is no peer"},
		{"a negative channel", "tb 0 send=1 recv=1 ch=-1\n", ir.TargetPlain, "rank 0 thread block 0: channel -1"},
		{"a range past the end", "tb 0 send=-1 recv=-1 ch=0\n0 cpy i[3] -> s[0] x2\n", ir.TargetPlain, at + "its source i[3] x2 is outside 4 chunks"},
		{"a range past the end of scratch", "tb 0 send=-1 recv=-1 ch=0\n0 cpy i[3] -> s[2] x1\n", ir.TargetPlain, at + "its destination s[2] x1 is outside 2 chunks"},
		{"no source", "tb 0 send=1 recv=-1 ch=0\n0 s x1 to 1\n", ir.TargetPlain, at + "it has no source"},
		{"no count", "tb 0 send=1 recv=-1 ch=0\n0 s i[0] to 1\n", ir.TargetPlain, at + "it moves 0 chunks"},
		{"the position of the step", "tb 0 send=1 recv=-1 ch=0\n0 s i[0] to 1 ; ring.star:7:5\n", ir.TargetPlain, "ring.star:7:5: " + at + "it moves 0 chunks"},
	} {
		refused(t, c.name, program(t, allreduce2, gpu0(2, c.tbs)), c.target, c.want)
	}
	small := program(t, allreduce2, strings.Replace(gpu0(0, ""), "input=4", "input=2", 1))
	refused(t, "lengths of another collective", small, ir.TargetMSCCL, "rank 0: it declares 2 input and 4 output chunks, allreduce has 4 and 4")
}

// The runtimes merge consecutive reduces into one destination, and take the
// last one's count for all. Posting keeps steps apart that would then mean
// something else. The marks are the hasdep of each step.
func TestReducesThatMustNotMerge(t *testing.T) {
	for _, c := range []struct {
		name, steps, want string
	}{
		{"same counts merge", "0 re s[0] -> i[0] x1\n1 re s[1] -> i[0] x1\n2 re s[2] -> i[0] x1\n", "000"},
		{"other counts", "0 re s[0] -> i[0] x1\n1 re s[1] -> i[0] x2\n2 re s[3] -> i[0] x2\n", "100"},
		{"other destination", "0 re s[0] -> i[0] x1\n1 re s[1] -> i[1] x2\n", "00"},
		{"other source buffer", "0 re s[0] -> i[0] x1\n1 re i[1] -> i[0] x2\n", "00"},
		{"other kind between", "0 re s[0] -> i[0] x1\n1 cpy i[0] -> s[9] x1\n2 re s[1] -> i[0] x2\n", "000"},
		{"waiting is enough", "0 re s[0] -> i[0] x1\n1 re s[1] -> i[0] x2 wait 1:0\n", "00"},
		{"posting is enough", "0 re s[0] -> i[0] x1 post\n1 re s[1] -> i[0] x2\n", "10"},
		{"source and destination are the same", "0 re s[5] -> s[0] x1\n1 re s[0] -> s[0] x1\n2 re s[1] -> s[0] x1\n", "110"},
		{"source and destination overlap", "0 re s[5] -> s[0] x2\n1 re s[1] -> s[0] x2\n", "10"},
		{"in place, one memory by two names", "0 re o[1] -> i[0] x1\n1 re o[0] -> i[0] x1\n", "10"},
		{"more than the tables hold", lines(32, "%d re s[1] -> i[0] x1\n"), strings.Repeat("0", 14) + "1" + strings.Repeat("0", 14) + "1" + "00"},
	} {
		body := gpu0(10, "tb 0 send=-1 recv=-1 ch=0\n"+c.steps+"tb 1 send=-1 recv=-1 ch=0\n0 cpy i[3] -> s[9] x1 post\n")
		p := program(t, allreduce2, body)
		if got := posts(write(t, p, ir.TargetMSCCL)); got != c.want+"1" {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want+"1")
		}
		if got, want := strings.Count(posts(write(t, p, ir.TargetPlain)), "1"), strings.Count(c.steps, "post")+1; got != want {
			t.Errorf("%s: plain posts %d times, want %d: as the program says", c.name, got, want)
		}
	}
}

func posts(text string) string {
	marks := ""
	for line := range strings.Lines(text) {
		if _, mark, ok := strings.Cut(line, `hasdep="`); ok {
			marks += mark[:1]
		}
	}
	return marks
}

// Whatever form a program has, it is written whole, as XML, or refused with
// nothing written.
func FuzzWrite(f *testing.F) {
	head := "program \"p\"\ncollective " + allreduce2 + "\ntopology none\nprotocol Simple\npolicy auto instances 1\n"
	for _, body := range []string{everyStep, gpu0(2, "tb 0 send=1 recv=1 ch=0\n0 rcs -> s[1] x1 from 1 to 1 at o[9] wait 0:0 1:1 post ; a:1:2\n"), gpu0(0, "")} {
		f.Add([]byte(head + body))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ir.ParseProgram(bytes.NewReader(b), "f")
		if err != nil {
			return
		}
		for _, target := range targets() {
			var out bytes.Buffer
			if err := mscclxml.Write(&out, p, target); err != nil {
				if out.Len() > 0 {
					t.Fatalf("%s: %v after %d bytes", target, err, out.Len())
				}
				continue
			}
			d := xml.NewDecoder(&out)
			for err == nil {
				_, err = d.Token()
			}
			if !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %v", target, err)
			}
			err = nil
		}
	})
}
