package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the transcripts, the generated pages of docs/ and the outputs in the README")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mscclsh": main})
}

// TestScript runs the transcripts in testdata/script: calls of the command with
// what they print, write and return.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// A command built with the race detector otherwise sleeps a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"jsonpath": jsonPath,
			"binary":   binary,
		},
	})
}

// exits CODE COMMAND ARGS... runs a command that must end with the exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGS]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if coded, ok := err.(interface{ ExitCode() int }); ok {
		got = coded.ExitCode()
	} else if err != nil {
		ts.Fatalf("running %s: %v", args[1], err)
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code: got %d, want %s", got, args[0])
	}
}

// binary FILE writes every byte there is, a few times over.
func binary(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: binary FILE")
	}
	var data []byte
	for i := range 4096 {
		data = append(data, byte(i*7), byte(i>>4))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o644))
}

// jsonpath FILE KEY.KEY... VALUE compares one value of a JSON object; FILE may be
// stdout. VALUE is JSON; the word some is any value but null, and none is absence.
func jsonPath(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: jsonpath FILE PATH VALUE")
	}
	var at any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &at); err != nil {
		ts.Fatalf("%s is no JSON: %v", args[0], err)
	}
	for _, key := range strings.Split(args[1], ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(v) {
				ts.Fatalf("%s: no element %s", args[1], key)
			}
			at = v[i]
		default:
			at = nil
		}
	}
	got, err := json.Marshal(at)
	ts.Check(err)
	switch {
	case args[2] == "some" && at != nil, args[2] == "none" && at == nil, string(got) == args[2]:
	default:
		ts.Fatalf("%s: got %s, want %s", args[1], got, args[2])
	}
}

// TestDocs compares the committed pages of the reference with the generated ones.
func TestDocs(t *testing.T) {
	for _, page := range docTable() {
		var b strings.Builder
		if err := page.write(&b); err != nil {
			t.Fatal(err)
		}
		file := "../../docs/" + page.name + ".md"
		if *update {
			if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		committed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(committed) != b.String() {
			t.Errorf("%s is not what mscclsh doc %s prints; run make docs", file, page.name)
		}
	}
}

// installed is the path of a program that scripts/SCRIPT.sh finds or installs; the test is
// skipped, with what it does, unless the setting of that name is 1.
func installed(t *testing.T, setting, script, does string) string {
	t.Helper()
	if os.Getenv(setting) != "1" {
		t.Skipf("%s; %s=1 runs it", does, setting)
	}
	var said bytes.Buffer
	find := exec.Command("../../scripts/" + script + ".sh")
	find.Stderr = &said
	path, err := find.Output()
	if err != nil {
		t.Fatalf("scripts/%s.sh: %v\n%s", script, err, said.String())
	}
	return strings.TrimSpace(string(path))
}
