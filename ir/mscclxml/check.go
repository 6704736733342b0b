package mscclxml

import (
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// maxOffset is the largest offset that the runtimes keep: an int16, in chunks.
const maxOffset = math.MaxInt16

// checker holds what the checks of one program share.
type checker struct {
	p      *ir.Program
	target ir.Target
	limits ir.Limits
	bound  bool // the target is a runtime, not a tool

	// Where the check stands, -1 for the whole of what is above.
	rank, tb, step int
}

// check refuses what the target can't hold and what no compiler should make.
func check(p *ir.Program, t ir.Target) (*dialect, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if t == ir.TargetNative {
		return nil, diag.Errorf(diag.Pos{}, "xml-program", "target native has no XML").Suggest("write it for another target, or in the text form")
	}
	if p.Direct() {
		return nil, diag.Errorf(diag.Pos{}, "xml-direct", "protocol Direct has no slots, for which MSCCL XML has no word").
			Suggest("compile with protocol Simple, LL or LL128, or ask for the program to be mapped to Simple (--direct-as-simple)")
	}
	c := &checker{p: p, target: t, limits: t.Limits(), bound: runtime(t), rank: -1, tb: -1, step: -1}
	d, err := newDialect(p, t)
	if err != nil {
		return nil, err
	}
	if err := c.name(); err != nil {
		return nil, err
	}
	if err := c.whole(d); err != nil {
		return nil, err
	}
	for c.rank = range p.GPUs {
		if err := c.gpu(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// runtime reports whether a target runs programs as one of MSCCL's runtimes does.
func runtime(t ir.Target) bool { return t <= ir.TargetRCCL }

func (c *checker) name() error {
	name := c.p.Name
	refuse := func(format string, args ...any) error {
		return diag.Errorf(diag.Pos{}, "xml-name", "program name %q: %s", name, fmt.Sprintf(format, args...)).
			Suggest("give MSCCLProgram another name")
	}
	if !utf8.ValidString(name) {
		return refuse("it is not UTF-8")
	}
	for _, r := range name {
		if r == '"' || r == '<' || r == '>' || r == '&' || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return refuse("the runtimes' XML readers know no escapes, so it can't hold %q", r)
		}
	}
	if n := c.limits.NameBytes; n > 0 && len(name) > int(n) {
		return refuse("it has %d bytes, target %s keeps %d", len(name), c.target, n)
	}
	if name == "2D" && c.target == ir.TargetMSCCL && c.p.Coll.Kind == ir.AllToAll {
		return refuse("msccl runs an alltoall of this name by a path of its own, not by its steps")
	}
	return nil
}

// whole checks what is about the program as a whole.
func (c *checker) whole(d *dialect) error {
	n := c.p.Ranks()
	if d.nchunks < 1 {
		return c.internal("the collective has no chunks")
	}
	if c.bound && n > math.MaxInt16 {
		return c.refuse(int64(n), math.MaxInt16, "ranks", "peers are kept in 16 bits")
	}
	if k := c.limits.XMLChildren; k > 0 && n > k {
		return c.refuse(int64(n), int64(k), "ranks", "children of one XML node")
	}
	return nil
}

func (c *checker) gpu() error {
	gpu := &c.p.GPUs[c.rank]
	c.tb, c.step = -1, -1
	if err := c.sizes(gpu); err != nil {
		return err
	}
	if k := c.limits.TBsPerRank; k > 0 && len(gpu.TBs) > int(k) {
		return c.refuse(int64(len(gpu.TBs)), int64(k), "thread blocks", "")
	}
	// A rank's reader keeps the algo, every rank's gpu, and its own thread blocks
	// and steps; it stops as soon as the table is full, so one node stays free.
	nodes := 1 + len(c.p.GPUs) + max(len(gpu.TBs), 1)
	send, recv := map[int32]int32{}, map[int32]int32{}
	for c.tb = range gpu.TBs {
		tb := &gpu.TBs[c.tb]
		c.step = -1
		nodes += len(tb.Steps)
		if err := c.threadBlock(tb); err != nil {
			return err
		}
		if tb.Send != ir.None {
			send[tb.Chan]++
		}
		if tb.Recv != ir.None {
			recv[tb.Chan]++
		}
		if k, n := c.limits.TBsPerChan, max(send[tb.Chan], recv[tb.Chan]); k > 0 && n > k {
			return c.refuse(int64(n), int64(k), fmt.Sprintf("thread blocks that send, or that receive, on channel %d", tb.Chan), "")
		}
		for c.step = range tb.Steps {
			if err := c.checkStep(gpu, tb); err != nil {
				return err
			}
		}
	}
	c.tb, c.step = -1, -1
	if k := c.limits.XMLNodes; k > 0 && nodes > int(k)-1 {
		return c.refuse(int64(nodes), int64(k)-1, "XML nodes", "the algo, every gpu, and this rank's thread blocks and steps")
	}
	return nil
}

// sizes checks the declared lengths against those of the collective, which are
// what the runtimes use whatever a file declares.
func (c *checker) sizes(gpu *ir.GPU) error {
	coll, r := c.p.Coll, ir.Rank(c.rank)
	if in, out := coll.InputChunks(r), coll.OutputChunks(r); c.bound && (gpu.Input != in || gpu.Output != out) {
		return c.internal("it declares %d input and %d output chunks, %s has %d and %d", gpu.Input, gpu.Output, coll, in, out)
	}
	return nil
}

func (c *checker) threadBlock(tb *ir.ThreadBlock) error {
	self, n := ir.Rank(c.rank), ir.Rank(c.p.Ranks())
	for _, peer := range [...]ir.Rank{tb.Send, tb.Recv} {
		if peer < ir.None || peer >= n || peer == self {
			return c.internal("rank %d is no peer", peer)
		}
	}
	if tb.Chan < 0 && (tb.Chan != ir.None || tb.Send != ir.None || tb.Recv != ir.None) {
		return c.internal("channel %d", tb.Chan)
	}
	if k := c.limits.Channels; k > 0 && tb.Chan >= k {
		return c.refuse(int64(tb.Chan)+1, int64(k), "channels", "")
	}
	if k := c.limits.StepsPerTB; k > 0 && len(tb.Steps) > int(k) {
		return c.refuse(int64(len(tb.Steps)), int64(k), "steps in one thread block, nops included", "")
	}
	if k := c.limits.XMLChildren; k > 0 && len(tb.Steps) > int(k) {
		return c.refuse(int64(len(tb.Steps)), int64(k), "steps in one thread block", "children of one XML node")
	}
	return nil
}

func (c *checker) checkStep(gpu *ir.GPU, tb *ir.ThreadBlock) error {
	st := &tb.Steps[c.step]
	switch {
	case st.Kind.Sends() && (st.SendPeer != tb.Send || tb.Send == ir.None):
		return c.native("it sends to rank %d, its thread block to %d", st.SendPeer, tb.Send)
	case st.Kind.Receives() && (st.RecvPeer != tb.Recv || tb.Recv == ir.None):
		return c.native("it receives from rank %d, its thread block from %d", st.RecvPeer, tb.Recv)
	case st.Chan != tb.Chan && (st.Kind.Sends() || st.Kind.Receives()):
		return c.native("it uses channel %d, its thread block %d", st.Chan, tb.Chan)
	case st.DepEnd-st.DepStart > 1:
		return c.native("it waits for %d steps, an XML step can name one", st.DepEnd-st.DepStart)
	}
	if err := c.dependency(gpu, tb, st); err != nil {
		return err
	}
	if st.Kind == ir.Nop {
		return c.nop(tb, st)
	}
	return c.operands(gpu, st)
}

func (c *checker) operands(gpu *ir.GPU, st *ir.Step) error {
	if k := c.limits.Count; k > 0 && st.Count > k {
		return c.refuse(int64(st.Count), int64(k), "chunks in one step", "")
	}
	if st.Count < 1 {
		return c.internal("it moves %d chunks", st.Count)
	}
	if err := c.kind(st.Kind); err != nil {
		return err
	}
	if st.Kind.ReadsSrc() {
		if err := c.inside(gpu, "source", st.Src, st.Count); err != nil {
			return err
		}
	}
	if st.Kind.WritesDst() {
		if err := c.inside(gpu, "destination", st.Dst, st.Count); err != nil {
			return err
		}
	}
	if src, dst := shown(st); c.limits.SameOffset {
		return c.sameOffset(st)
	} else if c.bound && max(src.Index, dst.Index) > maxOffset {
		return c.refuse(int64(max(src.Index, dst.Index)), maxOffset, "as the offset of a step", "offsets are kept in 16 bits")
	}
	return nil
}

// kind refuses steps that the target can't do.
func (c *checker) kind(k ir.StepKind) error {
	switch {
	case k > ir.Recv && k < ir.Copy && !c.limits.FusedSteps && !(k == ir.RecvReduceCopy && c.limits.RecvReduce):
		steps := "s, r, cpy, re and nop"
		if c.limits.RecvReduce {
			steps = "s, r, rrc and nop"
		}
		return c.at("xml-fused", "target %s: its runtime runs no %s steps", c.target, k).
			Suggest("compile for target %s: it keeps to %s", c.target, steps)
	case (k == ir.Copy || k == ir.Reduce) && c.limits.NoLocal:
		return c.at("xml-local", "target %s: it runs no %s steps, only s, r, rrc and nop", c.target, k).
			Suggest("in place most algorithms need no local copies")
	}
	return nil
}

// sameOffset refuses a step whose source and destination differ in offset, the
// one at the peer included.
func (c *checker) sameOffset(st *ir.Step) error {
	src, dst := shown(st)
	switch {
	case src.Index == dst.Index:
		return nil
	case src.Index < 0 || dst.Index < 0:
		return c.at("xml-offset", "target %s wants the offset at the peer, which is not known", c.target).
			Suggest("programs compiled here know it")
	}
	return c.at("xml-offset", "target %s takes one offset a step, got source %d and destination %d", c.target, src.Index, dst.Index).
		Suggest("in place most algorithms move chunks to the offset they have")
}

func (c *checker) inside(gpu *ir.GPU, what string, at ir.Place, count int32) error {
	if !at.Valid() {
		return c.internal("it has no %s", what)
	}
	length := [...]int32{gpu.Input, gpu.Output, gpu.Scratch}[at.Buf]
	if at.Index < 0 || int64(at.Index)+int64(count) > int64(length) {
		return c.internal("its %s %c[%d] x%d is outside %d chunks", what, "ios"[at.Buf], at.Index, count, length)
	}
	return nil
}

// dependency checks that the step waited for exists and says when it is done.
func (c *checker) dependency(gpu *ir.GPU, tb *ir.ThreadBlock, st *ir.Step) error {
	if st.DepStart == st.DepEnd {
		return nil
	}
	dep := c.p.Deps[st.DepStart]
	if dep.TB < 0 || int(dep.TB) >= len(gpu.TBs) || int(dep.TB) == c.tb ||
		dep.Step < 0 || int(dep.Step) >= len(gpu.TBs[dep.TB].Steps) {
		return c.internal("it waits for step %d of thread block %d, which is not one of another thread block here", dep.Step, dep.TB)
	}
	if on := &gpu.TBs[dep.TB].Steps[dep.Step]; !on.Post || on.Kind == ir.Nop {
		return c.internal("it waits for step %d of thread block %d, a %s that posts nothing", dep.Step, dep.TB, on.Kind)
	}
	if k := c.limits.DepTB; k > 0 && dep.TB > k {
		return c.refuse(int64(dep.TB), int64(k), "as the thread block that a step waits for", "it is kept in 8 bits")
	}
	return nil
}

// nop checks the runtimes' rules for nops. Their reader adds a nop's dependency
// to those of the next step that does something, which must have one of its own;
// it doesn't count a nop without one, so that every later step number is off.
func (c *checker) nop(tb *ir.ThreadBlock, st *ir.Step) error {
	switch {
	case st.Post:
		return c.internal("a nop posts nothing")
	case st.DepStart == st.DepEnd && (c.bound || c.target == ir.TargetAstra):
		return c.internal("a nop that waits for nothing is not counted by the runtimes")
	case !c.bound:
		return nil
	case c.step+1 == len(tb.Steps):
		return c.internal("a nop at the end is dropped by the runtimes")
	}
	if next := &tb.Steps[c.step+1]; next.DepStart == next.DepEnd {
		return c.internal("the step after a nop must wait for something itself")
	}
	return nil
}

// at is a refusal at the present place.
func (c *checker) at(code, format string, args ...any) *diag.Message {
	pos := diag.Pos{}
	where := fmt.Sprintf("program %q", c.p.Name)
	if c.rank >= 0 {
		where = fmt.Sprintf("rank %d", c.rank)
	}
	if c.tb >= 0 {
		where += fmt.Sprintf(" thread block %d", c.tb)
	}
	if c.tb >= 0 && c.step >= 0 {
		st := &c.p.GPUs[c.rank].TBs[c.tb].Steps[c.step]
		where += fmt.Sprintf(" step %d", c.step)
		pos = c.p.Pos(st.Pos)
	}
	return diag.Errorf(pos, code, "%s: %s", where, fmt.Sprintf(format, args...))
}

// refuse is a limit of the target that the program is over.
func (c *checker) refuse(got, limit int64, what, why string) error {
	text := fmt.Sprintf("target %s allows %d %s, got %d", c.target, limit, what, got)
	if why != "" {
		text += " (" + why + ")"
	}
	return c.at("xml-limit", "%s", text).Suggest("target plain has no such limit; this project's own runtimes read it")
}

// native is for what programs for target native may do and XML can't say.
func (c *checker) native(format string, args ...any) error {
	return c.at("xml-program", "%s", fmt.Sprintf(format, args...)).
		Suggest("XML has one peer each way and one channel a thread block, and one wait a step: compile the script for target %s", c.target)
}

// internal is a program that no compiler of this project makes, but that a file
// may hold.
func (c *checker) internal(format string, args ...any) error {
	return c.at("xml-program", "%s", fmt.Sprintf(format, args...)).
		Suggest("this program can't be written as XML; if it was compiled here, please report it as a bug")
}
