package plan

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
)

// planCollectives are the collectives that plans know by name.
var planCollectives = map[string]ir.CollectiveKind{"allreduce": ir.AllReduce, "allgather": ir.AllGather,
	"reducescatter": ir.ReduceScatter, "alltoall": ir.AllToAll, "broadcast": ir.Broadcast}

func planName(c *ir.Collective) string {
	for name, kind := range planCollectives {
		if kind == c.Kind {
			return name
		}
	}
	return c.Name
}

// planSizes are the chunks that rank r's buffers have in a plan. In a broadcast
// every rank has both buffers, whether it uses them or not.
func planSizes(c *ir.Collective, r ir.Rank) (in, out int32) {
	in, out = c.InputChunks(r), c.OutputChunks(r)
	if c.Kind == ir.Broadcast {
		in = max(in, out)
	}
	return in, out
}

// uses are the channels and remote buffers that operations name, in the order
// of their first use: what a plan's lists hold.
type uses struct {
	o        *ir.OneSided
	rank     int
	channels [ir.ChannelSwitch + 1]firstUse[int32] // channels of ir; groups for switches
	remotes  [ir.ChannelSwitch + 1]firstUse[remoteBuffer]
	all      firstUse[remoteBuffer] // via any channel
}

type remoteBuffer struct {
	rank ir.Rank
	buf  ir.BufferID
}

type firstUse[T comparable] struct {
	list  []T
	index map[T]int
}

func (f *firstUse[T]) add(v T) int {
	if i, ok := f.index[v]; ok {
		return i
	}
	if f.index == nil {
		f.index = map[T]int{}
	}
	f.index[v] = len(f.list)
	f.list = append(f.list, v)
	return len(f.list) - 1
}

func newUses(p *ir.Program, rank int) *uses { return &uses{o: p.OneSided, rank: rank} }

// add takes in what an operation names.
func (u *uses) add(op *ir.Op) {
	if op.Via == ir.ChannelMemory || op.Via == ir.ChannelPort {
		for _, c := range u.o.RefsOf(op) {
			u.channels[op.Via].add(c)
		}
	}
	for side, list := range [...][]ir.Operand{u.o.Sources(op), u.o.Destinations(op)} {
		for i, a := range list {
			switch where, _ := op.Kind.Operand(op.Via, side == 1, i); where {
			case ir.WhereGroup:
				u.channels[ir.ChannelSwitch].add(a.Group)
			case ir.WhereRemote:
				u.remotes[op.Via].add(remoteBuffer{a.Rank, a.Buf})
				u.all.add(remoteBuffer{a.Rank, a.Buf})
			}
		}
	}
}

// Write writes a one-sided program as a plan of the current dialect, the same
// bytes on every run. What Refuse says is returned before anything is written.
func Write(w io.Writer, p *ir.Program) error {
	if err := Refuse(p); err != nil {
		return err
	}
	wr := &writer{w: bufio.NewWriterSize(w, 64<<10), p: p, o: p.OneSided}
	wr.plan()
	if err := wr.w.Flush(); err != nil {
		return fmt.Errorf("writing the plan %s: %w", p.Name, err)
	}
	return nil
}

// writer writes JSON; bufio keeps the first error.
type writer struct {
	w *bufio.Writer
	p *ir.Program
	o *ir.OneSided
}

func (w *writer) f(format string, args ...any) { fmt.Fprintf(w.w, format, args...) }

// text is a JSON string.
func text(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // no string makes it fail
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (w *writer) plan() {
	p, o := w.p, w.o
	protocol := "Simple"
	if o.Packets {
		protocol = "LL"
	}
	most := uint64(math.MaxUint64)
	if p.MaxBytes > 0 {
		most = uint64(p.MaxBytes)
	}
	w.f("{\n  \"name\": %s,\n  \"collective\": %s,\n", text(p.Name), text(planName(p.Coll)))
	if p.Coll.Root != ir.None {
		w.f("  \"root\": %d,\n", p.Coll.Root)
	}
	w.f("  \"protocol\": %q,\n  \"inplace\": %t,\n  \"reuse_resources\": %t,\n", protocol, p.Coll.InPlace, o.ReuseResources)
	w.f("  \"num_threads_per_block\": %d,\n  \"use_double_scratch_buffer\": %t,\n  \"buffer_alignment\": %d,\n", o.ThreadsPerBlock, o.DoubleScratch, o.Alignment)
	w.f("  \"min_message_size\": %d,\n  \"max_message_size\": %d,\n  \"gpus\": [", p.MinBytes, most)
	for g := range o.GPUs {
		w.comma(g)
		w.gpu(g)
	}
	w.f("\n  ]\n}\n")
}

// comma goes between the elements of a list that has a line for each, next
// between those of one that has a line for all.
func (w *writer) comma(i int) {
	if i > 0 {
		w.f(",")
	}
}

func (w *writer) next(i int) {
	if i > 0 {
		w.f(", ")
	}
}

func (w *writer) gpu(g int) {
	gpu := &w.o.GPUs[g]
	in, out := planSizes(w.p.Coll, ir.Rank(g))
	w.f("\n    {\n      \"id\": %d,\n      \"input_chunks\": %d,\n      \"output_chunks\": %d,\n      \"scratch_chunks\": %d,\n", g, in, out, w.p.GPUs[g].Scratch)
	w.gpuChannels(g)
	u := newUses(w.p, g)
	for b := range gpu.Blocks {
		for i := gpu.Blocks[b].Start; i < blockEnd(w.o, g, b); i++ {
			u.add(&w.o.Ops[i])
		}
	}
	w.f("      \"remote_buffers\": [")
	for i, r := range u.all.list {
		w.comma(i)
		w.f("\n        {\"rank\": %d, \"type\": %q, \"access_channel_types\": [", r.rank, bufferWords[r.buf])
		n := 0
		for k := ir.ChannelMemory; k <= ir.ChannelPort; k++ {
			if _, ok := u.remotes[k].index[r]; ok {
				w.next(n)
				w.f("%q", k)
				n++
			}
		}
		w.f("]}")
	}
	w.f("],\n      \"semaphores\": [")
	for i, v := range gpu.Semaphores {
		w.next(i)
		w.f("{\"init_value\": %d}", v)
	}
	w.f("],\n      \"threadblocks\": [")
	for b := range gpu.Blocks {
		w.comma(b)
		w.block(g, b, u)
	}
	w.f("\n      ]\n    }")
}

func (w *writer) gpuChannels(g int) {
	w.f("      \"channels\": [")
	n := 0
	for k := ir.ChannelMemory; k <= ir.ChannelPort; k++ {
		peers := []int32{}
		for _, ch := range w.o.GPUs[g].Channels {
			if ch.Kind == k {
				peers = append(peers, int32(ch.Peer))
			}
		}
		if len(peers) > 0 {
			w.comma(n)
			w.f("\n        {\"channel_type\": %q, \"connected_to\": %s}", k, numbers(peers))
			n++
		}
	}
	for i := range w.o.Groups {
		if grp := &w.o.Groups[i]; contains(grp.Ranks, g) {
			ranks := make([]int32, len(grp.Ranks))
			for k, r := range grp.Ranks {
				ranks[k] = int32(r)
			}
			w.comma(n)
			w.f("\n        {\"channel_type\": \"switch\", \"buffer_type\": %q, \"rank_groups\": [{\"size\": %d, \"ranks\": %s}]}",
				bufferWords[grp.Buf], len(ranks), numbers(ranks))
			n++
		}
	}
	w.f("],\n")
}

func contains(ranks []ir.Rank, g int) bool {
	for _, r := range ranks {
		if int(r) == g {
			return true
		}
	}
	return false
}

func numbers(list []int32) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = itoa(n)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// ids are the numbers that a rank's list gives its channels of one kind.
func (w *writer) ids(g int, kind ir.ChannelKind, channels []int32) []int32 {
	number := make([]int32, 0, len(channels))
	for _, c := range channels {
		n := int32(0)
		if kind == ir.ChannelSwitch {
			for i := range c {
				if contains(w.o.Groups[i].Ranks, g) {
					n++
				}
			}
		} else {
			for _, ch := range w.o.GPUs[g].Channels[:c] {
				if ch.Kind == kind {
					n++
				}
			}
		}
		number = append(number, n)
	}
	return number
}

func (w *writer) block(g, b int, rank *uses) {
	span := w.o.GPUs[g].Blocks[b]
	u := newUses(w.p, g)
	for i := span.Start; i < span.End; i++ {
		u.add(&w.o.Ops[i])
		for k := range w.o.BodyOf(&w.o.Ops[i]) {
			u.add(&w.o.BodyOf(&w.o.Ops[i])[k])
		}
	}
	w.f("\n        {\n          \"id\": %d,\n          \"channels\": [", b)
	n := 0
	for k := ir.ChannelMemory; k <= ir.ChannelSwitch; k++ {
		if list := u.channels[k].list; len(list) > 0 {
			w.next(n)
			w.f("{\"channel_type\": %q, \"channel_ids\": %s}", k, numbers(w.ids(g, k, list)))
			n++
		}
	}
	w.f("],\n          \"remote_buffer_refs\": [")
	n = 0
	for k := ir.ChannelMemory; k <= ir.ChannelPort; k++ {
		if list := u.remotes[k].list; len(list) > 0 {
			ids := make([]int32, len(list))
			for i, r := range list {
				ids[i] = int32(rank.all.index[r])
			}
			w.next(n)
			w.f("{\"access_channel_type\": %q, \"remote_buffer_ids\": %s}", k, numbers(ids))
			n++
		}
	}
	w.f("],\n          \"ops\": [")
	for i := span.Start; i < span.End; i++ {
		w.comma(int(i - span.Start))
		w.f("\n            ")
		w.op(u, &w.o.Ops[i])
	}
	w.f("\n          ]\n        }")
}

func (w *writer) op(u *uses, op *ir.Op) {
	w.f("{\"name\": %q", op.Kind)
	if op.Via != ir.ChannelNone {
		w.f(", \"channel_type\": %q", op.Via)
	}
	refs := w.o.RefsOf(op)
	switch op.Kind {
	case ir.OpBarrier:
		w.f(", \"barrier_id\": %d, \"num_threadblocks\": %d", refs[0], op.Parts)
	case ir.OpSemaphoreAcquire, ir.OpSemaphoreRelease:
		w.f(", \"semaphore_ids\": %s", numbers(refs))
	case ir.OpPipeline:
		w.f(", \"iter_context\": {\"unit_size\": %d, \"num_chunks\": %d}, \"ops\": [", op.UnitBytes, op.UnitChunks)
		body := w.o.BodyOf(op)
		for i := range body {
			w.comma(i)
			w.f("\n              ")
			w.op(u, &body[i])
		}
		w.f("]")
	default:
		if len(refs) > 0 {
			ids := make([]int32, len(refs))
			for i, c := range refs {
				ids[i] = int32(u.channels[op.Via].index[c])
			}
			w.f(", \"channel_ids\": %s", numbers(ids))
		}
	}
	w.side(u, op, "src_buff", w.o.Sources(op), false)
	w.side(u, op, "dst_buff", w.o.Destinations(op), true)
	if op.Reduce != ir.ReduceByRun {
		w.f(", \"reduce_op\": %q", op.Reduce)
	}
	if op.Kind != ir.OpBarrier && op.Parts != 1 {
		w.f(", \"tbg_info\": {\"tb_id\": %d, \"tbg_size\": %d}", op.Part, op.Parts)
	}
	w.f("}")
}

func (w *writer) side(u *uses, op *ir.Op, key string, list []ir.Operand, destination bool) {
	if len(list) == 0 {
		return
	}
	w.f(", %q: [", key)
	for i, a := range list {
		w.next(i)
		switch where, _ := op.Kind.Operand(op.Via, destination, i); where {
		case ir.WhereRemote:
			w.f("{\"buffer_id\": %d", u.remotes[op.Via].index[remoteBuffer{a.Rank, a.Buf}])
		case ir.WhereGroup:
			w.f("{\"switch_channel_id\": %d", u.channels[ir.ChannelSwitch].index[a.Group])
		default:
			w.f("{\"type\": %q", bufferWords[a.Buf])
		}
		w.f(", \"index\": %d, \"size\": %d}", a.Index, a.Size)
	}
	w.f("]")
}
