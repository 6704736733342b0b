package jupyter

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// Spec is what a kernel's folder says of it.
type Spec struct {
	Argv          []string          `json:"argv"`
	DisplayName   string            `json:"display_name"`
	Language      string            `json:"language"`
	InterruptMode string            `json:"interrupt_mode"`
	Metadata      map[string]string `json:"metadata"`
}

// owner is the key of a spec's metadata that names who wrote it.
const owner = "written_by"

// NewSpec describes a kernel that a command starts; the connection file is put in
// the place of {connection_file}.
func NewSpec(display, language, writer string, argv ...string) Spec {
	return Spec{Argv: argv, DisplayName: display, Language: language, InterruptMode: "message", Metadata: map[string]string{owner: writer}}
}

// Errors of installing and removing.
var (
	ErrOther    = errors.New("another kernel has this name")
	ErrNoKernel = errors.New("there is no such kernel")
)

//go:embed logo
var logos embed.FS

var specName = regexp.MustCompile(`^[a-z0-9._-]+$`)

// SpecDir is the folder of a kernel within a data folder of Jupyter.
func SpecDir(data, name string) (string, error) {
	if !specName.MatchString(name) || name == "." || name == ".." {
		return "", fmt.Errorf("got the name %q, want lower-case letters, digits, dots, dashes and underscores", name)
	}
	return filepath.Join(data, "kernels", name), nil
}

// DataDir is where Jupyter looks for a user's kernels. home is the user's folder.
func DataDir(goos, home string, env func(string) string) string {
	if dir := env("JUPYTER_DATA_DIR"); dir != "" {
		return dir
	}
	switch goos {
	case "darwin":
		return filepath.Join(home, "Library", "Jupyter")
	case "windows":
		if dir := env("APPDATA"); dir != "" {
			return filepath.Join(dir, "jupyter")
		}
	default:
		if dir := env("XDG_DATA_HOME"); dir != "" {
			return filepath.Join(dir, "jupyter")
		}
	}
	return filepath.Join(home, ".local", "share", "jupyter")
}

// Install makes the folder of a kernel, in the place of one that the same writer
// made before. It appears whole: it is written beside the kernels and renamed.
func Install(dir string, spec Spec) (err error) {
	if _, err := os.Stat(dir); err == nil && readOwner(dir) != spec.Metadata[owner] {
		return fmt.Errorf("%s: %w", dir, ErrOther)
	}
	kernels := filepath.Dir(dir)
	if err := os.MkdirAll(kernels, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(kernels), ".kernel-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	made, old := filepath.Join(tmp, "new"), filepath.Join(tmp, "old")
	if err := writeSpec(made, spec); err != nil {
		return err
	}
	replacing := true
	if err := os.Rename(dir, old); errors.Is(err, fs.ErrNotExist) {
		replacing = false
	} else if err != nil {
		return err
	}
	if err := os.Rename(made, dir); err != nil {
		if replacing {
			err = errors.Join(err, os.Rename(old, dir))
		}
		return err
	}
	return nil
}

// writeSpec fills a new folder.
func writeSpec(dir string, spec Spec) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "kernel.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	list, err := logos.ReadDir("logo")
	if err != nil {
		return err
	}
	for _, e := range list {
		data, err := logos.ReadFile("logo/" + e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Uninstall removes the folder of a kernel that the writer made.
func Uninstall(dir, writer string) (err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", dir, ErrNoKernel)
	}
	if readOwner(dir) != writer {
		return fmt.Errorf("%s: %w", dir, ErrOther)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(filepath.Dir(dir)), ".kernel-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	return os.Rename(dir, filepath.Join(tmp, "old"))
}

// readOwner is who wrote a kernel's folder, "" if it doesn't say.
func readOwner(dir string) string {
	var spec Spec
	text, err := os.ReadFile(filepath.Join(dir, "kernel.json"))
	if err != nil || json.Unmarshal(text, &spec) != nil {
		return ""
	}
	return spec.Metadata[owner]
}
