package cuda

import (
	"time"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// Verify says where values are checked.
type Verify uint8

// Where values are checked. On the device that has them they neither cross the bus
// nor take memory of the host: inputs are made there, from the seed, such that every
// partial result is exact, and every element of every result must match bit for
// bit, padding included. That takes Exact and neither Inputs nor KeepOutputs.
const (
	VerifyAuto     Verify = iota // on the device above 64 MiB, if it can be, else on the host
	VerifyOnHost                 // against package runtime's reference
	VerifyOnDevice               // refused (code verify) where it can't be
)

// verifyOnHost is the largest size that VerifyAuto checks on the host, bytes.
const verifyOnHost = 64 << 20

// Options say what to run a program on.
type Options struct {
	Bytes int64 // size as nccl-tests counts it; see runtime.NewLayout
	DType runtime.DType
	Op    runtime.ReduceOp

	Repetitions int  // measured, at least 1 (0 means 1)
	Warmup      int  // not measured, before them
	Launches    int  // of one repetition, back to back; at least 1 (0 means 1)
	Graph       bool // a repetition is one replay of a graph of all its launches

	Threads  int32 // of a thread block; 0 is the library's choice
	Misalign int32 // bytes by which buffers start past a 256-byte boundary, whole elements

	Seed  uint64 // of generated inputs
	Exact bool   // generate inputs whose results must match bit for bit

	// Inputs, if not nil, are the elements of each rank instead of generated ones;
	// see runtime.ReadInputs and runtime.SizeOf.
	Inputs [][]byte

	KeepOutputs bool   // put the outputs into the report
	NoVerify    bool   // skip the comparison with the reference
	Verify      Verify // where else to compare
	Events      bool   // record the steps of one launch, after the measured ones
	AnySize     bool   // run sizes outside of the program's window, which may hang

	// Progress, if not nil, is called now and then from one goroutine at a time.
	Progress func(phase string, done float64)
}

// Report is what came of a run. Times are of one launch.
type Report struct {
	Bytes       int64 // really run; see runtime.NewLayout
	PaddedBytes int64 // moved by the program, padding included
	Regime      int32 // chunks that a message carries (K)
	TileBytes   int64 // of a chunk that one turn of the outer loop moves
	Tiles       int64
	Threads     int32 // of a thread block
	Registers   int32 // of a thread; 0 on a CPU
	Needed      int32 // thread blocks on the fullest device
	Resident    int32 // that fit there at once

	Messages int64 // over all connections, a launch
	Moved    int64 // payload between ranks in bytes, a launch

	Launches     int
	Nanoseconds  []float64 // of each repetition, over its launches
	Min, Median  time.Duration
	AlgBW, BusBW float64 // GB/s by the median, as nccl-tests

	Verified bool // compared, and nothing was wrong
	runtime.Verdict

	Outputs [][]byte   // user's elements a rank, if asked for
	Events  []ir.Event // if asked for, by rank, thread block and time
}
