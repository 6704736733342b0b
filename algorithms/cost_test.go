package algorithms_test

import (
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
)

// shape is the size that a cost formula is asked for: n ranks, or N nodes of G
// GPUs with n = N*G.
type shape struct{ n, N, G int }

func floorLog2(n int) int { return bits.Len(uint(n)) - 1 }
func ceilLog2(n int) int  { return bits.Len(uint(n - 1)) }

// over is v, or 0 where no one has anybody to talk to.
func over(s shape, v int) int {
	if s.n == 1 {
		return 0
	}
	return v
}

// ones is the number of hops of all n chunks on a binomial tree: rank v is as
// many hops from the root as v has bits set.
func ones(n int) int {
	sum := 0
	for v := range n {
		sum += bits.OnesCount(uint(v))
	}
	return sum
}

// uneven is the sum off the diagonal of alltoallv_direct's default counts.
func uneven(n int) int {
	sum := 0
	for s := range n {
		for d := range n {
			if s != d {
				sum += (s + 2*d + 1) % 4
			}
		}
	}
	return sum
}

// costs are the claims of the docstrings as formulas, worked out by hand:
// messages on the longest chain, chunks sent by all ranks together, and chunks
// sent by the busiest rank (nil where the docstring says nothing about it). All
// of them are in chunks of the default declaration.
var costs = []struct {
	name, steps string
	chain       func(shape) int
	total       func(shape) int
	busiest     func(shape) int
}{
	{"allgather_direct", "1", one, square(1), each(1)},
	{"allgather_recursive_doubling", "log2(n)", func(s shape) int { return ceilLog2(s.n) }, square(1), each(1)},
	{"allgather_ring", "n-1", each(1), square(1), each(1)},
	{"allgather_sccl_122_dgx1", "2", func(shape) int { return 2 }, func(shape) int { return 56 }, func(shape) int { return 7 }},
	{"allreduce_allpairs", "2", func(s shape) int { return over(s, 2) }, square(2), each(2)},
	{"allreduce_binomial_tree", "2 floor(log2(n))", func(s shape) int { return 2 * floorLog2(s.n) }, each(2),
		func(s shape) int { return ceilLog2(s.n) }},
	{"allreduce_double_binary_tree", "2 ceil(log2(n))", func(s shape) int { return 2 * ceilLog2(s.n) }, each(4),
		func(s shape) int { return over(s, min(s.n, 4)) }}, // up, down to two children, and up as a leaf of the other tree
	{"allreduce_halving_doubling", "2 log2(n)", func(s shape) int { return 2 * ceilLog2(s.n) }, square(2), each(2)},
	{"allreduce_hierarchical", "2(G-1) + 2(N-1)", func(s shape) int { return 2*(s.G-1) + 2*(s.N-1) },
		func(s shape) int { return s.n * (2*(s.G-1)*s.N + 2*(s.N-1)) },
		func(s shape) int { return 2*(s.G-1)*s.N + 2*(s.N-1) }},
	{"allreduce_one_step", "1", one, square(1), each(1)},
	{"allreduce_ring", "2(n-1)", each(2), square(2), each(2)},
	{"alltoall_direct", "1", one, square(1), each(1)},
	{"alltoall_three_step", "3", func(s shape) int { return staged(s, 3) },
		func(s shape) int { return s.N*(s.N-1)*(2*s.G*(s.G-1)+s.G*s.G) + s.n*(s.G-1) }, nil},
	{"alltoall_two_step", "2", func(s shape) int { return staged(s, 2) },
		func(s shape) int { return s.n * ((s.G-1)*s.N + (s.N-1)*s.G) },
		func(s shape) int { return (s.G-1)*s.N + (s.N-1)*s.G }},
	{"alltoallv_direct", "1", one, func(s shape) int { return uneven(s.n) }, nil},
	{"alltonext", "1 inside a node, min(G, 3) between nodes",
		func(s shape) int {
			if s.N > 1 {
				return min(s.G, 3)
			}
			return min(s.G-1, 1)
		},
		func(s shape) int { return s.N*(s.G-1)*s.G + (s.N-1)*(3*s.G-2) },
		func(s shape) int { // its own G, one on its way out of the node and one on its way in
			ways := min(s.N-1, s.G-1, 2)
			return over(s, s.G+ways)
		}},
	{"broadcast_tree", "floor(log2(n))", func(s shape) int { return floorLog2(s.n) }, each(1),
		func(s shape) int { return ceilLog2(s.n) }},
	{"gather_tree", "floor(log2(n))", func(s shape) int { return floorLog2(s.n) }, func(s shape) int { return ones(s.n) }, nil},
	{"reduce_scatter_direct", "1", one, square(1), each(1)},
	{"reduce_scatter_ring", "n-1", each(1), square(1), each(1)},
	{"reduce_tree", "floor(log2(n))", func(s shape) int { return floorLog2(s.n) }, each(1), one},
	{"scatter_tree", "floor(log2(n))", func(s shape) int { return floorLog2(s.n) }, func(s shape) int { return ones(s.n) }, nil},
	{"sendrecv", "1", one, one, one},
}

func one(s shape) int { return over(s, 1) }

// each is k(n-1).
func each(k int) func(shape) int { return func(s shape) int { return k * (s.n - 1) } }

// square is k n(n-1).
func square(k int) func(shape) int { return func(s shape) int { return k * s.n * (s.n - 1) } }

// staged is the steps of an alltoall that has k of them when there are several
// nodes of several GPUs.
func staged(s shape, k int) int {
	switch {
	case s.n == 1:
		return 0
	case s.N == 1 || s.G == 1:
		return 1
	}
	return k
}

// TestCosts holds the docstrings to what the compiler makes of the scripts. The
// claims are about algorithms, so connections have slots to spare here: with
// few, large steps take turns.
func TestCosts(t *testing.T) {
	if len(costs) != len(algorithms.ChunkRouting()) {
		t.Errorf("the table of costs has %d lines for %d algorithms", len(costs), len(algorithms.ChunkRouting()))
	}
	for _, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			doc, err := algorithms.Doc(c.name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(doc, "\nSteps: "+c.steps+"\n") {
				t.Errorf("the docstring has no line %q", "Steps: "+c.steps)
			}
			for _, args := range costSizes(t, c.name) {
				p := compile(t, load(t, c.name, args), compiler.Options{Target: ir.TargetPlain, Slots: 64})
				s := shape{n: int(p.Ranks())}
				s.N, _ = strconv.Atoi(args["nodes"])
				s.G, _ = strconv.Atoi(args["gpus"])
				total, busiest := sent(p)
				compare := func(what string, got int, want func(shape) int) {
					t.Helper()
					if want != nil && got != want(s) {
						t.Errorf("%s: %s is %d, want %d", caseName(args), what, got, want(s))
					}
				}
				compare("longest chain of messages", chain(t, p), c.chain)
				compare("chunks sent in all", total, c.total)
				compare("chunks sent by the busiest rank", busiest, c.busiest)
			}
		})
	}
}

// costSizes are some sizes for a script, in both modes where it has both.
func costSizes(t *testing.T, name string) []map[string]string {
	var sizes, out []map[string]string
	modes := false
	kind := ""
	for _, p := range load(t, name, nil).Params {
		modes = modes || p.Name == "inplace"
		if p.Name == "ranks" || p.Name == "nodes" {
			kind = p.Name
		}
	}
	switch kind {
	case "ranks":
		for _, n := range []string{"1", "2", "3", "4", "5", "8", "13", "16"} {
			if !refuses(name, n) {
				sizes = append(sizes, map[string]string{"ranks": n})
			}
		}
	case "nodes":
		for _, s := range shapes {
			sizes = append(sizes, map[string]string{"nodes": s[0], "gpus": s[1]})
		}
	default:
		sizes = append(sizes, map[string]string{})
	}
	for _, s := range sizes {
		out = append(out, s)
		if modes {
			other := map[string]string{"inplace": "false"}
			for k, v := range s {
				other[k] = v
			}
			s["inplace"] = "true"
			out = append(out, other)
		}
	}
	return out
}

// sent counts the chunks that all ranks and the busiest rank send.
func sent(p *ir.Program) (total, busiest int) {
	for g := range p.GPUs {
		own := 0
		for _, tb := range p.GPUs[g].TBs {
			for _, s := range tb.Steps {
				if s.Kind.Sends() {
					own += int(s.Count)
				}
			}
		}
		total, busiest = total+own, max(busiest, own)
	}
	return total, busiest
}

// step names a step of a program.
type step struct{ gpu, tb, at int }

// chain is the number of messages on the longest path over program order in
// thread blocks, waits and messages.
func chain(t *testing.T, p *ir.Program) int {
	before := stepsBefore(p)
	depth := map[step]int{}
	var visit func(s step) int
	visit = func(s step) int {
		if d, ok := depth[s]; ok {
			if d < 0 {
				t.Fatal("the program has a cycle")
			}
			return d
		}
		depth[s] = -1
		d := 0
		for _, b := range before[s] {
			hop := 0
			if b.gpu != s.gpu {
				hop = 1
			}
			d = max(d, visit(b)+hop)
		}
		depth[s] = d
		return d
	}
	longest := 0
	for s := range before {
		longest = max(longest, visit(s))
	}
	return longest
}

// stepsBefore lists for every step those that it comes right after.
func stepsBefore(p *ir.Program) map[step][]step {
	type end struct{ from, to, ch int }
	before := map[step][]step{}
	sends, recvs := map[end][]step{}, map[end][]step{}
	for g := range p.GPUs {
		for b := range p.GPUs[g].TBs {
			steps := p.GPUs[g].TBs[b].Steps
			for i := range steps {
				st, s := &steps[i], step{g, b, i}
				before[s] = nil
				if i > 0 {
					before[s] = append(before[s], step{g, b, i - 1})
				}
				for _, d := range p.DepsOf(st) {
					before[s] = append(before[s], step{g, int(d.TB), int(d.Step)})
				}
				if st.Kind.Sends() {
					e := end{g, int(st.SendPeer), int(st.Chan)}
					sends[e] = append(sends[e], s)
				}
				if st.Kind.Receives() {
					e := end{int(st.RecvPeer), g, int(st.Chan)}
					recvs[e] = append(recvs[e], s)
				}
			}
		}
	}
	for e, rs := range recvs {
		for i, r := range rs {
			before[r] = append(before[r], sends[e][i])
		}
	}
	return before
}
