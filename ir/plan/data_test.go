package plan_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
)

// samples finds the folder of real plans: that of the environment, or
// shared/data/plans beside a folder above this one.
func samples(t *testing.T) string {
	if dir := os.Getenv("MSCCLSH_DATA"); dir != "" {
		return filepath.Join(dir, "plans")
	}
	for dir := ".."; len(dir) < 40; dir = filepath.Join("..", dir) {
		if path := filepath.Join(dir, "shared", "data", "plans"); exists(filepath.Join(path, "index.tsv")) {
			return path
		}
	}
	t.Skip("no folder of real plans: set MSCCLSH_DATA to the folder that holds plans/index.tsv")
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// row is one line of the samples' table.
type row struct {
	file, collective string
	ranks            string
	protocol         string
	inPlace, result  string
}

func table(t *testing.T, dir string) []row {
	b, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		f := strings.Split(line, "\t")
		rows = append(rows, row{f[0], f[1], f[2], f[3], f[4], f[5]})
	}
	return rows
}

func programText(t *testing.T, p *ir.Program) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// withoutPlaces drops positions, which differ between a file and its copy.
func withoutPlaces(p *ir.Program) *ir.Program {
	c, s, o := *p, *p.Spec, *p.OneSided
	s.Positions = []diag.Pos{{}}
	o.Ops = append([]ir.Op(nil), o.Ops...)
	for i := range o.Ops {
		o.Ops[i].Pos = 0
	}
	c.Spec, c.OneSided = &s, &o
	return &c
}

// Every real plan reads, but the one with an operation that no executor knows.
// What is read has a text that reads back exactly, and what is writable as a
// plan reads back as the same program.
func TestRealPlans(t *testing.T) {
	dir := samples(t)
	written := 0
	for _, row := range table(t, dir) {
		t.Run(row.file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, row.file))
			if err != nil {
				t.Fatal(err)
			}
			im, err := plan.Read(bytes.NewReader(data), plan.Options{File: "f.json"})
			if strings.HasPrefix(row.result, "LIMIT") {
				var m *diag.Message
				if !errors.As(err, &m) || m.Code != "plan-op" || m.Pos.Line == 0 {
					t.Errorf("got %v, want code plan-op with a place", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := plan.Current
			switch {
			case strings.Contains(row.file, "old_dialect"):
				want = plan.Original
			case strings.HasPrefix(row.file, "repo_execution-files"):
				want = plan.Early
			}
			if im.Dialect != want {
				t.Errorf("got dialect %s, want %s", im.Dialect, want)
			}
			checkSpec(t, im.Program, row)
			was := programText(t, im.Program)
			again, err := ir.ParseProgram(strings.NewReader(was), "x")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(im.Program, again); diff != "" {
				t.Errorf("text (-read +parsed):\n%.3000s", diff)
			}
			if roundTrip(t, im.Program) {
				written++
			}
		})
	}
	t.Logf("%d plans can be written", written)
}

func checkSpec(t *testing.T, p *ir.Program, row row) {
	t.Helper()
	name := p.Coll.String()
	if name == "reduce_scatter" {
		name = "reducescatter"
	}
	inPlace := map[bool]string{true: "True", false: "False"}[p.Coll.InPlace]
	if name != row.collective || inPlace != row.inPlace || p.Protocol.String() != row.protocol {
		t.Errorf("got %s, in place %s, %s, want %+v", name, inPlace, p.Protocol, row)
	}
}

// roundTrip writes a plan and reads it; false if the executor would not run it.
func roundTrip(t *testing.T, p *ir.Program) bool {
	t.Helper()
	var out, second bytes.Buffer
	if err := plan.Write(&out, p); err != nil {
		if out.Len() > 0 {
			t.Errorf("%d bytes were written before %v", out.Len(), err)
		}
		t.Log(err)
		return false
	}
	again, err := plan.Read(bytes.NewReader(out.Bytes()), plan.Options{File: "again.json"})
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, out.String())
	}
	if diff := cmp.Diff(withoutPlaces(p), withoutPlaces(again.Program)); diff != "" {
		t.Errorf("plan (-read +read again):\n%.3000s", diff)
	}
	if err := plan.Write(&second, again.Program); err != nil || second.String() != out.String() {
		t.Errorf("the second plan differs from the first (%v)", err)
	}
	return true
}
