package ir_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files of this package")

// texter is what the three forms have in common for these tests.
type texter interface{ WriteText(io.Writer) error }

func text(t interface{ Fatal(...any) }, f texter) string {
	var b bytes.Buffer
	if err := f.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
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

// handInstrs is a reduce over a chain of three and a copy back, as fused.
func handInstrs() *ir.InstrDAG {
	d := ringDAG(3)
	s := *d.Spec
	s.Buffers = append(s.Buffers[:2:2], ir.Buffer{Name: "tmp", Chunks: []int32{0, 2, 0}}, ir.Buffer{Name: `("in", 2)`, Chunks: []int32{1, 0, 0}})
	none := func(in ir.Instr) ir.Instr {
		in.Chan, in.TB, in.Op = ir.None, ir.None, ir.None
		return in
	}
	return &ir.InstrDAG{Spec: &s, Instrs: []ir.Instr{
		none(ir.Instr{Kind: ir.Send, Rank: 0, Src: place(ir.Input, 1), Dst: ir.NoPlace, Count: 2, SendTo: 1, RecvFrom: ir.None, Pos: 1}),
		{Kind: ir.RecvReduceCopySend, Rank: 1, Src: place(ir.Input, 1), Dst: place(2, 0), Count: 2, SendTo: 2, RecvFrom: 0, Chan: 1, TB: 3, Instance: 1, Op: 7, Pos: 1},
		none(ir.Instr{Kind: ir.Recv, Rank: 2, Src: ir.NoPlace, Dst: place(ir.Output, 0), Count: 2, SendTo: ir.None, RecvFrom: 1, Pos: 2}),
		none(ir.Instr{Kind: ir.Copy, Rank: 0, Src: place(ir.Input, 0), Dst: place(3, 0), Count: 1, SendTo: ir.None, RecvFrom: ir.None}),
	}}
}

func handProgram() *ir.Program {
	s := *ringDAG(2).Spec
	step := func(st ir.Step) ir.Step {
		if st.Src == (ir.Place{}) {
			st.Src = ir.NoPlace
		}
		if st.Dst == (ir.Place{}) {
			st.Dst = ir.NoPlace
		}
		if st.Remote == (ir.Place{}) {
			st.Remote = ir.NoPlace
		}
		return st
	}
	return &ir.Program{Spec: &s, Transport: ir.Transport{Slots: 8, SlotBytes: 576000}, MinBytes: 0, MaxBytes: 1 << 20,
		Deps: []ir.Dep{{TB: 1, Step: 0}, {TB: 1, Step: 1}},
		GPUs: []ir.GPU{
			{Input: 2, Output: 2, Scratch: 1, TBs: []ir.ThreadBlock{
				{Send: 1, Recv: 1, Steps: []ir.Step{
					step(ir.Step{Kind: ir.Send, Src: place(ir.Input, 1), Remote: place(ir.Input, 1), Count: 1, SendPeer: 1, RecvPeer: ir.None, Pos: 1}),
					step(ir.Step{Kind: ir.Recv, Dst: place(ir.Input, 1), Count: 1, SendPeer: ir.None, RecvPeer: 1, DepStart: 0, DepEnd: 2, Pos: 2}),
				}},
				{Send: ir.None, Recv: ir.None, Chan: 1, Steps: []ir.Step{
					step(ir.Step{Kind: ir.Copy, Src: place(ir.Input, 1), Dst: place(ir.FirstScratch, 0), Count: 1, SendPeer: ir.None, RecvPeer: ir.None, Chan: 1, DepStart: 2, DepEnd: 2, Post: true}),
					step(ir.Step{Kind: ir.Nop, SendPeer: ir.None, RecvPeer: ir.None, Chan: 4, DepStart: 2, DepEnd: 2, Post: true}),
				}},
			}},
			{Input: 2, Output: 2, TBs: []ir.ThreadBlock{
				{Send: 0, Recv: 0, Steps: []ir.Step{
					step(ir.Step{Kind: ir.RecvReduceCopySend, Src: place(ir.Input, 1), Dst: place(ir.Input, 1), Remote: place(ir.Input, 1), Count: 1, SendPeer: 0, RecvPeer: 0, DepStart: 2, DepEnd: 2, Pos: 1}),
				}},
			}},
		}}
}

func TestTextGoldens(t *testing.T) {
	golden(t, "ring3.chunkdag", text(t, ringDAG(3)))
	golden(t, "chain.instrdag", text(t, handInstrs()))
	golden(t, "two.program", text(t, handProgram()))
	golden(t, "onesided.program", text(t, handOneSided()))
}

func TestNodeStrings(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{ringDAG(3).OpString(0), "reduce 1.i[0] -> 2.i[0] x1 ch 0"},
		{handInstrs().InstrString(1), "rank 1 rrcs i[1] -> tmp[0] x2 from 0 to 2 ch 1 tb 3 instance 1 op 7"},
		{handInstrs().InstrString(3), `rank 0 cpy i[0] -> "(\"in\", 2)"[0] x1`},
		{handProgram().StepString(0, 0, 1), "r -> i[1] x1 from 1 wait 1:0 1:1"},
		{handProgram().StepString(0, 1, 1), "nop ch 4 post"},
		{handProgram().StepString(1, 0, 0), "rrcs i[1] -> i[1] x1 from 0 to 0 at i[1]"},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

// The text is an exact image of a form: reading it gives an equal one.
func TestTextRoundTrip(t *testing.T) {
	t.Run("chunkdag", rapid.MakeCheck(func(t *rapid.T) {
		roundTrip(t, drawChunkDAG(t), ir.ParseChunkDAG)
	}))
	t.Run("instrdag", rapid.MakeCheck(func(t *rapid.T) {
		roundTrip(t, drawInstrDAG(t), ir.ParseInstrDAG)
	}))
	t.Run("program", rapid.MakeCheck(func(t *rapid.T) {
		roundTrip(t, drawProgram(t), ir.ParseProgram)
	}))
	t.Run("one-sided", rapid.MakeCheck(func(t *rapid.T) {
		roundTrip(t, drawOneSided(t), ir.ParseProgram)
	}))
	// Larger than what a writer gathers before it writes.
	roundTrip(t, ringDAG(64), ir.ParseChunkDAG)
}

func roundTrip[T texter](t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, d T, parse func(io.Reader, string) (T, error)) {
	was := text(t, d)
	got, err := parse(strings.NewReader(was), "x")
	if err != nil {
		t.Fatalf("%v\n%s", err, was)
	}
	if diff := cmp.Diff(d, got); diff != "" {
		t.Fatalf("(-written +read):\n%s\n%s", diff, was)
	}
}

// Positions that a pass no longer uses, or uses in another order, are numbered
// anew; the text stays the same.
func TestPositionsAreRenumbered(t *testing.T) {
	d := ringDAG(3)
	d.Positions = []diag.Pos{{}, {File: "unused", Line: 1, Col: 1}, d.Positions[2], d.Positions[1]}
	for i := range d.Ops {
		d.Ops[i].Pos = 5 - d.Ops[i].Pos - 1 // 1 -> 3, 2 -> 2
	}
	was := text(t, d)
	got := must(ir.ParseChunkDAG(strings.NewReader(was), "x"))
	if again := text(t, got); again != was {
		t.Errorf("the text changed:\n%s", cmp.Diff(was, again))
	}
	if len(got.Positions) != 3 {
		t.Errorf("got positions %v, want the empty one and the two in use", got.Positions)
	}
}

// By hand: spaces, comments, empty lines and carriage returns do not matter.
func TestTextIsForgivingAboutSpace(t *testing.T) {
	was := text(t, handProgram())
	loose := "# by hand\r\n\n" + strings.ReplaceAll(strings.ReplaceAll(was, "\n", "  \r\n\n"), "tb 1", "\ttb   1")
	got := must(ir.ParseProgram(strings.NewReader(loose), "x"))
	if diff := cmp.Diff(must(ir.ParseProgram(strings.NewReader(was), "x")), got); diff != "" {
		t.Error(diff)
	}
}

const head = `chunkdag "p"
collective allreduce ranks 2 factor 2 split 1
topology "t" ranks 2
protocol LL
policy auto instances 1
buffer "input" 2*2
buffer "output" 2*2
`

// A step that people wrote is where they wrote it, one that was compiled where its
// position says.
func TestParseProgramHere(t *testing.T) {
	const head = `program "p"
collective allreduce ranks 1 factor 1 split 1
topology none
protocol Simple
policy auto instances 1
transport slots 2 bytes 2097152
window min 0 max 0
gpu 0 input=1 output=1 scratch=1
tb 0 send=-1 recv=-1 ch=0

  0 cpy i[0] -> s[0] x1
# a comment
	1 cpy s[0] -> o[0] x1 ; a.star:3:4
	2 nop
`
	p, err := ir.ParseProgramHere(strings.NewReader(head), "p.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"p.txt:11:3", "a.star:3:4", "p.txt:14:2"} {
		if got := p.Pos(p.GPUs[0].TBs[0].Steps[i].Pos).String(); got != want {
			t.Errorf("step %d: got %s, want %s", i, got, want)
		}
	}
	if p, err = ir.ParseProgram(strings.NewReader(head), "p.txt"); err != nil || p.GPUs[0].TBs[0].Steps[0].Pos != 0 {
		t.Errorf("as written: got %v, %v", p.GPUs[0].TBs[0].Steps[0].Pos, err)
	}
}

func TestParseErrors(t *testing.T) {
	chunk := func(s string) error { _, err := ir.ParseChunkDAG(strings.NewReader(s), "f"); return err }
	instr := func(s string) error { _, err := ir.ParseInstrDAG(strings.NewReader(s), "f"); return err }
	prog := func(s string) error { _, err := ir.ParseProgram(strings.NewReader(s), "f"); return err }
	ihead := strings.Replace(head, "chunkdag", "instrdag", 1)
	phead := strings.Replace(head, "chunkdag", "program", 1)
	ophead := phead + "one-sided threads 1024 align 16\n"
	for _, c := range []struct {
		err  error
		want string // "" for none
	}{
		{chunk(""), `f: the file is empty, want "chunkdag"`},
		{chunk("program \"x\"\n"), `f:1:1: got "program", want "chunkdag"`},
		{chunk("chunkdag ring\n"), `f:1:10: got "ring", want a quoted string`},
		{chunk("chunkdag \"ring\n"), `f:1:10: the quoted string does not end`},
		{chunk("chunkdag \"p\"\n"), `f:1:13: got the end of the file, want the collective`},
		{chunk("chunkdag \"p\"\ncollective allred ranks 2\n"), `f:2:12: collective: unknown name "allred"`},
		{chunk("chunkdag \"p\"\ncollective allreduce ranks 0\n"), `f:2:28: got "0", want a number from 1 to 65536`},
		{chunk("chunkdag \"p\"\ncollective broadcast ranks 2 factor 1 split 1\n"), `f:2: broadcast: root -1 is not one of 2 ranks`},
		{chunk("chunkdag \"p\"\ncollective alltoallv ranks 2 factor 1 split 1\ncounts 0: 1\n"), `f:3:12: got 1 numbers, want 2`},
		{chunk("chunkdag \"p\"\ncollective alltoallv ranks 2 factor 1 split 1\ncounts 1: 1 1\n"), `f:3:8: got "1:", want 0`},
		{chunk(strings.Replace(head, "protocol LL\n", "", 1)), `f: the header has no line "protocol"`},
		{chunk(strings.Replace(head, "protocol LL\n", "protocol LL\nprotocol LL\n", 1)), `f:5:1: second line "protocol"`},
		{chunk(strings.Replace(head, "protocol LL", "protocol ll", 1)), `f:4:10: protocol: got "ll", want Simple, LL, LL128 or Direct`},
		{chunk(strings.Replace(head, "2*2", "2*3", 1)), `f:6:19: the list has more than 2 numbers`},
		{chunk(strings.Replace(head, "2*2", "2", 1)), `f:6:17: got 1 numbers, want 2`},
		{chunk(head + "1 copy 0.i[0] -> 1.i[0] x1\n"), `f:8:1: got "1", want 0`},
		{chunk(head + "0 move 0.i[0] -> 1.i[0] x1\n"), `f:8:3: got "move", want "copy"`},
		{chunk(head + "0 copy 0.i[0] -> 1.i[1] x2\n"), `f:8: destination: input[1] x2 is outside the 2 chunks that rank 1 has of it`},
		{chunk(head + "0 copy 2.i[0] -> 1.i[0] x1\n"), `f:8: source: rank 2 is not one of 2`},
		{chunk(head + "0 copy 0.tmp[0] -> 1.i[0] x1\n"), `f:8:13: unknown buffer "tmp"`},
		{chunk(head + "0 copy 0.i[0] -> 1.i[0]\n"), `f:8: got count 0, parallel 1, instance 0, want at least 1, 1, 0`},
		{chunk(head + "0 copy 0.i[0] -> 1.i[0] x1 chan 3\n"), `f:8:28: got "chan", want ";"`},
		{chunk(head + "0 copy 0.i[0] -> 1.i[0] x99999999999999999999\n"), `f:8:26: got "99999999999999999999", want a number from -2147483648 to 2147483647`},
		{chunk(head + "0 copy 0.i[0] -> 1.i[0] x1 ; a.star\n"), `f:8:36: got the end of the line, want ":"`},
		{instr(ihead + "0 rank 0 s i[0] x1 to 1\n"), `f: instruction 0: its message goes to instruction 1 of 1, want a later one`},
		{instr(ihead + "0 rank 0 s i[0] x1\n"), `f: instruction 0: s: got send to -1`},
		{instr(ihead + "0 rank 0 s i[0] x1 to 2\n1 rank 0 s i[0] x1 to 2\n2 rank 1 r -> i[0] x1 from 0\n"),
			`f: instruction 1: it sends to instruction 2, which receives from 0`},
		{instr(ihead + "0 rank 0 copy i[0] x1\n"), `f:8:10: step type: got "copy", want one of nop, s, r, rcs, rrs, rrc, rrcs, cpy, re`},
		{prog(phead + "gpu 0 input=2 output=2 scratch=0\n"), `f: program: got 1 GPUs, want 2, one a rank`},
		{prog(phead + "tb 0 send=1 recv=1 ch=0\n"), `f:8:3: a thread block before the first gpu`},
		{prog(phead + "0 nop\n"), `f:8:1: got "0", want a gpu and a tb before the first step`},
		// In all 1<<27 chunks may be declared: by 2 ranks 67108864 each, here 8 of them in inputs and outputs.
		{prog(phead + "gpu 0 input=2 output=2 scratch=2147483647\n"), `f:8:32: 2147483651 chunks in all buffers up to here, want at most 134217728`},
		{prog(phead + "gpu 0 input=2 output=2 scratch=67108860\ngpu 1 input=2 output=2 scratch=67108861\n"),
			`f:9:32: 134217729 chunks in all buffers up to here, want at most 134217728`},
		{prog(phead + "gpu 0 input=134217729 output=2 scratch=0\n"), `f:8:13: 134217729 chunks in all buffers up to here, want at most 134217728`},
		{prog(phead + "gpu 0 input=2 output=134217727 scratch=0\n"), `f:8:22: 134217729 chunks in all buffers up to here, want at most 134217728`},
		{prog(ophead + "gpu 0 input=2 output=2 scratch=2147483647\n"), `f:9:32: 2147483651 chunks in all buffers up to here, want at most 134217728`},
		{prog(phead + "buffer \"scratch\"  2147483647 0\n"), `f:8:19: 2147483655 chunks in all buffers up to here, want at most 134217728`},
		{chunk(head + "buffer \"a\" 67108860 67108861\n"), `f:8:12: 134217729 chunks in all buffers up to here, want at most 134217728`},
		{instr(ihead + "buffer \"a\" 1 2\nbuffer \"b\" 0 134217718\n"), `f:9:12: 134217729 chunks in all buffers up to here, want at most 134217728`},
		{prog(phead + "gpu 0 input=2 output=2 scratch=67108860\ngpu 1 input=2 output=2 scratch=67108860\n"), ""},
		{chunk(head + "buffer \"a\" 67108860 67108860\n"), ""},
		{prog(phead + "gpu 0 input=2 output=2 scratch=0\ntb 0 send=1 recv=1 ch=0\n0 s tmp[0] x1 to 1\n"), `f:10:8: unknown buffer "tmp"`},
	} {
		if c.want == "" {
			if c.err != nil {
				t.Errorf("got  %v, want no error", c.err)
			}
			continue
		}
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", c.err, c.want)
		}
		var m *diag.Message
		if !errors.As(c.err, &m) {
			t.Errorf("%v is a %T, want a message", c.err, c.err)
		}
	}
}

// Few bytes must not make a reader use much memory.
func TestParseRefusesHugeDeclarations(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	for _, s := range []string{
		strings.Replace(head, "ranks 2 factor", "ranks 2000000000 factor", 1),
		strings.Replace(head, "factor 2", "factor 2000000000", 1),
		strings.Replace(head, "2*2", "2*2000000000", 1),
		strings.Replace(head, "2*2", "1000000000*2", 1),
		strings.Replace(head, `"t" ranks 2`, `"t" ranks 60000 links`, 1),
		"chunkdag \"p\"\ncollective custom ranks 1 factor 1 split 1\ninput 1\noutput 2000000000\n",
		head + long,
	} {
		if _, err := ir.ParseChunkDAG(strings.NewReader(s), "f"); err == nil {
			t.Errorf("accepted:\n%.300s", s)
		}
	}
}

// Malformed forms are refused before a byte is written.
func TestWriteTextRefusesMalformed(t *testing.T) {
	chunk, instr, prog := ringDAG(2), handInstrs(), handProgram()
	chunk.Ops[0].Count = 9
	instr.Instrs[0].SendTo = 3
	large := handProgram()
	large.GPUs[0].Scratch, large.GPUs[1].Scratch = 1<<26, 1<<26
	prog.GPUs[0].TBs[0].Steps[0].Src.Buf = 7
	bare := ringDAG(2)
	bare.Coll = nil
	for _, f := range []texter{chunk, instr, prog, bare, large} {
		var b bytes.Buffer
		if err := f.WriteText(&b); err == nil || b.Len() > 0 {
			t.Errorf("%T: got error %v after %d bytes", f, err, b.Len())
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteTextReportsTheWriter(t *testing.T) {
	if err := ringDAG(64).WriteText(brokenPipe{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v, want %v", err, io.ErrClosedPipe)
	}
}

// Whatever a reader accepts can be written, and reads back as the same text.
func fuzzText[T texter](f *testing.F, parse func(io.Reader, string) (T, error)) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err == nil {
			f.Add(b)
		}
	}
	f.Add([]byte("chunkdag \"p\"\ncollective custom name \"c\" ranks 2 factor 1 split 1\ninput 1*2\noutput 1*2\nholds 0: 1\nholds 1: 0\nexpect 0 0: 0.0\n" +
		head[strings.Index(head, "topology"):] + "0 copy 0.i[0] -> 1.i[1] x1 ch 3 ; \"a b\":1:2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parse(bytes.NewReader(b), "f")
		if err != nil {
			return
		}
		was := text(t, d)
		again, err := parse(strings.NewReader(was), "f")
		if err != nil {
			t.Fatalf("%v\n%s", err, was)
		}
		if now := text(t, again); now != was {
			t.Fatal(cmp.Diff(was, now))
		}
	})
}

func FuzzParseChunkDAG(f *testing.F) { fuzzText(f, ir.ParseChunkDAG) }
func FuzzParseInstrDAG(f *testing.F) { fuzzText(f, ir.ParseInstrDAG) }
func FuzzParseProgram(f *testing.F)  { fuzzText(f, ir.ParseProgram) }

func BenchmarkText(b *testing.B) {
	d := ringDAG(512) // 523,264 operations
	var buf bytes.Buffer
	if err := d.WriteText(&buf); err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if err := d.WriteText(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(d.Ops)*b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := ir.ParseChunkDAG(bytes.NewReader(buf.Bytes()), "x"); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(d.Ops)*b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
	})
}
