package trace_test

import (
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

func TestNewRefuses(t *testing.T) {
	good := func() ir.Spec {
		return ir.Spec{Name: "test", Coll: allreduce(4, 2, true), Topo: ir.FullyConnected(4), Instances: 1}
	}
	with := func(change func(*ir.Spec)) ir.Spec {
		s := good()
		change(&s)
		return s
	}
	coll := func(c *ir.Collective) ir.Spec {
		return with(func(s *ir.Spec) { s.Coll, s.Topo = c, ir.FullyConnected(c.Ranks) })
	}
	custom := func(u *ir.CustomSpec) ir.Spec {
		c := ir.NewCollective(ir.Custom, 2, 1, false)
		c.Name, c.Custom = "mine", u
		return coll(c)
	}
	counts := func(n ...int32) ir.Spec {
		c := ir.NewCollective(ir.AllToAllV, 2, 1, false)
		c.Counts = n
		return coll(c)
	}
	want2 := make([][][]ir.Contribution, 2)
	for _, c := range []struct {
		name string
		spec ir.Spec
		code string
		want string
	}{
		{"no collective", with(func(s *ir.Spec) { s.Coll = nil }), "bad-program",
			"program: no collective\n    name one, for example AllReduce(8, 8, True)"},
		{"no topology", with(func(s *ir.Spec) { s.Topo = nil }), "bad-program",
			"program: no topology\n    name one, for example fully_connected(8)"},
		{"no ranks", coll(allreduce(0, 1, true)), "bad-program", "program: ranks: got 0, want 1 or more"},
		{"ranks differ", with(func(s *ir.Spec) { s.Topo = ir.FullyConnected(8) }), "bad-program",
			"program: topology FullyConnected has 8 ranks, collective allreduce has 4\n    give both the same number of ranks"},
		{"a table of links of the wrong size", with(func(s *ir.Spec) { s.Topo = &ir.Topology{Name: "T", Ranks: 4, Bandwidth: make([]float64, 4)} }),
			"bad-program", "program: topology T: got 4 links, want a 4 by 4 table"},
		{"no instances", with(func(s *ir.Spec) { s.Instances = 0 }), "bad-program", "program: instances: got 0, want 1 or more"},
		{"too many instances", with(func(s *ir.Spec) { s.Instances = 1 << 17 }), "bad-program",
			"program: instances: got 131072, want 65536 at most"},
		{"a protocol that isn't", with(func(s *ir.Spec) { s.Protocol = 9 }), "bad-program",
			"program: protocol: got Protocol(9), want Simple, LL, LL128, Direct or auto"},
		{"a policy that isn't", with(func(s *ir.Spec) { s.Policy = 9 }), "bad-program",
			"program: thread block policy: got 9, want auto or manual"},
		{"a collective that isn't", coll(ir.NewCollective(99, 2, 1, true)), "bad-program", "program: collective: unknown kind 99"},
		{"no split", coll(&ir.Collective{Ranks: 2, ChunkFactor: 1}), "bad-program", "program: split: got 0, want 1 or more"},
		{"no chunks", coll(allreduce(2, 0, true)), "bad-program", "program: allreduce: the chunk factor must be 1 or more"},
		{"no root", coll(ir.NewCollective(ir.Broadcast, 2, 1, true)), "bad-program",
			"program: broadcast: the root must be one of the ranks"},
		{"root past the end", coll(rooted(ir.Gather, 2, 1, 2, true)), "bad-program",
			"program: gather: the root must be one of the ranks"},
		{"no receiver", coll(rooted(ir.SendRecv, 2, 1, 0, false)), "bad-program",
			"program: sendrecv: source and destination must be ranks"},
		{"too few counts", counts(1, 2, 3), "bad-program",
			"program: alltoallv: counts must be a table of one row and one column a rank"},
		{"a negative count", counts(1, 2, -1, 0), "bad-program", "program: alltoallv: counts must not be negative"},
		{"a custom collective without anything", custom(nil), "bad-program",
			"program: mine: a custom collective needs its sizes and expectation"},
		{"sizes of too few ranks", custom(&ir.CustomSpec{Input: []int32{1}, Output: []int32{0, 0}, Expect: want2}), "bad-program",
			"program: mine: sizes, precondition and expectation must be given for every rank"},
		{"negative sizes", custom(&ir.CustomSpec{Input: []int32{1, -1}, Output: []int32{0, 0}, Expect: want2}), "bad-program",
			"program: mine: sizes must not be negative"},
		{"a short precondition", custom(&ir.CustomSpec{Input: []int32{1, 1}, Output: []int32{0, 0}, Expect: want2,
			Holds: [][]bool{{true}, {}}}), "bad-program", "program: mine: the precondition must speak of every input chunk"},
		{"a short expectation", custom(&ir.CustomSpec{Input: []int32{1, 1}, Output: []int32{0, 1}, Expect: want2}), "bad-program",
			"program: mine: the expectation must speak of every output chunk"},
		{"an expectation of nothing there is", custom(&ir.CustomSpec{Input: []int32{1, 2}, Output: []int32{0, 1},
			Expect: [][][]ir.Contribution{{}, {of(1, 1, 0, 1)}}}), "bad-program",
			"program: mine: rank 1 output[0] expects rank 0 input[1], which doesn't exist"},
		{"more chunks than anyone has", coll(ir.NewCollective(ir.AllToAll, 1<<20, 1<<20, true)), "too-large",
			"program: alltoall of 1048576 ranks has too many chunks: want 268435456 at most in all inputs and outputs\n" +
				"    use a smaller chunk factor"},
		{"more chunks than 32 bits count", coll(allreduce(2147483647, 2147483647, true)), "too-large",
			"program: allreduce of 2147483647 ranks has too many chunks: want 268435456 at most in all inputs and outputs\n" +
				"    use a smaller chunk factor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := trace.New(c.spec)
			if b != nil {
				t.Error("a builder besides the error")
			}
			expect(t, err, c.code, c.want)
		})
	}
	if _, err := trace.New(good()); err != nil {
		t.Errorf("the header that the others change: %v", err)
	}
}

// A custom precondition leaves holes in the input.
func TestHolds(t *testing.T) {
	c := ir.NewCollective(ir.Custom, 1, 1, false)
	c.Custom = &ir.CustomSpec{Input: []int32{3}, Output: []int32{0}, Holds: [][]bool{{true, false, true}}, Expect: [][][]ir.Contribution{{}}}
	s := newScript(t, c, nil)
	s.holds(0, in, 0, of(0, 0))
	s.holds(0, in, 1, nil)
	s.holds(0, in, 2, of(0, 2))
}
