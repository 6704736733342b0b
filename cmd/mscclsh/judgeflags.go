package main

import (
	"fmt"
	"math"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/machine"
)

// explainAll is the value of --explain that lists the classes of findings.
const explainAll = "all"

// judgeFlags are about the verdict: what counts as wrong, and how it is told.
func judgeFlags() []toolFlag {
	return []toolFlag{
		{Name: "strict", Help: "let warnings fail too: exit code 1",
			set: yes(func(s *Settings, v bool) { s.Strict = v })},
		{Name: "gpu", Arg: "NAME", Values: gpuNames(),
			Help: "check that all thread blocks of a rank run at once on this GPU",
			set: func(s *Settings, v string) error {
				g, err := machine.GPUByName(v)
				if err != nil {
					return fmt.Errorf("gpu: got %q, want %s", v, orList(gpuNames()))
				}
				s.GPU = checker.Device{Name: g.Name, SMs: g.SMs}
				return nil
			}},
		{Name: "ranks-per-gpu", Arg: "N", Default: "1", Help: "how many ranks share a GPU (--gpu)",
			set: positive("ranks-per-gpu", math.MaxInt32, func(s *Settings, n int64) { s.RanksPerGPU = int32(n) })},
		{Name: "sarif", Help: "print all findings as SARIF 2.1.0, for editors and continuous integration (mscclsh check)",
			set: yes(func(s *Settings, v bool) { s.SARIF = v })},
		{Name: "explain", Arg: "CODE", Values: append(findingCodes(), explainAll),
			Help: "say what findings of a class mean, with an example; all lists the classes (mscclsh check)",
			set: func(s *Settings, v string) error {
				if v == "" {
					return fmt.Errorf("explain: got %q, want a code, or %s for the list of them", v, explainAll)
				}
				s.Explain = v
				return nil
			}},
	}
}

// onlyOfCheck are the flags that no other command has.
var onlyOfCheck = [...]string{"sarif", "explain"}

// gpuNames are the GPUs whose size is known, none if the table of them is broken:
// whoever names one hears of that.
func gpuNames() []string {
	list, err := machine.GPUs()
	if err != nil {
		return nil
	}
	names := make([]string, len(list))
	for i, g := range list {
		names[i] = g.Name
	}
	return names
}

// findingCodes are the classes of the checker's findings.
func findingCodes() []string {
	var codes []string
	for _, e := range checker.Explanations() {
		codes = append(codes, e.Code)
	}
	return codes
}

// validateJudging finds contradictions among the flags about the verdict.
func (s *Settings) validateJudging() error {
	switch {
	case s.RanksPerGPU > 0 && s.GPU.Name == "":
		return badCallHint("flag-unused", "name the GPU with --gpu "+orList(gpuNames()), "--ranks-per-gpu means nothing without --gpu")
	case s.SARIF && s.JSON:
		return badCall("flag-conflict", "--sarif and --json contradict each other: both want standard output")
	case s.SARIF && s.Quiet:
		return badCall("flag-conflict", "--sarif and --quiet contradict each other: --quiet prints no report")
	}
	return nil
}
