package cuda_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// TestOrder runs programs whose thread blocks are ordered by messages alone, through
// other ranks: what one wrote another reads, or what it read another overwrites, with
// packets of one message moved by different threads. With Direct they pull and push in
// one pass, or must not. Each went wrong once in some of many runs. Other runtimes may
// get those with LL and LL128 wrong (the checker refuses them), but not those in right.
func TestOrder(t *testing.T) {
	lib := library(t)
	files, err := filepath.Glob("testdata/order/*.txt")
	ordered, err2 := filepath.Glob("testdata/order/right/*.txt")
	if files = append(files, ordered...); err != nil || err2 != nil || len(files) == 0 || len(ordered) == 0 {
		t.Fatalf("no programs: %v, %v", err, err2)
	}
	runs := 12
	if testing.Short() {
		runs = 3
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			p, err := ir.ParseProgram(f, file)
			if err != nil {
				t.Fatal(err)
			}
			x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0}, Watchdog: patience})
			for run := range runs {
				for _, elems := range []int64{300, 1250, 8333} { // of a chunk
					right(t, x, cuda.Options{Bytes: 4 * elems * int64(p.Coll.NumChunks()), Seed: uint64(run)})
				}
			}
		})
	}
}
