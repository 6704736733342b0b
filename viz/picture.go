package viz

import (
	"slices"
	"strconv"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Stage is what of a program a picture shows.
type Stage uint8

// The stages, in the order in which a program goes through them.
const (
	StageChunks       Stage = iota // operations of the script
	StageInstructions              // instructions before fusion
	StageFused                     // instructions after fusion
	StageSchedule                  // steps on thread blocks
	StageTopology                  // channels and connections
	StageTimeline                  // a run
)

var stageNames = [...]string{"chunks", "instructions", "fused", "schedule", "topology", "timeline"}

// String is the stage's name on command lines and in pictures.
func (s Stage) String() string { return stageNames[s] }

// StageNames lists the stages in order.
func StageNames() []string { return slices.Clone(stageNames[:]) }

// Kind is what a node does, as far as its looks go.
type Kind uint8

// The kinds of nodes.
const (
	KindCopy    Kind = iota // moves a value
	KindReduce              // adds up
	KindSend                // gives a message away
	KindReceive             // takes one
	KindRelay               // takes one and gives it on
	KindSync                // moves nothing: waits, signals, meets
	KindRank                // a rank, of the topology
	kinds
)

var kindNames = [kinds]string{"copy", "reduce", "send", "receive", "receive and send", "wait", "rank"}

// EdgeKind is why two nodes are joined.
type EdgeKind uint8

// The kinds of edges.
const (
	EdgeTrue       EdgeKind = iota // moves a value: a read after the write
	EdgeFalse                      // reuses a location
	EdgeMessage                    // a receive after its send
	EdgeWait                       // a step waits for one of another thread block
	EdgeOrder                      // the order of a thread block
	EdgeConnection                 // messages of one rank to another
	EdgeLink                       // a link of the topology that nothing uses
	edgeKinds
)

var edgeNames = [edgeKinds]string{"value moves", "place reused", "message", "wait", "order of a thread block", "connection", "unused link"}

// Picture is a stage of a program: what there is to draw, and where in lanes. All
// ids are indexes.
type Picture struct {
	Stage Stage
	Name  string // of the program
	About string // one line: how many ranks, what collective, how large
	Ranks int32
	Sizes []string // of each rank's buffers, of a program alone

	Lanes []Lane // by rank, then thread block
	Nodes []Node
	Edges []Edge
	Order []int32 // nodes in an order in which they can run; those that never can are left out
	Cols  int32   // columns of the lanes
	Span  int64   // nanoseconds that a run took

	Moved  []int32 // values that nodes move; see Node.Moved
	Values *Values // what they are, nil where they were too many to follow

	label func(i int32) string // a few letters
	text  func(i int32) string // one line
}

// Lane is a row of a picture: a rank, or one of its thread blocks.
type Lane struct {
	Rank  ir.Rank
	Block int32 // None where the lane is the whole rank
	About string
	Rows  int32 // sublanes
}

// Name is the lane's, in a few letters.
func (l *Lane) Name() string {
	if l.Block == ir.None {
		return "rank " + strconv.Itoa(int(l.Rank))
	}
	return strconv.Itoa(int(l.Rank)) + ":" + strconv.Itoa(int(l.Block))
}

// Node is one operation, instruction, step or event. No two have one place.
type Node struct {
	Kind       Kind
	Stuck      bool  // can never run
	Lane, Row  int32 // Row counts within the lane
	Col        int32 // columns go with time
	Depth      int32 // longest way from a node that depends on nothing
	ID         int32 // number that the program knows it by: of the operation, or of the step in its thread block
	Tile       int32 // of an event
	Begin, End int64 // of an event, nanoseconds
	Moved      ir.Span
	Pos        diag.Pos
}

// Edge joins two nodes, from what comes first. Count and Note say more of
// connections; Moved as in Node.
type Edge struct {
	Kind     EdgeKind
	From, To int32
	Count    int32
	Note     string
	Moved    ir.Span
}

// Label is node i in a few letters.
func (p *Picture) Label(i int32) string { return p.label(i) }

// Text is node i in one line, as the text form has it.
func (p *Picture) Text(i int32) string { return p.text(i) }

// kindsUsed are those of the picture's nodes, and of its edges, in order.
func (p *Picture) kindsUsed() (nodes []Kind, edges []EdgeKind) {
	var n [kinds]bool
	for i := range p.Nodes {
		n[p.Nodes[i].Kind] = true
	}
	var e [edgeKinds]bool
	for i := range p.Edges {
		e[p.Edges[i].Kind] = true
	}
	for k := range kinds {
		if n[k] {
			nodes = append(nodes, k)
		}
	}
	for k := range edgeKinds {
		if e[k] {
			edges = append(edges, k)
		}
	}
	return nodes, edges
}

// laneTops are the rows at which lanes begin, and the number of all.
func (p *Picture) laneTops() []int32 {
	tops := make([]int32, len(p.Lanes)+1)
	for i := range p.Lanes {
		tops[i+1] = tops[i] + max(p.Lanes[i].Rows, 1)
	}
	return tops
}

// adjacency lists the edges at each node: those that end there, or begin there.
type adjacency struct{ start, edge []int32 }

func (a *adjacency) of(v int32) []int32 { return a.edge[a.start[v]:a.start[v+1]] }

// adjacent indexes edges by the node that they end at, or by the one that they
// begin at, in the order of edges.
func (p *Picture) adjacent(ends bool) *adjacency {
	at := func(e *Edge) int32 {
		if ends {
			return e.To
		}
		return e.From
	}
	a := &adjacency{make([]int32, len(p.Nodes)+1), make([]int32, len(p.Edges))}
	for i := range p.Edges {
		a.start[at(&p.Edges[i])+1]++
	}
	for v := range p.Nodes {
		a.start[v+1] += a.start[v]
	}
	fill := slices.Clone(a.start)
	for i := range p.Edges {
		v := at(&p.Edges[i])
		a.edge[fill[v]] = int32(i)
		fill[v]++
	}
	return a
}
