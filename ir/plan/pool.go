package plan

import (
	"math"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// scratchPool is the bytes of the scratch that plans with reuse_resources share
// (PREDFINED_SCRATCH_SIZE in execution_common.hpp).
const scratchPool = 1 << 26

// pool refuses messages for which the pool is too small. The executor puts the chunks of
// scratch closer together then: what a pipeline does wraps around within each, turn by
// turn, with nothing to keep turns apart, and everything else runs into the next chunk.
func (f *refusal) pool() {
	o := f.p.OneSided
	most := int64(math.MaxInt64)
	for g := range f.p.GPUs {
		if n := int64(f.p.GPUs[g].Scratch); o.ReuseResources && n > 0 {
			most = min(most, poolChunk(n, o.DoubleScratch, int64(o.Alignment)))
		}
	}
	if most == math.MaxInt64 {
		return
	}
	most *= int64(f.p.Coll.NumChunks())
	if f.p.MaxBytes == 0 || f.p.MaxBytes > most {
		f.quirk(diag.Pos{}, "with reuse_resources MSCCL++'s executor has scratch for messages of up to %d bytes, and reuses it turn by turn beyond: "+
			"let max_message_size be that, or leave reuse_resources out", most)
	}
}

// poolChunk is the bytes of each of n chunks in the pool, or in half of it: the
// executor's calMaxScratchChunkSize.
func poolChunk(n int64, double bool, align int64) int64 {
	size := int64(scratchPool)
	if double {
		size /= 2
	}
	size = (size + n - 1) / n
	return (size + align - 1) / align * align
}
