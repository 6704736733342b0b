package cuda_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// The tests here know what the library makes on a device and what it must find there
// from the words in verify.h alone; numbers are made and added up in Go.

// numbers are the elements that a device makes, and what they reduce to. Floats are
// exact in float64 until avg divides; integers are kept modulo 2^64.
type numbers struct {
	d     runtime.DType
	op    runtime.ReduceOp
	ranks int
	seed  uint64
	parts int // the most contributions to a result
}

// room is how many contributions keep results exact: integers up to 2^p, or powers of
// two down to 2^e.
var room = map[runtime.DType]struct{ p, e int64 }{
	runtime.FP32: {24, 126}, runtime.FP64: {53, 1022}, runtime.FP16: {11, 14}, runtime.BF16: {8, 126},
	runtime.FP8E4M3: {4, 6}, runtime.FP8E5M2: {3, 14},
}

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func spread(n uint64) uint64 { return (n + 1) * 0x9e3779b97f4a7c15 }

// at is an element of a rank's input: a float, or an integer.
func (n *numbers) at(rank, i int) (float64, uint64) {
	h := mix(spread(uint64(i)) ^ mix(spread(uint64(rank))) ^ mix(n.seed))
	if !n.d.Float() {
		if n.op == runtime.Prod {
			h |= 1
		}
		return 0, h
	}
	have, upper := room[n.d], int64(h>>32)
	most, parts := int64(1)<<have.p, int64(n.parts)
	if n.op == runtime.Prod {
		most = have.e
	}
	if n.op == runtime.Min || n.op == runtime.Max {
		parts = 1
	}
	if parts > most && (int64(rank)+int64(i))%int64(n.ranks) >= most {
		return map[bool]float64{true: 1}[n.op == runtime.Prod], 0
	}
	if n.op == runtime.Prod {
		v := []float64{0.5, 1, 2}[upper*3>>32]
		if h&1 == 1 {
			v = -v
		}
		return v, 0
	}
	m := min(max(most/parts, 1), 1<<30)
	return float64(upper*(2*m+1)>>32 - m), 0
}

// result is the reduction of elements (rank, i).
func (n *numbers) result(from [][2]int) []byte {
	f, u := 0.0, uint64(0)
	for k, at := range from {
		x, y := n.at(at[0], at[1])
		y = n.wrap(y)
		switch {
		case k == 0:
			f, u = x, y
		case n.op == runtime.Prod:
			f, u = f*x, u*y
		case n.op == runtime.Min:
			f = min(f, x)
			if n.less(y, u) {
				u = y
			}
		case n.op == runtime.Max:
			f = max(f, x)
			if n.less(u, y) {
				u = y
			}
		default:
			f, u = f+x, u+y
		}
	}
	if u = n.wrap(u); n.op == runtime.Avg && len(from) > 1 {
		f /= float64(len(from))
		if n.signed() {
			u = uint64(int64(u) / int64(len(from)))
		} else {
			u /= uint64(len(from))
		}
	}
	return n.encode(f, u)
}

func (n *numbers) signed() bool {
	return n.d == runtime.Int8 || n.d == runtime.Int32 || n.d == runtime.Int64
}

func (n *numbers) less(x, y uint64) bool {
	if n.signed() {
		return int64(x) < int64(y)
	}
	return x < y
}

// wrap keeps the type's low bits, with their sign.
func (n *numbers) wrap(u uint64) uint64 {
	shift := 64 - 8*n.d.Size()
	if n.signed() {
		return uint64(int64(u<<shift) >> shift)
	}
	return u << shift >> shift
}

func (n *numbers) encode(f float64, u uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, u)
	switch n.d {
	case runtime.FP32:
		b = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(f)))
	case runtime.FP64:
		b = binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
	case runtime.FP16:
		b = binary.LittleEndian.AppendUint16(nil, nearest(f, 16, 10, 15))
	case runtime.BF16:
		b = binary.LittleEndian.AppendUint16(nil, nearest(f, 16, 7, 127))
	case runtime.FP8E4M3:
		b = []byte{byte(nearest(f, 8, 3, 7))}
	case runtime.FP8E5M2:
		b = []byte{byte(nearest(f, 8, 2, 15))}
	}
	return b[:n.d.Size()]
}

// nearest finds the small float nearest to f, the even one of two, among all there are.
func nearest(f float64, bits, mantissa, bias int) uint16 {
	value := func(code int) float64 {
		frac, exp := code&(1<<mantissa-1), code>>mantissa
		if exp == 0 {
			return math.Ldexp(float64(frac), 1-bias-mantissa)
		}
		return math.Ldexp(float64(1<<mantissa+frac), exp-bias-mantissa)
	}
	size := math.Abs(f)
	code := sort.Search(1<<(bits-1)-1, func(c int) bool { return value(c) >= size })
	if code > 0 {
		if up, down := value(code)-size, size-value(code-1); down < up || down == up && code%2 == 1 {
			code--
		}
	}
	if math.Signbit(f) {
		code |= 1 << (bits - 1)
	}
	return uint16(code)
}

func bind(t testing.TB, x *cuda.Program, o cuda.Options) *cuda.Bound {
	t.Helper()
	o.AnySize = true
	b, err := x.Bind(o)
	if err != nil {
		t.Fatalf("%d bytes of %v, %v: %v", o.Bytes, o.DType, o.Op, err)
	}
	return b
}

// all calls what starts or waits on a device.
func all(t testing.TB, calls ...error) {
	t.Helper()
	if err := errors.Join(calls...); err != nil {
		t.Fatal(err)
	}
}

func verdict(t testing.TB, b *cuda.Bound) *runtime.Verdict {
	t.Helper()
	v, err := b.Verdict()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// buffer is the whole of a rank's buffer.
func buffer(t testing.TB, b *cuda.Bound, r ir.Rank, buf ir.BufferID, chunks int32) []byte {
	t.Helper()
	out := make([]byte, int64(chunks)*b.Layout().ChunkBytes())
	all(t, b.Read(out, r, buf, 0))
	return out
}

// TestValues compares what the library makes and expects with what the tests make:
// inputs as they are read back, results written without running anything, and then one
// wrong byte among them.
func TestValues(t *testing.T) {
	lib := library(t)
	for _, ranks := range []int{3, 20} { // small floats have no room for 20 contributions
		p := script(t, "allreduce_one_step", map[string]string{"ranks": fmt.Sprint(ranks), "protocol": "LL", "inplace": "false"},
			compiler.Options{})
		x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0, 1}})
		for d := runtime.FP32; d <= runtime.Uint64; d++ {
			for op := runtime.Sum; op <= runtime.Avg; op++ {
				const elements = 61
				b := bind(t, x, cuda.Options{Bytes: int64(elements * d.Size()), DType: d, Op: op})
				n := &numbers{d, op, ranks, 99, ranks}
				checkValues(t, b, n, int(b.Layout().ChunkElems)*int(p.Coll.NumChunks()))
			}
		}
	}
}

// checkValues does so for an allreduce out of place of so many elements, padding
// included.
func checkValues(t *testing.T, b *cuda.Bound, n *numbers, elements int) {
	t.Helper()
	size, name := n.d.Size(), fmt.Sprint(n.ranks, " ranks, ", n.d, " ", n.op)
	chunks := int32(elements) / int32(b.Layout().ChunkElems)
	all(t, b.Generate(n.seed))
	var right []byte
	for i := range elements {
		var from [][2]int
		for r := range n.ranks {
			from = append(from, [2]int{r, i})
		}
		right = append(right, n.result(from)...)
	}
	for r := range ir.Rank(n.ranks) {
		got := buffer(t, b, r, ir.Input, chunks)
		for i := range elements {
			if want := n.result([][2]int{{int(r), i}}); !slices.Equal(got[i*size:][:size], want) {
				t.Fatalf("%s: rank %d input element %d is % x, want % x", name, r, i, got[i*size:][:size], want)
			}
		}
		for i, v := range buffer(t, b, r, ir.Output, chunks) {
			if v != 0xcb {
				t.Fatalf("%s: rank %d output byte %d is %#x before the program ran", name, r, i, v)
			}
		}
		all(t, b.Write(right, r, ir.Output, 0))
	}
	all(t, b.Verify(n.seed))
	// Every rank's output, and its input, which has to stay as it was.
	if v := verdict(t, b); v.Wrong != 0 || v.Elements != int64(2*n.ranks*elements) {
		t.Fatalf("%s: %d of %d are wrong: %v", name, v.Wrong, v.Elements, v.Mismatches)
	}
	const at = 5
	bad := append([]byte(nil), right[at*size:][:size]...)
	bad[size-1] ^= 0x10
	want := runtime.Mismatch{Rank: 1, Buffer: ir.Output, Index: at, Chunk: int32(at / b.Layout().ChunkElems),
		Expected: runtime.Format(n.d, aligned(right[at*size:][:size])), Found: runtime.Format(n.d, aligned(bad))}
	all(t, b.Write(bad, 1, ir.Output, int64(at*size)), b.Write(bad, ir.Rank(n.ranks)-1, ir.Output, int64(at*size)), b.Verify(n.seed))
	if v := verdict(t, b); v.Wrong != 2 || len(v.Mismatches) != 1 || v.Mismatches[0] != want {
		t.Fatalf("%s: got %d wrong, %v, want 2, the first %v", name, v.Wrong, v.Mismatches, want)
	}
}

// aligned is a copy of some bytes that can be looked at as elements.
func aligned(b []byte) []byte { return append(runtime.Alloc(8)[:0], b...) }

// TestFound plants wrong bytes where each collective must not have them.
func TestFound(t *testing.T) {
	lib := library(t)
	for _, c := range []struct {
		name, inplace string
		rank          ir.Rank
		buf           ir.BufferID
		chunk         int32
		found         bool
	}{
		{"allgather_ring", "true", 2, ir.Output, 1, true},
		{"allgather_ring", "false", 1, ir.Input, 0, true}, // out of place inputs stay
		{"reduce_scatter_direct", "true", 1, ir.Output, 0, true},
		{"reduce_scatter_direct", "true", 1, ir.Input, 2, false}, // in place the rest of the input is anyone's
		{"reduce_scatter_direct", "false", 1, ir.Input, 2, true},
		{"broadcast_tree", "true", 2, ir.Output, 0, true},
		{"reduce_tree", "false", 0, ir.Output, 0, true},
		{"reduce_tree", "true", 2, ir.Input, 0, false},
		{"gather_tree", "true", 0, ir.Output, 2, true},
		{"scatter_tree", "true", 2, ir.Output, 0, true},
		{"alltoall_direct", "false", 2, ir.Output, 1, true},
	} {
		p := script(t, c.name, map[string]string{"ranks": "3", "inplace": c.inplace, "protocol": "LL"}, compiler.Options{})
		x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0, 1}})
		b := bind(t, x, cuda.Options{Bytes: 9 * 17 * 4})
		all(t, b.Generate(1), b.Enqueue(1), b.Verify(1))
		if v := verdict(t, b); v.Wrong != 0 || v.Elements == 0 {
			t.Errorf("%s: %d of %d are wrong: %v", c.name, v.Wrong, v.Elements, v.Mismatches)
		}
		at, one := int64(c.chunk)*b.Layout().ChunkBytes()+4*3+1, make([]byte, 1)
		all(t, b.Read(one, c.rank, c.buf, at))
		one[0]++
		all(t, b.Write(one, c.rank, c.buf, at), b.Verify(1))
		v := verdict(t, b)
		if c.found != (v.Wrong == 1) || !c.found && v.Wrong != 0 {
			t.Errorf("%+v: %d are wrong", c, v.Wrong)
		}
		first, _ := b.Layout().Real(c.chunk)
		if c.found && (v.Mismatches[0].Rank != c.rank || v.Mismatches[0].Buffer != c.buf || v.Mismatches[0].Index != first+3) {
			t.Errorf("%+v: got %v", c, v.Mismatches[0])
		}
		// A launch on what another seed made.
		all(t, b.Generate(2), b.Enqueue(1), b.Verify(1))
		if v := verdict(t, b); v.Wrong < v.Elements/2 {
			t.Errorf("%s: only %d of %d elements depend on the seed", c.name, v.Wrong, v.Elements)
		}
	}
}

// TestVerifyOnDevice runs as bench does.
func TestVerifyOnDevice(t *testing.T) {
	lib := library(t)
	for _, inplace := range []string{"true", "false"} {
		p := script(t, "allreduce_allpairs", map[string]string{"ranks": "2", "inplace": inplace}, compiler.Options{})
		x := open(t, lib, p, cuda.CommOptions{})
		r := right(t, x, cuda.Options{Bytes: 4096, Exact: true, Verify: cuda.VerifyOnDevice, Launches: 2, Repetitions: 2})
		if want := map[string]int64{"true": 2 * 1024, "false": 4 * 1024}[inplace]; r.Elements != want {
			t.Errorf("in place %s: %d elements were compared, want %d", inplace, r.Elements, want)
		}
		for _, o := range []cuda.Options{{Bytes: 64}, {Bytes: 64, Exact: true, KeepOutputs: true},
			{Bytes: 64, Exact: true, NoVerify: true}} {
			o.Verify = cuda.VerifyOnDevice
			_, err := x.Run(t.Context(), o)
			var m *diag.Message
			if !errors.As(err, &m) || m.Code != "verify" {
				t.Errorf("%+v: got %v, want code verify", o, err)
			}
		}
	}
}

// TestNoRoom asks for twenty contributions of one chunk: FP8 has no exact sum of them.
func TestNoRoom(t *testing.T) {
	lib := library(t)
	c := ir.NewCollective(ir.Custom, 2, 1, false)
	want := make([]ir.Contribution, 20)
	for i := range want {
		want[i] = ir.Contribution{Rank: 1}
	}
	c.Custom = &ir.CustomSpec{Input: []int32{1, 1}, Output: []int32{1, 0}, Expect: [][][]ir.Contribution{{want}, {}}}
	p := empty(ir.LL)
	p.Coll = c
	for r := range ir.Rank(2) {
		block(p, r, ir.Step{Kind: ir.Nop, Src: ir.NoPlace, Dst: ir.NoPlace, SendPeer: ir.None, RecvPeer: ir.None})
	}
	x := open(t, lib, p, cuda.CommOptions{})
	for d, ok := range map[runtime.DType]bool{runtime.FP8E5M2: false, runtime.FP8E4M3: false, runtime.BF16: true, runtime.Int8: true} {
		b, err := x.Bind(cuda.Options{Bytes: 64, DType: d})
		var m *diag.Message
		if ok != (err == nil) || !ok && (!errors.As(err, &m) || m.Code != "verify") {
			t.Errorf("%v: got %v", d, err)
		}
		if !ok {
			continue
		}
		// Twenty times the element, which is what nobody has written yet.
		n := &numbers{d, runtime.Sum, 2, 3, 20}
		from := make([][2]int, 20)
		for i := range from {
			from[i] = [2]int{1, 0}
		}
		all(t, b.Generate(3), b.Write(n.result(from), 0, ir.Output, 0), b.Verify(3))
		size := int64(d.Size())
		if v := verdict(t, b); v.Elements != 3*64/size || v.Wrong < 1 || v.Mismatches[0].Index != 1 {
			t.Errorf("%v: %d of %d are wrong, %v", d, v.Wrong, v.Elements, v.Mismatches)
		}
	}
}
