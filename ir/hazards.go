package ir

import "slices"

// Hazards derives dependencies from accesses in program order: for each node
// Begin, its reads, then its writes, then End. Nodes are numbered from 0 in the
// order they are begun. A node never depends on itself.
//
// State is one word a location for the last writer and a list of readers since,
// cut from one arena, so the cost is linear in chunks touched plus edges found.
type Hazards struct {
	base   [][]int32 // base[buf][rank]: first location number
	writer []int32   // last writer of a location, None if untouched
	reader []int32   // head of the list of readers since, None if empty
	arena  []readerCell

	cur   int32
	found []foundDep
	edges Edges
}

type readerCell struct{ node, next int32 }

type foundDep struct {
	pred int32
	kind DepKind
}

// NewHazards makes an empty state for the buffers of s.
func NewHazards(s *Spec) *Hazards {
	h := &Hazards{base: make([][]int32, len(s.Buffers))}
	n := int32(0)
	for b := range s.Buffers {
		h.base[b] = make([]int32, len(s.Buffers[b].Chunks))
		for r, c := range s.Buffers[b].Chunks {
			h.base[b][r] = n
			n += c
		}
	}
	h.writer = make([]int32, n)
	h.reader = make([]int32, n)
	for i := range h.writer {
		h.writer[i], h.reader[i] = None, None
	}
	h.edges.Start = append(h.edges.Start, 0)
	return h
}

// Begin starts node id; ids must come in order from 0.
func (h *Hazards) Begin(id int32) {
	h.cur = id
	h.found = h.found[:0]
}

func (h *Hazards) at(l Loc) int32 { return h.base[l.Buf][l.Rank] + l.Index }

// Read says that the current node reads count chunks from l on.
func (h *Hazards) Read(l Loc, count int32) {
	at := h.at(l)
	for i := at; i < at+count; i++ {
		if w := h.writer[i]; w != None && w != h.cur {
			h.add(w, DepTrue)
		}
		if c := h.reader[i]; c == None || h.arena[c].node != h.cur {
			h.arena = append(h.arena, readerCell{h.cur, c})
			h.reader[i] = int32(len(h.arena) - 1)
		}
	}
}

// Write says that the current node writes count chunks from l on.
func (h *Hazards) Write(l Loc, count int32) {
	at := h.at(l)
	for i := at; i < at+count; i++ {
		waits := false
		for c := h.reader[i]; c != None; c = h.arena[c].next {
			if n := h.arena[c].node; n != h.cur {
				h.add(n, DepAnti)
				waits = true
			}
		}
		if w := h.writer[i]; !waits && w != None && w != h.cur {
			h.add(w, DepOutput)
		}
		h.writer[i], h.reader[i] = h.cur, None
	}
}

func (h *Hazards) add(pred int32, kind DepKind) {
	if n := len(h.found); n > 0 && h.found[n-1] == (foundDep{pred, kind}) {
		return
	}
	h.found = append(h.found, foundDep{pred, kind})
}

// Writer is the node that wrote l last, or None.
func (h *Hazards) Writer(l Loc) int32 { return h.writer[h.at(l)] }

// Dep adds a dependency of the current node that no location shows, such as
// the edge from a send to its receive.
func (h *Hazards) Dep(pred int32, kind DepKind) { h.add(pred, kind) }

// End finishes the current node.
func (h *Hazards) End() {
	slices.SortFunc(h.found, func(a, b foundDep) int {
		if a.pred != b.pred {
			return int(a.pred) - int(b.pred)
		}
		return int(a.kind) - int(b.kind)
	})
	last := int32(None)
	for _, f := range h.found {
		if f.pred == last {
			continue
		}
		last = f.pred
		h.edges.Pred = append(h.edges.Pred, f.pred)
		h.edges.Kind = append(h.edges.Kind, f.kind)
	}
	h.edges.Start = append(h.edges.Start, int32(len(h.edges.Pred)))
}

// Edges returns what was found; h must not be used afterwards.
func (h *Hazards) Edges() *Edges { return &h.edges }
