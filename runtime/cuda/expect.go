package cuda

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// expectation is what a program has to do with data, by its collective alone, in
// the tables that mscclsh_expect reads: runs of chunks of which each next one is
// made of the next chunks of the same ranks.
type expectation struct {
	held    []cHeld
	results []cResult
	parts   []cPart
}

// expect lists the chunks that hold data and all that must be in outputs, and out of
// place in inputs, afterwards.
func expect(c *ir.Collective) *expectation {
	e := &expectation{}
	var want []ir.Contribution
	for r := range ir.Rank(c.Ranks) {
		for i := range c.InputChunks(r) {
			if c.Holds(r, i) {
				e.hold(r, i)
			}
		}
		for i := range c.OutputChunks(r) {
			var demanded bool
			if want, demanded = c.Expect(want[:0], r, i); demanded && len(want) > 0 {
				e.must(r, ir.Output, i, want)
			}
		}
		for i := range c.InputChunks(r) {
			if !c.InPlace && c.Holds(r, i) {
				e.must(r, ir.Input, i, append(want[:0], ir.Contribution{Rank: r, Index: i}))
			}
		}
	}
	return e
}

func (e *expectation) hold(r ir.Rank, i int32) {
	if n := len(e.held); n > 0 {
		if h := &e.held[n-1]; h.rank == int32(r) && h.chunk+h.count == i {
			h.count++
			return
		}
	}
	e.held = append(e.held, cHeld{rank: int32(r), chunk: i, count: 1})
}

// must adds a result, to the run before it if it goes on there. It sorts want.
func (e *expectation) must(r ir.Rank, b ir.BufferID, i int32, want []ir.Contribution) {
	slices.SortFunc(want, func(x, y ir.Contribution) int {
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Index, y.Index))
	})
	first := len(e.parts)
	for k, w := range want {
		if k > 0 && w == want[k-1] {
			e.parts[len(e.parts)-1].times++
			continue
		}
		e.parts = append(e.parts, cPart{rank: int32(w.Rank), chunk: w.Index, times: 1})
	}
	parts := e.parts[first:]
	if n := len(e.results); n > 0 && e.results[n-1].goesOn(r, b, i, e.parts, parts) {
		e.results[n-1].count++
		e.parts = e.parts[:first]
		return
	}
	e.results = append(e.results, cResult{rank: int32(r), buf: int32(b), chunk: i, count: 1,
		firstPart: int64(first), parts: int32(len(parts))})
}

// goesOn reports whether the chunk with these parts is the run's next one.
func (s *cResult) goesOn(r ir.Rank, b ir.BufferID, i int32, all, parts []cPart) bool {
	own := all[s.firstPart:][:s.parts]
	return s.rank == int32(r) && s.buf == int32(b) && s.chunk+s.count == i &&
		slices.EqualFunc(own, parts, func(x, y cPart) bool {
			return x.rank == y.rank && x.times == y.times && x.chunk+s.count == y.chunk
		})
}

// mismatch is the first wrong element of a verdict.
func (v *cVerdict) mismatch(l *runtime.Layout) runtime.Mismatch {
	first, _ := l.Real(v.chunk)
	return runtime.Mismatch{Rank: ir.Rank(v.rank), Buffer: ir.BufferID(v.buf), Index: first + v.element, Chunk: v.chunk,
		Expected: element(l.DType, v.want), Found: element(l.DType, v.have)}
}

// element renders an element of the given bits.
func element(d runtime.DType, bits uint64) string {
	b := runtime.Alloc(8)
	binary.LittleEndian.PutUint64(b, bits)
	return runtime.Format(d, b[:d.Size()])
}
