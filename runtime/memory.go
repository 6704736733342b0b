package runtime

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// CheckMemory refuses (code "memory") what needs more bytes than the machine has
// available, so that it ends with these numbers and not with a killed process.
// Where the system doesn't tell, nothing is refused.
func CheckMemory(need int64, doing string) error {
	have := availableMemory()
	if need <= have {
		return nil
	}
	return diag.Errorf(diag.Pos{}, "memory", "%s needs %s of memory, %s are available",
		doing, FormatBytes(need), FormatBytes(have))
}

// availableMemory is what the kernel thinks can be allocated without swapping, or
// what the control group still allows if that is less; MaxInt64 if unknown.
func availableMemory() int64 {
	have := int64(math.MaxInt64)
	if kib := readField("/proc/meminfo", "MemAvailable:"); kib >= 0 {
		have = kib << 10
	}
	limit, used := readInt("/sys/fs/cgroup/memory.max"), readInt("/sys/fs/cgroup/memory.current")
	if limit >= 0 && used >= 0 {
		// The group's page cache counts as used but is given up when needed.
		cache := max(readField("/sys/fs/cgroup/memory.stat", "inactive_file"), 0)
		have = min(have, max(limit-used+cache, 0))
	}
	return have
}

// readField is the number after name in a file of lines "name number ...", or -1.
func readField(file, name string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return -1
	}
	s := bufio.NewScanner(bytes.NewReader(b))
	for s.Scan() {
		if f := strings.Fields(s.Text()); len(f) >= 2 && f[0] == name {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// readInt is the number that a file holds, or -1.
func readInt(name string) int64 {
	b, err := os.ReadFile(name)
	if err != nil {
		return -1
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// FormatBytes renders a size with a binary unit, exactly where it is a whole
// number of them and else with one digit after the point.
func FormatBytes(n int64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	u, v := 0, float64(n)
	for v >= 1024 && u < len(units)-1 {
		v /= 1024
		u++
	}
	if v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64) + " " + units[u]
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + units[u]
}

// ExactBytes renders a size that must not be rounded, in the largest unit that divides it.
func ExactBytes(n int64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	u := 0
	for n != 0 && n%1024 == 0 && u < len(units)-1 {
		n /= 1024
		u++
	}
	return strconv.FormatInt(n, 10) + " " + units[u]
}
