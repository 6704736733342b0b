package viz

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mscclsh/mscclsh/ir"
)

// puts is a picture of a one-sided program in the making. Operations in pipelines
// stand behind the pipeline that they belong to.
type puts struct {
	prog *ir.Program
	one  *ir.OneSided
	pic  *Picture
	rank []ir.Rank // of a node
	op   []int32   // of a node, index of OneSided.Ops
}

func oneSided(p *ir.Program) *Picture {
	x := &puts{prog: p, one: p.OneSided}
	n := p.Count()
	x.pic = &Picture{Stage: StageSchedule, Name: p.Name, Ranks: p.Ranks()}
	x.pic.About = about(p.Spec) + ", " + plural(n.Steps, "operation") + " on " + plural(n.TBs, "thread block")
	x.pic.Sizes = sizes(p)
	for r := range x.one.GPUs {
		for b, span := range x.one.GPUs[r].Blocks {
			x.pic.Lanes = append(x.pic.Lanes, Lane{Rank: ir.Rank(r), Block: int32(b)})
			for i := span.Start; i < span.End; i++ {
				x.node(ir.Rank(r), i)
				for j := x.one.Ops[i].Body.Start; j < x.one.Ops[i].Body.End; j++ {
					x.node(ir.Rank(r), j)
				}
			}
		}
	}
	x.signals()
	x.semaphores()
	x.barriers()
	x.packets()
	x.pic.levels()
	x.pic.alongLanes()
	x.follow()
	x.pic.label = func(i int32) string { return x.label(x.rank[i], &x.one.Ops[x.op[i]]) }
	x.pic.text = func(i int32) string { return p.OpString(x.rank[i], x.op[i]) }
	return x.pic
}

// node adds an operation to the last lane.
func (x *puts) node(r ir.Rank, op int32) {
	v, lane := int32(len(x.pic.Nodes)), int32(len(x.pic.Lanes)-1)
	if v > 0 && x.pic.Nodes[v-1].Lane == lane {
		x.join(EdgeOrder, v-1, v)
	}
	x.rank, x.op = append(x.rank, r), append(x.op, op)
	o := &x.one.Ops[op]
	x.pic.Nodes = append(x.pic.Nodes, Node{Kind: opKind(o), Lane: lane, ID: op, Pos: x.prog.Pos(o.Pos)})
}

func (x *puts) join(kind EdgeKind, from, to int32) {
	x.pic.Edges = append(x.pic.Edges, Edge{Kind: kind, From: from, To: to})
}

func opKind(o *ir.Op) Kind {
	remote := func(destination bool) bool {
		w, _ := o.Kind.Operand(o.Via, destination, 0)
		most, _ := o.Kind.Operand(o.Via, destination, 1<<20)
		return w == ir.WhereRemote || w == ir.WhereGroup || most == ir.WhereRemote
	}
	switch {
	case o.Src.Len() == 0:
		return KindSync
	case o.Kind.Reduces():
		return KindReduce
	case o.Kind == ir.OpReadPutPackets:
		return KindRelay
	case remote(true):
		return KindSend
	case remote(false), o.Kind == ir.OpUnpackPackets:
		return KindReceive
	}
	return KindCopy
}

// signals joins the k-th signal on a channel to the k-th wait at its other end.
func (x *puts) signals() {
	type end struct {
		rank    ir.Rank
		channel int32
	}
	given := map[end][]int32{}
	for v, i := range x.op {
		switch o := &x.one.Ops[i]; o.Kind {
		case ir.OpSignal, ir.OpRelaxedSignal, ir.OpPutSignal, ir.OpPutSignalFlush:
			for _, c := range x.one.RefsOf(o) {
				e := end{x.rank[v], c}
				given[e] = append(given[e], int32(v))
			}
		}
	}
	for v, i := range x.op {
		o := &x.one.Ops[i]
		if o.Kind != ir.OpWait && o.Kind != ir.OpRelaxedWait {
			continue
		}
		for _, c := range x.one.RefsOf(o) {
			ch := x.one.GPUs[x.rank[v]].Channels
			if c < 0 || int(c) >= len(ch) {
				continue
			}
			e := end{ch[c].Peer, ch[c].Pair}
			if queue := given[e]; len(queue) > 0 {
				x.join(EdgeMessage, queue[0], int32(v))
				given[e] = queue[1:]
			}
		}
	}
}

// semaphores joins what takes from a semaphore to what gave to it, beyond what
// was there.
func (x *puts) semaphores() {
	type name struct {
		rank ir.Rank
		n    int32
	}
	given, taken := map[name][]int32{}, map[name]int{}
	for v, i := range x.op {
		if o := &x.one.Ops[i]; o.Kind == ir.OpSemaphoreRelease {
			for _, n := range x.one.RefsOf(o) {
				given[name{x.rank[v], n}] = append(given[name{x.rank[v], n}], int32(v))
			}
		}
	}
	for v, i := range x.op {
		o := &x.one.Ops[i]
		if o.Kind != ir.OpSemaphoreAcquire {
			continue
		}
		for _, n := range x.one.RefsOf(o) {
			at, start := name{x.rank[v], n}, 0
			if all := x.one.GPUs[x.rank[v]].Semaphores; n >= 0 && int(n) < len(all) {
				start = int(all[n])
			}
			k := taken[at] - start
			taken[at]++
			if k >= 0 && k < len(given[at]) {
				x.join(EdgeWait, given[at][k], int32(v))
			}
		}
	}
}

// barriers joins each block's k-th arrival at a barrier to what the other blocks did
// before theirs.
func (x *puts) barriers() {
	type meeting struct {
		rank    ir.Rank
		barrier int32
		turn    int
	}
	type visitor struct{ lane, barrier int32 }
	met, turns := map[meeting][]int32{}, map[visitor]int{}
	var order []meeting
	for v, i := range x.op {
		o := &x.one.Ops[i]
		if o.Kind != ir.OpBarrier || o.Refs.Len() == 0 {
			continue
		}
		b := x.one.RefsOf(o)[0]
		who := visitor{x.pic.Nodes[v].Lane, b}
		m := meeting{x.rank[v], b, turns[who]}
		turns[who]++
		if len(met[m]) == 0 {
			order = append(order, m)
		}
		met[m] = append(met[m], int32(v))
	}
	for _, m := range order {
		for _, v := range met[m] {
			for _, u := range met[m] {
				if u != v && u > 0 && x.pic.Nodes[u-1].Lane == x.pic.Nodes[u].Lane {
					x.join(EdgeWait, u-1, v)
				}
			}
		}
	}
}

// packetAt is a chunk of packet scratch, or the slice of it that one of several
// thread blocks works on.
type packetAt struct {
	rank               ir.Rank
	index, part, parts int32
}

// packets joins who writes packets to who reads them: the k-th writer of a place to
// its k-th reader, or, where they cut it into different parts, all writers to each
// reader.
func (x *puts) packets() {
	written, read := map[packetAt][]int32{}, map[packetAt]int{}
	all := func(at packetAt) packetAt { return packetAt{rank: at.rank, index: at.index} }
	x.eachPacket(true, func(v int32, at packetAt) {
		written[at] = append(written[at], v)
		written[all(at)] = append(written[all(at)], v)
	})
	joined := map[[2]int32]bool{} // chunks that are read together have one writer
	join := func(u, v int32) {
		if e := [2]int32{u, v}; u != v && !joined[e] {
			joined[e] = true
			x.join(EdgeMessage, u, v)
		}
	}
	x.eachPacket(false, func(v int32, at packetAt) {
		if list := written[at]; len(list) > 0 {
			join(list[min(read[at], len(list)-1)], v)
			read[at]++
			return
		}
		for _, u := range written[all(at)] {
			join(u, v)
		}
	})
}

// eachPacket calls f for every chunk of packets that a node writes, or reads.
func (x *puts) eachPacket(writes bool, f func(v int32, at packetAt)) {
	for v, i := range x.op {
		o := &x.one.Ops[i]
		list := x.one.Sources(o)
		if writes {
			list = x.one.Destinations(o)
		}
		for k := range list {
			if !list[k].Packets {
				continue
			}
			for _, r := range x.ranksOf(&list[k]) {
				for c := range list[k].Size {
					f(int32(v), packetAt{r, list[k].Index + c, o.Part, o.Parts})
				}
			}
		}
	}
}

// ranksOf are those whose memory an operand means.
func (x *puts) ranksOf(o *ir.Operand) []ir.Rank {
	if o.Rank != ir.None {
		return []ir.Rank{o.Rank}
	}
	if o.Group >= 0 && int(o.Group) < len(x.one.Groups) {
		return x.one.Groups[o.Group].Ranks
	}
	return nil
}

// follow finds out what each operation moves.
func (x *puts) follow() {
	moved := int64(0)
	for _, i := range x.op {
		for _, o := range x.one.Destinations(&x.one.Ops[i]) {
			moved += int64(o.Size)
		}
	}
	if moved > maxMoved {
		return
	}
	m := programMemory(x.prog)
	for _, v := range x.pic.Order {
		o := &x.one.Ops[x.op[v]]
		src, dst := x.one.Sources(o), x.one.Destinations(o)
		if len(src) == 0 {
			continue
		}
		vs := x.read(m, src[:1])
		if o.Kind.Reduces() {
			vs = x.read(m, src)
		}
		all := slices.Clone(vs)
		for k := range dst {
			if o.Kind.Pairs() && k > 0 && k < len(src) {
				vs = x.read(m, src[k:k+1])
				all = append(all, vs...)
			}
			for _, r := range x.ranksOf(&dst[k]) {
				m.set(r, ir.Place{Buf: dst[k].Buf, Index: dst[k].Index}, vs)
			}
		}
		x.pic.Nodes[v].Moved = x.pic.moves(all)
	}
	x.pic.Values = m.values
}

// read is the sum of operands.
func (x *puts) read(m *memory, src []ir.Operand) []int32 {
	var sum []int32
	for k := range src {
		for _, r := range x.ranksOf(&src[k]) {
			vs := m.get(nil, r, ir.Place{Buf: src[k].Buf, Index: src[k].Index}, src[k].Size)
			if sum == nil {
				sum = vs
			} else {
				m.add(sum, vs)
			}
		}
	}
	return sum
}

// label is an operation in a few letters: what it does, to what, and with whom.
func (x *puts) label(r ir.Rank, o *ir.Op) string {
	text := o.Kind.String()
	if o.Kind == ir.OpPipeline {
		return fmt.Sprintf("pipeline of %d", o.Body.Len())
	}
	operands := append(slices.Clone(x.one.Destinations(o)), x.one.Sources(o)...)
	for k := range operands {
		if operands[k].Rank == r {
			text += " " + place(nil, ir.Place{Buf: operands[k].Buf, Index: operands[k].Index}, operands[k].Size)
			break
		}
	}
	return text + x.peers(r, o)
}

// peers names the first ranks that an operation has to do with, and counts the rest.
func (x *puts) peers(r ir.Rank, o *ir.Op) string {
	var to, from []ir.Rank
	for _, d := range x.one.Destinations(o) {
		to = append(to, x.ranksOf(&d)...)
	}
	for _, s := range x.one.Sources(o) {
		from = append(from, x.ranksOf(&s)...)
	}
	switch o.Kind {
	case ir.OpSignal, ir.OpRelaxedSignal, ir.OpWait, ir.OpRelaxedWait, ir.OpFlush:
		for _, c := range x.one.RefsOf(o) {
			if ch := x.one.GPUs[r].Channels; c >= 0 && int(c) < len(ch) {
				if o.Kind == ir.OpWait || o.Kind == ir.OpRelaxedWait {
					from = append(from, ch[c].Peer)
				} else {
					to = append(to, ch[c].Peer)
				}
			}
		}
	}
	return some(" ←", from, r) + some(" →", to, r)
}

func some(arrow string, ranks []ir.Rank, self ir.Rank) string {
	ranks = slices.DeleteFunc(slices.Clone(ranks), func(r ir.Rank) bool { return r == self })
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	switch len(ranks) {
	case 0:
		return ""
	case 1:
		return arrow + strconv.Itoa(int(ranks[0]))
	}
	return arrow + strconv.Itoa(int(ranks[0])) + ".." + strconv.Itoa(int(ranks[len(ranks)-1]))
}
