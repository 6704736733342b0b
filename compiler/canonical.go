package compiler

import (
	"cmp"
	"context"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// canonical makes every rank add in the same order, ascending by the rank that a
// term comes from, so that all ranks of an allreduce get the same bits. It runs
// when Options.CanonicalOrder asks for it.
//
// A chain is a run of reduces into one range that nothing else reads or writes in
// between, with whatever the range held before, or with the copy that filled it,
// as its first term. The chain is written anew where its last reduce stood, its
// terms in order; a term that changes before that keeps the chain as it is. Addition
// commutes, so a first term that belongs in first or second place can stay; further
// back, the terms before it are summed in scratch first. Sums made in one place
// and handed out are the same everywhere to begin with, and nothing is done to them.
// Nor is anything done to sums of sums: moving their terms about could make alike
// what differs or the other way round; the checker tells whether ranks agree.
func canonical(_ context.Context, s *state) error {
	if !s.opt.CanonicalOrder {
		return nil
	}
	c := newCanonizer(s.source)
	for i := range s.source.Ops {
		c.take(int32(i))
	}
	c.closeAll()
	s.source = c.rewrite()
	return nil
}

// term is one operand of a chain: where it is read, by which operation, and the
// least contribution in it.
type term struct {
	op    int32 // None for what the range held before the chain
	least ir.Contribution
	sum   bool // it is a sum itself
}

// chain collects the reduces into one range.
type chain struct {
	at    ir.Loc
	count int32
	terms []term
	fill  bool // terms[0] is the copy that filled the range
	live  bool // still growing
	last  int32
}

type canonizer struct {
	d       *ir.ChunkDAG
	loc     locations
	least   []ir.Contribution // by location: the least contribution held
	summed  []bool            // by location: holds a sum
	version []int32           // by location: operation that wrote it last, None at first
	open    []int32           // by location: chain whose range it is in, or None
	chains  []chain
	read    [][]int32 // by operation: versions its source had, chunk by chunk
}

func newCanonizer(d *ir.ChunkDAG) *canonizer {
	c := &canonizer{d: d, loc: newLocations(d.Spec), read: make([][]int32, len(d.Ops))}
	c.least, c.summed = make([]ir.Contribution, c.loc.total), make([]bool, c.loc.total)
	c.version, c.open = filled(int(c.loc.total), ir.None), filled(int(c.loc.total), ir.None)
	for r := range ir.Rank(d.Coll.Ranks) {
		for i := range d.Coll.InputChunks(r) {
			b, at := d.Coll.Canon(r, ir.Input, i)
			c.least[c.loc.at(r, ir.Place{Buf: b, Index: at})] = ir.Contribution{Rank: r, Index: i}
		}
	}
	return c
}

func (c *canonizer) base(l ir.Loc) int32 {
	return c.loc.at(l.Rank, ir.Place{Buf: l.Buf, Index: l.Index})
}

// take follows operation i: it grows, starts or ends chains.
func (c *canonizer) take(i int32) {
	op := &c.d.Ops[i]
	src, dst := c.base(op.Src), c.base(op.Dst)
	for k := range op.Count {
		c.close(src + k) // its sum is used
		c.read[i] = append(c.read[i], c.version[src+k])
	}
	mine := c.open[dst]
	grows := op.Kind == ir.ChunkReduce && mine != ir.None && c.chains[mine].live &&
		c.chains[mine].at == op.Dst && c.chains[mine].count == op.Count
	if !grows {
		for k := range op.Count {
			c.close(dst + k)
		}
		mine = int32(len(c.chains))
		first := term{ir.None, c.least[dst], c.anySum(dst, op.Count)}
		if op.Kind == ir.ChunkCopy {
			first = term{i, c.least[src], c.anySum(src, op.Count)}
		}
		c.chains = append(c.chains, chain{at: op.Dst, count: op.Count, terms: []term{first}, fill: op.Kind == ir.ChunkCopy, live: true, last: i})
	}
	ch := &c.chains[mine]
	if op.Kind == ir.ChunkReduce {
		ch.terms = append(ch.terms, term{i, c.least[src], c.anySum(src, op.Count)})
	}
	ch.last = i
	for k := range op.Count {
		c.open[dst+k] = mine
		c.version[dst+k] = i
		if op.Kind == ir.ChunkCopy || compareContributions(c.least[src+k], c.least[dst+k]) < 0 {
			c.least[dst+k] = c.least[src+k]
		}
		c.summed[dst+k] = op.Kind == ir.ChunkReduce || c.summed[src+k]
	}
}

func (c *canonizer) anySum(at, count int32) bool {
	return slices.Contains(c.summed[at:at+count], true)
}

func compareContributions(a, b ir.Contribution) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Index, b.Index))
}

// close ends the chain that a location belongs to.
func (c *canonizer) close(at int32) {
	if k := c.open[at]; k != ir.None && c.chains[k].live {
		c.chains[k].live = false
		c.settle(&c.chains[k])
	}
}

func (c *canonizer) closeAll() {
	for k := range c.chains {
		if c.chains[k].live {
			c.chains[k].live = false
			c.settle(&c.chains[k])
		}
	}
}

// settle drops a chain that is in order, that has sums among its terms, or whose
// terms have been overwritten since they were read.
func (c *canonizer) settle(ch *chain) {
	sums := slices.ContainsFunc(ch.terms, func(t term) bool { return t.sum })
	if len(ch.terms) < 3 || sums || inOrder(ch.terms) {
		ch.terms = nil
		return
	}
	for _, t := range ch.terms {
		if t.op == ir.None {
			continue
		}
		src := c.base(c.d.Ops[t.op].Src)
		for k := range ch.count {
			if c.version[src+k] != c.read[t.op][k] {
				ch.terms = nil
				return
			}
		}
	}
}

// inOrder reports whether adding the terms as they stand gives the order by
// rank; the first two may stand either way round.
func inOrder(terms []term) bool {
	for k := 2; k < len(terms); k++ {
		for j := range k {
			if compareContributions(terms[j].least, terms[k].least) > 0 {
				return false
			}
		}
	}
	return true
}

// rewrite writes the program anew, with the chains that settled out of order
// where their last operation stood.
func (c *canonizer) rewrite() *ir.ChunkDAG {
	gone := make([]bool, len(c.d.Ops))
	endsAt := filled(len(c.d.Ops), ir.None)
	any := false
	for k := range c.chains {
		if c.chains[k].terms == nil {
			continue
		}
		any = true
		endsAt[c.chains[k].last] = int32(k)
		for _, t := range c.chains[k].terms {
			if t.op != ir.None {
				gone[t.op] = true
			}
		}
	}
	if !any {
		return c.d
	}
	spec := *c.d.Spec
	spec.Buffers = slices.Clone(spec.Buffers)
	partial := ir.BufferID(len(spec.Buffers))
	spec.Buffers = append(spec.Buffers, ir.Buffer{Name: "partial sums", Chunks: make([]int32, spec.Coll.Ranks)})
	out := &ir.ChunkDAG{Spec: &spec}
	for i := range c.d.Ops {
		if !gone[i] {
			out.Ops = append(out.Ops, c.d.Ops[i])
		}
		if k := endsAt[i]; k != ir.None {
			c.writeChain(out, &c.chains[k], partial)
		}
	}
	return out
}

// writeChain writes the terms of a chain in order.
func (c *canonizer) writeChain(out *ir.ChunkDAG, ch *chain, partial ir.BufferID) {
	terms := slices.Clone(ch.terms)
	slices.SortStableFunc(terms, func(a, b term) int { return compareContributions(a.least, b.least) })
	write := func(t term, kind ir.ChunkKind, to ir.Loc) {
		op := c.d.Ops[t.op]
		op.Kind, op.Dst = kind, to
		out.Ops = append(out.Ops, op)
	}
	held := slices.IndexFunc(terms, func(t term) bool { return t.op == ir.None })
	switch {
	case held < 0: // filled by a copy: any term can fill it
		write(terms[0], ir.ChunkCopy, ch.at)
		terms = terms[1:]
	case held == 0:
		terms = terms[1:]
	case held == 1:
		terms = slices.Delete(terms, 1, 2)
	default: // the terms before what is held are summed apart
		sum := ir.Loc{Rank: ch.at.Rank, Buf: partial, Index: out.Buffers[partial].Chunks[ch.at.Rank]}
		out.Buffers[partial].Chunks[ch.at.Rank] += ch.count
		write(terms[0], ir.ChunkCopy, sum)
		for _, t := range terms[1:held] {
			write(t, ir.ChunkReduce, sum)
		}
		join := c.d.Ops[ch.last]
		if join.Remote() {
			join.SendTB = join.RecvTB // a local operation reads sendtb
		}
		join.Kind, join.Src, join.Dst, join.Chan = ir.ChunkReduce, sum, ch.at, ir.None
		out.Ops = append(out.Ops, join)
		terms = terms[held+1:]
	}
	for _, t := range terms {
		write(t, ir.ChunkReduce, ch.at)
	}
}
