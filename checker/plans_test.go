package checker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/handed"
	"github.com/mscclsh/mscclsh/ir/plan"
)

// TestHandedPlans judges plans of others and compares with what is known of them:
// ok and n/a pass, or have races within a launch and no other error, HANG is a deadlock, LIMIT is refused by the reader, and the
// allreduces of older dialects, which nobody has run, come out right.
func TestHandedPlans(t *testing.T) {
	folder := handed.Plans(t)
	index, err := os.ReadFile(filepath.Join(folder, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(index)), "\n") {
		row := strings.Split(line, "\t")
		if i == 0 || len(row) < 6 {
			continue
		}
		want, _, _ := strings.Cut(row[5], " ")
		f, err := os.Open(filepath.Join(folder, row[0]))
		if err != nil {
			t.Fatal(err)
		}
		in, err := plan.Read(f, plan.Options{File: row[0]})
		f.Close()
		if want == "LIMIT" {
			if m := (*diag.Message)(nil); !errors.As(err, &m) && err == nil {
				t.Errorf("%s: read, want a refusal", row[0])
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		begin := time.Now()
		rep, err := checker.Check(context.Background(), in.Program, checker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-60s %-6v races %3d across %3d %v %s", row[0], rep.OK, rep.Races, rep.RacesAcross, time.Since(begin).Round(time.Millisecond), want)
		switch {
		case want == "HANG" && !rep.Has(checker.CodeDeadlock):
			t.Errorf("%s: no deadlock\n%v", row[0], rep.Messages)
		case want != "HANG" && slices.ContainsFunc(rep.Messages, func(m *diag.Message) bool {
			return m.Severity == diag.Error && m.Code != checker.CodeRace
		}), !rep.OK && want != "HANG" && rep.Races == 0, rep.Races > 0 && rep.OK && want == "ok":
			t.Errorf("%s: %v", row[0], rep.Messages)
		}
	}
}
