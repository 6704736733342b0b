package viz

import "github.com/mscclsh/mscclsh/ir"

// maxMoved is the number of chunks up to which a picture tells what each node
// moves; beyond it the page would be larger than its picture.
const maxMoved = 4 << 20

// Values are what locations hold at some time, each once, by number from 1 on; 0 is
// a value that isn't known. A value is a chunk of somebody's input, or the sum of two
// values. Chunks are those that the collective was declared with, so that a chunk
// is the same one in every stage, into however many pieces a stage has cut it.
type Values struct {
	list []value
	ids  map[value]int32
}

// value is chunk B of rank A's input, or the sum of values A and B.
type value struct {
	A, B int32
	Sum  bool
}

func newValues() *Values { return &Values{list: make([]value, 1), ids: map[value]int32{}} }

// Len is the number of values and one more.
func (v *Values) Len() int { return len(v.list) }

func (v *Values) intern(x value) int32 {
	if id, ok := v.ids[x]; ok {
		return id
	}
	id := int32(len(v.list))
	v.list = append(v.list, x)
	v.ids[x] = id
	return id
}

// sum is the value of a and b together; what isn't known adds nothing.
func (v *Values) sum(a, b int32) int32 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return v.intern(value{min(a, b), max(a, b), true})
}

// Contributions are the input chunks that value id was made of, by rank and index,
// each as often as it was added.
func (v *Values) Contributions(id int32) []ir.Contribution {
	var out []ir.Contribution
	for stack := []int32{id}; len(stack) > 0; {
		x := v.list[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		switch {
		case x.Sum:
			stack = append(stack, x.B, x.A)
		case x != value{}:
			out = append(out, ir.Contribution{Rank: ir.Rank(x.A - 1), Index: x.B})
		}
	}
	return out
}

// chunk is the value of piece i of rank r's input: the declared chunk that it is a
// piece of.
func (v *Values) chunk(s *ir.Spec, r ir.Rank, i int32) int32 {
	c := s.Coll
	if c.Split > 1 {
		if seg := c.Segment(); s.Interleaved || seg == 0 {
			i /= c.Split
		} else {
			i = i/seg*c.ChunkFactor + i%seg%c.ChunkFactor
		}
	}
	return v.intern(value{int32(r) + 1, i, false}) // no chunk is the zero value
}

// memory is what every location holds while a picture's nodes run in order. Of
// programs that reach beyond their buffers nothing is known there.
type memory struct {
	spec   *ir.Spec
	values *Values
	start  [][]int32 // of buffer and rank
	size   [][]int32
	at     []int32
}

// newMemory holds the collective's inputs. size tells how long a buffer of a rank is.
func newMemory(s *ir.Spec, buffers int, size func(b ir.BufferID, r ir.Rank) int32) *memory {
	m := &memory{spec: s, values: newValues(), start: make([][]int32, buffers), size: make([][]int32, buffers)}
	n := int32(0)
	for b := range m.start {
		for r := range ir.Rank(s.Ranks()) {
			c := max(size(ir.BufferID(b), r), 0)
			m.start[b] = append(m.start[b], n)
			m.size[b] = append(m.size[b], c)
			n += c
		}
	}
	m.at = make([]int32, n)
	for r := range ir.Rank(s.Ranks()) {
		for i := range s.Coll.InputChunks(r) {
			if at := m.index(r, ir.Input, i); at != ir.None && s.Coll.Holds(r, i) {
				m.at[at] = m.values.chunk(s, r, i)
			}
		}
	}
	return m
}

// formMemory is that of a form with named buffers, programMemory that of a program.
func formMemory(s *ir.Spec) *memory {
	return newMemory(s, len(s.Buffers), func(b ir.BufferID, r ir.Rank) int32 { return s.Buffers[b].Chunks[r] })
}

func programMemory(p *ir.Program) *memory {
	return newMemory(p.Spec, int(ir.FirstScratch)+1, func(b ir.BufferID, r ir.Rank) int32 {
		g := &p.GPUs[r]
		return [...]int32{g.Input, g.Output, g.Scratch}[b]
	})
}

// index is the number of a location, None where there is none.
func (m *memory) index(r ir.Rank, b ir.BufferID, i int32) int32 {
	if r < 0 || int64(r) >= int64(m.spec.Ranks()) || i < 0 {
		return ir.None
	}
	b, i = m.spec.Coll.Canon(r, b, i)
	if b < 0 || int(b) >= len(m.start) || i >= m.size[b][r] {
		return ir.None
	}
	return m.start[b][r] + i
}

// get reads count values from a place on; of no place, nothing.
func (m *memory) get(dst []int32, r ir.Rank, p ir.Place, count int32) []int32 {
	for i := range count {
		v := int32(0)
		if at := m.index(r, p.Buf, p.Index+i); at != ir.None {
			v = m.at[at]
		}
		dst = append(dst, v)
	}
	return dst
}

// set writes values to a place.
func (m *memory) set(r ir.Rank, p ir.Place, vs []int32) {
	for i, v := range vs {
		if at := m.index(r, p.Buf, p.Index+int32(i)); at != ir.None {
			m.at[at] = v
		}
	}
}

// add puts each of more on top of one of vs.
func (m *memory) add(vs, more []int32) {
	for i := range min(len(vs), len(more)) {
		vs[i] = m.values.sum(vs[i], more[i])
	}
}
