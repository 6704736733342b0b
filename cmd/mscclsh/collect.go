package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// firstCollection is how large, in bytes, the heap gets before the collector runs for
// the first time.
const firstCollection = 256 << 20

// smallestHeap is the same in any Go program with GOGC=100; GOGC multiplies it.
const smallestHeap = 4 << 20

// delayCollection lets the heap grow to firstCollection before the collector runs. A
// command that compiles a script ends before that, and while its heap grows from
// nothing the collector would take a quarter of its time. From then on the collector
// runs as in any Go program. GOGC and GOMEMLIMIT have their usual meaning.
func delayCollection() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	percent := debug.SetGCPercent(100 * (firstCollection / smallestHeap))
	type garbage struct{ _ *garbage } // large enough to be an allocation of its own, and with a pointer
	runtime.AddCleanup(new(garbage), func(percent int) { debug.SetGCPercent(percent) }, percent)
}
