package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/table"
)

// LintReport is what table lint prints with --json.
type LintReport struct {
	OK       bool          `json:"ok"`
	Findings []jsonMessage `json:"findings"`
}

// tableLint judges a table as a whole, and every program in it.
func (s *Session) tableLint(ctx context.Context, file string) error {
	t, notes, err := s.openTable(ctx, file)
	if err != nil {
		return err
	}
	findings := append(notes, t.Lint()...)
	more, err := s.judgeTable(ctx, t)
	if err != nil {
		return err
	}
	findings = append(findings, more...)
	s.begin("")
	warned := warnings(findings)
	strict := s.Set.Strict && len(warned) > 0
	if s.Set.JSON {
		err = s.writeTableJSON(LintReport{!findings.HasErrors() && !strict, jsonMessages(findings)})
	} else {
		writeMessages(s.Out, s.outStyle, findings)
		errors := slices.DeleteFunc(slices.Clone(findings), func(m *diag.Message) bool { return m.Severity != diag.Error })
		_, err = fmt.Fprintf(s.Out, "%s: %s, %s\n", plural(int64(len(t.Entries)), "entry"), plural(int64(len(errors)), "error"),
			plural(int64(len(warned)), "warning"))
	}
	switch {
	case err != nil:
	case findings.HasErrors():
		s.told = true
		return errReported
	case strict:
		return strictError(warned)
	}
	return err
}

// judgeTable has the checker judge the programs as they lie in the table, each in the
// range of its entry.
func (s *Session) judgeTable(ctx context.Context, t *table.Table) (diag.List, error) {
	var list diag.List
	for i := range t.Entries {
		e := &t.Entries[i]
		s.begin("checking " + e.Name)
		programs := map[bool]*ir.Program{} // by whether they are in place
		before := len(list)
		for _, inPlace := range []bool{false, true} {
			p, err := t.Program(e, inPlace)
			if err != nil {
				list = append(list, diag.Errorf(e.Pos(), "program", "%s, %s: its program makes no sense: %s", e.Name, modeName(inPlace), diag.Messages(err)[0].Text))
				continue
			}
			if p == nil {
				continue
			}
			programs[inPlace] = p
			m, err := judgeEntry(ctx, e, p)
			if err != nil {
				return nil, err
			}
			if m != nil {
				list = append(list, m)
			}
		}
		if len(list) > before {
			continue
		}
		if err := e.Misfit(programs[true], programs[false]); err != nil {
			list = append(list, diag.Errorf(e.Pos(), "program", "%s: %v", e.Name, err))
		}
	}
	return list, nil
}

// judgeEntry says what is wrong with a program in its entry's range, if anything is.
func judgeEntry(ctx context.Context, e *table.Entry, p *ir.Program) (*diag.Message, error) {
	rep, err := checkWindow(ctx, p)
	if err != nil || holds(rep) {
		return nil, err
	}
	m := diag.Errorf(e.Pos(), "unsafe-range", "%s, %s: unsafe range %s: %s", e.Name, modeName(p.Coll.InPlace), e.Range(), rep.Summary())
	for _, found := range rep.Messages {
		if against(found) && len(m.Notes) < maxTableNotes {
			m.Note(diag.Pos{}, "%s", found.Text)
		}
	}
	if rep.SafeMaxBytes > 0 && rep.SafeMaxBytes >= e.MinBytes {
		safe := table.Entry{MinBytes: e.MinBytes, MaxBytes: rep.SafeMaxBytes}
		m.Suggest("it is safe for %s", safe.Range())
	}
	return m, nil
}
