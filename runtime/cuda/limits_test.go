package cuda_test

import (
	"context"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// What the library takes is taken here, and one more is refused with a code of its own.
func TestLimits(t *testing.T) {
	p := script(t, "allreduce_ring", map[string]string{"ranks": "2"}, compiler.Options{})
	for _, c := range []struct {
		slots     int32
		slotBytes int64
		ok        bool
	}{{1 << 20, 1 << 32, true}, {1<<20 + 1, 64, false}, {2, 1<<32 + 1, false}} {
		p.Transport.Slots, p.Transport.SlotBytes = c.slots, c.slotBytes
		err := cuda.Validate(p)
		if c.ok != (err == nil) || err != nil && diag.Messages(err)[0].Code != "slots" {
			t.Errorf("%d slots of %d bytes: %v", c.slots, c.slotBytes, err)
		}
	}
	p.Transport.Slots, p.Transport.SlotBytes = 2, 1<<10
	x := open(t, library(t), p, cuda.CommOptions{})
	if _, err := x.Run(context.Background(), cuda.Options{Bytes: 64, Exact: true, Threads: 512}); err != nil {
		t.Error(err)
	}
	_, err := x.Run(context.Background(), cuda.Options{Bytes: 64, Exact: true, Threads: 513})
	if err == nil || diag.Messages(err)[0].Code != "threads" {
		t.Errorf("513 threads: %v", err)
	}
}
