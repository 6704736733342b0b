package pyfront_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib"
	"github.com/mscclsh/mscclsh/starlib/pyfront"
)

// outcome is what a script gave.
type outcome struct {
	script *starlib.Script
	out    string
	err    string
	code   string
}

// load runs a script from text, called script.py.
func load(t *testing.T, source string, argv ...string) outcome {
	t.Helper()
	return loadOptions(t, pyfront.Options{Argv: argv}, source)
}

func loadOptions(t *testing.T, o pyfront.Options, source string) outcome {
	t.Helper()
	var got outcome
	var out strings.Builder
	o.File, o.Source = "script.py", []byte(source)
	o.Print = func(_ diag.Pos, text string) { out.WriteString(text + "\n") }
	o.MaxSteps = 10_000_000
	if o.Host.Check == nil {
		o.Host.Check = func(*starlib.Program) (bool, error) { return true, nil }
	}
	script, err := pyfront.Load(context.Background(), o)
	got.script, got.out = script, out.String()
	if err != nil {
		got.err = err.Error()
		got.code = diag.Messages(err)[0].Code
	}
	return got
}

// The expected text is what CPython prints.
func TestPythonConstructs(t *testing.T) {
	for _, name := range []string{"python", "equality", "own_range"} {
		source, err := os.ReadFile("testdata/" + name + ".py")
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("testdata/" + name + ".out")
		if err != nil {
			t.Fatal(err)
		}
		got := load(t, string(source))
		if got.err != "" {
			t.Fatalf("%s: %s\nafter printing:\n%s", name, got.err, got.out)
		}
		if diff := cmp.Diff(string(want), got.out); diff != "" {
			t.Errorf("%s: -CPython +here:\n%s", name, diff)
		}
	}
}
