package cpu

import "github.com/mscclsh/mscclsh/ir"

// In chaos mode messages of LL and LL128 go part by part, as their flags let them go on
// GPUs, where every thread sends and takes what is its own: a part is loaded, taken,
// stored and sent on in any order that the data allows, while others do what they like
// in between. An operand may be loaded before its message has come, and what is passed
// on may be stored later. So a program that takes a message for more than it says
// (checker: what a message orders) can go wrong here as it can there.

// flagged reports whether flags travel with the data.
func (pl *plan) flagged() bool { return pl.prog.Protocol == ir.LL || pl.prog.Protocol == ir.LL128 }

// flags are those of message k, by part.
func (c *conn) flags(k int64, parts int) []bool {
	if c.arrived == nil {
		c.arrived = make([][]bool, c.slots)
	}
	f := &c.arrived[k%c.slots]
	for len(*f) < parts {
		*f = append(*f, false)
	}
	return *f
}

// parts is a message under way: what has been done to each part of it, and the values.
type parts struct {
	st                       *step
	in, out, src, dst        []byte
	operand, value           []byte // what was loaded and what came of it
	size                     int64  // bytes of a part; the last one may be shorter
	loaded, made, kept, gone []bool
	flagsIn, flagsOut        []bool
	left                     int // things to do
}

// One in slowOnes messages is moved by slow threads: before each thing they do, others
// get up to maxYields turns, enough for what was sent to come back from another rank.
const (
	slowOnes  = 6
	maxYields = 40
)

// act is a thing to do with a part.
type act struct {
	part int
	do   func(e *engine, m *parts, part int)
}

// flaggedMessage is message, part by part, in an order drawn by the seed.
func (w *worker) flaggedMessage(e *engine, st *step, i int32, tile, off, n int64) bool {
	m := w.newParts(e, st, off, n)
	count := len(m.loaded)
	if c := st.out; c != nil {
		if !c.hasSlot() && !e.await(w, wait{kind: waitSlot, step: i, tile: tile, conn: c}) {
			return false
		}
		k := c.sent.Load()
		c.size[k%c.slots] = n
		c.moved += n
		m.out, m.flagsOut = c.slot(k)[:n], c.flags(k, count)
	}
	if c := st.in; c != nil {
		k := c.taken.Load()
		m.in, m.flagsIn = c.slot(k)[:n], c.flags(k, count)
	}
	var can []act
	slow := e.chaos.pick(slowOnes) == 0
	for m.left > 0 {
		if !e.turn(w) {
			return false
		}
		for yields := 0; slow && yields < e.chaos.pick(maxYields); yields++ {
			if !e.turn(w) {
				return false
			}
		}
		if can = m.can(can[:0]); len(can) == 0 {
			if !e.await(w, wait{kind: waitFlag, step: i, tile: tile, conn: st.in, missing: m.missing()}) {
				return false
			}
			if c := st.in; c.size[c.taken.Load()%c.slots] != n {
				e.fail(e.wrongSize(w, i, c, c.size[c.taken.Load()%c.slots], n))
				return false
			}
			continue
		}
		a := can[e.chaos.pick(len(can))]
		a.do(e, m, a.part)
		m.left--
	}
	if c := st.in; c != nil {
		clear(m.flagsIn)
		c.taken.Add(1)
	}
	if c := st.out; c != nil {
		c.sent.Add(1)
	}
	return true
}

// newParts cuts a message: into halves of chunks, so that there are parts of one chunk
// and of several.
func (w *worker) newParts(e *engine, st *step, off, n int64) *parts {
	elem := int64(e.layout.DType.Size())
	m := &parts{st: st, size: max((e.tile/elem+1)/2, 1) * elem, value: make([]byte, n)}
	count := int((n + m.size - 1) / m.size)
	all := make([]bool, 4*count)
	m.loaded, m.made, m.kept, m.gone = all[:count], all[count:2*count], all[2*count:3*count], all[3*count:]
	if st.kind.ReadsSrc() {
		m.src, m.operand = w.memory[st.src+off:][:n], make([]byte, n)
		m.left += count
	}
	if st.in != nil {
		m.left += count
	}
	if st.kind.WritesDst() {
		m.dst = w.memory[st.dst+off:][:n]
		m.left += count
	}
	if st.out != nil {
		m.left += count
	}
	return m
}

// can lists what may be done next.
func (m *parts) can(list []act) []act {
	for p := range m.loaded {
		ready := m.made[p] || m.st.in == nil && m.loaded[p]
		if m.src != nil && !m.loaded[p] {
			list = append(list, act{p, load})
		}
		if m.st.in != nil && !m.made[p] && m.flagsIn[p] && (m.src == nil || m.loaded[p]) {
			list = append(list, act{p, take})
		}
		if m.dst != nil && ready && !m.kept[p] {
			list = append(list, act{p, keep})
		}
		if m.out != nil && ready && !m.gone[p] {
			list = append(list, act{p, pass})
		}
	}
	return list
}

// missing are the flags that are waited for.
func (m *parts) missing() []*bool {
	var out []*bool
	for p := range m.flagsIn {
		if p < len(m.made) && !m.made[p] {
			out = append(out, &m.flagsIn[p])
		}
	}
	return out
}

func (m *parts) cut(b []byte, p int) []byte {
	return b[int64(p)*m.size : min(int64(p+1)*m.size, int64(len(b)))]
}

func load(_ *engine, m *parts, p int) {
	copy(m.cut(m.operand, p), m.cut(m.src, p))
	if m.loaded[p] = true; m.st.in == nil {
		copy(m.cut(m.value, p), m.cut(m.operand, p))
	}
}

func take(e *engine, m *parts, p int) {
	if m.st.kind.Reduces() {
		e.combine.Into(m.cut(m.value, p), m.cut(m.in, p), m.cut(m.operand, p))
	} else {
		copy(m.cut(m.value, p), m.cut(m.in, p))
	}
	m.made[p] = true
}

func keep(_ *engine, m *parts, p int) {
	copy(m.cut(m.dst, p), m.cut(m.value, p))
	m.kept[p] = true
}

func pass(_ *engine, m *parts, p int) {
	copy(m.cut(m.out, p), m.cut(m.value, p))
	m.gone[p], m.flagsOut[p] = true, true
}
