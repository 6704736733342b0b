package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// algorithm is a script of the library and what can be said about it.
type algorithm struct {
	name   string
	params map[string][]string // its parameters' choices
}

// scripts are all of the library.
func scripts(t testing.TB) []algorithm {
	t.Helper()
	var out []algorithm
	for _, name := range algorithms.ChunkRouting() {
		s, err := starlib.Load(context.Background(), starlib.Options{File: starlib.LibraryPrefix + name + ".star",
			Library: algorithms.FS, Host: starlib.Host{Topology: machine.Topology}})
		if err != nil {
			t.Fatal(err)
		}
		a := algorithm{name, map[string][]string{}}
		for _, p := range s.Params {
			a.params[p.Name] = p.Choices
		}
		out = append(out, a)
	}
	return out
}

func (a *algorithm) takes(param string) bool {
	_, ok := a.params[param]
	return ok
}

// shape are the arguments for so many ranks; false if the script is not for them.
func (a *algorithm) shape(ranks int) (map[string]string, bool) {
	switch {
	case a.takes("nodes") && ranks%2 == 0:
		return map[string]string{"nodes": "2", "gpus": fmt.Sprint(ranks / 2)}, true
	case a.takes("nodes"):
		return map[string]string{"nodes": "1", "gpus": fmt.Sprint(ranks)}, true
	case !a.takes("ranks"): // made for one machine of eight
		return map[string]string{}, ranks == 8
	}
	return map[string]string{"ranks": fmt.Sprint(ranks)}, !refusesRanks(a.name, fmt.Sprint(ranks))
}

// protocols are those that the script offers, Direct among them; auto is one of them.
func (a *algorithm) protocols() []string {
	return slices.DeleteFunc(slices.Clone(a.params["protocol"]), func(s string) bool { return s == "auto" })
}

// places are the script's choices of in place and out of place.
func (a *algorithm) places() []string {
	if a.takes("inplace") {
		return []string{"true", "false"}
	}
	return []string{""}
}

// source is a call of a script, and how it is compiled.
type source struct {
	name      string
	args      map[string]string
	slotBytes int64 // 0 is the target's
	oneSided  bool  // as a program of puts, signals and packets
}

func (s source) String() string {
	text := s.name
	for _, k := range slices.Sorted(maps.Keys(s.args)) {
		text += " " + k + "=" + s.args[k]
	}
	if s.slotBytes > 0 {
		text += fmt.Sprint(" slots=", s.slotBytes)
	}
	if s.oneSided {
		text += " one-sided"
	}
	return text
}

// with adds an argument, unless it says nothing.
func (s source) with(param, value string) source {
	if value != "" {
		s.args = maps.Clone(s.args)
		s.args[param] = value
	}
	return s
}

// program compiles the call for this project's own runtimes. Direct is refused where
// no order of its rendezvous can work.
func (s source) program() (*ir.Program, error) {
	x, err := starlib.Load(context.Background(), starlib.Options{File: starlib.LibraryPrefix + s.name + ".star",
		Library: algorithms.FS, Args: s.args, Host: starlib.Host{Topology: machine.Topology}})
	if err != nil {
		return nil, err
	}
	r, err := compiler.Compile(context.Background(), x.Programs[0].DAG,
		compiler.Options{Target: ir.TargetNative, SlotBytes: s.slotBytes})
	switch {
	case err != nil && s.args["protocol"] == "Direct":
		return nil, fmt.Errorf("%w: %v", errRefused, err)
	case err != nil:
		return nil, err
	case s.oneSided:
		p, _, err := compiler.OneSided(context.Background(), r.Program, compiler.OneSidedOptions{})
		return p, err
	}
	return r.Program, nil
}

// on loads a program into a communicator of its own and lets f use it.
func on(lib *cuda.Library, p *ir.Program, o cuda.CommOptions, f func(x *cuda.Program) error) (err error) {
	comm, err := lib.NewComm(p.Ranks(), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, comm.Close()) }()
	x, err := comm.Load(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	return f(x)
}

// check runs a program twice, in turn with making inputs and comparing results, so
// that nothing waits for the host in between, and tells how many elements it compared.
func check(x *cuda.Program, o cuda.Options, graph bool) (int64, error) {
	b, err := x.Bind(o)
	if err != nil {
		return 0, err
	}
	if graph {
		if err := b.Capture(1); err != nil {
			return 0, err
		}
	}
	for seed := o.Seed; seed < o.Seed+2; seed++ {
		if err := b.Generate(seed); err != nil {
			return 0, err
		}
		if graph {
			_, err = b.Replay(1)
		} else {
			err = b.Enqueue(1)
		}
		if err != nil {
			return 0, err
		}
		if err := b.Verify(seed); err != nil {
			return 0, err
		}
	}
	v, err := judged(b)
	if err != nil {
		return 0, err
	}
	if v.Elements > 0 != (o.Bytes > 0) {
		return 0, fmt.Errorf("%d elements were compared", v.Elements)
	}
	return v.Elements, b.CheckGuards()
}

// judged is the verdict; wrong elements are an error.
func judged(b *cuda.Bound) (*runtime.Verdict, error) {
	v, err := b.Verdict()
	if err == nil && v.Wrong > 0 {
		err = fmt.Errorf("%d of %d elements are wrong: %v", v.Wrong, v.Elements, v.Mismatches)
	}
	return v, err
}

// outside reports whether a size is not one of the program's.
func outside(err error) bool {
	var m *diag.Message
	return errors.As(err, &m) && m.Code == "size-window"
}

// kinds of numbers: every data type with every reduction.
type kind struct {
	d  runtime.DType
	op runtime.ReduceOp
}

// kinds are all of them, or the one that the library has.
func kinds() []kind {
	var out []kind
	for d := runtime.FP32; d <= runtime.Uint64; d++ {
		for op := runtime.Sum; op <= runtime.Avg; op++ {
			out = append(out, kind{d, op})
		}
	}
	if *gpuSums {
		return out[:1]
	}
	return out
}

// list names devices.
func list(devices []int32) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(devices), " ", ","), "[]")
}

// patience is how long a thread block may wait in these tests: less than a minute,
// but more than what a busy host takes.
const patience = 20 * time.Second
