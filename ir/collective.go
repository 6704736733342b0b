package ir

import "fmt"

// CollectiveKind is one of the collectives with a known pre- and postcondition.
type CollectiveKind uint8

// The collectives; Custom is a user's own.
const (
	AllReduce CollectiveKind = iota
	AllGather
	ReduceScatter
	AllToAll
	Broadcast
	ReduceTo // reduce to a root
	Gather
	Scatter
	AllToNext
	SendRecv
	AllToAllV
	Custom
)

var collectiveNames = [...]string{"allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast",
	"reduce", "gather", "scatter", "alltonext", "sendrecv", "alltoallv", "custom"}

// String is msccl's spelling of the collective.
func (k CollectiveKind) String() string {
	if int(k) < len(collectiveNames) {
		return collectiveNames[k]
	}
	return fmt.Sprintf("CollectiveKind(%d)", k)
}

// ParseCollectiveKind reads msccl's spelling.
func ParseCollectiveKind(s string) (CollectiveKind, error) {
	for i, n := range collectiveNames {
		if s == n {
			return CollectiveKind(i), nil
		}
	}
	return 0, fmt.Errorf("collective: unknown name %q", s)
}

// Rooted reports whether the collective has a root.
func (k CollectiveKind) Rooted() bool {
	return k == Broadcast || k == ReduceTo || k == Gather || k == Scatter
}

// Contribution is the chunk that rank Rank had at Index of its input before the
// collective ran.
type Contribution struct {
	Rank  Rank
	Index int32
}

// Collective is what a program has to compute. One chunk of the declaration is
// Split chunks of the program, so that replication refines a collective
// without changing what it means.
//
// Sizes, in declared chunks with c = ChunkFactor and n = Ranks (msccl-tools'):
//
//	allreduce, broadcast, reduce, alltonext, sendrecv: c in, c out
//	allgather, gather: c in, n*c out      reduce_scatter, scatter: n*c in, c out
//	alltoall: n*c both                    alltoallv: by Counts
//
// Only a root, source or destination has the buffer that it alone uses; a rank
// without one has 0 chunks.
type Collective struct {
	Kind        CollectiveKind
	Name        string // of a Custom one; "" otherwise
	Ranks       int32
	ChunkFactor int32
	InPlace     bool
	Root        Rank    // of rooted collectives and the source of SendRecv; else None
	Peer        Rank    // the destination of SendRecv; else None
	Counts      []int32 // AllToAllV: Counts[src*Ranks+dst] chunks
	Custom      *CustomSpec
	Split       int32
}

// CustomSpec is a user's collective: sizes a rank, which inputs hold data, and
// what each output must hold. Expect[r][i] nil means "anything".
type CustomSpec struct {
	Input, Output []int32
	Holds         [][]bool
	Expect        [][][]Contribution
	Open          bool // what outputs must hold is not known, and all of them matter
}

// NewCollective makes a collective of a known kind without root, peer or counts.
func NewCollective(kind CollectiveKind, ranks, chunkFactor int32, inPlace bool) *Collective {
	return &Collective{Kind: kind, Ranks: ranks, ChunkFactor: chunkFactor, InPlace: inPlace,
		Root: None, Peer: None, Split: 1}
}

// Refine is c with every chunk cut into n.
func (c *Collective) Refine(n int32) *Collective {
	r := *c
	r.Split *= n
	return &r
}

// String is the name as users know it: the kind's, or the user's own.
func (c *Collective) String() string {
	if c.Kind == Custom && c.Name != "" {
		return c.Name
	}
	return c.Kind.String()
}

// sharesWhole reports whether in place means that input and output are one and
// the same memory, index by index, on every rank.
func (c *Collective) sharesWhole() bool {
	if !c.InPlace {
		return false
	}
	switch c.Kind {
	case AllReduce, AllToAll, Broadcast, ReduceTo, AllToNext, Custom:
		return true
	}
	return false
}

// sizes are the input and output chunks of rank r before aliasing.
func (c *Collective) sizes(r Rank) (in, out int32) {
	f := c.ChunkFactor * c.Split
	n := c.Ranks
	only := func(cond bool, size int32) int32 {
		if cond {
			return size
		}
		return 0
	}
	switch c.Kind {
	case AllReduce, AllToNext:
		return f, f
	case AllGather:
		return f, n * f
	case ReduceScatter:
		return n * f, f
	case AllToAll:
		return n * f, n * f
	case Broadcast:
		return only(r == c.Root, f), f
	case ReduceTo:
		return f, only(r == c.Root, f)
	case Gather:
		return f, only(r == c.Root, n*f)
	case Scatter:
		return only(r == c.Root, n*f), f
	case SendRecv:
		return only(r == c.Root, f), only(r == c.Peer, f)
	case AllToAllV:
		for q := range n {
			in += c.Counts[int32(r)*n+q]
			out += c.Counts[q*n+int32(r)]
		}
		return in * c.Split, out * c.Split
	}
	return c.Custom.Input[r] * c.Split, c.Custom.Output[r] * c.Split
}

// InputChunks is the physical length of rank r's input.
func (c *Collective) InputChunks(r Rank) int32 {
	in, out := c.sizes(r)
	if c.sharesWhole() {
		return max(in, out)
	}
	return in
}

// OutputChunks is the physical length of rank r's output.
func (c *Collective) OutputChunks(r Rank) int32 {
	in, out := c.sizes(r)
	if c.sharesWhole() {
		return max(in, out)
	}
	return out
}

// NumChunks is what msccl calls nchunksperloop: the chunks that the whole
// buffer (the larger of input and output, over all ranks) is cut into.
func (c *Collective) NumChunks() int32 {
	n := int32(0)
	for r := range Rank(c.Ranks) {
		in, out := c.sizes(r)
		n = max(n, in, out)
	}
	return n
}

// Canon gives the one name under which a location is known: in place, input and
// output overlap as the runtimes lay them out (allgather: input i is output
// r*c+i; reduce_scatter: output i is input r*c+i; gather and scatter the same at
// the root; all others: the same index; sendrecv and alltoallv have no in-place
// form). Out of place it changes nothing.
func (c *Collective) Canon(r Rank, buf BufferID, index int32) (BufferID, int32) {
	if !c.InPlace || buf > Output {
		return buf, index
	}
	f := c.ChunkFactor * c.Split
	switch {
	case c.sharesWhole():
		return Input, index
	case buf == Input && (c.Kind == AllGather || c.Kind == Gather && r == c.Root):
		return Output, int32(r)*f + index
	case buf == Output && (c.Kind == ReduceScatter || c.Kind == Scatter && r == c.Root):
		return Input, int32(r)*f + index
	}
	return buf, index
}

// Holds is the precondition: whether input index i of rank r holds data, namely
// Contribution{r, i}.
func (c *Collective) Holds(r Rank, i int32) bool {
	in, _ := c.sizes(r)
	if i < 0 || i >= in {
		return false
	}
	if c.Kind == Custom && c.Custom.Holds != nil {
		return c.Custom.Holds[r][i/c.Split]
	}
	return true
}

// Expect is the postcondition: appends to dst the multiset of contributions
// that output index i of rank r must hold, in ascending order of rank, and
// reports whether anything is demanded of it at all.
func (c *Collective) Expect(dst []Contribution, r Rank, i int32) ([]Contribution, bool) {
	_, out := c.sizes(r)
	if i < 0 || i >= out {
		return dst, false
	}
	f := c.ChunkFactor * c.Split
	switch c.Kind {
	case AllReduce, ReduceTo:
		return c.all(dst, i), true
	case ReduceScatter:
		return c.all(dst, int32(r)*f+i), true
	case AllGather, Gather:
		return append(dst, Contribution{Rank(i / f), i % f}), true
	case AllToAll:
		return append(dst, Contribution{Rank(i / f), int32(r)*f + i%f}), true
	case Broadcast, SendRecv:
		return append(dst, Contribution{c.Root, i}), true
	case Scatter:
		return append(dst, Contribution{c.Root, int32(r)*f + i}), true
	case AllToNext:
		if r == 0 {
			return dst, false
		}
		return append(dst, Contribution{r - 1, i}), true
	case AllToAllV:
		return append(dst, c.allToAllV(r, i)), true
	}
	want := c.Custom.Expect[r][i/c.Split]
	for _, w := range want {
		dst = append(dst, Contribution{w.Rank, w.Index*c.Split + i%c.Split})
	}
	return dst, want != nil
}

func (c *Collective) all(dst []Contribution, i int32) []Contribution {
	for q := range Rank(c.Ranks) {
		dst = append(dst, Contribution{q, i})
	}
	return dst
}

// allToAllV finds which source chunk belongs at output i of rank r: outputs are
// ordered by source, inputs by destination.
func (c *Collective) allToAllV(r Rank, i int32) Contribution {
	n := c.Ranks
	for src := range n {
		size := c.Counts[src*n+int32(r)] * c.Split
		if i >= size {
			i -= size
			continue
		}
		for dst := range int32(r) {
			i += c.Counts[src*n+dst] * c.Split
		}
		return Contribution{Rank(src), i}
	}
	return Contribution{None, None}
}

// Segment is the length, in chunks, of the runs within which chunks may
// be renumbered without changing what the collective means, as long as the same
// renumbering is used everywhere; 0 if there are none. Blocked replication needs
// it: chunk k of a segment of length s becomes i*s+k for instance i.
func (c *Collective) Segment() int32 {
	switch c.Kind {
	case AllReduce, Broadcast, ReduceTo, AllToNext, SendRecv,
		AllGather, ReduceScatter, AllToAll, Gather, Scatter:
		return c.ChunkFactor * c.Split
	}
	return 0
}

// Observable reports whether the final content of the canonical location
// matters: something is demanded of an output there, or it is an input that an
// out-of-place collective must leave alone.
func (c *Collective) Observable(r Rank, buf BufferID, index int32) bool {
	f := c.ChunkFactor * c.Split
	switch {
	case buf > Output:
		return false
	case !c.InPlace && buf == Input:
		return true
	case buf == Input && !c.sharesWhole(): // reduce_scatter, scatter: its own part
		switch {
		case c.Kind == ReduceScatter || c.Kind == Scatter && r == c.Root:
			index -= int32(r) * f
		default:
			return false
		}
	}
	return c.demands(r, index)
}

// demands is Expect without the list.
func (c *Collective) demands(r Rank, i int32) bool {
	_, out := c.sizes(r)
	switch {
	case i < 0 || i >= out:
		return false
	case c.Kind == AllToNext:
		return r != 0
	case c.Kind == Custom:
		return c.Custom.Open || c.Custom.Expect[r][i/c.Split] != nil
	}
	return true
}
