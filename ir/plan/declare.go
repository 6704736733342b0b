package plan

import (
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// gpuTables say what the numbers in a rank's thread blocks mean.
type gpuTables struct {
	base   [ir.ChannelSwitch + 1]int32 // number in ir of the first channel of a kind
	count  [ir.ChannelSwitch + 1]int32
	groups []int32            // group of each switch channel
	byKey  map[oldKey][]int32 // original dialect: channels in ir, or groups, of one kind between one pair of buffers
}

// declare makes the channels, groups and semaphores of all ranks.
func (r *reader) declare() {
	r.tables = make([]gpuTables, len(r.raw.gpus))
	groups := map[string]int32{}
	for g := range r.raw.gpus {
		if r.err != nil {
			return
		}
		r.channels(int32(g))
		r.switches(int32(g), groups)
		raw := &r.raw.gpus[g]
		for i := range raw.remotes {
			if b := &raw.remotes[i]; int(b.rank) >= len(r.raw.gpus) {
				r.failf(raw.pos, "plan-value", "remote buffer %d is of rank %d, want one of %d", i, b.rank, len(r.raw.gpus))
			}
		}
		r.one.GPUs[g].Semaphores = raw.semaphores
	}
	if r.err != nil {
		return
	}
	r.one.PairChannels()
	r.sortGroups()
	r.undeclared()
	if r.dialect == Original {
		for g := range r.raw.gpus {
			r.keys(int32(g))
		}
	}
}

// channels lists a rank's channels: memory channels first, then ports, each as
// the executor numbers them.
func (r *reader) channels(g int32) {
	gpu, t := &r.one.GPUs[g], &r.tables[g]
	for _, kind := range [...]ir.ChannelKind{ir.ChannelMemory, ir.ChannelPort} {
		t.base[kind] = int32(len(gpu.Channels))
		for i := range r.raw.gpus[g].channels {
			c := &r.raw.gpus[g].channels[i]
			if c.kind != kind {
				continue
			}
			for _, peer := range c.peers {
				if int(peer) >= len(r.raw.gpus) || peer == g {
					r.failf(c.pos, "plan-value", "a channel of rank %d goes to rank %d, want another one of %d", g, peer, len(r.raw.gpus))
					return
				}
				gpu.Channels = append(gpu.Channels, ir.SignalChannel{Kind: kind, Peer: ir.Rank(peer), Pair: ir.None})
			}
		}
		t.count[kind] = int32(len(gpu.Channels)) - t.base[kind]
	}
}

// switches gives each switch channel of a rank its group: the k-th of all ranks on
// one buffer of one set of ranks are the same.
func (r *reader) switches(g int32, groups map[string]int32) {
	t, seen := &r.tables[g], map[string]int32{}
	for i := range r.raw.gpus[g].channels {
		c := &r.raw.gpus[g].channels[i]
		for _, list := range c.groups {
			if c.kind != ir.ChannelSwitch {
				break
			}
			ranks := make([]ir.Rank, len(list))
			for k, rank := range list {
				ranks[k] = ir.Rank(rank)
			}
			slices.Sort(ranks)
			if _, member := slices.BinarySearch(ranks, ir.Rank(g)); !member || int(ranks[len(ranks)-1]) >= len(r.raw.gpus) ||
				len(slices.Compact(slices.Clone(ranks))) != len(ranks) {
				r.failf(c.pos, "plan-value", "a switch channel of rank %d has ranks %v, want different ones of %d with this one",
					g, list, len(r.raw.gpus))
				return
			}
			key := groupKey(c.buf, ranks)
			seen[key]++
			key += " #" + itoa(seen[key])
			id, ok := groups[key]
			if !ok {
				id = int32(len(r.one.Groups))
				groups[key] = id
				r.one.Groups = append(r.one.Groups, ir.SwitchGroup{Buf: c.buf, Ranks: ranks})
			}
			t.groups = append(t.groups, id)
		}
	}
	t.count[ir.ChannelSwitch] = int32(len(t.groups))
}

func groupKey(b ir.BufferID, ranks []ir.Rank) string {
	var key strings.Builder
	key.WriteString(bufferWords[b])
	for _, r := range ranks {
		key.WriteByte(' ')
		key.WriteString(itoa(int32(r)))
	}
	return key.String()
}

// sortGroups puts groups in the order of their lowest rank, which is the order
// in which the ranks list them again when the program is written.
func (r *reader) sortGroups() {
	order := make([]int32, len(r.one.Groups))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return int(r.one.Groups[a].Ranks[0] - r.one.Groups[b].Ranks[0])
	})
	sorted, now := make([]ir.SwitchGroup, len(order)), make([]int32, len(order))
	for i, old := range order {
		sorted[i], now[old] = r.one.Groups[old], int32(i)
	}
	if len(sorted) > 0 {
		r.one.Groups = sorted
	}
	for g := range r.tables {
		for i, old := range r.tables[g].groups {
			r.tables[g].groups[i] = now[old]
		}
	}
}

// undeclared tells of ranks that are in a group and don't list it: the executor
// makes a group with all of its ranks, and waits for them.
func (r *reader) undeclared() {
	listed := make([][]int32, len(r.one.Groups)) // by which ranks, ascending
	for g := range r.tables {
		for _, id := range r.tables[g].groups {
			if l := listed[id]; len(l) == 0 || l[len(l)-1] != int32(g) {
				listed[id] = append(l, int32(g))
			}
		}
	}
	for id := range r.one.Groups {
		grp := &r.one.Groups[id]
		for i, g := range grp.Ranks {
			if i >= len(listed[id]) || listed[id][i] != int32(g) {
				r.once(diag.Warningf(r.raw.gpus[g].pos, "plan-switch", "rank %d has no switch channel to %s of ranks %v, which includes it",
					g, bufferWords[grp.Buf], grp.Ranks).Suggest("MSCCL++'s executor waits for all ranks of a group when it makes one"))
				return
			}
		}
	}
}

// blockTables say what numbers in the operations of one thread block mean.
type blockTables struct {
	channels [ir.ChannelSwitch + 1][]int32 // channels in ir, or groups
	remotes  [ir.ChannelSwitch + 1][]rawRemote
	byKey    map[oldKey][]int32 // original dialect
}

// blockLists resolves the lists of a thread block.
func (r *reader) blockLists(g int32, b *rawBlock) *blockTables {
	t, bt := &r.tables[g], &blockTables{}
	for i := range b.channels {
		c := &b.channels[i]
		for _, id := range c.ids {
			switch {
			case id >= t.count[c.kind]:
				r.failf(c.pos, "plan-value", "rank %d has no %s channel %d", g, c.kind, id)
			case c.kind == ir.ChannelSwitch:
				bt.channels[c.kind] = append(bt.channels[c.kind], t.groups[id])
			default:
				bt.channels[c.kind] = append(bt.channels[c.kind], t.base[c.kind]+id)
			}
			if r.err != nil {
				return bt
			}
		}
	}
	remotes := r.raw.gpus[g].remotes
	for i := range b.refs {
		c := &b.refs[i]
		for _, id := range c.ids {
			if int(id) >= len(remotes) || !remotes[id].via[c.kind] {
				r.failf(c.pos, "plan-value", "rank %d has no remote buffer %d that is reached via a %s channel", g, id, c.kind)
				return bt
			}
			bt.remotes[c.kind] = append(bt.remotes[c.kind], remotes[id])
		}
	}
	return bt
}

// blocks makes the thread blocks of a rank.
func (r *reader) blocks(g int32) {
	for b := range r.raw.gpus[g].blocks {
		raw := &r.raw.gpus[g].blocks[b]
		if int(raw.id) != b {
			r.failf(raw.pos, "plan-value", "thread block %d has id %d, want them in order from 0", b, raw.id)
		}
		if r.err != nil {
			return
		}
		l := lowering{reader: r, rank: ir.Rank(g)}
		if r.dialect == Original {
			l.t = r.oldLists(g, raw)
		} else {
			l.t = r.blockLists(g, raw)
		}
		l.block(raw)
	}
}

// lowering makes the operations of one thread block.
type lowering struct {
	*reader
	rank   ir.Rank
	t      *blockTables
	bodies [][]ir.Op
}

func (l *lowering) block(raw *rawBlock) {
	own := l.list(raw.ops)
	span := ir.Span{Start: int32(len(l.one.Ops))}
	l.one.Ops = append(l.one.Ops, own...)
	span.End = int32(len(l.one.Ops))
	for i := span.Start; i < span.End; i++ {
		if l.one.Ops[i].Kind == ir.OpPipeline && len(l.bodies) > 0 {
			l.one.Ops[i].Body = ir.Span{Start: int32(len(l.one.Ops)), End: int32(len(l.one.Ops) + len(l.bodies[0]))}
			l.one.Ops, l.bodies = append(l.one.Ops, l.bodies[0]...), l.bodies[1:]
		}
	}
	gpu := &l.one.GPUs[l.rank]
	gpu.Blocks = append(gpu.Blocks, span)
}

// list makes operations and remembers the bodies of pipelines.
func (l *lowering) list(raw []rawOp) (ops []ir.Op) {
	for i := range raw {
		if l.err != nil {
			return ops
		}
		before := len(ops)
		if l.dialect == Original {
			ops = append(ops, l.oldOps(&raw[i])...)
		} else if op, ok := l.op(&raw[i]); ok {
			ops = append(ops, op)
		}
		for k := before; k < len(ops) && l.err == nil; k++ {
			if err := l.p.ValidateOp(l.rank, &ops[k]); err != nil {
				l.failf(raw[i].pos, "plan-value", "%s", err.Error())
			}
		}
		if l.err == nil && len(ops) > before && ops[before].Kind == ir.OpPipeline {
			l.bodies = append(l.bodies, l.list(raw[i].body))
		}
	}
	return ops
}

// refs appends to the table of channels, semaphores and barriers.
func (l *lowering) refs(list ...int32) ir.Span {
	from := int32(len(l.one.Refs))
	l.one.Refs = append(l.one.Refs, list...)
	return ir.Span{Start: from, End: int32(len(l.one.Refs))}
}

// operands appends to the table of operands.
func (l *lowering) operands(list ...ir.Operand) ir.Span {
	from := int32(len(l.one.Operands))
	l.one.Operands = append(l.one.Operands, list...)
	return ir.Span{Start: from, End: int32(len(l.one.Operands))}
}

// pick looks a number up in a thread block's list.
func (l *lowering) pick(pos diag.Pos, what string, list []int32, id int32) int32 {
	if int(id) >= len(list) {
		l.failf(pos, "plan-value", "the thread block has no %s %d", what, id)
		return 0
	}
	return list[id]
}
