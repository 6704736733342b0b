package table

import (
	"fmt"
	"math"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// Program is one of the entry's programs as it lies in the table, for whoever judges
// what will run: with the entry's range as its window, and without positions.
func (t *Table) Program(e *Entry, inPlace bool) (*ir.Program, error) {
	at := e.OutOfPlace
	if inPlace {
		at = e.InPlace
	}
	if at == ir.None {
		return nil, nil
	}
	p := &t.Programs[at]
	coll := ir.NewCollective(e.Collective.Kind(), e.Ranks, int32(p.CountChunks), inPlace)
	if e.Collective.Rooted() {
		coll.Root = ir.Rank(max(e.Root, 0))
	}
	if e.Collective == SendRecv {
		coll.Peer = (coll.Root + 1) % ir.Rank(e.Ranks)
	}
	out := &ir.Program{Transport: ir.Transport{Slots: p.Slots, SlotBytes: p.SlotBytes}, MinBytes: e.MinBytes, GPUs: make([]ir.GPU, e.Ranks)}
	if e.MaxBytes < OpenEnd {
		out.MaxBytes = e.MaxBytes
	}
	scratch := make([]int32, e.Ranks)
	for r := range scratch {
		scratch[r] = p.Tables.Chunks[3*r+2]
	}
	if p.One != nil {
		out.OneSided = p.One.OneSided(p.Tables.TBs)
		out.Transport = ir.Transport{}
	}
	out.Spec = &ir.Spec{Name: e.Name, Coll: coll, Topo: ir.FullyConnected(e.Ranks), Protocol: p.Protocol, Instances: 1,
		Buffers: []ir.Buffer{{Name: "input"}, {Name: "output"}, {Name: "scratch", Chunks: scratch}}}
	if int64(e.Ranks)*p.CountChunks > math.MaxInt32 {
		return nil, fmt.Errorf("%s: %d ranks with %d chunks each are too many", e.Name, e.Ranks, p.CountChunks)
	}
	if err := p.buffers(out, e.one(coll)); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	if p.One != nil {
		return out, cuda.Validate(out)
	}
	if err := p.steps(out); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	return out, cuda.Validate(out)
}

// Misfit says what is wrong with an entry's programs beside what the checker may find of
// each: what Build sees to, and a file may claim otherwise. Either may be nil.
func (e *Entry) Misfit(inPlace, outOfPlace *ir.Program) error {
	switch {
	case inPlace != nil && !sparesInputs(inPlace):
		return fmt.Errorf("its program in place overwrites inputs that are nobody's output")
	case e.Memory == Windows && outOfPlace != nil && outOfPlace.OneSided != nil && !sparesInputs(outOfPlace):
		return fmt.Errorf("its program out of place overwrites inputs")
	case inPlace != nil && inPlace.OneSided != nil: // one program where they mix, as Decode sees to
		return nil
	case e.Mixable && inPlace != nil && outOfPlace != nil && !mixable(inPlace, outOfPlace):
		return fmt.Errorf("its programs don't send the same messages, so ranks that call in place and ranks that don't couldn't meet")
	}
	return nil
}

// one is the collective that the tables lay out buffers for, of a program for coll: where it is
// for both places, that out of place.
func (e *Entry) one(coll *ir.Collective) *ir.Collective {
	if !coll.InPlace || e.InPlace != e.OutOfPlace {
		return coll
	}
	apart := *coll
	apart.InPlace = false
	return &apart
}

// buffers fills in sizes, and checks that the tables lay them out as the collective laid does.
func (p *Program) buffers(out *ir.Program, laid *ir.Collective) error {
	c, t := out.Coll, &p.Tables
	for b := range ir.FirstScratch {
		out.Buffers[b].Chunks = make([]int32, c.Ranks)
	}
	for r := range ir.Rank(c.Ranks) {
		g := &out.GPUs[r]
		g.Input, g.Output, g.Scratch = c.InputChunks(r), c.OutputChunks(r), t.Chunks[3*r+2]
		out.Buffers[ir.Input].Chunks[r], out.Buffers[ir.Output].Chunks[r] = g.Input, g.Output
		if g.Scratch < 0 {
			return fmt.Errorf("rank %d has %d chunks of scratch", r, g.Scratch)
		}
		want := [3]int32{g.Input, g.Output, g.Scratch}
		for b := range ir.BufferID(3) {
			at := 3*int(r) + int(b)
			base, index := laid.Canon(r, b, 0)
			if t.Chunks[at] != want[b] || t.BaseBuf[at] != int32(base) || t.BaseChunk[at] != index {
				return fmt.Errorf("rank %d lays out buffer %d as no %v does", r, b, c)
			}
		}
	}
	return nil
}

// steps fills in thread blocks.
func (p *Program) steps(out *ir.Program) error {
	t := &p.Tables
	for i := 0; i < len(t.Deps); i += cuda.DepWords {
		out.Deps = append(out.Deps, ir.Dep{TB: t.Deps[i], Step: t.Deps[i+1]})
	}
	tb, step := 0, 0
	for r := range out.GPUs {
		g := &out.GPUs[r]
		for range t.TBs[r] {
			block := ir.ThreadBlock{Send: ir.None, Recv: ir.None, Chan: ir.None}
			for range t.StepsPerTB[tb] {
				if kind := t.Steps[step*cuda.StepWords]; kind < 0 || kind > int32(ir.Reduce) {
					return fmt.Errorf("step %d is of the unknown kind %d", step, kind)
				}
				s := t.Step(step)
				step++
				if s.DepStart < 0 || s.DepEnd < s.DepStart || int(s.DepEnd) > len(out.Deps) {
					return fmt.Errorf("step %d waits for dependencies %d:%d of %d", step-1, s.DepStart, s.DepEnd, len(out.Deps))
				}
				block.Steps = append(block.Steps, s)
			}
			tb++
			g.TBs = append(g.TBs, block)
		}
	}
	return nil
}
