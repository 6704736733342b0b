package checker

import (
	"context"
	"fmt"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// The codes of this package's messages.
const (
	CodeProgram         = "bad-program"      // missing parts, sizes that contradict the collective
	CodeStep            = "bad-step"         // fields that don't fit the step's kind
	CodeBounds          = "bounds"           // offset + count outside a buffer
	CodeOverlap         = "overlap"          // a step whose source and destination overlap
	CodeDependency      = "bad-dependency"   // waits for what isn't there or never posts
	CodeConnectionOwner = "connection-owner" // two thread blocks on one end of a connection
	CodeCountMismatch   = "count-mismatch"   // the ends of a connection disagree
	CodeNoLink          = "no-link"          // a connection that the topology lacks
	CodeNoMemory        = "no-memory"        // a message of protocol Direct that stands in no memory
	CodeDeadlock        = "deadlock"
	CodeWrongResult     = "wrong-result"
	CodeInputClobbered  = "input-clobbered"
	CodeRace            = "race"
	CodeRaceAcross      = "race-across" // a race of one launch with the next, or with the caller
	CodeOrderDiffers    = "order-differs"
	CodeLeftover        = "leftover"  // signals that a launch leaves to the next
	CodeUndecided       = "undecided" // what one order of events doesn't decide
	CodeTooLarge        = "too-large" // beyond what the checker can hold
)

// Options narrow or widen a check; the zero value is right for most callers.
type Options struct {
	MinBytes    int64 // smallest size to judge, in bytes; 0 is the program's
	MaxBytes    int64 // largest size to judge, in bytes; 0 is the program's
	MaxMessages int   // messages of one code before the rest is only counted; 0 is 10
}

// Report is the verdict on a program.
type Report struct {
	Messages diag.List `json:"messages"`
	// Regimes are the numbers of chunks in a message that were judged, ascending:
	// the least of each class that gives every step the same number of messages.
	Regimes []int32 `json:"regimes"`
	// MinSlots is the least number of slots a connection with which the program
	// runs at every size of its window; 0 if none up to 2^20 is enough, if the
	// structure is wrong, or of a program of protocol Direct, which needs none.
	MinSlots int32 `json:"min_slots"`
	// SafeRegime is the least K judged with which the program runs with its own
	// slots, and from there on with every larger one; 0 if it runs with none.
	SafeRegime int32 `json:"safe_regime"`
	// SafeMaxBytes is the largest size of the window at which it runs: 0 if that is
	// the whole window, -1 if there is none.
	SafeMaxBytes int64 `json:"safe_max_bytes"`
	OK           bool  `json:"ok"` // no message is an error
	// OrderDiffers says that ranks add up the same element of an allreduce in
	// different orders, so that their results may differ in the last bits.
	OrderDiffers bool `json:"order_differs"`
	// Direct says that messages have no slots: there are no regimes, MinSlots is 0,
	// and a size decides nothing.
	Direct bool `json:"direct,omitempty"`
	// OneSided says that the program puts, gets, signals and waits. It has no slots
	// and no regimes.
	OneSided bool `json:"one_sided,omitempty"`
	// Races and RacesAcross count pairs of operations of a one-sided program that
	// touch the same memory in no order: within a launch, and of one launch with the
	// next or with its caller. They are warnings: the result of one launch is judged
	// for itself.
	Races       int `json:"races"`
	RacesAcross int `json:"races_across"`
}

// Err is nil for a program without errors, else the messages as one error.
func (r *Report) Err() error {
	if r.OK {
		return nil
	}
	return r.Messages
}

// Has reports whether a message has the code.
func (r *Report) Has(code string) bool {
	for _, m := range r.Messages {
		if m.Code == code {
			return true
		}
	}
	return false
}

// Summary is the verdict in one line without a full stop.
func (r *Report) Summary() string {
	if !r.OK {
		n := 0
		for _, m := range r.Messages {
			if m.Severity == diag.Error {
				n++
			}
		}
		return fmt.Sprintf("the check failed: %s", plural(n, "error"))
	}
	if r.OneSided {
		s := fmt.Sprintf("the check holds for one launch: result, no deadlock; %s within it, %d across launches",
			plural(r.Races, "race"), r.RacesAcross)
		if r.OrderDiffers {
			s += "; ranks add in different orders"
		}
		return s
	}
	races := "no races"
	if r.Has(CodeRace) {
		races += " that reach an output"
	}
	if r.Direct {
		s := fmt.Sprintf("the check holds: results, %s, no deadlock with 0 slots (Direct)", races)
		if r.OrderDiffers {
			s += "; ranks add in different orders"
		}
		return s
	}
	s := fmt.Sprintf("the check holds: results, %s, %s, no deadlock with %s or more",
		plural(len(r.Regimes), "size regime"), races, plural(int(r.MinSlots), "slot"))
	if r.OrderDiffers {
		s += "; ranks add in different orders"
	}
	return s
}

// Check judges p. The error is ctx's alone; whatever is wrong with p is in the
// report.
func Check(ctx context.Context, p *ir.Program, o Options) (*Report, error) {
	rep := &Report{}
	f := &findings{limit: o.MaxMessages}
	if f.limit <= 0 {
		f.limit = 10
	}
	if err := judge(ctx, p, o, rep, f); err != nil {
		return nil, fmt.Errorf("checking the program: %w", err)
	}
	rep.Messages = f.list()
	rep.OK = !rep.Messages.HasErrors()
	return rep, nil
}

func judge(ctx context.Context, p *ir.Program, o Options, rep *Report, f *findings) error {
	if p != nil && p.OneSided != nil {
		return judgeOneSided(ctx, p, o, rep, f)
	}
	m, err := newModel(ctx, p, f)
	if m == nil || err != nil {
		return err
	}
	if p.Direct() {
		if emptyWindow(m.p, o, f) {
			return nil
		}
		return judgeDirect(ctx, m, rep, f)
	}
	order, err := checkDeadlock(ctx, m, o, rep, f)
	if order == nil || err != nil {
		return err
	}
	if err := checkResult(ctx, m, order, rep, f); err != nil {
		return err
	}
	return checkRaces(ctx, m, order, f)
}

// findings collects messages, the first few of each code.
type findings struct {
	limit  int
	kept   diag.List
	counts []codeCount
}

type codeCount struct {
	code string
	n    int
	last *diag.Message // the last one kept
}

// admit counts a message of the code and reports whether it should be made at
// all, so that a program with a million errors costs a million additions.
func (f *findings) admit(code string) bool {
	for i := range f.counts {
		if f.counts[i].code == code {
			f.counts[i].n++
			return f.counts[i].n <= f.limit
		}
	}
	f.counts = append(f.counts, codeCount{code: code, n: 1})
	return f.limit >= 1
}

func (f *findings) add(m *diag.Message) {
	f.kept = append(f.kept, m)
	for i := range f.counts {
		if f.counts[i].code == m.Code {
			f.counts[i].last = m
		}
	}
}

// errorf admits and adds an error.
func (f *findings) errorf(pos diag.Pos, code, format string, args ...any) {
	if f.admit(code) {
		f.add(diag.Errorf(pos, code, format, args...))
	}
}

// any reports whether anything was found.
func (f *findings) any() bool { return len(f.kept) > 0 }

// hasErrors reports whether an error was found.
func (f *findings) hasErrors() bool { return f.kept.HasErrors() }

// has reports whether a message of the code was found.
func (f *findings) has(code string) bool {
	for _, c := range f.counts {
		if c.code == code {
			return true
		}
	}
	return false
}

// list is what was kept, with the number of what was not after each code's last.
func (f *findings) list() diag.List {
	for _, c := range f.counts {
		if more := c.n - f.limit; more > 0 && c.last != nil {
			c.last.Note(diag.Pos{}, "and %d more like this", more)
		}
	}
	return f.kept
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
