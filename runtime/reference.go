package runtime

import (
	"math"

	"github.com/mscclsh/mscclsh/ir"
)

// Reference computes what a collective must deliver from its postcondition and
// its inputs alone, in a wider type, without looking at any program.
//
// # Error bound
//
// Let x_1 ... x_m be the contributions to an element that are not neutral (not 0
// in a sum, not 1 in a product), u the unit roundoff of the type and h half of
// its least subnormal number. Whatever the order, a result takes at most m-1
// operations that round (an operation with a neutral operand is exact).
//
// Sum: each rounds by a factor 1+d, |d| <= u, and a sum of two numbers of a
// floating-point grid never underflows. So x_i reaches the result with a factor
// within (1+u)^(m-1) of 1, and with g = (1+u)^(m-1) - 1
//
//	|result - sum x_i| <= g sum |x_i|
//
// for every m (the usual (m-1)u/(1-(m-1)u) is larger and needs (m-1)u < 1). Partial
// results are at most (1+g) sum |x_i|; where that exceeds the largest finite
// number, overflow or saturation is possible and there is no bound.
//
// Avg divides the sum by the number of contributions n and rounds once more:
//
//	g sum |x_i| / n + u (|sum x_i| + g sum |x_i|) / n + h
//
// Product: each multiplication rounds by 1+d and, if it underflows, by at most h
// besides, which later factors may enlarge, by no more than P = prod max(1, |x_i|):
//
//	g |prod x_i| + (m-1) h P (1+g),  no bound where P (1+g) exceeds the largest finite
//
// The 16-bit types are computed in float32 first: u becomes u + 2^-24 (and a
// product of the two), covered by u (1 + 2^-12). The wide value itself is carried
// in two float64, whose error is beyond 2^-90.
type Reference struct {
	In    *Inputs
	Op    ReduceOp
	gamma []float64 // (1+u)^(m-1) - 1 by m
	unit  float64   // u
}

// NewReference prepares the reference of op on the given inputs.
func NewReference(in *Inputs, op ReduceOp) *Reference {
	f := &Reference{In: in, Op: op}
	d := in.Layout.DType
	if !d.Float() {
		return f
	}
	f.unit = d.roundoff()
	if d.Size() == 2 {
		f.unit *= 1 + 0x1p-12
	}
	f.gamma = make([]float64, contributions(in.Layout.coll)+1)
	for m := range f.gamma {
		f.gamma[m] = math.Expm1(float64(max(m-1, 0)) * math.Log1p(f.unit))
	}
	return f
}

// refBlock is the number of elements computed at once.
const refBlock = 1024

// block is the working memory of one goroutine.
type block struct {
	raw    []byte
	x      [refBlock]float64
	hi, lo [refBlock]float64 // the wide result
	size   [refBlock]float64 // sum |x|, or prod max(1, |x|)
	count  [refBlock]int32   // contributions that are not neutral
	ints   [refBlock]uint64
	acc    [refBlock]uint64
	want   []byte // the result rounded to the type
	n      int    // elements in use
	parts  int64  // contributions
}

func newBlock(d DType) *block {
	return &block{raw: Alloc(refBlock * int64(d.Size())), want: Alloc(refBlock * int64(d.Size()))}
}

// compute fills b with elements [off, off+n) of the chunk that the contributions
// make.
func (f *Reference) compute(b *block, from []ir.Contribution, off int64, n int) {
	l := f.In.Layout
	b.n, b.parts = n, int64(len(from))
	for k, c := range from {
		first, _ := l.Real(c.Index)
		raw := b.raw[:n*l.DType.Size()]
		f.In.Fill(raw, c.Rank, first+off)
		if l.DType.Float() {
			decodeFloats(b.x[:n], l.DType, raw)
			b.addFloats(f.Op, k == 0)
		} else {
			decodeInts(b.ints[:n], l.DType, raw)
			b.addInts(f.Op, l.DType, k == 0)
		}
	}
	if l.DType.Float() {
		f.roundFloats(b)
	} else {
		f.roundInts(b)
	}
}

func (b *block) addFloats(op ReduceOp, first bool) {
	neutral := 0.0
	if op == Prod {
		neutral = 1
	}
	if first {
		for i, x := range b.x[:b.n] {
			b.hi[i], b.lo[i], b.size[i], b.count[i] = neutral, 0, neutral, 0
			if op == Min || op == Max {
				b.hi[i] = x
			}
		}
	}
	switch op {
	case Min:
		for i, x := range b.x[:b.n] {
			if x < b.hi[i] || b.hi[i] != b.hi[i] {
				b.hi[i] = x
			}
		}
	case Max:
		for i, x := range b.x[:b.n] {
			if x > b.hi[i] || b.hi[i] != b.hi[i] {
				b.hi[i] = x
			}
		}
	case Prod:
		for i, x := range b.x[:b.n] {
			p := b.hi[i] * x
			b.lo[i] = b.lo[i]*x + math.FMA(b.hi[i], x, -p)
			b.hi[i] = p
			b.size[i] *= max(1, math.Abs(x))
			if x != 1 {
				b.count[i]++
			}
		}
	default:
		for i, x := range b.x[:b.n] {
			s := b.hi[i] + x
			t := s - b.hi[i]
			b.lo[i] += (b.hi[i] - (s - t)) + (x - t)
			b.hi[i] = s
			b.size[i] += math.Abs(x)
			if x != 0 {
				b.count[i]++
			}
		}
	}
}

func (b *block) addInts(op ReduceOp, d DType, first bool) {
	if first {
		copy(b.acc[:b.n], b.ints[:b.n])
		return
	}
	less := func(x, y uint64) bool { return x < y }
	if d.signed() {
		less = func(x, y uint64) bool { return int64(x) < int64(y) }
	}
	for i, x := range b.ints[:b.n] {
		switch op {
		case Prod:
			b.acc[i] *= x
		case Min:
			if less(x, b.acc[i]) {
				b.acc[i] = x
			}
		case Max:
			if less(b.acc[i], x) {
				b.acc[i] = x
			}
		default:
			b.acc[i] += x
		}
	}
}

// roundFloats divides where the reduction asks for it, normalizes the wide result
// and rounds it to the type.
func (f *Reference) roundFloats(b *block) {
	n := float64(b.parts)
	for i := range b.n {
		if b.parts == 1 { // a copy, negative zeros included
			b.hi[i], b.lo[i] = b.x[i], 0
		}
		hi, lo := b.hi[i], b.lo[i]
		if math.IsInf(hi, 0) || hi != hi {
			b.lo[i] = 0
			continue
		}
		if f.Op == Avg && b.parts > 1 {
			q := hi / n
			hi, lo = q, (math.FMA(-q, n, hi)+lo)/n
		}
		b.hi[i] = hi + lo
		b.lo[i] = lo - (b.hi[i] - hi)
	}
	encodeFloats(b.want, f.In.Layout.DType, b.hi[:b.n])
}

// roundInts keeps the low bits, as wrapping arithmetic does, and then divides.
func (f *Reference) roundInts(b *block) {
	d := f.In.Layout.DType
	encodeInts(b.want, d, b.acc[:b.n])
	if f.Op != Avg || b.parts == 1 {
		return
	}
	decodeInts(b.acc[:b.n], d, b.want)
	for i := range b.acc[:b.n] {
		if d.signed() {
			b.acc[i] = uint64(int64(b.acc[i]) / b.parts)
		} else {
			b.acc[i] /= uint64(b.parts)
		}
	}
	encodeInts(b.want, d, b.acc[:b.n])
}

// bound is the largest error that element i of the block may have, +Inf where
// overflow makes any result possible, and 0 where bits must match.
func (f *Reference) bound(b *block, i int) float64 {
	d := f.In.Layout.DType
	if f.In.exact || b.parts == 1 || f.Op == Min || f.Op == Max {
		return 0
	}
	m := int(b.count[i])
	g, h := f.gamma[min(m, len(f.gamma)-1)], d.leastHalf()
	limit := b.size[i] * (1 + g)
	switch {
	case math.IsInf(b.hi[i], 0) || b.hi[i] != b.hi[i]:
		return 0 // an input was not finite: no rounding can change that
	case limit > d.Max():
		return math.Inf(1)
	case f.Op == Prod:
		return g*math.Abs(b.hi[i]) + float64(max(m-1, 0))*1.01*h*limit
	case f.Op == Avg:
		n := float64(b.parts)
		return g*b.size[i]/n + f.unit*(math.Abs(b.hi[i])+g*b.size[i]/n) + h
	}
	return g * b.size[i]
}

// Output computes the whole output of rank r in the user's order; elements of
// which nothing is demanded are 0.
func (f *Reference) Output(r ir.Rank) []byte {
	l := f.In.Layout
	size := int64(l.DType.Size())
	out := Alloc(l.OutputElems(r) * size)
	b := newBlock(l.DType)
	var want []ir.Contribution
	for i := range l.coll.OutputChunks(r) {
		var demanded bool
		want, demanded = l.coll.Expect(want[:0], r, i)
		first, n := l.Real(i)
		if !demanded || len(want) == 0 {
			continue
		}
		for off := int64(0); off < n; off += refBlock {
			k := min(refBlock, n-off)
			f.compute(b, want, off, int(k))
			copy(out[(first+off)*size:], b.want[:k*size])
		}
	}
	return out
}
