package checker

import (
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// window is the range of sizes to judge: chunk sizes in bytes, and K, the
// chunks in a message, at its two ends.
type window struct {
	t              ir.Transport
	minChunk       int64
	maxChunk       int64 // 0 is no limit
	leastK, mostK  int32
	numChunks      int32
	minBytes, most int64 // total bytes; most 0 is no limit
}

func newWindow(p *ir.Program, o Options) window {
	w := window{t: p.Transport, numChunks: max(p.Coll.NumChunks(), 1), minBytes: p.MinBytes, most: p.MaxBytes}
	if o.MinBytes > 0 {
		w.minBytes = o.MinBytes
	}
	if o.MaxBytes > 0 {
		w.most = o.MaxBytes
	}
	w.minChunk = max(chunkBytes(w.minBytes, w.numChunks), 1)
	w.mostK = w.regime(w.minChunk)
	w.leastK = 1
	if w.most > 0 {
		w.maxChunk = max(chunkBytes(w.most, w.numChunks), 1)
		w.leastK = min(w.regime(w.maxChunk), w.mostK)
	}
	return w
}

// emptyWindow refuses options and program that together leave no size.
func emptyWindow(p *ir.Program, o Options, f *findings) bool {
	least, most := p.MinBytes, p.MaxBytes
	if o.MinBytes > 0 {
		least = o.MinBytes
	}
	if o.MaxBytes > 0 {
		most = o.MaxBytes
	}
	if most == 0 || most >= least {
		return false
	}
	f.errorf(diag.Pos{}, CodeProgram, "the size window from %d to %d bytes is empty", least, most)
	return true
}

// chunkBytes is ir.ChunkBytes without overflow.
func chunkBytes(total int64, n int32) int64 {
	if total <= 0 {
		return 0
	}
	return (total-1)/int64(n) + 1
}

// regime is K for chunks of the given bytes.
func (w *window) regime(chunk int64) int32 { return w.t.Regime(chunk, 1) }

// reachable reports whether some size of the window has regime k: chunks of
// SlotBytes/k bytes are the largest with k in a slot, and every chunk size
// between the window's ends occurs.
func (w *window) reachable(k int32) bool {
	if k == w.leastK || k == w.mostK {
		return true
	}
	chunk := w.t.SlotBytes / int64(k)
	return chunk >= w.minChunk && (w.maxChunk == 0 || chunk <= w.maxChunk) && w.regime(chunk) == k
}

// regimes lists the K to judge, ascending: the least reachable one of each class
// that gives all steps the same numbers of messages.
//
// Judging the least K of the window would do for a yes. Let K < K', with n(s) and
// n'(s) = ceil(count/K') <= n(s) messages of step s. The program deadlocks iff
// this graph over messages has a cycle: the messages of a step in order, the last
// of a step before the first of what follows it in its thread block or waits for
// it, the send of a message before its receive, and the receive of message i of a
// connection before the send of message i + slots. Map message j of step s at K'
// to message j of step s at K. Every edge then maps to a path: the first four
// kinds clearly, given that both ends of a connection agree on the counts; and
// for the last, if two messages of a connection are exactly slots apart at K',
// they are at least slots apart at K, since the steps between them have no fewer
// messages there. So a cycle at K' is a cycle at K: what runs at K runs at every
// larger K. In the same way what runs with some slots runs with more.
func (m *model) regimes(w *window) []int32 {
	seen := map[int32]bool{}
	var counts []int32
	for i := range m.steps {
		s := &m.steps[i]
		if c := s.count; (s.sendConn != ir.None || s.recvConn != ir.None) && !seen[c] {
			seen[c] = true
			counts = append(counts, c)
		}
	}
	slices.Sort(counts)
	var out []int32
	var last, now []int32
	for k := w.leastK; k <= w.mostK; k++ {
		if !w.reachable(k) {
			continue
		}
		now = now[:0]
		for _, c := range counts {
			now = append(now, messages(c, k))
		}
		if len(out) == 0 || !slices.Equal(last, now) {
			out = append(out, k)
			last = append(last[:0], now...)
		}
	}
	return out
}
