package ir_test

import (
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// A program as written may leave its protocol to the compiler; a scheduled one can't.
func TestProtocolAuto(t *testing.T) {
	header := "\ncollective allreduce ranks 2 factor 1 split 1\ntopology none\nprotocol auto\npolicy auto instances 1\n"
	d, err := ir.ParseChunkDAG(strings.NewReader("chunkdag \"p\""+header+"buffer \"input\" 1*2\nbuffer \"output\" 1*2\n"), "p.txt")
	if err != nil || d.Protocol != ir.AutoProtocol {
		t.Fatalf("got %v, %v", d, err)
	}
	var text strings.Builder
	if err := d.WriteText(&text); err != nil || !strings.Contains(text.String(), "\nprotocol auto\n") {
		t.Errorf("got %v, %q", err, text.String())
	}
	program := "program \"p\"" + header + "transport slots 2 bytes 8\nwindow min 0 max 0\ngpu 0 input=1 output=1 scratch=0\ngpu 1 input=1 output=1 scratch=0\n"
	if _, err := ir.ParseProgram(strings.NewReader(program), "p.txt"); err == nil || err.Error() != "p.txt:4:10: a program can't be of protocol auto: want Simple, LL, LL128 or Direct" {
		t.Errorf("a scheduled program of protocol auto: got %v, want an error", err)
	}
	p := handProgram()
	p.Protocol = ir.AutoProtocol
	if err := p.Validate(); err == nil || err.Error() != "spec: a program can't be of protocol auto: want Simple, LL, LL128 or Direct" {
		t.Errorf("a scheduled program of protocol auto: got %v, want an error", err)
	}
	if _, err := ir.ParseProgram(strings.NewReader(strings.Replace(program, "protocol auto", "protocol LL", 1)), "p.txt"); err != nil {
		t.Errorf("the same with LL: %v", err)
	}
	if _, err := ir.ParseProtocol("auto"); err == nil {
		t.Error("auto is no protocol by itself")
	}
}
