package algorithms_test

import (
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

// inOut is a number in place and another out of place.
type inOut [2]func(shape) int

func both(f func(shape) int) inOut { return inOut{f, f} }

// always is a number that depends on nothing.
func always(v int) func(shape) int { return func(shape) int { return v } }

// plus is f and v more.
func plus(f func(shape) int, v int) func(shape) int { return func(s shape) int { return f(s) + v } }

// oneCosts are the claims of the one-sided scripts, worked out by hand: what a rank
// other than the first does, without what only lets threads meet, the signals and
// packets on the longest chain, and what all ranks move, in n-ths of the message.
var oneCosts = []struct {
	name, steps string
	ops         inOut
	chain       int
	moved       func(shape) int
}{
	// Handshake (2), one put to all, a copy of its own part, handshake.
	{"onesided_allgather_fullmesh", "2", inOut{always(5), always(6)}, 2, square(1)},
	// Its packets made and sent to the other nodes at once; of each node they go to the GPUs inside at once and, but for
	// its own, into the output; what the others have of each node is unpacked. Out of place its own part is copied.
	{"onesided_allgather_multi_node", "2", inOut{multiGather(0), multiGather(1)}, 2,
		func(s shape) int { return s.n * (s.N - 1 + s.N*(s.G-1)) }},
	// Handshake, a loop of a put and a signal, a loop of a wait and n-1 copies.
	{"onesided_allgather_staged", "2", inOut{plus(each(1), 2+3+2), plus(each(1), 2+3+2+1)}, 2, square(1)},
	// Put, handshake, sum and put in one, handshake.
	{"onesided_allreduce_fullmesh", "2", both(always(6)), 2, square(2)},
	// ppkt inside; sum and packets of it; ppkt by ports; the first node's sum; the others' added and sent inside; unpacking.
	{"onesided_allreduce_multi_node", "3", both(func(s shape) int { return 5 + s.G - 1 }), 3,
		func(s shape) int { return s.n * (2*(s.G-1)*s.N + (s.N-1)*s.N) }},
	// ppkt to all, its own packets, those of rank 0, and all others added; of two ranks, ppkt and the sum.
	{"onesided_allreduce_one_shot", "1", both(func(s shape) int { return min(2*(s.n-1), 4) }), 1, func(s shape) int { return s.n * s.n * (s.n - 1) }},
	// Handshake; loops of put and signal, of wait, sum with put, and signal, of wait and n-1 copies.
	{"onesided_allreduce_pipelined", "3", both(plus(each(1), 2+3+4+2)), 3, square(2)},
	// Handshake, load and store by the switch, handshake.
	{"onesided_allreduce_switch", "2", both(always(5)), 2, square(2)},
	// ppkt to all; sum and sending it; n-1 unpacked.
	{"onesided_allreduce_two_shot", "2", both(plus(each(1), 2)), 2, square(2)},
	// Handshake, reading, adding and writing in one, handshake.
	{"onesided_allreduce_zero_copy", "2", both(always(5)), 2, square(2)},
	// Handshake, put, handshake; in place the others' are copied from scratch, out of place its own.
	{"onesided_alltoall", "2", inOut{plus(each(1), 5), always(6)}, 2, square(1)},
	// One ppkt inside; for each other node the sum with packets of it, and ppkt by ports; the sum of what has come.
	{"onesided_reduce_scatter_multi_node", "2", both(func(s shape) int { return 1 + 2*(s.N-1) + 1 }), 2,
		func(s shape) int { return s.n * (s.N*(s.G-1) + s.N - 1) }},
}

func multiGather(copies int) func(shape) int {
	return func(s shape) int { return 2 + copies + s.N + s.N - 1 + s.N*(s.G-1) }
}

// TestOneSidedCosts holds the docstrings to what the compiler makes of the scripts.
func TestOneSidedCosts(t *testing.T) {
	if len(oneCosts) != len(algorithms.OneSided()) {
		t.Errorf("the table of costs has %d lines for %d algorithms", len(oneCosts), len(algorithms.OneSided()))
	}
	for _, c := range oneCosts {
		t.Run(c.name, func(t *testing.T) {
			doc, err := algorithms.Doc(c.name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(doc, "\nSteps: "+c.steps+"\n") {
				t.Errorf("the docstring has no line %q", "Steps: "+c.steps)
			}
			for _, row := range product(oneAxes(t, c.name)) {
				args, _ := caseOf(oneAxes(t, c.name), row)
				if args["instances"] != "1" || size(args) > 16 {
					continue
				}
				s, out := oneShapeOf(args), 0
				if args["inplace"] == "false" {
					out = 1
				}
				p := compileOne(t, c.name, args, ir.TargetNative)
				if got, want := operations(p.OneSided, 1), c.ops[out](s); got != want {
					t.Errorf("%s: rank 1 has %d operations, want %d", caseName(args), got, want)
				}
				if got := oneChain(p.OneSided); got != c.chain {
					t.Errorf("%s: the longest chain has %d signals and packets, want %d", caseName(args), got, c.chain)
				}
				bytes := 64 * int64(p.Coll.NumChunks())
				if got, want := right(t, p, cpu.Options{Bytes: bytes}).Moved, bytes/int64(s.n)*int64(c.moved(s)); got != want {
					t.Errorf("%s: %d of %d bytes are moved, want %d", caseName(args), got, bytes, want)
				}
			}
		})
	}
}

// operations counts what a rank does, meetings of threads apart.
func operations(o *ir.OneSided, r ir.Rank) int {
	n := 0
	for b := range o.GPUs[r].Blocks {
		for _, op := range flat(o, r, int32(b)) {
			if op.Kind != ir.OpSync {
				n++
			}
		}
	}
	return n
}

// flat is a thread block's operations, each loop followed by one turn of it.
func flat(o *ir.OneSided, r ir.Rank, b int32) []*ir.Op {
	var list []*ir.Op
	ops := o.BlockOps(r, b)
	for i := range ops {
		list = append(list, &ops[i])
		body := o.BodyOf(&ops[i])
		for k := range body {
			list = append(list, &body[k])
		}
	}
	return list
}

// place is where a path may pass from rank to rank: the k-th signal of a channel as
// its end of rank waits for it, or a chunk of packets in scratch.
type place struct {
	rank    ir.Rank
	id, kth int32
	packets bool
}

// oneChain is the number of signals and packets between ranks on the longest path
// over program order, signals and the packets that an operation reads, with one
// turn of each loop. It goes over everything until nothing gets longer.
func oneChain(o *ir.OneSided) int {
	reached, longest := map[place]int{}, 0
	for grown := true; grown; {
		grown = false
		kth := map[place]int32{}
		for g := range o.GPUs {
			for b := range o.GPUs[g].Blocks {
				at := 0
				for _, op := range flat(o, ir.Rank(g), int32(b)) {
					before, after := passes(o, ir.Rank(g), op, kth)
					for _, x := range before {
						at = max(at, reached[x])
					}
					longest = max(longest, at)
					for _, x := range after {
						hop := 1
						if int(x.rank) == g {
							hop = 0
						}
						if at+hop > reached[x] {
							reached[x], grown = at+hop, true
						}
					}
				}
			}
		}
	}
	return longest
}

// passes says what an operation comes after and what comes after it, by signals and
// packets. kth counts the signals and the waits of each channel.
func passes(o *ir.OneSided, r ir.Rank, op *ir.Op, kth map[place]int32) (before, after []place) {
	for _, id := range o.RefsOf(op) {
		waited, sent := place{rank: r, id: id}, place{rank: r, id: id, packets: true} // keys of kth alone
		x := waited
		switch op.Kind {
		case ir.OpWait, ir.OpRelaxedWait:
			x.kth = kth[waited]
			kth[waited]++
			before = append(before, x)
		case ir.OpSignal, ir.OpRelaxedSignal:
			c := o.GPUs[r].Channels[id]
			x.rank, x.id = c.Peer, c.Pair
			x.kth = kth[sent]
			kth[sent]++
			after = append(after, x)
		}
	}
	chunks := func(list []ir.Operand) (out []place) {
		for _, s := range list {
			for i := s.Index; s.Packets && i < s.Index+s.Size; i++ {
				out = append(out, place{s.Rank, i, 0, true})
			}
		}
		return out
	}
	return append(before, chunks(o.Sources(op))...), append(after, chunks(o.Destinations(op))...)
}
