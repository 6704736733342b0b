package algorithms_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

// oneShapes are the clusters of one-sided scripts that know nodes: those that
// MSCCL++ ships plans for, and odd ones.
var oneShapes = [][2]string{{"2", "2"}, {"2", "8"}, {"4", "2"}, {"4", "8"}, {"3", "5"}}

// oneAxes says what the tests vary of a one-sided script.
func oneAxes(t *testing.T, name string) []axis {
	var axes []axis
	for _, p := range load(t, name, nil).Params {
		switch p.Name {
		case "ranks":
			axes = append(axes, values("ranks", "2", "3", "4", "5", "8", "13", "16"))
		case "nodes":
			var a axis
			for _, s := range oneShapes {
				a = append(a, map[string]string{"nodes": s[0], "gpus": s[1]})
			}
			axes = append(axes, a)
		case "inplace":
			axes = append(axes, values(p.Name, "true", "false"))
		case "instances":
			if testing.Short() { // 32 ranks of four take the check a minute
				axes = append(axes, values(p.Name, "1", "2"))
			} else {
				axes = append(axes, values(p.Name, "1", "2", "4"))
			}
		}
	}
	return axes
}

// compileOne compiles a one-sided script's program.
func compileOne(t *testing.T, name string, args map[string]string, target ir.Target) *ir.Program {
	t.Helper()
	p, err := compiler.CompileOneSided(context.Background(), load(t, name, args).Programs[0].One, compiler.Options{Target: target})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOneSided takes every one-sided algorithm through every stage: the check,
// within a launch and across launches, runs beside a reference written here, and
// the way to a plan and back.
func TestOneSided(t *testing.T) {
	for _, name := range algorithms.OneSided() {
		axes := oneAxes(t, name)
		rows := covering(axes)
		if *full {
			rows = product(axes)
		}
		for _, row := range rows {
			args, _ := caseOf(axes, row)
			t.Run(name+","+caseName(args), func(t *testing.T) {
				t.Parallel()
				p, limited := compileOne(t, name, args, ir.TargetNative), compileOne(t, name, args, ir.TargetPlain)
				judgeOne(t, p)
				if doings(t, limited) != doings(t, p) {
					judgeOne(t, limited)
				}
				planned(t, limited)
			})
		}
	}
}

// judgeOne checks a program and runs it: on the least size, on one of odd parts,
// and, of few chunks with loops, on one that takes two and a half turns. It does so
// three times in a row, and again with the thread blocks in an order drawn by a seed.
func judgeOne(t *testing.T, p *ir.Program) {
	t.Helper()
	report, err := checker.Check(context.Background(), p, checker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK || report.Races > 0 || report.RacesAcross > 0 {
		t.Fatalf("the check: %v, %d races, %d across launches\n%v", report.OK, report.Races, report.RacesAcross, report.Messages)
	}
	chunk := int64(p.OneSided.Alignment)
	sizes := []int64{chunk, 7 * chunk}
	for i := range p.OneSided.Ops {
		if op := &p.OneSided.Ops[i]; op.Kind == ir.OpPipeline && p.Coll.NumChunks() <= 12 {
			sizes = append(sizes, op.UnitBytes*5/2)
			break
		}
	}
	for _, size := range sizes {
		for _, chaos := range []*cpu.Chaos{nil, {Seed: uint64(size)}} {
			right(t, p, cpu.Options{Bytes: size * int64(p.Coll.NumChunks()), Chaos: chaos})
		}
	}
}

// element is what rank r has at place j of its input.
func element(r, j int) int32 { return int32(1000003*(r+1) + 7*j*(r+2)) }

// wanted is what rank r has to end with, by the meaning of the collective: n
// ranks, and m elements in the message.
func wanted(kind ir.CollectiveKind, n, m, r int) []int32 {
	sum := func(j int) (s int32) {
		for q := range n {
			s += element(q, j)
		}
		return s
	}
	part := m / n
	var out []int32
	switch kind {
	case ir.AllReduce:
		for j := range m {
			out = append(out, sum(j))
		}
	case ir.AllGather:
		for j := range m {
			out = append(out, element(j/part, j%part))
		}
	case ir.ReduceScatter:
		for j := range part {
			out = append(out, sum(r*part+j))
		}
	case ir.AllToAll:
		for j := range m {
			out = append(out, element(j/part, r*part+j%part))
		}
	}
	return out
}

// right runs a program on the elements above, several times, and compares what
// comes out with what is wanted.
func right(t *testing.T, p *ir.Program, o cpu.Options) *cpu.Report {
	t.Helper()
	n, m := int(p.Ranks()), int(o.Bytes/4)
	given := m
	if p.Coll.Kind == ir.AllGather {
		given = m / n
	}
	for r := range n {
		var in []byte
		for j := range given {
			in = binary.LittleEndian.AppendUint32(in, uint32(element(r, j)))
		}
		o.Inputs = append(o.Inputs, in)
	}
	o.DType, o.KeepOutputs, o.Iterations = runtime.Int32, true, 3
	report, err := cpu.Run(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	for r := range n {
		want, got := wanted(p.Coll.Kind, n, m, r), make([]int32, len(report.Outputs[r])/4)
		if _, err := binary.Decode(report.Outputs[r], binary.LittleEndian, got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d bytes: rank %d ends with %d elements %v, want %d elements %v", o.Bytes, r, len(got), head(got), len(want), head(want))
		}
	}
	return report
}

func head(v []int32) []int32 { return v[:min(len(v), 8)] }

// planned writes a program as a plan and reads it back: the same operations on the
// same memory, and the same bytes once more. A program over a limit of the executor
// is refused, with the limit.
func planned(t *testing.T, p *ir.Program) {
	t.Helper()
	var first, second bytes.Buffer
	if err := plan.Write(&first, p); err != nil {
		for _, m := range diag.Messages(err) {
			if m.Code != "plan-limit" && !strings.Contains(m.Text, "more") {
				t.Errorf("refused: %v, want the limit of the executor that it exceeds", err)
			}
		}
		if err := plan.WriteWide(&first, p); err != nil { // what has larger tables takes it
			t.Fatal(err)
		}
	}
	back, err := plan.Read(bytes.NewReader(first.Bytes()), plan.Options{File: p.Name + ".json"})
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.WriteWide(&second, back.Program); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("what was read back is written as another plan")
	}
	if a, b := doings(t, p), doings(t, back.Program); a != b {
		t.Errorf("what was read back is another program: got\n%s\nwant\n%s", b, a)
	}
}

// doings is a program's text without what it says about where it is from, and without
// places in the script.
func doings(t *testing.T, p *ir.Program) string {
	t.Helper()
	var text strings.Builder
	if err := p.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text.String(), "\nwindow ")
	return regexp.MustCompile(` ; \S+:\d+:\d+`).ReplaceAllString(rest, "")
}

// TestOneSidedRefusals: one rank, or nodes of one, have nobody to put anything to.
func TestOneSidedRefusals(t *testing.T) {
	for _, name := range algorithms.OneSided() {
		cases := []struct {
			args map[string]string
			want string
		}{{map[string]string{"ranks": "1"}, "ranks must be 2 or more, got 1"}}
		if strings.HasSuffix(name, "multi_node") {
			cases[0].args, cases[0].want = map[string]string{"nodes": "1"}, "nodes and gpus must be 2 or more, got 1 and 8"
			cases = append(cases, cases[0])
			cases[1].args, cases[1].want = map[string]string{"gpus": "1"}, "nodes and gpus must be 2 or more, got 2 and 1"
		}
		for _, c := range cases {
			_, err := try(name, c.args)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), name+".star:") {
				t.Errorf("%s %s: got error %v, want one in the script that says %q", name, caseName(c.args), err, c.want)
			}
		}
	}
}

// TestOneSidedLimits: as plans they fit into MSCCL++'s executor up to the size that
// its tables allow, and beyond it are refused with the table that is too small. A
// thread block has room for 16 channels and 16 remote buffers: enough for 16 peers
// with one of each, and for 8 with two.
func TestOneSidedLimits(t *testing.T) {
	for _, c := range []struct {
		name      string
		ranks     int // the most
		out       int // out of place, if that is less
		exhausted string
	}{
		{"onesided_allgather_fullmesh", 17, 0, "channels"},
		{"onesided_allgather_staged", 9, 0, "channels"},           // begun and filled
		{"onesided_allreduce_fullmesh", 9, 0, "remote buffers"},   // scratch and output
		{"onesided_allreduce_one_shot", 17, 0, "remote buffers"},  // packets take no channel
		{"onesided_allreduce_pipelined", 9, 0, "channels"},        // begun and to_add
		{"onesided_allreduce_switch", 17, 17, "channels"},         // in place alone
		{"onesided_allreduce_two_shot", 17, 0, "remote buffers"},  // packets take no channel
		{"onesided_allreduce_zero_copy", 17, 9, "remote buffers"}, // inputs, and outputs where they are others
		{"onesided_alltoall", 17, 0, "channels"},
	} {
		for _, mode := range []string{"true", "false"} {
			most := c.ranks
			if mode == "false" && c.out > 0 {
				most = c.out
			}
			for ranks := most; ranks <= most+1; ranks++ {
				args := map[string]string{"ranks": strconv.Itoa(ranks)}
				if c.out != c.ranks {
					args["inplace"] = mode
				}
				t.Run(c.name+","+caseName(args), func(t *testing.T) {
					err := plan.Write(&bytes.Buffer{}, compileOne(t, c.name, args, ir.TargetPlain))
					refused := err != nil && strings.Contains(err.Error(), c.exhausted) && strings.Contains(err.Error(), "MSCCL++'s executor has room for 16")
					if want := ranks > most; want != refused || err != nil && !refused {
						t.Errorf("got error %v, want one about 16 %s: %v", err, c.exhausted, want)
					}
				})
			}
		}
	}
}

// TestOneSidedSameBits: all ranks end an allreduce with the same bits, whatever the
// numbers, because one rank added them up or all in the same order.
func TestOneSidedSameBits(t *testing.T) {
	for _, name := range algorithms.OneSided() {
		if !strings.Contains(name, "allreduce") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			args := map[string]string{}
			for _, p := range load(t, name, nil).Params {
				switch p.Name {
				case "ranks":
					args["ranks"] = "7"
				case "nodes":
					args["nodes"], args["gpus"] = "4", "3"
				}
			}
			p := compileOne(t, name, args, ir.TargetNative)
			report, err := cpu.Run(context.Background(), p, cpu.Options{Bytes: 1024 * int64(p.Coll.NumChunks()),
				DType: runtime.FP32, Op: runtime.Sum, Seed: 5, KeepOutputs: true})
			if err != nil {
				t.Fatal(err)
			}
			if !report.Verified {
				t.Errorf("%d elements are wrong", report.Wrong)
			}
			for r, out := range report.Outputs {
				if !bytes.Equal(out, report.Outputs[0]) {
					t.Errorf("rank %d ends with other bits than rank 0", r)
				}
			}
		})
	}
}

// oneShapeOf is the shape that arguments ask for; without nodes all are one node.
func oneShapeOf(args map[string]string) shape {
	s := shape{n: size(args), N: 1}
	if n, err := strconv.Atoi(args["nodes"]); err == nil {
		s.N = n
	}
	s.G = s.n / s.N
	return s
}

// TestOneSidedTable: the table in the documentation has every script with its sizes.
func TestOneSidedTable(t *testing.T) {
	page, err := os.ReadFile("../docs/add-an-algorithm.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range algorithms.OneSided() {
		doc, err := algorithms.Doc(name)
		if err != nil {
			t.Fatal(err)
		}
		_, sizes, _ := strings.Cut(doc, "\nSizes: ")
		sizes, _, _ = strings.Cut(sizes, ".\n")
		if row := "\n| `" + name + ".star` | " + sizes + " | "; !strings.Contains(string(page), row) {
			t.Errorf("docs/add-an-algorithm.md has no row %q", row)
		}
	}
}
