// Command benchcmd measures the mscclsh command as a user would run it: CPU
// seconds and peak memory of the whole process, from script to written XML with
// the check included. docs/benchmarks.md says what the figures mean.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// bench is one program, what it may cost, and what the original compiler was
// measured to take for the same program ("-" where it can't).
type bench struct {
	name      string
	args      []string // script and parameters
	maxUser   float64  // seconds
	maxMB     float64
	peerUser  string // seconds, msccl-tools
	peerMB    string
	peerUser2 string // Azure's fork of it
	peerMB2   string
}

var benches = []bench{
	{"ring, 128 ranks x 8 instances", []string{"@algorithms/allreduce_ring.star", "--ranks", "128", "--instances", "8"},
		0.9, 500, "45.4", "1154", "-", "-"},
	{"all-pairs, 64 ranks", []string{"@algorithms/allreduce_allpairs.star", "--ranks", "64"},
		1.3, 500, "-", "-", "66.1", "3706"},
	{"two-step, 64 nodes x 8 GPUs", []string{"@algorithms/alltoall_two_step.star", "--nodes", "64", "--gpus", "8"},
		1.2, 500, "62.2", "4067", "-", "-"},
	{"hierarchical manual, 16 nodes x 8 GPUs", []string{"@algorithms/allreduce_hierarchical.star", "--nodes", "16", "--gpus", "8",
		"--schedule", "manual"}, 0.25, 500, "12.4", "276", "crashes", "crashes"},
	{"ring, 1,024 ranks", []string{"@algorithms/allreduce_ring.star", "--ranks", "1024"},
		15, 4096, "-", "-", "-", "-"},
}

func main() {
	runs := flag.Int("runs", 3, "runs of each program; the median counts")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: benchcmd [-runs N] MSCCLSH")
		os.Exit(2)
	}
	if err := all(flag.Arg(0), max(1, *runs)); err != nil {
		fmt.Fprintln(os.Stderr, "benchcmd:", err)
		os.Exit(1)
	}
}

func all(command string, runs int) error {
	dir, err := os.MkdirTemp("", "mscclsh-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for the outputs: %w", err)
	}
	defer os.RemoveAll(dir)
	fmt.Println("| program | user s (goal) | wall s | peak MB (goal) | XML MB | msccl-tools user s / MB | Azure/msccl-tools user s / MB |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, b := range benches {
		m, err := measure(command, filepath.Join(dir, "out.xml"), b.args, runs)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		fmt.Printf("| %s | %.2f (%s) | %.2f | %.0f (%.0f) | %.1f | %s / %s | %s / %s |\n", b.name, m.user.Seconds(),
			strconv.FormatFloat(b.maxUser, 'f', -1, 64), m.wall.Seconds(), m.peakMB, b.maxMB, m.fileMB,
			b.peerUser, b.peerMB, b.peerUser2, b.peerMB2)
	}
	return nil
}

type figures struct {
	user, wall     time.Duration
	peakMB, fileMB float64 // 10^6 bytes
}

// measure runs the command several times and returns the run with the median of
// user time.
func measure(command, out string, args []string, runs int) (figures, error) {
	var all []figures
	for range runs {
		m, err := once(command, out, args)
		if err != nil {
			return m, err
		}
		all = append(all, m)
		for i := len(all) - 1; i > 0 && all[i].user < all[i-1].user; i-- {
			all[i], all[i-1] = all[i-1], all[i]
		}
	}
	return all[len(all)/2], nil
}

func once(command, out string, args []string) (figures, error) {
	args = append([]string{"--emit", "xml", "--target", "plain", "--quiet", "-o", out}, args...)
	cmd := exec.Command(command, args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	start := time.Now()
	err := cmd.Run()
	m := figures{wall: time.Since(start)}
	if err != nil {
		return m, fmt.Errorf("%s %s: %w\n%s", command, strings.Join(args, " "), err, said.String())
	}
	m.user = cmd.ProcessState.UserTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.peakMB = float64(usage.Maxrss) * 1024 / 1e6 // Linux counts in KiB
	}
	info, err := os.Stat(out)
	if err != nil {
		return m, fmt.Errorf("looking at what was written: %w", err)
	}
	m.fileMB = float64(info.Size()) / 1e6
	return m, nil
}
