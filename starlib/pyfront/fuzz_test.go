package pyfront_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib/pyfront"
)

// run runs any text at all and checks what holds for all of them: an error is a
// message in the script, and none is a fault of the front end.
func run(t *testing.T, source string) {
	t.Helper()
	o := pyfront.Options{Argv: []string{"8", "1"}}
	o.File, o.Source, o.MaxSteps = "script.py", []byte(source), 20_000
	_, err := pyfront.Load(context.Background(), o)
	if err == nil {
		return
	}
	var m *diag.Message
	var l diag.List
	if !errors.As(err, &m) && !errors.As(err, &l) {
		t.Fatalf("the error is no message: %v", err)
	}
	lines := int32(strings.Count(source, "\n") + strings.Count(source, "\r") + 1)
	for _, m := range diag.Messages(err) {
		if m.Code == "internal" {
			t.Fatalf("%v", m)
		}
		if m.Pos.File != "script.py" || m.Pos.Line > lines {
			t.Fatalf("%v: stands outside the %d lines of the script", m, lines)
		}
	}
}

// FuzzLoad runs any text as a script.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"testdata/python.py", "testdata/args.py"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(shift + "program(3, 1, False, [0, 1])")
	f.Add("x = f'{1:{2}.{3}}' \"\"\"\n\"\"\" % (a,)\n\tif")
	f.Add("class C(D):\n  x = 1\n  def f(s, *a, **k): return super().f\nwith C() as c, d: pass")
	f.Add(oneIn("for r in range(2):", "    c = MemoryChannel(1 - r, r)", "    c.put_packets(Buffer(1 - r, 1)[0:1], Rank(r).get_input_buffer()[0:1], tb=r)",
		"    Rank(r).barrier([0, 1])", "print(JSON())"))
	f.Add("from dataclasses import *\nfrom enum import *\n@dataclass(frozen=True)\nclass D:\n  x: int = 1\nclass E(Enum): a = auto()\nprint({D(2): [*'a'.split()]}, {**{E.a: 1}})")
	f.Fuzz(run)
}

// Every beginning of a script is a text that is cut off somewhere.
func TestTruncatedScripts(t *testing.T) {
	text, err := os.ReadFile("testdata/python.py")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(text); n += 7 {
		run(t, string(text[:n]))
	}
}

// Scripts with some characters changed, dropped, repeated or brought in from others
// are run or refused, and never worse. A fixed seed: the fuzz target is for finding
// more.
func TestSpoiledScripts(t *testing.T) {
	var seeds []string
	for _, name := range []string{"testdata/python.py", "testdata/args.py"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, string(text))
	}
	seeds = append(seeds, oneIn("c = MemoryChannel(1, 0)", "MemoryChannel(0, 1)", "c.put(Rank(1).get_output_buffer()[0:1], Rank(0).get_input_buffer()[0:1], tb=0)", "print(JSON())"))
	r := rand.New(rand.NewPCG(3, 4))
	for range 1500 {
		text := seeds[r.IntN(len(seeds))]
		for range 1 + r.IntN(4) {
			at := r.IntN(len(text) - 40)
			from := seeds[r.IntN(len(seeds))]
			part := r.IntN(len(from) - 40)
			switch r.IntN(4) {
			case 0:
				text = text[:at] + string(rune(' '+r.IntN(95))) + text[at+1:]
			case 1:
				text = text[:at] + text[at+r.IntN(30):]
			case 2:
				text = text[:at] + from[part:part+r.IntN(40)] + text[at:]
			case 3:
				text = text[:at] + string("*@()[]{}:,=.\n\t"[r.IntN(14)]) + text[at+1:]
			}
		}
		run(t, text)
	}
}

// Texts that nest or go on without end are answered, quickly, by an error or a
// result.
func TestEndlessTexts(t *testing.T) {
	const n = 200_000
	for _, source := range []string{
		"x = " + strings.Repeat("(", n), "x = " + strings.Repeat("[", n), "x = " + strings.Repeat("{1:", n),
		"x = " + strings.Repeat("-", n) + "1", "x = " + strings.Repeat("not ", n) + "1",
		"x = 1" + strings.Repeat(" + 1", n), "x = 1" + strings.Repeat(" ** 1", n), "x = 1" + strings.Repeat(" < 1", n),
		"x = 1" + strings.Repeat(" < f()", n), "x = 1" + strings.Repeat(" if 1 else 1", n), "x = a" + strings.Repeat(".b", n),
		"x = a" + strings.Repeat("()", n), "x = " + strings.Repeat("lambda: ", n) + "1", strings.Repeat("x = ", n) + "1",
		"x = 'a'" + strings.Repeat(" 'b'", n), "x = " + strings.Repeat("f'{", n), "x = f'" + strings.Repeat("{1}", n) + "'",
		"if 1: pass\n" + strings.Repeat("elif 1: pass\n", n), "x = [1" + strings.Repeat(" for a in b", n) + "]",
		"x = 1" + strings.Repeat(" or 1", n), "x = " + strings.Repeat("9", n), strings.Repeat("\n", n) + "$",
		strings.Repeat("@f\n", n) + "def f(): pass", "x = [1" + strings.Repeat(", *y", n) + "]", "x = {" + strings.Repeat("**y, ", n) + "}",
		"import itertools\nx = itertools.product(range(1000), repeat=9)", "import itertools\nx = itertools.permutations(range(100))",
		"import itertools\nx = itertools.repeat(1, 10 ** 9)", "x = 'a' * 10 ** 9", "x = 10 ** 10 ** 10", "x = '%99999999d' % 1", "x = f'{1:99999999}'",
	} {
		run(t, source)
	}
	deep := ""
	for k := range 200 {
		deep += strings.Repeat(" ", k) + "if 1:\n"
	}
	run(t, deep)
}
