package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
	"github.com/mscclsh/mscclsh/starlib"
	"github.com/mscclsh/mscclsh/table"
)

// tableSource runs the source of a table and returns its calls of algorithm(...).
func (s *Session) tableSource(ctx context.Context, src source) ([]starlib.Algorithm, error) {
	s.begin("running " + src.file)
	var calls []starlib.Algorithm
	script, err := starlib.Load(ctx, starlib.Options{File: src.file, Source: src.data, Library: algorithms.FS, MaxSteps: uint64(s.Set.MaxSteps),
		Print: func(_ diag.Pos, text string) { s.say(text) },
		Host: starlib.Host{Topology: machine.Topology, Algorithm: func(a starlib.Algorithm) error {
			calls = append(calls, a)
			return nil
		}}})
	if err != nil {
		return nil, err
	}
	switch {
	case len(script.Programs) > 0:
		return nil, diag.Errorf(script.Programs[0].Pos, "table", "the source of a table makes program %q itself", script.Programs[0].Name).
			Suggest("put it into a script of its own, and call algorithm(\"SCRIPT.star\", ...)")
	case len(calls) == 0:
		return nil, diag.Errorf(diag.Pos{File: src.file}, "table", "the source names no algorithm").
			Suggest("a table is made of calls such as algorithm(\"@algorithms/allreduce_ring.star\", ranks = [8], bytes = \"1MiB..\")")
	}
	return calls, nil
}

// kitchen makes entries of calls of algorithm(...).
type kitchen struct {
	s       *Session
	source  string             // the table's
	scripts map[string]*traced // by script and arguments
	names   map[string]int     // how often a name was made up
}

// dish is an entry on its way: a call of algorithm(...) for one number of ranks and one
// root.
type dish struct {
	call *starlib.Algorithm
	args []starlib.AlgorithmArg // the script's
	coll *ir.Collective
	low  int64 // bytes of a call
	high int64
	more bool // the call makes entries for other roots too
}

// recipes makes them all; what is wrong with several calls is said of each.
func (k *kitchen) recipes(ctx context.Context, calls []starlib.Algorithm) ([]table.Recipe, error) {
	var all []table.Recipe
	var bad diag.List
	for i := range calls {
		more, err := k.call(ctx, &calls[i])
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			bad = append(bad, diag.Messages(err)...)
		}
		all = append(all, more...)
	}
	if len(bad) > 0 {
		return nil, bad
	}
	return all, nil
}

// wrong is an error of one call of algorithm(...).
func wrong(a *starlib.Algorithm, code, format string, args ...any) *diag.Message {
	return diag.Errorf(a.Pos, code, "algorithm: "+format, args...)
}

// call makes the entries of one call: for each number of ranks and each root.
func (k *kitchen) call(ctx context.Context, a *starlib.Algorithm) ([]table.Recipe, error) {
	base, err := k.base(a)
	if err != nil {
		return nil, err
	}
	ranks := a.Ranks
	if ranks == nil {
		ranks = []int32{0}
	}
	var list []table.Recipe
	var bad diag.List
	for _, n := range ranks {
		args := slices.Clone(a.Args)
		if n > 0 {
			args = append(args, starlib.AlgorithmArg{Name: "ranks", Value: fmt.Sprint(n)})
		}
		dishes, err := k.dishes(ctx, a, args)
		if err != nil {
			return nil, err
		}
		for i := range dishes {
			r, err := k.cook(ctx, &dishes[i], base)
			if err != nil {
				if ctx.Err() != nil {
					return nil, err
				}
				bad = append(bad, diag.Messages(err)...)
				continue
			}
			list = append(list, *r)
		}
	}
	if len(bad) > 0 {
		return nil, bad
	}
	return list, nil
}

// base is what all entries of a call have in common.
func (k *kitchen) base(a *starlib.Algorithm) (table.Recipe, error) {
	r := table.Recipe{Pos: a.Pos, Priority: a.Priority, Threads: a.Threads, Nodes: a.Nodes}
	for _, name := range a.DTypes {
		d, err := runtime.ParseDType(name)
		if err != nil {
			return r, wrong(a, "dtype", "dtypes: %s", strings.TrimPrefix(err.Error(), "data type: "))
		}
		r.DTypes |= 1 << d
	}
	for _, name := range a.Ops {
		o, err := runtime.ParseReduceOp(name)
		if err != nil {
			return r, wrong(a, "op", "ops: %s", strings.TrimPrefix(err.Error(), "reduction: "))
		}
		r.Ops |= 1 << o
	}
	switch {
	case !strings.HasSuffix(a.Script, ".star"):
		return r, wrong(a, "script", "script: got %q, want a Starlark script, whose name ends in .star", a.Script)
	case a.Bytes != "" && a.BytesPerRank != "":
		return r, wrong(a, "bytes", "bytes and bytes_per_rank both say for which sizes").Suggest("give one of them")
	case a.Bytes == "" && a.BytesPerRank == "":
		return r, wrong(a, "bytes", "it doesn't say for which sizes").Suggest("give bytes = \"from..to\"; bytes = \"..\" is every size")
	case a.Memory != "" && a.Memory != table.AnyMemory.String() && a.Memory != table.Windows.String():
		return r, wrong(a, "memory", "memory: got %q, want any or windows", a.Memory)
	case a.Threads < 0 || a.Threads > cuda.MaxThreads || a.Threads%32 != 0:
		return r, wrong(a, "threads", "threads: got %d, want a multiple of 32 up to %d, or 0", a.Threads, cuda.MaxThreads)
	case a.Nodes < 1:
		return r, wrong(a, "hosts", "hosts: got %d, want 1 or more", a.Nodes)
	case a.Name != "" && !table.ValidName(a.Name):
		return r, wrong(a, "name", "name: got %.120q, want letters, digits and _ . # + -, at most 100 of them, and not %q", a.Name, table.NCCL)
	}
	for _, arg := range a.Args {
		if arg.Name == "root" && a.Roots != nil {
			return r, wrong(a, "roots", "root and roots both say which root")
		}
	}
	return r, nil
}

// dishes are the entries of a call for one number of ranks: one for each root.
func (k *kitchen) dishes(ctx context.Context, a *starlib.Algorithm, args []starlib.AlgorithmArg) ([]dish, error) {
	t, err := k.trace(ctx, a, args)
	if err != nil {
		return nil, err
	}
	c := t.coll()
	coll, known := table.OfKind(c.Kind)
	switch {
	case !known:
		return nil, wrong(a, "collective", "%s is a program for %v, and NCCL's interface has no call for that", a.Script, c).
			Suggest("want %s", orList(table.CollectiveNames()))
	case a.Nodes > 1 && c.Ranks%a.Nodes != 0:
		return nil, wrong(a, "hosts", "hosts: %d ranks don't lie on %d hosts alike", c.Ranks, a.Nodes)
	case a.Ops != nil && !coll.Reduces():
		return nil, wrong(a, "op", "ops: %v reduces nothing", coll).Suggest("leave ops out")
	case a.Ranks != nil && fmt.Sprint(c.Ranks) != args[len(args)-1].Value:
		return nil, wrong(a, "ranks", "%s makes a program of %d ranks when asked for %s", a.Script, c.Ranks, args[len(args)-1].Value)
	}
	one := dish{call: a, args: args, coll: c}
	if one.low, one.high, err = k.window(a, coll, c.Ranks); err != nil {
		return nil, err
	}
	param := "root"
	if coll == table.SendRecv {
		param = "src"
	}
	hasParam := t.has(param)
	given := slices.ContainsFunc(args, func(x starlib.AlgorithmArg) bool { return x.Name == param })
	switch {
	case a.Roots != nil && (!coll.Rooted() || !hasParam):
		return nil, wrong(a, "roots", "roots: %s has no parameter %q", a.Script, param)
	case !coll.Rooted() || !hasParam || given:
		return []dish{one}, nil
	}
	return k.perRoot(&one, param)
}

// perRoot repeats an entry for every root that was asked for.
func (k *kitchen) perRoot(one *dish, param string) ([]dish, error) {
	roots := one.call.Roots
	if roots == nil {
		for r := range one.coll.Ranks {
			roots = append(roots, r)
		}
	}
	var list []dish
	for _, r := range roots {
		if r >= one.coll.Ranks {
			return nil, wrong(one.call, "roots", "roots: got %d, and there are %d ranks", r, one.coll.Ranks)
		}
		d := *one
		d.more = len(roots) > 1
		d.args = append(slices.Clone(one.args), starlib.AlgorithmArg{Name: param, Value: fmt.Sprint(r)})
		list = append(list, d)
	}
	return list, nil
}

// window is the range of a call's bytes.
func (k *kitchen) window(a *starlib.Algorithm, c table.Collective, ranks int32) (low, high int64, err error) {
	name, text, blocks := "bytes", a.Bytes, int64(1)
	if a.BytesPerRank != "" {
		name, text, blocks = "bytes_per_rank", a.BytesPerRank, c.Blocks(ranks)
	}
	if low, high, err = rangeOf(text); err != nil {
		return 0, 0, wrong(a, "bytes", "%s: %s", name, strings.TrimPrefix(err.Error(), "size: "))
	}
	if low > table.OpenEnd/blocks || high < table.OpenEnd && high > table.OpenEnd/blocks {
		return 0, 0, wrong(a, "bytes", "%s: %q of %d ranks is more than a number holds", name, text, ranks)
	}
	if high < table.OpenEnd {
		high *= blocks
	}
	return low * blocks, high, nil
}

// maxMadeUp is how much of a name is made up of a script's name and its parameters, bytes:
// ranks, root and a number follow it.
const maxMadeUp = 60

// name is the entry's: the call's with what its entries differ in, or one made up of the
// script and its parameters.
func (k *kitchen) name(d *dish, p *ir.Program) string {
	a := d.call
	name := a.Name
	if name == "" {
		name = strings.TrimSuffix(path.Base(a.Script), ".star") + "-" + p.Protocol.String()
		for _, x := range a.Args {
			switch {
			case x.Name == "protocol" || x.Name == "root" || x.Name == "src" || x.Name == "instances" && x.Value == "1":
			case x.Name == "instances":
				name += "-x" + x.Value
			default:
				name += "-" + x.Name + x.Value
			}
		}
	}
	end := ""
	if a.Name == "" || len(a.Ranks) > 1 {
		end += "-r" + strconv.Itoa(int(d.coll.Ranks))
	}
	if c, _ := table.OfKind(d.coll.Kind); c.Rooted() && (a.Name == "" || d.more) {
		end += "-root" + strconv.Itoa(int(p.Coll.Root))
	}
	if a.Name != "" {
		return name + end
	}
	name = strings.Map(func(r rune) rune {
		if table.ValidName(string(r)) {
			return r
		}
		return '_'
	}, name)
	name = name[:min(len(name), maxMadeUp)] + end
	k.names[name]++
	if n := k.names[name]; n > 1 {
		name += "#" + strconv.Itoa(n)
	}
	return name
}
