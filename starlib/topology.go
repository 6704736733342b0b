package starlib

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/ir"
)

// topology is a topology as a script holds it.
type topology struct {
	in *interp
	t  *ir.Topology
}

var _ starlark.HasAttrs = (*topology)(nil)

func (x *topology) String() string {
	return fmt.Sprintf("<topology %s of %d ranks>", x.t.Name, x.t.Ranks)
}
func (x *topology) Type() string          { return "topology" }
func (x *topology) Freeze()               {}
func (x *topology) Truth() starlark.Bool  { return true }
func (x *topology) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: topology") }

func (x *topology) AttrNames() []string {
	return attrNames(topologyMethods, []string{"name", "links"})
}

func (x *topology) Attr(name string) (starlark.Value, error) {
	switch name {
	case "name":
		return starlark.String(x.t.Name), nil
	case "links":
		return x.links()
	}
	return method(x.in, x, topologyMethods, name), nil
}

// links is the matrix [dst][src] of bandwidths, as msccl-tools has it.
func (x *topology) links() (starlark.Value, error) {
	n := int(x.t.Ranks)
	if n > maxMatrixRanks {
		return nil, fmt.Errorf("links: got %d ranks, want at most %d", n, maxMatrixRanks)
	}
	rows := make([]starlark.Value, n)
	for dst := range rows {
		row := make([]starlark.Value, n)
		for src := range row {
			row[src] = bandwidthValue(bandwidth(x.t, src, dst))
		}
		rows[dst] = starlark.NewList(row)
	}
	return starlark.NewList(rows), nil
}

// bandwidth is that of the link from src to dst, 0 without a link or from a rank
// to itself.
func bandwidth(t *ir.Topology, src, dst int) float64 {
	switch {
	case src == dst:
		return 0
	case t.Bandwidth == nil:
		return 1
	}
	return t.Bandwidth[src*int(t.Ranks)+dst]
}

func bandwidthValue(b float64) starlark.Value {
	if b == float64(int(b)) {
		return starlark.MakeInt(int(b))
	}
	return starlark.Float(b)
}

// maxMatrixRanks bounds what needs a number for every pair of ranks: 512 MiB.
const maxMatrixRanks = 1 << 13

// matrix is argument i as the number of ranks of a topology that keeps its links
// one by one.
func (c *call) matrix(i int) (int32, error) {
	n, err := c.ranks(i)
	if err == nil && n > maxMatrixRanks {
		err = c.sig.errorf("bad-argument", "%s: got %d, want at most %d", c.sig.params[i].name, n, maxMatrixRanks).
			Suggest("fully_connected takes more")
	}
	return n, err
}

// linked makes a topology whose link from src to dst has bandwidth f(src, dst).
func linked(name string, n int32, f func(src, dst int32) float64) *ir.Topology {
	t := ir.NewTopology(name, n)
	for src := range n {
		for dst := range n {
			if b := f(src, dst); b > 0 && src != dst {
				t.Link(ir.Rank(src), ir.Rank(dst), b)
			}
		}
	}
	return t
}

// dgx1Links are the NVLink bricks between each pair of V100s in a DGX-1: two
// fully linked quads, joined pairwise; the doubled links are those of NVIDIA's
// published diagram.
var dgx1Links = [8][8]float64{
	{0, 2, 1, 1, 2, 0, 0, 0},
	{2, 0, 1, 2, 0, 1, 0, 0},
	{1, 1, 0, 2, 0, 0, 2, 0},
	{1, 2, 2, 0, 0, 0, 0, 1},
	{2, 0, 0, 0, 0, 2, 1, 1},
	{0, 1, 0, 0, 2, 0, 1, 2},
	{0, 0, 2, 0, 1, 1, 0, 2},
	{0, 0, 0, 1, 1, 2, 2, 0},
}

// amd8Links are the relative bandwidths between eight MI50s on two PCIe trees:
// 6 within one, 5 across.
func amd8Links(src, dst int32) float64 {
	tree := [8]int{0, 1, 0, 0, 1, 0, 1, 1}
	if tree[src] == tree[dst] {
		return 6
	}
	return 5
}

// distribute joins copies of a topology; ranks of different copies are linked
// with the remote bandwidth.
func distribute(name string, local *ir.Topology, copies int32, remote float64) *ir.Topology {
	k := local.Ranks
	full := fmt.Sprintf("%s(local=%s,copies=%d,bw=%g)", name, local.Name, copies, remote)
	return linked(full, k*copies, func(src, dst int32) float64 {
		if src/k != dst/k {
			return remote
		}
		return bandwidth(local, int(src%k), int(dst%k))
	})
}
