package pyfront

import (
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// What the modules export. Members of packages are modules below them.
var (
	languageNames = []string{"MSCCLProgram", "chunk", "XML", "Check", "Buffer", "ThreadblockPolicy", "Chunk", "ReduceChunk"}
	topologyNames = []string{"Topology", "fully_connected", "ring", "line", "star", "hub_and_spoke", "dgx1", "dgx_a100",
		"amd4", "amd8", "nvlink_only", "distributed_fully_connected", "distributed_hub_and_spoke", "reverse_topology",
		"binarize_topology"}
	classNames   = []string{"Collective", "AllReduce", "AllGather", "ReduceScatter", "AllToAll", "Broadcast"}
	routineNames = []string{"allgather_ring_inplace", "allreduce_ring_inplace"}
)

var exported = merge(exportedByMSCCLPP, map[string][]string{
	"argparse": {"ArgumentParser", "Namespace", "BooleanOptionalAction", "ArgumentDefaultsHelpFormatter", "RawTextHelpFormatter",
		"RawDescriptionHelpFormatter", "HelpFormatter"},
	"collections": {"OrderedDict", "defaultdict"},
	"dataclasses": {"dataclass", "field"},
	"enum":        {"Enum", "auto"},
	"functools":   {"partial", "reduce", "wraps"},
	"itertools":   {"accumulate", "chain", "combinations", "permutations", "product", "repeat", "zip_longest"},
	"math": {"ceil", "floor", "fabs", "pow", "sqrt", "exp", "log", "log2", "log10",
		"gcd", "isqrt", "prod", "trunc", "pi", "e", "copysign", "remainder", "sin", "cos", "tan", "hypot"},
	"os":                            {"sep"},
	"os.path":                       {"basename", "dirname", "join", "split", "splitext"},
	"sys":                           {"argv", "exit", "stderr", "stdout", "maxsize"},
	"msccl":                         {},
	"msccl.language":                languageNames,
	"msccl.language.buffer":         {},
	"msccl.language.chunk":          {"Chunk", "ReduceChunk"},
	"msccl.language.collectives":    append(append([]string(nil), classNames...), languageNames...),
	"msccl.language.ir":             {"Buffer", "ThreadblockPolicy"},
	"msccl.language.routines":       append(append(append(append([]string(nil), routineNames...), languageNames...), topologyNames...), classNames...),
	"msccl.collectives":             {},
	"msccl.topologies":              topologyNames,
	"msccl.topologies.amd":          {"Topology", "amd4", "amd8"},
	"msccl.topologies.distributed":  {"Topology", "distributed_fully_connected", "distributed_hub_and_spoke"},
	"msccl.topologies.generic":      {"Topology", "fully_connected", "ring", "line", "star", "hub_and_spoke"},
	"msccl.topologies.nvidia":       {"Topology", "dgx1", "dgx_a100", "nvlink_only"},
	"msccl.topologies.topology":     {"Topology"},
	"msccl.topologies.transformers": {"Topology", "binarize_topology", "reverse_topology"},
	"typing":                        typingNames,
})

func merge(all ...map[string][]string) map[string][]string {
	m := map[string][]string{}
	for _, x := range all {
		maps.Copy(m, x)
	}
	return m
}

func knownModule(path string) bool { _, ok := exported[path]; return ok }

// moduleNames are what "from path import *" binds.
func moduleNames(path string) []string { return exported[path] }

// exports reports whether "from path import name" works.
func exports(path, name string) bool {
	return slices.Contains(exported[path], name) || knownModule(path+"."+name)
}

// topModules are the modules without a dot.
func topModules() []string {
	var list []string
	for m := range exported {
		if !strings.Contains(m, ".") {
			list = append(list, m)
		}
	}
	slices.Sort(list)
	return list
}

func nearestModule(path string) string {
	var list []string
	for m := range exported {
		list = append(list, m)
	}
	return nearest(path, list)
}

func unknownImport(pos diag.Pos, path, name string) *diag.Message {
	m := diag.Errorf(pos, "python", "module %s has no %s here", path, name)
	if home := homeInMSCCLPP(name); home != "" && inMSCCLPP(path) {
		return m.Suggest("from %s import %s", home, name)
	}
	if strings.HasPrefix(path, "msccl") && !inMSCCLPP(path) {
		switch {
		case slices.Contains(languageNames, name):
			return m.Suggest("from msccl.language import %s", name)
		case slices.Contains(topologyNames, name):
			return m.Suggest("from msccl.topologies import %s", name)
		case slices.Contains(classNames, name):
			return m.Suggest("from msccl.language.collectives import %s", name)
		}
	}
	if near := nearest(name, exported[path]); near != "" {
		m.Suggest("did you mean %s?", near)
	} else if path == "os" {
		m.Suggest("a script reads no files and no environment; give it an argument")
	}
	return m
}

// module is a module as a script holds it.
type module struct {
	r    *run
	path string
}

var _ starlark.HasAttrs = (*module)(nil)

func (m *module) String() string        { return "<module '" + m.path + "'>" }
func (m *module) Type() string          { return "module" }
func (m *module) Freeze()               {}
func (m *module) Truth() starlark.Bool  { return true }
func (m *module) Hash() (uint32, error) { return starlark.String(m.path).Hash() }

func (m *module) AttrNames() []string { return exported[m.path] }

func (m *module) Attr(name string) (starlark.Value, error) {
	if slices.Contains(exported[m.path], name) {
		return m.r.member(m.path, name), nil
	}
	if knownModule(m.path + "." + name) {
		return &module{m.r, m.path + "." + name}, nil
	}
	return nil, unknownImport(diag.Pos{}, m.path, name)
}

// member is what a module exports under a name.
func (r *run) member(path, name string) starlark.Value {
	switch path {
	case "argparse":
		return r.argparse(name)
	case "math":
		v, err := r.env.Builtin("math").(starlark.HasAttrs).Attr(name)
		if err == nil && v != nil {
			return v
		}
		return r.function(name, mathExtras[name])
	case "sys":
		return r.sys(name)
	case "typing":
		return typing(name)
	}
	if v := r.ofPython(path, name); v != nil {
		return v
	}
	if inMSCCLPP(path) {
		return r.ofMSCCLPP(name)
	}
	switch name {
	case "Buffer":
		return bufferEnum
	case "Chunk":
		return chunkClass
	case "ReduceChunk":
		return sumClass
	case "Collective":
		return collectiveBase
	case "MSCCLProgram":
		return r.function(name, r.newProgram)
	case "Check":
		return r.function(name, r.check)
	case "chunk":
		return r.chunk
	}
	return r.env.Builtin(name)
}
