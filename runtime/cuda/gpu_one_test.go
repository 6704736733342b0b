package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// oneSources are the library's algorithms as one-sided programs, for so many ranks.
func oneSources(t testing.TB, ranks int, protocols ...string) []source {
	var out []source
	for _, a := range scripts(t) {
		args, ok := a.shape(ranks)
		if !ok || !a.takes("protocol") {
			continue
		}
		for _, protocol := range protocols {
			for _, place := range a.places() {
				out = append(out, source{name: a.name, args: args, oneSided: true}.with("protocol", protocol).with("inplace", place))
			}
		}
	}
	return out
}

// oneSizes are sizes of one-sided programs in bytes, rounded up to what they can be cut
// into: a few packets, more than one thread has, and many vectors of 16 bytes.
var oneSizes = []int64{1, 1 << 10, 20_000, 1 << 20}

// TestGPUOneSided runs one-sided programs: every kind of operation, the library's
// algorithms as puts and signals and as packets, all kinds of numbers in turn; then what
// must hang.
func TestGPUOneSided(t *testing.T) {
	lib := library(t)
	shapes, sizes := []int{2, 3, 4, 8}, oneSizes
	if onHost(lib) {
		shapes, sizes = []int{2, 3}, oneSizes[:3]
	}
	p := newParts(t, "onesided")
	for _, set := range sets(devices(t, lib)) {
		for _, c := range handOps {
			p.do(fmt.Sprintf("%s on %s", c.name, list(set)), func() (int64, error) { return runHand(lib, c.text, c.want, set) })
		}
		for i, kinds := 0, kinds(); i < len(shapes); i++ {
			for k, src := range oneSources(t, shapes[i], "Simple", "LL") {
				if onHost(lib) && (k+i)%3 != 0 {
					continue
				}
				for s, size := range sizes {
					kind := kinds[(7*k+3*s+i)%len(kinds)]
					p.do(fmt.Sprintf("%v, %d bytes of %v, %v on %s", src, size, kind.d, kind.op, list(set)), func() (int64, error) {
						return runOne(lib, src, size, kind, set, (k+s)%2 == 0)
					})
				}
			}
		}
		for _, bad := range plantedOne {
			p.do(fmt.Sprintf("%s on %s", bad.says, list(set)), func() (int64, error) {
				watchdog := 300 * time.Millisecond
				prog, err := readOne("allreduce ranks 2 factor 1 split 1 in-place", bad.protocol, "", bad.text)
				if err != nil {
					return 0, err
				}
				err = on(lib, prog, cuda.CommOptions{Devices: set, Watchdog: watchdog}, func(x *cuda.Program) error {
					_, err := x.Run(context.Background(), cuda.Options{Bytes: 64, NoVerify: true})
					return reported(err, bad.says)
				})
				if err != nil {
					return 0, err
				}
				return afterwards(lib, set)
			})
		}
	}
}

// plantedOne are one-sided programs that can't end, and what the watchdog must say.
var plantedOne = []struct{ protocol, text, says string }{
	{"Simple", `
gpu 0 input=1 output=1 scratch=1
channels memory 1
tb 0
nop
wait memory on 0
gpu 1 input=1 output=1 scratch=1
channels memory 0
tb 0
nop`, "rank 0 thread block 0 op 1 (wait) waits for a signal of rank 1 on its channel 0"},
	{"Simple", `
gpu 0 input=1 output=1 scratch=1
semaphores 1
tb 0
sem_acquire on 0
sem_acquire on 0
gpu 1 input=1 output=1 scratch=1`, "rank 0 thread block 0 op 1 (sem_acquire) waits for semaphore 0"},
	{"Simple", `
gpu 0 input=1 output=1 scratch=1
tb 0
barrier on 4 of 2
gpu 1 input=1 output=1 scratch=1
tb 0
barrier on 4 of 2`, "thread block 0 op 0 (barrier) waits for the other thread blocks at barrier 4"},
	{"LL", `
gpu 0 input=1 output=1 scratch=2
tb 0
pipeline unit 16 chunks 1 {
upkt s[0] x1 packets -> i[0] x1
}
gpu 1 input=1 output=1 scratch=2`, "rank 0 thread block 0 op 0.0 in turn 1 (upkt) waits for a packet in its scratch"},
	{"Simple", `
gpu 0 input=1 output=1 scratch=1
channels port 1
tb 0
wait port on 0
gpu 1 input=1 output=1 scratch=1
channels port 0
tb 0
flush port on 0`, "rank 0 thread block 0 op 0 (wait) waits for a signal of rank 1 on its channel 0"},
}

// runHand runs a program of handOps at a few sizes and compares with what was written
// down by hand.
func runHand(lib *cuda.Library, text string, want [2][2]int32, set []int32) (values int64, err error) {
	for _, flags := range []string{"", " double-scratch"} {
		prog, err := readOne("allreduce ranks 2 factor 2 split 1", "LL", flags, text)
		if err != nil {
			return 0, err
		}
		err = on(lib, prog, cuda.CommOptions{Devices: set, Watchdog: patience}, func(x *cuda.Program) error {
			for _, n := range []int{4, 64, 1000, 20_000} {
				o := cuda.Options{Bytes: int64(8 * n), DType: runtime.Int32, NoVerify: true, KeepOutputs: true,
					Inputs: [][]byte{ints(n, 1, 2), ints(n, 10, 20)}, Graph: n == 64}
				if flags != "" { // else a rank's next packets could come too early
					o.Launches = 3
				}
				r, err := x.Run(context.Background(), o)
				if err != nil {
					return err
				}
				for rank, w := range want {
					if string(r.Outputs[rank]) != string(ints(n, w[0], w[1])) {
						return fmt.Errorf("%d elements a chunk: rank %d is wrong", n, rank)
					}
				}
				values += int64(4 * n)
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return values, nil
}

// runOne runs a one-sided program twice; a size that it isn't for is refused.
func runOne(lib *cuda.Library, src source, size int64, k kind, set []int32, graph bool) (values int64, err error) {
	prog, err := src.program()
	if err != nil {
		return 0, err
	}
	unit := unitOf(prog)
	if unit == 0 {
		return 0, errors.New("it is not one-sided, or has no data")
	}
	size = (size + unit - 1) / unit * unit
	err = on(lib, prog, cuda.CommOptions{Devices: set, Watchdog: patience}, func(x *cuda.Program) error {
		values, err = check(x, cuda.Options{Bytes: size, DType: k.d, Op: k.op, Misalign: int32(size/unit%2) * int32(k.d.Size())}, graph)
		if outside(err) {
			return errRefused
		}
		return err
	})
	return values, err
}

// TestGPUOneSpread runs a few of them, on one device as compute-sanitizer wants it.
func TestGPUOneSpread(t *testing.T) {
	lib := library(t)
	p := newParts(t, "onespread")
	set := devices(t, lib)[:1]
	for _, c := range handOps {
		p.do(c.name, func() (int64, error) { return runHand(lib, c.text, c.want, set) })
	}
	for i, src := range oneSources(t, 3, "Simple", "LL") {
		if i%7 == 0 {
			p.do(src.String(), func() (int64, error) {
				return runOne(lib, src, 4096, kinds()[i%len(kinds())], set, false)
			})
		}
	}
}

// oneAndTwo are programs of both kinds for one communicator.
func oneAndTwo(ranks int) []source {
	var out []source
	for _, src := range mixedSources(ranks) {
		if p := src.args["protocol"]; p == "Simple" || p == "LL" {
			one := src
			one.oneSided = true
			out = append(out, one)
		} else if len(out)%3 == 0 {
			out = append(out, src)
		}
	}
	return append(out, mixedSources(ranks)[0], mixedSources(ranks)[24])
}

// TestGPUOneMixed starts thousands of launches of one-sided programs, and of two-sided
// ones in between, on one communicator; once more with flags that come round every 64.
func TestGPUOneMixed(t *testing.T) {
	lib := library(t)
	launches, round, shapes, most := 10_000, 500, []int{4, 2, 8}, mixedSizes[len(mixedSizes)-1]
	if onHost(lib) {
		launches, round, shapes, most = 400, 100, []int{3}, 16384
	}
	p := newParts(t, "onemixed")
	for _, set := range sets(devices(t, lib)) {
		for _, ranks := range shapes {
			for _, modulus := range []int32{0, 64} {
				p.do(fmt.Sprintf("%d ranks on %s, flags modulo %d", ranks, list(set), modulus), func() (int64, error) {
					return runMixed(lib, oneAndTwo(ranks), cuda.CommOptions{Devices: set, Watchdog: patience, FlagModulus: modulus},
						int32(ranks), launches, round, most)
				})
			}
		}
	}
}

// TestGPUOneReplay replays graphs of one-sided programs, in turns with two-sided ones.
func TestGPUOneReplay(t *testing.T) {
	lib := library(t)
	replays, shapes, most := 1000, []int{2, 4}, mixedSizes[len(mixedSizes)-1]
	if onHost(lib) {
		replays, shapes, most = 8, shapes[:1], 4096
	}
	p := newParts(t, "onereplay")
	for _, set := range sets(devices(t, lib)) {
		for _, ranks := range shapes {
			for _, modulus := range []int32{0, 64} {
				p.do(fmt.Sprintf("%d ranks on %s, flags modulo %d", ranks, list(set), modulus), func() (int64, error) {
					return runReplays(lib, oneAndTwo(ranks), cuda.CommOptions{Devices: set, Watchdog: patience, FlagModulus: modulus}, int32(ranks), replays, most)
				})
			}
		}
	}
}

// TestLaunches starts 5,000 launches of an allreduce of packets in a row, on two halves of
// scratch and with flags that come round every 16, and looks at the last one's results.
func TestLaunches(t *testing.T) {
	lib := library(t)
	src := source{name: "allreduce_one_step", args: map[string]string{"ranks": "2", "protocol": "LL", "inplace": "false"}, oneSided: true}
	p, err := src.program()
	if err != nil {
		t.Fatal(err)
	}
	if !p.OneSided.DoubleScratch || p.OneSided.GPUs[0].Blocks == nil || p.Protocol != ir.LL {
		t.Fatalf("%+v is not what this is about", p.OneSided)
	}
	x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0, 1}, FlagModulus: 16, Watchdog: patience})
	b := bind(t, x, cuda.Options{Bytes: 1024, Threads: 1})
	if !onHost(lib) {
		b = bind(t, x, cuda.Options{Bytes: 1024})
	}
	all(t, b.Generate(5), b.Enqueue(5000), b.Verify(5))
	if v := verdict(t, b); v.Wrong > 0 || v.Elements == 0 {
		t.Errorf("%+v", v)
	}
}
