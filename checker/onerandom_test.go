package checker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomOneSided is a small program of two ranks with up to two thread blocks each.
// Signals and waits come in pairs at random places, packets have one writer.
func randomOneSided(rng *rand.Rand) (flags, text string) {
	packets := rng.IntN(2) == 0
	var blocks [2][][]string
	for r := range blocks {
		blocks[r] = make([][]string, 1+rng.IntN(2))
	}
	put := func(r int, op string) {
		b := rng.IntN(len(blocks[r]))
		i := rng.IntN(len(blocks[r][b]) + 1)
		list := append([]string{}, blocks[r][b][:i]...)
		blocks[r][b] = append(append(list, op), blocks[r][b][i:]...)
	}
	plain := func(r int) string {
		a, b := rng.IntN(2), rng.IntN(2)
		n := 1
		if rng.IntN(3) == 0 {
			a, b, n = 0, 0, 2
		}
		from := fmt.Sprintf("%c[%d] x%d", "io"[rng.IntN(2)], a, n)
		to := fmt.Sprintf("[%d] x%d", b, n)
		switch rng.IntN(5) {
		case 0:
			return "copy " + from + " -> o" + to
		case 1:
			return fmt.Sprintf("put memory %s -> %d.o%s", from, 1-r, to)
		case 2:
			return fmt.Sprintf("put port on 1 %s -> %d.o%s", from, 1-r, to)
		case 3:
			return fmt.Sprintf("get memory %d.%s -> o%s", 1-r, from, to)
		}
		return fmt.Sprintf("re o%s, %s -> o%s", to, from, to)
	}
	next := [2]int{} // packets of a rank
	for range 1 + rng.IntN(5) {
		r := rng.IntN(2)
		switch k := rng.IntN(10); {
		case k < 3 && packets:
			to := rng.IntN(2)
			at := fmt.Sprintf("s[%d] x1 packets", next[to])
			next[to]++
			if to == r {
				put(r, fmt.Sprintf("cpkt o[%d] x1 -> %s", rng.IntN(2), at))
			} else {
				put(r, fmt.Sprintf("ppkt memory o[%d] x1 -> %d.%s", rng.IntN(2), to, at))
			}
			if o := rng.IntN(2); rng.IntN(2) == 0 {
				put(to, fmt.Sprintf("upkt %s -> o[%d] x1", at, o))
			} else {
				put(to, fmt.Sprintf("repkt o[%d] x1, %s -> o[%d] x1", o, at, o))
			}
		case k < 6:
			put(r, plain(r))
		case k < 9:
			words := []string{"", "rlx"}
			c := []string{"memory on 0", "port on 1"}[rng.IntN(2)]
			if !strings.HasPrefix(c, "memory") {
				words[1] = ""
			}
			if words[1] == "" && rng.IntN(3) == 0 {
				put(r, "flush port on 1")
			}
			put(r, words[rng.IntN(8)/7]+"signal "+c)
			put(1-r, words[rng.IntN(8)/7]+"wait "+c)
		case k == 9 && len(blocks[r]) == 2:
			if rng.IntN(2) == 0 {
				put(r, "sem_release on 0")
				put(r, "sem_acquire on 0")
			} else {
				blocks[r][0] = append(blocks[r][0], "barrier on 0 of 2")
				blocks[r][1] = append(blocks[r][1], "barrier on 0 of 2")
			}
		}
	}
	var b strings.Builder
	for r := range blocks {
		fmt.Fprintf(&b, "gpu %d\nchannels memory %d\nchannels port %d\nsemaphores 0\n", r, 1-r, 1-r)
		for t, list := range blocks[r] {
			fmt.Fprintf(&b, "tb %d\n", t)
			for _, op := range list {
				if rng.IntN(3) > 0 {
					b.WriteString("nop\n")
				}
				b.WriteString(op + "\n")
				if rng.IntN(3) > 0 {
					b.WriteString("nop\n")
				}
			}
		}
	}
	if packets {
		flags = "LL"
	}
	return flags, b.String()
}

// TestOneSidedAgreesWithBruteForce: the verdicts on random programs are those of
// every interleaving and of a closure over threads.
func TestOneSidedAgreesWithBruteForce(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(programsOneSided) {
		rng := rand.New(rand.NewPCG(seed, 7))
		coll := demand(t, 2, 2, 2, rng.IntN(2) == 0)
		flags, text := randomOneSided(rng)
		p := oneSided(t, coll, flags, text)
		rep := check(t, p)
		if rep.Has(CodeUndecided) {
			seen["undecided"]++
			continue
		}
		n := newOneNaive(p)
		if stuck := n.stuck(); stuck != rep.Has(CodeDeadlock) {
			t.Fatalf("seed %d: stuck %v\n%s\n%v", seed, stuck, text, rep.Messages)
		} else if stuck {
			seen["deadlock"]++
			continue
		}
		within, across := n.races(2)
		if within != (rep.Races > 0) || across != (rep.RacesAcross > 0) {
			t.Fatalf("seed %d: races within %v, across %v; the checker says %d and %d\n%s%s\n%v", seed, within, across, rep.Races, rep.RacesAcross,
				text, expand(coll, text), rep.Messages)
		}
		seen[fmt.Sprint("races ", within, across)]++
	}
	t.Log(seen)
	for _, class := range []string{"deadlock", "undecided", "races true true", "races false true", "races true false", "races false false"} {
		if seen[class] < programsOneSided/200 {
			t.Errorf("only %d programs of class %q", seen[class], class)
		}
	}
}

const programsOneSided = 4000
