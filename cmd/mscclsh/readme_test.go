package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/starlib"
)

// figures that differ from run to run: times and rates.
var figures = regexp.MustCompile(`[0-9.]+(µs|ms|s)\b|[0-9]+\.[0-9]+`)

// spaces between columns depend on the figures.
var spaces = regexp.MustCompile(` +`)

// mask hides what differs from run to run.
func mask(s string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(figures.ReplaceAllString(s, "N"), " "))
}

// TestReadme runs the README's scripts and compares what they print with what the
// README says, times and rates apart; -update rewrites what differs.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("runs on 16 MiB a rank")
	}
	readme, err := filepath.Abs("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	block := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	named := regexp.MustCompile(`MSCCLProgram\("(\w+)"`)
	calls := 0
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "python" {
			file := named.FindStringSubmatch(m[2])[1] + ".star"
			if err := os.WriteFile(file, []byte(m[2]), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		// A block of the shell holds calls, each with what it prints.
		if !strings.HasPrefix(m[2], "$ mscclsh ") {
			continue
		}
		var now strings.Builder
		for _, part := range strings.Split(strings.TrimPrefix(m[2], "$ "), "\n$ ") {
			line, want, _ := strings.Cut(part, "\n")
			calls++
			var got bytes.Buffer
			s := NewSession(&got, &got)
			// What it prints is what counts.
			_ = s.Exec(context.Background(), strings.Fields(strings.TrimPrefix(line, "mscclsh ")))
			if mask(got.String()) == mask(want) { // figures alone are no difference
				got.Reset()
				got.WriteString(want)
			} else if !*update {
				t.Errorf("%s: got\n%s\nthe README says\n%s", line, got.String(), want)
			}
			fmt.Fprintf(&now, "$ %s\n%s", line, got.String())
			if got.Len() > 0 && !bytes.HasSuffix(got.Bytes(), []byte("\n")) {
				now.WriteByte('\n')
			}
		}
		text = bytes.Replace(text, []byte(m[0]), []byte("```\n"+now.String()+"```"), 1)
	}
	if *update {
		if err := os.WriteFile(readme, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if calls < 3 {
		t.Errorf("found %d calls, want at least 3", calls)
	}
}

// TestAutoTable: the language's page has the table that the compiler goes by.
func TestAutoTable(t *testing.T) {
	if page := starlib.Reference(); !strings.Contains(page, "|---|---|\n"+compiler.AutoTable()+"\n") {
		t.Errorf("the reference doesn't have the rows\n%s", compiler.AutoTable())
	}
}
