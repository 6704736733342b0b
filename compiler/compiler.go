package compiler

import (
	"context"
	"fmt"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Options steers a compilation. The zero value compiles for msccl, every size.
type Options struct {
	Target    ir.Target
	Slots     int32 // messages in flight on a connection; 0: the target's
	SlotBytes int64 // payload of one message in bytes; 0: the target's

	// MinBytes and MaxBytes are the sizes (total bytes, inclusive) that the
	// program has to be safe for; MaxBytes 0 is every size.
	MinBytes, MaxBytes int64

	// CanonicalOrder makes all ranks add in the order of the ranks, so that the
	// results of an allreduce are the same bits everywhere, at the price of
	// some scratch and later starts.
	CanonicalOrder bool

	Size           int64 // bytes that protocol auto chooses for
	DirectAsSimple bool  // a target without protocol Direct gets Simple for it, not an error

	Disable []string    // passes to leave out, by name; required ones can't be
	Observe func(Stage) // called after every pass with what it made, or nil
}

// Stage is what a pass made: exactly one of the forms is not nil. A pass that
// runs again after a retry is observed again.
type Stage struct {
	Pass    string
	Chunks  *ir.ChunkDAG
	Instrs  *ir.InstrDAG
	Trace   *ir.OneTrace // of CompileOneSided
	Program *ir.Program
}

// Stats counts what the passes did.
type Stats struct {
	ChunkOps    int // operations of the script
	Replicated  int // operations after replication
	StepsBefore int // instructions before fusion
	StepsAfter  int // steps of the program, without nops
	DepsBefore  int // waits between thread blocks that hazards ask for
	DepsAfter   int // waits kept
	Nops        int
}

// PassTime is the time one pass took, all its runs together.
type PassTime struct {
	Pass     string
	Duration time.Duration
}

// Result of a compilation. Notes are for the user: what was done to make the
// program fit, and hints that were not taken.
type Result struct {
	Program *ir.Program
	Stats   Stats
	Notes   diag.List
	Times   []PassTime
}

// state is what the passes share. Each field is written by the pass named.
type state struct {
	opt       Options
	limits    ir.Limits
	transport ir.Transport
	regime    int32 // K to be safe for: the smallest in the size window
	disabled  map[string]bool

	source *ir.ChunkDAG // as given, then canonical
	chunks *ir.ChunkDAG // replicate, then split
	base   *ir.InstrDAG // lower
	fused  *ir.InstrDAG // fuse
	slotOf []int32      // fuse: the index in base that a fused instruction stands for
	conns  []connection // channels
	sendBy []int32      // channels: connection an instruction sends on, or None
	recvBy []int32      // channels: connection an instruction receives from, or None
	tbs    []threadBlock
	tbOf   []int32   // threadblocks, order: thread block of an instruction
	edges  *ir.Edges // order
	exec   []int32   // order: instructions in the order of the witness run
	at     []int32   // order: position of an instruction in exec
	steps  [][]int32 // synchronize: instructions of each thread block
	ofRank [][]int32 // synchronize: instructions of each rank, in the order of exec
	stepOf []int32   // synchronize: index in its thread block
	waits  waitTable // synchronize, reduce
	places []scratchMap
	out    *ir.Program

	groups *groups // threadblocks: what native programs keep together

	// Direct alone.
	when     []int32   // threadblocks: where an instruction's unit comes in their order
	neededBy [][]int32 // threadblocks: what depends on an instruction, on its rank
	mate     []int32   // threadblocks: the other half of an exchange, or None

	taken takeback
	notes diag.List
	stats Stats
}

// takeback is what later passes have withdrawn from earlier ones, for good.
type takeback struct {
	send    []bool // by slot: don't fuse a send to this instruction
	delay   []bool // by slot: don't move a receive to this instruction
	allJoin bool   // no fusion at all
	split   bool   // counts are split
	reorder int    // how far down the ladder of orders
	window  int32  // regime that the size window was narrowed to, 0 if not
	strict  bool   // messages of a connection keep the script's order
	scatter bool   // groups need not stay together
}

// retry asks for the passes from the named one on to be run again.
type retry struct{ from string }

func (r *retry) Error() string { return "retry from " + r.from }

// Compile runs the passes. Errors are *diag.Message or diag.List where the
// program is at fault, ctx's error when canceled; anything else is a defect of
// the compiler and names the pass.
func Compile(ctx context.Context, d *ir.ChunkDAG, o Options) (*Result, error) {
	if d.Protocol == ir.AutoProtocol {
		return compileAuto(ctx, d, o)
	}
	s, err := newState(d, o)
	if err != nil {
		return nil, err
	}
	times := make([]time.Duration, len(passes))
	for i := 0; i < len(passes); {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("compiling %s: %w", d.Name, context.Cause(ctx))
		}
		p := &passes[i]
		start := time.Now()
		err := s.run(ctx, p)
		times[i] += time.Since(start)
		if again, ok := err.(*retry); ok {
			i = passIndex(again.from)
			continue
		}
		if err != nil {
			return nil, err
		}
		i++
	}
	r := &Result{Program: s.out, Stats: s.stats, Notes: s.notes}
	for i := range passes {
		r.Times = append(r.Times, PassTime{passes[i].name, times[i]})
	}
	return r, nil
}

// run runs one pass and shows its result. A panic becomes an error that names
// the pass: it is never the user's fault.
func (s *state) run(ctx context.Context, p *pass) (err error) {
	if p.optional && s.disabled[p.name] {
		if p.off == nil {
			return nil
		}
		return p.off(s)
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("internal error in pass %s of program %q: %v; please report it with the script", p.name, s.source.Name, v)
		}
	}()
	if err := p.run(ctx, s); err != nil {
		return err
	}
	if s.opt.Observe != nil {
		st := Stage{Pass: p.name}
		p.show(s, &st)
		s.opt.Observe(st)
	}
	return nil
}

// maxRanks is what a connection's key has room for.
const maxRanks = 1 << 20

// noDirect refuses a program of protocol Direct where messages need slots.
func noDirect(name string, target ir.Target) *diag.Message {
	return diag.Errorf(diag.Pos{}, "protocol-target", "program %q: protocol Direct is for target native: messages of target %s go through slots", name, target).
		Suggest("compile it as Simple (--direct-as-simple), or with another protocol")
}

func newState(d *ir.ChunkDAG, o Options) (*state, error) {
	s := &state{opt: o, limits: o.Target.Limits(), source: d, chunks: d, disabled: map[string]bool{}}
	for _, name := range o.Disable {
		i := passIndex(name)
		if i < 0 {
			return nil, fmt.Errorf("no pass is called %q; the passes are %s", name, passNames())
		}
		if !passes[i].optional {
			return nil, fmt.Errorf("pass %s can't be left out; those that can are %s", name, optionalNames())
		}
		s.disabled[name] = true
	}
	if s.direct() && !s.native() {
		if !o.DirectAsSimple {
			return nil, noDirect(d.Name, o.Target)
		}
		d = withProtocol(d, ir.Simple)
		s.source, s.chunks = d, d
		s.note(&diag.Message{Severity: diag.Info, Code: "direct-as-simple", Text: "protocol Simple in place of Direct, which target " + o.Target.String() + " doesn't have"})
	}
	s.transport = o.Target.Transport(d.Protocol)
	if o.Slots > 0 && !s.direct() {
		s.transport.Slots = o.Slots
	}
	if o.SlotBytes > 0 && !s.direct() {
		s.transport.SlotBytes = o.SlotBytes
	}
	if o.MinBytes < 0 || o.MaxBytes < 0 || o.MaxBytes > 0 && o.MinBytes > o.MaxBytes {
		return nil, fmt.Errorf("size window: got %d to %d bytes, want 0 <= min <= max", o.MinBytes, o.MaxBytes)
	}
	if d.Ranks() > maxRanks {
		return nil, fmt.Errorf("program %q: got %d ranks, want at most %d", d.Name, d.Ranks(), maxRanks)
	}
	s.stats.ChunkOps = len(d.Ops)
	return s, nil
}

// native reports whether the program is for this project's own runtimes.
func (s *state) native() bool { return s.opt.Target == ir.TargetNative }

// direct reports whether messages are rendezvous.
func (s *state) direct() bool { return s.source.Protocol == ir.Direct }

// flagged reports whether messages carry their own flags: LL and LL128.
func (s *state) flagged() bool { return s.source.Protocol == ir.LL || s.source.Protocol == ir.LL128 }

// recvReduce reports whether the target runs rrc.
func (s *state) recvReduce() bool { return s.limits.FusedSteps || s.limits.RecvReduce }

// messages is the number of slots that a step of count chunks needs in the
// worst regime of the size window.
func (s *state) messages(count int32) int32 { return ir.Messages(count, s.regime) }

// note adds an information for the user, the first of its code only: what is
// true of one place is usually true of many, and passes run again.
func (s *state) note(m *diag.Message) {
	if !s.noted(m.Code) {
		s.notes = append(s.notes, m)
	}
}

func (s *state) noted(code string) bool {
	for _, n := range s.notes {
		if n.Code == code {
			return true
		}
	}
	return false
}
