package mscclxml_test

import (
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// Target astra takes sends, receives and receives with reduction from and to one
// offset, at both ends.
func TestAstra(t *testing.T) {
	const head = "tb 0 send=1 recv=1 ch=0\n"
	at := "rank 0 thread block 0 step 0: target astra"
	for _, c := range []struct{ name, steps, want string }{
		{"all that it takes", "0 s i[2] x1 to 1 at s[2]\n1 r -> s[2] x1 from 1 at o[2]\n2 nop wait 1:0\n3 rrc i[3] -> o[3] x1 from 1 wait 1:0\n", ""},
		{"more steps than any runtime", lines(500, "%d s i[2] x1 to 1 at i[2]\n") + "500 nop wait 1:0\n", ""},
		{"rcs", "0 rcs -> i[0] x1 from 1 to 1\n", at + ": its runtime runs no rcs steps"},
		{"rrs", "0 rrs i[0] x1 from 1 to 1\n", at + ": its runtime runs no rrs steps"},
		{"rrcs", "0 rrcs i[0] -> i[0] x1 from 1 to 1\n", at + ": its runtime runs no rrcs steps"},
		{"cpy", "0 cpy i[0] -> s[0] x1\n", at + ": it runs no cpy steps, only s, r, rrc and nop"},
		{"re", "0 re i[0] -> s[0] x1\n", at + ": it runs no re steps, only s, r, rrc and nop"},
		{"s to another offset", "0 s i[2] x1 to 1 at i[1]\n", at + " takes one offset a step, got source 2 and destination 1"},
		{"r from another offset", "0 r -> i[2] x1 from 1 at i[1]\n", at + " takes one offset a step, got source 1 and destination 2"},
		{"rrc between offsets", "0 rrc i[0] -> i[1] x1 from 1\n", at + " takes one offset a step, got source 0 and destination 1"},
		{"unknown remote end", "0 s i[2] x1 to 1\n", at + " wants the offset at the peer, which is not known"},
		{"a nop that waits for nothing", "0 nop\n", "rank 0 thread block 0 step 0: a nop that waits for nothing"},
	} {
		tail := "tb 1 send=-1 recv=1 ch=1\n0 r -> s[0] x1 from 1 at i[0] post\n"
		p := program(t, allreduce2, gpu0(4, head+c.steps+tail))
		refused(t, c.name, p, ir.TargetAstra, c.want)
		if c.want == "" && !roundTrip(t, p, ir.TargetAstra) {
			t.Errorf("%s: not read back", c.name)
		}
	}
	for _, coll := range []string{"gather ranks 1 factor 2 split 1 root 0", "alltonext ranks 1 factor 2 split 1"} {
		refused(t, coll, program(t, coll, "gpu 0 input=2 output=2 scratch=0\n"), ir.TargetAstra, "target astra: its converter has no collective")
	}
}
