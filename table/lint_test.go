package table_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/table"
)

// findings are what Lint says of recipes, but for collectives that are missing.
func findings(t *testing.T, recipes ...table.Recipe) []string {
	t.Helper()
	var list []string
	for _, m := range made(t, recipes...).Lint() {
		if m.Code == table.CodeCollective {
			continue
		}
		if m.Severity != diag.Warning || m.Code == "" {
			t.Errorf("%v: severity %v, code %q", m, m.Severity, m.Code)
		}
		list = append(list, strings.SplitN(m.Error(), "\n", 2)[0])
	}
	return list
}

func TestLint(t *testing.T) {
	ranged := func(line int, name string, low, high int64, more ...func(*table.Recipe)) table.Recipe {
		r := recipe(t, name, "both", "allreduce_one_step", "ranks", "2")
		r.Pos, r.MinBytes, r.MaxBytes = at(line), low, high
		for _, m := range more {
			m(&r)
		}
		return r
	}
	prefer := func(n int32) func(*table.Recipe) { return func(r *table.Recipe) { r.Priority = n } }
	types := func(set table.DTypes) func(*table.Recipe) { return func(r *table.Recipe) { r.DTypes = set } }
	direct := func(line int, name string, low, high int64) table.Recipe {
		r := recipe(t, name, "both", "allreduce_allpairs", "ranks", "2", "protocol", "Direct")
		r.Pos, r.MinBytes, r.MaxBytes, r.Priority = at(line), low, high, 1
		return r
	}
	chunky := recipe(t, "chunky", "both", "allreduce_one_step", "ranks", "2", "instances", "64")
	chunky.Pos, chunky.MinBytes, chunky.MaxBytes = at(1), 1, 63
	only := func(line int, name, place string) table.Recipe {
		r := recipe(t, name, place, "allreduce_allpairs", "ranks", "2", "protocol", "Direct")
		r.Pos = at(line)
		return r
	}
	one := func(line int, name, place string, priority int32) table.Recipe {
		r := recipe(t, name, place, "broadcast_tree", "ranks", "2")
		r.Pos, r.Priority = at(line), priority
		return r
	}
	sends := recipe(t, "sends", "out", "sendrecv", "ranks", "2")
	sends.Pos = at(3)
	again := sends
	again.Name = "sends-more"
	tree := recipe(t, "tree", "both", "broadcast_tree", "ranks", "2", "protocol", "Direct")
	tree.Pos, tree.Priority = at(1), 1
	low := one(2, "low", "both", 0)
	averages := func(r *table.Recipe) {
		r.Ops, r.DTypes, r.Priority = 1<<runtime.Avg, 1<<runtime.FP16|1<<runtime.FP8E5M2, 1
	}
	four := recipe(t, "four", "both", "allreduce_one_step", "ranks", "4")
	eight := recipe(t, "eight", "both", "allreduce_one_step", "ranks", "8")
	for _, c := range []struct {
		name    string
		recipes []table.Recipe
		want    []string
	}{
		{"ranges that meet", []table.Recipe{ranged(1, "a", 0, 1023), ranged(2, "b", 1024, 4095), ranged(3, "c", 4096, table.OpenEnd)}, nil},
		{"an overlap", []table.Recipe{ranged(1, "a", 0, 1024), ranged(2, "b", 1024, 4096)},
			[]string{"t.star:2: warning: a and b both match allreduce on 2 ranks for 1KiB..1KiB: a is taken"}},
		{"overlaps with several are one finding", []table.Recipe{ranged(1, "a", 0, 1024), ranged(2, "b", 4096, 8192), ranged(3, "c", 1024, 4096, types(1))},
			[]string{"t.star:3: warning: a and c both match allreduce on 2 ranks for 1KiB..1KiB: a is taken",
				"t.star:2: warning: c and b both match allreduce on 2 ranks for 4KiB..4KiB: c is taken"}},
		{"no size in the overlap", []table.Recipe{ranged(1, "a", 0, 1025, types(1)), ranged(2, "b", 1025, 4096, types(1))}, nil},
		{"another priority", []table.Recipe{ranged(1, "a", 0, 1024), ranged(2, "b", 1024, 4096, prefer(1))}, nil},
		{"other types", []table.Recipe{ranged(1, "a", 0, 1024, types(1)), ranged(2, "b", 512, 1024, types(2))}, nil},
		{"a gap", []table.Recipe{ranged(1, "a", 0, 1023), ranged(2, "b", 2048, 4096)},
			[]string{"t.star:2: warning: no entry serves allreduce on 2 ranks for 1KiB..<2KiB"}},
		{"a gap that an entry of lower priority fills", []table.Recipe{ranged(1, "a", 0, 1023), ranged(2, "b", 2048, 4096), ranged(3, "c", 1000, 3000, prefer(-1))}, nil},
		{"a gap for registered buffers alone", []table.Recipe{ranged(1, "a", 0, 1023), direct(2, "d", 2048, table.OpenEnd)},
			[]string{"t.star:2: warning: no entry serves allreduce on 2 ranks with registered buffers for 1KiB..<2KiB"}},
		{"windows don't fill gaps of others", []table.Recipe{ranged(1, "a", 0, 1023), ranged(2, "b", 2048, 4096), direct(3, "d", 512, 4096)},
			[]string{"t.star:2: warning: no entry serves allreduce on 2 ranks for 1KiB..<2KiB"}},
		{"a shadow", []table.Recipe{ranged(1, "a", 0, 4096, prefer(1)), ranged(2, "b", 1024, 2048)},
			[]string{"t.star:2: warning: b can never match: earlier entries take all its calls"}},
		{"a shadow of two", []table.Recipe{ranged(1, "a", 0, 1500, prefer(1)), ranged(2, "b", 1501, 4096, prefer(1)), ranged(3, "c", 1024, 2048)},
			[]string{"t.star:3: warning: c can never match: earlier entries take all its calls"}},
		{"other types shine through", []table.Recipe{ranged(1, "a", 0, 4096, prefer(1), types(1)), ranged(2, "b", 1024, 2048)}, nil},
		{"windows cast no shadow on others", []table.Recipe{direct(1, "d", 0, table.OpenEnd), ranged(2, "b", 1024, 2048)}, nil},
		{"no multiple in the range", []table.Recipe{chunky},
			[]string{"t.star:1: warning: chunky can never match: no call whose count is a multiple of 64 has a size in 1..63"}},
		{"windows for other places", []table.Recipe{only(1, "a", "in"), only(2, "b", "out")}, nil},
		{"windows for the same place", []table.Recipe{only(1, "a", "in"), only(2, "b", "both")},
			[]string{"t.star:2: warning: a and b both match allreduce on 2 ranks for ..: a is taken"}},
		{"copies may not fit, where those behind need none", []table.Recipe{one(1, "a", "out", 1), one(2, "b", "both", 0)}, nil},
		{"copies alike", []table.Recipe{one(1, "a", "out", 1), one(2, "b", "in", 0)},
			[]string{"t.star:2: warning: b can never match: earlier entries take all its calls"}},
		{"sends and receives, told once for a line", []table.Recipe{sends, again},
			[]string{"t.star:3: warning: sends can never match: no rank sees what sends and receives others have, so all of sendrecv is left to NCCL"}},
		{"windows with a root cast no shadow", []table.Recipe{tree, low},
			[]string{"t.star:1: warning: tree can never match: not every rank of a broadcast passes both buffers, so none can tell whether all of them lie in windows"}},
		{"averages that overflow", []table.Recipe{ranged(1, "a", 0, table.OpenEnd, averages), ranged(2, "b", 0, table.OpenEnd)},
			[]string{"t.star:1: warning: a can never match: averages of fp16 and FP8 are left to NCCL, as their sums may overflow"}},
		{"averages of one type of two", []table.Recipe{ranged(1, "a", 0, table.OpenEnd, averages, types(1<<runtime.FP16|1<<runtime.FP32)), ranged(2, "b", 0, table.OpenEnd)}, nil},
		{"4 ranks are missing", []table.Recipe{ranged(1, "a", 0, table.OpenEnd), eight},
			[]string{"t.star:1: warning: allreduce has entries for 2 and for 8 ranks, and none for 4"}},
		{"no ranks are missing", []table.Recipe{ranged(1, "a", 0, table.OpenEnd), four, eight}, nil},
	} {
		if got := findings(t, c.recipes...); !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// Who is left to NCCL altogether is said, collective by collective.
func TestLintCollectives(t *testing.T) {
	var got []string
	for _, m := range made(t, recipe(t, "e", "both", "allreduce_one_step", "ranks", "2")).Lint() {
		got = append(got, strings.Fields(m.Text)[0])
	}
	if want := "allgather reducescatter broadcast reduce alltoall gather scatter"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// Of many entries that all overlap each is told once, with a few of the others.
func TestManyOverlaps(t *testing.T) {
	var recipes []table.Recipe
	for i := range 10 {
		r := recipe(t, "e"+string(rune('0'+i)), "both", "allreduce_one_step", "ranks", "2")
		r.Pos, r.MinBytes = at(i+1), int64(i)
		r.MaxBytes = 1000 + r.MinBytes
		recipes = append(recipes, r)
	}
	list := made(t, recipes...).Lint()
	var last *diag.Message
	overlaps := 0
	for _, m := range list {
		if m.Code == table.CodeOverlap {
			overlaps++
			last = m
		}
	}
	want := "t.star:10: warning: e0 and e9 both match allreduce on 2 ranks for 9..1000: e0 is taken\n    t.star:1: e0, of the same priority 0\n" +
		"    t.star:2: e1 stands before it too, for 9..1001\n    t.star:3: e2 stands before it too, for 9..1002\n    and 6 more\n    give one of them a higher priority, or another range"
	if overlaps != 9 || strings.TrimSpace(last.Error()) != want {
		t.Errorf("%d overlaps, the last is\n%v\nwant\n%s", overlaps, last, want)
	}
}

// What Lint calls shadowed is never chosen, at any size of its range.
func TestShadowsAreDark(t *testing.T) {
	x := vectorTable(t)
	dark := map[string]bool{}
	for _, m := range x.Lint() {
		if m.Code == table.CodeShadowed {
			dark[strings.Fields(m.Text)[0]] = true
		}
	}
	for _, v := range vectors() {
		if got := choose(t, x, v); dark[got] {
			t.Errorf("%v chooses %s, which can never match", v, got)
		}
	}
}
