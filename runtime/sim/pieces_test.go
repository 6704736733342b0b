package sim

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/mscclsh/mscclsh/ir"
)

// Values of parts of chunks behave as the bytes of a chunk do, each with a value of its
// own.
func TestPieces(t *testing.T) {
	const size = 8
	rapid.Check(t, func(t *rapid.T) {
		v := newValues(ir.NewCollective(ir.AllReduce, 3, 1, true))
		whole := []int32{valueEmpty, valueJunk, v.leaf(0, 0), v.leaf(1, 0), v.leaf(2, 0)}
		var chunks [3]int32
		var bytes [3][size]int32
		for range rapid.IntRange(1, 12).Draw(t, "operations") {
			a, b := rapid.IntRange(0, 2).Draw(t, "a"), rapid.IntRange(0, 2).Draw(t, "b")
			from := rapid.IntRange(0, size-1).Draw(t, "from")
			to := rapid.IntRange(from+1, size).Draw(t, "to")
			var with int32
			var withBytes [size]int32
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				with = whole[rapid.IntRange(0, 4).Draw(t, "value")]
				for i := range withBytes {
					withBytes[i] = with
				}
			case 1:
				with, withBytes = chunks[b], bytes[b]
			case 2:
				with = v.addParts(chunks[a], chunks[b], size)
				for i := range withBytes {
					withBytes[i] = v.add(bytes[a][i], bytes[b][i])
				}
			default:
				with = v.copiedParts(chunks[b])
				for i := range withBytes {
					withBytes[i] = copied(bytes[b][i])
				}
			}
			chunks[a] = v.replace(chunks[a], with, int64(from), int64(to), size)
			copy(bytes[a][from:to], withBytes[from:to])
			at, all, part := 0, true, true
			for _, r := range v.runsOf(chunks[a], size) {
				for ; at < int(r.to); at++ {
					if bytes[a][at] != r.value {
						t.Fatalf("byte %d is %d, want %d", at, r.value, bytes[a][at])
					}
				}
			}
			for i, x := range bytes[a] {
				all = all && x == bytes[a][0]
				part = part && (x != valueEmpty || i < from || i >= to)
			}
			if at != size || all != (chunks[a] >= 0) {
				t.Fatalf("%d bytes, whole %v: %v", at, all, v.runsOf(chunks[a], size))
			}
			if v.complete(chunks[a], int64(from), int64(to), size) != part {
				t.Fatalf("bytes %d to %d of %v complete: want %v", from, to, bytes[a], part)
			}
		}
	})
}
