package cuda

import (
	goruntime "runtime"
	"testing"
)

// The library takes a null pointer for a missing table, so an empty one isn't null.
func TestPinned(t *testing.T) {
	var pins goruntime.Pinner
	defer pins.Unpin()
	s := []int32{7, 8}
	if pinned(&pins, s) != &s[0] {
		t.Error("not the first element")
	}
	if pinned(&pins, s[:0]) == nil || pinned[cStep](&pins, nil) == nil {
		t.Error("a table without entries is null")
	}
}
