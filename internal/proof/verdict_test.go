package proof

import (
	"context"
	"fmt"
	"math/bits"
	"strings"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// classes is a set of kinds of errors.
type classes uint16

// The kinds of errors, in the order of classNames.
const (
	badProgram classes = 1 << iota
	badStep
	bounds
	overlap
	dependency
	noLink
	owner
	counts
	deadlock
	wrongResult
	clobbered
	race
	memoryless
)

var classNames = [...]string{
	checker.CodeProgram, checker.CodeStep, checker.CodeBounds, checker.CodeOverlap, checker.CodeDependency,
	checker.CodeNoLink, checker.CodeConnectionOwner, checker.CodeCountMismatch, checker.CodeDeadlock,
	checker.CodeWrongResult, checker.CodeInputClobbered, checker.CodeRace, checker.CodeNoMemory,
}

func (c classes) String() string {
	if c == 0 {
		return "right"
	}
	var names []string
	for ; c != 0; c &= c - 1 {
		names = append(names, classNames[bits.TrailingZeros16(uint16(c))])
	}
	return strings.Join(names, "+")
}

// verdict is what a judge says of a program.
type verdict struct {
	errors   classes
	deadRace bool  // a race that can't be observed, and none that can
	minSlots int32 // least slots a connection that do; 0 if none or if not asked for
}

// right reports whether nothing is wrong.
func (v verdict) right() bool { return v.errors == 0 }

func (v verdict) String() string {
	s := v.errors.String()
	if v.deadRace {
		s += ", a race that reaches no output"
	}
	return fmt.Sprintf("%s, %d slots", s, v.minSlots)
}

// checked is the verdict of the checker.
func checked(p *ir.Program) (verdict, *checker.Report, error) {
	rep, err := checker.Check(context.Background(), p, checker.Options{MaxMessages: 1})
	if err != nil {
		return verdict{}, nil, err
	}
	v := verdict{minSlots: rep.MinSlots}
	for _, m := range rep.Messages {
		switch {
		case m.Severity == diag.Error:
			c := classOf(m.Code)
			if c == 0 {
				return v, rep, fmt.Errorf("an error of no known class: %w", m)
			}
			v.errors |= c
		case m.Code == checker.CodeRace:
			v.deadRace = true
		}
	}
	// Only so many messages of a code are kept and errors come first, so beside a
	// race that matters the others may not show.
	v.deadRace = v.deadRace && v.errors&race == 0
	if rep.OK != v.right() {
		return v, rep, fmt.Errorf("the report is OK: %v, but has %v", rep.OK, v)
	}
	return v, rep, nil
}

func classOf(code string) classes {
	for i, name := range classNames {
		if name == code {
			return 1 << i
		}
	}
	return 0
}

// differ says how two verdicts differ, "" if they agree. Where a race decides what
// is observed, the result depends on the order of events, and each of the two has
// looked at some order.
func differ(got, want verdict) string {
	const results = wrongResult | clobbered
	if got.errors&want.errors&race != 0 {
		got.errors &^= results
		want.errors &^= results
	}
	if got == want {
		return ""
	}
	return fmt.Sprintf("got %v, want %v", got, want)
}
