package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/compiler"
)

// commandTable lists the commands; the first is what happens without a name.
func commandTable() []command {
	return []command{
		{
			Args:  "FILE [--parameter value ...]",
			Short: "Compile a collective algorithm, or read a program; check it and run it on real data",
			Long: `FILE is a script (.star, or .py for msccl-tools), or a program that was written before: MSCCL XML (.xml), an
MSCCL++ execution plan (.json) or the text form. mscclsh formats lists what can be read and written.

A script is traced, compiled for this tool's own runtimes (or for --target), and the compiled program is
checked: its results for every rank, races, and deadlock with the slots that connections really have. Then it
runs on this CPU, step for step as a GPU would run it, and what comes out is compared with a direct computation.
With --emit (or XML() in the script) it is written instead, compiled for the runtime that it is written for.

A program that was read is checked and run likewise, in each mode that it declares; with --emit it is converted.

The tool's flags stand before the script. What follows the script belongs to it: its parameters
(mscclsh SCRIPT --help lists them); a flag of the tool is accepted there too unless a parameter has its
name, and is always reached as --tool.NAME. A Python script reads its own arguments with argparse.

Scripts of the library are called @algorithms/NAME.star; mscclsh algorithms lists them.

Exit codes: 0 done, 1 the program is wrong, 2 the call is wrong, 3 this machine can't (memory, disk, or a
defect of mscclsh), 130 interrupted.`,
			Examples: []string{
				"mscclsh @algorithms/allreduce_ring.star",
				"mscclsh @algorithms/allreduce_ring.star --ranks 16 --channels 4 --size 64MiB",
				"mscclsh --emit xml -o ring.xml @algorithms/allreduce_ring.star --protocol LL128",
				"mscclsh --emit plan -o ring.json @algorithms/allreduce_ring.star --protocol LL",
				"mscclsh --runtime rccl ring.xml",
				"mscclsh --emit xml --target rccl -o ring.rccl.xml ring.xml",
				"mscclsh hierarchical_allreduce.py 8 2 1 --protocol LL",
			},
			Flags:   flagNames(),
			MaxArgs: -1,
			MinArgs: 1,
			Script:  true,
			Run:     func(ctx context.Context, s *Session, args []string) error { return s.Run(ctx, args) },
		},
		{
			Name:  "check",
			Args:  "FILE|FOLDER ... [--parameter value ...] | --explain CODE",
			Short: "Check programs without running them: a script's, one in a file, or all in folders",
			Long: `Prints the verdict: whether every output is right, whether two thread blocks race, and whether the
program can deadlock with the slots that its connections have, in every size regime of its window.

Of a folder, or of several files, it prints a table: for each file the collective, the ranks, the verdict
(pass, fail, deadlock, race, invalid, or refused if it can't be read), the least number of slots with which
every size runs, the sizes that are safe with the slots there are, and the runtimes that take the file, with
a number where one doesn't and the reason below. MSCCL++ plans are judged for one launch; races within it
and with the next launch are counted beside. -v prints all messages, --json everything, --sarif all findings at
their places, for editors and continuous integration.

--gpu NAME asks besides whether all thread blocks of a rank run at once on that GPU; if not, the verdict is
unfit. --explain CODE says what a class of findings means and what helps, with an example.

The exit code is 0 only if every program passes; with --strict warnings fail too, and are a verdict of a table.`,
			Examples: []string{
				"mscclsh check @algorithms/alltoall_two_step.star --nodes 4",
				"mscclsh check collection/ --json",
				"mscclsh check --strict --gpu a100 ring.xml",
				"mscclsh check --sarif collection/ > findings.sarif",
				"mscclsh check --explain race",
			},
			Flags:   checkFlags(),
			MaxArgs: -1,
			MinArgs: 1,
			Script:  true,
			Run:     func(ctx context.Context, s *Session, args []string) error { return s.Check(ctx, args) },
		},
		{
			Name:  "bench",
			Args:  "FILE [--parameter value ...]",
			Short: "Measure a program at many sizes, on GPUs or this CPU, beside NCCL if asked to",
			Long: `Compiles (or reads) and checks as mscclsh FILE does, then runs at each of --sizes, compares the outputs with
a direct computation, and prints nccl-tests' columns: the median time of a launch over --iterations repetitions
(20 if not said), on GPUs of many launches each for small sizes. Sizes that the program isn't safe for are left out.

With --against nccl the same collective of NCCL runs in the same process on the same GPUs, in its default mode
and with symmetric windows, between the same clocks; ratios above 1 say that the program is faster. An allreduce
can be measured against NCCL's reduce-scatter and allgather (nccl-composed), and the first program of a script
against the others, launched one after another on the same buffers (phases).

--trace FILE writes when each step of one more launch began and ended.`,
			Examples: []string{
				"mscclsh bench @algorithms/allreduce_ring.star --ranks 2 --sizes 1KiB..1MiB",
				"mscclsh bench --backend cuda --devices 0,1 --graph --against nccl --sizes 1KiB..1GiB @algorithms/allreduce_allpairs.star --ranks 2",
			},
			Flags:   benchFlagNames(),
			MaxArgs: -1,
			MinArgs: 1,
			Script:  true,
			Run:     func(ctx context.Context, s *Session, args []string) error { return s.Bench(ctx, args) },
		},
		drawEntry(),
		shellEntry(),
		tutorialEntry(),
		lspEntry(),
		kernelEntry(),
		tableEntry(),
		{
			Name:  "algorithms",
			Short: "List the algorithms of the library",
			Run: func(_ context.Context, s *Session, _ []string) error {
				return s.listAlgorithms()
			},
		},
		{
			Name:  "formats",
			Short: "List the kinds of files that are read and written",
			Run:   func(_ context.Context, s *Session, _ []string) error { return s.listFormats() },
		},
		{
			Name:  "passes",
			Short: "List the compiler's passes in order",
			Run: func(_ context.Context, s *Session, _ []string) error {
				for _, p := range compiler.Passes() {
					fmt.Fprintf(s.Out, "%-14s  %s%s\n", p.Name, p.Doc, optionalMark(p))
				}
				fmt.Fprintln(s.Out, "\nof one-sided programs:")
				for _, p := range compiler.OnePasses() {
					fmt.Fprintf(s.Out, "%-14s  %s%s\n", p.Name, p.Doc, optionalMark(p))
				}
				return nil
			},
		},
		{
			Name:     "doc",
			Args:     "[PAGE]",
			Short:    "Print a page of the reference, as Markdown",
			Examples: []string{"mscclsh doc language"},
			MaxArgs:  1,
			Values:   docPages(),
			Run: func(_ context.Context, s *Session, args []string) error {
				return s.doc(args)
			},
		},
		{
			Name:    "completion",
			Args:    "SHELL",
			Short:   "Print a completion script for bash, zsh, fish or powershell",
			Long:    "Load it with, for example: source <(mscclsh completion bash)",
			MinArgs: 1,
			MaxArgs: 1,
			Values:  []string{"bash", "zsh", "fish", "powershell"},
			Run: func(_ context.Context, s *Session, args []string) error {
				return s.completion(args[0])
			},
		},
		{
			Name:  "version",
			Short: "Print the version",
			Run: func(_ context.Context, s *Session, _ []string) error {
				_, err := fmt.Fprintln(s.Out, versionText())
				return err
			},
		},
		{
			Name:    "help",
			Args:    "[COMMAND]",
			Short:   "Print the help of a command",
			MaxArgs: 1,
			Values:  []string{"check", "bench", "draw", "shell", "tutorial", "lsp", "kernel", "table", "algorithms", "formats", "passes", "doc", "completion", "version", "help"},
			Run: func(_ context.Context, s *Session, args []string) error {
				name := ""
				if len(args) > 0 {
					name = args[0]
				}
				table := commandTable()
				i := slices.IndexFunc(table, func(c command) bool { return c.Name == name })
				writeHelp(s.Out, &table[i])
				return nil
			},
		},
	}
}

func optionalMark(p compiler.PassInfo) string {
	if p.Required {
		return ""
	}
	return " (--disable " + p.Name + " leaves it out)"
}

// flagNames are the tool's flags but those of check or bench alone.
func flagNames() []string {
	var names []string
	for _, f := range flagTable() {
		if !slices.Contains(onlyOfCheck[:], f.Name) && !onlyOfBench(f.Name) && !onlyOfDraw(f.Name) && !onlyOfTutorial(f.Name) && !onlyOfKernel(f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// checkFlags are those that mean something without emitting or running.
func checkFlags() []string {
	var names []string
	for _, f := range slices.Concat(readFlags(), compileFlags(), judgeFlags()) {
		names = append(names, f.Name)
	}
	return append(names, "target", "in-place", "out-of-place", "json", "quiet", "verbose")
}

// listAlgorithms prints the library's scripts, one a line.
func (s *Session) listAlgorithms() error {
	for _, name := range algorithms.Names() {
		summary, err := algorithms.Summary(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "@algorithms/%-36s  %s\n", name+".star", summary)
	}
	return nil
}
