package ir_test

import (
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// An open collective demands nothing in particular, yet all its outputs matter;
// its text form says so.
func TestOpenCustomCollective(t *testing.T) {
	const text = "program \"p\"\ncollective custom ranks 1 factor 1 split 1 open\ninput 2\noutput 2\ntopology none\nprotocol Simple\n" +
		"policy auto instances 1\ntransport slots 2 bytes 64\nwindow min 0 max 0\ngpu 0 input=2 output=2 scratch=0\n"
	p, err := ir.ParseProgram(strings.NewReader(text), "p")
	if err != nil {
		t.Fatal(err)
	}
	if _, demanded := p.Coll.Expect(nil, 0, 1); demanded || !p.Coll.Observable(0, ir.Output, 1) || p.Coll.Observable(0, ir.Output, 2) {
		t.Errorf("got %+v", p.Coll.Custom)
	}
	var b strings.Builder
	if err := p.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != text {
		t.Errorf("got\n%s\nwant\n%s", b.String(), text)
	}
	p.Coll.Custom.Open = false
	if p.Coll.Observable(0, ir.Output, 1) {
		t.Error("closed: an output of which nothing is demanded matters")
	}
}
