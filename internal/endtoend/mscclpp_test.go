package endtoend

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
	"github.com/mscclsh/mscclsh/starlib"
	"github.com/mscclsh/mscclsh/starlib/pyfront"
)

// Where MSCCL++'s own scripts lie in a checkout of microsoft/mscclpp.
const (
	languageTests = "python/mscclpp/language/tests"
	executorTests = "test/executor-tests/algos"
	defaultAlgos  = "python/mscclpp/default_algos"
)

// checkout is a checkout of microsoft/mscclpp, which MSCCLSH_MSCCLPP names: its
// scripts are not this project's to hand on. Without one the test is skipped.
func checkout(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("MSCCLSH_MSCCLPP")
	if dir == "" {
		t.Skip("no scripts of MSCCL++: set MSCCLSH_MSCCLPP to a checkout of microsoft/mscclpp")
	}
	if _, err := os.Stat(filepath.Join(dir, languageTests)); err != nil {
		t.Fatalf("MSCCLSH_MSCCLPP: %v", err)
	}
	return dir
}

// traceScript runs a script of MSCCL++'s with its own arguments. It has to end
// with one program, which it asks to see.
func traceScript(dir, script string, args []string) (*ir.OneTrace, error) {
	got, err := pyfront.Load(context.Background(), pyfront.Options{Argv: args,
		Options: starlib.Options{File: filepath.Join(dir, script)}})
	if err != nil {
		return nil, err
	}
	if n := len(got.Programs); n != 1 || got.Programs[0].One == nil || !got.Programs[0].WantPlan {
		return nil, fmt.Errorf("got %d programs, want one whose plan is printed", n)
	}
	return got.Programs[0].One, nil
}

func compileScript(dir, script string, args []string, target ir.Target) (*ir.Program, error) {
	t, err := traceScript(dir, script, args)
	if err != nil {
		return nil, err
	}
	return compiler.CompileOneSided(context.Background(), t, compiler.Options{Target: target})
}

// job is one call of a script.
type job struct {
	script string
	args   []string
}

func (j job) String() string { return j.script + " " + strings.Join(j.args, " ") }

// sizedArgs are the calls of a script that asks for sizes, by what it asks for.
var sizedArgs = []struct {
	asks []string
	args []string
}{
	{[]string{"--nnodes"}, []string{"--nnodes 1 --gpus_per_node 4", "--nnodes 2 --gpus_per_node 8", "--nnodes 2 --gpus_per_node 4 --split_mask 0x1"}},
	{[]string{"--tbg_size"}, []string{"--num_gpus 4 --gpus_per_node 2 --tbg_size 2", "--num_gpus 8 --gpus_per_node 4 --tbg_size 1"}},
	{[]string{"--tbg"}, []string{"--num_gpus 4 --gpus_per_node 2", "--num_gpus 8 --gpus_per_node 4 --tbg 2", "--num_gpus 16 --gpus_per_node 8 --tbg 4"}},
	{[]string{"--num_gpus", "--gpus_per_node"}, []string{"--num_gpus 4 --gpus_per_node 2", "--num_gpus 8 --gpus_per_node 4 --in_place", "--num_gpus 16 --gpus_per_node 4"}},
	{[]string{"--gpus_per_node"}, []string{"--gpus_per_node 2", "--gpus_per_node 4"}},
	{[]string{"--num_gpus"}, []string{"--num_gpus 2", "--num_gpus 4", "--num_gpus 8", "--num_gpus 16"}},
}

// jobs are calls of all scripts with a command line of their own, in every shape
// of the sizes they ask for.
func jobs(t testing.TB, dir string) []job {
	t.Helper()
	var list []job
	for _, root := range []string{languageTests, executorTests, defaultAlgos} {
		err := filepath.WalkDir(filepath.Join(dir, root), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".py" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), "parse_args") {
				return err
			}
			rel, err := filepath.Rel(dir, path)
			list = append(list, calls(filepath.ToSlash(rel), string(text))...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func calls(script, text string) []job {
	asks := func(flag string) bool { return strings.Contains(text, `"`+flag+`"`) }
	var named []string
	if asks("--name") {
		named = []string{"--name", strings.TrimSuffix(filepath.Base(script), ".py")}
	}
	for _, s := range sizedArgs {
		if !slices.ContainsFunc(s.asks, func(f string) bool { return !asks(f) }) {
			var list []job
			for _, a := range s.args {
				list = append(list, job{script, slices.Concat(named, strings.Fields(a))})
			}
			return list
		}
	}
	return []job{{script, named}}
}

// broken are the scripts that don't work at MSCCL++'s either, and why. The last
// gets a plan there that its executor refuses.
var broken = map[string]string{
	languageTests + "/single_node/allgather_ring.py":               "undefined: MSCCLPPProgram",
	languageTests + "/single_node/alltoall/alltoall_pkt.py":        "MemoryChannel has no .put_packet field or method",
	languageTests + "/unit_tests/put/put_with_signal_fuse_test.py": "rank 0 signals rank 1 3 times on a port channel, which waits twice",
	languageTests + "/unit_tests/switch_reduce_test.py":            "no executor loads a sum without storing it",
}

// Every script in MSCCL++'s tree that works there compiles here, with the same
// arguments; the others are refused where they are wrong.
func TestScriptsOfMSCCLPP(t *testing.T) {
	dir := checkout(t)
	ok := map[string]bool{}
	for _, j := range jobs(t, dir) {
		p, err := compileScript(dir, j.script, j.args, 0)
		why, bad := broken[j.script]
		switch {
		case err == nil && bad:
			t.Errorf("%s: compiles, but MSCCL++ refuses it: %s", j, why)
		case err != nil && !bad, err != nil && !strings.Contains(err.Error(), why):
			t.Errorf("%s: %v", j, err)
		case err == nil:
			ok[j.script] = true
			comesBack(t, j, p)
		}
	}
	t.Logf("%d scripts compile, %d are refused", len(ok), len(broken))
}

// comesBack writes a program as a plan and reads it again: it is the same program,
// or refused for a limit of the executor's.
func comesBack(t *testing.T, j job, p *ir.Program) {
	t.Helper()
	var b bytes.Buffer
	if _, err := plan.WriteAsWritten(&b, p); err != nil {
		if code := diag.Messages(err)[0].Code; code != "plan-limit" {
			t.Errorf("%s: writing the plan: %v", j, err)
		}
		return
	}
	back, err := plan.Read(&b, plan.Options{File: j.script})
	if err != nil {
		t.Errorf("%s: reading its plan: %v", j, err)
		return
	}
	if d := differences(list(p), list(back.Program)); d != nil {
		t.Errorf("%s: its plan says something else:\n%s", j, strings.Join(d, "\n"))
	}
}

// TestJobsOfMSCCLPP writes the calls for scripts/mscclpp-plans.sh, one a line.
func TestJobsOfMSCCLPP(t *testing.T) {
	file := os.Getenv("MSCCLSH_MSCCLPP_JOBS")
	if file == "" {
		t.Skip("MSCCLSH_MSCCLPP_JOBS names no file")
	}
	var b strings.Builder
	for _, j := range jobs(t, checkout(t)) {
		fmt.Fprintln(&b, j)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
