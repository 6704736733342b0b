package checker

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// Every code is explained once, with an example that has just such a finding:
// the gravest of its messages bears the code. "undecided" takes a program too
// large to be an example, and what does not fit is right on another GPU.
func TestEveryCodeIsExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Explanations() {
		if seen[e.Code] || e.Title == "" || e.Text == "" || e.Fix == "" {
			t.Errorf("%s: explained twice or not wholly", e.Code)
		}
		seen[e.Code] = true
		if e.Example == "" {
			if e.Code != CodeUndecided && e.Code != CodeFit { // Fit has tests of its own
				t.Errorf("%s has no example", e.Code)
			}
			continue
		}
		p, err := ir.ParseProgram(strings.NewReader(e.Example), e.Code+".txt")
		if err != nil {
			t.Errorf("%s: the example can't be read: %v", e.Code, err)
			continue
		}
		r, err := Check(context.Background(), p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Has(e.Code) {
			t.Errorf("%s: the example has other findings:\n%v", e.Code, r.Messages)
		}
		for _, m := range r.Messages {
			if m.Severity > e.Severity || m.Code == e.Code && m.Severity != e.Severity {
				t.Errorf("%s: the example has a graver finding, or another severity than %v: %v", e.Code, e.Severity, m)
			}
		}
		var again bytes.Buffer
		if err := p.WriteText(&again); err != nil {
			t.Errorf("%s: %v", e.Code, err)
		}
	}
	for _, code := range codesInUse {
		if !seen[code] {
			t.Errorf("%s is not explained", code)
		}
	}
	if _, ok := Explain("no-such-code"); ok {
		t.Error("a code that there is not was explained")
	}
}

// codesInUse are the constants of this package.
var codesInUse = []string{CodeProgram, CodeStep, CodeBounds, CodeOverlap, CodeDependency, CodeConnectionOwner, CodeCountMismatch,
	CodeNoLink, CodeNoMemory, CodeDeadlock, CodeWrongResult, CodeInputClobbered, CodeRace, CodeRaceAcross, CodeOrderDiffers, CodeLeftover,
	CodeUndecided, CodeFit, CodeTooLarge}
