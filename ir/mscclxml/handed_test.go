package mscclxml_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// handedData is the folder with real files: $MSCCLSH_DATA, or shared/data beside
// the repository or above it. Tests skip without it.
func handedData(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("MSCCLSH_DATA"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		data := filepath.Join(dir, "shared", "data")
		if _, err := os.Stat(filepath.Join(data, "xml", "index.tsv")); err == nil {
			return data
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Skip("no shared/data with real files: set MSCCLSH_DATA")
		}
		dir = up
	}
}

// handedFile is a row of the index.
type handedFile struct {
	path string
	cols map[string]string
}

func handedFiles(t testing.TB) []handedFile {
	t.Helper()
	dir := filepath.Join(handedData(t), "xml")
	f, err := os.Open(filepath.Join(dir, "index.tsv"))
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
	var out []handedFile
	for _, row := range rows[1:] {
		h := handedFile{cols: map[string]string{}}
		for i, name := range rows[0] {
			if i < len(row) {
				h.cols[name] = row[i]
			}
		}
		h.path = filepath.Join(dir, h.cols["file"])
		out = append(out, h)
	}
	if len(out) == 0 {
		t.Fatal("the index is empty")
	}
	return out
}

// holds is what a caller with a checker gives to Read.
func holds(t testing.TB) func(*ir.Program) bool {
	return func(p *ir.Program) bool {
		rep := check(t, p)
		for _, code := range [...]string{checker.CodeWrongResult, checker.CodeInputClobbered, checker.CodeProgram, checker.CodeBounds} {
			if rep.Has(code) {
				return false
			}
		}
		return true
	}
}

func check(t testing.TB, p *ir.Program) *checker.Report {
	t.Helper()
	rep, err := checker.Check(context.Background(), p, checker.Options{MaxMessages: 1})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// verdict is a report in the words of the index.
func verdict(rep *checker.Report) string {
	worst := "pass"
	for _, m := range rep.Messages {
		if m.Severity != diag.Error {
			continue
		}
		v := "invalid"
		switch m.Code {
		case checker.CodeDeadlock:
			v = "deadlock"
		case checker.CodeWrongResult, checker.CodeInputClobbered:
			v = "fail"
		case checker.CodeRace:
			v = "race"
		}
		worst = worse(worst, v)
	}
	return worst
}

func worse(a, b string) string {
	for _, v := range [...]string{"invalid", "deadlock", "fail", "race"} {
		if a == v || b == v {
			return v
		}
	}
	return "pass"
}

// notRead is the verdict on a file that can't be read.
func notRead(err error) string {
	v := "unreadable"
	for _, m := range diag.Messages(err) {
		switch m.Code {
		case mscclxml.CodeInvalid:
			v = "invalid"
		case mscclxml.CodeIncomplete:
			v = "fail"
		case mscclxml.CodeHang:
			v = "deadlock"
		}
	}
	return v
}

func readFile(t testing.TB, h handedFile, runtime mscclxml.Reading) (*mscclxml.Imported, error) {
	t.Helper()
	f, err := os.Open(h.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return mscclxml.Read(f, mscclxml.ReadOptions{File: h.cols["file"], Runtime: runtime, Holds: holds(t)})
}

// The verdicts, size regimes, slot depths and orders of all real files are those
// of an independent simulator.
func TestHandedFiles(t *testing.T) {
	start := time.Now()
	for _, h := range handedFiles(t) {
		t.Run(h.cols["file"], func(t *testing.T) {
			im, err := readFile(t, h, mscclxml.Plain)
			if err != nil {
				if got := notRead(err); got != h.cols["verdict"] {
					t.Errorf("got %s, want %s: %v", got, h.cols["verdict"], err)
				}
				return
			}
			got, slots, differs := "pass", int32(0), "0"
			modes := map[string]*checker.Report{}
			for _, p := range im.Programs {
				rep := check(t, p)
				got = worse(got, verdict(rep))
				slots = max(slots, rep.MinSlots)
				if rep.OrderDiffers {
					differs = strconv.Itoa(int(p.Ranks()))
				}
				mode := "out"
				if p.Coll.InPlace {
					mode = "in"
				}
				modes[mode] = rep
				if got != h.cols["verdict"] {
					t.Logf("%v", rep.Messages)
				}
			}
			if got != h.cols["verdict"] {
				t.Errorf("got %s, want %s (%s); notes %v", got, h.cols["verdict"], h.cols["reason"], im.Notes)
			}
			if want := h.cols["min_slots"]; fmt.Sprint(slots) != want {
				t.Errorf("got %d slots, want %s", slots, want)
			}
			if got == "pass" && (differs == "0") != (h.cols["order_differs"] == "0") {
				t.Errorf("got order_differs %s, want %s", differs, h.cols["order_differs"])
			}
			most, err := strconv.Atoi(h.cols["cnt_max"])
			if err != nil {
				t.Fatal(err)
			}
			regimes(t, modes, h.cols["regimes"], int32(most))
		})
	}
	t.Logf("%v", time.Since(start))
}

// regimes compares deadlocks, K by K, with the table's, where all K from the
// largest count of a step on are that count.
func regimes(t *testing.T, modes map[string]*checker.Report, table string, most int32) {
	t.Helper()
	want := map[string]map[string]any{}
	if err := json.Unmarshal([]byte(table), &want); err != nil {
		t.Fatalf("regimes %q: %v", table, err)
	}
	if len(want) != len(modes) {
		t.Errorf("got %d modes, want %s", len(modes), table)
	}
	for mode, byK := range want {
		rep := modes[mode]
		if rep == nil {
			t.Errorf("no mode %s, want %s", mode, table)
			continue
		}
		for key, result := range byK {
			k, err := strconv.Atoi(key)
			if err != nil {
				continue
			}
			stuck := rep.SafeRegime == 0 || int32(k) < min(rep.SafeRegime, most)
			if stuck != (result == "deadlock") {
				t.Errorf("mode %s K=%d: got deadlock %v, want %v; safe from %d of %v", mode, k, stuck, result, rep.SafeRegime, rep.Regimes)
			}
			if int32(k) < min(rep.Regimes[0], most) {
				t.Errorf("mode %s: K=%d is not in the window, regimes %v", mode, k, rep.Regimes)
			}
		}
	}
}

// Which runtimes refuse which of the real files.
func TestHandedRefusals(t *testing.T) {
	for _, h := range handedFiles(t) {
		data, err := os.ReadFile(h.path)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, r := range mscclxml.Refusals(data, h.cols["file"]) {
			got[r.Runtime.String()] = r.Reason
		}
		for _, r := range [...]string{"msccl", "executor", "rccl"} {
			if want := h.cols["reject_"+r]; (want == "") != (got[r] == "") {
				t.Errorf("%s: %s: got %q, want %q", h.cols["file"], r, got[r], want)
			}
		}
	}
}
