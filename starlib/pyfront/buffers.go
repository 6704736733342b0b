package pyfront

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
)

// programAttr are the fields of a program that msccl-tools' have and the
// language's have not.
func (r *run) programAttr(t *starlib.Trace, name string) starlark.Value {
	switch name {
	case "buffers":
		return &buffers{r, t}
	case "check":
		return r.function(name, func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if !t.Same(r.env.Open()) {
				return nil, errorf("program-ended", "check: program %q is not open", t.Name())
			}
			return r.check(args, kwargs)
		})
	}
	return nil
}

// buffers is prog.buffers: for every rank, what each buffer holds now.
type buffers struct {
	r *run
	t *starlib.Trace
}

var _ starlark.Sequence = (*buffers)(nil)

func (b *buffers) String() string        { return "<buffers of " + b.t.Name() + ">" }
func (b *buffers) Type() string          { return "list" }
func (b *buffers) Freeze()               {}
func (b *buffers) Truth() starlark.Bool  { return true }
func (b *buffers) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: list") }

// Len is the number of ranks.
func (b *buffers) Len() int { return int(b.t.Ranks()) }

// Index is the buffers of one rank.
func (b *buffers) Index(i int) starlark.Value { return &rankBuffers{b, ir.Rank(i)} }

// Iterate goes over the ranks.
func (b *buffers) Iterate() starlark.Iterator { return &walker{b, 0} }

// walker iterates over anything with an index.
type walker struct {
	x starlark.Indexable
	i int
}

func (w *walker) Next(p *starlark.Value) bool {
	if w.i >= w.x.Len() {
		return false
	}
	*p = w.x.Index(w.i)
	w.i++
	return true
}

func (w *walker) Done() {}

// rankBuffers is prog.buffers[rank].
type rankBuffers struct {
	b    *buffers
	rank ir.Rank
}

var (
	_ starlark.Mapping         = (*rankBuffers)(nil)
	_ starlark.IterableMapping = (*rankBuffers)(nil)
)

func (m *rankBuffers) String() string        { return fmt.Sprintf("<buffers of rank %d>", m.rank) }
func (m *rankBuffers) Type() string          { return "dict" }
func (m *rankBuffers) Freeze()               {}
func (m *rankBuffers) Truth() starlark.Bool  { return true }
func (m *rankBuffers) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: dict") }

// Get is the contents of a buffer.
func (m *rankBuffers) Get(k starlark.Value) (starlark.Value, bool, error) {
	n, ok := m.b.t.Len(m.rank, k)
	if !ok {
		return nil, false, nil
	}
	// The script's own lists may be shorter than the memory that they share.
	if own := m.b.r.customOf(m.b.t); own != nil && k == starlark.Value(inputBuffer) {
		n = own.in[m.rank]
	} else if own != nil && k == starlark.Value(outputBuffer) {
		n = own.out[m.rank]
	}
	return &contents{m.b, m.rank, k, int(n)}, true, nil
}

// Items are the buffers that the rank has.
func (m *rankBuffers) Items() []starlark.Tuple {
	var list []starlark.Tuple
	for _, k := range m.b.t.Buffers() {
		if v, ok, err := m.Get(k); ok && err == nil {
			list = append(list, starlark.Tuple{k, v})
		}
	}
	return list
}

// Iterate goes over the buffers' names.
func (m *rankBuffers) Iterate() starlark.Iterator {
	return starlark.NewList(append([]starlark.Value(nil), m.b.t.Buffers()...)).Iterate()
}

// contents is prog.buffers[rank][buffer]: Chunk, ReduceChunk or None.
type contents struct {
	b    *buffers
	rank ir.Rank
	buf  starlark.Value
	n    int
}

var _ starlark.Sequence = (*contents)(nil)

func (c *contents) String() string {
	list := make([]starlark.Value, 0, c.n)
	for x := range starlark.Elements(c) {
		list = append(list, x)
	}
	return pyRepr(starlark.NewList(list))
}
func (c *contents) Type() string          { return "list" }
func (c *contents) Freeze()               {}
func (c *contents) Truth() starlark.Bool  { return c.n > 0 }
func (c *contents) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: list") }

// Len is the length of the buffer in chunks.
func (c *contents) Len() int { return c.n }

// Iterate goes over the chunks.
func (c *contents) Iterate() starlark.Iterator { return &walker{c, 0} }

// Index is what one place holds.
func (c *contents) Index(i int) starlark.Value {
	parts := c.b.t.Contributions(c.rank, c.buf, int32(i))
	own := c.b.r.customOf(c.b.t)
	chunks := make([]*chunkValue, len(parts))
	for k, x := range parts {
		o := starlib.Origin{Rank: int32(x.Rank), Index: x.Index, DstRank: -1, DstIndex: -1}
		if own != nil {
			o = own.origin(x)
		}
		chunks[k] = &chunkValue{o}
	}
	switch len(chunks) {
	case 0:
		return starlark.None
	case 1:
		return chunks[0]
	}
	return newSum(starlark.MakeInt(int(c.rank)), chunks)
}
