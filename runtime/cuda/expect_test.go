package cuda

import (
	"reflect"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// What a collective demands, written down by hand.
func TestExpect(t *testing.T) {
	custom := ir.NewCollective(ir.Custom, 2, 1, false)
	custom.Custom = &ir.CustomSpec{Input: []int32{2, 1}, Output: []int32{3, 0}, Holds: [][]bool{{false, true}, {true}},
		Expect: [][][]ir.Contribution{{nil, {{Rank: 1}, {Rank: 0, Index: 1}, {Rank: 1}}, {{Rank: 0, Index: 1}}}, {}}}
	for _, c := range []struct {
		name string
		coll *ir.Collective
		want expectation
	}{
		{"allreduce in place", ir.NewCollective(ir.AllReduce, 2, 3, true), expectation{
			held: []cHeld{{0, 0, 3, 0}, {1, 0, 3, 0}},
			results: []cResult{{rank: 0, buf: 1, chunk: 0, count: 3, firstPart: 0, parts: 2},
				{rank: 1, buf: 1, chunk: 0, count: 3, firstPart: 2, parts: 2}},
			parts: []cPart{{0, 0, 1, 0}, {1, 0, 1, 0}, {0, 0, 1, 0}, {1, 0, 1, 0}}}},
		{"reduce_scatter out of place", ir.NewCollective(ir.ReduceScatter, 2, 2, false), expectation{
			held: []cHeld{{0, 0, 4, 0}, {1, 0, 4, 0}},
			results: []cResult{{rank: 0, buf: 1, chunk: 0, count: 2, firstPart: 0, parts: 2},
				{rank: 0, buf: 0, chunk: 0, count: 4, firstPart: 2, parts: 1},
				{rank: 1, buf: 1, chunk: 0, count: 2, firstPart: 3, parts: 2},
				{rank: 1, buf: 0, chunk: 0, count: 4, firstPart: 5, parts: 1}},
			parts: []cPart{{0, 0, 1, 0}, {1, 0, 1, 0}, {0, 0, 1, 0}, {0, 2, 1, 0}, {1, 2, 1, 0}, {1, 0, 1, 0}}}},
		{"alltoall in place", ir.NewCollective(ir.AllToAll, 2, 1, true), expectation{
			held: []cHeld{{0, 0, 2, 0}, {1, 0, 2, 0}},
			results: []cResult{{rank: 0, buf: 1, chunk: 0, count: 1, firstPart: 0, parts: 1},
				{rank: 0, buf: 1, chunk: 1, count: 1, firstPart: 1, parts: 1},
				{rank: 1, buf: 1, chunk: 0, count: 1, firstPart: 2, parts: 1},
				{rank: 1, buf: 1, chunk: 1, count: 1, firstPart: 3, parts: 1}},
			parts: []cPart{{0, 0, 1, 0}, {1, 0, 1, 0}, {0, 1, 1, 0}, {1, 1, 1, 0}}}},
		// Rank 0 demands nothing of its first output, twice rank 1's input in the second;
		// its first input holds nothing.
		{"custom", custom, expectation{
			held: []cHeld{{0, 1, 1, 0}, {1, 0, 1, 0}},
			results: []cResult{{rank: 0, buf: 1, chunk: 1, count: 1, firstPart: 0, parts: 2},
				{rank: 0, buf: 1, chunk: 2, count: 1, firstPart: 2, parts: 1},
				{rank: 0, buf: 0, chunk: 1, count: 1, firstPart: 3, parts: 1},
				{rank: 1, buf: 0, chunk: 0, count: 1, firstPart: 4, parts: 1}},
			parts: []cPart{{0, 1, 1, 0}, {1, 0, 2, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {1, 0, 1, 0}}}},
	} {
		if got := expect(c.coll); !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, *got, c.want)
		}
	}
}

func TestOnDevice(t *testing.T) {
	const many = 64<<20 + 1
	for _, c := range []struct {
		o       Options
		bytes   int64
		want    bool
		refused bool
	}{
		{Options{Exact: true}, 64 << 20, false, false},
		{Options{Exact: true}, many, true, false},
		{Options{}, many, false, false},
		{Options{Exact: true, Inputs: [][]byte{}}, many, false, false},
		{Options{Exact: true, KeepOutputs: true}, many, false, false},
		{Options{Exact: true, NoVerify: true}, many, false, false},
		{Options{Exact: true, Verify: VerifyOnHost}, many, false, false},
		{Options{Exact: true, Verify: VerifyOnDevice}, 4, true, false},
		{Options{Verify: VerifyOnDevice}, 4, false, true},
		{Options{Exact: true, KeepOutputs: true, Verify: VerifyOnDevice}, 4, false, true},
	} {
		got, err := c.o.onDevice(c.bytes)
		if got != c.want || c.refused != (err != nil) {
			t.Errorf("%+v, %d bytes: got %v, %v", c.o, c.bytes, got, err)
		}
	}
}
