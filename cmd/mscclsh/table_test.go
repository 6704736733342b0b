package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/table"
)

// builtTable builds a source and reads the table back.
func builtTable(t *testing.T, source string) *table.Table {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t.star"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errors bytes.Buffer
	s := NewSession(&out, &errors)
	if err := s.Exec(context.Background(), []string{"table", "build", filepath.Join(dir, "t.star"), "-o", dir}); err != nil {
		t.Fatalf("%v\n%s", err, errors.String())
	}
	data, err := os.ReadFile(filepath.Join(dir, tableFile))
	if err != nil {
		t.Fatal(err)
	}
	x, err := table.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// lintOf is what lint says of a table, and the exit code.
func lintOf(t *testing.T, x *table.Table) (string, int) {
	t.Helper()
	data, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "t.mscclsh")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errors bytes.Buffer
	s := NewSession(&out, &errors)
	code := exitCode(s.Exec(context.Background(), []string{"table", "lint", file}))
	return out.String() + errors.String(), code
}

// Recursive doubling on 8 ranks sends up to 4 chunks in a step. With one slot it is safe as
// long as these fit into one message: up to chunks of a quarter of a slot, one of each of 8 ranks.
// Lint judges what lies in the file, so it finds that.
func TestLintJudges(t *testing.T) {
	x := builtTable(t, `algorithm("@algorithms/allgather_recursive_doubling.star", ranks = 8, bytes = "..", protocol = "LL", inplace = False)`)
	if text, code := lintOf(t, x); code != exitOK || !strings.Contains(text, "1 entry: 0 errors, ") {
		t.Errorf("as built: exit code %d\n%s", code, text)
	}
	x.Programs[0].Slots = 1
	text, code := lintOf(t, x)
	safe := 8 * x.Programs[0].SlotBytes / 4
	want := "unsafe range ..: the check failed: 1 error"
	if code != exitWrong || !strings.Contains(text, want) || !strings.Contains(text, "it is safe for .."+table.FormatSize(safe)+"\n") {
		t.Errorf("exit code %d, want %q and a safe size of %d in\n%s", code, want, safe, text)
	}
	x.Entries[0].MaxBytes = safe
	if text, code := lintOf(t, x); code != exitOK {
		t.Errorf("within the safe range: exit code %d\n%s", code, text)
	}
	// A step that writes beyond a buffer makes no sense at all.
	x.Programs[0].Tables.Steps[5] = 1 << 20
	x.Programs[0].Tables.Steps[3] = 1 << 20
	if text, code := lintOf(t, x); code != exitWrong || !strings.Contains(text, "its program makes no sense: ") {
		t.Errorf("out of bounds: exit code %d\n%s", code, text)
	}
}

// A file may claim that ranks may mix two programs which send other messages. Lint looks
// for itself: a ring and all pairs send as many chunks, and not the same ones.
func TestLintDoubts(t *testing.T) {
	y := builtTable(t, `algorithm("@algorithms/allreduce_ring.star", ranks = 4, bytes = "..", protocol = "LL", inplace = False, instances = 2, name = "ring")
algorithm("@algorithms/allreduce_allpairs.star", ranks = 4, bytes = "..", protocol = "LL", inplace = True, instances = 2, priority = -1, name = "pairs")`)
	ring, pairs := &y.Entries[0], &y.Entries[1]
	ring.InPlace, ring.Mixable = pairs.InPlace, true
	ring.MaxBlocks = max(ring.MaxBlocks, pairs.MaxBlocks)
	if text, code := lintOf(t, y); code != exitWrong || !strings.Contains(text, "ring: its programs don't send the same messages, so ranks") {
		t.Errorf("mixed: exit code %d\n%s", code, text)
	}
}

// The table that the library comes with covers what its documentation says.
func TestDefaultTable(t *testing.T) {
	var out, errors bytes.Buffer
	x, notes, err := NewSession(&out, &errors).openTable(context.Background(), defaultFile)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	type key struct {
		coll  table.Collective
		ranks int32
	}
	have := map[key]bool{}
	for i := range x.Entries {
		have[key{x.Entries[i].Collective, x.Entries[i].Ranks}] = true
	}
	for _, c := range table.Collectives() {
		for _, n := range []int32{2, 4, 8} {
			if have[key{c, n}] != (c != table.SendRecv) { // which the library always leaves to NCCL
				t.Errorf("%v on %d ranks: entries %v", c, n, have[key{c, n}])
			}
		}
	}
	for _, m := range x.Lint() {
		t.Errorf("%v", m)
	}
	data, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 8<<20 {
		t.Errorf("the table has %d bytes, which every process maps", len(data))
	}
}

// Ranges of sources, with their ends in bytes.
func TestRangeOf(t *testing.T) {
	for text, want := range map[string][2]int64{
		"..": {0, table.OpenEnd}, "1KiB..32KiB": {1024, 32768}, "1KiB..<32KiB": {1024, 32767}, "4MiB..": {4 << 20, table.OpenEnd},
		"..64K": {0, 65536}, " 1 .. 2 ": {1, 2}, "5..5": {5, 5},
	} {
		low, high, err := rangeOf(text)
		if err != nil || low != want[0] || high != want[1] {
			t.Errorf("%q: got %d to %d, %v, want %v", text, low, high, err, want)
		}
	}
	for _, text := range []string{"", "5", "5-6", "6..5", "5..<5", "..<", "x..y", "1..2..3", "-1..2", "1..<"} {
		if low, high, err := rangeOf(text); err == nil {
			t.Errorf("%q: got %d to %d, want an error", text, low, high)
		}
	}
	// What Range writes is what a source reads.
	for _, e := range []table.Entry{{MaxBytes: table.OpenEnd}, {MinBytes: 7, MaxBytes: 1023}, {MinBytes: 1024, MaxBytes: 3 << 20}, {MinBytes: 1, MaxBytes: 1<<40 - 1}} {
		if low, high, err := rangeOf(e.Range()); err != nil || low != e.MinBytes || high != e.MaxBytes {
			t.Errorf("%q: got %d to %d, %v", e.Range(), low, high, err)
		}
	}
}
