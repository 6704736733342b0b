package checker

import "github.com/mscclsh/mscclsh/ir"

// search looks for a weak path from one unit of an operation to a later one, where
// the blocks' clocks show none: through packets, from the unit that reads one to the
// unit that wrote it.
type search struct {
	units  map[unitNode]bool
	nodes  map[pnode]bool
	todo   []unitNode
	places []pnode
	spent  int64

	// What is searched for: over for who knows entry comp to be more than epoch.
	comp, epoch int32
}

// unitNode is a unit of a lane of an instance.
type unitNode struct{ inst, lane, unit int32 }

// maxSpent bounds the steps of all searches of a history together.
const maxSpent = 1 << 28

// reaches reports whether unit a, a part of use x, happened before unit b.
func (h *history) reaches(x *use, a, b unitNode) bool {
	h.search.begin(x)
	h.search.todo = append(h.search.todo, b)
	return h.walk(a, b)
}

// reachesStart reports whether unit a, a part of use x, happened before a segment began.
func (h *history) reachesStart(x *use, a unitNode, n pnode) bool {
	h.search.begin(x)
	h.search.places = append(h.search.places, n)
	return h.walk(a, unitNode{inst: ir.None})
}

func (s *search) begin(x *use) {
	s.comp, s.epoch = x.comp, x.epoch
	s.units, s.nodes = map[unitNode]bool{}, map[pnode]bool{}
	s.todo, s.places = s.todo[:0], s.places[:0]
}

// walk goes on until it finds a; b, which it began with, is itself no step on the way.
func (h *history) walk(a, b unitNode) bool {
	s := &h.search
	since := h.insts[a.inst].begun
	for s.spent < maxSpent {
		switch {
		case len(s.todo) > 0:
			n := s.todo[len(s.todo)-1]
			s.todo = s.todo[:len(s.todo)-1]
			if h.before(n, a, since, n == b) {
				return true
			}
		case len(s.places) > 0:
			n := s.places[len(s.places)-1]
			s.places = s.places[:len(s.places)-1]
			if h.beforePlace(n, a, since) {
				return true
			}
		default:
			return false
		}
	}
	return false
}

// before visits what comes right before a unit.
func (h *history) before(n, a unitNode, since int32, first bool) bool {
	s := &h.search
	in := &h.insts[n.inst]
	if n == a || in.told.weak != nil && in.told.weak[s.comp] > s.epoch {
		return true
	}
	if !first && in.over < since || s.units[n] {
		return false
	}
	s.units[n] = true
	s.spent++
	s.places = append(s.places, pnode{in.block, in.seg})
	s.places = append(s.places, in.told.from...)
	for k := range in.reads {
		rd := &in.reads[k]
		lo, hi := n.unit, n.unit+1
		switch {
		case in.async: // the threads meet before they hand it to the port
			lo, hi = 0, int32(len(rd.from))
		case rd.lane != n.lane: // lanes follow one another, as the executor pleases
			continue
		}
		for u := lo; u < min(hi, int32(len(rd.from))); u++ {
			if w := rd.from[u]; w.inst != ir.None {
				if w == a {
					return true
				}
				s.todo = append(s.todo, w)
			}
		}
	}
	return false
}

// beforePlace visits what comes before the start of a segment: the segment before
// it, with all its units, and what its threads learned.
func (h *history) beforePlace(n pnode, a unitNode, since int32) bool {
	s := &h.search
	if n.seg == 0 || s.nodes[n] {
		return false
	}
	s.nodes[n] = true
	p := &h.blocks[n.block]
	if p.ended[n.seg-1] < since {
		return false
	}
	s.spent++
	prev := n.seg - 1
	s.places = append(s.places, pnode{n.block, prev})
	s.places = append(s.places, p.learned[prev]...)
	for _, i := range p.insts[p.firstInst[prev]:p.firstInst[n.seg]] {
		in := &h.insts[i]
		if in.async || in.over < since {
			continue
		}
		if i == a.inst {
			return true
		}
		for k := range in.reads {
			for _, w := range in.reads[k].from {
				if w == a {
					return true
				}
				if w.inst != ir.None && !s.units[w] {
					s.todo = append(s.todo, w)
				}
			}
		}
	}
	return false
}
