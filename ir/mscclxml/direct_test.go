package mscclxml

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

const directText = `program "exchange"
collective alltoall ranks 2 factor 1 split 1
topology none
protocol Direct
policy auto instances 1
transport slots 0 bytes 0
window min 0 max 0
gpu 0 input=2 output=2 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s i[1] x1 to 1 at o[0]
  1 r -> o[1] x1 from 1 at i[0]
  2 cpy i[0] -> o[0] x1
gpu 1 input=2 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s i[0] x1 to 0 at o[1]
  1 r -> o[0] x1 from 0 at i[1]
  2 cpy i[1] -> o[1] x1
`

// XML has no word for Direct: it is refused in either direction, and mapped on request.
func TestDirect(t *testing.T) {
	p, err := ir.ParseProgram(strings.NewReader(directText), "d.txt")
	if err != nil {
		t.Fatal(err)
	}
	const want = `protocol Direct has no slots, for which MSCCL XML has no word
    compile with protocol Simple, LL or LL128, or ask for the program to be mapped to Simple (--direct-as-simple)`
	for _, target := range []ir.Target{ir.TargetMSCCL, ir.TargetExecutor, ir.TargetRCCL, ir.TargetPlain, ir.TargetAstra} {
		var out bytes.Buffer
		if err := Write(&out, p, target); err == nil || err.Error() != want || out.Len() > 0 {
			t.Errorf("%s: got %v and %d bytes, want %s", target, err, out.Len(), want)
		}
		q := AsSimple(p, target)
		if q.Protocol != ir.Simple || q.Transport != target.Transport(ir.Simple) || p.Protocol != ir.Direct || p.Transport != (ir.Transport{}) {
			t.Errorf("%s: got %s with %+v of %s with %+v", target, q.Protocol, q.Transport, p.Protocol, p.Transport)
		}
		if AsSimple(q, target) != q {
			t.Errorf("%s: a program of protocol Simple was mapped", target)
		}
	}
	var out bytes.Buffer
	if err := Write(&out, AsSimple(p, ir.TargetPlain), ir.TargetPlain); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `proto="Simple"`) || !strings.Contains(out.String(), `slots="2"`) {
		t.Errorf("got\n%s", out.String())
	}
	as := strings.Replace(out.String(), `proto="Simple"`, `proto="Direct"`, 1)
	for _, o := range []ReadOptions{{Runtime: Plain}, {Runtime: MSCCL}} {
		_, err := Read(strings.NewReader(as), o)
		if err == nil || !strings.Contains(err.Error(), `want Simple, LL or LL128`) {
			t.Errorf("reading Direct: got %v", err)
		}
	}
}
