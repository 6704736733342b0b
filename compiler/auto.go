package compiler

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// autoProtocols is what protocol auto stands for, by the bytes of a chunk of the
// script. Where latency is all, LL sends a flag with every word; then LL128 does with one
// a line; beyond, bytes are all, and Direct moves them once.
var autoProtocols = []autoRow{
	{1 << 10, ir.LL},
	{512 << 10, ir.LL128},
	{math.MaxInt64, ir.Direct},
}

type autoRow struct {
	upTo     int64 // bytes of a chunk, inclusive
	protocol ir.Protocol
}

// AutoTable is what protocol auto stands for, as rows of a table in Markdown.
func AutoTable() string {
	var b strings.Builder
	for k, row := range autoProtocols {
		bytes := "at most " + bytesText(row.upTo)
		if k+1 == len(autoProtocols) {
			bytes = "more"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", bytes, row.protocol)
	}
	return b.String()
}

// rowFor is the number of the row that decides where bytes, as nccl-tests counts
// them, are cut into the chunks of c.
func rowFor(c *ir.Collective, bytes int64) int {
	chunk := ir.ChunkBytes(bytes, c.NumChunks())
	row := 0
	for chunk > autoProtocols[row].upTo {
		row++
	}
	return row
}

// ProtocolFor is the protocol that auto stands for at a size.
func ProtocolFor(c *ir.Collective, bytes int64) ir.Protocol {
	return autoProtocols[rowFor(c, bytes)].protocol
}

// AutoSizes are a size in bytes for each of the protocols that auto stands for, smallest
// first: who compiles for all of them has all programs that auto makes.
func AutoSizes(c *ir.Collective) []int64 {
	sizes := make([]int64, len(autoProtocols))
	for k, row := range autoProtocols {
		chunk := row.upTo
		if k+1 == len(autoProtocols) { // has no largest
			chunk = 2 * autoProtocols[k-1].upTo
		}
		sizes[k] = chunk * int64(max(c.NumChunks(), 1))
	}
	return sizes
}

// compileAuto chooses a protocol for o.Size, and says which and why.
func compileAuto(ctx context.Context, d *ir.ChunkDAG, o Options) (*Result, error) {
	if o.Target != ir.TargetNative {
		return nil, diag.Errorf(diag.Pos{}, "protocol-target", "program %q: protocol auto is for target native, and this is for target %s", d.Name, o.Target).
			Suggest("choose one: protocol = \"LL\", \"LL128\" or \"Simple\"")
	}
	r, err := Compile(ctx, withProtocol(d, ProtocolFor(d.Coll, o.Size)), o)
	if err != nil {
		return nil, err
	}
	r.Notes = append(diag.List{{Severity: diag.Info, Code: "protocol-auto", Text: whyProtocol(d.Coll, o.Size)}}, r.Notes...)
	return r, nil
}

func whyProtocol(c *ir.Collective, bytes int64) string {
	row := rowFor(c, bytes)
	text := fmt.Sprintf("protocol %s, chosen for %s: chunks of %s are ", autoProtocols[row].protocol, bytesText(bytes),
		bytesText(ir.ChunkBytes(bytes, c.NumChunks())))
	if row+1 == len(autoProtocols) {
		return text + "more than " + bytesText(autoProtocols[row-1].upTo)
	}
	return text + "at most " + bytesText(autoProtocols[row].upTo)
}

// withProtocol is d with another protocol.
func withProtocol(d *ir.ChunkDAG, p ir.Protocol) *ir.ChunkDAG {
	spec := *d.Spec
	spec.Protocol = p
	return &ir.ChunkDAG{Spec: &spec, Ops: d.Ops}
}

// bytesText writes a number of bytes in the largest unit that divides it.
func bytesText(n int64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n > 0 && n%1024 == 0 && i+1 < len(units) {
		i, n = i+1, n/1024
	}
	return fmt.Sprintf("%d %s", n, units[i])
}
