package mscclxml

import (
	"math"
	"strconv"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// dialect is what depends on the target and the collective, not on the steps.
type dialect struct {
	target   ir.Target
	coll     string
	nchunks  int32
	minBytes int64
	maxBytes int64  // as the target reads it
	wholeIO  bool   // i_chunks and o_chunks must be nchunksperloop, or 0
	counts   string // the attribute of an alltoallv in this project's own files
}

// chunks are the i_chunks and o_chunks of one rank.
func (d *dialect) chunks(g *ir.GPU) (in, out int32) {
	in, out = g.Input, g.Output
	if d.wholeIO {
		if in > 0 {
			in = d.nchunks
		}
		if out > 0 {
			out = d.nchunks
		}
	}
	return in, out
}

func newDialect(p *ir.Program, t ir.Target) (*dialect, error) {
	d := &dialect{target: t, nchunks: p.Coll.NumChunks(), minBytes: p.MinBytes, maxBytes: p.MaxBytes}
	if err := d.setColl(p.Coll); err != nil {
		return nil, err
	}
	if t == ir.TargetExecutor || t == ir.TargetRCCL {
		if k := p.Coll.Kind; k == ir.Gather || k == ir.Scatter {
			d.perRank(p.Coll)
		}
	}
	if p.MaxBytes != 0 && (d.maxBytes < d.minBytes || d.maxBytes == 0) {
		return nil, diag.Errorf(diag.Pos{}, "xml-window", "target %s: no size is left in the window from %d to %d bytes", t, p.MinBytes, p.MaxBytes)
	}
	if t == ir.TargetMSCCL {
		// msccl's maxBytes is exclusive and has no word for "no limit"; it is read
		// by strtoll into an int64.
		switch {
		case d.maxBytes == 0 || d.maxBytes == math.MaxInt64:
			d.maxBytes = math.MaxInt64
		default:
			d.maxBytes++
		}
	}
	return d, nil
}

// perRank is for gather and scatter where the runtimes count what one rank
// contributes or gets, not the whole: nchunksperloop and the size window are
// about that.
func (d *dialect) perRank(c *ir.Collective) {
	n := int64(c.Ranks)
	d.nchunks /= c.Ranks
	d.minBytes = (d.minBytes + n - 1) / n
	d.maxBytes /= n
}

// setColl chooses the target's word for the collective, or refuses it.
func (d *dialect) setColl(c *ir.Collective) error {
	d.coll = c.Kind.String()
	if d.target == ir.TargetPlain {
		return d.setCounts(c)
	}
	if d.target == ir.TargetAstra {
		switch c.Kind {
		case ir.AllReduce, ir.AllGather, ir.ReduceScatter, ir.AllToAll, ir.Broadcast, ir.ReduceTo:
			return nil
		}
		return diag.Errorf(diag.Pos{}, "xml-collective", "target astra: its converter has no collective %s", c).
			Suggest("it takes allreduce, allgather, reduce_scatter, alltoall, broadcast and reduce")
	}
	native := true
	switch c.Kind {
	case ir.Gather, ir.Scatter:
		native = d.target != ir.TargetMSCCL
	case ir.AllToNext, ir.SendRecv, ir.AllToAllV, ir.Custom:
		native = false
	case ir.ReduceScatter:
		if d.target != ir.TargetMSCCL {
			d.coll = "reducescatter"
		}
	}
	if !native && d.target != ir.TargetMSCCL {
		return diag.Errorf(diag.Pos{}, "xml-collective", "target %s: its runtime has no collective %s", d.target, c).
			Suggest("targets msccl (as its custom collective) and plain take it")
	}
	if native {
		return nil
	}
	d.coll, d.wholeIO = "custom", true
	if c.InPlace && c.Kind == ir.AllToAllV {
		// msccl takes one pointer for both buffers of a custom collective in place.
		return diag.Errorf(diag.Pos{}, "xml-collective", "target msccl: alltoallv in place: its custom collectives share input and output there").
			Suggest("declare it out of place")
	}
	return nil
}

// setCounts writes what an alltoallv moves: the chunks from rank 0 to each, then
// those from rank 1, and so on.
func (d *dialect) setCounts(c *ir.Collective) error {
	if c.Kind != ir.AllToAllV {
		return nil
	}
	b := []byte(`" counts="`)
	for i, n := range c.Counts {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n)*int64(c.Split), 10)
	}
	if d.counts = string(b); len(d.counts) > maxValue {
		return diag.Errorf(diag.Pos{}, "xml-collective", "target plain: an alltoallv of %d ranks: its counts take %d bytes, an attribute holds %d", c.Ranks, len(b), maxValue).
			Suggest("the text form has no such limit")
	}
	return nil
}
