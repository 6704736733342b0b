package main

import (
	"context"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cuda"
	"github.com/mscclsh/mscclsh/table"
)

// oneSided compiles a one-sided program and judges it at all sizes of the entry.
func (k *kitchen) oneSided(ctx context.Context, d *dish, t *traced) (*ir.Program, error) {
	a := d.call
	p, err := compiler.CompileOneSided(ctx, t.one, compiler.Options{Target: ir.TargetNative})
	if err != nil {
		return nil, inEntry(a, compileError(err, t.pos))
	}
	for i := range p.OneSided.Ops {
		if op := &p.OneSided.Ops[i]; op.Via == ir.ChannelSwitch {
			return nil, inEntry(a, diag.Errorf(p.Pos(op.Pos), "switch", "switch channels need multicast between GPUs, which the library leaves alone"))
		}
	}
	if err := cuda.Validate(p); err != nil {
		return nil, inEntry(a, err)
	}
	p.MinBytes, p.MaxBytes = d.low, 0
	if d.high < table.OpenEnd {
		p.MaxBytes = d.high
	}
	reaches := cuda.Reaches(p)
	switch {
	case reaches && a.Memory == table.AnyMemory.String():
		return nil, wrong(a, "memory", "memory: the program touches other ranks' input or output, which must lie in windows").
			Suggest("leave memory out, or take a script that goes through scratch")
	case !reaches && a.Memory == table.Windows.String():
		return nil, wrong(a, "memory", "memory: the program touches nothing of other ranks but scratch: windows would keep it from calls that it serves").
			Suggest("leave memory out")
	}
	return p, k.judge(ctx, d, t, p)
}

// unite makes one program of an entry's two one-sided ones that touch nothing of other ranks
// but scratch. No rank sees whether another calls in place, and two such programs can't meet:
// their packets and signals are their own. But the operations of one may be right for calls
// of both kinds, and what they do at other ranks is the same then. Those for calls out of
// place are tried first, since fewer threads meet there.
func (k *kitchen) unite(ctx context.Context, d *dish, t *traced, r *table.Recipe) error {
	if r.InPlace == nil || r.OutOfPlace == nil || t.one == nil {
		return nil
	}
	for _, p := range []*ir.Program{r.OutOfPlace, r.InPlace} {
		if !table.ForBothPlaces(p) {
			continue
		}
		k.s.begin("checking " + title(d.call.Script, d) + " for both places")
		rep, err := checkWindow(ctx, placed(p, !p.Coll.InPlace))
		if err != nil {
			return err
		}
		if holds(rep) {
			r.Both = placed(p, false)
			return nil
		}
	}
	return nil
}

// placed is a one-sided program for calls in place, or not, with the same operations.
func placed(p *ir.Program, inPlace bool) *ir.Program {
	q, spec, coll := *p, *p.Spec, *p.Coll
	coll.InPlace = inPlace
	spec.Coll = &coll
	q.Spec = &spec
	return &q
}

// checkWindow judges a program at the sizes that it is for.
func checkWindow(ctx context.Context, p *ir.Program) (*checker.Report, error) {
	return checker.Check(ctx, p, checker.Options{MinBytes: p.MinBytes, MaxBytes: p.MaxBytes})
}

// notInTables are findings that are no errors of a program, but keep it from a table, where
// launches of all its sizes follow each other.
var notInTables = []string{checker.CodeRaceAcross, checker.CodeLeftover, checker.CodeUndecided}

// holds reports whether a program may go into a table.
func holds(rep *checker.Report) bool {
	ok := rep.OK && rep.RacesAcross == 0
	for _, code := range notInTables {
		ok = ok && !rep.Has(code)
	}
	return ok
}

// against reports whether a finding keeps a program from a table.
func against(m *diag.Message) bool {
	bad := m.Severity == diag.Error
	for _, code := range notInTables {
		bad = bad || m.Code == code
	}
	return bad
}
