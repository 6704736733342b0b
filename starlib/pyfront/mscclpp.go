package pyfront

import (
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
)

// What the modules of MSCCL++'s language export. A star import brings what a
// module imports itself, as it does there.
var (
	oneTypes = []string{"BufferType", "Chunk", "Dict", "List", "ReduceOperationType", "SyncType", "ThreadBlockGroup",
		"dataclass", "defaultdict", "field", "get_program"}
	oneCollectives = []string{"AllGather", "AllReduce", "AllToAll", "Collective", "ReduceScatter", "SendRecv", "TestCollective"}
	oneSpecs       = []string{"AlgoSpec", "ReplicationPolicy"}
	oneChannels    = join(oneTypes, []string{"MemoryChannel", "PortChannel", "SwitchChannel"})
	oneRanks       = join(oneTypes, []string{"Buffer", "Rank", "Semaphore"})
	oneLoops       = []string{"LoopIterationContext", "get_program"}
	onePrograms    = join(oneChannels, oneCollectives, oneSpecs, []string{"CollectiveProgram", "Semaphore"})
)

// exportedByMSCCLPP are the modules by their paths.
var exportedByMSCCLPP = map[string][]string{
	"mscclpp":                             {"AlgoSpec", "ReplicationPolicy"},
	"mscclpp.language":                    join(onePrograms, oneRanks, oneLoops, []string{"JSON"}), // as its quick start has it
	"mscclpp.language.channel":            oneChannels,
	"mscclpp.language.collectives":        join(oneCollectives, []string{"BufferType"}),
	"mscclpp.language.general":            {"JSON", "get_program"},
	"mscclpp.language.internal":           {},
	"mscclpp.language.internal.globals":   {"get_program"},
	"mscclpp.language.internal.types":     {"BufferType", "Chunk", "List", "ReduceOperationType", "ReplicationPolicy", "Set", "SyncType"},
	"mscclpp.language.loop":               oneLoops,
	"mscclpp.language.program":            onePrograms,
	"mscclpp.language.rank":               oneRanks,
	"mscclpp.language.thread_block_group": {"Dict", "List", "ThreadBlockGroup"},
	"mscclpp.language.utils":              oneSpecs,
}

func join(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// inMSCCLPP reports whether a module is one of MSCCL++'s.
func inMSCCLPP(path string) bool { return path == "mscclpp" || strings.HasPrefix(path, "mscclpp.") }

// homeInMSCCLPP is the module that a name of MSCCL++'s language is imported from,
// or "".
func homeInMSCCLPP(name string) string {
	for _, m := range []string{"channel", "rank", "general", "program", "loop", "thread_block_group"} {
		if path := "mscclpp.language." + m; slices.Contains(exportedByMSCCLPP[path], name) {
			return path
		}
	}
	return ""
}

// ofMSCCLPP is what a name of MSCCL++'s language is here: the language's own
// function or value, but for what a script can tell from a function.
func (r *run) ofMSCCLPP(name string) starlark.Value {
	switch {
	case slices.Contains(typingNames, name):
		return typing(name)
	case slices.Contains(oneCollectives, name):
		return r.oneCollective(name)
	case name == "CollectiveProgram" || name == "AlgoSpec":
		return &named{r.env.Builtin(name).(starlark.Callable), r}
	case name == "get_program":
		return r.function(name, r.getProgram)
	case name == "dataclass" || name == "field":
		return r.ofPython("dataclasses", name)
	case name == "defaultdict":
		return r.ofPython("collections", name)
	}
	return r.env.Builtin(name)
}

// className is the class that MSCCL++ has for a collective, "" for none.
func className(c *ir.Collective) string {
	switch {
	case c == nil:
		return ""
	case c.Kind == ir.Custom && c.Name == "test":
		return "TestCollective"
	case c.Kind == ir.Custom && c.Name == "sendrecv":
		return "SendRecv"
	}
	return map[ir.CollectiveKind]string{ir.AllReduce: "AllReduce", ir.AllGather: "AllGather", ir.ReduceScatter: "ReduceScatter",
		ir.AllToAll: "AllToAll"}[c.Kind]
}

// oneCollective is a collective's class, as a script calls it and asks for it
// with isinstance.
func (r *run) oneCollective(name string) *class {
	if c, ok := r.collectives[name]; ok {
		return c
	}
	c := &class{name: name, base: objectClass, fields: starlark.StringDict{}, final: "MSCCL++'s executor runs no collectives of scripts"}
	if name == "Collective" {
		c.make = func(starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			return nil, errorf("python", "Collective: beyond the Python that scripts may use here").Suggest("%s", c.final)
		}
		c.is = func(v starlark.Value) bool { return starlib.CollectiveOf(v) != nil }
	} else {
		c.make = func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return starlark.Call(r.env.Thread(), r.env.Builtin(name), args, kwargs)
		}
		c.is = func(v starlark.Value) bool { return className(starlib.CollectiveOf(v)) == name }
	}
	r.collectives[name] = c
	return c
}

// named is CollectiveProgram or AlgoSpec. MSCCL++'s take None for a name, which
// scripts pass whose --name is left out; a program has to have one here, and gets
// the script's.
type named struct {
	starlark.Callable
	r *run
}

var _ starlark.HasAttrs = (*named)(nil)

// Attr finds what the function itself has, such as from_spec.
func (n *named) Attr(name string) (starlark.Value, error) {
	if x, ok := n.Callable.(starlark.HasAttrs); ok {
		return x.Attr(name)
	}
	return nil, nil
}

// AttrNames lists the function's own.
func (n *named) AttrNames() []string {
	if x, ok := n.Callable.(starlark.HasAttrs); ok {
		return x.AttrNames()
	}
	return nil
}

// CallInternal calls the function with a name.
func (n *named) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	own := starlark.String(strings.TrimSuffix(filepath.Base(n.r.o.File), ".py"))
	if len(args) > 0 && args[0] == starlark.None {
		args = slices.Clone(args)
		args[0] = own
	}
	for i, kw := range kwargs {
		if kw[0] == starlark.Value(starlark.String("name")) && kw[1] == starlark.None {
			kwargs = slices.Clone(kwargs)
			kwargs[i] = starlark.Tuple{kw[0], own}
		}
	}
	return n.Callable.CallInternal(t, args, kwargs)
}

// getProgram is get_program.
func (r *run) getProgram(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackPositionalArgs("get_program", args, kwargs, 0); err != nil {
		return nil, err
	}
	if p := r.env.OpenOneSided(); p != nil {
		return p, nil
	}
	return nil, errorf("no-program", "get_program: no program is open").Suggest("call it inside: with CollectiveProgram(...):")
}

// oneTypeNames are the functions of MSCCL++'s language that a script may ask for
// by isinstance: what they return is of a type that has their name.
var oneTypeNames = []string{"AlgoSpec", "Chunk", "CollectiveProgram", "MemoryChannel", "PortChannel", "Rank", "Semaphore",
	"SwitchChannel", "ThreadBlockGroup"}
