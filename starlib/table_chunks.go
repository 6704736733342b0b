package starlib

import (
	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/ir"
)

var hintParams = []param{
	{"sendtb", intValue, "-1", "thread block of the sender, and of a local operation; -1 leaves it to the compiler"},
	{"recvtb", intValue, "-1", "thread block of the receiver; -1 leaves it to the compiler"},
	{"ch", intValue, "-1", "channel; -1 leaves it to the compiler"},
}

var chunkSig = &signature{
	name: "chunk",
	params: []param{
		{"rank", intValue, "", "the rank that holds the chunks"},
		{"buffer", bufferValue, "", "`\"input\"`, `\"output\"`, or the name of a scratch buffer"},
		{"index", intValue, "", "the first chunk"},
		{"size", intValue, "1", "how many consecutive chunks"},
	},
	result:  "ref",
	doc:     "A reference to chunks of one rank.\nAll of them must hold something.",
	example: `c = chunk(0, "input", 2, size = 4)`,
}

var copySig = &signature{
	recv: "ref", name: "copy",
	params: append([]param{
		{"dst", intValue, "", "the rank to copy to; the reference's own rank makes a local copy"},
		{"buffer", bufferValue, "None", "where to; without buffer and index, the reference's own buffer and index"},
		{"index", intValue, "None", "the first chunk there; scratch without an index is appended to"},
	}, hintParams...),
	result:  "ref",
	doc:     "Copies the chunks to a rank, and refers to the copy.\nThe reference itself stays valid unless the copy overwrites it.",
	example: `c = chunk(0, "input", 0).copy(1, "output", 0, ch = 1)`,
}

var reduceSig = &signature{
	recv: "ref", name: "reduce",
	params:  append([]param{{"other", refValue, "", "what is added, as many chunks, on a linked rank or the same"}}, hintParams...),
	result:  "ref",
	doc:     "Adds other into the chunks of this reference.\nThe result is in this reference's place; the reference itself becomes its newest and is returned.",
	example: `c = chunk(1, "input", 0).reduce(chunk(0, "input", 0))`,
}

// refMethods are the methods of ref without copy and reduce.
var refMethods = []*signature{
	{
		recv: "ref", name: "split",
		params:  []param{{"num", intValue, "", "how many parts"}},
		result:  "list of ref",
		doc:     "Cuts the reference into equal parts, in order.",
		example: `first, second = chunk(0, "input", 0, size = 4).split(2)`,
		fn:      refSplit,
	},
	{
		recv: "ref", name: "group",
		params:  []param{{"other", refValue, "", "a reference to adjacent chunks of the same rank and buffer"}},
		result:  "ref",
		doc:     "Joins two adjacent references, in either order.",
		example: `pair = chunk(0, "input", 0).group(chunk(0, "input", 1))`,
		fn:      refGroup,
	},
	{
		recv: "ref", name: "get_origin_rank", params: originParams, result: "int",
		doc: "The rank whose input the chunk came from.\nA sum has no single origin: that is an error.",
		fn: func(c *call) (starlark.Value, error) {
			o, err := c.origin()
			return starlark.MakeInt(int(o.Rank)), err
		},
	},
	{
		recv: "ref", name: "get_origin_index", params: originParams, result: "int",
		doc: "The input index that the chunk came from, on its origin rank.",
		fn: func(c *call) (starlark.Value, error) {
			o, err := c.origin()
			return starlark.MakeInt(int(o.Index)), err
		},
	},
	{
		recv: "ref", name: "get_dst_rank", params: originParams, result: "int",
		doc: "The rank where the collective wants the chunk, or -1 if it wants it on several or on none.",
		fn: func(c *call) (starlark.Value, error) {
			rank, _, err := c.destination()
			return starlark.MakeInt(int(rank)), err
		},
	},
	{
		recv: "ref", name: "get_dst_index", params: originParams, result: "int",
		doc: "The output index where the collective wants the chunk, or -1 if that differs between ranks or it is wanted nowhere.",
		fn: func(c *call) (starlark.Value, error) {
			_, index, err := c.destination()
			return starlark.MakeInt(int(index)), err
		},
	},
	{
		recv: "ref", name: "print_chunk_info", params: originParams,
		doc: "Prints what the chunk holds.",
		fn:  printChunk,
	},
}

var originParams = []param{{"index", intValue, "0", "which chunk of the reference, from 0"}}

func refSplit(c *call) (starlark.Value, error) {
	r := c.recv.(*ref)
	if err := r.use(c.sig.name); err != nil {
		return nil, err
	}
	parts, err := r.p.b.Split(r.r, c.v.int32(0, 0), r.p.pos(c.in.thread))
	if err != nil {
		return nil, err
	}
	list := make([]starlark.Value, len(parts))
	for i := range parts {
		list[i] = &ref{parts[i], r.p}
	}
	return starlark.NewList(list), nil
}

func refGroup(c *call) (starlark.Value, error) {
	r, other := c.recv.(*ref), c.v[0].(*ref)
	for _, x := range []*ref{r, other} {
		if err := x.use(c.sig.name); err != nil {
			return nil, err
		}
	}
	got, err := r.p.b.Group(r.r, other.r, r.p.pos(c.in.thread))
	if err != nil {
		return nil, err
	}
	return &ref{got, r.p}, nil
}

// origin is the one input chunk that the chunk is a copy of.
func (c *call) origin() (ir.Contribution, error) {
	r := c.recv.(*ref)
	if err := r.use(c.sig.name); err != nil {
		return ir.Contribution{}, err
	}
	from, err := r.p.b.Origin(r.r, c.v.int32(0, 0), r.p.pos(c.in.thread))
	if h := r.p.coll.hooks; h != nil && err == nil {
		o := h.Origin(from)
		return ir.Contribution{Rank: ir.Rank(o.Rank), Index: o.Index}, nil
	}
	return from, c.inItsName(err)
}

// destination is where the collective wants the chunk: -1 for a rank or an
// index that is not one.
func (c *call) destination() (ir.Rank, int32, error) {
	r := c.recv.(*ref)
	if err := r.use(c.sig.name); err != nil {
		return ir.None, ir.None, err
	}
	if h := r.p.coll.hooks; h != nil {
		from, err := r.p.b.Origin(r.r, c.v.int32(0, 0), r.p.pos(c.in.thread))
		o := h.Origin(from)
		return ir.Rank(o.DstRank), o.DstIndex, c.inItsName(err)
	}
	rank, index, err := r.p.b.Destination(r.r, c.v.int32(0, 0), r.p.pos(c.in.thread))
	return rank, index, c.inItsName(err)
}

// inItsName lets an error of the trace speak of the method that was called: the
// trace has one call where the language has two.
func (c *call) inItsName(err error) error {
	return inWords(err, "get_origin:", c.sig.name+":", "get_dst:", c.sig.name+":")
}

func printChunk(c *call) (starlark.Value, error) {
	r := c.recv.(*ref)
	if err := r.use(c.sig.name); err != nil {
		return nil, err
	}
	text, err := r.p.b.Describe(r.r, c.v.int32(0, 0), r.p.pos(c.in.thread))
	if err == nil && c.in.o.Print != nil {
		c.in.o.Print(c.in.here(), text)
	}
	return starlark.None, err
}
