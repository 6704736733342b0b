package cpu

import (
	"time"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// Options say what to run a program on.
type Options struct {
	Bytes      int64 // size as nccl-tests counts it; see runtime.NewLayout
	DType      runtime.DType
	Op         runtime.ReduceOp
	Iterations int    // measured runs, at least 1 (0 means 1)
	Warmup     int    // runs before them
	Seed       uint64 // of generated inputs
	Exact      bool   // generate inputs whose results must match bit for bit

	// Inputs, if not nil, are the elements of each rank instead of generated ones;
	// see runtime.ReadInputs and runtime.SizeOf.
	Inputs [][]byte

	KeepOutputs bool // put the outputs into the report
	NoVerify    bool // skip the comparison with the reference; in place, runs then go on from each other's results
	AnySize     bool // run sizes outside of the program's window, which may deadlock
	Events      bool // record the last run's steps

	Chaos *Chaos // not nil: one thread block at a time, in an order drawn by a seed

	// Progress, if not nil, is called now and then from one goroutine at a time.
	Progress func(Progress)
}

// Progress tells how far a run is.
type Progress struct {
	Phase     string  // "run" or "verify"
	Iteration int     // of the runs, from 0, warm-up included
	Total     int     // runs, warm-up included
	Done      float64 // of this run or comparison, 0 to 1
}

// Report is what came of a run.
type Report struct {
	Bytes       int64 `json:"bytes"`        // really run; see runtime.NewLayout
	PaddedBytes int64 `json:"padded_bytes"` // moved by the program, padding included
	Regime      int32 `json:"regime"`       // chunks a message carries (K); 1 for one-sided programs; 0 with Direct, all of a step
	Tiles       int64 `json:"tiles"`
	Workers     int   `json:"workers"`     // goroutines: thread blocks
	Connections int   `json:"connections"` // ends of channels of one-sided programs

	Messages int64           `json:"messages"`    // over all connections, a run; signals of one-sided programs
	Moved    int64           `json:"moved_bytes"` // payload between ranks, a run
	Times    []time.Duration `json:"times_ns"`    // of the measured runs
	Min      time.Duration   `json:"min_ns"`
	Median   time.Duration   `json:"median_ns"`
	AlgBW    float64         `json:"algbw_gbs"` // GB/s by the median, as nccl-tests
	BusBW    float64         `json:"busbw_gbs"`
	MoveRate float64         `json:"move_gbs"` // Moved by the median, GB/s

	Verified   bool               `json:"verified"` // compared, and nothing was wrong
	Compared   int64              `json:"compared"` // elements, inputs included
	Wrong      int64              `json:"wrong"`
	Unbounded  int64              `json:"unbounded"` // elements that could overflow: not judged
	MaxError   float64            `json:"max_error"`
	MaxBound   float64            `json:"max_bound"` // largest error that was allowed
	Mismatches []runtime.Mismatch `json:"mismatches,omitempty"`

	Outputs [][]byte   `json:"-"` // user's elements a rank, if asked for
	Events  []ir.Event `json:"-"` // if asked for, by rank, thread block and time
}
