package starlib_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/starlib"
)

var update = flag.Bool("update", false, "rewrite golden files")

const reference = "../docs/language.md"

func TestReferenceIsCommitted(t *testing.T) {
	got := starlib.Reference()
	if *update {
		if err := os.WriteFile(reference, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from the signature table: run go test ./starlib -update", reference)
	}
}

// Everything that can be called has an example, and the example runs: those that
// open no program inside one.
func TestExamplesRun(t *testing.T) {
	for _, s := range starlib.Signatures() {
		switch {
		case strings.HasPrefix(s.Doc, "Reserved: ") || strings.HasPrefix(s.Doc, "Not available: "):
			continue
		case s.Example == "":
			t.Errorf("%s has no example", s.Name)
			continue
		}
		src := s.Example
		switch inside := strings.ReplaceAll(src, "\n", "\n    "); {
		case strings.Contains(src, "Program(") || s.Name == "algorithm":
		case usesOneSided(src):
			src = "with CollectiveProgram(\"p\", AllReduce(4, 1, False), 4, protocol = \"LL\"):\n    " + inside
		default:
			src = "with MSCCLProgram(\"p\", fully_connected(8), AllReduce(8, 8, False)):\n    " + inside
		}
		if _, err := load(t, src, func(o *starlib.Options) {
			o.Host.Topology = testTopologies
			o.Host.Check = func(*starlib.Program) (bool, error) { return true, nil }
			o.Host.Show = func(*starlib.Program, string) error { return nil }
			o.Host.Run = func(*starlib.Program, starlib.RunOptions) (bool, error) { return true, nil }
			o.Host.Algorithm = func(starlib.Algorithm) error { return nil }
		}); err != nil {
			t.Errorf("%s:\n%s\n%v", s.Name, src, err)
		}
	}
}

// usesOneSided reports whether an example needs a one-sided program around it.
func usesOneSided(src string) bool {
	return slices.ContainsFunc([]string{"Rank(", "Channel(", "Buffer(", "Semaphore("}, func(word string) bool {
		return strings.Contains(src, word)
	})
}

// The script at the head of the reference runs, with the count of operations that
// a ring of 8 has: 7 reduces and 7 copies for each of 8 chunks.
func TestReferenceExample(t *testing.T) {
	_, rest, _ := strings.Cut(starlib.Reference(), "```python\n")
	src, _, _ := strings.Cut(rest, "```")
	d, ops := traced(t, src)
	if len(ops) != 8*14 || d.Name != "allreduce_ring" {
		t.Errorf("%d operations in %s", len(ops), d.Name)
	}
}
