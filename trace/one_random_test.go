package trace_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// Whatever calls are made, in whatever order and with whatever arguments: what the
// builder takes is a well-formed trace, which is written and read back as it was,
// and what it refuses changes nothing.
func TestOneRandomCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int32Range(1, 4).Draw(t, "ranks")
		kind := rapid.SampledFrom([]ir.CollectiveKind{ir.AllReduce, ir.AllGather, ir.ReduceScatter}).Draw(t, "collective")
		coll := ir.NewCollective(kind, n, 2, rapid.Bool().Draw(t, "in place"))
		protocol := rapid.SampledFrom([]ir.Protocol{ir.Simple, ir.LL}).Draw(t, "protocol")
		b, err := trace.NewOne(ir.Spec{Name: "p", Coll: coll, Protocol: protocol, Instances: 1}, trace.OneOptions{ThreadsPerBlock: 32, Alignment: 16})
		if err != nil {
			t.Fatal(err)
		}
		c := &caller{t: t, b: b, ranks: n}
		was := c.text()
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			refused := c.call() != nil
			now := c.text()
			if refused && now != was {
				t.Fatalf("a refused call changed\n%sinto\n%s", was, now)
			}
			was = now
		}
		again, err := ir.ParseOneTrace(strings.NewReader(was), "t")
		if err != nil {
			t.Fatalf("%v\n%s", err, was)
		}
		var s strings.Builder
		if err := again.WriteText(&s); err != nil || s.String() != was {
			t.Fatalf("%v: read back as\n%swas\n%s", err, s.String(), was)
		}
	})
}

// caller makes random calls with what earlier ones gave.
type caller struct {
	t          *rapid.T
	b          *trace.One
	ranks      int32
	scratch    []trace.OneBuffer
	channels   []trace.OneChannel
	semaphores []trace.OneSemaphore
	groups     []int32
	loop       bool
}

func (c *caller) text() string {
	var s strings.Builder
	if err := c.b.Snapshot().WriteText(&s); err != nil {
		c.t.Fatalf("the trace is malformed: %v", err)
	}
	return s.String()
}

// rank is one of the program's, or one beside them.
func (c *caller) rank() ir.Rank { return ir.Rank(rapid.Int32Range(-1, c.ranks).Draw(c.t, "rank")) }

// known is a rank of the program.
func (c *caller) known() ir.Rank { return ir.Rank(rapid.Int32Range(0, c.ranks-1).Draw(c.t, "known")) }

func (c *caller) chunk() trace.OneChunk {
	buf := c.b.Buffer(c.known(), rapid.SampledFrom([]ir.BufferID{ir.Input, ir.Output, ir.FirstScratch}).Draw(c.t, "buffer"))
	start := rapid.Int64Range(-1, 4).Draw(c.t, "start")
	x, err := c.b.Slice(buf, start, start+rapid.Int64Range(0, 3).Draw(c.t, "size"), 0)
	if err != nil { // any chunk that is there
		x, _ = c.b.Slice(c.b.Buffer(buf.Rank, ir.Input), 0, 1, 0)
	}
	return x
}

func (c *caller) blocks() []int32 {
	return rapid.SliceOfN(rapid.Int32Range(-1, 3), 0, 3).Draw(c.t, "blocks")
}

// one is a single thread block, or none.
func (c *caller) one() []int32 {
	return rapid.SliceOfN(rapid.Int32Range(0, 3), 0, 1).Draw(c.t, "block")
}

func (c *caller) call() error {
	pos := c.b.Pos(c.b.Spec().Pos(0))
	r, op := c.known(), rapid.SampledFrom([]ir.Reduction{ir.ReduceByRun, ir.ReduceSum, ir.ReduceMax}).Draw(c.t, "operator")
	switch rapid.IntRange(0, 6).Draw(c.t, "call") {
	case 0:
		return c.declare()
	case 1:
		kind := rapid.SampledFrom([]ir.OpKind{ir.OpCopy, ir.OpCopyToPackets, ir.OpUnpackPackets}).Draw(c.t, "copy")
		return c.b.Copy(kind, r, c.chunk(), c.chunk(), c.blocks(), pos)
	case 2:
		others := []trace.OneChunk{c.chunk(), c.chunk()}[:rapid.IntRange(0, 2).Draw(c.t, "others")]
		return c.b.Reduce(r, c.chunk(), c.chunk(), others, op, rapid.Bool().Draw(c.t, "packets"), c.blocks(), pos)
	case 3:
		return c.b.Barrier(r, c.blocks(), pos)
	case 4:
		if c.loop {
			c.b.EndLoop()
			c.loop = false
			return nil
		}
		err := c.b.Loop(rapid.Int64Range(0, 64).Draw(c.t, "unit"), rapid.Int32Range(0, 2).Draw(c.t, "chunks"), pos)
		c.loop = err == nil
		return err
	case 5:
		return c.byChannel(op, pos)
	}
	return c.bySwitch(op, pos)
}

func (c *caller) declare() (err error) {
	switch rapid.IntRange(0, 3).Draw(c.t, "declare") {
	case 0:
		var x trace.OneBuffer
		if x, err = c.b.Scratch(c.rank(), rapid.Int32Range(0, 3).Draw(c.t, "size"), 0); err == nil {
			c.scratch = append(c.scratch, x)
		}
	case 1:
		var x trace.OneChannel
		kind := rapid.SampledFrom([]ir.ChannelKind{ir.ChannelMemory, ir.ChannelPort}).Draw(c.t, "channel")
		if x, err = c.b.Channel(kind, c.rank(), c.rank(), 0); err == nil {
			c.channels = append(c.channels, x)
		}
	case 2:
		var x trace.OneSemaphore
		if x, err = c.b.Semaphore(c.rank(), rapid.Int32Range(-1, 1).Draw(c.t, "initial"), 0); err == nil {
			c.semaphores = append(c.semaphores, x)
		}
	case 3:
		var x int32
		if x, err = c.b.Switch([]ir.Rank{c.rank(), c.rank()}, rapid.SampledFrom([]ir.BufferID{ir.Input, ir.FirstScratch}).Draw(c.t, "of"), 0); err == nil {
			c.groups = append(c.groups, x)
		}
	}
	return err
}

func (c *caller) byChannel(op ir.Reduction, pos ir.PosID) error {
	if len(c.semaphores) > 0 && rapid.Bool().Draw(c.t, "semaphore") {
		kind := rapid.SampledFrom([]ir.OpKind{ir.OpSemaphoreAcquire, ir.OpSemaphoreRelease}).Draw(c.t, "kind")
		return c.b.SemaphoreOp(kind, rapid.SampledFrom(c.semaphores).Draw(c.t, "which"), c.one(), ir.SyncBoth, pos)
	}
	if len(c.channels) == 0 {
		return nil
	}
	ch := rapid.SampledFrom(c.channels).Draw(c.t, "channel")
	kinds := []ir.OpKind{ir.OpSignal, ir.OpRelaxedSignal, ir.OpWait, ir.OpRelaxedWait}
	moves := []ir.OpKind{ir.OpPut, ir.OpPutPackets, ir.OpReadPutPackets}
	if ch.Kind == ir.ChannelPort { // as the language has them
		kinds = append(kinds, ir.OpFlush)
		moves = append(moves, ir.OpPutSignal, ir.OpPutSignalFlush)
	} else {
		moves = append(moves, ir.OpGet)
	}
	switch rapid.IntRange(0, 2).Draw(c.t, "by") {
	case 0:
		return c.b.Sync(rapid.SampledFrom(kinds).Draw(c.t, "kind"), ch, c.one(), rapid.SampledFrom([]ir.DataSync{ir.SyncNone, ir.SyncBefore, ir.SyncBoth}).Draw(c.t, "sync"), pos)
	case 1:
		return c.b.Move(rapid.SampledFrom(moves).Draw(c.t, "kind"), ch, c.chunk(), c.chunk(), c.blocks(), pos)
	}
	if ch.Kind == ir.ChannelPort {
		return nil
	}
	return c.b.ReadReduce(ch, c.chunk(), c.chunk(), []trace.OneChunk{c.chunk()}, op, c.blocks(), pos)
}

func (c *caller) bySwitch(op ir.Reduction, pos ir.PosID) error {
	if len(c.groups) == 0 {
		return nil
	}
	g, r := rapid.SampledFrom(c.groups).Draw(c.t, "group"), c.known()
	if err := c.b.AtRank(g, r, 0); err != nil {
		return err
	}
	offset, size := rapid.Int32Range(-1, 3).Draw(c.t, "offset"), rapid.Int32Range(0, 3).Draw(c.t, "size")
	if rapid.Bool().Draw(c.t, "reduce") {
		return c.b.SwitchReduce(g, r, offset, size, c.chunk(), op, c.one(), pos)
	}
	kind := rapid.SampledFrom([]ir.OpKind{ir.OpGroupStore, ir.OpGroupStorePackets}).Draw(c.t, "store")
	return c.b.SwitchBroadcast(kind, g, r, c.chunk(), offset, size, c.one(), pos)
}
