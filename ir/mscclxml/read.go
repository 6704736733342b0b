package mscclxml

import (
	"fmt"
	"io"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Reading is whose rules a file is read by.
type Reading uint8

// The readings. Plain takes every file whose meaning is unambiguous; the others
// read as that runtime's own parser does and lower the steps as it does.
const (
	Plain Reading = iota
	MSCCL
	Executor
	RCCL
)

var readingNames = [...]string{"plain", "msccl", "executor", "rccl"}

// String is the name used on the command line.
func (r Reading) String() string {
	if int(r) < len(readingNames) {
		return readingNames[r]
	}
	return fmt.Sprintf("Reading(%d)", r)
}

// ReadingNames lists the readings' names in order.
func ReadingNames() []string { return readingNames[:] }

// ParseReading reads a reading's name.
func ParseReading(s string) (Reading, error) {
	for i, n := range readingNames {
		if s == n {
			return Reading(i), nil
		}
	}
	return 0, fmt.Errorf("reading: got %q, want plain, msccl, executor or rccl", s)
}

// target is the runtime whose limits and transport the reading has.
func (r Reading) target() ir.Target {
	return [...]ir.Target{ir.TargetPlain, ir.TargetMSCCL, ir.TargetExecutor, ir.TargetRCCL}[r]
}

// The codes of the messages about files.
const (
	CodeSyntax     = "xml-syntax"     // not a file of this kind, or not readable as one
	CodeValue      = "xml-value"      // an attribute is missing or has no sensible value
	CodeInvalid    = "xml-invalid"    // readable, but without a meaning on any runtime
	CodeIncomplete = "xml-incomplete" // a rank has no program
	CodeHang       = "xml-hang"       // a step waits for what never comes
	CodeRefused    = "xml-refused"    // the runtime whose rules were asked for refuses the file
	CodeUndefined  = "xml-undefined"  // that runtime takes the file and does something undefined
	CodeTooLarge   = "xml-too-large"  // beyond what this reader holds
	CodeInferred   = "xml-inferred"   // a note: what the file doesn't say and was concluded
	CodeIgnored    = "xml-ignored"    // a note: what the file says and has no effect
	CodeNote       = "xml-note"       // any other note
)

// maxFile is the default limit on a file's length, in bytes; offsets in files
// are kept in 32 bits.
const maxFile = 256 << 20

// ReadOptions say how to read a file.
type ReadOptions struct {
	File    string  // for positions, and for inferring a collective that isn't named
	Runtime Reading // whose rules to apply
	// Holds reports whether p leaves what p.Coll demands in its outputs. It decides
	// what a file doesn't say: collective, mode, root. Without it a collective has
	// to be named somewhere, the mode is in place and a root the likeliest one.
	Holds   func(p *ir.Program) bool
	MaxFile int64 // bytes; 0 is 256 MiB, which is also the most
}

// Imported is what a file says.
type Imported struct {
	Programs []*ir.Program // one for each mode the file declares, in place first; at least one
	Notes    diag.List     // infos and warnings: what was inferred, ignored, done
	Coll     string        // the collective's name in the file; "" if it has none
	Bytes    int64         // length of the file
}

// Read reads an MSCCL XML program. Errors are a diag.List with positions in the
// file; their codes tell bad files (CodeSyntax, CodeValue) from programs that
// are wrong (CodeInvalid, CodeIncomplete, CodeHang). Time and memory are bounded
// by the file's length, whatever it declares.
func Read(r io.Reader, o ReadOptions) (*Imported, error) {
	if int(o.Runtime) >= len(readingNames) {
		return nil, fmt.Errorf("reading MSCCL XML: %s", o.Runtime)
	}
	data, err := readAll(r, &o)
	if err != nil {
		return nil, err
	}
	return read(data, o)
}

func readAll(r io.Reader, o *ReadOptions) (string, error) {
	limit := o.MaxFile
	if limit <= 0 || limit > maxFile {
		limit = maxFile
	}
	var data strings.Builder
	n, err := io.Copy(&data, io.LimitReader(r, limit+1))
	if err != nil {
		return "", fmt.Errorf("reading MSCCL XML: %w", err)
	}
	if n > limit {
		return "", diag.List{diag.Errorf(diag.Pos{File: o.File}, CodeTooLarge, "the file is longer than %d bytes", limit)}
	}
	return data.String(), nil
}

func read(data string, o ReadOptions) (*Imported, error) {
	c := &collector{src: newSource(data, o.File), o: o}
	if o.Runtime == Plain {
		c.scanPlain()
	} else {
		c.scanRuntime()
	}
	var b *build
	if !c.failed() {
		if o.Runtime == Plain {
			b = c.lowerPlain()
		} else {
			b = c.lowerRuntime()
		}
	}
	if c.failed() {
		return nil, c.errors()
	}
	programs := b.programs()
	if c.failed() {
		return nil, c.errors()
	}
	return &Imported{Programs: programs, Notes: c.notes, Coll: c.doc.algo.get("coll"), Bytes: int64(len(data))}, nil
}

// Refusal says why a runtime would not take a file.
type Refusal struct {
	Runtime Reading
	Reason  string   // each different reason once, separated by "; "
	Pos     diag.Pos // of the first of them
}

// Refusals reads a file by the rules of every runtime and returns those that
// refuse it, in the order msccl, executor, rccl. File is its name, for positions.
func Refusals(data []byte, file string) []Refusal {
	var out []Refusal
	text := string(data)
	for r := MSCCL; r <= RCCL; r++ {
		_, err := read(text, ReadOptions{File: file, Runtime: r})
		f := Refusal{Runtime: r}
		for _, m := range diag.Messages(err) {
			if m.Code != CodeRefused && m.Code != CodeSyntax {
				continue
			}
			if f.Reason != "" {
				f.Reason += "; "
			} else {
				f.Pos = m.Pos
			}
			f.Reason += m.Text
		}
		if f.Reason != "" {
			out = append(out, f)
		}
	}
	return out
}
