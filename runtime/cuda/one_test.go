package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/handed"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// handedPlan is a plan of others, and whether the checker finds that its results are
// right and that no two accesses race, within a launch and in launches in a row.
type handedPlan struct {
	name  string
	p     *ir.Program
	sure  bool
	inRow bool
}

// handedPlans reads those that end and that no switch is needed for.
func handedPlans(t testing.TB) []handedPlan {
	t.Helper()
	folder := handed.Plans(t)
	index, err := os.ReadFile(filepath.Join(folder, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var out []handedPlan
	for i, line := range strings.Split(strings.TrimSpace(string(index)), "\n") {
		row := strings.Split(line, "\t")
		if i == 0 || len(row) < 6 || strings.HasPrefix(row[5], "HANG") || strings.HasPrefix(row[5], "LIMIT") {
			continue
		}
		f, err := os.Open(filepath.Join(folder, row[0]))
		if err != nil {
			t.Fatal(err)
		}
		in, err := plan.Read(f, plan.Options{File: row[0]})
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", row[0], err)
		}
		if err := cuda.Validate(in.Program); err != nil {
			if !usesSwitch(in.Program) {
				t.Errorf("%s: %v", row[0], err)
			}
			continue
		}
		verdict, err := checker.Check(context.Background(), in.Program, checker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, handedPlan{row[0], in.Program, verdict.OK && verdict.Races == 0, !verdict.Has(checker.CodeRaceAcross)})
	}
	return out
}

func usesSwitch(p *ir.Program) bool {
	for i := range p.OneSided.Ops {
		if p.OneSided.Ops[i].Via == ir.ChannelSwitch {
			return true
		}
	}
	return false
}

// demands reports whether a collective says what must be in any output.
func demands(c *ir.Collective) bool {
	var want []ir.Contribution
	for r := range ir.Rank(c.Ranks) {
		for i := range c.OutputChunks(r) {
			if _, demanded := c.Expect(want, r, i); demanded {
				return true
			}
		}
	}
	return false
}

// sizesOf are those among sizes that a one-sided program can be cut into, at least its
// smallest ones.
func sizesOf(p *ir.Program, sizes ...int64) []int64 {
	unit := int64(p.Coll.NumChunks()) * int64(p.OneSided.Alignment)
	if unit == 0 {
		return []int64{0}
	}
	var out []int64
	for _, n := range sizes {
		n = max(n/unit*unit, (p.MinBytes+unit-1)/unit*unit, unit)
		if p.MaxBytes > 0 {
			n = min(n, p.MaxBytes/unit*unit)
		}
		out = append(out, n)
	}
	return out
}

// TestHandedPlans runs plans of others on devices, several launches in a row. Those that
// the checker finds right deliver the right values; of those that have nothing to do the
// outputs are those of the CPU interpreter.
func TestHandedPlans(t *testing.T) {
	lib := library(t)
	ran, inRow := 0, 0
	for _, h := range handedPlans(t) {
		t.Run(h.name, func(t *testing.T) {
			ran++
			x := open(t, lib, h.p, cuda.CommOptions{Devices: []int32{0, 1}, Watchdog: patience})
			launches := 1
			if h.inRow {
				launches = 3
				inRow++
			}
			for _, n := range sizesOf(h.p, 0, 20_000, 300_000) {
				if !h.sure { // but it ends
					if _, err := x.Run(context.Background(), cuda.Options{Bytes: n, Exact: true, NoVerify: true}); err != nil {
						t.Error(err)
					}
					continue
				}
				if demands(h.p.Coll) {
					r := right(t, x, cuda.Options{Bytes: n, Exact: true, Launches: launches, Repetitions: 2, Graph: n%32 == 0})
					if r.Elements == 0 && n > 0 {
						t.Errorf("%d bytes: nothing was compared", n)
					}
					continue
				}
				sameAsCPU(t, x, h.p, n)
			}
		})
	}
	if ran < 40 || inRow < 10 {
		t.Errorf("only %d plans ran, %d of them several times in a row", ran, inRow)
	}
}

// sameAsCPU wants the outputs of the CPU interpreter.
func sameAsCPU(t *testing.T, x *cuda.Program, p *ir.Program, n int64) {
	t.Helper()
	got, err := x.Run(context.Background(), cuda.Options{Bytes: n, Exact: true, NoVerify: true, KeepOutputs: true})
	if err != nil {
		t.Fatal(err)
	}
	want, err := cpu.Run(context.Background(), p, cpu.Options{Bytes: n, Exact: true, NoVerify: true, KeepOutputs: true})
	if err != nil {
		t.Fatal(err)
	}
	for r := range want.Outputs {
		if !bytes.Equal(want.Outputs[r], got.Outputs[r]) {
			t.Errorf("%d bytes: the output of rank %d is not the CPU's", n, r)
		}
	}
}

// TestPlansWithoutAnOperation takes operations out of plans of others, one at a time: what
// the checker finds to deadlock the watchdog ends, and what it still finds right gives
// the right values.
func TestPlansWithoutAnOperation(t *testing.T) {
	lib := library(t)
	right, stuck := 0, 0
	for _, h := range handedPlans(t) {
		p := h.p
		if p.Coll.Kind == ir.Custom || p.Coll.Ranks > 4 || !h.sure {
			continue
		}
		size := sizesOf(p, 0)[0] * 3
		for i := 0; i < len(p.OneSided.Ops); i += 1 + len(p.OneSided.Ops)/6 {
			old := p.OneSided.Ops[i]
			if old.Kind == ir.OpPipeline {
				continue
			}
			p.OneSided.Ops[i] = ir.Op{Kind: ir.OpSync, Parts: 1, Pos: old.Pos}
			verdict, err := checker.Check(context.Background(), p, checker.Options{})
			if err != nil {
				t.Fatal(err)
			}
			o := cuda.CommOptions{Devices: []int32{0, 1}, Watchdog: patience}
			hangs := verdict.Has(checker.CodeDeadlock)
			if hangs {
				o.Watchdog = 50 * time.Millisecond
			}
			if hangs || verdict.OK && verdict.Races == 0 {
				err = on(lib, p, o, func(x *cuda.Program) error {
					r, err := x.Run(context.Background(), cuda.Options{Bytes: size, Exact: true, AnySize: true})
					if err == nil && !r.Verified {
						return fmt.Errorf("%d elements are wrong: %v", r.Wrong, r.Mismatches)
					}
					return err
				})
				m := (*diag.Message)(nil)
				switch {
				case hangs && (!errors.As(err, &m) || m.Code != "deadlock" || len(m.Notes) == 0):
					t.Errorf("%s without operation %d (%v): %v, want a deadlock", h.name, i, old.Kind, err)
				case !hangs && err != nil:
					t.Errorf("%s without operation %d (%v): %v", h.name, i, old.Kind, err)
				case hangs:
					stuck++
				default:
					right++
				}
			}
			p.OneSided.Ops[i] = old
		}
	}
	if stuck < 20 || right < 5 {
		t.Errorf("%d plans hung and %d were still right", stuck, right)
	}
}

// oneProgram reads a one-sided program of a collective: what comes after the header of
// its text form, without the numbers of operations.
func oneProgram(t testing.TB, collective, protocol, flags, text string) *ir.Program {
	t.Helper()
	p, err := readOne(collective, protocol, flags, text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func readOne(collective, protocol, flags, text string) (*ir.Program, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "program \"t\"\ncollective %s\ntopology none\nprotocol %s\npolicy auto instances 1\nwindow min 0 max 0\none-sided threads 64 align 16%s\n",
		collective, protocol, flags)
	depth, numbers := 0, [2]int{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		switch word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "gpu", "channels", "semaphores", "group":
		case "tb":
			numbers = [2]int{}
		case "}":
			depth--
		default:
			line = fmt.Sprintf("  %d %s", numbers[depth], strings.TrimSpace(line))
			numbers[depth]++
			if strings.HasSuffix(line, "{") {
				depth++
				numbers[depth] = 0
			}
		}
		b.WriteString(line + "\n")
	}
	p, err := ir.ParseProgram(strings.NewReader(b.String()), "p")
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, b.String())
	}
	return p, nil
}

// TestOneSidedRefusals: what can't be run is refused before anything moves.
func TestOneSidedRefusals(t *testing.T) {
	lib := library(t)
	pairs := func() *ir.Program {
		return oneProgram(t, "allreduce ranks 2 factor 2 split 1 in-place", "LL", "", allPairsPackets)
	}
	for _, c := range []struct {
		name, code string
		o          cuda.Options
		spoil      func(p *ir.Program)
	}{
		{"size", "size", cuda.Options{Bytes: 48}, nil},
		{"window", "size-window", cuda.Options{Bytes: 64}, func(p *ir.Program) { p.MinBytes = 128 }},
		{"alignment of packets", "program", cuda.Options{Bytes: 64}, func(p *ir.Program) { p.OneSided.Alignment = 2 }},
		{"alignment and type", "dtype", cuda.Options{Bytes: 64, DType: runtime.Int64}, func(p *ir.Program) { p.OneSided.Alignment = 4 }},
		{"fixed reduction", "op", cuda.Options{Bytes: 64, Op: runtime.Min}, func(p *ir.Program) {
			for i := range p.OneSided.Ops {
				if p.OneSided.Ops[i].Kind.Reduces() {
					p.OneSided.Ops[i].Reduce = ir.ReduceSum
				}
			}
		}},
		{"bounds", "bounds", cuda.Options{Bytes: 64}, func(p *ir.Program) { p.OneSided.Operands[1].Index = 4 }},
		{"rank", "program", cuda.Options{Bytes: 64}, func(p *ir.Program) { p.OneSided.Operands[1].Rank = 4 }},
		{"kind", "program", cuda.Options{Bytes: 64}, func(p *ir.Program) { p.OneSided.Ops[1].Kind = 99 }},
	} {
		p := pairs()
		if c.spoil != nil {
			c.spoil(p)
		}
		err := on(lib, p, cuda.CommOptions{}, func(x *cuda.Program) error {
			_, err := x.Run(context.Background(), c.o)
			return err
		})
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != c.code {
			t.Errorf("%s: got %v, want code %s", c.name, err, c.code)
		}
	}
	switched := oneProgram(t, "allreduce ranks 2 factor 1 split 1 in-place", "Simple", "",
		"group i: 0 1\ngpu 0 input=1 output=1 scratch=0\ntb 0\nglres switch group 0.i[0] x1 -> group 0.i[0] x1\ngpu 1 input=1 output=1 scratch=0")
	var m *diag.Message
	if err := cuda.Validate(switched); !errors.As(err, &m) || m.Code != "one-sided" || !strings.Contains(m.Text, "multicast") {
		t.Errorf("switch: got %v", err)
	}
}
