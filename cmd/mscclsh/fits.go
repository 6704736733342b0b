package main

import "github.com/mscclsh/mscclsh/ir/mscclxml"

// judgesOnly refuses flags of what check doesn't do.
func (s *Settings) judgesOnly() error {
	for _, f := range [...]struct {
		name  string
		given bool
	}{{"emit", s.Emit != ""}, {"emit-file", s.File != ""}, {"run", s.Run}, {"trace", s.Trace != ""}} {
		if f.given {
			return badCall("flag-unused", "--%s: check writes and runs nothing", f.name)
		}
	}
	if s.Explain != "" {
		return badCallHint("flag-unused", "mscclsh check --explain "+s.Explain, "--explain looks at no program")
	}
	return nil
}

// runs refuses flags of check where more is done.
func (s *Settings) runs() error {
	for i, given := range [...]bool{s.SARIF, s.Explain != ""} {
		if given {
			return badCall("flag-unused", "--%s is for mscclsh check", onlyOfCheck[i])
		}
	}
	if s.Lesson.flag != "" {
		return badCall("flag-unused", "--%s is for mscclsh tutorial", s.Lesson.flag)
	}
	return nil
}

// fits refuses flags that mean nothing for what the call is about: better than to
// let somebody believe that they did something.
func (s *Settings) fits(f *format) error {
	var flag, use string
	switch {
	case s.Runtime != mscclxml.Plain && f.Name != "xml":
		flag, use = "runtime", "for MSCCL XML"
	case s.Literal && f.Name != "plan":
		flag, use = "literal", "for MSCCL++ plans"
	case f.script:
	case s.Canonical:
		flag, use = "canonical-order", "for scripts"
	case len(s.Disable) > 0:
		flag, use = "disable", "for scripts"
	case len(s.DumpAfter) > 0:
		flag, use = "dump-after", "for scripts"
	case s.TimePass:
		flag, use = "time-passes", "for scripts"
	case s.CheckPass:
		flag, use = "check-passes", "for scripts"
	case s.against(againstPhases):
		flag, use = "against phases", "for scripts"
	case s.Program != "":
		flag, use = "program", "for scripts"
	}
	if flag == "" {
		return nil
	}
	return badCall("flag-unused", "--%s is %s; this is %s", flag, use, f.Title)
}
