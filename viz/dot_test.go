package viz_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/viz"
	"gonum.org/v1/gonum/graph/formats/dot"
)

var update = flag.Bool("update", false, "rewrite the golden files of this package")

const header = `"re\"lay"
collective custom ranks 3 factor 1 split 1
input 2*3
output 1*3
topology none
protocol LL
policy auto instances 1
buffer "input" 2*3
buffer "output" 1*3
buffer "my \"tmp\"" 1*3
`

// Rank 0's chunk through rank 1's scratch to rank 2, then both reused.
const chunks = `0 copy 0.i[0] -> 1."my \"tmp\""[0] x1 ch 2 ; relay.star:4:9
1 copy 1."my \"tmp\""[0] -> 2.o[0] x1 ; relay.star:5:9
2 copy 1.i[1] -> 1."my \"tmp\""[0] x1
3 reduce 2.i[0] -> 2.o[0] x1
`

const instrs = `0 rank 0 s i[0] x1 to 1 ; relay.star:4:9
1 rank 1 rcs -> "my \"tmp\""[0] x1 from 0 to 3 ; relay.star:5:9
2 rank 1 cpy i[1] -> "my \"tmp\""[0] x1
3 rank 2 r -> o[0] x1 from 1 ; relay.star:5:9
`

// The second receive of rank 1 has no send: a broken program can be drawn too.
const steps = `transport slots 8 bytes 32768
window min 0 max 0
gpu 0 input=2 output=1 scratch=0
tb 0 send=1 recv=-1 ch=0
0 s i[0] x1 to 1 at s[0] ; relay.star:4:9
1 s i[1] x1 to 1 at i[0]
gpu 1 input=2 output=1 scratch=1
tb 0 send=2 recv=0 ch=0
0 rcs -> s[0] x1 from 0 to 2 at o[0] post
1 r -> i[0] x1 from 0
2 r -> i[0] x1 from 0
tb 1 send=-1 recv=-1 ch=0
0 cpy i[1] -> s[0] x1 wait 0:0 9:9
gpu 2 input=2 output=1 scratch=0
tb 0 send=-1 recv=1 ch=0
0 r -> o[0] x1 from 1
`

func parsed[T any](t *testing.T, parse func(io.Reader, string) (T, error), text string) T {
	t.Helper()
	d, err := parse(strings.NewReader(text), "t")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDOT(t *testing.T) {
	c := parsed(t, ir.ParseChunkDAG, "chunkdag "+header+chunks)
	i := parsed(t, ir.ParseInstrDAG, "instrdag "+header+instrs)
	p := parsed(t, ir.ParseProgram, "program "+header+steps)
	for _, g := range []struct {
		name  string
		write func(io.Writer) error
		nodes int
	}{
		{"chunks.dot", dotOf(viz.Chunks(c)), 4},
		{"instrs.dot", dotOf(viz.Instructions(i, viz.StageInstructions)), 4},
		{"program.dot", dotOf(viz.Schedule(p)), 7},
		{"topology.dot", dotOf(viz.Connections(p)), 3},
	} {
		var b bytes.Buffer
		if err := g.write(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", g.name)
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		if file, err := dot.ParseBytes(b.Bytes()); err != nil || len(file.Graphs) != 1 {
			t.Errorf("%s is no DOT: %v", g.name, err)
		}
		if n := strings.Count(b.String(), "tooltip="); n != g.nodes {
			t.Errorf("%s: got %d nodes, want %d", g.name, n, g.nodes)
		}
		if err := g.write(brokenPipe{}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: got %v, want the writer's error", g.name, err)
		}
	}
}

// dotOf writes a picture that was made, or says why it wasn't.
func dotOf(p *viz.Picture, err error) func(io.Writer) error {
	return func(w io.Writer) error {
		if err != nil {
			return err
		}
		return viz.WriteDOT(w, p)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestMalformedIsRefused(t *testing.T) {
	c := parsed(t, ir.ParseChunkDAG, "chunkdag "+header+chunks)
	c.Ops[0].Dst.Rank = 3
	if _, err := viz.Chunks(c); err == nil {
		t.Error("an operation on a rank that is not there was drawn")
	}
	i := parsed(t, ir.ParseInstrDAG, "instrdag "+header+instrs)
	i.Instrs[0].SendTo = 7
	if _, err := viz.Instructions(i, viz.StageFused); err == nil {
		t.Error("a message to an instruction that is not there was drawn")
	}
	p := parsed(t, ir.ParseProgram, "program "+header+steps)
	p.GPUs = nil
	if _, err := viz.Schedule(p); err == nil {
		t.Error("a program without GPUs was drawn")
	}
}

// wellFormed reports what is no XML.
func wellFormed(t *testing.T, text []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Errorf("not XML: %v", err)
			return
		}
	}
}
