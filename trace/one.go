package trace

import (
	"fmt"
	"math"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// One records a one-sided program: operations that put, get, signal and wait,
// in the order in which they are written. What a single operation, or the list
// of all of them, can't mean is refused here; what they do together is for the
// checker to say. It is not safe for concurrent use.
//
// A call that fails returns a *diag.Message and leaves the program as it was.
type One struct {
	t       ir.OneTrace
	spec    ir.Spec
	places  positions
	scratch int64  // chunks on all ranks
	loop    int32  // the open loop, or None
	list    []side // room for the operands of an operation on its way into the tables
	loose   bool
	done    bool
}

// OneOptions are what a one-sided program asks for beside its Spec.
type OneOptions struct {
	AutoSync           bool
	DoubleScratch      bool
	ReuseResources     bool
	ThreadsPerBlock    int64 // threads
	Alignment          int64 // bytes
	MinBytes, MaxBytes int64 // MaxBytes 0 is no limit
	// Loose takes channels without another end that are used for data alone,
	// switch reductions whose result is not broadcast, and signals and waits that
	// are as many between two ranks but not on each channel, as MSCCL++'s compiler
	// does.
	Loose bool
}

// OneBuffer is memory of a rank: chunks Offset to Offset+Size of a buffer.
type OneBuffer struct {
	Rank         ir.Rank
	Buf          ir.BufferID // Input, Output or FirstScratch
	Offset, Size int32       // chunks
}

// OneChunk is a range of chunks that operations work on.
type OneChunk struct {
	Rank        ir.Rank
	Buf         ir.BufferID // Input, Output or FirstScratch
	Index, Size int32       // chunks
}

// OneChannel is one end of a pairwise channel: Ref is its index on rank Src.
type OneChannel struct {
	Kind     ir.ChannelKind
	Src, Dst ir.Rank
	Ref      int32
}

// OneSemaphore is a semaphore of a rank.
type OneSemaphore struct {
	Rank ir.Rank
	Ref  int32
}

// What the hardware and MSCCL++'s executor set bounds to.
const (
	maxThreads   = 1024
	maxAlignment = 1 << 20
)

// NewOne starts a program. Of spec, Topo, Buffers, Positions, Policy and what is
// msccl-tools' alone are ignored; Protocol is Simple or LL. spec.Coll is kept,
// not copied.
func NewOne(spec ir.Spec, o OneOptions) (*One, error) {
	spec = ir.Spec{Name: spec.Name, Coll: spec.Coll, Protocol: spec.Protocol, Instances: spec.Instances,
		Interleaved: spec.Interleaved, Fusion: spec.Fusion}
	with := spec
	if spec.Coll != nil {
		with.Topo = &ir.Topology{Name: "any", Ranks: spec.Coll.Ranks}
	}
	if m := checkSpec(&with); m != nil {
		return nil, m
	}
	if m := checkOneOptions(&spec, &o); m != nil {
		return nil, m
	}
	b := &One{spec: spec, loop: ir.None, loose: o.Loose}
	b.places.begin(&b.spec)
	b.t = ir.OneTrace{Spec: &b.spec, AutoSync: o.AutoSync, DoubleScratch: o.DoubleScratch, ReuseResources: o.ReuseResources,
		ThreadsPerBlock: int32(o.ThreadsPerBlock), Alignment: int32(o.Alignment), MinBytes: o.MinBytes, MaxBytes: o.MaxBytes,
		GPUs: make([]ir.TraceGPU, spec.Coll.Ranks)}
	return b, nil
}

func checkOneOptions(s *ir.Spec, o *OneOptions) *diag.Message {
	bad := func(format string, args ...any) *diag.Message {
		return diag.Errorf(diag.Pos{}, "bad-program", "program: "+format, args...)
	}
	switch {
	case s.Protocol != ir.Simple && s.Protocol != ir.LL:
		return bad("protocol: got %s, want Simple or LL", s.Protocol)
	case o.ThreadsPerBlock < 1 || o.ThreadsPerBlock > maxThreads:
		return bad("num_threads_per_block: got %d, want 1 to %d", o.ThreadsPerBlock, maxThreads)
	case o.Alignment < 1 || o.Alignment > maxAlignment:
		return bad("buffer_alignment: got %d, want 1 to %d bytes", o.Alignment, maxAlignment)
	case o.MinBytes < 0 || o.MaxBytes < 0 || o.MaxBytes > 0 && o.MaxBytes < o.MinBytes:
		return bad("message sizes: got %d to %d bytes, which is no range", o.MinBytes, o.MaxBytes)
	}
	return nil
}

// Pos gives the id of a position; see Builder.Pos.
func (b *One) Pos(p diag.Pos) ir.PosID { return b.places.id(&b.spec, p) }

// Spec is the program's header. The caller must not change it.
func (b *One) Spec() *ir.Spec { return &b.spec }

// Ops is the number of operations recorded so far.
func (b *One) Ops() int { return len(b.t.Ops) }

func (b *One) errorf(pos ir.PosID, code, format string, args ...any) *diag.Message {
	return diag.Errorf(b.spec.Pos(pos), code, format, args...)
}

// rank checks that r is one of the program's; what names the argument.
func (b *One) rank(call, what string, r ir.Rank, pos ir.PosID) *diag.Message {
	if r < 0 || int32(r) >= b.spec.Coll.Ranks {
		return b.errorf(pos, "bad-rank", "%s: %s: got %d, want a rank from 0 to %d", call, what, r, b.spec.Coll.Ranks-1)
	}
	return nil
}

// Rank checks that r is a rank of the program.
func (b *One) Rank(r ir.Rank, pos ir.PosID) error {
	if m := b.rank("Rank", "rank", r, pos); m != nil {
		return m
	}
	return nil
}

// Buffer is the input, the output, or all scratch so far of a rank.
func (b *One) Buffer(r ir.Rank, buf ir.BufferID) OneBuffer {
	return OneBuffer{Rank: r, Buf: buf, Size: b.t.Chunks(r, buf)}
}

// Scratch gives rank r another size chunks of scratch, behind what it has.
func (b *One) Scratch(r ir.Rank, size int32, pos ir.PosID) (OneBuffer, error) {
	if m := b.rank("Buffer", "rank", r, pos); m != nil {
		return OneBuffer{}, m
	}
	if size < 1 {
		return OneBuffer{}, b.errorf(pos, "bad-argument", "Buffer: size: got %d chunks, want 1 or more", size)
	}
	total := b.scratch + int64(size)
	if total > ir.MaxLocations {
		return OneBuffer{}, b.errorf(pos, "too-large", "Buffer: %d chunks of scratch on all ranks, want %d at most", total, ir.MaxLocations)
	}
	b.scratch = total
	gpu := &b.t.GPUs[r]
	buf := OneBuffer{Rank: r, Buf: ir.FirstScratch, Offset: gpu.Scratch, Size: size}
	gpu.Scratch += size
	return buf, nil
}

// Slice is chunks start to stop of a buffer.
func (b *One) Slice(buf OneBuffer, start, stop int64, pos ir.PosID) (OneChunk, error) {
	if start < 0 || start >= stop || stop > int64(buf.Size) {
		return OneChunk{}, b.badSlice(buf, start, stop, pos)
	}
	return OneChunk{buf.Rank, buf.Buf, buf.Offset + int32(start), int32(stop - start)}, nil
}

func (b *One) badSlice(buf OneBuffer, start, stop int64, pos ir.PosID) error {
	name := onePlace(buf.Rank, buf.Buf)
	switch {
	case start < 0 || stop < 0:
		what, n := "stop", stop
		if start < 0 { // the stop may not be what was written: Starlark lets it be no less than the start
			what, n = "start", start
		}
		return b.errorf(pos, "negative-index", "%s: got a %s of %d, want 0 or more", name, what, n).
			Suggest("count from the start: the buffer has %d chunks", buf.Size)
	case start == stop:
		return b.errorf(pos, "empty-slice", "%s: got a slice from %d on without chunks, want a stop above the start", name, start).
			Suggest("chunk i alone is [i:i + 1]")
	case start > stop:
		return b.errorf(pos, "empty-slice", "%s: got [%d:%d], want the start before the stop", name, start, stop)
	}
	return b.errorf(pos, "out-of-range", "%s: [%d:%d] is not within its %d chunks", name, start, stop, buf.Size).
		Suggest("%s", oneSizeAdvice(buf))
}

func oneSizeAdvice(buf OneBuffer) string {
	switch {
	case buf.Buf == ir.FirstScratch:
		return fmt.Sprintf("Buffer(%d, n) makes one of n chunks", buf.Rank)
	case buf.Size == 0:
		return "the collective gives the rank no such buffer"
	}
	return "its size follows from the collective and its chunk_factor"
}

// Channel makes one end of a channel, by which rank src reaches rank dst.
func (b *One) Channel(kind ir.ChannelKind, dst, src ir.Rank, pos ir.PosID) (OneChannel, error) {
	call := "MemoryChannel"
	if kind == ir.ChannelPort {
		call = "PortChannel"
	}
	for _, m := range []*diag.Message{b.ended(call, pos), b.rank(call, "dst_rank", dst, pos), b.rank(call, "src_rank", src, pos)} {
		if m != nil {
			return OneChannel{}, m
		}
	}
	if dst == src {
		return OneChannel{}, b.errorf(pos, "bad-channel", "%s: rank %d can't have a channel to itself", call, src).
			Suggest("Rank(%d).copy moves data on the rank, and a Semaphore orders its thread blocks", src)
	}
	gpu := &b.t.GPUs[src]
	gpu.Channels = append(gpu.Channels, ir.TraceChannel{Kind: kind, Peer: dst, Pair: ir.None, Pos: pos})
	return OneChannel{kind, src, dst, int32(len(gpu.Channels) - 1)}, nil
}

// Switch makes a switch channel over one buffer of some ranks, and returns its
// number.
func (b *One) Switch(ranks []ir.Rank, buf ir.BufferID, pos ir.PosID) (int32, error) {
	if m := b.ended("SwitchChannel", pos); m != nil {
		return 0, m
	}
	if len(ranks) < 2 {
		return 0, b.errorf(pos, "bad-channel", "SwitchChannel: rank_list: got %s, want 2 or more", plural(int32(len(ranks)), "rank"))
	}
	sorted := slices.Clone(ranks)
	slices.Sort(sorted)
	for i, r := range sorted {
		if m := b.rank("SwitchChannel", "rank_list", r, pos); m != nil {
			return 0, m
		}
		if i > 0 && r == sorted[i-1] {
			return 0, b.errorf(pos, "bad-channel", "SwitchChannel: rank_list: got rank %d twice", r)
		}
	}
	b.t.Groups = append(b.t.Groups, ir.TraceGroup{SwitchGroup: ir.SwitchGroup{Buf: buf, Ranks: sorted}, Pos: pos})
	return int32(len(b.t.Groups) - 1), nil
}

// Semaphore makes a semaphore between thread blocks of a rank.
func (b *One) Semaphore(r ir.Rank, initial int32, pos ir.PosID) (OneSemaphore, error) {
	if m := b.ended("Semaphore", pos); m != nil {
		return OneSemaphore{}, m
	}
	if m := b.rank("Semaphore", "rank", r, pos); m != nil {
		return OneSemaphore{}, m
	}
	if initial < 0 {
		return OneSemaphore{}, b.errorf(pos, "bad-argument", "Semaphore: initial_value: got %d, want 0 or more", initial)
	}
	gpu := &b.t.GPUs[r]
	gpu.Semaphores = append(gpu.Semaphores, ir.TraceSemaphore{Initial: initial, Pos: pos})
	return OneSemaphore{r, int32(len(gpu.Semaphores) - 1)}, nil
}

// Loop begins a loop, in units of so many bytes over so many chunks. Loops don't
// nest.
func (b *One) Loop(unit int64, chunks int32, pos ir.PosID) error {
	const call = "LoopIterationContext"
	switch {
	case b.ended(call, pos) != nil:
		return b.ended(call, pos)
	case b.loop != ir.None:
		return b.errorf(pos, "nested-loop", "%s: a loop can't stand in a loop", call).
			Note(b.spec.Pos(b.t.Loops[b.loop].Pos), "the outer loop begins here").
			Suggest("end the first loop before the second one begins")
	case unit < 1 || unit > math.MaxUint32:
		return b.errorf(pos, "bad-argument", "%s: unit: got %d, want 1 to %d bytes", call, unit, uint32(math.MaxUint32))
	case chunks < 1:
		return b.errorf(pos, "bad-argument", "%s: num_chunks: got %d, want 1 or more", call, chunks)
	}
	b.loop = int32(len(b.t.Loops))
	b.t.Loops = append(b.t.Loops, ir.TraceLoop{UnitBytes: unit, Chunks: chunks, Pos: pos})
	return nil
}

// EndLoop ends the loop.
func (b *One) EndLoop() { b.loop = ir.None }

// ended is the error of adding to a program that has ended.
func (b *One) ended(call string, pos ir.PosID) *diag.Message {
	if b.done {
		return b.errorf(pos, "program-ended", "%s: program %q has ended", call, b.spec.Name)
	}
	return nil
}

// onePlace is "rank 2 scratch".
func onePlace(r ir.Rank, buf ir.BufferID) string {
	return fmt.Sprintf("rank %d %s", r, [...]string{"input", "output", "scratch"}[buf])
}

// String is "rank 2 scratch[3:5]".
func (c OneChunk) String() string {
	return fmt.Sprintf("%s[%d:%d]", onePlace(c.Rank, c.Buf), c.Index, c.Index+c.Size)
}
