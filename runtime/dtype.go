package runtime

import (
	"fmt"
	"math"
	"strings"
	"unsafe"
)

// DType is the type of an element, little endian in memory.
type DType uint8

// The data types of NCCL. FP8E4M3 is the "fn" format of CUDA (no infinities,
// largest 448); FP8E5M2 has infinities (largest finite 57344).
const (
	FP32 DType = iota
	FP64
	FP16
	BF16
	FP8E4M3
	FP8E5M2
	Int8
	Uint8
	Int32
	Uint32
	Int64
	Uint64
)

// dtypeInfo describes a type once for everything that asks about it.
type dtypeInfo struct {
	name    string
	aliases []string // other spellings, NCCL's and frameworks'
	npy     string   // descr of a .npy file; "" where numpy has no such type
	size    int
	// Of floating-point types:
	mantissa int     // stored bits
	minExp   int     // exponent of the least normal number
	max      float64 // largest finite
}

var dtypes = [...]dtypeInfo{
	FP32:    {"fp32", []string{"float", "float32", "f32"}, "<f4", 4, 23, -126, math.MaxFloat32},
	FP64:    {"fp64", []string{"double", "float64", "f64"}, "<f8", 8, 52, -1022, math.MaxFloat64},
	FP16:    {"fp16", []string{"half", "float16", "f16"}, "<f2", 2, 10, -14, 65504},
	BF16:    {"bf16", []string{"bfloat16"}, "", 2, 7, -126, 0x1.FEp127},
	FP8E4M3: {"fp8e4m3", []string{"fp8_e4m3", "f8e4m3", "float8e4m3", "float8_e4m3"}, "", 1, 3, -6, 448},
	FP8E5M2: {"fp8e5m2", []string{"fp8_e5m2", "f8e5m2", "float8e5m2", "float8_e5m2"}, "", 1, 2, -14, 57344},
	Int8:    {name: "int8", aliases: []string{"char", "i8"}, npy: "|i1", size: 1},
	Uint8:   {name: "uint8", aliases: []string{"u8"}, npy: "|u1", size: 1},
	Int32:   {name: "int32", aliases: []string{"int", "i32"}, npy: "<i4", size: 4},
	Uint32:  {name: "uint32", aliases: []string{"u32"}, npy: "<u4", size: 4},
	Int64:   {name: "int64", aliases: []string{"i64"}, npy: "<i8", size: 8},
	Uint64:  {name: "uint64", aliases: []string{"u64"}, npy: "<u8", size: 8},
}

// DTypeNames lists the types' names, for help texts.
func DTypeNames() []string {
	names := make([]string, len(dtypes))
	for i := range dtypes {
		names[i] = dtypes[i].name
	}
	return names
}

// ParseDType reads a type's name or one of its usual spellings (float, half,
// bfloat16, ...), in any case.
func ParseDType(s string) (DType, error) {
	low := strings.ToLower(s)
	for i := range dtypes {
		if low == dtypes[i].name {
			return DType(i), nil
		}
		for _, a := range dtypes[i].aliases {
			if low == a {
				return DType(i), nil
			}
		}
	}
	return 0, fmt.Errorf("data type: got %q, want one of %s", s, strings.Join(DTypeNames(), ", "))
}

// String is the type's name.
func (d DType) String() string {
	if d.valid() {
		return dtypes[d].name
	}
	return fmt.Sprintf("DType(%d)", d)
}

func (d DType) valid() bool { return int(d) < len(dtypes) }

// Size is the size of one element in bytes.
func (d DType) Size() int { return dtypes[d].size }

// Float reports whether d is a floating-point type.
func (d DType) Float() bool { return d <= FP8E5M2 }

// signed reports whether d is a signed integer type.
func (d DType) signed() bool { return d == Int8 || d == Int32 || d == Int64 }

// roundoff is the unit roundoff u of a floating-point type: rounding to nearest
// changes a normal number by at most the factor 1 +- u.
func (d DType) roundoff() float64 { return math.Ldexp(1, -dtypes[d].mantissa-1) }

// leastHalf is half of the least subnormal number: what rounding can lose at
// most where a result underflows.
func (d DType) leastHalf() float64 {
	return math.Ldexp(1, dtypes[d].minExp-dtypes[d].mantissa) / 2
}

// Max is the largest finite value of a floating-point type.
func (d DType) Max() float64 { return dtypes[d].max }

// exactInt is the largest n such that all integers up to n are representable.
func (d DType) exactInt() int64 { return 1 << (dtypes[d].mantissa + 1) }

// Alloc returns n zero bytes aligned for every type.
func Alloc(n int64) []byte {
	words := make([]uint64, (n+7)/8)
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// aligned reports whether b can be viewed as elements of size bytes each.
func aligned(b []byte, size int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(size) == 0
}

// view is b as elements; b must be aligned and hold whole elements.
func view[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}
