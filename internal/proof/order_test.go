package proof

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/randprog"
	"github.com/mscclsh/mscclsh/ir"
)

const (
	// What a rank sends comes back to another of its thread blocks.
	back1 = `collective custom name "back" ranks 2 factor 1 split 1
input 1*2
output 1*2
expect 0 0: 0.0
expect 1 0: 0.0`
	backSum = `collective custom name "back" ranks 2 factor 1 split 1
input 1*2
output 1*2
expect 0 0: 0.0 0.0
expect 1 0: 0.0`
	back2 = `collective custom name "back" ranks 2 factor 1 split 1 in-place
input 3*2
output 3*2
expect 0 0: 0.1
expect 0 1: 0.2
expect 0 2: 0.2
expect 1 0: 0.1
expect 1 1: 0.2`
	back2Up = `collective custom name "back" ranks 2 factor 1 split 1 in-place
input 3*2
output 3*2
expect 0 0: 0.0
expect 0 1: 0.0
expect 0 2: 0.1
expect 1 0: 0.0
expect 1 1: 0.1`
	// Rank 0 passes on what rank 2 sends, and it comes back from rank 1.
	pass3 = `collective custom name "pass" ranks 3 factor 1 split 1
input 1*3
output 3*3
expect 0 0: 2.0
expect 0 1: 2.0
expect 0 2: 2.0
expect 1 0: 2.0`
)

// orders are programs in which a message has to bring order between two thread blocks
// of rank 0, with verdicts worked out by hand: with Simple, whose messages tell of all
// that came before them, and with LL and LL128, whose messages tell of themselves.
var orders = []struct {
	name, collective, ranks string
	simple, flagged         verdict
}{
	{"what was sent is overwritten by what comes back", reduce2, `
gpu 0 input=1 output=1 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] x1 to 1 at i[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> i[0] x1 from 1 at i[0]
gpu 1 input=1 output=1 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rrcs i[0] -> i[0] x1 from 0 to 0 at i[0]
`, verdict{minSlots: 1}, verdict{minSlots: 1}}, // the value was read when it was sent
	{"a chunk overwritten by the message of the one after", back2, `
gpu 0 input=3 output=3 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[1] x2 to 1 at i[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> i[0] x2 from 1 at i[0]
gpu 1 input=3 output=3 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> i[0] x2 from 0 to 0 at i[0]
`, verdict{minSlots: 1}, verdict{errors: race, minSlots: 1}}, // the second may be back before the first is read
	{"a chunk overwritten by the message of the one before", back2Up, `
gpu 0 input=3 output=3 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] x2 to 1 at i[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> i[1] x2 from 1 at i[0]
gpu 1 input=3 output=3 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> i[0] x2 from 0 to 0 at i[1]
`, verdict{errors: race, minSlots: 1}, verdict{errors: race, minSlots: 1}},
	{"the same, held up until another thread block tells that all was sent", back2Up, `
gpu 0 input=3 output=3 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] x2 to 1 at i[0] post
tb 1 send=-1 recv=1 ch=0
  0 r -> i[1] x2 from 1 at i[0]
tb 2 send=1 recv=-1 ch=1
  0 s i[0] x1 to 1 at i[0] wait 0:0
gpu 1 input=3 output=3 scratch=1
tb 0 send=0 recv=0 ch=0
  0 rcs -> i[0] x2 from 0 to 0 at i[1] wait 1:0
tb 1 send=-1 recv=0 ch=1
  0 r -> s[0] x1 from 0 at i[0] post
`, verdict{minSlots: 2}, verdict{minSlots: 2}}, // the step that passes it on begins after all was sent, so all is under way
	{"the same by way of two steps", back2Up, `
gpu 0 input=3 output=3 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] x2 to 1 at i[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> i[1] x2 from 1 at i[0]
gpu 1 input=3 output=3 scratch=0
tb 0 send=0 recv=0 ch=0
  0 r -> i[0] x2 from 0 at i[0]
  1 s i[0] x2 to 0 at i[1]
`, verdict{minSlots: 1}, verdict{minSlots: 1}}, // all was taken before anything comes back
	{"the one after by way of two steps", back2, `
gpu 0 input=3 output=3 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[1] x2 to 1 at i[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> i[0] x2 from 1 at i[0]
gpu 1 input=3 output=3 scratch=0
tb 0 send=0 recv=0 ch=0
  0 r -> i[0] x2 from 0 at i[0]
  1 s i[0] x2 to 0 at i[0]
`, verdict{minSlots: 1}, verdict{minSlots: 1}},
	{"the other chunk by way of two thread blocks", back2, `
gpu 0 input=3 output=3 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[1] x2 to 1 at i[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> i[0] x2 from 1 at i[0]
gpu 1 input=3 output=3 scratch=0
tb 0 send=-1 recv=0 ch=0
  0 r -> i[0] x2 from 0 at i[0] post
tb 1 send=0 recv=-1 ch=0
  0 s i[0] x2 to 0 at i[0] wait 0:0
`, verdict{minSlots: 1}, verdict{minSlots: 1}}, // who waits for a step waits for all of it
	{"what was stored and sent is read after a message", pass3, `
gpu 0 input=1 output=3 scratch=0
tb 0 send=1 recv=2 ch=0
  0 rcs -> o[0] x1 from 2 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> o[1] x1 from 1 at o[0]
  1 cpy o[0] -> o[2] x1
gpu 1 input=1 output=3 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> o[0] x1 from 0 to 0 at o[1]
gpu 2 input=1 output=3 scratch=0
tb 0 send=0 recv=-1 ch=0
  0 s i[0] x1 to 0 at o[0]
`, verdict{minSlots: 1}, verdict{errors: race, minSlots: 1}}, // it may be stored after it was sent
	{"the same by way of two steps of the other rank", pass3, `
gpu 0 input=1 output=3 scratch=0
tb 0 send=1 recv=2 ch=0
  0 rcs -> o[0] x1 from 2 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> o[1] x1 from 1 at o[0]
  1 cpy o[0] -> o[2] x1
gpu 1 input=1 output=3 scratch=0
tb 0 send=0 recv=0 ch=0
  0 r -> o[0] x1 from 0 at o[0]
  1 s o[0] x1 to 0 at o[1]
gpu 2 input=1 output=3 scratch=0
tb 0 send=0 recv=-1 ch=0
  0 s i[0] x1 to 0 at o[0]
`, verdict{minSlots: 1}, verdict{errors: race, minSlots: 1}}, // what isn't stored when it is sent helps nobody later
	{"the same in two steps of rank 0", pass3, `
gpu 0 input=1 output=3 scratch=0
tb 0 send=1 recv=2 ch=0
  0 r -> o[0] x1 from 2 at o[0]
  1 s o[0] x1 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> o[1] x1 from 1 at o[0]
  1 cpy o[0] -> o[2] x1
gpu 1 input=1 output=3 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> o[0] x1 from 0 to 0 at o[1]
gpu 2 input=1 output=3 scratch=0
tb 0 send=0 recv=-1 ch=0
  0 s i[0] x1 to 0 at o[0]
`, verdict{minSlots: 1}, verdict{minSlots: 1}}, // the step that stores has ended before the other begins
	{"the same with a wait", pass3, `
gpu 0 input=1 output=3 scratch=0
tb 0 send=1 recv=2 ch=0
  0 rcs -> o[0] x1 from 2 to 1 at o[0] post
tb 1 send=-1 recv=1 ch=0
  0 r -> o[1] x1 from 1 at o[0]
  1 cpy o[0] -> o[2] x1 wait 0:0
gpu 1 input=1 output=3 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> o[0] x1 from 0 to 0 at o[1]
gpu 2 input=1 output=3 scratch=0
tb 0 send=0 recv=-1 ch=0
  0 s i[0] x1 to 0 at o[0]
`, verdict{minSlots: 1}, verdict{minSlots: 1}},
	{"what was stored and sent is overwritten by what comes back", `collective custom name "pass" ranks 3 factor 1 split 1
input 1*3
output 3*3
expect 0 0: 2.0
expect 1 0: 2.0`, `
gpu 0 input=1 output=3 scratch=0
tb 0 send=1 recv=2 ch=0
  0 rcs -> o[0] x1 from 2 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> o[0] x1 from 1 at o[0]
gpu 1 input=1 output=3 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> o[0] x1 from 0 to 0 at o[0]
gpu 2 input=1 output=3 scratch=0
tb 0 send=0 recv=-1 ch=0
  0 s i[0] x1 to 0 at o[0]
`, verdict{minSlots: 1}, verdict{errors: race, minSlots: 1}},
	{"the same in scratch that nobody looks at", `collective custom name "pass" ranks 3 factor 1 split 1
input 1*3
output 3*3
expect 1 0: 2.0`, `
gpu 0 input=1 output=3 scratch=1
tb 0 send=1 recv=2 ch=0
  0 rcs -> s[0] x1 from 2 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> s[0] x1 from 1 at o[0]
gpu 1 input=1 output=3 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> o[0] x1 from 0 to 0 at s[0]
gpu 2 input=1 output=3 scratch=0
tb 0 send=0 recv=-1 ch=0
  0 s i[0] x1 to 0 at s[0]
`, verdict{minSlots: 1}, verdict{deadRace: true, minSlots: 1}},
	{"an operand stored before the message was sent", backSum, `
gpu 0 input=1 output=1 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 cpy i[0] -> o[0] x1
  1 s i[0] x1 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 rrc o[0] -> o[0] x1 from 1 at o[0]
gpu 1 input=1 output=1 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> o[0] x1 from 0 to 0 at o[0]
`, verdict{minSlots: 1}, verdict{errors: race, minSlots: 1}}, // it may be read before the message is there
	{"the same with a wait for the copy", backSum, `
gpu 0 input=1 output=1 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 cpy i[0] -> o[0] x1 post
  1 s i[0] x1 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 rrc o[0] -> o[0] x1 from 1 at o[0] wait 0:0
gpu 1 input=1 output=1 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> o[0] x1 from 0 to 0 at o[0]
`, verdict{minSlots: 1}, verdict{minSlots: 1}},
	{"an operand read by the step after the receive", backSum, `
gpu 0 input=1 output=1 scratch=1
tb 0 send=1 recv=-1 ch=0
  0 cpy i[0] -> o[0] x1
  1 s i[0] x1 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> s[0] x1 from 1 at o[0]
  1 re s[0] -> o[0] x1
gpu 1 input=1 output=1 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> o[0] x1 from 0 to 0 at s[0]
`, verdict{minSlots: 1}, verdict{minSlots: 1}}, // the step begins when the receive has ended
	{"what was stored is overwritten after a message", back1, `
gpu 0 input=1 output=1 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 cpy i[0] -> o[0] x1
  1 s i[0] x1 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> o[0] x1 from 1 at o[0]
gpu 1 input=1 output=1 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> o[0] x1 from 0 to 0 at o[0]
`, verdict{minSlots: 1}, verdict{minSlots: 1}}, // nothing is stored before the message is there
	{"what was read by a step before is overwritten by what comes back", back1, `
gpu 0 input=1 output=1 scratch=1
tb 0 send=1 recv=-1 ch=0
  0 cpy o[0] -> s[0] x1
  1 s i[0] x1 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> o[0] x1 from 1 at o[0]
gpu 1 input=1 output=1 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rcs -> o[0] x1 from 0 to 0 at o[0]
`, verdict{minSlots: 1}, verdict{minSlots: 1}},
}

// orderPrograms are those above with LL and LL128, to make mutants of.
func orderPrograms(t *testing.T) []source {
	t.Helper()
	var out []source
	for _, c := range orders {
		for _, protocol := range []ir.Protocol{ir.LL, ir.LL128} {
			p := tiny(t, c.collective, strings.TrimPrefix(c.ranks, "\n"))
			p.Protocol = protocol
			out = append(out, source{name: fmt.Sprintf("%s (%v)", c.name, protocol), p: p})
		}
	}
	return out
}

// judged holds explorer, judge and checker to a verdict.
func judged(t *testing.T, p *ir.Program, want verdict) {
	t.Helper()
	e, err := explore(p, effort{runs: 1000, positions: 1000})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := checked(p)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]verdict{"explorer": e.verdict, "judge": new(judge).decide(p).verdict, "checker": got} {
		if differ(v, want) != "" {
			t.Errorf("%v: %s: got %v, want %v", p.Protocol, name, v, want)
		}
	}
	if !e.complete {
		t.Error("not all interleavings were tried")
	}
}

func TestOrders(t *testing.T) {
	for _, c := range orders {
		t.Run(c.name, func(t *testing.T) {
			p := tiny(t, c.collective, strings.TrimPrefix(c.ranks, "\n"))
			judged(t, p, c.simple)
			for _, protocol := range []ir.Protocol{ir.LL, ir.LL128} {
				p.Spec = withProtocol(p.Spec, protocol)
				judged(t, p, c.flagged)
			}
		})
	}
}

// TestOrderFiles judges programs that went wrong with LL and LL128 on real devices: made
// by rules that hold with Simple, they lack waits.
func TestOrderFiles(t *testing.T) {
	files, err := filepath.Glob("../../runtime/cuda/testdata/order/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ir.ParseProgram(bytes.NewReader(data), file)
		if err != nil {
			t.Fatal(err)
		}
		if !flagged(p) {
			continue
		}
		tried++
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, c := range []struct {
				p    *ir.Program
				want classes
			}{{p, race}, {asSimple(p), 0}} {
				e, err := explore(c.p, effort{runs: 100, positions: 100})
				if err != nil {
					t.Fatal(err)
				}
				got, _, err := checked(c.p)
				if err != nil {
					t.Fatal(err)
				}
				for name, v := range map[string]verdict{"explorer": e.verdict, "judge": new(judge).decide(c.p).verdict, "checker": got} {
					if v.errors&^(wrongResult|clobbered) != c.want || v.right() != (c.want == 0) {
						t.Errorf("%v: %s: got %v, want %v", c.p.Protocol, name, v, c.want)
					}
				}
			}
		})
	}
	if tried < 5 {
		t.Errorf("%d programs of LL and LL128, want 5", tried)
	}
}

// TestFlaggedCompiled demands that what the compiler makes of random programs for LL
// and LL128 is right by checker and judge: it has to leave in the waits that messages
// there don't make superfluous.
func TestFlaggedCompiled(t *testing.T) {
	count := uint64(amount("MSCCLSH_PROGRAMS", 3000)) / 3
	var j judge
	needed := 0
	for seed := range count {
		rng := rand.New(rand.NewPCG(seed, 0x666c616773)) // any constant: a stream of its own
		d, err := randprog.Generate(rng, randprog.Options{MaxRanks: 4, MaxChunks: 4, MaxOps: 14, MaxInstances: 2, MaxTerms: 8})
		if err != nil {
			t.Fatal(err)
		}
		o := compiler.Options{Target: ir.Target(rng.IntN(len(ir.TargetNames())))}
		compiled := func(protocol ir.Protocol) *ir.Program {
			d.Spec = withProtocol(d.Spec, protocol)
			r, err := compiler.Compile(context.Background(), d, o)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return r.Program
		}
		p := compiled(ir.LL + ir.Protocol(rng.IntN(2)))
		got, rep, err := checked(p)
		if err != nil {
			t.Fatal(err)
		}
		if v := j.decide(p).verdict; !v.right() || differ(got, v) != "" {
			t.Fatalf("seed %d: judge: %v, checker: %v: %v\n%s", seed, v, got, rep.Messages, textOf(p))
		}
		q := *compiled(ir.Simple)
		q.Spec = p.Spec
		if !j.decide(&q).right() {
			needed++
		}
	}
	t.Logf("%d programs, of which %d need a wait that they would not with Simple", count, needed)
	if count >= 500 && 100*uint64(needed) < count {
		t.Errorf("want a hundredth that do")
	}
}
