package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// The first collection is put off, and those after it are not.
func TestFirstCollectionIsPutOff(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetGCPercent(70)
	defer debug.SetGCPercent(before)
	delayCollection()
	if got := percentNow(); got != 6400 { // 256 MiB of 4 MiB
		t.Fatalf("before the first collection: got GOGC=%d, want 6400", got)
	}
	runtime.GC()
	for range 1000 {
		if percentNow() == 70 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("after the first collection: got GOGC=%d, want 70 again", percentNow())
}

// Whoever sets the collector by the environment has set it.
func TestCollectionIsTheCallersToSet(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, "100")
			before := percentNow()
			delayCollection()
			if got := percentNow(); got != before {
				t.Errorf("got GOGC=%d, want %d as it was", got, before)
			}
		})
	}
}

// percentNow is GOGC as it is.
func percentNow() uint64 {
	list := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(list)
	return list[0].Value.Uint64()
}
