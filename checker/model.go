package checker

import (
	"fmt"
	"sort"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// model is a program whose structure is right, flattened for speed: steps,
// thread blocks, locations and connections are numbered across all ranks.
type model struct {
	p     *ir.Program
	steps []step
	tbs   []block
	ranks []rankInfo
	conns []conn
	deps  []int32 // steps waited for: step s waits for deps[s.depStart:s.depEnd]
	nLocs int32
	// flagged says that flags travel with the data (LL and LL128): see places.go.
	flagged bool
	// touched is the sum of all steps' counts; the chunks of step s have the
	// numbers from s.off on.
	touched  int32
	maxCount int32
}

// step is an ir.Step with numbers in place of names. Unused numbers are None.
type step struct {
	src, dst           int32 // canonical locations
	count              int32
	off                int32 // chunks touched by all steps before this one
	tb                 int32
	sendConn, recvConn int32
	mate               int32 // of a receive: the step that sends what it receives
	depStart, depEnd   int32
	kind               ir.StepKind
}

// block is one thread block: steps[first:end].
type block struct {
	rank       ir.Rank
	first, end int32
}

// rankInfo says where a rank's thread blocks and canonical locations begin:
// input, output and then as much scratch as any step touches.
type rankInfo struct {
	firstTB, endTB       int32
	base                 int32
	input, output, extra int32
}

// conn is one connection. An end that nobody uses has no owner.
type conn struct {
	src, dst         ir.Rank
	channel          int32
	sender, receiver int32 // thread blocks
	sends, recvs     int32 // number of steps
	firstSend        int32 // index into a list of all sends, by connection
}

// loc is the canonical location of a place of rank r.
func (m *model) loc(r ir.Rank, pl ir.Place) int32 {
	buf, i := m.p.Coll.Canon(r, pl.Buf, pl.Index)
	ri := &m.ranks[r]
	switch buf {
	case ir.Input:
		return ri.base + i
	case ir.Output:
		return ri.base + ri.input + i
	}
	return ri.base + ri.input + ri.output + i
}

// rankOf is the rank that owns a location.
func (m *model) rankOf(loc int32) ir.Rank {
	return ir.Rank(sort.Search(len(m.ranks), func(r int) bool { return m.ranks[r].base > loc }) - 1)
}

// place names a location by its rank and its canonical name.
func (m *model) place(loc int32) (ir.Rank, string, int32) {
	r := m.rankOf(loc)
	ri := &m.ranks[r]
	switch i := loc - ri.base; {
	case i < ri.input:
		return r, "input", i
	case i < ri.input+ri.output:
		return r, "output", i - ri.input
	default:
		return r, "scratch", i - ri.input - ri.output
	}
}

func (m *model) irStep(s int32) *ir.Step {
	tb := m.tbs[m.steps[s].tb]
	t := m.steps[s].tb - m.ranks[tb.rank].firstTB
	return &m.p.GPUs[tb.rank].TBs[t].Steps[s-tb.first]
}

func (m *model) pos(s int32) diag.Pos { return m.p.Pos(m.irStep(s).Pos) }

// name is how messages call step s.
func (m *model) name(s int32) string {
	tb := m.tbs[m.steps[s].tb]
	return stepName(tb.rank, m.steps[s].tb-m.ranks[tb.rank].firstTB, s-tb.first, m.steps[s].kind)
}

// inRank is name without the rank.
func (m *model) inRank(s int32) string {
	tb := m.tbs[m.steps[s].tb]
	return fmt.Sprintf("tb %d step %d (%s)", m.steps[s].tb-m.ranks[tb.rank].firstTB, s-tb.first, m.steps[s].kind)
}

func stepName(rank ir.Rank, tb, s int32, kind ir.StepKind) string {
	return fmt.Sprintf("rank %d tb %d step %d (%s)", rank, tb, s, kind)
}

func (c *conn) String() string {
	return fmt.Sprintf("connection %d -> %d on channel %d", c.src, c.dst, c.channel)
}

// errorAt is an error at step s.
func errorAt(m *model, s int32, code, format string, args ...any) *diag.Message {
	return diag.Errorf(m.pos(s), code, format, args...)
}
