package jupyter

import "sync"

// queue holds requests that wait for the engine.
type queue struct {
	mu     sync.Mutex
	ready  *sync.Cond
	items  []queued
	closed bool
}

type queued struct {
	msg     *Message
	aborted bool // a cell before it failed
}

func newQueue() *queue {
	q := &queue{}
	q.ready = sync.NewCond(&q.mu)
	return q
}

func (q *queue) push(m *Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, queued{msg: m})
	q.ready.Signal()
}

// pop waits for a request; there is none once the queue is closed.
func (q *queue) pop() (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.ready.Wait()
	}
	if q.closed {
		return queued{}, false
	}
	first := q.items[0]
	q.items = q.items[1:]
	return first, true
}

// abort marks the cells that wait.
func (q *queue) abort() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.items {
		if q.items[i].msg.Header.Type == "execute_request" {
			q.items[i].aborted = true
		}
	}
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
}
