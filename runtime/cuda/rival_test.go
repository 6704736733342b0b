//go:build linux

package cuda

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// standIn builds and loads a library that plays NCCL and the driver.
func standIn(t *testing.T) (*NCCL, dynamic) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	path := filepath.Join(t.TempDir(), "libstandin.so")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", path, "testdata/standin.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n, err := OpenNCCL([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	n.driverPaths = []string{path}
	lib, err := load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	return n, lib
}

// ask calls a counter of the stand-in.
func ask(t *testing.T, lib dynamic, name string) int32 {
	t.Helper()
	var f func() int32
	if err := lib.bind(&f, "standin_"+name); err != nil {
		t.Fatal(err)
	}
	return f()
}

func TestRival(t *testing.T) {
	n, lib := standIn(t)
	if got, want := n.String(), "NCCL 2.28.9, NVLS off"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if ask(t, lib, "nvls") != 1 {
		t.Error("NCCL was loaded with NVLS allowed")
	}
	coll := ir.NewCollective(ir.AllReduce, 2, 2, false)
	layout, err := runtime.NewLayout(coll, runtime.FP32, 4096)
	if err != nil {
		t.Fatal(err)
	}
	v, err := n.NewRival(coll, []int32{0, 1}, 3<<20, runtime.FP32)
	if err != nil {
		t.Fatal(err)
	}
	// Two buffers of two ranks.
	if got := ask(t, lib, "windows"); got != 4 {
		t.Errorf("%d windows, want 4", got)
	}
	for mode, name := range v.Modes() {
		before, launched := ask(t, lib, "total"), ask(t, lib, "launches")
		times, err := v.Time(mode, layout, runtime.Sum, Timing{Repetitions: 3, Warmup: 2, Launches: 5})
		// GPU 1 takes longest: 0.5 ms for 5 calls.
		if err != nil || !slices.Equal(times, []float64{1e5, 1e5, 1e5}) {
			t.Errorf("%s: got %v, %v", name, times, err)
		}
		// 5 repetitions of 5 calls of 2 ranks.
		if got := ask(t, lib, "total") - before; got != 50 {
			t.Errorf("%s: %d calls, want 50", name, got)
		}
		checkSum(t, &v.modes[mode])
		// In a graph: one call to connect, five that are captured; five launches on two GPUs.
		before = ask(t, lib, "total")
		if _, err := v.Time(mode, layout, runtime.Sum, Timing{Repetitions: 3, Warmup: 2, Launches: 5, Graph: true}); err != nil {
			t.Error(err)
		}
		if got := ask(t, lib, "total") - before; got != 12 {
			t.Errorf("%s in a graph: %d calls, want 12", name, got)
		}
		if got := ask(t, lib, "launches") - launched; got != 10 {
			t.Errorf("%s: %d launches of graphs, want 10", name, got)
		}
	}
	v.Close()
	if got := ask(t, lib, "live"); got != 0 {
		t.Errorf("%d things were not freed", got)
	}
	if got := ask(t, lib, "windows"); got != 0 {
		t.Errorf("%d windows are left", got)
	}
}

// checkSum compares the first outputs with the sum of the inputs, which are no zeros.
func checkSum(t *testing.T, m *rivalMode) {
	t.Helper()
	at := func(p uintptr) []float32 { return unsafe.Slice(*(**float32)(unsafe.Pointer(&p)), 8) }
	for i := range 8 {
		a, b, sum := at(m.send[0])[i], at(m.send[1])[i], at(m.recv[1])[i]
		if a == 0 || b == 0 || sum != a+b {
			t.Errorf("%s: %g + %g gave %g", m.name, a, b, sum)
		}
	}
}

func TestRivalRefuses(t *testing.T) {
	n, lib := standIn(t)
	for _, c := range []struct {
		coll    *ir.Collective
		devices []int32
		says    string
	}{
		{ir.NewCollective(ir.AllReduce, 4, 1, true), []int32{0, 1}, "one rank a GPU: 4 ranks, 2 GPUs"},
		{&ir.Collective{Kind: ir.Custom, Name: "mine", Ranks: 2}, []int32{0, 1}, "NCCL has no mine"},
	} {
		_, err := n.NewRival(c.coll, c.devices, 1024, runtime.FP32)
		if !CannotCompare(err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want %q", err, c.says)
		}
	}
	// What NCCL and the driver refuse is told in their words.
	coll := ir.NewCollective(ir.Broadcast, 2, 1, true)
	coll.Root = 0
	layout, err := runtime.NewLayout(coll, runtime.FP32, 64)
	if err != nil {
		t.Fatal(err)
	}
	v, err := n.NewRival(coll, []int32{0, 1}, 64, runtime.FP32)
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Time(0, layout, runtime.Sum, Timing{Repetitions: 1, Launches: 1})
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != "machine" || !strings.Contains(m.Text, "calling broadcast: invalid usage") {
		t.Errorf("got %v", err)
	}
	v.Close()
	if _, err = n.NewRival(coll, []int32{0, 1}, 2<<30, runtime.FP32); err == nil || !strings.Contains(err.Error(), "allocating: out of memory") {
		t.Errorf("got %v", err)
	}
	if got := ask(t, lib, "live"); got != 0 {
		t.Errorf("%d things were not freed", got)
	}
}

// What NCCL has no function for is made of sends and receives: of 2 ranks, an
// alltoall of 2 and 2 each, a sendrecv of one and one.
func TestRivalExchanges(t *testing.T) {
	n, lib := standIn(t)
	pair := ir.NewCollective(ir.SendRecv, 2, 1, false)
	pair.Root, pair.Peer = 0, 1
	gather, scatter := ir.NewCollective(ir.Gather, 2, 1, false), ir.NewCollective(ir.Scatter, 2, 1, false)
	gather.Root, scatter.Root = 1, 0
	for _, c := range []struct {
		coll *ir.Collective
		want int32
	}{{ir.NewCollective(ir.AllToAll, 2, 1, false), 8}, {pair, 2}, {ir.NewCollective(ir.AllToNext, 2, 1, false), 2},
		{gather, 4}, {scatter, 4}} {
		before := ask(t, lib, "total")
		if err := n.call(c.coll, make([]ncclRank, 2), 16, runtime.FP32, runtime.Sum); err != nil {
			t.Error(err)
		}
		if got := ask(t, lib, "total") - before; got != c.want {
			t.Errorf("%v: %d calls, want %d", c.coll, got, c.want)
		}
	}
}

// An allreduce of two calls takes twice as many, and comes to the same; in its own
// buffers and from one to another.
func TestRivalComposed(t *testing.T) {
	n, lib := standIn(t)
	for _, inPlace := range []bool{false, true} {
		coll := ir.NewCollective(ir.AllReduce, 2, 1, inPlace)
		layout, err := runtime.NewLayout(coll, runtime.FP32, 4096)
		if err != nil {
			t.Fatal(err)
		}
		v, err := n.NewRival(coll, []int32{0, 1}, 3<<20, runtime.FP32, Whole, Composed)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"NCCL", "NCCL windows", "NCCL rs+ag", "NCCL windows rs+ag"}; !slices.Equal(v.Modes(), want) {
			t.Errorf("got %q, want %q", v.Modes(), want)
		}
		for mode, want := range []int32{6, 6, 12, 12} {
			if inPlace && mode != 3 {
				continue // a call sums up what the one before has left
			}
			m := &v.modes[mode%2]
			in := [2][]float32{slices.Clone(floats(m.send[0], 1024)), slices.Clone(floats(m.send[1], 1024))}
			before := ask(t, lib, "total")
			// Three calls of two ranks; in place, where each goes on from the last, one.
			o := Timing{Repetitions: 2, Warmup: 1, Launches: 1}
			if inPlace {
				o.Repetitions, o.Warmup, want = 1, 0, 4
			}
			if _, err := v.Time(mode, layout, runtime.Sum, o); err != nil {
				t.Error(err)
			}
			if got := ask(t, lib, "total") - before; got != want {
				t.Errorf("mode %d: %d calls, want %d", mode, got, want)
			}
			for r := range 2 {
				out := floats(m.recv[r], 1024)
				if inPlace {
					out = floats(m.send[r], 1024)
				}
				for i := range out {
					if out[i] != in[0][i]+in[1][i] || in[0][i] == 0 {
						t.Fatalf("mode %d rank %d element %d: %g + %g gave %g", mode, r, i, in[0][i], in[1][i], out[i])
					}
				}
				clear(out)
				if inPlace {
					copy(out, in[r])
				}
			}
		}
		v.Close()
	}
	for _, c := range []struct {
		kind  ir.CollectiveKind
		bytes int64
		says  string
	}{
		{ir.AllGather, 4096, "make an allreduce, and this is allgather"},
		{ir.AllReduce, 12, "3 elements are no whole number for each of 2 ranks"},
	} {
		coll := ir.NewCollective(c.kind, 2, 1, true)
		v, err := n.NewRival(coll, []int32{0, 1}, 4096, runtime.FP32, Composed)
		if err == nil {
			layout, bad := runtime.NewLayout(coll, runtime.FP32, c.bytes)
			if bad != nil {
				t.Fatal(bad)
			}
			_, err = v.Time(0, layout, runtime.Sum, Timing{Repetitions: 1, Launches: 1})
			v.Close()
		}
		if !CannotCompare(err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want %q", err, c.says)
		}
	}
}

func floats(p uintptr, n int) []float32 { return unsafe.Slice(*(**float32)(unsafe.Pointer(&p)), n) }
