package runtime

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
)

func TestCheckMemory(t *testing.T) {
	if err := CheckMemory(1, "a byte"); err != nil {
		t.Error(err)
	}
	err := CheckMemory(1<<60, "run: too much")
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != "memory" || !strings.HasPrefix(m.Text, "run: too much needs 1 EiB of memory, ") {
		t.Errorf("got %v", err)
	}
	if n := availableMemory(); n <= 0 || n == math.MaxInt64 {
		t.Skipf("this system doesn't tell its memory: %d", n)
	}
}

func TestReadNumbers(t *testing.T) {
	dir := t.TempDir()
	stat := write(t, filepath.Join(dir, "stat"), []byte("MemTotal: 9 kB\nMemAvailable:   123 kB\nodd\nbad x\n"))
	one := write(t, filepath.Join(dir, "one"), []byte("42\n"))
	unlimited := write(t, filepath.Join(dir, "max"), []byte("max\n"))
	for _, c := range []struct{ got, want int64 }{
		{readField(stat, "MemAvailable:"), 123}, {readField(stat, "bad"), -1}, {readField(stat, "none"), -1},
		{readField(dir+"/none", "x"), -1}, {readInt(one), 42}, {readInt(unlimited), -1}, {readInt(dir + "/none"), -1},
	} {
		if c.got != c.want {
			t.Errorf("got %d, want %d", c.got, c.want)
		}
	}
}
