package cuda_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

func communicator(t *testing.T, lib *cuda.Library, ranks int32, o cuda.CommOptions) *cuda.Comm {
	t.Helper()
	comm, err := lib.NewComm(ranks, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := comm.Close(); err != nil {
			t.Error(err)
		}
	})
	return comm
}

// A reduce-scatter and an allgather of any protocols do what an allreduce has to do, on
// its buffers; a reduce-scatter alone doesn't, nor do they the other way round.
func TestPhases(t *testing.T) {
	lib := library(t)
	o := cuda.Options{Bytes: 12 << 10, Exact: true, Repetitions: 3, Warmup: 1, Launches: 2}
	args := func(protocol string) map[string]string { return map[string]string{"ranks": "3", "protocol": protocol} }
	comm := communicator(t, lib, 3, cuda.CommOptions{Devices: []int32{0, 1}})
	phase := func(name, protocol string) *cuda.Program {
		return load(t, comm, script(t, name, args(protocol), compiler.Options{}))
	}
	x := phase("allreduce_ring", "Simple")
	scatter, gather := phase("reduce_scatter_direct", "LL128"), phase("allgather_direct", "Simple")
	for _, c := range []struct {
		name   string
		phases []*cuda.Program
		op     runtime.ReduceOp
		right  bool
	}{
		{"both", []*cuda.Program{scatter, gather}, runtime.Sum, true},
		{"both, of the greatest", []*cuda.Program{scatter, gather}, runtime.Max, true},
		{"the first alone", []*cuda.Program{scatter}, runtime.Sum, false},
		{"in the wrong order", []*cuda.Program{gather, scatter}, runtime.Sum, false},
	} {
		for _, where := range []cuda.Verify{cuda.VerifyOnHost, cuda.VerifyOnDevice} {
			o.Op, o.Verify = c.op, where
			rep, err := x.RunPhases(context.Background(), c.phases, o)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if rep.Verified != c.right || rep.Wrong > 0 == c.right || rep.Elements != 3*3<<10 {
				t.Errorf("%s: %d of %d wrong, verified %v, want %v", c.name, rep.Wrong, rep.Elements, rep.Verified, c.right)
			}
			if len(rep.Nanoseconds) != 3 || rep.Median <= 0 {
				t.Errorf("%s: got times %v", c.name, rep.Nanoseconds)
			}
		}
	}
	// The program itself runs on as before.
	right(t, x, cuda.Options{Bytes: 12 << 10, Exact: true, Graph: true, Repetitions: 2})
}

func TestPhasesRefused(t *testing.T) {
	lib := library(t)
	two := map[string]string{"ranks": "2"}
	out := map[string]string{"ranks": "2", "inplace": "false"}
	comm := communicator(t, lib, 2, cuda.CommOptions{})
	x := load(t, comm, script(t, "allreduce_ring", two, compiler.Options{}))
	apart := load(t, comm, script(t, "allgather_direct", out, compiler.Options{}))
	gather := load(t, comm, script(t, "allgather_direct", two, compiler.Options{}))
	short := load(t, comm, script(t, "allgather_direct", two, compiler.Options{MaxBytes: 64}))
	other := open(t, lib, script(t, "allgather_direct", two, compiler.Options{}), cuda.CommOptions{})
	for _, c := range []struct {
		phase *cuda.Program
		bytes int64
		code  string
		says  string
	}{
		{apart, 1024, "phases", `program "allgather_direct": input and output of rank 0 are two buffers, want one: in place`},
		{other, 1024, "phases", "it is of another communicator"},
		{gather, 1020, "phases", "are no whole elements for each of its 2 chunks"},
		{short, 1024, "size-window", ""},
	} {
		_, err := x.RunPhases(context.Background(), []*cuda.Program{c.phase}, cuda.Options{Bytes: c.bytes, Exact: true})
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != c.code || !strings.Contains(m.Text, c.says) {
			t.Errorf("got %v, want %s: %s", err, c.code, c.says)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := x.RunPhases(ctx, []*cuda.Program{gather}, cuda.Options{Bytes: 1024}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
