package cuda

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"

	"github.com/ebitengine/purego"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// dynamic is a loaded library. Libraries stay loaded until the process ends: the
// driver's threads may still be in them.
type dynamic struct {
	path   string
	handle uintptr
}

// load tries the paths in turn. A path without a slash is looked up as the
// system's loader does. Where several fail, the one error that isn't just absence
// is told: a library that lacks another one, say.
func load(paths []string) (dynamic, error) {
	// C keeps the sentence about a failure with the thread.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	var failed []string
	for _, path := range paths {
		h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return dynamic{path, h}, nil
		}
		// A library that is there but lacks another one is told by the other's name.
		if text := err.Error(); !strings.Contains(text, "No such file or directory") || !strings.HasPrefix(text, path) {
			failed = append(failed, text)
		}
	}
	if len(failed) > 0 {
		return dynamic{}, errors.New(failed[0])
	}
	return dynamic{}, fmt.Errorf("not found (looked for %s)", strings.Join(paths, ", "))
}

// bind makes *fn call the C function of that name; fn is a pointer to a func.
func (d dynamic) bind(fn any, name string) error {
	at, err := purego.Dlsym(d.handle, name)
	if err != nil || at == 0 {
		return diag.Errorf(diag.Pos{}, "machine", "%s has no function %s", d.path, name).
			Suggest("it is of another version than this mscclsh: rebuild it")
	}
	purego.RegisterFunc(fn, at)
	return nil
}

// setEnv sets a variable where C's getenv sees it, which Go's os.Setenv doesn't
// promise.
func setEnv(name, value string) error {
	at, err := purego.Dlsym(purego.RTLD_DEFAULT, "setenv")
	if err != nil {
		return fmt.Errorf("setting %s: %w", name, err)
	}
	var set func(name, value string, overwrite int32) int32
	purego.RegisterFunc(&set, at)
	if set(name, value, 1) != 0 {
		return fmt.Errorf("setting %s failed", name)
	}
	return nil
}
