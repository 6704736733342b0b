package starlib_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib"
)

// entriesOf runs a table's source and returns its calls of algorithm(...).
func entriesOf(t *testing.T, src string) ([]starlib.Algorithm, error) {
	t.Helper()
	var got []starlib.Algorithm
	_, err := load(t, src, func(o *starlib.Options) {
		o.File, o.Source = "tables/t.star", []byte(src)
		o.Host.Algorithm = func(a starlib.Algorithm) error {
			got = append(got, a)
			return nil
		}
	})
	return got, err
}

// The tool gets what the call says: scripts as load() would find them, the script's own
// arguments as a command line spells them, and zero for what isn't there.
func TestAlgorithm(t *testing.T) {
	got, err := entriesOf(t, `
for n in [2, 4]:
    algorithm("mine.star", n, "1KiB..", deep = True, share = 0.5, label = "x", ranks_a_node = n)
algorithm("@algorithms/reduce_tree.star", ranks = (2, 8), bytes_per_rank = "..", roots = [1, 0], inplace = False, dtypes = "bf16",
          ops = ["sum", "max"], priority = -3, memory = "any", threads = 256, hosts = 2, name = "r")
algorithm("../a.star", roots = "all", inplace = "both", ranks = None)
`)
	if err != nil {
		t.Fatal(err)
	}
	at := func(line, col int32) diag.Pos { return diag.Pos{File: "tables/t.star", Line: line, Col: col} }
	mine := func(n int32, value string) starlib.Algorithm {
		return starlib.Algorithm{Pos: at(3, 5), Script: "tables/mine.star", Ranks: []int32{n}, Bytes: "1KiB..", Nodes: 1,
			Args: []starlib.AlgorithmArg{{Name: "deep", Value: "true"}, {Name: "share", Value: "0.5"}, {Name: "label", Value: "x"}, {Name: "ranks_a_node", Value: value}}}
	}
	want := []starlib.Algorithm{mine(2, "2"), mine(4, "4"),
		{Pos: at(4, 1), Script: "@algorithms/reduce_tree.star", Ranks: []int32{2, 8}, BytesPerRank: "..", Roots: []int32{1, 0}, InPlace: "false",
			DTypes: []string{"bf16"}, Ops: []string{"sum", "max"}, Priority: -3, Memory: "any", Threads: 256, Nodes: 2, Name: "r"},
		{Pos: at(6, 1), Script: "a.star", Nodes: 1},
	}
	for i := range want {
		if i >= len(got) {
			t.Fatalf("%d calls, want %d", len(got), len(want))
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("call %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestAlgorithmMisuse(t *testing.T) {
	for src, want := range map[string]string{
		`algorithm()`:                                  "t.star:1:1: algorithm: missing argument script",
		`algorithm(3)`:                                 "algorithm: script: got int, want string",
		`algorithm("a.star", ranks = 0)`:               "algorithm: ranks: got 0, want 1 or more",
		`algorithm("a.star", ranks = [])`:              "algorithm: ranks: got an empty list",
		`algorithm("a.star", ranks = [2, 2])`:          "algorithm: ranks: got 2 twice",
		`algorithm("a.star", ranks = ["2"])`:           "algorithm: ranks: got string, want an int or a list of them",
		`algorithm("a.star", ranks = "2")`:             "algorithm: ranks: got string, want an int or a list of them",
		`algorithm("a.star", roots = -1)`:              "algorithm: roots: got -1, want 0 or more",
		`algorithm("a.star", roots = "every")`:         "algorithm: roots: got string, want an int or a list of them",
		`algorithm("a.star", ranks = 1 << 40)`:         "algorithm: ranks: got 1099511627776, want an int of 32 bits",
		`algorithm("a.star", inplace = 1)`:             `algorithm: inplace: got 1, want True, False or "both"`,
		`algorithm("a.star", dtypes = [1])`:            "algorithm: dtypes: got 1, want a string or a list of them",
		`algorithm("a.star", ops = "")`:                `algorithm: ops: got "", want a string or a list of them`,
		`algorithm("a.star", chunks = [1])`:            "algorithm: chunks: got list, want int, float, bool or string, as parameters of scripts are",
		`algorithm("a.star", priority = "high")`:       "algorithm: priority: got string, want int",
		`algorithm("")`:                                `load: "" names no file`,
		`algorithm("@other/a.star")`:                   `load: "@other/a.star" is in no known place`,
		`algorithm("a.star", ranks = 2, bytes = 1024)`: "algorithm: bytes: got int, want string or None",
	} {
		_, err := entriesOf(t, src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
	_, err := load(t, `algorithm("a.star")`, func(o *starlib.Options) {})
	if err == nil || !strings.Contains(err.Error(), "algorithm: not available here\n    mscclsh table build runs files that call it") {
		t.Errorf("without a tool: got %v", err)
	}
}
