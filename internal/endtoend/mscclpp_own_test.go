package endtoend

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/checker"
)

// ownArgs are the arguments of the scripts in testdata/mscclpp that need some.
var ownArgs = map[string]string{"put": "--name put", "spec": "--num_gpus 3"}

// Scripts in the style of MSCCL++'s, which together call every method of its
// language, compile to the operations that follow by hand from the language's
// rules. The file beside each, .ops, lists them for some of its thread blocks.
func TestScriptsInTheStyleOfMSCCLPP(t *testing.T) {
	files, err := filepath.Glob("testdata/mscclpp/*.py")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".py")
		t.Run(name, func(t *testing.T) {
			p, err := compileScript(".", filepath.ToSlash(f), strings.Fields(ownArgs[name]), 0)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(strings.TrimSuffix(f, ".py") + ".ops")
			if err != nil {
				t.Fatal(err)
			}
			want, got := parseListing(string(text)), list(p)
			for _, title := range want.titles {
				a, b := strings.Join(want.lines[title], "\n  "), strings.Join(got.lines[title], "\n  ")
				if a != b {
					t.Errorf("%s:\n  %s\nwant\n  %s", title, b, a)
				}
			}
			r, err := checker.Check(context.Background(), p, checker.Options{})
			if err != nil || r.Err() != nil {
				t.Errorf("the checker: %v %v", err, r.Err())
			}
		})
	}
}

// parseListing reads what list writes; lines with # are remarks.
func parseListing(text string) *listing {
	l := &listing{lines: map[string][]string{}}
	title := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case line == "program" || strings.HasPrefix(line, "rank "):
			title = line
		default:
			l.add(title, line)
		}
	}
	return l
}
