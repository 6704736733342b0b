package cuda

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// junk fills memory that the program has not been given: as fp32 about -2.7e7, in
// no type a number that small inputs could sum to.
const junk = 0xcb

// fillPiece is the number of elements made at a time, a whole number of blocks of
// the generator.
const fillPiece = 1 << 18

// fill gives every rank its inputs, and junk everywhere else.
func (r *runner) fill(ctx context.Context) error {
	type piece struct {
		rank       int
		chunk      int32
		off, count int64 // elements of the chunk
	}
	var pieces []piece
	coll := r.flat.prog.Coll
	for rank := range r.host {
		for b := range ir.FirstScratch {
			setBytes(r.host[rank][b], junk)
		}
		for i := range r.flat.chunks[3*rank] {
			if _, n := r.layout.Real(i); coll.Holds(ir.Rank(rank), i) {
				for off := int64(0); off < n; off += fillPiece {
					pieces = append(pieces, piece{rank, i, off, min(fillPiece, n-off)})
				}
			}
		}
	}
	size := int64(r.layout.DType.Size())
	view := r.view(ir.Input)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(goruntime.GOMAXPROCS(0), len(pieces)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(pieces)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				p := &pieces[i]
				first, _ := r.layout.Real(p.chunk)
				memory := view(ir.Rank(p.rank), p.chunk)
				r.inputs.Fill(memory[p.off*size:][:p.count*size], ir.Rank(p.rank), first+p.off)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("run: making inputs: %w", err)
	}
	return r.send()
}

func setBytes(b []byte, v byte) {
	if len(b) == 0 {
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// send copies all buffers to the devices.
func (r *runner) send() error {
	lib := r.comm.lib
	for rank := range r.host {
		for b := range ir.BufferID(3) {
			n, own := r.own(rank, b)
			if !own || n == 0 {
				continue
			}
			from := r.host[rank][b]
			f := lib.call(func(e *byte, size int64) int32 {
				if b == ir.FirstScratch {
					return lib.fill(r.handle, int32(rank), int32(b), junk, e, size)
				}
				return lib.upload(r.handle, int32(rank), int32(b), 0, &from[0], n, e, size)
			})
			if f != nil {
				return r.failed(f, fmt.Sprintf("sending the %s of rank %d", bufferNames[b], rank))
			}
		}
	}
	return nil
}

// fetch copies inputs and outputs back.
func (r *runner) fetch() error {
	lib := r.comm.lib
	for rank := range r.host {
		for b := range ir.FirstScratch {
			n, own := r.own(rank, b)
			if !own || n == 0 {
				continue
			}
			to := r.host[rank][b]
			f := lib.call(func(e *byte, size int64) int32 {
				return lib.download(r.handle, int32(rank), int32(b), 0, &to[0], n, e, size)
			})
			if f != nil {
				return r.failed(f, fmt.Sprintf("fetching the %s of rank %d", bufferNames[b], rank))
			}
		}
	}
	return nil
}

// view is the host's copy of a buffer, wherever it lies.
func (r *runner) view(b ir.BufferID) runtime.View {
	chunk := r.layout.ChunkBytes()
	return func(rank ir.Rank, i int32) []byte {
		at := 3*int(rank) + int(b)
		first := int64(r.flat.baseChunk[at]) + int64(i)
		return r.host[rank][r.flat.baseBuf[at]][first*chunk:][:chunk]
	}
}

// collect puts outputs into the report, if asked for.
func (r *runner) collect() {
	if !r.o.KeepOutputs {
		return
	}
	size := int64(r.layout.DType.Size())
	view := r.view(ir.Output)
	r.report.Outputs = make([][]byte, len(r.host))
	for rank := range r.host {
		out := runtime.Alloc(r.layout.OutputElems(ir.Rank(rank)) * size)
		r.report.Outputs[rank] = out
		for i := range r.flat.chunks[3*rank+1] {
			if first, n := r.layout.Real(i); first*size < int64(len(out)) {
				copy(out[first*size:], view(ir.Rank(rank), i)[:n*size])
			}
		}
	}
}
