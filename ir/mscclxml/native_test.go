package mscclxml_test

import (
	"io"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// XML has no target native, and no thread block with several peers; the refusals say
// what would do.
func TestNativeHasNoXML(t *testing.T) {
	text := `program "several"
collective allgather ranks 3 factor 1 split 1
topology none
protocol LL
policy auto instances 1
transport slots 8 bytes 32768
window min 0 max 0
gpu 0 input=1 output=3 scratch=0
tb 0 send=-1 recv=-1 ch=0
  0 s i[0] x1 to 1 at o[0]
  1 s i[0] x1 to 2 at o[0]
gpu 1 input=1 output=3 scratch=0
tb 0 send=-1 recv=0 ch=0
  0 r -> o[0] x1 from 0 at i[0]
gpu 2 input=1 output=3 scratch=0
tb 0 send=-1 recv=0 ch=0
  0 r -> o[0] x1 from 0 at i[0]
`
	p, err := ir.ParseProgram(strings.NewReader(text), "several.txt")
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[ir.Target]string{
		ir.TargetNative: "target native has no XML",
		ir.TargetMSCCL:  "rank 0 thread block 0 step 0: it sends to rank 1, its thread block to -1\n    XML has one peer each way and one channel a thread block, and one wait a step: compile the script for target msccl",
	} {
		if err := mscclxml.Write(io.Discard, p, target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", target, err, want)
		}
	}
	file := `<algo name="a" proto="LL" ngpus="1" nchunksperloop="1" coll="allreduce" inplace="1" outofplace="0" target="native"><gpu id="0" i_chunks="1" o_chunks="1" s_chunks="0"/></algo>`
	if _, err := mscclxml.Read(strings.NewReader(file), mscclxml.ReadOptions{}); err == nil || !strings.Contains(err.Error(), "target native has no XML") {
		t.Errorf("reading: got %v", err)
	}
	if _, err := mscclxml.Read(strings.NewReader(strings.Replace(file, "native", "plain", 1)), mscclxml.ReadOptions{}); err != nil {
		t.Errorf("the same for plain: %v", err)
	}
}
