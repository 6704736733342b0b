package proof

import (
	"fmt"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// site is one edit of one program.
type site struct {
	edit           *edit
	rank, tb, step int
	arg            int32
}

func (x site) String() string {
	if x.edit.everywhere {
		return fmt.Sprintf("%s to %d", x.edit.name, x.arg)
	}
	return fmt.Sprintf("%s at rank %d tb %d step %d (%d)", x.edit.name, x.rank, x.tb, x.step, x.arg)
}

// edit is a kind of edit. args lists the ways in which it can be done at a step.
type edit struct {
	name       string
	everywhere bool // done to the program, not to a step
	args       func(d *draft, x site) []int32
	apply      func(d *draft, x site)
}

// once is the one argument of edits that have one way.
var once = []int32{0}

func onlyIf(ok bool) []int32 {
	if ok {
		return once
	}
	return nil
}

func upTo(n int) []int32 {
	var out []int32
	for i := range int32(n) {
		out = append(out, i)
	}
	return out
}

// edits are the single edits of a mutant.
var edits = []edit{
	{name: "drop a dependency",
		args: func(d *draft, x site) []int32 { return upTo(len(d.step(x).deps)) },
		apply: func(d *draft, x site) {
			st := d.step(x)
			st.deps = slices.Delete(st.deps, int(x.arg), int(x.arg)+1)
		}},
	{name: "drop a wait", // one dependency is the edit above
		args:  func(d *draft, x site) []int32 { return onlyIf(len(d.step(x).deps) > 1) },
		apply: func(d *draft, x site) { d.step(x).deps = nil }},
	{name: "wait for the step before",
		args: func(d *draft, x site) []int32 {
			var out []int32
			for i, dep := range d.step(x).deps {
				if dep.Step > 0 {
					out = append(out, int32(i))
				}
			}
			return out
		},
		apply: func(d *draft, x site) {
			dep := &d.step(x).deps[x.arg]
			dep.Step--
			d.tbs[x.rank][dep.TB].steps[dep.Step].Post = true
		}},
	{name: "wait for a later step",
		args: func(d *draft, x site) []int32 { return onlyIf(len(d.tbs[x.rank]) > 1) },
		apply: func(d *draft, x site) {
			o := (x.tb + 1) % len(d.tbs[x.rank])
			if last := len(d.tbs[x.rank][o].steps) - 1; last >= 0 {
				d.tbs[x.rank][o].steps[last].Post = true
				st := d.step(x)
				st.deps = append(st.deps, ir.Dep{TB: int32(o), Step: int32(last)})
			}
		}},
	{name: "wait for a step that doesn't exist",
		args: func(d *draft, x site) []int32 { return upTo(min(len(d.step(x).deps), 1)) },
		apply: func(d *draft, x site) {
			dep := &d.step(x).deps[x.arg]
			dep.Step = int32(len(d.tbs[x.rank][dep.TB].steps))
		}},
	{name: "wait for oneself",
		args: func(d *draft, x site) []int32 { return onlyIf(len(d.step(x).deps) > 0) },
		apply: func(d *draft, x site) {
			st := d.step(x)
			st.Post = true
			st.deps = append(st.deps, ir.Dep{TB: int32(x.tb), Step: int32(x.step)})
		}},
	{name: "drop a nop",
		args:  func(d *draft, x site) []int32 { return onlyIf(d.step(x).Kind == ir.Nop) },
		apply: func(d *draft, x site) { d.remove(x.rank, x.tb, x.step) }},
	{name: "drop a step",
		args:  func(d *draft, x site) []int32 { return onlyIf(d.step(x).Kind != ir.Nop) },
		apply: func(d *draft, x site) { d.remove(x.rank, x.tb, x.step) }},
	{name: "drop a signal",
		args:  func(d *draft, x site) []int32 { return onlyIf(d.step(x).Post) },
		apply: func(d *draft, x site) { d.step(x).Post = false }},
	{name: "shift a source",
		args: func(d *draft, x site) []int32 {
			if d.step(x).Kind.ReadsSrc() {
				return []int32{-1, 1}
			}
			return nil
		},
		apply: func(d *draft, x site) { d.step(x).Src.Index += x.arg }},
	{name: "shift a destination",
		args: func(d *draft, x site) []int32 {
			if d.step(x).Kind.WritesDst() {
				return []int32{-1, 1}
			}
			return nil
		},
		apply: func(d *draft, x site) { d.step(x).Dst.Index += x.arg }},
	{name: "take another source buffer",
		args: func(d *draft, x site) []int32 {
			st := d.step(x)
			return otherBuffers(st.Kind.ReadsSrc(), st.Src.Buf)
		},
		apply: func(d *draft, x site) { d.step(x).Src.Buf = ir.BufferID(x.arg) }},
	{name: "take another destination buffer",
		args: func(d *draft, x site) []int32 {
			st := d.step(x)
			return otherBuffers(st.Kind.WritesDst(), st.Dst.Buf)
		},
		apply: func(d *draft, x site) { d.step(x).Dst.Buf = ir.BufferID(x.arg) }},
	{name: "swap two steps",
		args: func(d *draft, x site) []int32 { return onlyIf(x.step+1 < len(d.tbs[x.rank][x.tb].steps)) },
		apply: func(d *draft, x site) {
			a, b := d.step(x), &d.tbs[x.rank][x.tb].steps[x.step+1]
			*a, *b = *b, *a
			a.Post, b.Post = b.Post, a.Post // others go on waiting for the same numbers
		}},
	{name: "change a count",
		args: func(d *draft, x site) []int32 {
			if d.step(x).Kind == ir.Nop {
				return nil
			}
			return []int32{-1, 1}
		},
		apply: func(d *draft, x site) { d.step(x).Count += x.arg }},
	{name: "change both counts",
		args:  func(d *draft, x site) []int32 { return onlyIf(d.step(x).Count > 1 && d.step(x).Kind == ir.Send) },
		apply: shortenBoth},
	{name: "move a step to another thread block",
		args: func(d *draft, x site) []int32 { return upTo(min(len(d.tbs[x.rank])-1, 2)) },
		apply: func(d *draft, x site) {
			to := (x.tb + 1 + int(x.arg)) % len(d.tbs[x.rank])
			d.move(x.rank, x.tb, x.step, to, min(x.step, len(d.tbs[x.rank][to].steps)))
		}},
	{name: "swap channels",
		args: func(d *draft, x site) []int32 { return onlyIf(x.step == 0 && x.tb+1 < len(d.tbs[x.rank])) },
		apply: func(d *draft, x site) {
			a, b := &d.tbs[x.rank][x.tb], &d.tbs[x.rank][x.tb+1]
			a.channel, b.channel = b.channel, a.channel
			for _, tb := range []*draftTB{a, b} {
				for s := range tb.steps {
					tb.steps[s].Chan = tb.channel
				}
			}
		}},
	{name: "declare the next thread block's connection",
		args:  func(d *draft, x site) []int32 { return onlyIf(x.step == 0 && len(d.tbs[x.rank]) > 1) },
		apply: declareNext},
	{name: "change a step's channel",
		args: func(d *draft, x site) []int32 {
			k := d.step(x).Kind
			return onlyIf(k.Sends() || k.Receives())
		},
		apply: func(d *draft, x site) { d.step(x).Chan ^= 1 }},
	{name: "send to another rank",
		args:  func(d *draft, x site) []int32 { return onlyIf(d.step(x).Kind.Sends() && len(d.tbs) > 2) },
		apply: func(d *draft, x site) { d.step(x).SendPeer = nextPeer(d, x, d.step(x).SendPeer) }},
	{name: "receive from another rank",
		args:  func(d *draft, x site) []int32 { return onlyIf(d.step(x).Kind.Receives() && len(d.tbs) > 2) },
		apply: func(d *draft, x site) { d.step(x).RecvPeer = nextPeer(d, x, d.step(x).RecvPeer) }},
	{name: "change the kind",
		args: func(d *draft, x site) []int32 {
			var out []int32
			for _, k := range alike[d.step(x).Kind] {
				out = append(out, int32(k))
			}
			return out
		},
		apply: func(d *draft, x site) {
			st := d.step(x)
			was := st.Kind
			st.Kind = ir.StepKind(x.arg)
			if st.Kind.ReadsSrc() && !was.ReadsSrc() {
				st.Src = st.Dst
			}
			if st.Kind.WritesDst() && !was.WritesDst() {
				st.Dst = st.Src
			}
		}},
	{name: "lower the slots", everywhere: true,
		args:  func(d *draft, x site) []int32 { return upTo(int(d.p.Transport.Slots)) },
		apply: func(d *draft, x site) { d.p.Transport.Slots = x.arg }},
}

// alike are the kinds that a step can become without another peer.
var alike = map[ir.StepKind][]ir.StepKind{
	ir.Recv:               {ir.RecvReduceCopy},
	ir.RecvReduceCopy:     {ir.Recv},
	ir.RecvCopySend:       {ir.RecvReduceSend, ir.RecvReduceCopySend},
	ir.RecvReduceSend:     {ir.RecvCopySend, ir.RecvReduceCopySend},
	ir.RecvReduceCopySend: {ir.RecvCopySend, ir.RecvReduceSend},
	ir.Copy:               {ir.Reduce},
	ir.Reduce:             {ir.Copy},
}

// declareNext lets a thread block declare what the one after it sends on first,
// without using it.
func declareNext(d *draft, x site) {
	tbs := d.tbs[x.rank]
	for _, st := range tbs[(x.tb+1)%len(tbs)].steps {
		if st.Kind.Sends() {
			tbs[x.tb].send, tbs[x.tb].channel = st.SendPeer, st.Chan
			return
		}
	}
}

// nextPeer is the rank after peer that is neither peer nor the step's own.
func nextPeer(d *draft, x site, peer ir.Rank) ir.Rank {
	for {
		if peer = (peer + 1) % ir.Rank(len(d.tbs)); int(peer) != x.rank {
			return peer
		}
	}
}

func otherBuffers(used bool, now ir.BufferID) []int32 {
	if !used {
		return nil
	}
	return []int32{(int32(now) + 1) % 3, (int32(now) + 2) % 3}
}

// shortenBoth takes a chunk off a send and off its receive: a right program about
// connections that moves less than it should.
func shortenBoth(d *draft, x site) {
	st := d.step(x)
	k := connKey{ir.Rank(x.rank), st.SendPeer, st.Chan}
	nth := 0
	for _, o := range d.tbs[x.rank][x.tb].steps[:x.step] {
		if o.Kind.Sends() && o.SendPeer == k.dst && o.Chan == k.channel {
			nth++
		}
	}
	st.Count--
	for t := range d.tbs[k.dst] {
		for s := range d.tbs[k.dst][t].steps {
			o := &d.tbs[k.dst][t].steps[s]
			if !o.Kind.Receives() || o.RecvPeer != k.src || o.Chan != k.channel {
				continue
			}
			if nth--; nth == -1 {
				o.Count--
			}
		}
	}
}

// sites lists every edit that can be made to a program, by kind of edit.
func sites(d *draft) [][]site {
	out := make([][]site, len(edits))
	for e := range edits {
		ed := &edits[e]
		if ed.everywhere {
			for _, arg := range ed.args(d, site{}) {
				out[e] = append(out[e], site{edit: ed, arg: arg})
			}
			continue
		}
		for r := range d.tbs {
			for t := range d.tbs[r] {
				for s := range d.tbs[r][t].steps {
					x := site{edit: ed, rank: r, tb: t, step: s}
					for _, x.arg = range ed.args(d, x) {
						out[e] = append(out[e], x)
					}
				}
			}
		}
	}
	return out
}

// mutant makes one edit.
func (d *draft) mutant(x site) *ir.Program {
	c := d.clone()
	x.edit.apply(c, x)
	return c.program()
}
