package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a file refuses in the middle of a write is an error of the machine under the name that
// the caller knows, however much was written before; what the writer itself says stays.
func TestFill(t *testing.T) {
	name := filepath.Join(t.TempDir(), "of-its-own")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2 << 20} { // less and more than a buffer holds
		f, err := os.Open(name) // for reading: no byte can be written
		if err != nil {
			t.Fatal(err)
		}
		err = fill(f, "out.mscclsh", func(w io.Writer) error {
			_, err := w.Write(make([]byte, n))
			return err
		})
		if err == nil || exitCode(err) != exitMachine || !strings.HasPrefix(err.Error(), "writing out.mscclsh: ") || strings.Contains(err.Error(), "of-its-own") {
			t.Errorf("%d bytes: got %v, exit code %d", n, err, exitCode(err))
		}
		own := errors.New("nothing to say")
		if err := fill(f, "out.mscclsh", func(io.Writer) error { return own }); err != own {
			t.Errorf("got %v, want the writer's own error", err)
		}
		_ = f.Close()
	}
}

// Files that belong together keep their modes and links, and none is written if one can't be.
func TestWriteTogether(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("a"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", path("link")); err != nil {
		t.Fatal(err)
	}
	if err := writeTogether([]namedText{{path("link"), []byte("new")}, {path("b"), []byte("beside")}}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path("a"))
	info, statErr := os.Stat(path("a"))
	if err != nil || statErr != nil || string(data) != "new" || info.Mode().Perm() != 0o600 {
		t.Errorf("a: %q, %v, %v", data, info, errors.Join(err, statErr))
	}
	if to, err := os.Readlink(path("link")); err != nil || to != "a" {
		t.Errorf("the link: %q, %v", to, err)
	}
	long := path(strings.Repeat("x", 250)) // with what is put around it while it is written, too long
	err = writeTogether([]namedText{{path("c"), nil}, {long, nil}})
	if err == nil || !strings.HasPrefix(err.Error(), "writing "+long+": ") || strings.Contains(err.Error(), ".tmp") {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Errorf("left: %v, %v", left, err)
	}
}
