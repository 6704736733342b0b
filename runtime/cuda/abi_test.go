package cuda

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// The version that this package wants is the one that the header defines, so that a library
// built from the tree beside it can be opened.
func TestVersionOfHeader(t *testing.T) {
	header, err := os.ReadFile("lib/include/mscclsh_cuda.h")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^#define MSCCLSH_ABI (\d+)$`).FindSubmatch(header)
	if m == nil || string(m[1]) != strconv.Itoa(abiVersion) {
		t.Errorf("the header defines %q, this package wants %d", m, abiVersion)
	}
}
