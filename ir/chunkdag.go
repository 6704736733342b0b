package ir

// ChunkKind is what a chunk operation does.
type ChunkKind uint8

// The chunk operations of the language.
const (
	ChunkCopy   ChunkKind = iota // Dst := Src
	ChunkReduce                  // Dst := Dst + Src
)

// String is "copy" or "reduce".
func (k ChunkKind) String() string {
	if k == ChunkReduce {
		return "reduce"
	}
	return "copy"
}

// ChunkOp is one chunk operation on Count consecutive chunks. Src and Dst are
// canonical: for an in-place collective aliased locations have one name, see
// Collective.Canon.
type ChunkOp struct {
	Kind     ChunkKind
	Src, Dst Loc
	Count    int32
	Chan     int32 // channel asked for, or None
	SendTB   int32 // thread block asked for at the sender (local operations too), or None
	RecvTB   int32 // thread block asked for at the receiver, or None
	Parallel int32 // factor of the parallelize(n) around the operation, 1 outside
	Instance int32 // set by replication, 0 before
	Pos      PosID
}

// Remote reports whether the operation crosses ranks.
func (o *ChunkOp) Remote() bool { return o.Src.Rank != o.Dst.Rank }

// ChunkDAG is a program as written: operations in program order. Program order
// is the meaning; Edges derives what of it must be kept.
type ChunkDAG struct {
	*Spec
	Ops []ChunkOp
}

// DepKind tells why one node must run before another.
type DepKind uint8

// True dependencies move a value; false ones reuse a location.
const (
	DepTrue   DepKind = iota // read after write
	DepAnti                  // write after read
	DepOutput                // write after write
	DepComm                  // a receive after its send (InstrDAG only)
)

// String is "true", "anti", "output" or "comm".
func (k DepKind) String() string {
	return [...]string{"true", "anti", "output", "comm"}[k]
}

// Edges is a graph over dense ids in compressed form: the predecessors of node
// v are Pred[Start[v]:Start[v+1]], ascending and without repeats; Kind runs
// beside Pred and holds the strongest reason (the least DepKind).
type Edges struct {
	Start []int32 // one more than there are nodes
	Pred  []int32
	Kind  []DepKind
}

// Of returns the predecessors of v. The slice is shared: don't change it.
func (e *Edges) Of(v int32) []int32 { return e.Pred[e.Start[v]:e.Start[v+1]] }

// KindsOf returns the reasons beside Of(v).
func (e *Edges) KindsOf(v int32) []DepKind { return e.Kind[e.Start[v]:e.Start[v+1]] }

// Edges computes the dependencies between operations by the last writer and
// the readers since, location by location. Linear in locations touched plus
// edges.
func (d *ChunkDAG) Edges() *Edges {
	h := NewHazards(d.Spec)
	for i := range d.Ops {
		op := &d.Ops[i]
		h.Begin(int32(i))
		h.Read(op.Src, op.Count)
		if op.Kind == ChunkReduce {
			h.Read(op.Dst, op.Count)
		}
		h.Write(op.Dst, op.Count)
		h.End()
	}
	return h.Edges()
}
