package checker

import (
	"context"
	"testing"
)

// Every code is explained once, with an example that has just such a finding:
// the gravest of its messages bears the code.
func TestEveryCodeIsExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Explanations() {
		if seen[e.Code] || e.Title == "" || e.Text == "" || e.Fix == "" {
			t.Errorf("%s: explained twice or not wholly", e.Code)
		}
		seen[e.Code] = true
		found, err := e.Judge(context.Background())
		if err != nil {
			t.Errorf("%s: %v", e.Code, err)
			continue
		}
		has := false
		for _, m := range found {
			has = has || m.Code == e.Code
			if m.Severity > e.Severity || m.Code == e.Code && m.Severity != e.Severity {
				t.Errorf("%s: the example has a graver finding, or another severity than %v: %v", e.Code, e.Severity, m)
			}
		}
		if !has {
			t.Errorf("%s: the example has other findings:\n%v", e.Code, found)
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
