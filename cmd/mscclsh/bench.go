package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

const (
	benchRepetitions = 20 // fewer have no median worth the name
	benchWarmup      = 5
	againstNCCL      = "nccl"
)

// benchFlags are those of bench alone.
func benchFlags() []toolFlag {
	only := func(name string, set func(*Settings, string) error) func(*Settings, string) error {
		return func(s *Settings, v string) error {
			s.BenchFlag = name
			return set(s, v)
		}
	}
	return []toolFlag{
		{Name: "sizes", Arg: "LIST", Default: benchSizes,
			Help: "bench: sizes as nccl-tests counts them, such as 4KiB,1MiB or 1KiB..1GiB (powers of two) or 1KiB..1GiB:4 (every second one)",
			set: only("sizes", func(s *Settings, v string) (err error) {
				if s.Sizes, err = parseSizes(v); err != nil {
					err = fmt.Errorf("sizes: %s", strings.TrimPrefix(err.Error(), "size: "))
				}
				return err
			})},
		{Name: "warmup", Arg: "N", Default: fmt.Sprint(benchWarmup), Help: "bench: repetitions before those that are measured",
			set: only("warmup", positive("warmup", 1<<20, func(s *Settings, n int64) { s.Warmup = int(n) }))},
		{Name: "launches", Arg: "N", Default: "more for small sizes", Help: "bench: launches back to back in one repetition",
			set: only("launches", positive("launches", 1<<20, func(s *Settings, n int64) { s.Launches = int(n) }))},
		{Name: "graph", Help: "bench: each repetition is one replay of a CUDA graph of all its launches",
			set: only("graph", yes(func(s *Settings, v bool) { s.Graph = v }))},
		{Name: "against", Arg: "NAME", Values: []string{againstNCCL},
			Help: "bench: measure NCCL's collective beside, in the same process on the same GPUs, in its default mode and with symmetric windows; NVLS is off",
			set:  only("against", oneOf("against", []string{againstNCCL}, func(s *Settings, v string) { s.Against = v }))},
		{Name: "csv", Help: "bench: print the table as comma-separated values",
			set: only("csv", yes(func(s *Settings, v bool) { s.CSV = v }))},
	}
}

// onlyOfBench reports whether no other command has the flag.
func onlyOfBench(name string) bool {
	return slices.ContainsFunc(benchFlags(), func(f toolFlag) bool { return f.Name == name })
}

// benchFlagNames are all flags of the bench command.
func benchFlagNames() []string {
	var names []string
	for _, f := range slices.Concat(benchFlags(), backendFlags(), readFlags(), compileFlags()) {
		names = append(names, f.Name)
	}
	return append(names, "iterations", "dtype", "op", "seed", "data", "target", "in-place", "out-of-place", "json", "quiet")
}

// Bench is the command: like Run, but a program is measured at many sizes.
func (s *Session) Bench(ctx context.Context, args []string) error {
	s.benching = true
	return s.Run(ctx, args)
}

// checkBench refuses flags that mean nothing for what the call does.
func (s *Session) checkBench() error {
	set := s.Set
	if !s.benching {
		if set.BenchFlag != "" {
			return badCallHint("flag-unused", "mscclsh bench FILE measures", "--%s is for bench", set.BenchFlag)
		}
		return nil
	}
	for _, f := range [...]struct {
		name  string
		given bool
	}{{"emit", set.Emit != ""}, {"emit-file", set.File != ""}, {"run", set.Run}, {"size", set.Size != ir.None},
		{"input", set.Input != ""}, {"output", set.Output != ""}} {
		if f.given {
			return badCall("flag-unused", "--%s: bench measures at --sizes, on generated data, and writes a table only", f.name)
		}
	}
	switch {
	case set.Graph && !set.onCUDA():
		return badCallHint("flag-unused", "add --backend cuda", "--graph is for GPUs; this runs on the CPU")
	case set.Against != "" && !set.onCUDA():
		return badCallHint("flag-unused", "add --backend cuda", "--against %s is for GPUs; this runs on the CPU", set.Against)
	case set.CSV && set.JSON:
		return badCall("flag-conflict", "--csv and --json contradict each other: both want standard output")
	}
	return nil
}

// bench measures the program at all sizes.
func (s *Session) bench(ctx context.Context) error {
	p := s.program
	sizes := s.Set.Sizes
	if sizes == nil {
		var err error
		if sizes, err = parseSizes(benchSizes); err != nil {
			return err
		}
	}
	b := &BenchPart{Backend: backendCPU, Graph: s.Set.Graph, Repetitions: benchRepetitions, Warmup: benchWarmup, Rows: []BenchRow{}}
	if s.Set.Counted {
		b.Repetitions = s.Set.Iterations
	}
	if s.Set.Warmup > 0 {
		b.Warmup = s.Set.Warmup
	}
	var err error
	if s.Set.onCUDA() {
		b.Backend = backendCUDA
		err = s.benchCUDA(ctx, p, b, sizes)
	} else {
		err = s.benchCPU(ctx, p, b, sizes)
	}
	if err != nil {
		return err
	}
	b.summarize()
	s.report.Bench = b
	return nil
}

// benchCPU measures on goroutines.
func (s *Session) benchCPU(ctx context.Context, p *ir.Program, b *BenchPart, sizes []int64) error {
	b.Devices = []string{"this CPU"}
	for _, n := range sizes {
		s.begin("measuring " + formatSize(n))
		rep, err := cpu.Run(ctx, p, cpu.Options{Bytes: n, DType: s.Set.DType, Op: s.Set.Op, Iterations: b.Repetitions,
			Warmup: b.Warmup, Seed: s.Set.Seed, Exact: s.Set.Data == dataExact})
		row := s.benchRow(p, n, 1)
		switch {
		case outside(err):
			row.Skipped = "outside of the program's sizes"
		case err != nil:
			return runError(err)
		default:
			row.Bytes, row.Elements = rep.Bytes, rep.Bytes/int64(s.Set.DType.Size())
			row.AlgBW, row.BusBW, row.Wrong = rep.AlgBW, rep.BusBW, rep.Wrong
			for _, t := range rep.Times {
				row.times = append(row.times, float64(t.Nanoseconds()))
			}
			row.statistics()
			s.tellWrong(rep.Mismatches, rep.Wrong)
		}
		b.Rows = append(b.Rows, row)
	}
	return nil
}

// outside reports whether a run was refused because of its size alone.
func outside(err error) bool {
	if err == nil {
		return false
	}
	return slices.ContainsFunc(diag.Messages(err), func(m *diag.Message) bool { return m.Code == "size-window" })
}

func (s *Session) benchRow(p *ir.Program, bytes int64, launches int) BenchRow {
	return BenchRow{Bytes: bytes, Elements: bytes / int64(s.Set.DType.Size()), DType: s.Set.DType.String(),
		Op: s.Set.Op.String(), Root: int32(p.Coll.Root), Launches: launches}
}

// launchesFor is how many launches make a repetition long enough to be timed well:
// about a millisecond or more.
func launchesFor(bytes int64) int {
	switch {
	case bytes <= 1<<20:
		return 200
	case bytes <= 16<<20:
		return 50
	case bytes <= 128<<20:
		return 10
	}
	return 4
}

// benchCUDA measures on GPUs, and NCCL beside if asked to.
func (s *Session) benchCUDA(ctx context.Context, p *ir.Program, b *BenchPart, sizes []int64) error {
	g, err := s.openGPUs(p)
	if err != nil {
		return err
	}
	defer g.close()
	b.Devices, b.Library = g.names, "libmscclsh_cuda ("+g.lib.Build()+")"
	var rival *cuda.Rival
	if s.Set.Against == againstNCCL {
		if rival, err = s.openRival(ctx, p, b, g, slices.Max(sizes)); err != nil {
			return err
		}
		defer rival.Close()
	}
	for _, n := range sizes {
		if err := ctx.Err(); err != nil {
			return err
		}
		row := s.benchRow(p, n, launchesFor(n))
		if s.Set.Launches > 0 {
			row.Launches = s.Set.Launches
		}
		if err := s.benchSize(ctx, g, b, &row); err != nil {
			return cudaError(err)
		}
		if rival != nil && row.Skipped == "" {
			if err := s.benchRival(rival, p, b, &row); err != nil {
				return cudaError(err)
			}
		}
		b.Rows = append(b.Rows, row)
	}
	return nil
}

func (s *Session) openRival(ctx context.Context, p *ir.Program, b *BenchPart, g *gpus, most int64) (*cuda.Rival, error) {
	s.begin("opening NCCL")
	nccl, err := cuda.OpenNCCL(ncclPaths(ctx))
	if err != nil {
		return nil, cudaError(err)
	}
	b.Opponent = nccl.String()
	rival, err := nccl.NewRival(p.Coll, g.numbers, most, s.Set.DType)
	if err != nil {
		return nil, cudaError(err)
	}
	b.Against = rival.Modes()
	return rival, nil
}

// benchSize fills in a row.
func (s *Session) benchSize(ctx context.Context, g *gpus, b *BenchPart, row *BenchRow) error {
	s.begin("measuring " + formatSize(row.Bytes))
	opt := s.cudaOptions()
	opt.Bytes, opt.Repetitions, opt.Warmup = row.Bytes, b.Repetitions, b.Warmup
	opt.Launches, opt.Graph = row.Launches, s.Set.Graph
	rep, err := g.program.Run(ctx, opt)
	if outside(err) {
		row.Skipped = "outside of the program's sizes"
		return nil
	}
	if err != nil {
		return err
	}
	row.Bytes, row.Elements = rep.Bytes, rep.Bytes/int64(s.Set.DType.Size())
	row.Wrong = rep.Wrong
	row.times = rep.Nanoseconds
	row.statistics()
	row.AlgBW, row.BusBW = rep.AlgBW, rep.BusBW
	s.tellWrong(rep.Mismatches, rep.Wrong)
	return nil
}

// benchRival adds NCCL's times to a row.
func (s *Session) benchRival(rival *cuda.Rival, p *ir.Program, b *BenchPart, row *BenchRow) error {
	layout, err := runtime.NewLayout(p.Coll, s.Set.DType, row.Bytes)
	if err != nil {
		return err
	}
	for mode, name := range rival.Modes() {
		s.begin("measuring " + name + " at " + formatSize(row.Bytes))
		times, err := rival.Time(mode, layout, s.Set.Op, cuda.Timing{Repetitions: b.Repetitions, Warmup: b.Warmup,
			Launches: row.Launches, Graph: s.Set.Graph})
		part := AgainstPart{}
		switch {
		case err == nil:
			part.MedianNS, _, _ = spread(times)
			if row.MedianNS > 0 {
				part.Ratio = part.MedianNS / row.MedianNS
			}
		case cuda.CannotCompare(err):
			part.Why = diag.Messages(err)[0].Text
		default:
			return err
		}
		row.Against = append(row.Against, part)
	}
	return nil
}
