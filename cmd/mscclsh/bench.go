package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

const (
	benchRepetitions = 20 // fewer have no median worth the name
	benchWarmup      = 5
)

// benchFlags are those of bench alone.
func benchFlags() []toolFlag {
	only := func(name string, set func(*Settings, string) error) func(*Settings, string) error {
		return func(s *Settings, v string) error {
			s.BenchFlag = name
			return set(s, v)
		}
	}
	against := againstFlag()
	against.set = only(against.Name, against.set)
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
		against,
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
	return append(names, "iterations", "dtype", "op", "seed", "data", "target", "in-place", "out-of-place", "trace", "json", "quiet")
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
	case set.CSV && set.JSON:
		return badCall("flag-conflict", "--csv and --json contradict each other: both want standard output")
	}
	return set.checkAgainst()
}

// bench measures the program at all sizes.
func (s *Session) bench(ctx context.Context) error {
	p := s.program
	sizes, err := s.Set.benchSizes()
	if err != nil {
		return err
	}
	b := &BenchPart{Backend: backendCPU, Graph: s.Set.Graph, Repetitions: benchRepetitions, Warmup: benchWarmup, Rows: []BenchRow{}}
	if s.Set.Counted {
		b.Repetitions = s.Set.Iterations
	}
	if s.Set.Warmup > 0 {
		b.Warmup = s.Set.Warmup
	}
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
	if s.Set.Trace != "" && !b.ran() {
		return badCallHint("size-window", "take a size within, or compile for this one",
			"--trace: no timeline was written: %s is %s", exactSize(sizes[0]), b.Rows[0].Skipped)
	}
	return nil
}

// benchSizes are those to measure.
func (s *Settings) benchSizes() ([]int64, error) {
	if s.Sizes != nil {
		return s.Sizes, nil
	}
	return parseSizes(benchSizes)
}

// benchCPU measures on goroutines.
func (s *Session) benchCPU(ctx context.Context, p *ir.Program, b *BenchPart, sizes []int64) error {
	b.Devices = []string{"this CPU"}
	for _, n := range sizes {
		p, err := s.programAt(ctx, n)
		if err != nil {
			return err
		}
		s.begin("measuring " + formatSize(n))
		rep, err := cpu.Run(ctx, p, cpu.Options{Bytes: n, DType: s.Set.DType, Op: s.Set.Op, Iterations: b.Repetitions,
			Warmup: b.Warmup, Seed: s.Set.Seed, Exact: s.Set.Data == dataExact, Events: s.Set.Trace != ""})
		row := s.benchRow(p, n, 1)
		switch {
		case outside(err):
			row.Skipped = "outside of the program's sizes"
		case err != nil:
			return runError(err)
		default:
			if err := s.writeTimeline(p, b.Backend, rep.Bytes, rep.Events); err != nil {
				return err
			}
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
	return hasCode(err, "size-window")
}

// hasCode reports whether an error, if it is one, has a message of that code.
func hasCode(err error, code string) bool {
	return err != nil && slices.ContainsFunc(diag.Messages(err), func(m *diag.Message) bool { return m.Code == code })
}

func (s *Session) benchRow(p *ir.Program, bytes int64, launches int) BenchRow {
	row := BenchRow{Bytes: bytes, Elements: bytes / int64(s.Set.DType.Size()), DType: s.Set.DType.String(),
		Op: s.Set.Op.String(), Root: int32(p.Coll.Root), Launches: launches}
	s.nameProtocol(&row, p)
	return row
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
	against, err := s.openOpponents(ctx, p, b, g, slices.Max(sizes))
	if err != nil {
		return err
	}
	defer func() { _ = against.close() }() // what goes wrong then changes no figure
	for _, n := range sizes {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := s.programAt(ctx, n)
		if err != nil {
			return err
		}
		if err := g.use(p); err != nil {
			return err
		}
		row := s.benchRow(p, n, launchesFor(n))
		if s.Set.Launches > 0 {
			row.Launches = s.Set.Launches
		}
		if err := s.benchSize(ctx, p, g, b, &row); err != nil {
			return cudaError(err)
		}
		if row.Skipped == "" {
			if err := s.benchOpponents(ctx, against, p, g, b, &row); err != nil {
				return cudaError(err)
			}
		}
		b.Rows = append(b.Rows, row)
	}
	return nil
}

// benchSize fills in a row.
func (s *Session) benchSize(ctx context.Context, p *ir.Program, g *gpus, b *BenchPart, row *BenchRow) error {
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
	return s.writeTimeline(p, b.Backend, rep.Bytes, rep.Events)
}
