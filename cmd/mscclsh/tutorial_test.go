package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/notebook"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
	"github.com/mscclsh/mscclsh/tutorials"
)

// allLessons are the lessons, which must be readable.
func allLessons(t *testing.T) []lesson {
	t.Helper()
	all, err := lessons()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// golden is what a lesson's cells print, a section for each.
func golden(l *lesson, outputs []notebook.Output) string {
	var b strings.Builder
	for i := range l.Cells {
		c := &l.Cells[i]
		if c.Kind != notebook.Code {
			continue
		}
		text := outputs[i].Text
		if c.Has(notebook.TagGPU) {
			text = "(depends on the machine)\n"
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		fmt.Fprintf(&b, "-- cell %d --\n%s", i+1, text)
	}
	return b.String()
}

// TestLessons runs every cell of every lesson and compares what it prints with the
// file beside the lesson, times and rates apart. renderLesson sees to it that cells
// fail if they are meant to and only then, and that solutions are judged right and
// exercises as they are given are not.
func TestLessons(t *testing.T) {
	// Without GPUs and with them, the lesson about them must go on.
	t.Setenv("MSCCLSH_CUDA_LIB", filepath.Join(t.TempDir(), "none"))
	for _, l := range allLessons(t) {
		t.Run(l.name, func(t *testing.T) {
			outputs, err := renderLesson(context.Background(), &l)
			if err != nil {
				t.Fatal(err)
			}
			got, file := golden(&l, outputs), "../../tutorials/"+l.name+".out"
			old, err := os.ReadFile(file)
			switch {
			case err == nil && mask(string(old)) == mask(got):
			case *update:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			case err != nil:
				t.Fatal(err)
			default:
				t.Errorf("%s: the cells print otherwise than the file says; -update rewrites it\n%s", file, firstDifference(mask(string(old)), mask(got)))
			}
		})
	}
}

// firstDifference shows the first line in which two texts differ.
func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		line := func(list []string) string {
			if i < len(list) {
				return list[i]
			}
			return "(the end)"
		}
		if line(a) != line(b) {
			return fmt.Sprintf("line %d: got\n%s\nwant\n%s", i+1, line(b), line(a))
		}
	}
	return ""
}

// Every file beside the lessons belongs to one of them.
func TestLessonFilesBelong(t *testing.T) {
	all := allLessons(t)
	files, err := filepath.Glob("../../tutorials/*")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, n := range tutorials.Names() {
		names[n+".star"], names[n+".out"] = true, true
	}
	for _, f := range files {
		base := filepath.Base(f)
		used := names[base] || base == "embed.go"
		for i := range all {
			for k := range all[i].Cells {
				used = used || strings.Contains(all[i].Cells[k].Source, "load "+tutorialPrefix+base)
			}
		}
		if !used {
			t.Errorf("no lesson uses %s", f)
		}
	}
}

// What a lesson has to be: a title, cells enough and not too many, code and text in
// turn, and at its end an exercise with its solution.
func TestLessonShape(t *testing.T) {
	all := allLessons(t)
	if len(all) < 11 {
		t.Errorf("there are %d lessons, want 11", len(all))
	}
	for i, l := range all {
		if l.number != i+1 {
			t.Errorf("%s has number %d, want %d", l.name, l.number, i+1)
		}
		if l.Title() == l.File || l.Summary() == "" {
			t.Errorf("%s has no title, or no sentence after it", l.name)
		}
		if n := len(l.Cells); n < 8 || n > 20 {
			t.Errorf("%s has %d cells, want 8 to 20", l.name, n)
		}
		exercises := ""
		for k := range l.Cells {
			c := &l.Cells[k]
			if c.Has(notebook.TagExercise) {
				exercises += "e"
			}
			if c.Has(notebook.TagSolution) {
				exercises += "s"
			}
			for n, line := range strings.Split(c.Source, "\n") {
				if len(line) > 125 {
					t.Errorf("%s:%d: the line has %d characters", l.File, int(c.First)+n, len(line))
				}
			}
		}
		if exercises != "es" || !l.Cells[len(l.Cells)-1].Has(notebook.TagSolution) {
			t.Errorf("%s: want one exercise and then its solution, at the end", l.name)
		}
	}
}

// The page about the lessons lists them, and the tags and quantities that there are.
func TestLessonsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/lessons.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{notebook.TagComment, notebook.TagExercise, notebook.TagFails, notebook.TagGPU, notebook.TagSolution}
	for _, q := range quantities() {
		want = append(want, q.name)
	}
	for i, name := range want {
		want[i] = "`" + name + "`"
	}
	for _, l := range allLessons(t) {
		want = append(want, fmt.Sprintf("| %d | %s |", l.number, l.Title()))
	}
	for _, w := range want {
		if !strings.Contains(string(page), w) {
			t.Errorf("docs/lessons.md says nothing of %s", w)
		}
	}
}

// A lesson is a script too: it runs through, and where it makes several programs
// the command says so.
func TestLessonsAreScripts(t *testing.T) {
	for _, l := range allLessons(t) {
		source, err := tutorials.FS.ReadFile(l.name + ".star")
		if err != nil {
			t.Fatal(err)
		}
		script, err := starlib.Load(context.Background(), starlib.Options{File: l.name + ".star", Source: source})
		if err != nil {
			t.Errorf("%s: %v", l.name, err)
			continue
		}
		names := make(map[string]bool)
		for _, p := range script.Programs {
			if names[p.Name] {
				t.Errorf("%s makes two programs %q, so --program can't choose", l.name, p.Name)
			}
			names[p.Name] = true
		}
		var out bytes.Buffer
		s := NewSession(&out, &out)
		code := exitCode(s.Exec(context.Background(), []string{"--size", "4KiB", tutorialPrefix + l.name + ".star"}))
		want := "choose one with --program"
		if len(script.Programs) == 1 {
			want = "every output is right"
		}
		if !strings.Contains(out.String(), want) || code != exitCall && len(script.Programs) > 1 {
			t.Errorf("%s: exit code %d\n%s", l.name, code, out.String())
		}
	}
}

// The figures that lessons quote stand in the page that they name.
func TestLessonFigures(t *testing.T) {
	page, err := os.ReadFile("../../docs/benchmarks-gpu.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^# \| ([0-9,]+) \| ([0-9.]+) \| ([0-9.]+) \| ([0-9.]+) \| ([^|]+) \|$`)
	text, err := tutorials.FS.ReadFile("11_gpus.star")
	if err != nil {
		t.Fatal(err)
	}
	rows := row.FindAllStringSubmatch(string(text), -1)
	for _, r := range rows {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %s \| %s \| %s \| %s \|.* \| %s \|$`, regexp.QuoteMeta(r[1]), regexp.QuoteMeta(r[2]),
			regexp.QuoteMeta(r[3]), regexp.QuoteMeta(r[4]), regexp.QuoteMeta(r[5])))
		if !line.Match(page) {
			t.Errorf("docs/benchmarks-gpu.md has no row %s", r[0])
		}
	}
	if len(rows) < 3 {
		t.Errorf("found %d rows of figures", len(rows))
	}
	composition := regexp.MustCompile(`(?m)^# \| [0-9]+ [KM]iB \| ([0-9.]+) \| ([0-9.]+) \|$`)
	if text, err = tutorials.FS.ReadFile("06_composition.star"); err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "**Composition.**")
	section, _, _ = strings.Cut(section, "\n\n")
	rows = composition.FindAllStringSubmatch(string(text), -1)
	for _, r := range rows {
		for _, figure := range r[1:] {
			if !strings.Contains(section, figure) {
				t.Errorf("docs/benchmarks-gpu.md says nothing of %s", figure)
			}
		}
	}
	if len(rows) != 3 {
		t.Errorf("found %d rows about composition, want 3", len(rows))
	}
}

// typed is a shell with somebody at a prompt, in a lesson.
type typed struct {
	t   *testing.T
	sh  *Shell
	out bytes.Buffer
}

func inLesson(t *testing.T, name string) *typed {
	x := &typed{t: t}
	x.sh = NewShell(&x.out, &x.out)
	x.sh.Typed()
	x.line("tutorial " + name)
	return x
}

// line types a line and returns what it prints.
func (x *typed) line(text string) string {
	x.out.Reset()
	_ = x.sh.Line(context.Background(), text) // told
	return x.out.String()
}

func (x *typed) wants(text string, want ...string) {
	x.t.Helper()
	got := x.line(text)
	for _, w := range want {
		if !strings.Contains(got, w) {
			x.t.Fatalf("after %q: got\n%s\nwant %q", text, got, w)
		}
	}
}

// Enter goes through a lesson cell by cell; what is typed in between stays beside
// it, and the solution is not shown unasked.
func TestGuide(t *testing.T) {
	x := inLesson(t, "fusion")
	x.wants("", "What a copy becomes", `   1  with MSCCLProgram("chain"`, "[3 of 20] Enter runs this")
	if got := x.line("check"); !strings.Contains(got, "there is no program yet") {
		t.Fatalf("a cell that was only shown has run: %s", got)
	}
	x.wants("", "Twelve instructions", "   >  instructions before")
	// A program of one's own is what one's own commands are about, not the lesson's.
	x.wants(`with MSCCLProgram("mine", fully_connected(2), AllGather(2)):`)
	x.wants(`    chunk(0, "input", 0).copy(1, "output", 0)`)
	x.wants("") // ends the block
	x.wants("check", "mine: allgather", "check     fails")
	x.wants("", "chain: instructions", "12 instructions", "instructions after")
	x.wants("check", "mine: allgather")
	x.wants("judge", "exercise: not solved yet", "it is allgather on 2 ranks, out of place; the exercise wants prefix_sums on 4 ranks, in place")
	for range 20 {
		if got := x.line(""); strings.Contains(got, "your turn") {
			if strings.Contains(got, `"prefix"`) || !strings.Contains(got, "it has 12 steps, at most 4 are allowed") {
				t.Fatalf("with the exercise: got\n%s", got)
			}
			break
		}
	}
	x.wants("judge", "it has 12 steps") // of the exercise as it was given
	x.wants("", `MSCCLProgram("prefix"`, "[20 of 20] Enter runs this")
	x.wants("", "exercise: solved: every output right, 4 steps", "the end of the lesson")
	x.wants("", "this was the last cell")
	x.wants("judge", "exercise: solved")
	x.wants("tutorial nonsense", "no lesson \"nonsense\"")
	x.wants("tutorial", " 1  First copy")
}

// Whoever follows the first two lessons has a collective of their own, checked, drawn
// and run: what they say to write is written, and what they say to type is typed.
func TestFirstTwoLessons(t *testing.T) {
	all := allLessons(t)[:2]
	t.Chdir(t.TempDir())
	fence := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	comment := regexp.MustCompile(`  +.*$`)
	calls := 0
	for i := range all {
		for k := range all[i].Cells {
			c := &all[i].Cells[k]
			if c.Title == "The ring" {
				if err := os.WriteFile("my_ring.star", []byte(c.Source+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if c.Kind != notebook.Text {
				continue
			}
			for _, m := range fence.FindAllStringSubmatch(c.Source, -1) {
				if m[1] == "python" {
					if err := os.WriteFile("mine.star", []byte(m[2]), 0o644); err != nil {
						t.Fatal(err)
					}
					continue
				}
				for line := range strings.Lines(m[2]) {
					line = comment.ReplaceAllString(strings.TrimSpace(line), "")
					var out bytes.Buffer
					s := NewSession(&out, &out)
					args := strings.Fields(line)
					if err := s.Exec(context.Background(), args[1:]); err != nil || args[0] != "mscclsh" {
						t.Errorf("%s: %v\n%s", line, err, out.String())
					}
					if calls++; strings.Contains(line, ".star --ranks") && len(args) == 4 && !strings.Contains(out.String(), "every output is right") {
						t.Errorf("%s: got\n%s", line, out.String())
					}
				}
			}
		}
	}
	if calls < 8 {
		t.Errorf("found %d calls, want 8", calls)
	}
	for _, file := range []string{"mine.html", "mine.xml", "my_ring.svg", "my_ring.html"} {
		if st, err := os.Stat(file); err != nil || st.Size() < 500 {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestParseDemands(t *testing.T) {
	for text, want := range map[string]string{
		"": "[]", "steps <= 4": "[{steps false 4 -1 -1}]", "channels >= 4, blocks <= 14": "[{channels true 4 -1 -1} {blocks false 14 -1 -1}]",
		"channels(1,20) >= 4": "[{channels true 4 1 20}]",
	} {
		if got, err := parseDemands(text, diag.Pos{}); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: got %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"steps", "steps < 4", "stones <= 4", "steps <= -4", "steps <= 4,blocks <= 2", "steps <= 99999999999999999999",
		"steps(1,2) <= 4", "channels(1) <= 4", "channels(1,2)", "channels(999999,2) <= 1"} {
		if got, err := parseDemands(text, diag.Pos{}); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestOtherCollective(t *testing.T) {
	custom := func(expect ...[]ir.Contribution) *ir.Collective {
		c := ir.NewCollective(ir.Custom, 2, 1, false)
		c.Name = "own"
		c.Custom = &ir.CustomSpec{Input: []int32{1, 1}, Output: []int32{1, 1}, Expect: [][][]ir.Contribution{{expect[0]}, {expect[1]}}}
		return c
	}
	all := []ir.Contribution{{Rank: 0, Index: 0}, {Rank: 1, Index: 0}}
	allreduce := ir.NewCollective(ir.AllReduce, 2, 1, false)
	for _, c := range []struct {
		got  *ir.Collective
		want string
	}{
		{allreduce, ""},
		{custom(all, all), ""}, // by another name the same
		{custom(all, nil), "demands something else of output 0 of rank 1"},
		{custom(all, all[:1]), "demands something else of output 0 of rank 1"},
		{ir.NewCollective(ir.AllReduce, 2, 1, true), "it is allreduce on 2 ranks, in place; the exercise wants allreduce on 2 ranks, out of place"},
		{ir.NewCollective(ir.AllReduce, 3, 1, false), "it is allreduce on 3 ranks"},
		{ir.NewCollective(ir.AllReduce, 2, 2, false), ""}, // in two pieces
		{ir.NewCollective(ir.AllGather, 2, 1, false), "rank 0 has 1 chunk of input and 2 of output; the exercise wants 1 and 1"},
		{ir.NewCollective(ir.AllToNext, 2, 1, false), "demands something else of output 0 of rank 0"},
	} {
		if got := otherCollective(c.got, allreduce); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: got %q, want %q", c.got, got, c.want)
		}
	}
	part := custom(all, all)
	part.Custom.Holds = [][]bool{{true}, {false}}
	if otherCollective(part, custom(all, all)) == "" || otherCollective(part, part) != "" {
		t.Error("which inputs hold data makes no difference, or makes one where there is none")
	}
}

// Limits hold from both sides, and what isn't kept is said with its number.
func TestDemands(t *testing.T) {
	for demands, want := range map[string]string{
		"steps <= 7, blocks >= 2, channels <= 1, scratch <= 3, slots >= 2": "",
		"steps <= 6":                  "it has 7 steps, at most 6 are allowed",
		"steps >= 8, blocks <= 1":     "it has 7 steps, at least 8 are wanted; it has 2 thread blocks, at most 1 are allowed",
		"channels >= 2, scratch <= 2": "it has 1 channel, at least 2 are wanted; it has 3 chunks of scratch, at most 2 are allowed",
		"slots <= 1":                  "it has 2 slots a connection, at most 1 are allowed",
	} {
		list, err := parseDemands(demands, diag.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		coll := ir.NewCollective(ir.AllReduce, 2, 1, false)
		c := &Session{program: &ir.Program{Spec: &ir.Spec{Coll: coll}}, report: Report{Check: &CheckPart{Holds: true, MinSlots: 2},
			Compiled: &CompiledPart{Steps: 7, ThreadBlocks: 2, Channels: 1, ScratchChunks: 3}}}
		w := &wanted{coll: coll, demands: list}
		if got := strings.Join(w.judge(c), "; "); got != want {
			t.Errorf("%s: got %q, want %q", demands, got, want)
		}
	}
}

// The longest chain of programs whose length is known: what the library's
// docstrings claim, for eight ranks.
func TestLongestChain(t *testing.T) {
	for call, want := range map[string]int64{
		"@algorithms/allreduce_ring.star --ranks 8":                  14, // 2(n-1)
		"@algorithms/allreduce_one_step.star --ranks 8":              1,
		"@algorithms/allreduce_allpairs.star --ranks 8":              2,
		"@algorithms/broadcast_tree.star --ranks 8":                  3, // log2(n)
		"@algorithms/allreduce_hierarchical.star --nodes 2 --gpus 4": 8, // 2(G-1) + 2(N-1)
		"@algorithms/sendrecv.star --ranks 2":                        1,
	} {
		sh := NewShell(&bytes.Buffer{}, &bytes.Buffer{})
		if err := sh.Exec(context.Background(), "load "+call); err != nil {
			t.Fatal(err)
		}
		p, err := sh.final(context.Background(), sh.set)
		if err != nil {
			t.Fatal(err)
		}
		if got := longestChain(p); got != want {
			t.Errorf("%s: got %d, want %d", call, got, want)
		}
	}
}
