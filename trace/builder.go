package trace

import (
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Builder records a program. It is not safe for concurrent use.
type Builder struct {
	spec ir.Spec
	ops  []ir.ChunkOp
	mem  memory

	scratch map[string]ir.BufferID
	places  positions

	outer    []int32 // factors around the enclosing parallelize blocks
	factor   int32   // product of the open parallelize factors
	unopened bool    // EndParallelize was called without a Parallelize
	done     bool
}

// Hints are a script's wishes for one operation; ir.None means not given.
type Hints struct {
	SendTB int32 // thread block at the sender, and of a local operation
	RecvTB int32 // thread block at the receiver
	Chan   int32 // channel
}

// NoHints leaves everything to the compiler.
var NoHints = Hints{ir.None, ir.None, ir.None}

// New starts a program. Buffers and Positions of spec are ignored: the Builder
// fills them in. spec.Coll and spec.Topo are kept, not copied, and must not
// change until the program is done with.
func New(spec ir.Spec) (*Builder, error) {
	if m := checkSpec(&spec); m != nil {
		return nil, m
	}
	b := &Builder{
		spec:    spec,
		scratch: map[string]ir.BufferID{},
		factor:  1,
	}
	b.places.begin(&b.spec)
	in, out := make([]int32, spec.Coll.Ranks), make([]int32, spec.Coll.Ranks)
	for r := range in {
		in[r], out[r] = spec.Coll.InputChunks(ir.Rank(r)), spec.Coll.OutputChunks(ir.Rank(r))
	}
	b.spec.Buffers = []ir.Buffer{{Name: "input", Chunks: in}, {Name: "output", Chunks: out}}
	b.mem = newMemory(&b.spec)
	return b, nil
}

// Spec is the program's header as it stands: buffers grow and positions are
// added while tracing goes on. The caller must not change it.
func (b *Builder) Spec() *ir.Spec { return &b.spec }

// Ops is the number of operations recorded so far.
func (b *Builder) Ops() int { return len(b.ops) }

// Pos gives the id of a position. Repeats are cheap: a hit in a small cache
// costs one comparison.
func (b *Builder) Pos(p diag.Pos) ir.PosID { return b.places.id(&b.spec, p) }

// Scratch gives the id of the scratch buffer that the user calls name, creating
// it, empty on every rank, when the name is new. Messages quote the name as a
// string, except that one beginning with a parenthesis is shown as it is: it is
// a tuple's.
func (b *Builder) Scratch(name string) ir.BufferID {
	if id, ok := b.scratch[name]; ok {
		return id
	}
	id := ir.BufferID(len(b.spec.Buffers))
	ranks := b.spec.Coll.Ranks
	b.spec.Buffers = append(b.spec.Buffers, ir.Buffer{Name: name, Chunks: make([]int32, ranks)})
	b.mem.cells = append(b.mem.cells, make([][]cell, ranks))
	b.scratch[name] = id
	return id
}

// LenScratch is the length in chunks, holes included, of buffer buf on a rank:
// where a copy into scratch without an index appends. It is 0 for ids and ranks
// that don't exist.
func (b *Builder) LenScratch(buf ir.BufferID, rank ir.Rank) int32 {
	if buf < 0 || int(buf) >= len(b.spec.Buffers) || rank < 0 || int32(rank) >= b.spec.Coll.Ranks {
		return 0
	}
	return b.spec.Buffers[buf].Chunks[rank]
}

// Chunk refers to count consecutive chunks, all of which must hold something.
func (b *Builder) Chunk(rank ir.Rank, buf ir.BufferID, index, count int32, pos ir.PosID) (Ref, error) {
	if b.done {
		return Ref{}, b.errFinished("chunk", pos)
	}
	loc, m := b.locate("chunk", rank, buf, index, count, pos)
	if m != nil {
		return Ref{}, m
	}
	if _, at := b.mem.held(loc, count); at >= 0 {
		return Ref{}, b.errEmpty("chunk", rank, buf, index+at, pos)
	}
	return b.ref(rank, buf, index, count, pos), nil
}

// Copy records dst := src and refers to the result. Without buf and index (both
// ir.None) the destination has the name of the source, on rank dst; scratch
// without an index is appended to.
func (b *Builder) Copy(src Ref, dst ir.Rank, buf ir.BufferID, index int32, h Hints, pos ir.PosID) (Ref, error) {
	from, s, m := b.use("copy", src, pos)
	if m != nil {
		return Ref{}, m
	}
	if buf, index, m = b.target(src, dst, buf, index, pos); m != nil {
		return Ref{}, m
	}
	to, m := b.locate("copy", dst, buf, index, src.Count, pos)
	if m != nil {
		return Ref{}, m
	}
	if overlap(from, to, src.Count) {
		return Ref{}, b.errCopyOverlap(src, buf, index, from == to, pos)
	}
	if m := b.checkRoute("copy", src.Rank, dst, h, pos); m != nil {
		return Ref{}, m
	}
	// Growing scratch may move s away; what it held stays readable.
	d := b.mem.room(&b.spec, to, src.Count)
	seq := b.record(ir.ChunkCopy, from, to, src.Count, h, pos)
	for i := range d {
		d[i] = cell{s[i].value, seq}
	}
	return b.ref(dst, buf, index, src.Count, pos), nil
}

// Reduce records dst += src. The result is in dst's place and refers to its
// newest content, so it takes the place of dst in what follows.
func (b *Builder) Reduce(dst, src Ref, h Hints, pos ir.PosID) (Ref, error) {
	to, d, m := b.use("reduce", dst, pos)
	if m != nil {
		return Ref{}, m
	}
	from, s, m := b.use("reduce", src, pos)
	if m != nil {
		return Ref{}, m
	}
	if dst.Count != src.Count {
		return Ref{}, b.errCounts(dst, src, pos)
	}
	if overlap(from, to, src.Count) {
		return Ref{}, b.errReduceOverlap(dst, src, from == to, pos)
	}
	if m := b.checkRoute("reduce", src.Rank, dst.Rank, h, pos); m != nil {
		return Ref{}, m
	}
	first, at := b.mem.values.addAll(d, s)
	if at >= 0 {
		return Ref{}, b.errTooManyTerms(dst, int32(at), pos)
	}
	seq := b.record(ir.ChunkReduce, from, to, src.Count, h, pos)
	for i := range d {
		d[i] = cell{first + valueID(i), seq}
	}
	return b.ref(dst.Rank, dst.Buf, dst.Index, dst.Count, pos), nil
}

// record appends the operation and returns its sequence number, from 1.
func (b *Builder) record(kind ir.ChunkKind, src, dst ir.Loc, count int32, h Hints, pos ir.PosID) int32 {
	if len(b.ops) == cap(b.ops) {
		b.ops = slices.Grow(b.ops, grown(len(b.ops)))
	}
	b.ops = append(b.ops, ir.ChunkOp{Kind: kind, Src: src, Dst: dst, Count: count,
		Chan: h.Chan, SendTB: h.SendTB, RecvTB: h.RecvTB, Parallel: b.factor, Pos: pos})
	return int32(len(b.ops))
}

// grown is how many more records to make room for: as many again. append grows
// long slices by a quarter, and copying them was a third of tracing.
func grown(n int) int { return max(n, 256) }

// Parallelize opens a fragment whose operations are done in n parts at once.
// Fragments nest; their factors multiply.
func (b *Builder) Parallelize(n int32, pos ir.PosID) error {
	switch {
	case b.done:
		return b.errFinished("parallelize", pos)
	case n < 1:
		return diag.Errorf(b.spec.Pos(pos), "bad-factor", "parallelize: got %d, want 1 or more", n).
			Suggest("parallelize(1) changes nothing")
	case int64(b.factor)*int64(n) > maxFactor:
		return diag.Errorf(b.spec.Pos(pos), "bad-factor",
			"parallelize: %d parts, want %d at most", int64(b.factor)*int64(n), maxFactor).
			Suggest("nested factors multiply: make one of them smaller")
	}
	b.outer = append(b.outer, b.factor)
	b.factor *= n
	return nil
}

// maxFactor bounds how often one chunk is cut, far beyond what any target holds.
const maxFactor = 1 << 16

// EndParallelize closes the innermost fragment. One too many is an error of
// Finish.
func (b *Builder) EndParallelize() {
	last := len(b.outer) - 1
	if last < 0 {
		b.unopened = true
		return
	}
	b.factor = b.outer[last]
	b.outer = b.outer[:last]
}

// Finish gives the program. After it every call that records or refers is an
// error; Contributions and LenScratch still answer.
func (b *Builder) Finish() (*ir.ChunkDAG, error) {
	switch {
	case b.done:
		return nil, b.errFinished("finish", 0)
	case b.unopened:
		return nil, diag.Errorf(diag.Pos{}, "unbalanced-parallelize", "parallelize: ended more often than begun")
	case len(b.outer) > 0:
		return nil, diag.Errorf(diag.Pos{}, "unbalanced-parallelize", "parallelize: %d still open at the end of the program", len(b.outer))
	}
	b.done = true
	spec := b.spec
	// Clipped, so that positions added for later messages can't reach the program.
	spec.Buffers, spec.Positions = slices.Clip(spec.Buffers), slices.Clip(spec.Positions)
	d := &ir.ChunkDAG{Spec: &spec, Ops: b.ops}
	b.ops = nil
	return d, nil
}

// Snapshot gives the program as traced so far, sharing nothing with b, which
// goes on.
func (b *Builder) Snapshot() (*ir.ChunkDAG, error) {
	if b.done {
		return nil, b.errFinished("snapshot", 0)
	}
	spec := b.spec
	spec.Positions = slices.Clone(spec.Positions)
	spec.Buffers = slices.Clone(spec.Buffers)
	for i := range spec.Buffers {
		spec.Buffers[i].Chunks = slices.Clone(spec.Buffers[i].Chunks)
	}
	return &ir.ChunkDAG{Spec: &spec, Ops: slices.Clone(b.ops)}, nil
}
