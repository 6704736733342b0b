package cpu

import "sync/atomic"

// conn is one connection: a ring of slots with one sender and one receiver, each
// a single worker. Counters count messages since the start of the run.
type conn struct {
	key              connKey
	sender, receiver *worker
	messages         int64 // that the sender sends in one run
	chunks           int32 // in its largest message

	ring   []byte
	stride int64
	slots  int64
	size   []int64 // bytes in each slot, written before sent is raised
	// In chaos mode with LL and LL128: which parts of a slot's message are there.
	arrived [][]bool

	// The fields of either end on a cache line of their own: they are written all
	// the time.
	_         [64]byte
	sent      atomic.Int64
	freeUntil int64 // the sender's last look at taken, plus slots
	moved     int64 // bytes sent in this run
	_         [64]byte
	taken     atomic.Int64
	fullUntil int64 // the receiver's last look at sent
	_         [64]byte

	waitingReceiver atomic.Pointer[worker]
	waitingSender   atomic.Pointer[worker]
}

func (c *conn) allocate(slots, stride int64) {
	c.slots, c.stride = slots, stride
	c.ring = make([]byte, slots*stride)
	c.size = make([]int64, slots)
}

// reset empties the ring between runs.
func (c *conn) reset() {
	c.sent.Store(0)
	c.taken.Store(0)
	c.freeUntil, c.fullUntil, c.moved = c.slots, 0, 0
	for _, f := range c.arrived {
		clear(f)
	}
}

func (c *conn) slot(n int64) []byte { return c.ring[n%c.slots*c.stride:][:c.stride] }

func (c *conn) hasSlot() bool    { return c.sent.Load() < c.taken.Load()+c.slots }
func (c *conn) hasMessage() bool { return c.taken.Load() < c.sent.Load() }
