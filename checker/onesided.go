package checker

import (
	"context"
	"math"

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
	if w := newWindow(p, o); w.most > 0 && w.most < w.minBytes {
		f.errorf(diag.Pos{}, CodeProgram, "the size window from %d to %d bytes is empty", w.minBytes, w.most)
		return nil
	}
	all := shapes(p, o)
	if all == nil {
		f.errorf(diag.Pos{}, CodeTooLarge, "the program's parts and pipelines have no common unit small enough for the checker")
		return nil
	}
	races := newRaceSet()
	var last *oneModel
	for i, s := range all {
		m := newOneModel(p, s, f)
		if m == nil {
			return nil
		}
		if last = m; i == 0 {
			m.undecided(f)
		}
		if err := judgeShape(ctx, m, rep, f, races); err != nil {
			return err
		}
		if f.hasErrors() {
			break // other shapes would say the same again
		}
	}
	if races.report(rep, f, last.demands()); len(races.found) > 0 {
		last.doubt(f)
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
	var racy map[int32]bool
	for range 2 {
		h := newHistory(m, races, racy)
		r := newOneRun(m, 0)
		r.h = h
		h.begin()
		for range m.launches() {
			if _, err := r.launch(ctx); err != nil {
				return err
			}
			h.boundary()
		}
		if racy = h.found; len(racy) == 0 {
			return nil
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

// shape is one way to cut chunks: into units, of which a turn of a pipeline takes
// UnitBytes / bytesPerUnit.
type shape struct {
	units        int32 // of a chunk
	bytesPerUnit int64 // 0 without pipelines
}

// maxUnits bounds the units of a chunk.
const maxUnits = 1 << 12

// shapes chooses what to run. Without parts and pipelines a chunk is one unit.
// With parts: a chunk that all cuts divide, one with a remainder, and one so small
// that some parts are empty. With pipelines: a chunk of one, one and a half and
// three turns of the pipeline that takes the most turns, as far as the sizes of
// the program allow. Nil if units would be too many.
func shapes(p *ir.Program, o Options) []shape {
	cut, bytes, perTurn, chunks := int64(1), int64(0), int64(math.MaxInt64), int64(1)
	for i := range p.OneSided.Ops {
		op := &p.OneSided.Ops[i]
		switch {
		case op.Kind == ir.OpPipeline:
			bytes = gcd(op.UnitBytes, bytes)
			perTurn = min(perTurn, max(op.UnitBytes/int64(op.UnitChunks), 1))
			chunks = lcm(chunks, int64(op.UnitChunks))
		case op.Kind != ir.OpBarrier:
			cut = lcm(cut, int64(op.Parts))
		}
		if cut > maxUnits || chunks > maxUnits {
			return nil
		}
	}
	if bytes == 0 {
		if cut == 1 {
			return []shape{{units: 1}}
		}
		return []shape{{units: int32(cut)}, {units: int32(cut) + 1}, {units: 1}}
	}
	// A turn of the least pipeline is at least 2*cut units a chunk.
	perUnit := max(bytes/(2*cut*chunks), 1)
	var out []shape
	w := newWindow(p, o)
	for _, halves := range []int64{2, 3, 6} {
		chunk := perTurn * halves / 2 // bytes
		small := w.maxChunk > 0 && turns(w.maxChunk, perTurn) < turns(chunk, perTurn)
		large := turns(w.minChunk, perTurn) > turns(chunk, perTurn)
		if small || large && halves != 6 {
			continue
		}
		units := max(chunk/perUnit, 1)
		if units > maxUnits {
			return nil
		}
		out = append(out, shape{int32(units), perUnit})
	}
	if out == nil { // chunks far smaller than a unit
		out = []shape{{int32(max(perTurn/perUnit, 1)), perUnit}}
	}
	return out
}

func turns(bytes, unit int64) int64 { return (bytes + unit - 1) / max(unit, 1) }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b int64) int64 { return a / gcd(a, b) * b }
