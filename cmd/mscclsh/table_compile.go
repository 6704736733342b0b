package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/starlib"
	"github.com/mscclsh/mscclsh/table"
)

// traced is a script that was run with some arguments.
type traced struct {
	dag    *ir.ChunkDAG // of sends and receives
	one    *ir.OneTrace // or one-sided
	pos    diag.Pos
	params []string
	err    error
}

// coll is the collective of its program.
func (t *traced) coll() *ir.Collective {
	if t.one != nil {
		return t.one.Coll
	}
	return t.dag.Coll
}

func (t *traced) has(param string) bool { return slices.Contains(t.params, param) }

// trace runs a script, once for the same arguments.
func (k *kitchen) trace(ctx context.Context, a *starlib.Algorithm, args []starlib.AlgorithmArg) (*traced, error) {
	key := a.Script + "\x00" + fmt.Sprint(args)
	t := k.scripts[key]
	if t == nil {
		t = k.run(ctx, a.Script, args)
		k.scripts[key] = t
	}
	if t.err != nil {
		return nil, inEntry(a, t.err)
	}
	for _, x := range args {
		if !t.has(x.Name) {
			m := wrong(a, "unknown-argument", "%s has no parameter %s", a.Script, x.Name)
			others := slices.DeleteFunc(append(algorithmParams(), t.params...), func(name string) bool { return name == x.Name })
			if m.Suggestion = didYouMean(x.Name, others, ""); m.Suggestion == "" {
				m.Suggestion = "it has " + orList(t.params)
			}
			return nil, m
		}
	}
	return t, nil
}

// algorithmParams are the names that algorithm(...) itself has.
func algorithmParams() []string {
	var names []string
	for _, s := range starlib.Signatures() {
		if s.Name == "algorithm" && s.Receiver == "" {
			for _, p := range s.Params {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// run runs a script, which has to make one program.
func (k *kitchen) run(ctx context.Context, file string, args []starlib.AlgorithmArg) *traced {
	k.s.begin("running " + file)
	values := map[string]string{}
	for _, x := range args {
		values[x.Name] = x.Value
	}
	script, err := starlib.Load(ctx, starlib.Options{File: file, Args: values, Library: algorithms.FS, MaxSteps: uint64(k.s.Set.MaxSteps),
		Host: starlib.Host{
			Topology: machine.Topology,
			// What a script asks on its way is answered well: its program is judged by the table.
			Check: func(*starlib.Program) (bool, error) { return true, nil },
			Show:  func(*starlib.Program, string) error { return nil },
			Run:   func(*starlib.Program, starlib.RunOptions) (bool, error) { return true, nil },
		}})
	t := &traced{err: err}
	for _, p := range script.Params {
		t.params = append(t.params, p.Name)
	}
	switch {
	case err != nil:
	case len(script.Programs) != 1:
		t.err = diag.Errorf(diag.Pos{File: file}, "table", "the script makes %s, and an entry of a table has one", plural(int64(len(script.Programs)), "program"))
	case script.Programs[0].One != nil:
		t.one, t.pos = script.Programs[0].One, script.Programs[0].Pos
	default:
		t.dag, t.pos = script.Programs[0].DAG, script.Programs[0].Pos
		if t.dag.Protocol == ir.AutoProtocol {
			t.err = diag.Errorf(t.pos, "protocol", "protocol auto stands for other protocols at other sizes").
				Suggest("name one for each range: protocol = \"LL\", \"LL128\", \"Simple\" or \"Direct\"")
		}
	}
	return t
}

// inEntry says of errors which call of algorithm(...) they come from.
func inEntry(a *starlib.Algorithm, err error) error {
	var list diag.List
	for _, m := range diag.Messages(err) {
		if !m.Pos.IsValid() && m.Code == "" {
			return err // no message of ours: cancellation, say
		}
		c := *m
		c.Notes = append(slices.Clone(m.Notes), diag.Note{Pos: a.Pos, Text: "for this entry of the table"})
		list = append(list, &c)
	}
	return list
}

// cook compiles and judges an entry's programs.
func (k *kitchen) cook(ctx context.Context, d *dish, base table.Recipe) (*table.Recipe, error) {
	r := base
	r.MinBytes, r.MaxBytes = d.low, d.high
	t, err := k.trace(ctx, d.call, d.args)
	if err != nil {
		return nil, err
	}
	places := []string{""}
	switch {
	case t.has("inplace") && d.call.InPlace == "":
		places = []string{"false", "true"}
	case t.has("inplace"):
		places = []string{d.call.InPlace}
	case d.call.InPlace != "" && d.call.InPlace != fmt.Sprint(t.coll().InPlace):
		return nil, wrong(d.call, "inplace", "inplace: %s has no such parameter, its program is %s", d.call.Script, modeName(t.coll().InPlace))
	}
	for _, place := range places {
		args := d.args
		if place != "" {
			args = append(slices.Clone(args), starlib.AlgorithmArg{Name: "inplace", Value: place})
		}
		p, err := k.program(ctx, d, args)
		if err != nil {
			return nil, err
		}
		if p.Coll.InPlace {
			r.InPlace = p
		} else {
			r.OutOfPlace = p
		}
		if r.Name == "" {
			r.Name = k.name(d, p)
		}
	}
	if err := k.unite(ctx, d, t, &r); err != nil {
		return nil, err
	}
	r.Title = title(seenFrom(k.source, d.call.Script), d)
	return &r, nil
}

// title names an entry's program for people.
func title(script string, d *dish) string {
	var b strings.Builder
	b.WriteString(script)
	for _, x := range d.args {
		value := x.Value
		if !table.ValidName(value) {
			value = strconv.Quote(value) // so that it can't be taken for other arguments
		}
		fmt.Fprintf(&b, " --%s %s", x.Name, value)
	}
	return b.String()
}

// program compiles one program and judges it at all sizes of the entry.
func (k *kitchen) program(ctx context.Context, d *dish, args []starlib.AlgorithmArg) (*ir.Program, error) {
	t, err := k.trace(ctx, d.call, args)
	if err != nil {
		return nil, err
	}
	a := d.call
	k.s.begin("compiling " + title(d.call.Script, d))
	high := d.high
	if high == table.OpenEnd {
		high = 0
	}
	if t.one != nil {
		return k.oneSided(ctx, d, t)
	}
	res, err := compiler.Compile(ctx, t.dag, compiler.Options{Target: ir.TargetNative, MinBytes: d.low, MaxBytes: high})
	if err != nil {
		return nil, inEntry(a, compileError(err, t.pos))
	}
	p := res.Program
	direct := p.Protocol == ir.Direct
	switch {
	case direct && a.Memory == table.AnyMemory.String():
		return nil, wrong(a, "memory", "memory: protocol Direct reads and writes other ranks' buffers, which must lie in windows").
			Suggest("leave memory out, or take another protocol")
	case !direct && a.Memory == table.Windows.String():
		return nil, wrong(a, "memory", "memory: protocol %v takes any buffers: windows would keep it from calls that it serves", p.Protocol).
			Suggest("leave memory out")
	case p.MaxBytes > 0 && p.MaxBytes < d.high || p.MinBytes > d.low:
		return nil, unsafeRange(d, p.MinBytes, p.MaxBytes)
	}
	return p, k.judge(ctx, d, t, p)
}

// unsafeRange names the sizes that would be safe.
func unsafeRange(d *dish, low, high int64) error {
	safe := table.Entry{MinBytes: max(low, d.low), MaxBytes: table.OpenEnd}
	if high > 0 {
		safe.MaxBytes = min(high, d.high)
	}
	whole := table.Entry{MinBytes: d.low, MaxBytes: d.high}
	return wrong(d.call, "unsafe-range", "unsafe range: %s on %d ranks is safe for %s, not for all of %s",
		d.call.Script, d.coll.Ranks, safe.Range(), whole.Range()).Suggest("bytes = %q", safe.Range())
}

// judge refuses what doesn't hold at all sizes.
func (k *kitchen) judge(ctx context.Context, d *dish, t *traced, p *ir.Program) error {
	k.s.begin("checking " + title(d.call.Script, d))
	rep, err := checkWindow(ctx, p)
	if err != nil {
		return err
	}
	if holds(rep) {
		return nil
	}
	if rep.SafeMaxBytes > 0 && rep.SafeMaxBytes >= d.low {
		return unsafeRange(d, p.MinBytes, rep.SafeMaxBytes)
	}
	how := "doesn't hold"
	if rep.OK {
		how = "doesn't hold where launches follow each other"
	}
	m := wrong(d.call, "unsafe", "%s on %d ranks, %s, %s: %s", d.call.Script, d.coll.Ranks, modeName(p.Coll.InPlace), how, rep.Summary())
	for _, found := range rep.Messages {
		if !against(found) || len(m.Notes) >= maxTableNotes {
			continue
		}
		at := found.Pos
		if !at.IsValid() {
			at = t.pos
		}
		m.Note(at, "%s", found.Text)
	}
	return m
}

// maxTableNotes is how many findings stand below an entry that doesn't hold.
const maxTableNotes = 3
