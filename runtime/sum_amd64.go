package runtime

import "unsafe"

// sumFP32 adds n float32 pairs, n a multiple of 16, with the vector instructions
// that every amd64 processor has. The pointers need no alignment beyond that of
// their type; the regions may be equal but not overlap otherwise. The compiler's
// scalar loop reaches a third of its speed.
//
//go:noescape
func sumFP32(dst, a, b *float32, n int)

// sumFloats is sumInto for float32.
func sumFloats(dst, a, b []float32) {
	n := len(a) &^ 15
	if n > 0 {
		sumFP32(unsafe.SliceData(dst[:n]), unsafe.SliceData(a[:n]), unsafe.SliceData(b[:n]), n)
	}
	sumInto(dst[n:], a[n:], b[n:])
}
