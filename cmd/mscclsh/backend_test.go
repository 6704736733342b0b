package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestCUDA runs transcripts of the GPU backend through the library's build for the
// host, which has the same interface and the same kernel.
func TestCUDA(t *testing.T) {
	lib, err := filepath.Abs("../../runtime/cuda/lib/build/libmscclsh_cuda_host.so")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lib); err != nil {
		t.Skipf("%s is not there: make cuda-host builds it", lib)
	}
	composition, err := filepath.Abs("../../benchmarks/composition")
	if err != nil {
		t.Fatal(err)
	}
	// What transcripts run outside of this package: go test keeps no result once they change.
	for _, name := range []string{"benchmarks/one_host.sh", "benchmarks/composition.sh", "benchmarks/composition/allpairs.star",
		"benchmarks/composition/hierarchical.star", "scripts/gpu-tables.sh"} {
		if _, err := os.Stat("../../" + name); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/cuda",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("MSCCLSH_CUDA_LIB", lib)
			env.Setenv("COMPOSITION", composition)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "jsonpath": jsonPath},
	})
}

// A number of threads that the GPU itself refuses is the flag's fault.
func TestRefusedThreads(t *testing.T) {
	err := cudaError(diag.Errorf(diag.Pos{}, "threads", "run: 33 threads a block: want a multiple of 32 up to 512"))
	want := "--threads: 33 threads a block: want a multiple of 32 up to 512"
	if exitCode(err) != exitCall || diag.Messages(err)[0].Text != want {
		t.Errorf("exit code %d: %v, want %d: %s", exitCode(err), err, exitCall, want)
	}
}
