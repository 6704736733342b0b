package sim_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/runtime/sim"
	"github.com/mscclsh/mscclsh/starlib"
)

// compile compiles an algorithm of the library; nil if it refuses the arguments.
func compile(t testing.TB, name string, args map[string]string, o compiler.Options) *ir.Program {
	t.Helper()
	s, err := starlib.Load(context.Background(), starlib.Options{File: starlib.LibraryPrefix + name + ".star", Library: algorithms.FS,
		Args: args, Host: starlib.Host{Topology: machine.Topology}})
	if err != nil {
		t.Logf("%s %v: %v", name, args, err)
		return nil
	}
	r, err := compiler.Compile(context.Background(), s.Programs[0].DAG, o)
	if err != nil {
		t.Logf("%s %v: %v", name, args, err)
		return nil
	}
	return r.Program
}

// sizeArgs are the arguments for so many ranks, by the parameters that a script has.
func sizeArgs(t *testing.T, name string, ranks int) map[string]string {
	t.Helper()
	s, err := starlib.Load(context.Background(), starlib.Options{File: starlib.LibraryPrefix + name + ".star", Library: algorithms.FS,
		Host: starlib.Host{Topology: machine.Topology}})
	if err != nil {
		t.Fatal(err)
	}
	args := map[string]string{}
	for _, p := range s.Params {
		switch p.Name {
		case "ranks":
			args["ranks"] = fmt.Sprint(ranks)
		case "nodes":
			args["nodes"], args["gpus"] = "2", fmt.Sprint((ranks+1)/2)
		}
	}
	return args
}

// library calls a test for every algorithm in several sizes, protocols and targets.
func library(t *testing.T, test func(t *testing.T, p *ir.Program)) {
	sizes := []int{2, 3, 4, 8}
	if testing.Short() {
		sizes = []int{4}
	}
	for _, name := range algorithms.ChunkRouting() {
		compiled := 0
		for _, n := range sizes {
			args := sizeArgs(t, name, n)
			for _, protocol := range []ir.Protocol{ir.Simple, ir.LL, ir.LL128, ir.Direct} {
				target := ir.TargetNative
				if protocol == ir.LL {
					target = ir.TargetMSCCL
				}
				args["protocol"] = protocol.String()
				p := compile(t, name, args, compiler.Options{Target: target, SlotBytes: 64})
				if p == nil {
					continue
				}
				compiled++
				t.Run(fmt.Sprintf("%s/%d/%s", name, n, protocol), func(t *testing.T) { test(t, p) })
			}
		}
		if compiled < 4 {
			t.Errorf("%s: only %d programs", name, compiled)
		}
	}
}

// demanded compares a machine's outputs with what the collective demands, without
// the marks of the package under test.
func demanded(t *testing.T, m *sim.Machine) {
	t.Helper()
	c := m.Program().Coll
	for r := range ir.Rank(c.Ranks) {
		out, err := m.Buffer(r, ir.Output)
		if err != nil {
			t.Fatal(err)
		}
		for i := range out {
			want, demanded := c.Expect(nil, r, int32(i))
			if demanded && !holds(out[i], want) {
				t.Fatalf("rank %d output %d holds %v, want %v", r, i, out[i], want)
			}
			if demanded && out[i].Mark != sim.Final {
				t.Fatalf("rank %d output %d is marked %v, want Final", r, i, out[i].Mark)
			}
		}
	}
}

// holds compares a content with a multiset.
func holds(c sim.Content, want []ir.Contribution) bool {
	count := map[ir.Contribution]uint64{}
	for _, w := range want {
		count[w]++
	}
	for _, x := range c.Terms {
		if count[x.Contribution] != x.Times {
			return false
		}
		delete(count, x.Contribution)
	}
	return c.State == sim.Sum && len(count) == 0
}
