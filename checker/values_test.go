package checker

import (
	"slices"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

func TestValues(t *testing.T) {
	v := newValues(100)
	ab, bc := v.sum(0, 1), v.sum(1, 2)
	if v.sum(1, 0) != ab {
		t.Error("a+b and b+a differ")
	}
	if v.sum(ab, 2) == v.sum(0, bc) {
		t.Error("(a+b)+c and a+(b+c) are one value, but not in floating point")
	}
	leaves, times := v.expand(v.sum(ab, bc), nil, nil)
	if !slices.Equal(leaves, []int32{0, 1, 2}) || !slices.Equal(times, []uint64{1, 2, 1}) {
		t.Errorf("a+b + b+c: got leaves %v, times %v", leaves, times)
	}

	// All pairs of leaves, so that the table has to grow, and each of them again.
	first := map[[2]int32]int32{}
	for range 2 {
		for a := range int32(100) {
			for b := range a {
				x := v.sum(a, b)
				if old, ok := first[[2]int32{a, b}]; ok && old != x {
					t.Fatalf("%d+%d is %d, and then %d", a, b, old, x)
				}
				first[[2]int32{a, b}] = x
			}
		}
	}
	distinct := map[int32]bool{}
	for _, x := range first {
		distinct[x] = true
	}
	if len(distinct) != 100*99/2 {
		t.Errorf("got %d values, want %d", len(distinct), 100*99/2)
	}

	// Doubling 70 times is more than fits; the multiplicity stays at the top.
	x := int32(7)
	for range 70 {
		x = v.sum(x, x)
	}
	if leaves, times = v.expand(x, nil, nil); !slices.Equal(leaves, []int32{7}) || times[0] != tooMany {
		t.Errorf("2^70 times a leaf: got leaves %v, times %v", leaves, times)
	}
	if leaves, times = v.expand(ab, nil, nil); !slices.Equal(leaves, []int32{0, 1}) || !slices.Equal(times, []uint64{1, 1}) {
		t.Errorf("a+b after other expansions: got leaves %v, times %v", leaves, times)
	}
}

func TestRenderTerms(t *testing.T) {
	in := func(name string, times uint64, ranks ...ir.Rank) []term {
		var out []term
		for _, r := range ranks {
			out = append(out, term{name: name, rank: r, times: times})
		}
		return out
	}
	tests := []struct {
		terms []term
		want  string
	}{
		{nil, "nothing"},
		{in("input[3]", 1, 2), "input[3] of rank 2"},
		{in("input[3]", 2, 2), "the sum of 2 x input[3] of rank 2"},
		{in("input[3]", tooMany, 2), "the sum of countless x input[3] of rank 2"},
		{in("input[3]", 1, 4, 0, 1, 2), "the sum of input[3] from ranks 0-2 and 4"},
		{in("a", 1, 0, 2, 4, 6, 8, 10, 12, 14), "the sum of a from ranks 0, 2, 4, 6, 8, 10 and 2 more"},
		{append(in("input[10]", 1, 0), in("input[9]", 1, 1)...), "the sum of input[9] of rank 1 and input[10] of rank 0"},
		{slices.Concat(in("a", 1, 0), in("b", 1, 0), in("c", 1, 0), in("d", 1, 0), in("e", 1, 0), in("f", 1, 0), in("g", 1, 0)),
			"the sum of a of rank 0, b of rank 0, c of rank 0, d of rank 0, e of rank 0, f of rank 0 and 1 more"},
	}
	for _, test := range tests {
		if got := renderTerms(test.terms); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
