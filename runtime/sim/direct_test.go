package sim_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/sim"
)

const direct3 = `collective allgather ranks 3 factor 1 split 1
topology none
protocol Direct
policy auto instances 1
transport slots 0 bytes 0
window min 0 max 0`

// A ring in which everybody sends before it receives relies on a slot.
func TestDirectRing(t *testing.T) {
	var b strings.Builder
	for r := range 3 {
		fmt.Fprintf(&b, "gpu %d input=1 output=3 scratch=0\ntb 0 send=%d recv=%d ch=0\n  0 s i[0] x1 to %d\n  1 r -> o[%d] x1 from %d\n",
			r, (r+1)%3, (r+2)%3, (r+1)%3, (r+2)%3, (r+2)%3)
	}
	p := parse(t, direct3, b.String())
	m := newMachine(t, p, sim.Options{})
	stop, err := m.Run(context.Background(), sim.Until{})
	if err != nil || stop.Why != sim.WhyStuck {
		t.Fatalf("%v %+v", err, stop)
	}
	c := m.Cycle()
	if len(c) != 3 || c[0].Kind != sim.WaitArrival || c[0].For != (sim.At{Rank: 1, Step: 1}) || c[1].Who.Rank != 1 || c[2].Who.Rank != 2 {
		t.Errorf("%+v", c)
	}
	if c[0].Text != "rank 1 tb 0 step 1 (r) to arrive" {
		t.Errorf("%q", c[0].Text)
	}
	simple := *p.Spec
	simple.Protocol = ir.Simple
	p.Spec, p.Transport = &simple, ir.Transport{Slots: 1, SlotBytes: 1}
	m = newMachine(t, p, sim.Options{})
	if stop, err := m.Run(context.Background(), sim.Until{}); err != nil || stop.Why != sim.WhyDone {
		t.Fatalf("with one slot: %v %+v", err, stop)
	}
}

// The steps of a rendezvous, one by one: arrivals, a push by the send, and ends.
func TestDirectMoves(t *testing.T) {
	head := strings.Replace(direct3, "ranks 3", "ranks 2", 1)
	m := newMachine(t, parse(t, head, `gpu 0 input=1 output=2 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s i[0] x1 to 1
  1 r -> o[1] x1 from 1
tb 1 send=-1 recv=-1 ch=0
  0 cpy i[0] -> o[0] x1
gpu 1 input=1 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s i[0] x1 to 0
  1 r -> o[0] x1 from 0
tb 1 send=-1 recv=-1 ch=0
  0 cpy i[0] -> o[1] x1
`), sim.Options{})
	want := []string{
		"#0 rank 0 tb 0 step 0 arrive: s i[0] x1 to 1",
		"#1 rank 0 tb 1 step 0: cpy i[0] -> o[0] x1\n  0.o[0]= 0.0, was -",
		"#2 rank 1 tb 0 step 0 arrive: s i[0] x1 to 0",
		"#3 rank 1 tb 1 step 0: cpy i[0] -> o[1] x1\n  1.o[1]= 1.0, was -",
		"#4 rank 0 tb 0 step 0 transfer: s i[0] x1 to 1\n  1.o[0]= 0.0, was -",
		"#5 rank 1 tb 0 step 0 transfer: s i[0] x1 to 0\n  0.o[1]= 1.0, was -",
		"#6 rank 0 tb 0 step 0 end: s i[0] x1 to 1",
	}
	for _, w := range want {
		mv, ok := m.Step()
		if !ok {
			t.Fatal("nothing can move")
		}
		is(t, "move", text(t, func(b *bytes.Buffer) error { return m.WriteMove(b, mv, 80) }), w+"\n")
	}
	if !m.Done() {
		t.Errorf("%+v", m.Blocked())
	}
	demanded(t, m)
}

// The same by pulls: a receiver that reduces reads its peer's memory, and the sender
// ends after it. A step that reduces and sends pushes its sum.
func TestDirectPull(t *testing.T) {
	head := strings.Replace(strings.Replace(direct3, "ranks 3", "ranks 2", 1), "allgather ranks 2 factor 1 split 1", "allreduce ranks 2 factor 1 split 1 in-place", 1)
	m := newMachine(t, parse(t, head, `gpu 0 input=1 output=1 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] x1 to 1
tb 1 send=-1 recv=1 ch=0
  0 r -> i[0] x1 from 1
gpu 1 input=1 output=1 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rrcs i[0] -> i[0] x1 from 0 to 0
`), sim.Options{})
	want := []string{
		"#0 rank 0 tb 0 step 0 arrive: s i[0] x1 to 1",
		"#1 rank 0 tb 1 step 0 arrive: r -> i[0] x1 from 1",
		"#2 rank 1 tb 0 step 0 arrive: rrcs i[0] -> i[0] x1 from 0 to 0",
		"#3 rank 1 tb 0 step 0 transfer: rrcs i[0] -> i[0] x1 from 0 to 0\n  0.i[0]= 0.0+1.0, was 0.0\n  1.i[0]= 0.0+1.0, was 1.0",
		"#4 rank 0 tb 0 step 0 end: s i[0] x1 to 1",
		"#5 rank 0 tb 1 step 0 end: r -> i[0] x1 from 1",
	}
	for i, w := range want {
		if i == 3 {
			if b := m.Blocked(); len(b) != 2 || b[0].Kind != sim.WaitEnd || b[1].Kind != sim.WaitBytes || m.Cycle() != nil {
				t.Errorf("%+v, circle %+v", b, m.Cycle())
			}
		}
		mv, _ := m.Step()
		is(t, "move", text(t, func(b *bytes.Buffer) error { return m.WriteMove(b, mv, 80) }), w+"\n")
	}
	if !m.Done() {
		t.Errorf("%+v", m.Blocked())
	}
}
