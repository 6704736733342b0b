package table_test

import (
	"context"
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
	"github.com/mscclsh/mscclsh/table"
)

// What entries of one-sided programs say, by hand. An allreduce of chunk factor 1 on 4 ranks
// has 4 chunks, an allgather's block is one; instances cut each. Packets take twice the scratch
// and two halves twice that: one shot has 4 slots of 4 chunks a rank, so 16 * 4. Two shots have
// 2 * 4 chunks. Programs that put into outputs of other ranks, or read their inputs, want
// windows; all of these are cut at multiples of 16 bytes.
func TestOneSidedEntries(t *testing.T) {
	for _, c := range []struct {
		script   string
		multiple int64
		scratch  int64
		blocks   int32
		memory   table.Memory
		place    string
		protocol ir.Protocol
	}{
		{"onesided_allreduce_one_shot", 4, 64, 1, table.AnyMemory, "both", ir.LL},
		{"onesided_allreduce_two_shot", 4, 32, 1, table.AnyMemory, "both", ir.LL},
		{"onesided_allreduce_pipelined", 16, 32, 12, table.AnyMemory, "both", ir.Simple},
		{"onesided_allreduce_zero_copy", 16, 0, 4, table.Windows, "both", ir.Simple},
		{"onesided_allgather_fullmesh", 1, 0, 2, table.Windows, "both", ir.Simple},
		{"onesided_allgather_staged", 4, 16, 8, table.AnyMemory, "out", ir.Simple},
	} {
		r := oneRecipe(t, "e", "both", c.script, "ranks", "4")
		if c.place == "out" {
			r.Both = nil
		}
		x := made(t, r)
		e := &x.Entries[0]
		p := &x.Programs[max(e.OutOfPlace, e.InPlace)]
		if e.Multiple != c.multiple || e.Unit != 16 || p.ScratchChunks != c.scratch || e.MaxBlocks != c.blocks || e.Memory != c.memory ||
			e.Place() != c.place || p.Protocol != c.protocol || p.MaxRegime != 1 {
			t.Errorf("%s: multiple %d, unit %d, scratch %d, blocks %d, memory %v, place %s, protocol %v, regime %d", c.script, e.Multiple, e.Unit,
				p.ScratchChunks, e.MaxBlocks, e.Memory, e.Place(), p.Protocol, p.MaxRegime)
		}
		if both := c.memory == table.AnyMemory && c.place == "both"; e.Mixable != both || both != (e.InPlace == e.OutOfPlace) {
			t.Errorf("%s: mixable %t with programs %d and %d", c.script, e.Mixable, e.InPlace, e.OutOfPlace)
		}
		if e.DTypes != table.AllDTypes() || e.Collective.Reduces() && e.Ops != 1<<runtime.Sum|1<<runtime.Avg {
			t.Errorf("%s: types %v, operations %v", c.script, e.DTypes, e.Ops)
		}
	}
}

// What lies in the table is the program that was compiled, and the checker says the same of it,
// for calls of both kinds where it is for both.
func TestOneSidedProgram(t *testing.T) {
	for _, script := range []string{"onesided_allreduce_one_shot", "onesided_allreduce_two_shot", "onesided_allreduce_pipelined",
		"onesided_allreduce_zero_copy", "onesided_allgather_fullmesh"} {
		r := oneRecipe(t, "e", "both", script, "ranks", "2")
		want := map[bool]*ir.Program{true: r.InPlace, false: r.OutOfPlace}
		if r.Both != nil {
			want = map[bool]*ir.Program{true: placed(r.Both, true), false: r.Both}
		}
		data := image(t, made(t, r))
		x, err := table.Decode(data)
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		if again := image(t, x); !slices.Equal(again, data) {
			t.Errorf("%s: written again it has other bytes", script)
		}
		programs := map[bool]*ir.Program{}
		for _, inPlace := range []bool{false, true} {
			got, err := x.Program(&x.Entries[0], inPlace)
			if err != nil {
				t.Fatalf("%s: %v", script, err)
			}
			programs[inPlace] = got
			sameOne(t, script, got, want[inPlace])
			rep, err := checker.Check(context.Background(), got, checker.Options{MaxBytes: 1 << 16})
			if err != nil || !rep.OK || rep.RacesAcross > 0 {
				t.Errorf("%s, in place %t: %v %v", script, inPlace, rep.Messages, err)
			}
		}
		if err := x.Entries[0].Misfit(programs[true], programs[false]); err != nil {
			t.Errorf("%s: %v", script, err)
		}
	}
}

// without has nil for tables without elements.
func without(o *cuda.OneTables) cuda.OneTables {
	c := *o
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice && f.Len() == 0 {
			f.SetZero()
		}
	}
	return c
}

func sameOne(t *testing.T, script string, a, b *ir.Program) {
	t.Helper()
	x, xo, err := cuda.FlattenOne(a)
	if err != nil {
		t.Fatal(err)
	}
	y, yo, err := cuda.FlattenOne(b)
	if err != nil {
		t.Fatal(err)
	}
	if !equalTables(x, y) || !reflect.DeepEqual(without(xo), without(yo)) {
		t.Errorf("%s has other tables than it was compiled to", script)
	}
}

// Recipes that make no entry, and what each is told.
func TestOneSidedRefusals(t *testing.T) {
	packets := func() table.Recipe { return oneRecipe(t, "e", "both", "onesided_allreduce_one_shot", "ranks", "2") }
	for _, c := range []struct {
		name   string
		change func(*table.Recipe)
		want   string
	}{
		{"operation", func(r *table.Recipe) { r.Ops = 1 << runtime.Max }, "operations max: the program fixes what it reduces by, which is sum,avg"},
		{"one-sided in place alone", func(r *table.Recipe) {
			r.Both = nil
			r.OutOfPlace = compiled(t, "allreduce_allpairs", "ranks", "2", "inplace", "false")
		}, "the programs for calls in and out of place differ in more than that"},
		{"writes inputs", func(r *table.Recipe) {
			o := *r.Both.OneSided
			o.Operands = slices.Clone(o.Operands)
			for i := range o.Ops {
				if d := o.Ops[i].Dst; o.Ops[i].Kind == ir.OpReducePackets {
					o.Operands[d.Start].Buf = ir.Input
				}
			}
			r.Both.OneSided = &o
		}, "a program for both places must not write inputs"},
		{"cut elements", func(r *table.Recipe) {
			o := *r.Both.OneSided
			o.Alignment = 4
			r.Both.OneSided = &o
			r.DTypes = 1<<runtime.FP64 | 1<<runtime.FP32
		}, "data types fp64: the program cuts such elements, as it is cut at multiples of 4 bytes"},
	} {
		r := packets()
		c.change(&r)
		if _, _, err := table.Build("test", []table.Recipe{r}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	four := packets()
	o := *four.Both.OneSided
	o.Alignment = 4
	four.Both.OneSided = &o
	x := made(t, four)
	if e := &x.Entries[0]; e.Unit != 4 || e.DTypes != table.AllDTypes()&^(1<<runtime.FP64|1<<runtime.Int64|1<<runtime.Uint64) {
		t.Errorf("cut at multiples of 4 bytes: unit %d, types %v", e.Unit, e.DTypes)
	}
}

// Counts that an entry takes: chunks are multiples of its unit.
func TestUnits(t *testing.T) {
	r := oneRecipe(t, "e", "both", "onesided_allreduce_one_shot", "ranks", "2")
	x := made(t, r)
	q := table.Query{Collective: table.AllReduce, Op: runtime.Sum, Root: -1, Ranks: 2, Nodes: 1, Scratch: -1}
	for d, step := range map[runtime.DType]int64{runtime.FP64: 4, runtime.FP32: 8, runtime.BF16: 16, runtime.Int8: 32} {
		for count := int64(1); count <= 100; count++ {
			q.DType, q.Count = d, count
			_, reasons := x.Choose(q)
			want := table.NoReason
			if count%step != 0 {
				want = table.ByMultiple
			}
			if reasons[0] != want {
				t.Errorf("%v, count %d: %q, want %q", d, count, reasons[0], want)
			}
		}
	}
	// Packets of both halves: 4 times the bytes of 4 slots' chunks.
	if got := x.ScratchOf(&x.Entries[0], 80, runtime.FP32); got != 4*4*40*4 {
		t.Errorf("scratch %d", got)
	}
	x.Entries[0].MinBytes, x.Entries[0].MaxBytes = 33, 63
	if list := x.Lint(); !strings.Contains(list.Error(), "no call whose count is a multiple of 2 and chunks one of 16 bytes has a size in 33..63") {
		t.Errorf("lint says %v", list)
	}
}

// damages finds the program and what it has beside in a file, and changes 4 bytes there.
type damages struct{ program, one int }

func findOne(data []byte) damages {
	le := binary.LittleEndian
	d := damages{program: int(le.Uint64(data[40:]))}
	d.one = int(le.Uint64(data[d.program+144:]))
	return d
}

// Every field of what a one-sided program has is looked at.
func TestOneSidedCorrupt(t *testing.T) {
	whole := image(t, made(t, oneRecipe(t, "e", "both", "onesided_allreduce_one_shot", "ranks", "2")))
	d := findOne(whole)
	le := binary.LittleEndian
	table0 := func(i int) int { return int(le.Uint64(whole[d.one+8*i:])) }
	for _, c := range []struct {
		name  string
		at    int
		value uint32
		want  string
	}{
		{"one unaligned", d.program + 144, uint32(d.one + 4), "program 0: its operations: 1 elements of 120 bytes at offset"},
		{"one beyond", d.program + 144, 1 << 30, "program 0: its operations: 1 elements of 120 bytes at offset 1073741824"},
		{"slots", d.program + 136, 1, "program 0: it is one-sided, and has 1 slots"},
		{"regime", d.program + 120, 71, "71 chunks in a message"},
		{"protocol", d.program + 140, 0, "program 0: protocol Simple and packets true disagree"},
		{"Direct", d.program + 140, 3, "program 0: protocol Direct and packets true disagree"},
		{"thread blocks", d.program + 132, 3, "program 0: "},
		{"scratch", d.program + 112, 3, "program 0: 3 chunks of scratch, its tables have 16"},
		{"a table beyond", d.one + 8*5, 1 << 30, "program 0: table 5 of its operations"},
		{"operations", d.one + 64, 1 << 28, "program 0: table 5 of its operations"},
		{"fewer operations", d.one + 64, 1, "program 0: thread block"},
		{"operands", d.one + 72, 1, "has operands, references or operations that don't exist"},
		{"channels", d.one + 88, 1, "program 0: 1 channels, its ranks have 2"},
		{"semaphores", d.one + 96, 1, "program 0: "},
		{"packets", d.one + 104, 2, "program 0: packets 2 and halves of scratch 1 are neither yes nor no"},
		{"halves", d.one + 108, 2, "program 0: packets 1 and halves of scratch 2"},
		{"no halves", d.one + 108, 0, "program 0: 16 chunks of scratch, its tables have 8"},
		{"alignment", d.one + 112, 0, "program 0: ranges cut at multiples of 0 bytes"},
		{"another alignment", d.one + 112, 8, "entry 0: chunks in multiples of 16 bytes, of its program in multiples of 8"},
		{"threads", d.one + 116, 0, "by blocks of 0 threads"},
		{"block", table0(0) + 4, 99, "thread block 0 has operations 0 to 99 of"},
		{"channels of a rank", table0(1), 0xffffffff, "a rank has -1 channels"},
		{"channel's peer", table0(2) + 4, 7, "channel 0 goes to rank 7"},
		{"channel's kind", table0(2), 3, "and is of kind 3"},
		{"kind", table0(5) + 12, 30, "operation 0 is of kind 30"},
		{"switch", table0(5) + 16, 3, "operation 0 goes via a switch"},
		{"reduction", table0(5) + 20, 5, "with reduction 5"},
		{"sources", table0(5) + 28, 99, "operation 0 has operands"},
		{"operand's rank", table0(6), 9, "operand 0 is chunks"},
		{"operand's buffer", table0(6) + 4, 3, "operand 0 is chunks"},
		{"operand's size", table0(6) + 12, 0, "operand 0 is chunks 0 of"},
		{"operand's packets", table0(6) + 16, 2, "operand 0 is chunks"},
		{"memory", 112 + 76, 1, "entry 0: "},
		{"operations of the entry", 112 + 72, 1 << runtime.Max, "entry 0: operations max, and its program has others"},
		{"not mixable", 112 + 96, 0, "entry 0: "},
		{"unit", 112 + 100, 8, "entry 0: chunks in multiples of 8 bytes, of its program in multiples of 16"},
	} {
		changed := slices.Clone(whole)
		le.PutUint32(changed[c.at:], c.value)
		_, err := table.Decode(table.Reseal(changed))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// Whatever the words of a one-sided program are, there is a table or a sentence.
func TestOneSidedAnything(t *testing.T) {
	whole := image(t, made(t, oneRecipe(t, "e", "both", "onesided_allreduce_pipelined", "ranks", "2"),
		oneRecipe(t, "f", "both", "onesided_allgather_fullmesh", "ranks", "2")))
	state := uint64(7)
	random := func() uint64 { state = state*6364136223846793005 + 1442695040888963407; return state >> 20 }
	read := 0
	for range 5000 {
		changed := slices.Clone(whole)
		for range 1 + random()%3 {
			at := 112 + 4*(random()%uint64((len(changed)-112)/4))
			binary.LittleEndian.PutUint32(changed[at:], []uint32{0, 1, 2, 0xffffffff, uint32(random()), uint32(random() % 64)}[random()%6])
		}
		x, err := table.Decode(table.Reseal(changed))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a sentence: %v", err)
			}
			continue
		}
		read++
		_ = x.Lint()
		for i := range x.Entries {
			for _, inPlace := range []bool{false, true} {
				_, _ = x.Program(&x.Entries[i], inPlace)
			}
		}
	}
	if read == 0 || read == 5000 {
		t.Errorf("%d of 5000 changed files were read", read)
	}
}
