package runtime

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"pgregory.net/rapid"
)

func mustLayout(t testing.TB, c *ir.Collective, d DType, n int64) *Layout {
	t.Helper()
	l, err := NewLayout(c, d, n)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustGenerate(t testing.TB, l *Layout, op ReduceOp, seed uint64, exact bool) *Inputs {
	t.Helper()
	in, err := Generate(l, op, seed, exact)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func ints8(v ...int8) []byte {
	b := make([]byte, len(v))
	for i, x := range v {
		b[i] = byte(x)
	}
	return b
}

// TestReferenceByHand gives every collective inputs whose result is read off the
// collective's definition.
func TestReferenceByHand(t *testing.T) {
	three := [][]byte{ints8(1, 2, 3, 4, 5, 6), ints8(10, 20, 30, 40, 50, 60), ints8(-1, -1, -1, -1, -1, -1)}
	short := [][]byte{ints8(1, 2), ints8(3, 4), ints8(5, 6)}
	only := func(r int, b []byte) [][]byte { in := make([][]byte, 3); in[r] = b; return in }
	for _, c := range []struct {
		coll  *ir.Collective
		op    ReduceOp
		bytes int64
		in    [][]byte
		want  [][]byte
	}{
		{ir.NewCollective(ir.AllReduce, 3, 2, false), Sum, 6, three,
			[][]byte{ints8(10, 21, 32, 43, 54, 65), ints8(10, 21, 32, 43, 54, 65), ints8(10, 21, 32, 43, 54, 65)}},
		{ir.NewCollective(ir.AllReduce, 3, 4, true), Avg, 6, three, // 4 chunks of 6 elements: padding
			[][]byte{ints8(3, 7, 10, 14, 18, 21), ints8(3, 7, 10, 14, 18, 21), ints8(3, 7, 10, 14, 18, 21)}},
		{ir.NewCollective(ir.AllReduce, 3, 1, false), Max, 6, three,
			[][]byte{three[1], three[1], three[1]}},
		{ir.NewCollective(ir.ReduceScatter, 3, 1, false), Sum, 6, three,
			[][]byte{ints8(10, 21), ints8(32, 43), ints8(54, 65)}},
		{ir.NewCollective(ir.AllGather, 3, 1, false), Sum, 6, short,
			[][]byte{ints8(1, 2, 3, 4, 5, 6), ints8(1, 2, 3, 4, 5, 6), ints8(1, 2, 3, 4, 5, 6)}},
		{ir.NewCollective(ir.AllToAll, 3, 1, false), Sum, 6, three,
			[][]byte{ints8(1, 2, 10, 20, -1, -1), ints8(3, 4, 30, 40, -1, -1), ints8(5, 6, 50, 60, -1, -1)}},
		{ir.NewCollective(ir.AllToNext, 3, 1, false), Sum, 2, short, [][]byte{nil, ints8(1, 2), ints8(3, 4)}},
		{rooted(ir.Broadcast, 3, 1, 1, ir.None), Sum, 2, only(1, ints8(7, 8)), [][]byte{ints8(7, 8), ints8(7, 8), ints8(7, 8)}},
		{rooted(ir.ReduceTo, 3, 1, 2, ir.None), Min, 6, three, only(2, three[2])},
		{rooted(ir.Gather, 3, 1, 1, ir.None), Sum, 6, short, only(1, ints8(1, 2, 3, 4, 5, 6))},
		{rooted(ir.Scatter, 3, 1, 1, ir.None), Sum, 6, only(1, ints8(1, 2, 3, 4, 5, 6)), short2()},
		{rooted(ir.SendRecv, 3, 1, 2, 0), Sum, 2, only(2, ints8(9, 9)), only(0, ints8(9, 9))},
		// Rank 0 sends 1 to itself and 2 3 to rank 1; rank 1 sends 4 to itself and
		// 5 6 7 to rank 2; rank 2 sends 8 9 to rank 0 and 10 to itself.
		{uneven(), Sum, 4, [][]byte{ints8(1, 2, 3), ints8(4, 5, 6, 7), ints8(8, 9, 10)},
			[][]byte{ints8(1, 8, 9), ints8(2, 3, 4), ints8(5, 6, 7, 10)}},
		{swap(), Sum, 6, [][]byte{ints8(1, 2, 3, 4, 5, 6), ints8(7, 8, 9, 10)},
			[][]byte{ints8(8, 10, 9, 10), ints8(8, 10, 3, 4)}},
		{swap(), Avg, 6, [][]byte{ints8(1, 2, 3, 4, 5, 6), ints8(7, 8, 9, 10)},
			[][]byte{ints8(4, 5, 9, 10), ints8(4, 5, 3, 4)}},
	} {
		l := mustLayout(t, c.coll, Int8, c.bytes)
		in, err := NewInputs(l, c.in)
		if err != nil {
			t.Errorf("%v: %v", c.coll, err)
			continue
		}
		for r, want := range c.want {
			if got := NewReference(in, c.op).Output(ir.Rank(r)); !bytes.Equal(got, want) {
				t.Errorf("%v %v rank %d: got %v, want %v", c.coll, c.op, r, got, want)
			}
		}
	}
}

func short2() [][]byte { return [][]byte{ints8(1, 2), ints8(3, 4), ints8(5, 6)} }

// TestFillIsAFunctionOfTheIndex: whatever part is asked for, it is the same data.
func TestFillIsAFunctionOfTheIndex(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := DType(rapid.IntRange(0, len(dtypes)-1).Draw(rt, "dtype"))
		op := ReduceOp(rapid.IntRange(0, len(opNames)-1).Draw(rt, "op"))
		l := mustLayout(t, ir.NewCollective(ir.AllReduce, 20, 1, true), d, int64(1000*d.Size()))
		in := mustGenerate(t, l, op, rapid.Uint64().Draw(rt, "seed"), rapid.Bool().Draw(rt, "exact"))
		all := Alloc(int64(1000 * d.Size()))
		in.Fill(all, 3, 0)
		from := rapid.IntRange(0, 999).Draw(rt, "from")
		n := rapid.IntRange(0, 1000-from).Draw(rt, "n")
		part := Alloc(int64(n * d.Size()))
		in.Fill(part, 3, int64(from))
		if !bytes.Equal(part, all[from*d.Size():][:n*d.Size()]) {
			rt.Fatalf("%v %v: elements %d+%d differ", d, op, from, n)
		}
		other := Alloc(int64(1000 * d.Size()))
		in.Fill(other, 4, 0)
		if bytes.Equal(other, all) {
			rt.Fatalf("%v %v: ranks 3 and 4 have the same data", d, op)
		}
	})
}

// reduceInSomeOrder combines all ranks' inputs by a random binary tree, as
// arbitrary programs do.
func reduceInSomeOrder(t testing.TB, rng *rand.Rand, in *Inputs, op ReduceOp, elems int) []byte {
	t.Helper()
	d := in.Layout.DType
	c, err := NewCombine(d, op)
	if err != nil {
		t.Fatal(err)
	}
	parts := make([][]byte, in.Layout.coll.Ranks)
	for r := range parts {
		parts[r] = Alloc(int64(elems * d.Size()))
		in.Fill(parts[r], ir.Rank(r), 0)
	}
	for len(parts) > 1 {
		i, last := rng.IntN(len(parts)-1), len(parts)-1
		c.Into(parts[i], parts[last], parts[i])
		parts = parts[:last]
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	}
	if op == Avg {
		Divide(d, parts[0], int64(in.Layout.coll.Ranks))
	}
	return parts[0]
}

// TestAnyOrderMeetsTheReference is the contract between generated data, kernels
// and bound: for every type, reduction and number of ranks, any order of combining
// passes; exact data bit for bit, and then in all orders the same.
func TestAnyOrderMeetsTheReference(t *testing.T) {
	const elems = 1500
	rng := rand.New(rand.NewPCG(7, 8))
	for d := range DType(len(dtypes)) {
		for op := range ReduceOp(len(opNames)) {
			for _, n := range []int32{1, 2, 8, 17, 33} {
				for _, exact := range []bool{true, false} {
					l := mustLayout(t, ir.NewCollective(ir.AllReduce, n, 1, true), d, int64(elems*d.Size()))
					in := mustGenerate(t, l, op, uint64(n), exact)
					got := reduceInSomeOrder(t, rng, in, op, elems)
					if exact && !bytes.Equal(got, reduceInSomeOrder(t, rng, in, op, elems)) {
						t.Errorf("%v %v, %d ranks: exact data depends on the order", d, op, n)
					}
					v, err := NewReference(in, op).Verify(context.Background(), func(ir.Rank, int32) []byte { return got }, nil)
					if err != nil {
						t.Fatal(err)
					}
					if v.Wrong > 0 || v.Unbounded > 0 || v.Elements != elems*int64(n) || exact && v.MaxBound > 0 {
						t.Errorf("%v %v, %d ranks, exact %v: %d wrong, %d without bound, of %d; first %v",
							d, op, n, exact, v.Wrong, v.Unbounded, v.Elements, v.Mismatches)
					}
				}
			}
		}
	}
}

// TestALostContributionIsFound: leaving one rank out must show, in every type and
// reduction, with both kinds of data, and at many ranks.
func TestALostContributionIsFound(t *testing.T) {
	const elems = 1500
	for d := range DType(len(dtypes)) {
		for op := range ReduceOp(len(opNames)) {
			for _, n := range []int32{2, 8, 40} {
				for _, exact := range []bool{true, false} {
					l := mustLayout(t, ir.NewCollective(ir.AllReduce, n, 1, true), d, int64(elems*d.Size()))
					in := mustGenerate(t, l, op, 9, exact)
					c, err := NewCombine(d, op)
					if err != nil {
						t.Fatal(err)
					}
					got, x := Alloc(int64(elems*d.Size())), Alloc(int64(elems*d.Size()))
					in.Fill(got, 0, 0)
					for r := ir.Rank(1); r < ir.Rank(n)-1; r++ {
						in.Fill(x, r, 0)
						c.Into(got, got, x)
					}
					if op == Avg {
						Divide(d, got, int64(n))
					}
					v, err := NewReference(in, op).Verify(context.Background(), func(ir.Rank, int32) []byte { return got }, nil)
					if err != nil {
						t.Fatal(err)
					}
					if v.Wrong == 0 {
						t.Errorf("%v %v, %d ranks, exact %v: a missing rank goes unnoticed", d, op, n, exact)
					}
				}
			}
		}
	}
}

func TestMismatchesAreDescribed(t *testing.T) {
	l := mustLayout(t, ir.NewCollective(ir.AllReduce, 2, 2, false), FP32, 3*4)
	in, err := NewInputs(l, [][]byte{floats(1, 2, 3), floats(10, 20, 30)})
	if err != nil {
		t.Fatal(err)
	}
	memory := floats(11, 22, 33, -1) // chunks of 2 elements; the last is padding
	bad := floats(11, 22, 33.5, -1)
	v, err := NewReference(in, Sum).Verify(context.Background(), func(r ir.Rank, i int32) []byte {
		return [][]byte{memory, bad}[r][i*8:][:8]
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v.Elements != 6 || v.Wrong != 1 || v.MaxError != 0.5 {
		t.Fatalf("got %+v, want 1 wrong of 6, error 0.5", v)
	}
	got := v.Mismatches[0].String()
	if want := "rank 1 output element 2 (chunk 1): expected 33, found 33.5 (allowed error 1.97e-06)"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	changed := floats(1, 2, 4, 0)
	v, err = NewReference(in, Sum).VerifyInputs(context.Background(), func(r ir.Rank, i int32) []byte {
		return [][]byte{changed, floats(10, 20, 30, 0)}[r][i*8:][:8]
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "rank 0 input element 2 (chunk 1): expected 3, found 4"; v.Wrong != 1 || v.Mismatches[0].String() != want {
		t.Errorf("got %+v, want %s", v, want)
	}
}

func floats(v ...float64) []byte {
	b := Alloc(int64(4 * len(v)))
	encodeFloats(b, FP32, v)
	return b
}

// TestSpecialValues: infinities and NaNs of given inputs come out as arithmetic
// has them, and a sum that may overflow is not judged.
func TestSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	big := math.MaxFloat32
	l := mustLayout(t, ir.NewCollective(ir.AllReduce, 2, 1, true), FP32, 6*4)
	in, err := NewInputs(l, [][]byte{floats(inf, nan, inf, big, math.Copysign(0, -1), 1), floats(1, 1, -inf, big, 0, -1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		out              []byte
		wrong, unbounded int64
	}{
		{floats(inf, nan, nan, inf, 0, 0), 0, 1},
		{floats(inf, nan, nan, big, math.Copysign(0, -1), 0), 0, 1},
		{floats(nan, 1, inf, 0, 1, 1), 5, 1},
	} {
		v, err := NewReference(in, Sum).Verify(context.Background(), func(ir.Rank, int32) []byte { return c.out }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v.Wrong != 2*c.wrong || v.Unbounded != 2*c.unbounded {
			t.Errorf("%v: got %d wrong, %d unbounded; %v", c.out, v.Wrong, v.Unbounded, v.Mismatches)
		}
	}
}

func TestVerifyStops(t *testing.T) {
	l := mustLayout(t, ir.NewCollective(ir.AllReduce, 2, 1, true), FP32, 4096)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := NewReference(mustGenerate(t, l, Sum, 0, true), Sum).Verify(ctx, func(ir.Rank, int32) []byte { return nil }, nil)
	if err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("got %v", err)
	}
}

func TestInputsRefuse(t *testing.T) {
	l := mustLayout(t, ir.NewCollective(ir.AllReduce, 2, 1, true), FP32, 8)
	_, err := NewInputs(l, [][]byte{make([]byte, 8)})
	if want := "run: got inputs of 1 ranks, want 2"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = NewInputs(l, [][]byte{make([]byte, 8), make([]byte, 12)})
	if want := "run: input of rank 1 has 12 bytes, want 8"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	many := ir.NewCollective(ir.Custom, 1, 1, false)
	want := make([]ir.Contribution, 20)
	for i := range want {
		want[i].Index = int32(i)
	}
	many.Custom = &ir.CustomSpec{Input: []int32{20}, Output: []int32{1}, Expect: [][][]ir.Contribution{{want}}}
	_, err = Generate(mustLayout(t, many, FP8E4M3, 20), Sum, 1, true)
	if msg := "run: outputs with 20 contributions have no exact sum of fp8e4m3\n    take a wider data type, or random data"; err == nil || err.Error() != msg {
		t.Errorf("got %v, want %s", err, msg)
	}
}
