package trace_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// script drives a Builder as a front end does: every call stands on a line of
// its own. Calls that a test expects to work stop it when they don't.
type script struct {
	t *testing.T
	*trace.Builder
}

func newScript(t *testing.T, c *ir.Collective, topo *ir.Topology) script {
	t.Helper()
	if topo == nil {
		topo = ir.FullyConnected(c.Ranks)
	}
	b, err := trace.New(ir.Spec{Name: "test", Coll: c, Topo: topo, Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	return script{t, b}
}

// line is a position in column 5 of a line of algo.star.
func (s script) line(n int32) ir.PosID {
	return s.Pos(diag.Pos{File: "algo.star", Line: n, Col: 5})
}

func (s script) must(r trace.Ref, err error) trace.Ref {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s script) chunk(rank ir.Rank, buf ir.BufferID, index, count, line int32) trace.Ref {
	s.t.Helper()
	return s.must(s.Chunk(rank, buf, index, count, s.line(line)))
}

func (s script) copy(src trace.Ref, rank ir.Rank, buf ir.BufferID, index, line int32) trace.Ref {
	s.t.Helper()
	return s.must(s.Copy(src, rank, buf, index, trace.NoHints, s.line(line)))
}

func (s script) reduce(dst, src trace.Ref, line int32) trace.Ref {
	s.t.Helper()
	return s.must(s.Reduce(dst, src, trace.NoHints, s.line(line)))
}

const (
	in   = ir.Input
	out  = ir.Output
	none = ir.None
)

var no = trace.NoHints

func allreduce(ranks, chunks int32, inPlace bool) *ir.Collective {
	return ir.NewCollective(ir.AllReduce, ranks, chunks, inPlace)
}

func rooted(k ir.CollectiveKind, ranks, chunks int32, root ir.Rank, inPlace bool) *ir.Collective {
	c := ir.NewCollective(k, ranks, chunks, inPlace)
	c.Root = root
	return c
}

func line(ranks int32) *ir.Topology {
	t := ir.NewTopology("Line", ranks)
	for r := range ir.Rank(ranks) - 1 {
		t.Link(r, r+1, 1)
		t.Link(r+1, r, 1)
	}
	return t
}

func star(ranks int32) *ir.Topology {
	t := ir.NewTopology("Star", ranks)
	for r := ir.Rank(1); int32(r) < ranks; r++ {
		t.Link(0, r, 1)
	}
	return t
}

// misuse is one wrong call, always on line 9, and the whole of what the user reads.
type misuse struct {
	name string
	coll *ir.Collective // in-place allreduce of 4 ranks and 8 chunks if nil
	topo *ir.Topology   // fully connected if nil
	do   func(s script) error
	code string
	want string
}

func TestMisuse(t *testing.T) {
	for _, c := range slices.Concat(misusedPlaces, misusedReferences) {
		t.Run(c.name, func(t *testing.T) {
			coll := c.coll
			if coll == nil {
				coll = allreduce(4, 8, true)
			}
			s := newScript(t, coll, c.topo)
			expect(t, c.do(s), c.code, c.want)
		})
	}
}

func expect(t *testing.T, err error, code, want string) {
	t.Helper()
	var m *diag.Message
	if !errors.As(err, &m) {
		t.Fatalf("got %v, want a message", err)
	}
	if m.Code != code {
		t.Errorf("code: got %s, want %s", m.Code, code)
	}
	if m.Severity != diag.Error {
		t.Errorf("severity: got %s, want error", m.Severity)
	}
	if m.Error() != want {
		t.Errorf("got:\n%s\nwant:\n%s", m.Error(), want)
	}
}

func TestNothingAfterFinish(t *testing.T) {
	s := newScript(t, allreduce(2, 2, true), nil)
	c := s.chunk(0, in, 0, 1, 1)
	if _, err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	at := s.line(9)
	_, chunkErr := s.Chunk(0, in, 0, 1, at)
	_, copyErr := s.Copy(c, 1, none, none, no, at)
	_, reduceErr := s.Reduce(c, c, no, at)
	_, splitErr := s.Split(c, 1, at)
	_, groupErr := s.Group(c, c, at)
	_, originErr := s.Origin(c, 0, at)
	_, _, dstErr := s.Destination(c, 0, at)
	_, infoErr := s.Describe(c, 0, at)
	for _, e := range []struct {
		call string
		err  error
	}{
		{"chunk", chunkErr}, {"copy", copyErr}, {"reduce", reduceErr}, {"split", splitErr}, {"group", groupErr},
		{"get_origin", originErr}, {"get_dst", dstErr}, {"print_chunk_info", infoErr}, {"parallelize", s.Parallelize(2, at)},
	} {
		expect(t, e.err, "finished", "algo.star:9:5: "+e.call+": the program is already finished\n"+
			"    chunks can be moved only while their program is being written")
	}
	_, err := s.Finish()
	expect(t, err, "finished", "finish: the program is already finished\n"+
		"    chunks can be moved only while their program is being written")
}

func TestParallelizeMustBalance(t *testing.T) {
	s := newScript(t, allreduce(2, 2, true), nil)
	if err := s.Parallelize(2, s.line(1)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Finish()
	expect(t, err, "unbalanced-parallelize", "parallelize: 1 still open at the end of the program")
	s.EndParallelize()
	s.EndParallelize()
	_, err = s.Finish()
	expect(t, err, "unbalanced-parallelize", "parallelize: ended more often than begun")
}
