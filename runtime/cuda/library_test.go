package cuda_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
	"github.com/mscclsh/mscclsh/starlib"
)

var full = flag.Bool("full", false, "all numbers of ranks from 2 to 8 with all protocols and sizes, not a selection")

// library is the host's build of the kernel: the same source, on threads. With
// MSCCLSH_CUDA_LIB the tests run on what that names, GPUs say.
func library(t testing.TB) *cuda.Library {
	t.Helper()
	path := "lib/build/libmscclsh_cuda_host.so"
	if named := os.Getenv("MSCCLSH_CUDA_LIB"); named != "" {
		path = named
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there: make cuda-host builds it", path)
	}
	lib, err := cuda.Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// script traces a script of the library and compiles its program for this project's own
// runtimes.
func script(t testing.TB, name string, args map[string]string, o compiler.Options) *ir.Program {
	t.Helper()
	s, err := starlib.Load(context.Background(), starlib.Options{File: starlib.LibraryPrefix + name + ".star",
		Library: algorithms.FS, Args: args, Host: starlib.Host{Topology: machine.Topology}})
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	o.Target = ir.TargetNative
	r, err := compiler.Compile(context.Background(), s.Programs[0].DAG, o)
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return r.Program
}

// open makes a communicator of a program's ranks and loads it.
func open(t testing.TB, lib *cuda.Library, p *ir.Program, o cuda.CommOptions) *cuda.Program {
	t.Helper()
	comm, err := lib.NewComm(p.Ranks(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := comm.Close(); err != nil {
			t.Error(err)
		}
	})
	return load(t, comm, p)
}

func load(t testing.TB, comm *cuda.Comm, p *ir.Program) *cuda.Program {
	t.Helper()
	x, err := comm.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// right runs a program and wants every output right.
func right(t testing.TB, x *cuda.Program, o cuda.Options) *cuda.Report {
	t.Helper()
	r, err := x.Run(context.Background(), o)
	if err != nil {
		t.Fatalf("%d bytes of %v, %v: %v", o.Bytes, o.DType, o.Op, err)
	}
	if !r.Verified {
		t.Fatalf("%d bytes of %v, %v: %d of %d elements are wrong: %v", o.Bytes, o.DType, o.Op, r.Wrong, r.Elements, r.Mismatches)
	}
	return r
}

// settings are the calls of a script that the tests make, by its parameters.
func settings(t *testing.T, name string) []map[string]string {
	t.Helper()
	s, err := starlib.Load(context.Background(), starlib.Options{File: starlib.LibraryPrefix + name + ".star",
		Library: algorithms.FS, Host: starlib.Host{Topology: machine.Topology}})
	if err != nil {
		t.Fatal(err)
	}
	out := []map[string]string{{}}
	axis := func(values []map[string]string) {
		var next []map[string]string
		for _, old := range out {
			for _, v := range values {
				both := map[string]string{}
				for k, x := range old {
					both[k] = x
				}
				for k, x := range v {
					both[k] = x
				}
				next = append(next, both)
			}
		}
		out = next
	}
	ranks := []int{2, 3, 4, 8}
	if *full {
		ranks = []int{2, 3, 4, 5, 6, 7, 8}
	}
	for _, p := range s.Params {
		var values []map[string]string
		switch p.Name {
		case "ranks":
			for _, n := range ranks {
				values = append(values, map[string]string{"ranks": fmt.Sprint(n)})
			}
		case "nodes":
			for _, shape := range [][2]string{{"2", "1"}, {"2", "2"}, {"1", "3"}, {"2", "4"}} {
				values = append(values, map[string]string{"nodes": shape[0], "gpus": shape[1]})
			}
		case "protocol":
			for _, c := range p.Choices {
				if c == "auto" { // one of the others
					continue
				}
				values = append(values, map[string]string{"protocol": c})
			}
		case "inplace":
			if *full {
				values = []map[string]string{{"inplace": "true"}, {"inplace": "false"}}
			}
		}
		if values != nil {
			axis(values)
		}
	}
	return out
}

// refusesRanks reports whether a script takes powers of two only.
func refusesRanks(name, ranks string) bool {
	return strings.Contains(name, "doubling") && slices.Contains([]string{"3", "5", "6", "7"}, ranks)
}

// TestAlgorithms runs the whole library, with three protocols, at sizes that hold
// nothing, one element, less than an element a chunk, chunks of odd length, and
// several tiles.
func TestAlgorithms(t *testing.T) {
	lib := library(t)
	for _, name := range algorithms.ChunkRouting() {
		t.Run(name, func(t *testing.T) {
			for _, args := range settings(t, name) {
				if refusesRanks(name, args["ranks"]) {
					continue
				}
				t.Run(fmt.Sprint(args), func(t *testing.T) {
					// Slots of 96 elements make several tiles of small sizes.
					p := script(t, name, args, compiler.Options{SlotBytes: 384})
					x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0, 1}})
					chunks := int64(p.Coll.NumChunks())
					for _, elements := range []int64{0, 1, chunks - 1, 13*chunks + 1, 389 * chunks} {
						r := right(t, x, cuda.Options{Bytes: 4 * elements, Exact: true, AnySize: true})
						if want := elements > 0; want != (r.Elements > 0) {
							t.Errorf("%d elements: %d were compared", elements, r.Elements)
						}
					}
				})
			}
		})
	}
}

// TestTypes runs every data type with every reduction, on random and exact data.
func TestTypes(t *testing.T) {
	lib := library(t)
	for _, protocol := range []string{"Simple", "LL", "LL128"} {
		p := script(t, "allreduce_ring", map[string]string{"ranks": "3", "protocol": protocol}, compiler.Options{})
		x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0}})
		for d := runtime.FP32; d <= runtime.Uint64; d++ {
			for op := runtime.Sum; op <= runtime.Avg; op++ {
				for _, exact := range []bool{true, false} {
					right(t, x, cuda.Options{Bytes: 3 * 37 * int64(d.Size()), DType: d, Op: op, Seed: 7, Exact: exact})
				}
			}
		}
	}
}

// TestMixed runs programs in turns on one communicator, with sizes, types and
// protocols that change: numbers of messages go on from run to run.
func TestMixed(t *testing.T) {
	lib := library(t)
	comm, err := lib.NewComm(4, cuda.CommOptions{Devices: []int32{0, 1}, FlagModulus: 64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := comm.Close(); err != nil {
			t.Error(err)
		}
	})
	var programs []*cuda.Program
	for _, name := range []string{"allreduce_ring", "broadcast_tree", "allgather_ring", "alltoall_direct", "reduce_scatter_direct"} {
		for _, protocol := range []string{"Simple", "LL", "LL128"} {
			p := script(t, name, map[string]string{"ranks": "4", "protocol": protocol}, compiler.Options{SlotBytes: 960})
			programs = append(programs, load(t, comm, p))
		}
	}
	for i := range 6 * len(programs) {
		right(t, programs[i*7%len(programs)], cuda.Options{Bytes: int64(i*i%5000) * 8, DType: runtime.DType(i % 2), Seed: uint64(i),
			Exact: true, AnySize: true, Repetitions: 1 + i%3, Launches: 1 + i%4, Graph: i%2 == 1})
	}
}

// TestBuffers starts buffers at odd places and takes the inputs from the caller.
func TestBuffers(t *testing.T) {
	lib := library(t)
	for _, protocol := range []string{"Simple", "LL", "LL128"} {
		p := script(t, "allgather_ring", map[string]string{"ranks": "2", "protocol": protocol}, compiler.Options{})
		x := open(t, lib, p, cuda.CommOptions{})
		for _, misalign := range []int32{0, 1, 3, 8, 15} {
			right(t, x, cuda.Options{Bytes: 2 * 1031, DType: runtime.Uint8, Misalign: misalign, Exact: true, AnySize: true})
		}
		in := [][]byte{{1, 2, 3}, {4, 5, 6}}
		r := right(t, x, cuda.Options{Bytes: 6, DType: runtime.Int8, Inputs: in, KeepOutputs: true, AnySize: true})
		for rank, out := range r.Outputs {
			if !slices.Equal(out, []byte{1, 2, 3, 4, 5, 6}) {
				t.Errorf("rank %d: got %v", rank, out)
			}
		}
	}
}

// TestHang runs a program in which both ranks only wait: the watchdog's report names
// them, and the communicator is of no more use.
func TestHang(t *testing.T) {
	lib := library(t)
	coll := ir.NewCollective(ir.AllReduce, 2, 1, true)
	p := &ir.Program{Spec: &ir.Spec{Name: "hang", Coll: coll, Instances: 1}, Transport: ir.Transport{Slots: 1, SlotBytes: 64}}
	for r := range ir.Rank(2) {
		st := ir.Step{Kind: ir.Recv, Src: ir.NoPlace, Dst: ir.Place{Buf: ir.Input}, Count: 1, SendPeer: ir.None, RecvPeer: 1 - r}
		p.GPUs = append(p.GPUs, ir.GPU{Input: 1, Output: 1, TBs: []ir.ThreadBlock{{Send: ir.None, Recv: 1 - r, Steps: []ir.Step{st}}}})
	}
	comm, err := lib.NewComm(2, cuda.CommOptions{Watchdog: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	x, err := comm.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.Run(context.Background(), cuda.Options{Bytes: 16})
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != "deadlock" || len(m.Notes) == 0 ||
		!strings.Contains(m.Notes[0].Text, "thread block 0 step 0 (tile 0) waits for a message from rank") {
		t.Errorf("got %v", err)
	}
	if _, err := x.Run(context.Background(), cuda.Options{Bytes: 16}); !errors.As(err, &m) || m.Code != "machine" {
		t.Errorf("a second run: got %v", err)
	}
	if err := errors.Join(x.Close(), comm.Close()); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	lib := library(t)
	if _, err := lib.NewComm(2, cuda.CommOptions{Devices: []int32{0, 200}}); err == nil || !strings.Contains(err.Error(), "there is no GPU 200") {
		t.Errorf("got %v", err)
	}
	p := script(t, "allreduce_ring", map[string]string{"ranks": "2"}, compiler.Options{MinBytes: 1 << 10, MaxBytes: 1 << 20})
	x := open(t, lib, p, cuda.CommOptions{})
	for _, c := range []struct {
		code string
		o    cuda.Options
	}{
		{"size", cuda.Options{Bytes: 1025}},
		{"size-window", cuda.Options{Bytes: 2 << 20}},
		{"op", cuda.Options{Bytes: 1024, Op: 77}},
		{"dtype", cuda.Options{Bytes: 1024, DType: 77}},
		{"input", cuda.Options{Bytes: 1024, Inputs: [][]byte{nil}}},
	} {
		_, err := x.Run(context.Background(), c.o)
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != c.code {
			t.Errorf("%+v: got %v, want code %s", c.o, err, c.code)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := x.Run(ctx, cuda.Options{Bytes: 1024}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
