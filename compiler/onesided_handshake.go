package compiler

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// handshakes finds the connections on which a receiver has to tell that its
// kernel has begun.
func (x *export) handshakes() error {
	k := newKnowledge(x)
	heard := make([][]uint64, len(x.p.GPUs)) // by rank, at its end
	for r := range heard {
		heard[r] = make([]uint64, k.words)
		learn(heard[r], int32(r))
	}
	for b := range x.batches {
		k.batch(int32(b))
		union(heard[x.blocks[x.batches[b].block].rank], k.after[b].begun)
	}
	if !x.packets {
		return nil
	}
	for c := range x.conns {
		from, to := &x.blocks[x.conns[c].src], &x.blocks[x.conns[c].dst]
		if set := heard[from.rank]; !known(set, to.rank) {
			to.ready, from.ended = append(to.ready, int32(c)), append(from.ended, int32(c))
			learn(set, to.rank)
		}
	}
	return nil
}

// knowledge is of which ranks it is known that their kernels have begun, as
// messages and semaphores spread it: after a batch, and to the receiver of the
// message of a node.
type knowledge struct {
	*export
	words int
	after []ranks
	entry []ranks // before a batch: by every thread of the block
	told  []ranks
	over  map[[2]int32]bool // by pair of ranks: answers of settled
	query *batchQuery
}

// ranks are two sets: begun by any word of it, and published by one that also
// makes the writes of earlier launches seen.
type ranks struct{ begun, published []uint64 }

func newKnowledge(x *export) *knowledge {
	return &knowledge{export: x, words: (len(x.p.GPUs) + 63) / 64,
		after: make([]ranks, len(x.batches)), entry: make([]ranks, len(x.batches)), told: make([]ranks, len(x.nodes)),
		over: map[[2]int32]bool{}, query: newBatchQuery(x)}
}

func (r ranks) add(other ranks) {
	union(r.begun, other.begun)
	union(r.published, other.published)
}

func (r ranks) clone() ranks { return ranks{slices.Clone(r.begun), slices.Clone(r.published)} }

// batch finds what is known after batch b. It waits for signals before it sends
// anything; packets it may read after it has sent others, so they count only for
// a step that sends what it receives, and for the batches that come next in the block
// only after the threads have met: each thread reads packets of its own, or none.
func (k *knowledge) batch(b int32) {
	t := &k.batches[b]
	rank := k.blocks[t.block].rank
	set := ranks{make([]uint64, k.words), make([]uint64, k.words)}
	learn(set.begun, rank)
	learn(set.published, rank)
	before := k.previous(b)
	switch {
	case before == ir.None:
	case k.packets && len(k.batches[before].release)+len(t.acquire) == 0:
		set.add(k.entry[before])
	default:
		set.add(k.after[before])
	}
	for _, d := range t.deps {
		set.add(k.after[d])
	}
	entry := set.clone()
	k.entry[b] = entry
	if before != ir.None {
		set.add(k.after[before])
	}
	for _, i := range t.nodes {
		k.takes(i, func(from int32) { set.add(k.told[from]) })
	}
	k.after[b] = set
	for _, i := range t.nodes {
		n := &k.nodes[i]
		switch {
		case n.conn == ir.None:
		case k.packets:
			k.told[i] = entry.clone()
			k.takes(i, func(from int32) { k.told[i].add(k.told[from]) })
		default:
			k.told[i] = set
			if to := k.blocks[k.conns[n.conn].dst].rank; k.direct[n.sendTo] || !k.settled(rank, to) {
				k.ask(t, set, rank, n.conn)
			}
		}
	}
}

// settled reports whether a launch of rank ends after all that rank to does with
// its scratch, so that messages of the next launch may land there at once.
func (k *knowledge) settled(rank, to int32) bool {
	key := [2]int32{rank, to}
	answer, ok := k.over[key]
	if !ok {
		answer = true
		for _, b := range k.blockOf[to] {
			if last := k.lastScratch(b); last != ir.None && answer {
				answer = slices.ContainsFunc(k.blockOf[rank], func(own int32) bool {
					batches := k.blocks[own].batches
					return k.query.search(last, batches[len(batches)-1])
				})
			}
		}
		k.over[key] = answer
	}
	return answer
}

// lastScratch is the last batch of a block that touches scratch, or None.
func (k *knowledge) lastScratch(b int32) int32 {
	batches := k.blocks[b].batches
	for j := len(batches) - 1; j >= 0; j-- {
		for _, i := range k.batches[batches[j]].nodes {
			n := &k.nodes[i]
			s := n.step
			if n.recvFrom != ir.None && !k.direct[i] || s.Src.Buf == ir.FirstScratch || s.Dst.Buf == ir.FirstScratch {
				return batches[j]
			}
		}
	}
	return ir.None
}

// ask has the receiver of a connection tell the sender that it has begun, unless
// the sender knows.
func (k *knowledge) ask(t *batch, set ranks, rank, conn int32) {
	to := &k.blocks[k.conns[conn].dst]
	contested := k.contested[[2]int32{rank, to.rank}]
	if known(set.published, to.rank) || !contested && known(set.begun, to.rank) {
		return
	}
	t.ready, to.ready = append(t.ready, conn), append(to.ready, conn)
	learn(set.begun, to.rank)
	if contested {
		learn(set.published, to.rank)
	}
}

func learn(set []uint64, r int32)      { set[r/64] |= 1 << (r % 64) }
func known(set []uint64, r int32) bool { return set[r/64]>>(r%64)&1 != 0 }

func union(set, with []uint64) {
	for i, w := range with {
		set[i] |= w
	}
}
