package runtime

import (
	"math"
	"math/rand/v2"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Inputs are the elements that the ranks start with: generated from a seed, or
// given. Generated elements are a function of (seed, rank, index) alone and are
// made anew whenever asked for, so that they take no memory. Safe for concurrent
// use.
type Inputs struct {
	Layout *Layout
	exact  bool
	given  [][]byte // nil for generated ones

	seed  uint64
	make  func(rng *rand.Rand, dst []float64)
	makeI func(rng *rand.Rand, dst []uint64)
	// Of rotate ranks in a row only the first dense get values of their own at an
	// element (which ones rotates with the element), the others get rest.
	dense, rotate int64
	rest          float64
}

// genBlock is the number of elements made from one state of the generator: few,
// so that asking for a single element is cheap.
const genBlock = 64

// Generate makes inputs for a collective with reduction op.
//
// Exact inputs are small integers (for Prod powers of two) chosen so that every
// partial result, in any order, is exactly representable: results must match bit
// for bit. Otherwise floating-point inputs are normally distributed (for Prod
// around +-1) and results are compared within the error bound of Reference.
// Integers, and Min and Max, are exact either way.
//
// The small types have no room for many different contributions. There only some
// ranks contribute a value of their own to an element, which ones differs from
// element to element, and the rest contribute the neutral 0 or 1.
func Generate(l *Layout, op ReduceOp, seed uint64, exact bool) (*Inputs, error) {
	if !op.valid() {
		return nil, diag.Errorf(diag.Pos{}, "op", "run: reduction %d is not known", op)
	}
	in := &Inputs{Layout: l, exact: exact, seed: seed, rotate: int64(l.coll.Ranks)}
	n := contributions(l.coll)
	in.dense = max(n, in.rotate)
	switch {
	case !l.DType.Float():
		in.makeI = intMaker(l.DType, op)
	case op == Min || op == Max:
		in.make = normals
	case exact && op == Prod:
		in.powersOfTwo()
	case exact:
		in.smallIntegers(n)
	default:
		// With more contributions the error bound of the small types would hide one
		// that is missing.
		in.limit(map[int]int64{1: 3, 2: 16}[l.DType.Size()])
		in.make = normals
		if op == Prod {
			in.rest = 1
			in.make = nearOnes(2 / float64(min(n, in.dense)))
		}
	}
	if exact && l.coll.Kind == ir.Custom && in.dense < n && l.DType.Float() {
		return nil, diag.Errorf(diag.Pos{}, "exact",
			"run: outputs with %d contributions have no exact %v of %v", n, op, l.DType).
			Suggest("take a wider data type, or random data")
	}
	return in, nil
}

// NewInputs takes given inputs, the user's elements of one rank each; ranks
// without input may have nil. The slices must not be changed afterwards.
func NewInputs(l *Layout, data [][]byte) (*Inputs, error) {
	if len(data) != int(l.coll.Ranks) {
		return nil, diag.Errorf(diag.Pos{}, "input", "run: got inputs of %d ranks, want %d", len(data), l.coll.Ranks)
	}
	in := &Inputs{Layout: l, given: make([][]byte, len(data))}
	for r, b := range data {
		want := l.InputElems(ir.Rank(r)) * int64(l.DType.Size())
		if int64(len(b)) != want {
			return nil, diag.Errorf(diag.Pos{}, "input",
				"run: input of rank %d has %d bytes, want %d", r, len(b), want)
		}
		if !aligned(b, l.DType.Size()) {
			b = append(Alloc(int64(len(b)))[:0], b...)
		}
		in.given[r] = b
	}
	return in, nil
}

// Exact reports whether results must match bit for bit whatever the reduction.
func (in *Inputs) Exact() bool { return in.exact }

// contributions is the largest number of contributions to one output.
func contributions(c *ir.Collective) int64 {
	switch c.Kind {
	case ir.AllReduce, ir.ReduceScatter, ir.ReduceTo:
		return int64(c.Ranks)
	case ir.Custom:
		n := 1
		for _, rank := range c.Custom.Expect {
			for _, want := range rank {
				n = max(n, len(want))
			}
		}
		return int64(n)
	}
	return 1
}

func (in *Inputs) limit(n int64) {
	if n > 0 {
		in.dense = min(in.dense, n)
	}
}

// smallIntegers makes integers of which any n sum to less than what the type
// represents exactly.
func (in *Inputs) smallIntegers(n int64) {
	room := in.Layout.DType.exactInt()
	in.limit(room)
	most := min(max(room/n, 1), 1000)
	in.make = func(rng *rand.Rand, dst []float64) {
		var bits uint64
		for i := range dst {
			if i%4 == 0 {
				bits = rng.Uint64()
			}
			// 16 bits scaled to 0 ... 2*most: close enough to uniform.
			dst[i] = float64(int64(bits&0xffff*uint64(2*most+1)>>16) - most)
			bits >>= 16
		}
	}
}

// powersOfTwo makes signed powers of two whose exponents stay in the type's range
// when all are added, or all but the negative ones.
func (in *Inputs) powersOfTwo() {
	in.limit(int64(-dtypes[in.Layout.DType].minExp))
	in.rest = 1
	values := [...]float64{1, 2, 0.5, -1, -2, -0.5}
	in.make = func(rng *rand.Rand, dst []float64) {
		for i := range dst {
			dst[i] = values[rng.IntN(len(values))]
		}
	}
}

func normals(rng *rand.Rand, dst []float64) {
	for i := range dst {
		dst[i] = rng.NormFloat64()
	}
}

// nearOnes makes numbers around +-1 so close that no product of 2/scale of them
// overflows any type.
func nearOnes(scale float64) func(*rand.Rand, []float64) {
	return func(rng *rand.Rand, dst []float64) {
		for i := range dst {
			z := min(max(rng.NormFloat64(), -2), 2)
			dst[i] = math.Copysign(math.Exp(z*scale), rng.Float64()-0.5)
		}
	}
}

// intMaker makes integers: any bits for Min and Max, small odd factors for Prod
// (a product of even ones soon is 0), and up to 100 in size for sums.
func intMaker(d DType, op ReduceOp) func(*rand.Rand, []uint64) {
	return func(rng *rand.Rand, dst []uint64) {
		for i := range dst {
			var v int64
			switch op {
			case Min, Max:
				v = int64(rng.Uint64())
			case Prod:
				v = 2*rng.Int64N(4) + 1
			default:
				v = rng.Int64N(101)
			}
			if d.signed() && rng.IntN(2) == 1 {
				v = -v
			}
			dst[i] = uint64(v)
		}
	}
}

// Fill writes elements first, first+1, ... of rank r's input to dst, which must
// be aligned and hold whole elements that exist.
func (in *Inputs) Fill(dst []byte, r ir.Rank, first int64) {
	size := int64(in.Layout.DType.Size())
	if in.given != nil {
		copy(dst, in.given[r][first*size:])
		return
	}
	var pcg rand.PCG
	rng := rand.New(&pcg)
	var floats [genBlock]float64
	var ints [genBlock]uint64
	for len(dst) > 0 {
		block, skip := first/genBlock, int(first%genBlock)
		n := min(genBlock, skip+len(dst)/int(size))
		pcg.Seed(in.seed^(uint64(r)+1)*0x9e3779b97f4a7c15, uint64(block))
		out := dst[:(n-skip)*int(size)]
		if in.makeI != nil {
			in.makeI(rng, ints[:n])
			encodeInts(out, in.Layout.DType, ints[skip:n])
		} else {
			in.make(rng, floats[:n])
			in.thin(floats[:n], int64(r), block*genBlock)
			encodeFloats(out, in.Layout.DType, floats[skip:n])
			dropNegativeZeros(out, in.Layout.DType)
		}
		dst = dst[len(out):]
		first += int64(n - skip)
	}
}

// thin replaces what exceeds the dense contributions of an element.
func (in *Inputs) thin(v []float64, r, first int64) {
	if in.dense >= in.rotate {
		return
	}
	for i := range v {
		if (r+first+int64(i))%in.rotate >= in.dense {
			v[i] = in.rest
		}
	}
}

// dropNegativeZeros turns -0 into 0: which of two zeros a minimum returns depends
// on the order of its operands, and no result should.
func dropNegativeZeros(b []byte, d DType) {
	switch d.Size() {
	case 1:
		for i, v := range b {
			if v == 0x80 {
				b[i] = 0
			}
		}
	case 2:
		v := view[uint16](b)
		for i := range v {
			if v[i] == 0x8000 {
				v[i] = 0
			}
		}
	}
}
