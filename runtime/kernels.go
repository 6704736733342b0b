package runtime

import "unsafe"

type integer interface {
	~int8 | ~uint8 | ~int32 | ~uint32 | ~int64 | ~uint64
}

type number interface {
	integer | ~float32 | ~float64
}

func asBytes(w []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*len(w))
}

// The loops below work on eight elements a turn through array pointers: one
// length check for eight elements, no call, no index check.

func sumInto[T number](dst, a, b []T) {
	for len(a) >= 8 && len(b) >= 8 && len(dst) >= 8 {
		d, x, y := (*[8]T)(dst), (*[8]T)(a), (*[8]T)(b)
		v0, v1, v2, v3 := x[0]+y[0], x[1]+y[1], x[2]+y[2], x[3]+y[3]
		v4, v5, v6, v7 := x[4]+y[4], x[5]+y[5], x[6]+y[6], x[7]+y[7]
		d[0], d[1], d[2], d[3] = v0, v1, v2, v3
		d[4], d[5], d[6], d[7] = v4, v5, v6, v7
		dst, a, b = dst[8:], a[8:], b[8:]
	}
	for i := range a {
		dst[i] = a[i] + b[i]
	}
}

func prodInto[T number](dst, a, b []T) {
	for len(a) >= 8 && len(b) >= 8 && len(dst) >= 8 {
		d, x, y := (*[8]T)(dst), (*[8]T)(a), (*[8]T)(b)
		v0, v1, v2, v3 := x[0]*y[0], x[1]*y[1], x[2]*y[2], x[3]*y[3]
		v4, v5, v6, v7 := x[4]*y[4], x[5]*y[5], x[6]*y[6], x[7]*y[7]
		d[0], d[1], d[2], d[3] = v0, v1, v2, v3
		d[4], d[5], d[6], d[7] = v4, v5, v6, v7
		dst, a, b = dst[8:], a[8:], b[8:]
	}
	for i := range a {
		dst[i] = a[i] * b[i]
	}
}

// minInto and maxInto keep a's element unless b's is better or a's is a NaN.
func minInto[T number](dst, a, b []T) {
	for i, x := range a {
		if y := b[i]; y < x || x != x {
			x = y
		}
		dst[i] = x
	}
}

func maxInto[T number](dst, a, b []T) {
	for i, x := range a {
		if y := b[i]; y > x || x != x {
			x = y
		}
		dst[i] = x
	}
}

func pick[T number](op ReduceOp) func(dst, a, b []T) {
	switch op {
	case Prod:
		return prodInto[T]
	case Min:
		return minInto[T]
	case Max:
		return maxInto[T]
	}
	return sumInto[T]
}

func floatKernel[T ~float32 | ~float64](op ReduceOp) func(dst, a, b []byte) {
	f := pick[T](op)
	return func(dst, a, b []byte) { f(view[T](dst), view[T](a), view[T](b)) }
}

func intKernel[T integer](op ReduceOp) func(dst, a, b []byte) {
	f := pick[T](op)
	return func(dst, a, b []byte) { f(view[T](dst), view[T](a), view[T](b)) }
}

// halfKernel widens a short run, combines it in float32 and rounds it back.
func halfKernel(op ReduceOp, dec func([]float32, []uint16), enc func([]uint16, []float32)) func(dst, a, b []byte) {
	f := pick[float32](op)
	return func(dst, a, b []byte) {
		var x, y [256]float32
		d, p, q := view[uint16](dst), view[uint16](a), view[uint16](b)
		for len(d) > 0 {
			n := min(len(d), len(x))
			dec(x[:n], p)
			dec(y[:n], q)
			f(x[:n], x[:n], y[:n])
			enc(d[:n], x[:])
			d, p, q = d[n:], p[n:], q[n:]
		}
	}
}

func widenFP16(dst []float32, src []uint16) {
	for i, v := range src[:len(dst)] {
		dst[i] = fp16ToFloat(v)
	}
}

func roundFP16(dst []uint16, src []float32) {
	for i, v := range src[:len(dst)] {
		dst[i] = floatToFP16(v)
	}
}

func widenBF16(dst []float32, src []uint16) {
	for i, v := range src[:len(dst)] {
		dst[i] = bf16ToFloat(v)
	}
}

func roundBF16(dst []uint16, src []float32) {
	for i, v := range src[:len(dst)] {
		dst[i] = floatToBF16(v)
	}
}

// fp8Kernel looks the result of every pair of operands up in one table of 64 KiB.
func fp8Kernel(d DType, op ReduceOp) func(dst, a, b []byte) {
	f := pick[float64](op)
	var value [256]float64
	for i := range value {
		value[i] = decodeFP8(d, uint8(i))
	}
	table := new([1 << 16]uint8)
	var row, res [256]float64
	for i := range value {
		for j := range row {
			row[j] = value[i]
		}
		f(res[:], row[:], value[:])
		for j, v := range res {
			table[i<<8|j] = encodeFP8(d, v)
		}
	}
	return func(dst, a, b []byte) {
		for i, x := range a {
			dst[i] = table[uint(x)<<8|uint(b[i])]
		}
	}
}
