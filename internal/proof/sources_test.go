package proof

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
	topologies "github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/starlib"
)

// source is a program to make mutants of.
type source struct {
	name        string
	p           *ir.Program
	fromLibrary bool // of the library, so it has to be right
}

// smallMoves is how many moves a program has that the explorer judges; with LL and
// LL128 a chunk of a step is up to three of them.
const smallMoves = 160

func (s source) small() bool {
	if brokenRules(s.p) != 0 {
		return true // nothing to explore
	}
	m := finest(s.p)
	return m.total() <= smallMoves && len(m.lines) <= maxLines
}

// sizes are the arguments that give an algorithm its size, small to large.
var sizes = []map[string]string{
	{"ranks": "2"}, {"ranks": "3"}, {"ranks": "4"}, {"ranks": "8"}, {"ranks": "16"},
	{"nodes": "1", "gpus": "2"}, {"nodes": "2", "gpus": "2"}, {"nodes": "2", "gpus": "4"},
}

// libraryPrograms are all algorithms in several sizes and both modes, compiled
// without limits, with one and with two instances, for connections that hold
// single chunks as well as for those of MSCCL, with one of some protocols.
func libraryPrograms(t *testing.T, protocols ...string) []source {
	t.Helper()
	return library(t, protocols, func(d *ir.ChunkDAG, i int) compiler.Options {
		if i%2 == 1 {
			return compiler.Options{Target: ir.TargetRCCL, Slots: 2, SlotBytes: 64, MaxBytes: 4096}
		}
		return compiler.Options{Target: ir.TargetPlain}
	})
}

// library compiles all algorithms in several sizes and both modes, with one of some
// protocols; options may change a program before it is compiled.
func library(t *testing.T, protocols []string, options func(d *ir.ChunkDAG, i int) compiler.Options) []source {
	t.Helper()
	var out []source
	for _, name := range algorithms.ChunkRouting() {
		params := paramsOf(t, name)
		done := map[string]bool{}
		for i, size := range sizes {
			args := map[string]string{}
			fits := true
			for k, v := range size {
				fits = fits && (params[k] || !params["ranks"] && !params["nodes"])
				if params[k] {
					args[k] = v
				}
			}
			if !fits {
				continue
			}
			if params["inplace"] {
				args["inplace"] = fmt.Sprint(i%2 == 0)
			}
			if params["instances"] && i%3 == 1 {
				args["instances"] = "2"
			}
			if done[argsName(args)] {
				continue
			}
			done[argsName(args)] = true
			args["protocol"] = protocols[len(out)%len(protocols)]
			id := argsName(args)
			s, err := loadAlgorithm(name, args)
			if err != nil {
				if strings.Contains(err.Error(), "must be a power of two") {
					continue
				}
				t.Fatal(err)
			}
			d := s.Programs[0].DAG
			r, err := compiler.Compile(context.Background(), d, options(d, i))
			if err != nil {
				t.Fatalf("compiling %s %s: %v", name, id, err)
			}
			out = append(out, source{name: name + " " + id, p: r.Program, fromLibrary: true})
		}
	}
	return out
}

func loadAlgorithm(name string, args map[string]string) (*starlib.Script, error) {
	s, err := starlib.Load(context.Background(), starlib.Options{
		File: starlib.LibraryPrefix + name + ".star", Library: algorithms.FS, Args: args,
		Host: starlib.Host{Topology: topologies.Topology}})
	if err != nil {
		return nil, fmt.Errorf("loading %s %s: %w", name, argsName(args), err)
	}
	return s, nil
}

func paramsOf(t *testing.T, name string) map[string]bool {
	t.Helper()
	s, err := loadAlgorithm(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, p := range s.Params {
		out[p.Name] = true
	}
	return out
}

func argsName(args map[string]string) string {
	var parts []string
	for k, v := range args {
		parts = append(parts, k+"="+v)
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// handedPrograms are the programs of real files: all those under xml/ of the
// folder that MSCCLSH_DATA names, or of shared/data beside the module or above it.
// Files that can't be read are left to the reader's tests.
func handedPrograms(t *testing.T) []source {
	t.Helper()
	dir := os.Getenv("MSCCLSH_DATA")
	for up := "../.."; dir == "" && len(up) < 60; up += "/.." {
		if _, err := os.Stat(filepath.Join(up, "shared/data/xml")); err == nil {
			dir = filepath.Join(up, "shared/data")
		}
	}
	if dir == "" {
		t.Log("no real files: set MSCCLSH_DATA to a folder with xml/ in it to have them judged as well")
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "xml/*/*.xml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s (%v)", dir, err)
	}
	var out []source
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		im, err := mscclxml.Read(bytes.NewReader(data), mscclxml.ReadOptions{File: filepath.Base(file)})
		if err != nil {
			continue
		}
		for i, p := range im.Programs {
			out = append(out, source{name: fmt.Sprintf("%s (%d)", filepath.Base(file), i), p: p})
		}
	}
	return out
}
