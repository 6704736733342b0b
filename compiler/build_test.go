package compiler

import (
	"context"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// script writes chunk operations for tests, as a user's script would.
type script struct {
	t *testing.T
	d *ir.ChunkDAG
}

// place is a location in tests: i(3), o(0), or a named scratch buffer's.
type place struct {
	rank  ir.Rank
	buf   ir.BufferID
	index int32
}

func newScript(t *testing.T, coll *ir.Collective, proto ir.Protocol, scratch ...string) *script {
	t.Helper()
	spec := &ir.Spec{Name: "test", Coll: coll, Topo: ir.FullyConnected(coll.Ranks), Protocol: proto, Instances: 1,
		Interleaved: true, Fusion: true, CheckXML: true, Positions: []diag.Pos{{}},
		Buffers: []ir.Buffer{{Name: "input"}, {Name: "output"}}}
	for r := range ir.Rank(coll.Ranks) {
		spec.Buffers[0].Chunks = append(spec.Buffers[0].Chunks, coll.InputChunks(r))
		spec.Buffers[1].Chunks = append(spec.Buffers[1].Chunks, coll.OutputChunks(r))
	}
	for _, name := range scratch {
		spec.Buffers = append(spec.Buffers, ir.Buffer{Name: name, Chunks: make([]int32, coll.Ranks)})
	}
	return &script{t, &ir.ChunkDAG{Spec: spec}}
}

func in(r ir.Rank, i int32) place  { return place{r, ir.Input, i} }
func out(r ir.Rank, i int32) place { return place{r, ir.Output, i} }

// tmp is index i of scratch buffer number n of rank r.
func tmp(n ir.BufferID, r ir.Rank, i int32) place { return place{r, ir.FirstScratch + n, i} }

func (s *script) op(kind ir.ChunkKind, src, dst place, count int32) *ir.ChunkOp {
	canon := func(p place) ir.Loc {
		b, i := s.d.Coll.Canon(p.rank, p.buf, p.index)
		if b >= ir.FirstScratch {
			c := s.d.Buffers[b].Chunks
			c[p.rank] = max(c[p.rank], i+count)
		}
		return ir.Loc{Rank: p.rank, Buf: b, Index: i}
	}
	line := int32(len(s.d.Ops) + 1)
	s.d.Positions = append(s.d.Positions, diag.Pos{File: "test.star", Line: line, Col: 1})
	s.d.Ops = append(s.d.Ops, ir.ChunkOp{Kind: kind, Src: canon(src), Dst: canon(dst), Count: count,
		Chan: ir.None, SendTB: ir.None, RecvTB: ir.None, Parallel: 1, Pos: ir.PosID(line)})
	return &s.d.Ops[len(s.d.Ops)-1]
}

func (s *script) copy(src, dst place, count int32) *ir.ChunkOp {
	return s.op(ir.ChunkCopy, src, dst, count)
}

// reduce adds src to dst.
func (s *script) reduce(dst, src place, count int32) *ir.ChunkOp {
	return s.op(ir.ChunkReduce, src, dst, count)
}

// hints sets sendtb, recvtb and ch of an operation.
func hints(op *ir.ChunkOp, sendTB, recvTB, ch int32) {
	op.SendTB, op.RecvTB, op.Chan = sendTB, recvTB, ch
}

func (s *script) compile(o Options) *Result {
	s.t.Helper()
	r, err := Compile(context.Background(), s.d, o)
	if err != nil {
		s.t.Fatalf("compile: %v", err)
	}
	return r
}

// ring is allreduce in place on n ranks: every chunk goes round to be summed
// and round again to be handed out.
func ring(t *testing.T, n int32, proto ir.Protocol) *script {
	s := newScript(t, ir.NewCollective(ir.AllReduce, n, n, true), proto)
	for c := range n {
		at := (c + 1) % n
		for hop := int32(2); hop <= n; hop++ {
			next := (c + hop) % n
			s.reduce(in(ir.Rank(next), c), in(ir.Rank(at), c), 1)
			at = next
		}
		for hop := int32(1); hop < n; hop++ {
			next := (c + hop) % n
			s.copy(in(ir.Rank(at), c), in(ir.Rank(next), c), 1)
			at = next
		}
	}
	return s
}
