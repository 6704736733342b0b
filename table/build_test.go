package table_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
	"github.com/mscclsh/mscclsh/table"
)

// What NCCL's count is cut into, by hand. A collective of blocks (allgather and its like)
// has a block of count elements for each rank, and the program cuts that block: into as
// many chunks as it has instances, with one chunk a block in its script. An allreduce by
// all-pairs on n ranks has n chunks, each cut likewise; one step has one.
func TestCounts(t *testing.T) {
	for _, c := range []struct {
		script   string
		args     []string
		coll     table.Collective
		multiple int64
		bytes    int64 // of a call of 960 elements of 2 bytes on 4 ranks
		root     int32
	}{
		{"allreduce_one_step", nil, table.AllReduce, 1, 1920, -1},
		{"allreduce_one_step", []string{"instances", "8"}, table.AllReduce, 8, 1920, -1},
		{"allreduce_allpairs", nil, table.AllReduce, 4, 1920, -1},
		{"allreduce_allpairs", []string{"instances", "3", "pieces", "2"}, table.AllReduce, 24, 1920, -1},
		{"allgather_direct", []string{"instances", "4"}, table.AllGather, 4, 7680, -1},
		{"reduce_scatter_direct", []string{"instances", "2"}, table.ReduceScatter, 2, 7680, -1},
		{"alltoall_direct", []string{"instances", "5"}, table.AllToAll, 5, 7680, -1},
		{"broadcast_tree", []string{"root", "2"}, table.Broadcast, 1, 1920, 2},
		{"broadcast_tree", []string{"instances", "6"}, table.Broadcast, 6, 1920, 0},
		{"reduce_tree", []string{"root", "3", "instances", "2"}, table.Reduce, 2, 1920, 3},
		{"gather_tree", []string{"root", "1", "instances", "2"}, table.Gather, 2, 7680, 1},
		{"scatter_tree", []string{"instances", "3"}, table.Scatter, 3, 7680, 0},
		{"sendrecv", []string{"src", "3", "instances", "2"}, table.SendRecv, 2, 1920, 3},
	} {
		x := made(t, recipe(t, "e", "out", c.script, append([]string{"ranks", "4"}, c.args...)...))
		e := &x.Entries[0]
		p := &x.Programs[e.OutOfPlace]
		if e.Collective != c.coll || e.Ranks != 4 || e.Multiple != c.multiple || p.CountChunks != c.multiple || e.Root != c.root {
			t.Errorf("%s %v: got %v, multiple %d, %d chunks, root %d, want %v, %d, %d", c.script, c.args, e.Collective,
				e.Multiple, p.CountChunks, e.Root, c.coll, c.multiple, c.root)
		}
		if got := c.coll.Bytes(960, 2, 4); got != c.bytes {
			t.Errorf("%v: 960 elements are %d bytes, want %d", c.coll, got, c.bytes)
		}
		noPadding(t, e)
	}
}

// noPadding: the layout of the runtimes pads a count that is no multiple, and no other.
func noPadding(t *testing.T, e *table.Entry) {
	t.Helper()
	coll := ir.NewCollective(e.Collective.Kind(), e.Ranks, int32(e.Multiple), false)
	coll.Root, coll.Peer = 0, 1
	for count := int64(1); count <= 4*e.Multiple; count++ {
		bytes := e.Collective.Bytes(count, 4, e.Ranks)
		l, err := runtime.NewLayout(coll, runtime.FP32, bytes)
		if err != nil {
			t.Fatal(err)
		}
		padded := l.PaddedBytes() != bytes
		if padded != (count%e.Multiple != 0) {
			t.Errorf("%v: a count of %d in multiples of %d: padding %v", e.Collective, count, e.Multiple, padded)
		}
		if count%e.Multiple == 0 && l.ChunkBytes() != count*4/e.Multiple {
			t.Errorf("%v: a count of %d: chunks of %d bytes", e.Collective, count, l.ChunkBytes())
		}
	}
}

// What lies in the table is the program that was compiled: the same tables come out of
// it, and the checker says the same of it.
func TestProgram(t *testing.T) {
	for _, script := range []string{"allreduce_one_step", "allreduce_allpairs", "allgather_direct", "reduce_scatter_direct",
		"alltoall_direct", "broadcast_tree", "reduce_tree", "gather_tree", "scatter_tree", "sendrecv"} {
		for _, protocol := range []string{"LL", "Simple", "Direct"} {
			place := "both"
			if script == "sendrecv" {
				place = "out"
			}
			r := recipe(t, "e", place, script, "ranks", "4", "instances", "2", "protocol", protocol)
			programs := []*ir.Program{r.OutOfPlace, r.InPlace}
			x := made(t, r)
			for i, inPlace := range []bool{false, true} {
				got, err := x.Program(&x.Entries[0], inPlace)
				if err != nil {
					t.Fatalf("%s %s: %v", script, protocol, err)
				}
				if got == nil {
					continue
				}
				sameTables(t, got, programs[i])
				rep, err := checker.Check(context.Background(), got, checker.Options{})
				if err != nil || !rep.OK {
					t.Errorf("%s %s: %v %v", script, protocol, rep.Messages, err)
				}
			}
		}
	}
}

func sameTables(t *testing.T, a, b *ir.Program) {
	t.Helper()
	x, err := cuda.Flatten(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := cuda.Flatten(b)
	if err != nil {
		t.Fatal(err)
	}
	if !equalTables(x, y) {
		t.Errorf("%s has other tables than it was compiled to", b.Name)
	}
}

// A program in place that overwrites inputs which nobody gets back is no program for a
// call. On 8 ranks inner nodes of the tree hold sums of their own.
func TestInputsAreSpared(t *testing.T) {
	both := recipe(t, "r", "both", "reduce_tree", "ranks", "8", "protocol", "LL")
	x, notes, err := table.Build("test", []table.Recipe{both})
	if err != nil {
		t.Fatal(err)
	}
	if x.Entries[0].InPlace != ir.None || len(notes) != 1 || notes[0].Code != "clobbers-input" {
		t.Errorf("got place %s and %v, want out of place alone, and a note", x.Entries[0].Place(), notes)
	}
	alone := recipe(t, "r", "in", "reduce_tree", "ranks", "8", "protocol", "LL")
	if _, _, err := table.Build("test", []table.Recipe{alone}); err == nil || !strings.Contains(err.Error(), "overwrites inputs") {
		t.Errorf("got %v, want it refused", err)
	}
	for _, script := range []string{"allreduce_one_step", "allgather_direct", "reduce_scatter_direct", "alltoall_direct", "gather_tree", "scatter_tree", "broadcast_tree"} {
		x := made(t, recipe(t, "e", "both", script, "ranks", "4"))
		if got := x.Entries[0].Place(); got != "both" {
			t.Errorf("%s: place %s, want both", script, got)
		}
	}
}

// What Build refuses or leaves out is also found in a table that is already there.
func TestMisfit(t *testing.T) {
	program := func(script, inPlace string, args ...string) *ir.Program {
		return compiled(t, script, append(args, "inplace", inPlace)...)
	}
	for _, c := range []struct {
		in, out *ir.Program
		mixable bool
		want    string
	}{
		{program("reduce_tree", "true", "ranks", "8"), nil, false, "overwrites inputs"},
		{program("reduce_tree", "true", "ranks", "2"), program("reduce_tree", "false", "ranks", "2"), true, ""},
		{program("allreduce_ring", "true", "ranks", "4"), program("allreduce_allpairs", "false", "ranks", "4"), true, "don't send the same messages"},
		{program("allreduce_ring", "true", "ranks", "4"), program("allreduce_allpairs", "false", "ranks", "4"), false, ""},
		{nil, program("allreduce_allpairs", "false", "ranks", "4"), false, ""},
		{program("allreduce_allpairs", "true", "ranks", "4"), program("allreduce_allpairs", "false", "ranks", "4"), true, ""},
	} {
		err := (&table.Entry{Mixable: c.mixable}).Misfit(c.in, c.out)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v and %v: got %v, want %q", c.in, c.out, err, c.want)
		}
	}
}

// Every entry of both places that takes any memory lets ranks mix places, and none of
// protocol Direct does, whose ranks all call alike.
func TestMixable(t *testing.T) {
	for _, protocol := range []string{"LL128", "Direct"} {
		x := made(t, recipe(t, "e", "both", "allreduce_allpairs", "ranks", "4", "protocol", protocol))
		e := &x.Entries[0]
		if e.Mixable != (protocol != "Direct") || (e.Memory == table.Windows) != (protocol == "Direct") {
			t.Errorf("%s: mixable %v, memory %v", protocol, e.Mixable, e.Memory)
		}
	}
}

// What a table says for people is a line of characters that can be seen, whatever files and
// arguments are called, and the table can be read back.
func TestTexts(t *testing.T) {
	r := recipe(t, "e", "out", "allgather_direct", "ranks", "2")
	r.Pos = diag.Pos{File: "a\n\xffb\x00.star", Line: 7}
	r.Title = "x\n" + strings.Repeat("é", 1000) // two bytes each
	x := made(t, r)
	if got, want := x.Entries[0].Source, "a??b?.star:7"; got != want {
		t.Errorf("source: got %q, want %q", got, want)
	}
	// 1024 bytes at most, three of them dots: "x?" and 509 whole characters.
	if got, want := x.Programs[0].Title, "x?"+strings.Repeat("é", 509)+"..., out of place"; got != want {
		t.Errorf("title: got %q, want %q", got, want)
	}
	if got, err := table.Decode(image(t, x)); err != nil || got.Entries[0].Source != x.Entries[0].Source || got.Programs[0].Title != x.Programs[0].Title {
		t.Errorf("read back: %v", err)
	}
}

func TestBuildRefuses(t *testing.T) {
	good := func(change func(*table.Recipe)) table.Recipe {
		r := recipe(t, "good", "out", "allgather_direct", "ranks", "2")
		change(&r)
		return r
	}
	for want, r := range map[string]table.Recipe{
		"want letters, digits":                        good(func(r *table.Recipe) { r.Name = "a b" }),
		`not "nccl"`:                                  good(func(r *table.Recipe) { r.Name = "nccl" }),
		"has no program":                              good(func(r *table.Recipe) { r.OutOfPlace = nil }),
		"no size lies between":                        good(func(r *table.Recipe) { r.MinBytes, r.MaxBytes = 5, 4 }),
		"a program for one place stands":              good(func(r *table.Recipe) { r.InPlace, r.OutOfPlace = r.OutOfPlace, nil }),
		"differ in more than that":                    good(func(r *table.Recipe) { r.InPlace = compiled(t, "allgather_direct", "ranks", "3", "inplace", "true") }),
		"NCCL's interface has no call":                good(func(r *table.Recipe) { r.OutOfPlace = compiled(t, "alltonext", "nodes", "2", "gpus", "2") }),
		"rank 0 sends to rank 2: sendrecv of a table": good(func(r *table.Recipe) { r.OutOfPlace = compiled(t, "sendrecv", "ranks", "3", "dst", "2") }),
	} {
		if _, _, err := table.Build("test", []table.Recipe{r}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "t.star:1: algorithm: ") {
			t.Errorf("got %v, want %q at its position", err, want)
		}
	}
	twice := good(func(r *table.Recipe) { r.Pos = at(7) })
	_, _, err := table.Build("test", []table.Recipe{good(func(*table.Recipe) {}), twice})
	if err == nil || err.Error() != "t.star:7: algorithm: another entry is called \"good\"\n    t.star:1: here\n    give one of them another name = \"...\"" {
		t.Errorf("got %v", err)
	}
}

// The order of entries is that of the file's description, whatever the source's.
func TestOrder(t *testing.T) {
	allgather := recipe(t, "z", "out", "allgather_direct", "ranks", "2")
	var recipes []table.Recipe
	for i, r := range []struct {
		name     string
		priority int32
		low      int64
	}{{"late", 0, 100}, {"low", -1, 0}, {"b", 0, 10}, {"a", 0, 10}, {"high", 3, 1000}} {
		x := recipe(t, r.name, "both", "allreduce_one_step", "ranks", "2")
		x.Priority, x.MinBytes, x.Pos = r.priority, r.low, at(i)
		recipes = append(recipes, x)
	}
	four := recipe(t, "four", "both", "allreduce_one_step", "ranks", "4")
	x := made(t, append([]table.Recipe{allgather, four}, recipes...)...)
	var got []string
	for i := range x.Entries {
		got = append(got, x.Entries[i].Name)
	}
	if want := "high a b late low four z"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if len(x.Programs) != 5 { // two places of two numbers of ranks, and the allgather
		t.Errorf("%d programs, want each once: 5", len(x.Programs))
	}
}
