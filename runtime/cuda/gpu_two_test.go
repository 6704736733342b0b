package cuda_test

import (
	"fmt"
	"testing"

	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// TestGPUTwo lets two communicators use the same GPUs at once, each on its own streams:
// launches of small programs, which fit beside each other, are started in turns, and
// nothing waits for the host until the end. What one communicator does must not disturb
// the other's messages, nor keep its launches from starting.
func TestGPUTwo(t *testing.T) {
	lib := library(t)
	rounds, launches := 40, 25
	if onHost(lib) {
		rounds, launches = 2, 3
	}
	p := newParts(t, "two")
	for _, set := range sets(devices(t, lib)) {
		for _, pair := range [][2]string{{"LL", "LL"}, {"LL128", "Simple"}, {"Simple", "Direct"}, {"Direct", "Direct"}} {
			p.do(fmt.Sprintf("%s and %s on %s", pair[0], pair[1], list(set)), func() (int64, error) {
				return runTwo(lib, pair, cuda.CommOptions{Devices: set, Watchdog: patience}, rounds, launches)
			})
		}
	}
}

// runTwo starts so many launches of each of two programs in turns, in every round on new
// inputs, the first one's results compared at the end of a round only.
func runTwo(lib *cuda.Library, protocols [2]string, o cuda.CommOptions, rounds, launches int) (values int64, err error) {
	var bound [2]*cuda.Bound
	for i, protocol := range protocols {
		comm, err := lib.NewComm(2, o)
		if err != nil {
			return 0, err
		}
		defer func() { err = firstOf(err, comm.Close()) }()
		src := source{name: "allreduce_allpairs", args: map[string]string{"ranks": "2", "protocol": protocol, "inplace": "false", "instances": "2"}}
		x, _, err := loadSource(comm, src)
		if err != nil {
			return 0, err
		}
		defer func() { err = firstOf(err, x.Close()) }()
		if bound[i], err = x.Bind(cuda.Options{Bytes: []int64{4096, 60_000}[i]}); err != nil {
			return 0, err
		}
	}
	for seed := range uint64(rounds) {
		for _, b := range bound {
			if err := b.Generate(seed); err != nil {
				return 0, err
			}
		}
		for range launches {
			for _, b := range bound {
				if err := b.Enqueue(1); err != nil {
					return 0, err
				}
			}
		}
		for _, b := range bound {
			if err := b.Verify(seed); err != nil {
				return 0, err
			}
		}
	}
	for _, b := range bound {
		v, err := judged(b)
		if err == nil {
			err = b.CheckGuards()
		}
		if err != nil {
			return 0, err
		}
		values += v.Elements
	}
	return values, nil
}
