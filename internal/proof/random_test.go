package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/randprog"
	"github.com/mscclsh/mscclsh/ir"
)

// randomProgram is a raw program or a compiled one, as it came or with one or two
// edits.
func randomProgram(seed uint64) (*ir.Program, error) {
	rng := rand.New(rand.NewPCG(seed, 0x70726f6f66)) // any constant: a stream of its own
	var p *ir.Program
	if rng.IntN(2) == 0 {
		p = newRaw(rng)
	}
	for p == nil || !(source{p: p}).small() {
		var err error
		if p, err = randomCompiled(rng); err != nil {
			return nil, err
		}
	}
	most := []int{0, 1, 1, 1, 2}
	if flagged(p) { // whose order many edits would hide
		most = []int{0, 0, 1, 1, 2}
	}
	for range most[rng.IntN(len(most))] {
		// Most edits break a rule, so that is often tried once more.
		q := edited(rng, p)
		if brokenRules(q) != 0 && rng.IntN(3) > 0 {
			q = edited(rng, p)
		}
		p = q
	}
	return p, nil
}

// edited is p with one edit, all kinds of them being equally likely.
func edited(rng *rand.Rand, p *ir.Program) *ir.Program {
	d := newDraft(p)
	var kinds [][]site
	for _, kind := range sites(d) {
		if len(kind) > 0 {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return p // an empty program without slots
	}
	kind := kinds[rng.IntN(len(kinds))]
	return d.mutant(kind[rng.IntN(len(kind))])
}

func randomCompiled(rng *rand.Rand) (*ir.Program, error) {
	d, err := randprog.Generate(rng, randprog.Options{MaxRanks: 3, MaxChunks: 3, MaxOps: 10, MaxInstances: 1, MaxTerms: 8})
	if err != nil {
		return nil, err
	}
	o := compiler.Options{Target: ir.Target(rng.IntN(len(ir.TargetNames()))), Slots: 1 + rng.Int32N(3), SlotBytes: 4 << rng.IntN(4)}
	if rng.IntN(3) == 0 {
		o.MaxBytes = 16 << rng.IntN(4)
	}
	for _, pass := range compiler.Passes() {
		if !pass.Required && rng.IntN(8) == 0 {
			o.Disable = append(o.Disable, pass.Name)
		}
	}
	// Some of LL and LL128 lack the waits that messages of Simple make superfluous.
	to := d.Protocol
	if rng.IntN(2) == 0 {
		d.Spec = withProtocol(d.Spec, ir.Simple)
	}
	r, err := compiler.Compile(context.Background(), d, o)
	if err != nil {
		return nil, fmt.Errorf("compiling: %w", err)
	}
	p := *r.Program
	p.Spec = withProtocol(p.Spec, to)
	return &p, nil
}

// withProtocol is a program's head with another protocol.
func withProtocol(s *ir.Spec, to ir.Protocol) *ir.Spec {
	out := *s
	out.Protocol = to
	return &out
}

// asSimple is p with protocol Simple.
func asSimple(p *ir.Program) *ir.Program {
	q := *p
	q.Spec = withProtocol(p.Spec, ir.Simple)
	return &q
}

// histogram counts programs by what is wrong with them.
type histogram struct {
	mu         sync.Mutex
	all, right int
	dead       int // right, with races that reach no output
	differs    int // more than one memory at the end
	incomplete int
	sampled    int // whose deadlocks one schedule decided at some regime
	benign     int // refused for a race, though all results tried are right
	flagged    int // with messages that order no more than themselves
	hinge      int // of those: judged otherwise if messages ordered what came before them
	byClass    [len(classNames)]int
	run, moves int // those whose structure is right, and their moves
}

// TestRandomPrograms compares the verdicts of explorer and judge, and then the
// checker's with theirs.
func TestRandomPrograms(t *testing.T) {
	first, count := uint64(setting("MSCCLSH_SEED", 1)), uint64(amount("MSCCLSH_PROGRAMS", 3000))
	var h histogram
	var next atomic.Uint64
	var workers sync.WaitGroup
	begin := time.Now()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var j judge
			for i := next.Add(1) - 1; i < count && !t.Failed(); i = next.Add(1) - 1 {
				if err := h.program(first+i, &j); err != nil {
					t.Errorf("MSCCLSH_SEED=%d: %v", first+i, err)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d programs in %s, those that can run of %d moves on average", h.all, time.Since(begin).Round(time.Second),
		h.moves/max(h.run, 1))
	t.Logf("%6d right, %d of them with a race that reaches no output", h.right, h.dead)
	for i, n := range h.byClass {
		t.Logf("%6d %s", n, classNames[i])
	}
	t.Logf("%6d with interleavings that end differently, %d with more of them than were tried", h.differs, h.incomplete)
	t.Logf("%6d with more positions than were visited, so that one schedule decided about deadlocks", h.sampled)
	t.Logf("%6d of LL and LL128, %d of them to be judged otherwise with Simple", h.flagged, h.hinge)
	t.Logf("%6d races that tear a result, though no interleaving of whole chunks makes it wrong", h.benign)
	if count >= 1000 && !t.Failed() {
		h.spread(t)
	}
}

// spread demands that the comparison means something: half of the programs wrong,
// and at least a fiftieth in every class that matters.
func (h *histogram) spread(t *testing.T) {
	if 2*h.right > h.all || 5*h.right < h.all {
		t.Errorf("%d of %d programs are right, want a fifth to a half", h.right, h.all)
	}
	if 2*h.flagged < h.all || 100*h.hinge < h.all {
		t.Errorf("%d of %d programs are of LL and LL128, and %d differ from Simple: want half, and a hundredth", h.flagged, h.all, h.hinge)
	}
	for i, name := range classNames {
		switch classes(1) << i {
		case dependency, bounds, owner, counts, deadlock, wrongResult, clobbered, race:
			if 50*h.byClass[i] < h.all {
				t.Errorf("%d of %d programs are in class %s, want a fiftieth", h.byClass[i], h.all, name)
			}
		}
	}
}

func (h *histogram) program(seed uint64, j *judge) error {
	p, err := randomProgram(seed)
	if err != nil {
		return err
	}
	explain := func(err error) error {
		var text strings.Builder
		if werr := p.WriteText(&text); werr != nil {
			return fmt.Errorf("%w (%v)", err, werr)
		}
		return fmt.Errorf("%w\n%s", err, text.String())
	}
	got, rep, err := checked(p)
	if err != nil {
		return explain(err)
	}
	e, err := explore(p, effort{runs: 200, positions: 2000})
	if err != nil {
		return explain(err)
	}
	judged := j.decide(p).verdict
	if d := differ(e.verdict, judged); d != "" {
		return explain(oracleError("explorer against judge: %s", d))
	}
	if d := differ(got, e.verdict); d != "" {
		return explain(fmt.Errorf("checker against explorer: %s: %v", d, rep.Messages))
	}
	if d := differ(got, judged); d != "" {
		return explain(fmt.Errorf("checker against judge: %s: %v", d, rep.Messages))
	}
	if err := sameWindow(p, rep, e); err != nil {
		return explain(err)
	}
	hinge := flagged(p) && differ(j.decide(asSimple(p)).verdict, judged) != ""
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all++
	for i := range h.byClass {
		h.byClass[i] += int(e.errors >> i & 1)
	}
	for _, n := range []struct {
		count *int
		yes   bool
	}{{&h.right, e.right()}, {&h.dead, e.right() && e.deadRace}, {&h.differs, e.differs},
		{&h.incomplete, !e.complete}, {&h.flagged, flagged(p)},
		{&h.hinge, hinge}, {&h.sampled, e.sampled}, {&h.benign, e.errors == race && e.complete}} {
		if n.yes {
			*n.count++
		}
	}
	if h.moves += e.moves; e.moves > 0 {
		h.run++
	}
	return nil
}

// sameWindow compares what checker and explorer say of the sizes that are safe.
func sameWindow(p *ir.Program, rep *checker.Report, e exploration) error {
	if e.minSlots == 0 {
		return nil // it runs with no slots whatever, or can't be judged
	}
	all := regimes(p)
	for _, k := range rep.Regimes {
		if !slices.Contains(all, k) {
			return fmt.Errorf("checker: %d chunks in a message don't occur, only %v do", k, all)
		}
	}
	if rep.SafeRegime != e.safeRegime {
		return fmt.Errorf("checker: it runs from %d chunks in a message on, want %d", rep.SafeRegime, e.safeRegime)
	}
	if want := safeMaxBytes(p); rep.SafeMaxBytes != want {
		return fmt.Errorf("checker: it runs up to %d bytes, want %d", rep.SafeMaxBytes, want)
	}
	return nil
}
