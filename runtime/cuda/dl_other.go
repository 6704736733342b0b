//go:build !linux

package cuda

import "errors"

// dynamic is a loaded library; there is none here.
type dynamic struct{ path string }

var errNoGPUs = errors.New("GPUs are supported on Linux only")

func load([]string) (dynamic, error)   { return dynamic{}, errNoGPUs }
func (dynamic) bind(any, string) error { return errNoGPUs }
func setEnv(string, string) error      { return errNoGPUs }
