package pyfront

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
)

// collectiveBase is msccl-tools' Collective, the base of scripts' own.
var collectiveBase = &class{name: "Collective", base: objectClass, fields: starlark.StringDict{
	"__init__": nativeMethod("Collective.__init__", func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var self, ranks, factor, inplace starlark.Value
		if err := starlark.UnpackArgs("Collective.__init__", args, kwargs, "self", &self, "num_ranks", &ranks,
			"chunk_factor", &factor, "inplace", &inplace); err != nil {
			return nil, err
		}
		x, ok := self.(*instance)
		if !ok {
			return nil, fmt.Errorf("msccl.Collective.__init__: self: got %s, want an object", self.Type())
		}
		x.fields["num_ranks"], x.fields["chunk_factor"], x.fields["inplace"] = ranks, factor, inplace
		x.fields["name"] = starlark.String("custom")
		return starlark.None, nil
	}),
	"init_buffers": nativeMethod("Collective.init_buffers", nothing),
	"check":        nativeMethod("Collective.check", nothing),
	"get_buffer_index": nativeMethod("Collective.get_buffer_index", func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var self, rank, buffer, index starlark.Value
		err := starlark.UnpackArgs("get_buffer_index", args, kwargs, "self", &self, "rank", &rank, "buffer", &buffer, "index", &index)
		return starlark.Tuple{buffer, index}, err
	}),
}}

func nothing(starlark.Tuple, []starlark.Tuple) (starlark.Value, error) { return starlark.None, nil }

// custom is a script's own collective in one program.
type custom struct {
	r    *run
	self *instance
	coll *ir.Collective
	made diag.Pos // the call of MSCCLProgram

	chunks  [][]*chunkValue // by rank and input index: what is there at the start, or nil
	in, out []int32         // lengths of the script's lists

	checked diag.Pos // the last Check()
	judged  int      // operations traced when check was last called, from 0; -1 before
	result  bool
}

// newProgram is MSCCLProgram: the language's own, with msccl-tools' defaults, and
// with collectives that scripts define.
func (r *run) newProgram(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	args, kwargs = slices.Clone(args), slices.Clone(kwargs)
	given := func(name string, place int) *starlark.Value {
		if len(args) > place {
			return &args[place]
		}
		for i := range kwargs {
			if string(kwargs[i][0].(starlark.String)) == name {
				kwargs[i] = slices.Clone(kwargs[i])
				return &kwargs[i][1]
			}
		}
		return nil
	}
	if given("instances", 3) == nil && (len(args) >= 3 || given("collective", 2) != nil) {
		return nil, errorf("missing-argument", "MSCCLProgram: missing argument instances").
			Suggest("MSCCLProgram(name, topo, collective, instances, ...)")
	}
	if given("protocol", 4) == nil {
		kwargs = append(kwargs, starlark.Tuple{starlark.String("protocol"), starlark.String("Simple")})
	}
	if c := given("collective", 2); c != nil {
		if x, ok := (*c).(*instance); ok {
			own, err := r.newCustom(x)
			if err != nil {
				return nil, err
			}
			h := own.hooks()
			r.customs[h] = own
			*c = starlib.NewCollective(own.coll, h)
		}
	}
	return starlark.Call(r.env.Thread(), r.env.Builtin("MSCCLProgram"), args, kwargs)
}

func (r *run) newCustom(self *instance) (*custom, error) {
	if !self.class.within(collectiveBase) {
		return nil, errorf("bad-argument", "MSCCLProgram: collective: class %s is not derived from Collective", self.class.name).
			Suggest("class %s(Collective):", self.class.name)
	}
	c := &custom{r: r, self: self, made: r.env.Here(), judged: -1}
	inplace, _ := self.Attr("inplace")
	if inplace == nil {
		return nil, errorf("bad-collective", "MSCCLProgram: the %s has no inplace", self.class.name).
			Suggest("call Collective.__init__(self, num_ranks, chunk_factor, inplace) in its __init__")
	}
	got, err := c.call("init_buffers")
	if err != nil {
		return nil, err
	}
	ranks, err := c.ranks(got)
	if err != nil {
		return nil, err
	}
	c.coll = ir.NewCollective(ir.Custom, int32(len(ranks)), 1, bool(inplace.Truth()))
	c.coll.Name = c.name()
	c.coll.Custom = &ir.CustomSpec{}
	for rank, lists := range ranks {
		if err := c.addRank(ir.Rank(rank), lists); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// name is what the script calls the collective, or its class.
func (c *custom) name() string {
	if s, ok := c.self.fields["name"].(starlark.String); ok && s != "custom" && s != "" {
		return string(s)
	}
	return c.self.class.name
}

// call calls a method of the collective. The arguments follow the object.
func (c *custom) call(method string, args ...starlark.Value) (starlark.Value, error) {
	return starlark.Call(c.r.env.Thread(), bind(c.self, c.self.class.find(method)), args, nil)
}

func (c *custom) overrides(method string) bool {
	return c.self.class.find(method) != collectiveBase.fields[method]
}

func (c *custom) bad(format string, args ...any) error {
	return errorf("bad-collective", "%s.init_buffers: %s", c.self.class.name, fmt.Sprintf(format, args...)).
		Suggest("it returns a list with a dict for every rank: {Buffer.input: [...], Buffer.output: [...]}")
}

// ranks are the input and output lists that init_buffers returned.
func (c *custom) ranks(got starlark.Value) ([][2][]starlark.Value, error) {
	it, ok := got.(starlark.Iterable)
	if !ok {
		return nil, c.bad("got %s, want a list", got.Type())
	}
	var ranks [][2][]starlark.Value
	for v := range starlark.Elements(it) {
		d, ok := v.(*starlark.Dict)
		if !ok {
			return nil, c.bad("got %s for rank %d, want a dict", v.Type(), len(ranks))
		}
		var lists [2][]starlark.Value
		for _, kv := range d.Items() {
			b, ok := kv[0].(*bufferValue)
			if !ok || b == scratchBuffer {
				return nil, c.bad("rank %d starts with a buffer %s, want Buffer.input and Buffer.output only", len(ranks), pyRepr(kv[0]))
			}
			list, ok := kv[1].(starlark.Iterable)
			if !ok {
				return nil, c.bad("rank %d %s: got %s, want a list", len(ranks), b, kv[1].Type())
			}
			for x := range starlark.Elements(list) {
				lists[b.id] = append(lists[b.id], x)
			}
		}
		ranks = append(ranks, lists)
	}
	if len(ranks) == 0 {
		return nil, c.bad("got no ranks")
	}
	return ranks, nil
}

// addRank takes over what a rank's memory holds at the start.
func (c *custom) addRank(rank ir.Rank, lists [2][]starlark.Value) error {
	in, out := int32(len(lists[0])), int32(len(lists[1]))
	c.in, c.out = append(c.in, in), append(c.out, out)
	size := in
	if c.coll.InPlace {
		size = max(in, out)
	}
	start := make([]*chunkValue, size)
	for buf, list := range lists {
		used, err := c.reachable(rank, in, out, buf)
		if err != nil {
			return err
		}
		if !used {
			continue
		}
		for i, v := range list {
			if err := c.put(start, rank, buf, i, v); err != nil {
				return err
			}
		}
	}
	holds := make([]bool, size)
	for i := range start {
		holds[i] = start[i] != nil
	}
	c.chunks = append(c.chunks, start)
	u := c.coll.Custom
	u.Input, u.Output = append(u.Input, size), append(u.Output, out)
	u.Holds, u.Expect = append(u.Holds, holds), append(u.Expect, make([][]ir.Contribution, out))
	return nil
}

// put records what a list holds at one place.
func (c *custom) put(start []*chunkValue, rank ir.Rank, buf, i int, v starlark.Value) error {
	if v == starlark.None {
		return nil
	}
	ch, ok := v.(*chunkValue)
	if !ok {
		return c.bad("rank %d holds %s at index %d, want Chunk(...) or None", rank, v.Type(), i)
	}
	if buf == int(ir.Output) && !c.coll.InPlace {
		return c.bad("the output of rank %d holds a chunk at the start, at index %d, but the collective is not in place", rank, i)
	}
	if old := start[i]; old != nil && compareOrigins(old.o, ch.o) != 0 {
		return c.bad("in place, input and output are one memory, but rank %d has different chunks at index %d of the two", rank, i)
	}
	start[i] = ch
	return nil
}

// reachable reports whether the script can name a place of the buffer: not if
// get_buffer_index leads every index of it elsewhere, as for msccl-tools' in-place
// allgather, whose input list is a stale copy.
func (c *custom) reachable(rank ir.Rank, in, out int32, buf int) (bool, error) {
	if !c.overrides("get_buffer_index") {
		return true, nil
	}
	value, n := inputBuffer, in
	if buf == int(ir.Output) {
		value, n = outputBuffer, out
	}
	for i := range n {
		to, _, err := c.place(rank, value, i)
		if err != nil || to == value {
			return err == nil, err
		}
	}
	return false, nil
}

func (c *custom) hooks() *starlib.CollectiveHooks {
	h := &starlib.CollectiveHooks{Self: c.self, Origin: c.origin, Finish: c.finish}
	if c.overrides("get_buffer_index") {
		h.Place = c.place
	}
	return h
}

// place asks get_buffer_index for the name of a location.
func (c *custom) place(rank ir.Rank, buf starlark.Value, index int32) (starlark.Value, int32, error) {
	got, err := c.call("get_buffer_index", starlark.MakeInt(int(rank)), buf, starlark.MakeInt(int(index)))
	if err != nil {
		return nil, 0, err
	}
	pair, ok := got.(starlark.Tuple)
	if ok && len(pair) == 2 {
		if i, err := starlark.AsInt32(pair[1]); err == nil {
			return pair[0], int32(i), nil
		}
	}
	return nil, 0, errorf("bad-collective", "%s.get_buffer_index: got %s, want a buffer and an index", c.self.class.name, pyRepr(got))
}

// origin is what the script calls an input chunk.
func (c *custom) origin(x ir.Contribution) starlib.Origin {
	if x.Rank >= 0 && int(x.Rank) < len(c.chunks) && x.Index >= 0 && int(x.Index) < len(c.chunks[x.Rank]) {
		if ch := c.chunks[x.Rank][x.Index]; ch != nil {
			return ch.o
		}
	}
	return starlib.Origin{Rank: -1, Index: -1, DstRank: -1, DstIndex: -1}
}

// check is Check(): the script's own check, or for the language's collectives
// theirs, which judges the compiled program.
func (r *run) check(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	t := r.env.Open()
	if t == nil || t.CollectiveHooksOf() == nil {
		return starlark.Call(r.env.Thread(), r.env.Builtin("Check"), args, kwargs)
	}
	if len(args)+len(kwargs) > 0 {
		return nil, errorf("too-many-arguments", "Check: got %d arguments, want none", len(args)+len(kwargs))
	}
	t.WantCheck()
	ok, err := r.customOf(t).judge(t)
	return starlark.Bool(ok), err
}

func (r *run) customOf(t *starlib.Trace) *custom { return r.customs[t.CollectiveHooksOf()] }

// judge asks the script's check about what is traced now.
func (c *custom) judge(t *starlib.Trace) (bool, error) {
	c.checked = c.r.env.Here()
	if c.judged == t.Ops() {
		return c.result, nil
	}
	got, err := c.call("check", t.Value())
	if err != nil {
		return false, err
	}
	c.judged, c.result = t.Ops(), got == starlark.None || bool(got.Truth())
	return c.result, nil
}

// finish judges the program when the script has ended: the script's check must
// hold, and the compiled program has to leave the same in the outputs.
func (c *custom) finish(t *starlib.Trace) (*ir.Collective, error) {
	asked := c.checked
	ok, err := c.judge(t)
	if err != nil {
		return nil, c.r.env.Diagnose(err, c.made)
	}
	if !ok {
		pos := t.Opened()
		if asked.Line > 0 {
			pos = asked
		}
		m := diag.Errorf(pos, "check-failed", "program %q does not compute its collective: %s.check returned False", t.Name(), c.self.class.name).
			Note(c.made, "the program is made here")
		if c.coll.InPlace {
			m.Suggest("the collective is declared in place: input and output are one memory, so that a write to output[i] changes input[i]")
		}
		return nil, m
	}
	coll := *c.coll
	spec := *coll.Custom
	spec.Expect = make([][][]ir.Contribution, len(c.out))
	for rank := range spec.Expect {
		spec.Expect[rank] = c.left(t, ir.Rank(rank))
	}
	coll.Custom = &spec
	return &coll, nil
}

// left is what the program leaves in a rank's output. In place, what was never
// changed is nobody's result.
func (c *custom) left(t *starlib.Trace, rank ir.Rank) [][]ir.Contribution {
	list := make([][]ir.Contribution, c.out[rank])
	for i := range list {
		got := t.Contributions(rank, outputBuffer, int32(i))
		own := c.coll.InPlace && len(got) == 1 && got[0] == ir.Contribution{Rank: rank, Index: int32(i)}
		if !own {
			list[i] = got
		}
	}
	return list
}
