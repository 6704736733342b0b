package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// Every result has a place and a code, and what both modes of a file have is said
// once; the messages themselves stay as they were.
func TestLocated(t *testing.T) {
	at := diag.Pos{File: "a.star", Line: 3, Col: 5}
	nowhere := diag.Errorf(diag.Pos{}, "does-not-fit", "too many")
	list := diag.List{
		diag.Errorf(at, "race", "no order"),
		nowhere,
		diag.Errorf(at, "race", "no order"),
		diag.Errorf(at, "race", "no order").Note(diag.Pos{}, "another witness"),
		{Severity: diag.Error, Text: "something went wrong"},
		diag.Errorf(diag.Pos{Line: 7}, "deadlock", "a cycle"),
	}
	want := diag.List{
		diag.Errorf(at, "race", "no order"),
		diag.Errorf(diag.Pos{File: "f.xml"}, "does-not-fit", "too many"),
		diag.Errorf(at, "race", "no order").Note(diag.Pos{}, "another witness"),
		diag.Errorf(diag.Pos{File: "f.xml"}, "error", "something went wrong"),
		diag.Errorf(diag.Pos{File: "f.xml", Line: 7}, "deadlock", "a cycle"),
	}
	if d := cmp.Diff(want, located(list, "f.xml")); d != "" {
		t.Error(d)
	}
	if nowhere.Pos.IsValid() {
		t.Error("the message itself was given a place")
	}
}

// The report's parts are gathered in the order of the work, those of further
// programs last.
func TestMessagesOfReport(t *testing.T) {
	said := func(text string) diag.List { return diag.List{diag.Warningf(diag.Pos{}, "x", "%s", text)} }
	r := Report{
		More:     []Report{{Check: &CheckPart{list: said("other mode")}}},
		Exported: &ExportedPart{list: said("exported"), Check: &CheckPart{list: said("plan")}},
		Check:    &CheckPart{list: said("check")},
		Compiled: &CompiledPart{list: said("compiled")},
		Read:     &ReadPart{list: said("read")},
	}
	var got []string
	for _, m := range r.messages() {
		got = append(got, m.Text)
	}
	if d := cmp.Diff([]string{"read", "compiled", "check", "exported", "plan", "other mode"}, got); d != "" {
		t.Error(d)
	}
	if n := len(warnings(append(r.messages(), diag.Errorf(diag.Pos{}, "x", "an error")))); n != 6 {
		t.Errorf("got %d warnings, want 6", n)
	}
}
