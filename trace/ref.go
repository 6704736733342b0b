package trace

import (
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Ref refers to Count consecutive chunks of one rank as the user named them: for
// an in-place collective Buf and Index may be an alias of the canonical place. It
// is a value; it goes stale when one of its locations is overwritten.
type Ref struct {
	Rank         ir.Rank
	Buf          ir.BufferID
	Index, Count int32 // in chunks

	seq   int32 // number of operations recorded when it was taken
	pos   ir.PosID
	owner *Builder
}

func (b *Builder) ref(rank ir.Rank, buf ir.BufferID, index, count int32, pos ir.PosID) Ref {
	return Ref{rank, buf, index, count, int32(len(b.ops)), pos, b}
}

// locate checks that a range lies inside its buffer, as the user named it, and
// gives the canonical place of its first chunk; the rest follow consecutively.
// Scratch ends only at maxScratch.
func (b *Builder) locate(call string, rank ir.Rank, buf ir.BufferID, index, count int32, pos ir.PosID) (ir.Loc, *diag.Message) {
	switch {
	case uint32(rank) >= uint32(b.spec.Coll.Ranks):
		return ir.Loc{}, b.errRank(call, rank, pos)
	case uint32(buf) >= uint32(len(b.spec.Buffers)):
		return ir.Loc{}, b.errBuffer(call, buf, pos)
	case count < 1:
		return ir.Loc{}, b.errCount(call, count, pos)
	case index < 0:
		return ir.Loc{}, b.errNegative(call, rank, buf, index, pos)
	}
	end := int64(index) + int64(count)
	if buf >= ir.FirstScratch {
		if end > maxScratch {
			return ir.Loc{}, b.errScratchEnd(call, rank, buf, index, count, pos)
		}
		return ir.Loc{Rank: rank, Buf: buf, Index: index}, nil
	}
	if end > int64(b.spec.Buffers[buf].Chunks[rank]) {
		return ir.Loc{}, b.errPastEnd(call, rank, buf, index, count, pos)
	}
	if b.spec.Coll.InPlace {
		buf, index = b.spec.Coll.Canon(rank, buf, index)
	}
	return ir.Loc{Rank: rank, Buf: buf, Index: index}, nil
}

// use checks that a reference may be read now and gives its canonical place and
// the cells there.
func (b *Builder) use(call string, r Ref, pos ir.PosID) (ir.Loc, []cell, *diag.Message) {
	if b.done {
		return ir.Loc{}, nil, b.errFinished(call, pos)
	}
	if r.owner != b {
		return ir.Loc{}, nil, b.errForeign(call, r, pos)
	}
	// Fields of a Ref are open to callers, so its place is checked again.
	loc, m := b.locate(call, r.Rank, r.Buf, r.Index, r.Count, pos)
	if m != nil {
		return ir.Loc{}, nil, m
	}
	cells, at := b.mem.held(loc, r.Count)
	if at >= 0 {
		return ir.Loc{}, nil, b.errEmpty(call, r.Rank, r.Buf, r.Index+at, pos)
	}
	for i := range cells {
		if cells[i].writer > r.seq {
			return ir.Loc{}, nil, b.errStale(r, int32(i), cells[i].writer, pos)
		}
	}
	return loc, cells, nil
}

// target fills in the defaults of a copy's destination.
func (b *Builder) target(src Ref, dst ir.Rank, buf ir.BufferID, index int32, pos ir.PosID) (ir.BufferID, int32, *diag.Message) {
	if uint32(dst) >= uint32(b.spec.Coll.Ranks) {
		return 0, 0, b.errRank("copy", dst, pos)
	}
	switch {
	case buf != ir.None && index != ir.None:
		return buf, index, nil
	case buf == ir.None && index == ir.None:
		return src.Buf, src.Index, nil
	case buf == ir.None:
		return 0, 0, b.errNoBuffer(src, dst, index, pos)
	case buf < ir.FirstScratch:
		return 0, 0, b.errNoIndex(src, dst, buf, pos)
	}
	return buf, b.LenScratch(buf, dst), nil
}

// checkRoute checks what a transfer asks for: its hints and its link.
func (b *Builder) checkRoute(call string, src, dst ir.Rank, h Hints, pos ir.PosID) *diag.Message {
	if h.SendTB < ir.None || h.RecvTB < ir.None || h.Chan < ir.None {
		return b.errHint(call, h, pos)
	}
	if !b.spec.Topo.Linked(src, dst) {
		return b.errNoLink(call, src, dst, pos)
	}
	return nil
}

// overlap reports whether two ranges of count chunks share a location.
func overlap(x, y ir.Loc, count int32) bool {
	return x.Rank == y.Rank && x.Buf == y.Buf && x.Index < y.Index+count && y.Index < x.Index+count
}

// Split cuts a reference into n of equal count, in order.
func (b *Builder) Split(r Ref, n int32, pos ir.PosID) ([]Ref, error) {
	if _, _, m := b.use("split", r, pos); m != nil {
		return nil, m
	}
	if n < 1 || r.Count%n != 0 {
		return nil, b.errSplit(r, n, pos)
	}
	parts := make([]Ref, n)
	size := r.Count / n
	for i := range parts {
		parts[i] = b.ref(r.Rank, r.Buf, r.Index+int32(i)*size, size, pos)
	}
	return parts, nil
}

// Group joins two adjacent references of one rank and buffer, in either order.
// References that name one memory differently have the result named canonically.
func (b *Builder) Group(x, y Ref, pos ir.PosID) (Ref, error) {
	lx, _, m := b.use("group", x, pos)
	if m != nil {
		return Ref{}, m
	}
	ly, _, m := b.use("group", y, pos)
	if m != nil {
		return Ref{}, m
	}
	if lx.Rank != ly.Rank || lx.Buf != ly.Buf {
		return Ref{}, b.errGroupPlaces(x, y, pos)
	}
	low, buf, index := lx, x.Buf, x.Index
	if ly.Index < lx.Index {
		low, buf, index = ly, y.Buf, y.Index
	}
	if lx.Index+x.Count != ly.Index && ly.Index+y.Count != lx.Index {
		return Ref{}, b.errGroupGap(x, y, overlapping(lx, x.Count, ly, y.Count), pos)
	}
	if x.Buf != y.Buf {
		buf, index = low.Buf, low.Index
	}
	return b.ref(x.Rank, buf, index, x.Count+y.Count, pos), nil
}

func overlapping(x ir.Loc, xn int32, y ir.Loc, yn int32) bool {
	return x.Index < y.Index+yn && y.Index < x.Index+xn
}
