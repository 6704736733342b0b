package plan

import (
	"math"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// A file is read into these records first, since what an operation means
// depends on lists that may follow it. They hold the fields of all dialects,
// whose keys don't clash.
type (
	rawPlan struct {
		name, collective string
		protocol         string
		inPlace          bool
		reuse, double    bool
		doubleSet        bool
		threads, align   int32
		minBytes         uint64
		maxBytes         uint64
		root             int32 // or ir.None
		gpus             []rawGPU
		oldKeys, newKeys bool // inputChunks; input_chunks
		buff             bool // switch channels name their buffer "buff"
		pos              diag.Pos
	}
	rawGPU struct {
		pos              diag.Pos
		id               int32
		in, out, scratch int32
		blocks           []rawBlock
		channels         []rawChannel
		remotes          []rawRemote
		semaphores       []int32
	}
	rawChannel struct {
		pos      diag.Pos
		kind     ir.ChannelKind
		src, dst ir.BufferID // dialect D1
		peers    []int32
		groups   [][]int32
		buf      ir.BufferID
	}
	rawRemote struct {
		rank int32
		buf  ir.BufferID
		via  [ir.ChannelSwitch + 1]bool
	}
	rawBlock struct {
		pos      diag.Pos
		id       int32
		ops      []rawOp
		channels []rawIDs
		refs     []rawIDs
	}
	// rawIDs is one entry of a thread block's channels or remote_buffer_refs.
	rawIDs struct {
		pos      diag.Pos
		kind     ir.ChannelKind
		src, dst ir.BufferID // dialect D1
		ids      []int32
	}
	rawOp struct {
		name        string
		pos         diag.Pos
		via         ir.ChannelKind
		src, dst    []rawBuf
		ids         []int32
		part, parts int32
		barrier     int32 // or ir.None
		blocks      int32
		semaphores  []int32
		unit        int64
		chunks      int32
		reduce      ir.Reduction
		body        []rawOp
		old         *oldOp // dialect D1
	}
	rawBuf struct {
		pos         diag.Pos
		where       ir.Where
		twice       bool        // it says in two ways where it is
		buf         ir.BufferID // of a local one
		id          int32       // of a remote buffer or a switch channel
		index, size int32
	}
)

var (
	bufferWords  = []string{"i", "o", "s"}
	channelWords = []string{"none", "memory", "port", "switch", "sm", "proxy", "nvls"}
	reduceWords  = []string{"", "sum", "min", "max", "prod"}
)

func (s *scanner) buffer() ir.BufferID { return ir.BufferID(s.oneOf("buffer i, o or s", bufferWords)) }

func (s *scanner) channelKind() ir.ChannelKind {
	k := s.oneOf("channel type memory, port, switch or none", channelWords)
	if k > int(ir.ChannelSwitch) { // the same in the words of D1
		k -= int(ir.ChannelSwitch)
	}
	return ir.ChannelKind(k)
}

// plan reads the file.
func (s *scanner) plan() *rawPlan {
	p := &rawPlan{pos: s.pos(), threads: 1024, align: 16, maxBytes: math.MaxUint64, root: ir.None}
	var have struct{ name, collective, protocol, inPlace, gpus bool }
	s.object("a plan", func(key string) bool {
		switch key {
		case "name":
			p.name, have.name = s.str("a name"), true
		case "collective", "colletive": // as written by v0.5.2
			p.collective, have.collective = s.str("the name of a collective"), true
		case "protocol":
			p.protocol, have.protocol = s.str("a protocol"), true
		case "inplace":
			p.inPlace, have.inPlace = s.bool(), true
		case "reuse_resources":
			p.reuse = s.bool()
		case "use_double_scratch_buffer":
			p.double, p.doubleSet = s.bool(), true
		case "buffer_alignment":
			p.align = s.count(1)
		case "num_threads_per_block":
			p.threads = s.count(1)
		case "min_message_size":
			p.minBytes = s.number(0, math.MaxInt64)
		case "max_message_size":
			p.maxBytes = s.number(0, math.MaxUint64)
		case "root":
			p.root = s.count(0)
		case "gpus":
			have.gpus = true
			s.array("a list of GPUs", func() { p.gpus = append(p.gpus, s.gpu(p)) })
		default:
			return false
		}
		return true
	})
	s.finish()
	s.need(p.pos, "the plan", have.name, "name", have.collective, "collective", have.protocol, "protocol",
		have.inPlace, "inplace", have.gpus, "gpus")
	return p
}

// need reports the first key that is missing; list is have, key, have, key ...
func (s *scanner) need(pos diag.Pos, what string, list ...any) {
	for i := 0; i < len(list); i += 2 {
		if have, _ := list[i].(bool); !have {
			s.failAt(pos, "plan-value", "%s has no %q", what, list[i+1])
			return
		}
	}
}

func (s *scanner) gpu(p *rawPlan) rawGPU {
	g := rawGPU{pos: s.pos()}
	var have struct{ id, in, out, scratch, blocks, channels bool }
	s.object("a GPU", func(key string) bool {
		switch key {
		case "id":
			g.id, have.id = s.count(0), true
		case "input_chunks", "inputChunks":
			g.in, have.in = s.count(0), true
			p.newKeys, p.oldKeys = p.newKeys || key == "input_chunks", p.oldKeys || key == "inputChunks"
		case "output_chunks", "outputChunks":
			g.out, have.out = s.count(0), true
		case "scratch_chunks", "scratchChunks":
			g.scratch, have.scratch = s.count(0), true
		case "threadblocks":
			have.blocks = true
			s.array("a list of thread blocks", func() { g.blocks = append(g.blocks, s.block()) })
		case "channels":
			have.channels = true
			s.array("a list of channels", func() { g.channels = append(g.channels, s.channel(p)) })
		case "remote_buffers":
			s.array("a list of remote buffers", func() { g.remotes = append(g.remotes, s.remote()) })
		case "semaphores":
			s.array("a list of semaphores", func() { g.semaphores = append(g.semaphores, s.semaphore()) })
		default:
			return false
		}
		return true
	})
	s.need(g.pos, "the GPU", have.id, "id", have.in, "input_chunks", have.out, "output_chunks",
		have.scratch, "scratch_chunks", have.blocks, "threadblocks", have.channels, "channels")
	return g
}

func (s *scanner) channel(p *rawPlan) rawChannel {
	c := rawChannel{pos: s.pos()}
	var have struct{ kind, buf, peers, groups bool }
	s.object("a channel", func(key string) bool {
		switch key {
		case "channel_type", "type":
			c.kind, have.kind = s.channelKind(), true
		case "connected_to", "connectedTo":
			c.peers, have.peers = s.counts("a list of ranks"), true
		case "srcbuff":
			c.src = s.buffer()
		case "dstbuff":
			c.dst = s.buffer()
		case "buffer_type", "buff":
			c.buf, have.buf = s.buffer(), true
			p.buff = p.buff || key == "buff"
		case "rank_groups", "rankGroups":
			have.groups = true
			s.array("a list of groups", func() {
				s.object("a group", func(key string) bool {
					if key != "ranks" {
						return false
					}
					c.groups = append(c.groups, s.counts("a list of ranks"))
					return true
				})
			})
		default:
			return false
		}
		return true
	})
	s.need(c.pos, "the channel", have.kind, "channel_type")
	switch c.kind {
	case ir.ChannelSwitch:
		s.need(c.pos, "the switch channel", have.buf, "buffer_type", have.groups, "rank_groups")
	case ir.ChannelNone:
		s.failAt(c.pos, "plan-value", "the channel has type none, want memory, port or switch")
	default:
		s.need(c.pos, "the channel", have.peers, "connected_to")
	}
	return c
}

func (s *scanner) remote() rawRemote {
	var r rawRemote
	pos := s.pos()
	var have struct{ rank, buf, via bool }
	s.object("a remote buffer", func(key string) bool {
		switch key {
		case "rank":
			r.rank, have.rank = s.count(0), true
		case "type":
			r.buf, have.buf = s.buffer(), true
		case "access_channel_types":
			have.via = true
			s.array("a list of channel types", func() { r.via[s.channelKind()] = true })
		default:
			return false
		}
		return true
	})
	s.need(pos, "the remote buffer", have.rank, "rank", have.buf, "type", have.via, "access_channel_types")
	return r
}

func (s *scanner) semaphore() int32 {
	pos, n, have := s.pos(), int32(0), false
	s.object("a semaphore", func(key string) bool {
		if key != "init_value" {
			return false
		}
		n, have = s.count(0), true
		return true
	})
	s.need(pos, "the semaphore", have, "init_value")
	return n
}

func (s *scanner) block() rawBlock {
	b := rawBlock{pos: s.pos()}
	var have struct{ id, ops, channels bool }
	s.object("a thread block", func(key string) bool {
		switch key {
		case "id":
			b.id, have.id = s.count(0), true
		case "ops":
			have.ops = true
			s.array("a list of operations", func() { b.ops = append(b.ops, s.op(false)) })
		case "channels":
			have.channels = true
			s.array("a list of channels", func() { b.channels = append(b.channels, s.blockIDs()) })
		case "remote_buffer_refs":
			s.array("a list of buffers", func() { b.refs = append(b.refs, s.blockIDs()) })
		default:
			return false
		}
		return true
	})
	s.need(b.pos, "the thread block", have.id, "id", have.ops, "ops", have.channels, "channels")
	return b
}

func (s *scanner) blockIDs() rawIDs {
	r := rawIDs{pos: s.pos()}
	var have struct{ kind, ids bool }
	s.object("a list of ids", func(key string) bool {
		switch key {
		case "channel_type", "ctype", "access_channel_type":
			r.kind, have.kind = s.channelKind(), true
		case "channel_ids", "cids", "remote_buffer_ids":
			r.ids, have.ids = s.counts("a list of ids"), true
		case "src":
			r.src = s.buffer()
		case "dst":
			r.dst = s.buffer()
		default:
			return false
		}
		return true
	})
	s.need(r.pos, "the entry", have.kind, "channel_type", have.ids, "channel_ids")
	return r
}
