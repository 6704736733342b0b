package starlib

// examples are those of functions whose rows in the table have none of their own, by
// name; methods have their receiver's type before it.
var examples = map[string]string{
	"ref.get_origin_rank":  `rank = chunk(2, "input", 0).get_origin_rank()  # 2`,
	"ref.get_origin_index": `index = chunk(2, "input", 1).get_origin_index()  # 1`,
	"ref.get_dst_rank":     `rank = chunk(2, "input", 0).get_dst_rank()`,
	"ref.get_dst_index":    `index = chunk(2, "input", 0).get_dst_index()`,
	"ref.print_chunk_info": `chunk(2, "input", 0).print_chunk_info()`,

	"AllReduce":     `coll = AllReduce(8, 8, inplace = True)`,
	"AllGather":     `coll = AllGather(8, inplace = True)`,
	"ReduceScatter": `coll = ReduceScatter(8)`,
	"AllToAll":      `coll = AllToAll(8, chunk_factor = 2)`,
	"Broadcast":     `coll = Broadcast(8, chunk_factor = 4, root = 2)`,
	"Reduce":        `coll = Reduce(8, root = 2)`,
	"Gather":        `coll = Gather(8, root = 2)`,
	"Scatter":       `coll = Scatter(8, root = 2)`,
	"AllToNext":     `coll = AllToNext(8, chunk_factor = 4)`,
	"SendRecv":      `coll = SendRecv(8, src = 3, dst = 5)`,

	"ring":                      `topo = ring(8)`,
	"line":                      `topo = line(8)`,
	"star":                      `topo = star(8)`,
	"hub_and_spoke":             `topo = hub_and_spoke(8)`,
	"dgx1":                      `topo = dgx1()`,
	"dgx_a100":                  `topo = dgx_a100()`,
	"amd4":                      `topo = amd4()`,
	"amd8":                      `topo = amd8()`,
	"distributed_hub_and_spoke": `topo = distributed_hub_and_spoke(dgx1(), 2, 1)`,
	"reverse_topology":          `topo = reverse_topology(line(4))`,
	"binarize_topology":         `topo = binarize_topology(dgx1())`,
	"topology.num_nodes":        `ranks = ring(8).num_nodes()  # 8`,
	"topology.nodes":            `ranks = ring(3).nodes()  # [0, 1, 2]`,
	"topology.link":             `bandwidth = dgx1().link(0, 1)`,
	"topology.sources":          `before = ring(8).sources(0)  # [1, 7]`,
	"topology.destinations":     `after = ring(8).destinations(0)  # [1, 7]`,

	"allgather_ring_inplace": "with MSCCLProgram(\"ring\", ring(4), AllGather(4, inplace = True)):\n" +
		"    allgather_ring_inplace(4)",
	"allreduce_ring_inplace": "with MSCCLProgram(\"ring\", ring(4), AllReduce(4, 4, inplace = True)):\n" +
		"    allreduce_ring_inplace(4)",

	"XML": "with MSCCLProgram(\"hello\", fully_connected(2), SendRecv(2)):\n" +
		"    chunk(0, \"input\", 0).copy(1, \"output\", 0)\n    XML()",
	"Check": "with MSCCLProgram(\"hello\", fully_connected(2), SendRecv(2)):\n" +
		"    chunk(0, \"input\", 0).copy(1, \"output\", 0)\n    Check()",
	"show": `show("chunks")`,
	"run":  `right = run(size = "64KiB", dtype = "bf16")`,
}
