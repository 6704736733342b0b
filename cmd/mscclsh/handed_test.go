package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// handedFolder is a folder of real files with an index.tsv: in $MSCCLSH_DATA, or in
// shared/data beside a folder above this one.
func handedFolder(t *testing.T, kind string) string {
	t.Helper()
	roots := []string{os.Getenv("MSCCLSH_DATA")}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		roots = append(roots, filepath.Join(dir, "shared", "data"))
	}
	for _, root := range roots {
		folder := filepath.Join(root, kind)
		if _, err := os.Stat(filepath.Join(folder, "index.tsv")); root != "" && err == nil {
			return folder
		}
	}
	t.Skipf("no folder with %s/index.tsv: set MSCCLSH_DATA", kind)
	return ""
}

// handedIndex is the index by file.
func handedIndex(t *testing.T, folder string) map[string]map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.FieldsPerRecord = '\t', -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	index := make(map[string]map[string]string)
	for _, row := range rows[1:] {
		cols := make(map[string]string)
		for i := range row {
			cols[rows[0][i]] = row[i]
		}
		index[cols["file"]] = cols
	}
	return index
}

// checkFolder is what mscclsh check --json says of a folder, by file.
func checkFolder(t *testing.T, folder string) map[string]FilePart {
	t.Helper()
	var out bytes.Buffer
	begin := time.Now()
	err := NewSession(&out, io.Discard).Exec(context.Background(), []string{"check", "--json", folder})
	if code := exitCode(err); code != exitWrong {
		t.Errorf("exit code: got %d (%v), want %d: some of the files are wrong", code, err, exitWrong)
	}
	var rep tableReport
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files in %v", len(rep.Files), time.Since(begin).Round(time.Millisecond))
	files := make(map[string]FilePart)
	for _, f := range rep.Files {
		files[f.File] = f
	}
	return files
}

// The table on real files agrees with that of an independent simulator.
func TestHandedXML(t *testing.T) {
	folder := handedFolder(t, "xml")
	index, got := handedIndex(t, folder), checkFolder(t, folder)
	if len(index) == 0 || len(got) != len(index) {
		t.Errorf("got %d files, want %d", len(got), len(index))
	}
	for file, cols := range index {
		f := got[file]
		if f.Verdict != cols["verdict"] {
			t.Errorf("%s: got %s, want %s (%s): %v", file, f.Verdict, cols["verdict"], cols["reason"], f.Messages)
		}
		if cols["min_slots"] != "" && strconv.Itoa(int(f.MinSlots)) != cols["min_slots"] {
			t.Errorf("%s: got %d slots, want %s", file, f.MinSlots, cols["min_slots"])
		}
		if f.Verdict == verdictPass && f.Orders == (cols["order_differs"] == "0") {
			t.Errorf("%s: got order_differs %v, want %s", file, f.Orders, cols["order_differs"])
		}
		refused := make(map[string]bool)
		for _, r := range f.Refusals {
			refused[r.Runtime] = true
		}
		for _, r := range []string{"msccl", "executor", "rccl"} {
			if want := cols["reject_"+r] != ""; f.Ranks > 0 && refused[r] != want {
				t.Errorf("%s: refused by %s: got %v, want %v (%s)", file, r, refused[r], want, cols["reject_"+r])
			}
		}
	}
}

// Plans: ok is right values and no deadlock in one launch, n/a demands nothing, and
// what nobody has run yet comes out right.
func TestHandedPlans(t *testing.T) {
	folder := handedFolder(t, "plans")
	index, got := handedIndex(t, folder), checkFolder(t, folder)
	if len(index) == 0 || len(got) != len(index) {
		t.Errorf("got %d files, want %d", len(got), len(index))
	}
	for file, cols := range index {
		f := got[file]
		verdict, result := verdictPass, "right"
		switch word, _, _ := strings.Cut(cols["result"], " "); word {
		case "n/a":
			result = "n/a"
		case "HANG":
			verdict, result = verdictDeadlock, ""
		case "LIMIT":
			verdict, result = verdictRefused, ""
		}
		if f.Races > 0 && result == "right" { // an error of its own, beside the result
			verdict = verdictRace
		}
		if f.Verdict != verdict || f.Result != result {
			t.Errorf("%s: got %s %s, want %s %s (%s): %v", file, f.Verdict, f.Result, verdict, result, cols["result"], f.Messages)
		}
		if across := f.Races+f.Across > 0; across && len(f.Messages) == 0 {
			t.Errorf("%s: %d races and %d across launches without a witness", file, f.Races, f.Across)
		}
	}
}
