package cuda

import (
	"unsafe"

	"github.com/mscclsh/mscclsh/ir"
)

// ABI is the version of the interface that Tables are laid out for.
const ABI = abiVersion

// The words (int32) that one element of a table has: mscclsh_step, mscclsh_dep and
// mscclsh_divide of mscclsh_cuda.h.
const (
	StepWords   = int(unsafe.Sizeof(cStep{}) / 4)
	DepWords    = int(unsafe.Sizeof(cDep{}) / 4)
	DivideWords = int(unsafe.Sizeof(cDivide{}) / 4)
)

// Tables are a two-sided program as libmscclsh_cuda reads it: the arrays of
// mscclsh_program, word by word, for who stores programs that are loaded elsewhere.
type Tables struct {
	TBs        []int32 // thread blocks of each rank
	StepsPerTB []int32 // of rank 0's first thread block, its second, ...
	Steps      []int32 // StepWords each
	Deps       []int32 // DepWords each
	Chunks     []int32 // [rank*3+buffer]: its size
	BaseBuf    []int32 // likewise: the buffer that it lies in
	BaseChunk  []int32 // and where it begins there
	Divides    []int32 // DivideWords each
}

// Flatten makes the tables of a program. It refuses what Comm.Load would refuse.
func Flatten(p *ir.Program) (*Tables, error) {
	if err := Validate(p); err != nil {
		return nil, err
	}
	f, err := flatten(p)
	if err != nil {
		return nil, err
	}
	return &Tables{TBs: f.tbs, StepsPerTB: f.perTB, Steps: asWords(f.steps), Deps: asWords(f.deps),
		Chunks: f.chunks, BaseBuf: f.baseBuf, BaseChunk: f.baseChunk, Divides: asWords(f.divides)}, nil
}

// asWords is a table of structures that hold nothing but int32.
func asWords[T cStep | cDep | cDivide](list []T) []int32 {
	if len(list) == 0 {
		return nil
	}
	var one T
	n := len(list) * int(unsafe.Sizeof(one)/4)
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(list))), n)
}

// Step is step i of the tables, whose kind must be known, without its place in the script.
func (t *Tables) Step(i int) ir.Step {
	w := t.Steps[i*StepWords : (i+1)*StepWords]
	s := ir.Step{Kind: ir.StepKind(w[0]), Post: w[1] != 0, Src: ir.NoPlace, Dst: ir.NoPlace, Remote: ir.NoPlace, Count: w[6],
		SendPeer: ir.None, RecvPeer: ir.None, Chan: w[9], DepStart: w[10], DepEnd: w[11]}
	if s.Kind.Sends() {
		s.SendPeer = ir.Rank(w[7])
	}
	if s.Kind.Receives() {
		s.RecvPeer = ir.Rank(w[8])
	}
	if s.Kind.ReadsSrc() {
		s.Src = ir.Place{Buf: ir.BufferID(w[2]), Index: w[3]}
	}
	if s.Kind.WritesDst() {
		s.Dst = ir.Place{Buf: ir.BufferID(w[4]), Index: w[5]}
	}
	return s
}
