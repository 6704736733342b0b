package trace

import (
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Finish gives the program, if it is complete: every channel has another end,
// signals and waits are as many on every channel, and every switch reduction is
// broadcast. After it every call that records is an error. Errors are diag.List.
func (b *One) Finish() (*ir.OneTrace, error) {
	if m := b.ended("finish", 0); m != nil {
		return nil, m
	}
	b.done = true
	t := b.t
	spec := b.spec
	spec.Positions = slices.Clip(spec.Positions)
	t.Spec = &spec
	t.PairChannels()
	if err := b.complete(&t); err != nil {
		return nil, err
	}
	return &t, nil
}

// Snapshot gives the program as recorded so far, complete or not, sharing
// nothing with b, which goes on.
func (b *One) Snapshot() *ir.OneTrace {
	t, spec := b.t, b.spec
	spec.Positions = slices.Clone(spec.Positions)
	t.Spec = &spec
	t.GPUs = slices.Clone(t.GPUs)
	for g := range t.GPUs {
		t.GPUs[g].Channels = slices.Clone(t.GPUs[g].Channels)
		t.GPUs[g].Semaphores = slices.Clone(t.GPUs[g].Semaphores)
	}
	t.Groups, t.Loops, t.Ops = slices.Clone(t.Groups), slices.Clone(t.Loops), slices.Clone(t.Ops)
	t.Operands, t.Blocks = slices.Clone(t.Operands), slices.Clone(t.Blocks)
	t.PairChannels()
	return &t
}

// Complete says what is missing for the program to end here; see Finish.
func (b *One) Complete() error { return b.complete(b.Snapshot()) }

func (b *One) complete(t *ir.OneTrace) error {
	var list diag.List
	used := b.counts(t)
	list = b.unpaired(list, t, used)
	list = b.unequal(list, t, used)
	if !b.loose {
		list = b.unstored(list, t)
	}
	if len(list) > 0 {
		return list
	}
	return nil
}

// maxEndMessages is how many findings of one kind Finish tells one by one.
const maxEndMessages = 8

// turns is how often a signal or wait is done: once for each turn of a loop of
// that shape; a zero value is once.
type turns struct {
	unit   int64
	chunks int32
}

// channelUse is what a program does with one end of a channel.
type channelUse struct {
	signals, waits map[turns][]int32 // operations, in order
	kinds          []turns           // in order of their first use
}

// counts finds what is done with every channel, by rank and channel.
func (b *One) counts(t *ir.OneTrace) [][]channelUse {
	used := make([][]channelUse, len(t.GPUs))
	for g := range used {
		used[g] = make([]channelUse, len(t.GPUs[g].Channels))
	}
	for i := range t.Ops {
		op := &t.Ops[i]
		kind, ok := op.Kind.Op()
		if !ok {
			continue
		}
		var n turns
		if op.Loop != ir.None {
			n = turns{t.Loops[op.Loop].UnitBytes, t.Loops[op.Loop].Chunks}
		}
		switch kind {
		case ir.OpSignal, ir.OpRelaxedSignal, ir.OpPutSignal, ir.OpPutSignalFlush:
			used[op.Rank][op.Ref].add(true, n, int32(i))
		case ir.OpWait, ir.OpRelaxedWait:
			used[op.Rank][op.Ref].add(false, n, int32(i))
		}
	}
	return used
}

func (u *channelUse) add(signal bool, n turns, op int32) {
	if u.signals == nil {
		u.signals, u.waits = map[turns][]int32{}, map[turns][]int32{}
	}
	if !slices.Contains(u.kinds, n) {
		u.kinds = append(u.kinds, n)
	}
	if signal {
		u.signals[n] = append(u.signals[n], op)
	} else {
		u.waits[n] = append(u.waits[n], op)
	}
}

// unpaired adds the channels without another end. Loosely, only those that
// somebody signals or waits on.
func (b *One) unpaired(list diag.List, t *ir.OneTrace, used [][]channelUse) diag.List {
	found := 0
	for g := range t.GPUs {
		for c := range t.GPUs[g].Channels {
			ch := &t.GPUs[g].Channels[c]
			if ch.Pair != ir.None || b.loose && used[g][c].kinds == nil {
				continue
			}
			if found++; found > maxEndMessages {
				continue
			}
			call := channelCall(ch.Kind)
			k, back := 0, 0
			for _, o := range t.GPUs[g].Channels[:c+1] {
				if o.Kind == ch.Kind && o.Peer == ch.Peer {
					k++
				}
			}
			for _, o := range t.GPUs[ch.Peer].Channels {
				if o.Kind == ch.Kind && int(o.Peer) == g {
					back++
				}
			}
			list = append(list, b.errorf(ch.Pos, "unpaired-channel", "%s(%d, %d): the %s %s channel from rank %d to rank %d has no other end: rank %d has %s back",
				call, ch.Peer, g, ordinal(k), ch.Kind, g, ch.Peer, ch.Peer, number(back)).
				Suggest("%s(%d, %d) makes one; the k-th channel from a to b pairs with the k-th from b to a", call, g, ch.Peer))
		}
	}
	return b.more(list, found, "unpaired-channel", "channels without another end")
}

// unequal adds the signals that nobody waits for, and the waits that no signal
// answers, one for each end. Loosely, only those between ranks that signal and
// wait differently often on all their channels of the kind together: the checker
// finds what is stuck.
func (b *One) unequal(list diag.List, t *ir.OneTrace, used [][]channelUse) diag.List {
	found := 0
	var lack map[ranksVia]int
	if b.loose {
		lack = lacking(t, used)
	}
	for g := range t.GPUs {
		for c := range t.GPUs[g].Channels {
			ch := &t.GPUs[g].Channels[c]
			if ch.Pair == ir.None || b.loose && lack[ranksVia{ir.Rank(g), ch.Peer, ch.Kind}] == 0 {
				continue
			}
			here, there := &used[g][c], &used[ch.Peer][ch.Pair]
			for _, n := range unionTurns(here, there) {
				signals, waits := here.signals[n], there.waits[n]
				if len(signals) == len(waits) {
					continue
				}
				if found++; found <= maxEndMessages {
					list = append(list, b.unequalCounts(t, ir.Rank(g), c, n, signals, waits))
				}
			}
		}
	}
	return b.more(list, found, "signal-count", "channels with unequal counts of signals and waits")
}

// ranksVia is the direction from one rank to another on channels of one kind.
type ranksVia struct {
	from, to ir.Rank
	kind     ir.ChannelKind
}

// lacking is how many more signals than waits there are in each direction.
func lacking(t *ir.OneTrace, used [][]channelUse) map[ranksVia]int {
	lack := map[ranksVia]int{}
	for g := range used {
		for c := range used[g] {
			ch := &t.GPUs[g].Channels[c]
			for _, n := range used[g][c].kinds {
				lack[ranksVia{ir.Rank(g), ch.Peer, ch.Kind}] += len(used[g][c].signals[n])
				lack[ranksVia{ch.Peer, ir.Rank(g), ch.Kind}] -= len(used[g][c].waits[n])
			}
		}
	}
	return lack
}

func unionTurns(a, b *channelUse) []turns {
	all := slices.Clone(a.kinds)
	for _, n := range b.kinds {
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// unequalCounts is about signals of channel c of rank g and the waits at its
// other end, at the first that is too many.
func (b *One) unequalCounts(t *ir.OneTrace, g ir.Rank, c int, n turns, signals, waits []int32) *diag.Message {
	ch := &t.GPUs[g].Channels[c]
	how := ""
	if n.unit > 0 {
		how = fmt.Sprintf(" in a turn of a loop (unit %d, %s)", n.unit, plural(n.chunks, "chunk"))
	}
	text := fmt.Sprintf("rank %d signals rank %d %s%s on a %s channel, which waits %s", g, ch.Peer, times(len(signals)), how, ch.Kind, times(len(waits)))
	op, what := &ir.TraceOp{}, ""
	advice := fmt.Sprintf("every signal needs one wait of rank %d on the other end, in a loop like its own if in any", ch.Peer)
	if len(signals) > len(waits) {
		op, what = &t.Ops[signals[len(waits)]], "signal"
		if kind, _ := op.Kind.Op(); kind == ir.OpPutSignal || kind == ir.OpPutSignalFlush {
			what = oneCall(kind)
		}
		text += ": this one is never waited for"
	} else {
		op, what = &t.Ops[waits[len(signals)]], "wait"
		text += ": this wait never ends"
		advice = fmt.Sprintf("every wait needs one signal of rank %d on the other end, in a loop like its own if in any", g)
	}
	return b.errorf(op.Pos, "signal-count", "%s: %s", what, text).
		Note(b.spec.Pos(ch.Pos), "the channel of rank %d", g).
		Note(b.spec.Pos(t.GPUs[ch.Peer].Channels[ch.Pair].Pos), "its other end, of rank %d", ch.Peer).
		Suggest("%s", advice)
}

// unstored adds the switch reductions whose result is never broadcast: an
// executor can't do one without the other.
func (b *One) unstored(list diag.List, t *ir.OneTrace) diag.List {
	found := 0
	open := map[ir.Rank][]int32{}
	for i := range t.Ops {
		op := &t.Ops[i]
		kind, _ := op.Kind.Op()
		switch {
		case op.Kind == ir.TraceGroupReduce:
			open[op.Rank] = append(open[op.Rank], int32(i))
		case kind == ir.OpGroupStore:
			src := t.Sources(op)[0]
			open[op.Rank] = slices.DeleteFunc(open[op.Rank], func(r int32) bool { return t.Destinations(&t.Ops[r])[0] == src })
		}
	}
	for i := range t.Ops {
		op := &t.Ops[i]
		if op.Kind != ir.TraceGroupReduce || !slices.Contains(open[op.Rank], int32(i)) {
			continue
		}
		if found++; found <= maxEndMessages {
			d := t.Destinations(op)[0]
			list = append(list, b.errorf(op.Pos, "switch-reduce", "reduce: rank %d never broadcasts %s, which a switch channel reduces into",
				op.Rank, OneChunk{d.Rank, d.Buf, d.Index, d.Size}).
				Suggest("a switch reduces and broadcasts in one operation: let .broadcast(src_chunk, ...) follow, or reduce with memory channels"))
		}
	}
	return b.more(list, found, "switch-reduce", "switch reductions that are not broadcast")
}

// more adds how many findings were left out.
func (b *One) more(list diag.List, found int, code, what string) diag.List {
	if found > maxEndMessages {
		list = append(list, diag.Errorf(diag.Pos{}, code, "program: there are %d %s in all", found, what))
	}
	return list
}

func channelCall(kind ir.ChannelKind) string {
	if kind == ir.ChannelPort {
		return "PortChannel"
	}
	return "MemoryChannel"
}

// ordinal is 1st, 2nd, 3rd, 4th...
func ordinal(n int) string {
	suffix := "th"
	if n%100/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

func number(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
