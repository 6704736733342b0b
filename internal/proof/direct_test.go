package proof

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/ir"
)

// asDirect is p with protocol Direct.
func asDirect(p *ir.Program) *ir.Program {
	spec, q := *p.Spec, *p
	spec.Protocol = ir.Direct
	q.Spec, q.Transport = &spec, ir.Transport{}
	return &q
}

// randomDirect is a raw program with exchanges, or a compiled one, with up to two
// edits.
func randomDirect(seed uint64) (*ir.Program, error) {
	rng := rand.New(rand.NewPCG(seed, 0x646972656374)) // any constant: a stream of its own
	p := newRawDirect(rng)
	if rng.IntN(4) == 0 {
		q, err := randomCompiled(rng)
		if err != nil {
			return nil, err
		}
		if q = asDirect(q); (source{p: q}).small() {
			p = q
		}
	}
	for range []int{0, 0, 1, 1, 2}[rng.IntN(5)] {
		q := edited(rng, p)
		for range 2 {
			if brokenRules(q) != 0 && rng.IntN(4) > 0 {
				q = edited(rng, p)
			}
		}
		p = q
	}
	return p, nil
}

// newRawDirect is newRaw for protocol Direct.
func newRawDirect(rng *rand.Rand) *ir.Program {
	p := asDirect(newRawSteps(rng, true))
	p.MinBytes, p.MaxBytes = 0, 0
	return p
}

// exchange appends a send and a receive at one rank, and at another what goes with
// them: an exchange too, the two in the other order, or one step that does both.
func (g *rawProgram) exchange() {
	n := len(g.d.tbs)
	a := g.IntN(n)
	b := (a + 1 + g.IntN(n-1)) % n
	out, in := connKey{ir.Rank(a), ir.Rank(b), g.Int32N(3)}, connKey{ir.Rank(b), ir.Rank(a), g.Int32N(3)}
	ta, tb := g.IntN(g.tbs), g.IntN(g.tbs)
	for _, e := range []struct {
		end rawEnd
		tb  int
	}{{rawEnd{a, out}, ta}, {rawEnd{a, in}, ta}, {rawEnd{b, out}, tb}, {rawEnd{b, in}, tb}} {
		if owner, ok := g.ends[e.end]; ok && owner != e.tb {
			return
		}
		g.ends[e.end] = e.tb
	}
	count := 1 + g.Int32N(2)
	sendA := ir.Step{Kind: ir.Send, Count: count, Chan: out.channel, SendPeer: out.dst}
	recvA := ir.Step{Kind: ir.Recv, Count: count, Chan: in.channel, RecvPeer: in.src}
	sendB := ir.Step{Kind: ir.Send, Count: count, Chan: in.channel, SendPeer: in.dst}
	recvB := ir.Step{Kind: ir.Recv, Count: count, Chan: out.channel, RecvPeer: out.src}
	g.step(a, ta, sendA)
	g.step(a, ta, recvA)
	if last := &g.d.tbs[a][ta].steps[len(g.d.tbs[a][ta].steps)-1]; g.IntN(8) > 0 {
		last.deps = nil
	}
	switch g.IntN(3) {
	case 0:
		g.step(b, tb, recvB)
		g.step(b, tb, sendB)
	case 1:
		g.step(b, tb, sendB)
		g.step(b, tb, recvB)
		g.d.tbs[b][tb].steps[len(g.d.tbs[b][tb].steps)-1].deps = nil
	default:
		if in.channel != out.channel { // a step has one channel
			g.step(b, tb, recvB)
			g.step(b, tb, sendB)
			return
		}
		kind := []ir.StepKind{ir.RecvReduceCopySend, ir.RecvReduceSend, ir.RecvCopySend}[g.IntN(3)]
		g.step(b, tb, ir.Step{Kind: kind, Count: count, Chan: in.channel, SendPeer: in.dst, RecvPeer: out.src})
	}
}

// demandDirect is demand for a program that meets: what one walk leaves.
func (g *rawProgram) demandDirect(p *ir.Program) {
	q := asDirect(p)
	q.MinBytes, q.MaxBytes = 0, 0
	if brokenRules(q) != 0 {
		return
	}
	h := newHall(q)
	if h.lost() || h.shifted() {
		return
	}
	vals := newValues(h.m.cells)
	g.demandMemory(p, h.m, vals, h.walk(g.Rand, vals)[0])
}

// TestRandomDirectPrograms compares the checker's verdicts on programs of protocol
// Direct with those of a judge that only runs them.
func TestRandomDirectPrograms(t *testing.T) {
	first, count := uint64(setting("MSCCLSH_SEED", 1)), uint64(amount("MSCCLSH_PROGRAMS", 3000))
	byClass := map[string]int{}
	right, dead, exchanges := 0, 0, 0
	for seed := first; seed < first+count; seed++ {
		p, err := randomDirect(seed)
		if err != nil {
			t.Fatalf("MSCCLSH_SEED=%d: %v", seed, err)
		}
		v, err := agreeDirect(p, 12)
		if err != nil {
			t.Fatalf("MSCCLSH_SEED=%d: %v", seed, err)
		}
		if v.right() {
			right++
			if v.deadRace {
				dead++
			}
			if hasExchange(p) {
				exchanges++
			}
		}
		for i, name := range classNames {
			byClass[name] += int(v.errors >> i & 1)
		}
	}
	t.Logf("%d programs, %d right, %d of those with a race that reaches no output, %d with an exchange", count, right, dead, exchanges)
	for _, name := range classNames {
		t.Logf("%6d %s", byClass[name], name)
	}
	if count < 1000 {
		return
	}
	if 5*uint64(right) < count || 50*uint64(exchanges) < count || 50*uint64(dead) < count {
		t.Errorf("%d of %d programs are right, %d of those have exchanges, %d dead races: want a fifth, a fiftieth, a fiftieth", right, count, exchanges, dead)
	}
	for _, name := range []string{checker.CodeDeadlock, checker.CodeRace, checker.CodeNoMemory, checker.CodeWrongResult, checker.CodeInputClobbered, checker.CodeOverlap} {
		if 50*uint64(byClass[name]) < count {
			t.Errorf("%d of %d programs are in class %s, want a fiftieth", byClass[name], count, name)
		}
	}
}

func hasExchange(p *ir.Program) bool {
	return slices.ContainsFunc(newHall(p).steps, func(g guest) bool { return g.sendOf != none })
}

// agreeDirect compares checker and judge on one program.
func agreeDirect(p *ir.Program, walks int) (verdict, error) {
	explain := func(err error) error {
		var text strings.Builder
		if werr := p.WriteText(&text); werr != nil {
			return fmt.Errorf("%w (%v)", err, werr)
		}
		return fmt.Errorf("%w\n%s", err, text.String())
	}
	got, rep, err := checked(p)
	if err != nil {
		return got, explain(err)
	}
	want, err := decideDirect(p, walks)
	if err != nil {
		return got, explain(err)
	}
	if d := differ(got, want); d != "" {
		return got, explain(fmt.Errorf("checker against judge: %s: %v", d, rep.Messages))
	}
	return got, nil
}

// TestDirectMutants makes mutants of the library's programs whose steps also hold
// without slots; every one has to be judged alike.
func TestDirectMutants(t *testing.T) {
	var all tally
	bases := 0
	for _, s := range libraryPrograms(t, ir.Simple.String()) {
		s.p = asDirect(s.p)
		s.p.MinBytes, s.p.MaxBytes = 0, 0
		if s.p.Count().Steps > 300 {
			continue
		}
		v, err := agreeDirect(s.p, 4)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		if !v.right() {
			continue
		}
		bases++
		d := newDraft(s.p)
		for _, x := range choose(sites(d), amount("MSCCLSH_MUTANTS", 8), s.name) {
			v, err := agreeDirect(d.mutant(x), 4)
			if err != nil {
				t.Errorf("%s: %v: %v", s.name, x, err)
			}
			if all.made++; v.right() {
				all.equal++
			} else {
				all.caught++
			}
		}
	}
	t.Logf("%d programs that hold without slots; %v", bases, &all)
	if bases < 20 || all.caught == 0 || all.equal == 0 {
		t.Errorf("want 20 programs and mutants of both kinds")
	}
}
