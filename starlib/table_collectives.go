package starlib

import (
	"fmt"
	"slices"
	"strconv"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/ir"
)

// collective is a collective as a script holds it.
type collective struct {
	c     *ir.Collective
	hooks *CollectiveHooks // of a front end's own collective, else nil
}

var _ starlark.HasAttrs = (*collective)(nil)

func (x *collective) String() string {
	return fmt.Sprintf("<%s of %d ranks>", x.c, x.c.Ranks)
}
func (x *collective) Type() string          { return "collective" }
func (x *collective) Freeze()               {}
func (x *collective) Truth() starlark.Bool  { return true }
func (x *collective) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: collective") }

var collectiveFields = []string{"name", "num_ranks", "chunk_factor", "inplace"}

func (x *collective) AttrNames() []string { return collectiveFields }

func (x *collective) Attr(name string) (starlark.Value, error) {
	switch name {
	case "name":
		return starlark.String(x.c.String()), nil
	case "num_ranks":
		return starlark.MakeInt(int(x.c.Ranks)), nil
	case "chunk_factor":
		return starlark.MakeInt(int(x.c.ChunkFactor)), nil
	case "inplace":
		return starlark.Bool(x.c.InPlace), nil
	}
	return nil, nil
}

// Limits that keep a slip of the pen from taking the machine's memory.
const (
	maxRanks       = 1 << 20
	maxChunkFactor = 1 << 24
)

// sized are the parameters that the collectives share.
func sized(more ...param) []param {
	return append([]param{
		{"num_ranks", intValue, "", "how many ranks"},
		{"chunk_factor", intValue, "1", "how finely a rank's share is cut"},
		{"inplace", boolValue, "False", "whether input and output are one memory"},
	}, more...)
}

var rootParam = param{"root", intValue, "0", "the rank that the collective is about"}

// plain makes the signature of a collective of a known kind.
func plain(name string, kind ir.CollectiveKind, doc string) *signature {
	s := &signature{name: name, params: sized(), result: "collective", doc: doc}
	if kind.Rooted() {
		s.params = sized(rootParam)
	}
	s.fn = func(c *call) (starlark.Value, error) {
		coll, err := c.collective(kind)
		if err == nil && kind.Rooted() {
			coll.Root, err = c.rank(3, coll.Ranks)
		}
		if err != nil {
			return nil, err
		}
		return &collective{c: coll}, nil
	}
	return s
}

var collectiveFuncs = []*signature{
	plain("AllReduce", ir.AllReduce, "Every rank ends with the sum of all inputs.\n`chunk_factor` chunks in and out."),
	plain("AllGather", ir.AllGather, "Every rank ends with the inputs of all ranks, in the order of ranks.\n"+
		"`chunk_factor` chunks in, `num_ranks * chunk_factor` out; in place, input i of rank r is output `r * chunk_factor + i`."),
	plain("ReduceScatter", ir.ReduceScatter, "Rank r ends with part r of the sum of all inputs.\n"+
		"`num_ranks * chunk_factor` chunks in, `chunk_factor` out; in place, output i of rank r is input `r * chunk_factor + i`."),
	plain("AllToAll", ir.AllToAll, "Part q of rank r's input ends as part r of rank q's output.\n`num_ranks * chunk_factor` chunks in and out."),
	plain("Broadcast", ir.Broadcast, "Every rank ends with the root's input.\n`chunk_factor` chunks; only the root has an input."),
	plain("Reduce", ir.ReduceTo, "The root ends with the sum of all inputs.\n`chunk_factor` chunks; only the root has an output."),
	plain("Gather", ir.Gather, "The root ends with the inputs of all ranks, in the order of ranks.\n"+
		"`chunk_factor` chunks in, `num_ranks * chunk_factor` out at the root."),
	plain("Scatter", ir.Scatter, "Rank r ends with part r of the root's input.\n`num_ranks * chunk_factor` chunks in at the root, `chunk_factor` out."),
	plain("AllToNext", ir.AllToNext, "Every rank but the first ends with the input of the rank before it.\n`chunk_factor` chunks in and out."),
	{
		name: "SendRecv",
		params: []param{
			{"num_ranks", intValue, "", "how many ranks"},
			{"chunk_factor", intValue, "1", "how finely the data is cut"},
			{"src", rootValue, "0", "the rank that has the data; True or False stands for `inplace`"},
			{"dst", intValue, "1", "the rank that gets it"},
			{"inplace", boolValue, "None", "makes it MSCCL++'s, for one-sided programs: every rank sends its input to some rank's output"},
		},
		result: "collective",
		doc: "One rank's input ends as another's output.\n`chunk_factor` chunks; only src has an input, only dst an output. " +
			"With `inplace`, as in MSCCL++, all ranks have both, and an output must hold the input of the one rank whose data can reach it.",
		fn: newSendRecv,
	},
	{
		name: "AllToAllV",
		params: []param{
			{"num_ranks", intValue, "", "how many ranks"},
			{"counts", listValue, "", "`counts[src][dst]` chunks go from src to dst"},
		},
		result:  "collective",
		doc:     "AllToAll with counts of its own for every pair.\nInputs are ordered by destination, outputs by source.",
		example: "AllToAllV(2, [[1, 3], [0, 2]])",
		fn:      newAllToAllV,
	},
	{
		name: "collective",
		params: []param{
			{"name", stringValue, "", "its name in reports"},
			{"ranks", intValue, "", "how many ranks"},
			{"input", sizesValue, "", "input chunks of every rank: an int, a list, or a function of the rank"},
			{"output", sizesValue, "", "output chunks, likewise"},
			{"expect", functionValue, "", "function of (rank, index) of an output: None for anything, `(rank, index)` of the input it must equal, or a list of them to be summed"},
			{"inplace", boolValue, "False", "whether input and output are one memory, index by index"},
			{"holds", functionValue, "None", "function of (rank, index) of an input: whether there is data in it; without it, always"},
		},
		result: "collective",
		doc:    "A collective of one's own.",
		example: "swap = collective(\"swap\", 2, input = 1, output = 1,\n" +
			"                  expect = lambda rank, index: (1 - rank, index))",
		fn: newCustom,
	},
	testCollectiveSig,
}

// collective makes a collective of the shared parameters.
func (c *call) collective(kind ir.CollectiveKind) (*ir.Collective, error) {
	ranks, err := c.ranks(0)
	if err != nil {
		return nil, err
	}
	factor, err := c.factor(1)
	if err != nil {
		return nil, err
	}
	return ir.NewCollective(kind, ranks, factor, c.v.bool(2, false)), nil
}

// ranks is argument i as a number of ranks.
func (c *call) ranks(i int) (int32, error) {
	n := c.v.int32(i, 0)
	if n < 1 || n > maxRanks {
		return 0, c.sig.errorf("bad-argument", "%s: got %d, want 1 to %d", c.sig.params[i].name, n, maxRanks)
	}
	return n, nil
}

func (c *call) factor(i int) (int32, error) {
	n := c.v.int32(i, 1)
	if n < 1 || n > maxChunkFactor {
		return 0, c.sig.errorf("bad-argument", "%s: got %d, want 1 to %d", c.sig.params[i].name, n, maxChunkFactor)
	}
	return n, nil
}

// rank is argument i as one of n ranks.
func (c *call) rank(i int, n int32) (ir.Rank, error) {
	r, err := strconv.Atoi(c.sig.params[i].def) // fails where the argument is not optional
	if err != nil || c.v.given(i) {
		r = int(c.v.int32(i, 0))
	}
	if r < 0 || r >= int(n) {
		return 0, c.sig.errorf("bad-argument", "%s: got %d, want a rank from 0 to %d", c.sig.params[i].name, r, n-1)
	}
	return ir.Rank(r), nil
}

func newSendRecv(c *call) (starlark.Value, error) {
	ranks, err := c.ranks(0)
	if err != nil {
		return nil, err
	}
	factor, err := c.factor(1)
	if err != nil {
		return nil, err
	}
	if inPlace, ok := c.exchanges(); ok {
		x := &collective{c: openCollective("sendrecv", ranks)}
		for r := range ranks {
			x.c.Custom.Input[r], x.c.Custom.Output[r] = factor, factor
		}
		x.c.InPlace = inPlace
		x.demandNothing()
		return x, nil
	}
	coll := ir.NewCollective(ir.SendRecv, ranks, factor, false)
	if coll.Root, err = c.rank(2, ranks); err != nil {
		return nil, err
	}
	if coll.Peer, err = c.rank(3, ranks); err != nil {
		return nil, err
	}
	return &collective{c: coll}, nil
}

// exchanges reports whether SendRecv is MSCCL++'s, and whether it is in place.
func (c *call) exchanges() (inPlace, ok bool) {
	if b, isBool := c.v[2].(starlark.Bool); isBool {
		return bool(b), true
	}
	return c.v.bool(4, false), c.v.given(4)
}

func newAllToAllV(c *call) (starlark.Value, error) {
	ranks, err := c.ranks(0)
	if err != nil {
		return nil, err
	}
	coll := ir.NewCollective(ir.AllToAllV, ranks, 1, false)
	rows := 0
	for row := range starlark.Elements(c.v[1].(starlark.Iterable)) {
		it, ok := row.(starlark.Iterable)
		if !ok {
			return nil, c.sig.errorf("bad-argument", "counts: got %s as row %d, want list", row.Type(), rows)
		}
		counts, err := c.counts(fmt.Sprintf("counts[%d]", rows), it)
		if err != nil {
			return nil, err
		}
		if len(counts) != int(ranks) {
			return nil, c.sig.errorf("bad-argument", "counts[%d]: got %d numbers, want %d", rows, len(counts), ranks)
		}
		coll.Counts = append(coll.Counts, counts...)
		rows++
	}
	if rows != int(ranks) {
		return nil, c.sig.errorf("bad-argument", "counts: got %d rows, want %d", rows, ranks)
	}
	return &collective{c: coll}, nil
}

// counts are the chunk counts in a list.
func (c *call) counts(what string, list starlark.Iterable) ([]int32, error) {
	var out []int32
	for x := range starlark.Elements(list) {
		n, err := c.count(fmt.Sprintf("%s[%d]", what, len(out)), x)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func (c *call) count(what string, x starlark.Value) (int32, error) {
	i, ok := x.(starlark.Int)
	if !ok {
		return 0, c.sig.errorf("bad-argument", "%s: got %s, want int", what, x.Type())
	}
	n, fits := i.Int64()
	if !fits || n < 0 || n > maxChunkFactor {
		return 0, c.sig.errorf("bad-argument", "%s: got %s, want 0 to %d", what, i, maxChunkFactor)
	}
	return int32(n), nil
}

func newCustom(c *call) (starlark.Value, error) {
	ranks, err := c.ranks(1)
	if err != nil {
		return nil, err
	}
	coll := ir.NewCollective(ir.Custom, ranks, 1, c.v.bool(5, false))
	coll.Name = c.v.string(0, "")
	coll.Custom = &ir.CustomSpec{}
	if coll.Custom.Input, err = c.sizes(2, ranks); err != nil {
		return nil, err
	}
	if coll.Custom.Output, err = c.sizes(3, ranks); err != nil {
		return nil, err
	}
	if err := c.expectations(coll); err != nil {
		return nil, err
	}
	if c.v.given(6) {
		if err := c.holdings(coll); err != nil {
			return nil, err
		}
	}
	return &collective{c: coll}, nil
}

// sizes is argument i as one number of chunks a rank.
func (c *call) sizes(i int, ranks int32) ([]int32, error) {
	what, out := c.sig.params[i].name, make([]int32, ranks)
	switch x := c.v[i].(type) {
	case starlark.Callable:
		for r := range out {
			v, err := starlark.Call(c.in.thread, x, starlark.Tuple{starlark.MakeInt(r)}, nil)
			if err != nil {
				return nil, err
			}
			if out[r], err = c.count(fmt.Sprintf("%s(%d)", what, r), v); err != nil {
				return nil, err
			}
		}
	case starlark.Iterable:
		list, err := c.counts(what, x)
		if err != nil {
			return nil, err
		}
		if len(list) != len(out) {
			return nil, c.sig.errorf("bad-argument", "%s: got %d numbers, want %d", what, len(list), ranks)
		}
		return list, nil
	default:
		n, err := c.count(what, x)
		if err != nil {
			return nil, err
		}
		for r := range out {
			out[r] = n
		}
	}
	return out, nil
}

// expectations asks the script what every output must hold.
func (c *call) expectations(coll *ir.Collective) error {
	for r, n := range coll.Custom.Output {
		row := make([][]ir.Contribution, n)
		for i := range row {
			v, err := starlark.Call(c.in.thread, c.v[4], starlark.Tuple{starlark.MakeInt(r), starlark.MakeInt(i)}, nil)
			if err != nil {
				return err
			}
			if row[i], err = c.expectation(coll, fmt.Sprintf("expect(%d, %d)", r, i), v); err != nil {
				return err
			}
		}
		coll.Custom.Expect = append(coll.Custom.Expect, row)
	}
	return nil
}

// expectation reads None, (rank, index), or a list of those.
func (c *call) expectation(coll *ir.Collective, what string, v starlark.Value) ([]ir.Contribution, error) {
	if v == starlark.None {
		return nil, nil
	}
	if one, ok := v.(starlark.Tuple); ok {
		o, err := c.contribution(coll, what, one)
		return []ir.Contribution{o}, err
	}
	list, ok := v.(starlark.Iterable)
	if !ok {
		return nil, c.sig.errorf("bad-argument", "%s: got %s, want None, (rank, index) or a list of them", what, v.Type())
	}
	out := []ir.Contribution{}
	for x := range starlark.Elements(list) {
		o, err := c.contribution(coll, what, x)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	if len(out) == 0 {
		return nil, c.sig.errorf("bad-argument", "%s: got an empty list, want None for anything", what)
	}
	slices.SortFunc(out, func(a, b ir.Contribution) int {
		if a.Rank != b.Rank {
			return int(a.Rank) - int(b.Rank)
		}
		return int(a.Index) - int(b.Index)
	})
	return out, nil
}

func (c *call) contribution(coll *ir.Collective, what string, v starlark.Value) (ir.Contribution, error) {
	pair, ok := v.(starlark.Tuple)
	if !ok || len(pair) != 2 {
		return ir.Contribution{}, c.sig.errorf("bad-argument", "%s: got %s, want (rank, index)", what, v)
	}
	rank, err1 := starlark.AsInt32(pair[0])
	index, err2 := starlark.AsInt32(pair[1])
	if err1 != nil || err2 != nil {
		return ir.Contribution{}, c.sig.errorf("bad-argument", "%s: got %s, want (rank, index)", what, v)
	}
	if rank < 0 || rank >= int(coll.Ranks) || index < 0 || index >= int(coll.Custom.Input[rank]) {
		return ir.Contribution{}, c.sig.errorf("bad-argument", "%s: got %s, which is no input chunk", what, v)
	}
	return ir.Contribution{Rank: ir.Rank(rank), Index: int32(index)}, nil
}

// holdings asks the script which inputs hold data.
func (c *call) holdings(coll *ir.Collective) error {
	for r, n := range coll.Custom.Input {
		row := make([]bool, n)
		for i := range row {
			v, err := starlark.Call(c.in.thread, c.v[6], starlark.Tuple{starlark.MakeInt(r), starlark.MakeInt(i)}, nil)
			if err != nil {
				return err
			}
			row[i] = bool(v.Truth())
		}
		coll.Custom.Holds = append(coll.Custom.Holds, row)
	}
	for r, row := range coll.Custom.Expect {
		for i, list := range row {
			for _, o := range list {
				if !coll.Custom.Holds[o.Rank][o.Index] {
					return c.sig.errorf("bad-argument", "expect(%d, %d): got (%d, %d), which holds no data", r, i, o.Rank, o.Index)
				}
			}
		}
	}
	return nil
}
