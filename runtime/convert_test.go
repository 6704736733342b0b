package runtime

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// format is a small floating-point type as its standard defines it, written
// without looking at the conversions.
type format struct {
	d                 DType
	expBits, manBits  int
	ieee              bool // the largest exponent is kept for infinities and NaNs
	saturates         bool
	one, two, biggest uint16 // spot values, from the standards' tables
}

var formats = []format{
	{FP16, 5, 10, true, false, 0x3c00, 0x4000, 0x7bff},
	{BF16, 8, 7, true, false, 0x3f80, 0x4000, 0x7f7f},
	{FP8E4M3, 4, 3, false, true, 0x38, 0x40, 0x7e},
	{FP8E5M2, 5, 2, true, true, 0x3c, 0x40, 0x7b},
}

func (f format) bits() int { return 1 + f.expBits + f.manBits }

// value is sign * 1.man * 2^(exp-bias), sign * 0.man * 2^(1-bias) for exp 0.
func (f format) value(b uint16) float64 {
	man := float64(b&(1<<f.manBits-1)) / math.Pow(2, float64(f.manBits))
	exp := int(b>>f.manBits) & (1<<f.expBits - 1)
	bias := 1<<(f.expBits-1) - 1
	sign := 1.0
	if b>>(f.bits()-1) == 1 {
		sign = -1
	}
	top := 1<<f.expBits - 1
	switch {
	case f.ieee && exp == top && man == 0:
		return math.Inf(int(sign))
	case f.ieee && exp == top, !f.ieee && exp == top && man == 1-math.Pow(2, -float64(f.manBits)):
		return math.NaN()
	case exp == 0:
		return math.Copysign(man*math.Pow(2, float64(1-bias)), sign)
	}
	return sign * (1 + man) * math.Pow(2, float64(exp-bias))
}

func (f format) decode(b uint16) float64 {
	switch f.d {
	case FP16:
		return float64(fp16ToFloat(b))
	case BF16:
		return float64(bf16ToFloat(b))
	}
	return decodeFP8(f.d, uint8(b))
}

// encoders are all ways to round a float64 that float32 holds too.
func (f format) encoders() []func(float64) uint16 {
	switch f.d {
	case FP16:
		return []func(float64) uint16{
			func(x float64) uint16 { return floatToFP16(float32(x)) },
			func(x float64) uint16 { return encode16(FP16, x) }}
	case BF16:
		return []func(float64) uint16{
			func(x float64) uint16 { return floatToBF16(float32(x)) },
			func(x float64) uint16 { return encode16(BF16, x) }}
	}
	return []func(float64) uint16{func(x float64) uint16 { return uint16(encodeFP8(f.d, x)) }}
}

func TestDecodeEveryValue(t *testing.T) {
	for _, f := range formats {
		for b := range 1 << f.bits() {
			got, want := f.decode(uint16(b)), f.value(uint16(b))
			if math.Float64bits(got) != math.Float64bits(want) && !(got != got && want != want) {
				t.Fatalf("%v %#x: got %v, want %v", f.d, b, got, want)
			}
		}
		if f.decode(f.one) != 1 || f.decode(f.two) != 2 || f.decode(f.biggest) != f.d.Max() {
			t.Errorf("%v: spot values are wrong", f.d)
		}
	}
}

// TestRoundEveryNeighborhood rounds, for every pair of neighboring numbers, both,
// their middle, and what is just below and above it.
func TestRoundEveryNeighborhood(t *testing.T) {
	for _, f := range formats {
		sign := uint16(1) << (f.bits() - 1)
		for _, enc := range f.encoders() {
			for b := uint16(0); b < f.biggest; b++ {
				lo, hi := f.value(b), f.value(b+1)
				mid := (lo + hi) / 2
				even := b + b&1
				below, above := math.Nextafter32(float32(mid), 0), math.Nextafter32(float32(mid), float32(hi))
				for _, c := range []struct {
					x    float64
					want uint16
				}{{lo, b}, {hi, b + 1}, {mid, even}, {float64(below), b}, {float64(above), b + 1}} {
					if got := enc(c.x); got != c.want {
						t.Fatalf("%v: %v rounds to %#x, want %#x", f.d, c.x, got, c.want)
					}
					if got := enc(-c.x); got != c.want|sign {
						t.Fatalf("%v: %v rounds to %#x, want %#x", f.d, -c.x, got, c.want|sign)
					}
				}
			}
		}
	}
}

func TestOverflowAndNaN(t *testing.T) {
	for _, f := range formats {
		step := f.value(f.biggest) - f.value(f.biggest-1)
		for _, enc := range f.encoders() {
			over := f.biggest + 1 // the bits of infinity
			if f.saturates {
				over = f.biggest
			}
			for x, want := range map[float64]uint16{
				f.d.Max() + step/2*0.999: f.biggest,
				f.d.Max() + step/2:       over, // a tie, and infinity is even
				f.d.Max() + step*0.75:    over,
				f.d.Max() * 1.5:          over,
				f.d.Max() * 1.99:         over,
				math.Inf(1):              over,
			} {
				if f.d == BF16 && x > math.MaxFloat32 && !math.IsInf(x, 0) {
					continue // not a float32
				}
				if got := enc(x); got != want {
					t.Errorf("%v: %v rounds to %#x, want %#x", f.d, x, got, want)
				}
			}
			if b := enc(math.NaN()); f.value(b) == f.value(b) {
				t.Errorf("%v: NaN becomes %v", f.d, f.value(b))
			}
		}
	}
}

// nearest finds the correctly rounded result by search among all values.
type nearest struct {
	f      format
	values []float64 // of bits 0 ... biggest
}

func newNearest(f format) nearest {
	n := nearest{f: f}
	for b := uint16(0); b <= f.biggest; b++ {
		n.values = append(n.values, f.value(b))
	}
	return n
}

func (n nearest) round(x float64) float64 {
	a := math.Abs(x)
	i := sort.SearchFloat64s(n.values, a)
	last := len(n.values) - 1
	if i > last {
		step := n.values[last] - n.values[last-1]
		if !n.f.saturates && a >= n.values[last]+step/2 {
			return math.Copysign(math.Inf(1), x)
		}
		return math.Copysign(n.values[last], x)
	}
	if i > 0 {
		down, up := a-n.values[i-1], n.values[i]-a
		if down < up || down == up && (i-1)%2 == 0 {
			i--
		}
	}
	return math.Copysign(n.values[i], x)
}

// TestSmallFloatArithmetic compares sums and products of small floats with the
// correctly rounded result: float32 has enough bits that rounding twice is
// rounding once. Sums and products of two such numbers are exact in float64,
// except far apart bfloat16, which the range of the operands excludes.
func TestSmallFloatArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, f := range formats {
		n := newNearest(f)
		for _, op := range []ReduceOp{Sum, Prod, Min, Max} {
			c, err := NewCombine(f.d, op)
			if err != nil {
				t.Fatal(err)
			}
			size := f.d.Size()
			a, b, dst := Alloc(int64(size)), Alloc(int64(size)), Alloc(int64(size))
			for range 20000 {
				x := n.values[rng.IntN(len(n.values))]
				y := n.values[rng.IntN(len(n.values))]
				if f.d == BF16 {
					x, y = n.round(rng.NormFloat64()*math.Ldexp(1, rng.IntN(20)-10)), n.round(rng.NormFloat64())
				}
				x, y = math.Copysign(x, rng.Float64()-0.5), math.Copysign(y, rng.Float64()-0.5)
				encodeFloats(a, f.d, []float64{x})
				encodeFloats(b, f.d, []float64{y})
				c.Into(dst, a, b)
				var got [1]float64
				decodeFloats(got[:], f.d, dst)
				want := map[ReduceOp]float64{Sum: n.round(x + y), Prod: n.round(x * y), Min: math.Min(x, y), Max: math.Max(x, y)}[op]
				if got[0] != want {
					t.Fatalf("%v: %v of %v and %v is %v, want %v", f.d, op, x, y, got[0], want)
				}
			}
		}
	}
}
