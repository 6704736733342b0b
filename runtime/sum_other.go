//go:build !amd64

package runtime

// sumFloats is sumInto for float32.
func sumFloats(dst, a, b []float32) { sumInto(dst, a, b) }
