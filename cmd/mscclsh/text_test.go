package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "1B": 1, "1k": 1024, "1K": 1024, "64KiB": 65536, "64 KiB": 65536, "2M": 2 << 20,
		"2MB": 2_000_000, "1.5GiB": 3 << 29, "1.5GB": 1_500_000_000, "0.5k": 512, "4TiB": 4 << 40, "3PiB": 3 << 50, "7EiB": 7 << 60, "9EB": 9e18,
		"9223372036854775807": math.MaxInt64,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("parseSize(%q): got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "k", "-1", "1.2.3", "1X", "1e3", "0x10", "0.1", "9223372036854775808", "8EiB", "1/2", "."} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("parseSize(%q): got %d, want an error", text, got)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.50 KiB", 896 << 20: "896 MiB", 65532: "64.0 KiB", 1<<20 - 1: "1.00 MiB",
		200<<20 + 1: "200 MiB", math.MaxInt64: "8.00 EiB",
	} {
		if got := formatSize(n); got != want {
			t.Errorf("formatSize(%d): got %q, want %q", n, got, want)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"64MiB", "1.5GB", "0.3", "99999999999T", "k", "1 K", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseSize(s); err == nil && n < 0 {
			t.Errorf("parseSize(%q) = %d", s, n)
		}
	})
}

func TestNearest(t *testing.T) {
	candidates := []string{"ranks", "channels", "protocol", "a", "b"}
	for name, want := range map[string]string{
		"rank": "ranks", "rakns": "ranks", "chanels": "channels", "protocl": "protocol", "xyz": "", "c": "", "size": "",
	} {
		if got := nearest(name, candidates); got != want {
			t.Errorf("nearest(%q): got %q, want %q", name, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{
		"1 step": plural(1, "step"), "0 steps": plural(0, "step"), "1 dependency": plural(1, "dependency"),
		"2 dependencies": plural(2, "dependency"), "1,234,567 steps": plural(1234567, "step"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Wrapping keeps the words and their order, and no line is longer than the width
// unless it is one word.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,12}`), 1, 40).Draw(t, "words")
		width := rapid.IntRange(1, 60).Draw(t, "width")
		lines := wrap(strings.Join(words, " "), width)
		if got := strings.Fields(strings.Join(lines, " ")); !slices.Equal(got, words) {
			t.Fatalf("got %q, want %q", got, words)
		}
		for _, line := range lines {
			if len(line) > width && strings.Contains(line, " ") {
				t.Fatalf("line %q is longer than %d", line, width)
			}
		}
	})
}

// What a script's arguments come apart into.
func TestSplitScriptArgs(t *testing.T) {
	show := func(args []scriptArg) string {
		var parts []string
		for _, a := range args {
			value := "=" + a.value
			if a.bare {
				value = ""
			}
			parts = append(parts, a.flag()+value)
		}
		return strings.Join(parts, " ")
	}
	for _, c := range []struct{ in, want string }{
		{"--ranks 8", "--ranks=8"},
		{"--ranks=8", "--ranks=8"},
		{"--ranks= --x", "--ranks= --x"},
		{"--inplace --ranks 8", "--inplace --ranks=8"},
		{"--shift -1 --scale -.5", "--shift=-1 --scale=-.5"},
		{"--tool.size 4K", "--tool.size=4K"},
		{"--tool.json --ranks 2", "--tool.json --ranks=2"},
		{"-o out.xml -q --ranks 2", "--tool.emit-file=out.xml --tool.quiet --ranks=2"},
		{"-oout.xml", "--tool.emit-file=out.xml"},
		{"-o=out.xml", "--tool.emit-file=out.xml"},
	} {
		args, err := splitScriptArgs(strings.Fields(c.in), flagTable())
		if got := show(args); err != nil || got != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{"8", "--", "--=3", "-", "-z", "-q1", "--tool.nothing", "--json x"} {
		args, err := splitScriptArgs(strings.Fields(in), flagTable())
		if err == nil {
			err = applyToolArgs(newSettings(), args, flagTable(), nil)
		}
		if exitCode(err) != exitCall {
			t.Errorf("%s: got %v, want a wrong call", in, err)
		}
	}
}

// Every flag has what help, completion and docs need, and no two share a name.
func TestFlagTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range flagTable() {
		if f.Help == "" || f.set == nil || f.Name != strings.ToLower(f.Name) {
			t.Errorf("flag %q is incomplete", f.Name)
		}
		for _, n := range []string{f.Name, f.Short} {
			if n != "" && seen[n] {
				t.Errorf("two flags are called %q", n)
			}
			seen[n] = true
		}
		for _, v := range f.Values {
			if err := f.set(newSettings(), v); err != nil {
				t.Errorf("--%s %s: %v", f.Name, v, err)
			}
		}
	}
}

// Commands are complete, and help's list of them is the table's.
func TestCommandTable(t *testing.T) {
	var names []string
	for _, c := range commandTable() {
		if c.Short == "" || c.Run == nil || strings.HasSuffix(c.Short, ".") {
			t.Errorf("command %q is incomplete", c.Name)
		}
		if c.Name != "" {
			names = append(names, c.Name)
		}
		for _, f := range c.Flags {
			if findFlag(flagTable(), f) == nil {
				t.Errorf("command %q: no flag %q", c.Name, f)
			}
		}
	}
	help := commandTable()[len(names)]
	if help.Name != "help" || !slices.Equal(help.Values, names) {
		t.Errorf("help knows %v, the table has %v", help.Values, names)
	}
	var pages []string
	for _, p := range docTable() {
		pages = append(pages, p.name)
	}
	if !slices.Equal(pages, docPages()) {
		t.Errorf("doc knows %v, the table has %v", docPages(), pages)
	}
}

// The size that a program runs on when none is given.
func TestOrdinarySize(t *testing.T) {
	program := func(ranks, chunks int32, least, most int64) *ir.Program {
		return &ir.Program{Spec: &ir.Spec{Coll: ir.NewCollective(ir.AllReduce, ranks, chunks, true)},
			MinBytes: least, MaxBytes: most}
	}
	for _, c := range []struct {
		p    *ir.Program
		want int64
	}{
		{program(8, 8, 0, 0), 16 << 20},
		{program(32, 8, 0, 0), 16 << 20},    // 32 x 16 MiB is 512 MiB
		{program(33, 8, 0, 0), 8 << 20},     // no longer
		{program(1024, 8, 0, 0), 512 << 10}, //
		{program(4, 3, 0, 1000), 996},       // the largest multiple of 3 fp32 elements below 1000
		{program(4, 3, 0, 5), 12},           // nothing fits: an element a chunk, refused with the reason
		{program(4, 3, 20<<20+1, 0), 20971524},
	} {
		if got := ordinarySize(c.p, runtime.FP32); got != c.want {
			t.Errorf("%d ranks, sizes %d to %d: got %d, want %d", c.p.Ranks(), c.p.MinBytes, c.p.MaxBytes, got, c.want)
		}
	}
}

func TestOrList(t *testing.T) {
	got := fmt.Sprint(orList(nil), "/", orList([]string{"a"}), "/", orList([]string{"a", "b"}), "/", orList([]string{"a", "b", "c"}))
	if want := "nothing/a/a or b/a, b or c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Bounds are written exactly: 8388576 is 32 bytes less than 8 MiB.
func TestExactSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1: "1 B", 1024: "1 KiB", 1536: "1536 B", 8388576: "8388576 B", 8 << 20: "8 MiB", 3 << 29: "1536 MiB"} {
		if got := exactSize(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
