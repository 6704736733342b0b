package checker

import (
	"math"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// shape is one way to cut chunks: into units, of which a turn of a pipeline takes
// UnitBytes / bytesPerUnit.
type shape struct {
	units        int32 // of a chunk
	bytesPerUnit int64 // 0 without pipelines
}

// maxUnits bounds the units of a chunk.
const maxUnits = 1 << 12

// shapes chooses what to run. Without parts and pipelines a chunk is one unit.
// With parts see partShapes. With pipelines: a chunk of one, one and a half and
// three turns of the pipeline that takes the most turns, as far as the sizes of
// the program allow. Nil if units would be too many.
func shapes(p *ir.Program, o Options) []shape {
	cut, bytes, perTurn, chunks := int64(1), int64(0), int64(math.MaxInt64), int64(1)
	for i := range p.OneSided.Ops {
		op := &p.OneSided.Ops[i]
		switch {
		case op.Kind == ir.OpPipeline:
			bytes = gcd(op.UnitBytes, bytes)
			perTurn = min(perTurn, max(op.UnitBytes/int64(op.UnitChunks), 1))
			chunks = lcm(chunks, int64(op.UnitChunks))
		case op.Kind != ir.OpBarrier:
			cut = lcm(cut, int64(op.Parts))
		}
		if cut > maxUnits || chunks > maxUnits {
			return nil
		}
	}
	if bytes == 0 {
		if cut == 1 {
			return []shape{{units: 1}}
		}
		return partShapes(p, int32(cut))
	}
	// A turn of the least pipeline is at least 2*cut units a chunk.
	perUnit := max(bytes/(2*cut*chunks), 1)
	var out []shape
	w := newWindow(p, o)
	for _, halves := range []int64{2, 3, 6} {
		chunk := perTurn * halves / 2 // bytes
		small := w.maxChunk > 0 && turns(w.maxChunk, perTurn) < turns(chunk, perTurn)
		large := turns(w.minChunk, perTurn) > turns(chunk, perTurn)
		if small || large && halves != 6 {
			continue
		}
		units := max(chunk/perUnit, 1)
		if units > maxUnits {
			return nil
		}
		out = append(out, shape{int32(units), perUnit})
	}
	if out == nil { // chunks far smaller than a unit
		out = []shape{{int32(max(perTurn/perUnit, 1)), perUnit}}
	}
	return out
}

// fullUnits is how many units a chunk needs for no part to be empty.
func fullUnits(p *ir.Program) int32 {
	least := int32(1)
	for i := range p.OneSided.Ops {
		op := &p.OneSided.Ops[i]
		if op.Kind == ir.OpBarrier || op.Parts < 2 {
			continue
		}
		for _, d := range p.OneSided.Sources(op) {
			least = max(least, (op.Parts+d.Size-1)/d.Size)
		}
	}
	return least
}

// maxSmall bounds the chunks with empty parts that are judged, and the remainders.
const maxSmall = 15

// cutKinds are the ways in which operations are cut: into how many parts, of how many
// chunks.
func cutKinds(p *ir.Program) map[[2]int32]bool {
	kinds := map[[2]int32]bool{}
	for i := range p.OneSided.Ops {
		op := &p.OneSided.Ops[i]
		if op.Kind == ir.OpBarrier || op.Parts < 2 {
			continue
		}
		for _, d := range p.OneSided.Sources(op) {
			kinds[[2]int32{op.Parts, d.Size}] = true
		}
	}
	return kinds
}

// partShapes is for programs with parts: a chunk that all cuts divide, one with a
// remainder, or, if cuts of different kinds may lie differently to each other, with every
// remainder; and every chunk so small that some parts are empty.
func partShapes(p *ir.Program, cut int32) []shape {
	out := []shape{{units: cut}, {units: cut + 1}}
	for r := int32(2); r < min(cut, maxSmall+1) && len(cutKinds(p)) > 1; r++ {
		out = append(out, shape{units: cut + r})
	}
	for u := int32(1); u < min(fullUnits(p), maxSmall+1); u++ {
		out = append(out, shape{units: u})
	}
	return out
}

// unlooked says which sizes shapes leave out. Empty parts matter where there are packets:
// an operation that has none to wait for learns nothing. Elsewhere they only touch less.
func unlooked(p *ir.Program, s sizeRange, f *findings) {
	full, cut, loops := int64(fullUnits(p)), int64(1), false
	for i := range p.OneSided.Ops {
		switch op := &p.OneSided.Ops[i]; op.Kind {
		case ir.OpBarrier:
		case ir.OpPipeline:
			loops = true
		default:
			cut = lcm(cut, int64(op.Parts))
		}
	}
	small := full > maxSmall+1 && s.least < full && s.most > maxSmall || loops && full > 1
	if p.OneSided.Packets && small && f.admit(CodeUndecided) {
		f.add(diag.Warningf(diag.Pos{}, CodeUndecided, "at some sizes parts of operations are empty: not all of these were tried").
			Suggest("cut operations into fewer parts, or none in loops"))
	}
	if cut > maxSmall+1 && len(cutKinds(p)) > 1 && !loops && f.admit(CodeUndecided) {
		f.add(diag.Warningf(diag.Pos{}, CodeUndecided, "operations are cut in ways that lie differently to each other at each of %d sizes: not all of these were tried", cut).
			Suggest("cut operations alike"))
	}
}

// turns is how many units of the shape a turn of a pipeline takes, and how many turns
// there are.
func (s shape) turns(op *ir.Op) (unit, n int64) {
	unit = max(op.UnitBytes/s.bytesPerUnit, 1)
	return unit, (int64(op.UnitChunks)*int64(s.units) + unit - 1) / unit
}

func turns(bytes, unit int64) int64 { return (bytes + unit - 1) / max(unit, 1) }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b int64) int64 { return a / gcd(a, b) * b }
