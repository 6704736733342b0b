package trace_test

import (
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// Wrong places: what isn't there, holds nothing or can't be reached.
var misusedPlaces = []misuse{
	{
		name: "a location of the output that nothing was copied to",
		coll: allreduce(4, 8, false),
		do: func(s script) error {
			_, err := s.Chunk(2, out, 3, 1, s.line(9))
			return err
		},
		code: "empty-location",
		want: "algo.star:9:5: chunk: rank 2 output[3] holds nothing\n    copy a chunk there first",
	},
	{
		name: "the end of a range of the output",
		coll: allreduce(4, 8, false),
		do: func(s script) error {
			s.copy(s.chunk(0, in, 0, 2, 1), 2, out, 3, 2)
			_, err := s.Chunk(2, out, 3, 3, s.line(9))
			return err
		},
		code: "empty-location",
		want: "algo.star:9:5: chunk: rank 2 output[5] holds nothing\n    copy a chunk there first",
	},
	{
		name: "scratch that only other ranks have",
		do: func(s script) error {
			tmp := s.Scratch("tmp")
			s.copy(s.chunk(0, in, 0, 1, 1), 1, tmp, 0, 2)
			s.copy(s.chunk(0, in, 0, 1, 3), 3, tmp, 0, 4)
			_, err := s.Chunk(2, tmp, 0, 1, s.line(9))
			return err
		},
		code: "empty-location",
		want: "algo.star:9:5: chunk: rank 2 tmp[0] holds nothing\n" +
			"    copy a chunk there first; of tmp, only ranks 1 and 3 have some",
	},
	{
		name: "a hole in scratch whose name is no word",
		do: func(s script) error {
			tmp := s.Scratch("to rank 1")
			s.copy(s.chunk(0, in, 0, 1, 1), 0, tmp, 1, 2)
			_, err := s.Chunk(0, tmp, 0, 2, s.line(9))
			return err
		},
		code: "empty-location",
		want: "algo.star:9:5: chunk: rank 0 \"to rank 1\"[0] holds nothing\n    copy a chunk there first",
	},
	{
		name: "past the end of scratch that is called input",
		do: func(s script) error {
			tmp := s.Scratch("input")
			s.copy(s.chunk(0, in, 0, 1, 1), 0, tmp, 0, 2)
			_, err := s.Chunk(0, tmp, 0, 3, s.line(9))
			return err
		},
		code: "empty-location",
		want: "algo.star:9:5: chunk: rank 0 \"input\"[1] holds nothing\n    copy a chunk there first",
	},
	{
		name: "one chunk past the end",
		do: func(s script) error {
			_, err := s.Chunk(2, in, 8, 1, s.line(9))
			return err
		},
		code: "past-end",
		want: "algo.star:9:5: chunk: rank 2 input[8] is past the end: rank 2 has 8 input chunks\n    indices are 0 to 7",
	},
	{
		name: "a copy whose range ends past the end",
		do: func(s script) error {
			_, err := s.Copy(s.chunk(0, in, 0, 3, 1), 2, out, 6, no, s.line(9))
			return err
		},
		code: "past-end",
		want: "algo.star:9:5: copy: rank 2 output[6:9] is past the end: rank 2 has 8 output chunks\n" +
			"    with a count of 3, indices 0 to 5 fit",
	},
	{
		name: "a range as long as the buffer that doesn't start at its begin",
		do: func(s script) error {
			_, err := s.Chunk(2, in, 1, 8, s.line(9))
			return err
		},
		code: "past-end",
		want: "algo.star:9:5: chunk: rank 2 input[1:9] is past the end: rank 2 has 8 input chunks\n" +
			"    with a count of 8 only index 0 fits",
	},
	{
		name: "a range longer than the buffer, up to the largest numbers",
		do: func(s script) error {
			_, err := s.Chunk(2, in, 2147483647, 2147483647, s.line(9))
			return err
		},
		code: "past-end",
		want: "algo.star:9:5: chunk: rank 2 input[2147483647:4294967294] is past the end: rank 2 has 8 input chunks\n" +
			"    a count of 8 at most fits",
	},
	{
		name: "in place, allgather's input is as long as its part of the output",
		coll: ir.NewCollective(ir.AllGather, 4, 1, true),
		do: func(s script) error {
			_, err := s.Chunk(0, in, 1, 1, s.line(9))
			return err
		},
		code: "past-end",
		want: "algo.star:9:5: chunk: rank 0 input[1] is past the end: rank 0 has 1 input chunk\n    with a count of 1 only index 0 fits",
	},
	{
		name: "a buffer that only the root has",
		coll: rooted(ir.Broadcast, 4, 2, 1, false),
		do: func(s script) error {
			_, err := s.Chunk(0, in, 0, 1, s.line(9))
			return err
		},
		code: "past-end",
		want: "algo.star:9:5: chunk: rank 0 input[0]: rank 0 has no input in this broadcast\n    only rank 1 has some of it",
	},
	{
		name: "scratch without bounds is bounded",
		do: func(s script) error {
			_, err := s.Copy(s.chunk(0, in, 0, 2, 1), 1, s.Scratch("tmp"), 16777215, no, s.line(9))
			return err
		},
		code: "past-end",
		want: "algo.star:9:5: copy: rank 1 tmp[16777215:16777217] is past the end: scratch holds 16777216 chunks at most\n" +
			"    leave the index out to append",
	},
	{
		name: "a negative index of chunk",
		do: func(s script) error {
			_, err := s.Chunk(0, in, -1, 1, s.line(9))
			return err
		},
		code: "negative-index",
		want: "algo.star:9:5: chunk: index: got -1, want 0 or more\n" +
			"    indices count from the front; the last of input on rank 0 is 7",
	},
	{
		name: "a negative index of copy into scratch",
		do: func(s script) error {
			_, err := s.Copy(s.chunk(0, in, 0, 1, 1), 1, s.Scratch("tmp"), -2, no, s.line(9))
			return err
		},
		code: "negative-index",
		want: "algo.star:9:5: copy: index: got -2, want 0 or more\n    indices count from the front",
	},
	{
		name: "an explicit -1, which the front end knows from no index",
		do: func(s script) error {
			return s.NegativeIndex("copy", 1, out, -1, s.line(9))
		},
		code: "negative-index",
		want: "algo.star:9:5: copy: index: got -1, want 0 or more\n" +
			"    indices count from the front; the last of output on rank 1 is 7",
	},
	{
		name: "a count of zero",
		do: func(s script) error {
			_, err := s.Chunk(0, in, 0, 0, s.line(9))
			return err
		},
		code: "bad-count",
		want: "algo.star:9:5: chunk: count: got 0, want 1 or more\n    leave out transfers of nothing",
	},
	{
		name: "no link, two links",
		topo: line(4),
		do: func(s script) error {
			_, err := s.Copy(s.chunk(1, in, 0, 1, 1), 3, in, 0, no, s.line(9))
			return err
		},
		code: "no-link",
		want: "algo.star:9:5: copy: no link from rank 1 to rank 3 in topology Line\n    rank 1 can send to ranks 0 and 2",
	},
	{
		name: "no link, three links",
		coll: allreduce(5, 1, true),
		topo: func() *ir.Topology {
			t := star(5)
			t.Bandwidth[0*5+4] = 0
			return t
		}(),
		do: func(s script) error {
			_, err := s.Reduce(s.chunk(4, in, 0, 1, 1), s.chunk(0, in, 0, 1, 2), no, s.line(9))
			return err
		},
		code: "no-link",
		want: "algo.star:9:5: reduce: no link from rank 0 to rank 4 in topology Star\n    rank 0 can send to ranks 1, 2 and 3",
	},
	{
		name: "no link for a reduce, one link",
		topo: line(4),
		do: func(s script) error {
			_, err := s.Reduce(s.chunk(0, in, 0, 1, 1), s.chunk(3, in, 0, 1, 2), no, s.line(9))
			return err
		},
		code: "no-link",
		want: "algo.star:9:5: reduce: no link from rank 3 to rank 0 in topology Line\n    rank 3 can send to rank 2 only",
	},
	{
		name: "no link at all",
		topo: star(4),
		do: func(s script) error {
			_, err := s.Copy(s.chunk(1, in, 0, 1, 1), 0, in, 0, no, s.line(9))
			return err
		},
		code: "no-link",
		want: "algo.star:9:5: copy: no link from rank 1 to rank 0 in topology Star\n    rank 1 can send to no rank",
	},
	{
		name: "no link, more links than anyone reads",
		coll: allreduce(12, 1, true),
		topo: func() *ir.Topology {
			t := star(12)
			t.Bandwidth[0*12+11] = 0
			return t
		}(),
		do: func(s script) error {
			_, err := s.Copy(s.chunk(0, in, 0, 1, 1), 11, none, none, no, s.line(9))
			return err
		},
		code: "no-link",
		want: "algo.star:9:5: copy: no link from rank 0 to rank 11 in topology Star\n    rank 0 can send to 10 ranks",
	},
	{
		name: "a rank that chunk doesn't have",
		do: func(s script) error {
			_, err := s.Chunk(4, in, 0, 1, s.line(9))
			return err
		},
		code: "bad-rank",
		want: "algo.star:9:5: chunk: rank: got 4, want 0 to 3\n    the program has 4 ranks",
	},
	{
		name: "a rank that copy doesn't have, appending to scratch",
		coll: allreduce(1, 2, true),
		do: func(s script) error {
			_, err := s.Copy(s.chunk(0, in, 0, 1, 1), -1, s.Scratch("tmp"), none, no, s.line(9))
			return err
		},
		code: "bad-rank",
		want: "algo.star:9:5: copy: rank: got -1, want 0\n    the program has 1 rank",
	},
	{
		name: "a buffer that was never named",
		do: func(s script) error {
			_, err := s.Chunk(0, 2, 0, 1, s.line(9))
			return err
		},
		code: "bad-buffer",
		want: "algo.star:9:5: chunk: buffer: got number 2, want 0 to 1\n    name a scratch buffer before using it",
	},
	{
		name: "an index without a buffer, which msccl-tools takes for scratch named None",
		do: func(s script) error {
			_, err := s.Copy(s.chunk(0, in, 0, 1, 1), 1, none, 3, no, s.line(9))
			return err
		},
		code: "missing-buffer",
		want: "algo.star:9:5: copy: index 3 without a buffer\n    name the buffer too, as in copy(1, \"input\", 3)",
	},
	{
		name: "output without an index, which msccl-tools takes for the last one",
		do: func(s script) error {
			_, err := s.Copy(s.chunk(0, in, 2, 1, 1), 1, out, none, no, s.line(9))
			return err
		},
		code: "missing-index",
		want: "algo.star:9:5: copy: buffer output without an index\n" +
			"    give the index too, as in copy(1, \"output\", 2); only scratch can be appended to",
	},
	{
		name: "a negative thread block at the sender",
		do: func(s script) error {
			_, err := s.Copy(s.chunk(0, in, 0, 1, 1), 1, in, 0, trace.Hints{SendTB: -2, RecvTB: -3, Chan: 0}, s.line(9))
			return err
		},
		code: "bad-hint",
		want: "algo.star:9:5: copy: sendtb: got -2, want 0 or more\n    leave sendtb out to let the compiler choose",
	},
	{
		name: "a negative thread block at the receiver",
		do: func(s script) error {
			_, err := s.Reduce(s.chunk(0, in, 0, 1, 1), s.chunk(1, in, 0, 1, 2), trace.Hints{SendTB: 0, RecvTB: -3, Chan: 0}, s.line(9))
			return err
		},
		code: "bad-hint",
		want: "algo.star:9:5: reduce: recvtb: got -3, want 0 or more\n    leave recvtb out to let the compiler choose",
	},
	{
		name: "a negative channel",
		do: func(s script) error {
			_, err := s.Copy(s.chunk(0, in, 0, 1, 1), 1, in, 0, trace.Hints{SendTB: none, RecvTB: none, Chan: -7}, s.line(9))
			return err
		},
		code: "bad-hint",
		want: "algo.star:9:5: copy: ch: got -7, want 0 or more\n    leave ch out to let the compiler choose",
	},
}
