package runtime

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestParseDType(t *testing.T) {
	for s, want := range map[string]DType{"fp32": FP32, "float": FP32, "FLOAT32": FP32, "double": FP64, "half": FP16,
		"bfloat16": BF16, "bf16": BF16, "fp8e4m3": FP8E4M3, "fp8_e5m2": FP8E5M2, "float8e4m3": FP8E4M3,
		"int8": Int8, "char": Int8, "uint8": Uint8, "int": Int32, "uint32": Uint32, "int64": Int64, "uint64": Uint64} {
		if got, err := ParseDType(s); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", s, got, err, want)
		}
	}
	_, err := ParseDType("fp4")
	want := `data type: got "fp4", want one of fp32, fp64, fp16, bf16, fp8e4m3, fp8e5m2, int8, uint8, int32, uint32, int64, uint64`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = ParseReduceOp("mean")
	if want := `reduction: got "mean", want one of sum, prod, min, max, avg`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestFloatArithmetic compares fp32 and fp64 with math/big, over lengths that
// leave remainders of the unrolled loops.
func TestFloatArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, op := range []ReduceOp{Sum, Prod, Min, Max, Avg} {
		for _, n := range []int{0, 1, 7, 8, 15, 16, 17, 100} {
			x, y := make([]float64, n), make([]float64, n)
			for i := range n {
				x[i], y[i] = float64(float32(rng.NormFloat64())), float64(float32(rng.NormFloat64()*1000))
			}
			for _, d := range []DType{FP32, FP64} {
				got := combine(t, d, op, x, y)
				for i := range n {
					a, b := big.NewFloat(x[i]), big.NewFloat(y[i])
					r := new(big.Float).SetPrec(200)
					switch op {
					case Prod:
						r.Mul(a, b)
					case Min:
						r.SetFloat64(math.Min(x[i], y[i]))
					case Max:
						r.SetFloat64(math.Max(x[i], y[i]))
					default:
						r.Add(a, b)
					}
					want, _ := r.Float64()
					if d == FP32 {
						w, _ := r.Float32()
						want = float64(w)
					}
					if got[i] != want {
						t.Fatalf("%v %v of %v and %v: got %v, want %v", d, op, x[i], y[i], got[i], want)
					}
				}
			}
		}
	}
}

func combine(t *testing.T, d DType, op ReduceOp, x, y []float64) []float64 {
	t.Helper()
	c, err := NewCombine(d, op)
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(x) * d.Size())
	a, b, out := Alloc(size), Alloc(size), make([]float64, len(x))
	encodeFloats(a, d, x)
	encodeFloats(b, d, y)
	c.Into(a, a, b) // in place, as every reduction into memory is
	decodeFloats(out, d, a)
	return out
}

func TestNaNLosesAgainstNumbers(t *testing.T) {
	nan := math.NaN()
	for d := FP32; d <= FP8E5M2; d++ {
		for _, op := range []ReduceOp{Min, Max} {
			got := combine(t, d, op, []float64{nan, 2, nan, -3}, []float64{1, nan, nan, -3})
			if got[0] != 1 || got[1] != 2 || got[2] == got[2] || got[3] != -3 {
				t.Errorf("%v %v: got %v, want [1 2 NaN -3]", d, op, got)
			}
		}
		if got := combine(t, d, Sum, []float64{nan}, []float64{1}); got[0] == got[0] {
			t.Errorf("%v: NaN + 1 is %v", d, got[0])
		}
	}
}

func TestIntegerArithmetic(t *testing.T) {
	type row struct {
		d          DType
		op         ReduceOp
		a, b, want int64
	}
	for _, c := range []row{
		{Int8, Sum, 100, 100, -56}, {Int8, Prod, 16, 17, 16}, {Int8, Min, -128, 127, -128}, {Int8, Max, -128, 127, 127},
		{Uint8, Sum, 200, 100, 44}, {Uint8, Min, 200, 100, 100}, {Uint8, Max, 200, 100, 200}, {Uint8, Prod, 100, 3, 44},
		{Int32, Sum, math.MaxInt32, 1, math.MinInt32}, {Int32, Prod, 1 << 16, 1 << 16, 0}, {Int32, Min, -1, 1, -1},
		{Uint32, Sum, math.MaxUint32, 2, 1}, {Uint32, Max, math.MaxUint32, 2, math.MaxUint32},
		{Int64, Sum, math.MaxInt64, 1, math.MinInt64}, {Int64, Max, math.MinInt64, 0, 0},
		{Uint64, Sum, -1, 2, 1}, {Uint64, Max, -1, 2, -1}, {Uint64, Min, -1, 2, 2}, // -1 is 2^64-1
		{Int32, Avg, 5, 6, 11},
	} {
		k, err := NewCombine(c.d, c.op)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(c.d.Size())
		a, b, want := Alloc(n), Alloc(n), Alloc(n)
		encodeInts(a, c.d, []uint64{uint64(c.a)})
		encodeInts(b, c.d, []uint64{uint64(c.b)})
		encodeInts(want, c.d, []uint64{uint64(c.want)})
		k.Into(a, a, b)
		if string(a) != string(want) {
			t.Errorf("%v %v of %d and %d: got %s, want %d", c.d, c.op, c.a, c.b, Format(c.d, a), c.want)
		}
	}
}

func TestDivide(t *testing.T) {
	for _, c := range []struct {
		d       DType
		x, n, y int64
	}{{Int8, -7, 2, -3}, {Int8, 7, 2, 3}, {Int32, -9, 4, -2}, {Int64, math.MinInt64, 2, math.MinInt64 / 2},
		{Uint8, 255, 2, 127}, {Uint32, math.MaxUint32, 2, math.MaxInt32}, {Uint64, -1, 2, math.MaxInt64}, {Int8, 100, 1000, 0}} {
		b := Alloc(8)[:c.d.Size()]
		encodeInts(b, c.d, []uint64{uint64(c.x)})
		Divide(c.d, b, c.n)
		var got [1]uint64
		decodeInts(got[:], c.d, b)
		if int64(got[0]) != c.y {
			t.Errorf("%v: %d / %d is %d, want %d", c.d, c.x, c.n, int64(got[0]), c.y)
		}
	}
	for _, c := range []struct {
		d    DType
		x    float64
		n    int64
		want float64
	}{{FP32, 1, 3, float64(float32(1) / 3)}, {FP64, 1, 3, 1.0 / 3}, {FP16, 1, 3, 0.333251953125}, {BF16, 1, 3, 0.333984375},
		{FP8E4M3, 1, 3, 0.34375}, {FP8E5M2, 1, 3, 0.3125}, {FP16, 2049 - 1, 4, 512}} {
		b := Alloc(8)[:c.d.Size()]
		encodeFloats(b, c.d, []float64{c.x})
		Divide(c.d, b, c.n)
		var got [1]float64
		decodeFloats(got[:], c.d, b)
		if got[0] != c.want {
			t.Errorf("%v: %v / %d is %v, want %v", c.d, c.x, c.n, got[0], c.want)
		}
	}
}

// TestUnaligned shows that operands may start anywhere.
func TestUnaligned(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for d := range DType(len(dtypes)) {
		c, err := NewCombine(d, Sum)
		if err != nil {
			t.Fatal(err)
		}
		n := 1000 * d.Size()
		a, b, want := Alloc(int64(n)), Alloc(int64(n)), Alloc(int64(n))
		for i := range a {
			a[i], b[i] = byte(rng.Uint32()), byte(rng.Uint32())
		}
		c.Into(want, a, b)
		x, y, got := Alloc(int64(n + 1))[1:], Alloc(int64(n + 3))[3:], Alloc(int64(n + 5))[5:]
		copy(x, a)
		copy(y, b)
		c.Into(got, x, y)
		if string(got) != string(want) {
			t.Errorf("%v: unaligned operands give another result", d)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	for _, d := range []DType{FP32, FP64, FP16, BF16, FP8E4M3, Int8, Int32} {
		b.Run(d.String(), func(b *testing.B) {
			c, err := NewCombine(d, Sum)
			if err != nil {
				b.Fatal(err)
			}
			x, y, z := Alloc(256<<10), Alloc(256<<10), Alloc(256<<10)
			b.SetBytes(256 << 10)
			for b.Loop() {
				c.Into(x, y, z)
			}
		})
	}
}
