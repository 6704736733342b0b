package ir

import "fmt"

// StepKind is what an instruction or a step does: a small closed set.
type StepKind uint8

// The two-sided step kinds, with MSCCL's opcodes as their names. "recv" is the
// next message of the receive connection.
const (
	Nop                StepKind = iota // nop: wait only
	Send                               // s: send Src
	Recv                               // r: Dst := recv
	RecvCopySend                       // rcs: Dst := recv, and send it on
	RecvReduceSend                     // rrs: send op(recv, Src); Dst is not written
	RecvReduceCopy                     // rrc: Dst := op(recv, Src)
	RecvReduceCopySend                 // rrcs: Dst := op(recv, Src), and send it on
	Copy                               // cpy: Dst := Src
	Reduce                             // re: Dst := op(Src, Dst)
)

var stepNames = [...]string{"nop", "s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re"}

// String is MSCCL's opcode.
func (k StepKind) String() string {
	if int(k) < len(stepNames) {
		return stepNames[k]
	}
	return fmt.Sprintf("StepKind(%d)", k)
}

// ParseStepKind reads MSCCL's opcode.
func ParseStepKind(s string) (StepKind, error) {
	for i, n := range stepNames {
		if s == n {
			return StepKind(i), nil
		}
	}
	return 0, fmt.Errorf("step type: got %q, want one of nop, s, r, rcs, rrs, rrc, rrcs, cpy, re", s)
}

// Sends reports whether the step puts a message on its send connection.
func (k StepKind) Sends() bool {
	return k == Send || k == RecvCopySend || k == RecvReduceSend || k == RecvReduceCopySend
}

// Receives reports whether the step takes a message from its receive connection.
func (k StepKind) Receives() bool { return k >= Recv && k <= RecvReduceCopySend }

// ReadsSrc reports whether the step reads its local source.
func (k StepKind) ReadsSrc() bool {
	switch k {
	case Send, RecvReduceSend, RecvReduceCopy, RecvReduceCopySend, Copy, Reduce:
		return true
	}
	return false
}

// WritesDst reports whether the step writes its local destination.
func (k StepKind) WritesDst() bool {
	switch k {
	case Recv, RecvCopySend, RecvReduceCopy, RecvReduceCopySend, Copy, Reduce:
		return true
	}
	return false
}

// ReadsDst reports whether the step reads its local destination as an operand.
func (k StepKind) ReadsDst() bool { return k == Reduce }

// Reduces reports whether the step applies the reduction.
func (k StepKind) Reduces() bool {
	switch k {
	case RecvReduceSend, RecvReduceCopy, RecvReduceCopySend, Reduce:
		return true
	}
	return false
}

// Instr is one instruction of one rank. Src and Dst are places on Rank: the
// local source and the local destination, never the peer's. Unused ones are
// NoPlace.
type Instr struct {
	Kind     StepKind
	Rank     Rank
	Src, Dst Place
	Count    int32
	SendTo   InstrID // the instruction that receives what this one sends, or None
	RecvFrom InstrID // the instruction whose message this one receives, or None
	Chan     int32   // channel asked for, or None
	TB       int32   // thread block asked for, or None
	Instance int32
	Op       OpID // the chunk operation this came from; a fused one: its receive's
	Pos      PosID
}

// InstrDAG is a program as instructions. The order of Instrs is a valid
// sequential execution: every dependency and every message points forward.
type InstrDAG struct {
	*Spec
	Instrs []Instr
}

// SendPeer is the rank that instruction i sends to, or None.
func (d *InstrDAG) SendPeer(i InstrID) Rank {
	if t := d.Instrs[i].SendTo; t != None {
		return d.Instrs[t].Rank
	}
	return None
}

// RecvPeer is the rank that instruction i receives from, or None.
func (d *InstrDAG) RecvPeer(i InstrID) Rank {
	if f := d.Instrs[i].RecvFrom; f != None {
		return d.Instrs[f].Rank
	}
	return None
}

// Edges computes the dependencies: hazards on each rank's locations, and the
// message from every send to its receive.
func (d *InstrDAG) Edges() *Edges {
	h := NewHazards(d.Spec)
	for i := range d.Instrs {
		in := &d.Instrs[i]
		h.Begin(int32(i))
		if in.Kind.ReadsSrc() {
			h.Read(Loc{in.Rank, in.Src.Buf, in.Src.Index}, in.Count)
		}
		if in.Kind.ReadsDst() {
			h.Read(Loc{in.Rank, in.Dst.Buf, in.Dst.Index}, in.Count)
		}
		if in.Kind.WritesDst() {
			h.Write(Loc{in.Rank, in.Dst.Buf, in.Dst.Index}, in.Count)
		}
		if in.RecvFrom != None {
			h.Dep(int32(in.RecvFrom), DepComm)
		}
		h.End()
	}
	return h.Edges()
}
