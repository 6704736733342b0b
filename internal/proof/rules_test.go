package proof

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// connKey names a connection.
type connKey struct {
	src, dst ir.Rank
	channel  int32
}

// brokenRules reads the structural rules off a program in two rounds, as they build
// on each other: what a step or a thread block says by itself, then what the two
// ends of connections say together.
func brokenRules(p *ir.Program) classes {
	slotted := p.Transport.Slots >= 1 && p.Transport.SlotBytes >= 1
	if p.Protocol == ir.Direct {
		slotted = p.Transport.Slots == 0 && p.Transport.SlotBytes == 0
	}
	if !slotted || p.MaxBytes > 0 && p.MaxBytes < p.MinBytes {
		return badProgram
	}
	var c classes
	for r := range p.GPUs {
		g := &p.GPUs[r]
		rank := ir.Rank(r)
		if g.Input != p.Coll.InputChunks(rank) || g.Output != p.Coll.OutputChunks(rank) || g.Scratch < 0 {
			c |= badProgram
		}
		for t := range g.TBs {
			tb := &g.TBs[t]
			for _, peer := range []ir.Rank{tb.Send, tb.Recv} {
				if peer != ir.None && (!isPeer(p, rank, peer) || tb.Chan < 0) {
					c |= badProgram
				}
			}
			for s := range tb.Steps {
				c |= stepRules(p, rank, &tb.Steps[s]) | waitRules(p, g, t, s)
			}
		}
	}
	if c == 0 {
		c = connectionRules(p)
	}
	return c
}

func isPeer(p *ir.Program, r, peer ir.Rank) bool {
	return peer >= 0 && int(peer) < len(p.GPUs) && peer != r
}

// stepRules looks at places only where the fields make sense.
func stepRules(p *ir.Program, r ir.Rank, st *ir.Step) classes {
	moves := st.Kind != ir.Nop
	for _, end := range []struct {
		peer ir.Rank
		used bool
	}{{st.SendPeer, st.Kind.Sends()}, {st.RecvPeer, st.Kind.Receives()}} {
		if end.used && (!isPeer(p, r, end.peer) || st.Chan < 0) || !end.used && end.peer != ir.None {
			return badStep
		}
	}
	if st.Kind > ir.Reduce || moves && st.Count < 1 || !moves && st.Count != 0 {
		return badStep
	}
	if st.Kind.Sends() && !p.Topo.Linked(r, st.SendPeer) {
		return noLink
	}
	reads, writes := st.Kind.ReadsSrc(), st.Kind.WritesDst()
	if reads && !within(p, r, st.Src, st.Count) || writes && !within(p, r, st.Dst, st.Count) {
		return bounds
	}
	if !reads || !writes {
		return 0
	}
	sb, si := p.Coll.Canon(r, st.Src.Buf, st.Src.Index)
	db, di := p.Coll.Canon(r, st.Dst.Buf, st.Dst.Index)
	if gap := max(si-di, di-si); sb == db && gap > 0 && gap < st.Count {
		return overlap
	}
	return 0
}

func within(p *ir.Program, r ir.Rank, pl ir.Place, count int32) bool {
	g := &p.GPUs[r]
	if pl.Buf < ir.Input || pl.Buf > ir.FirstScratch {
		return false
	}
	size := [...]int32{g.Input, g.Output, g.Scratch}[pl.Buf]
	return pl.Index >= 0 && int64(pl.Index)+int64(count) <= int64(size)
}

func waitRules(p *ir.Program, g *ir.GPU, t, s int) classes {
	for _, d := range p.DepsOf(&g.TBs[t].Steps[s]) {
		switch {
		case d.TB < 0 || int(d.TB) >= len(g.TBs) || d.Step < 0 || int(d.Step) >= len(g.TBs[d.TB].Steps),
			int(d.TB) == t && int(d.Step) >= s,
			!g.TBs[d.TB].Steps[d.Step].Post:
			return dependency
		}
	}
	return 0
}

// connectionRules wants one thread block at each end of a connection, used or only
// declared, and the same counts in the same order at both.
func connectionRules(p *ir.Program) classes {
	type end struct {
		tbs    []int
		counts []int32
	}
	ends := [2]map[connKey]*end{{}, {}} // senders, receivers
	claim := func(side int, k connKey, tb int) *end {
		e := ends[side][k]
		if e == nil {
			e = &end{}
			ends[side][k] = e
		}
		if !slices.Contains(e.tbs, tb) {
			e.tbs = append(e.tbs, tb)
		}
		return e
	}
	for r := range p.GPUs {
		rank := ir.Rank(r)
		for t := range p.GPUs[r].TBs {
			tb := &p.GPUs[r].TBs[t]
			if tb.Send != ir.None {
				claim(0, connKey{rank, tb.Send, tb.Chan}, t)
			}
			if tb.Recv != ir.None {
				claim(1, connKey{tb.Recv, rank, tb.Chan}, t)
			}
			for _, st := range tb.Steps {
				if st.Kind.Sends() {
					e := claim(0, connKey{rank, st.SendPeer, st.Chan}, t)
					e.counts = append(e.counts, st.Count)
				}
				if st.Kind.Receives() {
					e := claim(1, connKey{st.RecvPeer, rank, st.Chan}, t)
					e.counts = append(e.counts, st.Count)
				}
			}
		}
	}
	var c classes
	for side := range ends {
		for k, e := range ends[side] {
			other := ends[1-side][k]
			if other == nil {
				other = &end{}
			}
			switch {
			case len(e.tbs) > 1:
				c |= owner
			case len(other.tbs) < 2 && !slices.Equal(e.counts, other.counts):
				c |= counts
			}
		}
	}
	return c
}

// regimes lists every number of chunks in a message that some size of the window
// gives, ascending.
func regimes(p *ir.Program) []int32 {
	n := max(p.Coll.NumChunks(), 1)
	most := p.MaxBytes
	if most == 0 {
		most = 2 * p.Transport.SlotBytes * int64(n) // beyond, nothing changes
	}
	least := min(max(p.MinBytes, 1), most)
	seen := map[int32]bool{}
	for k := int64(1); k <= ir.MaxRegime; k++ {
		// The largest size of the window with k chunks in a message is the window's
		// own or the one that fills a slot.
		for _, size := range []int64{least, most, int64(n) * (p.Transport.SlotBytes / k)} {
			if size >= least && size <= most {
				seen[p.Transport.Regime(size, n)] = true
			}
		}
	}
	var out []int32
	for k := range int32(ir.MaxRegime + 1) {
		if seen[k] {
			out = append(out, k)
		}
	}
	return out
}
