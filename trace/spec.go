package trace

import (
	"fmt"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// checkSpec refuses headers that no program can have.
func checkSpec(s *ir.Spec) *diag.Message {
	bad := func(format string, args ...any) *diag.Message {
		return diag.Errorf(diag.Pos{}, "bad-program", "program: "+format, args...)
	}
	c, t := s.Coll, s.Topo
	switch {
	case c == nil:
		return bad("no collective").Suggest("name one, for example AllReduce(8, 8, True)")
	case t == nil:
		return bad("no topology").Suggest("name one, for example fully_connected(8)")
	case c.Ranks < 1:
		return bad("ranks: got %d, want 1 or more", c.Ranks)
	case t.Ranks != c.Ranks:
		return bad("topology %s has %d ranks, collective %s has %d", t.Name, t.Ranks, c, c.Ranks).
			Suggest("give both the same number of ranks")
	case t.Bandwidth != nil && len(t.Bandwidth) != int(t.Ranks)*int(t.Ranks):
		return bad("topology %s: got %d links, want a %d by %d table", t.Name, len(t.Bandwidth), t.Ranks, t.Ranks)
	case s.Instances < 1:
		return bad("instances: got %d, want 1 or more", s.Instances)
	case s.Instances > maxFactor:
		return bad("instances: got %d, want %d at most", s.Instances, maxFactor)
	case s.Protocol > ir.AutoProtocol:
		return bad("protocol: got %s, want Simple, LL, LL128, Direct or auto", s.Protocol)
	case s.Policy > ir.Manual:
		return bad("thread block policy: got %d, want auto or manual", s.Policy)
	case c.Kind > ir.Custom:
		return bad("collective: unknown kind %d", c.Kind)
	case c.Split < 1:
		return bad("split: got %d, want 1 or more", c.Split)
	}
	if what := badCollective(c); what != "" {
		return bad("%s: %s", c, what)
	}
	return checkSize(c)
}

// badCollective says what is wrong with the parts of c that its kind needs.
func badCollective(c *ir.Collective) string {
	outside := func(r ir.Rank) bool { return r < 0 || int32(r) >= c.Ranks }
	switch {
	case c.Kind == ir.Custom:
		return badCustom(c)
	case c.Kind == ir.AllToAllV:
		if len(c.Counts) != int(c.Ranks)*int(c.Ranks) {
			return "counts must be a table of one row and one column a rank"
		}
		for _, n := range c.Counts {
			if n < 0 {
				return "counts must not be negative"
			}
		}
		return ""
	case c.ChunkFactor < 1:
		return "the chunk factor must be 1 or more"
	case c.Kind.Rooted() && outside(c.Root):
		return "the root must be one of the ranks"
	case c.Kind == ir.SendRecv && (outside(c.Root) || outside(c.Peer)):
		return "source and destination must be ranks"
	}
	return ""
}

func badCustom(c *ir.Collective) string {
	u, n := c.Custom, int(c.Ranks)
	switch {
	case u == nil:
		return "a custom collective needs its sizes and expectation"
	case len(u.Input) != n || len(u.Output) != n || len(u.Expect) != n || u.Holds != nil && len(u.Holds) != n:
		return "sizes, precondition and expectation must be given for every rank"
	}
	for r := range n {
		switch {
		case u.Input[r] < 0 || u.Output[r] < 0:
			return "sizes must not be negative"
		case u.Holds != nil && len(u.Holds[r]) != int(u.Input[r]):
			return "the precondition must speak of every input chunk"
		case len(u.Expect[r]) != int(u.Output[r]):
			return "the expectation must speak of every output chunk"
		}
	}
	for r := range u.Expect {
		for i, want := range u.Expect[r] {
			for _, w := range want {
				if w.Rank < 0 || int(w.Rank) >= n || w.Index < 0 || w.Index >= u.Input[w.Rank] {
					return fmt.Sprintf("rank %d output[%d] expects rank %d input[%d], which doesn't exist", r, i, w.Rank, w.Index)
				}
			}
		}
	}
	return ""
}

// checkSize bounds the chunks of all buffers together, in 64 bits: products of
// ranks and factors can pass what the collective's own int32 arithmetic holds.
func checkSize(c *ir.Collective) *diag.Message {
	n, f := int64(c.Ranks), int64(c.ChunkFactor)
	var total int64
	switch c.Kind {
	case ir.AllToAllV:
		for _, k := range c.Counts {
			total += 2 * int64(k)
		}
	case ir.Custom:
		for r := range c.Custom.Input {
			total += int64(c.Custom.Input[r]) + int64(c.Custom.Output[r])
		}
	case ir.AllGather, ir.ReduceScatter:
		total = n * f * (n + 1)
	case ir.AllToAll:
		total = 2 * n * n * f
	default:
		total = 2 * n * f
	}
	// f and n are below 2^31, so n*f can't wrap, and n*n*f only where n*f is already too much.
	if n*f > maxChunks || total > maxChunks || total*int64(c.Split) > maxChunks {
		return diag.Errorf(diag.Pos{}, "too-large", "program: %s of %d ranks has too many chunks: want %d at most in all inputs and outputs",
			c, c.Ranks, maxChunks).Suggest("use a smaller chunk factor")
	}
	return nil
}
