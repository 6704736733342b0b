package plan

import (
	"unicode/utf8"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// The sizes of the tables in MSCCL++'s executor (execution_common.hpp). It
// checks the first only; a plan over another overwrites its neighbors.
const (
	MaxOps        = 64   // operations of a thread block: a pipeline and its body count each
	MaxChannels   = 16   // channels, and remote buffers, of one kind that a thread block uses
	MaxIDs        = 8    // channels of one operation
	MaxBuffers    = 10   // sources, or destinations, of one operation
	MaxSemaphores = 16   // semaphores of one operation
	MaxBarriers   = 16   // barriers of a rank
	MaxThreads    = 1024 // threads of a thread block
	MaxUnit       = 1<<32 - 1
)

// maxMessages is how many of its findings Refuse tells.
const maxMessages = 20

// Refuse says why the executor would not run p as p means: a limit that p
// exceeds (code plan-limit), or something that the format or the executor has
// no way to say (code plan-refused). It is nil, or a diag.List.
func Refuse(p *ir.Program) error { return refuse(p, true) }

// refuse is Refuse, with or without the limits.
func refuse(p *ir.Program, limits bool) error {
	f := &refusal{p: p}
	return f.examine(limits)
}

// refuseWritten is Refuse without what a plan can say and the executor does
// otherwise: that comes back as warnings, code plan-quirk.
func refuseWritten(p *ir.Program) (diag.List, error) {
	f := &refusal{p: p, asWritten: true}
	err := f.examine(true)
	return f.notes, err
}

func (f *refusal) examine(limits bool) error {
	if f.p.OneSided == nil {
		return diag.List{diag.Errorf(diag.Pos{}, "plan-refused", "the program is two-sided: an execution plan holds one-sided operations")}
	}
	if err := f.p.Validate(); err != nil {
		return diag.Messages(err)
	}
	f.whole()
	if limits {
		f.limits()
	}
	f.quirks()
	return f.result()
}

// overLimits is Refuse for the limits alone.
func overLimits(p *ir.Program) error {
	f := &refusal{p: p}
	f.limits()
	return f.result()
}

type refusal struct {
	p    *ir.Program
	list diag.List
	more int

	asWritten bool      // quirks are notes
	notes     diag.List // warnings, at most maxMessages of them
}

func (f *refusal) result() error {
	if len(f.list) == 0 {
		return nil
	}
	if f.more > 0 {
		f.list = append(f.list, diag.Errorf(diag.Pos{}, "plan-refused", "and %d more", f.more))
	}
	return f.list
}

func (f *refusal) add(pos diag.Pos, code, format string, args ...any) {
	if len(f.list) >= maxMessages {
		f.more++
		return
	}
	f.list = append(f.list, diag.Errorf(pos, code, format, args...))
}

// quirk reports what a plan can say and the executor does otherwise.
func (f *refusal) quirk(pos diag.Pos, format string, args ...any) {
	switch {
	case !f.asWritten:
		f.add(pos, "plan-refused", format, args...)
	case len(f.notes) < maxMessages:
		f.notes = append(f.notes, diag.Warningf(pos, "plan-quirk", format, args...))
	}
}

// limit reports a number that is too large.
func (f *refusal) limit(pos diag.Pos, rank, tb, got, most int, what string) {
	if got > most {
		f.add(pos, "plan-limit", "rank %d thread block %d: got %d %s, MSCCL++'s executor has room for %d", rank, tb, got, what, most)
	}
}

// blocks calls do with each thread block, its operations and those of its pipelines.
func (f *refusal) blocks(do func(rank, tb int, ops []ir.Op)) {
	o := f.p.OneSided
	for g := range o.GPUs {
		for b := range o.GPUs[g].Blocks {
			do(g, b, o.Ops[o.GPUs[g].Blocks[b].Start:blockEnd(o, g, b)])
		}
	}
}

// blockEnd is the end of a block's operations with the bodies behind them.
func blockEnd(o *ir.OneSided, g, b int) int32 {
	s := o.GPUs[g].Blocks[b]
	end := s.End
	for i := s.Start; i < s.End; i++ {
		if o.Ops[i].Kind == ir.OpPipeline {
			end = o.Ops[i].Body.End
		}
	}
	return end
}

func (f *refusal) limits() {
	f.limit(diag.Pos{}, 0, 0, int(f.p.OneSided.ThreadsPerBlock), MaxThreads, "threads")
	f.blocks(func(rank, tb int, ops []ir.Op) {
		at := diag.Pos{}
		if len(ops) > 0 {
			at = f.p.Pos(ops[min(MaxOps, len(ops)-1)].Pos)
		}
		f.limit(at, rank, tb, len(ops), MaxOps, "operations")
		u := newUses(f.p, rank)
		for i := range ops {
			u.add(&ops[i])
			f.op(rank, tb, &ops[i])
		}
		for k := ir.ChannelMemory; k <= ir.ChannelSwitch; k++ {
			f.limit(at, rank, tb, len(u.channels[k].list), MaxChannels, k.String()+" channels")
			f.limit(at, rank, tb, len(u.remotes[k].list), MaxChannels, "remote buffers via "+k.String()+" channels")
		}
	})
}

// op checks the limits of one operation.
func (f *refusal) op(rank, tb int, op *ir.Op) {
	pos, refs := f.p.Pos(op.Pos), op.Refs.Len()
	f.limit(pos, rank, tb, op.Src.Len(), MaxBuffers, "sources of "+op.Kind.String())
	f.limit(pos, rank, tb, op.Dst.Len(), MaxBuffers, "destinations of "+op.Kind.String())
	switch op.Kind {
	case ir.OpBarrier:
		f.limit(pos, rank, tb, int(f.p.OneSided.RefsOf(op)[0])+1, MaxBarriers, "barriers")
	case ir.OpSemaphoreAcquire, ir.OpSemaphoreRelease:
		f.limit(pos, rank, tb, refs, MaxSemaphores, "semaphores of "+op.Kind.String())
	case ir.OpPipeline:
		if op.UnitBytes > MaxUnit {
			f.add(pos, "plan-limit", "rank %d thread block %d: got a unit of %d bytes, MSCCL++'s executor counts to %d", rank, tb, op.UnitBytes, MaxUnit)
		}
	default:
		f.limit(pos, rank, tb, refs, MaxIDs, "channels of "+op.Kind.String())
	}
}

// whole checks what concerns the plan as a whole.
func (f *refusal) whole() {
	p := f.p
	if !utf8.ValidString(p.Name) || !utf8.ValidString(p.Coll.Name) {
		f.add(diag.Pos{}, "plan-refused", "the name %q is not UTF-8, as JSON must be", p.Name)
	}
	if err := f.collective(); err != "" {
		f.add(diag.Pos{}, "plan-refused", "%s: %s", p.Coll, err)
		return
	}
	for g := range p.GPUs {
		if in, out := planSizes(p.Coll, ir.Rank(g)); in == 0 || out == 0 {
			f.quirk(diag.Pos{}, "rank %d has %d input and %d output chunks, and MSCCL++'s executor divides by both", g, in, out)
		}
	}
}

// collective says why a plan can't name what the program computes, or "".
func (f *refusal) collective() string {
	c := f.p.Coll
	switch c.Kind {
	case ir.AllReduce, ir.AllGather, ir.ReduceScatter, ir.AllToAll, ir.Broadcast:
		return ""
	case ir.Custom:
	default:
		return "MSCCL++ has no such collective"
	}
	if _, known := planCollectives[c.Name]; known || c.Name == "" {
		return "the name is not its own"
	}
	sources := make([]int32, 0)
	if c.Name == "sendrecv" && !c.InPlace {
		sources = flow(f.p)
	}
	for g, row := range c.Custom.Expect {
		for i, want := range row {
			inferred := g < len(sources) && sources[g] >= 0 && len(want) == 1 && want[0] == ir.Contribution{Rank: ir.Rank(sources[g]), Index: int32(i)}
			if want != nil && !inferred {
				return "a plan can't say what a collective of one's own has to compute"
			}
		}
	}
	return ""
}

// quirks refuses what the executor does otherwise than the operation says.
func (f *refusal) quirks() {
	o := f.p.OneSided
	f.pool()
	f.blocks(func(rank, tb int, ops []ir.Op) {
		for i := range ops {
			op := &ops[i]
			src, dst, pos := o.Sources(op), o.Destinations(op), f.p.Pos(op.Pos)
			refuse := func(why string) {
				f.quirk(pos, "rank %d thread block %d: %s: %s", rank, tb, op.Kind, why)
			}
			if op.Reduce > ir.ReduceSum {
				refuse("MSCCL++'s executor sums, whatever the plan says")
			}
			switch {
			case op.Kind == ir.OpFlush:
				refuse("it does nothing in MSCCL++'s executor; pwsf does")
			case op.Kind == ir.OpGet && !equal(src, dst, func(a, b ir.Operand) bool { return a.Index == b.Index }):
				refuse("MSCCL++'s executor swaps the indices of source and destination")
			case (op.Kind == ir.OpPut || op.Kind == ir.OpPutPackets) && op.Via == ir.ChannelMemory &&
				!equal(src, src[:1], func(a, b ir.Operand) bool { return a.Buf == b.Buf }):
				refuse("MSCCL++'s executor takes all sources from the buffer of the first")
			}
			if ownRemote(op, src, false, rank) || ownRemote(op, dst, true, rank) {
				f.add(pos, "plan-refused", "rank %d thread block %d: %s: the remote buffer is the rank's own", rank, tb, op.Kind)
			}
		}
	})
}

// equal compares a with b, whose last element stands for all that follow.
func equal(a, b []ir.Operand, same func(a, b ir.Operand) bool) bool {
	for i := range a {
		if !same(a[i], b[min(i, len(b)-1)]) {
			return false
		}
	}
	return true
}

// ownRemote reports whether one of the remote operands is on rank itself.
func ownRemote(op *ir.Op, list []ir.Operand, destination bool, rank int) bool {
	for i, a := range list {
		if where, _ := op.Kind.Operand(op.Via, destination, i); where == ir.WhereRemote && int(a.Rank) == rank {
			return true
		}
	}
	return false
}
