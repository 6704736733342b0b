package compiler

import (
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// sized is p with its buffers listed: what is read from a file may have the sizes
// of its GPUs only.
func sized(p *ir.Program) *ir.Program {
	q, spec := *p, *p.Spec
	spec.Buffers = []ir.Buffer{{Name: "input"}, {Name: "output"}, {Name: "scratch"}}
	for r := range p.GPUs {
		g := &p.GPUs[r]
		for b, n := range []int32{g.Input, g.Output, g.Scratch} {
			spec.Buffers[b].Chunks = append(spec.Buffers[b].Chunks, n)
		}
	}
	q.Spec = &spec
	return &q
}

// padded is p with an input and an output on every rank, if it is a send and
// receive: that of MSCCL++ gives them to every rank.
func padded(p *ir.Program) *ir.Program {
	if p.Coll.Kind != ir.SendRecv {
		return p
	}
	n := p.Coll.NumChunks()
	custom := &ir.CustomSpec{}
	chunks := make([]int32, len(p.GPUs))
	for r := range chunks {
		chunks[r] = n
		expect := make([][]ir.Contribution, n)
		for i := range expect {
			if want, demanded := p.Coll.Expect(nil, ir.Rank(r), int32(i)); demanded {
				expect[i] = want
			}
		}
		custom.Expect = append(custom.Expect, expect)
	}
	custom.Input, custom.Output = chunks, chunks
	q, spec := *p, *p.Spec
	spec.Coll = ir.NewCollective(ir.Custom, p.Coll.Ranks, 1, false)
	spec.Coll.Name, spec.Coll.Custom = p.Coll.Kind.String(), custom
	q.Spec, q.GPUs = &spec, slices.Clone(p.GPUs)
	for r := range q.GPUs {
		q.GPUs[r].Input, q.GPUs[r].Output = n, n
	}
	return &q
}
