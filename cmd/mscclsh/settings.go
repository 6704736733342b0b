package main

import (
	"strings"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// Settings are what the tool's flags say. Zero means "not said" throughout.
type Settings struct {
	Emit      string // xml, text or dot; "" for none
	File      string // where to emit to; "" is standard output
	Target    ir.Target
	Slots     int32 // messages in flight; 0 is the target's
	SlotBytes int64 // payload of a slot; 0 is the target's
	MinBytes  int64 // size window; 0 is open
	MaxBytes  int64
	Disable   []string // passes to leave out
	DumpAfter []string // passes (or "trace") whose result is dumped
	TimePass  bool
	Program   string // which program of the script
	MaxSteps  int64  // Starlark steps; 0 is the loader's limit

	Run        bool
	Size       int64 // bytes; None is not said
	DType      runtime.DType
	Op         runtime.ReduceOp
	Iterations int
	InPlace    bool // the program must be in place
	OutOfPlace bool
	Seed       uint64
	Data       string // dataExact or dataRandom
	Input      string
	Output     string

	Quiet bool
	JSON  bool
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
	case s.Quiet && s.JSON:
		return contradiction("quiet", "json", "--quiet prints no report")
	case s.JSON && s.Emit != "" && s.toStdout():
		return contradiction("json", "emit", "both want standard output; give -o FILE to one of them")
	case s.MinBytes > 0 && s.MaxBytes > 0 && s.MinBytes > s.MaxBytes:
		return contradiction("min-bytes", "max-bytes", "no size lies between "+
			formatSize(s.MinBytes)+" and "+formatSize(s.MaxBytes))
	}
	if s.Emit == "" && s.File != "" && s.File != "-" {
		form, ok := formOfFile(s.File)
		if !ok {
			return badCallHint("emit-form", "give --emit "+strings.Join(emitForms, ", --emit ")+
				", or a name that ends in .xml, .txt or .dot", "-o %s: what to write there is not known", s.File)
		}
		s.Emit = form
	}
	return nil
}

// toStdout reports whether what is emitted goes to standard output.
func (s *Settings) toStdout() bool { return s.File == "" || s.File == "-" }

// emitForms are the values of --emit.
var emitForms = []string{"xml", "text", "dot"}

// formOfFile tells the form from the ending of a file's name.
func formOfFile(name string) (string, bool) {
	for _, e := range [...][2]string{{".xml", "xml"}, {".txt", "text"}, {".ir", "text"}, {".dot", "dot"}, {".gv", "dot"}} {
		if strings.HasSuffix(name, e[0]) {
			return e[1], true
		}
	}
	return "", false
}
