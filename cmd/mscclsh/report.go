package main

import (
	"encoding/json"
	"io"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/runtime"
)

// Report is all that one call has to say; --json prints it as it stands here, so
// a field once here keeps its name and its unit. Parts that did not happen are
// absent.
type Report struct {
	OK       bool          `json:"ok"`
	Errors   []jsonMessage `json:"errors,omitempty"` // what ended the call early
	Program  *ProgramPart  `json:"program,omitempty"`
	Read     *ReadPart     `json:"read,omitempty"` // of a program that was read, not compiled
	Compiled *CompiledPart `json:"compiled,omitempty"`
	Check    *CheckPart    `json:"check,omitempty"`
	Exported *ExportedPart `json:"exported,omitempty"`
	Run      *RunPart      `json:"run,omitempty"`
	Bench    *BenchPart    `json:"bench,omitempty"`
	Timeline *TimelinePart `json:"timeline,omitempty"`
	Emitted  *EmittedPart  `json:"emitted,omitempty"`
	More     []Report      `json:"more,omitempty"` // on a file's other mode, or further programs of a Python script
}

// ReadPart says what kind of file it was, and who else would take it.
type ReadPart struct {
	Format   string        `json:"format"`
	Rules    string        `json:"rules,omitempty"` // whose, or of which dialect
	Runtimes []string      `json:"runtimes,omitempty"`
	Refusals []RefusalPart `json:"refusals,omitempty"`
	Notes    []jsonMessage `json:"notes"`

	list diag.List // as Notes
}

// RefusalPart says why a runtime would not take a file.
type RefusalPart struct {
	Runtime string `json:"runtime"`
	Reason  string `json:"reason"`
	Line    int32  `json:"line,omitempty"`
	Col     int32  `json:"col,omitempty"`
}

// ExportedPart says what became of a two-sided program on its way into a plan.
type ExportedPart struct {
	ThreadBlocks    int           `json:"thread_blocks"`
	MaxThreadBlocks int           `json:"max_thread_blocks_per_rank"`
	Channels        int           `json:"channels"` // most of one rank
	Operations      int           `json:"operations"`
	MinBytes        int64         `json:"min_bytes"`
	MaxBytes        int64         `json:"max_bytes"` // 0 is no limit
	Check           *CheckPart    `json:"check"`
	Notes           []jsonMessage `json:"notes"`

	list diag.List // as Notes
}

// ProgramPart says which program it is.
type ProgramPart struct {
	Name       string `json:"name"`
	Source     string `json:"source"`
	Collective string `json:"collective"`
	Topology   string `json:"topology"`
	Ranks      int32  `json:"ranks"`
	Chunks     int32  `json:"chunks"` // that a buffer is cut into
	Instances  int32  `json:"instances"`
	Protocol   string `json:"protocol"`
	InPlace    bool   `json:"in_place"`
}

// CompiledPart says what the compiler made.
type CompiledPart struct {
	Target            string        `json:"target,omitempty"` // absent for a program that was read, not compiled
	ThreadBlocks      int           `json:"thread_blocks"`
	MaxThreadBlocks   int           `json:"max_thread_blocks_per_rank"`
	Channels          int           `json:"channels"`
	OneSided          bool          `json:"one_sided,omitempty"`
	ChunkOperations   int           `json:"chunk_operations"`
	StepsBefore       int           `json:"steps_before_fusion"`
	Steps             int           `json:"steps"` // nops not counted
	Nops              int           `json:"nops"`
	DependenciesFound int           `json:"dependencies_found"`
	Dependencies      int           `json:"dependencies"`
	ScratchChunks     int64         `json:"scratch_chunks"`              // of all ranks
	MaxScratchChunks  int32         `json:"max_scratch_chunks_per_rank"` // of one
	Slots             int32         `json:"slots"`
	SlotBytes         int64         `json:"slot_bytes"`
	MinBytes          int64         `json:"min_bytes"`
	MaxBytes          int64         `json:"max_bytes"` // 0 is no limit
	Notes             []jsonMessage `json:"notes"`
	Passes            []PassPart    `json:"passes,omitempty"` // with --time-passes

	list diag.List // as Notes
}

// PassPart is how long one pass took.
type PassPart struct {
	Pass string `json:"pass"`
	NS   int64  `json:"ns"`
}

// CheckPart is the checker's verdict.
type CheckPart struct {
	Holds        bool          `json:"holds"`
	Regimes      []int32       `json:"regimes"` // chunks in a message
	MinSlots     int32         `json:"min_slots"`
	SafeRegime   int32         `json:"safe_regime"`    // least regime from which on it runs with its own slots; 0: none
	SafeMaxBytes int64         `json:"safe_max_bytes"` // largest size that is safe; 0 is the whole window, -1 none of it
	OrderDiffers bool          `json:"order_differs"`
	OneSided     bool          `json:"one_sided"`
	Direct       bool          `json:"direct,omitempty"` // no slots, and no regimes
	Demanded     bool          `json:"demanded"`         // false: the collective demands nothing of the outputs
	Races        int           `json:"races"`            // of a one-sided program, which is judged for one launch: within it,
	RacesAcross  int           `json:"races_across"`     // and with the next
	GPU          string        `json:"gpu,omitempty"`    // that its thread blocks were to fit, with --gpu
	GPURanks     int32         `json:"ranks_per_gpu,omitempty"`
	Messages     []jsonMessage `json:"messages"`

	list   diag.List // as Messages
	advise bool      // --canonical-order would be of use
}

// RunPart is what running it gave. Bandwidths are in GB/s, 10^9 bytes a second.
type RunPart struct {
	Bytes      int64              `json:"bytes"`
	Elements   int64              `json:"elements"`
	DType      string             `json:"dtype"`
	Op         string             `json:"op"`
	Root       int32              `json:"root"` // -1 without one
	Iterations int                `json:"iterations"`
	MinNS      int64              `json:"min_ns"`
	MedianNS   int64              `json:"median_ns"`
	AlgBW      float64            `json:"algbw_gbs"`
	BusBW      float64            `json:"busbw_gbs"`
	Moved      int64              `json:"moved_bytes"` // over connections, in one iteration
	MoveRate   float64            `json:"move_gbs"`
	Verified   bool               `json:"verified"` // compared, and nothing was wrong
	Compared   int64              `json:"compared_elements"`
	Wrong      int64              `json:"wrong_elements"`
	Unbounded  int64              `json:"unjudged_elements"` // that could overflow
	MaxError   float64            `json:"max_error"`
	MaxBound   float64            `json:"max_error_allowed"`
	Mismatches []runtime.Mismatch `json:"mismatches"`
	Devices    []string           `json:"devices,omitempty"` // GPUs that it ran on; absent on the CPU
}

// EmittedPart says what was written where.
type EmittedPart struct {
	Form string `json:"form"`
	File string `json:"file"`
}

// jsonMessage is diag.Message with stable keys.
type jsonMessage struct {
	Severity   string     `json:"severity"`
	Code       string     `json:"code,omitempty"`
	File       string     `json:"file,omitempty"`
	Line       int32      `json:"line,omitempty"`
	Col        int32      `json:"col,omitempty"`
	Text       string     `json:"text"`
	Notes      []jsonNote `json:"notes,omitempty"`
	Suggestion string     `json:"suggestion,omitempty"`
}

type jsonNote struct {
	File string `json:"file,omitempty"`
	Line int32  `json:"line,omitempty"`
	Col  int32  `json:"col,omitempty"`
	Text string `json:"text"`
}

func jsonMessages(list diag.List) []jsonMessage {
	out := make([]jsonMessage, 0, len(list))
	for _, m := range list {
		j := jsonMessage{Severity: m.Severity.String(), Code: m.Code, File: m.Pos.File, Line: m.Pos.Line,
			Col: m.Pos.Col, Text: m.Text, Suggestion: m.Suggestion}
		for _, n := range m.Notes {
			j.Notes = append(j.Notes, jsonNote{n.Pos.File, n.Pos.Line, n.Pos.Col, n.Text})
		}
		out = append(out, j)
	}
	return out
}

// writeJSON prints the report as one object.
func (r *Report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
