package compiler

import (
	"context"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// maxFactor bounds how finely a chunk is cut: more instances than any GPU has
// thread blocks are a mistake.
const maxFactor = 1 << 12

// replicate cuts every chunk into R pieces, R being the least common multiple
// of all replication factors, and every operation with factor m into m
// operations on R/m pieces of each of its chunks (paper, section 5.1; ours works
// on chunks, so that dependencies between instances of mixed counts are found
// rather than assumed away).
//
// Interleaved: chunk k becomes pieces k*R to k*R+R-1; an operation on c chunks
// covers one run of c*R pieces, cut into m runs of equal length. Counts stay
// aggregated. Blocked: within a segment of length s, piece j of chunk k becomes
// j*s+k, so that an instance works on a compact part of the segment; runs are
// cut where they leave a segment.
func replicate(_ context.Context, s *state) error {
	d := s.source
	factor := int64(max(d.Instances, 1))
	for i := range d.Ops {
		factor = lcm(factor, int64(max(d.Instances, 1))*int64(max(d.Ops[i].Parallel, 1)))
		if factor > maxFactor {
			return diag.Errorf(d.Pos(d.Ops[i].Pos), "too-many-instances",
				"replication would cut a chunk into more than %d pieces", maxFactor).
				Suggest("use fewer instances, or parallelize factors that divide one another")
		}
	}
	r := replicator{state: s, factor: int32(factor)}
	if r.factor > 1 && !d.Interleaved && d.Coll.Segment() == 0 {
		return diag.Errorf(diag.Pos{}, "replication-policy",
			"program %q: interleaved_replication=False would renumber the chunks of collective %s, whose places have a meaning", d.Name, d.Coll).
			Suggest("leave interleaved_replication at True")
	}
	spec := *d.Spec
	spec.Coll = d.Coll.Refine(r.factor)
	spec.Buffers = make([]ir.Buffer, len(d.Buffers))
	for b := range d.Buffers {
		spec.Buffers[b] = ir.Buffer{Name: d.Buffers[b].Name, Chunks: make([]int32, len(d.Buffers[b].Chunks))}
		for q, n := range d.Buffers[b].Chunks {
			if int64(n)*factor > 1<<30 {
				return diag.Errorf(diag.Pos{}, "too-many-chunks", "program %q: buffer %s of rank %d would have more than 2^30 chunks",
					d.Name, d.Buffers[b].Name, q)
			}
			spec.Buffers[b].Chunks[q] = n * r.factor
		}
	}
	out := &ir.ChunkDAG{Spec: &spec, Ops: make([]ir.ChunkOp, 0, len(d.Ops)*int(max(d.Instances, 1)))}
	r.out = out
	for i := range d.Ops {
		if r.factor == 1 || d.Interleaved {
			r.interleaved(&d.Ops[i])
		} else {
			r.blocked(&d.Ops[i])
		}
	}
	s.chunks = out
	s.stats.Replicated = len(out.Ops)
	s.setRegime()
	return nil
}

// setRegime finds the smallest K of the size window: with fewer chunks in a
// message a step needs more slots, and a run that fits K fits every larger one
// (each message of the larger regime can be moved when the last of its chunks
// was, and fewer messages are then in flight).
func (s *state) setRegime() {
	s.regime = 1
	if s.opt.MaxBytes > 0 {
		s.regime = s.transport.Regime(s.opt.MaxBytes, s.chunks.Coll.NumChunks())
	}
	s.regime = max(s.regime, s.taken.window)
}

type replicator struct {
	*state
	factor int32
	out    *ir.ChunkDAG
}

func (r *replicator) interleaved(op *ir.ChunkOp) {
	m := max(r.source.Instances, 1) * max(op.Parallel, 1)
	count := op.Count * (r.factor / m)
	for i := range m {
		p := *op
		p.Src.Index = op.Src.Index*r.factor + i*count
		p.Dst.Index = op.Dst.Index*r.factor + i*count
		p.Count, p.Instance, p.Parallel = count, i, 1
		r.out.Ops = append(r.out.Ops, p)
	}
}

func (r *replicator) blocked(op *ir.ChunkOp) {
	m := max(r.source.Instances, 1) * max(op.Parallel, 1)
	each := r.factor / m
	src, dst := r.segment(op.Src), r.segment(op.Dst)
	for i := range m {
		for j := i * each; j < (i+1)*each; j++ {
			for done := int32(0); done < op.Count; {
				p := *op
				run := op.Count - done
				p.Src.Index, run = r.piece(op.Src.Index+done, j, src, run)
				p.Dst.Index, run = r.piece(op.Dst.Index+done, j, dst, run)
				p.Count, p.Instance, p.Parallel = run, i, 1
				r.out.Ops = append(r.out.Ops, p)
				done += run
			}
		}
	}
}

// piece maps chunk k, piece j, in segments of length seg, and shortens run to
// what stays inside the segment.
func (r *replicator) piece(k, j, seg, run int32) (int32, int32) {
	q, w := k/seg, k%seg
	return q*seg*r.factor + j*seg + w, min(run, seg-w)
}

// segment is the length within which chunks of a location's buffer may be
// renumbered: the collective's for input and output, all of a scratch buffer.
func (r *replicator) segment(l ir.Loc) int32 {
	if l.Buf < ir.FirstScratch {
		return r.source.Coll.Segment()
	}
	return r.source.Buffers[l.Buf].Chunks[l.Rank]
}

func lcm(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
