package starlib

import (
	"runtime/metrics"
	"time"
)

// DefaultMaxMemory is the live memory, in bytes, at which a script is stopped
// when Options sets no limit.
const DefaultMaxMemory = 3 << 30

// memoryInterval is how often the memory is looked at. A script that doubles a
// list gets about this much further, so the limit is a fuse and no quota.
const memoryInterval = 10 * time.Millisecond

// watchMemory stops the script once the process holds more than the limit, which
// is better than being stopped by the system. The function it returns ends the
// watch.
func (in *interp) watchMemory() (stop func()) {
	limit := in.o.MaxMemory
	if limit == 0 {
		limit = DefaultMaxMemory
	}
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(memoryInterval)
		defer tick.Stop()
		live := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if metrics.Read(live); live[0].Value.Uint64() > limit {
					in.overfull.Store(true)
					in.thread.Cancel("too much memory")
					return
				}
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
