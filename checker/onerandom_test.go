package checker

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var programsOneSided = flag.Int("programs", 1200, "random one-sided programs to judge by brute force")

// randomOneSided is a small program of two ranks with up to two thread blocks each.
// Signals and waits come in pairs at random places, packets have one writer. Plain data
// in scratch lies where no packets of the same size do.
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
		if rng.IntN(3) == 0 { // by scratch, which begins where packets do
			at := fmt.Sprintf("s[%d] x%d", []int{6, 7 - (n - 1)}[rng.IntN(2)], n)
			switch rng.IntN(4) {
			case 0:
				return fmt.Sprintf("put memory %s -> %d.%s", from, 1-r, at)
			case 1:
				return fmt.Sprintf("put port on 1 %s -> %d.%s", from, 1-r, at)
			case 2:
				return "copy " + at + " -> o" + to
			}
			return "copy " + from + " -> " + at
		}
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
			if next[to]++; next[to] == 3 { // where plain data is
				next[to]++
			}
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
	if rng.IntN(3) == 0 {
		flags += " double-scratch"
	}
	return flags, b.String()
}

// randomMeetings is a program of two ranks that move data in phases, to places that no
// other operation writes, and signal each other in between, most of the time: right more
// often, and where it is wrong, it is so for two sizes alone more often.
func randomMeetings(rng *rand.Rand) (flags, text string) {
	var blocks [2][]string
	add := func(r int, ops ...string) { blocks[r] = append(blocks[r], ops...) }
	next := [2]int{}
	packets := rng.IntN(3) == 0
	move := func(r int) {
		to := 1 - r
		if next[to] == 4 {
			return
		}
		at := next[to]
		next[to]++
		if packets {
			add(r, fmt.Sprintf("ppkt memory i[%d] x1 -> %d.s[%d] x1 packets", rng.IntN(2), to, at))
			add(to, fmt.Sprintf("upkt s[%d] x1 packets -> o[%d] x1", at, rng.IntN(2)))
			return
		}
		via := "put memory"
		if rng.IntN(4) == 0 {
			via = "put port on 1"
		}
		add(r, fmt.Sprintf("%s i[%d] x1 -> %d.s[%d] x1", via, rng.IntN(2), to, at), "nop")
		if strings.Contains(via, "port") {
			add(r, "signal port on 1")
			add(to, "wait port on 1", "nop")
		} else {
			add(r, "signal memory on 0")
			add(to, "wait memory on 0", "nop")
		}
		if rng.IntN(4) > 0 {
			add(to, fmt.Sprintf("copy s[%d] x1 -> o[%d] x1", at, rng.IntN(2)), "nop")
		}
	}
	meet := func() {
		for r := range 2 {
			if rng.IntN(4) == 0 {
				continue
			}
			word := []string{"", "", "rlx"}[rng.IntN(3)]
			add(r, "nop", word+"signal memory on 0")
			add(1-r, word+"wait memory on 0", "nop")
		}
	}
	if rng.IntN(2) == 0 {
		meet()
	}
	for range 1 + rng.IntN(3) {
		for range 1 + rng.IntN(2) {
			r := rng.IntN(2)
			move(r)
			if rng.IntN(2) == 0 {
				move(1 - r)
			}
		}
		if rng.IntN(2) == 0 {
			meet()
		}
	}
	var b strings.Builder
	for r := range blocks {
		fmt.Fprintf(&b, "gpu %d\nchannels memory %d\nchannels port %d\ntb 0\n%s\nnop\n", r, 1-r, 1-r, strings.Join(blocks[r], "\n"))
	}
	if packets {
		flags = "LL"
	}
	if rng.IntN(4) == 0 {
		flags += " double-scratch"
	}
	return flags, b.String()
}

// randomSizes is a range of sizes, in units of a chunk.
func randomSizes(rng *rand.Rand) (least, most int) {
	if rng.IntN(4) == 0 {
		return 1, 1
	}
	least = 1 + rng.IntN(4)
	return least, least + rng.IntN(4)
}

// TestOneSidedAgreesWithBruteForce: the verdicts on random programs are those of
// every interleaving and of a closure over threads.
func TestOneSidedAgreesWithBruteForce(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(*programsOneSided) {
		rng := rand.New(rand.NewPCG(seed, 7))
		coll := demand(t, 2, 2, 2, rng.IntN(2) == 0)
		draw := randomOneSided
		if seed%2 == 1 {
			draw = randomMeetings
		}
		flags, text := draw(rng)
		p := oneSided(t, coll, flags, text)
		least, most := randomSizes(rng)
		p.MinBytes, p.MaxBytes = int64(32*least-31), int64(32*most+31) // two chunks of 16 bytes
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
		launches := 2
		if p.OneSided.DoubleScratch {
			launches = 3
		}
		within, across := n.races(launches, least, most)
		if within { // two sizes are judged of programs without
			_, across = n.races(launches, least, least)
		} else if most > least {
			if _, same := n.races(launches, least, least); across && !same {
				seen["two sizes alone"]++
			}
			seen["two sizes"]++
		}
		if within != (rep.Races > 0) || across != (rep.RacesAcross > 0) {
			t.Fatalf("seed %d, sizes %d to %d: races within %v, across %v; the checker says %d and %d\n%s\n%s%s\n%v", seed, least, most, within, across, rep.Races, rep.RacesAcross,
				flags, text, expand(coll, text), rep.Messages)
		}
		seen[fmt.Sprint("races ", within, across)]++
	}
	t.Log(seen)
	for _, class := range []string{"deadlock", "undecided", "races true true", "races false true", "races true false", "races false false", "two sizes alone"} {
		if seen[class] < *programsOneSided/250 {
			t.Errorf("only %d programs of class %q", seen[class], class)
		}
	}
}
