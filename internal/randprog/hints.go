package randprog

import "github.com/mscclsh/mscclsh/ir"

// block is a thread block under manual assignment: at most one peer each way and
// one channel, so that every connection end has one owner.
type block struct {
	send, recv ir.Rank
	channel    int32
}

// assign chooses the hints. Program order on blocks of this kind never
// deadlocks: the earliest unfinished operation finds everything before it done.
func (g *generator) assign() {
	if g.spec.Policy == ir.Auto {
		if g.one(3) {
			for i := range g.ops {
				if g.one(2) {
					g.ops[i].hints.Chan = int32(g.IntN(3))
				}
			}
		}
		return
	}
	blocks := make([][]block, g.spec.Coll.Ranks)
	channels := g.between(1, 3)
	for i := range g.ops {
		o := &g.ops[i]
		from, to := o.src.rank, o.dst.rank
		if from == to {
			o.hints.SendTB = g.block(&blocks[from], ir.None, ir.None, int32(g.IntN(channels)), true)
			continue
		}
		ch := int32(g.IntN(channels))
		o.hints.Chan = ch
		if ch == 0 && g.one(2) {
			o.hints.Chan = ir.None // the same as 0
		}
		o.hints.SendTB = g.block(&blocks[from], to, ir.None, ch, false)
		o.hints.RecvTB = g.block(&blocks[to], ir.None, from, ch, false)
	}
}

// block finds the owner of a connection end, or chooses one for it: a block of
// the channel that has no such end yet, or a new one. Local operations fit
// anywhere.
func (g *generator) block(blocks *[]block, send, recv ir.Rank, channel int32, local bool) int32 {
	var fit []int
	for i, b := range *blocks {
		switch {
		case local:
			fit = append(fit, i)
		case b.channel != channel:
		case send != ir.None && b.send == send || recv != ir.None && b.recv == recv:
			return int32(i)
		case send != ir.None && b.send == ir.None || recv != ir.None && b.recv == ir.None:
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 || g.one(3) {
		*blocks = append(*blocks, block{send, recv, channel})
		return int32(len(*blocks) - 1)
	}
	b := fit[g.IntN(len(fit))]
	if send != ir.None {
		(*blocks)[b].send = send
	}
	if recv != ir.None {
		(*blocks)[b].recv = recv
	}
	return int32(b)
}
