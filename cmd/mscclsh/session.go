package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Session carries out what a command line (or, one day, a prompt) asks for and
// remembers what came of it. It has no terminal: it writes to what it is given.
type Session struct {
	Out io.Writer // results
	Err io.Writer // everything else that is said to a person
	Set *Settings

	outStyle, errStyle style
	progress           *progress
	phase              string // what is being done, for an internal error

	report    Report
	told      bool          // the error was printed already
	program   *ir.Program   // the last one compiled or read
	phases    []*ir.Program // of --against phases
	from      diag.Pos      // where it began, invalid if it was read
	judgeOnly bool          // nothing is emitted or run
	asWritten bool          // plans are those that MSCCL++'s compiler makes of the script
	drawing   *drawing      // the program is drawn; nil otherwise
	benching  bool          // the program is measured at many sizes
	size      int64         // that bench is about, 0 outside
	auto      *autoPrograms // of protocol auto, for bench
	input     string        // the file that the call is about
	checked   *verdict      // of the script's last Check(), nil without one
	failed    bool          // a Check() of the script failed
	release   func()        // leaves Ctrl-C to the caller; nil if nobody listens for it
}

// NewSession makes a session that writes to out and err.
func NewSession(out, err io.Writer) *Session {
	return &Session{Out: out, Err: err, Set: newSettings(), outStyle: newStyle(out), errStyle: newStyle(err),
		progress: newProgress(err)}
}

// Close takes the progress line away.
func (s *Session) Close() { s.progress.end() }

// begin says what is being done.
func (s *Session) begin(what string) {
	s.phase = what
	s.progress.begin(what)
}

// guard runs do and makes an error of a panic: a defect of this program, never
// the user's fault, so it names what was being done and asks for a report.
func (s *Session) guard(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &codedError{exitMachine, internalError(s.phase, v, debug.Stack())}
		}
	}()
	return do()
}

func internalError(phase string, v any, stack []byte) error {
	doing := ""
	if phase != "" {
		doing = " while " + phase
	}
	m := diag.Errorf(diag.Pos{}, "internal", "internal error%s: %v", doing, v)
	for _, line := range strings.Split(string(stack), "\n") {
		// The frames of this module tell where; the full stack is for nobody's eyes.
		if at := strings.Index(line, "mscclsh/"); strings.HasPrefix(line, "\t") && at >= 0 && len(m.Notes) < 8 {
			m.Note(diag.Pos{}, "%s", strings.TrimSpace(line[at:]))
		}
	}
	m.Suggestion = "this is a defect of mscclsh: please report it with the script and the command line"
	return m
}

// finish prints what is left to say of a call that ended with err, and returns
// the error that decides the exit code.
func (s *Session) finish(ctx context.Context, err error) error {
	phase := s.phase
	s.begin("")
	s.told = true
	if err != nil && ctx.Err() != nil {
		err = interrupted(err, phase)
	}
	switch {
	case err != nil:
	case s.report.failed():
		err = errReported
	case s.wrong():
		err = s.tellStrict()
	case s.failed:
		err = &codedError{exitWrong, diag.Errorf(diag.Pos{}, "check", "a Check() of the script failed, on what was traced until then")}
	}
	s.report.OK = err == nil
	if err != nil && !errors.Is(err, errReported) {
		list := diag.Messages(err)
		s.report.Errors = jsonMessages(list)
		writeMessages(s.Err, s.errStyle, list)
	}
	switch {
	case s.Set.SARIF:
		if werr := s.reportSARIF(err); werr != nil && err == nil {
			err = werr
		}
	case s.Set.CSV && s.report.Bench != nil:
		if werr := s.report.writeCSV(s.Out); werr != nil && err == nil {
			err = werr
		}
	case s.Set.JSON:
		if werr := s.report.writeJSON(s.Out); werr != nil && err == nil {
			err = cannot("writing the report: %w", werr)
		}
	case s.Set.Quiet, s.drawing != nil, s.report.Program == nil, exitCode(err) > exitWrong:
	case s.emitsToOut():
		// Standard output is the program's; a person hears of a run alone.
		if s.report.Run != nil || s.wrong() {
			s.report.writeHuman(s.Err, s.errStyle)
		}
	default:
		s.report.writeHuman(s.Out, s.outStyle)
	}
	return err
}

// interrupted is the error of a call that Ctrl-C ended: what the run has to say
// about who waited for whom, else what was being done.
func interrupted(err error, phase string) error {
	for _, m := range diag.Messages(err) {
		if m.Code == "interrupted" {
			return &codedError{exitInterrupted, err}
		}
	}
	if phase != "" {
		return &codedError{exitInterrupted, fmt.Errorf("interrupted while %s", phase)}
	}
	return &codedError{exitInterrupted, errors.New("interrupted")}
}

// failed reports whether a part of the report says that the program is wrong.
func (r *Report) failed() bool {
	return r.Check != nil && !r.Check.Holds || r.Run != nil && r.Run.Wrong > 0 || r.Bench != nil && !r.Bench.Verified ||
		r.Exported != nil && !r.Exported.Check.Holds || slices.ContainsFunc(r.More, func(m Report) bool { return m.failed() })
}

// warn tells the user something that ends nothing.
func (s *Session) warn(m *diag.Message) {
	if !s.Set.Quiet {
		writeMessages(s.Err, s.errStyle, diag.List{m})
	}
}

// say prints a line for a person on the error stream.
func (s *Session) say(text string) {
	if s.Set.Quiet {
		return
	}
	fmt.Fprint(s.Err, text)
	if !strings.HasSuffix(text, "\n") {
		fmt.Fprintln(s.Err)
	}
}

// compileOptions are the compiler's, from the settings.
func (s *Session) compileOptions(d *ir.ChunkDAG) (compiler.Options, error) {
	n, err := s.compileSize(d)
	return compiler.Options{Target: s.target(d.Protocol), Slots: s.Set.Slots, SlotBytes: s.Set.SlotBytes,
		MinBytes: s.Set.MinBytes, MaxBytes: s.Set.MaxBytes, Disable: s.Set.Disable,
		CanonicalOrder: s.Set.Canonical, DirectAsSimple: s.Set.DirectAsSimple, Size: n}, err
}
