package ir_test

import (
	"fmt"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"pgregory.net/rapid"
)

// The generators below draw well-formed forms in their canonical shape:
// positions numbered by first use, dependencies in the order of the waiting
// steps. That is the shape for which the text is an exact image.

var names = rapid.OneOf(
	rapid.SampledFrom([]string{"", "ring", "i", "input", "x1", "from", "a b", `q"uote`, "tab\t", "new\nline", "\xff", "größe", `("t", 3)`, "#c", "1st", "a-b", ";"}),
	rapid.String())

func drawCollective(t *rapid.T) *ir.Collective {
	kind := ir.CollectiveKind(rapid.IntRange(0, int(ir.Custom)).Draw(t, "kind"))
	n := rapid.Int32Range(1, 5).Draw(t, "ranks")
	c := ir.NewCollective(kind, n, rapid.Int32Range(1, 4).Draw(t, "factor"), rapid.Bool().Draw(t, "inplace"))
	c.Split = rapid.Int32Range(1, 3).Draw(t, "split")
	if kind.Rooted() || kind == ir.SendRecv {
		c.Root = ir.Rank(rapid.Int32Range(0, n-1).Draw(t, "root"))
	}
	switch kind {
	case ir.SendRecv:
		c.Peer = ir.Rank(rapid.Int32Range(0, n-1).Draw(t, "peer"))
	case ir.AllToAllV:
		c.Counts = rapid.SliceOfN(rapid.Int32Range(0, 3), int(n*n), int(n*n)).Draw(t, "counts")
	case ir.Custom:
		c.Name = names.Draw(t, "name")
		c.Custom = drawCustom(t, n)
	}
	return c
}

func drawCustom(t *rapid.T, n int32) *ir.CustomSpec {
	sizes := rapid.SliceOfN(rapid.Int32Range(0, 3), int(n), int(n))
	s := &ir.CustomSpec{Input: sizes.Draw(t, "input"), Output: sizes.Draw(t, "output")}
	if rapid.Bool().Draw(t, "holds") {
		for _, k := range s.Input {
			s.Holds = append(s.Holds, rapid.SliceOfN(rapid.Bool(), int(k), int(k)).Draw(t, "row"))
		}
	}
	var all []ir.Contribution
	for r, k := range s.Input {
		for i := range k {
			all = append(all, ir.Contribution{Rank: ir.Rank(r), Index: i})
		}
	}
	for _, k := range s.Output {
		row := make([][]ir.Contribution, k)
		for i := range row {
			switch {
			case rapid.Bool().Draw(t, "anything"):
			case len(all) == 0:
				row[i] = []ir.Contribution{}
			default:
				row[i] = rapid.SliceOfN(rapid.SampledFrom(all), 0, 3).Draw(t, "want")
			}
		}
		s.Expect = append(s.Expect, row)
	}
	return s
}

func drawSpec(t *rapid.T) *ir.Spec {
	c := drawCollective(t)
	s := &ir.Spec{Name: names.Draw(t, "program"), Coll: c,
		Protocol:      ir.Protocol(rapid.IntRange(0, 3).Draw(t, "protocol")),
		Policy:        ir.ThreadblockPolicy(rapid.IntRange(0, 1).Draw(t, "policy")),
		Instances:     rapid.Int32Range(1, 8).Draw(t, "instances"),
		Interleaved:   rapid.Bool().Draw(t, "interleaved"),
		Fusion:        rapid.Bool().Draw(t, "fusion"),
		DependenceNop: rapid.Bool().Draw(t, "nop"),
		CheckXML:      rapid.Bool().Draw(t, "checkxml"),
		Positions:     []diag.Pos{{}},
	}
	switch rapid.IntRange(0, 2).Draw(t, "topology") {
	case 1:
		s.Topo = ir.FullyConnected(c.Ranks)
	case 2:
		s.Topo = ir.NewTopology(names.Draw(t, "machine"), c.Ranks)
		for i := range s.Topo.Bandwidth {
			if rapid.Bool().Draw(t, "linked") {
				s.Topo.Bandwidth[i] = rapid.Float64Range(1e-300, 1e300).Draw(t, "gbps")
			}
		}
	}
	scratch := rapid.SliceOfNDistinct(names, 0, 3, rapid.ID[string]).Draw(t, "scratch")
	for _, name := range append([]string{"input", "output"}, scratch...) {
		lengths := rapid.SliceOfN(rapid.Int32Range(1, 9), int(c.Ranks), int(c.Ranks)).Draw(t, "lengths")
		s.Buffers = append(s.Buffers, ir.Buffer{Name: name, Chunks: lengths})
	}
	return s
}

// drawPos interns a random position in s, the next new one at most.
func drawPos(t *rapid.T, s *ir.Spec) ir.PosID {
	id := rapid.IntRange(0, len(s.Positions)).Draw(t, "pos")
	if id == len(s.Positions) {
		file := rapid.SampledFrom([]string{"", "ring.star", " lead", `"q"`, "C:\\a b.py", "nl\n", "\xfe", "a:1:2"}).Draw(t, "file")
		s.Positions = append(s.Positions, diag.Pos{File: file, Line: int32(len(s.Positions)), Col: rapid.Int32Range(0, 80).Draw(t, "col")})
	}
	return ir.PosID(id)
}

func drawLoc(t *rapid.T, s *ir.Spec, rank ir.Rank, count int32) (ir.Loc, bool) {
	b := rapid.IntRange(0, len(s.Buffers)-1).Draw(t, "buf")
	room := s.Buffers[b].Chunks[rank] - count
	if room < 0 {
		return ir.Loc{}, false
	}
	return ir.Loc{Rank: rank, Buf: ir.BufferID(b), Index: rapid.Int32Range(0, room).Draw(t, "index")}, true
}

func drawRank(t *rapid.T, s *ir.Spec) ir.Rank {
	return ir.Rank(rapid.Int32Range(0, s.Coll.Ranks-1).Draw(t, "rank"))
}

func drawChunkDAG(t *rapid.T) *ir.ChunkDAG {
	d := &ir.ChunkDAG{Spec: drawSpec(t)}
	opt := rapid.Int32Range(ir.None, 40)
	for range rapid.IntRange(0, 12).Draw(t, "ops") {
		count := rapid.Int32Range(1, 3).Draw(t, "count")
		src, ok1 := drawLoc(t, d.Spec, drawRank(t, d.Spec), count)
		dst, ok2 := drawLoc(t, d.Spec, drawRank(t, d.Spec), count)
		if !ok1 || !ok2 {
			continue
		}
		d.Ops = append(d.Ops, ir.ChunkOp{Kind: ir.ChunkKind(rapid.IntRange(0, 1).Draw(t, "op")), Src: src, Dst: dst, Count: count,
			Chan: opt.Draw(t, "ch"), SendTB: opt.Draw(t, "sendtb"), RecvTB: opt.Draw(t, "recvtb"),
			Parallel: rapid.Int32Range(1, 4).Draw(t, "parallel"), Instance: rapid.Int32Range(0, 4).Draw(t, "instance"),
			Pos: drawPos(t, d.Spec)})
	}
	return d
}

// drawInstrDAG draws chains of messages: each receiving instruction takes the
// message of an earlier sending one that has no receiver yet.
func drawInstrDAG(t *rapid.T) *ir.InstrDAG {
	d := &ir.InstrDAG{Spec: drawSpec(t)}
	opt := rapid.Int32Range(ir.None, 40)
	var open []ir.InstrID
	add := func(kind ir.StepKind) {
		count := rapid.Int32Range(1, 3).Draw(t, "count")
		rank := drawRank(t, d.Spec)
		in := ir.Instr{Kind: kind, Rank: rank, Src: ir.NoPlace, Dst: ir.NoPlace, Count: count,
			SendTo: ir.None, RecvFrom: ir.None, Chan: opt.Draw(t, "ch"), TB: opt.Draw(t, "tb"),
			Instance: rapid.Int32Range(0, 4).Draw(t, "instance"), Op: ir.OpID(opt.Draw(t, "origin"))}
		for _, side := range []struct {
			used bool
			at   *ir.Place
		}{{kind.ReadsSrc(), &in.Src}, {kind.WritesDst(), &in.Dst}} {
			if side.used {
				l, ok := drawLoc(t, d.Spec, rank, count)
				if !ok {
					l, count = ir.Loc{Rank: rank}, 1
					in.Count = 1
				}
				*side.at = ir.Place{Buf: l.Buf, Index: l.Index}
			}
		}
		id := ir.InstrID(len(d.Instrs))
		if kind.Receives() {
			in.RecvFrom, open = open[0], open[1:]
			d.Instrs[in.RecvFrom].SendTo = id
		}
		if kind.Sends() {
			open = append(open, id)
		}
		in.Pos = drawPos(t, d.Spec)
		d.Instrs = append(d.Instrs, in)
	}
	for range rapid.IntRange(0, 12).Draw(t, "instrs") {
		kind := ir.StepKind(rapid.IntRange(0, int(ir.Reduce)).Draw(t, "kind"))
		if kind.Receives() && len(open) == 0 {
			kind = ir.Send
		}
		add(kind)
	}
	for len(open) > 0 {
		add(ir.Recv)
	}
	return d
}

func drawProgram(t *rapid.T) *ir.Program {
	p := &ir.Program{Spec: drawSpec(t), MinBytes: rapid.Int64Range(0, 1<<62).Draw(t, "min"), MaxBytes: rapid.Int64Range(0, 1<<62).Draw(t, "max"),
		Transport: ir.Transport{Slots: rapid.Int32Range(0, 9).Draw(t, "slots"), SlotBytes: rapid.Int64Range(0, 1<<40).Draw(t, "bytes")}}
	if rapid.Bool().Draw(t, "nobuffers") {
		p.Buffers = nil
	}
	size, any32 := rapid.Int32Range(0, 50), rapid.Int32Range(-2, 99)
	place := rapid.Custom(func(t *rapid.T) ir.Place {
		b := rapid.Int32Range(-1, 2).Draw(t, "buf")
		if b == ir.None {
			return ir.NoPlace
		}
		return ir.Place{Buf: ir.BufferID(b), Index: any32.Draw(t, "index")}
	})
	for range p.Coll.Ranks {
		g := ir.GPU{Input: size.Draw(t, "in"), Output: size.Draw(t, "out"), Scratch: size.Draw(t, "scratch")}
		for range rapid.IntRange(0, 3).Draw(t, "tbs") {
			b := ir.ThreadBlock{Send: ir.Rank(any32.Draw(t, "send")), Recv: ir.Rank(any32.Draw(t, "recv")), Chan: any32.Draw(t, "ch")}
			for range rapid.IntRange(0, 4).Draw(t, "steps") {
				s := ir.Step{Kind: ir.StepKind(rapid.IntRange(0, int(ir.Reduce)).Draw(t, "kind")), Post: rapid.Bool().Draw(t, "post"),
					Src: place.Draw(t, "src"), Dst: place.Draw(t, "dst"), Remote: place.Draw(t, "remote"), Count: any32.Draw(t, "count"),
					SendPeer: ir.Rank(any32.Draw(t, "to")), RecvPeer: ir.Rank(any32.Draw(t, "from")), Chan: any32.Draw(t, "stepch"),
					DepStart: int32(len(p.Deps))}
				for range rapid.IntRange(0, 2).Draw(t, "deps") {
					p.Deps = append(p.Deps, ir.Dep{TB: any32.Draw(t, "deptb"), Step: any32.Draw(t, "depstep")})
				}
				s.DepEnd = int32(len(p.Deps))
				s.Pos = drawPos(t, p.Spec)
				b.Steps = append(b.Steps, s)
			}
			g.TBs = append(g.TBs, b)
		}
		p.GPUs = append(p.GPUs, g)
	}
	return p
}

// ringDAG is the program that the goldens and benchmarks share: the reduce half
// of a ring and the copy half, over n ranks.
func ringDAG(n int32) *ir.ChunkDAG {
	c := ir.NewCollective(ir.AllReduce, n, n, true)
	lengths := make([]int32, n)
	for i := range lengths {
		lengths[i] = n
	}
	s := &ir.Spec{Name: "allreduce_ring", Coll: c, Topo: ir.FullyConnected(n), Protocol: ir.LL128, Instances: 1, Interleaved: true, Fusion: true,
		Buffers:   []ir.Buffer{{Name: "input", Chunks: lengths}, {Name: "output", Chunks: lengths}},
		Positions: []diag.Pos{{}, {File: "ring.star", Line: 11, Col: 49}, {File: "ring.star", Line: 13, Col: 23}}}
	d := &ir.ChunkDAG{Spec: s}
	for i := range n {
		for hop := int32(1); hop < 2*n-1; hop++ {
			op := ir.ChunkOp{Kind: ir.ChunkReduce, Count: 1, Chan: i % 2, SendTB: ir.None, RecvTB: ir.None, Parallel: 1, Pos: 1,
				Src: ir.Loc{Rank: ir.Rank((i + hop) % n), Buf: ir.Input, Index: i},
				Dst: ir.Loc{Rank: ir.Rank((i + hop + 1) % n), Buf: ir.Input, Index: i}}
			if hop >= n {
				op.Kind, op.Pos = ir.ChunkCopy, 2
			}
			d.Ops = append(d.Ops, op)
		}
	}
	return d
}

// place and the like keep tables short.
func place(b ir.BufferID, i int32) ir.Place { return ir.Place{Buf: b, Index: i} }

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("test setup: %v", err))
	}
	return v
}
