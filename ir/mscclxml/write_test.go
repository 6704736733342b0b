package mscclxml_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

var update = flag.Bool("update", false, "rewrite the golden files of this package")

// program makes a program from the text form, with a header for coll.
func program(t testing.TB, coll, body string) *ir.Program {
	t.Helper()
	text := "program \"p\"\ncollective " + coll + "\ntopology none\nprotocol Simple\npolicy auto instances 1\n" +
		"transport slots 2 bytes 2097152\nwindow min 0 max 0\n" + body
	p, err := ir.ParseProgram(strings.NewReader(text), "p")
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return p
}

func write(t testing.TB, p *ir.Program, target ir.Target) string {
	t.Helper()
	var b bytes.Buffer
	if err := mscclxml.Write(&b, p, target); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func targets() []ir.Target {
	return []ir.Target{ir.TargetMSCCL, ir.TargetExecutor, ir.TargetRCCL, ir.TargetPlain}
}

// every kind of step, on a rank of an allreduce in place of 2 ranks.
const everyStep = `gpu 0 input=4 output=4 scratch=3
tb 0 send=1 recv=1 ch=0
  0 s i[0] x1 to 1 at s[2] post
  1 r -> i[1] x2 from 1
  2 rcs -> s[0] x1 from 1 to 1 at o[3]
  3 rrs i[2] x1 from 1 to 1 at i[3]
  4 rrc i[2] -> i[2] x1 from 1
  5 nop wait 1:0
  6 rrcs i[2] -> s[1] x1 from 1 to 1 wait 2:0
tb 1 send=-1 recv=-1 ch=0
  0 cpy i[0] -> s[2] x1 wait 0:0 post
tb 2 send=-1 recv=-1 ch=3
  0 re s[2] -> i[3] x1 wait 1:0 post
gpu 1 input=4 output=4 scratch=0
`

const rooted = `gpu 0 input=0 output=1 scratch=0
tb 0 send=-1 recv=1 ch=0
  0 r -> o[0] x1 from 1 at i[0]
gpu 1 input=1 output=1 scratch=0
tb 0 send=0 recv=-1 ch=0
  0 s i[0] x1 to 0 at o[0]
tb 1 send=-1 recv=-1 ch=0
  0 cpy i[0] -> o[0] x1
`

func TestGoldens(t *testing.T) {
	fused := program(t, "allreduce ranks 2 factor 4 split 1 in-place", everyStep)
	fused.MinBytes, fused.MaxBytes = 1024, 1<<20
	plain := program(t, "allreduce ranks 2 factor 4 split 1 in-place", everyStep)
	bcast := program(t, "broadcast ranks 2 factor 1 split 1 root 1", rooted)
	for _, c := range []struct {
		name   string
		p      *ir.Program
		target ir.Target
	}{
		{"steps.msccl", fused, ir.TargetMSCCL}, {"steps.executor", fused, ir.TargetExecutor}, {"steps.plain", plain, ir.TargetPlain},
		{"broadcast.rccl", bcast, ir.TargetRCCL},
	} {
		got, path := write(t, c.p, c.target), filepath.Join("testdata", c.name+".xml")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// algo is the attributes of the first line, in order, without name and proto.
func algo(t testing.TB, text string) string {
	t.Helper()
	line, _, _ := strings.Cut(text, "\n")
	_, rest, ok := strings.Cut(line, `proto="Simple" `)
	if !ok {
		t.Fatalf("got first line %s", line)
	}
	rest = strings.TrimSuffix(strings.ReplaceAll(rest, `"`, ""), ">")
	rest, _, ok = strings.Cut(rest, " target=")
	if !ok {
		t.Fatalf("no target in %s", line)
	}
	return rest
}

// gpus is the chunk counts of every gpu line: i/o/s.
func gpus(text string) string {
	var list []string
	for line := range strings.Lines(text) {
		var id, i, o, s int
		if n, _ := fmt.Sscanf(strings.TrimSpace(line), `<gpu id="%d" i_chunks="%d" o_chunks="%d" s_chunks="%d"`, &id, &i, &o, &s); n == 4 {
			list = append(list, fmt.Sprintf("%d/%d/%d", i, o, s))
		}
	}
	return strings.Join(list, " ")
}

// How each runtime wants each collective spelled and counted. Three ranks, two
// chunks each; window 5 bytes to 3000.
func TestCollectivesPerTarget(t *testing.T) {
	for _, c := range []struct {
		coll, sizes string // sizes of the ranks, input/output
		target      ir.Target
		algo, gpus  string // algo "" where it is refused
	}{
		{"allreduce ranks 3 factor 2 split 1 in-place", "2/2 2/2 2/2", ir.TargetMSCCL,
			"nchannels=1 nchunksperloop=2 ngpus=3 coll=allreduce inplace=1 outofplace=0 minBytes=5 maxBytes=3001", "2/2/0 2/2/0 2/2/0"},
		{"allgather ranks 3 factor 2 split 1", "2/6 2/6 2/6", ir.TargetMSCCL,
			"nchannels=1 nchunksperloop=6 ngpus=3 coll=allgather inplace=0 outofplace=1 minBytes=5 maxBytes=3001", "2/6/0 2/6/0 2/6/0"},
		{"reduce_scatter ranks 3 factor 2 split 1", "6/2 6/2 6/2", ir.TargetMSCCL,
			"nchannels=1 nchunksperloop=6 ngpus=3 coll=reduce_scatter inplace=0 outofplace=1 minBytes=5 maxBytes=3001", "6/2/0 6/2/0 6/2/0"},
		{"reduce_scatter ranks 3 factor 2 split 1", "6/2 6/2 6/2", ir.TargetExecutor,
			"nchannels=1 nchunksperloop=6 ngpus=3 coll=reducescatter inplace=0 outofplace=1 minBytes=5 maxBytes=3000", "6/2/0 6/2/0 6/2/0"},
		{"reduce_scatter ranks 3 factor 2 split 1", "6/2 6/2 6/2", ir.TargetPlain,
			"nchannels=1 nchunksperloop=6 ngpus=3 coll=reduce_scatter inplace=0 outofplace=1 minBytes=5 maxBytes=3000 slots=2 slotbytes=2097152", "6/2/0 6/2/0 6/2/0"},
		{"alltoall ranks 3 factor 2 split 1", "6/6 6/6 6/6", ir.TargetRCCL,
			"nchannels=1 nchunksperloop=6 ngpus=3 coll=alltoall inplace=0 outofplace=1 minBytes=5 maxBytes=3000", "6/6/0 6/6/0 6/6/0"},
		{"reduce ranks 3 factor 2 split 1 root 2", "2/0 2/0 2/2", ir.TargetExecutor,
			"nchannels=1 nchunksperloop=2 ngpus=3 coll=reduce inplace=0 outofplace=1 minBytes=5 maxBytes=3000 root=2", "2/0/0 2/0/0 2/2/0"},
		// Gather and scatter count what one rank gives or gets: a third of the bytes.
		{"gather ranks 3 factor 2 split 1 root 1", "2/0 2/6 2/0", ir.TargetRCCL,
			"nchannels=1 nchunksperloop=2 ngpus=3 coll=gather inplace=0 outofplace=1 minBytes=2 maxBytes=1000 root=1", "2/0/0 2/6/0 2/0/0"},
		{"scatter ranks 3 factor 2 split 1 root 1", "0/2 6/2 0/2", ir.TargetExecutor,
			"nchannels=1 nchunksperloop=2 ngpus=3 coll=scatter inplace=0 outofplace=1 minBytes=2 maxBytes=1000 root=1", "0/2/0 6/2/0 0/2/0"},
		// msccl has neither; its custom collective wants whole buffers or none.
		{"gather ranks 3 factor 2 split 1 root 1", "2/0 2/6 2/0", ir.TargetMSCCL,
			"nchannels=1 nchunksperloop=6 ngpus=3 coll=custom inplace=0 outofplace=1 minBytes=5 maxBytes=3001 root=1", "6/0/0 6/6/0 6/0/0"},
		{"alltonext ranks 3 factor 2 split 1", "2/2 2/2 2/2", ir.TargetMSCCL,
			"nchannels=1 nchunksperloop=2 ngpus=3 coll=custom inplace=0 outofplace=1 minBytes=5 maxBytes=3001", "2/2/0 2/2/0 2/2/0"},
		{"sendrecv ranks 3 factor 2 split 1 root 0 peer 2", "2/0 0/0 0/2", ir.TargetMSCCL,
			"nchannels=1 nchunksperloop=2 ngpus=3 coll=custom inplace=0 outofplace=1 minBytes=5 maxBytes=3001 root=0 peer=2", "2/0/0 0/0/0 0/2/0"},
		{"alltoallv ranks 3 factor 1 split 1\ncounts 0: 1 0 2\ncounts 1: 0 1 1\ncounts 2: 2 0 0", "3/3 2/1 2/3", ir.TargetMSCCL,
			"nchannels=1 nchunksperloop=3 ngpus=3 coll=custom inplace=0 outofplace=1 minBytes=5 maxBytes=3001", "3/3/0 3/3/0 3/3/0"},
		{"sendrecv ranks 3 factor 2 split 1 root 0 peer 2", "2/0 0/0 0/2", ir.TargetPlain,
			"nchannels=1 nchunksperloop=2 ngpus=3 coll=sendrecv inplace=0 outofplace=1 minBytes=5 maxBytes=3000 root=0 peer=2 slots=2 slotbytes=2097152", "2/0/0 0/0/0 0/2/0"},
		{"alltonext ranks 3 factor 2 split 1", "2/2 2/2 2/2", ir.TargetRCCL, "", "target rccl: its runtime has no collective alltonext"},
		{"sendrecv ranks 3 factor 2 split 1 root 0 peer 2", "2/0 0/0 0/2", ir.TargetExecutor, "", "target executor: its runtime has no collective sendrecv"},
		{"alltoallv ranks 3 factor 1 split 1 in-place\ncounts 0: 1*3\ncounts 1: 1*3\ncounts 2: 1*3", "3/3 3/3 3/3", ir.TargetMSCCL, "",
			"target msccl: alltoallv in place: its custom collectives share input and output there"},
		{"custom name \"mine\" ranks 3 factor 1 split 1\ninput 1 0*2\noutput 0 0 1\nexpect 2 0: 0.0", "1/0 0/0 0/1", ir.TargetRCCL, "",
			"target rccl: its runtime has no collective mine"},
	} {
		body := ""
		for r, size := range strings.Fields(c.sizes) {
			in, out, _ := strings.Cut(size, "/")
			body += fmt.Sprintf("gpu %d input=%s output=%s scratch=0\n", r, in, out)
		}
		p := program(t, c.coll, body)
		p.MinBytes, p.MaxBytes = 5, 3000
		var b bytes.Buffer
		err := mscclxml.Write(&b, p, c.target)
		if c.algo == "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.gpus) || b.Len() > 0 {
				t.Errorf("%s for %s: got %v and %d bytes, want %s", c.coll, c.target, err, b.Len(), c.gpus)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s for %s: %v", c.coll, c.target, err)
			continue
		}
		if got := algo(t, b.String()); got != c.algo {
			t.Errorf("%s for %s:\ngot  %s\nwant %s", c.coll, c.target, got, c.algo)
		}
		if got := gpus(b.String()); got != c.gpus {
			t.Errorf("%s for %s: got %s, want %s", c.coll, c.target, got, c.gpus)
		}
	}
}

// The size window in each target's words: msccl's end is exclusive and needs a
// number, the others' inclusive with 0 for no limit.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		coll     string
		min, max int64
		target   ir.Target
		want     string
	}{
		{"allreduce ranks 1 factor 1 split 1", 0, 0, ir.TargetMSCCL, "minBytes=0 maxBytes=9223372036854775807"},
		{"allreduce ranks 1 factor 1 split 1", 0, 1<<63 - 1, ir.TargetMSCCL, "minBytes=0 maxBytes=9223372036854775807"},
		{"allreduce ranks 1 factor 1 split 1", 4, 4, ir.TargetMSCCL, "minBytes=4 maxBytes=5"},
		{"allreduce ranks 1 factor 1 split 1", 0, 0, ir.TargetExecutor, "minBytes=0 maxBytes=0"},
		{"allreduce ranks 1 factor 1 split 1", 4, 4, ir.TargetRCCL, "minBytes=4 maxBytes=4"},
		{"allreduce ranks 1 factor 1 split 1", 5, 4, ir.TargetPlain, ""},
	} {
		p := program(t, c.coll, "gpu 0 input=1 output=1 scratch=0\n")
		p.MinBytes, p.MaxBytes = c.min, c.max
		var b bytes.Buffer
		err := mscclxml.Write(&b, p, c.target)
		if (err != nil) != (c.want == "") || !strings.Contains(strings.ReplaceAll(b.String(), `"`, ""), c.want) {
			t.Errorf("%d to %d for %s: got %v, %s, want %q", c.min, c.max, c.target, err, b.String(), c.want)
		}
	}
	// A gather of 3 ranks up to 2 bytes in all leaves no size for one rank.
	p := program(t, "gather ranks 3 factor 1 split 1 root 0", "gpu 0 input=1 output=3 scratch=0\ngpu 1 input=1 output=0 scratch=0\ngpu 2 input=1 output=0 scratch=0\n")
	p.MaxBytes = 2
	if err := mscclxml.Write(io.Discard, p, ir.TargetRCCL); err == nil {
		t.Error("a window that rounds to nothing must be refused, 0 would mean no limit")
	}
}

// What is written can be read by a real XML parser, and keeps to what the
// runtimes' tokenizer takes.
func TestOutputIsStrict(t *testing.T) {
	for _, target := range []ir.Target{ir.TargetMSCCL, ir.TargetExecutor, ir.TargetPlain} {
		text := write(t, program(t, "allreduce ranks 2 factor 4 split 1 in-place", everyStep), target)
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", target, err)
			}
			if e, ok := tok.(xml.StartElement); ok && len(e.Attr) > 16 {
				t.Errorf("%s: <%s> has %d attributes, the runtimes' readers keep 16", target, e.Name.Local, len(e.Attr))
			}
		}
		if strings.ContainsAny(text, "\t\r'") || strings.Contains(strings.ReplaceAll(text, "\n  ", "\n"), "\t") {
			t.Errorf("%s: a tab, carriage return or single quote", target)
		}
		for line := range strings.Lines(text) {
			if inner := strings.TrimLeft(line, " "); strings.Contains(inner, "  ") || strings.Count(inner, "<") != 1 || !strings.HasSuffix(inner, ">\n") {
				t.Errorf("%s: not one tag with single spaces: %s", target, line)
			}
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriterErrorIsReported(t *testing.T) {
	p := program(t, "allreduce ranks 2 factor 4 split 1 in-place", everyStep)
	err := mscclxml.Write(brokenPipe{}, p, ir.TargetPlain)
	var m *diag.Message
	if !errors.Is(err, io.ErrClosedPipe) || errors.As(err, &m) {
		t.Errorf("got %v, want the writer's error", err)
	}
}

func TestMalformedProgramIsRefused(t *testing.T) {
	p := program(t, "allreduce ranks 2 factor 4 split 1 in-place", everyStep)
	p.GPUs = p.GPUs[:1]
	if err := mscclxml.Write(io.Discard, p, ir.TargetPlain); err == nil {
		t.Error("a program without its second GPU was written")
	}
}

func BenchmarkWrite(b *testing.B) {
	step := "  %d rrcs i[%d] -> i[%d] x1 from 1 to 1 at i[%d]\n"
	body := strings.Builder{}
	for r := range 2 {
		fmt.Fprintf(&body, "gpu %d input=4096 output=4096 scratch=0\ntb 0 send=%d recv=%d ch=0\n", r, 1-r, 1-r)
		for s := range 100_000 {
			at := s % 4096
			fmt.Fprintf(&body, strings.ReplaceAll(step, "1 to 1", fmt.Sprintf("%d to %d", 1-r, 1-r)), s, at, at, at)
		}
	}
	p := program(b, "allreduce ranks 2 factor 4096 split 1 in-place", body.String())
	for b.Loop() {
		if err := mscclxml.Write(io.Discard, p, ir.TargetPlain); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(200_000*b.N)/b.Elapsed().Seconds()/1e6, "Msteps/s")
}
