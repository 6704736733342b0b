package compiler

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// OneSided turns a two-sided program into one of puts, signals, waits and
// packets, as MSCCL++'s executor runs them.
//
// Thread blocks. A one-sided block isn't tied to one peer, so all thread blocks
// of a rank that use one channel become one block: chains of receives from many
// peers then are one operation with many operands, and what thread blocks waited
// for each other is plain order. Instances have channels of their own and so stay
// parallel. A block of too many operations is cut into several with semaphores between
// them; where one has too many channels, fewer thread blocks are joined.
//
// Levels. A step's level counts the messages and semaphores on the longest way to
// it. The steps of a block of one level are a batch: it waits for everything it
// needs, moves data, then signals. Whatever a batch waits for comes from lower
// levels, so no program that ends with connections of any length can hang. (A
// program for a few slots ends with more, too.)
//
// Simple. Each message has a place of its own in the receiver's scratch, where it
// is put and then signaled; nobody waits for a free slot. It is put straight into
// its destination where everything that used this place before happens before
// the put. In the next launch a fast sender must not overwrite what a slow receiver
// still reads: at its start a receiver tells the sender that its kernel has begun,
// and so its last one ended. That is left out where the sender hears of that kernel
// in another way first, and for scratch if no launch of the sender ends before the
// receiver is done with scratch. The signal is relaxed, unless others than the sender
// write to that memory too.
//
// LL. Each message has a place of its own in packet scratch; flags in the packets
// replace signals. Launches alternate between two halves, so a sender may be one
// launch ahead, not two: if no message of a launch tells it that the receiver has
// begun, it asks for a signal before it ends. Packets carry no order for other
// data, so hazards on a rank are found anew and given semaphores. What is received
// into scratch to be passed on is read where it arrived. Results that
// are only passed on need a place that holds plain data: a dead one of the rank's
// output or input, else in scratch below the packets.
//
// Thread blocks meet (nop) between operations of which one writes what another
// touches, after waiting and before signaling.
//
// Errors are *diag.Message where the program is at fault or a plan can't hold it,
// ctx's error when canceled. The list says what the plan is not that was asked for.
func OneSided(ctx context.Context, p *ir.Program, o OneSidedOptions) (out *ir.Program, notes diag.List, err error) {
	if p.OneSided != nil {
		return nil, nil, diag.Errorf(diag.Pos{}, "one-sided", "program %q is one-sided already", p.Name)
	}
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	if p.Direct() {
		return nil, nil, noDirect(p.Name, ir.TargetPlain)
	}
	defer func() {
		if v := recover(); v != nil {
			out, notes = nil, nil
			err = fmt.Errorf("internal error in the plan export of program %q: %v; please report it with the script", p.Name, v)
		}
	}()
	p = sized(padded(p))
	if err := p.Validate(); err != nil { // padding may have made it too large
		return nil, nil, err
	}
	if o.KeepBlocks {
		return exportPlan(ctx, p, 1)
	}
	for _, join := range [...]int32{math.MaxInt32, 15, 8, 4, 2} {
		out, notes, err = exportPlan(ctx, p, join)
		if m, limit := err.(*diag.Message); !limit || m.Code != planLimit {
			return out, notes, err
		}
	}
	return exportPlan(ctx, p, 1)
}

// exportPlan tries with so many thread blocks joined to one, cutting those that
// are too long, until all fit.
func exportPlan(ctx context.Context, p *ir.Program, join int32) (*ir.Program, diag.List, error) {
	var parts []int32
	for {
		x := &export{p: p, packets: p.Protocol != ir.Simple, join: join, parts: parts}
		out, err := x.run(ctx)
		if err == nil {
			return out, x.notes(), nil
		}
		if parts = x.cut(); parts == nil {
			return nil, nil, err
		}
	}
}

// OneSidedOptions steers OneSided. The zero value makes one block a channel.
type OneSidedOptions struct {
	KeepBlocks bool // keep the thread blocks of the two-sided program
}

// Limits of MSCCL++'s executor (src/core/include/execution_common.hpp), which
// checks the first one only.
const (
	planOps      = 64 // operations of a block
	planChannels = 16 // channels of a block
	planBuffers  = 16 // buffers of other ranks that a block writes to
	planIDs      = 8  // channels or semaphores of an operation
	planOperands = 10 // sources, or destinations, of an operation
	planBytes    = math.MaxUint32

	// planPacketBytes bounds scratch with packets: the executor's own default. It
	// allocates for the largest size, whatever is sent.
	planPacketBytes = 1 << 27

	// planBlocks bounds the blocks that cutting makes of a rank: all of them have to
	// be on the GPU at once, and an A100 has 108 multiprocessors.
	planBlocks = 108
)

const (
	planLimit     = "plan-limit"
	planAlignment = 16   // bytes; packets carry 8 of data
	planThreads   = 1024 // of a block
)

// export is one try at a one-sided program.
type export struct {
	p       *ir.Program
	packets bool
	join    int32 // thread blocks of one channel that become one

	parts   []int32 // by node: which part of its block, nil for all in one
	nodes   []node  // of the two-sided program
	topo    []int32
	order   []int32 // by level, then as in topo
	blocks  []planBlock
	blockOf [][]int32 // of a rank: its blocks
	batches []batch   // by level, then block
	clock   [][]int32 // of a batch: by block of the rank, how many of its batches are done
	conns   []planConn
	sems    []int32 // of a rank: semaphores used

	direct    []bool            // by node: its message is put into its destination
	landing   []int32           // by node: index of its message in scratch, if not direct
	temp      []ir.Place        // by node: where a sum that is only passed on is kept
	contested map[[2]int32]bool // by sender and receiver, see findContested
	scratch   []int32           // of a rank: chunks
	reads     [][]piece         // by node: what it reads from scratch, of packets only
	unpack    []bool            // by node: what it receives is unpacked
	plain     []int32           // of a rank: chunks of scratch that hold plain data
}

func (x *export) run(ctx context.Context) (*ir.Program, error) {
	for _, step := range []func() error{
		x.build, x.sort, x.hazards, x.levels, x.batch, x.semaphores, x.place, x.handshakes,
	} {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("exporting %s: %w", x.p.Name, context.Cause(ctx))
		}
		if err := step(); err != nil {
			return nil, err
		}
	}
	return x.emit()
}

// notes tells what the plan is not, or what became of what was asked for.
func (x *export) notes() diag.List {
	var l diag.List
	if x.p.Protocol == ir.LL128 {
		l = append(l, &diag.Message{Severity: diag.Info, Code: "plan-protocol", Text: "plans have no LL128: the plan uses LL"})
	}
	if x.packets && slices.Max(x.plain) > 0 {
		l = append(l, &diag.Message{Severity: diag.Warning, Code: "plan-plain-scratch",
			Text:       "the plan keeps plain data beside packets in scratch: if MSCCL++ runs it with another size on the same buffers, old data may pass for packets",
			Suggestion: "run each size on buffers of its own, or declare the program as Simple"})
	}
	return l
}

// window is the range of sizes that the plan can run: total bytes, inclusive.
// Every chunk has at least the alignment, MSCCL++ keeps offsets in 32 bits,
// and packets are for small sizes.
func (x *export) window() (low, high int64, err error) {
	chunks := int64(x.p.Coll.NumChunks())
	chunk := int64(planBytes) // largest of a chunk, in bytes
	for r := range x.p.GPUs {
		g := &x.p.GPUs[r]
		chunk = min(chunk, planBytes/int64(max(g.Input, g.Output, x.scratch[r], 1)))
		if s := 4 * int64(x.scratch[r]); x.packets && s > 0 { // data and flags, in two halves
			chunk = min(chunk, planPacketBytes/s)
		}
	}
	step := chunks * planAlignment // the executor runs multiples of it
	high = chunk / planAlignment * step
	if x.p.MaxBytes > 0 {
		high = min(high, x.p.MaxBytes)
	}
	low = (max(x.p.MinBytes, step) + step - 1) / max(step, 1) * step
	if low > high {
		return 0, 0, diag.Errorf(diag.Pos{}, planLimit, "a plan can't hold %q: no multiple of %d bytes is a size from %d to %d", x.p.Name, step, x.p.MinBytes, high)
	}
	return low, high, nil
}

// node is a step of the two-sided program.
type node struct {
	rank, tb, at int32
	step         *ir.Step
	before       int32   // step before it in its thread block, or None
	sendTo       int32   // node that receives its message, or None
	recvFrom     int32   // node whose message it receives, or None
	deps         []int32 // nodes of other thread blocks of the rank
	conn         int32   // connection it sends on, or None
	block, level int32
	batch        int32
}

// connKey names a connection.
type connKey struct {
	src, dst ir.Rank
	channel  int32
}

func (k connKey) compare(o connKey) int {
	return cmp.Or(cmp.Compare(k.src, o.src), cmp.Compare(k.dst, o.dst), cmp.Compare(k.channel, o.channel))
}

// build lists the steps, matches sends with receives and gives thread blocks
// their blocks.
func (x *export) build() error {
	p := x.p
	x.blockOf = make([][]int32, len(p.GPUs))
	first := make([][]int32, len(p.GPUs)) // of a thread block: its first node
	for r := range p.GPUs {
		open := map[[3]int32]int32{}   // by channel, number on it, and part
		onChannel := map[int32]int32{} // thread blocks seen
		for t := range p.GPUs[r].TBs {
			tb := &p.GPUs[r].TBs[t]
			first[r] = append(first[r], int32(len(x.nodes)))
			key := [3]int32{tb.Chan, onChannel[tb.Chan] / x.join}
			onChannel[tb.Chan]++
			for s := range tb.Steps {
				if x.parts != nil {
					key[2] = x.parts[len(x.nodes)]
				}
				block, ok := open[key]
				if !ok {
					block = int32(len(x.blocks))
					open[key] = block
					x.blocks = append(x.blocks, planBlock{rank: int32(r), column: int32(len(x.blockOf[r])), pos: tb.Steps[s].Pos})
					x.blockOf[r] = append(x.blockOf[r], block)
				}
				n := node{rank: int32(r), tb: int32(t), at: int32(s), step: &tb.Steps[s], before: ir.None,
					sendTo: ir.None, recvFrom: ir.None, conn: ir.None, block: block}
				if s > 0 {
					n.before = int32(len(x.nodes) - 1)
				}
				if err := x.bounds(&n); err != nil {
					return err
				}
				x.nodes = append(x.nodes, n)
			}
		}
	}
	for i := range x.nodes {
		n := &x.nodes[i]
		for _, d := range p.DepsOf(n.step) {
			n.deps = append(n.deps, first[n.rank][d.TB]+d.Step)
		}
	}
	return x.match()
}

// bounds refuses a step that touches what its rank does not have.
func (x *export) bounds(n *node) error {
	g, s := &x.p.GPUs[n.rank], n.step
	chunks := [...]int32{ir.Input: g.Input, ir.Output: g.Output, ir.FirstScratch: g.Scratch}
	for _, side := range [...]struct {
		used bool
		at   ir.Place
	}{{s.Kind.ReadsSrc(), s.Src}, {s.Kind.WritesDst(), s.Dst}} {
		if !side.used {
			continue
		}
		if b := side.at.Buf; b < 0 || int(b) >= len(chunks) || side.at.Index < 0 || side.at.Index > chunks[b]-s.Count {
			return diag.Errorf(x.p.Pos(s.Pos), "plan-bounds", "rank %d thread block %d step %d (%s) touches chunks that the rank doesn't have", n.rank, n.tb, n.at, s.Kind).
				Suggest("check the program first")
		}
	}
	return nil
}
