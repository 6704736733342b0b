package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// figures that differ from run to run: times and rates.
var figures = regexp.MustCompile(`[0-9.]+(µs|ms|s)\b|[0-9]+\.[0-9]+`)

// spaces between columns depend on the figures.
var spaces = regexp.MustCompile(` +`)

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
		line, want, _ := strings.Cut(m[2], "\n")
		call, ok := strings.CutPrefix(line, "$ mscclsh ")
		if !ok {
			continue
		}
		calls++
		var got bytes.Buffer
		s := NewSession(&got, &got)
		_ = s.Exec(context.Background(), strings.Fields(call)) // what it prints is what counts
		mask := func(s string) string { return spaces.ReplaceAllString(figures.ReplaceAllString(s, "N"), " ") }
		switch {
		case mask(got.String()) == mask(want):
		case *update: // only then: figures alone are no difference
			text = bytes.Replace(text, []byte(m[0]), []byte("```\n"+line+"\n"+got.String()+"```"), 1)
		default:
			t.Errorf("%s: got\n%s\nthe README says\n%s", line, got.String(), want)
		}
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
