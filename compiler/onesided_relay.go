package compiler

import "github.com/mscclsh/mscclsh/ir"

// piece is a part of what a step reads: count chunks of its source from start on,
// which are those from at on of the message that node from received; from is None
// for plain data.
type piece struct{ start, count, from, at int32 }

// findRelays finds what is received into scratch to be sent, copied or added from
// there: it can be read as packets where it arrived. What nobody reads otherwise is
// not unpacked at all, and scratch that nobody touches otherwise needs no room.
func (x *export) findRelays() {
	x.reads, x.unpack = make([][]piece, len(x.nodes)), make([]bool, len(x.nodes))
	arrived := map[ir.Loc]piece{} // from and at
	read := map[[2]int32]bool{}   // the same
	for _, i := range x.order {
		n := &x.nodes[i]
		s := n.step
		relays := s.Kind == ir.Send || s.Kind == ir.Copy || s.Kind == ir.Reduce
		for c := int32(0); c < s.Count && s.Kind.ReadsSrc() && s.Src.Buf == ir.FirstScratch; c++ {
			l := x.loc(n.rank, s.Src, c)
			if p, ok := arrived[l]; ok && relays {
				read[[2]int32{p.from, p.at}] = true
				x.reads[i] = appendPiece(x.reads[i], piece{c, 1, p.from, p.at})
				continue
			}
			x.readPlain(arrived, l)
			x.reads[i] = appendPiece(x.reads[i], piece{c, 1, ir.None, 0})
		}
		for c := int32(0); c < s.Count && s.Kind.WritesDst() && s.Dst.Buf == ir.FirstScratch; c++ {
			l := x.loc(n.rank, s.Dst, c)
			if s.Kind.ReadsDst() {
				x.readPlain(arrived, l)
			}
			if s.Kind == ir.Recv || s.Kind == ir.RecvCopySend {
				arrived[l] = piece{from: i, at: c}
				continue
			}
			delete(arrived, l)
			x.plain[n.rank] = x.p.GPUs[n.rank].Scratch
		}
		x.unpack[i] = x.unpack[i] || s.Dst.Buf != ir.FirstScratch
	}
	for i := range x.nodes { // a launch ends with all messages read
		n := &x.nodes[i]
		for c := int32(0); c < n.step.Count && n.step.Kind == ir.Recv && !x.unpack[i]; c++ {
			if !read[[2]int32{int32(i), c}] {
				x.unpack[i], x.plain[n.rank] = true, x.p.GPUs[n.rank].Scratch
			}
		}
	}
}

// takes calls f for the nodes whose messages node i waits for.
func (x *export) takes(i int32, f func(int32)) {
	n := &x.nodes[i]
	if n.recvFrom != ir.None && (!x.packets || n.step.Kind != ir.Recv || x.unpack[i]) {
		f(n.recvFrom)
	}
	if x.packets {
		for _, p := range x.reads[i] {
			if p.from != ir.None {
				f(x.nodes[p.from].recvFrom)
			}
		}
	}
}

// readPlain notes that a location of scratch is read as plain data.
func (x *export) readPlain(arrived map[ir.Loc]piece, l ir.Loc) {
	x.plain[l.Rank] = x.p.GPUs[l.Rank].Scratch
	if p, ok := arrived[l]; ok {
		x.unpack[p.from] = true
	}
}

// appendPiece adds a piece of one chunk, to the piece before it if it goes on there.
func appendPiece(list []piece, p piece) []piece {
	if n := len(list); n > 0 {
		if q := &list[n-1]; q.from == p.from && (p.from == ir.None || q.at+q.count == p.at) {
			q.count++
			return list
		}
	}
	return append(list, p)
}
