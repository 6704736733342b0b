package runtime

import "math"

// Conversions between the small floating-point types and float32 or float64.
// Encoders round to nearest, ties to even. FP16 and BF16 overflow to infinity;
// the FP8 types saturate to their largest finite value, infinities included, as
// CUDA's __NV_SATFINITE (which NCCL's conversions use) does. A NaN stays a NaN,
// quiet, with its sign and without its payload.

// fp16ToFloat is the value of a half.
func fp16ToFloat(h uint16) float32 {
	m := uint32(h&0x7fff) << 13
	// Shifted into place the exponent is too small by 127-15; a multiplication
	// corrects it and normalizes subnormals in one go.
	b := math.Float32bits(math.Float32frombits(m) * 0x1p112)
	if m >= 0x7c00<<13 {
		b = m | 0x7f800000
	}
	return math.Float32frombits(b | uint32(h&0x8000)<<16)
}

// floatToFP16 rounds f to a half.
func floatToFP16(f float32) uint16 {
	b := math.Float32bits(f)
	s := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return s | 0x7e00
	case b >= 0x47800000: // 65536 and up
		return s | 0x7c00
	case b < 0x38800000: // below the least normal half, 2^-14
		// The ulp of numbers in [0.5, 1) is 2^-24, the least half, so that the
		// addition does the rounding.
		return s | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1 - 112<<23
	return s | uint16(b>>13)
}

// bf16ToFloat is the value of a bfloat16.
func bf16ToFloat(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// floatToBF16 rounds f to a bfloat16.
func floatToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16&0x8000 | 0x7fc0)
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// decodeFP8 is the value of an FP8 number of type d.
func decodeFP8(d DType, v uint8) float64 {
	man := dtypes[d].mantissa
	frac := int(v) & (1<<man - 1)
	exp := int(v&0x7f) >> man
	x := 0.0
	switch {
	case d == FP8E4M3 && v&0x7f == 0x7f:
		return math.NaN()
	case d == FP8E5M2 && exp == 31:
		if frac != 0 {
			return math.NaN()
		}
		x = math.Inf(1)
	case exp == 0:
		x = math.Ldexp(float64(frac), dtypes[d].minExp-man)
	default:
		x = math.Ldexp(float64(frac|1<<man), dtypes[d].minExp-man+exp-1)
	}
	if v&0x80 != 0 {
		return math.Copysign(x, -1)
	}
	return x
}

// encodeFP8 rounds x to an FP8 number of type d.
func encodeFP8(d DType, x float64) uint8 {
	s := uint8(0)
	if math.Signbit(x) {
		s = 0x80
	}
	if x != x {
		return s | 0x7f
	}
	return s | uint8(smallBits(d, min(math.Abs(x), dtypes[d].max)))
}

// smallBits rounds a finite x >= 0 to the exponent and mantissa bits of type d.
// What rounds beyond the largest finite number gives the bits of infinity (of an
// IEEE type) or more.
func smallBits(d DType, x float64) uint64 {
	const bias, mantissa = 1023, 52 // of float64
	man, minExp := dtypes[d].mantissa, dtypes[d].minExp
	b := math.Float64bits(x)
	if int(b>>mantissa)-bias < minExp {
		// The ulp of this power of two is d's least number, so that the addition
		// does the rounding.
		magic := uint64(bias+minExp-man+mantissa) << mantissa
		return math.Float64bits(x+math.Float64frombits(magic)) - magic
	}
	shift := mantissa - man
	b += 1<<(shift-1) - 1 + b>>shift&1 // a carry out of the mantissa raises the exponent
	return b>>shift - uint64(bias+minExp-1)<<man
}

// encode16 rounds x once to a 16-bit type: going through float32 would round
// twice.
func encode16(d DType, x float64) uint16 {
	s := uint16(0)
	if math.Signbit(x) {
		s = 0x8000
	}
	inf := uint16(0x7c00)
	if d == BF16 {
		inf = 0x7f80
	}
	x = math.Abs(x)
	switch {
	case x != x && d == BF16:
		return s | 0x7fc0
	case x != x:
		return s | 0x7e00
	case x > 2*dtypes[d].max:
		return s | inf
	}
	return s | min(uint16(smallBits(d, x)), inf)
}

// decodeFloats fills dst with the values of len(dst)
// elements of the floating-point type d at src.
func decodeFloats(dst []float64, d DType, src []byte) {
	switch d {
	case FP32:
		for i, v := range view[float32](src)[:len(dst)] {
			dst[i] = float64(v)
		}
	case FP64:
		copy(dst, view[float64](src))
	case FP16:
		for i, v := range view[uint16](src)[:len(dst)] {
			dst[i] = float64(fp16ToFloat(v))
		}
	case BF16:
		for i, v := range view[uint16](src)[:len(dst)] {
			dst[i] = float64(bf16ToFloat(v))
		}
	default:
		for i, v := range src[:len(dst)] {
			dst[i] = decodeFP8(d, v)
		}
	}
}

// encodeFloats rounds src to elements of the floating-point type d.
func encodeFloats(dst []byte, d DType, src []float64) {
	switch d {
	case FP32:
		out := view[float32](dst)
		for i, v := range src {
			out[i] = float32(v)
		}
	case FP64:
		copy(view[float64](dst), src)
	case FP16, BF16:
		out := view[uint16](dst)
		for i, v := range src {
			out[i] = encode16(d, v)
		}
	default:
		for i, v := range src {
			dst[i] = encodeFP8(d, v)
		}
	}
}

// decodeInts fills dst with len(dst) elements of the integer type d at src, widened
// to 64 bits: with the sign where d is signed, with zeros where it isn't.
func decodeInts(dst []uint64, d DType, src []byte) {
	switch d {
	case Int8:
		widen(dst, view[int8](src))
	case Uint8:
		widen(dst, src)
	case Int32:
		widen(dst, view[int32](src))
	case Uint32:
		widen(dst, view[uint32](src))
	default:
		copy(dst, view[uint64](src))
	}
}

func widen[T integer](dst []uint64, src []T) {
	for i, v := range src[:len(dst)] {
		dst[i] = uint64(int64(v))
	}
}

// encodeInts keeps the low bits of src as elements of the integer type d.
func encodeInts(dst []byte, d DType, src []uint64) {
	switch d.Size() {
	case 1:
		for i, v := range src {
			dst[i] = uint8(v)
		}
	case 4:
		out := view[uint32](dst)
		for i, v := range src {
			out[i] = uint32(v)
		}
	default:
		copy(view[uint64](dst), src)
	}
}
