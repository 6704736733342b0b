package ir

import (
	"errors"
	"fmt"
	"math"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// What a text may declare. The numbers are far above what any program needs and
// bound the memory that a small file can make a reader use.
const (
	maxRanks  = 1 << 16 // ranks of a collective
	maxMatrix = 1 << 12 // ranks of a topology with links, or of an alltoallv
	maxBuffer = 1 << 30 // chunks of one buffer of one rank
	maxCustom = 1 << 21 // chunks of a user's collective, all ranks
)

// MaxLocations bounds the chunks of all buffers of all ranks.
const MaxLocations = 1 << 27

// Validate reports whether d is well formed: its spec complete, every location
// inside its buffer. Whether d computes what it should is the checker's business.
func (d *ChunkDAG) Validate() error {
	if err := d.Spec.validate(true); err != nil {
		return err
	}
	for i := range d.Ops {
		if err := d.Spec.validateOp(&d.Ops[i]); err != nil {
			return malformed("chunk operation %d: %w", i, err)
		}
	}
	return nil
}

func (s *Spec) validateOp(op *ChunkOp) error {
	if op.Kind > ChunkReduce {
		return fmt.Errorf("kind %d is unknown", op.Kind)
	}
	if op.Count < 1 || op.Parallel < 1 || op.Instance < 0 {
		return fmt.Errorf("got count %d, parallel %d, instance %d, want at least 1, 1, 0",
			op.Count, op.Parallel, op.Instance)
	}
	if min(op.Chan, op.SendTB, op.RecvTB) < None {
		return fmt.Errorf("got channel %d, sendtb %d, recvtb %d, want none or at least 0", op.Chan, op.SendTB, op.RecvTB)
	}
	if err := s.inside(op.Src, op.Count); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if err := s.inside(op.Dst, op.Count); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	return nil
}

// inside checks that count chunks from l on exist.
func (s *Spec) inside(l Loc, count int32) error {
	if l.Rank < 0 || int32(l.Rank) >= s.Ranks() {
		return fmt.Errorf("rank %d is not one of %d", l.Rank, s.Ranks())
	}
	if l.Buf < 0 || int(l.Buf) >= len(s.Buffers) {
		return fmt.Errorf("buffer %d is not one of %d", l.Buf, len(s.Buffers))
	}
	length := s.Buffers[l.Buf].Chunks[l.Rank]
	if l.Index < 0 || int64(l.Index)+int64(count) > int64(length) {
		return fmt.Errorf("%s[%d] x%d is outside the %d chunks that rank %d has of it",
			s.BufferName(l.Buf), l.Index, count, length, l.Rank)
	}
	return nil
}

// Validate reports whether d is well formed: places that a kind uses exist, the
// two ends of a message name each other, and messages point forward.
func (d *InstrDAG) Validate() error {
	if err := d.Spec.validate(true); err != nil {
		return err
	}
	for i := range d.Instrs {
		if err := d.validateInstr(InstrID(i)); err != nil {
			return malformed("instruction %d: %w", i, err)
		}
	}
	return nil
}

func (d *InstrDAG) validateInstr(id InstrID) error {
	in := &d.Instrs[id]
	if in.Kind > Reduce {
		return fmt.Errorf("kind %d is unknown", in.Kind)
	}
	if in.Rank < 0 || int32(in.Rank) >= d.Ranks() {
		return fmt.Errorf("rank %d is not one of %d", in.Rank, d.Ranks())
	}
	if in.Count < 0 || in.Kind != Nop && in.Count < 1 {
		return fmt.Errorf("got count %d", in.Count)
	}
	if min(in.Chan, in.TB, int32(in.Op)) < None || in.Instance < 0 {
		return fmt.Errorf("got channel %d, thread block %d, instance %d, op %d", in.Chan, in.TB, in.Instance, in.Op)
	}
	if in.Kind.ReadsSrc() || in.Src.Valid() {
		if err := d.inside(Loc{in.Rank, in.Src.Buf, in.Src.Index}, in.Count); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	}
	if in.Kind.WritesDst() || in.Dst.Valid() {
		if err := d.inside(Loc{in.Rank, in.Dst.Buf, in.Dst.Index}, in.Count); err != nil {
			return fmt.Errorf("destination: %w", err)
		}
	}
	return d.validateMessage(id)
}

func (d *InstrDAG) validateMessage(id InstrID) error {
	in := &d.Instrs[id]
	to, from := in.SendTo, in.RecvFrom
	switch n := InstrID(len(d.Instrs)); {
	case in.Kind.Sends() != (to != None):
		return fmt.Errorf("%s: got send to %d", in.Kind, to)
	case in.Kind.Receives() != (from != None):
		return fmt.Errorf("%s: got receive from %d", in.Kind, from)
	case to != None && (to <= id || to >= n):
		return fmt.Errorf("its message goes to instruction %d of %d, want a later one", to, n)
	case from != None && (from < 0 || from >= id):
		return fmt.Errorf("its message comes from instruction %d of %d, want an earlier one", from, n)
	case to != None && d.Instrs[to].RecvFrom != id:
		return fmt.Errorf("it sends to instruction %d, which receives from %d", to, d.Instrs[to].RecvFrom)
	case from != None && d.Instrs[from].SendTo != id:
		return fmt.Errorf("it receives from instruction %d, which sends to %d", from, d.Instrs[from].SendTo)
	}
	return nil
}

// Validate reports whether p is well formed enough to be read, shown and
// judged: known kinds and buffers, dependencies inside Deps. Places out of
// bounds and dependencies on steps that don't exist are the checker's findings,
// since imported programs may have them.
func (p *Program) Validate() error {
	if err := p.Spec.validate(false); err != nil {
		return err
	}
	if len(p.GPUs) != int(p.Ranks()) {
		return malformed("program: got %d GPUs, want %d, one a rank", len(p.GPUs), p.Ranks())
	}
	if p.Transport.Slots < 0 || p.Transport.SlotBytes < 0 || p.MinBytes < 0 || p.MaxBytes < 0 {
		return malformed("program: slots, slot bytes and the size window must not be negative")
	}
	total := int64(0)
	for g := range p.GPUs {
		gpu := &p.GPUs[g]
		total += gpu.chunks()
		if gpu.Input < 0 || gpu.Output < 0 || gpu.Scratch < 0 {
			return malformed("program: gpu %d has a buffer of negative length", g)
		}
		if p.OneSided != nil {
			continue
		}
		for b := range gpu.TBs {
			for s := range gpu.TBs[b].Steps {
				if err := p.validateStep(&gpu.TBs[b].Steps[s]); err != nil {
					return malformed("program: gpu %d tb %d step %d: %w", g, b, s, err)
				}
			}
		}
	}
	if total > MaxLocations {
		return malformed("program: %d chunks in all buffers, want at most %d", total, MaxLocations)
	}
	if p.OneSided != nil {
		return p.validateOneSided()
	}
	return nil
}

func (p *Program) validateStep(s *Step) error {
	switch {
	case s.Kind > Reduce:
		return fmt.Errorf("kind %d is unknown", s.Kind)
	case s.DepStart > s.DepEnd || s.DepStart < 0 || int(s.DepEnd) > len(p.Deps):
		return fmt.Errorf("dependencies %d to %d are not within %d", s.DepStart, s.DepEnd, len(p.Deps))
	}
	for _, place := range [...]Place{s.Src, s.Dst, s.Remote} {
		if place.Buf < None || place.Buf > FirstScratch {
			return fmt.Errorf("buffer %d is none of input, output and scratch", place.Buf)
		}
	}
	return nil
}

// validate checks the header. A form whose nodes name buffers needs them.
func (s *Spec) validate(needBuffers bool) error {
	if s == nil || s.Coll == nil {
		return malformed("spec: it has no collective")
	}
	if err := s.Coll.Validate(); err != nil {
		return err
	}
	if s.Protocol == AutoProtocol && !needBuffers {
		return malformed("spec: %w", errAuto)
	}
	if s.Protocol > AutoProtocol || s.Policy > Manual || s.Instances < 1 {
		return malformed("spec: protocol %d, policy %d or instances %d is out of range", s.Protocol, s.Policy, s.Instances)
	}
	if t := s.Topo; t != nil && t.Bandwidth != nil {
		if t.Ranks < 0 || t.Ranks > maxMatrix || len(t.Bandwidth) != int(t.Ranks)*int(t.Ranks) {
			return malformed("topology: %d links do not fit %d ranks, of which at most %d are allowed",
				len(t.Bandwidth), t.Ranks, maxMatrix)
		}
		for _, b := range t.Bandwidth {
			if !(b >= 0) || math.IsInf(b, 0) {
				return malformed("topology: a link has bandwidth %g", b)
			}
		}
	}
	if len(s.Buffers) == 0 && !needBuffers {
		return nil
	}
	return s.validateBuffers()
}

// errAuto is about a scheduled program: choosing its protocol was the compiler's work.
var errAuto = errors.New("a program can't be of protocol auto: want Simple, LL, LL128 or Direct")

func (s *Spec) validateBuffers() error {
	if len(s.Buffers) < int(FirstScratch) {
		return malformed("spec: got %d buffers, want input, output and any scratch", len(s.Buffers))
	}
	total := int64(0)
	seen := make(map[string]bool, len(s.Buffers))
	for b := range s.Buffers {
		buf := &s.Buffers[b]
		if b >= int(FirstScratch) && seen[buf.Name] {
			return malformed("spec: two scratch buffers are named %q", buf.Name)
		}
		if b >= int(FirstScratch) {
			seen[buf.Name] = true
		}
		if len(buf.Chunks) != int(s.Ranks()) {
			return malformed("spec: buffer %q has lengths for %d ranks, want %d", buf.Name, len(buf.Chunks), s.Ranks())
		}
		for _, c := range buf.Chunks {
			if c < 0 || c > maxBuffer {
				return malformed("spec: buffer %q has a length of %d chunks, want 0 to %d", buf.Name, c, maxBuffer)
			}
			total += int64(c)
		}
	}
	if total > MaxLocations {
		return malformed("spec: %d chunks in all buffers, want at most %d", total, MaxLocations)
	}
	return nil
}

// Validate reports whether c is complete and its sizes fit: what has to hold
// before any other method is called on a collective of unknown origin.
func (c *Collective) Validate() error {
	n := c.Ranks
	if c.Kind > Custom || n < 1 || n > maxRanks || c.Split < 1 || c.Split > maxBuffer {
		return malformed("collective: kind %d, ranks %d or split %d is out of range", c.Kind, n, c.Split)
	}
	in := func(r Rank) bool { return r >= 0 && int32(r) < n }
	switch {
	case (c.Kind.Rooted() || c.Kind == SendRecv) && !in(c.Root):
		return malformed("%s: root %d is not one of %d ranks", c, c.Root, n)
	case c.Kind == SendRecv && !in(c.Peer):
		return malformed("%s: peer %d is not one of %d ranks", c, c.Peer, n)
	case (c.Kind == AllToAllV) != (c.Counts != nil):
		return malformed("%s: counts belong to an alltoallv, and to nothing else", c)
	case (c.Kind == Custom) != (c.Custom != nil):
		return malformed("%s: sizes and postcondition belong to a custom collective, and to nothing else", c)
	case c.Kind == AllToAllV:
		return c.validateCounts()
	case c.Kind == Custom:
		return c.validateCustom()
	}
	if f := int64(c.ChunkFactor) * int64(c.Split); c.ChunkFactor < 1 || f > maxBuffer || f*int64(n) > maxBuffer {
		return malformed("%s: chunk factor %d times split %d on %d ranks is out of range", c, c.ChunkFactor, c.Split, n)
	}
	return nil
}

func (c *Collective) validateCounts() error {
	n := int(c.Ranks)
	if n > maxMatrix || len(c.Counts) != n*n {
		return malformed("%s: got %d counts for %d ranks, want one a pair and at most %d ranks", c, len(c.Counts), n, maxMatrix)
	}
	total := int64(0)
	for _, k := range c.Counts {
		if k < 0 {
			return malformed("%s: got a count of %d", c, k)
		}
		total += int64(k)
	}
	if total > MaxLocations || total*int64(c.Split) > maxBuffer {
		return malformed("%s: %d chunks in all are too many", c, total)
	}
	return nil
}

func (c *Collective) validateCustom() error {
	n, k := int(c.Ranks), c.Custom
	if len(k.Input) != n || len(k.Output) != n || len(k.Expect) != n || k.Holds != nil && len(k.Holds) != n {
		return malformed("%s: sizes and conditions must be given for each of %d ranks", c, n)
	}
	total := int64(0)
	for r := range n {
		if k.Input[r] < 0 || k.Output[r] < 0 {
			return malformed("%s: rank %d has a buffer of negative length", c, r)
		}
		total += int64(k.Input[r]) + int64(k.Output[r])
	}
	if total > maxCustom || total*int64(c.Split) > maxBuffer {
		return malformed("%s: %d chunks in all are too many", c, total)
	}
	for r := range n {
		if len(k.Expect[r]) != int(k.Output[r]) || k.Holds != nil && len(k.Holds[r]) != int(k.Input[r]) {
			return malformed("%s: rank %d: conditions must be given for each chunk", c, r)
		}
		for i, want := range k.Expect[r] {
			for _, w := range want {
				if w.Rank < 0 || int(w.Rank) >= n || w.Index < 0 || w.Index >= k.Input[w.Rank] {
					return malformed("%s: output %d of rank %d: rank %d has no input %d", c, i, r, w.Rank, w.Index)
				}
			}
		}
	}
	return nil
}

func malformed(format string, args ...any) error {
	return diag.Errorf(diag.Pos{}, "ir-malformed", "%s", fmt.Errorf(format, args...).Error())
}
