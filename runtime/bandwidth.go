package runtime

import (
	"time"

	"github.com/mscclsh/mscclsh/ir"
)

// Bandwidth gives nccl-tests' two figures in GB/s (10^9 bytes a second): size
// over time, and that times the factor which makes collectives of different rank
// counts comparable with the speed of a link. Collectives that nccl-tests does
// not know have factor 1.
func Bandwidth(c *ir.Collective, nBytes int64, t time.Duration) (alg, bus float64) {
	if t <= 0 {
		return 0, 0
	}
	alg = float64(nBytes) / float64(t.Nanoseconds())
	n := float64(c.Ranks)
	switch c.Kind {
	case ir.AllReduce:
		return alg, alg * 2 * (n - 1) / n
	case ir.AllGather, ir.ReduceScatter, ir.AllToAll, ir.AllToAllV, ir.Gather, ir.Scatter:
		return alg, alg * (n - 1) / n
	}
	return alg, alg
}
