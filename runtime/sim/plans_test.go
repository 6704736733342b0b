package sim_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/handed"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
	"github.com/mscclsh/mscclsh/runtime/sim"
)

// Plans of others that have no races deliver what their collective demands, whole and
// in turns of their pipelines.
func TestHandedPlans(t *testing.T) {
	folder := handed.Plans(t)
	index, err := os.ReadFile(filepath.Join(folder, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	ran, all := 0, 0
	for i, line := range strings.Split(strings.TrimSpace(string(index)), "\n") {
		row := strings.Split(line, "\t")
		if i == 0 || len(row) < 6 {
			continue
		}
		f, err := os.Open(filepath.Join(folder, row[0]))
		if err != nil {
			t.Fatal(err)
		}
		in, err := plan.Read(f, plan.Options{File: row[0]})
		f.Close()
		if err != nil {
			continue
		}
		p := in.Program
		verdict, err := checker.Check(context.Background(), p, checker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all++
		sure := verdict.OK && verdict.Races == 0 && row[5] == "ok"
		for _, bytes := range []int64{0, 3 * int64(p.Coll.NumChunks()) * int64(p.OneSided.Alignment), 1 << 20} {
			for seed := range uint64(2) {
				m, err := sim.New(p, sim.Options{Seed: seed, Bytes: bytes})
				if err != nil {
					t.Logf("%s: %d bytes: %v", row[0], bytes, err)
					continue
				}
				backAndForth(t, m, sure)
				if sure {
					demanded(t, m)
					ran++
				}
			}
		}
	}
	t.Logf("%d runs of %d plans were compared with their collectives", ran, all)
}

// backAndForth runs to the end, to the start and to the end.
func backAndForth(t *testing.T, m *sim.Machine, ends bool) {
	t.Helper()
	first, ready := m.Cells()
	stop, err := m.Run(context.Background(), sim.Until{})
	if err != nil || ends && stop.Why != sim.WhyDone {
		t.Fatalf("%s: %v %+v %+v", m.Program().Name, err, stop, m.Blocked())
	}
	last, _ := m.Cells()
	n := m.Moves()
	if err := m.At(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	sameCells(t, "at the start", m, first, ready)
	if err := m.At(context.Background(), n); err != nil {
		t.Fatal(err)
	}
	if now, ready := m.Cells(); !slices.Equal(now, last) || !slices.Equal(ready, m.Rescan()) {
		t.Fatal("another state at the end")
	}
}

const oneHead = `collective allreduce ranks 2 factor 1 split 1
topology none
protocol LL
policy auto instances 1
window min 0 max 0
one-sided threads 1024 align 16`

// Packets: who reads them waits until they are written.
func TestPackets(t *testing.T) {
	m := newMachine(t, parse(t, oneHead, `gpu 0 input=1 output=1 scratch=2
channels memory 1
tb 0
  0 ppkt memory i[0] x1 -> 1.s[0] x1 packets
  1 repkt sum i[0] x1, s[1] x1 packets -> o[0] x1
gpu 1 input=1 output=1 scratch=2
channels memory 0
tb 0
  0 ppkt memory i[0] x1 -> 0.s[1] x1 packets
  1 repkt sum i[0] x1, s[0] x1 packets -> o[0] x1
`), sim.Options{})
	if _, err := m.StepThread(0, 0); err != nil {
		t.Fatal(err)
	}
	b := m.Blocked()
	if len(b) != 1 || b[0].Who != (sim.At{Step: 1}) || b[0].Kind != sim.WaitPacket || b[0].For != (sim.At{Rank: 1}) ||
		b[0].Text != "the packets of 0.s[1], to come from rank 1 tb 0 step 0 (ppkt)" {
		t.Fatalf("%+v", b)
	}
	finish(t, m)
	demanded(t, m)
	if m.Moves() != 4 {
		t.Errorf("%d moves", m.Moves())
	}
}

// Thread blocks that share an operation each do a part of every chunk, a signal waits
// to be taken, and a barrier for its parts.
func TestPartsAndSignals(t *testing.T) {
	head := strings.Replace(oneHead, "protocol LL", "protocol Simple", 1)
	half := func(r, k int) string {
		return strings.NewReplacer("PEER", []string{"1", "0"}[r], "KK", []string{"0", "1"}[k]).Replace(
			`  0 rre memory i[0] x1, PEER.i[0] x1 -> o[0] x1 part KK of 2
  1 barrier on 0 of 2
  2 SIGNAL memory on 0
`)
	}
	sig := strings.NewReplacer("SIGNAL memory on 0", "nop")
	body := "gpu 0 input=1 output=1 scratch=0\nchannels memory 1\ntb 0\n" + strings.Replace(half(0, 0), "SIGNAL", "signal", 1) + "tb 1\n" + sig.Replace(half(0, 1)) +
		"gpu 1 input=1 output=1 scratch=0\nchannels memory 0\ntb 0\n" + strings.Replace(half(1, 0), "SIGNAL", "wait", 1) + "tb 1\n" + sig.Replace(half(1, 1))
	m := newMachine(t, parse(t, head, body), sim.Options{})
	step := func(r ir.Rank, tb int32) sim.Move {
		mv, err := m.StepThread(r, tb)
		if err != nil {
			t.Fatal(err)
		}
		return mv
	}
	step(0, 1)
	c, _ := m.Content(ir.Loc{Buf: ir.Output})
	is(t, "half a chunk", c.String(), "(0:16 -, 16:32 0.0+1.0)")
	step(0, 1)
	if b := m.Blocked(); len(b) != 1 || b[0].Kind != sim.WaitBarrier || b[0].For != (sim.At{Step: 1}) || b[0].None {
		t.Fatalf("%+v", b)
	}
	step(0, 0)
	c, _ = m.Content(ir.Loc{Buf: ir.Output})
	is(t, "both halves", c.String(), "0.0+1.0")
	step(0, 0)
	step(0, 0)
	is(t, "signals", text(t, func(b *bytes.Buffer) error { return m.WriteSlots(b, 80) }), "0 -> 1 channel 0: 1 signal\n")
	finish(t, m)
	demanded(t, m)
	if len(m.Signals()) != 0 {
		t.Errorf("%+v", m.Signals())
	}
}

// A barrier holds up whoever is a round ahead.
func TestBarrierRounds(t *testing.T) {
	m := newMachine(t, parse(t, strings.Replace(oneHead, "LL", "Simple", 1), `gpu 0 input=1 output=1 scratch=0
tb 0
  0 barrier on 0 of 2
  1 barrier on 0 of 2
tb 1
  0 barrier on 0 of 2
  1 barrier on 0 of 2
gpu 1 input=1 output=1 scratch=0
`), sim.Options{})
	for _, tb := range []int32{0, 1, 1} {
		if _, err := m.StepThread(0, tb); err != nil {
			t.Fatal(err)
		}
	}
	if w, err := m.WhereIs(0, 1); err != nil || w.At.Step != 1 || w.Status != sim.Waiting || w.Wait.Text != "1 more at barrier 0, to come from rank 0 tb 0 step 1 (barrier)" {
		t.Fatalf("%v %+v", err, w)
	}
	finish(t, m)
}

// A signal that nobody gives.
func TestNobodySignals(t *testing.T) {
	m := newMachine(t, parse(t, strings.Replace(oneHead, "LL", "Simple", 1), `gpu 0 input=1 output=1 scratch=0
channels memory 1
semaphores 1
tb 0
  0 sem_acquire on 0
  1 sem_acquire on 0
tb 1
  0 wait memory on 0
gpu 1 input=1 output=1 scratch=0
channels memory 0
tb 0
`), sim.Options{})
	stop, err := m.Run(context.Background(), sim.Until{})
	if err != nil || stop.Why != sim.WhyStuck {
		t.Fatal(err, stop)
	}
	is(t, "blocked", text(t, func(b *bytes.Buffer) error { return m.WriteBlocked(b, 100) }),
		`rank 0 tb 0 step 1 (sem_acquire) waits for semaphore 0, which is 0, which nobody will give
rank 0 tb 1 step 0 (wait) waits for signal 1 of rank 1 on its channel 0, which nobody will give
`)
}
