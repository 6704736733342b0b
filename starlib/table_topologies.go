package starlib

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/ir"
)

var nodesParam = []param{{"num_nodes", intValue, "", "how many ranks"}}

var distributedParams = []param{
	{"local_topology", topologyValue, "", "the topology of one copy"},
	{"num_copies", intValue, "", "how many copies"},
	{"remote_bw", numberValue, "", "bandwidth between ranks of different copies, more than 0"},
}

// fixed makes the signature of a topology without parameters.
func fixed(name, doc string, t func() *ir.Topology) *signature {
	return &signature{name: name, result: "topology", doc: doc,
		fn: func(c *call) (starlark.Value, error) { return &topology{c.in, t()}, nil }}
}

// regular makes the signature of a topology of any number of ranks.
func regular(name, doc string, links func(n, src, dst int32) float64) *signature {
	return &signature{name: name, params: nodesParam, result: "topology", doc: doc,
		fn: func(c *call) (starlark.Value, error) {
			n, err := c.matrix(0)
			if err != nil {
				return nil, err
			}
			t := linked(name, n, func(src, dst int32) float64 { return links(n, src, dst) })
			return &topology{c.in, t}, nil
		}}
}

func unit(linked bool) float64 {
	if linked {
		return 1
	}
	return 0
}

var topologyFuncs = []*signature{
	{
		name: "fully_connected", params: nodesParam, result: "topology",
		doc:     "Every rank is linked to every other.",
		example: "topo = fully_connected(8)",
		fn: func(c *call) (starlark.Value, error) {
			n, err := c.ranks(0)
			if err != nil {
				return nil, err
			}
			return &topology{c.in, ir.FullyConnected(n)}, nil
		},
	},
	regular("ring", "Every rank is linked to the one before and the one after it, the last to the first.",
		func(n, src, dst int32) float64 { return unit((src+1)%n == dst || (dst+1)%n == src) }),
	regular("line", "Every rank is linked to the one before and the one after it.",
		func(_, src, dst int32) float64 { return unit(src+1 == dst || dst+1 == src) }),
	{
		name: "star",
		params: append(append([]param(nil), nodesParam...),
			param{"non_blocking", boolValue, "True", "whether the center serves all points at once; links are the same"}),
		result: "topology",
		doc:    "Rank 0 is linked to every other rank.",
		fn: func(c *call) (starlark.Value, error) {
			n, err := c.matrix(0)
			if err != nil {
				return nil, err
			}
			return &topology{c.in, linked("star", n, func(src, dst int32) float64 { return unit(src == 0 || dst == 0) })}, nil
		},
	},
	regular("hub_and_spoke", "Every rank is linked to every other through one switch.",
		func(_, _, _ int32) float64 { return 1 }),
	fixed("dgx1", "NVIDIA DGX-1: eight V100s and their NVLinks.", func() *ir.Topology {
		return linked("dgx1", 8, func(src, dst int32) float64 { return dgx1Links[src][dst] })
	}),
	fixed("dgx_a100", "NVIDIA DGX A100: eight GPUs on NVSwitch, 12 links each.", func() *ir.Topology {
		return linked("dgx_a100", 8, func(_, _ int32) float64 { return 12 })
	}),
	fixed("amd4", "Four AMD GPUs in a ring 0, 1, 3, 2.", func() *ir.Topology {
		return linked("amd4", 4, func(src, dst int32) float64 { return unit(src+dst != 3) })
	}),
	fixed("amd8", "Eight AMD GPUs on two PCIe trees.", func() *ir.Topology { return linked("amd8", 8, amd8Links) }),
	{
		name: "nvlink_only", params: []param{{"nvidia_smi_topo", stringValue, "None", "the text of `nvidia-smi topo -m`"}},
		result: "topology",
		doc:    "Not available: it would ask nvidia-smi for the links of this machine, and a script runs no other program.",
		fn: func(c *call) (starlark.Value, error) {
			return nil, c.sig.errorf("not-available", "a script can't run nvidia-smi").
				Suggest("name the machine, as in topology(\"dgx1\"), or list its links with Topology(name, links)")
		},
	},
	{
		name: "distributed_fully_connected", params: distributedParams, result: "topology",
		doc:     "Copies of a topology; every rank is linked to every rank of the other copies.",
		example: "topo = distributed_fully_connected(dgx1(), 2, 1)",
		fn:      func(c *call) (starlark.Value, error) { return newDistributed(c, "DistributedFullyConnected") },
	},
	{
		name: "distributed_hub_and_spoke", params: distributedParams, result: "topology",
		doc: "The same, through one switch between the copies.",
		fn:  func(c *call) (starlark.Value, error) { return newDistributed(c, "DistributedHubAndSpoke") },
	},
	{
		name: "reverse_topology", params: []param{{"topology", topologyValue, "", "what to reverse"}}, result: "topology",
		doc: "The same links in the other direction.",
		fn: func(c *call) (starlark.Value, error) {
			return derived(c, "Reverse", func(t *ir.Topology, src, dst int) float64 { return bandwidth(t, dst, src) })
		},
	},
	{
		name: "binarize_topology", params: []param{{"topology", topologyValue, "", "what to simplify"}}, result: "topology",
		doc: "The same links, each with bandwidth 1.",
		fn: func(c *call) (starlark.Value, error) {
			return derived(c, "Binarized", func(t *ir.Topology, src, dst int) float64 { return unit(bandwidth(t, src, dst) > 0) })
		},
	},
	{
		name: "Topology",
		params: []param{
			{"name", stringValue, "", "its name in reports"},
			{"links", listValue, "", "`links[dst][src]` is the bandwidth from src to dst, 0 without a link"},
			{"switches", listValue, "[]", "accepted for msccl-tools' scripts; only links count"},
		},
		result:  "topology",
		doc:     "A topology of one's own.",
		example: "one_way = Topology(\"pair\", [[0, 0], [1, 0]])  # 0 to 1 only",
		fn:      newTopology,
	},
	{
		name: "topology",
		params: []param{
			{"name", stringValue, "", "the name of a machine that the tool knows"},
			{"nodes", intValue, "1", "how many of them"},
		},
		result:  "topology",
		doc:     "The links of a known machine.",
		example: "topo = topology(\"hgx_h100\", nodes = 2)",
		fn:      knownTopology,
	},
}

var pairParams = []param{{"src", intValue, "", "from"}, {"dst", intValue, "", "to"}}

var topologyMethods = []*signature{
	{
		recv: "topology", name: "num_nodes", result: "int", doc: "How many ranks there are.",
		fn: func(c *call) (starlark.Value, error) { return starlark.MakeInt(int(c.recv.(*topology).t.Ranks)), nil },
	},
	{
		recv: "topology", name: "nodes", result: "list of int", doc: "All ranks.",
		fn: func(c *call) (starlark.Value, error) {
			return c.ranksWhere(func(int) bool { return true }), nil
		},
	},
	{
		recv: "topology", name: "link", params: pairParams, result: "int or float",
		doc: "The bandwidth of the link from src to dst, 0 without one.",
		fn: func(c *call) (starlark.Value, error) {
			src, err := c.rank(0, c.recv.(*topology).t.Ranks)
			if err != nil {
				return nil, err
			}
			dst, err := c.rank(1, c.recv.(*topology).t.Ranks)
			if err != nil {
				return nil, err
			}
			return bandwidthValue(bandwidth(c.recv.(*topology).t, int(src), int(dst))), nil
		},
	},
	{
		recv: "topology", name: "sources", params: pairParams[1:], result: "list of int", doc: "The ranks that are linked to dst.",
		fn: func(c *call) (starlark.Value, error) {
			t := c.recv.(*topology).t
			dst, err := c.rank(0, t.Ranks)
			if err != nil {
				return nil, err
			}
			return c.ranksWhere(func(r int) bool { return bandwidth(t, r, int(dst)) > 0 }), nil
		},
	},
	{
		recv: "topology", name: "destinations", params: pairParams[:1], result: "list of int", doc: "The ranks that src is linked to.",
		fn: func(c *call) (starlark.Value, error) {
			t := c.recv.(*topology).t
			src, err := c.rank(0, t.Ranks)
			if err != nil {
				return nil, err
			}
			return c.ranksWhere(func(r int) bool { return bandwidth(t, int(src), r) > 0 }), nil
		},
	},
}

// ranksWhere lists the ranks of the receiver that satisfy f.
func (c *call) ranksWhere(f func(rank int) bool) starlark.Value {
	var list []starlark.Value
	for r := range int(c.recv.(*topology).t.Ranks) {
		if f(r) {
			list = append(list, starlark.MakeInt(r))
		}
	}
	return starlark.NewList(list)
}

func newDistributed(c *call, name string) (starlark.Value, error) {
	local, copies, bw := c.v[0].(*topology).t, c.v.int32(1, 0), c.v.number(2, 0)
	if local.Ranks > maxMatrixRanks {
		return nil, c.sig.errorf("bad-argument", "local: got %d ranks, want at most %d", local.Ranks, maxMatrixRanks)
	}
	if copies < 1 || int64(copies)*int64(local.Ranks) > maxMatrixRanks {
		return nil, c.sig.errorf("bad-argument", "num_copies: got %d, want 1 to %d", copies, maxMatrixRanks/local.Ranks)
	}
	if !(bw > 0) {
		return nil, c.sig.errorf("bad-argument", "remote_bw: got %s, want more than 0", c.v[2])
	}
	return &topology{c.in, distribute(name, local, copies, bw)}, nil
}

// derived makes a topology with the ranks of argument 0 and other links.
func derived(c *call, prefix string, f func(t *ir.Topology, src, dst int) float64) (starlark.Value, error) {
	t := c.v[0].(*topology).t
	if t.Ranks > maxMatrixRanks {
		return nil, c.sig.errorf("bad-argument", "topology: got %d ranks, want at most %d", t.Ranks, maxMatrixRanks)
	}
	got := linked(prefix+t.Name, t.Ranks, func(src, dst int32) float64 { return f(t, int(src), int(dst)) })
	return &topology{c.in, got}, nil
}

func newTopology(c *call) (starlark.Value, error) {
	var rows [][]float64
	for row := range starlark.Elements(c.v[1].(starlark.Iterable)) {
		it, ok := row.(starlark.Iterable)
		if !ok {
			return nil, c.sig.errorf("bad-argument", "links: got %s as row %d, want list", row.Type(), len(rows))
		}
		var links []float64
		for x := range starlark.Elements(it) {
			b, ok := starlark.AsFloat(x)
			if !ok || !(b >= 0) {
				return nil, c.sig.errorf("bad-argument", "links[%d][%d]: got %s, want 0 or more", len(rows), len(links), x)
			}
			links = append(links, b)
		}
		rows = append(rows, links)
	}
	n := len(rows)
	if n < 1 || n > maxMatrixRanks {
		return nil, c.sig.errorf("bad-argument", "links: got %d rows, want 1 to %d", n, maxMatrixRanks)
	}
	for dst, row := range rows {
		if len(row) != n {
			return nil, c.sig.errorf("bad-argument", "links[%d]: got %d numbers, want %d", dst, len(row), n)
		}
	}
	t := linked(c.v.string(0, ""), int32(n), func(src, dst int32) float64 { return rows[dst][src] })
	return &topology{c.in, t}, nil
}

func knownTopology(c *call) (starlark.Value, error) {
	if c.in.o.Host.Topology == nil {
		return nil, c.unavailable()
	}
	nodes := c.v.int32(1, 1)
	if nodes < 1 {
		return nil, c.sig.errorf("bad-argument", "nodes: got %d, want 1 or more", nodes)
	}
	t, err := c.in.o.Host.Topology(c.v.string(0, ""), nodes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.sig.name, err)
	}
	return &topology{c.in, t}, nil
}
