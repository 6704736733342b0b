package ir

// Topology says which ranks are linked. The compiler asks only whether a link
// exists; Bandwidth (GB/s, 0 where unknown) is for reports and models.
type Topology struct {
	Name  string
	Ranks int32
	// Bandwidth[src*Ranks+dst] > 0 means linked. nil means fully connected.
	Bandwidth []float64
}

// FullyConnected is msccl-tools' fully_connected(n).
func FullyConnected(n int32) *Topology {
	return &Topology{Name: "FullyConnected", Ranks: n}
}

// NewTopology is a topology of n ranks without any link yet.
func NewTopology(name string, n int32) *Topology {
	return &Topology{Name: name, Ranks: n, Bandwidth: make([]float64, int(n)*int(n))}
}

// Link connects src to dst in that direction, adding gbps to what is there.
func (t *Topology) Link(src, dst Rank, gbps float64) {
	t.Bandwidth[int(src)*int(t.Ranks)+int(dst)] += gbps
}

// Linked reports whether src can send to dst. A rank is always linked to itself.
func (t *Topology) Linked(src, dst Rank) bool {
	if t == nil || t.Bandwidth == nil || src == dst {
		return true
	}
	return t.Bandwidth[int(src)*int(t.Ranks)+int(dst)] > 0
}
