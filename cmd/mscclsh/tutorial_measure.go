package main

import "github.com/mscclsh/mscclsh/ir"

// channelsBetween is how many connections a program uses from a rank to another.
func channelsBetween(p *ir.Program, from, to ir.Rank) int64 {
	used := map[int32]bool{}
	eachSend(p, func(rank ir.Rank, st *ir.Step) {
		if rank == from && st.SendPeer == to {
			used[st.Chan] = true
		}
	})
	return int64(len(used))
}

// load is how many chunks of the exercise's size go over the link that has most to
// carry.
func (w *wanted) load(p *ir.Program) int64 {
	sent, most := map[[2]ir.Rank]int64{}, int64(0)
	eachSend(p, func(rank ir.Rank, st *ir.Step) {
		link := [2]ir.Rank{rank, st.SendPeer}
		sent[link] += int64(st.Count)
		most = max(most, sent[link])
	})
	if n := int64(piecesOf(p.Coll, w.coll)); n > 0 {
		return (most + n - 1) / n
	}
	return most * int64(piecesOf(w.coll, p.Coll))
}

func eachSend(p *ir.Program, f func(rank ir.Rank, st *ir.Step)) {
	for g := range p.GPUs {
		for b := range p.GPUs[g].TBs {
			for i := range p.GPUs[g].TBs[b].Steps {
				if st := &p.GPUs[g].TBs[b].Steps[i]; st.Kind.Sends() {
					f(ir.Rank(g), st)
				}
			}
		}
	}
}

// longestChain is the number of messages on the longest path through a program that
// can run to its end: over the order in thread blocks, waits and messages.
func longestChain(p *ir.Program) int64 {
	type at struct{ gpu, tb, step int32 }
	type conn struct{ from, to, ch int32 }
	depth, left := map[at]int64{}, map[at]int{}
	after := map[at][]at{}
	join := func(a, b at) { after[a], left[b] = append(after[a], b), left[b]+1 }
	sends, recvs := map[conn][]at{}, map[conn][]at{}
	var ready []at
	for g := range p.GPUs {
		for b := range p.GPUs[g].TBs {
			for i := range p.GPUs[g].TBs[b].Steps {
				st, s := &p.GPUs[g].TBs[b].Steps[i], at{int32(g), int32(b), int32(i)}
				left[s] += 0
				if i > 0 {
					join(at{s.gpu, s.tb, s.step - 1}, s)
				}
				for _, d := range p.DepsOf(st) {
					join(at{s.gpu, int32(d.TB), int32(d.Step)}, s)
				}
				if st.Kind.Sends() {
					c := conn{s.gpu, int32(st.SendPeer), int32(st.Chan)}
					sends[c] = append(sends[c], s)
				}
				if st.Kind.Receives() {
					c := conn{int32(st.RecvPeer), s.gpu, int32(st.Chan)}
					recvs[c] = append(recvs[c], s)
				}
			}
		}
	}
	for c, list := range recvs {
		for i, r := range list {
			if i < len(sends[c]) {
				join(sends[c][i], r)
			}
		}
	}
	for s, n := range left {
		if n == 0 {
			ready = append(ready, s)
		}
	}
	longest := int64(0)
	for len(ready) > 0 {
		s := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		longest = max(longest, depth[s])
		for _, next := range after[s] {
			d := depth[s]
			if next.gpu != s.gpu {
				d++
			}
			depth[next] = max(depth[next], d)
			if left[next]--; left[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	return longest
}
