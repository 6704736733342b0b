package checker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// inTurns hands rank 1 two chunks by one channel, on which two thread blocks signal in turn,
// the second when the first has handed on to it; and so two thread blocks wait.
const inTurns = `
gpu 0
channels memory 1
semaphores 0
tb 0
put memory i[0] x1 -> 1.s[0] x1
nop
signal memory on 0
nop
sem_release on 0
wait memory on 0
tb 1
sem_acquire on 0
nop
put memory i[1] x1 -> 1.s[1] x1
nop
signal memory on 0
gpu 1
channels memory 0
semaphores 0 0
tb 0
wait memory on 0
nop
copy s[0] x1 -> o[0] x1
nop
sem_release on 0
sem_acquire on 1
nop
signal memory on 0
tb 1
sem_acquire on 0
wait memory on 0
nop
copy s[1] x1 -> o[1] x1
nop
sem_release on 1
`

func TestOneSidedTurnsAreTaken(t *testing.T) {
	two := demand(t, 2, 2, 2, false, "1 o0 = 0.0", "1 o1 = 0.1")
	with := func(old, new string) string {
		if !strings.Contains(inTurns, old) {
			t.Fatalf("no %q", old)
		}
		return strings.Replace(inTurns, old, new, 1)
	}
	for _, c := range []struct {
		name, text, want string
		races            [2]int
	}{
		{"in turns", inTurns, "", [2]int{}},
		// The first to take may have the second's signal; who takes second has both.
		{"the second giver doesn't wait", strings.Replace(with("sem_acquire on 0\nnop\nput", "put"), "nop\nsem_release on 0\nwait", "wait", 1),
			"race warning:undecided", [2]int{1, 0}},
		// The first signal is there whoever takes it.
		{"the second taker doesn't wait", strings.Replace(with("tb 1\nsem_acquire on 0\nwait", "tb 1\nwait"), "sem_release on 0\nsem_acquire on 1", "sem_acquire on 1", 1),
			"warning:undecided race", [2]int{1, 0}},
		// The first to wait takes the first signal, which says nothing of the second chunk.
		{"the chunks crossed", strings.NewReplacer("copy s[0] x1 -> o[0]", "copy s[1] x1 -> o[1]", "copy s[1] x1 -> o[1]", "copy s[0] x1 -> o[0]").Replace(inTurns),
			"race", [2]int{1, 0}},
	} {
		p := oneSided(t, two, "", c.text)
		p.MinBytes, p.MaxBytes = 64, 64
		rep := check(t, p)
		if got := codes(rep); got != c.want || [2]int{rep.Races, rep.RacesAcross} != c.races {
			t.Errorf("%s: got %q, %d races and %d across, want %q and %v\n%v", c.name, got, rep.Races, rep.RacesAcross, c.want, c.races, rep.Messages)
		}
	}
}

// randomTurns lets two thread blocks of rank 0 signal on one channel and two of rank 1 wait
// there, each a few times, with semaphores between the blocks of a rank at random places.
func randomTurns(rng *rand.Rand) string {
	var lists [2][2][]string
	turns := 2 + rng.IntN(2)
	holder := [2]int{}
	for k := range turns {
		for r := range 2 {
			b := holder[r]
			add := func(b int, ops ...string) { lists[r][b] = append(lists[r][b], ops...) }
			if r == 0 {
				add(b, fmt.Sprintf("put memory i[%d] x1 -> 1.s[%d] x1", rng.IntN(2), k), "signal memory on 0")
			} else {
				add(b, "wait memory on 0", fmt.Sprintf("copy s[%d] x1 -> o[%d] x1", (k+b2i(rng.IntN(5) == 0))%turns, k%2))
			}
			if rng.IntN(4) > 0 { // hand the turn on
				holder[r] = 1 - b
				if rng.IntN(5) > 0 {
					add(b, "sem_release on "+fmt.Sprint(b))
					add(1-b, "sem_acquire on "+fmt.Sprint(b))
				}
			}
		}
	}
	var text strings.Builder
	for r := range lists {
		fmt.Fprintf(&text, "gpu %d\nchannels memory %d\nsemaphores 0 0\n", r, 1-r)
		for b, list := range lists[r] {
			fmt.Fprintf(&text, "tb %d\nnop\n%s\n", b, strings.Join(list, "\n"))
		}
	}
	return meetingOften(text.String())
}

// TestOneSidedTurnsAgreeWithAllOrders: where the checker says that orders are fixed, it says
// of races within a launch and of deadlocks what all orders of events say; where it doesn't, it misses nothing.
func TestOneSidedTurnsAgreeWithAllOrders(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(*programsOneSided / 4) {
		text := randomTurns(rand.New(rand.NewPCG(seed, 17)))
		p := oneSided(t, demand(t, 2, 2, 2, false), "", text)
		p.MinBytes, p.MaxBytes = 64, 64
		rep := check(t, p)
		open := rep.Has(CodeUndecided)
		if stuck := newOneNaive(p).stuck(); stuck || rep.Has(CodeDeadlock) {
			if !open && stuck != rep.Has(CodeDeadlock) || !stuck {
				t.Fatalf("seed %d: stuck %v\n%s\n%v", seed, stuck, text, rep.Messages)
			}
			seen["stuck"]++
			continue
		}
		raced, decided := newOneExplorer(p, 1).races(4, 4)
		told := rep.Races > 0
		if decided && (raced && !told || !open && raced != told) {
			t.Fatalf("seed %d: a race %v, told %v\n%s\n%v", seed, raced, told, text, rep.Messages)
		}
		seen[fmt.Sprint("open ", open, " decided ", decided, " race ", raced)]++
	}
	t.Log(seen)
	for _, class := range []string{"open false decided true race false", "open false decided true race true", "open true decided true race true"} {
		if seen[class] < *programsOneSided/200 {
			t.Errorf("only %d programs of class %q", seen[class], class)
		}
	}
}
