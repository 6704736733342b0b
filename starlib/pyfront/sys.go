package pyfront

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/mscclsh/mscclsh/internal/diag"
)

var bufferEnum = starlarkstruct.FromStringDict(starlark.String("Buffer"),
	starlark.StringDict{"input": inputBuffer, "output": outputBuffer, "scratch": scratchBuffer})

// sys is a member of the module sys.
func (r *run) sys(name string) starlark.Value {
	switch name {
	case "argv":
		r.parsed = true
		list := []starlark.Value{starlark.String(r.o.File)}
		for _, a := range r.o.Argv {
			list = append(list, starlark.String(a))
		}
		return starlark.NewList(list)
	case "exit":
		return r.function(name, r.sysExit)
	case "maxsize":
		return starlark.MakeInt64(1<<63 - 1)
	}
	return starlark.String("<" + name + ">") // a file, for print alone
}

// sysExit ends the script: well with nothing or 0, otherwise as a failure.
func (r *run) sysExit(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var status starlark.Value = starlark.None
	if err := starlark.UnpackPositionalArgs("exit", args, kwargs, 0, &status); err != nil {
		return nil, err
	}
	if status == starlark.None || status == starlark.False || status == starlark.Value(starlark.MakeInt(0)) {
		r.ended = true
		return nil, fmt.Errorf("the script ended itself")
	}
	r.failed = diag.Errorf(r.env.Here(), "exit", "the script ended itself: exit(%s)", pyRepr(status))
	return nil, r.failed
}
