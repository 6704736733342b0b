package algorithms_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/starlib"
)

// axis is a parameter of a script, or a group of them that go together, with
// the settings that the tests try.
type axis []map[string]string

// size is what a setting of ranks, or of nodes and gpus, comes to.
func size(args map[string]string) int {
	n := func(name string) int {
		v, err := strconv.Atoi(args[name])
		if err != nil {
			return 1
		}
		return v
	}
	if args["ranks"] != "" {
		return n("ranks")
	}
	return n("nodes") * n("gpus")
}

// values is an axis of one parameter.
func values(name string, vs ...string) axis {
	var a axis
	for _, v := range vs {
		a = append(a, map[string]string{name: v})
	}
	return a
}

// upTo is the numbers from, from+1, ..., to as text.
func upTo(from, to int) []string {
	var vs []string
	for v := from; v <= to; v++ {
		vs = append(vs, strconv.Itoa(v))
	}
	return vs
}

// shapes are the clusters, nodes x GPUs, of scripts that know nodes.
var shapes = [][2]string{{"1", "1"}, {"2", "3"}, {"2", "4"}, {"4", "2"}, {"3", "5"}, {"1", "4"}, {"4", "1"}}

// axesOf says what the tests vary of a script with these parameters.
func axesOf(params []starlib.Param) []axis {
	var axes []axis
	for _, p := range params {
		switch p.Name {
		case "ranks":
			axes = append(axes, values("ranks", upTo(1, 17)...))
		case "nodes":
			var a axis
			for _, s := range shapes {
				a = append(a, map[string]string{"nodes": s[0], "gpus": s[1]})
			}
			axes = append(axes, a)
		case "root", "src", "dst": // taken modulo the ranks
			axes = append(axes, values(p.Name, upTo(0, 16)...))
		case "inplace":
			axes = append(axes, values(p.Name, "true", "false"))
		case "instances":
			axes = append(axes, values(p.Name, "1", "2", "4"))
		case "pieces":
			axes = append(axes, values(p.Name, "1", "2", "5"))
		case "protocol", "channels", "schedule":
			axes = append(axes, values(p.Name, p.Choices...))
		}
	}
	return axes
}

// caseOf joins one setting of each axis. A rank named by one is brought into
// range; ok is false if that gives a case that another row has too.
func caseOf(axes []axis, row []int) (args map[string]string, ok bool) {
	args = map[string]string{}
	for i, a := range axes {
		maps.Copy(args, a[row[i]])
	}
	ok = true
	for _, name := range []string{"root", "src", "dst"} {
		if v, err := strconv.Atoi(args[name]); err == nil && v >= size(args) {
			args[name] = strconv.Itoa(v % size(args))
			ok = false
		}
	}
	return args, ok
}

// product lists every combination.
func product(axes []axis) [][]int {
	rows := [][]int{{}}
	for _, a := range axes {
		var next [][]int
		for _, r := range rows {
			for v := range a {
				next = append(next, append(slices.Clone(r), v))
			}
		}
		rows = next
	}
	return rows
}

// covering lists combinations in which any two settings of two axes meet at
// least once: greedily, each row starts with a pair not met yet and takes, axis
// by axis, the setting that adds most new pairs; ties go round.
func covering(axes []axis) [][]int {
	type pair struct{ a, v, b, w int }
	open := map[pair]bool{}
	var order []pair
	for b := range axes {
		for a := range b {
			for v := range axes[a] {
				for w := range axes[b] {
					p := pair{a, v, b, w}
					open[p] = true
					order = append(order, p)
				}
			}
		}
	}
	var rows [][]int
	for _, start := range order {
		if !open[start] {
			continue
		}
		row := make([]int, len(axes))
		set := make([]bool, len(axes))
		row[start.a], row[start.b], set[start.a], set[start.b] = start.v, start.w, true, true
		for a := range axes {
			if set[a] {
				continue
			}
			best, most := 0, -1
			for try := range axes[a] {
				v, gain := (try+len(rows))%len(axes[a]), 0
				for b := range axes {
					if set[b] && (open[pair{a, v, b, row[b]}] || open[pair{b, row[b], a, v}]) {
						gain++
					}
				}
				if gain > most {
					best, most = v, gain
				}
			}
			row[a], set[a] = best, true
		}
		for b := range axes {
			for a := range b {
				delete(open, pair{a, row[a], b, row[b]})
			}
		}
		rows = append(rows, row)
	}
	if len(axes) < 2 {
		return product(axes)
	}
	return rows
}

// TestCovering holds covering to its word, on axes of 3, 2, 4 and 2 settings.
func TestCovering(t *testing.T) {
	axes := []axis{values("a", "1", "2", "3"), values("b", "1", "2"), values("c", "1", "2", "3", "4"), values("d", "1", "2")}
	rows := covering(axes)
	met := map[[4]int]bool{}
	for _, row := range rows {
		for b := range axes {
			for a := range b {
				met[[4]int{a, row[a], b, row[b]}] = true
			}
		}
	}
	if want := 3*2 + 3*4 + 3*2 + 2*4 + 2*2 + 4*2; len(met) != want {
		t.Errorf("%d of %d pairs meet", len(met), want)
	}
	if len(rows) >= len(product(axes)) {
		t.Errorf("%d rows are no selection of %d", len(rows), len(product(axes)))
	}
}

// caseName is the arguments in the form of a subtest's name.
func caseName(args map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(args)) {
		parts = append(parts, k+"="+args[k])
	}
	return strings.Join(parts, ",")
}
