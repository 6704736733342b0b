package viz

// outlined is the number of nodes from which on a picture begins with its outline:
// ranks and phases instead of nodes.
const outlined = 20_000

// outline counts nodes by rank and phase. A phase is a run of columns, or a part of
// a run's time.
type outline struct {
	ranks, phases int
	perRow        int     // ranks that share a row
	perPhase      int64   // columns, or nanoseconds
	count         []int32 // of a row, a phase and a kind
}

// newOutline cuts p into at most so many rows and phases.
func newOutline(p *Picture, rows, phases int) *outline {
	length := int64(p.Cols)
	if p.Stage == StageTimeline {
		length = p.Span
	}
	o := &outline{perRow: max(1, (int(p.Ranks)+rows-1)/rows)}
	o.perPhase = max(1, (length+int64(phases)-1)/int64(phases))
	o.ranks = (int(p.Ranks) + o.perRow - 1) / o.perRow
	o.phases = int((length + o.perPhase - 1) / o.perPhase)
	o.phases = max(o.phases, 1)
	o.count = make([]int32, o.ranks*o.phases*int(kinds))
	for v := range p.Nodes {
		n := &p.Nodes[v]
		at := int64(n.Col)
		if p.Stage == StageTimeline {
			at = n.Begin
		}
		phase := min(int(at/o.perPhase), o.phases-1)
		row := int(p.Lanes[n.Lane].Rank) / o.perRow
		o.count[(row*o.phases+phase)*int(kinds)+int(n.Kind)]++
	}
	return o
}

// cell is the number of nodes in a row and a phase, and the kind that most are of.
func (o *outline) cell(row, phase int) (n int32, most Kind) {
	at := (row*o.phases + phase) * int(kinds)
	counts := o.count[at : at+int(kinds)]
	for k, c := range counts {
		n += c
		if c > counts[most] {
			most = Kind(k)
		}
	}
	return n, most
}
