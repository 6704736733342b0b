package trace_test

import (
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// Wrong references: stale or foreign ones, and those that don't go together.
var misusedReferences = []misuse{
	{
		name: "a copy of a reference that a copy overwrote",
		do: func(s script) error {
			old := s.chunk(2, in, 3, 1, 1)
			s.copy(s.chunk(0, in, 0, 1, 2), 2, in, 3, 3)
			_, err := s.Copy(old, 1, in, 3, no, s.line(9))
			return err
		},
		code: "stale-reference",
		want: "algo.star:9:5: stale reference: rank 2 input[3] was overwritten by the copy at algo.star:3:5\n" +
			"    the reference was taken at algo.star:1:5; take it again with chunk(2, \"input\", 3)",
	},
	{
		name: "one chunk of a range that a reduce changed, through the other name of the memory",
		do: func(s script) error {
			old := s.chunk(1, out, 2, 4, 1)
			s.reduce(s.chunk(1, in, 4, 1, 2), s.chunk(0, in, 4, 1, 3), 4)
			_, err := s.Copy(old, 0, in, 0, no, s.line(9))
			return err
		},
		code: "stale-reference",
		want: "algo.star:9:5: stale reference: rank 1 output[4] was overwritten by the reduce at algo.star:4:5\n" +
			"    the reference was taken at algo.star:1:5; take it again with chunk(1, \"output\", 2, 4)",
	},
	{
		name: "a stale destination of a reduce, in scratch named by a tuple",
		do: func(s script) error {
			tmp := s.Scratch(`("tmp", 1)`)
			old := s.copy(s.chunk(0, in, 0, 1, 1), 0, tmp, 0, 2)
			s.copy(s.chunk(0, in, 1, 1, 3), 0, tmp, 0, 4)
			_, err := s.Reduce(old, s.chunk(0, in, 2, 1, 5), no, s.line(9))
			return err
		},
		code: "stale-reference",
		want: "algo.star:9:5: stale reference: rank 0 (\"tmp\", 1)[0] was overwritten by the copy at algo.star:4:5\n" +
			"    the reference was taken at algo.star:2:5; take it again with chunk(0, (\"tmp\", 1), 0)",
	},
	{
		name: "a stale operand of a reduce",
		do: func(s script) error {
			old := s.chunk(0, in, 0, 1, 1)
			s.copy(s.chunk(1, in, 0, 1, 2), 0, in, 0, 3)
			_, err := s.Reduce(s.chunk(2, in, 0, 1, 4), old, no, s.line(9))
			return err
		},
		code: "stale-reference",
		want: "algo.star:9:5: stale reference: rank 0 input[0] was overwritten by the copy at algo.star:3:5\n" +
			"    the reference was taken at algo.star:1:5; take it again with chunk(0, \"input\", 0)",
	},
	{
		name: "another reference to what a reduce changed",
		do: func(s script) error {
			c, twin := s.chunk(0, in, 0, 1, 1), s.chunk(0, in, 0, 1, 2)
			s.reduce(c, s.chunk(1, in, 0, 1, 3), 4)
			_, err := s.Split(twin, 1, s.line(9))
			return err
		},
		code: "stale-reference",
		want: "algo.star:9:5: stale reference: rank 0 input[0] was overwritten by the reduce at algo.star:4:5\n" +
			"    the reference was taken at algo.star:2:5; take it again with chunk(0, \"input\", 0)",
	},
	{
		name: "stale without known positions",
		do: func(s script) error {
			old := s.must(s.Chunk(0, in, 0, 1, 0))
			s.must(s.Copy(s.must(s.Chunk(1, in, 0, 1, 0)), 0, in, 0, no, 0))
			_, err := s.Group(s.must(s.Chunk(0, in, 1, 1, 0)), old, 0)
			return err
		},
		code: "stale-reference",
		want: "stale reference: rank 0 input[0] was overwritten by the copy\n" +
			"    take it again with chunk(0, \"input\", 0)",
	},
	{
		name: "counts that differ in a reduce",
		do: func(s script) error {
			_, err := s.Reduce(s.chunk(1, in, 0, 1, 1), s.chunk(0, in, 0, 3, 2), no, s.line(9))
			return err
		},
		code: "count-mismatch",
		want: "algo.star:9:5: reduce: counts differ: rank 1 input[0] has 1 chunk, rank 0 input[0:3] has 3\n" +
			"    take both references with the same count",
	},
	{
		name: "an overlapping local copy",
		do: func(s script) error {
			_, err := s.Copy(s.chunk(0, in, 0, 2, 1), 0, in, 1, no, s.line(9))
			return err
		},
		code: "overlap",
		want: "algo.star:9:5: copy: rank 0 input[0:2] overlaps its destination input[1:3]\n" +
			"    copy to scratch first, then from there",
	},
	{
		name: "a copy onto itself, by the defaults",
		do: func(s script) error {
			_, err := s.Copy(s.chunk(0, in, 3, 1, 1), 0, none, none, no, s.line(9))
			return err
		},
		code: "overlap",
		want: "algo.star:9:5: copy: rank 0 input[3] is copied onto itself\n" +
			"    give another rank, or another buffer and index",
	},
	{
		name: "a copy onto itself, by two names of one memory",
		coll: ir.NewCollective(ir.AllGather, 4, 1, true),
		do: func(s script) error {
			_, err := s.Copy(s.chunk(2, in, 0, 1, 1), 2, out, 2, no, s.line(9))
			return err
		},
		code: "overlap",
		want: "algo.star:9:5: copy: rank 2 input[0] is copied onto itself\n" +
			"    output[2] is the same memory: this allgather is in place",
	},
	{
		name: "a reduce of a chunk with itself",
		do: func(s script) error {
			c := s.chunk(0, in, 0, 1, 1)
			_, err := s.Reduce(c, c, no, s.line(9))
			return err
		},
		code: "self-reduce",
		want: "algo.star:9:5: reduce: rank 0 input[0] is reduced with itself\n" +
			"    to double a value, copy it to scratch and reduce with the copy",
	},
	{
		name: "a reduce of a chunk with itself, by two names",
		do: func(s script) error {
			_, err := s.Reduce(s.chunk(0, in, 0, 1, 1), s.chunk(0, out, 0, 1, 2), no, s.line(9))
			return err
		},
		code: "self-reduce",
		want: "algo.star:9:5: reduce: rank 0 input[0] is reduced with itself\n" +
			"    output[0] is the same memory: this allreduce is in place",
	},
	{
		name: "a reduce of overlapping ranges",
		do: func(s script) error {
			_, err := s.Reduce(s.chunk(0, in, 0, 2, 1), s.chunk(0, in, 1, 2, 2), no, s.line(9))
			return err
		},
		code: "self-reduce",
		want: "algo.star:9:5: reduce: rank 0 input[0:2] overlaps its operand input[1:3]\n" +
			"    copy the operand to scratch first",
	},
	{
		name: "a split that doesn't divide",
		do: func(s script) error {
			_, err := s.Split(s.chunk(0, in, 0, 6, 1), 4, s.line(9))
			return err
		},
		code: "bad-split",
		want: "algo.star:9:5: split: rank 0 input[0:6] can't be cut into 4 equal parts: it has 6 chunks\n" +
			"    1, 2, 3 or 6 parts are possible",
	},
	{
		name: "a split of one chunk",
		do: func(s script) error {
			_, err := s.Split(s.chunk(0, in, 5, 1, 1), 2, s.line(9))
			return err
		},
		code: "bad-split",
		want: "algo.star:9:5: split: rank 0 input[5] can't be cut into 2 equal parts: it has 1 chunk\n" +
			"    only 1 part is possible",
	},
	{
		name: "a split into nothing",
		do: func(s script) error {
			_, err := s.Split(s.chunk(0, in, 0, 6, 1), 0, s.line(9))
			return err
		},
		code: "bad-split",
		want: "algo.star:9:5: split: got 0 parts, want 1 or more\n    rank 0 input[0:6] has 6 chunks",
	},
	{
		name: "a group across ranks",
		do: func(s script) error {
			_, err := s.Group(s.chunk(0, in, 0, 1, 1), s.chunk(1, in, 1, 1, 2), s.line(9))
			return err
		},
		code: "bad-group",
		want: "algo.star:9:5: group: rank 0 input[0] and rank 1 input[1] are on different ranks\n" +
			"    only neighbors in one buffer of one rank can be grouped",
	},
	{
		name: "a group across buffers",
		do: func(s script) error {
			tmp := s.copy(s.chunk(0, in, 1, 1, 1), 0, s.Scratch("tmp"), 1, 2)
			_, err := s.Group(s.chunk(0, in, 0, 1, 3), tmp, s.line(9))
			return err
		},
		code: "bad-group",
		want: "algo.star:9:5: group: rank 0 input[0] and rank 0 tmp[1] are on different buffers\n" +
			"    only neighbors in one buffer of one rank can be grouped",
	},
	{
		name: "a group over a gap, which msccl-tools fills silently",
		do: func(s script) error {
			_, err := s.Group(s.chunk(0, in, 0, 1, 1), s.chunk(0, in, 2, 2, 2), s.line(9))
			return err
		},
		code: "bad-group",
		want: "algo.star:9:5: group: rank 0 input[0] and rank 0 input[2:4] leave a gap\n" +
			"    one must begin where the other ends",
	},
	{
		name: "a group of overlapping ranges",
		do: func(s script) error {
			_, err := s.Group(s.chunk(0, in, 2, 2, 1), s.chunk(0, in, 1, 2, 2), s.line(9))
			return err
		},
		code: "bad-group",
		want: "algo.star:9:5: group: rank 0 input[2:4] and rank 0 input[1:3] overlap\n" +
			"    one must begin where the other ends",
	},
	{
		name: "no parts",
		do:   func(s script) error { return s.Parallelize(0, s.line(9)) },
		code: "bad-factor",
		want: "algo.star:9:5: parallelize: got 0, want 1 or more\n    parallelize(1) changes nothing",
	},
	{
		name: "too many parts",
		do: func(s script) error {
			if err := s.Parallelize(1<<15, s.line(1)); err != nil {
				return err
			}
			return s.Parallelize(4, s.line(9))
		},
		code: "bad-factor",
		want: "algo.star:9:5: parallelize: 131072 parts, want 65536 at most\n    nested factors multiply: make one of them smaller",
	},
	{
		name: "a sum that doubles in a loop",
		do: func(s script) error {
			tmp := s.Scratch("tmp")
			c := s.chunk(0, in, 0, 1, 1)
			for range 20 {
				c = s.reduce(c, s.copy(c, 0, tmp, 0, 2), 3)
			}
			_, err := s.Reduce(c, s.copy(c, 0, tmp, 0, 2), no, s.line(9))
			return err
		},
		code: "sum-too-large",
		want: "algo.star:9:5: reduce: rank 0 input[0] would sum more than 1048576 chunks\n" +
			"    each pass over the same data adds it again; look for a loop that reduces its own result",
	},
	{
		name: "a reference of another program",
		do: func(s script) error {
			other := newScript(s.t, allreduce(2, 4, true), nil)
			_, err := s.Copy(other.chunk(0, in, 1, 2, 1), 1, in, 0, no, s.line(9))
			return err
		},
		code: "foreign-reference",
		want: "algo.star:9:5: copy: the reference belongs to another program\n" +
			"    take it in this program with chunk(0, \"input\", 1, 2)",
	},
	{
		name: "no reference at all",
		do: func(s script) error {
			_, err := s.Reduce(s.chunk(0, in, 0, 1, 1), trace.Ref{}, no, s.line(9))
			return err
		},
		code: "foreign-reference",
		want: "algo.star:9:5: reduce: the reference belongs to another program\n    take a reference with chunk() first",
	},
	{
		name: "the origin of a sum",
		do: func(s script) error {
			c := s.reduce(s.chunk(0, in, 0, 2, 1), s.chunk(1, in, 0, 2, 2), 3)
			_, err := s.Origin(c, 1, s.line(9))
			return err
		},
		code: "sum-has-no-origin",
		want: "algo.star:9:5: get_origin: rank 0 input[1] is a sum of 2 chunks\n" +
			"    ask before it is reduced; print_chunk_info shows the parts of a sum",
	},
	{
		name: "a chunk that the reference doesn't have",
		do: func(s script) error {
			_, _, err := s.Destination(s.chunk(0, in, 0, 2, 1), 2, s.line(9))
			return err
		},
		code: "bad-index",
		want: "algo.star:9:5: get_dst: index: got 2, want 0 to 1\n    the reference has 2 chunks",
	},
}
