package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/sim"
)

// parse reads a program whose head is of the given protocol, ranks and chunks.
func parse(t testing.TB, head, body string) *ir.Program {
	t.Helper()
	p, err := ir.ParseProgram(strings.NewReader("program \"hand\"\n"+head+"\n"+body), "hand.txt")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const simple3 = `collective allreduce ranks 2 factor 3 split 1 in-place
topology none
protocol Simple
policy auto instances 1
transport slots 3 bytes 4096
window min 0 max 0`

// Two ranks send three messages each, then add what they get: that takes three slots.
const sendFirst = `gpu 0 input=3 output=3 scratch=3
tb 0 send=1 recv=1 ch=0
  0 s i[0] x3 to 1
  1 r -> s[0] x3 from 1 ; hand.star:7:5
  2 re s[0] -> i[0] x3
gpu 1 input=3 output=3 scratch=3
tb 0 send=0 recv=0 ch=0
  0 s i[0] x3 to 0
  1 r -> s[0] x3 from 0
  2 re s[0] -> i[0] x3
`

func text(t *testing.T, write func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func is(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

func TestSlotsSuffice(t *testing.T) {
	m := newMachine(t, parse(t, simple3, sendFirst), sim.Options{})
	if m.Regime() != 1 || m.Depth() != 3 {
		t.Fatalf("%d chunks a message, %d slots", m.Regime(), m.Depth())
	}
	finish(t, m)
	demanded(t, m)
	if m.Moves() != 14 { // twice three messages sent, three taken, one step of its own
		t.Errorf("%d moves, want 14", m.Moves())
	}
}

// With two slots, or one, each waits for the other to take a message.
func TestTooFewSlots(t *testing.T) {
	for slots, moves := range map[int32]int{1: 2, 2: 4} {
		m := newMachine(t, parse(t, simple3, sendFirst), sim.Options{Slots: slots})
		stop, err := m.Run(context.Background(), sim.Until{})
		if err != nil || stop.Why != sim.WhyStuck || !m.Stuck() || m.Done() || m.Moves() != moves {
			t.Fatalf("%d slots: %v %+v after %d moves", slots, err, stop, m.Moves())
		}
		c := m.Cycle()
		if len(c) != 2 || c[0].Who != (sim.At{Rank: 0}) || c[1].Who != (sim.At{Rank: 1}) ||
			c[0].Kind != sim.WaitSlot || c[0].For != (sim.At{Rank: 1, Step: 1}) || c[0].Of != (sim.At{Rank: 1}) {
			t.Errorf("%d slots: %+v", slots, c)
		}
		full := map[int32]string{1: "1 is full", 2: "all 2 are full"}[slots]
		is(t, "blocked", text(t, func(b *bytes.Buffer) error { return m.WriteBlocked(b, 120) }), fmt.Sprintf(
			`rank 0 tb 0 step 0 (s) waits for a free slot on 0 -> 1 ch 0 (%[1]s), to be emptied by rank 1 tb 0 step 1 (r)
rank 1 tb 0 step 0 (s) waits for a free slot on 1 -> 0 ch 0 (%[1]s), to be emptied by rank 0 tb 0 step 1 (r)
these wait for one another, each for the next and the last for the first:
  rank 0 tb 0 step 0 (s) for a slot
  rank 1 tb 0 step 0 (s) for a slot
`, full))
		// A larger message takes fewer slots.
		finish(t, newMachine(t, parse(t, simple3, sendFirst), sim.Options{Slots: slots, Regime: 4 - slots}))
	}
}

// What is in flight and in memory, in the middle.
func TestInTheMiddle(t *testing.T) {
	m := newMachine(t, parse(t, simple3, sendFirst), sim.Options{Regime: 2})
	for _, tb := range []ir.Rank{0, 0, 1, 1, 1} {
		if _, err := m.StepThread(tb, 0); err != nil {
			t.Fatal(err)
		}
	}
	slots := text(t, func(b *bytes.Buffer) error { return m.WriteSlots(b, 80) })
	is(t, "slots", slots, `0 -> 1 ch 0 #1 from tb 0:0 for tb 0:1: 0.2
1 -> 0 ch 0 #0 from tb 0:0 for tb 0:1: 1.0, 1.1
1 -> 0 ch 0 #1 from tb 0:0 for tb 0:1: 1.2
`)
	is(t, "where", text(t, func(b *bytes.Buffer) error { return m.WriteWhere(b, sim.None, 80) }),
		`> 0:0:1      r -> s[0] x3 from 1 (0 of 2 messages) ; hand.star:7:5
> 1:0:1      r -> s[0] x3 from 0 (1 of 2 messages)
`)
	is(t, "buffers", text(t, func(b *bytes.Buffer) error { return m.WriteBuffers(b, 1, 80) }), `rank 1 input
  i[0]. 1.0  i[1]. 1.1  i[2]. 1.2
rank 1 output: the same memory as from i[0] on
rank 1 scratch
  s[0]  0.0  s[1]  0.1  s[2]  -
`)
	if _, err := m.StepThread(1, 0); err != nil {
		t.Fatal(err)
	}
	mv, err := m.StepThread(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	is(t, "move", text(t, func(b *bytes.Buffer) error { return m.WriteMove(b, mv, 80) }), `#6 rank 1 tb 0 step 2: re s[0] -> i[0] x3
  1.i[0]= 0.0+1.0, was 1.0
  1.i[1]= 0.1+1.1, was 1.1
  1.i[2]= 0.2+1.2, was 1.2
`)
	if _, err := m.StepThread(1, 0); err == nil || err.Error() != "stepping: rank 1 tb 0 has ended" {
		t.Errorf("%v", err)
	}
	if p := m.Progress(); p != (sim.Progress{Moves: 7, Final: 3, Demanded: 6, Ended: 1, TBs: 2, StepsDone: 4, Steps: 6}) {
		t.Errorf("%+v", p)
	}
	back, ok := m.Back()
	if !ok || fmt.Sprint(back.Writes[0].Before, back.Writes[0].Now) != "1.0 0.0+1.0" || back.At != mv.At || !back.Ends {
		t.Errorf("%+v", back)
	}
}

// Contents: many terms, multiplicities, junk and what is never written.
func TestContents(t *testing.T) {
	p := parse(t, strings.Replace(simple3, "ranks 2 factor 3", "ranks 1 factor 4", 1), `gpu 0 input=4 output=4 scratch=3
tb 0 send=-1 recv=-1 ch=0
  0 re i[0] -> i[1] x1
  1 re i[1] -> i[1] x1
  2 cpy s[2] -> s[0] x1
  3 re s[0] -> i[3] x1
`)
	m := newMachine(t, p, sim.Options{})
	if stop, err := m.Run(context.Background(), sim.Until{}); err != nil || stop.Why != sim.WhyDone {
		t.Fatal(err, stop)
	}
	is(t, "buffers", text(t, func(b *bytes.Buffer) error { return m.WriteBuffers(b, 0, 40) }), `rank 0 input
  i[0]= 0.0          i[1]! 0.0x2+0.1x2
  i[2]= 0.2          i[3]! junk
rank 0 output: the same memory as fro...
rank 0 scratch
  s[0]  junk  s[1]  -     s[2]  -
`)
	term := func(r ir.Rank, i int32, n uint64) sim.Term {
		return sim.Term{Contribution: ir.Contribution{Rank: r, Index: i}, Times: n}
	}
	var all, split, many []sim.Term
	for r := range ir.Rank(8) {
		all = append(all, term(r, 3, 1))
		if r != 4 {
			split = append(split, term(r, int32(r)/6, 1+uint64(r)/6))
		}
		many = append(many, term(r, int32(r), 1))
	}
	for _, c := range []struct {
		terms []sim.Term
		want  string
	}{
		{all[:3], "0.3+1.3+2.3"}, {all, "sum of 0..7 [3]"}, {split, "sum of 0..3,5 [0] + 6,7 [1]x2"}, {many, "sum of 8 chunks, 0.0 to 7.7"},
	} {
		if got := (sim.Content{State: sim.Sum, Terms: c.terms}).String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Breakpoints stop before a step, in both directions; watched locations after a move.
func TestUntil(t *testing.T) {
	ctx := context.Background()
	m := newMachine(t, parse(t, simple3, sendFirst), sim.Options{})
	run := func(u sim.Until, back bool, want sim.Stop, moves int) {
		t.Helper()
		f := m.Run
		if back {
			f = m.RunBack
		}
		got, err := f(ctx, u)
		if err != nil || got != want || m.Moves() != moves {
			t.Fatalf("%v: got %+v at %d, want %+v at %d", err, got, m.Moves(), want, moves)
		}
	}
	at := func(r ir.Rank, step int32) sim.Break { return sim.Break{Rank: r, TB: 0, Step: step} }
	stop := func(r ir.Rank, step int32) sim.Stop {
		return sim.Stop{Why: sim.WhyBreak, At: sim.At{Rank: r, Step: step}}
	}
	loc := func(r ir.Rank, b ir.BufferID, i int32) ir.Loc { return ir.Loc{Rank: r, Buf: b, Index: i} }
	run(sim.Until{Breaks: []sim.Break{at(1, 0)}}, false, stop(1, 0), 1)
	run(sim.Until{Breaks: []sim.Break{at(1, sim.None)}}, false, stop(1, 1), 7)
	run(sim.Until{Breaks: []sim.Break{at(1, sim.None)}}, false, stop(1, 2), 13)
	run(sim.Until{Breaks: []sim.Break{{Rank: sim.None, TB: 0, Step: 1}}}, true, stop(1, 1), 7)
	run(sim.Until{Changes: []ir.Loc{loc(0, ir.FirstScratch, 2)}}, false, sim.Stop{Why: sim.WhyChanged, Loc: loc(0, ir.FirstScratch, 2)}, 11)
	run(sim.Until{Finals: []ir.Loc{loc(1, ir.Output, 2)}}, false, sim.Stop{Why: sim.WhyFinal, Loc: loc(1, ir.Output, 2)}, 14)
	run(sim.Until{}, false, sim.Stop{Why: sim.WhyDone}, 14)
	run(sim.Until{Changes: []ir.Loc{loc(0, ir.Output, 0)}}, true, sim.Stop{Why: sim.WhyChanged, Loc: loc(0, ir.Output, 0)}, 12)
	run(sim.Until{Moves: 2}, true, sim.Stop{Why: sim.WhyMoves}, 10)
	run(sim.Until{When: func(_ *sim.Machine, mv *sim.Move) bool { return mv.At.Rank == 1 && mv.Ends }}, false, sim.Stop{Why: sim.WhyWhen}, 12)
	run(sim.Until{}, true, sim.Stop{Why: sim.WhyDone}, 0)
	if err := m.At(ctx, 15); err == nil || err.Error() != "stepping: there is no move 15: the program has ended after 14" {
		t.Errorf("%v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.RunBack(gone, sim.Until{}); err != context.Canceled || m.Moves() != 14 {
		t.Errorf("%v at %d", err, m.Moves())
	}
	for _, u := range []sim.Until{{Breaks: []sim.Break{at(0, 3)}}, {Breaks: []sim.Break{{Rank: 2, TB: sim.None, Step: sim.None}}},
		{Changes: []ir.Loc{loc(0, ir.Input, 3)}}, {Finals: []ir.Loc{loc(0, ir.FirstScratch, 0)}}} {
		if _, err := m.Run(ctx, u); err == nil {
			t.Errorf("%+v is accepted", u)
		}
	}
}

func TestParseBreak(t *testing.T) {
	for text, want := range map[string]sim.Break{
		"1:2:3": {Rank: 1, TB: 2, Step: 3}, "1:*": {Rank: 1, TB: -1, Step: -1}, "*:*:5": {Rank: -1, TB: -1, Step: 5}, "7": {Rank: 7, TB: -1, Step: -1},
	} {
		if got, err := sim.ParseBreak(text); err != nil || got != want {
			t.Errorf("%s: %v %+v", text, err, got)
		}
	}
	for _, text := range []string{"", "a", "1:2:3:4", "-1", "1::2", "99999999999"} {
		if _, err := sim.ParseBreak(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// Two million moves, there and back.
func TestManyMoves(t *testing.T) {
	const n = 500_000
	ctx := context.Background()
	body := ""
	for r := range 2 {
		body += fmt.Sprintf("gpu %d input=%d output=%d scratch=0\ntb 0 send=%d recv=-1 ch=0\n  0 s i[0] x%d to %d\ntb 1 send=-1 recv=%d ch=0\n  0 r -> o[%d] x%d from %d\n",
			r, n, 2*n, 1-r, n, 1-r, 1-r, (1-r)*n, n, 1-r)
	}
	m := newMachine(t, parse(t, strings.Replace(simple3, "allreduce ranks 2 factor 3 split 1 in-place", fmt.Sprintf("allgather ranks 2 factor %d split 1 in-place", n), 1), body), sim.Options{})
	first, _ := m.Cells()
	finish(t, m)
	if m.Moves() != 4*n {
		t.Fatalf("%d moves", m.Moves())
	}
	if p := m.Progress(); p.Final != 4*n || p.Demanded != 4*n {
		t.Errorf("%+v", p)
	}
	if b := m.LogBytes() / m.Moves(); b > 48 {
		t.Errorf("%d bytes a move", b)
	}
	if err := m.At(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if now, _ := m.Cells(); !slices.Equal(now, first) {
		t.Fatal("another state at the start")
	}
}

// Another choice after going back forgets the moves that were taken back.
func TestOtherChoice(t *testing.T) {
	ctx := context.Background()
	m := newMachine(t, parse(t, simple3, sendFirst), sim.Options{})
	first, _ := m.Cells()
	if err := m.At(ctx, 9); err != nil {
		t.Fatal(err)
	}
	if err := m.At(ctx, 4); err != nil {
		t.Fatal(err)
	}
	if mv, err := m.StepThread(0, 0); err != nil || mv.At.Rank != 0 || m.Recorded() != 9 {
		t.Fatalf("the same choice: %v %+v, %d moves known", err, mv, m.Recorded())
	}
	for range 2 { // at 5 it was rank 1's turn
		if _, err := m.StepThread(0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if m.Moves() != 7 || m.Recorded() != 7 {
		t.Fatalf("%d moves of %d", m.Moves(), m.Recorded())
	}
	finish(t, m)
	demanded(t, m)
	if err := m.At(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if now, _ := m.Cells(); !slices.Equal(now, first) {
		t.Error("another state at the start")
	}
}

// Seeds draw schedules, each always the same one.
func TestSeeds(t *testing.T) {
	p := compile(t, "allreduce_ring", map[string]string{"ranks": "4"}, compiler.Options{Target: ir.TargetNative, SlotBytes: 64})
	schedules := map[string]bool{}
	for seed := range uint64(10) {
		var twice [2]string
		for i := range twice {
			m := newMachine(t, p, sim.Options{Seed: seed})
			for mv, ok := m.Step(); ok; mv, ok = m.Step() {
				twice[i] += fmt.Sprint(mv.At, " ")
			}
		}
		if twice[0] != twice[1] {
			t.Errorf("seed %d: two schedules", seed)
		}
		schedules[twice[0]] = true
	}
	if len(schedules) != 10 {
		t.Errorf("%d schedules of 10 seeds", len(schedules))
	}
}

// Chunks at the wrong place: as many terms as demanded, but others. That the same value is
// right elsewhere doesn't help.
func TestWrongPlace(t *testing.T) {
	m := newMachine(t, parse(t, strings.Replace(simple3, "allreduce ranks 2 factor 3 split 1 in-place", "alltoall ranks 2 factor 1 split 1", 1), `gpu 0 input=2 output=2 scratch=0
tb 0 send=1 recv=1 ch=0
  0 cpy i[0] -> o[0] x1
  1 s i[0] x1 to 1
  2 r -> o[1] x1 from 1
gpu 1 input=2 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 cpy i[1] -> o[1] x1
  1 s i[0] x1 to 0
  2 r -> o[0] x1 from 0
`), sim.Options{})
	if stop, err := m.Run(context.Background(), sim.Until{}); err != nil || stop.Why != sim.WhyDone {
		t.Fatal(err, stop)
	}
	// Rank 1 should have got chunk 1 of rank 0 and has got chunk 0.
	if p := m.Progress(); p.Wrong != 1 || p.Final != 7 || p.Demanded != 8 {
		t.Errorf("%+v", p)
	}
	is(t, "rank 1", text(t, func(b *bytes.Buffer) error { return m.WriteBuffers(b, 1, 80) }),
		"rank 1 input\n  i[0]= 1.0  i[1]= 1.1\nrank 1 output\n  o[0]! 0.0  o[1]= 1.1\n")
}

// In a reduce_scatter in place outputs are parts of the input.
func TestPartOfInput(t *testing.T) {
	m := newMachine(t, parse(t, strings.Replace(simple3, "allreduce ranks 2 factor 3 split 1", "reduce_scatter ranks 2 factor 1 split 1", 1), `gpu 0 input=2 output=1 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s i[1] x1 to 1
  1 rrc i[0] -> o[0] x1 from 1
gpu 1 input=2 output=1 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s i[0] x1 to 0
  1 rrc o[0] -> i[1] x1 from 0
`), sim.Options{})
	finish(t, m)
	is(t, "rank 1", text(t, func(b *bytes.Buffer) error { return m.WriteBuffers(b, 1, 80) }),
		"rank 1 input\n  i[0]  1.0      i[1]= 0.1+1.1\nrank 1 output: the same memory as from i[1] on\n")
}

// Several steps on one connection: which of them a message in flight belongs to, and
// whom a receiver waits for.
func TestSeveralSteps(t *testing.T) {
	m := newMachine(t, parse(t, simple3, `gpu 0 input=3 output=3 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] x1 to 1
  1 s i[1] x2 to 1
gpu 1 input=3 output=3 scratch=2
tb 0 send=-1 recv=0 ch=0
  0 r -> s[0] x1 from 0
  1 r -> s[0] x2 from 0
`), sim.Options{Regime: 2})
	step := func(r ir.Rank) {
		t.Helper()
		if _, err := m.StepThread(r, 0); err != nil {
			t.Fatal(err)
		}
	}
	step(0)
	step(1)
	if b := m.Blocked(); len(b) != 1 || b[0].For != (sim.At{Step: 1}) || b[0].Of != (sim.At{Step: 1}) ||
		b[0].Text != "message 2 of 2 on 0 -> 1 ch 0, to be sent by rank 0 tb 0 step 1 (s)" {
		t.Fatalf("%+v", b)
	}
	step(0)
	is(t, "slots", text(t, func(b *bytes.Buffer) error { return m.WriteSlots(b, 80) }), "0 -> 1 ch 0 #1 from tb 0:1 for tb 0:1: 0.1, 0.2\n")
}

// A line is never longer than asked for.
func TestWidth(t *testing.T) {
	p := compile(t, "allreduce_ring", map[string]string{"ranks": "12"}, compiler.Options{Target: ir.TargetNative, SlotBytes: 64})
	for _, width := range []int{20, 40, 80} {
		m := newMachine(t, p, sim.Options{Seed: 3})
		for range 400 {
			mv, ok := m.Step()
			if !ok {
				break
			}
			out := text(t, func(b *bytes.Buffer) error {
				return errors.Join(m.WriteBuffers(b, mv.At.Rank, width), m.WriteSlots(b, width), m.WriteBlocked(b, width),
					m.WriteWhere(b, sim.None, width), m.WriteMove(b, mv, width))
			})
			for _, l := range strings.Split(out, "\n") {
				if len(l) > width {
					t.Fatalf("%d columns: %q", width, l)
				}
			}
		}
	}
}
