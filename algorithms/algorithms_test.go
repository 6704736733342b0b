package algorithms_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
	"github.com/mscclsh/mscclsh/starlib"
)

var full = flag.Bool("full", false, "every combination of sizes, modes, instances, protocols and roots, not a covering selection")

// try runs a script of the library.
func try(name string, args map[string]string) (*starlib.Script, error) {
	return starlib.Load(context.Background(), starlib.Options{
		File:    starlib.LibraryPrefix + name + ".star",
		Library: algorithms.FS,
		Args:    args,
		Host:    starlib.Host{Topology: machine.Topology},
	})
}

func load(t *testing.T, name string, args map[string]string) *starlib.Script {
	t.Helper()
	s, err := try(name, args)
	if err != nil {
		t.Fatalf("%s %s: %v", name, caseName(args), err)
	}
	if len(s.Programs) != 1 || s.Programs[0].Name != name {
		t.Fatalf("%s: got %d programs, want one of the script's name", name, len(s.Programs))
	}
	return s
}

func compile(t *testing.T, s *starlib.Script, o compiler.Options) *ir.Program {
	t.Helper()
	r, err := compiler.Compile(context.Background(), s.Programs[0].DAG, o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Program
}

// plain compiles without the limits of any runtime, for the slots of MSCCL.
var plain = compiler.Options{Target: ir.TargetPlain}

// native compiles for the runtimes here. Auto is to stand for each protocol once.
var native = compiler.Options{Target: ir.TargetNative}

// narrow are messages of two elements, so that one carries no whole chunk of
// execute's and every step takes as many messages as it has chunks, in several
// tiles: what large sizes do to large slots.
func narrow(o compiler.Options) compiler.Options {
	o.SlotBytes = 8
	return o
}

// targets are how a program of a protocol is compiled.
func targets(p ir.Protocol) []compiler.Options {
	switch p {
	case ir.Direct:
		return []compiler.Options{native}
	case ir.AutoProtocol:
		var list []compiler.Options
		for _, size := range []int64{1 << 10, 1 << 20, 1 << 40} {
			o := native
			o.Size = size
			list = append(list, o)
		}
		return list
	}
	return []compiler.Options{plain, narrow(plain), native, narrow(native)}
}

// judge checks and runs a program.
func judge(t *testing.T, p *ir.Program) *checker.Report {
	t.Helper()
	report, err := checker.Check(context.Background(), p, checker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK {
		t.Fatalf("the check fails:\n%v", report.Messages)
	}
	if err := execute(p); err != nil {
		t.Fatal(err)
	}
	return report
}

// execute runs a program on exact data of a size that does not divide: three
// elements a chunk and one to spare.
func execute(p *ir.Program) error {
	r, err := cpu.Run(context.Background(), p, cpu.Options{
		Bytes: 4 * (3*int64(p.Coll.NumChunks()) + 1), DType: runtime.FP32, Op: runtime.Sum, Seed: 1, Exact: true})
	switch {
	case err != nil:
		return fmt.Errorf("running %s: %w", p.Name, err)
	case !r.Verified:
		return fmt.Errorf("running %s: %d elements are wrong: %v", p.Name, r.Wrong, r.Mismatches)
	}
	return nil
}

// TestAll takes every algorithm through every stage, for a selection of
// parameters in which any two settings meet, or all of them.
func TestAll(t *testing.T) {
	for _, name := range algorithms.ChunkRouting() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			axes := axesOf(load(t, name, nil).Params)
			rows := covering(axes)
			if *full {
				rows = product(axes)
			}
			seen := map[string]bool{}
			for _, row := range rows {
				args, ok := caseOf(axes, row)
				id := caseName(args)
				if seen[id] || *full && !ok || refuses(name, args["ranks"]) {
					continue
				}
				seen[id] = true
				t.Run(id, func(t *testing.T) {
					s := load(t, name, args)
					for _, o := range targets(s.Programs[0].DAG.Protocol) {
						judge(t, compile(t, s, o))
					}
				})
			}
		})
	}
}

// powersOnly are the algorithms that refuse ranks other than powers of two.
var powersOnly = map[string]string{
	"allreduce_halving_doubling":   "halving-doubling pairs ranks off, so ranks must be a power of two, got %s",
	"allgather_recursive_doubling": "recursive doubling pairs ranks off, so ranks must be a power of two, got %s",
}

func refuses(name, ranks string) bool {
	n, err := strconv.Atoi(ranks)
	return err == nil && powersOnly[name] != "" && n&(n-1) != 0
}

// TestRefusals: what an algorithm can't do it says, at a place in the script.
func TestRefusals(t *testing.T) {
	type refusal struct {
		name string
		args map[string]string
		want string
	}
	var cases []refusal
	for name, text := range powersOnly {
		for n := 1; n <= 17; n++ {
			if ranks := strconv.Itoa(n); refuses(name, ranks) {
				cases = append(cases, refusal{name, map[string]string{"ranks": ranks}, fmt.Sprintf(text, ranks)})
			}
		}
	}
	for _, name := range algorithms.ChunkRouting() {
		for _, p := range load(t, name, nil).Params {
			if p.Name == "ranks" || p.Name == "nodes" || p.Name == "gpus" {
				cases = append(cases, refusal{name, map[string]string{p.Name: "0"}, "fully_connected: num_nodes: got 0, want 1 to"})
			}
		}
	}
	cases = append(cases,
		refusal{"sendrecv", map[string]string{"ranks": "3", "dst": "5"}, "dst: got 5, want a rank from 0 to 2"},
		refusal{"broadcast_tree", map[string]string{"root": "9"}, "root: got 9, want a rank from 0 to 7"},
		refusal{"alltoallv_direct", map[string]string{"ranks": "2", "counts": "1,2,3"}, "counts: got 3 numbers, want ranks x ranks = 4"})
	for _, c := range cases {
		t.Run(c.name+","+caseName(c.args), func(t *testing.T) {
			_, err := try(c.name, c.args)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name+".star:") {
				t.Errorf("got error %v, want one in %s.star that says %q", err, c.name, c.want)
			}
		})
	}
}

// TestGivenCounts: alltoallv_direct takes the counts that it is given, zeros
// and whole empty rows included.
func TestGivenCounts(t *testing.T) {
	for _, counts := range []string{
		"0,0,0,0,0,0,0,0,1", // one rank keeps one chunk, the others have nothing
		"0,5,0,0,0,5,5,0,0", // a ring
		"1,2,3,0,0,0,4,5,6", // a rank that sends nothing
		"0,1,2,0,3,4,0,5,6", // a rank that gets nothing
	} {
		t.Run(counts, func(t *testing.T) {
			args := map[string]string{"ranks": "3", "counts": counts}
			judge(t, compile(t, load(t, "alltoallv_direct", args), plain))
		})
	}
}

// TestRounds: in each of its 2 steps SCCL's (1,2,2) schedule sends at most one
// chunk over a link of a DGX-1, so that 2 rounds are enough on single NVLinks.
func TestRounds(t *testing.T) {
	type link struct {
		step     int
		from, to ir.Rank
	}
	chunks := map[link]int32{}
	for _, op := range load(t, "allgather_sccl_122_dgx1", nil).Programs[0].DAG.Ops {
		step := 1 // the canonical index is the rank that the chunk came from
		if op.Src.Index != int32(op.Src.Rank) {
			step = 2
		}
		l := link{step, op.Src.Rank, op.Dst.Rank}
		if chunks[l] += op.Count; chunks[l] > 1 {
			t.Errorf("step %d sends %d chunks from %d to %d, want 1 at most", step, chunks[l], l.from, l.to)
		}
	}
	if len(chunks) != 8*4+8*3 {
		t.Errorf("got %d transfers, want 4 of its own chunk and 3 of its partner's from each of 8 GPUs", len(chunks))
	}
}

// TestSameBits: where each rank ends with a sum, all ranks add it up in the
// same order.
func TestSameBits(t *testing.T) {
	for _, name := range algorithms.ChunkRouting() {
		if !strings.HasPrefix(name, "allreduce_") {
			continue
		}
		for _, mode := range []string{"true", "false"} {
			for _, proto := range []string{"LL", "Direct"} {
				args := map[string]string{"inplace": mode, "protocol": proto}
				t.Run(name+","+caseName(args), func(t *testing.T) {
					s := load(t, name, args)
					for _, o := range targets(s.Programs[0].DAG.Protocol) {
						if judge(t, compile(t, s, o)).OrderDiffers {
							t.Errorf("target %s: ranks add in different orders", o.Target)
						}
					}
				})
			}
		}
	}
}

// TestDeterministic: the same script gives the same text.
func TestDeterministic(t *testing.T) {
	for _, name := range algorithms.ChunkRouting() {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				protocol string
				options  compiler.Options
			}{{"LL", compiler.Options{Target: ir.TargetMSCCL}}, {"LL", native}, {"Direct", native}} {
				var texts [2]strings.Builder
				for i := range texts {
					p := compile(t, load(t, name, map[string]string{"instances": "2", "protocol": c.protocol}), c.options)
					if err := p.WriteText(&texts[i]); err != nil {
						t.Fatal(err)
					}
				}
				if texts[0].String() != texts[1].String() {
					t.Errorf("%s for %s: two compilations differ", c.protocol, c.options.Target)
				}
			}
		})
	}
}

// TestXML: with its defaults every algorithm can be written for MSCCL, and for
// the other runtimes if they know the collective.
func TestXML(t *testing.T) {
	unknown := map[ir.CollectiveKind]bool{ir.AllToNext: true, ir.SendRecv: true, ir.AllToAllV: true}
	for _, name := range algorithms.ChunkRouting() {
		for _, target := range []ir.Target{ir.TargetMSCCL, ir.TargetExecutor, ir.TargetRCCL, ir.TargetPlain} {
			t.Run(name+","+target.String(), func(t *testing.T) {
				p := compile(t, load(t, name, nil), compiler.Options{Target: target})
				judge(t, p)
				err := mscclxml.Write(io.Discard, p, target)
				refused := unknown[p.Coll.Kind] && (target == ir.TargetExecutor || target == ir.TargetRCCL)
				if (err != nil) != refused {
					t.Errorf("got error %v, want one: %v", err, refused)
				}
			})
		}
	}
}

// TestSchedules pins what the best schedules come to, worked out by hand for 8
// ranks: steps (without waits) and thread blocks of the busiest rank, and the
// scratch it needs in place and out of place.
func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		name    string
		tbs     int
		steps   [2]int // in place, out of place
		scratch [2]int
	}{
		// s, 6 rrs, rrcs, 6 rcs, r.
		{"allreduce_ring", 1, [2]int{15, 15}, [2]int{0, 0}},
		// s, 6 rrs, rrc.
		{"reduce_scatter_ring", 1, [2]int{8, 8}, [2]int{0, 0}},
		// With each peer s, rrc, s, r on one thread block; the last sum goes straight back: rrcs.
		{"allreduce_allpairs", 7, [2]int{27, 27}, [2]int{0, 0}},
		// In each of 6 rounds a send and a receive; the last sum goes straight back.
		{"allreduce_halving_doubling", 3, [2]int{11, 11}, [2]int{0, 0}},
		// 7 s, 7 rrc.
		{"reduce_scatter_direct", 7, [2]int{14, 14}, [2]int{0, 0}},
		// 7 s and 7 r; out of place its own chunk is copied.
		{"allgather_direct", 7, [2]int{14, 15}, [2]int{0, 0}},
		// The same: what the script stages is received once its place is free.
		{"alltoall_direct", 7, [2]int{14, 15}, [2]int{0, 0}},
		// The root has 3 rrc. Rank 4 adds up twice, which out of place takes scratch.
		{"reduce_tree", 3, [2]int{3, 3}, [2]int{0, 1}},
		// 7 s, 7 r or rrc, and one re: the sum of the ranks below meets a rank's own data.
		{"allreduce_one_step", 7, [2]int{15, 15}, [2]int{1, 0}},
	} {
		for i, mode := range []string{"true", "false"} {
			args := map[string]string{"ranks": "8", "inplace": mode}
			t.Run(c.name+","+caseName(args), func(t *testing.T) {
				steps, tbs, scratch := 0, 0, 0
				p := compile(t, load(t, c.name, args), plain)
				for g := range p.GPUs {
					n := 0
					for _, tb := range p.GPUs[g].TBs {
						for _, s := range tb.Steps {
							if s.Kind != ir.Nop {
								n++
							}
						}
					}
					steps, tbs, scratch = max(steps, n), max(tbs, len(p.GPUs[g].TBs)), max(scratch, int(p.GPUs[g].Scratch))
				}
				if steps != c.steps[i] || tbs != c.tbs || scratch != c.scratch[i] {
					t.Errorf("got %d steps, %d thread blocks, %d chunks of scratch, want %d, %d, %d",
						steps, tbs, scratch, c.steps[i], c.tbs, c.scratch[i])
				}
			})
		}
	}
}

// TestScripts holds every script to the form that docs/add-an-algorithm.md asks for.
func TestScripts(t *testing.T) {
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			s := load(t, name, nil)
			if doc, err := algorithms.Doc(name); err != nil || doc != s.Doc {
				t.Errorf("Doc is not the docstring (%v)", err)
			}
			params, parts := []string{"instances", "protocol"}, []string{"\nSource: ", "\nSteps: ", "\nBytes: "}
			if slices.Contains(algorithms.OneSided(), name) {
				params, parts = []string{"instances"}, append(parts, "\nSizes: ")
			}
			for _, part := range parts {
				if !strings.Contains(s.Doc, part) {
					t.Errorf("the docstring has no line that begins with %q", strings.TrimSpace(part))
				}
			}
			var names []string
			for _, p := range s.Params {
				names = append(names, p.Name)
				if p.Help == "" {
					t.Errorf("param %s has no help", p.Name)
				}
			}
			for _, want := range params {
				if !slices.Contains(names, want) {
					t.Errorf("there is no param %s", want)
				}
			}
			if n := bodyLines(t, name); n >= 30 {
				t.Errorf("the body has %d lines, want fewer than 30", n)
			}
		})
	}
}

// TestExample: the example in the documentation is the script itself.
func TestExample(t *testing.T) {
	page, err := os.ReadFile("../docs/add-an-algorithm.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := algorithms.FS.ReadFile("allgather_direct.star")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```python\n"+string(script)+"```\n") {
		t.Error("docs/add-an-algorithm.md doesn't show allgather_direct.star as it is")
	}
}

// bodyLines counts lines besides the docstring, parameters, comments and blanks.
func bodyLines(t *testing.T, name string) int {
	text, err := algorithms.FS.ReadFile(name + ".star")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	_, rest, _ := strings.Cut(string(text), `"""`)
	_, rest, _ = strings.Cut(rest, `"""`)
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && !strings.Contains(line, "param(") {
			n++
		}
	}
	return n
}
