package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// axis is one way in which cases differ; a case has one value of each.
type axis struct {
	name   string
	values []string
}

// cover makes cases such that every two values of two axes that can stand together
// (ok says what can) do so in one of them. It is greedy and always does the same: a
// case begins with the first pair that is missing, the rest of it is the best of some
// drawn ones.
func cover(axes []axis, ok func(c []int) bool) [][]int {
	type pair struct{ a, x, b, y int }
	rng := rand.New(rand.NewPCG(1, 2))
	missing := map[pair]bool{}
	var order []pair
	for a := range axes {
		for b := a + 1; b < len(axes); b++ {
			for x := range axes[a].values {
				for y := range axes[b].values {
					missing[pair{a, x, b, y}] = true
					order = append(order, pair{a, x, b, y})
				}
			}
		}
	}
	news := func(c []int) (n int) {
		for a := range c {
			for b := a + 1; b < len(c); b++ {
				if missing[pair{a, c[a], b, c[b]}] {
					n++
				}
			}
		}
		return n
	}
	const tries = 60
	var out [][]int
	for _, want := range order {
		if !missing[want] {
			continue
		}
		var best []int
		for try := 0; try < tries || best == nil && try < 40*tries; try++ {
			c := make([]int, len(axes))
			for a := range axes {
				c[a] = rng.IntN(len(axes[a].values))
			}
			c[want.a], c[want.b] = want.x, want.y
			if ok(c) && (best == nil || news(c) > news(best)) {
				best = c
			}
		}
		if best == nil {
			delete(missing, want) // they can't stand together
			continue
		}
		out = append(out, best)
		for a := range best {
			for b := a + 1; b < len(best); b++ {
				delete(missing, pair{a, best[a], b, best[b]})
			}
		}
	}
	return out
}

// TestCover checks a small cover by hand: all pairs of three axes but those that are
// ruled out, in fewer cases than all.
func TestCover(t *testing.T) {
	axes := []axis{{"a", []string{"0", "1", "2", "3"}}, {"b", []string{"0", "1", "2", "3"}}, {"c", []string{"0", "1", "2"}}}
	ruled := func(a, b int) bool { return a == 3 && b == 3 }
	cases := cover(axes, func(c []int) bool { return !ruled(c[0], c[1]) })
	if len(cases) < 15 || len(cases) > 30 {
		t.Errorf("%d cases, want 15 to 30", len(cases))
	}
	have := map[string]bool{}
	for _, c := range cases {
		if ruled(c[0], c[1]) {
			t.Errorf("case %v is ruled out", c)
		}
		have[fmt.Sprint("ab", c[0], c[1])] = true
		have[fmt.Sprint("ac", c[0], c[2])] = true
		have[fmt.Sprint("bc", c[1], c[2])] = true
	}
	if len(have) != 15+12+12 {
		t.Errorf("%d pairs are covered, want 39", len(have))
	}
}

// TestGPUCover runs larger sizes: every two of algorithm, ranks, devices, protocol,
// place, instances, data type, reduction, size up to 1 GiB, misalignment, threads and
// way to launch meet in a case.
func TestGPUCover(t *testing.T) {
	lib := library(t)
	all, sets := scripts(t), sets(devices(t, lib))
	sizes := []int64{128<<10 + 8, 1 << 20, 4<<20 + 4096 + 8, 16_777_213, 64 << 20, 268_435_399, 1 << 30}
	threads, ranks := []string{"0", "64", "256"}, []string{"2", "3", "4", "5", "6", "7", "8"}
	if onHost(lib) {
		sizes, threads = []int64{131, 4096, 20_011}, []string{"0", "1"}
		if !*full {
			all, ranks = all[:3], []string{"2", "3"}
		}
	}
	a := &coverAxes{all: all, kinds: kinds(), sets: sets, sizes: sizes}
	if onHost(lib) && !*full && len(a.kinds) > 9 {
		a.kinds = a.kinds[26:35]
	}
	a.axes = []axis{a.scripts(), {"ranks", ranks}, {"set", upTo(len(sets))},
		{"protocol", []string{"Simple", "LL", "LL128", "Direct"}}, {"inplace", []string{"true", "false"}},
		{"instances", []string{"1", "2", "4"}}, {"kind", upTo(len(a.kinds))}, {"size", upTo(len(sizes))},
		{"misalign", []string{"0", "1", "3"}}, {"threads", threads}, {"graph", []string{"", "graph"}}}
	p := newParts(t, "cover")
	for _, c := range cover(a.axes, a.ok) {
		id, run := a.build(lib, c)
		p.do(id, run)
	}
}

// coverAxes are the axes and what their values mean.
type coverAxes struct {
	axes  []axis
	all   []algorithm
	kinds []kind
	sets  [][]int32
	sizes []int64
}

func upTo(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

func (a *coverAxes) scripts() axis {
	x := axis{name: "script"}
	for _, s := range a.all {
		x.values = append(x.values, s.name)
	}
	return x
}

// value is what a case says for an axis.
func (a *coverAxes) value(c []int, name string) string {
	i := slices.IndexFunc(a.axes, func(x axis) bool { return x.name == name })
	return a.axes[i].values[c[i]]
}

func (a *coverAxes) number(c []int, name string) int {
	n, _ := strconv.Atoi(a.value(c, name)) // the axis is of numbers
	return n
}

// ok leaves out what scripts don't take.
func (a *coverAxes) ok(c []int) bool {
	s := &a.all[c[0]]
	_, fits := s.shape(a.number(c, "ranks"))
	return fits && (s.takes("inplace") || a.value(c, "inplace") == "false")
}

// build is a case's name and the case.
func (a *coverAxes) build(lib *cuda.Library, c []int) (string, func() (int64, error)) {
	s := &a.all[c[0]]
	args, _ := s.shape(a.number(c, "ranks"))
	src := source{name: s.name, args: args}.with("protocol", a.value(c, "protocol")).with("instances", a.value(c, "instances"))
	if s.takes("inplace") {
		src = src.with("inplace", a.value(c, "inplace"))
	}
	k, set := a.kinds[a.number(c, "kind")], a.sets[a.number(c, "set")]
	elem := int64(k.d.Size())
	o := cuda.Options{Bytes: (a.sizes[a.number(c, "size")] + elem - 1) / elem * elem, DType: k.d, Op: k.op,
		Misalign: int32(a.number(c, "misalign")) * int32(elem), Threads: int32(a.number(c, "threads")), Seed: uint64(1000 * c[0])}
	graph := a.value(c, "graph") != ""
	id := fmt.Sprintf("%v on %s, %d bytes of %v %v, misaligned by %d, %d threads", src, list(set), o.Bytes, k.d, k.op, o.Misalign, o.Threads)
	if graph {
		id += ", graph"
	}
	return id, func() (values int64, err error) {
		p, err := src.program()
		if err != nil {
			return 0, err
		}
		err = on(lib, p, cuda.CommOptions{Devices: set, Watchdog: patience}, func(x *cuda.Program) (err error) {
			values, err = check(x, o, graph)
			return err
		})
		return values, err
	}
}

// TestGPULarge runs buffers, and chunks, of more than 4 GiB, more than 2^32 elements
// among them.
func TestGPULarge(t *testing.T) {
	lib := library(t)
	set := devices(t, lib)
	if onHost(lib) {
		t.Skip("it takes tens of GiB")
	}
	p := newParts(t, "large")
	for _, c := range []struct {
		src   source
		bytes int64
		kind  string
	}{
		{source{name: "allreduce_ring", args: map[string]string{"inplace": "true", "protocol": "Simple", "instances": "8"}}, 4<<30 + 4096 + 4, "fp32"},
		{source{name: "allreduce_allpairs", args: map[string]string{"inplace": "false", "protocol": "LL128", "instances": "8"}}, 9<<30 + 2, "uint8"},
		{source{name: "allreduce_allpairs", args: map[string]string{"inplace": "true", "protocol": "Direct", "instances": "8"}}, 9<<30 + 2, "uint8"},
		{source{name: "allgather_direct", args: map[string]string{"inplace": "false", "protocol": "LL", "instances": "8"}}, 9<<30 + 24, "fp64"},
		{source{name: "alltoall_direct", args: map[string]string{"inplace": "false", "protocol": "Direct", "instances": "8"}}, 5<<30 + 16, "fp32"},
	} {
		at := slices.IndexFunc(kinds(), func(x kind) bool { return x.d.String() == c.kind && x.op == 0 })
		if at < 0 {
			continue // a library of few kernels
		}
		k := kinds()[at]
		c.src = c.src.with("ranks", "2")
		p.do(fmt.Sprintf("%v, %d bytes of %v", c.src, c.bytes, k.d), func() (values int64, err error) {
			prog, err := c.src.program()
			if err != nil {
				return 0, err
			}
			err = on(lib, prog, cuda.CommOptions{Devices: set, Watchdog: patience}, func(x *cuda.Program) (err error) {
				values, err = check(x, cuda.Options{Bytes: c.bytes, DType: k.d, Op: k.op, Seed: 5}, false)
				return err
			})
			return values, err
		})
	}
}
