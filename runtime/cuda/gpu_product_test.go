package cuda_test

import (
	"fmt"
	"testing"

	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// TestGPUProduct runs all that the library can do at sizes up to 64 KiB: every
// algorithm, 2 to 8 ranks on one device and on all, every protocol, in place and out
// of place, slots of the target and slots so small that a few elements fill them; each
// with sizes of 0, one element, prime counts and powers of two, buffers that start at
// three places, and data types and reductions in turn.
func TestGPUProduct(t *testing.T) {
	lib := library(t)
	ranks, sizes, stride := []int{2, 3, 4, 5, 6, 7, 8}, productSizes, 1
	if onHost(lib) && !*full {
		ranks, sizes, stride = []int{2, 3, 8}, productSizes[:6], 41
	}
	p := newParts(t, "product")
	sets, n := sets(devices(t, lib)), 0
	for _, src := range products(scripts(t), ranks) {
		for _, set := range sets {
			if n++; n%stride != 0 {
				continue
			}
			turn := 17 * n
			p.do(fmt.Sprint(src, " on ", list(set)), func() (int64, error) { return runProduct(lib, src, set, sizes, turn) })
		}
	}
}

// productSizes are numbers of bytes, rounded up to whole elements: nothing, one
// element, primes in between, and powers of two.
var productSizes = []int64{0, 1, 7 * 8, 251, 1024, 4093 * 4, 997, 13 * 1024, 32749, 65521, 65536}

// misalignments are the elements by which buffers start past a 256-byte boundary.
var misalignments = []int32{0, 1, 3}

// products are all calls of all scripts.
func products(all []algorithm, ranks []int) []source {
	var out []source
	for _, a := range all {
		for _, n := range ranks {
			args, ok := a.shape(n)
			if !ok {
				continue
			}
			roots := []string{""}
			if a.takes("root") {
				roots = []string{"0", fmt.Sprint(n - 1)}
			}
			for _, protocol := range a.protocols() {
				for _, place := range a.places() {
					for _, root := range roots {
						s := source{name: a.name, args: args}.with("protocol", protocol).with("inplace", place).with("root", root)
						out = append(out, s)
						if protocol != "Direct" { // which has no slots
							s.slotBytes = 960
							out = append(out, s)
						}
					}
				}
			}
		}
	}
	return out
}

// runProduct is one program at all sizes. Every other run is a sum of fp32, the ones
// between are the kinds in turn, from another one on in each program.
func runProduct(lib *cuda.Library, src source, devices []int32, sizes []int64, turn int) (values int64, err error) {
	p, err := src.program()
	if err != nil {
		return 0, err
	}
	kinds := kinds()
	err = on(lib, p, cuda.CommOptions{Devices: devices, Watchdog: patience}, func(x *cuda.Program) error {
		for i, size := range sizes {
			for j, off := range misalignments {
				k := kinds[0]
				if (i+j)%2 == 1 {
					k = kinds[turn%len(kinds)]
					turn++
				}
				elem := int64(k.d.Size())
				o := cuda.Options{Bytes: (size + elem - 1) / elem * elem, DType: k.d, Op: k.op, Misalign: off * int32(elem),
					Seed: uint64(2 * turn)}
				n, err := check(x, o, false)
				if outside(err) {
					continue
				}
				if err != nil {
					return fmt.Errorf("%d bytes of %v, %v, misaligned by %d: %w", o.Bytes, o.DType, o.Op, o.Misalign, err)
				}
				values += n
			}
		}
		return nil
	})
	return values, err
}
