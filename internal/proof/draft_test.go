package proof

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// draft is a program in a form that is easy to edit: steps hold what they wait for.
type draft struct {
	p   ir.Program // all but GPUs' thread blocks and Deps
	tbs [][]draftTB
}

type draftTB struct {
	send, recv ir.Rank
	channel    int32
	steps      []draftStep
}

type draftStep struct {
	ir.Step
	deps []ir.Dep
}

func newDraft(p *ir.Program) *draft {
	d := &draft{p: *p}
	for r := range p.GPUs {
		var tbs []draftTB
		for _, tb := range p.GPUs[r].TBs {
			t := draftTB{send: tb.Send, recv: tb.Recv, channel: tb.Chan}
			for _, st := range tb.Steps {
				t.steps = append(t.steps, draftStep{st, slices.Clone(p.DepsOf(&st))})
			}
			tbs = append(tbs, t)
		}
		d.tbs = append(d.tbs, tbs)
	}
	return d
}

// clone copies everything that edits change.
func (d *draft) clone() *draft {
	c := &draft{p: d.p, tbs: slices.Clone(d.tbs)}
	for r := range c.tbs {
		c.tbs[r] = slices.Clone(c.tbs[r])
		for t := range c.tbs[r] {
			tb := &c.tbs[r][t]
			tb.steps = slices.Clone(tb.steps)
			for s := range tb.steps {
				tb.steps[s].deps = slices.Clone(tb.steps[s].deps)
			}
		}
	}
	return c
}

// program is the draft as a program.
func (d *draft) program() *ir.Program {
	p := d.p
	p.GPUs, p.Deps = slices.Clone(p.GPUs), nil
	for r := range p.GPUs {
		p.GPUs[r].TBs = make([]ir.ThreadBlock, len(d.tbs[r]))
		for t, tb := range d.tbs[r] {
			steps := make([]ir.Step, len(tb.steps))
			for s, st := range tb.steps {
				st.DepStart = int32(len(p.Deps))
				p.Deps = append(p.Deps, st.deps...)
				st.DepEnd = int32(len(p.Deps))
				steps[s] = st.Step
			}
			p.GPUs[r].TBs[t] = ir.ThreadBlock{Send: tb.send, Recv: tb.recv, Chan: tb.channel, Steps: steps}
		}
	}
	return &p
}

// step is step s of thread block t of rank r.
func (d *draft) step(x site) *draftStep { return &d.tbs[x.rank][x.tb].steps[x.step] }

// remove takes a step out, and every wait for it; waits for later ones follow.
func (d *draft) remove(r, t, s int) draftStep {
	tb := &d.tbs[r][t]
	st := tb.steps[s]
	tb.steps = slices.Delete(tb.steps, s, s+1)
	d.eachDep(r, func(dep *ir.Dep) bool {
		if int(dep.TB) == t && int(dep.Step) > s {
			dep.Step--
			return true
		}
		return int(dep.TB) != t || int(dep.Step) != s
	})
	return st
}

// move takes a step to another thread block; waits for any step follow it.
func (d *draft) move(r, t, s, to, at int) {
	tbs := d.tbs[r]
	st := tbs[t].steps[s]
	tbs[t].steps = slices.Delete(tbs[t].steps, s, s+1)
	tbs[to].steps = slices.Insert(tbs[to].steps, at, st)
	d.eachDep(r, func(dep *ir.Dep) bool {
		switch {
		case int(dep.TB) == t && int(dep.Step) == s:
			*dep = ir.Dep{TB: int32(to), Step: int32(at)}
		case int(dep.TB) == t && int(dep.Step) > s:
			dep.Step--
		case int(dep.TB) == to && int(dep.Step) >= at:
			dep.Step++
		}
		return true
	})
}

// eachDep edits every dependency of rank r and drops those that f says no to.
func (d *draft) eachDep(r int, f func(dep *ir.Dep) bool) {
	for t := range d.tbs[r] {
		for s := range d.tbs[r][t].steps {
			st := &d.tbs[r][t].steps[s]
			kept := st.deps[:0]
			for _, dep := range st.deps {
				if f(&dep) {
					kept = append(kept, dep)
				}
			}
			st.deps = kept
		}
	}
}
