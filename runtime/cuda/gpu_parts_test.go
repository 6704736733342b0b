package cuda_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// The tests of this and the other gpu_ files are for machines with GPUs: go test -c
// makes a binary of them that needs neither Go nor the source there, and
// scripts/gpu-test.sh runs it. On the host's build of the library they run a sample.
var (
	gpuPart    = flag.String("part", "", "gpu tests: I/N runs the I-th of N parts of the cases")
	gpuBudget  = flag.Duration("budget", 0, "gpu tests: start no more cases after this time")
	gpuState   = flag.String("state", "", "gpu tests: folder of files that name the cases that were right, which are left out")
	gpuDevices = flag.String("devices", "", "gpu tests: GPUs to use, such as 0 or 0,1; the first two if not said")
	gpuOnly    = flag.String("only", "", "gpu tests: only cases whose name has this in it")
	gpuSums    = flag.Bool("fp32sum", false, "gpu tests: only sums of fp32, for a library that has no more")
)

// onHost reports whether the library runs on threads of this CPU.
func onHost(lib *cuda.Library) bool { return lib.Build() == "host" }

// devices are the GPUs to use.
func devices(t testing.TB, lib *cuda.Library) []int32 {
	t.Helper()
	have, err := lib.Devices()
	if err != nil {
		t.Skip(err)
	}
	var out []int32
	for _, s := range strings.FieldsFunc(*gpuDevices, func(r rune) bool { return r == ',' }) {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 0 || int(n) >= len(have) {
			t.Fatalf("-devices %s: there are GPUs 0 to %d", *gpuDevices, len(have)-1)
		}
		out = append(out, int32(n))
	}
	if len(out) == 0 {
		for i := range min(len(have), 2) {
			out = append(out, int32(i))
		}
	}
	return out
}

// sets are the devices that a case runs on: the first alone, and all of them.
func sets(devices []int32) [][]int32 {
	if len(devices) < 2 {
		return [][]int32{devices}
	}
	return [][]int32{devices[:1], devices}
}

// parts runs cases one after another. Those that were right before, those of other
// parts and those beyond the time are left out.
type parts struct {
	t                       *testing.T
	name                    string
	begin                   time.Time
	index, of, seen         int
	done                    map[string]bool
	state                   *os.File
	right, earlier, remain  int
	wrong, refused, skipped int
	values                  int64 // elements compared
}

// maxWrong is how many wrong cases end a test.
const maxWrong = 20

// share divides the tests' time: a test that begins late has what is left.
var begun = time.Now()

func newParts(t *testing.T, name string) *parts {
	t.Helper()
	p := &parts{t: t, name: name, begin: time.Now(), index: 1, of: 1, done: map[string]bool{}}
	if *gpuPart != "" {
		i, n, ok := strings.Cut(*gpuPart, "/")
		var err, err2 error
		p.index, err = strconv.Atoi(i)
		p.of, err2 = strconv.Atoi(n)
		if !ok || err != nil || err2 != nil || p.index < 1 || p.index > p.of {
			t.Fatalf("-part %s: want I/N, I from 1 to N", *gpuPart)
		}
	}
	if *gpuState != "" {
		p.open()
	}
	t.Cleanup(p.finish)
	return p
}

// open reads the names of the cases that were right and readies the file for more.
func (p *parts) open() {
	p.t.Helper()
	if err := os.MkdirAll(*gpuState, 0o755); err != nil {
		p.t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(*gpuState, p.name+".done"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		p.t.Fatal(err)
	}
	p.state = f
	for s := bufio.NewScanner(f); s.Scan(); {
		p.done[s.Text()] = true
	}
}

// errRefused is a case that has no program, as it should be.
var errRefused = errors.New("refused")

// do runs a case unless it is left out. It returns how many elements were compared.
func (p *parts) do(id string, run func() (int64, error)) {
	p.t.Helper()
	p.seen++
	switch {
	case p.seen%p.of != p.index%p.of || !strings.Contains(id, *gpuOnly):
		p.skipped++
		return
	case p.done[id]:
		p.earlier++
		return
	case *gpuBudget > 0 && time.Since(begun) > *gpuBudget:
		p.remain++
		return
	}
	n, err := run()
	p.values += n
	switch {
	case errors.Is(err, errRefused) || tooMany(err):
		p.refused++
		return
	case err != nil:
		p.wrong++
		p.t.Errorf("%s: %v", id, err)
		if p.wrong >= maxWrong || beyondUse(err) {
			p.t.FailNow()
		}
		return
	}
	p.right++
	if p.state != nil {
		if _, err := fmt.Fprintln(p.state, id); err != nil {
			p.t.Fatal(err)
		}
	}
}

// tooMany reports whether a program's thread blocks don't fit the devices.
func tooMany(err error) bool {
	return slices.ContainsFunc(diag.Messages(err), func(m *diag.Message) bool {
		return m.Code == "machine" && strings.Contains(m.Text, "at once, but")
	})
}

// beyondUse reports whether nothing can run on the devices any more.
func beyondUse(err error) bool {
	return slices.ContainsFunc(diag.Messages(err), func(m *diag.Message) bool {
		return m.Code == "machine" && strings.Contains(m.Text, "an illegal")
	})
}

// finish says in one line what became of the cases.
func (p *parts) finish() {
	if p.state != nil {
		if err := p.state.Close(); err != nil {
			p.t.Error(err)
		}
	}
	fmt.Printf("gpu-test: %s: %d right, %d wrong, %d refused, %d right earlier, %d remain; %d values compared, %.1f s\n",
		p.name, p.right, p.wrong, p.refused, p.earlier, p.remain, p.values, time.Since(p.begin).Seconds())
}

// TestParts runs made-up cases: parts share them, a state keeps those that were right
// from running again, and nothing begins when the time is over.
func TestParts(t *testing.T) {
	set := func(f any, value string) {
		switch f := f.(type) {
		case *string:
			old := *f
			*f = value
			t.Cleanup(func() { *f = old })
		case *time.Duration:
			old := *f
			*f, _ = time.ParseDuration(value)
			t.Cleanup(func() { *f = old })
		}
	}
	run := func(cases int) string {
		ran := ""
		t.Run("cases", func(t *testing.T) {
			p := newParts(t, "made-up")
			for i := range cases {
				p.do(fmt.Sprint("case ", i), func() (int64, error) {
					ran += fmt.Sprint(i)
					if i == 3 {
						return 0, errRefused
					}
					return 1, nil
				})
			}
		})
		return ran
	}
	set(gpuPart, "")
	set(gpuState, "")
	set(gpuOnly, "")
	set(gpuBudget, "0s")
	if got := run(6); got != "012345" {
		t.Errorf("all: %s ran", got)
	}
	set(gpuPart, "1/2")
	first := run(6)
	set(gpuPart, "2/2")
	if second := run(6); first != "024" || second != "135" {
		t.Errorf("parts: %s and %s ran", first, second)
	}
	set(gpuState, t.TempDir())
	set(gpuPart, "1/2")
	first = run(4)
	set(gpuPart, "")
	if rest := run(6); first != "02" || rest != "1345" {
		t.Errorf("with a state: %s and then %s ran", first, rest)
	}
	set(gpuBudget, "1ns")
	if got := run(8); got != "" {
		t.Errorf("after the time: %s ran", got)
	}
}
