package cuda_test

import (
	"os"
	"os/exec"
	"testing"
)

// TestProcesses runs the library's test with several processes: programs over memory
// that the processes share, and what becomes of the others when one is killed.
func TestProcesses(t *testing.T) {
	const path = "lib/build/processes"
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there: make cuda-host builds it", path)
	}
	out, err := exec.CommandContext(t.Context(), path, "--rounds", "10").CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", path, err, out)
	}
}
