package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// Where a program runs.
const (
	backendCPU  = "cpu"
	backendCUDA = "cuda"
)

var backends = []string{backendCPU, backendCUDA}

// Where values are checked on GPUs.
const (
	verifyAuto   = "auto"
	verifyDevice = "device"
	verifyHost   = "host"
)

// verifyOf are the same for package cuda.
var verifyOf = map[string]cuda.Verify{verifyDevice: cuda.VerifyOnDevice, verifyHost: cuda.VerifyOnHost}

// backendFlags say where a program runs.
func backendFlags() []toolFlag {
	return []toolFlag{
		{Name: "backend", Arg: "NAME", Default: backendCPU, Values: backends,
			Help: "where to run: cpu (goroutines), or cuda (the GPUs of this machine, through libmscclsh_cuda.so)",
			set:  oneOf("backend", backends, func(s *Settings, v string) { s.Backend = v })},
		{Name: "devices", Arg: "LIST", Default: "all there are",
			Help: "GPUs to use, such as 0,1 or 0-3; with fewer GPUs than ranks, each runs several of them",
			set: func(s *Settings, v string) (err error) {
				s.Devices, err = parseDevices(v)
				return err
			}},
		{Name: "threads", Arg: "N", Help: "threads of a thread block on a GPU, instead of the library's choice",
			set: positive("threads", cuda.MaxThreads, func(s *Settings, n int64) { s.Threads = int32(n) })},
		{Name: "verify", Arg: "WHERE", Default: verifyAuto, Values: []string{verifyAuto, verifyDevice, verifyHost},
			Help: "where to check values on GPUs: device (inputs are made there and every result is compared bit for bit, nothing crosses the bus), host (with the reference of --backend cpu), or auto (device for exact data above 64 MiB)",
			set:  oneOf("verify", []string{verifyAuto, verifyDevice, verifyHost}, func(s *Settings, v string) { s.Verify = v })},
		{Name: "watchdog", Arg: "SECONDS", Default: "10", Help: "end a launch whose thread blocks wait longer, and tell what they wait for",
			set: positive("watchdog", math.MaxInt32, func(s *Settings, n int64) { s.Watchdog = time.Duration(n) * time.Second })},
	}
}

// onCUDA reports whether programs run on GPUs.
func (s *Settings) onCUDA() bool { return s.Backend == backendCUDA }

// checkBackend refuses flags of another backend than the one that runs.
func (s *Settings) checkBackend() error {
	for _, f := range [...]struct {
		name  string
		given bool
	}{{"devices", len(s.Devices) > 0}, {"threads", s.Threads > 0}, {"watchdog", s.Watchdog > 0}, {"verify", s.Verify != ""}} {
		if f.given && !s.onCUDA() {
			return badCallHint("flag-unused", "add --backend cuda", "--%s is for GPUs; this runs on the CPU", f.name)
		}
	}
	if s.onCUDA() {
		if err := s.checkOnGPUs(); err != nil {
			return err
		}
	}
	if s.Verify != verifyDevice {
		return nil
	}
	switch {
	case s.Data == dataRandom:
		return badCall("flag-conflict", "--verify device and --data random contradict each other: values that are made and checked there are exact")
	case s.Input != "":
		return badCall("flag-conflict", "--verify device and --input contradict each other: values that are checked there are made there")
	case s.Output != "":
		return badCall("flag-conflict", "--verify device and --output contradict each other: values that are checked there stay there")
	}
	return nil
}

// checkOnGPUs refuses flags that mean nothing on GPUs, and values that they can't take.
func (s *Settings) checkOnGPUs() error {
	switch {
	case s.Chaos != nil:
		return badCallHint("flag-unused", "leave --backend cuda out", "--chaos-seed is for the CPU; this runs on GPUs")
	case s.Slots > cuda.MaxSlots:
		return badCall("slots", "--slots %d: want at most %d on GPUs", s.Slots, cuda.MaxSlots)
	case s.SlotBytes > cuda.MaxSlotBytes:
		return badCall("slots", "--slot-bytes %s: want at most %s on GPUs", exactSize(s.SlotBytes), exactSize(cuda.MaxSlotBytes))
	}
	return nil
}

// cudaPaths are where libmscclsh_cuda.so is looked for: the file that the user
// names, or else beside this program, in the tree that it was built in, and where
// the system keeps libraries.
func cudaPaths() []string {
	if p := os.Getenv("MSCCLSH_CUDA_LIB"); p != "" {
		return []string{p}
	}
	const name = "libmscclsh_cuda.so"
	var paths []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		dir := filepath.Dir(exe)
		for _, rel := range []string{"", "../lib", "../build/cuda", "../runtime/cuda/lib/build"} {
			paths = append(paths, filepath.Join(dir, rel, name))
		}
	}
	return append(paths, name)
}

// ncclPaths are where libnccl.so.2 is looked for: the file that the user names, or
// else where the system keeps libraries and where Python's packages are.
func ncclPaths(ctx context.Context) []string {
	if p := os.Getenv("MSCCLSH_NCCL_LIB"); p != "" {
		return []string{p}
	}
	const name = "libnccl.so.2"
	paths := []string{name}
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	out, err := exec.CommandContext(ctx, "python3", "-c", `import sys; print("\n".join(sys.path))`).Output()
	if err != nil {
		return paths // no Python, no packages of it
	}
	for dir := range strings.Lines(string(out)) {
		dir = strings.TrimRight(dir, "\n")
		if lib := filepath.Join(dir, "nvidia", "nccl", "lib", name); filepath.IsAbs(lib) {
			if _, err := os.Stat(lib); err == nil {
				paths = append(paths, lib)
			}
		}
	}
	return paths
}

// gpus is a communicator and what it runs on.
type gpus struct {
	lib     *cuda.Library
	comm    *cuda.Comm
	program *cuda.Program
	loaded  *ir.Program // that program was made of
	names   []string    // of the GPUs in use
	numbers []int32
}

// openGPUs loads the library and the program.
func (s *Session) openGPUs(p *ir.Program) (*gpus, error) {
	if err := cuda.Validate(p); err != nil {
		return nil, cudaError(err)
	}
	lib, err := cuda.Open(cudaPaths())
	if err != nil {
		return nil, cudaError(err)
	}
	all, err := lib.Devices()
	if err != nil {
		return nil, cudaError(err)
	}
	use := s.Set.Devices
	if len(use) == 0 {
		for i := range all {
			use = append(use, int32(i))
		}
	}
	g := &gpus{lib: lib}
	if g.comm, err = lib.NewComm(p.Ranks(), cuda.CommOptions{Devices: use, Watchdog: s.Set.Watchdog}); err != nil {
		return nil, cudaError(err)
	}
	g.numbers = g.comm.Devices()
	for _, d := range g.numbers {
		g.names = append(g.names, all[d].Name)
	}
	if err := g.use(p); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// use makes p the program that runs.
func (g *gpus) use(p *ir.Program) (err error) {
	if p == g.loaded {
		return nil
	}
	if g.program != nil {
		if err := g.program.Close(); err != nil {
			return cudaError(err)
		}
		g.program, g.loaded = nil, nil
	}
	if g.program, err = g.comm.Load(p); err != nil {
		g.program = nil
		return cudaError(err)
	}
	g.loaded = p
	return nil
}

// close frees the GPUs. What goes wrong then changes no result.
func (g *gpus) close() {
	if g.program != nil {
		_ = g.program.Close()
	}
	_ = g.comm.Close()
}

// cudaOptions are those that run and bench have in common.
func (s *Session) cudaOptions() cuda.Options {
	return cuda.Options{NoVerify: s.program.OneSided != nil && !demanded(s.program), DType: s.Set.DType, Op: s.Set.Op, Threads: s.Set.Threads, Seed: s.Set.Seed,
		Exact: s.Set.Data == dataExact, Events: s.Set.Trace != "", Verify: verifyOf[s.Set.Verify],
		Progress: func(phase string, done float64) {
			s.progress.at(fmt.Sprintf("%s %3.0f%% ", phase, 100*done))
		}}
}

// runCUDA executes the program on GPUs and reports on it.
func (s *Session) runCUDA(ctx context.Context) error {
	p := s.program
	s.begin("running " + p.Name)
	opt := s.cudaOptions()
	opt.Repetitions, opt.KeepOutputs = s.Set.Iterations, s.Set.Output != ""
	var err error
	if opt.Bytes, opt.Inputs, err = s.inputs(ctx, p); err != nil {
		return runError(err)
	}
	g, err := s.openGPUs(p)
	if err != nil {
		return err
	}
	defer g.close()
	rep, err := g.program.Run(ctx, opt)
	if err != nil {
		return cudaError(err)
	}
	s.report.Run = s.cudaPart(p, rep, g)
	if s.Set.Output != "" {
		s.begin("writing outputs")
		if err := runtime.WriteOutputs(s.Set.Output, s.Set.DType, rep.Outputs); err != nil {
			return badCall("output", "writing the outputs: %v", err)
		}
	}
	s.tellWrong(rep.Mismatches, rep.Wrong)
	return s.writeTimeline(p, backendCUDA, rep.Bytes, rep.Events)
}

func (s *Session) cudaPart(p *ir.Program, rep *cuda.Report, g *gpus) *RunPart {
	x := &RunPart{Bytes: rep.Bytes, Elements: rep.Bytes / int64(s.Set.DType.Size()), DType: s.Set.DType.String(),
		Op: s.Set.Op.String(), Root: int32(p.Coll.Root), Iterations: len(rep.Nanoseconds), MinNS: rep.Min.Nanoseconds(),
		MedianNS: rep.Median.Nanoseconds(), AlgBW: rep.AlgBW, BusBW: rep.BusBW, Moved: rep.Moved,
		Verified: rep.Verified, Compared: rep.Elements, Wrong: rep.Wrong, Unbounded: rep.Unbounded,
		MaxError: rep.MaxError, MaxBound: rep.MaxBound, Mismatches: rep.Mismatches, Devices: g.names}
	if rep.Median > 0 {
		x.MoveRate = float64(rep.Moved) / float64(rep.Median.Nanoseconds())
	}
	if x.Mismatches == nil {
		x.Mismatches = []runtime.Mismatch{}
	}
	return x
}

// cudaError gives a refused or failed run on GPUs its exit code.
func cudaError(err error) error {
	for _, m := range diag.Messages(err) {
		switch m.Code {
		case "threads":
			m.Text = "--threads: " + strings.TrimPrefix(m.Text, "run: ")
			return &codedError{exitCall, err}
		case "device", "one-sided", "against":
			return &codedError{exitCall, err}
		case "machine":
			return &codedError{exitMachine, err}
		}
	}
	return runError(err)
}
