package starlib

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/ir"
)

// onePartFuncs make what operations of a one-sided program are done with.
var onePartFuncs = []*signature{
	{
		name:    "Rank",
		params:  []param{{"rank", intValue, "", "its number, from 0"}},
		result:  "Rank",
		doc:     "A rank of the open program: its memory, and what it does on its own.",
		example: "Rank(0).copy(Rank(0).get_output_buffer()[0:1], Rank(0).get_input_buffer()[0:1], tb = 0)",
		fn: func(c *call) (starlark.Value, error) {
			p, err := c.in.openOne(c.sig.name)
			if err != nil {
				return nil, err
			}
			r := ir.Rank(c.v.int32(0, 0))
			if err := p.b.Rank(r, 0); err != nil {
				return nil, err
			}
			return &rankValue{oneValue{p, "Rank", fmt.Sprintf("Rank(%d)", r), rankMethods, oneRankFields, nil}, r}, nil
		},
	},
	{
		name:   "Buffer",
		params: []param{{"rank", intValue, "", "the rank that gets it"}, {"size", intValue, "", "how many chunks, of the size of the input's"}},
		result: "Buffer",
		doc: "Scratch of a rank, behind what it has already.\n" +
			"A slice of a buffer, `buffer[a:b]`, is a chunk: chunks a to b - 1 as one. Fields: `rank`, `buffer_type`, `size`.",
		example: "tmp = Buffer(0, 4)\nRank(0).copy(tmp[1:3], Rank(0).get_input_buffer()[0:2])",
		fn: func(c *call) (starlark.Value, error) {
			p, err := c.in.openOne(c.sig.name)
			if err != nil {
				return nil, err
			}
			b, err := p.b.Scratch(ir.Rank(c.v.int32(0, 0)), c.v.int32(1, 0), 0)
			if err != nil {
				return nil, err
			}
			return &memoryValue{p, b}, nil
		},
	},
	{
		name: "Chunk",
		params: []param{
			{"rank", intValue, "", "the rank that has it"},
			{"buffer", stringValue, "", "`BufferType.input`, `.output` or `.scratch`"},
			{"index", intValue, "", "the first chunk; of scratch, counted over all of the rank's"},
			{"size", intValue, "", "how many"},
		},
		result:  "Chunk",
		doc:     "What a slice of a buffer is, by its numbers.\nFields: `rank`, `buffer`, `index`, `size`.",
		example: "Rank(0).copy(Chunk(0, BufferType.output, 0, 2), Chunk(0, BufferType.input, 2, 2))",
		fn:      newChunk,
	},
	channelFunc("MemoryChannel", ir.ChannelMemory, memoryChannelMethods,
		"One end of a channel, by which a rank loads from and stores to another's memory.\n"+
			"Every call makes a new one. The k-th from a to b and the k-th from b to a are the two ends of one channel."),
	channelFunc("PortChannel", ir.ChannelPort, portChannelMethods,
		"One end of a channel, by which copy engines or NICs move data to another rank.\n"+
			"Ends pair as those of `MemoryChannel` do, among port channels."),
	{
		name: "SwitchChannel",
		params: []param{
			{"rank_list", listValue, "", "its ranks, two or more"},
			{"buffer_type", stringValue, "", "the buffer that it is about: `BufferType.input`, `.output` or `.scratch`"},
		},
		result: "SwitchChannel",
		doc:    "A channel to one buffer of several ranks at once, through a switch that can multicast.",
		example: "Rank(0).copy(Chunk(0, BufferType.output, 0, 1), Chunk(0, BufferType.input, 0, 1))\n" +
			"ch = SwitchChannel([0, 1, 2, 3], BufferType.output)\n" +
			"ch.at_rank(0).reduce(0, 1, Chunk(0, BufferType.output, 0, 1))\n" +
			"ch.at_rank(0).broadcast(Chunk(0, BufferType.output, 0, 1), 0, 1)",
		fn: newSwitch,
	},
	{
		name:   "Semaphore",
		params: []param{{"rank", intValue, "", "the rank whose thread blocks use it"}, {"initial_value", intValue, "", "how many acquires need no release"}},
		result: "Semaphore",
		doc:    "A counter by which thread blocks of one rank wait for one another.",
		example: "ready = Semaphore(0, 0)\n" +
			"ready.release(tb = 0)\n" +
			"ready.acquire(tb = 1)",
		fn: func(c *call) (starlark.Value, error) {
			p, err := c.in.openOne(c.sig.name)
			if err != nil {
				return nil, err
			}
			s, err := p.b.Semaphore(ir.Rank(c.v.int32(0, 0)), c.v.int32(1, 0), p.pos())
			if err != nil {
				return nil, err
			}
			text := fmt.Sprintf("Semaphore(%d, %d)", s.Rank, c.v.int32(1, 0))
			return &semaphoreValue{oneValue{p, "Semaphore", text, semaphoreMethods, oneRankFields, nil}, s}, nil
		},
	},
	{
		name:   "ThreadBlockGroup",
		params: []param{{"tb_list", listValue, "", "thread blocks, in the order of their parts"}},
		result: "ThreadBlockGroup",
		doc:    "Thread blocks that do an operation together, each its part of the range.\nField: `tb_list`.",
		example: "both = ThreadBlockGroup([0, 1])\n" +
			"Rank(0).copy(Rank(0).get_output_buffer()[0:1], Rank(0).get_input_buffer()[0:1], tb_group = both)",
		fn: func(c *call) (starlark.Value, error) {
			list, err := c.blockList(0)
			if err != nil {
				return nil, err
			}
			return &blockGroup{list}, nil
		},
	},
}

func channelFunc(name string, kind ir.ChannelKind, methods []*signature, doc string) *signature {
	return &signature{
		name:   name,
		params: []param{{"dst_rank", intValue, "", "the peer"}, {"src_rank", intValue, "", "the rank that uses this end"}},
		result: name, doc: doc + " Fields: `src_rank`, `dst_rank`.",
		example: "there, back = " + name + "(1, 0), " + name + "(0, 1)\nthere.signal()\nback.wait()",
		fn: func(c *call) (starlark.Value, error) {
			p, err := c.in.openOne(c.sig.name)
			if err != nil {
				return nil, err
			}
			ch, err := p.b.Channel(kind, ir.Rank(c.v.int32(0, 0)), ir.Rank(c.v.int32(1, 0)), p.pos())
			if err != nil {
				return nil, err
			}
			text := fmt.Sprintf("%s(%d, %d)", name, ch.Dst, ch.Src)
			return &channelValue{oneValue{p, name, text, methods, channelFields, nil}, ch}, nil
		},
	}
}

func newSwitch(c *call) (starlark.Value, error) {
	p, err := c.in.openOne(c.sig.name)
	if err != nil {
		return nil, err
	}
	var ranks []ir.Rank
	for x := range starlark.Elements(c.v[0].(starlark.Iterable)) {
		r, err := starlark.AsInt32(x)
		if err != nil {
			return nil, c.sig.errorf("bad-argument", "rank_list[%d]: got %s, want int", len(ranks), x.Type())
		}
		ranks = append(ranks, ir.Rank(r))
	}
	buf, err := c.bufferType(1)
	if err != nil {
		return nil, err
	}
	g, err := p.b.Switch(ranks, buf, p.pos())
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("SwitchChannel(%v, %q)", ranks, bufferNames[buf])
	return &switchValue{oneValue{p, "SwitchChannel", text, switchChannelMethods, nil, nil}, g, ir.None}, nil
}

func newChunk(c *call) (starlark.Value, error) {
	p, err := c.in.openOne(c.sig.name)
	if err != nil {
		return nil, err
	}
	r := ir.Rank(c.v.int32(0, 0))
	if err := p.b.Rank(r, 0); err != nil {
		return nil, inWords(err, "Rank: ", "Chunk: ")
	}
	buf, err := c.bufferType(1)
	if err != nil {
		return nil, err
	}
	index, size := int64(c.v.int32(2, 0)), int64(c.v.int32(3, 0))
	if size < 1 {
		return nil, c.sig.errorf("empty-slice", "size: got %d, want 1 or more", size)
	}
	x, err := p.b.Slice(p.b.Buffer(r, buf), index, index+size, 0)
	if err != nil {
		return nil, err
	}
	return &chunkValue{p, x}, nil
}
