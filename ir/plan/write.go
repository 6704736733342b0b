package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
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
	channels [ir.ChannelSwitch + 1]firstUse // channels of ir; groups for switches
	remotes  [ir.ChannelSwitch + 1]firstUse // as remote numbers them
	all      firstUse                       // remote buffers via any channel
}

// remote numbers the buffers of all ranks.
func remote(a *ir.Operand) int32 { return int32(a.Rank)*(int32(ir.FirstScratch)+1) + int32(a.Buf) }

// remoteOf is the rank and buffer of a number.
func remoteOf(n int32) (ir.Rank, ir.BufferID) {
	buffers := int32(ir.FirstScratch) + 1
	return ir.Rank(n / buffers), ir.BufferID(n % buffers)
}

// firstUse lists numbers in the order in which they came first.
type firstUse struct {
	list  []int32
	index []int32 // of a number: its place in list, plus 1
}

func (f *firstUse) add(n int32) {
	for int(n) >= len(f.index) {
		f.index = append(f.index, make([]int32, int(n)+1-len(f.index))...)
	}
	if f.index[n] == 0 {
		f.list = append(f.list, n)
		f.index[n] = int32(len(f.list))
	}
}

// has reports whether n was added, at is its place in the list.
func (f *firstUse) has(n int32) bool { return int(n) < len(f.index) && f.index[n] > 0 }
func (f *firstUse) at(n int32) int32 { return f.index[n] - 1 }

func (f *firstUse) reset() {
	for _, n := range f.list {
		f.index[n] = 0
	}
	f.list = f.list[:0]
}

func newUses(p *ir.Program, rank int) *uses { return &uses{o: p.OneSided, rank: rank} }

// reset forgets all, for operations of the rank.
func (u *uses) reset(rank int) {
	u.rank = rank
	for k := range u.channels {
		u.channels[k].reset()
		u.remotes[k].reset()
	}
	u.all.reset()
}

// add takes in what an operation names.
func (u *uses) add(op *ir.Op) {
	if op.Via == ir.ChannelMemory || op.Via == ir.ChannelPort {
		for _, c := range u.o.RefsOf(op) {
			u.channels[op.Via].add(c)
		}
	}
	for side, list := range [...][]ir.Operand{u.o.Sources(op), u.o.Destinations(op)} {
		for i := range list {
			a := &list[i]
			switch where, _ := op.Kind.Operand(op.Via, side == 1, i); where {
			case ir.WhereGroup:
				u.channels[ir.ChannelSwitch].add(a.Group)
			case ir.WhereRemote:
				u.remotes[op.Via].add(remote(a))
				u.all.add(remote(a))
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
	return write(w, p)
}

// WriteAsWritten is Write for a program whose author wants the plan that MSCCL++'s
// own compiler makes: what the format can say, and the executor does otherwise, is
// written too and comes back as warnings.
func WriteAsWritten(w io.Writer, p *ir.Program) (diag.List, error) {
	notes, err := refuseWritten(p)
	if err != nil {
		return notes, err
	}
	return notes, write(w, p)
}

// WriteWide is Write for runtimes whose tables are as large as a plan needs: the
// limits of MSCCL++'s executor don't count, only what the format can't say.
func WriteWide(w io.Writer, p *ir.Program) error {
	if err := refuse(p, false); err != nil {
		return err
	}
	return write(w, p)
}

func write(w io.Writer, p *ir.Program) error {
	wr := &writer{w: w, p: p, o: p.OneSided, buf: make([]byte, 0, writeBytes+writeBytes/4), part: newUses(p, 0), whole: newUses(p, 0)}
	wr.plan()
	wr.flush()
	if wr.err != nil {
		return fmt.Errorf("writing the plan %s: %w", p.Name, wr.err)
	}
	return nil
}

// writeBytes is how much of a plan is written at once, in bytes.
const writeBytes = 256 << 10

// writer writes JSON, and keeps the first error.
type writer struct {
	w   io.Writer
	err error
	buf []byte
	p   *ir.Program
	o   *ir.OneSided

	whole, part *uses   // of the present rank, and thread block
	number      []int32 // of the present rank's channels: their number among those of their kind
	groups      []int32 // the same of groups
}

func (w *writer) f(format string, args ...any) { w.buf = fmt.Appendf(w.buf, format, args...) }

// text and num append text and a number, which is faster than a format.
func (w *writer) text(s string) { w.buf = append(w.buf, s...) }

func (w *writer) num(before string, n int32) {
	w.buf = append(w.buf, before...)
	w.buf = strconv.AppendInt(w.buf, int64(n), 10)
}

func (w *writer) flush() {
	if w.err == nil {
		_, w.err = w.w.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

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
		w.text(",")
	}
}

func (w *writer) next(i int) {
	if i > 0 {
		w.text(", ")
	}
}

func (w *writer) gpu(g int) {
	gpu := &w.o.GPUs[g]
	in, out := planSizes(w.p.Coll, ir.Rank(g))
	w.f("\n    {\n      \"id\": %d,\n      \"input_chunks\": %d,\n      \"output_chunks\": %d,\n      \"scratch_chunks\": %d,\n", g, in, out, w.p.GPUs[g].Scratch)
	w.gpuChannels(g)
	u := w.whole
	u.reset(g)
	for b := range gpu.Blocks {
		ops := w.o.Ops[gpu.Blocks[b].Start:blockEnd(w.o, g, b)]
		for i := range ops {
			u.add(&ops[i])
		}
	}
	w.f("      \"remote_buffers\": [")
	for i, r := range u.all.list {
		rank, buf := remoteOf(r)
		w.comma(i)
		w.f("\n        {\"rank\": %d, \"type\": %q, \"access_channel_types\": [", rank, bufferWords[buf])
		n := 0
		for k := ir.ChannelMemory; k <= ir.ChannelPort; k++ {
			if u.remotes[k].has(r) {
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
		w.num("{\"init_value\": ", v)
		w.text("}")
	}
	w.f("],\n      \"threadblocks\": [")
	w.count(g)
	for b := range gpu.Blocks {
		w.comma(b)
		w.block(g, b)
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
			w.f("\n        {\"channel_type\": %q, \"connected_to\": ", k)
			w.numbers(peers)
			w.text("}")
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
			w.f("\n        {\"channel_type\": \"switch\", \"buffer_type\": %q, \"rank_groups\": [{\"size\": %d, \"ranks\": ", bufferWords[grp.Buf], len(ranks))
			w.numbers(ranks)
			w.text("}]}")
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

// numbers is a list of numbers.
func (w *writer) numbers(list []int32) {
	w.text("[")
	for i, n := range list {
		w.next(i)
		w.num("", n)
	}
	w.text("]")
}

// count numbers the channels of each kind that rank g has.
func (w *writer) count(g int) {
	var n [ir.ChannelSwitch + 1]int32
	w.number = w.number[:0]
	for i := range w.o.GPUs[g].Channels {
		k := w.o.GPUs[g].Channels[i].Kind
		w.number = append(w.number, n[k])
		n[k]++
	}
	w.groups = w.groups[:0]
	for i := range w.o.Groups {
		w.groups = append(w.groups, n[ir.ChannelSwitch])
		if contains(w.o.Groups[i].Ranks, g) {
			n[ir.ChannelSwitch]++
		}
	}
}

func (w *writer) block(g, b int) {
	span := w.o.GPUs[g].Blocks[b]
	u := w.part
	u.reset(g)
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
			number := w.number
			if k == ir.ChannelSwitch {
				number = w.groups
			}
			w.next(n)
			w.f("{\"channel_type\": %q, \"channel_ids\": ", k)
			w.numbers(mapped(list, func(c int32) int32 { return number[c] }))
			w.text("}")
			n++
		}
	}
	w.f("],\n          \"remote_buffer_refs\": [")
	n = 0
	for k := ir.ChannelMemory; k <= ir.ChannelPort; k++ {
		if list := u.remotes[k].list; len(list) > 0 {
			w.next(n)
			w.f("{\"access_channel_type\": %q, \"remote_buffer_ids\": ", k)
			w.numbers(mapped(list, w.whole.all.at))
			w.text("}")
			n++
		}
	}
	w.f("],\n          \"ops\": [")
	for i := span.Start; i < span.End; i++ {
		w.comma(int(i - span.Start))
		w.text("\n            ")
		w.op(u, &w.o.Ops[i])
	}
	w.text("\n          ]\n        }")
}

func mapped(list []int32, f func(int32) int32) []int32 {
	out := make([]int32, len(list))
	for i, n := range list {
		out[i] = f(n)
	}
	return out
}

func (w *writer) op(u *uses, op *ir.Op) {
	if len(w.buf) > writeBytes {
		w.flush()
	}
	w.text("{\"name\": \"")
	w.text(op.Kind.String())
	if op.Via != ir.ChannelNone {
		w.text("\", \"channel_type\": \"")
		w.text(op.Via.String())
	}
	w.text("\"")
	refs := w.o.RefsOf(op)
	switch op.Kind {
	case ir.OpBarrier:
		w.f(", \"barrier_id\": %d, \"num_threadblocks\": %d", refs[0], op.Parts)
	case ir.OpSemaphoreAcquire, ir.OpSemaphoreRelease:
		w.text(", \"semaphore_ids\": ")
		w.numbers(refs)
	case ir.OpPipeline:
		w.f(", \"iter_context\": {\"unit_size\": %d, \"num_chunks\": %d}, \"ops\": [", op.UnitBytes, op.UnitChunks)
		body := w.o.BodyOf(op)
		for i := range body {
			w.comma(i)
			w.text("\n              ")
			w.op(u, &body[i])
		}
		w.text("]")
	default:
		for i, c := range refs {
			if i == 0 {
				w.text(", \"channel_ids\": [")
			}
			w.next(i)
			w.num("", u.channels[op.Via].at(c))
		}
		if len(refs) > 0 {
			w.text("]")
		}
	}
	w.side(u, op, ", \"src_buff\": [", w.o.Sources(op), false)
	w.side(u, op, ", \"dst_buff\": [", w.o.Destinations(op), true)
	if op.Reduce != ir.ReduceByRun {
		w.f(", \"reduce_op\": %q", op.Reduce)
	}
	if op.Kind != ir.OpBarrier && op.Parts != 1 {
		w.f(", \"tbg_info\": {\"tb_id\": %d, \"tbg_size\": %d}", op.Part, op.Parts)
	}
	w.text("}")
}

func (w *writer) side(u *uses, op *ir.Op, key string, list []ir.Operand, destination bool) {
	if len(list) == 0 {
		return
	}
	w.text(key)
	for i := range list {
		a := &list[i]
		w.next(i)
		switch where, _ := op.Kind.Operand(op.Via, destination, i); where {
		case ir.WhereRemote:
			w.num("{\"buffer_id\": ", u.remotes[op.Via].at(remote(a)))
		case ir.WhereGroup:
			w.num("{\"switch_channel_id\": ", u.channels[ir.ChannelSwitch].at(a.Group))
		default:
			w.text("{\"type\": \"")
			w.text(bufferWords[a.Buf])
			w.text("\"")
		}
		w.num(", \"index\": ", a.Index)
		w.num(", \"size\": ", a.Size)
		w.text("}")
	}
	w.text("]")
}
