package cuda_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// Programs of two ranks with an input and an output of two chunks each, one operation or
// a few of them in each. Rank 0 has the chunks 1 and 2, rank 1 has 10 and 20.
var handOps = []struct {
	name  string
	text  string
	want  [2][2]int32 // outputs, by hand
	kinds []ir.OpKind // that it is about
}{
	{"copy", twoRanks(`
copy i[0] x2 -> o[0] x2`, `
copy i[1] x1 -> o[0] x1
copy i[0] x1 -> o[1] x1`), [2][2]int32{{1, 2}, {20, 10}}, []ir.OpKind{ir.OpCopy}},

	{"put, signal and wait", twoRanks(`
put memory i[0] x1, i[1] x1 -> 1.o[1] x1, 1.o[0] x1
nop
signal memory on 0
wait memory on 0`, `
put memory i[0] x2 -> 0.o[0] x2
nop
signal memory on 0
wait memory on 0`), [2][2]int32{{10, 20}, {2, 1}}, []ir.OpKind{ir.OpPut, ir.OpSignal, ir.OpWait, ir.OpSync}},

	// Both say that their inputs are there, and that they have read the other's.
	{"get", twoRanks(`
rlxsignal memory on 0
rlxwait memory on 0
nop
get memory 1.i[1] x1, 1.i[0] x1 -> o[0] x1, o[1] x1
nop
rlxsignal memory on 0
rlxwait memory on 0`, `
rlxsignal memory on 0
rlxwait memory on 0
nop
get memory 0.i[0] x2 -> o[0] x2
nop
rlxsignal memory on 0
rlxwait memory on 0`), [2][2]int32{{20, 10}, {1, 2}}, []ir.OpKind{ir.OpGet, ir.OpRelaxedSignal, ir.OpRelaxedWait}},

	{"local reductions", twoRanks(`
re i[0] x1, i[1] x1, i[0] x1 -> o[0] x1
re i[1] x1 -> o[1] x1`, `
re i[0] x1, i[1] x1 -> o[1] x1
copy i[0] x1 -> o[0] x1`), [2][2]int32{{4, 2}, {10, 30}}, []ir.OpKind{ir.OpReduceLocal}},

	// Rank 0 keeps 1+2 and sends it; rank 1 keeps 20+10.
	{"reduce and send", twoRanks(`
res memory i[0] x1, i[1] x1 -> o[0] x1, 1.o[0] x1, 1.s[0] x1
copy i[0] x1 -> o[1] x1
nop
signal memory on 0`, `
wait memory on 0
nop
copy s[0] x1 -> o[1] x1`), [2][2]int32{{3, 1}, {3, 3}}, []ir.OpKind{ir.OpReduceSend}},

	{"read and reduce", twoRanks(`
rlxsignal memory on 0
rlxwait memory on 0
nop
rre memory i[0] x1, 1.i[0] x1, 1.i[1] x1 -> o[0] x1
copy i[1] x1 -> o[1] x1
nop
signal memory on 0
wait memory on 0`, `
rlxsignal memory on 0
rlxwait memory on 0
nop
rres memory i[1] x1, 0.i[0] x1 -> o[0] x1, 0.s[0] x1
copy i[0] x1 -> o[1] x1
nop
signal memory on 0
wait memory on 0`), [2][2]int32{{31, 2}, {21, 10}}, []ir.OpKind{ir.OpReadReduce, ir.OpReadReduceSend}},

	{"local packets", twoRanks(`
cpkt i[0] x2 -> s[0] x2 packets
upkt s[1] x1 packets -> o[0] x1
upkt s[0] x1 packets -> o[1] x1`, `
cpkt i[0] x2 -> s[2] x2 packets
upkt s[2] x2 packets -> o[0] x2`), [2][2]int32{{2, 1}, {10, 20}}, []ir.OpKind{ir.OpCopyToPackets, ir.OpUnpackPackets}},

	// Rank 1 passes packets on as they come.
	{"sent packets", twoRanks(`
ppkt memory i[0] x1, i[1] x1 -> 1.s[0] x1 packets, 1.s[1] x1 packets
upkt s[2] x2 packets -> o[0] x2`, `
rppkt memory s[0] x2 packets -> 0.s[2] x2 packets, 0.s[0] x2 packets
upkt s[0] x2 packets -> o[0] x2`), [2][2]int32{{1, 2}, {1, 2}}, []ir.OpKind{ir.OpPutPackets, ir.OpReadPutPackets}},

	// Rank 0 gets 10+20 in packets and adds 1; rank 1 gets it from there.
	{"reduced packets", twoRanks(`
respkt memory i[0] x1, s[0] x1 packets, s[1] x1 packets -> o[0] x1, 1.s[2] x1 packets
repkt i[1] x1, s[1] x1 packets -> o[1] x1`, `
ppkt memory i[0] x2 -> 0.s[0] x2 packets
recpkt i[0] x1, s[2] x1 packets -> o[0] x1, s[3] x1 packets
nop
upkt s[3] x1 packets -> o[1] x1`), [2][2]int32{{31, 22}, {41, 41}},
		[]ir.OpKind{ir.OpReducePackets, ir.OpReduceSendPackets, ir.OpReduceCopyPackets}},

	{"reduced, copied and sent packets", twoRanks(`
recspkt memory i[1] x1, s[0] x1 packets, s[0] x1 packets, s[1] x1 packets, s[1] x1 packets, s[1] x1 packets -> o[0] x1, s[2] x1 packets, 1.s[0] x1 packets
upkt s[2] x1 packets -> o[1] x1`, `
ppkt memory i[0] x2 -> 0.s[0] x2 packets
upkt s[0] x1 packets -> o[0] x1
copy i[0] x1 -> o[1] x1`), [2][2]int32{{82, 82}, {82, 10}}, []ir.OpKind{ir.OpReduceCopySendPackets}},

	{"ports", twoRanks(`
put port on 1 i[0] x1 -> 1.o[0] x1
signal port on 1
flush port on 1
wait port on 1 1`, `
pws port on 1 i[0] x1 -> 0.o[0] x1
pwsf port on 1 i[1] x1 -> 0.o[1] x1
wait port on 1
copy i[1] x1 -> o[1] x1`), [2][2]int32{{10, 20}, {1, 20}}, []ir.OpKind{ir.OpFlush, ir.OpPutSignal, ir.OpPutSignalFlush}},

	// Via ports, packets go as they are.
	{"packets via ports", twoRanks(`
cpkt i[0] x2 -> s[0] x2 packets
nop
ppkt port on 1 s[0] x2 packets -> 1.s[0] x2 packets
upkt s[2] x2 packets -> o[0] x2`, `
rppkt port on 1 s[0] x2 packets -> 0.s[2] x2 packets
upkt s[0] x2 packets -> o[0] x2`), [2][2]int32{{1, 2}, {1, 2}}, nil},

	// Three thread blocks: the second waits for the first by a semaphore that starts at
	// 1, twice, and all meet at a barrier before the third copies.
	{"semaphores and barriers", twoRanks(`
sem_acquire on 0
nop
copy i[0] x1 -> s[0] x1
nop
sem_release on 1
barrier on 7 of 3
tb 1
sem_acquire on 1
nop
copy s[0] x1 -> s[1] x1
barrier on 7 of 3
tb 2
barrier on 7 of 3
copy s[1] x1 -> o[0] x1
copy i[1] x1 -> o[1] x1`, `
copy i[0] x2 -> o[0] x2`), [2][2]int32{{1, 2}, {10, 20}}, []ir.OpKind{ir.OpSemaphoreAcquire, ir.OpSemaphoreRelease, ir.OpBarrier}},

	// In units of 48 bytes of two chunks, a half each in two thread blocks.
	{"pipeline", twoRanks(`
pipeline unit 48 chunks 2 {
copy i[0] x2 -> s[0] x2
nop
sem_release on 1
}
tb 1
pipeline unit 48 chunks 2 {
sem_acquire on 1
nop
copy s[0] x2 -> o[0] x2
}`, `
copy i[0] x2 -> o[0] x2 part 0 of 3
tb 1
copy i[0] x2 -> o[0] x2 part 1 of 3
tb 2
copy i[0] x2 -> o[0] x2 part 2 of 3`), [2][2]int32{{1, 2}, {10, 20}}, []ir.OpKind{ir.OpPipeline}},

	// Both thread blocks of rank 0 signal on one channel and both of rank 1 wait there,
	// three times in all.
	{"a channel of several thread blocks", twoRanks(`
copy i[0] x2 -> o[0] x2
signal memory on 0
tb 1
signal memory on 0 0`, `
wait memory on 0
tb 1
wait memory on 0 0
copy i[0] x2 -> o[0] x2`), [2][2]int32{{1, 2}, {10, 20}}, nil},
}

// twoRanks is a program of the operations of each rank's first thread block, and what
// follows it.
func twoRanks(first, second string) string {
	const head = "gpu %d input=2 output=2 scratch=4\nchannels memory %d\nchannels port %d\nsemaphores 1 0\ntb 0"
	return fmt.Sprintf(head, 0, 1, 1) + first + "\n" + fmt.Sprintf(head, 1, 0, 0) + second
}

// ints are chunks of n int32 each, little endian.
func ints(n int, chunks ...int32) []byte {
	var b []byte
	for _, v := range chunks {
		for range n {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	}
	return b
}

// TestOperations runs every kind of operation on the devices, at sizes of one packet,
// one vector and many of them, with one thread and several, with one scratch and two
// halves, in a graph and without.
func TestOperations(t *testing.T) {
	lib := library(t)
	covered := map[ir.OpKind]bool{}
	for _, c := range handOps {
		for _, k := range c.kinds {
			covered[k] = true
		}
		for _, flags := range []string{"", " double-scratch"} {
			t.Run(c.name+flags, func(t *testing.T) {
				p := oneProgram(t, "allreduce ranks 2 factor 2 split 1", "LL", flags, c.text)
				x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0, 1}, Watchdog: patience})
				for i, n := range []int{4, 12, 64, 1000} { // int32 a chunk
					for _, threads := range []int32{0, 1, 7} {
						if !onHost(lib) {
							threads *= 32
						}
						o := cuda.Options{Threads: threads, Graph: i == 2}
						if flags != "" { // else a rank's next packets could come too early
							o.Launches = 1 + i
						}
						handOp(t, x, c.want, n, o)
					}
				}
			})
		}
	}
	for k := ir.OpSync; k <= ir.OpPipeline; k++ {
		if k < ir.OpGroupStore || k > ir.OpGroupReduceStore {
			if !covered[k] {
				t.Errorf("no program is about %v", k)
			}
		}
	}
}

func handOp(t *testing.T, x *cuda.Program, want [2][2]int32, n int, o cuda.Options) {
	t.Helper()
	o.Bytes, o.DType, o.NoVerify, o.KeepOutputs = int64(8*n), runtime.Int32, true, true
	o.Inputs = [][]byte{ints(n, 1, 2), ints(n, 10, 20)}
	r, err := x.Run(context.Background(), o)
	if err != nil {
		t.Fatalf("%d elements a chunk, %d threads: %v", n, o.Threads, err)
	}
	for rank, w := range want {
		if got := r.Outputs[rank]; string(got) != string(ints(n, w[0], w[1])) {
			for i := range 2 * n {
				if v := int32(binary.LittleEndian.Uint32(got[4*i:])); v != w[i/n] {
					t.Fatalf("%d elements a chunk, %d threads: element %d of rank %d is %d, want %d", n, o.Threads, i, rank, v, w[i/n])
				}
			}
		}
	}
}

// TestOperationsMisaligned starts the buffers at odd places, and cuts ranges at multiples
// of 4 bytes, so that packets of 8 bytes don't fit.
func TestOperationsMisaligned(t *testing.T) {
	lib := library(t)
	for _, c := range handOps {
		for _, align := range []int32{4, 8, 16} {
			p := oneProgram(t, "allreduce ranks 2 factor 2 split 1", "LL", " double-scratch", c.text)
			p.OneSided.Alignment = align
			x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0, 1}, Watchdog: patience})
			for _, misalign := range []int32{0, 4, 8} {
				for _, n := range []int{1, 3, 37, 500} {
					if n = n * int(align) / 4; n%4 != 0 && align > 4 {
						n *= 2
					}
					handOp(t, x, c.want, n, cuda.Options{Misalign: misalign, Launches: 2})
				}
			}
		}
	}
}

// TestOneSidedTypes runs an allreduce of packets and one that reads and writes peers'
// memory with every data type and every reduction, on exact and random data.
func TestOneSidedTypes(t *testing.T) {
	lib := library(t)
	for name, p := range map[string]*ir.Program{
		"packets": oneProgram(t, "allreduce ranks 2 factor 2 split 1 in-place", "LL", " double-scratch", allPairsPackets),
		"reads":   oneProgram(t, "allreduce ranks 2 factor 2 split 1 in-place", "Simple", "", readReduceSend),
	} {
		x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0, 1}, Watchdog: patience})
		for d := runtime.FP32; d <= runtime.Uint64; d++ {
			for op := runtime.Sum; op <= runtime.Avg; op++ {
				for _, exact := range []bool{true, false} {
					r := right(t, x, cuda.Options{Bytes: 2 * 16 * 21, DType: d, Op: op, Seed: 7, Exact: exact})
					if r.Elements == 0 || r.Moved != 4*16*21 {
						t.Errorf("%s: %d elements compared, %d bytes moved", name, r.Elements, r.Moved)
					}
				}
			}
		}
	}
}

// TestFixedReductions runs a program whose operations reduce by different operators,
// none of them the run's.
func TestFixedReductions(t *testing.T) {
	lib := library(t)
	text := twoRanks(`
re max i[0] x1, i[1] x1 -> o[0] x1
re sum i[0] x1, i[1] x1 -> o[1] x1`, `
re min i[0] x1, i[1] x1 -> o[0] x1
re prod i[0] x1, i[1] x1 -> o[1] x1`)
	p := oneProgram(t, "alltoall ranks 2 factor 1 split 1", "Simple", "", text)
	x := open(t, lib, p, cuda.CommOptions{Watchdog: patience})
	handOp(t, x, [2][2]int32{{2, 3}, {10, 200}}, 8, cuda.Options{Op: runtime.Min})
}

// TestUnbalanced: every launch begins with the same semaphores and signals, whatever
// earlier ones have left of them.
func TestUnbalanced(t *testing.T) {
	lib := library(t)
	text := twoRanks(`
sem_acquire on 0
sem_release on 1 1 1
signal memory on 0 0 0
copy i[0] x2 -> o[0] x2`, `
wait memory on 0
copy i[0] x2 -> o[0] x2`)
	p := oneProgram(t, "allreduce ranks 2 factor 2 split 1", "Simple", "", text)
	x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0, 1}, Watchdog: 2 * time.Second})
	handOp(t, x, [2][2]int32{{1, 2}, {10, 20}}, 8, cuda.Options{Launches: 20})
}
