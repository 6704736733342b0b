package cpu_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

// seeds is how many seeds a chaos test tries: MSCCLSH_SEEDS, else n.
func seeds(n int) uint64 {
	if v, err := strconv.Atoi(os.Getenv("MSCCLSH_SEEDS")); err == nil {
		return uint64(v)
	}
	return uint64(n)
}

const chaosHead = `topology none
protocol Simple
policy auto instances 1
transport slots 2 bytes 2097152
window min 0 max 0
`

// Two ranks exchange two chunks each way, sends before receives, on one thread
// block: it takes two slots, which can be counted by hand.
const exchange = `program "exchange"
collective alltoall ranks 2 factor 2 split 1
` + chaosHead + `gpu 0 input=4 output=4 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s i[2] x1 to 1 at o[0]
  1 s i[3] x1 to 1 at o[1]
  2 cpy i[0] -> o[0] x2
  3 r -> o[2] x1 from 1 at i[0]
  4 r -> o[3] x1 from 1 at i[1]
gpu 1 input=4 output=4 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s i[0] x1 to 0 at o[2]
  1 s i[1] x1 to 0 at o[3]
  2 cpy i[2] -> o[2] x2
  3 r -> o[0] x1 from 0 at i[2]
  4 r -> o[1] x1 from 0 at i[3]
`

// A thread block copies what another has received, without waiting for it.
const racy = `program "racy"
collective alltonext ranks 2 factor 1 split 1
` + chaosHead + `gpu 0 input=1 output=1 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] x1 to 1 at s[0]
gpu 1 input=1 output=1 scratch=1
tb 0 send=-1 recv=0 ch=0
  0 r -> s[0] x1 from 0 at i[0]
tb 1 send=-1 recv=-1 ch=0
  0 cpy s[0] -> o[0] x1
`

func chaosProgram(t *testing.T, text string) *ir.Program {
	t.Helper()
	p, err := ir.ParseProgram(strings.NewReader(text), "chaos.txt")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A right program gives the same bits under every seed and every depth from the
// least on; below it, every seed deadlocks.
func TestChaosKeepsRightProgramsRight(t *testing.T) {
	p := chaosProgram(t, exchange)
	var first [][]byte
	for seed := range seeds(200) {
		o := cpu.Options{Bytes: 4096, DType: runtime.FP32, Seed: 7, KeepOutputs: true,
			Chaos: &cpu.Chaos{Seed: seed, Slots: 2 + int32(seed%3)}}
		r, err := cpu.Run(context.Background(), p, o)
		if err != nil || !r.Verified {
			t.Fatalf("seed %d: %v, %+v", seed, err, r)
		}
		if first == nil {
			first = r.Outputs
		}
		for q := range first {
			if !bytes.Equal(first[q], r.Outputs[q]) {
				t.Fatalf("seed %d: rank %d has other bits than with seed 0", seed, q)
			}
		}
		o.Chaos.Slots = 1
		if _, err := cpu.Run(context.Background(), p, o); err == nil || !strings.Contains(err.Error(), "deadlock") {
			t.Fatalf("seed %d with one slot: got %v, want a deadlock", seed, err)
		}
	}
}

// A race shows under some seeds and not under others, and the same seed shows the
// same.
func TestChaosShowsRaces(t *testing.T) {
	p := chaosProgram(t, racy)
	right, wrong := 0, 0
	for seed := range uint64(64) {
		var verified [2]bool
		for k := range verified {
			r, err := cpu.Run(context.Background(), p, cpu.Options{Bytes: 64, DType: runtime.FP32, Seed: 7, Exact: true, Chaos: &cpu.Chaos{Seed: seed}})
			if err != nil {
				t.Fatal(err)
			}
			verified[k] = r.Verified
		}
		if verified[0] != verified[1] {
			t.Fatalf("seed %d gave two outcomes", seed)
		}
		if verified[0] {
			right++
		} else {
			wrong++
		}
	}
	if right == 0 || wrong == 0 {
		t.Errorf("64 seeds: %d right, %d wrong, want some of both", right, wrong)
	}
}

// passedBack are programs of which rank 1 passes on what rank 0 sends and rank 0 gets it
// back on another thread block, with only messages in between: the first three race with
// LL and LL128 and with nothing else, the fourth doesn't (docs/checker.md, what a
// message orders).
var passedBack = []struct {
	name, program string
	racy          bool
}{
	{"stored after it was sent", `collective custom name "p" ranks 3 factor 1 split 1
input 1*3
output 1*3
expect 0 0: 2.0
` + chaosHead + `gpu 0 input=1 output=1 scratch=2
tb 0 send=1 recv=2 ch=0
  0 rcs -> s[0] x1 from 2 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> s[1] x1 from 1 at o[0]
  1 cpy s[0] -> o[0] x1
gpu 1 input=1 output=1 scratch=1
tb 0 send=0 recv=0 ch=0
  0 rcs -> s[0] x1 from 0 to 0 at o[0]
gpu 2 input=1 output=1 scratch=0
tb 0 send=0 recv=-1 ch=0
  0 s i[0] x1 to 0 at o[0]
`, true},
	{"read before the message came", `collective custom name "p" ranks 2 factor 1 split 1
input 1*2
output 1*2
expect 0 0: 0.0 0.0
` + chaosHead + `gpu 0 input=1 output=1 scratch=1
tb 0 send=1 recv=-1 ch=0
  0 cpy i[0] -> s[0] x1
  1 s s[0] x1 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 rrc s[0] -> o[0] x1 from 1 at o[0]
gpu 1 input=1 output=1 scratch=1
tb 0 send=0 recv=0 ch=0
  0 rcs -> s[0] x1 from 0 to 0 at o[0]
`, true},
	{"overwritten by another chunk", `collective custom name "p" ranks 2 factor 1 split 1 in-place
input 3*2
output 3*2
expect 0 0: 0.1
expect 0 1: 0.2
` + chaosHead + `gpu 0 input=3 output=3 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[1] x2 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> i[0] x2 from 1 at o[0]
gpu 1 input=3 output=3 scratch=2
tb 0 send=0 recv=0 ch=0
  0 rcs -> s[0] x2 from 0 to 0 at o[0]
`, true},
	{"overwritten by the same chunk", `collective custom name "p" ranks 2 factor 1 split 1 in-place
input 3*2
output 3*2
expect 0 1: 0.1
expect 0 2: 0.2
` + chaosHead + `gpu 0 input=3 output=3 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[1] x2 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r -> i[1] x2 from 1 at o[0]
gpu 1 input=3 output=3 scratch=2
tb 0 send=0 recv=0 ch=0
  0 rcs -> s[0] x2 from 0 to 0 at o[0]
`, false},
}

// With LL and LL128 a message orders only what it brings: what relies on more goes wrong
// under some seeds, and under none with Simple.
func TestChaosOfFlags(t *testing.T) {
	for _, c := range passedBack {
		for _, protocol := range []ir.Protocol{ir.Simple, ir.LL, ir.LL128} {
			p := chaosProgram(t, "program \"p\"\n"+c.program)
			p.Protocol = protocol
			wrong := 0
			for seed := range uint64(200) {
				r, err := cpu.Run(context.Background(), p, cpu.Options{Bytes: 4 * 8 * int64(p.Coll.NumChunks()), DType: runtime.FP32, Seed: seed,
					Exact: true, Chaos: &cpu.Chaos{Seed: seed}})
				if err != nil {
					t.Fatal(err)
				}
				if !r.Verified {
					wrong++
				}
			}
			if want := c.racy && protocol != ir.Simple; wrong > 0 != want {
				t.Errorf("%s, %v: %d of 200 seeds are wrong, want some: %v", c.name, protocol, wrong, want)
			}
			t.Logf("%s, %v: %d of 200 seeds are wrong", c.name, protocol, wrong)
		}
	}
}

// A chaotic run ends with its context as any other.
func TestChaosEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := cpu.Run(ctx, chaosProgram(t, exchange), cpu.Options{Bytes: 1 << 20, DType: runtime.FP32, Iterations: 1 << 20, NoVerify: true,
		Chaos: &cpu.Chaos{Seed: 1}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}
