package mscclxml

import (
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// defaultMax is msccl's maxBytes where a file has none.
const defaultMax = 128 << 20

// algoWords are the attributes of algo that mean something to some reader.
const algoWords = " name proto nchannels nchunksperloop ngpus coll inplace outofplace minBytes maxBytes nthreads root peer slots slotbytes counts target "

// lowerPlain gives the document the meaning that all runtimes agree on, where
// they do, and refuses it where they don't.
func (c *collector) lowerPlain() *build {
	b := newBuild(c)
	b.plainAlgo()
	if c.failed() {
		return b
	}
	b.order()
	if c.failed() {
		return b
	}
	b.gpus = make([]ir.GPU, b.ranks)
	b.copies = make([][]rawCopy, b.ranks)
	b.in, b.out = make([]int32, b.ranks), make([]int32, b.ranks)
	for r := range c.doc.gpus {
		b.plainGPU(ir.Rank(r), &c.doc.gpus[r])
		if c.stopped {
			return b
		}
	}
	b.plainNotes()
	return b
}

// programName is the name in the file, or else the file's.
func (c *collector) programName() string {
	if at, ok := c.doc.algo.find("name"); ok {
		return at.value
	}
	return strings.TrimSuffix(base(c.o.File), ".xml")
}

func (b *build) plainNotes() {
	c := b.c
	for i, what := range [...]string{"attributes of algo", "elements"} {
		if names := c.ignored[i]; len(names) > 0 {
			c.note(diag.Info, c.doc.at, CodeIgnored, "%s without effect: %s", what, strings.Join(names, ", "))
		}
	}
}

// plainAlgo reads the attributes of the algo element.
func (b *build) plainAlgo() {
	c := b.c
	a := c.doc.algo
	for _, at := range a {
		if !strings.Contains(algoWords, " "+at.key+" ") {
			c.ignore(0, at.key)
		}
	}
	b.name = c.programName()
	b.dialect = ir.TargetPlain
	if at, ok := a.find("target"); ok {
		t, err := ir.ParseTarget(at.value)
		switch {
		case err != nil:
			c.errorf(at.at, CodeValue, "%s", err)
		case t == ir.TargetNative:
			c.errorf(at.at, CodeValue, "target native has no XML")
		}
		b.dialect = t
	}
	b.plainProtocol(a)
	if !c.number(a, "ngpus", &b.ranks) {
		b.ranks = int32(len(c.doc.gpus))
		c.note(diag.Info, c.doc.at, CodeInferred, "there is no ngpus: %d, the number of gpu elements", b.ranks)
	}
	if !c.number(a, "nchunksperloop", &b.chunks) {
		c.errorf(c.doc.at, CodeValue, "there is no nchunksperloop: the number of chunks that a buffer is cut into")
	}
	switch {
	case c.failed():
	case b.ranks < 1 || b.ranks > maxGPUs:
		c.errorf(c.doc.at, CodeValue, "ngpus is %d, want 1 to %d", b.ranks, maxGPUs)
	case b.chunks < 1:
		c.errorf(c.doc.at, CodeValue, "nchunksperloop is %d, want 1 or more", b.chunks)
	}
	b.plainWindow(a)
	b.plainModes(a)
	b.rankAttribute(a, "root", &b.root)
	b.rankAttribute(a, "peer", &b.peer)
	b.plainCollective(a)
}

func (b *build) plainProtocol(a attributes) {
	c := b.c
	at, ok := a.find("proto")
	p, err := parseProtocol(at.value)
	switch {
	case !ok:
		c.errorf(c.doc.at, CodeValue, "there is no proto, want Simple, LL or LL128: it decides how much fits into a connection")
	case err != nil:
		c.errorf(at.at, CodeValue, "%s", err)
	}
	b.protocol = p
	b.transport = b.dialect.Transport(p)
	slots := b.transport.Slots
	if c.number(a, "slots", &slots) {
		b.transport.Slots = slots
	}
	if n, ok := c.number64(a, "slotbytes", 1, 1<<62); ok {
		b.transport.SlotBytes = n
	}
	if !c.failed() && (b.transport.Slots < 1 || b.transport.SlotBytes < 1) {
		c.errorf(c.doc.at, CodeValue, "%d slots of %d bytes, want 1 or more of both", b.transport.Slots, b.transport.SlotBytes)
	}
}

// plainWindow reads the sizes. Written for msccl, maxBytes is exclusive; else it
// is inclusive and 0 is no limit. Without one it is msccl's.
func (b *build) plainWindow(a attributes) {
	c := b.c
	b.minBytes, _ = c.number64(a, "minBytes", 0, 1<<62)
	n, ok := c.number64(a, "maxBytes", 0, unlimited)
	switch {
	case !ok:
		n = defaultMax
	case n == unlimited:
		n = 0
	case n > 0 && b.dialect == ir.TargetMSCCL:
		n--
	}
	b.maxBytes = n
	if !c.failed() && n > 0 && n < b.minBytes {
		c.errorf(c.doc.at, CodeValue, "no size is between minBytes %d and maxBytes %d", b.minBytes, n)
	}
}

func (b *build) plainModes(a attributes) {
	c := b.c
	in, out := int32(0), int32(0)
	hasIn, hasOut := c.number(a, "inplace", &in), c.number(a, "outofplace", &out)
	if in>>1 != 0 || out>>1 != 0 {
		c.errorf(c.doc.at, CodeValue, "inplace and outofplace: got %d and %d, want 0 or 1", in, out)
	}
	switch {
	case !hasIn && (!hasOut || out == 0):
		b.modes, b.guessed = []bool{true, false}, true
	case !hasIn:
		b.modes = []bool{false}
	case in == 1 && out == 1:
		b.modes = []bool{true, false}
	case in == 1:
		b.modes = []bool{true}
	default:
		b.modes = []bool{false}
		if hasOut && out == 0 {
			c.note(warning, c.doc.at, CodeNote, "inplace and outofplace are both 0: taken as out of place, as by msccl; executor and rccl never select it")
		}
	}
}

func (b *build) rankAttribute(a attributes, key string, r *ir.Rank) {
	n := int32(ir.None)
	if b.c.number(a, key, &n) && !b.c.failed() && (n < 0 || n >= b.ranks) {
		b.c.errorf(b.c.doc.at, CodeValue, "%s is rank %d, want 0 to %d", key, n, b.ranks-1)
	}
	*r = ir.Rank(n)
}

// plainGPU lowers one rank.
func (b *build) plainGPU(rank ir.Rank, g *rawGPU) {
	c := b.c
	b.in[rank], b.out[rank], b.copies[rank] = g.in, g.out, g.copies
	if g.scratch < 0 {
		c.errorf(g.at, CodeValue, "gpu %d: s_chunks is %d, want 0 or more", g.id, g.scratch)
	}
	b.gpus[rank].Scratch = g.scratch
	ids := make(map[int32]int32, len(g.tbs))
	blocks := make([]block, len(g.tbs))
	for t := range g.tbs {
		ids[g.tbs[t].id] = int32(t)
		b.plainTB(rank, &g.tbs[t], &blocks[t])
		if c.stopped {
			return
		}
	}
	b.ends(rank, g.tbs)
	if !c.failed() {
		b.link(rank, blocks, ids)
		b.numbered(g, ids)
	}
}

// numbered warns where s isn't the position and a dependency goes by number.
func (b *build) numbered(g *rawGPU, ids map[int32]int32) {
	odd := make([]bool, len(g.tbs))
	any := false
	for t := range g.tbs {
		for s := range g.tbs[t].steps {
			if st := &g.tbs[t].steps[s]; st.has&fS != 0 && int(st.s) != s {
				odd[t], any = true, true
			}
		}
	}
	if !any {
		return
	}
	for t := range g.tbs {
		for s := range g.tbs[t].steps {
			st := &g.tbs[t].steps[s]
			if u, ok := ids[st.depid]; ok && st.depid >= 0 && odd[u] {
				b.c.note(warning, st.at, CodeNote, "gpu %d: steps of thread block %d are not numbered by their position; deps counts positions, as in the runtimes", g.id, st.depid)
				return
			}
		}
	}
}

func (b *build) plainTB(rank ir.Rank, t *rawTB, k *block) {
	c := b.c
	for _, peer := range [...]int32{t.send, t.recv} {
		if peer < ir.None || peer >= b.ranks || peer == int32(rank) {
			c.errorf(t.at, CodeValue, "gpu %d thread block %d: rank %d is no peer, want another one up to %d, or -1", rank, t.id, peer, b.ranks-1)
		}
	}
	if t.has&fID == 0 {
		c.errorf(t.at, CodeValue, "gpu %d: a thread block without id", rank)
	}
	if peers := t.send != ir.None || t.recv != ir.None; peers && (t.has&fChan == 0 || t.ch < 0) {
		c.errorf(t.at, CodeValue, "gpu %d thread block %d: it has a peer, but no channel", rank, t.id)
	}
	t.ch = max(t.ch, 0)
	k.tb = ir.ThreadBlock{Send: ir.Rank(t.send), Recv: ir.Rank(t.recv), Chan: t.ch, Steps: make([]ir.Step, len(t.steps))}
	k.posts = make([]bool, len(t.steps))
	for s := range t.steps {
		r := &t.steps[s]
		if !b.plainStep(t, r) {
			if c.stopped {
				return
			}
			continue
		}
		k.tb.Steps[s] = makeStep(r, t)
		k.tb.Steps[s].Pos = b.pos(r.at)
		k.posts[s] = r.hasdep == 1 && r.kind != ir.Nop // a nop never posts, on any runtime
		if r.depid >= 0 {
			k.waits = append(k.waits, waiting{int32(s), r.depid, r.deps, r.at})
		}
	}
}

// plainStep checks what a step's kind needs; bounds are the checker's business.
func (b *build) plainStep(t *rawTB, r *rawStep) bool {
	before := len(b.c.list)
	bad := func(format string, args ...any) { b.c.errorf(r.at, CodeValue, format, args...) }
	switch {
	case r.has&fType == 0:
		bad("a step without type")
		return false
	case r.unknown:
		bad("the type of the step is none of nop, s, r, rcs, rrs, rrc, rrcs, cpy, re")
		return false
	}
	if r.hasdep>>1 != 0 {
		bad("hasdep is %d, want 0 or 1", r.hasdep)
	}
	if r.depid < ir.None {
		bad("depid is %d, want a thread block or -1", r.depid)
	}
	if r.kind == ir.Nop {
		return len(b.c.list) == before
	}
	if r.cnt < 1 {
		bad("%s: cnt is %d, want 1 or more", r.kind, r.cnt)
	}
	if r.kind.Sends() && t.send == ir.None {
		bad("%s: thread block %d has no rank to send to", r.kind, t.id)
	}
	if r.kind.Receives() && t.recv == ir.None {
		bad("%s: thread block %d has no rank to receive from", r.kind, t.id)
	}
	if r.kind.ReadsSrc() && (r.src == ir.None || r.has&fSrcOff == 0 || r.srcoff < 0) {
		bad("%s: it has no source: want srcbuf i, o or s, and srcoff 0 or more", r.kind)
	}
	if r.kind.WritesDst() && (r.dst == ir.None || r.has&fDstOff == 0 || r.dstoff < 0) {
		bad("%s: it has no destination: want dstbuf i, o or s, and dstoff 0 or more", r.kind)
	}
	return len(b.c.list) == before
}
