package cpu

import (
	"encoding/binary"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/mscclsh/mscclsh/ir"
)

// packetData is the number of bytes of data in a packet: as many as in its flag, so
// that one store of eight bytes writes both.
const packetData = 4

// reset prepares the next run: counters as at the first launch, and a flag that no
// packet has yet.
func (o *oneSided) reset() {
	o.launch++
	o.done.Store(0)
	for r := range o.signals {
		for _, c := range o.signals[r] {
			c.value.Store(0)
			c.taken = 0
		}
		for _, c := range o.semaphores[r] {
			c.value.Store(c.initial)
		}
	}
	for _, b := range o.barriers {
		b.arrived.Store(0)
	}
}

// runOps executes a thread block of a one-sided program.
func (w *worker) runOps(e *engine) {
	w.moved, w.signals = 0, 0
	w.opsDone(e, w.ops, 0, -1)
}

// opsDone executes operations, of a pipeline on units of unit bytes (-1: all) from
// byte at on; false when the engine has stopped.
func (w *worker) opsDone(e *engine, ops []oneOp, at, unit int64) bool {
	for i := range ops {
		op := &ops[i]
		if e.stopped.Load() || !e.turn(w) {
			return false
		}
		if op.kind == ir.OpPipeline {
			for turn := range op.turns {
				w.turn = int32(turn)
				if !w.opsDone(e, op.body, turn*op.unit, op.unit) {
					return false
				}
			}
			w.turn = 0
			continue
		}
		var begin time.Time
		if e.events {
			begin = time.Now()
		}
		if !w.sync(e, op) || !w.move(e, op, at, unit) {
			return false
		}
		w.give(e, op)
		e.one.done.Add(1)
		if e.events {
			w.events = append(w.events, ir.Event{Rank: w.rank, TB: w.tb, Step: op.index, Tile: w.turn,
				Begin: begin.Sub(e.start).Nanoseconds(), End: time.Since(e.start).Nanoseconds()})
		}
	}
	return true
}

// sync waits for signals, semaphores and barriers.
func (w *worker) sync(e *engine, op *oneOp) bool {
	for _, c := range op.take {
		if op.kind == ir.OpSemaphoreAcquire {
			for v := c.value.Load(); ; v = c.value.Load() {
				if v > 0 {
					if c.value.CompareAndSwap(v, v-1) {
						break
					}
				} else if !e.await(w, wait{kind: waitSemaphore, step: op.index, spot: &c.spot, count: c}) {
					return false
				}
			}
			continue
		}
		goal := atomic.AddInt64(&c.taken, 1)
		if c.value.Load() < goal && !e.await(w, wait{kind: waitSignal, step: op.index, spot: &c.spot, count: c, goal: goal}) {
			return false
		}
	}
	if b := op.barrier; b != nil {
		n := b.arrived.Add(1)
		goal := (n + b.parts - 1) / b.parts * b.parts
		if n == goal {
			e.rouseAt(&b.spot)
		} else if !e.await(w, wait{kind: waitBarrier, step: op.index, spot: &b.spot, barrier: b, goal: goal}) {
			return false
		}
	}
	return true
}

// give signals and releases.
func (w *worker) give(e *engine, op *oneOp) {
	for _, c := range op.give {
		c.value.Add(1)
		w.signals++
		e.rouseAt(&c.spot)
	}
}

// rouseAt wakes those who sleep at a spot and may go on.
func (e *engine) rouseAt(s *spot) {
	if s.sleepers.Load() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := len(s.sleeping) - 1; i >= 0; i-- {
		if i < len(s.sleeping) {
			e.rouseLocked(s.sleeping[i])
		}
	}
}

// bit is a run of bytes of a lane, within one chunk.
type bit struct {
	lane    int
	at, end int64
}

// move does what an operation does to data. Where packets are missing, it goes on
// with other bits of the data first, as a GPU's threads would.
func (w *worker) move(e *engine, op *oneOp, at, unit int64) bool {
	todo := w.bits(e, op, at, unit)
	var missing []*uint64
	for len(todo) > 0 {
		missing = missing[:0]
		left := todo[:0]
		for i, b := range todo {
			if i > 0 && !e.turn(w) {
				return false
			}
			if p := w.bit(e, op, b); p != nil {
				missing = append(missing, p)
				left = append(left, b)
			}
		}
		if len(left) == len(todo) {
			if !e.await(w, wait{kind: waitPacket, step: op.index, spot: e.one.packets[w.rank], packets: missing, goal: int64(e.one.launch)}) {
				return false
			}
		}
		todo = left
	}
	return true
}

// bits cuts the lanes of an operation, as far as this turn of a pipeline goes, at
// chunks and into what the nearest cache holds.
func (w *worker) bits(e *engine, op *oneOp, at, unit int64) []bit {
	w.todo = w.todo[:0]
	chunk := max(e.layout.ChunkBytes(), 1)
	for i := range op.lanes {
		l := &op.lanes[i]
		from, to := int64(0), l.n
		if unit >= 0 {
			from = min(at, l.n)
			to = min(from+unit, l.n)
		}
		for from < to {
			end := min(to, from+piece, (l.skip+from)/chunk*chunk+chunk-l.skip)
			w.todo = append(w.todo, bit{i, from, end})
			from = end
		}
	}
	return w.todo
}

// bit does one bit of data, or returns a packet that it has to wait for.
func (w *worker) bit(e *engine, op *oneOp, b bit) *uint64 {
	l := &op.lanes[b.lane]
	n := b.end - b.at
	raw := op.kind == ir.OpPutPackets && l.reads[0].packets
	if raw { // by a port, whatever is there
		src := e.words(l.reads[0], b)
		for _, d := range l.writes {
			dst := e.words(d, b)
			for i := range dst {
				atomic.StoreUint64(&dst[i], atomic.LoadUint64(&src[i]))
			}
			w.wrote(e, d, n)
		}
		return nil
	}
	if len(l.reads) == 1 && len(l.writes) == 1 && !l.reads[0].packets && !l.writes[0].packets {
		copy(e.bytesAt(l.writes[0], b), e.bytesAt(l.reads[0], b))
		if l.reads[0].rank != w.rank {
			w.moved += n
		}
		w.wrote(e, l.writes[0], n)
		return nil
	}
	acc := w.buffer(0)[:n]
	for i, s := range l.reads {
		into := acc
		if i > 0 {
			into = w.buffer(1)[:n]
		}
		if s.rank != w.rank {
			w.moved += n
		}
		if s.packets {
			if p := e.readPackets(into, s, b); p != nil {
				return p
			}
		} else {
			src := e.bytesAt(s, b)
			if i > 0 {
				into = src
			} else {
				copy(into, src)
			}
		}
		if i > 0 {
			op.fold.Into(acc, acc, into)
		}
	}
	for _, d := range l.writes {
		if d.packets {
			e.writePackets(acc, d, b)
		} else {
			copy(e.bytesAt(d, b), acc)
		}
		w.wrote(e, d, n)
	}
	return nil
}

// wrote counts what goes to another rank, and wakes who waits for packets there.
func (w *worker) wrote(e *engine, d area, n int64) {
	if d.rank != w.rank {
		w.moved += n
	}
	if d.packets {
		e.rouseAt(e.one.packets[d.rank])
	}
}

func (w *worker) buffer(i int) []byte {
	if w.buffers[i] == nil {
		w.buffers[i] = make([]byte, piece)
	}
	return w.buffers[i]
}

func (e *engine) bytesAt(a area, b bit) []byte {
	return e.ranks[a.rank].bytes[a.at+b.at : a.at+b.end]
}

// words are the packets of a bit.
func (e *engine) words(a area, b bit) []uint64 {
	mem := e.ranks[a.rank].bytes[a.at+2*b.at : a.at+2*b.end]
	if len(mem) == 0 {
		return nil
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), len(mem)/8)
}

// packetFlag is the launch that wrote a packet.
func packetFlag(p *uint64) uint32 { return uint32(atomic.LoadUint64(p) >> 32) }

func (e *engine) readPackets(dst []byte, a area, b bit) *uint64 {
	words := e.words(a, b)
	for i := range words {
		v := atomic.LoadUint64(&words[i])
		if uint32(v>>32) != e.one.launch {
			return &words[i]
		}
		binary.LittleEndian.PutUint32(dst[packetData*i:], uint32(v))
	}
	return nil
}

func (e *engine) writePackets(src []byte, a area, b bit) {
	words := e.words(a, b)
	for i := range words {
		v := uint64(binary.LittleEndian.Uint32(src[packetData*i:]))
		atomic.StoreUint64(&words[i], v|uint64(e.one.launch)<<32)
	}
}
