package main

import (
	"errors"
	"slices"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/sarif"
)

// writeSARIF prints findings for editors and continuous integration.
func (s *Session) writeSARIF(list diag.List) error {
	tool := sarif.Tool{Name: "mscclsh", Version: version}
	for _, e := range checker.Explanations() {
		tool.Rules = append(tool.Rules, sarif.Rule{ID: e.Code, Title: e.Title, Text: e.Text, Fix: e.Fix, Severity: e.Severity})
	}
	if err := sarif.Write(s.Out, tool, list); err != nil {
		return cannot("writing the report: %w", err)
	}
	return nil
}

// located gives each message of a file a place: the file as a whole where none is
// known. What is said twice, of both modes of a file, is one result.
func located(list diag.List, file string) diag.List {
	var out diag.List
	said := make(map[string]bool)
	for _, m := range list {
		at := *m
		if at.Pos.File == "" {
			at.Pos.File = file
		}
		if at.Code == "" {
			at.Code = "error"
		}
		key := at.Code + "\n" + at.Error()
		if !said[key] {
			said[key] = true
			out = append(out, &at)
		}
	}
	return out
}

// messages are all that the report says of its programs, in the order in which it
// was found.
func (r *Report) messages() diag.List {
	var list diag.List
	if r.Read != nil {
		list = append(list, r.Read.list...)
	}
	if r.Compiled != nil {
		list = append(list, r.Compiled.list...)
	}
	if r.Check != nil {
		list = append(list, r.Check.list...)
	}
	if r.Exported != nil {
		list = slices.Concat(list, r.Exported.list, r.Exported.Check.list)
	}
	for i := range r.More {
		list = append(list, r.More[i].messages()...)
	}
	return list
}

// warnings are those among messages.
func warnings(list diag.List) diag.List {
	return slices.DeleteFunc(slices.Clone(list), func(m *diag.Message) bool { return m.Severity != diag.Warning })
}

// wrong reports whether the call ends with exit code 1 for what the report says:
// errors, and warnings if they count.
func (s *Session) wrong() bool {
	return s.report.failed() || s.Set.Strict && len(warnings(s.report.messages())) > 0
}

// strictError says that warnings fail the call.
func strictError(list diag.List) error {
	return &codedError{exitWrong, diag.Errorf(diag.Pos{}, "strict", "--strict: %s, and none is allowed", plural(int64(len(list)), "warning"))}
}

// tellStrict is strictError; --quiet has left the warnings out, so they are told.
func (s *Session) tellStrict() error {
	list := warnings(s.report.messages())
	if s.Set.Quiet {
		writeMessages(s.Err, s.errStyle, spoken(list))
	}
	return strictError(list)
}

// reportSARIF prints the findings of a call about one file that ended with err. Of
// a wrong call there are none.
func (s *Session) reportSARIF(err error) error {
	if exitCode(err) > exitWrong {
		return nil
	}
	list := s.report.messages()
	for _, m := range diag.Messages(err) {
		if !errors.Is(err, errReported) && m.Code != "strict" {
			list = append(list, m)
		}
	}
	return s.writeSARIF(located(list, s.input))
}
