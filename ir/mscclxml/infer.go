package mscclxml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// unlimited is a maxBytes that no size exceeds.
const unlimited = 1<<63 - 1

// maxRoots bounds the ranks that are tried as a root: each costs a judgment.
const maxRoots = 16

// collectiveWords are how files and their names spell collectives; a word that
// is part of another comes after it.
var collectiveWords = [...]struct {
	word string
	kind ir.CollectiveKind
}{
	{"reducescatter", ir.ReduceScatter}, {"allreduce", ir.AllReduce}, {"allgather", ir.AllGather},
	{"alltoall", ir.AllToAll}, {"alltonext", ir.AllToNext}, {"broadcast", ir.Broadcast}, {"bcast", ir.Broadcast},
	{"gather", ir.Gather}, {"scatter", ir.Scatter}, {"reduce", ir.ReduceTo},
}

// namedCollective finds the collective in a name.
func namedCollective(name string) (ir.CollectiveKind, bool) {
	s := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
	for _, w := range collectiveWords {
		if strings.Contains(s, w.word) {
			return w.kind, true
		}
	}
	return 0, false
}

// plainCollective settles the collective, or the candidates for it.
func (b *build) plainCollective(a attributes) {
	c := b.c
	at, ok := a.find("coll")
	if ok {
		if k, err := ir.ParseCollectiveKind(at.value); err == nil {
			b.kinds = []ir.CollectiveKind{k}
			return
		}
		if at.value == "reducescatter" {
			b.kinds = []ir.CollectiveKind{ir.ReduceScatter}
			return
		}
		c.errorf(at.at, CodeValue, "coll: unknown collective %s", quote(at.value)).
			Suggest("want one of allreduce, allgather, reduce_scatter or reducescatter, alltoall, broadcast, reduce, gather, scatter, alltonext, sendrecv, custom")
		return
	}
	for _, from := range [...]struct{ what, name string }{{"its name", a.get("name")}, {"the file's name", base(c.o.File)}} {
		if k, ok := namedCollective(from.name); ok {
			b.kinds = []ir.CollectiveKind{k}
			c.note(diag.Info, c.doc.at, CodeInferred, "the file doesn't say which collective it is: %s, by %s", k, from.what)
			return
		}
	}
	if c.o.Holds == nil {
		c.errorf(c.doc.at, CodeValue, "the file doesn't say which collective it is, and neither do its names")
		return
	}
	for _, k := range [...]ir.CollectiveKind{ir.AllReduce, ir.AllGather, ir.ReduceScatter, ir.AllToAll, ir.Broadcast, ir.ReduceTo} {
		if b.chunks%max(b.ranks, 1) == 0 || !divided(k) {
			b.kinds = append(b.kinds, k)
		}
	}
}

func base(file string) string {
	return file[strings.LastIndexAny(file, `/\`)+1:]
}

// divided reports whether a rank's part of the collective is nchunksperloop
// over the ranks.
func divided(k ir.CollectiveKind) bool {
	return k == ir.AllGather || k == ir.ReduceScatter || k == ir.AllToAll
}

// candidate is one way to complete a program.
type candidate struct {
	kind    ir.CollectiveKind
	inPlace bool
	root    ir.Rank
}

// programs completes the program: one for each declared mode.
func (b *build) programs() []*ir.Program {
	c := b.c
	if !b.usable() {
		return nil
	}
	list := b.candidates()
	best := list[0]
	for _, x := range list {
		if x.kind == best.kind && b.guessed && !x.inPlace {
			best = x // nothing holds: out of place, where nothing is shared
			break
		}
	}
	open := len(list) > 1
	if open && c.o.Holds == nil {
		best, open = list[0], false
	}
	found := !open
	for _, x := range list {
		if found {
			break
		}
		if p := b.program(x); p != nil && c.o.Holds(p) {
			best, found = x, true
		}
	}
	b.explain(best, found, len(list))
	modes := b.modes
	if b.guessed {
		modes = []bool{best.inPlace}
	}
	var out []*ir.Program
	for _, m := range modes {
		x := best
		x.inPlace = m
		if p := b.program(x); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// usable refuses collectives that the file doesn't define or doesn't fit.
func (b *build) usable() bool {
	c := b.c
	at, _ := c.doc.algo.find("coll")
	for _, k := range b.kinds {
		switch {
		case k == ir.AllToAllV:
			b.readCounts(at.at)
		case k == ir.SendRecv && (b.root == ir.None || b.peer == ir.None):
			c.errorf(at.at, CodeValue, "sendrecv: want the attributes root and peer, the two ranks")
		case b.chunks%b.ranks != 0 && (divided(k) || b.dialect == ir.TargetPlain && b.wholeBuffer(k)):
			c.errorf(c.doc.at, CodeInvalid, "%s: nchunksperloop %d is not a multiple of the %d ranks", k, b.chunks, b.ranks)
		}
	}
	return !c.failed()
}

// readCounts reads what an alltoallv moves, which only this project's own files
// tell.
func (b *build) readCounts(at int32) {
	c := b.c
	list, ok := c.doc.algo.find("counts")
	if !ok || c.o.Runtime != Plain {
		c.errorf(at, CodeInvalid, "alltoallv: the file doesn't say how much goes from where to where")
		return
	}
	words := strings.Split(list.value, ",")
	if int64(len(words)) != int64(b.ranks)*int64(b.ranks) {
		c.errorf(list.at, CodeValue, "counts: got %d numbers, want %d: from each of %d ranks to each", len(words), int64(b.ranks)*int64(b.ranks), b.ranks)
		return
	}
	for _, w := range words {
		n, ok := decimal(w)
		if !ok || n < 0 || n > int64(b.chunks) {
			c.errorf(list.at, CodeValue, "counts: got %s, want 0 to %d chunks", quote(w), b.chunks)
			return
		}
		b.counts = append(b.counts, int32(n))
	}
}

// wholeBuffer reports whether nchunksperloop of a gather or scatter counts the
// root's buffer: this project's plain files do, the runtimes count a rank's part.
func (b *build) wholeBuffer(k ir.CollectiveKind) bool {
	return (k == ir.Gather || k == ir.Scatter) && b.c.o.Runtime == Plain &&
		(b.dialect == ir.TargetMSCCL || b.c.doc.algo.get("target") == "plain")
}

// candidates lists what the program may be, the likeliest first.
func (b *build) candidates() []candidate {
	var out []candidate
	for _, k := range b.kinds {
		roots := []ir.Rank{ir.None}
		if k.Rooted() || k == ir.SendRecv {
			roots = b.roots(k)
		}
		modes := b.modes
		if !b.guessed {
			modes = modes[:1]
		}
		for _, m := range modes {
			for _, r := range roots {
				out = append(out, candidate{k, m, r})
			}
		}
	}
	return out
}

// roots lists the ranks that may be the root: the one declared; the only one
// with the buffer that a root alone has; those that no one sends to, or that
// send to no one; the others.
func (b *build) roots(k ir.CollectiveKind) []ir.Rank {
	if b.root != ir.None {
		return []ir.Rank{b.root}
	}
	from := k == ir.Broadcast || k == ir.Scatter
	sizes := b.out
	if from {
		sizes = b.in
	}
	likely := func(r ir.Rank) int {
		score := 0
		if sizes[r] > 0 {
			score -= 2
		}
		for t := range b.gpus[r].TBs {
			tb := &b.gpus[r].TBs[t]
			if from && tb.Recv != ir.None || !from && tb.Send != ir.None {
				return score + 1
			}
		}
		return score
	}
	all := make([]ir.Rank, b.ranks)
	scores := make([]int, b.ranks)
	for r := range all {
		all[r] = ir.Rank(r)
		scores[r] = likely(ir.Rank(r))
	}
	slices.SortStableFunc(all, func(x, y ir.Rank) int { return scores[x] - scores[y] })
	if len(all) > 1 && scores[all[0]] < scores[all[1]] && sizes[all[0]] > 0 && scores[all[1]] >= 0 {
		return all[:1] // the only one with the buffer
	}
	return all[:min(len(all), maxRoots)]
}

// explain says what was concluded.
func (b *build) explain(x candidate, found bool, tried int) {
	c := b.c
	why := func() string {
		switch {
		case tried == 1 || c.o.Holds == nil:
			return "by its shape"
		case found:
			return "with it the result is right"
		}
		return "for want of a better one: the result is right with none of those tried"
	}
	say := func(format string, args ...any) {
		c.note(diag.Info, c.doc.at, CodeInferred, "%s, %s", fmt.Sprintf(format, args...), why())
	}
	if len(b.kinds) > 1 {
		if !found {
			c.errorf(c.doc.at, CodeValue, "the file doesn't say which collective it is, and its result is that of none")
			return
		}
		say("the file doesn't say which collective it is: %s", x.kind)
	}
	if b.guessed {
		mode := "out of place"
		if x.inPlace {
			mode = "in place"
		}
		say("the file doesn't say whether it runs in place: %s", mode)
	}
	if x.kind.Rooted() && b.root == ir.None {
		say("the file doesn't name a root: rank %d", x.root)
	}
}

// collective makes the collective of a candidate; nil with an error if it's too
// large.
func (b *build) collective(x candidate) *ir.Collective {
	factor := b.chunks
	if divided(x.kind) || b.wholeBuffer(x.kind) {
		factor /= b.ranks
	}
	coll := ir.NewCollective(x.kind, b.ranks, factor, x.inPlace)
	coll.Root = x.root
	if x.kind == ir.SendRecv {
		coll.Peer = b.peer
	}
	if x.kind == ir.AllToAllV {
		coll.ChunkFactor, coll.Counts = 1, b.counts
	}
	if x.kind == ir.Custom {
		coll.ChunkFactor = 1
		coll.Custom = b.custom()
	}
	if x.kind == ir.Custom && coll.Custom == nil {
		return nil
	}
	if err := coll.Validate(); err != nil {
		b.c.errorf(b.c.doc.at, CodeTooLarge, "%s", diag.Messages(err)[0].Text)
		return nil
	}
	return coll
}

// custom is a collective of which only the sizes are known. The runtimes take
// nchunksperloop chunks on both sides; this project's own files may have other
// lengths.
func (b *build) custom() *ir.CustomSpec {
	const most = 1 << 20 // chunks of one side of all ranks
	u := &ir.CustomSpec{Open: true, Input: make([]int32, b.ranks), Output: make([]int32, b.ranks), Expect: make([][][]ir.Contribution, b.ranks)}
	total := int64(0)
	own := b.c.doc.algo.get("target") == "plain"
	for r := range b.ranks {
		in, out := b.chunks, b.chunks
		if own {
			in, out = max(b.in[r], 0), max(b.out[r], 0)
		}
		if total += int64(in) + int64(out); total > 2*most {
			b.c.errorf(b.c.doc.at, CodeTooLarge, "a custom collective of %d ranks with %d chunks each is too large", b.ranks, b.chunks)
			return nil
		}
		u.Input[r], u.Output[r] = in, out
		u.Expect[r] = make([][]ir.Contribution, out)
	}
	return u
}

// program makes the program of a candidate; nil with an error if there is none.
func (b *build) program(x candidate) *ir.Program {
	coll := b.collective(x)
	if coll == nil {
		return nil
	}
	spec := &ir.Spec{Name: b.name, Coll: coll, Topo: ir.FullyConnected(b.ranks), Protocol: b.protocol,
		Instances: 1, Positions: b.positions}
	p := &ir.Program{Spec: spec, Transport: b.transport, MinBytes: b.minBytes, MaxBytes: b.maxBytes,
		GPUs: slices.Clone(b.gpus), Deps: b.deps}
	for r := range p.GPUs {
		p.GPUs[r].Input, p.GPUs[r].Output = coll.InputChunks(ir.Rank(r)), coll.OutputChunks(ir.Rank(r))
	}
	b.perRank(p)
	if !b.runCopies(p) {
		return nil
	}
	return p
}

// perRank undoes what the writer does for gather and scatter: the runtimes' sizes
// are those of one rank's part.
func (b *build) perRank(p *ir.Program) {
	k, n := p.Coll.Kind, int64(b.ranks)
	if k != ir.Gather && k != ir.Scatter || b.wholeBuffer(k) {
		return
	}
	if p.MinBytes < unlimited/n {
		p.MinBytes *= n
	}
	if p.MaxBytes < unlimited/n {
		p.MaxBytes *= n
	} else {
		p.MaxBytes = 0
	}
}
