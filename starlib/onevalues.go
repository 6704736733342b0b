package starlib

import (
	"fmt"
	"math"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// oneValue is a value that belongs to a one-sided program and has methods.
type oneValue struct {
	p       *oneProgram
	typ     string
	text    string // as it is written
	methods []*signature
	fields  []string
	bound   []*builtin // the methods that were asked for
}

// method is v's method of that name, nil for none; recv is the value that v is
// part of. Each is made once: loops call the same ones over and over.
func (v *oneValue) method(recv starlark.Value, name string) starlark.Value {
	for _, b := range v.bound {
		if b.sig.name == name {
			return b
		}
	}
	m := method(v.p.in, recv, v.methods, name)
	if b, ok := m.(*builtin); ok {
		v.bound = append(v.bound, b)
	}
	return m
}

func (v *oneValue) String() string        { return v.text }
func (v *oneValue) Type() string          { return v.typ }
func (v *oneValue) Freeze()               {}
func (v *oneValue) Truth() starlark.Bool  { return true }
func (v *oneValue) Hash() (uint32, error) { return starlark.String(v.text).Hash() }
func (v *oneValue) AttrNames() []string   { return attrNames(v.methods, v.fields) }

// Fields of the values of one-sided programs.
var (
	oneRankFields = []string{"rank"}
	memoryFields  = []string{"rank", "buffer_type", "size"}
	chunkFields   = []string{"rank", "buffer", "index", "size"}
	channelFields = []string{"src_rank", "dst_rank"}
	groupFields   = []string{"tb_list"}
)

// rankValue is what Rank returns.
type rankValue struct {
	oneValue
	r ir.Rank
}

func (v *rankValue) Attr(name string) (starlark.Value, error) {
	if name == "rank" {
		return starlark.MakeInt(int(v.r)), nil
	}
	return v.method(v, name), nil
}

// channelValue is what MemoryChannel and PortChannel return.
type channelValue struct {
	oneValue
	c trace.OneChannel
}

func (v *channelValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "src_rank":
		return starlark.MakeInt(int(v.c.Src)), nil
	case "dst_rank":
		return starlark.MakeInt(int(v.c.Dst)), nil
	}
	return v.method(v, name), nil
}

// switchValue is what SwitchChannel returns, and at_rank of it with a rank.
type switchValue struct {
	oneValue
	group int32
	rank  ir.Rank // None before at_rank
}

func (v *switchValue) Attr(name string) (starlark.Value, error) {
	return v.method(v, name), nil
}

// semaphoreValue is what Semaphore returns.
type semaphoreValue struct {
	oneValue
	s trace.OneSemaphore
}

func (v *semaphoreValue) Attr(name string) (starlark.Value, error) {
	if name == "rank" {
		return starlark.MakeInt(int(v.s.Rank)), nil
	}
	return v.method(v, name), nil
}

// memoryValue is memory of a rank, to be sliced.
type memoryValue struct {
	p *oneProgram
	b trace.OneBuffer
}

var (
	_ starlark.Sliceable = (*memoryValue)(nil)
	_ starlark.Mapping   = (*memoryValue)(nil)
	_ starlark.HasAttrs  = (*memoryValue)(nil)
)

var bufferNames = [...]string{"input", "output", "scratch"}

func (v *memoryValue) String() string {
	return fmt.Sprintf("<%s of rank %d, %d chunks>", bufferNames[v.b.Buf], v.b.Rank, v.b.Size)
}
func (v *memoryValue) Type() string          { return "Buffer" }
func (v *memoryValue) Freeze()               {}
func (v *memoryValue) Truth() starlark.Bool  { return true }
func (v *memoryValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: Buffer") }
func (v *memoryValue) AttrNames() []string   { return memoryFields }

func (v *memoryValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "rank":
		return starlark.MakeInt(int(v.b.Rank)), nil
	case "buffer_type":
		return starlark.String(bufferNames[v.b.Buf]), nil
	case "size":
		return starlark.MakeInt(int(v.b.Size)), nil
	}
	return nil, nil
}

// sliceSpan is the length that slicing is told. Starlark cuts indices to the
// length and adds it to negative ones before a value sees them; with one that no
// buffer has, what was written can still be told.
const sliceSpan = math.MaxInt / 2

// Len is the number of chunks for len(...), and sliceSpan for slicing.
func (v *memoryValue) Len() int {
	if t := v.p.in.thread; t.CallStackDepth() > 0 {
		if b, ok := t.DebugFrame(0).Callable().(*starlark.Builtin); ok && b.Name() == "len" {
			return int(v.b.Size)
		}
	}
	return sliceSpan
}

// Index is never called: Get answers v[i] before.
func (v *memoryValue) Index(int) starlark.Value { return starlark.None }

// Get is v[i], which a buffer doesn't have.
func (v *memoryValue) Get(i starlark.Value) (starlark.Value, bool, error) {
	m := (&signature{name: onePlaceName(v.b)}).errorf("bad-argument", "got [%s], want a slice", i)
	if n, err := starlark.AsInt32(i); err == nil {
		m.Suggest("chunk %d alone is [%d:%d]", n, n, n+1)
	} else {
		m.Suggest("chunks a to b are [a:b + 1]")
	}
	return nil, false, m
}

func onePlaceName(b trace.OneBuffer) string {
	return fmt.Sprintf("rank %d %s", b.Rank, bufferNames[b.Buf])
}

// Slice is v[start:stop]. It can't return an error, so a failure stops the thread
// before its next instruction.
func (v *memoryValue) Slice(start, stop, step int) starlark.Value {
	in := v.p.in
	err := v.p.use("slice")
	if err == nil && step != 1 {
		err = (&signature{name: onePlaceName(v.b)}).errorf("slice-step", "got a step of %d, want 1", step).
			Suggest("a chunk is a run of neighbors: take several slices")
	}
	var c trace.OneChunk
	if err == nil {
		c, err = v.p.b.Slice(v.b, written(start, 0), written(stop, int(v.b.Size)), 0)
	}
	if err != nil {
		in.fail(positioned(err, in.here()))
	}
	return v.p.chunk(c)
}

// chunk is c as a value. Scripts make them by the hundred thousand: memory is asked
// for some at a time.
func (p *oneProgram) chunk(c trace.OneChunk) *chunkValue {
	if len(p.spare) == 0 {
		p.spare = make([]chunkValue, min(2*p.made+1, 64))
		p.made = len(p.spare)
	}
	v := &p.spare[0]
	p.spare = p.spare[1:]
	*v = chunkValue{p, c}
	return v
}

// written is the index that a script wrote, of one that slicing hands over; at
// the end is size.
func written(i, size int) int64 {
	switch {
	case i == sliceSpan && size > 0:
		return int64(size)
	case i > sliceSpan/2: // it was negative
		return int64(i) - sliceSpan
	}
	return int64(i)
}

// chunkValue is a slice of a buffer.
type chunkValue struct {
	p *oneProgram
	c trace.OneChunk
}

var (
	_ starlark.HasAttrs   = (*chunkValue)(nil)
	_ starlark.Comparable = (*chunkValue)(nil)
)

func (v *chunkValue) String() string {
	return fmt.Sprintf("Chunk(%d, %q, %d, %d)", v.c.Rank, bufferNames[v.c.Buf], v.c.Index, v.c.Size)
}
func (v *chunkValue) Type() string          { return "Chunk" }
func (v *chunkValue) Freeze()               {}
func (v *chunkValue) Truth() starlark.Bool  { return true }
func (v *chunkValue) Hash() (uint32, error) { return starlark.String(v.String()).Hash() }
func (v *chunkValue) AttrNames() []string   { return chunkFields }

func (v *chunkValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "rank":
		return starlark.MakeInt(int(v.c.Rank)), nil
	case "buffer":
		return starlark.String(bufferNames[v.c.Buf]), nil
	case "index":
		return starlark.MakeInt(int(v.c.Index)), nil
	case "size":
		return starlark.MakeInt(int(v.c.Size)), nil
	}
	return nil, nil
}

// CompareSameType compares places.
func (v *chunkValue) CompareSameType(op syntax.Token, y starlark.Value, _ int) (bool, error) {
	o := y.(*chunkValue)
	same := v.p == o.p && v.c == o.c
	switch op {
	case syntax.EQL:
		return same, nil
	case syntax.NEQ:
		return !same, nil
	}
	return false, fmt.Errorf("chunks have no order: %s has no meaning", op)
}

// blockGroup is what ThreadBlockGroup returns.
type blockGroup struct{ list []int32 }

var _ starlark.HasAttrs = (*blockGroup)(nil)

func (v *blockGroup) String() string       { return fmt.Sprintf("ThreadBlockGroup(%d blocks)", len(v.list)) }
func (v *blockGroup) Type() string         { return "ThreadBlockGroup" }
func (v *blockGroup) Freeze()              {}
func (v *blockGroup) Truth() starlark.Bool { return true }
func (v *blockGroup) Hash() (uint32, error) {
	return 0, fmt.Errorf("unhashable type: ThreadBlockGroup")
}
func (v *blockGroup) AttrNames() []string { return attrNames(blockGroupMethods, groupFields) }

func (v *blockGroup) Attr(name string) (starlark.Value, error) {
	if name == "tb_list" {
		list := make([]starlark.Value, len(v.list))
		for i, t := range v.list {
			list[i] = starlark.MakeInt(int(t))
		}
		return starlark.NewList(list), nil
	}
	return method(nil, v, blockGroupMethods, name), nil
}

// syncType is one of SyncType's values, which combine as the sides that they
// name.
type syncType ir.DataSync

var (
	_ starlark.HasBinary  = syncType(0)
	_ starlark.Comparable = syncType(0)
)

func (s syncType) String() string        { return "SyncType." + ir.DataSync(s).String() }
func (s syncType) Type() string          { return "SyncType" }
func (s syncType) Freeze()               {}
func (s syncType) Truth() starlark.Bool  { return true }
func (s syncType) Hash() (uint32, error) { return uint32(s), nil }

// Binary is a | b, a & b and a ^ b of sides.
func (s syncType) Binary(op syntax.Token, y starlark.Value, _ starlark.Side) (starlark.Value, error) {
	o, ok := y.(syncType)
	if !ok {
		return nil, nil
	}
	switch op {
	case syntax.PIPE:
		return s | o, nil
	case syntax.AMP:
		return s & o, nil
	case syntax.CIRCUMFLEX:
		return s ^ o, nil
	}
	return nil, nil
}

// CompareSameType compares for equality.
func (s syncType) CompareSameType(op syntax.Token, y starlark.Value, _ int) (bool, error) {
	switch op {
	case syntax.EQL:
		return s == y.(syncType), nil
	case syntax.NEQ:
		return s != y.(syncType), nil
	}
	return false, fmt.Errorf("SyncType has no order: %s has no meaning", op)
}

// constructor is a function of the table that has fields too.
type constructor struct {
	builtin
	fields starlark.StringDict
}

var _ starlark.HasAttrs = (*constructor)(nil)

// Attr finds a field.
func (c *constructor) Attr(name string) (starlark.Value, error) { return c.fields[name], nil }

// AttrNames lists the fields.
func (c *constructor) AttrNames() []string { return c.fields.Keys() }

// bufferType reads what names a kind of buffer: BufferType.input and so on.
func (c *call) bufferType(i int) (ir.BufferID, error) {
	name := c.v.string(i, "")
	if at := slices.Index(bufferNames[:], name); at >= 0 {
		return ir.BufferID(at), nil
	}
	return 0, c.sig.errorf("bad-argument", "%s: got %q, want BufferType.input, BufferType.output or BufferType.scratch",
		c.sig.params[i].name, name)
}
