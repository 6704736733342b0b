package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/starlib"
)

// canceler cancels when something is written to it that holds a word.
type canceler struct {
	mu     sync.Mutex
	text   bytes.Buffer
	word   string
	cancel context.CancelFunc
}

func (c *canceler) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(p)
	if strings.Contains(c.text.String(), c.word) {
		c.cancel()
	}
	return len(p), nil
}

func writeScript(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.star")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

const passScript = `
with MSCCLProgram("pass", fully_connected(2), AllGather(2, 1, False)):
    for r in range(2):
        for to in range(2):
            chunk(r, "input", 0).copy(to, "output", r)
`

// Ctrl-C while a script runs says what was interrupted and leaves nothing on
// standard output.
func TestInterruptedScript(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out bytes.Buffer
	said := &canceler{word: "started", cancel: cancel}
	file := writeScript(t, "print(\"started\")\nn = 0\nwhile True:\n    n += 1\n")
	s := NewSession(&out, said)
	err := s.Exec(ctx, []string{file})
	if code := exitCode(err); code != exitInterrupted {
		t.Errorf("exit code: got %d, want %d", code, exitInterrupted)
	}
	if want := "interrupted while running " + file + "\n"; !strings.HasSuffix(said.text.String(), want) {
		t.Errorf("got %q, want it to end in %q", said.text.String(), want)
	}
	if out.Len() > 0 {
		t.Errorf("standard output: got %q, want nothing", out.String())
	}
}

// Ctrl-C during a run ends it, however many iterations were asked for.
func TestInterruptedRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	var said bytes.Buffer
	s := NewSession(io.Discard, &said)
	err := s.Exec(ctx, []string{"--iterations", "2000000000", "--size", "64KiB", writeScript(t, passScript)})
	if code := exitCode(err); code != exitInterrupted {
		t.Errorf("exit code: got %d, want %d; said %q", code, exitInterrupted, said.String())
	}
	if !strings.Contains(said.String(), "interrupt") {
		t.Errorf("got %q, want a word about the interruption", said.String())
	}
}

// A panic is told as a defect that names what was being done, with its place in
// the source, and has an exit code of its own.
func TestPanicBecomesInternalError(t *testing.T) {
	s := NewSession(io.Discard, io.Discard)
	s.begin("compiling ring")
	err := s.guard(func() error {
		return []error{}[len(s.phase)]
	})
	if code := exitCode(err); code != exitMachine {
		t.Errorf("exit code: got %d, want %d", code, exitMachine)
	}
	for _, want := range []string{"internal error while compiling ring: runtime error: index out of range [14] with length 0",
		"session_test.go:", "please report it"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want it to hold %q", err, want)
		}
	}
}

// A writer that fails leaves the old file as it was and nothing beside it.
func TestWriteFileIsWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out.xml")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := writeFile(file, func(w io.Writer) error {
		_, _ = io.WriteString(w, strings.Repeat("half", 1<<20))
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "old" || len(entries) != 1 {
		t.Errorf("got %q (%v) among %d files, want the old file alone", text, err, len(entries))
	}
}

// A link is written through, not replaced.
func TestWriteFileFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if err := writeFile(link, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(target); string(text) != "new" {
		t.Errorf("target holds %q, want %q", text, "new")
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
}

// What blocks for ever, as opening a pipe does that nobody writes to, ends with Ctrl-C.
func TestInterruptible(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	release := make(chan struct{})
	defer close(release)
	time.AfterFunc(time.Millisecond, cancel)
	err := interruptible(ctx, func() error {
		<-release
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	broken := errors.New("broken")
	if err := interruptible(context.Background(), func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// A defect while one of many files is judged ends the call as a defect.
func TestTableOfDefects(t *testing.T) {
	s := NewSession(io.Discard, io.Discard)
	s.Set = nil // using it panics, as a defect would
	row := s.judgeFile(context.Background(), checkedFile{"x.xml", "x.xml"})
	if code := exitCode(row.fault); code != exitMachine {
		t.Errorf("exit code: got %d, want %d; %+v", code, exitMachine, row)
	}
}

// lockedBuffer can be read while a progress line is drawn.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// The progress line appears for what takes long and is gone afterwards.
func TestProgressLine(t *testing.T) {
	var w lockedBuffer
	p := startProgress(&w, 0, time.Millisecond)
	p.begin("compiling ring")
	for !strings.Contains(w.String(), "compiling ring") {
		time.Sleep(time.Millisecond)
	}
	p.at("run 1/2 ")
	for !strings.Contains(w.String(), "compiling ring run 1/2 ") {
		time.Sleep(time.Millisecond)
	}
	p.end()
	if got := w.String(); !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("got %q, want the line taken away at the end", got)
	}
}

func TestProgressIsSilentWhenQuick(t *testing.T) {
	var w lockedBuffer
	p := startProgress(&w, time.Hour, time.Millisecond)
	p.begin("compiling ring")
	time.Sleep(5 * time.Millisecond)
	p.end()
	if got := w.String(); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	if newProgress(&w) != nil {
		t.Error("a buffer is no terminal")
	}
}

// A script that ends with Check() compiles once: its verdict is taken over, but
// not if something was traced after it.
func TestCheckIsRecalled(t *testing.T) {
	count := func(script string) int {
		var said bytes.Buffer
		s := NewSession(io.Discard, &said)
		if err := s.Exec(context.Background(), []string{"--time-passes", "--size", "1KiB", writeScript(t, script)}); exitCode(err) > exitWrong {
			t.Fatal(err)
		}
		return strings.Count(said.String(), "all passes")
	}
	if n := count(passScript + "    Check()\n"); n != 1 {
		t.Errorf("compiled %d times, want 1", n)
	}
	early := strings.Replace(passScript, "    for r", "    Check()\n    for r", 1)
	if n := count(early); n != 2 {
		t.Errorf("compiled %d times, want 2", n)
	}
}

// What a script asks before its flags are known is answered with the tool's flags
// that none of its parameters hides.
func TestHostSettings(t *testing.T) {
	s := NewSession(io.Discard, io.Discard)
	source := []byte("slots = param(\"slots\", 3)\nother = param(name = 'size', default = 1)\n")
	args, err := splitScriptArgs([]string{"--slots", "5", "--size", "9", "--target", "plain", "--tool.iterations", "4"}, flagTable())
	if err != nil {
		t.Fatal(err)
	}
	set := s.hostSettings(source, args)
	if set.Slots != 0 || set.Size != -1 || set.Target.String() != "plain" || set.Iterations != 4 {
		t.Errorf("got %+v, want slots and size left alone, target plain, 4 iterations", set)
	}
	if s.Set.Iterations != 1 {
		t.Error("the session's own settings changed")
	}
}

func TestRunOptionsStandInForFlags(t *testing.T) {
	set := newSettings()
	if err := applyRunOptions(set, starlib.RunOptions{Size: "2KiB", DType: "half", Op: "max", Iterations: 3}); err != nil {
		t.Fatal(err)
	}
	if set.Size != 2048 || set.DType.String() != "fp16" || set.Op.String() != "max" || set.Iterations != 3 {
		t.Errorf("got %+v", set)
	}
	if err := applyRunOptions(set, starlib.RunOptions{Size: "many"}); err == nil {
		t.Error("a wrong size was taken")
	}
}
