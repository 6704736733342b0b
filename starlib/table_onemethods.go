package starlib

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// Parameters that many operations share.
var (
	tbParam      = param{"tb", intValue, "None", "the thread block that does it; without it the compiler chooses"}
	groupParam   = param{"tb_group", groupKind, "None", "thread blocks that do it together, each its part of the range"}
	syncParam    = param{"data_sync", syncKind, "SyncType.both", "on which sides the threads of the block meet"}
	relaxedParam = param{"relaxed", boolValue, "False", "whether it only counts, without publishing what was written before, or taking it in"}
	reduceParam  = param{"reduce_op", operatorValue, "ReduceOperationType.sum", "the operator, of `ReduceOperationType`; None takes that of the run"}
)

// moveParams are those of a move between ranks: where to and where from.
func moveParams(dst, src string, more ...param) []param {
	return append([]param{{"dst_chunk", chunkKind, "", dst}, {"src_chunk", chunkKind, "", src}}, more...)
}

var rankMethods = []*signature{
	{
		recv: "Rank", name: "get_input_buffer", result: "Buffer", doc: "The rank's input.",
		fn: func(c *call) (starlark.Value, error) { return c.rankBuffer(ir.Input) },
	},
	{
		recv: "Rank", name: "get_output_buffer", result: "Buffer", doc: "The rank's output.",
		fn: func(c *call) (starlark.Value, error) { return c.rankBuffer(ir.Output) },
	},
	localCopy("copy", ir.OpCopy, "Copies on the rank."),
	localCopy("copy_packets", ir.OpCopyToPackets, "Copies plain data into packets, in scratch."),
	localCopy("unpack_packets", ir.OpUnpackPackets, "Takes the data out of packets in scratch, waiting for each of them."),
	{
		recv: "Rank", name: "reduce",
		params: []param{
			{"src_chunk", chunkKind, "", "what is reduced, and where to unless `dst_chunk` says"},
			{"other_chunks", listValue, "", "chunks of the rank that are combined with it"},
			tbParam, groupParam,
			{"dst_chunk", chunkKind, "None", "where the result goes; without it, `src_chunk`"},
			reduceParam,
			{"packet", boolValue, "False", "whether `other_chunks` are packets, each of which is waited for"},
		},
		doc: "Combines chunks on the rank.",
		fn: func(c *call) (starlark.Value, error) {
			return c.operation(2, 3, func(b *trace.One, blocks []int32, pos ir.PosID) error {
				others, err := c.chunks(1)
				if err != nil {
					return err
				}
				op, err := c.reduction(5)
				if err != nil {
					return err
				}
				src := c.chunk(0)
				dst := src
				if c.v.given(4) {
					dst = c.chunk(4)
				}
				return b.Reduce(c.recv.(*rankValue).r, dst, src, others, op, c.v.bool(6, false), blocks, pos)
			})
		},
	},
	{
		recv: "Rank", name: "barrier",
		params: []param{{"tb_list", listValue, "None", "the thread blocks that meet; without it, all of the rank"}},
		doc:    "Thread blocks of the rank wait for one another.\nOf a single one, its threads do.",
		fn: func(c *call) (starlark.Value, error) {
			return c.operation(-1, -1, func(b *trace.One, _ []int32, pos ir.PosID) error {
				var blocks []int32
				if c.v.given(0) {
					var err error
					if blocks, err = c.blockList(0); err != nil {
						return err
					}
				}
				return b.Barrier(c.recv.(*rankValue).r, blocks, pos)
			})
		},
	},
}

func localCopy(name string, kind ir.OpKind, doc string) *signature {
	return &signature{recv: "Rank", name: name, params: moveParams("where to", "what", tbParam, groupParam), doc: doc,
		fn: func(c *call) (starlark.Value, error) {
			return c.operation(2, 3, func(b *trace.One, blocks []int32, pos ir.PosID) error {
				return b.Copy(kind, c.recv.(*rankValue).r, c.chunk(0), c.chunk(1), blocks, pos)
			})
		}}
}

// channelSync is signal, wait or flush: relaxed where relaxedKind is another kind.
func channelSync(recv, name string, kind, relaxedKind ir.OpKind, doc string) *signature {
	s := &signature{recv: recv, name: name, params: []param{tbParam, syncParam}, doc: doc}
	if relaxedKind != kind {
		s.params = append(s.params, relaxedParam)
	}
	s.fn = func(c *call) (starlark.Value, error) {
		return c.operation(0, -1, func(b *trace.One, blocks []int32, pos ir.PosID) error {
			k := kind
			if c.v.bool(2, false) {
				k = relaxedKind
			}
			return b.Sync(k, c.recv.(*channelValue).c, blocks, c.sync(1), pos)
		})
	}
	return s
}

// channelMove is an operation that moves data by a channel; grouped ones can be
// cut between thread blocks.
func channelMove(recv, name string, kind ir.OpKind, grouped bool, dst, src, doc string) *signature {
	s := &signature{recv: recv, name: name, params: moveParams(dst, src, tbParam), doc: doc}
	group := -1
	if grouped {
		s.params, group = append(s.params, groupParam), 3
	}
	s.fn = func(c *call) (starlark.Value, error) {
		return c.operation(2, group, func(b *trace.One, blocks []int32, pos ir.PosID) error {
			return b.Move(kind, c.recv.(*channelValue).c, c.chunk(0), c.chunk(1), blocks, pos)
		})
	}
	return s
}

var memoryChannelMethods = []*signature{
	channelSync("MemoryChannel", "signal", ir.OpSignal, ir.OpRelaxedSignal,
		"Lets one wait of the peer, on the other end of the channel, go on.\nWhat the thread block did before is visible to it then."),
	channelSync("MemoryChannel", "wait", ir.OpWait, ir.OpRelaxedWait, "Waits until the peer has signaled once more."),
	channelMove("MemoryChannel", "put", ir.OpPut, true, "where to, on the peer", "what, on the channel's own rank", "Writes to the peer's memory."),
	channelMove("MemoryChannel", "get", ir.OpGet, true, "where to, on the channel's own rank", "what, on the peer", "Reads from the peer's memory."),
	channelMove("MemoryChannel", "put_packets", ir.OpPutPackets, true, "where to, in scratch of the peer", "what, on the channel's own rank",
		"Writes plain data as packets to the peer's scratch.\nWhoever reads the packets waits for them: no signal is needed."),
	channelMove("MemoryChannel", "read_put_packets", ir.OpReadPutPackets, true, "where to, in scratch of the peer", "packets in scratch of the channel's own rank",
		"Waits for packets and writes them to the peer's scratch."),
	{
		recv: "MemoryChannel", name: "reduce",
		params: []param{
			{"local_src_chunk", chunkKind, "", "what is reduced, and where to unless `local_dst_chunk` says"},
			{"remote_src_chunks", listValue, "", "chunks of the peer that are combined with it"},
			tbParam, groupParam,
			{"local_dst_chunk", chunkKind, "None", "where the result goes; without it, `local_src_chunk`"},
			reduceParam,
		},
		doc: "Reads chunks of the peer and combines them with one's own.",
		fn: func(c *call) (starlark.Value, error) {
			return c.operation(2, 3, func(b *trace.One, blocks []int32, pos ir.PosID) error {
				remotes, err := c.chunks(1)
				if err != nil {
					return err
				}
				op, err := c.reduction(5)
				if err != nil {
					return err
				}
				src := c.chunk(0)
				dst := src
				if c.v.given(4) {
					dst = c.chunk(4)
				}
				return b.ReadReduce(c.recv.(*channelValue).c, dst, src, remotes, op, blocks, pos)
			})
		},
	},
}

var portChannelMethods = []*signature{
	channelSync("PortChannel", "signal", ir.OpSignal, ir.OpSignal, "Lets one wait of the peer go on, once everything put before has arrived."),
	channelSync("PortChannel", "wait", ir.OpWait, ir.OpWait, "Waits until the peer has signaled once more."),
	channelSync("PortChannel", "flush", ir.OpFlush, ir.OpFlush, "Waits until what was put has arrived: its source may be written again."),
	channelMove("PortChannel", "put", ir.OpPut, false, "where to, on the peer", "what, on the channel's own rank", "Copies to the peer, by a copy engine or a NIC."),
	channelMove("PortChannel", "put_with_signal", ir.OpPutSignal, false, "where to, on the peer", "what, on the channel's own rank", "`put`, then `signal`."),
	channelMove("PortChannel", "put_with_signal_and_flush", ir.OpPutSignalFlush, false, "where to, on the peer", "what, on the channel's own rank",
		"`put`, then `signal`, then `flush`."),
	channelMove("PortChannel", "put_packets", ir.OpPutPackets, false, "where to, in scratch of the peer", "packets in scratch of the channel's own rank",
		"Copies packets to the peer's scratch.\nThe bytes are copied as they are: `copy_packets` makes packets of plain data before."),
	channelMove("PortChannel", "read_put_packets", ir.OpReadPutPackets, true, "where to, in scratch of the peer", "packets in scratch of the channel's own rank",
		"Waits for packets and copies them to the peer's scratch."),
}

var (
	offsetParam = param{"buffer_offset", intValue, "", "first chunk on every rank of the channel: of scratch, counted over all of a rank's"}
	sizeParam   = param{"size", intValue, "", "how many chunks"}
)

var switchChannelMethods = []*signature{{
	recv: "SwitchChannel", name: "at_rank",
	params: []param{{"rank", intValue, "", "one of the channel's ranks"}},
	result: "SwitchChannel.at_rank(r)", doc: "The channel as one rank uses it.",
	fn: func(c *call) (starlark.Value, error) {
		v := c.recv.(*switchValue)
		if err := v.p.use(c.sig.name); err != nil {
			return nil, err
		}
		r := ir.Rank(c.v.int32(0, 0))
		if err := v.p.b.AtRank(v.group, r, 0); err != nil {
			return nil, err
		}
		return &switchValue{oneValue{v.p, "SwitchChannel.at_rank(r)", fmt.Sprintf("%s.at_rank(%d)", v.text, r), switchRankMethods, nil, nil}, v.group, r}, nil
	},
}}

var switchRankMethods = []*signature{
	{
		recv: "SwitchChannel.at_rank(r)", name: "reduce",
		params: []param{offsetParam, sizeParam, {"dst_chunk", chunkKind, "", "where the result goes, on the rank"}, tbParam, reduceParam},
		doc: "Combines one place of every rank of the channel.\n" +
			"The result has to be broadcast: a switch does both in one operation.",
		fn: func(c *call) (starlark.Value, error) {
			return c.operation(3, -1, func(b *trace.One, blocks []int32, pos ir.PosID) error {
				op, err := c.reduction(4)
				if err != nil {
					return err
				}
				v := c.recv.(*switchValue)
				return b.SwitchReduce(v.group, v.rank, c.v.int32(0, 0), c.v.int32(1, 0), c.chunk(2), op, blocks, pos)
			})
		},
	},
	switchBroadcast("broadcast", ir.OpGroupStore, "what, on the rank", "Writes a chunk to one place of every rank of the channel."),
	switchBroadcast("broadcast_packets", ir.OpGroupStorePackets, "packets in scratch of the rank",
		"Writes packets to one place of every rank's scratch."),
}

func switchBroadcast(name string, kind ir.OpKind, src, doc string) *signature {
	return &signature{recv: "SwitchChannel.at_rank(r)", name: name, doc: doc,
		params: []param{{"src_chunk", chunkKind, "", src}, offsetParam, sizeParam, tbParam},
		fn: func(c *call) (starlark.Value, error) {
			return c.operation(3, -1, func(b *trace.One, blocks []int32, pos ir.PosID) error {
				v := c.recv.(*switchValue)
				return b.SwitchBroadcast(kind, v.group, v.rank, c.chunk(0), c.v.int32(1, 0), c.v.int32(2, 0), blocks, pos)
			})
		}}
}

var semaphoreMethods = []*signature{
	semaphoreOp("acquire", ir.OpSemaphoreAcquire, "Waits until the semaphore is above 0, and takes one."),
	semaphoreOp("release", ir.OpSemaphoreRelease, "Gives one to the semaphore; what the thread block did before is visible to who takes it."),
}

func semaphoreOp(name string, kind ir.OpKind, doc string) *signature {
	return &signature{recv: "Semaphore", name: name, params: []param{tbParam, syncParam}, doc: doc,
		fn: func(c *call) (starlark.Value, error) {
			return c.operation(0, -1, func(b *trace.One, blocks []int32, pos ir.PosID) error {
				return b.SemaphoreOp(kind, c.recv.(*semaphoreValue).s, blocks, c.sync(1), pos)
			})
		}}
}

var blockGroupMethods = []*signature{
	{
		recv: "ThreadBlockGroup", name: "numtb", result: "int", doc: "How many thread blocks the group has.",
		fn: func(c *call) (starlark.Value, error) { return starlark.MakeInt(len(c.recv.(*blockGroup).list)), nil },
	},
	{
		recv: "ThreadBlockGroup", name: "get_internal_id", result: "int",
		params: []param{{"tb", intValue, "", "a thread block of the group"}},
		doc:    "Which part of a range a thread block of the group does, from 0.",
		fn: func(c *call) (starlark.Value, error) {
			i := slices.Index(c.recv.(*blockGroup).list, c.v.int32(0, 0))
			if i < 0 {
				return nil, c.sig.errorf("bad-argument", "thread block %d is not in the group", c.v.int32(0, 0))
			}
			return starlark.MakeInt(i), nil
		},
	},
}

// program is the one that the receiver belongs to, if it is open.
func (c *call) program() (*oneProgram, error) {
	var p *oneProgram
	switch v := c.recv.(type) {
	case *rankValue:
		p = v.p
	case *channelValue:
		p = v.p
	case *switchValue:
		p = v.p
	case *semaphoreValue:
		p = v.p
	}
	return p, p.use(c.sig.name)
}

// operation checks that the receiver and all chunks belong to the open program,
// reads the thread blocks of arguments tb and group, -1 for none, and records.
func (c *call) operation(tb, group int, record func(*trace.One, []int32, ir.PosID) error) (starlark.Value, error) {
	p, err := c.program()
	if err != nil {
		return nil, err
	}
	for i := range c.sig.params {
		if x, ok := c.v[i].(*chunkValue); ok && x.p != p {
			return nil, foreign(c, c.sig.params[i].name, p, x)
		}
	}
	blocks, err := c.blocks(tb, group)
	if err != nil {
		return nil, err
	}
	if err := record(p.b, blocks, p.pos()); err != nil {
		return nil, err
	}
	return starlark.None, nil
}

// foreign is the error of a chunk of another program than p.
func foreign(c *call, what string, p *oneProgram, x *chunkValue) error {
	return c.sig.errorf("foreign-reference", "%s: %s belongs to program %q, not to %q", what, x, x.p.h.name, p.h.name).
		Note(x.p.opened, "%q began here", x.p.h.name).
		Suggest("slice a buffer of this program")
}

// blocks are the thread blocks that tb or group names, none for neither.
func (c *call) blocks(tb, group int) ([]int32, error) {
	one := tb >= 0 && c.v.given(tb)
	if group >= 0 && c.v.given(group) {
		if one {
			return nil, c.sig.errorf("bad-argument", "got tb and tb_group, want one of them")
		}
		return c.v[group].(*blockGroup).list, nil
	}
	if one {
		c.block[0] = c.v.int32(tb, 0)
		return c.block[:], nil
	}
	return nil, nil
}

// blockList is argument i as a list of thread blocks, at least one.
func (c *call) blockList(i int) ([]int32, error) {
	name := c.sig.params[i].name
	var list []int32
	for x := range starlark.Elements(c.v[i].(starlark.Iterable)) {
		n, err := starlark.AsInt32(x)
		switch {
		case err != nil:
			return nil, c.sig.errorf("bad-argument", "%s[%d]: got %s, want int", name, len(list), x.Type())
		case n < 0 || n >= ir.MaxThreadBlocks:
			return nil, c.sig.errorf("bad-thread-block", "%s[%d]: got thread block %d, want 0 to %d", name, len(list), n, ir.MaxThreadBlocks-1)
		case slices.Contains(list, int32(n)):
			return nil, c.sig.errorf("bad-thread-block", "%s: got thread block %d twice", name, n)
		}
		list = append(list, int32(n))
	}
	if len(list) == 0 {
		return nil, c.sig.errorf("bad-argument", "%s: got an empty list, want thread blocks", name)
	}
	return list, nil
}

func (c *call) chunk(i int) trace.OneChunk { return c.v[i].(*chunkValue).c }

// chunks is argument i as a list of chunks of the open program, until the next
// such list.
func (c *call) chunks(i int) ([]trace.OneChunk, error) {
	name := c.sig.params[i].name
	p := c.in.one
	list := p.chunks[:0]
	p.chunks = nil
	for x := range starlark.Elements(c.v[i].(starlark.Iterable)) {
		v, ok := x.(*chunkValue)
		if !ok {
			return nil, c.sig.errorf("bad-argument", "%s[%d]: got %s, want Chunk", name, len(list), x.Type())
		}
		if v.p != p {
			return nil, foreign(c, fmt.Sprintf("%s[%d]", name, len(list)), p, v)
		}
		list = append(list, v.c)
	}
	p.chunks = list
	return list, nil
}

// reduction is argument i; without it, sum.
func (c *call) reduction(i int) (ir.Reduction, error) {
	if c.v[i] == starlark.None {
		return ir.ReduceByRun, nil
	}
	switch s := c.v.string(i, "sum"); s {
	case "sum":
		return ir.ReduceSum, nil
	case "min":
		return ir.ReduceMin, nil
	case "max":
		return ir.ReduceMax, nil
	default:
		return 0, c.sig.errorf("bad-argument", "reduce_op: got %q, want one of ReduceOperationType: sum, min or max", s)
	}
}

// sync is argument i; without it, both.
func (c *call) sync(i int) ir.DataSync {
	if s, ok := c.v[i].(syncType); ok {
		return ir.DataSync(s)
	}
	return ir.SyncBoth
}

func (c *call) rankBuffer(buf ir.BufferID) (starlark.Value, error) {
	p, err := c.program()
	if err != nil {
		return nil, err
	}
	return &memoryValue{p, p.b.Buffer(c.recv.(*rankValue).r, buf)}, nil
}
