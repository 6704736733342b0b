package checker

import (
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// judgeOneSided judges a program whose thread blocks put, get, signal and wait.
//
// Sizes matter in two ways: a thread block group cuts ranges into parts, and a
// pipeline cuts them into units. Both are exact where a chunk is cut into units of
// which all those cuts are multiples, so the program is run on refined chunks, once
// for each of a few shapes: see shapes.
func judgeOneSided(ctx context.Context, p *ir.Program, o Options, rep *Report, f *findings) error {
	rep.OneSided, rep.Regimes = true, []int32{}
	if !validOneSided(p, f) {
		return nil
	}
	w := newWindow(p, o)
	if w.most > 0 && w.most < w.minBytes {
		f.errorf(diag.Pos{}, CodeProgram, "the size window from %d to %d bytes is empty", w.minBytes, w.most)
		return nil
	}
	all := shapes(p, o)
	if all == nil {
		f.errorf(diag.Pos{}, CodeTooLarge, "the program's parts and pipelines have no common unit small enough for the checker")
		return nil
	}
	races, sizes := newRaceSet(), newSizeRange(p, w)
	var models []*oneModel
	for _, s := range sizes.only(p, all) {
		m := newOneModel(p, s, sizes, f)
		if m == nil {
			return nil
		}
		if err := m.settle(ctx); err != nil {
			return err
		}
		if models = append(models, m); len(models) == 1 {
			m.undecided(f)
			unlooked(p, sizes, f)
		}
		if err := judgeShape(ctx, m, rep, f, races); err != nil {
			return err
		}
		if f.hasErrors() {
			break // other shapes would say the same again
		}
	}
	models[0].uneven(sizes, f)
	if err := judgeShapes(ctx, models, races); err != nil {
		return err
	}
	if races.report(rep, f, models[0]); len(races.found) > 0 {
		models[0].doubt(f)
	}
	return nil
}

// judgeShape runs one shape: one launch for deadlock and result, and as many more
// as it takes to touch all memory again for races. In a program without races every
// schedule gives the same values.
func judgeShape(ctx context.Context, m *oneModel, rep *Report, f *findings, races *raceSet) error {
	for n := range m.schedules() {
		r := newOneRun(m, n)
		if ok, err := r.launch(ctx); err != nil {
			return err
		} else if !ok {
			r.reportDeadlock(f)
			return nil
		}
		if n > 0 {
			continue
		}
		if !f.has(CodeLeftover) {
			r.leftovers(f)
		}
		if err := m.result(ctx, r, rep, f); err != nil {
			return err
		}
	}
	return judgeRaces(ctx, m, races)
}

// judgeRaces runs the launches twice: where nothing is out of order, once.
func judgeRaces(ctx context.Context, m *oneModel, races *raceSet) error {
	models := make([]*oneModel, m.launches())
	for i := range models {
		models[i] = m
	}
	racy, err := runLaunches(ctx, models, races, nil)
	if err == nil && len(racy) > 0 {
		_, err = runLaunches(ctx, models, races, racy)
	}
	return err
}

// runLaunches runs a launch of each model, and returns the locations that have a race
// among launches of the same one.
func runLaunches(ctx context.Context, models []*oneModel, races *raceSet, racy map[int32]bool) (map[int32]bool, error) {
	facts, err := settle(ctx, models)
	if err != nil {
		return nil, err
	}
	h := newHistory(models, races, racy)
	h.facts = facts
	_, err = h.run(ctx)
	return h.found, err
}

// run runs a launch of each model; false if one doesn't end.
func (h *history) run(ctx context.Context) (bool, error) {
	r, ends := newOneRun(h.m, 0), true
	r.h = h
	for _, m := range h.models {
		h.boundary()
		r.enter(m)
		ok, err := r.launch(ctx)
		if err != nil {
			return false, err
		}
		ends = ends && ok
	}
	h.boundary()
	return ends, nil
}

// judgeShapes runs launches of different shapes, in every order that matters, for what
// sizes of different shapes do to each other. Shapes without a size, and of two that
// stand for the same sizes one, are left out.
func judgeShapes(ctx context.Context, models []*oneModel, races *raceSet) error {
	var use []*oneModel
	for _, m := range models {
		if m.least <= m.most && !slices.ContainsFunc(use, func(x *oneModel) bool { return x.least == m.least && x.most == m.most }) {
			use = append(use, m)
		}
	}
	if len(use) < 2 {
		return nil
	}
	between := [][]*oneModel{nil}
	if use[0].launches() == 3 {
		between = between[:0]
		for _, m := range use {
			between = append(between, []*oneModel{m})
		}
	}
	for _, a := range use {
		for _, b := range use {
			for _, mid := range between {
				list := append(append([]*oneModel{a}, mid...), b)
				if a == b && (mid == nil || mid[0] == a) {
					continue // run already
				}
				if _, err := runLaunches(ctx, list, races, nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// result compares the values of a launch with the postcondition.
func (m *oneModel) result(ctx context.Context, r *oneRun, rep *Report, f *findings) error {
	e := &execution{m: m.model, v: r.values, now: r.now, writer: r.writer, one: r}
	e.holds()
	j := &judgment{e: e, f: f}
	if !m.oneReduction(f) {
		return nil
	}
	if err := j.outputs(ctx); err != nil {
		return err
	}
	if m.demands() {
		j.inputs()
	}
	if j.orderDiffers && !rep.OrderDiffers {
		rep.OrderDiffers = true
		j.tellOrder()
	}
	return nil
}

// demands reports whether the collective wants anything: one that wants nothing is
// there to try operations, and may do to its inputs what it likes.
func (m *oneModel) demands() bool {
	if m.p.Coll.Kind != ir.Custom {
		return true
	}
	for _, rank := range m.p.Coll.Custom.Expect {
		for _, want := range rank {
			if want != nil {
				return true
			}
		}
	}
	return false
}

// oneReduction refuses a program that mixes reductions where the collective has
// one: a multiset of contributions says nothing about it then.
func (m *oneModel) oneReduction(f *findings) bool {
	switch m.p.Coll.Kind {
	case ir.AllReduce, ir.ReduceScatter, ir.ReduceTo:
	default:
		return true
	}
	first := int32(ir.None)
	for i := range m.o.Ops {
		op := &m.o.Ops[i]
		switch {
		case !reduces(op.Kind):
		case first == ir.None:
			first = int32(i)
		case op.Reduce != m.o.Ops[first].Reduce:
			if f.admit(CodeStep) {
				f.add(diag.Errorf(m.p.Pos(op.Pos), CodeStep, "%s: reduces by %s, another operation by %s",
					m.opName(int32(i)), reductionName(op.Reduce), reductionName(m.o.Ops[first].Reduce)).
					Note(m.p.Pos(m.o.Ops[first].Pos), "%s", m.opName(first)))
			}
			return false
		}
	}
	return true
}

func reductionName(r ir.Reduction) string {
	if r == ir.ReduceByRun {
		return "the run's operator"
	}
	return r.String()
}
