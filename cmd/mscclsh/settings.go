package main

import (
	"strings"
	"time"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

// Settings are what the tool's flags say. Zero means "not said" throughout.
type Settings struct {
	Emit           string // a format's name; "" for none
	File           string // where to emit to; "" is standard output
	Target         ir.Target
	Targeted       bool             // Target was asked for
	WritesXML      bool             // the script's text calls XML()
	Runtime        mscclxml.Reading // whose rules MSCCL XML is read by
	Literal        bool             // plans are read as their executor runs them
	Slots          int32            // messages in flight; 0 is the target's
	SlotBytes      int64            // payload of a slot; 0 is the target's
	MinBytes       int64            // size window; 0 is open
	MaxBytes       int64
	Disable        []string // passes to leave out
	DumpAfter      []string // passes (or "trace") whose result is dumped
	TimePass       bool
	CheckPass      bool
	Canonical      bool   // all ranks add in the order of the ranks
	DirectAsSimple bool   // a target without protocol Direct gets Simple for it
	Program        string // which program of the script
	MaxSteps       int64  // Starlark steps; 0 is the loader's limit

	Run        bool
	Size       int64 // bytes; None is not said
	DType      runtime.DType
	Op         runtime.ReduceOp
	Iterations int
	Counted    bool // Iterations was asked for
	InPlace    bool // the program must be in place
	OutOfPlace bool
	Seed       uint64
	Chaos      *cpu.Chaos // of --chaos-seed, else nil
	Data       string     // dataExact or dataRandom
	Input      string
	Output     string
	Trace      string // the file for a timeline; "" for none

	Backend  string  // backendCUDA, or the CPU
	Devices  []int32 // GPUs; nil is all there are
	Threads  int32   // of a thread block on a GPU; 0 is the library's choice
	Watchdog time.Duration
	Verify   string // verifyAuto ("" too), verifyDevice or verifyHost

	Sizes     []int64 // of bench; nil is benchSizes
	Warmup    int     // repetitions of bench; 0 is benchWarmup
	Launches  int     // of a repetition; 0 goes by the size
	Graph     bool
	Against   []string // of opponents
	CSV       bool
	BenchFlag string // one that only bench has and that was given

	Draw   drawSettings   // of draw alone
	Lesson lessonSettings // of tutorial alone
	Kernel kernelSettings // of kernel alone
	Table  tableSettings  // of table alone

	Quiet   bool
	JSON    bool
	Verbose bool // a table with all messages

	Strict      bool           // warnings fail too
	GPU         checker.Device // that thread blocks must fit; no name: none
	RanksPerGPU int32          // 0 is not said
	SARIF       bool
	Explain     string // a code, or explainAll; "" for none
}

// The kinds of generated input.
const (
	dataExact  = "exact"
	dataRandom = "random"
)

// newSettings are the settings without any flag.
func newSettings() *Settings {
	return &Settings{Size: ir.None, Iterations: 1, Seed: 1, Data: dataExact}
}

// validate finds flags that contradict each other.
func (s *Settings) validate() error {
	contradiction := func(a, b, why string) error {
		return badCall("flag-conflict", "--%s and --%s contradict each other: %s", a, b, why)
	}
	switch {
	case s.InPlace && s.OutOfPlace:
		return contradiction("in-place", "out-of-place", "a run is one or the other")
	case s.Quiet && s.Verbose:
		return contradiction("quiet", "verbose", "one asks for less, the other for more")
	case s.Quiet && s.JSON:
		return contradiction("quiet", "json", "--quiet prints no report")
	case s.JSON && s.Emit != "" && s.toStdout():
		return contradiction("json", "emit", "both want standard output; give -o FILE to one of them")
	case s.MinBytes > 0 && s.MaxBytes > 0 && s.MinBytes > s.MaxBytes:
		return contradiction("min-bytes", "max-bytes", "no size lies between "+
			formatSize(s.MinBytes)+" and "+formatSize(s.MaxBytes))
	}
	if err := s.checkBackend(); err != nil {
		return err
	}
	if err := s.validateJudging(); err != nil {
		return err
	}
	if !s.Draw.on && s.Emit == "" && s.File != "" && s.File != "-" {
		form := formatOfName(s.File)
		if form == nil || form.write == nil {
			return badCallHint("emit-form", "give --emit "+strings.Join(emitForms(), ", --emit ")+
				", or a name that ends in "+orList(endings()), "-o %s: what to write there is not known", s.File)
		}
		s.Emit = form.Name
	}
	return s.checkForm()
}

// toStdout reports whether what is emitted goes to standard output.
func (s *Settings) toStdout() bool { return s.File == "" || s.File == "-" }
