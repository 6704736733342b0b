package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

// toolFlag describes one flag: its help, its completion, its row in docs/cli.md
// and what it sets all come from here.
type toolFlag struct {
	Name    string
	Short   string   // one letter, or ""
	Arg     string   // the value's name in help; "" for a flag without a value
	Default string   // as shown; "" for none
	Values  []string // the only values, if they can be listed
	Help    string
	Repeats bool // may be given several times
	set     func(s *Settings, value string) error
}

// takesValue reports whether the flag is followed by a value.
func (f *toolFlag) takesValue() bool { return f.Arg != "" }

// flagTable lists the tool's flags in the order of the help.
func flagTable() []toolFlag {
	return slices.Concat(emitFlags(), readFlags(), compileFlags(), judgeFlags(), runFlags(), backendFlags(), reportFlags(), benchFlags(), drawFlags(), lessonFlags(), kernelFlags())
}

func emitFlags() []toolFlag {
	return []toolFlag{
		{Name: "emit", Arg: "FORM", Values: emitForms(),
			Help: "write the compiled program: xml (MSCCL XML for --target), plan (MSCCL++ execution plan), text (readable, with positions) or dot (Graphviz); nothing is run unless --run",
			set:  oneOf("emit", emitForms(), func(s *Settings, v string) { s.Emit = v })},
		{Name: "emit-file", Short: "o", Arg: "FILE",
			Help: "write what is emitted to FILE instead of standard output; without --emit the ending of the name decides (.xml, .json, .txt, .dot)",
			set:  fileName("emit-file", func(s *Settings, v string) { s.File = v })},
		{Name: "target", Arg: "NAME", Default: "native, msccl for XML and check", Values: ir.TargetNames(),
			Help: "the runtime to compile for: msccl, executor (Azure/msccl-executor-nccl), rccl, plain (XML of any size, for this tool only), astra (unfused, for simulators) or native (this tool's own runtimes, without the limits of XML); plain with --emit plan",
			set: func(s *Settings, v string) (err error) {
				s.Target, err = ir.ParseTarget(v)
				s.Targeted = err == nil
				return err
			}},
	}
}

func readFlags() []toolFlag {
	return []toolFlag{
		{Name: "runtime", Arg: "NAME", Default: "plain", Values: mscclxml.ReadingNames(),
			Help: "whose rules MSCCL XML is read by: plain (whatever has one meaning), or what msccl, executor or rccl make of it",
			set: func(s *Settings, v string) (err error) {
				if s.Runtime, err = mscclxml.ParseReading(v); err != nil {
					return fmt.Errorf("runtime: got %q, want %s", v, orList(mscclxml.ReadingNames()))
				}
				return nil
			}},
		{Name: "literal", Help: "read an MSCCL++ plan as its executor runs it, quirks included",
			set: yes(func(s *Settings, v bool) { s.Literal = v })},
	}
}

func compileFlags() []toolFlag {
	passes := passNames()
	dumpable := append([]string{"trace"}, passes...)
	return []toolFlag{
		{Name: "program", Arg: "NAME", Help: "which program of a script that makes several",
			set: func(s *Settings, v string) error { s.Program = v; return nil }},
		{Name: "slots", Arg: "N", Help: "messages in flight on a connection, instead of the target's",
			set: positive("slots", math.MaxInt32, func(s *Settings, n int64) { s.Slots = int32(n) })},
		{Name: "slot-bytes", Arg: "SIZE", Help: "payload of one message, instead of the target's",
			set: size("slot-bytes", 1, func(s *Settings, n int64) { s.SlotBytes = n })},
		{Name: "min-bytes", Arg: "SIZE", Help: "smallest size the program must be safe for",
			set: size("min-bytes", 0, func(s *Settings, n int64) { s.MinBytes = n })},
		{Name: "max-bytes", Arg: "SIZE", Help: "largest size the program must be safe for",
			set: size("max-bytes", 1, func(s *Settings, n int64) { s.MaxBytes = n })},
		{Name: "canonical-order", Help: "let ranks that add term by term do so in the order of the ranks, so that an allreduce gives the same bits everywhere; sums of sums stay as the script makes them",
			set: yes(func(s *Settings, v bool) { s.Canonical = v })},
		{Name: "direct-as-simple", Help: "where the target has no protocol Direct, compile for Simple instead",
			set: yes(func(s *Settings, v bool) { s.DirectAsSimple = v })},
		{Name: "disable", Arg: "PASS", Values: optionalPasses(), Repeats: true,
			Help: "leave a pass out; may be given several times (mscclsh passes lists them)",
			set: oneOf("disable", optionalPasses(), func(s *Settings, v string) {
				s.Disable = append(s.Disable, v)
			})},
		{Name: "dump-after", Arg: "PASS", Values: dumpable, Repeats: true,
			Help: "print what a pass made (trace: what the script said) on standard error; may be given several times",
			set: oneOf("dump-after", dumpable, func(s *Settings, v string) {
				s.DumpAfter = append(s.DumpAfter, v)
			})},
		{Name: "time-passes", Help: "print how long each pass took on standard error",
			set: yes(func(s *Settings, v bool) { s.TimePass = v })},
		{Name: "check-passes", Help: "judge what every pass made, not only the final program; says which pass is at fault",
			set: yes(func(s *Settings, v bool) { s.CheckPass = v })},
		{Name: "max-steps", Arg: "N", Help: "end a script that executes more than N Starlark steps",
			set: positive("max-steps", math.MaxInt64, func(s *Settings, n int64) { s.MaxSteps = n })},
	}
}

func runFlags() []toolFlag {
	return []toolFlag{
		{Name: "run", Help: "run the program even though it is emitted",
			set: yes(func(s *Settings, v bool) { s.Run = v })},
		{Name: "size", Arg: "SIZE", Default: "16MiB, less for many ranks",
			Help: "bytes to run on, as nccl-tests counts them: 4096, 64KiB, 64M (1024s), 1.5GB (1000s)",
			set:  size("size", 0, func(s *Settings, n int64) { s.Size = n })},
		{Name: "dtype", Arg: "TYPE", Default: "fp32", Values: runtime.DTypeNames(),
			Help: "data type",
			set: func(s *Settings, v string) (err error) {
				s.DType, err = runtime.ParseDType(v)
				return err
			}},
		{Name: "op", Arg: "OP", Default: "sum", Values: runtime.ReduceOpNames(),
			Help: "reduction",
			set: func(s *Settings, v string) (err error) {
				s.Op, err = runtime.ParseReduceOp(v)
				return err
			}},
		{Name: "iterations", Arg: "N", Default: "1", Help: "how many times to run; the report gives the median",
			set: positive("iterations", math.MaxInt32, func(s *Settings, n int64) { s.Iterations, s.Counted = int(n), true })},
		{Name: "in-place", Help: "insist on a program that is declared in place",
			set: yes(func(s *Settings, v bool) { s.InPlace = v })},
		{Name: "out-of-place", Help: "insist on a program that is declared out of place",
			set: yes(func(s *Settings, v bool) { s.OutOfPlace = v })},
		{Name: "chaos-seed", Arg: "N", Help: "run one thread block at a time, message by message (with LL and LL128 part by part, as flags let them go), in an order drawn by N: another N, another interleaving",
			set: func(s *Settings, v string) error {
				n, err := strconv.ParseUint(v, 0, 64)
				if err != nil {
					return fmt.Errorf("chaos-seed: got %q, want a number from 0 to 2^64-1", v)
				}
				s.Chaos = &cpu.Chaos{Seed: n}
				return nil
			}},
		{Name: "seed", Arg: "N", Default: "1", Help: "seed of the generated input",
			set: func(s *Settings, v string) (err error) {
				if s.Seed, err = strconv.ParseUint(v, 0, 64); err != nil {
					return fmt.Errorf("seed: got %q, want a number from 0 to 2^64-1", v)
				}
				return nil
			}},
		{Name: "data", Arg: "KIND", Default: dataExact, Values: []string{dataExact, dataRandom},
			Help: "generated input: exact (every partial result is exact, so outputs must match bit for bit) or random (outputs must lie within a derived error bound)",
			set:  oneOf("data", []string{dataExact, dataRandom}, func(s *Settings, v string) { s.Data = v })},
		{Name: "input", Arg: "PATTERN", Help: "read inputs from files instead of generating them: .npy or raw, one file a rank with {rank} in the name, or one file whose first axis is the rank",
			set: fileName("input", func(s *Settings, v string) { s.Input = v })},
		{Name: "output", Arg: "PATTERN", Help: "write outputs to files, named as for --input",
			set: fileName("output", func(s *Settings, v string) { s.Output = v })},
		traceFlag(),
	}
}

func reportFlags() []toolFlag {
	return []toolFlag{
		{Name: "json", Help: "print the report as one JSON object",
			set: yes(func(s *Settings, v bool) { s.JSON = v })},
		{Name: "quiet", Short: "q", Help: "print nothing but errors and what is emitted",
			set: yes(func(s *Settings, v bool) { s.Quiet = v })},
		{Name: "verbose", Short: "v", Help: "print every message below its file (mscclsh check FOLDER)",
			set: yes(func(s *Settings, v bool) { s.Verbose = v })},
	}
}

// oneOf sets a value out of a list.
func oneOf(name string, values []string, set func(*Settings, string)) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		if !slices.Contains(values, v) {
			return fmt.Errorf("%s: got %q, want %s", name, v, orList(values))
		}
		set(s, v)
		return nil
	}
}

// fileName sets a file's name, or a pattern of names. An empty one, of a shell's
// variable that isn't set, say, would stand for a flag that wasn't given.
func fileName(name string, set func(*Settings, string)) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		if v == "" {
			return fmt.Errorf("%s: got \"\", want the name of a file", name)
		}
		set(s, v)
		return nil
	}
}

// positive sets a number from 1 to limit.
func positive(name string, limit int64, set func(*Settings, int64)) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 || n > limit {
			return fmt.Errorf("%s: got %q, want a number from 1 to %d", name, v, limit)
		}
		set(s, n)
		return nil
	}
}

// size sets a number of bytes of at least least.
func size(name string, least int64, set func(*Settings, int64)) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		n, err := parseSize(v)
		if err != nil {
			return fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "size: "))
		}
		if n < least {
			return fmt.Errorf("%s: got %q, want at least %d bytes", name, v, least)
		}
		set(s, n)
		return nil
	}
}

// yes sets a flag without a value; --flag=false unsets it.
func yes(set func(*Settings, bool)) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("got %q, want true or false", v)
		}
		set(s, b)
		return nil
	}
}

// orList is "a, b or c".
func orList(values []string) string {
	switch n := len(values); n {
	case 0:
		return "nothing"
	case 1:
		return values[0]
	default:
		return strings.Join(values[:n-1], ", ") + " or " + values[n-1]
	}
}

func passNames() []string {
	var names []string
	for _, p := range slices.Concat(compiler.Passes(), compiler.OnePasses()) {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

func optionalPasses() []string {
	var names []string
	for _, p := range slices.Concat(compiler.Passes(), compiler.OnePasses()) {
		if !p.Required && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}
