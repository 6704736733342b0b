package plan

import (
	"math"

	"github.com/mscclsh/mscclsh/ir"
)

// op reads an operation. Piped is for those of a pipeline.
func (s *scanner) op(piped bool) rawOp {
	op := rawOp{pos: s.pos(), parts: 1, barrier: ir.None}
	named := false
	s.object("an operation", func(key string) bool {
		switch key {
		case "name":
			op.name, named = s.str("the name of an operation"), true
		case "channel_type", "ctype":
			op.via = s.channelKind()
		case "channel_ids":
			op.ids = s.counts("a list of channels")
		case "src_buff":
			s.array("a list of buffers", func() { op.src = append(op.src, s.operand()) })
		case "dst_buff":
			s.array("a list of buffers", func() { op.dst = append(op.dst, s.operand()) })
		case "tbg_info":
			s.blockGroup(&op)
		case "barrier_id":
			op.barrier = s.count(0)
		case "num_threadblocks", "nthread_blocks":
			op.blocks = s.count(1)
		case "semaphore_ids":
			op.semaphores = s.counts("a list of semaphores")
		case "iter_context":
			s.iterations(&op)
		case "reduce_op":
			op.reduce = ir.Reduction(s.oneOf("operator sum, min, max or prod", reduceWords))
		case "ops":
			if piped {
				s.failf("plan-value", "a pipeline within a pipeline")
				return true
			}
			s.array("a list of operations", func() { op.body = append(op.body, s.op(true)) })
		default:
			return s.oldField(&op, key)
		}
		return true
	})
	s.need(op.pos, "the operation", named, "name")
	return op
}

func (s *scanner) blockGroup(op *rawOp) {
	pos, part, parts := s.pos(), false, false
	s.object("a thread block group", func(key string) bool {
		switch key {
		case "tb_id":
			op.part, part = s.count(0), true
		case "tbg_size":
			op.parts, parts = s.count(1), true
		default:
			return false
		}
		return true
	})
	s.need(pos, "the thread block group", part, "tb_id", parts, "tbg_size")
	if op.part >= op.parts {
		s.failAt(pos, "plan-value", "thread block %d of a group of %d", op.part, op.parts)
	}
}

func (s *scanner) iterations(op *rawOp) {
	pos, unit, chunks := s.pos(), false, false
	s.object("an iteration context", func(key string) bool {
		switch key {
		case "unit_size":
			op.unit, unit = int64(s.number(1, math.MaxUint32)), true
		case "num_chunks":
			op.chunks, chunks = s.count(1), true
		default:
			return false
		}
		return true
	})
	s.need(pos, "the iteration context", unit, "unit_size", chunks, "num_chunks")
}

func (s *scanner) operand() rawBuf {
	b := rawBuf{pos: s.pos()}
	var have struct{ index, size bool }
	place := func(w ir.Where) {
		b.twice = b.twice || b.where != ir.WhereNowhere
		b.where = w
	}
	s.object("a buffer", func(key string) bool {
		switch key {
		case "type":
			b.buf = s.buffer()
			place(ir.WhereLocal)
		case "buffer_id":
			b.id = s.count(0)
			place(ir.WhereRemote)
		case "switch_channel_id":
			b.id = s.count(0)
			place(ir.WhereGroup)
		case "index":
			b.index, have.index = s.count(0), true
		case "size":
			b.size, have.size = s.count(1), true
		default:
			return false
		}
		return true
	})
	s.need(b.pos, "the buffer", have.index, "index", have.size, "size", b.where != ir.WhereNowhere, "type")
	if b.twice {
		s.failAt(b.pos, "plan-value", "the buffer has more than one of type, buffer_id and switch_channel_id")
	}
	return b
}

// oldOp is what operations of dialect D1 have instead.
type oldOp struct {
	in, out          oldKey
	inIDs, outIDs    []oldRef
	srcs, dsts       []oldPlace
	src, dst         oldPlace
	haveSrc, haveDst bool // srcoff, dstoff
	haveIn, haveOut  bool // i_buff, o_buff
	count            int32
	otherBlocks      []int32 // thread blocks that a nop waits for
}

// oldKey says which channels an index counts: those of one kind between one pair
// of buffers. The kind of an operation is its own.
type oldKey struct {
	kind     ir.ChannelKind
	src, dst ir.BufferID
}

type oldRef struct{ id, off int32 }

type oldPlace struct {
	buf ir.BufferID
	off int32
}

// oldField reads a field that only operations of D1 have.
func (s *scanner) oldField(op *rawOp, key string) bool {
	o := op.old
	if o == nil {
		o = &oldOp{}
	}
	switch key {
	case "i_buff":
		o.in, o.haveIn = s.oldBuffers(), true
	case "o_buff":
		o.out, o.haveOut = s.oldBuffers(), true
	case "i_cids":
		o.inIDs = s.oldRefs()
	case "o_cids":
		o.outIDs = s.oldRefs()
	case "srcs":
		o.srcs = s.oldPlaces()
	case "dsts":
		o.dsts = s.oldPlaces()
	case "srcbuff":
		o.src.buf = s.buffer()
	case "dstbuff":
		o.dst.buf = s.buffer()
	case "srcoff":
		o.src.off, o.haveSrc = s.count(0), true
	case "dstoff":
		o.dst.off, o.haveDst = s.count(0), true
	case "cnt":
		o.count = s.count(1)
	case "deps":
		o.otherBlocks = s.oldDeps()
	default:
		return false
	}
	op.old = o
	return true
}

func (s *scanner) oldBuffers() (k oldKey) {
	s.object("a pair of buffers", func(key string) bool {
		switch key {
		case "src":
			k.src = s.buffer()
		case "dst":
			k.dst = s.buffer()
		default:
			return false
		}
		return true
	})
	return k
}

func (s *scanner) oldRefs() (list []oldRef) {
	s.array("a list of channels", func() {
		var r oldRef
		s.object("a channel", func(key string) bool {
			switch key {
			case "id":
				r.id = s.count(0)
			case "off":
				r.off = s.count(0)
			default:
				return false
			}
			return true
		})
		list = append(list, r)
	})
	return list
}

func (s *scanner) oldPlaces() (list []oldPlace) {
	s.array("a list of buffers", func() {
		var p oldPlace
		s.object("a buffer", func(key string) bool {
			switch key {
			case "buff":
				p.buf = s.buffer()
			case "off":
				p.off = s.count(0)
			default:
				return false
			}
			return true
		})
		list = append(list, p)
	})
	return list
}

func (s *scanner) oldDeps() (blocks []int32) {
	s.array("a list of dependencies", func() {
		s.object("a dependency", func(key string) bool {
			if key != "tb" {
				return false
			}
			blocks = append(blocks, s.count(0))
			return true
		})
	})
	return blocks
}
