package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCompare runs every call of the page that compares mscclsh with other projects,
// and holds what it prints to what the page says, times and rates apart. A line
// "..." stands for any lines. Calls for GPUs go through the kernels' build for the host.
func TestCompare(t *testing.T) {
	page, err := filepath.Abs("../../docs/compare.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kernels, err := filepath.Abs("../../runtime/cuda/lib/build/libmscclsh_cuda_host.so")
	if err != nil {
		t.Fatal(err)
	}
	_, missing := os.Stat(kernels)
	t.Setenv("MSCCLSH_CUDA_LIB", kernels)
	t.Chdir(t.TempDir())
	if err := os.Symlink(self, "mscclsh"); err != nil { // by that name the test is the tool
		t.Fatal(err)
	}
	t.Setenv("PATH", "."+string(os.PathListSeparator)+os.Getenv("PATH"))
	named := regexp.MustCompile(`Program\("(\w+)"|^# (\w+)\.star\n`)
	shown := map[string]bool{}
	section := ""
	for _, m := range regexp.MustCompile("(?ms)^## (\\d+)\\. |^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		switch {
		case m[1] != "":
			section = m[1]
		case m[2] == "python":
			name := named.FindStringSubmatch(m[3])
			if err := os.WriteFile(name[1]+name[2]+".star", []byte(m[3]), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			for _, call := range strings.Split(strings.TrimPrefix(m[3], "$ "), "\n$ ") {
				line, want, _ := strings.Cut(call, "\n")
				shown[section] = true
				if missing != nil && strings.Contains(line, "--backend cuda") {
					t.Logf("section %s needs %s: make cuda-host builds it", section, kernels)
					continue
				}
				got, _ := exec.Command("sh", "-c", "PATH=.:$PATH; "+line).CombinedOutput() // findings are failures
				if err := matches(string(got), want); err != nil {
					t.Errorf("section %s: %s\n%v; it prints\n%s", section, line, err, got)
				}
			}
		}
	}
	// Every row that is shown somewhere is shown by a call.
	for _, m := range regexp.MustCompile(`\[(\d+)\]\(#\d`).FindAllStringSubmatch(string(text), -1) {
		if !shown[m[1]] {
			t.Errorf("section %s has no call", m[1])
		}
	}
}

// matches compares what was printed with what a page says.
func matches(got, want string) error {
	lines := strings.Split(strings.TrimRight(got, "\n"), "\n")
	skip := false
	for _, w := range strings.Split(strings.TrimRight(want, "\n"), "\n") {
		if w == "..." {
			skip = true
			continue
		}
		at := 0
		for skip && at < len(lines) && mask(lines[at]) != mask(w) {
			at++
		}
		if at >= len(lines) || mask(lines[at]) != mask(w) {
			return fmt.Errorf("it doesn't print %q there", w)
		}
		lines, skip = lines[at+1:], false
	}
	if len(lines) > 0 && !skip {
		return fmt.Errorf("the page doesn't have %q, nor ... for it", lines[0])
	}
	return nil
}
