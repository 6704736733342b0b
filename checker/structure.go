package checker

import (
	"context"
	"math"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// newModel checks the structure of p and flattens it; nil if the structure is
// wrong, with the reasons in f.
func newModel(ctx context.Context, p *ir.Program, f *findings) (*model, error) {
	if !validFrame(p, f) {
		return nil, nil
	}
	s := &structure{p: p, f: f, scratch: make([]int32, len(p.GPUs))}
	for r := range p.GPUs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.gpu(ir.Rank(r))
	}
	s.limits()
	if f.any() {
		return nil, nil
	}
	m := s.flatten()
	if m.connect(f); f.any() {
		return nil, nil
	}
	return m, ctx.Err()
}

// validFrame checks what stands around the steps.
func validFrame(p *ir.Program, f *findings) bool {
	bad := func(format string, args ...any) bool {
		f.errorf(diag.Pos{}, CodeProgram, format, args...)
		return false
	}
	switch {
	case p == nil || p.Spec == nil || p.Coll == nil:
		return bad("the program doesn't say which collective it computes")
	case int64(len(p.GPUs)) != int64(p.Coll.Ranks):
		return bad("the program has %s, its collective %d", plural(len(p.GPUs), "rank"), p.Coll.Ranks)
	case !validCollective(p.Coll, f):
		return false
	case p.Direct():
		if p.Transport != (ir.Transport{}) {
			return bad("protocol Direct has no slots, got %d of %d bytes", p.Transport.Slots, p.Transport.SlotBytes)
		}
	case p.Transport.Slots < 1 || p.Transport.SlotBytes < 1:
		return bad("the transport has %d slots of %d bytes, want 1 or more of both", p.Transport.Slots, p.Transport.SlotBytes)
	}
	if p.MinBytes < 0 || p.MaxBytes < 0 || p.MaxBytes > 0 && p.MaxBytes < p.MinBytes {
		return bad("the size window from %d to %d bytes is empty", p.MinBytes, p.MaxBytes)
	}
	if t := p.Topo; t != nil && t.Bandwidth != nil &&
		(t.Ranks != p.Coll.Ranks || int64(len(t.Bandwidth)) != int64(t.Ranks)*int64(t.Ranks)) {
		return bad("the topology isn't for %d ranks", p.Coll.Ranks)
	}
	return true
}

// structure is the pass over all steps; it adds up what limits and flatten need.
type structure struct {
	p       *ir.Program
	f       *findings
	in, out int32   // physical sizes of the current rank's buffers
	scratch []int32 // chunks of scratch that a rank's steps touch
	touched int64
	deps    int64
	steps   int64
	tbs     int64
}

func (s *structure) gpu(r ir.Rank) {
	g := &s.p.GPUs[r]
	s.in, s.out = s.p.Coll.InputChunks(r), s.p.Coll.OutputChunks(r)
	s.size(r, "input", g.Input, s.in)
	s.size(r, "output", g.Output, s.out)
	if g.Scratch < 0 {
		s.f.errorf(diag.Pos{}, CodeProgram, "rank %d has %d scratch chunks, want 0 or more", r, g.Scratch)
	}
	s.tbs += int64(len(g.TBs))
	for t := range g.TBs {
		tb := &g.TBs[t]
		s.declared(r, int32(t), tb)
		s.steps += int64(len(tb.Steps))
		for i := range tb.Steps {
			st := stepAt{r, int32(t), int32(i), &tb.Steps[i]}
			if s.fields(st) {
				s.places(st)
			}
			s.waits(st)
		}
	}
}

// size compares a declared size with the collective's: runtimes derive the
// physical size from the collective, so any other number is a misunderstanding.
func (s *structure) size(r ir.Rank, buf string, got, want int32) {
	if got != want {
		s.f.errorf(diag.Pos{}, CodeProgram, "rank %d declares %d %s chunks, %s has %d there",
			r, got, buf, s.p.Coll, want)
	}
}

func (s *structure) peer(r, peer ir.Rank) bool {
	return peer >= 0 && int(peer) < len(s.p.GPUs) && peer != r
}

// declared checks the peers that a thread block claims, used or not.
func (s *structure) declared(r ir.Rank, t int32, tb *ir.ThreadBlock) {
	for _, peer := range [...]ir.Rank{tb.Send, tb.Recv} {
		if peer != ir.None && !s.peer(r, peer) {
			s.f.errorf(diag.Pos{}, CodeProgram, "rank %d tb %d: the peer is rank %d, want another rank up to %d",
				r, t, peer, len(s.p.GPUs)-1)
		}
	}
	if (tb.Send != ir.None || tb.Recv != ir.None) && tb.Chan < 0 {
		s.f.errorf(diag.Pos{}, CodeProgram, "rank %d tb %d: the channel is %d, want 0 or more", r, t, tb.Chan)
	}
}

// stepAt is a step and where it stands.
type stepAt struct {
	rank  ir.Rank
	tb, i int32
	*ir.Step
}

func (a stepAt) String() string { return stepName(a.rank, a.tb, a.i, a.Kind) }

func (s *structure) bad(a stepAt, code, format string, args ...any) bool {
	if s.f.admit(code) {
		m := diag.Errorf(s.p.Pos(a.Pos), code, format, args...)
		m.Text = a.String() + ": " + m.Text
		s.f.add(m)
	}
	return false
}

// fields checks kind, count, peers and channel.
func (s *structure) fields(a stepAt) bool {
	ok := true
	switch {
	case a.Kind > ir.Reduce:
		return s.bad(a, CodeStep, "unknown kind of step")
	case a.Kind == ir.Nop && a.Count != 0:
		ok = s.bad(a, CodeStep, "a nop has count %d, want 0", a.Count)
	case a.Kind != ir.Nop && a.Count < 1:
		ok = s.bad(a, CodeStep, "the count is %d, want 1 or more", a.Count)
	}
	if (a.Kind.Sends() || a.Kind.Receives()) && a.Chan < 0 {
		ok = s.bad(a, CodeStep, "the channel is %d, want 0 or more", a.Chan)
	}
	ok = s.end(a, "send", a.SendPeer, a.Kind.Sends()) && ok
	ok = s.end(a, "receive", a.RecvPeer, a.Kind.Receives()) && ok
	if ok && a.Kind.Sends() && !s.p.Topo.Linked(a.rank, a.SendPeer) {
		ok = s.bad(a, CodeNoLink, "the topology has no link from rank %d to rank %d", a.rank, a.SendPeer)
	}
	return ok
}

func (s *structure) end(a stepAt, what string, peer ir.Rank, used bool) bool {
	switch {
	case !used && peer != ir.None:
		return s.bad(a, CodeStep, "the %s peer is rank %d, but a %s doesn't %s", what, peer, a.Kind, what)
	case used && !s.peer(a.rank, peer):
		return s.bad(a, CodeStep, "the %s peer is rank %d, want another rank up to %d", what, peer, len(s.p.GPUs)-1)
	}
	return true
}

// places checks the bounds of what a step reads and writes.
func (s *structure) places(a stepAt) {
	s.touched += int64(a.Count)
	readsSrc, writesDst := a.Kind.ReadsSrc(), a.Kind.WritesDst()
	ok := !readsSrc || s.inBounds(a, "source", a.Src)
	ok = (!writesDst || s.inBounds(a, "destination", a.Dst)) && ok
	if !ok || !readsSrc || !writesDst {
		return
	}
	// A step moves its chunks message by message and within one by many threads,
	// so shifted ranges give a result that depends on the size.
	sb, si := s.p.Coll.Canon(a.rank, a.Src.Buf, a.Src.Index)
	db, di := s.p.Coll.Canon(a.rank, a.Dst.Buf, a.Dst.Index)
	if sb == db && si != di && si < di+a.Count && di < si+a.Count {
		s.bad(a, CodeOverlap, "source %s and destination %s overlap", placeName(a.Src, a.Count), placeName(a.Dst, a.Count))
	}
}

func (s *structure) inBounds(a stepAt, what string, pl ir.Place) bool {
	var size int32
	switch pl.Buf {
	case ir.Input:
		size = s.in
	case ir.Output:
		size = s.out
	case ir.FirstScratch:
		size = s.p.GPUs[a.rank].Scratch
	default:
		return s.bad(a, CodeBounds, "the %s is in buffer %d, want input, output or scratch", what, pl.Buf)
	}
	if end := int64(pl.Index) + int64(a.Count); pl.Index < 0 || end > int64(size) {
		return s.bad(a, CodeBounds, "the %s %s lies outside the %s of %d", what, placeName(pl, a.Count),
			bufferName(pl.Buf), size)
	}
	if pl.Buf == ir.FirstScratch {
		s.scratch[a.rank] = max(s.scratch[a.rank], pl.Index+a.Count)
	}
	return true
}

// waits checks a step's dependencies.
func (s *structure) waits(a stepAt) {
	if a.DepStart < 0 || a.DepEnd < a.DepStart || int(a.DepEnd) > len(s.p.Deps) {
		s.bad(a, CodeDependency, "the dependencies are numbers %d to %d of %d", a.DepStart, a.DepEnd, len(s.p.Deps))
		return
	}
	if s.deps += int64(a.DepEnd - a.DepStart); s.deps > maxTouched {
		return // ranges may overlap, so their sum can be far beyond len(p.Deps)
	}
	tbs := s.p.GPUs[a.rank].TBs
	for _, d := range s.p.Deps[a.DepStart:a.DepEnd] {
		switch {
		case d.TB < 0 || int(d.TB) >= len(tbs):
			s.bad(a, CodeDependency, "waits for tb %d, but the rank has %s", d.TB, plural(len(tbs), "thread block"))
		case d.Step < 0 || int(d.Step) >= len(tbs[d.TB].Steps):
			s.bad(a, CodeDependency, "waits for tb %d step %d, but that thread block has %s",
				d.TB, d.Step, plural(len(tbs[d.TB].Steps), "step"))
		case d.TB == a.tb && d.Step >= a.i:
			s.bad(a, CodeDependency, "waits for step %d of its own thread block, which comes no earlier", d.Step)
		case !tbs[d.TB].Steps[d.Step].Post:
			s.bad(a, CodeDependency, "waits for tb %d step %d, which doesn't post", d.TB, d.Step)
		}
	}
}

// limits refuses what could not be held in memory or numbered.
func (s *structure) limits() {
	check := func(what string, n, limit int64) {
		if n > limit {
			s.f.errorf(diag.Pos{}, CodeTooLarge, "the program has %d %s, the checker holds up to %d", n, what, limit)
		}
	}
	locs := int64(0)
	for r := range s.p.GPUs {
		g := &s.p.GPUs[r]
		locs += int64(max(g.Input, 0)) + int64(max(g.Output, 0)) + int64(s.scratch[r])
	}
	check("chunks in its buffers", locs, maxLocations)
	check("chunks touched by its steps", s.touched, maxTouched)
	check("dependencies", s.deps, maxTouched)
	check("steps", s.steps, math.MaxInt32/2)
	check("thread blocks", s.tbs, maxTouched)
}

func bufferName(b ir.BufferID) string {
	return [...]string{"input", "output", "scratch"}[b]
}

// placeName is a counted place, as users write slices: input[3:5].
func placeName(pl ir.Place, count int32) string {
	if pl.Buf < 0 || pl.Buf > ir.FirstScratch {
		return "?"
	}
	return rangeName(bufferName(pl.Buf), pl.Index, int64(pl.Index)+int64(count))
}
