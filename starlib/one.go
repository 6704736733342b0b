package starlib

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// oneHeader is what a one-sided program is made of: the arguments of
// CollectiveProgram, or of AlgoSpec.
type oneHeader struct {
	name      string
	coll      *collective
	ranks     int32
	instances int32
	protocol  ir.Protocol

	fusion, autoSync, interleaved, reuse, double bool
	threads, alignment, minBytes, maxBytes       int64
}

// noLimit is MSCCL++'s max_message_size for no limit.
var noLimit = starlark.MakeUint64(math.MaxUint64)

var headerFields = []string{"name", "collective", "num_ranks", "instances", "protocol", "instr_fusion", "auto_sync",
	"replication_policy", "reuse_resources", "num_threads_per_block", "use_double_scratch_buffer", "buffer_alignment",
	"min_message_size", "max_message_size"}

// attr is a field as a script reads it, nil for none.
func (h *oneHeader) attr(name string) starlark.Value {
	switch name {
	case "name":
		return starlark.String(h.name)
	case "collective":
		if h.coll.hooks != nil {
			return h.coll.hooks.Self
		}
		return h.coll
	case "num_ranks":
		return starlark.MakeInt(int(h.ranks))
	case "instances":
		return starlark.MakeInt(int(h.instances))
	case "protocol":
		return starlark.String(h.protocol.String())
	case "instr_fusion":
		return starlark.Bool(h.fusion)
	case "auto_sync":
		return starlark.Bool(h.autoSync)
	case "replication_policy":
		if h.interleaved {
			return starlark.String("interleaved")
		}
		return starlark.String("none")
	case "reuse_resources":
		return starlark.Bool(h.reuse)
	case "num_threads_per_block":
		return starlark.MakeInt64(h.threads)
	case "use_double_scratch_buffer":
		return starlark.Bool(h.double)
	case "buffer_alignment":
		return starlark.MakeInt64(h.alignment)
	case "min_message_size":
		return starlark.MakeInt64(h.minBytes)
	case "max_message_size":
		if h.maxBytes == 0 {
			return noLimit
		}
		return starlark.MakeInt64(h.maxBytes)
	}
	return nil
}

// oneProgram is what CollectiveProgram returns: a one-sided program. It is
// traced once, while it is open.
type oneProgram struct {
	in      *interp
	h       oneHeader
	created diag.Pos

	b         *trace.One // nil before the program is entered
	opened    diag.Pos
	wantPlan  bool
	wantCheck bool
	kept      int              // its place among the script's programs, -1 without
	chunks    []trace.OneChunk // room for a list of chunks on its way into the trace
	spare     []chunkValue     // memory for values to come
	made      int              // how many spare had in the beginning
}

var (
	_ scope             = (*oneProgram)(nil)
	_ starlark.HasAttrs = (*oneProgram)(nil)
)

func (p *oneProgram) String() string       { return fmt.Sprintf("CollectiveProgram(%q)", p.h.name) }
func (p *oneProgram) Type() string         { return "CollectiveProgram" }
func (p *oneProgram) Freeze()              {}
func (p *oneProgram) Truth() starlark.Bool { return true }
func (p *oneProgram) Hash() (uint32, error) {
	return 0, fmt.Errorf("unhashable type: CollectiveProgram")
}

func (p *oneProgram) AttrNames() []string { return attrNames(oneProgramMethods, headerFields) }

func (p *oneProgram) Attr(name string) (starlark.Value, error) {
	if v := p.h.attr(name); v != nil {
		return v, nil
	}
	return method(p.in, p, oneProgramMethods, name), nil
}

// Iterate enters the program, so that a plain for does what with does.
func (p *oneProgram) Iterate() starlark.Iterator { return p.in.iterate(p) }

func (p *oneProgram) enter(pos diag.Pos) error {
	if err := p.in.mayBegin("CollectiveProgram", p.h.name, p.b != nil, p.opened, pos); err != nil {
		return err
	}
	h := &p.h
	c, err := oneCollective(h.coll)
	if err != nil {
		return positioned(err, p.created)
	}
	spec := ir.Spec{Name: h.name, Coll: c, Protocol: h.protocol, Instances: h.instances, Interleaved: h.interleaved, Fusion: h.fusion}
	b, err := trace.NewOne(spec, trace.OneOptions{AutoSync: h.autoSync, DoubleScratch: h.double, ReuseResources: h.reuse,
		ThreadsPerBlock: h.threads, Alignment: h.alignment, MinBytes: h.minBytes, MaxBytes: h.maxBytes,
		Loose: p.in.o.Frontend != nil})
	if err != nil {
		return positioned(inWords(err, "program: ", "CollectiveProgram: "), p.created)
	}
	p.b, p.opened, p.in.one = b, pos, p
	return nil
}

// soFar is what has been traced so far, complete or not.
func (p *oneProgram) soFar() *Program {
	return &Program{Name: p.h.name, One: p.b.Snapshot(), WantPlan: p.wantPlan, WantCheck: p.wantCheck, Pos: p.opened}
}

func (p *oneProgram) exit() error {
	p.in.one = nil
	t, err := p.b.Finish()
	if err != nil {
		return inList(err, p.opened)
	}
	p.kept = -1
	if p.in.loading == 0 {
		p.kept = len(p.in.script.Programs)
		p.in.script.Programs = append(p.in.script.Programs, Program{Name: p.h.name, One: t,
			WantPlan: p.wantPlan, WantCheck: p.wantCheck, Pos: p.opened})
	}
	return nil
}

// pos is where the script is, interned.
func (p *oneProgram) pos() ir.PosID { return p.b.Pos(p.in.here()) }

// use checks that p, which something in a call belongs to, is open.
func (p *oneProgram) use(call string) error {
	if p.in.one == p {
		return nil
	}
	if open := p.in.openName(); open != "" {
		return diag.Errorf(diag.Pos{}, "foreign-reference", "%s: it belongs to program %q, not to %s", call, p.h.name, open).
			Note(p.opened, "%q began here", p.h.name).
			Suggest("make ranks, buffers and channels anew in each program")
	}
	return diag.Errorf(diag.Pos{}, "program-ended", "%s: program %q, which it belongs to, has ended", call, p.h.name).
		Note(p.opened, "%q began here", p.h.name).
		Suggest("move the call into the with block")
}

// openName is the open program's name, of either level, in quotes; "" for none.
func (in *interp) openName() string {
	switch {
	case in.cur != nil:
		return fmt.Sprintf("%q", in.cur.spec.Name)
	case in.one != nil:
		return fmt.Sprintf("%q", in.one.h.name)
	}
	return ""
}

// openOne is the open one-sided program, or an error in the name of the call
// that needs one.
func (in *interp) openOne(call string) (*oneProgram, error) {
	switch {
	case in.one != nil:
		return in.one, nil
	case in.cur != nil:
		return nil, diag.Errorf(diag.Pos{}, "wrong-level", "%s: program %q routes chunks: it has no ranks, channels or thread blocks of its own",
			call, in.cur.spec.Name).
			Note(in.cur.opened, "%q begins here", in.cur.spec.Name).
			Suggest("use it inside: with CollectiveProgram(...):")
	}
	return nil, diag.Errorf(diag.Pos{}, "no-program", "%s: no program is open", call).
		Suggest("call it inside: with CollectiveProgram(...):")
}

// mayBegin checks that a program can begin at pos: made by call, and traced
// already or not.
func (in *interp) mayBegin(call, name string, traced bool, opened, pos diag.Pos) error {
	if outer := in.openName(); outer != "" {
		begun := diag.Pos{}
		if in.cur != nil {
			begun = in.cur.opened
		} else {
			begun = in.one.opened
		}
		return diag.Errorf(pos, "nested-program", "%s: program %q begins inside program %s", call, name, outer).
			Note(begun, "%s begins here", outer).
			Suggest("end the first program before the second one begins")
	}
	if traced {
		return diag.Errorf(pos, "program-ended", "%s: program %q was traced already", call, name).
			Note(opened, "it began here").
			Suggest("make a new %s for each with", call)
	}
	for i := range in.script.Programs {
		if other := &in.script.Programs[i]; other.Name == name && in.loading == 0 && in.o.Frontend == nil {
			return diag.Errorf(pos, "program-name", "%s: the script has a program %q already", call, name).
				Note(other.Pos, "it began here").
				Suggest("give each a name of its own: --program chooses by it")
		}
	}
	return nil
}

// inList gives the messages of err that have no position the position pos.
func inList(err error, pos diag.Pos) error {
	list := diag.Messages(err)
	for _, m := range list {
		if !m.Pos.IsValid() {
			m.Pos = pos
		}
	}
	return list
}

// oneCollective is a collective as one-sided programs count its chunks, which
// is MSCCL++'s way: an allreduce has num_ranks * chunk_factor of them. All others
// are counted alike. It is the program's own.
func oneCollective(x *collective) (*ir.Collective, error) {
	c := *x.c
	if c.Kind != ir.AllReduce {
		return &c, nil
	}
	if int64(c.Ranks)*int64(c.ChunkFactor) > ir.MaxLocations {
		return nil, diag.Errorf(diag.Pos{}, "too-large", "CollectiveProgram: allreduce has %d chunks a rank, num_ranks * chunk_factor: want %d at most",
			int64(c.Ranks)*int64(c.ChunkFactor), ir.MaxLocations)
	}
	c.ChunkFactor *= c.Ranks
	return &c, nil
}

// loopContext is what LoopIterationContext returns.
type loopContext struct {
	p      *oneProgram
	unit   int64
	chunks int32
}

var _ scope = (*loopContext)(nil)

func (l *loopContext) String() string {
	return fmt.Sprintf("LoopIterationContext(%d, %d)", l.unit, l.chunks)
}
func (l *loopContext) Type() string         { return "LoopIterationContext" }
func (l *loopContext) Freeze()              {}
func (l *loopContext) Truth() starlark.Bool { return true }
func (l *loopContext) Hash() (uint32, error) {
	return 0, fmt.Errorf("unhashable type: LoopIterationContext")
}
func (l *loopContext) Iterate() starlark.Iterator { return l.p.in.iterate(l) }

func (l *loopContext) enter(pos diag.Pos) error {
	if err := l.p.use("LoopIterationContext"); err != nil {
		return positioned(err, pos)
	}
	return l.p.b.Loop(l.unit, l.chunks, l.p.b.Pos(pos))
}

func (l *loopContext) exit() error {
	l.p.b.EndLoop()
	return nil
}
