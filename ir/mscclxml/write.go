package mscclxml

import (
	"fmt"
	"io"
	"strconv"

	"github.com/mscclsh/mscclsh/ir"
)

// flushAt is how many bytes gather before they are written.
const flushAt = 64 << 10

// Write writes p as MSCCL XML for target t. What t's runtime can't hold, or
// would run differently from what p means, is refused with a *diag.Message
// before any byte is written; a program that no compiler should have made is an
// internal error. p must be well formed (ir.Program.Validate).
func Write(w io.Writer, p *ir.Program, t ir.Target) error {
	d, err := check(p, t)
	if err != nil {
		return err
	}
	x := &writer{w: w, buf: make([]byte, 0, flushAt+4096), p: p}
	x.algo(d)
	for g := range p.GPUs {
		x.gpu(d, g)
	}
	x.str("</algo>\n")
	x.flush()
	if x.err != nil {
		return fmt.Errorf("writing MSCCL XML: %w", x.err)
	}
	return nil
}

// writer gathers the text; its first error sticks.
type writer struct {
	w   io.Writer
	buf []byte
	err error
	p   *ir.Program
}

func (x *writer) flush() {
	if x.err == nil && len(x.buf) > 0 {
		_, x.err = x.w.Write(x.buf)
	}
	x.buf = x.buf[:0]
}

func (x *writer) str(s string) { x.buf = append(x.buf, s...) }

// num writes text and n: the text ends with an attribute's opening quote, and
// begins with the closing quote of the one before.
func (x *writer) num(text string, n int64) {
	x.buf = append(x.buf, text...)
	if 0 <= n && n < 10 { // most numbers of most files
		x.buf = append(x.buf, byte('0'+n))
		return
	}
	x.buf = strconv.AppendInt(x.buf, n, 10)
}

func (x *writer) bit(text string, on bool) {
	n := int64(0)
	if on {
		n = 1
	}
	x.num(text, n)
}

func (x *writer) algo(d *dialect) {
	p := x.p
	x.str(`<algo name="` + p.Name + `" proto="` + p.Protocol.String())
	x.num(`" nchannels="`, int64(max(p.Channels(), 1)))
	x.num(`" nchunksperloop="`, int64(d.nchunks))
	x.num(`" ngpus="`, int64(p.Ranks()))
	x.str(`" coll="` + d.coll)
	x.bit(`" inplace="`, p.Coll.InPlace)
	x.bit(`" outofplace="`, !p.Coll.InPlace)
	x.num(`" minBytes="`, d.minBytes)
	x.num(`" maxBytes="`, d.maxBytes)
	if p.Coll.Root != ir.None {
		x.num(`" root="`, int64(p.Coll.Root))
	}
	if p.Coll.Peer != ir.None {
		x.num(`" peer="`, int64(p.Coll.Peer))
	}
	if d.target == ir.TargetPlain {
		x.num(`" slots="`, int64(p.Transport.Slots))
		x.num(`" slotbytes="`, p.Transport.SlotBytes)
		x.str(d.counts)
	}
	// The runtimes ignore it; readers learn how to take maxBytes, among others.
	x.str(`" target="` + d.target.String() + "\">\n")
}

func (x *writer) gpu(d *dialect, g int) {
	gpu := &x.p.GPUs[g]
	in, out := d.chunks(gpu)
	x.num(`  <gpu id="`, int64(g))
	x.num(`" i_chunks="`, int64(in))
	x.num(`" o_chunks="`, int64(out))
	x.num(`" s_chunks="`, int64(gpu.Scratch))
	switch {
	case len(gpu.TBs) > 0:
		x.str("\">\n")
	case !runtime(d.target):
		x.str("\"/>\n")
		return
	default:
		// A rank without thread blocks would be launched with an empty grid,
		// which is an error: give it one that has nothing to do.
		x.str("\">\n    <tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\"/>\n")
	}
	for b := range gpu.TBs {
		x.tb(d, ir.Rank(g), b)
	}
	x.str("  </gpu>\n")
}

func (x *writer) tb(d *dialect, r ir.Rank, b int) {
	tb := &x.p.GPUs[r].TBs[b]
	x.num(`    <tb id="`, int64(b))
	x.num(`" send="`, int64(tb.Send))
	x.num(`" recv="`, int64(tb.Recv))
	x.num(`" chan="`, int64(max(tb.Chan, 0))) // the runtimes ask for one even of local work
	if len(tb.Steps) == 0 {
		x.str("\"/>\n")
		return
	}
	x.str("\">\n")
	merge := merging{coll: x.p.Coll, rank: r}
	for s := range tb.Steps {
		post := tb.Steps[s].Post
		if runtime(d.target) && merge.mustEnd(tb.Steps, s) {
			post = true
		}
		x.step(&tb.Steps[s], s, post)
		if len(x.buf) >= flushAt {
			x.flush()
		}
	}
	x.str("    </tb>\n")
}

func (x *writer) step(st *ir.Step, s int, post bool) {
	src, dst := shown(st)
	x.num(`      <step s="`, int64(s))
	x.str(kinds[st.Kind])
	x.num(srcBuf[src.Buf], int64(src.Index))
	x.num(dstBuf[dst.Buf], int64(dst.Index))
	x.num(`" cnt="`, int64(st.Count))
	if st.DepStart < st.DepEnd {
		dep := x.p.Deps[st.DepStart]
		x.num(`" depid="`, int64(dep.TB))
		x.num(`" deps="`, int64(dep.Step))
	} else {
		x.str(`" depid="-1" deps="-1`)
	}
	if post {
		x.str("\" hasdep=\"1\"/>\n")
	} else {
		x.str("\" hasdep=\"0\"/>\n")
	}
}

// The fixed pieces between a step's numbers.
var (
	kinds  = pieces(`" type="`, `"`, ir.Nop, ir.Reduce)
	srcBuf = [...]string{` srcbuf="i" srcoff="`, ` srcbuf="o" srcoff="`, ` srcbuf="s" srcoff="`}
	dstBuf = [...]string{`" dstbuf="i" dstoff="`, `" dstbuf="o" dstoff="`, `" dstbuf="s" dstoff="`}
)

func pieces(before, after string, from, to ir.StepKind) []string {
	var list []string
	for k := from; k <= to; k++ {
		list = append(list, before+k.String()+after)
	}
	return list
}

// shown is the source and destination that a step's attributes name. The place
// that a kind doesn't use is information for people and other tools: the remote
// end where it is known. The runtimes ask for a buffer's name in any case; they
// don't look at the offset, so -1 says "unknown", as in msccl-tools' nops.
func shown(st *ir.Step) (src, dst ir.Place) {
	src, dst = st.Src, st.Dst
	switch st.Kind {
	case ir.Nop:
		src, dst = ir.NoPlace, ir.NoPlace
	case ir.Send, ir.RecvReduceSend:
		dst = st.Remote
	case ir.Recv:
		src = st.Remote
	case ir.RecvCopySend:
		src = dst // what is sent on is what was put there
	}
	if !src.Valid() {
		src = ir.Place{Buf: ir.Input, Index: -1}
	}
	if !dst.Valid() {
		dst = ir.Place{Buf: ir.Output, Index: -1}
	}
	return src, dst
}
