package compiler

import (
	"context"
	"fmt"
	"math"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// oneEmit writes the program of one instance: rank by rank and block by block, the
// bodies of a block's loops behind it.
func oneEmit(ctx context.Context, s *oneState) error {
	t := s.trace
	spec := *t.Spec
	spec.Buffers = []ir.Buffer{{Name: "input"}, {Name: "output"}, {Name: "scratch"}}
	o := &ir.OneSided{Packets: t.Protocol == ir.LL, ThreadsPerBlock: t.ThreadsPerBlock, Alignment: t.Alignment,
		DoubleScratch: t.DoubleScratch, ReuseResources: t.ReuseResources, GPUs: make([]ir.OneSidedGPU, len(t.GPUs))}
	p := &ir.Program{Spec: &spec, MinBytes: t.MinBytes, MaxBytes: t.MaxBytes, GPUs: make([]ir.GPU, len(t.GPUs)), OneSided: o}
	for i := range t.Groups {
		o.Groups = append(o.Groups, t.Groups[i].SwitchGroup)
	}
	w := &oneWriter{oneState: s, out: o}
	w.reserve()
	for r := range s.ranks {
		if ctx.Err() != nil {
			return fmt.Errorf("compiling %s: %w", t.Name, context.Cause(ctx))
		}
		in, out := t.Coll.InputChunks(ir.Rank(r)), t.Coll.OutputChunks(ir.Rank(r))
		p.GPUs[r] = ir.GPU{Input: in, Output: out, Scratch: t.GPUs[r].Scratch}
		for b, n := range [...]int32{in, out, t.GPUs[r].Scratch} {
			spec.Buffers[b].Chunks = append(spec.Buffers[b].Chunks, n)
		}
		gpu := &o.GPUs[r]
		for _, c := range t.GPUs[r].Channels {
			gpu.Channels = append(gpu.Channels, ir.SignalChannel{Kind: c.Kind, Peer: c.Peer, Pair: c.Pair})
		}
		for _, sem := range t.GPUs[r].Semaphores {
			gpu.Semaphores = append(gpu.Semaphores, sem.Initial)
		}
		blocks := s.ranks[r]
		if len(blocks) == 0 { // a kernel has to have a block
			blocks = []oneBlock{{nopFor(&oneNode{loop: ir.None})}}
		}
		for _, list := range blocks {
			span, err := w.block(list)
			if err != nil {
				return err
			}
			gpu.Blocks = append(gpu.Blocks, span)
		}
	}
	s.ranks, s.out = nil, p
	return nil
}

// oneWriter writes operations.
type oneWriter struct {
	*oneState
	out *ir.OneSided
}

// reserve makes room for all that will be written.
func (w *oneWriter) reserve() {
	var ops, operands, refs int
	for r := range w.ranks {
		for _, list := range w.ranks[r] {
			for i := range list {
				ops++
				operands += len(list[i].src) + len(list[i].dst)
				refs += len(list[i].refs)
				if list[i].loop != ir.None && (i == 0 || list[i-1].loop != list[i].loop) {
					ops++
				}
			}
		}
	}
	w.out.Ops, w.out.Operands, w.out.Refs = make([]ir.Op, 0, ops), make([]ir.Operand, 0, operands), make([]int32, 0, refs)
}

func (w *oneWriter) block(list oneBlock) (ir.Span, error) {
	o := w.out
	span := ir.Span{Start: int32(len(o.Ops))}
	var bodies []oneBlock
	for i := 0; i < len(list); {
		if list[i].loop == ir.None {
			if err := w.op(&list[i]); err != nil {
				return span, err
			}
			i++
			continue
		}
		end := i
		for end < len(list) && list[end].loop == list[i].loop {
			end++
		}
		loop := &w.trace.Loops[list[i].loop]
		o.Ops = append(o.Ops, ir.Op{Kind: ir.OpPipeline, Parts: 1, UnitBytes: loop.UnitBytes, UnitChunks: loop.Chunks, Pos: loop.Pos})
		bodies = append(bodies, list[i:end])
		i = end
	}
	span.End = int32(len(o.Ops))
	next := 0
	for at := span.Start; at < span.End; at++ {
		if o.Ops[at].Kind != ir.OpPipeline {
			continue
		}
		o.Ops[at].Body.Start = int32(len(o.Ops))
		for i := range bodies[next] {
			if err := w.op(&bodies[next][i]); err != nil {
				return span, err
			}
		}
		o.Ops[at].Body.End = int32(len(o.Ops))
		next++
	}
	return span, nil
}

func (w *oneWriter) op(n *oneNode) error {
	kind, ok := n.kind.Op()
	if !ok {
		return lostSum(w.oneState, n)
	}
	o := w.out
	op := ir.Op{Kind: kind, Via: n.via, Reduce: n.reduce, Part: n.part, Parts: n.parts, Pos: n.pos}
	op.Src.Start = int32(len(o.Operands))
	o.Operands = append(o.Operands, n.src...)
	op.Src.End = int32(len(o.Operands))
	o.Operands = append(o.Operands, n.dst...)
	op.Dst = ir.Span{Start: op.Src.End, End: int32(len(o.Operands))}
	op.Refs.Start = int32(len(o.Refs))
	o.Refs = append(o.Refs, n.refs...)
	op.Refs.End = int32(len(o.Refs))
	o.Ops = append(o.Ops, op)
	return nil
}

// oneReplicate repeats a program for each instance. Thread blocks, channels, groups,
// semaphores and barriers of number n become n*k to n*k+k-1, every chunk becomes k
// parts, and an instance works on its own part of every range: with the interleaved
// policy range x..x+n becomes parts x*k+i*n to x*k+i*n+n for instance i; else a
// range keeps its place in the i-th of k copies of the segment that it is in, which
// keeps instances apart whatever ranges a program uses.
func oneReplicate(_ context.Context, s *oneState) error {
	k := s.trace.Instances
	if k <= 1 {
		return nil
	}
	p := s.out
	r := &oneReplicator{oneState: s, k: k, segment: p.Coll.Segment()}
	if err := r.check(); err != nil {
		return err
	}
	spec := *p.Spec
	spec.Coll = p.Coll.Refine(k)
	out := *p
	out.Spec = &spec
	spec.Buffers = make([]ir.Buffer, len(p.Buffers))
	for b := range p.Buffers {
		spec.Buffers[b] = ir.Buffer{Name: p.Buffers[b].Name, Chunks: make([]int32, len(p.Buffers[b].Chunks))}
		for q, n := range p.Buffers[b].Chunks {
			spec.Buffers[b].Chunks[q] = n * k
		}
	}
	out.GPUs = make([]ir.GPU, len(p.GPUs))
	for g := range p.GPUs {
		out.GPUs[g] = ir.GPU{Input: p.GPUs[g].Input * k, Output: p.GPUs[g].Output * k, Scratch: p.GPUs[g].Scratch * k}
	}
	if err := r.tables(&out); err != nil {
		return err
	}
	s.out = &out
	return nil
}

type oneReplicator struct {
	*oneState
	k, segment int32
}

// check refuses what would be too much.
func (r *oneReplicator) check() error {
	o, name := r.out.OneSided, r.trace.Name
	size := max(len(o.Ops), len(o.Operands), len(o.Refs))
	if r.k > maxFactor || int64(size)*int64(r.k) > math.MaxInt32 {
		return diag.Errorf(diag.Pos{}, "too-many-instances", "program %q: %d instances of %d operations are too many", name, r.k, len(o.Ops)).
			Suggest("use fewer instances")
	}
	for g := range r.out.GPUs {
		if n := &r.out.GPUs[g]; int64(max(n.Input, n.Output, n.Scratch))*int64(r.k) > 1<<30 {
			return diag.Errorf(diag.Pos{}, "too-many-chunks", "program %q: a buffer of rank %d would have more than 2^30 chunks", name, g).
				Suggest("use fewer instances")
		}
	}
	if !r.trace.Interleaved && r.segment == 0 {
		return diag.Errorf(diag.Pos{}, "replication-policy",
			"program %q: without the interleaved policy the chunks of collective %s would be renumbered, and their places have a meaning", name, r.out.Coll).
			Suggest("use the interleaved policy")
	}
	return nil
}

func (r *oneReplicator) tables(p *ir.Program) error {
	in, k := r.out.OneSided, int(r.k)
	o := *in
	o.GPUs = make([]ir.OneSidedGPU, len(in.GPUs))
	o.Groups = repeated(in.Groups, k)
	o.Ops = make([]ir.Op, 0, len(in.Ops)*k)
	o.Operands = make([]ir.Operand, 0, len(in.Operands)*k)
	o.Refs = make([]int32, 0, len(in.Refs)*k)
	p.OneSided = &o
	for g := range in.GPUs {
		from, to := &in.GPUs[g], &o.GPUs[g]
		to.Channels = repeated(from.Channels, k)
		for i := range to.Channels {
			if c := &to.Channels[i]; c.Pair != ir.None {
				c.Pair = c.Pair*r.k + int32(i%k)
			}
		}
		to.Semaphores = repeated(from.Semaphores, k)
		to.Blocks = make([]ir.Span, 0, len(from.Blocks)*k)
		for b := range from.Blocks {
			end := blockSpan(in, ir.Rank(g), b)
			for i := range r.k {
				if err := r.block(&o, ir.Rank(g), ir.Span{Start: from.Blocks[b].Start, End: end}, i); err != nil {
					return err
				}
				at := int32(len(o.Ops)) - (end - from.Blocks[b].Start)
				to.Blocks = append(to.Blocks, ir.Span{Start: at, End: at + int32(from.Blocks[b].Len())})
			}
		}
	}
	return nil
}

// blockSpan is the end of a block's operations with the bodies behind them.
func blockSpan(o *ir.OneSided, r ir.Rank, b int) int32 {
	span := o.GPUs[r].Blocks[b]
	end := span.End
	for i := span.Start; i < span.End; i++ {
		if o.Ops[i].Kind == ir.OpPipeline {
			end = o.Ops[i].Body.End
		}
	}
	return end
}

// repeated has each element of list k times.
func repeated[T any](list []T, k int) []T {
	out := make([]T, 0, len(list)*k)
	for _, v := range list {
		for range k {
			out = append(out, v)
		}
	}
	return out
}

// block appends instance i of operations, with the bodies behind them.
func (r *oneReplicator) block(o *ir.OneSided, rank ir.Rank, span ir.Span, i int32) error {
	in := r.out.OneSided
	shift := int32(len(o.Ops)) - span.Start
	for at := span.Start; at < span.End; at++ {
		op := in.Ops[at]
		if op.Kind == ir.OpPipeline {
			op.Body.Start += shift
			op.Body.End += shift
		}
		refs := in.Refs[op.Refs.Start:op.Refs.End]
		op.Refs = ir.Span{Start: int32(len(o.Refs)), End: int32(len(o.Refs) + len(refs))}
		for _, x := range refs {
			o.Refs = append(o.Refs, x*r.k+i)
		}
		first, middle, last := op.Src.Start, op.Src.End, op.Dst.End
		op.Src = ir.Span{Start: int32(len(o.Operands)), End: int32(len(o.Operands)) + middle - first}
		op.Dst = ir.Span{Start: op.Src.End, End: op.Src.Start + last - first}
		for _, a := range in.Operands[first:last] {
			if a.Group != ir.None {
				a.Group = a.Group*r.k + i
			}
			index, ok := r.index(rank, &a, i)
			if !ok {
				return diag.Errorf(r.out.Pos(op.Pos), "replication-policy",
					"%s on %d chunks from %d on crosses chunks that instances cut apart without the interleaved policy", op.Kind, a.Size, a.Index).
					Suggest("use the interleaved policy, or operations that stay within the chunks of one rank")
			}
			a.Index = index
			o.Operands = append(o.Operands, a)
		}
		o.Ops = append(o.Ops, op)
	}
	return nil
}

// index is where the range of instance i begins, in parts.
func (r *oneReplicator) index(rank ir.Rank, a *ir.Operand, i int32) (int32, bool) {
	if r.trace.Interleaved {
		return a.Index*r.k + i*a.Size, true
	}
	length := r.segment
	if a.Buf == ir.FirstScratch {
		at := a.Rank
		if a.Group != ir.None {
			at = rank
			for _, q := range r.trace.Groups[a.Group/r.k].Ranks {
				if r.trace.GPUs[q].Scratch != r.trace.GPUs[rank].Scratch {
					return 0, false
				}
			}
		}
		length = r.trace.GPUs[at].Scratch
	}
	start := a.Index / length * length
	if a.Index+a.Size > start+length {
		return 0, false
	}
	return start*r.k + i*length + a.Index - start, true
}
