package table_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/table"
)

var (
	bundle = flag.String("bundle", "", "TestVectors writes the table that testdata/choices.txt is about to this file")
	update = flag.Bool("update", false, "rewrite golden files")
)

// spec is an entry in the test's own words, for a rule that shares nothing with the
// package: the naive one.
type spec struct {
	name, script, protocol string
	coll                   string
	ranks, root            int
	place                  string
	from, to               int64 // bytes
	multiple               int64
	unit                   int64  // bytes; 0 is 1
	dtypes, ops            string // separated by blanks; "" is all
	priority               int
	blocks                 int
	nodes                  int
	windows                bool
	instances              int
	param                  string // of the root
}

// open is a range without an end, of the test.
const open = int64(1) << 62

// specs are entries that meet in all ways: overlapping ranges, priorities, roots, types,
// operations, places, numbers of thread blocks, hosts. What depends on the programs is
// derived by hand: one step has as many thread blocks as instances, all-pairs with Direct
// on two ranks two for each, and multiples as TestCounts has them.
func specs() []spec {
	one, pairs, gather := "allreduce_one_step", "allreduce_allpairs", "allgather_direct"
	return []spec{
		{name: "small", script: one, protocol: "LL", coll: "allreduce", ranks: 2, place: "both", to: 1024, multiple: 1, blocks: 1},
		{name: "middle", script: one, protocol: "LL128", instances: 4, coll: "allreduce", ranks: 2, place: "both", from: 1000, to: 65536, multiple: 4, blocks: 4},
		{name: "preferred", script: one, protocol: "LL128", instances: 2, coll: "allreduce", ranks: 2, place: "in", from: 4096, to: 8192, multiple: 2, blocks: 2, priority: 2, dtypes: "fp32 bf16", ops: "sum max"},
		{name: "fallback", script: one, protocol: "Simple", coll: "allreduce", ranks: 2, place: "out", to: open, multiple: 1, blocks: 1, priority: -3, dtypes: "fp16 fp64 uint8"},
		{name: "direct", script: pairs, protocol: "Direct", instances: 4, coll: "allreduce", ranks: 2, place: "both", from: 32768, to: open, multiple: 8, blocks: 8, priority: 1, windows: true},
		{name: "direct-in", script: pairs, protocol: "Direct", coll: "allreduce", ranks: 2, place: "in", from: 2048, to: 1 << 20, multiple: 2, blocks: 2, priority: 3, windows: true, ops: "min"},
		{name: "packets", script: "onesided_allreduce_one_shot", coll: "allreduce", ranks: 2, place: "both", from: 1024, to: 12288, multiple: 2, unit: 16, blocks: 1, priority: 1, ops: "sum avg"},
		{name: "zero-copy", script: "onesided_allreduce_zero_copy", coll: "allreduce", ranks: 2, place: "both", from: 65536, to: open, multiple: 8, unit: 16, blocks: 4, priority: 2, windows: true, ops: "sum avg"},
		{name: "full-mesh", script: "onesided_allgather_fullmesh", coll: "allgather", ranks: 2, place: "in", from: 1000, to: open, multiple: 1, unit: 16, blocks: 1, windows: true},
		{name: "four", script: one, protocol: "LL", coll: "allreduce", ranks: 4, place: "both", to: 4096, multiple: 1, blocks: 1},
		{name: "four-apart", script: one, protocol: "LL", coll: "allreduce", ranks: 4, place: "both", to: open, multiple: 1, blocks: 1, nodes: 2},
		{name: "gathering", script: gather, protocol: "LL", instances: 2, coll: "allgather", ranks: 2, place: "both", from: 64, to: 4096, multiple: 2, blocks: 2},
		{name: "scattering", script: "reduce_scatter_direct", protocol: "LL", coll: "reducescatter", ranks: 2, place: "both", from: 64, to: 4096, multiple: 1, blocks: 1, ops: "sum avg"},
		{name: "exchange", script: "alltoall_direct", protocol: "LL128", instances: 3, coll: "alltoall", ranks: 2, place: "out", from: 0, to: 98304, multiple: 3, blocks: 3},
		{name: "rooted-0", script: "broadcast_tree", protocol: "LL", coll: "broadcast", ranks: 2, root: 0, param: "root", place: "both", to: 4096, multiple: 1, blocks: 1},
		{name: "rooted-1", script: "broadcast_tree", protocol: "LL", coll: "broadcast", ranks: 2, root: 1, param: "root", place: "both", to: 2048, multiple: 1, blocks: 1},
		{name: "to-root-1", script: "reduce_tree", protocol: "LL", coll: "reduce", ranks: 2, root: 1, param: "root", place: "out", to: 4096, multiple: 1, blocks: 1, dtypes: "fp32"},
		{name: "gather-1", script: "gather_tree", protocol: "LL", coll: "gather", ranks: 2, root: 1, param: "root", place: "both", from: 128, to: 4096, multiple: 1, blocks: 1},
		{name: "scatter-0", script: "scatter_tree", protocol: "LL", coll: "scatter", ranks: 2, root: 0, param: "root", place: "both", from: 128, to: 4096, multiple: 1, blocks: 1},
	}
}

// vectorTable compiles the specs.
func vectorTable(t *testing.T) *table.Table {
	t.Helper()
	var recipes []table.Recipe
	for i, s := range specs() {
		args := []string{"ranks", fmt.Sprint(s.ranks), "protocol", s.protocol, "instances", fmt.Sprint(max(s.instances, 1))}
		if s.param != "" {
			args = append(args, s.param, fmt.Sprint(s.root))
		}
		var r table.Recipe
		if s.unit > 0 {
			r = oneRecipe(t, s.name, s.place, s.script, "ranks", fmt.Sprint(s.ranks))
		} else {
			r = recipe(t, s.name, s.place, s.script, args...)
		}
		r.Pos, r.MinBytes, r.Priority, r.Nodes = at(i+1), s.from, int32(s.priority), int32(s.nodes)
		if s.to < open {
			r.MaxBytes = s.to
		}
		for _, name := range strings.Fields(s.dtypes) {
			d, err := runtime.ParseDType(name)
			if err != nil {
				t.Fatal(err)
			}
			r.DTypes |= 1 << d
		}
		for _, name := range strings.Fields(s.ops) {
			o, err := runtime.ParseReduceOp(name)
			if err != nil {
				t.Fatal(err)
			}
			r.Ops |= 1 << o
		}
		recipes = append(recipes, r)
	}
	return made(t, recipes...)
}

// vector is a call in words, as a line of testdata/choices.txt has it.
type vector struct {
	coll         string
	bytes, count int64
	ranks, nodes int
	dtype, op    string
	root         int // -1 without one
	place        string
	registered   bool
	ctas         int // 0: any number
}

func (v vector) String() string {
	registered := 0
	if v.registered {
		registered = 1
	}
	return fmt.Sprintf("%s %d %d %d %d %s %s %d %s %d %d", v.coll, v.bytes, v.count, v.ranks, v.nodes, v.dtype, v.op, v.root, v.place, registered, v.ctas)
}

// naive chooses by the text of docs/table.md: of all entries that match the one with the
// highest priority, then the least bytes, then the first name.
func naive(all []spec, v vector) string {
	listed := func(list, name string) bool { return list == "" || strings.Contains(" "+list+" ", " "+name+" ") }
	reduces := v.coll == "allreduce" || v.coll == "reducescatter" || v.coll == "reduce"
	best := -1
	for i, s := range all {
		if reduces && v.op == "avg" && (v.dtype == "fp16" || strings.HasPrefix(v.dtype, "fp8")) {
			continue // a sum could overflow before it is divided: NCCL's
		}
		matches := s.coll == v.coll && s.ranks == v.ranks && max(s.nodes, 1) == v.nodes && listed(s.dtypes, v.dtype) &&
			(!reduces || listed(s.ops, v.op)) && (s.param == "" || s.root == v.root) &&
			(!s.windows || s.place == "both" || s.place == v.place) && s.from <= v.bytes && v.bytes <= s.to &&
			v.count > 0 && v.count%s.multiple == 0 && v.count/s.multiple*elementBytes[v.dtype]%max(s.unit, 1) == 0 && (!s.windows || v.registered) && (v.ctas == 0 || s.blocks <= v.ctas)
		if !matches {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		b := all[best]
		switch {
		case s.priority != b.priority:
			if s.priority > b.priority {
				best = i
			}
		case s.from != b.from:
			if s.from < b.from {
				best = i
			}
		case s.name < b.name:
			best = i
		}
	}
	if best < 0 {
		return "nccl"
	}
	return all[best].name
}

// elementBytes are sizes of the data types that vectors have.
var elementBytes = map[string]int64{"fp32": 4, "fp64": 8, "fp16": 2, "bf16": 2, "uint8": 1, "int64": 8}

// edges are sizes at and beside every end of a range.
var edges = []int64{0, 1, 63, 64, 128, 1000, 1023, 1024, 1025, 2048, 4096, 6144, 8192, 12288, 32768, 49152, 65536, 65544, 98304, 131072, 1 << 20, 1<<20 + 8, 1 << 30}

// vectors are calls at and beside every end of a range, of all collectives, a dozen for
// each: mostly on two ranks of one host, the rest drawn by a generator of the test's own.
func vectors() []vector {
	sizes := elementBytes
	state := uint64(1)
	pick := func(n int) int { // Knuth's MMIX
		state = state*6364136223846793005 + 1442695040888963407
		return int(state>>33) % n
	}
	var list []vector
	for _, coll := range table.CollectiveNames() {
		for _, e := range edges {
			for range 12 {
				v := vector{coll: coll, ranks: 2, nodes: 1, root: -1,
					dtype: []string{"fp32", "fp32", "fp32", "bf16", "fp16", "uint8", "fp64", "int64"}[pick(8)],
					op:    []string{"sum", "sum", "max", "min", "avg", "prod"}[pick(6)],
					place: []string{"in", "out"}[pick(2)], registered: pick(3) == 0, ctas: []int{0, 0, 0, 3, 32, 1, 7}[pick(7)]}
				switch pick(6) {
				case 0:
					v.ranks = 4
				case 1:
					v.ranks, v.nodes = 4, 2
				}
				block := int64(1)
				switch coll {
				case "allgather", "reducescatter", "alltoall", "gather", "scatter":
					block = int64(v.ranks)
				}
				switch coll {
				case "broadcast", "reduce", "gather", "scatter", "sendrecv":
					v.root = pick(v.ranks)
				}
				v.count = e / block / sizes[v.dtype]
				v.bytes = v.count * block * sizes[v.dtype]
				list = append(list, v)
			}
		}
	}
	return list
}

const choicesHead = `# Calls, and what the table of TestVectors chooses for each: the library has to choose the same.
# go test ./table -run Vectors -bundle FILE writes that table. A line is
#   collective bytes count ranks nodes dtype op root place registered ctas -> entry
# with bytes and count as docs/table.md counts them, root -1 where there is none, place in or out, registered 1 if
# both buffers lie in windows, ctas the thread blocks that are allowed (0: any number), entry a name or nccl.
`

// The package chooses what a naive rule does, and testdata/choices.txt tells the library
// to do the same.
func TestVectors(t *testing.T) {
	x := vectorTable(t)
	var text strings.Builder
	text.WriteString(choicesHead)
	chosen := map[string]int{}
	for _, v := range vectors() {
		want := naive(specs(), v)
		chosen[want]++
		fmt.Fprintf(&text, "%v -> %s\n", v, want)
		if got := choose(t, x, v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	for _, s := range specs() {
		if chosen[s.name] == 0 {
			t.Errorf("no vector chooses %s", s.name)
		}
	}
	golden := filepath.Join("testdata", "choices.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, []byte(text.String())) {
		t.Errorf("%s differs: run go test ./table -run Vectors -update, and read the difference", golden)
	}
	if *bundle != "" {
		if err := os.WriteFile(*bundle, image(t, x), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func choose(t *testing.T, x *table.Table, v vector) string {
	t.Helper()
	coll, err := table.ParseCollective(v.coll)
	if err != nil {
		t.Fatal(err)
	}
	dtype, err := runtime.ParseDType(v.dtype)
	if err != nil {
		t.Fatal(err)
	}
	op, err := runtime.ParseReduceOp(v.op)
	if err != nil {
		t.Fatal(err)
	}
	q := table.Query{Collective: coll, Count: v.count, DType: dtype, Op: op, Root: int32(v.root), Ranks: int32(v.ranks), Nodes: int32(v.nodes),
		InPlace: v.place == "in", Registered: v.registered, MaxCTAs: int32(v.ctas), Scratch: -1}
	if q.Bytes() != v.bytes {
		t.Errorf("%v: %d bytes", v, q.Bytes())
	}
	e, reasons := x.Choose(q)
	for i, r := range reasons {
		if (r == table.NoReason) != (e == &x.Entries[i]) {
			t.Errorf("%v: entry %s has reason %q", v, x.Entries[i].Name, r)
		}
	}
	if e == nil {
		return table.NCCL
	}
	return e.Name
}

// One reason against an entry, the first of those there are: each query differs from one
// that is served in that point and in all that come later.
func TestReasons(t *testing.T) {
	small := recipe(t, "e", "out", "reduce_tree", "ranks", "2", "protocol", "LL", "instances", "2", "root", "1")
	small.MinBytes, small.MaxBytes, small.DTypes, small.Ops = 64, 4096, 1<<runtime.FP32, 1<<runtime.Sum
	windows := recipe(t, "w", "out", "allreduce_allpairs", "ranks", "2", "protocol", "Direct")
	windows.MinBytes = 64
	shadow := small
	shadow.Name, shadow.Priority = "s", -1
	x := made(t, small, windows, shadow)

	rooted := table.Query{Collective: table.Reduce, Count: 256, DType: runtime.FP32, Op: runtime.Sum, Root: 1, Ranks: 2, Nodes: 1, Scratch: -1}
	direct := table.Query{Collective: table.AllReduce, Count: 256, DType: runtime.FP32, Op: runtime.Sum, Root: -1, Ranks: 2, Nodes: 1, Registered: true, Scratch: -1}
	with := func(q table.Query, changes ...func(*table.Query)) table.Query {
		for _, c := range changes {
			c(&q)
		}
		return q
	}
	// 1 KiB in place of a program out of place takes a copy of 1 KiB.
	noScratch := func(q *table.Query) { q.Scratch = 1023 }
	fewCTAs := func(q *table.Query) { q.MaxCTAs = 1 }
	noWindow := func(q *table.Query) { q.Registered = false }
	odd := func(q *table.Query) { q.Count = 255 }
	large := func(q *table.Query) { q.Count = 1025 }
	inPlace := func(q *table.Query) { q.InPlace = true }
	otherRoot := func(q *table.Query) { q.Root = 0 }
	otherOp := func(q *table.Query) { q.Op = runtime.Max }
	otherType := func(q *table.Query) { q.DType = runtime.FP64 }
	apart := func(q *table.Query) { q.Nodes = 2 }
	more := func(q *table.Query) { q.Ranks = 4 }
	for _, c := range []struct {
		entry string
		q     table.Query
		want  table.Reason
	}{
		{"e", rooted, table.NoReason},
		{"s", rooted, table.ByPriority},
		{"w", rooted, table.ByCollective},
		{"w", direct, table.NoReason},
		{"e", with(rooted, more, apart, otherType, otherOp, otherRoot, large, odd, fewCTAs, noScratch), table.ByRanks},
		{"e", with(rooted, apart, otherType, otherOp, otherRoot, large, fewCTAs, noScratch), table.ByNodes},
		{"e", with(rooted, otherType, otherOp, otherRoot, large, fewCTAs, noScratch), table.ByDType},
		{"e", with(rooted, otherOp, otherRoot, large, fewCTAs, noScratch), table.ByOp},
		{"e", with(rooted, otherRoot, large, fewCTAs, noScratch), table.ByRoot},
		{"w", with(direct, inPlace, odd, noWindow, fewCTAs, func(q *table.Query) { q.Count = 1 }), table.ByPlace},
		{"e", with(rooted, large, fewCTAs, noScratch), table.ByBytes},
		{"e", with(rooted, func(q *table.Query) { q.Count = 0 }), table.ByBytes},
		{"e", with(rooted, odd, fewCTAs, noScratch), table.ByMultiple},
		{"w", with(direct, noWindow, fewCTAs), table.ByMemory},
		{"e", with(rooted, fewCTAs, noScratch), table.ByCTAs},
		{"w", with(direct, fewCTAs), table.ByCTAs},
		{"e", with(rooted, noScratch), table.ByScratch},
		{"e", with(rooted, inPlace), table.NoReason}, // by a copy
		{"e", with(rooted, func(q *table.Query) { q.Scratch = 1024 }), table.NoReason},
		{"w", with(direct, func(q *table.Query) { q.Scratch = 0 }), table.NoReason}, // out of place: no scratch, no copies
	} {
		_, reasons := x.Choose(c.q)
		for i := range x.Entries {
			if x.Entries[i].Name == c.entry && reasons[i] != c.want {
				t.Errorf("%s, %+v: got %q, want %q", c.entry, c.q, reasons[i], c.want)
			}
		}
	}
}

// What the library leaves to NCCL whatever a table says has a reason like all others: averages
// whose sums may overflow before they are divided, windows where not every rank has both
// buffers, sends and receives.
func TestAlwaysNCCL(t *testing.T) {
	x := made(t, recipe(t, "sum", "both", "allreduce_one_step", "ranks", "2"), recipe(t, "rooted", "both", "broadcast_tree", "ranks", "2", "protocol", "Direct"),
		recipe(t, "exchange", "both", "alltoall_direct", "ranks", "2"), recipe(t, "send", "out", "sendrecv", "ranks", "2"))
	reason := func(q table.Query, name string) table.Reason {
		q.Count, q.Ranks, q.Nodes, q.Scratch = 256, 2, 1, -1
		_, reasons := x.Choose(q)
		for i := range x.Entries {
			if x.Entries[i].Name == name {
				return reasons[i]
			}
		}
		t.Fatalf("no entry %s", name)
		return ""
	}
	for d, name := range runtime.DTypeNames() {
		for o, op := range runtime.ReduceOpNames() {
			want := table.NoReason
			if op == "avg" && (name == "fp16" || name == "fp8e4m3" || name == "fp8e5m2") {
				want = table.ByOp
			}
			if got := reason(table.Query{Collective: table.AllReduce, DType: runtime.DType(d), Op: runtime.ReduceOp(o), Root: -1}, "sum"); got != want {
				t.Errorf("allreduce of %s, %s: got %q, want %q", name, op, got, want)
			}
			if got := reason(table.Query{Collective: table.AllToAll, DType: runtime.DType(d), Op: runtime.ReduceOp(o), Root: -1}, "exchange"); got != table.NoReason {
				t.Errorf("alltoall of %s, %s: got %q", name, op, got)
			}
		}
	}
	if got := reason(table.Query{Collective: table.Broadcast, Registered: true}, "rooted"); got != table.ByMemory {
		t.Errorf("broadcast in windows: got %q, want memory", got)
	}
	if got := reason(table.Query{Collective: table.SendRecv}, "send"); got != table.ByUnloaded {
		t.Errorf("sendrecv: got %q, want unloaded", got)
	}
}

// The scratch of an entry, in how many times the call's count it is, by hand. One program is
// for one place, and copies bring calls for the other into its form: that out of place gets
// the smaller of input and output apart, that in place both in one. With programs
// that meet, or in windows, nothing is copied. One step keeps in place what arrives first, and adds the
// rest to that on arrival; out of place that lies where the sum will be.
func TestScratchOf(t *testing.T) {
	for _, c := range []struct {
		script, protocol, place string
		want                    int64
	}{
		{"allreduce_one_step", "LL", "both", 1},
		{"allreduce_one_step", "LL", "out", 1},
		{"allreduce_one_step", "LL", "in", 1},
		{"broadcast_tree", "LL", "both", 0},
		{"broadcast_tree", "LL", "out", 1},
		{"broadcast_tree", "LL", "in", 1},
		{"allgather_direct", "LL", "out", 1},
		{"allgather_direct", "LL", "in", 4},
		{"allgather_direct", "Direct", "in", 0},
		{"alltoall_direct", "LL", "out", 4},
		{"scatter_tree", "LL", "out", 2}, // a block of two on the way: more than the copy of one
	} {
		x := made(t, recipe(t, "e", c.place, c.script, "ranks", "4", "protocol", c.protocol, "instances", "2"))
		const count, size = 96, 2
		if got, want := x.ScratchOf(&x.Entries[0], count, runtime.BF16), c.want*count*size; got != want {
			t.Errorf("%s %s, %s of place: got %d, want %d", c.script, c.protocol, c.place, got, want)
		}
	}
}

// Sizes that no number holds are the largest one, and choosing goes on.
func TestHugeCalls(t *testing.T) {
	x := made(t, recipe(t, "e", "both", "allgather_direct", "ranks", "4"))
	q := table.Query{Collective: table.AllGather, Count: 1 << 62, DType: runtime.FP64, Ranks: 4, Nodes: 1, Scratch: 1 << 40}
	if got := q.Bytes(); got != 1<<63-1 {
		t.Errorf("%d bytes", got)
	}
	if _, reasons := x.Choose(q); reasons[0] != table.NoReason {
		t.Errorf("got %q: allgather in one step needs no scratch", reasons[0])
	}
	y := made(t, recipe(t, "e", "in", "allreduce_one_step", "ranks", "4"))
	q.Collective = table.AllReduce
	if _, reasons := y.Choose(q); reasons[0] != table.ByScratch {
		t.Errorf("got %q, want scratch", reasons[0])
	}
}

// The words of docs/table.md are those of the package, in their order.
func TestWords(t *testing.T) {
	page, err := os.ReadFile("../docs/table.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(page), "| word | the entry |\n|---|---|\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var want []string
	for _, r := range table.Reasons() {
		want = append(want, string(r))
	}
	var got []string
	for line := range strings.SplitSeq(strings.TrimSpace(list), "\n") {
		got = append(got, strings.TrimSpace(strings.Split(line, "|")[1]))
	}
	if !found || strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("docs/table.md has %v, want %v", got, want)
	}
}
