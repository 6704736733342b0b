package mscclxml

import (
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
)

// lowerRuntime reads the document as the runtime's own parser does and lowers the
// steps as it does. All reasons for which it would refuse the file are gathered.
func (c *collector) lowerRuntime() *build {
	b := newBuild(c)
	b.runtimeAlgo()
	// What has the id of no rank is read and never looked at.
	c.doc.gpus = slices.DeleteFunc(c.doc.gpus, func(g rawGPU) bool { return b.ranks > 0 && (g.id < 0 || g.id >= b.ranks) })
	for i := range c.doc.gpus {
		b.runtimeGPU(&c.doc.gpus[i])
	}
	if c.failed() {
		return b
	}
	b.order()
	if c.failed() {
		return b
	}
	b.gpus = make([]ir.GPU, b.ranks)
	b.copies = make([][]rawCopy, b.ranks) // ignored: unknown elements are
	b.in, b.out = make([]int32, b.ranks), make([]int32, b.ranks)
	for r := range c.doc.gpus {
		b.lowerGPU(ir.Rank(r), &c.doc.gpus[r])
	}
	return b
}

// required refuses a file without an attribute, and reports whether it's there.
func (b *build) required(a attributes, key string) bool {
	if a.has(key) {
		return true
	}
	b.c.refuse(b.c.doc.at, "no "+key, "no %s", key)
	return false
}

func (b *build) runtimeAlgo() {
	c := b.c
	a := c.doc.algo
	msccl := c.o.Runtime == MSCCL
	b.dialect = c.o.Runtime.target()
	if b.name = c.programName(); msccl {
		b.required(a, "name")
		b.name = b.name[:min(len(b.name), int(b.dialect.Limits().NameBytes))]
	}
	if b.required(a, "proto") {
		p, err := parseProtocol(a.get("proto"))
		if err != nil {
			c.refuse(c.doc.at, "proto", "proto %s, want Simple, LL or LL128", quote(a.get("proto")))
		}
		b.protocol = p
	}
	b.transport = b.dialect.Transport(b.protocol)
	b.required(a, "nchannels")
	if b.required(a, "nchunksperloop") {
		c.number(a, "nchunksperloop", &b.chunks)
	}
	if b.required(a, "ngpus") {
		c.number(a, "ngpus", &b.ranks)
	}
	b.runtimeWindow(a)
	b.runtimeModes(a)
	b.runtimeCollective(a)
	if n := int32(0); msccl && c.number(a, "nthreads", &n) && n%32 != 0 {
		c.refuse(c.doc.at, "nthreads", "nthreads %d is not a multiple of 32", n)
	}
	if !c.failed() && (b.chunks < 1 || b.ranks < 1 || b.ranks > maxGPUs) {
		c.errorf(c.doc.at, CodeUndefined, "nchunksperloop %d and ngpus %d: no size of data fits", b.chunks, b.ranks)
	}
	if k := b.dialect.Limits().XMLChildren; len(c.doc.gpus) > int(k) {
		c.errorf(c.doc.at, CodeUndefined, "%d gpu elements: the reader writes beyond its table of %d", len(c.doc.gpus), k)
	}
	if n := int32(ir.None); a.has("root") && c.number(a, "root", &n) && n >= 0 && n < b.ranks {
		b.root = ir.Rank(n) // ignored by the runtime; what to judge the result by
	}
}

// runtimeWindow: msccl's maxBytes is exclusive, 128 MiB where there is none; the
// others' is inclusive, with 0 for no limit, and required.
func (b *build) runtimeWindow(a attributes) {
	c := b.c
	const all = 1<<63 - 1
	msccl := c.o.Runtime == MSCCL
	if !msccl {
		b.required(a, "minBytes")
		b.required(a, "maxBytes")
	}
	b.minBytes, _ = c.number64(a, "minBytes", 0, all)
	n, ok := c.number64(a, "maxBytes", 0, all)
	if !msccl {
		b.minBytes = max(b.minBytes, 0)
		b.maxBytes = n
		if n < 0 || n > 0 && n < b.minBytes {
			b.never("no size is between minBytes %d and maxBytes %d", b.minBytes, n)
		}
		return
	}
	if !ok {
		n = defaultMax
	}
	switch {
	case n < 0 || b.minBytes < 0:
		c.refuse(c.doc.at, "negative", "minBytes %d or maxBytes %d is negative", b.minBytes, n)
	case b.minBytes > n && n != 0:
		c.refuse(c.doc.at, "window", "minBytes %d is beyond maxBytes %d", b.minBytes, n)
	case b.minBytes > n:
		c.refuse(c.doc.at, "window", "minBytes %d is beyond maxBytes 0", b.minBytes)
	case n == all:
		b.maxBytes = 0
	case n <= b.minBytes:
		b.never("maxBytes %d is exclusive, so no size is in the window", n)
	default:
		b.maxBytes = n - 1
	}
}

// never notes that no call selects the file; it is judged for all sizes then, as
// a configuration that overrides the window would use it.
func (b *build) never(format string, args ...any) {
	b.maxBytes = 0
	b.c.note(warning, b.c.doc.at, CodeNote, format+": never selected, unless a configuration overrides it; read as without limit", args...)
}

func (b *build) runtimeModes(a attributes) {
	c := b.c
	in, out := int32(0), int32(0)
	if b.required(a, "inplace") {
		c.number(a, "inplace", &in)
	}
	if c.o.Runtime == MSCCL {
		b.modes = []bool{in != 0}
		return
	}
	if b.required(a, "outofplace") {
		c.number(a, "outofplace", &out)
	}
	switch {
	case in != 0 && out != 0:
		b.modes = []bool{true, false}
	case in == 0 && out == 0:
		b.modes = []bool{false}
		c.note(warning, c.doc.at, CodeNote, "inplace and outofplace are both 0: never selected; read as out of place")
	default:
		b.modes = []bool{in != 0}
	}
}

func (b *build) runtimeCollective(a attributes) {
	c := b.c
	if !b.required(a, "coll") {
		return
	}
	word, known := a.get("coll"), " allreduce allgather reduce broadcast alltoall reduce_scatter custom "
	if c.o.Runtime != MSCCL {
		known = " allreduce allgather reduce broadcast alltoall reducescatter send recv gather scatter alltoallv "
	}
	if word == "" || !strings.Contains(known, " "+word+" ") {
		c.refuse(c.doc.at, "coll", "no collective %s", quote(word))
		return
	}
	switch word {
	case "reducescatter":
		word = "reduce_scatter"
	case "send", "recv":
		c.errorf(c.doc.at, CodeUndefined, "collective %s: nothing says between which ranks", word)
		return
	}
	k, err := ir.ParseCollectiveKind(word)
	if err != nil {
		c.errorf(c.doc.at, CodeUndefined, "%s", err)
	}
	b.kinds = []ir.CollectiveKind{k}
}

// runtimeGPU applies the parser's checks to one rank. The parser reads only its
// own rank's steps, so a file that one rank refuses others may take; here it is
// refused as a whole.
func (b *build) runtimeGPU(g *rawGPU) {
	c := b.c
	l := b.dialect.Limits()
	for _, f := range [...]struct {
		field field
		name  string
	}{{fIn, "i_chunks"}, {fOut, "o_chunks"}, {fScratch, "s_chunks"}} {
		if g.has&f.field == 0 {
			c.refuse(g.at, "no "+f.name, "no %s", f.name)
		}
	}
	if g.scratch < 0 {
		c.refuse(g.at, "s_chunks", "s_chunks %d is negative", g.scratch)
	}
	if nodes := 1 + int32(len(c.doc.gpus)) + g.nodes; nodes >= l.XMLNodes {
		c.refuse(g.at, "nodes", "gpu %d: %d elements, its reader keeps %d", g.id, nodes, l.XMLNodes-1)
	}
	if c.o.Runtime == MSCCL {
		b.declaredChunks(g)
	}
	if n := int32(len(g.tbs)); n > l.XMLChildren {
		c.errorf(g.at, CodeUndefined, "gpu %d: %d thread blocks: the reader writes beyond its table of %d", g.id, n, l.XMLChildren)
	}
	seen := make(map[int32]bool, len(g.tbs))
	sends, recvs := map[int32]int32{}, map[int32]int32{}
	for t := range g.tbs {
		b.runtimeTB(g, &g.tbs[t], seen, sends, recvs)
	}
	for t := range int32(len(seen)) {
		if !seen[t] {
			c.refuse(g.at, "gap", "gpu %d: thread block %d is missing", g.id, t)
			break
		}
	}
}

// declaredChunks: msccl compares i_chunks and o_chunks with nchunksperloop.
func (b *build) declaredChunks(g *rawGPU) {
	in, out := int64(g.in), int64(g.out)
	switch b.c.doc.algo.get("coll") {
	case "allgather":
		in *= int64(b.ranks)
	case "reduce_scatter":
		out *= int64(b.ranks)
	}
	if in > 0 && in != int64(b.chunks) || out > 0 && out != int64(b.chunks) {
		b.c.refuse(g.at, "chunks", "gpu %d: i_chunks %d and o_chunks %d don't fit nchunksperloop %d", g.id, g.in, g.out, b.chunks)
	}
}

func (b *build) runtimeTB(g *rawGPU, t *rawTB, seen map[int32]bool, sends, recvs map[int32]int32) {
	c := b.c
	l := b.dialect.Limits()
	for _, f := range [...]struct {
		field field
		name  string
	}{{fID, "id"}, {fSend, "send"}, {fRecv, "recv"}, {fChan, "chan"}} {
		if t.has&f.field == 0 {
			c.refuse(t.at, "no tb "+f.name, "a thread block without %s", f.name)
		}
	}
	switch {
	case t.id < 0:
		c.refuse(t.at, "tb", "gpu %d: thread block %d", g.id, t.id)
	case t.id >= l.TBsPerRank:
		c.refuse(t.at, "tbs", "gpu %d: thread block %d, want at most %d of them", g.id, t.id, l.TBsPerRank)
	case seen[t.id]:
		c.refuse(t.at, "tb twice", "gpu %d: a second thread block %d", g.id, t.id)
	}
	seen[t.id] = true
	beyond := t.send >= b.ranks || t.recv >= b.ranks
	switch {
	case t.send == g.id || t.recv == g.id || t.send < ir.None || t.recv < ir.None || beyond && c.o.Runtime == MSCCL:
		c.refuse(t.at, "peer", "gpu %d thread block %d: peers %d and %d", g.id, t.id, t.send, t.recv)
	case beyond:
		c.errorf(t.at, CodeUndefined, "gpu %d thread block %d: peers %d and %d of %d ranks", g.id, t.id, t.send, t.recv, b.ranks)
	}
	switch {
	case t.ch < 0 || t.ch > l.Channels:
		c.refuse(t.at, "chan", "gpu %d thread block %d: channel %d, want 0 to %d", g.id, t.id, t.ch, l.Channels-1)
	case t.ch == l.Channels:
		c.errorf(t.at, CodeUndefined, "gpu %d thread block %d: channel %d is the first beyond the runtime's table", g.id, t.id, t.ch)
	}
	for s := range t.steps {
		b.runtimeStep(g, t, &t.steps[s], sends[t.ch], recvs[t.ch])
	}
	b.nopChain(g.id, t)
	if n := int32(len(t.steps)); n > l.StepsPerTB && !c.failed() {
		c.errorf(t.at, CodeUndefined, "gpu %d thread block %d: %d steps are written into a table of %d", g.id, t.id, n, l.StepsPerTB)
	}
	if t.send >= 0 {
		sends[t.ch]++
	}
	if t.recv >= 0 {
		recvs[t.ch]++
	}
}

// stepFields are the attributes that the parsers ask of every step.
var stepFields = [...]struct {
	field field
	name  string
}{{fS, "s"}, {fSrcOff, "srcoff"}, {fSrcBuf, "srcbuf"}, {fDstOff, "dstoff"}, {fDstBuf, "dstbuf"}, {fCnt, "cnt"},
	{fType, "type"}, {fID, "depid"}, {fDep, "deps"}, {fHasDep, "hasdep"}}

func (b *build) runtimeStep(g *rawGPU, t *rawTB, r *rawStep, sends, recvs int32) {
	c := b.c
	l := b.dialect.Limits()
	for _, f := range stepFields {
		if r.has&f.field == 0 {
			c.refuse(r.at, "no step "+f.name, "a step without %s", f.name)
			return
		}
	}
	no := func(kind, format string, args ...any) { c.refuse(r.at, kind, format, args...) }
	switch {
	case r.s < 0 || r.s >= l.StepsPerTB:
		no("steps", "gpu %d thread block %d: step %d, want at most %d of them", g.id, t.id, r.s, l.StepsPerTB)
	case r.unknown:
		no("type", "a type of step that it doesn't know")
	case r.src == ir.None || r.dst == ir.None:
		no("buffer", "a buffer that is none of i, o and s")
	}
	if r.kind == ir.Nop || r.unknown {
		return
	}
	if r.cnt < 0 || r.cnt > l.Count {
		no("cnt", "cnt %d, want at most %d", r.cnt, l.Count)
	}
	if r.kind.Sends() && t.send < 0 || r.kind.Receives() && t.recv < 0 {
		no("step peer", "gpu %d thread block %d: a %s step, but peers %d and %d", g.id, t.id, r.kind, t.send, t.recv)
	}
	if r.kind.Sends() && sends >= l.TBsPerChan || r.kind.Receives() && recvs >= l.TBsPerChan {
		no("per channel", "gpu %d: more than %d thread blocks send, or receive, on channel %d", g.id, l.TBsPerChan, t.ch)
	}
	src, dst := checkedOperands(r.kind)
	if src && !declared(g, r.src, r.srcoff) || dst && !declared(g, r.dst, r.dstoff) {
		no("offset", "gpu %d thread block %d step %d: an offset beyond i_chunks, o_chunks or s_chunks", g.id, t.id, r.s)
	}
	if r.hasdep>>1 != 0 {
		no("hasdep", "hasdep %d, want 0 or 1", r.hasdep)
	}
	if c.o.Runtime == RCCL && r.kind > ir.Recv && r.kind < ir.Copy {
		no("fused "+r.kind.String(), "no kernel for %s", r.kind)
	}
}

// checkedOperands are the operands whose offsets the parsers look at.
func checkedOperands(k ir.StepKind) (src, dst bool) {
	if k == ir.RecvReduceCopy {
		return false, false
	}
	return k.ReadsSrc(), k.WritesDst()
}

// declared is their bounds check: by the declared lengths, without the count.
func declared(g *rawGPU, buf ir.BufferID, off int32) bool {
	switch buf {
	case ir.Input:
		return off >= -1 && off < g.in
	case ir.Output:
		return off >= -1 && off < g.out
	case ir.FirstScratch:
		return off >= -1 && off < g.scratch
	}
	return true
}

// lowerGPU makes steps of one rank's thread blocks as the runtime does.
func (b *build) lowerGPU(rank ir.Rank, g *rawGPU) {
	b.in[rank], b.out[rank] = g.in, g.out
	b.gpus[rank].Scratch = g.scratch
	ids := make(map[int32]int32, len(g.tbs))
	blocks := make([]block, len(g.tbs))
	for t := range g.tbs {
		ids[g.tbs[t].id] = int32(t)
		b.lowerTB(rank, &g.tbs[t], &blocks[t])
	}
	b.ends(rank, g.tbs)
	if !b.c.failed() {
		b.link(rank, blocks, ids)
	}
}
