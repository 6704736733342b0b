package proof

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// tiny is a program of two or three ranks in the text form, without its header:
// what collective, then the ranks. 2 slots of 8 bytes, any size.
func tiny(t *testing.T, collective, ranks string) *ir.Program {
	t.Helper()
	n := 2
	if strings.Contains(collective, " ranks 3 ") {
		n = 3
	}
	text := "program \"tiny\"\n" + collective + fmt.Sprintf("\ntopology \"FullyConnected\" ranks %d\nprotocol Simple\npolicy auto instances 1\n", n) +
		"transport slots 2 bytes 8\nwindow min 0 max 0\n" + ranks
	p, err := ir.ParseProgram(strings.NewReader(text), "tiny")
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return p
}

const (
	// Two ranks that exchange their chunk, of two and of one chunk each.
	gather2 = "collective allgather ranks 2 factor 1 split 1 in-place"
	reduce2 = "collective allreduce ranks 2 factor 1 split 1 in-place"
	gatherO = "collective allgather ranks 2 factor 1 split 1"
)

// cases are programs whose verdict is worked out by hand.
var cases = []struct {
	name, collective, ranks string
	want                    verdict
}{
	{"an exchange", gather2, `
gpu 0 input=1 output=2 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s o[0] -> o[0] x1 to 1 at o[0]
  1 r o[1] -> o[1] x1 from 1 at o[1]
gpu 1 input=1 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s o[1] -> o[1] x1 to 0 at o[1]
  1 r o[0] -> o[0] x1 from 0 at o[0]
`, verdict{minSlots: 1}},
	{"both receive first", gather2, `
gpu 0 input=1 output=2 scratch=0
tb 0 send=1 recv=1 ch=0
  0 r o[1] -> o[1] x1 from 1 at o[1]
  1 s o[0] -> o[0] x1 to 1 at o[0]
gpu 1 input=1 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 r o[0] -> o[0] x1 from 0 at o[0]
  1 s o[1] -> o[1] x1 to 0 at o[1]
`, verdict{errors: deadlock}},
	{"three messages before any is taken", "collective allgather ranks 2 factor 3 split 1 in-place", `
gpu 0 input=3 output=6 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s o[0] -> o[0] x3 to 1 at o[0]
  1 r o[3] -> o[3] x3 from 1 at o[3]
gpu 1 input=3 output=6 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s o[3] -> o[3] x3 to 0 at o[3]
  1 r o[0] -> o[0] x3 from 0 at o[0]
`, verdict{errors: deadlock, minSlots: 3}},
	{"out of place, own chunk not copied", gatherO, `
gpu 0 input=1 output=2 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s i[0] -> o[0] x1 to 1 at o[0]
  1 r o[1] -> o[1] x1 from 1 at o[1]
gpu 1 input=1 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s i[0] -> o[1] x1 to 0 at o[1]
  1 r o[0] -> o[0] x1 from 0 at o[0]
  2 cpy i[0] -> o[1] x1 at o[1]
`, verdict{errors: wrongResult, minSlots: 1}},
	{"out of place, an input overwritten", gatherO, `
gpu 0 input=1 output=2 scratch=0
tb 0 send=1 recv=1 ch=0
  0 cpy i[0] -> o[0] x1 at o[0]
  1 s i[0] -> o[0] x1 to 1 at o[0]
  2 r o[1] -> o[1] x1 from 1 at o[1]
  3 cpy o[1] -> i[0] x1 at i[0]
gpu 1 input=1 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s i[0] -> o[1] x1 to 0 at o[1]
  1 r o[0] -> o[0] x1 from 0 at o[0]
  2 cpy i[0] -> o[1] x1 at o[1]
`, verdict{errors: clobbered, minSlots: 1}},
	{"a receive that need not wait for the send of what it overwrites", reduce2, `
gpu 0 input=1 output=1 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] -> i[0] x1 to 1 at i[0]
tb 1 send=-1 recv=1 ch=0
  0 r i[0] -> i[0] x1 from 1 at i[0]
gpu 1 input=1 output=1 scratch=0
tb 0 send=0 recv=0 ch=0
  0 rrcs i[0] -> i[0] x1 from 0 to 0 at i[0]
`, verdict{minSlots: 1}}, // the message that comes back was sent after it
	{"two ranks that add and overwrite in two thread blocks", reduce2, `
gpu 0 input=1 output=1 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] -> i[0] x1 to 1 at i[0]
tb 1 send=-1 recv=1 ch=0
  0 rrc i[0] -> i[0] x1 from 1 at i[0]
gpu 1 input=1 output=1 scratch=0
tb 0 send=0 recv=-1 ch=0
  0 s i[0] -> i[0] x1 to 0 at i[0]
tb 1 send=-1 recv=0 ch=0
  0 rrc i[0] -> i[0] x1 from 0 at i[0]
`, verdict{errors: race, minSlots: 1}},
	{"the same, waiting", reduce2, `
gpu 0 input=1 output=1 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] -> i[0] x1 to 1 at i[0] post
tb 1 send=-1 recv=1 ch=0
  0 rrc i[0] -> i[0] x1 from 1 at i[0] wait 0:0
gpu 1 input=1 output=1 scratch=0
tb 0 send=0 recv=-1 ch=0
  0 s i[0] -> i[0] x1 to 0 at i[0] post
tb 1 send=-1 recv=0 ch=0
  0 rrc i[0] -> i[0] x1 from 0 at i[0] wait 0:0
`, verdict{minSlots: 1}},
	{"a race in scratch that nobody looks at", gather2, `
gpu 0 input=1 output=2 scratch=1
tb 0 send=1 recv=1 ch=0
  0 s o[0] -> o[0] x1 to 1 at o[0]
  1 r o[1] -> o[1] x1 from 1 at o[1]
  2 cpy o[0] -> s[0] x1 at s[0]
tb 1 send=-1 recv=-1 ch=0
  0 cpy o[0] -> s[0] x1 at s[0]
gpu 1 input=1 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s o[1] -> o[1] x1 to 0 at o[1]
  1 r o[0] -> o[0] x1 from 0 at o[0]
`, verdict{deadRace: true, minSlots: 1}},
	{"a copy onto itself that may undo a receive", gather2, `
gpu 0 input=1 output=2 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s o[0] -> o[0] x1 to 1 at o[0]
  1 r o[1] -> o[1] x1 from 1 at o[1]
tb 1 send=-1 recv=-1 ch=0
  0 cpy o[1] -> o[1] x1 at o[1]
gpu 1 input=1 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s o[1] -> o[1] x1 to 0 at o[1]
  1 r o[0] -> o[0] x1 from 0 at o[0]
`, verdict{errors: race, minSlots: 1}},
	{"a copy of what is sent onto itself", gather2, `
gpu 0 input=1 output=2 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s o[0] -> o[0] x1 to 1 at o[0]
  1 r o[1] -> o[1] x1 from 1 at o[1]
tb 1 send=-1 recv=-1 ch=0
  0 cpy i[0] -> o[0] x1 at o[0]
gpu 1 input=1 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s o[1] -> o[1] x1 to 0 at o[1]
  1 r o[0] -> o[0] x1 from 0 at o[0]
`, verdict{minSlots: 1}},
	{"different counts at the ends of a connection", "collective allgather ranks 2 factor 2 split 1 in-place", `
gpu 0 input=2 output=4 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s o[0] -> o[0] x2 to 1 at o[0]
  1 r o[2] -> o[2] x2 from 1 at o[2]
gpu 1 input=2 output=4 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s o[2] -> o[2] x2 to 0 at o[2]
  1 r o[0] -> o[0] x1 from 0 at o[0]
  2 r o[1] -> o[1] x1 from 0 at o[1]
`, verdict{errors: counts}},
	{"two owners of a connection", gather2, `
gpu 0 input=1 output=2 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s o[0] -> o[0] x1 to 1 at o[0]
tb 1 send=1 recv=1 ch=0
  0 r o[1] -> o[1] x1 from 1 at o[1]
gpu 1 input=1 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s o[1] -> o[1] x1 to 0 at o[1]
  1 r o[0] -> o[0] x1 from 0 at o[0]
`, verdict{errors: owner}},
	{"a wait for a step that doesn't post", gather2, `
gpu 0 input=1 output=2 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s o[0] -> o[0] x1 to 1 at o[0]
tb 1 send=-1 recv=1 ch=0
  0 r o[1] -> o[1] x1 from 1 at o[1] wait 0:0
gpu 1 input=1 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s o[1] -> o[1] x1 to 0 at o[1]
  1 r o[0] -> o[0] x1 from 0 at o[0]
`, verdict{errors: dependency}},
	{"a place outside its buffer", gather2, `
gpu 0 input=1 output=2 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s o[2] -> o[0] x1 to 1 at o[0]
  1 r o[1] -> o[1] x1 from 1 at o[1]
gpu 1 input=1 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s o[1] -> o[1] x1 to 0 at o[1]
  1 r o[0] -> o[0] x1 from 0 at o[0]
`, verdict{errors: bounds}},
}

// TestOracles holds explorer, judge and checker to verdicts made by hand. None of them
// depends on the protocol.
func TestOracles(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := tiny(t, c.collective, strings.TrimPrefix(c.ranks, "\n"))
			for _, protocol := range []ir.Protocol{ir.Simple, ir.LL, ir.LL128} {
				p.Spec = withProtocol(p.Spec, protocol)
				judged(t, p, c.want)
			}
		})
	}
}

// TestReduction compares the explorer's reduced search with one that leaves nothing
// out: the same memories at the end, the same runs that get stuck, and a race iff
// two moves that conflict can be made in one state. Messages of more chunks and
// slots that run out only forbid interleavings, so they end in no other way.
func TestReduction(t *testing.T) {
	programs, split, racy, stuck, most := 0, 0, 0, 0, 0
	for seed := uint64(1); programs < 300; seed++ {
		p, err := randomProgram(seed)
		if err != nil {
			t.Fatal(err)
		}
		if brokenRules(p) != 0 {
			continue
		}
		m := finest(p)
		v := newValues(m.cells)
		w := exploreAll(m, v, unlimited, 5000)
		x := newSearch(m, v, 5000)
		x.visit(0)
		if !w.complete || !x.complete() {
			continue
		}
		programs++
		if w.adjacent {
			if racy++; flagged(p) {
				split++
			}
		}
		if w.stuck > 0 {
			stuck++
		}
		most = max(most, len(w.ends))
		if got, want := endsOf(x.ends), endsOf(w.ends); !slices.Equal(got, want) {
			t.Errorf("seed %d: %d ends, want %d", seed, len(got), len(want))
		}
		for _, k := range regimes(p) {
			n := exploreAll(newMachine(p, k), v, p.Transport.Slots, 5000)
			for end := range n.ends {
				if n.complete && n.stuck == 0 && w.ends[end] == nil {
					t.Errorf("seed %d: messages of %d chunks end in a way of their own", seed, k)
				}
			}
		}
		if x.stuck > 0 != (w.stuck > 0) || x.races != w.adjacent {
			t.Errorf("seed %d: stuck %v, races %v, want %v and %v", seed, x.stuck > 0, x.races, w.stuck > 0, w.adjacent)
		}
	}
	t.Logf("%d programs, %d with races, %d of those of LL and LL128, %d that get stuck, up to %d different ends", programs, racy, split, stuck, most)
	if racy < 30 || split < 20 || stuck < 5 || most < 4 {
		t.Error("too few of them are of interest")
	}
}

func endsOf(m map[string][]int32) []string { return slices.Sorted(maps.Keys(m)) }

// TestDiffer: verdicts agree only if they are the same, but for results that a race
// leaves open.
func TestDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b verdict
		same bool
	}{
		{verdict{}, verdict{}, true},
		{verdict{errors: race}, verdict{errors: race | wrongResult}, true},
		{verdict{errors: race | clobbered}, verdict{errors: race}, true},
		{verdict{errors: wrongResult}, verdict{errors: race}, false},
		{verdict{errors: wrongResult}, verdict{}, false},
		{verdict{errors: race | deadlock}, verdict{errors: race}, false},
		{verdict{deadRace: true}, verdict{}, false},
		{verdict{minSlots: 1}, verdict{minSlots: 2}, false},
	} {
		if got := differ(c.a, c.b); (got == "") != c.same {
			t.Errorf("%v and %v: got %q", c.a, c.b, got)
		}
	}
}

// TestRegimes compares the regimes of a window with those of all its sizes.
func TestRegimes(t *testing.T) {
	p := tiny(t, gather2, "gpu 0 input=1 output=2 scratch=0\ngpu 1 input=1 output=2 scratch=0\n")
	for slot := int64(1); slot < 40; slot += 3 {
		for least := int64(0); least < 60; least += 7 {
			for most := least + 1; most < 90; most += 5 {
				p.Transport.SlotBytes, p.MinBytes, p.MaxBytes = slot, least, most
				seen := map[int32]bool{}
				for size := max(least, 1); size <= most; size++ {
					chunk := (size + 1) / 2
					seen[int32(max(1, min(71, slot/chunk)))] = true
				}
				if got, want := regimes(p), slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
					t.Fatalf("slots of %d bytes, %d to %d bytes: got %v, want %v", slot, least, most, got, want)
				}
			}
		}
	}
}
