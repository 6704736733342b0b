package compiler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// onePass is a row of the pipeline from a one-sided trace to a program. The two
// pipelines have passes of different state, and nothing else in common.
type onePass struct {
	name     string
	doc      string
	optional bool
	run      func(context.Context, *oneState) error
	show     func(*oneState, *Stage) // nil: the form at that point isn't one to show
}

// oneState is what the passes of a one-sided trace share. Each field is written by
// the passes named.
type oneState struct {
	opt      Options
	disabled map[string]bool
	limited  bool // operations have to fit MSCCL++'s executor

	trace   *ir.OneTrace // as given, then assign, then order
	ours    []bool       // assign, order: of an operation of the trace, its thread block is the compiler's choice
	space   *oneSpace
	pairs   []onePair         // depend
	shifted []bool            // depend: of a loop, its turns touch memory of others
	flushes map[int32]int32   // depend: of an operation by a port, the flush that ends it
	every   [][]int32         // assign and later: of each rank, the thread blocks that operations name
	from    map[int32]ir.Rank // depend: by operation, the rank that its first packets come from
	meets   map[int32]int32   // order: by operation, the last one that it has to meet after
	ranks   [][]oneBlock      // gather, then fuse, datasync, meet: thread blocks of each rank
	out     *ir.Program       // emit, then replicate
}

// onePair is two operations of one rank, by their place in the trace, of which the
// first has to be over before the second begins.
type onePair struct {
	a, b  int32
	chain bool // they touch nothing in common, but are links of a chain between ranks
	queue bool // they count on one channel or semaphore, which is all that links them
}

var onePasses []onePass

func init() {
	trace := func(s *oneState, st *Stage) { st.Trace = s.trace }
	program := func(s *oneState, st *Stage) { st.Program = s.out }
	onePasses = []onePass{
		{name: "depend", doc: "find what has to come before what on a rank", run: oneDepend},
		{name: "assign", doc: "give operations without a thread block one, by dependence and peer", run: oneAssign, show: trace},
		{name: "order", doc: "order conflicting operations of different thread blocks by semaphores, and flush ports where that is missing", optional: true,
			run: oneOrder, show: trace},
		{name: "gather", doc: "list the operations of each thread block", run: oneGather},
		{name: "fuse", doc: "join neighbors that one operation can do", optional: true, run: oneFuse},
		{name: "datasync", doc: "let threads meet where the script says so, once", run: oneDataSync},
		{name: "meet", doc: "let threads meet between conflicting operations of a thread block", optional: true, run: oneMeet},
		{name: "emit", doc: "write the program of one instance", run: oneEmit, show: program},
		{name: "replicate", doc: "repeat it for every instance, each with its own part of every chunk", run: oneReplicate, show: program},
	}
	for _, c := range oneConstraints {
		if onePassIndex(c.before) < 0 || onePassIndex(c.after) < 0 || onePassIndex(c.before) >= onePassIndex(c.after) {
			panic(fmt.Sprintf("compiler: one-sided pass %s must come before %s: %s", c.before, c.after, c.why))
		}
	}
}

// oneConstraints are the orders that the table must keep; they are verified when the
// program starts.
var oneConstraints = []struct{ before, after, why string }{
	{"depend", "assign", "operations that build on one another share a thread block"},
	{"assign", "order", "only different thread blocks need semaphores"},
	{"order", "gather", "semaphores stand between operations"},
	{"order", "fuse", "a joined operation would wait for all and announce all that its parts do"},
	{"gather", "fuse", "neighbors are those of a thread block"},
	{"fuse", "datasync", "joined signals meet once"},
	{"fuse", "meet", "what is one operation needs no meeting within"},
	{"datasync", "meet", "a meeting that is asked for makes others unnecessary"},
	{"meet", "emit", "operations are numbered once all are there"},
	{"emit", "replicate", "all instances do the same"},
}

// OnePasses lists the pipeline of CompileOneSided in order.
func OnePasses() []PassInfo {
	infos := make([]PassInfo, len(onePasses))
	for i, p := range onePasses {
		infos[i] = PassInfo{p.name, p.doc, !p.optional}
	}
	return infos
}

func onePassIndex(name string) int {
	return slices.IndexFunc(onePasses, func(p onePass) bool { return p.name == name })
}

func onePassNames(optional bool) string {
	var names []string
	for _, p := range onePasses {
		if p.optional || !optional {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ", ")
}

// CompileOneSided turns a one-sided program as it is written into one of an
// executor's operations. What each pass does, and why it may, is in
// docs/onepasses.md.
//
// Of the options, Disable and Observe are those of Compile. Target native makes
// operations as large as they come; for every other target none has more operands
// or channels than MSCCL++'s executor has room for.
//
// Errors are *diag.Message where the program is at fault, ctx's error when
// canceled; anything else is a defect of the compiler and names the pass.
func CompileOneSided(ctx context.Context, t *ir.OneTrace, o Options) (*ir.Program, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	chunks := int64(0)
	for r := range t.GPUs {
		rank := ir.Rank(r)
		chunks += int64(t.Coll.InputChunks(rank)) + int64(t.Coll.OutputChunks(rank)) + int64(t.GPUs[r].Scratch)
	}
	if chunks > ir.MaxLocations {
		return nil, diag.Errorf(diag.Pos{}, "too-many-chunks", "program %q: its buffers have %d chunks, the compiler holds %d", t.Name, chunks, ir.MaxLocations).
			Suggest("use larger chunks")
	}
	s := &oneState{opt: o, trace: t, limited: o.Target != ir.TargetNative, disabled: map[string]bool{}, space: newOneSpace(t)}
	for _, name := range o.Disable {
		switch i := onePassIndex(name); {
		case i < 0:
			return nil, fmt.Errorf("no pass is called %q; the passes of a one-sided program are %s", name, onePassNames(false))
		case !onePasses[i].optional:
			return nil, fmt.Errorf("pass %s can't be left out; those that can are %s", name, onePassNames(true))
		}
		s.disabled[name] = true
	}
	s.disabled["fuse"] = s.disabled["fuse"] || !t.Fusion
	for i := range onePasses {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("compiling %s: %w", t.Name, context.Cause(ctx))
		}
		if err := s.run(ctx, &onePasses[i]); err != nil {
			return nil, err
		}
	}
	return s.out, nil
}

// run runs one pass and shows what it made. A panic becomes an error that names the
// pass: it is never the user's fault.
func (s *oneState) run(ctx context.Context, p *onePass) (err error) {
	if s.disabled[p.name] {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("internal error in pass %s of one-sided program %q: %v; please report it with the script", p.name, s.trace.Name, v)
		}
	}()
	if err := p.run(ctx, s); err != nil {
		return err
	}
	if s.opt.Observe != nil && p.show != nil {
		st := Stage{Pass: p.name}
		p.show(s, &st)
		s.opt.Observe(st)
	}
	return nil
}
