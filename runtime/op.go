package runtime

import (
	"fmt"
	"strings"
)

// ReduceOp is a reduction.
type ReduceOp uint8

// NCCL's reductions. Avg is a sum, then one division of the finished sum by the
// number of its contributions; integers truncate towards zero.
const (
	Sum ReduceOp = iota
	Prod
	Min
	Max
	Avg
)

var opNames = [...]string{"sum", "prod", "min", "max", "avg"}

// ReduceOpNames lists the reductions' names, for help texts.
func ReduceOpNames() []string { return append([]string(nil), opNames[:]...) }

// ParseReduceOp reads a reduction's name, in any case.
func ParseReduceOp(s string) (ReduceOp, error) {
	low := strings.ToLower(s)
	for i, n := range opNames {
		if low == n {
			return ReduceOp(i), nil
		}
	}
	return 0, fmt.Errorf("reduction: got %q, want one of %s", s, strings.Join(opNames[:], ", "))
}

// String is the reduction's name.
func (o ReduceOp) String() string {
	if o.valid() {
		return opNames[o]
	}
	return fmt.Sprintf("ReduceOp(%d)", o)
}

func (o ReduceOp) valid() bool { return int(o) < len(opNames) }

// Combine is a reduction of two operands of one data type, element by element.
// It is immutable and safe for concurrent use.
type Combine struct {
	dtype DType
	apply func(dst, a, b []byte)
}

// NewCombine prepares the reduction op on type d. Avg combines as Sum does; its
// division is Divide.
//
// Integers wrap around. The 16-bit types are computed in float32 and rounded to
// nearest even when stored; the FP8 types are rounded once from the exact result
// and saturate (see the conversions). Min and Max return the other operand where
// one is a NaN, as CUDA's fminf does in NCCL; of two zeros the first operand wins.
func NewCombine(d DType, op ReduceOp) (*Combine, error) {
	if !d.valid() || !op.valid() {
		return nil, fmt.Errorf("reduction: %v of %v is not known", op, d)
	}
	return &Combine{d, kernel(d, op)}, nil
}

// Into sets dst to op(a, b) for as many whole elements as the shortest of the
// three holds. dst may be a or b, but may not overlap them otherwise.
func (c *Combine) Into(dst, a, b []byte) {
	size := c.dtype.Size()
	n := min(len(dst), len(a), len(b)) / size * size
	dst, a, b = dst[:n], a[:n], b[:n]
	if aligned(dst, size) && aligned(a, size) && aligned(b, size) {
		c.apply(dst, a, b)
		return
	}
	var buf [2][64]uint64
	x, y := asBytes(buf[0][:]), asBytes(buf[1][:])
	for len(dst) > 0 {
		n := copy(x, a)
		copy(y, b[:n])
		c.apply(x[:n], x[:n], y[:n])
		copy(dst, x[:n])
		dst, a, b = dst[n:], a[n:], b[n:]
	}
}

// kernel picks the loop for a type and a reduction.
func kernel(d DType, op ReduceOp) func(dst, a, b []byte) {
	switch d {
	case FP32:
		if op == Sum || op == Avg {
			return func(dst, a, b []byte) { sumFloats(view[float32](dst), view[float32](a), view[float32](b)) }
		}
		return floatKernel[float32](op)
	case FP64:
		return floatKernel[float64](op)
	case FP16:
		return halfKernel(op, widenFP16, roundFP16)
	case BF16:
		return halfKernel(op, widenBF16, roundBF16)
	case FP8E4M3, FP8E5M2:
		return fp8Kernel(d, op)
	case Int8:
		return intKernel[int8](op)
	case Uint8:
		return intKernel[uint8](op)
	case Int32:
		return intKernel[int32](op)
	case Uint32:
		return intKernel[uint32](op)
	case Int64:
		return intKernel[int64](op)
	}
	return intKernel[uint64](op)
}

// Divide divides every element of buf by n, the last step of Avg: once per
// element, rounded to nearest even from the float64 quotient; integers truncate
// towards zero. buf must be aligned for d.
func Divide(d DType, buf []byte, n int64) {
	switch d {
	case Int8:
		divideInts(view[int8](buf), n)
	case Uint8:
		divideInts(buf, n)
	case Int32:
		divideInts(view[int32](buf), n)
	case Uint32:
		divideInts(view[uint32](buf), n)
	case Int64:
		divideInts(view[int64](buf), n)
	case Uint64:
		v := view[uint64](buf)
		for i := range v {
			v[i] /= uint64(n)
		}
	default:
		divideFloats(d, buf, float64(n))
	}
}

func divideInts[T int8 | uint8 | int32 | uint32 | int64](v []T, n int64) {
	for i := range v {
		v[i] = T(int64(v[i]) / n)
	}
}

func divideFloats(d DType, buf []byte, n float64) {
	var tmp [256]float64
	size := d.Size()
	for len(buf) >= size {
		k := min(len(tmp), len(buf)/size)
		decodeFloats(tmp[:k], d, buf)
		for i := range tmp[:k] {
			tmp[i] /= n
		}
		encodeFloats(buf, d, tmp[:k])
		buf = buf[k*size:]
	}
}
