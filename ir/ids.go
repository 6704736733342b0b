package ir

import "github.com/mscclsh/mscclsh/internal/diag"

// Rank is a GPU's number in the collective, from 0. None means "no rank".
type Rank int32

// OpID indexes ChunkDAG.Ops, InstrID InstrDAG.Instrs, PosID Spec.Positions.
type (
	OpID    int32
	InstrID int32
	PosID   int32
)

// None is the absent value of every id and of every optional number: a peer
// that is not there, a channel that was not asked for.
const None = -1

// BufferID indexes Spec.Buffers. Input and Output always exist; every named
// scratch buffer follows in order of first use.
type BufferID int32

// The buffers every program has. FirstScratch is the id of the first named
// scratch buffer of a ChunkDAG or InstrDAG. In a Program there is exactly one
// scratch buffer a rank, and its id is FirstScratch.
const (
	Input        BufferID = 0
	Output       BufferID = 1
	FirstScratch BufferID = 2
)

// Loc is one chunk-sized location of one rank.
type Loc struct {
	Rank  Rank
	Buf   BufferID
	Index int32 // in chunks
}

// Place is a location on a rank known from context. Buf None means "no place".
type Place struct {
	Buf   BufferID
	Index int32 // in chunks
}

// NoPlace is the absent Place.
var NoPlace = Place{Buf: None, Index: None}

// Valid reports whether p is a place at all.
func (p Place) Valid() bool { return p.Buf != None }

// Buffer describes one buffer of a ChunkDAG or InstrDAG.
type Buffer struct {
	Name   string  // "input", "output", or the user's name for a scratch buffer
	Chunks []int32 // length a rank, in chunks
}

// ThreadblockPolicy says who assigns thread blocks, as in msccl-tools.
type ThreadblockPolicy uint8

// The policies of msccl-tools' ThreadblockPolicy.
const (
	Auto   ThreadblockPolicy = iota // the compiler assigns thread blocks
	Manual                          // sendtb and recvtb of the script decide
)

// String is msccl-tools' name of the policy.
func (p ThreadblockPolicy) String() string {
	if p == Manual {
		return "manual"
	}
	return "auto"
}

// Spec is what the three forms of a program have in common. A pass that does
// not change it shares the pointer; a pass that does copies it first.
type Spec struct {
	Name     string
	Coll     *Collective
	Topo     *Topology
	Protocol Protocol

	Policy        ThreadblockPolicy
	Instances     int32 // whole-program instances asked for, 1 or more
	Interleaved   bool  // msccl-tools' interleaved_replication
	Fusion        bool  // msccl-tools' instr_fusion
	DependenceNop bool  // msccl-tools' dependence_nop
	CheckXML      bool  // msccl-tools' check_xml

	Buffers   []Buffer
	Positions []diag.Pos // Positions[0] is the zero Pos: "no position"
}

// Pos resolves a position id; ids out of range give the zero Pos.
func (s *Spec) Pos(id PosID) diag.Pos {
	if id < 0 || int(id) >= len(s.Positions) {
		return diag.Pos{}
	}
	return s.Positions[id]
}

// BufferName is the name of buffer b, or "?" for an id that names none.
func (s *Spec) BufferName(b BufferID) string {
	if b < 0 || int(b) >= len(s.Buffers) {
		return "?"
	}
	return s.Buffers[b].Name
}

// Ranks is the number of ranks, the collective's.
func (s *Spec) Ranks() int32 { return s.Coll.Ranks }
