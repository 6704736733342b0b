package runtime

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mscclsh/mscclsh/ir"
)

// Mismatch is one wrong element.
type Mismatch struct {
	Rank     ir.Rank     `json:"rank"`
	Buffer   ir.BufferID `json:"buffer"` // Output, or Input where an input was changed
	Index    int64       `json:"index"`  // in the user's buffer, in elements
	Chunk    int32       `json:"chunk"`
	Expected string      `json:"expected"`
	Found    string      `json:"found"`
	Bound    float64     `json:"bound"` // largest error allowed; 0 if bits must match
}

// String says what is wrong in one line.
func (m Mismatch) String() string {
	buf := "output"
	if m.Buffer == ir.Input {
		buf = "input"
	}
	s := fmt.Sprintf("rank %d %s element %d (chunk %d): expected %s, found %s", m.Rank, buf, m.Index, m.Chunk, m.Expected, m.Found)
	if m.Bound > 0 {
		s += fmt.Sprintf(" (allowed error %.3g)", m.Bound)
	}
	return s
}

// Verdict is the outcome of a comparison.
type Verdict struct {
	Elements   int64      // compared
	Wrong      int64      // of those, wrong
	Unbounded  int64      // of those, without an error bound: overflow was possible
	MaxError   float64    // largest difference of finite values
	MaxBound   float64    // largest finite bound among compared elements
	Mismatches []Mismatch // the first few, by chunk, element and rank
}

// maxMismatches is the number of wrong elements that a Verdict describes.
const maxMismatches = 10

// View gives the memory of chunk i of a rank's buffer, padding included.
type View func(r ir.Rank, i int32) []byte

// Verify compares every demanded output chunk with the reference. progress, if
// not nil, may be called from several goroutines with the share done.
func (f *Reference) Verify(ctx context.Context, output View, progress func(done float64)) (*Verdict, error) {
	coll := f.In.Layout.coll
	most := int32(0)
	for r := range ir.Rank(coll.Ranks) {
		most = max(most, coll.OutputChunks(r))
	}
	// Where all ranks demand the same, one computation serves all of them.
	same := coll.Kind == ir.AllReduce || coll.Kind == ir.Broadcast
	return f.sweep(ctx, most, progress, func(w *sweeper, i int32, off int64, n int) {
		have := false
		for r := range ir.Rank(coll.Ranks) {
			if !same || !have {
				var demanded bool
				w.want, demanded = coll.Expect(w.want[:0], r, i)
				if !demanded || len(w.want) == 0 {
					continue
				}
				if !have || !slices.Equal(w.want, w.last) {
					f.compute(w.block, w.want, off, n)
					w.last = append(w.last[:0], w.want...)
					have = true
				}
			}
			f.compare(w, r, ir.Output, i, off, output(r, i))
		}
	})
}

// VerifyInputs checks that every input chunk that held data still holds it.
func (f *Reference) VerifyInputs(ctx context.Context, input View, progress func(done float64)) (*Verdict, error) {
	coll := f.In.Layout.coll
	most := int32(0)
	for r := range ir.Rank(coll.Ranks) {
		most = max(most, coll.InputChunks(r))
	}
	return f.sweep(ctx, most, progress, func(w *sweeper, i int32, off int64, n int) {
		for r := range ir.Rank(coll.Ranks) {
			if coll.Holds(r, i) {
				f.compute(w.block, []ir.Contribution{{Rank: r, Index: i}}, off, n)
				f.compare(w, r, ir.Input, i, off, input(r, i))
			}
		}
	})
}

// sweeper is one goroutine of a comparison.
type sweeper struct {
	Verdict
	block      *block
	got        [refBlock]float64
	want, last []ir.Contribution
}

// sweep cuts the chunks into blocks and has them compared by as many goroutines
// as there are processors.
func (f *Reference) sweep(ctx context.Context, chunks int32, progress func(float64),
	do func(w *sweeper, i int32, off int64, n int)) (*Verdict, error) {
	l := f.In.Layout
	perChunk := (l.ChunkElems + refBlock - 1) / refBlock
	items := int64(chunks) * perChunk
	var next atomic.Int64
	sweepers := make([]*sweeper, max(min(int64(goruntime.GOMAXPROCS(0)), items), 0))
	var wg sync.WaitGroup
	for k := range sweepers {
		w := &sweeper{block: newBlock(l.DType)}
		sweepers[k] = w
		wg.Go(func() {
			for ctx.Err() == nil {
				item := next.Add(1) - 1
				if item >= items {
					return
				}
				i, off := int32(item/perChunk), item%perChunk*refBlock
				if _, n := l.Real(i); off < n {
					do(w, i, off, int(min(refBlock, n-off)))
				}
				if progress != nil && item%64 == 0 {
					progress(float64(item) / float64(items))
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("run: comparing results: %w", err)
	}
	return merge(sweepers), nil
}

func merge(sweepers []*sweeper) *Verdict {
	v := &Verdict{}
	for _, w := range sweepers {
		v.Elements += w.Elements
		v.Wrong += w.Wrong
		v.Unbounded += w.Unbounded
		v.MaxError = max(v.MaxError, w.MaxError)
		v.MaxBound = max(v.MaxBound, w.MaxBound)
		v.Mismatches = append(v.Mismatches, w.Mismatches...)
	}
	slices.SortFunc(v.Mismatches, func(a, b Mismatch) int {
		return cmp.Or(cmp.Compare(a.Chunk, b.Chunk), cmp.Compare(a.Index/refBlock, b.Index/refBlock),
			cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Index, b.Index))
	})
	v.Mismatches = v.Mismatches[:min(len(v.Mismatches), maxMismatches)]
	return v
}

// compare judges one block; memory is the whole chunk.
func (f *Reference) compare(w *sweeper, r ir.Rank, buf ir.BufferID, i int32, off int64, memory []byte) {
	l, b := f.In.Layout, w.block
	size := l.DType.Size()
	got := memory[off*int64(size):][:b.n*size]
	w.Elements += int64(b.n)
	want := b.want[:b.n*size]
	exact := !l.DType.Float() || f.In.exact || b.parts == 1 || f.Op == Min || f.Op == Max
	if exact && bytes.Equal(got, want) {
		return
	}
	if !l.DType.Float() {
		for k := range b.n {
			if !bytes.Equal(got[k*size:][:size], want[k*size:][:size]) {
				f.wrong(w, r, buf, i, off, k, got, 0)
			}
		}
		return
	}
	decodeFloats(w.got[:b.n], l.DType, got)
	for k, x := range w.got[:b.n] {
		bound := f.bound(b, k)
		if math.IsInf(bound, 1) {
			w.Unbounded++
			continue
		}
		if bytes.Equal(got[k*size:][:size], want[k*size:][:size]) && bound == 0 {
			continue
		}
		diff := math.Abs((x - b.hi[k]) - b.lo[k])
		w.MaxBound = max(w.MaxBound, bound)
		if diff > w.MaxError && !math.IsInf(diff, 0) { // false for NaN
			w.MaxError = diff
		}
		if bound > 0 && diff <= bound {
			continue
		}
		if b.hi[k] != b.hi[k] && x != x || x == 0 && b.hi[k] == 0 && b.parts > 1 {
			continue // any NaN is as good as another, and so is a zero that was reduced
		}
		f.wrong(w, r, buf, i, off, k, got, bound)
	}
}

func (f *Reference) wrong(w *sweeper, r ir.Rank, buf ir.BufferID, i int32, off int64, k int, got []byte, bound float64) {
	w.Wrong++
	if len(w.Mismatches) >= maxMismatches {
		return
	}
	first, _ := f.In.Layout.Real(i)
	d := f.In.Layout.DType
	w.Mismatches = append(w.Mismatches, Mismatch{Rank: r, Buffer: buf, Index: first + off + int64(k), Chunk: i,
		Expected: Format(d, w.block.want[k*d.Size():]), Found: Format(d, got[k*d.Size():]), Bound: bound})
}

// Format renders the first element of b, as few digits as tell it from its
// neighbors. b must be aligned for d.
func Format(d DType, b []byte) string {
	if d.Float() {
		var x [1]float64
		decodeFloats(x[:], d, b[:d.Size()])
		bits := 32
		if d == FP64 {
			bits = 64
		}
		return strconv.FormatFloat(x[0], 'g', -1, bits)
	}
	var x [1]uint64
	decodeInts(x[:], d, b[:d.Size()])
	if d.signed() {
		return strconv.FormatInt(int64(x[0]), 10)
	}
	return strconv.FormatUint(x[0], 10)
}
