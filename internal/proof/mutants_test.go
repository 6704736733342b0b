package proof

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// setting is a number from the environment, or what is usual.
func setting(name string, usual int) int {
	if v, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return v
	}
	return usual
}

// amount is a setting that is a quarter of what is usual in short tests.
func amount(name string, usual int) int {
	if testing.Short() {
		usual /= 4
	}
	return setting(name, usual)
}

// tally counts what became of mutants.
type tally struct{ made, caught, equal, missed, alarms int }

func (t *tally) add(o tally) {
	t.made += o.made
	t.caught += o.caught
	t.equal += o.equal
	t.missed += o.missed
	t.alarms += o.alarms
}

// score is caught of those not proved equal to the original, in percent.
func (t *tally) score() float64 {
	if t.caught+t.missed == 0 {
		return 100
	}
	return 100 * float64(t.caught) / float64(t.caught+t.missed)
}

func (t *tally) String() string {
	return fmt.Sprintf("%7d mutants: %7d caught, %6d proved equal, %d missed, %d false alarms, score %.2f %%",
		t.made, t.caught, t.equal, t.missed, t.alarms, t.score())
}

// campaign is a run over many mutants.
type campaign struct {
	t     *testing.T
	small bool // the explorer decides, and the judge has to agree with it

	mu         sync.Mutex
	kinds      []tally // by kind of edit
	right      int     // programs that have mutants
	sampled    int     // right mutants with more positions than were visited
	incomplete int     // right mutants whose interleavings were too many
	flagged    tally   // mutants of LL and LL128 that lack a dependency
	hinge      int     // of those: refused, but right if messages were those of Simple
}

// TestMutants demands that the checker rejects every mutant of a right program that
// is not proved to be right as well, and no other.
func TestMutants(t *testing.T) {
	library := slices.Concat(libraryPrograms(t, ir.Simple.String()), libraryPrograms(t, ir.LL.String(), ir.LL128.String()))
	files := handedPrograms(t)
	t.Logf("%d programs of the library, %d from files", len(library), len(files))
	programs := slices.Concat(library, files, orderPrograms(t))
	for _, small := range []bool{true, false} {
		c := &campaign{t: t, small: small, kinds: make([]tally, len(edits))}
		name := map[bool]string{true: "small", false: "large"}[small]
		t.Run(name, func(t *testing.T) {
			c.t = t
			c.run(programs)
			if small && c.hinge < 4 {
				t.Errorf("%d programs miss a wait that they would not need with Simple, want 4", c.hinge)
			}
		})
	}
}

func (c *campaign) run(programs []source) {
	var left []source
	for _, s := range programs {
		if s.small() == c.small {
			left = append(left, s)
		}
	}
	n, bases := len(left), make(chan source, len(left))
	for _, s := range left {
		bases <- s
	}
	close(bases)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var j judge
			for s := range bases {
				c.program(&j, s)
			}
		})
	}
	workers.Wait()
	var all tally
	for e := range edits {
		if c.kinds[e].made > 0 {
			c.t.Logf("%-36s %v", edits[e].name, &c.kinds[e])
		}
		all.add(c.kinds[e])
	}
	c.t.Logf("%-36s %v", fmt.Sprintf("all, of %d right ones among %d", c.right, n), &all)
	c.t.Logf("%-36s %v", "those of LL, LL128 without a wait", &c.flagged)
	c.t.Logf("%d of them are refused only because messages there order less than with Simple", c.hinge)
	c.t.Logf("%d right ones have too many interleavings to try all; the judge calls them right too", c.incomplete)
	c.t.Logf("%d right ones have too many positions to visit all; one schedule decided about their deadlocks", c.sampled)
	if all.made == 0 || all.missed > 0 || all.alarms > 0 {
		c.t.Errorf("want mutants, all caught or proved equal, and no false alarm")
	}
}

// program judges one program and, if it is right, its mutants.
func (c *campaign) program(j *judge, s source) {
	v, _, err := checked(s.p)
	if err != nil {
		c.t.Errorf("%s: %v", s.name, err)
		return
	}
	want := j.decide(s.p).verdict
	if d := differ(v, want); d != "" {
		c.t.Errorf("%s: %s", s.name, d)
	}
	if !v.right() {
		if s.fromLibrary {
			c.t.Errorf("%s: a program of the library is wrong: %v", s.name, v)
		}
		return
	}
	c.mu.Lock()
	c.right++
	c.mu.Unlock()
	d := newDraft(s.p)
	list := sites(d)
	chosen := choose(list, amount("MSCCLSH_MUTANTS", 8), s.name)
	if flagged(s.p) { // what their waits are for is what no message orders
		for _, x := range choose(list[:1], (amount("MSCCLSH_MUTANTS", 8)+1)/2, s.name) {
			if !slices.Contains(chosen, x) {
				chosen = append(chosen, x)
			}
		}
	}
	for _, x := range chosen {
		p := d.mutant(x)
		result, err := c.mutant(j, p)
		if err != nil {
			var text strings.Builder
			if p.WriteText(&text) != nil || text.Len() > 4000 {
				text.Reset()
			}
			c.t.Errorf("%s: %v: %v\n%s", s.name, x, err, text.String())
		}
		result.made = 1
		hinge := flagged(p) && x.edit == &edits[0] && result.caught == 1 && j.decide(asSimple(p)).right()
		c.mu.Lock()
		if flagged(p) && x.edit == &edits[0] {
			c.flagged.add(result)
		}
		if hinge {
			c.hinge++
		}
		for e := range edits {
			if x.edit == &edits[e] {
				c.kinds[e].add(result)
			}
		}
		c.mu.Unlock()
	}
}

// mutant judges one mutant in all ways there are.
func (c *campaign) mutant(j *judge, p *ir.Program) (tally, error) {
	got, rep, err := checked(p)
	if err != nil {
		return tally{}, err
	}
	judged := j.decide(p)
	want := judged.verdict
	if c.small {
		e, err := explore(p, effort{runs: 100, positions: 500})
		if err != nil {
			return tally{}, err
		}
		if d := differ(e.verdict, judged.verdict); d != "" {
			return tally{}, oracleError("explorer against judge: %s", d)
		}
		want = e.verdict
		c.mu.Lock()
		if want.right() && !e.complete {
			c.incomplete++
		}
		if want.right() && e.sampled {
			c.sampled++
		}
		c.mu.Unlock()
	}
	var t tally
	switch {
	case !got.right() && want.right():
		t.alarms = 1
	case !got.right():
		t.caught = 1
	case want.right():
		t.equal = 1
	default:
		t.missed = 1
	}
	if d := differ(got, want); d != "" {
		return t, fmt.Errorf("checker: %s: %v", d, rep.Messages)
	}
	if got.right() && !got.deadRace && rep.OrderDiffers != judged.orderDiffers {
		return t, fmt.Errorf("the checker says that the order of sums differs: %v, want %v", rep.OrderDiffers, judged.orderDiffers)
	}
	return t, nil
}

// choose takes up to most sites, 0 for all, the same number of every kind as far as
// there are so many.
func choose(all [][]site, most int, name string) []site {
	h := fnv.New64()
	h.Write([]byte(name))
	rng := rand.New(rand.NewPCG(h.Sum64(), uint64(most)))
	total := 0
	for _, kind := range all {
		total += len(kind)
		rng.Shuffle(len(kind), func(i, k int) { kind[i], kind[k] = kind[k], kind[i] })
	}
	if most == 0 || most > total {
		most = total
	}
	var out []site
	start := rng.IntN(len(all))
	for round := 0; len(out) < most; round++ {
		for i := range all {
			if kind := all[(start+i)%len(all)]; round < len(kind) && len(out) < most {
				out = append(out, kind[round])
			}
		}
	}
	return out
}
