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

// twoSizes is how many pairs of operations meet in launches of two sizes alone. Derived by
// hand from where chunks lie:
//
// allreduce_naivy has one scratch of packets. Each rank hands out its sum and is through
// when it has read the other's, which nobody waits for: rank 1 reads s[2] while rank 0
// begins the next launch by writing s[0], which a chunk more than twice as large brings
// there; rank 0 reads s[3] while rank 1 writes s[1].
//
// reduce_pack lets rank 1 write packets to s[2] that nobody reads; rank 0 writes s[0] and
// s[1] next to them in the launch after the next.
//
// tbg_reduce_send lets three of four thread blocks of each rank write the other's o[1] in no
// order with anything, while all four of the other write its o[0]: 2 x 3 x 4.
var twoSizes = map[string]int{
	"dsl/single_node__allreduce_naivy__g2.json":      2,
	"dsl/executor_tests__reduce_pack.json":           2,
	"dsl/unit_tests__tbg__tbg_reduce_send_test.json": 24,
}

// TestHandedPlans judges plans of others and compares with what is known of them:
// ok and n/a pass, or have races within a launch and no other error, HANG is a deadlock, LIMIT is refused by the reader, and the
// allreduces of older dialects, which nobody has run, come out right. Races of launches of
// two sizes are those that are known, see twoSizes.
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
		rep, err := checker.Check(context.Background(), in.Program, checker.Options{MaxMessages: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-60s %-6v races %3d across %3d %v %s", row[0], rep.OK, rep.Races, rep.RacesAcross, time.Since(begin).Round(time.Millisecond), want)
		sized := 0
		for _, m := range rep.Messages {
			if strings.Contains(m.Text, "when a launch of") {
				sized++
			}
		}
		if sized != twoSizes[row[0]] {
			t.Errorf("%s: %d races of launches of two sizes, want %d\n%v", row[0], sized, twoSizes[row[0]], rep.Messages)
		}
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
