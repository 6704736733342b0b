package jupyter

import (
	"encoding/json"
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

func TestDataDir(t *testing.T) {
	for _, c := range []struct{ goos, name, value, want string }{
		{"linux", "", "", "/home/u/.local/share/jupyter"},
		{"linux", "XDG_DATA_HOME", "/data", "/data/jupyter"},
		{"linux", "JUPYTER_DATA_DIR", "/j", "/j"},
		{"darwin", "", "", "/home/u/Library/Jupyter"},
		{"darwin", "XDG_DATA_HOME", "/data", "/home/u/Library/Jupyter"},
		{"darwin", "JUPYTER_DATA_DIR", "/j", "/j"},
		{"windows", "APPDATA", "/app", "/app/jupyter"},
	} {
		env := func(name string) string {
			if name == c.name {
				return c.value
			}
			return ""
		}
		if got := DataDir(c.goos, "/home/u", env); got != filepath.FromSlash(c.want) {
			t.Errorf("%s, %s=%s: got %s, want %s", c.goos, c.name, c.value, got, c.want)
		}
	}
}

func TestSpecDir(t *testing.T) {
	if got, err := SpecDir("/d", "a-b.1_c"); err != nil || got != filepath.FromSlash("/d/kernels/a-b.1_c") {
		t.Errorf("got %s, %v", got, err)
	}
	for _, name := range []string{"", "..", ".", "a/b", "A", "é", "a b"} {
		if got, err := SpecDir("/d", name); err == nil {
			t.Errorf("%q: got %s, want an error", name, got)
		}
	}
}

// names lists a folder and those in it.
func names(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		found[rel] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestInstall(t *testing.T) {
	data := t.TempDir()
	dir, err := SpecDir(data, "k")
	if err != nil {
		t.Fatal(err)
	}
	for _, display := range []string{"first", "second"} {
		if err := Install(dir, NewSpec(display, "lang", "us", "/bin/x", "run", "{connection_file}")); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "kernel.json"))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got["display_name"] != display || got["language"] != "lang" || got["interrupt_mode"] != "message" || got["argv"].([]any)[2] != "{connection_file}" {
			t.Errorf("got %s", text)
		}
	}
	found := names(t, data)
	for _, want := range []string{"kernels/k/kernel.json", "kernels/k/logo-32x32.png", "kernels/k/logo-64x64.png", "kernels/k/logo-svg.svg"} {
		if !found[want] {
			t.Errorf("%s is not there", want)
		}
	}
	if len(found) != 7 { // with the three folders
		t.Errorf("something is left over: %v", found)
	}
	if mode := must(os.Stat(dir)).Mode().Perm(); mode != 0o755 {
		t.Errorf("the folder's mode is %o", mode)
	}
	if err := Uninstall(dir, "others"); !errors.Is(err, ErrOther) {
		t.Errorf("removing by others: got %v", err)
	}
	if err := Install(dir, NewSpec("third", "lang", "others")); !errors.Is(err, ErrOther) {
		t.Errorf("replacing by others: got %v", err)
	}
	if err := Uninstall(dir, "us"); err != nil {
		t.Error(err)
	}
	if err := Uninstall(dir, "us"); !errors.Is(err, ErrNoKernel) {
		t.Errorf("removing twice: got %v", err)
	}
	if found := names(t, data); len(found) != 2 {
		t.Errorf("something is left over: %v", found)
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// A kernel that somebody else installed by hand says of no writer.
func TestInstallOverOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kernels", "k")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kernel.json"), []byte(`{"argv": ["x"]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Install(dir, NewSpec("k", "lang", "us")); !errors.Is(err, ErrOther) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "kernel.json")); err != nil || string(text) != `{"argv": ["x"]}` {
		t.Errorf("it was changed: %s, %v", text, err)
	}
}

// The logos have the sizes that their names say.
func TestLogos(t *testing.T) {
	for name, want := range map[string]int{"logo/logo-32x32.png": 32, "logo/logo-64x64.png": 64} {
		f, err := logos.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := png.DecodeConfig(f)
		if err != nil || c.Width != want || c.Height != want {
			t.Errorf("%s: got %d x %d, %v", name, c.Width, c.Height, err)
		}
	}
}
